"""The noise of tasks that no w solves from their rows and labels alone: a second road to `Misfit`.

Least-squares solutions, pseudo-inverses and eigenvalues of dense matrices; nothing of the geometry is used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forgetting.core.arrays import Array
from forgetting.orderings.laws import Independent
from forgetting.theory.definition import equations, law_of
from forgetting.theory.expectations import distinct, probabilities, row_space
from forgetting.theory.instance import Instance
from forgetting.theory.misfit import Misfit
from forgetting.theory.setting import Setting

__all__ = ["RawNoise", "raw_noise"]


@dataclass(frozen=True)
class RawNoise:
    """The setting of an instance, the minimiser of its loss nearest to w_0, and the size of its numbers.

    Attributes:
        setting: dist_sq, spectral_gap and misfit, with T and the largest rank.
        best: the minimiser of the mean loss nearest to w_0.
    """

    setting: Setting
    best: Array


def raw_noise(instance: Instance) -> RawNoise:
    """Everything that the bounds on noise need, from the data.

    >>> import forgetting as fg
    >>> tasks = fg.RegressionTasks([[[1.0]], [[1.0]]], [[1.0], [3.0]])
    >>> found = raw_noise(Instance(tasks, fg.orderings.WithReplacement(), k=1))
    >>> found.best.round(12), round(found.setting.misfit.floor, 12), round(found.setting.misfit.noise, 12)
    (array([2.]), 0.5, 1.0)
    """
    tasks, start = instance.tasks, instance.start
    blocks = [equations(tasks, m) for m in distinct(tasks)]
    index, shares = tasks.geometry.index, tasks.geometry.counts / tasks.num_tasks
    frame = row_space([matrix for matrix, _ in blocks])
    reduced = [(matrix @ frame.T, label - matrix @ start) for matrix, label in blocks]  # of w - w_0, in the row space
    best = _least(reduced, shares)
    hessian = sum(share * X.T @ X for share, (X, _) in zip(shares, reduced, strict=True))

    def loss(v: Array) -> float:
        return float(sum(share * np.sum((X @ v - y) ** 2) / 2 for share, (X, y) in zip(shares, reduced, strict=True)))

    steepest = float(np.linalg.eigvalsh(hessian)[-1]) if len(frame) else 0.0  # 0 where all rows are zero
    known: dict[str, float] = {"floor": loss(best), "smoothness": steepest}
    gap = None
    if isinstance(law_of(instance), Independent):
        p: Array = np.bincount(index, probabilities(instance), len(blocks)).astype(np.float64)
        inverses = [np.linalg.pinv(X, rcond=1e-12) for X, _ in reduced]
        onto = [inverse @ X for inverse, (X, _) in zip(inverses, reduced, strict=True)]
        mixed = sum(q * P for q, P in zip(p, onto, strict=True))
        gap = float(np.linalg.eigvalsh(mixed)[0]) if len(frame) else None

        def steps(v: Array) -> Array:
            there = [inverse @ (y - X @ v) for inverse, (X, y) in zip(inverses, reduced, strict=True)]
            return np.array([move @ move for move in there])

        moves = [inverse @ y for inverse, (_, y) in zip(inverses, reduced, strict=True)]
        centre = _least(list(zip(onto, moves, strict=True)), p)
        slope = sum(share * X.T @ (X @ centre - y) for share, (X, y) in zip(shares, reduced, strict=True))
        known |= {
            "noise": float(p @ steps(best)),
            "noise_max": float(np.max(steps(best)[p > 0])),
            "centre_loss": loss(centre),
            "centre_slope": float(np.linalg.norm(slope)),
            "centre_dist_sq": float(centre @ centre),
            "centre_noise": float(p @ steps(centre)),
        }
    setting = Setting(
        T=tasks.num_tasks,
        rank_max=max(int(np.linalg.matrix_rank(X)) for X, _ in reduced),
        dist_sq=float(best @ best),
        spectral_gap=None if gap is None else float(np.clip(gap, 0.0, 1.0)),
        misfit=Misfit(**known, message="no w solves all tasks"),
    )
    return RawNoise(setting, start + best @ frame)


def _least(blocks: list[tuple[Array, Array]], weights: Array) -> Array:
    """The v of least norm that minimises sum_m weights_m |X_m v - y_m|^2."""
    matrices = [np.sqrt(weight) * X for weight, (X, _) in zip(weights, blocks, strict=True)]
    labels = [np.sqrt(weight) * y for weight, (_, y) in zip(weights, blocks, strict=True)]
    return np.asarray(np.linalg.lstsq(np.concatenate(matrices), np.concatenate(labels), rcond=None)[0])
