"""`Expectation`, the result of `expect`, and `Outcome`, what an engine returns and the result is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_flag, as_kind
from forgetting.errors import ForgettingError, InvalidInputError, MissingValueError
from forgetting.expectation.intervals import LEVELS, Quantile, Range, at_level, is_useless
from forgetting.expectation.quantities import LOSS, Quantity, look_ahead
from forgetting.expectation.request import steps_shown
from forgetting.figures.items import Curves, Series, column
from forgetting.figures.text_formats import columns_text
from forgetting.files.records import checked_fields
from forgetting.orderings import Ordering
from forgetting.results import Result
from forgetting.schemes import Scheme
from forgetting.tasks import Problem

__all__ = ["Expectation", "Outcome", "Values"]

Values = dict[str, Array]
SHOWN = 9  # first rows of a printed table; of more, the last row follows
ALL_ORDERS = "Expected values over all orders"


@dataclass(frozen=True, eq=False, repr=False)
class Expectation(Result):
    """Expected quantities at the steps k, with intervals and the method that gave them.

    A scalar k gives scalars, a sequence gives arrays; `task_losses` has a last axis of tasks, and intervals a last axis
    (low, high). Where the method is exact both ends equal the value, and `uncertainty[name]` limits the rounding error
    of the value: a bound for "moments", "subsets", "seen", "listing" and "deterministic" with a linear scheme, an
    estimate for "spectral". Runs of any other scheme have no uncertainty. Simulated values have intervals, and their
    uncertainty is half the width. They also have quantiles over single runs, which are not decided by rare large values
    as means are, with intervals that hold for any distribution.

    Attributes:
        k: the steps; floats if k = inf is among them.
        method: the name of the engine: "moments", "spectral", "subsets", "seen", "listing", "deterministic" or
            "monte-carlo".
        detail: how the values were computed, in words, and with how many digits.
        values: every quantity by its name.
        intervals: (low, high) of every quantity.
        uncertainty: of every quantity that has one.
        confidence: of the intervals; 1 for exact methods.
        runs: simulated runs, 0 for exact methods.
        notes: warnings for a reader who quotes a number.
        estimated: whether uncertainties are estimates rather than bounds.
        quantiles: of simulated values: for every quantity (value, low, high), the last axis, at the levels 0.05, 0.25,
            0.5, 0.75 and 0.95, the axis before; empty for exact methods, which have means alone.
        ranges: of simulated quantities: the interval that no value of a run can leave. The confidence interval of a
            quantity that has a range holds for any distribution on it; others are normal approximations.
        seed: of the simulation; None for exact methods.
        heading: the meaning of the values, in words.
        unit: the meaning of a loss, in words; empty if that is not known, or if no value is a loss.
        problem, ordering, scheme, w0: the arguments of the call; None in a difference of two ways of learning.
    """

    kind = "expectation"
    _along = True

    k: int | float | IntArray | Array
    method: str
    detail: str
    values: dict[str, Array | float]
    intervals: dict[str, Array]
    uncertainty: dict[str, Array | float]
    confidence: float = 1.0
    runs: int = 0
    notes: tuple[str, ...] = ()
    estimated: bool = False
    quantiles: dict[str, Array] = field(default_factory=dict)
    ranges: dict[str, Range] = field(default_factory=dict)
    seed: int | None = None
    heading: str = ALL_ORDERS
    unit: str = ""
    problem: Problem | None = None
    ordering: Ordering | None = None
    scheme: Scheme | None = None
    w0: Array | None = None

    def _get(self, name: str, table: Mapping[str, Array | float]) -> Array:
        if not isinstance(name, str) or name not in table:
            raise MissingValueError(f"{name} was not asked for; add it to quantities=, which was {tuple(self.values)}")
        return table[name]  # type: ignore[return-value]

    @property
    def exact(self) -> bool:
        """Whether the method is exact up to rounding."""
        return self.runs == 0

    @property
    def loss(self) -> Array:
        """E L(w_k)."""
        return self._get("loss", self.values)

    @property
    def forgetting(self) -> Array:
        """E F(k); NaN at k = 0, where there is no step to forget."""
        return self._get("forgetting", self.values)

    @property
    def regret(self) -> Array:
        """E of 1/k sum_t L_tau(t)(w_(t-1)); NaN at k = 0."""
        return self._get("regret", self.values)

    @property
    def error(self) -> Array:
        """E |w_k - w*|^2, with w* the offline solution nearest to w_0 (scaled iterates, where losses use those)."""
        return self._get("error", self.values)

    @property
    def task_losses(self) -> Array:
        """E L_m(w_k) for every task m (last axis)."""
        return self._get("task_losses", self.values)

    @property
    def seen_loss(self) -> Array:
        """E of 1/k sum_t L_tau(t)(w_k), the loss of the tasks that were visited; NaN at k = 0."""
        return self._get("seen_loss", self.values)

    @property
    def next_loss(self) -> Array:
        """E L_tau(k+1)(w_k), the loss of the task that is learned next; NaN where no task comes next."""
        return self._get("next_loss", self.values)

    @property
    def averaged_loss(self) -> Array:
        """E L of the mean of w_0, ..., w_(k-1), from which the first k steps start; NaN at k = 0."""
        return self._get("averaged_loss", self.values)

    @property
    def test_loss(self) -> Array:
        """E of the mean loss of the held-out data of all tasks at w_k."""
        return self._get("test_loss", self.values)

    @property
    def test_forgetting(self) -> Array:
        """E of the mean over visits of the held-out loss at w_k, less that just after the visit; NaN at k = 0."""
        return self._get("test_forgetting", self.values)

    @property
    def accuracy(self) -> Array:
        """E of the mean accuracy of all tasks at w_k."""
        return self._get("accuracy", self.values)

    @property
    def loss_interval(self) -> Array:
        """(low, high) for `loss`."""
        return self._get("loss", self.intervals)

    @property
    def forgetting_interval(self) -> Array:
        """(low, high) for `forgetting`."""
        return self._get("forgetting", self.intervals)

    def interval(self, name: str) -> Array:
        """(low, high) for any quantity."""
        return self._get(name, self.intervals)

    def quantile(self, name: str, level: float) -> Quantile:
        """(value, low, high) of a simulated quantity: the value that a share `level` of the runs does not exceed.

        Levels are 0.05, 0.25, 0.5, 0.75 and 0.95. The interval holds with probability `confidence`, whatever the
        distribution is.

        >>> import forgetting as fg
        >>> lines = fg.families.two_lines(np.pi / 3)
        >>> e = fg.expect(lines, fg.orderings.WithReplacement(), 100, method="monte-carlo", quantities="loss")
        >>> value, low, high = e.quantile("loss", 0.5)
        >>> value < 1e-10 * e.loss_interval[1]   # most runs are far below the mean, which rare runs decide
        np.True_
        """
        self._get(name, self.values)
        if self.exact:
            raise InvalidInputError(
                f"{name} has no quantiles: it is exact, and exact methods give means; use method='monte-carlo'"
            )
        return at_level(self._get(name, self.quantiles), level)

    def median(self, name: str) -> Quantile:
        """(value, low, high) of a simulated quantity: the value that half of the runs do not exceed."""
        return self.quantile(name, 0.5)

    @property
    def headline(self) -> str:
        """The meaning and the origin of the values, in plain words."""
        how = "exact" if self.exact else f"simulated: {self.runs} runs, seed {self.seed}"
        return f"{self.heading}, {how}"

    def _num_rows(self) -> int:
        return np.size(self.k)

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Any]:
        steps = np.atleast_1d(self.k)[rows]
        columns: dict[str, Any] = {"k": steps if full else [int(k) if np.isfinite(k) else k for k in steps]}
        for name, value in self.values.items():
            each = np.ndim(value) > np.ndim(self.k)  # one value a task
            if each and not full:
                continue
            table = np.asarray(value).reshape(np.size(self.k), -1)[rows]
            for task in range(table.shape[1]):
                column = f"{name}[{task}]" if each else name
                columns[column] = table[:, task]
                if not self.exact:
                    ends = np.asarray(self.intervals[name]).reshape(np.size(self.k), -1, 2)[rows, task]
                    columns |= {f"{column} {end}": ends[:, place] for place, end in enumerate(("low", "high"))}
                if name in self.quantiles and (full or name in undecided_means(self)):
                    middle = np.asarray(self.median(name).value).reshape(np.size(self.k), -1)[rows, task]
                    columns[f"{column} median"] = middle
        return columns

    def _remarks(self) -> tuple[str, ...]:
        unit = [f"losses: {self.unit}"] if self.unit else []
        return (*unit, *accuracy(self), *self.notes)

    @classmethod
    def _restored(cls, values: dict[str, Any]) -> Self:
        made = cls(**checked_fields(cls, values))
        steps = np.shape(made.k)
        shapes = {name: np.shape(value) for name, value in made.values.items()}
        fits = len(steps) < 2 and set(made.intervals) == set(shapes)
        fits = fits and all(shape[: len(steps)] == steps and len(shape) <= len(steps) + 1 for shape in shapes.values())
        for table, ending in ((made.intervals, (2,)), (made.uncertainty, ()), (made.quantiles, (len(LEVELS), 3))):
            fits = fits and all(np.shape(value) == (*shapes.get(name, ()), *ending) for name, value in table.items())
            fits = fits and set(table) <= set(shapes)
        if not fits or not set(made.ranges) <= set(made.quantiles):
            raise ForgettingError("values, intervals, uncertainties and quantiles do not fit together")
        return made

    def series(self, name: str, label: str = "", group: int = -1) -> Series:
        """The curve of a quantity at all finite k, with its intervals if the values are simulated."""
        as_kind(label, str, "words", "label: ")
        low, high = (None, None) if self.exact else map(column, np.moveaxis(np.atleast_2d(self.interval(name)), -1, 0))
        steps, values = np.atleast_1d(self.k), np.atleast_1d(self._get(name, self.values))
        finite = np.isfinite(steps)
        return Series(
            label or name, column(steps[finite]), column(values[finite]), low, high,
            role="exact" if self.exact else "simulated", method=f"{self.method}: {self.detail}", group=group,
        )  # fmt: skip

    def figure(self, quantity: str | None = None, bounds: bool = False) -> Curves | None:
        """The expected quantities against all finite k, or one of them; None for a single k.

        With `bounds`, also guarantees: every bound that applies to the quantity, or the smallest bound at each k where
        several quantities are shown.

        >>> import forgetting as fg
        >>> e = fg.expect(fg.families.two_lines(0.5), fg.orderings.WithReplacement(), [1, 10, 100])
        >>> [curve.label or curve.name for curve in e.figure(bounds=True).series][:3]
        ['loss', 'forgetting', 'guarantee, loss: last iterate at rate 1/k, with a spectral gap']
        """
        shown = [name for name, value in self.values.items() if np.ndim(value) == np.ndim(self.k)]
        if quantity is not None:
            self._get(quantity, self.values)
            shown = [name for name in shown if name == quantity]
        if np.sum(np.isfinite(self.k)) < 2 or not shown:
            return None
        curves = tuple(self.series(name, group=place) for place, name in enumerate(shown))
        if as_flag(bounds, "bounds"):
            (bound_curves,) = _bound_curves
            curves += bound_curves(self, shown)
        positive = all(value is None or not value < 0 for curve in curves for value in curve.y)
        quantity = shown[0] if len(shown) == 1 else "value"
        title = "Difference" if self.ordering is None else f"Expected values, {self.ordering.in_words}"
        return Curves("expected", title, "", "k, tasks learned", f"expected {quantity}", curves, ylog=positive)

    def __str__(self) -> str:
        steps = np.atleast_1d(self.k)
        columns = [["k", *(f"{k:.0f}" for k in steps)]]
        for name, value in self.values.items():
            if np.ndim(value) == np.ndim(self.k):
                ends = () if self.exact else np.moveaxis(self.interval(name), -1, 0)
                columns.append([name, *_cells(value, *ends)])
                if name in undecided_means(self):
                    columns.append([f"median {name}", *_cells(*self.median(name))])
        if len(steps) > SHOWN:
            columns = [[*column[:SHOWN], "..." if column[0] == "k" else "", column[-1]] for column in columns]
        unit = [f"losses: {self.unit}"] if self.unit else []
        table = columns_text(columns, sum(max(map(len, column)) + 2 for column in columns))
        return "\n".join(
            [self.headline, *unit, table, *accuracy(self), f"method: {self.method}, {self.detail}"]
            + [f"note: {note}" for note in self.notes]
        )


#: the bounds on the quantities of an expectation as curves; the package sets it, because bounds lie above this layer
BoundCurves = Callable[[Expectation, Sequence[str]], tuple[Series, ...]]
_bound_curves: list[BoundCurves] = []


def use_bound_curves(curves: BoundCurves) -> None:
    """Give `Expectation.figure` the function that computes the bounds that it draws."""
    _bound_curves[:] = [curves]


def accuracy(result: Expectation) -> list[str]:
    """The accuracy of the values, in sentences: rounding errors of exact ones, the meaning of simulated intervals.

    >>> import forgetting as fg
    >>> e = fg.expect(fg.families.orthogonal(2), fg.orderings.WithReplacement(), 1, quantities=("loss", "regret"))
    >>> accuracy(e)
    ['relative rounding error at most 1e-15']
    """
    if not result.exact:
        return promises(result)
    if not result.uncertainty:
        return []
    worst = {}
    for name, uncertainty in result.uncertainty.items():
        value, doubt = np.abs(np.ravel(result.values[name])), np.ravel(uncertainty)
        told = np.isfinite(value) & (value > 0)
        with np.errstate(over="ignore"):
            worst[name] = float(np.max(doubt[told] / value[told], initial=0.0))
    if all(share <= 1e-15 for share in worst.values()):
        return ["relative rounding error at most 1e-15"]
    how_much = "about" if result.estimated else "at most"
    shares = ", ".join(f"{share:.1g} ({name})" for name, share in worst.items())
    return [f"relative rounding error {how_much} {shares}"]


def promises(result: Expectation) -> list[str]:
    """The meaning of the intervals of simulated means, and the means that they leave undecided, in sentences.

    Normal approximations are left out: the engine has a note on them.
    """
    lines = []
    if result.ranges:
        ranges = ", ".join(f"{name} in [{low:.4g}, {high:.4g}]" for name, (low, high) in result.ranges.items())
        lines.append(
            f"each interval holds with probability at least {result.confidence:g}, for any distribution of {ranges}"
        )
    first = undecided_means(result)
    for k in sorted(set(first.values())):
        names = " and ".join(name for name in first if first[name] == k)
        lines.append(
            f"{names} from k = {k}: the interval of the mean says little, since rare large values may decide it; the "
            "median decides"
        )
    return lines


def undecided_means(result: Expectation) -> dict[str, int]:
    """The quantities whose mean has a useless interval that holds for any distribution, and the least such k.

    >>> import forgetting as fg
    >>> lines = fg.families.two_lines(np.pi / 3)
    >>> undecided_means(fg.expect(lines, fg.orderings.WithReplacement(), [2, 100], method="monte-carlo", runs=512))
    {'loss': 100, 'forgetting': 100}
    """
    least = {}
    for name in result.ranges:
        values, intervals = np.asarray(result.values[name]), result.intervals[name]
        useless = is_useless(values, intervals, result.quantiles[name]).reshape(np.size(result.k), -1).any(axis=1)
        if useless.any():
            least[name] = int(np.min(np.atleast_1d(result.k)[useless]))
    return least


def _cells(values: Any, low: Any = None, high: Any = None) -> list[str]:
    """One value at each k as text, with its interval if there is one."""
    if low is None or high is None:
        return [f"{value:.6g}" for value in np.atleast_1d(values)]
    triples = zip(*map(np.atleast_1d, (values, low, high)), strict=True)
    return [f"{value:.3g} [{least:.2g}, {most:.2g}]" for value, least, most in triples]


@dataclass(eq=False)
class Outcome:
    """The values that an engine gives at the sorted steps of a request; the fields are those of `Expectation`.

    Without intervals both ends of each equal the value, as for exact engines.
    """

    detail: str
    values: Values
    uncertainty: Values = field(default_factory=dict)
    intervals: Values = field(default_factory=dict)
    confidence: float = 1.0
    runs: int = 0
    notes: tuple[str, ...] = ()
    estimated: bool = False
    quantiles: Values = field(default_factory=dict)
    ranges: dict[str, Range] = field(default_factory=dict)
    seed: int | None = None
    heading: str = ALL_ORDERS

    def __post_init__(self) -> None:
        for name, value in self.values.items():
            self.intervals.setdefault(name, np.stack([value, value], axis=-1))

    def overflows(self, quantities: Sequence[Quantity], steps: IntArray) -> bool:
        """Whether a value is infinite, or NaN as a difference of such; a mean over no steps is NaN as well."""
        for quantity in quantities:
            values = self.values[quantity.name]
            odd = quantity.quadratic and not look_ahead(quantity.terms()) and np.isnan(values[steps > 0]).any()
            if odd or np.isinf(values).any() or np.isinf(self.uncertainty.get(quantity.name, 0.0)).any():
                return True
        return False

    def build(
        self,
        method: str,
        quantities: Sequence[Quantity],
        steps: IntArray,
        scalar: bool,
        order: IntArray,
        unit: str,
        **source: Any,
    ) -> Expectation:
        """The result for steps in the order, and of the shape, in which the caller gave them.

        `source` are the fields of `Expectation` that hold the arguments of the call.
        """
        notes = list(self.notes)
        means = [quantity.name for quantity in quantities if quantity.needs_steps]
        if means and not steps.all():
            notes.append(f"{' and '.join(means)} at k = 0: a mean over no steps, nan")
        for name in (quantity.name for quantity in quantities if look_ahead(quantity.terms())):
            ended = steps[np.isnan(self.values[name][order])]
            if ended.size:
                notes.append(f"{name} at k = {ended.min()}: no task comes next, nan")

        def shape(table: Values) -> dict[str, Any]:
            picked = {name: value[order] for name, value in table.items()}
            if not scalar:
                return picked
            return {name: value[0] if value.ndim > 1 else float(value[0]) for name, value in picked.items()}

        return Expectation(
            k=steps_shown(steps)[0].item() if scalar else steps_shown(steps),
            method=method,
            detail=self.detail,
            values=shape(self.values),
            intervals=shape(self.intervals),
            uncertainty=shape(self.uncertainty),
            confidence=self.confidence,
            runs=self.runs,
            notes=tuple(notes),
            estimated=self.estimated,
            quantiles=shape(self.quantiles),
            ranges=dict(self.ranges),
            seed=self.seed,
            heading=self.heading,
            unit=unit if any(t.form is LOSS and t.average != "error" for q in quantities for t in q.terms()) else "",
            **source,
        )
