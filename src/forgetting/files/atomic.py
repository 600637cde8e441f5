"""Atomic writing: the content goes to a temporary file, which is flushed to the disk and then renamed.

A process that is killed leaves its temporary files. A temporary file is locked by the process that writes it, and the
lock ends with the process; the next process that writes to the same path removes temporary files without a lock.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from forgetting.errors import ForgettingError, ProblemFileError

try:
    import fcntl
except ImportError:  # Windows: temporary files of killed processes stay
    fcntl = None  # type: ignore[assignment]

ENDING = ".partial"
#: paths that this process is writing; `clean_up` removes them after a signal
_unfinished: set[Path] = set()
#: messages about the files that this process has completed; the message of an interruption ends with the last
kept: list[str] = []


def write(path: Path, content: bytes | Callable[[BinaryIO], None], *, replace: bool = True) -> None:
    """Write a file atomically: after a power cut, a kill or a full disk, the path holds the old or the new file.

    Args:
        path: the file; its folder must exist.
        content: the bytes, or a function that writes the bytes to an open file.
        replace: if False, an existing file is never replaced, and an error is raised.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as here:
    ...     write(Path(here, "a.txt"), b"one")
    ...     write(Path(here, "a.txt"), b"two", replace=False)
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: ...a.txt exists and is kept
    """
    with as_file_error(path):
        remove_ownerless(path)
        with _temporary_file(path) as (temporary, handle):
            if callable(content):
                content(handle)
            else:
                handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
            if replace:
                os.replace(temporary, path)
            else:
                _move_to_new_name(temporary, path)
        sync(path.parent)


@contextmanager
def as_file_error(path: Path) -> Iterator[None]:
    """Turn an `OSError` in the block into a `ProblemFileError` that names the file and the reason.

    >>> with as_file_error(Path("a.txt")):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: a.txt: cannot be written (No space left on device)
    """
    try:
        yield
    except ForgettingError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name, or characters that cannot be encoded
        raise ProblemFileError(f"{path}: cannot be written ({getattr(error, 'strerror', None) or error})") from error


def foreign_file(path: Path) -> ProblemFileError:
    """The error for a file that exists and was not written by this library."""
    return ProblemFileError(
        f"{path} exists, was not written by forgetting, and is kept; move it away, or choose another name"
    )


def require_writable(folder: Path) -> None:
    """Raise if files cannot be written to a folder; called before long work. The folder itself need not exist yet.

    >>> require_writable(Path(__file__, "results"))
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: ...results: cannot be written (...atomic.py is not a folder)
    """
    with as_file_error(folder):
        there = next(place for place in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(place))
        if not there.is_dir():
            raise OSError(errno.ENOTDIR, f"{there} is not a folder")
        if not os.access(there, os.W_OK | os.X_OK):
            raise OSError(errno.EACCES, f"no permission to write to {there}")


def temporary_name(path: Path) -> Path:
    """A new hidden name for a temporary file in the folder of `path`."""
    return path.parent / f".{path.name[:60]}.{secrets.token_hex(6)}{ENDING}"


@contextmanager
def _temporary_file(path: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A new locked file beside `path`; removed at the end of the block unless it was renamed."""
    temporary = temporary_name(path)
    _unfinished.add(temporary)
    try:
        while True:
            handle = os.fdopen(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666), "w+b")
            if own(handle.fileno()) and os.fstat(handle.fileno()).st_nlink:
                break
            handle.close()  # another process removed the file before it was locked
        with handle:
            yield temporary, handle
    finally:
        _remove(temporary)


def own(handle: int) -> bool:
    """Lock an open file or folder until it is closed; False if another process has locked it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL):
            raise
    return True


def remove_ownerless(path: Path) -> None:
    """Remove temporary files for `path` whose processes have ended."""
    if fcntl is None:
        return
    start, left = f".{path.name[:60]}.", list[Path]()
    with suppress(OSError):  # the folder does not exist, or cannot be read
        left = [entry for entry in path.parent.iterdir() if entry.name.startswith(start) and entry.suffix == ENDING]
    for entry in set(left) - _unfinished:
        with suppress(OSError):
            handle = os.open(entry, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                if own(handle):
                    entry.unlink()
            finally:
                os.close(handle)


def clean_up() -> None:
    """Remove the unfinished files of this process; called when the process is interrupted."""
    for path in list(_unfinished):
        _remove(path)


def sync(path: Path) -> None:
    """Wait until a file, or the list of files of a folder, is on the disk, if the system supports this."""
    with suppress(OSError):  # folders cannot be opened on some systems
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _remove(temporary: Path) -> None:
    with suppress(OSError):
        temporary.unlink()
    _unfinished.discard(temporary)


def _move_to_new_name(temporary: Path, path: Path) -> None:
    """Rename the temporary file; an error if the path exists. Atomic where hard links are supported."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise ProblemFileError(f"{path} exists and is kept") from None
    except OSError as error:
        no_links = {errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS}
        if error.errno not in no_links:
            raise
        # on a disk without hard links, the check and the renaming are two steps
        if os.path.lexists(path):
            raise ProblemFileError(f"{path} exists and is kept") from None
        os.replace(temporary, path)
