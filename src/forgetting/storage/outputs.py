"""Output files of the command line, which replace an existing file only if this program wrote it.

A hidden folder `.forgetting` beside the files holds the SHA-256 of each file that this program wrote. A file with
another SHA-256 is not replaced.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from forgetting.core.arrays import as_flag
from forgetting.errors import ProblemFileError
from forgetting.storage.atomic import as_file_error, kept, remove_ownerless, write

__all__ = ["HIDDEN", "check_output", "digest", "write_output"]

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
