"""The sources of the statements as BibTeX, and the entries of a bound, a claim or a source.

The entries are in `sources.bib`, with a blank line between two of them; statements name a source by its authors and its
year. Keys are those of the paper's own bibliography. An entry holds what is known for certain about a publication, and
no more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from forgetting._version import __version__
from forgetting.core.arrays import as_kind
from forgetting.core.text import nearest
from forgetting.errors import InvalidInputError
from forgetting.theory.numbering import folded
from forgetting.theory.registry import all_halves, label_of
from forgetting.theory.statement import Statement


@dataclass(frozen=True)
class SourceEntry:
    """A publication: its key in BibTeX, how statements name it, and its entry.

    >>> SOURCES["lan2012optimal"].name
    'Lan 2012'
    """

    key: str
    name: str
    bibtex: str


SOFTWARE = "forgetting"  # the key of this library
#: words in the source of a statement that stand for this library
OWN = ("docs/new-bounds.md", "docs/one-over-k.md", "docs/schedules.md", "steps do not lengthen the error")


def _source(entry: str) -> SourceEntry:
    """The source of an entry, named after its authors without accents, and its year."""
    key = entry.partition("{")[2].partition(",")[0]
    fields = dict(re.findall(r"^  (\w+) += \{(.*?)\},?$", entry, re.DOTALL | re.MULTILINE))
    plain = re.sub(r"\{\\\W?(\w)\}", r"\1", fields["author"])
    first, *others = (" ".join(author.partition(",")[0].split()) for author in plain.split(" and "))
    also = "" if not others else f" and {others[0]}" if len(others) == 1 else " et al."
    return SourceEntry(key, f"{first}{also} {fields['year']}", entry)


def _named_apart(sources: Iterable[SourceEntry]) -> Iterator[SourceEntry]:
    """The sources; of several by the same authors in the same year the later ones have the letters b, c, ..."""
    names: Counter[str] = Counter()
    for source in sources:
        names[source.name] += 1
        letter = chr(ord("a") + names[source.name] - 1)
        yield source if letter == "a" else replace(source, name=source.name + letter)


_ENTRIES = Path(__file__).with_name("sources.bib").read_text(encoding="utf-8").strip().split("\n\n")
SOURCES = {source.key: source for source in _named_apart(map(_source, _ENTRIES))}


def software_entry() -> SourceEntry:
    """This library as a source, with its version.

    >>> print(software_entry().bibtex.splitlines()[0])
    @misc{forgetting,
    """
    entry = (
        "@misc{forgetting,\n"
        "  author    = {{The forgetting developers}},\n"
        "  title     = {forgetting: the reference toolkit for continual linear models},\n"
        f"  note      = {{Python package, version {__version__}}},\n"
        "  year      = {2026}\n"
        "}"
    )
    return SourceEntry(SOFTWARE, SOFTWARE, entry)


def sources_in(words: str) -> tuple[SourceEntry, ...]:
    """The sources that the words name, in the order in which they do; empty if they name none that is known.

    >>> [source.key for source in sources_in("Lan 2012, as quoted in Table 3 of Evron et al. 2026")]
    ['lan2012optimal', 'evron2026continual']
    """
    matches = {source: re.search(rf"{re.escape(source.name)}\b", words) for source in SOURCES.values()}
    places = {source: -1 if match is None else match.start() for source, match in matches.items()}
    places |= {software_entry(): max(words.find(own) for own in OWN)}
    return tuple(sorted((source for source, place in places.items() if place >= 0), key=lambda source: places[source]))


def check_entry(words: str, where: str) -> str:
    """The words, if they are one entry of BibTeX or several; an error says what is missing.

    >>> check_entry("Newer 2027", "newer2027/loss")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: newer2027/loss: bibtex must be an entry such as @article{newer2027, ...}, ...
    """
    if not re.match(r"\s*@\w+\s*\{\s*[^\s,{}]+\s*,", words) or words.count("{") != words.count("}"):
        raise InvalidInputError(
            f"{where}: bibtex must be an entry such as @article{{newer2027, ...}}, braces in pairs; got {words!r:.60}"
        )
    return words.strip()


def bibtex(key: Any) -> str:
    """The sources of a bound or a claim as BibTeX: first where it is stated, then who quotes it or what it builds on.

    Args:
        key: a bound or a claim, or a row of `evaluate`; the key of a bound (`thm:cl_by_sgd_main/loss`), the label of a
            claim (`lem:regret_bound`), the number of a statement in the PDF of the paper (`Theorem 8`, `Table 1`), the
            key of a source (`evron2022catastrophic`), or `forgetting` for this library.

    >>> import forgetting as fg
    >>> print(fg.bounds.cite("strohmer2009:single rows/error"))
    @article{strohmer2009randomized,
      author    = {Strohmer, Thomas and Vershynin, Roman},
      title     = {A Randomized {Kaczmarz} Algorithm with Exponential Convergence},
      journal   = {Journal of Fourier Analysis and Applications},
      volume    = {15},
      number    = {2},
      pages     = {262--278},
      year      = {2009}
    }
    """
    return "\n\n".join(entries(key))


def entries(key: Any) -> tuple[str, ...]:
    """The entries of `bibtex`, one by one."""
    given = key if isinstance(key, Statement) else getattr(key, "bound", key)  # of a row
    if isinstance(given, Statement):
        return _of_all([given], given.key)
    as_kind(given, str, "a bound, a claim, a row of bounds, or the key of a bound, a claim or a source")
    key = given
    if key in SOURCES or key == SOFTWARE:
        return ((software_entry() if key == SOFTWARE else SOURCES[key]).bibtex,)
    if folded(key) in (("table", "1"), ("table", "2"), ("table", "3")):
        return (SOURCES["evron2026continual"].bibtex,)
    key = label_of(key)
    halves = [(bound, claim or bound) for bound, claim in all_halves()]
    known = [(words, words.label if bound is None else bound.key) for bound, words in halves if words is not None]
    chosen = [words for words, name in known if key in (words.label, name)]
    if not chosen:
        keys = dict.fromkeys((SOFTWARE, *SOURCES, *(name for _, name in known)))
        raise InvalidInputError(f"no bound, claim or source {key!r:.60}{nearest(key, keys)}")
    return _of_all(chosen, key)


def _of_all(chosen: Sequence[Statement], key: str) -> tuple[str, ...]:
    """The entries of several statements."""
    sources = tuple(dict.fromkeys(entry for statement in chosen for entry in _of_statement(statement)))
    if not sources:
        raise InvalidInputError(
            f"{key}: its source, {chosen[0].source!r:.80}, has no BibTeX entry; declare the bound with bibtex="
        )
    return sources


def _of_statement(statement: Statement) -> list[str]:
    given = "" if statement.bound is None else statement.bound.bibtex.strip()
    return ([given] if given else []) + [source.bibtex for source in sources_in(statement.source)]
