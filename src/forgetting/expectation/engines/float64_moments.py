"""Second moments in float64, on the processor or on a device, written to the array API.

Q[A] is two large matrix products with small products of the tasks between them: compiled loops on the processor, and
batched products on a device, where tasks are grouped by rank, so that the rows of a group are one array (tasks, rank,
n). A stack of matrices has its axis in the middle (n x stack x n), such that the large products are single calls for
the whole stack. Nothing is moved while steps are made: what steps add to values and to bounds on errors stays on the
device until a quantity is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS
from forgetting.expectation.engines.error_bounds import Pair
from forgetting.expectation.engines.moment_map import Moments, Squares, State, kernels
from forgetting.expectation.engines.multisets import Edges
from forgetting.expectation.engines.step_tables import Table

STACK = 1024  # matrices that are multiplied at once: enough to be fast, few enough to need no memory of note
PART = 2**22  # numbers in the products that are made at once on the processor: 32 MiB
WIDE = 24  # directions of a task up to which compiled loops are quicker than matrix products
PART_THERE = 2**27  # numbers of the products that are held at once on a device: a GiB


class _Group(NamedTuple):
    """The learned tasks of one rank: which they are, and their places among tasks and rows that are sorted by rank."""

    rank: int
    tasks: slice
    rows: slice


class _Noise(NamedTuple):
    """What a step adds to bounds on errors, and what it leaves of squares.

    own, reading: for each learned direction, what reading its square adds, as multiples of tr(E) and tr(A).
    relative, each, errors: what the step adds to E, as multiples of A, of tr(A) I and of tr(E) I.
    share, slip: for each learned direction, what is left of its square, and by how much that is off.
    gains: of the learned directions, as a column.
    """

    own: Any
    reading: Any
    relative: Any
    each: Any
    errors: Any
    share: Any
    slip: Any
    gains: Any


class _Maps(NamedTuple):
    """a, b and p a of all learned directions in one step, on the device, tasks sorted by rank."""

    left: Any
    right: Any
    weights: Any


@dataclass(frozen=True, eq=False)
class Float64Moments(Moments):
    """`Moments` in float64. What a state has counted is n x tasks x n on the device, where tasks are sorted by rank.

    Steps of states are those of independent draws.
    """

    twofold = False

    @property
    def rounding(self) -> float:
        return EPS

    def plus(self, a: Pair, b: Pair) -> Pair:
        return a[0] + b[0], a[1]

    def inner(self, a: Pair, b: Pair) -> Pair:
        product = a[0] @ b[0].T
        return product, np.zeros(product.shape)

    def total(self, numbers: Pair) -> Pair:
        total = np.sum(numbers[0], axis=-1)
        return total, np.zeros(total.shape)

    def per_task(self, numbers: Pair) -> Pair:
        return self.geometry.per_task(numbers[0]), self.geometry.per_task(numbers[1])

    def squares_of(self, moments: Pair, rows: Pair) -> Pair:
        squares = self.quadratic(moments[0], rows[0])
        return squares, 0 * squares

    # --------------------------------------------------------------------------------------- what is moved, once

    @cached_property
    def _sorted(self) -> IntArray:
        """The learned tasks, by rank; as they are on the processor."""
        ranks = self.geometry.ranks[: self.geometry.num_learned]
        return np.arange(len(ranks)) if self.device.host else np.argsort(ranks, kind="stable")

    @cached_property
    def _sorted_there(self) -> Any:
        return self.device.put_index(self._sorted)

    @cached_property
    def places(self) -> IntArray:
        blocks = [np.arange(block.start, block.stop) for block in map(self.geometry.block, self._sorted.tolist())]
        return np.concatenate([np.empty(0, dtype=np.int64), *blocks])

    @cached_property
    def _groups(self) -> list[_Group]:
        """Runs of tasks of one rank."""
        ranks = self.geometry.ranks[self._sorted]
        cuts = [0, *(np.flatnonzero(np.diff(ranks)) + 1).tolist(), len(ranks)]
        ends = [0, *np.cumsum(ranks).tolist()]
        return [_Group(int(ranks[a]), slice(a, b), slice(ends[a], ends[b])) for a, b in pairwise(cuts)]

    @cached_property
    def _left(self) -> Any:
        """a of all R directions in the first step, on the device."""
        return self.device.put(self.left[0])

    @cached_property
    def _learned(self) -> _Maps:
        """The maps of the first step."""
        places = self.places
        if np.array_equal(places, np.arange(len(self.right[0]))):
            left, right = self._left, self.there[0]
        else:
            left, right = self.device.put(self.left[0][places]), self.device.put(self.right[0][places])
        return _Maps(left, right, left * self._chance[:, None])

    def _maps(self, gains: Any) -> _Maps:
        """The maps of a step with these gains of the learned directions, on the device."""
        if self.alike:
            return self._learned
        left, drawn = self._moving
        return _Maps(left * gains, self._learned.right, drawn * gains)

    @cached_property
    def _moving(self) -> tuple[Any, Any]:
        """a and p a of all learned directions for gains of 1: b without the constants."""
        left = self._learned.right * self.device.put(np.append(np.ones(self.dim), np.zeros(self.size - self.dim)))
        return left, left * self._chance[:, None]

    @cached_property
    def _chance(self) -> Any:
        """p of the task of each learned direction, tasks sorted by rank."""
        return self.device.put(self.probability[0][self.geometry.owner[self.places]])

    @cached_property
    def _task_chance(self) -> Any:
        """p of each learned task, sorted by rank."""
        return self.device.put(self.probability[0][self._sorted])

    def _of_table(self, table: Table) -> _Noise:
        """What the steps of a table add to bounds on errors, one row each."""
        own, put, chance = self.geometry.owner[self.places], self.device.put, self.probability[0]
        noise, gains = table.noise, table.gains[0][:, self.places]
        most = np.max(noise[:, chance > 0], axis=1, initial=0.0)
        root, slip = np.abs(1 - gains), table.slips[:, own]
        return _Noise(
            own=put(noise[:, own, 2]), reading=put(noise[:, own, 3]),
            relative=most[:, 0].tolist(), each=(noise[:, :, 1] @ chance).tolist(), errors=most[:, 2].tolist(),
            share=put(root**2), slip=put(slip * (2 * root + slip)), gains=put(gains[:, :, None]),
        )  # fmt: skip

    def _noise(self, t: int) -> tuple[_Noise, float]:
        """What step t adds to bounds on errors, and the factor that it keeps of w."""
        table, row, keep = self.tables.place(t)
        if not self._held or self._held[0][0] is not table:
            self._held[:] = [(table, self._of_table(table))]
        held = self._held[0][1]
        return _Noise._make([part[row] if isinstance(part, list) else part[row, ...] for part in held]), keep

    @cached_property
    def _held(self) -> list[tuple[Table, _Noise]]:
        """The table of the last step, and what its steps add to bounds on errors."""
        return []

    # ------------------------------------------------------------------------------------------------------ the maps

    def apply(self, moments: Any) -> Any:
        """Q[A], for one matrix or for each of several (along the first axis)."""
        if moments.ndim == 2:
            return self._mapped(moments[:, None, :])[:, 0, :]
        swapped = self.device.xp.permute_dims(moments, (1, 0, 2))
        return self.device.xp.permute_dims(self._mapped(swapped), (1, 0, 2))

    def step(self, task: int, moments: Any, t: int = 1) -> Any:
        """S_m A S_m^T of step t for one matrix, or for each of a stack, on the device."""
        turned, block = self.device.xp.linalg.matrix_transpose, self.geometry.block(task)
        left, right = self._left[block, :], self.there[0][block, :]
        if not self.alike:
            gains = self.tables.of(t, 1).row()[0][0][block]
            left = right * self.device.put(gains[:, None] * (np.arange(self.size) < self.dim))
        products = right @ moments
        half = left.T @ (0.5 * (products @ right.T) @ left - products)
        return moments + (half + turned(half))

    def pulled(self, moments: Any, pushes: Any) -> Any:
        """sum_m p_m a_m b_m^T A c_m for one matrix, or for each of a stack; c_m is n x q for each distinct task."""
        xp, lead = self.device.xp, moments.shape[:-2]
        _, right, weights = self._learned
        seen, pushes, parts = right @ moments, xp.take(pushes, self._sorted_there, axis=0), []
        for rank, tasks, rows in self._groups:
            number = tasks.stop - tasks.start
            own = xp.reshape(seen[..., rows, :], (*lead, number, rank, self.size)) @ pushes[tasks, :, :]
            parts.append(xp.reshape(own, (*lead, number * rank, pushes.shape[-1])))
        return weights.T @ xp.concat(parts, axis=-2)

    def _mapped(self, stack: Any, maps: _Maps | None = None) -> Any:
        """Q[A] for a stack along the middle axis, in parts that fit."""
        maps = maps or self._learned
        most = max(1, PART_THERE // max(1, self.size * len(self.places)))
        count = stack.shape[1]
        if self.device.host:
            return self._mix(np.ascontiguousarray(stack), maps)[0]
        if count <= most:
            return self._mix(stack, maps)[0]
        ends = [(first, min(first + most, count)) for first in range(0, count, most)]
        parts = [self._mix(stack[:, first:last, :], maps)[0] for first, last in ends]
        return self.device.xp.concat(parts, axis=1)

    def _mix(self, stack: Any, maps: _Maps) -> tuple[Any, Any, Any]:
        """Q[A]; b_i^T A b_i of the learned directions, (stack, R); and 1/2 (b_m^T A b_m) a_m^T - b_m^T A of the first.

        The last is left to `_add_visits` on the processor.
        """
        left, right, weights = maps
        if self.device.host:
            return *self.mixed(stack, weights, left), None
        xp, (size, count, _) = self.device.xp, stack.shape
        products = xp.reshape(right @ xp.reshape(stack, (size, count * size)), (len(self.places), count, size))
        diagonals, parts = [], []
        for rank, tasks, rows in self._groups:
            number = tasks.stop - tasks.start
            own = xp.reshape(products[rows, :, :], (number, rank * count, size))
            a, b = (xp.reshape(all_rows[rows, :], (number, rank, size)) for all_rows in (left, right))
            square = own @ xp.linalg.matrix_transpose(b)
            blocks = xp.permute_dims(xp.reshape(square, (number, rank, count, rank)), (2, 0, 1, 3))
            diagonals.append(xp.reshape(xp.linalg.diagonal(blocks), (count, number * rank)))
            parts.append(xp.reshape((0.5 * square) @ a - own, (number * rank, count * size)))
        completed = parts[0] if len(parts) == 1 else xp.concat(parts, axis=0)
        half = xp.reshape(weights.T @ completed, (size, count, size))
        moved = stack + (half + xp.permute_dims(half, (2, 1, 0)))
        return moved, xp.concat(diagonals, axis=1), completed[:, :size]

    def mixed(self, stack: Array, weights: Array, left: Array | None = None) -> tuple[Array, Array]:
        """Q[A], and the R numbers b_i^T A b_i, for a stack of matrices along the middle axis (n x stack x n).

        `left` are the a_m^T, of the first step if they are left out, and `weights` p_m a_m^T.

        Computed as A + (C + C^T) with C = (p a) (1/2 (b^T A b) a^T - b^T A), two matrix products in all. The sum must
        stay in this order, or an antisymmetric rounding error appears that is never damped.
        """
        size = stack.shape[1] * stack.shape[2]
        half, quadratic = np.zeros((stack.shape[0], size)), np.empty((stack.shape[1], self.geometry.rows_learned))
        for first, last in pairwise(self._cuts(size)):
            own = slice(int(self.geometry.offsets[first]), int(self.geometry.offsets[last]))
            completed, quadratic[:, own] = self.completed(stack, slice(first, last), left)
            half += weights[own].T @ completed.reshape(len(completed), size)
        result = stack.copy()
        kernels().add_symmetric(result, half.reshape(stack.shape))
        return result, quadratic

    def _cuts(self, size: int) -> list[int]:
        """The tasks at which parts of about PART products of `size` numbers begin, and the end of the last part."""
        offsets, tasks = self.geometry.offsets, self.geometry.num_learned
        step = max(1, PART // max(size, 1))
        if offsets[tasks] <= step:
            return [0, tasks]
        inner = np.searchsorted(offsets[: tasks + 1], np.arange(step, int(offsets[tasks]), step))
        return [0, *np.unique(inner[inner < tasks]).tolist(), tasks]

    def completed(self, stack: Array, tasks: slice | None = None, left: Array | None = None) -> tuple[Array, Array]:
        """1/2 (b_m^T A b_m) a_m^T - b_m^T A for every task, R x stack x n; and all b_i^T A b_i, stack x R.

        `tasks` selects tasks; None for all. `left` are the a_m^T, of the first step if they are left out.
        """
        size, count, _ = stack.shape
        first, last = (0, self.geometry.num_learned) if tasks is None else (tasks.start, tasks.stop)
        offsets = self.geometry.offsets[first : last + 1] - self.geometry.offsets[first]
        span = slice(int(self.geometry.offsets[first]), int(self.geometry.offsets[last]))
        left, right = (self.left[0] if left is None else left)[span], self.right[0][span]
        products = (right @ stack.reshape(size, count * size)).reshape(len(right), count, size)
        quadratic = np.empty((count, len(right)))
        if float(np.max(self.geometry.ranks[first:last], initial=0.0)) <= WIDE:
            kernels().complete_blocks(left, right, offsets, products, quadratic)
            return products, quadratic
        for begin, end in pairwise(offsets.tolist()):  # the same, by matrix products
            block = slice(begin, end)
            own = np.ascontiguousarray(np.swapaxes(products[block], 0, 1))
            square = own @ right[block].T
            quadratic[:, block] = np.diagonal(square, axis1=1, axis2=2)
            products[block] = np.swapaxes(0.5 * square @ left[block] - own, 0, 1)
        return products, quadratic

    # ----------------------------------------------------------------------------------------------------- the states

    def count_visits(self, state: State) -> None:
        state.counted = self.device.zeros(self.size, self.geometry.num_learned, self.size)

    def make_steps(self, state: State, order: IntArray) -> None:
        assert np.all(order < 0), "devices have independent draws alone"
        for t in range(state.steps + 1, state.steps + 1 + len(order)):
            self._make_step(state, t)

    def _make_step(self, state: State, t: int) -> None:
        """One step of all moments and of E."""
        xp = self.device.xp
        noise, keep = self._noise(t)
        maps = self._maps(noise.gains)
        first, error = state.first[0], state.error  # which decay in place
        tau, trace = self.trace(first) + self.doubts.base, xp.linalg.trace(error)
        travels = tau[0]
        if keep != 1:
            now, doubt = (xp.clip(self.quadratic(part, maps.right)[0, :], 0.0, None) for part in (first, error))
            self._count_learnt(state, now, doubt + noise.own * trace + noise.reading * tau)
            self.decay(keep, state.first, error)
            tau, trace = self.trace(first) + self.doubts.base, xp.linalg.trace(error)
            travels = xp.max(xp.stack([travels, tau[0]]))
            if state.counted is not None:
                turned = xp.permute_dims(state.counted, (1, 0, 2))
                state.counted = xp.permute_dims(self._shrunk(turned, keep), (1, 0, 2))
        moved, diagonals, completed = self._mix(xp.stack([first[0, :, :], error[0, :, :]], axis=1), maps)
        now = xp.clip(diagonals[0, :], 0.0, None)
        doubt = xp.clip(diagonals[1, :], 0.0, None) + noise.own * trace + noise.reading * tau
        if keep == 1:
            self._count_learnt(state, now, doubt)
        if not self.alike:
            (value, low), off = state.after
            off = off + self._chance * (noise.share * doubt + noise.slip * (now + doubt))
            state.after = Squares((value + self._chance * noise.share * now, low), off)
        if state.counted is not None:
            state.counted = self._mapped(state.counted, maps)
            self._add_visits(state.counted, first[0, :, :], completed, maps)
        ends = xp.permute_dims(moved, (1, 0, 2))
        state.first = ends[:1, :, :], state.first[1]
        state.error = self._noisy(
            ends[1:, :, :], ends[:1, :, :], tau, trace, (noise.relative, noise.each, noise.errors)
        )
        state.travelled = state.travelled + travels

    def _count_learnt(self, state: State, now: Any, doubt: Any) -> None:
        """Add the squares of the task that is learned, just before it is."""
        (value, low), off = state.learnt
        state.learnt = Squares((value + self._chance * now, low), off + self._chance * doubt)

    def _shrunk(self, stack: Any, keep: float) -> Any:
        """P A P^T for each of a stack."""
        turned, ones = self.device.xp.linalg.matrix_transpose, slice(self.dim, self.dim + len(self.origin[0]))
        factors = np.where(np.arange(self.size) < self.dim, keep, 1.0)
        pulled = (keep - 1) * np.pad(self.origin[0].T, ((0, self.size - self.dim), (0, 0)))
        scale, pull = self.device.put(factors[:, None]), self.device.put(pulled)
        for _ in range(2):  # P times A, and then P times the transpose of that
            stack = turned(scale * stack + pull @ stack[..., ones, :])
        return 0.5 * (stack + turned(stack))

    def decay(self, keep: float, moments: Pair, errors: Any) -> None:
        xp = self.device.xp
        trace = xp.linalg.trace(errors)
        for each in (moments[0], errors):
            for at in range(0, each.shape[0], STACK):
                part = slice(at, min(at + STACK, each.shape[0]))
                each[part, ...] = self._shrunk(each[part, ...], keep)
        tau = self.trace(moments[0]) + self.doubts.base + self.pull
        uniform = 1e-14 * ((1.0 + self.pull) * trace + xp.clip(xp.linalg.trace(errors), 0.0, None))
        numbers = uniform[:, None] + (self.shrinking * tau)[:, None] * self._own
        errors[...] = self.raised(errors + self.shrinking * moments[0], numbers)

    def step_all(self, edges: Edges, shares: Pair, layer: tuple[Pair, Array], out: tuple[Pair, Array], t: int) -> None:
        noise = self.tables.of(t, 1).row()[1][edges.task]
        (moments, errors), (sums, sum_errors) = layer, out
        for at in range(0, len(edges.parents), STACK):
            which, where = edges.parents[at : at + STACK], edges.children[at : at + STACK]
            share = shares[0][at : at + STACK][:, None, None]
            before, doubt = moments[0][which], errors[which]
            moved, tau = self.step(edges.task, before, t), self.trace(before) + self.doubts.base
            trace = np.linalg.trace(doubt)
            sums[0][where] += share * moved
            sum_errors[where] += share * self._noisy(self.step(edges.task, doubt, t), moved, tau, trace, noise)

    def _noisy(self, errors: Any, moments: Any, tau: Any, trace: Any, noise: Any) -> Any:
        """The bounds on errors after a step, with what the step adds to them; tau and trace are those before it."""
        after = self.device.xp.clip(self.device.xp.linalg.trace(errors), 0.0, None)
        numbers = (noise[2] * (trace + after))[..., None] + (noise[1] * tau)[..., None] * self._own
        return self.raised(errors + noise[0] * moments, numbers)

    def _add_visits(self, counted: Any, first: Any, completed: Any, maps: _Maps) -> None:
        """Add p_m S_m A S_m^T to the moment that counts visits to m, in place, from A and its completed products."""
        xp, left, n = self.device.xp, maps.left, self.size
        chance = self._task_chance
        if self.device.host:
            offsets, first = self.geometry.offsets[: self.geometry.num_learned + 1], np.ascontiguousarray(first)
            completed = self.completed(first[:, None], left=left)[0][:, 0]
            kernels().add_steps(first, completed, left, offsets, chance, counted)
            return
        most = max(1, PART_THERE // n**2)
        for rank, tasks, rows in self._groups:
            for start in range(tasks.start, tasks.stop, most):
                stop = min(tasks.stop, start + most)
                part = slice(rows.start + (start - tasks.start) * rank, rows.start + (stop - tasks.start) * rank)
                a, done = (xp.reshape(each[part, :], (stop - start, rank, n)) for each in (left, completed))
                half = xp.linalg.matrix_transpose(a) @ done
                moved = first[None, :, :] + (half + xp.linalg.matrix_transpose(half))
                moved = moved * chance[start:stop][:, None, None]
                counted[:, start:stop, :] += xp.permute_dims(moved, (1, 0, 2))

    def visited(self, state: State) -> Pair:
        xp, right, geometry, values = self.device.xp, self.there[0], self.geometry, np.zeros(len(self.squares[0]))
        kinds = (0, geometry.num_learned) if geometry.held_out else (0,)
        blocks = [(place, geometry.block(m + kind)) for place, m in enumerate(self._sorted.tolist()) for kind in kinds]
        parts = [
            xp.sum((right[block, :] @ state.counted[:, place, :]) * right[block, :], axis=1) for place, block in blocks
        ]
        own = np.concatenate([np.arange(block.start, block.stop) for _, block in blocks])
        values[own] = self.device.take(xp.concat(parts))
        return values, np.zeros(len(values))
