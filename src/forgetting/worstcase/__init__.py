"""The worst tasks there are: certified worst cases, and a search for tasks with a large expected loss or forgetting."""

from forgetting._names import only
from forgetting.worstcase.api import worst_case
from forgetting.worstcase.dual_certificate import DualCertificate
from forgetting.worstcase.found import TaskSearch
from forgetting.worstcase.search import adversarial_search
from forgetting.worstcase.worst import WorstCase

__all__ = ["DualCertificate", "TaskSearch", "WorstCase", "adversarial_search", "worst_case"]
__dir__ = only(__all__)
