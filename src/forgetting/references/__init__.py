"""Values to test other programs against: the state of a delta-rule memory to 31 digits, with bounds on every error."""

from forgetting.core.names import only
from forgetting.references.delta_rule import DeltaRule, Deviation, delta_rule
from forgetting.references.worst_keys import WorstKeys, worst_keys

__all__ = ["DeltaRule", "Deviation", "WorstKeys", "delta_rule", "worst_keys"]
__dir__ = only(__all__)
