"""`worst_keys`: sequences of keys and values on which a delta rule of low precision is as wrong as can be found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, IntArray, Seed, as_count, as_number, seed_from
from forgetting.core.numerical import quietly
from forgetting.core.progress import track
from forgetting.errors import InvalidInputError
from forgetting.references.delta_rule import DeltaRule, delta_rule
from forgetting.references.rounding import Precision, as_precision, to_bits
from forgetting.results import Result

__all__ = ["WorstKeys", "worst_keys"]

PARENTS, CHILDREN = 8, 8  # sequences that a generation keeps, and changes that it tries of each


@dataclass(frozen=True, eq=False, repr=False)
class WorstKeys(Result):
    """Unit keys and values of at most size 1 on which a program of low precision is far from the exact memory.

    Attributes:
        keys, values: (T, K) and (T, V), in the format of the precision's operands.
        beta, gate: of every step.
        precision: binary digits of operands, sums and the state.
        error: the largest error of an entry of the memory when steps are made in this precision.
        random: the mean of this error over as many random sequences as were tried first.
        bound: the largest tolerance of an entry, which no such program exceeds on these keys.
        tried: the number of sequences that were tried.
    """

    kind = "worst keys"

    keys: Array
    values: Array
    beta: float
    gate: float
    precision: tuple[int, int, int]
    error: float
    random: float
    bound: float
    tried: int

    @property
    def reference(self) -> DeltaRule:
        """The exact memory of these keys and values."""
        return delta_rule(self.keys, self.values, self.beta, self.gate)

    @property
    def headline(self) -> str:
        operands, sums, state = self.precision
        return (
            f"The worst {len(self.keys)} keys among {self.tried} sequences, for operands of {operands}, sums of {sums} "
            f"and a state of {state} binary digits: an error of {self.error:.3g}, against "
            f"{self.random:.3g} for random keys; no such program errs by more than {self.bound:.3g} on these keys"
        )

    def _num_rows(self) -> int:
        return len(self.keys)

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Any]:
        keys = {f"key {i}": self.keys[rows, i].tolist() for i in range(self.keys.shape[1])}
        return (
            {"step": (rows + 1).tolist()}
            | keys
            | {f"value {j}": self.values[rows, j].tolist() for j in range(self.values.shape[1])}
        )


def worst_keys(
    steps: int,
    dim: int,
    precision: Any = "bfloat16",
    *,
    value_dim: int = 1,
    beta: float = 1.0,
    gate: float = 1.0,
    seed: Seed = 0,
    budget: int = 4096,
) -> WorstKeys:
    """Search unit keys, and values of size at most 1, on which steps in this precision are far from the exact memory.

    The search begins with random keys, keys that turn slowly, one key again and again, keys orthogonal to the memory
    (which then grows like the root of the number of steps) and values that flip; then it changes the worst of them, a
    few keys at a time. The result is what was found, not a maximum. Test a kernel on `keys` and `values`, with
    `reference`.

    Args:
        steps, dim: T and K.
        precision: as for `DeltaRule.tolerance`.
        value_dim: V.
        beta, gate: the write strength and the factor of the memory, at every step.
        seed: of the random changes.
        budget: the number of sequences to try.

    >>> worst = worst_keys(steps=16, dim=4, precision="bfloat16", budget=512)
    >>> worst.random < worst.error <= worst.bound
    True
    """
    T, K, V = (
        as_count(steps, "steps", least=1),
        as_count(dim, "dim", least=1),
        as_count(value_dim, "value_dim", least=1),
    )
    bits, most = as_precision(precision), as_count(budget, "budget", least=64)
    strength, fading = as_number(beta, "beta", least=0), as_number(gate, "gate", least=0)
    if bits.operands == bits.sums == bits.state == 53:
        raise InvalidInputError(
            "precision: the search compares with float64, so that one of its parts must have fewer digits"
        )
    rng = np.random.default_rng(seed_from(seed))

    def errors(keys: Array, values: Array) -> tuple[Array, Array, Array]:
        """Sequences rounded to the format of operands, and the largest error of each."""
        keys, values = to_bits(keys, bits.operands), to_bits(values, bits.operands)
        found = recurrence_in(keys, values, strength, fading, bits)
        exact = recurrence_in(keys, values, strength, fading, Precision(53, 53, 53))
        with quietly():
            off = np.max(np.abs(found - exact), axis=(-2, -1))
        return keys, values, np.where(np.isfinite(off), off, np.inf)

    keys, values, off = errors(*_starts(rng, max(64, min(most // 4, 256)), T, K, V, strength, fading))
    tried, random = len(keys), float(np.mean(off[: len(keys) // 2]))
    rounds = max(0, (most - tried) // (PARENTS * CHILDREN))
    for _ in track(range(rounds), "worst keys"):
        best = np.argsort(-off, kind="stable")[:PARENTS]
        parents = np.repeat(best, CHILDREN)
        changed = rng.random((len(parents), T, 1)) < rng.choice([1 / T, 0.1, 0.5], size=(len(parents), 1, 1))
        size = rng.choice([0.003, 0.03, 0.3, 1.0], size=(len(parents), 1, 1))
        more = errors(
            _unit(keys[parents] + changed * size * rng.standard_normal((len(parents), T, K))),
            np.clip(values[parents] + changed * size * rng.standard_normal((len(parents), T, V)), -1, 1),
        )
        keys, values, off = (
            np.concatenate([old[best], new]) for old, new in zip((keys, values, off), more, strict=True)
        )
        tried += len(parents)
    worst = int(np.argmax(off))
    exact = delta_rule(keys[worst], values[worst], strength, fading)
    found = recurrence_in(keys[worst], values[worst], strength, fading, bits)
    return WorstKeys(
        keys=keys[worst],
        values=values[worst],
        beta=strength,
        gate=fading,
        precision=(bits.operands, bits.sums, bits.state),
        error=float(np.max(np.abs((found - exact.state) - exact.state_low))),
        random=random,
        bound=float(np.max(exact.tolerance(tuple(bits)))),
        tried=tried,
    )


@quietly()
def recurrence_in(keys: Array, values: Array, beta: Any, gate: Any, precision: Precision) -> Array:
    """The state after all steps of a program with this precision, (..., K, V); sums run from the first to the last."""

    def operand(numbers: Array) -> Array:
        return to_bits(numbers, precision.operands)

    def summed(numbers: Array) -> Array:
        return to_bits(numbers, precision.sums)

    beta, gate = (np.broadcast_to(number, keys.shape[:-1]) for number in (beta, gate))
    state = np.zeros((*keys.shape[:-2], keys.shape[-1], values.shape[-1]))
    for t in range(keys.shape[-2]):
        k = operand(keys[..., t, :])
        state = summed(gate[..., t, None, None] * state)
        read, told = operand(state), np.zeros(values[..., t, :].shape)
        for i in range(keys.shape[-1]):
            told = summed(told + summed(k[..., i, None] * read[..., i, :]))
        change = summed(beta[..., t, None] * summed(values[..., t, :] - told))
        state = summed(state + summed(k[..., :, None] * operand(change)[..., None, :]))
        state = to_bits(state, precision.state)
    return state


def _unit(vectors: Array) -> Array:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-30))


def _starts(
    rng: np.random.Generator, count: int, T: int, K: int, V: int, beta: float, gate: float
) -> tuple[Array, Array]:
    """The sequences that the search begins with: random ones first, then those of four kinds."""
    keys, values = _unit(rng.standard_normal((count, T, K))), rng.uniform(-1, 1, (count, T, V))
    half = count // 2
    kinds = np.array_split(np.arange(half, count), 4)
    turn = rng.uniform(0.001, 1, (len(kinds[0]), 1, 1)) * rng.standard_normal((len(kinds[0]), T, K)) / np.sqrt(K)
    keys[kinds[0]] = _unit(keys[kinds[0], :1] + np.cumsum(turn, axis=1))  # keys that turn slowly
    keys[kinds[1]] = keys[kinds[1], :1]  # one key
    values[kinds[1]] = np.where(np.arange(T)[:, None] % 2, -1.0, 1.0)
    keys[kinds[2]] = keys[kinds[2]][:, np.arange(T) % min(2, T)]  # two keys in turn
    state = np.zeros((len(kinds[3]), K))
    for t in range(T):  # keys orthogonal to the memory of the first output, values of size 1
        k = keys[kinds[3], t]
        size = np.maximum(np.sum(state**2, axis=-1, keepdims=True), 1e-30)
        k = _unit(k - state * np.sum(k * state, axis=-1, keepdims=True) / size) if K > 1 else k
        keys[kinds[3], t], values[kinds[3], t] = k, 1.0
        state = gate * state
        state = state + beta * k * (1 - np.sum(k * state, axis=-1, keepdims=True))
    return keys, values
