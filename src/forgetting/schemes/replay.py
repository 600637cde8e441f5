"""Replay: rows of earlier tasks are kept, and joined to the rows of each task that is learned."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, cast

import numpy as np

from forgetting.core.arrays import Array, as_count, as_word
from forgetting.core.numerical import ROUNDING
from forgetting.errors import InvalidInputError
from forgetting.geometry import Geometry
from forgetting.schemes.affine import AffineStep, Joined, learned, linear_step, own_rows
from forgetting.schemes.base import Learned, MemoryLaw, Scheme, as_scheme, register
from forgetting.schemes.linear import Kaczmarz, LinearScheme, gains_at
from forgetting.tasks.problem import Problem

__all__ = ["Replay"]

Policy = Literal["first", "ring", "reservoir", "hard"]
Kept = tuple[tuple[int, int], ...]


@register
@dataclass(frozen=True)
class Replay(Scheme):
    """Kept rows of earlier tasks are joined to those of the current task, and `scheme` learns the joined task.

    The joined task is that of the matrix of all these rows, so that Kaczmarz solves the task and what is kept together.
    Its loss is L_m(w) plus half the squared residuals of the rows that are joined; a row keeps the weight that it has
    in the loss of its own task (1, or 1/n_s where losses are means over the n_s rows of a task s). With all rows of all
    tasks kept, this is the sum of the losses of the tasks seen. Rows of the task itself are never joined.

    `memory` is a number of rows of each task (`per="task"`), or in all (`per="all"`). The `policy` says which rows:

    - "first": the first rows of each task; in all, the first rows seen, after which nothing is replaced.
    - "ring": the last rows of each task; in all, the last rows seen, where a task that is visited again is seen again.
    - "reservoir": of each task, or of all rows seen, a sample in which all have the same chance (Vitter, 1985). A task
      that is visited again adds nothing.
    - "hard": the rows with the largest loss right after their task was learned, of each task or in all. Losses that are
      rounding errors count as 0, and of equal losses the first is taken. A task that is visited again is chosen anew.

    What is kept of a task by "first" or "ring" is always the same, so that the step depends only on the set of the
    tasks seen, and expectations are exact: without replacement, with it (any probabilities), in epochs, and in a given
    order. In all, it depends on the order, and few orders are exact. "reservoir" draws random numbers and "hard" looks
    at w, which the exact methods cannot follow: they are simulated, or, for "hard", run in every order where those are
    few.

    `scheme` is linear: Kaczmarz, SGD, FiniteSteps, Ridge or a `LinearScheme` of your own. A step costs
    O(N^2 D) for N joined rows in D dimensions. A replay of 0 rows is the scheme itself.

    >>> import forgetting as fg
    >>> tasks = fg.RegressionTasks([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0]]], [[1.0, 0.0], [3.0]])   # rows disagree
    >>> [fg.run(tasks, [0, 1], 2, scheme=Replay(memory=m)).iterates[-1].round(6).tolist() for m in (0, 1)]
    [[2.0, 1.0], [1.0, 2.0]]
    >>> fg.expect(tasks, "without-replacement", 2, scheme="replay memory=1").method
    'seen'
    """

    scheme: LinearScheme = field(default_factory=Kaczmarz)
    memory: int = 1
    policy: Policy = "first"
    per: Literal["task", "all"] = "task"
    all_outputs: ClassVar[bool] = True
    intrinsic: ClassVar[bool] = True
    reads_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        inner = as_scheme(self.scheme)
        if not isinstance(inner, LinearScheme):
            raise InvalidInputError(
                f"Replay: scheme must be linear, such as Kaczmarz() or Ridge(0.1), which learn a matrix of rows by its "
                f"singular values, in the same way at every step; got {inner}"
            )
        object.__setattr__(self, "scheme", inner)
        object.__setattr__(self, "memory", as_count(self.memory, "Replay: memory"))
        as_word(self.policy, ("first", "ring", "reservoir", "hard"), "Replay: policy")
        as_word(self.per, ("task", "all"), "Replay: per")

    @property
    def random(self) -> bool:
        return self.memory > 0 and self.policy == "reservoir"

    @property
    def remembers(self) -> bool:
        return self.memory > 0

    @property
    def nonexpansive(self) -> bool:
        return self.scheme.nonexpansive

    @property
    def memory_law(self) -> MemoryLaw:
        if self.memory == 0:
            return "nothing"
        if self.policy in ("reservoir", "hard"):
            return "random" if self.random else "iterate"
        return "set" if self.per == "task" else "order"

    def linear_on(self, problem: Problem) -> LinearScheme | None:
        return self.scheme.linear_on(problem) if self.memory == 0 else None

    def fitted_to(self, problem: Problem, k: int) -> Scheme:
        fitted = self.scheme.fitted_to(problem, k)
        return self if fitted is self.scheme else replace(self, scheme=cast(LinearScheme, fitted))

    # ------------------------------------------------------------------------------------------------- what is kept

    def remember(self, geometry: Geometry, seen: Any, task: int) -> Kept:
        """(task, row) of each row kept; for the policies "first" and "ring"."""
        kept: Kept = seen
        rows = tuple((task, row) for row in range(_num_rows(geometry, task)))
        others = tuple(place for place in kept if place[0] != task)
        if self.per == "task":
            own = rows[: self.memory] if self.policy == "first" else rows[len(rows) - self.memory :]
            return tuple(sorted((*others, *own)))
        if self.policy == "ring":
            return (*others, *rows)[-self.memory :]
        return kept if len(others) < len(kept) else (*kept, *rows)[: self.memory]

    def affine_step(self, geometry: Geometry, task: int, seen: Any) -> AffineStep | None:
        if self.memory_law not in ("set", "order"):
            return None
        self._check(geometry)
        return linear_step(geometry, _joined(geometry, task, seen, {}), partial(gains_at, self.scheme))

    def _check(self, geometry: Geometry) -> None:
        """Raise if a task has fewer rows than are to be kept of it."""
        sizes = [_num_rows(geometry, task) for task in range(geometry.num_tasks)]
        if self.per == "task" and min(sizes) < self.memory:
            task = int(np.argmin(sizes))
            raise InvalidInputError(
                f"Replay: memory={self.memory} rows a task are to be kept, but task {task} has {sizes[task]} "
                f"row{'s' * (sizes[task] != 1)}; keep at most {sizes[task]}, or give per='all' for rows in all"
            )
        if sum(sizes) < self.memory:
            raise InvalidInputError(
                f"Replay: memory={self.memory} rows in all are to be kept, but the {len(sizes)} tasks together have "
                f"{sum(sizes)} rows; keep at most {sum(sizes)}"
            )

    # ----------------------------------------------------------------------------------------------------- in a run

    def start(self, problem: Problem, w0: Array, rng: np.random.Generator) -> _Memory:
        geometry = cast(Geometry, problem)  # of an intrinsic scheme
        self._check(geometry)
        return _Memory(rng)

    def learn(self, problem: Problem, task: int, w: Array, memory: _Memory) -> Learned:
        geometry = cast(Geometry, problem)
        joined = _joined(geometry, task, memory.kept, memory.equations)
        point = learned(geometry, joined, partial(gains_at, self.scheme), w)
        if self.memory and self.policy == "reservoir":
            memory.sample(task, _num_rows(geometry, task), self.memory, whole=self.per == "all")
        elif self.memory and self.policy == "hard":
            self._keep_hard(memory, task, point, _equations(geometry, task, memory.equations))
        elif self.memory:
            memory.kept = self.remember(geometry, memory.kept, task)
        return Learned(point)

    def _keep_hard(self, memory: _Memory, task: int, w: Array, rows: Joined) -> None:
        point = np.atleast_2d(w)
        missed = np.linalg.norm(rows.rows @ point.T - rows.labels, axis=1)
        sizes = np.linalg.norm(rows.rows, axis=1) * np.linalg.norm(point) + np.linalg.norm(rows.labels, axis=1)
        losses = np.where(missed > ROUNDING * np.max(sizes, initial=0.0), missed, 0.0)
        hardest = np.argsort(-losses, kind="stable")[: self.memory].tolist()
        memory.losses = {place: loss for place, loss in memory.losses.items() if place[0] != task}
        memory.losses |= {(task, row): float(losses[row]) for row in hardest}
        if self.per == "all":
            ranked = sorted(memory.losses, key=lambda place: (-memory.losses[place], place))[: self.memory]
            memory.losses = {place: memory.losses[place] for place in ranked}
        memory.kept = tuple(sorted(memory.losses))


class _Memory:
    """The memory of a run.

    Attributes:
        kept: (task, row) of each row.
        losses: of the rows kept, for the policy "hard".
        equations: rows and labels of distinct tasks of which rows were joined.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.kept: Kept = ()
        self.losses: dict[tuple[int, int], float] = {}
        self.equations: dict[int, Joined] = {}
        self.visited: set[int] = set()
        self.seen = 0

    def sample(self, task: int, rows: int, size: int, *, whole: bool) -> None:
        """Offer the rows of a task to a sample of `size` rows: of all rows seen, if `whole`, else of the task alone."""
        if task in self.visited:
            return
        self.visited.add(task)
        if not whole:
            chosen = np.sort(self.rng.choice(rows, size=size, replace=False)).tolist()
            self.kept = (*self.kept, *((task, row) for row in chosen))
            return
        kept = list(self.kept)
        for row in range(rows):
            self.seen += 1
            if len(kept) < size:
                kept.append((task, row))
            elif (place := int(self.rng.integers(self.seen))) < size:
                kept[place] = task, row
        self.kept = tuple(kept)


def _num_rows(geometry: Geometry, task: int) -> int:
    return len(geometry.row_equations.labels[int(geometry.index[task])])


def _equations(geometry: Geometry, task: int, known: dict[int, Joined]) -> Joined:
    """The rows and labels of a task as they were given, in coordinates z."""
    distinct = int(geometry.index[task])
    if distinct not in known:
        rows, labels = geometry.equations(task)
        known[distinct] = Joined(rows, labels.reshape(len(rows), -1))
    return known[distinct]


def _joined(geometry: Geometry, task: int, kept: Kept, known: dict[int, Joined]) -> Joined:
    """The rows of a task, followed by the rows kept of other tasks."""
    parts = [own_rows(geometry, task)]
    others: dict[int, list[int]] = {}
    for owner, row in kept:
        if owner != task:
            others.setdefault(owner, []).append(row)
    for owner, rows in others.items():
        given = _equations(geometry, owner, known)
        parts.append(Joined(given.rows[rows], given.labels[rows]))
    return Joined(np.concatenate([part.rows for part in parts]), np.concatenate([part.labels for part in parts]))
