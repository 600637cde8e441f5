"""Quantities from the affine recursion: any k on tasks that no w solves, and k = inf on all tasks.

Means over visits are sum_t sum_m p_m <f_m, L^(k-t) P_m L^(t-1) x_0>, where L is one step on x = (W, mu, K) and P_m that
of task m. In eigenvectors of Q and M the powers of L are divided differences over an eigenvalue of Q and a node (an
eigenvalue of M, or 1), so that sums over t are divided differences over three of these.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forgetting.core.arrays import Array
from forgetting.core.numerical import EPS
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
from forgetting.expectation.engines.moment_map import Moments
from forgetting.expectation.engines.powers import differences, second_differences, stepped, unpack
from forgetting.expectation.outcome import Values
from forgetting.expectation.quantities import Form, Quantity
from forgetting.expectation.request import FOREVER, Request

MARGIN = 4.0  # on all estimates of errors: 1 was too little once in 28,000 values of hard problems, by a factor of 2
PART = 2**18  # numbers held at once in a table of second differences
FAR = 0.03  # the relative distance of two points from which dividing by it costs no digits of note


class AffineSpectrum:
    """The quantities of a request, with Q diagonalised up to order `dense`, and by Lanczos runs beyond.

    Lanczos starts at each functional, in at most `most` steps. Where it does not settle, Q is diagonalised up to order
    `unsettled`.
    """

    def __init__(self, request: Request, moments: Moments, *, dense: int, unsettled: int, most: int) -> None:
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
        values, doubts = {}, {}
        for quantity in self.request.quantities:
            rows = [self._of(quantity, int(k)) for k in self.steps]
            undefined = np.array([k == 0 and quantity.needs_steps for k in self.steps])
            value, doubt = (np.array([np.asarray(row[part]) for row in rows]) for part in range(2))
            undefined = undefined.reshape(-1, *[1] * (value.ndim - 1))
            if not quantity.subtracts_kept:  # a square; NaN is more than float64 can hold
                value = np.where(np.isnan(value) & ~undefined, np.inf, np.maximum(value, 0.0))
            doubt = np.where(np.isnan(doubt) | np.isinf(value), np.inf, doubt)
            values[quantity.name], doubts[quantity.name] = value, np.where(undefined, np.nan, MARGIN * doubt)
        if self.settles:
            return values, doubts, "whose powers vanish"
        if self.modes is not None:
            return values, doubts, "diagonalised"
        return values, doubts, f"by Lanczos{'' if self.settled else ', which did not settle'}"

    # ------------------------------------------------------------------------------------------------- quantities

    def _of(self, quantity: Quantity, k: int) -> tuple[Array | float, Array | float]:
        """A quantity after k steps, and an estimate of its error."""
        form, moments = quantity.form, self.affine.moments
        geometry, p = moments.geometry, self.affine.chance
        left = (1 - moments.gains[0]) ** 2
        plain, held = moments.probability[0], quantity.held_out
        if k == 0 and quantity.needs_steps:
            return np.nan, np.nan
        match quantity.average:
            case "error":
                return self._error(k)
            case "each":
                first = geometry.num_learned if held else 0
                pairs = [self._task(form, first + m, k) for m in range(geometry.num_learned)]
                return tuple(np.array([pair[part] for pair in pairs])[geometry.index] for part in range(2))  # type: ignore[return-value]
            case "tasks":
                share = self._of_held_out(geometry.counts / geometry.num_tasks, held)
                return self._in_user_units(
                    form, self._read((form, "tasks", held), share[geometry.owner], k), share, k, held
                )
            case "next":
                return self._in_user_units(form, self._read((form, "drawn", False), p, k), plain, k)
            case "learnt":
                return self._in_user_units(form, self._mean((form, "drawn", False), self._form(form, p), k), plain, k)
        if quantity.subtracts_kept and k == 1:
            return 0.0, 0.0  # nothing is forgotten yet
        if k == FOREVER and not held:
            share = p * (1 - left) if quantity.subtracts_kept else p
            gap = self._read((form, "forgotten" if quantity.subtracts_kept else "drawn", False), share, k)
            return self._in_user_units(form, gap, None if quantity.subtracts_kept else plain, k)
        shares = self._of_held_out(plain, held)
        seen = Estimate(0.0, 0.0)
        if k == FOREVER:
            seen = self._read((form, "drawn", True), shares[geometry.owner], k)
        elif k > 1 or not moments.solves or held:  # else the only task that was visited is solved
            seen = Estimate(*(number / k for number in self._visited(form, held).at(k)))
        if not quantity.subtracts_kept:
            return self._in_user_units(form, seen, shares, k, held)
        after = self.affine.tests_after(form) if held else self._form(form, p * left)
        kept = self._mean((form, "kept", held), after, k)
        size = abs(seen.value) + abs(kept.value)
        return self._in_user_units(
            form, Estimate(seen.value - kept.value, seen.doubt + kept.doubt), None, k, held, size
        )

    def _task(self, form: Form, task: int, k: int) -> tuple[float, float]:
        geometry = self.affine.moments.geometry
        chosen = (np.arange(geometry.num_distinct) == task).astype(float)
        held = task >= geometry.num_learned
        return self._in_user_units(form, self._read((form, task, False), chosen[geometry.owner], k), chosen, k, held)

    def _of_held_out(self, shares: Array, held_out: bool) -> Array:
        """Shares of distinct tasks, moved from the tasks to their held-out data if `held_out`."""
        half = self.affine.moments.geometry.num_learned
        return np.concatenate([0 * shares[:half], shares[:half]]) if held_out else shares

    def _form(self, form: Form, share: Array) -> Functional:
        return self.affine.functional(form, share)

    def _error(self, k: int) -> tuple[float, float]:
        """E|z|^2."""
        affine, factor = self.affine, self.affine.moments.unit**2
        identity, floor = affine.packed(np.eye(affine.size)), float(np.trace(affine.constants))
        functional = Functional(identity, np.zeros_like(affine.first), floor, float(np.sqrt(affine.size)))
        squared = self._evaluated("error", functional, k)
        off = affine.moments.geometry.best.misplaced / affine.moments.unit
        doubt = squared.doubt + 2 * np.sqrt(abs(squared.value)) * off + off**2
        return squared.value * factor, doubt * factor

    # ------------------------------------------------------------------------------------------------------ parts

    def _visited(self, form: Form, held_out: bool) -> VisitSums:
        if (form, held_out) not in self.visits:
            assert self.modes is not None
            geometry = self.affine.moments.geometry
            shift = geometry.num_learned if held_out else 0
            forms = [self._form(form, (geometry.owner == m + shift) * 1.0) for m in range(geometry.num_distinct)]
            self.visits[form, held_out] = VisitSums(self.modes, forms)
        return self.visits[form, held_out]

    def _read(self, key: tuple[Form, str | int, bool], share: Array, k: int) -> Estimate:
        return self._evaluated(key, self._form(key[0], share), k)

    def _mean(self, key: tuple[Form, str, bool], functional: Functional, k: int) -> Estimate:
        """The mean over the steps before k."""
        if k == FOREVER:
            return self._evaluated(key, functional, k)
        return Estimate(*(number / k for number in self._evaluated(key, functional, k, summed=True)))

    def _evaluated(self, key: object, functional: Functional, k: int, *, summed: bool = False) -> Estimate:
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

    def _in_user_units(
        self, form: Form, estimate: Estimate, share: Array | None, k: int, held: bool = False, size: float | None = None
    ) -> tuple[float, float]:
        """The number in the user's units, plus the part of each task that no w can fit times its share, and its doubt.

        `held` says whether the form is that of held-out data. `size` is that of the forms that a difference is made of.
        """
        moments, factor = self.affine.moments, self.affine.moments.unit**2
        value = estimate.value * factor
        doubt = estimate.doubt + self._from_the_data(form, abs(estimate.value) if size is None else size, k, held)
        doubt *= factor
        if share is not None and form.with_unfitted:
            extra = float(share @ moments.unexplained[0])
            value += extra
            doubt += float(share @ moments.doubts.unexplained) + 8 * EPS * extra
        return value, doubt

    def _from_the_data(self, form: Form, value: float, k: int, held: bool) -> float:
        """An estimate of the error that errors of the bases, the gains, the labels and the probabilities cause."""
        moments, geometry = self.affine.moments, self.affine.moments.geometry
        doubts, top = moments.doubts, self._top()
        lasting = reach(top, k) if top < 1 or k < FOREVER else 1 / EPS
        learned, rows = geometry.num_learned, geometry.rows_learned
        tasks, own = (slice(learned, None), slice(rows, None)) if held else (slice(learned), slice(rows))
        z = float(np.sqrt(np.trace(self.affine.second))) + (self.affine.far if held else 0.0)
        each = float(np.max(doubts.noise[:learned, 1], initial=0.0)) + doubts.known
        scale = float(np.sqrt(np.max(moments.weights(form)[0][own], initial=0.0)))
        with np.errstate(over="ignore", invalid="ignore"):
            relative = 4 * EPS * geometry.condition + each * min(lasting, float(k))
            off = scale * doubts.drift * min(lasting, k + 1.0)
            off += float(np.max(moments.slips(form)[tasks] * (z + doubts.labels[tasks]), initial=0.0))
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

        with np.errstate(over="ignore", invalid="ignore"):
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
