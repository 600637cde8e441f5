"""The paper's three tables, evaluated, and the map of which bound is tightest where."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from forgetting import bounds
from forgetting.errors import ForgettingError
from forgetting.figures.items import Band, Item, Regions, Table
from forgetting.report.document import Section
from forgetting.report.settings import Settings, Step, no_step, section

MOST = 10**8  # steps
LARGEST = 10**9  # dimensions
ROWS = 33
TRIVIAL = "the trivial bound"
TITLES = {
    "regression": "Table 1: continual regression",
    "classification": "Table 2: continual classification",
    "sgd": "Table 3: last-iterate SGD",
}


@section("guarantees", place=3)
def guarantees_section(settings: Settings, _: Step = no_step) -> Section:
    """Three tables, and maps of the tightest guarantee at the problem's own number of tasks."""
    try:
        numbers = bounds.Setting.of(settings.problem)
    except ForgettingError:
        numbers = bounds.Setting(T=settings.problem.num_tasks, d=settings.problem.dim)
    scale = numbers.scale
    rows = min(settings.points, ROWS)
    k = settings.k
    items: list[Item] = [*(bounds_table(paper_table(name, k, numbers if name != "sgd" else None)) for name in TITLES)]
    text = (
        f"Each cell shows the rate as the paper prints it and its value, constants included, at k = {k}, "
        f"T = {numbers.T}{'' if numbers.d is None else f', d = {numbers.d}'} and |w*|^2 R^2 = {scale:.4g} (the numbers "
        "of this problem)."
    )
    if numbers.rank_avg is not None:
        maps = [
            phase_diagram(ordering, quantity, settings.problem.num_tasks, numbers.rank_avg, numbers.d, k, rows)
            for ordering in ("with replacement", "without replacement")
            for quantity in ("loss", "forgetting")
        ]
        telling = [figure for figure in maps if set(figure.names) != {TRIVIAL}]
        items += telling
        text += (
            f" The maps show, for T = {numbers.T} tasks of average rank {numbers.rank_avg:g}, from which k on each "
            "statement says more than the others, and more than the trivial bound, which holds in any order."
        )
        silent = sorted({figure.title.rpartition(", ")[2] for figure in maps if figure not in telling})
        if silent:
            text += (
                f" {' and '.join(silent).capitalize()}, no guarantee on so few tasks says more than the trivial bound."
            )
    return Section("guarantees", "The guarantees, evaluated", text, tuple(items))


def paper_table(name: str, k: int | None, numbers: bounds.Setting | None) -> bounds.Table:
    """A table of the paper: in symbols if k is None, else with the numbers of a setting at k steps.

    Without a setting, the table of SGD has the numbers of the paper's reductions: eta = beta = G = 1 and sigma = 0.
    """
    if k is None:
        return bounds.table(name)
    if numbers is None:
        return bounds.table("sgd", k=k, eta=1.0, beta=1.0, sigma=0.0, G=1.0)
    if name == "classification":  # Table 2 needs T and |w*|^2 R^2 alone
        plain: Any = {"T": numbers.T, "dist_sq": numbers.dist_sq, "radius": numbers.radius}
        numbers = bounds.Setting(**plain, problem="classification")
    return bounds.table(name, numbers, k)


def bounds_table(table: bounds.Table) -> Table:
    """A table of the paper as rows of words, each formula with its number.

    >>> import forgetting as fg
    >>> bounds_table(fg.bounds.table("classification")).rows[1][1]
    '1/k^(1/4)'
    """
    shown, title = table.to_table(), TITLES[table.name]
    return replace(shown, key=f"table-{table.name}", title=title, caption=table.caption, notes=table.footnotes)


@cache
def phase_diagram(
    ordering: str, quantity: str, T: int, rank_avg: float, d: int | None = None, k: int | None = None, rows: int = ROWS
) -> Regions:
    """A map of the tightest stated bound over k and the dimension, for T tasks of this average rank.

    The numbers d and k mark a place. A statement has the same colour in every map.

    >>> phase_diagram("with replacement", "loss", T=10**12, rank_avg=1, rows=3).names
    ('the trivial bound', 'Theorem 8, parameter-dependent rate', 'last iterate at rate 1/k')
    """
    bands = []
    smallest = max(2, math.ceil(rank_avg))
    for dim in np.geomspace(smallest, max(LARGEST, 10 * (d or 1)), rows):
        stretches = bounds.crossovers(
            d=round(dim), T=T, rank_avg=rank_avg, orderings=(ordering,), quantities=(quantity,), rows="stated",
            second_hand=False, up_to=MOST,
        )  # fmt: skip
        bands += [
            Band(float(dim), float(stretch.first), float(stretch.last or MOST), stretch.bound.name)
            for stretch in stretches
        ]
    stated = [b for b in bounds.all_bounds() if b.kind == "upper" and b.origin in ("statement", "trivial")]
    place = {name: group for group, name in enumerate(dict.fromkeys(bound.name for bound in stated))}
    place[TRIVIAL] = -1
    names = tuple(sorted({band.name for band in bands}, key=lambda name: place[name]))
    at = None if d is None or k is None or (ordering == "without replacement" and k > T) else (float(k), float(d))
    return Regions(
        f"phases-{quantity}-{ordering.replace(' ', '-')}",
        f"Tightest bound on {quantity}, {ordering}",
        f"Stated bounds with known constants, for T = {T} tasks of average rank {rank_avg:g}: to the left nothing is "
        "known but the trivial |w*|^2 R^2 / 2." + (" The star is this problem." if at else ""),
        "k, tasks learned",
        "d, dimension",
        tuple(bands),
        names,
        at,
        tuple(place[name] for name in names),
    )
