"""The other sets: known answers, the conformance check on every one of them, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import InfeasibleError, InvalidInputError
from forgetting.sets import ConvexSet, ProjectionCheckError, check_convex_set

RNG = np.random.default_rng(0)
A = RNG.standard_normal((3, 5))
MANY = RNG.standard_normal((12, 5))
EVERY_SET = [
    fg.Affine(A, RNG.standard_normal(3)),
    fg.Affine(np.zeros((1, 5)), [0.0]),
    fg.Subspace(A),
    fg.Subspace(np.zeros((1, 5))),
    fg.Halfspace(A[0], 0.7),
    fg.Slab(A[1], -0.5, 2.0),
    fg.Slab(A[1], 1.0, 1.0),
    fg.Polyhedron(MANY, MANY @ RNG.standard_normal(5) - RNG.random(12)),
    fg.Polyhedron(np.concatenate([MANY, MANY]), np.zeros(24)),
    fg.Ball(RNG.standard_normal(5), 1.5),
    fg.Ball(RNG.standard_normal(5), 0.0),
    fg.Box([-1.0, 0.0, -np.inf, 2.0, -np.inf], [1.0, np.inf, 0.5, 2.0, np.inf]),
    fg.Simplex(5),
    fg.Simplex(5, total=30.0),
    fg.SecondOrderCone(5),
    fg.CustomSet(lambda w: np.maximum(w, 0), dim=5),
]


@pytest.mark.parametrize("one", EVERY_SET, ids=repr)
def test_every_set_passes_the_conformance_check(one):
    check_convex_set(one, points=[[0.0] * 5, [1e4] * 5])


@pytest.mark.parametrize("one", EVERY_SET, ids=repr)
def test_the_distance_and_membership_follow_from_the_projection(one):
    w = 3 * np.random.default_rng(1).standard_normal(5)
    point = one.project(w)
    assert one.distance(w) == pytest.approx(np.linalg.norm(w - point))
    assert one.contains(point)
    assert one.contains(w) == (one.distance(w) <= 1e-9)
    assert one.contains(w, tol=one.distance(w) + 1e-9)
    assert one.reach(w) >= np.linalg.norm(w - point)


@pytest.mark.parametrize("one", [one for one in EVERY_SET if one.inequalities() is not None], ids=repr)
def test_polyhedral_sets_agree_with_their_inequalities(one):
    rows, levels = one.inequalities()
    if len(rows) == 0:
        return
    as_polyhedron = fg.Polyhedron(rows, levels)
    for w in 4 * np.random.default_rng(2).standard_normal((20, 5)):
        np.testing.assert_allclose(as_polyhedron.project(w), one.project(w), atol=1e-10)


def test_only_round_and_custom_sets_have_no_inequalities():
    without = {type(one).__name__ for one in EVERY_SET if one.inequalities() is None}
    assert without == {"Ball", "SecondOrderCone", "CustomSet"}


def test_affine_matches_the_pseudoinverse_for_dependent_rows():
    rng = np.random.default_rng(3)
    matrix = rng.standard_normal((6, 2)) @ rng.standard_normal((2, 5))
    label, w = matrix @ rng.standard_normal(5), rng.standard_normal(5)
    expected = w - np.linalg.pinv(matrix) @ (matrix @ w - label)
    np.testing.assert_allclose(fg.Affine(matrix, label).project(w), expected, atol=1e-12)


def test_equations_that_contradict_each_other_have_a_certificate():
    matrix, label = np.array([[1.0, 2.0], [2.0, 4.0], [0.0, 1.0]]), np.array([1.0, 3.0, 0.0])
    with pytest.raises(InfeasibleError, match="contradict") as caught:
        fg.Affine(matrix, label)
    y = caught.value.certificate
    np.testing.assert_allclose(matrix.T @ y, 0, atol=1e-12)
    assert label @ y == pytest.approx(1)


def test_the_simplex_projection_is_a_threshold():
    simplex = fg.Simplex(3)
    np.testing.assert_allclose(simplex.project([0.2, 0.3, 0.5]), [0.2, 0.3, 0.5], atol=1e-15)
    np.testing.assert_allclose(simplex.project([10.0, 0.0, 0.0]), [1.0, 0.0, 0.0])
    np.testing.assert_allclose(simplex.project([1e9 + 0.25, 1e9, -1e9]), [0.625, 0.375, 0.0], atol=1e-7)


def test_the_cone_has_three_cases():
    cone = fg.SecondOrderCone(2)
    np.testing.assert_allclose(cone.project([1.0, 2.0]), [1.0, 2.0])
    np.testing.assert_allclose(cone.project([1.0, -2.0]), [0.0, 0.0])
    np.testing.assert_allclose(cone.project([2.0, 0.0]), [1.0, 1.0])


WRONG = {
    "a circle": (lambda w: w / np.linalg.norm(w), "obtuse-angle"),
    "half way": (lambda w: w / 2, "idempotent"),
    "along a slanted direction": (lambda w: np.array([w[0] + w[1], 0.0]), "obtuse-angle"),
    "two points": (lambda w: np.array([np.sign(w[0]) or 1.0, 0.0]), "obtuse-angle"),
    "random": (lambda w: w + RNG.random(2), "pure"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_a_projection_is_found_out(name):
    function, failed = WRONG[name]
    with pytest.raises(ProjectionCheckError, match=f"is not {failed}") as caught:
        check_convex_set(fg.CustomSet(function, dim=2))
    assert caught.value.failed == failed
    assert all(point.shape == (2,) for point in caught.value.witnesses)
    assert isinstance(caught.value, AssertionError)


def test_a_set_with_a_wrong_distance_or_a_side_effect_is_found_out():
    class Liar(fg.Ball):
        def distance(self, w):
            return 0.0

    class Writer(ConvexSet):
        def __init__(self):
            self._freeze(dim=2)

        def nearest(self, w):
            w *= 0
            return w.copy()

    with pytest.raises(ProjectionCheckError, match="consistent"):
        check_convex_set(Liar([0.0, 0.0], 1.0))
    with pytest.raises(ProjectionCheckError, match="pure"):
        check_convex_set(Writer())


def test_a_custom_set_is_checked_at_every_call():
    with pytest.raises(InvalidInputError, match=r"returned shape \(3,\), expected \(2,\)"):
        fg.CustomSet(lambda w: np.zeros(3), dim=2).project([1, 1])
    with pytest.raises(InvalidInputError, match="returned nan"):
        fg.CustomSet(lambda w: w * np.nan, dim=2).project([1, 1])
    with pytest.raises(InvalidInputError, match="does not know its dimension"):
        fg.CustomSet(lambda w: w).project([1, 1])
    with pytest.raises(InvalidInputError, match="must be a function"):
        fg.CustomSet(3)
    with pytest.raises(InvalidInputError, match="expected a set"):
        check_convex_set(lambda w: w)
    check_convex_set(fg.CustomSet(lambda w: w), dim=2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fg.Halfspace([0.0, 0.0], 1.0), "a is zero"),
        (lambda: fg.Halfspace([[1.0]], 1.0), "expected a vector"),
        (lambda: fg.Halfspace([1.0, np.inf], 1.0), "inf"),
        (lambda: fg.Halfspace([1.0], np.nan), "b must be finite"),
        (lambda: fg.Slab([1.0], 2.0, 1.0), "the slab is empty: lo = 2"),
        (lambda: fg.Ball([0.0], -0.5), "radius must be at least 0, got -0.5"),
        (lambda: fg.Ball(0.0, 1.0), "center: expected a vector"),
        (lambda: fg.Box([1.0], [0.0]), r"lo\[0\] = 1 is above hi\[0\] = 0"),
        (lambda: fg.Box([np.inf], [np.inf]), "the box is empty"),
        (lambda: fg.Box([np.nan], [0.0]), "lo: entry 0 is nan"),
        (lambda: fg.Box([0.0], [1.0, 1.0]), "shape"),
        (lambda: fg.Simplex(0), "dim must be at least 1"),
        (lambda: fg.Simplex(2, total=0), "total must be greater than 0"),
        (lambda: fg.SecondOrderCone(1), "dim must be at least 2"),
        (lambda: fg.Subspace([1.0]), "expected a matrix"),
        (lambda: fg.Affine([[1.0]], [1.0, 2.0]), "one entry per row"),
    ],
)
def test_bad_sets_are_refused_with_the_value(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


@pytest.mark.parametrize(
    "group",
    [
        fg.Halfspace([1.0, 2.0], -1.0),
        fg.Ball([0.5, 0.5], 2.0),
        fg.Affine([[1.0, 1.0]], [0.0]),
    ],
    ids=lambda group: type(group).__name__,
)
def test_a_set_that_a_hunt_turns_and_stretches_keeps_the_common_point(group):
    common = np.zeros(2)
    assert group.contains(common)
    rng = np.random.default_rng(0)
    for _ in range(20):
        turn, point = 3 * rng.standard_normal((2, 2)), 5 * rng.standard_normal(2)
        changed = group.rebuilt(lambda v, turn=turn: v @ turn.T, point)
        assert changed.distance(point) <= 1e-9 * (1 + np.linalg.norm(point))
