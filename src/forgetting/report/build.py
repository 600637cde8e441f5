"""From settings to a report: one section after the other."""

from __future__ import annotations

import time

from forgetting.figures.items import Curves, Series
from forgetting.report.document import Report, Section
from forgetting.report.provenance import problem_hash, versions
from forgetting.report.section_registry import section_makers
from forgetting.report.settings import Settings, Step, no_step
from forgetting.tasks.problem import no_common_solution

__all__ = ["build_report"]


def build_report(settings: Settings, progress: Step = no_step) -> Report:
    """Compute every section; `progress(name, done, total)` is called before each.

    >>> import forgetting as fg
    >>> small = Settings(fg.families.two_lines(0.7), "two lines", k=8, points=3, runs=20, sections=("rates", "plane"))
    >>> report = build_report(small)
    >>> [section.key for section in report.sections]
    ['rates', 'plane']
    """
    began = time.monotonic()
    sections: list[Section] = []
    seconds: dict[str, float] = {}
    summary = no_common_solution(settings.problem)
    makers = section_makers(settings.sections).values()
    total = len(makers)
    for place, maker in enumerate(makers):
        progress(maker.name, place, total)
        start = time.monotonic()

        def within(name: str, _done: int, _of: int, outer: str = maker.name, place: int = place) -> None:
            progress(f"{outer}: {name}", place, total)

        made = maker.make(settings, within)
        sections.append(made)
        seconds[maker.name] = round(time.monotonic() - start, 2)
        summary += maker.summary(made)
        if made.missing:
            summary.append(f"{made.title}: left out, {made.missing}")
    progress("done", total, total)
    meta = {
        "problem": settings.name,
        "sha256": problem_hash(settings.problem),
        "seed": settings.seed,
        "method": {series.name: series.method for series in _main_curves(sections)},
        "versions": versions(),
        "settings": {name: getattr(settings, name) for name in ("k", "points", "runs", "hunt")}
        | {"orderings": [str(ordering) for ordering in settings.orderings], "eps": list(settings.eps)},
        "seconds": {**seconds, "total": round(time.monotonic() - began, 2)},
    }
    return Report(f"Forgetting on {settings.name}", tuple(sections), meta, tuple(summary))


def _main_curves(sections: list[Section]) -> tuple[Series, ...]:
    figure = next((item for section in sections for item in section.items if item.key == "forgetting"), None)
    return figure.series if isinstance(figure, Curves) else ()
