"""Errors where rules stop at the noise, divided by the least error along the same run: ratios of errors, not of times.

    python -m benchmarks.bench_noise [draws]

Three problems, 5 % noise, so many draws of the noise (200). Along the run the method goes on beyond the stop, by the
same steps. The second table compares relaxation="auto" with constants on five problems and three levels of noise.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import forgetting as fg
from benchmarks import timing
from forgetting.solver import noise_rules

DRAWS = 200
LEVEL = 0.05
CONSTANTS = (1.0, 0.5, 0.2, 0.1, 0.05)
Problem = tuple[str, Any, np.ndarray, tuple[int, ...] | None]


def tomography() -> Problem:
    scan = fg.datasets.tomography(size=24, angles=32, detectors=34)
    return "tomography", scan.A, scan.image.ravel(), (32, 34)


def deconvolution(n: int = 128) -> Problem:
    t = (np.arange(n) + 0.5) / n
    kernel = np.exp(-(((t[:, None] - t) / 0.03) ** 2) / 2)
    x = np.exp(-(((t - 0.3) / 0.06) ** 2)) + 0.6 * ((t > 0.55) & (t < 0.75))
    return "deconvolution", kernel / kernel.sum(axis=1, keepdims=True), x, (n,)


def ill_conditioned(m: int = 300, n: int = 150) -> Problem:
    """Singular values from 1 to 1e-4, the solution as smooth as their roots say; rows in no order."""
    rng = np.random.default_rng(5)
    left, right = (np.linalg.qr(rng.standard_normal((size, n)))[0] for size in (m, n))
    singular = np.logspace(0, -4, n)
    return "random, condition 1e4", left * singular @ right.T, right @ (singular**0.5 * rng.standard_normal(n)), None


def well_conditioned(m: int, n: int) -> Problem:
    rng = np.random.default_rng(m)
    A = rng.standard_normal((m, n))
    return f"random, {m} x {n}", A, A.T @ rng.standard_normal(m) / m, None


def noisy(A: Any, x: np.ndarray, level: float, draw: int) -> tuple[np.ndarray, float]:
    """b with noise, and the standard deviation of the noise."""
    side = A @ x
    sigma = level * float(np.linalg.norm(side)) / np.sqrt(len(side))
    return side + sigma * np.random.default_rng(1000 + draw).standard_normal(len(side)), sigma


def error(found: np.ndarray, x: np.ndarray) -> float:
    return float(np.linalg.norm(found - x) / np.linalg.norm(x))


def errors_along(A: Any, b: np.ndarray, x: np.ndarray, epochs: int, **options: Any) -> list[float]:
    """The errors of x0 and after every epoch, without a stop: a periodogram that waits for ever sees the noise, too."""
    errors = [error(np.zeros(len(x)), x)]
    patience, noise_rules.LONGEST = noise_rules.LONGEST, 10**9
    try:
        fg.solve(
            A, b, tol=0, stop="ncp", maxiter=epochs, **options,
            callback=lambda found: errors.append(error(found, x)),
        )  # fmt: skip
    finally:
        noise_rules.LONGEST = patience
    return errors


#: the rule, its options, and epochs in which the error has risen again (6 times as many of SIRT for the random matrix)
RULES: tuple[tuple[str, dict[str, Any], int], ...] = (
    ("discrepancy, auto", {"relaxation": "auto"}, 300),
    ("discrepancy, relaxation 0.1", {"relaxation": 0.1}, 300),
    ("discrepancy, relaxation 1", {"relaxation": 1.0}, 100),
    ("discrepancy, cgls", {"method": "cgls"}, 60),
    ("ncp, auto", {"relaxation": "auto", "stop": "ncp"}, 300),
    ("ncp, auto, noise not given", {"relaxation": "auto", "stop": "ncp", "noise": None}, 150),
    ("discrepancy, sirt", {"method": "sirt", "relaxation": "auto"}, 500),
    ("monotone, sirt", {"method": "sirt", "relaxation": "auto", "stop": "monotone"}, 500),
    ("monotone, Cimmino", {"average": "all", "blocks": "rows", "relaxation": "auto", "stop": "monotone"}, 500),
)


def note(name: str, ratio: float) -> None:
    timing.RESULTS.append({"name": name, "ratio": ratio, "target": None, "at_most": False, "verdict": ""})


def at_the_stop(draws: int) -> None:
    """Error at the stop / least error along the run, median and 90 %, for each rule."""
    print(f"\nerror at the stop / least error along the run, {LEVEL:.0%} noise, {draws} draws: median, 90 %")
    print("\n| problem | rule | median | 90 % | stops at epoch | error at the stop | least along the run |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for name, A, x, layout in (tomography(), deconvolution(), ill_conditioned()):
        least_along: dict[str, float] = {}
        for rule, options, epochs in RULES:
            shape = {"residual_shape": layout} if options.get("stop") == "ncp" and layout else {}
            rows = []
            for draw in range(draws):
                b, sigma = noisy(A, x, LEVEL, draw)
                given = {"noise": sigma} | options
                found = fg.solve(A, b, **given | shape)
                reached = error(found.x, x)
                given.pop("stop", None)
                key = repr((sorted(given.items(), key=str), draw))
                if key not in least_along:  # several rules stop the same run
                    slow = 6 if options.get("method") == "sirt" and layout is None else 1
                    least_along[key] = min(errors_along(A, b, x, slow * epochs, **given))
                least = min(reached, least_along[key])
                rows.append((reached / least, found.stop_epochs[0], reached, least))
            ratios, stops, reached, least = np.array(rows).T
            middle, high = np.quantile(ratios, [0.5, 0.9])
            print(
                f"| {name} | {rule} | {middle:.2f} | {high:.2f} | {np.nanmedian(stops):.0f} | "
                f"{np.median(reached):.3f} | {np.median(least):.3f} |", flush=True,
            )  # fmt: skip
            note(f"{name}, {rule}: error at the stop / least along the run, median", float(middle))
            note(f"{name}, {rule}: the same, 90 %", float(high))


def problems() -> Iterator[Problem]:
    yield from (
        tomography(),
        deconvolution(),
        ill_conditioned(),
        well_conditioned(2000, 100),
        well_conditioned(100, 300),
    )


def relaxations(draws: int) -> None:
    """What relaxation="auto" is worth: errors divided by the least of all relaxations, and epochs to the stop."""
    print(
        f"\nrelaxations, {draws} draws: errors divided by the least of all relaxations along their runs, over problems"
    )
    print(
        "\n| relaxation | least along the run: mean | worst | at the stop: mean | worst | epochs to the stop | most |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|")
    table: dict[Any, list[tuple[float, float, float]]] = {given: [] for given in ("auto", *CONSTANTS)}
    for _, A, x, _ in problems():
        for level in (0.01, 0.05, 0.2):
            of: dict[Any, list[tuple[float, float, float]]] = {given: [] for given in table}
            for draw in range(draws):
                b, sigma = noisy(A, x, level, draw)
                for given, rows in of.items():
                    least = min(errors_along(A, b, x, 400, noise=sigma, relaxation=given))
                    found = fg.solve(A, b, noise=sigma, relaxation=given)
                    rows.append((least, error(found.x, x), found.epochs))
            medians = {given: np.median(rows, axis=0) for given, rows in of.items()}
            best = min(median[0] for median in medians.values())
            for given, (least, reached, epochs) in medians.items():
                table[given].append((least / best, reached / best, epochs))
    for given, rows in table.items():
        least, reached, epochs = np.array(rows).T
        mean = np.exp(np.log([least, reached]).mean(axis=1))
        print(
            f"| {given} | {mean[0]:.2f} | {least.max():.2f} | {mean[1]:.2f} | {reached.max():.2f} | "
            f"{np.median(epochs):.0f} | {epochs.max():.0f} |"
        )
        note(f"relaxation {given}: error at the stop / least of all relaxations, geometric mean", float(mean[1]))
        note(f"relaxation {given}: the same, the worst of 15", float(reached.max()))


def main(draws: int = DRAWS) -> None:
    at_the_stop(draws)
    relaxations(max(1, draws // 20))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
