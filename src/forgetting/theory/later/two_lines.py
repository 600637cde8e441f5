"""Two lines: the exact worst case of two tasks, and lines cloned, which match the rates up to constants."""

from __future__ import annotations

import numpy as np

from forgetting.orderings import WithoutReplacement, WithReplacement
from forgetting.tasks import families
from forgetting.theory.bound import Bound, Condition, Quantity, Range
from forgetting.theory.checking import expected_at_most
from forgetting.theory.closed_forms import spectral, two_lines_forgetting, two_lines_loss, two_lines_single_pass
from forgetting.theory.draws import Draw, realizable
from forgetting.theory.expression import Expression, K, S, T, called, root
from forgetting.theory.instance import Instance
"""Two lines, cloned: worst cases of random orderings, which match the rates up to constants.

A projection onto the line of the last task changes nothing, and a change of line costs a factor cos(theta)^2 of the
squared error. Without replacement, the k - 1 pairs of consecutive tasks differ with probability T / (2 (T-1)) each;
Jensen's inequality over the number of changes gives the lower bounds, for the loss with these means and for forgetting
with means weighted by the number of visits to the task that was not learned last. Two tasks change in every step, so
that the bounds are exact there. Two subspaces split into planes with two lines each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from forgetting.tasks import RegressionTasks, families
from forgetting.theory.bound import Bound, Condition, Quantity, Range
from forgetting.theory.closed_forms import Worst, two_lines_forgetting, two_lines_loss, two_lines_power
from forgetting.theory.expression import Expression, K, S, T
from forgetting.theory.later.evron2022 import ROOM, WORST
from forgetting.theory.later.proved_here import HERE
from forgetting.theory.paper.regression_rates import G_IS
from forgetting.theory.setting import known
from forgetting.theory.statement import register_bound

_PAIRS = Condition(lambda s, k: known(s.T) % 2 == 0, "is for even T, so that both lines are cloned equally often")
_TWO = Condition(lambda s, k: s.T == 2, "is for T = 2")
_WORST_PAIR = Expression(
    "max_c (1-c^2)(1+c)/8 ((1+c^2)/2)^(k-1)",
    r"\max_c\frac{(1-c^2)(1+c)}{8}\left(\frac{1+c^2}{2}\right)^{k-1}",
    lambda s, k: two_lines_loss(k),
)
_WORST_LOSS = S * _WORST_PAIR
_WORST_SINGLE_PASS = S * Expression(
    "max_c (1-c^2)(1+c)/8 c^(2(k-1))",
    r"\max_c\frac{(1-c^2)(1+c)}{8}c^{2(k-1)}",
    lambda s, k: two_lines_single_pass(k),
)
_WORST_FORGETTING = Expression(
    "E F(k) of two lines with sin^2(theta) = 2/(k+1), about S / (2 e k)",
    r"\mathbb{E}F(k)\ \text{of two lines with}\ \sin^2\theta=\tfrac{2}{k+1},\ \approx\frac{S}{2ek}",
    lambda s, k: s.scale * two_lines_forgetting(k),
)


def _pairs(name: str) -> Draw:
    """Two tasks under draws with replacement, or both of them once; lines in a plane half of the time."""

    def draw(rng: np.random.Generator, index: int) -> Instance:
        tasks = families.two_lines(rng.uniform(0, np.pi / 2))
        if index % 2:
            dim = int(rng.integers(1, 7))
            matrices = [rng.standard_normal((int(rng.integers(1, dim + 1)), dim)) for _ in range(2)]
            tasks = realizable(matrices, rng.standard_normal(dim))
        if name == "random":
            return Instance(tasks, WithReplacement(), int(np.exp(rng.uniform(np.log(2), np.log(60)))))
        return Instance(tasks, WithoutReplacement(), 2)

    return draw


def _two_tasks(name: str, quantity: Quantity, right: Expression, first: int, note: str, *, tight: bool = True) -> None:
    with_replacement = name == "random"
    expected_at_most(
        Bound(
            key=f"two-lines:{name}/{quantity}",
            title="two tasks: the exact worst case" if tight else "two tasks",
            source=f"principal angles of two subspaces, {HERE} (two-lines:{name})",
            quantity=quantity,
            orderings=("with replacement" if with_replacement else "without replacement",),
            status="proved here",
            expression=right,
            range=Range(first) if with_replacement else Range(first, "T"),
            needs=("T",),
            conditions=(_TWO,),
            note=note,
            tight=tight,
        ),
        part=quantity,
        statement=("E L(w_k)" if quantity == "loss" else "E F(k)") + " <= {} for two tasks, "
        + ("with replacement" if with_replacement else "without replacement, k <= 2"),
        draw=_pairs(name),
    )  # fmt: skip


_PLANES = "The problem splits into planes, in each of which the loss is an explicit function of one angle."
_two_tasks("random", "loss", _WORST_LOSS, 1, _PLANES)
_two_tasks(
    "random",
    "forgetting",
    (1 - 1 / K) * S * _WORST_PAIR,
    2,
    _PLANES + " The exact worst case is 0.61 of this at k = 2, 0.80 at k = 3 and 0.99 at k = 10.",
    tight=False,
)
_two_tasks("single-pass", "loss", _WORST_SINGLE_PASS, 1, _PLANES)
_two_tasks("single-pass", "forgetting", _WORST_SINGLE_PASS, 2, _PLANES)
register_bound(
    Bound(
        key="two-lines:random/loss/lower",


def _lower(right: Expression, quantity: Quantity, worst: Callable[[int, int], Worst], note: str = "") -> Bound:
    return Bound(
        key=f"two-lines:random/{quantity}/lower",
        title="two lines, random ordering",
        source="two lines (the pair of Evron et al. 2022, Theorem 10, cloned), with w* halfway between them",
        quantity=quantity,
        orderings=("with replacement",),
        kind="lower",
        expression=right,
        needs=("T",),
        conditions=(_PAIRS, ROOM),
        convention=WORST,
        note=note,
        tight=True,
        instance=lambda tasks, k: _cloned(tasks, worst(tasks, k)),
    )
)
register_bound(
    Bound(
        key="two-lines:random/forgetting/lower",
        title="two lines, random ordering",
        source=_LINES,
        quantity="forgetting",
        orderings=("with replacement",),
        kind="lower",
        expression=_WORST_FORGETTING,
        needs=("T",),
        conditions=(_PAIRS, ROOM),
        convention=WORST,
    )
)


def _exact(right: Expression, quantity: Quantity, *, single_pass: bool = False) -> Bound:
    name, order = ("single-pass", "without replacement") if single_pass else ("random", "with replacement")
    return Bound(
        key=f"two-lines:{name}/{quantity}",
        title=f"two tasks, {order if single_pass else 'random ordering'}: the exact worst case",
        source="principal angles of two subspaces",
        quantity=quantity,
        orderings=(order,),
        expression=right,
        range=Range(1, "T" if single_pass else None),
        needs=("T",),
        conditions=(Condition(lambda s, k: s.T == 2, "is for T = 2"),),
        note=f"The problem splits into planes, in each of which the {quantity} is an explicit function of one angle.",
        tight=True,
    )

# Without replacement, T/2 clones of each line: N switches of the line make |z_k|^2 = s^N (1 + s^(1/2))/2 for s = cos^2.
# E s^N is at least s^(E N) by Jensen's inequality, and (1 - s) s^(E N) is g(E N) at s = E N/(E N + 1).
_V = (K - 1) * T / (2 * (T - 1))  # E N, and the mean number of visits to the line that was not learned last
_U = (1 + 3 * (K - 2) / 2 + (K - 2) * (K - 3) * (T - 2) / (2 * (T - 3))) / (K - 1)  # E N weighted by these visits


def _peak(factor: Expression, mean: Expression) -> Expression:
    """(1 + sqrt(s)) (1 - s) s^mean times a factor, at s = mean/(mean + 1)."""
    return factor * (1 + root(mean / (mean + 1))) * called("g", "g", spectral, mean)


def _cloned(quantity: Quantity, right: Expression, first: int) -> Bound:
    return Bound(
        key=f"two-lines:single-pass/{quantity}/lower",
        title="two lines cloned, without replacement",
        source=f"footnote of Table 1 in Evron et al. 2026, {HERE} (two-lines:single-pass)",
        quantity=quantity,
        orderings=("without replacement",),
        kind="lower",
        status="proved here",
        expression=right.where(*G_IS),
        range=Range(first, "T"),
        conditions=(_PAIRS, ROOM),
        convention=WORST,
        note="About S / (2 e k), with the same constant as with replacement.",
    )


_V_IS, _U_IS = ((f"{name} = {mean.text}", f"{name}={mean.latex}") for name, mean in (("v", _V), ("u", _U)))
_v, _u = (Expression(name, name, mean.compute, mean.needs) for name, mean in (("v", _V), ("u", _U)))
register_bound(_cloned("loss", _peak(S / 8, _v).where(*_V_IS), 1))
register_bound(_cloned("forgetting", _peak(S * _v / (4 * K), _u).where(*_V_IS).where(*_U_IS), 2))
def _single_pass(right: Expression, quantity: Quantity, worst: Callable[[int, int], Worst]) -> Bound:
    return replace(
        _lower(right.where(*_ABOUT), quantity, worst),
        key=f"two-lines:single-pass/{quantity}/lower",
        title="two lines cloned, without replacement",
        source="footnote of Table 1 in Evron et al. 2026, with a number",
        orderings=("without replacement",),
        range=Range(2, "T"),
        note="By Jensen's inequality over the number of changes of line.",
        tight=False,
    )


def _cloned(tasks: int, worst: Worst) -> RegressionTasks:
    return families.repeated(families.two_lines(math.acos(worst.cosine)), tasks // 2)


def _pass_loss(tasks: int, k: int) -> Worst:
    return two_lines_power((k - 1) * tasks / (tasks - 1))


def _pass_forgetting(tasks: int, k: int) -> Worst:
    return two_lines_power((3 * k - 4 + (k - 2) * (k - 3) * (tasks - 2) / (tasks - 3)) / (k - 1) if k > 1 else 0.0)


_LOSS = S * Expression(
    "max_c (1-c^2)(1+c)/8 ((1+c^2)/2)^(k-1)",
    r"\max_c\frac{(1-c^2)(1+c)}{8}\left(\frac{1+c^2}{2}\right)^{k-1}",
    lambda s, k: two_lines_loss(k).value,
)
_FORGETTING = Expression(
    "the largest E F(k) of two lines, about S / (2 e k)",
    r"\max_\theta\mathbb{E}F(k)\ \text{of two lines},\ \approx\frac{S}{2ek}",
    lambda s, k: s.scale * two_lines_forgetting(k).value,
)
_PASS_LOSS = S * Expression(
    "max_c (1-c^2)(1+c)/8 c^((k-1) T/(T-1))",
    r"\max_c\frac{(1-c^2)(1+c)}{8}c^{\frac{(k-1)T}{T-1}}",
    lambda s, k: _pass_loss(int(known(s.T)), k).value,
)
_PASS_FORGETTING = (S * (K - 1) * T / (K * (T - 1))) * Expression(
    "max_c (1-c^2)(1+c)/8 c^((3 k - 4 + (k-2)(k-3)(T-2)/(T-3))/(k-1))",
    r"\max_c\frac{(1-c^2)(1+c)}{8}c^{\frac{3k-4+(k-2)(k-3)(T-2)/(T-3)}{k-1}}",
    lambda s, k: _pass_forgetting(int(known(s.T)), k).value,
)
_ABOUT = ("about S / (2 e k) at k = T", r"\approx\frac{S}{2ek}\ \text{at}\ k=T")
_NEAR = "Exceeds 0.989 of thm:random_convergence_rate at k = 100 and 0.994 at k = 200."

register_bound(
    _lower(_LOSS.where("about S / (2 e k)", r"\approx\frac{S}{2ek}"), "loss", lambda _, k: two_lines_loss(k), _NEAR)
)
register_bound(_exact(_LOSS, "loss"))
register_bound(_lower(_FORGETTING, "forgetting", lambda _, k: two_lines_forgetting(k)))
register_bound(_exact(_FORGETTING, "forgetting"))
register_bound(_single_pass(_PASS_LOSS, "loss", _pass_loss))
register_bound(_exact(_PASS_LOSS, "loss", single_pass=True))
register_bound(_single_pass(_PASS_FORGETTING, "forgetting", _pass_forgetting))
register_bound(_exact(_PASS_FORGETTING, "forgetting", single_pass=True))
