"""The loop of a solve: visits, sweeps, estimates, checks and the reasons to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite, log, sqrt
from time import perf_counter
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, IntArray, read_only
from forgetting.core.progress import progress_bar
from forgetting.orderings import Ordering, TaskView, Visits
from forgetting.orderings.base import NO_UPDATE
from forgetting.orderings.view import rounding_of
from forgetting.solver.methods import Accuracy, Method
from forgetting.solver.noise_rules import Rule
from forgetting.solver.relaxation import Relaxation
from forgetting.solver.solution import History, SolveState

STALLED = 0.97  # the factor an epoch above which the residual counts as not falling
SHORTEST = 0.02  # the relaxation below which it is not halved again
FLAT = 2  # epochs running that a residual neither falls nor rises, if row steps lead no further
SETTLED = 4  # epochs after which the speed of row steps is judged
PAYS = 1.5  # times the sweeps of conjugate gradients that row steps must need for a change
START = 5  # sweeps that a change costs
STUCK = 40  # entries of the history over which a residual that does not fall ends the solve
LONGEST = 16  # epochs between two computed residuals, at most
LIMITS = ("epochs", "steps", "seconds", "callback")
RULED = ("rule", "out of reach", "above the noise")  # how a rule may end a solve
TALL = 32  # rows for each column after which the residual is estimated within an epoch; 1 where each step takes long


@dataclass(frozen=True)
class Stops:
    """The limits at which a solve ends.

    Attributes:
        residual: the largest relative residual of a solution.
        matrix: what is added to it, in units of |A| |x| / |b|.
        normal: the largest |A^T r| / (|A| |r|) of a least-squares solution, and its largest relative error.
        epochs: the largest number of epochs.
        steps: the largest number of visits, or None.
        seconds: the longest time, or None.
        callback: called after every entry of the history; True ends the solve.
        sees_state: whether the callback takes a `SolveState`, and not x alone.
    """

    residual: float
    matrix: float
    normal: float
    epochs: int
    steps: int | None = None
    seconds: float | None = None
    callback: Callable[..., Any] | None = None
    sees_state: bool = False


@dataclass
class Loop:
    """Epochs of a method until there is a reason to stop.

    Attributes:
        method: what is done in an epoch.
        ordering: which blocks are visited.
        stops: the reasons to stop.
        seed: of the random numbers of the ordering.
        stall_ends: whether to stop as soon as the residual falls no more, for another method to go on.
        decides: whether x must be accurate enough to say that the system is inconsistent.
        relaxation: the factor of every step, by epochs; None for that of the sweeper.
        rule: the rule that stops at the noise, or None.
        share: the share of the relaxation that is taken: halved where the residual falls no more above the noise.
        slow_ends: whether to stop where row steps are slower than conjugate gradients on sweeps would be.
        earlier: the names of the methods that went before this one.
    """

    method: Method
    ordering: Ordering
    stops: Stops
    seed: int
    stall_ends: bool = False
    decides: bool = False
    relaxation: Relaxation | None = None
    rule: Rule | None = None
    share: float = 1.0
    slow_ends: bool = False
    earlier: tuple[str, ...] = ()
    before: float = 0.0  # seconds of earlier runs
    ruled: str = ""  # how the rule ended the solve
    spent: int = 0  # visits that an earlier method made
    steps: int = 0  # visits made
    rows: int = 0
    entries: list[tuple[float, float, float, bool]] = field(default_factory=list)
    estimates: list[float] = field(default_factory=list)  # of the residual at the end of each epoch
    measured: Accuracy | None = None
    unchecked: int = 0  # entries of the history since the residual was computed
    left: int | None = None  # visits of the current round that are not made yet; None between two rounds
    touched: int = 0  # rows of the current round
    seen: Array = field(default_factory=lambda: np.zeros(0))  # squared errors of the current round
    save: Callable[..., None] | None = None

    def __post_init__(self) -> None:
        self.started = perf_counter()
        sweeper = self.method.system.sweeper
        self.epoch_length = sweeper.num_blocks
        m, n = sweeper.shape
        parts = max(1, m // (n if self.ordering.adaptive else TALL * n))
        parts = 1 if self.method.by_epoch or self.rule is not None else parts
        several = 1 if sweeper.num_blocks < sweeper.average else sweeper.average  # blocks that belong together
        self.round_length = min(self.epoch_length, -(-self.epoch_length // parts // several) * several)
        rng = np.random.default_rng(self.seed)
        self.visits = Visits(self.ordering, self._view(), rng)
        for start in range(0, self.steps, 2**20):  # of an earlier run
            self.visits.take(min(2**20, self.steps - start))
        self.drawn = np.empty(0, dtype=np.int64)  # visits that were drawn and not made

    def _view(self) -> TaskView:
        """The view of the blocks that the ordering may see."""
        sweeper: Any = self.method.system.sweeper
        self.tracked = None
        if self.ordering.adaptive:
            method = self.method
            if method.by_rows:
                self.tracked = sweeper.tracked(method.system.b, method.iterate.x)
            errors = (
                lambda: sweeper.distances(method.target, method.iterate.x),
                lambda: sweeper.losses(method.target, method.iterate.x),
            )
            if self.tracked is not None:
                errors = self.tracked.distances, self.tracked.losses
            return TaskView(
                sweeper.num_blocks,
                sweeper.norms,
                *errors,
                lambda: rounding_of(method.iterate.x, method.system.x0),
            )
        return TaskView(sweeper.num_blocks, sweeper.norms if self.ordering.law.uses_norms else None)

    @property
    def seconds(self) -> float:
        """Seconds since the start, those of earlier runs included."""
        return self.before + perf_counter() - self.started

    @property
    def epochs(self) -> float:
        """Row steps divided by the number of rows."""
        return self.rows / self.method.system.sweeper.shape[0]

    @property
    def made(self) -> int:
        """Visits of this method and of earlier ones; an iteration of conjugate gradients on sweeps makes each twice."""
        return self.spent + self.steps * self.method.passes

    def run(self) -> str:
        """Go on until there is a reason to stop, and return it: "solved", "least squares", "stalled", ..."""
        with progress_bar("solving") as report, np.errstate(all="ignore"):  # x may diverge, which is found and said
            if self.rule is not None and not self.rule.ratios:
                self.measured = self.method.measure()
                if self._judged_by_rule():
                    return "rule"
            while True:
                ending = (self._limits() if self.left is None else None) or self._round()
                report("solving", self.made, self.stops.epochs * self.epoch_length)
                if ending:
                    return ending

    def resumed_ending(self) -> str | None:
        """The reason to stop at the end of the round after which an earlier run saved its state, if there is one.

        The residual is computed anew: a file with the matrix may have changed since.
        """
        if self.left is None and self.ruled:
            return self.ruled
        slow = self._slow() if self.left is None else None
        if self.left is not None or self.unchecked or self._judged(self.measured) is None:
            return slow
        self.measured = self.method.measure()
        return self._judged(self.measured) or slow

    def at_the_end(self, ending: str) -> tuple[str, Accuracy, History]:
        """The reason to stop, the accuracy and the history of a solve that ended, with the residual of its x.

        A limit adds a check that the loop itself does not note: a solve that is resumed goes on as one without a limit.
        """
        fresh = self.left is not None or bool(self.unchecked)
        with np.errstate(all="ignore"):
            measured = self.method.measure() if self.measured is None or fresh else self.measured
            if fresh and ending in LIMITS:
                judged = self._judged(measured)
                ending = judged if judged in ("solved", "least squares", "contradiction") else ending
        if fresh and self.rows:
            kept = self.entries if self.left else self.entries[:-1]
            last = (self.epochs, measured.residual, self.seconds if self.left else self.entries[-1][2], True)
            return ending, measured, _history([*kept, last])
        return ending, measured, _history(self.entries)

    def _limits(self) -> str | None:
        if self.made >= self.stops.epochs * self.epoch_length:
            return "epochs"
        if self.stops.steps is not None and self.made >= self.stops.steps:
            return "steps"
        if self.stops.seconds is not None and self.seconds >= self.stops.seconds:
            return "seconds"
        return None

    def _begin(self) -> None:
        """Begin a round. If `steps` ends it early, the last state that is saved is that before it.

        A part of a round in memory is no beginning of the whole: sums are rounded in other places, and two sweeps may
        do more than one over all of their rows. A streamed matrix is always swept block by block.
        """
        touched, seen, length = 0, np.zeros(len(self.method.sizes)), self._next()
        self.left, self.touched, self.seen = length, touched, seen
        if self.save is not None and self.method.system.sweeper.in_memory and self._allowed_visits() < length:
            self.left = None
            self.save(self, always=True)
            self.left, self.save = length, None

    def _next(self) -> int:
        """The number of visits of the next round: up to the end of the epoch, or of its next part."""
        return min(self.round_length, self.epoch_length - self.steps % self.epoch_length)

    def _allowed_visits(self) -> int:
        """The number of visits of the round that are left, and may be made."""
        assert self.left is not None
        if self.stops.steps is None:
            return self.left
        return max(0, min(self.left, -(-(self.stops.steps - self.made) // self.method.passes)))

    def _round(self) -> str | None:
        """Make the visits of a round, estimate the residual, compute it if it may be small enough, and judge."""
        if self.left is None:
            self._begin()
        self._relax()
        self._sweep()
        if self.left:
            return "steps"
        touched, seen, self.left = self.touched, self.seen, None
        self.unchecked += 1
        if not np.isfinite(self.method.iterate.x).all():
            return "diverged"
        if self.steps % self.epoch_length == 0:
            self.method.end_epoch()
        m = self.method.system.sweeper.shape[0]
        estimate = float(np.max(np.sqrt(seen * (m / max(1, touched))) / self.method.sizes)) if touched else np.inf
        self.estimates.append(estimate)
        del self.estimates[: -2 * STUCK]
        measured = self.method.measure() if self.rule is not None or self._worth_a_check() else None
        if measured is not None:
            self.measured, self.unchecked = measured, 0
            if not isfinite(measured.residual):
                return "diverged"
        seen_residual = estimate if self.method.sees_residuals else np.nan
        residual = seen_residual if measured is None else measured.residual
        self.entries.append((self.epochs, residual, self.seconds, measured is not None))
        ending = None
        if self.rule is not None:
            ending = "rule" if self._judged_by_rule() else self._without_progress()
            self.ruled = ending or ""
        if self.save is not None:
            self.save(self)
        if self.stops.callback is not None and self._called(residual, measured):
            return ending or "callback"
        return ending or self._judged(measured) or self._slow()

    def _slow(self) -> str | None:
        """ "slow" if conjugate gradients on double sweeps would need fewer sweeps than row steps still need.

        Residuals that fall by the factor q an epoch need log(tol) / log(q) epochs, and with 1 - q^2 as the least
        eigenvalue of I - Q in double sweeps about log(tol) / sqrt(1 - q^2) sweeps. If they neither fall nor rise for
        some epochs, most often no x solves the system, which double sweeps cannot do either: "stalled". A single epoch
        says little: a heavy row raises the residual once it is met again.
        """
        estimates, allowed = self.estimates, self.allowed()
        if not self.slow_ends or len(estimates) < FLAT + 1 or self.round_length < self.epoch_length:
            return None
        if not 0 < allowed < estimates[-1]:
            return None
        recent = estimates[-FLAT - 1 :]
        if all(STALLED * old <= new <= old / STALLED for old, new in pairwise(recent)):
            return "stalled"
        rate = sqrt(estimates[-1] / estimates[-3]) if len(estimates) >= SETTLED and estimates[-3] > 0 else 0.0
        if not 0 < rate < 1:
            return None
        digits = log(estimates[-1] / allowed)
        return "slow" if -digits / log(rate) > PAYS * (digits / sqrt(1 - rate**2) + START) else None

    def _relaxed(self) -> float:
        """The relaxation of the epoch of the next visit."""
        assert self.relaxation is not None
        epoch = (self.spent + self.steps) // self.epoch_length
        return self.share * self.relaxation.at(epoch, self.rule.ratios if self.rule is not None else ())

    def _relax(self) -> None:
        """Let the steps of this round have the relaxation of their epoch."""
        if self.relaxation is None or (self.relaxation.constant and self.share == 1):
            return
        relaxation = self._relaxed()
        self.relaxation.steer(self.method.system.sweeper, self.method.iterate, relaxation)
        if self.tracked is not None:
            sweeper: Any = self.method.system.sweeper
            self.tracked.scale = sweeper.step_scales(self.method.iterate.shrink)

    def _called(self, residual: float, measured: Accuracy | None) -> bool:
        """Whether the callback ends the solve. The residual of a state is always computed."""
        assert self.stops.callback is not None
        x = read_only(np.array(self.method.system.shown(self.method.x)))
        if not self.stops.sees_state:
            return bool(self.stops.callback(x))
        if measured is None:
            residual = self.method.measure().residual
        return bool(self.stops.callback(SolveState(x, self.epochs, residual, self.seconds)))

    def _judged_by_rule(self) -> bool:
        """Whether the rule stops the last right-hand side, by the residual that was just computed."""
        assert self.rule is not None
        ahead = self._relaxed() if self.rule.looks_ahead else 0.0
        return self.rule.judge(self.epochs, self.method, self.method.last_gap, ahead)

    def _without_progress(self) -> str | None:
        """Shorten the steps if what is above the noise falls no more; a reason to stop if that is of no use."""
        assert self.rule is not None
        if self.method.least_squares:
            return None
        length = 1.0 if self.relaxation is None else self._relaxed() / self.relaxation.unit
        if not self.rule.stalled(length):
            return None
        system, sweeper = self.method.system, self.method.system.sweeper
        if system.small and not len(sweeper.limits.relations):
            step = system.decomposition.correction(sweeper.slack(system.b, self.method.x), self.method.x - system.x0)
            gap = sweeper.slack(system.b, self.method.x + step)
            if (self.rule.out_of_reach(gap) == self.rule.running).all():
                return "out of reach"
        self.rule.shortened()
        if sweeper.num_blocks <= max(1, sweeper.average):  # steps of a gradient, which are slow but never go in circles
            return None
        if length <= SHORTEST:
            return "above the noise"
        self.share /= 2
        return None

    def _sweep(self) -> None:
        """Make the visits that are left of the round; add to the number of rows touched and the squared errors seen."""
        sweeper = self.method.system.sweeper
        if self.tracked is not None:
            self.tracked.refresh(self.method.iterate.x)
        while self.left and (allowed := self._allowed_visits()):
            visits = self._draw(1 if self.ordering.adaptive else allowed)
            for part in sweeper.parts(visits, self.drawn, self.spent + self.steps):
                made = part[part != NO_UPDATE] if self.ordering.skips else part
                if len(made):
                    rows = sweeper.rows_in(made)
                    self.touched, self.rows = self.touched + rows, self.rows + rows * self.method.passes
                    self.seen = self.seen + self.method.sweep(made)
                    if self.tracked is not None:
                        self.tracked.moved(int(made[0]))
                self.steps += len(part)
                self.left -= len(part)
                if self.save is not None:
                    self.save(self)

    def _draw(self, count: int) -> IntArray:
        """The next visits. One more is drawn if there will be one, for a sweeper that reads ahead."""
        last = self.stops.epochs * self.epoch_length if self.stops.steps is None else self.stops.steps
        more = 0 if self.ordering.adaptive else min(1, max(0, last - self.spent - self.steps - count))
        missing = count + more - len(self.drawn)
        drawn = np.concatenate([self.drawn, self.visits.take(missing)])
        self.drawn = drawn[count:]
        return drawn[:count]

    def _worth_a_check(self) -> bool:
        """Whether the residual may be small enough, going by the errors seen and how fast they fall."""
        if self.unchecked >= LONGEST * -(-self.epoch_length // self.round_length):
            return True
        now = self.estimates[-1]
        before = self.estimates[-2] if len(self.estimates) > 1 else now
        rate = min(1.0, now / before) if before > 0 else 1.0
        # a check is cheap beside an iteration of several sweeps
        if now * rate ** (0.5 * self.method.passes) <= self.allowed():
            return True
        error = self.method.error() if self.method.least_squares else None
        if error is not None and error <= self.stops.normal:
            return True
        return self.unchecked >= 3 and not self.method.tells and self._stalled()

    def _stalled(self) -> bool:
        """Whether the estimates of the last epochs fell by less than 3 % an epoch."""
        per_epoch = -(-self.epoch_length // self.round_length)
        span = self.method.window * (1 if per_epoch == 1 else 2)
        if len(self.estimates) <= span:
            return False
        recent, earlier = self.estimates[-span // 2 :], self.estimates[-span : -span // 2]
        return bool(np.mean(recent) >= STALLED ** (span / 2) * np.mean(earlier))

    def _judged(self, measured: Accuracy | None) -> str | None:
        if self.method.contradiction is not None:
            return "contradiction"
        if measured is None:
            return None
        if measured.left <= self.allowed():
            return "solved"
        if self._settled(measured) and self.rule is not None and self.rule.needs_noise:
            return "out of reach"
        if self._settled(measured):
            known = self.method.distance()
            if known is None or known.accurate(self.stops.normal):
                return "least squares"
            if self.stall_ends:
                return "stalled"
        if self.stall_ends and self._stalled():
            return "stalled"
        return "stuck" if self._stuck() else None

    def _settled(self, measured: Accuracy) -> bool:
        """Whether x seems to be a least-squares solution; if `decides`, one that says that no x solves the system."""
        tol, method = self.stops.normal, self.method
        if not method.least_squares or measured.normal_above(self.allowed()) > max(tol, method.floor):
            return False
        if not method.estimates:
            return True
        if measured.error is None or measured.error > tol:
            return False
        return not self.decides or measured.excludes(self.allowed()) or measured.error <= max(1e-3 * tol, 1e-12)

    def _stuck(self) -> bool:
        """Whether the estimates of the last 40 entries are no smaller than those of the 40 before.

        Violations rise and fall on the way to the nearest point, and say nothing.
        """
        if (
            self.rule is not None
            or self.method.least_squares
            or self.method.system.nearest
            or len(self.estimates) < 2 * STUCK
        ):
            return False
        return bool(np.mean(self.estimates[-STUCK:]) >= 0.999 * np.mean(self.estimates[-2 * STUCK : -STUCK]))

    def allowed(self) -> float:
        """The largest relative residual of a solution, for the right-hand side that allows least."""
        if self.stops.matrix == 0:
            return self.stops.residual
        sizes = np.linalg.norm(self.method.x, axis=0) / self.method.sizes
        return self.stops.residual + self.stops.matrix * float(
            np.sqrt(self.method.system.sweeper.squares_sum) * np.min(sizes)
        )

    def continued(self, method: Method, ordering: Ordering) -> Loop:
        """The loop of another method that goes on where this one stopped."""
        seed = self.seed + (not self.decides)  # one seed for all that follow the first method
        following = Loop(method, ordering, self.stops, seed, before=self.seconds, spent=self.made)
        following.stall_ends = self.stall_ends and not method.least_squares
        following.rows, following.entries, following.decides = self.rows, self.entries, True
        following.save, following.rule = self.save, self.rule
        following.earlier = (*self.earlier, self.method.name)
        if self.rule is not None:
            self.rule.shortened()
        if self.relaxation is not None and not self.relaxation.constant:
            method.system.sweeper.relax(1.0)
        return following


def _history(entries: list[tuple[float, float, float, bool]]) -> History:
    columns = list(zip(*entries, strict=True)) or [(), (), (), ()]
    epoch, residual, seconds = (np.array(column) for column in columns[:3])
    return History(epoch, residual, seconds, np.array(columns[3], dtype=bool))
