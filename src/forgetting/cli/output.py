"""How results leave: a table in the terminal, JSON on stdout, or a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from forgetting._text import visible
from forgetting.report.data import Item, Report, Section, Table

__all__ = [
    "diverging",
    "emit",
    "not_finite",
    "ready",
    "result",
    "say",
    "terminal_width",
    "write_and_show",
]


def result(title: str, key: str, items: list[Item], summary: list[str], **meta: Any) -> Report:
    """What a command found, as data: it prints, saves and reloads like a report, and knows where it came from.

    >>> found = result("Title", "demo", [], ["one finding"], seed=0)
    >>> found.summary, sorted(found.meta)
    (('one finding',), ['seed', 'versions'])
    """
    from forgetting.report.provenance import versions

    section = Section(key, title, "", tuple(items))
    return Report(title, (section,), {**meta, "versions": versions()}, tuple(summary))


def ready(out: Path | None, force: bool, inputs: Sequence[str] | None = None) -> None:
    """Raise early if the file that was asked for may not be written; files among the `inputs` are never replaced.

    >>> ready(None, force=False)
    """
    if out is not None:
        from forgetting.report.saving import check_file

        check_file(out, force, inputs or ())


def emit(
    report: Report,
    *,
    as_json: bool,
    out: Path | None,
    force: bool = False,
    rows: int | None = None,
    hidden: Sequence[str] = (),
) -> None:
    """Print a result, and write it where a file was asked for; what cannot be written is printed all the same.

    The terminal gets at most `rows` rows of each table, and no columns that are `hidden`; JSON and files get all.

    >>> emit(result("Title", "demo", [], ["one finding"]), as_json=False, out=None)
    Title
    - one finding
    """

    def write() -> None:
        from forgetting.report.saving import write_file

        if out is not None:
            write_file(report, out, force=force)

    def show() -> None:
        from forgetting.report.render.terminal import summary_text, table_text

        if as_json:
            print(report.to_json(indent=1))
            return
        width = terminal_width()
        say(summary_text(report, width))
        for item in report.items():
            if isinstance(item, Table):
                say("", table_text(without(shortened(item, rows), hidden), width))

    if out is not None:
        from forgetting.report.saving import only_item

        only_item(report, out.suffix.lower())  # raises if there is none
    write_and_show(write, show)
    if out is not None and not as_json:
        say("", f"wrote {out}")


def write_and_show(write: Callable[[], None], show: Callable[[], None]) -> None:
    """Write, then show; where writing fails, what took so long to compute is shown before the error is.

    >>> write_and_show(lambda: say("file"), lambda: say("page"))
    file
    page
    """
    try:
        write()
    except Exception:
        show()
        raise
    show()


def shortened(table: Table, rows: int | None) -> Table:
    """A table of at most this many rows: the first, the last, and some between, more of them early.

    >>> table = Table("t", "", "", ("k",), tuple((k,) for k in range(1, 101)))
    >>> [row[0] for row in shortened(table, 5).rows]
    [1, 3, 10, 32, 100]
    """
    from forgetting.report.numbers import spread_steps

    if rows is None or len(table.rows) <= rows:
        return table
    return replace(table, rows=tuple(table.rows[i - 1] for i in spread_steps(len(table.rows), rows).tolist()))


def without(table: Table, hidden: Sequence[str]) -> Table:
    """A table with some columns left out.

    >>> without(Table("t", "", "", ("k", "loss"), ((1, 0.5),)), ["k"]).rows
    ((0.5,),)
    """
    kept = [place for place, name in enumerate(table.columns) if name not in hidden]
    rows = tuple(tuple(row[place] for place in kept) for row in table.rows)
    return replace(table, columns=tuple(table.columns[place] for place in kept), rows=rows)


def say(*lines: str) -> None:
    r"""Print; what the terminal cannot show does not end the program, and what it would obey is shown.

    >>> say("one", "two \x1b[31m")
    one
    two \x1b[31m
    """
    for line in map(visible, lines):
        try:
            print(line)
        except UnicodeEncodeError:
            print(line.encode("ascii", "replace").decode())


def terminal_width() -> int:
    """The width of the terminal, at most 100; 80 in a pipe, unless COLUMNS says otherwise.

    >>> 40 <= terminal_width() <= 100
    True
    """
    import shutil

    return max(40, min(100, shutil.get_terminal_size((80, 24)).columns))


@contextmanager
def diverging() -> Iterator[None]:
    """Without warnings of NumPy: a command says in words what is not finite.

    >>> import numpy as np
    >>> with diverging():
    ...     print(np.float64(1e300) * 1e300)
    inf
    """
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        yield


def not_finite(values: Iterable[Any], said: Sequence[str]) -> list[str]:
    """A sentence on values that are not finite, unless it is said already.

    >>> not_finite([1.0, float("inf")], [])
    ['some values are not finite: the iterates diverged; use a smaller step size']
    """
    import numpy as np

    whole = all(np.isfinite(np.asarray(one, dtype=float)).all() for one in values)
    if whole or any("diverge" in line for line in said):
        return []
    return ["some values are not finite: the iterates diverged; use a smaller step size"]
