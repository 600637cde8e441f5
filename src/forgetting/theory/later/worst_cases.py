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
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from forgetting.orderings import Ordering, WithoutReplacement, WithReplacement
from forgetting.orderings.laws import Permutation
from forgetting.tasks import RegressionTasks, families
from forgetting.tasks.worst_tasks import Worst, two_lines_forgetting, two_lines_loss, two_lines_power
from forgetting.theory.bound import Condition, Quantity, Range
from forgetting.theory.claims_from_bounds import expected_at_most
from forgetting.theory.draws import Draw, realizable
from forgetting.theory.expression import DIM, Expression, K, S, T, number, root
from forgetting.theory.instance import Instance
from forgetting.theory.later.proved_here import HERE
from forgetting.theory.later.published_rates import HALVED, ROOM, WORST
from forgetting.theory.setting import known
from forgetting.theory.statement import Bound, register_bound

register_bound(
    Bound(
        key="tsipory2025:single-pass/loss/lower",
        title="greedy single pass can fail",
        source="Tsipory et al. 2025",
        quantity="loss",
        orderings=("greedy single pass",),
        kind="lower",
        expression=(number(1) / 16 - 1 / (8 * DIM)) * S,
        needs=("T",),
        conditions=(
            Condition(lambda s, k: known(s.d) >= 30, "is for d >= 30"),
            Condition(
                lambda s, k: known(s.T) == known(s.d) - 1 == k, "is for a whole pass over T = d - 1 tasks, k = T"
            ),
            ROOM,
        ),
        convention=f"{HALVED}; {WORST}",
        note="Reached with room to spare by families.greedy_failure(d), by both greedy rules.",
        instance=lambda tasks, k: families.greedy_failure(tasks + 1),
    )
)
register_bound(
    Bound(
        key="tsipory2025:repeated/loss",
        title="greedy with repetition",
        source="Tsipory et al. 2025",
        quantity="loss",
        orderings=("greedy",),
        kind="rate",
        status="rate only",
        expression=S / root(K, 3),
    )
)


_PAIRS = Condition(lambda s, k: known(s.T) % 2 == 0, "is for even T, so that both lines are cloned equally often")


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


def _exact(right: Expression, quantity: Quantity, *, single_pass: bool = False) -> None:
    name, order = ("single-pass", "without replacement") if single_pass else ("random", "with replacement")
    expected_at_most(
        Bound(
            key=f"two-lines:{name}/{quantity}",
            title=f"two tasks, {order if single_pass else 'random ordering'}: the exact worst case",
            source=f"principal angles of two subspaces, {HERE} (two-lines:{name})",
            quantity=quantity,
            orderings=(order,),
            expression=right,
            range=Range(1, "T" if single_pass else None),
            needs=("T",),
            conditions=(Condition(lambda s, k: s.T == 2, "is for T = 2"),),
            status="proved here",
            note="The problem splits into planes, in each of which the "
            f"{quantity} is an explicit function of one angle.",
            tight=True,
        ),
        part=quantity,
        statement=f"{'E L(w_k)' if quantity == 'loss' else 'E F(k)'} <= {{}} for two tasks, {order}"
        + (", k <= 2" if single_pass else ""),
        draw=_pairs(WithoutReplacement() if single_pass else WithReplacement()),
    )


def _single_pass(right: Expression, quantity: Quantity, worst: Callable[[int, int], Worst]) -> Bound:
    return replace(
        _lower(right.where(*_ABOUT), quantity, worst),
        key=f"two-lines:single-pass/{quantity}/lower",
        title="two lines cloned, without replacement",
        source=f"footnote of Table 1 in Evron et al. 2026, {HERE} (two-lines:single-pass)",
        status="proved here",
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
_exact(_LOSS, "loss")
register_bound(_lower(_FORGETTING, "forgetting", lambda _, k: two_lines_forgetting(k)))
_exact(_FORGETTING, "forgetting")
register_bound(_single_pass(_PASS_LOSS, "loss", _pass_loss))
_exact(_PASS_LOSS, "loss", single_pass=True)
register_bound(_single_pass(_PASS_FORGETTING, "forgetting", _pass_forgetting))
_exact(_PASS_FORGETTING, "forgetting", single_pass=True)
