"""How far relative changes of the data move an expectation: condition numbers by exact finite differences.

`conditions(Xs, ys, question)` gives, for every quantity and k, sum_i |value(data + delta e_i s_i) - value| /
(delta |value|) over the numbers i of the data, with delta = 2^-200, for two choices of s. The changed data and the
steps of the tasks are rational; the recursions run in balls of so many bits that the sum is known to three digits.

- componentwise: s_i is the number itself; numbers that are zero stay zero;
- normwise: s_i is the norm of its row of X, also where the entry is zero.

So eps times the condition is what rounding all data once can do to the value, to first order.

What counts as data, such that nothing jumps:

- A task of rank r < n (redundant rows, more rows than columns, zero rows) is X = M X_I with r independent rows X_I of
  its own, those that are closest to orthogonal. The entries of X_I are changed, M stays, the other rows follow: the
  rank is kept, and losses keep counting all n rows, for every scheme. (Leaving redundant rows out would change the
  losses, and for schemes with gains that depend on singular values the steps too.) A zero task has no data.
- Identical tasks are one: they change together, as the package factors them once.
- labels="follow" (default): the tasks stay jointly solvable. y_m = X_m w*, w* the common solution nearest to w_0; the
  data are X and w* (normwise: s_i = |w*|), and the labels follow. `error` is measured from the common solution
  nearest to w_0; where the change would add to the joint rank, from w* as it was. On problems that are not realizable,
  y_m = X_m w* + rest with the rest fixed.
- labels="free": y_I are data of their own (normwise: s_i = |y_i| + |x_i| |w*|), the other labels of the task follow by
  M. Changed tasks are no longer jointly solvable, so that there is no `error` (None). A loss far below |y|^2 has a
  huge free condition, since a change of y alone leaves a residual; knowing that the tasks are solvable removes it.

w_0, the weights of the ordering and the parameters of the scheme are not changed.
Values that are zero (to all of the bits used) have no condition: None.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import sqrt
from typing import Any, Literal, NamedTuple

from flint import arb, ctx, fmpq, fmpq_mat
from rationals import QUANTITIES, column, enclosed_expectation, joint_solution, matrix

__all__ = ["Condition", "condition", "conditions"]

DELTA = fmpq(1, 2**200)
BITS = 640  # of the recursions, at first; doubled until the sum of the changes is known to 1e-3


class Condition(NamedTuple):
    """Relative change of the value over relative change of the data, componentwise and normwise."""

    componentwise: float
    normwise: float


class _Task(NamedTuple):
    """X = M core, y = M label + X w* (w* zero where labels are free) + rest."""

    M: fmpq_mat | None
    core: fmpq_mat
    label: fmpq_mat
    rest: fmpq_mat


def condition(
    Xs: Sequence[Any],
    ys: Sequence[Any],
    question: Any,
    quantity: str,
    k: int,
    *,
    task: int | None = None,
    labels: Literal["follow", "free"] = "follow",
) -> Condition | None:
    """The condition of one quantity at one k (of `task_losses`: of one task); None if the value is zero."""
    asked = question._replace(ks=(k,))
    found = conditions(Xs, ys, asked, labels=labels)[quantity][0]
    return found[task] if task is not None else found  # type: ignore[no-any-return, index]


def conditions(
    Xs: Sequence[Any], ys: Sequence[Any], question: Any, *, labels: Literal["follow", "free"] = "follow"
) -> dict[str, list[Any]]:
    """A `Condition` or None for every quantity and every k of the question (task_losses: a list of T each)."""
    before, bits = ctx.prec, BITS
    try:
        while True:
            ctx.prec = bits
            totals = _totals(Xs, ys, question, labels == "follow", bits)
            bits *= 2
            if bits > 16 * BITS or all(c is None or _known(c) for total in totals for c in total):
                break
        flat = iter([None if c is None else Condition(_float(c), _float(n)) for c, n in zip(*totals, strict=True)])
    finally:
        ctx.prec = before
    return {
        name: [[next(flat) for _ in Xs] if name == "task_losses" else next(flat) for _ in question.ks]
        for name in QUANTITIES
    }


def _totals(Xs: Sequence[Any], ys: Sequence[Any], question: Any, follow: bool, bits: int) -> list[list[Any]]:
    """Both sums for every value, as balls; None for a value that is zero."""
    matrices, targets = [matrix(X) for X in Xs], [column(y) for y in ys]
    keys = [(X.str(), y.str()) for X, y in zip(matrices, targets, strict=True)]
    which = [keys.index(key) for key in keys]
    star = joint_solution(matrices, targets, question.w0)
    tasks = {m: _take_apart(matrices[m], targets[m], star, follow) for m in set(which)}
    rank = _joint_rank(matrices)

    def evaluate(parts: dict[int, _Task], point: fmpq_mat) -> list[arb | None]:
        data = {m: _put_together(part, point, follow) for m, part in parts.items()}
        if follow and _joint_rank([X for X, _ in data.values()]) == rank:
            point = joint_solution([X for X, _ in data.values()], [y for _, y in data.values()], question.w0)
        values = enclosed_expectation(
            [data[m][0] for m in which],
            [data[m][1] for m in which],
            **question._asdict(),
            target=point,
            bits=bits,
            limit=bits,
        )
        if not follow:
            values["error"] = [None] * len(question.ks)
        return _flat(values)

    start = evaluate(tasks, star)
    zero = [value is None or value.contains(0) for value in start]
    totals = [[None if none else arb(0) for none in zero] for _ in Condition._fields]

    def add(kind: int, changed: list[arb | None]) -> None:
        for i, (old, new) in enumerate(zip(start, changed, strict=True)):
            if not zero[i]:
                totals[kind][i] += abs((new - old) / (old * arb(DELTA)))

    for kind in range(len(Condition._fields)):
        for m, part in tasks.items():
            for changed in _changes(part, star, kind, follow):
                add(kind, evaluate({**tasks, m: changed}, star))
        if follow:
            for i in range(star.nrows()):
                size = star[i, 0] if kind == 0 else _norm(star.entries())
                if size != 0:
                    add(kind, evaluate(tasks, _bumped(star, i, 0, size * DELTA)))
    return totals


def _flat(values: dict[str, list[Any]]) -> list[arb | None]:
    return [x for name in QUANTITIES for row in values[name] for x in (row if isinstance(row, list) else [row])]


def _take_apart(X: fmpq_mat, y: fmpq_mat, star: fmpq_mat, follow: bool) -> _Task:
    n, d, rank = X.nrows(), X.ncols(), X.rank()
    if follow:
        y = y - X * star
    if rank == 0:
        return _Task(None, X, y, y)
    rows = _independent(X, rank)
    core = fmpq_mat(rank, d, [X[i, j] for i in rows for j in range(d)])
    label = fmpq_mat(rank, 1, [fmpq(0) if follow else y[i, 0] for i in rows])
    M = X * core.transpose() * (core * core.transpose()).inv()
    assert M.nrows() == n
    assert M * core == X
    return _Task(M, core, label, y - M * label)


def _put_together(part: _Task, star: fmpq_mat, follow: bool) -> tuple[fmpq_mat, fmpq_mat]:
    if part.M is None:
        return part.core, part.rest
    X = part.M * part.core
    return X, part.M * part.label + part.rest + (X * star if follow else fmpq_mat(X.nrows(), 1))


def _changes(part: _Task, star: fmpq_mat, kind: int, follow: bool) -> Iterator[_Task]:
    """The task with one number of its core, or of its labels, changed."""
    if part.M is None:
        return
    d = part.core.ncols()
    for i in range(part.core.nrows()):
        norm = _norm([part.core[i, j] for j in range(d)])
        for j in range(d):
            size = part.core[i, j] if kind == 0 else norm
            if size != 0:
                yield part._replace(core=_bumped(part.core, i, j, size * DELTA))
        if not follow:
            y = part.label[i, 0]
            size = y if kind == 0 else abs(y) + norm * _norm(star.entries())
            if size != 0:
                yield part._replace(label=_bumped(part.label, i, 0, size * DELTA))


def _independent(X: fmpq_mat, rank: int) -> tuple[int, ...]:
    """The rows whose directions are closest to orthogonal, by the determinant of their cosines."""
    n, d = X.nrows(), X.ncols()
    if n == rank:
        return tuple(range(n))
    sizes = [sum((X[i, j] ** 2 for j in range(d)), fmpq(0)) for i in range(n)]

    def spread(rows: tuple[int, ...]) -> fmpq:
        picked = fmpq_mat(rank, d, [X[i, j] for i in rows for j in range(d)])
        value = (picked * picked.transpose()).det()
        for i in rows:
            value /= sizes[i]
        return value

    return max(combinations([i for i in range(n) if sizes[i] != 0], rank), key=spread)


def _joint_rank(matrices: Sequence[fmpq_mat]) -> int:
    return int(matrix([row for X in matrices for row in X.tolist()]).rank())


def _bumped(given: fmpq_mat, i: int, j: int, change: fmpq) -> fmpq_mat:
    copy = fmpq_mat(given)
    copy[i, j] = given[i, j] + change
    return copy


def _norm(entries: Sequence[fmpq]) -> fmpq:
    """|x|, rounded to a float."""
    square = sum((x * x for x in entries), fmpq(0))
    top, bottom = sqrt(int(square.p) / int(square.q)).as_integer_ratio()
    return fmpq(top, bottom)


def _known(value: arb) -> bool:
    return bool(value.rad() <= 1e-3 * (abs(value.mid()) + 1e-3))


def _float(value: arb) -> float:
    return float(value.mid())
