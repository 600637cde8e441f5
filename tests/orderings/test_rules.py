"""Rules of Kaczmarz packages: given cycles, draws without repetition, by distance, relaxed greedy, and quantiles."""

from itertools import islice, pairwise, product

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import InvalidInputError, OrderingError
from forgetting.orderings import (
    Cyclic,
    Explicit,
    GreedyDistance,
    NonRepetitive,
    Quantile,
    RelaxedGreedy,
    Steinerberger,
    TaskView,
    laws,
)

TASKS = fg.families.gaussian(T=4, d=6, rank=1, seed=0)


def view(distances, norms=None):
    distances = np.asarray(distances, dtype=float)
    return TaskView(len(distances), norms, lambda: distances)


def rows(X, y):
    return fg.RegressionTasks([x[None] for x in X], np.asarray(y)[:, None])


# ------------------------------------------------------------------------------------------------------------ Cyclic


def test_a_given_cycle_is_repeated_and_the_plain_one_is_what_it_was():
    assert Cyclic([2, 0, 1]).first(TaskView(3), 7).tolist() == [2, 0, 1, 2, 0, 1, 2]
    assert Cyclic([1, 1, 0]).first(TaskView(3), 5).tolist() == [1, 1, 0, 1, 1]
    assert repr(Cyclic()) == str(Cyclic()) == "Cyclic()"
    assert Cyclic().settings() == {}
    assert Cyclic().in_words == "cyclic"
    assert Cyclic() == Cyclic(order=None) != Cyclic([0, 1, 2])
    assert eval(repr(Cyclic([2, 0, 1]))) == Cyclic((2, 0, 1))


def test_a_given_cycle_is_kept_by_files(tmp_path):
    run = fg.run(TASKS, Cyclic([2, 0, 1, 3]), 6)
    run.save(tmp_path / "run.npz")
    assert type(run).load(tmp_path / "run.npz").ordering == Cyclic([2, 0, 1, 3])


def test_a_given_cycle_has_exact_values_with_all_digits():
    cycle = fg.expect(TASKS, Cyclic([3, 0, 2, 1]), [3, 9])
    given = fg.expect(TASKS, Explicit([3, 0, 2, 1] * 3), [3, 9])
    assert cycle.method == "deterministic"
    np.testing.assert_allclose(cycle.loss, given.loss, rtol=1e-14)
    np.testing.assert_allclose(cycle.forgetting, given.forgetting, rtol=1e-14)


def test_bounds_and_the_decay_rate_of_a_cycle_are_those_of_tasks_in_that_order():
    order = [3, 0, 2, 1]
    Xs, ys = zip(*(TASKS.task(m) for m in order), strict=True)
    renamed = fg.RegressionTasks(Xs, ys)
    assert fg.decay_rate(TASKS, Cyclic(order)) == pytest.approx(fg.decay_rate(renamed, Cyclic()), rel=1e-9)
    assert fg.decay_rate(TASKS, Cyclic(order)) != pytest.approx(fg.decay_rate(TASKS, Cyclic()), rel=1e-6)
    # going round twice is the same order; a cycle that leaves a task out leaves an error for ever
    assert fg.decay_rate(TASKS, Cyclic(order * 2)) == pytest.approx(fg.decay_rate(TASKS, Cyclic(order)), rel=1e-9)
    assert fg.decay_rate(TASKS, Cyclic([0, 1])) == pytest.approx(1)
    ours, theirs = (fg.bounds.evaluate(*case, 8) for case in ((TASKS, Cyclic(order)), (renamed, Cyclic())))
    assert [row.applies for row in ours] == [row.applies for row in theirs]
    assert any("cyclic" in row.bound.orderings and row.applies for row in ours)


@pytest.mark.parametrize("order", [[0, 1], [0, 1, 2, 2], [0, 1, 2, 3, 0]])
def test_bounds_on_cyclic_orderings_do_not_cover_other_cycles(order):
    rows = fg.bounds.evaluate(TASKS, Cyclic(order), 8)
    assert not any(row.applies for row in rows if "any" not in row.bound.orderings)
    assert any(row.applies for row in rows)  # what holds for any ordering


def test_a_cycle_names_existing_tasks_and_at_least_one():
    with pytest.raises(InvalidInputError, match="order is empty"):
        Cyclic([])
    with pytest.raises(InvalidInputError, match=r"order\[1\] is 4, but must be between 0 and 3"):
        fg.run(TASKS, Cyclic([0, 4]), 1)
    with pytest.raises(InvalidInputError, match=r"order\[0\] is -1"):
        Cyclic([-1])


# ----------------------------------------------------------------------------------------------------- NonRepetitive


@pytest.mark.parametrize("p", [None, [1, 2, 5], [0.7, 0.1, 0.2], [3, 0, 1]])
def test_draws_without_repetition_follow_their_transition_probabilities(p):
    order = NonRepetitive(p).first(TaskView(3), 60_000, seed=4)
    p = np.ones(3) / 3 if p is None else np.array(p) / np.sum(p)
    for last in range(3):
        following = order[1:][order[:-1] == last]
        expected = np.where(np.arange(3) == last, 0.0, p) / (1 - p[last])
        if p[last] == 0:
            assert not len(following)
            continue
        found = np.bincount(following, minlength=3) / len(following)
        np.testing.assert_allclose(found, expected, atol=0.02)
        assert found[last] == 0
        assert (found[p == 0] == 0).all()


def test_draws_without_repetition_start_with_p():
    starts = [NonRepetitive([1, 3]).first(TaskView(2), 1, seed=seed)[0] for seed in range(2000)]
    assert np.mean(starts) == pytest.approx(0.75, abs=0.05)


def test_a_task_that_is_nearly_certain_alternates_with_the_others():
    order = NonRepetitive([1.0, 1e-20, 3e-20]).first(TaskView(3), 20_000, seed=0)
    assert (order[::2] == 0).all()
    assert np.mean(order[1::2] == 2) == pytest.approx(0.75, abs=0.02)


def test_a_single_task_that_can_be_drawn_is_visited_once():
    assert NonRepetitive().first(TaskView(1), 1).tolist() == [0]
    assert NonRepetitive([0, 2, 0]).first(TaskView(3), 1).tolist() == [1]
    for ordering, tasks in ((NonRepetitive(), TaskView(1)), (NonRepetitive([0, 2, 0]), TaskView(3))):
        with pytest.raises(OrderingError, match="ends after 1 steps"):
            ordering.first(tasks, 2)


def test_draws_without_repetition_are_simulated_and_agree_with_all_orders():
    p, k = np.array([1, 2, 3, 4]) / 10, 3
    exact = 0.0
    for order in product(range(4), repeat=k):
        if all(a != b for a, b in pairwise(order)):
            chance = p[order[0]] * np.prod([p[b] / (1 - p[a]) for a, b in pairwise(order)])
            exact += chance * fg.run(TASKS, list(order), k).losses[-1]
    found = fg.expect(TASKS, NonRepetitive(p), k, runs=4096)
    assert found.method == "monte-carlo"
    assert found.loss_interval[0] <= exact <= found.loss_interval[1]
    assert float(found.loss) == pytest.approx(exact, rel=0.05)
    independent = fg.expect(TASKS, fg.orderings.WithReplacement(p), k).loss
    assert abs(float(independent) - exact) > 0.05 * exact  # so that the test would see the wrong chain


def test_bounds_on_independent_draws_do_not_cover_draws_without_repetition():
    applying = fg.bounds.evaluate(TASKS, NonRepetitive(), 3).applicable()
    assert applying
    assert all("any" in row.bound.orderings for row in applying)


# -------------------------------------------------------------------------------------------- drawn by their distances


def test_steinerberger_probabilities_worked_out_by_hand():
    # distances 1, 2, 3: squares 1, 4, 9 of 14; cubes 1, 8, 27 of 36
    near = view([1, 2, 3])
    np.testing.assert_allclose(Steinerberger().probabilities(near), np.array([1, 4, 9]) / 14, rtol=1e-14)
    np.testing.assert_allclose(Steinerberger(3).probabilities(near), np.array([1, 8, 27]) / 36, rtol=1e-14)
    np.testing.assert_allclose(Steinerberger(0).probabilities(near), np.ones(3) / 3, rtol=1e-14)
    tiny = view([1e-200, 2e-200, 0.0])  # whose squares are 0 in float64
    np.testing.assert_allclose(Steinerberger().probabilities(tiny), [0.2, 0.8, 0], rtol=1e-14)


def test_steinerberger_uses_residuals_of_normalised_rows():
    # rows (3, 0) and (0, 4) with labels 6 and 4: residuals 6 and 4 at w = 0, distances 2 and 1, so that p = 4/5, 1/5
    tasks = rows(np.diag([3.0, 4.0]), [6.0, 4.0])
    first = [fg.run(tasks, Steinerberger(), 1, seed=seed).order[0] for seed in range(2000)]
    assert np.mean(first) == pytest.approx(0.2, abs=0.04)


def test_relaxed_greedy_probabilities_worked_out_by_hand():
    # norms 1, 1, 2 and distances 2, 3, 4: r^2 = 4, 9, 64, the mean term is 77/6, the largest d^2 is 16
    far = view([2, 3, 4], np.array([1.0, 1.0, 2.0]))
    np.testing.assert_allclose(RelaxedGreedy(0).probabilities(far), [0, 0, 1])  # 9 < 12.83
    # norms 2, 1, 1: r^2 = 16, 9, 16 and the mean term is 41/6, which 3 and 4 pass; with theta = 0.2 it is 8.67
    near = view([2, 3, 4], np.array([2.0, 1.0, 1.0]))
    np.testing.assert_allclose(RelaxedGreedy(0).probabilities(near), [0, 9 / 25, 16 / 25], rtol=1e-14)
    np.testing.assert_allclose(RelaxedGreedy(0.2).probabilities(near), [0, 9 / 25, 16 / 25], rtol=1e-14)
    np.testing.assert_allclose(RelaxedGreedy(0.5).probabilities(near), [0, 0, 1])  # 11.4
    np.testing.assert_allclose(RelaxedGreedy(1).probabilities(view([3, 4, 4])), [0, 0.5, 0.5])


@pytest.mark.parametrize(("theta", "rows_far_enough"), [(0.0, 5), (0.3, 3), (0.5, 2), (0.9, 1), (1.0, 1)])
def test_relaxed_greedy_is_the_rule_of_bai_and_wu(theta, rows_far_enough):
    rng = np.random.default_rng(3)
    A, x = rng.standard_normal((12, 5)) * rng.uniform(0.2, 4, (12, 1)), rng.standard_normal(5)
    b = rng.standard_normal(12)
    r, norms = b - A @ x, np.linalg.norm(A, axis=1)
    # as printed: eps = theta max_i (|r_i|^2 / |a_i|^2) / |r|^2 + (1 - theta) / |A|_F^2
    eps = theta * np.max(r**2 / norms**2) / (r @ r) + (1 - theta) / np.linalg.norm(A) ** 2
    allowed = r**2 >= eps * (r @ r) * norms**2 * (1 - 1e-12)
    expected = np.where(allowed, r**2, 0.0) / np.sum(r[allowed] ** 2)
    found = RelaxedGreedy(theta).probabilities(view(np.abs(r) / norms, norms))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.count_nonzero(found) == rows_far_enough


def test_relaxed_greedy_with_theta_one_is_motzkins_rule():
    ours, motzkin = (fg.run(TASKS, ordering, 20).order for ordering in (RelaxedGreedy(1.0), GreedyDistance()))
    assert ours.tolist() == motzkin.tolist()


@pytest.mark.parametrize("ordering", [Steinerberger(), Steinerberger(0.5), RelaxedGreedy(), RelaxedGreedy(0.0)])
def test_frequencies_are_the_probabilities(ordering):
    near = view([0.0, 1.0, 2.0, 1.5], np.array([1.0, 3.0, 1.0, 2.0]))
    drawn = list(islice(ordering.visits(near, np.random.default_rng(0)), 20_000))
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 20_000, ordering.probabilities(near), atol=0.02)


@pytest.mark.parametrize("ordering", [Steinerberger(), RelaxedGreedy()])
@pytest.mark.parametrize("distances", [[0, 0, 0], [1, np.inf, 2], [np.nan, 1, 1]])
def test_tasks_that_are_solved_or_diverged_are_equally_likely(ordering, distances):
    np.testing.assert_allclose(ordering.probabilities(view(distances)), np.ones(3) / 3)


def test_parameters_out_of_range_are_named():
    for made, message in [
        (lambda: Steinerberger(-1), "power must be at least 0, got -1"),
        (lambda: RelaxedGreedy(1.5), "theta must be at most 1, got 1.5"),
        (lambda: RelaxedGreedy(-0.1), "theta must be at least 0"),
        (lambda: Quantile(0), "q must be greater than 0"),
        (lambda: Quantile(1.01), "q must be at most 1"),
        (lambda: Quantile(0.5, sample=0), "sample must be at least 1"),
        (lambda: NonRepetitive([1, -1]), "p must be finite, nonnegative"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            made()


# ---------------------------------------------------------------------------------------------------------- Quantile


class Scripted:
    """A generator that draws given tasks."""

    def __init__(self, tasks):
        self.tasks = iter(tasks)

    def integers(self, bound):
        return next(self.tasks)


@pytest.mark.parametrize(
    ("q", "accepted"), [(0.1, [0]), (0.5, [0, 1, 2]), (0.75, [0, 1, 2, 3]), (1.0, [0, 1, 2, 3, 4])]
)
def test_a_distance_above_the_quantile_means_no_update(q, accepted):
    visits = Quantile(q).visits(view([1.0, 2.0, 3.0, 4.0, 50.0]), Scripted(range(5)))
    assert list(islice(visits, 5)) == [task if task in accepted else -1 for task in range(5)]


def test_a_sample_of_all_tasks_is_all_tasks_and_a_small_one_is_a_sample():
    far = view([1.0, 2.0, 3.0, 4.0, 50.0])
    every = islice(Quantile(0.5).visits(far, np.random.default_rng(0)), 100)
    assert list(islice(Quantile(0.5, sample=9).visits(far, np.random.default_rng(0)), 100)) == list(every)
    # of two tasks, drawn anew, the smaller distance is the threshold: P(task passes) = 1 - C(its rank, 2) / C(5, 2)
    drawn = np.array(list(islice(Quantile(0.5, sample=2).visits(far, np.random.default_rng(0)), 30_000)))
    passing = np.bincount(drawn[drawn >= 0], minlength=5) / 30_000
    np.testing.assert_allclose(passing, np.array([10, 6, 3, 1, 0]) / 50, atol=0.01)


def test_the_quantile_rule_solves_a_system_with_wrong_rows_and_plain_draws_do_not():
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((200, 10)), rng.standard_normal(10)
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    wrong = rng.choice(200, 10, replace=False)  # 5 %
    b = A @ x
    b[wrong] += rng.uniform(5, 10, 10) * rng.choice([-1, 1], 10)
    clean = np.setdiff1d(np.arange(200), wrong)

    def residual(ordering):
        run = fg.run(rows(A, b), ordering, 3000, record_every=3000)
        return float(np.max(np.abs(A[clean] @ run.iterates[-1] - b[clean])))

    assert residual(Quantile(0.8)) < 1e-8
    assert residual(Quantile(0.8, sample=50)) < 1e-8
    assert residual(fg.orderings.WithReplacement()) > 0.1
    assert residual(Steinerberger()) > 0.1
    assert residual(Quantile(1.0)) > 0.1


def test_the_laws_say_what_is_known():
    assert isinstance(NonRepetitive().law, laws.Unknown)
    assert isinstance(Cyclic([1, 0]).law, laws.Cycle)
    assert Steinerberger().law == RelaxedGreedy().law == laws.Adaptive(draws=True)
    assert Quantile().law == laws.Adaptive(draws=True, skips=True)
    assert Quantile().skips
    assert not Steinerberger().skips
    assert not Cyclic().skips


def orthonormal(kind):
    """Six tasks that are orthogonal to each other, in directions that no float hits: each is solved by one visit."""
    rng = np.random.default_rng(3)
    rows, w = np.linalg.qr(rng.standard_normal((6, 6)))[0], rng.standard_normal(6)
    if kind == "regression":
        sizes = np.arange(1.0, 7.0)
        return fg.RegressionTasks(list((sizes[:, None] * rows)[:, None]), list((sizes * (rows @ w))[:, None]))
    if kind == "kernel":
        return fg.KernelTasks(rows @ rows.T, rows @ w, np.arange(6))
    return fg.ConvexSets([fg.Affine(row[None], [row @ w]) for row in rows])


@pytest.mark.parametrize("ordering", ["greedy-distance", "greedy-residual"])
@pytest.mark.parametrize(
    ("kind", "scheme"),
    [("regression", None), ("regression", "gradient-descent"), ("kernel", None), ("sets", None)],
)
def test_once_all_tasks_are_solved_a_greedy_order_takes_the_lowest_number(kind, scheme, ordering):
    tasks = orthonormal(kind)
    order = fg.run(tasks, ordering, k=40, scheme=scheme).order
    assert sorted(order[:6]) == list(range(6))
    assert order[6:].tolist() == [0] * 34
    assert fg.run_many(tasks, ordering, 12, runs=1, scheme=scheme).order[0].tolist() == order[:12].tolist()


@pytest.mark.parametrize("ordering", [Steinerberger(), RelaxedGreedy()], ids=str)
def test_once_all_tasks_are_solved_draws_by_distance_are_uniform(ordering):
    order = fg.run(orthonormal("regression"), ordering, k=3006, seed=1).order
    assert sorted(order[:6]) == list(range(6))
    assert np.bincount(order[6:], minlength=6).min() > 400


def test_distances_that_differ_by_rounding_are_tied():
    rng = np.random.default_rng(0)
    X, w = np.linalg.qr(rng.standard_normal((5, 5)))[0], 1e6 * rng.standard_normal(5)
    start = w + X.T @ np.full(5, 1e-3)  # at the distance 1e-3 from each task, which rounding moves by 1e-10
    assert fg.run(rows(X, X @ w), "greedy-distance", k=5, w0=start).order.tolist() == [0, 1, 2, 3, 4]


def test_a_solve_in_greedy_order_ends_at_rounding_in_one_row():
    rng = np.random.default_rng(3)
    A, x = np.linalg.qr(rng.standard_normal((6, 6)))[0], rng.standard_normal(6)
    seen = []

    class Watched(fg.orderings.Ordering):
        law = laws.Adaptive()

        def visits(self, tasks, rng):
            for task in GreedyDistance().visits(tasks, rng):
                seen.append(task)
                yield task

    fg.solve(A, A @ x, ordering=Watched(), tol=0, max_steps=20)
    assert sorted(seen[:6]) == list(range(6))
    assert set(seen[6:]) == {0}


def test_norm_weighted_draws_are_in_proportion_to_squared_norms():
    tasks = fg.RegressionTasks([[[1.0, 0.0]], [[0.0, 2.0]], [[3.0, 0.0]]], [[1.0], [1.0], [1.0]])
    view = fg.orderings.TaskView(3, tasks.norms)
    np.testing.assert_allclose(
        fg.orderings.NormWeighted().law.probabilities(view), np.array([1, 4, 9]) / 14, rtol=1e-15
    )


def test_norm_weighted_draws_take_no_weights():
    with pytest.raises(
        InvalidInputError, match=r"NormWeighted takes no weights, got p = \(1, 3\); use WithReplacement"
    ):
        fg.orderings.NormWeighted((1, 3))
