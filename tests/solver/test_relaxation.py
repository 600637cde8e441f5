"""The relaxation of a solve by epochs, averages with weights of rows and columns, and callbacks that see the state."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import forgetting as fg
from forgetting.errors import InvalidInputError, NotSupportedError

rng = np.random.default_rng(13)
A = rng.standard_normal((24, 10))
X = rng.standard_normal((10, 2))
B = A @ X
NOISY = B[:, 0] + 0.3 * rng.standard_normal(24)


def kaczmarz(relaxations, order):
    """Row steps as they are defined, an epoch for each relaxation."""
    x = np.zeros(10)
    for w in relaxations:
        for i in order:
            x = x + w * (B[i, 0] - A[i] @ x) / (A[i] @ A[i]) * A[i]
    return x


@pytest.mark.parametrize("matrix", [A, sparse.csr_array(A)], ids=["dense", "sparse"])
@pytest.mark.parametrize("given", [[1.5, 0.5, 0.1], lambda epoch: [1.5, 0.5, 0.1][min(epoch, 2)]])
def test_each_epoch_has_its_own_relaxation(matrix, given):
    found = fg.solve(matrix, B[:, 0], relaxation=given, ordering="cyclic", maxiter=5, tol=0, method="kaczmarz")
    np.testing.assert_allclose(found.x, kaczmarz([1.5, 0.5, 0.1, 0.1, 0.1], range(24)), rtol=1e-10)
    assert str(found.guarantee) == "no theorem here covers a relaxation that changes"


@pytest.mark.parametrize("ordering", ["greedy-distance", "greedy-residual"])
def test_orderings_that_look_at_x_see_the_steps_of_the_epoch(ordering):
    """The gaps that are kept up to date must be those of x."""
    options = {"ordering": ordering, "tol": 0, "maxiter": 3}
    changing = fg.solve(A, B[:, 0], relaxation=[1.0, 0.5, 0.25], **options)
    steps = []
    fg.solve(A, B[:, 0], relaxation=[1.0, 0.5, 0.25], callback=steps.append, **options)
    x, rows = np.zeros(10), np.sum(A**2, axis=1)
    for w in (1.0, 0.5, 0.25):
        for _ in range(24):
            gap = B[:, 0] - A @ x
            i = int(np.argmax(np.abs(gap) / (np.sqrt(rows) if ordering == "greedy-distance" else 1)))
            x = x + w * gap[i] / rows[i] * A[i]
    np.testing.assert_allclose(changing.x, x, atol=1e-8)


def test_auto_is_one_without_noise():
    np.testing.assert_array_equal(fg.solve(A, B[:, 0], relaxation="auto").x, fg.solve(A, B[:, 0]).x)


def test_auto_takes_the_share_of_the_residual_that_is_not_noise():
    seen, sigma, matrix = [np.zeros(10)], 0.4, A * np.linspace(0.5, 1.5, 24)[:, None]
    side = (NOISY + 49 * B[:, 0]) * np.linspace(0.5, 1.5, 24)
    found = fg.solve(matrix, side, noise=sigma, relaxation="auto", ordering="cyclic", callback=seen.append)
    assert found.converged
    assert len(seen) > 3
    assert "shortened" not in found.status
    ratios = [np.mean((side - matrix @ x) ** 2) / sigma**2 for x in seen]
    first = min(1.0, 0.06 * ratios[0] ** 0.25)
    assert min(1 - 1 / after for after in ratios[:-1]) < first
    squares = np.sum(matrix**2, axis=1)
    x = np.zeros(10)
    for k, after in enumerate(seen[1:]):
        w = first if k == 0 else max(0.05, min(first, 1 - 1 / ratios[k]))
        damping = squares.mean() * (1 / w - 1)
        for i in range(24):
            x = x + (side[i] - matrix[i] @ x) / (squares[i] + damping) * matrix[i]
        np.testing.assert_allclose(after, x, rtol=1e-8)
    greedy = fg.solve(matrix, side, noise=sigma, relaxation="auto", ordering="greedy-distance")
    assert greedy.converged


def test_auto_damps_projections_onto_blocks_that_would_magnify_noise():
    t = np.linspace(0, 1, 96)
    blur = np.exp(-(((t[:, None] - t) / 0.03) ** 2) / 2)
    truth = np.exp(-(((t - 0.4) / 0.1) ** 2))
    side = blur @ truth
    noise = 0.02 * np.linalg.norm(side) / np.sqrt(96)
    side = side + noise * np.random.default_rng(1).standard_normal(96)
    found = fg.solve(blur, side, noise=noise, relaxation="auto", blocks=8)
    assert found.converged, found.status
    assert np.linalg.norm(found.x - truth) < 0.2 * np.linalg.norm(truth)
    several = fg.solve(blur, np.column_stack([side, side]), noise=noise, relaxation="auto", blocks=8)
    np.testing.assert_allclose(several.x[:, 1], found.x, atol=1e-8)


@pytest.mark.parametrize("average", [3, "all"])
def test_auto_is_as_long_as_averages_allow(average):
    options = {"average": average, "blocks": "rows", "maxiter": 5000, "tol": 1e-8, "method": "kaczmarz"}
    auto = fg.solve(A, B[:, 0], relaxation="auto", **options)
    plain = fg.solve(A, B[:, 0], **options)
    assert auto.converged
    assert auto.epochs < plain.epochs / 1.5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("fast", "relaxation: expected 'auto'"),
        ([], "one number for each epoch"),
        ([1.0, 2.5], "relaxation of epoch 1 is 2.5; it must be greater than 0 and less than 2"),
        (lambda epoch: -1, r"relaxation\(0\) must be greater than 0"),
        (lambda epoch: None, r"relaxation\(0\) must be a number"),
    ],
)
def test_odd_relaxations_are_named(given, message):
    with pytest.raises(InvalidInputError, match=message):
        fg.solve(A, B[:, 0], relaxation=given)


# ------------------------------------------------------------------------------------------------------ SIRT and SART


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("bounds", [None, (-0.5, 0.5)])
def test_sirt_and_sart_are_their_formulas(make, bounds):
    matrix = A.copy()
    matrix[3], matrix[:, 2] = 0.0, 0.0
    views = {"sirt": [np.arange(24)], "sart": np.arange(24).reshape(4, 6)}
    for method, blocks in views.items():
        x = np.zeros((10, 2))
        for view in list(blocks) * 3:
            part = np.abs(matrix[view])
            with np.errstate(divide="ignore"):
                rows, columns = (np.where(sums > 0, 1 / sums, 0)[:, None] for sums in (part.sum(1), part.sum(0)))
            x = x + 0.7 * columns * (matrix[view].T @ (rows * (B[view] - matrix[view] @ x)))
            x = x if bounds is None else np.clip(x, *bounds)
        options = {"method": method, "relaxation": 0.7, "maxiter": 3, "tol": 0}
        options |= {"blocks": 6} if method == "sart" else {}
        if bounds is None:
            np.testing.assert_allclose(fg.solve(make(matrix), B, **options).x, x, atol=1e-10)
        single = fg.solve(make(matrix), B[:, 0], bounds=bounds, **options)
        np.testing.assert_allclose(single.x, x[:, 0], atol=1e-10)


@pytest.mark.parametrize("rows", [1, 4, 16])
@pytest.mark.parametrize("signs", [False, True])
def test_sart_comes_nearer_to_the_solution_where_the_sums_of_columns_nearly_vanish(rows, signs):
    rng, places = np.random.default_rng(5), np.arange(100)
    kernel = np.exp(-0.5 * ((places[:, None] - places) / 2) ** 2)
    kernel = kernel * rng.choice([-1.0, 1.0], kernel.shape) if signs else kernel
    views = [np.abs(kernel[start : start + rows]).sum(axis=0) for start in range(0, 100, rows)]
    truth, largest, errors = np.sin(places / 9), np.max(views, axis=0), [np.inf]

    def nearer(x):
        errors.append(np.sum(largest * (x - truth) ** 2))
        assert errors[-1] <= errors[-2]

    found = fg.solve(kernel, kernel @ truth, method="sart", blocks=rows, maxiter=60, tol=0, callback=nearer)
    assert found.residual < 0.2


def test_sart_takes_views_from_the_layout_of_the_residual():
    by_shape = fg.solve(A, B[:, 0], method="sart", residual_shape=(4, 6), maxiter=3)
    np.testing.assert_array_equal(by_shape.x, fg.solve(A, B[:, 0], method="sart", blocks=6, maxiter=3).x)


def test_simultaneous_methods_say_what_they_need():
    with pytest.raises(InvalidInputError, match="method='sart' needs the number of rows of a view"):
        fg.solve(A, B, method="sart")
    with pytest.raises(NotSupportedError, match="method='sirt' makes the steps of all rows at once"):
        fg.solve(A, B, method="sirt", blocks=3)
    for options, message in (
        ({"average": 2}, "leave average= out"),
        ({"nearest": True}, "leave nearest=True out"),
        ({"relations": ">="}, "leave method='sirt' out"),
    ):
        with pytest.raises(NotSupportedError, match=message):
            fg.solve(A, B[:, 0], method="sirt", **options)


# ---------------------------------------------------------------------------------------------------------- callbacks


def test_a_callback_with_a_state_sees_computed_residuals():
    states, pairs = [], []

    def alone(state):
        states.append(state)

    def both(x, state):
        pairs.append((x, state))
        return state.epoch >= 4

    plain = fg.solve(A, B[:, 0], callback=alone)
    assert len(states) == len(plain.history)
    for state in states:
        x, _, residual, elapsed = state
        assert np.isclose(residual, np.linalg.norm(B[:, 0] - A @ x) / np.linalg.norm(B[:, 0]))
        assert elapsed > 0
    assert [state.epoch for state in states] == plain.history.epoch.tolist()
    np.testing.assert_array_equal(plain.x, fg.solve(A, B[:, 0]).x)  # looking changes nothing
    ended = fg.solve(A, B[:, 0], callback=both)
    assert ended.epochs == 4
    assert all(x is state.x for x, state in pairs)
    assert ended.status.startswith("stopped by the callback")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"callback": lambda: None}, "callback is called with x: too many"),
        ({"callback": lambda x, y: None}, "callback is called with x: missing a required argument: 'y'"),
        ({"callback": lambda x, y, state: None}, "callback is called with x and state=: missing"),
        ({"relaxation": lambda: 1.0}, "relaxation is called with the number of the epoch: too many"),
    ],
)
def test_functions_that_cannot_be_called_are_refused_before_the_first_step(options, message):
    with pytest.raises(InvalidInputError, match=message):
        fg.solve(A, B[:, 0], **options)
