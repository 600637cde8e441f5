"""The worst tasks there are: certified worst cases, a search for tasks with large values, and what is known."""

from forgetting.core.names import only
from forgetting.worstcase.api import worst_case
from forgetting.worstcase.dual_certificate import DualCertificate
from forgetting.worstcase.found import TaskSearch
from forgetting.worstcase.frontier_entry import Entry
from forgetting.worstcase.frontier_improving import Improvement, improve_frontier
from forgetting.worstcase.frontier_table import Frontier, frontier
from forgetting.worstcase.search import adversarial_search
from forgetting.worstcase.worst import WorstCase

__all__ = [
    "DualCertificate",
    "Entry",
    "Frontier",
    "Improvement",
    "TaskSearch",
    "WorstCase",
    "adversarial_search",
    "frontier",
    "improve_frontier",
    "worst_case",
]
__dir__ = only(__all__)
