"""One call of `expect`: what is asked, which method suits it, and whether a method can answer it."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np

from forgetting._arrays import Array, IntArray
from forgetting.errors import ForgettingError, MemoryLimitError, NotSupportedError
from forgetting.expectation import spectral, subsets
from forgetting.expectation.moments import Moments, prefers_dual
from forgetting.geometry import Geometry
from forgetting.loop import view_of
from forgetting.orderings import Ordering, Reshuffled, WithoutReplacement, WithReplacement
from forgetting.schemes import LinearScheme, Scheme

__all__ = ["Method", "Request"]

Method = Literal["auto", "moments", "spectral", "subsets", "deterministic", "monte-carlo"]
PATIENCE = 600.0  # seconds that an exact method may take before `auto` prefers to simulate
FLOPS = 2e10  # of this machine, roughly: only used to compare methods


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
        self.last = int(steps[-1])

    @property
    def geometry(self) -> Geometry:
        geometry: Geometry = self.problem.geometry
        return geometry

    @cached_property
    def dual(self) -> bool:
        """Whether iterated moments are better kept in dual form."""
        return prefers_dual(self.geometry)

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
            fits = [name for name in candidates if self.bytes_needed(name) <= self.memory]
            if not fits:
                return "monte-carlo"
            # iterating is the most accurate; a factorisation is for when it would take long
            quick = "moments" in fits and self.seconds("moments") < 2
            best: Method = "moments" if quick else min(fits, key=self.seconds)
            return best if self.seconds(best) < PATIENCE else "monte-carlo"
        if isinstance(ordering, WithoutReplacement | Reshuffled):
            affordable = self.bytes_needed("subsets") <= self.memory and self.seconds("subsets") < PATIENCE
            return "subsets" if affordable else "monte-carlo"
        return "monte-carlo"

    def bytes_needed(self, method: str) -> float:
        """Estimated memory of an exact method."""
        geometry = self.geometry
        forgetting = "forgetting" in self.names
        size = len(geometry.sigma) if self.dual else geometry.dim
        if method == "moments":
            copies = 4 * (geometry.num_distinct if forgetting else 1)
            return 8.0 * size * max(size, len(geometry.sigma)) * copies
        if method == "spectral":
            order = geometry.dim * (geometry.dim + 1) / 2
            columns = order if order <= spectral.UNSETTLED_LIMIT else spectral.MAX_LANCZOS
            return 8.0 * order * columns * (3 if forgetting else 2)
        _, widest = subsets.states_needed(geometry.counts, min(self.last, geometry.num_tasks))
        return 8.0 * size**2 * widest * 4

    def seconds(self, method: str) -> float:
        """Rough time of an exact method, for choosing between them."""
        geometry = self.geometry
        total, dim = len(geometry.sigma), geometry.dim
        size = total if self.dual else dim
        one = (2 * total * size**2 * (1 if self.dual else 2) + 4 * total * size) / FLOPS + 3e-5
        stack = geometry.num_distinct if "forgetting" in self.names else 1
        if method == "moments":
            return self.last * one * (1 + (1.2 * stack if stack > 1 else 0))
        primal: float = 4 * total * dim**2 / FLOPS + 3e-5
        if method == "spectral":
            order = dim * (dim + 1) / 2
            # accuracy first: where primal moments lose digits, iterating the dual ones is worth waiting for
            penalty = 60.0 if self.dual and total > dim and self.last <= 10**6 else 0.0
            forgetting = stack > 1
            if order <= (spectral.DENSE_LIMIT if forgetting else spectral.ONE_RUN_LIMIT):
                work = order * primal + 12 * order**3 / FLOPS
                return (
                    penalty
                    + work
                    + (order**2 * (2 * stack * order / FLOPS + 6e-8 * len(self.steps)) if forgetting else 0.0)
                )
            width = min(float(spectral.MAX_LANCZOS), 5 * self.last**0.5 + 50)
            return float(penalty + ((stack if forgetting else 0) + 1) * width * (primal + 4 * width * order / FLOPS))
        states, _ = subsets.states_needed(geometry.counts, min(self.last, geometry.num_tasks))
        epochs = -(-self.last // geometry.num_tasks) if isinstance(self.ordering, Reshuffled) else 1
        return epochs * states * geometry.num_distinct * (8 * size**2 * total / geometry.num_distinct / FLOPS + 6e-6)

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
                f"the method {method!r} would need about {_size(needed)}, more than the {_size(self.memory)} allowed; "
                "raise memory= or use method='monte-carlo'",
                needed=needed,
                allowed=self.memory,
            )

    def moment_map(self, dual: bool | None = None) -> Moments:
        """The moment map of the scheme, with the probabilities of an i.i.d. ordering (uniform for permutations)."""
        geometry = self.geometry
        view = view_of(self.problem)
        if isinstance(self.ordering, WithReplacement):
            p = self.ordering.probabilities(view)
        else:
            p = np.full(geometry.num_tasks, 1 / geometry.num_tasks)
        distinct = np.bincount(geometry.index, weights=p, minlength=geometry.num_distinct)
        return Moments.of(geometry, self.scheme, distinct, dual=self.dual if dual is None else dual)  # type: ignore[arg-type]


def _size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} TiB"
