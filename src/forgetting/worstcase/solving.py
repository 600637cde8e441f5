"""Solving a worst-case program with clarabel (Goulart and Chen 2024), an interior-point method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import lsqr

from forgetting._arrays import Array
from forgetting.errors import NotSupportedError
from forgetting.worstcase.program import Program

__all__ = ["Solved", "clarabel", "solve"]


def clarabel() -> Any:
    """The module clarabel; an error says what to do if it is not installed."""
    try:
        import clarabel
    except ImportError:
        raise NotSupportedError(
            "worst_case needs clarabel, which is not installed: "
            "pip install clarabel, or pip install 'forgetting[worst]'"
        ) from None
    return clarabel


@dataclass(frozen=True)
class Solved:
    """An approximate solution of a program and of its dual.

    Attributes:
        moments: one for each name of the program, the first is 1.
        duals: for each matrix of the program, its multiplier, nearly positive semidefinite.
        multipliers: for each normal, its multiplier.
        primal, dual: both values.
    """

    moments: Array
    duals: list[Array]
    multipliers: Array
    primal: float
    dual: float
    status: str
    seconds: float
    iterations: int


def solve(program: Program, tol: float = 1e-9) -> Solved:
    """Solve a program."""
    solver = clarabel()
    width = len(program.names)
    heights = [matrix.size * (matrix.size + 1) // 2 for matrix in program.matrices]
    start = len(program.normals)
    forms = [(at, name, value) for at, normal in enumerate(program.normals) for name, value in normal.form.items()]
    rows, cols, data = ([np.array([form[part] for form in forms])] for part in range(3))
    for matrix, height in zip(program.matrices, heights, strict=True):
        rows.append(start + matrix.cols * (matrix.cols + 1) // 2 + matrix.rows)
        cols.append(matrix.names)
        data.append(np.where(matrix.rows == matrix.cols, 1.0, np.sqrt(2.0)) * matrix.factors)
        start += height
    full = sparse.csc_matrix(
        (np.concatenate(data), (np.concatenate(rows).astype(int), np.concatenate(cols).astype(int))), (start, width)
    )
    cones: list[Any] = [solver.NonnegativeConeT(len(program.normals))] if program.normals else []
    cones += [solver.PSDTriangleConeT(matrix.size) for matrix in program.matrices]
    settings = solver.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    unknown = width - 1
    found = solver.DefaultSolver(
        sparse.csc_matrix((unknown, unknown)), -program.objective[1:], -full[:, 1:].tocsc(),
        full[:, [0]].toarray().ravel(), cones, settings,
    ).solve()  # fmt: skip
    dual = _balanced(np.asarray(found.z), full[:, 1:], program.objective[1:])
    duals, at = [], len(program.normals)
    for matrix, height in zip(program.matrices, heights, strict=True):
        square = np.zeros((matrix.size, matrix.size))
        low = np.tril_indices(matrix.size)  # row by row of the lower triangle: column by column of the upper one
        square[low] = dual[at : at + height]
        square[low] /= np.where(low[0] == low[1], 1.0, np.sqrt(2.0))
        duals.append(square + np.tril(square, -1).T)
        at += height
    constant = float(program.objective[0])
    return Solved(
        np.concatenate([[1.0], found.x]), duals, dual[: len(program.normals)], constant - float(found.obj_val),
        constant - float(found.obj_val_dual), str(found.status), float(found.solve_time), int(found.iterations),
    )  # fmt: skip


def _balanced(dual: Array, moments: Any, objective: Array) -> Array:
    """The nearest multipliers whose forms cancel the objective: what is left of it counts in full in a proof.

    Interior-point methods end with small errors there. A multiplier that is no longer semidefinite afterwards costs
    less: a tenth of the errors, for convex sets.
    """
    return np.asarray(dual - lsqr(moments.T, objective + moments.T @ dual, atol=1e-14, btol=1e-14)[0])
