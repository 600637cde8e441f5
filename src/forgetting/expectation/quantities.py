"""The quantities of `expect`: each is a sum of terms, and a term is a quadratic form of each task and its average.

Engines evaluate terms and know nothing else of quantities, so that a quantity of your own works in every engine:

>>> import forgetting as fg
>>> from forgetting.expectation import HALF_SQUARED_DISTANCE, Quantity
>>> residual = Quantity("residual", "E of the mean half squared distance to the tasks", form=HALF_SQUARED_DISTANCE)
>>> e = fg.expect(fg.families.two_lines(np.pi / 3), fg.orderings.WithReplacement(), k=1, quantities=(residual,))
>>> round(float(e.values["residual"]), 12)
0.140625

A sum of terms that has no word says how much worse the next task is than those that were visited:

>>> surprise = Quantity("surprise", "next loss less seen loss", (Term("next"), Term("visited", coefficient=-1.0)))
>>> e = fg.expect(fg.families.two_lines(np.pi / 3), fg.orderings.Cyclic(), k=1, quantities=(surprise,))
>>> round(float(e.values["surprise"]), 12)
0.28125
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal, get_args

import numpy as np

from forgetting.core.arrays import Array, as_kind, as_list, as_number, as_word
from forgetting.core.registry import Registry
from forgetting.dynamics.trajectory import Trajectory
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.geometry import Geometry
from forgetting.tasks import Problem

__all__ = [
    "ACCURACY",
    "ERROR_RATE",
    "HALF_SQUARED_DISTANCE",
    "LOSS",
    "Form",
    "Quantity",
    "Term",
    "quantities",
    "register_quantity",
    "resolved",
]

Average = Literal["tasks", "each", "visited", "next", "learnt", "kept", "incremental", "error"]
Iterate = Literal["last", "mean"]


class Form:
    """A quadratic form of each task: 1/2 sum_i weight_i rho_i^2 over the singular directions i of the task.

    rho_i is how far the iterate misses the target of direction i, so that weight_i = sigma_i^2 gives the loss, up to
    what no w can fit, and weight_i = 1 half the squared distance to the solutions of the task.
    """

    #: whether half the squared norm of the labels that no w can fit is part of the form
    with_unfitted: ClassVar[bool] = False
    #: whether values are a quadratic form as above, which exact engines need
    quadratic: ClassVar[bool] = True
    #: whether values that are no quadratic form depend on w alone, and have bounds on their errors, by `within`
    bounded: ClassVar[bool] = False
    #: the interval that no value can leave, if it does not depend on the tasks
    ends: ClassVar[tuple[float, float] | None] = None

    def weights(self, squares: Array) -> Array:
        """The weight of each direction from its sigma^2, by arithmetic that also works for arrays of Decimal."""
        raise NotImplementedError

    def along(self, run: Trajectory) -> Array:
        """The form of every task at the recorded steps of a run, (len(steps), T)."""
        geometry, each = self._distinct(run)
        return each[:, geometry.index]

    def along_tests(self, run: Trajectory) -> Array:
        """The form of the held-out data of every task at the recorded steps of a run, (len(steps), T)."""
        geometry, each = self._distinct(run)
        return each[:, geometry.num_learned + geometry.index]

    def within(self, run: Trajectory, off: Array, held_out: bool) -> tuple[Array, Array]:
        """`along` or `along_tests`, and bounds on the errors of the values where each w is off by at most `off`.

        For forms that are `bounded`.
        """
        raise NotSupportedError(f"{type(self).__name__} has no bounds on its errors")

    def _distinct(self, run: Trajectory) -> tuple[Geometry, Array]:
        """The geometry of the tasks, and the form of each distinct task at the recorded steps."""
        geometry = run.problem.geometry
        if geometry is None:
            raise NotSupportedError(f"{type(self).__name__} is a form of regression tasks; give it an along(run)")
        weighted = self.weights(geometry.sigma**2) * geometry.squared(run.errors)
        each = 0.5 * geometry.per_task(weighted)
        return geometry, each + geometry.unexplained if self.with_unfitted else each

    def bound(self, problem: Problem) -> float | None:
        """b such that the form of every task is at most b/2 times the squared distance to its solutions, if known."""
        geometry = problem.geometry
        return None if geometry is None else float(np.max(self.weights(geometry.sigma**2), initial=0.0))


class _Loss(Form):
    with_unfitted = True

    def weights(self, squares: Array) -> Array:
        return squares

    def along(self, run: Trajectory) -> Array:
        return run.loss_matrix

    def bound(self, problem: Problem) -> float | None:
        return None if problem.radius is None else problem.radius**2


class _HalfSquaredDistance(Form):
    def weights(self, squares: Array) -> Array:
        return np.ones_like(squares)

    def along(self, run: Trajectory) -> Array:
        return np.asarray(0.5 * run.residuals**2)

    def bound(self, problem: Problem) -> float:
        return 1.0


class _Accuracy(Form):
    """The share of rows of a task whose class is predicted, or is not."""

    quadratic = False
    bounded = True
    ends = (0.0, 1.0)

    def __init__(self, wrong: bool) -> None:
        self.wrong = wrong

    def along(self, run: Trajectory) -> Array:
        return 1 - run.accuracy if self.wrong else run.accuracy

    def along_tests(self, run: Trajectory) -> Array:
        shares = run.problem.test_accuracies(run.iterates)
        return 1 - shares if self.wrong else shares

    def within(self, run: Trajectory, off: Array, held_out: bool) -> tuple[Array, Array]:
        shares, undecided = run.problem.accuracies_within(run.scaled_iterates, off, held_out)
        return 1 - shares if self.wrong else shares, undecided

    def bound(self, problem: Problem) -> None:
        return None


#: the loss of a task
LOSS: Form = _Loss()
#: half the squared distance to the solutions of a task
HALF_SQUARED_DISTANCE: Form = _HalfSquaredDistance()
#: the share of rows whose class is predicted
ACCURACY: Form = _Accuracy(wrong=False)
#: the share of rows whose class is not predicted
ERROR_RATE: Form = _Accuracy(wrong=True)


@dataclass(frozen=True)
class Term:
    """A form of each task, averaged, times a coefficient: quantities are sums of such terms.

    Attributes:
        average: "tasks": the mean over all tasks. "each": every task by itself. "visited": the mean over the k visits.
            "next": the task that is learned next. "learnt": the mean over the steps t of the form of task tau(t) at
            w_(t-1), just before the task is learned. "kept": the same at w_t, just after. "incremental": the mean over
            the steps t of the mean over the tasks that were visited by then, at w_t; for accuracies. "error":
            |w_k - w*|^2, which needs no form. A step without an update (`Ordering.skips`) is no visit: means are over
            the other steps, and 0 before the first; "next" is 0 where the next step has none.
        form: of each task.
        coefficient: the factor of the term in the sum.
        held_out: whether the form is that of the held-out data of each task, `test=`; for the averages "tasks", "each",
            "visited" and "kept".
        iterate: "last": w_k. "mean": (w_0 + ... + w_(k-1)) / k, the points that the first k steps start from; for the
            averages "tasks" and "each".

    >>> Term("kept", coefficient=-1.0).needs_steps
    True
    """

    average: Average = "tasks"
    form: Form = LOSS
    coefficient: float = 1.0
    held_out: bool = False
    iterate: Iterate = "last"

    def __post_init__(self) -> None:
        as_word(self.average, get_args(Average), "average")
        as_word(self.iterate, get_args(Iterate), "iterate")
        as_number(self.coefficient, "coefficient")
        if self.iterate == "mean" and self.average not in ("tasks", "each"):
            raise InvalidInputError(f"the mean of the iterates is for 'tasks' and 'each', not for {self.average!r}")
        if self.held_out and self.average not in ("tasks", "each", "visited", "kept"):
            raise InvalidInputError(f"held-out data are for 'tasks', 'each' and 'visited', not for {self.average!r}")
        if self.average == "incremental" and self.form.quadratic:
            raise InvalidInputError("the incremental mean is for accuracies, which no exact engine computes")

    @property
    def needs_steps(self) -> bool:
        """Whether the term is a mean over the steps so far, of which there are none at k = 0."""
        return self.average in ("visited", "learnt", "kept", "incremental") or self.iterate == "mean"


@dataclass(frozen=True)
class Quantity:
    """A quantity of `expect`: a sum of terms, each a form of every task, evaluated somewhere and averaged.

    Attributes:
        name: what callers write in `quantities=`.
        meaning: the quantity in words or as a formula.
        average: the terms, of which either all or none are for "each" task; or a word of `Term`, for the one term with
            the attributes below.
        form: of each task.
        subtracts_kept: whether the form of task tau(t) at w_t, just after the task was learned, is subtracted from that
            at w_k; for the average over visits.
        iterate, held_out: as for `Term`.

    >>> quantities.get("forgetting").average
    'visited'
    >>> [(term.average, term.coefficient) for term in quantities.get("forgetting").terms()]
    [('visited', 1.0), ('kept', -1.0)]
    """

    name: str
    meaning: str
    average: Average | tuple[Term, ...] = "tasks"
    form: Form = LOSS
    subtracts_kept: bool = False
    iterate: Iterate = "last"
    held_out: bool = False

    def __post_init__(self) -> None:
        if self.subtracts_kept and self.average != "visited":
            raise InvalidInputError("only the average over visits can subtract what was kept when tasks were learned")
        if not isinstance(self.average, str):
            if (self.form, self.iterate, self.held_out) != (LOSS, "last", False):
                raise InvalidInputError("form=, iterate= and held_out= belong to each of the terms")
            terms = [as_kind(term, Term, "a Term", "average: ") for term in as_list(self.average, "average")]
            if not terms or len({term.average == "each" for term in terms}) > 1:
                raise InvalidInputError("a quantity is a sum of at least one term, all or none of them for 'each' task")
            object.__setattr__(self, "average", tuple(terms))
        self.terms()  # checks the words

    def terms(self) -> tuple[Term, ...]:
        """The terms whose sum the quantity is."""
        return self._terms

    @cached_property
    def _terms(self) -> tuple[Term, ...]:
        if not isinstance(self.average, str):
            return self.average
        term = Term(self.average, self.form, held_out=self.held_out, iterate=self.iterate)
        return (term, replace(term, average="kept", coefficient=-1.0)) if self.subtracts_kept else (term,)

    def after(self, visits: int) -> tuple[Term, ...]:
        """The terms after so many visits, those that are equal up to coefficients taken together.

        After one visit the task that was visited has just been learned, so that nothing was forgotten.

        >>> quantities.get("forgetting").after(1)
        ()
        """
        return self._after[visits == 1]

    @cached_property
    def _after(self) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
        """The terms after other numbers of visits, and those after one."""
        terms = self.terms()
        first = (replace(term, average="kept") if term.average == "visited" else term for term in terms)
        return _taken_together(terms), _taken_together(first)

    @property
    def needs_steps(self) -> bool:
        """Whether a term is a mean over the steps so far, of which there are none at k = 0."""
        return any(term.needs_steps for term in self.terms())

    @property
    def certain_at(self) -> int | None:
        """The step k at which the quantity is the same for all orders, if there is one."""
        if all(term.average in ("tasks", "each", "error") and term.iterate == "last" for term in self.terms()):
            return 0
        return 1 if all(term.iterate == "mean" for term in self.after(1)) else None  # the mean of one iterate is w_0

    @property
    def quadratic(self) -> bool:
        """Whether all forms are quadratic, which exact engines need."""
        return all(term.form.quadratic for term in self.terms())

    @property
    def per_task(self) -> bool:
        """Whether there is a value for each task."""
        return any(term.average == "each" for term in self.terms())

    @property
    def signed(self) -> bool:
        """Whether values can be negative: a term is subtracted."""
        return any(term.coefficient < 0 for term in self.terms())


def look_ahead(terms: Iterable[Term]) -> bool:
    """Whether a sum of terms is undefined where no task comes next."""
    return any(term.average == "next" for term in terms)


def shares_of_unfitted(terms: Iterable[Term]) -> dict[tuple[Average, bool], float]:
    """How often a sum of terms has what no w can fit: its mean over all tasks, over visits, or of the next task.

    By that average, and whether it is that of held-out data. Terms for each task are left out. It cancels where one
    term is subtracted from another.

    >>> shares_of_unfitted(quantities.get("forgetting").terms())
    {('visited', False): 0.0}
    """
    shares: dict[tuple[Average, bool], float] = {}
    for term in terms:
        if term.form.with_unfitted and term.average not in ("each", "error"):
            average = "visited" if term.needs_steps and term.iterate == "last" else term.average
            shares[average, term.held_out] = shares.get((average, term.held_out), 0.0) + term.coefficient
    return shares


def _taken_together(terms: Iterable[Term]) -> tuple[Term, ...]:
    """The terms with equal ones added up, and without those that cancel."""
    sums: dict[Term, float] = {}
    for term in terms:
        plain = replace(term, coefficient=1.0)
        sums[plain] = sums.get(plain, 0.0) + term.coefficient
    return tuple(replace(term, coefficient=total) for term, total in sums.items() if total)


quantities: Registry[Quantity] = Registry("quantity")


def register_quantity(quantity: Quantity) -> Quantity:
    """Make a quantity known by its name.

    >>> register_quantity(quantities.get("loss"))
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: there is already a quantity 'loss'; choose another name
    """
    return quantities.add(as_kind(quantity, Quantity, "a Quantity").name, quantity)


def resolved(given: Quantity | str | Sequence[Quantity | str]) -> tuple[Quantity, ...]:
    """Quantities, given as objects or by their names.

    >>> [quantity.name for quantity in resolved("loss")]
    ['loss']
    """
    several = (given,) if isinstance(given, str | Quantity) else as_list(given, "quantities")
    if not several:
        raise InvalidInputError(f"quantities is empty; choose from {', '.join(quantities)}")
    odd = [entry for entry in several if not isinstance(entry, str | Quantity)]
    if odd:
        raise InvalidInputError(f"quantities must be names or Quantity objects, got {odd[0]!r:.80}")
    chosen = [quantities.get(entry) if isinstance(entry, str) else entry for entry in several]
    return tuple({quantity.name: quantity for quantity in chosen}.values())


for _quantity in (
    Quantity("loss", "E L(w_k)"),
    Quantity("forgetting", "E 1/k sum_t (L_tau(t)(w_k) - L_tau(t)(w_t))", "visited", subtracts_kept=True),
    Quantity("regret", "E 1/k sum_t L_tau(t)(w_(t-1))", "learnt"),
    Quantity("error", "E |w_k - w*|^2", "error"),
    Quantity("task_losses", "E L_m(w_k) for every task m", "each"),
    Quantity("seen_loss", "E 1/k sum_t L_tau(t)(w_k)", "visited"),
    Quantity("next_loss", "E L_tau(k+1)(w_k)", "next"),
    Quantity("averaged_loss", "E L((w_0 + ... + w_(k-1)) / k)", iterate="mean"),
    Quantity("accuracy", "E of the mean accuracy of all tasks at w_k", form=ACCURACY),
    Quantity("task_accuracies", "E of the accuracy of every task at w_k", "each", form=ACCURACY),
    Quantity(
        "accuracy_forgetting",
        "E 1/k sum_t (accuracy of task tau(t) at w_t, less that at w_k)",
        "visited",
        form=ERROR_RATE,
        subtracts_kept=True,
    ),
    Quantity(
        "incremental_accuracy",
        "E 1/k sum_t (mean accuracy at w_t of the tasks visited by then)",
        "incremental",
        form=ACCURACY,
    ),
    Quantity("test_accuracy", "E of the mean accuracy of the held-out data at w_k", form=ACCURACY, held_out=True),
    Quantity("test_loss", "E of the mean loss of the held-out data of all tasks at w_k", held_out=True),
    Quantity("test_losses", "E of the loss of the held-out data of every task at w_k", "each", held_out=True),
    Quantity(
        "test_forgetting",
        "E 1/k sum_t (held-out loss of task tau(t) at w_k, less that at w_t)",
        "visited",
        subtracts_kept=True,
        held_out=True,
    ),
    Quantity("averaged_task_losses", "E L_m((w_0 + ... + w_(k-1)) / k) for every task m", "each", iterate="mean"),
):
    register_quantity(_quantity)
