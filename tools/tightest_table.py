"""The tightest guarantee beside the exact value on eleven families: `python -m tools.tightest_table`.

Writes the tables of docs/one-over-k.md, of the loss and of forgetting. "Before" is the smallest of all other upper
bounds, "after" the smallest of all, both over the exact expected value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np

import forgetting as fg
from forgetting.files.atomic import write
from forgetting.tasks import RegressionTasks

Quantity = Literal["loss", "forgetting"]
PAGE = Path(__file__).parents[1] / "docs" / "one-over-k.md"
BEGIN, END = "<!-- made by python -m tools.tightest_table -->", "<!-- end -->"
STEPS: dict[Quantity, tuple[int, ...]] = {"loss": (10, 100, 10_000), "forgetting": (10, 100)}  # at 10^4 minutes
HERE = "here:last-iterate/"
LARGE = 1e5  # ratios above are printed as powers of ten
ROUNDED = 1e-28  # labels of these tasks, rounded to float64, leave about as much


def nearly_parallel() -> RegressionTasks:
    """Ten lines in ten dimensions within 0.02 of each other."""
    rng = np.random.default_rng(0)
    rows = np.eye(10)[0] + 0.02 * rng.standard_normal((10, 10))
    return _rows(rows / np.linalg.norm(rows, axis=1, keepdims=True), rng.standard_normal(10))


def scan() -> RegressionTasks:
    """A task for each view of a picture of 12 x 12 pixels, 20 views."""
    made = fg.datasets.tomography(size=12, angles=20, detectors=17)
    return _realizable(np.split(made.A.toarray(), 20))


def pixels() -> RegressionTasks:
    """Five tasks of 10 pictures of two digits each, few enough to have a common solution."""
    tasks = fg.datasets.digits("split", rows=10)
    return _realizable([tasks.task(m)[0] for m in range(tasks.num_tasks)])


def _realizable(matrices: list[np.ndarray]) -> RegressionTasks:
    w = np.random.default_rng(1).standard_normal(matrices[0].shape[1])
    return RegressionTasks(matrices, [X @ w for X in matrices])


def _rows(rows: np.ndarray, w: np.ndarray) -> RegressionTasks:
    return RegressionTasks(list(rows[:, None]), list((rows @ w)[:, None]))


FAMILIES: dict[str, Callable[[int], RegressionTasks]] = {
    "random, T = 10, rank 2, d = 30": lambda k: fg.families.gaussian(T=10, d=30, rank=2, seed=0),
    "random, T = 5, rank 3, d = 4": lambda k: fg.families.gaussian(T=5, d=4, rank=3, seed=0),
    "nearly parallel lines, T = 10, d = 10": lambda k: nearly_parallel(),
    "two lines, worst for k": fg.families.worst_pair,
    "equiangular lines, T = 0.4 k (at most 200)": lambda k: fg.families.equiangular(
        min(round(0.4 * k) + 1, 200), 0.66 / k
    ),
    "three levels, worst for k (at most 100)": lambda k: fg.families.levels(k=min(k, 100)),
    "orthogonal lines, T = 50": lambda k: fg.families.orthogonal(50),
    "chain of lines that turn by 5 degrees, T = 18": lambda k: chain(18, math.radians(5)),
    "norms from 1 to 100, T = 10": lambda k: fg.families.heterogeneous_norms(T=10, d=30, spread=100, seed=0),
    "pictures of digits, T = 5 of 10 rows": lambda k: pixels(),
    "views of a scan, T = 20, d = 144": lambda k: scan(),
}


def chain(T: int, turn: float) -> RegressionTasks:
    """Lines in a plane, each turned from the one before."""
    angles = turn * np.arange(T)
    return _rows(np.column_stack([-np.sin(angles), np.cos(angles)]), np.array([1.0, 0.0]))


def row(name: str, quantity: Quantity = "loss") -> str:
    """The two ratios at each k."""
    cells = []
    for k in STEPS[quantity]:
        tasks = FAMILIES[name](k)
        exact = float(fg.expect(tasks, "random", k, quantities=(quantity,), patience=math.inf).values[quantity])
        rows = fg.bounds.evaluate(tasks, "random", k).applicable(quantity)
        upper = [entry for entry in rows if entry.bound.kind == "upper"]
        before = min(entry.value for entry in upper if not entry.bound.key.startswith(HERE))
        best = min(upper, key=lambda entry: float(f"{entry.value:.12g}"))  # rounding decides nothing
        words = best.bound.key.removeprefix(f"{HERE}{quantity}").removeprefix("/") or "universal"
        which = words if best.bound.key.startswith(HERE) else "other"
        cells += [_over(before, exact), f"{_over(best.value, exact)} ({which})" if exact >= ROUNDED else "-"]
    return f"| {name} | {' | '.join(cells)} |"


def _over(value: float, exact: float) -> str:
    """The ratio of a bound to the exact value, large ones as powers of ten."""
    if exact < ROUNDED:
        return "-"
    ratio = value / exact
    return f"{ratio:.3g}" if ratio < LARGE else f"10^{math.log10(ratio):.0f}"


def table(quantity: Quantity = "loss") -> str:
    """The table in Markdown."""
    head = " | ".join(f"k = {k}: before | after" for k in STEPS[quantity])
    rows = [row(name, quantity) for name in FAMILIES]
    return "\n".join([f"| {quantity} of | {head} |", "|---" * (2 * len(STEPS[quantity]) + 1) + "|", *rows])


if __name__ == "__main__":
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    both = f"{table()}\n\n{table('forgetting')}"
    write(PAGE, f"{before}{BEGIN}\n{both}\n{END}{rest.partition(END)[2]}".encode())
