"""What an engine is, and the registry of engines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple, TypeVar

from forgetting.core.registry import Registry
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.expectation.outcome import Outcome
from forgetting.expectation.request import Request

__all__ = ["Cost", "Engine", "engines", "register_engine", "require_realizable"]


class Cost(NamedTuple):
    """Rough estimates of what an engine needs for a request.

    >>> Cost(bytes=8e6, seconds=0.5).seconds
    0.5
    """

    bytes: float
    seconds: float


class Engine(ABC):
    """One way to compute expectations. An engine is one class with one name, made known by `register_engine`.

    `auto` loops over the registered engines: of the exact engines that cover the request, fit in its memory and take no
    longer than its patience, the first that takes less than two seconds, else the quickest; a simulating engine if
    there is none. So the cost of an engine should depend on the quantities of the request.
    """

    #: what callers write in `method=`
    name: ClassVar[str]
    #: whether values are exact up to rounding; False for simulation
    exact: ClassVar[bool] = True
    #: whether the engine needs tasks that one w solves
    needs_realizable: ClassVar[bool] = False
    #: whether the engine knows the limit k = inf; others are not asked for it
    endless: ClassVar[bool] = False
    #: whether the engine computes on the device of a request; others are given requests for the CPU
    on_device: ClassVar[bool] = False

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
    if not (isinstance(cls, type) and issubclass(cls, Engine) and isinstance(getattr(cls, "name", None), str)):
        raise InvalidInputError(f"expected a class derived from Engine that has a name, got {cls!r:.80}")
    same = cls.name in engines and type(engines.get(cls.name)).__module__ == cls.__module__
    engines.add(cls.name, cls(), replace=same)
    return cls


def require_realizable(request: Request, what: str) -> None:
    """Raise unless one w solves all tasks; `what` is the operation that needs such a w."""
    if request.problem.linear is not None:
        request.problem.linear.require_realizable(what)
    elif not request.realizable:
        raise NotSupportedError(f"{what} needs tasks that one w is known to solve")
