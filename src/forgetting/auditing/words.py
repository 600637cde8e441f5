"""Words for the sentences of an audit: names, numbers and lists."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from forgetting.auditing.verdict import ROUNDING
from forgetting.core.text import one_line

if TYPE_CHECKING:
    from forgetting.auditing.result import Audit, OrderingRow

__all__ = ["capital", "joined", "listed", "number", "ordered", "percent", "task_name", "times"]


def task_name(audit: Audit, task: int) -> str:
    """The task as it is called in a sentence: its name, quoted unless the name is a number."""
    name = one_line(audit.tasks[task].name)
    return f"task {name}" if name.isdigit() else f"task '{name}'"


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


def joined(words: Iterable[str]) -> str:
    """The words with commas and an "and".

    >>> joined(["a"]), joined("abc")
    ('a', 'a, b and c')
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


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


def percent(part: float, total: float) -> str:
    """A part of a total in per cent.

    >>> percent(1, 3), percent(1, 300), percent(0, 0)
    ('33 %', '0.33 %', '0 %')
    """
    share = 100 * part / total if total > 0 else 0.0
    if not math.isfinite(share):
        return f"{share} %"
    return f"{round(share)} %" if abs(share) >= 10 or abs(share) < 0.05 else f"{share:.2g} %"


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
