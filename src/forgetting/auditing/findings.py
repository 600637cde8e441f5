"""Findings about the tasks of an audit: degenerate cases, joint realizability and ways to reach it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from forgetting.auditing.preparation import Prepared, apply_features, subsample_rows
from forgetting.auditing.words import called
from forgetting.core.arrays import Array, IntArray
from forgetting.dynamics.loop import run
from forgetting.orderings import Explicit
from forgetting.schemes import Ridge, Scheme
from forgetting.tasks import LinearTasks, RandomFeatures, prepare

# ----------------------------------------------------------------------------------------------------- degenerate cases

LAMBDAS = (1e-2, 1e-1, 1.0, 10.0, 1e2, 1e3, 1e4)  # of ridge, tried where learning to convergence diverges
RISE = 1.0 + 1e-9  # a loss above this times the loss before learning has risen
TWICE = 2.0  # a loss that ends above this many times the loss before learning is said to diverge
EXPLAINED = 0.99  # only the last task matters if it explains this part of the differences between orders
LARGE = 10.0  # a task is far larger if its norm is this many times the median of the others,
SHARE = 0.5  # or if it has this part of the loss before learning, and
TIMES = 3.0  # this many times its fair share of the loss


@dataclass(frozen=True)
class Case:
    """A degenerate case.

    Attributes:
        kind: "one task", "zero labels", "same tasks", "last task", "nearly last task", "rises" or
            "large task".
        sentence: what there is, and what follows.

    >>> Case("one task", "There is one task.").kind
    'one task'
    """

    kind: str
    sentence: str


def find_cases(prepared: Prepared, last: float = 0.0) -> Iterator[Case]:
    """Yield the degenerate cases of these tasks, the most important first.

    `last` is the part of the differences between orders that the last task explains.

    >>> import forgetting as fg
    >>> from forgetting.auditing.preparation import Recipe, prepare_tasks
    >>> same = fg.families.repeated(fg.RegressionTasks([[[1.0, 0.0]]], [[2.0]]), 3)
    >>> [case.sentence for case in find_cases(prepare_tasks(same, Recipe()))]
    ['All 3 tasks are the same, so that there is no order to choose.']
    """
    linear, T, start = prepared.problem.linear, prepared.problem.num_tasks, prepared.start
    if T == 1:
        yield Case("one task", "There is one task, so that there is no order to choose.")
        return
    if start == 0:
        zero = linear is not None and not linear.geometry.label_norms.any()
        why = "All labels are zero" if zero else "The model before learning solves every task"
        yield Case("zero labels", f"{why}: nothing is learned, and nothing can be forgotten.")
        return
    if linear is None:
        return
    if linear.geometry.num_distinct == 1:
        yield Case("same tasks", f"All {T} tasks are the same, so that there is no order to choose.")
        return
    if prepared.scheme.solves_task and np.all(linear.ranks == linear.rank_joint):
        full = linear.rank_joint == linear.dim
        rank = f"its rows have rank {linear.rank_joint}, {'the dimension' if full else 'as have all tasks together'}"
        if linear.realizability.holds:
            says = "whichever comes first solves all tasks, and nothing is forgotten"
        else:
            says = "only the last task learned matters, and forgetting measures how different the tasks are"
        yield Case("last task", f"Each task alone determines the model ({rank}): {says}.")
    elif last >= EXPLAINED:
        says = "Only the last task learned matters here: which one it is explains"
        yield Case("nearly last task", f"{says} {100 * last:.1f} % of the differences between orders.")
    yield from _rises(prepared, linear)
    yield from _large_task(prepared, linear)


def last_task_share(orders: IntArray, values: Sequence[float]) -> float:
    """The part of the variance of the values of orders that the last task explains; 0 if nothing varies.

    >>> last_task_share(np.array([[0, 1, 2], [1, 0, 2], [1, 2, 0], [2, 1, 0]]), (1.0, 1.0, 3.0, 3.0))
    1.0
    """
    column, ends = np.asarray(values), orders[:, -1]
    total = float(np.var(column))
    if orders.shape[1] < 3 or total <= 1e-18 * float(np.max(column**2)):
        return 0.0
    within = sum(float(np.var(column[ends == task])) * float(np.mean(ends == task)) for task in np.unique(ends))
    return 1.0 - within / total


def _rises(prepared: Prepared, tasks: LinearTasks) -> Iterator[Case]:
    """Yield the case that the loss at the end of a pass is above the loss before learning."""
    scheme, start = prepared.scheme, prepared.start
    end = _end(prepared, tasks, scheme)
    if not end > RISE * start:
        return
    who = "each task to convergence (until its loss falls no further)" if scheme.solves_task else f"with {scheme}"
    worse = "far worse" if end > TWICE * start else "worse"
    losses = {lam: _end(prepared, tasks, Ridge(lam)) for lam in LAMBDAS}
    lam = min(losses, key=lambda key: losses[key])
    helps = losses[lam] < end
    below = "" if losses[lam] < start else ", which is still more than before learning"
    remedy = (
        f"; ridge regression towards the previous solution, with strength {lam:g}, takes it to "
        f"{_big(losses[lam])}{below} (scheme='ridge lam={lam:g}')"
    )
    yield Case(
        "rises",
        f"Learning {who} makes the model {worse} than no learning: one pass in the given order takes the mean loss "
        f"from {_big(start)} to {_big(end)}{remedy if helps else ''}.",
    )


def _end(prepared: Prepared, tasks: LinearTasks, scheme: Scheme) -> float:
    """The loss at the end of a pass in the given order."""
    given = prepared.given
    return float(run(tasks, Explicit(given), len(given), scheme, w0=prepared.w0, record_every=len(given)).losses[-1])


def _large_task(prepared: Prepared, tasks: LinearTasks) -> Iterator[Case]:
    """Yield the case of a task whose norm or loss is far above those of the others."""
    T, losses = tasks.num_tasks, tasks.task_losses(prepared.w0)
    norms = tasks.norms
    task = int(np.argmax(norms))
    others = float(np.median(np.delete(norms, task)))
    if others > 0 and norms[task] >= LARGE * others:
        marks = [f"its norm is {norms[task] / others:,.3g} times the median of the others"]
    else:
        marks, task = [], int(np.argmax(losses))
    share = float(losses[task]) / (T * prepared.start)
    if T > 2 and share >= max(SHARE, min(TIMES / T, 0.9)):
        marks.append(f"it has {100 * share:.0f} % of the loss before learning")
    if marks:
        longer = tasks.loss_kind == "sum" and tasks.num_rows[task] > 2 * np.median(tasks.num_rows)
        remedy = "use the mean loss, or rescale it" if longer else "check its units, or rescale it"
        yield Case(
            "large task",
            f"One task is far larger than the others, {called(tasks.names[task])} ({' and '.join(marks)}), and decides "
            f"most of what is measured: {remedy}.",
        )


def _big(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= value < 1e9 else f"{value:.4g}"


# -------------------------------------------------------------------------------------------------- joint realizability

TRIED = 1000  # the most features for which an offer is tried out
LARGEST = 2e6  # the most entries of all rows for which an intercept is tried


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


def measure_fit(prepared: Prepared) -> Fit:
    """Joint realizability of the tasks, the least mean loss of any w, and ways to make the tasks realizable.

    Residuals, the least loss and offers are known of linear tasks alone. Offers are changes of the tasks before they
    were prepared.

    >>> import forgetting as fg
    >>> from forgetting.auditing.preparation import Recipe, prepare_tasks
    >>> tasks = fg.RegressionTasks([[[1.0, 0.0]], [[1.0, 0.0]], [[0.0, 1.0]]], [[1.0], [3.0], [0.0]])
    >>> fit = measure_fit(prepare_tasks(tasks, Recipe()))
    >>> fit.holds, fit.offenders, round(fit.floor, 12), round(fit.start, 12)
    (False, (0, 1), 0.333333333333, 1.666666666667)
    """
    tasks, start = prepared.problem.linear, prepared.start
    if tasks is None:
        finding = prepared.problem.realizability
        holds = finding is not None and bool(finding.holds)
        message = "it is not known whether one model solves all tasks" if finding is None else finding.message
        return Fit(holds, 0.0, 0.0, (), 0.0 if holds else None, start, (), message)
    realizability, residuals = tasks.realizability, tasks.geometry.residuals[tasks.geometry.index]
    details = realizability.residual, realizability.tolerance
    offenders = tuple(np.flatnonzero(residuals > realizability.tolerance).tolist())
    if realizability.holds:
        return Fit(True, *details, offenders, 0.0, start, (), realizability.message)
    floor = _floor(tasks)
    offers = tuple(_offers(prepared, tasks))
    return Fit(False, *details, offenders, floor, start, offers, realizability.message, _lower_floor(tasks, floor))


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


def _offers(prepared: Prepared, tasks: LinearTasks) -> Iterator[Offer]:
    """Yield offers of fewer rows, more features, or both; those that are cheap to try are yielded only if they work."""
    source, features, seed = prepared.source.linear, prepared.features, prepared.seed
    given = None if source is None else source.data
    if given is None:
        return
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
