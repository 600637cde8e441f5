"""Problems: T tasks, each with a loss, a distance and a projection onto its solutions."""

from forgetting.core.names import only
from forgetting.tasks import families
from forgetting.tasks.classification import ClassificationTasks, Separability, one_versus_rest
from forgetting.tasks.convex import ConvexSets
from forgetting.tasks.kernel import KernelTasks
from forgetting.tasks.linear_tasks import LinearTasks, Realizability
from forgetting.tasks.preparation import Preparation, RandomFeatures, prepare
from forgetting.tasks.problem import Problem
from forgetting.tasks.regression import RegressionTasks

__all__ = [
    "ClassificationTasks",
    "ConvexSets",
    "KernelTasks",
    "LinearTasks",
    "Preparation",
    "Problem",
    "RandomFeatures",
    "Realizability",
    "RegressionTasks",
    "Separability",
    "families",
    "one_versus_rest",
    "prepare",
]
__dir__ = only(__all__)
