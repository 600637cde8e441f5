"""Everything that can go wrong, under one root, and what is worth a warning.

Each message names the task and the value, says why it matters and what to do. All errors are also
`ValueError`, so code that knows nothing of this package can catch them.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "ForgettingError",
    "InfeasibleError",
    "InvalidInputError",
    "MemoryLimitError",
    "NoCacheWarning",
    "NotRealizableError",
    "NotSeparableError",
    "NotSupportedError",
    "OrderingError",
    "ProblemFileError",
    "SmallRowWarning",
    "WorkerError",
]


class ForgettingError(ValueError):
    """The root of all errors raised on purpose by this package.

    >>> issubclass(NotRealizableError, ForgettingError) and issubclass(ForgettingError, ValueError)
    True
    """


class InvalidInputError(ForgettingError):
    """Data or a parameter that no computation can use: NaN, shapes that disagree, an empty task.

    >>> raise InvalidInputError("task 2, row 0, column 3 is nan")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: task 2, row 0, column 3 is nan
    """


class InfeasibleError(ForgettingError):
    """A set without points, or sets without a common one.

    `certificate` is a vector y with A^T y = 0 and b.y > 0 (Farkas): no w has A w >= b with y >= 0, or A w = b with any
    y. It is scaled to b.y = 1, and `residual` is |A^T y|: whatever rounding left of it, no point within 1/residual of
    the origin is in the set. None where emptiness is known without one.

    >>> error = InfeasibleError("empty", certificate=[1.0, 1.0])
    >>> error.certificate, error.residual
    ([1.0, 1.0], 0.0)
    """

    def __init__(self, message: str, *, certificate: Any = None, residual: float = 0.0) -> None:
        super().__init__(message)
        self.certificate = certificate
        self.residual = residual


class NotRealizableError(ForgettingError):
    """No single w solves all tasks, and the operation needs one.

    `task` is the first offending task and `residual` its relative residual.

    >>> NotRealizableError("not realizable", task=3, residual=0.5).task
    3
    """

    def __init__(self, message: str, *, task: int, residual: float) -> None:
        super().__init__(message)
        self.task = task
        self.residual = residual


class NotSeparableError(ForgettingError):
    """No single w classifies all rows with a margin, and the operation needs one.

    `certificate` is a vector y >= 0, one entry per row of the tasks it is about, with sum y = 1 and
    sum_i y_i (label_i x_i) = 0 up to `residual`: no w shorter than 1/residual has all margins at least 1 (Gordan).
    `task` is the task that is not separable on its own, or None if only all together are not.

    >>> NotSeparableError("not separable", certificate=[0.5, 0.5], residual=0.0, task=3).task
    3
    """

    def __init__(self, message: str, *, certificate: Any, residual: float, task: int | None = None) -> None:
        super().__init__(message)
        self.certificate = certificate
        self.residual = residual
        self.task = task


class OrderingError(ForgettingError):
    """An ordering that runs out, or names a task that does not exist.

    >>> raise OrderingError("4 steps without replacement over 3 tasks")
    Traceback (most recent call last):
    forgetting.errors.OrderingError: 4 steps without replacement over 3 tasks
    """


class NotSupportedError(ForgettingError):
    """A method that does not cover the ordering, scheme or problem it was asked for.

    >>> issubclass(NotSupportedError, ForgettingError)
    True
    """


class MemoryLimitError(ForgettingError):
    """An exact method that would not fit; `needed` and `allowed` are in bytes.

    >>> MemoryLimitError("does not fit", needed=2e9, allowed=1e9).needed
    2000000000.0
    """

    def __init__(self, message: str, *, needed: float, allowed: float) -> None:
        super().__init__(message)
        self.needed = needed
        self.allowed = allowed


class ProblemFileError(ForgettingError):
    """A file that is missing, damaged, or not one of ours.

    >>> issubclass(ProblemFileError, ForgettingError)
    True
    """


class WorkerError(ForgettingError):
    """Parts of long work that could not be computed, because their processes died again and again.

    >>> issubclass(WorkerError, ForgettingError)
    True
    """


class SmallRowWarning(UserWarning):
    """A row that is tiny beside the largest of its task: it counts like any other, and it may be noise.

    Ranks are decided after rows are scaled to one size, so that a direction that only a small row has is learned too.

    >>> import warnings, forgetting as fg
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     tasks = fg.RegressionTasks([[[1.0, 0.0], [0.0, 1e-13]]], [[1.0, 1e-13]])
    >>> caught[0].category.__name__, tasks.ranks.tolist()
    ('SmallRowWarning', [2])
    """


class NoCacheWarning(UserWarning):
    """Compiled code cannot be kept: results are the same, but every process compiles again. Given once per process.

    The remedy is to set the environment variable NUMBA_CACHE_DIR to a folder that can be written.

    >>> issubclass(NoCacheWarning, UserWarning)
    True
    """
