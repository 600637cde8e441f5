"""The reduction that every engine stands on: tasks as subspaces of their joint row space.

What happens to a continual linear model depends on the data only through the row spaces of the tasks, their
singular values and the position of the start. `Geometry` holds exactly that, in an orthonormal frame of the
joint row space (dimension D <= min(d, N)), with identical tasks kept once. It is itself a regression problem in
R^D, whose coordinates z are errors relative to the offline solution; `Frame` maps between z and the user's w.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forgetting._arrays import SQUARED, Array, IntArray, is_sparse, read_only
from forgetting._memory import require_memory
from forgetting.errors import InvalidInputError
from forgetting.geometry.factor import Factor, Tolerance, factor_task, joint_directions

if TYPE_CHECKING:
    from forgetting.geometry.bases import Bases

__all__ = ["Data", "Frame", "Geometry", "Matrix", "from_data", "from_gram"]

Matrix: TypeAlias = Any  # a dense array or a scipy.sparse CSR array
EPS = float(np.finfo(np.float64).eps)
DELICATE = 100.0  # condition number from which float64 costs bases and solutions more than two digits
AT_ONCE = 2e6  # products of numbers of two floats that nobody notices: 10 ms
IN_A_SECOND = 2e8
SPEED = 1.7e11  # products and sums per second of a factorisation on two cores; only for messages
CHUNK_ENTRIES = 2**24  # entries of X^T handled at once by the chunked QR: 128 MiB


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

    def down(self, w: Array) -> Array:
        """Coordinates of w on the row space."""
        active = w if self.columns is None else w[self.columns]
        return active if self.basis is None else self.basis.T @ active

    def up(self, v: Array) -> Array:
        """The w of least norm with coordinates v; rows of a matrix are lifted one by one."""
        back = self.basis if self.dual_basis is None else self.dual_basis
        active = v if back is None else v @ back.T
        if self.columns is None:
            return active
        full = np.zeros((*v.shape[:-1], self.dim))
        full[..., self.columns] = active
        return full


@dataclass(frozen=True, eq=False)
class Geometry:
    """The reduced problem: min |Sigma_m (U_m^T z - c_m)|^2 for each distinct task m, over z in R^D.

    Attributes:
        rows: R x D, the stacked U_m^T of the distinct tasks, each block with orthonormal rows.
        offsets: block m of `rows`, `sigma` and `targets` is offsets[m]:offsets[m + 1].
        sigma: R singular values.
        targets: R numbers c_m, zero up to rounding when the tasks are jointly realizable.
        unexplained: for each distinct task, half the squared norm of what no w can fit.
        index: for each task, its distinct task.
        solution: the offline solution in frame coordinates; z = v - solution.
        residuals: for each distinct task, |X_m w* - y_m| / (|X_m| |w*| + |y_m|).
        frame: the map to the user's coordinates.
        full: for each distinct task, whether its rows are independent: some w then fits its labels, whatever they are.
        conditions: for each distinct task, what rounding of its rows is multiplied by in its row space.
        label_norms: for each distinct task, |y_m|.
        row_equations: for a distinct task, its rows as they were given, in z coordinates.
        data: the distinct tasks as they were given, where there is more to be had from them than float64 took.
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
    row_equations: Callable[[int], tuple[Array, Array]] = field(repr=False)
    data: Data | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _seal(self)

    @property
    def num_tasks(self) -> int:
        """Number of tasks, clones included."""
        return len(self.index)

    @property
    def dim(self) -> int:
        """Dimension D of the joint row space."""
        return int(self.rows.shape[1])

    @property
    def num_distinct(self) -> int:
        """Number of distinct tasks."""
        return len(self.offsets) - 1

    @cached_property
    def counts(self) -> IntArray:
        """How many tasks each distinct task stands for."""
        return read_only(np.bincount(self.index, minlength=self.num_distinct).astype(np.int64))

    @cached_property
    def ranks(self) -> IntArray:
        """Rank of each distinct task."""
        return read_only(np.diff(self.offsets))

    @cached_property
    def norms(self) -> Array:
        """Spectral norm of each distinct task (0 for a task of rank 0)."""
        norms = np.zeros(self.num_distinct)
        filled = self.ranks > 0
        norms[filled] = self.sigma[self.offsets[:-1][filled]]
        return read_only(norms)

    @cached_property
    def owner(self) -> IntArray:
        """Distinct task of each of the R directions."""
        return read_only(np.repeat(np.arange(self.num_distinct), self.ranks))

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
        """Weights v with mean loss sum_i (v_i rho_i)^2, less what no w explains."""
        return read_only(self.sigma * np.sqrt(self.counts[self.owner] / (2 * self.num_tasks)))

    @cached_property
    def loss_form(self) -> tuple[Array, Array, float]:
        """(form, shift, rest) with mean loss |form z - shift|^2 + rest, less what no w explains; at most D rows."""
        matrix, shift = self.loss_weights[:, None] * self.rows, self.loss_weights * self.targets
        if len(matrix) <= self.dim:
            return read_only(np.ascontiguousarray(matrix)), read_only(shift), 0.0
        left, form = np.linalg.qr(matrix)
        short = left.T @ shift
        return read_only(form), read_only(short), max(0.0, float(shift @ shift - short @ short))

    @cached_property
    def explained(self) -> bool:
        """Whether every task can be solved on its own."""
        return not self.unexplained.any()

    @cached_property
    def condition(self) -> float:
        """Condition number of the stacked bases U: what rounding of the data is multiplied by in the solution."""
        if len(self.sigma) == 0:
            return 1.0
        wide = len(self.sigma) > self.dim
        spectrum = np.linalg.eigvalsh(self.rows.T @ self.rows if wide else self.gram)[-self.dim :]
        least = max(float(spectrum[0]), EPS * float(spectrum[-1]))
        return float(np.sqrt(spectrum[-1] / least))

    @cached_property
    def plain(self) -> Bases:
        """Bases, singular values and solution as they are here, with bounds on their errors."""
        from forgetting.geometry.bases import plain_bases

        return plain_bases(self)

    @cached_property
    def precise(self) -> Bases | None:
        """The same from the data in numbers of two floats; None without data, or where 31 digits are too few."""
        from forgetting.geometry.bases import precise_bases

        return None if self.data is None else precise_bases(self, self.data)

    @cached_property
    def best(self) -> Bases:
        """`precise` where it takes a second at most, else `plain`."""
        found = self.precise if self.refinement < IN_A_SECOND else None
        return self.plain if found is None else found

    @property
    def refinement(self) -> float:
        """How many products of numbers of two floats `precise` takes, roughly; infinite without data."""
        if self.data is None:
            return float("inf")
        rows = np.array([matrix.shape[0] for matrix in self.data.matrices], dtype=np.float64)
        width, dim = self.data.matrices[0].shape[1], self.dim
        frame = 3.0 * rows.sum() * dim * width if dim < width else 0.0
        short = np.minimum(rows, dim)
        return float(frame + np.sum(25 * short**2 * dim + rows * dim**2) + len(self.sigma) * dim**2)

    @cached_property
    def spans(self) -> Array:
        """Ratio of the largest to the least singular value of each distinct task; 1 for a task of rank 0."""
        spans = np.ones(self.num_distinct)
        filled = self.ranks > 0
        spans[filled] = self.norms[filled] / self.sigma[self.offsets[1:][filled] - 1]
        return read_only(spans)

    @cached_property
    def _no_clones(self) -> bool:
        return np.array_equal(self.index, np.arange(self.num_distinct))

    def distinct(self, orders: IntArray) -> IntArray:
        """The distinct tasks that the tasks of an order stand for, as a contiguous array."""
        return np.ascontiguousarray(orders if self._no_clones else self.index[orders])

    def block(self, task: int) -> slice:
        """Where distinct task `task` sits in the stacked arrays."""
        return slice(int(self.offsets[task]), int(self.offsets[task + 1]))

    def start(self, w0: Array) -> Array:
        """z_0 for a start w_0 in the user's coordinates."""
        return self.frame.down(w0) - self.solution

    def lift(self, states: Array, w0: Array) -> Array:
        """Iterates in the user's coordinates for states z (one per row) of a run started at w_0."""
        return w0 + self.frame.up(states - self.start(w0))

    def nearest_solution(self, w0: Array) -> Array:
        """The offline solution nearest to w_0: what lies off the joint row space stays as it is."""
        return self.lift(np.zeros(self.dim), w0)

    def errors(self, states: Array) -> Array:
        """rho = U^T z - c for each state: the R numbers that losses and distances are made of."""
        return states @ self.rows.T - self.targets

    def per_task(self, squares: Array) -> Array:
        """Sum R columns into one per distinct task."""
        sums = np.zeros((*squares.shape[:-1], self.num_distinct))
        filled = np.flatnonzero(self.ranks)
        if filled.size:
            sums[..., filled] = np.add.reduceat(squares, self.offsets[filled], axis=-1)
        return sums

    def distinct_losses(self, states: Array) -> Array:
        """Loss of each distinct task at each state."""
        return 0.5 * self.per_task((self.sigma * self.errors(states)) ** 2) + self.unexplained

    def task_loss(self, task: int, z: Array) -> float:
        """L_m at one state."""
        which = int(self.index[task])
        block = self.block(which)
        missed = self.sigma[block] * (self.rows[block] @ z - self.targets[block])
        return 0.5 * float(missed @ missed) + float(self.unexplained[which])

    def task_losses(self, states: Array) -> Array:
        """L_m for every task (clones included) at each state; shape (..., T)."""
        return self.distinct_losses(states)[..., self.index]

    def mean_losses(self, states: Array) -> Array:
        """L, the mean over tasks, at each state; shape (...)."""
        share = self.counts / self.num_tasks
        weights = 0.5 * self.sigma**2 * share[self.owner]
        return self.errors(states) ** 2 @ weights + float(self.unexplained @ share)

    def distances(self, states: Array) -> Array:
        """Distance to the solution set of every task; shape (..., T)."""
        return np.sqrt(self.per_task(self.errors(states) ** 2))[..., self.index]

    def project(self, task: int, z: Array) -> Array:
        """The point nearest to z that minimises the loss of the task."""
        block = self.block(int(self.index[task]))
        basis = self.rows[block]
        return z - basis.T @ (basis @ z - self.targets[block])

    def equations(self, task: int) -> tuple[Array, Array]:
        """(A, b): the rows of the task as they were given, in z coordinates: A z = b."""
        return self.row_equations(int(self.index[task]))


def _seal(one: Frame | Geometry) -> None:
    """Make the arrays read-only: a scheme or an ordering of a user that wrote into them would change the tasks."""
    for known in fields(one):
        value = getattr(one, known.name)
        if isinstance(value, np.ndarray):
            object.__setattr__(one, known.name, read_only(value))


class Data(NamedTuple):
    """Distinct tasks as they were given; the squared loss of task m is divided by divisors[m]."""

    matrices: Sequence[Matrix]
    labels: Sequence[Array]
    divisors: Array


def from_data(
    matrices: Sequence[Matrix], labels: Sequence[Array], divisors: Array, index: IntArray, rank_tol: float | None
) -> Geometry:
    """Geometry of distinct tasks X_m w = y_m; the squared loss of task m is divided by divisors[m] (1, or n_m).

    If there are fewer rows than columns, a QR factorisation of X^T (chunked: d x N numbers are stored once, never
    d x d) comes first; it does not square the condition number and keeps the relative size of every row. Cost
    O(d N min(d, N)).
    """
    dim = matrices[0].shape[1]
    columns = _active_columns(matrices)
    width = dim if columns is None else len(columns)
    num_rows = sum(matrix.shape[0] for matrix in matrices)
    basis = None
    _require_room(matrices, num_rows, width)
    if num_rows < width:
        basis, triangle = _row_space_qr(matrices, columns)
        splits = np.cumsum([matrix.shape[0] for matrix in matrices])[:-1]
        reduced = [np.ascontiguousarray(part.T) for part in np.split(triangle, splits, axis=1)]
    else:
        reduced = [_dense(matrix, columns) for matrix in matrices]
    weights = 1 / np.sqrt(divisors)
    reduced = [weight * part for weight, part in zip(weights, reduced, strict=True)]
    values = [weight * label for weight, label in zip(weights, labels, strict=True)]
    frame = Frame(dim=dim, basis=basis, columns=columns)
    data = Data(matrices, labels, divisors)
    found = _assemble(reduced, values, index, frame, Tolerance(rank_tol, squared=False, columns=width), data)
    delicate = float(np.max(found.spans, initial=1.0)) * found.condition > DELICATE
    return _refined(found) if delicate and found.refinement < AT_ONCE else found


def _require_room(matrices: Sequence[Matrix], num_rows: int, width: int) -> None:
    """Estimate memory and time before anything is computed: they grow with d N and N^3, also for sparse data."""
    ranks = sum(min(matrix.shape[0], width) for matrix in matrices)
    if num_rows < width:  # the basis, some N x N matrices, and a part of X made dense
        numbers = float(width) * num_rows + 12.0 * num_rows**2 + max(2.0 * num_rows**2, CHUNK_ENTRIES)
    else:
        numbers = width * (2.0 * num_rows + 4.0 * ranks)
    small = min(num_rows, width)
    seconds = (8.0 * width * num_rows * small + 60.0 * ranks * small**2) / SPEED
    require_memory(
        8 * numbers,
        f"the row spaces of {num_rows} rows with {width} columns (and roughly {seconds:.2g} seconds)",
        "use fewer rows, or give inner products: fg.KernelTasks(X @ X.T, y, groups) needs N^2 numbers for N rows",
    )


def from_gram(
    kernel: Array, labels: Array, rows_of: Sequence[IntArray], weights: Array, index: IntArray, rank_tol: float | None
) -> Geometry:
    """Geometry of tasks given by inner products; `rows_of[m]` are the rows of the kernel matrix that task m owns.

    The kernel matrix is scaled to a unit diagonal, so that a task of small norm is not lost, and factored as F F^T by
    its eigenvalues. Rank decisions use the root of the tolerance for data: a Gram matrix squares singular values.
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
) -> Geometry:
    """Bases, joint rank and offline solution from tasks in (possibly redundant) frame coordinates."""
    factors = [factor_task(matrix, label, tolerance) for matrix, label in zip(matrices, labels, strict=True)]
    for which, one in enumerate(factors):
        if not np.vdot(one.targets, one.targets) < SQUARED:
            raise InvalidInputError(
                f"task {int(np.argmax(index == which))}: its rows are so small beside its labels that its solution "
                "overflows when squared; rescale them"
            )
    ranks = np.array([len(one.sigma) for one in factors], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(ranks)]).astype(np.int64)
    rows = np.concatenate([one.basis for one in factors])
    target = np.concatenate([one.targets for one in factors])
    sigma = np.concatenate([one.sigma for one in factors])
    unexplained = np.array([one.unexplained for one in factors])
    known = np.concatenate([one.conditions for one in factors])
    rotation, solve = joint_directions(rows, known, tolerance)
    if rotation is not None:
        rows = _orthonormal_blocks(rows @ rotation, offsets)
        frame = _rotate(frame, rotation)
    solution = solve(target)
    solution = solution + solve(target - rows @ solution)
    leftover = target - rows @ solution

    def row_equations(task: int) -> tuple[Array, Array]:
        design = matrices[task] if rotation is None else matrices[task] @ rotation
        return read_only(np.ascontiguousarray(design)), labels[task] - design @ solution

    label_norms = np.array([float(np.linalg.norm(label)) for label in labels])
    return Geometry(
        rows=np.ascontiguousarray(rows),
        offsets=offsets,
        sigma=sigma,
        targets=leftover,
        unexplained=unexplained,
        index=index,
        solution=solution,
        residuals=_residuals(offsets, sigma, leftover, unexplained, solution, label_norms),
        frame=frame,
        full=np.array([len(one.sigma) == len(matrix) for one, matrix in zip(factors, matrices, strict=True)]),
        conditions=np.array([_worst(one) for one in factors]),
        label_norms=label_norms,
        row_equations=row_equations,
        data=data,
    )


def _refined(found: Geometry) -> Geometry:
    """The same problem from what numbers of two floats find: a small problem whose bases float64 knows badly."""
    better = found.precise
    if better is None or found.data is None:
        return found
    dim = found.frame.dim
    basis = np.ascontiguousarray(better.frame[0].T) if isinstance(better.frame, tuple) else None
    data, weights = found.data, 1 / np.sqrt(found.data.divisors)
    solution, leftover = better.solution[0], better.leftover[0]
    sigma = np.sqrt(better.squares[0])
    # below rounding of the labels there is nothing unexplained, as before
    unexplained = np.where(found.unexplained > 0, np.maximum(better.unexplained[0], 0.0), 0.0)

    def row_equations(task: int) -> tuple[Array, Array]:
        given = weights[task] * _dense(data.matrices[task], None)
        design = given if basis is None else given @ basis
        return read_only(np.ascontiguousarray(design)), weights[task] * data.labels[task] - design @ solution

    return replace(
        found,
        rows=np.ascontiguousarray(better.rows[0]),
        sigma=sigma,
        targets=leftover,
        unexplained=unexplained,
        solution=solution,
        residuals=_residuals(found.offsets, sigma, leftover, unexplained, solution, found.label_norms),
        frame=Frame(dim=dim, basis=basis),
        conditions=np.ones(found.num_distinct),  # what is here was rounded once, at the end
        row_equations=row_equations,
    )


def _residuals(
    offsets: IntArray, sigma: Array, leftover: Array, unexplained: Array, solution: Array, label_norms: Array
) -> Array:
    """For each distinct task, |X_m w* - y_m| / (|X_m| |w*| + |y_m|)."""
    residuals = np.zeros(len(unexplained))
    for m, (a, b) in enumerate(pairwise(offsets.tolist())):
        missed = float(np.hypot(np.linalg.norm(sigma[a:b] * leftover[a:b]), np.sqrt(2 * unexplained[m])))
        size = float(np.max(sigma[a:b], initial=0.0) * np.linalg.norm(solution) + label_norms[m])
        residuals[m] = missed / size if size > 0 else 0.0
    return residuals


def _worst(one: Factor) -> float:
    return float(np.max(one.conditions, initial=1.0))


def _orthonormal_blocks(rows: Array, offsets: IntArray) -> Array:
    """Repair the orthonormality that rotating into a smaller frame costs (a rounding error, or less)."""
    fixed = rows.copy()
    for start, stop in pairwise(offsets.tolist()):
        block = rows[start:stop]
        # one Newton step of the polar decomposition: quadratic, and it moves nothing it need not
        fixed[start:stop] = 1.5 * block - 0.5 * (block @ block.T) @ block
    return fixed


def _rotate(frame: Frame, rotation: Array) -> Frame:
    basis = rotation if frame.basis is None else frame.basis @ rotation
    dual = None if frame.dual_basis is None else frame.dual_basis @ rotation
    return Frame(frame.dim, basis, dual, frame.columns)


def _active_columns(matrices: Sequence[Matrix]) -> IntArray | None:
    """Columns that are nonzero in some sparse task, if all tasks are sparse and leaving the others out pays."""
    if not all(is_sparse(matrix) for matrix in matrices):
        return None
    dim = matrices[0].shape[1]
    active: NDArray[np.bool_] = np.zeros(dim, dtype=bool)
    for matrix in matrices:
        active[matrix.indices] = True
    return np.flatnonzero(active).astype(np.int64) if not active.all() else None


def _dense(matrix: Matrix, columns: IntArray | slice | None) -> Array:
    picked = matrix if columns is None else matrix[:, columns]
    return picked.toarray() if is_sparse(picked) else np.asarray(picked)


def _row_space_qr(matrices: Sequence[Matrix], columns: IntArray | None) -> tuple[Array, Array]:
    """X^T = basis @ triangle with orthonormal columns in basis, reading X in chunks of columns."""
    if columns is not None or any(is_sparse(matrix) for matrix in matrices):
        import scipy.sparse as sp

        stacked = sp.csc_array(sp.vstack([sp.csr_array(matrix) for matrix in matrices]))
        parts: list[Matrix] = [stacked if columns is None else stacked[:, columns]]
    else:
        parts = list(matrices)
    width = parts[0].shape[1]
    num_rows = sum(part.shape[0] for part in parts)
    size = max(2 * num_rows, CHUNK_ENTRIES // num_rows)
    cuts = [slice(start, min(start + size, width)) for start in range(0, width, size)]
    if len(cuts) > 1 and cuts[-1].stop - cuts[-1].start < num_rows:  # keep every chunk wide
        cuts[-2:] = [slice(cuts[-2].start, cuts[-1].stop)]

    def chunk(cut: slice) -> Array:
        return np.concatenate([_dense(part, cut) for part in parts])

    return _cholesky_qr(chunk, cuts, num_rows) or _householder_qr(chunk, cuts, num_rows)


def _cholesky_qr(chunk: Callable[[slice], Array], cuts: list[slice], num_rows: int) -> tuple[Array, Array] | None:
    """Cholesky QR, done twice: all matrix products, six times faster than Householder on tall matrices.

    The second pass restores the orthogonality that the first loses, to rounding, as long as the condition number of
    the scaled rows is below 1e6 (Yamamoto et al. 2015); None if it is not.
    """
    gram = np.zeros((num_rows, num_rows))
    for cut in cuts:
        part = chunk(cut)
        gram += part @ part.T
    norms = np.sqrt(np.diag(gram))
    if not norms.all():
        return None
    gram /= np.outer(norms, norms)
    spectrum = np.linalg.eigvalsh(gram)
    if spectrum[0] < 1e-12 * spectrum[-1]:
        return None
    first = np.linalg.cholesky(gram).T
    mix = np.linalg.inv(first) / norms[:, None]
    basis = np.empty((cuts[-1].stop, num_rows))
    again = np.zeros((num_rows, num_rows))
    for cut in cuts:
        np.matmul(chunk(cut).T, mix, out=basis[cut])
        again += basis[cut].T @ basis[cut]
    second = np.linalg.cholesky(again).T
    mix = np.linalg.inv(second)
    for cut in cuts:
        basis[cut] = basis[cut] @ mix
    return basis, second @ first * norms


def _householder_qr(chunk: Callable[[slice], Array], cuts: list[slice], num_rows: int) -> tuple[Array, Array]:
    """QR of the chunks and a QR of the stacked triangles: slower, and stable whatever the condition number."""
    basis = np.empty((cuts[-1].stop, num_rows))
    triangles = []
    for cut in cuts:
        basis[cut], triangle = np.linalg.qr(chunk(cut).T)
        triangles.append(triangle)
    if len(cuts) == 1:
        return basis, triangles[0]
    mix, triangle = np.linalg.qr(np.concatenate(triangles))
    for position, cut in enumerate(cuts):
        basis[cut] = basis[cut] @ mix[position * num_rows : (position + 1) * num_rows]
    return basis, triangle
