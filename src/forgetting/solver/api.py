"""`fg.solve`: a linear system, given as a matrix and a right-hand side, solved by row action."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

from forgetting._arrays import Array, Seed, as_count, as_number
from forgetting._progress import Progress, reports_progress
from forgetting.errors import InvalidInputError
from forgetting.orderings import Reshuffled
from forgetting.orderings.base import OrderingLike
from forgetting.solver.ending import concluded
from forgetting.solver.loop import Loop, Stops
from forgetting.solver.one_thread import one_thread
from forgetting.solver.request import Request, as_request
from forgetting.solver.solution import Solution

__all__ = ["solve"]

EPOCHS = 1000  # unless maxiter says otherwise


@reports_progress
def solve(
    A: Any,
    b: Any,
    tol: float = 1e-6,
    maxiter: int | None = None,
    x0: Any = None,
    damp: float = 0.0,
    blocks: Literal["auto", "rows"] | int | Sequence[Any] = "auto",
    ordering: OrderingLike | None = None,
    relaxation: float = 1.0,
    seed: Seed = 0,
    callback: Callable[[Array], Any] | None = None,
    memory: float | None = None,
    checkpoint: Any = None,
    *,
    atol: float | None = None,
    btol: float | None = None,
    method: str = "auto",
    average: int | Literal["all"] = 1,
    relations: Any = "=",
    bounds: tuple[Any, Any] | None = None,
    nearest: bool = False,
    max_steps: int | None = None,
    seconds: float | None = None,
    threads: int | None = None,
    progress: Progress = False,
) -> Solution:
    """Solve A x = b by row action: block Kaczmarz, which reads a few rows at a time.

    The result is the solution nearest to x0, for x0 = 0 the solution of least norm. If no x solves the system, the
    status says so, and x is the least-squares solution nearest to x0.

    Args:
        A: m x n: a NumPy array or anything that converts to one, or a scipy.sparse matrix.
        b: m numbers, or m x c for c right-hand sides.
        tol: the largest |b - A x| / |b| of a solution, for every right-hand side. For a least-squares solution, the
            largest |A^T r| / (|A| |r|) and the largest estimated relative error of x.
        maxiter: the largest number of epochs; an epoch makes as many visits as there are blocks. 1000 if left out.
        x0: the start; 0 if left out.
        damp: minimise |A x - b|^2 + damp^2 |x - x0|^2 instead, as `scipy.sparse.linalg.lsmr` does.
        blocks: "rows" visits rows; a number divides the rows into blocks of so many; a list of lists of row numbers is
            a partition of one's own; x is projected onto the solutions of a visited block. "auto" visits rows, in
            groups of up to 4 consecutive ones, and blocks of 64 rows if 8 or more right-hand sides are dense.
        ordering: in which order blocks are visited, one of `fg.orderings` or its name; if left out, every block once an
            epoch, in a new random order.
        relaxation: the factor of every step, between 0 and 2 (between 0 and 2 q if q blocks are averaged).
        seed: determines the random numbers: a number, a NumPy generator or SeedSequence, or None for a fresh number.
        callback: called as callback(x) after every entry of the history, with a copy of x; True ends the solve.
        memory: bytes for factorisations of blocks.
        checkpoint: the file that holds the state of a solve, so that a killed solve can go on.
        atol, btol: as in `lsmr`: a solution has |b - A x| <= atol |A| |x| + btol |b|, and a least-squares solution
            |A^T r| <= atol |A| |r|. If left out, atol is 0 for the first and `tol` for the second, and btol is `tol`.
        method: one of `fg.solver.methods`: "kaczmarz" solves systems; "multipliers", "extended" and "averaged" find
            least-squares solutions too. "auto" is "kaczmarz", then "multipliers" if no x solves the system.
        average: the number of blocks that make their steps from the same x, of which the average is taken; "all" is
            Cimmino's method. Several threads work on large blocks and many of them.
        relations: "=", ">=" or "<=", one for all rows, or a list of one for each row.
        bounds: (low, high), numbers or n numbers: x stays between them. (0, inf) for x >= 0.
        nearest: whether the result is the point nearest to x0 also if there are inequalities or bounds (Dykstra's
            method); otherwise the result is any point that satisfies them.
        max_steps: the largest number of visits to blocks.
        seconds: the longest time.
        threads: the number of threads, all cores if left out; the result does not depend on it.
        progress: True for a bar in a terminal or a notebook after the first second, or a function to be called as
            progress(name, done, total).

    Each row of an epoch costs two passes over its entries. The residual is computed, by one more pass over the matrix,
    only when the errors of visited rows say that it may be small enough.

    >>> import numpy as np, forgetting as fg
    >>> A = np.random.default_rng(0).standard_normal((200, 50))
    >>> solution = fg.solve(A, A @ np.ones(50), tol=1e-10)
    >>> solution.converged, np.abs(solution.x - 1).max() < 1e-8
    (True, np.True_)
    >>> fg.solve([[1.0], [1.0]], [0.0, 2.0]).status
    'the system is inconsistent: ...'
    >>> fg.solve([[1.0, 1.0]], [-1.0], bounds=(0, np.inf)).converged
    False
    """
    request = as_request(
        A,
        b,
        x0=x0,
        damp=damp,
        blocks=blocks,
        ordering=ordering,
        relaxation=relaxation,
        method=method,
        average=average,
        relations=relations,
        bounds=bounds,
        nearest=nearest,
        memory=memory,
        threads=threads,
        seed=seed,
    )
    if callback is not None and not callable(callback):
        raise InvalidInputError(f"callback: expected a function of x, got {callback!r:.60}")
    tol = as_number(tol, "tol", least=0)
    stops = Stops(
        residual=tol if btol is None else as_number(btol, "btol", least=0),
        matrix=0.0 if atol is None else as_number(atol, "atol", least=0),
        normal=tol if atol is None else as_number(atol, "atol", least=0),
        epochs=EPOCHS if maxiter is None else as_count(maxiter, "maxiter"),
        steps=None if max_steps is None else as_count(max_steps, "max_steps"),
        seconds=None if seconds is None else as_number(seconds, "seconds", least=0),
        callback=callback,
    )
    with one_thread():
        return _solved(request, stops, tol)


def _solved(request: Request, stops: Stops, tol: float) -> Solution:
    """Run the method; if "auto" finds that the residual stays where it is, go on with the method of multipliers."""
    method = request.method()
    limit = request.ordering.limit(method.system.sweeper.num_blocks)
    if limit is not None:
        stops = replace(stops, steps=limit if stops.steps is None else min(limit, stops.steps))
    loop = Loop(method, request.ordering, stops, request.seed, stall_ends=request.may_switch)
    ending = loop.run()
    if ending == "stalled":
        loop = loop.continued(request.fallback(method.x), Reshuffled())
        ending = loop.run()
    return concluded(request, loop, ending, tol)
