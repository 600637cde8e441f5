"""Section 4, with Appendices C and D: the rates for continual regression, their branches, and what their proofs give.

Notation: S = |w_0 - w*|^2 R^2, r = rank_avg, D = joint rank, A(k) = `last_iterate(1, k)`, about 0.544 k^(-1/4).
"""

from __future__ import annotations

from forgetting.theory.draws import permuted, projected
from forgetting.theory.expression import (
    DIM,
    JOINT,
    RANK,
    SPAN,
    E,
    Expression,
    K,
    S,
    T,
    called,
    gap,
    last_iterate,
    minimum,
    root,
    spectral,
)
from forgetting.theory.statement import Quantity, Range
from forgetting.theory.theorem import Checked, Theorem, expected

WITH, WITHOUT = ("with replacement",), ("without replacement",)
PRODUCT = "Keeps the product of the proof of lem:ratio_avg_last, where the paper uses 1 + u <= e^u and 1/(k+1) <= 1/k."
JOINT_RANK = "D is the rank of all tasks together."


def average_iterate(n: Expression) -> Expression:
    """A(n), the bound on the next loss after n projections, in units of |w_0 - w*|^2."""
    return called("A", "A", lambda steps: last_iterate(1, round(steps)), n)


def spectral_peak(n: Expression) -> Expression:
    """g(n), the maximum of x^n (1 - x) over [0, 1]."""
    return called("g", "g", lambda power: spectral(round(power)), n)


# thm:random_convergence_rate ------------------------------------------------------------------------------------------

_PROVED_FROM_TWO = "Stated for k >= 3; the proof covers k >= 2."
_PARAMETERS = Theorem("thm:random_convergence_rate", "parameter-dependent rate", orderings=WITH)
_SMALL_MIN = (
    "The printed last step needs min(...) >= 0.883. Below that the statement still holds: d - r < 0.78 means that all "
    "but a fraction q <= d - r of the tasks have full rank, one of which ends all forgetting, so E F(k) <= q^k S/2, "
    "and (k - 2) q^(k - 1/2) stays below 3. The appendix prints w_t for w_k in F(k)."
)


def _rate(
    quantity: Quantity, factor: Expression, variant: str = "", more: str = "", *, check: Checked | None = None
) -> None:
    """E L(w_k) <= factor S / (2e(k-1)), or E F(k) <= 3 factor S / (2(k-2))."""
    note = (_PROVED_FROM_TWO if quantity == "loss" else _SMALL_MIN) + more
    _PARAMETERS(
        quantity,
        factor * S / (2 * E * (K - 1)) if quantity == "loss" else 3 * factor * S / (2 * (K - 2)),
        variant,
        range=Range(3),
        status="holds as stated" if quantity == "loss" else "gap in the printed proof",
        note=note,
        tight=quantity == "loss" and variant != "rows",
        check=check,
    )


def _dimension(dim: Expression) -> Expression:
    return root(gap(dim, RANK))


_ROWS = root(T * RANK)
_rate("loss", minimum(_dimension(DIM), _ROWS), check=expected(projected(first=3)))
_rate("loss", minimum(_dimension(JOINT), _ROWS), "D", f" {JOINT_RANK}")
_rate("forgetting", minimum(_dimension(DIM), _ROWS), check=expected(projected(first=3)))
_rate("forgetting", minimum(_dimension(JOINT), _ROWS), "D", f" {JOINT_RANK}")
_rate("loss", _dimension(DIM), "dimension")
_rate("forgetting", _dimension(DIM), "dimension")
_rate("loss", _ROWS, "rows")
_rate("forgetting", _ROWS, "rows")

G_IS = "g(n) = n^n/(n+1)^(n+1)", r"g(n)=\frac{n^n}{(n+1)^{n+1}}"


def _from_spectrum(n: Expression, before: Expression) -> Expression:
    """min(sqrt(D - r) g(n-1), sqrt(D) g(n))."""
    return minimum(_dimension(SPAN) * spectral_peak(before), root(SPAN) * spectral_peak(n))


_PARAMETERS(
    "loss",
    (S / 2 * _from_spectrum(K, K - 1)).where(*G_IS),
    "proof",
    tight=True,
    note="Keeps the maximum of x^n (1-x) in place of 1/(en), and applies I - Q to X^+ X itself as well as to Q[X^+ X].",
)
_PARAMETERS(
    "forgetting",
    (S * _from_spectrum(K - 1, K - 2) + S / K).where(*G_IS),
    "proof",
    range=Range(2),
    note="lem:in_to_all_sample and the sharper loss bound, before they are merged into one term.",
)

# thm:cl_by_sgd_main ---------------------------------------------------------------------------------------------------

_universal = Theorem("thm:cl_by_sgd_main", "universal rate", orderings=WITH)
_universal("loss", 2 * S / root(K, 4), range=Range(2), check=expected(projected(first=2)))
_universal("loss", E * S / (2 * root(K, 4)), "proof")
_universal("loss", S * average_iterate(K), "product", note=PRODUCT)
_universal("forgetting", 5 * S / root(K - 1, 4), range=Range(2), check=expected(projected(first=2)))
_universal("forgetting", E * S / root(K - 1, 4) + S / K, "proof", range=Range(2))
_universal("forgetting", 2 * S * average_iterate(K - 1) + S / K, "product", range=Range(2), note=PRODUCT)

# thm:cl_by_sgd_wor ----------------------------------------------------------------------------------------------------

_without = Theorem("thm:cl_by_sgd_wor", "rate without replacement", orderings=WITHOUT, range=Range(2, "T"))
_ONE_PASS = permuted(2, long=True)


def _both_branches(dim: Expression) -> Expression:
    return minimum(7 / root(K - 1, 4), (gap(dim, RANK) + 1) / (K - 1)) * S


_E_FOR_HALF = "The proof quotes lem:wor_last_before_stab with e for its e/2, which only loosens it."
_BOTH: tuple[tuple[Quantity, str], ...] = ("loss", _E_FOR_HALF), ("forgetting", "")
for _quantity, _note in _BOTH:
    _without(_quantity, _both_branches(DIM), note=_note, check=expected(_ONE_PASS))
    _without(_quantity, _both_branches(JOINT), "D", note=JOINT_RANK)
    _without(_quantity, 7 * S / root(K - 1, 4), "universal")
    _without(_quantity, (gap(DIM, RANK) + 1) * S / (K - 1), "dimension")

#: What the proof has for |X_tau(k) w_(k-1) - y|^2 / S.
_NEXT = minimum(2 * E / root(K - 1, 4), gap(DIM, RANK) / (K - 1))
_without(
    "loss",
    (T + K) / (2 * T) * _NEXT * S + S / K,
    "proof",
    note="One display of the proof drops the factor 2 R^2 of E f(w_k; next task); the next one has it.",
)
_without(
    "forgetting",
    _NEXT * S + S / K,
    "proof",
    note="The proof uses e where its own lem:wor_last_before_stab gives e/2.",
)


def _next_sharp(n: Expression) -> Expression:
    """h(n): `_NEXT` with the product, the joint rank, and the telescoping sum started one step earlier."""
    value = minimum(2 * average_iterate(n - 1), gap(SPAN, RANK) / (n - 1), SPAN / n)
    return Expression(f"h({n.text})", f"h({n.latex})", value.compute, value.needs)


_H = ("h(k) = min(2 A(k-1), (D - r)/(k-1), D/k)", r"h(k)=\min\left(2A(k-1),\frac{D-\bar r}{k-1},\frac Dk\right)")
_EARLIER = PRODUCT + " The telescoping sum may start one step earlier, which gives D/k."
_SHARP_LOSS = S * (K * _next_sharp(K) + 1) / T + S * (T - K) / (2 * T) * _next_sharp(K + 1)
_without("loss", _SHARP_LOSS.where(*_H), "product", note=_EARLIER)
_without("forgetting", (S * _next_sharp(K) + S / K).where(*_H), "product", note=_EARLIER)
