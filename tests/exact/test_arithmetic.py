"""Numbers of two floats and the linear algebra on them, against mpmath; and as many digits as it takes."""

from decimal import Decimal

import mpmath as mp
import numpy as np
import pytest

from forgetting.compute import twofold
from forgetting.expectation.engines.decimal_moments import settle


def lifted(pair):
    """The exact numbers that pairs of floats stand for."""
    high, low = (np.asarray(part) for part in pair)
    flat = [mp.mpf(float(a)) + mp.mpf(float(b)) for a, b in zip(high.ravel(), low.ravel(), strict=True)]
    return np.array(flat, dtype=object).reshape(high.shape)


def drawn(rng, *shape):
    """Random numbers whose low parts matter, of very different sizes."""
    high = rng.standard_normal(shape) * 10.0 ** rng.integers(-20, 20, shape)
    return high, high * 2.0**-54 * rng.uniform(-1, 1, shape)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_each_operation_is_off_by_at_most_its_unit(name):
    rng = np.random.default_rng(0)
    a, b = drawn(rng, 2000), drawn(rng, 2000)
    with mp.workdps(80):
        x, y, found = lifted(a), lifted(b), lifted(getattr(twofold, name)(*a, *b))
        true = {"add": x + y, "sub": x - y, "mul": x * y, "div": x / y}[name]
        scale = np.abs(x) + np.abs(y) if name in ("add", "sub") else np.abs(true)
        assert np.all(np.abs(found - true) <= twofold.UNIT * scale)


def test_roots_and_sums_of_opposite_signs():
    rng = np.random.default_rng(1)
    a = drawn(rng, 500)
    a = (np.abs(a[0]), np.abs(a[1]))
    with mp.workdps(80):
        x = lifted(a)
        assert np.all(np.abs(lifted(twofold.root(*a)) ** 2 - x) <= 4 * twofold.UNIT * x)
        series = (np.concatenate([a[0], -a[0]]), np.concatenate([a[1], -a[1]]))
        assert abs(lifted(twofold.total(series))[()]) <= 1000 * twofold.UNIT * np.sum(x)


def test_rotations_keep_the_digits_of_small_rows():
    rng = np.random.default_rng(2)
    X = rng.integers(-5, 6, (3, 5)).astype(float) * np.array([[1e12], [1.0], [1e-9]])
    both, low = np.column_stack([X, np.zeros(3)]), np.zeros((3, 6))
    assert twofold.jacobi(both, low, both.shape[1] - 1)
    with mp.workdps(80):
        rows = lifted((both, low))[:, :5]
        found = sorted(mp.sqrt(mp.fsum(x**2 for x in row)) for row in rows)
        true = sorted(mp.svd_r(mp.matrix(X.tolist()), compute_uv=False))
        for one, other in zip(found, true, strict=True):
            assert abs(one / other - 1) < 1e-29


def test_rows_that_depend_on_others_are_left_with_nothing():
    X = np.array([[1.0, 2, 3], [2, 4, 6], [0, 1, 1], [1, 3, 4]])
    both, low = np.column_stack([X, X @ [1.0, 1, 1]]), np.zeros((4, 4))
    assert twofold.jacobi(both, low, both.shape[1] - 1)
    norms = np.sort(np.linalg.norm(both[:, :3], axis=1))
    assert np.all(norms[:2] < 1e-28)
    assert np.all(norms[2:] > 1e-1)


def test_least_squares_and_frames():
    rng = np.random.default_rng(3)
    A, b = rng.standard_normal((7, 3)), rng.standard_normal(7)
    x = twofold.least_squares(A, np.zeros_like(A), b, np.zeros_like(b))
    with mp.workdps(80):
        true = mp.lu_solve(mp.matrix(A.tolist()), mp.matrix(b.tolist()))
        assert max(abs(found - t) for found, t in zip(lifted(x), true, strict=True)) < 1e-29
    rows = rng.integers(-9, 10, (3, 7)).astype(float)
    rows = np.vstack([rows, rows[0] + rows[1]])
    frame, low, missed = twofold.orthonormal_frame(rows, np.zeros_like(rows), 3, len(rows), 3)
    gram = twofold.products(frame, low, frame, low)
    with mp.workdps(80):
        off = lifted(gram) - np.eye(3)
        assert max(abs(entry) for entry in off.ravel()) < 1e-30
    assert np.all(missed < 1e-29)


def test_more_digits_until_both_agree():
    from decimal import getcontext

    def compute():
        tiny = Decimal(10) ** (3 - getcontext().prec)  # falls with the precision: zero
        slow = Decimal(1) + (Decimal(10) ** -60 if getcontext().prec > 100 else Decimal(10) ** -3)
        return {"loss": np.array([tiny, slow, Decimal("nan")], dtype=object)}, Decimal(1)

    table, digits = settle(compute, {"loss": np.ones(3, dtype=bool)})
    value, doubt = table["loss"]
    assert digits == 480  # 60 and 120 digits do not agree on the second
    assert value[0] == 0
    assert 0 < doubt[0] < 1e-300
    assert value[1] == 1
    assert doubt[1] < 1e-15
    assert np.isnan(value[2])
