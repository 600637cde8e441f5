"""From the squares that an engine reads to loss, forgetting, regret, error and task losses, with bounds on errors."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from forgetting._arrays import Array
from forgetting.expectation.moments import EPS, Moments, Pair, Reading, two_floats

__all__ = ["conclude"]

UNDERFLOW = 1e-250  # products of numbers of two floats below about 1e-270 lose their low parts


def conclude(
    moments: Moments, reading: Reading, k: int, visits: Pair, names: Iterable[str]
) -> dict[str, tuple[Array, Array]]:
    """Each quantity after k steps, and a bound on its error; `visits` is how often each distinct task is expected."""
    return _Conclusion(moments, reading, k, visits).answer(names)


class _Conclusion:
    def __init__(self, moments: Moments, reading: Reading, k: int, visits: Pair) -> None:
        self.moments, self.reading, self.k, self.visits = moments, reading, k, visits
        self.geometry = moments.geometry
        self.factor = moments.unit**2  # a power of two: exact
        growth = moments.growth
        # labels that are not known better keep z from where it should be, by this much
        with np.errstate(over="ignore"):
            steps = k + 1.0 if growth == 1.0 else float((growth ** (k + 1.0) - 1) / (growth - 1))
        self.drift = moments.doubts.drift * steps if moments.doubts.drift else 0.0
        norms = np.sqrt(np.maximum(self._sum(moments.squares[0]), 0.0))
        self.slip = moments.doubts.misread * norms  # of the residual of each task, for |z| = 1
        rounding = two_floats().UNIT if moments.twofold else EPS
        self.rounding = 4 * (len(moments.squares[0]) + self.geometry.num_distinct + 8) * rounding

    def answer(self, names: Iterable[str]) -> dict[str, tuple[Array, Array]]:
        return {name: self._rounded(name, *getattr(self, name)()) for name in names}

    def _rounded(self, name: str, value: Pair, doubt: Array) -> tuple[Array, Array]:
        """To float64; a square cannot be negative."""
        single = value[0] + value[1]
        if name != "forgetting":
            single = np.maximum(single, 0.0)
            if self.k > 0 or name != "regret":  # more than float64 can hold
                single = np.where(np.isnan(single), np.inf, single)
        single = np.where((np.abs(single) <= doubt) & (doubt < UNDERFLOW), 0.0, single)
        doubt = np.where(np.isnan(doubt) | np.isinf(single), np.inf, doubt)
        return np.asarray(single), np.asarray(doubt + EPS * np.abs(single))

    # ------------------------------------------------------------------------------------------------- quantities

    def task_losses(self) -> tuple[Pair, Array]:
        """E L_m(w_k)."""
        value, doubt = self._distinct()
        index = self.geometry.index
        return (value[0][index], value[1][index]), doubt[index]

    def loss(self) -> tuple[Pair, Array]:
        """E L(w_k): the mean over tasks, clones counted."""
        value, doubt = self._distinct()
        counts = self.geometry.counts.astype(np.float64)
        mean, its_doubt = self._weighted(value, doubt, (counts, np.zeros_like(counts)))
        return self._divided(mean, float(self.geometry.num_tasks)), its_doubt / self.geometry.num_tasks

    def error(self) -> tuple[Pair, Array]:
        """E |w_k - w*|^2."""
        high, low = (np.asarray(part) for part in self.reading.spread)
        off = self.drift + (self.moments.doubts.misplaced if self.moments.doubts.labels else 0.0)
        doubt = self.reading.spread_doubt
        doubt = doubt + 2 * np.sqrt(max(float(high) + doubt, 0.0)) * off + off**2
        return (high * self.factor, low * self.factor), doubt * self.factor + self.rounding * np.abs(high) * self.factor

    def regret(self) -> tuple[Pair, Array]:
        """E (1/k) sum_t L_tau(t)(w_(t-1))."""
        if self.k == 0:
            return self._undefined()
        value, doubt = self._along(self.reading.learnt, self._learnt_doubt(), self._ones())
        return self._per_visit(value, doubt)

    def _learnt_doubt(self) -> Array:
        """Of sums in which each step is weighted with its probability."""
        learnt = self.reading.learnt[0]
        return np.asarray(self.reading.learnt_doubt + self.moments.doubts.known * np.abs(learnt))

    def in_sample(self) -> tuple[Pair, Array]:
        """E (1/k) sum_t L_tau(t)(w_k): the loss on all visits."""
        if self.k == 0:
            return self._undefined()
        visited, doubt = self._along(self.reading.visited, self.reading.visited_doubt, self._ones(), final=True)
        return self._per_visit(visited, doubt)

    def forgetting(self) -> tuple[Pair, Array]:
        """E F(k): the loss on all visits less what was left when they ended. What no w can fit is in both."""
        if self.k == 0:
            return self._undefined()
        if self.k == 1:  # nothing has been forgotten, by definition
            return (np.zeros(()), np.zeros(())), np.zeros(())
        tools, reading = two_floats(), self.reading
        visited, doubt = self._along(reading.visited, reading.visited_doubt, self._ones(), final=True)
        gap, kept, kept_doubt = visited, (np.zeros_like(visited[0]), np.zeros_like(visited[0])), 0.0 * doubt
        if not self.moments.solves:
            left = tools.sub(*self._ones(), *self.moments.gains)
            share = tools.mul(*left, *left)
            kept, kept_doubt = self._along(reading.learnt, self._learnt_doubt(), share, shared=True)
            gap = tools.sub(*visited, *kept)
        total, its_doubt = self._weighted(gap, doubt + kept_doubt, self._ones(len(gap[0])))
        its_doubt = its_doubt + self.rounding * float(np.sum(np.abs(visited[0]) + np.abs(kept[0])))
        return self._divided(total, float(self.k)), its_doubt / self.k

    # ------------------------------------------------------------------------------------------------------ parts

    def _distinct(self) -> tuple[Pair, Array]:
        """E L_m(w_k) of each distinct task."""
        value, doubt = self._losses(
            self.reading.now, self.reading.now_doubt, self._ones(), 1.0, self._reach(final=True)
        )
        value = two_floats().add(*value, *self.moments.unexplained)
        return value, doubt + self.moments.doubts.unexplained + self.rounding * np.abs(value[0])

    def _along(
        self, squares: Pair, doubts: Array, share: Pair, *, final: bool = False, shared: bool = False
    ) -> tuple[Pair, Array]:
        """Sums over the k visits."""
        reach = float(np.sqrt(self.k)) * self._reach(final=True) if final else self._reach(final=False)
        return self._losses(squares, doubts, share, float(self.k), reach, shared=shared)

    def _per_visit(self, value: Pair, doubt: Array) -> tuple[Pair, Array]:
        """The mean over all visits of losses that are summed for each task, with what no w can fit."""
        total, its_doubt = self._weighted(value, doubt, self._ones(len(value[0])))
        extra, extra_doubt = self._weighted(self.moments.unexplained, self.moments.doubts.unexplained, self.visits)
        extra_doubt = extra_doubt + self.moments.doubts.known * float(extra[0])
        return self._divided(two_floats().add(*total, *extra), float(self.k)), (its_doubt + extra_doubt) / self.k

    def _reach(self, *, final: bool) -> float:
        """The root mean square of what errors of rows are multiplied by: |z| now, or summed over all steps."""
        size = self.moments.doubts.labels
        if final:
            return float(np.sqrt(max(self.reading.spread[0], 0.0) + self.reading.spread_doubt)) + size
        return float(np.sqrt(max(self.reading.travelled, 0.0))) + float(np.sqrt(self.k)) * size

    def _losses(
        self, squares: Pair, doubts: Array, share: Pair, terms: float, reach: float, *, shared: bool = False
    ) -> tuple[Pair, Array]:
        """sum_i sigma_i^2 / 2 share_i squares_i for each distinct task, and a bound on its error.

        `shared` says that the shares are not known exactly: they come from gains.
        """
        tools, moments = two_floats(), self.moments
        weights = tools.mul(*moments.squares, 0.5 * share[0], 0.5 * share[1])
        parts = tools.mul(*weights, *squares)
        drift = self.drift
        whole = np.maximum(squares[0], 0.0) + doubts
        doubts = doubts + 2 * drift * np.sqrt(whole * terms) + terms * drift**2
        value = self._sum(parts[0]), self._sum(parts[1])
        if moments.twofold:
            value = self._sum_pairs(parts)
        off = np.abs(weights[0])
        root = np.sqrt(np.abs(share[0]))
        slip = moments.doubts.noise[self.geometry.owner, 1] if shared else np.zeros_like(root)
        off_share = slip * (2 * root + slip) * moments.squares[0]  # gains that are off move what is kept
        doubt = self._sum(off * doubts + off_share * whole + self.rounding * np.abs(parts[0]))
        most = self._most(root + slip)
        e = self.slip * reach * most
        doubt = doubt + np.sqrt(2 * np.maximum(value[0], 0.0) + 2 * doubt) * e + e**2 / 2
        return (value[0] * self.factor, value[1] * self.factor), doubt * self.factor

    def _weighted(self, value: Pair, doubt: Array, weights: Pair) -> tuple[Pair, Array]:
        """sum_m weights_m value_m."""
        parts = two_floats().mul(*value, *weights)
        total = two_floats().total(parts)
        return total, np.asarray(np.abs(weights[0]) @ doubt + self.rounding * np.sum(np.abs(parts[0])))

    def _divided(self, value: Pair, by: float) -> Pair:
        result: Pair = two_floats().div(*value, np.asarray(by), np.zeros(()))
        return result

    def _ones(self, count: int | None = None) -> Pair:
        size = len(self.moments.squares[0]) if count is None else count
        return np.ones(size), np.zeros(size)

    def _undefined(self) -> tuple[Pair, Array]:
        return (np.full((), np.nan), np.zeros(())), np.zeros(())

    def _sum(self, values: Array) -> Array:
        return self.geometry.per_task(values)

    def _sum_pairs(self, pair: Pair) -> Pair:
        """Sum R numbers into one per distinct task."""
        high, low = np.zeros(self.geometry.num_distinct), np.zeros(self.geometry.num_distinct)
        for m in range(self.geometry.num_distinct):
            block = self.geometry.block(m)
            one = two_floats().total((pair[0][block], pair[1][block]))
            high[m], low[m] = float(one[0]), float(one[1])
        return high, low

    def _most(self, values: Array) -> Array:
        """The largest of the R numbers of each distinct task."""
        result = np.zeros(self.geometry.num_distinct)
        np.maximum.at(result, self.geometry.owner, values)
        return result
