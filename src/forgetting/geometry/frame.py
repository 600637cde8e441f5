"""The coordinates of a reduction, and the data behind it: frames, rows and labels in their coordinates, exact data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_dense, read_only
from forgetting.errors import ForgettingError
from forgetting.files.records import Codec, add_codec, checked_fields, dataclass_codec, field_values
from forgetting.geometry.qr import Matrix
from forgetting.geometry.rational import lift

__all__ = ["Data", "Frame", "Rooted"]


def seal_arrays(owner: Any) -> None:
    """Make the arrays read-only, so that a user's scheme or ordering cannot change the tasks."""
    for attribute in fields(owner):
        value = getattr(owner, attribute.name)
        if isinstance(value, np.ndarray):
            object.__setattr__(owner, attribute.name, read_only(value))


@dataclass(frozen=True, eq=False)
class Frame:
    """Coordinates on the joint row space: v = down(w), and w moves by up(change of v).

    For data, `basis` is d x D with orthonormal columns and serves both directions (`columns` lists the active
    columns when others are zero everywhere). For a Gram matrix w is a vector of dual coefficients and the two
    directions differ.
    """

    dim: int
    basis: Array | None = None
    dual_basis: Array | None = None
    columns: IntArray | None = None

    def __post_init__(self) -> None:
        seal_arrays(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        seal_arrays(self)

    def down(self, w: Array) -> Array:
        """Coordinates of w on the row space."""
        active = w if self.columns is None else w[self.columns]
        return active if self.basis is None else self.basis.T @ active

    def down_all(self, w: Array) -> Array:
        """Coordinates of each column of a d x c matrix, as rows."""
        return np.ascontiguousarray(self.down(w).T)

    def up(self, v: Array) -> Array:
        """The w of least norm with coordinates v; each row of a matrix is lifted separately."""
        back = self.basis if self.dual_basis is None else self.dual_basis
        active = v if back is None else v @ back.T
        if self.columns is None:
            return active
        full = np.zeros((*v.shape[:-1], self.dim))
        full[..., self.columns] = active
        return full


@dataclass(frozen=True, eq=False)
class RowEquations:
    """The rows and labels of distinct tasks, of which `solution` is subtracted: A z = b in coordinates z.

    Attributes:
        matrices, labels: of the distinct tasks, in the coordinates of the frame before `rotation`.
        weights: a factor of the rows and labels of each task.
        rotation: from those coordinates to the joint row space; None if they are the same.
        solution: the offline solution, which is z = 0.
    """

    matrices: Sequence[Matrix]
    labels: Sequence[Array]
    weights: Array
    rotation: Array | None
    solution: Array

    def __call__(self, task: int) -> tuple[Array, Array]:
        weight = self.weights[task]
        design = weight * as_dense(self.matrices[task])
        if self.rotation is not None:
            design = design @ self.rotation
        return read_only(np.ascontiguousarray(design)), weight * self.labels[task] - design @ self.solution.T

    def output(self, o: int) -> RowEquations:
        """The equations of one of several outputs."""
        return replace(self, labels=[label[:, o] for label in self.labels], solution=self.solution[o])


class Rooted(Protocol):
    """A task whose rows or labels are roots, of which `Data` has floats nearby."""

    @property
    def rows_off(self) -> float:
        """A bound on the errors of the floats of rows, relative to the norm of the task."""

    @property
    def labels_off(self) -> float:
        """A bound on the errors of the floats of labels, relative to their norm."""

    @property
    def scaled(self) -> bool:
        """Whether columns of labels are floats up to a factor, so that exact ranks can be told from the floats."""

    def decimals(self) -> tuple[Any, Any] | None:
        """Rows and labels with the digits of the current decimal context; None if no more than floats are known."""


class Data(NamedTuple):
    """The data of the distinct tasks; the squared loss of task m is divided by divisors[m].

    `roots` has an entry for each task whose numbers are not exactly the floats. `column` is the output that labels are
    about, if there were several.
    """

    matrices: Sequence[Matrix]
    labels: Sequence[Array]
    divisors: Array
    roots: Mapping[int, Rooted] = {}
    column: int | None = None

    def output(self, o: int) -> Data:
        """The data of one of several outputs."""
        return self._replace(labels=[np.ascontiguousarray(label[:, o]) for label in self.labels], column=o)

    @property
    def known(self) -> bool:
        """Whether `decimals` gives all tasks with any number of digits."""
        return all(root.decimals() is not None for root in self.roots.values())

    def decimals(self, task: int) -> tuple[Any, Any]:
        """The rows and labels of a task as decimal numbers: exactly, or with the digits of the current context."""
        rooted = self.roots[task].decimals() if task in self.roots else None
        if rooted is None:
            return lift(as_dense(self.matrices[task])), lift(self.labels[task])
        rows, labels = rooted
        return rows, labels if self.column is None else labels[:, self.column]


# ------------------------------------------------------------------------------------------------------------ in files


def frame_fits(frame: Frame, size: int) -> bool:
    """Whether the arrays of a frame fit together, for coordinates of this many numbers."""
    active, columns = frame.dim, frame.columns
    if columns is not None:
        active = len(columns)
        if active and not 0 <= columns.min() <= columns.max() < frame.dim:
            return False
    shapes = [part.shape for part in (frame.basis, frame.dual_basis) if part is not None]
    return all(shape == (active, size) for shape in shapes) and (frame.basis is not None or active == size)


def _equations_parts(equations: RowEquations) -> dict[str, Any]:
    """The parts for a file; sparse matrices, which only small problems keep here, are made dense."""
    matrices = [as_dense(matrix) for matrix in equations.matrices]
    return field_values(equations) | {"matrices": matrices, "labels": list(equations.labels)}


def _equations_from(values: Any) -> RowEquations:
    equations = RowEquations(**checked_fields(RowEquations, values))
    for array in (*equations.matrices, *equations.labels):
        if not isinstance(array, np.ndarray) or array.dtype != np.float64:
            raise ForgettingError("row equations must be arrays of float64")
    return equations


add_codec(dataclass_codec(Frame, "frame"))
add_codec(Codec("row-equations", RowEquations, _equations_parts, _equations_from))
