"""Swartworth et al. 2023: cyclic orderings without the dimension, as a rate, and as a number by way of their spiral.

One cycle is a product A of T projections, and y = A^n z_0 is the error after n = k/T cycles. The last task is solved,
and the distance of y to task j is at most that to P_j ... P_1 y, so that its square is at most j (|y|^2 - |Ay|^2), and
L(w_k) <= R^2/2 (T-1)/2 (|y|^2 - |Ay|^2) <= R^2/2 (T-1) |y| |y - Ay|. A polynomial of A is at most 1 + sqrt(2) times as
large as on the numerical range of A (Crouzeix and Palencia 2017), which lies within a spiral; so |y - Ay| =
|A^n (I-A) z_0| is at most 1 + sqrt(2) times the maximum of |z^n (1-z)| there. All tasks are seen equally often: F = L.
"""

from __future__ import annotations

import math

from forgetting.theory.draws import cycles
from forgetting.theory.expression import Expression, K, S, T, spiral
from forgetting.theory.setting import known
from forgetting.theory.statement import Condition, Range
from forgetting.theory.theorem import Theorem, expected

Theorem(
    "swartworth2023:cyclic", "cyclic ordering, dimension-free", source="Swartworth et al. 2023", orderings="cyclic"
)("forgetting", T**3 * S / K, kind="rate", status="rate only")

_SPIRAL = Expression(
    "(1+sqrt(2))/2 (T-1) S max |z^(k/T) (1-z)| within r = (cos(pi/(T+1)) / cos((pi-phi)/(T+1)))^(T+1), "
    "about 0.14 T^3 S / k",
    r"\frac{1+\sqrt2}{2}(T-1)S\max_z\left|z^{k/T}(1-z)\right|,\ \vert z\vert\le"
    r"\left(\frac{\cos\frac{\pi}{T+1}}{\cos\frac{\pi-\arg z}{T+1}}\right)^{T+1}",
    lambda s, k: (1 + math.sqrt(2)) / 2 * (known(s.T) - 1) * s.scale * spiral(int(known(s.T)), k // int(known(s.T))),
    ("T",),
)
_spiral = Theorem(
    "swartworth2023:spiral",
    "cyclic ordering, dimension-free, with a number",
    source="Swartworth et al. 2023, the spiral in the proof (swartworth2023:spiral)",
    orderings="cyclic",
    origin="proof",
    status="second-hand",
    range=Range(1, every="T"),
    conditions=(Condition(lambda s, k: known(s.T) >= 2, "needs T >= 2"),),
    note="The spiral and the factor 1 + sqrt(2) are read second-hand; the factors before them are worked out here.",
)
_spiral("loss", _SPIRAL, check=expected(cycles, "L(w_k) <= {} (cyclic, k a multiple of T)"))
_spiral("forgetting", _SPIRAL, check=expected(cycles, "F(k) <= {} (cyclic, k a multiple of T)"))
