"""Worst cases: greedy orderings that fail (Tsipory et al. 2025), and two cloned lines in random order.

Tsipory et al. 2025 also have a rate of greedy orderings with repetition.

The two lines match the rates of random orderings up to constants. A projection onto the line of the last task changes
nothing, and a change of line costs a factor cos(theta)^2 of the squared error. Without replacement, the k - 1 pairs of
consecutive tasks differ with probability T / (2 (T-1)) each; Jensen's inequality over the number of changes gives the
lower bounds, for the loss with these means and for forgetting with means weighted by the number of visits to the task
that was not learned last. Two tasks change in every step, so that the bounds are exact there. Two subspaces split into
planes with two lines each.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from forgetting.orderings import Ordering, WithoutReplacement, WithReplacement
from forgetting.orderings.laws import Permutation
from forgetting.tasks import RegressionTasks, families
from forgetting.tasks.worst_tasks import Worst, two_lines_forgetting, two_lines_loss, two_lines_power
from forgetting.theory.draws import realizable
from forgetting.theory.expression import DIM, Expression, K, S, T, number, root
from forgetting.theory.instance import Instance
from forgetting.theory.later.proved_here import HERE
from forgetting.theory.later.published_rates import HALVED, ROOM, WORST
from forgetting.theory.setting import known
from forgetting.theory.statement import NAMES, Condition, Quantity, Range
from forgetting.theory.theorem import Theorem, expected
from forgetting.theory.verdict import Draw

_TSIPORY = "Tsipory et al. 2025"
Theorem("tsipory2025:single-pass", "greedy single pass can fail", source=_TSIPORY, orderings="greedy single pass")(
    "loss",
    (number(1) / 16 - 1 / (8 * DIM)) * S,
    "lower",
    kind="lower",
    needs=("T",),
    conditions=(
        Condition(lambda s, k: known(s.d) >= 30, "is for d >= 30"),
        Condition(lambda s, k: known(s.T) == known(s.d) - 1 == k, "is for a whole pass over T = d - 1 tasks, k = T"),
        ROOM,
    ),
    convention=f"{HALVED}; {WORST}",
    note="Reached with room to spare by families.greedy_failure(d), by both greedy rules.",
    instance=lambda tasks, k: families.greedy_failure(tasks + 1),
)
Theorem("tsipory2025:repeated", "greedy with repetition", source=_TSIPORY, orderings="greedy")(
    "loss", S / root(K, 3), kind="rate", status="rate only"
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


def _pairs(ordering: Ordering) -> Draw:
    """Two tasks, lines in a plane half of the time; each of them once, or any number of draws."""

    def draw(rng: np.random.Generator, index: int) -> Instance:
        tasks = families.two_lines(rng.uniform(0, np.pi / 2))
        if index % 2:
            dim = int(rng.integers(1, 7))
            matrices = [rng.standard_normal((int(rng.integers(1, dim + 1)), dim)) for _ in range(2)]
            tasks = realizable(matrices, rng.standard_normal(dim))
        once = isinstance(ordering.law, Permutation)
        return Instance(tasks, ordering, 2 if once else int(np.exp(rng.uniform(np.log(2), np.log(60)))))

    return draw


# Two lines ------------------------------------------------------------------------------------------------------------

_lower = partial(
    Theorem,
    kind="lower",
    needs=("T",),
    conditions=(
        Condition(lambda s, k: known(s.T) % 2 == 0, "is for even T, so that both lines are cloned equally often"),
        ROOM,
    ),
    convention=WORST,
)
_random = _lower(
    "two-lines:random",
    "two lines, random ordering",
    source="two lines (the pair of Evron et al. 2022, Theorem 10, cloned), with w* halfway between them",
    orderings="with replacement",
    tight=True,
)
_single_pass = _lower(
    "two-lines:single-pass",
    "two lines cloned, without replacement",
    source=f"footnote of Table 1 in Evron et al. 2026, {HERE} (two-lines:single-pass)",
    status="proved here",
    orderings="without replacement",
    range=Range(2, "T"),
    note="By Jensen's inequality over the number of changes of line.",
)


def _exact(right: Expression, quantity: Quantity, *, single_pass: bool = False) -> None:
    name, order = ("single-pass", "without replacement") if single_pass else ("random", "with replacement")
    words = f"{NAMES[quantity]} <= {{}} for two tasks, {order}{', k <= 2' if single_pass else ''}"
    Theorem(
        f"two-lines:{name}",
        f"two tasks, {order if single_pass else 'random ordering'}: the exact worst case",
        source=f"principal angles of two subspaces, {HERE} (two-lines:{name})",
        orderings=order,
    )(
        quantity,
        right,
        range=Range(1, "T" if single_pass else None),
        needs=("T",),
        conditions=(Condition(lambda s, k: s.T == 2, "is for T = 2"),),
        status="proved here",
        note=f"The problem splits into planes, in each of which the {quantity} is an explicit function of one angle.",
        tight=True,
        check=expected(_pairs(WithoutReplacement() if single_pass else WithReplacement()), words),
    )


_ABOUT = ("about S / (2 e k) at k = T", r"\approx\frac{S}{2ek}\ \text{at}\ k=T")
_NEAR = "Exceeds 0.989 of thm:random_convergence_rate at k = 100 and 0.994 at k = 200."

_random(
    "loss",
    _LOSS.where("about S / (2 e k)", r"\approx\frac{S}{2ek}"),
    "lower",
    note=_NEAR,
    instance=lambda tasks, k: _cloned(tasks, two_lines_loss(k)),
)
_exact(_LOSS, "loss")
_random("forgetting", _FORGETTING, "lower", instance=lambda tasks, k: _cloned(tasks, two_lines_forgetting(k)))
_exact(_FORGETTING, "forgetting")
_single_pass(
    "loss",
    _PASS_LOSS.where(*_ABOUT),
    "lower",
    instance=lambda tasks, k: _cloned(tasks, _pass_loss(tasks, k)),
)
_exact(_PASS_LOSS, "loss", single_pass=True)
_single_pass(
    "forgetting",
    _PASS_FORGETTING.where(*_ABOUT),
    "lower",
    instance=lambda tasks, k: _cloned(tasks, _pass_forgetting(tasks, k)),
)
_exact(_PASS_FORGETTING, "forgetting", single_pass=True)
