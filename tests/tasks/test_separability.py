"""Joint separability: decided with a proof either way, which the tests check."""

from __future__ import annotations

from fractions import Fraction
from math import gcd

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import forgetting as fg
from forgetting.errors import ForgettingError, InfeasibleError, NotSeparableError
from forgetting.tasks import classification as module


def of_rows(rows):
    """One task whose signed rows are these (labels alternate, so that there are two)."""
    rows = np.asarray(rows, dtype=float)
    labels = np.where(np.arange(len(rows)) % 2, -1, 1)
    return fg.ClassificationTasks([rows * labels[:, None]], [labels])


def check(found, rows):
    """Whether the proof that comes with a finding proves it."""
    rows = np.asarray(rows, dtype=float)
    if found.holds:
        assert found.certificate is None
        assert (rows @ found.w >= 1 - 1e-12 * np.linalg.norm(rows, axis=1) * np.linalg.norm(found.w)).all()
        return
    assert found.w is None
    y = found.certificate
    assert y.shape == (len(rows),)
    assert (y >= 0).all()
    assert y.sum() == pytest.approx(1, abs=1e-12)
    assert np.linalg.norm(rows.T @ y) == pytest.approx(found.residual, abs=1e-15 * np.abs(rows).max())
    assert found.residual <= 1e-12 * np.abs(rows).max()


@pytest.mark.parametrize(
    "rows",
    [
        [[1.0, 0.0], [-1.0, 0.0]],  # opposite: 0 is the middle of a segment
        [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]],  # a third row does not help
        [[1.0, 0.0], [-0.5, np.sqrt(0.75)], [-0.5, -np.sqrt(0.75)]],  # 0 is the centre of a triangle
        [[0.0, 0.0], [1.0, 1.0]],  # a zero row never has a margin
        [[1.0, 1.0], [1.0, -1.0], [-1e-9, 0.0]],  # a tiny row is as good as a long one
        [[1e8, 0.0], [-1e-8, 0.0]],
    ],
)
def test_hulls_that_hold_the_origin(rows):
    found = of_rows(rows).separability
    assert not found.holds
    check(found, rows)
    assert found.message.startswith("not separable")


@pytest.mark.parametrize("gap", [1.0, 1e-4, 1e-7, 1e-10, 1e-15])
def test_hulls_that_almost_touch_the_origin(gap):
    """The segment from (gap, 1) to (gap, -1) misses 0 by gap, however little that is."""
    rows = [[gap, 1.0], [gap, -1.0]]
    found = of_rows(rows).separability
    assert found.holds
    np.testing.assert_allclose(found.w, [1 / gap, 0.0], rtol=1e-9, atol=1e-9 / gap)
    check(of_rows([[0.0, 1.0], [0.0, -1.0]]).separability, [[0.0, 1.0], [0.0, -1.0]])


@given(st.integers(0, 10**6))
def test_exactly_touching_hulls_are_not_separable(seed):
    """Whole numbers with a positive combination that is exactly 0, among other rows, in any order and scaling."""
    rng = np.random.default_rng(seed)
    d, r, n = rng.integers(2, 8), rng.integers(1, 5), rng.integers(1, 10)
    some = rng.integers(-4, 5, (r, d)).astype(float)
    rows = np.concatenate([some, -(rng.integers(1, 4, r) @ some)[None], rng.integers(-4, 5, (n, d))])
    rows = rows[rng.permutation(len(rows))] * rng.choice([0.5, 1.0, 8.0, 1024.0], len(rows))[:, None]
    found = of_rows(rows).separability
    assert not found.holds
    check(found, rows)


@given(st.integers(0, 10**6))
def test_the_finding_is_that_of_a_linear_programme(seed):
    from scipy.optimize import linprog

    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 8))
    n = int(rng.integers(2, 2 * d + 3))
    rows = rng.standard_normal((n, d))
    programme = linprog(np.zeros(d), A_ub=-rows, b_ub=-np.ones(n), bounds=(None, None))
    found = of_rows(rows).separability
    assert found.holds == (programme.status == 0)
    check(found, rows)


def test_tasks_that_are_separable_alone_but_not_together():
    tasks = fg.ClassificationTasks([[[1.0, 2.0]], [[0.0, 1.0]], [[2.0, 4.0]]], [[1], [1], [-1]])
    check(tasks.separability, [[1.0, 2.0], [0.0, 1.0], [-2.0, -4.0]])
    for use in (
        lambda: tasks.w_star,
        lambda: tasks.scale,
        lambda: tasks.margin,
        lambda: tasks.nearest_solution([1.0, 0.0]),
        lambda: fg.bounds.evaluate(tasks, fg.orderings.WithReplacement(), 3),
    ):
        with pytest.raises(NotSeparableError, match=r"rows 0, 2 \(in tasks 0, 2\), each times") as caught:
            use()
        y = caught.value.certificate
        np.testing.assert_allclose(y, [2 / 3, 0, 1 / 3], atol=1e-12)
        assert caught.value.task is None
    # projections onto each task alone still work, and their distances do not vanish
    run = fg.run(tasks, fg.orderings.Cyclic(), k=30)
    assert run.residuals[-1].max() > 0.1


def test_runs_and_expectations_say_that_tasks_are_not_jointly_separable_but_do_not_decide_it_unasked(monkeypatch):
    tasks = fg.ClassificationTasks([[[1.0, 2.0]], [[0.0, 1.0]], [[2.0, 4.0]]], [[1], [1], [-1]])
    told = "not separable: rows 0, 2 (in tasks 0, 2), each times its label"
    cyclic, shuffled = fg.orderings.Cyclic(), fg.orderings.WithReplacement()
    for scheme in (None, fg.schemes.WeaklyRegularized(-20.0)):
        run = fg.run(tasks, cyclic, k=6, scheme=scheme)
        assert run.status.startswith(f"completed 6 steps; {told}")
        assert fg.run_many(tasks, shuffled, k=2, runs=3, scheme=scheme).status.startswith(
            f"completed 3 runs of 2 steps; {told}"
        )
        assert fg.expect(tasks, cyclic, 6, scheme=scheme).notes == run.remarks
        assert fg.expect(tasks, shuffled, 2, scheme=scheme, runs=20).notes[0].startswith(told)
    calls = []
    monkeypatch.setattr("forgetting.tasks.classification.decide", lambda rows: calls.append(rows))
    fresh = fg.families.separable(T=2, d=3, n=4, margin=0.5)
    assert fg.run(fresh, cyclic, k=4).losses[-1] >= 0
    assert not calls


def test_a_row_of_zeros_is_named():
    tasks = fg.ClassificationTasks([[[1.0]], [[2.0], [0.0]]], [[1], [1, -1]])
    assert tasks.separability.message == (
        "not separable: row 2 (in task 1) is 0, so that no w has a positive margin on it"
    )


def test_a_task_that_is_not_separable_alone_is_named_with_its_own_certificate():
    tasks = fg.ClassificationTasks([[[1.0, 0.0]], [[1.0, 1.0], [2.0, 2.0], [0.0, 1.0]]], [[1], [1, -1, 1]])
    for use in (lambda: tasks.project(1, np.zeros(2)), lambda: fg.run(tasks, fg.orderings.Cyclic(), k=2)):
        with pytest.raises(NotSeparableError, match="projecting onto task 1 needs a separable task") as caught:
            use()
        y = caught.value.certificate
        assert caught.value.task == 1
        np.testing.assert_allclose(y @ tasks.signed_rows(1), 0, atol=1e-14)
        np.testing.assert_allclose(y, [2 / 3, 1 / 3, 0], atol=1e-12)


def test_losses_do_not_need_separability():
    tasks = of_rows([[1.0], [-1.0]])
    assert tasks.loss([0.0]) == 0.5
    assert tasks.loss([2.0]) == 0.5 * 3**2
    np.testing.assert_array_equal(tasks.margins([2.0]), [2.0, -2.0])


def test_sets_without_a_common_point_are_refused_with_a_certificate():
    """w >= 1 and w <= 0 as two sets: y = (1, 1) has A^T y = 0 and b.y = 1."""
    sets = fg.ConvexSets([fg.Halfspace([1.0], 1.0), fg.Polyhedron([[-1.0]], [0.0])])
    for use in (
        lambda: sets.w_star,
        lambda: sets.scale,
        lambda: fg.bounds.evaluate(sets, fg.orderings.WithReplacement(), 3),
    ):
        with pytest.raises(InfeasibleError) as caught:
            use()
        np.testing.assert_allclose(caught.value.certificate, [1.0, 1.0], atol=1e-12)
    with pytest.raises(InfeasibleError, match="no common point"):
        fg.ConvexSets([fg.Ball([0.0, 0.0], 1.0), fg.Ball([3.0, 0.0], 1.0)]).w_star  # noqa: B018


def exactly_separable(rows):
    """Fourier and Motzkin's elimination of the whole numbers rows w > 0."""
    left = {tuple(int(entry) for entry in row) for row in rows}
    for j in range(rows.shape[1]):
        new = {row for row in left if row[j] == 0}
        for a in (row for row in left if row[j] > 0):
            for b in (row for row in left if row[j] < 0):
                mixed = [a[j] * y - b[j] * x for x, y in zip(a, b, strict=True)]
                new.add(tuple(entry // (gcd(*mixed) or 1) for entry in mixed))
        left = new
        if any(not any(row) for row in left):
            return False
    return True


def check_exactly(found, rows):
    """The proof, in rational arithmetic: margins above 0, or a combination that rounding alone keeps from 0."""
    exact = [[Fraction(float(entry)) for entry in row] for row in rows]
    if found.holds:
        w = [Fraction(float(entry)) for entry in found.w]
        assert min(sum(x * v for x, v in zip(row, w, strict=True)) for row in exact) >= 1 - Fraction(1, 10**6)
        return
    y = [Fraction(float(entry)) for entry in found.certificate]
    assert min(y) >= 0
    for column in zip(*exact, strict=True):
        terms = [weight * entry for weight, entry in zip(y, column, strict=True)]
        assert abs(sum(terms)) <= Fraction(1, 10**13) * sum(abs(term) for term in terms)


@pytest.mark.parametrize(("low", "high"), [(-4, 3), (-9, 6)])
def test_columns_of_any_scale_do_not_change_the_finding(low, high):
    """Small whole numbers, decided exactly; then every column in a unit of its own."""
    rng = np.random.default_rng(8)
    seen = set()
    for _ in range(300):
        d, n = int(rng.integers(2, 5)), int(rng.integers(2, 7))
        whole = rng.integers(-4, 5, (n, d))
        rows = whole * 10.0 ** rng.uniform(low, high, d)
        found = module.decide(rows)
        assert found.holds == exactly_separable(whole), (whole, rows)
        check_exactly(found, rows)
        seen.add(found.holds)
    assert seen == {True, False}


def test_a_small_column_that_separates_is_not_overlooked():
    X, y = [[-0.2, 100.0, -1e-4], [0.1, -200.0, 0.0], [0.1, -200.0, 2e-4]], [1, -1, 1]
    tasks = fg.ClassificationTasks([X], [y])
    assert tasks.separability.holds
    assert tasks.margins(tasks.w_star).min() == pytest.approx(1, abs=1e-9)
    assert np.linalg.norm(tasks.w_star) <= np.linalg.norm([-10, 0.49, 5e5])
    assert tasks.distances(tasks.w_star)[0] <= 1e-6


@pytest.mark.parametrize("rows", [[[1.0, 1.0], [1.0, -1.0]], [[1.0, 2.0], [-2.0, -4.0], [0.0, 1.0]]])
def test_a_linear_programme_decides_where_projections_do_not(monkeypatch, rows):
    rows = np.array(rows) * [1.0, 1e-7]
    expected = module.decide(rows).holds
    monkeypatch.setattr(module, "_projected", lambda rows: (None, None))
    found = module.decide(rows)
    assert found.holds == expected
    check(found, rows)
    monkeypatch.setattr(module, "_programmed", lambda rows: (-np.ones(2), np.ones(len(rows))))
    with pytest.raises(ForgettingError, match="undecided") as caught:  # what is no proof is not believed
        module.decide(rows)
    assert not isinstance(caught.value, NotSeparableError)


def test_a_separable_task_is_never_refused_as_not_separable():
    far = fg.ContinualClassifier("limit").fit([[2020.0, 0.001], [2020.0, -0.001]], [1, 0])
    np.testing.assert_allclose(far.coef_, [[0.0, 1000.0]], atol=1e-9)
    # so far away that there are no digits for the projection, though it is known to be there
    tasks = of_rows([[1e-15, 1.0], [1e-15, -1.0]])
    with pytest.raises(ForgettingError, match=r"task 0 is separable: .* but the projection .* was not found") as caught:
        tasks.project(0, [0.0, 0.0])
    assert not isinstance(caught.value, NotSeparableError)


def test_a_run_whose_separability_is_undecided_says_that(monkeypatch):
    def undecided(rows):
        raise fg.errors.ForgettingError("whether one w has positive margins on all rows is undecided")

    monkeypatch.setattr("forgetting.tasks.classification.decide", undecided)
    tasks = fg.families.separable(T=2, d=3, n=4, margin=0.5)
    assert fg.run(tasks, fg.orderings.Cyclic(), k=2).status == (
        "completed 2 steps; whether one w has positive margins on all rows is undecided"
    )
