"""The worst tasks there are: certified worst cases, a search for tasks with large values, and what is known."""

from forgetting.core.names import only
from forgetting.worstcase.dual_certificate import DualCertificate
from forgetting.worstcase.frontier_entry import Entry
from forgetting.worstcase.frontier_improving import Improvement, improve_frontier
from forgetting.worstcase.frontier_table import Frontier, frontier
from forgetting.worstcase.search import TaskSearch, adversarial_search
from forgetting.worstcase.supremum import WorstCase, worst_case

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
