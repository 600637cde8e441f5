"""The errors and warnings of this package.

Each message names the task and the value, the reason and a remedy. All errors derive from `ForgettingError`, which
derives from `ValueError`, so that code that does not know this package can catch them.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "ChoiceWarning",
    "DataWarning",
    "ForgettingError",
    "InfeasibleError",
    "InvalidInputError",
    "MemoryLimitError",
    "MissingValueError",
    "NoCacheWarning",
    "NotRealizableError",
    "NotSeparableError",
    "NotSupportedError",
    "OrderingError",
    "PatienceError",
    "ProblemFileError",
    "SmallRowWarning",
    "WorkerError",
]


def __dir__() -> list[str]:  # `core.names.only` stands above errors
    return list(__all__)


class ForgettingError(ValueError):
    """The base class of all errors that this package raises.

    `on_command_line` is the message in the words of the command line, where those of Python would not help there.

    >>> issubclass(NotRealizableError, ForgettingError) and issubclass(ForgettingError, ValueError)
    True
    """

    on_command_line: str = ""


class InvalidInputError(ForgettingError):
    """The data or a parameter cannot be used: NaN, shapes that disagree, an empty task.

    >>> raise InvalidInputError("task 2, row 0, column 3 is nan")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: task 2, row 0, column 3 is nan
    """


class InfeasibleError(ForgettingError):
    """A convex set is empty, or several convex sets have no common point.

    `certificate` is a vector y with A^T y = 0 and b.y > 0 (Farkas), which proves that no w has A w = b, or, if y >= 0,
    that no w has A w >= b. The certificate is scaled to b.y = 1, and `residual` is |A^T y|, 0 up to rounding: the set
    has no point within a distance of 1/residual from the origin. None where emptiness is known without a certificate.

    >>> error = InfeasibleError("empty", certificate=[1.0, 1.0])
    >>> error.certificate, error.residual
    ([1.0, 1.0], 0.0)
    """

    def __init__(self, message: str, *, certificate: Any = None, residual: float = 0.0) -> None:
        super().__init__(message)
        self.certificate = certificate
        self.residual = residual


class NotRealizableError(ForgettingError):
    """No single w solves all tasks, and the operation needs such a w.

    `task` is the first task that the offline solution does not solve, and `residual` is its relative residual.

    >>> NotRealizableError("not realizable", task=3, residual=0.5).task
    3
    """

    def __init__(self, message: str, *, task: int, residual: float) -> None:
        super().__init__(message)
        self.task = task
        self.residual = residual


class NotSeparableError(ForgettingError):
    """No single w classifies all rows with a margin, and the operation needs such a w.

    `certificate` is a vector y >= 0 with an entry for each row, sum y = 1 and sum_i y_i (label_i x_i) = 0 up to
    `residual`: no w shorter than 1/residual has all margins at least 1 (Gordan). `task` is the task that is not
    separable by itself, and the rows are those of this task; `task` is None if only all tasks together are not.

    >>> NotSeparableError("not separable", certificate=[0.5, 0.5], residual=0.0, task=3).task
    3
    """

    def __init__(self, message: str, *, certificate: Any, residual: float, task: int | None = None) -> None:
        super().__init__(message)
        self.certificate = certificate
        self.residual = residual
        self.task = task


class OrderingError(ForgettingError):
    """An ordering ended too early, or named a task that does not exist.

    >>> raise OrderingError("4 steps without replacement over 3 tasks")
    Traceback (most recent call last):
    forgetting.errors.OrderingError: 4 steps without replacement over 3 tasks
    """


class NotSupportedError(ForgettingError):
    """The method does not cover this ordering, scheme or problem.

    >>> issubclass(NotSupportedError, ForgettingError)
    True
    """


class MissingValueError(InvalidInputError, NotSupportedError, AttributeError):
    """A result does not hold this value: it was not asked for, or these tasks have none of it.

    To `hasattr` and `getattr` such a value is an attribute that is not there.

    >>> import forgetting as fg
    >>> e = fg.expect(fg.families.two_lines(0.5), "random", k=3, quantities="loss")
    >>> hasattr(e, "loss"), hasattr(e, "regret")
    (True, False)
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.name, self.obj = "", None  # else Python guesses that another name was meant


class MemoryLimitError(ForgettingError):
    """A computation needs more memory than it may use; `needed` and `allowed` are in bytes.

    >>> MemoryLimitError("does not fit", needed=2e9, allowed=1e9).needed
    2000000000.0
    """

    def __init__(self, message: str, *, needed: float, allowed: float) -> None:
        super().__init__(message)
        self.needed = needed
        self.allowed = allowed


class PatienceError(ForgettingError):
    """A computation is estimated to take longer than it may; `needed` and `allowed` are in seconds.

    `method` names the quickest method.

    >>> PatienceError("takes too long", needed=200.0, allowed=30.0, method="subsets").needed
    200.0
    """

    def __init__(self, message: str, *, needed: float, allowed: float, method: str = "") -> None:
        super().__init__(message)
        self.needed = needed
        self.allowed = allowed
        self.method = method


class ProblemFileError(ForgettingError):
    """A file is missing, damaged, or was not written by this package.

    >>> issubclass(ProblemFileError, ForgettingError)
    True
    """


class WorkerError(ForgettingError):
    """Parts of a long computation failed, because the processes that computed them died repeatedly.

    >>> issubclass(WorkerError, ForgettingError)
    True
    """


class DataWarning(UserWarning):
    """Data that were read look like a mistake: an index among the features, or classes learned as numbers.

    The message says how to avoid it; `notes` of the tasks has the same words, and others that need no warning.

    >>> import warnings, forgetting as fg
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     tasks = fg.load(([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1], ["a", "a", "b", "b"]))
    >>> caught[0].category.__name__, str(caught[0].message) in tasks.notes
    ('DataWarning', True)
    """


class ChoiceWarning(DataWarning):
    """Data could be read in several ways, and one was chosen: words are classes, or tasks of mixed rows were sorted.

    The message says how to choose another. `notes` of the tasks says what was chosen.

    >>> import warnings, forgetting as fg
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     tasks = fg.load(([[1.0], [2.0], [3.0]], [0.5, 1.5, 2.5], ["task 10", "task 9", "task 10"]))
    >>> print(caught[0].category.__name__, caught[0].message, sep=": ")
    ChoiceWarning: tasks are sorted by number, since their rows are mixed: 'task 9', 'task 10'; rows that come task ...
    """


class SmallRowWarning(UserWarning):
    """A row is tiny compared with the largest row of its task; the row counts like any other, but may be noise.

    Ranks are decided after rows are scaled to the same size, so that a direction that only a small row has counts too.

    >>> import warnings, forgetting as fg
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     tasks = fg.RegressionTasks([[[1.0, 0.0], [0.0, 1e-13]]], [[1.0, 1e-13]])
    >>> caught[0].category.__name__, tasks.ranks.tolist()
    ('SmallRowWarning', [2])
    """


class NoCacheWarning(UserWarning):
    """Compiled code cannot be stored: results are the same, but every process compiles again.

    Given once per process. Remedy: set the environment variable NUMBA_CACHE_DIR to a folder that can be written.

    >>> issubclass(NoCacheWarning, UserWarning)
    True
    """
