"""The only loop: an ordering picks a task, a scheme learns it, and the trajectory is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, Protocol

import numpy as np

from forgetting import metrics, schemes
from forgetting._arrays import Array, IntArray, as_count, as_index, as_vector
from forgetting.errors import InvalidInputError, NotSupportedError, OrderingError
from forgetting.geometry import Geometry
from forgetting.orderings import Ordering, TaskView
from forgetting.schemes import LinearScheme, Scheme
from forgetting.tasks import KernelTasks, Problem

__all__ = ["Space", "Trajectory", "describe", "linear_gains", "recorded_steps", "resolve", "run", "view_of"]

CHUNK = 8192  # steps handed to compiled code at once: long enough to be fast, short enough for Ctrl-C
Callback = Callable[[int, Array], bool | None]


# ---------------------------------------------------------------------------------------------------- coordinates


class Space(Protocol):
    """Where states live: how to read iterates, losses and distances off them."""

    @property
    def problem(self) -> Any: ...
    @property
    def w0(self) -> Array: ...

    def iterates(self, states: Array) -> Array: ...
    def task_losses(self, states: Array) -> Array: ...
    def mean_losses(self, states: Array) -> Array: ...
    def distances(self, states: Array) -> Array: ...
    def start(self) -> Array: ...


@dataclass(frozen=True)
class _Reduced:
    """Errors z in the frame of a geometry."""

    problem: Geometry
    w0: Array

    def start(self) -> Array:
        return self.problem.start(self.w0)

    def iterates(self, states: Array) -> Array:
        return self.problem.lift(states, self.w0)

    def task_losses(self, states: Array) -> Array:
        return self.problem.task_losses(states)

    def mean_losses(self, states: Array) -> Array:
        return self.problem.mean_losses(states)

    def distances(self, states: Array) -> Array:
        return self.problem.distances(states)


@dataclass(frozen=True)
class _Direct:
    """The problem's own coordinates."""

    problem: Problem
    w0: Array

    def start(self) -> Array:
        return self.w0.copy()

    def iterates(self, states: Array) -> Array:
        return states

    def task_losses(self, states: Array) -> Array:
        return _by_row(self.problem.task_losses, states)

    def mean_losses(self, states: Array) -> Array:
        return np.asarray(np.mean(self.task_losses(states), axis=-1))

    def distances(self, states: Array) -> Array:
        return _by_row(self.problem.distances, states)


def _by_row(function: Callable[[Array], Array], states: Array) -> Array:
    """A function of one state, applied to one or to each row of several."""
    return np.stack([function(state) for state in states]) if states.ndim == 2 else function(states)


# --------------------------------------------------------------------------------------------------------- result


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What a run gave. Iterates, losses and distances are read off the recorded states when asked for.

    Attributes:
        order: (k,) the tasks, in the order learned.
        steps: the recorded steps, from 0 to k.
        inner_steps: (k,) steps of the inner solver.
        status: what happened, in a sentence or more.
        interrupted: the run was cut short, and holds what was computed.
    """

    problem: Any
    ordering: Ordering
    scheme: Scheme
    seed: int
    order: IntArray
    steps: IntArray
    inner_steps: IntArray
    status: str
    interrupted: bool
    w0: Array = field(repr=False)
    states: Array = field(repr=False)
    before: Array = field(repr=False)
    after: Array = field(repr=False)
    _space: Space = field(repr=False)

    @property
    def k(self) -> int:
        """Number of steps made."""
        return len(self.order)

    @cached_property
    def iterates(self) -> Array:
        """w at the recorded steps, (len(steps), d)."""
        return self._space.iterates(self.states)

    @cached_property
    def losses(self) -> Array:
        """L(w) at the recorded steps, (len(steps),)."""
        return self._space.mean_losses(self.states)

    @cached_property
    def loss_matrix(self) -> Array:
        """Every task's loss at the recorded steps, (len(steps), T)."""
        return self._space.task_losses(self.states)

    @cached_property
    def residuals(self) -> Array:
        """Distance to every task's solutions at the recorded steps, (len(steps), T)."""
        return self._space.distances(self.states)

    @cached_property
    def forgetting(self) -> Array:
        """F(1), ..., F(k) of `def:forgetting`; NaN at steps that were not recorded."""
        result = np.full(self.k, np.nan)
        visits = np.zeros(self._space.problem.num_tasks)
        learned = np.cumsum(self.after)
        previous = 0
        for rows in _chunks(len(self.steps), 1024):
            losses = self._space.task_losses(self.states[rows])
            for step, row in zip(self.steps[rows].tolist(), losses, strict=True):
                np.add.at(visits, self.order[previous:step], 1)
                previous = step
                if step > 0:
                    result[step - 1] = (visits @ row - learned[step - 1]) / step
        return result

    @cached_property
    def regret(self) -> Array:
        """1/t sum_(s<=t) L_tau(s)(w_(s-1)), for t = 1..k; known at every step."""
        return metrics.paper_regret(self.before)

    @cached_property
    def predictions(self) -> Array:
        """For kernel tasks: the model's values at all rows, at the recorded steps, (len(steps), N)."""
        if not isinstance(self.problem, KernelTasks):
            raise NotSupportedError("predictions are for KernelTasks; for data matrices compute X @ w from `iterates`")
        return self.problem.predict(self.iterates)


def _chunks(total: int, size: int) -> Iterator[slice]:
    for start in range(0, total, size):
        yield slice(start, min(start + size, total))


# -------------------------------------------------------------------------------------------------------- stepping


class _Stepper(Protocol):
    """Advances a state through a piece of an order and keeps the states after the asked-for steps."""

    state: Array

    def advance(self, order: IntArray, keep: IntArray) -> _Piece: ...


@dataclass(frozen=True)
class _Piece:
    order: IntArray
    states: Array
    before: Array
    after: Array
    inner_steps: IntArray
    complaints: tuple[str, ...]


class _Compiled:
    """Linear schemes on a geometry."""

    def __init__(self, geometry: Geometry, scheme: LinearScheme, state: Array) -> None:
        self.geometry = geometry
        self.gains = linear_gains(geometry, scheme)
        self.state = np.ascontiguousarray(state).copy()

    def advance(self, order: IntArray, keep: IntArray) -> _Piece:
        from forgetting import _kernels

        geometry = self.geometry
        distinct = geometry.index[order]
        kept = np.empty((len(keep), geometry.dim))
        before, after = np.empty(len(order)), np.empty(len(order))
        state = self.state.copy()
        _kernels.advance(
            geometry.rows,
            geometry.offsets,
            self.gains,
            geometry.targets,
            geometry.sigma,
            distinct,
            state,
            keep,
            kept,
            before,
            after,
        )
        self.state = state
        floor = geometry.unexplained[distinct]
        return _Piece(order, kept, before + floor, after + floor, np.ones(len(order), dtype=np.int64), ())


class _Interpreted:
    """Any scheme on any problem, one call of `learn` a step."""

    def __init__(self, problem: Any, scheme: Scheme, state: Array, rng: np.random.Generator) -> None:
        self.problem = problem
        self.scheme = scheme
        self.state = _read_only(state)
        self.memory = scheme.start(problem, self.state, rng)

    def advance(self, order: IntArray, keep: IntArray) -> _Piece:
        wanted = set(keep.tolist())
        kept: list[Array] = []
        before, after = np.empty(len(order)), np.empty(len(order))
        inner = np.empty(len(order), dtype=np.int64)
        complaints = []
        done = 0
        try:
            for t, task in enumerate(order.tolist()):
                before[t] = self.problem.task_loss(task, self.state)
                learned = self.scheme.learn(self.problem, task, self.state, self.memory)
                after[t] = self.problem.task_loss(task, learned.w)
                inner[t] = learned.inner_steps
                self.state = _read_only(learned.w)
                if learned.complaint:
                    complaints.append(learned.complaint)
                if t + 1 in wanted:
                    kept.append(self.state.copy())
                done = t + 1
        except KeyboardInterrupt:  # a step may take long: what is complete is handed back as a shorter piece
            kept = kept[: np.count_nonzero(keep <= done)]
        states = np.stack(kept) if kept else np.empty((0, len(self.state)))
        return _Piece(order[:done], states, before[:done], after[:done], inner[:done], tuple(complaints))


def _read_only(state: Array) -> Array:
    """A view that a scheme cannot write into: what was recorded stays as it was."""
    view = state.view()
    view.flags.writeable = False
    return view


def linear_gains(geometry: Geometry, scheme: LinearScheme) -> Array:
    """The scheme's gain for each of the R directions."""
    gains = np.ascontiguousarray(scheme.gains(geometry.sigma), dtype=np.float64)
    if gains.shape != geometry.sigma.shape or not np.isfinite(gains).all():
        raise InvalidInputError(f"{scheme}: gains must be finite, one per singular value, got shape {gains.shape}")
    return gains


def resolve(problem: Any, scheme: Scheme | None, w0: Any) -> tuple[Scheme, Space]:
    """The scheme to use (None: the problem's natural one) and the coordinates to use it in."""
    if not isinstance(problem, Problem):
        raise InvalidInputError(f"expected a problem such as RegressionTasks, got {type(problem).__name__}")
    chosen: Scheme = getattr(schemes, problem.natural_scheme)() if scheme is None else scheme
    if not isinstance(chosen, Scheme):
        raise InvalidInputError(f"expected a scheme such as fg.schemes.Kaczmarz(), got {scheme!r}")
    start = np.zeros(problem.dim) if w0 is None else as_vector(w0, problem.dim, "w0").copy()
    if not chosen.intrinsic:
        return chosen, _Direct(problem, start)
    geometry = getattr(problem, "geometry", None)
    if geometry is None:
        raise NotSupportedError(f"{chosen} is a scheme for regression tasks, not for {type(problem).__name__}")
    if chosen.needs_realizable:
        problem.require_realizable(str(chosen))  # type: ignore[attr-defined]
    return chosen, _Reduced(geometry, start)


def recorded_steps(k: int, record_every: int | Sequence[int]) -> IntArray:
    """0, every, 2 every, ..., and k; or the given steps, and 0 and k."""
    if np.ndim(record_every) == 0:
        chosen = np.arange(0, k + 1, as_count(record_every, "record_every", least=1))
    else:
        chosen = as_index(record_every, k + 1, "record_every")  # type: ignore[arg-type]
    return np.unique(np.concatenate([chosen, [0, k]]))


def view_of(problem: Any, space: Space | None = None, state: Callable[[], Array] | None = None) -> TaskView:
    """What an ordering may see of the problem; with a state, also the live distances and losses."""
    norms = getattr(problem, "norms", None)
    if space is None or state is None:
        return TaskView(problem.num_tasks, norms)
    return TaskView(
        problem.num_tasks,
        norms,
        lambda: space.distances(state()),
        lambda: space.task_losses(state()),
    )


# ------------------------------------------------------------------------------------------------------------- run


def run(
    problem: Any,
    ordering: Ordering,
    k: int,
    scheme: Scheme | None = None,
    seed: int = 0,
    w0: Any = None,
    record_every: int | Sequence[int] = 1,
    callback: Callback | None = None,
) -> Trajectory:
    """Learn k tasks, one after another.

    Args:
        problem: regression tasks, kernel tasks, or anything with the `Problem` protocol.
        ordering: who comes next; see `fg.orderings`.
        k: number of steps.
        scheme: how a task is learned; None is the problem's natural scheme (block Kaczmarz for regression).
        seed: decides the order, and nothing else unless the scheme itself is random.
        w0: the start; 0 if left out.
        record_every: keep every this many steps, or the steps listed (0 and k are always kept).
        callback: called as callback(step, w) at each recorded step; True stops the run.

    Ctrl-C returns what was computed so far, with `interrupted` set.

    >>> import forgetting as fg
    >>> run = fg.run(fg.families.two_lines(0.5), fg.orderings.Cyclic(), k=4)
    >>> run.iterates.shape, run.losses.shape, run.loss_matrix.shape, run.forgetting.shape
    ((5, 2), (5,), (5, 2), (4,))
    >>> run.status
    'completed 4 steps'
    """
    k = as_count(k, "k")
    steps = recorded_steps(k, record_every)
    if not isinstance(ordering, Ordering):
        raise InvalidInputError(f"expected an ordering such as fg.orderings.Cyclic(), got {ordering!r}")
    scheme, space = resolve(problem, scheme, w0)
    ordering.check(problem.num_tasks, k)
    order_seed, scheme_seed = np.random.SeedSequence(as_count(seed, "seed")).spawn(2)
    start = space.start()
    stepper: _Stepper
    if isinstance(scheme, LinearScheme):
        stepper = _Compiled(space.problem, scheme, start)
    else:
        stepper = _Interpreted(space.problem, scheme, start, np.random.default_rng(scheme_seed))
    view = view_of(problem, space, lambda: stepper.state) if ordering.adaptive else view_of(problem)
    visits = ordering.visits(view, np.random.default_rng(order_seed))

    pieces: list[_Piece] = []
    done, ending = 0, ""
    try:
        while done < k and not ending:
            upcoming = steps[np.searchsorted(steps, done, side="right") :]
            size = 1 if ordering.adaptive else CHUNK if callback is None else int(upcoming[0]) - done
            piece = _take(visits, min(size, k - done), problem.num_tasks, ordering, done)
            keep = upcoming[: np.searchsorted(upcoming, done + len(piece), side="right")] - done
            pieces.append(stepper.advance(piece, keep))
            done += len(pieces[-1].order)
            if len(pieces[-1].order) < len(piece):
                raise KeyboardInterrupt
            if callback is not None and len(keep) and callback(done, space.iterates(stepper.state)):
                ending = f"stopped by the callback after {done} of {k} steps"
    except KeyboardInterrupt:
        ending = f"interrupted after {sum(len(piece.order) for piece in pieces)} of {k} steps"

    kept = [start[None], *(piece.states for piece in pieces)]
    order = np.concatenate([np.empty(0, dtype=np.int64), *(piece.order for piece in pieces)])
    steps = steps[steps <= len(order)]
    before = np.concatenate([np.empty(0), *(piece.before for piece in pieces)])
    complaints = [text for piece in pieces for text in piece.complaints]
    return Trajectory(
        problem=problem,
        ordering=ordering,
        scheme=scheme,
        seed=seed,
        order=order,
        steps=steps,
        inner_steps=np.concatenate([np.empty(0, dtype=np.int64), *(piece.inner_steps for piece in pieces)]),
        status=describe(ending or f"completed {k} steps", complaints, before, problem),
        interrupted=ending.startswith("interrupted"),
        w0=space.w0,
        states=np.concatenate(kept),
        before=before,
        after=np.concatenate([np.empty(0), *(piece.after for piece in pieces)]),
        _space=space,
    )


def _take(visits: Iterator[int], size: int, num_tasks: int, ordering: Ordering, done: int) -> IntArray:
    """The next tasks, checked."""
    piece = np.fromiter(islice(visits, size), dtype=np.int64)
    if len(piece) < size:
        raise OrderingError(f"{ordering} ran out after {done + len(piece)} tasks")
    bad = np.flatnonzero((piece < 0) | (piece >= num_tasks))
    if bad.size:
        raise OrderingError(
            f"{ordering} named task {piece[bad[0]]} at step {done + bad[0] + 1}, but tasks are 0 to {num_tasks - 1}"
        )
    return piece


def describe(ending: str, complaints: list[str], before: Array, problem: Any) -> str:
    """How a run ended, and what a user should know about it."""
    parts = [ending]
    if complaints:
        more = f" (and {len(complaints) - 1} more)" if len(complaints) > 1 else ""
        parts.append(complaints[0] + more)
    if not np.isfinite(before).all():
        parts.append("the iterates diverged to values that are not finite; use a smaller step size")
    realizability = getattr(problem, "realizability", None)
    if realizability is not None and not realizability.holds:
        parts.append(realizability.message)
    return "; ".join(parts)
