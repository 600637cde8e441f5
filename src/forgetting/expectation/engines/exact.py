"""The parts that exact engines share: the requests they cover, the moment map of a request, digits, and the outcome.

Digits are those of float64, of two floats (31 digits), or as many as it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS
from forgetting.dynamics.space import view_of
from forgetting.expectation.engines import decimal_moments
from forgetting.expectation.engines.error_bounds import Pair, doubts_of, times, two_floats
from forgetting.expectation.engines.float64_moments import Float64Moments
from forgetting.expectation.engines.moment_map import Moments
from forgetting.expectation.engines.step_tables import StepTables
from forgetting.expectation.engines.two_float_moments import TwoFloatMoments
from forgetting.expectation.outcome import Outcome, Values
from forgetting.expectation.quantities import Term, look_ahead, shares_of_unfitted
from forgetting.expectation.request import FOREVER, Request, steps_shown
from forgetting.geometry import Geometry
from forgetting.orderings.laws import Independent, Law

QUICK = 5e8  # products of numbers of two floats that may be spent on 31 digits: a second or two
ENOUGH = 64 * EPS  # relative doubt below which more digits are not worth computing
SECONDS_PER_PRODUCT = 2.5e-6  # of decimal numbers, roughly, all precisions taken together


def refusal(request: Request, *laws: type[Law], alike: bool = False) -> str | None:
    """The reason why moments do not cover a request; None if they do.

    They cover quadratic forms under a linear scheme and an ordering with one of these laws; with `alike`, only a scheme
    that makes the same step each time, and keeps all of w.
    """
    if not isinstance(request.law, laws):
        return f"it does not cover {request.ordering}"
    if request.linear is None:
        return f"it needs a linear scheme on regression tasks, not {request.scheme}"
    if alike and not request.linear.alike:
        return f"it needs steps that are all alike and keep all of w, which those of {request.scheme} do not"
    odd = [quantity.name for quantity in request.quantities if not quantity.quadratic]
    return f"{odd[0]} is not a quadratic form of w" if odd else None


def products_of_step(request: Request) -> float:
    """The number of products in one step of Q, roughly; sums of iterates double the order of the moments."""
    geometry, times = request.geometry, 4 if request.averaged else 1
    size, rows = geometry.dim + request.constants, geometry.rows_learned
    single = times > 1 or request.scores_tests  # steps are made one by one
    return times * (3.0 * rows * size**2 + 4.0 * size**2) + (3e4 if single else 300)


def in_two_floats(request: Request, products: float) -> bool:
    """Whether to compute with 31 digits: the data allow it, and so many products take a second or two."""
    geometry = request.geometry
    return request.device.host and geometry.refinement + products <= QUICK and geometry.precise is not None


def moment_map(request: Request, *, twofold: bool = False, homogeneous: bool = False, as_run: bool = False) -> Moments:
    """The moment map of a request, with the probabilities of independent draws (uniform for all other laws).

    Args:
        request: a linear scheme.
        twofold: whether to compute with 31 digits rather than in float64.
        homogeneous: leave out what no w fits.
        as_run: take the bases that `run` computes with.
    """
    geometry, steps, w0 = request.geometry, request.linear_steps, request.w0
    source = geometry.precise if twofold else geometry.plain if as_run else geometry.best
    assert source is not None
    start, rows, leftover = _by_output(source.start(w0)), source.rows, _by_output(source.leftover)
    origin = _by_output(source.solution) if request.decays else (np.zeros((0, geometry.dim)),) * 2
    # held-out data, however large, leave the scale of what is learned alone
    size = float(np.linalg.norm(start[0])) + float(np.linalg.norm(leftover[0][:, : geometry.rows_learned]))
    size += float(np.linalg.norm(origin[0]))
    unit = 2.0 ** float(np.frexp(size)[1]) if size > 0 else 1.0
    constants = len(leftover[0]) if request.decays or (leftover[0].any() and not homogeneous) else 0
    probability, known = _probability(request)
    order = (geometry.dim + constants) * (2 if request.averaged else 1)
    tables = StepTables(geometry, steps, source, order, known, twofold, request.last)
    gains, noise, _ = tables.of(1, 1).row()
    left, right, first = times(rows, gains, twofold), rows, (start[0] / unit, start[1] / unit)
    if constants:
        identity, nothing = np.eye(constants), np.zeros(leftover[0].T.shape)
        right = _widened(rows, (-leftover[0].T / unit, -leftover[1].T / unit))
        left = _widened(left, (nothing, nothing))
        first = _widened(first, (identity, 0 * identity))
    if request.averaged:
        left, right, first = _doubled(left), _doubled(right), _doubled(first)
    kind = TwoFloatMoments if twofold else Float64Moments
    pace = tables.paces[0]
    return kind(
        geometry=geometry,
        probability=probability,
        left=left,
        right=right,
        squares=source.squares,
        gains=gains,
        solves=steps.at(1).scheme.solves_task,
        tables=tables,
        origin=(origin[0] / unit, origin[1] / unit),
        unexplained=source.unexplained,
        first=first,
        unit=unit,
        doubts=doubts_of(geometry, source, first[0], noise, pace, w0, unit, known, twofold, homogeneous),
        aside=request.error_aside(np.arange(1 if request.lost is None else request.last + 1)),
        averaged=request.averaged,
        watches=request.scores_tests,
        device=request.device,
    )


def float64_map(request: Request, *, homogeneous: bool = False) -> Float64Moments:
    """`moment_map` in float64, for the powers of Q and the weights of draws."""
    moments = moment_map(request, homogeneous=homogeneous)
    assert isinstance(moments, Float64Moments)
    return moments


def _probability(request: Request) -> tuple[Pair, float]:
    """The probability of each distinct task, and a bound on the relative error of all of them."""
    geometry, law, tools = request.geometry, request.law, two_floats()
    weights, known = np.ones(geometry.num_tasks), 0.0
    if isinstance(law, Independent):
        weights, known = law.weights(view_of(request.problem))
    high, low = np.zeros(geometry.num_distinct), np.zeros(geometry.num_distinct)
    total = 0.0, 0.0
    for which, weight in zip(geometry.index.tolist(), weights.tolist(), strict=True):
        high[which], low[which] = tools.add(high[which], low[which], weight, 0.0)
        total = tools.add(*total, weight, 0.0)
    return tools.div(high, low, np.full_like(high, total[0]), np.full_like(high, total[1])), known


def _by_output(pair: Pair) -> Pair:
    """The numbers with a row for each output, also where there is one output."""
    return np.atleast_2d(pair[0]), np.atleast_2d(pair[1])


def _widened(pair: Pair, columns: Pair) -> Pair:
    """The numbers with more columns on the right."""
    return np.hstack([pair[0], columns[0]]), np.hstack([pair[1], columns[1]])


def _doubled(pair: Pair) -> Pair:
    """The numbers with an equal number of columns of zeros on the right."""
    return np.hstack([pair[0], 0 * pair[0]]), np.hstack([pair[1], 0 * pair[1]])


def refined(
    request: Request,
    moments: Moments,
    values: Values,
    doubts: Values,
    detail: str,
    order: IntArray | None = None,
    notes: tuple[str, ...] = (),
) -> Outcome:
    """The outcome; values with a large doubt are computed again with more digits if that takes less than a second."""
    digits = f"{31 if moments.twofold else 16} digits"
    unsure = {name: np.isfinite(value) & (doubts[name] > ENOUGH * np.abs(value)) for name, value in values.items()}
    # more digits of rows whose last digits were taken for rounding say nothing
    worthwhile = request.device.host and not moments.doubts.dropped and any(np.any(flags) for flags in unsure.values())
    if worthwhile and decimal_moments.products(request) * SECONDS_PER_PRODUCT <= min(1.0, request.patience):
        table, most = decimal_moments.answer(request, order, unsure)
        for name, (value, doubt) in table.items():
            better = unsure[name] & ((doubt <= doubts[name]) | (np.abs(value - values[name]) > doubts[name] + doubt))
            values[name] = np.where(better, value, values[name])
            doubts[name] = np.where(better, doubt, doubts[name])
        digits = f"{digits}, some values with {most}"
    return concluded(request, values, doubts, f"{detail} with {digits}", notes)


def sums_of_terms(
    request: Request,
    moments: Moments | None,
    evaluate: Callable[[Term, IntArray], tuple[Array, Array]],
    limit: Callable[[Sequence[Term]], tuple[float, float]] | None = None,
    over: NDArray[np.bool_] | None = None,
) -> tuple[Values, Values]:
    """Every quantity at the steps of a request, and its doubt, in float64.

    `evaluate` gives a term at some steps without its coefficient, and its doubt. If `moments` of independent draws are
    given, what no w can fit is left out of terms that are not for each task, and is added from there: it cancels where
    one term is subtracted from another. `limit` gives the sum of terms with one value, and its doubt, at k = inf.
    `over` says at which of the steps no task comes next.
    """
    values, doubts = {}, {}
    for quantity in request.quantities:
        shape = (len(request.steps), *(request.geometry.index.shape if quantity.per_task else ()))
        value, doubt = np.zeros(shape), np.zeros(shape)
        endless = (request.steps == FOREVER) & (limit is not None) & (not quantity.per_task)
        first = request.steps == 1
        for own, terms in ((first, quantity.after(1)), (~first, quantity.after(2))):
            finite = own & ~endless
            for term in terms if finite.any() else ():
                part, off = evaluate(term, request.steps[finite])
                value[finite] += term.coefficient * part
                doubt[finite] += abs(term.coefficient) * off
            if limit is not None and np.any(own & endless):
                value[endless], doubt[endless] = limit(terms)
            if moments is not None:
                left, doubt_of_left = _unfitted(moments, terms)
                value[own], doubt[own] = value[own] + left, doubt[own] + doubt_of_left
        undefined = (request.steps == 0) & quantity.needs_steps
        if over is not None:
            undefined = undefined | over & look_ahead(quantity.terms())
        if quantity.quadratic and not quantity.signed:  # a square; NaN is more than float64 can hold
            value = np.where(np.isnan(value), np.inf, np.maximum(value, 0.0))
        doubt = np.where(np.isnan(doubt) | np.isinf(value), np.inf, doubt)
        value[undefined], doubt[undefined] = np.nan, np.nan
        values[quantity.name], doubts[quantity.name] = value, doubt
    return values, doubts


def _unfitted(moments: Moments, terms: Sequence[Term]) -> tuple[float, float]:
    """The part of a sum of terms that no w can fit, which is the same at all steps, and a bound on its error."""
    geometry, value, doubt = moments.geometry, 0.0, 0.0
    left, off = moments.unexplained[0], moments.doubts.unexplained + 8 * EPS * moments.unexplained[0]
    for (average, held_out), factor in shares_of_unfitted(terms).items():
        share = geometry.counts / geometry.num_tasks if average == "tasks" else moments.probability[0]
        share = _of_held_out(geometry, share) if held_out else share
        value, doubt = value + factor * float(share @ left), doubt + abs(factor) * float(share @ off)
    return value, doubt


def weights_of(moments: Moments, term: Term) -> Array:
    """The weight of the square of each direction in a term with one value, under independent draws; twice the form."""
    geometry = moments.geometry
    share = geometry.counts / geometry.num_tasks if term.average == "tasks" else moments.probability[0]
    share = (_of_held_out(geometry, share) if term.held_out else share)[geometry.owner]
    left = (1 - moments.gains[0]) ** 2 if term.average == "kept" else 1.0
    return np.asarray(share * left * moments.weights(term.form)[0])


def kept_off(moments: Moments) -> Array:
    """A bound on the error of (1 - g)^2, the share of a square that a step leaves, for each direction."""
    gains, _, slips = moments.tables.of(1, 1).row()
    slip = slips[moments.geometry.owner]
    return np.asarray(slip * (2 * np.abs(1 - gains[0]) + slip))


def _of_held_out(geometry: Geometry, shares: Array) -> Array:
    """Shares of distinct tasks, moved from the tasks to their held-out data."""
    half = geometry.num_learned
    return np.concatenate([0 * shares[:half], shares[:half]])


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
