"""From settings to a report: one section after the other, or several at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from forgetting._workers import run_parts
from forgetting.figures.items import Curves, Series
from forgetting.report.document import Report, Section
from forgetting.report.provenance import preparation_of, problem_hash, versions
from forgetting.report.section_registry import section_makers
from forgetting.report.settings import Settings, Step, no_step
from forgetting.tasks.problem import no_common_solution

__all__ = ["build_report"]

SLOWEST = ("claims", "rates")  # sections that begin first where several are made at the same time
LEAD = "forgetting"  # the key of the figure that opens the page
DEMONSTRATIONS = "Demonstrations on made-up tasks"


@dataclass(frozen=True)
class _Part:
    """A section to be made, perhaps in another process."""

    key: str
    settings: Settings


@dataclass(frozen=True)
class _Made:
    """A section, what it adds to the top of the page, and how long it took."""

    section: Section
    opening: tuple[str, ...]
    findings: tuple[str, ...]
    seconds: float


def build_report(settings: Settings, progress: Step = no_step, processes: int = 1) -> Report:
    """Compute every section; `progress(name, done, total)` is called before each, and within.

    With several processes, sections are made at the same time, with the same result, and `progress` is called as they
    are finished. Sections and problems of your own must then be importable, as for `multiprocessing`.

    >>> import forgetting as fg
    >>> small = Settings(fg.families.two_lines(0.7), "two lines", k=8, points=3, runs=20, sections=("rates", "plane"))
    >>> report = build_report(small)
    >>> [section.key for section in report.sections]
    ['rates', 'plane']
    """
    began = time.monotonic()
    makers = section_makers(settings.sections)
    made = dict(_all_made(settings, list(makers), progress, processes))
    progress("done", len(makers), len(makers))
    parts = [made[key] for key in makers]
    sections = tuple(part.section for part in parts)
    meta = {
        "problem": settings.name,
        "sha256": problem_hash(settings.problem),
        **preparation_of(settings.problem),
        "seed": settings.seed,
        "method": {series.name: series.method for series in _main_curves(sections)},
        "versions": versions(),
        "settings": {name: getattr(settings, name) for name in ("k", "points", "runs", "hunt")}
        | {"orderings": [str(ordering) for ordering in settings.orderings], "eps": list(settings.eps)},
        "seconds": {maker.name: made[key].seconds for key, maker in makers.items()}
        | {"total": round(time.monotonic() - began, 2)},
    }
    opening = [*no_common_solution(settings.problem), *(line for part in parts for line in part.opening)]
    findings = tuple(line for part in parts for line in part.findings)
    lead = next((item.key for section in sections for item in section.items if item.key == LEAD), "")
    return Report(f"Forgetting on {settings.name}", sections, meta, tuple(opening), findings, lead)


def _all_made(settings: Settings, keys: list[str], progress: Step, processes: int) -> Iterator[tuple[str, _Made]]:
    """The sections by their keys; in several processes those that take longest come first."""
    names = {key: maker.name for key, maker in section_makers(tuple(keys)).items()} if keys else {}
    if processes == 1:
        for place, key in enumerate(keys):
            progress(names[key], place, len(keys))

            def within(name: str, _done: int, _of: int, outer: str = names[key], place: int = place) -> None:
                progress(f"{outer}: {name}", place, len(keys))

            yield key, _make(_Part(key, settings), within)
        return
    order = sorted(keys, key=lambda key: key not in SLOWEST)
    for done, (place, made) in enumerate(run_parts(_make, [_Part(key, settings) for key in order], processes)):
        progress(names[order[place]], done, len(keys))
        yield order[place], made


def _make(part: _Part, progress: Step = no_step) -> _Made:
    """Make a section."""
    start = time.monotonic()
    maker = section_makers((part.key,))[part.key]
    section = maker.make(part.settings, progress)
    if maker.demonstration and not section.part:
        section = replace(section, part=DEMONSTRATIONS)
    findings = maker.summary(section)
    if section.missing:
        findings = [*findings, f"{section.title}: left out, {section.missing}"]
    opening = maker.opening(part.settings, section)
    return _Made(section, tuple(opening), tuple(findings), round(time.monotonic() - start, 2))


def _main_curves(sections: tuple[Section, ...]) -> tuple[Series, ...]:
    figure = next((item for section in sections for item in section.items if item.key == LEAD), None)
    curves = figure.series if isinstance(figure, Curves) else ()
    return tuple(curve for curve in curves if curve.role in ("exact", "simulated"))
