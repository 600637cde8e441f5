"""Independent draws, with any weights: second moments, iterated step by step.

Agaskar, Wang and Lu 2014 have the exact mean squared error of randomised Kaczmarz in this way, its decay rate and the
weights with the smallest one; Wang, Agaskar and Lu 2015 (arXiv 1502.00190) lift systems without a solution.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from forgetting.expectation.engines.base import Cost, Engine, register_engine
from forgetting.expectation.engines.costs import seconds_of_moments
from forgetting.expectation.engines.error_bounds import scaled
from forgetting.expectation.engines.exact import in_two_floats, moment_map, products_of_step, refined, refusal
from forgetting.expectation.engines.moment_map import MomentReading, Moments
from forgetting.expectation.engines.moment_readings import evaluated
from forgetting.expectation.outcome import Outcome
from forgetting.expectation.request import Request
from forgetting.orderings.laws import Independent


@register_engine
class MomentsEngine(Engine):
    """W_k = E[z_k z_k^T] obeys W_(k+1) = Q[W_k]; every k up to the largest comes from one pass."""

    name = "moments"
    on_device = True

    def covers(self, request: Request) -> str | None:
        return refusal(request, Independent)

    def cost(self, request: Request) -> Cost:
        geometry, counted = request.geometry, _counted(request)
        size, total = (geometry.dim + request.constants) * (2 if request.averaged else 1), len(geometry.sigma)
        needed = 8.0 * size * max(size, total) * 4 * (1 + max(counted, 1))
        twofold = in_two_floats(request, _products(request))
        return Cost(needed, seconds_of_moments(request, counted, twofold=twofold))

    def solve(self, request: Request) -> Outcome:
        moments = moment_map(request, twofold=in_two_floats(request, _products(request)))
        values, doubts = evaluated(request, moments, readings(moments, request))
        constants = moments.size // (2 if moments.averaged else 1) - moments.dim
        more = f" and {constants} constants" if constants > 1 else ""
        detail = f"second moments of order {moments.dim}{more}, iterated"
        return refined(request, moments, values, doubts, detail)


def _counted(request: Request) -> int:
    """The number of tasks whose visits are counted: all where a quantity is a mean over visits, else none."""
    return request.geometry.num_learned if request.averages("visited") else 0


def _products(request: Request) -> float:
    """The number of products that iterating takes, roughly."""
    return float(request.last * products_of_step(request) * (1 + _counted(request)))


def readings(moments: Moments, request: Request) -> Iterator[MomentReading]:
    """What is read at each step.

    For averages over visits, c_m(k) counts the visits to m and V_m(k) = E[c_m(k) z_k z_k^T] obeys
    V_m(k+1) = Q[V_m(k)] + p_m S_m W_k S_m^T, whence
    E F(k) = 1/k (sum_m E[c_m(k) L_m(w_k)] - sum_(t<=k) E[loss that the task learned at t kept]).
    """
    chance = moments.probability if request.averages("next") else None
    for state in moments.states(request.steps, visits=request.averages("visited")):
        visits = scaled(moments.probability, np.full(moments.geometry.num_distinct, float(state.steps)))
        yield moments.reading(state, visits, chance)
