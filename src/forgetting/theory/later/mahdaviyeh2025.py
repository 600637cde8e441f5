"""Mahdaviyeh et al. 2025: replay of rows of earlier tasks can raise forgetting, also on tasks with a common solution.

The paper gives examples for chosen rows and for random ones. Here the statements that replay never hurts are claims,
which a hunt refutes, and the smallest example is worked out by hand. Two tasks in three dimensions: X_1 has the rows
(1, 0, 0) and (0, 1, 0), and X_2 the row (a, b, c) of norm 1. Whoever learned X_1 is off by a multiple of (0, 0, 1), and
X_2 moves that along its row. For w* = (0, 0, 1) and w_0 = 0, the loss of X_1 after X_2 is c^2 / 2 times

- a^2 + b^2 without replay,
- b^2 / (1 - a^2)^2 with the first row replayed: the step goes along the part of (a, b, c) orthogonal to that row,
- 0 with both rows replayed.

Of (a, b, c) = (0.6, 0.64, 0.48) these are 0.7696, 1 and 0. Where the second row is replayed it is a^2 / (1 - b^2)^2,
about 1.03, so that a random row is harmful, too. With b^2 = c^2, the ratio of the second number to the first tends to
infinity as a tends to 1: about 1 / (4 b^2), so that forgetting rises from order b^2 to a constant.

What replay never raises is the distance to the common solutions where it begins: the joined rows span more, so that
their projection takes more away from the same error. That is so in the first step that replays; later, errors differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from forgetting.core.arrays import Array
from forgetting.core.numerical import ROUNDING
from forgetting.expectation import expect
from forgetting.geometry import lift
from forgetting.orderings import Explicit
from forgetting.schemes import Replay
from forgetting.tasks import RegressionTasks
from forgetting.theory.checking import all_of, projection, regression, setting_of
from forgetting.theory.claim import declare_claim
from forgetting.theory.definition import equations, law_of
from forgetting.theory.draws import realizable
from forgetting.theory.instance import Instance
from forgetting.theory.precise import at_full_precision
from forgetting.theory.terms import Status
from forgetting.theory.verdict import CheckPaths, Draw, Sides

_SOURCE = "Mahdaviyeh et al. 2025 (mahdaviyeh2025replay)"
MOST_ROWS = 12  # of all tasks of an instance together
Value = Callable[[Instance, int, str], tuple[float, float]]
Average = Callable[[Instance, int, Value, str], tuple[float, float]]


# ------------------------------------------------------------------------------------------------- both sides, two ways


def _computed(instance: Instance, m: int, quantity: str) -> tuple[float, float]:
    """A quantity after all steps with the first m rows of each task replayed, and a bound on its error."""
    names: tuple[str, ...] = (quantity,)
    found = expect(instance.posed, instance.ordering or [], instance.k, Replay(memory=m), instance.w0, quantities=names)
    return float(found.values[quantity]), float(found.uncertainty[quantity])


@at_full_precision
def _in_decimals(instance: Instance, m: int, quantity: str) -> tuple[float, float]:
    """The same at 50 digits, by projections onto the joined rows, one after another."""
    tasks, order = instance.tasks, np.asarray(getattr(law_of(instance), "sequence", ()))[: instance.k].tolist()
    data = [tuple(lift(part) for part in equations(tasks, task)) for task in range(tasks.num_tasks)]
    w = lift(instance.start)
    missed: list[Any] = []
    for t, task in enumerate(order):
        rows, labels = data[task]
        joined = list(zip(rows, labels, strict=True))
        for other in sorted(set(order[:t]) - {task}):
            joined += list(zip(data[other][0][:m], data[other][1][:m], strict=True))
        w = _projected(joined, w)
        missed.append(_loss(*data[task], w))
    if quantity == "error":
        gap = w - lift(tasks.nearest_solution(instance.start))
        return float(gap @ gap), 0.0
    total = sum(_loss(*data[task], w) for task in order) - sum(missed)
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


def _loss(rows: Any, labels: Any, w: Any) -> Any:
    missed = rows @ w - labels
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


def _more_than_one(instance: Instance) -> str | None:
    return None if instance.extra("m") > 1 else "is for m > 1; m = 1 is replay against none"


def by_hand(a: float, b: float) -> RegressionTasks:
    """The two tasks of the docstring of this module, the second of them with a further row (0, 0, 0).

    Rows of zeros are replayed without effect, so that two rows a task can be kept.

    >>> import forgetting as fg
    >>> tasks = by_hand(0.6, 0.64)
    >>> [round(float(fg.run(tasks, [0, 1], 2, fg.schemes.Replay(memory=m)).forgetting[-1]), 8) for m in (0, 1, 2)]
    [0.04432896, 0.0576, 0.0]
    """
    c = np.sqrt(max(0.0, 1 - a * a - b * b))
    return realizable([np.eye(3)[:2], np.array([[a, b, c], [0.0, 0.0, 0.0]])], np.array([0.0, 0.0, 1.0]))


def _draw(least: int) -> Draw:
    def draw(rng: np.random.Generator, index: int) -> Instance:
        if index < 24 and least == 1:
            pair = ((0.6, 0.64), (0.8, 0.48), (0.1 * (index % 9), 0.6))[index % 3]
            return Instance(by_hand(*pair), Explicit((0, 1)), 2, extras={"m": 1 + (index >= 20)})
        dim, m = int(rng.integers(2, 6)), int(rng.integers(least, 3))
        sizes = rng.integers(m, max(m, 3) + 1, size=2 if rng.random() < 0.8 else 3)
        matrices: list[Array] = []
        for size in sizes.tolist():
            rows = rng.standard_normal((size, dim))
            if rng.random() < 0.5:
                rows = np.round(rows, 1)
            matrices.append(rows)
        order = tuple(range(len(sizes)))
        return Instance(
            realizable(matrices, np.round(rng.standard_normal(dim), 1)), Explicit(order), len(order), extras={"m": m}
        )

    return draw


def _declared(
    part: str,
    statement: str,
    status: Status,
    note: str,
    *,
    quantity: str = "forgetting",
    average: Average = _chosen,
    fewer: Callable[[int], int] = lambda m: 0,
    least: int = 1,
    conditions: tuple[Callable[[Instance], str | None], ...] = (),
) -> None:
    def sides(value: Value, instance: Instance) -> Sides:
        m = int(instance.extra("m"))
        (left, off), (right, doubt) = (average(instance, n, value, quantity) for n in (m, fewer(m)))
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
        draw=_draw(least),
        source=_SOURCE,
        title="replay of rows of earlier tasks",
        status=status,
        note=note,
        needs=("m",),
        missing=all_of(regression, projection, _given_order, _few_rows, *conditions),
    )(CheckPaths(computed, precise))


_declared(
    "replay against none",
    "F(k) with the first m rows of each earlier task replayed is at most F(k) without, by projections in a given order",
    "refuted",
    "X_1 = [1, 0, 0; 0, 1, 0], X_2 = [0.6, 0.64, 0.48], w* = (0, 0, 1), m = 1: 0.0576 against 0.0443. The ratio has no "
    "upper end (by [0.98, 0.14, 0.14] it is about 13).",
)
_declared(
    "random rows",
    "the mean of F(2) over which m rows of the first task are replayed is at most F(2) without, by projections",
    "refuted",
    "Of the same tasks the second row is as harmful: 0.0585 against 0.0443 in the mean.",
    average=_at_random,
    conditions=(_two_tasks, _one_step),
)
_declared(
    "one row more",
    "F(k) with m > 1 rows of each earlier task replayed is at most F(k) with m - 1, by projections in a given order",
    "refuted",
    "A row that was learned with another one can be harmful beside it, as one row is beside none.",
    fewer=lambda m: m - 1,
    least=2,
    conditions=(_more_than_one,),
)
_declared(
    "distance, two tasks",
    "|w_2 - w*|^2 with m rows of the first task replayed is at most |w_2 - w*|^2 without, by projections",
    "corrected",
    "Both project the same error, and the joined rows span more. Later errors differ, and so does their order.",
    quantity="error",
    conditions=(_two_tasks, _one_step),
)
