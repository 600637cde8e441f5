"""Moments on their way, and what is read off them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from forgetting.core.arrays import Array
from forgetting.expectation.engines.pairs import Pair

__all__ = ["Reading", "Squares", "State"]


class Squares(NamedTuple):
    """One number for each of the R directions of all tasks, with a bound on the error of each."""

    value: Pair
    doubt: Array


class Reading(NamedTuple):
    """What every quantity after k steps is made of.

    Attributes:
        k: the number of steps.
        now: E rho_i^2.
        visited: E c_m rho_i^2, with c_m the number of visits to the task m of direction i; None if not counted.
        learnt: the sum over steps t of E rho_i(t - 1)^2 where step t learns the task of direction i.
        coming: E rho_i^2 where the next step learns the task of direction i; None if not needed, or if no task comes.
        visits: E c_m of each distinct task.
        chance: the probability that each distinct task is learned next; None where `coming` is.
        spread: E|z|^2.
        spread_doubt: a bound on its error.
        travelled: the sum of E|z|^2 over the steps.
        summed: E of the square of rho_i summed over the iterates before each step; None if iterates are not summed.
        summed_spread: E|z summed over the iterates before each step|^2, at most.
        kept: for the directions of held-out data, the sum over steps t of E rho_i(t)^2 where step t learned their task.
    """

    k: int
    now: Squares
    visited: Squares | None
    learnt: Squares
    coming: Squares | None
    visits: Pair
    chance: Pair | None
    spread: tuple[float, float]
    spread_doubt: float
    travelled: float
    summed: Squares | None = None
    summed_spread: float = 0.0
    kept: Squares | None = None


@dataclass(eq=False)
class State:
    """Moments on their way: E z z^T, E c_m z z^T where visits are counted, and the bound E on errors of the first."""

    stack: Pair  # (1 + tasks) x n x n
    error: Array
    learnt: Pair
    learnt_doubt: Array
    kept: Squares | None = None
    steps: int = 0
    travelled: float = 0.0
