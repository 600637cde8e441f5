"""The hunt: the problem on which a statement has the least slack, and whether that is a counterexample.

Two thirds of the budget go to fresh problems (structured families, then random ones). Up to a sixth goes to the record
of the claim and to tasks that are known to be worst, and the rest to neighbours of the best, with steps that grow after
a success and shrink after failures. What float64 calls a violation is computed again at 50 digits before it is called
one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from forgetting.core.arrays import IntArray, Seed, as_count, as_number, seed_from
from forgetting.core.progress import progress_bar
from forgetting.errors import ForgettingError, InvalidInputError, NotSupportedError
from forgetting.figures.items import Curves, Series, column, spread_steps
from forgetting.files.records import add_codec, dataclass_codec
from forgetting.results import Result
from forgetting.theory.candidates import ANY, by_hand, complexity, known_starts, mutate, shrunk
from forgetting.theory.instance import Instance
from forgetting.theory.sizes import Sizes
from forgetting.theory.verdict import Verdict

if TYPE_CHECKING:
    from forgetting.theory.claim import Claim


@dataclass
class BranchReach:
    """One branch of a minimum.

    Attributes:
        share: the largest share of the branch that the left side exceeds for sure.
        binding: problems on which the branch is the minimum, and below the trivial value.
    """

    share: float = 0.0
    binding: int = 0


@dataclass
class HuntReach:
    """The share of the right side that the problems of a hunt reach, gathered from their verdicts by `add`.

    Attributes:
        problems: how many verdicts there were.
        share: the largest share of the right side that the left side exceeds for sure: the statement with a constant
            smaller than this share of its own is violated. None where no right side had a constant.
        telling: problems on which the right side was below the trivial value, so that the statement said something;
            None where no trivial value is known.
        share_telling: `share` on those.
        branches: the same for each branch of a minimum, by its name.

    >>> import forgetting as fg
    >>> case = fg.claims.Instance(fg.families.two_lines(0.1), fg.orderings.WithReplacement(), k=300)
    >>> reach = HuntReach()
    >>> reach.add(fg.claims.get("thm:cl_by_sgd_main", "loss").check(case))
    >>> reach.problems, reach.telling, 0 < reach.share < 0.01
    (1, 1, True)
    """

    problems: int = 0
    share: float | None = None
    telling: int | None = None
    share_telling: float = 0.0
    branches: dict[str, BranchReach] = field(default_factory=dict)

    def add(self, verdict: Verdict) -> None:
        """Take in one more verdict."""
        self.problems += 1
        share = verdict.reached()
        if share is not None:
            self.share = max(self.share or 0.0, share)
        right = verdict.right
        if right is None or (trivial := right.trivial) is None:
            return
        self.telling = self.telling or 0
        telling = verdict.decided and verdict.rhs < trivial * (1 - 1e-12)
        if telling:
            self.telling += 1
            self.share_telling = max(self.share_telling, share or 0.0)
        values = right.branch_values
        for name, value in values.items():
            branch = self.branches.setdefault(name, BranchReach())
            branch.share = max(branch.share, verdict.reached(value) or 0.0)
            branch.binding += telling and value <= min(values.values())


add_codec(dataclass_codec(BranchReach, "branch-reach"))
add_codec(dataclass_codec(HuntReach, "reach"))


Outcome = Literal["holds", "refuted", "suspected", "not applicable"]
_Scored: TypeAlias = tuple[float, Verdict, Instance]
FRESH = 2 / 3  # of the budget
MOST_POINTS = 200  # of a curve
MOST_CONFIRMED = 5  # candidates computed again at 50 digits
CLEARLY = 0.01  # by how much a simple counterexample exceeds, where the worst one does
REDRAWN = 30  # times, for a problem that can only be taken as it is
MOST_MOVED = 400  # numbers of a problem, roughly, up to which its neighbours are tried


@dataclass(frozen=True, eq=False, repr=False)
class Hunt(Result):
    """The result of a hunt.

    Attributes:
        claim: what was hunted.
        verdict: both sides at the worst instance; at 50 digits if that is what refuted it.
        instance: the worst instance, None if the claim applied to nothing that was tried.
        tried: evaluations, those to which the claim did not apply included.
        checked: instances on which both sides were computed.
        outcome: holds on all; refuted (confirmed at 50 digits); suspected (a violation in float64 that could not be
            confirmed that way); not applicable.
        noise: violations in float64 that 50 digits did not confirm.
        cut_short: the time ran out before the budget.
        scores: for each problem on which both sides were computed, the ratio of an inequality or the residual of an
            equality, in the order of the hunt.
        reach: how much of the right side was used on all that was checked, and where that side said anything.
        fixed: the sizes that the hunt was confined to, such as "T = 3, k = 2"; empty if it was not.

    >>> import forgetting as fg
    >>> found = fg.claims.get("cor:dimensionality_bound", "rank equality").hunt(budget=60)
    >>> found.outcome, found.verdict.how
    ('refuted', 'rationals')
    """

    kind = "hunt"

    claim: Claim
    verdict: Verdict | None
    instance: Instance | None
    tried: int
    checked: int
    outcome: Outcome
    seed: int
    noise: int = 0
    cut_short: bool = False
    reach: HuntReach = field(default_factory=HuntReach)
    scores: tuple[float, ...] = ()
    fixed: str = ""

    @property
    def headline(self) -> str:
        return f"Hunt of {self.claim.name}{f' at {self.fixed}' if self.fixed else ''}: {self.outcome}"

    def _num_rows(self) -> int:
        return 1

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Any]:
        lhs, rhs = (None, None) if self.verdict is None else (self.verdict.lhs, self.verdict.rhs)
        worst = max(self.scores, default=None)
        row = {"outcome": self.outcome, "tried": self.tried, "checked": self.checked, "worst": worst}
        row |= {"left side": lhs, "right side": rhs, "seed": self.seed}
        return {name: [value] for name, value in row.items()}

    def _remarks(self) -> tuple[str, ...]:
        return (self.finding,)

    def figure(self) -> Curves | None:
        """The score of the worst problem so far against the number of problems checked."""
        if len(self.scores) < 2:
            return None
        worst = np.maximum.accumulate(self.scores)
        at = spread_steps(len(worst), MOST_POINTS)
        name = "largest ratio" if self.claim.kind == "inequality" else "largest residual"
        series = [Series(name, column(at), column(worst[at - 1]), group=0)]
        if self.claim.kind == "inequality":
            ends = float(at[0]), float(at[-1])
            series.append(Series("the statement: at most 1", ends, (1.0, 1.0), role="reference"))
        return Curves("hunt", self.headline, "", "problems checked", name, tuple(series), ylog=bool(worst[0] > 0))

    @cached_property
    def simplest(self) -> Instance | None:
        """The simplest instance that refutes the claim as surely as the worst one, to be checked by hand.

        Looked for when first asked for, in seconds: among instances made by hand, and by making the worst one simpler.
        None unless the claim is refuted or suspected.

        >>> import forgetting as fg
        >>> case = fg.claims.get("cor:dimensionality_bound", "rank equality").hunt(budget=60).simplest
        >>> [matrix.tolist() for matrix, _ in map(case.tasks.task, range(2))]  # two clones have joint rank 1, not 2
        [[[1.0]], [[1.0]]]
        """
        if self.instance is None or self.outcome not in ("refuted", "suspected"):
            return None
        return _simplest(self.claim, self.instance)

    @property
    def finding(self) -> str:
        """The result in words."""
        if self.verdict is None or self.instance is None:
            return f"applies to none of {self.tried} problems"
        if self.outcome == "holds":
            among = f" with {self.fixed}" if self.fixed else ""
            text = f"holds on {self.checked} problems{among}, worst {self.verdict.measure} at {self.instance}"
        else:
            text = f"{self.outcome} by {self.instance}: {self.verdict.lhs:.4g} against {self.verdict.rhs:.4g}"
        return text + (f" (cut short after {self.tried})" if self.cut_short else "")

    def __str__(self) -> str:
        return f"{self.claim.heading}: {self.finding}"


def score(verdict: Verdict) -> float:
    """The score that a hunt maximises: the ratio of an inequality, the residual of an equality.

    A ratio of negative sides says nothing: the excess relative to their size is used there, and 0 for sides that are
    no larger than their rounding errors, and for a residual that simulation explains.
    """
    if verdict.kind == "equality":
        return 0.0 if verdict.holds and verdict.coarse else verdict.residual
    size = max(abs(verdict.lhs), abs(verdict.rhs))
    if verdict.holds and size <= 100 * verdict.doubt:
        return 0.0
    if verdict.rhs > 0 and verdict.lhs >= 0:
        return verdict.ratio
    return 1 - verdict.slack / size


def search(
    claim: Claim,
    seed: Seed = 0,
    budget: int = 2000,
    seconds: float | None = None,
    sizes: Sizes = ANY,
    *,
    known: bool = True,
) -> Hunt:
    """Hunt one claim; see `Claim.hunt`."""
    seed, budget = seed_from(seed), as_count(budget, "budget", least=1)
    deadline = math.inf if seconds is None else monotonic() + as_number(seconds, "seconds", above=0)
    tried, reach = 0, HuntReach()
    best: _Scored | None = None
    moving: _Scored | None = None  # the best of those whose neighbours are tried
    violations: list[_Scored] = []
    scores: list[float] = []
    refused = ""  # why the first problem that was refused was refused

    def attempt(make: Callable[[], Instance]) -> bool:
        """Make an instance and check it, where the claim applies; whether it is the best to move on from so far."""
        nonlocal best, moving, refused
        try:
            instance = claim.settle(make())
            if not sizes.fits(instance):
                raise NotSupportedError(f"{claim.key} applies to other sizes than {sizes}, such as {instance}")
            verdict = claim.check(instance)
        except (ForgettingError, np.linalg.LinAlgError) as error:
            refused = refused or str(error)
            return False
        if not (math.isfinite(verdict.lhs) and math.isfinite(verdict.rhs)):
            return False
        reach.add(verdict)
        scored = score(verdict), verdict, instance
        scores.append(scored[0])
        if not verdict.holds:
            violations.append(scored)
            violations.sort(key=lambda violation: -violation[0])
            del violations[MOST_CONFIRMED:]
        if best is None or scored[0] > best[0]:
            best = scored
        if (moving is None or scored[0] > moving[0]) and _movable(instance):
            moving = scored
            return True
        return False

    def neighbour(step: int, of: Instance, size: float) -> Instance:
        rng = np.random.default_rng([seed, step, 1])
        return sizes.fitted(rng, mutate(rng, of, size))

    fresh = max(1, int(FRESH * budget))
    with progress_bar("hunt") as report:
        for index in range(fresh):
            if monotonic() > deadline:
                break
            tried += 1
            attempt(partial(_drawn, claim, seed, index, sizes))
            report("fresh problems", tried, budget)
        for start in islice(known_starts(claim, seed, sizes), (budget - fresh) // 2 if known else 0):
            if monotonic() > deadline:
                break
            tried += 1
            attempt(partial(sizes.fitted, np.random.default_rng([seed, tried, 3]), start.instance))
            report("tasks known to be worst", tried, budget)
        size = 0.3
        while tried < budget and moving is not None and monotonic() <= deadline:
            tried += 1
            better = attempt(partial(neighbour, tried, moving[2], size))
            size = min(0.5, 1.5 * size) if better else max(1e-4, 0.97 * size)
            report("neighbours of the worst", tried, budget)
    if sizes and not reach.problems:
        raise InvalidInputError(f"{claim.key} was checked on no problem with {sizes}: {refused}")
    outcome, worst, noise = _judged(claim, best, violations)
    verdict, instance = worst or (None, None)
    return Hunt(
        claim,
        verdict,
        instance,
        tried,
        reach.problems,
        outcome,
        seed,
        noise,
        cut_short=tried < budget and monotonic() > deadline,
        reach=reach,
        scores=tuple(scores),
        fixed=str(sizes),
    )


def _drawn(claim: Claim, seed: int, index: int, sizes: Sizes) -> Instance:
    """The problem of this number, with the sizes; problems that cannot be given them are drawn again."""
    rng = np.random.default_rng([seed, index])
    try:
        return sizes.fitted(rng, claim.draw(rng, index))
    except NotSupportedError as error:
        for again in range(REDRAWN):
            rng = np.random.default_rng([seed, index, 2, again])
            with suppress(ForgettingError):
                return sizes.fitted(rng, claim.draw(rng, int(rng.integers(1, 10**4))))
        raise error from None


def _movable(instance: Instance) -> bool:
    problem = instance.problem
    if problem is None:
        return True
    numbers = problem.num_tasks * problem.dim if problem.linear is None else problem.linear.geometry.rows.size
    return max(numbers, problem.dim) <= MOST_MOVED


def _judged(
    claim: Claim, best: _Scored | None, violations: list[_Scored]
) -> tuple[Outcome, tuple[Verdict, Instance] | None, int]:
    """The outcome, by which verdict and instance, and how many violations 50 digits did not confirm."""
    noise = 0
    suspected: tuple[Verdict, Instance] | None = None
    for _, verdict, instance in violations:
        again = None if verdict.disputed else claim.confirm(instance)
        if again is None:
            suspected = suspected or (verdict, instance)
        elif not again.holds:
            return "refuted", (again, instance), noise
        else:
            noise += 1
    if suspected is not None:
        return "suspected", suspected, noise
    return ("not applicable", None, noise) if best is None else ("holds", best[1:], noise)


def simplest_by_hand(claim: Claim) -> Instance | None:
    """The simplest of the instances made by hand that refutes the claim; None if none of them does.

    >>> import forgetting as fg
    >>> simplest_by_hand(fg.claims.get("cor:dimensionality_bound", "rank equality")).tasks.num_tasks
    2
    """
    refuting = _by_hand(claim, lambda instance: not claim.check(instance).holds)
    return min(refuting, key=complexity, default=None)


def _by_hand(claim: Claim, refutes: Callable[[Instance], bool]) -> list[Instance]:
    refuting = []
    for instance in by_hand():
        try:
            instance = claim.settle(instance)
            if refutes(instance):
                refuting.append(instance)
        except (ForgettingError, np.linalg.LinAlgError):
            continue
    return refuting


def _simplest(claim: Claim, worst: Instance) -> Instance:
    """The simplest instance that refutes the claim: the worst one, a simpler form of it, or one made by hand."""
    clear = min(CLEARLY + (claim.kind == "inequality"), score(claim.check(worst)))

    def refutes(instance: Instance) -> bool:
        """Whether the instance refutes the claim, by a clear margin if the worst instance does."""
        verdict = claim.check(instance)
        return not verdict.holds and score(verdict) >= clear

    simpler = [(complexity(instance), instance) for instance in _by_hand(claim, refutes)]
    try:
        smaller = shrunk(worst, refutes)
        simpler.append((complexity(smaller), smaller))
        simpler = [(size, instance) for size, instance in simpler if size < complexity(worst)]
    except NotSupportedError:  # a problem of a class that cannot be saved
        return worst
    for _, instance in sorted(simpler, key=lambda sized: sized[0]):
        again = claim.confirm(instance)
        if not again.holds if again is not None else claim.precise is None:
            return instance
    return worst
