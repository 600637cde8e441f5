"""Numbers of about 31 digits as unevaluated sums of two floats, high + low (Dekker 1971; "double-double").

Every function takes and returns the two parts as separate values. The arithmetic has no branches, so that the same
code works on floats, on arrays and, compiled, inside kernels. Reassociation or contraction would destroy the accuracy:
never compile this code with fast maths. The error of an operation is at most UNIT times the sum of the magnitudes of
the operands (for products, quotients and roots: times the magnitude of the result).
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np

from forgetting.compute.compiling import compiled, inlined
from forgetting.core.arrays import Array

UNIT = 2.0**-102  # the proven constants are below 2^-103 (Joldes, Muller and Popescu, ACM TOMS 44, 2017)
SPLITTER = 134217729.0  # 2^27 + 1
DIGITS = 50  # digits of decimal numbers
MANY = 512  # sums that fill operations on arrays
Pair = tuple[Array, Array]


@inlined
def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """a + b = s + e exactly."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@inlined
def quick_two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """a + b = s + e exactly, for |a| >= |b|."""
    s = a + b
    return s, b - (s - a)


@inlined
def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """a * b = p + e exactly, up to underflow, for factors below 1e290."""
    p = a * b
    x = SPLITTER * a
    a_high = x - (x - a)
    a_low = a - a_high
    y = SPLITTER * b
    b_high = y - (y - b)
    b_low = b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


@inlined
def add(a: Any, al: Any, b: Any, bl: Any) -> tuple[Any, Any]:
    """Sum of two numbers.

    >>> high, low = add(1.0, 0.0, 1e-20, 0.0)
    >>> float(high), float(low)
    (1.0, 1e-20)
    """
    s, e = two_sum(a, b)
    e = e + (al + bl)
    return quick_two_sum(s, e)


@inlined
def sub(a: Any, al: Any, b: Any, bl: Any) -> tuple[Any, Any]:
    """Difference of two numbers."""
    return add(a, al, -b, -bl)


@inlined
def mul(a: Any, al: Any, b: Any, bl: Any) -> tuple[Any, Any]:
    """Product of two numbers.

    >>> [float(part) for part in mul(1 + 2.0**-30, 0.0, 1 + 2.0**-30, 0.0)] == [1 + 2.0**-29, 2.0**-60]
    True
    """
    p, e = two_product(a, b)
    e = e + (a * bl + al * b)
    return quick_two_sum(p, e)


@inlined
def div(a: Any, al: Any, b: Any, bl: Any) -> tuple[Any, Any]:
    """Quotient of two numbers, as the sum of three floats: each is the quotient of the remainder so far.

    >>> third = div(1.0, 0.0, 3.0, 0.0)
    >>> [float(part) for part in mul(*third, 3.0, 0.0)]
    [1.0, 0.0]
    """
    first = a / b
    taken, taken_low = mul(b, bl, first, 0.0 * first)
    remainder, remainder_low = sub(a, al, taken, taken_low)
    second = remainder / b
    taken, taken_low = mul(b, bl, second, 0.0 * second)
    remainder, remainder_low = sub(remainder, remainder_low, taken, taken_low)
    high, low = quick_two_sum(first, second)
    return add(high, low, remainder / b, 0.0 * remainder)


@inlined
def root(a: Any, al: Any) -> tuple[Any, Any]:
    """Square root of a positive number: one Newton step from the square root of the high part.

    >>> [float(part) for part in mul(*root(2.0, 0.0), *root(2.0, 0.0))][0]
    2.0
    """
    guess = np.sqrt(a)
    p, e = two_product(guess, guess)
    remainder, _ = sub(a, al, p, e)
    return quick_two_sum(guess, remainder / (2.0 * guess))


def zeros(*shape: int) -> Pair:
    """An array of zeros as a pair of arrays."""
    return np.zeros(shape), np.zeros(shape)


def total(pair: Pair) -> Pair:
    """Sum over the last axis.

    Few sums are made by adding the second half of the numbers to the first, again and again: each operation on arrays
    then has many numbers. Many sums have that anyway, and are made from the first number to the last.

    >>> [float(part) for part in total((np.array([1.0, 1e-20, -1.0]), np.zeros(3)))]
    [1e-20, 0.0]
    """
    high, low = pair
    count = math.prod(high.shape[:-1])
    while 0 < count < MANY and (half := high.shape[-1] // 2) > 0:
        kept, kept_low = high[..., 2 * half :], low[..., 2 * half :]  # the last number, where their count is odd
        high, low = add(high[..., :half], low[..., :half], high[..., half : 2 * half], low[..., half : 2 * half])
        if kept.size:
            high, low = np.concatenate([high, kept], axis=-1), np.concatenate([low, kept_low], axis=-1)
    sum_, low_sum = np.zeros(high.shape[:-1]), np.zeros(high.shape[:-1])
    for i in range(high.shape[-1]):
        sum_, low_sum = add(sum_, low_sum, high[..., i], low[..., i])
    return sum_, low_sum


def decimals(pair: Pair) -> list[Decimal]:
    """The numbers of a vector as `Decimal`s of 50 digits."""
    with localcontext(Context(prec=DIGITS)):
        return [Decimal(high) + Decimal(low) for high, low in zip(pair[0].tolist(), pair[1].tolist(), strict=True)]


def from_decimals(values: list[Decimal]) -> Pair:
    """A vector from `Decimal`s, each rounded to a pair of floats.

    >>> [part.tolist() for part in from_decimals([Decimal("0.5")])]
    [[0.5], [0.0]]
    """
    with localcontext(Context(prec=DIGITS)):
        high = [float(value) for value in values]
        low = [float(value - Decimal(part)) for value, part in zip(values, high, strict=True)]
    return np.array(high, dtype=np.float64), np.array(low, dtype=np.float64)


class Numbers:
    """Arrays of numbers of two floats, with + * and / for formulas that are written once for all kinds of numbers.

    >>> third = Numbers(np.ones(1)) / Numbers(np.array([3.0]))
    >>> bool((third * Numbers(np.array([3.0]))).low[0] == 0.0)
    True
    """

    def __init__(self, high: Array, low: Array | None = None) -> None:
        self.high, self.low = high, 0.0 * high if low is None else low

    def __add__(self, other: Numbers) -> Numbers:
        return Numbers(*add(self.high, self.low, other.high, other.low))

    def __mul__(self, other: Numbers) -> Numbers:
        return Numbers(*mul(self.high, self.low, other.high, other.low))

    def __truediv__(self, other: Numbers) -> Numbers:
        return Numbers(*div(self.high, self.low, other.high, other.low))


# ------------------------------------------------------------------------------------------------- linear algebra


# rows are named by their numbers: views of rows take seconds to compile
@inlined
def dot(a: Array, al: Array, i: int, b: Array, bl: Array, j: int, size: int) -> tuple[float, float]:
    """Inner product of row i of a and row j of b."""
    high, low = 0.0, 0.0
    for n in range(size):
        p, e = mul(a[i, n], al[i, n], b[j, n], bl[j, n])
        high, low = add(high, low, p, e)
    return high, low


@compiled
def products(a: Array, al: Array, b: Array, bl: Array) -> Pair:
    """a b^T: all inner products of the rows of two matrices."""
    high, low = np.empty((len(a), len(b))), np.empty((len(a), len(b)))
    for i in range(len(a)):
        for j in range(len(b)):
            high[i, j], low[i, j] = dot(a, al, i, b, bl, j, a.shape[1])
    return high, low


@compiled
def _subtract(a: Array, al: Array, factors: Array, factors_low: Array, b: Array, bl: Array) -> None:
    """a -= factors b, in place, for matrices."""
    for i in range(a.shape[0]):
        for k in range(b.shape[0]):
            f, fl = factors[i, k], factors_low[i, k]
            for n in range(a.shape[1]):
                p, e = mul(b[k, n], bl[k, n], f, fl)
                a[i, n], al[i, n] = add(a[i, n], al[i, n], -p, -e)


def _normalise(a: Array, al: Array) -> Pair:
    """Divide a matrix of one row by the length of the row, in place; returns the length, 1 x 1."""
    length, low = products(a, al, a, al)
    if length[0, 0] <= 0.0:
        return zeros(1, 1)
    length, low = root(length, low)
    a[:], al[:] = div(a, al, length, low)
    return length, low


def orthonormal_frame(rows: Array, low: Array, dim: int, first: int, own: int) -> tuple[Array, Array, Array]:
    """`dim` orthonormal vectors (high and low parts) chosen greedily to span the rows, and for each row the distance
    from their span; for the first rows, from the span of the first `own` vectors, which are chosen from these rows.

    Gram-Schmidt with the longest remainder as the next pivot; each remainder is orthogonalised twice.
    """
    rest, rest_low = rows.copy(), low.copy()
    frame, frame_low = zeros(dim, rows.shape[1])
    lengths = np.linalg.norm(rest, axis=1)
    for k in range(dim):
        start, stop = (0, first) if k < own else (first, len(rows))
        pivot = start + int(np.argmax(lengths[start:stop])) if start < stop else 0
        new, before = slice(k, k + 1), slice(k)
        frame[new], frame_low[new] = rest[pivot], rest_low[pivot]
        row = frame[new], frame_low[new]
        for _ in range(2):
            _subtract(*row, *products(*row, frame[before], frame_low[before]), frame[before], frame_low[before])
        if _normalise(*row)[0][0, 0] == 0.0:
            return frame[before], frame_low[before], lengths
        others = rest[start:], rest_low[start:]
        _subtract(*others, *products(*others, *row), *row)
        lengths[start:] = np.where(lengths[start:] > 0.0, np.linalg.norm(others[0], axis=1), 0.0)
        lengths[pivot] = 0.0
    return frame, frame_low, lengths


def triangle(matrix: Array, low: Array) -> Pair:
    """The factor R of a QR factorisation, by Gram-Schmidt on the columns.

    The last entry of the last row is the distance of the last column from the span of the others.
    """
    columns, columns_low = matrix.T.copy(), low.T.copy()
    count = len(columns)
    high, low_part = zeros(count, count)
    for k in range(count):
        row, others = (columns[k : k + 1], columns_low[k : k + 1]), (columns[k + 1 :], columns_low[k + 1 :])
        length, length_low = _normalise(*row)
        if length[0, 0] == 0.0:
            continue
        factors, factors_low = products(*others, *row)
        high[k, k:], low_part[k, k:] = np.append(length, factors), np.append(length_low, factors_low)
        _subtract(*others, factors, factors_low, *row)
    return high, low_part


@compiled
def jacobi(matrix: Array, low: Array, size: int) -> bool:
    """Rotate a matrix from the left, in place, until its rows (their first `size` columns) are orthogonal.

    Further columns take part in the rotations but not in the inner products. One-sided Jacobi: the rounding error of a
    row is small relative to that row, so that rows of very different sizes keep their digits (Demmel and Veselic, SIAM
    J. Matrix Anal. 13, 1992). Returns False if 60 sweeps did not converge.
    """
    count = matrix.shape[0]
    floor = np.empty(count)  # squared norm at which a row counts as 0: such a row depends on the others
    for i in range(count):
        floor[i] = (64.0 * UNIT) ** 2 * dot(matrix, low, i, matrix, low, i, size)[0]
    for _ in range(60):
        turned = False
        for i in range(count):
            for j in range(i + 1, count):
                a, al = dot(matrix, low, i, matrix, low, i, size)
                b, bl = dot(matrix, low, j, matrix, low, j, size)
                c, cl = dot(matrix, low, i, matrix, low, j, size)
                if a <= floor[i] or b <= floor[j] or abs(c) <= 16.0 * UNIT * np.sqrt(a) * np.sqrt(b):
                    continue
                turned = True
                # tan of the angle: the smaller root of t^2 + 2 zeta t - 1 = 0, zeta = (b - a) / (2 c)
                gap, gap_low = sub(b, bl, a, al)
                zeta, zeta_low = div(gap, gap_low, 2.0 * c, 2.0 * cl)
                long, long_low = abs(zeta), 0.0  # the root of 1 + zeta^2
                if long < 1e150:
                    square, square_low = mul(zeta, zeta_low, zeta, zeta_low)
                    square, square_low = add(square, square_low, 1.0, 0.0)
                    long, long_low = root(square, square_low)
                if zeta < 0.0:
                    long, long_low = -long, -long_low
                long, long_low = add(zeta, zeta_low, long, long_low)
                t, tl = div(1.0, 0.0, long, long_low)
                square, square_low = mul(t, tl, t, tl)
                square, square_low = add(square, square_low, 1.0, 0.0)
                long, long_low = root(square, square_low)
                cosine, cosine_low = div(1.0, 0.0, long, long_low)
                sine, sine_low = mul(t, tl, cosine, cosine_low)
                for n in range(matrix.shape[1]):
                    x, xl, y, yl = matrix[i, n], low[i, n], matrix[j, n], low[j, n]
                    p, e = mul(x, xl, cosine, cosine_low)
                    q, f = mul(y, yl, sine, sine_low)
                    matrix[i, n], low[i, n] = sub(p, e, q, f)
                    p, e = mul(x, xl, sine, sine_low)
                    q, f = mul(y, yl, cosine, cosine_low)
                    matrix[j, n], low[j, n] = add(p, e, q, f)
        if not turned:
            return True
    return False


def least_squares(matrix: Array, low: Array, rhs: Array, rhs_low: Array) -> Pair:
    """The x that minimises |matrix x - rhs|; NaN unless the matrix has full column rank."""
    size = matrix.shape[1]
    high, low_part = triangle(np.column_stack([matrix, rhs]), np.column_stack([low, rhs_low]))
    x, xl = high[:size, size].copy(), low_part[:size, size].copy()
    if not high.diagonal()[:size].all():
        return np.full(size, np.nan), xl
    for i in range(size - 1, -1, -1):
        x[i], xl[i] = div(x[i], xl[i], high[i, i], low_part[i, i])
        p, e = mul(high[:i, i], low_part[:i, i], x[i], xl[i])
        x[:i], xl[:i] = sub(x[:i], xl[:i], p, e)
    return x, xl
