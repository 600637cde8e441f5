"""Estimates of the seconds that engines take: `auto` compares them with each other and with `patience`.

Each estimate is a sum of the loops that the engine goes through, a count of operations times the seconds of one. These
unit costs were fitted to the seconds of one core of a server on several hundred problems of all sizes, so that the
ratio of measured to estimated seconds is near 1; `python -m benchmarks.bench_estimates` measures that ratio on others,
and docs/choosing.md has its table. Another machine scales all of them alike, roughly. No value depends on them, and no
estimate depends on the machine, so that `auto` chooses the same method everywhere.
"""

from __future__ import annotations

import numpy as np

from forgetting.core.arrays import IntArray
from forgetting.dynamics.ensembles import dual_is_cheaper
from forgetting.expectation.quantities import Form
from forgetting.expectation.request import Request
from forgetting.orderings.laws import BLOCK, Independent, Permutation, Reshuffled

FLOPS = 3e10  # floating-point operations a second, in large matrix products
SCHEDULED = 2e-5  # to make a step that differs from the others: its scheme and its gains
READING = 4e-4  # quantities at one k, beside half a step
CACHED = 700  # rows of an inner product table (4 MiB) that stays in the cache


def reduction(request: Request) -> float:
    """Seconds for bases with 31 digits, from which all exact engines start where that takes about a second at most."""
    products = request.geometry.refinement
    return 3e-3 + 2.8e-4 * request.geometry.num_distinct + 6e-9 * products if products < 2e8 else 3e-3


def seconds_of_run(request: Request) -> float:
    """Seconds for one run in float64 and its quantities; a guess where a solver or code of users makes the steps.

    An ordering that looks at the iterate, and a quantity that needs every iterate, look at all tasks in every step.
    """
    adaptive, readings = request.ordering.adaptive, len(request.steps)
    taken = 2.5e-4 + (4e-5 + 2e-8 * request.last) * readings + 1.5e-4 * request.averages("visited")
    if request.linear is None:
        step = 3e-5 + 2e-4 * request.scheme.remembers  # which decompose what they remember
        return taken + request.last * (step + adaptive * (2e-5 + 4e-6 * request.problem.num_tasks))
    step = seconds_of_step(request) + 6e-5 * adaptive + scheduling(request)
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


def seconds_of_drawing(request: Request) -> float:
    """Seconds to draw the order of one run."""
    law, T, k = request.law, request.problem.num_tasks, request.last
    match law:
        case Permutation():
            return 2e-8 * T  # of which the first k are taken
        case Reshuffled():
            block = max(1, BLOCK // T) * T  # tasks that are drawn at once
            return 1.8e-5 + 1.25e-8 * block * -(-k // block)
        case Independent():
            return (2.7e-8 if law.p is None else 5.8e-8) * k
    return 1e-6 * k


def seconds_of_compiled_runs(request: Request, runs: int) -> float:
    """Seconds for runs by the compiled loops: one pass for losses, another where visits are averaged."""
    geometry, k, readings = request.geometry, request.last, len(request.steps)
    R, D, outputs = len(geometry.sigma), geometry.dim, geometry.outputs or 1
    rank, visited = R / max(1, geometry.num_distinct), request.averages("visited")
    begin, each, dual = 2e-3 + 4.7e-7 * request.problem.num_tasks, 0.0, False
    passes = [readings / (k + 1)] * any(t.average != "visited" for t in request.terms) + [1.0] * visited
    for recorded in passes:
        in_dual = dual_is_cheaper(geometry, recorded)
        row = (7e-11 + 1.6e-10 * (R > CACHED)) * R if in_dual else 4.2e-10 * D
        each += k * (2e-8 + rank * row)
        dual = dual or in_dual
        if not in_dual and R > D:
            uncached = min(1.0, R * D / 4e6)
            begin += R * D * (1e-8 + 1e-7 * uncached + 5e-11 * D)  # the triangle from which mean losses are computed
        begin += (k if not request.linear_steps.alike else 0) * (scheduling(request) + 5e-9 * R)
    if visited:
        each += 1e-9 * readings * (geometry.num_distinct + min(k, geometry.num_distinct) * rank * (1 if dual else D))
    each += 3e-10 * readings * (R if dual else min(R, D) * D)
    begin += (2.6e-9 * R**2 + 2 * R**2 * D / FLOPS) * dual + 3e-11 * (R * D**2 + 4 * D**3)
    return begin + runs * (seconds_of_drawing(request) + outputs * each)


def seconds_of_blocks(request: Request, runs: int, size: int) -> float:
    """Seconds for runs in blocks of `size`, whose forms are read from predictions for all rows."""
    geometry, k = request.geometry, request.last
    points = k + 1 if request.every_iterate else len(request.steps)
    outputs, tasks = geometry.outputs or 1, request.problem.num_tasks
    rank = len(geometry.sigma) / max(1, geometry.num_distinct)
    step = outputs * rank * (4 * geometry.dim / FLOPS + 1e-8) + 5e-5 * min(tasks / size, 1.0)
    point = 2 * outputs * geometry.dim * geometry.frame.dim / FLOPS + seconds_of_scores(request)
    return 3e-3 + runs * (6e-5 + seconds_of_drawing(request) + k * step + points * point)


def seconds_of_scored_run(request: Request) -> float:
    """Seconds for one run by itself whose forms are read from predictions, task by task."""
    points = request.last + 1 if request.every_iterate else len(request.steps)
    calls = 1.2e-4 * request.problem.num_tasks * len(_scored(request))
    return seconds_of_run(request) + calls + 2 * points * seconds_of_scores(request)


def _scored(request: Request) -> set[tuple[Form, bool, str]]:
    """The forms that are read from predictions."""
    return {(term.form, term.held_out, term.iterate) for term in request.terms if not term.form.quadratic}


def seconds_of_scores(request: Request) -> float:
    """Seconds to read the forms of all tasks at one iterate, among many: products of all rows with w."""
    problem = request.problem
    forms = _scored(request)
    rows = float(problem.linear.num_rows.sum()) if problem.linear is not None else 100.0 * problem.num_tasks
    seconds = len(forms) * rows * (problem.outputs or 1) * (2.5e-9 + 3 * problem.dim / FLOPS)
    if any(term.form.quadratic for term in request.terms) and request.linear is not None:
        seconds += len(request.geometry.sigma) * (problem.outputs or 1) * (5e-9 + 2 * request.geometry.dim / FLOPS)
    return seconds


def _product_step(request: Request, matrices: float, size: int) -> float:
    """Seconds for one step of Q by matrix products, for a stack of matrices of this order.

    In few dimensions the products are thin, and passes over one row of numbers for each matrix and basis vector decide.
    """
    rows = len(request.geometry.sigma)
    return float(matrices * size * (size * (4 * rows / FLOPS + 5e-9) + 5e-9 * rows))


def _order(request: Request) -> float:
    """D (D + 1) / 2, the number of entries of a symmetric matrix on which Q acts."""
    return request.geometry.dim * (request.geometry.dim + 1) / 2


def seconds_of_moments(request: Request, counted: int, *, twofold: bool) -> float:
    """Seconds for second moments, iterated to the largest k, with `counted` more matrices for visits to each task."""
    geometry, averaged = request.geometry, request.averaged
    rows, dim = len(geometry.sigma), geometry.dim + request.constants
    size = 2 * dim if averaged else dim
    if twofold:  # the moments and their errors; where iterates are summed, half of each row is zero and left out
        step = 1.1e-5 + 7e-5 * averaged + 1.3e-6 * counted
        step += (1 + counted) * rows * size * (2.2e-9 * dim + 5e-8) + 9.5e-10 * rows * size**2
    else:
        step = 5e-5 + 6e-5 * averaged + 3e-6 * counted
        step += (2 + counted) * rows * size * (1.7e-9 + 9.4e-11 * size)
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
        step = 5e-6 + size**2 * 5e-9 + 7.5e-9 * rank * size * dim
    else:
        step = 4e-6 + size**2 * (1.3e-8 + 2.5e-9 * rank)
    if epochs > 1:  # the last may end early
        states += (
            states_needed(geometry.counts, request.last - (epochs - 1) * geometry.num_tasks)[0] - states
        ) / epochs
    return reduction(request) + 6e-4 * request.last + epochs * states * parents * step + READING * len(request.steps)


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
    settling = width * (3e-10 * _order(request) + 4e-7)  # orthogonality, and looks at what has settled
    return width * (4e-5 + _product_step(request, 1, request.geometry.dim) + settling)


def seconds_of_diagonalising(request: Request) -> float:
    """Seconds for Q as a matrix, and all its eigenvectors."""
    order = _order(request)
    return order * _product_step(request, 1, request.geometry.dim) + 6 * order**3 / FLOPS


def seconds_of_visits(request: Request, tasks: int, width: float) -> float:
    """Seconds for means over visits to `tasks` tasks from `width` eigenvalues."""
    dim, order, steps = request.geometry.dim, _order(request), len(request.steps)
    rank = len(request.geometry.sigma) / max(1, request.geometry.num_distinct)
    moved = tasks * width * dim**2 * (4e-9 + 4 * rank / FLOPS)
    crossed = tasks * width**2 * (1.2e-8 + 1.4 * order / FLOPS)
    shared = 1 if width >= order else tasks  # divided differences, of all tasks at once where Q was diagonalised
    return float(moved + crossed + 3e-7 * (tasks > 0) * shared * width**2 * steps)


def seconds_of_second_differences(request: Request, steps: int) -> float:
    """Seconds for means over visits at `steps` values of k on tasks that no w solves: modes with nodes near them."""
    dim, order = request.geometry.dim, _order(request)
    return 5e-7 * steps * order * (0.05 * order * (dim + 1) + dim**2)
