"""Numbers of two floats (31 digits), imported when first used because their arithmetic is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from forgetting.core.arrays import Array

__all__ = ["EPS", "Pair", "scaled", "two_floats"]

EPS = float(np.finfo(np.float64).eps)
Pair = tuple[Array, Array]  # high and low parts


def two_floats() -> Any:
    """The module `forgetting.compute.twofold`."""
    from forgetting.compute import twofold

    return twofold


def scaled(pair: Pair, factor: Array) -> Pair:
    """The numbers times floats that are taken as exact.

    >>> scaled((np.ones(1), np.zeros(1)), np.array([3.0]))[0]
    array([3.])
    """
    product: Pair = two_floats().mul(*pair, factor, np.zeros_like(factor))
    return product
