"""Duplicates among tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forgetting.core.arrays import Array, as_kind, as_number
from forgetting.geometry import Geometry, Similarity

NEAR = 0.02  # relative difference of X^T X below which two tasks count as nearly identical
CONFLICT = "same inputs, other labels"


@dataclass(frozen=True)
class Duplicate:
    """A task that repeats or contradicts an earlier task.

    Attributes:
        task, of: the numbers of the task and of the earlier task.
        kind: "identical", "nearly identical" or "rescaled copy"; "same inputs, other labels" for a contradiction.
        difference: the difference of the inputs, as in `Similarity`.

    >>> Duplicate(3, 1, "identical", 0.0).of, Duplicate(3, 1, "same inputs, other labels", 0.0).contradicts
    (1, True)
    """

    task: int
    of: int
    kind: str
    difference: float

    @property
    def contradicts(self) -> bool:
        """Whether no w solves both tasks."""
        return self.kind == CONFLICT


def find_duplicates(
    geometry: Geometry, similarity: Similarity, near: float = NEAR, realizable: bool = False
) -> tuple[Duplicate, ...]:
    """Find the tasks that repeat or contradict an earlier task (the nearest earlier task that repeats no other).

    Two tasks have the same inputs if their matrices X^T X are equal up to a factor, in Frobenius norm and in every
    direction of the row space: a single large column does not make two tasks alike. Two tasks have the same labels if
    the solution of each solves the other.

    Args:
        geometry: the geometry of the tasks.
        similarity: the result of `principal_angles(geometry)`.
        near: the relative difference up to which inputs or labels count as the same.
        realizable: whether some w solves all tasks, so that no task contradicts another.

    >>> import forgetting as fg
    >>> from forgetting.geometry import principal_angles
    >>> tasks = fg.families.repeated(fg.families.two_lines(0.5), 2)
    >>> duplicates = find_duplicates(tasks.geometry, principal_angles(tasks.geometry))
    >>> [(duplicate.task, duplicate.of, duplicate.kind) for duplicate in duplicates]
    [(2, 0, 'identical'), (3, 1, 'identical')]
    """
    as_kind(geometry, Geometry, "the geometry of tasks")
    as_kind(similarity, Similarity, "what principal_angles(geometry) gives")
    near = as_number(near, "near", least=0, below=1)
    index = geometry.index
    leaders: list[int] = []
    seen: dict[int, int] = {}  # the first task of each distinct task
    duplicates = []
    for task in range(geometry.num_tasks):
        a = int(index[task])
        if a in seen:
            duplicates.append(Duplicate(task, seen[a], "identical", 0.0))
            continue
        seen[a] = task
        for of in sorted(leaders, key=lambda leader: float(similarity.difference[task, leader])):
            apart, angle = float(similarity.difference[task, of]), float(similarity.largest[task, of])
            if apart > near:
                leaders.append(task)
                break
            kind = _kind(geometry, a, int(index[of]), near, apart, realizable) if angle <= np.degrees(near) else None
            if kind is not None:
                duplicates.append(Duplicate(task, of, kind, apart))
                break
        else:
            leaders.append(task)
    return tuple(duplicates)


def _kind(geometry: Geometry, a: int, b: int, near: float, apart: float, realizable: bool) -> str | None:
    """The kind of duplicate that distinct task a is of b, whose row spaces are close; None if a is no duplicate."""
    (U, s, c), (V, t, e) = (_equations(geometry, task) for task in (a, b))
    if len(s) != len(t):
        return None
    # singular values of X_a X_b^+, which are all equal if X_a^T X_a is a multiple of X_b^T X_b
    ratios = np.linalg.svd(((U @ V.T) * s[:, None]) / t, compute_uv=False)
    if ratios[0] > (1 + 5 * near) * ratios[-1]:
        return None
    own, other = s[:, None] * c, s[:, None] * (U @ (V.T @ e))  # the labels of a, and what the solution of b predicts
    size = max(np.linalg.norm(own), np.linalg.norm(other))
    if np.linalg.norm(own - other) > max(near, 5 * apart) * size:
        return CONFLICT if not realizable and _conflict(geometry, a, b) > near else None
    return "rescaled copy" if abs(np.log(geometry.norms[a] / geometry.norms[b])) > 5 * near else "nearly identical"


def _equations(geometry: Geometry, task: int) -> tuple[Array, Array, Array]:
    """U^T, sigma and c of a distinct task, which w solves if U^T w = c; c has a column for each output."""
    block = geometry.block(task)
    rows = geometry.rows[block]
    solved = geometry.targets[..., block] + geometry.solution @ rows.T
    return rows, geometry.sigma[block], np.atleast_2d(solved).T


def _conflict(geometry: Geometry, a: int, b: int) -> float:
    """The least residual of two tasks together, relative to their labels: 0 if some w solves both."""
    parts = [_equations(geometry, task) for task in (a, b)]
    left = np.concatenate([rows * (sigma / sigma[0])[:, None] for rows, sigma, _ in parts])
    right = np.concatenate([solved * (sigma / sigma[0])[:, None] for _, sigma, solved in parts])
    residual = right - left @ np.linalg.lstsq(left, right, rcond=None)[0]
    return float(np.linalg.norm(residual) / np.linalg.norm(right))
