"""The exact reference against enumeration of every order, written apart with fractions."""

import itertools
from fractions import Fraction
from math import factorial

import numpy as np
import pytest

pytest.importorskip("flint")

import problems
from condition import condition
from flint import ctx
from rationals import (
    QUANTITIES,
    cyclic,
    enclosed_expectation,
    exact_expectation,
    explicit,
    realizable,
    reshuffled,
    with_replacement,
    without_replacement,
)

from forgetting.schemes import SGD, FiniteSteps, Kaczmarz, Ridge

TASKS = {
    "plain": ([[[1, 2]], [[3, -1]]], [[5], [1]]),
    "zero and clone": ([[[1, 2, 0], [0, 1, 1]], [[0, 0, 0]], [[1, 2, 0], [0, 1, 1]]], [[1, 2], [0], [1, 2]]),
    "dependent rows": ([[[1, 0, 2], [2, 0, 4], [0, 0, 0]], [[0, 1, 1], [1, 1, 3]]], [[3, 6, 0], [1, 4]]),
    "more rows than columns": ([[[1, 2], [3, 4], [4, 6]], [[1, 1]]], [[3, 7, 10], [2]]),
    "tasks that disagree": ([[[1, 2]], [[1, 2]], [[0.5, -1]]], [[5], [1], [0.25]]),
    "a task of its own": ([[[1, 2], [2, 4], [1, 0]], [[1, 1], [0, 0]]], [[5, 1, 2], [3, 7]]),
}
SCHEMES = [Kaczmarz(), SGD(0.75), SGD(0.125, objective="loss"), FiniteSteps(3, 0.0625), Ridge(0.5)]
STARTS = {2: [1.5, -2.0], 3: [1.0, 0.0, -0.75]}


# ------------------------------------------------------------------------------------------------ by fractions alone


def solve(rows, right):
    """Some solution of a consistent linear system, by elimination; free unknowns are 0."""
    table = [[Fraction(x) for x in row] + [Fraction(b)] for row, b in zip(rows, right, strict=True)]
    width, lead, where = len(rows[0]), 0, []
    for j in range(width):
        pivot = next((i for i in range(lead, len(table)) if table[i][j]), None)
        if pivot is None:
            continue
        table[lead], table[pivot] = table[pivot], table[lead]
        table[lead] = [x / table[lead][j] for x in table[lead]]
        for i in range(len(table)):
            if i != lead and table[i][j]:
                factor = table[i][j]
                table[i] = [x - factor * y for x, y in zip(table[i], table[lead], strict=True)]
        where.append(j)
        lead += 1
    assert not any(row[-1] for row in table[lead:])
    x = [Fraction(0)] * width
    for i, j in enumerate(where):
        x[j] = table[i][-1]
    return x


def dot(a, b):
    return sum((Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)), Fraction(0))


def missed(X, y, w):
    return [Fraction(b) - dot(row, w) for row, b in zip(X, y, strict=True)]


def back(X, r):
    """X^T r."""
    return [dot([row[j] for row in X], r) for j in range(len(X[0]))]


def nearest(X, y, w):
    """w + X^T s, the least-squares solution nearest to w: X^T X X^T s = X^T (y - X w)."""
    gram = [[dot(a, b) for b in X] for a in X]
    system = [back(X, row) for row in gram]  # row i: (X^T applied to K[i]) = entries of K X
    normal = [[system[i][j] for i in range(len(X))] for j in range(len(X[0]))]  # X^T K, d x n
    s = solve(normal, back(X, missed(X, y, w)))
    return [a + b for a, b in zip(w, back(X, s), strict=True)]


def learn(X, y, w, scheme):
    if isinstance(scheme, Kaczmarz):
        return nearest(X, y, w)
    if isinstance(scheme, SGD) and scheme.objective == "modified":
        eta = Fraction(scheme.step_size)
        return [a + eta * (b - a) for a, b in zip(w, nearest(X, y, w), strict=True)]
    if isinstance(scheme, Ridge):  # v + lam v' = ..., by the normal equations
        d, lam = len(w), Fraction(scheme.lam)
        system = [[dot([r[i] for r in X], [r[j] for r in X]) + lam * (i == j) for j in range(d)] for i in range(d)]
        return [a + b for a, b in zip(w, solve(system, back(X, missed(X, y, w))), strict=True)]
    steps = scheme.n if isinstance(scheme, FiniteSteps) else 1
    for _ in range(steps):
        w = [a + Fraction(scheme.step_size) * b for a, b in zip(w, back(X, missed(X, y, w)), strict=True)]
    return w


def enumerate_orders(Xs, ys, orders, k, scheme, w0):
    """Every quantity at k as the mean over (order, chance)."""
    T, d = len(Xs), len(Xs[0][0])
    start = [Fraction(0)] * d if w0 is None else [Fraction(x) for x in w0]
    X, y = [row for rows in Xs for row in rows], [b for label in ys for b in label]
    star = nearest(X, y, start)
    total = {name: Fraction(0) for name in QUANTITIES[:-1]}
    tasks = [Fraction(0)] * T

    def losses(w):
        return [dot(r, r) / 2 for r in (missed(X, y, w) for X, y in zip(Xs, ys, strict=True))]

    for order, chance in orders:
        w, before, after = start, [], []
        for m in order[:k]:
            before.append(losses(w)[m])
            w = learn(Xs[m], ys[m], w, scheme)
            after.append(losses(w)[m])
        now = losses(w)
        total["loss"] += chance * sum(now) / T
        if k:
            total["forgetting"] += chance * sum(now[m] - a for m, a in zip(order[:k], after, strict=True)) / k
            total["regret"] += chance * sum(before) / k
            total["seen_loss"] += chance * sum(now[m] for m in order[:k]) / k
        total["next_loss"] += chance * now[order[k]] if k < len(order) else 0
        gap = [a - b for a, b in zip(w, star, strict=True)]
        total["error"] += chance * dot(gap, gap)
        tasks = [a + chance * b for a, b in zip(tasks, now, strict=True)]
    found = {name: [value] for name, value in total.items()}
    if k == 0:
        found["forgetting"] = found["regret"] = found["seen_loss"] = [None]
    if any(len(order) == k for order, _ in orders):  # no task comes next
        found["next_loss"] = [None]
    if any(missed(X, y, star)):
        found["error"] = [None]
    return {**found, "task_losses": [tasks]}


def orders_of(law, T, k):
    """All orders of at least k + 1 tasks, or of all there are."""
    if law.kind == "with_replacement":
        weights = [Fraction(x) for x in law.values or [1] * T]
        for order in itertools.product(range(T), repeat=k + 1):
            chance = Fraction(1)
            for m in order:
                chance *= weights[m] / sum(weights)
            yield order, chance
    elif law.kind in ("without_replacement", "reshuffled"):
        epochs = 1 if law.kind == "without_replacement" else -(-(k + 1) // T)
        for parts in itertools.product(itertools.permutations(range(T)), repeat=epochs):
            yield sum(parts, ()), Fraction(1, factorial(T) ** epochs)
    else:
        yield tuple(t % T for t in range(k + 1)) if law.kind == "cyclic" else law.values, Fraction(1)


def plain(values):
    """Fractions in place of rationals of flint."""

    def one(x):
        return None if x is None else Fraction(int(x.p), int(x.q))

    return {name: [[one(x) for x in v] if isinstance(v, list) else one(v) for v in row] for name, row in values.items()}


# --------------------------------------------------------------------------------------------------------------- tests


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
@pytest.mark.parametrize("name", TASKS)
def test_every_law_equals_the_mean_over_its_orders(name, scheme):
    Xs, ys = TASKS[name]
    T, d = len(Xs), len(Xs[0][0])
    cases = [
        (with_replacement(), None, [0, 1, 3]),
        (with_replacement([2, 0.5, 1][:T]), STARTS[d], [2, 4 if T == 2 else 3]),
        (without_replacement(), STARTS[d], range(T + 1)),
        (reshuffled(), None, [1, T, 4]),
        (cyclic(), STARTS[d], [0, 1, 4]),
        (explicit([1, 0, 1, 1]), None, [1, 2, 4]),
    ]
    for law, w0, ks in cases:
        found = plain(exact_expectation(Xs, ys, law=law, ks=list(ks), scheme=scheme, w0=w0))
        for i, k in enumerate(ks):
            expected = enumerate_orders(Xs, ys, list(orders_of(law, T, k)), k, scheme, w0)
            assert {q: found[q][i : i + 1] for q in QUANTITIES} == expected, (law, k)


def test_a_tuple_is_an_explicit_ordering_and_mean_divides_by_the_rows():
    Xs, ys = TASKS["a task of its own"]  # 3 rows and 2
    once = exact_expectation(Xs, ys, law=(0, 1, 0), ks=[3, 1])["task_losses"]
    mean = exact_expectation(Xs, ys, law=explicit([0, 1, 0]), ks=[3, 1], mean=True)["task_losses"]
    assert all(once[i][m] == count * mean[i][m] > 0 for i in (0, 1) for m, count in ((0, 3), (1, 2)))


def test_only_realizable_problems_have_an_error():
    assert [realizable(*TASKS[name]) for name in TASKS] == [True, True, True, True, False, False]


def test_balls_hold_the_exact_values():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        problem = problems.random_problem(rng)
        question = problems.random_question(rng, problem)
        exact = exact_expectation(problem.Xs, problem.ys, **question.options)
        balls = enclosed_expectation(problem.Xs, problem.ys, **question.options)
        for name in QUANTITIES[:-1]:
            for value, ball in zip(exact[name], balls[name], strict=True):
                assert (value is None) == (ball is None)
                with ctx.workprec(20000):
                    assert value is None or abs(ball.mid() - value) <= ball.rad()


def test_random_problems_are_exact_and_reproducible():
    for seed in range(60):
        problem = problems.random_problem(np.random.default_rng(seed))
        assert problem == problems.random_problem(np.random.default_rng(seed))
        assert realizable(problem.Xs, problem.ys) or "perturbed" in problem.features


def test_conditions_that_are_known():
    # one row x.w = y: L(w_0) = 1/2 y^2 is of degree two in x and in w*; what a redundant row adds follows.
    ask = problems.Question(explicit([0, 0]), (0,), Ridge(1.0), None)
    for Xs, ys in [([[[3.0, 0.0]]], [[6.0]]), ([[[3.0, 0.0], [6.0, 0.0]]], [[6.0, 12.0]])]:
        assert condition(Xs, ys, ask, "loss", 0) == pytest.approx((4, 4), rel=1e-12)
        assert condition(Xs, ys, ask, "loss", 0, labels="free").componentwise == pytest.approx(2, rel=1e-12)
    # |w_2 - w*|^2 = w*^2 (1 / (1 + x^2))^4 for one row in one dimension: 8 x^2 / (1 + x^2) + 2
    assert condition([[[3.0]]], [[6.0]], ask, "error", 2) == pytest.approx((9.2, 9.2), rel=1e-12)
