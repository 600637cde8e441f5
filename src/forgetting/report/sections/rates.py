"""Loss and forgetting against k: exact values, a band of simulated runs, and every bound that applies."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np

from forgetting import bounds
from forgetting._arrays import IntArray
from forgetting.dynamics.ensembles import run_many
from forgetting.errors import NotRealizableError, NotSupportedError
from forgetting.expectation import Expectation
from forgetting.figures.items import Curves, Item, Role, Series, Table
from forgetting.figures.numbers import column, spread_steps
from forgetting.orderings import Ordering
from forgetting.report.document import Section
from forgetting.report.expected_curves import expected, expected_series
from forgetting.report.section_registry import section
from forgetting.report.settings import Settings, Step, no_step, ordering_key, ordering_name
from forgetting.tasks import Problem

__all__ = ["bound_series", "rates_section"]

PAPER = "Evron et al. 2026"
SYMBOL = {"forgetting": "F(k)", "loss": "L(w_k)"}
#: rounding of the exact engines, relative to the largest value in the figure
ROUNDING = 1e-16
KINDS = {"upper": "bound", "lower": "worst case", "rate": "rate, constant unknown"}


def _summary(section: Section) -> list[str]:
    """One sentence per ordering: values at the last step, and the tightest bounds."""
    lines: dict[str, str] = {}
    for table in section.items:
        for ordering, k, quantity, value, method, bound, limit in table.rows if isinstance(table, Table) else ():
            start = lines.get(ordering, f"{ordering}, k = {k}, by {method}:")
            said = f" (at most {limit:.3g} by {bound})" if bound else ""
            lines[ordering] = f"{start}{',' if ordering in lines else ''} expected {quantity} {value:.3g}{said}"
    return list(lines.values())


@section("rates", "forgetting and loss", place=1, summary=_summary)
def rates_section(settings: Settings, _: Step = no_step) -> Section:
    """The orderings compared, then each ordering with its bounds."""
    results = [(ordering, *_steps(settings, ordering)) for ordering in settings.orderings]
    items: list[Item] = [_comparison(settings, results, quantity) for quantity in SYMBOL]
    rows: list[tuple[Any, ...]] = []
    remarks: list[str] = []
    for group, (ordering, steps, result) in enumerate(results):
        try:
            limits = bound_series(settings.problem, ordering, steps)
        except (NotRealizableError, NotSupportedError) as error:
            limits = {}
            remarks.append(f"No bounds: {error}.")
        bands = _bands(settings, ordering, steps, group)
        items += [
            _with_bounds(ordering, quantity, result, bands, limits.get(quantity, ()), group) for quantity in SYMBOL
        ]
        rows += _rows(ordering, steps, result, limits)
    items.append(
        Table(
            "last-step",
            "At the last step",
            "Expected values at the largest k of each ordering, and the tightest bound there.",
            ("ordering", "k", "quantity", "expected", "method", "tightest bound", "its value"),
            tuple(rows),
        )
    )
    text = (
        f"{settings.name}: expected loss and forgetting after k tasks, computed exactly where that is possible. Shaded "
        f"bands hold the middle 90 % of {settings.runs} simulated runs. Dashed curves are guarantees; a guarantee "
        "above the line 'trivial' says nothing yet. " + " ".join(dict.fromkeys(remarks))
    )
    return Section("rates", "Forgetting and loss against k", text.strip(), tuple(items))


def bound_series(problem: Problem, ordering: Ordering, steps: IntArray) -> dict[str, tuple[Series, ...]]:
    """Every bound that applies as a curve, by quantity; bounds that are smallest at the last step come first.

    >>> import forgetting as fg
    >>> curves = bound_series(fg.families.two_lines(0.5), fg.orderings.WithReplacement(), np.array([3, 10, 30]))
    >>> curves["loss"][0].name
    'two-lines:random/loss'
    """
    points: dict[str, list[tuple[float, float]]] = defaultdict(list)
    known: dict[str, bounds.Bound] = {}
    for k in steps.tolist():
        for row in bounds.evaluate(problem, ordering, k):
            if row.applies and row.quantity in SYMBOL:
                points[row.bound.key].append((float(k), row.value))
                known[row.bound.key] = row.bound
    return {quantity: _curves_of(quantity, points, known) for quantity in SYMBOL}


def _curves_of(
    quantity: str, points: dict[str, list[tuple[float, float]]], known: dict[str, bounds.Bound]
) -> tuple[Series, ...]:
    """One curve per bound; a bound that is neither a statement of its own nor the tightest is minor."""
    curves = []
    for key, bound in known.items():
        if bound.quantity == quantity:
            x, y = zip(*points[key], strict=True)
            role: Role = "bound" if bound.kind == "upper" else "reference"
            curves.append(Series(key, x, y, role=role, method=KINDS[bound.kind], label=_label(bound)))
    curves.sort(key=lambda c: (c.role != "bound", -(c.x[-1] or 0), c.y[-1], known[c.name].origin != "statement"))
    shown: list[Series] = []
    for place, curve in enumerate(curves):
        own = known[curve.name].origin in ("statement", "trivial") or (place == 0 and curve.role == "bound")
        twin = any(not other.minor and (other.x, other.y) == (curve.x, curve.y) for other in shown)
        shown.append(replace(curve, minor=not own or twin))
    return tuple(shown)


def _label(bound: bounds.Bound) -> str:
    """The title of a bound, with its source unless that is the paper."""
    cited = re.match(r"[A-Z][^,(]*? \d{4}", bound.source)
    who = f" [{cited[0]}]" if cited and cited[0] != PAPER else ""
    kind = {"upper": "", "lower": ", worst case", "rate": ""}[bound.kind]
    return bound.title + who + kind + (", rate only" if bound.status == "rate only" else "")


def _steps(settings: Settings, ordering: Ordering) -> tuple[IntArray, Expectation]:
    limit = ordering.limit(settings.problem.num_tasks)
    steps = spread_steps(settings.k if limit is None else min(limit, settings.k), settings.points)
    return steps, expected(settings.problem, ordering, steps, settings.seed, ("loss", "forgetting"))


def _floor(series: tuple[Series, ...]) -> float:
    return ROUNDING * max((value for curve in series for value in curve.y if value is not None), default=1.0)


def _comparison(settings: Settings, results: list[tuple[Ordering, IntArray, Expectation]], quantity: str) -> Curves:
    series = tuple(
        expected_series(result, quantity, ordering_name(ordering), group)
        for group, (ordering, _, result) in enumerate(results)
    )
    return Curves(
        quantity,
        f"Expected {quantity}, by ordering",
        f"E {SYMBOL[quantity]} on {settings.name}: "
        + "; ".join(f"{curve.name} by {curve.method}" for curve in series)
        + ".",
        "k, tasks learned",
        f"expected {quantity}",
        series,
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
    limits: tuple[Series, ...],
    group: int,
) -> Curves:
    name = ordering_name(ordering)
    word = "exact" if result.exact else "simulated"
    main = expected_series(result, quantity, f"{word} {'expectation' if bands else 'value'}", group)
    series = (main, *((bands[quantity],) if quantity in bands else ()), *limits)
    return Curves(
        f"{quantity}-{ordering_key(ordering)}",
        f"{quantity.capitalize()}, {name}, with its bounds",
        f"{word.capitalize()} {quantity} ({main.method}) and every guarantee that applies ({len(limits)} of them).",
        "k, tasks learned",
        f"{quantity}",
        series,
        floor=_floor(series),
    )


def _rows(
    ordering: Ordering, steps: IntArray, result: Expectation, limits: dict[str, tuple[Series, ...]]
) -> list[tuple[Any, ...]]:
    rows = []
    for quantity in SYMBOL:
        best = [s for s in limits.get(quantity, ()) if s.role == "bound" and s.x[-1] == steps[-1]]
        tightest = min(best, key=lambda curve: curve.y[-1] or 0.0, default=None)
        rows.append(
            (
                ordering_name(ordering),
                int(steps[-1]),
                quantity,
                float(np.atleast_1d(result.values[quantity])[-1]),
                result.method,
                "" if tightest is None else tightest.name,
                None if tightest is None else tightest.y[-1],
            )
        )
    return rows
