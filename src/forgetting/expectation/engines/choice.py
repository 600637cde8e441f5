"""How `auto` chooses an engine, and what it says of exactness that it did not wait for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from forgetting._devices import HOST
from forgetting._memory import available_memory, in_bytes
from forgetting.errors import MemoryLimitError, NotSupportedError
from forgetting.expectation.engines.base import Cost, Engine, engines, require_realizable
from forgetting.expectation.quantities import Quantity
from forgetting.expectation.request import Request

__all__ = ["choose", "in_time", "require"]

ENDLESS = "k = inf is for independent draws under a linear scheme"
SOON = 2.0  # seconds below which the engine registered first, the most accurate, is preferred to a quicker one


class _Offer(NamedTuple):
    """An engine that covers a request, and what it would cost."""

    engine: Engine
    cost: Cost

    @property
    def seconds(self) -> float:
        return self.cost.seconds


def choose(request: Request) -> tuple[Engine, tuple[str, ...]]:
    """The engine that `auto` takes, and notes on what exactness costs, or would have cost.

    Of the exact engines that fit in memory and take at most `patience` seconds, the first that takes less than SOON
    seconds, else the quickest. If there is none, a simulation, unless that takes long, and longer than exact values.
    """
    exact = list(_offers(request, exact=True))
    if not request.device.host:  # engines of the device, if there are any
        exact = [offer for offer in exact if offer.engine.on_device] or exact
    fitting = [offer for offer in exact if offer.cost.bytes <= _allowed(request, offer.engine)]
    quick = [offer for offer in fitting if offer.seconds <= request.patience]
    if quick:
        soon = [offer for offer in quick if offer.seconds < SOON]
        chosen = soon[0] if soon else min(quick, key=lambda offer: offer.seconds)
        return chosen.engine, _slowed(request, chosen)
    simulations = list(_offers(request, exact=False))
    if not simulations:
        return _endless(request, fitting), ()
    simulation = min(simulations, key=lambda offer: offer.seconds)
    left_out = [_too_large(request, offer) for offer in exact if offer not in fitting]
    if not fitting:
        return simulation.engine, tuple(left_out)
    quickest = min(fitting, key=lambda offer: offer.seconds)
    fits = simulation.cost.bytes <= available_memory() / 2
    if not fits or simulation.seconds > max(SOON, quickest.seconds):
        instead = f"take about {in_time(simulation.seconds)}" if fits else "not fit in memory"
        note = (
            f"exact values take about {in_time(quickest.seconds)}, more than patience= ({request.patience:g} s), but a "
            f"simulation would {instead}"
        )
        return quickest.engine, (note, *_slowed(request, quickest))
    return simulation.engine, (_too_slow(request, quickest), *left_out)


def require(engine: Engine, request: Request) -> None:
    """Raise unless the engine covers the request and, if it is exact, fits in memory."""
    if not request.device.host and not engine.on_device:
        able = " and ".join(repr(other.name) for other in engines.members() if other.on_device)
        raise NotSupportedError(
            f"the method {engine.name!r} has no form for {request.device}; leave out device=, or use the methods {able}"
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
    """Why the engine does not cover the request; None if it does."""
    if request.forever and not engine.endless:
        return f"{ENDLESS}, by the method 'spectral'"
    return engine.covers(request)


def _endless(request: Request, fitting: Sequence[_Offer]) -> Engine:
    """The engine for k = inf, which no simulation reaches, however long that engine takes."""
    if fitting:
        return min(fitting, key=lambda offer: offer.seconds).engine
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
        if engine.exact is exact and _refusal(engine, request) is None:
            if engine.needs_realizable and not request.realizable:
                continue
            yield _Offer(engine, _cost(engine, request))


def _cost(engine: Engine, request: Request) -> Cost:
    """Of an engine where it would compute: on the device of the request, or on the CPU."""
    if not engine.on_device:
        return engine.cost(replace(request, device=HOST))
    cost = engine.cost(request)
    return Cost(cost.bytes, cost.seconds / request.device.speed)


def _allowed(request: Request, engine: Engine) -> float:
    """Bytes that an engine may use; the memory of a device says nothing about engines that compute on the CPU."""
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
    """What the quickest exact engine would take, and for which quantities."""
    taken, by = in_time(quickest.seconds), f"the method {quickest.engine.name!r}"
    cheap, costly, seconds = _cheap(request, request.patience)
    if not cheap:
        return f"exact values would take about {taken} by {by}: raise patience= ({request.patience:g} s) to have them"
    return (
        f"exact {costly} would take about {taken} by {by} ({cheap} alone {in_time(seconds)}): raise patience= "
        f"({request.patience:g} s), or ask for {cheap} alone"
    )


def _too_large(request: Request, offer: _Offer) -> str:
    """What an exact engine would need, and whether it is for some quantities alone."""
    cheap, costly, _ = _cheap(request, request.patience)
    less = f"; {costly} needs that, {cheap} alone would fit" if cheap else ""
    return (
        f"the method {offer.engine.name!r} was left out: it would need about {in_bytes(offer.cost.bytes)}, more than "
        f"the {in_bytes(request.memory)} allowed (memory=){less}"
    )


def _slowed(request: Request, chosen: _Offer) -> tuple[str, ...]:
    """A note if some quantities make exact values take long that others would not."""
    if chosen.seconds <= SOON:
        return ()
    cheap, costly, seconds = _cheap(request, chosen.seconds / 10)
    if not cheap:
        return ()
    return (
        f"{costly} took most of the time, about {in_time(chosen.seconds)}; {cheap} alone would take {in_time(seconds)}",
    )
