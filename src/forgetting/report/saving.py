"""Reports and results on disk, in each format: what is written is whole, and what a user made is kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from forgetting.compute.workers import run_parts
from forgetting.errors import ForgettingError, ProblemFileError
from forgetting.figures.drawing import pictures
from forgetting.figures.items import Item
from forgetting.figures.text_formats import to_csv
from forgetting.files import outputs
from forgetting.files.arrays import open_regular
from forgetting.files.atomic import write
from forgetting.files.outputs import check_output, write_output
from forgetting.report.document import Report, to_latex_file
from forgetting.report.html import to_html

PARQUET = "in Python, result.to_frame().to_parquet(...) writes the table of a result; pandas reads the .csv file, too"
EXPLORER = "explorer.html"
ENDINGS = (".json", ".html", ".csv", ".tex", ".png", ".pdf")


def write_report(
    report: Report,
    folder: Path,
    *,
    force: bool = False,
    progress: Callable[[str, int, int], None] = lambda *_: None,
    processes: int = 1,
    explorer: str = "",
) -> list[Path]:
    """Write HTML, JSON, LaTeX, and each figure as PNG, PDF and CSV; returns the files.

    `explorer` is a page on which the tasks can be turned by hand: it becomes explorer.html, which the report links to.

    The report is there whole or not at all, and an older one is never half replaced: see `forgetting.files.outputs`. If
    a figure cannot be drawn, the result is saved beside the folder as JSON, and the error says where.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as here:
    ...     paths = write_report(Report("Title", (), {}), Path(here) / "out")
    ...     [path.name for path in paths], load_report(Path(here) / "out").title
    (['report.html', 'report.json', 'tables.tex'], 'Title')
    """
    with outputs.new_folder(folder, force=force) as fresh:
        (fresh / "report.json").write_text(report.to_json(), encoding="utf-8")
        try:
            _draw(report, fresh, progress, processes, explorer)
        except (ForgettingError, OSError):
            raise
        except Exception as error:
            raise _rescued(report, folder, error) from error
        written = sorted(path.relative_to(fresh) for path in fresh.rglob("*") if path.is_file())
    return [folder / path for path in written]


def load_report(path: str | Path) -> Report:
    """The report of a folder, or of a report.json.

    >>> load_report(Path("missing.json"))
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: missing.json: no such file
    """
    outputs.restore(Path(path))
    file = Path(path) / "report.json" if os.path.isdir(path) else Path(path)
    with open_regular(file) as handle:
        text = handle.read()
    try:
        return Report.from_json(text)
    except ProblemFileError as error:
        raise ProblemFileError(f"{file}: {error}") from error


def write_file(report: Report, path: Path, *, force: bool = False) -> None:
    """Write a file by its ending: .json (reloads), .html, .tex (tables), .csv (first table), .png or .pdf (figure).

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as here:
    ...     write_file(Report("Title", (), {}), Path(here) / "result.json")
    ...     load_report(Path(here) / "result.json").title
    'Title'
    """
    check_file(path, force)
    write_output(path, file_content(report, path), force=force)


def file_content(report: Report, path: Path) -> bytes:
    """The content of a file by its ending; if a figure cannot be drawn, the result is saved beside the file as JSON."""
    try:
        return _content(report, path.suffix.lower())
    except (ForgettingError, OSError):
        raise
    except Exception as error:
        raise _rescued(report, path, error) from error


def check_file(path: Path, force: bool = False, inputs: Iterable[str | Path] = (), more: Sequence[str] = ()) -> None:
    """Raise if a result may not be written there, before anything is computed; `inputs` are never replaced.

    The ending must be one of a report's, or of `more`.

    >>> check_file(Path("result.docx"))
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: result.docx: unknown ending; use .json, .html, .csv, .tex, .png or .pdf
    """
    endings = (*more, *ENDINGS)
    if path.suffix.lower() not in endings:
        hint = f"; {PARQUET}" if path.suffix.lower() == ".parquet" else ""
        raise ProblemFileError(f"{path}: unknown ending; use {', '.join(endings[:-1])} or {endings[-1]}{hint}")
    check_output(path, force=force, inputs=inputs)


def _rescued(report: Report, target: Path, error: Exception) -> ProblemFileError:
    """Save a result that cannot be drawn under a name that is free; the error that says where it is."""
    names = (target.with_name(f"{target.name}{middle}.json") for middle in ("", *(f".{n}" for n in range(2, 1000))))
    path = next(name for name in names if not name.exists())
    write(path, report.to_json(indent=1).encode(), replace=False)
    return ProblemFileError(
        f"{target}: a figure could not be drawn ({type(error).__name__}: {error}), which is a defect; "
        f"the result is in {path}"
    )


def only_item(report: Report, ending: str) -> Item | None:
    """The table of a .csv file or the figure of a .png or .pdf file; None for files that hold all of a result.

    >>> only_item(Report("Title", (), {}), ".png")
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: there is no figure in this result to write
    """
    word = {".csv": "table", ".png": "figure", ".pdf": "figure"}.get(ending)
    if word is None:
        return None
    for item in report.items():
        if (item.kind == "table") == (word == "table"):
            return item
    raise ProblemFileError(f"there is no {word} in this result to write")


def _content(report: Report, ending: str) -> bytes:
    item = only_item(report, ending)
    if item is not None:
        return to_csv(item).encode() if ending == ".csv" else pictures(item, [ending])[ending]
    if ending == ".html":
        return to_html(report).encode()
    return (to_latex_file(report) if ending == ".tex" else report.to_json(indent=1)).encode()


def _draw(
    report: Report, folder: Path, progress: Callable[[str, int, int], None], processes: int, explorer: str
) -> None:
    for name in ("figures", "data"):
        (folder / name).mkdir()
    figures = [item for item in report.items() if item.kind != "table"]
    progress("writing data", 0, len(figures))
    for item in report.items():
        (folder / "data" / f"{item.key}.csv").write_text(to_csv(item), encoding="utf-8", newline="")
    for done, (place, drawn) in enumerate(run_parts(pictures, figures, processes)):
        progress(f"writing {figures[place].key}", done, len(figures))
        for ending, content in drawn.items():
            (folder / "figures" / f"{figures[place].key}{ending}").write_bytes(content)
    (folder / "tables.tex").write_text(to_latex_file(report), encoding="utf-8")
    if explorer:
        (folder / EXPLORER).write_text(explorer, encoding="utf-8")
    (folder / "report.html").write_text(to_html(report, EXPLORER if explorer else ""), encoding="utf-8")
