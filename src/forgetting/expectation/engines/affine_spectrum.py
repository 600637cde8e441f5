"""Quantities from the affine recursion: any k on tasks that no w solves, and k = inf on all tasks.

Means over visits are sum_t sum_m p_m <f_m, L^(k-t) P_m L^(t-1) x_0>, where L is one step on x = (W, mu, K) and P_m that
of task m. In eigenvectors of Q and M the powers of L are divided differences over an eigenvalue of Q and a node (an
eigenvalue of M, or 1), so that sums over t are divided differences over three of these.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS, quietly
from forgetting.core.progress import track
from forgetting.expectation.engines.affine_recursion import (
    Estimate,
    Functional,
    Modes,
    by_lanczos,
    centred,
    diagonal_modes,
    reach,
)
from forgetting.expectation.engines.exact import sums_of_terms, weights_of
from forgetting.expectation.engines.float64_moments import Float64Moments
from forgetting.expectation.engines.powers import differences, second_differences, stepped, unpack
from forgetting.expectation.outcome import Values
from forgetting.expectation.quantities import Form, Term
from forgetting.expectation.request import FOREVER, Request

#: On all estimates of errors: with 1 in its place, 1 in 700 hard problems had a value off by up to twice as much, and
#: where no w solves all tasks, 1 in 28,000 values.
MARGIN = 4.0
PART = 2**18  # numbers held at once in a table of second differences
FAR = 0.03  # the relative distance of two points from which dividing by it costs no digits of note


class AffineSpectrum:
    """The quantities of a request, with Q diagonalised up to order `dense`, and by Lanczos runs beyond.

    Lanczos starts at each functional, in at most `most` steps. Where it does not settle, Q is diagonalised up to order
    `unsettled`.
    """

    def __init__(self, request: Request, moments: Float64Moments, *, dense: int, unsettled: int, most: int) -> None:
        self.request, self.affine, self.most = request, centred(moments), most
        self.steps, self.unsettled = request.steps, unsettled
        self.order = self.affine.size * (self.affine.size + 1) // 2
        self.counted = bool(request.averages("visited") and self.steps[0] < FOREVER)
        self.settles = self.affine.contracts and self.affine.still and self.steps[0] == FOREVER
        self.modes: Modes | None = None
        if not self.settles and (self.order <= dense or self.counted):
            self.modes = diagonal_modes(self.affine)
        self.settled = True
        self.visits: dict[tuple[Form, bool], VisitSums] = {}
        self.seen: dict[int, tuple[Functional, Modes, Array]] = {}

    def solve(self) -> tuple[Values, Values, str]:
        """Values and doubts of all quantities, and how they were found."""
        values, doubts = sums_of_terms(self.request, self.affine.moments, self.evaluate, self._limit)
        if self.settles:
            return values, doubts, "whose powers vanish"
        if self.modes is not None:
            return values, doubts, "diagonalised"
        return values, doubts, f"by Lanczos{'' if self.settled else ', which did not settle'}"

    # ------------------------------------------------------------------------------------------------- quantities

    def evaluate(self, term: Term, steps: IntArray) -> tuple[Array, Array]:
        """A term at some steps, without its coefficient, and an estimate of its error."""
        geometry, moments = self.affine.moments.geometry, self.affine.moments
        if term.average != "each":
            undefined = np.nan, np.nan
            rows = [undefined if term.needs_steps and k == 0 else self._of(term, k) for k in steps.tolist()]
            value, doubt = np.array(rows).T
            return value, MARGIN * doubt
        own = (geometry.num_learned if term.held_out else 0) + geometry.index
        tasks = np.unique(own).tolist()
        each = np.array([[self._task(term, m, k) for m in tasks] for k in steps.tolist()])
        value, doubt = np.moveaxis(each[:, np.searchsorted(tasks, own)], -1, 0)
        if term.form.with_unfitted:
            left = moments.unexplained[0][own]
            value, doubt = value + left, doubt + moments.doubts.unexplained[own] + 8 * EPS * left
        return value, MARGIN * doubt

    def _of(self, term: Term, k: int) -> tuple[float, float]:
        """A term with one value after k steps, and an estimate of its error."""
        if term.average == "error":
            return self._error(k)
        if term.average == "visited" and k < FOREVER:
            total = self._visited(term.form, term.held_out).at(k)
            return self._in_user_units(term, Estimate(total.value / k, total.doubt / k), k)
        after_steps = term.average == "kept" and term.held_out
        functional = (
            self.affine.tests_after(term.form)
            if after_steps
            else self.affine.functional(weights_of(self.affine.moments, term))
        )
        seen = self._read(term, functional, k, summed=term.needs_steps and k < FOREVER)
        times = k if term.needs_steps and k < FOREVER else 1
        return self._in_user_units(term, Estimate(seen.value / times, seen.doubt / times), k)

    def _limit(self, terms: Sequence[Term]) -> tuple[float, float]:
        """The sum of terms with one value as k -> inf, where one functional knows what cancels."""
        value, doubt, factor, together = 0.0, 0.0, self.affine.moments.unit**2, []
        for term in terms:
            if term.average == "error" or (term.average == "kept" and term.held_out):
                part, off = self._of(term, FOREVER)
                value, doubt = value + term.coefficient * part, doubt + abs(term.coefficient) * off
            else:
                together.append(term)
        weights = sum(
            (term.coefficient * weights_of(self.affine.moments, term) for term in together),
            np.zeros(len(self.affine.rows)),
        )
        whole = self._weighted(tuple(together), weights)
        size = abs(whole.value)
        if np.any(weights > 0) and np.any(weights < 0):
            size = sum(self._weighted((sign, *together), np.maximum(sign * weights, 0.0)).value for sign in (1, -1))
        # what is added and what is subtracted are off together
        missed = [
            sum(max(sign * term.coefficient, 0.0) * self._from_the_data(term, size, FOREVER) for term in together)
            for sign in (1, -1)
        ]
        return value + whole.value * factor, MARGIN * (doubt + (whole.doubt + max(missed)) * factor)

    def _weighted(self, key: object, weights: Array) -> Estimate:
        """A sum of squares as k -> inf."""
        return self._read(key, self.affine.functional(weights), FOREVER)

    def _task(self, term: Term, task: int, k: int) -> tuple[float, float]:
        moments = self.affine.moments
        functional = self.affine.functional((moments.geometry.owner == task) * moments.weights(term.form)[0])
        return self._in_user_units(term, self._read((term, task), functional, k), k)

    def _error(self, k: int) -> tuple[float, float]:
        """E|z|^2."""
        affine, factor = self.affine, self.affine.moments.unit**2
        identity, floor = affine.packed(np.eye(affine.size)), float(np.trace(affine.constants))
        functional = Functional(identity, np.zeros_like(affine.first), floor, float(np.sqrt(affine.size)))
        squared = self._read("error", functional, k)
        off = affine.moments.geometry.best.misplaced / affine.moments.unit
        doubt = squared.doubt + 2 * np.sqrt(abs(squared.value)) * off + off**2
        return squared.value * factor, doubt * factor

    # ------------------------------------------------------------------------------------------------------ parts

    def _visited(self, form: Form, held_out: bool) -> VisitSums:
        if (form, held_out) not in self.visits:
            assert self.modes is not None
            geometry = self.affine.moments.geometry
            shift = geometry.num_learned if held_out else 0
            weights = self.affine.moments.weights(form)[0]
            tasks = range(geometry.num_distinct)
            forms = [self.affine.functional((geometry.owner == m + shift) * weights) for m in tasks]
            self.visits[form, held_out] = VisitSums(self.modes, forms)
        return self.visits[form, held_out]

    def _read(self, key: object, functional: Functional, k: int, *, summed: bool = False) -> Estimate:
        if self.settles:
            return Estimate(functional.floor, 8 * EPS * abs(functional.floor))
        if self.modes is None:
            seen = self._by_lanczos(key, functional)
            if seen is not None:
                return seen[0].evaluate(seen[1], functional, k, summed=summed)
        assert self.modes is not None
        weights = self.affine.moments.device.take(self.modes.basis @ functional.matrix)
        return self.modes.evaluate(weights, functional, k, summed=summed)

    def _by_lanczos(self, key: object, functional: Functional) -> tuple[Modes, Array] | None:
        """The modes that a functional sees, and its weights; None if Lanczos did not settle and Q was diagonalised."""
        name = hash(key)
        if name not in self.seen:
            modes, weights = by_lanczos(self.affine, functional, self.steps, (False, True), self.most)
            if not modes.settled and self.order <= self.unsettled:
                self.modes = diagonal_modes(self.affine)
                return None
            self.settled = self.settled and modes.settled
            self.seen[name] = functional, modes, weights
        return self.seen[name][1:]

    def _in_user_units(self, term: Term, estimate: Estimate, k: int) -> tuple[float, float]:
        """The number in the user's units, and its doubt."""
        factor = self.affine.moments.unit**2
        doubt = estimate.doubt + self._from_the_data(term, abs(estimate.value), k)
        return estimate.value * factor, doubt * factor

    def _from_the_data(self, term: Term, value: float, k: int) -> float:
        """An estimate of the error that errors of the bases, the gains, the labels and the probabilities cause."""
        moments, geometry = self.affine.moments, self.affine.moments.geometry
        doubts, top = moments.doubts, self._top()
        lasting = reach(top, k) if top < 1 or k < FOREVER else 1 / EPS
        learned, rows = geometry.num_learned, geometry.rows_learned
        tasks, own = (slice(learned, None), slice(rows, None)) if term.held_out else (slice(learned), slice(rows))
        z = float(np.sqrt(np.trace(self.affine.second))) + (self.affine.far if term.held_out else 0.0)
        each = float(np.max(doubts.noise[:learned, 1], initial=0.0)) + doubts.known
        scale = float(np.sqrt(np.max(moments.weights(term.form)[0][own], initial=0.0)))
        with quietly():
            relative = 4 * EPS * geometry.condition + each * min(lasting, float(k))
            off = scale * doubts.drift * min(lasting, k + 1.0)
            off += float(np.max(moments.slips(term.form)[tasks] * (z + doubts.labels[tasks]), initial=0.0))
            off += scale * float(np.max(doubts.displaced[tasks], initial=0.0))
            return float(relative * abs(value) + 2 * np.sqrt(2 * abs(value)) * off + off**2)

    def _top(self) -> float:
        """The largest eigenvalue that was found, of Q or M."""
        several = [self.modes] if self.modes is not None else [modes for _, modes, _ in self.seen.values()]
        return max([modes.top for modes in several], default=1 - self.affine.nearest)


class VisitSums:
    """sum_t f_tau(t) at w_k, expected, with one functional f_m for each distinct task.

    Cost: at most order^2 (D + 1) second differences at each k, with order = D (D + 1) / 2; a twentieth of that where
    most eigenvalues of Q and M are far apart.
    """

    def __init__(self, modes: Modes, forms: Sequence[Functional]) -> None:
        affine, basis = modes.affine, modes.basis
        assert basis is not None
        self.modes, p = modes, affine.moments.probability[0]
        device, take = affine.moments.device, affine.moments.device.take
        size, order, first = affine.size, basis.shape[0], affine.first
        matrices = take(device.xp.stack([form.matrix for form in forms]) @ basis.T)  # tasks x order
        pulled = take(affine.adjoint(unpack(basis, size, device)))  # order x D x q: what mu adds to each mode in a step
        reached = np.einsum("ihq,jq->ihj", pulled, first)  # with the start of node j
        self.floor = float(sum(p[m] * forms[m].floor for m in affine.drawn))
        self.crossed, self.crossed_size = np.zeros((order, order)), np.zeros((order, order))  # W to W
        self.lifted, self.lifted_size = np.zeros((order, size + 1)), np.zeros((order, size + 1))  # nodes to W
        self.straight, self.straight_size = np.zeros((size, size + 1)), np.zeros((size, size + 1))  # nodes to mu
        self.bent, self.bent_size = (
            np.zeros((order, size, size + 1)),
            np.zeros((order, size, size + 1)),
        )  # and then to W
        self.constant = np.zeros(order)  # K to K, and then to W
        for m in track(affine.drawn, "forgetting"):
            step, push, mine = affine.steps[m], affine.pushes[m], p[m] * matrices[m]
            cross = mine[:, None] * take(basis @ stepped(affine.moments, m, basis).T)
            pushed = step.T[:, :, None] * (first @ push.T)[:, None, :]
            pushed = np.concatenate([pushed + np.swapaxes(pushed, 1, 2), (push @ affine.constants @ push.T)[None]])
            lift = mine[:, None] * take(basis @ affine.packed(pushed).T)
            after = push @ affine.constants  # mu that a constant becomes
            ahead = p[m] * np.column_stack(
                [step * (forms[m].linear @ first.T), np.sum(forms[m].linear * after, axis=1)]
            )
            bend = np.concatenate([step * reached, np.einsum("ihq,hq->ih", pulled, after)[:, :, None]], axis=2)
            bend *= mine[:, None, None]
            self.crossed += cross
            self.crossed_size += np.abs(cross)
            self.lifted += lift
            self.lifted_size += np.abs(lift)
            self.straight += ahead
            self.straight_size += np.abs(ahead)
            self.bent += bend
            self.bent_size += np.abs(bend)
            self.constant += mine * modes.coupling[:, -1]
        self.scale = float(sum(p[m] * forms[m].size for m in affine.drawn))

        # a node far from an eigenvalue of Q takes a difference of divided differences over two points
        values, nodes, coupling = modes.values, modes.nodes, modes.coupling
        gaps = values[:, None] - nodes
        far = np.abs(gaps) > FAR * np.maximum(np.abs(values)[:, None], np.abs(nodes))
        apart = np.where(far, coupling, 0.0) / np.where(far, gaps, 1.0)
        start = modes.start + apart.sum(axis=1)
        start_size = np.abs(modes.start) + np.abs(apart).sum(axis=1)
        self.plain, self.plain_size = self.crossed * start, self.crossed_size * start_size
        self.lifted -= self.crossed @ apart
        self.lifted_size += self.crossed_size @ np.abs(apart)
        self.near = np.nonzero(~far)  # (eigenvalues of Q, nodes)

    def at(self, k: int) -> Estimate:
        """The sum over the k visits, and an estimate of its error."""
        modes = self.modes
        values, nodes, off, loose = modes.values, modes.nodes, modes.off, modes.loose
        at, with_node = self.near
        coupling = modes.coupling[self.near]
        value, spread, raised = k * self.floor, k * abs(self.floor), k * abs(self.floor)

        def add(coefs: Array, sizes: Array, x: Array, y: Array, dy: Array | float) -> None:
            """Terms over two points."""
            nonlocal value, spread, raised
            value += float(np.vdot(coefs, differences(x[:, None], y, k)))
            spread += float(np.vdot(sizes, differences(np.abs(x)[:, None], np.abs(y), k)))
            raised += float(np.vdot(sizes, differences(np.abs(x)[:, None] + off, np.abs(y) + dy, k)))

        def add_three(
            coefs: Array, sizes: Array, points: tuple[Array, Array, Array], dy: Array | float, dz: Array | float
        ) -> None:
            """Terms over three points, the first an eigenvalue of Q."""
            nonlocal value, spread, raised
            table = second_differences(*points, k)
            value += float(np.sum(coefs * table))
            x, y, z = (np.abs(part) for part in points)
            positive = all(np.all(part >= 0) for part in points)
            spread += float(np.sum(sizes * (table if positive else second_differences(x, y, z, k))))
            raised += float(np.sum(sizes * second_differences(x + off, y + dy, z + dz, k)))

        with quietly():
            add(self.plain, self.plain_size, values, values, off)
            add(self.lifted, self.lifted_size, values, nodes, loose)
            add(self.straight, self.straight_size, nodes[:-1], nodes, loose)
            chunk = max(1, PART // max(1, len(at), modes.affine.size**2))
            for i in range(0, len(values), chunk):
                rows = slice(i, i + chunk)
                x = values[rows][:, None]
                points = x, values[at], nodes[with_node]
                coefs, sizes = self.crossed[rows][:, at] * coupling, self.crossed_size[rows][:, at] * np.abs(coupling)
                add_three(coefs, sizes, points, off, loose[with_node])
                bends = x[:, :, None], nodes[:-1, None], nodes
                add_three(self.bent[rows], self.bent_size[rows], bends, loose[:-1, None], loose)
                mine = self.constant[rows][:, None]
                add_three(mine, np.abs(mine), (x, np.ones(1), np.ones(1)), 0.0, 0.0)
            doubt = (raised - spread) + 8 * EPS * spread + 16 * EPS * self.scale * modes.room(k, summed=True)
        return Estimate(value, doubt)
