"""Divided differences of x^k over two and three points, which stay accurate where points meet and k is huge."""

from __future__ import annotations

import numpy as np

from forgetting.core.arrays import Array

__all__ = ["differences", "second_differences"]

NEAR = 0.5  # k times the largest gap, relative to the largest point, below which a series is summed
TERMS = 18  # of that series: 0.5^18 / 20! is far below rounding


def differences(a: Array, b: Array, k: int) -> Array:
    """(a^k - b^k) / (a - b) = sum over s < k of a^s b^(k-1-s), accurate also where a and b are close: |.| <= k.

    >>> differences(np.array([0.5, 1.0]), np.array([0.5, 0.5]), 3).tolist()
    [0.75, 1.75]
    """
    x, y = np.broadcast_arrays(a, b)
    if k == 0:
        return np.zeros(x.shape)
    large = np.where(np.abs(x) >= np.abs(y), x, y)
    small = np.where(np.abs(x) >= np.abs(y), y, x)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(large == 0, 0.0, small / large)
        gap = np.where(large == 0, 1.0, (large - small) / large)  # 1 - ratio without rounding of the ratio
        close = ratio > 0.5
        # (1 - r^k) / (1 - r) = -expm1(k log(1 - gap)) / gap for r near 1, plainly otherwise
        near = np.where(gap == 0, float(k), -np.expm1(k * np.log1p(-np.where(close, gap, 0.5))) / gap)
        far = (1 - np.power(ratio, k)) / gap
    return np.asarray(np.power(large, k - 1) * np.where(close, near, far))


def second_differences(a: Array, b: Array, c: Array, k: int) -> Array:
    """The divided difference of x^k over a, b and c: the sum of a^r b^s c^t over all r + s + t = k - 2.

    From the two points farthest apart, relative to the largest; where k times their gap is small, by the series
    sum_r C(k, r + 2) (-1)^r h_r(gap of b, gap of c) around the largest point.

    >>> second_differences(np.array([1.0]), np.array([0.5]), np.array([0.5]), 4).tolist()   # 1 + 2/2 + 3/4
    [2.75]
    """
    x, y, z = np.broadcast_arrays(a, b, c)
    if k < 2:
        return np.zeros(x.shape)
    # |x| >= |y|, |x| >= |z|, and z is at least as far from x as y is
    x, y = np.where(np.abs(x) >= np.abs(y), x, y), np.where(np.abs(x) >= np.abs(y), y, x)
    x, z = np.where(np.abs(x) >= np.abs(z), x, z), np.where(np.abs(x) >= np.abs(z), z, x)
    y, z = np.where(np.abs(x - y) <= np.abs(x - z), y, z), np.where(np.abs(x - y) <= np.abs(x - z), z, y)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        near_gap = np.where(x == 0, 0.0, (x - y) / x)
        far_gap = np.where(x == 0, 0.0, (x - z) / x)
        scale = np.power(x, k - 2)
        close = far_gap * k < NEAR
        result = (differences(x, y, k) - differences(y, z, k)) / np.where(close, 1.0, x - z)
        if np.any(close):
            result[close] = scale[close] * _series(near_gap[close], far_gap[close], k)
    return result


def _series(near: Array, far: Array, k: int) -> Array:
    """The divided difference over 1, 1 - near and 1 - far, for k far < NEAR."""
    total, power, mixed = np.zeros(near.shape), np.ones(near.shape), np.ones(near.shape)
    binomial = k * (k - 1.0) / 2
    for r in range(TERMS):
        total += binomial * mixed
        binomial *= -(k - r - 2.0) / (r + 3.0)
        power = power * far
        mixed = mixed * near + power  # h_(r+1)(near, far) = near h_r(near, far) + far^(r+1)
    return total
