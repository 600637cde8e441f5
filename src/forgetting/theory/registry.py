"""The one registry: every statement has one declaration, one source and one status, as a bound, as a claim or as both.

A `Bound` is the right-hand side of a statement, and a `Claim` computes both sides. `fg.bounds` and `fg.claims` are
views of the registry: the first lists statements with a bound, the second statements with a claim.
"""

from __future__ import annotations

from collections.abc import Set
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from forgetting.core.arrays import as_flag, as_kind
from forgetting.core.registry import watched
from forgetting.errors import InvalidInputError
from forgetting.theory.numbering import PAPER, folded, place_of

if TYPE_CHECKING:
    from forgetting.theory.bound import Bound
    from forgetting.theory.claim import Claim
    from forgetting.theory.statement import Statement


UNPROVED = ("refuted", "gap in the printed proof", "rate only")


class Halves(NamedTuple):
    """The right side of a statement, if it is a bound, and its check, if there is one."""

    bound: Bound | None = None
    claim: Claim | None = None


_STATEMENTS: dict[tuple[str, str | None], Halves] = watched("statement", {})


def add_statement(bound: Bound | None = None, claim: Claim | None = None, *, replace: bool = False) -> None:
    """Add a statement: a bound, a claim, or both; with `replace`, in the place of an earlier one of the same key."""
    words = claim or bound
    assert words is not None
    if bound is not None and claim is not None:
        named = bound.label, bound.source, bound.status, bound.note
        if named != (claim.label, claim.source, claim.status, claim.note):
            raise InvalidInputError(f"{bound.key} and {claim.key} are one statement, but do not say the same")
    key = words.label, words.part
    same = [
        place
        for place, other in _STATEMENTS.items()
        if bound is not None and other.bound is not None and other.bound.key == bound.key
    ]
    if not as_flag(replace, "replace"):
        if bound is not None and same:
            raise InvalidInputError(f"there is already a bound {bound.key!r}; choose another key, or give replace=True")
        if key in _STATEMENTS:
            name = claim.key if claim is not None else f"{key[0]}, {key[1]}"
            raise InvalidInputError(
                f"there is already a claim {name}; choose another label or part, or give replace=True"
            )
    for place in same:
        if place != key:
            del _STATEMENTS[place]
    _STATEMENTS[key] = Halves(bound, claim)


def all_halves() -> tuple[Halves, ...]:
    """The bound and the claim of each statement, in the order of declaration."""
    return tuple(_STATEMENTS.values())


def halves_of(statement: Statement) -> Halves:
    """The bound and the claim of a statement, given by either of them; nothing for one that is not registered."""
    return next((halves for halves in all_halves() if any(half is statement for half in halves)), Halves())


def all_statements() -> tuple[Statement, ...]:
    """All statements, in the order of declaration: the claim of those that have one, else the bound.

    >>> statement = next(one for one in all_statements() if one.label == "thm:cl_by_sgd_main")
    >>> statement.name, statement.bound.key, statement.status
    ('Theorem 10, universal rate: loss', 'thm:cl_by_sgd_main/loss', 'holds as stated')
    """
    return tuple(words for halves in all_halves() if (words := halves.claim or halves.bound) is not None)


def label_of(name: str) -> str:
    """The label of a statement that is named by its number, as in the PDF of the paper; else the name itself.

    Statements of other papers are named by authors, year and number.

    >>> label_of("thm 8"), label_of("Evron et al. 2022, Theorem 10"), label_of("lem:regret_bound")
    ('thm:random_convergence_rate', 'evron2022:alternating', 'lem:regret_bound')
    """
    wanted = folded(name)
    for statement in all_statements():
        place = place_of(statement.label, statement.source)
        if place and name != statement.label and wanted in (folded(place), folded(f"{PAPER}, {place}")):
            return statement.label
    return name


def get_bound(key: str) -> Bound:
    """The bound of this key, or the first bound of a statement that is named by its number in the PDF.

    >>> get_bound("thm:random_convergence_rate/loss").source
    'Evron et al. 2026, Theorem 8 (thm:random_convergence_rate)'
    >>> get_bound("Theorem 8").key
    'thm:random_convergence_rate/loss'
    """
    as_kind(key, str, "the key of a bound")
    bounds = {bound.key: bound for bound in all_bounds()}
    if key in bounds:
        return bounds[key]
    if (label := label_of(key)) != key:
        numbered = next((bound for bound in bounds.values() if bound.label == label), None)
        if numbered is not None:
            return numbered
    close = [known for known in bounds if key.split("/")[0] in known]
    hint = f"; did you mean {', '.join(close)}" if close else "; see fg.bounds.all_bounds()"
    raise InvalidInputError(f"no bound {key!r}{hint}")


def unregister_bound(key: str) -> None:
    """Take the statement of this bound out of the registry, with its claim if it has one."""
    bound = get_bound(key)
    _STATEMENTS.pop(next(name for name, halves in _STATEMENTS.items() if halves.bound is bound))


def all_bounds(*, quantity: str | None = None, ordering: str | None = None) -> tuple[Bound, ...]:
    """All bounds, in the order of declaration, or those on one quantity or ordering.

    >>> len(all_bounds()) > 60
    True
    >>> {b.quantity for b in all_bounds(quantity="residual")}
    {'residual'}
    """
    as_kind(quantity, str | None, "a quantity such as 'loss'")
    as_kind(ordering, str | None, "the name of an ordering")
    return tuple(
        bound
        for halves in all_halves()
        if (bound := halves.bound) is not None
        and (quantity is None or bound.quantity == quantity)
        and (ordering is None or ordering in bound.orderings or "any" in bound.orderings)
    )


def upper_bounds(
    quantity: str, problem: str, orderings: Set[str], schemes: Set[str], left_out: tuple[str, ...] = UNPROVED
) -> list[Bound]:
    """The upper bounds on a quantity that cover such problems and one of the orderings and schemes.

    Bounds of a status in `left_out` are not among them.

    >>> [bound.key for bound in upper_bounds("regret", "regression", {"cyclic", "any"}, {"projection"})]
    ['lem:regret_bound/regret', 'trivial/regret']
    """
    return [
        bound
        for bound in all_bounds(quantity=quantity)
        if bound.kind == "upper"
        and bound.status not in left_out
        and problem in bound.problems
        and not orderings.isdisjoint(bound.orderings)
        and not schemes.isdisjoint(bound.schemes)
    ]


def get_claim(label: str, part: str | None = None) -> Claim:
    """The claim of this label and part; left out, the first part, which is the statement as printed or its main half.

    The label may be the number of the statement in the PDF of the paper.

    >>> get_claim("Theorem 8").label
    'thm:random_convergence_rate'
    >>> get_claim("cor:Q spectrum", "at least 0").statement
    'every eigenvalue of Q is at least 0; checked as 1 - lambda_min <= 1'
    >>> get_claim("thm:sgd_last_iterate_main").part
    'general'
    >>> get_claim("cor:Q spectrum", "at most 2")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: cor:Q spectrum has no part 'at most 2'; it has 'at least 0', 'at most 1'
    """
    claims = {(claim.label, claim.part): claim for claim in all_claims()}
    if isinstance(label, str) and (label, part) not in claims:
        label = label_of(label)
    if isinstance(label, str) and isinstance(part, str | None) and (label, part) in claims:
        return claims[label, part]
    parts = [known for name, known in claims if isinstance(label, str) and name == label]
    if not parts:
        near = get_close_matches(str(label), dict.fromkeys(name for name, _ in claims), n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else "see fg.claims.all()"
        raise InvalidInputError(f"no claim {label!r:.80}; {hint}")
    if part is None:
        return claims[label, parts[0]]
    if parts == [None]:
        raise InvalidInputError(f"{label} has no parts; leave out part={part!r}")
    raise InvalidInputError(f"{label} has no part {part!r}; it has {', '.join(sorted(map(repr, parts)))}")


def unregister_claim(label: str, part: str | None = None) -> None:
    """Take the statement of this claim out of the registry."""
    claim = get_claim(label, part)
    _STATEMENTS.pop((claim.label, claim.part))


def all_claims(label: str | None = None) -> tuple[Claim, ...]:
    """All claims in the order of declaration, or all parts of one label.

    >>> len(all_claims()) > 50
    True
    """
    as_kind(label, str | None, "the label of a claim")
    claims = (halves.claim for halves in all_halves())
    return tuple(claim for claim in claims if claim is not None and label in (None, claim.label))


def name_by_key(key: str, part: str | None = None) -> str:
    """The name of a bound by its key, or of a claim by label and part.

    A key that is not registered here, as in a file from elsewhere, is its own name.

    >>> name_by_key("thm:cl_by_sgd_main/loss"), name_by_key("lem:Q trace"), name_by_key("newer2027", "loss")
    ('Theorem 10, universal rate', 'Lemma C.8', 'newer2027, loss')
    """
    known = _registered(key, part)
    return known.name if known is not None else key if part is None else f"{key}, {part}"


def heading_of(key: str, part: str | None = None) -> str:
    """The name of a bound or a claim, followed by its key or its label in brackets.

    >>> heading_of("thm:cl_by_sgd_main/loss"), heading_of("lem:Q trace"), heading_of("newer2027", "loss")
    ('Theorem 10, universal rate [thm:cl_by_sgd_main/loss]', 'Lemma C.8 [lem:Q trace]', 'newer2027, loss')
    """
    known = _registered(key, part)
    return name_by_key(key, part) if known is None else known.heading


def _registered(key: str, part: str | None) -> Statement | None:
    for bound, claim in all_halves():
        if claim is not None and (claim.label, claim.part) == (key, part):
            return claim
        if bound is not None and bound.key == key:
            return bound
    return None
