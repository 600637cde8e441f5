"""The proofs of docs/one-over-k.md: the library uses the values that were proved, and each line on random tasks.

Lines are computed with dense matrices and enumeration, not with the engines of the library. S_m is the step of task m,
P_m the projection onto its row space.
"""

import cmath
import json
import math
import re
from itertools import pairwise, permutations, product
from pathlib import Path

import numpy as np
import pytest

import forgetting as fg
from effort import rounds
from forgetting.theory.later.rate_constants import C_0, FIRST, fresh

pytest.importorskip("flint")
from tools import prove_rate

ROOT = Path(__file__).parents[2]
PROVED = json.loads((ROOT / "tests" / "theory" / "proved_rates.json").read_text())
PAGE = (ROOT / "docs" / "one-over-k.md").read_text()
TINY = 1e-12
RHO = 16 / 27  # rho(1)


# The values -----------------------------------------------------------------------------------------------------------


def test_the_library_uses_the_values_that_were_proved():
    assert PROVED["sha256"] == prove_rate.digest(PROVED)
    assert [f"{value:.5f}" for value in FIRST] == PROVED["first"]
    assert str(C_0) == PROVED["C_0"]
    for n in (65, 100, 10**4):  # the formula, from the file
        r = n + 1
        formula = float(PROVED["C_0"]) * math.exp(1 / (12 * r)) * (1 + float(PROVED["slope"]) / r)
        assert r * fresh(n) == pytest.approx(formula + float(PROVED["remainder"]), rel=1e-13)


def test_the_formula_decreases_and_stays_below_three_over_four_k():
    numbers = [*range(65, 3000), *(round(10 ** (3.5 + i / 40)) for i in range(101))]
    assert numbers[-1] == 10**6
    assert all(fresh(n) < 3 / (4 * n) for n in range(1, 65))
    assert all(fresh(n) < 3 / (4 * n) for n in numbers)
    assert all(later < earlier for earlier, later in pairwise(map(fresh, [64, *numbers])))
    assert 10**6 * fresh(10**6) == pytest.approx(C_0, rel=1e-5)


def test_some_values_are_proved_again():
    assert 0.5435610 < float(prove_rate.continuous_rate().lower()) < float(PROVED["C_0"])
    for n, how in ((1, "recursion"), (5, "recursion"), (20, "contour")):
        assert prove_rate.proved(n) == (PROVED["first"][n - 1], how)


def test_a_step_that_does_not_hold_stops_the_proof(monkeypatch):
    monkeypatch.setattr(prove_rate, "SLOPE", "3.46")
    with pytest.raises(prove_rate.NotProvedError, match="step 29"):
        prove_rate.small_angles(lambda text: None)
    with pytest.raises(prove_rate.NotProvedError, match="step 25"):
        prove_rate.growth(prove_rate.arb(1) / 2, prove_rate.good_angles(0.3))


@pytest.mark.slow
def test_everything_is_proved_again(monkeypatch, capsys, tmp_path):
    assert prove_rate.main(["--check"]) == 0
    assert "equal to proved_rates.json" in capsys.readouterr().out
    other = tmp_path / "other.json"
    other.write_text(json.dumps(PROVED | {"sha256": "of other values"}))
    monkeypatch.setattr(prove_rate, "FILE", other)
    assert prove_rate.main(["--check"]) == 1


def printed_row(start):
    """The cells of a row of a table of the page, as text."""
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {start} |")]
    return [cell.strip() for cell in line.split("|")[2:-1]]


def test_the_tables_of_the_page():
    for n, value in zip(printed_row("n"), printed_row("(n+1) u(n)"), strict=True):
        assert value == PROVED["first"][int(n) - 1]
    for x, value in zip(printed_row("x"), printed_row("\N{GREEK SMALL LETTER RHO}(x)"), strict=True):
        assert value == f"{radius(float(x)):.4f}"


def test_every_bound_that_is_proved_on_the_page_is_listed_there():
    keys = [bound.key for bound in fg.bounds.all_bounds() if "docs/one-over-k.md" in bound.source]
    assert len(keys) > 12
    assert [key for key in keys if f"| `{key}` |" not in PAGE] == []


def test_the_steps_of_the_page_are_numbered_in_order_and_those_of_the_program_exist():
    numbers = [int(match) for match in re.findall(r"^(\d+)\. ", PAGE, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    named = re.findall(r"steps? (\d+)(?:, (\d+))?(?: and (\d+))?", (ROOT / "tools" / "prove_rate.py").read_text())
    assert {int(number) for match in named for number in match if number} == set(range(14, 31)) - {17, 18, 19}


# Lemma 1 and Theorem A ------------------------------------------------------------------------------------------------


def radius(x):
    """rho(x) of Theorem A."""
    return 16 * math.acos(x / 2) ** 2 / (math.pi**2 * (2 + x))


def random_projections(rng, T, d):
    """Projections, some of them nearly parallel lines, zero or the identity."""
    kind, centre = rng.integers(3), rng.standard_normal((d, 1))
    onto = []
    for _ in range(T):
        rank = rng.integers(0, d + 1) if kind else 1
        spread = rng.standard_normal((d, rank))
        columns = spread if kind else centre + 10.0 ** rng.uniform(-2, 0) * spread
        onto.append(columns @ np.linalg.pinv(columns))
    return onto


def random_steps(rng, T, d, x):
    """Symmetric M_m with eigenvalues from 0 to x, some of them x times a projection."""
    if rng.random() < 0.4:
        return [x * P for P in random_projections(rng, T, d)]
    turned = [np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(T)]
    return [V @ np.diag(x * rng.random(d) ** rng.integers(0, 3, d)) @ V.T for V in turned]


def norm_of_map(apply, adjoint, d, rng, sweeps):
    """The largest |apply(A)|/|A| that power iteration finds; A stays unitary, where the largest values are."""
    start, top = rng.standard_normal((d, d)) + 1j * rng.standard_normal((d, d)), 0.0
    for _ in range(sweeps):
        left, _, right = np.linalg.svd(start)
        u, values, v = np.linalg.svd(apply(left @ right))
        top = max(top, values[0])
        start = adjoint(np.outer(u[:, 0], v[0]))
    return top


def mixed(s, p, steps):
    """A -> s A + (1 - s) sum_m p_m S_m A S_m, and its adjoint."""

    def with_parameter(s):
        return lambda A: s * A + (1 - s) * sum(q * (S @ A @ S) for q, S in zip(p, steps, strict=True))

    return with_parameter(s), with_parameter(s.conjugate())


def boundary(x, rng):
    """A point of the boundary of the region of Lemma 1 (step 3), or inside."""
    angle = math.acos(x / 2) * rng.choice([-1, 1, rng.uniform(-1, 1)], p=[0.4, 0.4, 0.2])
    Z = math.exp(rng.uniform(-3, 3)) * cmath.exp(1j * angle)
    return (Z - 1) ** 2 / (1 + x * Z + Z**2)


@pytest.mark.parametrize("seed", range(rounds(30, 600)))
def test_lemma_1_no_norm_increases(seed):
    rng = np.random.default_rng(seed)
    x, T, d = rng.choice([1.0, rng.uniform(0.02, 1.98)]), rng.integers(1, 4), rng.integers(2, 5)
    steps = [np.eye(d) - M for M in random_steps(rng, T, d, x)]
    s, p = boundary(x, rng), rng.dirichlet(np.ones(T))
    assert abs(s) * abs(1 - s) * x**2 <= 1 - abs(1 - (1 - s) * x) ** 2 + TINY
    assert norm_of_map(*mixed(s, p, steps), d, rng, 12) <= 1 + TINY


def test_lemma_1_holds_on_the_disc_of_radius_one_half_and_on_no_larger_one():
    rng = np.random.default_rng(0)
    steps = [np.diag([1.0, 0.0])]
    for angle in np.linspace(0, math.pi, 7):
        assert norm_of_map(*mixed(0.5 * cmath.exp(1j * angle), [1.0], steps), 2, rng, 50) <= 1 + TINY
    assert max(norm_of_map(*mixed(-0.51 + 0j, [1.0], steps), 2, rng, 50) for _ in range(5)) > 1.0005


def all_orders(law, T, k):
    """Each order of k draws, and its probability: independent draws for weights, else without replacement."""
    if law is None:
        orders = list(permutations(range(T), k))
        return [(order, 1 / len(orders)) for order in orders]
    return [(order, math.prod(law[m] for m in order)) for order in product(range(T), repeat=k)]


def squares(orders, steps, z, k):
    """mu_0, ..., mu_k by enumeration."""
    totals = np.zeros(k + 1)
    for order, chance in orders:
        path = [z]
        for m in order:
            path.append(steps[m] @ path[-1])
        totals += chance * np.array([point @ point for point in path])
    return totals


@pytest.mark.parametrize("seed", range(rounds(20, 400)))
def test_theorem_a_and_its_polynomial(seed):
    rng = np.random.default_rng(seed)
    x, T, d = rng.choice([1.0, rng.uniform(0.02, 1.98)]), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    steps = [np.eye(d) - M for M in random_steps(rng, T, d, x)]
    law = rng.dirichlet(np.ones(T)) if seed % 2 else None
    n = T if law is None else int(rng.integers(1, 5))  # n = k + 1 draws
    z = rng.standard_normal(d)
    z /= np.linalg.norm(z)
    orders = all_orders(law, T, n)
    mu = squares(orders, steps, z, n)

    def f(s):
        total = 0
        for order, chance in orders:
            A = np.eye(d)
            for m in reversed(order):
                A = s * A + (1 - s) * steps[m] @ A @ steps[m]
            total += chance * (z @ A @ z)
        return total

    points = [0.3 + 0.1j, -0.2, boundary(x, rng), boundary(x, rng)]
    for s in points:  # (4)
        expanded = sum(math.comb(n, j) * s ** (n - j) * (1 - s) ** j * mu[j] for j in range(n + 1))
        assert f(s) == pytest.approx(expanded, abs=1e-12)
    assert all(abs(f(s)) <= 1 + TINY for s in points[2:])
    assert f(0.0) == pytest.approx(mu[n], abs=1e-13)
    roots = np.exp(2j * np.pi * np.arange(n + 1) / (n + 1))  # f'(0), exactly, from as many values as f has coefficients
    assert np.mean([f(s) / s for s in roots]) == pytest.approx(n * (mu[n - 1] - mu[n]), abs=1e-11)
    assert mu[n - 1] - mu[n] <= (1 - mu[n] ** 2) / (radius(x) * n) + TINY  # (6)
    if x == 1 and law is not None:
        assert mu[n - 1] - mu[n] <= 2 * (1 - mu[n] ** 2) / n + TINY


def test_the_map_of_the_disc_into_the_region_has_the_stated_slope():
    for x in (0.3, 1.0, 1.7):
        alpha = math.acos(x / 2)

        def s(v, x=x, alpha=alpha):
            t = 2 * alpha / math.pi * cmath.log((1 + v) / (1 - v))
            return 2 * (cmath.cosh(t) - 1) / (x + 2 * cmath.cosh(t))

        assert s(1e-3) / 1e-6 == pytest.approx(radius(x), rel=1e-5)  # (5)
        for angle in np.linspace(0, 2 * math.pi, 20):
            point = s(0.999 * cmath.exp(1j * angle))
            assert abs(point) * abs(1 - point) * x**2 <= 1 - abs(1 - (1 - point) * x) ** 2 + TINY


@pytest.mark.parametrize("seed", range(rounds(15, 300)))
def test_what_follows_without_replacement(seed):
    rng = np.random.default_rng(seed)
    x, T, d = rng.choice([1.0, rng.uniform(0.02, 1.98)]), int(rng.integers(2, 5)), int(rng.integers(2, 4))
    moves = random_projections(rng, T, d) if x == 1 else random_steps(rng, T, d, x)
    steps, z = [np.eye(d) - M for M in moves], rng.standard_normal(d)
    z /= np.linalg.norm(z)
    for k in range(1, T + 1):
        seen, first, second = np.zeros(k), np.zeros(k), np.zeros(k)
        orders = all_orders(None, T, k)
        mu = squares(orders, steps, z, k)
        for order, chance in orders:
            path = [z]
            for m in order:
                path.append(steps[m] @ path[-1])
            for t, m in enumerate(order):
                later = np.eye(d)
                for other in order[t + 1 :]:
                    later = steps[other] @ later
                kept, moved = later @ path[t], later @ moves[m] @ path[t]
                assert np.allclose(kept - moved, path[-1])  # (9) and (13)
                seen[t] += chance * (path[-1] @ moves[m] @ path[-1])
                first[t] += chance * (kept @ moves[m] @ kept)
                second[t] += chance * (moved @ moves[m] @ moved)
        assert np.all(first <= (mu[k - 1] - mu[k]) / (2 - x) + TINY)
        assert np.sum(second) <= x**2 / (2 - x) * (1 - mu[k]) + TINY
        assert np.mean(seen) <= (radius(x) ** -0.5 + x) ** 2 / ((2 - x) * k) + TINY


# Independent draws ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(rounds(20, 400)))
def test_the_lines_on_independent_draws(seed):
    rng = np.random.default_rng(seed)
    T, d = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    onto, p, unit = random_projections(rng, T, d), rng.dirichlet(np.ones(T)), np.eye(d)
    P = sum(q * A for q, A in zip(p, onto, strict=True))
    Q = sum(q * np.kron(unit - A, unit - A) for q, A in zip(p, onto, strict=True))
    K = sum(q * np.kron(A, A) for q, A in zip(p, onto, strict=True))

    def power(B, k, A):
        return (np.linalg.matrix_power(B, k) @ A.ravel()).reshape(d, d)

    def largest(A):
        return float(np.linalg.eigvalsh(A)[-1])

    assert np.allclose(power(Q, 1, unit), unit - P)
    assert np.allclose(power(Q - K, 1, P), P - 2 * P @ P)  # (33): Q_0[A] = A - PA - AP
    for k in range(1, 9):
        visits = sum(power(Q, t - 1, power(K, 1, power(Q, k - t, unit))) for t in range(1, k + 1))
        last = power(Q, k - 1, P)
        assert largest(visits) <= 1 + TINY
        assert largest(visits if k % 2 == 0 else visits - last) <= 0.5 + TINY  # (33) and (34)
        assert np.allclose(power(Q + K, k, unit), unit)
        assert np.allclose(power(Q - K, k, unit), np.linalg.matrix_power(unit - 2 * P, k))
    gap = min(value for value in np.linalg.eigvalsh(P) if value > 1e-9) if P.any() else 0.0
    for k in (1, 2, 3, 6, 20, 70):
        worst = largest(power(Q, k, P))
        assert worst <= fresh(k) + TINY
        assert all(worst <= (1 - gap) ** (k - n) * fresh(n) + TINY for n in range(k + 1))  # (31)


def test_even_visits_reach_one_half():
    orders = all_orders([0.5, 0.5], 2, 2)  # task 0 is everything, task 1 is nothing
    steps, onto = [0.0, 1.0], [1.0, 0.0]
    first = sum(chance * (steps[later] * onto[m]) ** 2 for (m, later), chance in orders)
    second = sum(chance * (onto[m] * steps[earlier]) ** 2 for (earlier, m), chance in orders)
    assert first + second == 0.5


@pytest.mark.parametrize("seed", range(rounds(20, 400)))
def test_lemma_2_and_the_rate_in_continuous_time(seed):
    rng = np.random.default_rng(seed)
    T, d = int(rng.integers(1, 4)), int(rng.integers(2, 4))
    moves, p, unit = random_steps(rng, T, d, 1.0), rng.dirichlet(np.ones(T)), np.eye(d)
    P = sum(q * M for q, M in zip(p, moves, strict=True))
    Q = sum(q * np.kron(unit - M, unit - M) for q, M in zip(p, moves, strict=True))
    values, vectors = np.linalg.eigh(Q)

    def grown(zeta):
        matrix = (vectors * np.exp(zeta * values)) @ vectors.T
        return lambda A: (matrix @ A.ravel()).reshape(d, d)

    zeta = rng.uniform(0.1, 8) * cmath.exp(1j * rng.uniform(-math.pi, math.pi))
    cosine = zeta.real / abs(zeta)
    growth = zeta.real if cosine >= 0.5 else abs(zeta) / (4 * (1 - cosine))
    assert norm_of_map(grown(zeta), grown(zeta.conjugate()), d, rng, 10) <= math.exp(growth) * (1 + TINY)
    r, a = 10 ** rng.uniform(-1, 1.5), rng.uniform(0, 0.95)
    zeta = r * cmath.exp(1j * a)
    bound = float(prove_rate.growth(prove_rate.arb(a), [(a + 1.04) / 2] * 200))
    assert r * np.linalg.norm(continuous(grown, zeta, P), 2) <= bound + TINY
    assert r * np.linalg.norm(continuous(grown, r, P), 2) <= C_0


def continuous(grown, zeta, P):
    """exp(-zeta (1 - Q))[P]."""
    return cmath.exp(-zeta) * grown(zeta)(P)


def test_the_vectors_of_lemma_2():
    for angle in np.linspace(0.2, math.pi, 9):
        w, c = cmath.exp(1j * angle), math.cos(angle)
        D, N = c * (w - 1) / (2 * (1 - c)), 1 / (4 * (1 - c))
        p, q = (D + 0.5, D - 0.5), (w / 2, -w / 2)
        for i, j in product(range(2), repeat=2):
            assert abs(p[i] - q[j]) ** 2 == pytest.approx(2 * (N - c * (i == j == 0)), abs=1e-12)
        assert (p[0] - p[1]).conjugate() * (q[0] - q[1]) == pytest.approx(w)


@pytest.mark.parametrize("T", [2, 7])
def test_the_first_value_is_the_worst_case(T):
    y = 1 / math.sqrt(3)
    lines = np.hstack([np.full((T, 1), math.sqrt(y)), math.sqrt(1 - y) * np.eye(T)])
    rows = [np.linalg.svd(line[None])[2][1:] for line in lines]  # all vectors orthogonal to the line
    tasks = fg.RegressionTasks(rows, [X[:, 0] for X in rows])  # w* = e_0 and w_0 = 0
    reached = 2 * float(fg.expect(tasks, fg.orderings.WithReplacement(), 1).loss)
    worst = 2 / (3 * math.sqrt(3))
    assert reached == pytest.approx((T - 1) / T * worst, rel=1e-10)
    assert worst < fresh(1) < worst + (0.00001 + 1e-9) / 2
    assert reached < fresh(1)


# Convex sets ----------------------------------------------------------------------------------------------------------


def half_space(normal):
    return lambda w: w - max(float(normal @ w), 0.0) * normal


@pytest.mark.parametrize("seed", range(rounds(15, 300)))
def test_the_key_inequality_of_convex_sets(seed):
    rng = np.random.default_rng(seed)
    T, d = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    normals = rng.standard_normal((T, d))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    sets, law = [half_space(normal) for normal in normals], rng.dirichlet(np.ones(T)) if seed % 2 else None
    draws = T if law is None else 4
    w0 = normals.sum(axis=0) if seed % 3 == 0 else rng.standard_normal(d)
    w0 /= np.linalg.norm(w0)
    orders = all_orders(law, T, draws)
    distances, seen, skipped = np.zeros(draws), np.zeros(draws + 1), np.zeros(draws)
    for order, chance in orders:
        w = w0
        for n, m in enumerate(order):
            nearest = sets[m](w)
            distances[n] += chance * np.sum((w - nearest) ** 2)
            w = nearest
            residuals = sum(np.sum((w - sets[i](w)) ** 2) for i in order[: n + 1])
            seen[n + 1] += chance * residuals / (2 * (n + 1))
        for t in range(draws):
            other = w0
            for m in order[:t] + order[t + 1 :]:
                other = sets[m](other)
            skipped[t] += chance * np.sum((w - other) ** 2)
    assert np.sum(distances) <= 1 + TINY
    assert np.sum(skipped) <= np.sum(distances) + TINY  # (43)
    roots = np.sqrt(distances)
    for k in range(1, draws):
        total = sum((n + 1) * (roots[n] - roots[n + 1]) ** 2 for n in range(k))
        assert total <= np.sum(distances[: k + 1]) - distances[k] + TINY  # (40)
        assert distances[k] <= (14 - 3 * math.sqrt(2)) / (4 * math.sqrt(k)) + TINY  # (42)
        if law is not None:
            assert distances[k] <= 2 / math.sqrt(k + 1) + TINY  # (41)
    for k in range(1, draws + 1):
        assert seen[k] <= 0.5 * (roots[k - 1] + 1 / math.sqrt(k)) ** 2 + TINY  # (43)


# The lower bound without replacement ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_the_lower_bound_without_replacement(n):
    gram = np.full((n, n), -1 / (2 * n - 1))
    np.fill_diagonal(gram, 1)
    normals = np.linalg.cholesky(gram)
    start = normals.sum(axis=0)
    start /= np.linalg.norm(start)
    reached = (2 * n) ** (2 * n - 2) / (2 * n - 1) ** (2 * n - 1)
    tasks = fg.RegressionTasks([row[None] for row in normals], [-(row[None] @ start) for row in normals])
    expected = fg.expect(tasks, fg.orderings.WithoutReplacement(), n - 1, quantities=("next_loss",))
    assert 2 * float(expected.next_loss) == pytest.approx(reached, rel=1e-10)
    for order in permutations(range(n)):  # every order, and half-spaces as well
        line = wedge = start
        for m in order[:-1]:
            line = line - (normals[m] @ line) * normals[m]
            wedge = half_space(normals[m])(wedge)
        assert (normals[order[-1]] @ line) ** 2 == pytest.approx(reached, rel=1e-10)
        assert np.allclose(line, wedge)
    assert math.e / 4 > n * reached / 2 > 0.9 * math.e / 4 - 0.1 / n
    assert reached < 1 / (RHO * n)
