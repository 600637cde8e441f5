"""Expectations under random permutations, exactly, by a recursion over which tasks have been seen.

Given *which* tasks were seen (a multiset c of distinct tasks, since clones are interchangeable), the last of them was
task i with probability c_i / |c|, so M_c = sum_i (c_i / |c|) S_i M_(c - e_i) S_i. There are prod_i (n_i + 1) multisets:
2^T without clones, and (n + 1)^2 for n clones of two tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from forgetting._arrays import Array, IntArray
from forgetting.expectation.moments import Moments
from forgetting.expectation.progress import track

__all__ = ["Layer", "next_layer", "permutations", "states_needed"]

STACK = 1024  # matrices that are multiplied at once: enough to be fast, few enough to need no memory of note


def states_needed(counts: IntArray, steps: int) -> tuple[float, float]:
    """How many multisets there are in all, and how many of one size at most, up to this many steps.

    >>> states_needed(np.array([1, 1, 1]), 3), states_needed(np.array([100, 100]), 200)
    ((8.0, 3.0), (10201.0, 101.0))
    """
    layers = np.zeros(steps + 1)
    layers[0] = 1.0
    with np.errstate(over="ignore"):
        for count in counts.tolist():  # multiply by 1 + x + ... + x^count
            total = np.cumsum(layers)
            layers = total
            if count + 1 <= steps:
                layers = total - np.concatenate([np.zeros(count + 1), total[: -count - 1]])
            if not np.isfinite(total[-1]) or total[-1] > 1e15:
                return float("inf"), float("inf")
    return float(layers.sum()), float(layers.max())


class Layer(NamedTuple):
    """All multisets of one size: what was seen (one row each), how likely that is, and E z z^T given it.

    >>> Layer.first(np.eye(2), 3).seen
    array([[0, 0, 0]])
    """

    seen: IntArray
    weights: Array
    moments: Array

    @classmethod
    def first(cls, start: Array, distinct: int) -> Layer:
        """Nothing is seen yet."""
        return cls(np.zeros((1, distinct), dtype=np.int64), np.ones(1), start[None])

    def quadratic(self, moments: Moments) -> Array:
        """b_i^T A b_i of every matrix, (multisets, R)."""
        parts = [self.moments[at : at + STACK] for at in range(0, len(self.moments), STACK)]
        return np.concatenate([moments.quadratic(part) for part in parts])


def permutations(
    moments: Moments, z0: Array, steps: IntArray, quantities: Iterable[str], *, epochs: bool
) -> dict[str, Array]:
    """Expected quantities at the given steps (sorted): without replacement, or reshuffled every epoch.

    In epoch e (from 0), a task with multiplicity n_i has been seen e n_i + c_i times.
    """
    wanted = set(quantities)
    geometry = moments.geometry
    counts = geometry.counts
    T = geometry.num_tasks
    share = counts / T
    result: dict[str, list[Array | float]] = {name: [] for name in wanted}
    pending = steps.tolist()
    regret = learned = 0.0
    last = int(steps[-1])
    start = moments.start(z0)
    norm_sq = float(z0 @ z0)
    lost = 0.0  # E|z_0|^2 - E|z_k|^2 in dual form
    begun = 0
    while True:
        layer = Layer.first(start, len(counts))
        for size in track(range(min(T, last - begun) + 1), "subsets"):
            k = begun + size
            quadratic = layer.quadratic(moments)
            if not (size == T and k < last):  # the end of an epoch is recorded as the start of the next
                while pending and pending[0] == k:
                    pending.pop(0)
                    losses = moments.losses(quadratic)
                    mean = layer.weights @ losses
                    if "loss" in wanted:
                        result["loss"].append(float(mean @ share))
                    if "task_losses" in wanted:
                        result["task_losses"].append(mean[geometry.index])
                    if "regret" in wanted:
                        result["regret"].append(regret / k if k else np.nan)
                    if "error" in wanted:
                        if moments.dual:
                            size_now = max(0.0, norm_sq - lost)
                        else:
                            size_now = float(layer.weights @ np.trace(layer.moments, axis1=1, axis2=2))
                        result["error"].append(size_now)
                    if "forgetting" in wanted:
                        visits = (begun // T if epochs else 0) * counts + layer.seen
                        total = float(layer.weights @ np.sum(visits * losses, axis=1))
                        result["forgetting"].append((total - learned) / k if k else np.nan)
            if size == T or k == last:
                break
            layer, gained = next_layer(moments, layer, quadratic, counts, T - size)
            regret += gained[0]
            learned += gained[1]
            lost += gained[2]
        if not pending:
            return {name: np.array(values) for name, values in result.items()}
        start = layer.moments[0]
        begun += T


def next_layer(
    moments: Moments, layer: Layer, quadratic: Array, counts: IntArray, left: int
) -> tuple[Layer, tuple[float, float, float]]:
    """One more task seen; and its expected loss before and after it was learned, and the expected fall of |z|^2.

    `quadratic` is that of the layer, and `left` the number of tasks not seen yet.
    """
    parents, tasks = np.nonzero(layer.seen < counts)
    grown = layer.seen[parents]
    grown[np.arange(len(grown)), tasks] += 1
    seen, place = np.unique(grown, axis=0, return_inverse=True)
    place = place.reshape(-1)
    chance = layer.weights[parents] * (counts - layer.seen)[parents, tasks] / left
    result = np.zeros((len(seen), *layer.moments.shape[1:]))
    for task in range(len(counts)):
        mine = np.flatnonzero(tasks == task)
        for at in range(0, len(mine), STACK):
            which = mine[at : at + STACK]
            share = seen[place[which], task] / seen[0].sum()
            result[place[which]] += share[:, None, None] * moments.step(task, layer.moments[parents[which]])
    gains = (moments.losses(quadratic), moments.learned(quadratic), moments.shrinkage(quadratic))
    before, after, lost = (float(chance @ gain[parents, tasks]) for gain in gains)
    weights = np.bincount(place, weights=chance).astype(np.float64)
    return Layer(seen, weights, result), (before, after, lost)
