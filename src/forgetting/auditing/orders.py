"""The best and the worst order of T tasks after one pass: all orders where they are few, local search elsewhere."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from forgetting._arrays import Array, IntArray, as_count, as_index, as_seed
from forgetting.dynamics.ensembles import batch_losses, compiled_form
from forgetting.dynamics.loop import resolve, whole_run
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.geometry import Geometry
from forgetting.orderings import GreedyDistance, GreedyResidual, Ordering, TaskView
from forgetting.schemes import Scheme
from forgetting.tasks import Problem

__all__ = ["FoundOrder", "OrderSearch", "as_permutation", "count_orders", "order_value", "search_orders"]

Quantity = Literal["forgetting", "loss"]
MOST_ORDERS = 400_000  # all orders of 9 tasks
EXACT_FLOPS = 3e10  # what enumerating them may cost
SEARCH_FLOPS = 2.5e10  # what a search in one direction may cost
EVALUATIONS = (400, 60_000)
BATCH = 512
GAIN = 1e-12  # an order is better only by more than rounding


@dataclass(frozen=True)
class FoundOrder:
    """An order of all tasks, and what it leads to after one pass.

    >>> FoundOrder((1, 0), 0.25).value
    0.25
    """

    order: tuple[int, ...]
    value: float


@dataclass(frozen=True)
class OrderSearch:
    """What `search_orders` found.

    Attributes:
        quantity: "forgetting" or "loss", after each task was learned once.
        best, worst: the orders with the smallest and the largest value.
        exact: whether every order was looked at; if not, better and worse ones may exist.
        evaluations: how many orders were evaluated.
        seed: decides the search, and nothing where it is exact.
    """

    quantity: str
    best: FoundOrder
    worst: FoundOrder
    exact: bool
    evaluations: int
    seed: int

    @property
    def method(self) -> str:
        """How it was found, in words."""
        if self.exact:
            return f"exact, all {self.evaluations} different orders"
        return f"local search, {self.evaluations} orders tried"

    def __str__(self) -> str:
        lines = [f"{self.quantity} after one pass, {self.method}"]
        for name, found in (("best", self.best), ("worst", self.worst)):
            lines.append(f"{name:>7} {found.value:.6g}  order {' '.join(map(str, found.order))}")
        return "\n".join(lines)


@dataclass(frozen=True)
class _Reluctant(GreedyDistance):
    """The nearest unsolved task: as little progress as possible, a start for the search of bad orders."""

    repeat: bool = False

    def scores(self, tasks: TaskView) -> Array:
        return -tasks.distances()


def search_orders(
    problem: Problem,
    quantity: Quantity = "forgetting",
    *,
    scheme: Scheme | None = None,
    w0: Any = None,
    exact: bool | None = None,
    evaluations: int | None = None,
    starts: Iterable[Any] = (),
    seed: int = 0,
) -> OrderSearch:
    """The best and the worst single order of all tasks, by forgetting or loss after one pass.

    Identical tasks are interchangeable, so T tasks have T! / prod n_i! different orders. All are evaluated where that
    is cheap (T up to 8 or 9). Elsewhere a local search swaps two tasks, moves one, or turns a stretch around, from
    greedy, given and random orders, until `evaluations` are spent in each direction.

    For schemes that solve each task, forgetting after one pass is the loss, less what no w explains.

    Args:
        problem: regression or kernel tasks.
        quantity: "forgetting" or "loss".
        scheme, w0: as for `fg.run`; the scheme must be linear.
        exact: True evaluates all orders whatever the cost, False always searches.
        evaluations: orders that the search may evaluate in each direction; from the size of the tasks if left out.
        starts: orders to begin with, besides 0, 1, ..., T - 1 and greedy ones.
        seed: decides the search.

    >>> import forgetting as fg
    >>> found = search_orders(fg.families.back_and_forth(T=6, theta=0.3))
    >>> found.exact, found.evaluations, found.worst.value > 10 * found.best.value
    (True, 180, True)
    """
    if quantity not in get_args(Quantity):
        raise InvalidInputError(f"quantity must be 'forgetting' or 'loss', got {quantity!r}")
    chosen, space = resolve(problem, scheme, w0)
    linear, geometry = compiled_form(problem, chosen)
    if linear is None or geometry is None:
        raise NotSupportedError(f"orders are searched for linear schemes on regression tasks, not for {chosen}")
    value = order_value(problem, quantity, scheme=chosen, w0=space.w0)
    total, cost = count_orders(geometry.counts), _cost(geometry)
    if exact is True and total > 10 * MOST_ORDERS:
        raise InvalidInputError(f"there are {total:.2g} orders of {problem.num_tasks} tasks: too many to try all")
    if exact or (exact is None and total <= MOST_ORDERS and total * cost <= EXACT_FLOPS):
        return _all_orders(geometry, quantity, value, seed)
    most = (
        as_count(evaluations, "evaluations", least=1)
        if evaluations is not None
        else _affordable(cost, problem.num_tasks)
    )
    T = problem.num_tasks
    begin = [np.arange(T), *(as_permutation(order, T) for order in starts)]
    easy = (GreedyDistance(repeat=False), GreedyResidual(repeat=False))
    upward = [_visited(problem, ordering, chosen, space.w0) for ordering in easy]
    downward = [_visited(problem, _Reluctant(), chosen, space.w0), *(order[::-1] for order in upward)]
    streams = np.random.SeedSequence(as_seed(seed)).spawn(2)
    best, spent = _search(lambda orders: -value(orders), [*upward, *begin], most, np.random.default_rng(streams[0]))
    worst, more = _search(value, [*downward, *begin], most, np.random.default_rng(streams[1]))
    return OrderSearch(
        quantity, FoundOrder(best.order, -best.value), FoundOrder(worst.order, worst.value), False, spent + more, seed
    )


def order_value(
    problem: Problem, quantity: Quantity = "forgetting", *, scheme: Scheme | None = None, w0: Any = None
) -> Callable[[IntArray], Array]:
    """A function from orders (one per row, each a permutation of the tasks) to their values after one pass.

    >>> import forgetting as fg
    >>> value = order_value(fg.families.two_lines(0.5, w_star=(1, 0)))
    >>> value(np.array([[0, 1], [1, 0]])).round(6)
    array([0.044255, 0.034083])
    """
    chosen, space = resolve(problem, scheme, w0)
    linear, geometry = compiled_form(problem, chosen)
    if linear is None or geometry is None:
        raise NotSupportedError(f"orders are valued for linear schemes on regression tasks, not for {chosen}")
    threads = os.cpu_count() or 1

    def value(orders: IntArray) -> Array:
        values = np.empty(len(orders))
        for first in range(0, len(orders), 8 * BATCH):
            part = np.ascontiguousarray(orders[first : first + 8 * BATCH])
            last = np.array([part.shape[1]])
            losses, _, after = batch_losses(geometry, linear, part, space.w0, last, threads=threads)
            learned = after.mean(axis=1) if quantity == "forgetting" else 0.0
            values[first : first + len(part)] = losses[:, 0] - learned
        return values

    return value


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


def _all_orders(geometry: Geometry, quantity: str, value: Callable[[IntArray], Array], seed: int) -> OrderSearch:
    orders = distinct_orders(geometry.counts)
    # the i-th visit of a distinct task is its i-th clone
    tasks = np.empty_like(orders)
    for which in range(geometry.num_distinct):
        clones = np.flatnonzero(geometry.index == which)
        tasks[orders == which] = np.tile(clones, len(orders))
    values = value(tasks)
    low, high = (int(pick(values)) for pick in (np.argmin, np.argmax))
    best, worst = (FoundOrder(tuple(tasks[i].tolist()), float(values[i])) for i in (low, high))
    return OrderSearch(quantity, best, worst, True, len(orders), seed)


def _cost(geometry: Geometry) -> float:
    """Roughly the operations of one pass."""
    pass_through = 4.0 * float(geometry.ranks @ geometry.counts) * geometry.dim
    return pass_through + 2.0 * geometry.dim * min(geometry.dim, len(geometry.sigma))


def _affordable(cost: float, T: int) -> int:
    least, most = EVALUATIONS
    return int(np.clip(SEARCH_FLOPS / max(cost, 1.0), least, min(most, 200 * (T + 1) ** 2)))


def _visited(problem: Problem, ordering: Ordering, scheme: Scheme, w0: Array) -> IntArray:
    T = problem.num_tasks
    return whole_run(problem, ordering, T, scheme, w0=w0, record_every=T).order


def as_permutation(order: Any, T: int) -> IntArray:
    """An order that names each of T tasks once.

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
    """Climb from each start in turn, best first, then from random and shaken orders, until `most` are spent."""
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
    """Improve by single moves, in random batches, until none helps or `most` orders were evaluated."""
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
    """(kind, i, j) of every single move: swaps, moves of one task, reversals."""
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
    """The same with a few random moves."""
    T = len(order)
    for _ in range(3):
        i, j = rng.choice(T, size=2, replace=False).tolist()
        order = _moved(order, int(rng.integers(3)), min(i, j), max(i, j))
    return order
