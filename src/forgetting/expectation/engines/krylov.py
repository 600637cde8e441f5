"""Self-adjoint maps on symmetric matrices, such as Q: diagonalised, or seen from one matrix by Lanczos."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from forgetting._arrays import Array, IntArray
from forgetting.expectation.engines.pairs import EPS

__all__ = ["Ritz", "SelfAdjoint", "Watch", "diagonalise", "lanczos", "pack", "powers_watched", "unpack"]

#: what has to settle, from eigenvalues and eigenvectors of the tridiagonal matrix, the basis and the norm of the start:
#: numbers, the sums of their absolute terms, and by how much the numbers may still move
Watch = Callable[[Array, Array, Array, float], tuple[Array, Array, Array]]


class SelfAdjoint(Protocol):
    """A self-adjoint map on symmetric matrices of order `size`, such as Q."""

    @property
    def size(self) -> int:
        """The order of the matrices."""

    def apply(self, moments: Array, /) -> Array:
        """The map at one matrix, or at each of several (along the first axis)."""


@dataclass(frozen=True)
class Ritz:
    """Q seen from a start v: Q^k v = sum_i (weight_i l_i^k) (row i of basis), exactly or within a Krylov space.

    `drift` is by how much results still moved, relative to the sum of their absolute terms, when Lanczos stopped.
    """

    values: Array
    weights: Array
    basis: Array  # one packed symmetric matrix per row
    drift: float = 0.0
    settled: bool = True
    vectors: Array | None = None  # of the tridiagonal matrix: what turns the vectors of Lanczos into the basis

    @property
    def off(self) -> float:
        """By how much an eigenvalue can be off."""
        return 4 * EPS * max(1.0, float(np.abs(self.values).max(initial=0.0)))

    def missed(self, k: int) -> float:
        """By how much Q^k v can be off, relative to |v|, where Lanczos did not settle."""
        return 0.0 if self.settled else float(min(2.0, 4 * np.exp(-(len(self.values) ** 2) / (2 * max(k, 1)))))


def diagonalise(moments: SelfAdjoint) -> tuple[Array, Array]:
    """Eigenvalues of Q on symmetric matrices, and its eigenvectors as rows, packed."""
    size = moments.size
    order = size * (size + 1) // 2
    columns = [pack(moments.apply(unpack(np.eye(order)[i : i + 256], size))) for i in range(0, order, 256)]
    matrix = np.concatenate(columns) if columns else np.zeros((0, 0))
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return values, np.ascontiguousarray(vectors.T)


def powers_watched(against: Array, steps: IntArray) -> Watch:
    """<f, Q^k v> for every f of `against` and every k of `steps`."""
    noise = 4 * EPS * np.maximum(1.0, steps)[:, None]  # an eigenvalue is off by eps, its k-th power by k eps

    def watch(values: Array, vectors: Array, basis: Array, norm: float) -> tuple[Array, Array, Array]:
        reach = (against @ basis.T) @ vectors * (norm * vectors[0])
        terms = np.stack([np.power(values, k) for k in steps.tolist()])
        current = terms @ reach.T
        spread = np.abs(terms) @ np.abs(reach.T)
        return current, spread, 1e-13 * np.abs(current) + noise * spread

    return watch


def lanczos(moments: SelfAdjoint, start: Array, watch: Watch, longest: int, most: int) -> Ritz:
    """Krylov space of `start`, grown until what is watched has settled, to at most `most` dimensions.

    `longest` is the largest k of interest.
    """
    size = moments.size
    norm = float(np.linalg.norm(start))
    limit = min(most, len(start))
    basis = np.empty((limit + 1, len(start)))
    if norm == 0:
        return Ritz(np.zeros(1), np.zeros(1), np.zeros((1, len(start))))
    basis[0] = start / norm
    diagonal, off = np.empty(limit), np.empty(limit)
    previous: Array | None = None
    settled = count = 0
    drift = top = 0.0
    check = 5
    for count in range(1, limit + 1):
        vector = pack(moments.apply(unpack(basis[count - 1], size)))
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
            current, spread, slack = watch(values, vectors, basis[:count], norm)
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
    exhausted = (settled < 3 and count < limit) or count == len(start)
    values, vectors = _tridiagonal(diagonal[:count], off[: count - 1])
    drift = drift if settled == 3 else 0.0  # what has not settled has a bound instead
    return Ritz(values, norm * vectors[0], vectors.T @ basis[:count], drift, exhausted or settled == 3, vectors)


def _tridiagonal(diagonal: Array, off: Array) -> tuple[Array, Array]:
    from scipy.linalg import eigh_tridiagonal

    values, vectors = eigh_tridiagonal(diagonal, off)
    return values, vectors


@lru_cache(maxsize=4)
def _packing(size: int) -> tuple[tuple[IntArray, IntArray], Array]:
    rows, columns = np.triu_indices(size)
    return (rows, columns), np.where(rows == columns, 1.0, np.sqrt(2.0))


def pack(matrices: Array) -> Array:
    """Symmetric matrices as vectors with the same inner product."""
    where, factor = _packing(matrices.shape[-1])
    return np.asarray(matrices[..., where[0], where[1]] * factor)


def unpack(vectors: Array, size: int) -> Array:
    """The symmetric matrices of packed vectors."""
    where, factor = _packing(size)
    matrices = np.zeros((*vectors.shape[:-1], size, size))
    matrices[..., where[0], where[1]] = vectors / factor
    matrices[..., where[1], where[0]] = vectors / factor
    return matrices
