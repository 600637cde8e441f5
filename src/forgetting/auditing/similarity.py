"""How similar the tasks are: principal angles between their row spaces, and tasks that say the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forgetting._arrays import Array, IntArray, as_kind, as_number
from forgetting.geometry import Geometry

__all__ = ["Duplicate", "Similarity", "find_duplicates", "principal_angles"]

NEAR = 0.02  # relative difference of X^T X below which two tasks count as nearly identical
CONFLICT = "same inputs, other labels"


@dataclass(frozen=True, eq=False)
class Similarity:
    """T x T matrices over pairs of tasks.

    With principal angles theta_1 <= ... <= theta_s between the row spaces, s the smaller of the two ranks:

    Attributes:
        overlap: mean of cos^2 theta_i: 0 for orthogonal tasks, 1 if one row space contains the other.
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
    """A task that repeats an earlier one, or contradicts it.

    Attributes:
        task, of: the task and the earlier one, by number.
        kind: "identical"; "nearly identical"; "rescaled copy"; and of contradictions "same inputs, other labels".
        difference: of the inputs, as in `Similarity`.

    >>> Duplicate(3, 1, "identical", 0.0).of, Duplicate(3, 1, "same inputs, other labels", 0.0).contradicts
    (1, True)
    """

    task: int
    of: int
    kind: str
    difference: float

    @property
    def contradicts(self) -> bool:
        """Whether no w solves both tasks, so that this is no repeat."""
        return self.kind == CONFLICT


def principal_angles(geometry: Geometry) -> Similarity:
    """Compare the row spaces of all pairs of tasks; identical tasks are compared once.

    Cost: one product of the stacked bases with themselves, and an eigenvalue problem per pair of ranks above 1.

    >>> import forgetting as fg
    >>> found = principal_angles(fg.families.two_lines(np.pi / 3).geometry)
    >>> found.smallest.round(6).tolist(), found.overlap.round(6).tolist()
    ([[0.0, 60.0], [60.0, 0.0]], [[1.0, 0.25], [0.25, 1.0]])
    """
    as_kind(geometry, Geometry, "the geometry of tasks")
    count, offsets, ranks = geometry.num_distinct, geometry.offsets, geometry.ranks
    overlap, smallest, largest, inner = (np.zeros((count, count)) for _ in range(4))
    least = np.minimum.outer(ranks, ranks)
    for i in range(count):
        block = geometry.block(i)
        cosines = geometry.rows[block] @ geometry.rows[offsets[i] :].T  # this task and the later ones
        squares = np.zeros((count, ranks[i]))
        squares[i:] = np.stack([_squared(cosines, offsets, i, j, int(ranks[i])) for j in range(i, count)])
        scaled = (geometry.sigma[block][:, None] * cosines * geometry.sigma[offsets[i] :]) ** 2
        totals = np.concatenate([[0.0], np.cumsum(scaled.sum(axis=0))])
        for j in range(i, count):
            s = int(least[i, j])
            values = np.clip(squares[j, :s], 0.0, 1.0)
            overlap[i, j] = values.mean() if s else 0.0
            smallest[i, j], largest[i, j] = _degrees(values[0]) if s else 90.0, _degrees(values[-1]) if s else 90.0
            inner[i, j] = totals[offsets[j + 1] - offsets[i]] - totals[offsets[j] - offsets[i]]
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
    """Each task that repeats an earlier one (which repeats none itself), or contradicts it; the nearest such.

    Inputs are the same if X^T X is, up to a factor, as a whole and in every direction of the row space: one large
    column alone does not make two tasks alike. Labels are the same if the solution of one task solves the other.

    Args:
        geometry, similarity: of the tasks.
        near: what counts as the same.
        realizable: one w solves all tasks, so that none contradicts another.

    >>> import forgetting as fg
    >>> tasks = fg.families.repeated(fg.families.two_lines(0.5), 2)
    >>> [(one.task, one.of, one.kind) for one in find_duplicates(tasks.geometry, principal_angles(tasks.geometry))]
    [(2, 0, 'identical'), (3, 1, 'identical')]
    """
    as_kind(geometry, Geometry, "the geometry of tasks")
    as_kind(similarity, Similarity, "what principal_angles(geometry) gives")
    near = as_number(near, "near", least=0, below=1)
    index = geometry.index
    leaders: list[int] = []
    seen: dict[int, int] = {}  # distinct tasks, and where they came first
    found = []
    for task in range(geometry.num_tasks):
        a = int(index[task])
        if a in seen:
            found.append(Duplicate(task, seen[a], "identical", 0.0))
            continue
        seen[a] = task
        for of in sorted(leaders, key=lambda one: float(similarity.difference[task, one])):
            apart, angle = float(similarity.difference[task, of]), float(similarity.largest[task, of])
            if apart > near:
                leaders.append(task)
                break
            kind = _kind(geometry, a, int(index[of]), near, apart, realizable) if angle <= np.degrees(near) else None
            if kind is not None:
                found.append(Duplicate(task, of, kind, apart))
                break
        else:
            leaders.append(task)
    return tuple(found)


def _kind(geometry: Geometry, a: int, b: int, near: float, apart: float, realizable: bool) -> str | None:
    """What distinct task a is to b, whose row spaces are close to each other; None: another task."""
    (U, s, c), (V, t, e) = (_equations(geometry, one) for one in (a, b))
    if len(s) != len(t):
        return None
    # singular values of X_a seen from X_b: all the same where one is a multiple of the other
    ratios = np.linalg.svd(((U @ V.T) * s[:, None]) / t, compute_uv=False)
    if ratios[0] > (1 + 5 * near) * ratios[-1]:
        return None
    own, other = s * c, s * (U @ (V.T @ e))  # labels of a, and what the solution of b says in their place
    size = max(np.linalg.norm(own), np.linalg.norm(other))
    if np.linalg.norm(own - other) > max(near, 5 * apart) * size:
        return CONFLICT if not realizable and _conflict(geometry, a, b) > near else None
    return "rescaled copy" if abs(np.log(geometry.norms[a] / geometry.norms[b])) > 5 * near else "nearly identical"


def _equations(geometry: Geometry, task: int) -> tuple[Array, Array, Array]:
    """U^T, sigma and c of a distinct task: it is solved by w if U^T w = c."""
    block = geometry.block(task)
    rows = geometry.rows[block]
    return rows, geometry.sigma[block], geometry.targets[block] + rows @ geometry.solution


def _conflict(geometry: Geometry, a: int, b: int) -> float:
    """The least residual of two tasks together, relative to their labels: 0 if one w solves both."""
    parts = [_equations(geometry, one) for one in (a, b)]
    left = np.concatenate([rows * (sigma / sigma[0])[:, None] for rows, sigma, _ in parts])
    right = np.concatenate([solved * (sigma / sigma[0]) for _, sigma, solved in parts])
    rest = right - left @ np.linalg.lstsq(left, right, rcond=None)[0]
    return float(np.linalg.norm(rest) / np.linalg.norm(right))


def _squared(cosines: Array, offsets: IntArray, i: int, j: int, rank: int) -> Array:
    """cos^2 of the principal angles between tasks i and j, largest first, padded with zeros to the rank of i."""
    part = cosines[:, offsets[j] - offsets[i] : offsets[j + 1] - offsets[i]]
    result = np.zeros(rank)
    if min(part.shape) == 1:
        result[0] = np.sum(part**2)
    elif min(part.shape) > 1:
        small = part @ part.T if part.shape[0] <= part.shape[1] else part.T @ part
        values = np.linalg.eigvalsh(small)[::-1]
        result[: len(values)] = values
    return result


def _degrees(squared: float) -> float:
    return float(np.degrees(np.arccos(np.sqrt(squared))))
