"""Atomic writing: content goes to a temporary file or folder, which is flushed to the disk and then renamed.

A process that is killed leaves its temporary files and folders. Each is locked by the process that writes it, and the
lock ends with the process; the next process that writes to the same path removes those without a lock.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from forgetting.errors import ForgettingError, ProblemFileError

try:
    import fcntl
except ImportError:  # Windows: what killed processes leave stays
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
    require_place(path)
    with as_file_error(path):
        remove_ownerless(path)
        with _temporary_file(path) as (temporary, handle):
            if callable(content):
                content(handle)
            else:
                handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
            if fcntl is None:  # Windows renames no open file; elsewhere the handle holds the lock
                handle.close()
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


def require_place(path: Path) -> None:
    """Raise if no file or folder can be made at `path`; called before long work.

    The folder around it must be there: a misspelled name makes no folders.

    >>> require_place(Path("nowhere", "result.json"))
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: ...result.json: there is no folder nowhere; make it first, or name another place
    """
    with as_file_error(path):
        around = path.absolute().parent
        if not os.path.lexists(around):
            raise ProblemFileError(f"{path}: there is no folder {path.parent}; make it first, or name another place")
        if not around.is_dir():
            raise OSError(errno.ENOTDIR, f"{path.parent} is not a folder")
        if not os.access(around, os.W_OK | os.X_OK):
            raise OSError(errno.EACCES, f"no permission to write to {path.parent}")


def temporary_name(path: Path, ending: str = ENDING) -> Path:
    """A new hidden name for a temporary file or folder in the folder of `path`."""
    return path.parent / f".{path.name[:60]}.{secrets.token_hex(6)}{ending}"


def temporary_paths(path: Path, ending: str = ENDING) -> list[Path]:
    """The paths that `temporary_name` has given for `path`, of this process and of others."""
    ours = re.compile(rf"\.{re.escape(path.name[:60])}\.[0-9a-f]{{12}}{re.escape(ending)}")
    try:
        return [entry for entry in path.parent.iterdir() if ours.fullmatch(entry.name)]
    except OSError:  # the folder does not exist, or cannot be read
        return []


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


@contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """A new locked folder beside `path`; removed at the end of the block unless it was renamed."""
    temporary, handle = temporary_name(path), None
    _unfinished.add(temporary)
    try:
        while handle is None:
            temporary.mkdir()
            if fcntl is None:  # there folders cannot be opened, and nobody removes them
                break
            with suppress(FileNotFoundError):
                handle = os.open(temporary, os.O_RDONLY)
            if handle is not None and not (own(handle) and temporary.is_dir()):
                os.close(handle)  # another process removed the folder before it was locked
                handle = None
        yield temporary
    finally:
        _remove(temporary)
        if handle is not None:
            os.close(handle)


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
    """Remove temporary files and folders for `path` whose processes have ended."""
    if fcntl is None:
        return
    for entry in set(temporary_paths(path)) - _unfinished:
        with suppress(OSError):
            handle = os.open(entry, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                if own(handle):
                    _remove(entry)
            finally:
                os.close(handle)


def clean_up() -> None:
    """Remove what this process has not finished; called when the process is interrupted."""
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
        if temporary.is_dir() and not temporary.is_symlink():
            shutil.rmtree(temporary)
        else:
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
        if error.errno not in no_links | {errno.EINVAL}:  # by Windows
            raise
        # on a disk without hard links, the check and the renaming are two steps
        if os.path.lexists(path):
            raise ProblemFileError(f"{path} exists and is kept") from None
        os.replace(temporary, path)
