"""Section 5: last-iterate bounds for SGD with a fixed step size on realizable least squares, with replacement.

The objective is f(w) = E_i 1/2 |A_i w - b_i|^2 with |A_i^T A_i| <= beta; D^2 = |w_0 - w*|^2 and x = eta beta. For a
regression problem f is the modified objective (beta = 1) or the loss (beta = R^2). In checks, runs by projection and on
the modified objective are rewritten as SGD on tasks with orthonormal rows first, and beta is the least there is,
max_m |A_m|^2: a larger one weakens every statement. T in the paper is k here, except in `lem:regret_bound`, whose T + 1
terms are k here.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from forgetting.core.numerical import ROUNDING
from forgetting.schemes import SGD
from forgetting.theory.checking import all_of, covers, expectation_at_most, least_squares, paths, steps
from forgetting.theory.claim import declare_claim
from forgetting.theory.draws import descents, permuted, with_beta
from forgetting.theory.expectations import Expected, with_doubt
from forgetting.theory.expression import BETA, D_SQUARED, ETA, E, Expression, K, S, X, last_iterate, logarithm, root
from forgetting.theory.instance import Instance
from forgetting.theory.paper.regression_rates import PRODUCT
from forgetting.theory.setting import Setting, known
from forgetting.theory.statement import Condition, Range
from forgetting.theory.theorem import Checked, Theorem, compared
from forgetting.theory.verdict import Missing, Settle, Sides, unchanged

X_IS = "x = eta beta"
SGD_SCHEMES = ("projection", "sgd")
SMOOTH = "realizable least squares, beta-smooth in every task, fixed step size eta < 2/beta"


def _x(s: Setting) -> float:
    return known(s.eta) * known(s.beta)


def _at_log(s: Setting, k: int) -> bool:
    return k >= 2 and math.isclose(_x(s) * math.log(k), 1, rel_tol=1e-12)


STEP = Condition(lambda s, k: _x(s) < 2, "eta must be below 2/beta")
GREEDY = Condition(lambda s, k: math.isclose(_x(s), 1, rel_tol=1e-12), "is for eta = 1/beta")
LOG = Condition(_at_log, "is for eta = 1/(beta log k)")


def last_iterate_of(n: Expression) -> Expression:
    """A_x(n), the bound on the next loss after n steps, in units of beta D^2."""
    return Expression(
        f"A_x({n.text})", f"A_x({n.latex})", lambda s, k: last_iterate(_x(s), round(n.compute(s, k))), ("eta", "beta")
    )


# What checks share ----------------------------------------------------------------------------------------------------


def dist_sq(instance: Instance) -> float:
    """|w_0 - w*|^2."""
    gap = instance.tasks.geometry.start(instance.start)
    return float(gap @ gap)


def unit(instance: Instance) -> float:
    """beta |w_0 - w*|^2, the natural unit of the objective."""
    return float(instance.tasks.radius**2 * dist_sq(instance))


def setting(instance: Instance) -> Setting:
    """The parameters of SGD on the loss."""
    x, beta = with_beta(instance)
    tasks = instance.tasks
    return Setting(T=tasks.num_tasks, rank_joint=tasks.rank_joint, dist_sq=dist_sq(instance), eta=x / beta, beta=beta)


def with_greedy_step(instance: Instance) -> Instance:
    """The instance with eta = 1/beta."""
    return replace(instance, scheme=SGD(1 / instance.tasks.radius**2, "loss"))


#: both sides of the statement that E f(w_k; i_k) is at most a bound
NEXT_LOSS_AT_MOST = expectation_at_most(
    lambda numbers, k: numbers.next_loss(k), setting, lambda at: known(at.beta) * at.dist_sq, sgd=True
)


def next_loss(
    part: str,
    applies: Missing,
    settle: Settle = unchanged,
    first: int = 1,
    words: str = "independent draws with any weights",
) -> Checked:
    """The check of a bound on E f(w_k) for independent draws, k >= `first`."""
    missing = all_of(applies, covers("i.i.d."), steps(first))
    return compared(NEXT_LOSS_AT_MOST, f"E f(w_k) <= {{}}, {words}", descents(), missing, part, settle)


# thm:sgd_last_iterate_main --------------------------------------------------------------------------------------------


#: a theorem on SGD with a fixed step size
of_sgd = partial(Theorem, schemes=SGD_SCHEMES, assumptions=SMOOTH, needs=("eta", "beta"))
_last = of_sgd(
    "thm:sgd_last_iterate_main",
    "last iterate of SGD",
    orderings="i.i.d.",
    convention="f is the mean of the f_m under the sampling probabilities; T there is k here",
)


_checked = partial(next_loss, words="k >= 1, with replacement, any weights")
AT_ONE = least_squares(1 - 1e-9, 1, closed=True)
STATED = E * D_SQUARED / (2 * ETA * (2 - X) * K ** ((1 - X / 2) ** 2))
GENERAL = _last("objective", STATED.where(X_IS), conditions=(STEP,), check=_checked("general", least_squares()))
_last(
    "objective",
    E * BETA * D_SQUARED / (2 * root(K, 4)),
    "greedy",
    conditions=(GREEDY,),
    check=_checked("eta = 1/beta", AT_ONE, with_greedy_step),
)
_last(
    "objective",
    BETA * D_SQUARED * logarithm(K) / K,
    "log",
    conditions=(LOG,),
    range=Range(2),
    kind="rate",
    status="rate only",
    note="The theorem's own formula gives a factor exp(2 - 1/(4 log k)) / (4 - 2/log k), which tends to e^2/4.",
)
_PRODUCT_TEXT = "D^2 / (2 eta (2-x) (k+1)) prod_{j<=k} (1 + x(1-x/4)/j)"
_PRODUCT_LATEX = r"\frac{D^2}{2\eta(2-\eta\beta)(k+1)}\prod_{j=1}^{k}\left(1+\frac{\eta\beta(1-\eta\beta/4)}{j}\right)"
_last(
    "objective",
    replace(BETA * D_SQUARED * last_iterate_of(K), text=_PRODUCT_TEXT, latex=_PRODUCT_LATEX).where(X_IS),
    "product",
    conditions=(STEP,),
    note=PRODUCT,
)

# lem:regret_bound and lem:ratio_avg_last ------------------------------------------------------------------------------


def _regret(instance: Instance, numbers: Expected) -> Sides:
    x, beta = with_beta(instance)
    rhs = dist_sq(instance) * beta / (2 * x * (2 - x))
    return Sides(numbers.regret_sum(instance.k), rhs, numbers.doubt * instance.k + ROUNDING * rhs, how=numbers.how)


Theorem("lem:regret_bound", "regret of every ordering", orderings="any", schemes=SGD_SCHEMES)(
    "regret",
    (S / (2 * X * (2 - X) * K)).where("x = eta beta (S/(2k) for projections)"),
    conditions=(STEP,),
    assumptions="jointly realizable tasks, SGD on the modified objective (beta = 1) or on the loss (beta = R^2)",
    convention="mean over the k visits of the loss just before the task is learned; sums there run over T+1 = k visits",
    note="Holds for every sequence of tasks, not only on average. The bound is reached in the limit of one task of "
    "rank 1 repeated for ever. T + 1 there is k here.",
    tight=True,
    check=compared(
        lambda bound: paths(_regret, sgd=True),
        "sum_(t<k) f(w_t; i_t) <= |w_0 - w*|^2 / (2 eta (2 - eta beta)) for every sequence i_0, ..., i_(k-1)",
        descents("sequence"),
        all_of(least_squares(), covers("any"), steps(1)),
    ),
)


def _against_average(instance: Instance, numbers: Expected) -> Sides:
    """E f(w_k; i_k) against (e k)^(x(1-x/4)) times the mean of E f(w_t; i_t) over t <= k."""
    x, k = with_beta(instance)[0], instance.k
    doubt = numbers.doubt + ROUNDING * unit(instance)
    last, off = with_doubt(numbers, numbers.next_loss, k)
    before, off_mean = with_doubt(numbers, numbers.regret_sum, k)
    factor = (math.e * k) ** (x * (1 - x / 4)) / (k + 1)
    doubt = doubt * (1 + factor * (k + 1)) + off * (1 + factor) + off_mean * k * factor
    return Sides(last, factor * (before + last), doubt, how=numbers.how)


AGAINST_AVERAGE = paths(_against_average, sgd=True)
_RATIO = "E f(w_k; i_k) <= (e k)^(x(1-x/4)) E mean_(t<=k) f(w_t; i_t), x = eta beta < 2"
_EXCHANGEABLE = (
    "Stated for draws whose future is exchangeable given the past; these are the two cases that the paper uses. The "
    "last line of its proof drops the expectation on the right."
)
_ratio = partial(declare_claim, label="lem:ratio_avg_last", note=_EXCHANGEABLE)
_ratio(
    part="independent",
    statement=f"{_RATIO}, independent draws",
    draw=descents(),
    missing=all_of(least_squares(), covers("i.i.d."), steps(1)),
)(AGAINST_AVERAGE)
_ratio(
    part="without replacement",
    statement=f"{_RATIO}, without replacement draws",
    draw=permuted(1, 1, projections=False),
    missing=all_of(least_squares(), covers("without replacement"), steps(1, last=1)),
)(AGAINST_AVERAGE)
