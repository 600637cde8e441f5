"""Expectations under independent draws (any weights), by iterating the moment map: every k in one pass."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from forgetting._arrays import Array, IntArray
from forgetting.expectation.moments import Moments
from forgetting.expectation.progress import track

__all__ = ["iterate"]


def iterate(moments: Moments, z0: Array, steps: IntArray, quantities: Iterable[str]) -> dict[str, Array]:
    """Expected quantities at the given steps (sorted).

    W_k = E[z_k z_k^T] obeys W_(k+1) = Q[W_k]. For forgetting, c_m(k) counts the visits to m and
    S_m(k) = E[c_m(k) z_k z_k^T] obeys S_m(k+1) = Q[S_m(k)] + p_m S_m W_k S_m, whence
    E F(k) = 1/k (sum_m E[c_m(k) L_m(w_k)] - sum_(t<=k) E[loss that the task learned at t kept]).
    """
    wanted = set(quantities)
    geometry = moments.geometry
    share = geometry.counts / geometry.num_tasks
    p = moments.probability
    result: dict[str, list[Array | float]] = {name: [] for name in wanted}
    second = moments.start(z0)[:, None]
    visited = np.zeros((moments.size, geometry.num_distinct, moments.size)) if "forgetting" in wanted else None
    at_visited = np.zeros((geometry.num_distinct, len(geometry.sigma)))
    kept = float(z0 @ z0)
    regret = learned = 0.0
    position = 0
    last = int(steps[-1])
    for k in track(range(last + 1), "moments"):
        if k < last:
            following, (quadratic,) = moments.advance(second)
        else:
            quadratic = moments.quadratic(second[:, 0])
        if visited is not None and k == last:
            at_visited = moments.quadratic(np.swapaxes(visited, 0, 1))
        elif visited is not None:
            visited, at_visited = moments.advance(visited)
            moments.add_steps(second[:, 0], visited)
        while position < len(steps) and steps[position] == k:
            position += 1
            losses = moments.losses(quadratic)
            if "loss" in wanted:
                result["loss"].append(float(losses @ share))
            if "task_losses" in wanted:
                result["task_losses"].append(losses[geometry.index])
            if "error" in wanted:
                result["error"].append(max(0.0, kept if moments.dual else float(np.trace(second[:, 0]))))
            if "regret" in wanted:
                result["regret"].append(regret / k if k else np.nan)
            if "forgetting" in wanted:
                total = float(np.trace(moments.losses(at_visited)))
                result["forgetting"].append((total - learned) / k if k else np.nan)
        if k < last:
            second = following
            if "regret" in wanted:
                regret += float(moments.losses(quadratic) @ p)
            if "forgetting" in wanted:
                learned += float(moments.learned(quadratic) @ p)
            if "error" in wanted:
                kept -= float(moments.shrinkage(quadratic) @ p)
    return {name: np.array(values) for name, values in result.items()}
