"""How precisely a program computes, and by how much rounding may have moved the memory that its steps make."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from forgetting.compute.twofold import UNIT
from forgetting.core.arrays import Array, as_count, as_word
from forgetting.core.numerical import EPS, quietly
from forgetting.errors import InvalidInputError

TINY = 1e-290  # two floats lose digits of products below
HUGE = 1e300  # an error that no program makes without overflow
SLACK = 1 + 1e-9  # covers the rounding of the bounds themselves


class Precision(NamedTuple):
    """The binary digits of a significand: of numbers that are multiplied, of sums, and of the state between steps.

    >>> as_precision("tf32")
    Precision(operands=11, sums=24, state=24)
    """

    operands: int
    sums: int
    state: int


PRECISIONS = {
    "float64": Precision(53, 53, 53),
    "float32": Precision(24, 24, 24),
    "tf32": Precision(11, 24, 24),
    "float16": Precision(11, 11, 11),
    "bfloat16": Precision(8, 8, 8),
    "bfloat16 to float32": Precision(8, 24, 24),
}


def as_precision(value: Any) -> Precision:
    """The precision that a caller means: a word, or three numbers of binary digits."""
    if isinstance(value, str):
        return PRECISIONS[as_word(value, PRECISIONS, "precision")]
    if not isinstance(value, list | tuple) or len(value) != 3:
        raise InvalidInputError(
            f"precision: expected a word or (operands, sums, state) in binary digits, got {value!r:.60}"
        )
    return Precision(*(as_count(bits, f"precision, {part}", least=2, most=53)
                       for part, bits in zip(Precision._fields, value, strict=True)))  # fmt: skip


def to_bits(numbers: Array, bits: int) -> Array:
    """Numbers rounded to significands of so many binary digits, ties to even; exponents have no limit.

    >>> to_bits(np.array([1.00390625, 1.01171875, 3.0]), 8).tolist()
    [1.0, 1.015625, 3.0]
    """
    if bits >= 53:
        return numbers
    part, exponent = np.frexp(numbers)
    return np.asarray(np.ldexp(np.rint(np.ldexp(part, bits)), exponent - bits))


class Steps(NamedTuple):
    """The sizes of all numbers of the steps, from which every bound is computed; leading axes are heads.

    Attributes:
        beta, gate: (..., T).
        lengths: (..., T) of the keys.
        values: (..., T, V), their absolute values.
        sizes: (..., T + 1, V) the norms of the columns of the state.
        reach, missed: (..., T, V), as `recurrence` gives them.
    """

    beta: Array
    gate: Array
    lengths: Array
    values: Array
    sizes: Array
    reach: Array
    missed: Array


class Units(NamedTuple):
    """The largest relative error of a rounding: of operands, of one sum or product, and of a stored state."""

    operands: float
    sums: float
    state: float

    @classmethod
    def of(cls, precision: Precision) -> Units:
        """The units of a precision; rounding a sum of float64 to fewer digits rounds twice, which costs a millionth."""
        operands, sums, state = (0.0 if bits >= 53 else 2.0**-bits * (1 + 1e-6) for bits in precision)
        return cls(operands, sums or EPS, state)


#: of 31 digits: an error of a sum is relative to its terms
REFERENCE = Units(0.0, 2 * UNIT, 0.0)


def together(*errors: float) -> float:
    """(1 + e_1) (1 + e_2) ... - 1, without cancellation."""
    return float(np.expm1(np.sum(np.log1p(errors)))) * SLACK


def inner_product(units: Units, size: int) -> float:
    """The largest error of an inner product of `size` terms, relative to the sum of their absolute values."""
    return together(units.operands, units.operands, *[units.sums] * (size + 1))


@quietly()
def errors_of_steps(steps: Steps, units: Units, size: int) -> tuple[Array, Array]:
    """Bounds on what each step adds to each column, (..., T, V), and on the columns' errors after it, in 2-norms.

    A step computes h = g S, p = S^T k, r = beta (v - p) and S = h + k r^T in any order of its sums, and may round its
    operands first and the state afterwards. Each bound is relative to numbers of the exact steps, plus the error that
    these numbers already have.
    """
    product, outer = inner_product(units, size), together(units.operands, units.operands, units.sums)
    thrice, stored = together(*[units.sums] * 3), together(units.sums, units.state)
    made, after = np.empty(steps.missed.shape), np.empty(steps.missed.shape)
    error = np.zeros(steps.sizes[..., 0, :].shape)
    for t in range(steps.missed.shape[-2]):
        g, b, k = (part[..., t, None] for part in (steps.gate, steps.beta, steps.lengths))
        growth = np.abs(1 - b * k**2) + 8 * EPS * (1 + b * k**2)
        growth = growth if size == 1 else np.maximum(1.0, growth)
        before = g * (steps.sizes[..., t, :] + error)
        gated = units.sums * before
        reach = steps.reach[..., t, :] + k * (g * error + gated)
        told = product * reach + k * gated
        written = b * (told * (1 + thrice) + thrice * (steps.values[..., t, :] + reach * (1 + product)))
        change = b * (steps.missed[..., t, :] + k * g * error) + written
        own = gated + k * written + outer * k * change + stored * (before + gated + (1 + outer) * k * change)
        made[..., t, :] = np.fmin(own * SLACK + TINY, HUGE)  # NaN is 0 times infinity
        error = np.fmin(g * growth * error * SLACK + made[..., t, :], HUGE)
        after[..., t, :] = error
    return made, after


def typical_of_steps(steps: Steps, precision: Precision, size: int) -> Array:
    """The root mean square of what each step adds to each entry of each column, (..., T, V), if roundings are random.

    Relative errors of roundings are independent, 0.425 units in root mean square (as for significands with uniform
    logarithms); keys are in the format of operands; sums run from the first to the last of `size` equal terms.
    """
    operands, sums, state = ((0.425 * 2.0**-bits) ** 2 for bits in precision)
    state = state if precision.state < precision.sums else 0.0
    operands = operands if precision.operands < precision.sums else 0.0
    g, b, k = (part[..., None] for part in (steps.gate, steps.beta, steps.lengths))
    squares = steps.reach**2 * min(1.0, np.pi / 2 / size)
    told = squares * (operands + sums * (1 + 0.5 * (size - 1)))
    change = (b * steps.missed) ** 2
    along = b**2 * told + sums * change * (1.0 + (b != 1)) + operands * change
    own = sums * (g != 1) * (g * steps.sizes[..., :-1, :]) ** 2 + k**2 * (along + sums * change)
    return np.asarray(np.sqrt((own + (sums + state) * steps.sizes[..., 1:, :] ** 2) / size))
