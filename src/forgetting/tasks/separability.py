"""Decides whether some w classifies all rows, with a proof of either answer."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from forgetting.core.arrays import EPS, Array
from forgetting.errors import ForgettingError, InfeasibleError
from forgetting.sets import Polyhedron
from forgetting.sets._certificate import refined, vanishes

__all__ = ["Separability", "decide"]


@dataclass(frozen=True, eq=False)
class Separability:
    """Whether some w has y_i x_i.w >= 1 for all rows, with a proof.

    Attributes:
        holds: whether such a w exists.
        w: the shortest such w, or None. All its margins are above 0 by more than rounding. (If columns differ so much
            in scale that the shortest w is lost to rounding, another such w.)
        certificate: if no such w exists, y >= 0 with sum y = 1 and |sum_i y_i (label_i x_i)| = `residual`, which is 0
            up to rounding in every coordinate; else None. A w as above would have
            1 <= sum_i y_i (label_i x_i).w <= residual |w| (Gordan's alternative).
        residual: the residual of the certificate; 0 without a certificate.
        tasks: the tasks whose rows the certificate combines; empty without a certificate, or for rows of one task.

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
    tasks: tuple[int, ...] = ()

    @property
    def message(self) -> str:
        """A sentence that says whether the rows are separable, and the proof."""
        if self.w is not None:
            return f"separable: w of norm {np.linalg.norm(self.w):.4g} has all margins at least 1"
        rows = np.flatnonzero(self.certificate) if self.certificate is not None else np.empty(0, dtype=np.int64)
        shown = ", ".join(str(row) for row in rows[:6]) + (", ..." if len(rows) > 6 else "")
        where = ""
        if self.tasks:
            named = ", ".join(str(task) for task in self.tasks[:6]) + (", ..." if len(self.tasks) > 6 else "")
            where = f" (in task{'s' * (len(self.tasks) > 1)} {named})"
        if len(rows) == 1:
            return f"not separable: row {shown}{where} is 0, so that no w has a positive margin on it"
        return (
            f"not separable: rows {shown}{where}, each times its label, average to 0 with the weights in .certificate "
            f"(to {self.residual:.1g}), so that no w has positive margins on all of them"
        )


def decide(rows: Array) -> Separability:
    """Decide whether some w has rows w >= 1: find the shortest such w, or a convex combination of the rows that is 0.

    Either answer is checked on the rows. If a projection gives no valid answer, the projection is repeated with rows
    and columns divided by their largest entries (which does not change the answer), and then a linear programme is
    solved. An error is raised if the answer is still undecided. Margins below the rounding of the data count as 0.

    >>> decide(np.array([[1.0, 0.0], [0.0, 2.0]])).w
    array([1. , 0.5])
    """
    answer = _proven(rows, *_projected(rows))
    if answer is not None:
        return answer
    columns = _sizes(rows, 0)
    scaled = rows / columns
    lengths = _sizes(scaled, 1)
    scaled /= lengths[:, None]
    for method in (_projected, _programmed):
        w, weights = method(scaled)
        answer = _proven(rows, None if w is None else w / columns, None if weights is None else weights / lengths)
        if answer is not None:
            return answer
    raise ForgettingError(
        "whether one w has positive margins on all rows is undecided: neither such a w nor a combination of the rows "
        "that is 0 was found beyond rounding; scale the columns of X to similar size"
    )


def _sizes(rows: Array, axis: int) -> Array:
    """The largest magnitudes along an axis; 1 where all entries are 0."""
    largest: Array = np.max(np.abs(rows), axis=axis)
    return np.where(largest > 0, largest, 1.0)


def _proven(rows: Array, w: Array | None, weights: Array | None) -> Separability | None:
    """The answer that w, or else the weights, prove; None if neither proves an answer."""
    if w is not None:
        margins = rows @ w
        smallest = float(margins.min())
        if bool(np.all(margins > EPS * rows.shape[1] * np.abs(rows) @ np.abs(w))):
            return Separability(True, w if abs(smallest - 1) <= 1e-9 else w / smallest, None, 0.0)
    if weights is not None and weights.any():
        weights = refined(rows, weights)
        weights = weights / weights.sum()
        if vanishes(rows, weights):
            return Separability(False, None, weights, float(np.linalg.norm(rows.T @ weights)))
    return None


def _projected(rows: Array) -> tuple[Array | None, Array | None]:
    """(w, None) with the shortest w such that rows w >= 1, or (None, certificate), or (None, None) on failure."""
    try:
        return Polyhedron(rows, np.ones(len(rows)), check=False).nearest(np.zeros(rows.shape[1])), None
    except InfeasibleError as error:
        return None, np.asarray(error.certificate)
    except ForgettingError:
        return None, None


def _programmed(rows: Array) -> tuple[Array | None, Array | None]:
    """The w with |w_j| <= 1 that maximises the smallest margin t, and the multipliers, a certificate if t is 0."""
    from scipy.optimize import linprog

    n, d = rows.shape
    solution = linprog(
        -np.eye(1, d + 1, d)[0],
        A_ub=np.concatenate([-rows, np.ones((n, 1))], axis=1),
        b_ub=np.zeros(n),
        bounds=[(-1, 1)] * d + [(0, None)],
        options={"maxiter": 100 * (n + d) + 1000},
    )
    if solution.status != 0:
        return None, None
    return solution.x[:d], np.maximum(0.0, -solution.ineqlin.marginals)
