"""The BibTeX entries of a bound, a claim or a source."""

from __future__ import annotations

from forgetting.core.arrays import as_kind
from forgetting.core.text import nearest
from forgetting.errors import InvalidInputError
from forgetting.theory.bibliography import SOFTWARE, SOURCES, software_entry, sources_in
from forgetting.theory.statement import Statement, all_statements

__all__ = ["bibtex", "entries"]


def bibtex(key: str) -> str:
    """The sources of a bound or a claim as BibTeX: first where it is stated, then who quotes it or what it builds on.

    Args:
        key: of a bound (`thm:cl_by_sgd_main/loss`), the label of a claim (`lem:regret_bound`), the key of a source
            (`evron2022catastrophic`), or `forgetting` for this library.

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


def entries(key: str) -> tuple[str, ...]:
    """The entries of `bibtex`, one by one."""
    as_kind(key, str, "the key of a bound, a claim or a source")
    if key in SOURCES or key == SOFTWARE:
        return ((software_entry() if key == SOFTWARE else SOURCES[key]).bibtex,)
    chosen = [
        one
        for one in all_statements()
        if key == one.label or (one.bound is not None and key in (one.bound.key, one.bound.label))
    ]
    if not chosen:
        keys = dict.fromkeys(
            (SOFTWARE, *SOURCES, *(one.bound.key if one.bound else one.label for one in all_statements()))
        )
        raise InvalidInputError(f"no bound, claim or source {key!r:.60}{nearest(key, keys)}")
    found = tuple(dict.fromkeys(entry for statement in chosen for entry in _of_statement(statement)))
    if not found:
        raise InvalidInputError(
            f"{key}: its source, {chosen[0].source!r:.80}, has no BibTeX entry; declare the bound with bibtex="
        )
    return found


def _of_statement(statement: Statement) -> list[str]:
    given = "" if statement.bound is None else statement.bound.bibtex.strip()
    return ([given] if given else []) + [source.bibtex for source in sources_in(statement.source)]
