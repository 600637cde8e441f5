"""The last iterate at rate 1/k, with constants: the proofs are in docs/one-over-k.md, in the order of this file.

u(n) bounds E |P_m z_n|^2 for a fresh task m after n independent draws, in units of |w_0 - w*|^2, for all tasks, ranks,
dimensions and weights. Its first values and C_0 are proved in ball arithmetic by `tools/prove_rate.py`.
"""

from __future__ import annotations

import math
from functools import partial

from forgetting.core.numerical import ROUNDING
from forgetting.theory.checking import (
    all_of,
    covers,
    least_squares,
    paths,
    projection,
    regression,
    setting_of,
    steps,
)
from forgetting.theory.claim import declare_claim
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
    power_left,
    root,
)
from forgetting.theory.instance import Instance
from forgetting.theory.paper.extensions import ON_SETS, ON_TASKS, declare_on_sets
from forgetting.theory.paper.last_iterate import SGD_SCHEMES, SMOOTH, STEP, X_IS, next_loss_at_most
from forgetting.theory.paper.mean_norm import RATIO
from forgetting.theory.paper.regression_rates import WITH, WITHOUT
from forgetting.theory.paper.stability import seen_and_next
from forgetting.theory.setting import Setting, known
from forgetting.theory.terms import Condition, Range
from forgetting.theory.theorem import Checked, Theorem, compared, expected
from forgetting.theory.verdict import Missing, Sides

PAGE = "proved in docs/one-over-k.md"
#: (n + 1) u(n) for n = 1, ..., 64, rounded up
FIRST = (
    0.76981, 0.77273, 0.79440, 0.81891, 0.84305, 0.86604, 0.81840, 0.76617, 0.72998, 0.70442, 0.68570, 0.67150, 0.66037,
    0.65135, 0.64387, 0.63755, 0.63210, 0.62735, 0.62310, 0.61928, 0.61587, 0.61276, 0.60994, 0.60736, 0.60498, 0.60279,
    0.60076, 0.59887, 0.59711, 0.59547, 0.59393, 0.59248, 0.59113, 0.58985, 0.58864, 0.58750, 0.58641, 0.58539, 0.58441,
    0.58348, 0.58260, 0.58176, 0.58095, 0.58018, 0.57944, 0.57873, 0.57806, 0.57740, 0.57678, 0.57618, 0.57560, 0.57504,
    0.57450, 0.57398, 0.57348, 0.57299, 0.57252, 0.57207, 0.57163, 0.57120, 0.57079, 0.57039, 0.57000, 0.56963,
)  # fmt: skip
C_0 = 0.5435611  # the rate in continuous time: t |exp(-t (1 - Q))[E P]| <= C_0
UNSEEN = 2.4396  # of convex sets: E dist^2 to the next set after n exchangeable draws is at most this / sqrt(n)


def fresh(n: int) -> float:
    """u(n), the bound on E |P_m z_n|^2 for a fresh task m after n draws, in units of |w_0 - w*|^2.

    >>> fresh(0), round(fresh(1), 5), round(10**6 * fresh(10**6), 4)
    (1.0, 0.3849, 0.5436)
    """
    if n <= len(FIRST):
        return FIRST[n - 1] / (n + 1) if n else 1.0
    return (C_0 * math.exp(1 / (12 * (n + 1))) * (1 + 3.48 / (n + 1)) + 2e-6) / (n + 1)


def visited(k: int) -> float:
    """v(k), a bound on sum_t E |S_k ... S_(t+1) P_t z_(t-1)|^2, S_t the step t, P_t the row space of its task.

    >>> visited(2), round(visited(3), 5), visited(1)
    (0.5, 0.75758, 1.0)
    """
    return 0.5 if k % 2 == 0 else min(1.0, 0.5 + fresh(k - 1))


# Independent draws ----------------------------------------------------------------------------------------------------

_FRESH = called("u", "u", lambda n: fresh(round(n)), K)
_U_IS = "u(n) = the rate of docs/one-over-k.md, about 0.5436/n", r"u(n)\le\frac3{4n}"


def _with_gap(s: Setting, k: int) -> float:
    """The smallest (1 - gap)^(k-n) u(n), over the n <= k that may give it: k, those near -1/log(1-gap), the first."""
    gap = known(s.spectral_gap)
    middle = round(-1 / math.log1p(-gap)) if 0 < gap < 1 else 0 if gap else k
    draws = {k, *(min(max(middle + i, 0), k) for i in (-1, 0, 1))}
    if middle <= len(FIRST):  # beyond these u(n) is smooth
        draws.update(range(min(k, len(FIRST)) + 1))
    return min(power_left(gap, s.contraction, k - n) * fresh(n) for n in draws)


_GEOMETRIC = Expression("u_gap(k)", r"\min_{n\le k}(1-\lambda_{\min})^{k-n}u(n)", _with_gap, ("spectral_gap",))
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
_uniform(
    (S * _FRESH / 2).where(*_U_IS),
    "universal",
    title=f"{_drawn.title}, smallest constants",
    origin="tightened",
    note="At most 0.375 S/k at every k, and 0.2718 S/k for large k; some tasks reach 0.2270 S/k.",
)
_weighted(
    "loss",
    (RATIO * DISTANCE * _FRESH / 2).where(*_U_IS),
    "weights",
    title=f"{_drawn.title}, any weights",
    origin="tightened",
    note="L is at most max_m(|X_m|^2 / (T p_m)) sum_m p_m |P_m (w - w*)|^2 / 2.",
)
_weighted(
    "loss",
    (RATIO * DISTANCE * _GEOMETRIC / 2)
    .where("u_gap(k) = the least (1-lambda_min)^(k-n) u(n) over n <= k")
    .where("lambda_min = the least eigenvalue of sum_m p_m P_m on the joint row space"),
    "gap",
    title=f"{_drawn.title}, with a spectral gap",
    origin="tightened",
    note="Q^k[X] = Q^(k-n)[Q^n[X]] is at most u(n) Q^(k-n)[I], X = sum_m p_m P_m.",
)
_weighted(
    "forgetting",
    S / 2 * Expression(
        "(sqrt(u(k-1)) + sqrt(v(k)/k))^2, v(k) = 1/2 for even k and min(1, 1/2 + u(k-1)) for odd k",
        r"\left(\sqrt{u(k-1)}+\sqrt{v(k)/k}\right)^2",
        lambda s, k: (math.sqrt(fresh(k - 1)) + math.sqrt(visited(k) / k)) ** 2,
    ),
    title="forgetting at rate 1/k",
    range=Range(1),
    note="About 1.043 S/k for large k. Visits are weighted by p, so R^2 stands where the loss has "
    "max_m |X_m|^2/(T p_m).",
)  # fmt: skip

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


def _next_loss(instance: Instance, numbers: Expected) -> Sides:
    scale, k = setting_of(instance).scale, instance.k
    return Sides(numbers.next_loss(k), 27 * scale / (32 * (k + 1)), numbers.doubt + ROUNDING * scale, how=numbers.how)


declare_claim(
    label="here:single-pass",
    part="next loss",
    statement=f"E L_tau(k+1)(w_k) <= {_NEXT.text} (without replacement, k < T)",
    source=f"{PAGE} (here:single-pass)",
    title=_single_pass.title,
    status="proved here",
    note="The proof of the rate of independent draws, with a factor for each task, in the mean over all orders.",
    draw=permuted(1, 1),
    missing=all_of(regression, projection, covers("without replacement"), steps(0, last=1)),
)(paths(_next_loss))

# SGD with any step below 2/beta ---------------------------------------------------------------------------------------


def reach(x: float) -> float:
    """rho(x), the conformal radius of the s on which A -> s A + (1-s) S A S is a contraction, x = eta beta in (0, 2).

    >>> round(27 * reach(1.0), 12), round(reach(0.5), 6), round(reach(1.5), 6)
    (16.0, 1.126646, 0.241941)
    """
    return 16 * math.acos(x / 2) ** 2 / (math.pi**2 * (2 + x))


_RHO = called("rho", r"\rho", reach, X)
_RHO_IS = "rho(x) = 16 acos(x/2)^2 / (pi^2 (2+x))", r"\rho(x)=\frac{16\arccos^2(x/2)}{\pi^2(2+x)}"


def _at_next(part: str, applies: Missing) -> Checked:
    words = "E f(w_k) <= {}, independent draws with any weights"
    return compared(next_loss_at_most, words, descents(), all_of(applies, covers("i.i.d."), steps(0)), part)


_sgd = partial(
    Theorem, schemes=SGD_SCHEMES, status="proved here", assumptions=SMOOTH, needs=("eta", "beta"), conditions=(STEP,)
)
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
    (DISTANCE * _FRESH / (2 * ETA)).where(*_U_IS),
    "universal",
    title=f"{_last.title}, steps up to 1/beta",
    origin="tightened",
    conditions=(Condition(lambda s, k: known(s.eta) * known(s.beta) <= 1 + 1e-12, "is for eta <= 1/beta"),),
    note="A step of at most 1/beta is the compression of a projection of a larger space, so that u(n) bounds it, too.",
    check=_at_next("objective, universal", least_squares(0, 1, closed=True)),
)
_sgd(
    "here:single-pass-sgd",
    "single pass of SGD at rate 1/k",
    source=f"{PAGE} (here:single-pass-sgd)",
    orderings=WITHOUT,
    range=Range(1, "T-1"),
    convention="mean of f over the k tasks that were learned and the next one",
)(
    "objective",
    (DISTANCE / (2 * ETA * (2 - X) * (K + 1)) * ((1 / root(_RHO) + X) ** 2 + 1 / (_RHO * (K + 1))))
    .where(X_IS)
    .where(*_RHO_IS),
    note="The first term is for the tasks that were learned, the second for the next one.",
    check=seen_and_next("objective", least_squares(), first=1),
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
_residual = Theorem(
    "here:projections",
    _TITLE,
    source=f"{PAGE} (here:projections)",
    status="proved here",
    problems=("regression", "classification", "sets"),
    assumptions="closed convex sets with a common point, learned by projection",
    convention="mean over all tasks of half the squared distance to the task's solutions",
    note=_WHY,
)
# half the squared distance to a fresh set is the mean over all sets
_residual("residual", DISTANCE / root(K + 1), "with", orderings=WITH, range=Range(0), check=ON_SETS(WITH))
_residual(
    "residual",
    (DISTANCE * (K / T * _SEEN_ONCE + (T - K) / T * _unseen(K) / 2)).where(*_C_IS),
    "without",
    orderings=WITHOUT,
    range=Range(1, "T"),
    check=ON_SETS(WITHOUT),
)
_forgetting = Theorem(
    "here:classification",
    _TITLE,
    source=f"{PAGE} (here:classification)",
    status="proved here",
    problems=("classification", "sets"),
    assumptions="jointly separable tasks, in the limit of vanishing regularisation (R = 1 for sets)",
    convention="L_m = 1/2 max_i (1 - y_i x_i.w)_+^2 <= R^2/2 dist^2",
    note=_WHY,
)
declare_on_sets(_forgetting("forgetting", S * _SEEN_DRAWN, "with", orderings=WITH, check=ON_TASKS(WITH)))
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
