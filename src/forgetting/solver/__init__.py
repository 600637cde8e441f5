"""A row-action solver for people with a matrix and a right-hand side."""

from forgetting.solver.api import solve
from forgetting.solver.solution import History, Solution

__all__ = ["History", "Solution", "solve"]
