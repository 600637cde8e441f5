"""Bounds against exact expectations, computed here by brute force and by nothing else."""

import math
from itertools import permutations, product

import numpy as np
import pytest

import forgetting as fg
from forgetting.bounds import Setting, evaluate, get

STEPS = (1, 2, 3, 4, 7, 15, 40)


# Exact expectations ---------------------------------------------------------------------------------------------------


def reduced(problem, w0=None):
    """Data matrices and the error at the start, from the tasks themselves."""
    matrices = [problem.task(m)[0] for m in range(problem.num_tasks)]
    stack = np.vstack(matrices)
    start = np.zeros(problem.dim) if w0 is None else w0
    z = start - problem.w_star
    return matrices, np.linalg.pinv(stack) @ (stack @ z)


def moves(matrices, eta=1.0, objective="modified"):
    """I - eta * Hessian of each task's objective, and those Hessians."""
    hessians = [np.linalg.pinv(X) @ X if objective == "modified" else X.T @ X for X in matrices]
    return [np.eye(len(H)) - eta * H for H in hessians], hessians


def iid(problem, p, k, w0=None, eta=1.0, objective="modified"):
    """Everything after k independent draws: W <- sum_m p_m M W M, S_m <- sum_j p_j M_j S_m M_j + p_m M_m W M_m."""
    matrices, z = reduced(problem, w0)
    steps, hessians = moves(matrices, eta, objective)
    losses = [X.T @ X / 2 for X in matrices]
    W = np.outer(z, z)
    visits = [np.zeros_like(W) for _ in matrices]
    mean = sum(q * M for q, M in zip(p, steps, strict=True))
    cross, total = np.zeros_like(W), np.zeros_like(W)  # E s z^T and E s s^T, with s the sum of z before each step
    regret = 0.0
    for _ in range(k):
        regret += sum(q * np.sum(L * W) for q, L in zip(p, losses, strict=True))
        total = total + cross + cross.T + W
        cross = (cross + W) @ mean
        visits = [
            sum(q * M @ S @ M for q, M in zip(p, steps, strict=True)) + p[m] * steps[m] @ W @ steps[m]
            for m, S in enumerate(visits)
        ]
        W = sum(q * M @ W @ M for q, M in zip(p, steps, strict=True))
    return {
        "loss": np.mean([np.sum(L * W) for L in losses]),
        "next_loss": sum(q * np.sum(L * W) for q, L in zip(p, losses, strict=True)),
        "forgetting": sum(np.sum(L * S) for L, S in zip(losses, visits, strict=True)) / k,
        "residual": np.mean([np.sum(np.linalg.pinv(X) @ X * W) / 2 for X in matrices]),
        "objective": sum(q * np.sum(H * W) / 2 for q, H in zip(p, hessians, strict=True)),
        "averaged_objective": sum(q * np.sum(H * total) / 2 for q, H in zip(p, hessians, strict=True)) / k**2,
        "regret": regret / k,
        "error": np.trace(W),
    }


def single_pass(problem, k, eta=1.0, objective="modified"):
    """Everything after k of T tasks in random order, over all permutations."""
    matrices, z0 = reduced(problem)
    steps, hessians = moves(matrices, eta, objective)
    T = len(matrices)
    names = ("loss", "forgetting", "next_loss", "residual", "objective", "averaged_objective", "regret", "error")
    total = dict.fromkeys(names, 0.0)
    orders = list(permutations(range(T), min(k + 1, T)))
    for order in orders:
        z, s = z0, 0.0
        for m in order[:k]:
            s = s + z / k
            total["regret"] += 0.5 * np.sum((matrices[m] @ z) ** 2) / k
            z = steps[m] @ z
        losses = [0.5 * np.sum((X @ z) ** 2) for X in matrices]
        goals = [0.5 * z @ H @ z for H in hessians]
        total["loss"] += np.mean(losses)
        total["forgetting"] += np.mean([losses[m] for m in order[:k]])
        total["next_loss"] += losses[order[k]] if k < T else 0.0
        total["residual"] += np.mean([0.5 * z @ (np.linalg.pinv(X) @ X) @ z for X in matrices])
        total["objective"] += np.mean([goals[m] for m in order])  # the k tasks seen and the next one
        total["averaged_objective"] += np.mean([0.5 * s @ H @ s for H in hessians])
        total["error"] += z @ z
    return {name: value / len(orders) for name, value in total.items()}


def check(rows, measured, skip=()):
    """Every applicable upper bound holds; returns how close the closest one came."""
    worst = {}
    for row in rows:
        if row.applies and row.bound.kind == "upper" and row.quantity not in skip:
            value = measured["averaged_objective" if row.quantity == "averaged_loss" else row.quantity]
            assert value <= row.value * (1 + 1e-9) + 1e-12, (
                f"{row}: measured {value:.6g} at k = {rows.k}, {rows.setting}"
            )
            worst[row.bound.key] = max(worst.get(row.bound.key, 0.0), value / row.value if row.value else 0.0)
    return worst


# Problems -------------------------------------------------------------------------------------------------------------


def random_problem(seed, most=6):
    """Dimension, number of tasks, ranks, norms, conditioning, clones and near-clones all vary."""
    rng = np.random.default_rng(seed)
    d, T = int(rng.integers(1, 8)), int(rng.integers(1, most + 1))
    matrices = []
    for _ in range(T):
        kind = rng.integers(4)
        if kind == 0 and matrices:
            previous = matrices[rng.integers(len(matrices))]
            matrices.append(previous + 10.0 ** -rng.integers(1, 4) * rng.standard_normal(previous.shape))
        elif kind == 1 and matrices:
            matrices.append(matrices[rng.integers(len(matrices))].copy())
        else:
            matrices.append(rng.standard_normal((int(rng.integers(1, d + 1)), d)))
        if rng.random() < 0.3:
            matrices[-1] *= 10.0 ** rng.uniform(-2, 2)
    w_star = rng.standard_normal(d) * 10.0 ** rng.uniform(-1, 1)
    return fg.RegressionTasks(matrices, [X @ w_star for X in matrices])


@pytest.mark.parametrize("block", range(10))
def test_with_replacement_on_random_problems(block):
    for seed in range(20 * block, 20 * block + 20):
        tasks = random_problem(seed)
        k = STEPS[seed % len(STEPS)]
        w0 = np.random.default_rng(seed).standard_normal(tasks.dim) if seed % 3 == 0 else None
        uniform = np.full(tasks.num_tasks, 1 / tasks.num_tasks)
        before = iid(tasks, uniform, k - 1, w0)["loss"] if k > 1 else iid_at_start(tasks, w0)
        rows = evaluate(tasks, fg.orderings.WithReplacement(), k, w0, previous_loss=before)
        check(rows, iid(tasks, uniform, k, w0))


def iid_at_start(tasks, w0):
    matrices, z = reduced(tasks, w0)
    return np.mean([0.5 * np.sum((X @ z) ** 2) for X in matrices])


@pytest.mark.parametrize("block", range(5))
def test_weighted_sampling_on_random_problems(block):
    for seed in range(20 * block, 20 * block + 20):
        tasks = random_problem(seed)
        k = STEPS[seed % len(STEPS)]
        weights = tasks.norms**2 / np.sum(tasks.norms**2)
        check(evaluate(tasks, fg.orderings.NormWeighted(), k), iid(tasks, weights, k))
        weights = np.random.default_rng(seed).random(tasks.num_tasks) ** 3 + 1e-3
        weights /= weights.sum()
        check(evaluate(tasks, fg.orderings.WithReplacement(p=weights), k), iid(tasks, weights, k))


@pytest.mark.parametrize("block", range(5))
def test_without_replacement_on_random_problems(block):
    for seed in range(20 * block, 20 * block + 20):
        tasks = random_problem(seed, most=5)
        k = 1 + seed % tasks.num_tasks
        rows = evaluate(tasks, fg.orderings.WithoutReplacement(), k)
        check(rows, single_pass(tasks, k))


@pytest.mark.parametrize("objective", ["modified", "loss"])
def test_sgd_on_random_problems(objective):
    for seed in range(60):
        tasks = random_problem(seed, most=5)
        rng = np.random.default_rng(seed)
        beta = 1.0 if objective == "modified" else tasks.radius**2
        eta = rng.choice([rng.uniform(0.01, 1.99), 1.0, 1.9999, 1e-3]) / beta
        scheme = fg.schemes.SGD(eta, objective=objective)
        k = STEPS[seed % len(STEPS)]
        uniform = np.full(tasks.num_tasks, 1 / tasks.num_tasks)
        rows = evaluate(tasks, fg.orderings.WithReplacement(), k, scheme=scheme)
        assert rows.tightest("objective").value < math.inf
        # with eta < 1/beta tasks are not solved, and F subtracts what is left; iid() does not
        check(rows, iid(tasks, uniform, k, eta=eta, objective=objective), skip=("forgetting",))
        k = 1 + seed % tasks.num_tasks
        rows = evaluate(tasks, fg.orderings.WithoutReplacement(), k, scheme=scheme)
        check(rows, single_pass(tasks, k, eta=eta, objective=objective), skip=("forgetting",))


def test_cyclic_on_random_problems():
    for seed in range(100):
        tasks = random_problem(seed)
        k = tasks.num_tasks * (1 + seed % 5)
        run = fg.run(tasks, fg.orderings.Cyclic(), k=k)
        rows = evaluate(tasks, fg.orderings.Cyclic(), k)
        check(rows, {"loss": run.losses[-1], "forgetting": run.forgetting[-1], "regret": run.regret[-1],
                     "next_loss": tasks.task_losses(run.iterates[-1])[0],
                     "residual": np.mean(tasks.distances(run.iterates[-1]) ** 2) / 2,
                     "error": np.sum((run.iterates[-1] - tasks.w_star) ** 2)},
              skip=("objective", "averaged_objective"))  # fmt: skip


# Convex sets ----------------------------------------------------------------------------------------------------------


def random_sets(seed):
    """Halfspaces, balls and lines through a common neighbourhood of 0, as projections."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 4))
    sets = []
    for _ in range(int(rng.integers(2, 5))):
        a = rng.standard_normal(d)
        a /= np.linalg.norm(a)
        kind = rng.integers(3)
        if kind == 0:
            sets.append(lambda w, a=a: w - max(a @ w, 0.0) * a)
        elif kind == 1:
            sets.append(lambda w, a=a: a + (w - a) / max(np.linalg.norm(w - a), 1.0))  # touches 0
        else:
            sets.append(lambda w, a=a: (a @ w) * a)
    return sets, rng.standard_normal(d)


def pocs(sets, w0, orders):
    residual = seen = 0.0
    for order in orders:
        w = w0
        for m in order:
            w = sets[m](w)
        half = [0.5 * np.sum((w - project(w)) ** 2) for project in sets]
        residual += np.mean(half)
        seen += np.mean([half[m] for m in order])
    return {"residual": residual / len(orders), "forgetting": seen / len(orders)}


@pytest.mark.parametrize("seed", range(60))
def test_convex_sets_with_and_without_replacement_up_to_the_last_set(seed):
    sets, w0 = random_sets(seed)
    T = len(sets)
    # 0 lies in every set; the nearest common point is at most that far, so |w_0|^2 keeps every bound valid
    setting = Setting(T=T, d=len(w0), dist_sq=w0 @ w0, problem="sets", eta=1.0, beta=1.0)
    for k in range(1, T + 1):
        measured = pocs(sets, w0, list(permutations(range(T), k)))
        reached = check(evaluate(setting, "without replacement", k), measured, skip=("loss", "regret", "objective"))
        assert "thm:pocs-rate/residual/without/corrected" in reached
        assert "cor:pocs_forgetting/forgetting/without/product" in reached
        measured = pocs(sets, w0, list(product(range(T), repeat=k)))
        check(evaluate(setting, "with replacement", k), measured, skip=("loss", "regret", "objective"))


# Tight bounds ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "ratio"), [(100, 0.989), (200, 0.994)])
def test_two_lines_reach_the_parameter_dependent_rate(k, ratio):
    # 1/4 sin^2 (1 + cos)/2 ((1 + cos^2)/2)^(k-1) is largest near sin^2 = 2/k
    best = max(np.linspace(0.5, 2, 2001) * math.sqrt(2 / k), key=lambda theta: two_lines(theta, k))
    tasks = fg.families.two_lines(best)
    measured = iid(tasks, [0.5, 0.5], k)
    assert measured["loss"] == pytest.approx(two_lines(best, k), rel=1e-10)
    rows = evaluate(tasks, fg.orderings.WithReplacement(), k)
    reached = check(rows, measured)
    assert reached["thm:random_convergence_rate/loss"] > ratio
    assert reached["thm:random_convergence_rate/loss/proof"] > ratio
    assert reached["two-lines:random/loss"] == pytest.approx(1, abs=1e-6)
    assert rows.tightest("loss").bound.key == "two-lines:random/loss"
    lower = next(row for row in rows if row.bound.key == "two-lines:random/loss/lower")
    assert lower.value == pytest.approx(measured["loss"], rel=1e-6)


def two_lines(theta, k):
    c = math.cos(theta)
    return 0.25 * math.sin(theta) ** 2 * (1 + c) / 2 * ((1 + c * c) / 2) ** (k - 1)


LOWER = [bound for bound in fg.bounds.all_bounds() if bound.kind == "lower"]
REACHED_BY = {
    "with replacement": (fg.orderings.WithReplacement(),),
    "without replacement": (fg.orderings.WithoutReplacement(),),
    "cyclic": (fg.orderings.Cyclic(),),
    "greedy single pass": (fg.orderings.GreedyDistance(repeat=False), fg.orderings.GreedyResidual(repeat=False)),
}
SIZES = [(2, 2), (2, 4), (4, 2), (4, 3), (4, 4), (4, 16), (6, 5), (6, 72), (10, 10), (40, 7), (40, 40), (6, 200),
         (29, 29), (32, 32), (10, 9)]  # fmt: skip


@pytest.mark.parametrize("bound", LOWER, ids=lambda bound: bound.key)
def test_every_lower_bound_has_tasks_that_reach_it(bound):
    assert bound.instance is not None, f"{bound.key}: give instance=, T tasks on which k steps reach the bound"
    covered = 0
    for T, k in SIZES:
        if (T % 2 and bound.orderings != ("greedy single pass",)) or (k > T and "without" in bound.orderings[0]):
            continue
        tasks = bound.instance(T, k)
        assert tasks.num_tasks == T
        setting = Setting.of(tasks)
        if bound.why_not(setting, k) is not None:
            continue
        covered += 1
        for ordering in REACHED_BY[bound.orderings[0]]:
            reached = float(fg.expect(tasks, ordering, k, quantities=(bound.quantity,)).values[bound.quantity])
            assert reached >= bound.value(setting, k) * (1 - 1e-9)
            assert not bound.tight or reached <= bound.value(setting, k) * (1 + 1e-9)
    assert covered >= 3


def test_random_orders_do_not_fail_where_greedy_orders_do():
    tasks = fg.families.greedy_failure(40)
    T = tasks.num_tasks
    greedy = fg.run(tasks, fg.orderings.GreedyDistance(repeat=False), k=T)
    assert greedy.order.tolist() == list(range(T))
    assert greedy.losses[-1] == pytest.approx(1 / 4 - 1 / (8 * T * (1 - 0.5 ** (1 / T))), rel=1e-9)  # 0.068
    random = [fg.run(tasks, fg.orderings.WithoutReplacement(), k=T, seed=seed).losses[-1] for seed in range(40)]
    assert np.mean(random) == pytest.approx(0.0045, abs=9e-4)


@pytest.mark.parametrize("T", [2, 10, 40, 120])
def test_one_pass_over_cloned_lines_tends_to_the_constant_of_independent_draws(T):
    bound = get("two-lines:single-pass/forgetting/lower")
    tasks = bound.instance(T, T)
    reached = T * float(fg.expect(tasks, fg.orderings.WithoutReplacement(), T).forgetting)
    assert reached == pytest.approx({2: 0.1078, 10: 0.166, 40: 0.179, 120: 0.182}[T], abs=1e-3)
    assert reached == pytest.approx(T * bound.value(Setting.of(tasks), T), rel=0.04)


@pytest.mark.parametrize("seed", range(20))
def test_no_two_tasks_exceed_their_exact_worst_cases(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 7))
    matrices = [rng.standard_normal((int(rng.integers(1, d)), d)) for _ in range(2)]
    if seed % 2:  # nearly equal tasks, and w* in the first
        matrices[1] = matrices[0] + 0.5 * rng.standard_normal(matrices[0].shape)
    w_star = matrices[0].T @ rng.standard_normal(len(matrices[0]))
    tasks = fg.RegressionTasks(matrices, [X @ w_star for X in matrices])
    for k in (1, 2, 3, 9):
        reached = check(evaluate(tasks, fg.orderings.WithReplacement(), k), iid(tasks, [0.5, 0.5], k))
        assert {"two-lines:random/loss", "two-lines:random/forgetting"} <= set(reached)
    for k in (1, 2):
        reached = check(evaluate(tasks, fg.orderings.WithoutReplacement(), k), single_pass(tasks, k))
        assert {"two-lines:single-pass/loss", "two-lines:single-pass/forgetting"} <= set(reached)


def test_two_lines_reach_the_exact_worst_cases_of_one_pass():
    tasks = fg.families.two_lines(math.acos((1 + math.sqrt(41)) / 10))
    reached = check(evaluate(tasks, fg.orderings.WithoutReplacement(), 2), single_pass(tasks, 2))
    for quantity in ("loss", "forgetting"):
        assert reached[f"two-lines:single-pass/{quantity}"] == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("k", [2, 4, 10, 40])
def test_alternating_lines_reach_the_two_task_bound(k):
    tasks = fg.families.two_lines(math.asin(k**-0.5), w_star=(1, 0))
    forgetting = fg.run(tasks, fg.orderings.Explicit([0, 1] * (k // 2)), k=k).forgetting[-1]
    assert forgetting == pytest.approx(get("evron2022:alternating/forgetting").value(Setting(T=2), k), rel=1e-10)


def test_regret_bound_is_an_equality_when_nothing_is_left():
    # every direction is removed once, so the squared distances removed add up to |w*|^2 = 1
    run = fg.run(fg.families.orthogonal(5), fg.orderings.WithoutReplacement(), k=5)
    assert run.regret[-1] == pytest.approx(get("lem:regret_bound/regret").value(Setting(eta=1, beta=1), 5))


# Findings about the paper ---------------------------------------------------------------------------------------------


def test_norm_weighted_forgetting_is_refuted_and_its_correction_holds():
    T, theta, k = 1000, 1.0, 3
    lines = [np.array([[0.0, 1.0]]), np.array([[-np.sin(theta), np.cos(theta)]])]
    w_star = np.array([np.cos(theta / 2), np.sin(theta / 2)])
    pair = fg.RegressionTasks(lines, [X @ w_star for X in lines])
    # the other 998 tasks are clones of the first of norm 1e-6: their weight 1e-12 each, and their loss, are negligible
    tasks = fg.RegressionTasks(
        lines + [1e-6 * lines[0]] * (T - 2), [X @ w_star for X in lines + [1e-6 * lines[0]] * (T - 2)]
    )
    forgetting = iid(pair, [0.5, 0.5], k)["forgetting"]
    setting = Setting.of(tasks, ordering=fg.orderings.NormWeighted())
    assert forgetting == pytest.approx(0.0218, abs=5e-4)
    assert forgetting > 2.5 * get("prop:mean_norm/forgetting").value(setting, k)
    assert forgetting < get("prop:mean_norm/forgetting/corrected/product").value(setting, k)
    row = next(r for r in evaluate(tasks, fg.orderings.NormWeighted(), k) if r.bound.key == "prop:mean_norm/forgetting")
    assert not row.applies
    assert row.why_not.startswith("refuted")
    assert fg.expect(tasks, fg.orderings.NormWeighted(), k).forgetting == pytest.approx(forgetting, rel=1e-6)


def test_mean_norm_loss_is_false_under_uniform_sampling():
    # one task e_1 among T, the others 0: E L = (1 - 1/T)^k / (2T), and Rbar = 1/T
    T, k = 10**4, 5000
    loss = (1 - 1 / T) ** k / (2 * T)
    assert loss > get("prop:mean_norm/loss").value(Setting(T=T, radius_sq_mean=1 / T), k)


@pytest.mark.parametrize("seed", range(40))
def test_parameter_dependent_forgetting_holds_where_its_last_step_fails(seed):
    # d - r below 0.78: most tasks have full rank
    rng = np.random.default_rng(seed)
    d, T = int(rng.integers(2, 5)), int(rng.integers(2, 8))
    low = int(rng.integers(1, max(2, int(0.78 * T)) + 1))
    matrices = [rng.standard_normal((d - 1 if m < low else d, d)) for m in range(T)]
    w_star = rng.standard_normal(d)
    tasks = fg.RegressionTasks(matrices, [X @ w_star for X in matrices])
    setting = Setting.of(tasks)
    if math.sqrt(d - tasks.rank_avg) < 0.883:
        for k in (3, 4, 6, 10, 30):
            exact = iid(tasks, np.full(T, 1 / T), k)["forgetting"]
            assert exact <= get("thm:random_convergence_rate/forgetting").value(setting, k)


def test_small_min_argument_of_the_note():
    # (k - 2) q^(k - 1/2) <= 3 for q <= 0.883^2
    q = 0.883**2
    assert max((k - 2) * q ** (k - 0.5) for k in range(3, 200)) < 1.1


def test_without_replacement_statement_follows_for_every_step_size():
    # min(trivial, (2k+1)/(k+1) product + the term with 1/(2-x)) is below the printed right-hand side
    stated = get("thm:wor_sgd_last_iterate_main/objective")
    product_row = get("thm:sgd_last_iterate_main/objective/product")
    for x in np.linspace(0.01, 1.999, 120):
        for k in {round(2 * 1.25**i) for i in range(90)}:
            s = Setting(T=10**12, eta=x, beta=1.0)
            proved = (2 * k + 1) / (k + 1) * product_row.value(s, k) + 4 * x / ((2 - x) * (k + 1))
            assert min(0.5, proved) < stated.value(s, k)
