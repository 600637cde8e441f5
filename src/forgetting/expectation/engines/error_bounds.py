"""Bounds on the errors of the pieces of a moment map: the data, the gains, the start, and the rounding of each step.

Numbers are floats, or pairs of floats (31 digits), whose arithmetic is compiled and imported when first used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS, quietly
from forgetting.geometry import Geometry, spectrum_of

if TYPE_CHECKING:
    from forgetting.geometry.bases import Bases  # compiled code, which `import forgetting` does not load


Pair = tuple[Array, Array]  # high and low parts
WIDTH = 1e-6  # the relative change of singular values by which sensitivities are measured


def two_floats() -> Any:
    """The module `forgetting.compute.twofold`, whose import compiles."""
    from forgetting.compute import twofold

    return twofold


def scaled(pair: Pair, factor: Array) -> Pair:
    """The numbers times floats; the floats count as exact.

    >>> scaled((np.ones(1), np.zeros(1)), np.array([3.0]))[0]
    array([3.])
    """
    product: Pair = two_floats().mul(*pair, factor, np.zeros_like(factor))
    return product


def times(rows: Pair, factors: Pair, twofold: bool) -> Pair:
    """Each row times its factor."""
    if not twofold:
        return rows[0] * factors[0][:, None], np.zeros(rows[1].shape)  # takes no memory until it is written to
    return two_floats().mul(*rows, factors[0][:, None], factors[1][:, None])  # type: ignore[no-any-return]


class Doubts(NamedTuple):
    """Bounds on the errors of the pieces of a moment map; lengths are divided by `unit`.

    first: E at the start.
    noise: for each distinct task, what the first step adds to E, as multiples of A, of tr(A) I and of tr(E) I; and what
        reading a square adds, as a multiple of tr(A).
    drift: by how much the first step can move z whatever z is, because labels are only known up to rounding.
    base: the squared norm of what no w fits of the tasks that are learned.
    test_base: the largest square of a target of held-out data.
    misread: for each distinct task, by how much its rows are off, relative to its norm.
    turned: for each distinct task, by what angle its row space is off.
    unexplained: for each distinct task, by how much half the squared norm of what no w can fit is off.
    known: the relative error of probabilities.
    unsolved, misplaced: by how much z is off at the start, as the rows see it and in all.
    labels: for each distinct task, |solution| + |targets| where no w is known to solve all tasks, else 0; for held-out
        data |solution| + |their targets|.
    displaced: for each distinct task, by how much its targets are off because z = 0 is not where it should be.
    dropped: the size of the part of the rows that was taken for rounding, relative to the rows.
    """

    first: Array
    noise: Array
    drift: float
    base: float
    test_base: float
    misread: Array
    turned: Array
    unexplained: Array
    known: float
    unsolved: float
    misplaced: float
    labels: Array
    displaced: Array
    dropped: float


def doubts_of(
    geometry: Geometry,
    source: Bases,
    z: Array,
    noise: Array,
    pace: float,
    w0: Array,
    unit: float,
    known: float,
    twofold: bool,
    homogeneous: bool,
) -> Doubts:
    """Bounds on the errors of each step and of the start; `docs/decisions/0008-digits.md` has the argument.

    `noise` and `pace` are those of the first step, from `step_noise`.
    """
    # pieces of 31 digits are rounded once more where the arithmetic is float64
    turned, misread = (part if twofold else part + 2 * EPS for part in (source.turned, source.misread))
    targets = np.atleast_2d(source.leftover[0])
    missed = float(np.linalg.norm(targets[:, : geometry.rows_learned]))
    held = np.arange(geometry.num_distinct) >= geometry.num_learned
    drift = pace * source.size + (source.unsolved if source.size else 0.0)
    drift += missed if homogeneous else 0.0 if twofold else 4 * EPS * missed
    learned = source.rows[0][: geometry.rows_learned, : geometry.learned_dim]
    # coordinates of w_0 are off by what the rows are off
    wide = float(np.sqrt(len(learned)) * np.max(misread[: geometry.num_learned], initial=0.0))
    unsolved = source.unsolved + 2 * wide * float(np.linalg.norm(w0))
    return Doubts(
        first=_first_error(z, source, learned, w0, unit, two_floats().UNIT if twofold else EPS, unsolved / unit),
        noise=noise,
        drift=drift / unit,
        base=(missed / unit) ** 2,
        test_base=float(np.max(np.sum((targets[:, geometry.rows_learned :] / unit) ** 2, axis=0), initial=0.0)),
        misread=misread,
        turned=turned,
        unexplained=source.unexplained_doubt,
        known=known,
        unsolved=unsolved / unit,
        misplaced=(source.misplaced + unsolved / source.weakest) / unit,
        labels=np.where(held, source.test_size, source.size) / unit,
        # where no w is known to solve all tasks, targets are those of the z = 0 that was computed
        displaced=np.where(held & (source.size == 0), source.misplaced, 0.0) / unit,
        dropped=source.dropped,
    )


def step_noise(
    geometry: Geometry, source: Bases, n: int, gains: Array, moving: Array, vague: Array, known: float, twofold: bool
) -> tuple[Array, Array]:
    """What each of several steps adds to E, (steps, tasks, 4) as in `Doubts`, and its pace, (steps,).

    The pace, times the size of the labels, is by how much the step moves z because labels are known up to rounding.
    `gains` are those of the directions, `moving` is their `sensitivity`, and `vague` bounds the errors of the gains of
    each task; all of them have one row a step.
    """
    turned = source.turned if twofold else source.turned + 2 * EPS
    grown = np.maximum(1.0, per_task_most(geometry, np.abs(gains))) ** 2 * (4 if twofold else 1)
    rounding = _rounding(n, geometry.ranks, twofold) * grown
    slips = 2 * (turned * np.maximum(1.0, moving) + vague) * grown
    own = 8.0 * n * (n + 8) * EPS * grown
    learned = slice(geometry.num_learned)
    pace = np.max((source.turned * grown)[:, learned], axis=1, initial=0.0) + 8 * n * source.rounding
    return np.stack([rounding + slips + known, 2 * (rounding + slips), own, rounding], axis=-1), pace


def per_task_most(geometry: Geometry, values: Array) -> Array:
    """The largest of the R numbers of each row among the directions of each distinct task; 0 for a task of rank 0."""
    result = np.zeros((*values.shape[:-1], geometry.num_distinct))
    filled = geometry.ranks > 0
    if filled.any():
        result[..., filled] = np.maximum.reduceat(values, geometry.offsets[:-1][filled], axis=-1)
    return result


def _rounding(n: int, ranks: IntArray, twofold: bool) -> Array:
    """The error that rounding in one step adds to E, in multiples of tr(A), for each distinct task.

    With pairs of floats it is a bound for the worst case. In float64 rounding errors of n terms are taken to add up
    like the root of n, as they do unless they conspire (Higham and Mary, SIAM J. Sci. Comput. 41, 2019).
    """
    if twofold:
        return np.asarray(8.0 * n * (n + ranks + 8) * two_floats().UNIT)
    return np.asarray(2.0 * (np.sqrt(n) + 4) * np.sqrt(np.maximum(ranks, 1)) * EPS)


def sensitivity(geometry: Geometry, function: Callable[[Array], Array]) -> Array:
    """For each distinct task, the change of a function of singular values per relative change of these values."""
    sigma = geometry.sigma
    with quietly():
        return sensitivity_of(geometry, function(sigma * (1 + WIDTH)), function(sigma * (1 - WIDTH)))


def sensitivity_of(geometry: Geometry, above: Array, below: Array) -> Array:
    """`sensitivity`, from values of the function at singular values that are WIDTH larger and smaller."""
    with quietly():
        return per_task_most(geometry, np.nan_to_num(2 * np.abs(above - below) / WIDTH, nan=np.inf))


def _first_error(z: Array, source: Bases, rows: Array, w0: Array, unit: float, rounding: float, missed: float) -> Array:
    """E at the start: errors of z are those of the solution, which the rows hardly see, and rounding.

    `rows` are those that are learned, in their own coordinates, which come first.
    """
    n, dim = z.shape[1], source.solution[0].shape[-1]
    norm = float(np.linalg.norm(z[:, :dim]))
    size = float(np.linalg.norm(w0) + np.linalg.norm(source.solution[0])) / unit
    moment = z.T @ z
    error = 8 * rounding * moment
    error[range(dim), range(dim)] += 8 * rounding * size**2
    if missed > 0 and rows.size:
        spectrum, basis = spectrum_of(rows)
        share = missed / norm if norm > 0 else 1.0
        error += share * moment
        weak = (basis.T / np.maximum(spectrum, 1e-16) ** 2) @ basis
        error[: len(weak), : len(weak)] += missed * (norm or missed) * weak
    error[range(n), range(n)] += 8 * n * EPS * float(np.trace(error))
    return error
