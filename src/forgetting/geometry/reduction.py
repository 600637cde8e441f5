"""The reduction of tasks to subspaces of their joint row space, on which every engine works.

A continual linear model depends on the data only through the row spaces of the tasks, their singular values and the
position of the start. `Geometry` holds these, in an orthonormal frame of the joint row space (dimension
D <= min(d, N)), and stores identical tasks once. A `Geometry` is itself a regression problem in R^D, whose coordinates
z are errors relative to the offline solution; `Frame` maps between z and the user's w.

With c outputs a label is a row of c numbers, w is d x c, and the outputs share everything but the labels. States are
then c x D, one row an output, so that formulas along the last axis are those of one output; losses are sums over
outputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forgetting.core.arrays import Array, IntArray, read_only
from forgetting.core.memory import require_memory
from forgetting.core.numerical import EPS
from forgetting.errors import ForgettingError
from forgetting.files.records import Codec, add_codec, checked_fields, field_values
from forgetting.geometry.directions import Directions, Recorded, StepGains
from forgetting.geometry.frame import Data, Frame, RowEquations, frame_fits, seal_arrays
from forgetting.geometry.qr import orthogonal_complement
from forgetting.geometry.row_blocks import sizes_of

if TYPE_CHECKING:
    from forgetting.geometry.bases import Bases

__all__ = ["Geometry", "check_geometry"]

LONG = 1e10  # operations that take about a second


class Mixing(NamedTuple):
    """The size of X = sum_m p_m P_m, with P_m the projection onto the row space of task m.

    Attributes:
        least: the least eigenvalue on the joint row space, no larger than it is.
        rest: 1 - least, no smaller than it is.
        norm: the Frobenius norm, no smaller than it is.
    """

    least: float
    rest: float
    norm: float


@dataclass(frozen=True, eq=False)
class Geometry(Directions):
    """The reduced problem: min |Sigma_m (U_m^T z - c_m)|^2 for each distinct task m, over z in R^D.

    Attributes:
        rows: R x D, the stacked U_m^T of the distinct tasks, each block with orthonormal rows.
        offsets: block m of `rows`, `sigma` and `targets` is offsets[m]:offsets[m + 1].
        sigma: R singular values.
        targets: R numbers c_m, zero up to rounding when the tasks are jointly realizable; c x R with several outputs.
        unexplained: for each distinct task, half the squared norm of the part of its labels that no w can fit.
        index: for each task, the number of its distinct task.
        solution: the offline solution in frame coordinates, D numbers or c x D; z = v - solution.
        residuals: for each distinct task, |X_m w* - y_m| / (|X_m| |w*| + |y_m|).
        frame: the map to the user's coordinates.
        full: for each distinct task, whether its rows are independent, so that some w fits any labels.
        conditions: for each distinct task, the factor from rounding errors of its rows to errors of its row space.
        label_norms: for each distinct task, |y_m|.
        row_equations: gives (A, b) for the number of a distinct task, its rows and labels in z coordinates: A z = b.
        data: the data of the distinct tasks, for `precise`; None if only inner products are known.
        unexplained_parts: with several outputs, `unexplained` of each output, c x (number of distinct tasks).
        held_out: whether the second half of the distinct tasks are held-out data of the first half. They stand for no
            task (`counts` is 0), are never learned, and have no part in `solution`: rows of learned tasks are zero
            beyond the first `learned_dim` coordinates, and so is the solution.
    """

    rows: Array
    offsets: IntArray
    sigma: Array
    targets: Array
    unexplained: Array
    index: IntArray
    solution: Array
    residuals: Array
    frame: Frame
    full: NDArray[np.bool_]
    conditions: Array
    label_norms: Array
    row_equations: RowEquations = field(repr=False)
    data: Data | None = field(default=None, repr=False)
    unexplained_parts: Array | None = field(default=None, repr=False)
    held_out: bool = False

    def __post_init__(self) -> None:
        seal_arrays(self)

    def __getstate__(self) -> dict[str, Any]:
        """The fields; what was computed from them is computed again when it is first used."""
        return field_values(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        seal_arrays(self)

    @property
    def geometry(self) -> Geometry:
        """The geometry itself."""
        return self

    @property
    def dim(self) -> int:
        """Dimension D of the joint row space."""
        return int(self.rows.shape[1])

    @cached_property
    def each_output(self) -> tuple[Geometry, ...]:
        """The reduced problem of each output; one output alone is the problem itself."""
        if self.unexplained_parts is None:
            return (self,)
        return tuple(
            replace(
                self,
                targets=self.targets[o],
                unexplained=self.unexplained_parts[o],
                solution=self.solution[o],
                row_equations=self.row_equations.output(o),
                data=None if self.data is None else self.data.output(o),
                unexplained_parts=None,
            )
            for o in range(len(self.targets))
        )

    @property
    def num_learned(self) -> int:
        """Number of distinct tasks that are learned, which come first; the others are held-out data."""
        return self.num_distinct // 2 if self.held_out else self.num_distinct

    @property
    def rows_learned(self) -> int:
        """Number of directions of the tasks that are learned, which come first."""
        return int(self.offsets[self.num_learned])

    @cached_property
    def learned_dim(self) -> int:
        """Dimension of the joint row space of the tasks that are learned, which is that of the first coordinates."""
        if not self.held_out:
            return self.dim
        used = np.flatnonzero(self.rows[: self.rows_learned].any(axis=0))
        return int(used[-1]) + 1 if used.size else 0

    @property
    def learned_block(self) -> Array:
        """The rows of the tasks that are learned, in coordinates on their own joint row space."""
        return self.rows[: self.rows_learned, : self.learned_dim]

    @cached_property
    def gram(self) -> Array:
        """M = U^T U, the R x R block Gram matrix of the subspaces: all that the dual form needs."""
        total = len(self.rows)
        require_memory(8.0 * total**2, f"inner products of {total} directions", "use tasks of fewer rows, or fewer")
        gram = self.rows @ self.rows.T
        for start, stop in pairwise(self.offsets.tolist()):
            gram[start:stop, start:stop] = np.eye(stop - start)
        return read_only(gram)

    @cached_property
    def hessian(self) -> Array:
        """X^T X / T in frame coordinates, clones counted."""
        scaled = self.rows * (self.sigma * np.sqrt(self.counts[self.owner] / self.num_tasks))[:, None]
        return read_only(scaled.T @ scaled)

    @cached_property
    def loss_weights(self) -> Array:
        """Weights v with mean loss sum_i (v_i rho_i)^2, without the part that no w can fit."""
        return read_only(self.sigma * np.sqrt(self.counts[self.owner] / (2 * self.num_tasks)))

    @cached_property
    def loss_form(self) -> tuple[Array, Array, float]:
        """(form, shift, constant) with mean loss |form z - shift|^2 + constant, without the part that no w can fit.

        `form` has at most D rows. For one output.
        """
        matrix, shift = self.loss_weights[:, None] * self.rows, self.loss_weights * self.targets
        if len(matrix) <= self.dim:
            return read_only(np.ascontiguousarray(matrix)), read_only(shift), 0.0
        left, form = np.linalg.qr(matrix)
        short = left.T @ shift
        return read_only(form), read_only(short), max(0.0, float(shift @ shift - short @ short))

    @cached_property
    def extremes(self) -> tuple[float, float]:
        """The least and the largest eigenvalue of sum_m U_m U_m^T over the tasks that are learned.

        The least is no less than eps times the largest.
        """
        rows = self.learned_block
        if rows.size == 0:
            return 1.0, 1.0
        wide, own = len(rows) > self.learned_dim, slice(self.rows_learned)
        spectrum = np.linalg.eigvalsh(rows.T @ rows if wide else self.gram[own, own])[-self.learned_dim :]
        return max(float(spectrum[0]), EPS * float(spectrum[-1])), float(spectrum[-1])

    @property
    def condition(self) -> float:
        """Condition number of the stacked bases U that are learned: from errors of data to errors of the solution."""
        least, largest = self.extremes
        return float(np.sqrt(largest / least))

    @cached_property
    def plain(self) -> Bases:
        """Bases, singular values and solution of this geometry (float64), with bounds on their errors."""
        from forgetting.geometry.bases import plain_bases

        return plain_bases(self)

    @cached_property
    def precise(self) -> Bases | None:
        """Bases, singular values and solution computed from the data in numbers of two floats, with bounds on errors.

        None without data, or if 31 digits are too few.
        """
        from forgetting.geometry.bases import precise_bases

        return None if self.data is None else precise_bases(self, self.data)

    @cached_property
    def best(self) -> Bases:
        """`precise` if its computation takes about a second at most, else `plain`."""
        precise = self.precise if self.refinement < 2e8 else None
        return self.plain if precise is None else precise

    @property
    def refinement(self) -> float:
        """About how many products of numbers of two floats `precise` takes (2e8 a second); infinite without data."""
        if self.data is None:
            return float("inf")
        rows = sizes_of(self.data.matrices).astype(np.float64)
        width, dim = self.data.matrices[0].shape[1], self.dim
        frame = 3.0 * rows.sum() * dim * width if dim < width else 0.0
        short, outputs = np.minimum(rows, dim), self.outputs or 1
        solving = outputs * len(self.sigma) * dim**2
        return float(frame + np.sum(25 * short**2 * (dim + outputs - 1) + rows * dim * (dim + outputs - 1)) + solving)

    @cached_property
    def spans(self) -> Array:
        """Ratio of the largest to the least singular value of each distinct task; 1 for a task of rank 0."""
        spans = np.ones(self.num_distinct)
        filled = self.ranks > 0
        spans[filled] = self.norms[filled] / self.sigma[self.offsets[1:][filled] - 1]
        return read_only(spans)

    @property
    def slip(self) -> float:
        """The relative error of a row: rounding errors of n terms are assumed to add up like the root of n."""
        return float((4 + np.sqrt(self.frame.dim + len(self.sigma)) / 4) * EPS)

    @cached_property
    def turned(self) -> Array:
        """For each distinct task, a bound on the angle (radians) between the computed and the true row space."""
        return read_only(2 * self.slip * self.conditions)

    @cached_property
    def _mixings(self) -> dict[bytes, Mixing]:
        """Results of `mixing`, by the probabilities."""
        return {}

    def mixing(self, p: Array) -> Mixing:
        """The size of X = sum_m p_m P_m on the joint row space, for probabilities p of the T tasks.

        Rounding errors make the least eigenvalue smaller, and all else larger: bounds are made of these numbers. A
        small least eigenvalue l is the square of a singular value, which keeps its digits; a small 1 - l comes from the
        orthogonal complements of the tasks, where the difference would cancel. O(R D^2) for new probabilities; kept for
        those that were asked for before.
        """
        key = p.tobytes()
        if key not in self._mixings:
            drawn = np.bincount(self.index, p, self.num_learned)
            roots = np.sqrt(drawn)
            rows, dim, turned = self.learned_block, self.learned_dim, self.turned[: self.num_learned]
            slips = roots * turned
            scaled = roots[self.owner[: len(rows)], None] * rows
            mean = scaled.T @ scaled
            off = float(2 * drawn @ turned) + 8 * dim * EPS
            gap = float(np.linalg.eigvalsh(mean)[0]) - off
            if gap < 1e-3:
                least = float(np.linalg.svd(scaled, compute_uv=False)[-1] - np.linalg.norm(slips))
                gap = max(0.0, least) ** 2
            gap = min(1.0, gap)
            rest = float(np.nextafter(1 - gap, 2.0))
            short = np.flatnonzero((self.ranks[: self.num_learned] < dim) & (drawn > 0))
            if gap > 0.5 and len(short) * dim**3 < LONG:
                lost = [roots[m] * orthogonal_complement(rows[self.block(m)]) for m in short.tolist()]
                largest = float(np.linalg.norm(np.concatenate(lost), 2)) if lost else 0.0
                rest = min(rest, ((1 + 16 * EPS) * largest + float(np.linalg.norm(slips[short]))) ** 2)
            size = float(np.linalg.norm(mean)) + math.sqrt(dim) * off
            self._mixings[key] = Mixing(gap, min(1.0, rest), size)
        return self._mixings[key]

    def start(self, w0: Array) -> Array:
        """z_0 for a start w_0 in the user's coordinates."""
        down = self.frame.down if self.outputs is None else self.frame.down_all
        return down(w0) - self.solution

    def lift(self, states: Array, w0: Array) -> Array:
        """Iterates in the user's coordinates for the states z (rows) of a run that starts at w_0."""
        moved = self.frame.up(states - self.start(w0))
        return w0 + (moved if self.outputs is None else np.swapaxes(moved, -1, -2))

    def nearest_solution(self, w0: Array) -> Array:
        """The offline solution nearest to w_0; the part of w_0 orthogonal to the joint row space is kept."""
        return self.lift(np.zeros_like(self.solution), w0)

    def errors(self, states: Array) -> Array:
        """rho = U^T z - c for each state: R numbers, from which losses and distances are computed."""
        return states @ self.rows.T - self.targets

    def task_loss(self, task: int, z: Array) -> float:
        """L_m at a single state z."""
        distinct = int(self.index[task])
        block = self.block(distinct)
        missed = self.sigma[block] * (z @ self.rows[block].T - self.targets[..., block])
        return 0.5 * float(np.vdot(missed, missed)) + float(self.unexplained[distinct])

    def project(self, task: int, z: Array) -> Array:
        """The point nearest to z that minimises the loss of the task."""
        block = self.block(int(self.index[task]))
        basis = self.rows[block]
        return z - (z @ basis.T - self.targets[..., block]) @ basis

    def advance(self, gains: StepGains, output: int | None, order: IntArray, state: Array, recorded: Recorded) -> None:
        from forgetting.compute import run_kernels

        own = self.solution, self.targets
        solution, targets = own if output is None else (part[output] for part in own)
        setting = self.rows, self.offsets, *gains, solution, targets, self.sigma
        run_kernels.advance(*setting, order, state, *recorded)

    def equations(self, task: int) -> tuple[Array, Array]:
        """(A, b): the rows and labels of the task in z coordinates, A z = b."""
        return self.row_equations(int(self.index[task]))


# ------------------------------------------------------------------------------------------------------------ in files


def check_geometry(geometry: Geometry) -> None:
    """Raise unless the arrays fit together, as compiled code supposes.

    >>> import forgetting as fg
    >>> check_geometry(fg.families.two_lines(0.5).geometry)
    """
    total, distinct, size = len(geometry.sigma), len(geometry.offsets) - 1, geometry.solution.shape[-1]
    several = geometry.solution.shape[:-1]  # outputs, if there are several
    parts = geometry.unexplained_parts
    each_task = (geometry.unexplained, geometry.residuals, geometry.full, geometry.conditions, geometry.label_norms)
    fits = [
        geometry.rows.shape == (total, size),
        geometry.sigma.ndim == geometry.offsets.ndim == geometry.index.ndim == 1 >= len(several),
        geometry.targets.shape == (*several, total),
        parts is None if not several else parts is not None and parts.shape == (*several, distinct),
        all(array.shape == (distinct,) for array in each_task),
        distinct >= 1 and len(geometry.index) >= 1,
    ]
    if all(fits):
        starts, index = geometry.offsets, geometry.index
        fits += [starts[0] == 0, starts[-1] == total, not (np.diff(starts) < 0).any()]
        fits += [index.min() >= 0, index.max() < distinct, frame_fits(geometry.frame, size)]
    if not all(fits):
        raise ForgettingError("the arrays of a geometry do not fit together")
    frame = geometry.frame
    for array in (geometry.rows, geometry.sigma, geometry.targets, geometry.solution, frame.basis, frame.dual_basis):
        if array is not None and not np.isfinite(array).all():
            raise ForgettingError("the arrays of a geometry hold NaN or infinite numbers")


def _geometry_from(values: Any) -> Geometry:
    geometry = Geometry(**checked_fields(Geometry, values))
    check_geometry(geometry)
    return geometry


add_codec(Codec("geometry", Geometry, lambda geometry: field_values(geometry, "data"), _geometry_from))
