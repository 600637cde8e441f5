"""The best value that is known, in a file, and the SHA-256 of what reaches or proves the value.

Two halls of fame work in this way: the largest ratio of each statement (`forgetting.theory.record`), and the worst
tasks of each size (`forgetting.tasks.worst_tasks`). In both, a value is replaced only by a larger one (`larger`), the
files that belong to it are read only as they were recorded (`check_digest`, `unsealed`), and whoever doubts a value
computes it again (`confirmed`).
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from forgetting.errors import ProblemFileError
from forgetting.files.arrays import open_regular
from forgetting.files.json_and_toml import of_format

LARGER = 1e-6  # relative: by how much a value must exceed what is known to replace it


def larger(value: float | None, known: float | None, by: float = LARGER) -> bool:
    """Whether a value replaces what is known: it exceeds the known value by more than a relative `by`.

    >>> larger(1.0, None), larger(1.0, 0.9), larger(1.0, 1.0 - 1e-9), larger(None, 0.0)
    (True, True, False, False)
    """
    return value is not None and (known is None or value > known * (1 + by))


def confirmed(where: Path | str, name: str, stated: float, computed: float, allowed: float) -> float:
    """The computed value, if it is the stated one up to the allowed difference; an error names the file and the value.

    >>> confirmed("mine.json", "the value", 0.5, 0.6, 1e-9)
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: mine.json: the value is recorded as 0.5, and computing it again gives 0.6; ...
    """
    if not abs(computed - stated) <= allowed:  # NaN is not close
        raise ProblemFileError(
            f"{where}: {name} is recorded as {stated:.12g}, and computing it again gives {computed:.12g}; correct the "
            "record, or report the difference"
        )
    return computed


def digest_of(content: bytes) -> str:
    """The SHA-256 of what a file contains."""
    return hashlib.sha256(content).hexdigest()


def check_digest(path: Path, sha256: str, name: str) -> None:
    """Raise unless a file is the one whose SHA-256 was recorded as that of `name`."""
    with open_regular(path) as handle:
        digest = digest_of(handle.read())
    if digest != sha256:
        raise ProblemFileError(
            f"{path}: damaged: this is not {name} (its SHA-256 is {digest[:12]}..., not {sha256[:12]}...); replace "
            "the file by an undamaged copy"
        )


def sealed(kind: str, data: dict[str, Any]) -> str:
    """A JSON text that names its format, with a SHA-256 of all that it says.

    >>> unsealed(sealed("forgetting/x/1", {"a": 0.1}), "forgetting/x/1")
    {'a': 0.1}
    """
    data = {"format": kind, **data}
    return json.dumps({"sha256": seal_of(data), **data}, separators=(",", ":"))


def unsealed(text: str | bytes, kind: str) -> dict[str, Any]:
    """The data that `sealed` was given; an error if the text was changed, or has another format.

    >>> unsealed(sealed("forgetting/x/1", {"a": 1}).replace("1}", "2}"), "forgetting/x/1")
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: its content was changed: the SHA-256 does not fit
    """
    data = of_format(text, kind)
    if data.pop("sha256", None) != seal_of({"format": kind, **data}):
        raise ProblemFileError("its content was changed: the SHA-256 does not fit")
    return data


def seal_of(data: dict[str, Any]) -> str:
    """The SHA-256 of data: of their JSON text, by name."""
    text = json.dumps({name: data[name] for name in sorted(data)}, separators=(",", ":"))
    return digest_of(text.encode())
