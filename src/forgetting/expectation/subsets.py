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
from forgetting.expectation.independent import Concluded
from forgetting.expectation.moments import Moments, Pair, Reading, two_floats
from forgetting.expectation.progress import track
from forgetting.expectation.quantities import conclude

__all__ = ["Layer", "permutations", "states_needed"]


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

    `errors` bounds the errors of the moments, as E does in `Moments`.
    """

    seen: IntArray
    weights: Pair
    moments: Pair
    errors: Array

    @classmethod
    def first(cls, moment: Pair, error: Array, distinct: int) -> Layer:
        """Nothing is seen yet.

        >>> one = np.eye(2), np.zeros((2, 2))
        >>> Layer.first(one, np.zeros((2, 2)), 3).seen
        array([[0, 0, 0]])
        """
        seen = np.zeros((1, distinct), dtype=np.int64)
        return cls(seen, (np.ones(1), np.zeros(1)), (moment[0][None], moment[1][None]), error[None])


def permutations(moments: Moments, steps: IntArray, names: Iterable[str], *, epochs: bool) -> Concluded:
    """Expected quantities at the given steps (sorted): without replacement, or reshuffled every epoch.

    In epoch e (from 0), a task with multiplicity n_i has been seen e n_i + c_i times.
    """
    walk = Walk(moments, epochs=epochs)
    last = int(steps[-1])
    pending = steps.tolist()
    found: Concluded = []
    for k in track(range(last + 1), "subsets"):
        while pending and pending[0] == k:
            pending.pop(0)
            found.append(walk.conclude(names))
        if k < last:
            walk.step()
    return found


class Walk:
    """One more task at a time, over all permutations at once."""

    def __init__(self, moments: Moments, *, epochs: bool = False) -> None:
        geometry = moments.geometry
        rows = len(moments.squares[0])
        self.moments, self.epochs = moments, epochs
        self.counts, self.num_tasks = geometry.counts, geometry.num_tasks
        self.layer = Layer.first(moments.second(), moments.doubts.first, len(self.counts))
        self.learnt: Pair = np.zeros(rows), np.zeros(rows)
        self.learnt_doubt = np.zeros(rows)
        self.travelled = 0.0
        self.k = self.begun = 0

    def step(self) -> None:
        """Learn one more task."""
        moments, layer, counts = self.moments, self.layer, self.counts
        tools = two_floats()
        size = self.k - self.begun
        if size == self.num_tasks:  # the next epoch starts from where all orders of this one have ended
            layer = Layer.first((layer.moments[0][0], layer.moments[1][0]), layer.errors[0], len(counts))
            self.begun, size = self.k, 0
        squares, doubts = moments.read(layer.moments, layer.errors)
        left = float(self.num_tasks - size)
        open_ = (counts - layer.seen).astype(np.float64)
        chance = tools.mul(layer.weights[0][:, None], layer.weights[1][:, None], open_, np.zeros_like(open_))
        chance = tools.div(*chance, np.full_like(open_, left), np.zeros_like(open_))
        owner = moments.geometry.owner
        parts = tools.mul(*squares, chance[0][:, owner], chance[1][:, owner])
        gained = tools.total((parts[0].T, parts[1].T))
        self.learnt = tools.add(*self.learnt, *gained)
        self.learnt_doubt = self.learnt_doubt + np.sum(chance[0][:, owner] * doubts, axis=0)
        self.travelled += float(layer.weights[0] @ moments.trace(layer.moments[0])) + moments.doubts.base
        self.layer = self._next(layer, chance, size)
        self.k += 1

    def _next(self, layer: Layer, chance: Pair, size: int) -> Layer:
        tools = two_floats()
        parents, tasks = np.nonzero(layer.seen < self.counts)
        grown = layer.seen[parents]
        grown[np.arange(len(grown)), tasks] += 1
        seen, place = np.unique(grown, axis=0, return_inverse=True)
        place = place.reshape(-1)
        n = self.moments.size
        sums = (np.zeros((len(seen), n, n)), np.zeros((len(seen), n, n))), np.zeros((len(seen), n, n))
        weights = np.zeros(len(seen)), np.zeros(len(seen))
        for task in range(len(self.counts)):
            mine = np.flatnonzero(tasks == task)
            share = tools.div(
                seen[place[mine], task].astype(np.float64),
                np.zeros(len(mine)),
                np.full(len(mine), size + 1.0),
                np.zeros(len(mine)),
            )
            self.moments.step_all(task, parents[mine], place[mine], share, (layer.moments, layer.errors), sums)
            # a multiset comes at most once from each task, so that these places differ
            where = place[mine]
            more = chance[0][parents[mine], task], chance[1][parents[mine], task]
            weights[0][where], weights[1][where] = tools.add(weights[0][where], weights[1][where], *more)
        return Layer(seen, weights, *sums)

    def reading(self) -> Reading:
        """What losses are made of now."""
        moments, layer, tools = self.moments, self.layer, two_floats()
        owner = moments.geometry.owner
        squares, doubts = moments.read(layer.moments, layer.errors)
        high, low = layer.weights[0][:, None], layer.weights[1][:, None]
        parts = tools.mul(*squares, high, low)
        visits = self._visits()[:, owner]
        seen = tools.mul(*parts, visits, np.zeros_like(visits))
        spread, spread_doubt = moments.spread(layer.moments, layer.errors)
        size = tools.total(tools.mul(*spread, *layer.weights))
        return Reading(
            tools.total((parts[0].T, parts[1].T)),
            tools.total((seen[0].T, seen[1].T)),
            self.learnt,
            np.sum(high * doubts, axis=0),
            np.sum(high * visits * doubts, axis=0),
            self.learnt_doubt,
            (float(size[0]), float(size[1])),
            float(layer.weights[0] @ spread_doubt),
            self.travelled,
        )

    def _visits(self) -> Array:
        """How often each distinct task was seen, for each multiset."""
        before = self.begun // self.num_tasks if self.epochs else 0
        return (before * self.counts + self.layer.seen).astype(np.float64)

    def conclude(self, names: Iterable[str]) -> dict[str, tuple[Array, Array]]:
        """Expected quantities now."""
        tools = two_floats()
        each = self.k * self.counts.astype(np.float64)
        visits = tools.div(each, np.zeros_like(each), np.full_like(each, self.num_tasks), np.zeros_like(each))
        return conclude(self.moments, self.reading(), self.k, visits, names)
