"""A row-action solver for people with a matrix and a right-hand side."""

from forgetting.core.names import only
from forgetting.solver.guarantee import Guarantee
from forgetting.solver.methods import registry
from forgetting.solver.operators import swept, symmetric_sweeps
from forgetting.solver.solution import History, Solution, SolveState
from forgetting.solver.solving import solve

__all__ = ["Guarantee", "History", "Solution", "SolveState", "registry", "solve", "swept", "symmetric_sweeps"]
__dir__ = only(__all__)
