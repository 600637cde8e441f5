"""The row-action methods, one file each: what one epoch does, and how far x is from what the method converges to."""

from forgetting.solver.methods.base import Distance, Measure, Method, System, registry
from forgetting.solver.methods.kaczmarz import Kaczmarz
from forgetting.solver.methods.multipliers import Multipliers  # isort: split

from forgetting.solver.methods.decomposition import Direct
from forgetting.solver.methods.extended import Extended  # isort: split

from forgetting.solver.methods.averaged import Averaged

__all__ = [
    "Averaged",
    "Direct",
    "Distance",
    "Extended",
    "Kaczmarz",
    "Measure",
    "Method",
    "Multipliers",
    "System",
    "registry",
]
