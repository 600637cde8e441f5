"""`optimal_schedule`: the strength of each step with which the exact expected loss after k steps is least."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_count, as_word
from forgetting.dynamics.space import view_of
from forgetting.errors import ForgettingError, NotSupportedError
from forgetting.expectation.api import ask, expect
from forgetting.expectation.engines.costs import states_needed
from forgetting.expectation.engines.exact import float64_map, refusal
from forgetting.expectation.engines.float64_moments import Float64Moments
from forgetting.expectation.request import Request
from forgetting.expectation.scheduled_loss import (
    LOWEST,
    Gains,
    Layer,
    ScheduledLoss,
    ScheduleOptimum,
    best_fixed,
    drawn,
    given,
    least_scheduled,
    permuted,
)
from forgetting.figures.items import Curves, Series
from forgetting.files.records import checked_fields
from forgetting.geometry import Geometry
from forgetting.orderings.base import OrderingLike, Visits
from forgetting.orderings.laws import Fixed, Independent, Permutation, Reshuffled
from forgetting.results import Result
from forgetting.schemes import SGD, Kaczmarz, Ridge, Scheduled, Scheme
from forgetting.tasks import Problem

__all__ = ["OptimalSchedule", "optimal_schedule"]

KINDS = ("ridge", "step", "relaxation")
MOST_NODES = 2.0**16  # multisets of tasks that a pass over permutations may go through
PARALLEL = 1e-12  # inner products of directions of different tasks that are rounding
STRENGTHS = {"ridge": "lambda", "step": "step size", "relaxation": "relaxation"}

Kind = Literal["ridge", "step", "relaxation"]


class BestFixed(NamedTuple):
    """The best strength that is the same in all steps, and E L(w_k) with it."""

    strength: float
    loss: float


class _Kind(NamedTuple):
    """How a strength x in [0, 1] is used: x = 0 leaves a task out; at x = 1 of ridge a task is learned to convergence.

    Attributes:
        gains: of all directions.
        strength: the number that users know, of x.
        scheme: the scheme of a step, of that number.
        near: the x whose gain at the largest norm is that of a ridge strength.
    """

    gains: Gains
    strength: Callable[[Array], Array]
    scheme: Callable[[float], Scheme]
    near: Callable[[Array], Array]


@dataclass(frozen=True, eq=False, repr=False)
class OptimalSchedule(Result):
    """The strengths of k steps with the least expected loss, and the losses of simpler ones.

    All losses are values of `fg.expect`; `uncertainty` bounds the error of the first.

    Attributes:
        by: "ridge", "step" or "relaxation": what the strengths are.
        strengths: of steps 1, ..., k; for ridge 0 learns a task to convergence, and a larger one moves w less.
        loss: E L(w_k) with them.
        uncertainty: a bound on its error.
        fixed_strength, fixed_loss: the best strength that is the same in all steps; `fixed` has both.
        unregularised: E L(w_k) where each task is learned to convergence.
        levinstein: E L(w_k) with the increasing ridge strengths, `Ridge("increasing")`.
        levinstein_fixed: E L(w_k) with the fixed one, `Ridge("fixed")`.
        gradient: the norm of the gradient of log E L by the strengths on the scale of the search, without what leads
            out of their range; 0 at a minimum.
        certified: whether no strengths go below `loss`, but for rounding.
        reason: why the schedule is optimal, or how it was found.
        random: whether the order is random.

    >>> import forgetting as fg
    >>> best = fg.optimal_schedule(fg.families.two_lines(0.5), "with-replacement", k=20)
    >>> best.certified, best.loss < best.fixed.loss <= best.unregularised
    (False, True, True)
    >>> run = fg.run(fg.families.two_lines(0.5), "with-replacement", 20, best.scheme)
    """

    kind = "optimal schedule"
    _along = True

    by: Kind
    strengths: Array
    loss: float
    uncertainty: float
    fixed_strength: float
    fixed_loss: float
    unregularised: float
    levinstein: float
    levinstein_fixed: float
    gradient: float
    certified: bool
    reason: str
    random: bool

    @property
    def k(self) -> int:
        """The number of steps."""
        return len(self.strengths)

    @property
    def fixed(self) -> BestFixed:
        """The best strength that is the same in all steps, and its loss."""
        return BestFixed(self.fixed_strength, self.fixed_loss)

    @property
    def scheme(self) -> Scheduled:
        """The scheme that learns step t at the t-th strength."""
        return Scheduled([scheme_of(self.by, strength) for strength in self.strengths.tolist()])

    @property
    def headline(self) -> str:
        """The loss, and those of simpler strengths."""
        steps = f"{self.k} {'step' if self.k == 1 else 'steps'}"
        name = "Optimal schedule" if self.certified else "Best schedule found"
        return (
            f"{name} ({STRENGTHS[self.by]}): {'expected ' if self.random else ''}loss {self.loss:.6g} after {steps} "
            f"(best fixed strength {self.fixed_loss:.6g}, no regularisation {self.unregularised:.6g}, "
            f"increasing {self.levinstein:.6g})"
        )

    def _num_rows(self) -> int:
        return self.k

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Sequence[Any]]:
        return {"step": (rows + 1).tolist(), STRENGTHS[self.by]: self.strengths[rows].tolist()}

    def _remarks(self) -> tuple[str, ...]:
        return (
            f"best fixed {STRENGTHS[self.by]}: {self.fixed_strength:.4g}; fixed as R^2 log k: {self.levinstein_fixed:.6g}",
            self.reason,
        )

    def figure(self) -> Curves:
        """The strength of each step, beside the best fixed one."""
        steps = tuple(float(t) for t in range(1, self.k + 1))
        shown = tuple(s if s > 0 else None for s in self.strengths.tolist())
        fixed = (self.fixed_strength or None,) * self.k
        return Curves(
            "schedule", f"Strengths for the least loss after {self.k} steps", "", "step", STRENGTHS[self.by],
            (
                Series("schedule", steps, shown, label="optimal" if self.certified else "best found"),
                Series("fixed", steps, fixed, role="reference", label="best fixed"),
            ),
            xlog=False,
        )  # fmt: skip

    @classmethod
    def _restored(cls, values: dict[str, Any]) -> Self:
        made = cls(**checked_fields(cls, values))
        if made.by not in KINDS or made.strengths.ndim != 1 or not len(made.strengths):
            raise ForgettingError("the strengths are not one number for each step of a known kind")
        return made


def optimal_schedule(
    problem: Problem,
    ordering: OrderingLike,
    k: int,
    kind: Kind = "ridge",
    w0: Any = None,
    noise: Any = None,
) -> OptimalSchedule:
    """The strength of each of k steps with which E L(w_k) is least, L the mean loss of all tasks.

    Kind "ridge": step t is argmin_w L_m(w) + lambda_t/2 |w - w_(t-1)|^2. Kind "step": a gradient step of size eta_t on
    the loss of the task, 0 < eta_t <= 2/R^2. Kind "relaxation": w moves eta_t times the way to the nearest solution,
    0 < eta_t <= 2. The strengths depend on the step alone, not on the task that comes.

    The orders are independent draws (any weights), permutations, with or without epochs (up to 65536 sets of tasks
    seen: about 15 different tasks), and orders that are given. Tasks need no common solution. The least forgetting is
    not looked for: whoever learns nothing forgets nothing.

    E L(w_k) is minimised by its gradient (the adjoint of the second moments, three passes) from six or more starts,
    among them the best fixed strength, no regularisation and the increasing strengths of Levinstein et al. 2025; a fixed
    strength is searched on the whole line. The result is never worse than any of these by the values of `fg.expect`. It
    is `certified` in four cases (docs/schedules.md has the proofs): it reaches the least mean loss that any w has; one
    step by "step" or "relaxation"; one step by "ridge" where all singular values are equal; and ridge on tasks that
    have a common solution and orthogonal rows. Else it is the best that was found.

    Cost: some hundred gradients, each about 12 k R D^2 products, with R the sum of the ranks: half a second for 10 tasks
    with D = 15 and k = 100. Permutations take the number of sets of tasks times that of a step.

    Args:
        problem: regression or kernel tasks.
        ordering: as for `expect`.
        k: the number of steps.
        kind: what the strength is.
        w0: the start; 0 if left out.
        noise: of the labels, as for `expect`.

    >>> import forgetting as fg
    >>> apart = fg.RegressionTasks([[[1.0]], [[1.0]]], [[0.0], [1.0]])   # no w solves both: the mean of the two is best
    >>> best = fg.optimal_schedule(apart, [0, 1], k=2)
    >>> best.certified, round(best.loss, 9), round(best.unregularised, 9)
    (True, 0.125, 0.25)
    >>> best.strengths[1].round(4)                                       # halfway from the first task to the second
    1.0
    """
    word = as_word(kind, KINDS, "kind")
    steps = as_count(k, "k", least=1)
    question = ask(
        problem, ordering, steps, Kaczmarz(), w0, "loss", memory=np.finfo(float).max, noise=noise
    )
    request = question.request
    reason = refusal(request, Independent, Permutation, Reshuffled, Fixed)
    if reason is not None:
        raise NotSupportedError(f"optimal schedules are for regression tasks in orders that do not look at w: {reason}")
    geometry = request.geometry
    moments = float64_map(request)
    used = _kind(word, geometry)
    loss = ScheduledLoss(moments, _layers(request, moments, steps), used.gains)
    fixed = best_fixed(loss)
    size = float(np.max(geometry.sigma, initial=0.0)) ** 2 or 1.0
    starts = [used.near(_ridge_strengths(name, problem, steps)) for name in ("increasing", "fixed")]
    if word != "ridge":
        starts.append(used.near(np.zeros(steps)))
    optimum = least_scheduled(loss, fixed, starts)

    def exact(scheme: Scheme) -> tuple[float, float]:
        given_order = request.ordering if request.ordering.random else ordering
        value = expect(problem, given_order, steps, scheme, w0, quantities="loss", patience=np.inf, noise=noise)
        return float(value.loss), float(np.asarray(value.uncertainty["loss"]))

    def of(x: Array) -> Array:
        return used.strength(np.where(x <= LOWEST, LOWEST, x))

    strengths, fixed_strength = of(optimum.x), float(of(np.array([fixed]))[0])
    value, doubt = exact(Scheduled([used.scheme(s) for s in strengths.tolist()]))
    plain = {"fixed": exact(used.scheme(fixed_strength)), "none": exact(Kaczmarz())}
    theirs = {name: exact(Ridge(name)) for name in ("increasing", "fixed")}
    ...
