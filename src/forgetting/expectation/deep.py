"""Expectations with as many digits as it takes, for small problems where 31 digits leave doubts.

What is asked is computed with 60 digits and again with more, until two agree: their difference bounds the error of
the first. A value that is nothing to all digits, where those reach below the least float, is zero. Arithmetic is that
of `decimal` in the standard library; a float is taken as the exact number that it is.

The state is v = (w - w_0 in coordinates on the joint row space, 1), so that learning task m is v -> S_m v and a loss is
v^T H_m v, also where no w solves all tasks. Only ranks are taken from float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Context, Decimal, getcontext, localcontext
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forgetting._arrays import Array, IntArray, is_sparse
from forgetting.dynamics.loop import view_of
from forgetting.expectation import subsets
from forgetting.expectation.request import Request
from forgetting.geometry import Geometry
from forgetting.orderings import Reshuffled, WithoutReplacement, WithReplacement
from forgetting.schemes import LinearScheme
from forgetting.schemes.linear import precise_gain

__all__ = ["Deep", "Numbers", "answer", "lift", "settle", "work"]

DIGITS = (60, 120, 480, 960)
TINIEST = 5e-324  # the least positive float: what is below it to all digits is zero
AGREE = Decimal("1e-18")
Numbers = Any  # arrays of decimal numbers (dtype object)
Flags = NDArray[np.bool_]


def settle(
    compute: Callable[[], tuple[dict[str, Numbers], Decimal]], unsure: Mapping[str, Flags]
) -> tuple[dict[str, tuple[Array, Array]], int]:
    """Values with bounds on their errors, and the digits it took until the unsure ones did not change any more.

    `compute` gives a table of decimal numbers by name, at the precision of the context, and the scale of these numbers.

    >>> third = lambda: ({"loss": np.array([Decimal(1) / 3], dtype=object)}, Decimal(1))
    >>> table, digits = settle(third, {"loss": np.array([True])})
    >>> value, doubt = table["loss"]
    >>> float(value[0]), bool(doubt[0] < 1e-16), digits
    (0.3333333333333333, True, 120)
    """
    tables = []
    for digits in DIGITS:
        with localcontext(Context(prec=digits)):
            tables.append(compute())
        if len(tables) > 1:
            with localcontext(Context(prec=digits)):
                found = {name: _compare(tables, name, which) for name, which in unsure.items()}
            if digits == DIGITS[-1] or all(agreed for _, _, agreed in found.values()):
                break
    return {name: (value, doubt) for name, (value, doubt, _) in found.items()}, digits


def _compare(tables: list[tuple[dict[str, Numbers], Decimal]], name: str, unsure: Flags) -> tuple[Array, Array, bool]:
    """The last values, how far they are from the ones before, and whether that is nothing for those that are unsure."""
    (before, _), (last, scale) = tables[-2], tables[-1]
    shape = last[name].shape
    values, doubts, agreed = np.zeros(last[name].size), np.zeros(last[name].size), True
    least = Decimal(10) ** (15 - getcontext().prec) * scale
    for i, (a, b, asked) in enumerate(zip(before[name].ravel(), last[name].ravel(), unsure.ravel(), strict=True)):
        if b.is_nan():
            values[i] = np.nan
            continue
        nothing = abs(b) <= least
        if nothing and least < Decimal(TINIEST):
            doubts[i] = TINIEST
            continue
        values[i] = float(b)
        gap = abs(a - b)
        agreed = agreed and (not asked or (gap <= AGREE * abs(b) and not nothing))
        doubts[i] = float(max(gap, least)) + 2.3e-16 * abs(values[i]) + TINIEST
    return values.reshape(shape), doubts.reshape(shape), agreed


class Deep:
    """One request at the precision of the current decimal context."""

    def __init__(self, geometry: Geometry, scheme: LinearScheme, w0: Array) -> None:
        assert geometry.data is not None
        self.geometry = geometry
        dense = [lift(one.toarray() if is_sparse(one) else one) for one in geometry.data.matrices]
        start = lift(w0)
        missed = [lift(label) - matrix @ start for matrix, label in zip(dense, geometry.data.labels, strict=True)]
        frame = _frame(np.concatenate(dense), geometry.dim)
        rows = dense if frame is None else [matrix @ frame.T for matrix in dense]
        size = geometry.dim + 1
        self.forms, self.steps, bases, targets = [], [], [], []
        for m, (matrix, label, divisor) in enumerate(zip(rows, missed, geometry.data.divisors, strict=True)):
            both = np.column_stack([matrix, -label])
            self.forms.append(both.T @ both / (2 * Decimal(float(divisor))))
            squares, basis, target = _factor(matrix, label, int(geometry.ranks[m]))
            step = lift(np.eye(size))
            for square, row, t in zip(squares, basis, target, strict=True):
                gain = precise_gain(scheme, square / Decimal(float(divisor)))
                step[:-1] -= np.outer(gain * row, np.append(row, -t))
            self.steps.append(step)
            bases.append(basis)
            targets.append(target)
        self.kept = [step.T @ form @ step for step, form in zip(self.steps, self.forms, strict=True)]
        solution = _solve(np.concatenate(bases), np.concatenate(targets))
        offset = np.column_stack([lift(np.eye(geometry.dim)), -solution])
        self.error = offset.T @ offset
        self.start = lift(np.append(np.zeros(geometry.dim), 1.0))

    @cached_property
    def scale(self) -> Decimal:
        """The size of what is computed, at the start."""
        first = [abs(form[-1, -1]) for form in self.forms] + [self.error[-1, -1]]
        return Decimal(max([*first, Decimal("1e-300")]))

    def independent(self, weights: Sequence[float], steps: IntArray, names: Iterable[str]) -> dict[str, Numbers]:
        """Independent draws, in proportion to the weights of the tasks."""
        p = lift(np.zeros(len(self.steps)))
        for which, weight in zip(self.geometry.index.tolist(), weights, strict=True):
            p[which] += Decimal(float(weight))
        p = p / p.sum()
        note = _Notes(self, names)
        tasks = [m for m in range(len(p)) if p[m]]
        second = np.outer(self.start, self.start)
        counted = "forgetting" in note.names
        visited = dict.fromkeys(tasks, 0 * second) if counted else {}
        before = kept = Decimal(0)
        for k in range(int(steps[-1]) + 1):
            if k in steps:
                on_visits = sum((_trace(self.forms[m], visited[m]) for m in visited), Decimal(0))
                note.add(k, second, on_visits, before, kept, int(np.count_nonzero(steps == k)))
            if k == steps[-1]:
                break
            before += sum(p[m] * _trace(self.forms[m], second) for m in tasks)
            kept += sum(p[m] * _trace(self.kept[m], second) for m in tasks)
            learned = {m: p[m] * self._step(m, second) for m in tasks}
            visited = {m: sum(p[j] * self._step(j, one) for j in tasks) + learned[m] for m, one in visited.items()}
            second = sum(learned.values())
        return note.tables()

    def permutations(self, steps: IntArray, names: Iterable[str]) -> dict[str, Numbers]:
        """Random permutations, a fresh one after each epoch."""
        counts, total = self.geometry.counts.tolist(), self.geometry.num_tasks
        note = _Notes(self, names)
        nothing = (0,) * len(counts)
        layer = {nothing: (Decimal(1), np.outer(self.start, self.start))}
        before = kept = Decimal(0)
        epoch = 0
        for k in range(int(steps[-1]) + 1):
            size = k - epoch * total
            if k in steps:
                second = sum(chance * moment for chance, moment in layer.values())
                on_visits = sum(
                    chance * (epoch * counts[m] + seen[m]) * _trace(self.forms[m], moment)
                    for seen, (chance, moment) in layer.items()
                    for m in range(len(counts))
                )
                note.add(k, second, Decimal(on_visits), before, kept, int(np.count_nonzero(steps == k)))
            if k == steps[-1]:
                break
            if size == total:
                ((_, moment),) = layer.values()
                layer, epoch, size = {nothing: (Decimal(1), moment)}, epoch + 1, 0
            grown: dict[tuple[int, ...], tuple[Decimal, Numbers]] = {}
            for seen, (chance, moment) in layer.items():
                for m, count in enumerate(counts):
                    if seen[m] == count:
                        continue
                    share = chance * (count - seen[m]) / (total - size)
                    before += share * _trace(self.forms[m], moment)
                    kept += share * _trace(self.kept[m], moment)
                    larger = (*seen[:m], seen[m] + 1, *seen[m + 1 :])
                    old, sum_ = grown.get(larger, (Decimal(0), 0))
                    grown[larger] = old + share, sum_ + self._step(m, moment) * larger[m] / (size + 1)
            layer = grown
        return note.tables()

    def along(self, order: IntArray, steps: IntArray, names: Iterable[str]) -> dict[str, Numbers]:
        """One run through the distinct tasks of `order`."""
        note = _Notes(self, names)
        state = self.start
        before = kept = Decimal(0)
        for k in range(int(steps[-1]) + 1):
            if k in steps:
                losses = [state @ form @ state for form in self.forms]
                on_visits = sum((losses[m] for m in order[:k].tolist()), Decimal(0))
                note.add(k, np.outer(state, state), on_visits, before, kept, int(np.count_nonzero(steps == k)))
            if k < len(order):
                m = int(order[k])
                before += state @ self.forms[m] @ state
                state = self.steps[m] @ state
                kept += state @ self.forms[m] @ state
        return note.tables()

    def _step(self, m: int, moment: Numbers) -> Numbers:
        return self.steps[m] @ moment @ self.steps[m].T


class _Notes:
    """What is asked, at each step that is asked for."""

    def __init__(self, deep: Deep, names: Iterable[str]) -> None:
        self.deep, self.names = deep, tuple(names)
        self.rows: dict[str, list[Any]] = {name: [] for name in self.names}

    def add(self, k: int, second: Numbers, visited: Decimal, before: Decimal, kept: Decimal, times: int) -> None:
        geometry = self.deep.geometry
        each = [_trace(form, second) for form in self.deep.forms]
        undefined = Decimal("nan")
        found = {
            "loss": sum(loss * int(n) for loss, n in zip(each, geometry.counts, strict=True)) / geometry.num_tasks,
            "forgetting": (visited - kept if k > 1 else Decimal(0)) / k if k else undefined,
            "regret": before / k if k else undefined,
            "error": _trace(self.deep.error, second),
            "task_losses": [each[m] for m in geometry.index],
        }
        for name in self.names:
            self.rows[name].extend([found[name]] * times)

    def tables(self) -> dict[str, Numbers]:
        return {name: np.array(rows, dtype=object) for name, rows in self.rows.items()}


def answer(
    request: Request, order: IntArray | None, unsure: Mapping[str, Flags]
) -> tuple[dict[str, tuple[Array, Array]], int]:
    """All that a request asks for, and the digits it took; `order` where it is not random."""
    scheme = request.scheme
    assert isinstance(scheme, LinearScheme)

    def compute() -> tuple[dict[str, Numbers], Decimal]:
        deep = Deep(request.geometry, scheme, request.w0)
        if order is not None:
            found = deep.along(order, request.steps, request.names)
        elif isinstance(request.ordering, WithReplacement):
            weights, _ = request.ordering.law.weights(view_of(request.problem))
            found = deep.independent(weights.tolist(), request.steps, request.names)
        else:
            found = deep.permutations(request.steps, request.names)
        return found, deep.scale

    return settle(compute, unsure)


def work(request: Request) -> float:
    """Products of decimal numbers that one precision takes, roughly; infinite where it cannot be done."""
    geometry, scheme, ordering = request.geometry, request.scheme, request.ordering
    if geometry.data is None or not isinstance(scheme, LinearScheme) or precise_gain(scheme, Decimal(1)) is None:
        return float("inf")
    size, tasks = geometry.dim + 1, geometry.num_distinct
    rows = sum(matrix.shape[0] for matrix in geometry.data.matrices)
    reduction = (
        rows * geometry.data.matrices[0].shape[1] * geometry.dim + 60.0 * float(np.sum(geometry.ranks**2)) * size
    )
    if isinstance(ordering, WithoutReplacement | Reshuffled):
        states, _ = subsets.states_needed(geometry.counts, min(request.last, geometry.num_tasks))
        epochs = -(-request.last // geometry.num_tasks)
        return float(reduction + epochs * states * tasks * 2 * size**3)
    if request.deterministic:
        return float(reduction + request.last * 4 * size**2 + len(request.steps) * (tasks + 2) * size**2)
    if (
        not isinstance(ordering, WithReplacement) or ordering.law.weights(view_of(request.problem))[1] > 0
    ):  # the probabilities are not known better than float64
        return float("inf")
    return float(reduction + request.last * tasks * 2 * size**3 * (1 + (tasks if "forgetting" in request.names else 0)))


# --------------------------------------------------------------------------------------------------- linear algebra


def lift(array: Any) -> Numbers:
    """The same numbers, exactly, as decimal ones.

    >>> lift([0.5])
    array([Decimal('0.5')], dtype=object)
    """
    raw = np.asarray(array, dtype=np.float64)
    return np.array([Decimal(value) for value in raw.ravel().tolist()], dtype=object).reshape(raw.shape)


def _trace(form: Numbers, moment: Numbers) -> Decimal:
    return Decimal(np.sum(form * moment))


def _frame(rows: Numbers, dim: int) -> Numbers | None:
    """An orthonormal frame of so many dimensions for the rows, by Gram-Schmidt; None if it is all of the space."""
    if dim == rows.shape[1]:
        return None
    sizes = [max((abs(x) for x in row), default=Decimal(0)) for row in rows]
    rest = np.array([row / size for row, size in zip(rows, sizes, strict=True) if size], dtype=object)
    frame: list[Numbers] = []
    for _ in range(dim):
        row = rest[int(np.argmax([float(row @ row) for row in rest]))]
        for _ in range(2):
            for other in frame:
                row = row - (row @ other) * other
        row = row / (row @ row).sqrt()
        frame.append(row)
        rest = rest - np.outer(rest @ row, row)
    return np.array(frame, dtype=object).reshape(dim, rows.shape[1])


def _factor(matrix: Numbers, label: Numbers, rank: int) -> tuple[Numbers, Numbers, Numbers]:
    """Squared singular values, right singular vectors and targets of the rank that was decided: one-sided Jacobi."""
    both = np.column_stack([matrix, label])
    small = Decimal(10) ** (4 - getcontext().prec)
    floor = [small**2 * (row[:-1] @ row[:-1]) for row in both]
    for _ in range(60):
        turned = False
        for i in range(len(both)):
            for j in range(i + 1, len(both)):
                x, y = both[i], both[j]
                a, b, c = x[:-1] @ x[:-1], y[:-1] @ y[:-1], x[:-1] @ y[:-1]
                if a <= floor[i] or b <= floor[j] or c * c <= small**2 * a * b:
                    continue
                turned = True
                zeta = (b - a) / (2 * c)
                root = (1 + zeta * zeta).sqrt()
                t = 1 / (zeta + (root if zeta >= 0 else -root))
                cosine = 1 / (1 + t * t).sqrt()
                both[i], both[j] = cosine * x - t * cosine * y, t * cosine * x + cosine * y
        if not turned:
            break
    squares = [row[:-1] @ row[:-1] for row in both]
    kept = sorted(range(len(both)), key=lambda i: -squares[i])[:rank]
    roots = [squares[i].sqrt() for i in kept]
    basis = np.array([both[i][:-1] / root for i, root in zip(kept, roots, strict=True)], dtype=object)
    target = np.array([both[i][-1] / root for i, root in zip(kept, roots, strict=True)], dtype=object)
    chosen = np.array([squares[i] for i in kept], dtype=object)
    return chosen, basis.reshape(rank, matrix.shape[1]), target


def _solve(rows: Numbers, targets: Numbers) -> Numbers:
    """The v that minimises |rows v - targets|, for rows of full column rank, by Gram-Schmidt along the columns."""
    dim = rows.shape[1]
    columns = [np.array(rows[:, i], dtype=object) for i in range(dim)]
    triangle = lift(np.zeros((dim, dim)))
    rest, along = np.array(targets, dtype=object), []
    for i in range(dim):
        triangle[i, i] = (columns[i] @ columns[i]).sqrt()
        columns[i] = columns[i] / triangle[i, i]
        for j in range(i + 1, dim):
            triangle[i, j] = columns[i] @ columns[j]
            columns[j] = columns[j] - triangle[i, j] * columns[i]
        along.append(columns[i] @ rest)
        rest = rest - along[i] * columns[i]
    v = lift(np.zeros(dim))
    for i in reversed(range(dim)):
        v[i] = (along[i] - sum((triangle[i, j] * v[j] for j in range(i + 1, dim)), Decimal(0))) / triangle[i, i]
    return v
