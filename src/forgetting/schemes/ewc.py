"""Elastic weight consolidation: a task is learned with a penalty on changes that earlier tasks would feel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_dense, as_flag, as_number, is_sparse
from forgetting.core.numerical import rank_tolerance
from forgetting.errors import NotSupportedError
from forgetting.geometry import Geometry
from forgetting.geometry.qr import Matrix
from forgetting.schemes.affine import AffineStep, Penalised, own_rows, penalised_step
from forgetting.schemes.base import Learned, MemoryLaw, Scheme, register
from forgetting.tasks.problem import Problem

__all__ = ["EWC"]

Seen = tuple[float, ...]


@register
@dataclass(frozen=True)
class EWC(Scheme):
    """Online elastic weight consolidation: w_t = argmin_w L_m(w) + strength/2 (w - w_(t-1))^T F_(t-1) (w - w_(t-1)).

    F is the Fisher information of the tasks seen, as a Gaussian model of the labels has it: F_0 = 0 and
    F_t = gamma F_(t-1) + X_m^T X_m, with X_m^T X_m / n_m where losses are means over rows. So the first task is learned
    exactly. Of several minimisers the one nearest to w_(t-1) is taken. With `diagonal=True`, F is the diagonal of
    X_m^T X_m in the coordinates of w, as implementations for networks have it. The empirical Fisher information, which
    is made of gradients at w_t, is 0 wherever the task was solved, and then no penalty is left.

    With strength 1 and gamma 1, w_t is the minimiser of L_tau(1) + ... + L_tau(t) that is nearest to w_0: joint
    training on the visits so far, for any labels and any order, whether or not minimisers are unique. Proof: if w_(t-1)
    minimises the sum J of the earlier losses, then J is J(w_(t-1)) plus the penalty, so that w_t minimises the sum of
    all; and w_t - w_0 stays in the joint row space of the tasks seen, in which minimisers are unique. A task that is
    visited twice counts twice. `diagonal=True` has the same w_t where all X_m^T X_m are diagonal, and in
    general another one elsewhere, even where the X_m^T X_m have a common eigenbasis.

    Exact expectations follow the visits to each task (gamma = 1) or the orders themselves (gamma < 1); with
    `diagonal=True` on up to 1000 columns. A step costs O(R D^2) for R rows and D dimensions of the tasks seen, or
    O(n^2 d) for a task of n rows with `diagonal=True`.

    Kirkpatrick et al., 2017 (a penalty with a centre of its own for each earlier task); Huszar, 2018, and Schwarz et
    al., 2018 (one penalty around the last solution, as here).

    >>> import forgetting as fg
    >>> tasks = fg.RegressionTasks([[[1.0, 0.0]], [[0.0, 1.0], [1.0, 1.0]]], [[1.0], [2.0, 1.0]])   # no common solution
    >>> run = fg.run(tasks, [0, 1], k=2, scheme=EWC())
    >>> rows, labels = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([1.0, 2.0, 1.0])
    >>> run.iterates[-1].round(6), np.linalg.lstsq(rows, labels)[0].round(6)
    (array([0.333333, 1.333333]), array([0.333333, 1.333333]))
    """

    strength: float = 1.0
    gamma: float = 1.0
    diagonal: bool = False
    all_outputs = True
    random = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", as_number(self.strength, "EWC: strength", above=0))
        object.__setattr__(self, "gamma", as_number(self.gamma, "EWC: gamma", least=0, most=1))
        as_flag(self.diagonal, "EWC: diagonal")

    @property
    def intrinsic(self) -> bool:  # type: ignore[override]
        """Whether the step is the same in all coordinates: not with the diagonal of F."""
        return not self.diagonal

    @property
    def nonexpansive(self) -> bool:
        return (self.strength, self.gamma, self.diagonal) == (1, 1, False)

    @property
    def memory_law(self) -> MemoryLaw:
        return "multiset" if self.gamma == 1 else "order"

    # ------------------------------------------------------------------------------------- in coordinates of a geometry

    def remember(self, geometry: Geometry, seen: Any, task: int) -> Seen:
        """The weight of X_m^T X_m in F, for each distinct task m."""
        weights = self.gamma * np.array(seen or np.zeros(geometry.num_learned))
        weights[geometry.index[task]] += 1
        return tuple(weights.tolist())

    def affine_step(self, geometry: Geometry, task: int, seen: Any) -> AffineStep | None:
        frame = geometry.frame
        if self.diagonal and (frame.basis is not None or frame.dual_basis is not None):
            return None  # coordinates are not those of w
        return penalised_step(geometry, own_rows(geometry, task), self._penalty(geometry, seen))

    def _penalty(self, geometry: Geometry, seen: Any) -> Array:
        """Rows L with L^T L = strength F."""
        weights = np.array(seen or np.zeros(geometry.num_learned))
        roots = np.sqrt(self.strength * weights)[geometry.owner[: geometry.rows_learned]]
        roots = roots * geometry.sigma[: geometry.rows_learned]
        rows = roots[roots > 0, None] * geometry.rows[: geometry.rows_learned][roots > 0]
        return np.diag(np.sqrt(np.sum(rows**2, axis=0))) if self.diagonal else np.asarray(rows)

    # -------------------------------------------------------------------------------------------------------- in a run

    def start(self, problem: Problem, w0: Array, rng: np.random.Generator) -> list[Any]:
        """What `remember` gives; with `diagonal=True` the diagonal of F."""
        if not self.diagonal:
            return [()]
        if problem.linear is not problem or problem.linear.data is None:
            raise NotSupportedError(
                f"{self} is a scheme for regression tasks given by their rows, not for {type(problem).__name__}: it "
                "needs the coordinates of w"
            )
        return [np.zeros(problem.dim)]

    def learn(self, problem: Problem, task: int, w: Array, memory: list[Any]) -> Learned:
        if self.diagonal:
            return self._learn_in_coordinates(problem, task, w, memory)
        geometry = cast(Geometry, problem)  # of an intrinsic scheme
        rows, labels = own_rows(geometry, task)
        solver = Penalised.of(geometry, rows, self._penalty(geometry, memory[0]))
        missed = labels - rows @ np.atleast_2d(w).T
        memory[0] = self.remember(geometry, memory[0], task)
        return Learned(w + solver.change(missed).T.reshape(w.shape))

    def _learn_in_coordinates(self, problem: Problem, task: int, w: Array, memory: list[Any]) -> Learned:
        """The step in the coordinates of w, of which only those where the task has entries move."""
        assert problem.linear is not None
        assert problem.linear.data is not None
        X, y = problem.linear.data.equations(task)
        columns = _filled(X)
        X = as_dense(X[:, columns])
        point, fisher = w.copy(), memory[0]
        point[columns] += _diagonal_change(X, y - X @ w[columns], self.strength * fisher[columns])
        memory[0] = self.gamma * fisher
        memory[0][columns] += np.sum(X**2, axis=0)
        return Learned(point)


def _filled(matrix: Matrix) -> IntArray:
    """The columns with an entry that is not 0."""
    if is_sparse(matrix):
        return np.unique(matrix.indices[matrix.data != 0])
    return np.flatnonzero(matrix.any(axis=0))


def _diagonal_change(X: Array, missed: Array, penalty: Array) -> Array:
    """The change d of least norm that minimises |X d - missed|^2 + sum_j penalty_j d_j^2."""
    free, bound = np.flatnonzero(penalty == 0), np.flatnonzero(penalty)
    change = np.zeros((X.shape[1], *missed.shape[1:]))
    rest, left = X[:, bound], missed
    if free.size:  # what the free entries fit costs nothing
        outer, size, inner = np.linalg.svd(X[:, free], full_matrices=False)
        rank = int(np.count_nonzero(size > rank_tolerance(X.shape) * size[0]))
        outer, size, inner = outer[:, :rank], size[:rank], inner[:rank]
        rest, left = rest - outer @ (outer.T @ rest), missed - outer @ (outer.T @ missed)
    if bound.size:
        roots = np.sqrt(penalty[bound])
        scaled = rest / roots  # d = scaled^T (I + scaled scaled^T)^-1 left, by the singular values of scaled
        first, sizes, second = np.linalg.svd(scaled, full_matrices=False)
        shares = (sizes / (1 + sizes**2)).reshape(-1, *(1 for _ in missed.shape[1:]))
        change[bound] = ((second.T @ (shares * (first.T @ left))).T / roots).T
    if free.size:
        wanted = outer.T @ (missed - X[:, bound] @ change[bound])
        change[free] = inner.T @ (wanted.T / size).T
    return change
