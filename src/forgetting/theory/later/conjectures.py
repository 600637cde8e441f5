"""Conjectures on the rate 1/k, hunted like all statements; semidefinite programs agree with them for a few k.

Their grounds are in the last sections of docs/one-over-k.md. A conjecture is a claim and no bound: it promises nothing.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from forgetting.core.numerical import ROUNDING
from forgetting.orderings import WithoutReplacement
from forgetting.tasks import families
from forgetting.theory.checking import (
    all_of,
    convex_sets,
    covers,
    paths,
    pocs,
    projection,
    regression,
    setting_of,
    steps,
)
from forgetting.theory.claim import declare_claim
from forgetting.theory.draws import permuted
from forgetting.theory.expectations import Expected, Orders, over_orders
from forgetting.theory.instance import Instance
from forgetting.theory.later.one_over_k import every_order
from forgetting.theory.set_draws import sets
from forgetting.theory.verdict import Sides

_conjecture = partial(declare_claim, source="docs/one-over-k.md, conjectured there", status="conjecture")
_next = partial(
    _conjecture,
    label="conjecture:next-loss",
    title="the worst next loss of a single pass is that of equiangular lines",
    note="Proved with 27 S/(32 (k+1)), 1.24 times as much for large k. Reached at T = k + 1 by families.equiangular; "
    "semidefinite programs agree to 1e-5 for k = 2, ..., 5 (subspaces) and k = 2, 3, 4 (convex sets).",
)


def _nearly_all_angles_equal(rng: np.random.Generator, index: int) -> Instance:
    """Equiangular lines near the conjectured worst ones, now and then; else as for other statements."""
    if index % 5:
        return permuted(1, 1)(rng, index)
    T = int(rng.integers(2, 9))
    share = min(float(rng.uniform(0.7, 1.3)) / (2 * T - 1), 0.99)
    return Instance(families.equiangular(T, share), WithoutReplacement(), T - 1)


_AT_MOST = "S/2 (2n)^(2n-2) / (2n-1)^(2n-1), n = k+1 (without replacement, k < T)"


@_next(
    part="subspaces",
    statement=f"E L_tau(k+1)(w_k) <= {_AT_MOST}",
    draw=_nearly_all_angles_equal,
    missing=all_of(regression, projection, covers("without replacement"), steps(0, last=1)),
)
@paths
def _(instance: Instance, numbers: Expected) -> Sides:
    scale = setting_of(instance).scale
    return Sides(numbers.next_loss(instance.k), scale / 2 * every_order(instance.k + 1),
                 numbers.doubt + ROUNDING * scale, how=numbers.how)  # fmt: skip


def _of_sets(instance: Instance, mean: tuple[float, float], orders: Orders, factor: float) -> Sides:
    distance = setting_of(instance).dist_sq
    return Sides(mean[0], distance / 2 * factor, mean[1] + 1e-9 * distance, how=orders.how)


@_next(
    part="convex sets",
    statement=f"half the squared distance to the next set is in the mean at most {_AT_MOST}, S = |w_0 - w*|^2",
    draw=sets(ordering="without"),
    missing=all_of(convex_sets, pocs, covers("without replacement"), steps(0, last=1)),
)
def _(instance: Instance) -> Sides:
    orders = over_orders(instance)
    return _of_sets(instance, orders.following, orders, every_order(instance.k + 1))


@_conjecture(
    label="conjecture:convex-sets",
    statement="E (1/2T) sum_m dist(w_k, C_m)^2 <= 2 |w_0 - w*|^2 / (3 sqrt(3) (k+1)) (with replacement, k >= 1)",
    title="projections onto convex sets at rate 1/k",
    note="Proved is |w_0 - w*|^2 / sqrt(k+1), which is sharp for firmly nonexpansive maps: a proof must use that they "
    "are projections. By semidefinite programs (k+1) times twice the worst residual is 0.770, 0.712, 0.696 and 0.693 "
    "for k = 1, ..., 4.",
    draw=sets(ordering="with", long=True),
    missing=all_of(convex_sets, pocs, covers("with replacement"), steps(1)),
)
def _(instance: Instance) -> Sides:
    orders = over_orders(instance)
    return _of_sets(instance, orders.loss, orders, 4 / (3 * math.sqrt(3) * (instance.k + 1)))
