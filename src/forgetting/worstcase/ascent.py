"""Quasi-Newton ascent over subspaces, many collections of tasks in one batch.

The kernel of task m is spanned by some columns of an orthogonal matrix O_m, its frame: P_m = O_m J_m O_m', where the
diagonal J_m has ones and zeros. A step turns the frame, O_m <- O_m exp(A_m), with A_m skew and zero within kernel and
row space. Coordinates in the frame are constant under parallel transport along such a geodesic, so that L-BFGS works
with plain vectors. Its inner products are computed on the device; the small systems of each collection are solved on
the CPU: in each step one small array comes from the device, and one goes there. An ascent begins at random subspaces,
or at given tasks and tasks near them.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

from forgetting.compute.devices import Device
from forgetting.core.arrays import Array, IntArray
from forgetting.errors import InvalidInputError
from forgetting.tasks import Problem
from forgetting.worstcase.matrix_powers import flipped
from forgetting.worstcase.objective import Objective, ObjectiveValues

WIDE = 3.0  # radians: turned at random by so much, subspaces are about independent
ROUNDED_VALUE = 1e-10  # k times the value below which a start with a common kernel is rounding errors
HALVINGS = 40
EQUAL = 0.75  # of random starts have tasks of one rank, as the worst tasks that are known
Flags = NDArray[np.bool_]
MEMORY = 20  # pairs of steps and changes of gradients
TURN = 1.0  # the longest step of a collection, in radians
FIRST = 0.1  # the length of a step without history
GAIN = 1e-4  # the share of the predicted gain that a step must reach
NOISE = 1e-13  # relative errors of values: smaller losses are accepted
FLAT = 1e-9  # the gradient of the logarithm below which a collection is finished
LEAST = 2.0**-30  # the shortest step, relative to that of L-BFGS


class Point(NamedTuple):
    """A batch of collections, on the CPU.

    Attributes:
        frames: (batch, T, d, d), orthogonal matrices.
        kernel: (batch, T, d), 1 for columns of the frame that span the kernel, else 0.
        logits: (batch, T), logarithms of the weights up to a constant.
        start: (batch, d, 1), unit z_0.
        log_value: (batch,).
        slope: (batch,), the norm of the gradient of the logarithm.
    """

    frames: Array
    kernel: Array
    logits: Array
    start: Array
    log_value: Array
    slope: Array

    @classmethod
    def joined(cls, points: Sequence[Point]) -> Point:
        """One batch of several."""
        return cls(*map(np.concatenate, zip(*points, strict=True)))

    def part(self, rows: IntArray) -> Point:
        """Some collections of the batch."""
        return Point(*(array[rows] for array in self))

    def put(self, rows: IntArray, other: Point) -> None:
        """Put collections of another batch in the place of these."""
        for mine, new in zip(self, other, strict=True):
            mine[rows] = new


def projections_of(device: Device, frames: Any, kernel: Any) -> Any:
    """The projections P_m = O_m J_m O_m' onto the kernels."""
    return (frames * kernel[:, :, None, :]) @ flipped(device.xp, frames)


def probabilities(device: Device, logits: Any) -> Any:
    """The weights p of logits: exp(logits), divided by their sum."""
    xp = device.xp
    grown = xp.exp(logits - xp.max(logits, axis=1, keepdims=True))
    return grown / xp.sum(grown, axis=1, keepdims=True)


def turned(device: Device, frames: Any, skew: Any, identity: Any) -> Any:
    """O exp(A): four terms of the series, made orthogonal by Newton-Schulz steps X <- X (3 I - X'X) / 2."""
    xp = device.xp
    rotation = identity + skew @ (identity + (skew / 2) @ (identity + (skew / 3) @ (identity + skew / 4)))
    frames = frames @ rotation
    for _ in range(3):
        frames = frames @ (1.5 * identity - 0.5 * (flipped(xp, frames) @ frames))
    return frames


def directions(gram: Array, valid: Flags, ages: IntArray) -> Array:
    """The L-BFGS ascent direction of each collection, as coefficients of (steps, changes, gradient).

    `gram` (batch, 2 n + 1, 2 n + 1) has the inner products of the n steps s, the n changes y of the negative gradient,
    and the gradient g. `ages` sorts the pairs from the oldest to the newest; pairs that are not `valid` do not count.
    H g = c g + S (R^-T ((D + c Y'Y) u - c Y'g)) - c Y u with u = R^-1 S'g, where R is the upper triangle of S'Y and D
    its diagonal (Byrd, Nocedal and Schnabel 1994, Theorem 2.2).
    """
    batch, n = valid.shape
    rows = np.arange(batch)[:, None]
    ok = valid[rows, ages]
    both = ok[:, :, None] & ok[:, None, :]
    s, y = ages[:, :, None], n + ages[:, :, None]
    sy = np.where(both, gram[rows[:, :, None], s, n + ages[:, None, :]], 0.0)
    yy = np.where(both, gram[rows[:, :, None], y, n + ages[:, None, :]], 0.0)
    sg = np.where(ok, gram[rows, ages, -1], 0.0)
    yg = np.where(ok, gram[rows, n + ages, -1], 0.0)
    diagonal = np.einsum("bii->bi", sy)
    upper = np.triu(sy) + np.eye(n) * ~ok[:, None, :]
    newest = np.where(ok.any(axis=1), n - 1 - np.argmax(ok[:, ::-1], axis=1), 0)
    first = np.arange(batch)
    size = np.sqrt(np.maximum(gram[:, -1, -1], 1e-300))
    scale = np.where(
        ok.any(axis=1),
        diagonal[first, newest] / np.where(yy[first, newest, newest] > 0, yy[first, newest, newest], 1.0),
        FIRST / np.maximum(size, FIRST),
    )[:, None]
    u = np.linalg.solve(upper, sg[:, :, None])[:, :, 0]
    inner = diagonal * u + scale * (yy @ u[:, :, None])[:, :, 0] - scale * yg
    steps = np.linalg.solve(np.swapaxes(upper, 1, 2), inner[:, :, None])[:, :, 0]
    coefficients = np.zeros((batch, 2 * n + 1))
    coefficients[rows, ages] = np.where(ok, steps, 0.0)
    coefficients[rows, n + ages] = np.where(ok, -scale * u, 0.0)
    coefficients[:, -1] = scale[:, 0]
    return coefficients


@dataclass(frozen=True, eq=False)
class Advance:
    """A step on the device: a function of arrays alone, so that a device may record it.

    Attributes:
        weighted: whether the weights move, too.
    """

    objective: Objective
    weighted: bool

    def outcome(self, frames: Any, kernel: Any, logits: Any, start: Any, mask: Any) -> tuple[ObjectiveValues, Any]:
        """The values at these frames and weights, and the gradient in coordinates of the frames."""
        device, xp = self.objective.device, self.objective.device.xp
        p = probabilities(device, logits)
        outcome = self.objective.of(projections_of(device, frames, kernel), p, start)
        inner = (flipped(xp, frames) @ outcome.projections @ frames) * mask
        gradient = xp.reshape(inner, (frames.shape[0], -1))
        if self.weighted:
            mean = xp.sum(p * outcome.weights, axis=1, keepdims=True)
            gradient = xp.concat([gradient, p * (outcome.weights - mean)], axis=1)
        return outcome, gradient

    def __call__(self, there: Any, frames: Any, kernel: Any, logits: Any, start: Any, signs: Any, mask: Any, ring: Any,
                 log_value: Any) -> tuple[Any, ...]:  # fmt: skip
        """Try the steps of `there`: coefficients of the ring, the place of the next pair, and the gain to reach.

        Returns numbers that the CPU decides on (`read_by`), and frames, logits, start, ring and values after the step.
        """
        device, xp, n = self.objective.device, self.objective.device.xp, MEMORY
        _, T, d, _ = frames.shape
        turns = T * d**2
        identity = xp.eye(d, dtype=xp.float64, device=device.where)
        move = (there[:, None, : 2 * n + 1] @ ring)[:, 0, :]
        place, aim = there[:, 2 * n + 1 : -1, None], there[:, -1]
        moved = turned(device, frames, xp.reshape(move[:, :turns], frames.shape) * signs, identity)
        logits_there = logits + move[:, turns:] if self.weighted else logits
        outcome, gradient = self.outcome(moved, kernel, logits_there, start, mask)
        gains = outcome.log_value - log_value
        accepted = gains >= aim
        several, old, none = accepted[:, None], ring[:, 2 * n, :], xp.zeros_like(move)
        step, change = xp.where(several, move, none), xp.where(several, old - gradient, none)
        gradient = xp.where(several, gradient, old)
        steps, changes = ring[:, :n, :], ring[:, n : 2 * n, :]
        ring = xp.concat(
            [
                steps + place * (step[:, None, :] - steps),
                changes + place * (change[:, None, :] - changes),
                gradient[:, None, :],
            ],
            axis=1,
        )
        log_value = xp.where(accepted, outcome.log_value, log_value)
        return (
            read_by(device, ring, xp.stack([step, change, gradient], axis=1), log_value, gains),
            xp.where(several[:, :, None, None], moved, frames),
            xp.where(several, logits_there, logits) if self.weighted else logits,
            xp.where(several[:, :, None], outcome.start, start),
            ring,
            log_value,
        )


def read_by(device: Device, ring: Any, vectors: Any, log_value: Any, gains: Any) -> Any:
    """Inner products of some vectors (batch, count, n) with the ring, values and gains, in one array."""
    xp = device.xp
    products = xp.reshape(vectors @ flipped(xp, ring), (ring.shape[0], -1))
    return xp.concat([products, log_value[:, None], gains[:, None]], axis=1)


class Climb:
    """The ascent of a batch of collections, which do not influence each other. Ranks stay as they are.

    Attributes:
        finished: (batch,), whether each gradient is 0, or no step along it gains anything.
        values, slopes: (batch,), log_value and the norm of its gradient.
    """

    THERE = ("frames", "kernel", "logits", "start", "signs", "mask", "ring", "log_value")
    HERE = ("valid", "size", "finished", "gram", "values", "slopes")

    def __init__(self, objective: Objective, point: Point, *, weighted: bool = False, place: int = 0) -> None:
        self.device = objective.device
        device, xp = self.device, self.device.xp
        advance = Advance(objective, weighted)
        self._advance = device.recorded(advance)
        self.frames, self.kernel = device.put(point.frames), device.put(point.kernel)
        self.logits, self.start = device.put(point.logits), device.put(point.start)
        self.signs = self.kernel[:, :, None, :] - self.kernel[:, :, :, None]
        self.mask = self.signs * self.signs
        outcome, gradient = advance.outcome(self.frames, self.kernel, self.logits, self.start, self.mask)
        self.log_value, self.start = outcome.log_value, outcome.start
        self.ring = device.zeros(self.batch, 2 * MEMORY + 1, gradient.shape[1])
        self.ring[:, 2 * MEMORY, :] = gradient
        self.valid = np.zeros((self.batch, MEMORY), dtype=bool)
        self.place = place  # of the next pair; collections can be joined if theirs is the same
        self.size = np.ones(self.batch)
        self.finished = np.zeros(self.batch, dtype=bool)
        self.gram = np.zeros((self.batch, 2 * MEMORY + 1, 2 * MEMORY + 1))
        zeros = xp.zeros_like(self.log_value)
        self.read([2 * MEMORY], read_by(device, self.ring, gradient[:, None, :], self.log_value, zeros))

    @property
    def batch(self) -> int:
        """The number of collections."""
        return int(self.kernel.shape[0])

    def picked(self, rows: IntArray) -> Climb:
        """The ascent of some of the collections, which goes on from where it is."""
        made = copy(self)
        index = self.device.put_index(rows)
        for name in self.THERE:
            setattr(made, name, self.device.xp.take(getattr(self, name), index, axis=0))
        for name in self.HERE:
            setattr(made, name, getattr(self, name)[rows])
        return made

    def with_others(self, other: Climb) -> Climb:
        """The ascent of these and other collections, which are at the same place."""
        made = copy(self)
        for name in self.THERE:
            setattr(made, name, self.device.xp.concat([getattr(self, name), getattr(other, name)], axis=0))
        for name in self.HERE:
            setattr(made, name, np.concatenate([getattr(self, name), getattr(other, name)]))
        return made

    def read(self, places: list[int], numbers: Any) -> Array:
        """Bring what `read_by` gave to the CPU; the gains."""
        here, count, n = self.device.take(numbers), len(places), 2 * MEMORY + 1
        rows = here[:, : count * n].reshape(self.batch, count, n)
        self.gram[:, places, :], self.gram[:, :, places] = rows, np.swapaxes(rows, 1, 2)
        self.values, self.slopes = here[:, -2].copy(), np.sqrt(np.maximum(self.gram[:, -1, -1], 0.0))
        return here[:, -1].copy()

    def step(self) -> None:
        """Try a step in every collection; keep it where the value rises enough."""
        n, place = MEMORY, self.place
        ages = np.tile((place + np.arange(n)) % n, (self.batch, 1))
        along = directions(self.gram, self.valid, ages)
        rise = np.einsum("bi,bi->b", along, self.gram[:, :, -1])
        lost = ~(rise > 0) | ~np.isfinite(along).all(axis=1)
        if lost.any():  # by rounding: begin again with the gradient
            self.valid[lost] = False
            along[lost] = directions(self.gram, self.valid, ages)[lost]
            rise = np.einsum("bi,bi->b", along, self.gram[:, :, -1])
        length = np.sqrt(np.maximum(np.einsum("bi,bij,bj->b", along, self.gram, along) / 2, 0.0))
        factor = self.size * np.minimum(1.0, TURN / np.maximum(length, 1e-300)) * ~self.finished
        aim = GAIN * factor * rise - NOISE * (1 + np.abs(self.values))
        here = np.tile((np.arange(n) == place).astype(np.float64), (self.batch, 1))
        there = self.device.put(np.concatenate([along * factor[:, None], here, aim[:, None]], axis=1))
        numbers, self.frames, self.logits, self.start, self.ring, self.log_value = self._advance(
            there, *(getattr(self, name) for name in self.THERE)
        )
        gained = self.read([place, n + place, 2 * n], numbers)
        self.decide(gained, gained >= aim, factor * rise)

    def decide(self, gained: Array, accepted: Flags, hoped: Array) -> None:
        """Keep the new pair where its curvature is positive, and choose the size of the next step.

        A step that gained too little is shortened to the maximum of the parabola through what is known.
        """
        n, place = MEMORY, self.place
        sy, ss = self.gram[:, place, n + place], self.gram[:, place, place]
        yy = self.gram[:, n + place, n + place]
        self.valid[:, place] = accepted & ~self.finished & (sy > 1e-10 * np.sqrt(np.maximum(ss * yy, 0.0)))
        self.place = (place + 1) % n
        with np.errstate(invalid="ignore", divide="ignore"):
            shorter = np.nan_to_num(hoped / (2 * (hoped - gained)), nan=0.0, posinf=0.0)
        self.size = np.where(accepted, 1.0, self.size * np.clip(shorter, 0.1, 0.5))
        stuck = self.size < LEAST
        bare = stuck & ~self.valid.any(axis=1)
        self.valid[stuck] = False
        self.size[stuck] = 1.0
        self.finished |= bare | (self.slopes < FLAT)

    def run(self, steps: int) -> Array:
        """Make at most so many steps; the values after each, (steps, batch)."""
        curve = np.empty((steps, self.batch))
        for step in range(steps):
            if not self.finished.all():
                self.step()
            curve[step] = self.values
        return curve

    def point(self) -> Point:
        """The collections, on the CPU."""
        there = (np.array(self.device.take(part)) for part in (self.frames, self.kernel, self.logits, self.start))
        return Point._make([*there, self.values.copy(), self.slopes.copy()])


def starting_point(
    objective: Objective,
    k: int,
    p: Array,
    shape: tuple[int, int],
    ranks: IntArray | None,
    given: tuple[Array, Array] | None,
    seed: int,
    index: int,
) -> Point:
    """The start number `index` of a search, a batch of one: it depends on the seed and on this number alone.

    Random starts are of two kinds, in turn: about independent subspaces, and subspaces within an angle of each other
    that is between 1 / sqrt(k) and 1, since slow tasks are close to each other. Where tasks are given, start 0 has
    these tasks, and later ones turn them at random by 0.001 to 0.3 radians.
    """
    rng, (T, d) = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index,))), shape
    start = rng.standard_normal((1, d, 1))
    start /= np.linalg.norm(start)
    noise = rng.standard_normal((T, d, d)) / np.sqrt(2 * d)
    skew = noise - np.swapaxes(noise, 1, 2)
    if given is not None:
        centre, kernel = given
        size = 10 ** rng.uniform(-3.0, -0.5) if index else 0.0
    else:
        if ranks is None:
            equal = rng.random() < EQUAL
            ranks = np.broadcast_to(rng.integers(1, max(d, 2), size=1 if equal else T), (T,))
        kernel = (np.arange(d) >= ranks[:, None]).astype(np.float64)
        centre = np.linalg.qr(rng.standard_normal((d, d)))[0][None]
        size = float(k) ** rng.uniform(-0.5, 0.0) if index % 2 else WIDE
    frames = centre @ expm(size * skew)
    if given is None and kernel.sum() > (T - 1) * d:  # Q has the eigenvalue 1, whose rounding errors hide small values
        for _ in range(HALVINGS):
            P = projections_of(objective.device, frames[None], kernel[None])
            value = float(objective.of(P, p[None], start, gradient=False).log_value[0])
            if value > np.log(ROUNDED_VALUE / k):
                break
            size /= 2
            frames = centre @ expm(size * skew)
    logits = np.log(np.maximum(p, 1e-300))
    return Point(frames[None], kernel[None], logits[None], start, np.zeros(1), np.zeros(1))


def given_frames(tasks: Problem, T: int, d: int) -> tuple[Array, Array]:
    """Frames and kernels of given tasks: in coordinates of their joint row space, padded to d, and cloned in turn to T.

    Singular values and labels do not count: the search has tasks with singular values 1, and chooses w* itself.
    """
    geometry = tasks.geometry
    if geometry is None or geometry.dim == 0:
        raise InvalidInputError("start: these tasks have no row spaces; give linear regression tasks that are not zero")
    if tasks.num_tasks > T:
        raise InvalidInputError(f"start has {tasks.num_tasks} tasks, more than T = {T}; give a larger T or fewer tasks")
    if geometry.dim > d:
        raise InvalidInputError(
            f"the row spaces of start span {geometry.dim} dimensions, more than d = {d}; give a larger d"
        )
    frames, kernel = np.empty((T, d, d)), np.ones((T, d))
    for task in range(T):
        rows = geometry.rows[geometry.block(int(geometry.index[task % tasks.num_tasks]))]
        padded = np.zeros((d, len(rows)))
        padded[: geometry.dim] = rows.T
        frames[task] = np.linalg.qr(padded, mode="complete")[0]
        kernel[task, : len(rows)] = 0.0
    return frames, kernel
