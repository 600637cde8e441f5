"""The triangle of a tall matrix has its singular values, its row space and its least-squares solutions."""

import numpy as np
import pytest
from joblib import parallel_config

import forgetting as fg
from forgetting.geometry import qr as triangles
from forgetting.geometry import spectrum_of
from forgetting.geometry.factor import Tolerance, joint_directions
from forgetting.geometry.qr import parts_of, triangle_of


@pytest.fixture
def small_parts(monkeypatch):
    """Trees of several levels for small matrices."""
    monkeypatch.setattr(triangles, "PART", 40)
    monkeypatch.setattr(triangles, "TALL", 400)
    monkeypatch.setattr(triangles, "ARITY", 3)


def graded(count, width, least, seed=0):
    """A matrix with known singular values from 1 down to `least`."""
    rng = np.random.default_rng(seed)
    left = np.linalg.qr(rng.standard_normal((count, width)))[0]
    right = np.linalg.qr(rng.standard_normal((width, width)))[0]
    values = np.geomspace(1, least, width)
    return left * values @ right.T, values


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("count", [401, 1000, 1003])
def test_a_tree_keeps_small_singular_values(count):
    rows, values = graded(count, 4, 1e-9)
    assert len(parts_of(rows)) > 9  # at least three levels of three
    found, vectors = spectrum_of(rows)
    np.testing.assert_allclose(found, values, rtol=1e-6)  # a Gram matrix would lose the least one, 1e-18
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(4), atol=1e-14)
    whole = triangle_of(lambda cut: rows[cut], parts_of(rows))
    np.testing.assert_allclose(whole.T @ whole, rows.T @ rows, atol=1e-14)


def test_too_few_rows_are_filled_with_zeros():
    whole = triangle_of(lambda cut: np.ones((1, 3)), [slice(0, 1)])
    assert whole.tolist() == [[1.0, 1.0, 1.0], [0.0] * 3, [0.0] * 3]


@pytest.mark.parametrize("rank", [4, 3])
@pytest.mark.parametrize("sides", [(), (2,)])
def test_joint_directions_of_many_rows_are_those_of_few(rank, sides, monkeypatch):
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((300, rank)) @ rng.standard_normal((rank, 4))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rhs = rng.standard_normal((300, *sides))
    found = []
    for tall in (False, True):
        monkeypatch.setattr(triangles, "TALL", 400 if tall else 10**9)
        monkeypatch.setattr(triangles, "PART", 64)
        rotation, solve = joint_directions(rows, np.ones(300), Tolerance(None, squared=False))
        assert (rotation is None) == (rank == 4)
        v = solve(rhs)
        assert v.shape == (rank, *sides)
        found.append(v if rotation is None else rotation @ v)
    expected = np.linalg.lstsq(rows, rhs, rcond=1e-10)[0]
    for w in found:
        np.testing.assert_allclose(w, expected, atol=1e-13)


def test_a_geometry_by_trees_is_the_geometry(monkeypatch):
    tasks = fg.families.rank_one(T=300, d=6, seed=1)
    plain = tasks.geometry
    monkeypatch.setattr(triangles, "TALL", 500)
    monkeypatch.setattr(triangles, "PART", 100)
    again = tasks.with_data(*zip(*map(tasks.task, range(300)), strict=True))
    np.testing.assert_allclose(again.geometry.solution, plain.solution, atol=1e-13)
    np.testing.assert_allclose(again.geometry.rows, plain.rows, atol=1e-15)
    np.testing.assert_allclose(again.geometry.plain.weakest, plain.plain.weakest, rtol=1e-12)
    assert again.realizability.holds


@pytest.mark.usefixtures("small_parts")
def test_workers_of_joblib_compute_the_same_tree(monkeypatch):
    rows, values = graded(1003, 4, 1e-9)
    alone = triangle_of(lambda cut: rows[cut], parts_of(rows))
    asked = []
    original = triangles.some_parts
    monkeypatch.setattr(triangles, "some_parts", lambda *given: asked.append(given) or original(*given))
    with parallel_config(n_jobs=2):
        together = triangle_of(lambda cut: rows[cut], parts_of(rows))
        found, _ = spectrum_of(rows)
    assert len(asked) == 2
    np.testing.assert_allclose(np.abs(together), np.abs(alone), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(found, values, rtol=1e-6)
