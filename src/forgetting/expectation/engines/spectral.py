"""Very large k: Q is self-adjoint, so every k comes from one factorisation.

E L(w_k) = <H/2, Q^k[W_0]> is a sum of k-th powers of eigenvalues; sums over steps (regret, and the loss that learned
tasks keep) are geometric sums; means over visits are sums of divided differences (l_i^k - l_j^k) / (l_i - l_j). The
eigenvalues come from diagonalising Q on symmetric matrices (D (D + 1) / 2 numbers) where that is small, and from
Lanczos runs with full re-orthogonalisation where it is not: one from W_0, and for means over visits one from each
X_m^T X_m.
Without such means one run is enough, so that Lanczos is tried earlier.

Where Lanczos does not settle, Q is diagonalised instead, up to a larger order. Beyond that the results of Lanczos stand
with a bound on their error: m steps give every polynomial of degree below m in Q exactly, and the best polynomial is
within 2 exp(-m^2 / (2 k)) of x^k on [-1, 1] (Newman and Rivlin, Aequationes Math. 14, 1976).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np

from forgetting._arrays import Array, IntArray
from forgetting._progress import track
from forgetting.errors import NotSupportedError
from forgetting.expectation.engines.base import Cost, Engine, register_engine
from forgetting.expectation.engines.deep import TINIEST
from forgetting.expectation.engines.digits import concluded, refusal
from forgetting.expectation.engines.moment_map import Moments, moment_map
from forgetting.expectation.engines.pairs import EPS
from forgetting.expectation.engines.timing import (
    chance_to_settle,
    lanczos_width,
    reduction,
    seconds_of_diagonalising,
    seconds_of_lanczos,
    seconds_of_visits,
)
from forgetting.expectation.outcome import Outcome, Values
from forgetting.expectation.quantities import LOSS, Form, Quantity
from forgetting.expectation.request import Request
from forgetting.orderings.laws import Independent

__all__ = ["SelfAdjoint", "SpectralEngine", "decay"]

DENSE_LIMIT = 2000  # order up to which Q may be diagonalised outright
ONE_RUN_LIMIT = 200  # the same where a single Lanczos run would do
UNSETTLED_LIMIT = 6000  # the same where Lanczos did not settle: a minute, and less than a GiB
MAX_LANCZOS = 800


class SelfAdjoint(Protocol):
    """A self-adjoint map on symmetric matrices of order `size`, such as Q."""

    @property
    def size(self) -> int:
        """The order of the matrices."""

    def apply(self, moments: Array, /) -> Array:
        """The map at one matrix, or at each of several (along the first axis)."""


@register_engine
class SpectralEngine(Engine):
    """Powers of the eigenvalues of Q, from one factorisation."""

    name = "spectral"
    needs_realizable = True

    def covers(self, request: Request) -> str | None:
        return "it does not average iterates" if request.averaged else refusal(request, Independent)

    def cost(self, request: Request) -> Cost:
        geometry, visited = request.geometry, request.averages("visited")
        order = geometry.dim * (geometry.dim + 1) / 2
        columns = order if order <= UNSETTLED_LIMIT else MAX_LANCZOS
        needed = 8.0 * order * columns * (3 if visited else 2)
        tasks, each = (geometry.num_distinct if visited else 0), visited or request.averages("each")
        begin = 1e-3 + reduction(request)
        dense = seconds_of_diagonalising(request) + seconds_of_visits(request, tasks, order)
        if order <= (DENSE_LIMIT if visited else ONE_RUN_LIMIT):
            return Cost(needed, begin + dense)
        width = lanczos_width(request, each=each, most=MAX_LANCZOS)
        run = seconds_of_lanczos(request, width)
        runs = tasks * run + seconds_of_visits(request, tasks, width)
        odds = chance_to_settle(request, width, MAX_LANCZOS) if each and order <= UNSETTLED_LIMIT else 1.0
        return Cost(needed, begin + run + odds * runs + (1 - odds) * dense)

    def solve(self, request: Request) -> Outcome:
        moments = moment_map(request, homogeneous=True)
        values, doubts, how = _solve(request, moments)
        for quantity in request.quantities:
            name = quantity.name
            doubts[name] = doubts[name] + _from_the_data(request, moments, quantity, values[name]) + TINIEST
            if quantity.average == "visited" and (
                quantity.subtracts_kept or moments.solves
            ):  # nothing is forgotten yet
                values[name][request.steps == 1] = doubts[name][request.steps == 1] = 0.0
        detail = f"the map Q on matrices of order {request.geometry.dim}, {how}; the uncertainty is an estimate"
        return concluded(request, values, doubts, detail, estimated=True)


def _from_the_data(request: Request, moments: Moments, quantity: Quantity, value: Array) -> Array:
    """What errors of the bases, the solution and the labels do to powers of Q: an estimate."""
    geometry, steps = request.geometry, request.steps.astype(float)
    shape = (-1, *[1] * (value.ndim - 1))
    each_step = 4 * EPS * (float(np.max(geometry.conditions, initial=1.0)) - 1)  # beside that of eigenvalues
    size = moments.unit * float(np.linalg.norm(moments.first[0]))
    start = geometry.best.misplaced / size if size > 0 else 0.0
    relative = (each_step * steps + 8 * EPS * geometry.condition + start * (2 + start)).reshape(shape) * np.abs(value)
    # labels that no w fits keep z away from where it should be
    e = (moments.unit * moments.doubts.drift * np.minimum(steps + 1, 4 * geometry.condition)).reshape(shape)
    largest = float(np.sqrt(np.max(moments.weights(quantity.form)[0], initial=0.0)))
    e = e * (1.0 if quantity.average == "error" else largest)
    return np.asarray(relative + 2 * np.sqrt(np.abs(value)) * e + e**2)


@dataclass(frozen=True)
class _Ritz:
    """Q seen from a start v: Q^k v = sum_i (weight_i l_i^k) (row i of basis), exactly or within a Krylov space.

    `drift` is by how much results still moved, relative to the sum of their absolute terms, when Lanczos stopped.
    """

    values: Array
    weights: Array
    basis: Array  # one packed symmetric matrix per row
    drift: float = 0.0
    settled: bool = True

    @property
    def off(self) -> float:
        """By how much an eigenvalue can be off."""
        return 4 * EPS * max(1.0, float(np.abs(self.values).max(initial=0.0)))

    def missed(self, k: int) -> float:
        """By how much Q^k v can be off, relative to |v|, where Lanczos did not settle."""
        return 0.0 if self.settled else float(min(2.0, 4 * np.exp(-(len(self.values) ** 2) / (2 * max(k, 1)))))


class _UnsettledError(Exception):
    """Lanczos did not settle, and there is a better way."""


def _solve(request: Request, moments: Moments) -> tuple[Values, Values, str]:
    """Expected quantities at the given steps, an estimate of the absolute error of each, and how they were found."""
    order = moments.size * (moments.size + 1) // 2
    if order > (DENSE_LIMIT if request.averages("visited") else min(ONE_RUN_LIMIT, DENSE_LIMIT)):
        try:
            return _Spectrum(request, moments, None).solve()
        except _UnsettledError:
            pass
    return _Spectrum(request, moments, _diagonalise(moments)).solve()


Kind = Literal["mean", "each", "drawn", "kept", "square"]  # over all tasks; of every task; of the task that is drawn


class _Spectrum:
    """The quantities of one request from the spectrum of Q: by diagonalisation if a factor is given, or by Lanczos."""

    def __init__(self, request: Request, moments: Moments, factor: tuple[Array, Array] | None) -> None:
        self.request, self.moments, self.factor, self.steps = request, moments, factor, request.steps
        self.start = _pack(moments.second()[0] * moments.unit**2)
        self.functionals = {key: self._functional(*key) for q in request.quantities for key in _keys(q)}
        self.main = self.ritz(self.start, np.concatenate(list(self.functionals.values())))
        self.visits: dict[Form, tuple[Array, Array]] = {}

    def solve(self) -> tuple[Values, Values, str]:
        values, errors = {}, {}
        for quantity in self.request.quantities:
            values[quantity.name], errors[quantity.name] = self._of(quantity)
        if self.factor is not None:
            return values, errors, "diagonalised"
        return values, errors, f"by Lanczos{'' if self.main.settled else ', which did not settle'}"

    def ritz(self, vector: Array, against: Array) -> _Ritz:
        """Q seen from a vector, such that inner products with `against` are accurate."""
        if self.factor is not None:
            return _Ritz(self.factor[0], self.factor[1] @ vector, self.factor[1])
        found = _lanczos(self.moments, vector, against, self.steps)
        if not found.settled and len(vector) <= UNSETTLED_LIMIT:
            raise _UnsettledError
        return found

    def _functional(self, form: Form, kind: Kind) -> Array:
        """Packed matrices, one per row, whose inner product with E z z^T is a value at w_k (or just after a step)."""
        moments, geometry = self.moments, self.moments.geometry
        owner, weights = geometry.owner, moments.weights(form)[0]

        def packed(share: Array) -> Array:
            """sum_i share_i weight_i b_i b_i^T / 2."""
            return _pack((moments.right[0].T * (0.5 * share * weights)) @ moments.right[0])

        match kind:
            case "square":
                return _pack(np.eye(moments.size))[None]
            case "mean":
                return packed((geometry.counts / geometry.num_tasks)[owner])[None]
            case "each":
                return np.stack([packed((owner == m) * 1.0) for m in range(geometry.num_distinct)])
            case "drawn":
                return packed(moments.probability[0][owner])[None]
            case "kept":
                return packed(moments.probability[0][owner] * (1 - moments.gains[0]) ** 2)[None]

    def _of(self, quantity: Quantity) -> tuple[Array, Array]:
        """A quantity at all steps, and an estimate of its error."""
        form, steps, index = quantity.form, self.steps, self.moments.geometry.index
        with np.errstate(invalid="ignore", divide="ignore"):
            match quantity.average:
                case "each":
                    value, doubt = self._evaluated((form, "each"), summed=False)
                    return np.maximum(value[:, index], 0), doubt[:, index]
                case "learnt":
                    value, doubt = self._evaluated((form, "drawn"), summed=True)
                    return value[:, 0] / steps, doubt[:, 0] / steps
                case "visited":
                    total, lost = self._visited(form)
                    if not quantity.subtracts_kept:
                        return np.where(steps > 0, np.maximum(total, 0) / steps, np.nan), lost / steps
                    kept, doubt = self._evaluated((form, "kept"), summed=True)
                    value, error = (total - kept[:, 0]) / steps, (lost + doubt[:, 0]) / steps
                    return np.where(steps > 0, value, np.nan), error
            value, doubt = self._evaluated(_keys(quantity)[0], summed=False)
            return np.maximum(value[:, 0], 0), doubt[:, 0]

    def _evaluated(self, key: tuple[Form, Kind], *, summed: bool) -> tuple[Array, Array]:
        return _evaluate(self.main, self.functionals[key], self.start, self.steps, summed=summed)

    def _visited(self, form: Form) -> tuple[Array, Array]:
        if form not in self.visits:
            forms = self.functionals[form, "each"]
            self.visits[form] = _visited(
                self.moments, self.main, self.start, forms, self.ritz, self.steps, shared=self.factor is not None
            )
        return self.visits[form]


def _keys(quantity: Quantity) -> list[tuple[Form, Kind]]:
    """The functionals that a quantity is made of."""
    form = quantity.form
    match quantity.average:
        case "error":
            return [(LOSS, "square")]
        case "tasks":
            return [(form, "mean")]
        case "each":
            return [(form, "each")]
        case "visited":
            return [(form, "each"), (form, "kept")] if quantity.subtracts_kept else [(form, "each")]
        case "next" | "learnt":
            return [(form, "drawn")]


def decay(moments: SelfAdjoint) -> float:
    """The largest eigenvalue of Q on the joint row space, or of another map that keeps matrices positive semidefinite.

    By Perron-Frobenius the eigenvector is positive semidefinite, so a Lanczos run from the identity finds it.
    """
    if moments.size * (moments.size + 1) // 2 <= DENSE_LIMIT:
        return float(np.max(np.abs(_diagonalise(moments)[0]), initial=0.0))
    identity = _pack(np.eye(moments.size))
    ritz = _lanczos(moments, identity, identity[None], 10 ** np.arange(9))
    if ritz.settled:
        return float(np.max(np.abs(ritz.values)))
    if len(identity) <= UNSETTLED_LIMIT:
        return float(np.max(np.abs(_diagonalise(moments)[0])))
    raise NotSupportedError(
        f"the decay rate was not found: at least {np.max(ritz.values):.12g}, but {len(ritz.values)} steps of Lanczos "
        f"did not settle, and matrices of order {moments.size} are too large to diagonalise Q"
    )


def _divided_differences(a: Array, b: Array, k: int) -> Array:
    """(a_i^k - b_j^k) / (a_i - b_j), accurate also where a_i and b_j are close: |.| <= k."""
    x, y = np.broadcast_arrays(a[:, None], b[None, :])
    if k == 0:
        return np.zeros(x.shape)
    large = np.where(np.abs(x) >= np.abs(y), x, y)
    small = np.where(np.abs(x) >= np.abs(y), y, x)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(large == 0, 0.0, small / large)
        gap = np.where(large == 0, 1.0, (large - small) / large)  # 1 - ratio without rounding of the ratio
        close = ratio > 0.5
        # (1 - r^k) / (1 - r) = -expm1(k log(1 - gap)) / gap for r near 1, plainly otherwise
        near = np.where(gap == 0, float(k), -np.expm1(k * np.log1p(-np.where(close, gap, 0.5))) / gap)
        far = (1 - np.power(ratio, k)) / gap
    return np.asarray(np.power(large, k - 1) * np.where(close, near, far))


def _evaluate(ritz: _Ritz, against: Array, start: Array, steps: IntArray, *, summed: bool) -> tuple[Array, Array]:
    """<f, Q^k v> (or its sum over 0..k-1) for each functional f (columns) at each k (rows), with error estimates."""
    inner = against @ ritz.basis.T * ritz.weights
    size = np.linalg.norm(against, axis=1) * float(np.linalg.norm(start))

    def at(k: int, products: Array, values: Array) -> Array:
        terms = _divided_differences(np.ones(1), values, k)[0] if summed else np.power(values, k)
        return np.asarray(products @ terms)

    most, off = np.abs(ritz.values), ritz.off
    found = np.array([at(int(k), inner, ritz.values) for k in steps]).reshape(len(steps), len(against))
    spread = np.array([at(int(k), np.abs(inner), most) for k in steps]).reshape(found.shape)
    raised = np.array([at(int(k), np.abs(inner), most + off) for k in steps]).reshape(found.shape)
    # rounding of the inner products, of the eigenvalues (hence k eps in their k-th power, or eps^k), and of the sum
    alive = np.array([_at_most(float(most.max(initial=0.0)) + off, int(k), summed) for k in steps])[:, None]
    doubt = 16 * EPS * size * alive + (raised - spread) + (4 * EPS + ritz.drift) * spread
    missed = np.array([ritz.missed(int(k)) * (int(k) if summed else 1) for k in steps])[:, None]
    return found, doubt + missed * size


def _at_most(value: float, k: int, summed: bool) -> float:
    """value^k, or its sum over exponents 0..k-1."""
    return float(_divided_differences(np.ones(1), np.array([value]), k)[0, 0]) if summed else value**k


def _visited(
    moments: Moments,
    main: _Ritz,
    start: Array,
    forms: Array,
    ritz: Callable[[Array, Array], _Ritz],
    steps: IntArray,
    *,
    shared: bool,
) -> tuple[Array, Array]:
    """sum_m p_m sum_(t=1..k) <Q^(k-t)[G_m / 2], S_m Q^(t-1)[W_0] S_m>: the expected loss on all visits; and its doubt.

    Where all tasks share the eigenvalues, the divided differences are computed once for all of them.
    """
    p, ranks = moments.probability[0], moments.geometry.ranks
    longest = float(np.abs(main.values).max(initial=0.0)) + main.off
    alive = np.array([_at_most(longest, int(k), True) for k in steps])
    total, doubt = np.zeros(len(steps)), np.zeros(len(steps))
    both = np.zeros((2, len(main.values), len(main.values))) if shared else np.empty(0)
    for m in track(range(len(p)), "forgetting"):
        if p[m] == 0 or ranks[m] == 0:
            continue
        mine = ritz(forms[m], start[None])
        cross = p[m] * _cross(moments, m, main, mine)
        doubt += 16 * EPS * p[m] * float(np.linalg.norm(forms[m]) * np.linalg.norm(start)) * alive
        if shared:
            both[0] += cross
            both[1] += np.abs(cross)
        else:
            part, its_doubt = _over_visits(cross, np.abs(cross), main, mine, steps)
            total += part
            missed = np.array([int(k) * (main.missed(int(k)) + mine.missed(int(k))) for k in steps])
            doubt += its_doubt + 2 * p[m] * float(np.linalg.norm(forms[m]) * np.linalg.norm(start)) * missed
    if shared:
        part, its_doubt = _over_visits(both[0], both[1], main, main, steps)
        return total + part, doubt + its_doubt
    return total, doubt


def _cross(moments: Moments, task: int, main: _Ritz, mine: _Ritz) -> Array:
    """<e_i, S_m e_j S_m> times the weights of both, for the basis of `mine` (rows) and of `main` (columns)."""
    size = moments.size
    moved = np.concatenate(
        [_pack(moments.step(task, _unpack(main.basis[i : i + 256], size))) for i in range(0, len(main.basis), 256)]
    )
    return np.asarray((mine.basis @ moved.T) * mine.weights[:, None] * main.weights[None, :])


def _over_visits(cross: Array, spread: Array, main: _Ritz, mine: _Ritz, steps: IntArray) -> tuple[Array, Array]:
    """sum_ij cross_ij (l_i^k - l_j^k) / (l_i - l_j) at each k, and how far rounding can have moved it."""
    found, doubt = np.empty(len(steps)), np.empty(len(steps))
    for i, k in enumerate(steps.tolist()):
        found[i] = float(np.vdot(cross, _divided_differences(mine.values, main.values, k)))
        most = _divided_differences(np.abs(mine.values), np.abs(main.values), k)
        raised = _divided_differences(np.abs(mine.values) + mine.off, np.abs(main.values) + main.off, k)
        noise = 4 * EPS + main.drift + mine.drift
        doubt[i] = float(np.vdot(spread, (raised - most) + noise * most))
    return found, doubt


def _diagonalise(moments: SelfAdjoint) -> tuple[Array, Array]:
    """Eigenvalues of Q on symmetric matrices, and its eigenvectors as rows, packed."""
    size = moments.size
    order = size * (size + 1) // 2
    columns = [_pack(moments.apply(_unpack(np.eye(order)[i : i + 256], size))) for i in range(0, order, 256)]
    matrix = np.concatenate(columns) if columns else np.zeros((0, 0))
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return values, np.ascontiguousarray(vectors.T)


def _lanczos(moments: SelfAdjoint, start: Array, against: Array, steps: IntArray) -> _Ritz:
    """Krylov space of `start`, grown until <f, Q^k start> has settled for every f and k."""
    size = moments.size
    norm = float(np.linalg.norm(start))
    limit = min(MAX_LANCZOS, len(start))
    basis = np.empty((limit + 1, len(start)))
    if norm == 0:
        return _Ritz(np.zeros(1), np.zeros(1), np.zeros((1, len(start))))
    basis[0] = start / norm
    diagonal, off = np.empty(limit), np.empty(limit)
    previous: Array | None = None
    settled = count = 0
    drift = top = 0.0
    longest = max(1, int(np.max(steps, initial=1)))
    noise = 4 * EPS * np.maximum(1.0, steps)[:, None]  # an eigenvalue is off by eps, its k-th power by k eps
    check = 5
    for count in range(1, limit + 1):
        vector = _pack(moments.apply(_unpack(basis[count - 1], size)))
        diagonal[count - 1] = vector @ basis[count - 1]
        for _ in range(2):  # full re-orthogonalisation, twice is enough
            vector -= basis[:count].T @ (basis[:count] @ vector)
        off[count - 1] = np.linalg.norm(vector)
        if off[count - 1] < 10 * EPS * np.abs(diagonal[:count]).max():
            break
        basis[count] = vector / off[count - 1]
        if count >= check or count == limit:
            check = count + max(5, count // 10)
            values, vectors = _tridiagonal(diagonal[:count], off[: count - 1])
            reach = (against @ basis[:count].T) @ vectors * (norm * vectors[0])
            terms = np.stack([np.power(values, k) for k in steps.tolist()])
            current = terms @ reach.T
            spread = np.abs(terms) @ np.abs(reach.T)
            if previous is not None:
                moved = np.abs(current - previous)
                drift = float(np.max(moved / np.where(spread > 0, spread, np.inf), initial=0.0))
                slack = 1e-13 * np.abs(current) + noise * spread
                # where all powers vanish nothing moves: then the largest eigenvalue must have been found
                steady = np.all(spread > 0) or abs(values[-1] - top) <= max(4 * EPS, 1e-7 / longest)
                settled = settled + 1 if steady and np.all(moved <= slack) else 0
            previous, top = current, float(values[-1])
            if settled == 3:
                break
    # an invariant space, or all of it: nothing is left to find
    exhausted = (settled < 3 and count < limit) or count == len(start)
    values, vectors = _tridiagonal(diagonal[:count], off[: count - 1])
    drift = drift if settled == 3 else 0.0  # what has not settled has a bound instead
    return _Ritz(values, norm * vectors[0], vectors.T @ basis[:count], drift, exhausted or settled == 3)


def _tridiagonal(diagonal: Array, off: Array) -> tuple[Array, Array]:
    from scipy.linalg import eigh_tridiagonal

    values, vectors = eigh_tridiagonal(diagonal, off)
    return values, vectors


@lru_cache(maxsize=4)
def _packing(size: int) -> tuple[tuple[IntArray, IntArray], Array]:
    rows, columns = np.triu_indices(size)
    return (rows, columns), np.where(rows == columns, 1.0, np.sqrt(2.0))


def _pack(matrices: Array) -> Array:
    """Symmetric matrices as vectors with the same inner product."""
    where, factor = _packing(matrices.shape[-1])
    return np.asarray(matrices[..., where[0], where[1]] * factor)


def _unpack(vectors: Array, size: int) -> Array:
    where, factor = _packing(size)
    matrices = np.zeros((*vectors.shape[:-1], size, size))
    matrices[..., where[0], where[1]] = vectors / factor
    matrices[..., where[1], where[0]] = vectors / factor
    return matrices
