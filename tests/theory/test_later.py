"""Later sources: the spiral of products of projections, and where reshuffling is worse than independent draws."""

import math
from itertools import permutations, product

import numpy as np
import pytest

import forgetting as fg
from forgetting.claims import Instance, get
from forgetting.theory.definition import DisagreementError, compare
from forgetting.theory.expression import spiral

SPIRAL = "swartworth2023:spiral/forgetting"


def radius(phi, tasks):
    n = tasks + 1
    return (math.cos(math.pi / n) / np.cos((math.pi - phi) / n)) ** n


@pytest.mark.parametrize("tasks", [2, 3, 4, 7])
def test_the_numerical_range_of_a_product_of_projections_lies_within_the_spiral(tasks):
    rng = np.random.default_rng(tasks)
    nearest = 0.0
    for trial in range(60):
        dim, total = int(rng.integers(2, 5)), None
        for step in range(1, tasks + 1):
            basis = np.linalg.qr(rng.standard_normal((dim, int(rng.integers(1, dim)))))[0]
            if trial % 2:  # lines in a plane, turning by equal angles: these reach it
                angle = step * math.pi / (tasks + 1)
                basis = np.array([[math.cos(angle)], [math.sin(angle)], *[[0.0]] * (dim - 2)])
            total = basis @ basis.T if total is None else basis @ basis.T @ total
        for turn in np.linspace(0, 2 * np.pi, 73):
            turned = np.exp(-1j * turn) * total
            x = np.linalg.eigh((turned + turned.conj().T) / 2)[1][:, -1]
            z = x.conj() @ total @ x
            if abs(z) > 1e-9:
                nearest = max(nearest, abs(z) / radius(abs(np.angle(z)), tasks))
    assert nearest <= 1 + 1e-9
    assert nearest > 0.999


@pytest.mark.parametrize(("tasks", "cycles"), [(2, 1), (2, 300), (5, 1), (10, 2), (10, 40), (50, 3), (50, 1000)])
def test_the_maximum_on_the_spiral_is_that_of_all_its_points(tasks, cycles):
    phi = np.concatenate([np.linspace(0, math.pi, 20001), np.geomspace(1e-6, math.pi, 20001)])
    z = radius(phi, tasks) * np.exp(1j * phi)
    values = np.abs(z) ** cycles * np.abs(1 - z)
    assert spiral(tasks, cycles) == pytest.approx(values.max(), rel=1e-6)
    assert spiral(tasks, cycles) >= values.max() * (1 - 1e-12)


def test_the_number_of_the_spiral_is_below_the_dimension_free_branch_of_evron_2022():
    number, branch = (fg.bounds.get(key) for key in (SPIRAL, "evron2022:cyclic/forgetting/universal"))
    for T in (2, 3, 5, 20, 100, 1000):
        for cycles in (1, 2, 5, 30, 1000, 10**5):
            setting = fg.bounds.Setting(T=T)
            assert number.value(setting, T * cycles) < branch.value(setting, T * cycles)
    setting = fg.bounds.Setting(T=100)  # (1 + sqrt(2)) / (2 e) / sin(pi/101) * 99 * 100 / k
    assert number.value(setting, 10**8) == pytest.approx(0.444070 * 32.15448 * 9900 / 1e8, rel=1e-4)


def one_pass(rows, norms, w_star, replaced):
    """The mean loss over all orders of T single rows, T steps, by projections from 0."""
    T, total = len(rows), 0.0
    orders = list(product(range(T), repeat=T) if replaced else permutations(range(T)))
    for order in orders:
        z = -np.array(w_star)
        for m in order:
            z = z - (rows[m] @ z) * rows[m]
        total += sum((norm * row @ z) ** 2 for norm, row in zip(norms, rows, strict=True)) / (2 * T)
    return total / len(orders)


@pytest.mark.parametrize(
    ("norms", "rows", "part", "ratio"),
    [
        ([1.0, 0.1], [[1.0, 0.0], [0.6, 0.8]], "loss", 0.018432 / 0.009472),
        # (2 c^2 + c^4) 81 / (36 (2 + 3 c^2 + c^4)), c^2 = 0.9216
        ([1.0, 1.0, 1.0], [[1.0, 0.0], [1.0, 0.0], [0.96, 0.28]], "loss", 2.69254656 * 81 / (36 * 5.61414656)),
    ],
)
def test_one_pass_without_replacement_can_be_worse_than_independent_draws(norms, rows, part, ratio):
    rows = [np.array(row) for row in rows]
    tasks = fg.RegressionTasks([norm * row[None] for norm, row in zip(norms, rows, strict=True)],
                               [[norm * row @ rows[-1]] for norm, row in zip(norms, rows, strict=True)])  # fmt: skip
    verdict = get("reshuffling", part).check(Instance(tasks, fg.orderings.WithoutReplacement(), len(rows)))
    assert not verdict.holds
    assert verdict.lhs == pytest.approx(one_pass(rows, norms, rows[-1], replaced=False), rel=1e-9)
    assert verdict.rhs == pytest.approx(one_pass(rows, norms, rows[-1], replaced=True), rel=1e-9)
    assert verdict.ratio == pytest.approx(ratio, rel=1e-6)


def test_one_pass_without_replacement_is_worse_on_average_over_the_starts():
    line, beside = np.array([[1.0, 0.0]]), np.array([[math.cos(math.pi / 6), 0.5]])
    tasks = fg.RegressionTasks([line] * 9 + [beside], [[1.0]] * 9 + [beside[:, 0]])
    verdict = get("reshuffling", "distances, mean of starts").check(
        Instance(tasks, fg.orderings.WithoutReplacement(), 10)
    )
    assert verdict.ratio == pytest.approx(1.07014, abs=1e-5)


# Epochs, each in a new random order -----------------------------------------------------------------------------------

EPOCHS = fg.orderings.Reshuffled()


@pytest.mark.parametrize("k", [1, 2])
def test_the_first_epoch_of_reshuffled_sets_is_a_single_pass(k):
    sets = fg.ConvexSets([fg.Halfspace([1.0, 0.0], 1.0), fg.Halfspace([0.6, -0.8], 1.0)])
    claim = get("here:projections", "without replacement")
    epoch, one_pass = (claim.check(Instance(sets, order, k)) for order in (EPOCHS, fg.orderings.WithoutReplacement()))
    assert epoch.lhs == pytest.approx(one_pass.lhs, abs=1e-15)
    assert epoch.how == one_pass.how == "all 2 orders"


@pytest.mark.parametrize(("T", "k"), [(2, 3), (2, 7), (3, 6)])
def test_engines_of_epochs_are_compared_with_all_orders(T, k):
    tasks = fg.families.gaussian(T, 3, 1, seed=T)
    case = Instance(tasks, EPOCHS, k)
    total, count = 0.0, 0
    epochs = [list(permutations(range(T)))] * (k // T) + [list(permutations(range(T), k % T))] * (k % T > 0)
    for parts in product(*epochs):
        z = -tasks.w_star
        for task in (task for part in parts for task in part):
            row = np.asarray(tasks.task(task)[0])[0]
            z = z - row * (row @ z) / (row @ row)
        total, count = total + z @ z, count + 1
    compare(case, k, "error", total / count)
    assert fg.expect(tasks, EPOCHS, k, quantities=("error",)).values["error"] == pytest.approx(total / count, rel=1e-9)
    with pytest.raises(DisagreementError, match="error: computed"):
        compare(case, k, "error", 1.001 * total / count)


def test_the_largest_norm_of_an_epoch_is_that_of_the_worst_order():
    angles, w_star = (0, 0.5, 1.4), np.array([0.3, -0.4])  # |w*|^2 = 1/4; a change of lines costs the cosine
    turned = [np.array([[math.cos(angle), math.sin(angle)]]) for angle in angles]
    tasks = fg.RegressionTasks(turned, [row @ w_star for row in turned])
    verdict = get("han2024:reshuffled").check(Instance(tasks, EPOCHS, 6))
    largest = max(abs(math.cos(b - a) * math.cos(c - b)) for a, b, c in permutations(angles))
    assert verdict.rhs == pytest.approx(largest**4 / 4, rel=1e-9)
    assert "whole epochs" in get("han2024:reshuffled").why_not(Instance(tasks, EPOCHS, 5))
    seven = Instance(fg.families.orthogonal(7), EPOCHS, 7)
    assert get("han2024:reshuffled").why_not(seven) == "is checked for T <= 6"
    assert get("here:epochs", "error").why_not(seven) is None


def test_hunts_of_epochs_stay_with_whole_epochs():
    found = get("here:epochs", "loss").hunt(budget=40, T=3, k=range(5, 14))
    assert found.outcome == "holds"
    assert found.instance.k in (6, 9, 12)
    assert found.checked > 20


def test_small_steps_in_epochs_have_a_rate_with_and_without_noise():
    tasks = fg.RegressionTasks([[[1.0, 0.0]], [[1.0, 0.0]], [[0.0, 1.0]]], [[1.0], [3.0], [0.0]])
    short, long = fg.schemes.SGD(1 / 3, "loss"), fg.schemes.SGD(0.4, "loss")
    rows = {row.bound.key: row for row in fg.bounds.evaluate(tasks, EPOCHS, 30, scheme=short)}
    # w* = (2, 0), f_1' = 1, f_2' = -1: D^2/(eta k) + eta^2 T sigma^2 = 4/10 + 3/9 * 2/3
    assert rows["cai2025:noise/objective"].value == pytest.approx(0.4 + 2 / 9)
    assert rows["cai2025:reshuffled/objective"].why_not.startswith("needs jointly realizable tasks")
    rows = {row.bound.key: row for row in fg.bounds.evaluate(tasks, EPOCHS, 30, scheme=long)}
    assert rows["cai2025:noise/objective"].why_not == "is for steps of order 1/(T beta)"


def test_rates_of_schemes_that_are_not_here_say_so():
    tasks = fg.families.separable(T=2, d=3, n=4, margin=0.5, seed=0)
    rows = [row for row in fg.bounds.evaluate(tasks, "cyclic", 8) if row.bound.label == "jung2025:cyclic"]
    assert {row.why_not for row in rows} == {
        "covers gradient descent on the logistic loss schemes, which no scheme of this library is"
    }
