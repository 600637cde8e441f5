"""Search for the best and the worst order of T tasks, by trying all orders if they are few, else by local search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np

from forgetting.auditing.orders import (
    BATCH,
    GAIN,
    MOST_ORDERS,
    SLOW,
    FoundOrder,
    Quantity,
    as_permutation,
    as_tasks,
    at_once,
    extreme_order,
    order_value,
    pass_cost,
)
from forgetting.core.arrangements import count_orders, distinct_orders
from forgetting.core.arrays import (
    Array,
    IntArray,
    Seed,
    as_count,
    as_flag,
    as_list,
    as_word,
    fingerprint,
    seed_from,
)
from forgetting.dynamics.ensembles import compiled_form
from forgetting.dynamics.loop import run
from forgetting.dynamics.space import resolve
from forgetting.errors import InvalidInputError
from forgetting.files.store import code_digest
from forgetting.geometry import Geometry
from forgetting.orderings import GreedyDistance, GreedyResidual, TaskView
from forgetting.report.provenance import problem_hash
from forgetting.schemes import Scheme
from forgetting.schemes.base import SchemeLike
from forgetting.studies.study import Study
from forgetting.tasks import Problem


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
        orders = as_tasks(distinct_orders(counts), index)
        values, start = value(orders), problem.loss(space.w0)
        least, most = (extreme_order(orders, values, largest=largest, start=start) for largest in (False, True))
        return OrderSearch(quantity, least, most, True, len(orders), seed)
    T = problem.num_tasks
    if evaluations is None:  # as many as 2.5e10 operations can evaluate
        budget = int(np.clip(2.5e10 / max(cost, 1.0), 400, min(60_000, 200 * (T + 1) ** 2)))
    else:
        budget = as_count(evaluations, "evaluations", least=1)
    begin = [np.arange(T), *(as_permutation(order, T, problem.names) for order in as_list(starts, "starts"))]
    seeds = restart_seeds(seed, as_count(restarts, "restarts", least=1))
    local = partial(_local_search, problem, quantity, chosen, space.w0, begin, budget, device)
    if len(seeds) == 1 and store is None:
        searches = [local(seed)]
    else:
        known = {
            "problem": problem_hash(problem),
            "start": fingerprint(space.w0, np.array(begin, dtype=np.float64)).hex(),
            "search": f"{quantity}, {chosen}, {budget} orders",
        }
        cells = [{"restart": n, "identity": known, "code": code_digest(), "seed": own} for n, own in enumerate(seeds)]
        study = Study(cells, store, function=_RestartedSearch(local))
        searches = study.run(jobs, progress=False, retry=True, check=True).results()
    (best, low), (worst, high) = (
        min((search["best"] for search in searches), key=lambda found: found[1]),
        max((search["worst"] for search in searches), key=lambda found: found[1]),
    )
    spent = sum(search["evaluations"] for search in searches)
    return OrderSearch(quantity, FoundOrder(tuple(best), low), FoundOrder(tuple(worst), high), False, spent, seed)


def restart_seeds(seed: int, restarts: int) -> list[int]:
    """The seeds of the searches. The first is the seed itself, so that more restarts never find less.

    >>> restart_seeds(5, 1), restart_seeds(5, 3)[:2] == restart_seeds(5, 2)
    ([5], True)
    """
    others = np.random.SeedSequence(seed, spawn_key=(2,)).generate_state(2 * restarts, np.uint32)[: restarts - 1]
    return [seed, *(int(other) for other in others)]


class _RestartedSearch:
    """A search as the function of a study: the cell says which, and the problem travels with the function."""

    def __init__(self, search: Callable[[int], dict[str, Any]]) -> None:
        self.search, self.__qualname__ = search, "search_orders"

    def __call__(self, restart: int, identity: Any, code: str, seed: int) -> dict[str, Any]:
        return self.search(seed)


def _local_search(
    problem: Problem,
    quantity: Quantity,
    scheme: Scheme,
    w0: Array,
    begin: Sequence[IntArray],
    most: int,
    device: Any,
    seed: int,
) -> dict[str, Any]:
    """The best and the worst order that a search with this seed finds, with their values, as plain data."""
    value, T = order_value(problem, quantity, scheme=scheme, w0=w0, device=device), problem.num_tasks
    *upward, reluctant = (
        run(problem, ordering, T, scheme, w0=w0, record_every=T).order
        for ordering in (GreedyDistance(repeat=False), GreedyResidual(repeat=False), _Reluctant())
    )
    downward = [reluctant, *(order[::-1] for order in upward)]
    streams = np.random.SeedSequence(seed).spawn(2)
    best, spent = climb_from(lambda orders: -value(orders), [*upward, *begin], most, np.random.default_rng(streams[0]))
    worst, spent_on_worst = climb_from(value, [*downward, *begin], most, np.random.default_rng(streams[1]))
    extremes = {"best": (list(best.order), -best.value), "worst": (list(worst.order), worst.value)}
    return {**extremes, "evaluations": spent + spent_on_worst}


def _cost(geometry: Geometry) -> float:
    """The approximate operations of a pass, in units of a loop for each order; products are 4 times as fast."""
    last = 2.0 * geometry.dim * min(geometry.dim, len(geometry.sigma)) * (geometry.outputs or 1)
    return (pass_cost(geometry) + last) / (4.0 if at_once(geometry) else 1.0)


# --------------------------------------------------------------------------------------------------------- local search


def climb_from(
    score: Callable[[IntArray], Array],
    starts: list[IntArray],
    most: int,
    rng: np.random.Generator,
    moves: IntArray | None = None,
    moved: Callable[..., IntArray] | None = None,
) -> tuple[FoundOrder, int]:
    """The order with the largest score found by climbs, and the number of orders evaluated, at most `most`.

    Climbs begin at the best starts, then at random orders and at random changes of the best order so far. `moves` are
    rows of numbers with which `moved(order, *row)` is a nearby order; two tasks swapped, a task moved and a part
    reversed if left out.
    """
    T = len(starts[0])
    moves, moved = (_moves(T) if moves is None else moves), moved or _moved
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
        top, reached, used = _climb(score, start, most - spent, rng, moves, moved)
        spent += used
        if reached > record + GAIN * abs(record):
            best, record = top, reached
        if used == 0:
            break
    return FoundOrder(tuple(best.tolist()), record), spent


def _climb(
    score: Callable[[IntArray], Array],
    order: IntArray,
    most: int,
    rng: np.random.Generator,
    moves: IntArray,
    moved: Callable[..., IntArray],
) -> tuple[IntArray, float, int]:
    """Improve an order by single moves, tried in random batches, until no move helps or `most` orders were evaluated.

    Returns the order, its score and the number of orders evaluated.
    """
    reached, spent = float(score(order[None])[0]), 1
    size = min(BATCH, max(16, most // 20))
    improved = True
    while improved and spent < most:
        improved = False
        mixed = rng.permutation(len(moves))
        for first in range(0, len(mixed), size):
            picks = moves[mixed[first : first + size]][: most - spent]
            if len(picks) == 0:
                break
            nearby = np.array([moved(order, *move) for move in picks.tolist()])
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
