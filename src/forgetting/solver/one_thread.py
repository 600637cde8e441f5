"""Matrix products by one thread, so that no digit depends on the number of threads of the linear algebra library."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

__all__ = ["one_thread"]


@cache
def _libraries() -> Any:
    import scipy.linalg.cython_blas  # noqa: F401 - the library of compiled code must be there to be found
    from threadpoolctl import ThreadpoolController  # comes with scikit-learn

    return ThreadpoolController()  # looks through all loaded libraries, which takes milliseconds


def one_thread() -> AbstractContextManager[Any]:
    """A context in which the linear algebra library uses one thread."""
    limited: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limited
