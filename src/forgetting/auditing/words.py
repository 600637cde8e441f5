"""The words and numbers that the sentences, tables and figures of all audits share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from forgetting.core.numerical import ROUNDING
from forgetting.core.text import one_line

if TYPE_CHECKING:
    from forgetting.auditing.measures import Measure
    from forgetting.auditing.ordering_values import OrderingRow
    from forgetting.auditing.result import Audit

LOSSES = ("training loss", "forgetting")
SLACK = 0.005  # rounding and simulation may move a share this far outside 0 to 1


def called(name: str) -> str:
    """The name of a task in a sentence, quoted unless it is a number.

    >>> called("3"), called("left eye")
    ('task 3', "task 'left eye'")
    """
    line = one_line(name)
    return f"task {line}" if line.isdigit() else f"task '{line}'"


def capital(words: str) -> str:
    """The words with a capital letter first."""
    return words[:1].upper() + words[1:]


def number(value: float, scale: float = 0.0) -> str:
    """The value with three digits; 0 if it is rounding compared with `scale`.

    >>> number(0.012345), number(123456.0), number(1e-20, 1.0)
    ('0.0123', '123,000', '0')
    """
    if abs(value) <= ROUNDING * scale:
        return "0"
    short = float(f"{value:.3g}")
    return f"{short:,.0f}" if 1e3 <= abs(short) < 1e9 else f"{value:.3g}"


def whole_percent(share: float) -> str:
    """A share in whole per cent, also of a share in a damaged file that is too large to be rounded.

    >>> whole_percent(0.255), whole_percent(-0.001), whole_percent(1e308)
    ('26 %', '0 %', 'inf %')
    """
    value = 100 * share
    return f"{round(value) if math.isfinite(value) else value} %"


def percent(part: float, total: float) -> str:
    """A part of a total in per cent.

    >>> percent(1, 3), percent(1, 300), percent(0, 0)
    ('33 %', '0.33 %', '0 %')
    """
    share = 100 * part / total if total > 0 else 0.0
    if not math.isfinite(share):
        return f"{share} %"
    return f"{round(share)} %" if abs(share) >= 10 or abs(share) < 0.05 else f"{share:.2g} %"


def rate(share: float) -> str:
    """An accuracy in per cent.

    >>> rate(0.19865)
    '19.9 %'
    """
    return f"{100 * share:.1f} %"


def points(difference: float) -> str:
    """A difference of shares in percentage points, two digits of it.

    >>> points(0.0118), points(0.123), points(0.0)
    ('1.2 points', '12 points', '0 points')
    """
    value = 100 * difference
    return f"{value:.2g} points" if abs(value) < 10 else f"{value:.0f} points"


def between(low: float, high: float, digits: int = 1) -> str:
    """The ends of an interval of shares, in per cent or percentage points.

    >>> between(0.125, 0.5), between(0.125, 0.5, 0)
    ('12.5 to 50.0', '12 to 50')
    """
    return f"{100 * low:.{digits}f} to {100 * high:.{digits}f}"


# ---------------------------------------------------------------------------------------------------- words of an audit


def task_name(audit: Audit, task: int) -> str:
    """The name of a task in a sentence."""
    return called(audit.tasks[task].name)


def listed(audit: Audit, order: tuple[int, ...]) -> str:
    """The names of the tasks in this order; of many tasks the first and the last."""
    names = [one_line(audit.tasks[task].name) for task in order]
    if len(names) > 12:
        names = [*names[:8], "...", *names[-3:]]
    return ", ".join(names)


def ordered(audit: Audit, order: tuple[int, ...]) -> str:
    """The order in words: its tasks, or the last one alone where only that matters."""
    if any(case.kind == "last task" for case in audit.cases):
        return f"any order that ends with {task_name(audit, order[-1])}"
    return listed(audit, order)


def shown(audit: Audit, measure: Measure, values: Iterable[float]) -> list[str]:
    """Values of a measure in words; of losses 0 for what is rounding compared with the loss before learning."""
    floor = 0.0 if measure.is_accuracy else ROUNDING * audit.fit.start
    return [measure.number(value if abs(value) > floor else 0.0) for value in values]


def times(value: float, other: OrderingRow, start: float) -> str:
    """The ratio of `value` to the forgetting of an ordering, in words; a lower bound if the ordering was simulated."""
    high = other.forgetting_high
    if high <= ROUNDING * start:
        return "infinitely many times as much as"
    ratio = value / high
    if not other.exact:  # a lower bound, rounded down to two digits
        digit = 10.0 ** (math.floor(math.log10(ratio)) - 1)
        ratio = math.floor(ratio / digit) * digit
    short = float(f"{ratio:.2g}")
    return f"{'' if other.exact else 'at least '}{short:{',.0f' if short >= 10 else 'g'}} times as much as"
