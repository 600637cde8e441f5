"""Geometries in files: the states of a run are coordinates in a frame, which another machine might choose otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from forgetting.core.arrays import is_sparse
from forgetting.errors import ForgettingError
from forgetting.files.records import Codec, add_codec, checked_fields, dataclass_codec, field_values
from forgetting.geometry.reduction import Frame, Geometry, RowEquations

__all__ = ["check_geometry"]


def check_geometry(geometry: Geometry) -> None:
    """Raise unless the arrays fit together, as compiled code supposes.

    >>> import forgetting as fg
    >>> check_geometry(fg.families.two_lines(0.5).geometry)
    """
    total, distinct, size = len(geometry.sigma), len(geometry.offsets) - 1, geometry.solution.shape[-1]
    several = geometry.solution.shape[:-1]  # outputs, if there are several
    parts = geometry.unexplained_parts
    each_task = (geometry.unexplained, geometry.residuals, geometry.full, geometry.conditions, geometry.label_norms)
    fits = [
        geometry.rows.shape == (total, size),
        geometry.sigma.ndim == geometry.offsets.ndim == geometry.index.ndim == 1 >= len(several),
        geometry.targets.shape == (*several, total),
        parts is None if not several else parts is not None and parts.shape == (*several, distinct),
        all(array.shape == (distinct,) for array in each_task),
        distinct >= 1 and len(geometry.index) >= 1,
    ]
    if all(fits):
        starts, index = geometry.offsets, geometry.index
        fits += [starts[0] == 0, starts[-1] == total, not (np.diff(starts) < 0).any()]
        fits += [index.min() >= 0, index.max() < distinct, _frame_fits(geometry.frame, size)]
    if not all(fits):
        raise ForgettingError("the arrays of a geometry do not fit together")
    frame = geometry.frame
    for array in (geometry.rows, geometry.sigma, geometry.targets, geometry.solution, frame.basis, frame.dual_basis):
        if array is not None and not np.isfinite(array).all():
            raise ForgettingError("the arrays of a geometry hold NaN or infinite numbers")


def _frame_fits(frame: Frame, size: int) -> bool:
    active, columns = frame.dim, frame.columns
    if columns is not None:
        active = len(columns)
        if active and not 0 <= columns.min() <= columns.max() < frame.dim:
            return False
    shapes = [part.shape for part in (frame.basis, frame.dual_basis) if part is not None]
    return all(shape == (active, size) for shape in shapes) and (frame.basis is not None or active == size)


def _equations_parts(equations: RowEquations) -> dict[str, Any]:
    """The parts for a file; sparse matrices, which only small problems keep here, are made dense."""
    dense = [matrix.toarray() if is_sparse(matrix) else np.asarray(matrix) for matrix in equations.matrices]
    return field_values(equations) | {"matrices": dense, "labels": list(equations.labels)}


def _equations_from(values: Any) -> RowEquations:
    equations = RowEquations(**checked_fields(RowEquations, values))
    for array in (*equations.matrices, *equations.labels):
        if not isinstance(array, np.ndarray) or array.dtype != np.float64:
            raise ForgettingError("row equations are arrays of numbers")
    return equations


def _geometry_from(values: Any) -> Geometry:
    geometry = Geometry(**checked_fields(Geometry, values))
    check_geometry(geometry)
    return geometry


add_codec(dataclass_codec(Frame, "frame"))
add_codec(Codec("row-equations", RowEquations, _equations_parts, _equations_from))
add_codec(Codec("geometry", Geometry, lambda geometry: field_values(geometry, frozenset({"data"})), _geometry_from))
