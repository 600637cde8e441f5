"""Matrices and right-hand sides that cannot be used are refused by name; numbers of odd sizes are solved or refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import forgetting as fg
from effort import pairwise
from forgetting.errors import InvalidInputError, ProblemFileError

GOOD = np.random.default_rng(0).standard_normal((6, 4))
SIDE = GOOD @ np.ones(4)


def at(array, place, value):
    array = np.array(array)
    array[place] = value
    return array


MATRICES = {
    "nan": (at(GOOD, (3, 1), np.nan), "A: entry at row 3, column 1 is nan"),
    "infinity": (at(GOOD, (0, 2), -np.inf), "A: entry at row 0, column 2 is -inf"),
    "sparse nan": (sparse.csr_array(at(GOOD, (3, 1), np.nan)), "A: entry at row 3, column 1 is nan"),
    "complex nan": (at(GOOD + 1j, (3, 1), np.nan), r"A: entry at row 3, column 1 is nan\+0j"),
    "sparse complex nan": (sparse.csr_array(at(GOOD + 1j, (3, 1), 1j * np.inf)), "A: entry at row 3, column 1 is nan"),
    "complex, too large": (at(GOOD + 1j, (2, 1), 1e160), "A: entry at row 2, column 1 is 1e.160.*too large"),
    "masked complex": (np.ma.masked_less(GOOD, 0) * 1j, "A: .* masked entries"),
    "text": ([["a", "b"]] * 6, "A: expected real numbers, got text such as 'a'"),
    "objects": (GOOD.astype(object), "A: expected real numbers, got dtype object"),
    "nothing": (None, "A: expected real numbers"),
    "ragged": ([[1.0, 2.0], [3.0]], "A: rows of different lengths"),
    "a vector": (np.ones(6), r"A: expected a matrix with rows and columns, got shape \(6,\)"),
    "a cube": (np.ones((6, 2, 2)), r"got shape \(6, 2, 2\)"),
    "no rows": (np.ones((0, 4)), r"got shape \(0, 4\)"),
    "no columns": (np.ones((6, 0)), r"got shape \(6, 0\)"),
    "masked": (np.ma.masked_less(GOOD, 0), "A: .* masked entries"),
    "too large": (GOOD * 1e160, "A: entries of size .* overflow when squared"),
    "too small": (GOOD * 1e-170, "A: entries of size .* vanish when squared"),
}
SIDES = {
    "nan": (at(SIDE, 2, np.nan), "b: entry 2 is nan"),
    "infinity": (at(SIDE, 5, np.inf), "b: entry 5 is inf"),
    "complex nan": (at(SIDE * 1j, 2, np.nan), r"b: entry \(2,\) is nan"),
    "complex, too short": (SIDE[:5] * 1j, r"A has 6 rows, but b has shape \(5,\); expected \(6,\), or \(6, c\)"),
    "nothing": (None, "b: expected real numbers"),
    "sparse": (sparse.csr_array(SIDE[:, None]), r"b is sparse; give b.toarray\(\)"),
    "too short": (SIDE[:5], r"A has 6 rows, but b has shape \(5,\); expected \(6,\), or \(6, c\)"),
    "a row": (SIDE[None], r"b has shape \(1, 6\)"),
    "no columns": (np.ones((6, 0)), r"b has shape \(6, 0\)"),
    "a cube": (np.ones((6, 1, 1)), r"b has shape \(6, 1, 1\)"),
    "a number": (1.0, r"b has shape \(\)"),
    "too large": (SIDE * 1e160, "b: entries of size .* overflow when squared"),
    "too small": (SIDE * 1e-170, "b: .* vanish"),
    "one too small": (np.column_stack([SIDE, SIDE * 1e-170]), "b: .* vanish"),
}
STARTS = {
    "too long": (np.ones(5), r"x0 has shape \(5,\); expected \(4,\) for A of shape \(6, 4\)"),
    "a column": (np.ones((4, 1)), r"x0 has shape \(4, 1\)"),
    "nan": (at(np.ones(4), 1, np.nan), "x0: entry 1 is nan"),
    "complex, too long": (np.ones(5) * 1j, r"x0 has shape \(5,\); expected \(4,\) for A of shape \(6, 4\)"),
}


@pytest.mark.parametrize("name", MATRICES)
def test_odd_matrices_are_named(name):
    matrix, message = MATRICES[name]
    with pytest.raises(InvalidInputError, match=message):
        fg.solve(matrix, SIDE)


@pytest.mark.parametrize("name", SIDES)
def test_odd_right_hand_sides_are_named(name):
    side, message = SIDES[name]
    with pytest.raises(InvalidInputError, match=message):
        fg.solve(GOOD, side)


@pytest.mark.parametrize("name", STARTS)
def test_odd_starts_are_named(name):
    start, message = STARTS[name]
    with pytest.raises(InvalidInputError, match=message):
        fg.solve(GOOD, SIDE, x0=start)


def test_names_of_no_files_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments, message in (
        ({"A": "A.npz"}, r"A\.npz: no such file"),
        ({"b": "side"}, "side: unknown ending of a file with b; use"),
        ({"b": "b.npy"}, r"b\.npy: no such file"),
        ({"x0": "origin"}, "origin: unknown ending of a file with x0; use"),
    ):
        with pytest.raises(ProblemFileError, match=message):
            fg.solve(**{"A": GOOD, "b": SIDE} | arguments)


def outcome(matrix, side, **options):
    """The solution, or None if the numbers are refused for their size."""
    try:
        return fg.solve(matrix, side, **options)
    except InvalidInputError as error:
        return None if "rescale" in str(error) else pytest.fail(str(error))


@pairwise(
    power=[-320, -170, -160, -150, -146, -140, -100, 100, 140, 146, 150, 153, 160, 200],
    what=["A", "b", "both"],
    options=[{}, {"blocks": 3}, {"method": "extended"}, {"damp": 0.0, "method": "multipliers"}],
)
def test_numbers_of_any_size_are_solved_or_refused(power, what, options):
    size = 10.0**power
    matrix = GOOD * (size if what != "b" else 1.0)
    side = SIDE * (size if what != "A" else 1.0)
    solution = outcome(matrix, side, tol=1e-9, **options)
    if abs(power) <= 140:
        assert solution is not None
    if solution is not None:
        assert solution.converged, solution.status
        wanted = (size if what != "A" else 1.0) / (size if what != "b" else 1.0)
        np.testing.assert_allclose(solution.x / wanted, np.ones(4), rtol=0, atol=1e-7)


@pytest.mark.parametrize("power", [-140, -100, 100, 140])
@pytest.mark.parametrize("what", ["A", "b", "both"])
@pytest.mark.parametrize("method", ["auto", "extended"])
def test_least_squares_with_numbers_of_any_size(power, what, method):
    off = SIDE + np.sin(np.arange(6))
    size = 10.0**power
    matrix = GOOD * (size if what != "b" else 1.0)
    solution = fg.solve(matrix, off * (size if what != "A" else 1.0), tol=1e-8, method=method)
    wanted = np.linalg.lstsq(GOOD, off, rcond=None)[0]
    scale = (size if what != "A" else 1.0) / (size if what != "b" else 1.0)
    assert solution.consistent is False, solution.status
    np.testing.assert_allclose(solution.x / scale, wanted, rtol=0, atol=1e-6)


def test_opposite_sizes_of_matrix_and_right_hand_side():
    """Numbers whose steps are floats are solved, though |x|^2 is not a float; others are refused."""
    off = SIDE + np.sin(np.arange(6))
    wanted = np.linalg.lstsq(GOOD, off, rcond=None)[0]
    for power in (-85, 85):
        solution = fg.solve(GOOD * 10.0**power, off * 10.0**-power, tol=1e-8)
        assert solution.consistent is False
        assert solution.error > 0
        np.testing.assert_allclose(solution.x * 10.0 ** (2 * power), wanted, rtol=0, atol=1e-6)
    for power in (-120, 120):
        with pytest.raises(InvalidInputError, match=r"row \d of A has the norm .* and b the entry .*; rescale A or b"):
            fg.solve(GOOD * 10.0**power, off * 10.0**-power)


@pytest.mark.parametrize("blocks", ["auto", 2, 3])
def test_rows_of_very_different_norms(blocks):
    """1e-8 beside 1e8: the small rows count in the solution, if the tolerance asks for them."""
    matrix = GOOD * np.array([1e-8, 1e8, 1e-8, 1e8, 1e-8, 1e-8])[:, None]
    solution = fg.solve(matrix, matrix @ np.ones(4), tol=1e-24, blocks=blocks, maxiter=300)
    np.testing.assert_allclose(solution.x, np.ones(4), rtol=0, atol=1e-6)


@pytest.mark.parametrize("size", [1e4, 1e8, 1e10, 1e100])
def test_a_block_of_dependent_rows_of_very_different_norms(size):
    matrix = GOOD * np.array([1 / size, size, 1 / size, size, 1 / size, 1 / size])[:, None]
    solution = fg.solve(matrix, matrix @ np.ones(4), tol=1e-12, blocks=6, method="kaczmarz")
    assert solution.converged, solution.status


def test_a_row_whose_square_vanishes_counts_as_zero():
    matrix = at(np.eye(2), (1, 1), 1e-200)
    solution = fg.solve(matrix, [1.0, 0.0])
    assert solution.converged
    assert solution.x.tolist() == [1.0, 0.0]
    assert fg.solve(matrix, [1.0, 1.0]).consistent is False


@pytest.mark.parametrize("method", ["auto", "multipliers", "direct"])
def test_a_damp_whose_square_is_no_number_is_refused(method):
    A = np.eye(3)
    with pytest.raises(InvalidInputError, match=r"damp must be less than 1e\+150, got 1e\+160"):
        fg.solve(A, np.ones(3), damp=1e160, method=method)
    assert np.allclose(fg.solve(A, np.ones(3), damp=1e149, method=method).x, 0, atol=1e-12)
