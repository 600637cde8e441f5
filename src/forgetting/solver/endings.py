"""How a solve ended, in a sentence: the `status` of a `Solution`."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from forgetting.core.numerical import EPS
from forgetting.solver.loop import Loop
from forgetting.solver.methods import Accuracy, Distance
from forgetting.solver.noise_rules import Rule


def status(ending: str, loop: Loop, measured: Accuracy, known: Distance | None) -> str:
    """The ending in a sentence, without the number of epochs."""
    residual, allowed = measured.residual, loop.allowed()
    if loop.rule is not None and ending not in ("solved", "diverged", "contradiction"):
        return _ruled(ending, loop, loop.rule, residual, loop.method.off(loop.rule.result(loop.method.x)))
    if ending == "solved" and loop.rule is not None:
        return (
            f"converged: solved to {allowed:.2g} before {loop.rule.title} stopped x; relative residual {residual:.2g},"
        )
    if ending == "solved" and residual > allowed:
        system = loop.method.system
        return (
            f"converged on {system.num_trusted} of {system.sweeper.units} rows, those that the ordering trusts: "
            f"relative residual {measured.left:.2g} there, {residual:.2g} on all rows,"
        )
    if ending == "solved" and measured.left > residual:
        return (
            f"converged: relative residual {residual:.2g} and {_distance(loop)} about {measured.left:.2g}, both at "
            f"most {allowed:.2g},"
        )
    if ending == "solved":
        return f"converged: relative residual {residual:.2g}, at most {allowed:.2g},"
    if ending == "contradiction":
        return (
            f"no x satisfies the constraints: {loop.method.contradiction} contradict each other; x is where row steps "
            f"ended, with relative residual {residual:.2g},"
        )
    if ending == "least squares" and loop.method.constrains:
        return _constrained(loop, measured, known)
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


def _ruled(ending: str, loop: Loop, rule: Rule, residual: float, off: float) -> str:
    """The ending of a solve with a rule in a sentence, without the number of epochs."""
    shorter = f", relaxation shortened to {loop.share:g} of what was asked for" if loop.share < 1 else ""
    last = f"relative residual {residual:.2g}{shorter},"
    if ending == "rule" and rule.blind:
        unseen = int(np.count_nonzero(rule.epochs == 0))
        of = f" of {unseen} of {len(rule.epochs)} right-hand sides" if len(rule.epochs) > 1 else ""
        return (
            f"stopped: the residual of x0 is most like white noise{rule.settings.words}, so that {rule.title} sees no "
            f"signal{of}: x0 is as good as noise allows, or the rows have no order; "
            f"{'their ' * bool(of)}x is x0; {last}"
        )
    if ending == "rule" and off > loop.stops.residual:
        return f"stopped by {rule.ended()} x is off the sets by {off:.2g} |x|; {last}"
    if ending == "rule":
        return f"converged: stopped by {rule.ended()} {last}"
    count = int(np.count_nonzero(rule.running))
    many = f" for {count} of {len(rule.epochs)} right-hand sides" if len(rule.epochs) > 1 else ""
    over = " over the constraints" if loop.method.least_squares and loop.method.system.limited else ""
    damped = bool(loop.method.system.damp)
    small = "noise= is too small" + " or damp= too large" * damped
    over += " with damp" * damped
    reasons = {
        "epochs": f"maxiter = {loop.stops.epochs} reached",
        "steps": f"{_plural(str(loop.stops.steps), 'visit')} made",
        "seconds": f"seconds = {loop.stops.seconds or 0:g} reached",
        "callback": "ended by the callback",
        "least squares": "x is the least-squares solution",
        "out of reach": f"{small}, the least-squares residual{over} is above it",
        "above the noise": "the residual falls no more; noise= may be too small, or the rows contradict each other",
    }
    return f"stopped: {reasons[ending]}; {rule.title} did not stop x{many}{rule.distance()}; {last}"


def _constrained(loop: Loop, measured: Accuracy, known: Distance | None) -> str:
    """What a least-squares solution over constraints is, in words."""
    method: Any = loop.method
    system, allowed = method.system, loop.allowed()
    limits = system.sweeper.limits
    parts = ["bounds"] * bool(len(limits.low)) + ["inequalities"] * bool(len(limits.relations))
    over = " and ".join(parts + ["sets"] * bool(system.sets))
    minimised = "|A x - b|^2" + (" + damp^2 |x - x0|^2" if system.damp else "")
    error = f", up to an estimated relative error of {known.error:.1g}" if known is not None else ""
    if known is None and method.estimates:
        error = ", as far as its moves and the KKT residual tell"
    words = f"x minimises {minimised} over the {over}{error}; relative residual {measured.residual:.4g}"
    least = getattr(method, "least", np.inf)
    if not system.damp and np.isfinite(least):
        words += f" (without the {over} {least:.2g})"
    words += f", KKT residual {measured.normal or 0.0:.1g}, {method.uniqueness},"
    if system.damp:
        precise = known is None or known.error <= loop.stops.normal
        return f"{'converged' if precise else 'stopped'}: {words}"
    if not measured.excludes(allowed):
        return f"{words} and whether some x has {allowed:.2g} is not decided,"
    begin = "no x solves the system" if least > allowed else f"the {over} exclude every solution of the system"
    if not np.isfinite(least):
        begin = f"no x within the {over}{_up_to(loop, measured)} has a relative residual of {allowed:.2g}"
    return f"the system is inconsistent: {begin}; {words}"


def _missed(loop: Loop, measured: Accuracy, known: Distance | None) -> str:
    """The numbers that are larger than allowed, in words."""
    system, allowed = loop.method.system, loop.allowed()
    if system.damp:
        if measured.normal is None:
            return "as x has not moved yet"
        sure = known is not None and isfinite(known.error)
        error = f" and a relative error of x of up to {known.error:.2g}" if known is not None and sure else ""
        said = f"|A^T r| / (|A| |r|) with the rows of damping {measured.normal:.2g}{error}"
        if measured.normal <= loop.stops.normal and (known is None or known.error <= loop.stops.normal):
            return (
                f"{said}, at most {loop.stops.normal:.2g}, but not yet for as many epochs as tell that x has converged"
            )
        return f"{said}, of which {loop.stops.normal:.2g} is allowed"
    if getattr(loop.method, "elsewhere", False) and measured.residual > allowed:
        return f"above {allowed:.2g}, and {_distance(loop)} is not known"
    if measured.residual > allowed:
        return f"above {allowed:.2g}{_doubt(loop, measured)}"
    if not np.isfinite(measured.left):
        return f"but {_distance(loop)} is not known"
    return f"but {_distance(loop)} may be {measured.left:.2g}, above {allowed:.2g}"


def _distance(loop: Loop) -> str:
    """The distance that must be small enough beside the residual, in words."""
    return f"the relative distance to the {'nearest point' if loop.method.system.nearest else 'sets'}"


def _up_to(loop: Loop, measured: Accuracy) -> str:
    """The length up to which no x solves the system, a power of ten, in words; see `Accuracy.excludes`."""
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


def _doubt(loop: Loop, measured: Accuracy) -> str:
    """Words on a residual that rounding errors keep from falling further; else none."""
    size = float(np.sqrt(loop.method.system.sweeper.squares_sum) * np.linalg.norm(loop.method.x))
    floor = 8 * EPS * (1 + size / float(np.max(loop.method.sizes)))
    if measured.residual <= floor:
        return ", but as small as rounding errors allow"
    return ""


def count(loop: Loop) -> str:
    """The epochs and the row steps that were made, in words."""
    steps = loop.rows // loop.method.system.sweeper.unit
    return f"{_plural(f'{loop.epochs:.4g}', 'epoch')} ({_plural(str(steps), 'row step')})"


def _plural(number: str, unit: str) -> str:
    return f"{number} {unit}" if number == "1" else f"{number} {unit}s"
