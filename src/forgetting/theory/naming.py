"""The names of bounds and claims by their keys, for tables and figures that hold keys."""

from __future__ import annotations

from forgetting.theory.bound import Bound
from forgetting.theory.claim import Claim
from forgetting.theory.statement import all_statements

__all__ = ["heading_of", "name_by_key"]


def name_by_key(key: str, part: str | None = None) -> str:
    """The name of a bound by its key, or of a claim by label and part.

    A key that is not registered here, as in a file from elsewhere, is its own name.

    >>> name_by_key("thm:cl_by_sgd_main/loss"), name_by_key("lem:Q trace"), name_by_key("newer2027", "loss")
    ('Theorem 10, universal rate', 'Lemma C.8', 'newer2027, loss')
    """
    known = _registered(key, part)
    return known.name if known is not None else key if part is None else f"{key}, {part}"


def heading_of(key: str, part: str | None = None) -> str:
    """The same with the key or the label second.

    >>> heading_of("thm:cl_by_sgd_main/loss"), heading_of("lem:Q trace"), heading_of("newer2027", "loss")
    ('Theorem 10, universal rate [thm:cl_by_sgd_main/loss]', 'Lemma C.8 [lem:Q trace]', 'newer2027, loss')
    """
    known = _registered(key, part)
    return name_by_key(key, part) if known is None else known.heading


def _registered(key: str, part: str | None) -> Bound | Claim | None:
    for statement in all_statements():
        bound, claim = statement.bound, statement.claim
        if claim is not None and (claim.label, claim.part) == (key, part):
            return claim
        if bound is not None and bound.key == key:
            return bound
    return None
