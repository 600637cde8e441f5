"""Prove the rate u(n) of independent draws in ball arithmetic: `python -m tools.prove_rate`.

The proof is in docs/one-over-k.md; each function names the steps of that page which it checks. Three things are proved:

- C_0, the rate in continuous time, to seven digits;
- the formula (C_0 e^(1/(12 r)) (1 + 3.48/r) + 2e-6)/r for u(n), r = n + 1, n >= 64;
- the values of (n+1) u(n) for n = 1, ..., 64, to five digits.

Numbers of type `arb` are balls: intervals that contain the exact value, and `<` holds only if it holds for every point
of both balls. Floats choose parameters (angles, cells, where to stop). Any choice that passes `certain` is admissible:
an unlucky one makes a bound larger, never wrong. The values are written to tests/theory/proved_rates.json; `--check`
compares with that file and writes nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import flint
from flint import arb, arb_poly, ctx

FILE = Path(__file__).parents[1] / "tests" / "theory" / "proved_rates.json"
BITS = 80
LAST = 64  # the last n whose value is proved on its own
C_0 = "0.5435611"  # proved to be at least the rate in continuous time
SLOPE, REMAINDER = "3.48", "2e-6"  # of the formula beyond LAST
EDGE = "0.7"  # the formula integrates over angles up to this one, and bounds the rest

ctx.prec = BITS
PI = arb.pi()
THIRD = PI / 3


class NotProvedError(Exception):
    """A step of the proof does not hold with the chosen parameters."""


def certain(holds: bool, step: str) -> None:
    """Stop unless a comparison of balls holds for certain.

    >>> certain(arb(1) / 3 < arb("0.34"), "a third")
    >>> certain(arb(1) / 3 < arb(1) / 3, "a third")
    Traceback (most recent call last):
    tools.prove_rate.NotProvedError: not proved: a third
    """
    if not holds:
        raise NotProvedError(f"not proved: {step}")


def smaller(x: arb, y: arb) -> arb:
    """One of two upper bounds, the smaller one if that can be decided."""
    return y if y < x else x


# Continuous time ------------------------------------------------------------------------------------------------------

TERMS = 60  # terms of C(a) with an angle of their own; one more angle serves all that follow


def good_angle(n: int, a: float) -> float:
    """An angle th in (a, pi/2) near which the n-th term of C(a) is smallest; found by floats."""

    def log_term(th: float) -> float:
        return -(n + 1) * math.log(math.cos(th)) - math.log(th * math.cos(math.pi * a / (2 * th)))

    low, high = a + 1e-9, 1.57
    for _ in range(60):
        third = (high - low) / 3
        if log_term(low + third) < log_term(high - third):
            high -= third
        else:
            low += third
    return (low + high) / 2


def good_angles(a: float, least: float = 0.0) -> list[float]:
    """Angles for C of every angle from 0 to a, none below `least`."""
    return [max(good_angle(n, a), least) for n in range(1, TERMS + 2)]


def growth(a: arb, angles: Sequence[float]) -> arb:
    """C(a) with the given angles (steps 20 and 25): r |exp(-r e^(ia) (1 - Q))[P]| is at most this.

    Terms n = 1, ..., 60 have an angle each, and the last angle serves all terms from 61 on, a geometric series.

    >>> growth(arb(0), good_angles(0.0)) < arb(C_0)
    True
    """
    total = 1 / (2 * arb(1).exp() * a.cos())
    for n, angle in enumerate(angles, 1):
        th = arb(angle)
        certain(a < th, "step 25: a is below the angle")
        certain(th < PI / 2, "step 25: the angle is below pi/2")
        ratio = 1 / (2 * th.cos())
        term = ratio ** (n + 1) / (4 * th * (PI * a / (2 * th)).cos())
        if n == len(angles):
            certain(ratio < 1, "step 25: the last terms are a convergent geometric series")
            term /= 1 - ratio
        total += term
    return total


def continuous_rate() -> arb:
    """C(0), which is at most C_0 (step 20).

    >>> print(continuous_rate().str(8, radius=False))
    0.54356104
    """
    value = growth(arb(0), good_angles(0.0))
    certain(value < arb(C_0), "step 20: C(0) is at most C_0")
    return value


class Cell(NamedTuple):
    """An interval of angles, and B at its ends with the same parameters: B increases and is convex (step 26)."""

    left: arb
    right: arb
    at_left: arb
    at_right: arb


@lru_cache(1)
def cells_of_growth(width: float = 0.002, count: int = 510, shifted_from: float = 0.95) -> tuple[Cell, ...]:
    """Cells of [0, 1.02] with B at their ends (steps 21 and 26), each by the better of two ways.

    C(a) with fixed angles, or C(b) sin(pi/3 - b) / sin(pi/3 - a) with the best b so far, which is not above the cell.
    """
    cells: list[Cell] = []
    best: tuple[float, arb, arb] | None = None  # how good b is, as a float; b; C(b) sin(pi/3 - b)
    for i in range(count):
        left, right = arb(i) * arb(width), arb(i + 1) * arb(width)
        end = (i + 1) * width
        choices = []
        if best is not None and best[1] <= left:
            choices.append(Cell(left, right, best[2] / (THIRD - left).sin(), best[2] / (THIRD - right).sin()))
        if end < shifted_from:
            angles = good_angles(end + 1e-12)
            direct = Cell(left, right, growth(left, angles), growth(right, angles))
            choices.append(direct)
            score = float(direct.at_right) * math.sin(math.pi / 3 - end)
            if best is None or score < best[0]:
                best = score, right, direct.at_right * (THIRD - right).sin()
        cells.append(min(choices, key=lambda cell: float(cell.at_right)))
    return tuple(cells)


# The contour integral -------------------------------------------------------------------------------------------------


def log_norm(x: arb, y: arb) -> arb:
    """gamma(x + iy) of steps 14 and 15, at least the logarithmic norm of (x + iy) Q (step 16)."""
    size = (x * x + y * y).sqrt()
    if 2 * x >= size:  # |arg| <= pi/3
        return x
    return size * size / (4 * (size - x)) if x < size else size


def log_norm_in_floats(x: float, y: float) -> float:
    size = math.hypot(x, y)
    return x if 2 * x >= size else size * size / (4 * (size - x))


def good_split(r: float, a: float, cells: Sequence[Cell]) -> tuple[Cell, float]:
    """A cell whose right end is b, and c, for which bound (c) of step 23 is small at the angle a; found by floats."""
    best: tuple[float, Cell, float] | None = None
    for cell in cells[::20]:
        b, value = float(cell.right), float(cell.at_right)
        for j in range(1, 41):
            c = j / 40
            bx, by = c * math.cos(b), c * math.sin(b)
            exponent = math.log(value / c) + r * (bx - 1 + log_norm_in_floats(math.cos(a) - bx, math.sin(a) - by))
            if best is None or exponent < best[0]:
                best = exponent, cell, c
    assert best is not None
    return best[1:]


def near_the_axis(r: arb, cell: Cell) -> arb:
    """The integral of bound (a) of step 23 over a cell (step 26).

    f(a) = exp(-r (1 - cos a)) falls and B grows: the integral of f B is at most that of f times the mean of B. The
    first is taken by the trapezoid rule, the second is at most the mean of the ends.
    """
    width = cell.right - cell.left
    at_left, at_right = ((r * (a.cos() - 1)).exp() for a in (cell.left, cell.right))
    angle = cell.left.union(cell.right)
    second = at_left.union(at_right) * (r * r * angle.sin() ** 2 - r * angle.cos())  # f''
    error = arb(0) if second >= 0 else width**3 / 12 * abs(second.lower())
    return (width * (at_left + at_right) / 2 + error) * (cell.at_left + cell.at_right) / 2


def away_from_the_axis(r: arb, cells: Sequence[Cell], count: int = 786, same: int = 8) -> list[arb]:
    """The integral of the smaller of bounds (b) and (c) of step 23 over each of `count` cells of [0, pi] (step 27).

    The logarithmic norm is convex, and exp(ia) is within width^2/8 of the chord of its cell.
    """
    width = PI / count
    swollen = (r * width * width / 8).exp() * width / 2
    edges = [((i * width).cos(), (i * width).sin()) for i in range(count + 1)]

    def over(i: int, factor: arb, bx: arb, by: arb) -> arb:
        ends = ((r * (bx - 1 + log_norm(x - bx, y - by))).exp() for x, y in (edges[i], edges[i + 1]))
        return factor * swollen * sum(ends, arb(0))

    integrals = []
    for i in range(count):
        if i % same == 0:  # neighbours share b and c
            cell, c = good_split(float(r), min((i + same / 2) * float(width), math.pi), cells)
        b = cell.right
        split = over(i, cell.at_right / arb(c), arb(c) * b.cos(), arb(c) * b.sin())
        integrals.append(smaller(over(i, r, arb(0), arb(0)), split))
    return integrals


def by_contour(n: int, cells: Sequence[Cell]) -> arb:
    """(n+1) u(n) from the contour integral on the circle of radius r = n + 1 (steps 22, 26 and 27)."""
    r = arb(n + 1)
    near = [near_the_axis(r, cell) for cell in cells]
    away = away_from_the_axis(r, cells)
    width = PI / len(away)
    rest = [0.0]
    for value in reversed(away):
        rest.append(rest[-1] + float(value))
    head, best = 0.0, (math.inf, 0, 0)
    for i, value in enumerate(near):  # (a) on the first i + 1 cells, then (b) or (c) from cell j on
        head += float(value)
        j = int(float(cells[i].right) / float(width))
        best = min(best, (head + rest[len(away) - j], i, j))
    _, i, j = best
    certain(j * width <= cells[i].right, "step 27: the cells of both kinds cover [0, pi]")
    factor = (r.lgamma() + r.log() + r - r * r.log()).exp() / (2 * PI)  # r! e^r / (2 pi r^r)
    return 2 * factor * sum(near[: i + 1] + away[j:], arb(0))


# The recursion of small n ---------------------------------------------------------------------------------------------

SMALL = 6  # up to here the recursion is better than the contour integral


def largest(p: arb_poly, cells: int = 2000) -> arb:
    """An upper bound on a polynomial on [0, 1], by its Taylor formula around the middle of each cell (step 28).

    >>> 1 < largest(arb_poly([0, 4, -4])) < arb("1.000001")
    True
    """
    slope, bend = p.derivative(), p.derivative().derivative()
    half, top = arb(1) / (2 * cells), arb(0)
    for i in range(cells):
        middle = arb(2 * i + 1) / (2 * cells)
        cell = (arb(i) / cells).union(arb(i + 1) / cells)
        value = (p(middle) + abs(slope(middle)) * half + abs(bend(cell)) * half * half / 2).upper()
        top = top if value < top else value
    return top


@lru_cache(1)
def by_recursion(last: int = SMALL) -> tuple[arb, ...]:
    """a_0, ..., a_last of step 24: u(n) may be a_n.

    a_n is the largest value of (1 - y) (y^(2n) + sum_(i<n) a_(n-1-i) y^(2i+1)) on [0, 1].

    >>> arb("0.3849") < by_recursion(1)[1] < arb("0.384901")  # 2 / (3 sqrt 3) = 0.38490018
    True
    """
    bounds = [arb(1)]
    for n in range(1, last + 1):
        coefficients = [arb(0)] * (2 * n) + [arb(1)]
        for i in range(n):
            coefficients[2 * i + 1] += bounds[n - 1 - i]
        bounds.append(largest(arb_poly(coefficients) * arb_poly([1, -1])))
    return tuple(bounds)


def rounded_up(value: arb, digits: int = 5) -> str:
    """A decimal number that is certainly at least the value.

    >>> rounded_up(arb(1) / 3)
    '0.33334'
    """
    text = f"{math.ceil(float(value.upper()) * 10**digits) / 10**digits:.{digits}f}"
    certain(value <= arb(text), "a value is rounded up")
    return text


def proved(n: int) -> tuple[str, str]:
    """(n+1) u(n), rounded up to five digits, and how it was proved.

    >>> proved(1)
    ('0.76981', 'recursion')
    """
    if n <= SMALL:
        return rounded_up((n + 1) * by_recursion()[n]), "recursion"
    return rounded_up(by_contour(n, cells_of_growth())), "contour"


# The formula for large n ----------------------------------------------------------------------------------------------


def prove_formula(say: Callable[[str], None] = print) -> None:
    """(n+1) u(n) may be C_0 e^(1/(12 r)) (1 + 3.48/r) + 2e-6, r = n + 1, for all n >= 64 (steps 29 and 30)."""
    at_zero = small_angles(say)
    medium_angles(say)
    rest = large_angles()
    r = LAST + 1
    certain(arb("1.5") / r < 1 - arb(EDGE).cos(), "step 30: what is left falls as r grows")
    excess = (at_zero - arb(C_0)) * (1 + arb(SLOPE) / r) * (arb(1) / (12 * r)).exp()
    certain(rest + excess < arb(REMAINDER), "step 30: what is left is below 2e-6")
    say(f"angles above {EDGE} at r = {r}: {rest.str(4, radius=False)}")
    first = arb(C_0) * (arb(1) / (12 * r)).exp() * (1 + arb(SLOPE) / r) + arb(REMAINDER)
    certain(first < arb(3) / 4, "n u(n) <= 3/4 for n >= 64, where the formula falls")


def small_angles(say: Callable[[str], None], end: str = "0.12") -> arb:
    """B(a)/cos(a/2) <= C' (1 + 3.48 b^2) for a up to 0.12, b = 2 sin(a/2) (step 29); C', the left side at 0.

    With fixed angles the left side is a power series in b^2 without negative coefficients, so that its mean slope in
    b^2 increases: the right end decides.
    """
    angles, a = good_angles(0.0, least=0.25), arb(end)
    at_zero = growth(arb(0), angles)
    slope = (growth(a, angles) / (a / 2).cos() - at_zero) / (4 * (a / 2).sin() ** 2) / at_zero
    certain(slope < arb(SLOPE), "step 29: the slope up to 0.12")
    say(f"largest slope up to {end}: {slope.str(6, radius=False)}")
    return at_zero


def medium_angles(say: Callable[[str], None], start: str = "0.12", ratio: float = 1.0008, same: int = 8) -> None:
    """The same from 0.12 to 0.7, on cells: the left side at their right ends, b at their left ends (step 29)."""
    left, worst, count = arb(start), arb(0), 0
    shifted: arb | None = None  # C(b) sin(pi/3 - b) of the best b so far
    angles: list[float] = []
    while left < arb(EDGE):
        if count % same == 0:
            angles = good_angles(float(left) * ratio**same + 1e-9)
        right = arb(float(left) * ratio)
        sine = (THIRD - right).sin()
        value = growth(right, angles)
        shifted = value * sine if shifted is None else smaller(shifted, value * sine)
        value = smaller(value, shifted / sine)
        slope = (value / (right / 2).cos() / arb(C_0) - 1) / (4 * (left / 2).sin() ** 2)
        certain(slope < arb(SLOPE), "step 29: the slope from 0.12 to 0.7")
        worst = worst if slope < worst else slope
        left, count = right, count + 1
    certain(left >= arb(EDGE), "step 29: the cells reach 0.7")
    say(f"largest slope from {start} to {EDGE}: {worst.str(6, radius=False)}")


def large_angles(b: float = 0.4, count: int = 400) -> arb:
    """The part of the integral with |a| > 0.7, at r = 65, with the factor in front (step 30)."""
    r, edge = arb(LAST + 1), arb(EDGE)
    width = (THIRD - edge) / count
    shifted = growth(arb(b), good_angles(b + 1e-12)) * (THIRD - arb(b)).sin()
    total = (PI - THIRD) * r * (-r / 2).exp()  # beyond pi/3, where gamma <= 1/2
    for i in range(count):
        left, right = edge + i * width, edge + (i + 1) * width
        bound = r  # (b) of step 23
        if i < count - 1:  # or (a); the last cell ends at pi/3, where B is infinite
            bound = smaller(bound, shifted / (THIRD - right).sin())
        total += width * (r * (left.cos() - 1)).exp() * bound
    return 2 * (2 * PI * r).sqrt() * (1 / (12 * r)).exp() / (2 * PI) * total


# All of it ------------------------------------------------------------------------------------------------------------


def digest(values: dict[str, Any]) -> str:
    """SHA-256 of the values that were proved."""
    kept = {key: values[key] for key in ("first", "C_0", "slope", "remainder")}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def prove_all(say: Callable[[str], None] = print) -> dict[str, Any]:
    """Prove all values, and return what the file holds."""
    say(f"C(0) = {continuous_rate().str(12, radius=False)}, at most C_0 = {C_0}")
    prove_formula(say)
    first = []
    for n in range(1, LAST + 1):
        value, how = proved(n)
        certain(n * arb(value) / (n + 1) < arb(3) / 4, f"n u(n) <= 3/4 at n = {n}")
        first.append(value)
        say(f"{n:2}  (n+1) u(n) = {value}  by the {how}")
    values: dict[str, Any] = {"first": first, "C_0": C_0, "slope": SLOPE, "remainder": REMAINDER}
    versions = {"python-flint": flint.__version__, "flint": flint.__FLINT_VERSION__, "bits": BITS}
    return {"proved_by": "python -m tools.prove_rate", **values, "sha256": digest(values), "versions": versions}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 if everything is proved and, with --check, equal to what the file holds."""
    parser = argparse.ArgumentParser(description="Prove the rate of independent draws in ball arithmetic.")
    parser.add_argument("--check", action="store_true", help="compare with the file, and write nothing")
    check = parser.parse_args(arguments).check
    values = prove_all()
    if check:
        same = json.loads(FILE.read_text(encoding="utf-8"))["sha256"] == values["sha256"]
        print(f"{'equal to' if same else 'different from'} {FILE.name}")
        return 0 if same else 1
    FILE.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {FILE}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
