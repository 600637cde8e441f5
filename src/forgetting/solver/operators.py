"""Sweeps over the rows as operators of scipy, to precondition `lsmr` and `cg`.

With A A^T = L + D + L^T (L strictly lower triangular, D the squared norms of the rows) and the relaxation w, one sweep
over the rows solves a triangular system: (D / w + L) y = r has y_i = w / d_i (r_i - a_i.x), where x is the sum of
y_j a_j over earlier rows, which is what a sweep keeps. No product A A^T is formed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from forgetting.core.arrays import Array, IntArray, Seed, as_count, as_index, as_number, real_array, seed_from
from forgetting.errors import InvalidInputError
from forgetting.solver.rows import Limits, as_rows
from forgetting.solver.sweepers import scales

__all__ = ["swept", "symmetric_sweeps"]

TOGETHER = 4  # consecutive rows that stay together in a random order, since memory is read faster in sequence


class _Sweeps:
    """Sweeps over the rows of A in one order, and back."""

    def __init__(self, A: Any, relaxation: Any, order: Any, seed: Seed) -> None:
        self.rows = as_rows(A)
        m, self.width = self.rows.shape
        self.relaxation = as_number(relaxation, "relaxation", above=0, below=2)
        self.roots = np.sqrt(self.rows.squares)  # D^(1/2)
        self.scale = scales(self.rows.squares, 0.0, self.relaxation)
        self.forth = _order(m, order, seed)
        self.back = self.forth[::-1].copy()

    def steps(self, order: IntArray, r: Array, x: Array, y: Array) -> None:
        """The steps of the rows in `order` towards A x = r, which are added to y; x is changed as well."""
        if x.ndim == 1 or x.shape[1]:
            self.rows.sweep(r, self.scale, 0.0, Limits(), order, x, y)


def swept(A: Any, b: Any, relaxation: float = 1.0, order: Any = None, seed: Seed = 0) -> tuple[Any, Array]:
    """A system B x = c with the solutions of A x = b, on which `lsmr` and `lsqr` need fewer iterations.

    With A A^T = L + D + L^T in the order of the sweep and the relaxation w,

        B = sqrt((2 - w) / w) D^(1/2) (D / w + L)^(-1) A,    c = sqrt((2 - w) / w) D^(1/2) (D / w + L)^(-1) b,

    so that B^T B = I - Q, where Q maps the error of x to the error after a sweep over all rows and another one back
    (Bjorck and Elfving, Accelerated projection methods for computing pseudoinverse solutions of systems of linear
    equations, BIT 19, 1979: the method CGMN). A product with B, or with its transpose, is one sweep: twice the work of
    a product with A. On `fg.datasets.tomography()`, of condition number 118, `lsmr` takes 24 iterations in place of 205
    to a relative residual of 1e-6.

    The solution of least norm stays the same. If no x solves the system, `lsmr` minimises |B x - c|, which is another
    least-squares solution than that of A x = b: use `symmetric_sweeps` on the columns then. `lsmr` stops by |B x - c|,
    which is not |A x - b|: compute the residual of x.

    Args:
        A: m x n, dense or scipy.sparse.
        b: m numbers, or m x c.
        relaxation: the factor of every step, between 0 and 2.
        order: the numbers of all rows in the order of a sweep; a random order if left out. Rows that are alike should
            not be neighbours.
        seed: of the random order.

    Returns:
        B as a `scipy.sparse.linalg.LinearOperator`, and c.

    >>> import numpy as np, forgetting as fg
    >>> from scipy.sparse.linalg import lsmr
    >>> scan = fg.datasets.tomography(size=15, angles=90, detectors=22)
    >>> B, c = fg.solver.swept(scan.A, scan.b)
    >>> many, few = (lsmr(*system, atol=0, btol=1e-6, conlim=0) for system in ((scan.A, scan.b), (B, c)))
    >>> few[2] < many[2] / 4, np.abs(few[0] - scan.image.ravel()).max() < 1e-4
    (True, np.True_)
    """
    from scipy.sparse.linalg import LinearOperator

    sweeps = _Sweeps(A, relaxation, order, seed)
    m, n = sweeps.rows.shape
    side = real_array(b, "b", squares=True)
    if side.ndim not in (1, 2) or len(side) != m:
        raise InvalidInputError(f"A has {m} rows, but b has shape {side.shape}; expected ({m},), or ({m}, c)")
    weights = np.sqrt((2 - sweeps.relaxation) / sweeps.relaxation) * sweeps.roots

    def forth(r: Array, x: Array) -> Array:
        """The scaled steps of a sweep that begins at x."""
        y = np.zeros((m, *x.shape[1:]))
        sweeps.steps(sweeps.forth, r, x, y)
        return _times(weights, y)

    def product(v: Array) -> Array:
        x = np.array(v, dtype=np.float64, order="C")
        return -forth(np.zeros((m, *x.shape[1:])), x)

    def transposed(w: Array) -> Array:
        x, y = np.zeros((n, *w.shape[1:])), np.zeros(w.shape)
        sweeps.steps(sweeps.back, np.ascontiguousarray(_times(weights, w), dtype=np.float64), x, y)
        return x

    B = LinearOperator(
        (m, n),
        matvec=lambda v: product(np.ravel(v)),
        rmatvec=lambda w: transposed(np.ravel(w)),
        matmat=product,
        rmatmat=transposed,
        dtype=np.float64,
    )
    return B, forth(np.ascontiguousarray(side), np.zeros((n, *side.shape[1:])))


def symmetric_sweeps(A: Any, sweeps: int = 1, relaxation: float = 1.0, order: Any = None, seed: Seed = 0) -> Any:
    """A symmetric approximation M of the pseudo-inverse of A A^T, by sweeps over the rows and back, for `cg`.

    M r is the y after so many sweeps forth and back towards A A^T y = r, from y = 0 (symmetric successive
    over-relaxation). With A A^T = L + D + L^T in the order of the sweep and the relaxation w, one of them is

        M = (2 - w) / w (D / w + L^T)^(-1) D (D / w + L)^(-1),

    and s of them are sum_(k < s) (I - M A A^T)^k M: symmetric, and positive definite on the rows that are not zero.
    M r costs as much as 4 s products with A.

    - `cg(A A^T, b, M=M)`, x = A^T y: the solution of least norm; cg's residual is b - A x.
    - `symmetric_sweeps(A.T)` sweeps over columns: `cg(A^T A, A^T b, M=M)` is a least-squares solution.

    Args:
        A: m x n, dense or scipy.sparse.
        sweeps: the number of sweeps forth and back.
        relaxation: the factor of every step, between 0 and 2.
        order: the numbers of all rows in the order of a sweep; a random order if left out.
        seed: of the random order.

    Returns:
        M as a `scipy.sparse.linalg.LinearOperator`, m x m.

    >>> import numpy as np, forgetting as fg
    >>> from scipy.sparse.linalg import cg
    >>> scan = fg.datasets.tomography(size=15, angles=8, detectors=22)
    >>> K, plain, fewer = scan.A @ scan.A.T, [], []
    >>> _ = cg(K, scan.b, rtol=1e-8, callback=plain.append)
    >>> y, _ = cg(K, scan.b, rtol=1e-8, callback=fewer.append, M=fg.solver.symmetric_sweeps(scan.A, sweeps=4))
    >>> len(fewer) < len(plain) / 3, np.linalg.norm(K @ y - scan.b) < 1e-7 * np.linalg.norm(scan.b)
    (True, np.True_)
    """
    from scipy.sparse.linalg import LinearOperator

    kept, count = _Sweeps(A, relaxation, order, seed), as_count(sweeps, "sweeps", least=1)
    m, n = kept.rows.shape

    def product(r: Array) -> Array:
        r = np.ascontiguousarray(r, dtype=np.float64)
        x, y = np.zeros((n, *r.shape[1:])), np.zeros(r.shape)
        for _ in range(count):
            kept.steps(kept.forth, r, x, y)
            kept.steps(kept.back, r, x, y)
        return y

    def single(r: Array) -> Array:
        return product(np.ravel(r))

    return LinearOperator((m, m), matvec=single, rmatvec=single, matmat=product, rmatmat=product, dtype=np.float64)


def _times(weights: Array, array: Array) -> Array:
    """Multiply the rows of an array, or the entries of a vector."""
    return weights * array if array.ndim == 1 else weights[:, None] * array


def _order(m: int, order: Any, seed: Seed) -> IntArray:
    """The order of a sweep: the given one, or a random order of groups of consecutive rows."""
    if order is None:
        groups = np.random.default_rng(seed_from(seed)).permutation(-(-m // TOGETHER))
        rows = (groups[:, None] * TOGETHER + np.arange(TOGETHER)).ravel()
        return np.asarray(rows[rows < m], dtype=np.int64)
    given = as_index(order, m, "order")
    counts = np.bincount(given, minlength=m)
    odd = np.flatnonzero(counts != 1)
    if odd.size:
        raise InvalidInputError(f"order: row {odd[0]} occurs {counts[odd[0]]} times; a sweep visits every row once")
    return np.array(given, dtype=np.int64)
