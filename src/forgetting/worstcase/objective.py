"""The objective of a search: the largest expected loss or forgetting of subspaces over unit w*, and its gradient.

z = w - w* moves by the projection P_m onto the kernel of the task that is learned, and |z_0| = 1. Each quantity is
<z_0 z_0', C> with a matrix C that depends on the P_m and on the ordering, so that its supremum over w* is the largest
eigenvalue of C, and its gradient follows from the top eigenvector. All is batched over the first axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from forgetting.compute.devices import Device, SymmetricPacking, packed_places
from forgetting.core.arrays import Array, IntArray
from forgetting.worstcase.matrix_powers import Chain, flipped, symmetrised

TINY = 1e-100  # values below count as zero
EVERY = 16  # factors of a product from one division by its norm to the next
SQUARINGS = 5  # of the matrix whose top eigenvector is refined on a device


@dataclass(frozen=True, eq=False)
class SymmetricBasis(SymmetricPacking):
    """A packing of symmetric matrices of order d, and maps of them as matrices.

    The map B -> sum_m p_m P_m B P_m is a matrix of order d (d + 1) / 2. The matrix is gathered from
    N = sum_m p_m vec(P_m) vec(P_m)', and so is the adjoint; where to gather from is worked out once.

    >>> from forgetting.compute.devices import HOST
    >>> basis = SymmetricBasis.made(HOST, 2)
    >>> basis.pack(np.array([[[1.0, 2.0], [2.0, 3.0]]])).round(4).tolist()
    [[1.0, 2.8284, 3.0]]
    """

    _straight: Any
    _crossed: Any
    _map_weights: Any
    _back: Any
    _back_weights: Any

    @classmethod
    def made(cls, device: Device, d: int) -> SymmetricBasis:
        """The basis, with its indices on the device."""
        i, j = np.triu_indices(d)
        size, place = len(i), packed_places(d)
        full = np.where(np.eye(d, dtype=bool), 1.0, np.sqrt(0.5))
        half = np.where(i == j, np.sqrt(0.5), 1.0)
        straight = (i[:, None] * d + i) * d**2 + (j[:, None] * d + j)
        crossed = (i[:, None] * d + j) * d**2 + (j[:, None] * d + i)
        row, column = place[:, None, :, None], place[None, :, None, :]  # at (i, k, j, l): of (i, j) and of (k, l)
        weights = full[:, None, :, None] * full[None, :, None, :]
        return cls(
            **vars(SymmetricPacking.made(device, d)),
            _straight=device.put_index(straight.reshape(-1)),
            _crossed=device.put_index(crossed.reshape(-1)),
            _map_weights=device.put(np.outer(half, half).reshape(-1)),
            _back=device.put_index((row * size + column).reshape(-1)),
            _back_weights=device.put(weights.reshape(-1)),
        )

    def gather(self, outer: Any) -> Any:
        """The matrix (..., size, size) of the map B -> P B P, for vec(P) vec(P)' or a sum of such (..., d^2, d^2)."""
        xp = self.device.xp
        flat = xp.reshape(outer, (*outer.shape[:-2], self.d**4))
        axis = flat.ndim - 1
        gathered = xp.take(flat, self._straight, axis=axis) + xp.take(flat, self._crossed, axis=axis)
        return xp.reshape(gathered * self._map_weights, (*outer.shape[:-2], self.size, self.size))

    def spread(self, cotangent: Any) -> Any:
        """The adjoint of `gather` at a symmetric cotangent (..., size, size), as (..., d^2, d^2)."""
        xp = self.device.xp
        flat = xp.reshape(cotangent, (*cotangent.shape[:-2], self.size**2))
        spread_out = xp.take(flat, self._back, axis=flat.ndim - 1) * self._back_weights
        return xp.reshape(spread_out, (*cotangent.shape[:-2], self.d**2, self.d**2))


class ObjectiveValues(NamedTuple):
    """Values of a batch of task collections.

    Attributes:
        log_value: (batch,).
        start: the unit z_0 that attains it, (batch, d, 1).
        projections: the gradient of `log_value` in the P_m, (batch, T, d, d); None where only values were asked for.
        weights: the gradient in the p_m as if they were free numbers, (batch, T); None as above.
    """

    log_value: Any
    start: Any
    projections: Any
    weights: Any


class Objective(Protocol):
    """A quantity of task collections (batch, T, d, d) with probabilities (batch, T)."""

    @property
    def device(self) -> Device:
        """The device that computes the quantity."""

    def of(self, P: Any, p: Any, start: Any, *, gradient: bool = True) -> ObjectiveValues:
        """The values, with `gradient` the gradient; the search of a top eigenvector begins at `start` (batch, d, 1)."""

    def numbers(self, T: int, d: int) -> float:
        """Roughly the number of numbers that one collection needs in memory."""


def top_vector(device: Device, matrices: Any, start: Any) -> Any:
    """Unit top eigenvectors (batch, d, 1) of positive semidefinite matrices.

    On the CPU by an eigendecomposition; on devices, where that is slow, by powers of the matrices from `start`, which
    converge in the course of a search.
    """
    xp = device.xp
    if device.host:
        return np.linalg.eigh(matrices)[1][:, :, -1:]
    matrices = matrices / (xp.linalg.vector_norm(matrices, axis=(1, 2), keepdims=True) + TINY)
    for _ in range(SQUARINGS):
        matrices = matrices @ matrices
    moved = matrices @ start
    size = xp.linalg.vector_norm(moved, axis=(1, 2), keepdims=True)
    return xp.where(size > TINY, moved / (size + TINY), start)


def _attained(device: Device, matrix: Any, start: Any) -> tuple[Any, Any, Any]:
    """The top eigenvector z, the value z' C z, and its logarithm."""
    xp = device.xp
    z = top_vector(device, matrix, start)
    value = xp.sum(z * (matrix @ z), axis=(1, 2))
    positive = (xp.abs(value) + value) / 2 + TINY
    return z, positive, xp.log(positive)


@dataclass(frozen=True, eq=False)
class IndependentDraws:
    """Draws of T tasks for k steps, whose maps are matrices in a basis of the symmetric matrices."""

    device: Device
    d: int
    k: int

    @cached_property
    def basis(self) -> SymmetricBasis:
        """The basis of the symmetric matrices."""
        return SymmetricBasis.made(self.device, self.d)


@dataclass(frozen=True, eq=False)
class Drawn(IndependentDraws):
    """E L(w_k) for independent draws: C = Q^k(B_0), Q(B) = sum_m p_m P_m B P_m, B_0 = 1/2 sum_m b_m (I - P_m).

    Attributes:
        shares: the b_m, (T,); None for b = p, the loss of the next task.
    """

    shares: Array | None

    @cached_property
    def _shares(self) -> Any:
        return None if self.shares is None else self.device.put(self.shares)[None, :]

    def numbers(self, T: int, d: int) -> float:
        size = d * (d + 1) / 2
        return 2.0 * self.k.bit_length() * size**2 + 4.0 * d**4 + 12.0 * T * d**2

    def of(self, P: Any, p: Any, start: Any, *, gradient: bool = True) -> ObjectiveValues:
        xp, basis, (batch, T, d, _) = self.device.xp, self.basis, P.shape
        flat = xp.reshape(P, (batch, T, d * d))
        chain = Chain.made(
            self.device, basis.gather(flipped(xp, flat) @ (flat * p[:, :, None])), self.k
        )  # N = sum_m p_m vec(P_m) vec(P_m)'
        shares = p if self._shares is None else self._shares + 0 * p
        mixed = xp.reshape(shares[:, None, :] @ flat, (batch, d, d))
        identity = xp.eye(d, dtype=xp.float64, device=self.device.where)
        first = 0.5 * (xp.sum(shares, axis=1)[:, None, None] * identity - mixed)
        columns, seen = chain.apply(basis.pack(first)[:, :, None])
        z, value, log = _attained(self.device, basis.unpack(columns[:, :, 0]), start)
        log = log + chain.log_scale
        if not gradient:
            return ObjectiveValues(log, z, None, None)
        outer = basis.pack(z @ flipped(xp, z)) / value[:, None]
        of_map, _, of_first = chain.pull(outer[:, :, None], seen)
        moved = flat @ basis.spread(of_map)  # (batch, T, d^2)
        first_bar = xp.reshape(basis.unpack(of_first[:, :, 0]), (batch, d * d))
        of_P = 2 * p[:, :, None] * moved - 0.5 * shares[:, :, None] * first_bar[:, None, :]
        of_p = xp.sum(moved * flat, axis=2)
        if self._shares is None:
            trace = xp.sum(first_bar * xp.reshape(identity, (1, d * d)), axis=1)
            of_p = of_p + 0.5 * (trace[:, None] - (flat @ first_bar[:, :, None])[:, :, 0])
        return ObjectiveValues(log, z, xp.reshape(of_P, P.shape), of_p)


@dataclass(frozen=True, eq=False)
class DrawnForgetting(IndependentDraws):
    """E F(k) for independent draws: C = 1/k sum_m of the coefficient of e in (Q + e p_m Pi_m)^k (1/2 (I - P_m)).

    Pi_m(B) = P_m B P_m. A visit of m at step t leaves Q^(t-1) p_m Pi_m Q^(k-t), and the coefficient of e sums over t.
    """

    def numbers(self, T: int, d: int) -> float:
        size = d * (d + 1) / 2
        return 2.0 * (T + 1) * (self.k.bit_length() + 2) * size**2 + 4.0 * T * d**4

    def of(self, P: Any, p: Any, start: Any, *, gradient: bool = True) -> ObjectiveValues:
        xp, basis, (batch, T, d, _) = self.device.xp, self.basis, P.shape
        flat = xp.reshape(P, (batch, T, d * d))
        others = basis.gather(flat[:, :, :, None] * (flat * p[:, :, None])[:, :, None, :])
        beside = xp.reshape(xp.permute_dims(others, (0, 2, 1, 3)), (batch, basis.size, T * basis.size))
        chain = Chain.made(self.device, xp.sum(others, axis=1), self.k, others=beside)
        identity = xp.eye(d, dtype=xp.float64, device=self.device.where)
        columns, seen = chain.apply(flipped(xp, basis.pack(0.5 * (identity - P))))
        z, value, log = _attained(self.device, basis.unpack(columns[:, :, 0]), start)
        log = log + (chain.log_scale - float(np.log(self.k)))
        if not gradient:
            return ObjectiveValues(log, z, None, None)
        outer = basis.pack(z @ flipped(xp, z)) / value[:, None]
        of_map, of_others, of_columns = chain.pull(outer[:, :, None], seen)
        apart = xp.permute_dims(xp.reshape(of_others, (batch, basis.size, T, basis.size)), (0, 2, 1, 3))
        moved = basis.spread(apart + of_map[:, None, :, :]) @ flat[:, :, :, None]
        moved = moved[:, :, :, 0]
        of_P = xp.reshape(2 * p[:, :, None] * moved, P.shape) - 0.5 * basis.unpack(flipped(xp, of_columns))
        return ObjectiveValues(log, z, of_P, xp.sum(moved * flat, axis=2))


@dataclass(frozen=True, eq=False)
class InOrder:
    """1/2 sum_m b_m |(I - P_m) A z|^2 after fixed visits: A = A_rest A_epoch^n with products of projections.

    Forgetting has b_m = the share of visits of m, since a task that was just learned has no loss.

    Attributes:
        epoch: the tasks of one cycle, in their order.
        cycles: n, how often the epoch is repeated.
        rest: how many tasks of the epoch follow after the last full cycle.
        shares: the b_m.
    """

    device: Device
    epoch: IntArray
    cycles: int
    rest: int
    shares: Array

    def numbers(self, T: int, d: int) -> float:
        return 2.0 * (len(self.epoch) + 2 * self.cycles.bit_length() + 6 * T) * d**2

    @cached_property
    def _shares(self) -> Any:
        return self.device.put(self.shares)

    def of(self, P: Any, p: Any, start: Any, *, gradient: bool = True) -> ObjectiveValues:
        xp, (batch, T, d, _) = self.device.xp, P.shape
        identity = xp.eye(d, dtype=xp.float64, device=self.device.where)
        order = self.epoch.tolist()
        prefix, sizes = [self.device.zeros(batch, d, d) + identity], {}
        for place, task in enumerate(order, 1):
            product = P[:, task, :, :] @ prefix[-1]
            if place % EVERY == 0:  # so that long products do not underflow; the gradient takes these for constants
                sizes[place] = xp.linalg.vector_norm(product, axis=(1, 2), keepdims=True) + TINY
                product = product / sizes[place]
            prefix.append(product)
        log = self.device.zeros(batch)
        for place, size in sizes.items():
            log = log + 2.0 * (self.cycles + (place <= self.rest)) * xp.log(size[:, 0, 0])
        power, chain = prefix[0], None
        seen: list[Any] = []
        if self.cycles:
            chain = Chain.made(self.device, prefix[-1], self.cycles, symmetric=False)
            power, seen = chain.apply(power)
            log = log + 2 * chain.log_scale
        run = prefix[self.rest] @ power
        mixed = xp.reshape(self._shares[None, :] @ xp.reshape(P, (batch, T, d * d)), (batch, d, d))
        last = 0.5 * (float(self.shares.sum()) * identity - mixed)
        z, value, more = _attained(self.device, flipped(xp, run) @ last @ run, start)
        log = log + more
        if not gradient:
            return ObjectiveValues(log, z, None, None)
        end = run @ z
        scale = 1 / value[:, None, None]
        of_whole = 2 * scale * (last @ end) @ flipped(xp, z)
        of_last = scale * end @ flipped(xp, end)
        of_P = [-0.5 * float(share) * of_last for share in self.shares]
        below = None
        if chain is not None:
            below = chain.pull(flipped(xp, prefix[self.rest]) @ of_whole, seen)[0]
        for place in range(len(order), 0, -1):
            if place == self.rest:
                extra = of_whole @ flipped(xp, power)
                below = extra if below is None else below + extra
            if below is not None:
                task = order[place - 1]
                if place in sizes:
                    below = below / sizes[place]
                of_P[task] = of_P[task] + 0.5 * symmetrised(xp, below @ flipped(xp, prefix[place - 1]))
                below = P[:, task, :, :] @ below
        return ObjectiveValues(log, z, xp.stack(of_P, axis=1), 0 * p)
