"""Bounds that no paper prints: the trivial ones, and those proved line by line in docs/new-bounds.md.

The trivial bounds hold because steps do not lengthen the error, and L_m <= |X_m|^2 |w - w*|^2 / 2.

g(n) = n^n/(n+1)^(n+1) is the largest value of x^n (1 - x) on [0, 1], D the rank of all tasks together, p_m > 0 the
probability of task m, r_p = sum_m p_m rank(X_m), and A(n) = `last_iterate(1, n)`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from forgetting.theory.checking import least_squares
from forgetting.theory.draws import projected
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
)
from forgetting.theory.paper.last_iterate import SGD_SCHEMES, STEP, X_IS, next_loss, of_sgd
from forgetting.theory.paper.mean_norm import RATIO
from forgetting.theory.paper.regression_rates import G_IS, average_iterate, spectral_peak
from forgetting.theory.setting import known
from forgetting.theory.statement import Condition, Quantity, Range
from forgetting.theory.theorem import Theorem, expected

_NO_LONGER = Condition(
    lambda s, k: s.eta is None or s.beta is None or (s.eta >= 0 and s.beta >= 0 and s.eta * s.beta <= 2),
    "steps may lengthen the error: needs 0 <= eta beta <= 2",
)


_trivial = Theorem(
    "trivial",
    "the trivial bound",
    source="steps do not lengthen the error",
    orderings="any",
    origin="trivial",
    assumptions="jointly realizable tasks, eta beta <= 2",
    range=Range(0),
    schemes=("projection", "sgd", "nonexpansive"),
    problems=("regression", "classification", "sets"),
    conditions=(_NO_LONGER,),
)
_LOSS = replace(MEAN_SQUARE * DISTANCE / 2, compute=lambda s, k: known(s.trivial("loss")), needs=())
_trivial("loss", _LOSS.where("S/2 where Rbar is not known"))
_trivial("forgetting", S / 2)
_trivial("regret", S / 2)
_trivial("next_loss", S / 2, problems="regression")
_trivial("residual", DISTANCE / 2)
_trivial("error", DISTANCE, problems="regression")
_OBJECTIVES: tuple[Quantity, ...] = ("objective", "averaged_objective")
for _objective in _OBJECTIVES:
    _trivial(_objective, BETA * DISTANCE / 2, schemes=SGD_SCHEMES, problems="regression", needs=("eta", "beta"))

HERE = "proved in docs/new-bounds.md"
_RANK_DRAWN = parameter("rank_weighted", "r_p", "r_p")

# SGD with any step below 2/beta ---------------------------------------------------------------------------------------

_PEAK = called("max", r"\max", max, spectral_peak(K), X * called("max", r"\max", max, X - 1, 0) ** K)


_sgd = of_sgd(
    "here:sgd",
    "last iterate of SGD at rate 1/k, by the joint rank",
    source=f"{HERE} (here:sgd)",
    orderings="i.i.d.",
    status="proved here",
    convention="f is the mean of the f_m under the sampling probabilities",
    conditions=(STEP,),
    tight=True,
)


def _below(peak: Expression) -> Expression:
    return (root(SPAN) * DISTANCE / (2 * ETA * (2 - X)) * peak).where(X_IS).where(*G_IS)


_checked = partial(
    next_loss, applies=least_squares(), words="D the joint rank, k >= 1, independent draws with any weights"
)
_sgd(
    "objective",
    _below(_PEAK),
    note="Reached at D = 1: a task of norm beta^(1/2) drawn with probability 1/((k+1) x (2-x)), else a task of norm 0. "
    "No problem that was tried needs the second term of the maximum.",
    check=_checked("objective"),
)
_sgd(
    "objective",
    _below(minimum(_PEAK, called("g", "g", spectral, K / 2))),
    "sharper",
    title=f"{_sgd.title}, for steps near 2/beta too",
    note="Q^k[I - Q[I]] is at most Q^k[I - Q^2[I]], in which only Q^2 matters, and its spectrum is not negative.",
    origin="tightened",
    check=_checked("objective, sharper"),
)

# Projections with any weights -----------------------------------------------------------------------------------------


def _by_rank(n: Expression, before: Expression) -> tuple[Expression, Expression]:
    """sqrt(D - r_p) g(n-1) and sqrt(D) g(n): each bounds E |P_m z_n|^2 for a fresh m, in units of |w_0 - w*|^2."""
    return root(gap(SPAN, _RANK_DRAWN)) * spectral_peak(before), root(SPAN) * spectral_peak(n)


_weighted = Theorem(
    "here:weights",
    "projections with any weights at rate 1/k",
    source=f"{HERE} (here:weights)",
    orderings="i.i.d.",
    status="proved here",
)
_ANY = "independent draws with any weights p, r_p = sum_m p_m rank(X_m)"
_FORGETTING = expected(projected("any", first=2), "E F(k) <= {}, k >= 2, " + _ANY)
_weighted(
    "loss",
    (RATIO * DISTANCE / 2 * minimum(*_by_rank(K, K - 1))).where(*G_IS),
    note="The loss half of prop:mean_norm at rate 1/k: norm-weighted draws have Rbar for the first factor. Reached at "
    "D = 1: a task drawn with probability 1/(k+1), else a task of norm 0.",
    tight=True,
    check=expected(projected("any"), "E L(w_k) <= {}, k >= 1, " + _ANY),
)
_weighted(
    "forgetting",
    (S * (minimum(*_by_rank(K - 1, K - 2)) + 1 / K)).where(*G_IS),
    range=Range(2),
    note="Visits are weighted by p, so R^2 stands where the loss has max_m |X_m|^2/(T p_m). No problem that was tried "
    "needs both terms: E F(k) stayed below each of them alone.",
    check=_FORGETTING,
)
_MINKOWSKI = (root(minimum(*_by_rank(K - 1, K - 2), 2 * average_iterate(K - 1))) + 1 / root(K)) ** 2
_weighted(
    "forgetting",
    (S / 2 * _MINKOWSKI).where(*G_IS),
    "sharper",
    title="projections with any weights, by Minkowski's inequality",
    range=Range(2),
    note="The same proof with |a + b| <= |a| + |b| in place of |a + b|^2 <= 2 |a|^2 + 2 |b|^2, and with the universal "
    "rate of the paper as a third way to bound the loss of a fresh task.",
    origin="tightened",
    check=_FORGETTING,
)
