"""The shared parts of checks: conditions under which a statement applies, and both sides of a bound.

`noise_from_data` has the noise of tasks that no w solves from their rows and labels alone, a second road to `Misfit`:
least-squares solutions, pseudo-inverses and eigenvalues of dense matrices; nothing of the geometry is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from forgetting.core.arrays import Array
from forgetting.core.numerical import ROUNDING
from forgetting.dynamics.loop import run
from forgetting.dynamics.trajectory import Trajectory
from forgetting.errors import ForgettingError, InvalidInputError
from forgetting.orderings.laws import Independent
from forgetting.schemes import Scheme
from forgetting.theory.definition import equations, law_of, replay
from forgetting.theory.expectations import (
    Engine,
    Expected,
    Numbers,
    as_least_squares,
    distinct,
    probabilities,
    row_space,
)
from forgetting.theory.instance import Instance
from forgetting.theory.misfit import Misfit
from forgetting.theory.precise import Precise
from forgetting.theory.registry import all_bounds
from forgetting.theory.setting import Setting, as_regression, describe_ordering, describe_scheme
from forgetting.theory.verdict import CheckPaths, Missing, RightSide, Sides

if TYPE_CHECKING:
    from forgetting.theory.bound import Bound


def by_engines(check: Callable[[Engine, Instance], Sides]) -> CheckPaths:
    """`sides` and `precise` of a claim that is checked by an engine of expectations."""
    return CheckPaths(partial(check, Numbers), partial(check, Precise))


def paths(check: Callable[[Instance, Expected], Sides], *, sgd: bool = False) -> CheckPaths:
    """`sides` and `precise` of a claim whose sides are made of expectations; with `sgd`, of the run written as SGD."""

    def run(engine: Engine, instance: Instance) -> Sides:
        case = as_least_squares(instance) if sgd else instance
        return check(case, engine(case))

    return by_engines(run)


def summed(lhs: float, terms: Mapping[str, float], doubt: float, how: str) -> Sides:
    """A left side against a sum of named terms.

    >>> summed(1.0, {"rate": 2.0, "price": 0.5}, 0.0, "moments").without
    {'rate': 0.5, 'price': 2.0}
    """
    without = {name: sum(value for other, value in terms.items() if other != name) for name in terms}
    return Sides(lhs, sum(terms.values()), doubt, how=how, without=without)


def at_most(lhs: float, bound: Bound, setting: Setting, k: int, doubt: float, how: str) -> Sides:
    """A left side against a bound, with the terms and the branches of the bound, for what a hunt would notice.

    >>> from forgetting.theory.registry import get_bound
    >>> bound = get_bound("thm:cl_by_sgd_wor/loss")
    >>> sides = at_most(0.1, bound, Setting(T=9, d=3, rank_avg=1), 2, 0.0, "moments")
    >>> sides.rhs, sides.right.branch_values
    (3.0, {'universal': 7.0, 'dimension': 3.0})
    """
    branches = {
        branch.key.rpartition("/")[2]: branch
        for branch in all_bounds(quantity=bound.quantity)
        if branch.origin == "branch" and branch.key.rpartition("/")[0] == bound.key
    }
    right = RightSide(bound, setting, k, branches)
    return Sides(lhs, right.value, doubt, how=how, without=right.without, right=right)


def expectation_at_most(
    left: Callable[[Expected, int], float] | None = None,
    setting: Callable[[Instance], Setting] | None = None,
    unit: Callable[[Setting], float] = lambda at: at.scale,
    *,
    sgd: bool = False,
) -> Callable[[Bound], CheckPaths]:
    """The check that the expectation of the quantity of a bound, or `left`, is at most the bound after k steps.

    `unit` of the setting is what rounding errors are relative to; with `sgd`, of the run written as SGD.
    """

    def by(bound: Bound) -> CheckPaths:
        def check(instance: Instance, numbers: Expected) -> Sides:
            at, k = (setting or setting_of)(instance), instance.k
            lhs = getattr(numbers, bound.quantity)(k) if left is None else left(numbers, k)
            return at_most(lhs, bound, at, k, numbers.doubt + ROUNDING * unit(at), numbers.how)

        return paths(check, sgd=sgd)

    return by


def all_of(*tests: Missing) -> Missing:
    """The condition that all of these hold: the reason of the first that fails, or None."""

    def missing(instance: Instance) -> str | None:
        return next((reason for test in tests if (reason := test(instance)) is not None), None)

    return missing


def tasks_with_data(instance: Instance) -> str | None:
    """Condition: regression tasks given by their data, with or without a common solution."""
    linear = None if instance.problem is None else instance.problem.linear
    given = linear is not None and linear is instance.problem and linear.kernel is None
    return None if given else "is about regression tasks"


def regression(instance: Instance) -> str | None:
    """Condition: jointly realizable regression tasks, given by their data."""
    if (reason := tasks_with_data(instance)) is not None:
        return reason
    realizability = instance.tasks.realizability
    return None if realizability.holds else realizability.message


def convex_sets(instance: Instance) -> str | None:
    """Condition: a collection of convex sets."""
    return None if instance.problem is not None and instance.problem.kind == "sets" else "is about convex sets"


def classification(instance: Instance) -> str | None:
    """Condition: jointly separable classification tasks."""
    separability = None if instance.problem is None else instance.problem.realizability
    if separability is None or instance.posed.kind != "classification":
        return "is about classification tasks"
    return None if separability.holds else f"needs jointly separable tasks, but these are {separability.message}"


def pocs(instance: Instance) -> str | None:
    """Condition: tasks learned by projection, in the limit of vanishing regularisation."""
    projects = instance.scheme is None or instance.scheme.projects
    return None if projects else "covers tasks learned by projection, scheme=POCS()"


def small(most: int) -> Missing:
    """The condition that d is at most this, for lemmas checked on dense matrices."""
    return lambda instance: None if instance.tasks.dim <= most else f"is checked for d <= {most}"


def steps(first: int = 1, last: int | None = None, what: str = "k") -> Missing:
    """The condition that k is at least `first`; with `last`, also at most T - last."""

    def missing(instance: Instance) -> str | None:
        most = None if last is None else instance.posed.num_tasks - last
        if instance.k < first or (most is not None and instance.k > most):
            return f"covers {what} >= {first}" + ("" if most is None else f" up to {most}") + f", got {instance.k}"
        return None

    return missing


def covers(*orderings: str) -> Missing:
    """The condition that the ordering is one of these, by the names that bounds use."""

    def missing(instance: Instance) -> str | None:
        if instance.problem is None or instance.ordering is None:
            return "needs a problem and an ordering"
        try:
            tags = describe_ordering(instance.ordering, as_regression(instance.problem), instance.k)
            instance.ordering.check(instance.problem.num_tasks, instance.k)
        except ForgettingError as error:
            return str(error)
        return None if tags & set(orderings) else f"covers {' or '.join(orderings)} orderings"

    return missing


def projection(instance: Instance) -> str | None:
    """Condition: a scheme that learns a task to convergence."""
    tags = describe_scheme(instance.scheme, instance.problem)[0]
    return None if "projection" in tags else "covers tasks learned to convergence"


def least_squares(above: float = 0.0, most: float = 2.0, *, closed: bool = False) -> Missing:
    """The condition of SGD with a fixed step on realizable least squares, above < eta beta < most (`closed`: <=)."""

    def missing(instance: Instance) -> str | None:
        if (reason := regression(instance)) is not None:
            return reason
        try:
            case = as_least_squares(instance)
        except ForgettingError as error:
            return str(error)
        beta = case.tasks.radius**2
        x = float(case.scheme.step_size) * beta  # type: ignore[union-attr]
        if beta == 0:
            return "beta must be positive"
        slack = 1 + 1e-12
        if not (above * slack < x and (x <= most * slack if closed else x < most)):
            return f"covers {above:g} < eta beta {'<=' if closed else '<'} {most:g}, got {x:.4g}"
        return None

    return missing


def trajectory(instance: Instance, scheme: Scheme | None = None) -> Trajectory:
    """One run of the instance with its own seed, by this scheme or the natural scheme of its problem."""
    if instance.ordering is None:
        raise InvalidInputError("needs an ordering")
    made = run(instance.posed, instance.ordering, instance.k, scheme, instance.seed, instance.w0)
    replay(replace(instance, scheme=scheme), made.order, made.iterates)
    return made


def setting_of(instance: Instance) -> Setting:
    """The parameters of the instance, as bounds want them."""
    return Setting.of(instance.posed, instance.w0, instance.scheme, instance.ordering)


@dataclass(frozen=True)
class NoiseFromData:
    """The setting of an instance, the minimiser of its loss nearest to w_0, and the size of its numbers.

    Attributes:
        setting: dist_sq, spectral_gap and misfit, with T and the largest rank.
        best: the minimiser of the mean loss nearest to w_0.
    """

    setting: Setting
    best: Array


def noise_from_data(instance: Instance) -> NoiseFromData:
    """The numbers that bounds on noise need, computed from rows and labels alone.

    >>> import forgetting as fg
    >>> tasks = fg.RegressionTasks([[[1.0]], [[1.0]]], [[1.0], [3.0]])
    >>> found = noise_from_data(Instance(tasks, fg.orderings.WithReplacement(), k=1))
    >>> found.best.round(12), round(found.setting.misfit.floor, 12), round(found.setting.misfit.noise, 12)
    (array([2.]), 0.5, 1.0)
    """
    tasks, start = instance.tasks, instance.start
    blocks = [equations(tasks, m) for m in distinct(tasks)]
    index, shares = tasks.geometry.index, tasks.geometry.counts / tasks.num_tasks
    frame = row_space([matrix for matrix, _ in blocks])
    reduced = [(matrix @ frame.T, label - matrix @ start) for matrix, label in blocks]  # of w - w_0, in the row space
    best = _least(reduced, shares)
    hessian = sum(share * X.T @ X for share, (X, _) in zip(shares, reduced, strict=True))

    def loss(v: Array) -> float:
        return float(sum(share * np.sum((X @ v - y) ** 2) / 2 for share, (X, y) in zip(shares, reduced, strict=True)))

    steepest = float(np.linalg.eigvalsh(hessian)[-1]) if len(frame) else 0.0  # 0 where all rows are zero
    known: dict[str, float] = {"floor": loss(best), "smoothness": steepest}
    gap = None
    if isinstance(law_of(instance), Independent):
        p: Array = np.bincount(index, probabilities(instance), len(blocks)).astype(np.float64)
        inverses = [np.linalg.pinv(X, rcond=1e-12) for X, _ in reduced]
        onto = [inverse @ X for inverse, (X, _) in zip(inverses, reduced, strict=True)]
        mixed = sum(q * P for q, P in zip(p, onto, strict=True))
        gap = float(np.linalg.eigvalsh(mixed)[0]) if len(frame) else None

        def steps(v: Array) -> Array:
            there = [inverse @ (y - X @ v) for inverse, (X, y) in zip(inverses, reduced, strict=True)]
            return np.array([move @ move for move in there])

        moves = [inverse @ y for inverse, (_, y) in zip(inverses, reduced, strict=True)]
        centre = _least(list(zip(onto, moves, strict=True)), p)
        slope = sum(share * X.T @ (X @ centre - y) for share, (X, y) in zip(shares, reduced, strict=True))
        known |= {
            "noise": float(p @ steps(best)),
            "noise_max": float(np.max(steps(best)[p > 0])),
            "centre_loss": loss(centre),
            "centre_slope": float(np.linalg.norm(slope)),
            "centre_dist_sq": float(centre @ centre),
            "centre_noise": float(p @ steps(centre)),
        }
    setting = Setting(
        T=tasks.num_tasks,
        rank_max=max(int(np.linalg.matrix_rank(X)) for X, _ in reduced),
        dist_sq=float(best @ best),
        spectral_gap=None if gap is None else float(np.clip(gap, 0.0, 1.0)),
        misfit=Misfit(**known, message="no w solves all tasks"),
    )
    return NoiseFromData(setting, start + best @ frame)


def _least(blocks: list[tuple[Array, Array]], weights: Array) -> Array:
    """The v of least norm that minimises sum_m weights_m |X_m v - y_m|^2."""
    matrices = [np.sqrt(weight) * X for weight, (X, _) in zip(weights, blocks, strict=True)]
    labels = [np.sqrt(weight) * y for weight, (_, y) in zip(weights, blocks, strict=True)]
    return np.asarray(np.linalg.lstsq(np.concatenate(matrices), np.concatenate(labels), rcond=None)[0])
