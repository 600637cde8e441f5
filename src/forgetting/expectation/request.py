"""`Request`, a checked call of `expect`, which engines read."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from forgetting.compute.devices import HOST, Device
from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS
from forgetting.expectation.quantities import LOSS, Average, Quantity, Term
from forgetting.geometry import Geometry
from forgetting.orderings import Ordering
from forgetting.orderings.laws import Law
from forgetting.schemes import LinearScheme, LinearSteps, Scheme
from forgetting.tasks import Problem

__all__ = ["Request"]

PATIENCE = 30.0  # the default of `expect`
DEFAULT_RUNS, MOST_RUNS = 4096, 2**20  # of a simulation, and of one that goes on until `rtol` is reached
MOST_LISTED = 2**26  # steps up to which a schedule is asked for all of them before the first
FOREVER = 2**63 - 1  # k = inf among the steps of a request, after all others


def steps_shown(steps: IntArray) -> IntArray | Array:
    """The steps as callers see them: floats where k = inf is among them.

    >>> steps_shown(np.array([1, FOREVER])).tolist(), steps_shown(np.array([1, 2])).tolist()
    ([1.0, inf], [1, 2])
    """
    return np.where(steps == FOREVER, np.inf, steps) if np.any(steps == FOREVER) else steps


@dataclass(frozen=True)
class Simulation:
    """The settings of a simulation.

    Attributes:
        seed: of the random numbers.
        runs: the number of runs, or the most if `rtol` is given; None for the default.
        rtol: the half-width of intervals to reach, relative to the value.
        confidence: of intervals.
        threads: None for all cores.
    """

    seed: int = 0
    runs: int | None = None
    rtol: float | None = None
    confidence: float = 0.99
    threads: int | None = None

    @property
    def most(self) -> int:
        """The most runs to spend."""
        return self.runs or (DEFAULT_RUNS if self.rtol is None else MOST_RUNS)


@dataclass(frozen=True, eq=False)
class Request:
    """A checked call of `expect`.

    Attributes:
        problem, ordering, w0: as the caller gave them.
        scheme: the scheme, fitted to the steps, or the linear scheme that makes the same steps on this problem.
        steps: the numbers of steps k, sorted; FOREVER for k = inf.
        quantities: the quantities whose expectations are wanted.
        memory: bytes that an exact engine may use.
        patience: seconds that `auto` may take, as estimated.
        simulation: the settings of a simulation.
        device: the device that computes.
    """

    problem: Problem
    ordering: Ordering
    scheme: Scheme
    w0: Array
    steps: IntArray
    quantities: tuple[Quantity, ...]
    memory: float
    patience: float = PATIENCE
    simulation: Simulation = field(default_factory=Simulation)
    device: Device = HOST

    @property
    def last(self) -> int:
        """The largest k."""
        return int(self.steps[-1])

    @property
    def forever(self) -> bool:
        """Whether k = inf is among the steps."""
        return self.last == FOREVER

    @cached_property
    def law(self) -> Law:
        """The distribution of the visits of the ordering."""
        return self.ordering.law

    @cached_property
    def linear(self) -> LinearSteps | None:
        """The steps of the scheme if they are linear on this problem, which then has a geometry; else None."""
        return None if self.problem.geometry is None else self.scheme.linear_steps_on(self.problem)

    @property
    def linear_steps(self) -> LinearSteps:
        """The linear steps, for engines that cover nothing else."""
        assert self.linear is not None
        return self.linear

    @property
    def linear_scheme(self) -> LinearScheme:
        """The linear scheme of all steps, for engines that cover nothing but steps that are alike."""
        assert self.linear_steps.alike
        return self.linear_steps.at(1).scheme

    @cached_property
    def left(self) -> Array | None:
        """What each number of steps up to the last leaves of the part of w_0 that no task sees; None if all of it."""
        if self.linear is None or self.linear.alike or self.last > MOST_LISTED:
            return None
        left = self.scheme.left_after(np.arange(self.last + 1))
        return None if left is None or np.all(left == 1) else left

    @cached_property
    def decays(self) -> bool:
        """Whether some step keeps less than all of w; of very many steps that differ, this is not looked at."""
        return self.left is not None or (self.linear is not None and not self.linear.alike and self.last > MOST_LISTED)

    @cached_property
    def aside(self) -> tuple[float, float]:
        """The squared norm of the part of w_0 that no task sees, and a bound on the error of its root."""
        geometry = self.geometry
        if self.problem.kernel is not None:  # the model of such a part is 0
            return 0.0, 0.0
        part = geometry.lift(-geometry.solution, self.w0)
        turned = float(np.max(geometry.turned, initial=0.0)) * np.sqrt(max(1, geometry.rows_learned))
        off = 4 * turned * geometry.condition + 16 * np.sqrt(geometry.frame.dim) * EPS
        return float(np.vdot(part, part)), float(off * np.linalg.norm(self.w0))

    def error_aside(self, steps: IntArray) -> tuple[Array, Array]:
        """What decay adds to |w_k - w*|^2 after each of several numbers of steps, where no task sees it; and a doubt.

        w* has the part of w_0 that no task sees, and an iterate has what is left of it.
        """
        if self.left is None:
            return np.zeros(np.shape(steps)), np.zeros(np.shape(steps))
        square, off = self.aside
        lost = (1 - self.left[steps]) ** 2
        return lost * square, lost * (2 * np.sqrt(square) * off + off**2 + 16 * EPS * self.last * square)

    @property
    def geometry(self) -> Geometry:
        """The geometry, for engines that cover linear schemes alone."""
        geometry = self.problem.geometry
        assert geometry is not None
        return geometry

    @cached_property
    def realizable(self) -> bool:
        """Whether one w is known to solve all tasks."""
        finding = self.problem.realizability
        return finding is not None and bool(finding.holds)

    @property
    def deterministic(self) -> bool:
        """Whether neither the ordering nor the scheme has any randomness."""
        return not self.ordering.random and not self.scheme.random

    @cached_property
    def one_more(self) -> int:
        """1 if a quantity needs the task that comes after the last step and the ordering has such a task; else 0."""
        limit = self.ordering.limit(self.problem.num_tasks)
        return int(self.averages("next") and (limit is None or self.last < limit))

    @cached_property
    def constants(self) -> int:
        """The number of constants in the state beside z: one for each output, but none if z = 0 solves all tasks."""
        geometry = self.geometry
        if float(np.max(geometry.residuals, initial=0.0)) <= 1e-12 and not self.decays:
            return 0
        return geometry.outputs or 1

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The terms of all quantities."""
        return tuple(term for quantity in self.quantities for term in quantity.terms())

    @cached_property
    def scores_tests(self) -> bool:
        """Whether a quantity needs the loss of held-out data just after their task was learned."""
        return any(term.held_out and term.average in ("visited", "kept") for term in self.terms)

    @cached_property
    def averaged(self) -> bool:
        """Whether a quantity is evaluated at a mean of iterates."""
        return any(term.iterate == "mean" for term in self.terms)

    @cached_property
    def every_iterate(self) -> bool:
        """Whether a run has to keep all its iterates: its losses before and after each step are not enough."""
        return self.averaged or any(
            (term.form is not LOSS or term.held_out) and term.average not in ("tasks", "each", "error")
            for term in self.terms
        )

    def averages(self, average: Average) -> bool:
        """Whether a term has this average."""
        return any(term.average == average for term in self.terms)
