"""Powers of self-adjoint maps on symmetric matrices, such as Q.

The map is diagonalised, or seen from one matrix by Lanczos. Sums of powers over steps are divided differences of x^k
over two and three points, which stay accurate where points meet and k is huge.

Packed matrices live on the device of the map, and are what the array API knows; all else is small, and NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from forgetting.compute.devices import HOST, Device, SymmetricPacking
from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS
from forgetting.errors import NotSupportedError

OVERFLOW = "steps multiply errors by more than float64 can hold; scale the data, or take smaller steps"
AT_ONCE = 256  # packed matrices that a map is applied to at once
NEAR = 0.5  # k times the largest gap, relative to the largest point, below which a series is summed
TERMS = 18  # of that series: 0.5^18 / 20! is far below rounding
#: what has to settle, from eigenvalues and eigenvectors of the tridiagonal matrix, the basis (on the device of the map)
#: and the norm of the start: numbers, the sums of their absolute terms, and by how much the numbers may still move
Watch = Callable[[Array, Array, Any, float], tuple[Array, Array, Array]]


class SelfAdjoint(Protocol):
    """A self-adjoint map on symmetric matrices of order `size`, such as Q."""

    @property
    def size(self) -> int:
        """The order of the matrices."""

    @property
    def device(self) -> Device:
        """Where the map computes."""

    def apply(self, moments: Any, /) -> Any:
        """The map at one matrix, or at each of several (along the first axis)."""


@dataclass(frozen=True)
class Ritz:
    """Q seen from a start v: Q^k v = sum_i (weight_i l_i^k) (row i of basis), exactly or within a Krylov space.

    `drift` is the last change of the results, relative to the sum of their absolute terms, when Lanczos stopped.
    """

    values: Array
    weights: Array
    basis: Any  # one packed symmetric matrix per row, on the device of the map
    drift: float = 0.0
    settled: bool = True
    vectors: Array | None = None  # of the tridiagonal matrix: what turns the vectors of Lanczos into the basis

    @property
    def off(self) -> float:
        """A bound on the error of an eigenvalue."""
        return 4 * EPS * max(1.0, float(np.abs(self.values).max(initial=0.0)))

    def missed(self, k: int) -> float:
        """A bound on the error of Q^k v, relative to |v|, where Lanczos did not settle."""
        return 0.0 if self.settled else float(min(2.0, 4 * np.exp(-(len(self.values) ** 2) / (2 * max(k, 1)))))


def diagonalise(moments: SelfAdjoint) -> tuple[Array, Any]:
    """Eigenvalues of Q on symmetric matrices, and its eigenvectors as rows, packed, on the device of the map."""
    size, device, xp = moments.size, moments.device, moments.device.xp
    order = size * (size + 1) // 2
    unit = device.put(np.eye(order))
    parts = _parts(unit)
    columns = [pack(moments.apply(unpack(part, size, device)), device) for part in parts]
    matrix = xp.concat(columns, axis=0) if columns else unit
    if not bool(xp.all(xp.isfinite(matrix))):
        raise NotSupportedError(OVERFLOW)
    values, vectors = xp.linalg.eigh((matrix + matrix.T) / 2)
    return device.take(values), np.ascontiguousarray(vectors.T) if device.host else vectors.T


def powers_watched(against: Any, steps: IntArray, device: Device = HOST) -> Watch:
    """<f, Q^k v> for every f of `against`, on the device, and every k of `steps`."""
    noise = 4 * EPS * np.maximum(1.0, steps)[:, None]  # an eigenvalue is off by eps, its k-th power by k eps

    def watch(values: Array, vectors: Array, basis: Any, norm: float) -> tuple[Array, Array, Array]:
        reach = device.take(against @ basis.T) @ vectors * (norm * vectors[0])
        terms = np.stack([np.power(values, k) for k in steps.tolist()])
        current = terms @ reach.T
        spread = np.abs(terms) @ np.abs(reach.T)
        return current, spread, 1e-13 * np.abs(current) + noise * spread

    return watch


def lanczos(moments: SelfAdjoint, start: Any, watch: Watch, longest: int, most: int) -> Ritz:
    """Krylov space of `start`, grown until what is watched has settled, to at most `most` dimensions.

    `longest` is the largest k of interest.
    """
    size, device, length = moments.size, moments.device, start.shape[0]
    length_of = device.xp.linalg.vector_norm
    norm = float(length_of(start))
    limit = min(most, length)
    if norm == 0:
        return Ritz(np.zeros(1), np.zeros(1), device.zeros(1, length))
    basis = device.empty(limit + 1, length)
    basis[0, :] = start / norm
    diagonal, off = np.empty(limit), np.empty(limit)
    previous: Array | None = None
    settled = count = 0
    drift = top = 0.0
    check = 5
    for count in range(1, limit + 1):
        last, span = basis[count - 1, :], basis[:count, :]
        vector = pack(moments.apply(unpack(last, size, device)), device)
        diagonal[count - 1] = float(vector @ last)
        for _ in range(2):  # full re-orthogonalisation, twice is enough
            vector -= span.T @ (span @ vector)
        off[count - 1] = float(length_of(vector))
        if off[count - 1] < 10 * EPS * np.abs(diagonal[:count]).max():
            break
        basis[count, :] = vector / float(off[count - 1])
        if count >= check or count == limit:
            check = count + max(5, count // 10)
            values, vectors = _tridiagonal(diagonal[:count], off[: count - 1])
            current, spread, slack = watch(values, vectors, span, norm)
            if previous is not None:
                moved = np.abs(current - previous)
                drift = float(np.max(moved / np.where(spread > 0, spread, np.inf), initial=0.0))
                # where all powers vanish nothing moves: then the largest eigenvalue must have been found
                steady = np.all(spread > 0) or abs(values[-1] - top) <= max(4 * EPS, 1e-7 / longest)
                settled = settled + 1 if steady and np.all(moved <= slack) else 0
            previous, top = current, float(values[-1])
            if settled == 3:
                break
    # an invariant space, or all of it: nothing is left to find
    exhausted = (settled < 3 and count < limit) or count == length
    values, vectors = _tridiagonal(diagonal[:count], off[: count - 1])
    drift = drift if settled == 3 else 0.0  # what has not settled has a bound instead
    turned = device.put(vectors.T) @ basis[:count, :]
    return Ritz(values, norm * vectors[0], turned, drift, exhausted or settled == 3, vectors)


def _tridiagonal(diagonal: Array, off: Array) -> tuple[Array, Array]:
    from scipy.linalg import eigh_tridiagonal

    if not (np.isfinite(diagonal).all() and np.isfinite(off).all()):
        raise NotSupportedError(OVERFLOW)
    values, vectors = eigh_tridiagonal(diagonal, off)
    return values, vectors


def _parts(rows: Any) -> list[Any]:
    """Parts of the rows, small enough that matrices made from them need little memory."""
    count = rows.shape[0]
    return [rows[i : min(i + AT_ONCE, count), :] for i in range(0, count, AT_ONCE)]


class Stepping(SelfAdjoint, Protocol):
    """A map that is a mean of S_m A S_m^T over tasks m."""

    def step(self, task: int, moments: Any, /) -> Any:
        """S_m A S_m^T for one matrix, or for each of a stack."""


def stepped(moments: Stepping, task: int, basis: Any) -> Any:
    """S_m A S_m^T for each of several packed matrices, packed."""
    size, device = moments.size, moments.device
    moved = [pack(moments.step(task, unpack(part, size, device)), device) for part in _parts(basis)]
    return device.xp.concat(moved, axis=0) if moved else basis


@lru_cache(maxsize=4)
def _packing(size: int, device: Device) -> SymmetricPacking:
    return SymmetricPacking.made(device, size)


def pack(matrices: Any, device: Device = HOST) -> Any:
    """Symmetric matrices as vectors with the same inner product.

    >>> pack(np.array([[1.0, 0.0], [0.0, 3.0]])).tolist()
    [1.0, 0.0, 3.0]
    """
    return _packing(matrices.shape[-1], device).pack(matrices)


def unpack(vectors: Any, size: int, device: Device = HOST) -> Any:
    """The symmetric matrices of packed vectors.

    >>> unpack(np.array([1.0, 0.0, 3.0]), 2).tolist()
    [[1.0, 0.0], [0.0, 3.0]]
    """
    return _packing(size, device).unpack(vectors)


def differences(a: Array, b: Array, k: int) -> Array:
    """(a^k - b^k) / (a - b) = sum over s < k of a^s b^(k-1-s), accurate also where a and b are close: |.| <= k.

    >>> differences(np.array([0.5, 1.0]), np.array([0.5, 0.5]), 3).tolist()
    [0.75, 1.75]
    """
    x, y = np.broadcast_arrays(a, b)
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


def second_differences(a: Array, b: Array, c: Array, k: int) -> Array:
    """The divided difference of x^k over a, b and c: the sum of a^r b^s c^t over all r + s + t = k - 2.

    From the two points farthest apart, relative to the largest; where k times their gap is small, by the series
    sum_r C(k, r + 2) (-1)^r h_r(gap of b, gap of c) around the largest point.

    >>> second_differences(np.array([1.0]), np.array([0.5]), np.array([0.5]), 4).tolist()   # 1 + 2/2 + 3/4
    [2.75]
    """
    x, y, z = np.broadcast_arrays(a, b, c)
    if k < 2:
        return np.zeros(x.shape)
    # |x| >= |y|, |x| >= |z|, and z is at least as far from x as y is
    x, y = np.where(np.abs(x) >= np.abs(y), x, y), np.where(np.abs(x) >= np.abs(y), y, x)
    x, z = np.where(np.abs(x) >= np.abs(z), x, z), np.where(np.abs(x) >= np.abs(z), z, x)
    y, z = np.where(np.abs(x - y) <= np.abs(x - z), y, z), np.where(np.abs(x - y) <= np.abs(x - z), z, y)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        near_gap = np.where(x == 0, 0.0, (x - y) / x)
        far_gap = np.where(x == 0, 0.0, (x - z) / x)
        scale = np.power(x, k - 2)
        close = far_gap * k < NEAR
        result = (differences(x, y, k) - differences(y, z, k)) / np.where(close, 1.0, x - z)
        if np.any(close):
            result[close] = scale[close] * _series(near_gap[close], far_gap[close], k)
    return result


def _series(near: Array, far: Array, k: int) -> Array:
    """The divided difference over 1, 1 - near and 1 - far, for k far < NEAR."""
    total, power, mixed = np.zeros(near.shape), np.ones(near.shape), np.ones(near.shape)
    binomial = k * (k - 1.0) / 2
    for r in range(TERMS):
        total += binomial * mixed
        binomial *= -(k - r - 2.0) / (r + 3.0)
        power = power * far
        mixed = mixed * near + power  # h_(r+1)(near, far) = near h_r(near, far) + far^(r+1)
    return total
