"""`delta_rule`: the state of a gated delta-rule memory to 31 digits, and how far a kernel may be from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_number, numbers, real_array
from forgetting.core.memory import require_memory
from forgetting.core.numerical import EPS, quietly
from forgetting.errors import InvalidInputError
from forgetting.figures.items import Curves, Series
from forgetting.references._recurrence import TOO_SMALL, dampings, recurrence
from forgetting.references.rounding import (
    REFERENCE,
    Steps,
    Units,
    as_precision,
    errors_of_steps,
    inner_product,
    together,
    typical_of_steps,
)
from forgetting.results import Result

__all__ = ["DeltaRule", "Deviation", "delta_rule"]


class Deviation(NamedTuple):
    """The distance of a kernel's numbers from the exact ones, compared with what rounding can explain.

    Attributes:
        largest: the largest absolute error.
        share: the largest ratio of an error to its `tolerance`; above 1, no rounding explains the error.
        where: the entry with this ratio, of the state or of the outputs.
        within: whether every error is at most its tolerance.
        against_typical: the root mean square error of the state over that of `DeltaRule.typical`. Programs that are
            right have about 1; above 10, look for an error even where `within` is True.
    """

    largest: float
    share: float
    where: tuple[int, ...]
    within: bool
    against_typical: float

    def __str__(self) -> str:
        said = "rounding can explain all errors" if self.within else f"no rounding explains entry {self.where}"
        return (
            f"{said}: errors are up to {self.largest:.3g}, at most {self.share:.3g} of their tolerance, and "
            f"{self.against_typical:.3g} times the typical ones of the state"
        )


@dataclass(frozen=True, eq=False, repr=False)
class DeltaRule(Result):
    """The exact memory after all steps, S of shape (..., K, V), and bounds on errors.

    Attributes:
        state: S rounded to float64; recall is S^T k.
        state_low: what float64 leaves out: state + state_low has 31 digits.
        bound: for each entry, by how much state + state_low can be off.
        outputs: scale S_t^T q_t after each step, laid out as the values are; None without queries.
        keys, values, beta, gate: of each step, (..., T, K), (..., T, V) and (..., T).
        queries: (..., T, K), times the scale; None if none were given.
        initial_state: (..., K, V).
        time_axis: the axis of steps in the keys that were given.
    """

    kind = "delta rule"

    state: Array
    state_low: Array
    bound: Array
    outputs: Array | None
    keys: Array
    values: Array
    beta: Array
    gate: Array
    queries: Array | None
    initial_state: Array
    time_axis: int
    sizes: Array = field(repr=False)
    reach: Array = field(repr=False)
    missed: Array = field(repr=False)
    read: Array = field(repr=False)

    @property
    def recall(self) -> Array:
        """1/2 |S^T k_t - v_t|^2 of every pair that was written, (..., T): what the final memory makes of it."""
        gap = np.einsum("...tk,...kv->...tv", self.keys, self.state) - self.values
        return np.asarray(0.5 * np.sum(gap**2, axis=-1))

    def tolerance(self, precision: Any = "float32") -> Array:
        """For each entry of S, a bound on the error of every program that makes these steps in this precision.

        The program makes one step after another, adds in any order, and rounds to nearest: the two factors of S^T k and
        of k (beta (v - S^T k))^T, where beta may be on either side, to `operands` binary digits, all other sums and
        products to `sums`, and the state after each step to `state`. Outputs are sums. Words for these
        three numbers are "float32", "tf32" (operands rounded, sums of float32), "bfloat16", "float16" (both for every
        operation), "bfloat16 to float32" (operands of bfloat16, sums of float32) and "float64". Keys, values, beta and
        gate are those of the reference: round them before the reference is computed. Nothing over- or underflows.
        Programs that treat several steps as one (chunks) solve triangular systems, which this bound does not cover.
        """
        return self._tolerance(Units.of(as_precision(precision)))

    def typical(self, precision: Any = "float32") -> Array:
        """For each entry of S, the root mean square error of a plain recurrence, if roundings are independent.

        A rule of thumb, not a bound: programs that are right reach at most a few times this number, and are far below
        their `tolerance`, which grows with every rounding at its worst. Where keys repeat, so do roundings, and errors
        may be far smaller: test a kernel on different keys.
        """
        made = typical_of_steps(self._steps, as_precision(precision), self.keys.shape[-1])
        with quietly():
            return _bounded(np.sqrt(np.swapaxes(self._dampings, -1, -2) ** 2 @ made**2))

    def output_tolerance(self, precision: Any = "float32") -> Array:
        """`tolerance` for the outputs, in their layout."""
        if self.queries is None:
            raise InvalidInputError("this reference has no outputs; give queries= to fg.references.delta_rule")
        units, size = Units.of(as_precision(precision)), self.keys.shape[-1]
        _, errors = errors_of_steps(self._steps, units, size)
        lengths = _norms(self.queries, -1)[..., None] * (1 + size * EPS)
        product = together(inner_product(units, size), units.sums)
        moved = lengths * errors + product * (self.read + lengths * errors) + EPS * self.read
        return np.moveaxis(moved, -2, self.time_axis)

    def compare(self, state: Any, precision: Any = "float32", *, outputs: Any = None) -> Deviation:
        """Compare a kernel's final state, and its outputs if they are given, with the exact ones.

        >>> rng = np.random.default_rng(0)
        >>> keys, values = rng.standard_normal((2, 50, 4)) / 2
        >>> exact = delta_rule(keys, values, beta=0.5, gate=0.9)
        >>> state = np.zeros((4, 4), dtype=np.float32)
        >>> for k, v in zip(keys.astype(np.float32), values.astype(np.float32)):
        ...     state *= np.float32(0.9)
        ...     state += np.float32(0.5) * np.outer(k, v - state.T @ k)
        >>> rounded = delta_rule(keys.astype(np.float32), values.astype(np.float32), 0.5, np.float32(0.9))
        >>> rounded.compare(state).within, rounded.compare(1.001 * state).within
        (True, False)
        """
        parts = [(state, "state", self.state, self.state_low, self.tolerance(precision))]
        if outputs is not None:
            allowed = self.output_tolerance(precision)
            assert self.outputs is not None
            parts.append((outputs, "outputs", self.outputs, np.zeros(self.outputs.shape), allowed))
        found, largest, typical = [], 0.0, 0.0
        for given, what, exact, low, allowed in parts:
            error = np.abs((numbers(given, what, shape=exact.shape) - exact) - low)
            error = np.where(np.isnan(error), np.inf, error)
            with np.errstate(all="ignore"):
                share = np.where((error == 0) | np.isinf(error), error, error / allowed)
            where = np.unravel_index(int(np.argmax(share)), share.shape) if share.size else ()
            found.append((float(np.max(share, initial=0.0)), tuple(map(int, where))))
            largest = max(largest, float(np.max(error, initial=0.0)))
            if what == "state" and error.any():
                with np.errstate(all="ignore"):
                    typical = float(_bounded(np.linalg.norm(error) / np.linalg.norm(self.typical(precision))))
        worst, place = max(found)
        return Deviation(largest, worst, place, worst <= 1, typical)

    # ------------------------------------------------------------------------------------------------------- bounds

    @cached_property
    def _steps(self) -> Steps:
        lengths = _norms(self.keys, -1) * (1 + self.keys.shape[-1] * EPS)
        grown = 1 + (self.keys.shape[-1] + 4) * EPS  # sizes were added in float64
        return Steps(
            self.beta,
            self.gate,
            lengths,
            np.abs(self.values),
            self.sizes * grown,
            self.reach * grown,
            self.missed * grown,
        )

    @cached_property
    def _dampings(self) -> Array:
        """`dampings` of every head, (..., T, K)."""
        found = np.empty(self.keys.shape)
        for head in np.ndindex(self.keys.shape[:-2]):
            found[head] = dampings(self.keys[head], self.beta[head], self.gate[head], EPS)
        return found

    def _tolerance(self, units: Units) -> Array:
        made, _ = errors_of_steps(self._steps, units, self.keys.shape[-1])
        with quietly():
            return _bounded(np.swapaxes(self._dampings, -1, -2) @ made * (1 + 1e-9))

    # ------------------------------------------------------------------------------------------------------ looking

    @property
    def headline(self) -> str:
        steps, size = self.keys.shape[-2:]
        heads = int(np.prod(self.keys.shape[:-2]))
        many = f"{heads} heads of " if self.keys.ndim > 2 else ""
        return (
            f"Delta rule after {steps} steps: {many}{size} x {self.values.shape[-1]} numbers, "
            f"each known to {float(np.max(self.bound, initial=0.0)):.2g}"
        )

    def _num_rows(self) -> int:
        return int(np.prod(self.keys.shape[:-2]))

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Any]:
        lead, steps = self.keys.shape[:-2], max(1, self.keys.shape[-2])
        parts = self.state, self.bound, self.tolerance("float32"), self.typical("float32")
        largest = [np.max(np.abs(part), axis=(-2, -1), initial=0.0).reshape(-1)[rows].tolist() for part in parts]
        heads = [", ".join(map(str, np.unravel_index(row, lead))) if lead else "0" for row in rows.tolist()]
        names = "largest entry", "error at most", "float32 within", "float32 typically"
        recall = (np.sum(self.recall, axis=-1) / steps).reshape(-1)[rows].tolist()
        return {"head": heads} | dict(zip(names, largest, strict=True)) | {"mean recall error": recall}

    def figure(self) -> Curves:
        """The recall error of each pair, by the number of steps since it was written; the mean over all heads."""
        recall = self.recall
        error = recall.sum(axis=tuple(range(recall.ndim - 1)))[::-1] / max(1, self._num_rows())
        ago = tuple(range(len(error)))
        series = Series("recall error", ago, tuple(error.tolist()), method=f"{self._num_rows()} heads")
        return Curves(
            "delta-rule", "What the memory recalls", self.headline, "steps since the pair was written",
            "1/2 |S^T k - v|^2", (series,), xlog=False, ylog=False,
        )  # fmt: skip

    @classmethod
    def _restored(cls, values: dict[str, Any]) -> DeltaRule:
        made = super()._restored(values)
        lead, steps, size, wide = made.keys.shape[:-2], *made.keys.shape[-2:], made.values.shape[-1]
        known = {(*lead, size, wide): ("state", "state_low", "bound", "initial_state"),
                 (*lead, steps, wide): ("values", "reach", "missed"), (*lead, steps): ("beta", "gate"),
                 (*lead, steps + 1, wide): ("sizes",)}  # fmt: skip
        for shape, names in known.items():
            for name in names:
                if getattr(made, name).shape != shape:
                    raise InvalidInputError(
                        f"not a delta rule: {name} has shape {getattr(made, name).shape}, not {shape}"
                    )
        return made


def delta_rule(
    keys: Any,
    values: Any,
    beta: Any = 1.0,
    gate: Any = 1.0,
    *,
    queries: Any = None,
    scale: float = 1.0,
    initial_state: Any = None,
    time_axis: int = -2,
) -> DeltaRule:
    """The memory of a gated delta rule after all steps, to 31 digits, with a bound on the error of each entry.

    Step t makes S <- gate_t S, and then S <- S + beta_t k_t (v_t - S^T k_t)^T: the memory fades, and what it recalls
    for the key moves to the value. With unit keys and beta = gate = 1 this is the Kaczmarz method with several outputs;
    beta is the step size of `fg.schemes.SGD(objective="loss")`, and the gate the factor of `fg.schemes.Decay`.

    Args:
        keys: (..., T, K); leading axes are batches and heads. Keys are not normalised here.
        values: (..., T, V).
        beta: the write strength, a number or one for each step, (T,) or (..., T); at least 0.
        gate: the factor of the memory before each write, as beta. Kernels often take its logarithm: pass its exp.
        queries: (..., T, K), for the outputs scale S_t^T q_t after each step; None for none.
        scale: of the outputs.
        initial_state: (..., K, V); zeros if left out.
        time_axis: the axis of steps in keys, values and queries: 1 for arrays (batch, step, head, size), whose beta
            and gate are (batch, step, head).

    Give the numbers that the kernel gets, after they were rounded to its format: float32 and bfloat16 are converted
    without error.

    >>> memory = delta_rule(keys=[[1.0, 0.0], [0.6, 0.8]], values=[[1.0], [1.0]])
    >>> memory.state.round(12).tolist(), float(memory.bound.max()) < 1e-29
    ([[1.24], [0.32]], True)
    >>> delta_rule([[1.0]], [[1.0]], gate=float("nan"))
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: gate at step 0 (from 0) is nan; it must be finite
    """
    axis = as_number(time_axis, "time_axis")
    given = real_array(keys, "keys", squares=True)
    if (
        given.ndim < 2
        or axis != int(axis)
        or not -given.ndim <= axis < given.ndim - 1
        or axis == -1
        or not given.shape[-1]
    ):
        raise InvalidInputError(
            f"keys: expected (..., steps, size) with steps along time_axis = {axis:g}, got shape {given.shape}"
        )
    place = int(axis) % given.ndim
    keys = np.ascontiguousarray(np.moveaxis(given, place, -2))
    values = _along(values, "values", place, keys.shape[:-1])
    lead, (steps, size), wide = keys.shape[:-2], keys.shape[-2:], values.shape[-1]
    heads = int(np.prod(lead))
    require_memory(
        8.0 * heads * (5 * steps * wide + 4 * size * wide + 3 * steps * size),
        f"a delta rule of {heads} heads with {steps} steps of {size} x {wide} numbers",
        "give fewer heads at a time",
    )
    strength = _per_step(beta, "beta", lead, steps, place, "a write strength is at least 0")
    fading = _per_step(
        gate, "gate", lead, steps, place, "the gate is a factor; if this is its logarithm, pass np.exp(gate)"
    )
    asked = None
    if queries is not None:
        asked = _along(queries, "queries", place, keys.shape[:-1], size) * as_number(scale, "scale")
    first = np.zeros((*lead, size, wide))
    if initial_state is not None:
        first = real_array(initial_state, "initial_state", shape=first.shape, squares=True)
    state, low = first.copy(), np.zeros(first.shape)
    outputs, read = (np.zeros((*lead, steps if asked is not None else 0, wide)) for _ in range(2))
    sizes, (reach, missed) = np.empty((*lead, steps + 1, wide)), np.empty((2, *lead, steps, wide))
    sizes[..., 0, :] = _norms(first, -2)
    nothing = np.zeros((0, size))
    for head in np.ndindex(lead):
        recurrence(
            keys[head], values[head], strength[head], fading[head], nothing if asked is None else asked[head],
            state[head], low[head], outputs[head], read[head], sizes[head], reach[head], missed[head],
        )  # fmt: skip
    bad = np.argwhere(~np.isfinite(sizes).all(axis=-1))
    if len(bad):
        step = int(np.min(bad[:, -1])) - 1
        raise InvalidInputError(f"step {step} (from 0): the state is beyond float64; beta |k|^2 above 2 makes it grow")
    made = DeltaRule(
        state=state,
        state_low=low,
        bound=np.zeros(state.shape),
        outputs=None if asked is None else np.moveaxis(outputs, -2, place),
        keys=keys,
        values=values,
        beta=strength,
        gate=fading,
        queries=asked,
        initial_state=first,
        time_axis=place,
        sizes=sizes,
        reach=reach,
        missed=missed,
        read=read,
    )
    made.bound[:] = made._tolerance(REFERENCE)
    return made


def _norms(array: Array, axis: int) -> Array:
    """Norms along an axis; where squares lose digits, sums of absolute values, which are larger."""
    norms = np.linalg.norm(array, axis=axis)
    return np.asarray(np.where(norms < TOO_SMALL, np.sum(np.abs(array), axis=axis), norms))


def _bounded(numbers: Any) -> Array:
    """Infinity for NaN, which stands for sums and products of infinities here."""
    return np.where(np.isnan(numbers), np.inf, numbers)


def _along(given: Any, what: str, place: int, lead: tuple[int, ...], size: int | None = None) -> Array:
    """An array with a row for each key, with steps on the last axis but one; its other axes are those of the keys."""
    array = real_array(given, what, squares=True)
    moved = np.moveaxis(array, place, -2) if array.ndim == len(lead) + 1 else array
    if array.ndim != len(lead) + 1 or moved.shape[:-1] != lead or size not in (None, moved.shape[-1]):
        wanted = "one row for each key" + ("" if size is None else f" of {size} numbers")
        raise InvalidInputError(f"{what}: expected {wanted}, laid out as the keys are, got shape {array.shape}")
    return np.ascontiguousarray(moved)


def _per_step(given: Any, what: str, lead: tuple[int, ...], steps: int, place: int, remedy: str) -> Array:
    """One number for each head and step, from a number, one for each step, or one for each of both."""
    array = numbers(given, what)
    if array.ndim == len(lead) + 1:
        array = np.moveaxis(array, place, -1)
    if array.shape not in ((), (steps,), (*lead, steps)):
        raise InvalidInputError(f"{what}: expected a number or one for each of {steps} steps, got shape {array.shape}")
    every = np.ascontiguousarray(np.broadcast_to(array, (*lead, steps)))
    odd = np.argwhere(~(every >= 0) | np.isinf(every))
    if len(odd):
        *head, step = odd[0].tolist()
        value, of = every[tuple(odd[0])], f" of head {tuple(head)}" if head else ""
        raise InvalidInputError(
            f"{what} at step {step} (from 0){of} is {value:g}; {remedy if value < 0 else 'it must be finite'}"
        )
    return every
