"""Theorems: bounds that are declared from expressions, each with its check if there is one.

Every statement is in one registry, as a bound (the right side), a claim (the check of both sides), or both.
Within the package it is declared in one of two ways. A `Theorem` declares bounds that are expressions; their checks are
made by `compared`, or by `expected` for E L(w_k) and E F(k). `declare_claim` of `forgetting.theory.claim` declares a
function that computes both sides. Users have `fg.bounds.register` and `fg.claims.register` for what they made
themselves, the decorators `fg.bounds.declare` and `fg.claims.declare`, and `claim_from_bound`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as changed
from typing import Any, TypeAlias, TypedDict, Unpack

import numpy as np

from forgetting.core.arrays import as_flag, as_function
from forgetting.errors import ForgettingError, InvalidInputError
from forgetting.tasks import Problem
from forgetting.tasks.problem import Kind as ProblemKind
from forgetting.theory.bound import Bound
from forgetting.theory.checking import all_of, covers, expectation_at_most, projection, setting_of
from forgetting.theory.claim import Claim
from forgetting.theory.draws import cycles, epochs, permuted, projected
from forgetting.theory.expression import Expression
from forgetting.theory.instance import Instance
from forgetting.theory.numbering import PRINTED, cite
from forgetting.theory.registry import add_statement, get_bound
from forgetting.theory.statement import NAMES, Condition, Kind, Origin, Quantity, Range, Status
from forgetting.theory.verdict import CheckPaths, Draw, Missing, Settle, unchanged

#: what a variant of a bound adds to the title of its theorem, and its origin
VARIANTS: dict[str, tuple[str, Origin]] = {
    "proof": (", from the proof", "proof"),
    "product": (", product of the proof", "proof"),
    "D": (", joint rank for dimension", "tightened"),
    "universal": (", universal branch", "branch"),
    "dimension": (", dimension branch", "branch"),
    "rows": (", rows branch", "branch"),
    "greedy": (" at eta = 1/beta", "statement"),
    "log": (" at eta = 1/(beta log k)", "statement"),
}
#: problems for a hunt, by the ordering that a bound covers; made with the first k that it covers
_DRAWS: dict[str, Callable[[int], Draw]] = {
    "with replacement": lambda first: projected(first=first),
    "norm-weighted": lambda first: projected("norm-weighted", first=first),
    "i.i.d.": lambda first: projected("any", first=first),
    "any": lambda first: projected("any", first=first),
    "without replacement": lambda first: permuted(first),
    "reshuffled": lambda first: epochs,
    "cyclic": lambda first: cycles,
}
#: makes the claim that checks a bound
Checked: TypeAlias = Callable[[Bound], Claim]


class Fields(TypedDict, total=False):
    """The fields of `Bound` that theorems state, for all of their bounds or for one; one name stands for a tuple."""

    title: str
    source: str
    orderings: str | tuple[str, ...]
    kind: Kind
    status: Status
    origin: Origin
    schemes: str | tuple[str, ...]
    problems: ProblemKind | tuple[ProblemKind, ...]
    assumptions: str
    range: Range
    needs: tuple[str, ...]
    conditions: tuple[Condition, ...]
    convention: str
    note: str
    tight: bool
    instance: Callable[[int, int], Problem]
    noisy: bool


class Theorem:
    """A theorem whose bounds share some fields; a call declares one of them.

    Args:
        label: the start of the keys of its bounds.
        title: that of its bounds, before what `VARIANTS` says of a variant.
        **shared: fields of `Bound` that they share; the source of a label of the paper is known.

    >>> from forgetting.theory.expression import K, S
    >>> rate = Theorem("newer2027:cyclic", "a rate", source="Newer 2027", orderings="cyclic")
    >>> rate("loss", S / K, "proof", note="Not printed.").name
    'Newer 2027, a rate, from the proof'
    >>> print(get_bound("newer2027:cyclic/loss/proof"))
    Newer 2027, a rate, from the proof [newer2027:cyclic/loss/proof]: E L(w_k) <= S/k, k >= 1 (Newer 2027; holds ...
    >>> from forgetting.theory.registry import unregister_bound
    >>> unregister_bound("newer2027:cyclic/loss/proof")
    """

    def __init__(self, label: str, title: str, /, **shared: Unpack[Fields]) -> None:
        self.label, self.title, self.shared = label, title, shared
        if label in PRINTED:
            self.shared.setdefault("source", cite(label))

    def __call__(
        self,
        quantity: Quantity,
        right: Expression,
        variant: str = "",
        /,
        *,
        check: Checked | None = None,
        **more: Unpack[Fields],
    ) -> Bound:
        """Declare the bound label/quantity/variant with this right side, its check, and more fields of its own."""
        words, origin = VARIANTS.get(variant.rpartition("/")[2], ("", "statement"))
        key = "/".join(filter(None, (self.label, quantity, variant)))
        own: dict[str, Any] = {"title": self.title + words, "origin": origin, **self.shared, **more}
        bound = Bound(key=key, quantity=quantity, expression=right, **own)
        add_statement(bound, None if check is None else check(bound))
        return bound


def compared(
    by: Callable[[Bound], CheckPaths],
    statement: str,
    draw: Draw,
    missing: Missing,
    part: str | None = None,
    settle: Settle = unchanged,
) -> Checked:
    """The check of a bound: the claim of this part, in which {} stands for the formula of the bound.

    Source, status, note and title of the claim are those of the bound.
    """

    def claim(bound: Bound) -> Claim:
        sides, precise = by(bound)
        return Claim(
            bound.label, part, statement.format(bound.formula), sides, draw, bound.source, bound.status, bound.note,
            missing=missing, precise=precise, settle=settle, title=bound.title,
        )  # fmt: skip

    return claim


def expected(draw: Draw, statement: str = "") -> Checked:
    """The check of a bound on the expected loss, forgetting or next loss by the engines, wherever the bound applies."""

    def claim(bound: Bound) -> Claim:
        said = statement or f"{NAMES[bound.quantity]} <= {{}} ({' or '.join(bound.orderings)}, {bound.range})"
        part = None if bound.part is None else bound.part.replace("/", ", ").replace("_", " ")
        applies = all_of(covers(*bound.orderings), projection, _where(bound))
        return compared(expectation_at_most(), said, draw, applies, part)(bound)

    return claim


def _where(bound: Bound) -> Missing:
    """The condition that the bound can be used at the numbers of the instance."""

    def missing(instance: Instance) -> str | None:
        try:
            setting = setting_of(instance)
        except ForgettingError as error:
            return str(error)
        if setting.problem not in bound.problems:
            return f"is about {' or '.join(bound.problems)}"
        return bound.why_not(setting, instance.k)

    return missing


def claim_from_bound(key: str, *, draw: Draw | None = None, replace: bool = False) -> Claim:
    """Register a claim that says what a bound says, to be checked on tasks and hunted for a counterexample.

    Covered are upper bounds on the expected loss or forgetting of regression tasks that are learned to convergence.
    For others, compute both sides under `fg.claims.declare`.

    Args:
        key: of a registered bound.
        draw: a function of (rng, index) that gives the instances of a hunt; left out, structured and random tasks
            under the orderings that the bound covers.
        replace: whether a claim that the bound has already is replaced.

    >>> import forgetting as fg
    >>> from forgetting.theory.expression import K, S
    >>> mine = fg.bounds.Bound("newer2027:random/loss", "a bold rate", "Newer 2027, Theorem 1", "loss",
    ...                        ("with replacement",), expression=S / K**2)
    >>> _ = fg.bounds.register(mine)
    >>> claim = fg.claims.from_bound("newer2027:random/loss")
    >>> claim.name, claim.hunt(budget=30).outcome
    ('Newer 2027, Theorem 1, a bold rate: loss', 'refuted')
    >>> fg.bounds.unregister("newer2027:random/loss")
    """
    bound = get_bound(key)
    if (known := bound.claim) is not None and not as_flag(replace, "replace"):
        raise InvalidInputError(
            f"{key} has a claim, fg.claims.get({known.label!r}, {known.part!r}); replace=True replaces it"
        )
    if (reason := _not_covered(bound)) is not None:
        raise InvalidInputError(f"{key}: {reason}; compute both sides under fg.claims.declare")
    claim = expected(_draw(bound) if draw is None else as_function(draw, "draw"))(bound)
    claim = changed(claim, part=bound.part)
    add_statement(bound, claim, replace=True)
    return claim


def _not_covered(bound: Bound) -> str | None:
    """Why no claim can be made from a bound, or None."""
    if bound.kind != "upper" or bound.status == "rate only":
        return "only an upper bound whose constants are known can be violated"
    if bound.quantity not in ("loss", "forgetting"):
        return f"claims are made from bounds on the loss or the forgetting, not on the {bound.quantity}"
    if "regression" not in bound.problems or "projection" not in bound.schemes:
        return "claims are made from bounds on regression tasks that are learned to convergence"
    return None


def _draw(bound: Bound) -> Draw:
    """The problems of a hunt: those of the orderings that the bound covers, in turn."""
    first = bound.range.first if isinstance(bound.range.first, int) else 1
    draws = [_DRAWS[name](max(first, 1)) for name in bound.orderings if name in _DRAWS]
    if not draws:
        raise InvalidInputError(
            f"{bound.key}: no problems are known for {' or '.join(bound.orderings)} orderings; give draw="
        )

    def draw(rng: np.random.Generator, index: int) -> Instance:
        made = draws[index % len(draws)](rng, index // len(draws))
        tasks = made.posed.num_tasks
        covered = bound.range.every is None or made.k % tasks == 0
        return made if covered else changed(made, k=tasks * max(made.k // tasks, 1))

    return draw
