"""A row-action solver for people with a matrix and a right-hand side."""

from forgetting._names import only
from forgetting.solver.api import solve
from forgetting.solver.operators import swept, symmetric_sweeps
from forgetting.solver.solution import History, Solution

__all__ = ["History", "Solution", "solve", "swept", "symmetric_sweeps"]
__dir__ = only(__all__)
