"""Output files and folders of the command line, which replace an existing file only if this program wrote it.

A hidden folder `.forgetting` beside the files holds the SHA-256 of each file that this program wrote. A file with
another SHA-256 is not replaced.

The files of a folder are replaced together: at every instant all files are old, or all are new.

    out/report.html            a link to .forgetting/current/report.html, and so on for each name
    out/.forgetting/current    a link to the current version; replacing this link switches all files at once
    out/.forgetting/version-*  the files, with `manifest.json`: the SHA-256 of each

Only files whose SHA-256 is in the manifest are ever removed, so that files of the user stay.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from forgetting.core.arrays import as_flag
from forgetting.errors import ProblemFileError
from forgetting.files import atomic
from forgetting.files.atomic import as_file_error, kept, remove_ownerless, write

HIDDEN = ".forgetting"
KEEP = "use --force to replace it, or another --out"


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
            raise ProblemFileError(f"{path} is an input of this command; choose another --out")
    if os.path.lexists(path):
        if not as_flag(force, "force"):
            raise ProblemFileError(f"{path} exists and is kept; {KEEP}")
        if digest(path) not in _written(path):
            raise ProblemFileError(
                f"{path} exists, and is not as forgetting wrote it: it is kept; move it away, or choose another --out"
            )
    with as_file_error(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise ProblemFileError(f"{path}: cannot be written (no permission to write to {path.parent})")
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


def _written(path: Path) -> set[str]:
    try:
        return {
            line.split()[0] for line in _record(path).read_text("utf-8", "surrogateescape").splitlines() if line.strip()
        }
    except OSError:
        return set()


def _same_file(path: Path, source: str | Path) -> bool:
    try:
        return os.path.samefile(path, source)
    except (OSError, ValueError):
        return False


# -------------------------------------------------------------------------------------------------------------- folders


MANIFEST = "manifest.json"
FORMAT = "forgetting/manifest/1"
CURRENT = "current"
VERSION = "version-"


def check_folder(folder: Path, names: Sequence[str], *, force: bool = False) -> None:
    """Raise if files with these names must not or cannot be put into a folder; called before they are computed.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as here:
    ...     Path(here, "data").mkdir()
    ...     Path(here, "data", "raw.csv").touch()
    ...     check_folder(Path(here), ["report.html", "data"], force=True)
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: ...raw.csv ...
    """
    if os.path.lexists(folder) and not folder.is_dir():
        raise ProblemFileError(f"{folder} is not a folder; choose another --out")
    with atomic.as_file_error(folder):
        if not force and folder.is_dir() and not _is_unused(folder, names):
            raise ProblemFileError(f"{folder} exists and is kept; {KEEP}")
        _refuse_foreign(folder, names)
        missing = _missing(folder / HIDDEN)
        try:
            (folder / HIDDEN).mkdir(parents=True, exist_ok=True)
            if not os.access(folder / HIDDEN, os.W_OK | os.X_OK):
                raise ProblemFileError(f"{folder}: cannot be written (no permission)")
        finally:
            _remove_empty(missing)


def current(folder: Path) -> Path | None:
    """The folder of the current version, or None."""
    try:
        name = os.readlink(folder / HIDDEN / CURRENT)
    except OSError:
        return None
    version = folder / HIDDEN / Path(name).name
    return version if version.is_dir() else None


@contextmanager
def new_version(folder: Path, names: Sequence[str], *, force: bool = False) -> Iterator[Path]:
    """An empty folder to be filled in the block; at the end of the block its files replace the old ones, all at once.

    Args:
        folder: the output folder that the user named.
        names: the files and folders that the block makes; each becomes a link in `folder`.
        force: whether an older version may be replaced.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as here:
    ...     with new_version(Path(here, "out"), ["a.txt"]) as fresh:
    ...         _ = (fresh / "a.txt").write_text("one")
    ...     Path(here, "out", "a.txt").read_text(), sorted(file.name for file in Path(here, "out").iterdir())
    ('one', ['.forgetting', 'a.txt'])
    """
    check_folder(folder, names, force=force)
    hidden = folder / HIDDEN
    with atomic.as_file_error(folder):
        missing, links = _missing(hidden), list[Path]()
        try:
            hidden.mkdir(parents=True, exist_ok=True)
            _remove_others(folder)
            with _owned_folder(folder) as version:
                yield version
                _seal(version)
                _refuse_foreign(folder, names)  # again, for files that appeared in the meantime
                _link(folder, names, force, links)
                _switch(hidden, version)
                atomic.kept.append(f"{folder} is complete")
            _remove_others(folder)
        finally:
            if current(folder) is None:
                for link in links:
                    link.unlink(missing_ok=True)
            _remove_empty(missing)


def _is_unused(folder: Path, names: Sequence[str]) -> bool:
    """Whether a folder is empty, except for what a killed process left before its first version was complete."""
    if current(folder) is not None:
        return False
    return all(entry.name == HIDDEN or _is_ours(entry, names) for entry in folder.iterdir())


def _is_ours(entry: Path, names: Sequence[str]) -> bool:
    return entry.name in names and entry.is_symlink() and os.readlink(entry) == _target(entry.name)


def _target(name: str) -> str:
    return f"{HIDDEN}/{CURRENT}/{name}"


def _refuse_foreign(folder: Path, names: Sequence[str]) -> None:
    """Raise if a file to be replaced was not written by this program, or has changed since."""
    for name in names:
        entry = folder / name
        if os.path.lexists(entry) and not _is_ours(entry, names):
            inside = next(iter(_files(entry)), entry)
            raise ProblemFileError(
                f"{inside} was not written by forgetting, and is kept; move it away, or choose another --out"
            )
    version = current(folder)
    strangers = [] if version is None else _strangers(version)
    if current(folder) != version:  # another process replaced the version in the meantime
        _refuse_foreign(folder, names)
    elif strangers:
        raise ProblemFileError(
            f"{folder / strangers[0]} is not as forgetting wrote it, and is kept; move it away, or choose another --out"
        )


def _strangers(version: Path) -> list[Path]:
    """Files that are not in the manifest or differ from it, as paths relative to the version."""
    known = _manifest(version)
    strangers = [path for path in _files(version) if known.get(path.relative_to(version).as_posix()) != digest(path)]
    return [path.relative_to(version) for path in strangers if path not in (version / MANIFEST, version / CURRENT)]


def _files(folder: Path) -> list[Path]:
    """All files and links in a folder and its subfolders."""
    paths = []
    for here, folders, names in os.walk(folder):
        links = [name for name in folders if Path(here, name).is_symlink()]
        paths += [Path(here, name) for name in names + links]
    return sorted(paths)


def _manifest(version: Path) -> dict[str, str]:
    try:
        data = json.loads((version / MANIFEST).read_text(encoding="utf-8"))
        return dict(data["files"]) if data["format"] == FORMAT else {}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return {}


def _seal(version: Path) -> None:
    """Write the manifest, and wait until all files are on the disk."""
    sums = {path.relative_to(version).as_posix(): digest(path) for path in _files(version)}
    draft = version / f"{MANIFEST}.partial"  # half a manifest would make every file of the version a stranger's
    draft.write_text(json.dumps({"format": FORMAT, "files": sums}, indent=1), encoding="utf-8")
    os.replace(draft, version / MANIFEST)
    for path in version.rglob("*"):
        atomic.sync(path)
    atomic.sync(version)


def _link(folder: Path, names: Sequence[str], force: bool, made: list[Path]) -> None:
    """Make the links that are missing, and add them to `made`."""
    for name in names:
        entry = folder / name
        if _is_ours(entry, names) and (force or current(folder) is None):
            continue
        try:
            os.symlink(_target(name), entry)
            made.append(entry)
        except FileExistsError as error:  # another process was faster
            raise ProblemFileError(f"{entry} exists and is kept; {KEEP}") from error
        except OSError as error:
            raise ProblemFileError(
                f"{folder}: this disk takes no symbolic links ({error.strerror or error}); choose an --out on another"
            ) from error


def _switch(hidden: Path, version: Path) -> None:
    """Make `version` the current version, by replacing a link."""
    os.symlink(version.name, version / CURRENT)
    os.replace(version / CURRENT, hidden / CURRENT)
    atomic.sync(hidden)
    atomic.sync(hidden.parent)


@contextmanager
def _owned_folder(folder: Path) -> Iterator[Path]:
    """A new locked folder for a version; removed at the end unless it has become the current version."""
    version, handle = _new_name(folder), None
    try:
        while handle is None:
            version.mkdir()
            with suppress(FileNotFoundError):
                handle = os.open(version, os.O_RDONLY)
            if handle is not None and not (atomic.own(handle) and version.is_dir()):
                os.close(handle)
                handle = None
            if handle is None:  # another process removed the folder before it was locked
                version = _new_name(folder)
        yield version
    finally:
        if current(folder) != version:
            shutil.rmtree(version, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def _new_name(folder: Path) -> Path:
    return folder / HIDDEN / f"{VERSION}{secrets.token_hex(6)}"


def _remove_others(folder: Path) -> None:
    """Remove versions that are neither current nor locked; files that were changed or added since are kept."""
    for entry in (folder / HIDDEN).iterdir():
        if not entry.name.startswith(VERSION) or not entry.is_dir():
            continue
        with suppress(OSError):
            handle = os.open(entry, os.O_RDONLY)
            try:
                if atomic.own(handle) and current(folder) != entry:  # lock first: it may become current until then
                    _remove(entry)
            finally:
                os.close(handle)


def _remove(version: Path) -> None:
    """Remove the files in the manifest; a version without a manifest was never finished and is removed entirely."""
    if not (version / MANIFEST).exists():
        shutil.rmtree(version)
        return
    kept = [version / path for path in _strangers(version)]
    for path in _files(version):
        if path not in kept and not (kept and path == version / MANIFEST):
            path.unlink(missing_ok=True)
    for here, _, _ in os.walk(version, topdown=False):
        with suppress(OSError):  # the folder is not empty
            os.rmdir(here)


def _missing(folder: Path) -> list[Path]:
    """The folders among a folder and its parents that do not exist, the deepest first."""
    return [path for path in (folder, *folder.parents) if not path.exists()]


def _remove_empty(folders: Sequence[Path]) -> None:
    for folder in folders:
        with suppress(OSError):  # the folder is not empty any more
            folder.rmdir()
