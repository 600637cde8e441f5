"""Capabilities that a problem may have: a geometry, rows with labels, convex sets, a display, a file.

`Problem` derives from these classes. By default their members are None or empty, or raise NotSupportedError; a class of
tasks overrides those that it knows. Engines, schemes and bounds read the members, and never ask for the class.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_path
from forgetting.core.registry import Registry, dashed
from forgetting.errors import NotSupportedError, ProblemFileError
from forgetting.figures.items import Matrix, column
from forgetting.figures.notebook import notebook_html
from forgetting.files.arrays import damaged, read_arrays, write_arrays
from forgetting.geometry import Directions, Geometry
from forgetting.results import Shown
from forgetting.sets import ConvexSet

if TYPE_CHECKING:
    from forgetting.tasks.linear_tasks import LinearTasks
    from forgetting.tasks.preparation import Preparation
    from forgetting.tasks.problem import Problem

MOST_SHOWN = 40  # tasks of a figure
MOST_ROWS = 12  # tasks of a table in a notebook


class WithGeometry:
    """Tasks that may be affine, so that linear schemes step on directions, and exact engines use a geometry."""

    #: inner products of all rows, for tasks whose iterates are dual coefficients
    kernel: Array | None = None

    @property
    def norms(self) -> Array | None:
        """The spectral norm of each task; None if tasks have no norm."""
        return None

    @property
    def geometry(self) -> Geometry | None:
        """The reduction to subspaces, for exact engines and compiled loops; None unless every task is affine."""
        return None

    @property
    def steps_on_own_rows(self) -> bool:
        """Whether linear schemes step on the rows as they were given, and not in a frame of the joint row space."""
        return False

    @property
    def directions(self) -> Directions | None:
        """The directions on which linear schemes step: the geometry, or the rows of the tasks where none is needed."""
        return self.geometry

    @property
    def linear(self) -> LinearTasks | None:
        """The same problem as linear tasks; None unless every task is affine."""
        return None


class WithRows:
    """Tasks that may consist of rows with labels, so that there are classes and accuracies."""

    #: c if labels are rows of c numbers, so that w is d x c; None if w is a vector
    outputs: int | None = None

    #: the preparation of the columns of X; None if they are as they were given
    preparation: Preparation | None = None

    @property
    def labels_stand_for(self) -> Literal["signs", "classes"] | None:
        """The meaning of labels, so that there is an accuracy: "signs" (+1, -1), "classes" (one-hot), or None."""
        return None

    def accuracies(self, points: Array) -> Array:
        """The accuracy of every task at each of a stack of w, (len(points), T), for tasks whose labels are classes."""
        raise NotSupportedError(f"accuracy needs labels that are classes, not {type(self).__name__}")

    def test_accuracies(self, points: Array) -> Array:
        """The accuracy of the held-out data of every task at each of a stack of w; an error if there are none."""
        raise NotSupportedError("the accuracy of held-out data needs held-out data: test=")

    def signed_rows(self, task: int) -> Array | None:
        """The rows y_i x_i of a classification task; None for other tasks."""
        return None

    def row_weights(self, task: int) -> Array | None:
        """The weight of each row of a classification task; None if each counts once."""
        return None


class WithSets:
    """Tasks whose solutions may be convex sets."""

    #: whether L_m(w) = 1/2 dist(w, C_m)^2, so that a projection gives the loss too
    half_squared_distances: ClassVar[bool] = False

    @property
    def members(self) -> tuple[ConvexSet, ...]:
        """The solution set of each task as a `ConvexSet`; empty if the sets are not known."""
        return ()


# ------------------------------------------------------------------------------------------------------ looking at it


class _Posed(Protocol):
    """The members of a problem that its table and its figure show."""

    dim: int

    @property
    def num_tasks(self) -> int: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def point_shape(self) -> tuple[int, ...]: ...
    def project(self, task: int, w: Array) -> Array: ...
    def task_losses(self, w: Array) -> Array: ...


class WithDisplay(Shown):
    """A line, a table and a figure of tasks."""

    def __repr__(self: _Posed) -> str:
        return f"{type(self).__name__}(T={self.num_tasks}, d={self.dim})"

    @property
    def headline(self) -> str:
        return repr(self)

    def _num_rows(self: _Posed) -> int:
        return self.num_tasks

    def _columns(self: _Posed, rows: IntArray, *, full: bool) -> dict[str, Any]:
        return {"task": rows, "name": [self.names[row] for row in rows]}

    def figure(self: _Posed) -> Matrix:
        """The losses of all tasks after one task was learned alone: at the projection of 0 onto each task.

        The first tasks only, where there are many. Cost: a projection and T losses for each task.
        """
        shown = range(min(self.num_tasks, MOST_SHOWN))
        names = tuple(self.names[task] for task in shown)
        start = np.zeros(self.point_shape)
        losses = np.array([self.task_losses(self.project(task, start))[: len(names)] for task in shown])
        losses[losses <= 1e-20 * losses.max()] = 0.0  # rounding
        return Matrix(
            "transfer", "Losses after one task was learned", "", "loss of task", "learned alone", names, names,
            tuple(column(row) for row in losses),
        )  # fmt: skip

    def _repr_html_(self) -> str:
        return notebook_html(self.to_table(MOST_ROWS))  # without the picture, which takes a projection for each task


# ---------------------------------------------------------------------------------------------------------- files


class WithFile:
    """Tasks that can be saved, if their class has a `format`, `file_arrays` and `from_file_arrays`."""

    #: the 'format' entry of a file with such tasks; empty if a class cannot be saved
    format: ClassVar[str] = ""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if cls.__dict__.get("format"):
            _formats.add(cls.format, cls, replace=True)

    def file_arrays(self) -> dict[str, Any]:
        """The arrays that `save` writes, by name; the entry 'format' is the format of the class."""
        raise NotSupportedError(
            f"{type(self).__name__} cannot be saved: its class has no `format`, `file_arrays` and `from_file_arrays`"
        )

    @classmethod
    def from_file_arrays(cls, arrays: dict[str, Any]) -> Self:
        """The tasks of the arrays that `file_arrays` gave; every array is checked."""
        raise NotSupportedError(f"{cls.__name__} cannot be loaded: its class has no `from_file_arrays`")

    def save(self, path: str | PathLike[str]) -> None:
        """Write the tasks to an .npz file, atomically and without pickle; `load` gives the same numbers back.

        >>> import forgetting as fg, tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "two_lines.npz"
        ...     fg.families.two_lines(0.5).save(path)
        ...     fg.RegressionTasks.load(path)
        RegressionTasks(T=2, d=2, rows=2)
        """
        write_arrays(as_path(path), self.file_arrays())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read tasks that `save` wrote; nothing is unpickled. `Problem.load` reads tasks of any kind."""
        problem = problem_from(read_arrays(path), path)
        if not isinstance(problem, cls):
            raise ProblemFileError(f"{path}: holds {type(problem).__name__}; use {type(problem).__name__}.load")
        return problem


#: the classes of problems that can be saved, by the 'format' entry of their files
_formats: Registry[type[Any]] = Registry("format of tasks")


def problem_from(arrays: dict[str, Any], path: str | PathLike[str]) -> Problem:
    """The tasks of the arrays of a file, of the kind that its 'format' entry names; `path` is named in errors.

    >>> problem_from({"format": np.array("spreadsheet")}, "tasks.npz")
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: tasks.npz: not a file of tasks that this library saved...
    """
    name = str(arrays.get("format"))
    if name not in _formats and name.rpartition("/")[0] in {known.rpartition("/")[0] for known in _formats}:
        raise ProblemFileError(
            f"{path}: tasks in the format {name!r:.80}, which this version cannot read; update forgetting"
        )
    if name not in _formats and is_saved(arrays):
        raise ProblemFileError(f"{path}: {no_tasks(name)}")
    if name not in _formats:
        given = f"its 'format' entry is {name!r:.80}" if "format" in arrays else "there is no 'format' entry"
        raise ProblemFileError(f"{path}: not a file of tasks that this library saved ({given})")
    kind = _formats.get(name)
    with damaged(path, f"collection of {dashed(kind.__name__).replace('-', ' ')}"):
        made: Problem = kind.from_file_arrays(arrays)
    return made


def is_saved(arrays: Mapping[str, Any]) -> bool:
    """Whether this library wrote the arrays, as their entry 'format' says.

    >>> is_saved({"format": np.array("forgetting/regression/1")}), is_saved({"X": np.eye(2)})
    (True, False)
    """
    return str(arrays.get("format")).startswith("forgetting/")


def no_tasks(form: str) -> str:
    """The message for a file of this library that holds no tasks; `form` is its entry 'format'.

    >>> no_tasks("forgetting/instance/1")
    "holds 'forgetting/instance/1', a saved instance and no tasks; give the file with the tasks that it is about"
    """
    what = form.split("/")[1] if form.count("/") == 2 else "result"
    return f"holds {form!r:.60}, a saved {what:.40} and no tasks; give the file with the tasks that it is about"
