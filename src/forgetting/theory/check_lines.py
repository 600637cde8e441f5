"""Check the lines of the moment bound with the standard library alone: python check_lines.py moment_lines.json

A line is a number `share`, a step function C <= share with these heights, whose steps end at these ends, and `most`. It
proves  (n+1) d_n <= share + W most  (rank) or  share + (n+1) W most  (mean), if |f| <= most for 0 < s <= n+1, where

    rank: f(s) = s (1 - s/(n+1))^n - s (integral of C(t) e^(-ts) over t)
    mean: f(s) =   (1 - s/(n+1))^n -   (integral of C(t) e^(-ts) over t)

Lines for large n have e^(-s) in place of (1 - s/(n+1))^n, and s up to infinity. If the second derivative of f in log s
is at most `bend` between two points that are h apart in log s, |f| is there at most h^2 bend / 8 above its values at
the points: an interval is halved until that is at most `most`.
"""

import json
import sys
from itertools import pairwise
from math import exp, expm1, inf, log, log1p

INTERVALS = 64  # at the beginning


def peak(a, b):
    """The largest y^a (1-y)^b over y in [0, 1]."""
    return 0 if b < 0 else a**a * b**b / (a + b) ** (a + b)


def turn(form, a, b, s, t):
    """A bound on the second derivative that a step of height 1 from a to b adds between s and t.

    That of e^(-v) in log v is (v^2 - v) e^-v: between -0.17 and 0.31, at most v, and falling from v = 2.62 on. The step
    adds e^(-as) - e^(-bs) to the rank form, whose derivative in log b is at most 0.43, and the integral of e^(-ts) over
    t from a to b to the mean form.
    """
    late, first = a * s > 2.62, a * s
    bound = (first * first - first) * exp(-first) if late else min(b * t, 0.31 if form == "mean" else 0.48)
    return bound * (b - a) if form == "mean" else min(bound, 0.43 * log(b / a)) if a else bound


def holds(form, n, most, ends, heights):
    """Whether |f| <= most; n = inf for large n."""
    steps = list(zip([0.0, *ends[:-1]], ends, heights, strict=True))
    net, area = sum(c * (b - a) for a, b, c in steps), sum(abs(c) * (b - a) for a, b, c in steps)
    far = 1e-17 * (1 + sum(map(abs, heights)))  # e^-40, since s goes up to 40 / ends[0]
    slack = 1e-12 + 1e-15 * area * (1 + len(ends))  # for rounding errors
    top, low = n + 1 if n < inf else 40 * max(1, 1 / ends[0]), 1e-6 / (1 + area * (1 + ends[-1]))
    if form == "rank":
        own = 1.72 if n == inf else (n + 1) * max(peak(1, n) + n * (n - 1) * peak(3, n - 2), 3 * n * peak(2, n - 1))
        outside = max(low * (1 + area), abs(heights[0]) + far if n == inf else 0)
    else:
        own = 0.55 if n == inf else max(n * peak(1, n - 1), n * (n - 1) * peak(2, n - 2))
        outside = max(abs(1 - net) + low * (1 + area * ends[-1]), abs(heights[0]) / top + far if n == inf else 0)

    def value(s):
        power = exp(-s) if n == inf else exp(n * log1p(-s / (n + 1))) if s < n + 1 else 0.0
        integral = sum(c * exp(-a * s) * -expm1((a - b) * s) for a, b, c in steps)  # times s
        return abs(s * power - integral) if form == "rank" else abs(power - integral / s)

    at = [low * (top / low) ** (i / INTERVALS) for i in range(INTERVALS)] + [top]
    left = [(s, value(s), t, value(t)) for s, t in pairwise(at)]
    while left and outside + slack <= most:
        s, before, t, after = left.pop()
        h, bend = log(t / s), own + sum(abs(c) * turn(form, a, b, s, t) for a, b, c in steps)
        if max(before, after) + h * h * bend / 8 + slack > most:
            middle = (s * t) ** 0.5
            if h < 1e-5 or max(before, after) > most:
                return False
            left += [(s, before, middle, value(middle)), (middle, value(middle), t, after)]
    return outside + slack <= most


def check(file):
    """The number of lines, all of which hold; an error names the first that does not."""
    count = 0
    for form, by_n in file["lines"].items():
        for n, lines in by_n.items():
            if form not in ("rank", "mean") or n not in ("large", *map(str, range(1, 65))):
                raise ValueError(f"this proves nothing: {form:.80}, n = {n:.80}")
            for share, most, ends, heights in lines:
                numbers = [share, most, *ends, *heights]
                fits = 0 < len(ends) == len(heights) < 1000 and all(abs(x) < 1e9 for x in numbers)
                fits = fits and max(0, *heights) <= share and all(a < b for a, b in pairwise([0, *ends]))
                if not fits or not holds(form, inf if n == "large" else int(n), most, ends, heights):
                    raise ValueError(f"this proves nothing: the line {share}, {most} of {form}, n = {n}")
                count += 1
    return count


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as opened:
        print(check(json.load(opened)), "lines hold")
