"""`optimal_weights`: the best probabilities of independent draws of the tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_count, as_word
from forgetting.dynamics.space import view_of
from forgetting.errors import ForgettingError, InvalidInputError, NotSupportedError
from forgetting.expectation.api import ask, expect
from forgetting.expectation.decay import least_decay, rate_of
from forgetting.expectation.engines.exact import float64_map, refusal
from forgetting.expectation.least_loss import ExpectedLoss, least_loss
from forgetting.expectation.request import Request
from forgetting.figures.items import Bars
from forgetting.files.records import checked_fields
from forgetting.orderings import NormWeighted, WithReplacement
from forgetting.orderings.laws import Independent
from forgetting.results import Result
from forgetting.schemes.base import SchemeLike
from forgetting.tasks import Problem

__all__ = ["OptimalWeights", "optimal_weights"]

GOALS = ("decay", "loss")


@dataclass(frozen=True, eq=False, repr=False)
class OptimalWeights(Result):
    """Weights of independent draws, and the values of the goal with these, uniform and norm-weighted weights.

    Attributes:
        goal: "decay", the factor by which the squared error falls per step in the long run, or "loss", E L(w_k).
        k: the number of steps; None for "decay".
        probabilities: p_m of each task; clones share theirs equally.
        value: the rate, or E L(w_k), with these weights.
        least: a bound that no weights go below; None where none is known.
        uniform, norm_weighted: the value with equal weights, and with weights in proportion to squared spectral norms.
        method: "cutting planes", "local searches" or "best single task".
        detail: the quality of the result, in words.
        gap: `value` less `least` where that is known; else how much log E L falls, to first order, if all weight moves
            to the best single task. 0 at a minimum.
        names: of the tasks.

    >>> import forgetting as fg
    >>> best = fg.optimal_weights(fg.families.orthogonal(3))
    >>> round(float(fg.expect(fg.families.orthogonal(3), best.ordering, k=3).loss), 6)   # (2/3)^3 / 6
    0.049383
    """

    kind = "optimal weights"

    goal: Literal["decay", "loss"]
    k: int | None
    probabilities: Array
    value: float
    least: float | None
    uniform: float
    norm_weighted: float
    method: str
    detail: str
    gap: float
    names: tuple[str, ...]

    @property
    def ordering(self) -> WithReplacement:
        """Independent draws with these weights."""
        return WithReplacement(p=self.probabilities)

    @property
    def what(self) -> str:
        """The goal in words."""
        return "decay rate" if self.k is None else f"expected loss after {self.k} {'step' if self.k == 1 else 'steps'}"

    @property
    def headline(self) -> str:
        """The goal, and its value with three kinds of weights."""
        return (
            f"Weights for the least {self.what}: {self.value:.6g} "
            f"(uniform {self.uniform:.6g}, norm-weighted {self.norm_weighted:.6g})"
        )

    def _num_rows(self) -> int:
        return len(self.probabilities)

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Sequence[Any]]:
        columns: dict[str, Any] = {"task": rows.tolist()}
        if self.names != tuple(map(str, range(len(self.names)))):
            columns["name"] = [self.names[row] for row in rows.tolist()]
        return columns | {"probability": self.probabilities[rows].tolist()}

    def _remarks(self) -> tuple[str, ...]:
        bound = () if self.least is None else (f"no weights go below {self.least:.6g}",)
        return (*bound, f"method: {self.method}, {self.detail}")

    def figure(self) -> Bars:
        """The probability of each task, beside equal probabilities."""
        return Bars(
            "weights", f"Weights for the least {self.what}", "", "probability", self.names,
            tuple(self.probabilities.tolist()), line=1 / len(self.names), line_name="uniform", log=False,
        )  # fmt: skip

    @classmethod
    def _restored(cls, values: dict[str, Any]) -> Self:
        made = cls(**checked_fields(cls, values))
        if made.probabilities.shape != (len(made.names),):
            raise ForgettingError("the number of probabilities is not that of the names of tasks")
        return made


def optimal_weights(
    problem: Problem,
    goal: Literal["decay", "loss"] = "decay",
    k: int | None = None,
    scheme: SchemeLike | None = None,
    w0: Any = None,
) -> OptimalWeights:
    """The probabilities of independent draws with the best exact decay rate, or the least expected loss after k steps.

    Goal "decay": the least `decay_rate`, the largest eigenvalue of Q[A] = sum_m p_m S_m A S_m, where learning task m
    multiplies the error by S_m (Agaskar, Wang and Lu 2014 for single rows). The rate is convex in p. Cutting planes
    give the optimum and the bound `least`, mostly within 1e-6 of each other, so the optimum is global. Where no w
    solves all tasks, E|w_k - v_k|^2 falls at this rate for two runs w and v from different starts with the same draws;
    means and second moments then approach their stationary values at least as fast as its root. Lengths of rows do not
    matter to projections, so that norm-weighted draws are not the best in general.

    Goal "loss": the least E L(w_k), a polynomial of degree k in p, with or without a w that solves all tasks. It is
    linear for k = 1, where one task is the best (ties go to the first). For k > 1 it is not convex in general: lines
    through (0.1, 0) and (1, 1) from z = (1, 0) have a concave one for k = 2. So the result is the best of several local
    searches (from uniform and norm-weighted draws, the weights for "decay", single tasks, random weights of a fixed
    seed), never worse than any start, and `least` is None. The same call always gives the same weights.

    Cost: "decay" takes about 100 Lanczos runs on matrices of order D: 2 seconds for 50 tasks of rank 2 with D = 60.
    "loss" takes a few hundred gradients of about 6 k R D^2 products each, with R the sum of the ranks: a second for
    10 tasks with D = 15 and k = 100, minutes for 50 tasks with D = 60 and k = 1000.

    Args:
        problem: regression or kernel tasks.
        goal: "decay" or "loss".
        k: the number of steps, for the goal "loss".
        scheme: any linear scheme; None for the natural one of the problem.
        w0: the start, for the goal "loss"; 0 if left out.

    >>> import forgetting as fg
    >>> tasks = fg.RegressionTasks([[[1, 0]], [[1, 0]], [[0, 5]]], [[1], [1], [0]])
    >>> best = fg.optimal_weights(tasks)
    >>> best.probabilities.round(5).tolist(), round(best.value, 5), round(best.uniform, 5)
    ([0.25, 0.25, 0.5], 0.5, 0.66667)
    >>> fg.optimal_weights(tasks, "loss", k=2).probabilities.round(5).tolist()   # the last task is solved by w_0
    [0.5, 0.5, 0.0]
    """
    if as_word(goal, GOALS, "goal") == "loss" and k is None:
        raise InvalidInputError("the goal 'loss' needs k, the number of steps after which the loss is least")
    if goal == "decay" and k is not None:
        raise InvalidInputError(
            f"the goal 'decay' is about the long run and takes no k, got {k!r:.40}; use goal='loss'"
        )
    if goal == "decay" and w0 is not None:
        raise InvalidInputError("the goal 'decay' is the same from all starts: leave out w0, or use goal='loss'")
    steps = None if k is None else as_count(k, "k", least=1)
    request = ask(problem, WithReplacement(), steps or 1, scheme, w0, "loss", memory=np.finfo(float).max).request
    reason = refusal(request, Independent, alike=True)
    if reason is not None:
        raise NotSupportedError(f"optimal weights are those of a linear scheme: {reason}")
    return _for_decay(request) if steps is None else _for_loss(request, steps)


def _for_decay(request: Request) -> OptimalWeights:
    moments = float64_map(request, homogeneous=True)
    uniform, weighted = _distinct(request, _uniform(request)), _distinct(request, _by_norms(request))
    optimum = least_decay(moments, uniform)
    candidates = {name: rate_of(moments, p) for name, p in (("uniform", uniform), ("norms", weighted))}
    rate, weights = rate_of(moments, optimum.weights), optimum.weights
    for p, value in ((uniform, candidates["uniform"]), (weighted, candidates["norms"])):
        if value < rate:
            rate, weights = value, p
    least = min(optimum.least, rate)
    detail = f"{optimum.cuts} cuts leave a gap of {rate - least:.1g} to the least possible rate"
    return OptimalWeights(
        "decay", None, _shared(request, weights), rate, least, candidates["uniform"], candidates["norms"],
        "cutting planes", detail, rate - least, tuple(request.problem.names),
    )  # fmt: skip


def _for_loss(request: Request, k: int) -> OptimalWeights:
    moments = float64_map(request)
    loss = ExpectedLoss(moments, k)
    uniform, weighted = _uniform(request), _by_norms(request)
    starts = [_distinct(request, uniform), _distinct(request, weighted)]
    if k > 1:
        starts.append(least_decay(float64_map(request, homogeneous=True), starts[0]).weights)
    optimum = least_loss(loss, starts)
    values = {"uniform": _exact_loss(request, k, uniform), "norms": _exact_loss(request, k, weighted)}
    p = _shared(request, optimum.weights)
    value, slope = _exact_loss(request, k, p), optimum.slope
    for other, reached in ((uniform, values["uniform"]), (weighted, values["norms"])):
        if reached < value:  # by rounding alone: both were starts
            value, p = reached, other
    if k == 1:
        method, detail, least = "best single task", "after one step the loss is linear in the weights", value
    else:
        method, least = "local searches", None
        detail = (
            f"{optimum.agreeing} of {optimum.searches} searches ended here; to first order, moving weight to one task "
            f"lowers the logarithm of the loss by at most {slope:.1g}; a lower minimum elsewhere is possible"
        )
    return OptimalWeights(
        "loss", k, p, value, least, values["uniform"], values["norms"], method, detail, slope,
        tuple(request.problem.names),
    )  # fmt: skip


def _exact_loss(request: Request, k: int, p: Array) -> float:
    """E L(w_k), with the digits of `expect`."""
    ordering = WithReplacement(p=p)
    expectation = expect(request.problem, ordering, k, request.scheme, request.w0, method="moments", quantities="loss")
    return float(expectation.loss)


def _uniform(request: Request) -> Array:
    return np.full(request.problem.num_tasks, 1 / request.problem.num_tasks)


def _by_norms(request: Request) -> Array:
    """The norm-weighted probabilities; equal ones where all tasks are zero."""
    view = view_of(request.problem)
    return NormWeighted().probabilities(view) if view.norms is not None and view.norms.any() else _uniform(request)


def _distinct(request: Request, p: Array) -> Array:
    """The weights of distinct tasks: clones summed."""
    return np.bincount(request.geometry.index, p, request.geometry.num_distinct).astype(np.float64)


def _shared(request: Request, weights: Array) -> Array:
    """The weight of each task: clones share theirs equally."""
    index = request.geometry.index
    return np.asarray((weights / np.maximum(np.bincount(index, minlength=len(weights)), 1))[index])
