"""How a solve ended: the result, and the sentence that says so."""

from __future__ import annotations

from math import isfinite

import numpy as np

from forgetting.core.arrays import EPS
from forgetting.solver.guarantee import Guarantee, Promise, Terms, promised, smallest_eigenvalue, uncovered
from forgetting.solver.loop import Loop
from forgetting.solver.methods import Distance, Measure
from forgetting.solver.request import Request
from forgetting.solver.solution import Solution

__all__ = ["concluded"]


def concluded(request: Request, loop: Loop, ending: str, tol: float) -> Solution:
    """The result of a solve that ended for this reason; the residual is computed if it is not known."""
    method = loop.method
    with np.errstate(all="ignore"):
        measured = method.measure() if loop.measured is None or loop.unchecked else loop.measured
    if ending in ("epochs", "steps", "seconds", "callback") and measured.left <= loop.allowed():
        ending = "solved"
    damped = request.system.damp > 0
    asked = damped or (request.name != "auto" and method.least_squares)
    with np.errstate(all="ignore"):
        known = None if ending in ("solved", "diverged") else method.distance(decompose=False)
    precise = known is None or known.error <= loop.stops.normal
    converged = ending == "solved" or (ending == "least squares" and asked and precise)
    # rows that the ordering did not trust may be wrong, or not reached yet
    solves = ending == "solved" and measured.residual <= loop.allowed()
    consistent = True if solves else False if ending == "least squares" else None
    if damped or (ending == "least squares" and not measured.excludes(loop.allowed())):
        consistent = None
    words = f"{status(ending, loop, measured, known)} after {_count(loop)}"
    return Solution(
        x=np.array(method.x),
        converged=converged,
        status=words,
        residual=measured.residual,
        consistent=consistent,
        normal=_normal(measured, loop.allowed()),
        error=known.error if known is not None and isfinite(known.error) else None,
        history=loop.history,
        guarantee=guarantee_of(request, loop, consistent),
        method=f"{request.first.name}, then {method.name}" if loop.decides else method.name,
        ordering=request.ordering.in_words,
        blocks=request.blocks,
        rows=loop.rows,
        epochs=loop.epochs,
        seconds=loop.seconds,
        tol=tol,
        seed=request.seed,
    )


def _normal(measured: Measure, allowed: float) -> float | None:
    """The largest `normal`, of right-hand sides that are not solved if there are some."""
    return measured.normal_above(allowed) if measured.residual > allowed and measured.each else measured.normal


def guarantee_of(request: Request, loop: Loop, consistent: bool | None) -> Guarantee:
    """What the theorems promise of the steps that were made; computed when somebody looks at it."""
    system, sweeper = request.system, request.system.sweeper
    single = sweeper.row_steps
    steps = loop.rows if single else loop.steps
    reason = uncovered(
        sweeper,
        steps=steps,
        method=loop.method.name,
        consistent=consistent,
        damp=system.damp,
        sets=len(system.sets),
    )
    if reason is not None:
        return Guarantee(Promise(None, None, None, reason))
    m, n = sweeper.shape
    groups = single and sweeper.num_blocks < m
    outputs = system.b.shape[1] if system.b.ndim == 2 and request.ordering.adaptive else 1
    terms = Terms(
        ordering=None if groups else request.ordering,
        steps=steps,
        blocks=m if single else sweeper.num_blocks,
        dim=n * outputs,
        single=single,
        norms=sweeper.norms if not groups and (single or request.ordering.law.uses_norms) else None,
        relaxation=sweeper.relaxation,
        gap=smallest_eigenvalue(sweeper, request.ordering, loop.rows)
        if single and not groups and sweeper.relaxation == 1
        else None,
    )
    return Guarantee(lambda: promised(terms))


def _count(loop: Loop) -> str:
    return f"{_plural(f'{loop.epochs:.4g}', 'epoch')} ({_plural(str(loop.rows), 'row step')})"


def _plural(number: str, unit: str) -> str:
    return f"{number} {unit}" if number == "1" else f"{number} {unit}s"


def status(ending: str, loop: Loop, measured: Measure, known: Distance | None) -> str:
    """The ending in a sentence, without the number of epochs."""
    residual, allowed = measured.residual, loop.allowed()
    if ending == "solved" and residual > allowed:
        system = loop.method.system
        return (
            f"converged on {system.num_trusted} of {len(system.b)} rows, those that the ordering trusts: relative "
            f"residual {measured.left:.2g} there, {residual:.2g} on all rows,"
        )
    if ending == "solved" and measured.left > residual:
        return (
            f"converged: relative residual {residual:.2g} and {_distance(loop)} about {measured.left:.2g}, both at "
            f"most {allowed:.2g},"
        )
    if ending == "solved":
        return f"converged: relative residual {residual:.2g}, at most {allowed:.2g},"
    if ending == "least squares" and loop.method.system.damp:
        begin = "converged" if known is None or known.error <= loop.stops.normal else "stopped"
        return (
            f"{begin}: x minimises |A x - b|^2 + damp^2 |x - x0|^2{_estimated(known, loop)}; relative residual "
            f"{residual:.4g},"
        )
    if ending == "least squares" and not measured.excludes(allowed):
        return (
            f"x is the least-squares solution with relative residual {residual:.4g}{_estimated(known, loop)}; whether "
            f"some x has {allowed:.2g} is not decided,"
        )
    if ending == "least squares":
        return (
            f"the system is inconsistent: no x{_up_to(loop, measured)} has a relative residual of {allowed:.2g}; x is "
            f"the least-squares solution with relative residual {residual:.4g}{_estimated(known, loop)},"
        )
    reasons = {
        "epochs": f"stopped: maxiter = {loop.stops.epochs} reached",
        "steps": f"stopped: {_plural(str(loop.stops.steps), 'visit')} made",
        "seconds": f"stopped: seconds = {loop.stops.seconds or 0:g} reached",
        "stuck": "stopped: the residual falls no more",
        "callback": "stopped by the callback",
        "diverged": "diverged: x is not finite",
    }
    return f"{reasons[ending]}; relative residual {residual:.2g}, {_missed(loop, measured, known)},"


def _missed(loop: Loop, measured: Measure, known: Distance | None) -> str:
    """What is larger than allowed, in words."""
    system, allowed = loop.method.system, loop.allowed()
    if system.damp:
        sure = known is not None and isfinite(known.error)
        error = f" and a relative error of x of up to {known.error:.2g}" if known is not None and sure else ""
        return (
            f"|A^T r| / (|A| |r|) with the rows of damping {measured.normal:.2g}{error}, of which "
            f"{loop.stops.normal:.2g} is allowed"
        )
    if measured.residual > allowed:
        return f"above {allowed:.2g}{_doubt(loop, measured)}"
    if not np.isfinite(measured.left):
        return f"but {_distance(loop)} is not known"
    return f"but {_distance(loop)} may be {measured.left:.2g}, above {allowed:.2g}"


def _distance(loop: Loop) -> str:
    """What must be small enough beside the residual, in words."""
    return f"the relative distance to the {'nearest point' if loop.method.system.nearest else 'sets'}"


def _up_to(loop: Loop, measured: Measure) -> str:
    """The length up to which no x solves the system, a power of ten, in words; see `Measure.excludes`."""
    assert measured.each is not None
    sizes, frobenius = loop.method.sizes, float(np.sqrt(loop.method.system.sweeper.squares_sum))
    residuals, normals, scales = measured.each
    with np.errstate(all="ignore"):
        lengths = ((residuals - loop.allowed()) / normals - scales) * sizes / frobenius
    longest = float(np.max(np.where(np.isnan(lengths), 0.0, lengths)))
    return f" with |x| up to {10.0 ** np.floor(np.log10(longest)):.0e}" if np.isfinite(longest) else ""


def _estimated(known: Distance | None, loop: Loop) -> str:
    """The error of x in words."""
    if known is None:
        return ", as far as its moves and A^T r tell (its error is not known without a decomposition of A)"
    if not isfinite(known.error):
        return ", up to an error that is not known: rows are so different that the smaller are rounding errors"
    limited = ", as rounding errors allow" if known.error > loop.stops.normal else ""
    return f", up to an estimated relative error of {known.error:.1g}{limited}"


def _doubt(loop: Loop, measured: Measure) -> str:
    """Why the residual may be as small as it gets."""
    size = float(np.sqrt(loop.method.system.sweeper.squares_sum) * np.linalg.norm(loop.method.x))
    floor = 8 * EPS * (1 + size / float(np.max(loop.method.sizes)))
    if measured.residual <= floor:
        return ", but as small as rounding errors allow"
    return ""
