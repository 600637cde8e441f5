"""Conformance checks for your own ordering, scheme or convex set, to be called in your tests.

A check raises `AssertionError` that names the property that fails and a case that shows the failure.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_count, as_flag, as_number
from forgetting.core.names import only
from forgetting.dynamics.loop import run
from forgetting.orderings import Cyclic, Explicit, Ordering, TaskView, Visits, WithReplacement, laws
from forgetting.schemes import Kaczmarz, Scheme
from forgetting.sets.custom import check_convex_set
from forgetting.tasks import KernelTasks, RegressionTasks, families

__all__ = ["check_convex_set", "check_ordering", "check_scheme"]
__dir__ = only(__all__)


def check_ordering(ordering: Ordering, num_tasks: int = 7, k: int = 50) -> None:
    """Check that an ordering names existing tasks, is determined by its seed, ends only at its `limit`, and follows the
    law that it states. Exact expectations and bounds rely on the law.

    >>> import forgetting as fg
    >>> check_ordering(fg.orderings.Reshuffled())
    >>> class Wrong(fg.orderings.Ordering):
    ...     def visits(self, tasks, rng):
    ...         yield from np.random.default_rng().integers(tasks.num_tasks, size=1000)
    >>> check_ordering(Wrong())
    Traceback (most recent call last):
    AssertionError: Wrong(): the same seed gave two different orders; draw from the `rng` you are given
    """
    _require(isinstance(ordering, Ordering), ordering, "is not a subclass of fg.orderings.Ordering")
    num_tasks, k = as_count(num_tasks, "num_tasks", least=1), as_count(k, "k")
    tasks = families.gaussian(T=num_tasks, d=2 * num_tasks, rank=1, seed=0)
    limit = ordering.limit(num_tasks)
    _require(limit is None or limit >= 0, ordering, f"limit({num_tasks}) is {limit}; it must be None or a step count")
    steps = k if limit is None else min(k, limit)

    def order(seed: int, length: int = steps) -> IntArray:
        return run(tasks, ordering, length, seed=seed).order

    first = order(1)
    _require(len(first) == steps, ordering, f"gave {len(first)} tasks for k = {steps}")
    _require(
        np.array_equal(first, order(1)),
        ordering,
        "the same seed gave two different orders; draw from the `rng` you are given",
    )
    half = steps // 2
    _require(
        np.array_equal(first[:half], order(1, half)),
        ordering,
        "the first tasks of a long run differ from a short run with the same seed; the order may not depend on k",
    )
    if not ordering.adaptive:
        view = TaskView(num_tasks, tasks.norms)
        streams = [Visits(ordering, view, np.random.default_rng(0)) for _ in range(2)]
        same = all(streams[0].take(1) == streams[1].take(1) for _ in range(steps))
        _require(same, ordering, "two streams at once disturb each other; no state in self")
        batch = ordering.batch(view, steps, 3, np.random.default_rng(0))
        longer = ordering.batch(view, steps, 5, np.random.default_rng(0))
        _require(batch.shape == (3, steps), ordering, f"batch gave shape {batch.shape}, expected {(3, steps)}")
        _require(np.array_equal(batch, longer[:3]), ordering, "the first runs of a batch depend on how many follow")
        inside = batch.size == 0 or (batch.min() >= 0 and batch.max() < num_tasks)
        _require(bool(inside), ordering, f"batch names tasks outside 0 to {num_tasks - 1}")
    _keeps_to_its_law(ordering, tasks, steps, order)
    if limit is not None and limit <= 10_000:
        w = np.zeros(tasks.dim)
        view = TaskView(num_tasks, tasks.norms, lambda: tasks.distances(w), lambda: tasks.task_losses(w))
        visits = islice(ordering.visits(view, np.random.default_rng(0)), limit + 1)
        given = sum(1 if item is None else np.size(item) for item in visits)
        _require(given == limit, ordering, f"gave {given} tasks or more, but limit({num_tasks}) is {limit}")


def _keeps_to_its_law(
    ordering: Ordering, tasks: RegressionTasks, steps: int, order: Callable[[int, int], IntArray]
) -> None:
    """Check that the visits are distributed as the law says, on 400 runs if the law is random."""
    law, T = ordering.law, tasks.num_tasks
    orders = np.stack([order(seed, steps) for seed in range(400 if law.random else 2)])
    if not law.random:
        _require(np.array_equal(orders[0], orders[1]), ordering, f"differs from seed to seed, though its law is {law}")
    if isinstance(law, laws.Cycle):
        same = np.array_equal(orders[0], np.resize(law.epoch(T), steps))
        _require(same, ordering, "is not cyclic, though its law says so")
    elif isinstance(law, laws.Fixed) and law.sequence is not None:
        same = np.array_equal(orders[0], law.sequence[:steps])
        _require(same, ordering, "visits other tasks than the sequence of its law")
    elif isinstance(law, laws.Permutation | laws.Reshuffled):
        for first in range(0, steps - T + 1, T):
            epochs = np.sort(orders[:, first : first + T], axis=1)
            _require(bool((epochs == np.arange(T)).all()), ordering, "an epoch does not visit every task once")
        share = np.full(T, 1 / T)
        for step in range(min(steps, T)):
            _fits(ordering, orders[:, step], share)
        before, after = orders[:, : min(steps, T) - 1].ravel(), orders[:, 1 : min(steps, T)].ravel()
        for task in range(T if T > 1 else 0):  # within an epoch, each other task is as likely to follow
            _fits(ordering, after[before == task], np.where(np.arange(T) == task, 0.0, 1 / (T - 1)))
    elif isinstance(law, laws.Independent):
        share = law.probabilities(TaskView(T, tasks.norms))
        _fits(ordering, orders.ravel(), share)
        for task in np.flatnonzero(share).tolist():  # the next task does not depend on the task just visited
            _fits(ordering, orders[:, 1:][orders[:, :-1] == task], share)


def _fits(ordering: Ordering, drawn: IntArray, share: Array) -> None:
    """Check that the frequencies of the tasks are within six standard deviations of the probabilities `share`."""
    n = len(drawn)
    counts = np.bincount(drawn, minlength=len(share))
    allowed = 6 * np.sqrt(n * share * (1 - share)) + 1e-9 * n + (share > 0) * 6
    task = int(np.argmax(np.abs(counts - n * share) - allowed))
    _require(
        bool(abs(counts[task] - n * share[task]) <= allowed[task]),
        ordering,
        f"visits task {task} {counts[task]} times in {n}, but its law gives it a probability of {share[task]:.3g}",
    )


def check_scheme(scheme: Scheme, *, solves: bool = False, tol: float = 1e-8) -> None:
    """Check that a scheme does not change its inputs, gives the same run twice, moves within w_0 + row space, never
    moves away from a solution, and satisfies its statements (`projects`, `solves_task`, `remembers`, `linear_on`,
    `linear_steps_on`). A scheme that states a decay (`kept_at`) may move away, and shrinks w_0 off the row space.
    With `solves=True`, check also that the scheme solves the task it learns.

    >>> import forgetting as fg
    >>> check_scheme(fg.schemes.Kaczmarz(), solves=True)
    >>> class Overshoot(fg.schemes.Scheme):
    ...     def learn(self, problem, task, w, memory):
    ...         return fg.schemes.Learned(4 * problem.project(task, w) - 3 * w)
    >>> check_scheme(Overshoot())
    Traceback (most recent call last):
    AssertionError: Overshoot(): moved away from an offline solution...
    """
    _require(isinstance(scheme, Scheme), scheme, "is not a subclass of fg.schemes.Scheme")
    tol = as_number(tol, "tol", above=0)
    tasks = families.gaussian(T=4, d=9, rank=[1, 2, 1, 2], seed=1)
    w0 = np.linspace(-1.0, 1.0, tasks.dim)
    try:
        first, second = (run(tasks, WithReplacement(), 12, scheme=scheme, seed=3, w0=w0) for _ in range(2))
    except ValueError as error:
        _require(
            "read-only" not in str(error), scheme, "wrote into w, or into an array of the problem; return a new array"
        )
        raise
    _require(
        np.array_equal(first.iterates, second.iterates),
        scheme,
        "two runs with the same seed differ; keep no state in self, use the memory from `start`",
    )
    _require(bool(np.isfinite(first.iterates).all()), scheme, "gave values that are not finite")
    _require(first.iterates.shape == (13, tasks.dim), scheme, f"gave iterates of shape {first.iterates.shape}")
    rows = np.concatenate([tasks.task(m)[0] for m in range(tasks.num_tasks)])
    left = scheme.left_after(first.steps)  # decay moves w towards 0 before a step
    decays = left is not None and bool(np.any(left != 1))
    off = first.iterates - (np.ones(13) if left is None else left)[:, None] * first.iterates[0]
    off = off - off @ np.linalg.pinv(rows) @ rows
    _require(float(np.abs(off).max()) < tol, scheme, "left w_0 + row space of the tasks")
    errors = np.linalg.norm(first.iterates - tasks.nearest_solution(w0), axis=1)
    worst = int(np.argmax(np.diff(errors)))
    _require(
        decays or bool(np.all(np.diff(errors) <= tol)),
        scheme,
        f"moved away from an offline solution at step {worst + 1}: distance {errors[worst]:.6g} became "
        f"{errors[worst + 1]:.6g}",
    )
    if as_flag(solves, "solves") or scheme.solves_task:
        still = first.after.max() / first.before.max()
        _require(bool(still < tol), scheme, f"left {still:.2g} of the loss of the task it learned")
    if not (scheme.remembers or scheme.random):
        later = run(tasks, Explicit(first.order[3:]), 9, scheme=scheme, w0=first.iterates[3])
        gap = float(np.abs(later.iterates - first.iterates[3:]).max())
        _require(
            gap < tol, scheme, f"differs by {gap:.2g} where it goes on from an iterate: it has to state `remembers`"
        )
    twins = {"projects": Kaczmarz() if scheme.projects else None, "linear_on": scheme.linear_on(tasks)}
    for statement, twin in twins.items():
        if twin is not None:
            other = run(tasks, WithReplacement(), 12, scheme=twin, seed=3, w0=w0)
            gap = float(np.abs(other.iterates - first.iterates).max())
            _require(gap < tol, scheme, f"differs by {gap:.2g} from {twin}, against what it states by `{statement}`")
    steps = None if twins["linear_on"] is not None else scheme.linear_steps_on(tasks)
    for t, task in enumerate(first.order.tolist() if steps is not None else (), 1):
        step = steps.at(t)  # type: ignore[union-attr]
        made = run(tasks, Explicit([task]), 1, scheme=step.scheme, w0=step.keep * first.iterates[t - 1])
        gap = float(np.abs(made.iterates[1] - first.iterates[t]).max())
        _require(gap < tol, scheme, f"differs by {gap:.2g} from {step} at step {t}, against its `linear_steps_on`")
    if scheme.intrinsic:
        _same_from_kernel(scheme, tasks, tol)


def _same_from_kernel(scheme: Scheme, tasks: RegressionTasks, tol: float) -> None:
    """Check that an intrinsic scheme makes the same steps from the data and from their inner products."""
    X = np.concatenate([tasks.task(m)[0] for m in range(tasks.num_tasks)])
    y = np.concatenate([tasks.task(m)[1] for m in range(tasks.num_tasks)])
    kernel = KernelTasks(X @ X.T, y, np.repeat(np.arange(tasks.num_tasks), tasks.num_rows))
    data, dual = (run(problem, Cyclic(), 8, scheme=scheme) for problem in (tasks, kernel))
    gap = float(np.abs(dual.iterates @ X - data.iterates).max())
    _require(gap < max(tol, 1e-6), scheme, f"differs by {gap:.2g} between data and kernel, though it is intrinsic")


def _require(holds: bool, subject: Any, complaint: str) -> None:
    if not holds:
        raise AssertionError(f"{subject}: {complaint}")
