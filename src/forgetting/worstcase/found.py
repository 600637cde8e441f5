"""What a search found: tasks, and their exact value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.errors import ForgettingError
from forgetting.figures.items import Curves, Series
from forgetting.files.records import checked_fields
from forgetting.orderings import Ordering
from forgetting.results import Result
from forgetting.tasks import RegressionTasks

__all__ = ["TaskSearch"]

SAME = 1e-6  # relative difference of values that count as the same
SHOWN = 64  # curves of a figure


@dataclass(frozen=True, eq=False, repr=False)
class TaskSearch(Result):
    """The worst tasks that `adversarial_search` found.

    Attributes:
        quantity: "loss", "next_loss" or "forgetting".
        k: the number of steps.
        ordering: with the weights that were found, where these were free.
        tasks: the worst tasks: matrices with orthonormal rows, and labels of a unit w*, from w_0 = 0. A task of rank 0
            is a row of zeros.
        value: the exact expected quantity of these tasks, computed by `fg.expect` on the CPU: up to `uncertainty`, a
            proved lower bound on the supremum over all tasks of radius 1 with |w*| = 1.
        uncertainty: a bound on the error of `value`.
        weights: the probabilities of the draws; equal ones where nothing is drawn.
        values: what each restart reached, as computed in the search.
        slopes: for each restart the norm of the gradient of log(value) in its angles (and weights); 0 at a maximum.
        history: the value after each step, (restarts, steps + 1).
        seed: of the search.
        device: where the search ran, in words.
        status: how the search ended, in a sentence.

    >>> import forgetting as fg
    >>> found = fg.adversarial_search(T=2, d=2, rank=1, k=1, restarts=2, steps=50)
    >>> round(found.value, 6), round(4 / 27, 6), found.tasks.ranks.tolist()
    (0.148148, 0.148148, [1, 1])
    """

    kind = "task search"

    quantity: str
    k: int
    ordering: Ordering
    tasks: RegressionTasks
    value: float
    uncertainty: float
    weights: Array
    values: Array
    slopes: Array
    history: Array
    seed: int
    device: str
    status: str

    @property
    def rate(self) -> float:
        """k times the value: the constant of a rate 1/k."""
        return self.k * self.value

    @property
    def headline(self) -> str:
        """The value and the tasks in one line."""
        return (
            f"Tasks of large {self.quantity.replace('_', ' ')} after {self.k} {'step' if self.k == 1 else 'steps'}: "
            f"{self.value:.8g} (times k: {self.rate:.6g}), T = {self.tasks.num_tasks}, d = {self.tasks.dim}, "
            f"{self.ordering}"
        )

    def _num_rows(self) -> int:
        return len(self.values)

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Sequence[Any]]:
        best = float(self.values.max())
        return {
            "restart": rows.tolist(),
            self.quantity: self.values[rows].tolist(),
            "below the best": (1 - self.values[rows] / best if best > 0 else 0 * self.values[rows]).tolist(),
            "gradient": self.slopes[rows].tolist(),
        }

    def _remarks(self) -> tuple[str, ...]:
        return (self.status,)

    def figure(self) -> Curves:
        """The value after each step, a curve for each restart; the best restart stands out."""
        best, steps = int(np.argmax(self.values)), tuple(map(float, range(1, self.history.shape[1] + 1)))
        others = [row for row in range(len(self.values)) if row != best][: SHOWN - 1]
        curves = [
            Series(
                f"restart {row}", steps, tuple(self.history[row].tolist()), label="" if row == best else "others",
                minor=row != best,
            )
            for row in (*others, best)
        ]  # fmt: skip
        name = self.quantity.replace("_", " ")
        return Curves(
            "search",
            f"Search for the largest {name} after k = {self.k}",
            self.status,
            "step",
            name,
            tuple(curves),
            floor=1e-3 * float(self.values.max()) or None,
        )

    @classmethod
    def _restored(cls, values: dict[str, Any]) -> Self:
        made = cls(**checked_fields(cls, values))
        restarts = len(made.values)
        if restarts == 0 or made.slopes.shape != (restarts,) or made.history.shape[:1] != (restarts,):
            raise ForgettingError("as many values, gradients and histories as restarts are needed")
        if made.history.ndim != 2 or made.weights.shape != (made.tasks.num_tasks,):
            raise ForgettingError("a history of each restart and a weight of each task are needed")
        return made
