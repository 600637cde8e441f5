"""Exact expectations against enumeration of every order."""

import itertools

import numpy as np
import pytest

import forgetting as fg
from forgetting.schemes import SGD, FiniteSteps, Kaczmarz, Ridge

ALL = ("loss", "forgetting", "regret", "error", "task_losses", "seen_loss")


def ragged_tasks():
    """Ragged ranks, a clone, a rank-deficient task, a zero task; norms that differ."""
    rng = np.random.default_rng(5)
    w = rng.standard_normal(6)
    first = rng.standard_normal((1, 6))
    second = 3 * rng.standard_normal((2, 6))
    third = rng.standard_normal((1, 6)) * np.array([[1.0], [2.0], [-1.0]])
    matrices = [first, second, third, np.zeros((2, 6)), first.copy()]
    return fg.RegressionTasks(matrices, [X @ w for X in matrices])


def wide_tasks():
    return fg.families.gaussian(T=3, d=4, rank=2, seed=3)  # R = 6 > D = 4: primal moments


def near_tasks():
    return fg.families.two_lines(1e-2)


PROBLEMS = {"ragged": ragged_tasks, "wide": wide_tasks, "near": near_tasks}
SCHEMES = [Kaczmarz(), SGD(0.6), SGD(1.7), SGD(0.05, objective="loss"), FiniteSteps(3, 0.05), Ridge(0.7)]
P = {"ragged": [0.1, 0.3, 0.2, 0.15, 0.25], "wide": [0.5, 0.2, 0.3], "near": [0.3, 0.7]}


def average(tasks, orders, chances, k, scheme, w0):
    """Mean of every quantity over all orders, with the loop doing one order at a time."""
    total = dict.fromkeys(ALL, 0.0)
    target = tasks.nearest_solution(np.zeros(tasks.dim) if w0 is None else w0)
    for order, chance in zip(orders, chances, strict=True):
        run = fg.run(tasks, fg.orderings.Explicit(list(order)), k, scheme=scheme, w0=w0)
        total["loss"] += chance * run.losses[-1]
        total["forgetting"] += chance * run.forgetting[-1]
        total["regret"] += chance * run.regret[-1]
        total["seen_loss"] += chance * np.mean(run.loss_matrix[-1][list(order[:k])])
        total["error"] += chance * np.sum((run.iterates[-1] - target) ** 2)
        total["task_losses"] = total["task_losses"] + chance * run.loss_matrix[-1]
    return total


def check(e, expected, scale):
    for name in ALL:
        np.testing.assert_allclose(e.values[name], expected[name], rtol=1e-12, atol=1e-13 * scale, err_msg=name)


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_with_replacement_equals_the_mean_over_all_sequences(name, scheme, weighted):
    tasks = PROBLEMS[name]()
    k = 4
    p = np.array(P[name]) if weighted else np.full(tasks.num_tasks, 1 / tasks.num_tasks)
    w0 = np.linspace(-1, 1, tasks.dim) if weighted else None
    orders = list(itertools.product(range(tasks.num_tasks), repeat=k))
    expected = average(tasks, orders, [np.prod(p[list(order)]) for order in orders], k, scheme, w0)
    ordering = fg.orderings.WithReplacement(P[name] if weighted else None)
    start = np.zeros(tasks.dim) if w0 is None else w0
    for method in ("moments", "spectral"):
        e = fg.expect(tasks, ordering, k, scheme=scheme, w0=w0, method=method, quantities=ALL)
        check(e, expected, tasks.scale_from(start))
        assert e.method == method


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_without_replacement_equals_the_mean_over_all_arrangements(name, scheme, k):
    tasks = PROBLEMS[name]()
    if k > tasks.num_tasks:
        pytest.skip("fewer tasks than steps")
    orders = list(itertools.permutations(range(tasks.num_tasks), k))
    w0 = np.linspace(-1, 1, tasks.dim)
    expected = average(tasks, orders, [1 / len(orders)] * len(orders), k, scheme, w0)
    e = fg.expect(tasks, fg.orderings.WithoutReplacement(), k, scheme=scheme, w0=w0, quantities=ALL)
    check(e, expected, tasks.scale_from(w0))
    assert e.method == "subsets"


@pytest.mark.parametrize("scheme", [Kaczmarz(), SGD(1.5)], ids=str)
@pytest.mark.parametrize("k", [2, 3, 4, 6, 7])
def test_reshuffled_epochs_equal_the_mean_over_all_pairs_of_permutations(scheme, k):
    tasks = wide_tasks()
    epochs = itertools.product(itertools.permutations(range(3)), repeat=-(-k // 3))
    orders = [sum(epoch, ())[:k] for epoch in epochs]
    expected = average(tasks, orders, [1 / len(orders)] * len(orders), k, scheme, None)
    e = fg.expect(tasks, fg.orderings.Reshuffled(), k, scheme=scheme, quantities=ALL)
    check(e, expected, tasks.scale)
    assert e.method == "subsets"


def test_all_requested_steps_agree_with_asking_one_by_one():
    tasks = wide_tasks()
    for ordering, ks in [
        (fg.orderings.WithReplacement(), [7, 0, 3, 3]),
        (fg.orderings.WithoutReplacement(), [3, 0, 1]),
        (fg.orderings.Reshuffled(), [8, 3, 0, 5]),
        (fg.orderings.Cyclic(), [5, 0, 2]),
    ]:
        together = fg.expect(tasks, ordering, ks, quantities=ALL)
        for i, k in enumerate(ks):
            alone = fg.expect(tasks, ordering, k, quantities=ALL)
            for name in ALL:
                np.testing.assert_allclose(together.values[name][i], alone.values[name], rtol=1e-12)
    assert np.ndim(fg.expect(tasks, fg.orderings.Cyclic(), 2).loss) == 0


def test_a_hundred_clones_of_two_tasks_are_exact_without_replacement():
    # Two lines cloned n times each: compare with the hypergeometric mean over the 2^k label sequences at small k.
    tasks = fg.families.repeated(fg.families.two_lines(0.7), 100)
    k = 6
    pair = fg.families.two_lines(0.7)
    loss = forgetting = 0.0
    for order in itertools.product(range(2), repeat=k):
        left, chance = [100, 100], 1.0
        for task in order:
            chance *= left[task] / sum(left)
            left[task] -= 1
        run = fg.run(pair, fg.orderings.Explicit(order), k)
        loss += chance * run.losses[-1]
        forgetting += chance * run.forgetting[-1]
    e = fg.expect(tasks, fg.orderings.WithoutReplacement(), [k, 200])
    assert e.method == "subsets"
    np.testing.assert_allclose([e.loss[0], e.forgetting[0]], [loss, forgetting], rtol=1e-12)


def test_clones_change_nothing_with_replacement():
    tasks = wide_tasks()
    clones = fg.families.repeated(tasks, 7)
    for method in ("moments", "spectral"):
        a = fg.expect(tasks, fg.orderings.WithReplacement(), [1, 5, 50], method=method)
        b = fg.expect(clones, fg.orderings.WithReplacement(), [1, 5, 50], method=method)
        np.testing.assert_allclose(a.loss, b.loss, rtol=1e-12)
        np.testing.assert_allclose(a.forgetting, b.forgetting, rtol=1e-11)


@pytest.mark.parametrize("seed", range(5))
def test_loss_forgetting_and_next_task_loss_without_replacement(seed):
    # prop:loss_to_forgetting. The next-task loss is the regret increment: E L_tau(k+1)(w_k) = (k+1) r(k+1) - k r(k).
    tasks = fg.families.gaussian(T=7, d=9, rank=[1, 2, 3, 1, 2, 1, 4], seed=seed)
    T = tasks.num_tasks
    e = fg.expect(tasks, fg.orderings.WithoutReplacement(), range(T + 1), quantities=("loss", "forgetting", "regret"))
    for k in range(1, T):
        next_task = (k + 1) * e.regret[k + 1] - (k * e.regret[k])
        assert e.loss[k] == pytest.approx(k / T * e.forgetting[k] + (T - k) / T * next_task, rel=1e-10)
    assert e.loss[T] == pytest.approx(e.forgetting[T], rel=1e-12)


@pytest.mark.parametrize("ordering", [fg.orderings.WithReplacement(), fg.orderings.WithoutReplacement()], ids=str)
def test_summed_next_task_objectives_are_at_most_half_the_squared_distance(ordering):
    # With unit singular values f_m = L_m, and sum_t E f_tau(t)(w_(t-1)) = (|w*|^2 - E|w_k - w*|^2) / 2.
    rng = np.random.default_rng(1)
    matrices = [np.linalg.qr(rng.standard_normal((8, 2)))[0].T for _ in range(6)]
    w = rng.standard_normal(8)
    tasks = fg.RegressionTasks(matrices, [X @ w for X in matrices])
    e = fg.expect(tasks, ordering, [2, 6], quantities=("regret", "error"))
    total = np.array([2, 6]) * e.regret
    dist = float(tasks.w_star @ tasks.w_star)
    np.testing.assert_allclose(total, (dist - e.error) / 2, rtol=1e-11)
    assert np.all(total <= dist / 2)
