"""The making of a report from its settings: one section after the other, or several at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from forgetting.figures.items import Curves, Series
from forgetting.files.json_and_toml import finite
from forgetting.files.records import typed
from forgetting.files.store import code_digest
from forgetting.report.document import Report, Section
from forgetting.report.provenance import preparation_of, problem_hash, versions
from forgetting.report.settings import Settings, Step, no_step, section_makers
from forgetting.studies.study import Study
from forgetting.tasks.problem import no_common_solution

SLOWEST = ("claims", "rates")  # sections that begin first where several are made at the same time
LEAD = "forgetting"  # the key of the figure that opens the page
DEMONSTRATIONS = "Demonstrations on made-up tasks"


def build_report(settings: Settings, progress: Step = no_step, processes: int = 1, store: Path | None = None) -> Report:
    """Compute every section; `progress(name, done, total)` is called before each, and within.

    With several processes, sections are made at the same time, with the same result, and `progress` is called as they
    are finished. Sections and problems of your own must then be importable, as for `multiprocessing`. `store` is a file
    where finished sections are kept, and looked for first.

    >>> import forgetting as fg
    >>> small = Settings(fg.families.two_lines(0.7), "two lines", k=8, points=3, runs=20, sections=("rates", "plane"))
    >>> report = build_report(small)
    >>> [section.key for section in report.sections]
    ['rates', 'plane']
    """
    began = time.monotonic()
    makers = section_makers(settings.sections)
    made = _all_made(settings, list(makers), progress, processes, store)
    progress("done", len(makers), len(makers))
    parts = [made[key] for key in makers]
    sections = tuple(typed(Section, part["section"], "a section") for part in parts)
    meta = {
        "problem": settings.name,
        "sha256": problem_hash(settings.problem),
        **preparation_of(settings.problem),
        "seed": settings.seed,
        "method": {series.name: series.method for series in _main_curves(sections)},
        "versions": versions(),
        "settings": {name: getattr(settings, name) for name in ("k", "points", "runs", "hunt")}
        | {"orderings": [str(ordering) for ordering in settings.orderings], "eps": list(settings.eps)},
        "seconds": {maker.name: made[key]["seconds"] for key, maker in makers.items()}
        | {"total": round(time.monotonic() - began, 2)},
    }
    opening = [line for part in parts for line in part["opening"]]
    said = (line for part in parts for line in part["findings"])
    findings = (*no_common_solution(settings.problem), *said)
    lead = next((item.key for section in sections for item in section.items if item.key == LEAD), "")
    return Report(settings.title, sections, meta, tuple(opening), findings, lead, subtitle=settings.name)


def _all_made(
    settings: Settings, keys: list[str], progress: Step, processes: int, store: Path | None
) -> dict[str, dict[str, Any]]:
    """The sections by their keys; in several processes those that take longest come first."""
    if not keys:
        return {}
    order = keys if processes == 1 else sorted(keys, key=lambda key: key not in SLOWEST)
    names = {key: maker.name for key, maker in section_makers(tuple(keys)).items()}
    done = 0

    def finished(cell: Mapping[str, Any], rows: Any) -> None:
        nonlocal done
        done += 1
        if processes > 1:
            progress(names[cell["section"]], done - 1, len(keys))

    def within(key: str, name: str) -> None:
        progress(f"{names[key]}: {name}" if name else names[key], done, len(keys))

    identity = {"problem": problem_hash(settings.problem), "settings": _plain(settings), "code": code_digest()}
    cells = [{"section": key, **identity, "seed": settings.seed} for key in order]
    study = Study(cells, store, function=_Maker(settings, within))
    study.run(processes, progress=False, retry=True, check=True, finished=finished)
    return dict(zip(order, study.results(), strict=True))


class _Maker:
    """Makes sections, as the function of a study: what identifies a section stands in its cell."""

    def __init__(self, settings: Settings, within: Callable[[str, str], None]) -> None:
        self.settings, self.within, self.__qualname__ = settings, within, "section"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "within": _silent}  # another process cannot call what this one shows

    def __call__(self, section: str, problem: str, settings: Any, code: str) -> dict[str, Any]:
        start = time.monotonic()
        maker = section_makers((section,))[section]
        self.within(section, "")
        made = maker.make(self.settings, lambda name, _done, _of: self.within(section, name))
        if maker.demonstration and not made.part:
            made = replace(made, part=DEMONSTRATIONS)
        findings = maker.summary(made)
        if made.missing:
            findings = [*findings, f"{made.title}: left out, {made.missing}"]
        opening = maker.opening(self.settings, made)
        seconds = round(time.monotonic() - start, 2)
        return {
            "section": finite(asdict(made)), "opening": list(opening), "findings": list(findings), "seconds": seconds
        }  # fmt: skip


def _silent(section: str, name: str) -> None: ...


def _plain(settings: Settings) -> dict[str, Any]:
    """The settings as data, without the problem."""
    numbers = {field.name: getattr(settings, field.name) for field in fields(settings) if field.name != "problem"}
    return {**numbers, "orderings": [str(ordering) for ordering in settings.orderings], "sections": []}


def _main_curves(sections: tuple[Section, ...]) -> tuple[Series, ...]:
    figure = next((item for section in sections for item in section.items if item.key == LEAD), None)
    curves = figure.series if isinstance(figure, Curves) else ()
    return tuple(curve for curve in curves if curve.role in ("exact", "simulated"))
