"""Whether one w classifies all rows, decided with a proof either way."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from forgetting._arrays import Array
from forgetting.errors import ForgettingError, InfeasibleError
from forgetting.projections import Polyhedron

__all__ = ["Separability", "decide"]

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Separability:
    """Whether some w has y_i x_i.w >= 1 for all rows, and what proves it.

    Attributes:
        holds: there is such a w.
        w: the shortest one, or None. Its margins are above 0 beyond rounding, which anyone can check.
        certificate: else y >= 0 with sum y = 1 and |sum_i y_i (label_i x_i)| = `residual`, 0 up to rounding. Since
            1 <= sum_i y_i (label_i x_i).w <= residual |w|, there is no such w (Gordan's alternative).
        residual: of the certificate; 0 where there is none.

    >>> import forgetting as fg
    >>> fg.ClassificationTasks([[[1.0], [-2.0]]], [[1, -1]]).separability.message
    'separable: w of norm 1 has all margins at least 1'
    >>> fg.ClassificationTasks([[[1.0], [2.0]]], [[1, -1]]).separability.certificate.round(6)
    array([0.666667, 0.333333])
    """

    holds: bool
    w: Array | None = field(repr=False)
    certificate: Array | None = field(repr=False)
    residual: float

    @property
    def message(self) -> str:
        """The finding in words."""
        if self.w is not None:
            return f"separable: w of norm {np.linalg.norm(self.w):.4g} has all margins at least 1"
        rows = np.flatnonzero(self.certificate) if self.certificate is not None else np.empty(0, dtype=np.int64)
        shown = ", ".join(str(row) for row in rows[:6]) + (", ..." if len(rows) > 6 else "")
        return (
            f"not separable: rows {shown}, each times its label, average to 0 with the weights in .certificate "
            f"(to {self.residual:.1g}), so that no w has positive margins on all of them"
        )


def decide(rows: Array) -> Separability:
    """Separability of {w: rows w >= 1}, with the shortest such w, or weights of a convex combination of rows that is 0.

    The shortest point of the convex hull of the rows answers both ways: if it is not 0 it separates. So where the
    projection finds no point within its reach, two directions that it leaves are tried before it is believed. A margin
    below the rounding of the data counts as 0.

    >>> decide(np.array([[1.0, 0.0], [0.0, 2.0]])).w
    array([1. , 0.5])
    """
    try:
        point = Polyhedron(rows, np.ones(len(rows)), check=False).nearest(np.zeros(rows.shape[1]))
        return Separability(True, point, None, 0.0)
    except InfeasibleError as error:
        weights = np.asarray(error.certificate)
    except ForgettingError:
        weights = _hull(rows)
    weights = weights / weights.sum()
    direction = rows.T @ weights
    support = rows[weights > 0]
    separating = []
    for candidate in (direction, np.linalg.lstsq(support, np.ones(len(support)), rcond=EPS)[0]):
        margins = rows @ candidate
        if bool(np.all(margins > EPS * rows.shape[1] * np.abs(rows) @ np.abs(candidate))):
            separating.append(candidate / float(margins.min()))
    if separating:
        return Separability(True, min(separating, key=np.linalg.norm), None, 0.0)
    return Separability(False, None, weights, float(np.linalg.norm(direction)))


def _hull(rows: Array) -> Array:
    """min |rows^T y|^2 + (sum y - 1)^2 over y >= 0 (Lawson and Hanson 1974): the shortest point of the hull, scaled."""
    from scipy.optimize import nnls

    size = float(np.max(np.linalg.norm(rows, axis=1))) or 1.0
    system = np.concatenate([rows.T / size, np.ones((1, len(rows)))])
    y: Array = nnls(system, np.eye(1, len(system), len(system) - 1)[0], maxiter=100 * len(rows))[0]
    return y
