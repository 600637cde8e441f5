"""The settings of a report (the problem, the orderings, how much work to spend), and the registry of its sections."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from importlib import import_module
from pkgutil import iter_modules

from forgetting.core.arrays import as_count, as_function, as_number, as_seed
from forgetting.core.registry import Registry
from forgetting.errors import InvalidInputError
from forgetting.orderings import Cyclic, Ordering, WithoutReplacement, WithReplacement, laws
from forgetting.orderings.base import as_ordering
from forgetting.report.document import Section
from forgetting.report.takeaway import PASSES
from forgetting.tasks import Problem, families

USUAL_STEPS = 1000
#: called as (name, done, total) when a part of the work begins
Step = Callable[[str, int, int], None]


def no_step(name: str, done: int, total: int) -> None:
    """Report no progress."""


# ------------------------------------------------------------------------------------------------------------- settings


def default_problem(seed: int = 0) -> Problem:
    """Twelve random tasks of rank 2 in 20 dimensions, of radius 1 and condition 3: small enough to be exact everywhere.

    >>> default_problem()
    RegressionTasks(T=12, d=20, rows=24)
    """
    return families.gaussian(T=12, d=20, rank=2, seed=seed, condition=3.0)


def ordering_name(ordering: Ordering) -> str:
    """The ordering in words, with the parameters that differ from their defaults.

    >>> ordering_name(WithoutReplacement()), ordering_name(WithReplacement(p=[1, 3]))
    ('without replacement', 'with replacement, p=(0.25, 0.75)')
    """
    name = type(ordering).__name__
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()
    unusual = []
    for parameter in fields(ordering):
        value = getattr(ordering, parameter.name)
        if value != parameter.default:
            text = str(value)
            unusual.append(f"{parameter.name}={text if len(text) <= 24 else text[:21] + '...'}")
    return ", ".join([words, *unusual])


def ordering_key(ordering: Ordering) -> str:
    """The name of an ordering as a part of names of files.

    >>> from forgetting.orderings import Explicit
    >>> ordering_key(Explicit((0, 1)))
    'explicit-seq-0-1'
    """
    return re.sub("[^a-z0-9]+", "-", ordering_name(ordering).lower()).strip("-")[:60]


@dataclass(frozen=True)
class Settings:
    """A problem, the orderings to compare on it, and how much work to spend.

    Attributes:
        problem: tasks of any kind.
        name: what the report calls the problem.
        orderings: the orderings that are compared.
        k: the largest number of steps; orderings that end earlier are shown as far as they go. If left out, the
            multiple of the number of tasks that is nearest to 1000, since guarantees for cycles are about whole cycles,
            and no fewer than three passes, so that a cycle is seen to repeat.
        points: values of k per curve, and of d per map.
        runs: simulated runs for the bands.
        seed: decides all randomness.
        hunt: evaluations per claim in the search for counterexamples.
        eps: the catastrophic families, in decreasing order.
        sections: the keys of the sections to make; all sections if empty.

    >>> Settings(default_problem(), k=100).k, Settings(default_problem()).k
    (100, 996)
    """

    problem: Problem
    name: str = "gaussian(T=12, d=20, rank=2, condition=3)"
    orderings: tuple[Ordering, ...] = (WithReplacement(), WithoutReplacement(), Cyclic())
    k: int = None  # type: ignore[assignment]  # a number from __post_init__ on
    points: int = 40
    runs: int = 400
    seed: int = 0
    hunt: int = 4
    eps: tuple[float, ...] = field(default=(6.0, 3.0, 2.0, 1.4, 1.0, 0.7, 0.5, 0.4, 0.3))
    sections: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.k is None:
            T = self.problem.num_tasks
            object.__setattr__(self, "k", T * max(round(USUAL_STEPS / T), PASSES))
        for name, least in (("k", 3), ("points", 2), ("runs", 2), ("hunt", 1)):
            object.__setattr__(self, name, as_count(getattr(self, name), name, least=least))
        as_seed(self.seed)
        if not self.orderings:
            raise InvalidInputError("no orderings given; a report compares at least one")
        named = tuple(as_ordering(ordering, self.problem.names) for ordering in self.orderings)
        object.__setattr__(self, "orderings", named)
        keys = [ordering_key(ordering) for ordering in self.orderings]
        twice = next((place for place, key in enumerate(keys) if key in keys[:place]), None)
        if twice is not None:
            raise InvalidInputError(f"two orderings are called {ordering_name(self.orderings[twice])!r}; leave one out")
        if self.sections:
            section_makers(self.sections)
        if not self.eps:
            raise InvalidInputError("eps is empty; give at least one value for the catastrophic family")
        for eps in self.eps:
            if not 0.01 <= as_number(eps, "eps") <= 6:
                raise InvalidInputError(f"eps must be between 0.01 and 6, got {eps!r}")

    @property
    def title(self) -> str:
        """The title of the report: how many tasks, and in which orders they are learned.

        >>> Settings(default_problem()).title
        'How 12 random tasks are forgotten, in random and in cyclic order'
        """
        T, random = self.problem.num_tasks, self.name.startswith("gaussian(")  # whose tasks are random
        kinds = dict.fromkeys(_order_word(ordering) for ordering in self.orderings)
        tasks = f"{T}{' random' * random} task{'s' * (T > 1)} {'are' if T > 1 else 'is'}"
        orders = f"{' and '.join(f'in {kind}' for kind in kinds)} order" if all(kinds) else "in several orders"
        return f"How {tasks} forgotten, {orders}"


def _order_word(ordering: Ordering) -> str:
    """The kind of an order in a word; empty if there is none for it."""
    if isinstance(ordering.law, (laws.Independent, laws.Permutation, laws.Reshuffled)):
        return "random"
    return "cyclic" if isinstance(ordering.law, laws.Cycle) else ""


# ------------------------------------------------------------------------------------------------------------- sections

LAST = 1000
Make = Callable[[Settings, Step], Section]
_registry: Registry[SectionMaker] = Registry("section")


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
