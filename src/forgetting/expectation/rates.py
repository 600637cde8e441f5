"""`decay_rate`: how fast the error falls in the long run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.errors import NotSupportedError
from forgetting.expectation.asking import ask
from forgetting.expectation.engines import engines
from forgetting.expectation.engines.counting import states_needed
from forgetting.expectation.engines.digits import refusal
from forgetting.expectation.engines.krylov import OVERFLOW
from forgetting.expectation.engines.moment_map import Moments
from forgetting.expectation.engines.moment_setup import moment_map
from forgetting.expectation.engines.pairs import EPS
from forgetting.expectation.engines.spectral import decay
from forgetting.orderings.base import OrderingLike
from forgetting.orderings.laws import Cycle, Independent, Reshuffled
from forgetting.schemes.base import SchemeLike
from forgetting.tasks import Problem

__all__ = ["decay_rate"]

MOST_SECONDS = 600.0  # for the decay rate of reshuffled epochs
LARGEST = 4000  # the order of a matrix whose eigenvalues take minutes
APPLICATIONS = 300  # of a map that Lanczos takes to find its largest eigenvalue, or more
PART = 2**24  # numbers held at once: 128 MiB


@np.errstate(over="ignore", invalid="ignore")  # what overflows is found, and said
def decay_rate(problem: Problem, ordering: OrderingLike, scheme: SchemeLike | None = None) -> float:
    """The factor by which E|w_k - w*|^2 falls per step in the long run, for a linear scheme.

    Independent draws: the largest eigenvalue of Q on the row space. An order that repeats after T steps has the T-th
    root of what an epoch does, so that |w_(k+T) - w*|^2 is about rate^T |w_k - w*|^2: cyclic orders that of the squared
    spectral radius of S_T ... S_1 (for `Cyclic(order=...)` over its tasks, with their number in place of T), and
    reshuffled epochs that of the largest eigenvalue of A -> E S_pi(T) ... S_pi(1) A S_pi(1) ... S_pi(T) over
    permutations pi, computed over the sets of seen tasks as the method "subsets" does. The rate is 0 where an epoch
    leaves no more than rounding.

    Where no w solves all tasks there is no w* to approach, and the rate is that of E|w_k - v_k|^2 for two runs that
    learn the same tasks from different starts. Expected values then approach their limits (`expect` with k = inf) by
    this factor per step or by the largest eigenvalue of sum_m p_m S_m, which is at most the root of the rate.

    >>> import forgetting as fg
    >>> lines = fg.families.two_lines(np.pi / 3)
    >>> rate = fg.decay_rate(lines, fg.orderings.WithReplacement())
    >>> round(rate, 12)   # (1 + cos^2 theta) / 2
    0.625
    >>> round(fg.decay_rate(lines, fg.orderings.Cyclic()), 12)   # cos^2 theta
    0.25
    """
    request = ask(problem, ordering, 1, scheme).request
    reason = refusal(request, Independent, Cycle, Reshuffled)
    if reason is not None:
        orders = "independent draws, cyclic orders or reshuffled epochs"
        raise NotSupportedError(f"the decay rate is that of {orders} under a linear scheme: {reason}")
    moments, T = moment_map(request, homogeneous=True), problem.num_tasks
    match request.law:
        case Independent():
            return decay(moments)
        case Cycle():
            if moments.size > LARGEST:
                raise NotSupportedError(f"the decay rate of a cyclic order takes D <= {LARGEST}, got {moments.size}")
            tasks = request.law.epoch(T)
            epoch, T = float(np.square(_radius(moments, moments.geometry.index[tasks]))), len(tasks)
        case _:
            needed, seconds = engines.get("subsets").cost(replace(request, steps=np.array([T])))
            order = moments.size * (moments.size + 1) // 2
            if needed > request.memory or seconds * min(order, APPLICATIONS) > MOST_SECONDS:
                states, _ = states_needed(moments.geometry.counts, T)
                raise NotSupportedError(
                    f"the decay rate of reshuffled epochs would go through {states:.3g} sets of tasks"
                )
            epoch = decay(_Epoch(moments))
    if not np.isfinite(epoch):
        raise NotSupportedError(OVERFLOW)
    return 0.0 if epoch <= 64 * T * moments.size * EPS else float(epoch ** (1 / T))


def _radius(moments: Moments, order: IntArray) -> float:
    """The spectral radius of S_T ... S_1, for the distinct tasks 1, ..., T of `order`."""
    product = np.eye(moments.size)
    for task in order.tolist():
        block = moments.geometry.block(task)
        product -= moments.left[0][block].T @ (moments.right[0][block] @ product)
    if not np.isfinite(product).all():
        raise NotSupportedError(OVERFLOW)
    return float(np.max(np.abs(np.linalg.eigvals(product)), initial=0.0))


class _Epoch:
    """What the second moment becomes in an epoch, on average over permutations: a self-adjoint map, as Q is."""

    def __init__(self, moments: Moments) -> None:
        self.moments, self.size, self.device = moments, moments.size, moments.device
        _, widest = states_needed(moments.geometry.counts, moments.geometry.num_tasks)
        self.part = max(1, int(PART / (widest * max(1, self.size) ** 2)))

    def apply(self, matrices: Array) -> Array:
        """The map at one matrix, or at each of several (along the first axis)."""
        if matrices.ndim == 2:
            return self._after(matrices)
        return np.concatenate([self._after(matrices[i : i + self.part]) for i in range(0, len(matrices), self.part)])

    def _after(self, matrices: Array) -> Array:
        counts = self.moments.geometry.counts.tolist()
        layer = {(0,) * len(counts): matrices}
        for size in range(1, sum(counts) + 1):
            grown: dict[tuple[int, ...], Array] = {}
            for seen, before in layer.items():
                for m in (m for m in range(len(counts)) if seen[m] < counts[m]):
                    larger = (*seen[:m], seen[m] + 1, *seen[m + 1 :])
                    after = self.moments.step(m, before) * (larger[m] / size)
                    grown[larger] = grown[larger] + after if larger in grown else after
            layer = grown
        (result,) = layer.values()
        return result
