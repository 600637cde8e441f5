"""Expectations over orderings: exact by moments, spectrum or subsets, simulated where exactness does not fit."""

from forgetting.core.names import only
from forgetting.expectation.api import compare, expect
from forgetting.expectation.decay import decay_rate
from forgetting.expectation.engines import Cost, Engine, engines, register_engine
from forgetting.expectation.intervals import Quantile
from forgetting.expectation.outcome import Expectation, Outcome
from forgetting.expectation.quantities import (
    HALF_SQUARED_DISTANCE,
    LOSS,
    Form,
    Quantity,
    Term,
    quantities,
    register_quantity,
)
from forgetting.expectation.request import Request
from forgetting.expectation.schedules import OptimalSchedule, optimal_schedule
from forgetting.expectation.weights import OptimalWeights, optimal_weights

__all__ = [
    "HALF_SQUARED_DISTANCE",
    "LOSS",
    "Cost",
    "Engine",
    "Expectation",
    "Form",
    "OptimalSchedule",
    "OptimalWeights",
    "Outcome",
    "Quantile",
    "Quantity",
    "Request",
    "Term",
    "compare",
    "decay_rate",
    "engines",
    "expect",
    "optimal_schedule",
    "optimal_weights",
    "quantities",
    "register_engine",
    "register_quantity",
]
__dir__ = only(__all__)
