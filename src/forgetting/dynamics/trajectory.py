"""The result of a run: the recorded states, and the quantities computed from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_index
from forgetting.core.memory import require_memory
from forgetting.core.numerical import quietly
from forgetting.dynamics import metrics
from forgetting.dynamics.space import Space, restored_space
from forgetting.errors import ForgettingError, MissingValueError
from forgetting.figures.items import Curves, Series, column, spread_steps
from forgetting.files.records import checked_fields, field_values
from forgetting.orderings import Ordering
from forgetting.orderings.base import NO_UPDATE
from forgetting.results import Result
from forgetting.schemes import Scheme
from forgetting.schemes.linear import growth
from forgetting.tasks import Problem
from forgetting.tasks.problem import no_common_solution

__all__ = ["Trajectory"]

PART = 2**24  # numbers computed at once: 128 MiB
MOST_POINTS = 200  # of a curve
LARGE = 1e70  # the fourth power of numbers below this is finite
LONG_RUN = 20  # steps beyond which the axis of steps is logarithmic


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory(Result):
    """The result of a run. Iterates, losses and distances are computed from the recorded states when first used.

    Attributes:
        order: (k,) the tasks, in the order learned; -1 where the ordering said "no update" (`fg.orderings.Quantile`).
        steps: the recorded steps, from 0 to k.
        inner_steps: (k,) the number of steps of the inner solver; 0 at a step without an update.
        ending: the end of the run in words; `status` adds the remarks.
        complaints: messages of the scheme about tasks whose learning did not converge.
        interrupted: whether Ctrl-C ended the run before step k.
        before, after: (k,) the loss of the task learned at each step, before and after the step; 0 without an update.
    """

    kind = "trajectory"
    _along = True

    problem: Problem
    ordering: Ordering
    scheme: Scheme
    seed: int
    order: IntArray
    steps: IntArray
    inner_steps: IntArray
    ending: str
    complaints: tuple[str, ...]
    interrupted: bool
    w0: Array
    states: Array
    before: Array
    after: Array
    _space: Space

    @property
    def k(self) -> int:
        """The number of steps made."""
        return len(self.order)

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """Warnings about the run: tasks not learned to convergence, divergence, no update, no common solution.

        Whether convex sets or classification tasks have a common solution is decided when `remarks` is first used.
        Whether large sparse tasks (`tasks.steps_on_own_rows`) have one takes far longer than a run, and only
        `tasks.realizability` says so.

        >>> import forgetting as fg
        >>> apart = fg.ClassificationTasks([[[1.0]], [[2.0]]], [[1], [-1]])
        >>> print(fg.run(apart, fg.orderings.Cyclic(), k=2).remarks[0])  # doctest: +ELLIPSIS
        not separable: rows 0, 1 (in tasks 0, 1), each times its label, average to 0 with the weights in ...
        """
        return remarks(self, lambda: self.losses)

    @property
    def status(self) -> str:
        """The end of the run in words, and its remarks.

        >>> import forgetting as fg
        >>> fg.run(fg.families.two_lines(0.5), fg.orderings.Cyclic(), k=4).status
        'completed 4 steps'
        """
        return "; ".join([self.ending, *self.remarks])

    # ------------------------------------------------------------------------------------- looking at it, keeping it

    @property
    def headline(self) -> str:
        return f"Run of {self.k} steps on {self.problem}, {self.ordering.in_words}, {self.scheme}, seed {self.seed}"

    def _num_rows(self) -> int:
        return len(self.steps)

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Any]:
        steps = self.steps[rows]
        every = full or len(rows) == len(self.steps)
        losses = self.losses[rows] if every else self._space.mean_losses(self.states[rows])
        learned = [None if t == 0 or self.order[t - 1] == NO_UPDATE else int(self.order[t - 1]) for t in steps]
        columns: dict[str, Any] = {"step": steps, "task": learned}
        if self.problem.names != tuple(map(str, range(self.problem.num_tasks))):
            columns["name"] = [None if task is None else self.problem.names[task] for task in learned]
        columns["loss"] = losses
        forgotten = self.forgetting if every else self._forgotten(rows)
        for name, values in (("forgetting", forgotten), ("regret", self.regret)):
            columns[name] = np.append(np.nan, values)[steps]
        return columns

    def _remarks(self) -> tuple[str, ...]:
        ending = () if self.ending == f"completed {self.k} steps" else (self.ending,)
        return (*ending, *self.complaints[:1])

    def figure(self) -> Curves:
        """Loss, forgetting and regret against the number of tasks learned."""
        table = self._columns(some_rows(self.steps, self.k), full=True)
        names = ("loss", "forgetting", "regret")
        curves = tuple(
            Series(name, column(table["step"]), column(table[name]), group=g) for g, name in enumerate(names)
        )
        positive = not any(value < 0 for curve in curves for value in curve.y if value is not None)
        title = f"{self.k} steps, {self.ordering.in_words}"
        return Curves("run", title, "", "k, tasks learned", "value", curves, xlog=self.k > LONG_RUN, ylog=positive)

    def _saved(self) -> dict[str, Any]:
        return field_values(self) | {"geometry": self._space.geometry}

    @classmethod
    def _restored(cls, values: dict[str, Any]) -> Trajectory:
        geometry = values.pop("geometry", None)
        known = checked_fields(cls, values)
        space = restored_space(known["problem"], known["scheme"], known["w0"], geometry, len(known["order"]))
        made = cls(**known, _space=space)
        T, k, recorded = made.problem.num_tasks, len(made.order), made.steps.tolist()
        as_index(made.order, T, "order", least=NO_UPDATE if made.ordering.skips else 0)
        lengths = {len(part) for part in (made.inner_steps, made.before, made.after)}
        if lengths != {k} or recorded != sorted(set(recorded)) or not recorded or not 0 <= recorded[-1] <= k:
            raise ForgettingError("the parts of the run do not fit together")
        if recorded[0] != 0 or made.states.shape != (len(recorded), *space.start().shape):
            raise ForgettingError("the states of the run do not fit its steps")
        return made

    @cached_property
    def iterates(self) -> Array:
        """w at the recorded steps, (len(steps), d), or (len(steps), d, c) for tasks with c outputs."""
        self._require(self.w0.size, "iterates")
        return self._space.iterates(self.states, self._left)

    @cached_property
    def _left(self) -> Array | None:
        """What the recorded steps leave of the part of w_0 that no task sees; None if the scheme cannot decay."""
        return self.scheme.left_after(np.cumsum(np.append(0, self.order != NO_UPDATE))[self.steps])

    @cached_property
    def scaled_iterates(self) -> Array:
        """The iterates divided by the scheme's `scale_of_iterates`, from which losses and distances are computed."""
        scale = self.scheme.scale_of_iterates
        return self.iterates if scale == 1 else self.iterates / scale

    @cached_property
    def errors(self) -> Array:
        """z = w - w* at the recorded steps, in the frame of the geometry of linear tasks, (len(steps), D).

        For tasks with c outputs (len(steps), c, D). Needs the joint row space of the tasks.

        >>> import forgetting as fg
        >>> fg.run(fg.families.orthogonal(2), "cyclic", k=2).errors.round(4) + 0.0
        array([[-0.7071, -0.7071],
               [ 0.    , -0.7071],
               [ 0.    ,  0.    ]])
        """
        geometry = self.problem.geometry
        if geometry is None:
            raise MissingValueError(f"errors are those of linear tasks, not {self.problem!r:.60}")
        if self._space.geometry is not None:
            return self.states
        return np.stack([geometry.start(w) for w in self.scaled_iterates])

    @cached_property
    def losses(self) -> Array:
        """L(w) at the recorded steps, (len(steps),)."""
        parts = [self._space.mean_losses(self.states[rows]) for rows in self._parts(len(self.steps))]
        return np.concatenate(parts)

    @cached_property
    def averaged_states(self) -> Array:
        """The states of `averaged_iterates`, with w_0 at k = 0, where there is nothing to average."""
        if len(self.steps) <= self.k:
            raise MissingValueError("the mean of the iterates needs every iterate: use record_every=1")
        self._require(2 * self.states[0].size, "averaged_iterates")
        sums = np.cumsum(self.states[:-1], axis=0)
        counts = np.arange(1, self.k + 1).reshape(-1, *[1] * (sums.ndim - 1))
        return np.concatenate([self.states[:1], sums / counts])

    @property
    def _averaged_left(self) -> Array | None:
        """The mean over w_0, ..., w_(k-1) of what is left of the part of w_0 that no task sees."""
        left = self._left
        return left if left is None else np.append(1.0, np.cumsum(left[:-1]) / np.arange(1, self.k + 1))

    @property
    def averaged_iterates(self) -> Array:
        """The mean of w_0, ..., w_(k-1), from which the first k steps start, (steps + 1, d); NaN at k = 0.

        Bounds of Table 3 of the paper on an average of the iterates are bounds on f of this mean.

        >>> import forgetting as fg
        >>> tasks = fg.RegressionTasks([[[1.0]]], [[1.0]])
        >>> run = fg.run(tasks, fg.orderings.Cyclic(), k=2, scheme=fg.schemes.SGD(0.5))
        >>> run.iterates.ravel(), run.averaged_iterates.ravel()
        (array([0.  , 0.5 , 0.75]), array([ nan, 0.  , 0.25]))
        >>> run.averaged_losses
        array([    nan, 0.5    , 0.28125])
        """
        return self._after_start(self._space.iterates(self.averaged_states, self._averaged_left))

    @property
    def averaged_losses(self) -> Array:
        """L of the `averaged_iterates`, (steps + 1,); NaN at k = 0."""
        return self._after_start(self._space.mean_losses(self.averaged_states))

    def _after_start(self, values: Array) -> Array:
        result = np.array(values)
        result[0] = np.nan
        return result

    @cached_property
    def loss_matrix(self) -> Array:
        """Every task's loss at the recorded steps, (len(steps), T)."""
        self._require(self._width, "loss_matrix")
        return self._space.task_losses(self.states)

    @cached_property
    def residuals(self) -> Array:
        """Distance to every task's solutions at the recorded steps, (len(steps), T)."""
        self._require(self._width, "residuals")
        return self._space.distances(self.states)

    @cached_property
    def accuracy(self) -> Array:
        """The accuracy of every task at the recorded steps, (len(steps), T), for tasks with class labels.

        Its mean over tasks is the average accuracy; `fg.metrics.average_incremental` of `accuracy[1:]` and `order` is
        the average incremental one, and `fg.metrics.forgetting` of the same says what each task has lost.

        >>> import forgetting as fg
        >>> tasks = fg.RegressionTasks([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0]]], [[1.0, -1.0], [-1.0]])
        >>> fg.run(tasks, "cyclic", k=2).accuracy   # half of the rows by guessing at w = 0
        array([[0.5, 0.5],
               [1. , 0.5],
               [1. , 1. ]])
        """
        if self.problem.linear is None:
            raise MissingValueError(f"accuracy is that of regression tasks with class labels, not {self.problem!r:.60}")
        self._require(self.w0.size, "iterates")
        return self.problem.linear.accuracies(self.scaled_iterates)

    @cached_property
    def forgetting(self) -> Array:
        """F(1), ..., F(k) of `def:forgetting`; NaN at steps that were not recorded.

        The mean is over the steps that learned a task: a step without an update (-1 in `order`) is no visit. F is 0
        before the first visit.
        """
        return self._forgotten()

    @quietly()
    def _forgotten(self, rows: IntArray | None = None) -> Array:
        """Forgetting at all recorded steps, or at some of them; NaN elsewhere."""
        values = self._over_visits(self._space.task_losses, rows) - metrics.paper_regret(self.after, self.order)
        few = metrics.visits_so_far(self.order) == 1
        values[few] = abs(values[few] * 0)  # F is 0 by definition after one visit, or NaN if the step was not recorded
        return values

    @cached_property
    @quietly()
    def forgetting_bound(self) -> Array:
        """R^2/(2k) sum_t dist^2(w_k, C_tau(t)), a bound on the forgetting of projections; NaN where not recorded.

        R is the `radius` of the problem: losses of classification, convex sets (R = 1) and regression are at most
        R^2/2 dist^2. The paper prints w_(k-1) before `cor:pocs_forgetting`, and means w_k.

        >>> import forgetting as fg
        >>> run = fg.run(fg.families.separable(T=3, d=4, n=5, margin=0.2, seed=0), fg.orderings.Cyclic(), k=9)
        >>> bool((run.forgetting <= run.forgetting_bound + 1e-12).all())
        True
        """
        if self.problem.radius is None:
            raise MissingValueError(f"{type(self.problem).__name__} has no radius R with L_m <= R^2/2 dist^2")
        radius = self.problem.radius
        return self._over_visits(lambda states: 0.5 * (radius * self._space.distances(states)) ** 2)

    @property
    def _width(self) -> int:
        """The number of values in memory, roughly, while the losses of all tasks at a step are computed."""
        directions = self._space.directions
        return 2 * self.problem.num_tasks + (0 if directions is None else 3 * directions.targets.size)

    def _require(self, width: int, name: str) -> None:
        steps = len(self.steps)
        require_memory(8.0 * steps * width, f"{name} at {steps} steps", "record fewer steps: record_every=")

    def _parts(self, most: int) -> Iterator[slice]:
        """Slices of the recorded steps, with at most `most` steps and about `PART` numbers each."""
        total, size = len(self.steps), max(1, min(most, PART // max(1, self._width)))
        return (slice(start, min(start + size, total)) for start in range(0, total, size))

    def _over_visits(self, values: Callable[[Array], Array], only: IntArray | None = None) -> Array:
        """1/t sum_(s<=t) v_tau(s)(w_t) for t = 1..k, where `values` gives v_1, ..., v_T for each state.

        The mean is over the steps that learned a task, 0 before the first. NaN where t was not recorded, or is not
        among the recorded steps `only`.
        """
        result = np.full(self.k, np.nan)
        visits = np.zeros(self._space.problem.num_tasks)
        previous = 0
        for part in self._parts(1024) if only is None else (only,):
            table = values(self.states[part])
            for step, row in zip(self.steps[part].tolist(), table, strict=True):
                tasks = self.order[previous:step]
                np.add.at(visits, tasks[tasks != NO_UPDATE], 1)
                previous = step
                if step > 0:
                    result[step - 1] = (visits @ row) / max(visits.sum(), 1)
        return result

    @cached_property
    def regret(self) -> Array:
        """1/t sum_(s<=t) L_tau(s)(w_(s-1)), for t = 1..k; known at every step. The mean is over the visits so far."""
        return metrics.paper_regret(self.before, self.order)

    @cached_property
    def predictions(self) -> Array:
        """For kernel tasks: the predictions for all rows at the recorded steps, (len(steps), N[, c])."""
        if self.problem.kernel is None:
            raise MissingValueError("predictions are for KernelTasks; for data matrices compute X @ w from `iterates`")
        kernel = self.problem.kernel
        return np.asarray(self.iterates @ kernel if self.problem.outputs is None else kernel @ self.iterates)


def some_rows(steps: IntArray, k: int) -> IntArray:
    """Places in `steps` of at most MOST_POINTS recorded steps from 1 to k, closer together at the start.

    >>> some_rows(np.array([0, 1, 5]), 5).tolist(), some_rows(np.array([0]), 0).tolist()
    ([1, 2], [0])
    """
    wanted = spread_steps(max(k, 1), MOST_POINTS)
    return np.unique(np.searchsorted(steps, wanted).clip(max=len(steps) - 1))


def remarks(runs: Any, losses: Callable[[], Array]) -> tuple[str, ...]:
    """Warnings about one or many runs: divergence, unfinished tasks, steps without an update, no common solution."""
    problem, scheme, order, complaints = runs.problem, runs.scheme, runs.order, runs.complaints
    warnings = growth(problem, scheme)
    if skipped := int(np.count_nonzero(order == NO_UPDATE)):
        warnings.append(f"{skipped} of {order.size} steps made no update")
    if complaints:
        warnings.append(complaints[0] + (f" (and {len(complaints) - 1} more)" if len(complaints) > 1 else ""))
    finite = not runs.before.size or bool(np.isfinite(runs.before.max()))  # the maximum is NaN if some entry is
    if finite and _is_large(problem, runs.before, runs.w0):
        finite = bool(np.isfinite(losses()).all())
    if not finite:
        warnings.append(overflow(problem, scheme, runs.w0))
    if problem.steps_on_own_rows:  # the joint row space, which decides the rest, takes far longer than a run
        return tuple(warnings)
    return (*warnings, *no_common_solution(problem))


def _is_large(problem: Problem, before: Array, w0: Array) -> bool:
    """Whether losses of tasks other than the learned one may overflow, so that all have to be computed."""
    if before.size and before.max() > LARGE**2:
        return True
    return not problem.steps_on_own_rows and max(problem.radius or 0.0, float(np.abs(w0).max(initial=0.0))) > LARGE


def overflow(problem: Problem, scheme: Scheme, w0: Array) -> str:
    """The reason why values are not finite, and a remedy: the scheme diverges, or squares overflow.

    >>> import forgetting as fg
    >>> tasks = fg.RegressionTasks([[[1.0]], [[1e149]]], [[0.0], [0.0]])
    >>> overflow(tasks, fg.schemes.Kaczmarz(), np.array([1e149])).partition(";")[0]
    'overflow: losses exceed 1.8e+308, since X of task 1 has the size 1e+149 and w_0 is 1e+149 away from a solution'
    """
    steady = scheme.nonexpansive or scheme.linear_on(problem) is not None
    if not steady or growth(problem, scheme):
        return "the iterates diverged to values that are not finite; use a smaller step size"
    norms = None if problem.steps_on_own_rows else problem.norms
    sizes = [] if norms is None else [f"X of task {np.argmax(norms)} has the size {np.max(norms):.3g}"]
    sets = norms is None and problem.half_squared_distances
    if norms is None and not sets and problem.radius is not None:
        sizes = [f"the longest row has the size {problem.radius:.3g}"]
    away = float("nan")
    if not problem.steps_on_own_rows:
        with suppress(ForgettingError), quietly():
            away = float(np.linalg.norm(problem.nearest_solution(w0) - w0))
    start = f"w_0 has the size {np.linalg.norm(w0):.3g}"
    sizes.append(f"w_0 is {away:.3g} away from a solution" if np.isfinite(away) else start)
    what = "the sets and w_0" if sets else "X and y, or y and w_0," if problem.linear is not None else "X, or w_0,"
    return f"overflow: losses exceed 1.8e+308, since {' and '.join(sizes)}; divide {what} by the same number"
