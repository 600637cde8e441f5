"""One call of `expect`: what is asked, which method suits it, and whether a method can answer it."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np

from forgetting._arrays import Array, IntArray
from forgetting._memory import in_bytes
from forgetting.dynamics.loop import view_of
from forgetting.errors import ForgettingError, MemoryLimitError, NotSupportedError
from forgetting.expectation import spectral, subsets
from forgetting.expectation.moments import Moments, Pair, two_floats
from forgetting.geometry import Geometry
from forgetting.orderings import Ordering, Reshuffled, WithoutReplacement, WithReplacement
from forgetting.schemes import LinearScheme, Scheme

__all__ = ["Method", "Request"]

Method = Literal["auto", "moments", "spectral", "subsets", "deterministic", "monte-carlo"]
PATIENCE = 600.0  # seconds that an exact method may take before `auto` prefers to simulate
FLOPS = 2e10  # of this machine, roughly: only used to compare methods
TWOFOLD = 4e-9  # seconds that a product and a sum of numbers of two floats take, roughly
QUICK = 2.0  # seconds that may be spent on digits


class Request:
    """What is asked: the steps are sorted, everything else is as the user gave it."""

    def __init__(
        self,
        problem: Any,
        ordering: Ordering,
        scheme: Scheme,
        w0: Array,
        steps: IntArray,
        names: tuple[str, ...],
        memory: float,
    ) -> None:
        self.problem, self.ordering, self.scheme, self.w0 = problem, ordering, scheme, w0
        self.steps, self.names, self.memory = steps, names, memory
        self.forgone: list[str] = []  # exact methods that `choose` left for want of memory
        self.last = int(steps[-1])

    @property
    def geometry(self) -> Geometry:
        geometry: Geometry = self.problem.geometry
        return geometry

    @cached_property
    def precise(self) -> bool:
        """Whether moments are kept in numbers of two floats: where the data are there and it takes a second or two."""
        geometry = self.geometry
        if (geometry.refinement + self._work()) * TWOFOLD > QUICK:
            return False
        return geometry.precise is not None

    def _work(self) -> float:
        """Products of two numbers that iterated or permuted moments take, roughly."""
        geometry = self.geometry
        total, size, tasks = len(geometry.sigma), geometry.dim, geometry.num_distinct
        one = 3.0 * total * size**2 + 4.0 * size**2 + 300
        if isinstance(self.ordering, WithoutReplacement | Reshuffled):
            states, _ = subsets.states_needed(geometry.counts, min(self.last, geometry.num_tasks))
            epochs = -(-self.last // geometry.num_tasks) if isinstance(self.ordering, Reshuffled) else 1
            return float(epochs * states * one)
        if self.deterministic:
            looks = 5e4 if self.ordering.adaptive else 0.0  # before each step, by an ordering that is not compiled
            return float(self.last * (one / tasks + 4 * size**2 + looks))
        return float(self.last * one * (1 + (tasks if "forgetting" in self.names else 0)))

    @cached_property
    def distance_sq(self) -> float | None:
        """|w_0 - w*|^2 with w* the common solution nearest to w_0; None where there is none, or none was found."""
        if not hasattr(self.problem, "nearest_solution"):
            return None
        try:
            gap = self.problem.nearest_solution(self.w0) - self.w0
        except ForgettingError:
            return None
        return float(gap @ gap)

    @property
    def linear(self) -> bool:
        return isinstance(self.scheme, LinearScheme) and hasattr(self.problem, "geometry")

    @property
    def deterministic(self) -> bool:
        """Whether neither the ordering nor the scheme has any randomness."""
        return not self.ordering.random and not self.scheme.random

    def choose(self) -> Method:
        """The cheapest exact method that fits, else simulation."""
        ordering = self.ordering
        if self.deterministic:
            return "deterministic"
        if not self.linear or not self.problem.realizability.holds:
            return "monte-carlo"
        if isinstance(ordering, WithReplacement):
            candidates: tuple[Method, ...] = ("moments", "spectral")
            fits = [name for name in candidates if self._fits(name)]
            if not fits:
                return "monte-carlo"
            # iterating is the most accurate; a factorisation is for when it would take long
            quick = "moments" in fits and self.seconds("moments") < 2
            best: Method = "moments" if quick else min(fits, key=self.seconds)
            return best if self.seconds(best) < PATIENCE else "monte-carlo"
        if isinstance(ordering, WithoutReplacement | Reshuffled):
            affordable = self._fits("subsets") and self.seconds("subsets") < PATIENCE
            return "subsets" if affordable else "monte-carlo"
        return "monte-carlo"

    def _fits(self, method: str) -> bool:
        needed = self.bytes_needed(method)
        if needed > self.memory:
            self.forgone.append(
                f"the method {method!r} was left out: it would need about {in_bytes(needed)}, more than the "
                f"{in_bytes(self.memory)} allowed (memory=)"
            )
        return needed <= self.memory

    def bytes_needed(self, method: str) -> float:
        """Estimated memory of an exact method."""
        geometry = self.geometry
        forgetting = "forgetting" in self.names
        size = geometry.dim + 1
        if method == "moments":
            copies = 4 * (1 + (geometry.num_distinct if forgetting else 1))
            return 8.0 * size * max(size, len(geometry.sigma)) * copies
        if method == "spectral":
            order = geometry.dim * (geometry.dim + 1) / 2
            columns = order if order <= spectral.UNSETTLED_LIMIT else spectral.MAX_LANCZOS
            return 8.0 * order * columns * (3 if forgetting else 2)
        _, widest = subsets.states_needed(geometry.counts, min(self.last, geometry.num_tasks))
        return 8.0 * size**2 * widest * 8

    def seconds(self, method: str) -> float:
        """Rough time of an exact method, for choosing between them."""
        geometry = self.geometry
        total, dim = len(geometry.sigma), geometry.dim
        one: float = 4 * total * dim**2 / FLOPS + 3e-5
        stack = geometry.num_distinct if "forgetting" in self.names else 1
        if method in ("moments", "subsets") and self.precise:
            return self._work() * TWOFOLD
        if method == "moments":
            return 2e-5 * self.last + self.last * one * (2 + (1.2 * stack if stack > 1 else 0))
        if method == "spectral":
            order = dim * (dim + 1) / 2
            forgetting = stack > 1
            if order <= (spectral.DENSE_LIMIT if forgetting else spectral.ONE_RUN_LIMIT):
                work = order * one + 12 * order**3 / FLOPS
                return work + (order**2 * (2 * stack * order / FLOPS + 6e-8 * len(self.steps)) if forgetting else 0.0)
            width = min(float(spectral.MAX_LANCZOS), 5 * self.last**0.5 + 50)
            return float(((stack if forgetting else 0) + 1) * width * (one + 4 * width * order / FLOPS))
        states, _ = subsets.states_needed(geometry.counts, min(self.last, geometry.num_tasks))
        epochs = -(-self.last // geometry.num_tasks) if isinstance(self.ordering, Reshuffled) else 1
        return 2 * epochs * states * geometry.num_distinct * (8 * dim**2 * total / geometry.num_distinct / FLOPS + 6e-6)

    def require(self, method: str) -> None:
        """Raise unless the method covers what is asked and fits."""
        permuted = isinstance(self.ordering, WithoutReplacement | Reshuffled)
        if not (permuted if method == "subsets" else isinstance(self.ordering, WithReplacement)):
            raise NotSupportedError(f"the method {method!r} does not cover {self.ordering}; use method='auto'")
        if not self.linear:
            raise NotSupportedError(
                f"the method {method!r} needs a linear scheme on regression tasks, not {self.scheme}; "
                "use method='monte-carlo'"
            )
        self.problem.require_realizable(f"the method {method!r}")
        needed = self.bytes_needed(method)
        if needed > self.memory:
            raise MemoryLimitError(
                f"the method {method!r} would need about {in_bytes(needed)}, more than the {in_bytes(self.memory)} "
                "allowed; raise memory= or use method='monte-carlo'",
                needed=needed,
                allowed=self.memory,
            )

    def moment_map(self, *, homogeneous: bool = False, as_run: bool = False) -> Moments:
        """The moment map of the scheme, with the probabilities of an i.i.d. ordering (uniform for permutations).

        A homogeneous one is in float64 and leaves out what no w fits. `as_run` is in float64, with the bases of runs.
        """
        geometry = self.geometry
        weights, known = np.ones(geometry.num_tasks), 0.0
        if isinstance(self.ordering, WithReplacement):
            weights, known = self.ordering.law.weights(view_of(self.problem))
        each: Pair = np.zeros(geometry.num_distinct), np.zeros(geometry.num_distinct)
        total = 0.0, 0.0
        for which, weight in zip(geometry.index.tolist(), weights.tolist(), strict=True):
            each[0][which], each[1][which] = two_floats().add(each[0][which], each[1][which], weight, 0.0)
            total = two_floats().add(*total, weight, 0.0)
        chance = two_floats().div(*each, np.full(len(each[0]), total[0]), np.full(len(each[0]), total[1]))
        twofold = self.precise and not homogeneous and not as_run
        options = {"twofold": twofold, "known": known, "homogeneous": homogeneous, "as_run": as_run}
        return Moments.of(geometry, self.scheme, chance, self.w0, **options)  # type: ignore[arg-type]
