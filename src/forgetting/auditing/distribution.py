"""The distribution of values over orders as a figure, for the audits of class orders and of landscapes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forgetting.core.arrays import Array
from forgetting.figures.items import Curves, Role, Series, column


def distribution(
    name: str, title: str, xlabel: str, edges: Array, heights: Array, marks: Sequence[tuple[str, float, str]]
) -> Curves:
    """Bars with these edges and heights (per cent of all orders), and lines at marks.

    A mark is a name, a place, and its value in words; a mean is a reference. An empty bar at each end lets marks there
    be seen.

    >>> figure = distribution("orders", "Losses", "loss", np.array([0.0, 1.0]), np.array([9.0]), [("best", 0.0, "0")])
    >>> [series.label for series in figure.series], figure.series[0].x
    (['', 'best, 0'], (-1.0, 0.0, 0.0, 1.0, 1.0, 2.0))
    """
    air = edges[1] - edges[0]
    x = column(np.concatenate([[edges[0] - air], np.repeat(edges, 2), [edges[-1] + air]]))
    y = column(np.concatenate([[0.0, 0.0], np.repeat(heights, 2), [0.0, 0.0]]))
    top = 1.08 * float(heights.max())
    series = [Series(name, x, y, (0.0,) * len(x), y, group=0)]
    for group, (word, place, value) in enumerate(marks, 1):
        role: Role = "reference" if word.startswith("mean") else "exact"
        series.append(Series(word, (place, place), (0.0, top), role=role, group=group, label=f"{word}, {value}"))
    return Curves("distribution", title, "", xlabel, f"{name}, %", tuple(series), xlog=False, ylog=False)
