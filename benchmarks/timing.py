"""Rounds that take the contestants in turn, so that other load on the machine falls on all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

ROUNDS = 7
RESULTS: list[dict[str, object]] = []


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def race(
    name: str,
    ours: Callable[[], object],
    theirs: Callable[[], object],
    *,
    target: float | None = None,
    rounds: int = ROUNDS,
    at_most: bool = False,
) -> float:
    """Time both in turn, print the median of the per-round ratios theirs / ours, and keep the row.

    With `at_most` the target is an upper limit on ours / theirs instead.
    """
    ours()
    theirs()
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(rounds)]
    return report(name, [a for a, _ in pairs], [b for _, b in pairs], target, at_most=at_most)


def report(
    name: str,
    ours: list[float],
    theirs: list[float],
    target: float | None = None,
    *,
    unit: str = "s",
    at_most: bool = False,
) -> float:
    ratio = float(np.median(np.array(ours) / np.array(theirs) if at_most else np.array(theirs) / np.array(ours)))
    verdict = "" if target is None else ("met" if (ratio <= target if at_most else ratio >= target) else "MISSED")
    sign = "<=" if at_most else ">="
    aim = "" if target is None else f"target {sign} {target:g}x: {verdict}"
    print(f"{name:<66} {np.median(ours):>9.3g} {np.median(theirs):>9.3g} {unit:<2} {ratio:>8.1f}x  {aim}", flush=True)
    RESULTS.append({"name": name, "ratio": ratio, "target": target, "at_most": at_most, "verdict": verdict})
    return ratio
