"""W_k of the affine recursion, mode by mode: closed forms in the eigenvalues l of Q and m of the mean map M.

<E_i, W_k> = l_i^k w_i + sum_j N_ij (l_i^k - m_j^k) / (l_i - m_j), where one more node m = 1 carries the constant C.
Sums over steps take one more divided difference. As k -> inf only C_i / (1 - l_i) is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.errors import NotSupportedError
from forgetting.expectation.engines.affine import Affine, Functional
from forgetting.expectation.engines.divided import differences, second_differences
from forgetting.expectation.engines.krylov import diagonalise, lanczos, unpack
from forgetting.expectation.engines.pairs import EPS
from forgetting.expectation.request import FOREVER

__all__ = ["Estimate", "Modes", "by_lanczos", "diagonal_modes", "reach"]


class Estimate(NamedTuple):
    """A number, and an estimate of its error."""

    value: float
    doubt: float


@dataclass(frozen=True, eq=False)
class Modes:
    """Q as some functionals see it.

    Attributes:
        affine: the recursion.
        values: l_i, eigenvalues or Ritz values.
        start: <E_i, W_0>.
        coupling: N_ij; the last column is <E_i, C>.
        drift: by how much values still moved, relative to the sum of their terms, when Lanczos stopped.
        settled: whether Lanczos settled.
        basis: E_i, packed, on the device of the map Q; empty where they are not needed.
    """

    affine: Affine
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
        """By how much an eigenvalue can be off."""
        return 4 * EPS * max(1.0, float(np.abs(self.values).max(initial=0.0)))

    @property
    def loose(self) -> Array:
        """By how much each node can be off: 1 is exact."""
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
            one = np.ones(1)
            modes = differences(values, one, k) * start
            modes = modes + np.sum(coupling * second_differences(values[:, None], nodes, one, k), axis=1)
            return float(weights @ modes + linear @ differences(nodes[:-1], one, k))

        with np.errstate(over="ignore", invalid="ignore"):
            value = total(weights, linear, self.start, self.coupling, self.values, self.nodes)
            sizes = np.abs(weights), np.abs(linear), np.abs(self.start), np.abs(self.coupling)
            values, nodes = np.abs(self.values), np.abs(self.nodes)
            return value, total(*sizes, values, nodes), total(*sizes, values + self.off, nodes + self.loose)

    def room(self, k: int, *, summed: bool = False) -> float:
        """At most how large W_k, or its sum over steps, can be: what rounding of inner products is multiplied by."""
        affine, top = self.affine, np.array([self.top])
        pushes = np.array([np.linalg.norm(affine.pushes[m], 2) for m in affine.drawn])
        pushed = float(np.sum(affine.moments.probability[0][affine.drawn] * pushes)) if len(pushes) else 0.0
        spread, start = float(np.linalg.norm(affine.spread)), float(np.linalg.norm(affine.second))
        start += 2 * np.sqrt(start) * affine.far + EPS * affine.far**2  # z was rounded before it was split
        linear = 2 * pushed * np.linalg.norm(affine.first, axis=1)
        if k == FOREVER:
            return spread * reach(self.top, k)
        with np.errstate(over="ignore", invalid="ignore"):
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
    """1 + top + ... + top^(k-1): over how many steps a push lasts."""
    if k == FOREVER:
        return 1 / max(1 - top, EPS)
    with np.errstate(over="ignore"):
        return float(differences(np.array([top]), np.ones(1), k)[0])


def diagonal_modes(affine: Affine) -> Modes:
    """All modes, by diagonalising Q."""
    values, basis = diagonalise(affine.moments)
    take = affine.moments.device.take
    start, coupling = take(basis @ affine.packed(affine.second)), take(basis @ affine.coupled().T)
    return Modes(affine, values, start, coupling, basis=basis)


def by_lanczos(
    affine: Affine, functional: Functional, steps: IntArray, summed: tuple[bool, ...], most: int
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
        found = modes(values, vectors, basis)
        weights, linear = norm * vectors[0], np.sum(functional.linear * affine.first, axis=1)
        top = float(np.max(np.abs(values)))
        rows = []
        for k in steps.tolist():
            for over in summed:
                if k == FOREVER:
                    terms = weights * found.coupling[:, -1] / np.maximum(1 - values, EPS)
                    value, size = float(np.sum(terms)), float(np.sum(np.abs(terms)))
                else:
                    value, size, _ = found._terms(weights, linear, k, over)
                rows.append((value, size, 1e-13 * abs(value) + 4 * EPS * reach(min(top, 1.0), k) * size))
        current, sizes, slack = np.array(rows).T
        return current, sizes, slack

    ritz = lanczos(affine.moments, functional.matrix, watch, int(min(steps[-1], 10**15)), most)
    if ritz.vectors is None:  # the functional is zero
        return Modes(affine, np.zeros(0), np.zeros(0), np.zeros((0, affine.size + 1))), np.zeros(0)
    basis = device.put(ritz.vectors) @ ritz.basis
    return modes(ritz.values, ritz.vectors, basis, ritz.drift, ritz.settled), ritz.weights
