"""Linear schemes: a scheme is given by its gain for each singular value.

With z = w - w*, learning task m maps the error to (I - U_m diag(g) U_m^T) z, where U_m spans the row space of X_m and
the gain g depends only on the singular value. Kaczmarz, SGD, finitely many gradient steps and ridge differ only in g.
`NLMS`, which makes a step on each row, is beside them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Literal

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_count, as_kind, as_number, as_word
from forgetting.core.numerical import SQUARED, quietly
from forgetting.errors import InvalidInputError
from forgetting.geometry import Directions, Geometry, StepGains, Subspaces
from forgetting.schemes.base import Learned, LinearSteps, Scheme, SGDStep, register
from forgetting.tasks.problem import Problem

__all__ = ["NLMS", "SGD", "FiniteSteps", "Kaczmarz", "LinearScheme", "Ridge", "growth", "linear_gains", "precise_gain"]


@dataclass(frozen=True)
class LinearScheme(Scheme):
    """Base class of linear schemes: implement `gains`; the loop, exact engines and bounds need nothing else.

    >>> class Quarter(LinearScheme):
    ...     def gains(self, sigma):
    ...         return np.full_like(sigma, 0.25)
    >>> import forgetting as fg
    >>> fg.run(fg.families.orthogonal(1), fg.orderings.Cyclic(), k=2, scheme=Quarter()).iterates[:, 0].tolist()
    [0.0, 0.25, 0.4375]
    """

    intrinsic: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse classes that override `learn`: compiled loops and exact engines use only the gains."""
        super().__init_subclass__(**options)
        if "learn" in vars(cls):
            raise InvalidInputError(f"{cls.__name__} learns differently than by its gains: derive from Scheme")

    @abstractmethod
    def gains(self, sigma: Array) -> Array:
        """The gain g for each singular value."""

    def linear_on(self, problem: Problem) -> LinearScheme | None:
        known = as_kind(problem, Problem, "a problem such as RegressionTasks")
        return self if known.linear is not None or known.geometry is not None else None

    def precise_gain(self, square: Decimal) -> Decimal | None:
        """The gain g at sigma^2 = `square`, to the precision of the decimal context; None if only `gains` is known.

        Exact expectations of small problems use this method; if it gives None, they use `gains` with a relative error
        of 8 eps.

        >>> Ridge(1.0).precise_gain(Decimal(3))
        Decimal('0.75')
        """
        return None

    @classmethod
    def _gain_table(cls, schemes: Sequence[Any], number: Any, square: Any) -> Any:
        """The gains of several schemes of this class (rows) at squares of singular values.

        `square` has the squares, and `number` turns settings of the schemes, a column, into numbers of the same kind,
        which know + - * /. None if only `gains` and `precise_gain` of single schemes are known; schedules, whose
        steps have a scheme each, would wait for these.
        """
        return None

    def learn(self, problem: Geometry, task: int, w: Array, memory: Any) -> Learned:  # type: ignore[override]
        """z - U_m (g * (U_m^T z - c_m))."""
        block = problem.block(int(problem.index[task]))
        basis = problem.rows[block]
        return Learned(w - basis.T @ (self.gains(problem.sigma[block]) * (basis @ w - problem.targets[block])))


@register
@dataclass(frozen=True)
class Kaczmarz(LinearScheme):
    """Block Kaczmarz, the paper's Scheme 2: w <- w - X_m^+ (X_m w - y_m), i.e. g = 1.

    >>> Kaczmarz().gains(np.array([3.0, 0.1]))
    array([1., 1.])
    """

    projects = True

    def gains(self, sigma: Array) -> Array:
        return np.ones_like(sigma)

    def precise_gain(self, square: Decimal) -> Decimal:
        return Decimal(1)

    @classmethod
    def _gain_table(cls, schemes: Sequence[Kaczmarz], number: Any, square: Any) -> Any:
        return number([1.0 for _ in schemes]) + number([0.0 for _ in schemes]) * square


@register
@dataclass(frozen=True)
class SGD(LinearScheme):
    """SGD with a fixed step size, the paper's Scheme 3 and its `setup:sgd_main`.

    On the modified objective f_m(w) = 1/2 |X_m^+ (X_m w - y_m)|^2 (`lem:cl_gd_equiv`), g = eta; on the loss itself,
    g = eta sigma^2. Step sizes at which SGD diverges (eta beta > 2, with beta = 1 or R^2) are allowed.

    >>> SGD(0.5).gains(np.array([2.0])), SGD(0.5, objective="loss").gains(np.array([2.0]))
    (array([0.5]), array([2.]))
    """

    step_size: float = 1.0
    objective: Literal["modified", "loss"] = "modified"

    def __post_init__(self) -> None:
        object.__setattr__(self, "step_size", as_number(self.step_size, "step_size", above=0))
        as_word(self.objective, ("modified", "loss"), "objective")

    def gains(self, sigma: Array) -> Array:
        return np.full_like(sigma, self.step_size) if self.objective == "modified" else self.step_size * sigma**2

    @property
    def projects(self) -> bool:
        return self.objective == "modified" and self.step_size == 1

    @property
    def nonexpansive(self) -> bool:
        return self.objective == "modified" and self.step_size <= 2

    def as_sgd(self, radius: float) -> SGDStep:
        size = as_number(radius, "radius", least=0, most=SQUARED**0.5)
        return SGDStep(self.step_size, 1.0 if self.objective == "modified" else size**2)

    def precise_gain(self, square: Decimal) -> Decimal:
        return Decimal(self.step_size) * (1 if self.objective == "modified" else square)

    @classmethod
    def _gain_table(cls, schemes: Sequence[SGD], number: Any, square: Any) -> Any:
        plain, on_loss = (
            number([scheme.step_size if scheme.objective == kind else 0.0 for scheme in schemes])
            for kind in ("modified", "loss")
        )
        return plain + on_loss * square


@register
@dataclass(frozen=True)
class FiniteSteps(LinearScheme):
    """n steps of gradient descent on the current task's loss: g = 1 - (1 - eta sigma^2)^n.

    >>> FiniteSteps(2, step_size=0.5).gains(np.array([1.0]))
    array([0.75])
    """

    n: int
    step_size: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", as_count(self.n, "n", least=1))
        object.__setattr__(self, "step_size", as_number(self.step_size, "step_size", above=0))

    def gains(self, sigma: Array) -> Array:
        product = self.step_size * sigma**2
        safe = product < 1  # there expm1/log1p keep the relative accuracy of small gains
        return np.where(safe, -np.expm1(self.n * np.log1p(-np.where(safe, product, 0.0))), 1 - (1 - product) ** self.n)

    def precise_gain(self, square: Decimal) -> Decimal:
        return 1 - (1 - Decimal(self.step_size) * square) ** self.n


@register
@dataclass(frozen=True)
class Ridge(LinearScheme):
    """Ridge to the previous solution, argmin_w L_m(w) + lam/2 |w - w_(t-1)|^2: g = sigma^2 / (sigma^2 + lam).

    >>> Ridge(1.0).gains(np.array([1.0]))
    array([0.5])
    """

    lam: float
    nonexpansive = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "lam", as_number(self.lam, "lam", above=0))

    def gains(self, sigma: Array) -> Array:
        return sigma**2 / (sigma**2 + self.lam)

    def precise_gain(self, square: Decimal) -> Decimal:
        return square / (square + Decimal(self.lam))

    @classmethod
    def _gain_table(cls, schemes: Sequence[Ridge], number: Any, square: Any) -> Any:
        return square / (square + number([scheme.lam for scheme in schemes]))


def linear_gains(directions: Directions | Subspaces, scheme: LinearScheme) -> Array:
    """The scheme's gain for each of the R directions; 0 for those of held-out data, which are never learned."""
    learned = directions.sigma[: directions.rows_learned]
    with quietly():  # gains that are not finite are refused
        given = np.asarray(scheme.gains(learned))
    if given.dtype.kind not in "biuf" or given.shape != learned.shape or not np.isfinite(given).all():
        raise InvalidInputError(
            f"{scheme}: gains must be finite, one per singular value, got {given.dtype} of shape {given.shape}"
        )
    return np.append(given.astype(np.float64), np.zeros(len(directions.sigma) - len(learned)))


def different_steps(steps: LinearSteps, first: int, count: int) -> tuple[list[LinearScheme], IntArray, Array]:
    """The different schemes of `count` steps from step `first` on, the place of each step among them, and its `keep`.

    >>> import forgetting as fg
    >>> halves = fg.schemes.Scheduled(lambda t: fg.schemes.Decay(0.5, Ridge(1.0 + t % 2)))
    >>> different_steps(halves.linear_steps_on(fg.families.two_lines(0.5)), 1, 3)
    ([Ridge(lam=2.0), Ridge(lam=1.0)], array([0, 1, 0]), array([0.5, 0.5, 0.5]))
    """
    places: dict[Any, int] = {}
    different: list[LinearScheme] = []
    which, keep = np.empty(count, dtype=np.int64), np.empty(count)
    for i in range(count):
        step = steps.at(first + i)
        try:
            place = places.setdefault(step.scheme, len(different))
        except TypeError:  # its settings have no hash
            place = len(different)
        if place == len(different):
            different.append(step.scheme)
        which[i], keep[i] = place, step.keep
    return different, which, keep


def gains_of_steps(directions: Directions, steps: LinearSteps, first: int, count: int) -> StepGains:
    """The gains of `count` steps from step `first` on."""
    if steps.alike:
        return StepGains.alike(linear_gains(directions, steps.at(1).scheme), count)
    different, which, keep = different_steps(steps, first, count)
    table = np.array([linear_gains(directions, scheme) for scheme in different])
    return StepGains(table.reshape(-1, len(directions.sigma)), which, keep)


def precise_gain(scheme: LinearScheme, square: Decimal) -> Decimal | None:
    """`scheme.precise_gain(square)`; an error if the result is neither None nor a finite Decimal."""
    gain = scheme.precise_gain(square)
    if gain is not None and not (isinstance(gain, Decimal) and gain.is_finite()):
        raise InvalidInputError(f"{scheme}: precise_gain must give a finite Decimal or None, got {gain!r:.80}")
    return gain


def growth(problem: Problem, scheme: Scheme) -> list[str]:
    """A warning if some step of the scheme can make the error larger; else an empty list.

    >>> import forgetting as fg
    >>> growth(fg.families.two_lines(0.5), fg.schemes.SGD(step_size=2.5))
    ['this scheme diverges: a step multiplies an error of the task it learns by -1.5']
    """
    linear = None if scheme.nonexpansive else scheme.linear_on(problem)
    directions = None if linear is None else problem.directions
    if linear is None or directions is None:
        return []
    factors = 1.0 - linear_gains(directions, linear)
    worst = float(factors[np.argmax(np.abs(factors))]) if len(factors) else 0.0
    if abs(worst) <= 1 + 1e-12:
        return []
    return [f"this scheme diverges: a step multiplies an error of the task it learns by {worst:.4g}"]


@register
@dataclass(frozen=True)
class NLMS(Scheme):
    """For each row x of the task, in order: w <- w - mu (x.w - y) x / (eps + |x|^2).

    With mu = 1 and eps = 0 this is row Kaczmarz, which solves a task of one row exactly; a task of several rows gets
    one pass. Zero rows are skipped.

    >>> import forgetting as fg
    >>> tasks = fg.families.rank_one(T=3, d=4)
    >>> nlms, exact = (fg.run(tasks, fg.orderings.Cyclic(), k=6, scheme=s) for s in (NLMS(), fg.schemes.Kaczmarz()))
    >>> bool(abs(nlms.iterates - exact.iterates).max() < 1e-14)
    True
    """

    mu: float = 1.0
    eps: float = 0.0
    intrinsic: ClassVar[bool] = True
    reads_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", as_number(self.mu, "mu", above=0))
        object.__setattr__(self, "eps", as_number(self.eps, "eps", least=0))

    @property
    def nonexpansive(self) -> bool:
        return self.mu <= 2

    def learn(self, problem: Geometry, task: int, w: Array, memory: Any) -> Learned:  # type: ignore[override]
        matrix, label = problem.equations(task)
        point = w.copy()
        for row, value in zip(matrix, label, strict=True):
            size = float(row @ row)
            if size > 0:
                point -= self.mu * (row @ point - value) / (self.eps + size) * row
        return Learned(point, len(matrix))
