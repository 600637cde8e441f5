"""With how many digits exact engines compute: float64, two floats (31 digits), or as many as it takes."""

from __future__ import annotations

import numpy as np

from forgetting.core.arrays import IntArray
from forgetting.expectation.engines import deep
from forgetting.expectation.engines.moment_map import Moments
from forgetting.expectation.engines.pairs import EPS
from forgetting.expectation.outcome import Outcome, Values
from forgetting.expectation.request import Request, steps_shown
from forgetting.orderings.laws import Law

__all__ = ["concluded", "in_two_floats", "products_of_step", "refined", "refusal"]

QUICK = 5e8  # products of numbers of two floats that may be spent on 31 digits: a second or two
ENOUGH = 64 * EPS  # relative doubt below which more digits are not worth computing
SECONDS_PER_PRODUCT = 2.5e-6  # of decimal numbers, roughly, all precisions taken together


def refusal(request: Request, *laws: type[Law]) -> str | None:
    """Why moments do not cover a request; None if they do: a linear scheme, and an ordering with one of these laws."""
    if not isinstance(request.law, laws):
        return f"it does not cover {request.ordering}"
    if request.linear is None:
        return f"it needs a linear scheme on regression tasks, not {request.scheme}"
    odd = [quantity.name for quantity in request.quantities if not quantity.form.quadratic]
    return f"{odd[0]} is no quadratic form of w" if odd else None


def products_of_step(request: Request) -> float:
    """Products of two numbers that one step of Q takes, roughly; sums of iterates double the order of the moments."""
    geometry, times = request.geometry, 4 if request.averaged else 1
    size, rows = geometry.dim + request.constants, geometry.rows_learned
    single = times > 1 or request.scores_tests  # steps are made one by one
    return times * (3.0 * rows * size**2 + 4.0 * size**2) + (3e4 if single else 300)


def in_two_floats(request: Request, products: float) -> bool:
    """Whether to compute with 31 digits: where the data allow it and so many products take a second or two."""
    geometry = request.geometry
    return request.device.host and geometry.refinement + products <= QUICK and geometry.precise is not None


def refined(
    request: Request,
    moments: Moments,
    values: Values,
    doubts: Values,
    detail: str,
    order: IntArray | None = None,
    notes: tuple[str, ...] = (),
) -> Outcome:
    """The outcome, with values computed again where their digits leave doubts and more digits take no second."""
    digits = f"{31 if moments.twofold else 16} digits"
    unsure = {name: np.isfinite(value) & (doubts[name] > ENOUGH * np.abs(value)) for name, value in values.items()}
    # more digits of rows whose last digits were taken for rounding say nothing
    worthwhile = request.device.host and not moments.doubts.dropped and any(np.any(flags) for flags in unsure.values())
    if worthwhile and deep.products(request) * SECONDS_PER_PRODUCT <= min(1.0, request.patience):
        table, most = deep.answer(request, order, unsure)
        for name, (value, doubt) in table.items():
            better = unsure[name] & ((doubt <= doubts[name]) | (np.abs(value - values[name]) > doubts[name] + doubt))
            values[name] = np.where(better, value, values[name])
            doubts[name] = np.where(better, doubt, doubts[name])
        digits = f"{digits}, some values with {most}"
    return concluded(request, values, doubts, f"{detail} with {digits}", notes)


def concluded(
    request: Request,
    values: Values,
    doubts: Values,
    detail: str,
    notes: tuple[str, ...] = (),
    *,
    estimated: bool = False,
) -> Outcome:
    """The outcome, with notes on dropped directions and on values that are no larger than their rounding error."""
    remarks = list(notes)
    if not request.device.host:
        done, *more = detail.split(";", 1)
        detail = ";".join([f"{done}, on {request.device}", *more])
    dropped = request.geometry.best.dropped
    if dropped:
        remarks.append(
            f"some rows have directions of {dropped:.1g} of their size, which were taken for rounding: "
            "values are those of tasks without these directions"
        )
    for name, value in values.items():
        doubt = doubts[name]
        if value.ndim == 1 and 0 < abs(value[-1]) <= doubt[-1] and np.isfinite(value[-1]):
            above = np.flatnonzero(~(np.abs(value) <= doubt))
            first = steps_shown(request.steps)[above[-1] + 1 if above.size else 0]
            remarks.append(
                f"{name} from k = {first:.0f} is no larger than its error ({doubt[-1]:.1g}): its digits are noise"
            )
    return Outcome(detail, values, doubts, notes=tuple(remarks), estimated=estimated)
