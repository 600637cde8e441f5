"""Orderings of tasks. Each class states its law; exact engines and bounds read the law."""

from forgetting.core.names import only
from forgetting.orderings import laws
from forgetting.orderings.base import Ordering, Visits, register, registry
from forgetting.orderings.fixed_and_drawn import (
    Cyclic,
    Explicit,
    NonRepetitive,
    NormWeighted,
    Reshuffled,
    WithoutReplacement,
    WithReplacement,
)
from forgetting.orderings.greedy_and_adaptive import (
    GreedyDistance,
    GreedyResidual,
    GreedyThenRandom,
    Quantile,
    RelaxedGreedy,
    Steinerberger,
)
from forgetting.orderings.similarity_and_angles import DissimilarNeighbours, HermanMeyer, PeripheryFirst
from forgetting.orderings.view import TaskView

__all__ = [
    "Cyclic",
    "DissimilarNeighbours",
    "Explicit",
    "GreedyDistance",
    "GreedyResidual",
    "GreedyThenRandom",
    "HermanMeyer",
    "NonRepetitive",
    "NormWeighted",
    "Ordering",
    "PeripheryFirst",
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
