"""Second moments of the error: E[z z^T] under random orderings evolves linearly, and losses are linear in it.

Learning task m multiplies z by S_m = I - a_m b_m^T with b_m = U_m and a_m = U_m diag(g), so that A = E[z z^T] becomes
S_m A S_m^T. Where no w solves all tasks the state is (z, 1) and b_m = (U_m, -c_m). With c outputs the state is a matrix
V of z (D x c) above the identity, b_m = (U_m, -c_m) has c constants, and A = E[V V^T] sums over outputs. Held-out data
are tasks that are never learned: they come last, and steps leave them out.

`Moments` has all that is no arithmetic: the data, the states, held-out rows, sums of iterates, bounds on errors, and
the squares that quantities are read from. Two classes compute: `TwoFloatMoments` with 31 digits, which leaves enough
when subspaces nearly coincide and losses are a tiny part of |z|^2, and `Float64Moments`, by matrix products, for large
problems. States live where steps are computed, and all that is done to them is written to the array API.

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

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Context, Decimal, localcontext
from functools import cache, cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from forgetting.compute.devices import HOST, Device
from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS
from forgetting.core.progress import progress_bar
from forgetting.expectation.engines.error_bounds import Doubts, Pair, scaled, sensitivity, times, two_floats
from forgetting.expectation.engines.multisets import Edges
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
        remembered: as `after`, for all directions, where a scheme remembers; None for all other schemes.
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
    remembered: Squares | None = None


@dataclass(eq=False)
class State:
    """Moments after some steps, where the map computes.

    Attributes:
        first: E z z^T, a stack of one.
        error: the bound E on its errors, a stack of one.
        learnt, after: as in `MomentReading`, for the learned directions in the order of `Moments.places`.
        kept: as in `MomentReading`.
        counted: E c_m z z^T of each task m, as the map holds them; None where visits are not counted.
        steps: how many were made.
        travelled: the sum of E|z|^2 over them.
    """

    first: Pair
    error: Any
    learnt: Squares
    after: Squares
    kept: Squares | None
    counted: Any = None
    steps: int = 0
    travelled: float = 0.0


@dataclass(frozen=True, eq=False)
class Moments(ABC):
    """The maps A -> S_m A S_m^T and Q[A] = sum_m p_m S_m A S_m^T on second moments of a linear scheme.

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
        device: where states live, and steps are computed.
    """

    twofold: ClassVar[bool]

    geometry: Geometry
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

        This is what the direction sees just after m was learned. It is where moments are.
        """
        if self.alike:
            return self._watched
        table = self.tables.of(t, 1)
        return self._after_step(self.left_of(table.row()[0]), float(table.keep[0]))

    @cached_property
    def _watched(self) -> Pair:
        return self._after_step(self.left, 1.0)

    def _after_step(self, left: Pair, keep: float) -> Pair:
        """b_i^T S_m P for each direction i of the held-out data of each task m, with P a decay."""
        learned, parts = self.geometry.num_learned, list[Pair]()
        for m in range(learned):
            own, held = self.geometry.block(m), self.geometry.block(learned + m)
            b, step, turned = (
                (rows[0][block], rows[1][block]) for rows, block in ((self.right, held), (left, own), (self.right, own))
            )
            moved = self.inner(self.inner(b, step), (turned[0].T, turned[1].T))
            parts.append(self.plus(b, (-moved[0], -moved[1])))
        high, low = np.concatenate([high for high, _ in parts]), np.concatenate([low for _, low in parts])
        if keep != 1:
            tools, z, ones = two_floats(), slice(self.dim), slice(self.dim, self.dim + len(self.origin[0]))
            b = np.ascontiguousarray(high[:, z]), np.ascontiguousarray(low[:, z])
            pulled = tools.mul(*tools.products(*b, *self.origin), *tools.add(keep, 0.0, -1.0, 0.0))
            high[:, ones], low[:, ones] = tools.add(high[:, ones], low[:, ones], *pulled)
            high[:, z], low[:, z] = scaled(b, np.full_like(b[0], keep))
        return self.device.put(high), low

    def shrink(self, t: int, moments: Pair, errors: Any) -> bool:
        """Make the decay of step t in place, for each of a stack and the bounds on errors; whether there is one."""
        keep = float(self.tables.of(t, 1).keep[0])
        if keep != 1:
            self.decay(keep, moments, errors)
        return keep != 1

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
        return 8.0 * (len(self.origin[0]) + 8) * self.rounding

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

    # ---------------------------------------------------------------------------------------------------- the states

    def begin(self, *, visits: bool) -> State:
        """The state before the first step; with `visits`, visits to each task will be counted."""
        put, rows = self.device.put, self.geometry.rows_learned
        high, low = self.second()
        first = put(high[None]), put(low[None])
        error = put(self.doubts.first[None].copy())
        state = State(first, error, self._nothing(rows), self._nothing(rows), self.nothing_kept())
        if visits:
            self.count_visits(state)
        return state

    def nothing_kept(self) -> Squares | None:
        """The losses of held-out data summed over no step: zeros; None if they are not watched."""
        return self._nothing(len(self.right[0]) - self.geometry.rows_learned) if self.watches else None

    def _nothing(self, count: int) -> Squares:
        zeros = self.device.zeros
        return Squares((zeros(count), zeros(count)), zeros(count))

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
        turned = self.first[0].T, self.first[1].T
        return self.inner(turned, turned)

    def states(self, steps: IntArray, order: IntArray | None = None, *, visits: bool = False) -> Iterator[State]:
        """Yield the state at each of the steps, twice where a step is given twice; it goes on from there.

        Along an order of distinct tasks, or with independent draws if it is left out. Steps are made in short batches,
        so that an interrupt acts soon.
        """
        state, last = self.begin(visits=visits), int(steps[-1])
        size = max(1, min(BATCH, int(1e6 / max(1, self.size**2 * len(self.squares[0])))))
        drawn = np.full(size, -1, dtype=np.int64)
        with progress_bar("moments") as report:
            for k in steps.tolist():
                while (done := state.steps) < k:
                    cut = min(k, done - done % size + size)
                    self.advance(state, drawn[: cut - done] if order is None else order[done:cut])
                    report("moments", cut, last)
                yield state

    def advance(self, state: State, order: IntArray) -> None:
        """Make a step for each entry of `order`: the distinct task to learn, or -1 for a drawn one."""
        single = self.averaged or self.watches
        for part in [order[i : i + 1] for i in range(len(order))] if single else [order]:
            if single:
                self._watch(state, int(part[0]))
                self.gather(state.first, state.error, state.steps + 1)
            self.make_steps(state, part)
            state.steps += len(part)

    def reading(self, state: State, visits: Pair, chance: Pair | None, *, certain: bool = False) -> MomentReading:
        """The squares and sums that quantities are computed from, at this step.

        Args:
            state: the moments.
            visits: to each distinct task, expected; or, where they are `certain`, as they are in all runs.
            chance: the probability that each distinct task is learned next; None if that does not matter.
            certain: whether visits are the same in all runs.
        """
        here, owner = self._only(*self.read(state.first, state.error)), self.geometry.owner
        visited = None
        if certain:
            times = visits[0][self.observer]
            visited = Squares(scaled(here.value, times), here.doubt * times)
        elif state.counted is not None:
            visited = Squares(self.visited(state), state.steps * here.doubt)
        coming = None
        if chance is not None:
            high = chance[0][owner]
            value = two_floats().mul(*here.value, high, chance[1][owner])
            coming = Squares(value, high * (here.doubt + self.doubts.known * np.abs(here.value[0])))
        spread, spread_doubt = self.spread(state.first, state.error)
        summed, total = None, 0.0
        if self.averaged:
            squares, off, size = self.read_sums(state.first, state.error, state.steps)
            summed, total = self._only(squares, off), float(size[0])
        learnt = self._placed(state.learnt)
        return MomentReading(
            k=state.steps,
            now=here,
            visited=visited,
            learnt=learnt,
            after=self.spared(1, learnt) if self.alike else self._placed(state.after),
            coming=coming,
            visits=visits,
            chance=chance,
            spread=(float(spread[0][0]), float(spread[1][0])),
            spread_doubt=float(spread_doubt[0]),
            travelled=float(state.travelled),
            summed=summed,
            summed_spread=total,
            kept=None if state.kept is None else self._taken(state.kept),
        )

    def _taken(self, squares: Squares) -> Squares:
        """The squares, on the processor."""
        (high, low), take = squares.value, self.device.take
        return Squares((take(high), take(low)), take(squares.doubt))

    def _only(self, values: Pair, doubts: Any) -> Squares:
        """The squares of a stack of one, on the processor."""
        return self._taken(Squares((values[0][0, :], values[1][0, :]), doubts[0, :]))

    def _placed(self, learned: Squares) -> Squares:
        """Sums of the learned directions in their places among all directions, on the processor."""
        (high, low), doubt = self._taken(learned)
        rows = np.zeros((3, len(self.squares[0])))
        rows[:, self.places] = high, low, doubt
        return Squares((rows[0], rows[1]), rows[2])

    @property
    def places(self) -> IntArray:
        """For each learned direction in the order in which states hold them, its place among the R directions."""
        return np.arange(self.geometry.rows_learned)

    # ------------------------------------------------------------------------------------------------ held-out data

    def _watch(self, state: State, task: int) -> None:
        """Add the losses of held-out data just after the next step, where that step learns their task."""
        if state.kept is None:
            return
        chance = self._drawn
        if task >= 0:
            learns = np.asarray(self.observer[None, self.geometry.rows_learned :] == task, dtype=np.float64)
            chance = self.device.put(learns), np.zeros_like(learns)
        state.kept = self.kept_after(state.first, state.error, chance, state.kept, state.steps + 1)

    @cached_property
    def _drawn(self) -> Pair:
        """p of the task of each direction of held-out data, in one row."""
        owner = self.observer[None, self.geometry.rows_learned :]
        return self.device.put(self.probability[0][owner]), self.probability[1][owner]

    def kept_after(self, moments: Pair, errors: Any, chance: Pair, before: Squares, t: int) -> Squares:
        """`before` plus the losses of held-out data just after step t, for several moments.

        `chance` holds for each moment and each direction of held-out data how likely the moment and its task are
        together.
        """
        value, doubt = self.weighted(*self.read(moments, errors, rows=self.watched(t)), chance)
        return Squares(self.plus(before.value, value), before.doubt + doubt)

    # --------------------------------------------------------------------------------------------- sums of iterates

    def gather(self, moments: Pair, errors: Any, t: int) -> None:
        """Before step t, let (x, s) become (x, s + x), in place, for each of a stack and the bound on its error."""
        if not self.averaged:
            return
        xp, half = self.device.xp, self.size // 2
        for part, grown in zip(moments, self._grown(moments, self.plus), strict=True):
            part[...] = grown
        (grown,) = self._grown((errors,), lambda a, b: (a[0] + b[0],))
        # what rounds A_xs, here and in the step that follows, is at most a multiple of tr(A_xx) I + tr(A_ss) I
        sums = xp.sum(xp.abs(xp.linalg.diagonal(moments[0])[..., half:]), axis=-1)
        worst = np.max(self.tables.of(t, 1).row()[1], axis=0, initial=0.0)
        rounded = (float(worst[2]) * xp.linalg.trace(grown))[..., None] + (float(worst[3]) * sums)[
            ..., None
        ] * self._later
        errors[...] = self.raised(grown, rounded)

    def _grown(self, numbers: Any, plus: Callable[[Any, Any], Any]) -> Any:
        """A after A_sx += A_xx and A_ss += (A_sx + A_xs) + A_xx, so that A stays symmetric to the last bit.

        A is one array of numbers, or several, which `plus` adds.
        """
        xp, half = self.device.xp, self.size // 2
        x, s, turned = slice(half), slice(half, None), xp.linalg.matrix_transpose
        now, cross, sums = (tuple(part[..., i, j] for part in numbers) for i, j in ((x, x), (s, x), (s, s)))
        part = plus(cross, tuple(0.5 * each for each in now))
        sums, mixed = plus(sums, plus(part, tuple(map(turned, part)))), plus(cross, now)
        return [
            xp.concat([xp.concat([a, turned(b)], axis=-1), xp.concat([b, c], axis=-1)], axis=-2)
            for a, b, c in zip(now, mixed, sums, strict=True)
        ]

    def raised(self, matrices: Any, numbers: Any) -> Any:
        """A stack of matrices with numbers added to their diagonals; in place on the processor."""
        if not self.device.host:
            return matrices + numbers[..., None] * self._identity
        diagonals = np.einsum("...ii->...i", matrices)  # a view
        diagonals += numbers
        return matrices

    @cached_property
    def _identity(self) -> Any:
        return self.device.put(np.eye(self.size))

    @cached_property
    def _own(self) -> Any:
        """1 for the coordinates of z, 0 for constants and sums of iterates."""
        return self.device.put(np.where(np.arange(self.size) < self.dim, 1.0, 0.0))

    @cached_property
    def _later(self) -> Any:
        """1 for the sums of iterates, 0 for all other coordinates."""
        return self.device.put(np.where(np.arange(self.size) < self.size // 2, 0.0, 1.0))

    def read_sums(self, moments: Pair, errors: Any, steps: int) -> tuple[Pair, Any, Any]:
        """`read` of the sum of the iterates of `steps` steps, and a bound on its mean square."""
        xp, half = self.device.xp, self.size // 2
        high, low, error = (xp.roll(part, (half, half), axis=(1, 2)) for part in (*moments, errors))
        squares, doubts = self.read((high, low), error, steps)
        return squares, doubts, self.trace(high) + xp.clip(xp.linalg.trace(error), 0.0, None)

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

    # ------------------------------------------------------------------------------------------------- reading

    def read(self, moments: Pair, errors: Any, summed: int = 1, rows: Pair | None = None) -> tuple[Pair, Any]:
        """b_i^T A b_i for each matrix of a stack and each of the R directions, (count, R), and a bound on the error.

        `summed` is the number of iterates whose sum z is. `rows` are other b_i, of directions of held-out data.
        """
        xp, right = self.device.xp, self.there if rows is None else rows
        own, reading, base = self._noise_of_reading[rows is not None]
        trace = xp.clip(xp.linalg.trace(errors), 0.0, None)[:, None]
        tau = self.trace(moments[0])[:, None] + base * summed**2
        bound = xp.clip(self.quadratic(errors, right[0]), 0.0, None) + own * trace + reading * tau
        return self.squares_of(moments, right), bound + (UNDERFLOW if self.first[0].any() else 0.0)

    @cached_property
    def there(self) -> Pair:
        """b_i of the R directions, where moments are."""
        return self.device.put(self.right[0]), self.right[1]

    @cached_property
    def _noise_of_reading(self) -> list[tuple[Any, Any, Any]]:
        """What reading a square adds to its bound, in multiples of tr(E) and of tr(A), and what is added to tr(A).

        For all directions; and for `watched` ones.
        """
        owner, put = self.geometry.owner, self.device.put
        tests = np.arange(len(owner)) >= self.geometry.rows_learned
        base = self.doubts.base + np.where(tests, self.doubts.test_base, 0.0)
        own, reading = self.doubts.noise[owner, 2], self.doubts.noise[owner, 3]
        return [
            (put(own), put(reading), put(base)),
            (put(4 * own[tests]), put(4 * reading[tests]), put(base[tests])),
        ]

    def quadratic(self, moments: Any, rows: Any) -> Any:
        """b_i^T A b_i in float64, for each of a stack of matrices; (count, R)."""
        if self.device.host:
            return np.asarray(np.einsum("...in,in->...i", rows @ moments, rows))
        return self.device.xp.sum((rows @ moments) * rows, axis=-1)

    def spread(self, moments: Pair, errors: Any) -> tuple[Pair, Array]:
        """E|z|^2 for each matrix of a stack, and a bound on the error, on the processor."""
        xp, take, own = self.device.xp, self.device.take, slice(self.dim)
        high, low = (take(xp.linalg.diagonal(part)[..., own]) for part in moments)
        traces = xp.sum(xp.clip(xp.linalg.diagonal(errors)[..., own], 0.0, None), axis=-1)
        worst = float(np.max(self.doubts.noise[:, 3], initial=0.0)) + 4 * self.dim * EPS * (not self.twofold)
        return self.total((high, low)), take(traces + worst * self.trace(moments[0]))

    def trace(self, moments: Any) -> Any:
        """tr(A) without the constants, for each of a stack of matrices."""
        xp = self.device.xp
        return xp.sum(xp.clip(xp.linalg.diagonal(moments)[..., : self.dim], 0.0, None), axis=-1)

    # ----------------------------------------------------------------------------------------------- the arithmetic

    @property
    @abstractmethod
    def rounding(self) -> float:
        """The relative error of one operation."""

    @abstractmethod
    def plus(self, a: Pair, b: Pair) -> Pair:
        """a + b."""

    @abstractmethod
    def inner(self, a: Pair, b: Pair) -> Pair:
        """a b^T of two matrices on the processor."""

    @abstractmethod
    def total(self, numbers: Pair) -> Pair:
        """The sum over the last axis, on the processor."""

    @abstractmethod
    def per_task(self, numbers: Pair) -> Pair:
        """R numbers, summed into one for each distinct task."""

    @abstractmethod
    def squares_of(self, moments: Pair, rows: Pair) -> Pair:
        """b_i^T A b_i for each matrix of a stack and each row, (count, rows)."""

    @abstractmethod
    def count_visits(self, state: State) -> None:
        """Make room for the moments that count visits."""

    @abstractmethod
    def visited(self, state: State) -> Pair:
        """E c_m rho_i^2 of each of the R directions, with m their task, on the processor."""

    @abstractmethod
    def make_steps(self, state: State, order: IntArray) -> None:
        """Make a step for each entry of `order`, but for what is watched and gathered."""

    @abstractmethod
    def decay(self, keep: float, moments: Pair, errors: Any) -> None:
        """Let A become P A P^T in place, with P the decay that keeps so much, for each of a stack and their bounds."""

    @abstractmethod
    def step_all(self, edges: Edges, shares: Pair, layer: tuple[Pair, Array], out: tuple[Pair, Array], t: int) -> None:
        """out[children] += shares * S_m layer[parents] S_m^T, for the moments and for the bounds on their errors.

        m is the task of the edges, and S_m that of step t, without its decay.
        """

    def weighted(self, squares: Pair, doubts: Any, weights: Pair) -> Squares:
        """The squares of a stack of moments, summed with a weight for each of them and for each direction."""
        if not self.device.host:
            value, doubt = (self.device.xp.sum(weights[0] * part, axis=0) for part in (squares[0], doubts))
            return Squares((value, 0 * value), doubt)
        parts = two_floats().mul(*squares, *weights)
        return Squares(two_floats().total((parts[0].T, parts[1].T)), np.sum(weights[0] * doubts, axis=0))


@cache
def kernels() -> Any:
    """The module of compiled loops, which is imported when it is first used."""
    from forgetting.expectation import _kernels as _moment_kernels

    return _moment_kernels
