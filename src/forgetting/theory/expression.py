r"""A formula that is written once: the same expression gives its text, its LaTeX and its value.

>>> from forgetting.theory.setting import Setting
>>> rate = 2 * S / root(K, 4)
>>> rate.text, rate.latex, rate.compute(Setting(), 16)
('2 S / k^(1/4)', '\\frac{2S}{\\sqrt[4]{k}}', 1.0)

Functions that several formulas share are at the end.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeAlias

from forgetting.core.arrays import as_kind
from forgetting.core.numerical import EPS
from forgetting.theory.setting import Setting, known

Compute: TypeAlias = Callable[[Setting, int], float]

SUM, PRODUCT, POWER, ATOM = range(4)  # how tightly the outermost operation of an expression binds


@dataclass(frozen=True)
class Expression:
    """A formula as text, as LaTeX and as a function of (setting, k).

    Attributes:
        text: for a terminal; a space between two factors means their product.
        latex: for a paper.
        compute: the value at a setting and a number of steps k.
        needs: names of the parameters of `Setting` that the value uses.
        level: how tightly the outermost operation binds: SUM, PRODUCT, POWER or ATOM.
        without: the value without one term of the sums that the formula is made of, by the text of the term.

    >>> (2 * S + S / K).without["2 S"](Setting(), 4)
    0.25
    >>> ((DIM - RANK + 1) * S / (K - 1)).needs
    ('d', 'rank_avg')
    """

    text: str
    latex: str
    compute: Compute = field(repr=False)
    needs: tuple[str, ...] = ()
    level: int = ATOM
    without: Mapping[str, Compute] = field(default_factory=dict, repr=False)

    def __add__(self, other: Expression | float) -> Expression:
        return _sum(self, _expression(other), "+")

    def __radd__(self, other: float) -> Expression:
        return _expression(other) + self

    def __sub__(self, other: Expression | float) -> Expression:
        return _sum(self, _expression(other), "-")

    def __rsub__(self, other: float) -> Expression:
        return _expression(other) - self

    def __mul__(self, other: Expression | float) -> Expression:
        a, b = self, _expression(other)
        right = b._text(POWER) if "/" in b.text else b._text(PRODUCT)  # a b / c would be read as (a b) / c as well
        return Expression(
            f"{a._text(PRODUCT)} {right}",
            _beside(a._latex(PRODUCT), b._latex(PRODUCT)),
            lambda s, k: a.compute(s, k) * b.compute(s, k),
            _together(a, b),
            PRODUCT,
            _without(operator.mul, a, b),
        )

    def __rmul__(self, other: float) -> Expression:
        return _expression(other) * self

    def __truediv__(self, other: Expression | float) -> Expression:
        a, b = self, _expression(other)
        top, bottom = a._text(PRODUCT), b._text(POWER)
        sign = " / " if " " in top + bottom else "/"
        return Expression(
            f"{top}{sign}{bottom}",
            rf"\frac{{{a.latex}}}{{{b.latex}}}",
            lambda s, k: a.compute(s, k) / b.compute(s, k),
            _together(a, b),
            PRODUCT,
            _without(operator.truediv, a, replace(b, without={})),
        )

    def __rtruediv__(self, other: float) -> Expression:
        return _expression(other) / self

    def __pow__(self, other: Expression | float) -> Expression:
        a, b = self, _expression(other)
        return Expression(
            f"{a._text(ATOM)}^{b.text if b.level == ATOM else f'({b.text})'}",
            f"{a._latex(ATOM)}^{{{b.latex}}}",
            lambda s, k: a.compute(s, k) ** b.compute(s, k),
            _together(a, b),
            POWER,
        )

    def __neg__(self) -> Expression:
        return replace(self, text=f"-{self._text(PRODUCT)}", latex=f"-{self._latex(PRODUCT)}",
                       compute=lambda s, k: -self.compute(s, k), level=SUM)  # fmt: skip

    def where(self, text: str, latex: str = "") -> Expression:
        """The formula, followed by the definition of a symbol."""
        as_kind(text, str, "a definition in words", "text: ")
        as_kind(latex, str, "a definition in LaTeX", "latex: ")
        return replace(self, text=f"{self.text}, {text}", latex=self.latex + (rf",\ {latex}" if latex else ""))

    def _text(self, least: int) -> str:
        return self.text if self.level >= least else f"({self.text})"

    def _latex(self, least: int) -> str:
        return self.latex if self.level >= least else rf"\left({self.latex}\right)"


def number(value: float) -> Expression:
    """A constant."""
    return Expression(f"{value:g}", f"{value:g}", lambda s, k: value)


def _expression(value: Expression | float) -> Expression:
    return value if isinstance(value, Expression) else number(value)


def _together(*parts: Expression) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in parts for name in part.needs))


def _terms(part: Expression) -> Mapping[str, Compute]:
    """The rest of a part of a sum without each of its own terms: 0, if the part is one term."""
    return part.without if part.level == SUM and part.without else {part.text: lambda s, k: 0.0}


def _without(combine: Callable[..., float], *parts: Expression) -> Mapping[str, Compute]:
    """The values of a combination of parts without one term of one part."""

    def dropped(place: int, rest: Compute) -> Compute:
        computes = [rest if at == place else part.compute for at, part in enumerate(parts)]
        return lambda s, k: combine(*(compute(s, k) for compute in computes))

    return {text: dropped(place, rest) for place, part in enumerate(parts) for text, rest in part.without.items()}


def _beside(left: str, right: str) -> str:
    """Two pieces of LaTeX next to each other: a space keeps a command apart from the letter after it."""
    return f"{left} {right}" if re.search(r"\\[a-zA-Z]+$", left) and right[:1].isalpha() else left + right


def _sum(a: Expression, b: Expression, sign: str) -> Expression:
    right = b.text if sign == "+" else b._text(PRODUCT)
    short = {a.text, right} & {"k"} or a.text[:1].isdigit() or right[:1].isdigit()
    tight = " " not in a.text + right and short  # k-1, T-k and 2-x, but d - r
    return Expression(
        a.text + (sign if tight else f" {sign} ") + right,
        a.latex + sign + (b.latex if sign == "+" else b._latex(PRODUCT)),
        (lambda s, k: a.compute(s, k) + b.compute(s, k))
        if sign == "+"
        else (lambda s, k: a.compute(s, k) - b.compute(s, k)),
        _together(a, b),
        SUM,
        _without(operator.add, replace(a, without=_terms(a)), replace(b, without=_terms(b))) if sign == "+" else {},
    )


def called(name: str, latex: str, function: Callable[..., float], *arguments: Expression | float) -> Expression:
    """A function of expressions by its name.

    >>> called("exp", r"\\exp", math.exp, -(K / 2)).text
    'exp(-k/2)'
    """
    inner = [_expression(argument) for argument in arguments]
    return Expression(
        f"{name}({', '.join(part.text for part in inner)})",
        rf"{latex}\left({','.join(part.latex for part in inner)}\right)",
        lambda s, k: function(*(part.compute(s, k) for part in inner)),
        _together(*inner),
    )


def minimum(*terms: Expression | float) -> Expression:
    """The smallest of the terms."""
    parts = [_expression(term) for term in terms]
    return replace(called("min", r"\min", min, *parts), without=_without(min, *parts))


def exponential(power: Expression) -> Expression:
    """e to this power."""
    return called("exp", r"\exp", math.exp, power)


def logarithm(value: Expression) -> Expression:
    """The natural logarithm."""
    return called("log", r"\log", math.log, value)


def root(value: Expression, degree: int = 2) -> Expression:
    """The square root as sqrt(x), another root as x^(1/n).

    >>> root(K - 1, 4).text, root(K).latex
    ('(k-1)^(1/4)', '\\\\sqrt{k}')
    """
    if degree == 2:
        return replace(called("sqrt", "", math.sqrt, value), latex=rf"\sqrt{{{value.latex}}}")
    power = value ** (number(1) / degree)
    return replace(power, latex=rf"\sqrt[{degree}]{{{value.latex}}}")


def gap(large: Expression, small: Expression) -> Expression:
    """large - small, computed as 0 where rounding makes the difference negative."""
    difference = large - small
    return replace(difference, compute=lambda s, k: max(difference.compute(s, k), 0.0))


def power_left(lost: float, left: float | None, times: float) -> float:
    """(1 - lost)^times, rounded up; `left` is 1 - lost with more digits, where these are known.

    >>> power_left(0.75, None, 2) / 0.0625 - 1 < 1e-13
    True
    """
    if left is None or lost <= 0.5:
        left = 1 - lost
    if left <= 0:
        return float(0.0**times)
    exponent = times * (math.log(left) if lost > 0.5 else math.log1p(-lost))
    return math.exp(exponent) * (1 + 16 * EPS * (1 - exponent))


def left_after(rate: Expression, times: Expression) -> Expression:
    """(1 - rate)^times, rounded up: rounding errors, also those of a few factors beside it, never make it less.

    The power of a rounded 1 - rate would lose all digits where times is large, and 1 - rate itself where the rate is
    nearly 1: `Setting.contraction` then has the digits of the difference with `Setting.spectral_gap`.

    >>> left_after(number(1) / K, K - 1).compute(Setting(), 10**15)  # 0.3682 as a power
    0.36787944117144...
    """

    def compute(s: Setting, k: int) -> float:
        lost = rate.compute(s, k)
        left = s.contraction if "spectral_gap" in rate.needs else None
        return power_left(lost, left, times.compute(s, k))

    return replace((1 - rate) ** times, compute=compute)


def parameter(name: str, text: str, latex: str, level: int = ATOM) -> Expression:
    """A parameter of `Setting` that may be unknown there."""
    return Expression(text, latex, lambda s, k: known(getattr(s, name)), (name,), level)


K = Expression("k", "k", lambda s, k: k)
E = Expression("e", "e", lambda s, k: math.e)
S = Expression("S", "S", lambda s, k: s.scale)
DISTANCE = Expression("|w_0 - w*|^2", r"\Vert w_0-w_\star\Vert^2", lambda s, k: s.dist_sq)
D_SQUARED = Expression("D^2", "D^2", lambda s, k: known(s.sgd_dist_sq))  # to the minimiser of the objective of SGD
T = parameter("T", "T", "T")
DIM = parameter("d", "d", "d")
JOINT = parameter("rank_joint", "D", "D")
SPAN = parameter("span", "D", "D")
RANK = parameter("rank_avg", "r", r"\bar r")
RANK_MAX = parameter("rank_max", "r_max", r"r_{\max}")
MEAN_SQUARE = parameter("radius_sq_mean", "Rbar", r"\bar R")
ETA = parameter("eta", "eta", r"\eta")
BETA = parameter("beta", "beta", r"\beta")
SIGMA = parameter("sigma", "sigma", r"\sigma")
GRADIENT = parameter("G", "G", "G")
X = replace(ETA * BETA, text="x", level=ATOM)  # write .where("x = eta beta") after a formula that uses it


def spectral(n: float) -> float:
    """max over lambda in [0, 1] of lambda^n (1 - lambda) = n^n / (n+1)^(n+1), which is below 1/(e n).

    >>> spectral(0), spectral(1)
    (1.0, 0.25)
    """
    return math.exp(-n * math.log1p(1 / n)) / (n + 1) if n else 1.0


def last_iterate(x: float, k: int) -> float:
    """The bound on E f(w_k; next task) in units of beta |w_0 - w*|^2, for x = eta beta in (0, 2).

    `lem:regret_bound` and the product inside the proof of `lem:ratio_avg_last`, before 1 + u <= e^u is used:
    1 / (2 x (2 - x) (k + 1)) * prod_{j=1..k} (1 + a/j) with a = x (1 - x/4). Cost: constant.

    >>> round(last_iterate(1.0, 1), 12)
    0.4375
    """
    a = x * (1 - x / 4)
    if k < 1000:
        product = math.exp(math.lgamma(k + 1 + a) - math.lgamma(1 + a) - math.lgamma(k + 1))
    else:  # differences of lgamma lose digits; the expansion about the midpoint is good to k^-4
        middle = k + (1 + a) / 2
        ratio = middle**a * (1 - a * (a * a - 1) / (24 * middle**2))
        product = ratio / math.gamma(1 + a)
    return product / (2 * x * (2 - x) * (k + 1))


@lru_cache(4096)
def spiral(tasks: int, cycles: int) -> float:
    """max |z^cycles (1 - z)| over the numbers <x, Ax>, |x| = 1, of all products A of `tasks` projections.

    They are products of n = tasks + 1 inner products of unit vectors in a circle, and fill the set that the sinusoidal
    spiral r = (cos(pi/n) / cos((pi - phi)/n))^n bounds, 0 <= phi <= 2 pi. For many cycles the maximum is about
    1 / (e cycles sin(pi/n)). Cost: constant.

    >>> round(spiral(2, 10**6) * 10**6, 5)  # 2 / (e sqrt(3))
    0.42479
    """
    n = tasks + 1

    def value(phi: float) -> float:
        log_r = n * (math.log(math.cos(math.pi / n)) - math.log(math.cos((math.pi - phi) / n)))
        r = math.exp(log_r)
        return math.exp(cycles * log_r) * math.hypot(1 - r, 2 * math.sqrt(r) * math.sin(phi / 2))

    low, high = 0.0, math.pi
    for _ in range(150):  # it rises to its maximum and falls from there
        third = (high - low) / 3
        low, high = (low + third, high) if value(low + third) < value(high - third) else (low, high - third)
    return value((low + high) / 2)
