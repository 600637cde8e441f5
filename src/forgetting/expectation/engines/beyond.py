"""Quantities from the affine recursion: any k on tasks that no w solves, and k = inf on all tasks."""

from __future__ import annotations

import numpy as np

from forgetting.core.arrays import Array
from forgetting.expectation.engines.affine import Functional, centred
from forgetting.expectation.engines.modes import Estimate, Modes, by_lanczos, diagonal_modes, reach
from forgetting.expectation.engines.moment_map import Moments
from forgetting.expectation.engines.pairs import EPS
from forgetting.expectation.engines.visits import OverVisits
from forgetting.expectation.outcome import Values
from forgetting.expectation.quantities import Form, Quantity
from forgetting.expectation.request import FOREVER, Request

__all__ = ["AffineSpectrum"]

MARGIN = 4.0  # on all estimates of errors: 1 was too little once in 28,000 values of hard problems, by a factor of 2


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
        self.visits: dict[tuple[Form, bool], OverVisits] = {}
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
                share = self._of_tests(geometry.counts / geometry.num_tasks, held)
                return self._told(form, self._read((form, "tasks", held), share[geometry.owner], k), share, k, held)
            case "next":
                return self._told(form, self._read((form, "drawn", False), p, k), plain, k)
            case "learnt":
                return self._told(form, self._mean((form, "drawn", False), self._form(form, p), k), plain, k)
        if quantity.subtracts_kept and k == 1:
            return 0.0, 0.0  # nothing is forgotten yet
        if k == FOREVER and not held:
            share = p * (1 - left) if quantity.subtracts_kept else p
            gap = self._read((form, "forgotten" if quantity.subtracts_kept else "drawn", False), share, k)
            return self._told(form, gap, None if quantity.subtracts_kept else plain, k)
        shares = self._of_tests(plain, held)
        seen = Estimate(0.0, 0.0)
        if k == FOREVER:
            seen = self._read((form, "drawn", True), shares[geometry.owner], k)
        elif k > 1 or not moments.solves or held:  # else the only task that was visited is solved
            seen = Estimate(*(number / k for number in self._visited(form, held).at(k)))
        if not quantity.subtracts_kept:
            return self._told(form, seen, shares, k, held)
        after = self.affine.tests_after(form) if held else self._form(form, p * left)
        kept = self._mean((form, "kept", held), after, k)
        size = abs(seen.value) + abs(kept.value)
        return self._told(form, Estimate(seen.value - kept.value, seen.doubt + kept.doubt), None, k, held, size)

    def _task(self, form: Form, task: int, k: int) -> tuple[float, float]:
        geometry = self.affine.moments.geometry
        chosen = (np.arange(geometry.num_distinct) == task).astype(float)
        held = task >= geometry.num_learned
        return self._told(form, self._read((form, task, False), chosen[geometry.owner], k), chosen, k, held)

    def _of_tests(self, shares: Array, held_out: bool) -> Array:
        """Shares of distinct tasks, given to their held-out data instead."""
        half = self.affine.moments.geometry.num_learned
        return np.concatenate([0 * shares[:half], shares[:half]]) if held_out else shares

    def _form(self, form: Form, share: Array) -> Functional:
        return self.affine.functional(form, share)

    def _error(self, k: int) -> tuple[float, float]:
        """E|z|^2."""
        affine, factor = self.affine, self.affine.moments.unit**2
        identity, floor = affine.packed(np.eye(affine.size)), float(np.trace(affine.constants))
        functional = Functional(identity, np.zeros_like(affine.first), floor, float(np.sqrt(affine.size)))
        found = self._evaluated("error", functional, k)
        off = affine.moments.geometry.best.misplaced / affine.moments.unit
        doubt = found.doubt + 2 * np.sqrt(abs(found.value)) * off + off**2
        return found.value * factor, doubt * factor

    # ------------------------------------------------------------------------------------------------------ parts

    def _visited(self, form: Form, held_out: bool) -> OverVisits:
        if (form, held_out) not in self.visits:
            assert self.modes is not None
            geometry = self.affine.moments.geometry
            shift = geometry.num_learned if held_out else 0
            forms = [self._form(form, (geometry.owner == m + shift) * 1.0) for m in range(geometry.num_distinct)]
            self.visits[form, held_out] = OverVisits(self.modes, forms)
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
            found = self._by_lanczos(key, functional)
            if found is not None:
                return found[0].evaluate(found[1], functional, k, summed=summed)
        assert self.modes is not None
        weights = self.affine.moments.device.take(self.modes.basis @ functional.matrix)
        return self.modes.evaluate(weights, functional, k, summed=summed)

    def _by_lanczos(self, key: object, functional: Functional) -> tuple[Modes, Array] | None:
        """What one functional sees; None if Q was diagonalised instead, because Lanczos did not settle."""
        name = hash(key)
        if name not in self.seen:
            modes, weights = by_lanczos(self.affine, functional, self.steps, (False, True), self.most)
            if not modes.settled and self.order <= self.unsettled:
                self.modes = diagonal_modes(self.affine)
                return None
            self.settled = self.settled and modes.settled
            self.seen[name] = functional, modes, weights
        return self.seen[name][1:]

    def _told(
        self, form: Form, found: Estimate, share: Array | None, k: int, held: bool = False, size: float | None = None
    ) -> tuple[float, float]:
        """The number in the user's units, with what no w can fit of each task times its share, and its doubt.

        `held` says whether the form is that of held-out data. `size` is that of the forms that a difference is made of.
        """
        moments, factor = self.affine.moments, self.affine.moments.unit**2
        value = found.value * factor
        doubt = found.doubt + self._from_the_data(form, abs(found.value) if size is None else size, k, held)
        doubt *= factor
        if share is not None and form.with_unfitted:
            extra = float(share @ moments.unexplained[0])
            value += extra
            doubt += float(share @ moments.doubts.unexplained) + 8 * EPS * extra
        return value, doubt

    def _from_the_data(self, form: Form, value: float, k: int, held: bool) -> float:
        """What errors of the bases, the gains, the labels and the probabilities do: an estimate."""
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
        found = [self.modes] if self.modes is not None else [modes for _, modes, _ in self.seen.values()]
        return max([modes.top for modes in found], default=1 - self.affine.nearest)
