"""Estimates of the seconds that engines take: `auto` compares them with each other and with `patience`.

All constants are seconds, measured on one core of a server; docs/choosing.md compares estimates with measured times. No
value depends on them, and no estimate depends on the machine, so that `auto` chooses the same method everywhere.
"""

from __future__ import annotations

import numpy as np

from forgetting.core.arrays import IntArray
from forgetting.expectation.request import Request
from forgetting.orderings.laws import Reshuffled

FLOPS = 3e10  # floating-point operations a second, in large matrix products
SCHEDULED = 2e-5  # to make a step that differs from the others: its scheme and its gains
READING = 4e-4  # quantities at one k, beside half a step


def reduction(request: Request) -> float:
    """Seconds for bases with 31 digits, from which all exact engines start where that takes about a second at most."""
    products = request.geometry.refinement
    return 5e-9 * products if products < 2e8 else 0.0


def seconds_of_run(request: Request) -> float:
    """Seconds for one run in float64 and its quantities; a guess where a solver or code of users makes the steps.

    An ordering that looks at the iterate, and a quantity that needs every iterate, look at all tasks in every step.
    """
    adaptive, readings = request.ordering.adaptive, len(request.steps)
    taken = 1.5e-4 + 4e-5 * readings + 2e-8 * readings * request.last
    if request.linear is None:
        return taken + request.last * (3e-5 + adaptive * (2e-5 + 4e-6 * request.problem.num_tasks))
    step = seconds_of_step(request) + 2.5e-5 * adaptive + scheduling(request)
    if adaptive or request.every_iterate:
        geometry = request.geometry
        step += 1e-6 + 1.5e-10 * len(geometry.sigma) * geometry.dim * (geometry.outputs or 1)
    return taken + request.last * step


def scheduling(request: Request) -> float:
    """Seconds to make one step of a schedule; 0 where all steps are alike."""
    return 0.0 if request.linear is None or request.linear.alike else SCHEDULED


def seconds_of_step(request: Request) -> float:
    """Seconds for one step of a linear scheme in the compiled loops, with the losses before and after it."""
    geometry = request.geometry
    rank = len(geometry.sigma) / max(1, geometry.num_distinct)
    return (5e-8 + 2.5e-10 * rank * geometry.dim) * (geometry.outputs or 1)


def _product_step(request: Request, matrices: float, size: int) -> float:
    """Seconds for one step of Q by matrix products, for a stack of matrices of this order.

    In few dimensions the products are thin, and passes over one row of numbers for each matrix and basis vector decide.
    """
    rows = len(request.geometry.sigma)
    return float(matrices * (size**2 * (4 * rows / FLOPS + 5e-9) + 6e-9 * rows * size))


def _order(request: Request) -> float:
    """D (D + 1) / 2, the number of entries of a symmetric matrix on which Q acts."""
    return request.geometry.dim * (request.geometry.dim + 1) / 2


def seconds_of_moments(request: Request, counted: int, *, twofold: bool) -> float:
    """Seconds for second moments, iterated to the largest k, with `counted` more matrices for visits to each task."""
    geometry, averaged = request.geometry, request.averaged
    rows, dim = len(geometry.sigma), geometry.dim + request.constants
    size = 2 * dim if averaged else dim
    if twofold:  # the moments and their errors; where iterates are summed, half of each row is zero and left out
        step = 4e-6 + 8e-5 * averaged + (1 + counted) * rows * size * (3e-9 * dim + 2e-8) + 1.2e-9 * rows * size**2
    else:
        step = 6e-5 + 5e-5 * averaged + _product_step(request, 2 + counted, size)
    readings = len(request.steps)
    step += scheduling(request)
    return reduction(request) + (request.last + readings / 2) * step + READING * readings


def states_needed(counts: IntArray, steps: int) -> tuple[float, float]:
    """The number of multisets of at most `steps` seen tasks, and the largest number of multisets of one size.

    >>> states_needed(np.array([1, 1, 1]), 3), states_needed(np.array([100, 100]), 200)
    ((8.0, 3.0), (10201.0, 101.0))
    """
    layers = np.zeros(steps + 1)
    layers[0] = 1.0
    with np.errstate(over="ignore"):
        for count in counts.tolist():  # multiply by 1 + x + ... + x^count
            total = np.cumsum(layers)
            layers = total
            if count + 1 <= steps:
                layers = total - np.concatenate([np.zeros(count + 1), total[: -count - 1]])
            if not np.isfinite(total[-1]) or total[-1] > 1e15:
                return float("inf"), float("inf")
    return float(layers.sum()), float(layers.max())


def epochs_of(request: Request) -> int:
    """The number of permutations that are begun, if permutations follow each other; else 1."""
    return -(-request.last // request.problem.num_tasks) if isinstance(request.law, Reshuffled) else 1


def seconds_of_subsets(request: Request, states: float, epochs: int, *, twofold: bool) -> float:
    """Seconds for steps to each of `states` multisets of seen tasks from those with one task less, in all epochs."""
    geometry, dim = request.geometry, request.geometry.dim + request.constants
    size = 2 * dim if request.averaged else dim
    rank = len(geometry.sigma) / max(1, geometry.num_distinct)
    parents = float(np.sum(geometry.counts / (geometry.counts + 1.0)))  # of a multiset, on average
    if twofold:
        step = 5e-6 + 1.2e-8 * size**2 + 5.2e-9 * rank * size * dim
    else:
        step = 5e-6 + size**2 * (1.5e-8 + 8 * rank / FLOPS)
    return reduction(request) + 1e-3 * request.last + epochs * states * parents * step + READING * len(request.steps)


def lanczos_width(request: Request, *, each: bool, most: int) -> float:
    """The number of steps that Lanczos takes, at most `most`.

    A polynomial that is close to x^k has a degree of about k^(1/2), and powers matter until those of the largest
    eigenvalue vanish, which is about 1 less the smallest eigenvalue of the mean projection. Where `each` task has a
    value of its own, all of which have to settle, this takes longer.
    """
    reach = min(float(request.last), _vanishing(request))
    return float(min(most, _order(request), (4.5 if each else 3.0) * reach**0.5 + 20))


def chance_to_settle(request: Request, width: float, most: int) -> float:
    """The probability that Lanczos settles in `most` steps where it is expected to take `width` of them."""
    if width >= most:
        return 0.0
    return 1.0 if width < most / 2 or request.last > _vanishing(request) else 0.5


def _vanishing(request: Request) -> float:
    """The k beyond which powers of the largest eigenvalue of Q vanish, or nearly so."""
    return 5 * request.geometry.num_distinct / request.geometry.extremes[0]


def seconds_of_lanczos(request: Request, width: float) -> float:
    """Seconds for `width` steps of Lanczos, with full re-orthogonalisation."""
    return width * (3e-5 + _product_step(request, 1, request.geometry.dim) + 7e-10 * width * _order(request))


def seconds_of_diagonalising(request: Request) -> float:
    """Seconds for Q as a matrix, and all its eigenvectors."""
    order = _order(request)
    return order * _product_step(request, 1, request.geometry.dim) + 6 * order**3 / FLOPS


def seconds_of_visits(request: Request, tasks: int, width: float) -> float:
    """Seconds for means over visits to `tasks` tasks from `width` eigenvalues."""
    dim = request.geometry.dim
    moved = width * (_product_step(request, tasks, dim) + 1e-8 * tasks * dim**2)
    crossed = width**2 * (2 * tasks * _order(request) / FLOPS + 6e-8 * (tasks > 0) * len(request.steps))
    return float(moved + crossed)


def seconds_of_second_differences(request: Request, steps: int) -> float:
    """Seconds for means over visits at `steps` values of k on tasks that no w solves: modes with nodes near them."""
    dim, order = request.geometry.dim, _order(request)
    return 5e-7 * steps * order * (0.05 * order * (dim + 1) + dim**2)
