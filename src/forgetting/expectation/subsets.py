"""Expectations under random permutations, exactly, by a recursion over which tasks have been seen.

Given *which* tasks were seen (a multiset c of distinct tasks, since clones are interchangeable), the last of them was
task i with probability c_i / |c|, so M_c = sum_i (c_i / |c|) S_i M_(c - e_i) S_i. There are prod_i (n_i + 1) multisets:
2^T without clones, and (n + 1)^2 for n clones of two tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import comb, prod

import numpy as np

from forgetting._arrays import Array, IntArray
from forgetting.expectation.moments import Moments
from forgetting.expectation.progress import track

__all__ = ["next_layer", "permutations", "probability_of", "states_needed"]


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
        layer: dict[tuple[int, ...], Array] = {(0,) * len(counts): start}
        for size in track(range(min(T, last - begun) + 1), "subsets"):
            k = begun + size
            weights = {seen: probability_of(seen, counts, T) for seen in layer}
            losses = {seen: moments.losses(moments.quadratic(moment)) for seen, moment in layer.items()}
            if not (size == T and k < last):  # the end of an epoch is recorded as the start of the next
                while pending and pending[0] == k:
                    pending.pop(0)
                    mean = np.sum([weights[seen] * losses[seen] for seen in layer], axis=0)
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
                            size_now = float(sum(weights[seen] * np.trace(layer[seen]) for seen in layer))
                        result["error"].append(size_now)
                    if "forgetting" in wanted:
                        before = begun // T if epochs else 0
                        total = sum(
                            weights[seen] * float((before * counts + np.array(seen)) @ losses[seen]) for seen in layer
                        )
                        result["forgetting"].append((total - learned) / k if k else np.nan)
            if size == T or k == last:
                break
            layer, gained = next_layer(moments, layer, weights, counts, T - size)
            regret += gained[0]
            learned += gained[1]
            lost += gained[2]
        if not pending:
            return {name: np.array(values) for name, values in result.items()}
        start = next(iter(layer.values()))
        begun += T


def next_layer(
    moments: Moments,
    layer: dict[tuple[int, ...], Array],
    weights: dict[tuple[int, ...], float],
    counts: IntArray,
    left: int,
) -> tuple[dict[tuple[int, ...], Array], tuple[float, float, float]]:
    """The moments given one more task seen, and the expected loss of that task before and after it was learned."""
    groups: dict[int, list[tuple[int, ...]]] = {}
    for seen in layer:
        for task, count in enumerate(counts.tolist()):
            if seen[task] < count:
                groups.setdefault(task, []).append(seen)
    grown: dict[tuple[int, ...], Array] = {}
    before = after = lost = 0.0
    for task, sources in groups.items():
        stack = np.stack([layer[seen] for seen in sources])
        chance = np.array([weights[seen] * (counts[task] - seen[task]) / left for seen in sources])
        quadratic = moments.quadratic(stack)
        before += float(chance @ moments.losses(quadratic)[:, task])
        after += float(chance @ moments.learned(quadratic)[:, task])
        lost += float(chance @ moments.shrinkage(quadratic)[:, task])
        for seen, moment in zip(sources, moments.step(task, stack), strict=True):
            larger = (*seen[:task], seen[task] + 1, *seen[task + 1 :])
            part = moment * (larger[task] / sum(larger))
            grown[larger] = grown[larger] + part if larger in grown else part
    return grown, (before, after, lost)


def probability_of(seen: tuple[int, ...], counts: IntArray, total: int) -> float:
    """The probability that these are the tasks seen after sum(seen) steps."""
    ways = prod(comb(int(count), taken) for count, taken in zip(counts, seen, strict=True))
    return ways / comb(total, sum(seen))
