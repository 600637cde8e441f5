"""Second moments of the error: E[z z^T] under random orderings evolves linearly, and losses are linear in it.

Learning task m multiplies z by S_m = I - a_m b_m^T with b_m = U_m and a_m = U_m diag(g), so that A = E[z z^T] becomes
S_m A S_m^T. Where no w solves all tasks the state is (z, 1) and b_m = (U_m, -c_m). With c outputs the state is a matrix
V of z (D x c) above the identity, b_m = (U_m, -c_m) has c constants, and A = E[V V^T] sums over outputs. Held-out data
are tasks that are never learned: they come last, and steps leave them out. Small problems are computed in numbers of
two floats (31 digits), which leaves enough when subspaces nearly coincide and losses are a tiny part of |z|^2; large
ones in float64, by matrix products.

Beside A runs a matrix E with -E <= (error of A) <= E in the order of symmetric matrices. E obeys the same recursion,
plus what each step adds: gamma A for relative errors, gamma tr(A) I for all others. Since the c_m(k) add up to k, the
errors of the moments E[c_m z z^T] are together at most k E. So E costs one more matrix, and the bound that E gives for
a value falls as the value falls.

For means of iterates the state is (x, s), with s the sum of x before each step: s + x replaces s, and then a step moves
x alone, so that E x s^T and E s s^T come out of the same maps.

The gains of a step may depend on its number. Decay, w <- keep w, is z <- keep z + (keep - 1) w* before the task is
learned: one more map P of the state (z, 1), for all tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Context, Decimal, localcontext
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from forgetting.compute.devices import HOST, Device
from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS
from forgetting.core.progress import progress_bar
from forgetting.expectation.engines.error_bounds import Doubts, Pair, scaled, sensitivity, times, two_floats
from forgetting.expectation.engines.step_tables import StepTables
from forgetting.expectation.quantities import LOSS, Form
from forgetting.geometry import Geometry

UNDERFLOW = 1e-290  # of a start of size 1: products below it lose their low parts, and then all
BATCH = 256  # steps between two looks at the clock and at Ctrl-C


class Squares(NamedTuple):
    """One number for each of the R directions of all tasks, with a bound on the error of each."""

    value: Pair
    doubt: Array


class MomentReading(NamedTuple):
    """The squares and sums after k steps that every quantity is computed from.

    Attributes:
        k: the number of steps.
        now: E rho_i^2.
        visited: E c_m rho_i^2, with c_m the number of visits to the task m of direction i; None if not counted.
        learnt: the sum over steps t of E rho_i(t - 1)^2 where step t learns the task of direction i.
        after: the sum over steps t of E rho_i(t)^2 where step t learned the task of direction i.
        coming: E rho_i^2 where the next step learns the task of direction i; None if not needed, or if no task comes.
        visits: E c_m of each distinct task.
        chance: the probability that each distinct task is learned next; None where `coming` is.
        spread: E|z|^2.
        spread_doubt: a bound on its error.
        travelled: the sum of E|z|^2 over the steps.
        summed: E of the square of rho_i summed over the iterates before each step; None if iterates are not summed.
        summed_spread: E|z summed over the iterates before each step|^2, at most.
        kept: as `after`, for the directions of held-out data.
    """

    k: int
    now: Squares
    visited: Squares | None
    learnt: Squares
    after: Squares
    coming: Squares | None
    visits: Pair
    chance: Pair | None
    spread: tuple[float, float]
    spread_doubt: float
    travelled: float
    summed: Squares | None = None
    summed_spread: float = 0.0
    kept: Squares | None = None


@dataclass(eq=False)
class State:
    """Moments after some steps: E z z^T, E c_m z z^T if visits are counted, and the bound E on errors of the first."""

    stack: Pair  # (1 + tasks) x n x n
    error: Array
    learnt: Pair
    learnt_doubt: Array
    after: Pair
    after_doubt: Array
    kept: Squares | None = None
    steps: int = 0
    travelled: float = 0.0


@dataclass(frozen=True, eq=False)
class Moments:
    """The maps A -> S_m A S_m^T and Q[A] = sum_m p_m S_m A S_m^T on second moments of a linear scheme.

    Steps are made in numbers of two floats here, and in float64 by `Float64Moments`.

    Attributes:
        twofold: whether numbers are pairs of floats; all low parts are zero if not.
        probability: p_m of each distinct task (clones summed).
        left, right: R x n, the stacked a_m^T of the first step and b_m^T.
        squares: of each of the R directions.
        gains, solves: of the first step: of each of the R directions, and whether every gain is exactly 1.
        tables: what all steps are made of.
        origin: z = 0 in coordinates on the joint row space, one row an output, divided by `unit`, to which decay needs
            constants; no rows where no step decays.
        unexplained: for each distinct task, half the squared norm of what no w can fit.
        first: the state at the start, one row an output, divided by `unit`.
        doubts: by how much all of this can be off.
        aside: for each number of steps, what decay adds to the error where no task sees it, and a doubt; not divided.
        averaged: whether iterates are summed: the state is (x, s), with x as above and s the sum of x before each step.
        watches: whether a quantity needs the loss of held-out data just after their task was learned.
        device: where packed matrices live, and `apply` and `step` compute.
    """

    geometry: Geometry
    twofold: bool
    probability: Pair
    left: Pair = field(repr=False)
    right: Pair = field(repr=False)
    squares: Pair = field(repr=False)
    gains: Pair = field(repr=False)
    solves: bool
    tables: StepTables = field(repr=False)
    origin: Pair = field(repr=False)
    unexplained: Pair = field(repr=False)
    first: Pair = field(repr=False)
    unit: float
    doubts: Doubts = field(repr=False)
    aside: tuple[Array, Array]
    averaged: bool = False
    watches: bool = False
    device: Device = HOST
    _forms: dict[Form, tuple[Pair, Array]] = field(default_factory=dict, init=False, repr=False)

    @property
    def size(self) -> int:
        """n, the order of the second-moment matrices."""
        return int(self.left[0].shape[1])

    @property
    def dim(self) -> int:
        """D, the number of coordinates of z among the n coordinates."""
        return self.geometry.dim

    @property
    def alike(self) -> bool:
        """Whether all steps are the same and keep all of w."""
        return self.tables.steps.alike

    @property
    def pull(self) -> float:
        """|z = 0|^2, towards which decay does not go."""
        return float(np.vdot(self.origin[0], self.origin[0]))

    def left_of(self, gains: Pair) -> Pair:
        """The stacked a_m^T of a step with these gains, R x n."""
        if self.alike:
            return self.left
        high, low = np.zeros_like(self.left[0]), np.zeros(self.left[1].shape)
        z = slice(self.dim)
        own = self.right[0][:, z], self.right[1][:, z]
        high[:, z], low[:, z] = times(own, gains, self.twofold)
        return high, low

    def watched(self, t: int) -> Pair:
        """For each direction i of held-out data, b_i^T S_m of step t, with m their task, and with the decay before it.

        This is what the direction sees just after m was learned.
        """
        if self.alike:
            return self._watched
        table = self.tables.of(t, 1)
        (high, low), keep = self._after_step(self.left_of(table.row()[0])), float(table.keep[0])
        if keep == 1:
            return high, low
        tools, z, ones = two_floats(), slice(self.dim), slice(self.dim, self.dim + len(self.origin[0]))
        b = np.ascontiguousarray(high[:, z]), np.ascontiguousarray(low[:, z])
        pulled = scaled(tools.products(*b, *self.origin), np.full((len(high), len(self.origin[0])), keep - 1))
        high, low = high.copy(), low.copy()
        high[:, ones], low[:, ones] = tools.add(high[:, ones], low[:, ones], *pulled)
        high[:, z], low[:, z] = scaled(b, np.full_like(b[0], keep))
        return high, low

    @cached_property
    def _watched(self) -> Pair:
        return self._after_step(self.left)

    def _after_step(self, left: Pair) -> Pair:
        """b_i^T S_m for each direction i of the held-out data of each task m."""
        tools, learned, right = two_floats(), self.geometry.num_learned, self.right
        parts: list[Pair] = []
        for m in range(learned):
            own, held = self.geometry.block(m), self.geometry.block(learned + m)
            b = right[0][held], right[1][held]
            if not self.twofold:
                parts.append((b[0] - (b[0] @ left[0][own].T) @ right[0][own], b[1]))
                continue
            along = tools.products(*(part.copy() for part in b), left[0][own].copy(), left[1][own].copy())
            turned = right[0][own].T.copy(), right[1][own].T.copy()
            parts.append(tools.sub(*b, *tools.products(*along, *turned)))
        return np.concatenate([high for high, _ in parts]), np.concatenate([low for _, low in parts])

    def shrunk(self, state: Pair, keep: float) -> Pair:
        """P applied to a state, one row an output."""
        if keep == 1:
            return state
        tools, (high, low), z = two_floats(), (part.copy() for part in state), slice(self.dim)
        factors = np.full_like(high[:, z], keep)
        lost = scaled(self.origin, factors - 1)
        high[:, z], low[:, z] = tools.add(*scaled((high[:, z], low[:, z]), factors), *lost)
        return high, low

    def shrink(self, t: int, moments: Pair, errors: Array) -> bool:
        """Let A become P A P^T in place, with P the decay of step t, for each of a stack and the bounds on errors.

        Returns whether the step decays.
        """
        keep = float(self.tables.of(t, 1).keep[0])
        if keep == 1:
            return False
        bounds = self.doubts.base, self.pull, self.shrinking
        kernels().shrink_all(*moments, errors, self.dim, keep, *self.origin, *bounds)
        return True

    def spared(self, t: int, squares: Squares) -> Squares:
        """What step t leaves of the squares of the tasks that it learns."""
        gains, _, slips = self.tables.of(t, 1).row()
        tools, slip = two_floats(), slips[self.geometry.owner]
        left = tools.sub(np.ones(len(slip)), np.zeros(len(slip)), *gains)
        share, root = tools.mul(*left, *left), np.abs(left[0])
        off = share[0] * squares.doubt + slip * (2 * root + slip) * (np.abs(squares.value[0]) + squares.doubt)
        return Squares(tools.mul(*squares.value, *share), off)

    @property
    def shrinking(self) -> float:
        """What rounding in a decay adds to E, as a multiple of A and of (tr(A) + |origin|^2) I."""
        return 8.0 * (len(self.origin[0]) + 8) * (two_floats().UNIT if self.twofold else EPS)

    # ------------------------------------------------------------------------------------ bounds that grow with steps

    def growth(self, steps: IntArray) -> Array:
        """The factor by which so many steps can multiply an error, at least 1."""
        if not self.alike:
            self.tables.known_to(int(np.max(steps, initial=0)))
            return np.array(self.tables.grown)[steps]
        with np.errstate(over="ignore"):
            return np.asarray(np.float64(self.tables.grown[1]) ** steps.astype(float))

    @property
    def drift(self) -> float:
        """By how much any step so far can move z whatever z is, because labels and z = 0 are known up to rounding."""
        tables, doubts = self.tables, self.doubts
        if not doubts.drift and not len(self.origin[0]):
            return 0.0
        paced = (tables.paces[1] - tables.paces[0]) * tables.source.size / self.unit
        return doubts.drift + paced + (2 * doubts.unsolved if len(self.origin[0]) else 0.0)

    def drifted(self, k: int) -> float:
        """A bound on the error of z after k steps because labels and z = 0 are only known up to rounding."""
        drift = self.drift
        if not drift:
            return 0.0
        with np.errstate(over="ignore"):
            if self.alike and (growth := np.float64(self.tables.grown[1])) != 1.0:
                return float(drift * (growth ** (k + 1.0) - 1) / (growth - 1))
            return float(drift * (k + 1.0) * self.growth(np.array(k)))

    def begin(self, *, visits: bool) -> State:
        """The state before the first step; with `visits`, visits to each task will be counted."""
        count, n, rows = 1 + (self.geometry.num_learned if visits else 0), self.size, len(self.squares[0])
        stack = np.zeros((count, n, n)), np.zeros((count, n, n))
        stack[0][0], stack[1][0] = self.second()
        learnt = np.zeros(rows), np.zeros(rows)
        after = np.zeros(rows), np.zeros(rows)
        return State(
            stack, self.doubts.first.copy(), learnt, np.zeros(rows), after, np.zeros(rows), self.nothing_kept()
        )

    def nothing_kept(self) -> Squares | None:
        """The losses of held-out data summed over no step: zeros; None if they are not watched."""
        if not self.watches:
            return None
        count = len(self.right[0]) - self.geometry.rows_learned
        return Squares((np.zeros(count), np.zeros(count)), np.zeros(count))

    def with_tests(self, values: Array) -> Array:
        """Values of the tasks (last axis), those of held-out data replaced by those of their tasks."""
        learned = self.geometry.num_learned
        return np.concatenate([values[..., :learned]] * 2, axis=-1) if self.geometry.held_out else values

    @property
    def observer(self) -> IntArray:
        """For each direction, the task that is learned when it counts: its own, or that of its held-out data."""
        return np.asarray(self.geometry.owner % self.geometry.num_learned)

    def second(self) -> Pair:
        """The moment of the start."""
        high, low = self.first
        if not self.twofold:
            return high.T @ high, np.zeros((self.size, self.size))
        tools, total = two_floats(), (np.zeros((self.size, self.size)), np.zeros((self.size, self.size)))
        for z, zl in zip(high, low, strict=True):
            total = tools.add(*total, *tools.mul(z[:, None], zl[:, None], z[None, :], zl[None, :]))
        return total

    def advance(self, state: State, order: IntArray) -> None:
        """Make a step for each entry of `order`: the distinct task to learn, or -1 for a drawn one, with 31 digits."""
        if (self.averaged or self.watches) and len(order) != 1:
            for i in range(len(order)):
                self.advance(state, order[i : i + 1])
            return
        self._watch(state, int(order[0]) if len(order) else 0)
        self.gather((state.stack[0][:1], state.stack[1][:1]), state.error[None], state.steps + 1)
        table = self.tables.of(state.steps + 1, len(order))
        state.steps += len(order)
        sums = np.zeros(1)
        rows, tasks = self.geometry.rows_learned, self.geometry.num_learned
        kernels().advance(
            *(part[:rows] for part in self.right),
            *table.gains,
            table.noise,
            table.slips,
            table.which,
            table.keep,
            *self.origin,
            self.geometry.offsets[: tasks + 1],
            *(part[:tasks] for part in self.probability),
            self.dim,
            order,
            *state.stack,
            state.error,
            *state.learnt,
            state.learnt_doubt,
            *state.after,
            state.after_doubt,
            sums,
            self.doubts.base,
            self.pull,
            self.shrinking,
        )
        state.travelled += float(sums[0])

    def reading(self, state: State, visits: Pair, chance: Pair | None, *, certain: bool = False) -> MomentReading:
        """The squares and sums that quantities are computed from, at this step.

        Args:
            state: the moments.
            visits: to each distinct task, expected; or, where they are `certain`, as they are in all runs.
            chance: the probability that each distinct task is learned next; None if that does not matter.
            certain: whether visits are the same in all runs.
        """
        now, doubt = self.read((state.stack[0][:1], state.stack[1][:1]), state.error[None])
        owner = self.geometry.owner
        here = Squares((now[0][0], now[1][0]), doubt[0])
        visited = None
        if certain:
            times = visits[0][self.observer]
            visited = Squares(scaled(here.value, times), here.doubt * times)
        elif len(state.stack[0]) > 1:
            each, _ = self.read((state.stack[0][1:], state.stack[1][1:]), None)
            own = np.arange(len(owner))
            counted = self.observer, own
            visited = Squares((each[0][counted], each[1][counted]), state.steps * here.doubt)
        coming = None
        if chance is not None:
            high = chance[0][owner]
            value = two_floats().mul(*here.value, high, chance[1][owner])
            coming = Squares(value, high * (here.doubt + self.doubts.known * np.abs(here.value[0])))
        spread, spread_doubt = self.spread((state.stack[0][:1], state.stack[1][:1]), state.error[None])
        summed, total = None, 0.0
        if self.averaged:
            first = state.stack[0][:1], state.stack[1][:1]
            squares, off, size = self.read_sums(first, state.error[None], state.steps)
            summed, total = Squares((squares[0][0], squares[1][0]), off[0]), float(size[0])
        return MomentReading(
            k=state.steps,
            now=here,
            visited=visited,
            learnt=Squares(state.learnt, state.learnt_doubt),
            after=Squares(state.after, state.after_doubt),
            coming=coming,
            visits=visits,
            chance=chance,
            spread=(float(spread[0][0]), float(spread[1][0])),
            spread_doubt=float(spread_doubt[0]),
            travelled=state.travelled,
            summed=summed,
            summed_spread=total,
            kept=state.kept,
        )

    def _watch(self, state: State, task: int) -> None:
        """Add the losses of held-out data just after the next step, where that step learns their task."""
        if state.kept is None:
            return
        first = state.stack[0][:1], state.stack[1][:1]
        chance = self.probability
        if task >= 0:
            chance = (np.arange(self.geometry.num_distinct) == task).astype(float), np.zeros(self.geometry.num_distinct)
        chances = chance[0][None], chance[1][None]
        state.kept = self.kept_after(first, state.error[None], chances, state.kept, state.steps + 1)

    def kept_after(self, moments: Pair, errors: Array, chance: Pair, before: Squares, t: int) -> Squares:
        """`before` plus the losses of held-out data just after step t, for several moments.

        `chance` holds for each moment and each distinct task how likely both are together.
        """
        tools, owner = two_floats(), self.observer[self.geometry.rows_learned :]
        squares, doubts = self.read(moments, errors, rows=self.watched(t))
        weights = chance[0][:, owner], chance[1][:, owner]
        parts = tools.mul(*squares, *weights)
        gained = tools.total((parts[0].T, parts[1].T))
        return Squares(tools.add(*before.value, *gained), before.doubt + np.sum(weights[0] * doubts, axis=0))

    # --------------------------------------------------------------------------------------------- sums of iterates

    def gather(self, moments: Pair, errors: Array, t: int) -> None:
        """Before step t, let (x, s) become (x, s + x), in place, for each of a stack and the bound on its error."""
        if not self.averaged:
            return
        half = self.size // 2
        x, s = slice(half), slice(half, None)

        def grow(high: Array, low: Array, plus: Any) -> None:
            """Compute A_sx += A_xx and A_ss += (A_sx + A_xs) + A_xx, such that A stays symmetric to the last bit."""
            now, cross = (high[:, x, x], low[:, x, x]), (high[:, s, x].copy(), low[:, s, x].copy())
            part = plus(*cross, 0.5 * now[0], 0.5 * now[1])
            both = plus(*part, *(np.swapaxes(number, 1, 2) for number in part))
            high[:, s, s], low[:, s, s] = plus(high[:, s, s], low[:, s, s], *both)
            high[:, s, x], low[:, s, x] = plus(*cross, *now)
            high[:, x, s], low[:, x, s] = (np.swapaxes(number[:, s, x], 1, 2) for number in (high, low))

        grow(*moments, two_floats().add if self.twofold else _add)
        grow(errors, np.zeros_like(errors), _add)
        # what rounds A_xs, here and in the step that follows, is at most a multiple of tr(A_xx) I + tr(A_ss) I
        places = np.arange(self.size)
        sums = np.trace(np.abs(moments[0][:, s, s]), axis1=1, axis2=2)
        worst = np.max(self.tables.of(t, 1).row()[1], axis=0, initial=0.0)
        errors[:, places, places] += (worst[2] * np.trace(errors, axis1=1, axis2=2))[:, None] + np.where(
            places < half, 0.0, (worst[3] * sums)[:, None]
        )

    def read_sums(self, moments: Pair, errors: Array, steps: int) -> tuple[Pair, Array, Array]:
        """`read` of the sum of the iterates of `steps` steps, and a bound on its mean square."""
        half = self.size // 2
        high, low, error = (np.roll(part, half, axis=(1, 2)) for part in (*moments, errors))
        squares, doubts = self.read((high, low), error, steps)
        return squares, doubts, self.trace(high) + np.maximum(np.trace(error, axis1=1, axis2=2), 0.0)

    # ---------------------------------------------------------------------------------------------- forms of tasks

    def weights(self, form: Form) -> Pair:
        """The weight of each of the R directions in a form."""
        return self._form(form)[0]

    def slips(self, form: Form) -> Array:
        """For each distinct task, a bound on the error of the root of the form at |z| = 1."""
        return self._form(form)[1]

    def _form(self, form: Form) -> tuple[Pair, Array]:
        """`weights` and `slips`, computed once for each form."""
        if form not in self._forms:
            if form is LOSS:
                norms = np.sqrt(np.maximum(self.geometry.per_task(self.squares[0]), 0.0))
                self._forms[form] = self.squares, self.doubts.misread * norms
                return self._forms[form]
            weights: Pair = np.asarray(form.weights(self.squares[0]), dtype=np.float64), np.zeros_like(self.squares[0])
            if self.twofold:
                with localcontext(Context(prec=50)):
                    exact = form.weights(np.array(two_floats().decimals(self.squares), dtype=object))
                    weights = two_floats().from_decimals([Decimal(weight) for weight in exact])
            largest = np.zeros(self.geometry.num_distinct)
            np.maximum.at(largest, self.geometry.owner, np.abs(weights[0]))
            moved = sensitivity(self.geometry, lambda sigma: np.sqrt(np.asarray(form.weights(sigma**2), dtype=float)))
            self._forms[form] = weights, self.doubts.turned * (np.sqrt(largest) + moved)
        return self._forms[form]

    # -------------------------------------------------------------------------------------------- several at once

    def read(
        self, moments: Pair, errors: Array | None, summed: int = 1, rows: Pair | None = None
    ) -> tuple[Pair, Array]:
        """b_i^T A b_i for each matrix and each of the R directions, (count, R), and a bound on the error.

        `summed` is the number of iterates whose sum z is. `rows` are other b_i, of directions of held-out data.
        """
        right = self.right if rows is None else rows
        if self.twofold:
            pairs = [kernels().read(*right, high, low) for high, low in zip(*moments, strict=True)]
            high, low = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
        else:
            high = self.quadratic(moments[0], right[0])
            low = np.zeros_like(high)
        if errors is None:
            return (high, low), np.zeros_like(high)
        trace = np.maximum(np.trace(errors, axis1=1, axis2=2), 0.0)[:, None]
        tests = np.arange(len(self.geometry.owner)) >= self.geometry.rows_learned
        base = self.doubts.base + np.where(tests, self.doubts.test_base, 0.0)
        tau = self.trace(moments[0])[:, None] + base * summed**2
        own, reading = self.doubts.noise[self.geometry.owner, 2], self.doubts.noise[self.geometry.owner, 3]
        if rows is not None:
            own, reading, tau = 4 * own[tests], 4 * reading[tests], tau[:, tests]
        bound = np.maximum(self.quadratic(errors, right[0]), 0.0) + own * trace + reading * tau
        return (high, low), bound + (UNDERFLOW if self.first[0].any() else 0.0)

    def quadratic(self, moments: Array, rows: Array) -> Array:
        """b_i^T A b_i in float64, for each of a stack of matrices; (count, R)."""
        return np.asarray(np.einsum("...in,in->...i", rows @ moments, rows))

    def spread(self, moments: Pair, errors: Array) -> tuple[Pair, Array]:
        """E|z|^2 for each matrix, and a bound on the error."""
        high, low = (np.diagonal(part, axis1=1, axis2=2)[:, : self.dim] for part in moments)
        traces = np.maximum(np.diagonal(errors, axis1=1, axis2=2)[:, : self.dim], 0.0).sum(axis=1)
        worst = float(np.max(self.doubts.noise[:, 3], initial=0.0)) + 4 * self.dim * EPS * (not self.twofold)
        if self.twofold:
            sums: Pair = two_floats().total((high, low))
        else:
            sums = high.sum(axis=1), np.zeros(len(high))
        return sums, traces + worst * self.trace(moments[0])

    def trace(self, moments: Array) -> Array:
        """tr(A) without the constant."""
        return np.asarray(np.maximum(np.diagonal(moments, axis1=-2, axis2=-1)[..., : self.dim], 0.0).sum(axis=-1))

    def step_all(
        self,
        task: int,
        parents: IntArray,
        places: IntArray,
        shares: Pair,
        layer: tuple[Pair, Array],
        out: tuple[Pair, Array],
        t: int,
    ) -> None:
        """out[places] += shares * S_m layer[parents] S_m^T, for the moments and for the bounds on their errors.

        S_m is that of step t, without its decay.
        """
        (moments, errors), (sums, sum_errors) = layer, out
        block = self.geometry.block(task)
        (gains, gains_low), noise, _ = self.tables.of(t, 1).row()
        kernels().step_all(
            *self.right,
            gains[None],
            gains_low[None],
            block.start,
            block.stop,
            self.dim,
            noise[task],
            self.doubts.base,
            parents,
            places,
            *shares,
            *moments,
            errors,
            *sums,
            sum_errors,
        )


def batches(steps: IntArray, moments: Moments, order: IntArray | None = None) -> Iterator[tuple[int | None, IntArray]]:
    """Parts of the order, cut at the steps to read at (k, else None); a step that is given twice comes twice.

    Without an order all tasks are drawn (-1). Parts are short, so that an interrupt acts soon.
    """
    size = max(1, min(BATCH, int(1e6 / max(1, moments.size**2 * len(moments.squares[0])))))
    drawn = np.full(size, -1, dtype=np.int64)
    done, last = 0, int(steps[-1])
    with progress_bar("moments") as report:
        for k in steps.tolist():
            reached = False
            while not reached:
                cut = min(k, done - done % size + size)
                part = drawn[: cut - done] if order is None else order[done:cut]
                done, reached = cut, cut == k
                yield (k if reached else None), part
                report("moments", cut, last)


def _add(high: Array, low: Array, other: Array, _: Array) -> Pair:
    """The sum of numbers whose low parts are zero."""
    return high + other, low


@cache
def kernels() -> Any:
    """The module of compiled loops, which is imported when it is first used."""
    from forgetting.expectation import _kernels as _moment_kernels

    return _moment_kernels
