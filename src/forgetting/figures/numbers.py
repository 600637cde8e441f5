"""Numbers on their way into figures and tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from forgetting.core.arrays import IntArray

__all__ = ["cell", "column", "spread_steps"]


def spread_steps(k: int, points: int, first: int = 1) -> IntArray:
    """At most `points` different steps from `first` to k, evenly on a log scale, both ends included.

    >>> spread_steps(100, 5).tolist()
    [1, 3, 10, 32, 100]
    """
    if k <= first:
        return np.array([k], dtype=np.int64)
    return np.unique(np.round(np.geomspace(first, k, points)).astype(np.int64))


def column(values: Any) -> tuple[float, ...]:
    """Plain floats."""
    return tuple(float(value) for value in np.asarray(values).ravel())


def cell(value: Any) -> str:
    """A number or a word as a short cell of a table.

    >>> [cell(x) for x in (3, 0.123456, 1e-12, None, True, "word")]
    ['3', '0.1235', '1e-12', '', 'yes', 'word']
    """
    if value is None:
        return ""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return "" if math.isnan(value) else f"{float(value):.4g}"
    return str(value)
