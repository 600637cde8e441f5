"""What an engine returns, and what `expect` makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from forgetting._arrays import Array, IntArray
from forgetting.errors import InvalidInputError
from forgetting.expectation.quantities import Quantity

__all__ = ["Expectation", "Outcome", "Values", "accuracy"]

Values = dict[str, Array]


@dataclass(frozen=True, eq=False)
class Expectation:
    """Expected quantities at the steps k, with intervals and the method that gave them.

    A scalar k gives scalars, a sequence gives arrays; `task_losses` has a last axis of tasks, and intervals a last axis
    (low, high). Where the method is exact both ends equal the value, and `uncertainty[name]` says how far rounding can
    have moved the value: a bound for "moments", "subsets" and "deterministic" with a linear scheme, an estimate for
    "spectral". A deterministic run of any other scheme has no uncertainty. Simulated values have intervals, and their
    uncertainty is half the width.

    Attributes:
        k: the steps.
        method: the name of the engine: "moments", "spectral", "subsets", "deterministic" or "monte-carlo".
        detail: how the values were computed, in words, and with how many digits.
        values: every quantity by its name.
        intervals: (low, high) of every quantity.
        uncertainty: of every quantity that has one.
        confidence: of the intervals; 1 for exact methods.
        runs: simulated runs, 0 for exact methods.
        notes: what a reader should know before quoting a number.
        estimated: whether uncertainties are estimates rather than bounds.
    """

    k: int | IntArray
    method: str
    detail: str
    values: dict[str, Array | float] = field(repr=False)
    intervals: dict[str, Array] = field(repr=False)
    uncertainty: dict[str, Array | float] = field(repr=False)
    confidence: float = 1.0
    runs: int = 0
    notes: tuple[str, ...] = ()
    estimated: bool = field(default=False, repr=False)

    def _get(self, name: str, table: Mapping[str, Array | float]) -> Array:
        if name not in table:
            raise InvalidInputError(f"{name} was not asked for; add it to quantities=, which was {tuple(self.values)}")
        return table[name]  # type: ignore[return-value]

    @property
    def exact(self) -> bool:
        """Whether the method is exact up to rounding."""
        return self.runs == 0

    @property
    def loss(self) -> Array:
        """E L(w_k)."""
        return self._get("loss", self.values)

    @property
    def forgetting(self) -> Array:
        """E F(k); NaN at k = 0, where there is no step to forget."""
        return self._get("forgetting", self.values)

    @property
    def regret(self) -> Array:
        """E of 1/k sum_t L_tau(t)(w_(t-1)); NaN at k = 0."""
        return self._get("regret", self.values)

    @property
    def error(self) -> Array:
        """E |w_k - w*|^2, with w* the offline solution nearest to w_0 (scaled iterates, where losses use those)."""
        return self._get("error", self.values)

    @property
    def task_losses(self) -> Array:
        """E L_m(w_k) for every task m (last axis)."""
        return self._get("task_losses", self.values)

    @property
    def seen_loss(self) -> Array:
        """E of 1/k sum_t L_tau(t)(w_k), the loss of the tasks that were visited; NaN at k = 0."""
        return self._get("seen_loss", self.values)

    @property
    def next_loss(self) -> Array:
        """E L_tau(k+1)(w_k), the loss of the task that is learned next; NaN where no task comes next."""
        return self._get("next_loss", self.values)

    @property
    def averaged_loss(self) -> Array:
        """E L of the mean of w_0, ..., w_(k-1), from which the first k steps start; NaN at k = 0."""
        return self._get("averaged_loss", self.values)

    @property
    def loss_interval(self) -> Array:
        """(low, high) for `loss`."""
        return self._get("loss", self.intervals)

    @property
    def forgetting_interval(self) -> Array:
        """(low, high) for `forgetting`."""
        return self._get("forgetting", self.intervals)

    def interval(self, name: str) -> Array:
        """(low, high) for any quantity."""
        return self._get(name, self.intervals)

    def __str__(self) -> str:
        ks = np.atleast_1d(self.k)
        shown = [name for name, value in self.values.items() if np.ndim(value) == np.ndim(self.k)]
        lines = [f"expected over orderings by {self.method}: {self.detail}"]
        lines.append("k".rjust(10) + "".join(f"  {name:>24}" for name in shown))
        for row in sorted({*range(min(8, len(ks))), len(ks) - 1}):
            cells = [_cell(self, name, row) for name in shown]
            lines.append(f"{int(ks[row]):>10}" + "".join(f"  {cell:>24}" for cell in cells))
        if len(ks) > 9:
            lines.insert(-1, f"{'...':>10}")
        return "\n".join([*lines, *accuracy(self), *(f"note: {note}" for note in self.notes)])


def accuracy(result: Expectation) -> list[str]:
    """How far rounding can have moved the values, in one line; empty for simulated values, whose intervals say more.

    >>> import forgetting as fg
    >>> e = fg.expect(fg.families.orthogonal(2), fg.orderings.WithReplacement(), 1, quantities=("loss", "regret"))
    >>> accuracy(e)
    ['rounding moves no value by more than 1e-15 of it']
    """
    if not result.exact or not result.uncertainty:
        return []
    worst = {}
    for name, uncertainty in result.uncertainty.items():
        value, doubt = np.abs(np.ravel(result.values[name])), np.ravel(uncertainty)
        told = np.isfinite(value) & (value > 0)
        worst[name] = float(np.max(doubt[told] / value[told], initial=0.0))
    if all(share <= 1e-15 for share in worst.values()):
        return ["rounding moves no value by more than 1e-15 of it"]
    how_much = "about" if result.estimated else "at most"
    shares = ", ".join(f"{name} {share:.1g}" for name, share in worst.items())
    return [f"rounding moves values by {how_much} this part of them: {shares}"]


def _cell(result: Expectation, name: str, row: int) -> str:
    value = float(np.atleast_1d(result.values[name])[row])
    if result.exact:
        return f"{value:.6g}"
    low, high = np.asarray(result.intervals[name]).reshape(-1, 2)[row]
    return f"{value:.3g} [{low:.2g}, {high:.2g}]"


@dataclass(eq=False)
class Outcome:
    """The values that an engine gives at the sorted steps of a request; the fields are those of `Expectation`.

    Without intervals both ends of each equal the value, as for exact engines.
    """

    detail: str
    values: Values
    uncertainty: Values = field(default_factory=dict)
    intervals: Values = field(default_factory=dict)
    confidence: float = 1.0
    runs: int = 0
    notes: tuple[str, ...] = ()
    estimated: bool = False

    def __post_init__(self) -> None:
        for name, value in self.values.items():
            self.intervals.setdefault(name, np.stack([value, value], axis=-1))

    def build(
        self, method: str, quantities: Sequence[Quantity], steps: IntArray, scalar: bool, order: IntArray
    ) -> Expectation:
        """The result for steps in the order, and of the shape, in which the caller gave them."""
        notes = list(self.notes)
        means = [quantity.name for quantity in quantities if quantity.needs_steps]
        if means and not steps.all():
            notes.append(f"{' and '.join(means)} at k = 0: a mean over no steps, nan")
        for name in (quantity.name for quantity in quantities if quantity.average == "next"):
            ended = steps[np.isnan(self.values[name][order])]
            if ended.size:
                notes.append(f"{name} at k = {ended.min()}: no task comes next, nan")

        def shape(table: Values) -> dict[str, Any]:
            picked = {name: value[order] for name, value in table.items()}
            if not scalar:
                return picked
            return {name: value[0] if value.ndim > 1 else float(value[0]) for name, value in picked.items()}

        return Expectation(
            k=int(steps[0]) if scalar else steps,
            method=method,
            detail=self.detail,
            values=shape(self.values),
            intervals=shape(self.intervals),
            uncertainty=shape(self.uncertainty),
            confidence=self.confidence,
            runs=self.runs,
            notes=tuple(notes),
            estimated=self.estimated,
        )
