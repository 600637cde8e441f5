"""Expectations over orderings: exact by moments, spectrum or subsets, simulated where exactness does not fit."""

from forgetting.expectation.api import decay_rate, expect
from forgetting.expectation.comparison import compare
from forgetting.expectation.result import Expectation

__all__ = ["Expectation", "compare", "decay_rate", "expect"]
