"""Instances that a hunt tries beside those it draws: the record of the claim, known worst tasks, and neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forgetting.errors import NotSupportedError
from forgetting.orderings import Explicit, WithReplacement, laws
from forgetting.tasks import RegressionTasks, families
from forgetting.tasks.known_tasks import KnownWorst, known_worst
from forgetting.theory.draws import MOST_CLONES, MOST_STEPS, Rng
from forgetting.theory.expectations import distinct
from forgetting.theory.instance import Instance
from forgetting.theory.noisy_draws import near, noisy
from forgetting.theory.record import all_records
from forgetting.theory.sizes import Sizes, with_radius

if TYPE_CHECKING:
    from forgetting.theory.statement import Claim

MOST_COUNTED = 1e12  # where a task stands for many
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
    `forgetting.tasks.known_tasks`: of these the small ones at some k, or `every` one. Claims about other problems than
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
