"""Users' classes: what they return is checked where it enters compiled code, and what they are handed is read-only."""

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pytest
import scipy.sparse as sp

import forgetting as fg
from forgetting.errors import InvalidInputError, OrderingError
from forgetting.orderings import Cyclic, Ordering, TaskView, WithReplacement
from forgetting.schemes import Learned, LinearScheme, Scheme

TASKS = fg.families.gaussian(T=4, d=9, rank=2, seed=0)
CLASSES = fg.families.separable(T=3, d=3, n=4, margin=0.5)
SETS = fg.ConvexSets([fg.Ball([0.0, 0.0], 1.0), fg.Halfspace([1.0, 0.0], 0.5)])

# ----------------------------------------------------------------------------------------------------------- orderings


@dataclass(frozen=True)
class Batch(Ordering):
    """Visits that are fine, and a batch that is whatever it is told to be."""

    change: object = None

    def visits(self, tasks, rng):
        while True:
            yield 0

    def batch(self, tasks, k, runs, rng):
        return self.change(np.zeros((runs, k), dtype=np.int64))


def with_task(value, run=1, step=2):
    def change(orders):
        orders[run, step] = value
        return orders

    return change


BATCHES = [
    (with_task(10**8), r"named task 100000000 in run 1, step 3, but tasks are 0 to 3"),
    (with_task(4), r"named task 4 in run 1, step 3"),
    (with_task(-5), r"named task -5 in run 1, step 3"),
    (with_task(-1, 0, 0), r"named task -1 in run 0, step 1"),
    (lambda orders: orders.astype(float), r"batch must give whole numbers in shape \(\d+, 5\), got float64"),
    (lambda orders: orders.astype(bool), r"got bool"),
    (lambda orders: orders.astype(object), r"got object"),
    (lambda orders: orders[:, :-1], r"in shape \(\d+, 5\), got int64 in \(\d+, 4\)"),
    (lambda orders: orders[:-1], r"batch must give whole numbers"),
    (lambda orders: orders.ravel(), r"batch must give whole numbers"),
    (lambda orders: None, r"batch must give whole numbers"),
    (lambda orders: orders.astype(np.uint64) + np.uint64(2**63), r"named task 9223372036854775808 in run 0, step 1"),
]


@pytest.mark.parametrize(("change", "match"), BATCHES, ids=range(len(BATCHES)))
def test_a_batch_of_orders_is_checked_before_it_is_run(change, match):
    with pytest.raises(OrderingError, match=match):
        fg.run_many(TASKS, Batch(change), k=5, runs=3)
    with pytest.raises(OrderingError, match=match):
        fg.expect(TASKS, Batch(change), k=5, method="monte-carlo", runs=8)


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int64])
def test_whole_numbers_of_any_size_are_a_batch(kind):
    given = fg.run_many(TASKS, Batch(lambda orders: orders.astype(kind)), k=5, runs=3)
    assert np.array_equal(given.losses, fg.run_many(TASKS, Batch(lambda orders: orders), k=5, runs=3).losses)


def test_visits_that_bring_nothing_end():
    class Empty(Ordering):
        def visits(self, tasks, rng):
            while True:
                yield np.zeros(0, dtype=np.int64)

    with pytest.raises(OrderingError, match="1000 empty arrays in a row"):
        fg.run(TASKS, Empty(), k=1)


@pytest.mark.parametrize("item", [np.array(0), np.zeros((1, 1), dtype=int), np.zeros(2), np.array(["a"])], ids=str)
def test_visits_that_are_no_task_numbers_are_refused(item):
    class Odd(Ordering):
        def visits(self, tasks, rng):
            yield item

    with pytest.raises(OrderingError, match="yields task numbers or arrays of them"):
        fg.run(TASKS, Odd(), k=1)


@dataclass(frozen=True)
class Weighted(WithReplacement):
    """Probabilities that are whatever they are told to be."""

    change: object = None

    def probabilities(self, tasks):
        return self.change(np.full(tasks.num_tasks, 1 / tasks.num_tasks))


ODD_PROBABILITIES = [
    (lambda p: p * 2, "sum to 1, but the least is 0.5 and their sum 2"),
    (lambda p: p - [0.5, -0.5, 0, 0], "at least 0"),
    (lambda p: p * np.nan, "is nan"),
    (lambda p: p[:-1], r"shape \(3,\) for 4 tasks"),
    (lambda p: p[:, None], r"shape \(4, 1\) for 4 tasks"),
    (lambda p: p.astype(str), "expected real numbers"),
]


@pytest.mark.parametrize(("change", "match"), ODD_PROBABILITIES, ids=range(len(ODD_PROBABILITIES)))
@pytest.mark.parametrize(
    "use",
    [
        lambda ordering: fg.run(TASKS, ordering, k=2),
        lambda ordering: fg.run_many(TASKS, ordering, k=2, runs=2),
        lambda ordering: fg.expect(TASKS, ordering, k=2),
        lambda ordering: fg.expect(TASKS, ordering, k=2, method="monte-carlo", runs=8),
    ],
    ids=["run", "run_many", "expect", "monte-carlo"],
)
def test_probabilities_are_checked_wherever_they_are_used(change, match, use):
    with pytest.raises(InvalidInputError, match=match):
        use(Weighted(change=change))


# ------------------------------------------------------------------------------------------------------------- schemes


@dataclass(frozen=True)
class Returns(Scheme):
    """A scheme whose steps are whatever they are told to be."""

    change: object = None
    at: int = 2

    def start(self, problem, w0, rng):
        return [0]

    def learn(self, problem, task, w, memory):
        memory[0] += 1
        return self.change(w) if memory[0] == self.at else Learned(w + 0.0)


STEPS = [
    (lambda w: Learned(w[:-1]), r"step 2 \(task 1\): learn gave float64 of shape \(8,\), expected .* shape \(9,\)"),
    (lambda w: Learned(w[None]), r"shape \(1, 9\)"),
    (lambda w: Learned(np.append(w, 1.0)), r"shape \(10,\)"),
    (lambda w: Learned(w.astype(str)), r"learn gave <U"),
    (lambda w: Learned(w * 1j), r"learn gave complex128"),
    (lambda w: Learned(None), r"learn gave object"),
    (lambda w: Learned(np.where(np.arange(9) == 3, np.nan, w)), r"learn gave w\[3\] = nan"),
    (lambda w: Learned(np.where(np.arange(9) == 4, np.inf, w)), r"learn gave w\[4\] = inf"),
    (lambda w: w[:5], r"learn must return fg\.schemes\.Learned\(w\), got ndarray"),
    (lambda w: (w, 1, None, None, None), r"learn must return .*, got tuple"),
    (lambda w: None, r"learn must return .*, got NoneType"),
]


@pytest.mark.parametrize(("change", "match"), STEPS, ids=range(len(STEPS)))
def test_a_step_of_a_scheme_is_checked(change, match):
    with pytest.raises(InvalidInputError, match=match):
        fg.run(TASKS, Cyclic(), k=4, scheme=Returns(change))


def test_a_scheme_that_grows_until_it_overflows_diverges_and_the_status_says_so():
    class Grows(Scheme):
        intrinsic = True

        def learn(self, problem, task, w, memory):
            return Learned((w + 1.0) * 1e60)

    with np.errstate(all="ignore"):
        run = fg.run(TASKS, Cyclic(), k=12, scheme=Grows())
        assert "diverged to values that are not finite" in run.status


def test_a_scheme_may_use_its_own_room_again():
    class Reuses(Scheme):
        def start(self, problem, w0, rng):
            return np.empty_like(w0)

        def learn(self, problem, task, w, memory):
            memory[:] = (w + problem.project(task, w)) / 2
            return Learned(memory)

    class Plain(Scheme):
        def learn(self, problem, task, w, memory):
            return Learned((w + problem.project(task, w)) / 2)

    mine, other = (fg.run(TASKS, Cyclic(), k=8, scheme=one()) for one in (Reuses, Plain))
    assert np.array_equal(mine.before, other.before)
    assert np.array_equal(mine.iterates, other.iterates)


@dataclass(frozen=True)
class Gains(LinearScheme):
    """Gains that are whatever they are told to be."""

    change: object = None
    precise: object = None

    def gains(self, sigma):
        return self.change(sigma)

    def precise_gain(self, square):
        return self.precise


ODD_GAINS = [
    (lambda sigma: np.ones(len(sigma) + 1), "one per singular value"),
    (lambda sigma: np.ones((1, len(sigma))), "one per singular value"),
    (lambda sigma: sigma * np.nan, "gains must be finite"),
    (lambda sigma: np.ones(len(sigma)) * 1j, "complex128"),
    (lambda sigma: 0.5, r"of shape \(\)"),
    (lambda sigma: None, "object"),
]


@pytest.mark.parametrize(("change", "match"), ODD_GAINS, ids=range(len(ODD_GAINS)))
def test_gains_are_checked_before_compiled_code_sees_them(change, match):
    for use in (fg.run, fg.run_many, fg.expect):
        with pytest.raises(InvalidInputError, match=match):
            use(TASKS, WithReplacement(), 3, scheme=Gains(change))


@pytest.mark.parametrize("gain", [Decimal("nan"), Decimal("inf"), 0.5], ids=str)
def test_precise_gains_are_checked(gain):
    with pytest.raises(InvalidInputError, match="precise_gain must give a finite Decimal or None"):
        fg.expect(TASKS, WithReplacement(), 3, scheme=Gains(np.ones_like, gain))


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, "1"], ids=str)
def test_the_scale_of_iterates_is_checked(value):
    class Scaled(Scheme):
        scale_of_iterates = value

        def learn(self, problem, task, w, memory):
            return Learned(w)

    with pytest.raises(InvalidInputError, match="scale_of_iterates must be"):
        fg.run(TASKS, Cyclic(), k=1, scheme=Scaled())


POINTS = [
    (lambda w: w[:-1], "returned shape"),
    (lambda w: np.full_like(w, np.nan), "returned nan"),
    (lambda w: w.astype(str), "expected real numbers"),
    (lambda w: w * 1j, "complex128, expected real numbers"),
    (lambda w: None, "expected real numbers"),
]


@pytest.mark.parametrize(("project", "match"), POINTS, ids=range(len(POINTS)))
def test_projections_of_a_custom_set_are_checked(project, match):
    sets = fg.ConvexSets([fg.CustomSet(project, dim=2), fg.Ball([0.0, 0.0], 1.0)])
    with pytest.raises(InvalidInputError, match=match):
        fg.run(sets, Cyclic(), k=2, w0=[3.0, 4.0])


# ------------------------------------------------------------------------------------------ what is handed to users


def arrays_of(one):
    """All arrays that can be reached by the public names of an object."""
    for name in (name for name in dir(one) if not name.startswith("_")):
        value = getattr(one, name)
        for part in value if isinstance(value, tuple | list) else [value]:
            if isinstance(part, np.ndarray):
                yield name, part


PROBLEMS = {
    "data": TASKS,
    "sparse": fg.RegressionTasks([sp.csr_array([[1.0, 0.0, 2.0]]), sp.csr_array([[0.0, 1.0, 1.0]])], [[1.0], [2.0]]),
    "nearly dependent": fg.RegressionTasks([[[1.0, 0.0], [1.0, 1e-7]]], [[1.0, 1.0]]),
    "kernel": fg.KernelTasks([[2.0, 1.0], [1.0, 2.0]], [1.0, 0.0], groups=[0, 1]),
    "affine": fg.ConvexSets.from_affine(fg.families.two_lines(0.5)),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_array_of_a_geometry_is_read_only(name):
    geometry = PROBLEMS[name].geometry
    for one in (geometry, geometry.frame):
        assert [name for name, value in arrays_of(one) if value.flags.writeable] == []
    assert not geometry.equations(0)[0].flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        geometry.sigma[0] = 5.0


def test_the_data_of_tasks_are_read_only_and_those_of_the_caller_are_not():
    X, y = np.eye(3), np.ones(3)
    S = sp.csr_array(np.eye(3))
    for copy in (True, False):
        tasks = fg.RegressionTasks([X, S], [y, y], copy=copy)
        for matrix, label in (tasks.task(0), tasks.task(1)):
            parts = [matrix.data, matrix.indices, matrix.indptr] if sp.issparse(matrix) else [matrix]
            assert not any(part.flags.writeable for part in [*parts, label])
    for part in (X, y, S.data, S.indices, S.indptr):
        assert part.flags.writeable
    assert not CLASSES.signed_rows(0).flags.writeable
    assert not CLASSES.num_rows.flags.writeable
    kernel = PROBLEMS["kernel"]
    assert not any(part.flags.writeable for part in (kernel.kernel, kernel.labels, *kernel.rows_of))
    assert not SETS.w_star.flags.writeable


def test_an_ordering_cannot_change_the_norms_it_sees():
    norms = np.ones(2)
    view = TaskView(2, norms)
    with pytest.raises(ValueError, match="read-only"):
        view.norms[0] = 7.0
    assert norms.flags.writeable


def test_a_scheme_that_writes_into_sigma_changes_nothing_and_the_suite_names_it():
    class Writes(LinearScheme):
        def gains(self, sigma):
            sigma *= 0
            return np.ones_like(sigma)

    before = TASKS.geometry.sigma.copy()
    with pytest.raises(ValueError, match="read-only"):
        fg.run(TASKS, Cyclic(), k=2, scheme=Writes())
    assert np.array_equal(TASKS.geometry.sigma, before)
    with pytest.raises(AssertionError, match="wrote into w, or into an array of the problem"):
        fg.checks.check_scheme(Writes())
