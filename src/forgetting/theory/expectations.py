"""The expectations that statements are made of, and all orders of a small problem, written once for every claim.

Expectations come from `fg.expect`. Enumeration is added, for statements about swapped permutations and convex sets.
Where nothing is exact, `simulate` has means over simulated runs with intervals. E |w_k - x|^2 for any point x is the
loss of one more task, which is never drawn.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from forgetting.compute.threads import cores
from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS
from forgetting.dynamics.ensembles import batch_losses
from forgetting.dynamics.space import resolve, view_of
from forgetting.errors import NotSupportedError
from forgetting.expectation import expect
from forgetting.expectation.api import ask
from forgetting.expectation.engines import choose
from forgetting.expectation.intervals import column_intervals
from forgetting.orderings import WithReplacement
from forgetting.orderings.laws import Fixed, Independent, Permutation, Reshuffled
from forgetting.schemes import SGD, natural_scheme
from forgetting.tasks import ConvexSets, RegressionTasks
from forgetting.theory.definition import MOST_STATES, compare, equations, law_of, orders_needed
from forgetting.theory.instance import Instance

BATCH = 1024
RUNS = 16 * BATCH  # compiled ones
FEWER_RUNS = 4 * BATCH  # by projections onto convex sets, which take longer
WORK = 2**25  # compiled steps in all
CONFIDENCE = 0.999  # of each interval; a verdict allows for its whole width


class Orders(NamedTuple):
    """Means over the orders of k tasks, each with the width of its interval: 0 for a mean over all orders.

    Attributes:
        loss: the mean loss of all tasks.
        seen: the mean loss of the tasks that were learned, 0 for none.
        following: the loss of the task that is learned next, 0 where there is none.
        how: in words.

    >>> import forgetting as fg
    >>> some = simulate(Instance(fg.families.orthogonal(2), fg.orderings.WithoutReplacement(), k=1), 1)
    >>> round(some.following[0], 12), some.seen[0], some.how
    (0.25, 0.0, '16384 simulated runs')
    """

    loss: tuple[float, float]
    seen: tuple[float, float]
    following: tuple[float, float]
    how: str


def runs_for(steps: int, most: int) -> int:
    """The number of runs of this many compiled steps: fewer of long ones, 256 at least.

    >>> runs_for(100, RUNS), runs_for(10_000, RUNS), runs_for(10**6, RUNS)
    (16384, 3072, 256)
    """
    runs = min(most, WORK // max(steps, 1))
    return runs // BATCH * BATCH if runs >= BATCH else 256


def simulate(instance: Instance, k: int) -> Orders:
    """Run random orders of k tasks, and one more where there is one, with the seed and the runs of the instance."""
    problem, ordering, w0, names = instance.posed, instance.ordering, instance.w0, ("loss", "seen_loss", "next_loss")
    assert ordering is not None
    scheme, _ = resolve(problem, instance.scheme, w0)
    slow = scheme.linear_on(problem) is None
    runs = instance.runs or runs_for(64 * (k + problem.num_tasks) if slow else k, FEWER_RUNS if slow else RUNS)
    options = {"seed": instance.seed, "runs": runs, "confidence": CONFIDENCE}
    result = expect(problem, ordering, k, scheme, w0, "monte-carlo", names, **options)  # type: ignore[arg-type]

    def mean(name: str) -> tuple[float, float]:
        low, high = result.interval(name)
        return (0.0, 0.0) if np.isnan(result.values[name]) else (float(result.values[name]), float(high - low))

    return Orders(mean("loss"), mean("seen_loss"), mean("next_loss"), f"{runs} simulated runs")


def width(values: Array, bounds: tuple[float, float] | None) -> float:
    """The width of an interval for the expectation of values that stay within these bounds.

    >>> width(np.tile([0.0, 1.0], 2048), (0.0, 1.0)) < 0.1
    True
    """
    low, high = column_intervals(values[:, None], bounds, CONFIDENCE)[0]
    return float(high - low)


def losses_after(instance: Instance, orders: IntArray, tasks: IntArray) -> Array:
    """The loss that each order of a linear scheme, one per row, ends with on a task of its own.

    >>> import forgetting as fg
    >>> case = Instance(fg.families.orthogonal(2), fg.orderings.WithoutReplacement(), k=1)
    >>> losses_after(case, np.array([[0], [0]]), np.array([0, 1])).round(12)
    array([0.  , 0.25])
    """
    given, space = resolve(instance.posed, instance.scheme, instance.w0)
    scheme = given.linear_on(instance.posed)
    if scheme is None:
        raise NotSupportedError(f"{given} is not a linear scheme")
    start, none, workers = space.w0, np.zeros(1, dtype=np.int64), cores()
    losses = np.empty(len(orders))
    for at in range(0, len(orders), BATCH):
        few = slice(at, at + BATCH)
        visits = np.column_stack([orders[few], tasks[few]])
        losses[few] = batch_losses(instance.tasks.geometry, scheme, visits, start, none, threads=workers)[1][:, -1]
    return losses


SMALLEST = 1e-12  # of the largest singular value of unit rows: below it, a direction is rounding
MANY_STEPS, SMALL = 1000, 4  # from here on, and up to this dimension, eigenvectors are cheaper than stepping
MOST_SECONDS = 5.0  # that an average over all sets of seen tasks may take, roughly


_KNOWN: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()
_Value = TypeVar("_Value")


def remembered(instance: Instance, key: Any, compute: Callable[[], _Value]) -> _Value:
    """The value computed before for this problem, ordering, scheme and start; several claims ask for the same values.

    >>> import forgetting as fg
    >>> case = Instance(fg.families.orthogonal(2), fg.orderings.Cyclic(), k=1)
    >>> remembered(case, "key", lambda: 1), remembered(case, "key", lambda: 2)
    (1, 1)
    """
    start = None if instance.w0 is None else np.asarray(instance.w0).tobytes()
    full_key = instance.ordering, instance.scheme, start, instance.seed, instance.runs, key
    try:
        known = _KNOWN.setdefault(instance.problem, {})
        if full_key not in known:
            known[full_key] = compute()
    except TypeError:  # an ordering or a scheme of the user's that cannot be a key
        return compute()
    result: _Value = known[full_key]
    return result


def start_noise(instance: Instance) -> float:
    """The loss that rounding alone leaves if w_0 solves all tasks."""
    linear = instance.posed.linear
    if linear is None or linear is not instance.problem or linear.kernel is not None or not linear.realizability.holds:
        return 0.0
    size = float(np.linalg.norm(instance.start) + np.linalg.norm(instance.tasks.w_star))
    return float(linear.radius**2 * (16 * EPS * linear.geometry.condition * size) ** 2)


class Expected(ABC):
    """The expectations that statements are made of: `Numbers` in float64, `Precise` at 50 digits.

    Attributes:
        instance: the case that they are of.
        doubt: how far rounding or simulation may have moved all values that were asked for.
        how: the methods that gave the values.
    """

    how: str

    def __init__(self, instance: Instance) -> None:
        self.instance, self.doubt = instance, 0.0

    @abstractmethod
    def value(self, name: str, k: int) -> Any:
        """The quantity of `fg.expect` with this name after k steps."""

    def loss(self, k: int) -> float:
        """E L(w_k)."""
        return float(self.value("loss", k))

    def forgetting(self, k: int) -> float:
        """E F(k)."""
        return float(self.value("forgetting", k))

    def error(self, k: int) -> float:
        """E |w_k - w*|^2."""
        return float(self.value("error", k))

    def task_losses(self, k: int) -> Array:
        """E L_m(w_k) for every task."""
        return np.asarray(self.value("task_losses", k), dtype=np.float64)

    def averaged_loss(self, k: int) -> float:
        """E L of the mean of w_0, ..., w_(k-1)."""
        return float(self.value("averaged_loss", k))

    def averaged_task_losses(self, k: int) -> Array:
        """E L_m of the mean of w_0, ..., w_(k-1) for every task."""
        return np.asarray(self.value("averaged_task_losses", k), dtype=np.float64)

    def regret_sum(self, k: int) -> float:
        """E sum_(t<k) f(w_t; i_t), k terms."""
        return float(k * self.value("regret", k)) if k else 0.0

    def next_loss(self, k: int) -> float:
        """E f(w_k; i_k), the loss of the task that is learned next."""
        return float(self.value("next_loss", k))

    def in_sample(self, k: int) -> float:
        """E (1/k) sum_(t<k) f(w_k; i_t), the loss on what was seen; 0 before the first step."""
        return float(self.value("seen_loss", k)) if k else 0.0


Engine: TypeAlias = Callable[[Instance], Expected]


class Numbers(Expected):
    """Expectations on one instance, in float64; `doubt` bounds what rounding (or simulation) may have done to them.

    >>> import forgetting as fg
    >>> case = Instance(fg.families.orthogonal(2), fg.orderings.WithoutReplacement(), k=1)
    >>> numbers = Numbers(case)
    >>> round(numbers.next_loss(1), 15), numbers.in_sample(1)  # one coordinate is still to be learned
    (0.25, 0.0)
    """

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance)
        self.doubt = start_noise(instance)
        self.methods: set[str] = set()

    def value(self, name: str, k: int) -> Any:
        """The quantity of `fg.expect` with this name after k steps; `doubt` grows by how far it may be off."""
        instance = self.instance
        options: dict[str, Any] = {"quantities": (name,), "seed": instance.seed, "runs": instance.runs}
        if k > MANY_STEPS and isinstance(law_of(instance), Independent) and instance.posed.dim <= SMALL:
            options["method"] = "spectral"
        result = remembered(
            instance,
            (name, k),
            lambda: expect(instance.posed, instance.ordering, k, instance.scheme, instance.w0, **options),  # type: ignore[arg-type]
        )
        if result.exact:
            doubt = float(np.nan_to_num(np.max(result.uncertainty.get(name, 0.0))))
        else:
            low, high = np.moveaxis(result.interval(name), -1, 0)
            doubt = float(np.max(high - low))
        value = result.values[name]
        remembered(instance, ("compared", name, k), lambda: compare(instance, k, name, value, doubt))
        self.methods.add(result.method)
        self.doubt += doubt
        return value

    @property
    def how(self) -> str:  # type: ignore[override]
        return ", ".join(sorted(self.methods)) or "closed form"

    def next_loss(self, k: int) -> float:
        return super().next_loss(k) if self._is_exact("next_loss", k) else self._mean("following", k)

    def in_sample(self, k: int) -> float:
        return super().in_sample(k) if not k or self._is_exact("seen_loss", k) else self._mean("seen", k)

    def _is_exact(self, name: str, k: int) -> bool:
        """Whether a quantity after k steps can be averaged over all orders exactly, in a few seconds."""
        instance = self.instance
        request = ask(instance.posed, instance.ordering, k, instance.scheme, instance.w0, name).request  # type: ignore[arg-type]
        if not isinstance(request.law, Independent | Permutation):
            raise NotSupportedError(f"the loss of the next task is not known for {request.ordering}")
        engine = choose(request).engine
        return engine.exact and (isinstance(request.law, Independent) or engine.cost(request).seconds <= MOST_SECONDS)

    def _mean(self, name: str, k: int) -> float:
        """A mean over simulated runs, with its interval."""
        runs = remembered(self.instance, ("simulated", k), lambda: simulate(self.instance, k))
        value, wide = getattr(runs, name)
        self.methods.add(runs.how)
        self.doubt += wide
        return float(value)


def with_doubt(numbers: Expected, value: Callable[[int], float], k: int) -> tuple[float, float]:
    """A value of `numbers` at k, and how far this value may be off."""
    before = numbers.doubt
    result = value(k)
    return result, numbers.doubt - before


def distinct(problem: RegressionTasks) -> list[int]:
    """The first task of each kind, so that clones come once.

    >>> import forgetting as fg
    >>> distinct(fg.families.repeated(fg.families.orthogonal(2), 3))
    [0, 1]
    """
    index, kinds = problem.geometry.index, problem.geometry.num_distinct
    return [int(np.flatnonzero(index == m)[0]) for m in range(kinds)]


def probabilities(instance: Instance) -> Array:
    """p_m of an independent ordering, for every task."""
    law = law_of(instance)
    if not isinstance(law, Independent):
        raise NotSupportedError(f"{instance.ordering} has no sampling probabilities")
    return law.probabilities(view_of(instance.posed))


def as_least_squares(instance: Instance) -> Instance:
    """The run written as SGD on the loss of least-squares tasks (`setup:sgd_main`): f(w; m) = L_m(w).

    A projection, or SGD on the modified objective, becomes SGD on tasks with orthonormal rows, whose loss is f_m.

    >>> import forgetting as fg
    >>> case = Instance(fg.families.gaussian(2, 4, 2), fg.orderings.WithReplacement(), 3)
    >>> same = as_least_squares(case)
    >>> same.scheme, round(same.posed.radius, 12)
    (SGD(step_size=1.0, objective='loss'), 1.0)
    """
    scheme = instance.scheme or natural_scheme(instance.posed)
    step = scheme.as_sgd(radius=2.0)
    if step is None:
        raise NotSupportedError(f"{scheme} is not SGD with a fixed step size")
    if step.smoothness != 1:  # that of the loss grows with the radius
        return instance
    tasks = instance.tasks
    if tasks is instance.problem:
        affine = remembered(instance, "orthonormal", lambda: ConvexSets.from_affine(tasks).regression)
        assert affine is not None
        tasks = affine
    return replace(instance, problem=tasks, scheme=SGD(step.step_size, "loss"))


# ------------------------------------------------------------------------------------------------------ enumeration


class Visit(NamedTuple):
    """A node of the tree of orders: the tasks so far, where they lead, and how likely they are."""

    order: tuple[int, ...]
    w: Array
    probability: float


def walk(instance: Instance, k: int) -> Iterator[Visit]:
    """The ends of all orders of k tasks learned by projection, whatever the problem is made of.

    >>> import forgetting as fg
    >>> ends = list(walk(Instance(fg.families.orthogonal(2), fg.orderings.WithoutReplacement(), k=2), 2))
    >>> [(end.order, end.w.round(3).tolist(), end.probability) for end in ends]
    [((0, 1), [0.707, 0.707], 0.5), ((1, 0), [0.707, 0.707], 0.5)]
    """
    problem, ordering, law = instance.posed, instance.ordering, law_of(instance)
    T = problem.num_tasks
    if orders_needed(instance, k) > MOST_STATES:
        raise NotSupportedError(f"more than {MOST_STATES} orders; use fewer tasks or steps")
    fixed: IntArray | None = None
    if ordering is not None and isinstance(law, Fixed):
        fixed = ordering.first(view_of(problem), k)
    share = probabilities(instance) if isinstance(law, Independent) else np.full(T, 1 / T)

    def grow(order: tuple[int, ...], w: Array, chance: float) -> Iterator[Visit]:
        depth = len(order)
        if depth == k:
            yield Visit(order, w, chance)
            return
        for task in range(T) if fixed is None else [int(fixed[depth])]:
            if fixed is None and isinstance(law, Permutation | Reshuffled):
                if task in order[depth - depth % T :]:  # the tasks of this epoch
                    continue
                factor = 1 / (T - depth % T)
            else:
                factor = 1.0 if fixed is not None else float(share[task])
            if factor > 0:
                yield from grow((*order, task), problem.project(task, w), chance * factor)

    yield from grow((), instance.start, 1.0)


def over_orders(instance: Instance) -> Orders:
    """The means over all orders of k tasks: one by one, by the engines for affine sets, or over simulated orders.

    >>> import forgetting as fg
    >>> sets = fg.ConvexSets([fg.Halfspace([1.0, 0.0], 1.0), fg.Halfspace([0.0, 1.0], 1.0)])
    >>> over_orders(Instance(sets, fg.orderings.WithoutReplacement(), 1))
    Orders(loss=(0.25, 0.0), seen=(0.0, 0.0), following=(0.5, 0.0), how='all 2 orders')
    """
    problem, k = instance.posed, instance.k
    if orders_needed(instance, k) > MOST_STATES and problem.linear is not None:
        return _by_engines(instance)
    if orders_needed(instance, k) > MOST_STATES:
        return remembered(instance, ("simulated", k), lambda: simulate(instance, k))
    loss = seen = following = 0.0
    count = 0
    for end in walk(instance, k):
        losses = problem.task_losses(end.w)
        loss += end.probability * float(np.mean(losses))
        seen += end.probability * _mean(losses[list(end.order)])
        following += end.probability * _mean(np.delete(losses, list(end.order)))
        count += 1
    for name, value in (("loss", loss), ("seen_loss", seen)):
        compare(instance, k, name, value)
    return Orders((loss, 0.0), (seen, 0.0), (following, 0.0), f"all {count} orders")


def _by_engines(instance: Instance) -> Orders:
    """The means for affine sets, whose expectations the engines know for any number of orders."""
    numbers, k = Numbers(instance), instance.k
    values = with_doubt(numbers, numbers.loss, k), with_doubt(numbers, numbers.in_sample, k)
    last = isinstance(law_of(instance), Permutation) and k == instance.posed.num_tasks
    following = (0.0, 0.0) if last else with_doubt(numbers, numbers.next_loss, k)
    return Orders(*values, following, numbers.how)


def _mean(losses: Array) -> float:
    return float(np.mean(losses)) if len(losses) else 0.0


def row_space(matrices: list[Array]) -> Array:
    """An orthonormal basis of all rows, one vector per row, from rows scaled to length 1.

    >>> row_space([np.array([[3.0, 0.0]]), np.array([[1e-9, 0.0], [0.0, 0.0]])]).shape
    (1, 2)
    """
    rows = np.concatenate(matrices)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    _, sizes, basis = np.linalg.svd(rows / np.where(lengths > 0, lengths, 1.0), full_matrices=False)
    return np.asarray(basis[sizes > SMALLEST * np.max(sizes, initial=0.0)])


def with_probe(instance: Instance, point: Array) -> Instance:
    """The instance with one more, never drawn task, whose loss is half the squared distance to the point.

    The distance is that within the joint row space; w_0 and the point must agree outside of it.

    >>> import forgetting as fg
    >>> case = Instance(fg.families.orthogonal(2), fg.orderings.WithReplacement(), k=1)
    >>> with_probe(case, np.ones(2)).tasks.task_losses(np.zeros(2)).round(12)
    array([0.25, 0.25, 1.  ])
    """
    tasks = instance.tasks
    blocks = [equations(tasks, m) for m in range(tasks.num_tasks)]
    basis = row_space([matrix for matrix, _ in blocks])
    blocks.append((basis, basis @ point))
    ordering = WithReplacement(np.append(probabilities(instance), 0.0))
    problem = RegressionTasks([matrix for matrix, _ in blocks], [label for _, label in blocks])
    return replace(instance, problem=problem, ordering=ordering)


def squared_distance(instance: Instance, point: Array, engine: Engine = Numbers) -> tuple[float, float, str]:
    """E |w_k - point|^2 by an engine, how far it may be off, and how it was obtained.

    >>> import forgetting as fg
    >>> case = Instance(fg.families.orthogonal(2), fg.orderings.WithReplacement(), k=1)
    >>> value, doubt, how = squared_distance(case, case.tasks.w_star)
    >>> round(value, 12), doubt < 1e-12, how
    (0.5, True, 'moments')
    """
    numbers = engine(with_probe(instance, point))
    value = 2 * float(numbers.task_losses(instance.k)[-1])
    return value, 2 * numbers.doubt, numbers.how
