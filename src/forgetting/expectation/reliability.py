"""What the intervals of simulated values promise, in words, and where medians say more than means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forgetting.expectation.quantiles import is_useless

if TYPE_CHECKING:
    from forgetting.expectation.outcome import Expectation

__all__ = ["median_cells", "promises", "undecided_means"]


def promises(result: Expectation) -> list[str]:
    """What the intervals of simulated means are, and which means they leave undecided.

    Nothing is said of normal approximations, on which the engine has a note.
    """
    lines = []
    if result.ranges:
        ranges = ", ".join(f"{name} in [{low:.4g}, {high:.4g}]" for name, (low, high) in result.ranges.items())
        lines.append(
            f"each interval holds with probability at least {result.confidence:g}, for any distribution of {ranges}"
        )
    first = undecided_means(result)
    for k in sorted(set(first.values())):
        names = " and ".join(name for name in first if first[name] == k)
        lines.append(
            f"{names} from k = {k}: the interval of the mean says little, since rare large values may decide it; the "
            "median decides"
        )
    return lines


def undecided_means(result: Expectation) -> dict[str, int]:
    """The quantities whose mean has a useless interval that holds for any distribution, and the least such k.

    >>> import forgetting as fg
    >>> lines = fg.families.two_lines(np.pi / 3)
    >>> undecided_means(fg.expect(lines, fg.orderings.WithReplacement(), [2, 100], method="monte-carlo", runs=512))
    {'loss': 100, 'forgetting': 100}
    """
    found = {}
    for name in result.ranges:
        values, intervals = np.asarray(result.values[name]), result.intervals[name]
        useless = is_useless(values, intervals, result.quantiles[name]).reshape(np.size(result.k), -1).any(axis=1)
        if useless.any():
            found[name] = int(np.min(np.atleast_1d(result.k)[useless]))
    return found


def median_cells(result: Expectation, name: str) -> list[str]:
    """The median of a quantity with one value at each k, and its interval, as text."""
    value, low, high = (np.atleast_1d(part) for part in result.median(name))
    return [f"{a:.3g} [{b:.2g}, {c:.2g}]" for a, b, c in zip(value, low, high, strict=True)]
