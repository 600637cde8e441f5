"""The worst tasks there are: an adversarial search for tasks with a large expected loss or forgetting."""

from forgetting._names import only
from forgetting.worstcase.result import TaskSearch
from forgetting.worstcase.search import adversarial_search

__all__ = ["TaskSearch", "adversarial_search"]
__dir__ = only(__all__)
