"""How many sets of seen tasks random permutations go through."""

from __future__ import annotations

import numpy as np

from forgetting.core.arrays import IntArray
from forgetting.expectation.request import Request
from forgetting.orderings.laws import Reshuffled

__all__ = ["epochs_of", "states_needed"]


def states_needed(counts: IntArray, steps: int) -> tuple[float, float]:
    """The number of multisets of at most `steps` seen tasks, and the largest number of multisets of one size.

    >>> states_needed(np.array([1, 1, 1]), 3), states_needed(np.array([100, 100]), 200)
    ((8.0, 3.0), (10201.0, 101.0))
    """
    layers = np.zeros(steps + 1)
    layers[0] = 1.0
    with np.errstate(over="ignore"):
        for count in counts.tolist():  # multiply by 1 + x + ... + x^count
            total = np.cumsum(layers)
            layers = total
            if count + 1 <= steps:
                layers = total - np.concatenate([np.zeros(count + 1), total[: -count - 1]])
            if not np.isfinite(total[-1]) or total[-1] > 1e15:
                return float("inf"), float("inf")
    return float(layers.sum()), float(layers.max())


def epochs_of(request: Request) -> int:
    """The number of permutations that are begun, for permutations that follow each other; else 1."""
    return -(-request.last // request.problem.num_tasks) if isinstance(request.law, Reshuffled) else 1
