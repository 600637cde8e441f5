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
    Gains,
    Layer,
    ScheduledLoss,
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
ALIKE = 1e-9  # relative differences of losses, and of squared norms, that count as none
SOLVED = 1e-26  # a share of the first loss that counts as none
AGREED = 1e-6  # a relative difference of the losses of the search and of `expect`, up to which the search has digits
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
        near: the x whose gain at the largest norm is that of a ridge strength.
        reach: powers of ten by which the gains of single directions are apart from x.
    """

    gains: Gains
    strength: Callable[[Array], Array]
    near: Callable[[Array], Array]
    reach: float = 0.0


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
    (False, True)
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
        return Scheduled([_scheme_of(self.by, strength) for strength in self.strengths.tolist()])

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
            f"best fixed {STRENGTHS[self.by]}: {self.fixed_strength:.4g}",
            f"ridge with R^2 max(1, log k): {self.levinstein_fixed:.6g}",
            self.reason,
        )

    def figure(self) -> Curves:
        """The strength of each step, beside the best fixed one."""
        steps = tuple(float(t) for t in range(1, self.k + 1))
        shown, fixed = tuple(self.strengths.tolist()), (self.fixed_strength,) * self.k
        return Curves(
            "schedule", f"Strengths for the least loss after {self.k} steps", "", "step", STRENGTHS[self.by],
            (
                Series("schedule", steps, shown, label="optimal" if self.certified else "best found"),
                Series("fixed", steps, fixed, role="reference", label="best fixed"),
            ),
            xlog=False,
            ylog=min(*shown, self.fixed_strength) > 0,
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

    E L(w_k) is minimised by its gradient (the adjoint of the second moments, three passes) from eight starts, among
    them the best fixed strength, no regularisation and strengths that increase as in Levinstein et al. 2025; a fixed
    strength is searched on the whole line. The result is never worse than any of these by the values of `fg.expect`.
    It is `certified` in four cases (docs/schedules.md has the proofs): it reaches the least mean loss that any w has;
    one step, of ridge where all singular values are equal; tasks with a common solution and orthogonal rows; and
    uniform draws of tasks of one norm in one dimension. Else it is the best that was found.

    Cost: some hundred gradients, each about 12 k R D^2 products, with R the sum of the ranks: half a second for 10
    tasks with D = 15 and k = 100. Permutations take that for each set of tasks that may have been seen: 13 seconds for
    12 tasks of rank 3 with D = 8.

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
    >>> best.certified, round(best.loss, 6), round(best.unregularised, 6)
    (True, 0.125, 0.25)
    >>> round(float(best.strengths[1]), 3)                               # halfway from the first task to the second
    1.0
    """
    word: Kind = as_word(kind, KINDS, "kind")
    steps = as_count(k, "k", least=1)
    enough = np.finfo(float).max
    request = ask(problem, ordering, steps, Kaczmarz(), w0, "loss", memory=enough, noise=noise).request
    refused = refusal(request, Independent, Permutation, Reshuffled, Fixed)
    if refused is None and request.ordering.skips:
        refused = f"{request.ordering} skips steps"
    if refused is not None:
        raise NotSupportedError(
            f"optimal schedules are for regression tasks and orders that never look at w: {refused}"
        )
    used, moments = _kind(word, request.geometry), float64_map(request)
    loss = ScheduledLoss(moments, _layers(request, moments), used.gains)
    fixed = best_fixed(loss, used.reach)
    named = [Ridge("increasing").fitted_to(problem, steps), Ridge("fixed").fitted_to(problem, steps)]
    lams = [np.array([scheme.at_step(t).penalty for t in range(1, steps + 1)]) for scheme in named]
    optimum = least_scheduled(loss, fixed, [used.near(lam) for lam in (*lams, np.zeros(steps))])

    def valued(scheme: Scheme, k: int = steps) -> tuple[float, float]:
        e = expect(problem, ordering, k, scheme, w0, quantities="loss", patience=np.inf, noise=noise)
        return float(e.loss), float(e.uncertainty["loss"])

    alone, found = float(used.strength(np.array(fixed))), used.strength(optimum.x)
    plain, increasing, by_log = (valued(scheme) for scheme in (Kaczmarz(), *named))
    rivals = [(valued(_scheme_of(word, alone)), np.full(steps, alone))]
    if word == "ridge":  # by rounding alone: all of them were starts
        rivals += [(plain, np.zeros(steps)), (increasing, lams[0]), (by_log, lams[1])]
    elif word == "relaxation":
        rivals.append((plain, np.ones(steps)))
    best_alone = min(rivals[:2] if word != "step" else rivals, key=lambda rival: rival[0])
    (value, doubt), strengths = min(
        [(valued(Scheduled([_scheme_of(word, s) for s in found.tolist()])), found), *rivals], key=lambda rival: rival[0]
    )
    start, _ = valued(Kaczmarz(), 0)
    sound = abs(loss.value(optimum.x) - value) <= AGREED * value + SOLVED * start
    slope = optimum.slope if sound else np.inf  # the slope has no digits where the loss has none
    proof = _proof(request, loss, word, slope, value, doubt, plain[0], start)
    how = (
        f"best found: {optimum.agreeing} of {optimum.searches} searches ended here; a lower loss elsewhere is possible"
        if sound
        else "best found: float64, in which the search computes, has no digits of these losses; rescale the tasks"
    )
    return OptimalSchedule(
        word, strengths, value, doubt, float(best_alone[1][0]), best_alone[0][0], plain[0], increasing[0], by_log[0],
        optimum.slope, proof is not None, proof or how, request.ordering.random,
    )  # fmt: skip


def _layers(request: Request, moments: Float64Moments) -> list[Layer]:
    """What each step may learn."""
    law, k = request.law, request.last
    if isinstance(law, Independent):
        return drawn(moments, k)
    if isinstance(law, Fixed):
        order = Visits(request.ordering, view_of(request.problem), np.random.default_rng(0)).take(k)
        return given(moments, request.geometry.distinct(order))
    nodes, _ = states_needed(request.geometry.counts, min(k, request.geometry.num_tasks))
    if nodes > MOST_NODES:
        raise NotSupportedError(
            f"{nodes:.3g} sets of tasks may be seen under {request.ordering}, and schedules are searched for at most "
            f"{MOST_NODES:.0f}; use fewer tasks, or independent draws"
        )
    return permuted(moments, k)


def _scheme_of(word: Kind, strength: float) -> Scheme:
    """The scheme of a step of this strength."""
    if word == "ridge":
        return Ridge(strength) if strength > 0 else Kaczmarz()
    return SGD(strength, "loss" if word == "step" else "modified")


def _kind(word: Kind, geometry: Geometry) -> _Kind:
    """How strengths of this kind are used. Ridge strengths are measured in the mean size of all singular values."""
    square = geometry.sigma**2
    largest = float(np.max(square, initial=0.0)) or 1.0
    positive = square[square > 0]
    middle = float(np.sqrt(largest) * np.sqrt(np.min(positive, initial=largest)))

    if word == "ridge":
        share = square / middle
        return _Kind(
            Gains(
                lambda x: share * x / (share * x + 1 - x),
                lambda x: share / (share * x + 1 - x) ** 2,
            ),
            lambda x: middle * (1 - x) / x,
            lambda lam: middle / (middle + lam),
            float(np.log10(largest / middle)),
        )
    most = 2 / largest if word == "step" else 2.0
    each = most * square if word == "step" else np.full(len(square), most)
    return _Kind(
        Gains(lambda x: each * x, lambda x: each),
        lambda x: most * x,
        lambda lam: largest / (largest + lam) / 2,
    )


# ------------------------------------------------------------------------------------------------------ what is proved
def _proof(
    request: Request,
    loss: ScheduledLoss,
    word: Kind,
    slope: float,
    value: float,
    doubt: float,
    converged: float,
    start: float,
) -> str | None:
    """Why no strengths have a lower loss; None if that is not known. docs/schedules.md has the proofs."""
    geometry, steps = request.geometry, len(loss.layers)
    if value + doubt <= loss.least() * (1 + ALIKE) + SOLVED * start:
        return "optimal: no w has a smaller mean loss"
    square = geometry.sigma[: geometry.rows_learned] ** 2
    equal = not len(square) or float(np.ptp(square)) <= ALIKE * float(np.max(square))
    if steps == 1 and (word != "ridge" or equal):
        curvature = float(loss.gradient(np.ones(1))[1][0] - loss.gradient(np.zeros(1))[1][0])
        if slope**2 * value <= 2 * ALIKE * curvature:  # the slope of the parabola, squared, over twice its curvature
            return "optimal: after one step the loss is a convex parabola in the gain"
    if word != "step" and request.realizable and value <= converged and _orthogonal(geometry):
        return "optimal: on orthogonal tasks with a common solution each step is best at convergence"
    line = isinstance(request.law, Independent) and geometry.dim == 1 and equal and word != "step"
    if line and value + doubt <= _in_one_dimension(request, loss) * (1 + ALIKE):
        return "optimal: in one dimension the gain v/(v + s^2) of each step is best, v the variance so far"
    return None


def _orthogonal(geometry: Geometry) -> bool:
    """Whether directions of different tasks are orthogonal, but for rounding."""
    rows = geometry.rows[: geometry.rows_learned]
    if len(rows) > geometry.dim:
        return False
    owner = geometry.owner[: len(rows)]
    between = np.abs(rows @ rows.T)[owner[:, None] != owner]
    return float(np.max(between, initial=0.0)) <= PARALLEL


def _in_one_dimension(request: Request, loss: ScheduledLoss) -> float:
    """The least E L(w_k) of uniform draws of tasks of one norm in one dimension; infinite for other draws.

    A step of gain g turns the variance v = E|z - c|^2 about the mean c of the targets into (1-g)^2 v + g^2 s^2, where
    s^2 is the variance of the targets: at least v s^2/(v + s^2), which grows with v.
    """
    geometry = request.geometry
    share = geometry.counts / geometry.num_tasks
    if not np.allclose(loss.moments.probability[0], share, rtol=ALIKE, atol=0):
        return np.inf
    weights, targets = share[geometry.owner], np.atleast_2d(geometry.targets) * geometry.rows[:, 0]
    learned = float(weights.sum())  # a task of norm 0 leaves w where it is
    centre = targets @ weights / learned
    spread = float(np.sum((targets - centre[:, None]) ** 2 @ weights)) / learned
    v = float(np.sum((np.atleast_2d(geometry.start(request.w0))[:, 0] - centre) ** 2))
    for _ in loss.layers:
        v = (1 - learned) * v + learned * (v * spread / (v + spread) if spread > 0 else 0.0)
    return learned * float(geometry.sigma[0]) ** 2 / 2 * (v + spread) + float(share @ geometry.unexplained)
