"""Every quantity, and a bound on its error, from the squares that are read off second moments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property, reduce
from typing import NamedTuple, Protocol

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS
from forgetting.core.progress import track
from forgetting.expectation.engines.error_bounds import Pair, scaled, two_floats
from forgetting.expectation.engines.moment_map import MomentReading, Moments, Squares
from forgetting.expectation.outcome import Values
from forgetting.expectation.quantities import Average, Form, Quantity, Term, look_ahead, shares_of_unfitted
from forgetting.expectation.request import Request

LOST = 1e-250  # a doubt below it is that of a 0: products of two floats below about 1e-270 lose their low parts


class Bounded(NamedTuple):
    """Numbers of two floats, with a bound on the error of each."""

    value: Pair
    doubt: Array


class Walk(Protocol):
    """Second moments over all orders at once, one step after the other."""

    moments: Moments

    def reading(self, *, coming: bool) -> MomentReading:
        """The squares and sums that quantities are computed from; with `coming`, also those of the next task."""

    def step(self) -> None:
        """Learn one more task."""


def readings_of(walk: Walk, request: Request, what: str) -> Iterator[MomentReading]:
    """What a walk, told to the user as `what`, reads at the steps of a request."""
    times = Counter(request.steps.tolist())
    for k in track(range(request.last + 1), what):
        for _ in range(times[k]):
            yield walk.reading(coming=request.averages("next"))
        if k < request.last:
            walk.step()


def evaluated(request: Request, moments: Moments, readings: Iterable[MomentReading]) -> tuple[Values, Values]:
    """Every quantity and a bound on its error, from what is read at each step of the request."""
    conclusions = (_Conclusion(moments, reading) for reading in readings)
    rows = [{quantity.name: conclusion.of(quantity) for quantity in request.quantities} for conclusion in conclusions]
    values, doubts = ({name: np.array([row[name][part] for row in rows]) for name in rows[0]} for part in range(2))
    return values, doubts


class _Conclusion:
    def __init__(self, moments: Moments, reading: MomentReading) -> None:
        self.moments, self.reading, self.k = moments, reading, reading.k
        self.geometry = moments.geometry
        self.factor = moments.unit**2  # a power of two: exact
        self.evaluated: dict[tuple[Average, Form, bool, str], Bounded] = {}
        self.rounding = 4 * (len(moments.squares[0]) + self.geometry.num_distinct + 8) * moments.rounding

    @cached_property
    def drift(self) -> float:
        """A bound on the error of z after k steps because labels and z = 0 are only known up to rounding."""
        return self.moments.drifted(self.k)

    def of(self, quantity: Quantity) -> tuple[Array, Array]:
        """The value in float64, and a bound on its error; NaN where it is not defined."""
        terms = quantity.after(self.k)
        if (quantity.needs_steps and not self.k) or (self.reading.chance is None and look_ahead(terms)):
            nothing = np.full(self.geometry.index.shape[: quantity.per_task], np.nan)
            return nothing, nothing
        parts: list[Bounded] = []
        for term in terms:
            seen = term.average, term.form, term.held_out, term.iterate
            if seen not in self.evaluated:
                self.evaluated[seen] = self.evaluate(term)
            parts.append(_times(self.evaluated[seen], term.coefficient))
        for (average, held_out), coefficient in shares_of_unfitted(terms).items():
            if coefficient and (self._left_over.value[0].any() or self._left_over.doubt.any()):
                parts.append(_times(self._unfitted(average, held_out), coefficient))
        (high, low), doubt = reduce(_sum, parts) if parts else _zeros(self.geometry.index.shape[: quantity.per_task])
        single = high + low
        if not quantity.signed:  # a square cannot be negative; NaN is more than float64 can hold
            single = np.maximum(single, 0.0)
            single = np.where(np.isnan(single), np.inf, single)
        single = np.where((np.abs(single) <= doubt) & (doubt < LOST), 0.0, single)
        doubt = np.where(np.isnan(doubt) | np.isinf(single), np.inf, doubt)
        return np.asarray(single), np.asarray(doubt + EPS * np.abs(single))

    def evaluate(self, term: Term) -> Bounded:
        """A term without its coefficient, and, unless it is for each task, without what no w can fit."""
        if term.average == "error":
            return self._error()
        each = self._own(term.held_out, self._each(term))
        match term.average:
            case "each":
                if term.form.with_unfitted:
                    value, doubt = _sum(each, self._own(term.held_out, self._left_over))
                    each = Bounded(value, doubt + self.rounding * np.abs(value[0]))
                return _picked(each, self.geometry.index)
            case "tasks":
                return self._mean_of_tasks(each)
            case "next":
                return self._weighted(each, _ones(len(each.doubt)))
        return self._divided(self._weighted(each, _ones(len(each.doubt))), float(self.k))

    def _own(self, held_out: bool, each: Bounded) -> Bounded:
        """The values of the learned tasks, or of their held-out data, from those of all distinct tasks."""
        learned = self.geometry.num_learned
        return _picked(each, slice(learned, None) if held_out else slice(learned))

    # ------------------------------------------------------------------------------------------------------ parts

    def _error(self) -> Bounded:
        """E |w_k - w*|^2."""
        high, low = (np.asarray(part) for part in self.reading.spread)
        moved = self.moments.doubts.labels.any() or len(self.moments.origin[0])
        off = self.drift + (self.moments.doubts.misplaced if moved else 0.0)
        doubt = self.reading.spread_doubt
        doubt = doubt + 2 * np.sqrt(max(float(high) + doubt, 0.0)) * off + off**2 + self.rounding * np.abs(high)
        aside, off = (part[min(self.k, len(part) - 1)] for part in self.moments.aside)
        value = two_floats().add(high * self.factor, low * self.factor, aside, 0.0)
        return Bounded(value, doubt * self.factor + off)

    def _each(self, term: Term) -> Bounded:
        """The form of each distinct task, less what no w can fit, where the term looks at it.

        For means over the steps, the sum over the visits of each task.
        """
        form, reading, k = term.form, self.reading, float(self.k)
        if term.iterate == "mean":
            assert reading.summed is not None
            reach = np.sqrt(reading.summed_spread) + self.k * self.moments.doubts.labels
            return self._divided(self._divided(self._losses(form, reading.summed, k**2, reach), k), k)
        match term.average:
            case "next":
                assert reading.coming is not None
                return self._losses(form, reading.coming, 1.0, self._reach(final=True))
            case "learnt":
                return self._losses(form, self._drawn(self.reading.learnt), k, self._reach(final=False))
            case "visited":
                assert reading.visited is not None
                return self._losses(form, reading.visited, k, np.sqrt(self.k) * self._reach(final=True))
            case "kept":
                return self._kept(form, term.held_out)
        value, doubt = self._losses(form, reading.now, 1.0, self._reach(final=True))
        return Bounded(value, doubt + self.rounding * np.abs(value[0]))

    def _drawn(self, squares: Squares) -> Squares:
        """Squares summed over steps, each weighted with its probability, which can be off."""
        value, doubt = squares
        return Squares(value, doubt + self.moments.doubts.known * np.abs(value[0]))

    def _kept(self, form: Form, held_out: bool) -> Bounded:
        """The form of each distinct task just after it was learned, summed over its visits."""
        moments, reach, tables = self.moments, self._reach(final=False), self.moments.tables
        if self.reading.remembered is not None:
            return self._losses(form, self.reading.remembered, float(self.k), reach)
        if held_out:
            assert self.reading.kept is not None
            (high, low), doubt = self.reading.kept
            first = np.zeros(self.geometry.rows_learned)
            squares = Squares(
                (np.append(first, high), np.append(first, low)),
                np.append(first, doubt + moments.doubts.known * np.abs(high)),
            )
            # a step that is a little off moves what held-out data see
            steps = moments.with_tests(tables.noisiest)
            return self._losses(form, squares, float(self.k), reach, moved=steps)
        if tables.solves:
            return _zeros((self.geometry.num_distinct,))
        return self._losses(form, self._drawn(self.reading.after), float(self.k), reach, tables.spared)

    @property
    def _left_over(self) -> Bounded:
        """The part of the form of each distinct task that no w can fit."""
        return Bounded(self.moments.unexplained, self.moments.doubts.unexplained)

    def _unfitted(self, average: Average, held_out: bool) -> Bounded:
        """The part that no w can fit, averaged over all tasks, visits or the next task."""
        each, learned = self._own(held_out, self._left_over), self.geometry.num_learned
        if average == "tasks":
            return self._mean_of_tasks(each)
        weights = self.reading.visits if average == "visited" else self.reading.chance
        assert weights is not None
        total = self._weighted(each, (weights[0][:learned], weights[1][:learned]))
        total = Bounded(total.value, total.doubt + self.moments.doubts.known * np.abs(total.value[0]))
        return self._divided(total, float(self.k) if average == "visited" else 1.0)

    def _mean_of_tasks(self, each: Bounded) -> Bounded:
        counts = self.geometry.counts[: self.geometry.num_learned].astype(np.float64)
        return self._divided(self._weighted(each, (counts, np.zeros_like(counts))), counts.sum())

    def _reach(self, *, final: bool) -> Array:
        """The root mean square of the factor of errors of rows: |z| now, or summed over all steps.

        For each distinct task.
        """
        size = self.moments.doubts.labels
        if final:
            return np.asarray(np.sqrt(max(self.reading.spread[0], 0.0) + self.reading.spread_doubt) + size)
        return np.asarray(np.sqrt(max(self.reading.travelled, 0.0)) + np.sqrt(self.k) * size)

    def _losses(
        self,
        form: Form,
        squares: Squares,
        terms: float,
        reach: Array,
        most: Array | float = 1.0,
        moved: Array | None = None,
    ) -> Bounded:
        """sum_i weight_i / 2 squares_i for each distinct task, with a bound on its error.

        `most` bounds for each task the factor of an error of z in the roots of its squares. `moved` bounds for each
        task the errors of its directions beyond those of its rows.
        """
        tools, moments = two_floats(), self.moments
        factors = moments.weights(form)
        weights = 0.5 * factors[0], 0.5 * factors[1]
        parts = tools.mul(*weights, *squares.value)
        total = np.maximum(squares.value[0], 0.0) + squares.doubt
        drift = self.drift * np.broadcast_to(most, self.geometry.num_distinct)[self.geometry.owner]
        doubts = squares.doubt + 2 * drift * np.sqrt(total * terms) + terms * drift**2
        value = self.moments.per_task(parts)
        doubt = self.geometry.per_task(np.abs(weights[0]) * doubts + self.rounding * np.abs(parts[0]))
        slips, tops = moments.slips(form), np.sqrt(self.geometry.per_task(np.abs(factors[0])))
        if moved is not None:
            slips = slips + 2 * moved * tops
        e = (slips * reach + np.sqrt(terms) * moments.doubts.displaced * tops) * most
        doubt = doubt + np.sqrt(2 * np.maximum(value[0], 0.0) + 2 * doubt) * e + e**2 / 2
        return Bounded((value[0] * self.factor, value[1] * self.factor), doubt * self.factor)

    def _weighted(self, each: Bounded, weights: Pair) -> Bounded:
        """sum_m weights_m value_m."""
        parts = two_floats().mul(*each.value, *weights)
        lost = self.rounding * np.sum(np.abs(parts[0]))
        return Bounded(two_floats().total(parts), np.asarray(np.abs(weights[0]) @ each.doubt + lost))

    def _divided(self, number: Bounded, by: float) -> Bounded:
        divisor = np.full_like(number.value[0], by)
        value: Pair = two_floats().div(*number.value, divisor, np.zeros_like(divisor))
        return Bounded(value, np.asarray(number.doubt / by))


def _zeros(shape: tuple[int, ...]) -> Bounded:
    return Bounded((np.zeros(shape), np.zeros(shape)), np.zeros(shape))


def _ones(count: int) -> Pair:
    return np.ones(count), np.zeros(count)


def _sum(first: Bounded, second: Bounded) -> Bounded:
    return Bounded(two_floats().add(*first.value, *second.value), first.doubt + second.doubt)


def _times(number: Bounded, factor: float) -> Bounded:
    """The number times a float, which counts as exact."""
    if abs(factor) == 1:  # also where products would overflow
        return Bounded((factor * number.value[0], factor * number.value[1]), number.doubt)
    return Bounded(scaled(number.value, np.full_like(number.value[0], factor)), number.doubt * abs(factor))


def _picked(several: Bounded, which: slice | IntArray) -> Bounded:
    """Some of several numbers."""
    return Bounded((several.value[0][which], several.value[1][which]), several.doubt[which])
