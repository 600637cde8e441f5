"""The noise of a right-hand side, and the weights of rows: what a user gives, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_number, real_array
from forgetting.core.numerical import VANISHING
from forgetting.errors import InvalidInputError
from forgetting.files.row_sources import RowSource, Scaled
from forgetting.solver.block_sweeper import BlockSweeper
from forgetting.solver.rows import Limits, Rows
from forgetting.solver.sweepers import Iterate

TOGETHER = 1024  # rows without noise onto whose common solutions x is projected at once
FARTHEST = 1e100  # times the least noise of a row that the largest may be
TURNS = 50  # between such blocks and the bounds, at most


@dataclass(frozen=True)
class Noise:
    """The noise in the rows of a system, whose rows were scaled so that it is as large in each of them.

    Attributes:
        sigma: its standard deviation in a row, for every right-hand side.
        exact: the rows without noise.
    """

    sigma: Array
    exact: IntArray


def as_noise(noise: Any, b: Array) -> tuple[Noise | None, Array | None]:
    """The noise, and the factors of rows that make it equal; None for nothing, or where rows stay as they are.

    >>> as_noise(("relative", 0.5), np.array([3.0, 4.0, 0.0, 0.0]))[0].sigma
    array([1.25])
    """
    columns = b.reshape(len(b), -1)
    if noise is None:
        return None, None
    none, outputs = np.empty(0, dtype=np.int64), columns.shape[1]
    if isinstance(noise, str) or (isinstance(noise, tuple | list) and any(isinstance(part, str) for part in noise)):
        if not isinstance(noise, tuple | list) or len(noise) != 2 or noise[0] != "relative":
            raise InvalidInputError(
                f"noise: expected a number, one for each row, or ('relative', 0.05), got {noise!r:.60}"
            )
        level = as_number(noise[1], "noise, the relative level", least=0)
        sigma = level * np.linalg.norm(columns, axis=0) / np.sqrt(len(b))
        return (Noise(_squared(sigma), none) if sigma.any() else None), None
    if np.ndim(noise) == 0:
        number = as_number(noise, "noise", least=0)
        return (Noise(_squared(np.full(outputs, number)), none) if number else None), None
    given = _of_rows(noise, "noise", len(b))
    if not given.any():
        return None, None
    noisy = given > 0
    unit = float(given[noisy].max())  # of the noisiest row, whose factor is 1
    least = int(np.argmin(np.where(noisy, given, np.inf)))
    if unit / FARTHEST > given[least]:
        raise InvalidInputError(
            f"noise: the number of row {least} is {given[least]:.2g} and the largest {unit:.2g}, too different to "
            "weigh both; give 0 for a row without noise"
        )
    factors = np.where(noisy, unit / np.where(noisy, given, 1.0), 1.0)
    exact = np.flatnonzero(~noisy).astype(np.int64)
    return Noise(_squared(np.full(outputs, unit)), exact), None if (factors == 1).all() else factors


def _squared(sigma: Array) -> Array:
    """The standard deviations, whose squares are numbers."""
    positive = sigma[sigma > 0]
    least, largest = float(positive.min()), float(positive.max())
    if not VANISHING**0.5 < least <= largest < VANISHING**-0.5:
        odd, word = (largest, "overflows") if largest >= VANISHING**-0.5 else (least, "vanishes")
        raise InvalidInputError(
            f"noise: the square of {odd:.2g} {word}; rescale A, b and noise, or give 0 for no noise"
        )
    return sigma


def as_weights(weights: Any, count: int) -> Array | None:
    """The factors of rows that weights stand for, their square roots."""
    if weights is None:
        return None
    given = _of_rows(weights, "weights", count)
    if not given.any():
        raise InvalidInputError("weights: all are 0, so that no row is left")
    return np.sqrt(given)


def _of_rows(given: Any, what: str, count: int) -> Array:
    numbers = real_array(given, what)
    if numbers.shape != (count,):
        raise InvalidInputError(f"{what}: expected one number for each of {count} rows, got shape {numbers.shape}")
    odd = np.flatnonzero(numbers < 0)
    if len(odd):
        raise InvalidInputError(f"{what}: the number of row {odd[0]} is {numbers[odd[0]]:g}; it must not be negative")
    return numbers


def scaled(matrix: Rows | RowSource, factors: Array | None) -> Rows | RowSource:
    """The rows, multiplied by factors: a copy of a matrix in memory; a streamed one is multiplied as it is read."""
    if factors is None:
        return matrix
    return matrix.scaled(factors) if isinstance(matrix, Rows) else Scaled(matrix, factors)


class ExactRows:
    """The rows without noise of a matrix in memory: x is projected onto their solutions, and into its bounds."""

    def __init__(self, rows: Rows, b: Array, exact: IntArray, limits: Limits) -> None:
        picked = Rows(rows.picked(exact).copy())
        blocks = tuple(np.arange(start, min(start + TOGETHER, len(exact))) for start in range(0, len(exact), TOGETHER))
        self.sweeper, self.b = BlockSweeper(picked, limits=limits, blocks=blocks), np.ascontiguousarray(b[exact])
        self.turns = TURNS if len(blocks) > 1 or len(limits.low) else 1
        self.visits = np.arange(len(blocks), dtype=np.int64)

    def project(self, x: Array) -> None:
        """Change x to the nearest point that solves these rows; with bounds, by turns."""
        iterate = Iterate(x)
        for _ in range(self.turns):
            seen = self.sweeper.sweep(self.visits, self.b, iterate)
            if float(seen.max()) <= 1e-28 * float(np.vdot(self.b, self.b)):
                break
