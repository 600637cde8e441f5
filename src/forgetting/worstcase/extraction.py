"""Tasks from moments: subspaces, or convex sets, whose errors have the inner products that a program found.

The errors of the tree are vectors with the inner products A. What the projection of a task keeps of them has inner
products with them and among themselves; parts outside of their span get directions of their own, for each task
separately. Directions of tiny length are left out: several thresholds are tried, and the exact value of the tasks says
which of them lost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from forgetting.core.arrays import Array
from forgetting.sets import Polyhedron
from forgetting.tasks import ConvexSets, RegressionTasks
from forgetting.worstcase.inner_products import Word, extended
from forgetting.worstcase.program import Program

THRESHOLDS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
EDGE = 1e-6  # eigenvalues of a compressed projection within this distance of 0 or 1 are 0 or 1


def candidates(program: Program, moments: Array) -> Iterator[RegressionTasks | ConvexSets]:
    """Tasks from the moments, at thresholds from coarse to fine; equal ones are left out."""
    space, last = _Space(program, moments), None
    for threshold in THRESHOLDS:
        vectors = space.vectors(threshold)
        if last is not None and len(vectors) == last:
            continue
        last = len(vectors)
        if not program.algebra.splits:
            yield space.sets(vectors, threshold)
        elif program.algebra.closed:
            yield space.compressed(vectors)
        else:
            yield space.spanned(vectors, threshold)


@dataclass
class _Space:
    program: Program
    moments: Array

    @cached_property
    def errors(self) -> list[Word]:
        return self.program.reach.errors()

    @cached_property
    def place(self) -> dict[Word, int]:
        return {word: at for at, word in enumerate(self.errors)}

    @cached_property
    def values(self) -> dict[Word, float]:
        return dict(zip(self.program.names, self.moments.tolist(), strict=True))

    @cached_property
    def eigen(self) -> tuple[Array, Array]:
        return np.linalg.eigh(self.inner(self.errors, self.errors))

    @property
    def num_tasks(self) -> int:
        count = self.program.tree.walk.num_tasks
        assert count is not None
        return count

    def inner(self, left: list[Word], right: list[Word]) -> Array:
        """The inner products of errors."""
        name, values = self.program.algebra.name, self.values
        return np.array([[values[name(u, v)] for v in right] for u in left]).reshape(len(left), len(right))

    def vectors(self, threshold: float) -> Array:
        """The errors as columns, without directions of less than this share of the largest eigenvalue."""
        sizes, directions = self.eigen
        kept = sizes > threshold * sizes[-1]
        return np.asarray((directions[:, kept] * np.sqrt(sizes[kept])).T)

    def compressed(self, vectors: Array) -> RegressionTasks:
        """Subspaces whose projections are known between all errors: projections, seen from the span of the errors.

        Seen from there a projection is a matrix between 0 and 1. Each of its eigenvalues strictly between gets a
        direction of its own outside of the span (Naimark 1940).
        """
        rank, back = len(vectors), np.linalg.pinv(vectors)
        seen = []
        for task in range(self.num_tasks):
            words = [word[:-1] if word[-1:] == (task,) else (*word, task) for word in self.errors]
            reflection = back.T @ self.inner(words, self.errors) @ back
            seen.append(np.linalg.eigh((np.eye(rank) + (reflection + reflection.T) / 2) / 2))
        total = rank + sum(int(((shares > EDGE) & (shares < 1 - EDGE)).sum()) for shares, _ in seen)
        at, rows = rank, []
        for shares, directions in seen:
            mine = []
            for share, direction in zip(shares, directions.T, strict=True):
                row = np.zeros(total)
                if EDGE < share < 1 - EDGE:
                    row[:rank], row[at] = np.sqrt(1 - share) * direction, -np.sqrt(share)
                    at += 1
                elif share < 0.5:
                    row[:rank] = direction
                else:
                    continue
                mine.append(row)
            rows.append(np.array(mine).reshape(-1, total))
        return _tasks(rows, np.concatenate([vectors[:, 0], np.zeros(total - rank)]))

    def spanned(self, vectors: Array, threshold: float) -> RegressionTasks:
        """Subspaces: the kernel of each task is spanned by what its projection keeps."""
        kept, start = self._kept(vectors, threshold)
        rows = []
        for mine in kept:
            left, sizes, _ = np.linalg.svd(np.array([after for _, after in mine]).reshape(-1, len(start)).T)
            rank = int((sizes > np.sqrt(threshold)).sum())
            rows.append(left[:, rank:].T)
        return _tasks(rows, start)

    def sets(self, vectors: Array, threshold: float) -> ConvexSets:
        """Polyhedra with the given projections: {w: <x - P x, w - P x> <= 0 for all x}, moved so that w_0 = 0.

        Moments are known to a few digits. The common point stays one, at distance 1: values are lower bounds.
        """
        kept, start = self._kept(vectors, threshold)
        length = np.linalg.norm(start)
        members = []
        for mine in kept:
            steps = [(after, before - after) for before, after in mine]
            normals = [(after, step / np.linalg.norm(step)) for after, step in steps
                       if np.linalg.norm(step) > np.sqrt(threshold)]  # fmt: skip
            normals = normals or [(start, np.zeros(len(start)))]  # the whole space
            A = -np.array([normal for _, normal in normals])
            b = np.array([min(0.0, -normal @ after) for after, normal in normals])
            members.append(Polyhedron(A, (b - A @ start) / length))
        return ConvexSets(members)

    def _kept(self, vectors: Array, threshold: float) -> tuple[list[list[tuple[Array, Array]]], Array]:
        """The errors that the projection of each task is applied to, before and after; and the start."""
        rank, back = len(vectors), np.linalg.pinv(vectors)
        projected: list[tuple[list[Word], Array, Array]] = []
        for task in range(self.num_tasks):
            words = [word for word in self.errors if self.program.reach.applied(word, task)]
            after = [extended(word, task) for word in words]
            inside = back.T @ self.inner(self.errors, after)
            outside = self.inner(after, after) - inside.T @ inside
            sizes, directions = np.linalg.eigh((outside + outside.T) / 2)
            far = sizes > threshold
            new = [word not in self.place for word in after]
            extra = (directions[:, far] * np.sqrt(sizes[far])).T * np.array(new)
            projected.append((words, inside, extra))
        total, at, kept = rank + sum(len(extra) for _, _, extra in projected), rank, []
        for words, inside, extra in projected:
            after_all = np.zeros((total, len(words)))
            after_all[:rank], after_all[at : at + len(extra)] = inside, extra
            at += len(extra)
            before_all = np.zeros_like(after_all)
            before_all[:rank] = vectors[:, [self.place[word] for word in words]]
            kept.append(list(zip(before_all.T, after_all.T, strict=True)))
        return kept, np.concatenate([vectors[:, 0], np.zeros(total - rank)])


def _tasks(rows: list[Array], start: Array) -> RegressionTasks:
    w_star = start / np.linalg.norm(start)
    rows = [X if len(X) else np.zeros((1, len(start))) for X in rows]  # a task that asks for nothing
    return RegressionTasks(rows, [X @ w_star for X in rows])
