"""The row-action methods: what one epoch does, and how far x is from what the method converges to.

Methods are registered as they are imported: "kaczmarz" first, then those of `least_squares`, `krylov`,
`limited`, `projected` and `simultaneous`.
"""

from forgetting.solver.methods.base import Accuracy, Distance, Method, System, register, registry
from forgetting.solver.methods.kaczmarz import KaczmarzMethod
from forgetting.solver.methods.krylov import Cgls, Cgmn
from forgetting.solver.methods.least_squares import Averaged, DirectMethod, Extended, Multipliers
from forgetting.solver.methods.limited import ActiveSet
from forgetting.solver.methods.projected import Projected
from forgetting.solver.methods.simultaneous import Sart, Sirt

__all__ = [
    "Accuracy",
    "ActiveSet",
    "Averaged",
    "Cgls",
    "Cgmn",
    "DirectMethod",
    "Distance",
    "Extended",
    "KaczmarzMethod",
    "Method",
    "Multipliers",
    "Projected",
    "Sart",
    "Sirt",
    "System",
    "register",
    "registry",
]
