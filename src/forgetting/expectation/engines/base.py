"""The base class of engines, their registry, and the choice that `auto` makes among them."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple, NoReturn, TypeVar

from forgetting.compute.devices import HOST
from forgetting.core.memory import available_memory, in_bytes
from forgetting.core.registry import Registry
from forgetting.core.text import error_words
from forgetting.errors import InvalidInputError, MemoryLimitError, NotSupportedError, PatienceError
from forgetting.expectation.outcome import Outcome
from forgetting.expectation.quantities import Quantity
from forgetting.expectation.request import DEFAULT_RUNS, Request

__all__ = ["Cost", "Engine", "as_simulated", "choose", "engines", "register_engine", "require"]

ENDLESS = "k = inf is for independent draws under a linear scheme"
AT_ONCE = 0.5  # seconds that nobody is refused, whatever patience= says
HOPELESS = 1e7  # seconds, some months: nobody is told to wait so long
FEWEST_RUNS = 128  # that a simulation makes on its own account
SOON = 2.0  # seconds below which the engine registered first, the most accurate, is preferred to a quicker one


class Cost(NamedTuple):
    """Rough estimates of what an engine needs for a request.

    Attributes:
        bytes: the memory.
        seconds: the time.
        reach: which sizes the time allows, for a refusal; "" where k says it.

    >>> Cost(bytes=8e6, seconds=0.5).seconds
    0.5
    """

    bytes: float
    seconds: float
    reach: str = ""


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
        """None if the engine can answer; else the reason why not, as a clause that ends a message."""

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
    """Raise unless one w solves all tasks; `what` names the operation that needs such a w."""
    if request.problem.linear is not None:
        request.problem.linear.require_realizable(what)
    elif not request.realizable:
        raise NotSupportedError(f"{what} needs tasks that one w is known to solve")


class _Offer(NamedTuple):
    """An engine that covers a request, and what it would cost."""

    engine: Engine
    cost: Cost

    @property
    def seconds(self) -> float:
        return self.cost.seconds


class Choice(NamedTuple):
    """The engine that `auto` takes, notes on the cost of exact values, and the request to solve."""

    engine: Engine
    notes: tuple[str, ...]
    request: Request


def choose(request: Request) -> Choice:
    """The engine that `auto` takes; a `PatienceError` if all would take too long.

    Of the exact engines that fit in memory and take at most `patience` seconds, the first that takes less than SOON
    seconds, else the quickest. If there is none, a simulation of as many runs as `patience` allows, unless the caller
    has said how many. Nothing is refused that takes no longer than AT_ONCE.
    """
    exact = list(_offers(request, exact=True))
    if not request.device.host:  # engines of the device, if there are any
        exact = [offer for offer in exact if offer.engine.on_device] or exact
    fitting = [offer for offer in exact if offer.cost.bytes <= _allowed(request, offer.engine)]
    quick = [offer for offer in fitting if offer.seconds <= request.patience]
    if quick:
        soon = [offer for offer in quick if offer.seconds < SOON]
        chosen = soon[0] if soon else min(quick, key=lambda offer: offer.seconds)
        return Choice(chosen.engine, _slowed(request, chosen), request)
    if request.forever and not fitting:
        _refuse_forever(request)
    limit = max(request.patience, AT_ONCE)
    simulations = [] if request.forever else list(_simulations(request, limit))
    simulated, simulation = min(simulations, key=lambda pair: pair[1].seconds, default=(request, None))
    fits = simulation is not None and simulation.cost.bytes <= available_memory() / 2
    left_out = [_too_large(request, offer) for offer in exact if offer not in fitting]
    quickest = min(fitting, key=lambda offer: offer.seconds, default=None)
    if simulation is not None and simulation.seconds <= limit and (fits or quickest is None):
        notes = [*([_too_slow(request, quickest)] if quickest else []), *left_out, *_fewer(request, simulated)]
        notes += [] if exact else _not_covered(request)
        return Choice(simulation.engine, tuple(notes), simulated)
    without = "there is no simulation" if simulation is None else _simulating(simulated, simulation, fits=fits)
    if quickest is not None and quickest.seconds <= limit:
        note = (
            f"exact values take about {in_time(quickest.seconds)}, more than patience= ({request.patience:g} s), but "
            f"{without}"
        )
        return Choice(quickest.engine, (note, *_slowed(request, quickest)), request)
    raise _too_long(request, quickest, simulation if fits or quickest is None else None, without)


def _not_covered(request: Request) -> list[str]:
    """A note why no exact method covers a schedule or a decay."""
    if request.scheme.left_after(0 * request.steps) is None:  # it states neither
        return []
    return [f"simulated, since no exact method covers this: {engines.get('listing').covers(request)}"]


def as_simulated(request: Request) -> Request:
    """The request with as many simulated runs as `patience` allows; a `PatienceError` if that is too few."""
    limit = max(request.patience, AT_ONCE)
    fewer, offer = min(_simulations(request, limit), key=lambda pair: pair[1].seconds)
    if offer.seconds > limit:
        raise _too_long(request, None, offer, _simulating(fewer, offer))
    return fewer


def _simulating(request: Request, offer: _Offer, *, fits: bool = True) -> str:
    taken = f"take about {in_time(offer.seconds)}" if fits else "not fit in memory"
    return f"a simulation of {request.simulation.most} runs would {taken}"


def _simulations(request: Request, limit: float) -> Iterator[tuple[Request, _Offer]]:
    """Each simulating engine, with the most runs that take no longer than `limit`, but at least FEWEST_RUNS."""
    for offer in _offers(request, exact=False):
        fewer = request
        while offer.seconds > limit and request.simulation.runs is None and fewer.simulation.most > FEWEST_RUNS:
            fewer = replace(fewer, simulation=replace(fewer.simulation, runs=fewer.simulation.most // 2))
            offer = _Offer(offer.engine, _cost(offer.engine, fewer))
        yield fewer, offer


def _fewer(request: Request, simulated: Request) -> list[str]:
    """A note on the number of runs if `patience` made it smaller."""
    runs = simulated.simulation.most
    if runs >= min(request.simulation.most, DEFAULT_RUNS):
        return []
    return [
        f"{runs} runs instead of {DEFAULT_RUNS}: more would exceed patience= ({request.patience:g} s); or give runs="
    ]


def _too_long(request: Request, exact: _Offer | None, simulation: _Offer | None, without: str) -> PatienceError:
    """The error for a request that takes too long: the cost of each method, and the remedies."""
    quickest = min((offer for offer in (exact, simulation) if offer), key=lambda offer: offer.seconds)
    said = [without]
    if exact is not None:
        reach = f" ({exact.cost.reach})" if exact.cost.reach else ""
        named = f"by the method {exact.engine.name!r}{reach}"
        said.insert(0, f"exact values would take about {in_time(exact.seconds)} {named}")
    cheap, _, seconds = _cheap(request, request.patience)
    alone = f", ask for {cheap} alone ({in_time(seconds)})" if cheap else ""
    fewer = "" if request.simulation.runs is None else ", fewer runs"
    smaller = "finite k" if request.forever else "a smaller k"
    return PatienceError(
        f"k = {'inf' if request.forever else request.last} takes longer than patience= ({request.patience:g} s): "
        f"{', and '.join(said)}; give {smaller}{fewer}{alone}, a larger patience=, or a method, which has no limit: "
        f"method={quickest.engine.name!r}",
        needed=quickest.seconds,
        allowed=request.patience,
        method=quickest.engine.name,
    )


def require(engine: Engine, request: Request) -> None:
    """Raise unless the engine covers the request and, if it is exact, fits in memory."""
    if not request.device.host and not engine.on_device:
        able = " and ".join(repr(other.name) for other in engines.members() if other.on_device)
        raise NotSupportedError(
            f"the method {engine.name!r} cannot compute on {request.device}; leave out device=, or use the methods "
            f"{able}"
        )
    reason = _refusal(engine, request)
    if reason is not None:
        instead = "give finite k" if request.forever else "use method='auto'"
        raise NotSupportedError(f"the method {engine.name!r} cannot answer: {reason}; {instead}")
    if engine.needs_realizable:
        require_realizable(request, f"the method {engine.name!r}")
    needed = engine.cost(request).bytes if engine.exact else 0.0
    if needed > request.memory:
        instead = "" if request.forever else " or use method='monte-carlo'"
        raise MemoryLimitError(
            f"the method {engine.name!r} would need about {in_bytes(needed)}, more than the {in_bytes(request.memory)} "
            f"allowed; raise memory={instead}",
            needed=needed,
            allowed=request.memory,
        )


def _refusal(engine: Engine, request: Request) -> str | None:
    """The reason why the engine does not cover the request; None if it does."""
    if request.forever and not engine.endless:
        return f"{ENDLESS}, by the method 'spectral'"
    return engine.covers(request)


def _refuse_forever(request: Request) -> NoReturn:
    """Raise because no engine for k = inf, which no simulation reaches, covers the request and fits in memory."""
    candidates = [engine for engine in engines.members() if engine.endless]
    for engine in candidates:
        if engine.covers(request) is None:
            require(engine, request)
    reasons = "; ".join(f"the method {engine.name!r} cannot answer: {engine.covers(request)}" for engine in candidates)
    raise NotSupportedError(f"{ENDLESS}; {reasons}; give finite k")


def in_time(seconds: float) -> str:
    """A duration with its unit.

    >>> in_time(0.61), in_time(42.3), in_time(200), in_time(1e6), in_time(float("inf"))
    ('0.61 s', '42 s', '3.3 minutes', '12 days', 'more than a million years')
    """
    if seconds > 3e13:
        return "more than a million years"
    for unit, length in (("years", 3.156e7), ("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.2g} {unit}" if seconds < 100 * length else f"{seconds / length:.0f} {unit}"
    return f"{seconds:.2g} s" if seconds < 100 else f"{seconds:.0f} s"


def _offers(request: Request, *, exact: bool) -> Iterator[_Offer]:
    """The engines that cover a request, with their costs."""
    for engine in engines.members():
        try:
            if engine.exact is not exact or _refusal(engine, request) is not None:
                continue
            if engine.needs_realizable and not request.realizable:
                continue
            needed, seconds, *reach = _cost(engine, request)
            offer = _Offer(engine, Cost(float(needed), float(seconds), *reach))
        except Exception as error:
            home = type(engine).__module__
            if home.startswith("forgetting."):
                raise
            warnings.warn(f"the method {engine.name!r} of {home} was left out: {error_words(error)}", stacklevel=2)
        else:
            yield offer


def _cost(engine: Engine, request: Request) -> Cost:
    """Cost of an engine on the device of the request if it computes there, else on the CPU."""
    if not engine.on_device:
        return engine.cost(replace(request, device=HOST))
    cost = engine.cost(request)
    return cost._replace(seconds=cost.seconds / request.device.speed)


def _allowed(request: Request, engine: Engine) -> float:
    """Bytes that an engine may use; engines that compute on the CPU may use half of the available memory."""
    if request.device.host or engine.on_device:
        return request.memory
    return min(request.memory, available_memory() / 2)


def _quickest(request: Request, quantities: Sequence[Quantity]) -> float:
    """Seconds that these quantities alone take, exactly and within memory; infinite if no engine has them."""
    part = replace(request, quantities=tuple(quantities))
    return min((offer.seconds for offer in _offers(part, exact=True) if offer.cost.bytes <= part.memory), default=1e300)


def _cheap(request: Request, most: float) -> tuple[str, str, float]:
    """The names of the quantities that take no more than `most` seconds alone, the other names, and these seconds.

    Both are empty texts where all quantities cost alike.
    """
    cheap = [quantity for quantity in request.quantities if _quickest(request, [quantity]) <= most]
    costly = [quantity for quantity in request.quantities if quantity not in cheap]
    if not cheap or not costly or (seconds := _quickest(request, cheap)) > most:
        return "", "", 0.0
    return _named(cheap), _named(costly), seconds


def _named(several: Sequence[Quantity]) -> str:
    return " and ".join(quantity.name for quantity in several)


def _too_slow(request: Request, quickest: _Offer) -> str:
    """A note on the seconds of the quickest exact engine, and on the quantities that need them."""
    taken, by = in_time(quickest.seconds), f"the method {quickest.engine.name!r}"
    cheap, costly, seconds = _cheap(request, request.patience)
    if not cheap:
        remedy = f": raise patience= ({request.patience:g} s) to have them" if quickest.seconds < HOPELESS else ""
        return f"exact values would take about {taken} by {by}{remedy}"
    return (
        f"exact {costly} would take about {taken} by {by} ({cheap} alone {in_time(seconds)}): raise patience= "
        f"({request.patience:g} s), or ask for {cheap} alone"
    )


def _too_large(request: Request, offer: _Offer) -> str:
    """A note on the bytes of an exact engine, and on the quantities that need them.

    The limit is not in the note: by default the limit is a share of the memory that is free at the time, and results
    that are equal say the same.
    """
    cheap, costly, _ = _cheap(request, request.patience)
    less = f"; {costly} needs that, {cheap} alone would fit" if cheap else ""
    return (
        f"the method {offer.engine.name!r} was left out: it would need about {in_bytes(offer.cost.bytes)}, more than "
        f"it may use (memory=){less}"
    )


def _slowed(request: Request, chosen: _Offer) -> tuple[str, ...]:
    """A note on the quantities that took most of the time, if there are such."""
    if chosen.seconds <= SOON:
        return ()
    cheap, costly, seconds = _cheap(request, chosen.seconds / 10)
    if not cheap:
        return ()
    return (
        f"{costly} took most of the time, about {in_time(chosen.seconds)}; {cheap} alone would take {in_time(seconds)}",
    )
