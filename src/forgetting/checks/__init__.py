"""Conformance checks for your own ordering, scheme, convex set or EWC, to be called in your tests.

A check raises `AssertionError` that names the property that fails and a case that shows the failure.
"""

from forgetting.checks.conformance import check_ordering, check_scheme
from forgetting.checks.ewc import EWCReport, check_ewc
from forgetting.core.names import only
from forgetting.sets.custom import check_convex_set

__all__ = ["EWCReport", "check_convex_set", "check_ewc", "check_ordering", "check_scheme"]
__dir__ = only(__all__)
