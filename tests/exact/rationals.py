"""Expectations over orderings in exact rational arithmetic, without the package.

Learning task m is an affine map w -> A_m w + b_m with rational entries, whatever the scheme, and whether or not the
task, or all tasks together, can be solved. With u = w - w_0 and v = (u, 1) it is linear, v -> S_m v, so that E v v^T
obeys linear recursions, and every quantity of `fg.expect` is a linear function of second moments:

- independent draws: V_(k+1) = Q[V_k], and C_m(k) = E[c_m(k) v v^T], c_m the visits to m, obeys
  C_m(k+1) = Q[C_m(k)] + p_m S_m V_k S_m^T;
- permutations: M_c, the sum of v v^T over all orders of the set c, is sum_(i in c) S_i M_(c - i) S_i^T; epochs start
  from the moment at which the last one ended;
- explicit: the run itself.

Definitions, as in the package. L_m(w) = 1/2 |X_m w - y_m|^2 (over n_m if `mean`); loss: mean of the L_m; forgetting:
1/k sum_(t<=k) (L_tau(t)(w_k) - L_tau(t)(w_t)); regret: 1/k sum_(t<=k) L_tau(t)(w_(t-1)); error: |w_k - w*|^2 with w*
the common solution nearest to w_0; seen_loss: 1/k sum_(t<=k) L_tau(t)(w_k); next_loss: L_tau(k+1)(w_k). Forgetting,
regret and seen_loss at k = 0, and next_loss where no task comes next, are None (NaN in the package).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import comb, factorial
from typing import Any, NamedTuple

from flint import arb, arb_mat, ctx, fmpq, fmpq_mat, fmpz, fmpz_mat

__all__ = [
    "QUANTITIES",
    "Law",
    "Population",
    "cyclic",
    "enclosed_expectation",
    "exact_expectation",
    "explicit",
    "joint_solution",
    "noisy_expectation",
    "rational",
    "realizable",
    "reshuffled",
    "squares_of",
    "step_map",
    "with_replacement",
    "without_replacement",
]

QUANTITIES = ("loss", "forgetting", "regret", "error", "seen_loss", "next_loss", "task_losses")
Vector = Sequence[Any]
Values = dict[str, list[Any]]


# ------------------------------------------------------------------------------------------------------------- laws


@dataclass(frozen=True)
class Law:
    """How tasks are ordered: `kind`, with the weights of independent draws or the sequence of an explicit ordering."""

    kind: str
    values: tuple[Any, ...] | None = None


def with_replacement(weights: Iterable[Any] | None = None) -> Law:
    """Independent draws; p_m = weights[m] / sum of weights, exactly."""
    return Law("with_replacement", None if weights is None else tuple(weights))


def without_replacement() -> Law:
    """A random permutation, k <= T."""
    return Law("without_replacement")


def reshuffled() -> Law:
    """A new random permutation every T steps."""
    return Law("reshuffled")


def explicit(sequence: Iterable[int]) -> Law:
    """These tasks, in this order."""
    return Law("explicit", tuple(sequence))


def cyclic() -> Law:
    """0, 1, ..., T - 1, over and over."""
    return Law("cyclic")


# ----------------------------------------------------------------------------------------------------------- algebra


def rational(number: Any) -> fmpq:
    """The number, exactly: an int, a float, a Fraction, an fmpq, a NumPy scalar.

    >>> rational(0.375)
    3/8
    """
    if isinstance(number, fmpq):
        return number
    if isinstance(number, int | fmpz):
        return fmpq(number)
    top, bottom = number.as_integer_ratio()
    return fmpq(int(top), int(bottom))


def matrix(rows: Any) -> fmpq_mat:
    """A matrix of rationals from nested sequences."""
    if isinstance(rows, fmpq_mat):
        return rows
    table = [[rational(entry) for entry in row] for row in rows]
    return fmpq_mat(len(table), len(table[0]), [entry for row in table for entry in row])


def column(vector: Any) -> fmpq_mat:
    """A column of rationals."""
    return vector if isinstance(vector, fmpq_mat) else matrix([[entry] for entry in vector])


def identity(size: int) -> fmpq_mat:
    """I."""
    return fmpq_mat(size, size, [int(i == j) for i in range(size) for j in range(size)])


def rank_factors(X: fmpq_mat) -> tuple[fmpq_mat, fmpq_mat] | None:
    """X = C B with C of full column rank (columns of X) and B of full row rank; None if X is zero."""
    reduced, rank = X.rref()
    if rank == 0:
        return None
    n, d = X.nrows(), X.ncols()
    pivots = [next(j for j in range(d) if reduced[i, j] != 0) for i in range(rank)]
    picked = fmpq_mat(n, rank, [X[i, j] for i in range(n) for j in pivots])
    return picked, fmpq_mat(rank, d, [reduced[i, j] for i in range(rank) for j in range(d)])


def pseudo_inverse(X: fmpq_mat) -> fmpq_mat:
    """X^+ = B^T (B B^T)^-1 (C^T C)^-1 C^T for X = C B."""
    factors = rank_factors(X)
    if factors is None:
        return fmpq_mat(X.ncols(), X.nrows())
    C, B = factors
    return B.transpose() * (B * B.transpose()).inv() * (C.transpose() * C).inv() * C.transpose()


def step_map(X: fmpq_mat, y: fmpq_mat, scheme: Any = None, *, mean: bool = False) -> tuple[fmpq_mat, fmpq_mat]:
    """(A, b): learning the task moves w to A w + b. The scheme is known by its name and fields; None is Kaczmarz."""
    name = "Kaczmarz" if scheme is None else type(scheme).__name__
    one = identity(X.ncols())
    if name in ("Kaczmarz", "POCS") or (name == "SGD" and scheme.objective == "modified"):
        step = fmpq(1) if name != "SGD" else rational(scheme.step_size)
        inverse = pseudo_inverse(X)
        return one - step * (inverse * X), step * (inverse * y)
    share = fmpq(1, X.nrows() if mean else 1)
    H, g = share * (X.transpose() * X), share * (X.transpose() * y)
    if name == "SGD":
        step = rational(scheme.step_size)
        return one - step * H, step * g
    if name == "FiniteSteps":
        step = rational(scheme.step_size)
        once, A, b = one - step * H, one, fmpq_mat(X.ncols(), 1)
        for _ in range(scheme.n):
            A, b = once * A, once * b + step * g
        return A, b
    if name == "Ridge":
        lam = rational(scheme.lam)
        inverse = (H + lam * one).inv()
        return lam * inverse, inverse * g
    raise ValueError(f"no exact steps of {scheme!r}")


def joint_solution(Xs: Sequence[Any], ys: Sequence[Any], w0: Any = None) -> fmpq_mat:
    """The minimiser nearest to w_0 of sum over distinct tasks of |P_m w - X_m^+ y_m|^2, P_m on the row space of X_m.

    It is the common solution nearest to w_0 where there is one, and otherwise what the package takes for one.
    """
    dim = matrix(Xs[0]).ncols()
    start = fmpq_mat(dim, 1) if w0 is None else column(w0)
    total, right = fmpq_mat(dim, dim), fmpq_mat(dim, 1)
    seen: list[tuple[fmpq_mat, fmpq_mat]] = []
    for X, y in zip(map(matrix, Xs), map(column, ys), strict=True):
        if any(other == X and label == y for other, label in seen):
            continue
        seen.append((X, y))
        inverse = pseudo_inverse(X)
        total += inverse * X
        right += inverse * y
    return start + pseudo_inverse(total) * (right - total * start)


def realizable(Xs: Sequence[Any], ys: Sequence[Any]) -> bool:
    """Whether one w solves all tasks, exactly."""
    w = joint_solution(Xs, ys)
    return all(matrix(X) * w == column(y) for X, y in zip(Xs, ys, strict=True))


# ------------------------------------------------------------------------------------------------------- expectations


def exact_expectation(
    Xs: Sequence[Any],
    ys: Sequence[Any],
    *,
    law: Law | tuple[int, ...],
    ks: Sequence[int],
    scheme: Any = None,
    w0: Any = None,
    mean: bool = False,
    loose: bool = False,
    target: Any = None,
    scored: Sequence[Any] | None = None,
) -> Values:
    """Every quantity at every k, as an fmpq each (task_losses: a list of T each).

    Args:
        Xs, ys: the tasks: nested sequences or arrays of numbers, or fmpq_mat; each number is taken exactly.
        law: of the ordering; a tuple of task numbers is an explicit ordering.
        ks: numbers of steps, in any order.
        scheme: a scheme of the package, or anything of the same name with the same fields; None is Kaczmarz.
        w0: the start; zero if left out.
        mean: divide L_m by n_m.
        loose: give `error` also where no w solves all tasks, with w* = `joint_solution`; else it is None there.
        target: the point to measure `error` from, instead of w*.
        scored: held-out data of each task, a pair (X, y), or (covariance, point) in a `Population`; all losses are then
            theirs.
    """
    return _expectation(_exact, Xs, ys, law, ks, scheme, w0, mean, loose, target, scored)


def enclosed_expectation(
    Xs: Sequence[Any], ys: Sequence[Any], *, bits: int = 1000, least: int = 120, limit: int = 8000, **options: Any
) -> Values:
    """The same as `exact_expectation` as arb balls that hold the exact values, much faster for large k.

    The steps of the tasks are exact, the recursions run with `bits` bits. The precision is doubled until every value
    has `least` correct bits, or is exactly zero, or `limit` is reached.
    """
    before = ctx.prec
    try:
        while True:
            ctx.prec = bits
            found = _expectation(
                _balls,
                Xs,
                ys,
                options["law"],
                options["ks"],
                options.get("scheme"),
                options.get("w0"),
                options.get("mean", False),
                options.get("loose", False),
                options.get("target"),
            )
            flat = [x for name, row in found.items() if name != "task_losses" for x in row]
            flat += [x for row in found["task_losses"] for x in row]
            if bits >= limit or all(x is None or x.is_zero() or x.rel_accuracy_bits() >= least for x in flat):
                return found
            bits *= 2
    finally:
        ctx.prec = before


Arithmetic = Callable[[Sequence[fmpq_mat]], tuple[list[Any], Any]]


def _exact(matrices: Sequence[fmpq_mat]) -> tuple[list[fmpz_mat], fmpz]:
    """Integer matrices over one common denominator."""
    parts = [one.numer_denom() for one in matrices]
    common = fmpz(1)
    for _, bottom in parts:
        common = common.lcm(bottom)
    return [top * (common // bottom) for top, bottom in parts], common


def _balls(matrices: Sequence[fmpq_mat]) -> tuple[list[arb_mat], fmpz]:
    return [arb_mat(one) for one in matrices], fmpz(1)


def _over(top: Any, bottom: Any) -> Any:
    return top / bottom if isinstance(top, arb) else fmpq(top, bottom)


def _expectation(
    arithmetic: Arithmetic,
    Xs: Sequence[Any],
    ys: Sequence[Any],
    law: Law | tuple[int, ...],
    ks: Sequence[int],
    scheme: Any,
    w0: Any,
    mean: bool,
    loose: bool,
    target: Any,
    scored: Sequence[Any] | None = None,
) -> Values:
    if not isinstance(law, Law):
        law = explicit(law)
    matrices = [matrix(X) for X in Xs]
    dim = matrices[0].ncols()
    start = fmpq_mat(dim, 1) if w0 is None else column(w0)
    labels = [column(y) - X * start for X, y in zip(matrices, ys, strict=True)]
    solution = joint_solution(matrices, labels) if target is None else column(target) - start
    known = loose or target is not None or all(X * solution == y for X, y in zip(matrices, labels, strict=True))
    steps = [_affine(*step_map(X, y, scheme, mean=mean)) for X, y in zip(matrices, labels, strict=True)]
    forms = [_form(X, y, X.nrows() if mean else 1) for X, y in zip(matrices, labels, strict=True)]
    if scored is not None:
        forms = [_scored_form(part, start, mean) for part in scored]
    last = max(ks)
    setting = _Setting(arithmetic, steps, forms, _distance(solution), last)
    T = len(matrices)
    if law.kind == "with_replacement":
        weights = [fmpq(1)] * T if law.values is None else [rational(weight) for weight in law.values]
        total = sum(weights, fmpq(0))
        curves = setting.independent([weight / total for weight in weights])
    elif law.kind in ("without_replacement", "reshuffled"):
        if law.kind == "without_replacement" and last > T:
            raise ValueError(f"{last} steps without replacement over {T} tasks")
        curves = setting.permutations()
        if law.kind == "without_replacement":
            curves["next_loss"][T:] = [None] * len(curves["next_loss"][T:])
    else:
        sequence = [t % T for t in range(last + 1)] if law.kind == "cyclic" else list(law.values or ())
        if last > len(sequence):
            raise ValueError(f"{last} steps of an ordering of {len(sequence)}")
        curves = setting.explicit(sequence)
    found = {name: [curves[name][k] for k in ks] for name in QUANTITIES}
    if not known:
        found["error"] = [None] * len(ks)
    return found


def _affine(A: fmpq_mat, b: fmpq_mat) -> fmpq_mat:
    """S with S (u, 1) = (A u + b, 1)."""
    size = A.nrows()
    rows = [[*(A[i, j] for j in range(size)), b[i, 0]] for i in range(size)]
    return matrix([*rows, [0] * size + [1]])


def _form(X: fmpq_mat, y: fmpq_mat, count: int) -> fmpq_mat:
    """H with L(u) = v^T H v."""
    joint = matrix([[*(X[i, j] for j in range(X.ncols())), -y[i, 0]] for i in range(X.nrows())])
    return fmpq(1, 2 * count) * (joint.transpose() * joint)


class Population(NamedTuple):
    """Inputs with this covariance, and the labels of a point."""

    covariance: Any
    point: Any


def _scored_form(part: Any, start: fmpq_mat, mean: bool) -> fmpq_mat:
    """H of held-out data."""
    if isinstance(part, Population):
        away = column(part.point) - start
        joint = matrix([[*(int(i == j) for j in range(len(part.point))), -away[i, 0]] for i in range(len(part.point))])
        return fmpq(1, 2) * (joint.transpose() * matrix(part.covariance) * joint)
    X, y = matrix(part[0]), column(part[1])
    return _form(X, y - X * start, X.nrows() if mean else 1)


def noisy_expectation(
    Xs: Sequence[Any],
    ys: Sequence[Any],
    covariances: Sequence[Any],
    *,
    w0: Any = None,
    scored: Any = None,
    **options: Any,
) -> Values:
    """`exact_expectation` with label noise of these covariances, zero-mean and the same at each visit of a task.

    Every value is quadratic in labels and start, and a covariance is a sum of squares d l l^T over the rationals, so
    that noise adds d times the value of the labels l, from the start 0.
    """
    total = exact_expectation(Xs, ys, w0=w0, scored=scored, **options)
    nowhere = None
    if scored is not None:
        nowhere = [
            Population(part.covariance, [0] * len(part.point))
            if isinstance(part, Population)
            else (part[0], [0] * len(part[1]))
            for part in scored
        ]
    for m, covariance in enumerate(covariances):
        for share, labels in squares_of(covariance):
            only = [labels if j == m else [0] * len(y) for j, y in enumerate(ys)]
            added = exact_expectation(Xs, only, scored=nowhere, **options)
            total = {
                name: [_plus(a, share, b) for a, b in zip(total[name], added[name], strict=True)] for name in total
            }
    return total


def squares_of(covariance: Any) -> list[tuple[fmpq, list[fmpq]]]:
    """(d_j, l_j) with sum_j d_j l_j l_j^T the covariance; AssertionError if it is none."""
    rest = matrix(covariance)
    size, found = rest.nrows(), []
    while True:
        place = max(range(size), key=lambda i: rest[i, i])
        pivot = rest[place, place]
        if pivot == 0:
            assert rest == fmpq_mat(size, size)
            return found
        assert pivot > 0
        line = [rest[i, place] / pivot for i in range(size)]
        found.append((pivot, line))
        rest = rest - pivot * (column(line) * column(line).transpose())


def _plus(value: Any, share: fmpq, added: Any) -> Any:
    if value is None or added is None:
        return None
    return (
        [a + share * b for a, b in zip(value, added, strict=True)] if isinstance(value, list) else value + share * added
    )


def _distance(solution: fmpq_mat) -> fmpq_mat:
    """H with |u - u*|^2 = v^T H v."""
    size = solution.nrows()
    joint = matrix([[*(int(i == j) for j in range(size)), -solution[i, 0]] for i in range(size)])
    return joint.transpose() * joint


class _Setting:
    """Steps and losses on symmetric matrices written as vectors (i <= j), as numerators over common denominators."""

    def __init__(
        self, arithmetic: Arithmetic, steps: list[fmpq_mat], forms: list[fmpq_mat], distance: fmpq_mat, last: int
    ) -> None:
        self.arithmetic, self.last, self.T = arithmetic, last, len(steps)
        self.size = steps[0].nrows()
        self.pairs = [(i, j) for i in range(self.size) for j in range(i, self.size)]
        self.steps, self.step_den = arithmetic(steps)
        self.raw_forms, self.form_den = arithmetic([*forms, distance])
        self.kind = type(self.steps[0])
        functionals = [self._functional(form) for form in self.raw_forms]
        self.losses, self.distance = functionals[:-1], functionals[-1]

    def _functional(self, form: Any) -> Any:
        """A row with row . vec(V) = trace(form V)."""
        return self.kind(1, len(self.pairs), [form[i, j] if i == j else form[i, j] * 2 for i, j in self.pairs])

    def _congruences(self) -> tuple[list[Any], Any]:
        """The maps vec(V) -> vec(S_m V S_m^T)."""
        count = len(self.pairs)
        maps = []
        for step in self.steps:
            S = step.tolist()
            entries = [
                S[i][a] * S[j][b] if a == b else S[i][a] * S[j][b] + S[i][b] * S[j][a]
                for i, j in self.pairs
                for a, b in self.pairs
            ]
            maps.append(self.kind(count, count, entries))
        return maps, self.step_den**2

    def _start(self) -> Any:
        """vec(v v^T) at u = 0."""
        return self.kind(len(self.pairs), 1, [0] * (len(self.pairs) - 1) + [1])

    def _sum(self, rows: Sequence[Any]) -> Any:
        total = rows[0]
        for row in rows[1:]:
            total = total + row
        return total

    def independent(self, p: list[fmpq]) -> Values:
        maps, den = self._congruences()
        chances, chance_den = self.arithmetic([fmpq_mat(1, 1, [one]) for one in p])
        chance = [one[0, 0] for one in chances]
        weighted = [maps[m] * chance[m] for m in range(self.T)]
        Q = self._sum(weighted)
        next_loss = self._sum([self.losses[m] * chance[m] for m in range(self.T)])
        kept_loss = self._sum([self.losses[m] * weighted[m] for m in range(self.T)])
        growth = den * chance_den
        count, scale = len(self.pairs), fmpz(1)
        V = self._start()
        visited = self.kind(count, self.T)
        curves: Values = {name: [] for name in QUANTITIES}
        regret = learned = 0
        for k in range(self.last + 1):
            bottom = self.form_den * scale
            in_sample = sum((self.losses[m] * visited)[0, m] for m in range(self.T))
            self._note(curves, k, [(row * V)[0, 0] for row in (*self.losses, self.distance)], bottom)
            curves["forgetting"].append((_over(in_sample, bottom) - learned) / k if k else None)
            curves["seen_loss"].append(_over(in_sample, bottom) / k if k else None)
            curves["next_loss"].append(_over((next_loss * V)[0, 0], bottom * chance_den))
            curves["regret"].append(regret / k if k else None)
            if k == self.last:
                break
            regret = regret + curves["next_loss"][-1]
            learned = learned + _over((kept_loss * V)[0, 0], bottom * growth)
            new = [(weighted[m] * V).entries() for m in range(self.T)]
            entries = [new[m][i] for i in range(count) for m in range(self.T)]
            visited = Q * visited + self.kind(count, self.T, entries)
            V, scale = Q * V, scale * growth
        self._settle(curves)
        return curves

    def permutations(self) -> Values:
        maps, den = self._congruences()
        kept = [self.losses[m] * maps[m] for m in range(self.T)]
        T = self.T
        curves: Values = {name: [] for name in QUANTITIES}
        regret = learned = 0
        start, scale = self._start(), fmpz(1)
        k = epoch = 0
        while True:
            layer = {0: start}
            for seen in range(T + 1):
                if seen == T and k < self.last:
                    break  # noted as the start of the next epoch
                orders = comb(T, seen) * factorial(seen)
                bottom = self.form_den * scale * den**seen * orders
                together = self._sum(list(layer.values()))
                self._note(curves, k, [(row * together)[0, 0] for row in (*self.losses, self.distance)], bottom)
                in_sample = 0
                for m in range(T):
                    part = self._sum([V * (epoch + (members >> m & 1)) for members, V in layer.items()])
                    in_sample = in_sample + (self.losses[m] * part)[0, 0]
                curves["forgetting"].append((_over(in_sample, bottom) - learned) / k if k else None)
                curves["seen_loss"].append(_over(in_sample, bottom) / k if k else None)
                curves["regret"].append(regret / k if k else None)
                if seen == T:  # the next epoch may begin with any task
                    curves["next_loss"].append(curves["loss"][-1])
                    self._settle(curves)
                    return curves
                following: dict[int, Any] = {}
                before = after = 0
                for members, V in layer.items():
                    for m in range(T):
                        if members >> m & 1:
                            continue
                        before = before + (self.losses[m] * V)[0, 0]
                        after = after + (kept[m] * V)[0, 0]
                        grown, moved = members | 1 << m, maps[m] * V
                        following[grown] = following[grown] + moved if grown in following else moved
                curves["next_loss"].append(_over(before, bottom * (T - seen)))
                if k == self.last:
                    self._settle(curves)
                    return curves
                regret = regret + curves["next_loss"][-1]
                learned = learned + _over(after, bottom * den * (T - seen))
                layer = following
                k += 1
            (start,) = layer.values()
            scale = scale * den**T * factorial(T)
            epoch += 1

    def explicit(self, sequence: list[int]) -> Values:
        curves: Values = {name: [] for name in QUANTITIES}
        v = self.kind(self.size, 1, [0] * (self.size - 1) + [1])
        visits = [0] * self.T
        regret = learned = 0
        scale = fmpz(1)
        for k in range(self.last + 1):
            bottom = self.form_den * scale**2
            values = [(v.transpose() * form * v)[0, 0] for form in self.raw_forms]
            self._note(curves, k, values, bottom)
            now = curves["task_losses"][-1]
            if k:
                task = sequence[k - 1]
                visits[task] += 1
                learned = learned + now[task]
            in_sample = sum(count * loss for count, loss in zip(visits, now, strict=True))
            curves["forgetting"].append((in_sample - learned) / k if k else None)
            curves["seen_loss"].append(in_sample / k if k else None)
            curves["next_loss"].append(now[sequence[k]] if k < len(sequence) else None)
            curves["regret"].append(regret / k if k else None)
            if k < self.last:
                regret = regret + now[sequence[k]]
                v, scale = self.steps[sequence[k]] * v, scale * self.step_den
        self._settle(curves)
        return curves

    def _note(self, curves: Values, k: int, values: list[Any], bottom: Any) -> None:
        losses = [_over(value, bottom) for value in values[:-1]]
        curves["task_losses"].append(losses)
        curves["loss"].append(sum(losses[1:], losses[0]) / self.T)
        curves["error"].append(_over(values[-1], bottom))

    def _settle(self, curves: Values) -> None:
        """After one step nothing is forgotten, by definition: exactly zero also as a ball."""
        if len(curves["forgetting"]) > 1:
            curves["forgetting"][1] = curves["forgetting"][1] * 0 if self.kind is fmpz_mat else arb(0)
