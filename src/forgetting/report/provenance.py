"""The provenance of a result: versions, a hash of the problem, and the preparation of its features."""

from __future__ import annotations

import hashlib
import platform
from importlib import metadata
from typing import Any

import numpy as np
import scipy.sparse as sp

from forgetting.tasks import Problem

AT_ONCE = 2**20  # entries of a dense matrix that are looked at together

PACKAGES = ("forgetting", "numpy", "scipy", "numba", "scikit-learn", "matplotlib", "typer", "rich")


def versions() -> dict[str, str]:
    """The versions of Python, of this package and of the packages that it uses."""
    installed = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            installed[name] = "not installed"
        except Exception as error:  # a damaged installation computes nothing wrong by being unnamed
            installed[name] = f"unreadable ({type(error).__name__})"
    return installed


def preparation_of(problem: Problem) -> dict[str, str]:
    """The entry of a result that says what was done with the features; empty if nothing was.

    >>> import forgetting as fg
    >>> preparation_of(fg.families.two_lines(0.5).prepared(intercept=True))
    {'preparation': 'an intercept as the last column'}
    """
    return {} if problem.preparation is None else {"preparation": problem.preparation.in_words}


def problem_hash(problem: Problem) -> str:
    """SHA-256 of the numbers of a problem, the same for equal tasks in the same order, dense or sparse.

    The hash covers what the problem gives as its `digest_parts`: data, kernel matrices, what defines each convex set,
    the kind of loss and the tolerances for ranks. Names are not covered, nor are functions: `CustomSet`s of one
    dimension have one hash, and of a user's own classes only numbers, text and arrays among their attributes count.
    Matrices are read in parts, and never made dense.

    >>> import forgetting as fg
    >>> problem_hash(fg.families.two_lines(0.5)) == problem_hash(fg.families.two_lines(0.5))
    True
    >>> problem_hash(fg.families.two_lines(0.5)) == problem_hash(fg.families.two_lines(0.6))
    False
    """
    digest = hashlib.sha256(f"{type(problem).__name__} {problem.num_tasks} {problem.dim}".encode())
    known: dict[
        tuple[int, ...], tuple[object, bytes]
    ] = {}  # identical tasks are read once; kept, so that ids stay theirs
    for part in problem.digest_parts():
        key = tuple(map(id, part))
        if key not in known:
            known[key] = part, _digest(*part)
        digest.update(known[key][1])
    return digest.hexdigest()


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
    """SHA-256 of the entries that are not zero, row after row: how many each row has, their columns, their values."""
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
    together = hashlib.sha256(f"{rows} x {width}".encode())
    for digest in (counts, columns, values):
        together.update(digest.digest())
    return together.digest()
