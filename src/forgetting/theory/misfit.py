"""The misfit of tasks without a common solution: the numbers that bounds on such tasks depend on."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from forgetting.core.arrays import EPS, Array, as_kind, as_number, real_array
from forgetting.files.records import add_codec, dataclass_codec
from forgetting.geometry import Geometry

MOST_DIMENSIONS = 2000  # up to which least-squares solutions and eigenvalues take a second


@dataclass(frozen=True, kw_only=True)
class Misfit:
    """The noise of tasks without a common solution. Unknown numbers are None; squares are summed over outputs.

    Of given tasks, all but `floor` are rounded upwards, by as much as rounding errors can make them too small, since
    upper bounds are made of them.

    w_ls is the minimiser of the mean loss L nearest to w_0; w_c is the minimiser of sum_m p_m |X_m^+(X_m w - y_m)|^2
    nearest to w_0, where the mean of a step by projection is 0; c_m(w) = X_m^+(y_m - X_m w) is that step.

    Attributes:
        floor: L(w_ls), the least mean loss of any w.
        smoothness: H, the largest eigenvalue of sum_m X_m^T X_m / T.
        noise: N = sum_m p_m |c_m(w_ls)|^2, for sampling with probabilities p.
        noise_max: the largest |c_m(w_ls)|^2 of a task with p_m > 0.
        centre_loss: L(w_c), to which the loss of the averaged iterates tends.
        centre_slope: |grad L(w_c)|.
        centre_dist_sq: |w_0 - w_c|^2.
        centre_noise: N_c = sum_m p_m |c_m(w_c)|^2.
        sigma: sigma*, the standard deviation of the gradients of SGD at the minimiser of its objective.
        sgd_dist_sq: |w_0 - w*|^2 for the minimiser w* of the objective of SGD nearest to w_0.
        message: which task is not solved, in words.

    >>> import forgetting as fg
    >>> tasks = fg.RegressionTasks([[[1.0]], [[1.0]]], [[1.0], [3.0]])
    >>> misfit = fg.bounds.Setting.of(tasks, ordering="with-replacement").misfit
    >>> round(misfit.floor, 12), round(misfit.noise, 12), round(misfit.centre_loss, 12)  # w = 2 misses both by 1
    (0.5, 1.0, 0.5)
    """

    floor: float | None = None
    smoothness: float | None = None
    noise: float | None = None
    noise_max: float | None = None
    centre_loss: float | None = None
    centre_slope: float | None = None
    centre_dist_sq: float | None = None
    centre_noise: float | None = None
    sigma: float | None = None
    sgd_dist_sq: float | None = None
    message: str = "no w solves all tasks"

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "message" and value is not None:
                object.__setattr__(self, field.name, as_number(value, field.name, least=0))

    @classmethod
    def of(cls, geometry: Geometry, start: Array, p: Array | None, objective: str, message: str) -> Misfit:
        """The numbers of these tasks from the start z_0, in O(R D^2).

        Args:
            geometry: the tasks.
            start: z_0.
            p: the probability of each task under independent draws, None for other orderings.
            objective: of SGD, "loss" or "modified".
            message: which task is not solved.
        """
        as_kind(geometry, Geometry, "the geometry of regression tasks")
        if not 0 < geometry.dim <= MOST_DIMENSIONS:
            return cls(message=message)
        start = real_array(start, "start", shape=geometry.solution.shape)
        p = None if p is None else real_array(p, "p", shape=(geometry.num_tasks,))
        squares = geometry.sigma**2
        shares = squares * geometry.counts[geometry.owner] / geometry.num_tasks
        best = minimiser(geometry, shares, start)
        known = {
            "floor": float(geometry.mean_losses(best)),
            "smoothness": float(np.linalg.eigvalsh(geometry.hessian)[-1]) * (1 + 64 * EPS),
        }
        if p is None:
            return cls(**known, message=message)
        drawn: Array = np.bincount(geometry.index, p, geometry.num_distinct).astype(np.float64)
        chances = drawn[geometry.owner]
        centre = minimiser(geometry, chances, start)
        slope = (shares * geometry.errors(centre)) @ geometry.rows
        weights = squares if objective == "loss" else np.ones_like(squares)
        goal = minimiser(geometry, chances * weights, start)
        best_off, centre_off, goal_off = (
            _misplaced(geometry, given, point, start)
            for given, point in ((shares, best), (chances, centre), (chances * weights, goal))
        )

        def lengths(point: Array, off: float) -> Array:
            """An upper bound on |c_m| for each distinct task."""
            return np.asarray(np.sqrt(geometry.per_task(geometry.squared(point))) * (1 + 64 * EPS) + off)

        steps, away = lengths(best, best_off), lengths(centre, centre_off)
        steep, smooth = float(np.max(weights[chances > 0], initial=0.0)), known["smoothness"]
        pulls = geometry.per_task(weights**2 * geometry.squared(goal)) ** 0.5 * (1 + 64 * EPS) + steep * goal_off
        known |= {
            "noise": float(drawn @ steps**2),
            "noise_max": float(np.max(steps[drawn > 0] ** 2, initial=0.0)),
            "centre_loss": _raised(2 * float(geometry.mean_losses(centre)), smooth**0.5 * centre_off) / 2,
            "centre_slope": float(np.linalg.norm(slope)) * (1 + 64 * EPS) + smooth * centre_off,
            "centre_dist_sq": _raised(float(np.sum((start - centre) ** 2)), centre_off),
            "centre_noise": float(drawn @ away**2),
            "sigma": float(np.sqrt(drawn @ pulls**2)),
            "sgd_dist_sq": _raised(float(np.sum((start - goal) ** 2)), goal_off),
        }
        return cls(**known, message=message)


def _raised(square: float, off: float) -> float:
    """The square of a number that is too small by at most `off`, and by rounding."""
    return float((np.sqrt(square) * (1 + 64 * EPS) + off) ** 2)


def _misplaced(geometry: Geometry, weights: Array, point: Array, start: Array) -> float:
    """An upper bound on the error of a `minimiser`, to first order (Wedin 1973)."""
    scales = np.sqrt(weights)
    spectrum = np.linalg.svd(scales[:, None] * geometry.rows, compute_uv=False)
    spectrum = spectrum[spectrum > max(geometry.rows.shape) * EPS * spectrum[0]]
    if not spectrum.size:
        return 0.0
    unit = 4 * (float(np.max(geometry.turned, initial=0.0)) + (8 + float(np.sqrt(geometry.rows.size))) * EPS)
    size = float(np.linalg.norm(point - start) + np.linalg.norm(point) + np.linalg.norm(geometry.solution))
    missed = float(np.linalg.norm(scales * geometry.errors(point)))
    return unit * float(spectrum[0] / spectrum[-1]) * (size + missed / float(spectrum[-1]))


def minimiser(geometry: Geometry, weights: Array, start: Array) -> Array:
    """The z nearest to `start` that minimises sum_i weights_i (u_i.z - c_i)^2 over the directions i.

    >>> import forgetting as fg
    >>> geometry = fg.RegressionTasks([[[1.0]], [[1.0]]], [[1.0], [3.0]]).geometry
    >>> (minimiser(geometry, np.array([3.0, 1.0]), np.zeros(1)) + geometry.solution).round(12)
    array([1.5])
    """
    scales = np.sqrt(weights)
    missed = -scales * geometry.errors(start)
    return start + np.asarray(np.linalg.lstsq(scales[:, None] * geometry.rows, missed.T, rcond=None)[0].T)


add_codec(dataclass_codec(Misfit, "misfit"))
