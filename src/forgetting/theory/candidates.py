"""Instances that a hunt tries beside those it draws: the record, known worst tasks, neighbours, and simpler ones.

A hunt ends with the simplest counterexample: few numbers of few digits, so that a reader can check both sides by hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forgetting.core.arrays import Array
from forgetting.errors import ForgettingError, NotSupportedError
from forgetting.orderings import Explicit, NormWeighted, Ordering, WithoutReplacement, WithReplacement, laws
from forgetting.schemes import SGD
from forgetting.tasks import ClassificationTasks, Problem, RegressionTasks, families
from forgetting.tasks.worst_tasks import KnownWorst, known_worst
from forgetting.theory.draws import MOST_CLONES, MOST_STEPS, Rng
from forgetting.theory.expectations import distinct
from forgetting.theory.instance import Instance
from forgetting.theory.noisy_draws import near, noisy
from forgetting.theory.record import all_records
from forgetting.theory.sizes import Sizes, with_radius

if TYPE_CHECKING:
    from forgetting.theory.claim import Claim


MOST_COUNTED = 1e12  # where a task stands for many
MOST_SIMPLER = 400  # simpler neighbours of one instance
DIGITS = 1, 2, 3  # significant ones, to which numbers are rounded
Complexity = tuple[float, ...]
STEPS = (2, 4, 16, 64, 256, 4096)
MOST_ORTHOGONAL = 64  # distinct tasks of the orthogonal ones
MOST_NUMBERS = 64  # tasks times dimensions of known worst tasks that hunts start from
MOST_TRIED = 4096  # of those that are tried at all
MOST_STATES = 2000  # without replacement, (copies + 1)^T: more could not be confirmed at 50 digits
MOST_PASSED = 256  # steps without replacement, whose exact engine has (k/2)^2 states for a cloned pair
ANY = Sizes()
SPREAD = 6  # steps of a range that are tried


class Start(NamedTuple):
    """An instance from which a hunt starts, and its origin."""

    origin: str
    instance: Instance


def known_starts(claim: Claim, seed: int = 0, sizes: Sizes = ANY, *, every: bool = False) -> Iterator[Start]:
    """The record of the claim, then known tasks under the ordering and the scheme of its own draws.

    Known are the worst pairs for the loss and for forgetting in closed form, orthogonal tasks, and the entries of
    `forgetting.tasks.worst_tasks`: of these the small ones at some k, or `every` one. Claims about other problems than
    regression tasks have their record only.

    >>> import forgetting as fg
    >>> starts = list(known_starts(fg.claims.get("thm:cl_by_sgd_main", "loss")))
    >>> len(starts) > 10, starts[-1].origin, starts[-1].instance.k
    (True, 'orthogonal tasks', 16)
    """
    record = all_records().get(claim.key)
    if record is not None:
        yield Start(record.found, record.instance)
    if claim.needs:
        return
    sample = claim.draw(np.random.default_rng([seed, 0]), 0)
    problem, ordering = sample.problem, sample.ordering
    linear = None if problem is None else problem.linear
    if linear is None or linear is not problem or linear.data is None or ordering is None:
        return
    if not set(sample.extras) <= {"multiplicity"}:
        return
    for origin, tasks, k in _known_tasks(sizes, every):
        scheme = with_radius(sample.scheme, linear.data.radius, tasks.radius)
        once = {name: np.ones(tasks.num_tasks) for name in sample.extras}
        case = replace(sample, problem=tasks, k=k, w0=None, scheme=scheme, extras=once)
        copies = -(-k // tasks.num_tasks)
        few = k <= MOST_PASSED and (copies + 1) ** tasks.num_tasks <= MOST_STATES
        match ordering.law:
            case laws.Independent():
                yield Start(origin, replace(case, ordering=WithReplacement()) if ordering.law.p is not None else case)
            case laws.Permutation() if few:
                yield Start(origin, replace(case, problem=families.repeated(tasks, copies), extras={}))
            case laws.Cycle():
                yield Start(origin, replace(case, k=tasks.num_tasks * copies))
            case laws.Reshuffled() if copies * 2**tasks.num_tasks <= MOST_STATES:
                yield Start(origin, replace(case, k=tasks.num_tasks * copies))


def _known_tasks(sizes: Sizes, every: bool) -> Iterator[tuple[str, RegressionTasks, int]]:
    """Known worst tasks: their origin in words, the tasks, and the number of steps for which they are worst."""
    steps = STEPS if sizes.k is None else sorted({*np.linspace(sizes.k[0], sizes.k[-1], SPREAD).astype(int).tolist()})
    for entry in known_worst() if every else _largest(steps):
        small = entry.T is not None and entry.T * entry.d <= MOST_TRIED
        if small and (tasks := entry.tasks) is not None:
            yield f"known worst tasks: {entry.name}", tasks, entry.k
    for k in steps:
        yield "closed form: the worst pair for the loss", families.worst_pair(k, "loss"), k
        if k > 1:
            yield "closed form: the worst pair for forgetting", families.worst_pair(k, "forgetting"), k
    for k in steps:
        if k < MOST_ORTHOGONAL:
            yield "orthogonal tasks", families.orthogonal(k + 1), k


def _largest(steps: Iterable[int]) -> list[KnownWorst]:
    """The entry of the largest value for each quantity and k, with replacement and in few dimensions."""
    best: dict[tuple[int, str], KnownWorst] = {}
    for entry in known_worst(k=steps):
        at = entry.k, entry.quantity
        small = entry.T is not None and entry.T * entry.d <= MOST_NUMBERS and entry.ordering == "with-replacement"
        if small and entry.value is not None and (at not in best or entry.value > (best[at].value or 0.0)):
            best[at] = entry
    return [best[at] for at in sorted(best)]


def mutate(rng: Rng, instance: Instance, size: float) -> Instance:
    """A neighbour of the instance: every number moved by about `size` of itself, and k by a few.

    >>> from forgetting.theory.draws import projected
    >>> case = projected()(np.random.default_rng(0), 0)
    >>> other = mutate(np.random.default_rng(1), case, 0.1)
    >>> other.problem.realizability.holds, bool((other.problem.w_star == case.problem.w_star).all())
    (True, False)
    """
    problem, scheme = instance.posed, instance.scheme
    linear = problem.linear
    data = linear.data if linear is not None and linear is problem else None
    if data is not None:
        moved = _moved_tasks(rng, data, size)
        step = None if scheme is None else scheme.as_sgd(2.0)
        if step is not None and step.smoothness > 1:  # SGD on the loss, whose smoothness is R^2
            factor = 1.0 if rng.random() < 0.6 else float(np.exp(size * rng.standard_normal()))
            scheme = with_radius(scheme, data.radius, moved.radius, factor)
        problem = moved
    else:
        common = np.asarray(instance.extras.get("common", np.zeros(problem.dim)))
        with suppress(NotSupportedError):  # a problem of a user's own may not know how
            problem = problem.rebuilt(lambda values: _moved(rng, values, size), common=common)
    k = instance.k
    if rng.random() < 0.4:
        k = max(1, k + int(np.rint(rng.standard_normal() * max(1.0, size * k))))
        k = min(k, max(instance.k, MOST_STEPS))  # the cost of a check grows with k, and so may its ratio for ever
    extras = {name: _moved(rng, value, size) for name, value in instance.extras.items()}
    if "common" in extras:  # stays in all sets
        extras["common"] = instance.extras["common"]
    if "multiplicity" in extras:  # stays a count
        factors = np.exp(size * rng.standard_normal(len(extras["multiplicity"])))
        extras["multiplicity"] = np.minimum(np.ceil(instance.extras["multiplicity"] * factors), MOST_COUNTED)
    w0 = None if instance.w0 is None else _moved(rng, instance.w0, size * (rng.random() < 0.5))
    ordering = instance.ordering
    match None if ordering is None else ordering.law:
        case laws.Independent(p=tuple(given)):
            weights = np.resize(np.asarray(given), problem.num_tasks)
            factors = np.exp(size * rng.standard_normal(len(weights)) * (rng.random() < 0.5))
            ordering = WithReplacement(weights * factors)
        case laws.Fixed(sequence=tuple(given)):
            order = np.resize(np.array(given), k)
            order[int(rng.integers(k))] = int(rng.integers(problem.num_tasks))
            ordering = Explicit(order)
    return replace(instance, problem=problem, k=k, scheme=scheme, w0=w0, extras=extras, ordering=ordering)


def _moved(rng: Rng, value: Any, size: float) -> Any:
    if np.ndim(value) == 0:
        return value if isinstance(value, int) else value * float(np.exp(size * rng.standard_normal()))
    array = np.asarray(value)
    if array.dtype.kind in "iu":
        return array
    return array + size * rng.standard_normal(array.shape) * float(np.sqrt(np.mean(array**2)))


def _moved_tasks(rng: Rng, tasks: RegressionTasks, size: float) -> RegressionTasks:
    counts = tasks.geometry.counts.copy()
    matrices = [np.asarray(tasks.task(task)[0]) for task in distinct(tasks)]
    moving = rng.random(len(matrices)) < 0.5
    matrices = [_moved(rng, x, size) if on else x for x, on in zip(matrices, moving, strict=True)]
    if rng.random() < 0.2 and counts.max() > 1:
        counts = np.maximum(1, np.rint(counts * np.exp(size * rng.standard_normal(len(counts)))).astype(int))
        counts = np.maximum(1, (counts * min(1.0, MOST_CLONES / counts.sum())).astype(int))
    w, residuals = near(tasks)
    w = w if rng.random() < 0.5 else _moved(rng, w, size)
    if not tasks.realizability.holds:
        residuals = [_moved(rng, residual, size) for residual in residuals]
    return noisy(matrices, w, residuals, counts)


def complexity(instance: Instance) -> Complexity:
    """The effort of checking an instance by hand: (numbers, digits, T, d, k), compared in this order.

    The numbers are those of its file, k included; digits are all their significant decimal digits, so 0.8 and 10^10
    have one each.

    >>> import forgetting as fg
    >>> complexity(Instance(fg.RegressionTasks([[[1]], [[1]]], [[2], [2]]), None, 1))
    (8, 5, 2, 1, 1)
    """
    saved = [np.ravel(value) for value in instance.arrays.values() if np.asarray(value).dtype.kind in "iuf"]
    values, counts = np.unique(np.abs(np.concatenate(saved).astype(np.float64)), return_counts=True)
    digits = sum(int(n) * _digits(value) for value, n in zip(values.tolist(), counts, strict=True))
    problem = instance.problem
    return int(counts.sum()), digits, *((problem.num_tasks, problem.dim) if problem else (0, 0)), instance.k


def _digits(value: float) -> int:
    if value == 0 or not math.isfinite(value):
        return 0
    return len(np.format_float_scientific(value, trim="-").partition("e")[0].replace(".", ""))


def by_hand() -> Iterator[Instance]:
    """Instances made of small integers and short decimals, for every kind of statement about tasks.

    >>> next(by_hand()).tasks.num_tasks
    2
    """
    unit, line, slope = [[1.0]], [[1.0, 0.0]], [[1.0, 1.0]]
    clones = RegressionTasks([unit, unit], [[1.0], [1.0]])
    yield Instance(clones, None, 1)
    lines = [RegressionTasks([line, slope], [[y], [z]]) for y, z in ((0.0, 1.0), (1.0, 1.0), (1.0, 2.0))]
    orderings: tuple[Ordering, ...] = WithReplacement(), WithoutReplacement(), NormWeighted()
    for tasks, ordering, k in product((clones, *lines), orderings, (1, 2, 3)):
        yield Instance(tasks, ordering, k)
        yield Instance(tasks, ordering, k, scheme=SGD(1 / tasks.radius**2, "loss"))
    small = RegressionTasks([line, [[0.06, 0.08]]], [[0.6], [0.1]])
    yield Instance(small, WithoutReplacement(), 2)
    yield Instance(RegressionTasks([line] * 9 + [[[0.8, 0.6]]], [[0.0]] * 9 + [[1.0]]), WithoutReplacement(), 10)
    away = ClassificationTasks([line, [[0.8, -0.6]]], [[1], [-1]])  # signed, (-0.8, 0.6)
    for order in ([0], [0, 1], [0, 0, 1]):
        yield Instance(away, Explicit(order), len(order))
    across = RegressionTasks([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [[1.0, 1.0, 1.0]]], [[0.0, 0.0], [1.0]])
    yield Instance(across, Explicit([0, 1]), 2, extras={"m": 1})
    # few tasks among very many that hardly matter; extras["multiplicity"] says how many
    alone = RegressionTasks([unit, [[0.0]]], [[1.0], [0.0]])
    yield Instance(alone, WithReplacement(), 1000, extras={"multiplicity": [1, 4000]})
    weak = RegressionTasks([line, [[0.01, 0.01]]], [[0.0], [0.01]])
    yield Instance(weak, NormWeighted(), 2, extras={"multiplicity": [1, 5000]})
    weaker = RegressionTasks([line, [[1e-6, 1e-6]]], [[1.0], [0.0]])
    yield Instance(weaker, WithReplacement(), 10**8, extras={"multiplicity": [1, 10**10]})


def shrunk(instance: Instance, refutes: Callable[[Instance], bool]) -> Instance:
    """The instance made simpler step by step, as long as it refutes: fewer tasks, dimensions, steps, digits.

    >>> import forgetting as fg
    >>> start = Instance(fg.families.gaussian(5, 4, 1), fg.orderings.Cyclic(), 9)
    >>> end = shrunk(start, lambda case: case.posed.num_tasks >= 2)
    >>> end.posed.num_tasks, end.posed.dim, end.k
    (2, 1, 1)
    """
    tried, here = 0, complexity(instance)
    while True:
        for other in _simpler(instance):
            if tried >= MOST_SIMPLER:
                return instance
            tried += 1
            try:
                better = complexity(other) < here and refutes(other)
            except (ForgettingError, np.linalg.LinAlgError):
                continue
            if better:
                instance, here = other, complexity(other)
                break
        else:
            return instance


def _simpler(instance: Instance) -> Iterator[Instance]:
    """Neighbours that are simpler in one way each; a statement may not apply to some of them."""
    k, ordering, problem = instance.k, instance.ordering, instance.problem
    yield from (replace(instance, k=n) for n in sorted({1, 2, 3, k // 2, int(float(f"{k:.0e}")), k - 1}) if 0 < n != k)
    if instance.w0 is not None:
        yield replace(instance, w0=None)
    law = None if ordering is None else ordering.law
    if isinstance(law, laws.Independent) and law.p is not None:
        yield replace(instance, ordering=WithReplacement())
    order = np.array(law.sequence) if isinstance(law, laws.Fixed) and law.sequence is not None else None
    if order is not None and k > 1:
        yield from (
            replace(instance, ordering=Explicit(np.delete(order, t)), k=k - 1) for t in range(min(k, len(order)))
        )
    if problem is not None:
        for task in range(problem.num_tasks if problem.linear is None else problem.linear.geometry.num_distinct):
            fewer = instance if order is None else replace(instance, ordering=Explicit(order - (order > task)))
            yield from _made(fewer, lambda value: value, without=task)
        for axis in range(problem.dim if problem.dim > 1 else 0):
            yield from _made(instance, partial(_less, axis=axis, dim=problem.dim))
        for digits in DIGITS:
            yield from _made(instance, partial(_rounded, digits=digits))


def _made(instance: Instance, change: Callable[[Any], Any], without: int | None = None) -> Iterator[Instance]:
    """The instance with `change` applied to all numbers, optionally without one distinct task.

    Clones are removed, halved or kept.
    """
    extras = {name: value if name == "multiplicity" else change(value) for name, value in instance.extras.items()}
    if without is not None and "multiplicity" in extras:
        extras["multiplicity"] = np.delete(extras["multiplicity"], without)
    w0 = None if instance.w0 is None else change(instance.w0)
    try:
        for problem in _problems(instance.posed, change, without):
            yield replace(instance, problem=problem, w0=w0, extras=extras)
    except (ForgettingError, np.linalg.LinAlgError):
        return  # no such tasks


def _problems(problem: Problem, change: Callable[[Any], Any], without: int | None) -> Iterator[Problem]:
    linear = problem.linear
    data = linear.data if linear is not None and linear is problem else None
    if data is None:
        yield problem.rebuilt(change, without)
        return
    kept = [(m, task) for m, task in enumerate(distinct(data)) if m != without]
    matrices, counts = [change(np.asarray(data.task(task)[0])) for _, task in kept], data.geometry.counts
    w, residuals = near(data)
    residuals = [change(residuals[m]) for m, _ in kept]
    for many in ([1 for _ in kept], [(counts[m] + 1) // 2 for m, _ in kept], [counts[m] for m, _ in kept]):
        yield noisy(matrices, change(w), residuals, many)


def _less(value: Any, axis: int, dim: int) -> Any:
    """The vector or matrix without one of the coordinates."""
    for side, length in enumerate(np.shape(value)):
        if length == dim and (np.ndim(value) == 1 or side == np.ndim(value) - 1 or np.shape(value) == (dim, dim)):
            value = np.delete(value, axis, axis=side)
    return value


def _rounded(value: Any, digits: int) -> Any:
    """The numbers rounded to this many significant digits; whole numbers as they are."""
    if np.asarray(value).dtype.kind != "f":
        return value
    rounded: Array = np.vectorize(lambda number: float(f"{number:.{digits - 1}e}"), otypes=[float])(value)
    return rounded if np.ndim(value) else float(rounded)
