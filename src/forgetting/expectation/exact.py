"""The exact methods: each turns a request into values, with a bound on their rounding error."""

from __future__ import annotations

import numpy as np

from forgetting._arrays import Array, IntArray
from forgetting.dynamics.loop import whole_run
from forgetting.dynamics.trajectory import Trajectory
from forgetting.errors import NotSupportedError
from forgetting.expectation import deep, independent, spectral, subsets
from forgetting.expectation.moments import Moments
from forgetting.expectation.request import Request
from forgetting.expectation.result import Outcome, Values
from forgetting.orderings import Reshuffled

__all__ = ["by_moments", "by_spectrum", "by_subsets", "by_the_run", "curve_at", "errors_of"]

EPS = float(np.finfo(np.float64).eps)
ENOUGH = 64 * EPS  # relative doubt below which nobody asks for more
SECONDS_PER_PRODUCT = 2.5e-6  # of decimal numbers, roughly, each time it is computed taken together


def by_moments(request: Request) -> Outcome:
    """Second moments, iterated."""
    request.require("moments")
    map_ = request.moment_map()
    found = _tables(independent.iterate(map_, request.steps, request.names))
    values, doubts, digits = _deepened(request, map_, *found)
    return _outcome(request, "moments", f"second moments of order {map_.dim}, iterated with {digits}", values, doubts)


def by_spectrum(request: Request) -> Outcome:
    """Powers of the eigenvalues of Q."""
    request.require("spectral")
    map_ = request.moment_map(homogeneous=True)
    values, doubts, how = spectral.solve_spectral(map_, map_.first[0] * map_.unit, request.steps, request.names)
    for name, value in values.items():
        doubts[name] = doubts[name] + _from_the_data(request, map_, name, value) + deep.TINIEST
    if "forgetting" in values:  # after one step nothing has been forgotten, by definition
        values["forgetting"][request.steps == 1] = doubts["forgetting"][request.steps == 1] = 0.0
    detail = f"the map Q on matrices of order {request.geometry.dim}, {how}; the uncertainty is an estimate"
    return _outcome(request, "spectral", detail, values, doubts)


def by_subsets(request: Request) -> Outcome:
    """Second moments given which tasks were seen."""
    request.require("subsets")
    map_ = request.moment_map()
    epochs = isinstance(request.ordering, Reshuffled)
    found = _tables(subsets.permutations(map_, request.steps, request.names, epochs=epochs))
    values, doubts, digits = _deepened(request, map_, *found)
    states, _ = subsets.states_needed(request.geometry.counts, min(request.last, request.geometry.num_tasks))
    detail = f"second moments given which tasks were seen, {states:.0f} cases, with {digits}"
    return _outcome(request, "subsets", detail, values, doubts)


def by_the_run(request: Request) -> Outcome:
    """An ordering without randomness: one run says it all."""
    if not request.deterministic:
        raise NotSupportedError(f"{request.ordering} is random; use method='auto'")
    if request.linear and "error" in request.names:
        request.problem.require_realizable("the quantity 'error'")
    one = whole_run(
        request.problem,
        request.ordering,
        request.last,
        request.scheme,
        w0=request.w0,
        record_every=request.steps.tolist(),
    )
    detail = f"{request.ordering} has no randomness: one run"
    if not request.linear:
        return Outcome("deterministic", f"{detail}, its rounding not bounded", _of_run(request, one), notes=one.remarks)
    map_ = request.moment_map(as_run=not request.precise)
    order = request.geometry.distinct(one.order)
    notes = one.remarks
    if map_.twofold and request.ordering.adaptive:
        order = independent.decided(map_, request.ordering, request.last)
    elif request.ordering.adaptive:
        notes = (*notes, "the order was chosen in float64: another processor may break near ties differently")
    if map_.twofold:
        values, doubts = _tables(independent.along(map_, order, request.steps, request.names))
    else:
        values = _of_run(request, one)
        doubts = _doubts_of_run(request, one, map_, values)
    values, doubts, digits = _deepened(request, map_, values, doubts, order)
    return _outcome(request, "deterministic", f"{detail}, with {digits}", values, doubts, notes)


def _of_run(request: Request, one: Trajectory) -> Values:
    """The quantities of a run in float64."""
    where = np.searchsorted(one.steps, request.steps)
    values: Values = {}
    for name in request.names:
        if name == "loss":
            values[name] = one.losses[where]
        elif name == "task_losses":
            values[name] = one.loss_matrix[where]
        elif name == "error":
            values[name] = np.sum(one.states**2, axis=1)[where] if request.linear else errors_of(one)[where]
        else:
            values[name] = curve_at(getattr(one, name), request.steps)
    return values


def _doubts_of_run(request: Request, one: Trajectory, map_: Moments, values: Values) -> Values:
    """How far the quantities of a run in float64 can be off: z is off by what all steps together add to it."""
    geometry, steps = request.geometry, request.steps.astype(float)
    pace = float(np.max(map_.doubts.noise[:, 1], initial=0.0) * np.linalg.norm(map_.first[0])) + map_.doubts.drift
    with np.errstate(over="ignore"):
        grown = map_.unit * (steps + 1) * map_.growth**steps
    off, seen = pace * grown, map_.doubts.unsolved * grown
    tops = geometry.norms[geometry.index]
    slip = (map_.doubts.misread * geometry.norms)[geometry.index] * map_.unit * (1 + map_.doubts.labels)

    def doubt(losses: Array, which: IntArray, far: Array) -> Array:
        """Of losses of given tasks."""
        e = tops[which] * far * np.sqrt(geometry.ranks[geometry.index][which]) + slip[which]
        return np.asarray(np.sqrt(2 * np.abs(losses)) * e + e**2 + 64 * EPS * np.abs(losses))

    where = np.searchsorted(one.steps, request.steps)
    every = np.arange(geometry.num_tasks, dtype=np.int64)
    each = doubt(one.loss_matrix[where], every, (off + seen)[:, None])
    found: Values = {}
    for name, value in values.items():
        if name == "task_losses":
            found[name] = each
        elif name == "loss":
            found[name] = each.mean(axis=1) + geometry.num_tasks * EPS * np.abs(value)
        elif name == "error":
            lost = off + map_.unit * map_.doubts.misplaced
            found[name] = 2 * np.sqrt(value) * lost + lost**2 + 64 * geometry.dim * EPS * value
        else:
            found[name] = np.zeros(len(steps))
            for i, k in enumerate(request.steps.tolist()):
                past = one.order[:k]
                if k == 0 or (name == "forgetting" and k == 1):
                    continue
                before = doubt(one.before[:k] if name == "regret" else one.after[:k], past, off[i] + seen[i])
                now = each[i][past] if name == "forgetting" else np.zeros(k)
                found[name][i] = float(np.mean(before + now)) + k * EPS * float(np.mean(one.before[:k]))
    return found


def errors_of(one: Trajectory) -> Array:
    """|w - w*|^2 at the recorded steps, with w* the solution nearest to the start; of scaled iterates, where scaled."""
    iterates = one.scaled_iterates
    return np.asarray(np.sum((iterates - one.problem.nearest_solution(iterates[0])) ** 2, axis=1))


def curve_at(curve: Array, steps: IntArray) -> Array:
    """Values at the given steps of a curve over 1, ..., k; NaN at step 0."""
    padded = np.concatenate([np.full((*curve.shape[:-1], 1), np.nan), curve], axis=-1)
    return np.asarray(padded[..., steps])


def _deepened(
    request: Request, map_: Moments, values: Values, doubts: Values, order: IntArray | None = None
) -> tuple[Values, Values, str]:
    """The values, computed again with more digits where those at hand leave doubts and it takes no time to speak of."""
    digits = f"{31 if map_.twofold else 16} digits"
    if map_.doubts.dropped:  # more digits of rows whose last ones were taken for rounding say nothing
        return values, doubts, digits
    unsure = {name: np.isfinite(value) & (doubts[name] > ENOUGH * np.abs(value)) for name, value in values.items()}
    if not any(np.any(one) for one in unsure.values()) or deep.work(request) * SECONDS_PER_PRODUCT > 1:
        return values, doubts, digits
    found, most = deep.answer(request, order, unsure)
    for name, (value, doubt) in found.items():
        better = unsure[name] & ((doubt <= doubts[name]) | (np.abs(value - values[name]) > doubts[name] + doubt))
        values[name] = np.where(better, value, values[name])
        doubts[name] = np.where(better, doubt, doubts[name])
    return values, doubts, f"{digits}, some values with {most}"


def _tables(found: independent.Concluded) -> tuple[Values, Values]:
    """One table of values and one of doubts, by name, from those at each step."""
    names = found[0]
    return tuple({name: np.array([row[name][i] for row in found]) for name in names} for i in range(2))  # type: ignore[return-value]


def _outcome(
    request: Request, method: str, detail: str, values: Values, doubts: Values, notes: tuple[str, ...] = ()
) -> Outcome:
    """Keep what was asked for, and say so where a value is no larger than its rounding error."""
    said = list(notes)
    dropped = request.geometry.best.dropped if request.linear else 0.0
    if dropped:
        said.append(
            f"some rows have directions of {dropped:.1g} of their size, which were taken for rounding: "
            "values are those of tasks without these directions"
        )
    for name in request.names:
        value, doubt = values[name], doubts[name]
        if value.ndim == 1 and 0 < abs(value[-1]) <= doubt[-1]:
            above = np.flatnonzero(~(np.abs(value) <= doubt))
            first = int(request.steps[above[-1] + 1 if above.size else 0])
            said.append(f"{name} from k = {first} is no larger than its error ({doubt[-1]:.1g}): its digits are noise")
    kept = {name: values[name] for name in request.names}
    return Outcome(method, detail, kept, {name: doubts[name] for name in request.names}, notes=said)


def _from_the_data(request: Request, map_: Moments, name: str, value: Array) -> Array:
    """What errors of the bases, the solution and the labels do to powers of Q: an estimate."""
    geometry, steps = request.geometry, request.steps.astype(float)
    shape = (-1, *[1] * (value.ndim - 1))
    each_step = 4 * EPS * (float(np.max(geometry.conditions, initial=1.0)) - 1)  # beside that of eigenvalues
    size = map_.unit * float(np.linalg.norm(map_.first[0]))
    start = geometry.best.misplaced / size if size > 0 else 0.0
    relative = (each_step * steps + 8 * EPS * geometry.condition + start * (2 + start)).reshape(shape) * np.abs(value)
    # labels that no w fits keep z away from where it should be
    e = (map_.unit * map_.doubts.drift * np.minimum(steps + 1, 4 * geometry.condition)).reshape(shape)
    e = e * (1.0 if name == "error" else float(np.max(geometry.norms, initial=0.0)))
    return np.asarray(relative + 2 * np.sqrt(np.abs(value)) * e + e**2)
