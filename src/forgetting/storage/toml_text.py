"""TOML files of the user, as dictionaries."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from forgetting.errors import ProblemFileError

__all__ = ["read_toml"]


def read_toml(path: Path) -> dict[str, Any]:
    """The contents of a TOML file; an error names the file and says what is wrong.

    >>> read_toml(Path("missing.toml"))
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: missing.toml: no such file
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ProblemFileError(f"{path}: no such file") from None
    except RecursionError:
        raise ProblemFileError(f"{path}: not a readable TOML file (nested too deeply)") from None
    except (OSError, ValueError) as error:  # of what is no file, no text, or no TOML
        raise ProblemFileError(f"{path}: not a readable TOML file ({error})") from error
