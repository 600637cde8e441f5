"""Sections of the report: one function in one file each, found by its decorator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

from forgetting.core.arrays import as_function
from forgetting.core.registry import Registry
from forgetting.report.document import Section
from forgetting.report.settings import Settings, Step

__all__ = ["SectionMaker", "section", "section_makers"]

LAST = 1000
_registry: Registry[SectionMaker] = Registry("section")
Make = Callable[[Settings, Step], Section]


@dataclass(frozen=True)
class SectionMaker:
    """The function that makes a section, and its place in the report.

    Attributes:
        key: the key of the section, which selects the section in a config and on the command line.
        name: what the progress bar calls the work.
        make: settings and a function that reports progress, as (name, done, total) -> the section.
        place: sections are shown in the order of this number.
        summary: the section -> findings for the summary of the report, one sentence each.
        opening: the settings and the section -> the sentences that open the report.
        demonstration: whether the section is about made-up tasks, and not about the problem of the report.
    """

    key: str
    name: str
    make: Make
    place: int
    summary: Callable[[Section], list[str]]
    opening: Callable[[Settings, Section], list[str]]
    demonstration: bool


def section(
    key: str,
    name: str = "",
    *,
    place: int = LAST,
    summary: Callable[[Section], list[str]] = lambda _: [],
    opening: Callable[[Settings, Section], list[str]] = lambda *_: [],
    demonstration: bool = False,
) -> Callable[[Make], Make]:
    """Make a function known as a section of every report; see `SectionMaker` for the arguments.

    >>> from forgetting.report import Section
    >>> @section("sizes", "counting")
    ... def sizes(settings, progress):
    ...     return Section("sizes", "Sizes", f"There are {settings.problem.num_tasks} tasks.", ())
    >>> "sizes" in section_makers()
    True
    >>> _registry.remove("sizes")
    """

    def decorate(make: Make) -> Make:
        if not as_function(make, "a section").__module__.startswith("forgetting."):
            section_makers()  # so that no section from elsewhere takes a name of ours
        again = key in _registry and _registry.get(key).make.__module__ == make.__module__
        maker = SectionMaker(key, name or key, make, place, summary, opening, demonstration)
        _registry.add(key, maker, replace=again)
        return make

    return decorate


def section_makers(chosen: tuple[str, ...] = ()) -> dict[str, SectionMaker]:
    """The makers of all sections, or of those whose keys are chosen, in the order of the page.

    >>> list(section_makers())[:3], list(section_makers(("claims", "rates")))
    (['rates', 'guarantees', 'reductions'], ['rates', 'claims'])
    >>> section_makers(("rats",))
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: no section 'rats'; did you mean 'rates'? There are ...
    """
    from forgetting.report import sections

    for module in iter_modules(sections.__path__, f"{sections.__name__}."):
        import_module(module.name)
    makers = [_registry.get(key) for key in chosen or _registry]
    return {maker.key: maker for maker in sorted(makers, key=lambda maker: (maker.demonstration, maker.place))}
