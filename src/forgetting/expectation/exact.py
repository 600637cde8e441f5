"""The exact methods: each turns a request into values, with a bound on their rounding error."""

from __future__ import annotations

import numpy as np

from forgetting._arrays import Array, IntArray
from forgetting.errors import NotSupportedError
from forgetting.expectation import independent, spectral, subsets
from forgetting.expectation.moments import Moments
from forgetting.expectation.request import Request
from forgetting.expectation.result import Outcome, Values
from forgetting.loop import Trajectory, whole_run
from forgetting.orderings import Reshuffled

__all__ = ["by_moments", "by_spectrum", "by_subsets", "by_the_run", "curve_at", "errors_of"]

EPS = float(np.finfo(np.float64).eps)


def by_moments(request: Request) -> Outcome:
    """Second moments, iterated."""
    request.require("moments")
    map_ = request.moment_map()
    values = independent.iterate(map_, request.geometry.start(request.w0), request.steps, {*request.names, "error"})
    detail = f"{'dual' if map_.dual else 'primal'} second moments of order {map_.size}, iterated"
    return _outcome(request, "moments", detail, values, _rounding(request, values, map_))


def by_spectrum(request: Request) -> Outcome:
    """Powers of the eigenvalues of Q."""
    request.require("spectral")
    map_ = request.moment_map(dual=False)
    start = request.geometry.start(request.w0)
    values, errors, how = spectral.solve_spectral(map_, start, request.steps, request.names)
    for name, value in values.items():  # the start is a solution, found from the data
        errors[name] = errors[name] + 8 * EPS * request.geometry.condition * np.abs(value)
    return _outcome(request, "spectral", f"the map Q on matrices of order {map_.size}, {how}", values, errors)


def by_subsets(request: Request) -> Outcome:
    """Second moments given which tasks were seen."""
    request.require("subsets")
    map_ = request.moment_map()
    start = request.geometry.start(request.w0)
    epochs = isinstance(request.ordering, Reshuffled)
    values = subsets.permutations(map_, start, request.steps, {*request.names, "error"}, epochs=epochs)
    states, _ = subsets.states_needed(request.geometry.counts, min(request.last, request.geometry.num_tasks))
    detail = f"{'dual' if map_.dual else 'primal'} second moments given which tasks were seen, {states:.0f} cases"
    return _outcome(request, "subsets", detail, values, _rounding(request, values, map_))


def by_the_run(request: Request) -> Outcome:
    """An ordering without randomness: one run says it all."""
    if not request.deterministic:
        raise NotSupportedError(f"{request.ordering} is random; use method='auto'")
    one = whole_run(
        request.problem,
        request.ordering,
        request.last,
        request.scheme,
        w0=request.w0,
        record_every=request.steps.tolist(),
    )
    where = np.searchsorted(one.steps, request.steps)
    values: Values = {}
    for name in request.names:
        if name == "loss":
            values[name] = one.losses[where]
        elif name == "task_losses":
            values[name] = one.loss_matrix[where]
        elif name == "error":
            values[name] = errors_of(one)[where]
        else:
            values[name] = curve_at(getattr(one, name), request.steps)
    return Outcome("deterministic", f"{request.ordering} has no randomness: one run", values, notes=one.remarks)


def errors_of(one: Trajectory) -> Array:
    """|w - w*|^2 at the recorded steps, with w* the solution nearest to the start; of scaled iterates, where scaled."""
    iterates = one.scaled_iterates
    return np.asarray(np.sum((iterates - one.problem.nearest_solution(iterates[0])) ** 2, axis=1))


def curve_at(curve: Array, steps: IntArray) -> Array:
    """Values at the given steps of a curve over 1, ..., k; NaN at step 0."""
    padded = np.concatenate([np.full((*curve.shape[:-1], 1), np.nan), curve], axis=-1)
    return np.asarray(padded[..., steps])


def _outcome(request: Request, method: str, detail: str, values: Values, doubts: Values) -> Outcome:
    """Keep what was asked for, and say so where a value is no larger than its rounding error."""
    if "forgetting" in values:  # after one step nothing has been forgotten, by definition
        values["forgetting"][request.steps == 1] = 0.0
    notes = []
    for name in request.names:
        value, doubt = values[name], doubts[name]
        if value.ndim == 1 and doubt[-1] > 0 and abs(value[-1]) <= doubt[-1]:
            above = np.flatnonzero(~(np.abs(value) <= doubt))
            first = int(request.steps[above[-1] + 1 if above.size else 0])
            notes.append(f"{name} from k = {first} is no larger than its error ({doubt[-1]:.1g}): its digits are noise")
    kept = {name: values[name] for name in request.names}
    return Outcome(method, detail, kept, {name: doubts[name] for name in request.names}, notes=notes)


def _rounding(request: Request, values: Values, map_: Moments) -> Values:
    """How far rounding can have moved iterated moments.

    Each step is off by a few eps, and the data themselves by one, which moves every eigenvalue of Q by as much: a
    relative error of k eps. The dual map is not normal, so that its eigenvalues move by up to the condition of the
    bases more. The start holds the solution, whose relative error is eps times that condition. In primal form, losses
    are sums that cancel, so there is eps R^2 E|z_k|^2 on top.
    """
    top = float(np.max(request.geometry.norms, initial=0.0)) ** 2
    floor = 0.0 if map_.dual else 8 * EPS * top * values["error"]
    condition = request.geometry.condition
    stretch = condition if map_.dual else 1.0
    grown = 4 * EPS * (stretch * request.steps + 4 * np.sqrt(map_.size) + 2 * condition)
    doubts = {}
    for name, value in values.items():
        shape = (-1, *[1] * (value.ndim - 1))
        doubts[name] = grown.reshape(shape) * np.abs(value) + np.broadcast_to(floor, len(grown)).reshape(shape)
    if map_.dual:  # there |z_k|^2 is |z_0|^2 less what was lost on the way
        doubts["error"] = grown * float(np.max(values["error"], initial=0.0))
    return doubts
