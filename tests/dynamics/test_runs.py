"""Runs and batches of runs: they agree, they thin, they stop, and they take orderings and schemes of a user's own."""

from itertools import count

import numpy as np
import pytest

import forgetting as fg
from forgetting import orderings, schemes
from forgetting.dynamics.ensembles import dual_is_cheaper
from forgetting.orderings import (
    Cyclic,
    Explicit,
    GreedyDistance,
    NormWeighted,
    Ordering,
    Reshuffled,
    TaskView,
    WithoutReplacement,
    WithReplacement,
)

DUAL = fg.families.gaussian(T=10, d=60, rank=1, seed=0)
PRIMAL = fg.families.gaussian(T=40, d=6, rank=3, seed=1)
BASE = fg.families.gaussian(T=4, d=7, rank=2, seed=2)
CLONES = fg.RegressionTasks(*zip(*(BASE.task(m) for m in (0, 1, 0, 2, 3, 0, 1)), strict=True))
UNREALIZABLE = fg.RegressionTasks(
    [np.random.default_rng(m).standard_normal((3, 4)) for m in range(5)],
    [np.random.default_rng(m + 10).standard_normal(3) for m in range(5)],
)
PROBLEMS = {"dual": DUAL, "primal": PRIMAL, "clones": CLONES, "unrealizable": UNREALIZABLE}


def test_both_forms_are_in_the_table():
    assert dual_is_cheaper(DUAL.geometry, 1.0)
    assert not dual_is_cheaper(PRIMAL.geometry, 1.0)


def assert_rows_are_runs(many, tol=1e-11):
    problem, k = many.problem, many.order.shape[1]
    for i in range(len(many)):
        one = fg.run(problem, Explicit(many.order[i]), k, scheme=many.scheme, w0=many.w0, record_every=many.steps)
        size = one.losses.max()
        np.testing.assert_allclose(many.losses[i], one.losses, rtol=0, atol=tol * size)
        np.testing.assert_allclose(many.regret[i], one.regret, rtol=0, atol=tol * one.regret.max())
        np.testing.assert_allclose(many.forgetting[i], one.forgetting, rtol=0, atol=tol * one.regret.max())
        np.testing.assert_allclose(many.iterates[i], one.iterates, rtol=0, atol=1e-12)
        np.testing.assert_allclose(many.loss_matrix[i], one.loss_matrix, rtol=0, atol=tol * one.loss_matrix.max())
        assert many[i].order.tolist() == one.order.tolist()
        assert many[i].steps.tolist() == many.steps.tolist() == one.steps.tolist()


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("scheme", [None, schemes.SGD(0.4), schemes.SGD(0.02, "loss"), schemes.Ridge(2.0)], ids=str)
@pytest.mark.parametrize("every", [1, 4, 100])
def test_every_row_of_a_batch_is_a_run(name, scheme, every):
    problem = PROBLEMS[name]
    w0 = np.random.default_rng(3).standard_normal(problem.dim)
    many = fg.run_many(problem, WithReplacement(), 13, runs=5, scheme=scheme, seed=4, w0=w0, record_every=every)
    assert_rows_are_runs(many)
    assert len({tuple(order) for order in many.order.tolist()}) == 5


@pytest.mark.parametrize("form", [True, False], ids=["dual", "primal"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_both_forms_give_the_same_batch(name, form, monkeypatch):
    monkeypatch.setattr("forgetting.dynamics.ensembles.dual_is_cheaper", lambda geometry, recorded: form)
    assert_rows_are_runs(fg.run_many(PROBLEMS[name], Reshuffled(), 15, runs=3, seed=5))


@pytest.mark.parametrize(
    "ordering",
    [
        WithReplacement(),
        WithReplacement(p=[1, 2, 3, 4, 0, 0, 1, 1, 1, 5]),
        NormWeighted(),
        WithoutReplacement(),
        Cyclic(),
        Reshuffled(),
        Explicit([3, 1, 4, 1, 5, 9, 2, 6]),
        GreedyDistance(),
        GreedyDistance(repeat=False),
    ],
    ids=str,
)
def test_a_batch_depends_on_its_seed_alone(ordering):
    one, two, few, other = (
        fg.run_many(DUAL, ordering, 8, runs=runs, seed=seed, threads=threads)
        for runs, seed, threads in ((9, 6, 1), (9, 6, 3), (4, 6, 2), (9, 7, 1))
    )
    assert np.array_equal(one.order, two.order)
    assert np.array_equal(one.losses, two.losses)
    assert np.array_equal(one.forgetting, two.forgetting)
    assert np.array_equal(one.regret, two.regret)
    assert np.array_equal(few.order, one.order[:4])
    assert np.array_equal(few.losses, one.losses[:4])
    assert np.array_equal(few.forgetting, one.forgetting[:4])
    random = not isinstance(ordering, Cyclic | Explicit | GreedyDistance)
    assert np.array_equal(one.order, other.order) == (not random)
    if isinstance(ordering, WithoutReplacement):
        assert all(len(set(order)) == 8 for order in one.order.tolist())


@pytest.mark.parametrize(
    "scheme", [schemes.GradientDescent(), schemes.GradientDescent(batch_size=1, tol=1e-4), schemes.NLMS(0.5)], ids=str
)
def test_batches_of_other_schemes_are_runs_too(scheme):
    problem = fg.families.gaussian(T=4, d=9, rank=3, seed=7, condition=2)
    many = fg.run_many(problem, WithReplacement(), 6, runs=3, scheme=scheme, seed=8, record_every=2)
    assert many.losses.shape == (3, 4)
    for i in range(3):
        one = many[i]
        assert np.array_equal(one.losses, many.losses[i])
        assert np.array_equal(one.regret, many.regret[i])
        np.testing.assert_array_equal(one.forgetting, many.forgetting[i])
        np.testing.assert_allclose(one.losses, [problem.loss(w) for w in one.iterates], rtol=1e-9, atol=1e-25)
    assert np.array_equal(many[-1].losses, many.losses[2])


def test_kernel_tasks_run_in_batches():
    X = np.random.default_rng(9).standard_normal((12, 15))
    problem = fg.KernelTasks(X @ X.T, X @ np.ones(15), np.arange(12) % 4)
    assert_rows_are_runs(fg.run_many(problem, WithReplacement(), 10, runs=3), tol=1e-9)


def test_draws_follow_the_probabilities():
    p = np.array([0.5, 0.0, 0.2, 0.3])
    view = TaskView(4, norms=np.sqrt(p))
    for ordering in (WithReplacement(p), WithReplacement(p * 7), NormWeighted()):
        for draws in (ordering.first(view, 40_000), ordering.batch(view, 400, 100, np.random.default_rng(0))):
            share = np.bincount(np.ravel(draws), minlength=4) / 40_000
            np.testing.assert_allclose(share, p, atol=0.012)  # five standard deviations
            assert share[1] == 0
    uniform = np.bincount(WithReplacement().first(TaskView(4), 40_000)) / 40_000
    np.testing.assert_allclose(uniform, 0.25, atol=0.012)


def test_rounding_never_draws_a_task_of_probability_zero():
    class Highest:
        """A generator whose numbers are the largest below one."""

        def random(self, size):
            return np.full(size, np.nextafter(1.0, 0.0))

    ordering = WithReplacement(p=[0.1] * 10 + [0.0])
    assert np.cumsum(ordering.p)[-1] < 1  # so that the last of these would fall off the end
    assert next(ordering.visits(TaskView(11), Highest()))[0] == 9


def test_permutations_are_uniform_and_new_every_epoch():
    orders = WithoutReplacement().batch(TaskView(3), 3, 6000, np.random.default_rng(1))
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 6
    np.testing.assert_allclose(counts / 6000, 1 / 6, atol=0.025)
    epochs = Reshuffled().first(TaskView(5), 50, seed=2).reshape(10, 5)
    assert np.array_equal(np.sort(epochs, axis=1), np.tile(np.arange(5), (10, 1)))
    assert len(np.unique(epochs, axis=0)) > 5


# --------------------------------------------------------------------------------------------------------- callbacks


def test_a_callback_sees_the_recorded_steps_and_may_stop_the_run():
    full = fg.run(DUAL, WithReplacement(), 20)
    seen = []
    run = fg.run(DUAL, WithReplacement(), 20, record_every=3, callback=lambda step, w: seen.append((step, w.copy())))
    assert [step for step, _ in seen] == [3, 6, 9, 12, 15, 18, 20]
    for step, w in seen:
        np.testing.assert_allclose(w, full.iterates[step], rtol=0, atol=1e-15)
    assert np.array_equal(run.states, full.states[run.steps])
    assert not run.interrupted


@pytest.mark.parametrize("scheme", [None, schemes.NLMS()], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("ordering", [WithReplacement(), GreedyDistance()], ids=str)
def test_a_callback_that_returns_true_stops_the_run_there(scheme, ordering):
    full = fg.run(DUAL, ordering, 20, scheme=scheme)
    run = fg.run(DUAL, ordering, 20, scheme=scheme, record_every=4, callback=lambda step, w: step >= 8)
    assert run.k == 8
    assert run.steps.tolist() == [0, 4, 8]
    assert run.order.tolist() == full.order[:8].tolist()
    assert np.array_equal(run.states, full.states[[0, 4, 8]])
    np.testing.assert_allclose(run.forgetting[[3, 7]], full.forgetting[[3, 7]], rtol=0, atol=1e-13)
    assert np.array_equal(run.regret, full.regret[:8])
    assert run.status == "stopped by the callback after 8 of 20 steps"
    assert not run.interrupted


# -------------------------------------------------------------------------------------------------------- interruption


def assert_is_the_beginning(cut, full, steps):
    assert cut.interrupted
    assert cut.status.startswith(f"interrupted after {steps} of {full.k} steps")
    assert cut.k == steps
    assert cut.order.tolist() == full.order[:steps].tolist()
    assert cut.inner_steps.shape == cut.before.shape == cut.after.shape == (steps,)
    assert cut.steps.tolist() == [step for step in full.steps.tolist() if step <= steps]
    assert len(cut.iterates) == len(cut.losses) == len(cut.loss_matrix) == len(cut.steps)
    np.testing.assert_allclose(cut.iterates, full.iterates[: len(cut.steps)], rtol=0, atol=1e-14)
    np.testing.assert_allclose(cut.regret, full.regret[:steps], rtol=0, atol=1e-14)
    np.testing.assert_allclose(cut.forgetting, full.forgetting[:steps], rtol=0, atol=1e-13)


def interrupted(*arguments, **options):
    """The part of a run that comes with its Ctrl-C."""
    with pytest.raises(KeyboardInterrupt) as caught:
        fg.run(*arguments, **options)
    return caught.value.trajectory


class InterruptedAt:
    def __init__(self, when):
        self.when = when

    def __call__(self, step, w):
        if step >= self.when:
            raise KeyboardInterrupt


@pytest.mark.parametrize("scheme", [None, schemes.NLMS()], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("every", [1, 5])
def test_ctrl_c_in_a_callback_brings_what_was_computed(scheme, every):
    full = fg.run(DUAL, WithReplacement(), 23, scheme=scheme, record_every=every)
    cut = interrupted(DUAL, WithReplacement(), 23, scheme=scheme, record_every=every, callback=InterruptedAt(10))
    assert_is_the_beginning(cut, full, 10)


class Impatient(Ordering):
    """Cyclic, until Ctrl-C is pressed while it picks the eighth task."""

    adaptive = True

    def visits(self, tasks, rng):
        for t in count():
            if t == 7:
                raise KeyboardInterrupt
            yield t % tasks.num_tasks


class ImpatientChunk(Impatient):
    adaptive = False


@pytest.mark.parametrize("scheme", [None, schemes.NLMS()], ids=["compiled", "interpreted"])
def test_ctrl_c_in_an_ordering_brings_what_was_computed(scheme):
    full = fg.run(DUAL, Cyclic(), 20, scheme=scheme)
    assert_is_the_beginning(interrupted(DUAL, Impatient(), 20, scheme=scheme), full, 7)
    # an ordering that does not look at the iterate is asked for many tasks at once, before any is learned
    assert_is_the_beginning(interrupted(DUAL, ImpatientChunk(), 20, scheme=scheme), full, 0)


@pytest.mark.parametrize(
    "needs_all",
    [
        lambda: fg.expect(DUAL, Impatient(), 20),
        lambda: fg.run_many(DUAL, Impatient(), 20, runs=3),
        lambda: fg.checks.check_ordering(Impatient()),
    ],
    ids=["expect", "run_many", "check_ordering"],
)
def test_ctrl_c_is_raised_where_a_part_of_a_run_is_of_no_use(needs_all):
    with pytest.raises(KeyboardInterrupt):
        needs_all()


class Slow(schemes.Scheme):
    """Halfway to the projection; Ctrl-C is pressed during a given step."""

    def __init__(self, when):
        object.__setattr__(self, "when", when)

    def start(self, problem, w0, rng):
        return {"step": 0}

    def learn(self, problem, task, w, memory):
        memory["step"] += 1
        if memory["step"] == self.when:
            raise KeyboardInterrupt
        return schemes.Learned((w + problem.project(task, w)) / 2)


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("when", [1, 2, 12, 13])
def test_ctrl_c_in_a_step_brings_the_steps_before_it(when, every):
    full = fg.run(DUAL, WithReplacement(), 20, scheme=Slow(0), record_every=every)
    cut = interrupted(DUAL, WithReplacement(), 20, scheme=Slow(when), record_every=every)
    assert_is_the_beginning(cut, full, when - 1)


# ------------------------------------------------------------------------------------------------------- long runs


def test_a_million_steps_fit_when_the_record_is_thinned():
    tasks = fg.families.rank_one(T=100, d=50, seed=0)
    run = fg.run(tasks, WithReplacement(), 10**6, record_every=10**4)
    assert run.steps.tolist() == list(range(0, 10**6 + 1, 10**4))
    assert run.states.shape == (101, 50)
    assert run.states.base is None or run.states.base.nbytes < 10**6
    assert run.losses[-1] < 1e-20
    assert np.isfinite(run.forgetting).sum() == 100
    assert run.order.shape == run.regret.shape == (10**6,)
    # sum of the losses met on the way is at most |w*|^2 / 2 (each step takes its loss off the squared error)
    assert run.regret[-1] * 10**6 <= 0.5 * np.linalg.norm(tasks.w_star) ** 2 * (1 + 1e-9)


def test_a_run_longer_than_a_chunk_is_one_run():
    tasks = fg.families.rank_one(T=30, d=20, seed=1)
    k = 20_000
    run = fg.run(tasks, Cyclic(), k, record_every=7777)
    assert run.steps.tolist() == [0, 7777, 15554, 20000]
    w = np.zeros(20)
    rows = [(tasks.task(m)[0][0], tasks.task(m)[1][0]) for m in range(30)]
    for t in range(7777):
        x, y = rows[t % 30]
        w += (y - x @ w) / (x @ x) * x
    np.testing.assert_allclose(run.iterates[1], w, rtol=0, atol=1e-12)


def test_the_recorded_steps_may_be_listed():
    full = fg.run(PRIMAL, WithReplacement(), 30)
    for chosen in ([7, 3, 3, 29], np.array([0, 30]), []):
        thin = fg.run(PRIMAL, WithReplacement(), 30, record_every=chosen)
        assert thin.steps.tolist() == sorted({0, 30, *(int(step) for step in chosen)})
        assert np.array_equal(thin.iterates, full.iterates[thin.steps])
    with pytest.raises(fg.errors.InvalidInputError, match=r"record_every\[1\] is 31, but must be between 0 and 30"):
        fg.run(PRIMAL, WithReplacement(), 30, record_every=[2, 31])


# ---------------------------------------------------------------------------------------------------- a user's own


def test_an_ordering_of_ones_own_is_a_generator():
    class Spiral(Ordering):
        def visits(self, tasks, rng):
            T = tasks.num_tasks
            while True:
                for m in range((T + 1) // 2):
                    yield m
                    if m != T - 1 - m:
                        yield T - 1 - m

    run = fg.run(fg.families.gaussian(5, 8, 1), Spiral(), 7)
    assert run.order.tolist() == [0, 4, 1, 3, 2, 0, 4]
    many = fg.run_many(fg.families.gaussian(5, 8, 1), Spiral(), 7, runs=2)
    assert many.order.tolist() == [run.order.tolist()] * 2
    np.testing.assert_allclose(many.losses[0], run.losses, atol=1e-14)


def test_visits_may_come_singly_and_in_arrays_and_are_the_same_however_they_are_taken():
    class Mixed(Ordering):
        def visits(self, tasks, rng):
            while True:
                yield 3
                yield rng.integers(tasks.num_tasks, size=5, dtype=np.int32)
                yield np.empty(0, dtype=int)
                yield from (np.int64(1), True)

    whole = Mixed().first(TaskView(10), 50, seed=4).tolist()
    visits = orderings.Visits(Mixed(), TaskView(10), np.random.default_rng(4))
    assert [task for size in (1, 0, 2, 7, 40) for task in visits.take(size).tolist()] == whole
    assert whole[0] == whole[8] == 3
    assert whole[6:8] == [1, 1]
    assert (
        fg.run(DUAL, Mixed(), 50, callback=lambda step, w: None).order.tolist()
        == fg.run(DUAL, Mixed(), 50).order.tolist()
    )


def test_an_adaptive_ordering_of_ones_own_sees_losses_and_distances_at_the_iterate():
    seen = []

    class Easiest(Ordering):
        adaptive = True

        def visits(self, tasks, rng):
            while True:
                losses = tasks.losses()
                seen.append((losses, tasks.distances()))
                unsolved = np.where(losses > 1e-12, losses, np.inf)
                yield int(np.argmin(unsolved))

    tasks = fg.families.gaussian(4, 9, 2, seed=3)
    run = fg.run(tasks, Easiest(), 6)
    for t, (losses, distances) in enumerate(seen):
        np.testing.assert_allclose(losses, tasks.task_losses(run.iterates[t]), rtol=1e-9, atol=1e-14)
        np.testing.assert_allclose(distances, tasks.distances(run.iterates[t]), rtol=1e-9, atol=1e-9)


def test_an_ordering_that_looks_without_saying_so_is_told():
    class Peeking(Ordering):
        def visits(self, tasks, rng):
            yield int(np.argmax(tasks.losses()))

    with pytest.raises(fg.errors.OrderingError, match=r"set `adaptive = True`"):
        fg.run(DUAL, Peeking(), 1)


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([0, 1], r"ran out after 2 tasks; use k <= 2"),
        ([0], r"ran out after 1 task; use k <= 1"),
        ([99], r"named task 99 at step 1, but tasks are 0 to"),
        ([0, 99, 1], r"named task 99 at step 2"),
        ([-1] * 3, "task -1"),
        ([0, 1.5, 1], r"yields task numbers or arrays of them, not \[0, 1.5, 1\]"),
        ([np.array([0, 1]), np.array([[0]])], r"not array\(\[\[0\]\]\)"),
        ([np.array([0, 1]), 99], r"named task 99 at step 3"),
    ],
)
def test_an_ordering_that_misbehaves_is_named(tasks, message):
    class Odd(Ordering):
        def visits(self, view, rng):
            yield from tasks

    with pytest.raises(fg.errors.OrderingError, match=message):
        fg.run(DUAL, Odd(), 3)
    with pytest.raises(fg.errors.ForgettingError):
        Odd().first(TaskView(10), 3)


def test_a_scheme_of_ones_own_is_one_method():
    class Overshoot(schemes.Scheme):
        def learn(self, problem, task, w, memory):
            return schemes.Learned(w + 1.5 * (problem.project(task, w) - w), inner_steps=2)

    w0 = np.random.default_rng(4).standard_normal(PRIMAL.dim)
    mine = fg.run(PRIMAL, WithReplacement(), 15, scheme=Overshoot(), w0=w0)
    same = fg.run(PRIMAL, WithReplacement(), 15, scheme=schemes.SGD(1.5), w0=w0)
    np.testing.assert_allclose(mine.iterates, same.iterates, rtol=0, atol=1e-12)
    np.testing.assert_allclose(mine.forgetting, same.forgetting, rtol=0, atol=1e-11)
    np.testing.assert_allclose(mine.residuals, same.residuals, rtol=0, atol=1e-11)
    assert mine.inner_steps.tolist() == [2] * 15


def test_a_scheme_with_a_memory_keeps_it_for_one_run_only():
    class Averaging(schemes.Scheme):
        """Returns the mean of all projections so far."""

        def start(self, problem, w0, rng):
            return []

        def learn(self, problem, task, w, memory):
            memory.append(problem.project(task, w))
            return schemes.Learned(np.mean(memory, axis=0))

    scheme = Averaging()
    first, second = (fg.run(PRIMAL, Cyclic(), 6, scheme=scheme) for _ in range(2))
    assert np.array_equal(first.iterates, second.iterates)


def test_a_linear_scheme_of_ones_own_is_a_gain_per_singular_direction():
    class Saturating(schemes.LinearScheme):
        def gains(self, sigma):
            return sigma / (1 + sigma)

    class Broken(schemes.LinearScheme):
        def gains(self, sigma):
            return np.nan * sigma

    many = fg.run_many(PRIMAL, WithReplacement(), 9, runs=3, scheme=Saturating())
    assert_rows_are_runs(many)
    X, y = PRIMAL.task(0)
    u, s, v = np.linalg.svd(X, full_matrices=False)
    np.testing.assert_allclose(
        fg.run(PRIMAL, Explicit([0]), 1, scheme=Saturating()).iterates[1],
        v.T @ ((u.T @ y) / (1 + s)),
        rtol=0,
        atol=1e-12,
    )
    with pytest.raises(fg.errors.InvalidInputError, match="gains must be finite"):
        fg.run(PRIMAL, Cyclic(), 1, scheme=Broken())


def test_the_compiled_and_the_interpreted_loop_agree():
    class Interpreted(schemes.Scheme):
        intrinsic = True

        def __init__(self, inner):
            object.__setattr__(self, "inner", inner)

        def learn(self, problem, task, w, memory):
            return self.inner.learn(problem, task, w, memory)

    for problem in PROBLEMS.values():
        for scheme in (schemes.Kaczmarz(), schemes.SGD(0.3), schemes.Ridge(0.5), schemes.FiniteSteps(3, 0.01)):
            fast, slow = (fg.run(problem, WithReplacement(), 10, scheme=s) for s in (scheme, Interpreted(scheme)))
            np.testing.assert_allclose(fast.iterates, slow.iterates, rtol=0, atol=1e-12)
            np.testing.assert_allclose(fast.regret, slow.regret, rtol=1e-11)
            np.testing.assert_allclose(fast.forgetting, slow.forgetting, rtol=0, atol=1e-11 * fast.regret.max())


def test_orderings_are_values():
    assert WithReplacement() == WithReplacement()
    assert WithReplacement(p=[1, 1]) == WithReplacement(p=[2, 2])
    assert hash(Explicit([0, 1])) == hash(Explicit(np.array([0, 1])))
    assert {orderings.Cyclic(), orderings.Cyclic()} == {orderings.Cyclic()}
    assert GreedyDistance(repeat=False) != GreedyDistance()


def test_runs_of_neighbouring_seeds_are_unrelated():
    tasks = fg.families.gaussian(T=5, d=8, rank=1, seed=0)
    scheme = fg.schemes.NLMS()
    a = fg.run_many(tasks, fg.orderings.WithReplacement(), 10, runs=3, scheme=scheme, seed=0)
    b = fg.run_many(tasks, fg.orderings.WithReplacement(), 10, runs=3, scheme=scheme, seed=1)
    assert not any(np.array_equal(x, y) for x in a.order for y in b.order)
    np.testing.assert_array_equal(a[2].losses, a.losses[2])
    assert a.status == "completed 3 runs of 10 steps"


def test_long_adaptive_runs_are_joined_as_they_go(monkeypatch):
    from forgetting.dynamics import loop

    tasks = fg.families.gaussian(T=5, d=8, rank=1, seed=0)
    plain = fg.run(tasks, fg.orderings.GreedyDistance(), 40, record_every=3)
    monkeypatch.setattr(loop, "CHUNK", 7)
    joined = fg.run(tasks, fg.orderings.GreedyDistance(), 40, record_every=3)
    np.testing.assert_array_equal(plain.order, joined.order)
    np.testing.assert_array_equal(plain.states, joined.states)
    np.testing.assert_array_equal(plain.forgetting, joined.forgetting)


def test_an_ensemble_has_the_names_of_a_trajectory_and_forgets_nothing_in_one_step():
    tasks = fg.families.separable(T=3, d=3, n=2, margin=0.3, seed=5)
    many = fg.run_many(tasks, WithReplacement(), 4, runs=2)
    assert np.array_equal(many.residuals[1], many[1].residuals)
    kernel = fg.KernelTasks(np.array([[2.0, 1.0], [1.0, 2.0]]), [1.0, 2.0], [0, 1])
    several = fg.run_many(kernel, WithReplacement(), 3, runs=2)
    assert np.array_equal(several.predictions[0], several[0].predictions)
    assert np.all(fg.run_many(DUAL, WithReplacement(), 3, runs=4).forgetting[:, 0] == 0)
    assert fg.run(DUAL, WithReplacement(), 3).forgetting[0] == 0


@pytest.mark.parametrize("problem", [DUAL, fg.ConvexSets([fg.Ball([0.0, 0.0], 1.0)])], ids=["tasks", "sets"])
def test_a_task_that_does_not_exist_is_named(problem):
    for call in (problem.project, problem.task_loss):
        with pytest.raises(fg.errors.InvalidInputError, match="there is no task 99"):
            call(99, np.zeros(problem.dim))


# ---------------------------------------------------------------------------------------------------------- divergence


@pytest.mark.parametrize("step_size", [0.5, 1.0, 2.0, 2.5])
def test_a_scheme_whose_steps_lengthen_errors_says_so_everywhere(step_size):
    tasks, scheme = fg.families.gaussian(T=5, d=8, rank=2, seed=0), schemes.SGD(step_size=step_size)
    words = [
        fg.run(tasks, WithReplacement(), 20, scheme=scheme).status,
        fg.run_many(tasks, WithReplacement(), 20, runs=5, scheme=scheme).status,
        *(
            " ".join(fg.expect(tasks, WithReplacement(), 20, scheme=scheme, method=method, runs=5).notes)
            for method in ("moments", "monte-carlo")
        ),
    ]
    assert [("diverges" in one, "by -1.5" in one) for one in words] == [(step_size > 2, step_size > 2)] * 4
    once = " ".join(fg.expect(tasks, Cyclic(), 20, scheme=scheme).notes)
    assert once.count("diverges") == (step_size > 2)  # the run says it, and nobody repeats it
