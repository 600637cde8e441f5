"""Loss and forgetting against k: exact values, a band of simulated runs, and every bound that applies."""

from __future__ import annotations

from typing import Any

import numpy as np

from forgetting import bounds
from forgetting.core.arrays import IntArray
from forgetting.dynamics.ensembles import run_many
from forgetting.errors import NotSupportedError
from forgetting.expectation import Expectation, expect
from forgetting.figures.items import Curves, Item, Series, Table, column, spread_steps
from forgetting.orderings import Ordering, laws
from forgetting.orderings.laws import Permutation, Reshuffled
from forgetting.report.document import Section
from forgetting.report.settings import Settings, Step, no_step, ordering_key, ordering_name, section
from forgetting.tasks import Problem
from forgetting.theory.curves import bound_curves, tightest_curve

SYMBOL = {"forgetting": "F(k)", "loss": "L(w_k)"}
#: rounding of the exact engines, relative to the largest value in the figure
LEAST_DRAWN = 1e-16
#: beyond this many different tasks, all their subsets take longer than a report may
SUBSETS = 14
COLUMNS = ("ordering", "k", "quantity", "expected", "how", "tightest guarantee", "its value")


def _opening(settings: Settings, section: Section) -> list[str]:
    """Three sentences: what was learned, how much is forgotten, and what was guaranteed."""
    problem = settings.problem
    table = next(item for item in section.items if isinstance(item, Table))
    rows = [row for row in table.rows if row[2] == "forgetting"]
    forgotten = [f"{row[3]:.2g} after {row[1]} tasks in the order '{row[0]}'" for row in rows]
    meaning = problem.loss_meaning
    return [
        f"{problem.num_tasks} tasks in {problem.dim} dimensions are learned one after another; forgetting is the mean "
        "loss, at the end, of the tasks learned so far, less what it was just after each was learned"
        + (f" (a loss is {meaning})." if meaning else "."),
        f"Expected forgetting is {', '.join(forgotten)}.",
        _guaranteed(table),
    ]


def _guaranteed(table: Table) -> str:
    """A sentence with the guarantees on the forgetting, or on the loss if no ordering has any on the forgetting."""
    for quantity, subject in (("forgetting", "The best guarantees"), ("loss", "The best guarantees on the loss")):
        known = [f"{row[6]:.2g} for '{row[0]}'" for row in table.rows if row[2] == quantity and row[5]]
        if known:
            return f"{subject} allow at most {', '.join(known)}; the [table](#tab-last-step) names them."
    return "No guarantee is known for these tasks."


@section("rates", "forgetting and loss", place=1, opening=_opening)
def rates_section(settings: Settings, _: Step = no_step) -> Section:
    """The orderings compared, then each ordering with its bounds."""
    results = [(ordering, *_steps(settings, ordering)) for ordering in settings.orderings]
    guarantees: dict[str, list[Series]] = {quantity: [] for quantity in SYMBOL}
    items: list[Item] = []
    rows: list[tuple[Any, ...]] = []
    remarks: list[str] = []
    for group, (ordering, steps, result) in enumerate(results):
        limits = None
        try:
            limits = bounds.evaluate(settings.problem, ordering, steps)
        except NotSupportedError as error:
            remarks.append(f"No bounds: {error}.")
        bands = _bands(settings, ordering, steps, group)
        for quantity in SYMBOL:
            curves = () if limits is None else bound_curves(limits, quantity)
            items.append(_with_bounds(ordering, quantity, result, bands, curves, group))
            best = None if limits is None else tightest_curve(limits, quantity, group)
            if best is not None:
                guarantees[quantity].append(_named_after(ordering, best))
        rows += _rows(ordering, int(steps[-1]), result, limits)
    compared = [_comparison(results, quantity, guarantees[quantity]) for quantity in SYMBOL]
    caption = "Expected values at the largest k of each ordering, and the smallest guarantee there."
    table = Table("last-step", "At the last step", caption, COLUMNS, tuple(rows))
    text = (
        f"{settings.name}: expected loss and forgetting after k tasks, computed exactly where that is possible. Shaded "
        f"bands hold the middle 90 % of {settings.runs} simulated runs. Dashed curves in colour are guarantees; a "
        "guarantee above the trivial bound says nothing yet. What is dotted in gray is no guarantee on these tasks: a "
        "worst case over all tasks, or a rate whose constant is not known. " + " ".join(dict.fromkeys(remarks))
    )
    return Section("rates", "Forgetting and loss against k", text.strip(), (*compared, *items, table))


def expected(problem: Problem, ordering: Ordering, steps: Any, seed: int, quantities: tuple[str, ...]) -> Expectation:
    """Expected values by `expect`, simulated where exact values would take minutes.

    >>> import forgetting as fg
    >>> expected(fg.families.two_lines(0.5), fg.orderings.WithoutReplacement(), [1, 2], 0, ("loss",)).method
    'subsets'
    """
    geometry = problem.geometry
    different = problem.num_tasks if geometry is None else geometry.num_distinct
    if isinstance(ordering.law, (Permutation, Reshuffled)) and different > SUBSETS:
        return expect(problem, ordering, steps, method="monte-carlo", quantities=quantities, seed=seed, runs=2048)
    runs = 1024 if geometry is None else None  # sets are projected onto one by one
    return expect(problem, ordering, steps, quantities=quantities, seed=seed, runs=runs)


def _named_after(ordering: Ordering, curve: Series) -> Series:
    words = f"guarantee, {ordering_name(ordering)}"
    return Series(words, curve.x, curve.y, role=curve.role, method=curve.label, group=curve.group)


def _steps(settings: Settings, ordering: Ordering) -> tuple[IntArray, Expectation]:
    T = settings.problem.num_tasks
    limit = ordering.limit(T)
    steps = spread_steps(settings.k if limit is None else min(limit, settings.k), settings.points)
    if isinstance(ordering.law, laws.Cycle):  # guarantees are about whole cycles
        steps = np.unique([k if k < T else max(round(k / T) * T, T) for k in steps.tolist()])
        steps = np.unique(np.append(steps[steps < settings.k], settings.k))
    return steps, expected(settings.problem, ordering, steps, settings.seed, ("loss", "forgetting"))


def _floor(series: tuple[Series, ...]) -> float:
    return LEAST_DRAWN * max((value for curve in series for value in curve.y if value is not None), default=1.0)


def _how(result: Expectation) -> str:
    return "exact" if result.exact else f"simulated, {result.runs} runs"


def _comparison(
    results: list[tuple[Ordering, IntArray, Expectation]], quantity: str, guarantees: list[Series]
) -> Curves:
    series = tuple(
        result.series(quantity, ordering_name(ordering), group) for group, (ordering, _, result) in enumerate(results)
    )
    how = "; ".join(f"{ordering_name(ordering)}: {_how(result)}" for ordering, _, result in results)
    return Curves(
        quantity,
        f"Expected {quantity}, by ordering",
        f"E {SYMBOL[quantity]} ({how}). Dashed: the smallest guarantee at each k, in the colour of its ordering.",
        "k, tasks learned",
        f"expected {quantity}",
        (*series, *guarantees),
        floor=_floor(series),
    )


def _bands(settings: Settings, ordering: Ordering, steps: IntArray, group: int) -> dict[str, Series]:
    """The middle 90 % of simulated runs; nothing for an ordering without randomness."""
    if not ordering.random:
        return {}
    runs = run_many(
        settings.problem, ordering, int(steps[-1]), settings.runs, seed=settings.seed, record_every=steps.tolist()
    )
    at = np.searchsorted(runs.steps, steps)
    bands = {}
    for quantity, values in (("forgetting", runs.forgetting[:, steps - 1]), ("loss", runs.losses[:, at])):
        low, middle, high = np.quantile(values, [0.05, 0.5, 0.95], axis=0)
        bands[quantity] = Series(
            f"median and 90 % of {settings.runs} runs",
            column(steps),
            column(middle),
            column(low),
            column(high),
            role="simulated",
            method=f"{settings.runs} runs, seed {settings.seed}",
            group=group,
        )
    return bands


def _with_bounds(
    ordering: Ordering,
    quantity: str,
    result: Expectation,
    bands: dict[str, Series],
    curves: tuple[Series, ...],
    group: int,
) -> Curves:
    main = result.series(quantity, f"{'exact' if result.exact else 'simulated'} {quantity}", group)
    series = (main, *((bands[quantity],) if quantity in bands else ()), *curves)
    guarantees = sum(curve.role in ("bound", "trivial") for curve in curves)
    return Curves(
        f"{quantity}-{ordering_key(ordering)}",
        f"{quantity.capitalize()}, {ordering_name(ordering)}, with its bounds",
        f"Expected {quantity} ({_how(result)}) and the {guarantees} guarantees that apply.",
        "k, tasks learned",
        quantity,
        series,
        floor=_floor(series),
    )


def _rows(ordering: Ordering, k: int, result: Expectation, limits: bounds.Evaluation | None) -> list[tuple[Any, ...]]:
    rows = []
    for quantity in SYMBOL:
        value = float(np.atleast_1d(result.values[quantity])[-1])
        best = None if limits is None else limits.at(k).tightest(quantity)
        said = ("", None) if best is None else (best.bound.name, best.value)
        rows.append((ordering_name(ordering), k, quantity, value, _how(result), *said))
    return rows
