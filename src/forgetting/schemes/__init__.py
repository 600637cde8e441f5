"""Schemes: the ways in which a task is learned."""

from forgetting.core.names import only
from forgetting.schemes.base import Learned, LinearStep, LinearSteps, Scheme, SGDStep, register, registry
from forgetting.schemes.decaying import Decay
from forgetting.schemes.descent import GradientDescent
from forgetting.schemes.linear import NLMS, SGD, FiniteSteps, Kaczmarz, LinearScheme, Ridge
from forgetting.schemes.pocs import POCS
from forgetting.schemes.recursive import RecursiveLeastSquares
from forgetting.schemes.schedules import Scheduled
from forgetting.schemes.weakly_regularized import WeaklyRegularized
from forgetting.tasks.problem import Problem, as_problem

__all__ = [
    "NLMS",
    "POCS",
    "SGD",
    "Decay",
    "FiniteSteps",
    "GradientDescent",
    "Kaczmarz",
    "Learned",
    "LinearScheme",
    "LinearStep",
    "LinearSteps",
    "RecursiveLeastSquares",
    "Ridge",
    "SGDStep",
    "Scheduled",
    "Scheme",
    "WeaklyRegularized",
    "natural_scheme",
    "register",
    "registry",
]
__dir__ = only(__all__)


def natural_scheme(problem: Problem) -> Scheme:
    """The scheme that learns a task to convergence: block Kaczmarz for linear tasks, projection for all others.

    >>> import forgetting as fg
    >>> natural_scheme(fg.families.two_lines(0.5)), natural_scheme(fg.ConvexSets([fg.Ball([0.0], 1.0)]))
    (Kaczmarz(), POCS(warm_start=True))
    """
    linear = as_problem(problem).linear
    return Kaczmarz() if linear is problem else POCS()
