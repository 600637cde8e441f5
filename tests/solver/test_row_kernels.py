"""The compiled row steps against a plain loop with the same formulas, and block steps against least squares."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from forgetting.solver.block_sweeper import BlockSweeper
from forgetting.solver.rows import NO_RELATIONS, NONE, Limits, Rows
from forgetting.solver.sweepers import Iterate, RowSweeper, scales

M, N, COLUMNS = 9, 6, 40  # more right-hand sides than one panel has


def matrix(seed=0):
    """Rows with zeros among their entries; row 4 is zero."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((M, N)) * (rng.random((M, N)) < 0.6)
    A[4] = 0.0
    return A


def rows_of(kind, A):
    return Rows(A if kind == "dense" else csr_array(A))


def sweep(kind, A, b, scale, shrink, limits, order, x, duals, clipped):
    """The row steps as written in the docstring of the kernels; x, duals and clipped change."""
    seen = 0.0
    for i in order:
        if i < 0:
            x[-1 - i] = 0.0
            continue
        if scale[i] == 0:
            continue
        error = b[i] - A[i] @ x - (shrink * duals[i] if len(duals) else 0.0)
        relation = limits.relations[i] if len(limits.relations) else 0
        step = scale[i] * error
        violated = error if relation == 0 else max(error, 0.0) if relation > 0 else min(error, 0.0)
        if relation and len(duals):
            step = max(step, -duals[i]) if relation > 0 else min(step, -duals[i])
        elif relation:
            step = scale[i] * violated
        seen += violated**2
        x += step * A[i]
        if len(duals):
            duals[i] += step
        if len(limits.low):
            touched = np.ones(N, dtype=bool) if kind == "dense" else A[i] != 0
            wanted = x + clipped if len(clipped) else x.copy()
            inside = np.clip(wanted, limits.low, limits.high)
            x[touched] = inside[touched]
            if len(clipped):
                clipped[touched] = (wanted - inside)[touched]
    return seen


RELATIONS = np.array([0, 1, -1, 1, -1, 0, 1, -1, 1], dtype=np.int8)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("remembers", [False, True])
@pytest.mark.parametrize("bounded", ["", "cut", "kept"])
@pytest.mark.parametrize("shrink", [0.0, 0.7])
def test_row_steps(kind, mixed, remembers, bounded, shrink):
    A, rng = matrix(), np.random.default_rng(1)
    b, x = rng.standard_normal(M), rng.standard_normal(N)
    low, high = -rng.random(N) / 2, rng.random(N) / 2
    limits = Limits(RELATIONS if mixed else NO_RELATIONS, *((low, high) if bounded else (NONE, NONE)))
    duals = np.zeros(M) if remembers else NONE
    clipped = np.zeros(N) if bounded == "kept" else NONE
    scale = scales(np.sum(A * A, axis=1), shrink, 1.2)
    order = rng.integers(M, size=60)
    order[[7, 20]] = -1, -N  # ridge rows
    ours, theirs = (x.copy(), duals.copy(), clipped.copy()), (x.copy(), duals.copy(), clipped.copy())
    seen = rows_of(kind, A).sweep(b, scale, shrink, limits, order, *ours)
    wanted = sweep(kind, A, b, scale, shrink, limits, order, *theirs)
    np.testing.assert_allclose(seen, [wanted], rtol=1e-12)
    for got, expected in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)
    assert not np.allclose(ours[0], x)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("remembers", [False, True])
def test_row_steps_of_several_right_hand_sides(kind, remembers):
    A, rng = matrix(), np.random.default_rng(2)
    b, x = rng.standard_normal((M, COLUMNS)), rng.standard_normal((N, COLUMNS))
    duals = np.zeros((M, COLUMNS)) if remembers else NONE
    shrink = 0.3
    scale = scales(np.sum(A * A, axis=1), shrink, 1.0)
    order = rng.integers(M, size=50)
    order[[3, 30]] = -2, -N
    result, kept = x.copy(), duals.copy()
    seen = rows_of(kind, A).sweep(b, scale, shrink, Limits(), order, result, kept)
    for column in range(COLUMNS):
        own, dual = x[:, column].copy(), duals[:, column].copy() if remembers else NONE
        wanted = sweep(kind, A, b[:, column], scale, shrink, Limits(), order, own, dual, NONE)
        np.testing.assert_allclose(result[:, column], own, rtol=0, atol=1e-12)
        np.testing.assert_allclose(seen[column], wanted, rtol=1e-12)
        if remembers:
            np.testing.assert_allclose(kept[:, column], dual, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("columns", [None, 1, COLUMNS])
@pytest.mark.parametrize("order", [[], [3], [2, 3, 4], [8, 0, 0, 5]])
def test_products_with_rows(kind, columns, order, monkeypatch):
    monkeypatch.setattr("forgetting.solver.rows.SLICE", 2 * N)  # several parts
    A, rng, picked = matrix(), np.random.default_rng(3), np.array(order, dtype=np.int64)
    rows = rows_of(kind, A)
    chosen = A[picked] if order else A
    x = rng.standard_normal(N if columns is None else (N, columns))
    weights = rng.standard_normal(len(chosen) if columns is None else (len(chosen), columns))
    np.testing.assert_allclose(rows.products(x, picked, 2), chosen @ x, rtol=0, atol=1e-13)
    np.testing.assert_allclose(rows.combined(weights, picked, 2), chosen.T @ weights, rtol=0, atol=1e-13)
    np.testing.assert_allclose(rows.squares, np.sum(A * A, axis=1), rtol=1e-14)
    np.testing.assert_allclose(rows.transposed().dense(slice(None)), A.T)


@pytest.mark.parametrize("shrink", [0.0, 0.7])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_groups_of_rows_are_their_rows_one_after_another(kind, shrink):
    """A zero row within a group, and a last group of one row; dense groups of four have a kernel of their own."""
    A, b = matrix(), np.arange(M, dtype=float)
    single, groups = RowSweeper(rows_of(kind, A)), RowSweeper(rows_of(kind, A), size=4)
    assert (single.num_blocks, groups.num_blocks) == (9, 3)
    assert groups.rows_in(np.array([2, 0, 1])) == 9
    duals = np.linspace(-1, 1, M) if shrink else np.empty(0)
    one, other = (Iterate(np.ones(N), duals.copy(), shrink=shrink) for _ in range(2))
    seen = single.sweep(np.array([8, 0, 1, 2, 3, 4, 5, 6, 7]), b, one), groups.sweep(np.array([2, 0, 1]), b, other)
    np.testing.assert_allclose(one.x, other.x, rtol=0, atol=1e-12)
    np.testing.assert_allclose(one.duals, other.duals, rtol=0, atol=1e-12)
    np.testing.assert_allclose(*seen, rtol=1e-12)


def dependent():
    A = matrix(5)
    A[2] = A[0] - 2 * A[1]
    A[7] = 1e-6 * A[6]
    return A


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("A", [matrix(4), dependent(), 1e-9 * matrix(4)], ids=["", "dependent rows", "small"])
@pytest.mark.parametrize("columns", [None, COLUMNS])
def test_block_steps_are_projections(kind, A, columns):
    rng = np.random.default_rng(6)
    x = rng.standard_normal(N if columns is None else (N, columns))
    b = A @ rng.standard_normal(x.shape)
    blocks = (np.array([0, 1, 2]), np.array([6, 7, 4]), np.array([8]), np.array([5, 3]))
    sweeper = BlockSweeper(rows_of(kind, A), blocks=blocks, relaxation=0.8)
    iterate = Iterate(x.copy())
    seen = 0.0
    for block in (1, 0, 3, 1, 2):
        part = A[blocks[block]]
        gap = b[blocks[block]] - part @ x
        seen = seen + np.sum(gap**2, axis=0)
        x = x + 0.8 * np.linalg.lstsq(part, gap, rcond=1e-12)[0]
    got = sweeper.sweep(np.array([1, 0, 3, 1, 2]), b, iterate)
    np.testing.assert_allclose(iterate.x, x, rtol=0, atol=1e-9)
    np.testing.assert_allclose(got, np.atleast_1d(seen), rtol=1e-8)
    assert sweeper.rows_in(np.array([1, 0, 3, 1, 2])) == 12


@pytest.mark.parametrize("columns", [None, 3])
def test_damped_block_steps_solve_the_damped_block(columns):
    A, shrink = dependent(), 0.4
    rng = np.random.default_rng(7)
    x0 = rng.standard_normal(N if columns is None else (N, columns))
    b = rng.standard_normal(M if columns is None else (M, columns))
    iterate = Iterate(x0.copy(), np.zeros(b.shape), shrink=shrink)
    BlockSweeper(Rows(A), blocks=(np.arange(M),)).sweep(np.array([0]), b, iterate)
    wanted = np.linalg.solve(A.T @ A + shrink * np.eye(N), A.T @ b + shrink * x0)
    np.testing.assert_allclose(iterate.x, wanted, rtol=0, atol=1e-11)
    np.testing.assert_allclose(shrink * iterate.duals, b - A @ wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize("several", [False, True])
def test_distances_and_losses_of_blocks(several):
    A, rng = dependent(), np.random.default_rng(8)
    x = rng.standard_normal((N, 3) if several else N)
    b = A @ rng.standard_normal(x.shape)
    gap = b - A @ x
    norms = np.linalg.norm(A, axis=1)
    rows = RowSweeper(Rows(A))
    lengths = np.sqrt(np.sum(gap.reshape(M, -1) ** 2, axis=1))
    np.testing.assert_allclose(rows.losses(b, x), lengths**2 / 2, rtol=1e-12)
    np.testing.assert_allclose(rows.distances(b, x), np.where(norms > 0, lengths / np.where(norms > 0, norms, 1), 0))
    parts = (np.array([0, 1, 2]), np.array([3, 4]), np.array([5, 6, 7, 8]))
    blocks = BlockSweeper(Rows(A), blocks=parts)
    wanted = [np.linalg.norm(np.linalg.lstsq(A[part], gap[part], rcond=1e-12)[0]) for part in parts]
    np.testing.assert_allclose(blocks.distances(b, x), wanted, rtol=1e-7)
    np.testing.assert_allclose(blocks.losses(b, x), [np.sum(gap[part] ** 2) / 2 for part in parts], rtol=1e-12)
    np.testing.assert_allclose(blocks.norms, [np.linalg.norm(A[part], 2) for part in parts], rtol=1e-10)


@pytest.mark.parametrize("relaxation", [1.0, 0.7])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_blocks_of_several_right_hand_sides_are_those_of_one(kind, relaxation):
    """Dense blocks of consecutive rows have a kernel of their own; the last block has one row, and a row is zero."""
    A, rng = matrix(), np.random.default_rng(3)
    blocks = (np.arange(4), np.arange(4, 8), np.arange(8, 9))
    b, x, visits = rng.standard_normal((M, COLUMNS)), rng.standard_normal((N, COLUMNS)), np.array([2, 0, 1, 0])
    many = Iterate(x.copy())
    seen = BlockSweeper(rows_of(kind, A), blocks=blocks, relaxation=relaxation).sweep(visits, b, many)
    for o in range(COLUMNS):
        one = Iterate(x[:, o].copy())
        alone = BlockSweeper(rows_of(kind, A), blocks=blocks, relaxation=relaxation)
        np.testing.assert_allclose(seen[o], alone.sweep(visits, b[:, o].copy(), one)[0], rtol=1e-10)
        np.testing.assert_allclose(many.x[:, o], one.x, rtol=0, atol=1e-11)
