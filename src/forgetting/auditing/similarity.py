"""Similarity of tasks: principal angles between their row spaces, and duplicates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forgetting.core.arrays import Array, as_kind, as_number
from forgetting.geometry import Geometry

NEAR = 0.02  # relative difference of X^T X below which two tasks count as nearly identical
CONFLICT = "same inputs, other labels"


@dataclass(frozen=True, eq=False)
class Similarity:
    """Comparison of all pairs of tasks, as T x T matrices.

    theta_1 <= ... <= theta_s are the principal angles between the two row spaces, s the smaller of the two ranks.

    Attributes:
        overlap: mean of cos^2 theta_i: 0 for orthogonal tasks, 1 if a row space contains the other.
        smallest, largest: theta_1 and theta_s, in degrees.
        difference: |A - B|_F with A and B the matrices X^T X of the two tasks, each divided by its Frobenius norm: 0
            for tasks with the same inputs up to a factor.
    """

    overlap: Array
    smallest: Array
    largest: Array
    difference: Array


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


def principal_angles(geometry: Geometry) -> Similarity:
    """Compare the row spaces of all pairs of tasks; identical tasks are compared once.

    Cost: the product of the stacked bases with themselves, and an eigenvalue problem per pair of ranks above 1.

    >>> import forgetting as fg
    >>> similarity = principal_angles(fg.families.two_lines(np.pi / 3).geometry)
    >>> similarity.smallest.round(6).tolist(), similarity.overlap.round(6).tolist()
    ([[0.0, 60.0], [60.0, 0.0]], [[1.0, 0.25], [0.25, 1.0]])
    """
    as_kind(geometry, Geometry, "the geometry of tasks")
    count = geometry.num_distinct
    overlap, smallest, largest, inner = (np.zeros((count, count)) for _ in range(4))
    smallest[:], largest[:] = 90.0, 90.0  # of tasks without a row
    for i in range(count):
        block, first = geometry.block(i), geometry.offsets[i]
        cosines = geometry.rows[block] @ geometry.rows[first:].T  # with itself and the later tasks
        products = ((geometry.sigma[block, None] * cosines * geometry.sigma[first:]) ** 2).sum(axis=0)
        bounds = (geometry.offsets[i:] - first).tolist()
        for j, columns in enumerate(map(slice, bounds, bounds[1:]), i):
            squares = _squared(cosines[:, columns])
            if len(squares):
                overlap[i, j] = squares.mean()
                smallest[i, j], largest[i, j] = _degrees(squares[0]), _degrees(squares[-1])
            inner[i, j] = products[columns].sum()
    norms = np.sqrt(np.diag(inner))
    scale = np.outer(norms, norms)
    cosine = np.divide(inner, scale, out=np.zeros_like(inner), where=scale > 0)
    difference = np.sqrt(np.maximum(2 - 2 * cosine, 0.0))
    np.fill_diagonal(difference, 0.0)
    np.fill_diagonal(overlap, 1.0)
    for angles in (smallest, largest):
        np.fill_diagonal(angles, 0.0)
    tables = [np.triu(table) + np.triu(table, 1).T for table in (overlap, smallest, largest, difference)]
    index = np.ix_(geometry.index, geometry.index)
    return Similarity(*(table[index] for table in tables))


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


def _squared(cosines: Array) -> Array:
    """cos^2 of the principal angles between two row spaces, largest first, from the products of their bases."""
    if min(cosines.shape) == 1:
        squares = np.array([np.sum(cosines**2)])
    else:
        small = cosines @ cosines.T if cosines.shape[0] <= cosines.shape[1] else cosines.T @ cosines
        squares = np.linalg.eigvalsh(small)[::-1]
    return np.asarray(np.clip(squares, 0.0, 1.0))


def _degrees(squared: float) -> float:
    return float(np.degrees(np.arccos(np.sqrt(squared))))
