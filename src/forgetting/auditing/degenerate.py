"""Tasks on which an audit of orders says little, each recognised and said in a sentence, before everything else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.text import one_line
from forgetting.dynamics.loop import run
from forgetting.orderings import Explicit
from forgetting.schemes import Ridge, Scheme
from forgetting.tasks import LinearTasks, Problem

__all__ = ["Case", "find_cases", "last_task_share"]

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


def find_cases(
    problem: Problem, scheme: Scheme, w0: Array, given: IntArray, start: float, last: float = 0.0
) -> tuple[Case, ...]:
    """The degenerate cases that these tasks are, the most important first.

    `start` is the loss before learning; `last` is the part of the differences between orders that the last task
    explains.

    >>> import forgetting as fg
    >>> same = fg.families.repeated(fg.RegressionTasks([[[1.0, 0.0]]], [[2.0]]), 3)
    >>> [case.sentence for case in find_cases(same, fg.schemes.Kaczmarz(), np.zeros(2), np.arange(3), 2.0)]
    ['All 3 tasks are the same, so that there is no order to choose.']
    """
    return tuple(_cases(problem, scheme, w0, given, start, last))


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


def _cases(problem: Problem, scheme: Scheme, w0: Array, given: IntArray, start: float, last: float) -> Iterator[Case]:
    T, linear = problem.num_tasks, problem.linear
    if T == 1:
        yield Case("one task", "There is one task, so that there is no order to choose.")
        return
    if start == 0:
        zero = linear is not None and not linear.geometry.label_norms.any()
        why = "All labels are zero" if zero else "The start solves every task"
        yield Case("zero labels", f"{why}: nothing is learned, and nothing can be forgotten.")
        return
    if linear is None:
        return
    if linear.geometry.num_distinct == 1:
        yield Case("same tasks", f"All {T} tasks are the same, so that there is no order to choose.")
        return
    cases = list(_last_task(linear, scheme))
    if not cases and last >= EXPLAINED:
        says = "Only the last task learned matters here: which one it is explains"
        cases.append(Case("nearly last task", f"{says} {100 * last:.1f} % of the differences between orders."))
    yield from cases
    yield from _rises(linear, scheme, w0, given, start)
    yield from _large_task(linear, w0, start)


def _last_task(tasks: LinearTasks, scheme: Scheme) -> Iterator[Case]:
    """Every task alone determines w on the joint row space."""
    if not (scheme.solves_task and np.all(tasks.ranks == tasks.rank_joint)):
        return
    rank = f"rank {tasks.rank_joint}" + (" = d" if tasks.rank_joint == tasks.dim else ", that of all tasks together")
    if tasks.realizability.holds:
        says = "whichever comes first solves all tasks, and nothing is forgotten"
    else:
        says = "only the last task learned matters, and forgetting measures how different the tasks are"
    yield Case("last task", f"Each task alone determines w ({rank}): {says}.")


def _rises(tasks: LinearTasks, scheme: Scheme, w0: Array, given: IntArray, start: float) -> Iterator[Case]:
    """The loss at the end of a pass is above the loss before learning."""
    end = _end(tasks, scheme, w0, given)
    if not end > RISE * start:
        return
    who = "learning to convergence" if scheme.solves_task else str(scheme)
    what = f"{who} {'diverges' if end > TWICE * start else 'raises the loss'} here"
    losses = {lam: _end(tasks, Ridge(lam), w0, given) for lam in LAMBDAS}
    lam = min(losses, key=lambda key: losses[key])
    helps = losses[lam] < end
    below = "" if losses[lam] < start else ", which is still above the start"
    remedy = f"; ridge {lam:g} takes {_big(end)} to {_big(losses[lam])}{below}" if helps else ""
    yield Case(
        "rises",
        f"{what[:1].upper()}{what[1:]}: a pass in the given order takes the mean loss from {_big(start)} up to "
        f"{_big(end)}{remedy}.",
    )


def _end(tasks: LinearTasks, scheme: Scheme, w0: Array, given: IntArray) -> float:
    return float(run(tasks, Explicit(given), len(given), scheme, w0=w0, record_every=len(given)).losses[-1])


def _large_task(tasks: LinearTasks, w0: Array, start: float) -> Iterator[Case]:
    """A task whose norm or loss is far above those of the others."""
    T, geometry = tasks.num_tasks, tasks.geometry
    losses = geometry.task_losses(geometry.start(w0))
    norms = tasks.norms
    task = int(np.argmax(norms))
    others = float(np.median(np.delete(norms, task)))
    if others > 0 and norms[task] >= LARGE * others:
        marks = [f"its norm is {norms[task] / others:,.3g} times the median of the others"]
    else:
        marks, task = [], int(np.argmax(losses))
    share = float(losses[task]) / (T * start)
    if T > 2 and share >= max(SHARE, min(TIMES / T, 0.9)):
        marks.append(f"it has {100 * share:.0f} % of the loss before learning")
    if marks:
        name = one_line(tasks.names[task])
        called = f"task {name}" if name.isdigit() else f"task '{name}'"
        longer = tasks.loss_kind == "sum" and tasks.num_rows[task] > 2 * np.median(tasks.num_rows)
        remedy = "use the mean loss, or rescale it" if longer else "check its units, or rescale it"
        yield Case(
            "large task",
            f"One task is far larger than the others, {called} ({' and '.join(marks)}), and decides most of what is "
            f"measured: {remedy}.",
        )


def _big(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= value < 1e9 else f"{value:.4g}"
