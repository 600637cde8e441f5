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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from forgetting.core.arrays import EPS, Array, IntArray, is_sparse, read_only
from forgetting.core.memory import require_memory
from forgetting.files.records import field_values
from forgetting.geometry import row_space
from forgetting.geometry.directions import Directions
from forgetting.geometry.factor import Tolerance, factor_tasks, joint_directions, more_directions, require_targets
from forgetting.geometry.rational import lift
from forgetting.geometry.row_blocks import RowBlocks, offsets_of, row_sums, sizes_of, squared_rows
from forgetting.geometry.row_space import Matrix, dense, row_space_qr

if TYPE_CHECKING:
    from forgetting.geometry.bases import Bases

__all__ = ["Data", "Frame", "Geometry", "Matrix", "Rooted", "from_data", "from_gram"]

LONG = 1e10  # operations that take about a second


@dataclass(frozen=True, eq=False)
class Frame:
    """Coordinates on the joint row space: v = down(w), and w moves by up(change of v).

    For data, `basis` is d x D with orthonormal columns and serves both directions (`columns` lists the active
    columns when others are zero everywhere). For a Gram matrix w is a vector of dual coefficients and the two
    directions differ.
    """

    dim: int
    basis: Array | None = None
    dual_basis: Array | None = None
    columns: IntArray | None = None

    def __post_init__(self) -> None:
        _seal(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _seal(self)

    def down(self, w: Array) -> Array:
        """Coordinates of w on the row space."""
        active = w if self.columns is None else w[self.columns]
        return active if self.basis is None else self.basis.T @ active

    def down_all(self, w: Array) -> Array:
        """Coordinates of each column of a d x c matrix, as rows."""
        return np.ascontiguousarray(self.down(w).T)

    def up(self, v: Array) -> Array:
        """The w of least norm with coordinates v; each row of a matrix is lifted separately."""
        back = self.basis if self.dual_basis is None else self.dual_basis
        active = v if back is None else v @ back.T
        if self.columns is None:
            return active
        full = np.zeros((*v.shape[:-1], self.dim))
        full[..., self.columns] = active
        return full


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
        _seal(self)

    def __getstate__(self) -> dict[str, Any]:
        """The fields; what was computed from them is computed again when it is first used."""
        return field_values(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _seal(self)

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
    def _gaps(self) -> dict[bytes, tuple[float, float]]:
        """What `mixing` computed before, by the probabilities."""
        return {}

    def mixing(self, p: Array) -> tuple[float, float]:
        """The least eigenvalue l of sum_m p_m P_m on the joint row space and 1 - l, for probabilities p of the T tasks.

        Rounding errors make l smaller and 1 - l larger, never the other way round: bounds are made of both. A small l
        is the square of a singular value, which keeps its digits; a small 1 - l comes from the orthogonal complements
        of the tasks, where the difference would cancel. O(R D^2) for new probabilities; kept for those that were asked
        for before.
        """
        key = p.tobytes()
        if key not in self._gaps:
            drawn = np.bincount(self.index, p, self.num_learned)
            roots = np.sqrt(drawn)
            rows, dim, turned = self.learned_block, self.learned_dim, self.turned[: self.num_learned]
            slips = roots * turned
            scaled = roots[self.owner[: len(rows)], None] * rows
            gap = float(np.linalg.eigvalsh(scaled.T @ scaled)[0] - 2 * drawn @ turned - 8 * dim * EPS)
            if gap < 1e-3:
                least = float(np.linalg.svd(scaled, compute_uv=False)[-1] - np.linalg.norm(slips))
                gap = max(0.0, least) ** 2
            gap = min(1.0, gap)
            rest = float(np.nextafter(1 - gap, 2.0))
            short = np.flatnonzero((self.ranks[: self.num_learned] < dim) & (drawn > 0))
            if gap > 0.5 and len(short) * dim**3 < LONG:
                lost = [roots[m] * _complement(rows[self.block(m)]) for m in short.tolist()]
                largest = float(np.linalg.norm(np.concatenate(lost), 2)) if lost else 0.0
                rest = min(rest, ((1 + 16 * EPS) * largest + float(np.linalg.norm(slips[short]))) ** 2)
            self._gaps[key] = gap, min(1.0, rest)
        return self._gaps[key]

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

    def advance(
        self,
        gains: Array,
        targets: Array,
        order: IntArray,
        state: Array,
        kept_at: IntArray,
        kept: Array,
        before: Array,
        after: Array,
    ) -> None:
        from forgetting.compute import run_kernels

        setting = self.rows, self.offsets, gains, targets, self.sigma
        run_kernels.advance(*setting, order, state, kept_at, kept, before, after)

    def equations(self, task: int) -> tuple[Array, Array]:
        """(A, b): the rows and labels of the task in z coordinates, A z = b."""
        return self.row_equations(int(self.index[task]))


def _complement(rows: Array) -> Array:
    """Orthonormal rows that are orthogonal to these orthonormal rows, and together with them span everything."""
    return np.asarray(np.linalg.qr(rows.T, "complete")[0][:, len(rows) :].T)


def _seal(owner: Frame | Geometry) -> None:
    """Make the arrays read-only, so that a user's scheme or ordering cannot change the tasks."""
    for attribute in fields(owner):
        value = getattr(owner, attribute.name)
        if isinstance(value, np.ndarray):
            object.__setattr__(owner, attribute.name, read_only(value))


@dataclass(frozen=True, eq=False)
class RowEquations:
    """The rows and labels of distinct tasks, of which `solution` is subtracted: A z = b in coordinates z.

    Attributes:
        matrices, labels: of the distinct tasks, in the coordinates of the frame before `rotation`.
        weights: a factor of the rows and labels of each task.
        rotation: from those coordinates to the joint row space; None if they are the same.
        solution: the offline solution, which is z = 0.
    """

    matrices: Sequence[Matrix]
    labels: Sequence[Array]
    weights: Array
    rotation: Array | None
    solution: Array

    def __call__(self, task: int) -> tuple[Array, Array]:
        weight = self.weights[task]
        design = weight * dense(self.matrices[task], None)
        if self.rotation is not None:
            design = design @ self.rotation
        return read_only(np.ascontiguousarray(design)), weight * self.labels[task] - design @ self.solution.T

    def output(self, o: int) -> RowEquations:
        """The equations of one of several outputs."""
        return replace(self, labels=[label[:, o] for label in self.labels], solution=self.solution[o])


class Rooted(Protocol):
    """A task whose rows or labels are roots, of which `Data` has floats nearby."""

    @property
    def rows_off(self) -> float:
        """By how much the floats of rows can be off, relative to the norm of the task."""

    @property
    def labels_off(self) -> float:
        """By how much the floats of labels can be off, relative to their norm."""

    @property
    def scaled(self) -> bool:
        """Whether columns of labels are floats up to a factor, so that exact ranks can be told from the floats."""

    def decimals(self) -> tuple[Any, Any] | None:
        """Rows and labels with the digits of the current decimal context; None if no more than floats are known."""


class Data(NamedTuple):
    """The data of the distinct tasks; the squared loss of task m is divided by divisors[m].

    `roots` has an entry for each task whose numbers are not exactly the floats. `column` is the output that labels are
    about, if there were several.
    """

    matrices: Sequence[Matrix]
    labels: Sequence[Array]
    divisors: Array
    roots: Mapping[int, Rooted] = {}
    column: int | None = None

    def output(self, o: int) -> Data:
        """The data of one of several outputs."""
        return self._replace(labels=[np.ascontiguousarray(label[:, o]) for label in self.labels], column=o)

    @property
    def known(self) -> bool:
        """Whether `decimals` gives all tasks with any number of digits."""
        return all(root.decimals() is not None for root in self.roots.values())

    def decimals(self, task: int) -> tuple[Any, Any]:
        """The rows and labels of a task as decimal numbers: exactly, or with the digits of the current context."""
        rooted = self.roots[task].decimals() if task in self.roots else None
        if rooted is None:
            return lift(dense(self.matrices[task], None)), lift(self.labels[task])
        rows, labels = rooted
        return rows, labels if self.column is None else labels[:, self.column]


def from_data(
    matrices: Sequence[Matrix],
    labels: Sequence[Array],
    divisors: Array,
    index: IntArray,
    rank_tol: float | None,
    exact: bool = True,
    held_out: bool = False,
    roots: Mapping[int, Rooted] | None = None,
) -> Geometry:
    """Geometry of distinct tasks X_m w = y_m; the squared loss of task m is divided by divisors[m] (1, or n_m).

    With fewer rows than columns, a QR factorisation of X^T comes first, in chunks: d x N numbers are stored once, never
    d x d. The factorisation does not square the condition number and keeps the relative size of every row. If the
    condition number is above 100, so that float64 loses more than two digits, a small problem is computed again in
    numbers of two floats. Cost O(d N min(d, N)). `exact` says whether the floats of the data are what the user
    means, or rounded, so that more digits than those of float64 would say nothing. With `held_out`, the second half of
    the tasks are held-out data of the first half. `roots` are tasks whose numbers are not exactly these floats.
    """
    dim = matrices[0].shape[1]
    columns = _active_columns(matrices)
    width = dim if columns is None else len(columns)
    sizes = sizes_of(matrices)
    num_rows = int(sizes.sum())
    basis = None
    _require_room(sizes, num_rows, width)
    weights = 1 / np.sqrt(divisors)
    reduced: Sequence[Array]
    if num_rows < width:
        basis, triangle = row_space_qr(matrices, columns)
        reduced = [np.ascontiguousarray(part.T) for part in np.split(triangle, np.cumsum(sizes)[:-1], axis=1)]
    elif isinstance(matrices, RowBlocks) and not is_sparse(matrices.stack):
        reduced = matrices
    else:
        reduced = [dense(matrix, columns) for matrix in matrices]
    reduced, values = _weighted(reduced, weights), _weighted(labels, weights)
    frame = Frame(dim=dim, basis=basis, columns=columns)
    data = Data(matrices, labels, divisors, roots or {}) if exact else None
    tolerance = Tolerance(rank_tol, squared=False, columns=width)
    geometry = _assemble(reduced, values, index, frame, tolerance, data, held_out)
    delicate = float(np.max(geometry.spans, initial=1.0)) * geometry.condition > 100
    return _refined(geometry) if delicate and geometry.refinement < 2e6 else geometry  # 2e6 products take 10 ms


def _weighted(blocks: Sequence[Array], weights: Array) -> Sequence[Array]:
    """Each block times its weight; no copy if all weights are 1."""
    if np.all(weights == 1):
        return blocks
    if isinstance(blocks, RowBlocks):
        each = np.repeat(weights, sizes_of(blocks))
        return RowBlocks((blocks.stack.T * each).T, blocks.starts)
    return [weight * block for weight, block in zip(weights, blocks, strict=True)]


def _require_room(sizes: IntArray, num_rows: int, width: int) -> None:
    """Raise if the reduction needs too much memory; the message gives an estimate of the time too.

    Memory grows like d N and time like d N min(d, N), for sparse data too.
    """
    ranks = int(np.minimum(sizes, width).sum())
    if num_rows < width:  # the basis, some N x N matrices, and a dense chunk of X
        numbers = float(width) * num_rows + 12.0 * num_rows**2 + max(2.0 * num_rows**2, row_space.CHUNK_ENTRIES)
    else:
        numbers = width * (2.0 * num_rows + 4.0 * ranks)
    small = min(num_rows, width)
    seconds = (8.0 * width * num_rows * small + 60.0 * ranks * small**2) / 1.7e11  # operations a second on two cores
    require_memory(
        8 * numbers,
        f"the row spaces of {num_rows} rows with {width} columns (and roughly {seconds:.2g} seconds)",
        "use fewer rows, or give inner products: fg.KernelTasks(X @ X.T, y, groups) needs N^2 numbers for N rows",
    )


def from_gram(
    kernel: Array, labels: Array, rows_of: Sequence[IntArray], weights: Array, index: IntArray, rank_tol: float | None
) -> Geometry:
    """Geometry of tasks given by inner products; `rows_of[m]` are the rows of the kernel matrix that form task m.

    The kernel matrix is scaled to a unit diagonal, so that a task of small norm is not lost, and factorised as F F^T by
    its eigenvectors. Ranks use the root of the tolerance for data, because a Gram matrix squares singular values.
    """
    num_rows = len(kernel)
    norms = np.sqrt(np.maximum(np.diag(kernel), 0.0))
    scale = np.where(norms > 0, norms, 1.0)
    values, vectors = np.linalg.eigh(kernel / np.outer(scale, scale))
    tolerance = Tolerance(rank_tol, squared=True)
    kept = values > tolerance(kernel.shape) ** 2 * max(float(values[-1]), 0.0)
    roots = np.sqrt(values[kept])
    factor = vectors[:, kept] * roots  # num_rows x D: row i is phi(x_i) / scale_i in frame coordinates
    down = factor * scale[:, None]
    up = (vectors[:, kept] / roots) / scale[:, None]
    frame = Frame(dim=num_rows, basis=down, dual_basis=up)
    reduced = [weight * down[members] for weight, members in zip(weights, rows_of, strict=True)]
    targets = [weight * labels[members] for weight, members in zip(weights, rows_of, strict=True)]
    return _assemble(reduced, targets, index, frame, tolerance, None)


def _assemble(
    matrices: Sequence[Array],
    labels: Sequence[Array],
    index: IntArray,
    frame: Frame,
    tolerance: Tolerance,
    data: Data | None,
    held_out: bool = False,
) -> Geometry:
    """Bases, joint rank and offline solution from tasks in (possibly redundant) frame coordinates.

    Held-out data come last and only add coordinates: what is learned is computed as if there were none.
    """
    rows, sigma, target, parts, conditions, ranks = factor_tasks(matrices, labels, tolerance)
    offsets = offsets_of(ranks)
    with np.errstate(over="ignore"):
        require_targets(row_sums(squared_rows(target), offsets), index)
    unexplained = parts if parts.ndim == 1 else parts.sum(axis=1)
    learned = int(offsets[len(ranks) // 2]) if held_out else len(rows)
    rotation, solve = joint_directions(rows[:learned], conditions[:learned], tolerance)
    dim = rows.shape[1] if rotation is None else rotation.shape[1]
    if rotation is not None:
        if held_out:
            rotation = more_directions(rotation, rows[learned:], conditions[learned:], tolerance)
        rows = rows @ rotation
        rows[:learned, dim:] = 0.0
        rows = _orthonormal_blocks(rows, offsets)
        frame = _rotate(frame, rotation)
    own = rows[:learned, :dim]
    solution = solve(target[:learned])
    solution = solution + solve(target[:learned] - own @ solution)
    solution = np.concatenate([solution, np.zeros((rows.shape[1] - dim, *solution.shape[1:]))])
    leftover = target - rows @ solution
    if isinstance(labels, RowBlocks):
        label_norms = np.sqrt(row_sums(squared_rows(labels.stack), labels.starts))
    else:
        label_norms = np.array([float(np.linalg.norm(label)) for label in labels])
    worst = np.ones(len(ranks))
    np.maximum.at(worst, np.repeat(np.arange(len(ranks)), ranks), conditions)
    return Geometry(
        rows=np.ascontiguousarray(rows),
        offsets=offsets,
        sigma=sigma,
        targets=np.ascontiguousarray(leftover.T),
        unexplained=unexplained,
        index=index,
        solution=np.ascontiguousarray(solution.T),
        residuals=_residuals(offsets, sigma, leftover.T, unexplained, solution, label_norms),
        frame=frame,
        full=ranks == sizes_of(matrices),
        conditions=worst,
        label_norms=label_norms,
        row_equations=RowEquations(matrices, labels, np.ones(len(matrices)), rotation, solution.T),
        data=data,
        unexplained_parts=None if parts.ndim == 1 else np.ascontiguousarray(parts.T),
        held_out=held_out,
    )


def _refined(geometry: Geometry) -> Geometry:
    """The geometry with bases, singular values and solution computed in numbers of two floats, then rounded."""
    precise = geometry.precise
    if precise is None or geometry.data is None:
        return geometry
    dim = geometry.frame.dim
    basis = np.ascontiguousarray(precise.frame[0].T) if isinstance(precise.frame, tuple) else None
    data, weights = geometry.data, 1 / np.sqrt(geometry.data.divisors)
    solution, leftover = precise.solution[0], precise.leftover[0]
    sigma = np.sqrt(precise.squares[0])
    # a part of the labels that float64 counts as rounding stays 0
    parts = geometry.unexplained_parts
    unexplained = np.where(geometry.unexplained > 0, np.maximum(precise.unexplained[0], 0.0), 0.0)
    if parts is not None and precise.unexplained_parts is not None:
        parts = np.where(parts > 0, np.maximum(precise.unexplained_parts, 0.0), 0.0)
        unexplained = parts.sum(axis=0)
    return replace(
        geometry,
        rows=np.ascontiguousarray(precise.rows[0]),
        sigma=sigma,
        targets=leftover,
        unexplained=unexplained,
        solution=solution,
        residuals=_residuals(geometry.offsets, sigma, leftover, unexplained, solution, geometry.label_norms),
        frame=Frame(dim=dim, basis=basis),
        conditions=np.ones(geometry.num_distinct),  # each number was rounded once, at the end
        row_equations=RowEquations(data.matrices, data.labels, weights, basis, solution),
        unexplained_parts=parts,
    )


def _residuals(
    offsets: IntArray, sigma: Array, leftover: Array, unexplained: Array, solution: Array, label_norms: Array
) -> Array:
    """For each distinct task, |X_m w* - y_m| / (|X_m| |w*| + |y_m|)."""
    squares = (sigma * leftover) ** 2
    missed = np.sqrt(row_sums(squares if squares.ndim == 1 else squares.sum(axis=0), offsets) + 2 * unexplained)
    norms = np.zeros(len(unexplained))
    filled = np.diff(offsets) > 0
    norms[filled] = np.maximum.reduceat(sigma, offsets[:-1][filled]) if filled.any() else 0.0
    sizes = norms * np.linalg.norm(solution) + label_norms
    return np.divide(missed, sizes, out=np.zeros(len(sizes)), where=sizes > 0)


def _orthonormal_blocks(rows: Array, offsets: IntArray) -> Array:
    """Make the rows of each task orthonormal again: a rotation into a smaller frame costs a rounding error."""
    fixed = rows.copy()
    single = offsets[:-1][np.diff(offsets) == 1]
    if len(single):
        fixed[single] *= 1.5 - 0.5 * squared_rows(rows[single])[:, None]
    longer = np.flatnonzero(np.diff(offsets) > 1)
    for start, stop in zip(offsets[longer].tolist(), offsets[longer + 1].tolist(), strict=True):
        block = rows[start:stop]
        # a Newton step of the polar decomposition: converges quadratically to the nearest orthonormal rows
        fixed[start:stop] = 1.5 * block - 0.5 * (block @ block.T) @ block
    return fixed


def _rotate(frame: Frame, rotation: Array) -> Frame:
    basis = rotation if frame.basis is None else frame.basis @ rotation
    dual = None if frame.dual_basis is None else frame.dual_basis @ rotation
    return Frame(frame.dim, basis, dual, frame.columns)


def _active_columns(matrices: Sequence[Matrix]) -> IntArray | None:
    """The columns with a nonzero entry in some task, if all tasks are sparse; None if all columns are needed."""
    if not all(is_sparse(matrix) for matrix in matrices):
        return None
    dim = matrices[0].shape[1]
    active: NDArray[np.bool_] = np.zeros(dim, dtype=bool)
    for matrix in matrices:
        active[matrix.indices] = True
    return np.flatnonzero(active).astype(np.int64) if not active.all() else None
