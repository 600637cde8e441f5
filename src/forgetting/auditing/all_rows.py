"""What a head reaches that learns the rows of all tasks and forgets none, beside the tasks one after another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forgetting.auditing.measures import FLOPS, MeasuredOrders
from forgetting.auditing.orders import held_out_losses
from forgetting.auditing.preparation import Prepared
from forgetting.core.arrays import Array
from forgetting.core.numerical import EPS
from forgetting.geometry.ridge_state import RidgeState, least_score
from forgetting.tasks import LinearTasks

DECOMPOSITION = 25.0  # operations of a singular value decomposition, as a multiple of d^3


@dataclass(frozen=True)
class HeadValue:
    """The values of one measure: of the head and of joint training.

    Attributes:
        measure: the name of the measure.
        head: ridge regression on the rows of all tasks, as `fg.IncrementalRidge` learns them in any order.
        joint: least squares on the rows of all tasks at once, the shortest solution: what no order goes beyond in
            training loss.
    """

    measure: str
    head: float
    joint: float


@dataclass(frozen=True)
class AllRows:
    """Learning all rows without forgetting.

    Attributes:
        alpha: the penalty of the head, chosen by generalised cross-validation.
        values: for each measure of the orders but forgetting.
    """

    alpha: float
    values: tuple[HeadValue, ...]

    def of(self, measure: str) -> HeadValue | None:
        """The values of a measure, by its name; None for forgetting, of which there is none."""
        return next((value for value in self.values if value.measure == measure), None)


def learn_all_rows(prepared: Prepared, measured: MeasuredOrders, patience: float) -> AllRows | None:
    """The head and joint training on the prepared rows; None where there are no rows, or that would take too long.

    No intercept is added beside the columns that the tasks have, so that all learners see the same rows.

    >>> import forgetting as fg
    >>> audit = fg.audit(fg.families.gaussian(T=3, d=4, rank=2, seed=0))
    >>> [(value.measure, round(value.joint, 6)) for value in audit.all_rows.values]
    [('training loss', 0.0)]
    """
    data = None if prepared.problem.linear is None else prepared.problem.linear.data
    if data is None or data.num_tasks < 2:
        return None
    rows, width = float(np.sum(data.num_rows)), data.dim + (data.outputs or 1)
    if (2 * rows * width**2 + DECOMPOSITION * data.dim**3) / FLOPS > patience:
        return None
    state = RidgeState.empty(np.zeros(data.dim), np.zeros(data.outputs or 1))
    for task in range(data.num_tasks):
        X, y = data.task(task)
        # weights whose sum is the number of rows, so that cross-validation counts rows
        weight = 1.0 if data.loss_kind == "sum" else rows / (data.num_tasks * float(len(y)))
        columns = y.reshape(len(y), -1)
        state = state.with_rows(X, columns.__getitem__, np.full(len(y), weight))
    solved = state.decomposed(False)
    tried = solved.grid()
    alpha = least_score(tried, solved.generalised(tried))
    coef = np.stack([solved.solution(penalty)[0].T for penalty in (alpha, 0.0)])
    points = coef[..., 0] if data.outputs is None else coef
    found = {measure.name: _values(measure.name, points, data, prepared) for measure in measured.measures}
    return AllRows(alpha, tuple(HeadValue(name, *pair.tolist()) for name, pair in found.items() if pair is not None))


def _values(measure: str, points: Array, data: LinearTasks, prepared: Prepared) -> Array | None:
    """The mean over tasks of a measure at each point; None for forgetting. A loss that is rounding is 0."""
    test = prepared.held_out
    if measure.endswith("loss"):
        rows = data if measure == "training loss" else test
        if rows is None:
            return None
        *losses, start = held_out_losses(rows, np.concatenate([points, points[:1] * 0])).mean(axis=1)
        return np.where(losses > EPS * start, losses, 0.0)
    if measure == "training accuracy":
        return np.asarray(data.accuracies(points).mean(axis=1))
    if test is None or measure == "forgetting":
        return None
    return np.asarray(test.accuracies(points).mean(axis=1))
