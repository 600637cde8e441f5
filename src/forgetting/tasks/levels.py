"""Tasks in levels: the worst tasks that are known for many random steps, with their exact expected loss.

The coordinates are divided into levels of n_0 = 1, n_1, ..., n_m coordinates, and w* is the one of level 0. A line of
edge a joins levels a and a+1: it is a unit vector v with the share s_a of its square in level a and the rest in level
a+1. The lines of an edge are rows of a Fourier matrix, so that the mean of their v v' is diagonal: s_a/n_a on level a,
(1 - s_a)/n_(a+1) on level a+1, 0 elsewhere. So Q[A] = E P A P maps diagonal matrices that are constant on
each level to such matrices, and all that k steps do is a power of a matrix of m + 1 rows.

With one edge the lines are equiangular: all angles between them are the same. E |x.(w_k - w*)|^2 for a fresh row x is
the sum over the levels of the rate of the level, the mean square of a fresh row on one of its coordinates, times the
square of w_k - w* that is expected on the level. A square leaves a level at twice its rate, and half of that is lost.
Levels of ever faster rates bring more of the square to where it is seen at the time k: k E L tends to 0.2175 with one
edge, 0.2250 with two and 0.2270 with many, and no tasks have more than 0.2718 (docs/one-over-k.md).
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from forgetting.core.arrays import Array, as_count, as_number
from forgetting.core.memory import require_memory
from forgetting.errors import InvalidInputError
from forgetting.tasks.regression import RegressionTasks

ROOM = 24.0  # bytes for each number of the distinct rows, while tasks are made of them
MOST = 10**12  # tasks, and steps, of an entry of the frontier
SEARCHED = 64  # tasks or dimensions of three levels that are looked for by a search
_COUNTS, _SHARE = r"\d{1,12}(?:,\d{1,12}){0,19}", r"(?:0\.\d{1,30}|[\d.]{1,30}e-\d{1,2})"
SPELT = re.compile(
    rf"(?:equiangular share|levels sizes=(?P<sizes>{_COUNTS}) clones=(?P<clones>{_COUNTS}) shares)"
    rf"=(?P<shares>{_SHARE}(?:,{_SHARE}){{0,19}})"
)


@dataclass(frozen=True)
class Levels:
    """The numbers that make tasks in levels.

    Attributes:
        sizes: the number of coordinates of each level, the first of which is 1.
        clones: how often each line of an edge is a task, for each edge.
        shares: the share of a line of an edge in its first level, for each edge.

    >>> made = Levels((1, 4, 10), (1, 2), (0.1, 0.2))
    >>> made.lines, made.num_tasks, made.tasks().dim
    ((5, 15), 35, 15)
    """

    sizes: tuple[int, ...]
    clones: tuple[int, ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        sizes = tuple(as_count(n, f"size of level {a}", least=1) for a, n in enumerate(self.sizes))
        if len(sizes) < 2 or sizes[0] != 1:
            raise InvalidInputError(f"sizes = {self.sizes!s:.80}: the sizes of two or more levels, the first of them 1")
        for name in ("clones", "shares"):
            if len(getattr(self, name)) != len(sizes) - 1:
                raise InvalidInputError(
                    f"{name} = {getattr(self, name)!s:.80}: expected {len(sizes) - 1} numbers, one for each pair of "
                    f"neighbours among {len(sizes)} levels"
                )
        object.__setattr__(self, "sizes", sizes)
        clones = tuple(as_count(c, f"clones of edge {a}", least=1) for a, c in enumerate(self.clones))
        object.__setattr__(self, "clones", clones)
        shares = tuple(as_number(s, f"share of edge {a}", above=0, below=1) for a, s in enumerate(self.shares))
        object.__setattr__(self, "shares", shares)

    @property
    def lines(self) -> tuple[int, ...]:
        """The number of lines of each edge: the coordinates of its levels, and one more if both sizes are even."""
        return _lines_of(self.sizes)

    @property
    def num_tasks(self) -> int:
        """T, clones counted."""
        return sum(c * n for c, n in zip(self.clones, self.lines, strict=True))

    @property
    def weights(self) -> Array:
        """The share of the tasks that are lines of each edge."""
        return np.array([c * n / self.num_tasks for c, n in zip(self.clones, self.lines, strict=True)])

    def loss(self, k: int) -> float:
        """E L(w_k) with replacement. Cost: log2(k) products of matrices of as many rows as there are levels.

        >>> import forgetting as fg
        >>> made = Levels((1, 4, 10), (1, 2), (0.1, 0.2))
        >>> exact = fg.expect(made.tasks(), "with-replacement", k=30).loss
        >>> abs(made.loss(30) / exact - 1) < 1e-12
        True
        """
        return _loss(self.weights, np.array(self.shares), np.array(self.sizes, dtype=np.float64), k)

    @property
    def construction(self) -> str:
        """The numbers in words, as in a file of the frontier."""
        if len(self.sizes) == 2 and self.clones == (1,):
            return f"equiangular share={self.shares[0]!r}"
        parts = {"sizes": self.sizes, "clones": self.clones, "shares": self.shares}
        return "levels " + " ".join(f"{name}={','.join(map(repr, numbers))}" for name, numbers in parts.items())

    @classmethod
    def read(cls, construction: str, T: int) -> Levels:
        """The levels of T tasks that `construction` names; an error if it names none.

        >>> Levels.read("levels sizes=1,4,10 clones=1,2 shares=0.1,0.2", T=35).num_tasks
        35
        """
        spelt = SPELT.fullmatch(construction)
        if spelt is None:
            raise InvalidInputError("expected 'equiangular share=S', or 'levels sizes=1,... clones=... shares=...'")
        shares = tuple(map(float, spelt["shares"].split(",")))
        if spelt["sizes"] is None:
            return cls((1, T - 1), (1,), shares)
        sizes, clones = (tuple(map(int, spelt[name].split(","))) for name in ("sizes", "clones"))
        made = cls(sizes, clones, shares)
        if made.num_tasks != T:
            raise InvalidInputError(f"these levels have {made.num_tasks} tasks, not {T}")
        return made

    def tasks(self) -> RegressionTasks:
        """The tasks: one row each, clones next to each other and stored once, |w*| = 1.

        The rows of an edge are those of a real Fourier matrix: cosines and sines of one frequency for two coordinates
        of a level, the constant and the alternating column for single coordinates of levels of odd size.
        """
        lines, dim = sum(self.lines), sum(self.sizes)
        room = ROOM * lines * dim + 300.0 * self.num_tasks
        require_memory(
            room, f"{self.num_tasks} tasks, {lines} distinct rows in {dim} dimensions,",
            "use smaller levels; their expected loss needs no tasks: fg.worstcase.frontier('loss').best(k=...).value",
        )  # fmt: skip
        begins = np.concatenate([[0], np.cumsum(self.sizes)])
        matrices: list[Array] = []
        labels: list[Array] = []
        for a, (count, clones, share) in enumerate(zip(self.lines, self.clones, self.shares, strict=True)):
            rows = np.zeros((count, dim))
            frequency, single = 1, iter((0.0, count / 2))
            for level, part in ((a, share), (a + 1, 1 - share)):
                columns, at = self.sizes[level], int(begins[level])
                angles = np.arange(count) * (2 * math.pi / count)
                if columns % 2:
                    rows[:, at] = math.sqrt(part / columns) * np.cos(next(single) * angles)
                    at += 1
                for _ in range(columns // 2):
                    turn = math.sqrt(2 * part / columns)
                    rows[:, at], rows[:, at + 1] = turn * np.cos(frequency * angles), turn * np.sin(frequency * angles)
                    frequency, at = frequency + 1, at + 2
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)  # 1 but for rounding
            for row in rows:  # clones are the same objects: they are read once
                matrices += [row[None]] * clones
                labels += [row[:1]] * clones
        return RegressionTasks(matrices, labels)


def _lines_of(sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n + m + (n % 2 == m % 2 == 0) for n, m in pairwise(sizes))


def _loss(p: Array, shares: Array, sizes: Array, k: int) -> float:
    """E L of edges with these weights and shares, on levels of these sizes, which need not be whole numbers."""
    Q, rates = _chain(p, shares, sizes)
    return float(rates @ np.linalg.matrix_power(Q, k)[:, 0] / 2)


def _chain(p: Array, shares: Array, sizes: Array) -> tuple[Array, Array]:
    """Q on the squares of the levels, and the rates of the levels."""
    parts = np.zeros((len(p), len(sizes)))
    edges = np.arange(len(p))
    parts[edges, edges], parts[edges, edges + 1] = shares, 1 - shares
    rates = p @ parts / sizes
    return np.diag(1 - 2 * rates) + (parts * p[:, None]).T @ (parts / sizes), rates


def levels_with_rates(rates: Sequence[float], sizes: Sequence[int], clones: Sequence[int], k: int) -> Levels:
    """Levels whose shares give all but the last of them the rates rates[a] / (2 k).

    >>> made = levels_with_rates((1.4, 3.3), sizes=(1, 56, 194), clones=(1, 10), k=1000)
    >>> round(1000 * made.loss(1000), 3)
    0.222
    """
    k = as_count(k, "k", least=1)
    wanted = [as_number(rate, f"rate of level {a}", above=0) for a, rate in enumerate(rates)]
    if len(sizes) != len(wanted) + 1:
        raise InvalidInputError(f"sizes = {sizes!s:.80}: {len(wanted)} rates are those of {len(wanted) + 1} levels")
    shares: list[float] = []
    made = Levels(tuple(sizes), tuple(clones), (0.5,) * len(wanted))
    back = 0.0  # the rate that the edge before gives to the coordinates of the level, all together
    for a, (rate, weight, size) in enumerate(zip(wanted, made.weights, made.sizes, strict=False)):
        share = (rate / (2 * k) * size - back) / weight
        if not 0 < share < 1:
            raise InvalidInputError(
                f"rate of level {a} is {rate:g}: its {size} coordinates cannot have this rate at k = {k}, since the "
                f"edge behind them, {weight:.3g} of the tasks, would need the share {share:.3g}"
            )
        shares.append(float(share))
        back = weight * (1 - share)
    return Levels(made.sizes, made.clones, tuple(shares))


def equiangular(T: int, share: float) -> Levels:
    """T equiangular lines: two levels, of 1 and T - 1 coordinates."""
    return Levels((1, as_count(T, "T", least=2) - 1), (1,), (share,))


def worst_equiangular(T: int, k: int) -> Levels:
    """T equiangular lines with the share that has the largest E L(w_k).

    At T of about 0.407 k, k times this tends to 0.21754, more than 1/(2e) = 0.18394 of two tasks.

    >>> round(1000 * worst_equiangular(408, 1000).loss(1000), 4)
    0.2174
    """
    low, high = math.log(1e-3 / k), math.log(0.75)
    for _ in range(120):
        third = (high - low) / 3
        left, right = (equiangular(T, math.exp(low + step * third)).loss(k) for step in (1, 2))
        low, high = (low + third, high) if left < right else (low, high - third)
    return equiangular(T, math.exp((low + high) / 2))


@lru_cache(64)
def worst_levels(k: int) -> Levels:
    """Three levels with nearly the largest E L(w_k) that such tasks can have. Cost: 0.1 s.

    >>> round(1000 * worst_levels(1000).loss(1000), 3)  # equiangular lines: 0.217
    0.222
    """
    from scipy.optimize import minimize

    k = as_count(k, "k", least=10)

    def numbers(v: Array) -> tuple[Array, Array, Array]:
        shares = 1 / (1 + np.exp(-v[:2]))
        sizes = np.concatenate([[1.0], 1 + np.exp(np.minimum(v[2:4], 60.0))])
        first = 1 / (1 + math.exp(min(float(v[4]), 60.0)))
        return np.array([first, 1 - first]), shares, sizes

    scale = math.log(k)
    start = np.array([-0.3 * scale - 1.4, -0.4 * scale + 0.2, 0.6 * scale, scale - 1.6, 0.64 * scale - 0.5])
    options = {"maxiter": 4000, "maxfev": 4000, "xatol": 1e-4, "fatol": 1e-9, "adaptive": True}
    best = minimize(lambda v: -k * _loss(*numbers(v), k), start, method="Nelder-Mead", options=options).x
    p, shares, wide = numbers(best)
    sizes = (1, *(2 * max(1, round(n / 2)) for n in wide[1:].tolist()))
    lines = Levels(sizes, (1, 1), (0.5, 0.5)).lines
    ratio = p[1] / p[0] * lines[0] / lines[1]
    pairs = [(c, max(1, round(c * ratio))) for c in range(1, 6)]
    clones = min(pairs, key=lambda pair: (round(abs(math.log(pair[1] / pair[0] / ratio)), 1), pair))
    return _with_best_shares(sizes, clones, shares, k)


def levels_within(T: int, d: int, k: int, exact: bool = False) -> Levels | None:
    """Three levels of at most T tasks without clones and d dimensions, with nearly the largest E L(w_k).

    `exact` asks for exactly T tasks. None if there are no such levels, as for T below 4. Cost: d searches, 0.2 s in all
    for d = 32.

    >>> made = levels_within(32, 16, 32)
    >>> made.num_tasks <= 32, round(32 * made.loss(32), 3)  # equiangular lines of 14 tasks: 0.214
    (True, 0.214)
    """
    best: Levels | None = None
    for middle in range(1, d - 1):
        last = min(d - 1 - middle, T - 1 - 2 * middle)
        count = _lines_of((1, middle, last))
        if sum(count) > T:  # two levels of even size have a line more
            last -= 1
            count = _lines_of((1, middle, last))
        if last < 1 or (exact and sum(count) != T):
            continue
        made = _with_best_shares((1, middle, last), (1, 1), np.array([0.05, 0.25]), k)
        if best is None or made.loss(k) > best.loss(k):
            best = made
    return best


def levels_of(T: int | None, d: int | None, k: int) -> Levels | None:
    """Tasks in levels with a large E L(w_k): T of them or fewer as clones (None: any number), in at most d dimensions.

    They are `worst_levels(k)` where these may be, and else the best of equiangular lines, about 0.407 k or a divisor of
    T near to that, and of three levels, of 64 tasks or dimensions at most. None where d or T is 1. Cost: half a second.

    >>> made = levels_of(8, None, 100)
    >>> made.num_tasks, round(100 * made.loss(100), 4), round(100 * levels_of(None, None, 100).loss(100), 4)
    (8, 0.1899, 0.2183)
    """
    if T is None and k >= 10:
        worst = worst_levels(k)
        if worst.num_tasks <= MOST and (d is None or sum(worst.sizes) <= d):
            return worst
    aim = max(2, round(0.4074 * k + 1))
    if T is None:
        wide = 2 * aim if d is None else min(d, 2 * aim)
        counts, three = [min(aim, wide)], levels_within(2 * wide, wide, k) if wide <= SEARCHED else None
    else:
        divisors = _divisors(T)
        few = max(n for n in divisors if n <= SEARCHED)
        counts = _around(aim, [n for n in divisors if n <= (d or T)])
        three = levels_within(few, min(few, d or few), k, exact=True)
    found = [worst_equiangular(n, k) for n in counts if n >= 2] + ([] if three is None else [three])
    return max(found, key=lambda made: made.loss(k), default=None)


def _divisors(T: int) -> list[int]:
    low = [n for n in range(1, math.isqrt(T) + 1) if T % n == 0]
    return sorted({*low, *(T // n for n in low)})


def _around(aim: int, numbers: list[int]) -> list[int]:
    """The largest of the sorted numbers that is at most `aim`, and the smallest above it."""
    place = bisect_right(numbers, aim)
    return numbers[max(place - 1, 0) : place + 1]


def _with_best_shares(sizes: tuple[int, ...], clones: tuple[int, ...], shares: Array, k: int) -> Levels:
    """Levels of these sizes with the shares that have the largest E L(w_k), found from the given ones."""
    from scipy.optimize import minimize

    p = Levels(sizes, clones, (0.5,) * len(clones)).weights
    spread = np.array(sizes, dtype=np.float64)

    def at(v: Array) -> float:
        return -k * _loss(p, 1 / (1 + np.exp(-v)), spread, k)

    v = minimize(at, np.log(shares / (1 - shares)), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-13}).x
    return Levels(sizes, clones, tuple(float(f"{s:.6g}") for s in (1 / (1 + np.exp(-np.clip(v, -40, 13)))).tolist()))


def levels_limit(rates: Sequence[float]) -> float:
    """The limit of k E L for large k, of levels whose squares mostly move on, at these rates (times 2 k).

    A square leaves level a at the rate rates[a], and half of that arrives at the next level; what leaves the last level
    stays there by half. k E L tends to half of the rate at which it is lost at time 1.

    >>> round(levels_limit((1.32, 4.909)), 5), round(levels_limit((1.392, 2.926, 9.208)), 5)
    (0.21754, 0.225)
    >>> round(levels_limit((1.411, 3.067, 5.509, 9.157, 14.89, 24.29, 39.35, 116.3)), 5)
    0.22701
    """
    from scipy.linalg import expm

    leaving = np.array([as_number(rate, f"rate of level {a}", above=0) for a, rate in enumerate(rates)])
    moves = np.diag(-leaving) + np.diag(leaving[:-1] / 2, -1)
    moves[-1, -1] /= 2
    return float(leaving @ expm(moves)[:, 0] / 4)
