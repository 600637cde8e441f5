"""What `worst_case` returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from forgetting.core.arrays import IntArray
from forgetting.files.records import Codec, add_codec
from forgetting.orderings.base import Ordering
from forgetting.results import Result
from forgetting.tasks import ConvexSets, RegressionTasks
from forgetting.worstcase.dual_certificate import DualCertificate

__all__ = ["WorstCase"]


@dataclass(frozen=True, eq=False, repr=False)
class WorstCase(Result):
    """The supremum of an expected quantity over all tasks: its value, a proof, and tasks that attain it.

    Attributes:
        num_tasks: None for the supremum over all numbers of tasks.
        k: the number of steps.
        sets: "subspaces" or "convex".
        quantity: "loss", "forgetting" or "next_loss".
        ordering: of the tasks.
        value: the exact value of `tasks`; the primal value of the solver where there are no tasks.
        primal, dual: what the solver says about the supremum, from below and from above, not proved.
        lower: the exact value of `tasks`, a proved lower bound up to rounding; None without tasks.
        tasks: attain the value: `RegressionTasks` with orthonormal rows, or `ConvexSets`; |w*| = 1.
        why_no_tasks: a sentence where `tasks` is None.
        certificate: the proof of `upper`, as squares with whole coefficients; `certificate.verify()` checks it.
        num_variables, block_sizes: of the semidefinite program.
        status: what the solver says about its solution.

    >>> import forgetting as fg
    >>> print(fg.worst_case(2, 1).headline)
    worst case of the expected loss after 1 step over all 2 subspaces: 0.1481481 (proved: at most 0.1481482)
    """

    kind = "worst case"

    num_tasks: int | None
    k: int
    sets: str
    quantity: str
    ordering: Ordering
    value: float
    primal: float
    dual: float
    lower: float | None
    tasks: RegressionTasks | ConvexSets | None
    why_no_tasks: str
    certificate: DualCertificate
    num_variables: int
    block_sizes: tuple[int, ...]
    status: str

    @property
    def upper(self) -> float:
        """The upper bound that the certificate proves."""
        return self.certificate.upper

    @property
    def gap(self) -> float:
        """How far the value may be from the supremum: `upper` less `value`."""
        return self.upper - self.value

    @property
    def headline(self) -> str:
        """The value in one line."""
        tasks = "numbers of" if self.num_tasks is None else str(self.num_tasks)
        what = "subspaces" if self.sets == "subspaces" else "convex sets"
        steps = "1 step" if self.k == 1 else f"{self.k} steps"
        return (
            f"worst case of the expected {self.quantity.replace('_', ' ')} after {steps} over all {tasks} {what}: "
            f"{self.value:.7g} (proved: at most {_up(self.upper)})"
        )

    def _num_rows(self) -> int:
        return 1

    def _columns(self, rows: IntArray, *, full: bool) -> Mapping[str, Sequence[Any]]:
        columns: dict[str, Sequence[Any]] = {
            "tasks": [float("inf") if self.num_tasks is None else self.num_tasks], "k": [self.k],
            "quantity": [self.quantity], "value": [self.value], "k value": [self.k * self.value],
            "upper": [self.upper], "variables": [self.num_variables],
        }  # fmt: skip
        return {name: [values[row] for row in rows] for name, values in columns.items()}

    def _remarks(self) -> tuple[str, ...]:
        return (f"No tasks: {self.why_no_tasks}.",) if self.why_no_tasks else ()


def _up(value: float) -> str:
    """Seven digits, rounded up."""
    return str(Context(prec=7, rounding=ROUND_CEILING).create_decimal(Decimal(value)))


add_codec(Codec("dual certificate", DualCertificate, lambda made: made.to_json(), DualCertificate.from_json))
