"""Section 4, with Appendices C and D: the rates for continual regression, their branches, and what their proofs give.

Notation: S = |w_0 - w*|^2 R^2, r = rank_avg, D = joint rank, A(k) = `last_iterate(1, k)`, about 0.544 k^(-1/4).
"""

from __future__ import annotations

from typing import Literal

from forgetting.theory.bound import Origin, Quantity, Range
from forgetting.theory.claims_from_bounds import expected_at_most
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
from forgetting.theory.numbering import cite
from forgetting.theory.statement import Bound, register_bound

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

_SOURCE = cite("thm:random_convergence_rate")
_PROVED_FROM_TWO = "Stated for k >= 3; the proof covers k >= 2."
_SMALL_MIN = (
    "The printed last step needs min(...) >= 0.883. Below that the statement still holds: d - r < 0.78 means that all "
    "but a fraction q <= d - r of the tasks have full rank, one of which ends all forgetting, so E F(k) <= q^k S/2, "
    "and (k - 2) q^(k - 1/2) stays below 3. The appendix prints w_t for w_k in F(k)."
)


def _dimension(dim: Expression) -> Expression:
    return root(gap(dim, RANK))


_ROWS = root(T * RANK)


def _rate(
    quantity: Literal["loss", "forgetting"], variant: str, factor: Expression, title: str, origin: Origin
) -> Bound:
    """E L(w_k) <= factor S / (2e(k-1)), or E F(k) <= 3 factor S / (2(k-2))."""
    loss = quantity == "loss"
    note = _PROVED_FROM_TWO if loss else _SMALL_MIN
    return Bound(
        key=f"thm:random_convergence_rate/{quantity}{variant}",
        title=f"parameter-dependent rate{title}",
        source=_SOURCE,
        quantity=quantity,
        orderings=WITH,
        range=Range(3),
        expression=factor * S / (2 * E * (K - 1)) if loss else 3 * factor * S / (2 * (K - 2)),
        origin=origin,
        status="holds as stated" if loss else "gap in the printed proof",
        tight=loss and variant != "/rows",
        note=f"{note} {JOINT_RANK}" if variant == "/D" else note,
    )


_MIN, _MIN_JOINT = minimum(_dimension(DIM), _ROWS), minimum(_dimension(JOINT), _ROWS)
expected_at_most(
    _rate("loss", "", _MIN, "", "statement"),
    part="loss",
    statement="E L(w_k) <= {} (with replacement, k >= 3)",
    draw=projected(first=3),
)
register_bound(_rate("loss", "/D", _MIN_JOINT, ", joint rank for dimension", "tightened"))
expected_at_most(
    _rate("forgetting", "", _MIN, "", "statement"),
    part="forgetting",
    statement="E F(k) <= {} (with replacement, k >= 3)",
    draw=projected(first=3),
)
register_bound(_rate("forgetting", "/D", _MIN_JOINT, ", joint rank for dimension", "tightened"))
register_bound(_rate("loss", "/dimension", _dimension(DIM), ", dimension branch", "branch"))
register_bound(_rate("forgetting", "/dimension", _dimension(DIM), ", dimension branch", "branch"))
register_bound(_rate("loss", "/rows", _ROWS, ", rows branch", "branch"))
register_bound(_rate("forgetting", "/rows", _ROWS, ", rows branch", "branch"))


def _from_spectrum(n: Expression) -> Expression:
    """min(sqrt(D - r) g(n-1), sqrt(D) g(n))."""
    return minimum(root(gap(SPAN, RANK)) * spectral_peak(n - 1), root(SPAN) * spectral_peak(n))


G_IS = "g(n) = n^n/(n+1)^(n+1)", r"g(n)=\frac{n^n}{(n+1)^{n+1}}"
register_bound(
    Bound(
        key="thm:random_convergence_rate/loss/proof",
        title="parameter-dependent rate, from the proof",
        source=_SOURCE,
        quantity="loss",
        orderings=WITH,
        expression=(S / 2 * _from_spectrum(K)).where(*G_IS),
        origin="proof",
        tight=True,
        note="Keeps the maximum of x^n (1-x) in place of 1/(en), and applies I - Q to X^+ X itself as well as to "
        "Q[X^+ X].",
    )
)
register_bound(
    Bound(
        key="thm:random_convergence_rate/forgetting/proof",
        title="parameter-dependent rate, from the proof",
        source=_SOURCE,
        quantity="forgetting",
        orderings=WITH,
        range=Range(2),
        expression=(S * minimum(
            root(gap(SPAN, RANK)) * spectral_peak(K - 2), root(SPAN) * spectral_peak(K - 1)
        ) + S / K).where(*G_IS),
        origin="proof",
        note="lem:in_to_all_sample and the sharper loss bound, before they are merged into one term.",
    )
)  # fmt: skip

# thm:cl_by_sgd_main ---------------------------------------------------------------------------------------------------


def _main(
    quantity: Quantity, variant: str, first: int, right: Expression, title: str = "", origin: Origin = "statement",
    note: str = "",
) -> Bound:  # fmt: skip
    """The universal rate with replacement."""
    return Bound(
        key=f"thm:cl_by_sgd_main/{quantity}{variant}",
        title=f"universal rate{title}",
        source=cite("thm:cl_by_sgd_main"),
        quantity=quantity,
        orderings=WITH,
        range=Range(first),
        expression=right,
        origin=origin,
        note=note,
    )


expected_at_most(
    _main("loss", "", 2, 2 * S / root(K, 4)),
    part="loss",
    statement="E L(w_k) <= {} (with replacement, k >= 2)",
    draw=projected(first=2),
)
register_bound(_main("loss", "/proof", 1, E * S / (2 * root(K, 4)), ", from the proof", "proof"))
register_bound(_main("loss", "/product", 1, S * average_iterate(K), ", product of the proof", "proof", PRODUCT))
expected_at_most(
    _main("forgetting", "", 2, 5 * S / root(K - 1, 4)),
    part="forgetting",
    statement="E F(k) <= {} (with replacement, k >= 2)",
    draw=projected(first=2),
)
register_bound(_main("forgetting", "/proof", 2, E * S / root(K - 1, 4) + S / K, ", from the proof", "proof"))
register_bound(
    _main("forgetting", "/product", 2, 2 * S * average_iterate(K - 1) + S / K, ", product of the proof", "proof",
          PRODUCT)
)  # fmt: skip

# thm:cl_by_sgd_wor ----------------------------------------------------------------------------------------------------

_EARLIER = PRODUCT + " The telescoping sum may start one step earlier, which gives D/k."
_E_FOR_HALF = "The proof quotes lem:wor_last_before_stab with e for its e/2, which only loosens it."


def _wor(
    quantity: Quantity, variant: str, right: Expression, title: str, origin: Origin = "statement", note: str = ""
) -> Bound:
    """The rate without replacement."""
    return Bound(
        key=f"thm:cl_by_sgd_wor/{quantity}{variant}",
        title=f"rate without replacement{title}",
        source=cite("thm:cl_by_sgd_wor"),
        quantity=quantity,
        orderings=WITHOUT,
        range=Range(2, "T"),
        expression=right,
        origin=origin,
        note=note,
    )


def _both_branches(dim: Expression) -> Expression:
    return minimum(7 / root(K - 1, 4), (gap(dim, RANK) + 1) / (K - 1)) * S


_UNIVERSAL = 7 * S / root(K - 1, 4)
_BY_DIMENSION = (gap(DIM, RANK) + 1) * S / (K - 1)

expected_at_most(
    _wor("loss", "", _both_branches(DIM), "", note=_E_FOR_HALF),
    part="loss",
    statement="E L(w_k) <= {} (without replacement, 2 <= k <= T)",
    draw=permuted(2, long=True),
)
register_bound(_wor("loss", "/D", _both_branches(JOINT), ", joint rank for dimension", "tightened", JOINT_RANK))
register_bound(_wor("loss", "/universal", _UNIVERSAL, ", universal branch", "branch"))
register_bound(_wor("loss", "/dimension", _BY_DIMENSION, ", dimension branch", "branch"))
expected_at_most(
    _wor("forgetting", "", _both_branches(DIM), ""),
    part="forgetting",
    statement="E F(k) <= {} (without replacement, 2 <= k <= T)",
    draw=permuted(2, long=True),
)
register_bound(_wor("forgetting", "/D", _both_branches(JOINT), ", joint rank for dimension", "tightened", JOINT_RANK))
register_bound(_wor("forgetting", "/universal", _UNIVERSAL, ", universal branch", "branch"))
register_bound(_wor("forgetting", "/dimension", _BY_DIMENSION, ", dimension branch", "branch"))

#: What the proof has for |X_tau(k) w_(k-1) - y|^2 / S.
_NEXT = minimum(2 * E / root(K - 1, 4), gap(DIM, RANK) / (K - 1))
register_bound(
    _wor(
        "loss",
        "/proof",
        (T + K) / (2 * T) * _NEXT * S + S / K,
        ", from the proof",
        "proof",
        "One display of the proof drops the factor 2 R^2 of E f(w_k; next task); the next one has it.",
    )
)
register_bound(
    _wor(
        "forgetting",
        "/proof",
        _NEXT * S + S / K,
        ", from the proof",
        "proof",
        "The proof uses e where its own lem:wor_last_before_stab gives e/2.",
    )
)


def _next_sharp(n: Expression) -> Expression:
    """h(n): `_NEXT` with the product, the joint rank, and the telescoping sum started one step earlier."""
    value = minimum(2 * average_iterate(n - 1), gap(SPAN, RANK) / (n - 1), SPAN / n)
    return Expression(f"h({n.text})", f"h({n.latex})", value.compute, value.needs)


_H = ("h(k) = min(2 A(k-1), (D - r)/(k-1), D/k)", r"h(k)=\min\left(2A(k-1),\frac{D-\bar r}{k-1},\frac Dk\right)")
register_bound(
    _wor(
        "loss",
        "/product",
        (S * (K * _next_sharp(K) + 1) / T + S * (T - K) / (2 * T) * _next_sharp(K + 1)).where(*_H),
        ", product of the proof",
        "proof",
        _EARLIER,
    )
)
register_bound(
    _wor("forgetting", "/product", (S * _next_sharp(K) + S / K).where(*_H), ", product of the proof", "proof", _EARLIER)
)
