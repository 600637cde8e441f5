"""Equiangular tasks: T lines with one angle between all of them, and their expected loss in closed form."""

from __future__ import annotations

import math

import numpy as np

from forgetting.core.arrays import as_count, as_number
from forgetting.tasks.regression import RegressionTasks

__all__ = ["equiangular_loss", "equiangular_tasks", "worst_equiangular"]


def equiangular_tasks(T: int, share: float) -> RegressionTasks:
    """T tasks of one row, x_m = sqrt(share) w* + sqrt(1 - share) v_m, with v_m the corners of a simplex.

    The v_m are unit vectors orthogonal to w* with <v_m, v_n> = -1/(T - 1), so that all angles between tasks are equal.

    >>> tasks = equiangular_tasks(3, 0.25)
    >>> rows = np.vstack([tasks.task(m)[0] for m in range(3)])
    >>> (rows @ rows.T).round(3).tolist()
    [[1.0, -0.125, -0.125], [-0.125, 1.0, -0.125], [-0.125, -0.125, 1.0]]
    """
    T, share = as_count(T, "T", least=2), as_number(share, "share", above=0)
    rows = math.sqrt((1 - share) * T / (T - 1)) * (np.eye(T) - 1 / T) + math.sqrt(share / T)
    rows /= np.linalg.norm(rows[0])
    w = np.full(T, T**-0.5)
    return RegressionTasks(list(rows[:, None, :]), list((rows @ w)[:, None]))


def equiangular_loss(T: int, share: float, k: int) -> float:
    """E L(w_k) of `equiangular_tasks` with replacement.

    Q commutes with permutations of the tasks, and so does B_0 = mean of x_m x_m' / 2: both are combinations of the
    projection onto w* (dimension 1) and onto the other directions (dimension T - 1). With q = 1 - share, r_0 = share
    and r_1 = q / (T - 1), Q maps coefficients (b, a) to ((1 - 2 r_0) b + r_0 s, (1 - 2 r_1) a + r_1 s), where
    s = share b + q a, from (r_0, r_1) / 2. The loss is b after k steps. Cost: log2(k) products of 2 x 2 matrices.

    >>> from forgetting.tasks.worst_pairs import two_lines_loss
    >>> pair = two_lines_loss(5)
    >>> abs(equiangular_loss(2, (1 - pair.cosine) / 2, 5) / pair.value - 1) < 1e-12
    True
    """
    p = np.array([share, 1 - share])
    r = p / np.array([1, T - 1])
    Q = np.diag(1 - 2 * r) + np.outer(r, p)
    return float((np.linalg.matrix_power(Q, k) @ r)[0] / 2)


def worst_equiangular(T: int, k: int) -> tuple[float, float]:
    """The largest E L(w_k) of T equiangular tasks, and the share of w* in each task at which it is reached.

    At T of about 0.407 k, k times this tends to 0.21754, more than 1/(2e) = 0.18394 of two tasks.

    >>> round(1000 * worst_equiangular(408, 1000)[0], 4)
    0.2174
    """
    low, high = math.log(1e-3 / k), math.log(0.75)
    for _ in range(120):
        third = (high - low) / 3
        left, right = (equiangular_loss(T, math.exp(low + step * third), k) for step in (1, 2))
        low, high = (low + third, high) if left < right else (low, high - third)
    share = math.exp((low + high) / 2)
    return equiangular_loss(T, share, k), share
