"""The relaxation of a solve: one number, a number for each epoch, or "auto", which reads it off the noise."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import log2
from typing import Any, ClassVar

import numpy as np

from forgetting.core.arrays import Array, as_number, fingerprint, real_array
from forgetting.errors import InvalidInputError
from forgetting.solver.rows import Limits
from forgetting.solver.sweepers import InMemory, Iterate, Sweeper

ROOT = 0.06  # of "auto": the first relaxation is this times the root of |r| / |noise|
LEAST = 0.05  # of "auto"
UNKNOWN = 0.25  # of "auto", where steps follow each other and the noise is not known
POWER_STEPS = 20


class Relaxation:
    """The base class of relaxations, and the constant one.

    Attributes:
        unit: the relaxation that stands for whole steps: more where steps are averaged.
        constant: whether all epochs have the same.
    """

    unit: float = 1.0
    constant: ClassVar[bool] = True

    def __init__(self, number: float) -> None:
        self.number = number

    def at(self, epoch: int, ratios: Sequence[float]) -> float:
        """The relaxation of an epoch, from 0 on; `ratios` are the mean squared residuals so far, in units of the noise.

        The first of them is that of x0; there are none where the noise is not known.
        """
        return self.number

    def steer(self, sweeper: Sweeper, iterate: Iterate, relaxation: float) -> None:
        """Let the steps to come have this relaxation."""
        sweeper.relax(relaxation)

    @property
    def mark(self) -> str:
        """A text that checkpoints compare."""
        return repr(self.number)


@dataclass
class Sequenced(Relaxation):
    """One number for each epoch; the last one stays."""

    numbers: Array
    constant: ClassVar[bool] = False

    def at(self, epoch: int, ratios: Sequence[float]) -> float:
        return float(self.numbers[min(epoch, len(self.numbers) - 1)])

    @property
    def mark(self) -> str:
        return fingerprint(self.numbers).hex()


@dataclass
class Called(Relaxation):
    """A function of the epoch."""

    function: Callable[[int], Any]
    below: float
    constant: ClassVar[bool] = False

    def at(self, epoch: int, ratios: Sequence[float]) -> float:
        return as_number(self.function(epoch), f"relaxation({epoch})", above=0, below=self.below)

    @property
    def mark(self) -> str:
        """The values of sixteen epochs: a function has no other mark."""
        return repr([self.at(epoch, ()) for epoch in (*range(12), 20, 50, 100, 1000)])


@dataclass
class Automatic(Relaxation):
    """Steps as long as the noise allows: the share of the residual that is not noise, and less in the first epoch.

    A row whose error has the variance s^2 + sigma^2, of which sigma^2 is noise, is best followed by the share
    s^2 / (s^2 + sigma^2) of a step. With D = sum_i (r_i / sigma_i)^2 / m this is w = 1 - 1/D after an epoch, but within
    the first one D falls at once: 0.06 D^(1/4) of x0 is the first w, and the largest; 0.05 is the least
    (`benchmarks/bench_noise.py` compares with constants).

    With s_i^2 in proportion to |a_i|^2, row i has the share |a_i|^2 / (|a_i|^2 + d) where d = |a|^2 (1 / w - 1) for the
    mean square |a|^2: the step is damped by d, and so is a projection onto a block, which without damping magnifies the
    noise of rows that are alike. Where all steps of an epoch are made from the same x, noise does not add up from step
    to step, and half of the largest relaxation that converges is taken.

    Attributes:
        together: whether all steps of an epoch are made from the same x.
        square: the mean of |a_i|^2 where steps are damped; None where they are relaxed, which averages are.
        blind: whether noise is expected, by a rule that needs no level, but not known.
    """

    unit: float = 1.0
    together: bool = False
    square: float | None = None
    blind: bool = False
    constant: ClassVar[bool] = False

    def at(self, epoch: int, ratios: Sequence[float]) -> float:
        if self.together:
            return self.unit
        if self.blind or not len(ratios):
            return self.unit * (UNKNOWN if self.blind else 1.0)
        first = min(1.0, ROOT * max(ratios[0], 0.0) ** 0.25)
        share = 1.0 - 1.0 / max(ratios[-1], 1.0)
        return float(self.unit * max(LEAST, first if len(ratios) == 1 else min(first, share)))

    def steer(self, sweeper: Sweeper, iterate: Iterate, relaxation: float) -> None:
        if self.square is None:
            sweeper.relax(relaxation)
            return
        if not sweeper.row_steps:  # powers of 2 need few factorisations
            relaxation = 2.0 ** round(log2(relaxation))
        iterate.shrink = self.square * (1.0 / relaxation - 1.0)

    @property
    def mark(self) -> str:
        return "auto"


def as_relaxation(value: Any, below: float) -> Relaxation:
    """The relaxation that a user gives, with numbers above 0 and below a limit.

    >>> as_relaxation([1.0, 0.5], 2.0).at(7, ())
    0.5
    >>> as_relaxation(lambda epoch: 1 / (1 + epoch), 2.0).at(3, ())
    0.25
    """
    if isinstance(value, str):
        if value != "auto":
            raise InvalidInputError(
                f"relaxation: expected 'auto', a number, a sequence or a function, got {value!r:.40}"
            )
        return Automatic()
    if callable(value):
        check_called(value, "relaxation", "the number of the epoch", 0)
        return Called(value, below)
    if np.ndim(value) == 0:
        return Relaxation(as_number(value, "relaxation", above=0, below=below))
    numbers = real_array(value, "relaxation")
    if numbers.ndim != 1 or not len(numbers):
        raise InvalidInputError(f"relaxation: expected one number for each epoch, got shape {numbers.shape}")
    odd = np.flatnonzero((numbers <= 0) | (numbers >= below))
    if len(odd):
        raise InvalidInputError(
            f"relaxation of epoch {odd[0]} is {numbers[odd[0]]:g}; it must be greater than 0 and less than {below:g}"
        )
    return Sequenced(numbers)


def check_called(function: Callable[..., Any], what: str, given: str, *values: Any, **named: Any) -> None:
    """Raise an error that says what a user's function is called with, if it cannot be called so.

    >>> check_called(lambda: None, "callback", "x", None)
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: callback is called with x: too many positional arguments
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a compiled function without a signature
        return
    try:
        signature.bind(*values, **named)
    except TypeError as error:
        raise InvalidInputError(f"{what} is called with {given}: {error}") from None


def settled(relaxation: Relaxation, sweeper: Sweeper, *, simultaneous: bool, blind: bool) -> Relaxation:
    """The relaxation for these blocks; `simultaneous` methods scale the steps of an epoch so that 2 is their limit."""
    if not isinstance(relaxation, Automatic):
        return relaxation
    count = sweeper.num_blocks
    if simultaneous:
        return Automatic(together=count == 1, blind=blind)
    if sweeper.average > 1 and not isinstance(sweeper, InMemory):
        return Automatic(blind=blind)
    if sweeper.average == 1 or not isinstance(sweeper, InMemory):
        mean = sweeper.squares_sum / max(1, int(np.count_nonzero(sweeper.row_squares)))
        return Automatic(square=mean, blind=blind)
    several = min(sweeper.average, count)
    return Automatic(_unit(sweeper, several), several == count, blind=blind)


def _unit(sweeper: InMemory, several: int) -> float:
    """The relaxation for averages of `several` steps that is as long as 1 for single steps.

    The average of the projections of all T blocks takes away the share rho of the longest direction; of q random ones
    it is (1 + (q - 1) (T rho - 1) / (T - 1)) / q (Richtarik and Takac 2016, on random subsets).
    """
    count = sweeper.num_blocks
    if count == 1:
        return 1.0
    every: InMemory = replace(sweeper, limits=Limits(), average=count, relaxation=1.0)
    zeros, visits = np.zeros(sweeper.shape[0]), np.arange(count, dtype=np.int64)
    v = np.random.default_rng(0).standard_normal(sweeper.shape[1])
    rho = 1.0
    for _ in range(POWER_STEPS):
        size = float(np.linalg.norm(v))
        if size == 0:
            return 1.0
        iterate = Iterate(v / size)
        every.sweep(visits, zeros, iterate)
        v = v / size - iterate.x
        rho = float(np.linalg.norm(v))
    spread = max(0.0, (count * rho - 1) / (count - 1))
    return several / (1 + (several - 1) * spread)
