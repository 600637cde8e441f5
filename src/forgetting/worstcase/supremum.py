"""`worst_case`: the largest expected loss or forgetting that any tasks have, with a proof and tasks that attain it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_count
from forgetting.core.memory import require_memory
from forgetting.core.text import nearest
from forgetting.errors import InvalidInputError, NotSupportedError, PatienceError
from forgetting.expectation.api import as_patience, expect
from forgetting.expectation.engines.base import in_time
from forgetting.orderings import WithReplacement
from forgetting.orderings.base import Ordering, OrderingLike, as_ordering
from forgetting.orderings.laws import Fixed, Independent, Law, Permutation, Reshuffled
from forgetting.orderings.view import TaskView
from forgetting.results import Result
from forgetting.tasks import ConvexSets, RegressionTasks
from forgetting.worstcase.dual_certificate import DualCertificate, certified
from forgetting.worstcase.extraction import candidates
from forgetting.worstcase.inner_products import Algebra, ConvexProjections, Projections, Reflections, Word
from forgetting.worstcase.program import Program, program, program_size
from forgetting.worstcase.solving import Solved, solve
from forgetting.worstcase.solving import clarabel as solver
from forgetting.worstcase.tree import TaskWalk, Tree, tree

__all__ = ["WorstCase", "worst_case"]

KINDS = ("subspaces", "convex")
QUANTITIES = ("loss", "forgetting", "next_loss")
MOST_WORK = 1e10  # T times the cube of the number of errors that tasks are read off from: a minute
MOST_STEPS = 10_000
MOST_TASKS = 10_000  # where not all are alike
MOST_ROWS = 26_000  # of the semidefinite program: the solver takes up to 35 bytes times the square of the rows, 24 GiB
MOST_PRODUCTS = 5_000_000  # that build the program: ten minutes
PATIENCE = 60.0
ENOUGH = 1e-8  # tasks of fewer dimensions are preferred if they lose no more than this


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
        """The largest distance of the value from the supremum: `upper` less `value`."""
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


def worst_case(
    T: float,
    k: int,
    kind: str = "subspaces",
    quantity: str = "loss",
    ordering: OrderingLike | None = None,
    patience: float = PATIENCE,
) -> WorstCase:
    """The supremum of an expected quantity over all collections of T tasks, with |w*| = 1 and radius 1.

    The tasks may have any dimension and any ranks. For subspaces (regression tasks, learned to convergence) this is a
    semidefinite program over the inner products of all iterates: numbers of words in the projections P_m, P_m^2 = P_m.
    Where all tasks are alike the program is reduced by relabelling of tasks and block-diagonalisation, so that its size
    stops growing once T >= 2k + 1. The dual solution, rounded to whole numbers, is a proof of an upper bound that a
    short script checks in exact arithmetic; tasks that attain the value are read off the moments, and their value is
    computed by `fg.expect`.

    Args:
        T: the number of tasks; `np.inf` for the supremum over all T, and over all weights of draws for "next_loss" and
            "forgetting".
        k: the number of steps.
        kind: "subspaces", or "convex" for closed convex sets with a common point at distance 1 from w_0, whose loss is
            1/2 dist^2: their projections obey <x - P x, P x - y> >= 0 for all y in the set (Taylor, Hendrickx and
            Glineur 2017), which costs many more variables.
        quantity: "loss" E L(w_k), the mean over all tasks; "forgetting" E F(k); "next_loss" E L_tau(k+1)(w_k), the loss
            of the task that comes next, which equals "loss" for uniform draws.
        ordering: with replacement if left out; also weighted, without replacement, reshuffled, cyclic and given ones.
            The loss of a start that no draw may reach is trivial: quantity="next_loss" weighs tasks by their draws.
        patience: seconds that it may take, as estimated from the size of the program, before a `PatienceError` refuses
            it; np.inf to wait as long as it takes.

    Returns:
        `WorstCase`, with `.value`, `.upper` (proved), `.tasks`, `.certificate`.

    Cost: with replacement and T >= 2k + 1, 19, 168 and 2788 variables for k = 2, 3 and 4. Needs clarabel.

    >>> import forgetting as fg
    >>> worst = fg.worst_case(3, 2)
    >>> round(worst.value, 6), round(worst.upper, 6), worst.tasks.num_tasks
    (0.091044, 0.091044, 3)
    >>> round(float(fg.expect(worst.tasks, worst.ordering, k=2).loss), 6)
    0.091044
    """
    steps, order = as_count(k, "k", least=1), as_ordering(WithReplacement() if ordering is None else ordering)
    waits = as_patience(patience)
    _one_of(kind, "kind", KINDS)
    _one_of(quantity, "quantity", QUANTITIES)
    count = None if isinstance(T, float | np.floating) and math.inf == T else as_count(T, "T", least=1)
    solver()
    if steps > MOST_STEPS:
        raise NotSupportedError(
            f"k = {steps}: worst cases of more than {MOST_STEPS} steps are out of reach; use a smaller k"
        )
    runs = tree(_walk(order, count, steps + (quantity == "next_loss")), steps, quantity)
    rules = _rules(kind, runs.walk)
    _check_size(runs, rules, waits)
    posed = program(runs, rules)
    solved = solve(posed)
    proof = certified(posed, solved)
    attaining, lower, why = _attaining(posed, solved, order)
    return WorstCase(
        num_tasks=count, k=steps, sets=kind, quantity=quantity, ordering=order,
        value=solved.primal if lower is None else lower, primal=solved.primal, dual=solved.dual, lower=lower,
        tasks=attaining, why_no_tasks=why, certificate=proof, num_variables=posed.num_variables,
        block_sizes=tuple(matrix.size for matrix in posed.matrices), status=solved.status,
    )  # fmt: skip


def _one_of(value: Any, what: str, known: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in known:
        raise InvalidInputError(f"no {what} {value!r:.80}{nearest(value, known)}")


def _walk(ordering: Ordering, count: int | None, steps: int) -> TaskWalk:
    law: Law = ordering.law
    if isinstance(law, Independent) and law.p is None:
        return TaskWalk(count, "uniform")
    if count is None:
        raise InvalidInputError(
            f"T = inf is for uniform draws with replacement, not for {ordering}; give a number of tasks"
        )
    if isinstance(law, Independent) and callable(law.p):
        raise NotSupportedError(
            f"{ordering} draws by the norms of tasks, which are 1 here: use WithReplacement(p) with numbers"
        )
    if not isinstance(law, Permutation | Reshuffled) and count > MOST_TASKS:
        raise NotSupportedError(f"T = {count}: at most {MOST_TASKS} tasks that are not alike; use a smaller T")
    limit = law.limit(count)
    if limit is not None and steps > limit:
        raise InvalidInputError(f"{ordering} ends after {limit} steps, but {steps} are needed")
    law.check(count)
    if isinstance(law, Permutation | Reshuffled):
        return TaskWalk(count, "shuffles")
    view = TaskView(count, np.ones(count))
    if isinstance(law, Independent):
        weights = [Fraction(float(weight)) for weight in law.weights(view)[0]]
        return TaskWalk(count, "weights", tuple(weight / sum(weights) for weight in weights))
    if isinstance(law, Fixed):
        return TaskWalk(count, "order", tuple(ordering.first(view, steps, np.random.default_rng(0)).tolist()))
    raise NotSupportedError(
        f"{ordering} has no worst case here, only draws with replacement, shuffles, cycles and given orders have"
    )


def _rules(kind: str, walk: TaskWalk) -> Algebra:
    if kind == "convex":
        return ConvexProjections(walk.num_tasks, walk.symmetric)
    rules = Projections if walk.law == "order" else Reflections  # words of one run need no other words
    return rules(walk.num_tasks, walk.symmetric)


def _check_size(runs: Tree, rules: Algebra, patience: float) -> None:
    """Refuse a program that is out of reach, before it is built."""
    matrices, products, normals = program_size(runs, rules, MOST_ROWS, MOST_PRODUCTS)
    case, rows = f"T = {runs.walk.num_tasks or 'inf'}, k = {runs.k}", matrices + normals
    smaller = "Use a smaller k, or fg.adversarial_search for a lower bound"
    if rows > MOST_ROWS or products > MOST_PRODUCTS:
        raise NotSupportedError(
            f"{case}: a semidefinite program of at least {rows} rows, from {products:.3g} inner products, is out of "
            f"reach (at most {MOST_ROWS} in 24 GiB, and {MOST_PRODUCTS:.3g}). {smaller}"
        )
    seconds = 80 * (rows / 8000) ** 2.7 + 1.2e-4 * (products + normals)
    if seconds > patience:
        raise PatienceError(
            f"{case}: a semidefinite program of up to {rows} rows would take about {in_time(seconds)}, longer than "
            f"patience= ({patience:g} s). {smaller}, or a larger patience=",
            needed=seconds,
            allowed=patience,
        )
    require_memory(35.0 * rows**2, f"{case}: a semidefinite program of up to {rows} rows would", smaller.lower())


def _attaining(
    posed: Program, solved: Solved, ordering: Ordering
) -> tuple[RegressionTasks | ConvexSets | None, float | None, str]:
    """The tasks of fewest dimensions that attain the largest value, and this value; else why there are no tasks."""
    errors = posed.reach.num_errors
    if posed.tree.walk.num_tasks is None:
        return None, None, "the supremum over all numbers of tasks may be a limit: ask for a finite T"
    if posed.tree.walk.num_tasks * errors**3 > MOST_WORK:
        return None, None, f"the tasks would have up to {errors:.0f} dimensions: use fg.adversarial_search"
    best: tuple[float, RegressionTasks | ConvexSets] | None = None
    for tasks in candidates(posed, solved.moments):
        value = _value(tasks, ordering, posed.tree)
        if best is None or value > best[0] + ENOUGH:
            best = value, tasks
        if value > solved.primal - ENOUGH:
            break
    assert best is not None
    return best[1], best[0], ""


def _value(tasks: RegressionTasks | ConvexSets, ordering: Ordering, runs: Tree) -> float:
    """The exact value of tasks: by `fg.expect`, or by projecting on the sets along all runs."""
    if tasks.linear is not None:
        return float(getattr(expect(tasks, ordering, runs.k, quantities=(runs.quantity,)), runs.quantity))
    total = 0.0
    points: dict[Word, Array] = {(): np.zeros(tasks.dim)}
    for (word, last), weight in runs.losses.items():
        seen = max(*word, last) + 1
        namings = list(permutations(range(tasks.num_tasks), seen)) if runs.walk.symmetric else [range(seen)]
        for names in namings:
            for end in range(1, len(word) + 1):
                named = tuple(names[letter] for letter in word[:end])
                if named not in points:
                    points[named] = tasks.project(named[-1], points[named[:-1]])
            total += 2 * float(weight) / len(namings) * tasks.task_loss(names[last], points[named])
    return total


def _up(value: float) -> str:
    """The value with seven digits, rounded up."""
    return str(Context(prec=7, rounding=ROUND_CEILING).create_decimal(Decimal(value)))
