"""Expectations with as many digits as it takes, for small problems where 31 digits leave doubts.

Values are computed with 60 digits and again with more, until two precisions agree: their difference bounds the error of
the first. A value that is zero to all digits, where these reach below the least float, is zero. The arithmetic is that
of `decimal` in the standard library; a float is taken as the exact number that it is.

The state is v = (w - w_0 in coordinates on the joint row space, 1), so that learning task m is v -> S_m v and a loss is
v^T H_m v, also where no w solves all tasks. Only ranks are taken from float64.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Context, Decimal, getcontext, localcontext
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forgetting.core.arrays import Array, IntArray
from forgetting.dynamics.space import view_of
from forgetting.expectation.engines.costs import states_needed
from forgetting.expectation.engines.multisets import none_seen, one_more
from forgetting.expectation.quantities import LOSS, Form, Quantity, Term
from forgetting.expectation.request import Request
from forgetting.geometry import Geometry, lift
from forgetting.orderings.laws import Independent, Permutation, Reshuffled
from forgetting.schemes import LinearStep, LinearSteps
from forgetting.schemes.linear import precise_gain

DIGITS = (60, 120, 480, 960)
TINIEST = 5e-324  # the least positive float: what is below it to all digits is zero
MOST_STEPS = 1000  # that differ: each has to be made with all these digits
AGREE = Decimal("1e-18")
Numbers = Any  # arrays of decimal numbers (dtype object)
Flags = NDArray[np.bool_]


def settle(
    compute: Callable[[], tuple[dict[str, Numbers], Decimal]], unsure: Mapping[str, Flags]
) -> tuple[dict[str, tuple[Array, Array]], int]:
    """Values with bounds on their errors, and the number of digits at which the unsure values stopped changing.

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
                compared = {name: _compare(tables, name, which) for name, which in unsure.items()}
            if digits == DIGITS[-1] or all(agreed for _, _, agreed in compared.values()):
                break
    return {name: (value, doubt) for name, (value, doubt, _) in compared.items()}, digits


def _compare(tables: list[tuple[dict[str, Numbers], Decimal]], name: str, unsure: Flags) -> tuple[Array, Array, bool]:
    """The last values, how far they are from those before, and whether the unsure values agree with those before."""
    (before, _), (last, scale) = tables[-2], tables[-1]
    shape = last[name].shape
    values, doubts, agreed = np.zeros(last[name].size), np.zeros(last[name].size), True
    least = Decimal(10) ** (15 - getcontext().prec) * scale
    for i, (a, b, in_doubt) in enumerate(zip(before[name].ravel(), last[name].ravel(), unsure.ravel(), strict=True)):
        if b.is_nan():
            values[i] = np.nan
            continue
        nothing = abs(b) <= least
        if nothing and least < Decimal(TINIEST):
            doubts[i] = TINIEST
            continue
        values[i] = float(b)
        gap = abs(a - b)
        agreed = agreed and (not in_doubt or (gap <= AGREE * abs(b) and not nothing))
        doubts[i] = float(max(gap, least)) + 2.3e-16 * abs(values[i]) + TINIEST
    return values.reshape(shape), doubts.reshape(shape), agreed


class Moment(NamedTuple):
    """Second moments of v after k steps, each a matrix or, by distinct task, a list of matrices.

    Attributes:
        k: the number of steps.
        now: E v v^T.
        visited: E c_m v v^T, with c_m the number of visits to m; empty if not needed.
        learnt: the sum over steps t of E v v^T before step t where it learns m.
        coming: E v v^T where the next step learns m; empty if no task comes next.
    """

    k: int
    now: Numbers
    visited: Sequence[Numbers]
    learnt: Sequence[Numbers]
    after: Sequence[Numbers]
    coming: Sequence[Numbers]


class DecimalMoments:
    """The tasks and steps of a request, at the precision of the current decimal context.

    With a `solution`, labels count as X_m solution, and the state is w - solution, without a constant. With `averaged`,
    the state is (v, s), with s the sum of v before each step.
    """

    def __init__(
        self,
        geometry: Geometry,
        steps: LinearSteps,
        w0: Array,
        solution: Array | None = None,
        *,
        averaged: bool = False,
    ) -> None:
        assert geometry.data is not None
        self.geometry = geometry
        dense, given = zip(*map(geometry.data.decimals, range(geometry.num_distinct)), strict=True)
        start = lift(w0)
        labels = [label - matrix @ start for matrix, label in zip(dense, given, strict=True)]
        missed = labels if solution is None else [0 * label for label in labels]
        frame = _frame(np.concatenate(dense), geometry.dim)
        rows = dense if frame is None else [matrix @ frame.T for matrix in dense]
        self.losses, self.factors, bases, targets = [], [], [], []
        for m, (matrix, label, divisor) in enumerate(zip(rows, missed, geometry.data.divisors, strict=True)):
            both = np.column_stack([matrix, -label])
            self.losses.append(both.T @ both / (2 * Decimal(float(divisor))))
            squares, basis, target = _factor(matrix, label, int(geometry.ranks[m]))
            squares = squares / Decimal(float(divisor))
            errors = np.column_stack([basis, -target])
            self.factors.append((squares, errors))
            bases.append(basis)
            targets.append(target)
        nearest = _solve(np.concatenate(bases), np.concatenate(targets))
        offset = np.column_stack([lift(np.eye(geometry.dim)), -nearest])
        self.error = offset.T @ offset
        self.start = lift(np.append(np.zeros(geometry.dim), 1.0))
        if solution is not None:
            gap = start - lift(solution)
            self.start = gap if frame is None else frame @ gap
            self.error, *self.losses = (form[:-1, :-1] for form in (self.error, *self.losses))
            self.factors = [(squares, errors[:, :-1]) for squares, errors in self.factors]
        self.size = len(self.start)
        if averaged:
            identity = lift(np.eye(self.size))
            self.start = np.append(self.start, 0 * self.start)
            self.error, *self.losses = (
                np.block([[form, 0 * identity], [0 * identity] * 2]) for form in (self.error, *self.losses)
            )
            self.factors = [(squares, np.hstack([errors, 0 * errors])) for squares, errors in self.factors]
        self.made, self.averaged, self.bases = steps, averaged, bases
        # v = w - w_0 decays to -w_0, whose part that no task sees moves w away from the solution
        self.pulled = -(start if frame is None else frame @ start)
        self.aside = start @ start - self.pulled @ self.pulled
        self.left = [Decimal(1)]  # of that part, after each step
        self._last: tuple[LinearStep, list[Numbers]] | None = None
        self._forms: dict[Form, list[Numbers]] = {}

    def steps(self, t: int) -> list[Numbers]:
        """S_m of step t for every distinct task, with the decay before it."""
        step = self.made.at(t)
        if self._last is None or self._last[0].scheme is not step.scheme or self._last[0].keep != step.keep:
            self._last = step, [self._step_of(step, m) for m in range(len(self.bases))]
        return self._last[1]

    def _step_of(self, step: LinearStep, m: int) -> Numbers:
        (squares, errors), basis, dim = self.factors[m], self.bases[m], self.geometry.dim
        made = lift(np.eye(self.size))
        for square, row, error in zip(squares, basis, errors[:, : self.size], strict=True):
            made[:dim] -= np.outer(precise_gain(step.scheme, square) * row, error)
        if step.keep != 1:
            shrunk, keep = lift(np.eye(self.size)), Decimal(step.keep)
            shrunk[:dim] *= keep
            shrunk[:dim, dim] = (1 - keep) * self.pulled
            made = made @ shrunk
        if not self.averaged:
            return made
        identity = lift(np.eye(self.size))
        return np.block([[made, 0 * identity], [identity, identity]])

    @cached_property
    def scale(self) -> Decimal:
        """The largest form at the start, to which results are compared."""
        last = self.size - 1
        first = [abs(form[last, last]) for form in self.losses] + [self.error[last, last]]
        return Decimal(max([*first, Decimal("1e-300")]))

    def forms(self, form: Form) -> list[Numbers]:
        """H_m of each distinct task, with v^T H_m v the form at v."""
        if form not in self._forms:
            now = self.losses
            if form is not LOSS:
                half = Decimal(1) / 2
                now = [(errors.T * form.weights(squares)) @ (half * errors) for squares, errors in self.factors]
            self._forms[form] = now
        return self._forms[form]

    def value(self, quantity: Quantity, moment: Moment) -> Any:
        """A quantity from the moments: a number, or T numbers."""
        total = np.array([Decimal(0)] * self.geometry.num_tasks) if quantity.per_task else Decimal(0)
        for term in quantity.after(moment.k):
            total = total + Decimal(term.coefficient) * self.evaluate(term, moment)
        return total if moment.k or not quantity.needs_steps else total * Decimal("nan")

    def evaluate(self, term: Term, moment: Moment) -> Any:
        """A term without its coefficient: a number, or T numbers."""
        geometry, k, learned = self.geometry, moment.k, self.geometry.num_learned
        if term.average == "error":
            while len(self.left) <= k:
                self.left.append(self.left[-1] * Decimal(self.made.at(len(self.left)).keep))
            return _trace(self.error, moment.now) + (1 - self.left[k]) ** 2 * self.aside
        forms = self.forms(term.form)[slice(learned, None) if term.held_out else slice(learned)]
        if term.needs_steps and not k:
            return Decimal("nan")
        if term.iterate == "mean":
            forms = [np.roll(form, self.size, (0, 1)) * (Decimal(1) / k**2) for form in forms]
        match term.average:
            case "each":
                return np.array([_trace(form, moment.now) for form in forms])[geometry.index]
            case "tasks":
                counted = zip(forms, geometry.counts[:learned].tolist(), strict=True)
                return sum(_trace(form, moment.now) * count for form, count in counted) / geometry.num_tasks
            case "next":
                return _traces(forms, moment.coming[:learned]) if moment.coming else Decimal("nan")
            case "visited":
                return _traces(forms, moment.visited[:learned]) / k
        return _traces(forms, (moment.after if term.average == "kept" else moment.learnt)[:learned]) / k

    def independent(self, weights: Sequence[float], wanted: Collection[int], counted: bool) -> Iterator[Moment]:
        """The moments at the steps `wanted`, for independent draws in proportion to the weights of the tasks."""
        p = lift(np.zeros(len(self.bases)))
        for which, weight in zip(self.geometry.index.tolist(), weights, strict=True):
            p[which] += Decimal(float(weight))
        p = p / p.sum()
        now = np.outer(self.start, self.start)
        visited = [0 * now for _ in p] if counted else []
        learnt = after = [0 * now for _ in p]
        last = max(wanted)
        for k in range(last + 1):
            coming = [chance * now for chance in p]
            if k in wanted:
                yield Moment(k, now, visited, learnt, after, coming)
            if k == last:
                return
            steps = self.steps(k + 1)
            learnt = _sums(learnt, coming)
            moved = [step @ part @ step.T for step, part in zip(steps, coming, strict=True)]
            after = _sums(after, moved)
            visited = [
                sum(p[j] * (steps[j] @ moment @ steps[j].T) for j in range(len(p)) if p[j]) + moved[m]
                for m, moment in enumerate(visited)
            ]
            now = sum(moved)

    def permutations(self, wanted: Collection[int], epochs: bool) -> Iterator[Moment]:
        """The moments at the steps `wanted` of random permutations, a fresh one after each epoch."""
        counts, total = self.geometry.counts, self.geometry.num_tasks
        tasks = range(len(counts))
        first = np.outer(self.start, self.start)
        zero = 0 * first
        seen, layer = none_seen(counts), [(Decimal(1), first)]
        learnt = after = [zero for _ in tasks]
        epoch = 0
        last = max(wanted)
        for k in range(last + 1):
            if k in wanted:
                now = sum(chance * moment for chance, moment in layer)
                visits = (epoch * counts + seen).T.tolist()
                visited = [
                    sum(chance * count * moment for count, (chance, moment) in zip(visits[m], layer, strict=True))
                    for m in tasks
                ]
            size = k - epoch * total
            if size == total and epochs:
                ((_, moment),) = layer
                seen, layer, epoch, size = none_seen(counts), [(Decimal(1), moment)], epoch + 1, 0
            coming = [zero for _ in tasks] if size < total else []
            moved = [zero for _ in tasks]
            steps = self.steps(k + 1) if k < last else []
            following, edges = one_more(seen, counts)
            grown: list[tuple[Decimal, Numbers]] = [(Decimal(0), 0)] * len(following)
            for edge in edges:
                m = edge.task
                for parent, child, left, had in edge.single():
                    chance, moment = layer[parent]
                    share = chance * left / (total - size)
                    coming[m] = coming[m] + share * moment
                    if k == last:
                        continue
                    old, sum_ = grown[child]
                    stepped = steps[m] @ moment @ steps[m].T
                    moved[m] = moved[m] + share * stepped
                    grown[child] = old + share, sum_ + stepped * had / (size + 1)
            if k in wanted:
                yield Moment(k, now, visited, learnt, after, coming)
            learnt, after = _sums(learnt, coming) if coming else learnt, _sums(after, moved)
            seen, layer = following, grown

    def along(self, order: IntArray, wanted: Collection[int]) -> Iterator[Moment]:
        """The moments at the steps `wanted` of one run through the distinct tasks of `order`."""
        state = self.start
        zero = 0 * np.outer(state, state)
        tasks = range(len(self.bases))
        counts = [0 for _ in tasks]
        learnt, after = [zero for _ in tasks], [zero for _ in tasks]
        last = max(wanted)
        for k in range(last + 1):
            now = np.outer(state, state)
            if k in wanted:
                coming = [now if m == order[k] else zero for m in tasks] if k < len(order) else []
                yield Moment(k, now, [count * now for count in counts], learnt, after, coming)
            if k < last:
                m = int(order[k])
                learnt[m] = learnt[m] + now
                counts[m] += 1
                state = self.steps(k + 1)[m] @ state
                after[m] = after[m] + np.outer(state, state)


def answer(
    request: Request, order: IntArray | None, unsure: Mapping[str, Flags]
) -> tuple[dict[str, tuple[Array, Array]], int]:
    """All quantities of a request, and the number of digits that they took.

    `order` holds the distinct tasks where it is not random.
    """

    def compute() -> tuple[dict[str, Numbers], Decimal]:
        # every quantity is a sum over outputs
        parts = [
            part(geometry, w0) for geometry, w0 in zip(request.geometry.each_output, _starts(request), strict=True)
        ]
        tables = [table for table, _ in parts]
        return {name: sum(table[name] for table in tables) for name in tables[0]}, max(scale for _, scale in parts)

    def part(geometry: Geometry, w0: Array) -> tuple[dict[str, Numbers], Decimal]:
        tasks = DecimalMoments(geometry, request.linear_steps, w0, averaged=request.averaged)
        repeats = dict(zip(*np.unique(request.steps, return_counts=True), strict=True))
        if order is not None:
            moments = tasks.along(order, repeats)
        elif isinstance(request.law, Independent):
            weights, _ = request.law.weights(view_of(request.problem))
            moments = tasks.independent(weights.tolist(), repeats, request.averages("visited"))
        else:
            moments = tasks.permutations(repeats, isinstance(request.law, Reshuffled))
        rows: dict[str, list[Any]] = {quantity.name: [] for quantity in request.quantities}
        for moment in moments:
            for quantity in request.quantities:
                rows[quantity.name].extend([tasks.value(quantity, moment)] * int(repeats[moment.k]))
        return {name: np.array(row, dtype=object) for name, row in rows.items()}, tasks.scale

    return settle(compute, unsure)


def _starts(request: Request) -> list[Array]:
    """w_0 of each output."""
    return [request.w0] if request.geometry.outputs is None else list(request.w0.T)


def products(request: Request) -> float:
    """Products of decimal numbers that one precision takes, roughly; infinite where decimals cannot be used."""
    return (request.geometry.outputs or 1) * _products(request)


def _products(request: Request) -> float:
    """`products`, for one output."""
    geometry, law = request.geometry, request.law
    data = geometry.data
    if data is None or not data.known:
        return float("inf")
    steps = request.linear_steps
    different = 1 if steps.alike else request.last
    if different > MOST_STEPS or any(
        precise_gain(steps.at(t).scheme, Decimal(1)) is None for t in range(1, different + 1)
    ):
        return float("inf")
    size, tasks = (geometry.dim + 1) * (2 if request.averaged else 1), geometry.num_distinct
    rows = sum(matrix.shape[0] for matrix in data.matrices)
    made = different * float(np.sum(geometry.ranks)) * size**2
    reduction = made + rows * data.matrices[0].shape[1] * geometry.dim + 60.0 * float(np.sum(geometry.ranks**2)) * size
    if isinstance(law, Permutation | Reshuffled):
        states, _ = states_needed(geometry.counts, min(request.last, geometry.num_tasks))
        epochs = -(-request.last // geometry.num_tasks)
        return float(reduction + epochs * states * tasks * 2 * size**3)
    if request.deterministic:
        return float(reduction + request.last * 4 * size**2 + len(request.steps) * (tasks + 2) * size**2)
    if not isinstance(law, Independent) or law.weights(view_of(request.problem))[1] > 0:
        return float("inf")  # the probabilities are not known better than float64
    return float(reduction + request.last * tasks * 2 * size**3 * (1 + (tasks if request.averages("visited") else 0)))


# --------------------------------------------------------------------------------------------------- linear algebra
def _sums(first: Sequence[Numbers], second: Sequence[Numbers]) -> list[Numbers]:
    return [a + b for a, b in zip(first, second, strict=True)]


def _trace(form: Numbers, moment: Numbers) -> Decimal:
    return Decimal(np.sum(form * moment))


def _traces(forms: Sequence[Numbers], moments: Sequence[Numbers]) -> Decimal:
    return sum((_trace(form, moment) for form, moment in zip(forms, moments, strict=True)), Decimal(0))


def _frame(rows: Numbers, dim: int) -> Numbers | None:
    """An orthonormal frame of `dim` dimensions for the rows, by Gram-Schmidt; None if it is the full space."""
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
    """The `rank` largest squared singular values, their right singular vectors and targets, by one-sided Jacobi."""
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
