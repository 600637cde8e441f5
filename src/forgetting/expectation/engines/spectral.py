"""Very large k: Q is self-adjoint, so every k comes from one factorisation.

E L(w_k) = <H/2, Q^k[W_0]> is a sum of k-th powers of eigenvalues; sums over steps (regret, and the loss that learned
tasks keep) are geometric sums; means over visits are sums of divided differences (l_i^k - l_j^k) / (l_i - l_j). The
eigenvalues come from diagonalising Q on symmetric matrices (D (D + 1) / 2 numbers) where that is small, and from
Lanczos runs with full re-orthogonalisation where it is not: one from W_0, and for means over visits one from each
X_m^T X_m.
Without such means one run is enough, so that Lanczos is tried earlier.

Where Lanczos does not settle, Q is diagonalised instead, up to a larger order. Beyond that the results of Lanczos stand
with a bound on their error: m steps give every polynomial of degree below m in Q exactly, and the best polynomial is
within 2 exp(-m^2 / (2 k)) of x^k on [-1, 1] (Newman and Rivlin, Aequationes Math. 14, 1976).

Tasks that no w solves, held-out data and k = inf go to the affine recursion. It would answer all other requests, too,
but not as well: of each functional it makes a Lanczos run, and of means over visits divided differences over three
points, so that these took 3 to 8 times as long, and losses of each of 50 tasks 28 times, with 3 to 13 times the doubt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS
from forgetting.core.progress import track
from forgetting.errors import NotSupportedError
from forgetting.expectation.engines.affine_spectrum import MARGIN, AffineSpectrum
from forgetting.expectation.engines.base import Cost, Engine, register_engine
from forgetting.expectation.engines.costs import (
    chance_to_settle,
    lanczos_width,
    reduction,
    seconds_of_diagonalising,
    seconds_of_lanczos,
    seconds_of_second_differences,
    seconds_of_visits,
)
from forgetting.expectation.engines.decimal_moments import TINIEST
from forgetting.expectation.engines.exact import concluded, float64_map, kept_off, refusal, sums_of_terms, weights_of
from forgetting.expectation.engines.float64_moments import Float64Moments
from forgetting.expectation.engines.powers import (
    Ritz,
    SelfAdjoint,
    diagonalise,
    differences,
    lanczos,
    pack,
    powers_watched,
    stepped,
)
from forgetting.expectation.outcome import Outcome, Values
from forgetting.expectation.quantities import Average, Form, Term
from forgetting.expectation.request import FOREVER, Request
from forgetting.orderings.laws import Independent

DENSE_LIMIT = 2000  # order up to which Q may be diagonalised outright
ONE_RUN_LIMIT = 200  # the same where a single Lanczos run would do
UNSETTLED_LIMIT = 6000  # the same where Lanczos did not settle: a minute, and less than a GiB
MAX_LANCZOS = 800
AFFINE_LIMIT = 1000  # the first of these orders on tasks that no w solves, where each functional takes its own run
VISITS_LIMIT = 62  # the dimension D up to which means over visits are computed on tasks that no w solves


@register_engine
class SpectralEngine(Engine):
    """Powers of the eigenvalues of Q, from one factorisation."""

    name = "spectral"
    endless = True
    on_device = True

    def covers(self, request: Request) -> str | None:
        if request.averaged:
            return "it does not average iterates"
        reason = refusal(request, Independent, alike=True)
        if reason is None and _is_affine(request) and request.averages("visited"):
            D = request.geometry.learned_dim
            if D > VISITS_LIMIT and request.steps[0] < FOREVER:
                return (
                    f"means over visits on tasks that no w solves are for D <= {VISITS_LIMIT} or k = inf, not D = {D}"
                )
        return reason

    def cost(self, request: Request) -> Cost:
        if _is_affine(request):
            return _cost_of_affine(request)
        geometry, visited = request.geometry, request.averages("visited")
        order = geometry.dim * (geometry.dim + 1) / 2
        columns = order if order <= UNSETTLED_LIMIT else MAX_LANCZOS
        needed = 8.0 * order * columns * (3 if visited else 2)
        tasks, each = (geometry.num_distinct if visited else 0), visited or request.averages("each")
        begin = 1e-3 + 2e-4 * len(request.steps) + reduction(request)
        dense = seconds_of_diagonalising(request) + seconds_of_visits(request, tasks, order)
        if order <= (DENSE_LIMIT if visited else ONE_RUN_LIMIT):
            return Cost(needed, begin + dense)
        width = lanczos_width(request, each=each, most=MAX_LANCZOS)
        run = seconds_of_lanczos(request, width)
        runs = tasks * run + seconds_of_visits(request, tasks, width)
        odds = chance_to_settle(request, width, MAX_LANCZOS) if each and order <= UNSETTLED_LIMIT else 1.0
        return Cost(needed, begin + run + odds * runs + (1 - odds) * dense)

    def solve(self, request: Request) -> Outcome:
        scored = any(term.held_out for term in request.terms)
        moments = float64_map(request, homogeneous=request.realizable and not scored)
        order = f"the map Q on matrices of order {request.geometry.learned_dim}"
        missed = moments.size > moments.dim or bool(moments.unexplained[0].any())
        if scored or (missed and not request.realizable):
            values, doubts, how = _solve_affine(request, moments)
            return concluded(request, values, doubts, f"{order}, {how}; the uncertainty is an estimate", estimated=True)
        finite = replace(request, steps=request.steps[request.steps < FOREVER])
        values, doubts, how = _solve(finite, moments) if len(finite.steps) else ({}, {}, "")
        if request.forever:
            endless = replace(request, steps=request.steps[request.steps == FOREVER])
            limits, limit_doubts, said = _solve_affine(endless, moments)
            values = {
                name: np.concatenate([values[name], limits[name]] if values else [limits[name]]) for name in limits
            }
            doubts = {
                name: np.concatenate([doubts[name], off] if doubts else [off]) for name, off in limit_doubts.items()
            }
            how = how or said
        return concluded(request, values, doubts, f"{order}, {how}; the uncertainty is an estimate", estimated=True)


def _is_affine(request: Request) -> bool:
    """Whether the affine recursion is needed: no w solves all tasks, or held-out data are scored."""
    return not request.realizable or any(term.held_out for term in request.terms)


def _solve_affine(request: Request, moments: Float64Moments) -> tuple[Values, Values, str]:
    """Values, doubts and the way they were computed, by the affine recursion."""
    spectrum = AffineSpectrum(
        request, moments, dense=min(DENSE_LIMIT, AFFINE_LIMIT), unsettled=UNSETTLED_LIMIT, most=MAX_LANCZOS
    )
    return spectrum.solve()


def _cost_of_affine(request: Request) -> Cost:
    """Cost of a request whose tasks have no common solution, or have held-out data."""
    geometry = request.geometry
    dim = geometry.learned_dim
    order = dim * (dim + 1) / 2
    columns = order if order <= UNSETTLED_LIMIT else MAX_LANCZOS
    begin = 1e-3 + reduction(request)
    finite = int(np.sum(request.steps < FOREVER))
    if request.averages("visited") and finite:
        tasks, held = geometry.num_learned, 8.0 * order * (4 * order + 4 * dim**2)
        seconds = seconds_of_visits(request, tasks, order) + seconds_of_second_differences(request, finite)
        return Cost(held, begin + seconds_of_diagonalising(request) + seconds)
    needed = 8.0 * order * columns * 2
    if order <= min(DENSE_LIMIT, AFFINE_LIMIT):
        return Cost(needed, begin + seconds_of_diagonalising(request))
    runs = sum(geometry.num_distinct if quantity.per_task else 1 for quantity in request.quantities)
    width = lanczos_width(request, each=False, most=MAX_LANCZOS)
    lanczos = runs * 2 * seconds_of_lanczos(request, width)  # what the mean adds costs as much again
    odds = chance_to_settle(request, width, MAX_LANCZOS) if order <= UNSETTLED_LIMIT else 1.0
    return Cost(needed, begin + lanczos + (1 - odds) * seconds_of_diagonalising(request))


def _from_the_data(request: Request, moments: Float64Moments, term: Term, steps: IntArray, value: Array) -> Array:
    """An estimate of the error that errors of the bases, the solution and the labels cause in powers of Q."""
    geometry = request.geometry
    count = steps.astype(float).reshape(-1, *[1] * (value.ndim - 1))
    each_step = 4 * EPS * (float(np.max(geometry.conditions, initial=1.0)) - 1)  # beside that of eigenvalues
    size = moments.unit * float(np.linalg.norm(moments.first[0]))
    start = geometry.best.misplaced / size if size > 0 else 0.0
    relative = (each_step * count + 8 * EPS * geometry.condition + start * (2 + start)) * np.abs(value)
    # labels that no w fits keep z away from where it should be
    e = moments.unit * moments.doubts.drift * np.minimum(count + 1, 4 * geometry.condition)
    largest = float(np.sqrt(np.max(moments.weights(term.form)[0], initial=0.0)))
    e = e * (1.0 if term.average == "error" else largest)
    if term.average == "kept":  # gains near 1 leave little, of which rounding of the gains is a large part
        relative = relative + 0.5 * size**2 * np.max(kept_off(moments) * moments.weights(term.form)[0], initial=0.0)
    return np.asarray(relative + 2 * np.sqrt(np.abs(value)) * e + e**2)


class _UnsettledError(Exception):
    """Lanczos did not settle, and there is a better way."""


def _solve(request: Request, moments: Float64Moments) -> tuple[Values, Values, str]:
    """Expected quantities at the given steps, estimates of their absolute errors, and the way they were computed."""
    order = moments.size * (moments.size + 1) // 2
    if order > (DENSE_LIMIT if request.averages("visited") else min(ONE_RUN_LIMIT, DENSE_LIMIT)):
        try:
            return _Spectrum(request, moments, None).solve()
        except _UnsettledError:
            pass
    return _Spectrum(request, moments, diagonalise(moments)).solve()


class _Spectrum:
    """The quantities of one request from the spectrum of Q: by diagonalisation if a factor is given, or by Lanczos."""

    def __init__(self, request: Request, moments: Float64Moments, factor: tuple[Array, Any] | None) -> None:
        self.request, self.moments, self.factor, self.steps = request, moments, factor, request.steps
        self.start = self._packed(moments.second()[0] * moments.unit**2)
        after_one = [term for quantity in request.quantities for term in quantity.after(1) if 1 in request.steps]
        self.functionals = {term: self._functional(term) for term in map(_read, (*request.terms, *after_one))}
        self.main = self.ritz(self.start, moments.device.xp.concat(list(self.functionals.values()), axis=0))
        self.visits: dict[Form, tuple[Array, Array]] = {}  # at all steps but 1

    def solve(self) -> tuple[Values, Values, str]:
        values, errors = sums_of_terms(self.request, self.moments, self.evaluate)
        if self.factor is not None:
            return values, errors, "diagonalised"
        return values, errors, f"by Lanczos{'' if self.main.settled else ', which did not settle'}"

    def _packed(self, matrices: Array) -> Any:
        """Symmetric matrices, packed and moved to the device of the map."""
        device = self.moments.device
        return pack(device.put(matrices), device)

    def ritz(self, vector: Any, against: Any) -> Ritz:
        """Q seen from a vector, such that inner products with `against` are accurate."""
        device = self.moments.device
        if self.factor is not None:
            return Ritz(self.factor[0], device.take(self.factor[1] @ vector), self.factor[1])
        watch = powers_watched(against, self.steps, device)
        ritz = lanczos(self.moments, vector, watch, max(1, int(np.max(self.steps, initial=1))), MAX_LANCZOS)
        if not ritz.settled and vector.shape[0] <= UNSETTLED_LIMIT:
            raise _UnsettledError
        return ritz

    def _functional(self, term: Term) -> Any:
        """Packed matrices, one per row, whose inner product with E z z^T is a value at w_k (or just after a step)."""
        device, moments = self.moments.device, self.moments

        def packed(weights: Array, which: slice = slice(None)) -> Any:
            """sum_i weight_i b_i b_i^T / 2, over some of the directions i."""
            rows = device.put(moments.right[0][which])
            return pack((rows.T * device.put(0.5 * weights[which])) @ rows, device)

        if term.average == "error":
            return self._packed(np.eye(moments.size))[None, :]
        if term.average != "each":
            return packed(weights_of(moments, term))[None, :]
        each = [moments.geometry.block(m) for m in range(moments.geometry.num_distinct)]
        return device.xp.stack([packed(moments.weights(term.form)[0], block) for block in each])

    def evaluate(self, term: Term, steps: IntArray) -> tuple[Array, Array]:
        """A term at some steps, without its coefficient, and an estimate of its error."""
        index, left = self.moments.geometry.index, np.zeros(())
        if term.average == "kept" and self.moments.solves:
            return np.zeros(len(steps)), np.zeros(len(steps))
        with np.errstate(invalid="ignore", divide="ignore"):
            if term.average == "visited":
                value, doubt = self._visited(term.form, steps)
            else:
                value, doubt = self._evaluated(_read(term), steps, summed=term.needs_steps)
                several = index if term.average == "each" else 0
                value, doubt = value[:, several], doubt[:, several]
            if term.needs_steps:
                value, doubt = value / steps, doubt / steps
        off = _from_the_data(self.request, self.moments, term, steps, value)
        doubt = MARGIN * (doubt + off) + TINIEST
        if term.average == "each" and term.form.with_unfitted:
            left = self.moments.unexplained[0][index]
            doubt = doubt + self.moments.doubts.unexplained[index] + 8 * EPS * left
        return value + left, doubt

    def _evaluated(self, term: Term, steps: IntArray, *, summed: bool) -> tuple[Array, Array]:
        device = self.moments.device
        against = self.functionals[term]
        inner = device.take(against @ self.main.basis.T) * self.main.weights
        norm = device.xp.linalg.vector_norm
        size = device.take(norm(against, axis=1)) * float(norm(self.start))
        return _evaluate(self.main, inner, size, steps, summed=summed)

    def _visited(self, form: Form, steps: IntArray) -> tuple[Array, Array]:
        if form not in self.visits:
            forms = self.functionals[Term("each", form)]
            self.visits[form] = _visited(
                self.moments, self.main, self.start, forms, self.ritz, steps, shared=self.factor is not None
            )
        return self.visits[form]


def _read(term: Term) -> Term:
    """The term from whose functional another one is read: a visit is to each task, and the next task is drawn, too."""
    same: dict[Average, Average] = {"visited": "each", "next": "learnt"}
    return replace(term, average=same.get(term.average, term.average), coefficient=1.0)


def decay(moments: SelfAdjoint) -> float:
    """The largest eigenvalue of Q on the joint row space, or of another map that keeps matrices positive semidefinite.

    By Perron-Frobenius the eigenvector is positive semidefinite, so a Lanczos run from the identity finds it.
    """
    if moments.size * (moments.size + 1) // 2 <= DENSE_LIMIT:
        return float(np.max(np.abs(diagonalise(moments)[0]), initial=0.0))
    device = moments.device
    identity, steps = pack(device.put(np.eye(moments.size)), device), 10 ** np.arange(9)
    watch = powers_watched(identity[None, :], steps, device)
    ritz = lanczos(moments, identity, watch, int(steps[-1]), MAX_LANCZOS)
    if ritz.settled:
        return float(np.max(np.abs(ritz.values)))
    if identity.shape[0] <= UNSETTLED_LIMIT:
        return float(np.max(np.abs(diagonalise(moments)[0])))
    raise NotSupportedError(
        f"the decay rate was not found: at least {np.max(ritz.values):.12g}, but {len(ritz.values)} steps of Lanczos "
        f"did not settle, and matrices of order {moments.size} are too large to diagonalise Q"
    )


def _evaluate(ritz: Ritz, inner: Array, size: Array, steps: IntArray, *, summed: bool) -> tuple[Array, Array]:
    """<f, Q^k v> (or its sum over 0..k-1) for each functional f (columns) at each k (rows), with error estimates.

    `inner` holds for each f its terms at k = 0, and `size` is |f| |v|.
    """

    def at(k: int, products: Array, values: Array) -> Array:
        terms = differences(np.ones(1), values, k) if summed else np.power(values, k)
        return np.asarray(products @ terms)

    most, off = np.abs(ritz.values), ritz.off
    results = np.array([at(int(k), inner, ritz.values) for k in steps]).reshape(len(steps), len(inner))
    spread = np.array([at(int(k), np.abs(inner), most) for k in steps]).reshape(results.shape)
    raised = np.array([at(int(k), np.abs(inner), most + off) for k in steps]).reshape(results.shape)
    # rounding of the inner products, of the eigenvalues (hence k eps in their k-th power, or eps^k), and of the sum
    alive = np.array([_at_most(float(most.max(initial=0.0)) + off, int(k), summed) for k in steps])[:, None]
    doubt = 16 * EPS * size * alive + (raised - spread) + (4 * EPS + ritz.drift) * spread
    missed = np.array([ritz.missed(int(k)) * (int(k) if summed else 1) for k in steps])[:, None]
    return results, doubt + missed * size


def _at_most(value: float, k: int, summed: bool) -> float:
    """value^k, or its sum over exponents 0..k-1."""
    return float(differences(np.ones(1), np.array([value]), k)[0]) if summed else value**k


def _visited(
    moments: Float64Moments,
    main: Ritz,
    start: Any,
    forms: Any,
    ritz: Callable[[Any, Any], Ritz],
    steps: IntArray,
    *,
    shared: bool,
) -> tuple[Array, Array]:
    """sum_m p_m sum_(t=1..k) <Q^(k-t)[G_m / 2], S_m Q^(t-1)[W_0] S_m>: the expected loss on all visits; and its doubt.

    Where all tasks share the eigenvalues, the divided differences are computed once for all of them.
    """
    p, ranks = moments.probability[0], moments.geometry.ranks
    longest = float(np.abs(main.values).max(initial=0.0)) + main.off
    alive = np.array([_at_most(longest, int(k), True) for k in steps])
    total, doubt = np.zeros(len(steps)), np.zeros(len(steps))
    norm = moments.device.xp.linalg.vector_norm
    sizes = moments.device.take(norm(forms, axis=1)) * float(norm(start))
    both = np.zeros((2, len(main.values), len(main.values))) if shared else np.empty(0)
    for m in track(range(len(p)), "forgetting"):
        if p[m] == 0 or ranks[m] == 0:
            continue
        mine = ritz(forms[m, :], start[None, :])
        cross = p[m] * _cross(moments, m, main, mine)
        doubt += 16 * EPS * p[m] * sizes[m] * alive
        if shared:
            both[0] += cross
            both[1] += np.abs(cross)
        else:
            part, its_doubt = _over_visits(cross, np.abs(cross), main, mine, steps)
            total += part
            missed = np.array([int(k) * (main.missed(int(k)) + mine.missed(int(k))) for k in steps])
            doubt += its_doubt + 2 * p[m] * sizes[m] * missed
    if shared:
        part, its_doubt = _over_visits(both[0], both[1], main, main, steps)
        return total + part, doubt + its_doubt
    return total, doubt


def _cross(moments: Float64Moments, task: int, main: Ritz, mine: Ritz) -> Array:
    """<e_i, S_m e_j S_m> times the weights of both, for the basis of `mine` (rows) and of `main` (columns)."""
    inner = moments.device.take(mine.basis @ stepped(moments, task, main.basis).T)
    return np.asarray(inner * mine.weights[:, None] * main.weights[None, :])


def _over_visits(cross: Array, spread: Array, main: Ritz, mine: Ritz, steps: IntArray) -> tuple[Array, Array]:
    """sum_ij cross_ij (l_i^k - l_j^k) / (l_i - l_j) at each k, and an estimate of its rounding error."""
    sums, doubt = np.empty(len(steps)), np.empty(len(steps))
    for i, k in enumerate(steps.tolist()):
        sums[i] = float(np.vdot(cross, differences(mine.values[:, None], main.values, k)))
        most = differences(np.abs(mine.values)[:, None], np.abs(main.values), k)
        raised = differences(np.abs(mine.values)[:, None] + mine.off, np.abs(main.values) + main.off, k)
        noise = 4 * EPS + main.drift + mine.drift
        doubt[i] = float(np.vdot(spread, (raised - most) + noise * most))
    return sums, doubt
