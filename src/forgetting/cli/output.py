"""The output of commands: a table in the terminal, JSON on stdout, or a file."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from forgetting.cli.interrupts import uninterrupted
from forgetting.cli.options import Force, Json, Out
from forgetting.core.progress import progress_bar
from forgetting.core.text import one_line, visible
from forgetting.figures.items import Item, Table, spread_steps
from forgetting.figures.text_formats import table_text
from forgetting.files.outputs import write_output

if TYPE_CHECKING:
    from forgetting.report import Report
    from forgetting.report.pages import ResultWithPage

Content = Callable[[], bytes | str]


@dataclass(frozen=True)
class Output:
    """The options --json, --out and --force: the form in which a command gives its result.

    >>> Output().emit(result("Title", "demo", [], ["one finding"]))
    Title
    - one finding
    """

    as_json: Json = False
    out: Out = None
    force: Force = False

    @property
    def ending(self) -> str:
        """The ending of the file of --out, in small letters; empty without that file."""
        return "" if self.out is None else self.out.suffix.lower()

    def check(self, inputs: Iterable[str] | None = None, more: Sequence[str] = ()) -> None:
        """Raise if the file may not be written, before anything is computed; `inputs` are never replaced.

        Its ending must be one of those of reports, or of `more`.
        """
        if self.out is not None:
            from forgetting.report.saving import check_file

            check_file(self.out, self.force, inputs or (), more)

    def emit(
        self,
        report: Report,
        *,
        rows: int | None = None,
        hidden: Container[str] = (),
        contents: Mapping[str, Content] | None = None,
        files: Mapping[Path, Content] | None = None,
        shown: Callable[[Table], Table] = lambda table: table,
    ) -> None:
        """Give a report: as text, as JSON, or as a file of any ending.

        The terminal shows at most `rows` rows of each table, or of what `shown` makes of it, without the columns
        `hidden`; JSON and files hold all. `contents` and `files` are those of `give`.
        """
        from forgetting.report.document import summary_text
        from forgetting.report.saving import only_item

        def lines() -> Iterator[str]:
            yield summary_text(report, terminal_width())
            for item in report.items():
                if isinstance(item, Table):
                    yield from ("", table_text(without(shortened(shown(item), rows), hidden), terminal_width()))

        only_item(report, self.ending)  # raises if there is none
        usual = self._by_ending(lambda: report)
        self.give(lines, partial(report.to_json, indent=1), {**usual, **(contents or {})}, files)

    def emit_page(self, shown: ResultWithPage, files: Mapping[Path, Content] | None = None) -> None:
        """Give a result that is a page: as text, as its own JSON, or as a file of any ending, .txt among them."""
        data = partial(shown.to_json, indent=1)
        own: dict[str, Content] = {".json": lambda: f"{data()}\n", ".txt": lambda: f"{shown}\n"}
        self.give(lambda: [shown.to_text(terminal_width())], data, {**self._by_ending(shown.to_report), **own}, files)

    def _by_ending(self, report: Callable[[], Report]) -> dict[str, Content]:
        """The content of the file of --out, if there is one, by each ending that reports have."""
        from forgetting.report.saving import ENDINGS, file_content

        out = self.out
        return {} if out is None else dict.fromkeys(ENDINGS, lambda: file_content(report(), out))

    def give(
        self,
        lines: Callable[[], Iterable[str]],
        data: Callable[[], str],
        contents: Mapping[str, Content] | None = None,
        files: Mapping[Path, Content] | None = None,
    ) -> None:
        """Write the file of --out, whose content is that of its ending in `contents`, and `files`; then print.

        Prints the lines, or the data with --json. If writing fails, they are printed before the error: the result may
        have taken long to compute.

        >>> Output().give(lambda: ["page"], lambda: "{}"), Output(as_json=True).give(lambda: ["page"], lambda: "{}")
        page
        {}
        (None, None)
        """

        def show() -> None:
            if self.as_json:
                print(data())
            else:
                say(*lines())

        written = dict(files or {})
        if self.out is not None:
            written = {self.out: (contents or {})[self.ending], **written}
        try:
            for path, content in written.items():
                text = content()
                text = text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace")
                write_output(path, text, force=self.force)
        except Exception:
            show()
            raise
        show()
        for path in written if not self.as_json else ():
            say("", f"wrote {path}")


def result(title: str, key: str, items: Sequence[Item], summary: Sequence[str], **meta: Any) -> Report:
    """The result of a command as a report with one section; `meta` says how the result was computed.

    >>> report = result("Title", "demo", [], ["one finding"], seed=0)
    >>> report.summary, sorted(report.meta)
    (('one finding',), ['seed', 'versions'])
    """
    from forgetting.report import Report, Section
    from forgetting.report.provenance import versions

    section = Section(key, title, "", tuple(items))
    return Report(title, (section,), {**meta, "versions": versions()}, tuple(summary))


def tell(notes: Iterable[str], doubts: Container[str] = ()) -> None:
    """Print notes about the data on stderr, apart from the result; `doubts` are those that may be about a mistake.

    >>> tell([])
    """
    for note in notes:
        say(f"{'warning' if note in doubts else 'note'}: {one_line(note)}", to=sys.stderr)


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
    return max(40, min(100, shutil.get_terminal_size((80, 24)).columns))


def shortened(table: Table, rows: int | None) -> Table:
    """The table with at most `rows` rows: the first, the last, and rows between them on a logarithmic scale.

    >>> table = Table("t", "", "", ("k",), tuple((k,) for k in range(1, 101)))
    >>> [row[0] for row in shortened(table, 5).rows]
    [1, 3, 10, 32, 100]
    """
    if rows is None or len(table.rows) <= rows:
        return table
    return replace(table, rows=tuple(table.rows[i - 1] for i in spread_steps(len(table.rows), rows).tolist()))


def without(table: Table, hidden: Container[str]) -> Table:
    """The table without the columns `hidden`.

    >>> without(Table("t", "", "", ("k", "loss"), ((1, 0.5),)), ["k"]).rows
    ((0.5,),)
    """
    kept = [place for place, name in enumerate(table.columns) if name not in hidden]
    rows = tuple(tuple(row[place] for place in kept) for row in table.rows)
    return replace(table, columns=tuple(table.columns[place] for place in kept), rows=rows)


# ------------------------------------------------------------------------------------------------------ while computing


@contextmanager
def working(what: str) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar for the block: call the function as (name, done, total); it raises if a signal came."""
    with uninterrupted() as check, progress_bar(what) as progress:

        def step(name: str, done: int, total: int) -> None:
            check()
            progress(name, done, total)

        yield step


@contextmanager
def computing() -> Iterator[None]:
    """Answer signals in the block, and silence NumPy about overflow: the result says why values are not finite."""
    with uninterrupted(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        yield
