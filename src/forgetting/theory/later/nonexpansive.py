"""What holds without a theorem: steps do not lengthen the error, and L_m <= |X_m|^2 |w - w*|^2 / 2."""

from __future__ import annotations

from dataclasses import replace

from forgetting.theory.bound import Bound, Condition, Quantity, Range
from forgetting.theory.expression import BETA, DISTANCE, MEAN_SQUARE, Expression, S
from forgetting.theory.setting import ProblemKind, known
from forgetting.theory.statement import register_bound

_STEPS = ("projection", "sgd", "nonexpansive")
_ALL: tuple[ProblemKind, ...] = ("regression", "classification", "sets")
_NO_LONGER = Condition(
    lambda s, k: s.eta is None or s.beta is None or (s.eta >= 0 and s.beta >= 0 and s.eta * s.beta <= 2),
    "steps may lengthen the error: needs 0 <= eta beta <= 2",
)


def _trivial(
    quantity: Quantity, right: Expression, schemes: tuple[str, ...] = _STEPS,
    problems: tuple[ProblemKind, ...] = _ALL, needs: tuple[str, ...] = (),
) -> Bound:  # fmt: skip
    return Bound(
        key=f"trivial/{quantity}",
        title="the trivial bound",
        source="steps do not lengthen the error",
        quantity=quantity,
        orderings=("any",),
        origin="trivial",
        assumptions="jointly realizable tasks, eta beta <= 2",
        range=Range(0),
        expression=right,
        schemes=schemes,
        problems=problems,
        needs=needs,
        conditions=(_NO_LONGER,),
    )


_LOSS = replace(MEAN_SQUARE * DISTANCE / 2, compute=lambda s, k: known(s.trivial("loss")), needs=())
register_bound(_trivial("loss", _LOSS.where("S/2 where Rbar is not known")))
register_bound(_trivial("forgetting", S / 2))
register_bound(_trivial("regret", S / 2))
register_bound(_trivial("residual", DISTANCE / 2))
register_bound(_trivial("error", DISTANCE, problems=("regression",)))
_OBJECTIVES: tuple[Quantity, ...] = ("objective", "averaged_objective")
for _objective in _OBJECTIVES:
    register_bound(
        _trivial(
            _objective,
            BETA * DISTANCE / 2,
            ("projection", "sgd"),
            ("regression",),
            ("eta", "beta"),
        )
    )
