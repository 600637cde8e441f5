"""How a solve ended: the result, and the sentence that says so."""

from __future__ import annotations

import numpy as np

from forgetting._arrays import EPS
from forgetting.solver.loop import Loop
from forgetting.solver.methods import Measure
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
    converged = ending == "solved" or (ending == "least squares" and asked)
    consistent = {"solved": True, "least squares": False}.get(ending)
    if damped or (ending == "least squares" and not measured.excludes(loop.allowed())):
        consistent = None
    words = f"{status(ending, loop, measured)} after {_count(loop)}"
    switched = request.may_switch and method.least_squares
    return Solution(
        x=np.array(method.x),
        converged=converged,
        status=words,
        residual=measured.residual,
        consistent=consistent,
        normal=_normal(measured, loop.allowed()),
        error=measured.error,
        history=loop.history,
        guarantee=None,
        method=f"kaczmarz, then {method.name}" if switched else method.name,
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


def _count(loop: Loop) -> str:
    return f"{loop.epochs:.4g} epochs ({loop.rows} row steps)"


def status(ending: str, loop: Loop, measured: Measure) -> str:
    """The ending in a sentence, without the number of epochs."""
    residual, allowed = measured.residual, loop.allowed()
    if ending == "solved":
        return f"converged: relative residual {measured.left:.2g}, at most {allowed:.2g},"
    if ending == "least squares" and loop.method.system.damp:
        return (
            f"converged: x minimises |A x - b|^2 + damp^2 |x - x0|^2{_estimated(measured)}; relative residual "
            f"{residual:.4g},"
        )
    if ending == "least squares" and not measured.excludes(allowed):
        return (
            f"x is the least-squares solution with relative residual {residual:.4g}{_estimated(measured)}; whether "
            f"some x has {allowed:.2g} is not decided,"
        )
    if ending == "least squares":
        return (
            f"the system is inconsistent: no x has a relative residual of {allowed:.2g}; x is the least-squares "
            f"solution with relative residual {residual:.4g}{_estimated(measured)},"
        )
    reasons = {
        "epochs": f"stopped: maxiter = {loop.stops.epochs} epochs are over",
        "steps": "stopped: the steps are over",
        "seconds": f"stopped: {loop.stops.seconds:g} seconds are over" if loop.stops.seconds is not None else "",
        "stuck": "stopped: the residual falls no more",
        "callback": "stopped by the callback",
        "diverged": "diverged: x is not finite",
    }
    return f"{reasons[ending]}; relative residual {residual:.2g}, above {allowed:.2g}{_doubt(loop, measured)},"


def _estimated(measured: Measure) -> str:
    """The estimated error in words, if there is an estimate."""
    return "" if measured.error is None else f", up to an estimated relative error of {measured.error:.1g}"


def _doubt(loop: Loop, measured: Measure) -> str:
    """Why the residual may be as small as it gets."""
    size = float(np.sqrt(loop.method.system.sweeper.squares_sum) * np.linalg.norm(loop.method.x))
    floor = 8 * EPS * (1 + size / float(np.max(loop.method.sizes)))
    if measured.residual <= floor:
        return " but as small as rounding errors allow"
    return ""
