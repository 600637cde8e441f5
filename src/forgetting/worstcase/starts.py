"""Where searches begin: random subspaces, or given tasks and tasks near them."""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm

from forgetting.core.arrays import Array, IntArray
from forgetting.errors import InvalidInputError
from forgetting.tasks import Problem
from forgetting.worstcase.ascent import Point, projections_of
from forgetting.worstcase.objective import Objective

__all__ = ["given_frames", "starting_point"]

WIDE = 3.0  # radians: turned at random by so much, subspaces are about independent
LEAST = 1e-10  # k times the value below which a start with a common kernel is rounding errors
HALVINGS = 40
EQUAL = 0.75  # of random starts have tasks of one rank, as the worst tasks that are known


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
            if value > np.log(LEAST / k):
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
