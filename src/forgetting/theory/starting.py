"""Where a hunt starts from, beside what it draws: the record of the claim, and tasks that are known to be worst."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from forgetting.orderings import WithReplacement, laws
from forgetting.tasks import RegressionTasks, families
from forgetting.tasks.worst_tasks import KnownWorst, known_worst
from forgetting.theory.claim import Claim
from forgetting.theory.instance import Instance
from forgetting.theory.record import all_records
from forgetting.theory.sizes import Sizes, with_radius

__all__ = ["Start", "known_starts"]

STEPS = (2, 4, 16, 64, 256, 4096)
MOST_ORTHOGONAL = 64  # distinct tasks of the orthogonal ones
MOST_NUMBERS = 64  # tasks times dimensions of known worst tasks that hunts start from
MOST_TRIED = 4096  # of those that are tried at all
MOST_STATES = 2000  # without replacement, (copies + 1)^T: more could not be confirmed at 50 digits
MOST_PASSED = 256  # steps without replacement, whose exact engine has (k/2)^2 states for a cloned pair
ANY = Sizes()
SPREAD = 6  # steps of a range that are tried


class Start(NamedTuple):
    """An instance, and where it is from."""

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


def _known_tasks(sizes: Sizes, every: bool) -> Iterator[tuple[str, RegressionTasks, int]]:
    """What they are, the tasks, and the number of steps for which they are worst."""
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
    """Of each quantity and k the entry of the largest value, with replacement and in not too many dimensions."""
    best: dict[tuple[int, str], KnownWorst] = {}
    for entry in known_worst(k=steps):
        at = entry.k, entry.quantity
        small = entry.T is not None and entry.T * entry.d <= MOST_NUMBERS and entry.ordering == "with-replacement"
        if small and entry.value is not None and (at not in best or entry.value > (best[at].value or 0.0)):
            best[at] = entry
    return [best[at] for at in sorted(best)]
