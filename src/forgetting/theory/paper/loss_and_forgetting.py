"""Appendix B: from the loss to forgetting, and back without replacement."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from forgetting.theory.checking import (
    ROUNDING,
    all_of,
    convex_sets,
    covers,
    paths,
    pocs,
    projection,
    regression,
    setting_of,
    steps,
    summed,
)
from forgetting.theory.claim import declare_claim
from forgetting.theory.draws import permuted, projected
from forgetting.theory.expectations import Expected, over_orders, with_doubt
from forgetting.theory.expression import K, S, parameter
from forgetting.theory.instance import Instance
from forgetting.theory.paper.regression_rates import WITH
from forgetting.theory.set_draws import sets
from forgetting.theory.theorem import Theorem, compared
from forgetting.theory.verdict import CheckPaths, Sides


def _from(name: str, value: Callable[[Expected, int], float]) -> CheckPaths:
    """F(k) against twice a loss one step before, and S/k."""

    def check(instance: Instance, numbers: Expected) -> Sides:
        scale = setting_of(instance).scale
        terms = {name: 2 * value(numbers, instance.k - 1), "S/k": scale / instance.k}
        lhs = numbers.forgetting(instance.k)
        return summed(lhs, terms, 2 * numbers.doubt + ROUNDING * scale, numbers.how)

    return paths(check)


_NEXT_TASK = "E F(k) <= E |X_tau(k) w_(k-1) - y_tau(k)|^2 + |w_0 - w*|^2 R^2 / k"
_EXCHANGEABLE = "The proof needs exchangeable draws only, so with replacement any weights will do."
_FROM_NEXT = _from("the next loss", lambda numbers, k: numbers.next_loss(k))
_next_task = partial(declare_claim, label="lem:in_to_all_sample", note=_EXCHANGEABLE)
_next_task(
    part="next task, with replacement",
    statement=f"{_NEXT_TASK}, with replacement, k >= 1",
    draw=projected("any"),
    missing=all_of(regression, projection, covers("i.i.d."), steps(1)),
)(_FROM_NEXT)
_next_task(
    part="next task, without replacement",
    statement=f"{_NEXT_TASK}, without replacement, k >= 1",
    draw=permuted(),
    missing=all_of(regression, projection, covers("without replacement"), steps(1)),
)(_FROM_NEXT)


Theorem("lem:in_to_all_sample", "forgetting from the loss one step before", orderings=WITH)(
    "forgetting",
    2 * parameter("previous_loss", "E L(w_(k-1))", r"\,\mathbb{E}\,\mathcal{L}(w_{k-1})") + S / K,
    check=compared(
        lambda bound: _from("the loss", lambda numbers, k: numbers.loss(k)),
        "E F(k) <= 2 E L(w_(k-1)) + |w_0 - w*|^2 R^2 / k, with replacement, k >= 1",
        projected(),
        all_of(regression, projection, covers("with replacement"), steps(1)),
        "loss, with replacement",
    ),
)

# prop:loss_to_forgetting ----------------------------------------------------------------------------------------------


def _identity(instance: Instance, numbers: Expected) -> Sides:
    k, T = instance.k, instance.posed.num_tasks
    scale, doubt = setting_of(instance).scale + numbers.doubt, numbers.doubt
    following, off_next = with_doubt(numbers, numbers.next_loss, k) if k < T else (0.0, 0.0)
    seen, off_seen = with_doubt(numbers, numbers.forgetting, k)
    loss, off = with_doubt(numbers, numbers.loss, k)
    doubt += off + k / T * off_seen + (T - k) / T * off_next
    return Sides(loss, k / T * seen + (T - k) / T * following, doubt, scale or 1.0, numbers.how)


_IDENTITY = paths(_identity)
_loss = partial(declare_claim, label="prop:loss_to_forgetting", kind="equality")
_loss(
    part="regression",
    statement="E L(w_k) = k/T E F(k) + (T-k)/(2T) E |X_tau(k+1) w_k - y_tau(k+1)|^2, without replacement, k <= T",
    draw=permuted(),
    missing=all_of(regression, projection, covers("without replacement"), steps(1, last=0)),
)(_IDENTITY)


@_loss(
    part="POCS",
    statement="E L(w_k) = k/T E F(k) + (T-k)/(2T) E dist(w_k, C_tau(k+1))^2, without replacement, k <= T, with "
    "L_m = 1/2 dist^2",
    draw=sets(ordering="without"),
    missing=all_of(convex_sets, pocs, covers("without replacement"), steps(1, last=0)),
)
def _(instance: Instance) -> Sides:
    k, T = instance.k, instance.posed.num_tasks
    (loss, off), (seen, off_seen), (following, off_next), how = over_orders(instance)
    scale = 0.5 * float(np.max(instance.posed.distances(instance.start))) ** 2
    doubt = off + k / T * off_seen + (T - k) / T * off_next
    return Sides(loss, k / T * seen + (T - k) / T * following, doubt + 1e-12 * scale, scale or 1.0, how)
