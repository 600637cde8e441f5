"""Where a result came from: versions, seed, and a hash of the problem."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import numpy as np
import scipy.sparse as sp

from forgetting.sets import ConvexSet
from forgetting.tasks import ClassificationTasks, ConvexSets, KernelTasks, RegressionTasks

__all__ = ["problem_hash", "versions"]

AT_ONCE = 2**20  # entries of a dense matrix that are looked at together

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
    """SHA-256 of the numbers of a problem, the same for equal tasks in the same order, dense or sparse.

    It covers data, kernel matrices, what defines each convex set, the kind of loss and the tolerances for ranks. Names
    are not covered, nor are functions: `CustomSet`s of one dimension have one hash, and of a user's own classes only
    numbers, text and arrays among their attributes count. Matrices are read in parts, and never made dense.

    >>> import forgetting as fg
    >>> problem_hash(fg.families.two_lines(0.5)) == problem_hash(fg.families.two_lines(0.5))
    True
    >>> problem_hash(fg.families.two_lines(0.5)) == problem_hash(fg.families.two_lines(0.6))
    False
    """
    settings = [getattr(problem, name, None) for name in ("loss_kind", "rank_tol", "rtol")]
    digest = hashlib.sha256(f"{type(problem).__name__} {problem.num_tasks} {problem.dim} {settings}".encode())
    for part in _parts(problem):
        digest.update(part)
    return digest.hexdigest()


def _parts(problem: Any) -> Iterator[bytes]:
    """A digest of every task."""
    if isinstance(problem, KernelTasks):
        yield _digest(problem.kernel, problem.labels, problem.rows_of)
    elif isinstance(problem, ConvexSets):
        yield from (_of_set(one) for one in problem.sets)
    elif isinstance(problem, RegressionTasks):
        known: dict[int, bytes] = {}
        for m in range(problem.num_tasks):
            matrix, label = problem.task(m)  # identical tasks are one object
            if id(label) not in known:
                known[id(label)] = _digest(matrix, label)
            yield known[id(label)]
    elif isinstance(problem, ClassificationTasks):
        yield from (_digest(*problem.task(m)) for m in range(problem.num_tasks))
    else:
        yield _digest(getattr(problem, "__dict__", {}))


def _of_set(one: ConvexSet) -> bytes:
    values = [getattr(one, name) for name in one.parts] if one.parts else vars(one)
    return _digest(type(one).__name__, values)


def _digest(*values: Any) -> bytes:
    """SHA-256 of numbers, text and arrays, and of lists, tuples and dictionaries of them; other things do not count."""
    digest = hashlib.sha256()
    for value in values:
        numbers = isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
        if sp.issparse(value) or (numbers and value.ndim == 2):
            digest.update(_of_matrix(value))
        elif numbers:
            digest.update(repr(value.shape).encode())
            digest.update((np.asarray(value, dtype="<f8") + 0.0).tobytes())  # one zero, not two
        elif isinstance(value, list | tuple):
            digest.update(_digest(*value))
        elif isinstance(value, dict):
            digest.update(_digest(*(part for name in sorted(value) for part in (name, value[name]))))
        elif isinstance(value, float | np.floating):
            digest.update(repr(float(value) + 0.0).encode())
        elif isinstance(value, str | int | np.integer):
            digest.update(repr(value if isinstance(value, str) else int(value)).encode())
    return digest.digest()


def _of_matrix(matrix: Any) -> bytes:
    """Of the numbers that are not zero, row after row: how many each row has, their columns, their values."""
    counts, columns, values = (hashlib.sha256() for _ in range(3))
    rows, width = matrix.shape
    entries = matrix.nnz if sp.issparse(matrix) else matrix.size
    step = max(1, AT_ONCE * rows // max(1, entries))
    for first in range(0, rows, step):
        part = sp.csr_array(matrix[first : first + step], dtype=np.float64, copy=True)
        part.sum_duplicates()
        part.eliminate_zeros()
        for digest, array, kind in (
            (counts, np.diff(part.indptr), "<i8"),
            (columns, part.indices, "<i8"),
            (values, part.data, "<f8"),
        ):
            digest.update(np.ascontiguousarray(array, dtype=kind).tobytes())
    whole = hashlib.sha256(f"{rows} x {width}".encode())
    for digest in (counts, columns, values):
        whole.update(digest.digest())
    return whole.digest()
