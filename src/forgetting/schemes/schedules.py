"""Schedules: schemes whose settings depend on the step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count, takewhile
from operator import attrgetter
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, as_list
from forgetting.errors import ForgettingError, InvalidInputError, NotSupportedError
from forgetting.schemes.base import Learned, LinearStep, LinearSteps, Scheme, SchemeLike, as_scheme, register
from forgetting.tasks.problem import Problem

__all__ = ["Scheduled"]

TRAITS = ("intrinsic", "random", "reads_rows", "needs_realizable", "scale_of_iterates")
_traits = attrgetter(*TRAITS)


@register
@dataclass(frozen=True, repr=False)
class Scheduled(Scheme):
    """Step t = 1, 2, ... is made by the scheme `schedule(t)`, or by entry t - 1 of a list of schemes.

    t counts the tasks learned so far, this one included. Schedules of linear schemes have exact expectations, at the
    cost of their plain schemes; all others are simulated. A function is called once for each step, and what it gave is
    kept; a result that was made with a function is saved with the schemes of all its steps. All steps must be of
    one kind: linear, or on the same coordinates, with or without random numbers.

    >>> import forgetting as fg
    >>> slower = fg.schemes.Scheduled(lambda t: fg.schemes.Ridge(0.1 * t))
    >>> e = fg.expect(fg.families.two_lines(0.5), fg.orderings.WithoutReplacement(), k=2, scheme=slower)
    >>> slower.made(3), slower.random
    (Ridge(lam=0.30000000000000004), False)
    >>> fg.schemes.Scheduled(["ridge lam=1", "kaczmarz"])
    Scheduled([Ridge(lam=1.0), Kaczmarz()])
    >>> fg.schemes.Scheduled(lambda t: fg.schemes.Ridge(2 - t)).made(2)
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: Scheduled(<lambda>), step 2: lam must be greater than 0, got 0
    """

    schedule: Callable[[int], SchemeLike] | Sequence[SchemeLike]
    _made: dict[int, Scheme] = field(default_factory=dict, init=False, compare=False)
    remembers = True  # the number of the step

    def __post_init__(self) -> None:
        if callable(self.schedule) and not isinstance(self.schedule, type):
            return
        if isinstance(self.schedule, str | type) or not isinstance(self.schedule, Iterable):
            raise InvalidInputError(
                "schedule must be a function of the step, such as lambda t: Ridge(1 / t), or a list of schemes, got "
                f"{self.schedule!r:.80}"
            )
        given = as_list(self.schedule, "schedule")
        if not given:
            raise InvalidInputError("schedule: an empty list has no scheme for step 1")
        for t, scheme in enumerate(given, 1):
            self._keep(t, scheme)
        object.__setattr__(self, "schedule", tuple(self._made.values()))

    def __repr__(self) -> str:
        if callable(self.schedule):
            return f"Scheduled({getattr(self.schedule, '__name__', type(self.schedule).__name__)})"
        shown, more = ", ".join(map(repr, self.schedule[:3])), len(self.schedule) - 3
        return f"Scheduled([{shown}{f', and {more} more' if more > 0 else ''}])"

    def made(self, t: int) -> Scheme:
        """The scheme of step t = 1, 2, ...; an error names the step of a bad value."""
        if t not in self._made:
            if not callable(self.schedule):
                have = len(self.schedule)
                raise InvalidInputError(f"{self}, step {t}: the list ends after {have} steps; give k up to {have}")
            try:
                scheme = self.schedule(t)
            except ForgettingError as error:
                raise InvalidInputError(f"{self}, step {t}: {error}") from error
            except Exception as error:
                error.add_note(f"{self}, step {t}")
                raise
            self._keep(t, scheme)
        return self._made[t]

    def _keep(self, t: int, given: Any) -> None:
        """Remember the scheme of step t, which must be of the kind of that of step 1."""
        try:
            scheme = as_scheme(given)
        except ForgettingError as error:
            raise InvalidInputError(f"Scheduled, step {t}: {error}") from error
        if scheme.remembers and scheme.at_step(t) is scheme:
            raise NotSupportedError(
                f"Scheduled, step {t}: a step of {scheme} depends on the tasks before; schedule schemes whose steps "
                "depend on w alone"
            )
        if t > 1 and _traits(scheme) != self._kind:
            first, pairs = self.made(1), zip(TRAITS, _traits(scheme), self._kind, strict=True)
            trait, mine, others = next(pair for pair in pairs if pair[1] != pair[2])
            raise InvalidInputError(
                f"Scheduled, step {t}: {scheme} has {trait} = {mine}, and {first} of step 1 has {others}; all "
                "steps of a schedule must be alike in this"
            )
        self._made[t] = scheme

    @cached_property
    def _kind(self) -> Any:
        """The traits of the scheme of step 1, which those of all steps must have."""
        return _traits(self.made(1))

    # ------------------------------------------------------------------------------------------- what it states

    @property
    def intrinsic(self) -> bool:  # type: ignore[override]
        return self.made(1).intrinsic

    @property
    def needs_realizable(self) -> bool:  # type: ignore[override]
        return self.made(1).needs_realizable

    @property
    def reads_rows(self) -> bool:  # type: ignore[override]
        return self.made(1).reads_rows

    @property
    def short_of_its_limit(self) -> str:  # type: ignore[override]
        return self.made(1).short_of_its_limit

    @property
    def random(self) -> bool:
        return self.made(1).random

    @property
    def scale_of_iterates(self) -> float:
        return self.made(1).scale_of_iterates

    @property
    def projects(self) -> bool:
        return self._all("projects")

    @property
    def solves_task(self) -> bool:
        return self._all("solves_task")

    @property
    def nonexpansive(self) -> bool:
        return self._all("nonexpansive")

    def _all(self, trait: str) -> bool:
        """Whether all steps are known to state this, which nobody knows of a function."""
        return not callable(self.schedule) and all(getattr(scheme, trait) for scheme in self._made.values())

    def linear_steps_on(self, problem: Problem) -> LinearSteps | None:
        if self.made(1).linear_steps_on(problem) is None:
            return None

        def at(t: int) -> LinearStep:
            linear = self.made(t).linear_on(problem)
            if linear is not None:
                return LinearStep(linear)
            steps = self.made(t).linear_steps_on(problem)
            if steps is None:
                raise InvalidInputError(
                    f"{self}, step {t}: {self.made(t)} is not linear, and {self.made(1)} of step 1 is; all steps of a "
                    "schedule must be alike in this"
                )
            return steps.at(t)

        return LinearSteps(at)

    def fitted_to(self, problem: Problem, k: int) -> Scheme:
        if not callable(self.schedule) and k > len(self.schedule):
            raise InvalidInputError(
                f"{self} has schemes for {len(self.schedule)} steps, and k = {k} needs more; give k up to "
                f"{len(self.schedule)}, a longer list, or a function"
            )
        first = self.made(1)
        if first.fitted_to(problem, k) is first:
            return self
        return Scheduled(lambda t: self.made(t).fitted_to(problem, k))

    def at_step(self, t: int) -> Scheme:
        return self.made(t).at_step(t)

    def kept_at(self, t: int) -> float:
        return self.made(t).kept_at(t)

    def settings(self) -> dict[str, Any]:
        """The schemes of all steps; for a function, those of the steps that it was asked for."""
        known = [self._made[t] for t in takewhile(self._made.__contains__, count(1))]
        if not known:
            raise NotSupportedError(f"{self}: a function cannot be saved before it has made a step; give a list")
        return {"schedule": known}

    # ------------------------------------------------------------------------------------------------- a run

    def start(self, problem: Problem, w0: Array, rng: np.random.Generator) -> Any:
        return [0, w0, rng]

    def learn(self, problem: Problem, task: int, w: Array, memory: Any) -> Learned:
        t, w0, rng = memory
        memory[0] = t + 1
        scheme = self.at_step(t + 1)
        return scheme.learn(problem, task, w, scheme.start(problem, w0, rng))
