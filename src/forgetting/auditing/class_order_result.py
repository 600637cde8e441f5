"""The result of the audit of class orders: plain data, which shows itself, is saved and loaded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from forgetting.auditing.class_order_page import histogram, opening_of, report_of
from forgetting.auditing.class_scores import MEASURES
from forgetting.core.arrangements import OrderedPartitions
from forgetting.core.arrays import IntArray, as_number
from forgetting.errors import InvalidInputError, ProblemFileError
from forgetting.expectation.intervals import LEVELS
from forgetting.figures.items import Curves
from forgetting.report.document import Report
from forgetting.report.pages import ResultWithPage


@dataclass(frozen=True)
class FoundClassOrder:
    """A class order, what a measure of it is, and how accuracy goes along.

    Attributes:
        order: the classes, task after task; the sizes of the tasks are those of the audit.
        value: the measure.
        tied: how many of all class orders have this value; 1 where not all were listed.
        seen: after each task, the accuracy of all rows of the classes seen so far.
    """

    order: tuple[str, ...]
    value: float
    tied: int
    seen: tuple[float, ...]


@dataclass(frozen=True)
class ClassOrderMeasure:
    """The distribution of a measure over class orders; each has the same probability.

    Numbers are exact where all class orders were listed; then the ends of intervals are equal. Otherwise each interval
    holds with a probability of 99 %, whatever the distribution is.

    Attributes:
        name, meaning: such as "final accuracy", and what that is; accuracies are parts of 1.
        higher: whether more is better.
        mean, sd: the mean and the standard deviation over class orders.
        mean_interval, sd_interval: intervals around them.
        quantiles: (value, low, high) at 5, 25, 50, 75 and 95 %: the least value that this share of the class orders
            does not exceed, and an interval around that value.
        best, worst: the best and the worst class order that was tried.
        given: the value of the given class order; None if none was given.
        better: the share of the class orders that are better than the given one; None if none was given.
        edges, shares: a histogram: its least and its largest edge, and the share of class orders in each bar.
    """

    name: str
    meaning: str
    higher: bool
    mean: float
    mean_interval: tuple[float, float]
    sd: float
    sd_interval: tuple[float, float]
    quantiles: tuple[tuple[float, float, float], ...]
    best: FoundClassOrder
    worst: FoundClassOrder
    given: float | None
    better: float | None
    edges: tuple[float, float]
    shares: tuple[float, ...]

    def orders_needed(self, error: float) -> int:
        """The number of random class orders whose mean is within `error` of the mean over all, in 95 % of cases.

        n = (1.96 sd / error)^2 for independent draws, by the normal approximation of a mean. Where class orders were
        sampled, sd is itself an estimate, which `sd_interval` bounds.
        """
        return _needed(self.sd, as_number(error, "error", above=0))


def _needed(sd: float, error: float) -> int:
    """The number of draws whose mean is within the error in 95 % of cases.

    >>> _needed(0.02, 0.01), _needed(0.0, 0.01)
    (16, 1)
    """
    return max(1, math.ceil((1.959964 * sd / error) ** 2 - 1e-9))


@dataclass(frozen=True)
class FewSeeds:
    """What three random class orders say of the mean over all, as papers average them; widths are half widths.

    Attributes:
        measure: the measure.
        seeds: how many class orders are averaged: 3.
        t_covers, t_width: how often the t-interval at 95 % holds the mean, and its mean half width.
        sd_covers, sd_width: how often mean +- standard deviation holds the mean, and the mean standard deviation.
        halved: how often the standard deviation is less than half of that over all class orders.
        range_missed: the mean share of the range from the worst to the best class order that lies outside the three.
    """

    measure: str
    seeds: int
    t_covers: float
    t_width: float
    sd_covers: float
    sd_width: float
    halved: float
    range_missed: float


@dataclass(frozen=True)
class PairEffect:
    """Final accuracy of orders in which two classes share a task, less that of the others, as means.

    `interval` holds for all pairs of classes at once, with a probability of 99 %; it is the difference where all class
    orders were listed.
    """

    classes: tuple[str, str]
    difference: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class PlaceEffect:
    """Final accuracy of orders with a class in the first (last) task, less that of the others, as means.

    Intervals as in `PairEffect`, for all classes and both places at once.
    """

    name: str
    first: float
    first_interval: tuple[float, float]
    last: float
    last_interval: tuple[float, float]


@dataclass(frozen=True, repr=False)
class ClassOrderAudit(ResultWithPage):
    """The result of `fg.audit` of `ClassSplits`: plain data; `print` and `write_page("page.html")` show it.

    Attributes:
        title: the title of the pages.
        class_names, sizes: the classes, and the number of classes of each task.
        outputs: "all" or "task": which classes the outputs stand for, and among which predictions are.
        dim, rows, scored: the number of features, of learned rows, and of rows that accuracies are of.
        held_out: whether accuracies are of held-out rows; of the learned rows otherwise.
        scheme, seed: the scheme, and the seed of draws and of the search.
        drawn: the number of class orders that distributions are of.
        exact: whether these are all class orders.
        searched: the number of class orders that the search for the extremes tried besides; 0 if all were listed.
        measures: the distribution of each measure.
        given: the given class order, with its final accuracy; None if none was given.
        few: what three random class orders say of final and of average incremental accuracy.
        pairs: the effects of classes that share a task, the most harmful first; of many, the largest of either sign.
        places: the effects of classes in the first and in the last task.
    """

    kind = "class order audit"
    _unbounded = False

    title: str
    class_names: tuple[str, ...]
    sizes: tuple[int, ...]
    outputs: str
    dim: int
    rows: int
    scored: int
    held_out: bool
    scheme: str
    seed: int
    drawn: int
    exact: bool
    searched: int
    measures: tuple[ClassOrderMeasure, ...]
    given: FoundClassOrder | None
    few: tuple[FewSeeds, ...]
    pairs: tuple[PairEffect, ...]
    places: tuple[PlaceEffect, ...]

    @property
    def num_orders(self) -> int:
        """The number of class orders there are."""
        return OrderedPartitions(self.sizes).count

    @property
    def opening(self) -> tuple[str, ...]:
        """The sentences that open the pages: how much the numbers depend on the class order, and what to do."""
        return opening_of(self)

    @property
    def headline(self) -> str:
        return f"Audit of {self.title}"

    def measure(self, name: str) -> ClassOrderMeasure:
        """The measure of this name, such as "final accuracy"."""
        for measure in self.measures:
            if isinstance(name, str) and measure.name == name:
                return measure
        raise InvalidInputError(
            f"no measure {name!r:.80}; there are {'; '.join(known.name for known in self.measures)}"
        )

    def figure(self) -> Curves:
        """The distribution of the final accuracy over class orders."""
        return histogram(self)

    def _num_rows(self) -> int:
        return len(self.measures)

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Any]:
        chosen = [self.measures[row] for row in rows]
        columns: dict[str, Any] = {
            "measure": [measure.name for measure in chosen],
            "mean": [measure.mean for measure in chosen],
            "sd": [measure.sd for measure in chosen],
            "worst": [measure.worst.value for measure in chosen],
            "best": [measure.best.value for measure in chosen],
        }
        if full:
            for name, place in (("mean", 0), ("mean", 1), ("sd", 0), ("sd", 1)):
                ends = [getattr(measure, f"{name}_interval")[place] for measure in chosen]
                columns[f"{name}_{'high' if place else 'low'}"] = ends
            for level, quantile in zip(LEVELS, range(len(LEVELS)), strict=True):
                columns[f"quantile_{level:g}"] = [measure.quantiles[quantile][0] for measure in chosen]
        return columns

    def _remarks(self) -> tuple[str, ...]:
        return self.opening[:2]

    def _check(self) -> None:
        names = sorted(self.class_names)
        orders = [found for measure in self.measures for found in (measure.best, measure.worst)]
        for found in (*orders, *([] if self.given is None else [self.given])):
            if sorted(found.order) != names or len(found.seen) != len(self.sizes):
                raise ProblemFileError(f"a class order does not name each of {len(names)} classes once")
        if sum(self.sizes) != len(names) or min(self.sizes, default=0) < 1:
            raise ProblemFileError(f"tasks of {self.sizes!r:.80} classes, but there are {len(names)} classes")
        if [measure.name for measure in self.measures][:1] != [MEASURES[0].name]:
            raise ProblemFileError("there is no final accuracy")
        if any(len(measure.quantiles) != len(LEVELS) or not measure.shares for measure in self.measures):
            raise ProblemFileError("a measure without its quantiles or its histogram")
        numbers = [(measure.sd, *measure.sd_interval, *measure.shares) for measure in self.measures]
        if not all(0 <= number <= 1 for row in numbers for number in row):
            raise ProblemFileError("a standard deviation or a share of class orders is not between 0 and 1")
        if any(abs(edge) > 2 for measure in self.measures for edge in measure.edges):
            raise ProblemFileError("the edges of a histogram are no accuracies")
        if not {few.measure for few in self.few} <= {measure.name for measure in self.measures} or not self.few:
            raise ProblemFileError("what three class orders say is of no measure")

    def to_report(self) -> Report:
        return report_of(self)
