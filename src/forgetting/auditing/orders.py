"""Search for the best and the worst order of T tasks, by trying all orders if they are few, else by local search."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from forgetting.auditing.order_restarts import best_and_worst, restart_seeds
from forgetting.auditing.passes import pass_cost, pass_ends
from forgetting.compute.devices import as_device
from forgetting.compute.threads import cores
from forgetting.core.arrays import EPS, Array, IntArray, Seed, as_count, as_flag, as_index, as_list, as_word, seed_from
from forgetting.dynamics.ensembles import batch_losses, compiled_form
from forgetting.dynamics.loop import run
from forgetting.dynamics.space import resolve
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.geometry import Geometry
from forgetting.orderings import Explicit, GreedyDistance, GreedyResidual, Ordering, TaskView
from forgetting.schemes import Scheme
from forgetting.schemes.base import SchemeLike
from forgetting.tasks import Problem

__all__ = [
    "FoundOrder",
    "OrderSearch",
    "as_permutation",
    "as_tasks",
    "count_orders",
    "distinct_orders",
    "extreme_order",
    "first_least",
    "order_value",
    "search_orders",
]

Quantity = Literal["forgetting", "loss"]
MOST_ORDERS = 400_000  # more orders than 9 tasks have
BATCH = 512  # orders evaluated at once
SLOW = 5e6  # operations that a step counts as where it is not compiled
WIDE = 4096  # operations of a step from which products of matrices for all orders at once are faster
GAIN = 1e-12  # relative improvement below which two values count as equal


@dataclass(frozen=True)
class FoundOrder:
    """An order of all tasks, and the forgetting or loss after a pass in this order.

    Attributes:
        order: the order; of several with this value, that of the lowest task numbers.
        value: its forgetting, loss or other measure.
        tied: how many of the orders that were tried have this value up to rounding, this one included. A local search
            does not count them, and leaves 1.

    >>> FoundOrder((1, 0), 0.25).value, FoundOrder((0, 1), 0.25, tied=2).ties
    (0.25, ' (one of 2 tied orders)')
    """

    order: tuple[int, ...]
    value: float
    tied: int = 1

    @property
    def ties(self) -> str:
        """The number of tied orders in words, to be put after the order; empty if there is no other."""
        return f" (one of {self.tied:,} tied orders)" if self.tied > 1 else ""


@dataclass(frozen=True)
class OrderSearch:
    """The result of `search_orders`.

    Attributes:
        quantity: "forgetting" or "loss", after each task was learned once.
        best, worst: the orders with the smallest and the largest value; of tied ones, that of the lowest task numbers.
        exact: whether every order was evaluated; if not, better and worse orders may exist.
        evaluations: the number of orders that were evaluated.
        seed: the seed of the local search; it has no effect if the search is exact.
    """

    quantity: str
    best: FoundOrder
    worst: FoundOrder
    exact: bool
    evaluations: int
    seed: int

    @property
    def method(self) -> str:
        """A phrase that says how the orders were found."""
        if self.exact:
            return f"exact, all {self.evaluations} different orders"
        return f"local search, {self.evaluations} orders tried"

    def __str__(self) -> str:
        lines = [f"{self.quantity} after one pass, {self.method}"]
        for name, extreme in (("best", self.best), ("worst", self.worst)):
            lines.append(f"{name:>7} {extreme.value:.6g}  order {' '.join(map(str, extreme.order))}{extreme.ties}")
        return "\n".join(lines)


@dataclass(frozen=True)
class _Reluctant(GreedyDistance):
    """Visits the nearest task not yet visited, for little progress: a start of the search for the worst order."""

    repeat: bool = False

    def scores(self, tasks: TaskView) -> Array:
        return -tasks.distances()


def search_orders(
    problem: Problem,
    quantity: Quantity = "forgetting",
    *,
    scheme: SchemeLike | None = None,
    w0: Any = None,
    exact: bool | None = None,
    evaluations: int | None = None,
    starts: Iterable[Any] = (),
    seed: Seed = 0,
    device: Any = None,
    restarts: int = 1,
    jobs: int | None = None,
    store: str | Path | None = None,
) -> OrderSearch:
    """The best and the worst order of all tasks, by forgetting or loss after a single pass.

    Identical tasks are interchangeable, so that T tasks have T! / prod n_i! different orders. All are evaluated if that
    is cheap (T up to 8 or 9). Otherwise a local search starts from greedy, given and random orders, and swaps two
    tasks, moves a task, or reverses a part of the order, until it has evaluated `evaluations` orders for the best and
    as many for the worst.

    For schemes that solve each task, forgetting after a pass is the loss without the part that no w can fit.

    Args:
        problem: any tasks; those that are not linear take a run for each order, which is slower.
        quantity: "forgetting" or "loss".
        scheme, w0: as for `fg.run`; not a scheme that draws random numbers.
        exact: True to evaluate all orders at any cost, False to use the local search.
        evaluations: the most orders that the local search evaluates for the best and for the worst order; by default
            as many as take a few seconds.
        starts: orders from which the search starts, in addition to 0, 1, ..., T - 1 and greedy orders.
        seed: the seed of the local search.
        device: where orders are evaluated, as for `fg.expect`, for linear schemes; the CPU if left out.
        restarts: how many local searches are made, each with a seed of its own; the best and the worst order of all
            are the result. The first search has the seed `seed`, so that more restarts never find less.
        jobs: the number of processes of the restarts, as for `fg.Study.run`.
        store: a file that keeps finished restarts, as for `fg.Study`; a search that was killed goes on from there.

    >>> import forgetting as fg
    >>> search = search_orders(fg.families.back_and_forth(T=6, theta=0.3))
    >>> search.exact, search.evaluations, search.worst.value > 10 * search.best.value
    (True, 180, True)
    """
    as_word(quantity, get_args(Quantity), "quantity")
    exact = None if exact is None else as_flag(exact, "exact")
    seed = seed_from(seed)
    chosen, space = resolve(problem, scheme, w0)
    value = order_value(problem, quantity, scheme=chosen, w0=space.w0, device=device)
    geometry = compiled_form(problem, chosen)[1]
    index = np.arange(problem.num_tasks) if geometry is None else geometry.index
    counts = np.bincount(index)
    total, cost = count_orders(counts), SLOW * problem.num_tasks if geometry is None else _cost(geometry)
    if exact is True and total > 10 * MOST_ORDERS:
        raise InvalidInputError(f"there are {total:.2g} orders of {problem.num_tasks} tasks: too many to try all")
    if exact or (exact is None and total <= MOST_ORDERS and total * cost <= 3e10):
        return _all_orders(as_tasks(distinct_orders(counts), index), quantity, value, problem.loss(space.w0), seed)
    T = problem.num_tasks
    most = _affordable(cost, T) if evaluations is None else as_count(evaluations, "evaluations", least=1)
    begin = [np.arange(T), *(as_permutation(order, T) for order in as_list(starts, "starts"))]
    seeds = restart_seeds(seed, as_count(restarts, "restarts", least=1))
    local = partial(_local_search, problem, quantity, chosen, space.w0, begin, most, device)
    if len(seeds) == 1 and store is None:
        found = [local(seed)]
    else:
        identity = {
            "quantity": quantity,
            "scheme": chosen,
            "w0": space.w0,
            "begin": np.array(begin, dtype=np.float64),
            "most": most,
        }
        found = best_and_worst(local, problem, identity, seeds, jobs, store)
    best, worst = (
        min(found, key=lambda one: one["best"][1])["best"],
        max(found, key=lambda one: one["worst"][1])["worst"],
    )
    spent = sum(one["evaluations"] for one in found)
    return OrderSearch(quantity, _found(*best), _found(*worst), False, spent, seed)


def _found(order: Sequence[int], value: float) -> FoundOrder:
    return FoundOrder(tuple(order), value)


def _local_search(
    problem: Problem,
    quantity: Quantity,
    chosen: Scheme,
    w0: Array,
    begin: Sequence[IntArray],
    most: int,
    device: Any,
    seed: int,
) -> dict[str, Any]:
    """The best and the worst order that a search with this seed finds, with their values, as plain data."""
    value = order_value(problem, quantity, scheme=chosen, w0=w0, device=device)
    easy = (GreedyDistance(repeat=False), GreedyResidual(repeat=False))
    upward = [_visited(problem, ordering, chosen, w0) for ordering in easy]
    downward = [_visited(problem, _Reluctant(), chosen, w0), *(order[::-1] for order in upward)]
    streams = np.random.SeedSequence(seed).spawn(2)
    best, spent = _search(lambda orders: -value(orders), [*upward, *begin], most, np.random.default_rng(streams[0]))
    worst, spent_on_worst = _search(value, [*downward, *begin], most, np.random.default_rng(streams[1]))
    found = {"best": (list(best.order), -best.value), "worst": (list(worst.order), worst.value)}
    return {**found, "evaluations": spent + spent_on_worst}


def order_value(
    problem: Problem,
    quantity: Quantity = "forgetting",
    *,
    scheme: SchemeLike | None = None,
    w0: Any = None,
    device: Any = None,
) -> Callable[[IntArray], Array]:
    """A function that maps orders (rows, each a permutation of the tasks) to their forgetting or loss after a pass.

    `device` is where orders are evaluated, as for `fg.expect`.

    >>> import forgetting as fg
    >>> value = order_value(fg.families.two_lines(0.5, w_star=(1, 0)))
    >>> value(np.array([[0, 1], [1, 0]])).round(6)
    array([0.044255, 0.034083])
    """
    chosen, space = resolve(problem, scheme, w0)
    linear, geometry = compiled_form(problem, chosen)
    if chosen.random:
        raise NotSupportedError(f"orders are valued for schemes that draw no random numbers, not for {chosen}")
    there = as_device(device)
    if linear is None or geometry is None:
        if not there.host:
            raise NotSupportedError(f"device= evaluates orders of linear schemes, not of {chosen}; leave out device=")
        return lambda orders: np.array([_run_value(problem, quantity, order, chosen, space.w0) for order in orders])
    threads = cores()
    if there.host and _at_once(geometry):

        def value_at_once(orders: IntArray) -> Array:
            ends = pass_ends(problem, chosen, space.w0, orders)
            parts = [part.forgetting if quantity == "forgetting" else part.losses.mean(axis=1) for part in ends]
            return np.concatenate([np.empty(0), *parts])

        return value_at_once

    def value(orders: IntArray) -> Array:
        values = np.empty(len(orders))
        for first in range(0, len(orders), 8 * BATCH):
            part = np.ascontiguousarray(orders[first : first + 8 * BATCH])
            last = np.array([part.shape[1]])
            losses, _, after = batch_losses(geometry, linear, part, space.w0, last, threads=threads, device=there)
            learned = after.mean(axis=1) if quantity == "forgetting" else 0.0
            values[first : first + len(part)] = losses[:, 0] - learned
        return values

    return value


def _run_value(problem: Problem, quantity: Quantity, order: IntArray, scheme: Scheme, w0: Array) -> float:
    made = run(problem, Explicit(order), len(order), scheme, w0=w0, record_every=len(order))
    return float((made.forgetting if quantity == "forgetting" else made.losses)[-1])


def count_orders(counts: IntArray) -> int:
    """T! / prod n_i!, the number of different orders of tasks that come n_i times.

    >>> count_orders(np.array([1, 1, 1])), count_orders(np.array([6, 6]))
    (6, 924)
    """
    return math.factorial(int(counts.sum())) // math.prod(math.factorial(int(n)) for n in counts)


def distinct_orders(counts: IntArray) -> IntArray:
    """All different orders of distinct tasks that come n_i times, one per row.

    >>> distinct_orders(np.array([2, 1])).tolist()
    [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    """
    orders = np.zeros((1, 0), dtype=np.int64)
    used = np.zeros((1, len(counts)), dtype=np.int64)
    for _ in range(int(counts.sum())):
        fits = used < counts
        rows, tasks = np.nonzero(fits)
        orders = np.column_stack([orders[rows], tasks])
        used = used[rows]
        used[np.arange(len(rows)), tasks] += 1
    return orders


def as_tasks(orders: IntArray, index: IntArray) -> IntArray:
    """Orders of distinct tasks as orders of tasks: the i-th visit of a distinct task visits its i-th clone.

    >>> as_tasks(np.array([[0, 1, 0]]), np.array([0, 0, 1])).tolist()
    [[0, 2, 1]]
    """
    tasks = np.empty_like(orders)
    for distinct in range(int(index.max()) + 1):
        tasks[orders == distinct] = np.tile(np.flatnonzero(index == distinct), len(orders))
    return tasks


def _all_orders(
    tasks: IntArray, quantity: str, value: Callable[[IntArray], Array], start: float, seed: int
) -> OrderSearch:
    values = value(tasks)
    best, worst = (extreme_order(tasks, values, largest=largest, start=start) for largest in (False, True))
    return OrderSearch(quantity, best, worst, True, len(tasks), seed)


def first_least(values: Array, start: float = 0.0) -> int:
    """The first of the least values; values that are equal up to rounding count as equal.

    >>> first_least(np.array([2.0, 1.0 + 1e-15, 1.0]))
    1
    """
    return int(np.argmax(_least(values, start)))


def _least(values: Array, start: float) -> NDArray[np.bool_]:
    """Which values are least, up to rounding errors of the largest of them and of the loss at the start."""
    least = float(values.min())
    size = max(float(np.max(np.abs(values))), abs(start))
    close: NDArray[np.bool_] = values <= least + GAIN * abs(least) + 64 * EPS * size
    return close if close.any() else np.arange(len(values)) == np.argmin(values)  # none is close to NaN


def extreme_order(orders: IntArray, values: Array, *, largest: bool, start: float = 0.0) -> FoundOrder:
    """The order of the lowest task numbers among those with the least or the largest value, and how many they are.

    `start` is the loss before learning: differences that are rounding errors of it are none.

    >>> extreme_order(np.array([[2, 1, 0], [0, 2, 1], [0, 1, 2]]), np.array([1.0, 1.0 + 1e-15, 0.5]), largest=True)
    FoundOrder(order=(0, 2, 1), value=1.000000000000001, tied=2)
    """
    rows = np.flatnonzero(_least(-values if largest else values, start))
    first = int(rows[np.lexsort(orders[rows].T[::-1])[0]])
    return FoundOrder(tuple(orders[first].tolist()), float(values[first]), len(rows))


def _at_once(geometry: Geometry) -> bool:
    """Whether steps are so large that products of matrices for many orders are faster than a loop for each order."""
    return pass_cost(geometry) >= WIDE * geometry.num_tasks


def _cost(geometry: Geometry) -> float:
    """About how many operations a pass takes, in units of a loop for each order; products are 4 times as fast."""
    last = 2.0 * geometry.dim * min(geometry.dim, len(geometry.sigma)) * (geometry.outputs or 1)
    return (pass_cost(geometry) + last) / (4.0 if _at_once(geometry) else 1.0)


def _affordable(cost: float, T: int) -> int:
    """The number of orders that 2.5e10 operations can evaluate, between 400 and 60000."""
    return int(np.clip(2.5e10 / max(cost, 1.0), 400, min(60_000, 200 * (T + 1) ** 2)))


def _visited(problem: Problem, ordering: Ordering, scheme: Scheme, w0: Array) -> IntArray:
    T = problem.num_tasks
    return run(problem, ordering, T, scheme, w0=w0, record_every=T).order


def as_permutation(order: Any, T: int) -> IntArray:
    """Convert `order` to an array that names each of T tasks once; else raise.

    >>> as_permutation([0, 0, 1], 3)
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: an order names each of the 3 tasks once, got [0, 0, 1]
    """
    tasks = as_index(order, T, "order")
    if not np.array_equal(np.sort(tasks), np.arange(T)):
        raise InvalidInputError(f"an order names each of the {T} tasks once, got {tasks.tolist()!r:.80}")
    return tasks


def _search(
    score: Callable[[IntArray], Array], starts: list[IntArray], most: int, rng: np.random.Generator
) -> tuple[FoundOrder, int]:
    """The order with the largest score found by climbs, and the number of orders evaluated, at most `most`.

    Climbs begin at the best starts, then at random orders and at random changes of the best order so far.
    """
    T = len(starts[0])
    draws = rng.permuted(np.tile(np.arange(T), (max(8, min(BATCH, most // 10)), 1)), axis=1)
    pool = np.concatenate([np.array(starts), draws])[:most]
    scores = score(pool)
    spent = len(pool)
    queue = [pool[i] for i in np.argsort(-scores, kind="stable")[: len(starts) + 2]]
    best, record = queue[0], float(scores.max())
    turn = 0
    while spent < most and T > 1:
        start = queue[turn] if turn < len(queue) else _shaken(best, rng) if turn % 3 else rng.permutation(T)
        turn += 1
        top, reached, used = _climb(score, start, most - spent, rng)
        spent += used
        if reached > record + GAIN * abs(record):
            best, record = top, reached
        if used == 0:
            break
    return FoundOrder(tuple(best.tolist()), record), spent


def _climb(
    score: Callable[[IntArray], Array], order: IntArray, most: int, rng: np.random.Generator
) -> tuple[IntArray, float, int]:
    """Improve an order by single moves, tried in random batches, until no move helps or `most` orders were evaluated.

    Returns the order, its score and the number of orders evaluated.
    """
    T = len(order)
    reached, spent = float(score(order[None])[0]), 1
    moves = _moves(T)
    size = min(BATCH, max(16, most // 20))
    improved = True
    while improved and spent < most:
        improved = False
        mixed = rng.permutation(len(moves))
        for first in range(0, len(mixed), size):
            picks = moves[mixed[first : first + size]][: most - spent]
            if len(picks) == 0:
                break
            nearby = np.array([_moved(order, *move) for move in picks.tolist()])
            scores = score(nearby)
            spent += len(nearby)
            top = int(np.argmax(scores))
            if scores[top] > reached + GAIN * abs(reached):
                order, reached, improved = nearby[top], float(scores[top]), True
                break
    return order, reached, spent


def _moves(T: int) -> IntArray:
    """(kind, i, j) of every move: kind 0 swaps two tasks, 1 moves a task, 2 reverses a part of the order."""
    i, j = np.triu_indices(T, 1)
    forth, back = np.stack([i, j]), np.stack([j, i])
    kinds = [(0, forth), (1, forth), (1, back), (2, forth)]
    return np.concatenate([np.vstack([np.full(len(i), kind), pair]).T for kind, pair in kinds])


def _moved(order: IntArray, kind: int, i: int, j: int) -> IntArray:
    new = order.copy()
    if kind == 0:
        new[i], new[j] = order[j], order[i]
    elif kind == 2:
        new[i : j + 1] = order[i : j + 1][::-1]
    elif i < j:
        new[i:j], new[j] = order[i + 1 : j + 1], order[i]
    else:
        new[j + 1 : i + 1], new[j] = order[j:i], order[i]
    return new


def _shaken(order: IntArray, rng: np.random.Generator) -> IntArray:
    """The order after three random moves."""
    T = len(order)
    for _ in range(3):
        i, j = rng.choice(T, size=2, replace=False).tolist()
        order = _moved(order, int(rng.integers(3)), min(i, j), max(i, j))
    return order
