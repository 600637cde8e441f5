"""Solving a worst-case program with clarabel (Goulart and Chen 2024), an interior-point method.

clarabel answers no signal while it works. What may take longer than a second is solved in a process of its own, which
ends with the call, whether that returns, raises or is interrupted, and with the process that called.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import lsqr

from forgetting.compute.workers import end_with
from forgetting.core.arrays import Array
from forgetting.core.extras import module_for
from forgetting.errors import WorkerError
from forgetting.worstcase.program import Program

LONG = 1200  # rows that may take longer than a second
SERVE = "import sys; sys.path[:] = sys.argv[1:]; from forgetting.worstcase.solving import serve; serve()"


def clarabel() -> Any:
    """The module clarabel; an error says what to do if it is not installed."""
    return module_for("worst_case", "clarabel")


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


def solve(program: Program, tol: float = 1e-9) -> Solved:
    """Solve a program."""
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
    sizes = [matrix.size for matrix in program.matrices]
    posed = _Program(full, program.objective, len(program.normals), sizes, tol)
    solution = _solution(posed) if start < LONG or not sys.executable else _solved_apart(posed)
    dual = _balanced(solution.z, full[:, 1:], program.objective[1:])
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
        np.concatenate([[1.0], solution.x]), duals, dual[: len(program.normals)], constant - solution.primal,
        constant - solution.dual, solution.status,
    )  # fmt: skip


class _Program(NamedTuple):
    """Numbers for clarabel: `full` y, y[0] = 1, has nonnegative rows first, then triangles of matrices."""

    full: Any
    objective: Array
    normals: int
    sizes: list[int]
    tol: float


class _Solution(NamedTuple):
    x: Array
    z: Array
    primal: float
    dual: float
    status: str


def _solution(posed: _Program) -> _Solution:
    solver = clarabel()
    cones: list[Any] = [solver.NonnegativeConeT(posed.normals)] if posed.normals else []
    cones += [solver.PSDTriangleConeT(size) for size in posed.sizes]
    settings = solver.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = posed.tol
    unknown = len(posed.objective) - 1
    end = solver.DefaultSolver(
        sparse.csc_matrix((unknown, unknown)), -posed.objective[1:], -posed.full[:, 1:].tocsc(),
        posed.full[:, [0]].toarray().ravel(), cones, settings,
    ).solve()  # fmt: skip
    return _Solution(np.asarray(end.x), np.asarray(end.z), float(end.obj_val), float(end.obj_val_dual), str(end.status))


def _solved_apart(posed: _Program) -> _Solution:
    """The solution by another process, for which this one waits where signals are answered."""
    command = [sys.executable, "-I", "-c", SERVE, *(path or os.getcwd() for path in sys.path)]
    question: bytes | None = pickle.dumps(posed)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    ) as child:
        try:
            answer = None
            while answer is None:
                with suppress(subprocess.TimeoutExpired):
                    answer, _ = child.communicate(question, timeout=0.1)
                question = None  # it was sent, or is kept until it is
        finally:
            child.kill()
            child.wait()
    if child.returncode:
        raise WorkerError(
            f"the process that solves the semidefinite program died with code {child.returncode} (killed, or out of "
            "memory); use a smaller k, or a machine with more memory"
        )
    solution: _Solution = pickle.loads(answer)
    return solution


def serve() -> None:
    """Solve the program that comes by the standard input, unless the process that asks for it ends before."""
    end_with(os.getppid())
    posed = pickle.load(sys.stdin.buffer)  # from the process that started this one
    pickle.dump(_solution(posed), sys.stdout.buffer)


def _balanced(dual: Array, moments: Any, objective: Array) -> Array:
    """The nearest multipliers whose forms cancel the objective: what is left of it counts in full in a proof.

    Interior-point methods end with small errors there. A multiplier that is no longer semidefinite afterwards costs
    less: a tenth of the errors, for convex sets.
    """
    return np.asarray(dual - lsqr(moments.T, objective + moments.T @ dual, atol=1e-14, btol=1e-14)[0])
