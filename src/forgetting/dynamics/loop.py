"""The loop of a run: the ordering picks a task, the scheme learns the task, and the steps are recorded."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from math import isfinite
from typing import Any, cast

import numpy as np

from forgetting.core.arrays import (
    Array,
    IntArray,
    Seed,
    any_array,
    as_count,
    as_function,
    as_index,
    read_only,
    seed_from,
)
from forgetting.core.memory import require_memory
from forgetting.core.numerical import quietly
from forgetting.core.progress import Progress, progress_bar, reports_progress
from forgetting.dynamics.space import Space, given_scheme, resolve, view_of
from forgetting.dynamics.trajectory import Trajectory
from forgetting.errors import InvalidInputError
from forgetting.geometry import Directions, Recorded, StepGains
from forgetting.orderings import Visits
from forgetting.orderings.base import NO_UPDATE, OrderingLike, as_ordering
from forgetting.orderings.view import TaskView
from forgetting.schemes import Learned, LinearSteps, Scheme
from forgetting.schemes.base import LearnInTurn, SchemeLike
from forgetting.schemes.linear import gains_of_steps
from forgetting.tasks import Problem
from forgetting.tasks.problem import as_problem

__all__ = ["run"]

CHUNK = 8192  # steps per call of compiled code: long enough to be fast, short enough for Ctrl-C to act soon
TABLE = 2**21  # numbers of a table of gains
FEW = 64  # steps of other code between two reports of progress
Callback = Callable[[int, Array], bool | None]
Shared = Callable[[TaskView, Space, Callable[[], Array]], TaskView]


# -------------------------------------------------------------------------------------------------------- stepping


class _Record:
    """The steps made so far: `done` steps, and the states at the recorded steps among them."""

    def __init__(self, k: int, steps: IntArray, start: Array) -> None:
        self.steps = steps
        self.order = np.empty(k, dtype=np.int64)
        self.before, self.after = np.empty(k), np.empty(k)
        self.inner_steps = np.ones(k, dtype=np.int64)
        self.states = np.empty((len(steps), *start.shape))
        self.states[0] = start
        self.complaints: list[str] = []
        self.done = 0

    @property
    def kept(self) -> int:
        """The number of states recorded so far."""
        return int(np.searchsorted(self.steps, self.done, side="right"))

    def skip(self, state: Array) -> None:
        """Count a step that learns no task."""
        step = self.done
        self.order[step], self.inner_steps[step] = NO_UPDATE, 0
        self.before[step] = self.after[step] = 0.0
        if self.kept < len(self.steps) and self.steps[self.kept] == step + 1:
            self.states[self.kept] = state
        self.done = step + 1


class _Compiled:
    """Makes linear steps on directions by compiled code."""

    def __init__(self, directions: Directions, steps: LinearSteps, state: Array) -> None:
        self.directions, self.steps = directions, steps
        self.first = gains_of_steps(directions, steps, 1, CHUNK) if steps.alike else None
        self.made = 0  # steps that learned a task
        self.state = read_only(np.ascontiguousarray(state).copy())

    @property
    def chunk(self) -> int:
        """The number of steps to make at once."""
        return CHUNK if self.steps.alike else int(np.clip(TABLE // max(1, len(self.directions.sigma)), 1, CHUNK))

    def _gains(self, count: int) -> StepGains:
        """The gains of the next steps."""
        if self.first is None:
            return gains_of_steps(self.directions, self.steps, self.made + 1, count)
        return self.first._replace(which=self.first.which[:count], keep=self.first.keep[:count])

    def advance(self, order: IntArray, record: _Record) -> None:
        directions = self.directions
        distinct = directions.distinct(order)
        first, last = record.done, record.done + len(order)
        kept = slice(record.kept, int(np.searchsorted(record.steps, last, side="right")))
        kept_at = record.steps[kept] - first
        before, after = record.before[first:last], record.after[first:last]
        state, gains = self.state.copy(), self._gains(len(order))
        if directions.outputs is None:
            recorded = Recorded(kept_at, record.states[kept], before, after)
            directions.advance(gains, None, distinct, state, recorded)
        else:
            losses = np.empty((2, directions.outputs, len(order)))
            for o in range(directions.outputs):
                states = np.empty((len(kept_at), state.shape[1]))
                recorded = Recorded(kept_at, states, losses[0, o], losses[1, o])
                directions.advance(gains, o, distinct, state[o], recorded)
                record.states[kept, o] = states
            before[:], after[:] = losses.sum(axis=1)
        if not directions.explained:
            before += directions.unexplained[distinct]
            after += directions.unexplained[distinct]
        record.order[first:last] = order
        self.made += len(order)
        self.state, record.done = read_only(state), last


class _Interpreted:
    """Makes steps of any scheme on any problem, by a call of `learn` for each step."""

    def __init__(self, space: Space, scheme: Scheme, state: Array, rng: np.random.Generator) -> None:
        self.problem = cast(Problem, space.problem)  # an intrinsic scheme gets a geometry as its problem
        self.scheme = scheme
        self.scale = scheme.scale_of_iterates
        self.state = read_only(state)
        #: with several outputs, an intrinsic scheme gets the reduced problem of each of them in turn, or all at once
        self.parts: tuple[Problem, ...] = ()
        if space.geometry is not None and space.geometry.outputs is not None and not scheme.all_outputs:
            self.parts = cast(tuple[Problem, ...], space.geometry.each_output)
            self.memory: Any = [scheme.start(part, z, rng) for part, z in zip(self.parts, self.state, strict=True)]
        else:
            self.memory = scheme.start(self.problem, self.state, rng)
        self.in_turn = None if self.parts else scheme.learn_in_turn(self.problem, self.memory)

    def _learn(self, task: int, step: int) -> tuple[Array, int, str | None, float | None, float | None]:
        """The next state, the number of inner steps, a complaint, and the loss before and after, if it is known."""
        if not self.parts:
            learned = self.scheme.learn(self.problem, task, self.state, self.memory)
            return self._point(learned, task, step), *learned[1:]
        outputs = [
            self.scheme.learn(part, task, z, memory)
            for part, z, memory in zip(self.parts, self.state, self.memory, strict=True)
        ]
        together = Learned(np.stack([learned.w for learned in outputs]))
        complaint = next((learned.complaint for learned in outputs if learned.complaint), None)
        return self._point(together, task, step), sum(learned.inner_steps for learned in outputs), complaint, None, None

    def _point(self, learned: Any, task: int, step: int) -> Array:
        """The iterate in `learned`, checked and copied."""
        if isinstance(learned, Learned):
            point = learned.w
            if point is self.state:
                return self.state
            plain = type(point) is np.ndarray and point.dtype == np.float64 and point.shape == self.state.shape
            if plain and isfinite(np.vdot(point, point)):
                return point.copy()
        return self._odd_point(learned, f"{self.scheme}, step {step} (task {task}): learn")

    def _odd_point(self, learned: Any, who: str) -> Array:
        """The iterate in `learned`, if it holds integers or its square overflows; any other iterate is refused.

        An intrinsic scheme may diverge until its iterates overflow, and the status of the run says so. An iterate that
        is not finite right after an iterate of moderate size is refused.
        """
        if not isinstance(learned, Learned):
            raise InvalidInputError(f"{who} must return fg.schemes.Learned(w), got {type(learned).__name__}")
        given, shape = np.asarray(learned.w), self.state.shape
        if given.dtype.kind not in "biuf" or given.shape != shape:
            raise InvalidInputError(
                f"{who} gave {given.dtype} of shape {given.shape}, expected real numbers of shape {shape}"
            )
        point = np.array(given, dtype=np.float64)
        bad = np.flatnonzero(~np.isfinite(point))
        if bad.size and (not self.scheme.intrinsic or isfinite(np.vdot(self.state, self.state))):
            raise InvalidInputError(f"{who} gave w[{bad[0]}] = {point[bad[0]]}")
        return point

    def _loss(self, task: int, state: Array) -> float:
        return float(self.problem.task_loss(task, state if self.scale == 1 else state / self.scale))

    @quietly()
    def advance(self, order: IntArray, record: _Record) -> None:
        last = record.done + len(order)
        while record.done < last:
            if self.in_turn is not None:
                self._advance_in_turn(self.in_turn, order[record.done - last :], record)
            if record.done < last:
                self._advance(int(order[record.done - last]), record)

    def _advance_in_turn(self, learn: LearnInTurn, order: IntArray, record: _Record) -> None:
        """Make as many steps at once as the scheme can."""
        first, last = record.done, record.done + len(order)
        kept = slice(record.kept, int(np.searchsorted(record.steps, last, side="right")))
        parts = record.steps[kept] - first, record.states[kept], record.before[first:last], record.after[first:last]
        state = self.state.copy()
        made = learn(order, state, Recorded(*parts), record.inner_steps[first:last])
        if made:
            record.order[first : first + made] = order[:made]
            self.state, record.done = read_only(state), first + made

    def _advance(self, task: int, record: _Record) -> None:
        """Make one step."""
        t, kept = record.done, record.kept
        point, steps, complaint, before, after = self._learn(task, t + 1)
        record.order[t] = task
        record.before[t] = self._loss(task, self.state) if before is None else before
        record.after[t] = self._loss(task, point) if after is None else after
        record.inner_steps[t] = steps
        if complaint:
            record.complaints.append(complaint)
        if kept < len(record.steps) and record.steps[kept] == t + 1:
            record.states[kept] = point
        self.state = read_only(point)
        record.done = t + 1  # the last statement, so that after Ctrl-C the record holds complete steps only


def seed_of_order(seed: int) -> np.random.SeedSequence:
    """The seed of the order of a run; the scheme has one of its own."""
    return np.random.SeedSequence(seed, spawn_key=(0,))


def recorded_steps(k: int, record_every: int | Sequence[int]) -> IntArray:
    """The recorded steps: every `record_every`-th step or the steps listed, and always 0 and k."""
    if any_array(record_every, "record_every").ndim == 0:
        every = as_count(record_every, "record_every", least=1)
        require_memory(
            32.0 * (k // every), f"the numbers of {k // every} recorded steps", "record fewer: record_every="
        )
        chosen = np.arange(0, k + 1, every)
    else:
        chosen = as_index(record_every, k + 1, "record_every")  # type: ignore[arg-type]
    return np.unique(np.concatenate([chosen, [0, k]]))


# ------------------------------------------------------------------------------------------------------------- run


@reports_progress
def run(
    problem: Problem,
    ordering: OrderingLike,
    k: int,
    scheme: SchemeLike | None = None,
    seed: Seed = 0,
    w0: Any = None,
    record_every: int | Sequence[int] = 1,
    callback: Callback | None = None,
    *,
    progress: Progress = False,
) -> Trajectory:
    """Learn k tasks, one after another.

    Args:
        problem: regression tasks, kernel tasks, classification tasks, convex sets, or any other `Problem`.
        ordering: the order in which tasks are learned: one of `fg.orderings`, its name as on the command line
            ("cyclic", "with-replacement p=1,1,2"), or a list of task numbers.
        k: number of steps.
        scheme: how a task is learned: one of `fg.schemes`, or its name as on the command line ("ridge lam=0.1"); None
            is the problem's natural scheme (block Kaczmarz for regression).
        seed: determines the random numbers of the ordering and of the scheme: a number, a NumPy generator or
            SeedSequence, from which a number is drawn, or None for a fresh number. The result has the number.
        w0: the start; 0 if left out.
        record_every: n to record every n-th step, or a list of steps; steps 0 and k are always recorded.
        callback: called as callback(step, w) at each recorded step; True stops the run.
        progress: True for a bar in a terminal or a notebook after the first second, or a function to be called as
            progress(name, done, total).

    At a step at which the ordering says "no update" (as `fg.orderings.Quantile` does), w stays and `order` has -1.

    Ctrl-C raises `KeyboardInterrupt`, whose attribute `trajectory` holds the steps made so far.

    >>> import forgetting as fg
    >>> run = fg.run(fg.families.two_lines(0.5), fg.orderings.Cyclic(), k=4)
    >>> run.iterates.shape, run.losses.shape, run.loss_matrix.shape, run.forgetting.shape
    ((5, 2), (5,), (5, 2), (4,))
    >>> run.status
    'completed 4 steps'
    >>> fg.run(fg.families.two_lines(0.5), [0, 1, 1], k=3, scheme="sgd step_size=0.5", seed=None).ordering.seq
    (0, 1, 1)
    """
    callback = None if callback is None else as_function(callback, "callback")
    making = steps_of(problem, ordering, k, scheme, seed, w0, record_every, callback)
    next(making)
    with progress_bar("learning") as report:
        while True:
            try:
                report("learning", next(making), k)
            except StopIteration as end:
                made: Trajectory = end.value
                return made
            except KeyboardInterrupt as interrupt:
                making.throw(interrupt)  # raises it again, with the steps made so far


def steps_of(
    problem: Problem,
    ordering: OrderingLike,
    k: int,
    scheme: SchemeLike | None,
    seed: Seed,
    w0: Any,
    record_every: int | Sequence[int],
    callback: Callback | None,
    shared: Shared | None = None,
) -> Generator[int, None, Trajectory]:
    """Make a run: gives the number of steps made, 0 at first, after each of its parts, and returns the run.

    `shared` may change what an ordering that looks at the iterate sees of it.
    """
    k, seed, ordering = as_count(k, "k"), seed_from(seed), as_ordering(ordering, as_problem(problem).names)
    steps = recorded_steps(k, record_every)
    given = given_scheme(problem, scheme)
    scheme, space = resolve(problem, given, w0, k)
    ordering.check(problem.num_tasks, k)
    scheme_seed = np.random.SeedSequence(seed, spawn_key=(1,))
    start = space.start()
    require_memory(
        32.0 * k + 8.0 * len(steps) * start.size,  # the order, inner steps, losses before and after; the iterates
        f"{k} steps with {len(steps)} recorded iterates of {start.size} numbers",
        "record fewer iterates, record_every=" if len(steps) * start.size > 4 * k else "use fewer steps",
    )
    stepper: _Compiled | _Interpreted
    linear = scheme.linear_steps_on(problem) if scheme.intrinsic else None
    if linear is not None and space.directions is not None:
        stepper = _Compiled(space.directions, linear, start)
        chunk = stepper.chunk
    else:
        chunk = FEW
        stepper = _Interpreted(space, scheme, start, np.random.default_rng(scheme_seed))
    view = view_of(problem, space, lambda: stepper.state) if ordering.adaptive else view_of(problem)
    if shared is not None:
        view = shared(view, space, lambda: stepper.state)
    visits = Visits(ordering, view, np.random.default_rng(seed_of_order(seed)))
    record = _Record(k, steps, start)

    def trajectory(ending: str, interrupted: bool = False) -> Trajectory:
        done, kept = record.done, record.kept
        return Trajectory(
            problem=problem,
            ordering=ordering,
            scheme=given,
            seed=seed,
            order=record.order[:done],
            steps=steps[:kept],
            inner_steps=record.inner_steps[:done],
            ending=ending,
            complaints=tuple(record.complaints),
            interrupted=interrupted,
            w0=space.w0,
            states=record.states[:kept],
            before=record.before[:done],
            after=record.after[:done],
            _space=space,
        )

    yield 0
    try:
        while record.done < k:
            upcoming = int(steps[record.kept])
            size = 1 if ordering.adaptive else chunk if callback is None else upcoming - record.done
            order = visits.take(min(size, k - record.done))
            if ordering.skips and order[0] == NO_UPDATE:
                record.skip(stepper.state)
            else:
                stepper.advance(order, record)
            yield record.done
            if callback is None or record.done != upcoming:
                continue
            learned = np.count_nonzero(record.order[:upcoming] != NO_UPDATE)
            left = scheme.left_after(np.array(learned))
            if callback(upcoming, space.iterates(stepper.state, left)):
                return trajectory(f"stopped by the callback after {upcoming} of {k} steps")
    except KeyboardInterrupt as interrupt:
        interrupt.trajectory = trajectory(  # type: ignore[attr-defined]
            f"interrupted after {record.done} of {k} steps", interrupted=True
        )
        raise
    return trajectory(f"completed {k} steps")
