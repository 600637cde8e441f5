"""Independent draws of tasks that no w solves: z <- S_m z + c_m, centred where the mean of c_m vanishes.

With mu = E z x^T for constants x (K = E x x^T) and W = E z z^T a step is mu <- M mu and W <- Q[W] + N[mu] + C, where
M = sum_m p_m S_m, N[mu] = sum_m p_m (S_m mu c_m^T + c_m mu^T S_m) and C = sum_m p_m c_m K c_m^T. Coordinates are along
eigenvectors of M. What no drawn task ever moves joins the constants, so that all eigenvalues of M and Q lie below 1
where gains lie between 0 and 2. Wang, Agaskar and Lu 2015 (arXiv 1502.00190) lift systems without a solution likewise.

W_k has closed forms, mode by mode, in the eigenvalues l of Q and m of M:
<E_i, W_k> = l_i^k w_i + sum_j N_ij (l_i^k - m_j^k) / (l_i - m_j), where one more node m = 1 carries the constant C.
Sums over steps take one more divided difference. As k -> inf only C_i / (1 - l_i) is left.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS, quietly
from forgetting.errors import NotSupportedError
from forgetting.expectation.engines.float64_moments import Float64Moments
from forgetting.expectation.engines.powers import diagonalise, differences, lanczos, pack, second_differences, unpack
from forgetting.expectation.quantities import Form
from forgetting.expectation.request import FOREVER


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
class AffineRecursion:
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

    moments: Float64Moments
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

    def functional(self, weights: Array) -> Functional:
        """sum_i weight_i / 2 E rho_i^2 over all R directions i."""
        return self._read(self.rows, self.misses, weights)

    def tests_after(self, form: Form) -> Functional:
        """sum_m p_m times the form of the held-out data of m just after m was learned, less what no w can fit."""
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


def centred(moments: Float64Moments) -> AffineRecursion:
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
    return AffineRecursion(
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


class Estimate(NamedTuple):
    """A number, and an estimate of its error."""

    value: float
    doubt: float


@dataclass(frozen=True, eq=False)
class Modes:
    """Eigenvalues or Ritz values of Q, and the components of the recursion along their eigenvectors.

    Attributes:
        affine: the recursion.
        values: l_i, eigenvalues or Ritz values.
        start: <E_i, W_0>.
        coupling: N_ij; the last column is <E_i, C>.
        drift: by how much values still moved, relative to the sum of their terms, when Lanczos stopped.
        settled: whether Lanczos settled.
        basis: E_i, packed, on the device of the map Q; empty where they are not needed.
    """

    affine: AffineRecursion
    values: Array
    start: Array
    coupling: Array
    drift: float = 0.0
    settled: bool = True
    basis: Any = None

    @property
    def nodes(self) -> Array:
        """The eigenvalues of M, and 1."""
        return np.append(self.affine.means, 1.0)

    @property
    def off(self) -> float:
        """A bound on the error of an eigenvalue."""
        return 4 * EPS * max(1.0, float(np.abs(self.values).max(initial=0.0)))

    @property
    def loose(self) -> Array:
        """A bound on the error of each node; the node 1 is exact."""
        return np.append(np.full(self.affine.size, self.off), 0.0)

    @property
    def top(self) -> float:
        """The largest absolute value of an eigenvalue of Q or M."""
        return float(max(np.abs(self.values).max(initial=0.0), np.abs(self.affine.means).max(initial=0.0)))

    def evaluate(self, weights: Array, functional: Functional, k: int, *, summed: bool = False) -> Estimate:
        """A functional of W_k, mu_k and K, or its sum over the steps before k; `weights` are its <matrix, E_i>."""
        linear = np.sum(functional.linear * self.affine.first, axis=1)
        if k == FOREVER:
            return self._forever(weights, functional)
        value, spread, raised = self._terms(weights, linear, k, summed)
        floor = functional.floor * (k if summed else 1)
        size = functional.size
        doubt = (
            (raised - spread)
            + (8 * EPS + self.drift) * (spread + abs(floor))
            + 16 * EPS * size * self.room(k, summed=summed)
        )
        return Estimate(
            value + floor, doubt + (0.0 if self.settled else 2 * (spread + size * self.room(k, summed=summed)))
        )

    def _terms(self, weights: Array, linear: Array, k: int, summed: bool) -> tuple[float, float, float]:
        """The value without its floor, the sum of its absolute terms, and that sum with larger eigenvalues."""

        def total(weights: Array, linear: Array, start: Array, coupling: Array, values: Array, nodes: Array) -> float:
            if not summed:
                modes = np.power(values, k) * start
                modes = modes + np.sum(coupling * differences(values[:, None], nodes, k), axis=1)
                return float(weights @ modes + linear @ np.power(nodes[:-1], k))
            unity = np.ones(1)
            modes = differences(values, unity, k) * start
            modes = modes + np.sum(coupling * second_differences(values[:, None], nodes, unity, k), axis=1)
            return float(weights @ modes + linear @ differences(nodes[:-1], unity, k))

        with quietly():
            value = total(weights, linear, self.start, self.coupling, self.values, self.nodes)
            sizes = np.abs(weights), np.abs(linear), np.abs(self.start), np.abs(self.coupling)
            values, nodes = np.abs(self.values), np.abs(self.nodes)
            return value, total(*sizes, values, nodes), total(*sizes, values + self.off, nodes + self.loose)

    def room(self, k: int, *, summed: bool = False) -> float:
        """A bound on |W_k|, or on its sum over steps, by which rounding errors of inner products are multiplied."""
        affine, top = self.affine, np.array([self.top])
        drawn = affine.drawn if affine.pushes.size else ()  # older versions of NumPy have no norm of an empty matrix
        pushes = np.array([np.linalg.norm(affine.pushes[m], 2) for m in drawn])
        pushed = float(np.sum(affine.moments.probability[0][affine.drawn] * pushes)) if len(pushes) else 0.0
        spread, start = float(np.linalg.norm(affine.spread)), float(np.linalg.norm(affine.second))
        start += 2 * np.sqrt(start) * affine.far + EPS * affine.far**2  # z was rounded before it was split
        linear = 2 * pushed * np.linalg.norm(affine.first, axis=1)
        if k == FOREVER:
            return spread * reach(self.top, k)
        with quietly():
            if not summed:
                shares = differences(top, self.nodes, k)
                return float(top[0] ** k * start + np.append(linear, spread) @ shares)
            shares = second_differences(top, self.nodes, np.ones(1), k)
            return float(differences(top, np.ones(1), k)[0] * start + np.append(linear, spread) @ shares)

    def _forever(self, weights: Array, functional: Functional) -> Estimate:
        """The limit as k -> inf; infinite where eigenvalues above 1 matter."""
        affine = self.affine
        if affine.contracts and affine.still:
            return Estimate(functional.floor, 8 * EPS * abs(functional.floor))
        gaps, off = 1 - self.values, self.off
        if not affine.contracts:
            marginal = self.values[np.abs(np.abs(self.values) - 1) <= 64 * off]
            if marginal.size:
                raise NotSupportedError(
                    f"values need not settle as k -> inf: Q has the eigenvalue {marginal[0]:.12g}, as for gains of 2"
                )
        pushed, size = self.coupling[:, -1], functional.size
        growing = np.abs(self.values) > 1
        if growing.any() and not affine.contracts:
            inner = np.append(affine.means, 1.0)
            parts = self.start + np.sum(self.coupling / (self.values[:, None] - inner), axis=1)
            noise = 1e-10 * size * (np.abs(self.start) + np.abs(self.coupling).sum(axis=1) + EPS * self.room(1))
            grown = weights * parts
            counts = np.flatnonzero(growing & (np.abs(grown) > noise))
            if counts.size:
                fastest = counts[np.argmax(np.abs(self.values[counts]))]
                return Estimate(float(np.sign(grown[fastest])) * np.inf, np.inf)
            gaps, pushed = np.where(growing, 1.0, gaps), np.where(growing, 0.0, pushed)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(pushed == 0, 0.0, weights * pushed / np.maximum(gaps, off))
            raised = np.where(pushed == 0, 0.0, np.abs(weights * pushed) / np.maximum(gaps - off, 0.0))
        spread = float(np.sum(np.abs(terms)))
        doubt = float(np.nan_to_num(raised, nan=0.0).sum()) - spread + 16 * EPS * size * self.room(FOREVER)
        doubt += (8 * EPS + self.drift) * (spread + abs(functional.floor)) + (0.0 if self.settled else 2 * spread)
        return Estimate(float(np.sum(terms)) + functional.floor, doubt)


def reach(top: float, k: int) -> float:
    """1 + top + ... + top^(k-1), the number of steps over which a push lasts."""
    if k == FOREVER:
        return 1 / max(1 - top, EPS)
    with np.errstate(over="ignore"):
        return float(differences(np.array([top]), np.ones(1), k)[0])


def diagonal_modes(affine: AffineRecursion) -> Modes:
    """All modes, by diagonalising Q."""
    values, basis = diagonalise(affine.moments)
    take = affine.moments.device.take
    start, coupling = take(basis @ affine.packed(affine.second)), take(basis @ affine.coupled().T)
    return Modes(affine, values, start, coupling, basis=basis)


def by_lanczos(
    affine: AffineRecursion, functional: Functional, steps: IntArray, summed: tuple[bool, ...], most: int
) -> tuple[Modes, Array]:
    """The modes that one functional sees, by Lanczos from its matrix, and its weights on them."""
    features: list[Array] = []
    device, xp = affine.moments.device, affine.moments.device.xp
    ends = affine.packed(np.stack([affine.second, affine.spread]))
    first = device.put(affine.first)

    def observe(vector: Any) -> Array:
        """<E, W_0>, <E, N_j> for all j, and <E, C>."""
        coupled = xp.sum(affine.adjoint(unpack(vector, affine.size, device)) * first, axis=1)
        return np.insert(device.take(ends @ vector), 1, device.take(coupled))

    def modes(values: Array, vectors: Array, basis: Any, drift: float = 0.0, settled: bool = True) -> Modes:
        features.extend(observe(basis[i, :]) for i in range(len(features), basis.shape[0]))
        seen = vectors.T @ np.array(features[: len(vectors)])
        return Modes(affine, values, seen[:, 0], seen[:, 1:], drift, settled)

    def watch(values: Array, vectors: Array, basis: Any, norm: float) -> tuple[Array, Array, Array]:
        seen = modes(values, vectors, basis)
        weights, linear = norm * vectors[0], np.sum(functional.linear * affine.first, axis=1)
        top = float(np.max(np.abs(values)))
        rows = []
        for k in steps.tolist():
            for over in summed:
                if k == FOREVER:
                    terms = weights * seen.coupling[:, -1] / np.maximum(1 - values, EPS)
                    value, size = float(np.sum(terms)), float(np.sum(np.abs(terms)))
                else:
                    value, size, _ = seen._terms(weights, linear, k, over)
                rows.append((value, size, 1e-13 * abs(value) + 4 * EPS * reach(min(top, 1.0), k) * size))
        current, sizes, slack = np.array(rows).T
        return current, sizes, slack

    ritz = lanczos(affine.moments, functional.matrix, watch, int(min(steps[-1], 10**15)), most)
    if ritz.vectors is None:  # the functional is zero
        return Modes(affine, np.zeros(0), np.zeros(0), np.zeros((0, affine.size + 1))), np.zeros(0)
    basis = device.put(ritz.vectors) @ ritz.basis
    return modes(ritz.values, ritz.vectors, basis, ritz.drift, ritz.settled), ritz.weights
