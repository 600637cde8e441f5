"""Class orders: all of them against samples of them, on digits and on frozen features, where all can be listed.

The distribution over class orders is estimated from samples, whose intervals should hold; the search for the extremes
is compared with as many random draws. All 113,400 class orders of ten classes in five pairs are the truth.
"""

from __future__ import annotations

import warnings

import numpy as np

import forgetting as fg
from benchmarks.timing import report, seconds
from forgetting.auditing.class_orders import CONFIDENCE, _interval, _owners, _sd_interval, search_class_orders
from forgetting.auditing.class_scores import ClassLearner
from forgetting.expectation.intervals import LEVELS, bounded_interval, column_quantiles

SEEDS, DRAWN = 300, 1000  # repeats, and class orders in a sample
BUDGETS = (200, 1000, 5000)  # class orders that the search for the extremes tries, and that are drawn in its place
LISTED = 20.0  # seconds that listing all class orders may take


def benchmark_of(features: str) -> fg.ClassSplits:
    """Ten digits in five pairs: pixels, or the frozen hidden layer of a network that has learned other rows."""
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    X, y = load_digits(return_X_y=True)
    X = X / 16
    held, learned, frozen = np.split(np.random.default_rng(0).permutation(len(X)), [600, 900])
    if features == "frozen features":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that 20 steps are few
            network = MLPClassifier(100, solver="lbfgs", max_iter=20, random_state=0).fit(X[frozen], y[frozen])
        X = np.maximum(X @ network.coefs_[0] + network.intercepts_[0], 0)
    return fg.ClassSplits(X[learned], y[learned], tasks=5, test=(X[held], y[held]))


def held_by_intervals(final: np.ndarray, owner: np.ndarray) -> dict[str, tuple[float, float]]:
    """How often each interval holds the value over all class orders, and its mean width in points."""
    quantiles = column_quantiles(final, CONFIDENCE, (0.0, 1.0))[:, 0]
    pairs = [(a, b) for a in range(10) for b in range(a)]
    same = np.array([owner[:, a] == owner[:, b] for a, b in pairs])
    effects = np.array([final[some].mean() - final[~some].mean() for some in same])
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in range(SEEDS):
        rows = np.random.default_rng(seed).integers(len(final), size=DRAWN)
        drawn = final[rows]

        def add(name: str, ends: tuple[float, float], value: float) -> None:
            found.setdefault(name, []).append((float(ends[0] <= value <= ends[1]), 100 * (ends[1] - ends[0])))

        add("mean", bounded_interval(drawn, 0.0, 1.0, CONFIDENCE), final.mean())
        add("standard deviation", _sd_interval(drawn, (0.0, 1.0)), final.std())
        for level, ends in enumerate(column_quantiles(drawn, CONFIDENCE, (0.0, 1.0))[:, 1:]):
            add(f"quantile {LEVELS[level]:g}", tuple(ends), quantiles[level])
        if seed < 20:  # 45 intervals each, which hold together
            ends = [_interval(drawn, some[rows], len(pairs), False) for some in same]
            hold = all(low <= effect <= high for (low, high), effect in zip(ends, effects, strict=True))
            width = float(np.mean([high - low for low, high in ends]))
            add("all 45 effects of pairs", (0.0, width), 0.0 if hold else 2.0)
        three = drawn[:3]
        add("three seeds, mean +- sd", tuple(three.mean() + np.array([-1, 1]) * three.std(ddof=1)), final.mean())
        half = 4.302653 * three.std(ddof=1) / 3**0.5
        add("three seeds, t-interval", (three.mean() - half, three.mean() + half), final.mean())
    return {name: tuple(np.mean(pairs, axis=0)) for name, pairs in found.items()}  # type: ignore[misc]


def found_by_search(splits: fg.ClassSplits, codes: np.ndarray, final: np.ndarray, most: int) -> list[list[float]]:
    """The share of class orders that are as good (bad) as the best (worst) found: by search, and by as many draws."""
    place = {order.tobytes(): row for row, order in enumerate(codes)}

    def learn(orders: np.ndarray) -> np.ndarray:
        return final[[place[order.tobytes()] for order in splits.partitions.sorted(orders)]]

    shares = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = rng.integers(len(codes), size=most // 2)
        low, high = search_class_orders(splits, learn, codes[rows], final[rows], most - len(rows), rng)
        drawn = final[rng.integers(len(codes), size=most)]
        shares.append([
            np.mean(final >= high - 1e-12), np.mean(final <= low + 1e-12),
            np.mean(final >= drawn.max() - 1e-12), np.mean(final <= drawn.min() + 1e-12),
        ])  # fmt: skip
    return [column.tolist() for column in np.array(shares).T]


def main() -> None:
    for features in ("pixels", "frozen features"):
        splits = benchmark_of(features)
        learner = ClassLearner(splits, None)
        codes = splits.partitions.all()
        listed: list[np.ndarray] = []
        took = seconds(lambda: listed.append(learner.measured(codes).values[:, 0]))  # noqa: B023
        report(f"{features}: all {len(codes):,} class orders, as a share of {LISTED:g} s", [took], [LISTED], 1,
               at_most=True)  # fmt: skip
        final = listed[0]
        print(
            f"  final accuracy: mean {final.mean():.2%}, sd {final.std():.2%}, {final.min():.2%} to {final.max():.2%}"
        )
        for name, (share, width) in held_by_intervals(final, _owners(codes, splits.sizes)).items():
            if name.startswith("three"):
                print(f"  {name}: holds the mean in {share:.1%} of {SEEDS} seeds, {width:.2f} points wide")
            else:
                report(f"{features}, {DRAWN} drawn: {name}, {width:.2g} points wide, holds", [CONFIDENCE],
                       [share], 1, unit="")  # fmt: skip
        for most in BUDGETS:
            best, worst, drawn_best, drawn_worst = found_by_search(splits, codes, final, most)
            aim = 1 if most >= 1000 else None  # a search needs some hundreds to begin
            report(f"{features}, {most} tried: share as good as the best found", best, drawn_best, aim, unit="")
            report(f"{features}, {most} tried: share as bad as the worst found", worst, drawn_worst, aim, unit="")


if __name__ == "__main__":
    main()
