"""`fg.solve`: a linear system, solved by row action."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isfinite
from os import PathLike
from typing import Any, Literal

import numpy as np

from forgetting.compute.threads import one_thread
from forgetting.core.arrays import Seed, as_count, as_function, as_number
from forgetting.core.progress import Progress, reports_progress
from forgetting.orderings.base import OrderingLike
from forgetting.solver.checkpoints import Checkpoint, as_checkpoint
from forgetting.solver.endings import count, status
from forgetting.solver.guarantee import Guarantee, Promise, Terms, promised, smallest_eigenvalue, uncovered
from forgetting.solver.loop import LIMITS, Loop, Stops
from forgetting.solver.methods import Accuracy
from forgetting.solver.methods.base import norms
from forgetting.solver.relaxation import check_called
from forgetting.solver.request import SolveRequest, as_request
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
    relaxation: float | Literal["auto"] | Sequence[float] | Callable[[int], float] = 1.0,
    seed: Seed = 0,
    callback: Callable[..., Any] | None = None,
    memory: float | None = None,
    checkpoint: str | PathLike[str] | None = None,
    *,
    atol: float | None = None,
    btol: float | None = None,
    method: str = "auto",
    average: int | Literal["all"] = 1,
    relations: Any = "=",
    bounds: tuple[Any, Any] | None = None,
    sets: Any = (),
    nearest: bool = False,
    noise: Any = None,
    weights: Any = None,
    stop: str | None = None,
    tau: float = 1.02,
    residual_shape: Sequence[int] | None = None,
    max_steps: int | None = None,
    seconds: float | None = None,
    checkpoint_every: float = 5.0,
    threads: int | None = None,
    progress: Progress = False,
) -> Solution:
    """Solve A x = b by row action: block Kaczmarz, which reads a few rows at a time.

    The result is the solution nearest to x0, for x0 = 0 the solution of least norm. If no x solves the system, the
    status says so, and x is the least-squares solution nearest to x0.

    Args:
        A: m x n, real or complex: a NumPy array or anything that converts to one, or a scipy.sparse matrix; a path to
            an .npy file, to an .npz file (by scipy.sparse.save_npz, or with arrays data, indices, indptr, shape), or
            to a folder of such files, whose rows are stacked in the order of names; a np.memmap; an object with `shape`
            and row slices A[i:j], such as an array of h5py or zarr; a `LinearOperator`, which should have row slices or
            a method rows(start, stop): without them every row costs a product with the adjoint and m numbers of memory.
            What is not in memory, and would take more than half of `memory`, is streamed: read block by block, the next
            block while the current one is swept. An .npz file that is no part of a folder is read as a whole.
        b: m numbers, or m x c for c right-hand sides, or the name of a file with them (.npy, .npz, .mtx or text).
        tol: the largest |b - A x| / |b| of a solution, for every right-hand side: that says little of x if rows differ
            in size or A is ill-conditioned. For a least-squares or ridge solution, the largest |A^T r| / (|A| |r|) and
            the largest relative error of x: by a decomposition of a small matrix (see `method`), with damp by the
            gradient divided by damp^2, and else by how far x still moves, in which case the status says so.
        maxiter: the largest number of epochs; an epoch makes as many visits as there are blocks, and an
            iteration of "cgmn" is two. 1000 if left out.
        x0: the start, given as b is; 0 if left out.
        damp: minimise |A x - b|^2 + damp^2 |x - x0|^2 instead, as `scipy.sparse.linalg.lsmr` does.
        blocks: "rows" visits rows; a number divides the rows into blocks of so many; a list of lists of row numbers is
            a partition of one's own; x is projected onto the solutions of a visited block. "auto" visits rows, in
            groups of up to 4 consecutive ones, and blocks of 32 rows if 8 or more right-hand sides are dense. If A is
            streamed, a number is the size of the blocks of consecutive rows that are read, and each of their rows is
            visited, in random order; "auto" is what `memory` allows, up to 32 MiB.
        ordering: in which order blocks are visited, one of `fg.orderings` or its name. If left out, every block once an
            epoch, in one random order that is repeated; least-squares methods draw a new order for each epoch.
        relaxation: the factor of every step, between 0 and 2 (between 0 and 2 q if q blocks are averaged): a number; a
            sequence of one for each epoch, whose last one stays; a function of the epoch, from 0 on; "auto": with
            `noise` as long as the noise allows, from the residual of every epoch, and where steps are averaged from the
            largest that converges; 1 for single steps without noise. Small ones cost epochs and keep noise out of x.
        seed: determines the random numbers: a number, a NumPy generator or SeedSequence, or None for a fresh number.
        callback: called as callback(x) after every entry of the history, with a copy of x; True ends the solve. A
            function with a parameter named `state` gets a `SolveState` as that: x, epoch, residual and elapsed, whose
            residual is computed every time, by a pass over the matrix.
        memory: bytes for factorisations of blocks, and for the rows of A that are read from files, slices or operators,
            2^30 if left out. A streamed matrix has about three blocks in memory, and keeps what else fits.
        checkpoint: the .npz file that holds the state of the solve. A later call with the same arguments goes on where
            a killed one was, and has the same x and history (but for seconds) as an uninterrupted one, bit for bit on
            one kind of processor; tol, maxiter, max_steps and seconds may differ. A file of another system or other
            settings is an error (of a streamed matrix, 64 rows are compared). Adaptive orderings have no checkpoints.
        atol, btol: as in `lsmr`: a solution has |b - A x| <= atol |A| |x| + btol |b|, and a least-squares solution
            |A^T r| <= atol |A| |r|. If left out, atol is 0 for the first and `tol` for the second, and btol is `tol`.
        method: "kaczmarz" solves systems by row steps, "cgmn" by conjugate gradients on sweeps forth and back;
            "multipliers", "extended" and "averaged" find least-squares solutions by row steps, "cgls" by conjugate
            gradients on the normal equations; "direct" is a factorisation of the matrix; "sirt" (Gregor and Benson
            2008) makes the steps of all rows from the same x, "sart" (Andersen and Kak 1984) those of the rows of a
            block, weighted by sums of rows and columns. "auto" begins with "kaczmarz", or with "cgmn" where a matrix in
            memory with m n min(m, n) above 3e8 has fewer rows than columns. For such matrices "cgmn" goes on where row
            steps are slow. Where the residual falls by less than 3 % an epoch, because no x solves the system or it is
            ill-conditioned, "direct" goes on if m n min(m, n) is at most 3e8, else "cgls" ("multipliers" where a rule
            stops at the noise). With damp, "auto" begins with "multipliers", and "direct" goes on in the same way. Over
            bounds, inequalities and sets "active-set" minimises |A x - b|^2 + damp^2 |x - x0|^2 where the matrix is
            small and sets are polyhedra, else "projected": "auto" goes on with them in place of the others, and begins
            with them if there is damp.
        average: the number of blocks that make their steps from the same x, of which the average is taken; "all" is
            Cimmino's method. Several threads work on large blocks and many of them.
        relations: "=", ">=" or "<=", one for all rows, or a list of one for each row.
        bounds: (low, high), numbers or n numbers: x stays between them. (0, inf) for x >= 0. If no x between them
            solves the system, x minimises |A x - b|^2 over them, and the status says so; of the same kind are rows
            that are inequalities, and sets.
        sets: convex sets of `fg` that x must lie in, such as fg.Ball(centre, radius); x is projected onto each of them
            once an epoch.
        nearest: whether the result is the point nearest to x0 also if there are inequalities, bounds or sets (Dykstra's
            method); otherwise the result is any point that satisfies them.
        noise: the standard deviation of the noise in b: a number, one for each row (0 for exact rows, which must hold
            to `tol`, and onto which x is projected), or ("relative", 0.05) for noise of the norm 0.05 |b|. The solve
            then stops by a rule, on the way to a least-squares solution and not at it. Rows of unequal noise are
            divided by sigma_i / max sigma, in residuals and in a copy of a matrix in memory.
        weights: numbers w_i >= 0, one for each row: the rows of A x = b are multiplied by sqrt(w_i), so that least
            squares minimise sum_i w_i (b_i - a_i.x)^2 and residuals are those of weighted rows. Single projections stay
            the same. A matrix in memory is copied. Not together with `noise`, which weighs rows as 1 / sigma_i^2.
        stop: the rule, judged after every epoch on computed residuals, for each right-hand side on its own (x of a
            stopped one is kept): "discrepancy", which is that of `noise`, stops when sum_i (r_i / sigma_i)^2 <= tau^2 m
            over the m rows that are neither zero nor exact; "ncp" takes the x whose residual is most like white noise,
            and needs no `noise`; "monotone" stops before x may move away from the solution, for averaged methods only.
        tau: how many times the noise a residual may be.
        residual_shape: the layout of the rows for "ncp", such as (angles, detectors), and the views of "sart". If left
            out, all rows are one series, and the status says so.
        max_steps: the largest number of visits to blocks.
        seconds: the longest time, looked at after every epoch, or part of an epoch of a tall matrix.
        checkpoint_every: seconds between two writes of the checkpoint, at least (0: after every epoch and every block
            of a streamed matrix); the end of a solve is always written.
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
    tol = as_number(tol, "tol", least=0)
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
        sets=sets,
        nearest=nearest,
        memory=memory,
        threads=threads,
        seed=seed,
        noise=noise,
        weights=weights,
        stop=stop,
        tau=tau,
        residual_shape=residual_shape,
        tol=tol,
    )
    wrapped, sees_state = (None, False) if callback is None else _callback(callback)
    stops = Stops(
        residual=tol if btol is None else as_number(btol, "btol", least=0),
        matrix=0.0 if atol is None else as_number(atol, "atol", least=0),
        normal=tol if atol is None else as_number(atol, "atol", least=0),
        epochs=EPOCHS if maxiter is None else as_count(maxiter, "maxiter"),
        steps=None if max_steps is None else as_count(max_steps, "max_steps"),
        seconds=None if seconds is None else as_number(seconds, "seconds", least=0),
        callback=wrapped,
        sees_state=sees_state,
    )
    pause = as_number(checkpoint_every, "checkpoint_every", least=0)
    with one_thread():
        return _solved(request, stops, tol, None if checkpoint is None else as_checkpoint(checkpoint, pause, request))


def _callback(callback: Callable[..., Any]) -> tuple[Callable[[Any], Any], bool]:
    """The callback of one argument, and whether that is a `SolveState` instead of x."""
    as_function(callback, "callback")
    try:
        names = list(inspect.signature(callback).parameters)
    except (TypeError, ValueError):  # a compiled function without a signature
        names = []
    if "state" not in names:
        check_called(callback, "callback", "x", None)
        return callback, False
    if names != ["state"]:
        check_called(callback, "callback", "x and state=", None, state=None)
    if names == ["state"]:
        return lambda state: callback(state=state), True
    return lambda state: callback(state.x, state=state), True


def _solved(request: SolveRequest, stops: Stops, tol: float, checkpoint: Checkpoint | None) -> Solution:
    """Run the method; if "auto" finds that the residual falls too slowly, go on with another one."""
    limit = request.ordering.limit(request.system.sweeper.num_blocks)
    if limit is not None:
        stops = replace(stops, steps=limit if stops.steps is None else min(limit, stops.steps))
    loop = request.loop(stops) if checkpoint is None else checkpoint.start(request, stops)
    ending = loop.resumed_ending() or loop.run()
    while ending in ("stalled", "slow") or (ending == "above the noise" and request.falls_back and not loop.decides):
        following = request.fallback(loop.method.x, ending)
        loop = loop.continued(following, following.usual_order())
        if checkpoint is not None:
            checkpoint.switched = True
        ending = loop.run()
    if checkpoint is not None and loop.save is not None and ending != "diverged":
        checkpoint.save(loop, always=True)
    return _concluded(request, loop, ending, tol)


def _concluded(request: SolveRequest, loop: Loop, ending: str, tol: float) -> Solution:
    """The result of a solve that ended for this reason; the residual is computed if it is not known."""
    method = loop.method
    ending, measured, history = loop.at_the_end(ending)
    x, rule = np.array(method.x), loop.rule
    if rule is not None and ending != "diverged":
        x = rule.result(x, solved=ending == "solved")
        residual = float(np.max(norms(request.system.sweeper.gap(request.system.b, x)) / method.sizes))
        measured = Accuracy(residual, measured.left if ending == "solved" else np.inf)
    if ending in LIMITS and measured.left <= loop.allowed():
        ending = "solved"
    damped = request.system.damp > 0
    wanted = damped or (request.name != "auto" and method.least_squares)
    with np.errstate(all="ignore"):
        known = None if rule is not None or ending in ("solved", "diverged") else method.distance(decompose=False)
    precise = known is None or known.error <= loop.stops.normal
    ruled = ending == "rule" and rule is not None and not rule.blind and method.off(x) <= tol
    converged = ending == "solved" or ruled or (ending == "least squares" and wanted and precise)
    # rows that the ordering did not trust may be wrong, or not reached yet
    solves = ending == "solved" and measured.residual <= loop.allowed()
    consistent = True if solves else False if ending in ("least squares", "contradiction") else None
    if damped or rule is not None or (ending == "least squares" and not measured.excludes(loop.allowed())):
        consistent = None
    words = f"{status(ending, loop, measured, known)} after {count(loop)}"
    return Solution(
        x=request.system.shown(x),
        converged=converged,
        status=words,
        residual=measured.residual,
        consistent=consistent,
        normal=_normal(measured, loop.allowed()),
        error=known.error if known is not None and isfinite(known.error) else None,
        history=history,
        guarantee=_guarantee(request, loop, consistent),
        method=", then ".join((*loop.earlier, method.name)),
        ordering=request.ordering.in_words,
        blocks=request.blocks,
        rows=loop.rows // request.system.sweeper.unit,
        epochs=loop.epochs,
        seconds=loop.seconds,
        tol=tol,
        seed=request.seed,
        rule=None if rule is None else rule.name,
        stop_epochs=np.empty(0) if rule is None else rule.epochs,
    )


def _normal(measured: Accuracy, allowed: float) -> float | None:
    """The largest `normal`, of right-hand sides that are not solved if there are some."""
    return measured.normal_above(allowed) if measured.residual > allowed and measured.each else measured.normal


def _guarantee(request: SolveRequest, loop: Loop, consistent: bool | None) -> Guarantee:
    """The guarantee of theorems for the steps that were made; computed when somebody looks at it."""
    system, sweeper = request.system, request.system.sweeper
    by_rows, single = sweeper.row_steps, sweeper.row_steps and sweeper.unit == 1  # a complex row is a block of two
    steps = loop.rows // sweeper.unit if by_rows else loop.steps
    reason = uncovered(
        sweeper,
        steps=steps,
        method=loop.method.name,
        consistent=consistent,
        damp=system.damp,
        sets=len(system.sets),
        ruled=loop.rule is not None,
        relaxed=loop.relaxation is not None and not loop.relaxation.constant,
    )
    if reason is not None:
        return Guarantee(Promise(None, None, None, reason))
    m, n = sweeper.units, sweeper.shape[1]
    groups = by_rows and sweeper.num_blocks < m
    outputs = system.b.shape[1] if system.b.ndim == 2 and request.ordering.adaptive else 1
    terms = Terms(
        ordering=None if groups else request.ordering,
        steps=steps,
        blocks=m if by_rows else sweeper.num_blocks,
        dim=n * outputs,
        single=single,
        norms=sweeper.norms if not groups and (by_rows or request.ordering.law.uses_norms) else None,
        relaxation=sweeper.relaxation,
        gap=smallest_eigenvalue(sweeper, request.ordering, loop.rows)
        if single and not groups and sweeper.relaxation == 1
        else None,
    )
    return Guarantee(lambda: promised(terms))
