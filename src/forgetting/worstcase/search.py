"""`adversarial_search`: gradient ascent over subspaces for tasks with a large expected loss or forgetting."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from forgetting.compute.devices import HOST, Device, as_device
from forgetting.compute.threads import one_thread
from forgetting.core.arrays import Array, IntArray, Seed, any_array, as_count, as_kind, as_word, fingerprint, seed_from
from forgetting.core.memory import in_bytes, require_memory
from forgetting.errors import InvalidInputError, MemoryLimitError
from forgetting.expectation import expect
from forgetting.files.store import code_digest
from forgetting.orderings import WithReplacement
from forgetting.orderings.base import OrderingLike, as_ordering
from forgetting.studies.study import Study
from forgetting.tasks import Problem, RegressionTasks
from forgetting.worstcase.ascent import Point, probabilities, projections_of
from forgetting.worstcase.asked import Asked
from forgetting.worstcase.found import SAME, TaskSearch
from forgetting.worstcase.rank_moves import TRIES, climb_with_ranks
from forgetting.worstcase.starts import given_frames, starting_point

__all__ = ["adversarial_search"]

BLOCK = 8  # restarts of one cell of a study
SHARE = 0.25  # of the memory, for what is computed at once
ROUNDED = 1e-5  # a gradient at which rounding errors and nothing else can end an ascent
MOST = 256  # collections in one batch on a device
CACHED = 2.0**24  # bytes of a batch that a CPU computes fastest with
VECTORS = 50  # of L-BFGS, of T d^2 numbers each


def adversarial_search(
    T: int,
    d: int,
    rank: int | Sequence[int] | None,
    k: int,
    quantity: Literal["loss", "next_loss", "forgetting"] = "loss",
    ordering: OrderingLike | None = None,
    *,
    restarts: int = 16,
    steps: int = 500,
    seed: Seed = 0,
    ranks: Literal["free", "fixed"] = "free",
    weights: Literal["fixed", "free"] = "fixed",
    start: Problem | None = None,
    device: Any = None,
    jobs: int | None = None,
    store: str | Path | None = None,
) -> TaskSearch:
    """Search for the T tasks in d dimensions with the largest expected loss or forgetting after k steps.

    Tasks have singular values 1 (the worst of radius 1), so that a collection is T subspaces, and |w*| = 1. With
    z = w - w*, P_m the projection onto the kernel of task m, and Q(B) = sum_m p_m P_m B P_m for independent draws,
    E L(w_k) = <z_0 z_0', Q^k(B_0)>, B_0 = 1/2 (1/T) sum_m (I - P_m); its supremum over w* is the largest eigenvalue of
    Q^k(B_0). That is maximised over the subspaces by a quasi-Newton ascent (L-BFGS along geodesics), for all restarts
    in one batch. Powers of Q are computed by squaring and the gradient by the adjoint of that, so that k = 10^4 costs
    little more than k = 10. Forgetting has powers of dual numbers, (Q + e p_m Pi_m)^k with Pi_m(B) = P_m B P_m. Between
    rounds of 50 steps tasks may gain or lose a direction.

    The value of the result is a proved lower bound on the supremum. Larger values may exist: a search proves no upper
    bound.

    Args:
        T: the number of tasks.
        d: the dimension.
        rank: the rank of every task, or of each, where the search begins; None for random ranks.
        k: the number of steps.
        quantity: "loss", the mean over all tasks; "next_loss", of the task that is learned next; "forgetting".
        ordering: independent draws with given weights (the default: uniform), a cyclic ordering or an explicit order.
        restarts: how many searches are made. What a restart gives depends on the seed and on its number alone.
        steps: the most steps of each.
        seed: of the random starts.
        ranks: "free" to let ranks change, "fixed" to keep them.
        weights: "free" to search for the worst weights of independent draws, too (next_loss and forgetting).
        start: tasks to begin with, if they are fewer than T or span less than d dimensions cloned in turn and padded;
            `rank` must be None. The first restart begins there, the others near these tasks.
        device: where to compute, as for `fg.expect`; the CPU if left out.
        jobs: the number of processes, as for `fg.Study.run`.
        store: a file that keeps finished restarts, eight in a cell, as for `fg.Study`; a search that was killed goes on
            from there.

    Cost of a step for each restart: about 5 log2(k) products of matrices of order d (d + 1) / 2; T times as many for
    forgetting. On one core, 16 restarts of 500 steps with T = 5, d = 5, k = 1000 take 2 seconds, and 8 with T = 32,
    d = 16, k = 1024 take 30.

    >>> import forgetting as fg
    >>> found = fg.adversarial_search(T=2, d=3, rank=1, k=1000, restarts=4, steps=100)   # 1 / (2 e) for large k
    >>> round(found.value, 8), round(1000 * found.value, 4), found.tasks.ranks.tolist()
    (0.00018394, 0.1839, [1, 1])
    >>> again = fg.expect(found.tasks, found.ordering, 1000)
    >>> bool(abs(again.loss - found.value) < 1e-12)
    True
    """
    T, d, k = as_count(T, "T", least=2), as_count(d, "d", least=1), as_count(k, "k", least=1)
    restarts, steps = as_count(restarts, "restarts", least=1), as_count(steps, "steps", least=1)
    order = WithReplacement() if ordering is None else as_ordering(ordering)
    asked = Asked.checked(T, d, k, quantity, order, weights)
    as_word(ranks, ("free", "fixed"), "ranks")
    first_ranks = _checked_ranks(rank, T, d)
    given = None
    if start is not None:
        if rank is not None:
            raise InvalidInputError(f"start gives the ranks of the tasks: rank must be None, got {rank!r:.40}")
        given = given_frames(as_kind(start, Problem, "tasks", "start: "), T, d)
    where, number = as_device(device), seed_from(seed)
    batch = _batch(asked, where)
    require_memory(32.0 * restarts * (steps + T * d**2), f"{restarts} restarts of {steps} steps", "use fewer restarts")
    search = partial(_search, asked, first_ranks, given, ranks == "free", steps, number, where, batch)
    if store is None and jobs is None:
        found = search(list(range(restarts)))
    else:
        found = _stored(search, asked, first_ranks, given, ranks, steps, number, where, restarts, jobs, store)
    with one_thread():
        return _result(asked, found, steps, number, where)


def _checked_ranks(rank: Any, T: int, d: int) -> IntArray | None:
    if rank is None:
        return None
    shape = any_array(rank, "rank").shape
    if shape not in ((), (T,)):
        raise InvalidInputError(f"rank: expected one number or one for each of {T} tasks, got shape {shape}")
    given = np.broadcast_to(np.asarray(rank), (T,))
    found = [as_count(r, f"rank of task {task}", least=1) for task, r in enumerate(given.tolist())]
    for task, r in enumerate(found):
        if r > d:
            raise InvalidInputError(f"rank of task {task} is {r}; it must be between 1 and d = {d}")
    return np.array(found, dtype=np.int64)


def _batch(asked: Asked, device: Device) -> int:
    """How many collections fit at once; raise if not one does."""
    needed = 8.0 * (asked.objective(HOST).numbers(asked.T, asked.d) + VECTORS * asked.T * asked.d**2)
    free = SHARE * device.memory
    if needed > free:
        raise MemoryLimitError(
            f"T = {asked.T}, d = {asked.d}: a step needs about {in_bytes(needed)}, more than a quarter of what is free "
            f"on {device} ({in_bytes(free)}); use fewer tasks or dimensions",
            needed=needed,
            allowed=free,
        )
    fastest = min(max(CACHED / needed, 16), 80) if device.host else MOST  # 16 to 80, as measured on a CPU
    return max(1, int(min(fastest, free // needed)))


def _search(
    asked: Asked, ranks: IntArray | None, given: tuple[Array, Array] | None, free: bool, steps: int, seed: int,
    device: Device, batch: int, indices: list[int],
) -> list[dict[str, Any]]:  # fmt: skip
    """What the restarts of these numbers find, as plain data."""
    found: list[dict[str, Any]] = []
    together = max(1, batch // (1 + TRIES))  # there is room for moves beside each
    for first in range(0, len(indices), together):
        part = indices[first : first + together]
        with one_thread():  # many small products
            shape, here = (asked.T, asked.d), asked.objective(HOST)
            point = Point.joined(
                [starting_point(here, asked.k, asked.weights, shape, ranks, given, seed, index) for index in part]
            )
            climbed = climb_with_ranks(
                asked.objective(device), point, steps, free=free, weighted=asked.free_weights, batch=batch
            )
        found += [
            {
                "index": index,
                "frames": climbed.point.frames[row].tolist(),
                "kernel": climbed.point.kernel[row].tolist(),
                "logits": climbed.point.logits[row].tolist(),
                "log_value": float(climbed.point.log_value[row]),
                "slope": float(climbed.point.slope[row]),
                "flat": bool(climbed.flat[row]),
                "finished": bool(climbed.finished[row]),
                "history": climbed.history[row].tolist(),
            }
            for row, index in enumerate(part)
        ]
    return found


class _Searcher:
    """A search as the function of a study: the cell says which restarts, and the rest travels with the function."""

    def __init__(self, search: Any) -> None:
        self.search, self.__qualname__ = search, "adversarial_search"

    def __call__(self, restarts: list[int], identity: Any, code: str, seed: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.search(restarts)
        return found


def _stored(
    search: Any, asked: Asked, ranks: IntArray | None, given: tuple[Array, Array] | None, changes: str, steps: int,
    seed: int, device: Device, restarts: int, jobs: int | None, store: str | Path | None,
) -> list[dict[str, Any]]:  # fmt: skip
    """What all restarts find; those in the store are not computed again."""
    identity = {
        "T": asked.T, "d": asked.d, "k": asked.k, "quantity": asked.quantity, "ordering": str(asked.ordering),
        "free weights": asked.free_weights, "ranks": changes, "steps": steps, "device": str(device.spec),
        "rank": "random" if ranks is None else ranks.tolist(),
        "weights": fingerprint(asked.weights).hex(), "start": "" if given is None else fingerprint(*given).hex(),
    }  # fmt: skip
    code, numbers = code_digest(), list(range(restarts))
    cells = [
        {"restarts": numbers[first : first + BLOCK], "identity": identity, "code": code, "seed": seed}
        for first in range(0, restarts, BLOCK)
    ]
    study = Study(cells, store, function=_Searcher(search))
    return study.run(jobs, progress=False, retry=True, check=True).results()


def _result(asked: Asked, found: list[dict[str, Any]], steps: int, seed: int, device: Device) -> TaskSearch:
    logs = np.array([one["log_value"] for one in found])
    slopes = np.array([one["slope"] for one in found])
    best = found[int(np.argmax(logs))]
    frames, kernel = np.linalg.qr(np.array(best["frames"]))[0], np.array(best["kernel"])
    p = probabilities(HOST, np.array([best["logits"]]))[0] if asked.free_weights else asked.weights
    P = projections_of(HOST, frames[None], kernel[None])
    z = asked.objective(HOST).of(P, p[None], np.ones((1, asked.d, 1)), gradient=False).start[0, :, 0]
    matrices = [
        frame[:, own == 0].T if (own == 0).any() else np.zeros((1, asked.d))
        for frame, own in zip(frames, kernel, strict=True)
    ]
    tasks = RegressionTasks(matrices, [X @ z for X in matrices])
    ordering = WithReplacement(p=p) if asked.free_weights else asked.ordering
    exact = expect(tasks, ordering, asked.k, quantities=(asked.quantity,), patience=np.inf)
    return TaskSearch(
        asked.quantity, asked.k, ordering, tasks, float(exact.values[asked.quantity]),
        float(exact.uncertainty[asked.quantity]), p, np.exp(logs), slopes,
        np.exp(np.array([one["history"] for one in found])), seed, str(device), _status(found, logs, slopes, steps),
    )  # fmt: skip


def _status(found: list[dict[str, Any]], logs: Array, slopes: Array, steps: int) -> str:
    """How the search ended."""
    best = int(np.argmax(logs))
    agree = int(np.sum(logs >= logs[best] - SAME))
    shares = f"{agree} of {len(logs)} restarts ended within {SAME:g} of the best"
    if found[best]["flat"] and slopes[best] > ROUNDED:
        return f"rounding errors ended the best restart, at gradient {slopes[best]:.1g}; {shares}"
    if found[best]["finished"]:
        return f"the best restart ended at a local maximum (gradient {slopes[best]:.1g}); {shares}"
    if found[best]["flat"]:
        return (
            f"the best restart ended at gradient {slopes[best]:.1g}, before all changes of ranks were tried; {shares}"
        )
    return f"the best restart still had a gradient of {slopes[best]:.1g} after {steps} steps: more may help; {shares}"
