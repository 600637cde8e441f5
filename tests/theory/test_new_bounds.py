"""The bounds proved in docs/new-bounds.md: each line of the proofs on random tasks, the cases of equality, crossovers.

Lines are computed with dense matrices and enumeration, not with the engines of the library.
"""

import math
import re
from itertools import pairwise, permutations, product
from pathlib import Path

import numpy as np
import pytest

import forgetting as fg
from effort import rounds
from forgetting.bounds import Setting, crossovers, evaluate, get
from forgetting.tasks.worst_tasks import two_lines_forgetting, two_lines_loss
from forgetting.theory.expression import spectral as g

TINY = 1e-12


def random_tasks(seed, most=4):
    """Matrices that span R^D, some of them zero, with weights and a start z."""
    rng = np.random.default_rng(seed)
    while True:
        d, T = rng.integers(1, most, size=2)
        matrices = [rng.standard_normal((rng.integers(1, d + 1), d)) * 10.0 ** rng.uniform(-1, 1) for _ in range(T)]
        if T > 1 and rng.random() < 0.3:
            matrices[0] = np.zeros((1, d))
        if np.linalg.matrix_rank(np.vstack(matrices)) == d:
            return matrices, rng.dirichlet(np.ones(T)), rng.standard_normal(d), rng


def power(Q, k, A):
    return (np.linalg.matrix_power(Q, k) @ A.ravel()).reshape(A.shape)


def least(A):
    return float(np.linalg.eigvalsh(A)[0])


def test_the_peak_is_the_largest_value_on_the_unit_interval_and_below_one_over_e_n():
    x = np.linspace(0, 1, 100_001)
    for n in (1, 2, 7, 30):
        assert g(n) == pytest.approx(np.max(x**n * (1 - x)), rel=1e-8)
        assert g(n) < 1 / (math.e * n)


@pytest.mark.parametrize("seed", range(40))
def test_each_line_of_the_proof_for_sgd(seed):
    matrices, p, z, rng = random_tasks(seed)
    D = len(z)
    unit, grams = np.eye(D), [X.T @ X for X in matrices]
    beta = max(np.linalg.norm(G, 2) for G in grams)
    x = rng.choice([1.0, 1.9, rng.uniform(0, 2), rng.uniform(1, 2)])
    eta = x / beta
    steps = [unit - eta * G for G in grams]
    H = sum(q * G for q, G in zip(p, grams, strict=True))
    Q = sum(q * np.kron(S, S) for q, S in zip(p, steps, strict=True))
    removed = unit - power(Q, 1, unit)
    assert least(removed - eta * (2 - x) * H) > -TINY  # (1)
    assert np.allclose(Q, Q.T)
    spectrum = np.linalg.eigvalsh(Q)
    assert -max(x - 1, 0) - TINY < spectrum[0] <= spectrum[-1] < 1 + TINY  # (2)
    for k in (1, 2, 3, 8, 30):
        assert least(power(Q, k, removed - eta * (2 - x) * H)) > -TINY  # (3)
        peak = max(g(k), x * max(x - 1, 0) ** k)
        assert np.linalg.norm(power(Q, k, removed)) <= math.sqrt(D) * peak + TINY  # (4)
        twice = power(Q, k, unit - power(Q, 2, unit))
        assert least(twice - power(Q, k, removed)) > -TINY
        assert np.linalg.norm(twice) <= math.sqrt(D) * g(k / 2) + TINY
        setting = Setting(rank_joint=D, dist_sq=z @ z, eta=eta, beta=beta)
        sharper, plain = (get(f"here:sgd/objective{end}").value(setting, k) for end in ("/sharper", ""))
        assert z @ power(Q, k, H) @ z / 2 <= sharper * (1 + TINY)
        assert sharper <= plain


@pytest.mark.parametrize("seed", range(40))
def test_each_line_of_the_proofs_for_projections(seed):
    matrices, p, z, _ = random_tasks(seed)
    T, D = len(matrices), len(z)
    p = (p + 1e-3) / np.sum(p + 1e-3)
    unit, size = np.eye(D), z @ z
    norms = np.array([np.linalg.norm(X, 2) for X in matrices])
    onto = [np.linalg.pinv(X) @ X for X in matrices]
    ranks = [np.linalg.matrix_rank(X) for X in matrices]
    ratio, rank = float(np.max(norms**2 / (T * p))), float(p @ ranks)
    mean = sum(q * P for q, P in zip(p, onto, strict=True))
    Q = sum(q * np.kron(unit - P, unit - P) for q, P in zip(p, onto, strict=True))
    loss = sum(X.T @ X for X in matrices) / T
    assert least(ratio * mean - loss) > -TINY * ratio  # (5)
    assert np.allclose(power(Q, 1, unit), unit - mean, atol=1e-9)  # (6)
    assert np.linalg.norm(unit - mean) <= math.sqrt(max(D - rank, 0)) + 1e-6  # (7)
    known = {"rank_joint": D, "rank_weighted": rank, "weight_ratio": ratio, "dist_sq": size, "radius": norms.max()}
    for k in (1, 2, 5, 20):
        bound = get("here:weights/loss").value(Setting(**known), k)
        assert z @ power(Q, k, loss) @ z / 2 <= bound + 1e-6 * ratio * size
    for k in (2, 3, 4):
        forgetting = next_one = 0.0
        for order in product(range(T), repeat=k):
            path = [z]
            for m in order:
                path.append(path[-1] - onto[m] @ path[-1])
            for t in range(k):
                skipping = z
                for m in order[:t] + order[t + 1 :]:
                    skipping = skipping - onto[m] @ skipping
                moved = np.linalg.norm(path[-1] - skipping)
                assert moved <= np.linalg.norm(onto[order[t]] @ path[t]) + TINY  # (8)
            chance = math.prod(p[m] for m in order)
            forgetting += chance * np.mean([np.sum((matrices[m] @ path[-1]) ** 2) / 2 for m in order])
            next_one += chance * np.sum((onto[order[-1]] @ path[-2]) ** 2)
        assert next_one == pytest.approx(z @ power(Q, k - 1, mean) @ z, abs=1e-9)  # (9)
        sharper, plain = (get(f"here:weights/forgetting{end}").value(Setting(**known), k) for end in ("/sharper", ""))
        half = norms.max() ** 2 / 2
        assert forgetting <= half * (math.sqrt(next_one) + math.sqrt(size / k)) ** 2 + TINY  # (10)
        assert forgetting <= sharper <= plain


@pytest.mark.parametrize("k", [1, 2, 7, 40])
def test_sgd_reaches_its_bound_in_one_dimension(k):
    for x in (0.3, 1.0, 1.7):
        chance = 1 / ((k + 1) * x * (2 - x))
        if chance > 1:
            continue
        tasks = fg.RegressionTasks([[[2.0]], [[0.0]]], [[6.0], [0.0]])
        order, scheme = fg.orderings.WithReplacement([chance, 1 - chance]), fg.schemes.SGD(x / 4, "loss")
        rows = evaluate(tasks, order, k, scheme=scheme)
        row = next(r for r in rows if r.bound.key == "here:sgd/objective" and r.quantity == "objective")
        exact = fg.expect(tasks, order, k, scheme, quantities=("next_loss",)).next_loss
        if g(k) >= x * max(x - 1, 0) ** k:
            assert row.value == pytest.approx(float(exact), rel=1e-10)
        else:
            assert row.value > exact


@pytest.mark.parametrize("k", [1, 2, 7, 40])
def test_projections_reach_their_bound_in_one_dimension(k):
    tasks = fg.RegressionTasks([[[2.0]], [[0.0]]], [[6.0], [0.0]])
    order = fg.orderings.WithReplacement([1 / (k + 1), k / (k + 1)])
    rows = evaluate(tasks, order, k)
    assert rows.setting.rank_weighted == pytest.approx(1 / (k + 1))
    row = next(row for row in rows if row.bound.key == "here:weights/loss")
    assert row.tightest == (k > 1)  # at k = 1 the draws are uniform, and the paper has the same
    assert row.value == pytest.approx(float(fg.expect(tasks, order, k).loss), rel=1e-10)


def test_uniform_draws_give_the_bounds_of_the_proofs_of_the_paper():
    tasks = fg.families.gaussian(T=20, d=100, rank=5, seed=0)
    rows = evaluate(tasks, fg.orderings.WithReplacement(), 300)
    values = {row.bound.key: row.value for row in rows}
    for quantity in ("loss", "forgetting"):
        printed = values[f"thm:random_convergence_rate/{quantity}/proof"]
        assert values[f"here:weights/{quantity}"] == pytest.approx(printed, rel=1e-12)


def test_bounds_on_the_objective_are_bounds_on_the_loss_where_it_is_the_objective():
    tasks = fg.families.gaussian(T=10, d=30, rank=2, seed=0)
    on_loss, modified = fg.schemes.SGD(1 / tasks.radius**2, "loss"), fg.schemes.SGD(0.5)
    rows = evaluate(tasks, fg.orderings.WithReplacement(), 100, scheme=on_loss)
    tightest = rows.tightest("loss")
    assert (tightest.bound, tightest.value) == (rows.tightest("objective").bound, rows.tightest("objective").value)
    assert tightest.value < 0.02 * next(row.value for row in rows if row.bound.key == "trivial/loss")
    assert float(fg.expect(tasks, fg.orderings.WithReplacement(), 100, scheme=on_loss).loss) <= tightest.value
    others = [
        evaluate(tasks, fg.orderings.WithoutReplacement(), 9, scheme=on_loss),
        evaluate(tasks, fg.orderings.WithReplacement(), 100, scheme=modified),
        evaluate(
            fg.RegressionTasks([[[1.0]], [[1.0]]], [[1.0], [2.0]]), "with-replacement", 9, scheme="sgd objective=loss"
        ),
    ]
    assert not any(row.bound.quantity == "objective" and row.quantity == "loss" for other in others for row in other)


@pytest.mark.parametrize("weights", [(5, 1, 1, 3), (1, 1, 1, 1), (1, 2, 0, 3)])
def test_with_weights_the_loss_is_at_most_the_rarest_draw_times_the_objective(weights):
    tasks = fg.families.heterogeneous_norms(T=4, d=6, rank=2, spread=3, seed=1)
    order, scheme = fg.orderings.WithReplacement(weights), fg.schemes.SGD(0.9 / tasks.radius**2, "loss")
    rows = evaluate(tasks, order, 30, scheme=scheme)
    exact = fg.expect(tasks, order, 30, scheme, quantities=("loss", "next_loss"))
    objective, next_loss, loss = (rows.tightest(name) for name in ("objective", "next_loss", "loss"))
    assert float(exact.next_loss) <= next_loss.value == objective.value < 0.2 * rows.setting.trivial("next_loss")
    if min(weights) == 0:
        assert loss.bound.key == "trivial/loss"
        return
    assert float(exact.loss) <= loss.value
    most = objective.value * sum(weights) / (4 * min(weights))
    assert loss.value == pytest.approx(min(most, rows.setting.trivial("loss")), rel=1e-12)


def test_sets_and_classes_have_bounds_for_any_weights():
    weights, order = np.array([0.2, 0.3, 0.5]), fg.orderings.WithReplacement([0.2, 0.3, 0.5])
    rng = np.random.default_rng(0)
    for _ in range(rounds(10, 200)):
        normals = rng.standard_normal((3, 3)) + 1
        sets = fg.ConvexSets([fg.Halfspace(normal, 1.0) for normal in normals])
        residual = seen = 0.0
        for path in product(range(3), repeat=3):
            w = np.zeros(3)
            for task in path:
                w = sets.project(task, w)
            halves = sets.task_losses(w)
            chance = np.prod(weights[list(path)])
            residual, seen = residual + chance * halves.mean(), seen + chance * halves[list(path)].mean()
        rows = evaluate(sets, order, 3)
        values = {row.bound.key: row.value for row in rows if row.applies}
        whole = values["trivial/residual"] * 2
        assert values["here:projections/residual/weights"] == pytest.approx(whole / (3 * 0.2) / 2)  # sqrt(k+1) = 2
        assert residual <= values["here:projections/residual/weights"]
        assert seen <= values["here:classification/forgetting/with"]
    tasks = fg.families.separable(T=3, d=4, n=2, margin=0.1, seed=0)
    assert evaluate(tasks, order, 100).tightest("forgetting").bound.key == "here:classification/forgetting/with"


@pytest.mark.parametrize("x", [0.4, 1.0, 1.6])
def test_a_single_pass_of_sgd_on_the_loss_has_bounds_up_to_its_end(x):
    tasks = fg.families.repeated(fg.families.two_lines(0.3), 20)
    scheme = fg.schemes.SGD(x, "loss")
    for k in (39, 40):
        rows = evaluate(tasks, fg.orderings.WithoutReplacement(), k, scheme=scheme)
        for quantity in ("loss", "forgetting"):
            best = rows.tightest(quantity)
            assert best.bound.label in ("here:single-pass-sgd", "here:single-pass")
            assert float(fg.expect(tasks, fg.orderings.WithoutReplacement(), k, scheme).values[quantity]) <= best.value
    typed = fg.bounds.Setting(T=40, eta=0.1, beta=5, radius=2)
    reasons = {row.bound.key: row.why_not for row in evaluate(typed, "without replacement", 40)}
    assert reasons["here:single-pass-sgd/loss"].startswith("needs beta = R^2")


def test_a_task_that_is_never_drawn_leaves_the_loss_open_and_not_the_forgetting():
    tasks = fg.families.two_lines(0.7)
    rows = {row.bound.key: row for row in evaluate(tasks, fg.orderings.WithReplacement([1, 0]), 5)}
    said = "needs every task to be drawn: task 1 is never drawn, and may keep all of its loss"
    assert rows["here:weights/loss"].why_not == said
    assert rows["here:weights/forgetting"].applies


# Crossovers with the rows of the paper --------------------------------------------------------------------------------


def first_below(new, old, setting, first):
    """The first k from which on the new bound is below the old one, up to far beyond."""
    ks = range(first, 4000)
    above = [k for k in ks if get(new).value(setting, k) >= get(old).value(setting, k)]
    return above[-1] + 1 if above else first


@pytest.mark.parametrize("D", [1, 20, 400, 10**4, 10**6])
@pytest.mark.parametrize("x", [0.5, 1.0])
def test_the_crossover_of_table_3(D, x):
    setting = Setting(rank_joint=D, eta=x, beta=1)
    stated = (math.sqrt(D) / math.e**2) ** (1 / (x * (1 - x / 4)))
    if stated < 2000:
        found = first_below("here:sgd/objective", "thm:sgd_last_iterate_main/objective", setting, 1)
        assert found <= max(1, math.ceil(stated)) <= found + 2


@pytest.mark.parametrize("D", [1, 20, 400, 10**4, 10**6])
def test_the_crossovers_of_table_1(D):
    setting = Setting(rank_joint=D, rank_weighted=0, weight_ratio=1, radius_sq_mean=1)
    loss = first_below("here:weights/loss", "prop:mean_norm/loss", setting, 2)
    assert loss <= max(2, math.ceil((math.sqrt(D) / (4 * math.e)) ** (4 / 3))) <= loss + 2
    forgetting = first_below("here:weights/forgetting", "prop:mean_norm/forgetting/corrected", setting, 2)
    assert forgetting <= max(2, math.ceil(1 + ((math.sqrt(D) / math.e + 1) / 5) ** (4 / 3))) <= forgetting + 2


TEXT = (Path(__file__).parents[2] / "docs" / "new-bounds.md").read_text()
PAGE = " ".join(TEXT.split())


@pytest.mark.parametrize(
    ("new", "old", "first", "sentence"),
    [
        (
            "here:sgd/objective",
            "thm:sgd_last_iterate_main/objective",
            1,
            r"The first such k at x = 1 is (1) for D <= (\d+), (2) for D <= (\d+), and (\d+) for D = 10\^6",
        ),
        (
            "here:weights/loss",
            "prop:mean_norm/loss",
            2,
            r"the first such k is (2), where the proposition begins, for D <= (\d+), and (\d+) for D = 10\^6",
        ),
        (
            "here:weights/forgetting",
            "prop:mean_norm/forgetting/corrected",
            2,
            r"the first such k is (2), where both begin, for D <= (\d+), and (\d+) for D = 10\^6",
        ),
    ],
)
def test_the_crossovers_that_the_page_prints_are_exact(new, old, first, sentence):
    def crossover(D):
        known = {"rank_joint": D, "rank_weighted": 0, "weight_ratio": 1, "radius_sq_mean": 1, "eta": 1, "beta": 1}
        return first_below(new, old, Setting(**known), first)

    *pairs, last = map(int, re.search(sentence, PAGE).groups())
    for k, D in zip(pairs[::2], pairs[1::2], strict=True):
        assert crossover(D) == k < crossover(D + 1)
    assert crossover(10**6) == last


def test_crossovers_see_the_new_bounds():
    found = crossovers(d=10**6, quantities="objective", orderings="i.i.d.", rows="stated")
    assert [(s.first, s.bound.key) for s in found] == [(1, "here:sgd-last-iterate/objective")]
    weighted = crossovers(d=400, rank_weighted=1, weight_ratio=1.0, radius_sq_mean=1.0, orderings="norm-weighted")
    assert weighted.winner("norm-weighted", "loss", 10**6).key == "here:last-iterate/loss/weights"
    assert weighted.winner("norm-weighted", "forgetting", 10**6).key == "here:last-iterate/forgetting"


# Two tasks, and two lines cloned --------------------------------------------------------------------------------------


def test_two_tasks_in_one_pass_reach_their_bound():
    order, c = fg.orderings.WithoutReplacement(), (1 + math.sqrt(41)) / 10
    for k, angle in ((1, math.acos(1 / 3)), (2, math.acos(c))):
        tasks = fg.families.two_lines(angle)
        exact, rows = fg.expect(tasks, order, k), evaluate(tasks, order, k)
        assert rows.tightest("loss").value == pytest.approx(float(exact.loss), rel=1e-12)
        assert rows.tightest("loss").bound.key == "two-lines:single-pass/loss"
    assert rows.tightest("forgetting").value == pytest.approx(float(exact.forgetting), rel=1e-12)
    assert rows.tightest("forgetting").value == pytest.approx(0.0539, abs=5e-5)


@pytest.mark.parametrize(("k", "worst"), [(2, 0.0269), (3, 0.0320), (10, 0.01632)])
def test_the_forgetting_of_two_tasks_reaches_its_bound(k, worst):
    order, bound = fg.orderings.WithReplacement(), get("two-lines:random/forgetting").value(Setting(T=2), k)
    values = [
        fg.expect(fg.families.two_lines(angle), order, k).forgetting for angle in np.arccos(np.linspace(0.6, 0.95, 71))
    ]
    assert max(values) == pytest.approx(worst, rel=3e-3)
    assert max(values) == pytest.approx(bound, rel=1e-3)
    assert max(values) <= bound * (1 + TINY)


@pytest.mark.parametrize(("T", "k"), [(2, 2), (4, 2), (4, 3), (6, 4), (6, 6)])
def test_cloned_lines_without_replacement_exceed_their_lower_bounds(T, k):
    v = (k - 1) * T / (2 * (T - 1))
    u = (1 + 1.5 * (k - 2) + (k - 2) * (k - 3) * (T - 2) / (2 * (T - 3))) / (k - 1)
    sides = [0] * (T // 2) + [1] * (T // 2)
    orders = [[sides[m] for m in order] for order in permutations(range(T), k)]
    switches = np.array([sum(a != b for a, b in pairwise(o)) for o in orders])
    others = np.array([sum(side != o[-1] for side in o) for o in orders])
    assert (switches.mean(), others.mean()) == (pytest.approx(v), pytest.approx(v))
    assert np.mean(switches * others) == pytest.approx(u * v)
    for bound in (get(f"two-lines:single-pass/{quantity}/lower") for quantity in ("loss", "forgetting")):
        exact = fg.expect(bound.instance(T, k), fg.orderings.WithoutReplacement(), k).values[bound.quantity]
        assert 0.84 * float(exact) < bound.value(Setting(T=T), k) <= float(exact) * (1 + TINY)


@pytest.mark.parametrize(("T", "constant"), [(10, 0.166), (40, 0.179), (120, 0.182)])
def test_the_constant_of_one_pass_tends_to_one_over_two_e(T, constant):
    angles = np.arccos(np.sqrt(1 - np.linspace(1.9, 2.3, 9) / (T + 2)))
    order = fg.orderings.WithoutReplacement()
    worst = max(
        float(fg.expect(fg.families.repeated(fg.families.two_lines(angle), T // 2), order, T).forgetting)
        for angle in angles
    )
    assert T * worst == pytest.approx(constant, abs=6e-4)
    low = get("two-lines:single-pass/forgetting/lower")
    assert 0.96 * worst < low.value(Setting(T=T), T) <= worst < 1 / (2 * math.e * T)
    assert 10**6 * low.value(Setting(T=10**6), 10**6) == pytest.approx(1 / (2 * math.e), rel=1e-5)


def printed_row(start):
    """The cells of a row of a table of the page, as text."""
    (line,) = [line for line in TEXT.splitlines() if line.startswith(f"| {start} |")]
    return [cell.strip() for cell in line.split("|")[2:-1]]


def assert_rounds_to(value, printed):
    assert value == pytest.approx(float(printed), abs=0.52 * 10.0 ** -len(printed.partition(".")[2]))


def test_the_table_of_cloned_lines_is_what_the_bound_and_the_engines_give():
    low, order = get("two-lines:single-pass/forgetting/lower"), fg.orderings.WithoutReplacement()
    sizes = [int(cell) for cell in printed_row("T = k")]
    for T, printed in zip(sizes, printed_row("T times the lower bound"), strict=True):
        assert_rounds_to(T * low.value(Setting(T=T), T), printed)
    for T, printed in zip(sizes[:3], printed_row("T E F(T) / S at the worst angle")[:3], strict=True):
        worst = max(
            float(fg.expect(fg.families.repeated(fg.families.two_lines(angle), T // 2), order, T).forgetting)
            for angle in np.arccos(np.sqrt(1 - np.linspace(1.6, 2.4, 33) / (T + 2)))
        )
        assert_rounds_to(T * worst, printed)


def test_the_table_of_two_tasks_is_what_the_closed_forms_give():
    names = "k", "worst loss, \N{SCRIPT SMALL L}_k", "(1 - 1/k) \N{SCRIPT SMALL L}_k", "worst forgetting"
    rows = [printed_row(name) for name in names]
    for k, loss, less, forgetting in zip(*rows, strict=True):
        k = int(k)
        assert_rounds_to(two_lines_loss(k).value, loss)
        assert_rounds_to(two_lines_forgetting(k).value, forgetting)
        if less:
            assert_rounds_to((1 - 1 / k) * two_lines_loss(k).value, less)


# Reshuffled epochs ----------------------------------------------------------------------------------------------------

GOLDEN = (1 + math.sqrt(5)) / 2


def complements_of(matrices):
    return [np.eye(matrix.shape[1]) - np.linalg.pinv(matrix) @ matrix for matrix in matrices]


@pytest.mark.parametrize("seed", range(40))
def test_each_line_of_the_proof_for_epochs(seed):
    matrices, _, z, _ = random_tasks(seed, most=6)
    steps, T, z = complements_of(matrices), len(matrices), z / np.linalg.norm(z)
    onto = [np.eye(len(z)) - S for S in steps]
    mu, learned, unseen, seen, fresh, own = np.zeros((6, T + 1))
    orders = list(permutations(range(T)))
    for order in orders:
        path = [z]
        for task in order:
            path.append(steps[task] @ path[-1])
        for n, now in enumerate(path):
            mu[n] += now @ now / len(orders)
            unseen[n] += sum(now @ onto[m] @ now for m in order[n:]) / len(orders)
            seen[n] += sum(now @ onto[m] @ now for m in order[:n]) / len(orders)
            if n < T:
                learned[n] += now @ onto[order[n]] @ now / len(orders)
            for t, m in enumerate(order[:n]):
                after = np.eye(len(z))
                for other in order[t + 1 : n]:
                    after = steps[other] @ after
                first, second = onto[m] @ after @ path[t], onto[m] @ after @ onto[m] @ path[t]
                assert np.linalg.norm(onto[m] @ now - (first - second)) < 1e-9  # P_t z_n = P_t B u - P_t B P_t u
                fresh[n] += first @ first / len(orders)
                own[n] += second @ second / len(orders)
    d, before = np.append(mu[:-1] - mu[1:], 0), np.insert(mu[:-1] - mu[1:], 0, 0)
    n = np.arange(T + 1)
    assert np.allclose(learned, d)
    assert np.allclose(unseen, (T - n) * d)  # line 18
    assert np.allclose(fresh, n * before)
    assert (own <= 1 - mu + TINY).all()
    assert (unseen + seen <= (T - n) * d + (np.sqrt(n * before) + np.sqrt(np.maximum(1 - mu, 0))) ** 2 + TINY).all()
    assert np.sum(1 - mu) == pytest.approx(np.sum((T - n) * d))  # line 19
    assert abs(GOLDEN**2 - (1 + GOLDEN)) < TINY
    assert abs(GOLDEN - (1 + 1 / GOLDEN)) < TINY
    assert np.sum(unseen + seen) <= GOLDEN**2 * (T + 1) * (1 - mu[-1]) + TINY
    gap = max(least(sum(onto)), 0)  # line 20, T lambda
    assert np.sum(unseen + seen) >= (T + 1) * gap * mu[-1] - TINY
    assert mu[-1] <= 1 / (1 + gap / GOLDEN**2) + TINY


def test_an_epoch_over_two_lines_leaves_what_the_page_says():
    for angle in (1e-2, 1e-3):  # 1 - 5/2 T lambda, with T lambda = 1 - cos
        left = fg.expect(fg.families.two_lines(angle), fg.orderings.Reshuffled(), 2, quantities=("error",))
        exact = math.cos(angle) ** 2 * (1 + math.cos(angle)) / 2
        assert left.values["error"] == pytest.approx(exact, rel=1e-9)
        assert (1 - exact) / (1 - math.cos(angle)) == pytest.approx(2.5, rel=1e-3)


def test_reshuffled_epochs_have_a_guarantee_that_falls_and_single_passes_keep_theirs():
    tasks, order = fg.families.gaussian(T=5, d=6, rank=2, seed=0), fg.orderings.Reshuffled()
    rows = evaluate(tasks, order, [5, 500, 501])
    exact = fg.expect(tasks, order, [5, 500], quantities=("loss", "forgetting", "error"))
    for place, k in enumerate((5, 500)):
        for quantity in ("loss", "forgetting", "error"):
            row = next(row for row in rows.at(k) if row.bound.key == f"here:epochs/{quantity}")
            assert row.applies
            assert float(exact.values[quantity][place]) <= row.value * (1 + TINY)
    assert rows.at(500).tightest("loss").bound.key == "here:epochs/loss"
    one_pass = get("here:single-pass/loss").value(rows.setting, 5)
    assert get("here:epochs/loss").value(rows.setting, 5) == pytest.approx(one_pass)
    assert rows.at(501).tightest("error").value == rows.at(500).tightest("error").value
    why = next(row.why_not for row in rows.at(501) if row.bound.key == "here:epochs/loss")
    assert why == "k = 501, but the bound covers k >= 1, a multiple of T"
    named = evaluate(rows.setting, "reshuffled", 500)
    assert named.tightest("loss").value == rows.at(500).tightest("loss").value


# Many problems, each with its worst w* --------------------------------------------------------------------------------


def tasks_at_random(rng, many, T, D):
    """Data of `many` problems as (many, T, D, D): any ranks, conditioning and norms; zero and nearly parallel tasks."""
    rows = rng.standard_normal((many, T, D, D))
    near = 10.0 ** rng.uniform(-3, 1, (many, 1, 1, 1))
    rows = np.where(rng.random((many, 1, 1, 1)) < 0.5, rows, rows[:, :1] + near * rows)
    ranks = rng.integers(0, D + 1, (many, T))
    ranks = np.where(rng.random((many, 1)) < 0.5, np.minimum(ranks, 1), ranks)
    rows *= np.arange(D)[:, None] < ranks[..., None, None]
    left, sigma, right = np.linalg.svd(rows)
    sigma = np.where(rng.random((many, 1, 1)) < 0.5, (sigma > 1e-9) * 1.0, sigma)
    sigma = sigma * 10.0 ** rng.uniform(-2, 0, (many, T, 1)) ** rng.integers(0, 2, (many, 1, 1))
    return left * sigma[..., None, :] @ right, right, sigma > 0


def quadratic_forms(steps, G, p, last):
    """For k = 1, 2, ...: Q^k[G_m] for all m, as columns, and U_k with E F(k) = <z, U_k z>/(2k), for each problem.

    U_k = sum_(t<=k) Q^(t-1)[W_(k-t)] with W_j = sum_m p_m S_m Q^j[G_m] S_m, so U_k = Q[U_(k-1)] + W_(k-1).
    """
    many, T, D, _ = G.shape
    Q = np.einsum("bm,bmij,bmkl->bikjl", p, steps, steps).reshape(many, D * D, D * D)
    seen, learned = G.reshape(many, T, D * D).swapaxes(1, 2), np.zeros((many, D * D, 1))
    for k in range(1, last + 1):
        turned = steps @ seen.swapaxes(1, 2).reshape(G.shape) @ steps
        learned = Q @ learned + np.einsum("bm,bmij->bij", p, turned).reshape(many, D * D, 1)
        seen = Q @ seen
        yield k, seen, learned


def worst_ratios(problems, seed, ks=(1, 2, 3, 4, 6, 9, 15, 30, 60)):
    """The largest ratio of each new bound, each problem with its worst w*: that of the largest eigenvalue."""
    rng, worst, done = np.random.default_rng(seed), {}, 0

    def top(A):
        return np.linalg.eigvalsh(A.reshape(len(A), D, D))[:, -1]

    def note(name, left, right):
        ratio = np.divide(left, right, out=np.zeros_like(left), where=right > 1e-9)
        worst[name] = max(worst.get(name, 0.0), float(ratio.max()))

    while done < problems:
        T, D = int(rng.integers(1, 5)), int(rng.integers(1, 5))
        X, right, used = tasks_at_random(rng, 1000, T, D)
        G, P = X.swapaxes(-1, -2) @ X, right.swapaxes(-1, -2) @ (used[..., None] * right)
        norms = np.linalg.norm(X, 2, axis=(-2, -1)) ** 2
        p = np.maximum(rng.dirichlet(np.full(T, 0.5), 1000), 1e-6)
        keep = np.all(np.linalg.eigvalsh(P.sum(1)) > 1e-9, axis=1)  # tasks that span R^D
        if not keep.any():
            continue
        G, P, norms, p, ranks = G[keep], P[keep], norms[keep], p[keep], used[keep].sum(-1)
        done += len(G)
        p /= p.sum(1, keepdims=True)
        beta, x = norms.max(1), rng.choice([1.0, 1.9, 0.1, *rng.uniform(0, 2, 3)], len(G))
        ratio, gap = np.max(norms / p, 1) / T, np.sqrt(np.maximum(D - np.sum(p * ranks, 1), 0))
        for k, seen, _ in quadratic_forms(np.eye(D) - (x / beta)[:, None, None, None] * G, G, p, max(ks)):
            if k in ks:
                left, factor = top(seen @ p[..., None]) / beta, math.sqrt(D) / (x * (2 - x))
                peak = np.maximum(g(k), x * np.maximum(x - 1, 0) ** k)
                note("sgd", left, factor * peak)
                note("sgd, sharper", left, factor * np.minimum(peak, g(k / 2)))
                note("sgd, g(k) alone", left, factor * g(k))
        for k, seen, learned in quadratic_forms(np.eye(D) - P, G, p, max(ks)):
            if k in ks:
                note("loss", top(seen.mean(-1)) / ratio, np.minimum(gap * g(k - 1), math.sqrt(D) * g(k)))
            if k in ks and k > 1:
                fresh, forgotten = np.minimum(gap * g(k - 2), math.sqrt(D) * g(k - 1)), top(learned) / (2 * k * beta)
                note("forgetting", forgotten, fresh + 1 / k)
                note("forgetting, sharper", forgotten, (np.sqrt(fresh) + math.sqrt(1 / k)) ** 2 / 2)
                note("k E F(k) / S", forgotten, np.full_like(forgotten, 1 / k))
                note("forgetting, first term alone", forgotten, fresh)
    return worst, done


def test_the_quadratic_forms_are_the_expectations():
    rng = np.random.default_rng(5)
    X = tasks_at_random(rng, 1, 3, 3)[0]
    tasks = fg.RegressionTasks(list(X[0]), list(X[0] @ rng.standard_normal(3)))
    G, P = X.swapaxes(-1, -2) @ X, np.linalg.pinv(X[0]) @ X[0]
    p, z = np.array([[0.2, 0.5, 0.3]]), tasks.w_star
    for k, seen, learned in quadratic_forms(np.eye(3) - P[None], G, p, 6):
        exact = fg.expect(tasks, fg.orderings.WithReplacement(p[0]), k)
        assert z @ seen.mean(-1).reshape(3, 3) @ z / 2 == pytest.approx(float(exact.loss), rel=1e-8)
        assert z @ learned.reshape(3, 3) @ z / (2 * k) == pytest.approx(float(exact.forgetting), rel=1e-8, abs=1e-15)


RATIOS = {
    "`here:sgd/objective`, its sharper form, and g(k) alone": ("sgd", "sgd, sharper", "sgd, g(k) alone"),
    "`here:weights/loss`": ("loss",),
    "`here:weights/forgetting`": ("forgetting",),
    "`here:weights/forgetting/sharper`, without its third term": ("forgetting, sharper",),
    "S/k, in place of the bound on forgetting": ("k E F(k) / S",),
    "its first term alone, in place of the bound on forgetting": ("forgetting, first term alone",),
}


@pytest.mark.parametrize("problems", [2000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_no_problem_exceeds_a_new_bound(problems):
    worst, done = worst_ratios(problems, seed=0)
    assert done >= problems
    assert all(0.1 < ratio <= 1 + 1e-7 for ratio in worst.values()), worst
    assert worst["sgd"] > 0.99  # and g(k) alone was always enough
    assert worst["loss"] > 0.95
    assert worst["k E F(k) / S"] < 0.2  # so the first term of the bound on forgetting was never needed
    assert worst["forgetting, first term alone"] < 0.5  # nor was the second
    assert {name for names in RATIOS.values() for name in names} == set(worst)
    for row, names in RATIOS.items():
        printed = re.search(re.escape(f"| {row} |") + r" ([^|]*) \|", PAGE)[1]
        number = float(printed.removeprefix("1 - "))
        close = (
            (1 - 1.3 * number, 1 - 0.7 * number) if printed.startswith("1 -") else (number - 5.1e-4, number + 5.1e-4)
        )
        for name in names:
            assert worst[name] <= close[1]
            assert worst[name] >= close[0] or problems < 100_000
    assert f"{done:,} random problems" in PAGE or problems < 100_000


def map_of_epochs(P):
    """A -> the mean over all orders of S^T A S, S the steps of an epoch, as a matrix, for each problem."""
    many, T, D, _ = P.shape
    Q = np.zeros((many, D * D, D * D))
    for order in permutations(range(T)):
        end = np.broadcast_to(np.eye(D), (many, D, D))
        for task in order:
            end = end - P[:, task] @ end
        Q += np.einsum("bij,bkl->bjlik", end, end).reshape(many, D * D, D * D) / math.factorial(T)
    return Q


def test_the_map_of_epochs_gives_the_expectations():
    tasks = fg.families.gaussian(T=3, d=3, rank=1, seed=4)
    X, z = np.array([tasks.task(m)[0] for m in range(3)]), tasks.w_star
    Q = map_of_epochs((np.linalg.pinv(X) @ X)[None])[0]
    exact = fg.expect(tasks, fg.orderings.Reshuffled(), 6, quantities=("error", "loss"))
    loss = np.mean(X.swapaxes(-1, -2) @ X, axis=0) / 2
    assert z @ power(Q, 2, np.eye(3)) @ z == pytest.approx(float(exact.values["error"]), rel=1e-8)
    assert z @ power(Q, 2, loss) @ z == pytest.approx(float(exact.loss), rel=1e-8)


def worst_ratios_of_epochs(problems, seed, epochs=(1, 2, 3, 5, 10, 30, 100)):
    """The largest ratio of each bound on epochs, each problem with its worst w*, and T lambda mu_T / (1 - mu_T)."""
    rng, worst, done = np.random.default_rng(seed), {}, 0

    def top(A):
        return np.linalg.eigvalsh((A + A.swapaxes(-1, -2)) / 2)[:, -1]

    def note(name, left, right):
        ratio = np.divide(left, right, out=np.zeros_like(left), where=right > 1e-9)
        worst[name] = max(worst.get(name, 0.0), float(ratio.max()))

    while done < problems:
        T, D = int(rng.integers(1, 5)), int(rng.integers(1, 5))
        X, right, used = tasks_at_random(rng, 1000, T, D)
        G, P = X.swapaxes(-1, -2) @ X, right.swapaxes(-1, -2) @ (used[..., None] * right)
        gap = T * np.linalg.eigvalsh(P.mean(1))[:, 0]
        keep = gap > 1e-9  # tasks that span R^D
        if not keep.any():
            continue
        G, P, gap = G[keep], P[keep], gap[keep]
        done += len(G)
        R_sq = np.linalg.norm(X[keep], 2, axis=(-2, -1)).max(1) ** 2
        Q, growth = map_of_epochs(P), 1 + gap / GOLDEN**2
        size, loss, last = np.tile(np.eye(D).ravel(), (len(G), 1)), G.mean(1).reshape(len(G), -1) / 2, 0
        for J in epochs:
            power = np.linalg.matrix_power(Q, J - last)
            size, loss, last = (power @ size[..., None])[..., 0], (power @ loss[..., None])[..., 0], J
            left = top(size.reshape(-1, D, D))
            note("error", left, growth**-J)
            note(
                "loss", top(loss.reshape(-1, D, D)) / R_sq, (1 + math.sqrt(27 / 16)) ** 2 / (2 * T) * growth ** (1 - J)
            )
            if J == 1:
                note("epoch", gap * left, 1 - left)
    return worst, done


@pytest.mark.parametrize("problems", [3000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_no_problem_exceeds_a_bound_on_epochs(problems):
    worst, done = worst_ratios_of_epochs(problems, seed=0)
    assert done >= problems
    assert all(0.01 < ratio <= 1 + 1e-7 for ratio in worst.values()), worst
    printed = {
        "epoch": re.search(r"\\mu_T / \(1 - \\mu_T\)\$ was at most ([\d.]+)", PAGE),
        "loss": re.search(r"\| `here:epochs/loss` \| ([\d.]+) \|", PAGE),
    }
    for name, found in printed.items():
        assert float(found[1]) - 5.1e-4 <= worst[name] <= float(found[1]) + 5.1e-4 or problems < 100_000
        assert worst[name] <= float(found[1]) + 5.1e-4
    assert f"{done:,} random problems" in PAGE or problems < 100_000
