"""The map B -> sum_m p_m P_m B P_m on symmetric matrices of order d, as a matrix of order d (d + 1) / 2.

The basis is orthonormal: e_i e_i' and (e_i e_j' + e_j e_i') / sqrt(2). The matrix is gathered from
N = sum_m p_m vec(P_m) vec(P_m)', and so is the adjoint; where to gather from is worked out once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forgetting.compute.devices import Device

__all__ = ["SymmetricBasis"]


@dataclass(frozen=True, eq=False)
class SymmetricBasis:
    """The orthonormal basis of symmetric matrices of order d, and the indices that it needs.

    >>> from forgetting.compute.devices import HOST
    >>> basis = SymmetricBasis.made(HOST, 2)
    >>> basis.pack(np.array([[[1.0, 2.0], [2.0, 3.0]]])).round(4).tolist()
    [[1.0, 2.8284, 3.0]]
    """

    device: Device
    d: int
    size: int
    _upper: Any
    _upper_weights: Any
    _full: Any
    _full_weights: Any
    _straight: Any
    _crossed: Any
    _map_weights: Any
    _back: Any
    _back_weights: Any

    @classmethod
    def made(cls, device: Device, d: int) -> SymmetricBasis:
        """The basis, with its indices on the device."""
        i, j = np.triu_indices(d)
        size = len(i)
        place = np.empty((d, d), dtype=np.int64)
        place[i, j] = place[j, i] = np.arange(size)
        full = np.where(np.eye(d, dtype=bool), 1.0, np.sqrt(0.5))
        half = np.where(i == j, np.sqrt(0.5), 1.0)
        straight = (i[:, None] * d + i) * d**2 + (j[:, None] * d + j)
        crossed = (i[:, None] * d + j) * d**2 + (j[:, None] * d + i)
        row, column = place[:, None, :, None], place[None, :, None, :]  # at (i, k, j, l): of (i, j) and of (k, l)
        weights = full[:, None, :, None] * full[None, :, None, :]
        return cls(
            device, d, size,
            device.put_index(i * d + j), device.put(np.where(i == j, 1.0, np.sqrt(2.0))),
            device.put_index(place.reshape(-1)), device.put(full.reshape(-1)),
            device.put_index(straight.reshape(-1)), device.put_index(crossed.reshape(-1)),
            device.put(np.outer(half, half).reshape(-1)),
            device.put_index((row * size + column).reshape(-1)), device.put(weights.reshape(-1)),
        )  # fmt: skip

    def pack(self, matrices: Any) -> Any:
        """The coordinates of symmetric matrices (..., d, d), as (..., size)."""
        xp = self.device.xp
        flat = xp.reshape(matrices, (*matrices.shape[:-2], self.d**2))
        return xp.take(flat, self._upper, axis=flat.ndim - 1) * self._upper_weights

    def unpack(self, vectors: Any) -> Any:
        """The symmetric matrices (..., d, d) of coordinates (..., size)."""
        xp = self.device.xp
        flat = xp.take(vectors, self._full, axis=vectors.ndim - 1) * self._full_weights
        return xp.reshape(flat, (*vectors.shape[:-1], self.d, self.d))

    def gather(self, outer: Any) -> Any:
        """The matrix (..., size, size) of the map B -> P B P, for vec(P) vec(P)' or a sum of such (..., d^2, d^2)."""
        xp = self.device.xp
        flat = xp.reshape(outer, (*outer.shape[:-2], self.d**4))
        axis = flat.ndim - 1
        found = xp.take(flat, self._straight, axis=axis) + xp.take(flat, self._crossed, axis=axis)
        return xp.reshape(found * self._map_weights, (*outer.shape[:-2], self.size, self.size))

    def spread(self, cotangent: Any) -> Any:
        """The adjoint of `gather` at a symmetric cotangent (..., size, size), as (..., d^2, d^2)."""
        xp = self.device.xp
        flat = xp.reshape(cotangent, (*cotangent.shape[:-2], self.size**2))
        found = xp.take(flat, self._back, axis=flat.ndim - 1) * self._back_weights
        return xp.reshape(found, (*cotangent.shape[:-2], self.d**2, self.d**2))
