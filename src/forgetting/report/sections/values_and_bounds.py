"""Loss and forgetting against k: exact values, a band of simulated runs, and every bound that applies."""

from __future__ import annotations

from typing import Any

import numpy as np

from forgetting import bounds
from forgetting.core.arrays import IntArray
from forgetting.core.text import joined
from forgetting.dynamics.ensembles import run_many
from forgetting.dynamics.space import resolve
from forgetting.errors import NotSupportedError
from forgetting.expectation import Expectation, expect
from forgetting.figures.items import Curves, Item, Series, Table, column, spread_steps
from forgetting.orderings import Cyclic, Ordering, Reshuffled, WithoutReplacement, laws
from forgetting.report.document import Section
from forgetting.report.settings import Settings, Step, no_step, ordering_key, ordering_name, section
from forgetting.report.takeaway import PASSES, Ways
from forgetting.tasks import Problem
from forgetting.theory.curves import bound_curves, tightest_curve

SYMBOL = {"forgetting": "F(k)", "loss": "L(w_k)"}
#: rounding of the exact engines, relative to the largest value in the figure
LEAST_DRAWN = 1e-16
#: beyond this many different tasks, all their subsets take longer than a report may
SUBSETS = 14
#: the orderings of a report that names none, as parts of a sentence
ORDERS = {
    "with replacement": "if each step learns a random task (with replacement)",
    "without replacement": "in a random order (without replacement)",
    "cyclic": "in a cycle through the given order (cyclic)",
}
COLUMNS = ("ordering", "k", "quantity", "expected", "how", "tightest guarantee", "its value")


def _opening(settings: Settings, section: Section) -> list[str]:
    """What was learned, in a sentence; then what forgetting is, how much of it there is, and what is guaranteed."""
    problem = settings.problem
    tables = {item.key: item for item in section.items if isinstance(item, Table)}
    meaning = problem.loss_meaning
    return [
        _takeaway(problem, tables["ways"]),
        f"{problem.num_tasks} tasks in {problem.dim} dimensions are learned one after another; forgetting is the mean "
        "loss, at the end, of the tasks learned so far, less what it was just after each was learned"
        + (f" (a loss is {meaning})." if meaning else "."),
        _at_the_end(tables["last-step"], problem.num_tasks),
        _guaranteed(tables["last-step"]),
    ]


def _takeaway(problem: Problem, table: Table) -> str:
    given, random = table.rows
    (given_once, given_often), (random_once, random_often) = ((float(x) for x in row[1:3]) for row in (given, random))
    how = random[3]
    start = problem.loss(resolve(problem, None, None)[1].w0)
    said = Ways(given_once, given_often, random_once, random_often, start).takeaway
    return said if how == "exact" else f"{said[:-1]} (random orders: {how})."


def _at_the_end(table: Table, T: int) -> str:
    """A sentence with the forgetting after the last step of each ordering, those of as many steps together."""
    groups: dict[int, list[str]] = {}
    for name, k, quantity, value, *_ in table.rows:
        if quantity == "forgetting":
            groups.setdefault(int(k), []).append(f"{value:.2g} {ORDERS.get(str(name), f'in the order {name!r}')}")
    (k, values), *others = groups.items()
    more = [f"; after {_steps_in_words(k, T)}, {joined(values)}" for k, values in others]
    return f"After {_steps_in_words(k, T)}, expected forgetting is {joined(values)}{''.join(more)}."


def _steps_in_words(k: int, T: int) -> str:
    """A number of steps, and of passes over the tasks.

    >>> _steps_in_words(996, 12), _steps_in_words(12, 12), _steps_in_words(20, 12)
    ('996 steps (83 passes over 12 tasks)', '12 steps (one pass over 12 tasks)', '20 steps (1.7 passes over 12 tasks)')
    """
    tasks = "one task" if T == 1 else f"{T} tasks"
    passes = "one pass" if k == T else f"{k // T if k % T == 0 else round(k / T, 1):,} passes"
    return f"{k:,} step{'s' * (k > 1)} ({passes} over {tasks})"


def _guaranteed(table: Table) -> str:
    """A sentence with the guarantees on the forgetting, or on the loss if no ordering has any on the forgetting."""
    for quantity, subject in (("forgetting", "The best guarantees"), ("loss", "The best guarantees on the loss")):
        known = [f"{row[6]:.2g} ({row[0]})" for row in table.rows if row[2] == quantity and row[5]]
        if known:
            return f"{subject} allow at most {joined(known)} after these steps; the [table](#tab-last-step) names them."
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
        "Expected loss and forgetting after k steps, each of which learns one task, computed exactly where that is "
        f"possible. Shaded bands hold the middle 90 % of {settings.runs} simulated runs. Dashed curves in "
        "colour are guarantees; one above the trivial bound, which holds in any order, says nothing yet. What is "
        "dotted in gray is no guarantee on these tasks: a "
        "worst case over all tasks, or a rate whose constant is not known. " + " ".join(dict.fromkeys(remarks))
    )
    return Section("rates", "Forgetting and loss against k", text.strip(), (*compared, _ways(settings), *items, table))


def _ways(settings: Settings) -> Table:
    """The forgetting after one pass and after several, in the given order and in random orders."""
    problem, T = settings.problem, settings.problem.num_tasks
    rows = []
    for name, orderings in (
        ("the given order", (Cyclic(), Cyclic())),
        ("random orders", (WithoutReplacement(), Reshuffled())),
    ):
        results = [
            expected(problem, ordering, passes * T, settings.seed, ("forgetting",))
            for ordering, passes in zip(orderings, (1, PASSES), strict=True)
        ]
        how = next((_how(result) for result in results if not result.exact), "exact")
        rows.append((name, *(float(result.forgetting) for result in results), how))
    return Table(
        "ways",
        "Random order or repetition?",
        f"Expected forgetting after one pass over the tasks and after {PASSES}; each random pass is in a new order.",
        ("order", "one pass", f"{PASSES} passes", "how"),
        tuple(rows),
        compact=True,
    )


def expected(problem: Problem, ordering: Ordering, steps: Any, seed: int, quantities: tuple[str, ...]) -> Expectation:
    """Expected values by `expect`, simulated where exact values would take minutes.

    >>> import forgetting as fg
    >>> expected(fg.families.two_lines(0.5), fg.orderings.WithoutReplacement(), [1, 2], 0, ("loss",)).method
    'subsets'
    """
    geometry = problem.geometry
    different = problem.num_tasks if geometry is None else geometry.num_distinct
    if isinstance(ordering.law, (laws.Permutation, laws.Reshuffled)) and different > SUBSETS:
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
    means = "exact means over random orders" if all(result.exact for *_, result in results) else how
    return Curves(
        quantity,
        f"Expected {quantity}, by ordering",
        f"E {SYMBOL[quantity]}, {means}. Dashed: the smallest guarantee at each k, in the colour of its ordering.",
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
