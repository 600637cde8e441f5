"""Bounds that no paper prints: the trivial ones, and those proved line by line in docs/new-bounds.md.

The trivial bounds hold because steps do not lengthen the error, and L_m <= |X_m|^2 |w - w*|^2 / 2.

g(n) = n^n/(n+1)^(n+1) is the largest value of x^n (1 - x) on [0, 1], D the rank of all tasks together, p_m > 0 the
probability of task m, r_p = sum_m p_m rank(X_m), and A(n) = `last_iterate(1, n)`.
"""

from __future__ import annotations

from dataclasses import replace

from forgetting.theory.bound import Condition, Origin, Quantity, Range
from forgetting.theory.checking import all_of, covers, least_squares, steps
from forgetting.theory.claims_from_bounds import expected_at_most
from forgetting.theory.draws import descents, projected
from forgetting.theory.expression import (
    BETA,
    DISTANCE,
    ETA,
    MEAN_SQUARE,
    SPAN,
    Expression,
    K,
    S,
    X,
    called,
    gap,
    minimum,
    parameter,
    root,
    spectral,
)  # fmt: skip
from forgetting.theory.paper.last_iterate import SMOOTH, STEP, X_IS, next_loss_at_most
from forgetting.theory.paper.mean_norm import RATIO
from forgetting.theory.paper.regression_rates import G_IS, average_iterate, spectral_peak
from forgetting.theory.setting import ProblemKind, known
from forgetting.theory.statement import Bound, checked, register_bound

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


HERE = "proved in docs/new-bounds.md"
_RANK_DRAWN = parameter("rank_weighted", "r_p", "r_p")

# SGD with any step below 2/beta ---------------------------------------------------------------------------------------

_PEAK = called("max", r"\max", max, spectral_peak(K), X * called("max", r"\max", max, X - 1, 0) ** K)


def _sgd(variant: str, title: str, peak: Expression, note: str, origin: Origin = "statement", *, tight: bool) -> None:
    bound = Bound(
        key=f"here:sgd/objective{variant}",
        title=f"last iterate of SGD at rate 1/k, by the joint rank{title}",
        source=f"{HERE} (here:sgd)",
        quantity="objective",
        orderings=("i.i.d.",),
        schemes=("projection", "sgd"),
        status="proved here",
        assumptions=SMOOTH,
        convention="f is the mean of the f_m under the sampling probabilities",
        expression=(root(SPAN) * DISTANCE / (2 * ETA * (2 - X)) * peak).where(X_IS).where(*G_IS),
        conditions=(STEP,),
        origin=origin,
        note=note,
        tight=tight,
    )
    checked(
        bound,
        part=f"objective{variant.replace('/', ', ')}",
        paths=next_loss_at_most(bound),
        statement=f"E f(w_k) <= {bound.formula}, D the joint rank, k >= 1, independent draws with any weights",
        draw=descents(),
        missing=all_of(least_squares(), covers("i.i.d."), steps(1)),
    )


_sgd(
    "",
    "",
    _PEAK,
    "Reached at D = 1: a task of norm beta^(1/2) drawn with probability 1/((k+1) x (2-x)), else a task of norm 0. No "
    "problem that was tried needs the second term of the maximum.",
    tight=True,
)
_sgd(
    "/sharper",
    ", for steps near 2/beta too",
    minimum(_PEAK, called("g", "g", spectral, K / 2)),
    "Q^k[I - Q[I]] is at most Q^k[I - Q^2[I]], in which only Q^2 matters, and its spectrum is not negative.",
    "tightened",
    tight=True,
)

# Projections with any weights -----------------------------------------------------------------------------------------


def _by_rank(n: Expression, before: Expression) -> tuple[Expression, Expression]:
    """sqrt(D - r_p) g(n-1) and sqrt(D) g(n): each bounds E |P_m z_n|^2 for a fresh m, in units of |w_0 - w*|^2."""
    return root(gap(SPAN, _RANK_DRAWN)) * spectral_peak(before), root(SPAN) * spectral_peak(n)


def _weighted(
    variant: str, title: str, quantity: Quantity, right: Expression, first: int, note: str,
    origin: Origin = "statement", *, tight: bool = False,
) -> Bound:  # fmt: skip
    return Bound(
        key=f"here:weights/{quantity}{variant}",
        title=title,
        source=f"{HERE} (here:weights)",
        quantity=quantity,
        orderings=("i.i.d.",),
        range=Range(first),
        status="proved here",
        expression=right.where(*G_IS),
        origin=origin,
        note=note,
        tight=tight,
    )


_ANY = "independent draws with any weights p, r_p = sum_m p_m rank(X_m)"
expected_at_most(
    _weighted(
        "",
        "projections with any weights at rate 1/k",
        "loss",
        RATIO * DISTANCE / 2 * minimum(*_by_rank(K, K - 1)),
        1,
        "The loss half of prop:mean_norm at rate 1/k: norm-weighted draws have Rbar for the first factor. Reached at "
        "D = 1: a task drawn with probability 1/(k+1), else a task of norm 0.",
        tight=True,
    ),
    part="loss",
    statement="E L(w_k) <= {}, k >= 1, " + _ANY,
    draw=projected("any"),
)
expected_at_most(
    _weighted(
        "",
        "projections with any weights at rate 1/k",
        "forgetting",
        S * (minimum(*_by_rank(K - 1, K - 2)) + 1 / K),
        2,
        "Visits are weighted by p, so R^2 stands where the loss has max_m |X_m|^2/(T p_m). No problem that was tried "
        "needs both terms: E F(k) stayed below each of them alone.",
    ),
    part="forgetting",
    statement="E F(k) <= {}, k >= 2, " + _ANY,
    draw=projected("any", first=2),
)
expected_at_most(
    _weighted(
        "/sharper",
        "projections with any weights, by Minkowski's inequality",
        "forgetting",
        S / 2 * (root(minimum(*_by_rank(K - 1, K - 2), 2 * average_iterate(K - 1))) + 1 / root(K)) ** 2,
        2,
        "The same proof with |a + b| <= |a| + |b| in place of |a + b|^2 <= 2 |a|^2 + 2 |b|^2, and with the universal "
        "rate of the paper as a third way to bound the loss of a fresh task.",
        "tightened",
    ),
    part="forgetting, sharper",
    statement="E F(k) <= {}, k >= 2, " + _ANY,
    draw=projected("any", first=2),
)
