"""Runs on the rows as they were given: the same numbers as in the joint row space, which they never compute."""

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import forgetting as fg
from effort import pairwise
from forgetting.errors import InvalidInputError
from forgetting.geometry import OwnRows
from forgetting.orderings import Cyclic, GreedyDistance, GreedyResidual, NormWeighted, Reshuffled

LINEAR = [
    fg.schemes.Kaczmarz(),
    fg.schemes.SGD(0.6),
    fg.schemes.SGD(0.05, "loss"),
    fg.schemes.FiniteSteps(3, 0.1),
    fg.schemes.Ridge(0.4),
    fg.schemes.Scheduled(lambda t: fg.schemes.Decay(1 - 1 / (t + 1), fg.schemes.Ridge(0.1 * t))),
]


def rows(rng, n, d=14, filled=5):
    """A CSR matrix with a few numbers in each row."""
    dense = np.zeros((n, d))
    for row in dense:
        row[rng.choice(d, filled, replace=False)] = rng.standard_normal(filled)
    return sp.csr_array(dense)


def single(rng):
    return [rows(rng, 1) for _ in range(9)]


def several(rng):
    return [rows(rng, n) for n in (3, 1, 4, 2, 1, 20)]


def few(rng):
    return several(rng)[:-1]  # without the task that solves all others


def deficient(rng):
    first = rows(rng, 3)
    double = sp.csr_array(sp.vstack([first, first[:2], sp.csr_array((1, 14))]))
    return [double, sp.csr_array((1, 14)), sp.csr_array((3, 14)), *several(rng)]


def graded(rng):
    return [sp.csr_array(sp.diags_array([1.0, 1e-7, 1e3, 1e-3]) @ rows(rng, 4)), *single(rng)]


def clones(rng):
    known = several(rng)
    return [known[i] for i in (0, 1, 0, 2, 3, 1, 4, 0)]


def dense(rng):
    return [rng.standard_normal((n, 6)) for n in (1, 3, 1, 8)]


KINDS = [single, several, deficient, graded, clones, dense]


def problem(kind, noise=0.0, outputs=0, seed=0, **options):
    rng = np.random.default_rng(seed)
    matrices = kind(rng)
    shape = (matrices[0].shape[1], outputs) if outputs else (matrices[0].shape[1],)
    w = rng.standard_normal(shape)
    labels = [X @ w for X in matrices]
    labels = [y + noise * np.random.default_rng(len(y)).standard_normal(y.shape) for y in labels]
    return fg.RegressionTasks(matrices, labels, **options)


def both(tasks):
    """The tasks twice: on their own rows, and in the joint row space."""
    made = [pickle.loads(pickle.dumps(tasks)) for _ in range(2)]
    for copied, own in zip(made, (True, False), strict=True):
        copied.__dict__["steps_on_own_rows"] = own
    return made


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def assert_same(own, joint):
    assert own._space.geometry is None
    assert joint._space.geometry is not None
    assert own.order.tolist() == joint.order.tolist()
    names = "iterates losses loss_matrix forgetting regret residuals before after averaged_losses forgetting_bound"
    for name in names.split():
        if name != "averaged_losses" or len(own.steps) > own.k:
            close(getattr(own, name), getattr(joint, name))


@pairwise(kind=KINDS, outputs=[0, 3], noise=[0.0, 0.5], scheme=LINEAR)
def test_runs_on_own_rows_are_those_of_the_joint_row_space(kind, outputs, noise, scheme):
    if kind is graded and not isinstance(scheme, fg.schemes.Kaczmarz | fg.schemes.Ridge):
        scheme = fg.schemes.SGD(0.7)  # gradient steps diverge where rows are large
    own, joint = both(problem(kind, noise if kind is not graded else 0.0, outputs))
    assert_same(*(fg.run(tasks, Reshuffled(), 25, scheme, seed=3) for tasks in (own, joint)))
    assert "geometry" not in own.__dict__


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("outputs", [0, 2])
def test_a_start_a_thin_record_and_a_mean_loss(kind, outputs):
    own, joint = both(problem(kind, 0.1 if kind is not graded else 0.0, outputs, loss="mean"))
    w0 = np.random.default_rng(1).standard_normal(own.point_shape)
    for scheme in (fg.schemes.Kaczmarz(), fg.schemes.Ridge(0.2)):
        assert_same(*(fg.run(t, NormWeighted(), 40, scheme, w0=w0, record_every=7) for t in (own, joint)))
    for name in ("norms", "radius", "radius_sq_mean"):
        close(getattr(own, name), getattr(joint, name))
    close(own.distances(w0), joint.distances(w0))
    close(own.task_losses(w0), joint.task_losses(w0))
    close(own.task_losses(w0), [own.task_loss(m, w0) for m in range(own.num_tasks)])
    for task in range(own.num_tasks):
        close(own.project(task, w0), joint.project(task, w0))
    assert "geometry" not in own.__dict__
    assert own.w_star.shape == own.point_shape if joint.realizability.holds else not own.realizability.holds


@pytest.mark.parametrize("ordering", [GreedyDistance(), GreedyResidual(repeat=False)], ids=str)
@pytest.mark.parametrize("kind", [single, few], ids=lambda kind: kind.__name__)
def test_orderings_that_look_at_distances_and_losses(kind, ordering):
    own, joint = both(problem(kind))
    k = own.num_tasks
    assert_same(fg.run(own, ordering, k), fg.run(joint, ordering, k))


def test_the_rows_of_a_rank_are_those_of_the_joint_reduction():
    for kind in KINDS:
        own, joint = both(problem(kind))
        assert own.directions.ranks.tolist() == joint.geometry.ranks.tolist()
        close(own.directions.sigma, joint.geometry.sigma)
        given = OwnRows.errors(own.directions, np.zeros(own.dim))
        close(np.abs(given), np.abs(joint.geometry.errors(joint.geometry.start(np.zeros(own.dim)))))


def parallel(rng):
    first, other = rows(rng, 1).toarray(), rng.standard_normal((1, 14))
    return [sp.csr_array(np.concatenate([first, first + 1e-9 * other])), *single(rng)]


@pytest.mark.parametrize("kind", [*KINDS, parallel], ids=lambda kind: kind.__name__)
def test_directions_are_orthonormal_even_of_rows_that_are_nearly_parallel(kind):
    own = both(problem(kind))[0].directions
    basis = np.asarray((own.left @ sp.csr_array(own.rows)).toarray())
    for m in range(own.num_distinct):
        block = basis[own.block(m)]
        np.testing.assert_allclose(block @ block.T, np.eye(len(block)), rtol=0, atol=1e-11)


def test_a_callback_sees_the_iterates_and_cannot_change_them():
    own, joint = both(problem(several, outputs=2))
    seen = {}
    for name, tasks in (("own", own), ("joint", joint)):
        seen[name] = []

        def look(step, w, into=seen[name]):
            into.append(w.copy())
            return step == 9

        run = fg.run(tasks, Cyclic(), 12, record_every=3, callback=look)
        assert run.status == "stopped by the callback after 9 of 12 steps"
    close(np.stack(seen["own"]), np.stack(seen["joint"]))
    with pytest.raises(ValueError, match="read-only"):
        fg.run(own, Cyclic(), 3, callback=lambda step, w: w.fill(0.0))


def test_a_scheme_that_grows_says_so_without_the_joint_row_space():
    own, joint = both(problem(single))
    runs = [fg.run(tasks, Cyclic(), 5, fg.schemes.SGD(2.5)) for tasks in (own, joint)]
    assert fg.schemes.linear.growth(own, runs[0].scheme) == fg.schemes.linear.growth(joint, runs[1].scheme) != []
    assert "geometry" not in own.__dict__
    assert runs[0].status == runs[1].status
    diverged = fg.run(own, Cyclic(), 40_000, fg.schemes.SGD(2.5), record_every=40_000)
    assert not np.isfinite(diverged.losses[-1])


# ----------------------------------------------------------------------------------------------------- large problems


def large(m=4000, d=1000, density=0.01):
    """Sparse rows, a task each, whose joint reduction takes seconds."""
    rng = np.random.default_rng(0)
    A = sp.random_array((m, d), density=density, rng=rng, format="csr")
    return A, A @ rng.standard_normal(d)


def test_a_large_sparse_problem_is_run_without_a_joint_row_space(tmp_path):
    A, b = large()
    tasks = fg.RegressionTasks.from_arrays(A, b, groups=range(len(b)))
    assert tasks.steps_on_own_rows
    run = fg.run(tasks, Cyclic(), 3 * len(b), record_every=len(b))
    w = np.zeros(A.shape[1])
    dense = A.toarray()
    for _ in range(3):
        for x, y in zip(dense, b, strict=True):
            if x.any():
                w -= (x @ w - y) / (x @ x) * x
    close(run.iterates[-1], w)
    close(run.losses[-1], np.mean((A @ w - b) ** 2) / 2)
    close(run.residuals[-1][:5], np.abs(dense[:5] @ w - b[:5]) / np.linalg.norm(dense[:5], axis=1))
    run.save(tmp_path / "run.npz")
    loaded = fg.dynamics.trajectory.Trajectory.load(tmp_path / "run.npz")
    for name in ("iterates", "losses", "forgetting", "loss_matrix"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(run, name))
    again = pickle.loads(pickle.dumps(run))
    np.testing.assert_array_equal(again.losses, run.losses)
    for problem_ in (tasks, loaded.problem, again.problem):
        assert "geometry" not in problem_.__dict__
    assert tasks.norms.shape == (len(b),)
    sets = fg.run(tasks, Cyclic(), 20, fg.schemes.POCS())
    close(sets.iterates, fg.run(tasks, Cyclic(), 20).iterates)
    assert "geometry" not in tasks.__dict__


def test_whether_tasks_step_on_their_rows_depends_on_their_shapes_alone():
    A, b = large()
    tasks = fg.RegressionTasks.from_arrays(A[:1200], b[:1200], groups=range(1200))
    before = fg.run(tasks, Cyclic(), 10)
    assert tasks.rank_joint
    assert "geometry" in tasks.__dict__
    np.testing.assert_array_equal(fg.run(tasks, Cyclic(), 10).states, before.states)
    small = fg.RegressionTasks.from_arrays(A[:200], b[:200], groups=range(200))
    assert not small.steps_on_own_rows
    rng = np.random.default_rng(0)
    wide = [rng.standard_normal((1, 1100)) for _ in range(1000)]
    assert fg.RegressionTasks(wide, np.ones((1000, 1))).steps_on_own_rows
    pairs = [np.concatenate(wide[i : i + 2]) for i in range(0, 1000, 2)]
    assert not fg.RegressionTasks(pairs, np.ones((500, 2))).steps_on_own_rows


def test_expectations_of_a_large_problem_use_the_errors_of_its_runs():
    own, joint = both(problem(several))
    names = ("loss", "forgetting", "error")
    values = [fg.expect(t, Cyclic(), [3, 6], method="monte-carlo", runs=2, quantities=names) for t in (own, joint)]
    for name in names:
        close(values[0].values[name], values[1].values[name])
    runs = [fg.run(tasks, Cyclic(), 6) for tasks in (own, joint)]
    close(runs[0].errors, runs[1].errors)
    ensembles = [fg.run_many(tasks, Reshuffled(), 12, runs=3) for tasks in (own, joint)]
    close(ensembles[0].losses, ensembles[1].losses)
    close(ensembles[0][1].losses, ensembles[0].losses[1])


def test_memory_is_less_than_three_times_that_of_the_matrix():
    A, b = large(density=0.1)
    size = A.data.nbytes + A.indices.nbytes + A.indptr.nbytes
    fg.run(both(problem(single))[0], Cyclic(), 2)  # imports
    tracemalloc.start()
    tasks = fg.RegressionTasks.from_arrays(A, b, groups=range(len(b)))
    fg.run(tasks, Cyclic(), len(b), record_every=len(b))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * size


def test_a_csr_array_with_a_column_that_does_not_exist_is_refused():
    X = sp.csr_array(np.ones((1, 3)))
    tasks = both(fg.RegressionTasks([X], [np.ones(1)]))[0]
    tasks._matrices.stack.indices = np.array([0, 1, 10**6], dtype=np.int32)
    with pytest.raises(InvalidInputError, match="not a valid CSR array"):
        fg.run(tasks, Cyclic(), 1)
