"""The worst tasks there are: certified worst cases, and a search for tasks that come close to them."""

from forgetting._names import only
from forgetting.worstcase.api import worst_case
from forgetting.worstcase.dual_certificate import DualCertificate
from forgetting.worstcase.result import WorstCase

__all__ = ["DualCertificate", "WorstCase", "worst_case"]
__dir__ = only(__all__)
