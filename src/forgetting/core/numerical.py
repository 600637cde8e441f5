"""The numerical policy: the limits and tolerances that several packages share, each named once with its reason.

A constant that only one module uses, such as the length of a block or the seconds that a search may take, is named
there.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

#: The distance from 1 to the next float64. One operation errs by half of EPS, relative to its result. Multiples of EPS,
#: as in 64 EPS, are allowances for the few operations that a formula takes.
EPS = float(np.finfo(np.float64).eps)

#: The largest |v|^2 of data and of starts: sums and differences of vectors below this limit have finite squares too.
SQUARED = 1e300

#: The least |v|^2 of data that are not 0: below it, squares of entries are subnormal numbers, which lose digits, or 0.
VANISHING = 1e-290

#: The share of the natural scale of a value (the loss before learning, R^2 |w_0 - w*|^2) that counts as rounding errors
#: of long computations, such as runs and averages over orders: 450 EPS. Exact engines report their own, smaller errors.
ROUNDING = 1e-13

#: How much two entries of a symmetric matrix may differ, relative to its largest entry: a product X X^T in float64
#: differs by less, and the wrong matrix by more.
ASYMMETRY = 1e-10

#: How negative the least eigenvalue of a positive semidefinite matrix may be, relative to its largest entry or
#: eigenvalue: inner products that were computed in float64 leave less, even for thousands of rows.
NEGATIVE = 1e-8


def quietly() -> np.errstate:
    """Silence NumPy about overflow, as a decorator or in a with statement: what diverges has infinite losses.

    >>> with quietly():
    ...     np.float64(1e200) ** 2
    np.float64(inf)
    """
    return np.errstate(over="ignore", invalid="ignore")


def rank_tolerance(shape: Iterable[int]) -> float:
    """The share of the largest singular value up to which another one counts as 0: max(shape) EPS.

    Rounding errors of a decomposition are of this size, and an exact 0 becomes such a number.

    >>> rank_tolerance((10, 4)) == 10 * EPS
    True
    """
    return max(shape) * EPS


def numerical_rank(singular: NDArray[np.float64], shape: Iterable[int]) -> int:
    """The number of singular values, the largest first, of a matrix of this shape that are not rounding errors of 0.

    >>> numerical_rank(np.array([3.0, 1.0, 1e-17]), (3, 5)), numerical_rank(np.zeros(2), (2, 2))
    (2, 0)
    """
    return int(np.count_nonzero(singular > rank_tolerance(shape) * singular[0]))
