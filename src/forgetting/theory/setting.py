"""The numbers that bounds depend on, from a problem or typed in."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from forgetting._arrays import as_count, as_kind, as_number, as_vector
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.orderings import (
    Cyclic,
    GreedyDistance,
    GreedyResidual,
    NormWeighted,
    Ordering,
    Reshuffled,
    TaskView,
    WithoutReplacement,
    WithReplacement,
)
from forgetting.schemes import SGD, Scheme
from forgetting.tasks import KernelTasks, LinearTasks

__all__ = ["ORDERINGS", "ProblemKind", "Setting", "describe_ordering", "describe_scheme", "known"]

ProblemKind = Literal["regression", "classification", "sets"]

#: What a bound may cover; "i.i.d." is sampling with replacement with any weights.
HUGE = 1e100  # numbers below it can be squared and multiplied with each other
ORDERINGS = (
    "with replacement",
    "without replacement",
    "norm-weighted",
    "i.i.d.",
    "cyclic",
    "greedy",
    "greedy single pass",
    "full gradient",
    "any",
)


def known(value: float | None) -> float:
    """A parameter that a bound lists in its `needs`, so that it is there when the formula is evaluated.

    >>> known(2.0)
    2.0
    """
    if value is None:
        raise InvalidInputError("a formula uses a parameter that its bound does not list in `needs`")
    return value


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The parameters of a problem and of a method; None where a number is not known.

    Attributes:
        T: number of tasks.
        d: dimension of w (None where it is not known, as with a kernel).
        rank_avg: average rank of the data matrices.
        rank_max: largest rank.
        rank_joint: D, the rank of all tasks together.
        dist_sq: |w_0 - w*|^2.
        radius: R, the largest spectral norm (classification: the largest row norm; sets: 1).
        radius_sq_mean: the paper's R-bar, the mean squared spectral norm.
        weight_ratio: max_m |X_m|^2 / (T p_m) for sampling with probabilities p: R-bar when norm-weighted, R^2 when
            uniform.
        eta: step size of SGD.
        beta: smoothness of the SGD objective (1 for the modified one, R^2 for the loss).
        sigma: standard deviation of the stochastic gradients.
        G: largest norm of a stochastic gradient.
        previous_loss: E L(w_(k-1)), for `lem:in_to_all_sample`.
        from_zero: whether w_0 = 0, which some bounds need.
        problem: regression, classification or convex sets.

    >>> Setting(T=2, d=2, rank_avg=1, dist_sq=4, radius=3).scale
    36.0
    """

    T: int | None = None
    d: int | None = None
    rank_avg: float | None = None
    rank_max: int | None = None
    rank_joint: int | None = None
    dist_sq: float = 1.0
    radius: float = 1.0
    radius_sq_mean: float | None = None
    weight_ratio: float | None = None
    eta: float | None = None
    beta: float | None = None
    sigma: float | None = None
    G: float | None = None
    previous_loss: float | None = None
    from_zero: bool = True
    problem: ProblemKind = "regression"

    def __post_init__(self) -> None:
        for name, least in (("T", 1), ("d", 0), ("rank_max", 0), ("rank_joint", 0)):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, as_count(value, name, least=least))
        for name in ("dist_sq", "radius", "rank_avg", "radius_sq_mean", "weight_ratio", "sigma", "G"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, as_number(value, name, least=0, below=HUGE))
        for name in ("eta", "beta", "previous_loss"):  # the range of eta and beta is a matter for each bound
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, as_number(value, name, below=HUGE))
        self._check_ranks()

    def _check_ranks(self) -> None:
        slack = 1 + 1e-12
        for name, value in (("rank_avg", self.rank_avg), ("rank_max", self.rank_max), ("rank_joint", self.rank_joint)):
            if value is not None and self.d is not None and value > self.d * slack:
                raise InvalidInputError(f"{name} = {value:g} is larger than d = {self.d}")
        if self.rank_joint is not None and self.rank_avg is not None:
            most = math.inf if self.T is None else self.T * self.rank_avg * slack
            if not self.rank_avg <= self.rank_joint * slack or self.rank_joint > most:
                raise InvalidInputError(
                    f"rank_joint = {self.rank_joint} must lie between rank_avg = {self.rank_avg:g} and "
                    f"T rank_avg = {most:g}"
                )

    @property
    def scale(self) -> float:
        """|w_0 - w*|^2 R^2."""
        return self.dist_sq * self.radius**2

    @property
    def span(self) -> float | None:
        """The joint rank if it is known, else the best bound on it: min(d, T rank_avg)."""
        if self.rank_joint is not None:
            return float(self.rank_joint)
        if self.T is not None and self.rank_avg is not None:
            rows = self.T * self.rank_avg
            return rows if self.d is None else min(float(self.d), rows)
        return None if self.d is None else float(self.d)

    def trivial(self, quantity: str) -> float | None:
        """What holds without any theorem, because steps do not lengthen the error and L_m <= |X_m|^2 |z|^2 / 2.

        >>> Setting(dist_sq=2, radius=3, radius_sq_mean=5).trivial("loss")
        5.0
        """
        if quantity == "loss" and self.radius_sq_mean is not None:
            return self.radius_sq_mean * self.dist_sq / 2
        if quantity == "residual":
            return self.dist_sq / 2
        if quantity == "objective":
            return None if self.beta is None else self.beta * self.dist_sq / 2
        return self.scale / 2

    @classmethod
    def of(cls, problem: Any, w0: Any = None, scheme: Any = None, ordering: Any = None, **more: Any) -> Setting:
        """Read the parameters off a problem; `more` overrides or adds (sigma, G, previous_loss).

        Regression tasks must be jointly realizable. For a kernel d is unknown, so only bounds in the joint rank apply.

        >>> import forgetting as fg
        >>> s = Setting.of(fg.families.two_lines(0.5))
        >>> s.T, s.d, s.rank_avg, s.rank_joint, round(s.scale, 12), s.eta, s.beta
        (2, 2, 1.0, 2, 1.0, 1.0, 1.0)
        """
        if isinstance(problem, cls):
            step = {} if scheme is None else _step(scheme, problem.radius)
            return replace(problem, **{**step, **more})
        for name in ("eta", "beta"):
            if name in more:
                raise InvalidInputError(
                    f"{name} = {more[name]!r} is a matter of the scheme: give scheme=fg.schemes.SGD(...), or a Setting"
                )
        problem = as_regression(problem)
        base = _regression(problem, w0) if isinstance(problem, LinearTasks) else _sets(problem, w0)
        _, eta, beta = describe_scheme(scheme, problem, base["radius"])
        base.update(eta=eta, beta=beta, weight_ratio=_weight_ratio(problem, ordering))
        return cls(**{**base, **more})


def _step(scheme: Any, radius: float) -> dict[str, float | None]:
    _, eta, beta = describe_scheme(scheme, radius=radius)
    return {"eta": eta, "beta": beta}


def as_regression(problem: Any) -> Any:
    """Affine sets are regression tasks with orthonormal rows: all that is known about those applies."""
    flat = getattr(problem, "regression", None)
    return flat if isinstance(flat, LinearTasks) else problem


def _regression(problem: LinearTasks, w0: Any) -> dict[str, Any]:
    problem.require_realizable("a bound")
    start = np.zeros(problem.dim) if w0 is None else as_vector(w0, problem.dim, "w0")
    gap = problem.geometry.start(start)
    return {
        "T": problem.num_tasks,
        "d": None if isinstance(problem, KernelTasks) else problem.dim,
        "rank_avg": problem.rank_avg,
        "rank_max": problem.rank_max,
        "rank_joint": problem.rank_joint,
        "dist_sq": float(gap @ gap),
        "radius": problem.radius,
        "radius_sq_mean": problem.radius_sq_mean,
        "from_zero": not start.any(),
    }


def _sets(problem: Any, w0: Any) -> dict[str, Any]:
    """Convex sets and classification: R is 1 where the problem has no radius."""
    kind = "classification" if hasattr(problem, "separability") else "sets"
    if isinstance(problem, type) or not hasattr(problem, "num_tasks"):
        raise InvalidInputError(f"expected a problem or a Setting, got {type(problem).__name__}")
    start = np.zeros(problem.dim) if w0 is None else as_vector(w0, problem.dim, "w0")
    if hasattr(problem, "nearest_solution"):
        nearest = problem.nearest_solution(start)
    elif hasattr(problem, "w_star") and not start.any():
        nearest = problem.w_star
    else:
        raise NotSupportedError(
            "the distance from the start to the common solutions is not known for these sets; "
            "pass a Setting(T=..., dist_sq=..., problem='sets') in place of the problem"
        )
    gap = np.asarray(nearest, dtype=np.float64) - start
    return {
        "T": problem.num_tasks,
        "d": problem.dim,
        "dist_sq": float(gap @ gap),
        "radius": float(getattr(problem, "radius", 1.0)),
        "problem": kind,
        "from_zero": not start.any(),
    }


def _weight_ratio(problem: Any, ordering: Any) -> float | None:
    p = _probabilities(problem, ordering)
    if p is None or not isinstance(problem, LinearTasks):
        return None
    alpha = problem.norms**2
    seen = alpha > 0
    if not seen.any():
        return 0.0
    return float(np.max(alpha[seen] / p[seen])) / len(p) if (p[seen] > 0).all() else None


def _probabilities(problem: Any, ordering: Any) -> Any:
    if not isinstance(ordering, WithReplacement) or not hasattr(problem, "num_tasks"):
        return None
    return ordering.law.probabilities(TaskView(problem.num_tasks, getattr(problem, "norms", None)))


def describe_scheme(
    scheme: Any, problem: Any = None, radius: float = 1.0
) -> tuple[frozenset[str], float | None, float | None]:
    """Which schemes of the bounds a scheme is, with its step size and smoothness as SGD where it is SGD.

    For a `Setting` without a scheme: projections, unless it has another step size or smoothness than 1.

    >>> import forgetting as fg
    >>> sorted(describe_scheme(fg.schemes.Kaczmarz())[0])
    ['projection', 'sgd']
    >>> describe_scheme(fg.schemes.SGD(0.1, objective="loss"), radius=2.0)[1:]
    (0.1, 4.0)
    """
    as_kind(scheme, Scheme | None, "a scheme such as fg.schemes.Kaczmarz()")
    if scheme is None and isinstance(problem, Setting) and {problem.eta, problem.beta} - {None, 1.0}:
        return frozenset({"sgd"}), problem.eta, problem.beta
    name = getattr(problem, "natural_scheme", "Kaczmarz") if scheme is None else type(scheme).__name__
    if isinstance(scheme, SGD):
        beta = 1.0 if scheme.objective == "modified" else radius**2
        exact = scheme.objective == "modified" and scheme.step_size == 1
        return frozenset({"sgd", "projection"} if exact else {"sgd"}), float(scheme.step_size), beta
    if name in ("Kaczmarz", "GradientDescent", "POCS"):
        return frozenset({"projection", "sgd"}), 1.0, 1.0
    if name == "WeaklyRegularized":
        return frozenset({"a finite lambda (the rates are those of its limit, POCS)"}), None, None
    return frozenset({name}), None, None


def describe_ordering(ordering: Ordering | str, problem: Any = None, k: int | None = None) -> frozenset[str]:
    """Which orderings of the bounds an ordering is.

    One epoch of reshuffling is an ordering without replacement; weights that happen to be uniform, or proportional to
    the squared norms, count as such.

    >>> from forgetting.orderings import Cyclic, WithReplacement
    >>> sorted(describe_ordering(WithReplacement()))
    ['any', 'i.i.d.', 'with replacement']
    >>> sorted(describe_ordering(Cyclic())), sorted(describe_ordering("cyclic"))
    (['any', 'cyclic'], ['any', 'cyclic'])
    """
    return frozenset({"any", *_tags(ordering, problem, k)})


def _tags(ordering: Ordering | str, problem: Any, k: int | None) -> Iterable[str]:
    if isinstance(ordering, str):
        if ordering not in ORDERINGS:
            raise InvalidInputError(f"ordering must be one of {', '.join(ORDERINGS)}, got {ordering!r}")
        return {ordering, "i.i.d."} if ordering in ("with replacement", "norm-weighted") else {ordering}
    if isinstance(ordering, WithReplacement):
        return {"i.i.d.", *_weights(ordering, problem)}
    if isinstance(ordering, WithoutReplacement):
        return {"without replacement"}
    if isinstance(ordering, Reshuffled):
        tasks = problem.T if isinstance(problem, Setting) else getattr(problem, "num_tasks", None)
        one_epoch = k is not None and tasks is not None and k <= tasks
        return {"without replacement"} if one_epoch else set()
    if isinstance(ordering, Cyclic):
        return {"cyclic"}
    if isinstance(ordering, (GreedyDistance, GreedyResidual)):
        return {"greedy" if ordering.repeat else "greedy single pass"}
    return set()


def _weights(ordering: WithReplacement, problem: Any) -> set[str]:
    p = _probabilities(problem, ordering)
    if p is None:
        if isinstance(ordering, NormWeighted):
            return {"norm-weighted"}
        return {"with replacement"} if ordering.p is None else set()
    found = set()
    if np.allclose(p, 1 / len(p), rtol=1e-12, atol=0):
        found.add("with replacement")
    norms = getattr(problem, "norms", None)
    if norms is not None and norms.any() and np.allclose(p, norms**2 / np.sum(norms**2), rtol=1e-12, atol=0):
        found.add("norm-weighted")
    return found
