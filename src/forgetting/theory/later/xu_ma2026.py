"""Xu and Ma 2026: forgetting of independent draws as an identity between operators.

The abstract (arXiv 2604.13460) names an exact identity with a recursive structure. It is written out here, with
Q[A] = sum_m p_m P_m A P_m: the loss of task m, learned in step t, is |X_m P ... P P_m P ... P z_0|^2 / 2, so that
E F(k) = <z_0, R_k z_0> / (2k) with R_0 = 0 and R_(n+1) = Q[R_n] + sum_m p_m P_m Q^n[X_m' X_m] P_m.
"""

from __future__ import annotations

import numpy as np

from forgetting.theory.checking import ROUNDING, all_of, covers, paths, projection, regression, small, steps
from forgetting.theory.claim import declare_claim
from forgetting.theory.definition import equations
from forgetting.theory.draws import projected
from forgetting.theory.expectations import Expected, distinct, probabilities
from forgetting.theory.instance import Instance
from forgetting.theory.verdict import Sides

MOST_STEPS = 60


def _few(instance: Instance) -> str | None:
    return None if instance.k <= MOST_STEPS else f"is checked for k <= {MOST_STEPS}"


def _identity(instance: Instance, numbers: Expected) -> Sides:
    tasks, k = instance.tasks, instance.k
    weights = np.bincount(tasks.geometry.index, probabilities(instance))
    matrices = [equations(tasks, task)[0] for task in distinct(tasks)]
    complements = [np.eye(tasks.dim) - np.linalg.pinv(X, rcond=1e-12) @ X for X in matrices]
    losses = np.array([X.T @ X for X in matrices])
    seen = np.zeros((tasks.dim, tasks.dim))
    for _ in range(k):
        seen = sum(p * P @ (seen + G) @ P for p, P, G in zip(weights, complements, losses, strict=True))
        losses = sum(p * P @ losses @ P for p, P in zip(weights, complements, strict=True))
    z = instance.start - tasks.w_star
    scale = float(tasks.radius**2 * z @ z)
    return Sides(numbers.forgetting(k), z @ seen @ z / (2 * k), numbers.doubt + ROUNDING * scale, scale, numbers.how)


declare_claim(
    label="xu-ma2026",
    statement="E F(k) = <z_0, R_k z_0> / (2k), R_(n+1) = Q[R_n] + sum_m p_m P_m Q^n[X_m' X_m] P_m, independent draws",
    draw=projected(ordering="any", most=MOST_STEPS),
    source="Xu and Ma 2026, abstract (xu-ma2026)",
    status="second-hand",
    note="The abstract names the identity; the formula is written out here.",
    title="forgetting as an identity between operators",
    kind="equality",
    missing=all_of(regression, covers("i.i.d."), projection, small(6), steps(1), _few),
)(paths(_identity).sides)
