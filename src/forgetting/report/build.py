"""From settings to a report: one section after the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from forgetting.report.data import Curves, Report, Section, Series, Table
from forgetting.report.provenance import problem_hash, versions
from forgetting.report.sections.equal_schemes import reductions_section
from forgetting.report.sections.guarantees import guarantees_section
from forgetting.report.sections.paths_in_the_plane import plane_section
from forgetting.report.sections.projection_limit import classification_section
from forgetting.report.sections.rates import rates_section
from forgetting.report.sections.repetition import repetition_section
from forgetting.report.sections.statements import statements_section
from forgetting.report.settings import Settings
from forgetting.tasks.problem import no_common_solution

__all__ = ["SECTIONS", "build_report"]

Step = Callable[[str, int, int], None]
SECTIONS: dict[str, Callable[[Settings], Section]] = {
    "forgetting and loss": rates_section,
    "randomness and repetition": repetition_section,
    "guarantees": guarantees_section,
    "reductions": reductions_section,
    "projections": plane_section,
    "classification": classification_section,
}


def build_report(settings: Settings, progress: Step = lambda *_: None) -> Report:
    """Compute every section; `progress(name, done, total)` is called before each.

    >>> import forgetting as fg
    >>> small = Settings(fg.families.two_lines(0.7), "two lines", k=8, points=3, runs=20, hunt=1, eps=(6.0,))
    >>> report = build_report(small)   # doctest: +SKIP
    >>> report.summary                 # doctest: +SKIP
    """
    began = time.monotonic()
    sections, seconds = [], {}
    total = len(SECTIONS) + 1
    makers: dict[str, Callable[[], Section]] = {name: partial(make, settings) for name, make in SECTIONS.items()}
    makers["claims"] = lambda: statements_section(
        settings, lambda name, done, of: progress(f"claims: {name}", total - 1, total)
    )
    for place, (name, make) in enumerate(makers.items()):
        progress(name, place, total)
        start = time.monotonic()
        sections.append(make())
        seconds[name] = round(time.monotonic() - start, 2)
    progress("done", total, total)
    meta = {
        "problem": settings.name,
        "sha256": problem_hash(settings.problem),
        "seed": settings.seed,
        "method": {one.name: one.method for one in _main_curves(sections)},
        "versions": versions(),
        "settings": {name: getattr(settings, name) for name in ("k", "points", "runs", "hunt")}
        | {"orderings": [str(ordering) for ordering in settings.orderings], "eps": list(settings.eps)},
        "seconds": {**seconds, "total": round(time.monotonic() - began, 2)},
    }
    return Report(f"Forgetting on {settings.name}", tuple(sections), meta, tuple(_summary(settings, sections)))


def _main_curves(sections: list[Section]) -> tuple[Series, ...]:
    figure = next((item for section in sections for item in section.items if item.key == "forgetting"), None)
    return figure.series if isinstance(figure, Curves) else ()


def _summary(settings: Settings, sections: list[Section]) -> list[str]:
    """The few sentences that are printed at the end."""
    lines = no_common_solution(settings.problem)
    for section in sections:
        for item in section.items:
            if isinstance(item, Table) and item.key == "last-step":
                lines += _last(item)
            if isinstance(item, Curves) and item.key == "randomness-repetition":
                lines.append(
                    "catastrophic tasks, forgetting: " + ", ".join(_end(one, item.floor) for one in item.series)
                )
            if isinstance(item, Table) and item.key == "reductions-table":
                worst = max((row[2] for row in item.rows if row[2] is not None), default=0.0)
                lines.append(f"reductions: iterates agree within {worst:.2g}")
        if section.key == "claims":
            lines.append(f"claims: {section.text}")
        if section.missing:
            lines.append(f"{section.title}: left out, {section.missing}")
    return lines


def _last(table: Table) -> list[str]:
    """One line per ordering: values, and the tightest bounds."""
    lines: dict[str, str] = {}
    for ordering, k, quantity, value, method, bound, limit in table.rows:
        start = lines.get(ordering, f"{ordering}, k = {k}, by {method}:")
        said = f" (at most {limit:.3g} by {bound})" if bound else ""
        lines[ordering] = f"{start}{',' if ordering in lines else ''} expected {quantity} {value:.3g}{said}"
    return list(lines.values())


def _end(one: Series, floor: float | None) -> str:
    value = one.y[-1] or 0.0
    words = f"below {floor:g}" if floor is not None and value < floor else f"{value:.2g}"
    return f"{one.name} {words} at k = {one.x[-1]:.0f}"
