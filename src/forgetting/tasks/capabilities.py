"""Capabilities that a problem may have: a geometry, rows with labels, convex sets, a file.

`Problem` derives from these classes. By default their members are None or empty, or raise NotSupportedError; a class of
tasks overrides those that it knows. Engines, schemes and bounds read the members, and never ask for the class.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from forgetting.core.arrays import Array, as_path
from forgetting.core.registry import Registry, dashed
from forgetting.errors import NotSupportedError, ProblemFileError
from forgetting.files.arrays import damaged, read_arrays, write_arrays
from forgetting.geometry import Directions, Geometry, overlaps, solution_cosines
from forgetting.sets import ConvexSet
from forgetting.sets.in_turn import Inequalities

if TYPE_CHECKING:
    from forgetting.tasks.linear_tasks import LinearTasks
    from forgetting.tasks.preparation import Preparation
    from forgetting.tasks.problem import Problem


class WithGeometry:
    """Tasks that may be affine, so that linear schemes step on directions, and exact engines use a geometry."""

    #: inner products of all rows, for tasks whose iterates are dual coefficients
    kernel: Array | None = None

    @property
    def norms(self) -> Array | None:
        """The spectral norm of each task; None if tasks have no norm."""
        return None

    @property
    def norms_as_given(self) -> Array | None:
        """The norms that orderings see: those of the tasks that were given, in whatever coordinates these are here."""
        return self.norms

    def similarity(self, by: Literal["rows", "solutions"]) -> Array | None:
        """The similarity of each pair of tasks, T x T, 1 for a task with itself; None if tasks have none.

        By rows: the mean of cos^2 of the principal angles between the row spaces. By solutions: the cosine between the
        least-norm solutions of the two tasks.
        """
        geometry = self.geometry
        if geometry is None:
            return None
        return overlaps(geometry) if by == "rows" else solution_cosines(geometry)

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

    def accuracies_within(self, points: Array, off: Array, held_out: bool = False) -> tuple[Array, Array]:
        """`accuracies` or `test_accuracies` of w that are off by at most `off`, and bounds on their errors.

        A bound is the share of the rows of a task whose margin is not clear, ties included.
        """
        shares = self.test_accuracies(points) if held_out else self.accuracies(points)
        return shares, 0 * shares + float("inf")

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
    #: whether L_m(w) is half the square of the most by which w misses an inequality of the set
    half_squared_shortfalls: ClassVar[bool] = False

    @property
    def members(self) -> tuple[ConvexSet, ...]:
        """The solution set of each task as a `ConvexSet`; empty if the sets are not known."""
        return ()

    @property
    def inequalities(self) -> Inequalities | None:
        """The inequalities of the solution sets, for compiled projections; None if they are not known."""
        return None


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

    >>> import numpy as np
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

    >>> import numpy as np
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
