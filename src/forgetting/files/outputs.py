"""Output files and folders, which replace an existing file only if this program wrote it.

A hidden folder `.forgetting` beside the files holds the SHA-256 of each file that this program wrote, in the format of
`sha256sum --check`. A file with another SHA-256 is not replaced.

An output folder is made under a hidden name beside its place, and renamed when it is complete. An older one is moved
aside by a rename just before, and removed afterwards: at its place is the old folder, the new one or, between the two
renames, none, and never a mixture. If a process is killed between them, `restore` puts the old folder back. All this
needs no links, and works on Windows, too.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from forgetting.core.arrays import as_flag
from forgetting.errors import ProblemFileError
from forgetting.files import atomic
from forgetting.files.atomic import as_file_error, kept, remove_ownerless, require_place, write

HIDDEN = ".forgetting"
#: what to do, in Python and on the command line
KEEP = "force=True replaces it, or choose another name", "use --force to replace it, or another --out"
OTHER = "choose another name", "choose another --out"
MOVE = "move it away, or choose another name", "move it away, or choose another --out"


def _refused(what: str, remedy: tuple[str, str]) -> ProblemFileError:
    """The error that something is not written, with what to do in the words of Python and of the command line."""
    error = ProblemFileError(f"{what}; {remedy[0]}")
    error.on_command_line = f"{what}; {remedy[1]}"
    return error


def check_output(path: Path, *, force: bool = False, inputs: Iterable[str | Path] = ()) -> None:
    """Raise if `path` must not or cannot be written; called before the content is computed.

    Args:
        path: the file to be written.
        force: whether a file that this program wrote may be replaced.
        inputs: files that are read, and therefore never replaced; entries that name no file are ignored.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as here:
    ...     _ = Path(here, "mine.csv").write_text("years of work")
    ...     check_output(Path(here, "mine.csv"), force=True)
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: ...mine.csv exists, and is not as forgetting wrote it ...
    """
    for source in inputs:
        if _same_file(path, source):
            raise _refused(f"{path} is an input of this command", OTHER)
    if os.path.lexists(path):
        if not as_flag(force, "force"):
            raise _refused(f"{path} exists and is kept", KEEP)
        if digest(path) not in (sha for sha, _ in _sums(_record(path))):
            raise _refused(f"{path} exists, and is not as forgetting wrote it: it is kept", MOVE)
    require_place(path)
    remove_ownerless(path)


def write_output(path: Path, content: bytes, *, force: bool = False) -> None:
    """Write a file atomically, and record its SHA-256.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as here:
    ...     write_output(Path(here, "a.txt"), b"one")
    ...     write_output(Path(here, "a.txt"), b"two", force=True)
    ...     Path(here, "a.txt").read_text(), sorted(file.name for file in Path(here).iterdir())
    ('two', ['.forgetting', 'a.txt'])
    """
    check_output(path, force=force)
    # record both the old and the new SHA-256: after a power cut either file may be there
    sums = [hashlib.sha256(content).hexdigest(), *([digest(path)] if path.is_file() else [])]
    record = _record(path)
    try:
        with as_file_error(path):
            record.parent.mkdir(exist_ok=True)
        lines = "".join(f"{sha}  {path.name}\n" for sha in sums)
        write(record, lines.encode(errors="surrogateescape"))  # names need not be text
        write(path, content, replace=force)
        kept.append(f"{path} is complete")
    except BaseException:
        if not os.path.lexists(path):
            record.unlink(missing_ok=True)
            with suppress(OSError):
                record.parent.rmdir()
        raise


def digest(path: Path) -> str:
    """The SHA-256 of a file; "" for a link, a folder, or a file that cannot be read."""
    try:
        if path.is_symlink() or not path.is_file():
            return ""
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError:
        return ""


def _record(path: Path) -> Path:
    """The file that records the SHA-256 of `path`, in the format of `sha256sum --check`."""
    return path.parent / HIDDEN / f"{path.name[:200]}.sha256"


def _sums(record: Path) -> list[tuple[str, str]]:
    """SHA-256 and name of each file in a record."""
    try:
        lines = record.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []
    return [(sha, name) for sha, _, name in (line.partition("  ") for line in lines) if name]


def _same_file(path: Path, source: str | Path) -> bool:
    try:
        return os.path.samefile(path, source)
    except (OSError, ValueError):
        return False


# -------------------------------------------------------------------------------------------------------------- folders


SUMS = "SHA256SUMS"  # in the folder HIDDEN of an output folder: the SHA-256 of each file
ASIDE = ".old"
#: what file managers put into the folders that they show
UNASKED = {".DS_Store", "Thumbs.db", "desktop.ini"}


def check_folder(folder: Path, *, force: bool = False) -> None:
    """Raise if an output folder must not or cannot be made; called before its files are computed.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as here:
    ...     Path(here, "raw.csv").touch()
    ...     check_folder(Path(here), force=True)
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: ...raw.csv is not as forgetting wrote it, and is kept; ...
    """
    restore(folder)
    with as_file_error(folder):
        place = _place(folder)
        _require_ours(place, folder, force)
        if os.path.ismount(place) or Path.cwd().is_relative_to(place):
            raise _refused(
                f"{folder} is the folder that you are in, or a disk, and cannot be replaced as a whole",
                ("choose a new folder in it", "choose a new folder in it, as in --out report"),
            )
    require_place(place if folder.is_symlink() else folder)


def restore(folder: Path) -> None:
    """Put an output folder back that a killed process left aside; remove those that have been replaced."""
    with suppress(OSError, ValueError):  # another process may do the same; no folder has such a name
        place = _place(folder)
        for aside in atomic.temporary_paths(place, ASIDE):
            if not os.path.lexists(place):
                os.rename(aside, place)
            elif any(_changed(aside)):  # changed between the last look and the renaming: it becomes visible
                os.rename(aside, place.with_name(f"{place.name}.kept-{secrets.token_hex(4)}"))
            else:
                shutil.rmtree(aside)


@contextmanager
def new_folder(folder: Path, *, force: bool = False) -> Iterator[Path]:
    """An empty folder to be filled in the block; at the end of the block it becomes `folder`, all at once.

    Args:
        folder: the output folder that the user named.
        force: whether an older output folder may be replaced.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as here:
    ...     with new_folder(Path(here, "out")) as fresh:
    ...         _ = (fresh / "a.txt").write_text("one")
    ...     Path(here, "out", "a.txt").read_text(), sorted(file.name for file in Path(here, "out").iterdir())
    ('one', ['.forgetting', 'a.txt'])
    """
    check_folder(folder, force=force)
    with as_file_error(folder):
        place = _place(folder)
        remove_ownerless(place)
        with atomic.temporary_folder(place) as fresh:
            yield fresh
            _seal(fresh)
            _put(fresh, place, folder, force)
            kept.append(f"{folder} is complete")


def _place(folder: Path) -> Path:
    """Where a folder is, links followed."""
    return Path(os.path.realpath(folder))


def _require_ours(place: Path, folder: Path, force: bool) -> None:
    """Raise unless the folder is empty, or may be replaced and is as this program wrote it; `folder` names it."""
    while (before := _stamp(place)) is not None:
        fault = _fault(place, folder, force)
        if fault is None:
            return
        if _stamp(place) == before:  # else another process has replaced the folder in the meantime
            raise fault


def _stamp(place: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(place)
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


def _fault(place: Path, folder: Path, force: bool) -> ProblemFileError | None:
    """Why a folder must not be replaced; None if it may be."""
    if not place.is_dir():
        return _refused(f"{folder} is not a folder", OTHER)
    for changed in _changed(place):
        return _refused(f"{folder / changed} is not as forgetting wrote it, and is kept", MOVE)
    used = any(path.name not in UNASKED for path in _files(place))
    return _refused(f"{folder} exists and is kept", KEEP) if used and not as_flag(force, "force") else None


def _changed(folder: Path) -> Iterator[Path]:
    """The files that this program did not write, or that have changed since, relative to the folder."""
    known = {name: sha for sha, name in _sums(folder / HIDDEN / SUMS)}
    for path in _files(folder):
        name = path.relative_to(folder)
        if path.name not in UNASKED and name != Path(HIDDEN, SUMS) and known.get(name.as_posix(), "no") != digest(path):
            yield name


def _files(folder: Path) -> Iterator[Path]:
    """All files and links in a folder and its subfolders."""
    for here, folders, names in os.walk(folder):
        links = [name for name in folders if Path(here, name).is_symlink()]
        yield from (Path(here, name) for name in sorted(names + links))


def _seal(folder: Path) -> None:
    """Record the SHA-256 of each file, and wait until all files are on the disk."""
    lines = [f"{digest(path)}  {path.relative_to(folder).as_posix()}\n" for path in _files(folder)]
    (folder / HIDDEN).mkdir()
    (folder / HIDDEN / SUMS).write_bytes("".join(lines).encode())
    for path in (*folder.rglob("*"), folder):
        atomic.sync(path)


def _put(fresh: Path, place: Path, folder: Path, force: bool) -> None:
    """Rename a complete folder to its place. An older one is moved aside first, and comes back if this fails."""
    while True:
        try:
            _require_ours(place, folder, force)  # again, for files that appeared in the meantime
            if os.path.lexists(place):
                shutil.copymode(place, fresh)
                os.rename(place, atomic.temporary_name(place, ASIDE))
            os.rename(fresh, place)
            break
        except OSError as error:  # another process may have been faster
            if error.errno not in (errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY) or not fresh.is_dir():
                raise
        finally:
            restore(place)
    atomic.sync(place.parent)
