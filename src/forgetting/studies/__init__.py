"""Many problems: cells, a store that survives kills, and execution through joblib, on one machine or on many."""

from forgetting.core.names import only
from forgetting.studies.functions import register
from forgetting.studies.measuring import measure
from forgetting.studies.study import Status, Study

__all__ = ["Status", "Study", "measure", "register"]
__dir__ = only(__all__)
