"""Bounds as curves over k, for figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from forgetting.figures.items import Role, Series, through
from forgetting.theory.bound import Bound, Row
from forgetting.theory.numbering import PAPER
from forgetting.theory.registry import all_bounds

FAMILIES = 3  # of bounds, each with a colour
#: how a reader is told that a curve is no guarantee on the given tasks
NO_GUARANTEE = {"worst": ", worst case over all tasks", "rate": ", slope only: its constant is not known"}


def bound_role(bound: Bound) -> Role:
    """The role of the curve of a bound in a figure: a guarantee, the trivial bound, a floor, a worst case, or a rate.

    >>> import forgetting as fg
    >>> keys = "thm:cl_by_sgd_main/loss", "trivial/loss", "two-lines:random/loss/lower"
    >>> [bound_role(fg.bounds.get(key)) for key in keys]
    ['bound', 'trivial', 'worst']
    """
    if bound.kind == "floor":
        return "reference"
    if bound.kind != "upper":
        return "worst" if bound.kind == "lower" else "rate"
    return "trivial" if bound.origin == "trivial" else "bound"


def bound_curves(rows: Iterable[Row], quantity: str, *, guarantees: bool = False) -> tuple[Series, ...]:
    """Every bound on a quantity that applies at some k: guarantees first, those with the smallest last value before.

    Minor curves are variants of others, and guarantees that nowhere say more than the trivial bound. With `guarantees`,
    worst cases over all tasks and rates of unknown constant are left out.

    >>> import forgetting as fg
    >>> rows = fg.bounds.evaluate(fg.families.two_lines(0.5), "with-replacement", k=[3, 10, 30])
    >>> [curve.label for curve in bound_curves(rows, "loss", guarantees=True) if not curve.minor][:2]
    ['last iterate at rate 1/k, with a spectral gap', 'last iterate at rate 1/k, of few dimensions or spread tasks']
    """
    of_bound: dict[str, list[Row]] = {}
    for row in rows:
        if row.applies and row.quantity == quantity:
            of_bound.setdefault(row.bound.key, []).append(row)
    curves = [_curve(group) for group in of_bound.values()]
    if guarantees:
        curves = [curve for curve in curves if curve.role not in NO_GUARANTEE]
    places = {"bound": 0, "trivial": 1, "reference": 2, "worst": 3, "rate": 4}

    def place(curve: Series) -> tuple[int, float, float, bool]:
        stated = of_bound[curve.name][0].bound.origin == "statement"
        last = float(f"{curve.y[-1] or 0.0:.12g}")  # curves that differ by rounding keep the order of the registry
        return places[curve.role], -(curve.x[-1] or 0.0), last, not stated

    shown: list[Series] = []
    for curve in sorted(curves, key=place):
        twin = any(not other.minor and _same(curve, other) for other in shown)
        shown.append(replace(curve, minor=twin or _is_minor(of_bound[curve.name])))
    return tuple(shown)


def _same(one: Series, other: Series) -> bool:
    """Whether two curves agree to 12 digits."""
    return one.x == other.x and all(
        a == b or (a is not None and b is not None and math.isclose(a, b, rel_tol=1e-12))
        for a, b in zip(one.y, other.y, strict=True)
    )


def tightest_curve(rows: Iterable[Row], quantity: str, group: int = -1) -> Series | None:
    """The smallest guarantee on a quantity at each k; None if no guarantee applies.

    >>> import forgetting as fg
    >>> rows = fg.bounds.evaluate(fg.families.orthogonal(3), "cyclic", k=[3, 6])
    >>> tightest_curve(rows, "regret").label
    'guarantee, regret: Lemma 13, regret of every ordering'
    """
    best = sorted((row for row in rows if row.tightest and row.quantity == quantity), key=lambda row: row.k)
    if not best:
        return None
    label = f"guarantee, {quantity}: {best[-1].bound.name}"
    curve = through(f"{quantity} guarantee", [(float(row.k), row.value) for row in best], "guarantee", label)
    return replace(curve, group=group, method="the smallest bound at each k")


def _curve(rows: Sequence[Row]) -> Series:
    bound = rows[0].bound
    role = bound_role(bound)
    points = sorted((float(row.k), row.value) for row in rows)
    curve = through(bound.key, points, role, bound.name + {**NO_GUARANTEE, "reference": ": no less"}.get(role, ""))
    return replace(curve, method=bound.kind, group=bound_group(bound))


def _is_minor(rows: Sequence[Row]) -> bool:
    bound = rows[0].bound
    if bound_role(bound) == "bound" and all(row.vacuous for row in rows):
        return True
    return bound.origin not in ("statement", "trivial") and not any(row.tightest for row in rows)


def bound_group(bound: Bound) -> int:
    """The place of a statement among all that have guarantees, so that it looks the same in every figure; -1 of others.

    The remainder is its family, which has a colour: the paper, this library, or other papers.
    """
    if bound_role(bound) != "bound":
        return -1
    family = _family(bound)
    labels = dict.fromkeys(
        other.label for other in all_bounds() if bound_role(other) == "bound" and _family(other) == family
    )
    return FAMILIES * list(labels).index(bound.label) + family if bound.label in labels else -1


def _family(bound: Bound) -> int:
    """0 for the paper, 1 for what is proved here, 2 for other papers."""
    return 0 if bound.source.startswith(PAPER) else 1 if bound.status == "proved here" else 2
