"""Mahdaviyeh et al. 2025: replay of rows of earlier tasks can raise forgetting, also on tasks with a common solution.

The paper gives examples for chosen rows and for random ones. Here the statements that replay never hurts are claims,
which a hunt refutes, and the simplest example is worked out by hand. Two tasks in three dimensions: X_1 has the rows
(1, 0, 0) and (0, 1, 0), X_2 the row (a, 1, 1), w* = (0, 0, 1) and w_0 = 0. Whoever learned X_1 is off by (0, 0, 1), and
X_2 moves that along its row. After X_2, the loss of X_1 is half of

- (a^2 + 1) / (a^2 + 2)^2 without replay,
- 1/4 with the first row replayed: the step goes along the part (0, 1, 1) of (a, 1, 1) that is orthogonal to that row,
- 0 with both rows replayed.

For a = 1 these are 2/9, 1/4 and 0: forgetting is not monotone in the number of rows. By symmetry the second row is as
harmful, so that a random row is, too. For large a, forgetting rises from 1 / a^2 to a constant.

What replay never raises is the distance to the common solutions where it begins: the joined rows span more, so that
their projection takes more away from the same error. That is so in the first step that replays; later, errors differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from forgetting.core.numerical import ROUNDING
from forgetting.expectation import expect
from forgetting.geometry import lift
from forgetting.orderings import Explicit
from forgetting.schemes import Replay
from forgetting.tasks import RegressionTasks
from forgetting.theory.checking import all_of, projection, regression, setting_of
from forgetting.theory.claim import declare_claim
from forgetting.theory.definition import DisagreementError, equations, law_of
from forgetting.theory.draws import realizable
from forgetting.theory.instance import Instance
from forgetting.theory.precise import at_full_precision
from forgetting.theory.statement import Status
from forgetting.theory.verdict import CheckPaths, Sides

_SOURCE = "Mahdaviyeh et al. 2025 (mahdaviyeh2025replay)"
MOST_ROWS = 12  # of all tasks of an instance together
Value = Callable[[Instance, int, str], tuple[float, float]]
Average = Callable[[Instance, int, Value, str], tuple[float, float]]


# ------------------------------------------------------------------------------------------------- both sides, two ways


def _computed(instance: Instance, m: int, quantity: str) -> tuple[float, float]:
    """A quantity after all steps with the first m rows of each task replayed, and a bound on its error.

    It is compared with its definition, so that wrong steps are noticed.
    """
    names: tuple[str, ...] = (quantity,)
    found = expect(instance.posed, instance.ordering or [], instance.k, Replay(memory=m), instance.w0, quantities=names)
    value, doubt = float(found.values[quantity]), float(found.uncertainty[quantity])
    defined, _ = _in_decimals(instance, m, quantity)
    if abs(value - defined) > doubt + 1e-6 * abs(defined) + 1e-9 * float(setting_of(instance).scale or 0.0):
        raise DisagreementError(quantity, value, defined)
    return value, doubt


@at_full_precision
def _in_decimals(instance: Instance, m: int, quantity: str) -> tuple[float, float]:
    """The same at 50 digits, by projections onto the joined rows, one after another."""
    tasks, order = instance.tasks, np.asarray(getattr(law_of(instance), "sequence", ()))[: instance.k].tolist()
    data = [(lift(rows), lift(labels)) for rows, labels in (equations(tasks, m) for m in range(tasks.num_tasks))]
    w = lift(instance.start)
    missed: list[Any] = []
    for t, task in enumerate(order):
        rows, labels = data[task]
        joined = list(zip(rows, labels, strict=True))
        for other in sorted(set(order[:t]) - {task}):
            joined += list(zip(data[other][0][:m], data[other][1][:m], strict=True))
        w = _projected(joined, w)
        missed.append(_loss(data[task], w))
    if quantity == "error":
        gap = w - lift(tasks.nearest_solution(instance.start))
        return float(gap @ gap), 0.0
    total = sum(_loss(data[task], w) for task in order) - sum(missed)
    return float(total / len(order)), 0.0


def _projected(joined: list[tuple[Any, Any]], w: Any) -> Any:
    """The point nearest to w that solves the equations, which have a common solution, by Gram-Schmidt."""
    basis: list[tuple[Any, Any]] = []
    for row, label in joined:
        size, x, y = row @ row, row, label
        for _ in range(2):
            for unit, target in basis:
                along = unit @ x
                x, y = x - along * unit, y - along * target
        left = x @ x
        if left > size * lift([1e-22])[0]:
            basis.append((x / left.sqrt(), y / left.sqrt()))
    for unit, target in basis:
        w = w + (target - unit @ w) * unit
    return w


def _loss(task: tuple[Any, Any], w: Any) -> Any:
    missed = task[0] @ w - task[1]
    return missed @ missed / 2


def _chosen(instance: Instance, m: int, value: Value, quantity: str) -> tuple[float, float]:
    return value(instance, m, quantity)


def _at_random(instance: Instance, m: int, value: Value, quantity: str) -> tuple[float, float]:
    """The mean over which m rows of the task learned first are replayed."""
    first = next(iter(_subsets(instance, 0)))[1] if m == 0 else None
    cases = [first] if first is not None else [case for _, case in _subsets(instance, m)]
    values = [value(case, m, quantity) for case in cases]
    return float(np.mean([one for one, _ in values])), float(np.mean([doubt for _, doubt in values]))


def _subsets(instance: Instance, m: int) -> Iterator[tuple[tuple[int, ...], Instance]]:
    """The instance with the rows of its first task in other orders: each m of them come first once."""
    tasks = instance.tasks
    data = [equations(tasks, task) for task in range(tasks.num_tasks)]
    rows, labels = data[0]
    for chosen in combinations(range(len(rows)), m):
        order = [*chosen, *(row for row in range(len(rows)) if row not in chosen)]
        data[0] = rows[order], labels[order]
        yield chosen, replace(instance, problem=RegressionTasks(*map(list, zip(*data, strict=True))))


# -------------------------------------------------------------------------------------------------------- instances


def _given_order(instance: Instance) -> str | None:
    sequence = getattr(law_of(instance), "sequence", None)
    return None if sequence is not None and len(sequence) >= instance.k >= 2 else "is for a given order of two or more"


def _few_rows(instance: Instance) -> str | None:
    m, sizes = int(instance.extra("m")), instance.tasks.num_rows
    if m < 1:
        return "is for at least one row"
    if m > min(sizes):
        return f"needs {m} rows of each task"
    return None if sum(sizes) <= MOST_ROWS else f"is checked for up to {MOST_ROWS} rows in all"


def _one_step(instance: Instance) -> str | None:
    return None if instance.k == 2 else "is for two tasks, one after the other"


def _two_tasks(instance: Instance) -> str | None:
    sequence = getattr(law_of(instance), "sequence", ())
    return None if tuple(sequence) == (0, 1) else "is for task 0, then task 1"


def by_hand(a: float) -> RegressionTasks:
    """The two tasks of the docstring of this module.

    >>> import forgetting as fg
    >>> schemes = [fg.schemes.Replay(memory=m, per="all") for m in (0, 1, 2)]
    >>> [round(float(4 * fg.run(by_hand(1.0), [0, 1], 2, scheme).forgetting[-1]), 6) for scheme in schemes]
    [0.222222, 0.25, 0.0]
    """
    return realizable([np.eye(3)[:2], np.array([[a, 1.0, 1.0]])], np.array([0.0, 0.0, 1.0]))


def _draw(rng: np.random.Generator, index: int) -> Instance:
    if index < 20:
        return Instance(by_hand(1.0 + index / 4), Explicit((0, 1)), 2, extras={"m": 1})
    dim, m = int(rng.integers(2, 6)), int(rng.integers(1, 3))
    sizes = rng.integers(m, 4, size=2 if rng.random() < 0.8 else 3)
    rounding = rng.random() < 0.5
    matrices = [rng.standard_normal((size, dim)) for size in sizes.tolist()]
    tasks = realizable([np.round(X, 1) if rounding else X for X in matrices], np.round(rng.standard_normal(dim), 1))
    return Instance(tasks, Explicit(tuple(range(len(sizes)))), len(sizes), extras={"m": m})


def _declared(
    part: str,
    statement: str,
    status: Status,
    note: str,
    *,
    quantity: str = "forgetting",
    average: Average = _chosen,
    conditions: tuple[Callable[[Instance], str | None], ...] = (),
) -> None:
    def sides(value: Value, instance: Instance) -> Sides:
        m = int(instance.extra("m"))
        (left, off), (right, doubt) = (average(instance, n, value, quantity) for n in (m, 0))
        scale = setting_of(instance).scale or 0.0
        return Sides(left, right, off + doubt + ROUNDING * float(scale))

    def computed(instance: Instance) -> Sides:
        return sides(_computed, instance)

    def precise(instance: Instance) -> Sides:
        return sides(_in_decimals, instance)

    declare_claim(
        label="mahdaviyeh2025",
        part=part,
        statement=statement,
        draw=_draw,
        source=_SOURCE,
        title="replay of rows of earlier tasks",
        status=status,
        note=note,
        needs=("m",),
        missing=all_of(regression, projection, _given_order, _few_rows, *conditions),
    )(CheckPaths(computed, precise))


_declared(
    "distance, two tasks",
    "|w_2 - w*|^2 with m rows of the first task replayed is at most |w_2 - w*|^2 without, by projections",
    "corrected",
    "Both project the same error, and the joined rows span more. Later errors differ, and so does their order.",
    quantity="error",
    conditions=(_two_tasks, _one_step),
)
_declared(
    "replay against none",
    "F(k) with the first m rows of each earlier task replayed is at most F(k) without, by projections in a given order",
    "refuted",
    "X_1 = [1, 0, 0; 0, 1, 0], X_2 = [1, 1, 1], w* = (0, 0, 1), m = 1: 1/16 against 1/18, and 0 with both rows. With "
    "X_2 = [a, 1, 1] it is 1/16 against less than 1 / (4 a^2).",
)
_declared(
    "random rows",
    "the mean of F(2) over which m rows of the first task are replayed is at most F(2) without, by projections",
    "refuted",
    "Of the same tasks both rows are equally harmful: 1/16 against 1/18.",
    average=_at_random,
    conditions=(_two_tasks, _one_step),
)
