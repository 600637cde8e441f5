"""Orders by similarity, the greedy pass that ends at random, and the order of Herman and Meyer."""

from itertools import pairwise, permutations
from math import prod

import numpy as np
import pytest

import forgetting as fg
from forgetting.dynamics.space import view_of
from forgetting.errors import InvalidInputError, OrderingError
from forgetting.geometry import principal_angles, solution_cosines
from forgetting.orderings import DissimilarNeighbours, GreedyThenRandom, HermanMeyer, PeripheryFirst, TaskView
from forgetting.orderings.similarity_and_angles import EXACT, _good_path


def order_of(ordering, tasks):
    return ordering.first(view_of(tasks), tasks.num_tasks).tolist()


def along(similarity, path):
    return sum(similarity[a, b] for a, b in pairwise(path))


@pytest.mark.parametrize("by", ["rows", "solutions"])
def test_similarities_are_those_of_projections_and_solutions(by):
    tasks = fg.families.gaussian(T=4, d=5, rank=[1, 2, 2, 3], seed=3)
    pairs = [tasks.task(m) for m in range(4)]
    for i, (X, y) in enumerate(pairs):
        for j, (Z, v) in enumerate(pairs):
            P, Q = np.linalg.pinv(X) @ X, np.linalg.pinv(Z) @ Z
            a, b = np.linalg.pinv(X) @ y, np.linalg.pinv(Z) @ v
            overlap = np.trace(P @ Q) / min(np.trace(P), np.trace(Q))
            expected = overlap if by == "rows" else a @ b / np.linalg.norm(a) / np.linalg.norm(b)
            assert tasks.similarity(by)[i, j] == pytest.approx(expected, abs=1e-12)
    assert tasks.similarity("rows") == pytest.approx(principal_angles(tasks.geometry).overlap)
    assert tasks.similarity("solutions") == pytest.approx(solution_cosines(tasks.geometry))


def test_solutions_of_several_outputs_and_of_kernels_are_compared_as_those_of_the_rows():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((6, 4)), rng.standard_normal((6, 2))
    groups = [0, 0, 1, 1, 2, 2]
    tasks, kernel = fg.RegressionTasks.from_arrays(X, y, groups), fg.KernelTasks(X @ X.T, y, groups)
    assert tasks.similarity("solutions") == pytest.approx(kernel.similarity("solutions"), abs=1e-7)
    w = [np.linalg.pinv(X[m : m + 2]) @ y[m : m + 2] for m in (0, 2, 4)]
    cosine = np.vdot(w[0], w[1]) / np.linalg.norm(w[0]) / np.linalg.norm(w[1])
    assert tasks.similarity("solutions")[0, 1] == pytest.approx(cosine)


@pytest.mark.parametrize("by", ["rows", "solutions"])
def test_the_least_representative_task_comes_first(by):
    tasks = fg.families.gaussian(T=6, d=7, rank=2, seed=1)
    similarity = tasks.similarity(by)
    others = [np.delete(similarity[m], m).mean() for m in range(6)]
    assert order_of(PeripheryFirst(by), tasks) == np.argsort(others).tolist()
    assert order_of(PeripheryFirst(by, repeat=True), tasks) == np.argsort(others).tolist()


@pytest.mark.parametrize("seed", range(3))
def test_neighbours_are_as_dissimilar_as_in_the_best_of_all_orders(seed):
    tasks = fg.families.gaussian(T=6, d=4, rank=1, seed=seed)
    similarity = tasks.similarity("rows")
    best = min(along(similarity, path) for path in permutations(range(6)))
    order = order_of(DissimilarNeighbours(), tasks)
    assert along(similarity, order) == pytest.approx(best, abs=1e-9)
    typical = similarity.sum(axis=1)
    assert typical[order[0]] <= typical[order[-1]] + 1e-9


def test_paths_of_many_tasks_are_near_the_best_and_visit_each_task_once():
    rng = np.random.default_rng(0)
    for size in (8, 10):
        points = rng.standard_normal((size, 3))
        points /= np.linalg.norm(points, axis=1)[:, None]
        similarity = np.round((points @ points.T) ** 2, 12)
        best = DissimilarNeighbours().order(similarity)
        found = _good_path(similarity)
        assert sorted(found) == list(range(size))
        assert along(similarity, found) < along(similarity, best) + 0.1 * size * similarity.mean()
    tasks = fg.families.gaussian(T=EXACT + 8, d=6, rank=1, seed=2)
    order = order_of(DissimilarNeighbours(), tasks)
    similarity = tasks.similarity("rows")
    chance = [along(similarity, rng.permutation(len(order))) for _ in range(200)]
    assert sorted(order) == list(range(len(order)))
    assert along(similarity, order) < 0.5 * min(chance)


def test_ties_and_a_single_task_have_an_order():
    same = fg.families.orthogonal(5)
    assert order_of(PeripheryFirst(), same) == [0, 1, 2, 3, 4]
    assert sorted(order_of(DissimilarNeighbours(), same)) == [0, 1, 2, 3, 4]
    one = fg.families.gaussian(T=1, d=3, rank=1, seed=0)
    assert order_of(PeripheryFirst(), one) == order_of(DissimilarNeighbours(), one) == [0]


def test_an_order_by_similarity_is_the_same_in_every_run_and_has_exact_values():
    tasks = fg.families.gaussian(T=5, d=6, rank=2, seed=0)
    order = order_of(PeripheryFirst(), tasks)
    named, given = (fg.expect(tasks, ordering, 5) for ordering in ("periphery-first", order))
    assert (named.method, float(named.loss)) == ("deterministic", float(given.loss))
    assert (
        fg.run(tasks, "dissimilar-neighbours by=solutions repeat=true", 12).order.tolist()
        == (3 * order_of(DissimilarNeighbours("solutions"), tasks))[:12]
    )
    # in other coordinates, with noise and held-out rows, orders are those of the tasks as they were given
    scheme = fg.schemes.GeneralizedRidge([1e-3, 1e3, 1.0, 1.0, 50.0, 1e-2])
    e = fg.expect(tasks, "periphery-first", 5, scheme=scheme, noise=0.1, test=tasks)
    f = fg.expect(tasks, order, 5, scheme=scheme, noise=0.1, test=tasks)
    assert float(e.values["test_loss"]) == float(f.values["test_loss"])


def test_tasks_without_rows_have_no_order_by_similarity():
    sets = fg.ConvexSets([fg.Ball([0.0], 1.0), fg.Ball([1.0], 1.0)])
    with pytest.raises(OrderingError, match="compares tasks by their rows or solutions"):
        fg.run(sets, "periphery-first", 2)
    with pytest.raises(OrderingError, match="compares tasks"):
        DissimilarNeighbours().first(TaskView(3), 3)
    with pytest.raises(InvalidInputError, match="by"):
        PeripheryFirst(by="columns")


@pytest.mark.parametrize(("part", "greedy"), [(0.0, 0), (0.5, 4), (0.34, 3), (1.0, 7)])
def test_the_hybrid_is_greedy_first_and_random_then(part, greedy):
    tasks = fg.families.gaussian(T=7, d=9, rank=1, seed=4)
    first = fg.run(tasks, fg.orderings.GreedyDistance(repeat=False), 7).order
    orders = np.stack([fg.run(tasks, GreedyThenRandom(part), 7, seed=seed).order for seed in range(200)])
    assert (orders[:, :greedy] == first[:greedy]).all()
    assert (np.sort(orders, axis=1) == np.arange(7)).all()
    rest = np.setdiff1d(np.arange(7), first[:greedy])
    if len(rest) > 1:
        counts = np.array([(orders[:, greedy] == task).sum() for task in rest])
        assert abs(counts - 200 / len(rest)).max() < 6 * np.sqrt(200 / len(rest))
    twice = fg.run(tasks, GreedyThenRandom(part, repeat=True), 14).order.reshape(2, 7)
    assert (np.sort(twice, axis=1) == np.arange(7)).all()


def test_the_hybrid_falls_less_into_the_trap_of_greedy_passes():
    tasks = fg.families.greedy_failure(20)
    trapped = fg.run(tasks, "greedy single pass", tasks.num_tasks).losses[-1]
    hybrid = fg.run_many(tasks, "greedy-then-random", tasks.num_tasks, runs=40).losses[:, -1].mean()
    assert hybrid < 0.5 * trapped


def test_the_order_of_herman_and_meyer_reverses_digits_whose_bases_are_the_prime_factors():
    for T, factors in {12: (2, 2, 3), 30: (2, 3, 5), 49: (7, 7), 13: (13,), 1: (), 90: (2, 3, 3, 5)}.items():
        order = []
        for step in range(T):
            place, task = step, 0
            for i, base in enumerate(factors):
                place, digit = divmod(place, base)
                task += digit * prod(factors[i + 1 :])
            order.append(task)
        assert HermanMeyer().first(TaskView(T), T).tolist() == order
        assert sorted(order) == list(range(T))
    tasks = fg.families.gaussian(T=6, d=6, rank=1, seed=0)
    evaluated = fg.bounds.evaluate(tasks, "herman-meyer", 12)
    assert [row.bound.key for row in evaluated.applicable()] == [
        row.bound.key for row in fg.bounds.evaluate(tasks, "cyclic", 12).applicable()
    ]
    assert float(fg.expect(tasks, "herman-meyer", 12).loss) == float(
        fg.expect(tasks, fg.orderings.Cyclic([0, 3, 1, 4, 2, 5]), 12).loss
    )


@pytest.mark.parametrize(("kind", "by", "low", "high"), [
    ("split", "rows", 0.2, 0.35), ("split", "solutions", 0.75, 0.9), ("rotated", "rows", 0.0, 0.15)
])  # fmt: skip
def test_what_the_exact_losses_of_the_digits_say_of_periphery_first(kind, by, low, high):
    """The share of all 120 orders that lose less: by rows it is a good order, by solutions of the splits a bad one."""
    tasks = fg.datasets.digits(kind)
    losses = [fg.run(tasks, list(order), 5, record_every=5).losses[-1] for order in permutations(range(5))]
    own = fg.run(tasks, PeripheryFirst(by), 5).losses[-1]
    assert low <= np.mean(np.array(losses) < own * (1 - 1e-9)) <= high
