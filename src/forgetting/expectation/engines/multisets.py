"""The multisets of tasks that a random permutation may have learned, and the ways from one to the next.

Which clone of a task comes is of no matter, so that a multiset counts how often each distinct task was learned. There
are prod_i (n_i + 1) of them: 2^T without clones, and (n + 1)^2 for n clones of two tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from forgetting.core.arrays import IntArray


class Edges(NamedTuple):
    """All ways to learn one distinct task next.

    Attributes:
        task: the distinct task.
        parents: rows of the multisets before.
        children: rows of the multisets after, none of them twice.
        left: the clones of the task that are left before. Of all tasks that are left, each comes next equally likely.
        seen: the clones of the task that were learned after. Of all tasks that were learned, each came last equally
            likely.
    """

    task: int
    parents: IntArray
    children: IntArray
    left: IntArray
    seen: IntArray

    def single(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield the parent, the child, `left` and `seen` of each edge."""
        return zip(*(column.tolist() for column in self[1:]), strict=True)


def none_seen(counts: IntArray) -> IntArray:
    """The empty multiset of distinct tasks, in one row."""
    return np.zeros((1, len(counts)), dtype=np.int64)


def one_more(seen: IntArray, counts: IntArray) -> tuple[IntArray, list[Edges]]:
    """The multisets with one task more than those in the rows, and the edges that lead there.

    `counts` are the clones of each distinct task, at most which can be learned.

    >>> counts = np.array([2, 1])
    >>> seen, edges = one_more(none_seen(counts), counts)
    >>> seen.tolist(), [edge.task for edge in edges]
    ([[0, 1], [1, 0]], [0, 1])
    >>> seen, edges = one_more(seen, counts)
    >>> seen.tolist(), [(edge.task, edge.parents.tolist(), edge.children.tolist()) for edge in edges]
    ([[1, 1], [2, 0]], [(0, [0, 1], [0, 1]), (1, [1], [0])])
    """
    parents, tasks = np.nonzero(seen < counts)
    grown, each = seen[parents], np.arange(len(parents))
    left = (counts - seen)[parents, tasks]
    grown[each, tasks] += 1
    # each multiset as one number, where there are not too many: numbers are sorted sooner than rows
    digits = np.cumprod(np.append(1.0, counts[:0:-1] + 1.0))[::-1]
    numbers = grown @ digits.astype(np.int64) if digits[0] * (counts[0] + 1.0) < 2.0**62 else grown
    _, first, children = np.unique(numbers, axis=0, return_index=True, return_inverse=True)
    following, columns = grown[first], (parents, children.reshape(-1), left, grown[each, tasks])
    ways = [(task, np.flatnonzero(tasks == task)) for task in range(len(counts))]
    return following, [Edges(task, *(column[own] for column in columns)) for task, own in ways if len(own)]
