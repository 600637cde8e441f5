"""Where `auto` changes its method, found by asking what it would choose; nothing is computed."""

from __future__ import annotations

from itertools import count
from typing import Any

from benchmarks.costs.calls import Contest
from forgetting.expectation.engines.base import choose


def where_auto_changes(contest: Contest) -> dict[str, Any]:
    """The first value of the axis at which `auto` no longer takes the first contestant, and what it takes there.

    The value is None if `auto` takes the first contestant up to the last value.
    """
    if contest.order is not None:
        change = next(D for D in count(1) if contest.order < D * (D + 1) // 2)
        return {"first": contest.names[0], "axis": contest.axis, "value": change, "then": contest.names[1]}
    call = contest.calls[0]
    first = call.axes[contest.axis][0]

    def chosen(value: int) -> str:
        sizes = call.sizes(contest.axis, value)
        assert call.request is not None
        return choose(call.request(call.prepare(sizes), sizes))[0].name

    low, high, taken = first, contest.last, chosen(contest.last)
    if chosen(low) != call.engine or taken == call.engine:
        return {"first": call.engine, "axis": contest.axis, "value": None, "then": taken}
    while high - low > max(1, low // 100):
        middle = int((low * high) ** 0.5) if high > 4 * low else (low + high) // 2
        name = chosen(middle)
        low, high, taken = (middle, high, taken) if name == call.engine else (low, middle, name)
    return {"first": call.engine, "axis": contest.axis, "value": high, "then": taken}
