"""The output of commands: a table in the terminal, JSON on stdout, or a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from forgetting.core.text import one_line, visible
from forgetting.figures.items import Item, Table
from forgetting.report.document import Report, Section


def result(title: str, key: str, items: list[Item], summary: list[str], **meta: Any) -> Report:
    """The result of a command as a report with one section; `meta` says how the result was computed.

    >>> report = result("Title", "demo", [], ["one finding"], seed=0)
    >>> report.summary, sorted(report.meta)
    (('one finding',), ['seed', 'versions'])
    """
    from forgetting.report.provenance import versions

    section = Section(key, title, "", tuple(items))
    return Report(title, (section,), {**meta, "versions": versions()}, tuple(summary))


def ready(out: Path | None, force: bool, inputs: Sequence[str] | None = None) -> None:
    """Raise if the file `out` may not be written, before anything is computed; `inputs` are never replaced."""
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
    latex: Callable[[], str] | None = None,
) -> None:
    """Print a result, and write it to the file `out` if that is given.

    The terminal shows at most `rows` rows of each table, without the columns `hidden`; JSON and files hold all. A .tex
    file holds what `latex` gives, if that is given, in place of the tables.

    >>> emit(result("Title", "demo", [], ["one finding"]), as_json=False, out=None)
    Title
    - one finding
    """

    def write(path: Path) -> None:
        from forgetting.files.outputs import write_output
        from forgetting.report.saving import write_file

        if latex is not None and path.suffix.lower() == ".tex":
            write_output(path, latex().encode(), force=force)
        else:
            write_file(report, path, force=force)

    def show() -> None:
        from forgetting.figures.text_formats import table_text
        from forgetting.report.document import summary_text

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
    write_and_show(out, write, show, quiet=as_json)
    tell(report.meta.get("notes", ()))


def tell(notes: Iterable[str]) -> None:
    """Print notes about the data on stderr, apart from the result.

    >>> tell([])
    """
    import sys

    for note in notes:
        say(f"note: {one_line(note)}", to=sys.stderr)


def write_and_show(
    out: Path | None, write: Callable[[Path], None], show: Callable[[], None], *, quiet: bool = False
) -> None:
    """Call write(out) unless `out` is None, then show(); unless `quiet`, say which file was written.

    If writing fails, the result is shown before the error: it may have taken long to compute.

    >>> write_and_show(Path("a.txt"), lambda path: say(f"writing {path}"), lambda: say("page"))
    writing a.txt
    page
    <BLANKLINE>
    wrote a.txt
    """
    try:
        if out is not None:
            write(out)
    except Exception:
        show()
        raise
    show()
    if out is not None and not quiet:
        say("", f"wrote {out}")


@contextmanager
def working(what: str) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar for the block: call the function as (name, done, total); it raises if a signal came."""
    from forgetting.cli.interrupts import uninterrupted
    from forgetting.core.progress import progress_bar

    with uninterrupted() as check, progress_bar(what) as progress:

        def step(name: str, done: int, total: int) -> None:
            check()
            progress(name, done, total)

        yield step


def shortened(table: Table, rows: int | None) -> Table:
    """The table with at most `rows` rows: the first, the last, and rows between them on a logarithmic scale.

    >>> table = Table("t", "", "", ("k",), tuple((k,) for k in range(1, 101)))
    >>> [row[0] for row in shortened(table, 5).rows]
    [1, 3, 10, 32, 100]
    """
    from forgetting.figures.items import spread_steps

    if rows is None or len(table.rows) <= rows:
        return table
    return replace(table, rows=tuple(table.rows[i - 1] for i in spread_steps(len(table.rows), rows).tolist()))


def without(table: Table, hidden: Sequence[str]) -> Table:
    """The table without the columns `hidden`.

    >>> without(Table("t", "", "", ("k", "loss"), ((1, 0.5),)), ["k"]).rows
    ((0.5,),)
    """
    kept = [place for place, name in enumerate(table.columns) if name not in hidden]
    rows = tuple(tuple(row[place] for place in kept) for row in table.rows)
    return replace(table, columns=tuple(table.columns[place] for place in kept), rows=rows)


def say(*lines: str, to: TextIO | None = None) -> None:
    r"""Print lines, on stdout if `to` is left out.

    Control characters are shown as escapes, and letters that the terminal lacks as question marks.

    >>> say("one", "two \x1b[31m")
    one
    two \x1b[31m
    """
    for line in map(visible, lines):
        try:
            print(line, file=to)
        except UnicodeEncodeError:
            print(line.encode("ascii", "replace").decode(), file=to)


def terminal_width() -> int:
    """The width of the terminal, from 40 to 100 characters; in a pipe 80, or the variable COLUMNS."""
    import shutil

    return max(40, min(100, shutil.get_terminal_size((80, 24)).columns))


@contextmanager
def diverging() -> Iterator[None]:
    """Silence NumPy about overflow in the block: the command says in words which values are not finite."""
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        yield


def not_finite(values: Iterable[Any], said: Sequence[str]) -> list[str]:
    """A sentence if some values are not finite, unless a line of `said` tells it already; else an empty list.

    >>> not_finite([1.0, float("inf")], [])
    ['some values are not finite: the iterates diverged; use a smaller step size']
    """
    import numpy as np

    finite = all(np.isfinite(np.asarray(column, dtype=float)).all() for column in values)
    if finite or any("diverge" in line for line in said):
        return []
    return ["some values are not finite: the iterates diverged; use a smaller step size"]
