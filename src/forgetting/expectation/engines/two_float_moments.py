"""Second moments with 31 digits, in numbers of two floats: compiled loops over the tasks of a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.expectation.engines.error_bounds import Pair, two_floats
from forgetting.expectation.engines.moment_map import Moments, State, kernels
from forgetting.expectation.engines.multisets import Edges


@dataclass(frozen=True, eq=False)
class TwoFloatMoments(Moments):
    """`Moments` in numbers of two floats. What a state has counted is one stack, with E z z^T before the others."""

    twofold = True

    @property
    def rounding(self) -> float:
        return float(two_floats().UNIT)

    def plus(self, a: Pair, b: Pair) -> Pair:
        return two_floats().add(*a, *b)  # type: ignore[no-any-return]

    def inner(self, a: Pair, b: Pair) -> Pair:
        return two_floats().products(*map(np.ascontiguousarray, (*a, *b)))  # type: ignore[no-any-return]

    def total(self, numbers: Pair) -> Pair:
        return two_floats().total(numbers)  # type: ignore[no-any-return]

    def per_task(self, numbers: Pair) -> Pair:
        blocks = [self.geometry.block(m) for m in range(self.geometry.num_distinct)]
        totals = [self.total((numbers[0][block], numbers[1][block])) for block in blocks]
        return np.array([float(high) for high, _ in totals]), np.array([float(low) for _, low in totals])

    def squares_of(self, moments: Pair, rows: Pair) -> Pair:
        pairs = [kernels().read(*rows, high, low) for high, low in zip(*moments, strict=True)]
        return np.array([high for high, _ in pairs]), np.array([low for _, low in pairs])

    def count_visits(self, state: State) -> None:
        high, low = (np.pad(part, ((0, self.geometry.num_learned), (0, 0), (0, 0))) for part in state.first)
        state.counted, state.first = (high, low), (high[:1], low[:1])

    def visited(self, state: State) -> Pair:
        each = self.squares_of((state.counted[0][1:], state.counted[1][1:]), self.right)
        own = self.observer, np.arange(len(self.right[0]))
        return each[0][own], each[1][own]

    def make_steps(self, state: State, order: IntArray) -> None:
        table = self.tables.of(state.steps + 1, len(order))
        sums, rows, tasks = np.zeros(1), self.geometry.rows_learned, self.geometry.num_learned
        kernels().advance(
            *(part[:rows] for part in self.right),
            *table.gains,
            table.noise,
            table.slips,
            table.which,
            table.keep,
            *((None, None) if np.all(table.keep == 1.0) else self.origin),  # None: compiled without what decays
            self.geometry.offsets[: tasks + 1],
            *(part[:tasks] for part in self.probability),
            self.dim,
            order,
            *(state.counted or state.first),
            state.error[0],
            *state.learnt.value,
            state.learnt.doubt,
            *state.after.value,
            state.after.doubt,
            sums,
            self.doubts.base,
            self.pull,
            self.shrinking,
        )
        state.travelled += float(sums[0])

    def shrunk(self, state: Pair, keep: float) -> Pair:
        """P applied to a state, one row an output."""
        if keep == 1:
            return state
        tools, (high, low), z = two_floats(), (part.copy() for part in state), slice(self.dim)
        lost = tools.mul(*self.origin, *tools.add(keep, 0.0, -1.0, 0.0))
        high[:, z], low[:, z] = tools.add(*tools.mul(high[:, z], low[:, z], keep, 0.0), *lost)
        return high, low

    def decay(self, keep: float, moments: Pair, errors: Array) -> None:
        bounds = self.doubts.base, self.pull, self.shrinking
        kernels().shrink_all(*moments, errors, self.dim, keep, *self.origin, *bounds)

    def step_all(self, edges: Edges, shares: Pair, layer: tuple[Pair, Array], out: tuple[Pair, Array], t: int) -> None:
        (moments, errors), (sums, sum_errors) = layer, out
        block = self.geometry.block(edges.task)
        (gains, gains_low), noise, _ = self.tables.of(t, 1).row()
        kernels().step_all(
            *self.right,
            gains[None],
            gains_low[None],
            block.start,
            block.stop,
            self.dim,
            noise[edges.task],
            self.doubts.base,
            edges.parents,
            edges.children,
            *shares,
            *moments,
            errors,
            *sums,
            sum_errors,
        )
