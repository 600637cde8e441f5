"""Who comes next: orderings of tasks. Each class states its law; exact engines and bounds read the law."""

from forgetting.core.names import only
from forgetting.orderings import laws
from forgetting.orderings.base import Ordering, Visits, register, registry
from forgetting.orderings.drawn import NonRepetitive, NormWeighted, Reshuffled, WithoutReplacement, WithReplacement
from forgetting.orderings.given import Cyclic, Explicit
from forgetting.orderings.greedy import GreedyDistance, GreedyResidual
from forgetting.orderings.robust import Quantile
from forgetting.orderings.view import TaskView
from forgetting.orderings.weighted import RelaxedGreedy, Steinerberger

__all__ = [
    "Cyclic",
    "Explicit",
    "GreedyDistance",
    "GreedyResidual",
    "NonRepetitive",
    "NormWeighted",
    "Ordering",
    "Quantile",
    "RelaxedGreedy",
    "Reshuffled",
    "Steinerberger",
    "TaskView",
    "Visits",
    "WithReplacement",
    "WithoutReplacement",
    "laws",
    "register",
    "registry",
]
__dir__ = only(__all__)
