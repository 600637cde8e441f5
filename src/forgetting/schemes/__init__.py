"""How one task is learned. One class per scheme, one file per idea."""

from forgetting.schemes.base import Learned, Scheme
from forgetting.schemes.descent import GradientDescent
from forgetting.schemes.linear import SGD, FiniteSteps, Kaczmarz, LinearScheme, Ridge
from forgetting.schemes.pocs import POCS
from forgetting.schemes.recursive import RecursiveLeastSquares
from forgetting.schemes.rows import NLMS
from forgetting.schemes.weakly import WeaklyRegularized

__all__ = [
    "NLMS",
    "POCS",
    "SGD",
    "FiniteSteps",
    "GradientDescent",
    "Kaczmarz",
    "Learned",
    "LinearScheme",
    "RecursiveLeastSquares",
    "Ridge",
    "Scheme",
    "WeaklyRegularized",
]
