"""Affine steps of schemes that remember, in the coordinates of a geometry, with bounds on their rounding errors.

A step is z <- S z + h for every output, with one S and an h for each output. Both come from the singular value
decomposition of stacked rows A = U diag(s) V^T, which are known up to a relative error kappa. With |.| the Frobenius
norm, two facts bound what that does:

- A function of singular values with phi(0) = 0 is a function of the symmetric matrix [[0, A^T], [A, 0]], whose
  eigenvalues are the s, the -s and 0. A function of a symmetric matrix moves by at most its Lipschitz constant on the
  spectrum times the change of the matrix. So V phi(s) V^T and V phi(s) U^T move by at most 2 Lip |dA|.
- A least-squares solution x = A^+ e with residual r moves by A^+ (de - dA x) + (A^T A)^+ dA^T r to first order, and by
  what turns the row space of A, if that is not the whole space: at most |dA| |x| / s_min, in any direction.

Bounds of the first order are doubled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from forgetting.core.arrays import Array
from forgetting.core.numerical import EPS
from forgetting.geometry import Geometry
from forgetting.geometry.factor import Tolerance, factor_task, singular

Gains: TypeAlias = Callable[[Array], Array]  # the gain of each singular value


class AffineStep(NamedTuple):
    """z <- S z + h, for each output, with bounds on the errors dS and dh.

    Attributes:
        matrix: S, D x D.
        push: h, c x D; 1 x D for one output.
        matrix_noise: N with (dS z) (dS z)^T <= |z|^2 N for every z, in the order of symmetric matrices.
        push_noise: N with dh dh^T <= N, summed over outputs.
    """

    matrix: Array
    push: Array
    matrix_noise: Array
    push_noise: Array


class Joined(NamedTuple):
    """Rows of several tasks, which are learned as one task: A z = b in coordinates z.

    Attributes:
        rows: N x D.
        labels: N x c; c is 1 for one output.
    """

    rows: Array
    labels: Array


def own_rows(geometry: Geometry, task: int) -> Joined:
    """Rows and labels of a task, one for each of its directions: diag(sigma) U^T and diag(sigma) c.

    They have the same gradient as the rows themselves, and as many rows as the task has directions.
    """
    block = geometry.block(int(geometry.index[task]))
    sigma = geometry.sigma[block, None]
    return Joined(sigma * geometry.rows[block], sigma * np.atleast_2d(geometry.targets)[:, block].T)


def tolerance_of(geometry: Geometry, rows: Array) -> Tolerance:
    """The tolerance with which the rank of rows in these coordinates is decided: rows that agree differ by rounding."""
    columns = 8 * (geometry.frame.dim + len(rows))
    return Tolerance(None, squared=geometry.frame.dual_basis is not None, columns=columns)


def learned(geometry: Geometry, joined: Joined, gains_at: Gains, z: Array) -> Array:
    """The state after one step of a linear scheme, given by its gains, on the joined rows."""
    factor = factor_task(joined.rows, joined.labels, tolerance_of(geometry, joined.rows))
    missed = np.atleast_2d(z) @ factor.basis.T - factor.targets.T
    return np.asarray(z - ((gains_at(factor.sigma) * missed) @ factor.basis).reshape(z.shape))


def linear_step(geometry: Geometry, joined: Joined, gains_at: Gains) -> AffineStep:
    """S = I - V diag(g) V^T and h = V diag(g / s) U^T b: the step of a linear scheme on joined rows, from its gains."""
    dim, (rows, labels) = geometry.dim, joined
    factor = factor_task(rows, labels, tolerance_of(geometry, rows))
    gains, sigma = gains_at(factor.sigma), factor.sigma
    moved = gains[:, None] * factor.basis
    matrix = np.eye(dim) - factor.basis.T @ moved
    push = factor.targets.T @ moved
    off, labels_off = _rounding(geometry, joined)
    top = float(np.max(np.abs(gains), initial=0.0))
    pull = float(np.max(np.abs(gains / sigma), initial=0.0))
    size = float(np.linalg.norm(labels))
    matrix_off = 2 * _lipschitz(gains_at, sigma, 0) * off + 8 * (dim + 8) * EPS * (1 + top)
    push_off = 2 * _lipschitz(gains_at, sigma, 1) * off * size + pull * (labels_off + 8 * (dim + 8) * EPS * size)
    return AffineStep(matrix, push, matrix_off**2 * np.eye(dim), push_off**2 * np.eye(dim))


def _lipschitz(gains_at: Gains, sigma: Array, power: int) -> float:
    """A Lipschitz constant of g(s) / s^power, and 0 at s = 0, on the singular values and nearby."""
    if not sigma.size:
        return 0.0
    width = 1e-5

    def at(s: Array) -> Array:
        return gains_at(s) / s**power

    here = at(sigma)
    slopes = [np.abs(here) / sigma, np.abs(at(sigma * (1 + width)) - at(sigma * (1 - width))) / (2 * width * sigma)]
    gaps = np.abs(sigma[:, None] - sigma)
    apart = gaps > width * sigma
    slopes.append((np.abs(here[:, None] - here)[apart]) / gaps[apart])
    return 2 * max(float(np.max(slope, initial=0.0)) for slope in slopes)


def _rounding(geometry: Geometry, joined: Joined) -> tuple[float, float]:
    """By how much the rows and the labels are off, as Frobenius norms, with the error of a decomposition."""
    count = len(joined.rows) + geometry.dim + 8
    relative = 4 * geometry.slip + 8 * np.sqrt(count) * EPS
    size = float(np.linalg.norm(joined.rows))
    labels = float(np.linalg.norm(joined.labels)) + 2 * size * float(np.linalg.norm(geometry.solution))
    return relative * size, relative * labels


class Penalised(NamedTuple):
    """The change d of least norm that minimises |A d - r|^2 + |L d|^2: d = K^+ (r, 0) with K = (A; L).

    Attributes:
        basis, sigma, left: of K = left diag(sigma) basis.
    """

    basis: Array
    sigma: Array
    left: Array

    @classmethod
    def of(cls, geometry: Geometry, rows: Array, penalty: Array) -> Penalised:
        """The decomposition of K."""
        both = np.concatenate([rows, penalty])
        found = singular(both, tolerance_of(geometry, both))
        return cls(found.basis, found.sigma, found.left)

    def change(self, missed: Array) -> Array:
        """d for r = `missed`, one column for each output."""
        return np.asarray(self.basis.T @ ((self.left[: len(missed)].T @ missed) / self.sigma[:, None]))


def penalised_step(geometry: Geometry, own: Joined, penalty: Array) -> AffineStep:
    """The step z <- z + d, where d minimises |A d - (b - A z)|^2 + |L d|^2."""
    solver = Penalised.of(geometry, own.rows, penalty)
    dim, least = geometry.dim, float(np.min(solver.sigma, initial=np.inf))
    pulled, push = solver.change(own.rows), solver.change(own.labels)
    off, labels_off = _rounding(geometry, Joined(np.concatenate([own.rows, penalty]), own.labels))
    rows_off, _ = _rounding(geometry, own)

    missing = len(solver.sigma) < dim  # then rounding turns the row space, too
    weak = (solver.basis.T / solver.sigma**2) @ solver.basis
    weaker = (solver.basis.T / solver.sigma**4) @ solver.basis

    def noise(right: Array, change: Array, right_off: float) -> Array:
        """A bound on the errors of a change of this right side, in the order of symmetric matrices."""
        whole = np.concatenate([right, np.zeros((len(penalty), right.shape[1]))])
        rest = float(np.linalg.norm(whole - solver.left @ (solver.left.T @ whole)))
        size = float(np.linalg.norm(change))
        along = 2 * (off * size + right_off) + 8 * (dim + 8) * EPS * float(np.linalg.norm(right))
        aside = 2 * off * (rest + 8 * (dim + 8) * EPS * float(np.linalg.norm(right)))
        apart = 8 * (dim + 8) * EPS * (1 + size) + (2 * off * size / least if missing else 0.0)
        return np.asarray(3 * (along**2 * weak + aside**2 * weaker + apart**2 * np.eye(dim)))

    return AffineStep(
        np.eye(dim) - pulled, push.T, noise(own.rows, pulled, rows_off), noise(own.labels, push, labels_off)
    )
