"""Text to a file, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import NamedTemporaryFile

from forgetting.errors import ProblemFileError

__all__ = ["check_new", "write_text"]


def check_new(path: Path, force: bool) -> None:
    """Raise if there is a file that would have to be replaced.

    >>> check_new(Path("nothing-here.txt"), force=False)
    """
    if os.path.lexists(path) and not force:
        raise ProblemFileError(f"{path} exists and is kept; use --force to replace it, or another --out")


def write_text(path: Path, text: str, *, force: bool = False) -> None:
    """Write to a temporary name in the same folder and rename; an existing file is kept unless forced.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as here:
    ...     write_text(Path(here) / "a.txt", "one")
    ...     write_text(Path(here) / "a.txt", "two")
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: ...a.txt exists and is kept; use --force to replace it, or another --out
    """
    check_new(path, force)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(
            "w", dir=path.parent, prefix=f".{path.name}.", delete=False, encoding="utf-8"
        ) as handle:
            temporary = Path(handle.name)
            try:
                handle.write(text)
            except BaseException:
                temporary.unlink()
                raise
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        os.replace(temporary, path)
    except OSError as error:
        raise ProblemFileError(f"{path}: cannot be written ({error.strerror or error})") from error
