"""`expect` and `compare`: expectations over orderings, and the differences between those of two ways of learning.

Values are exact where that fits; elsewhere they are simulated, with intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from forgetting.compute.devices import HOST, Device, as_device
from forgetting.core.arrays import Array, IntArray, Seed, any_array, as_count, as_kind, as_number, seed_from
from forgetting.core.numerical import quietly
from forgetting.core.progress import Progress, reports_progress
from forgetting.dynamics.space import given_scheme, resolve
from forgetting.dynamics.trajectory import overflow
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.expectation.engines import as_simulated, choose, engines, require
from forgetting.expectation.engines.base import require_realizable
from forgetting.expectation.engines.monte_carlo import gathered
from forgetting.expectation.intervals import caveats, column_intervals, column_quantiles, value_range
from forgetting.expectation.outcome import Expectation, Outcome
from forgetting.expectation.quantities import Quantity, resolved
from forgetting.expectation.request import FOREVER, PATIENCE, Request, Simulation
from forgetting.orderings import Ordering
from forgetting.orderings.base import OrderingLike, as_ordering
from forgetting.schemes.base import Scheme, SchemeLike
from forgetting.schemes.linear import growth
from forgetting.schemes.schedules import Scheduled
from forgetting.tasks import Problem
from forgetting.tasks.held_out_and_noise import scored_tasks
from forgetting.tasks.problem import as_problem, no_common_solution

__all__ = ["compare", "expect"]

MOST_STEPS = 10**15  # beyond it k eps is no longer small
Steps = int | float | Sequence[int | float] | IntArray | Array  # a float is a whole number or inf
Arm = OrderingLike | tuple[OrderingLike, SchemeLike | None]


@reports_progress
def expect(
    problem: Problem,
    ordering: OrderingLike,
    k: Steps,
    scheme: SchemeLike | None = None,
    w0: Any = None,
    method: str = "auto",
    quantities: Quantity | str | Sequence[Quantity | str] = ("loss", "forgetting"),
    seed: Seed = 0,
    runs: int | None = None,
    rtol: float | None = None,
    memory: float | None = None,
    confidence: float = 0.99,
    threads: int | None = None,
    patience: float = PATIENCE,
    *,
    noise: Any = None,
    test: Any = None,
    device: Any = None,
    progress: Progress = False,
) -> Expectation:
    """Expected loss, forgetting and other quantities over the randomness of the ordering.

    Methods, each of which is an engine in `forgetting.expectation.engines`:

    - moments: independent draws (any weights), any linear scheme; every k up to the largest in one pass.
    - spectral: the same, for very large k and k = inf, from one factorisation.
    - subsets: random permutations, without replacement or reshuffled, where the 2^T subsets (fewer with clones) fit.
    - seen: schemes that remember, where the memory follows from the tasks seen, such as replay of fixed rows and EWC:
      second moments given each memory, 2^T sets of tasks for replay.
    - listing: every order that can come, one by one, each with its probability: T!/(T-k)! without replacement, T^k
      with it, (T!)^epochs reshuffled (fewer with clones); any quantity, accuracies above all, and any scheme that
      draws no random numbers.
    - deterministic: any ordering and scheme without randomness, such as cyclic, explicit and greedy orders: one run.
    - monte-carlo: anything, simulated: means with intervals, and quantiles with intervals that hold for any tail.
    - auto: an exact method that fits in `memory` and takes at most `patience` seconds, else monte-carlo, with fewer
      runs where 4096 take longer; if that is not enough, a `PatienceError` says what it would cost. `method` of the
      result says which, and `notes` what exact values would have cost, and which quantity costs it.

    Quantities:

    - loss: the mean loss of all tasks at w_k. task_losses: the loss of every task at w_k. error: |w_k - w*|^2.
    - forgetting: the mean over the k visits of the loss at w_k less the loss just after the visit.
    - seen_loss: the mean over the k visits of the loss at w_k, without that subtraction.
    - next_loss: the loss at w_k of the task that is learned next; NaN where no task comes next.
    - averaged_loss: the mean loss of all tasks at the mean of w_0, ..., w_(k-1). averaged_task_losses: of every task.
    - regret: the mean over the k steps of the loss of the task just before it is learned.
    - test_loss, test_losses, test_forgetting: as loss, task_losses and forgetting, on the held-out data of `test`.
    - accuracy, task_accuracies, accuracy_forgetting (accuracy when learned less accuracy at w_k, over the visits),
      incremental_accuracy (mean over the steps, on the tasks visited so far), test_accuracy: for tasks with classes;
      exact for a given order and where all orders can be listed, else simulated, with intervals for values between 0
      and 1. The `uncertainty` of an exact one is the expected share of rows whose margin is below the rounding error
      of the run, ties included.

    All floats, labels included, count as the exact numbers that they are. Small problems are computed with 31 digits,
    and with more where 31 leave doubts; `detail` says so, and `uncertainty` bounds the error of a value.

    Args:
        problem, ordering, scheme, w0, progress: as for `run`.
        k: a number of steps, or several; np.inf for the limit, of independent draws under a linear scheme: the values
            of the stationary law, where forgetting, seen_loss and regret are means over what p draws.
        quantities: names as above, or `Quantity` objects of your own.
        seed, runs, rtol: for simulation; `seed` is as for `run`, `rtol` asks for intervals of that half-width relative
            to the value, and `runs` (rounded up to batches of 1024) is then the most to spend; as many as `patience`
            allows if left out.
        memory: bytes that an exact method may use; half of the available memory, at most 8 GiB, if left out. A result
            that is simulated for want of memory says so in its `notes`.
        confidence: of simulated intervals.
        threads: for simulation; the result does not depend on it.
        patience: seconds that `auto` may take, be it for exact values or for a simulation; np.inf to wait as long as
            it takes. They are estimated beforehand, mostly within a factor of two, and alike on all machines. Methods
            that are named have no limit.
        noise: of the labels: a standard deviation, one for each task, or a covariance of the labels of each task.
            Values are then expected over the noise and the order together. A task keeps its noise from visit to visit,
            and training losses are those on the noisy labels; held-out labels have none. Outputs have independent
            noise.
        test: held-out data of the tasks: `RegressionTasks` with the same names or in the same order, or pairs (X, y);
            they are prepared as the tasks were (`tasks.preparation`). Or the covariance of the inputs of each task (or
            one for all), whose labels are those of `w_star`. `test_loss` is added if no quantity of held-out
            data is asked for.
        device: where the methods moments and spectral compute: "cuda" or another torch device, or "cupy"; the CPU if
            left out. Values are then computed in float64 (16 digits), and `uncertainty` holds for them. `memory` is by
            default half of what is free there.

    >>> import forgetting as fg
    >>> tasks = fg.families.two_lines(np.pi / 3)
    >>> e = fg.expect(tasks, fg.orderings.WithReplacement(), k=[1, 10, 100])
    >>> e.method, e.loss
    ('moments', array([1.40625000e-01, 2.04636308e-03, 8.71333181e-22]))
    >>> bool(np.all(e.uncertainty["loss"] < 1e-15 * e.loss))
    True
    >>> e = fg.expect(tasks, "with-replacement", 10, noise=0.1, test=np.eye(2), quantities=("loss", "test_loss"))
    >>> round(float(e.loss), 9), round(float(e.values["test_loss"]), 9)   # the noise is fitted, and spoils w
    (0.002091838, 0.017785291)

    No w solves the tasks w = 0 and w = 1, and the iterate is at either of them for ever:

    >>> apart = fg.RegressionTasks([[[1.0]], [[1.0]]], [[0.0], [1.0]])
    >>> e = fg.expect(apart, fg.orderings.WithReplacement(), k=[10, 10**8, np.inf])
    >>> e.k.tolist(), e.loss.round(12).tolist(), e.forgetting.round(6).tolist()
    ([10.0, 100000000.0, inf], [0.25, 0.25, 0.25], [0.225, 0.25, 0.25])
    """
    simulation = Simulation(
        seed_from(seed),
        None if runs is None else as_count(runs, "runs", least=1),
        None if rtol is None else as_number(rtol, "rtol", above=0),
        as_level(confidence),
        None if threads is None else as_count(threads, "threads", least=1),
    )
    question = ask(problem, ordering, k, scheme, w0, quantities, memory, simulation, patience, noise, test, device)
    as_kind(method, str, "the name of a method", "method: ")
    if method == "auto":
        engine, notes, request = choose(question.request)
    else:
        engine, notes, request = engines.get(method), (), question.request
        require(engine, request)
    if not request.device.host and not engine.on_device:
        notes += (f"computed on the CPU: the method {engine.name!r} cannot compute on {request.device}",)
        request = replace(request, device=HOST)
    with quietly():  # a scheme that diverges says so in the notes
        outcome = engine.solve(request)
    outcome.notes += notes
    outcome.notes += _beside(request, outcome, method) + _remembering(request, outcome)
    if noise is not None:
        outcome.notes += ("labels have noise: values are expected over the noise and the order together",)
    diverges = growth(problem, request.scheme)
    if request.linear is not None:
        diverges += no_common_solution(problem)
    outcome.notes += tuple(note for note in diverges if note not in outcome.notes)
    return question.build(engine.name, outcome)


def _beside(request: Request, outcome: Outcome, method: str) -> tuple[str, ...]:
    """A note that quantities were simulated only because others have no exact method, if that is so."""
    plain = [quantity.name for quantity in request.quantities if quantity.quadratic]
    others = [quantity.name for quantity in request.quantities if not quantity.quadratic]
    if method != "auto" or not outcome.runs or not plain or not others or request.linear is None:
        return ()
    return (
        f"{' and '.join(plain)}: simulated beside {others[0]}, which only a list of all orders has exactly; a call "
        f"without {others[0]} may have exact values",
    )


def _remembering(request: Request, outcome: Outcome) -> tuple[str, ...]:
    """A note on why a scheme that remembers was simulated, if that is so."""
    scheme = request.scheme
    if not outcome.runs or not scheme.remembers:
        return ()
    match scheme.memory_law:
        case "random":
            reason = f"what {scheme} keeps is drawn at random, so that an order does not decide its run"
        case "iterate":
            reason = f"what {scheme} keeps depends on w, so that only a list of all orders is exact"
        case "unknown":
            followed = request.problem.geometry is None or request.linear is not None
            reason = "" if followed else f"no exact method but a list of all orders follows {scheme}"
        case _:  # the choice of the engine says where exact values take too long
            reason = engines.get("seen").covers(request) or ""
    return (f"simulated: {reason}",) if reason else ()


@reports_progress
def compare(
    problem: Problem,
    first: Arm,
    second: Arm,
    k: Steps,
    w0: Any = None,
    quantities: Quantity | str | Sequence[Quantity | str] = ("loss", "forgetting"),
    seed: Seed = 0,
    runs: int | None = None,
    confidence: float = 0.99,
    patience: float = PATIENCE,
    *,
    progress: Progress = False,
) -> Expectation:
    """E[first] - E[second] for two orderings, or two (ordering, scheme) pairs; all arguments are as for `expect`.

    Exact if both are. Otherwise run i of both arms draws its order from the same random numbers, which cancels most of
    the noise between two schemes under one ordering, and intervals and quantiles are those of the paired differences.

    >>> import forgetting as fg
    >>> tasks = fg.families.gaussian(T=5, d=8, rank=2, seed=0)
    >>> gap = compare(tasks, fg.orderings.WithReplacement(), fg.orderings.WithoutReplacement(), k=5)
    >>> gap.method, bool(gap.loss > 0)
    ('exact difference', True)
    """
    arms = [_pair(first), _pair(second)]
    count = None if runs is None else as_count(runs, "runs", least=1)
    simulation = Simulation(seed_from(seed), count, confidence=as_level(confidence))
    questions = [
        ask(problem, ordering, k, scheme, w0, quantities, None, simulation, patience) for ordering, scheme in arms
    ]
    if all(choose(question.request).engine.exact for question in questions):
        a, b = (
            expect(problem, ordering, k, scheme, w0, quantities=quantities, patience=patience)
            for ordering, scheme in arms
        )
        values = {name: np.asarray(a.values[name]) - np.asarray(b.values[name]) for name in a.values}
        return Expectation(
            k=a.k,
            method="exact difference",
            detail=f"{a.method} less {b.method}",
            values=values,
            intervals={name: np.stack([value, value], axis=-1) for name, value in values.items()},
            uncertainty={
                name: np.asarray(a.uncertainty[name]) + np.asarray(b.uncertainty[name])
                for name in values
                if name in a.uncertainty and name in b.uncertainty
            },
            notes=tuple(dict.fromkeys(a.notes + b.notes)),
            heading="Differences of expected values over all orders",
            unit=a.unit,
        )
    requests = [as_simulated(question.request) for question in questions]
    count = min(request.simulation.most for request in requests)
    samples = [gathered(request, count) for request in requests]
    values, intervals, quantiles, bounded, notes = {}, {}, {}, {}, []
    ranges = [[value_range(request, quantity) for quantity in request.quantities] for request in requests]
    for quantity, first_range, second_range in zip(requests[0].quantities, *ranges, strict=True):
        name = quantity.name
        difference = samples[0][name] - samples[1][name]
        values[name] = np.mean(difference, axis=0)
        bounds = None
        if first_range is not None and second_range is not None:
            bounded[name] = bounds = first_range[0] - second_range[1], first_range[1] - second_range[0]
        intervals[name] = column_intervals(difference, bounds, simulation.confidence)
        quantiles[name] = column_quantiles(difference, simulation.confidence, bounds or (-np.inf, np.inf))
    for request, known in zip(requests, ranges, strict=True):
        notes += caveats(request, known)
    outcome = Outcome(
        f"{count} pairs of runs with common random numbers",
        values,
        {name: np.diff(value, axis=-1)[..., 0] / 2 for name, value in intervals.items()},
        intervals,
        simulation.confidence,
        count,
        tuple(dict.fromkeys(notes)),
        quantiles=quantiles,
        ranges=bounded,
        seed=simulation.seed,
        heading="Differences of expected values over random orders",
    )
    return questions[0].build("monte-carlo", outcome)


def _pair(arm: Arm) -> tuple[OrderingLike, SchemeLike | None]:
    """The ordering and the scheme of an arm; a tuple of task numbers is an ordering."""
    # a pair (ordering, scheme), or a tuple of two task numbers
    if isinstance(arm, tuple) and len(arm) == 2 and isinstance(arm[1], Scheme | str | None):
        return arm
    return cast(OrderingLike, arm), None


class Question(NamedTuple):
    """A checked request, with the steps as the caller gave them.

    Attributes:
        request: with sorted steps, and with tasks that held-out data and noise were added to.
        problem, scheme, w0: as the caller gave them.
        steps: in the order in which they were given.
        scalar: whether one step was given rather than a sequence.
    """

    request: Request
    steps: IntArray
    scalar: bool
    problem: Problem
    scheme: Scheme
    w0: Array

    def build(self, method: str, outcome: Outcome) -> Expectation:
        """The result, with the steps in the order and the shape in which they were given."""
        rank = np.argsort(np.argsort(self.steps, kind="stable"), kind="stable")
        request = self.request
        source = {"problem": self.problem, "ordering": request.ordering, "scheme": self.scheme, "w0": self.w0}
        unit = self.problem.loss_meaning
        if outcome.overflows(request.quantities, request.steps):
            note = overflow(self.problem, request.scheme, self.w0)
            outcome.notes += () if note in outcome.notes else (note,)
        return outcome.build(method, request.quantities, self.steps, self.scalar, rank, unit, **source)


def ask(
    problem: Problem,
    ordering: OrderingLike,
    k: Steps,
    scheme: SchemeLike | None = None,
    w0: Any = None,
    quantities: Quantity | str | Sequence[Quantity | str] = ("loss", "forgetting"),
    memory: float | None = None,
    simulation: Simulation | None = None,
    patience: float = PATIENCE,
    noise: Any = None,
    test: Any = None,
    device: Any = None,
) -> Question:
    """The request of a call of `expect`, whose arguments are checked here."""
    ordering = as_ordering(ordering, as_problem(problem).names)
    scalar = any_array(k, "k").ndim == 0
    counted = [_as_steps(number) for number in ([k] if scalar else k)]  # type: ignore[union-attr]
    steps = np.array(counted, dtype=np.int64)
    if steps.size == 0:
        raise InvalidInputError("k is empty; give at least one number of steps")
    wanted = resolved(quantities)
    if test is not None and not _about_tests(wanted):
        wanted += resolved("test_loss")
    last, given = int(np.max(steps, where=steps < FOREVER, initial=0)), given_scheme(problem, scheme)
    chosen, space = resolve(problem, given, w0, last)
    ordering.check(problem.num_tasks, last)
    scheme = chosen.linear_on(problem) or chosen  # engines know the linear scheme that makes the same steps
    there = as_device(device)
    tasks, start = problem, space.w0
    if not ordering.adaptive and not _about_errors(wanted):  # distances differ from coordinates to coordinates
        tasks, scheme, start = chosen.in_coordinates(problem, start) or (tasks, scheme, start)
    tasks, start = _scored(tasks, start, scheme, ordering, wanted, noise, test)
    request = Request(
        tasks,
        ordering,
        scheme,
        start,
        np.sort(steps),
        wanted,
        _memory(memory, there),
        as_patience(patience),
        simulation or Simulation(),
        there,
    )
    if request.one_more and scheme.at_step(1) is not scheme:  # the last step serves, for its task alone
        request = replace(request, scheme=Scheduled(lambda t: scheme.at_step(min(t, max(1, last)))))
    if request.linear is not None and request.averages("error"):
        require_realizable(request, "the quantity 'error'")
    return Question(request, steps, scalar, problem, given.linear_on(problem) or given, space.w0)


def _scored(
    problem: Problem,
    w0: Array,
    scheme: Scheme,
    ordering: Ordering,
    wanted: Sequence[Quantity],
    noise: Any,
    test: Any,
) -> tuple[Problem, Array]:
    """The tasks with held-out data and noise, and the start."""
    if test is None and (held_out := _about_tests(wanted)):
        raise InvalidInputError(f"{held_out[0]} is about held-out data; give them by test=")
    if noise is None and test is None:
        return problem, w0
    given = "noise=" if test is None else "test="
    if scheme.linear_steps_on(problem) is None:
        raise NotSupportedError(f"{given} needs a linear scheme on regression tasks, not {scheme}")
    if noise is not None and ordering.adaptive:
        raise NotSupportedError(f"noise= needs an order that does not depend on the noise, but {ordering} looks at w")
    if _about_errors(wanted):
        raise NotSupportedError(f"the quantity 'error' does not work with {given}; ask for it in a call of its own")
    scored = scored_tasks(problem, test, noise)
    return scored, scored.start(w0)


def _about_tests(wanted: Sequence[Quantity]) -> list[str]:
    """The names of the quantities that are about held-out data."""
    return [quantity.name for quantity in wanted if any(term.held_out for term in quantity.terms())]


def _about_errors(wanted: Sequence[Quantity]) -> bool:
    """Whether a quantity is about the distance from w*."""
    return any(term.average == "error" for quantity in wanted for term in quantity.terms())


def _as_steps(given: Any) -> int:
    """Check a number of steps; FOREVER stands for inf."""
    number = given[()] if type(given) is np.ndarray and given.ndim == 0 else given
    if isinstance(number, float | np.floating) and number == np.inf:
        return FOREVER
    return as_count(given, "k", most=MOST_STEPS)


def as_patience(seconds: float) -> float:
    """Check `patience=`: seconds to wait, or inf."""
    return seconds if isinstance(seconds, float) and seconds == np.inf else as_number(seconds, "patience", above=0)


def as_level(confidence: float) -> float:
    """Check `confidence=`: a level between 0 and 1."""
    level = as_number(confidence, "confidence")
    if not 0 < level < 1:
        raise InvalidInputError(f"confidence must be between 0 and 1, got {level:g}")
    return level


def _memory(given: float | None, device: Device) -> float:
    if given is not None:
        return as_number(given, "memory", above=0)
    return min(8.0 * 2**30, device.memory / 2) if device.host else device.memory / 2
