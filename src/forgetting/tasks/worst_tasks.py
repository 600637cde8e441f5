"""The worst tasks that are known for a number of steps: the files of the frontier, and families in closed form.

Each file of the folder `known_worst` is one entry: the largest expected loss or forgetting that is known for T tasks
after k steps at |w_0 - w*| R = 1, tasks that reach it, and a proved upper bound where there is one. Hunts of claims
start from these tasks, and `fg.worstcase.frontier` lists and verifies the entries.

In closed form are two lines in a plane with w* halfway between them, the worst pairs of tasks under random orders.
`Levels` has tasks that are worse for many steps.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from forgetting.core.arrays import Array
from forgetting.core.memory import require_memory
from forgetting.core.numerical import quietly
from forgetting.errors import InvalidInputError
from forgetting.files.best_known import BestKnown
from forgetting.geometry import orthogonal_complement
from forgetting.tasks.levels import MOST, Levels
from forgetting.tasks.regression import RegressionTasks

FOLDER = Path(__file__).with_name("known_worst")
PROOF = ".certificate.json"  # ending of the file beside an entry that proves its upper bound
CLOSE = 1e-10  # the largest distance of rows from orthonormal, and of |w*| from 1
LARGEST = 0.5  # no expected loss or forgetting is larger at |w_0 - w*| R = 1


@dataclass(frozen=True)
class KnownWorst(BestKnown):
    """The largest known expected loss or forgetting of T tasks after k steps, and tasks that reach it.

    Attributes:
        quantity: loss or forgetting, expected at |w_0 - w*| R = 1.
        T: the number of tasks; None for the supremum over all numbers of tasks, which no stored tasks reach.
        k: the number of steps.
        ordering: in the words of the command line, such as with-replacement.
        evidence: "certified" where a proved upper bound belongs to the entry, "searched" where tasks were found by a
            search, "closed form" where the supremum is known as a formula.
        value: the exact value of the tasks, a lower bound on the supremum; None without tasks.
        upper: a proved upper bound on the supremum over all collections of T tasks, of any dimension, or None.
        origin: how the entry was found: the call, with its seed.
        w_star: the solution, |w*| = 1; the labels are X_m w*.
        matrices: orthonormal rows of each task, or a single row of zeros for a task of rank 0.
        kernels: whether `matrices` hold the kernels of the tasks, the directions that a task does not see, and not the
            rows X_m: fewer numbers where ranks are large.
        construction: in place of w_star and matrices, the numbers of `Levels`, such as "equiangular share=0.1".
        proof: the SHA-256 of the certificate that is beside the entry, or None.
        path: the file that the entry was read from, or None.

    >>> entry = KnownWorst("loss", 2, 1, w_star=(0.6, 0.8), matrices=(((1.0, 0.0),), ((0.0, 1.0),)), value=0.125)
    >>> entry.tasks.num_tasks, entry.d, entry.name
    (2, 2, 'loss-T2-k1')
    """

    _FORMAT = "forgetting/worst-tasks/1"
    _WHAT = "entry of worst tasks"

    quantity: Literal["loss", "forgetting"]
    T: int | None
    k: int
    ordering: str = "with-replacement"
    evidence: Literal["certified", "searched", "closed form"] = "searched"
    value: float | None = None
    upper: float | None = None
    origin: str = ""
    w_star: tuple[float, ...] = ()
    matrices: tuple[tuple[tuple[float, ...], ...], ...] = ()
    kernels: bool = False
    construction: str = ""
    proof: str | None = None
    path: Path | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        with quietly():  # what overflows is not orthonormal
            wrong = next(self._wrongs(), None)
        if wrong is not None:
            raise InvalidInputError(wrong)

    def _wrongs(self) -> Iterator[str]:
        """The faults of the entry, one sentence each."""
        if not (1 <= self.k <= MOST and (self.T is None or 1 <= self.T <= MOST)):
            yield f"T = {self.T!s:.40} and k = {self.k!s:.40} must be at least 1, and at most 10^12"
        if not re.fullmatch(r"[a-z][a-z0-9=,. -]{0,79}", self.ordering):
            yield f"no ordering {self.ordering!r:.80}"
        if self.upper is not None and not 0 <= self.upper <= LARGEST:
            yield f"the upper bound {self.upper} is not between 0 and 1/2"
        if self.evidence == "certified" and self.upper is None:
            yield "a certified entry needs an upper bound"
        if self.proof is not None and not re.fullmatch("[0-9a-f]{64}", self.proof):
            yield f"{self.proof!r:.80} is not the SHA-256 of a certificate"
        if self.T is None:
            if self.value is not None or self.matrices or self.w_star or self.construction:
                yield "a supremum over all numbers of tasks has no tasks and no value of them"
            return
        if self.value is None or not 0 <= self.value <= LARGEST:
            yield f"the value {self.value} is not between 0 and 1/2"
        elif self.upper is not None and self.value > self.upper + CLOSE:
            yield f"the value {self.value} is above the upper bound {self.upper}"
        if self.construction:
            try:
                Levels.read(self.construction, self.T)
            except InvalidInputError as error:
                yield f"no tasks of {self.construction!r:.60}: {error}"
            if self.matrices or self.w_star:
                yield f"{self.construction!r:.60} and matrices: an entry has either"
            return
        if len(self.matrices) != self.T:
            yield f"{len(self.matrices)} matrices for T = {self.T} tasks"
        yield from self._wrong_arrays()

    def _wrong_arrays(self) -> Iterator[str]:
        with quietly():  # what is not finite is not 1
            norm = float(np.linalg.norm(self.w_star)) if self.w_star else 0.0
        if not abs(norm - 1) <= CLOSE:
            yield f"|w*| is {norm:.12g}, not 1"
        for task, matrix in enumerate(self.matrices):
            widths = sorted({len(row) for row in matrix})
            if widths != [self.d]:
                yield f"task {task} has rows of {widths} numbers, and w* has {self.d}"
                return
            if len(matrix) == 1 and not any(matrix[0]):
                continue  # rank 0
            X = np.array(matrix)
            with quietly():
                error = float(np.abs(X @ X.T - np.eye(len(X))).max())
            if not error <= CLOSE:
                yield f"the rows of task {task} are not orthonormal: they are off by {error:.3g}"

    @property
    def d(self) -> int:
        """The dimension of the tasks; 0 without tasks."""
        return len(self.w_star) if self.levels is None else sum(self.levels.sizes)

    @property
    def levels(self) -> Levels | None:
        """The numbers of tasks in levels; None for tasks that are given by matrices."""
        return Levels.read(self.construction, self.T) if self.construction and self.T else None

    @property
    def name(self) -> str:
        """The name of its file, without the ending."""
        order = "" if self.ordering == "with-replacement" else re.sub("[^a-z0-9]+", "-", self.ordering) + "-"
        return f"{self.quantity}-{order}T{'inf' if self.T is None else self.T}-k{self.k}"

    @property
    def tasks(self) -> RegressionTasks | None:
        """The tasks, made anew each time; None for a supremum over all numbers of tasks."""
        if self.T is None:
            return None
        if self.levels is not None:
            return self.levels.tasks()
        dims = f"{self.T} tasks of up to {self.d} rows in {self.d} dimensions, given by their kernels,"
        require_memory(16.0 * self.T * self.d**2 * self.kernels, dims, "use fewer tasks or dimensions")
        matrices = [_kernel_rows(matrix) if self.kernels else np.array(matrix) for matrix in self.matrices]
        return RegressionTasks(matrices, [matrix @ np.array(self.w_star) for matrix in matrices])

    @property
    def _reached(self) -> float | None:
        return self.value

    @classmethod
    def _place(cls, path: Path) -> dict[str, Any]:
        return {"path": path}


def task_arrays(tasks: RegressionTasks) -> dict[str, Any]:
    """The fields `w_star`, `matrices` and `kernels` of tasks with w_0 = 0, in coordinates of their joint row space.

    Rows become orthonormal and w* a unit vector, so that singular values are 1: the worst of radius 1.

    >>> import forgetting as fg
    >>> made = task_arrays(fg.families.two_lines(0.5))
    >>> len(made["matrices"]), len(made["w_star"])
    (2, 2)
    """
    geometry = tasks.geometry
    w = -geometry.start(np.zeros(tasks.dim))
    norm = float(np.linalg.norm(w))
    if not norm > 0:
        raise InvalidInputError("w* is 0: nothing is left to learn, and all values are 0")
    blocks = [geometry.rows[geometry.block(int(distinct))] for distinct in geometry.index]
    kernels = sum(map(len, blocks)) > 0.6 * len(blocks) * geometry.dim
    if kernels:
        blocks = [_kernel_rows(block) for block in blocks]
    matrices = [rows.tolist() if rows.any() else [[0.0] * geometry.dim] for rows in blocks]
    return {
        "w_star": tuple((w / norm).tolist()),
        "matrices": tuple(tuple(map(tuple, rows)) for rows in matrices),
        "kernels": kernels,
    }


def _kernel_rows(rows: Any) -> Array:
    """Orthonormal rows that span what is orthogonal to the given orthonormal rows; a row of zeros if nothing is.

    >>> abs(_kernel_rows([[0.0, 1.0]])).round(12).tolist(), _kernel_rows(np.eye(2)).tolist()
    ([[1.0, 0.0]], [[0.0, 0.0]])
    """
    given = np.array(rows, dtype=np.float64)
    if not given.any():
        return np.eye(given.shape[1])
    rest = orthogonal_complement(given)
    return rest if len(rest) else np.zeros((1, given.shape[1]))


@cache
def _stored() -> tuple[KnownWorst, ...]:
    return tuple(KnownWorst.read(path) for path in entry_files(FOLDER))


def entry_files(folder: Path) -> list[Path]:
    """The files of a folder that are entries, by name; certificates are beside them."""
    return sorted(path for path in folder.glob("*.json") if not path.name.endswith(PROOF))


def known_worst(quantity: str | None = None, k: Iterable[int] | None = None) -> tuple[KnownWorst, ...]:
    """The entries of the package, by the names of their files; those on one quantity, and with these k.

    Cost: all files are read at the first call, in about a millisecond each.

    >>> all(entry.quantity == "loss" and entry.k == 2 for entry in known_worst("loss", [2]))
    True
    """
    steps = None if k is None else set(k)
    return tuple(e for e in _stored() if quantity in (None, e.quantity) and (steps is None or e.k in steps))


class Worst(NamedTuple):
    """The largest value over all angles between two lines, and the cosine of the angle at which it is reached."""

    value: float
    cosine: float


def two_lines_loss(k: int) -> Worst:
    """The largest E L(w_k) over all pairs of subspaces, with replacement, at |w_0 - w*| R = 1.

    max over c = cos(theta) of 1/8 (1 - c^2) (1 + c) ((1 + c^2)/2)^(k-1), reached by two lines with w* halfway. The
    derivative vanishes where (2k+1) c^3 - c^2 - (2k-5) c - 1 = 0, which has one root in (0, 1).

    >>> round(two_lines_loss(1).value * 27, 12)
    4.0
    """
    low, high = 0.0, 1.0
    for _ in range(60):  # the cubic is -1 at 0 and 4 at 1
        c = (low + high) / 2
        if (2 * k + 1) * c**3 - c**2 - (2 * k - 5) * c - 1 < 0:
            low = c
        else:
            high = c
    c = (low + high) / 2
    return Worst((1 - c * c) * (1 + c) / 8 * math.exp((k - 1) * math.log((1 + c * c) / 2)), c)


def two_lines_forgetting(k: int) -> Worst:
    """The largest E F(k) over all pairs of subspaces, with replacement, at |w_0 - w*| R = 1.

    With u = sin^2(theta), s = 1 - u, n = (1 + cos(theta))/2 and N visits to the task that was not learned last,
    E[|z_k|^2 N] = n s/2 * sum_{j=1..k-1} j b^(j-1) a^(k-1-j) for a = u/2, b = 1 - u/2, and F = u/(2k) times that. The
    maximum is at u = 2/(k+1) or near it, and w* is halfway between the lines.

    >>> two_lines_forgetting(1).value
    0.0
    >>> round(two_lines_forgetting(2).value / two_lines_power(2).value, 12)
    0.5
    """

    def value(u: float) -> float:
        s, b = 1 - u, math.exp((k - 1) * math.log1p(-u / 2))
        total = (k * b * s - (b * (1 - u / 2) - (u / 2) ** k)) / s**2
        return u / (2 * k) * (1 + math.sqrt(s)) / 2 * s / 2 * total

    if k < 2:
        return Worst(0.0, 1.0)
    low, high = 0.0, min(0.75, 4 / k)
    for _ in range(90):  # it rises to its maximum and falls from there
        third = (high - low) / 3
        low, high = (low + third, high) if value(low + third) < value(high - third) else (low, high - third)
    return Worst(value((low + high) / 2), math.sqrt(1 - (low + high) / 2))


WORST_PAIRS = {"loss": two_lines_loss, "forgetting": two_lines_forgetting}


def two_lines_power(power: float) -> Worst:
    """max over c of 1/8 (1 - c^2) (1 + c) c^power: E L of two lines, w* halfway, whose tasks change power/2 times.

    The derivative vanishes where (3 + power) c^2 - c - power = 0.

    >>> round(two_lines_power(0).value * 27, 12)
    4.0
    """
    c = (1 + math.sqrt(1 + 4 * power * (3 + power))) / (2 * (3 + power))
    return Worst((1 - c * c) * (1 + c) / 8 * c**power, c)
