"""Polyhedra: known answers, odd shapes, what is refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import forgetting as fg
from forgetting.errors import ForgettingError, InfeasibleError, InvalidInputError
from forgetting.sets import polyhedra as module
from forgetting.sets._certificate import best_combination, refined, vanishes


def test_one_row_is_the_closed_form_of_a_halfspace():
    rng = np.random.default_rng(0)
    for _ in range(50):
        d = int(rng.integers(1, 30))
        a, b, w = (
            rng.standard_normal(d) * 10.0 ** rng.uniform(-3, 3),
            float(rng.standard_normal()),
            rng.standard_normal(d),
        )
        expected = w + max(0.0, b - a @ w) / (a @ a) * a
        np.testing.assert_allclose(fg.Polyhedron(a[None], [b]).project(w), expected, atol=1e-12)
        np.testing.assert_allclose(fg.Halfspace(a, b).project(w), expected, atol=1e-12)


def test_orthogonal_rows_project_coordinate_by_coordinate():
    rng = np.random.default_rng(1)
    frame, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    b, w = rng.standard_normal(6), rng.standard_normal(6)
    found = fg.Polyhedron(frame, b).project_full(w)
    np.testing.assert_allclose(frame @ found.point, np.maximum(frame @ w, b), atol=1e-14)
    np.testing.assert_allclose(found.multipliers, np.maximum(b - frame @ w, 0), atol=1e-14)
    assert found.active.tolist() == np.flatnonzero(b > frame @ w).tolist()


@pytest.mark.parametrize(
    ("start", "nearest"),
    [
        ([2.0, 1.0], [2.0, 1.0]),  # inside
        ([1.0, -2.0], [1.0, 0.0]),  # below the floor
        ([0.0, 2.0], [1.0, 1.0]),  # beyond the slope
        ([-1.0, -2.0], [0.0, 0.0]),  # behind the tip: both rows are active
        ([-1.0, 0.5], [0.0, 0.0]),  # the slope alone would lead below the floor
    ],
)
def test_a_wedge_drawn_by_hand(start, nearest):
    wedge = fg.Polyhedron([[0.0, 1.0], [1.0, -1.0]], [0.0, 0.0])  # 0 <= y <= x
    np.testing.assert_allclose(wedge.project(start), nearest, atol=1e-15)
    assert wedge.distance(start) == pytest.approx(np.hypot(*(np.array(start) - nearest)), abs=1e-15)


def test_rows_that_repeat_or_follow_from_others_change_nothing():
    rng = np.random.default_rng(2)
    A, inside, p = rng.standard_normal((8, 5)), rng.standard_normal(5), 3 * rng.standard_normal(5)
    b = A @ inside - rng.random(8)
    plain = fg.Polyhedron(A, b).project(p)
    weights = rng.random((10, 8))
    more = fg.Polyhedron(np.concatenate([A, 3 * A, weights @ A]), np.concatenate([b, 3 * b, weights @ b]))
    np.testing.assert_allclose(more.project(p), plain, atol=1e-12)


def test_the_tighter_of_two_parallel_rows_counts():
    rows = [[1.0, 0.0], [2.0, 0.0], [1.0, 0.0]]
    np.testing.assert_allclose(fg.Polyhedron(rows, [1.0, 6.0, 2.0]).project([0.0, 5.0]), [3.0, 5.0])


def test_nearly_parallel_rows_meet_where_they_should():
    # {y >= t x, y <= -t x + 2 t}: the rows cross at (1, t), for any small t
    for t in (1e-2, 1e-4, 1e-6):
        upper = fg.Polyhedron([[-t, 1.0], [t, 1.0]], [0.0, 2 * t])
        np.testing.assert_allclose(upper.project([1.0, -1.0]), [1.0, t], atol=1e-9)


def test_zero_rows_are_vacuous_or_impossible():
    with_zero = fg.Polyhedron([[0.0, 0.0], [1.0, 0.0]], [-1.0, 1.0])
    found = with_zero.project_full([0.0, 0.0])
    np.testing.assert_allclose(found.point, [1.0, 0.0])
    np.testing.assert_allclose(found.multipliers, [0.0, 1.0])
    assert found.active.tolist() == [1]
    free = fg.Polyhedron([[0.0, 0.0]], [0.0])
    np.testing.assert_allclose(free.project([3.0, 4.0]), [3.0, 4.0])
    assert free.contains([1.0, 1.0])
    with pytest.raises(InfeasibleError, match="row 1 of A is zero") as caught:
        fg.Polyhedron([[1.0, 0.0], [0.0, 0.0]], [0.0, 2.0])
    np.testing.assert_allclose(caught.value.certificate, [0.0, 0.5])


def test_contradicting_rows_are_named_with_a_farkas_certificate():
    A, b = np.array([[1.0, 1.0], [-1.0, 0.0], [0.0, -2.0], [1.0, 0.0]]), np.array([3.0, -1.0, -2.0, -5.0])
    with pytest.raises(InfeasibleError, match=r"rows 0, 1, 2 contradict") as caught:
        fg.Polyhedron(A, b)
    y = caught.value.certificate
    np.testing.assert_allclose(y, [1.0, 1.0, 0.5, 0.0], atol=1e-12)
    np.testing.assert_allclose(A.T @ y, 0, atol=1e-12)
    assert b @ y == pytest.approx(1)


def test_an_empty_set_can_be_left_to_the_first_projection():
    empty = fg.Polyhedron([[1.0], [-1.0]], [1.0, 0.0], check=False)
    with pytest.raises(InfeasibleError):
        empty.project([0.5])


def test_a_method_that_stalls_says_so_or_finds_the_certificate_another_way():
    def stalled(A, b, K, Q, p, start, factor, far):
        return 3, p, start, np.empty(0), np.empty((0, 0)), 7, 0.5, 0.5

    fine, empty = fg.Polyhedron(np.eye(2), [1.0, 1.0]), fg.Polyhedron([[1.0], [-1.0]], [1.0, 0.0], check=False)
    fine.__dict__["_kernels"] = empty.__dict__["_kernels"] = SimpleNamespace(project=stalled)
    with pytest.raises(ForgettingError, match="did not converge: after 14 changes"):
        fine.project([0.0, 0.0])
    with pytest.raises(InfeasibleError, match="rows 0, 1 contradict") as caught:
        empty.project([0.0])
    np.testing.assert_allclose(caught.value.certificate, [1.0, 1.0], atol=1e-12)


def test_a_set_missing_its_point_by_rounding_is_not_empty():
    rng = np.random.default_rng(3)
    for _ in range(50):
        A, inside = rng.standard_normal((12, 4)), 100 * rng.standard_normal(4)
        A = np.concatenate([A, -A.sum(axis=0)[None]])  # {A w >= A inside} is one point
        np.testing.assert_allclose(fg.Polyhedron(A, A @ inside).project(np.zeros(4)), inside, atol=1e-9)


def test_more_rows_than_dimensions():
    # the regular polygon around the unit circle: the nearest point to a far one is its vertex or on its edge
    angles = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    normals = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    polygon = fg.Polyhedron(-normals, -np.ones(48))
    for k in range(48):
        np.testing.assert_allclose(polygon.project(5 * normals[k]), normals[k], atol=1e-13)
        between = normals[k] + normals[k - 1]
        vertex = between / (between @ normals[k])
        np.testing.assert_allclose(polygon.project(5 * vertex), vertex, atol=1e-12)


def test_rows_may_be_scaled_at_will_and_sparse():
    rng = np.random.default_rng(4)
    A, p = rng.standard_normal((10, 6)), rng.standard_normal(6)
    b = A @ rng.standard_normal(6)
    scale = 10.0 ** rng.uniform(-150, 150, 10)
    plain, scaled = fg.Polyhedron(A, b).project_full(p), fg.Polyhedron(scale[:, None] * A, scale * b).project_full(p)
    np.testing.assert_allclose(scaled.point, plain.point, atol=1e-12)
    np.testing.assert_allclose(scaled.multipliers * scale, plain.multipliers, atol=1e-10)
    np.testing.assert_array_equal(fg.Polyhedron(sp.csr_array(A), b).project(p), plain.point)


def test_translation_moves_the_projection_along():
    rng = np.random.default_rng(5)
    A, p, shift = rng.standard_normal((15, 8)), rng.standard_normal(8), 1e3 * rng.standard_normal(8)
    b = A @ rng.standard_normal(8)
    moved = fg.Polyhedron(A, b + A @ shift).project(p + shift)
    np.testing.assert_allclose(moved - shift, fg.Polyhedron(A, b).project(p), atol=1e-10)


def test_without_a_gram_matrix_the_answer_is_the_same(monkeypatch):
    rng = np.random.default_rng(6)
    A, p = rng.standard_normal((40, 30)), 5 * rng.standard_normal(30)
    b = A @ rng.standard_normal(30) - rng.random(40)
    expected = fg.Polyhedron(A, b).project_full(p)
    monkeypatch.setattr(module, "GRAM_ROWS", 0)
    found = fg.Polyhedron(A, b).project_full(p)
    np.testing.assert_allclose(found.point, expected.point, atol=1e-11)
    assert found.active.tolist() == expected.active.tolist()
    again = fg.Polyhedron(A, b).project_full(p + 0.01, warm=found.warm)
    np.testing.assert_allclose(again.point, fg.Polyhedron(A, b).project(p + 0.01), atol=1e-11)


def test_a_set_far_away_and_a_point_far_away():
    A, b = np.eye(3), np.array([1e8, -1e8, 0.0])
    np.testing.assert_allclose(fg.Polyhedron(A, b).project([0, 0, -1]), [1e8, 0, 0])
    np.testing.assert_allclose(fg.Polyhedron(A, np.ones(3)).project([-1e9, 0, 5]), [1, 1, 5], atol=1e-6)


def test_projection_does_not_touch_its_argument_and_takes_any_layout():
    box = fg.Polyhedron(np.eye(2), [0.0, 0.0])
    w = np.array([[-1.0, 9.0], [-2.0, 9.0]])[:, 0]  # strided
    w.setflags(write=False)
    np.testing.assert_allclose(box.project(w), [0.0, 0.0])
    np.testing.assert_allclose(w, [-1.0, -2.0])
    inside = np.array([1.0, 2.0])
    assert box.project(inside) is not inside


def test_two_thousand_rows_in_two_thousand_dimensions():
    rng = np.random.default_rng(7)
    A = rng.standard_normal((2000, 2000))
    b = A @ rng.standard_normal(2000) - rng.random(2000)
    found = fg.Polyhedron(A, b, check=False).project_full(rng.standard_normal(2000))
    assert found.feasibility <= 1e-10
    assert found.kkt_residual <= 1e-8


@pytest.mark.parametrize(
    ("A", "b", "message"),
    [
        ([[1.0, np.nan]], [0.0], "entry at row 0, column 1 is nan"),
        ([[1.0, 2.0]], [np.inf], "b: entry 0 is inf"),
        ([[1.0, 2.0]], [0.0, 1.0], r"b: expected shape \(1,\)"),
        ([1.0, 2.0], [0.0], "expected a matrix"),
        (np.empty((0, 3)), [], "expected a matrix with rows"),
        ([[1e-300]], [1e300], "overflows"),
    ],
)
def test_bad_input_is_named(A, b, message):
    with pytest.raises(InvalidInputError, match=message):
        fg.Polyhedron(A, b)


def test_bad_points_and_bad_warm_starts_are_named():
    plane = fg.Polyhedron([[1.0, 0.0]], [1.0])
    with pytest.raises(InvalidInputError, match=r"w: expected shape \(2,\)"):
        plane.project([1.0])
    with pytest.raises(InvalidInputError, match="nan"):
        plane.project([np.nan, 0.0])
    with pytest.raises(InvalidInputError, match="warm must be"):
        plane.project_full([0.0, 0.0], warm=3)
    other = fg.Polyhedron(np.eye(2), [1.0, 1.0]).project_full([0.0, 0.0]).warm
    with pytest.raises(InvalidInputError, match="another set"):
        plane.project_full([0.0, 0.0], warm=other)
    with pytest.raises(AttributeError, match="does not change"):
        plane.b = np.zeros(1)
    with pytest.raises(ValueError, match="read-only"):
        plane.b[0] = 2.0


def test_projections_in_a_row_do_not_depend_on_what_the_last_one_left():
    """`nearest_from` along a path that goes in and out of the set, with rows that stay active, change and vanish."""
    rng = np.random.default_rng(12)
    A = rng.standard_normal((15, 8))
    polyhedron = fg.Polyhedron(A, A @ np.ones(8) - 0.5 * rng.random(15))
    warm, kinds = None, set()
    for t in np.linspace(0, 6, 300):
        point = np.ones(8) + max(0.0, np.sin(t)) * (3 * A[0] - 2 * A[1]) + 0.01 * np.cos(9 * t) * A[2]
        point.setflags(write=False)
        before = warm
        found, warm, steps = polyhedron.nearest_from(point, warm)
        np.testing.assert_allclose(found, polyhedron.project(point), atol=1e-12)
        inside = (A @ point >= polyhedron.b).all()
        assert (found is point) == inside
        kinds.add("inside" if inside else "same rows" if warm is before else "other rows")
        assert steps >= 1
    assert kinds == {"inside", "same rows", "other rows"}


@pytest.mark.parametrize("tilt", [1e-3, 1e-4, 1e-6])
def test_a_set_whose_rows_are_almost_opposite_is_far_away_but_not_empty(tilt):
    """{2020 |x| <= tilt y - 1}: the tip (0, 1/tilt) is more than 10^6 times further away than the rows are."""
    cone = fg.Polyhedron([[2020.0, tilt], [-2020.0, tilt]], [1.0, 1.0])
    found = cone.project_full([0.0, 0.0])
    np.testing.assert_allclose(found.point, [0.0, 1 / tilt], rtol=1e-9, atol=1e-12)
    assert (cone.A @ found.point >= 1 - 1e-9).all()
    np.testing.assert_allclose(cone.A.T @ found.multipliers, found.point, rtol=1e-9, atol=1e-9 / tilt)
    again = cone.project_full([1.0, 0.0], warm=found.warm)
    np.testing.assert_allclose(again.point, [0.0, 1 / tilt], rtol=1e-6, atol=1e-9)


def test_what_is_too_far_away_to_tell_is_not_called_empty():
    """(0, 10^15 / 2) is in the set, but no digits are left at that distance."""
    with pytest.raises(ForgettingError, match="no point within 1e\\+06 times the size of the data") as caught:
        fg.Polyhedron([[1.0, 1e-15], [-1.0, 1e-15]], [0.5, 0.5])
    assert not isinstance(caught.value, InfeasibleError)
    assert "empty" not in str(caught.value)


@pytest.mark.parametrize("seed", range(40))
def test_certificates_vanish_in_every_column_however_small(seed):
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(2, 6)), int(rng.integers(2, 9))
    some, weights = rng.integers(-4, 5, (n, d)).astype(float), rng.integers(1, 4, n)
    A = np.concatenate([some, -(weights @ some)[None]]) * 10.0 ** rng.uniform(-5, 3, d)
    with pytest.raises(InfeasibleError) as caught:
        fg.Polyhedron(A, np.ones(n + 1))
    terms = A * caught.value.certificate[:, None]
    assert (caught.value.certificate >= 0).all()
    assert (np.abs(terms.sum(axis=0)) <= 1e-13 * np.abs(terms).sum(axis=0)).all()
    assert caught.value.certificate.sum() == pytest.approx(1)


def test_parallel_rows_that_contradict_each_other_by_rounding_have_a_projection():
    """Three multiples of one row; two of them miss each other by 4e-12 of their distance from the origin."""
    row = [
        [-0.13413474009146364, 0.2057680511175374, -0.018809458736057976],
        [-0.6890968638214129, 1.0571021243493879, -0.09663073873597272],
        [-0.6273742016461901, 0.962417094230259, -0.08797548755739766],
        [-2.5606117695081494, 3.9280807725205587, -0.35906970397665894],
        [-0.4794364112273641, 0.735474612361956, -0.06723045340376166],
        [0.7325809324882383, -1.123808423240582, 0.10272842673765556],
        [1.1099494405294676, -1.702706793639096, 0.15564609277591848],
        [2.391600472168374, -3.6688106889707015, 0.33536957214599056],
    ]
    A, b = np.array(row).T, np.array([0.00017569199819043166, -0.00026951854847689916, 2.4636954029877423e-05])
    found = fg.Polyhedron(A, b).project_full(np.zeros(8))
    np.testing.assert_allclose(found.point, A[2] * b[2] / (A[2] @ A[2]), rtol=1e-9)
    np.testing.assert_allclose(A.T @ found.multipliers, found.point, rtol=1e-9)
    assert found.feasibility <= 1e-15
    assert found.kkt_residual <= 1e-15
    with pytest.raises(InfeasibleError):  # a contradiction beyond rounding remains one
        fg.Polyhedron([[1.0], [-1.0]], [1.0 + 1e-9, -1.0])


def test_a_point_is_accepted_only_with_multipliers_that_prove_it():
    """A method that ends at the projection but says it stalled is believed; one that ends elsewhere is not."""

    def ends_at(point):
        return lambda A, b, K, Q, p, start, factor, far: (
            *(3, np.array(point), start, np.empty(0), np.empty((0, 0)), 7, 0.0, 0.0),
        )

    corner = fg.Polyhedron(np.eye(2), [1.0, 1.0])
    corner.__dict__["_kernels"] = SimpleNamespace(project=ends_at([1.0, 3.0]))
    found = corner.project_full([0.0, 3.0])
    np.testing.assert_allclose(found.multipliers, [1.0, 0.0], atol=1e-12)
    assert found.active.tolist() == [0]
    corner.__dict__["_kernels"] = SimpleNamespace(project=ends_at([1.0, 4.0]))  # in the set, but not the nearest
    with pytest.raises(ForgettingError, match="did not converge"):
        corner.project([0.0, 3.0])


def test_a_combination_of_rows_parallel_up_to_1e12_is_found_in_the_space_of_all_combinations():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal(6) + 1e-12 * rng.standard_normal((4, 6))
    rows = np.concatenate([rows, -(np.array([1.0, 2.0, 0.0, 1.0]) @ rows)[None]])
    y = refined(rows, best_combination(rows, np.array([1.0, 1.0, -9.0, 1.0, -3.5])))
    assert vanishes(rows, y)
    np.testing.assert_allclose(y / y[-1], [1.0, 2.0, 0.0, 1.0, 1.0], atol=1e-2)
    assert not best_combination(np.eye(3), np.ones(3)).any()


@pytest.mark.parametrize(("n", "d"), [(7, 3), (6, 2), (20, 3), (30, 10), (100, 5)])
def test_more_rows_than_dimensions_are_no_reason_for_the_slow_arithmetic(n, d, monkeypatch):
    """d active rows span everything, so that a further row depends on them for sure and not by rounding."""
    rng = np.random.default_rng(n)
    monkeypatch.setattr(fg.Polyhedron, "_room", lambda _: pytest.fail("orthogonal factors"))
    for _ in range(40):
        A = rng.standard_normal((n, d))
        corner = fg.Polyhedron(A, A @ rng.standard_normal(d) - 0.1 * rng.random(n))
        for point in 5 * rng.standard_normal((5, d)):
            assert corner.project_full(point).kkt_residual < 1e-11
