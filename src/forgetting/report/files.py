"""Reports on disk: a folder that appears whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

from forgetting.errors import ProblemFileError
from forgetting.report.data import Item, Report
from forgetting.report.render.latex import to_latex_file
from forgetting.report.render.page import to_html
from forgetting.report.render.plots import save_figure
from forgetting.report.render.sheets import to_csv

__all__ = ["check_file", "check_folder", "load_report", "write_file", "write_report"]

ENDINGS = (".json", ".html", ".csv", ".tex", ".png", ".pdf")
#: what a report folder holds; --force replaces a folder of these and nothing else
CONTENT = frozenset({"report.html", "report.json", "tables.tex", "figures", "data"})


def check_folder(folder: Path, force: bool) -> None:
    """Raise if a report may not be written there, before anything is computed.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as here:
    ...     check_folder(Path(here) / "new", force=False)
    ...     Path(here, "notes.txt").touch()
    ...     check_folder(Path(here), force=True)
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: ...notes.txt...
    """
    if os.path.lexists(folder):
        if not force:
            raise ProblemFileError(f"{folder} exists and is kept; use --force to replace it, or another --out")
        if not folder.is_dir() or folder.is_symlink():
            raise ProblemFileError(f"{folder} is not a folder; choose another --out")
        strangers = sorted({one.name for one in folder.iterdir()} - CONTENT)
        if strangers:
            raise ProblemFileError(
                f"{folder} holds {strangers[0]}, which is not part of a report, and is kept; choose another --out"
            )
    scratch = _scratch(folder)
    scratch.rmdir()


def write_report(
    report: Report, folder: Path, *, force: bool = False, progress: Callable[[str, int, int], None] = lambda *_: None
) -> list[Path]:
    """Write HTML, JSON, LaTeX, and each figure as PNG, PDF and CSV; returns the files.

    All goes to a temporary folder beside the target first, which is then renamed: an interrupt leaves what was there.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as here:
    ...     paths = write_report(Report("Title", (), {}), Path(here) / "out")
    ...     [path.name for path in paths], load_report(Path(here) / "out").title
    (['report.html', 'report.json', 'tables.tex'], 'Title')
    """
    check_folder(folder, force)
    scratch = _scratch(folder)
    try:
        _fill(report, scratch, progress)
        _open_up(scratch)
        written = sorted(path.relative_to(scratch) for path in scratch.rglob("*") if path.is_file())
        if folder.exists():
            old = _scratch(folder)
            os.replace(folder, old)  # onto an empty folder: one step
            try:
                os.replace(scratch, folder)
            except BaseException:
                os.replace(old, folder)
                raise
            shutil.rmtree(old)
        else:
            os.replace(scratch, folder)
    except OSError as error:
        raise ProblemFileError(f"{folder}: cannot be written ({error.strerror or error})") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return [folder / path for path in written]


def load_report(path: str | Path) -> Report:
    """The report of a folder, or of a report.json.

    >>> load_report(Path("missing.json"))
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: missing.json: no such file
    """
    file = Path(path) / "report.json" if Path(path).is_dir() else Path(path)
    try:
        return Report.from_json(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ProblemFileError(f"{file}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemFileError(f"{file}: cannot be read ({error})") from error


def write_file(report: Report, path: Path, *, force: bool = False) -> None:
    """One file, by its ending: .json (reloads), .html, .tex (tables), .csv (first table), .png or .pdf (figure).

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as here:
    ...     write_file(Report("Title", (), {}), Path(here) / "result.json")
    ...     load_report(Path(here) / "result.json").title
    'Title'
    """
    check_file(path, force)
    ending = path.suffix.lower()
    scratch = _scratch(path)
    try:
        made = scratch / path.name
        if ending in (".png", ".pdf"):
            shutil.move(_picture(report, scratch, ending), made)
        else:
            made.write_text(_text(report, ending), encoding="utf-8")
        _open_up(scratch)
        os.replace(made, path)
    except OSError as error:
        raise ProblemFileError(f"{path}: cannot be written ({error.strerror or error})") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def check_file(path: Path, force: bool) -> None:
    """Raise if a result may not be written there, before anything is computed.

    >>> check_file(Path("result.docx"), force=False)
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: result.docx: unknown ending; use .json, .html, .csv, .tex, .png or .pdf
    """
    if os.path.lexists(path) and not force:
        raise ProblemFileError(f"{path} exists and is kept; use --force to replace it, or another --out")
    if path.suffix.lower() not in ENDINGS:
        raise ProblemFileError(f"{path}: unknown ending; use {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    _scratch(path).rmdir()


def _text(report: Report, ending: str) -> str:
    if ending == ".json":
        return report.to_json(indent=1)
    if ending == ".html":
        return to_html(report)
    if ending == ".tex":
        return to_latex_file(report)
    return to_csv(_first(report, ("table",)))


def _picture(report: Report, scratch: Path, ending: str) -> Path:
    item = _first(report, ("curves", "regions", "paths", "matrix"))
    return next(path for path in save_figure(item, scratch) if path.suffix == ending)


def _first(report: Report, kinds: tuple[str, ...]) -> Item:
    for item in report.items():
        if item.kind in kinds:
            return item
    raise ProblemFileError(f"there is no {kinds[0] if kinds == ('table',) else 'figure'} in this result to write")


def _fill(report: Report, folder: Path, progress: Callable[[str, int, int], None]) -> None:
    items = list(report.items())
    (folder / "report.html").write_text(to_html(report), encoding="utf-8")
    (folder / "report.json").write_text(report.to_json(), encoding="utf-8")
    (folder / "tables.tex").write_text(to_latex_file(report), encoding="utf-8")
    for number, item in enumerate(items):
        progress(f"writing {item.key}", number, len(items))
        for name in ("figures", "data"):
            (folder / name).mkdir(exist_ok=True)
        save_figure(item, folder / "figures")
        (folder / "data" / f"{item.key}.csv").write_text(to_csv(item), encoding="utf-8", newline="")


def _scratch(target: Path) -> Path:
    """A new empty folder on the same disk as the target."""
    parent = target.absolute().parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        return Path(mkdtemp(prefix=f".{target.name}.", dir=parent))
    except OSError as error:
        raise ProblemFileError(f"{target}: cannot be written ({error.strerror or error})") from error


def _open_up(folder: Path) -> None:
    """Temporary folders are private; what is left is as open as any other."""
    mask = os.umask(0)
    os.umask(mask)
    with suppress(OSError):
        folder.chmod(0o777 & ~mask)
