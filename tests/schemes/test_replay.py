"""Replay: what is kept, what is learned together with it, and what is refused."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.schemes import SGD, FiniteSteps, Kaczmarz, Replay, Ridge

ORDER = [2, 0, 2, 3, 1, 0]


def tasks_of(outputs=None, loss="sum", noise=1.0, dim=4, sparse=False, seed=0):
    rng = np.random.default_rng(seed)
    Xs = [rng.standard_normal((n, dim)) * (rng.random((n, dim)) < 0.8) for n in (1, 3, 2, 2)]
    shape = () if outputs is None else (outputs,)
    w = rng.standard_normal((dim, *shape))
    ys = [X @ w + noise * rng.standard_normal((len(X), *shape)) for X in Xs]
    if sparse:
        from scipy.sparse import csr_array

        Xs = [csr_array(X) for X in Xs]
    return fg.RegressionTasks(Xs, ys, loss=loss)


def solved(scheme, A, b, w):
    """One step on the rows A, dense."""
    missed = b - A @ w
    if isinstance(scheme, Kaczmarz):
        return w + np.linalg.pinv(A, rcond=1e-10) @ missed
    if isinstance(scheme, Ridge):
        return w + np.linalg.solve(A.T @ A + scheme.lam * np.eye(A.shape[1]), A.T @ missed)
    for _ in range(getattr(scheme, "n", 1)):
        w = w + scheme.step_size * A.T @ (b - A @ w)
    return w


def dense(tasks):
    found = [tasks.equations(m) for m in range(tasks.num_tasks)]
    return [(X.toarray() if hasattr(X, "toarray") else np.asarray(X), y) for X, y in found]


def by_hand(tasks, scheme, order, w0):
    """The run, with what is kept written out."""
    data, points, kept = dense(tasks), [w0], []
    for task in order:
        rows = [(task, row) for row in range(len(data[task][1]))]
        joined = rows + [place for place in kept if place[0] != task]
        A, b = (np.array([data[m][part][i] for m, i in joined]) for part in (0, 1))
        points.append(solved(scheme.scheme, A, b, points[-1]))
        others = [place for place in kept if place[0] != task]
        if scheme.policy == "hard":
            loss = {p: np.linalg.norm(data[p[0]][0][p[1]] @ points[-1] - data[p[0]][1][p[1]]) for p in rows}
            known = {**getattr(by_hand, "losses", {}), **loss} if others else loss
            by_hand.losses = known
            pool = others + rows if scheme.per == "all" else rows
            best = sorted(pool, key=lambda p: (-known[p], p))[: scheme.memory]
            kept = best if scheme.per == "all" else others + best
        elif scheme.per == "task":
            kept = others + (rows[: scheme.memory] if scheme.policy == "first" else rows[-scheme.memory :])
        elif scheme.policy == "ring":
            kept = (others + rows)[-scheme.memory :]
        elif len(others) == len(kept):
            kept = (kept + rows)[: scheme.memory]
    return np.array(points)


@pytest.mark.parametrize(
    "scheme",
    [
        Replay(),
        Replay(Ridge(0.3), 1, "ring"),
        Replay(SGD(0.02, "loss"), 3, "first", "all"),
        Replay(FiniteSteps(3, 0.02), 3, "ring", "all"),
        Replay("ridge lam=0.5", 1, "hard"),
        Replay(Ridge(0.5), 3, "hard", "all"),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("outputs", "loss", "sparse"), [(None, "sum", False), (2, "mean", False), (None, "mean", True)]
)
def test_a_step_learns_the_task_and_what_is_kept_as_one_task(scheme, outputs, loss, sparse):
    tasks = tasks_of(outputs, loss, sparse=sparse)
    w0 = np.random.default_rng(1).standard_normal(tasks.point_shape)
    run = fg.run(tasks, ORDER, len(ORDER), scheme, w0=w0)
    by_hand.losses = {}
    np.testing.assert_allclose(run.iterates, by_hand(tasks, scheme, ORDER, w0), rtol=1e-8, atol=1e-9)


def test_with_all_rows_kept_the_task_is_the_sum_of_the_losses_of_the_tasks_seen():
    tasks = tasks_of(loss="mean")
    run = fg.run(tasks, [0, 1, 2, 3], 4, Replay(memory=8, per="all"))
    A, b = (np.concatenate([pair[part] for pair in dense(tasks)]) for part in (0, 1))
    np.testing.assert_allclose(run.iterates[-1], np.linalg.lstsq(A, b, rcond=None)[0], rtol=1e-9)


def test_no_row_kept_is_the_scheme_itself():
    tasks, none = tasks_of(), Replay(Ridge(0.3), 0)
    assert none.linear_on(tasks) == Ridge(0.3)
    assert not none.remembers
    np.testing.assert_array_equal(fg.run(tasks, ORDER, 6, none).iterates, fg.run(tasks, ORDER, 6, Ridge(0.3)).iterates)
    assert fg.expect(tasks, "with-replacement", 9, none).method == "moments"


def test_the_rows_of_a_task_are_not_joined_to_the_task_itself():
    tasks = tasks_of()
    one, two = (fg.run(tasks, [1, 1, 1], 3, scheme).iterates for scheme in (Replay(Ridge(1.0), 1), Ridge(1.0)))
    np.testing.assert_allclose(one, two, atol=1e-12)


@pytest.mark.parametrize("per", ["task", "all"])
def test_a_reservoir_has_every_row_seen_with_the_same_chance(per):
    from forgetting.schemes.replay import _Memory

    sizes, counts, memory = (2, 3, 4), Counter(), 2
    draws = 6000
    for seed in range(draws):
        sample = _Memory(np.random.default_rng(seed))
        for task in (0, 1, 0, 2):
            sample.sample(task, sizes[task], memory, whole=per == "all")
        assert len(sample.kept) == len(set(sample.kept)) == (6 if per == "task" else 2)
        counts.update(sample.kept)
    for task, size in enumerate(sizes):
        chance = memory / size if per == "task" else memory / sum(sizes)
        for row in range(size):
            assert abs(counts[task, row] / draws - chance) < 6 * np.sqrt(chance * (1 - chance) / draws) + 1e-12


def test_reservoirs_follow_the_seed_and_are_shared_by_outputs():
    tasks = tasks_of(outputs=2)
    scheme = Replay(Ridge(0.5), 1, "reservoir")
    first, again, other = (fg.run(tasks, ORDER, 6, scheme, seed=seed).iterates for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    for output in range(2):
        alone = fg.run(tasks.output(output), ORDER, 6, scheme, seed=1).iterates
        np.testing.assert_allclose(alone, first[..., output], rtol=1e-10)


def test_what_is_hard_of_a_solved_task_is_not_decided_by_rounding():
    tasks = tasks_of(noise=0.0, dim=9)
    hard, first = (fg.run(tasks, ORDER, 6, Replay(memory=1, policy=policy)).iterates for policy in ("hard", "first"))
    np.testing.assert_array_equal(hard, first)


def test_runs_from_a_kernel_are_those_from_the_rows():
    tasks = tasks_of(dim=9)
    X, y = (np.concatenate([pair[part] for pair in dense(tasks)]) for part in (0, 1))
    kernel = fg.KernelTasks(X @ X.T, y, np.repeat(np.arange(4), tasks.num_rows))
    rows, dual = (fg.run(problem, ORDER, 6, Replay(Ridge(0.3))).iterates for problem in (tasks, kernel))
    np.testing.assert_allclose(dual @ X, rows, atol=1e-7)


def test_many_runs_are_single_runs_and_results_load_again(tmp_path):
    scheme = Replay(Ridge(0.2), 2, "reservoir", "all")
    many = fg.run_many(tasks_of(), "without-replacement", 4, runs=3, scheme=scheme, seed=5)
    np.testing.assert_allclose(many.losses[2], many[2].losses)
    many.save(tmp_path / "many.npz")
    again = type(many).load(tmp_path / "many.npz")
    assert again.scheme == scheme
    np.testing.assert_array_equal(again.losses, many.losses)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"memory": 2},
            r"memory=2 rows a task are to be kept, but task 0 has 1 row; keep at most 1, or give per='all'",
        ),
        ({"memory": 9, "per": "all"}, r"memory=9 rows in all .* the 4 tasks together have 8 rows; keep at most 8"),
        ({"memory": -1}, r"Replay: memory must be at least 0, got -1"),
        ({"memory": 1.5}, r"Replay: memory must be a whole number, got 1.5"),
        ({"policy": "random"}, r"Replay: policy must be one of first, ring, reservoir, hard, got 'random'"),
        ({"per": "class"}, r"Replay: per must be 'task' or 'all', got 'class'"),
        ({"scheme": "pocs"}, r"Replay: scheme must be linear, such as Kaczmarz\(\) .* got POCS"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        fg.run(tasks_of(), "cyclic", 3, Replay(**arguments))
    with pytest.raises(InvalidInputError, match=message):
        fg.expect(tasks_of(), "cyclic", 3, Replay(**arguments))


def test_tasks_without_rows_are_refused():
    with pytest.raises(NotSupportedError, match=r"Replay.* is a scheme for regression tasks, not for ConvexSets"):
        fg.run(fg.ConvexSets([fg.Ball([0.0], 1.0)]), "cyclic", 1, "replay")


def test_a_scheme_that_remembers_says_why_it_is_simulated():
    tasks = fg.families.gaussian(T=6, d=9, rank=2, seed=0)
    for policy, words in (("reservoir", "is drawn at random"), ("hard", "depends on w")):
        found = fg.expect(tasks, "with-replacement", 6, Replay(policy=policy), runs=64, patience=1)
        assert found.method == "monte-carlo"
        assert any(note.startswith("simulated: ") and words in note for note in found.notes)
    assert fg.expect(tasks, "cyclic", 6, Replay(policy="hard")).method == "deterministic"
    few = fg.families.gaussian(T=3, d=9, rank=2, seed=0)
    listed = fg.expect(few, "without-replacement", 3, Replay(policy="hard"))
    runs = [fg.run(few, order, 3, Replay(policy="hard")).losses[-1] for order in permutations(range(3))]
    assert listed.method == "listing"
    assert float(listed.loss) == pytest.approx(np.mean(runs), rel=1e-9)


def test_a_named_strength_is_that_of_the_tasks_and_one_that_changes_is_refused():
    tasks = tasks_of()
    fixed = Replay(Ridge("fixed").fitted_to(tasks, 3))
    assert float(fg.expect(tasks, "cyclic", 3, "replay 'scheme=ridge lam=fixed'").loss) == pytest.approx(
        float(fg.expect(tasks, "cyclic", 3, fixed).loss), rel=1e-12
    )
    with pytest.raises(InvalidInputError, match=r"same way at every step; got Scheduled\(increasing\)"):
        fg.run(tasks, "cyclic", 3, Replay(Ridge("increasing")))
    with pytest.raises(InvalidInputError, match=r"no parameter 'lam'; .* take quotes: 'scheme=ridge lam=...'"):
        fg.run(tasks, "cyclic", 3, "replay scheme=ridge lam=1")
