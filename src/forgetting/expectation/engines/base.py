"""What an engine is, the registry of engines, and how `auto` chooses one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple, TypeVar

from forgetting._memory import in_bytes
from forgetting._registry import Registry
from forgetting.errors import MemoryLimitError, NotSupportedError
from forgetting.expectation.outcome import Outcome
from forgetting.expectation.request import Request

__all__ = ["Cost", "Engine", "choose", "engines", "register_engine", "require", "require_realizable"]

PATIENCE = 600.0  # seconds that an exact engine may take before `auto` prefers to simulate
SOON = 2.0  # seconds below which the engine registered first, the most accurate, is preferred to a quicker one


class Cost(NamedTuple):
    """Rough estimates of what an engine needs for a request.

    >>> Cost(bytes=8e6, seconds=0.5).seconds
    0.5
    """

    bytes: float
    seconds: float


class Engine(ABC):
    """One way to compute expectations. An engine is one class with one name, made known by `register_engine`.

    `auto` loops over the registered engines: of the exact engines that cover the request and fit in its memory, the
    first that takes less than SOON seconds, else the quickest; a simulating engine if none takes less than PATIENCE
    seconds.
    """

    #: what callers write in `method=`
    name: ClassVar[str]
    #: whether values are exact up to rounding; False for simulation
    exact: ClassVar[bool] = True
    #: whether the engine needs tasks that one w solves
    needs_realizable: ClassVar[bool] = False

    @abstractmethod
    def covers(self, request: Request) -> str | None:
        """None if the engine can answer; else why not, as a clause that a message can end with."""

    @abstractmethod
    def cost(self, request: Request) -> Cost:
        """Bytes and seconds, for a request that is covered."""

    @abstractmethod
    def solve(self, request: Request) -> Outcome:
        """The expected quantities at the steps of the request."""


engines: Registry[Engine] = Registry("method")
E = TypeVar("E", bound=type[Engine])


def register_engine(cls: E) -> E:
    """A class decorator that makes an engine known to `expect`: by its name, and to `auto`.

    A class of the same module and name replaces the earlier one, as when a notebook cell runs twice.
    """
    same = cls.name in engines and type(engines.get(cls.name)).__module__ == cls.__module__
    engines.add(cls.name, cls(), replace=same)
    return cls


def choose(request: Request) -> tuple[Engine, tuple[str, ...]]:
    """The engine that `auto` takes, and notes on exact engines left out for want of memory if it simulates."""
    fitting: list[tuple[float, Engine]] = []
    left_out = []
    for engine in (engine for engine in engines.members() if engine.exact):
        if engine.covers(request) is not None or (engine.needs_realizable and not request.realizable):
            continue
        needed, seconds = engine.cost(request)
        if needed > request.memory:
            left_out.append(
                f"the method {engine.name!r} was left out: it would need about {in_bytes(needed)}, more than the "
                f"{in_bytes(request.memory)} allowed (memory=)"
            )
        elif seconds < PATIENCE:
            fitting.append((seconds, engine))
    soon = [engine for seconds, engine in fitting if seconds < SOON]
    if fitting:
        return (soon[0] if soon else min(fitting, key=lambda pair: pair[0])[1]), ()
    simulating = [engine for engine in engines.members() if not engine.exact and engine.covers(request) is None]
    return min(simulating, key=lambda engine: engine.cost(request).seconds), tuple(left_out)


def require(engine: Engine, request: Request) -> None:
    """Raise unless the engine covers the request and, if it is exact, fits in memory."""
    reason = engine.covers(request)
    if reason is not None:
        raise NotSupportedError(f"the method {engine.name!r} cannot answer: {reason}; use method='auto'")
    if engine.needs_realizable:
        require_realizable(request, f"the method {engine.name!r}")
    needed = engine.cost(request).bytes if engine.exact else 0.0
    if needed > request.memory:
        raise MemoryLimitError(
            f"the method {engine.name!r} would need about {in_bytes(needed)}, more than the {in_bytes(request.memory)} "
            "allowed; raise memory= or use method='monte-carlo'",
            needed=needed,
            allowed=request.memory,
        )


def require_realizable(request: Request, what: str) -> None:
    """Raise unless one w solves all tasks; `what` is the operation that needs such a w."""
    if request.problem.linear is not None:
        request.problem.linear.require_realizable(what)
    elif not request.realizable:
        raise NotSupportedError(f"{what} needs tasks that one w is known to solve")
