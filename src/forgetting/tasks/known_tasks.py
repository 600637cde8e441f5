"""Tasks that are known to be worst for a number of steps, kept in the package.

Each file of the folder `known_worst` is one entry: tasks, the expected loss or forgetting that they reach after k steps
with replacement at |w_0 - w*| R = 1, and a proved upper bound where there is one. Hunts of claims start from them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Literal

import numpy as np

from forgetting.errors import ProblemFileError
from forgetting.storage.json_text import decode_json, typed
from forgetting.tasks.regression import RegressionTasks

__all__ = ["KnownWorst", "known_worst", "read_known_worst"]

FOLDER = Path(__file__).with_name("known_worst")


@dataclass(frozen=True)
class KnownWorst:
    """Tasks that reach the largest known expected loss or forgetting after k steps, of all collections of T tasks.

    Attributes:
        quantity: loss or forgetting, expected with replacement at |w_0 - w*| R = 1.
        k: the number of steps.
        value: what the tasks reach.
        matrices: X_m of each task, row by row.
        w_star: the solution; the labels are X_m w*.
        origin: how the tasks were found.
        upper: a proved upper bound over all collections of T tasks, or None.
        universal: whether `upper` holds for every number of tasks.

    >>> entry = KnownWorst("loss", 1, 0.125, (((1.0, 0.0),), ((0.0, 1.0),)), (0.5**0.5, 0.5**0.5))
    >>> entry.tasks.num_tasks, entry.num_tasks
    (2, 2)
    """

    quantity: Literal["loss", "forgetting"]
    k: int
    value: float
    matrices: tuple[tuple[tuple[float, ...], ...], ...]
    w_star: tuple[float, ...]
    origin: str = ""
    upper: float | None = None
    universal: bool = False

    @property
    def num_tasks(self) -> int:
        """The number of tasks."""
        return len(self.matrices)

    @cached_property
    def tasks(self) -> RegressionTasks:
        """The tasks."""
        matrices = [np.array(matrix) for matrix in self.matrices]
        return RegressionTasks(matrices, [matrix @ np.array(self.w_star) for matrix in matrices])


def read_known_worst(path: str | PathLike[str]) -> KnownWorst:
    """One entry; an error names the file and what is wrong with it."""
    try:
        entry: KnownWorst = typed(KnownWorst, decode_json(Path(path).read_bytes()), "entry")
        widths = {len(row) for matrix in entry.matrices for row in matrix}
        if widths != {len(entry.w_star)} or not all(entry.matrices) or entry.k < 1:
            raise ProblemFileError(f"rows of {sorted(widths)} numbers, w* of {len(entry.w_star)}, k = {entry.k}")
    except ProblemFileError as error:
        raise ProblemFileError(f"{path}: damaged entry of known worst tasks ({error})") from error
    return entry


def known_worst(quantity: str | None = None, k: Iterable[int] | None = None) -> tuple[KnownWorst, ...]:
    """The entries of the package, by the names of their files; those on one quantity, and with these k.

    Cost: every file is read anew, about a millisecond for each.

    >>> all(entry.quantity == "loss" and entry.k == 2 for entry in known_worst("loss", [2]))
    True
    """
    steps = None if k is None else set(k)
    entries = (read_known_worst(path) for path in sorted(FOLDER.glob("*.json")))
    return tuple(e for e in entries if quantity in (None, e.quantity) and (steps is None or e.k in steps))
