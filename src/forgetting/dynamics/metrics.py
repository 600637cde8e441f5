"""Forgetting and regret as the paper defines them, and the metrics of continual-learning libraries.

`paper_forgetting` and `paper_regret` use losses along a run. The other functions use a matrix R[step, task] of any
performance measure: row i is the evaluation after the i-th task of `order` was learned, NaN where a task was not
evaluated. Without `order`, tasks are learned in the order of their columns, one a row; R may have one more row then,
the evaluation before anything was learned, which comes first (with an order, say `before=True`), and a `DataWarning`
says if rows seem to be shifted by one, or to be tasks. Tasks may come more than once. -1 in `order` is a step that
learned no task (an ordering that skips a suspect task): the means of the paper are over the steps that learned a task,
and the other functions leave out the row.

Libraries use the same words for different formulas. `conventions` is the table of them, and `convention="mammoth"` is
the formula of that library.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, IntArray, any_array, as_flag, as_index, as_word, numbers
from forgetting.core.names import only
from forgetting.core.numerical import quietly
from forgetting.dynamics.matrix_doubts import doubts_of
from forgetting.errors import DataWarning, InvalidInputError
from forgetting.orderings.base import NO_UPDATE
from forgetting.results import Shown

__all__ = [
    "Convention",
    "Conventions",
    "average_accuracy",
    "average_incremental",
    "backward_transfer",
    "conventions",
    "forgetting",
    "forward_transfer",
    "paper_forgetting",
    "paper_regret",
]
__dir__ = only(__all__)


@quietly()
def paper_forgetting(order: Any, loss_matrix: Any, learned: Any = None) -> Array:
    """F(k) = 1/k sum_{t<=k} (L_{tau(t)}(w_k) - L_{tau(t)}(w_t)) for k = 1..K (`def:forgetting`).

    Args:
        order: K tasks; -1 for a step that learned none: means are over the other steps, 0 before the first of them.
        loss_matrix: K x T; row k - 1 holds the losses of all tasks at w_k.
        learned: K losses L_{tau(t)}(w_t); read off the matrix if left out.

    >>> paper_forgetting([0, 1], [[0.0, 3.0], [0.5, 0.0]])
    array([0.  , 0.25])
    """
    losses = numbers(loss_matrix, "loss_matrix")
    if losses.ndim != 2:
        raise InvalidInputError(f"loss_matrix: expected one row per step and one column per task, got {losses.shape}")
    tasks = as_index(order, losses.shape[1], "order", least=NO_UPDATE)
    if len(losses) != len(tasks):
        raise InvalidInputError(f"{len(tasks)} tasks in the order, but {len(losses)} rows in the loss matrix")
    steps, updates = np.arange(len(tasks)), tasks != NO_UPDATE
    visits = np.zeros_like(losses)
    visits[steps[updates], tasks[updates]] = 1
    after = losses[steps, tasks] if learned is None else numbers(learned, "learned", shape=tasks.shape)
    seen = np.cumsum(visits, axis=0)
    in_sample: Array = np.sum(np.where(seen > 0, seen * losses, 0.0), axis=1)  # tasks not yet visited may be NaN
    return np.asarray((in_sample - np.cumsum(np.where(updates, after, 0.0))) / visits_so_far(tasks))


@quietly()
def paper_regret(before: Any, order: Any = None) -> Array:
    """1/k sum_{t<=k} L_{tau(t)}(w_{t-1}) for k = 1..K: the loss of each iterate on the next task.

    Args:
        before: K losses, or K losses for each of several runs along the last axis.
        order: tasks, of the same shape; with -1 in it the mean is over the other steps, 0 before the first of them.

    >>> paper_regret([1.0, 0.0, 2.0]), paper_regret([1.0, 0.0, 2.0], order=[0, -1, 1])
    (array([1. , 0.5, 1. ]), array([1. , 1. , 1.5]))
    """
    losses = numbers(before, "before")
    if losses.ndim == 0:
        raise InvalidInputError("before: expected the losses of several steps, got one number")
    if order is None:
        return np.cumsum(losses, axis=-1) / np.arange(1, losses.shape[-1] + 1)
    tasks = any_array(order, "order")
    if tasks.shape != losses.shape or tasks.dtype.kind not in "iu":
        raise InvalidInputError(f"order: expected a task for each loss, got {tasks.dtype} of shape {tasks.shape}")
    return np.asarray(np.cumsum(np.where(tasks == NO_UPDATE, 0.0, losses), axis=-1) / visits_so_far(tasks))


def visits_so_far(order: IntArray) -> IntArray:
    """The number of the first t steps that learned a task, for t = 1..k along the last axis; 1 where none did.

    >>> visits_so_far(np.array([-1, 0, -1, 2])).tolist()
    [1, 1, 1, 2]
    """
    return np.asarray(np.maximum(np.cumsum(order != NO_UPDATE, axis=-1), 1))


# ----------------------------------------------------------------------------------------------- matrices of accuracies

#: whether the best performance of a task is since the start or since it was learned, how many rows before the last the
#: rows end that it is from (None: where the task was learned), and whether tasks learned in the last row count
_FORGETTING: dict[str, tuple[str, int | None, bool]] = {
    "first": ("learned", None, True),
    "chaudhry": ("start", 1, False),
    "max": ("learned", 0, True),
    "avalanche": ("learned", None, False),
    "continuum": ("learned", 1, False),
    "continuum_1.2.7": ("learned", 2, False),
    "mammoth": ("start", 0, False),
    "pycil": ("learned", 0, False),
}
#: whether the last row is compared with that right after learning, or all later ones; how many of these count as 0; and
#: whether the mean is over the tasks that have later rows
_BACKWARD = {
    "gem": ("last", 0, True),
    "diaz": ("later", 0, True),
    "avalanche": ("last", 0, True),
    "continuum": ("later", 0, True),
    "continuum_1.2.7": ("later", 1, True),
    "mammoth": ("last", 0, True),
    "gem_code": ("last", 0, False),
}
#: the rows that count, whether a baseline is subtracted, and whether the mean is over the tasks that have such rows
_FORWARD = {
    "gem": ("previous", True, True),
    "diaz": ("earlier", False, True),
    "avalanche": ("previous", True, True),
    "continuum": ("previous", False, True),
    "continuum_1.2.7": ("later", False, True),
    "mammoth": ("previous", True, True),
    "gem_code": ("previous", True, False),
}
_INCREMENTAL = ("icarl", "diaz")
#: formulas of libraries and of GEM's code, which know each task once
_ONCE = {"avalanche", "continuum", "continuum_1.2.7", "mammoth", "pycil", "gem_code"}


@quietly()
def average_accuracy(R: Any, order: Any = None, *, before: bool | None = None) -> float:
    """The mean performance in the last row, over the tasks that were learned (Lopez-Paz and Ranzato 2017).

    >>> round(average_accuracy([[0.9, 0.1], [0.6, 0.8]]), 12)
    0.7
    """
    table = _Table.of(R, order, before)
    return float(np.mean(table.values[-1, list(table.first)]))


@quietly()
def average_incremental(
    R: Any, order: Any = None, convention: str = "icarl", *, before: bool | None = None, weights: Any = None
) -> float:
    """The mean performance of the tasks learned so far, over all rows.

    - "icarl": the mean over rows of the mean over the tasks learned so far (Rebuffi et al. 2017).
    - "diaz": the mean over all pairs of a row and a task learned so far, A of Diaz-Rodriguez et al. (2018); later rows,
      which have more tasks, count more.

    PyCIL, PILOT and Continuum print accuracies over all test rows of the tasks learned so far: give the numbers of
    test rows as `weights` where tasks have different numbers.

    >>> average_incremental([[0.9, 0.1], [0.6, 0.8]]).__round__(12)
    0.8
    >>> average_incremental([[0.9, 0.1], [0.6, 0.8]], weights=[100, 300]).__round__(12)
    0.825
    """
    as_word(convention, _INCREMENTAL, "convention")
    table = _Table.of(R, order, before)
    values = table.values
    share = np.ones(values.shape[1]) if weights is None else numbers(weights, "weights")
    if share.shape != (values.shape[1],) or not (np.isfinite(share) & (share > 0)).all():
        raise InvalidInputError(
            f"weights: expected a positive number of test rows for each of {values.shape[1]} tasks, got {weights!r:.60}"
        )
    rows = np.arange(len(values))[:, None]
    known = rows >= np.array([table.first.get(task, len(values)) for task in range(values.shape[1])])
    if convention == "diaz":
        return float(np.mean(values[known]))
    return float(np.mean([np.average(row[seen], weights=share[seen]) for row, seen in zip(values, known, strict=True)]))


@quietly()
def forgetting(
    R: Any,
    order: Any = None,
    convention: str = "first",
    *,
    before: bool | None = None,
    higher_is_better: bool = True,
) -> Array:
    """The performance that each task has lost by the last row; NaN for tasks that were never learned.

    - "first": performance right after the task was first learned, minus performance in the last row.
    - "chaudhry": best performance before the last row, minus performance in the last row; NaN for a task learned only
      in the last row (Chaudhry et al. 2018, where each task comes once).
    - "max": best performance since the task was first learned, including the last row, minus performance in the last
      row: never negative.
    - "avalanche", "continuum", "continuum_1.2.7", "mammoth", "pycil" (and PILOT): what these libraries print is the
      mean over the tasks that are not NaN; see `conventions`.

    Average with `np.nanmean`. For losses set `higher_is_better=False`. The row before learning is no row of R here.

    >>> R = [[0.9, 0.1], [0.6, 0.8]]
    >>> forgetting(R).round(12), forgetting(R, convention="chaudhry").round(12)
    (array([0.3, 0. ]), array([0.3, nan]))
    """
    begin, lag, newest = _FORGETTING[as_word(convention, _FORGETTING, "convention")]
    table = _Table.of(R, order, before, convention)
    sign = 1.0 if as_flag(higher_is_better, "higher_is_better") else -1.0
    values = sign * table.values
    last = len(values) - 1
    result = np.full(values.shape[1], np.nan)
    for task, start in table.first.items():
        if newest or start < last:
            stop = start if lag is None else last - lag
            best = _best(values[start if begin == "learned" else 0 : stop + 1, task])
            result[task] = best - values[last, task] if stop >= start else 0.0
    return result


@quietly()
def backward_transfer(R: Any, order: Any = None, convention: str = "gem", *, before: bool | None = None) -> float:
    """The influence of later learning on earlier tasks; negative is forgetting (higher performance is better).

    - "gem": mean over tasks learned before the last row of (performance in the last row - performance right after the
      task was first learned) (Lopez-Paz and Ranzato 2017).
    - "diaz": as "gem", with all rows after the task was first learned in place of the last row (Diaz-Rodriguez et al.
      2018).
    - "avalanche", "mammoth": as "gem". "continuum": as "diaz". "continuum_1.2.7": the row right after a task counts
      as 0. "gem_code": the code published with GEM, whose mean is over all T tasks, the last one with 0.

    >>> R = [[0.9, 0.1], [0.6, 0.8]]
    >>> round(backward_transfer(R), 12), round(backward_transfer([[0.5, 0.5], *R]), 12)    # a row before learning
    (-0.3, -0.3)
    """
    which, skipped, others = _BACKWARD[as_word(convention, _BACKWARD, "convention")]
    table = _Table.of(R, order, before, convention)
    values = table.values
    terms: list[float] = []
    for task, start in table.first.items():
        change = (values[start + 1 :, task] if which == "later" else values[-1:, task]) - values[start, task]
        change[:skipped] = 0.0
        if not others or start < len(values) - 1:
            terms.extend(change.tolist())
    return _mean(terms)


@quietly()
def forward_transfer(
    R: Any, order: Any = None, convention: str = "gem", *, baseline: Any = None, before: bool | None = None
) -> float:
    """The influence of learning on tasks not yet learned (higher performance is better).

    - "gem": mean over tasks first learned after the first row of (performance just before the task was first learned -
      baseline); `baseline` holds the T performances of the untrained model, which the row before learning has, too
      (Lopez-Paz and Ranzato 2017).
    - "diaz": mean performance over all rows before the task was first learned (Diaz-Rodriguez et al. 2018).
    - "avalanche", "mammoth": as "gem". "continuum": as "gem" without a baseline. "continuum_1.2.7": the mean over the
      rows after a task was learned. "gem_code": the code published with GEM, whose mean is over all T tasks, the first
      one with 0.

    >>> forward_transfer([[0.9, 0.3], [0.6, 0.8]], baseline=[0.1, 0.1]).__round__(12)
    0.2
    >>> forward_transfer([[0.1, 0.1], [0.9, 0.3], [0.6, 0.8]]).__round__(12)
    0.2
    """
    which, subtracts, others = _FORWARD[as_word(convention, _FORWARD, "convention")]
    table = _Table.of(R, order, before, convention)
    values = table.values
    if baseline is not None and table.start is not None:
        raise InvalidInputError(
            "R has the row before learning, which is the baseline; leave out baseline=, or that row"
        )
    if subtracts and baseline is None and table.start is None:
        raise InvalidInputError(
            f"the {convention!r} forward transfer needs baseline=, the performances of the untrained model, or the row "
            "before learning as the first of R"
        )
    base = np.zeros(values.shape[1])
    if subtracts:
        base = table.start if table.start is not None else numbers(baseline, "baseline")
    if base.shape != (values.shape[1],):
        raise InvalidInputError(f"baseline: expected one value for each of {values.shape[1]} tasks, got {base.shape}")
    terms: list[float] = []
    for task, start in table.first.items():
        begin, end = {"earlier": (0, start), "previous": (max(start - 1, 0), start), "later": (start + 1, None)}[which]
        terms.extend((values[begin:end, task] - base[task]).tolist() if start or others else [0.0])
    return _mean(terms)


@dataclass(frozen=True)
class _Table:
    """A checked matrix: its rows after learning, the row in which each task was first learned, the row before."""

    values: Array
    first: Mapping[int, int]
    start: Array | None

    @classmethod
    def of(cls, R: Any, order: Any, before: bool | None, convention: str = "") -> _Table:
        if getattr(R, "audited_as", None) is not None:  # AccuracyMatrices, which may have many runs
            raise InvalidInputError(
                "R: accuracies of runs; fg.audit(R) has all metrics, and a metric takes one run: R.values[0] with "
                "order=R.orders[0] if there are orders"
            )
        values = numbers(R, "R")
        if values.ndim != 2 or values.size == 0:
            raise InvalidInputError(f"R must be a matrix of steps x tasks, got shape {values.shape}")
        count, T = values.shape
        has_start = as_flag(before, "before") if before is not None else order is None and count == T + 1
        start, values = (values[0], values[1:]) if has_start else (None, values)
        if order is None:
            _check_square(values, start)
            tasks = np.arange(T)
        else:
            tasks = as_index(order, T, "order", least=NO_UPDATE)
        if len(tasks) != len(values):
            hint = "; before=True says that the first row is from before learning" if count == len(tasks) + 1 else ""
            raise InvalidInputError(
                f"R has {count} rows, but the order has {len(tasks)} tasks; give a row per step{hint}"
            )
        values, tasks = values[tasks != NO_UPDATE], tasks[tasks != NO_UPDATE]
        if not len(tasks):
            raise InvalidInputError("order: no step learned a task (all are -1), so that there is nothing to measure")
        first: dict[int, int] = {}
        for row, task in enumerate(tasks.tolist()):
            if task in first and convention in _ONCE:
                raise InvalidInputError(
                    f"the convention {convention!r} is for tasks that are learned once, but task {task} is learned in "
                    f"rows {first[task]} and {row}; use 'first', 'max', 'gem' or 'diaz'"
                )
            first.setdefault(task, row)
        return cls(values, first, start)


def _check_square(values: Array, start: Array | None) -> None:
    """Raise, or warn, where a matrix without an order is not one whose i-th row comes after task i was learned."""
    count, T = values.shape
    if count != T:
        turned = " (tasks x steps? then transpose it)" if count in (T - 1, T - 2) and start is None else ""
        raise InvalidInputError(
            f"R has {count + (start is not None)} rows and {T} columns{turned}: without an order it needs a row after "
            f"each task, {T}, and may have one from before learning first; give order= for another sequence of tasks"
        )
    holes = np.flatnonzero(np.isnan(np.diag(values)))
    if holes.size:
        task = int(holes[0])
        raise InvalidInputError(
            f"task {task} was not evaluated in row {task}, right after it was learned (R[{task}, {task}] is nan); give "
            "order= if tasks were learned in another order, and the last row, too, if rows come before their tasks"
        )
    for doubt in doubts_of(values[None], None, None if start is None else start[None], any_measure=True):
        warnings.warn(f"R: {doubt}", DataWarning, stacklevel=5)  # at the call of the metric


def _best(column: Array) -> float:
    seen = column[~np.isnan(column)]
    return float(seen.max()) if seen.size else float("nan")


def _mean(terms: list[float]) -> float:
    seen = [term for term in terms if not np.isnan(term)]
    return float(np.mean(seen)) if seen else float("nan")


# -------------------------------------------------------------------------------------------- the formulas of libraries


@dataclass(frozen=True)
class Convention:
    """A number that a library or a paper gives for a matrix of accuracies.

    Attributes:
        library: the library or the paper, with the version or the commit that was read.
        theirs: its name for the number.
        formula: for T tasks that are learned once, in the order of the columns 1 to T: R[i, j] is the performance on
            task j after task i, b[j] that before learning, n[j] the number of test rows of task j.
        quantity, word: the function of this module, and its `convention`; the mean over tasks if it gives several.
        source: the function or the equation.
        value: the number for a matrix; None without one, or if it needs what was not given.
    """

    library: str
    theirs: str
    formula: str
    quantity: str
    word: str
    source: str
    value: float | None = None


_AVALANCHE, _CONTINUUM, _GEM = "Avalanche 0.6.0", "Continuum 43ba009", "Lopez-Paz and Ranzato 2017"
_MAMMOTH, _PYCIL = "Mammoth e75a491", "PyCIL 87cc411, PILOT 2647455"
_LAST, _BEST, _TRAINER = "mean over j < T of R[T, j] - R[j, j]", "mean over j < T of max over ", "trainer.py, _train"
_WEIGHTED = "mean over i of sum over j <= i of n[j] R[i, j] / sum over j <= i of n[j]"
_FORMULAS = tuple(
    Convention(*row)
    for row in (
        (_GEM, "ACC", "mean over j of R[T, j]", "average_accuracy", "", "equation 2"),
        (_GEM, "BWT", _LAST, "backward_transfer", "gem", "equation 3"),
        (_GEM, "FWT", "mean over j > 1 of R[j - 1, j] - b[j]", "forward_transfer", "gem", "equation 4"),
        ("GEM's code 34c6b8e", "Backward", "1/T sum over j of R[T, j] - R[j, j]", "backward_transfer", "gem_code",
         "metrics/metrics.py, confusion_matrix"),
        ("GEM's code 34c6b8e", "Forward", "1/T sum over j > 1 of R[j - 1, j] - b[j]", "forward_transfer", "gem_code",
         "metrics/metrics.py, confusion_matrix"),
        ("Chaudhry et al. 2018", "F_T", _BEST + "i < T of R[i, j], minus R[T, j]", "forgetting", "chaudhry",
         "equation 3"),
        ("Diaz-Rodriguez et al. 2018", "A", "mean over i >= j of R[i, j]", "average_incremental", "diaz", "section 3"),
        ("Diaz-Rodriguez et al. 2018", "BWT", "mean over i > j of R[i, j] - R[j, j]", "backward_transfer", "diaz",
         "section 3"),
        ("Diaz-Rodriguez et al. 2018", "FWT", "mean over i < j of R[i, j]", "forward_transfer", "diaz", "section 3"),
        (_AVALANCHE, "StreamForgetting", "mean over j < T of R[j, j] - R[T, j]", "forgetting", "avalanche",
         "evaluation/metrics/forgetting_bwt.py"),
        (_AVALANCHE, "StreamBWT", _LAST, "backward_transfer", "avalanche", "evaluation/metrics/forgetting_bwt.py"),
        (_AVALANCHE, "StreamForwardTransfer", "mean over j > 1 of R[j - 1, j] - b[j]", "forward_transfer", "avalanche",
         "evaluation/metrics/forward_transfer.py"),
        (_MAMMOTH, "accmean_task of the last task", "mean over j of R[T, j]", "average_accuracy", "",
         "utils/loggers.py, print_mean_accuracy"),
        (_MAMMOTH, "backward_transfer", _LAST, "backward_transfer", "mammoth", "utils/metrics.py"),
        (_MAMMOTH, "forward_transfer", "mean over j > 1 of R[j - 1, j] - b[j]", "forward_transfer", "mammoth",
         "utils/metrics.py"),
        (_MAMMOTH, "forgetting", _BEST + "all i of R[i, j], minus R[T, j]", "forgetting", "mammoth",
         "utils/metrics.py"),
        (_PYCIL, "Average Accuracy", _WEIGHTED, "average_incremental", "icarl", _TRAINER),
        (_PYCIL, "Forgetting", _BEST + "i >= j of R[i, j], minus R[T, j]", "forgetting", "pycil", _TRAINER),
        (_CONTINUUM, "average_incremental_accuracy", _WEIGHTED, "average_incremental", "icarl", "metrics/logger.py"),
        (_CONTINUUM, "accuracy_A", "mean over i >= j of R[i, j]", "average_incremental", "diaz", "metrics/metrics.py"),
        (_CONTINUUM, "backward_transfer", "mean over i > j of R[i, j] - R[j, j]", "backward_transfer", "continuum",
         "metrics/metrics.py"),
        (_CONTINUUM, "positive_backward_transfer", "max(backward_transfer, 0)", "backward_transfer", "continuum",
         "metrics/metrics.py"),
        (_CONTINUUM, "remembering", "1 - |min(backward_transfer, 0)|", "backward_transfer", "continuum",
         "metrics/metrics.py"),
        (_CONTINUUM, "forward_transfer", "mean over j > 1 of R[j - 1, j]", "forward_transfer", "continuum",
         "metrics/metrics.py"),
        (_CONTINUUM, "forgetting", _BEST + "j <= i < T of R[i, j], minus R[T, j]", "forgetting", "continuum",
         "metrics/metrics.py"),
        ("Continuum 1.2.7", "backward_transfer", "2/(T(T - 1)) sum over i > j + 1 of R[i, j] - R[j, j]",
         "backward_transfer", "continuum_1.2.7", "metrics/metrics.py"),
        ("Continuum 1.2.7", "forward_transfer", "mean over i > j of R[i, j]", "forward_transfer", "continuum_1.2.7",
         "metrics/metrics.py"),
        ("Continuum 1.2.7", "forgetting",
         "1/(T - 1) sum over j < T - 1 of max over j <= i < T - 1 of R[i, j], minus R[T, j]",
         "forgetting", "continuum_1.2.7", "metrics/metrics.py"),
    )
)  # fmt: skip
_OF_BACKWARD = {"positive_backward_transfer": lambda bwt: max(bwt, 0.0), "remembering": lambda bwt: 1 + min(bwt, 0.0)}


@dataclass(frozen=True, repr=False)
class Conventions(Shown):
    """The formulas of libraries and papers, a row each, with their values for a matrix if one was given."""

    rows: tuple[Convention, ...]

    @property
    def headline(self) -> str:
        return f"{len(self.rows)} numbers of libraries and papers for a matrix of accuracies R[step, task]"

    def _num_rows(self) -> int:
        return len(self.rows)

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Any]:
        names = ["library", "theirs", "formula", "value", *(("quantity", "word", "source") if full else ())]
        if not full and all(row.value is None for row in self.rows):
            names.remove("value")
        return {name: [getattr(self.rows[row], name) for row in rows] for name in names}


def conventions(
    R: Any = None, order: Any = None, *, before: bool | None = None, baseline: Any = None, weights: Any = None
) -> Conventions:
    """The formulas of Avalanche, Mammoth, PyCIL, PILOT and Continuum and of the papers, with their values for R.

    Args:
        R, order, before: as for the other functions. Continuum takes fractions, not per cent. Formulas of libraries
            have no value where a task comes twice, and no formula has one that needs what was not evaluated.
        baseline: the performances of the untrained model, for forward transfers; without them, or the row before
            learning, these have no value.
        weights: the numbers of test rows of the tasks; without them, tasks count equally.

    >>> table = conventions([[0.9, 0.2, 0.1], [0.7, 0.8, 0.3], [0.75, 0.6, 0.95]])
    >>> for row in table.rows:
    ...     if row.quantity == "backward_transfer":
    ...         print(f"{row.library}, {row.theirs}: {row.value:.3f}")
    Lopez-Paz and Ranzato 2017, BWT: -0.175
    GEM's code 34c6b8e, Backward: -0.117
    Diaz-Rodriguez et al. 2018, BWT: -0.183
    Avalanche 0.6.0, StreamBWT: -0.175
    Mammoth e75a491, backward_transfer: -0.175
    Continuum 43ba009, backward_transfer: -0.183
    Continuum 43ba009, positive_backward_transfer: 0.000
    Continuum 43ba009, remembering: 0.817
    Continuum 1.2.7, backward_transfer: -0.050
    """
    if R is None:
        return Conventions(_FORMULAS)
    table = _Table.of(R, order, before)
    values, T = table.values, table.values.shape[1]
    tasks = np.arange(T) if order is None else as_index(order, T, "order", least=NO_UPDATE)
    once = len(table.first) == len(values)
    seen = np.arange(len(values))[:, None] >= [table.first.get(task, len(values)) for task in range(T)]
    head = [] if table.start is None else [table.start]

    def value(row: Convention) -> float | None:
        holes = np.isnan(values) & (seen | (row.quantity == "forward_transfer"))
        found = {
            _value(row, np.vstack([*head, np.where(holes, fill, values)]), tasks[tasks != NO_UPDATE], bool(head),
                   baseline, weights)
            for fill in ((0.0, 1.0) if holes.any() else (0.0,))
        }  # fmt: skip
        return found.pop() if len(found) == 1 else None  # a number that depends on what was not evaluated is not known

    return Conventions(
        tuple(replace(row, value=value(row)) if once or row.word not in _ONCE else row for row in _FORMULAS)
    )


def _value(row: Convention, R: Array, order: IntArray, before: bool, baseline: Any, weights: Any) -> float | None:
    """The number of a row for a matrix, None if it needs a baseline that is not there or is not defined."""
    if row.quantity == "average_accuracy":
        value = average_accuracy(R, order, before=before)
    elif row.quantity == "average_incremental":
        value = average_incremental(
            R, order, row.word, before=before, weights=weights if row.formula == _WEIGHTED else None
        )
    elif row.quantity == "forgetting":
        value = _mean(forgetting(R, order, row.word, before=before).tolist())
    elif row.quantity == "backward_transfer":
        value = _OF_BACKWARD.get(row.theirs, float)(backward_transfer(R, order, row.word, before=before))
    elif _FORWARD[row.word][1] and baseline is None and not before:
        return None
    else:
        value = forward_transfer(R, order, row.word, before=before, baseline=baseline)
    return None if np.isnan(value) else value
