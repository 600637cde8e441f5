"""The figure of docs/heads.md: what each way to a ridge regression loses, over the condition number of the data.

`python docs/_tools/head_accuracy.py docs/images/head-accuracy.png` computes it in a minute.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
from benchmarks.bench_heads import NormalEquations, Ours, Ridge, UpdatedInverse, error_of, exact, problem

from forgetting.figures.drawing import draw_on
from forgetting.figures.items import Curves, Series

CONDITIONS = tuple(10.0**power for power in range(2, 15))
NOISE = 1e-3
WAYS: tuple[tuple[str, Callable[[float], Any], int], ...] = (
    ("IncrementalRidge, 1 batch", Ours, 1),
    ("IncrementalRidge, 400 batches", Ours, 400),
    ("Ridge of scikit-learn, all rows", Ridge, 1),
    ("normal equations, 10 batches", NormalEquations, 10),
    ("updated inverse, 10 batches", UpdatedInverse, 10),
)


def figure() -> Curves:
    """The curves; errors below a thousandth of what the data allow are drawn there."""
    truths = {condition: exact(*problem(condition, NOISE)) for condition in CONDITIONS}
    series = []
    for place, (name, make, parts) in enumerate(WAYS):
        errors = (error_of(make, condition, NOISE, parts, truth) for condition, truth in truths.items())
        series.append(Series(name, CONDITIONS, tuple(max(error, 1e-3) for error in errors), group=place))
    series.append(Series("what the data allow", CONDITIONS, (1.0,) * len(CONDITIONS), role="reference"))
    return Curves(
        "head-accuracy",
        "Errors of the coefficients, in units of what the data allow",
        "",
        "condition number of the rows",
        "error / (eps (k + k² |r| / (|A| |w|)))",
        tuple(series),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figure", type=Path)
    path = parser.parse_args().figure
    matplotlib.use("Agg")
    warnings.simplefilter("ignore")
    axes = draw_on(figure(), None)
    axes.set_ylim(5e-4, 1e12)  # the updated inverse loses more than all digits
    axes.figure.set_size_inches(7.0, 4.2)
    axes.figure.savefig(path, dpi=160, bbox_inches="tight")
