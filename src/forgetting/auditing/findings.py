"""Outliers among the tasks, and joint realizability of the tasks with ways to reach it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from forgetting.auditing.sources import RandomFeatures, apply_features, subsample_rows
from forgetting.core.arrays import Array
from forgetting.tasks import LinearTasks, RegressionTasks, prepare

__all__ = ["Fit", "Offer", "Outlier", "find_outliers", "measure_fit"]

TRIED = 1000  # the most features for which an offer is tried out
LARGEST = 2e6  # the most entries of all rows for which an intercept is tried
FACTOR = 3.0  # an outlier is at least this many times the typical value


@dataclass(frozen=True)
class Outlier:
    """A task that is far from the others in some measure.

    Attributes:
        task: the number of the task.
        measure: "norm", "forgotten" or "causes".
        value, typical: the value of the task, and the median over tasks.

    >>> Outlier(2, "norm", 50.0, 1.0).ratio
    50.0
    """

    task: int
    measure: str
    value: float
    typical: float

    @property
    def ratio(self) -> float:
        """The value divided by the typical value."""
        return self.value / self.typical if self.typical > 0 else float("inf")


@dataclass(frozen=True)
class Offer:
    """A way to make tasks jointly realizable: the number of rows per task and of random features (None: unchanged).

    `tried` says that this was tried with the seed of the audit, and works; otherwise it may work.

    >>> Offer(rows=12, features=None, tried=True).words
    'sub-sample to 12 rows a task (rows=12)'
    >>> Offer(rows=None, features=4000, tried=False).words
    'lift to 4000 random features (features=4000), which may be enough'
    """

    rows: int | None
    features: int | None
    tried: bool

    @property
    def words(self) -> str:
        """The offer as a phrase, with the options of `audit`."""
        doubt = "" if self.tried else ", which may be enough"
        few = f"sub-sample to {self.rows} row{'s' if self.rows != 1 else ''} a task"
        lift = f"lift to {self.features} random features"
        if self.features is None:
            return f"{few} (rows={self.rows}){doubt}"
        if self.rows is None:
            return f"{lift} (features={self.features}){doubt}"
        return f"{few} and {lift} (rows={self.rows}, features={self.features}){doubt}"


@dataclass(frozen=True)
class Fit:
    """Whether some w solves all tasks, and ways to make the tasks realizable.

    Attributes:
        holds, residual, tolerance: as in `RegressionTasks.realizability`.
        offenders: the tasks whose residual is above the tolerance.
        floor: the smallest mean loss of any w; None if that is not known.
        floor_with_intercept: the same with a column of ones, if there is none and it lowers the floor by half.
        start: the mean loss at the start.
        offers: ways to make the tasks realizable; empty if they are.
        message: the sentence of `RegressionTasks.realizability`.
    """

    holds: bool
    residual: float
    tolerance: float
    offenders: tuple[int, ...]
    floor: float | None
    start: float
    offers: tuple[Offer, ...]
    message: str
    floor_with_intercept: float | None = None


def find_outliers(measures: Mapping[str, Array], errors: Mapping[str, Array], floor: float) -> tuple[Outlier, ...]:
    """Tasks whose value is far above the median (for norms: also far below), if there are at least 4 tasks.

    An outlier is at least 3 times the median and 5 robust standard deviations (1.4826 times the median absolute
    deviation) away from the median. Norms are compared on a logarithmic scale. For the other measures, the value less
    several standard errors must also be above 30 % of the sum over tasks (or 10 times the mean, if that is less) and
    above `floor`. If more than a quarter of the tasks are outliers in a measure, none is reported.

    >>> values = np.array([1.0, 1.2, 0.9, 1.1, 40.0])
    >>> find_outliers({"norm": values}, {}, 0.0)
    (Outlier(task=4, measure='norm', value=40.0, typical=1.1),)
    """
    outliers: list[Outlier] = []
    for measure, values in measures.items():
        if len(values) < 4:
            continue
        typical = float(np.median(values))
        if measure == "norm":
            logs = np.log(np.maximum(values, 1e-300))
            away = np.abs(logs - np.median(logs))
            picked = away > max(np.log(FACTOR), _spread(logs))
        else:
            doubt = 2 + np.sqrt(2 * np.log(len(values)))  # above the expected largest of T standard normal numbers
            sure = values - doubt * errors.get(measure, 0.0)
            share = min(0.3, 10 / len(values)) * float(np.maximum(values, 0.0).sum())
            picked = (sure > typical + _spread(values)) & (sure > max(FACTOR * abs(typical), share, floor))
        if picked.sum() <= len(values) / 4:
            outliers += [
                Outlier(task, measure, float(values[task]), typical) for task in np.flatnonzero(picked).tolist()
            ]
    return tuple(outliers)


def _spread(values: Array) -> float:
    """Five robust standard deviations."""
    return 5.0 * 1.4826 * float(np.median(np.abs(values - np.median(values))))


def measure_fit(
    tasks: LinearTasks, w0: Array, seed: int = 0, given: LinearTasks | None = None, features: Any = None
) -> Fit:
    """Joint realizability of the tasks, the least mean loss of any w, and ways to make the tasks realizable.

    If the tasks were sub-sampled or mapped to features, `given` are the original tasks and `features` is the map; the
    offers are changes of the original tasks.

    >>> import forgetting as fg
    >>> tasks = fg.RegressionTasks([[[1.0, 0.0]], [[1.0, 0.0]], [[0.0, 1.0]]], [[1.0], [3.0], [0.0]])
    >>> fit = measure_fit(tasks, np.zeros(2))
    >>> fit.holds, fit.offenders, round(fit.floor, 12), round(fit.start, 12)
    (False, (0, 1), 0.333333333333, 1.666666666667)
    """
    geometry, realizability, data = tasks.geometry, tasks.realizability, (given or tasks).data
    floor = 0.0 if realizability.holds else _floor(tasks)
    return Fit(
        realizability.holds,
        realizability.residual,
        realizability.tolerance,
        tuple(np.flatnonzero(geometry.residuals[geometry.index] > realizability.tolerance).tolist()),
        floor,
        float(geometry.mean_losses(geometry.start(w0))),
        tuple(_offers(tasks, data, features, seed)) if data is not None and not realizability.holds else (),
        realizability.message,
        None if realizability.holds else _lower_floor(tasks, floor),
    )


def _floor(tasks: LinearTasks) -> float:
    """The least mean loss of any w."""
    geometry = tasks.geometry
    weights = geometry.sigma**2 * geometry.counts[geometry.owner] / geometry.num_tasks
    pull = (weights * geometry.targets) @ geometry.rows
    best: Array = np.linalg.lstsq(geometry.hessian, pull.T, rcond=None)[0].T.astype(np.float64)
    return float(geometry.mean_losses(best))


def _lower_floor(tasks: LinearTasks, floor: float) -> float | None:
    """The least mean loss with an intercept, if that is at most half of the floor."""
    if tasks.data is None or float(tasks.num_rows.sum()) * tasks.dim > LARGEST:
        return None
    lower = _floor(prepare(tasks, intercept=True))
    return lower if lower <= floor / 2 else None


def _offers(tasks: LinearTasks, given: RegressionTasks, features: Any, seed: int) -> Iterator[Offer]:
    """Offers of fewer rows, of more features, and of both; an offer that is cheap to try is made only if it works."""
    distinct = tasks.geometry.num_distinct
    rows = tasks.geometry.dim // distinct
    while rows > 0:
        fewer = subsample_rows(given, rows, seed)
        fewer = fewer if features is None else apply_features(fewer, features)
        if fewer.realizability.holds:
            yield Offer(rows, None, True)
            break
        # the sampled rows may have a smaller joint rank than all rows
        rows = min(rows - 1, fewer.rank_joint // distinct)
    first = np.unique(tasks.geometry.index, return_index=True)[1]
    total = int(given.num_rows[first].sum())
    if 2 * total > TRIED and 2 * total > tasks.dim:
        yield Offer(None, 2 * total, False)
    few = int(np.clip(TRIED // (2 * distinct), 1, 20))
    for offer in [Offer(None, 2 * total, True)] * (2 * total <= TRIED) + [Offer(few, 2 * few * distinct, True)]:
        if int(offer.features or 0) <= tasks.dim:  # the features would not raise the dimension
            continue
        smaller = given if offer.rows is None else subsample_rows(given, offer.rows, seed)
        if apply_features(smaller, RandomFeatures(int(offer.features or 0), seed=seed)).realizability.holds:
            yield offer
            return
