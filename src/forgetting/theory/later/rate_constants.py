r"""The numbers of the bounds at rate 1/k, for independent draws; the proofs are in docs/one-over-k.md.

d_n = E |P_m z_n|^2 for a fresh task m after n draws, in units of |w_0 - w*|^2. `fresh(n)` = u(n) bounds d_n for all
tasks, ranks, dimensions and weights; its first values and C_0 are proved in ball arithmetic by `tools/prove_rate.py`.

`least_fresh` also uses the dimension D of the joint row space and X = sum_m p_m P_m of given tasks. For every number
lambda >= 0 and every step function C(t) <= lambda on 0 <= t < b (0 beyond)

    d_n <= lambda + W max |f(y)| over y in [0, 1], in two forms:

====  ====================================================  ==========
form  f(y)                                                  W
====  ====================================================  ==========
rank  y (1-y)^n - y (integral of C(t) e^(-ty) over t)       sqrt(D)
rank  the same with n-1 in place of n, for n >= 1           |I - X|_F
mean  (1-y)^n - (integral of C(t) e^(-ty) over t)           |X|_F
====  ====================================================  ==========

|.|_F is the Frobenius norm. The best lambda and C are a linear program (`solve_line`). A solution for one W is a line
in W that holds for every W: good lines are stored in `moment_lines.json`, for each n up to 64, and, in units of n + 1,
for all larger n. `python -m forgetting.theory.check_lines FILE` checks them with the standard library alone.
"""

from __future__ import annotations

import json
import math
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.optimize import linprog

from forgetting.core.arrays import Array
from forgetting.core.numerical import EPS
from forgetting.theory.expression import spectral
from forgetting.theory.setting import Setting

Form = Literal["rank", "mean"]

#: (n + 1) u(n) for n = 1, ..., 64, rounded up
FIRST = (
    0.76981, 0.77273, 0.79440, 0.81891, 0.84305, 0.86604, 0.81840, 0.76617, 0.72998, 0.70442, 0.68570, 0.67150, 0.66037,
    0.65135, 0.64387, 0.63755, 0.63210, 0.62735, 0.62310, 0.61928, 0.61587, 0.61276, 0.60994, 0.60736, 0.60498, 0.60279,
    0.60076, 0.59887, 0.59711, 0.59547, 0.59393, 0.59248, 0.59113, 0.58985, 0.58864, 0.58750, 0.58641, 0.58539, 0.58441,
    0.58348, 0.58260, 0.58176, 0.58095, 0.58018, 0.57944, 0.57873, 0.57806, 0.57740, 0.57678, 0.57618, 0.57560, 0.57504,
    0.57450, 0.57398, 0.57348, 0.57299, 0.57252, 0.57207, 0.57163, 0.57120, 0.57079, 0.57039, 0.57000, 0.56963,
)  # fmt: skip
LAST = len(FIRST)
C_0 = 0.5435611  # the rate in continuous time: t |exp(-t (1 - Q))[E P]| <= C_0
STORED = Path(__file__).with_name("moment_lines.json")


def fresh(n: int) -> float:
    """u(n), the bound on d_n for all tasks.

    >>> fresh(0), round(fresh(1), 5), round(10**6 * fresh(10**6), 4)
    (1.0, 0.3849, 0.5436)
    """
    if n <= LAST:
        return FIRST[n - 1] / (n + 1) if n else 1.0
    return (C_0 * math.exp(1 / (12 * (n + 1))) * (1 + 3.48 / (n + 1)) + 2e-6) / (n + 1)


def visited(k: int, unseen: float | None = None) -> float:
    """v(k), a bound on sum_t E |S_k ... S_(t+1) P_t z_(t-1)|^2, S_t the step t, P_t the row space of its task.

    `unseen` is a bound on d_(k-1), u(k-1) if left out.

    >>> visited(2), round(visited(3), 5), visited(1)
    (0.5, 0.75758, 1.0)
    """
    return 0.5 if k % 2 == 0 else min(1.0, 0.5 + (fresh(k - 1) if unseen is None else unseen))


# Given tasks ----------------------------------------------------------------------------------------------------------


class Line(NamedTuple):
    """A choice of lambda and C for a form and n, in units of r = n + 1: d_n <= (share + size most) / r.

    `size` is W in the rank form and r W in the mean form.

    Attributes:
        share: r lambda.
        most: a bound on r |f| in the rank form, on |f| in the mean form.
        ends: where the steps of C end, divided by r; the first begins at 0.
        heights: r C on these steps.
    """

    share: float
    most: float
    ends: tuple[float, ...] = ()
    heights: tuple[float, ...] = ()


def least_fresh(s: Setting, n: int) -> float:
    """The smallest bound on d_n: u(n), or a line at the rank and the mean projection of the setting.

    Cost: microseconds; with `programs`, 0.1 s.

    >>> round(10**6 * least_fresh(Setting(rank_joint=2), 10**6), 2)  # 0.54 for any dimension
    0.44
    >>> round(1000 * least_fresh(Setting(rank_joint=500, mean_projection=1e-4), 1000), 2)
    0.09
    """
    smallest = fresh(n)
    for form, draws, size in _sizes(s, n):
        lines = (solve_line(form, draws, size),) if s.programs else lines_of(form, draws)
        smallest = min(smallest, *((line.share + size * line.most) / (draws + 1) for line in lines))
    return smallest


def _sizes(s: Setting, n: int) -> list[tuple[Form, int, float]]:
    """For each row of the table whose W is known: the form, its number of draws, and the size for its lines."""
    sizes: list[tuple[Form, int, float]] = []
    if s.span is not None:
        sizes.append(("rank", n, math.sqrt(s.span)))
        if s.rank_weighted is not None and n:
            rest = max(s.span - s.rank_weighted, 0.0)  # the trace of I - X, and |I - X|_F^2 is at most that
            if s.mean_projection is not None:
                rest = min(rest, max(rest - s.rank_weighted + s.mean_projection**2, 0.0) + 1e-14 * s.span)
            sizes.append(("rank", n - 1, math.sqrt(rest)))
    if s.mean_projection is not None:
        sizes.append(("mean", n, (n + 1) * s.mean_projection))
    return sizes


@lru_cache(4096)
def lines_of(form: Form, n: int) -> tuple[Line, ...]:
    """The stored lines for these draws, and lambda = 0."""
    without = _without(form, n)
    if n <= LAST:
        return (without, *stored_lines()[form].get(str(n), ()))
    return (without, *(line._replace(most=line.most + beyond(form, n)) for line in stored_lines()[form]["large"]))


def _without(form: Form, n: int | None) -> Line:
    """The line with lambda = 0 and C = 0."""
    peak = math.exp(-1) if n is None else (n + 1) * spectral(n)
    return Line(0.0, peak * (1 + 16 * EPS) if form == "rank" else 1.0)


@cache
def stored_lines() -> dict[str, dict[str, list[Line]]]:
    """The stored lines of each form, by n; those for large n by the word large."""
    lines = json.loads(STORED.read_text(encoding="utf-8"))["lines"]
    return {form: {n: [Line(*line) for line in some] for n, some in by_n.items()} for form, by_n in lines.items()}


def beyond(form: Form, n: int) -> float:
    """How much the largest |f| of a line for large n may grow at n > 64 draws (step 38 of docs/one-over-k.md)."""
    return (0.35 if form == "rank" else 0.25) / (n + 1)


# The linear program ---------------------------------------------------------------------------------------------------


@lru_cache(256)
def solve_line(form: Form, n: int | None, size: float) -> Line:
    """The best line for one size, over step functions C with 58 steps; 0.02 s. None as n is the limit of large n.

    >>> line = solve_line("rank", 100, 2.0)
    >>> round(line.share + 2 * line.most, 2), round(101 * fresh(100), 2)
    (0.52, 0.56)
    """
    without = _without(form, n)
    if n == 0:
        return without
    ends = np.geomspace(0.004, 150.0, 58)
    s = _points(ends, n, 600)[30:]  # those near 0 say nothing new
    steps, target = _parts(form, n, ends, s)
    if form == "mean":  # y = 0
        steps, target = np.vstack([steps, np.diff(ends, prepend=0.0)]), np.append(target, 1.0)
    total, ones = steps.sum(axis=1)[:, None], np.ones((len(target), 1))
    # unknowns, all at least 0: how far C is below lambda on each step; lambda; the largest |f|
    rows = np.block([[steps, -total, -ones], [-steps, total, -ones]])
    costs = np.concatenate([np.zeros(len(ends)), [1.0, size]])
    solved: Any = linprog(costs, A_ub=rows, b_ub=np.concatenate([-target, target]), method="highs")
    if solved.status != 0:
        return without
    share = math.ceil(1e5 * solved.x[-2]) / 1e5
    heights = np.minimum(np.round(solved.x[-2] - solved.x[:-2], 5), share)
    last = np.append(np.diff(heights) != 0, True)  # neighbours of one height are one step
    line = Line(share, 0.0, tuple(ends.round(5)[last].tolist()), tuple(heights[last].tolist()))
    line = line._replace(most=largest(form, n, line))
    return min(without, line, key=lambda line: line.share + size * line.most)


def largest(form: Form, n: int | None, line: Line, points: int = 4000) -> float:
    """A bound on r |f(y)|, or |f(y)| in the mean form, over y in [0, 1], from values at `points` points.

    |f''| in log y is bounded, so that f exceeds its values on a grid of width h by at most h^2/8 of that bound (step 37
    of docs/one-over-k.md). None as n is the limit of large n.

    >>> 0.5 < largest("rank", 1, Line(0.0, 0.0)) < 0.50001  # 2 (y - y^2)
    True
    """
    ends, heights = np.array(line.ends or (1.0,)), np.array(line.heights or (0.0,))
    begins, lengths = np.concatenate([[0.0], ends[:-1]]), np.diff(ends, prepend=0.0)
    area = float(np.abs(heights) @ lengths)
    s = _points(ends, n, points, area)
    steps, target = _parts(form, n, ends, s)
    values = np.abs(target - steps @ heights)
    first, until = np.multiply.outer(s[:-1], begins), np.multiply.outer(s[1:], ends)
    late, early = first > 2.62, np.minimum(until, 0.31 if form == "mean" else 0.48)
    turns = np.where(late, (first**2 - first) * np.exp(-first), early)
    if form == "rank":
        turns[:, 1:] = np.minimum(turns[:, 1:], 0.43 * np.log(ends[1:] / ends[:-1]))
        at_zero, far = s[0] * (1 + area), abs(float(heights[0]))
    else:
        turns *= lengths
        at_zero = abs(1 - float(heights @ lengths)) + s[0] * (1 + area * ends[-1])
        far = abs(float(heights[0])) / s[-1]
    far += 1e-17 * (1 + 2 * float(np.abs(heights).sum()))  # e^-40, since s goes up to 40 / ends[0]
    bends = _bend(form, n) + turns @ np.abs(heights)
    inside = np.maximum(values[:-1], values[1:]) + bends * (math.log(s[1] / s[0]) ** 2 / 8)
    return float(max(inside.max(), at_zero, far if n is None else 0.0)) + 1e-12


def _points(ends: Array, n: int | None, points: int, area: float = 100.0) -> Array:
    """Points s = r y from nearly 0 to r, or to where f ends in the limit of large n, evenly in log s."""
    top = 40.0 * max(1.0, 1 / ends[0]) if n is None else n + 1.0
    s = np.exp(np.linspace(math.log(1e-5 / (1 + area * (1 + ends[-1]))), math.log(top), points))
    return s if n is None else np.minimum(s, top)


def _parts(form: Form, n: int | None, ends: Array, s: Array) -> tuple[Array, Array]:
    """At s = r y the integral of e^(-ty) over each step of C, and the other part of f; times r y in the rank form."""
    falls = np.exp(-np.multiply.outer(s, np.concatenate([[0.0], ends[:-1]])))
    steps = falls * -np.expm1(-np.multiply.outer(s, np.diff(ends, prepend=0.0)))
    with np.errstate(divide="ignore"):  # log(0) at y = 1
        power = np.exp(-s if n is None else n * np.log1p(-s / (n + 1)))
    return (steps, s * power) if form == "rank" else (steps / s[:, None], power)


def _bend(form: Form, n: int | None) -> float:
    """A bound on the second derivative in log y of r y (1-y)^n, or of (1-y)^n in the mean form."""
    if n is None:
        return 1.72 if form == "rank" else 0.55

    def peak(a: int, b: int) -> float:  # the largest y^a (1-y)^b
        if b <= 0:
            return float(b == 0)
        return math.exp(a * math.log(a / (a + b)) + b * math.log1p(-a / (a + b)))

    if form == "mean":
        return max(n * peak(1, n - 1), n * (n - 1) * peak(2, n - 2))
    return (n + 1) * max(peak(1, n) + n * (n - 1) * peak(3, n - 2), 3 * n * peak(2, n - 1))
