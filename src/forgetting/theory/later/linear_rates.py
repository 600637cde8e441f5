"""Linear rates of randomised projections: E|w_k - w*|^2, where w* is the solution nearest to w_0.

w_0 - w* is then in the joint row space of the tasks, of which E P = sum_m p_m P_m has the least eigenvalue lambda, and
E|w_(k+1) - w*|^2 = E <w_k - w*, (I - E P) (w_k - w*)> <= (1 - lambda) E|w_k - w*|^2. Where tasks with p_m > 0 span less
than all tasks do, lambda is 0, and nothing more is true: what they do not span is never learned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from forgetting.orderings import NormWeighted
from forgetting.theory.bound import Condition
from forgetting.theory.checking import ROUNDING, all_of, covers, projection, regression, setting_of, small, steps
from forgetting.theory.claim import CheckPaths, Sides
from forgetting.theory.definition import equations
from forgetting.theory.draws import Rng, projected, realizable
from forgetting.theory.expectations import Numbers, distinct, probabilities
from forgetting.theory.expression import DISTANCE, Expression, K, left_after, parameter
from forgetting.theory.instance import Instance
from forgetting.theory.precise import Precise
from forgetting.theory.setting import known
from forgetting.theory.statement import Bound, checked

MOST_ROWS = 50
LARGEST = 2000  # dimension up to which singular values of all rows take a second


def _error_at_most(rate: Callable[[Instance], float]) -> CheckPaths:
    """Both sides of E|w_k - w*|^2 <= rate^k |w_0 - w*|^2; the rate is computed from the data, apart from `Setting`."""

    def right(instance: Instance) -> tuple[float, float]:
        size = setting_of(instance).dist_sq
        return rate(instance) ** instance.k * size, ROUNDING * size

    def sides(instance: Instance) -> Sides:
        numbers = Numbers(instance)
        value, (bound, rounding) = numbers.value("error", instance.k), right(instance)
        return Sides(value, bound, numbers.doubt + rounding, how=numbers.how)

    def precise(instance: Instance) -> Sides:
        numbers = Precise(instance)
        return Sides(numbers.error(instance.k), *right(instance), how=numbers.how)

    return CheckPaths(sides, precise)


def _bound(
    name: str, part: str, source: str, ordering: str, right: Expression, note: str, *conditions: Condition
) -> Bound:  # fmt: skip
    return Bound(
        key=f"{name}:{part}/error",
        title="linear rate of randomised projections",
        source=source,
        quantity="error",
        orderings=(ordering,),
        expression=right,
        conditions=conditions,
        needs=("rank_max",) if conditions else (),
        assumptions="jointly realizable tasks, each learned to convergence; w* is the solution nearest to w_0",
        convention="squared distances, without the factor 1/2",
        note=note,
        tight=True,
    )


def _mean_projection(instance: Instance) -> float:
    """1 - lambda, by projections X^+ X on the row space of all rows."""
    tasks, p = instance.tasks, probabilities(instance)
    chances = np.bincount(tasks.geometry.index, p, tasks.geometry.num_distinct)
    blocks = [equations(tasks, m)[0] for m in distinct(tasks)]
    _, sizes, rows = np.linalg.svd(np.concatenate(blocks), full_matrices=False)
    frame = rows[sizes > 1e-12 * sizes[0]].T
    reduced = [X @ frame for X in blocks]
    mean = sum(chance * np.linalg.pinv(X) @ X for chance, X in zip(chances, reduced, strict=True))
    return float(1 - np.linalg.eigvalsh(mean)[0]) if frame.size else 0.0  # zeros: nothing to learn


def _scaled_condition(instance: Instance) -> float:
    """1 - 1/kappa_F^2, by the singular values of all rows, clones counted."""
    tasks = instance.tasks
    rows = np.concatenate(
        [
            np.sqrt(count) * equations(tasks, m)[0]
            for m, count in zip(distinct(tasks), tasks.geometry.counts, strict=True)
        ]
    )
    sizes = np.linalg.svd(rows, compute_uv=False)
    return float(1 - np.min(sizes[sizes > 1e-12 * sizes[0]]) ** 2 / np.sum(sizes**2)) if sizes.any() else 0.0


def _single_rows(rng: Rng, index: int) -> Instance:
    """Tasks of one row each, one for every row."""
    case = projected("norm-weighted", first=1)(rng, index)
    tasks = case.tasks
    rows = [row[None] for m in distinct(tasks) for row in equations(tasks, m)[0]]
    return replace(case, problem=realizable(rows[:MOST_ROWS], tasks.w_star), ordering=NormWeighted())


def _rank_one(instance: Instance) -> str | None:
    return None if instance.tasks.rank_max == 1 else "is about tasks of rank 1"


_GAP = parameter("spectral_gap", "lambda_min", r"\lambda_{\min}")
_CONDITION = parameter("spectral_gap", "1/kappa_F^2", r"\kappa_F^{-2}")
GOWER = _bound(
    "gower2015", "any weights", "Gower and Richtarik 2015", "i.i.d.",
    (left_after(_GAP, K) * DISTANCE).where("lambda_min = the least eigenvalue of sum_m p_m P_m on the joint row space"),
    "Stated there for positive definite E P. Reached by orthogonal tasks of the same weight.",
)  # fmt: skip
checked(
    GOWER,
    part=None,
    statement=f"E|w_k - w*|^2 <= {GOWER.formula}, k >= 1, independent draws with any weights",
    paths=_error_at_most(_mean_projection),
    draw=projected("any", first=1),
    missing=all_of(regression, small(LARGEST), projection, covers("i.i.d."), steps(1)),
)
STROHMER = _bound(
    "strohmer2009", "single rows", "Strohmer and Vershynin 2009, Theorem 2", "norm-weighted",
    (left_after(_CONDITION, K) * DISTANCE).where("kappa_F = |X|_F |X^+|, all rows stacked"),
    "Stated there for rows of full column rank; the joint row space is enough. The bound of Gower and Richtarik here.",
    Condition(lambda s, k: known(s.rank_max) <= 1, "is for tasks of rank 1"),
)  # fmt: skip
checked(
    STROHMER,
    part=None,
    statement=f"E|w_k - w*|^2 <= {STROHMER.formula}, k >= 1, single rows drawn by their squared norms",
    paths=_error_at_most(_scaled_condition),
    draw=_single_rows,
    missing=all_of(regression, small(LARGEST), projection, _rank_one, covers("norm-weighted"), steps(1)),
)
