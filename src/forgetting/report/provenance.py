"""Where a result came from: versions, seed, and a hash of the problem."""

from __future__ import annotations

import hashlib
import platform
from importlib import metadata
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["problem_hash", "versions"]

PACKAGES = ("forgetting", "numpy", "scipy", "numba", "scikit-learn", "matplotlib", "typer", "rich")


def versions() -> dict[str, str]:
    """Python, this package and what it stands on.

    >>> sorted(versions())[:3]
    ['forgetting', 'matplotlib', 'numba']
    """
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
        except Exception as error:  # a damaged installation computes nothing wrong by being unnamed
            found[name] = f"unreadable ({type(error).__name__})"
    return found


def problem_hash(problem: Any) -> str:
    """SHA-256 of the numbers of a problem, the same for equal tasks in the same order.

    >>> import forgetting as fg
    >>> problem_hash(fg.families.two_lines(0.5)) == problem_hash(fg.families.two_lines(0.5))
    True
    >>> problem_hash(fg.families.two_lines(0.5)) == problem_hash(fg.families.two_lines(0.6))
    False
    """
    digest = hashlib.sha256(f"{type(problem).__name__} {problem.num_tasks} {problem.dim}".encode())
    task = getattr(problem, "task", None) or getattr(problem, "equations", None)
    if task is None:
        flat = getattr(problem, "regression", None)
        if flat is None:
            digest.update(repr(getattr(problem, "sets", problem)).encode())
            return digest.hexdigest()
        task = flat.task
    for m in range(problem.num_tasks):
        for part in task(m):
            dense = part.toarray() if sp.issparse(part) else np.asarray(part)
            array = np.ascontiguousarray(dense, dtype=np.float64) + 0.0  # one zero, not two
            digest.update(str(array.shape).encode())
            digest.update(array.astype("<f8").tobytes())
    return digest.hexdigest()
