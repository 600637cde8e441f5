"""An audit of 50 tasks x 200 rows x 784 features, against a minute."""

from __future__ import annotations

from typing import Any

import numpy as np

import forgetting as fg
from benchmarks.timing import report, seconds

#: noise in the labels, options of the audit, whether the tasks are then jointly realizable
CASES: dict[str, tuple[float, dict[str, Any], bool]] = {
    "realizable": (0.0, {}, True),
    "noisy": (0.3, {}, False),
    "noisy, 20 rows a task and 1500 random features": (0.3, {"rows": 20, "features": 1500}, True),
}


def fifty_tasks(noise: float, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Tasks with a mean of their own each, and one w for all, up to noise."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=784)
    pairs = []
    for _ in range(50):
        X = (rng.normal(size=(200, 784)) + rng.normal(size=784)) / 28
        pairs.append((X, X @ w + noise * rng.normal(size=200)))
    return pairs


def main() -> None:
    for name, (noise, options, _) in CASES.items():
        tasks = fifty_tasks(noise)
        took = seconds(lambda: fg.audit(tasks, **options).to_html())  # noqa: B023
        report(f"audit and page, {name}, as a share of 60 s", [took], [60.0], target=1, at_most=True)


if __name__ == "__main__":
    main()
