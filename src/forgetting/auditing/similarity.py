"""How similar the tasks are: principal angles between their row spaces, and tasks that say the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forgetting._arrays import Array, IntArray
from forgetting.geometry import Geometry

__all__ = ["Duplicate", "Similarity", "find_duplicates", "principal_angles"]

NEAR = 0.02  # relative difference of X^T X below which two tasks count as nearly identical


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
    """A task that repeats an earlier one.

    Attributes:
        task, of: the repeating task and the earlier one, by number.
        kind: "identical"; "nearly identical"; "rescaled copy"; "same inputs, other labels".
        difference: of the inputs, as in `Similarity`.

    >>> Duplicate(3, 1, "identical", 0.0).of
    1
    """

    task: int
    of: int
    kind: str
    difference: float


def principal_angles(geometry: Geometry) -> Similarity:
    """Compare the row spaces of all pairs of tasks; identical tasks are compared once.

    Cost: one product of the stacked bases with themselves, and an eigenvalue problem per pair of ranks above 1.

    >>> import forgetting as fg
    >>> found = principal_angles(fg.families.two_lines(np.pi / 3).geometry)
    >>> found.smallest.round(6).tolist(), found.overlap.round(6).tolist()
    ([[0.0, 60.0], [60.0, 0.0]], [[1.0, 0.25], [0.25, 1.0]])
    """
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


def find_duplicates(geometry: Geometry, similarity: Similarity, near: float = NEAR) -> tuple[Duplicate, ...]:
    """Each task that repeats an earlier one (which repeats none itself), the first such.

    >>> import forgetting as fg
    >>> tasks = fg.families.repeated(fg.families.two_lines(0.5), 2)
    >>> [(one.task, one.of, one.kind) for one in find_duplicates(tasks.geometry, principal_angles(tasks.geometry))]
    [(2, 0, 'identical'), (3, 1, 'identical')]
    """
    pulls = _pulls(geometry)
    norms, index = geometry.norms, geometry.index
    leaders: list[int] = []
    found = []
    for task in range(geometry.num_tasks):
        alike = [one for one in leaders if similarity.difference[task, one] <= near]
        if not alike:
            leaders.append(task)
            continue
        of = min(alike, key=lambda one: similarity.difference[task, one])
        a, b = int(index[task]), int(index[of])
        apart = float(similarity.difference[task, of])
        ratio = norms[a] / norms[b] if norms[b] > 0 else 1.0
        size = max(np.linalg.norm(pulls[a]), np.linalg.norm(pulls[b]))
        if a == b:
            kind = "identical"
        elif size > 0 and np.linalg.norm(pulls[a] - pulls[b]) > max(near, 5 * apart) * size:
            kind = "same inputs, other labels"
        elif abs(np.log(max(ratio, 1e-300))) > 5 * near:
            kind = "rescaled copy"
        else:
            kind = "nearly identical"
        found.append(Duplicate(task, of, kind, apart))
    return tuple(found)


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


def _pulls(geometry: Geometry) -> list[Array]:
    """X^T y / |X^T X| of each distinct task, seen from the offline solution: where its labels pull."""
    solved = geometry.targets + geometry.rows @ geometry.solution
    pulls = []
    for task in range(geometry.num_distinct):
        block = geometry.block(task)
        squares = geometry.sigma[block] ** 2
        size = float(np.linalg.norm(squares))
        pulls.append(geometry.rows[block].T @ (squares * solved[block]) / (size or 1.0))
    return pulls
