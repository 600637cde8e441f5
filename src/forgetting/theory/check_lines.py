"""Check the lines of the moment bound with the standard library alone: python check_lines.py moment_lines.json

A line is a number `share`, a step function C <= share with these heights, whose steps end at these ends, and `most`. It
proves  (n+1) d_n <= share + W most  (rank) or  share + (n+1) W most  (mean), if |f| <= most for 0 < s <= n+1, where

    rank: f(s) = s (1 - s/(n+1))^n - s (integral of C(t) e^(-ts) over t)
    mean: f(s) =   (1 - s/(n+1))^n -   (integral of C(t) e^(-ts) over t)

Lines for large n have e^(-s) in place of (1 - s/(n+1))^n, and s up to infinity. The second derivative of f in log s is
at most `bend`: between points that are h apart in log s, |f| is at most h^2 bend / 8 above its values there. (That of
e^(-ts) is (v^2 - v) e^-v with v = ts, between -0.17 and 0.31 and at most v; that of e^(-as) - e^(-bs) is at most
0.43 log(b/a), as its derivative in log t is (3 v^2 - v - v^3) e^-v.)
"""

import json
import sys
from math import exp, expm1, inf, log, log1p

POINTS = 1500


def peak(a, b):
    """The largest y^a (1-y)^b over y in [0, 1]."""
    return 0 if b < 0 else a**a * b**b / (a + b) ** (a + b)


def largest(form, n, ends, heights):
    """An upper bound on |f|; n = inf for large n."""
    steps = list(zip([0.0, *ends[:-1]], ends, heights, strict=True))
    net, area = sum(c * (b - a) for a, b, c in steps), sum(abs(c) * (b - a) for a, b, c in steps)
    top, low = n + 1 if n < inf else 40 * max(1, 1 / ends[0]), 1e-5 / (1 + area * (1 + ends[-1]))
    if form == "rank":
        own = 1.72 if n == inf else (n + 1) * max(peak(1, n) + n * (n - 1) * peak(3, n - 2), 3 * n * peak(2, n - 1))
        turns = [abs(c) * (min(0.48, 0.43 * log(b / a)) if a else min(0.31, b * top)) for a, b, c in steps]
        bend, at_zero, at_top = own + sum(turns), low * (1 + area), abs(heights[0])
    else:
        own = 0.55 if n == inf else max(n * peak(1, n - 1), n * (n - 1) * peak(2, n - 2))
        bend, at_zero, at_top = own + 0.31 * area, abs(1 - net) + low * (1 + area * ends[-1]), abs(heights[0]) / top
    h, values = log(top / low) / POINTS, []
    for i in range(POINTS + 1):
        s = top if i == POINTS else low * exp(i * h)
        power = exp(-s) if n == inf else exp(n * log1p(-s / (n + 1))) if s < n + 1 else 0.0
        integral = sum(c * exp(-a * s) * -expm1((a - b) * s) for a, b, c in steps)  # times s
        values.append(abs(s * power - integral) if form == "rank" else abs(power - integral / s))
    return max(max(values) + h * h * bend / 8, at_zero, at_top + 1e-15 if n == inf else 0) + 1e-12


def check(file):
    """The number of lines, all of which hold; an error names the first that does not."""
    count = 0
    for form, by_n in file["lines"].items():
        for n, lines in by_n.items():
            for share, most, ends, heights in lines:
                fits = 0 < len(ends) == len(heights) and max([0, *heights]) <= share
                fits = fits and all(a < b for a, b in zip([0, *ends], ends, strict=False))
                if not fits or largest(form, inf if n == "large" else int(n), ends, heights) > most:
                    raise ValueError(f"this proves nothing: the line {share}, {most} of {form}, n = {n}")
                count += 1
    return count


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as opened:
        print(check(json.load(opened)), "lines hold")
