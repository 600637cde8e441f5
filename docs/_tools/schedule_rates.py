"""The figures and the table of docs/schedules.md: worst cases of ridge strengths over k, and the best fixed one over T.

`python docs/_tools/schedule_rates.py docs/images` computes both in some minutes and prints the tables.

The tasks are single rows of norm 1 (R = 1, |w_0 - w*| = 1), drawn uniformly: a *rare* row among tasks of norm 0, and
the lines in levels of `forgetting.tasks.levels`, with one edge (equiangular lines, two of them are "two lines"), two or
three edges. A step of gain g maps the mean squares alpha of the coordinates of each level by I - 2 g C + g^2 D, so that
10^5 steps with gains of their own take milliseconds, and their gradient too.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
from numba import njit
from scipy.optimize import minimize, minimize_scalar

import forgetting as fg
from forgetting.expectation.api import ask
from forgetting.expectation.engines.exact import float64_map
from forgetting.expectation.scheduled_loss import Gains, ScheduledLoss, drawn
from forgetting.figures.drawing import draw_on
from forgetting.figures.items import Curves, Series, Table
from forgetting.figures.text_formats import table_text
from forgetting.tasks.levels import Levels, worst_levels

STEPS = (10, 32, 100, 316, 1000, 3162, 10_000, 31_623, 100_000)
LOWEST = 1e-9  # the least gain
SEARCHED = 100  # steps up to which tasks of the adversarial search are tried
BEST_FIXED, BEST = "best fixed strength of the tasks", "best schedule of the tasks"
TASKS = (8, 16, 32, 64, 128)  # numbers of tasks that are drawn, and those of the expectation over all random tasks
LATER = tuple(round(10**power) for power in np.linspace(1, 6, 21))
DIM, ROWS, NOISE, SEEDS = 20, 10, 0.5, 2  # of the random tasks: dimension, rows a task, noise of labels, repetitions
SPECTRA = 500


@njit(cache=True)
def _passes(C, D, form, first, gains, slopes):  # type: ignore[no-untyped-def]
    """<form, alpha_k> and its derivatives by the gains; no derivatives if `slopes` is empty."""
    k, n = len(gains), len(first)
    kept = np.empty((k + 1 if len(slopes) else 1, n))
    alpha = first.copy()
    for t in range(k):
        if len(slopes):
            kept[t] = alpha
        g = gains[t]
        alpha = alpha - 2 * g * C * alpha + g * g * (D @ alpha)
    value = form @ alpha
    if len(slopes):
        back = form.copy()
        for t in range(k - 1, -1, -1):
            g = gains[t]
            slopes[t] = back @ (-2 * C * kept[t] + 2 * g * (D @ kept[t]))
            back = back - 2 * g * C * back + g * g * (D.T @ back)
    return value


@dataclass(frozen=True)
class Lines:
    """Tasks in levels, as the recursion sees them, and their name."""

    name: str
    C: np.ndarray
    D: np.ndarray
    form: np.ndarray

    @classmethod
    def rare(cls, tasks: float) -> Lines:
        """One row of norm 1 among so many tasks."""
        p = np.array([1 / tasks])
        return cls(f"one row in {tasks:.0f} tasks", p, p[:, None].copy(), p / 2)

    @classmethod
    def of(cls, made: Levels) -> Lines:
        sizes, n = np.array(made.sizes, dtype=float), len(made.sizes)
        C, D, form = np.zeros(n), np.zeros((n, n)), np.zeros(n)
        for a, (p, share) in enumerate(zip(made.weights, made.shares, strict=True)):
            seen = np.zeros(n)
            seen[a], seen[a + 1] = share, 1 - share
            C += p * seen / sizes
            D += p * np.outer(seen / sizes, seen)
            form += p * seen / 2
        return cls(made.construction, C, D, form)

    def loss(self, gains: np.ndarray) -> float:
        """E L(w_k)."""
        return float(_passes(self.C, self.D, self.form, np.eye(len(self.C))[0], gains, np.empty(0)))

    def gradient(self, gains: np.ndarray) -> tuple[float, np.ndarray]:
        """E L(w_k), and its derivatives by the gains."""
        slopes = np.empty(len(gains))
        return float(_passes(self.C, self.D, self.form, np.eye(len(self.C))[0], gains, slopes)), slopes


@dataclass(frozen=True)
class Found:
    """Tasks that the adversarial search found for tasks learned to convergence."""

    name: str
    scheduled: ScheduledLoss

    @classmethod
    def search(cls, T: int, d: int, k: int) -> Found:
        tasks = fg.adversarial_search(T, d, 1, k, restarts=8).tasks
        request = ask(tasks, "with-replacement", k, None, None, "loss").request
        moments, squares = float64_map(request), request.geometry.sigma**2
        unit = float(np.max(squares)) * float(np.sum(request.geometry.start(request.w0) ** 2))
        assert abs(unit - 1) < 1e-6, unit
        gains = Gains(lambda g: np.full(len(squares), g), lambda g: np.ones(len(squares)))
        return cls(f"search for T = {T}, d = {d}", ScheduledLoss(moments, drawn(moments, k), gains))

    def loss(self, gains: np.ndarray) -> float:
        return self.scheduled.value(gains)

    def gradient(self, gains: np.ndarray) -> tuple[float, np.ndarray]:
        return self.scheduled.gradient(gains)


def best(tasks: Lines | Found, k: int) -> float:
    """The least E L(w_k) that was found over gains in [0, 1] that are the same within each of 300 runs of steps."""
    left = np.unique(np.round(np.geomspace(1, k + 1, 300)).astype(int)) - 1  # steps that are left after a run
    lengths = np.diff(left)[::-1]
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])

    def evaluate(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, slopes = tasks.gradient(np.repeat(x, lengths))
        return float(np.log(value)), np.add.reduceat(slopes, starts) / value

    found = []
    for start in (np.ones(len(lengths)), np.sqrt(np.linspace(1, 1 / k, len(lengths)))):
        options = {"maxiter": 200, "ftol": 1e-11, "gtol": 1e-12}
        bounds = [(LOWEST, 1)] * len(lengths)
        found.append(minimize(evaluate, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).fun)
    return float(np.exp(min(found)))


def best_fixed(tasks: Lines | Found, k: int) -> float:
    """The least E L(w_k) over one gain for all steps."""
    powers = np.linspace(-3, 0, 13)
    values = [tasks.loss(np.full(k, 10.0**power)) for power in powers]
    middle = int(np.argmin(values))
    ends = powers[max(middle - 1, 0)], powers[min(middle + 1, 12)]
    end = minimize_scalar(lambda power: tasks.loss(np.full(k, 10.0**power)), bounds=ends, method="bounded")
    return min(min(values), float(end.fun))


def strengths(k: int) -> dict[str, np.ndarray]:
    """The gains of each scheme on rows of norm 1."""
    unit = fg.RegressionTasks([[[1.0]]], [[1.0]])
    gains = {"no regularisation": np.ones(k)}
    for word in ("fixed", "increasing"):
        scheme = fg.schemes.Ridge(word).fitted_to(unit, k)
        gains[word] = np.array([1 / (1 + scheme.at_step(t).lam) for t in range(1, k + 1)])
    return gains


def instances(k: int) -> list[Lines]:
    """Hard tasks for k steps, or for fewer or more full steps than k."""
    found = [Lines.rare(tasks) for tasks in np.unique(np.round(np.geomspace(1, 8 * k, 60)))]
    for times in np.geomspace(0.02, 2, 14):
        steps = max(2, round(times * k))
        for size in {max(1, round(0.4 * steps)), 1}:
            shares = [share / (steps + 2) for share in (0.3, 0.5, 1.0, 2.0, 4.0) if share < steps + 2]
            found += [Lines.of(Levels((1, size), (1,), (share,))) for share in shares]
        if steps >= 10:
            found.append(Lines.of(worst_levels(steps)))
    return found


def hardest(k: int) -> dict[str, tuple[float, str]]:
    """The largest E L(w_k) of each scheme, and its tasks; the best schedule is that of the tasks.

    The best schedule is nowhere worse than no regularisation, so that tasks are tried in the order of that.
    """
    tasks: list[Lines | Found] = [*instances(k)]
    if k <= SEARCHED:
        tasks += [Found.search(T, d, k) for T, d in ((4, 3), (8, 6), (16, 8))]
    result = {name: max((each.loss(gains), each.name) for each in tasks) for name, gains in strengths(k).items()}
    tasks.sort(key=lambda each: -each.loss(np.ones(k)))
    for name, function in ((BEST_FIXED, best_fixed), (BEST, best)):
        worst = 0.0, ""
        for each in tasks:
            if each.loss(np.ones(k)) > worst[0]:
                worst = max(worst, (function(each, k), each.name))
        result[name] = worst
    return result


def exponent(points: dict[int, float], first: int, last: int) -> float:
    """The slope of log E L over log k by least squares, for k from first to last."""
    inside = [(np.log(k), np.log(value)) for k, value in points.items() if first <= k <= last]
    return float(np.polyfit(*np.array(inside).T, 1)[0])


def rates() -> tuple[Curves, Table, Table]:
    """k E L over k, the exponents, and the hardest tasks."""
    worst = {k: hardest(k) for k in STEPS}
    names = list(worst[STEPS[0]])
    series = [
        Series(name, STEPS, tuple(k * worst[k][name][0] for k in STEPS), group=place)
        for place, name in enumerate(names)
    ]
    figure = Curves(
        "schedule-rates",
        "The hardest tasks found for each way to learn",
        "",
        "steps k",
        "k E L(w_k) / S",
        tuple(series),
    )
    rows = []
    for name in names:
        points = {k: worst[k][name][0] for k in STEPS}
        spans = [round(exponent(points, a, b), 3) for a, b in ((10, 100_000), (10, 1000), (1000, 100_000))]
        rows.append((name, *spans, *(round(k * points[k], 4) for k in (10, 1000, 100_000))))
    heads = ("strength", "10 to 1e5", "10 to 1e3", "1e3 to 1e5", "k E L/S, k = 10", "k = 1e3", "k = 1e5")
    tasks = [(k, name, worst[k][name][1]) for k in (10, 1000, 100_000) for name in names]
    return (
        figure,
        Table("exponents", "Exponents of k", "", heads, tuple(rows)),
        Table("tasks", "The hardest tasks", "", ("k", "strength", "tasks"), tuple(tasks)),
    )


# ------------------------------------------------------------------------------ the best fixed strength, and T / ln T
def best_strength(T: int) -> float:
    """The ridge strength with the least mean error on new data, over random tasks of one teacher, one after another."""
    made = []
    for seed in range(SEEDS):
        rng = np.random.default_rng([T, seed])
        teacher = rng.standard_normal(DIM) / np.sqrt(DIM)
        blocks = [rng.standard_normal((ROWS, DIM)) / np.sqrt(DIM) for _ in range(T)]
        made.append(fg.RegressionTasks(blocks, [X @ teacher for X in blocks]))

    def error(power: float) -> float:
        def one(tasks: fg.RegressionTasks) -> float:
            e = fg.expect(
                tasks, "cyclic", T, fg.schemes.Ridge(10.0**power), noise=NOISE, test=np.eye(DIM), quantities="test_loss"
            )
            return float(e.values["test_loss"])

        return sum(map(one, made)) / SEEDS

    return 10.0 ** float(minimize_scalar(error, bounds=(-2.0, 3.0), method="bounded", options={"xatol": 1e-3}).x)


def best_over_random_tasks() -> dict[int, float]:
    """The same in expectation over the tasks: their rows are Gaussian, so that a step is the same in all directions.

    E|z|^2 becomes a E|z|^2 + b, where a and b are means over the eigenvalues of X^T X, here those of 500 random X.
    """
    rng = np.random.default_rng(0)
    squares = np.array([np.linalg.svd(rng.standard_normal((ROWS, DIM)) / np.sqrt(DIM))[1] for _ in range(SPECTRA)]) ** 2

    def error(power: float, T: int) -> float:
        lam = 10.0**power
        kept = 1 - np.mean(np.sum(1 - (lam / (squares + lam)) ** 2, axis=1)) / DIM
        added = NOISE**2 * np.mean(np.sum(squares / (squares + lam) ** 2, axis=1))
        return float(kept**T + added * (1 - kept**T) / (1 - kept))

    def best(T: int) -> float:
        return 10.0 ** float(minimize_scalar(error, args=(T,), bounds=(-2.0, 6.0), method="bounded").x)

    return {T: best(T) for T in LATER}


def strengths_over_tasks() -> tuple[Curves, Table]:
    """lambda*(T) beside c T / ln T, with c from the largest T."""
    drawn_tasks, expected = {T: best_strength(T) for T in TASKS}, best_over_random_tasks()
    last = LATER[-1]
    scale = expected[last] * np.log(last) / last
    beside = {T: float(scale * T / np.log(T)) for T in LATER}
    figure = Curves(
        "best-strength", "The best fixed ridge strength over the number of tasks", "", "number of tasks T", "strength",
        (
            Series("drawn", TASKS, tuple(drawn_tasks.values()), label="fg.expect on random tasks"),
            Series("expected", LATER, tuple(expected.values()), label="expected over random tasks"),
            Series("law", LATER, tuple(beside.values()), role="reference", label="c T / ln T"),
        ),
    )  # fmt: skip
    rows = tuple(
        (T, round(expected[T], 3), round(beside[T], 3), round(float(expected[T] * np.log(T) / T), 4)) for T in LATER
    )
    own = tuple((T, round(value, 3), "", round(float(value * np.log(T) / T), 4)) for T, value in drawn_tasks.items())
    return figure, Table("best-strength", "", "", ("T", "lambda*", "c T / ln T", "lambda* ln T / T"), own + rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    matplotlib.use("Agg")
    law, table = strengths_over_tasks()
    figure, *tables = rates()
    for item in (figure, law):
        axes = draw_on(item, None)
        axes.figure.set_size_inches(7.0, 4.2)
        axes.figure.savefig(folder / f"{item.key}.png", dpi=160, bbox_inches="tight")
    for each in (*tables, table):
        print(table_text(each, 160))
