"""The paper's three tables, evaluated, and the map of which bound is tightest where."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from forgetting import bounds
from forgetting.errors import ForgettingError
from forgetting.figures.items import Band, Item, Regions, Table
from forgetting.report.document import Section
from forgetting.report.section_registry import section
from forgetting.report.settings import Settings, Step, no_step

__all__ = ["bounds_table", "guarantees_section", "paper_table", "phase_diagram"]

TASKS = 10**12
MOST = 10**8
ROWS = 33
TITLES = {
    "regression": "Table 1: continual regression",
    "classification": "Table 2: continual classification",
    "sgd": "Table 3: last-iterate SGD",
}


@section("guarantees", place=3)
def guarantees_section(settings: Settings, _: Step = no_step) -> Section:
    """Three tables and four phase diagrams."""
    try:
        numbers = bounds.Setting.of(settings.problem)
    except ForgettingError:
        numbers = bounds.Setting(T=settings.problem.num_tasks, d=settings.problem.dim)
    scale = numbers.scale
    rows = min(settings.points, ROWS)
    k = settings.k
    items: list[Item] = [
        *(bounds_table(paper_table(name, k, numbers if name != "sgd" else None)) for name in TITLES),
        phase_diagram("with replacement", "loss", rows),
        phase_diagram("with replacement", "forgetting", rows),
        phase_diagram("without replacement", "loss", rows),
        phase_diagram("without replacement", "forgetting", rows),
    ]  # fmt: skip
    text = (
        f"Each cell shows the rate as the paper prints it and its value, constants included, at k = {k}, "
        f"T = {numbers.T}, d = {numbers.d} and |w*|^2 R^2 = {scale:.4g} (the numbers of this problem). The maps show "
        "from where on each statement says more than the others, and more than the trivial 1/2."
    )
    return Section("guarantees", "The guarantees, evaluated", text, tuple(items))


def paper_table(name: str, k: int | None, numbers: bounds.Setting | None) -> bounds.Table:
    """A table of the paper: in symbols if k is None, else with the numbers of a setting at k steps.

    Without a setting, the table of SGD has the numbers of the paper's reductions: eta = beta = G = 1 and sigma = 0.
    """
    if k is None:
        return bounds.table(name)  # type: ignore[arg-type]
    if numbers is None:
        return bounds.table("sgd", k=k, eta=1.0, beta=1.0, sigma=0.0, G=1.0)
    if name == "classification":  # Table 2 needs T and |w*|^2 R^2 alone
        plain: Any = {"T": numbers.T, "dist_sq": numbers.dist_sq, "radius": numbers.radius}
        numbers = bounds.Setting(**plain, problem="classification")
    return bounds.table(name, numbers, k)  # type: ignore[arg-type]


def bounds_table(table: bounds.Table) -> Table:
    """A table of the paper as rows of words, each formula with its number.

    >>> import forgetting as fg
    >>> bounds_table(fg.bounds.table("classification")).rows[1][1]
    '1/k^(1/4)'
    """
    numbers = table.numbers()
    rows = []
    for i, row in enumerate(table.rows):
        cells = []
        for j, one in enumerate(row):
            number = numbers[i][j] if numbers else ""
            words = f"{one.text} {one.mark}".strip()
            cells.append(f"{words}\n{number}" if number else words)
        rows.append(tuple(cells))
    return Table(f"table-{table.name}", TITLES[table.name], table.caption, table.columns, tuple(rows), table.footnotes)


@cache
def phase_diagram(ordering: str, quantity: str, rows: int = ROWS) -> Regions:
    """A map of the tightest stated bound over k and d, for very many tasks of rank 1.

    The names are in the order of the registry, so that a colour means the same in every map.

    >>> phase_diagram("with replacement", "loss", rows=3).names
    ('trivial', 'thm:random_convergence_rate', 'thm:cl_by_sgd_main')
    """
    bands = []
    for d in np.geomspace(2, TASKS, rows):
        found = bounds.crossovers(
            d=round(d), T=TASKS, rank_avg=1, orderings=(ordering,), quantities=(quantity,), rows="stated",
            second_hand=False, up_to=MOST,
        )  # fmt: skip
        bands += [Band(float(d), float(one.first), float(one.last or MOST), one.bound.label) for one in found]
    place = {bound.label: i for i, bound in reversed(list(enumerate(bounds.all_bounds())))}
    order = tuple(sorted({band.name for band in bands}, key=lambda name: (name != "trivial", place[name])))
    return Regions(
        f"phases-{quantity}-{ordering.replace(' ', '-')}",
        f"Tightest bound on {quantity}, {ordering}",
        "Stated bounds with known constants, for T = 10^12 tasks of rank 1: to the left nothing is known but the "
        "trivial |w*|^2 R^2 / 2.",
        "k, tasks learned",
        "d, dimension",
        tuple(bands),
        order,
    )
