"""`adversarial_search`: gradient ascent over subspaces for tasks with a large expected loss or forgetting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from forgetting.compute.devices import HOST, Device, as_device
from forgetting.compute.threads import one_thread
from forgetting.core.arrays import Array, IntArray, Seed, any_array, as_count, as_kind, as_word, fingerprint, seed_from
from forgetting.core.memory import in_bytes, require_memory
from forgetting.errors import ForgettingError, InvalidInputError, MemoryLimitError, NotSupportedError, OrderingError
from forgetting.expectation import expect
from forgetting.figures.items import Curves, Series
from forgetting.files.records import checked_fields
from forgetting.files.store import code_digest
from forgetting.orderings import Ordering, TaskView, WithReplacement
from forgetting.orderings.base import OrderingLike, as_ordering
from forgetting.orderings.laws import Cycle, Fixed, Independent
from forgetting.results import Result
from forgetting.studies.study import Study
from forgetting.tasks import Problem, RegressionTasks
from forgetting.worstcase.ascent import Point, given_frames, probabilities, projections_of, starting_point
from forgetting.worstcase.objective import Drawn, DrawnForgetting, InOrder, Objective
from forgetting.worstcase.rank_moves import TRIES, climb_with_ranks

__all__ = ["TaskSearch", "adversarial_search"]

SAME = 1e-6  # relative difference of values that count as the same
SHOWN = 64  # curves of a figure
QUANTITIES = ("loss", "next_loss", "forgetting")
COVERED = (
    "the search covers independent draws with given weights, cyclic orderings and explicit orders (fg.orderings."
    "WithReplacement, Cyclic, Explicit)"
)
BLOCK = 8  # restarts of one cell of a study
RESULTS = ("frames", "kernel", "logits", "log_value", "slope", "flat", "finished", "history")  # of a restart
SHARE = 0.25  # of the memory, for what is computed at once
ROUNDED = 1e-5  # a gradient at which rounding errors and nothing else can end an ascent
MOST = 256  # collections in one batch on a device
CACHED = 2.0**24  # bytes of a batch that a CPU computes fastest with
VECTORS = 50  # of L-BFGS, of T d^2 numbers each


@dataclass(frozen=True, eq=False, repr=False)
class TaskSearch(Result):
    """The worst tasks that `adversarial_search` found.

    Attributes:
        quantity: "loss", "next_loss" or "forgetting".
        k: the number of steps.
        ordering: with the weights that were found, where these were free.
        tasks: the worst tasks: matrices with orthonormal rows, and labels of a unit w*, from w_0 = 0. A task of rank 0
            is a row of zeros.
        value: the exact expected quantity of these tasks, computed by `fg.expect` on the CPU: up to `uncertainty`, a
            proved lower bound on the supremum over all tasks of radius 1 with |w*| = 1.
        uncertainty: a bound on the error of `value`.
        weights: the probabilities of the draws; equal ones where nothing is drawn.
        values: what each restart reached, as computed in the search.
        slopes: for each restart the norm of the gradient of log(value) in its angles (and weights); 0 at a maximum.
        history: the value after each step, (restarts, steps + 1).
        seed: of the search.
        device: where the search ran, in words.
        status: how the search ended, in a sentence.

    >>> import forgetting as fg
    >>> found = fg.adversarial_search(T=2, d=2, rank=1, k=1, restarts=2, steps=50)
    >>> round(found.value, 6), round(4 / 27, 6), found.tasks.ranks.tolist()
    (0.148148, 0.148148, [1, 1])
    """

    kind = "task search"

    quantity: str
    k: int
    ordering: Ordering
    tasks: RegressionTasks
    value: float
    uncertainty: float
    weights: Array
    values: Array
    slopes: Array
    history: Array
    seed: int
    device: str
    status: str

    @property
    def rate(self) -> float:
        """k times the value: the constant of a rate 1/k."""
        return self.k * self.value

    @property
    def headline(self) -> str:
        """The value and the tasks in one line."""
        return (
            f"Tasks of large {self.quantity.replace('_', ' ')} after {self.k} {'step' if self.k == 1 else 'steps'}: "
            f"{self.value:.8g} (times k: {self.rate:.6g}), T = {self.tasks.num_tasks}, d = {self.tasks.dim}, "
            f"{self.ordering}"
        )

    def _num_rows(self) -> int:
        return len(self.values)

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Sequence[Any]]:
        best = float(self.values.max())
        return {
            "restart": rows.tolist(),
            self.quantity: self.values[rows].tolist(),
            "below the best": (1 - self.values[rows] / best if best > 0 else 0 * self.values[rows]).tolist(),
            "gradient": self.slopes[rows].tolist(),
        }

    def _remarks(self) -> tuple[str, ...]:
        return (self.status,)

    def figure(self) -> Curves:
        """The value after each step, a curve for each restart; the best restart stands out."""
        best, steps = int(np.argmax(self.values)), tuple(map(float, range(1, self.history.shape[1] + 1)))
        others = [row for row in range(len(self.values)) if row != best][: SHOWN - 1]
        curves = [
            Series(
                f"restart {row}", steps, tuple(self.history[row].tolist()), label="" if row == best else "others",
                minor=row != best,
            )
            for row in (*others, best)
        ]  # fmt: skip
        name = self.quantity.replace("_", " ")
        return Curves(
            "search",
            f"Search for the largest {name} after k = {self.k}",
            self.status,
            "step",
            name,
            tuple(curves),
            floor=1e-3 * float(self.values.max()) or None,
        )

    @classmethod
    def _restored(cls, values: dict[str, Any]) -> Self:
        made = cls(**checked_fields(cls, values))
        restarts = len(made.values)
        if restarts == 0 or made.slopes.shape != (restarts,) or made.history.shape[:1] != (restarts,):
            raise ForgettingError("each restart needs a value, a gradient and a history")
        if made.history.ndim != 2 or made.weights.shape != (made.tasks.num_tasks,):
            raise ForgettingError("each restart needs a history, and each task a weight")
        return made


@dataclass(frozen=True, eq=False)
class SearchQuestion:
    """The largest `quantity` after k steps in an ordering, over T subspaces of dimension d.

    Attributes:
        weights: the probabilities of independent draws, where the search begins; equal ones for fixed orders.
        epoch: the tasks that are repeated; None for independent draws.
    """

    T: int
    d: int
    k: int
    quantity: str
    ordering: Ordering
    free_weights: bool
    weights: Array
    epoch: IntArray | None

    @classmethod
    def checked(cls, T: int, d: int, k: int, quantity: Any, ordering: Ordering, weights: Any) -> SearchQuestion:
        """The question; an error says what is wrong, or not covered."""
        as_word(quantity, QUANTITIES, "quantity")
        if not isinstance(weights, str) or weights not in ("fixed", "free"):
            raise InvalidInputError(
                f"weights must be 'fixed' or 'free', got {weights!r:.40}; fixed weights are those "
                "of the ordering, such as fg.orderings.WithReplacement(p=[1, 2])"
            )
        law, free = ordering.law, weights == "free"
        law.check(T)
        if quantity == "forgetting" and k == 1:
            raise InvalidInputError("forgetting is 0 after k = 1 step, whatever the tasks are; give k of at least 2")
        if isinstance(law, Independent):
            if callable(law.p):
                raise NotSupportedError(f"{ordering}: its weights depend on the tasks; {COVERED}")
            if free and quantity == "loss":
                raise InvalidInputError(
                    "the mean loss over all tasks is largest if one task alone is drawn for ever, so that weights of "
                    "the draws cannot be free; use quantity='next_loss' or 'forgetting', or weights='fixed'"
                )
            return cls(T, d, k, quantity, ordering, free, law.probabilities(TaskView(T)), None)
        if not isinstance(law, Fixed) or (not isinstance(law, Cycle) and law.sequence is None):
            raise NotSupportedError(f"{ordering} is not covered: {COVERED}")
        if free:
            raise InvalidInputError(f"weights='free' is about independent draws, and {ordering} draws nothing")
        if isinstance(law, Cycle):
            epoch = law.epoch(T)
        else:
            epoch = np.array(law.sequence, dtype=np.int64)
            needed = k + (quantity == "next_loss")
            if len(epoch) < needed:
                raise OrderingError(
                    f"{ordering} has {len(epoch)} steps, and {quantity} after k = {k} steps needs {needed}; give a "
                    "longer order or a smaller k"
                )
            epoch = epoch[:needed]
        return cls(T, d, k, quantity, ordering, False, np.full(T, 1 / T), epoch)

    def objective(self, device: Device) -> Objective:
        """The quantity that is maximised, on a device."""
        equal = np.full(self.T, 1 / self.T)
        if self.epoch is None:
            if self.quantity == "forgetting":
                return DrawnForgetting(device, self.d, self.k)
            return Drawn(device, self.d, self.k, equal if self.quantity == "loss" else None)
        cycles, rest = divmod(self.k, len(self.epoch))
        shares = equal
        if self.quantity == "next_loss":
            shares = (np.arange(self.T) == self.epoch[rest]).astype(np.float64)
        elif self.quantity == "forgetting":
            visits = cycles * np.bincount(self.epoch, minlength=self.T)
            shares = (visits + np.bincount(self.epoch[:rest], minlength=self.T)) / self.k
        return InOrder(device, self.epoch, cycles, rest, shares)


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
    question = SearchQuestion.checked(T, d, k, quantity, order, weights)
    as_word(ranks, ("free", "fixed"), "ranks")
    first_ranks = _checked_ranks(rank, T, d)
    given = None
    if start is not None:
        if rank is not None:
            raise InvalidInputError(f"start gives the ranks of the tasks: rank must be None, got {rank!r:.40}")
        given = given_frames(as_kind(start, Problem, "tasks", "start: "), T, d)
    where, number = as_device(device), seed_from(seed)
    search = _Search(question, first_ranks, given, ranks, steps, number, where, _batch(question, where))
    require_memory(32.0 * restarts * (steps + T * d**2), f"{restarts} restarts of {steps} steps", "use fewer restarts")
    plain = store is None and jobs is None
    results = search(list(range(restarts))) if plain else search.stored(restarts, jobs, store)
    with one_thread():
        return _result(question, results, steps, number, where)


def _checked_ranks(rank: Any, T: int, d: int) -> IntArray | None:
    if rank is None:
        return None
    shape = any_array(rank, "rank").shape
    if shape not in ((), (T,)):
        raise InvalidInputError(f"rank: expected one number or one for each of {T} tasks, got shape {shape}")
    given = np.broadcast_to(np.asarray(rank), (T,))
    checked = [as_count(r, f"rank of task {task}", least=1) for task, r in enumerate(given.tolist())]
    for task, r in enumerate(checked):
        if r > d:
            raise InvalidInputError(f"rank of task {task} is {r}; it must be between 1 and d = {d}")
    return np.array(checked, dtype=np.int64)


def _batch(question: SearchQuestion, device: Device) -> int:
    """The number of collections that fit into memory at once; raise if not one does."""
    needed = 8.0 * (question.objective(HOST).numbers(question.T, question.d) + VECTORS * question.T * question.d**2)
    free = SHARE * device.memory
    if needed > free:
        raise MemoryLimitError(
            f"T = {question.T}, d = {question.d}: a step needs about {in_bytes(needed)}, more than a quarter of what "
            f"is free on {device} ({in_bytes(free)}); use fewer tasks or dimensions",
            needed=needed,
            allowed=free,
        )
    fastest = min(max(CACHED / needed, 16), 80) if device.host else MOST  # 16 to 80, as measured on a CPU
    return max(1, int(min(fastest, free // needed)))


@dataclass(eq=False)
class _Search:
    """A search as the function of a study: the cell says which restarts, and the rest travels with the function."""

    question: SearchQuestion
    ranks: IntArray | None
    given: tuple[Array, Array] | None
    changes: str
    steps: int
    seed: int
    device: Device
    batch: int

    def __post_init__(self) -> None:
        self.__qualname__ = "adversarial_search"

    def __call__(
        self, restarts: list[int], identity: Any = None, code: str = "", seed: int = 0
    ) -> list[dict[str, Any]]:
        """The results of the restarts of these numbers, as plain data."""
        question, results = self.question, []
        together = max(1, self.batch // (1 + TRIES))  # there is room for moves beside each
        for first in range(0, len(restarts), together):
            part = restarts[first : first + together]
            with one_thread():  # many small products
                shape, here = (question.T, question.d), question.objective(HOST)
                begin = (here, question.k, question.weights, shape, self.ranks, self.given, self.seed)
                climbed = climb_with_ranks(
                    question.objective(self.device), Point.joined([starting_point(*begin, index) for index in part]),
                    self.steps, free=self.changes == "free", weighted=question.free_weights, batch=self.batch,
                )  # fmt: skip
            values = climbed.point._asdict() | climbed._asdict()
            results += [
                {"index": index} | {name: values[name][row].tolist() for name in RESULTS}
                for row, index in enumerate(part)
            ]
        return results

    def stored(self, restarts: int, jobs: int | None, store: str | Path | None) -> list[dict[str, Any]]:
        """The results of all restarts; those in the store are not computed again."""
        question = self.question
        identity = {
            "T": question.T, "d": question.d, "k": question.k, "quantity": question.quantity,
            "ordering": str(question.ordering), "free weights": question.free_weights, "ranks": self.changes,
            "steps": self.steps, "device": str(self.device.spec),
            "rank": "random" if self.ranks is None else self.ranks.tolist(),
            "weights": fingerprint(question.weights).hex(),
            "start": "" if self.given is None else fingerprint(*self.given).hex(),
        }  # fmt: skip
        code, numbers = code_digest(), list(range(restarts))
        cells = [
            {"restarts": numbers[first : first + BLOCK], "identity": identity, "code": code, "seed": self.seed}
            for first in range(0, restarts, BLOCK)
        ]
        study = Study(cells, store, function=self)
        return study.run(jobs, progress=False, retry=True, check=True).results()


def _result(
    question: SearchQuestion, results: list[dict[str, Any]], steps: int, seed: int, device: Device
) -> TaskSearch:
    logs = np.array([restart["log_value"] for restart in results])
    slopes = np.array([restart["slope"] for restart in results])
    best = results[int(np.argmax(logs))]
    frames, kernel = np.linalg.qr(np.array(best["frames"]))[0], np.array(best["kernel"])
    p = probabilities(HOST, np.array([best["logits"]]))[0] if question.free_weights else question.weights
    P = projections_of(HOST, frames[None], kernel[None])
    z = question.objective(HOST).of(P, p[None], np.ones((1, question.d, 1)), gradient=False).start[0, :, 0]
    matrices = [
        frame[:, own == 0].T if (own == 0).any() else np.zeros((1, question.d))
        for frame, own in zip(frames, kernel, strict=True)
    ]
    tasks = RegressionTasks(matrices, [X @ z for X in matrices])
    ordering = WithReplacement(p=p) if question.free_weights else question.ordering
    exact = expect(tasks, ordering, question.k, quantities=(question.quantity,), patience=np.inf)
    return TaskSearch(
        question.quantity, question.k, ordering, tasks, float(exact.values[question.quantity]),
        float(exact.uncertainty[question.quantity]), p, np.exp(logs), slopes,
        np.exp(np.array([restart["history"] for restart in results])), seed, str(device),
        _status(results, logs, slopes, steps),
    )  # fmt: skip


def _status(results: list[dict[str, Any]], logs: Array, slopes: Array, steps: int) -> str:
    """A sentence on how the search ended."""
    best = int(np.argmax(logs))
    agree = int(np.sum(logs >= logs[best] - SAME))
    shares = f"{agree} of {len(logs)} restarts ended within {SAME:g} of the best"
    if results[best]["flat"] and slopes[best] > ROUNDED:
        return f"rounding errors ended the best restart, at gradient {slopes[best]:.1g}; {shares}"
    if results[best]["finished"]:
        return f"the best restart ended at a local maximum (gradient {slopes[best]:.1g}); {shares}"
    if results[best]["flat"]:
        return (
            f"the best restart ended at gradient {slopes[best]:.1g}, before all changes of ranks were tried; {shares}"
        )
    return f"the best restart still had a gradient of {slopes[best]:.1g} after {steps} steps: more may help; {shares}"
