"""Independent draws of tasks that no w solves: z <- S_m z + c_m, centred where the mean of c_m vanishes.

With mu = E z x^T for constants x (K = E x x^T) and W = E z z^T a step is mu <- M mu and W <- Q[W] + N[mu] + C, where
M = sum_m p_m S_m, N[mu] = sum_m p_m (S_m mu c_m^T + c_m mu^T S_m) and C = sum_m p_m c_m K c_m^T. Coordinates are along
eigenvectors of M. What no drawn task ever moves joins the constants, so that all eigenvalues of M and Q lie below 1
where gains lie between 0 and 2. Wang, Agaskar and Lu 2015 (arXiv 1502.00190) lift systems without a solution likewise.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from forgetting.core.arrays import Array
from forgetting.errors import NotSupportedError
from forgetting.expectation.engines.krylov import pack
from forgetting.expectation.engines.moment_map import Moments
from forgetting.expectation.engines.pairs import EPS
from forgetting.expectation.quantities import Form

__all__ = ["Affine", "Functional", "centred"]


@dataclass(frozen=True, eq=False)
class Functional:
    """A number that is linear in W, mu and K: <matrix, W> + <linear, mu> + floor.

    `matrix` is packed, on the device of the map Q, and `size` is its norm.
    """

    matrix: Any
    linear: Array
    floor: float
    size: float


@dataclass(frozen=True, eq=False)
class Affine:
    """The centred recursion, in D coordinates that are learned, with q constants; lengths are divided by `unit`.

    Attributes:
        moments: the map Q on these coordinates, without constants.
        misses: R x q: direction i misses its target by u_i . z - misses_i . x.
        means: the eigenvalues of M.
        nearest: 1 less the largest of `means`, without rounding of the difference.
        first, second, constants: mu and W at the start, and K.
        contracts: whether all gains lie between 0 and 2, so that a stationary law exists.
        far: |z| at the start, with what no drawn task moves, before the coordinates were chosen.
    """

    moments: Moments
    misses: Array = field(repr=False)
    means: Array = field(repr=False)
    nearest: float
    first: Array = field(repr=False)
    second: Array = field(repr=False)
    constants: Array = field(repr=False)
    contracts: bool
    far: float

    @property
    def rows(self) -> Array:
        """u_i of all R directions, R x D."""
        return self.moments.right[0]

    @property
    def size(self) -> int:
        """D."""
        return len(self.means)

    @property
    def chance(self) -> Array:
        """p of the task of each direction."""
        return np.asarray(self.moments.probability[0][self.moments.geometry.owner])

    @property
    def drawn(self) -> list[int]:
        """The distinct tasks with p > 0."""
        return np.flatnonzero(self.moments.probability[0] > 0).tolist()

    @cached_property
    def pushes(self) -> Array:
        """c_m of every distinct task, (tasks, D, q)."""
        geometry = self.moments.geometry
        result = np.zeros((geometry.num_distinct, self.size, self.misses.shape[1]))
        for m in self.drawn:
            block = geometry.block(m)
            result[m] = self.moments.left[0][block].T @ self.misses[block]
        return result

    @cached_property
    def spread(self) -> Array:
        """C."""
        pushed = [
            self.moments.probability[0][m] * self.pushes[m] @ self.constants @ self.pushes[m].T for m in self.drawn
        ]
        total = np.sum(pushed, axis=0) if pushed else np.zeros((self.size, self.size))
        return np.asarray((total + total.T) / 2)

    @property
    def still(self) -> bool:
        """Whether no step pushes: some w solves all tasks that are drawn."""
        return not self.pushes.any()

    def coupled(self) -> Any:
        """N[e_j z_j^T] for each eigenvector e_j of M, with mu = sum_j e_j z_j^T at the start; and C, packed, D + 1."""
        total = np.zeros((self.size + 1, self.size, self.size))
        for m in self.drawn:
            moved = self.moments.probability[0][m] * self.steps[m]
            total[:-1] += moved.T[:, :, None] * (self.first @ self.pushes[m].T)[:, None, :]
        total = total + np.swapaxes(total, 1, 2)
        total[-1] = self.spread
        return self.packed(total)

    def packed(self, matrices: Array) -> Any:
        """Symmetric matrices, packed, on the device of the map Q."""
        device = self.moments.device
        return pack(device.put(matrices), device)

    @cached_property
    def steps(self) -> Array:
        """S_m of every distinct task, (tasks, D, D)."""
        geometry, left = self.moments.geometry, self.moments.left[0]
        blocks = [geometry.block(m) for m in range(geometry.num_distinct)]
        return np.array([np.eye(self.size) - left[block].T @ self.rows[block] for block in blocks])

    @cached_property
    def _there(self) -> tuple[Any, Any]:
        """c_m of every distinct task, and their mean, on the device of the map Q."""
        device = self.moments.device
        return device.put(self.pushes), device.put(np.tensordot(self.moments.probability[0], self.pushes, 1))

    def adjoint(self, matrix: Any) -> Any:
        """sum_m 2 p_m S_m A c_m for a symmetric A, or a stack of them: its inner product with mu is <A, N[mu]>.

        On the device of the map Q, as A is.
        """
        pushes, mean = self._there
        return 2 * (matrix @ mean - self.moments.pulled(matrix, pushes))

    def functional(self, form: Form, share: Array) -> Functional:
        """sum_i share_i weight_i / 2 E rho_i^2 over all R directions i."""
        return self._read(self.rows, self.misses, share * self.moments.weights(form)[0])

    def tests_after(self, form: Form) -> Functional:
        """sum_m p_m times the form of the held-out data of m just after m was learned, without what no w can fit."""
        geometry, weights = self.moments.geometry, self.moments.weights(form)[0]
        rows, misses, share = self.rows.copy(), self.misses.copy(), np.zeros(len(weights))
        for m in self.drawn:
            held = geometry.block(geometry.num_learned + m)
            rows[held] = self.rows[held] @ self.steps[m]
            misses[held] = self.misses[held] - self.rows[held] @ self.pushes[m]
            share[held] = self.moments.probability[0][m]
        return self._read(rows, misses, share * weights)

    def _read(self, rows: Array, misses: Array, weights: Array) -> Functional:
        """sum_i weight_i / 2 E (row_i . z - misses_i . x)^2."""
        floor = 0.5 * float(np.einsum("i,ij,jk,ik->", weights, misses, self.constants, misses, optimize=True))
        device = self.moments.device
        there = device.put(rows)
        matrix = pack((there.T * device.put(0.5 * weights)) @ there, device)
        size = float(device.xp.linalg.vector_norm(matrix))
        return Functional(matrix, -(rows.T * weights) @ misses, floor, size)


def centred(moments: Moments) -> Affine:
    """The centred recursion of a moment map, which may have any number of constants, or none.

    The centre is the minimum-norm minimiser of sum_i p_i g_i rho_i^2 over all directions, by a singular value
    decomposition, which knows the slow eigenvalues of M better than M does.
    """
    dim, right, gains, owner = moments.dim, moments.right[0], moments.gains[0], moments.geometry.owner
    z = moments.first[0][:, :dim].T  # of each output; products of these vectors keep the digits of small parts
    rows, chance = right[:, :dim], moments.probability[0][owner]
    roots = np.sqrt(chance * np.abs(gains))
    outer, singular, axes = np.linalg.svd(roots[:, None] * rows, full_matrices=False)
    rank = int(np.sum(singular > EPS * max(rows.shape, default=0) * singular.max(initial=0.0)))
    singular, outer, along, across = singular[:rank], outer[:, :rank], axes[:rank].T, axes[rank:].T
    unsigned = bool(np.all(gains[chance > 0] >= 0))
    decay = singular**2
    if not unsigned:  # some steps go the wrong way
        decay, turn = np.linalg.eigh(along.T @ ((rows.T * (chance * gains)) @ rows) @ along)
        along = along @ turn
        if np.any(np.abs(decay) <= 64 * EPS * np.abs(decay).max(initial=0.0)):
            raise NotSupportedError(
                "the mean step moves some iterates by nothing at all: their mean has no fixed point"
            )
    hidden = rows @ across
    hidden[roots > 0] = 0.0
    seen = rows @ along
    far = float(np.linalg.norm(z))
    if right.shape[1] > dim:
        constants = np.eye(z.shape[1])
        misses = -right[:, dim:] - hidden @ (across.T @ z)
        pull = (roots[:, None] * misses).T @ outer if unsigned else ((chance * gains)[:, None] * misses).T @ seen
        centre = (pull / (singular if unsigned else decay)).T
        misses, z = misses - seen @ centre, along.T @ z - centre
        first = z
    else:
        aside, z, misses = across.T @ z, along.T @ z, -hidden
        constants, first = aside @ aside.T, z @ aside.T
    nothing = np.zeros_like(seen)
    left = gains[:, None] * seen
    return Affine(
        moments=replace(moments, left=(left, nothing), right=(seen, nothing)),
        misses=misses,
        means=1 - decay,
        nearest=float(np.min(decay, initial=1.0)),
        first=first,
        second=z @ z.T,
        constants=constants,
        contracts=unsigned and bool(np.all(gains[chance > 0] < 2)),
        far=far,
    )
