"""Accuracies after each task of many class orders, and the measures of a benchmark that papers make of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import comb
from typing import NamedTuple

import numpy as np

from forgetting.auditing.orders import PART, learn_tasks
from forgetting.core.arrays import Array, IntArray, as_dense, is_sparse
from forgetting.core.numerical import EPS, quietly
from forgetting.core.progress import progress_bar
from forgetting.dynamics.ensembles import compiled_form
from forgetting.dynamics.space import resolve
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.geometry import Frame, Matrix, squared_rows
from forgetting.geometry.factor import Factor, Tolerance, factor_task
from forgetting.schemes import LinearScheme, Scheme
from forgetting.schemes.base import SchemeLike
from forgetting.schemes.linear import linear_gains
from forgetting.tasks import RegressionTasks
from forgetting.tasks.class_splits import ClassSplits, learned_rows, scored_rows

SHARED = 2**28  # bytes that the subspaces of all sets of classes may take; more sets are taken in turn
BLOCK = 4096  # orders learned at once
SCORES = 2**17  # scores at once: 1 MiB, so that they stay in the cache of a core
ENDLESS = 1e18  # more beginnings of class orders than can be learned
FLOPS = 2e10  # operations of matrix products in a second
COUNTED = 1e9  # scores that are compared in a second


class ClassMeasure(NamedTuple):
    """A measure of a class order: its name, what it is in words, whether more is better, and its least value."""

    name: str
    meaning: str
    higher: bool = True
    least: float = 0.0


MEASURES = (
    ClassMeasure("final accuracy", "of all rows, after the last task"),
    ClassMeasure(
        "average incremental accuracy",
        "of all rows of the classes seen so far, averaged over the tasks learned (Rebuffi et al. 2017; PyCIL)",
    ),
    ClassMeasure(
        "forgetting",
        "best accuracy of a task before the last task, less the final one, averaged over all tasks but the last "
        "(Chaudhry et al. 2018)",
        False,
        -1.0,
    ),
    ClassMeasure(
        "forgetting since learned",
        "accuracy of a task right after it was learned, less the final one, averaged over all tasks",
        False,
        -1.0,
    ),
    ClassMeasure(
        "backward transfer",
        "final accuracy of a task, less that right after it was learned, averaged over all tasks but the last "
        "(Lopez-Paz and Ranzato 2017)",
        True,
        -1.0,
    ),
    ClassMeasure("final accuracy, mean over tasks", "of each task after the last task, averaged over tasks"),
    ClassMeasure(
        "incremental accuracy, mean over tasks",
        "of each task seen so far, averaged over these tasks, and over the tasks learned",
    ),
)


@dataclass(frozen=True, eq=False)
class ClassScores:
    """What class orders give: accuracies after each task.

    Attributes:
        accuracies: (n, T, T); entry (order, t, s) is the accuracy of the rows of the s-th task of the order after its
            first t + 1 tasks were learned; NaN for tasks not learned yet.
        rows: (n, T), the number of rows of each task of the order that are scored.
    """

    accuracies: Array
    rows: IntArray

    @property
    def seen(self) -> Array:
        """(n, T), the accuracy of all rows of the classes seen so far, after each task."""
        T = self.accuracies.shape[1]
        right = np.nansum(self.accuracies * self.rows[:, None, :], axis=2)
        return np.asarray(right / np.cumsum(self.rows, axis=1)[:, :T])

    @property
    def values(self) -> Array:
        """(n, len(MEASURES)), every measure of each order."""
        R, T = self.accuracies, self.accuracies.shape[1]
        seen, last = self.seen, R[:, -1]
        learned = np.diagonal(R, axis1=1, axis2=2)
        best = np.fmax.reduce(R[:, :-1, :-1], axis=1)  # NaN, where a task was not learned yet, does not count
        by_task = np.nansum(R, axis=2) / np.arange(1, T + 1)
        return np.stack(
            [
                seen[:, -1],
                seen.mean(axis=1),
                (best - last[:, :-1]).mean(axis=1),
                (learned - last).mean(axis=1),
                (last - learned)[:, :-1].mean(axis=1),
                last.mean(axis=1),
                by_task.mean(axis=1),
            ],
            axis=1,
        )


class MeasuredClassOrders(NamedTuple):
    """Class orders by the numbers of their classes, (n, len(MEASURES)) measures, and (n, T) accuracies of rows seen."""

    codes: IntArray
    values: Array
    seen: Array

    @classmethod
    def joined(cls, parts: Sequence[MeasuredClassOrders]) -> MeasuredClassOrders:
        """The class orders of several parts."""
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


@dataclass(frozen=True, eq=False)
class _Shared:
    """Sets of classes as subspaces, learned by all orders in which these sets are tasks; see `Subspaces`."""

    sets: list[tuple[int, ...]]
    rows: Array
    offsets: IntArray
    sigma: Array
    targets: Array
    unexplained: Array

    @property
    def rows_learned(self) -> int:
        return len(self.sigma)

    def block(self, task: int) -> slice:
        return slice(int(self.offsets[task]), int(self.offsets[task + 1]))

    def numbers(self, codes: IntArray, sizes: tuple[int, ...], cuts: tuple[int, ...]) -> IntArray:
        """(n, T), the number of the set of each task of the orders."""
        number = {members: place for place, members in enumerate(self.sets)}
        found = np.empty((len(codes), len(sizes)), dtype=np.int64)
        for t in range(len(sizes)):
            known, inverse = np.unique(codes[:, cuts[t] : cuts[t + 1]], axis=0, return_inverse=True)
            found[:, t] = np.array([number[tuple(members)] for members in known.tolist()])[inverse.ravel()]
        return found


class ClassLearner:
    """Learns class orders, many at once: sets of classes are reduced once, and orders share what begins alike.

    Args:
        splits: the benchmark.
        scheme: a linear scheme; that of the tasks (each to convergence, with the least change) if None.

    Attributes:
        counts: the number of rows of each class that are scored: held-out rows if there are any.

    >>> learner = ClassLearner(ClassSplits(np.eye(4), range(4), tasks=2), None)
    >>> learner.scores(np.array([[0, 1, 2, 3]])).accuracies.tolist()
    [[[1.0, nan], [1.0, 1.0]]]
    """

    def __init__(self, splits: ClassSplits, scheme: SchemeLike | None) -> None:
        self.splits = splits
        X, self._labels, self._values = learned_rows(splits)
        scored, codes = scored_rows(splits)
        self.counts = np.bincount(codes)
        self._starts = np.concatenate([[0], np.cumsum(self.counts)])
        self.scheme, self._linear = _checked(scheme)
        order = np.argsort(codes, kind="stable")
        self._norms = np.sqrt(squared_rows(scored))[order]
        if is_sparse(X) or splits.dim > X.shape[0]:  # in coordinates on the space of the learned rows, which w stays in
            members = [np.flatnonzero(self._labels == code) for code in range(splits.num_classes)]
            classes = RegressionTasks([X[rows] for rows in members], [self._values[rows] for rows in members])
            assert classes.geometry is not None
            frame = classes.geometry.frame
            self._learned, self._scored = _along(frame, X), _along(frame, scored[order])
        else:
            self._learned, self._scored = as_dense(X), as_dense(scored[order])
        self._dim = self._learned.shape[1]
        self._rank = min(self._dim, int(np.sort(np.bincount(self._labels))[-max(splits.sizes) :].sum()))
        self._room = max(splits.num_tasks, int(SHARED // (8.0 * max(1, self._rank * self._dim))))
        self._all: _Shared | None = None
        self._kept: dict[tuple[int, ...], Factor] = {}  # of the sets that were learned last, as many as there is room

    # ------------------------------------------------------------------------------------------------------- costs

    def seconds(self, n: int, listed: bool = False) -> float:
        """The approximate time of n class orders; `listed`: of all of them, which share more."""
        splits, C = self.splits, self.splits.num_classes
        columns = C if splits.classes == "all" else max(splits.sizes)
        D, total, left = float(self._dim), 0.0, C
        seen, prefixes = 0, 1.0
        for size in splits.sizes:
            prefixes = min(prefixes * min(comb(left, size), ENDLESS), ENDLESS)
            left, seen = left - size, seen + size
            nodes = min(prefixes, float(n)) if listed else -prefixes * float(np.expm1(-n / prefixes))
            scores = (seen if splits.classes == "all" else size) * float(self.counts.sum()) * seen / C
            total += nodes * (4.0 * self._rank * D * columns / FLOPS + scores * (2.0 * D / FLOPS + 1 / COUNTED))
        sets = float(min(splits.num_sets, n * splits.num_tasks))
        rows = float(np.bincount(self._labels).max()) * max(splits.sizes)
        small = min(rows, D)
        return total + sets * (4.0 * max(rows, D) + 8.0 * small) * small**2 / FLOPS

    # ---------------------------------------------------------------------------------------------------- learning

    def measured(self, codes: IntArray) -> MeasuredClassOrders:
        """Every measure of class orders, by the numbers of their classes, and the accuracy of the rows seen so far."""
        parts = [(part.values, part.seen) for part in self._parts(codes)]
        empty = np.empty((0, len(MEASURES))), np.empty((0, self.splits.num_tasks))
        values, seen = (np.concatenate(columns) for columns in zip(*(parts or [empty]), strict=True))
        return MeasuredClassOrders(codes, values, seen)

    def scores(self, codes: IntArray) -> ClassScores:
        """The accuracies of class orders, by the numbers of their classes, after each of their tasks."""
        parts = list(self._parts(codes))
        return ClassScores(np.concatenate([p.accuracies for p in parts]), np.concatenate([p.rows for p in parts]))

    def _parts(self, codes: IntArray) -> Iterator[ClassScores]:
        splits = self.splits
        every = splits.num_sets <= self._room
        width = splits.num_classes * max(splits.num_tasks, self._dim)
        most = max(1, min(BLOCK if every else self._room // splits.num_tasks, PART // width))
        with progress_bar("class orders") as step:
            for first in range(0, len(codes), most):
                part = codes[first : first + most]
                shared = self._shared_by_all() if every else self._shared(_sets(part, splits.partitions.cuts))
                yield self._learn(shared, part)
                step("class orders", min(first + most, len(codes)), len(codes))

    def _shared_by_all(self) -> _Shared:
        if self._all is None:
            self._all = self._shared(self.splits.partitions.sets())
            self._kept.clear()
        return self._all

    def _factor(self, members: tuple[int, ...]) -> Factor:
        """The factor of a set of classes; a search comes back to most sets of the order that it changes."""
        factor = self._kept.pop(members, None)
        if factor is None:
            splits = self.splits
            rows = np.flatnonzero(np.isin(self._labels, members))
            labels = self._labels[rows]
            targets = np.zeros((len(rows), splits.num_classes if splits.classes == "all" else max(splits.sizes)))
            columns = labels if splits.classes == "all" else np.searchsorted(members, labels)
            targets[np.arange(len(rows)), columns] = self._values[rows]
            tolerance = Tolerance(None, squared=False, columns=splits.dim)
            factor = factor_task(self._learned[rows], targets, tolerance)
        if len(self._kept) >= self._room:
            del self._kept[next(iter(self._kept))]  # the set that was not learned for the longest time
        self._kept[members] = factor
        return factor

    def _shared(self, sets: list[tuple[int, ...]]) -> _Shared:
        factors = [self._factor(members) for members in sets]
        return _Shared(
            sets,
            np.concatenate([factor.basis for factor in factors]),
            np.concatenate([[0], np.cumsum([len(factor.sigma) for factor in factors])]),
            np.concatenate([factor.sigma for factor in factors]),
            np.ascontiguousarray(np.concatenate([factor.targets for factor in factors]).T),
            np.array([factor.unexplained.sum() for factor in factors]),
        )

    def _learn(self, shared: _Shared, codes: IntArray) -> ClassScores:
        """Learn some orders: those with the same first tasks are learned together until they differ."""
        splits = self.splits
        T, cuts = splits.num_tasks, splits.partitions.cuts
        numbers = shared.numbers(codes, splits.sizes, cuts)
        place = np.lexsort(numbers.T[::-1])
        numbers, codes = numbers[place], codes[place]
        gains, states = linear_gains(shared, self._linear), np.zeros((1, len(shared.targets), self._dim))
        node = np.zeros(len(codes), dtype=np.int64)  # of each order, among those that are alike so far
        right = np.empty((len(codes), T, splits.num_classes))
        for t in range(T):
            new = np.ones(len(codes), dtype=bool)
            new[1:] = (numbers[1:, : t + 1] != numbers[:-1, : t + 1]).any(axis=1)
            firsts = np.flatnonzero(new)
            states = states[node[firsts]]
            learn_tasks(shared, gains, states, numbers[firsts, t])
            node = np.cumsum(new) - 1
            with quietly():
                hits = self._hits(states, codes[firsts], t)
            right[:, t] = hits[node]
        if not np.isfinite(right[:, -1]).all():
            raise InvalidInputError(f"{self.scheme} diverges on some class orders: their predictions are not finite")
        rows = np.add.reduceat(self.counts[codes], cuts[:-1], axis=1)
        by_place = np.take_along_axis(right, np.broadcast_to(codes[:, None, :], right.shape), axis=2)
        accuracies = np.add.reduceat(by_place, cuts[:-1], axis=2) / rows[:, None, :]
        accuracies[:, np.arange(T)[:, None] < np.arange(T)] = np.nan
        back = np.argsort(place)
        return ClassScores(accuracies[back], rows[back])

    def _hits(self, points: Array, codes: IntArray, t: int) -> Array:
        """(n, C), how many rows of each class are predicted right at the states v, after task t; 0 if not seen."""
        splits = self.splits
        cuts = splits.partitions.cuts
        hits = np.zeros((len(points), splits.num_classes))
        norms = np.sqrt(np.einsum("ncd,ncd->n", points, points))
        if splits.classes == "all":
            parts = [np.sort(codes[:, : cuts[t + 1]], axis=1)]
        else:
            parts = [codes[:, cuts[s] : cuts[s + 1]] for s in range(t + 1)]
        for part in parts:
            known, group = np.unique(part, axis=0, return_inverse=True)
            for number, classes in enumerate(known):
                members = np.flatnonzero(group.ravel() == number)
                rows = np.concatenate([np.arange(self._starts[c], self._starts[c + 1]) for c in classes])
                inputs, slack = np.ascontiguousarray(self._scored[rows].T), 128 * EPS * self._norms[rows]
                columns = classes if splits.classes == "all" else np.arange(len(classes))
                size = max(1, SCORES // (len(columns) * len(rows)))
                for first in range(0, len(members), size):
                    some = members[first : first + size]
                    chosen = points[some][:, columns].reshape(-1, points.shape[2])
                    scores = (chosen @ inputs).reshape(len(some), len(columns), len(rows))
                    hits[some[:, None], classes] = _right(scores, norms[some], slack, self.counts[classes])
        return hits


def _right(scores: Array, norms: Array, slack: Array, counts: IntArray) -> Array:
    """(n, k), how many rows of each class have their class on top, of scores (n, k, rows), class after class.

    Of k classes on top up to rounding, each counts 1/k, as in `correct_share`.

    >>> _right(np.array([[[2.0, 0.0, 1.0], [1.0, 0.0, 3.0]]]), np.ones(1), np.full(3, 1e-12), np.array([2, 1])).tolist()
    [[1.5, 1.0]]
    """
    least = scores.max(axis=1) - norms[:, None] * slack
    top = scores >= least[:, None, :]
    ties = np.count_nonzero(top) != least.size
    ends = np.cumsum(counts)
    hits = np.empty((len(scores), len(counts)))
    shares = top / top.sum(axis=1, keepdims=True) if ties else top
    for place, end in enumerate(ends.tolist()):
        own = shares[:, place, end - counts[place] : end]
        hits[:, place] = own.sum(axis=1) if ties else np.count_nonzero(own, axis=1)
    return np.where(np.isfinite(norms)[:, None], hits, np.nan)


def _checked(scheme: SchemeLike | None) -> tuple[Scheme, LinearScheme]:
    """The scheme, and the linear scheme that makes its steps; an error if there is none."""
    tasks = RegressionTasks([np.ones((1, 1))], [np.ones(1)])
    chosen, _ = resolve(tasks, scheme, None)
    linear = compiled_form(tasks, chosen)[0]
    if linear is None:
        raise NotSupportedError(
            f"class orders are learned many at once by linear schemes, and {chosen} is none; "
            "fg.run(splits.tasks(order), ...) learns a single class order with any scheme"
        )
    return chosen, linear


def _along(frame: Frame, X: Matrix) -> Array:
    """The rows of a matrix in the coordinates of a frame."""
    active = X if frame.columns is None else X[:, frame.columns]
    return as_dense(active if frame.basis is None else active @ frame.basis)


def _sets(codes: IntArray, cuts: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The sets of classes that are tasks of these orders."""
    parts = [codes[:, low:high].tolist() for low, high in pairwise(cuts)]
    return sorted({tuple(members) for part in parts for members in part})
