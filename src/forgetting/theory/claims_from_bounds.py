"""Claims from bounds: a bound on the expected loss or forgetting is checked by the engines and hunted as it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as changed

import numpy as np

from forgetting.core.arrays import as_flag, as_function
from forgetting.core.numerical import ROUNDING
from forgetting.errors import ForgettingError, InvalidInputError
from forgetting.theory.bound import NAMES
from forgetting.theory.checking import all_of, at_most, covers, paths, projection, setting_of
from forgetting.theory.claim import Draw, Sides
from forgetting.theory.draws import cycles, permuted, projected
from forgetting.theory.expectations import Expected
from forgetting.theory.instance import Instance
from forgetting.theory.registry import Statement, all_statements, get_bound
from forgetting.theory.statement import Bound, Claim, checked

__all__ = ["claim_from_bound", "expected_at_most"]

#: problems for a hunt, by the ordering that a bound covers; made with the first k that it covers
_DRAWS: dict[str, Callable[[int], Draw]] = {
    "with replacement": lambda first: projected(first=first),
    "norm-weighted": lambda first: projected("norm-weighted", first=first),
    "i.i.d.": lambda first: projected("any", first=first),
    "any": lambda first: projected("any", first=first),
    "without replacement": lambda first: permuted(first),
    "cyclic": lambda first: cycles,
}


def expected_at_most(bound: Bound, *, part: str | None, statement: str, draw: Draw, replace: bool = False) -> Statement:
    """Register a bound on E L(w_k) or E F(k) with its check; `statement` is said around the formula of the bound."""

    def check(instance: Instance, numbers: Expected) -> Sides:
        setting = setting_of(instance)
        lhs = (numbers.loss if bound.quantity == "loss" else numbers.forgetting)(instance.k)
        return at_most(lhs, bound, setting, instance.k, numbers.doubt + ROUNDING * setting.scale, numbers.how)

    def missing(instance: Instance) -> str | None:
        try:
            setting = setting_of(instance)
        except ForgettingError as error:
            return str(error)
        if setting.problem not in bound.problems:
            return f"is about {' or '.join(bound.problems)}"
        return bound.why_not(setting, instance.k)

    return checked(
        bound,
        part=part,
        statement=statement.format(bound.formula),
        paths=paths(check),
        draw=draw,
        missing=all_of(covers(*bound.orderings), projection, missing),
        replace=replace,
    )


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
    statement = next(statement for statement in all_statements() if statement.bound is bound)
    if statement.claim is not None and not as_flag(replace, "replace"):
        raise InvalidInputError(
            f"{key} has a claim, fg.claims.get({statement.label!r}, {statement.part!r}); replace=True replaces it"
        )
    if (reason := _not_covered(bound)) is not None:
        raise InvalidInputError(f"{key}: {reason}; compute both sides under fg.claims.declare")
    said = f"{NAMES[bound.quantity]} <= {{}} ({' or '.join(bound.orderings)}, {bound.range})"
    made = expected_at_most(
        bound,
        part=bound.part,
        statement=said,
        draw=_draw(bound) if draw is None else as_function(draw, "draw"),
        replace=True,
    )
    assert made.claim is not None
    return made.claim


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
