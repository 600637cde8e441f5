"""Very large k: Q is self-adjoint, so every k comes from one factorisation.

E L(w_k) = <H/2, Q^k[W_0]> is a sum of k-th powers of eigenvalues; regret and the loss that learned tasks keep are
geometric sums; forgetting is a sum of divided differences (l_i^k - l_j^k) / (l_i - l_j). The eigenvalues come from
diagonalising Q on symmetric matrices (D (D + 1) / 2 numbers) where that is small, and from Lanczos runs with full
re-orthogonalisation where it is not: one from W_0, and for forgetting one from each X_m^T X_m. Without forgetting one
run is enough, so that Lanczos is tried earlier.

Where Lanczos does not settle it is given up for the diagonalisation, up to a larger order. Beyond that its results
stand with a bound on their error: m steps give every polynomial of degree below m in Q exactly, and the best one is
within 2 exp(-m^2 / (2 k)) of x^k on [-1, 1] (Newman and Rivlin, Aequationes Math. 14, 1976).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from forgetting._arrays import Array, IntArray
from forgetting.errors import NotSupportedError
from forgetting.expectation.moments import Moments
from forgetting.expectation.progress import track

__all__ = ["decay", "solve_spectral"]

DENSE_LIMIT = 2000  # order up to which Q may be diagonalised outright
ONE_RUN_LIMIT = 200  # the same where a single Lanczos run would do
UNSETTLED_LIMIT = 6000  # the same where Lanczos did not settle: a minute, and less than a GiB
MAX_LANCZOS = 800
EPS = float(np.finfo(np.float64).eps)


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


def solve_spectral(
    moments: Moments, z0: Array, steps: IntArray, quantities: Iterable[str]
) -> tuple[dict[str, Array], dict[str, Array], str]:
    """Expected quantities at the given steps, an estimate of the absolute error of each, and how they were found."""
    wanted = set(quantities)
    order = moments.size * (moments.size + 1) // 2
    if order > (DENSE_LIMIT if "forgetting" in wanted else min(ONE_RUN_LIMIT, DENSE_LIMIT)):
        try:
            return _solve(moments, z0, steps, wanted, None)
        except _UnsettledError:
            pass
    return _solve(moments, z0, steps, wanted, _diagonalise(moments))


def _solve(
    moments: Moments, z0: Array, steps: IntArray, wanted: set[str], factor: tuple[Array, Array] | None
) -> tuple[dict[str, Array], dict[str, Array], str]:
    geometry, p = moments.geometry, moments.probability[0]
    share = geometry.counts / geometry.num_tasks
    owner, sigma_sq = geometry.owner, geometry.sigma**2
    kept = sigma_sq * (1 - moments.gains[0]) ** 2

    def form(weights: Array) -> Array:
        """sum_i weights_i b_i b_i^T / 2, packed."""
        return _pack((moments.right[0].T * (0.5 * weights)) @ moments.right[0])

    start = _pack(np.outer(z0, z0))
    functionals: dict[str, Array] = {}
    if "loss" in wanted:
        functionals["loss"] = form(share[owner] * sigma_sq)[None]
    if "error" in wanted:
        functionals["error"] = _pack(np.eye(moments.size))[None]
    if "regret" in wanted:
        functionals["regret"] = form(p[owner] * sigma_sq)[None]
    if wanted & {"task_losses", "forgetting"}:
        each = np.stack([form((owner == m) * sigma_sq) for m in range(geometry.num_distinct)])
        functionals["task_losses"] = each
    if "forgetting" in wanted:
        functionals["learned"] = form(p[owner] * kept)[None]
    against_all = np.concatenate(list(functionals.values()))

    def ritz(vector: Array, against: Array) -> _Ritz:
        if factor is not None:
            return _Ritz(factor[0], factor[1] @ vector, factor[1])
        found = _lanczos(moments, vector, against, steps)
        if not found.settled and len(vector) <= UNSETTLED_LIMIT:
            raise _UnsettledError
        return found

    whole = ritz(start, against_all)
    values: dict[str, Array] = {}
    errors: dict[str, Array] = {}
    for name, against in functionals.items():
        summed = name in ("regret", "learned")
        values[name], errors[name] = _evaluate(whole, against, start, steps, summed=summed)
    result, error = {}, {}
    for name in wanted - {"forgetting"}:
        found, doubt = values[name], errors[name]
        if name == "task_losses":
            result[name], error[name] = np.maximum(found[:, geometry.index], 0), doubt[:, geometry.index]
        elif name == "regret":
            with np.errstate(invalid="ignore", divide="ignore"):
                result[name], error[name] = found[:, 0] / steps, doubt[:, 0] / steps
        else:
            result[name], error[name] = np.maximum(found[:, 0], 0), doubt[:, 0]
    if "forgetting" in wanted:
        total, doubt = _visited(
            moments, whole, start, functionals["task_losses"], ritz, steps, shared=factor is not None
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            result["forgetting"] = (total - values["learned"][:, 0]) / steps
            error["forgetting"] = (doubt + errors["learned"][:, 0]) / steps
            result["forgetting"][steps == 0] = np.nan
    how = "diagonalised" if factor is not None else f"by Lanczos{'' if whole.settled else ', which did not settle'}"
    return result, error, how


def decay(moments: Moments) -> float:
    """The largest eigenvalue of Q on the joint row space: E|w_k - w*|^2 falls like its k-th power.

    By Perron-Frobenius its eigenvector is positive semidefinite, so a Lanczos run from the identity finds it.
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
    whole: _Ritz,
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
    longest = float(np.abs(whole.values).max(initial=0.0)) + whole.off
    alive = np.array([_at_most(longest, int(k), True) for k in steps])
    total, doubt = np.zeros(len(steps)), np.zeros(len(steps))
    both = np.zeros((2, len(whole.values), len(whole.values))) if shared else np.empty(0)
    for m in track(range(len(p)), "forgetting"):
        if p[m] == 0 or ranks[m] == 0:
            continue
        mine = ritz(forms[m], start[None])
        cross = p[m] * _cross(moments, m, whole, mine)
        doubt += 16 * EPS * p[m] * float(np.linalg.norm(forms[m]) * np.linalg.norm(start)) * alive
        if shared:
            both[0] += cross
            both[1] += np.abs(cross)
        else:
            part, its_doubt = _over_visits(cross, np.abs(cross), whole, mine, steps)
            total += part
            missed = np.array([int(k) * (whole.missed(int(k)) + mine.missed(int(k))) for k in steps])
            doubt += its_doubt + 2 * p[m] * float(np.linalg.norm(forms[m]) * np.linalg.norm(start)) * missed
    if shared:
        part, its_doubt = _over_visits(both[0], both[1], whole, whole, steps)
        return total + part, doubt + its_doubt
    return total, doubt


def _cross(moments: Moments, task: int, whole: _Ritz, mine: _Ritz) -> Array:
    """<e_i, S_m e_j S_m> times the weights of both, for the basis of `mine` (rows) and of `whole` (columns)."""
    size = moments.size
    moved = np.concatenate(
        [_pack(moments.step(task, _unpack(whole.basis[i : i + 256], size))) for i in range(0, len(whole.basis), 256)]
    )
    return np.asarray((mine.basis @ moved.T) * mine.weights[:, None] * whole.weights[None, :])


def _over_visits(cross: Array, spread: Array, whole: _Ritz, mine: _Ritz, steps: IntArray) -> tuple[Array, Array]:
    """sum_ij cross_ij (l_i^k - l_j^k) / (l_i - l_j) at each k, and how far rounding can have moved it."""
    found, doubt = np.empty(len(steps)), np.empty(len(steps))
    for i, k in enumerate(steps.tolist()):
        found[i] = float(np.vdot(cross, _divided_differences(mine.values, whole.values, k)))
        most = _divided_differences(np.abs(mine.values), np.abs(whole.values), k)
        raised = _divided_differences(np.abs(mine.values) + mine.off, np.abs(whole.values) + whole.off, k)
        noise = 4 * EPS + whole.drift + mine.drift
        doubt[i] = float(np.vdot(spread, (raised - most) + noise * most))
    return found, doubt


def _diagonalise(moments: Moments) -> tuple[Array, Array]:
    """Eigenvalues of Q on symmetric matrices, and its eigenvectors as rows, packed."""
    size = moments.size
    order = size * (size + 1) // 2
    columns = [_pack(moments.apply(_unpack(np.eye(order)[i : i + 256], size))) for i in range(0, order, 256)]
    matrix = np.concatenate(columns) if columns else np.zeros((0, 0))
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return values, np.ascontiguousarray(vectors.T)


def _lanczos(moments: Moments, start: Array, against: Array, steps: IntArray) -> _Ritz:
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
