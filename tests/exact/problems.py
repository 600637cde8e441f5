"""Random hard problems whose labels are exact: every entry of X_m and of y_m = X_m w* is a float64 without rounding.

    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    question = random_question(rng, problem)
    exact = exact_expectation(problem.Xs, problem.ys, **question.options)
    found = fg.expect(tasks_of(problem), ordering_of(question.law), list(question.ks), ...)

The features (each alone in half of the problems, mixed in the other half):

- plain: small whole numbers, always the base of what follows;
- norms: each task times 2^-26..2^26, or times a decimal scale 1e-8..1e8 (rounded to 24 bits);
- near: a task is an earlier one plus 2^-2..2^-30 times small whole numbers;
- graded: the rows of a task differ in scale, up to 2^40 (1e12);
- columns: columns times 2^-10..2^10, that is up to 2^20 (1e6) apart;
- zero: a task of zero rows and zero labels;
- duplicate: a task twice, or twice up to a power of two;
- redundant: rows that are combinations of others: n > rank, sometimes n > d;
- perturbed (10 %): labels off by about 2^-27 of themselves, so that no w solves all tasks exactly;
- huge: w* times 2^10..2^40, large against w_0.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from rationals import (
    Law,
    cyclic,
    explicit,
    matrix,
    reshuffled,
    with_replacement,
    without_replacement,
)

import forgetting as fg

__all__ = ["FEATURES", "Problem", "Question", "ordering_of", "random_problem", "random_question", "tasks_of"]

FEATURES = ("norms", "near", "graded", "columns", "zero", "duplicate", "redundant", "huge")
Rows = list[list[Fraction]]


class Problem(NamedTuple):
    """Tasks as nested lists of floats, and the names of their features."""

    Xs: list[list[list[float]]]
    ys: list[list[float]]
    description: str

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(self.description.split(" + "))


class Question(NamedTuple):
    """What to ask of a problem."""

    law: Law
    ks: tuple[int, ...]
    scheme: Any
    w0: list[float] | None

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `exact_expectation`."""
        return self._asdict()


def random_problem(rng: np.random.Generator, features: Sequence[str] | None = None) -> Problem:
    """A problem with the given features, or with random ones."""
    if features is None:
        style = rng.random()
        if style < 0.05:
            picked: list[str] = []
        elif style < 0.5:
            picked = [str(rng.choice(FEATURES))]
        else:
            picked = [name for name in FEATURES if rng.random() < 0.35]
        if rng.random() < 0.1:
            picked.append("perturbed")
    else:
        picked = list(features)
    while True:
        drawn = _draw(rng, picked)
        if drawn is not None:
            return Problem(*drawn, " + ".join(picked) or "plain")


def random_question(rng: np.random.Generator, problem: Problem) -> Question:
    """A law, numbers of steps up to 20, a scheme and a start."""
    T, d = len(problem.Xs), len(problem.Xs[0][0])
    kind = rng.choice(["with", "without", "reshuffled", "cyclic", "explicit"], p=[0.35, 0.25, 0.2, 0.1, 0.1])
    last = T if kind == "without" else 20
    ks = tuple(sorted({int(k) for k in rng.integers(0, last + 1, size=3)} | {int(rng.integers(1, last + 1))}))
    if kind == "with":
        weights = None
        if rng.random() < 0.5:
            weights = [int(one) for one in rng.integers(1, 10, size=T)]
            if rng.random() < 0.2:
                weights[int(rng.integers(T))] = 0
        law = with_replacement(weights)
    elif kind == "explicit":
        law = explicit(int(one) for one in rng.integers(T, size=last))
    else:
        law = {"without": without_replacement, "reshuffled": reshuffled, "cyclic": cyclic}[str(kind)]()
    start = rng.random()
    w0 = None
    if start > 0.4:
        w0 = [float(one) for one in rng.integers(-4, 5, size=d)]
    if start > 0.8:
        w0 = [float(one) for one in rng.integers(-(2**12), 2**12, size=d) / 2**10]
    return Question(law, ks, _scheme(rng, problem), w0)


def tasks_of(problem: Problem) -> fg.RegressionTasks:
    """The problem as the package takes it."""
    return fg.RegressionTasks([np.array(X) for X in problem.Xs], [np.array(y) for y in problem.ys])


def ordering_of(law: Law) -> fg.orderings.Ordering:
    """The law as the package takes it."""
    if law.kind == "with_replacement":
        return fg.orderings.WithReplacement(None if law.values is None else list(law.values))
    if law.kind == "explicit":
        return fg.orderings.Explicit(list(law.values or ()))
    return {
        "without_replacement": fg.orderings.WithoutReplacement,
        "reshuffled": fg.orderings.Reshuffled,
        "cyclic": fg.orderings.Cyclic,
    }[law.kind]()


# ------------------------------------------------------------------------------------------------------------- drawing


def _draw(rng: np.random.Generator, features: list[str]) -> tuple[list[Any], list[Any]] | None:
    """Matrices and labels, or None if one of their entries is not a float."""
    T, d = int(rng.integers(2, 6)), int(rng.integers(2, 6))
    tasks = [_independent_rows(rng, int(rng.integers(1, min(3, d) + 1)), d) for _ in range(T)]
    if "near" in features:
        at = int(rng.integers(1, T))
        tiny = Fraction(1, 2 ** int(rng.integers(2, 31)))
        base = tasks[int(rng.integers(at))]
        tasks[at] = [[entry + tiny * int(rng.integers(-3, 4)) for entry in row] for row in base]
    if "graded" in features:
        tasks = [[_times(row, _power(rng, -40, 0)) for row in rows] for rows in tasks]
    if "redundant" in features:
        for at in {int(one) for one in rng.integers(T, size=2)}:
            tasks[at] = _with_combinations(rng, tasks[at], d)
    if "duplicate" in features:
        at = int(rng.integers(1, T))
        factor = Fraction(1) if rng.random() < 0.5 else _power(rng, -10, 10)
        tasks[at] = [_times(row, factor) for row in tasks[int(rng.integers(at))]]
    if "norms" in features:
        tasks = [[_times(row, scale) for row in rows] for rows, scale in zip(tasks, _norms(rng, T), strict=True)]
    if "columns" in features:
        scales = [_power(rng, -10, 10) for _ in range(d)]
        tasks = [[[entry * by for entry, by in zip(row, scales, strict=True)] for row in rows] for rows in tasks]
    if "zero" in features:
        tasks[int(rng.integers(T))] = [[Fraction(0)] * d for _ in range(int(rng.integers(1, 3)))]
    w = [Fraction(0)] * d
    while not any(w):
        w = [Fraction(int(one)) for one in rng.integers(-3, 4, size=d)]
        if rng.random() < 0.3:
            w = [one / 8 for one in w]
    if "huge" in features:
        w = _times(w, _power(rng, 10, 40))
    labels = [[sum(a * b for a, b in zip(row, w, strict=True)) for row in rows] for rows in tasks]
    if "perturbed" in features:
        labels = [[_rounded(y * (1 + Fraction(int(rng.integers(-2, 3)), 2**28))) for y in label] for label in labels]
    if not all(_is_float(entry) for rows in (*tasks, labels) for row in rows for entry in row):
        return None
    return [[[float(entry) for entry in row] for row in rows] for rows in tasks], [
        [float(entry) for entry in label] for label in labels
    ]


def _independent_rows(rng: np.random.Generator, rank: int, d: int) -> Rows:
    while True:
        rows = rng.integers(-4, 5, size=(rank, d))
        if matrix(rows.tolist()).rank() == rank:
            return [[Fraction(int(entry)) for entry in row] for row in rows]


def _with_combinations(rng: np.random.Generator, rows: Rows, d: int) -> Rows:
    """One or two dependent rows more, sometimes until n > d."""
    grown = list(rows)
    extra = d + 1 - len(rows) if rng.random() < 0.3 else int(rng.integers(1, 3))
    for _ in range(max(1, extra)):
        factors = [int(one) for one in rng.integers(-2, 3, size=len(rows))]
        grown.append([sum(f * row[j] for f, row in zip(factors, rows, strict=True)) for j in range(d)])
    return [grown[i] for i in rng.permutation(len(grown))]


def _norms(rng: np.random.Generator, T: int) -> list[Fraction]:
    if rng.random() < 0.5:
        return [_power(rng, -26, 26) for _ in range(T)]
    return [_short(10.0 ** int(rng.integers(-8, 9))) for _ in range(T)]


def _short(number: float) -> Fraction:
    """A number of 24 bits."""
    return Fraction(float(np.float32(number)))


def _power(rng: np.random.Generator, least: int, most: int) -> Fraction:
    return Fraction(2) ** int(rng.integers(least, most + 1))


def _times(row: list[Fraction], scale: Fraction) -> list[Fraction]:
    return [scale * entry for entry in row]


def _rounded(number: Fraction) -> Fraction:
    return Fraction(float(number))


def _is_float(number: Fraction) -> bool:
    return Fraction(float(number)) == number


def _scheme(rng: np.random.Generator, problem: Problem) -> Any:
    kind = rng.random()
    if kind < 0.5:
        return fg.schemes.Kaczmarz()
    top = max(sum(entry**2 for row in X for entry in row) for X in problem.Xs) or 1.0
    step = float(_short(float(rng.choice([0.3, 1.0, 1.8])) / top))
    if kind < 0.65:
        return fg.schemes.SGD(float(rng.choice([0.1, 0.25, 0.5, 0.75, 1.5, 1.9])))
    if kind < 0.75:
        return fg.schemes.SGD(step, objective="loss")
    if kind < 0.87:
        return fg.schemes.FiniteSteps(int(rng.integers(1, 6)), step)
    some = problem.Xs[int(rng.integers(len(problem.Xs)))]
    size = sum(entry**2 for row in some for entry in row) or 1.0
    return fg.schemes.Ridge(float(_short(size * 10.0 ** int(rng.integers(-6, 3)))))
