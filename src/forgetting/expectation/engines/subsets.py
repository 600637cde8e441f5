"""Expectations under random permutations, exactly, by a recursion over which tasks have been seen.

Given *which* tasks were seen (a multiset c of distinct tasks, since clones are interchangeable), the last of them was
task i with probability c_i / |c|, so M_c = sum_i (c_i / |c|) S_i M_(c - e_i) S_i.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.expectation.engines.base import SOON, Cost, Engine, register_engine
from forgetting.expectation.engines.costs import epochs_of, seconds_of_subsets, states_needed
from forgetting.expectation.engines.epoch_powers import cost_of_powers, raises_epochs, solve_by_powers
from forgetting.expectation.engines.error_bounds import Pair, scaled, two_floats
from forgetting.expectation.engines.exact import in_two_floats, moment_map, products_of_step, refined, refusal
from forgetting.expectation.engines.moment_map import MomentReading, Moments, Squares
from forgetting.expectation.engines.moment_readings import evaluated, readings_of
from forgetting.expectation.engines.multisets import none_seen, one_more
from forgetting.expectation.outcome import Outcome
from forgetting.expectation.request import Request
from forgetting.orderings.laws import Permutation, Reshuffled


@register_engine
class SubsetsEngine(Engine):
    """Second moments given which tasks were seen, for permutations and for epochs of permutations."""

    name = "subsets"

    def covers(self, request: Request) -> str | None:
        return refusal(request, Permutation, Reshuffled)

    def cost(self, request: Request) -> Cost:
        walked = self._cost_of_walk(request)
        if not raises_epochs(request):
            return walked
        powers = cost_of_powers(request)
        return powers if _better(request, powers, walked) else walked

    def _cost_of_walk(self, request: Request) -> Cost:
        """Cost of walking all steps."""
        geometry = request.geometry
        states, widest = states_needed(geometry.counts, min(request.last, geometry.num_tasks))
        size = (geometry.dim + request.constants) * (2 if request.averaged else 1)
        needed = 8.0 * size**2 * widest * 8
        twofold = in_two_floats(request, self._products(request, states))
        return Cost(needed, seconds_of_subsets(request, states, epochs_of(request), twofold=twofold))

    def solve(self, request: Request) -> Outcome:
        if raises_epochs(request) and _better(request, cost_of_powers(request), self._cost_of_walk(request)):
            return solve_by_powers(request)
        geometry = request.geometry
        states, _ = states_needed(geometry.counts, min(request.last, geometry.num_tasks))
        moments = moment_map(request, twofold=in_two_floats(request, self._products(request, states)))
        walk = PermutationWalk(moments, epochs=isinstance(request.law, Reshuffled))
        values, doubts = evaluated(request, moments, readings_of(walk, request, "subsets"))
        detail = f"second moments given which tasks were seen, {states:.0f} cases,"
        return refined(request, moments, values, doubts, detail)

    def _products(self, request: Request, states: float) -> float:
        """The number of products that the recursion takes, roughly."""
        return float(epochs_of(request) * states * products_of_step(request))


def _better(request: Request, powers: Cost, walked: Cost) -> bool:
    """Whether powers of epochs are to be preferred: walking, which has more digits, takes seconds, and they do not."""
    return walked.seconds > SOON and powers.seconds < walked.seconds and powers.bytes <= request.memory


class Layer(NamedTuple):
    """All multisets of one size: what was seen (one row each), how likely that is, and E z z^T given it.

    `errors` bounds the errors of the moments, as E does in `Moments`.
    """

    seen: IntArray
    weights: Pair
    moments: Pair
    errors: Array

    @classmethod
    def first(cls, moment: Pair, error: Array, counts: IntArray) -> Layer:
        """The layer before the first step, of the empty multiset.

        >>> moment = np.eye(2), np.zeros((2, 2))
        >>> Layer.first(moment, np.zeros((2, 2)), np.array([1, 1, 1])).seen
        array([[0, 0, 0]])
        """
        return cls(none_seen(counts), (np.ones(1), np.zeros(1)), (moment[0][None], moment[1][None]), error[None])


class PermutationWalk:
    """Learns one more task at a time, over all permutations at once, or over `epochs` of them.

    In epoch e (from 0), a task with multiplicity n_i was seen e n_i + c_i times.
    """

    def __init__(self, moments: Moments, *, epochs: bool = False) -> None:
        geometry = moments.geometry
        rows = len(moments.squares[0])
        self.moments, self.epochs = moments, epochs
        self.counts, self.num_tasks = geometry.counts, geometry.num_tasks
        self.layer = Layer.first(moments.second(), moments.doubts.first.copy(), self.counts)
        self.learnt = self.after = Squares((np.zeros(rows), np.zeros(rows)), np.zeros(rows))
        self.kept = moments.nothing_kept()
        self.travelled = 0.0
        self.k = self.begun = 0

    def step(self) -> None:
        """Learn one more task."""
        moments, t = self.moments, self.k + 1
        self.layer, self.begun = self._ready()
        chance = self._chance(self.layer)
        gained = self._weighted(*moments.read(self.layer.moments, self.layer.errors), chance)
        self.learnt = _sum(self.learnt, gained)
        if self.kept is not None:
            tests = moments.observer[moments.geometry.rows_learned :]
            together = chance[0][:, tests], chance[1][:, tests]
            self.kept = moments.kept_after(self.layer.moments, self.layer.errors, together, self.kept, t)
        spread = float(self.layer.weights[0] @ moments.trace(self.layer.moments[0]))
        moments.gather(self.layer.moments, self.layer.errors, t)
        if moments.shrink(t, self.layer.moments, self.layer.errors):
            gained = self._weighted(*moments.read(self.layer.moments, self.layer.errors), chance)
            spread = max(spread, float(self.layer.weights[0] @ moments.trace(self.layer.moments[0])))
        self.travelled += spread + moments.doubts.base
        if not moments.alike:
            self.after = _sum(self.after, moments.spared(t, gained))
        self.layer = self._next(self.layer, chance, self.k - self.begun)
        self.k += 1

    def _ready(self) -> tuple[Layer, int]:
        """The layer from which the next task is learned, and the step at which its epoch began.

        The next epoch starts from where all orders of the last one have ended.
        """
        layer = self.layer
        if self.k - self.begun < self.num_tasks:
            return layer, self.begun
        end = layer.moments[0][0], layer.moments[1][0]
        return Layer.first(end, layer.errors[0], self.counts), self.k

    def _chance(self, layer: Layer) -> Pair:
        """The probability of each multiset and of each task to be learned next, together."""
        tools = two_floats()
        open_ = (self.counts - layer.seen).astype(np.float64)
        chance = tools.mul(layer.weights[0][:, None], layer.weights[1][:, None], open_, np.zeros_like(open_))
        left = np.full_like(open_, float(self.num_tasks - int(layer.seen[0].sum())))
        divided: Pair = tools.div(*chance, left, np.zeros_like(open_))
        return divided

    def _weighted(self, squares: Pair, doubts: Array, weights: Pair) -> Squares:
        """Squares of each multiset, summed with the weights of each multiset and of each task."""
        owner = self.moments.geometry.owner
        return self.moments.weighted(squares, doubts, (weights[0][:, owner], weights[1][:, owner]))

    def _next(self, layer: Layer, chance: Pair, size: int) -> Layer:
        tools, n = two_floats(), self.moments.size
        seen, edges = one_more(layer.seen, self.counts)
        sums = (np.zeros((len(seen), n, n)), np.zeros((len(seen), n, n))), np.zeros((len(seen), n, n))
        weights = np.zeros(len(seen)), np.zeros(len(seen))
        for edge in edges:
            task, parents, where, nothing = edge.task, edge.parents, edge.children, np.zeros(len(edge.parents))
            share = tools.div(edge.seen.astype(np.float64), nothing, nothing + (size + 1.0), nothing)
            self.moments.step_all(edge, share, (layer.moments, layer.errors), sums, self.k + 1)
            more = chance[0][parents, task], chance[1][parents, task]
            weights[0][where], weights[1][where] = tools.add(weights[0][where], weights[1][where], *more)
        return Layer(seen, weights, *sums)

    def reading(self, *, coming: bool) -> MomentReading:
        """The squares and sums that quantities are computed from; with `coming`, also those of the next task."""
        moments, layer, tools = self.moments, self.layer, two_floats()
        squares, doubts = moments.read(layer.moments, layer.errors)
        counts = self.counts.astype(np.float64)
        every = np.ones(layer.seen.shape)
        weights = layer.weights[0][:, None] * every, layer.weights[1][:, None] * every
        summed, summed_spread = None, 0.0
        if moments.averaged:
            sums, off, sizes = moments.read_sums(layer.moments, layer.errors, self.k)
            summed, summed_spread = self._weighted(sums, off, weights), float(layer.weights[0] @ sizes)
        spread, spread_doubt = moments.spread(layer.moments, layer.errors)
        size = tools.total(tools.mul(*spread, *layer.weights))
        total = np.full_like(counts, self.num_tasks), np.zeros_like(counts)
        share: Pair = tools.div(counts, np.zeros_like(counts), *total)  # of each task in any one visit
        following = None
        if coming and (self.epochs or self.k < self.num_tasks):
            ready, _ = self._ready()
            following = self._weighted(squares, doubts, self._chance(ready))
        return MomentReading(
            k=self.k,
            now=self._weighted(squares, doubts, weights),
            visited=self._weighted(squares, doubts, scaled(weights, moments.with_tests(self._visits()))),
            learnt=self.learnt,
            after=moments.spared(1, self.learnt) if moments.alike else self.after,
            coming=following,
            visits=tools.div(self.k * counts, np.zeros_like(counts), *total),
            chance=None if following is None else share,
            spread=(float(size[0]), float(size[1])),
            spread_doubt=float(layer.weights[0] @ spread_doubt),
            travelled=self.travelled,
            summed=summed,
            summed_spread=summed_spread,
            kept=self.kept,
        )

    def _visits(self) -> Array:
        """The number of visits to each distinct task, for each multiset."""
        return (self.begun // self.num_tasks * self.counts + self.layer.seen).astype(np.float64)


def _sum(first: Squares, second: Squares) -> Squares:
    return Squares(two_floats().add(*first.value, *second.value), first.doubt + second.doubt)
