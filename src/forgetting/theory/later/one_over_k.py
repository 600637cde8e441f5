"""The last iterate at rate 1/k, with constants: the proofs are in docs/one-over-k.md, in the order of this file."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from forgetting.tasks import families
from forgetting.theory.checking import (
    all_of,
    covers,
    expectation_at_most,
    least_squares,
    steps,
)
from forgetting.theory.draws import descents, permuted, projected
from forgetting.theory.expectations import Expected
from forgetting.theory.expression import (
    DISTANCE,
    ETA,
    Expression,
    K,
    S,
    T,
    X,
    called,
    minimum,
    number,
    parameter,
    power_left,
    root,
)
from forgetting.theory.later.published_rates import GAP_IS, WORST
from forgetting.theory.later.rate_constants import LAST, fresh, least_fresh, visited
from forgetting.theory.paper.extensions import ON_SETS, ON_TASKS, declare_on_sets, of_classification, of_projections
from forgetting.theory.paper.last_iterate import STEP, X_IS, next_loss, of_sgd
from forgetting.theory.paper.mean_norm import RATIO
from forgetting.theory.paper.regression_rates import WITH, WITHOUT
from forgetting.theory.paper.stability import seen_and_next
from forgetting.theory.setting import Setting, known
from forgetting.theory.statement import NAMES, Condition, Range
from forgetting.theory.theorem import Checked, Theorem, compared, expected
from forgetting.theory.verdict import Draw

PAGE = "proved in docs/one-over-k.md"
UNSEEN = 2.4396  # of convex sets: E dist^2 to the next set after n exchangeable draws is at most this / sqrt(n)


# Independent draws ----------------------------------------------------------------------------------------------------

FRESH = called("u", "u", lambda n: fresh(round(n)), K)
U_IS = "u(n) = the rate of docs/one-over-k.md, about 0.5436/n", r"u(n)\le\frac3{4n}"


def gap_rate(s: Setting, k: int) -> float:
    """The smallest (1 - gap)^(k-n) u(n), over the n <= k that may give it: k, those near -1/log(1-gap), the first.

    For the best of these and for k the bound on E |P_m z_n|^2 by the rank and the mean projection is tried as well.
    """
    gap = known(s.spectral_gap)
    middle = round(-1 / math.log1p(-gap)) if 0 < gap < 1 else 0 if gap else k
    draws = {k, *(min(max(middle + i, 0), k) for i in (-1, 0, 1))}
    if middle <= LAST:  # beyond these u(n) is smooth
        draws.update(range(min(k, LAST) + 1))
    left = {n: power_left(gap, s.contraction, k - n) for n in draws}
    best = min(draws, key=lambda n: left[n] * fresh(n))
    return min(left[n] * least_fresh(s, n) for n in (best, k))


_GEOMETRIC = Expression("u_gap(k)", r"\min_{n\le k}(1-\lambda_{\min})^{k-n}u(n)", gap_rate, ("spectral_gap",))
_drawn = Theorem(
    "here:last-iterate",
    "last iterate at rate 1/k",
    source=f"{PAGE} (here:last-iterate)",
    status="proved here",
    range=Range(0),
)
_uniform = partial(_drawn, "loss", orderings=WITH, check=expected(projected(first=1)))
_weighted = partial(_drawn, orderings="i.i.d.", check=expected(projected("any", first=1)))
_uniform(
    S / (K + 1),
    note="The answer to the paper's open question; Derezinski and Dong 2026b announce the rate.",
)
_uniform(
    27 * S / (32 * (K + 1)),
    "longer",
    title=f"{_drawn.title}, longer last step",
    origin="tightened",
    note="The same proof with the conformal radius 16/27 of a larger region in place of the disc of radius 1/2.",
)
_MOMENTS = Expression("u_W(k)", "u_W(k)", least_fresh, ("span",))
_UNIFORM_MOMENTS = replace(
    _MOMENTS, compute=lambda s, k: least_fresh(replace(s, rank_weighted=s.rank_avg), k)
)  # of uniform draws the mean rank of a draw is that of the tasks
_U_W_IS = (
    "u_W(k) = u(k) or the least lambda + W max |f|, W = sqrt(D), |E P|_F or |I - E P|_F",
    r"u_W(k)=\min(u(k),\min_{C\le\lambda}\lambda+W\max_y|f_C(y)|)",
)
_BY_MOMENTS = (
    "By the dimension D of the joint row space and the Frobenius norm of E P = sum_m p_m P_m; programs=True solves the "
    "linear program behind it for these numbers."
)
_uniform(
    (S * FRESH / 2).where(*U_IS),
    "universal",
    title=f"{_drawn.title}, smallest constants",
    origin="tightened",
    note="At most 0.375 S/k at every k, and 0.2718 S/k for large k; some tasks reach 0.2270 S/k.",
)
_weighted(
    "loss",
    (RATIO * DISTANCE * FRESH / 2).where(*U_IS),
    "weights",
    title=f"{_drawn.title}, any weights",
    origin="tightened",
    note="L is at most max_m(|X_m|^2 / (T p_m)) sum_m p_m |P_m (w - w*)|^2 / 2.",
)
_uniform(
    (S * _UNIFORM_MOMENTS / 2).where(*_U_W_IS),
    "moments",
    title=f"{_drawn.title}, of few dimensions or spread tasks",
    origin="tightened",
    note=_BY_MOMENTS,
)
_weighted(
    "loss",
    (RATIO * DISTANCE * _MOMENTS / 2).where(*_U_W_IS),
    "moments/weights",
    title=f"{_drawn.title}, of few dimensions or spread tasks, any weights",
    origin="tightened",
    note=_BY_MOMENTS,
)
_weighted(
    "next_loss",
    (S * _MOMENTS / 2).where(*_U_W_IS),
    title=f"{_drawn.title}: next loss",
    note=f"The next task is drawn with the weights p, so R^2 stands here. {_BY_MOMENTS}",
)
_weighted(
    "loss",
    (RATIO * DISTANCE * _GEOMETRIC / 2)
    .where("u_gap(k) = the least (1-lambda_min)^(k-n) u(n) over n <= k")
    .where(GAP_IS),
    "gap",
    title=f"{_drawn.title}, with a spectral gap",
    origin="tightened",
    note="Q^k[X] = Q^(k-n)[Q^n[X]] is at most u(n) Q^(k-n)[I], X = sum_m p_m P_m.",
)


def _forgetting_by(unseen: Callable[[Setting, int], float], u: str, needs: tuple[str, ...] = ()) -> Expression:
    """(S/2) (sqrt(u(k-1)) + sqrt(v(k)/k))^2 for a bound u on E |P_m z_n|^2 for a fresh task."""

    def compute(s: Setting, k: int) -> float:
        left = unseen(s, k - 1)
        return (math.sqrt(left) + math.sqrt(visited(k, left) / k)) ** 2

    text = f"(sqrt({u}(k-1)) + sqrt(v(k)/k))^2, v(k) = 1/2 for even k and min(1, 1/2 + {u}(k-1)) for odd k"
    return S / 2 * Expression(text, rf"\left(\sqrt{{{u}(k-1)}}+\sqrt{{v(k)/k}}\right)^2", compute, needs)


_about_visits = partial(
    _weighted,
    "forgetting",
    title="forgetting at rate 1/k",
    range=Range(1),
)
_VISITS = "Visits are weighted by p, so R^2 stands where the loss has max_m |X_m|^2/(T p_m)."
_about_visits(_forgetting_by(lambda s, n: fresh(n), "u"), note=f"About 1.043 S/k for large k. {_VISITS}")
_about_visits(
    _forgetting_by(least_fresh, "u_W", ("span",)).where(*_U_W_IS),
    "moments",
    title="forgetting at rate 1/k, of few dimensions or spread tasks",
    origin="tightened",
    note=f"{_BY_MOMENTS} {_VISITS}",
)

# Without replacement --------------------------------------------------------------------------------------------------

_SEEN = (1 + root(number(27) / 16)) ** 2 * S / (2 * K)
_NEXT = 27 * S / (32 * (K + 1))
_single_pass = Theorem(
    "here:single-pass",
    "single pass in random order at rate 1/k",
    source=f"{PAGE} (here:single-pass)",
    orderings=WITHOUT,
    range=Range(1, "T"),
    status="proved here",
)
_ONE_PASS = expected(permuted(1, long=True))
_single_pass("forgetting", _SEEN, note="2.643 S/k.", check=_ONE_PASS)
_single_pass(
    "loss", K / T * _SEEN + (T - K) / T * _NEXT, note="2.643 S/T after the whole pass, k = T.", check=_ONE_PASS
)


_single_pass(
    "next_loss",
    _NEXT,
    range=Range(0, "T-1"),
    note="The proof of the rate of independent draws, with a factor for each task, in the mean over all orders.",
    check=expected(permuted(1, 1)),
)


def every_order(n: int) -> float:
    """|P_m z|^2 for the last of n unit normals with inner products -1/(2n-1), in every order, where |z_0| = 1.

    It is (2n)^(2n-2) / (2n-1)^(2n-1), about e/(2n).

    >>> every_order(1), round(27 * every_order(2), 12), round(10**6 * every_order(10**6), 4)
    (1.0, 16.0, 1.3591)
    """
    return math.exp((2 * n - 2) * math.log1p(1 / (2 * n - 1))) / (2 * n - 1)


_SAME = (2 * T) ** (2 * T - 2) / (2 * T - 1) ** (2 * T - 1)
_SAME = replace(_SAME, compute=lambda s, k: every_order(int(known(s.T))))  # powers overflow
_single_pass(
    "next_loss",
    S * _SAME / 2,
    "lower",
    kind="lower",
    title="single pass: equiangular lines",
    range=Range(0, "T-1"),
    conditions=(
        Condition(lambda s, k: k == known(s.T) - 1, "is for the last task of a pass, k = T - 1"),
        Condition(
            lambda s, k: s.d is None or s.d >= known(s.T), "needs d >= T, for lines that are linearly independent"
        ),
    ),
    convention=f"losses carry the factor 1/2; {WORST}",
    note="Reached in every order by families.equiangular(T, 1/(2 T - 1)). About e S/(4 T): 0.6796 against 0.8438.",
    instance=lambda tasks, k: families.equiangular(tasks, 1 / (2 * tasks - 1)) if tasks > 1 else families.orthogonal(1),
)


# SGD with any step below 2/beta ---------------------------------------------------------------------------------------


def reach(x: float) -> float:
    """rho(x), the conformal radius of the s on which A -> s A + (1-s) S A S is a contraction, x = eta beta in (0, 2).

    >>> round(27 * reach(1.0), 12), round(reach(0.5), 6), round(reach(1.5), 6)
    (16.0, 1.126646, 0.241941)
    """
    return 16 * math.acos(x / 2) ** 2 / (math.pi**2 * (2 + x))


_RHO = called("rho", r"\rho", reach, X)
_RHO_IS = "rho(x) = 16 acos(x/2)^2 / (pi^2 (2+x))", r"\rho(x)=\frac{16\arccos^2(x/2)}{\pi^2(2+x)}"


_at_next = partial(next_loss, first=0)
_sgd = partial(of_sgd, status="proved here", conditions=(STEP,))
_last = _sgd(
    "here:sgd-last-iterate",
    "last iterate of SGD at rate 1/k",
    source=f"{PAGE} (here:sgd-last-iterate)",
    orderings="i.i.d.",
    range=Range(0),
    convention="f is the mean of the f_m under the sampling probabilities",
)
_last(
    "objective",
    (DISTANCE / (2 * ETA * (2 - X) * _RHO * (K + 1))).where(X_IS).where(*_RHO_IS),
    note="At x = 1 it is 27 beta |w_0 - w*|^2 / (32 (k+1)).",
    check=_at_next("objective", least_squares()),
)
_last(
    "objective",
    (DISTANCE * FRESH / (2 * ETA)).where(*U_IS),
    "universal",
    title=f"{_last.title}, steps up to 1/beta",
    origin="tightened",
    conditions=(Condition(lambda s, k: known(s.eta) * known(s.beta) <= 1 + 1e-12, "is for eta <= 1/beta"),),
    note="A step of at most 1/beta is the compression of a projection of a larger space, so that u(n) bounds it, too.",
    check=_at_next("objective, universal", least_squares(0, 1, closed=True)),
)
_once = _sgd(
    "here:single-pass-sgd",
    "single pass of SGD at rate 1/k",
    source=f"{PAGE} (here:single-pass-sgd)",
    orderings=WITHOUT,
)
_once(
    "objective",
    (DISTANCE / (2 * ETA * (2 - X) * (K + 1)) * ((1 / root(_RHO) + X) ** 2 + 1 / (_RHO * (K + 1))))
    .where(X_IS)
    .where(*_RHO_IS),
    range=Range(1, "T-1"),
    convention="mean of f over the k tasks that were learned and the next one",
    note="The first term is for the tasks that were learned, the second for the next one.",
    check=seen_and_next("objective", least_squares(), first=1),
)

_OF_LOSS = Condition(
    lambda s, k: any(math.isclose(known(s.beta), value, rel_tol=1e-9) for value in (1.0, s.radius**2)),
    "needs beta = R^2, that of the loss, or beta = 1, that of squared distances",
)
_SEEN_BY_SGD = S * (1 / root(_RHO) + X) ** 2 / (2 * X * (2 - X) * K)
_NEXT_BY_SGD = S / (2 * X * (2 - X) * _RHO * (K + 1))


#: in place of the forgetting, which SGD may have below 0
_SEEN_LOSS: dict[str, Callable[[Expected, int], float]] = {"forgetting": lambda numbers, k: numbers.in_sample(k)}


def _descending(quantity: str, ordering: str, draw: Draw, last: int | None = None) -> Checked:
    """The check of a bound on losses, of SGD on the loss."""
    left = "E F(k) <= E (1/k) sum_t L_tau(t)(w_k)" if quantity == "forgetting" else NAMES[quantity]
    applies = all_of(least_squares(), covers(ordering), steps(1, last=last))
    words = f"{left} <= {{}} (SGD on the loss, {ordering})"
    return compared(
        expectation_at_most(_SEEN_LOSS.get(quantity), sgd=True), words, draw, applies, quantity.replace("_", " ")
    )


_OF_SGD: Any = {
    "conditions": (STEP, _OF_LOSS),
    "origin": "tightened",
    "note": "At x = 1 the bound of tasks learned to convergence.",
}
_of_losses = partial(_once, range=Range(1, "T"), **_OF_SGD)
_PERMUTED = permuted(1, projections=False, long=True)
_of_losses(
    "forgetting",
    _SEEN_BY_SGD.where(X_IS).where(*_RHO_IS),
    check=_descending("forgetting", WITHOUT[0], _PERMUTED, 0),
)
_of_losses(
    "loss",
    (K / T * _SEEN_BY_SGD + (T - K) / T * _NEXT_BY_SGD).where(X_IS).where(*_RHO_IS),
    check=_descending("loss", WITHOUT[0], _PERMUTED, 0),
)
_of_losses(
    "next_loss",
    _NEXT_BY_SGD.where(X_IS).where(*_RHO_IS),
    range=Range(1, "T-1"),
    check=_descending("next_loss", WITHOUT[0], permuted(1, 1, projections=False, long=True), 1),
)
_last(
    "forgetting",
    _SEEN_BY_SGD.where(X_IS).where(*_RHO_IS),
    range=Range(1),
    **_OF_SGD,
    convention="",
    check=_descending("forgetting", "i.i.d.", descents()),
)

# Convex sets and classification ---------------------------------------------------------------------------------------


def unseen(n: int) -> float:
    """c(n), the bound on E dist^2 to the next set after n exchangeable draws, in units of |w_0 - w*|^2.

    >>> unseen(0), unseen(4), round(unseen(100), 5)
    (1.0, 1.0, 0.24396)
    """
    return min(1.0, UNSEEN / math.sqrt(n)) if n else 1.0


def _unseen(n: Expression) -> Expression:
    return called("c", "c", lambda draws: unseen(round(draws)), n)


_C_IS = "c(n) = min(1, 2.4396/sqrt(n))", r"c(n)=\min(1,2.4396/\sqrt n)"
_SEEN_DRAWN = (root(minimum(1, 2 / root(K))) + 1 / root(K)) ** 2 / 2
_SEEN_ONCE = (root(_unseen(K - 1)) + 1 / root(K)) ** 2 / 2
_TITLE = "projections at rate 1/sqrt(k)"
_WHY = (
    "The sum of (n+1) (r_n - r_(n+1))^2 is at most |w_0 - w*|^2, where r_n^2 is the expected squared distance to the "
    "next set."
)
_residual = of_projections(
    "here:projections", _TITLE, source=f"{PAGE} (here:projections)", status="proved here", note=_WHY
)
# half the squared distance to a fresh set is the mean over all sets
_residual("residual", DISTANCE / root(K + 1), "with", orderings=WITH, range=Range(0), check=ON_SETS(WITH))
_residual(
    "residual",
    DISTANCE * parameter("rarest_draw", "max_m(1 / (T p_m))", r"\max_m\frac1{T p_m}") / root(K + 1),
    "weights",
    title=f"{_TITLE}, any weights",
    origin="tightened",
    orderings="i.i.d.",
    range=Range(0),
    check=ON_SETS(("i.i.d.",), part="any weights"),
)
_residual(
    "residual",
    (DISTANCE * (K / T * _SEEN_ONCE + (T - K) / T * _unseen(K) / 2)).where(*_C_IS),
    "without",
    orderings=WITHOUT,
    range=Range(1, "T"),
    check=ON_SETS(WITHOUT),
)
_forgetting = of_classification(
    "here:classification", _TITLE, source=f"{PAGE} (here:classification)", status="proved here", note=_WHY
)
declare_on_sets(
    _forgetting(
        "forgetting", S * _SEEN_DRAWN, "with", orderings="i.i.d.", check=ON_TASKS(("i.i.d.",), part="with replacement")
    ),
    part="sets, with replacement",
)
declare_on_sets(
    _forgetting(
        "forgetting",
        (S * _SEEN_ONCE).where(*_C_IS),
        "without",
        orderings=WITHOUT,
        range=Range(1, "T"),
        check=ON_TASKS(WITHOUT),
    )
)
