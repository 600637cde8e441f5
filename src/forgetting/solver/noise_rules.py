"""Rules that stop a solve at the noise: the discrepancy principle, the periodogram of the residual, monotone errors.

All are judged after every epoch, on residuals that are computed. Each right-hand side stops on its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import prod, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from forgetting.core.arrays import Array, IntArray, as_count, as_kind, as_number, fingerprint
from forgetting.core.registry import Registry
from forgetting.errors import InvalidInputError
from forgetting.solver.methods import Method, System
from forgetting.solver.noise import Noise

LONGEST = 10  # epochs without a smaller distance after which the periodogram ends the solve; half of all, if more
STALL = 0.9  # the factor between the last two quarters of epochs above which what is left falls too slowly
FEWEST = 8  # epochs before a stall is seen
FARTHEST = 4.0  # sum of the relaxations of epochs before a stall is seen: short steps take their time

registry: Registry[type[Any]] = Registry("stopping rule")


@dataclass(frozen=True)
class Stopping:
    """The rule that was asked for.

    Attributes:
        rule: its class.
        noise: the noise; None where it is not known.
        tau: how many times the noise may be left.
        tol: of rows without noise.
        layout: the shape of the residual, for the periodogram.
        unit: the number of real rows for each row: 2 of complex systems, whose noise is that of both parts.
        words: what was assumed, for the status; empty if nothing was.
    """

    rule: type[Rule]
    noise: Noise | None
    tau: float
    tol: float
    layout: tuple[int, ...]
    words: str
    unit: int = 1

    @property
    def marks(self) -> dict[str, str]:
        """Texts that checkpoints compare, by the names of arguments."""
        noise = "none" if self.noise is None else fingerprint(self.noise.sigma, self.noise.exact).hex()
        return {"noise": noise, "stop": self.rule.name, "tau": repr(self.tau), "residual_shape": repr(self.layout)}

    def of(self, method: Method, start: Array) -> Rule:
        """The rule at its start."""
        return self.rule(self, method.system, start)


def as_stopping(stop: Any, noise: Noise | None, tau: Any, tol: float, shape: Any, rows: int) -> Stopping | None:
    """The rule that these arguments of `fg.solve` ask for; None if there is none."""
    tau = as_number(tau, "tau", above=0)
    layout: tuple[int, ...] = (rows,)
    if shape is not None:
        try:
            layout = tuple(as_count(length, "residual_shape", least=1) for length in shape)
        except TypeError:
            raise InvalidInputError(
                f"residual_shape: expected lengths such as (angles, detectors), got {shape!r:.40}"
            ) from None
        if prod(layout) != rows:
            raise InvalidInputError(f"residual_shape {layout} is for {prod(layout)} rows, but A has {rows}")
    if stop is None and noise is None:
        return None
    rule = registry.get("discrepancy" if stop is None else as_kind(stop, str, "a name such as 'discrepancy'", "stop: "))
    if rule.needs_noise and noise is None:
        raise InvalidInputError(f"stop={stop!r} needs noise= above 0; stop='ncp' needs no level of noise")
    series = rule is Periodogram and shape is None and rows > 1
    words = ", with the rows as one series because residual_shape= was not given" if series else ""
    return Stopping(rule, noise, tau, tol, layout, words)


class Rule(ABC):
    """A rule that stops each right-hand side on its own: which of them are stopped, when, and their x.

    Attributes:
        epochs: the epoch at which each right-hand side was stopped; NaN where it goes on.
        kept: x of those that were stopped.
        ratios: after every epoch, from x0 on, the largest mean of (r_i / sigma_i)^2 over right-hand sides that go on.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    needs_noise: ClassVar[bool] = True
    looks_ahead: ClassVar[bool] = False  # whether it reads the relaxation of the next epoch

    def __init__(self, settings: Stopping, system: System, start: Array) -> None:
        self.settings, self.system, self.tau = settings, system, settings.tau
        outputs = len(system.sizes)
        self.epochs = np.full(outputs, np.nan)
        self.kept = start.copy()
        self.ratios: list[float] = []
        self.left = np.full(outputs, np.inf)  # the last ratio of each right-hand side
        self.since, self.path = 0, 0.0  # the number of ratios when steps last became shorter, the steps since then
        noise = settings.noise
        #: rows that count: a row of zeros has the same residual for every x, and a row without noise is counted apart
        self.counted = np.array(system.sweeper.row_squares > 0)
        self.exact = np.empty(0, dtype=np.int64) if noise is None else noise.exact
        self.counted[self.exact] = False
        self.number = int(np.count_nonzero(self.counted))
        sides = np.linalg.norm(system.b.reshape(len(system.b), -1)[self.exact], axis=0)
        self.sides = np.where(sides > 0, sides, system.sizes)
        self.missing = np.zeros(outputs)  # the last `missed` of each right-hand side

    @property
    def blind(self) -> bool:
        """Whether the stop says nothing of x."""
        return False

    @property
    def running(self) -> NDArray[np.bool_]:
        """The right-hand sides that go on."""
        running: NDArray[np.bool_] = np.isnan(self.epochs)
        return running

    def judge(self, epoch: float, method: Method, gap: Array, relaxation: float) -> bool:
        """Whether all right-hand sides are stopped, after an epoch whose x has this gap; the next one is relaxed so."""
        columns = gap.reshape(len(gap), -1)
        self.left = self.measured(columns, method, relaxation)
        running = self.running
        known = self.left[running & np.isfinite(self.left)]
        self.ratios.append(float(known.max()) if len(known) else 0.0)
        self.decide(epoch, method.x.reshape(len(method.x), -1), columns)
        return not self.running.any()

    def measured(self, gap: Array, method: Method, relaxation: float) -> Array:
        """The mean of (r_i / sigma_i)^2 over the rows that count, for every right-hand side."""
        return self._ratio(np.sum(np.abs(gap[self.counted]) ** 2, axis=0))

    def _ratio(self, squares: Array) -> Array:
        noise = self.settings.noise
        if noise is None:
            return np.full(len(squares), np.inf)
        expected = noise.sigma**2 * self.number
        return np.divide(squares, expected, out=np.zeros(len(squares)), where=expected > 0)

    def decide(self, epoch: float, x: Array, gap: Array) -> None:
        """Stop the right-hand sides whose residuals are small enough."""
        noise, tol = self.settings.noise, self.settings.tol
        self.missing = self.missed(gap)
        ended = (self.left <= self.tau**2) & (self.missing <= tol)
        if noise is not None and not noise.sigma.all():  # right-hand sides that are 0 have no relative noise
            ended &= (noise.sigma > 0) | (np.linalg.norm(gap, axis=0) <= tol * self.system.sizes)
        self._stop(ended & self.running, epoch, x)

    def missed(self, gap: Array) -> Array:
        """The relative residual of the rows without noise, for every right-hand side."""
        return np.asarray(np.linalg.norm(gap[self.exact], axis=0) / self.sides)

    def _stop(self, which: NDArray[np.bool_], epoch: float, x: Array) -> None:
        self.epochs[which] = epoch
        self.kept.reshape(len(x), -1)[:, which] = x[:, which]

    def stalled(self, length: float) -> bool:
        """Whether what is left above the noise falls too slowly, after an epoch of steps of this length."""
        self.path += length
        excess = np.array(self.ratios[self.since :]) - self.tau**2
        quarter = len(excess) // 4
        if len(excess) < FEWEST or self.path < FARTHEST:
            return False
        return bool(np.mean(excess[-quarter:]) >= STALL * np.mean(excess[-2 * quarter : -quarter]))

    def shortened(self) -> None:
        """Note that steps become shorter, after which a stall is seen anew."""
        self.since, self.path = len(self.ratios), 0.0

    def out_of_reach(self, gap: Array) -> NDArray[np.bool_]:
        """The right-hand sides that go on though even the least-squares solution, with this gap, has more left."""
        least = self._ratio(np.sum(np.abs(gap.reshape(len(gap), -1)[self.counted]) ** 2, axis=0))
        return self.running & (least > self.tau**2)

    def result(self, x: Array, *, solved: bool = False) -> Array:
        """x, where right-hand sides were stopped that of their epochs; `solved` says that x solves all of them."""
        stopped = ~self.running
        if not stopped.any():
            return x
        chosen = x.copy()
        chosen.reshape(len(x), -1)[:, stopped] = self.kept.reshape(len(x), -1)[:, stopped]
        return chosen

    def ended(self) -> str:
        """The rule and the epoch at which it stopped, in words."""
        first, last = (f"{epoch:.4g}" for epoch in (self.epochs.min(), self.epochs.max()))
        when = f"at epoch {first}" if first == last else f"at epochs {first} to {last}"
        return f"{self.title} {when}, {self.reason()}{self.settings.words};"

    def distance(self) -> str:
        """What is left beside what the rule allows, in words."""
        left = self.left[self.running & np.isfinite(self.left)]
        worst = f": the residual is {sqrt(left.max()):.4g} times the noise (tau = {self.tau:g})" if len(left) else ""
        missing, tol = float(self.missing[self.running].max(initial=0.0)), self.settings.tol
        exact = f", and rows without noise have the relative residual {missing:.2g}, above {tol:.2g}"
        return worst + (exact if missing > tol else "")

    @abstractmethod
    def reason(self) -> str:
        """The sentence on why the rule stopped."""

    def arrays(self) -> dict[str, Array]:
        """The numbers from which to go on, for checkpoints."""
        numbers = {"epochs": self.epochs, "kept": self.kept, "left": self.left, "missing": self.missing}
        numbers |= {"ratios": np.array(self.ratios, dtype=np.float64), "path": np.array([self.path])}
        return {**numbers, "since": np.array([self.since])}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Go on from what `arrays` gave."""
        self.epochs, self.kept = arrays["epochs"].copy(), arrays["kept"].copy()
        self.left, self.missing = arrays["left"].copy(), arrays["missing"].copy()
        self.ratios, self.path = arrays["ratios"].tolist(), float(arrays["path"][0])
        self.since = int(arrays["since"][0])


class Discrepancy(Rule):
    """Morozov's discrepancy principle: stop when sum_i (r_i / sigma_i)^2 <= tau^2 m."""

    name = "discrepancy"
    title = "the discrepancy principle"

    def reason(self) -> str:
        return f"where the residual is at most tau = {self.tau:g} times the noise"


class Monotone(Rule):
    """The monotone error rule: stop before the first step of which it is not known that it brings x nearer.

    An epoch of an averaged method is x <- x + w D A^T M r with diagonal D and M, and for noise of M-norm delta

        |x - x*|^2 - |x_next - x*|^2 >= w (2 |r|_M^2 - w |A^T M r|_D^2 - 2 delta |r|_M)

    in the norm of D^(-1), for every x* with A x* = b - noise, also if x* and x lie in bounds to which x is clipped.
    The rule stops when the bracket, with tau delta, is not positive (Haemarik and Tautenhahn 2001; Elfving and Nikazad
    2007). delta^2 is the expected sum of M_i noise_i^2.
    """

    name = "monotone"
    title = "the monotone error rule"
    looks_ahead = True

    def measured(self, gap: Array, method: Method, relaxation: float) -> Array:
        noise, weights = self.settings.noise, method.simultaneous_weights
        assert noise is not None
        assert weights is not None
        rows, columns = weights
        counted = np.where(self.counted, rows, 0.0)
        squares = counted @ np.abs(gap) ** 2
        back = self.system.sweeper.back((rows[:, None] * gap).reshape(self.system.b.shape))
        step = columns @ np.abs(back.reshape(len(columns), -1)) ** 2
        delta = noise.sigma * sqrt(float(counted.sum()))
        with np.errstate(all="ignore"):
            ratio = (2 * squares - relaxation * step) / (2 * np.sqrt(squares) * delta)
        return np.where(squares == 0, 0.0, np.maximum(ratio, 0.0) ** 2)

    def reason(self) -> str:
        return f"after which no step is known to lessen the error (tau = {self.tau:g})"


class Periodogram(Rule):
    """The normalised cumulative periodogram: the x whose residual looks most like white noise.

    The squared Fourier coefficients of the residual in its layout, without that of the mean, are added up from low
    frequencies to high ones. For white noise the sums are a straight line; the root mean square of how far they are off
    it, divided by the last one, is the distance (Rust and O'Leary 2008; Hansen, Kilmer and Kjeldsen 2006, in several
    dimensions by the length of the frequency). The x of the least distance is kept. No level of noise is needed.
    """

    name = "ncp"
    title = "the normalised cumulative periodogram"
    needs_noise = False

    def __init__(self, settings: Stopping, system: System, start: Array) -> None:
        super().__init__(settings, system, start)
        self.least = np.full(len(self.epochs), np.inf)
        self.best = np.zeros(len(self.epochs))
        self.layout = settings.layout
        if len(self.layout) == 1:  # exact rows are no part of the series
            self.layout = ((len(system.b) - len(self.exact)) // settings.unit,)
        self.order = by_frequency(self.layout)

    def decide(self, epoch: float, x: Array, gap: Array) -> None:
        if len(self.layout) == 1:
            gap = np.delete(gap, self.exact, axis=0)
        series = np.ascontiguousarray(gap.T)
        if self.settings.unit > 1:
            series = series.view(np.complex128)
        distances = np.array([whiteness(residual.reshape(self.layout), self.order) for residual in series])
        running = self.running
        better = running & (distances < self.least)
        self.least[better], self.best[better] = distances[better], epoch
        self.kept.reshape(len(x), -1)[:, better] = x[:, better]
        over = running & (epoch - self.best >= np.maximum(LONGEST, self.best / 2))
        self.epochs[over] = self.best[over]

    def result(self, x: Array, *, solved: bool = False) -> Array:
        """x of the least distance so far; that of a solve to the tolerance where the rule did not stop."""
        return super().result(x) if solved else self.kept.copy()

    def stalled(self, length: float) -> bool:
        return False

    @property
    def blind(self) -> bool:
        """Whether the residual of x0 was most like white noise, so that the rule says nothing."""
        return bool((self.epochs == 0).any())

    def reason(self) -> str:
        return f"where the residual is most like white noise (distance {self.least.max():.2g})"

    def distance(self) -> str:
        return f": the least distance from white noise so far is {self.least.max():.2g}, that of x"

    def arrays(self) -> dict[str, Array]:
        return {**super().arrays(), "least": self.least, "best": self.best}

    def restore(self, arrays: dict[str, Array]) -> None:
        super().restore(arrays)
        self.least, self.best = arrays["least"].copy(), arrays["best"].copy()


def by_frequency(layout: tuple[int, ...]) -> IntArray:
    """The places of Fourier coefficients of an array, from low frequencies to high ones, without that of the mean."""
    grids = np.meshgrid(*(np.fft.fftfreq(length) for length in layout), indexing="ij")
    lengths = np.sqrt(np.sum([grid**2 for grid in grids], axis=0)).ravel().round(12)
    return np.argsort(lengths, kind="stable")[1:]


def whiteness(residual: Array, order: IntArray) -> float:
    """The distance of a residual from white noise: 0 for a flat spectrum, about 1 / sqrt(3) for a single slow wave.

    >>> rng, order = np.random.default_rng(0), by_frequency((400,))
    >>> slow = np.sin(np.arange(400) / 60)
    >>> whiteness(rng.standard_normal(400), order) < 0.06, whiteness(slow, order) > 0.5
    (True, True)
    """
    sums = np.cumsum(np.abs(np.fft.fftn(residual).ravel()[order]) ** 2)
    if not len(sums) or not sums[-1] > 0:
        return np.inf
    return float(np.sqrt(np.mean((sums / sums[-1] - np.arange(1, len(sums) + 1) / len(sums)) ** 2)))


for rule in (Discrepancy, Periodogram, Monotone):
    registry.add(rule.name, rule)
