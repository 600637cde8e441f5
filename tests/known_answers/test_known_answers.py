"""Answers known in closed form, to 1e-12, and what each family of tasks says that it shows."""

from itertools import product

import numpy as np
import pytest

import forgetting as fg
from forgetting.orderings import Cyclic, Explicit, GreedyDistance, NormWeighted, WithoutReplacement, WithReplacement

families = fg.families


def data(tasks):
    pairs = [tasks.task(m) for m in range(tasks.num_tasks)]
    return [X for X, _ in pairs], [y for _, y in pairs]


def over_all_orders(tasks, k, quantity):
    """Mean of a quantity of the run over the T^k equally likely orders with replacement."""
    orders = product(range(tasks.num_tasks), repeat=k)
    return np.mean([quantity(fg.run(tasks, Explicit(order), k)) for order in orders])


# ------------------------------------------------------------------------------------------------------- two lines


@pytest.mark.parametrize("k", [2, 4, 10, 50, 1000])
def test_two_lines_alternating_forget_the_closed_form(k):
    tasks = families.two_lines(np.arcsin(k**-0.5), w_star=(1, 0))
    run = fg.run(tasks, Cyclic(), k)
    assert run.forgetting[-1] == pytest.approx((1 - 1 / k) ** (k - 1) / (4 * k), rel=1e-12)


@pytest.mark.parametrize("theta", [0.1, 0.6, np.pi / 3, 1.5])
@pytest.mark.parametrize("k", [1, 2, 5, 8])
def test_two_lines_average_loss_over_all_orders_is_the_closed_form(theta, k):
    c = np.cos(theta)
    expected = np.sin(theta) ** 2 / 4 * (1 + c) / 2 * ((1 + c**2) / 2) ** (k - 1)
    assert over_all_orders(families.two_lines(theta), k, lambda run: run.losses[-1]) == pytest.approx(
        expected, abs=1e-14
    )


def test_two_lines_worst_angle_at_one_step_gives_4_27():
    # (1 - c^2)(1 + c)/8 is largest at c = 1/3
    loss = over_all_orders(families.two_lines(np.arccos(1 / 3)), 1, lambda run: run.losses[-1])
    assert loss == pytest.approx(4 / 27, abs=1e-14)
    for theta in (np.arccos(1 / 3) - 0.01, np.arccos(1 / 3) + 0.01):
        assert over_all_orders(families.two_lines(theta), 1, lambda run: run.losses[-1]) < 4 / 27


def test_two_lines_meet_in_the_given_solution_with_unit_rows():
    tasks = families.two_lines(0.7, w_star=(0.3, -2.0))
    np.testing.assert_allclose(tasks.w_star, [0.3, -2.0], atol=1e-12)
    np.testing.assert_allclose(tasks.norms, 1, atol=1e-15)
    X = [tasks.task(m)[0] for m in range(2)]
    assert float((X[0] @ X[1].T)[0, 0]) == pytest.approx(np.cos(0.7), abs=1e-15)


# ------------------------------------------------------------------------------------------------------ orthogonal


@pytest.mark.parametrize("d", [1, 2, 5, 12])
def test_orthogonal_tasks_forget_nothing_and_the_loss_is_what_was_not_seen(d):
    tasks = families.orthogonal(d)
    for ordering in (Cyclic(), WithoutReplacement(), GreedyDistance(repeat=False)):
        run = fg.run(tasks, ordering, d)
        assert np.all(run.forgetting == 0)
        # after t distinct tasks, d - t of them have loss 1/2 (1/sqrt d)^2
        np.testing.assert_allclose(run.losses, (d - np.arange(d + 1)) / (2 * d**2), atol=1e-15)
        np.testing.assert_allclose(run.regret, 1 / (2 * d), atol=1e-15)


@pytest.mark.parametrize("d", [2, 3, 4, 5])
def test_orthogonal_tasks_average_over_all_orders_is_the_closed_form(d):
    for k in range(1, 5):
        loss = over_all_orders(families.orthogonal(d), k, lambda run: run.losses[-1])
        assert loss == pytest.approx((1 - 1 / d) ** k / (2 * d), abs=1e-14)
    k = d - 1  # T = d = k + 1
    loss = over_all_orders(families.orthogonal(d), k, lambda run: run.losses[-1])
    assert loss == pytest.approx(k**k / (2 * (k + 1) ** (k + 1)), abs=1e-14)


# ---------------------------------------------------------------------------------------------------- catastrophic


@pytest.mark.parametrize("eps", [1.0, 0.5])
def test_catastrophic_lines_agree_with_the_dense_reference(eps, dynamics):
    tasks = families.catastrophic(eps)
    T = tasks.num_tasks
    run = fg.run(tasks, Cyclic(), T)
    dense = dynamics(*data(tasks), range(T))
    np.testing.assert_allclose(run.iterates, dense.iterates, atol=1e-12)
    np.testing.assert_allclose(run.forgetting, dense.forgetting, atol=1e-12)


def test_catastrophic_forgetting_in_the_given_order_tends_to_one_half():
    ends = []
    for eps in (1.0, 0.5, 0.2, 0.05):
        tasks = families.catastrophic(eps)
        assert tasks.num_tasks == round((72 - 12 * eps) / eps**2 + 1) + round(12 / eps)
        ends.append(fg.run(tasks, Cyclic(), tasks.num_tasks, record_every=tasks.num_tasks).forgetting[-1])
        assert 0.5 * (1 - eps) <= ends[-1] < 0.5
    assert ends == sorted(ends)


def test_catastrophic_lines_are_forgotten_because_of_their_order():
    tasks = families.catastrophic(0.3)
    T = tasks.num_tasks
    given = fg.run(tasks, Cyclic(), T).forgetting[-1]
    shuffled = fg.run_many(tasks, WithoutReplacement(), T, runs=20, record_every=T).forgetting[:, -1]
    assert shuffled.max() < given / 10


# -------------------------------------------------------------------------------------------------- back and forth


@pytest.mark.parametrize("T", [2, 4, 6, 10, 20])
def test_back_and_forth_in_a_cycle_forgets_at_least_the_lower_bound(T):
    least = -(-T * T // 4 // T) + 1
    for cycles in (least, 2 * least, 10 * least, 100 * least):
        k = cycles * T
        tasks = families.back_and_forth(T, 1 / np.sqrt(k - 1))
        forgetting = fg.run(tasks, Cyclic(), k, record_every=k).forgetting[-1]
        assert forgetting >= T**2 / (48 * np.e * k)


def test_back_and_forth_turns_forth_and_then_back_past_the_start():
    tasks = families.back_and_forth(6, 0.1)
    angles = [np.arctan2(-X[0, 0], X[0, 1]) for X in data(tasks)[0]]
    np.testing.assert_allclose(angles, np.array([0, 1, 2, 1, 0, -1]) * 0.1, atol=1e-15)
    np.testing.assert_allclose(tasks.w_star, [1, 0], atol=1e-12)


def test_back_and_forth_forgets_the_sum_over_its_angles():
    # The error stays on the current line and shrinks by cos(theta) a turn; k - 1 turns, and the last line is at -theta.
    T, theta, k = 6, 0.05, 60
    run = fg.run(families.back_and_forth(T, theta), Cyclic(), k)
    away = np.array([0, 1, 2, 1, 0, -1]) + 1
    expected = 0.5 * np.cos(theta) ** (2 * (k - 1)) * np.mean(np.sin(away * theta) ** 2)
    assert run.forgetting[-1] == pytest.approx(expected, rel=1e-12)


# -------------------------------------------------------------------------------------------------- other families


def test_gaussian_tasks_under_a_random_order_stay_far_below_the_worst_case():
    for rank in (1, 3):
        tasks = families.gaussian(T=20, d=60, rank=rank, seed=3)
        runs = fg.run_many(tasks, WithReplacement(), k=100, runs=50)
        worst = 9 * (tasks.dim - tasks.rank_avg) / (2 * 100) * tasks.scale  # Evron 2022, halved to our convention
        assert runs.forgetting[:, -1].mean() < worst / 20


def test_gaussian_tasks_have_the_ranks_norm_and_condition_asked_for():
    tasks = families.gaussian(T=3, d=9, rank=[1, 4, 2], seed=5, condition=50)
    assert tasks.ranks.tolist() == [1, 4, 2]
    singular = np.linalg.svd(tasks.task(1)[0], compute_uv=False)
    np.testing.assert_allclose(singular, np.geomspace(1, 1 / 50, 4), rtol=1e-12)
    full = families.gaussian(T=9, d=4, rank=2, seed=1)
    assert np.linalg.norm(full.w_star) == pytest.approx(1, abs=1e-12)
    assert not np.array_equal(full.task(0)[0], families.gaussian(T=9, d=4, rank=2, seed=2).task(0)[0])


def test_rank_one_tasks_learn_by_normalised_sgd_whatever_the_scheme():
    tasks = families.rank_one(T=7, d=5, seed=2)
    np.testing.assert_allclose(tasks.norms, 1, atol=1e-14)
    w = [np.zeros(5)]
    for m in range(7):
        X, y = tasks.task(m)
        w.append(w[-1] - (X[0] @ w[-1] - y[0]) * X[0])
    for scheme in (
        fg.schemes.Kaczmarz(),
        fg.schemes.NLMS(),
        fg.schemes.GradientDescent(),
        fg.schemes.SGD(1.0, objective="loss"),
    ):
        np.testing.assert_allclose(fg.run(tasks, Cyclic(), 7, scheme=scheme).iterates, w, atol=1e-12)


def test_repeated_tasks_change_nothing_with_replacement_and_cost_nothing():
    tasks = families.two_lines(0.8)
    clones = families.repeated(tasks, 50)
    assert clones.num_tasks == 100
    assert clones.geometry.num_distinct == 2
    for k in (1, 2, 3):  # the law over clones is the law over the two tasks
        few = over_all_orders(tasks, k, lambda run: run.losses[-1])
        many = over_all_orders(families.repeated(tasks, 2), k, lambda run: run.losses[-1])
        assert many == pytest.approx(few, abs=1e-14)


def test_repeated_tasks_without_replacement_are_repetition():
    # A permutation of n clones of two lines is a balanced sequence: after it both lines have been seen n times.
    clones = families.repeated(families.two_lines(0.8), 20)
    run = fg.run(clones, WithoutReplacement(), 40)
    assert np.bincount(run.order % 2).tolist() == [20, 20]
    assert run.losses[-1] < 1e-3 * run.losses[1]
    once = families.two_lines(0.8)
    assert fg.run(once, WithoutReplacement(), 2).losses[-1] > run.losses[-1]


@pytest.mark.parametrize("seed", [None, 4])
def test_principal_angles_are_the_ones_asked_for_and_decide_the_forgetting(seed, dynamics):
    angles = [0.0, 0.4, 1.1, np.pi / 2]
    tasks = families.principal_angles(angles, seed=seed)
    (first, second), labels = data(tasks)
    np.testing.assert_allclose(np.linalg.svd(first @ second.T, compute_uv=False), np.cos(angles), atol=1e-12)
    assert (
        np.linalg.norm(np.linalg.lstsq(np.vstack([first, second]), np.concatenate(labels), rcond=None)[0]) <= 1 + 1e-12
    )
    plain = fg.run(families.principal_angles(angles), Cyclic(), 6)
    run = fg.run(tasks, Cyclic(), 6)
    np.testing.assert_allclose(run.losses, plain.losses, atol=1e-12)
    np.testing.assert_allclose(run.forgetting, dynamics([first, second], labels, run.order).forgetting, atol=1e-12)


def test_principal_angles_zero_and_right_forget_nothing_and_those_between_do():
    assert abs(fg.run(families.principal_angles([0.0, np.pi / 2]), Cyclic(), 8).forgetting).max() < 1e-30
    assert fg.run(families.principal_angles([0.7]), Cyclic(), 2).forgetting[-1] > 1e-3


def test_heterogeneous_norms_leave_the_iterates_alone_and_separate_the_two_radii():
    near = families.heterogeneous_norms(T=5, d=12, rank=2, spread=1.0, seed=1)
    far = families.heterogeneous_norms(T=5, d=12, rank=2, spread=1e6, seed=1)
    assert far.rank_joint == 10
    assert far.radius == pytest.approx(1, rel=1e-12)
    assert far.radius_sq_mean == pytest.approx(np.mean(np.geomspace(1, 1e-6, 5) ** 2), rel=1e-9)
    np.testing.assert_allclose(
        fg.run(far, Cyclic(), 10).iterates, fg.run(near, Cyclic(), 10).iterates, atol=1e-9, rtol=0
    )
    weights = NormWeighted().probabilities(fg.orderings.TaskView(5, far.norms))
    np.testing.assert_allclose(weights, far.norms**2 / np.sum(far.norms**2), rtol=1e-12)


@pytest.mark.parametrize(
    "tasks",
    [
        families.gaussian(4, 3, 1, seed=0),
        families.rank_one(6, 4),
        families.two_lines(0.3),
        families.orthogonal(3),
        families.back_and_forth(4, 0.2),
        families.catastrophic(1.0),
        families.repeated(families.two_lines(0.3), 3),
        families.heterogeneous_norms(5, 4),
    ],
    ids=lambda tasks: repr(tasks),
)
def test_families_are_realizable_with_a_unit_solution(tasks):
    assert tasks.realizability.holds
    assert tasks.realizability.residual < 1e-12
    assert np.linalg.norm(tasks.w_star) == pytest.approx(1, abs=1e-9)
