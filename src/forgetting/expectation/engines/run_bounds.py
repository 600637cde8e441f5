"""Bounds on the rounding errors of runs of linear schemes in float64, where the errors of all steps add up."""

from __future__ import annotations

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS
from forgetting.dynamics.trajectory import Trajectory
from forgetting.expectation.engines.moment_map import Moments
from forgetting.expectation.quantities import Form, Term
from forgetting.expectation.request import Request
from forgetting.geometry import Geometry


class RunBounds:
    """Bounds that hold for every order: on the error of the states after k steps, of iterates and of forms.

    Attributes:
        request: a linear scheme.
        moments: the moment map of the request in float64, with the bases of runs (`as_run`).
    """

    def __init__(self, request: Request, moments: Moments) -> None:
        self.request, self.moments = request, moments
        self.geometry: Geometry = request.geometry
        moments.tables.known_to(request.last)
        noise = float(np.max(moments.tables.noisiest[: self.geometry.num_learned], initial=0.0))
        pull = float(np.sqrt(moments.pull))  # decay takes z there, and rounds
        noise += 0.0 if pull == 0 else moments.shrinking
        self.pace = noise * (float(np.linalg.norm(moments.first[0])) + pull) + moments.drift

    def off(self, steps: IntArray) -> Array:
        """By how much states z are off after so many steps."""
        return self.pace * self._grown(steps)

    def seen(self, steps: IntArray) -> Array:
        """By how much they are off beside that, as the rows of tasks see them."""
        return self.moments.doubts.unsolved * self._grown(steps)

    def _grown(self, steps: IntArray) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(self.moments.unit * (steps + 1.0) * self.moments.growth(steps))

    @property
    def knows_iterates(self) -> bool:
        """Whether iterates have a bound: not those that are dual coefficients, whose kernel may be nearly singular."""
        return self.request.problem.kernel is None

    def of_iterates(self, iterates: Array, steps: IntArray) -> Array:
        """By how much iterates w (rows) are off after so many steps each; w_0 is exact."""
        geometry, w0 = self.geometry, self.request.w0
        # an iterate is w_0 + Q (z - z_0)
        rounding = 2 * (8 + float(np.sqrt(geometry.dim + geometry.frame.dim))) * EPS
        sizes = float(np.linalg.norm(geometry.start(w0)) + np.linalg.norm(geometry.solution) + np.linalg.norm(w0))
        lengths = sizes + np.linalg.norm(iterates.reshape(len(iterates), -1), axis=1)
        with np.errstate(over="ignore", invalid="ignore"):  # of a scheme that diverges
            off = np.where(steps == 0, 0.0, self.off(steps) + self.seen(steps) + rounding * lengths)
        return np.where(np.isnan(off), np.inf, off)

    def of_term(self, term: Term, run: Trajectory, steps: IntArray) -> tuple[Array, Array]:
        """The form of a term for every task at the iterates of a run, made by so many steps each, and error bounds."""
        times = 1 + (term.iterate == "mean")
        if not term.form.quadratic:
            return term.form.within(run, times * self.of_iterates(run.iterates, steps), term.held_out)
        values = term.form.along_tests(run) if term.held_out else term.form.along(run)
        far = (times * self.off(steps) + self.seen(steps))[:, None]
        return values, self.of_form(term.form, values, self.distinct(term.held_out), far)

    def of_form(self, form: Form, values: Array, distinct: IntArray, far: Array) -> Array:
        """Bounds on the errors of a form of distinct tasks, from its values, where z is off by `far`."""
        geometry, moments = self.geometry, self.moments
        largest = np.zeros(geometry.num_distinct)
        np.maximum.at(largest, geometry.owner, moments.weights(form)[0])
        tops = np.sqrt(largest)[distinct]
        labels, displaced = (part[distinct] for part in (moments.doubts.labels, moments.doubts.displaced))
        slips = moments.unit * (moments.slips(form)[distinct] * (1 + labels) + tops * displaced)
        e = tops * far * np.sqrt(geometry.ranks[distinct]) + slips
        return np.asarray(np.sqrt(2 * np.abs(values)) * e + e**2 + 64 * EPS * np.abs(values))

    def of_error(self, values: Array, off: Array) -> Array:
        """Bounds on the errors of |w - w*|^2, from its values, where z is off by `off`."""
        lost = off + self.moments.unit * self.moments.doubts.misplaced
        return np.asarray(2 * np.sqrt(values) * lost + lost**2 + 64 * self.geometry.dim * EPS * values)

    def distinct(self, held_out: bool) -> IntArray:
        """The distinct task of each task, or the number of its held-out data."""
        return self.geometry.index + (self.geometry.num_learned if held_out else 0)
