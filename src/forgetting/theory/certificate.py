"""Measured and theoretical values side by side, for a user's own problem."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from forgetting.core.arrays import IntArray, Seed, as_count, as_seed, seed_from
from forgetting.core.progress import Progress, Report, progress_bar, reports_progress
from forgetting.errors import ForgettingError
from forgetting.expectation import expect
from forgetting.figures.items import Bars
from forgetting.figures.text_formats import columns_text
from forgetting.orderings.base import OrderingLike, as_ordering
from forgetting.orderings.laws import Independent
from forgetting.results import PlainResult
from forgetting.schemes.base import SchemeLike, as_scheme
from forgetting.tasks import Problem
from forgetting.tasks.problem import as_problem
from forgetting.theory.checking import noise_from_data, regression
from forgetting.theory.claim import Claim
from forgetting.theory.evaluation import MOST_BARS, Evaluation, evaluate
from forgetting.theory.expectations import (
    Numbers,
    as_least_squares,
    probabilities,
    remembered,
    squared_distance,
    start_noise,
)
from forgetting.theory.instance import Instance
from forgetting.theory.numbering import PRINTED
from forgetting.theory.registry import all_claims, get_claim, heading_of, name_by_key
from forgetting.theory.setting import describe_ordering, describe_scheme
from forgetting.theory.verdict import TOLERANCE, Verdict

__all__ = ["BoundRow", "Certificate", "ClaimRow", "Measured", "Residual", "certify"]

WIDTH = 80
MEASURED = ("loss", "forgetting", "regret")
ORDER = (*MEASURED, "residual", "objective", "averaged_objective", "error")


@dataclass(frozen=True)
class Measured:
    """An expected value, with its interval and the method that gave it.

    `exact`: up to rounding; if it is not given, as in older files, whether the interval is a point.

    >>> Measured("loss", 0.1, 0.1, 0.1, "moments").exact, Measured("loss", 0.1, 0.0, 0.2, "monte-carlo").exact
    (True, False)
    """

    quantity: str
    value: float
    low: float
    high: float
    method: str
    exact: bool | None = None

    def __post_init__(self) -> None:
        if self.exact is None:
            object.__setattr__(self, "exact", self.low == self.high)


@dataclass(frozen=True)
class BoundRow:
    """A bound that applies, and how much of it the measured value uses (None where the quantity was not measured).

    `holds` is false where the measured value, or all of its interval, is above the bound.

    >>> BoundRow("demo", "loss", 1.0, 0.5, "holds as stated", True, False).ratio
    0.5
    """

    key: str
    quantity: str
    value: float
    ratio: float | None
    status: str
    tightest: bool
    vacuous: bool
    holds: bool = True

    @property
    def cells(self) -> tuple[str, str, str]:
        """Name, value and share of the bound that is used, as text."""
        share = _word(False) if not self.holds else "-" if self.ratio is None else f"{self.ratio:.3g}"
        return heading_of(self.key) + (" (tightest)" if self.tightest else ""), f"{self.value:.4g}", share


@dataclass(frozen=True)
class Residual:
    """An identity of the theory on this problem: how far its two sides are apart, relative to their scale.

    `doubt` is how much of that simulation may account for, 0 where nothing is simulated.

    >>> Residual("a = b", 1e-16, True, "one run each").holds
    True
    """

    identity: str
    value: float
    holds: bool
    how: str
    doubt: float = 0.0

    @property
    def cells(self) -> tuple[str, str, str]:
        """Identity, residual and verdict, as text."""
        return self.identity, f"{_about(self)}{self.value:.2g}", _word(self.holds)


@dataclass(frozen=True)
class ClaimRow:
    """A statement of the paper on this problem.

    `how` says how both sides were obtained, and `doubt` how far their difference may be off: 0 unless simulated. A
    statement that simulation leaves open is not `decided`; `holds` then says that nothing speaks against it.

    >>> ClaimRow("demo", None, 1.0, 2.0, 0.5, True, "refuted", "closed form").status
    'refuted'
    """

    label: str
    part: str | None
    lhs: float
    rhs: float
    ratio: float | None
    holds: bool
    status: str
    how: str
    doubt: float = 0.0
    decided: bool = True

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        """Name, both sides, their ratio and the verdict, as text."""
        share = "-" if self.ratio is None else f"{self.ratio:.3g}"
        word = "refuted" if self.status == "refuted" and not self.holds else _word(self.holds, self.decided)
        return heading_of(self.label, self.part), f"{_about(self)}{self.lhs:.3g}", f"{self.rhs:.3g}", share, word


@dataclass(frozen=True, repr=False)
class Certificate(PlainResult):
    """The result of `certify`: plain data, so that `Certificate.from_json(c.to_json()) == c`.

    Attributes:
        problem, ordering, scheme: in words.
        k: the number of steps.
        measured: expected loss, forgetting and regret.
        bounds: the upper bounds that apply, smallest first.
        residuals: identities of the theory, checked on this problem.
        claims: statements of the paper, checked on this problem.
        w0: the start, None for 0.
        seed: of everything that was simulated, the sides of statements included.
        notes: what a reader should know of the measured values.
    """

    kind = "certificate"
    _beside = ("holds", "meta")  # of the command line

    problem: str
    ordering: str
    scheme: str
    k: int
    w0: tuple[float, ...] | None
    seed: int
    measured: tuple[Measured, ...]
    bounds: tuple[BoundRow, ...]
    residuals: tuple[Residual, ...]
    claims: tuple[ClaimRow, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        as_count(self.k, "k")
        as_seed(self.seed)

    @property
    def headline(self) -> str:
        word = "everything holds" if self.holds else "something FAILS"
        return f"Certificate of {self.problem}, {self.ordering}, {self.scheme}, k = {self.k}: {word}"

    def _num_rows(self) -> int:
        return len(self.bounds)

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Any]:
        values = {row.quantity: row.value for row in self.measured}
        chosen = [self.bounds[row] for row in rows]
        keys = {"key": [row.key for row in chosen]} if full else {}
        return {
            "quantity": [row.quantity for row in chosen],
            "measured": [values.get(row.quantity) for row in chosen],
            "bound": [row.value for row in chosen],
            "measured/bound": [row.ratio for row in chosen],
            "by": [name_by_key(row.key) for row in chosen],
            "holds": [row.holds for row in chosen],
            **keys,
        }

    def _remarks(self) -> tuple[str, ...]:
        failed = [row.cells[0] for row in self.claims if not row.holds and row.status != "refuted"]
        verdict = f"these fail: {', '.join(failed)}" if failed else "all hold, but for those known to be false"
        return (f"{len(self.claims)} statements were checked: {verdict}", *self.notes)

    def figure(self) -> Bars | None:
        """Bars: the share of each bound that the measured value uses."""
        used = sorted((row for row in self.bounds if row.ratio is not None), key=lambda row: -(row.ratio or 0.0))[
            :MOST_BARS
        ]
        if not used:
            return None
        names = tuple(f"{row.quantity}: {name_by_key(row.key)}" for row in used)
        marked = tuple(place for place, row in enumerate(used) if row.tightest)
        ratios = tuple(row.ratio for row in used)
        return Bars("certificate", "Measured value over bound", "", "measured / bound", names, ratios, marked, 1.0, "1")

    @property
    def holds(self) -> bool:
        """Whether every identity, and every bound and statement that is not known to be false, holds here."""
        known = [row.holds for row in self.bounds if row.status != "refuted"]
        known += [row.holds for row in self.claims if row.status != "refuted"]
        return all(known) and all(row.holds for row in self.residuals)

    def __str__(self) -> str:
        intervals = ["exact" if row.exact else f"[{row.low:.2g}, {row.high:.2g}]" for row in self.measured]
        values = [(f"{row.quantity}, by {row.method}", f"{row.value:.6g}") for row in self.measured]
        tables = [_table(("measured", "value", ""), [(*row, at) for row, at in zip(values, intervals, strict=True)])]
        for quantity in dict.fromkeys((*ORDER, *(row.quantity for row in self.bounds))):
            rows = [row.cells for row in self.bounds if row.quantity == quantity]
            tables += [_table((f"bounds on the {quantity}", "bound", "measured/bound"), rows)] if rows else []
        if not self.bounds:
            tables.append("no bound applies to this scheme, ordering and k")
        if self.residuals:
            tables.append(_table(("identities", "residual", ""), [row.cells for row in self.residuals]))
        if self.claims:
            tables.append(_table(("statements", "lhs", "rhs", "ratio", ""), [row.cells for row in self.claims]))
        if any(row.doubt for row in self.residuals) or any(row.doubt for row in self.claims):
            tables.append("~ simulated (open: that does not decide it); the JSON has how far it may be off")
        head = [_cut(line) for line in (f"{self.problem}, k = {self.k}", f"{self.ordering}, {self.scheme}")]
        notes = [textwrap.fill(f"note: {note}", WIDTH, subsequent_indent=" " * 6) for note in self.notes]
        return "\n\n".join(["\n".join(head), *tables, *(["\n".join(notes)] if notes else [])])


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return columns_text(list(zip(heads, *rows, strict=True)), WIDTH)


def _cut(text: str) -> str:
    return text if len(text) <= WIDTH else text[: WIDTH - 3] + "..."


def _about(row: Residual | ClaimRow) -> str:
    return "~" if row.doubt else ""


def _word(holds: bool, decided: bool = True) -> str:
    return "FAILS" if not holds else "holds" if decided else "open"


@reports_progress
def certify(
    problem: Problem,
    ordering: OrderingLike,
    k: int,
    scheme: SchemeLike | None = None,
    w0: Any = None,
    seed: Seed = 0,
    runs: int | None = None,
    *,
    progress: Progress = False,
) -> Certificate:
    """Measured values, every bound that applies, identities and statements of the theory, on one problem.

    Args:
        problem, ordering, k, scheme, w0, progress: as for `fg.run`.
        seed, runs: for all that is simulated where exactness does not fit: measured values, identities and
            statements. None is a number of runs that depends on k.

    >>> import forgetting as fg
    >>> c = certify(fg.families.two_lines(0.14), fg.orderings.WithReplacement(), k=100)
    >>> best = next(row for row in c.bounds if row.tightest and row.quantity == "loss")
    >>> best.key, round(best.ratio, 3), c.holds
    ('two-lines:random/loss', 1.0, True)
    >>> Certificate.from_json(c.to_json()) == c
    True
    """
    k, seed, ordering = as_count(k, "k", least=1), seed_from(seed), as_ordering(ordering, as_problem(problem).names)
    scheme = None if scheme is None else as_scheme(scheme)
    fitted = None if scheme is None else scheme.fitted_to(problem, k)
    instance = Instance(problem, ordering, k, scheme=fitted, w0=w0, seed=seed, runs=runs)
    rows = evaluate(problem, ordering, k, w0, scheme=scheme)
    with progress_bar("certify") as report:
        report("expected values", 0, len(all_claims()))
        measured, notes = _measure(instance)
        residuals = _residuals(instance)
        claims = _claims(instance, report)
    return Certificate(
        problem=repr(problem),
        ordering=str(ordering),
        scheme="natural scheme" if scheme is None else str(scheme),
        k=k,
        w0=None if w0 is None else tuple(np.asarray(instance.w0, dtype=np.float64).tolist()),
        seed=seed,
        measured=measured,
        bounds=_bounds(rows, measured, start_noise(instance)),
        residuals=residuals,
        claims=claims,
        notes=notes,
    )


def _measure(instance: Instance) -> tuple[tuple[Measured, ...], tuple[str, ...]]:
    result = expect(
        instance.posed,
        instance.ordering,  # type: ignore[arg-type]
        instance.k,
        instance.scheme,
        instance.w0,
        quantities=MEASURED,
        seed=instance.seed,
        runs=instance.runs,
    )
    rows = []
    for name in MEASURED:
        remembered(instance, (name, instance.k), lambda: result)  # the statements ask for the same
        low, high = np.asarray(result.interval(name)).tolist()
        rows.append(Measured(name, float(result.values[name]), low, high, result.method, result.exact))
    law = None if instance.ordering is None else instance.ordering.law
    if instance.posed.half_squared_distances:
        rows.append(replace(rows[0], quantity="residual"))
    elif regression(instance) is None and isinstance(law, Independent):
        rows += _objective(instance)
    elif instance.posed.linear is instance.posed and isinstance(law, Independent):
        rows += _with_noise(instance)
    return tuple(rows), result.notes


def _with_noise(instance: Instance) -> list[Measured]:
    """Rows for tasks without a common solution: E L of the mean iterate, E |w_k - w*|^2 for the least-squares w*."""
    rows = []
    try:
        numbers = Numbers(instance)
        value = float(numbers.value("averaged_loss", instance.k))
        if numbers.doubt <= 1e-6 * abs(value):
            rows.append(Measured("averaged_loss", value, value, value, numbers.how, True))
        value, doubt, how = squared_distance(instance, noise_from_data(instance).best)
        if doubt <= 1e-6 * abs(value):
            rows.append(Measured("error", value, value, value, how, True))
    except ForgettingError:
        pass  # too large, or not by projections
    return rows


def _objective(instance: Instance) -> list[Measured]:
    """E f(w_k) and E f of the mean of the iterates of SGD, and E |w_k - w*|^2.

    Projections are SGD too: then E f(w_k) is the residual, if draws are uniform.
    """
    try:
        case = as_least_squares(instance)
        last, mean, error = Numbers(case), Numbers(case), Numbers(instance)
        values = {
            "objective": (last.next_loss(instance.k), last),
            "averaged_objective": (float(probabilities(case) @ mean.value("averaged_task_losses", instance.k)), mean),
            "error": (float(error.value("error", instance.k)), error),
        }
    except ForgettingError:
        return []
    # what is simulated, or lost in rounding errors, is left out
    rows = [
        Measured(name, v, v, v, n.how, True) for name, (v, n) in values.items() if n.doubt <= 1e-6 * (1e-300 + abs(v))
    ]
    uniform = "with replacement" in describe_ordering(instance.ordering, instance.problem)  # type: ignore[arg-type]
    projected = "projection" in describe_scheme(instance.scheme, instance.problem)[0]
    same = [row for row in rows if row.quantity == "objective" and uniform and projected]
    return rows + [replace(row, quantity="residual") for row in same]


def _bounds(rows: Evaluation, measured: tuple[Measured, ...], noise: float) -> tuple[BoundRow, ...]:
    known = {row.quantity: row.value for row in measured}
    least = {row.quantity: row.low for row in measured}
    rounding = noise + 1e-14 * max((row.value for row in rows.applicable() if row.bound.kind == "upper"), default=0.0)
    result = []
    for row in rows.applicable():
        if row.bound.kind != "upper":
            continue
        value = known.get(row.quantity)
        ratio = None if value is None or row.value <= 0 else value / row.value
        result.append(
            BoundRow(
                row.bound.key,
                row.quantity,
                row.value,
                ratio,
                row.bound.status,
                row.tightest,
                row.vacuous,
                least.get(row.quantity, 0.0) <= row.value * (1 + TOLERANCE) + rounding,
            )
        )
    return tuple(result)


def _residuals(instance: Instance) -> tuple[Residual, ...]:
    """The reductions on this very ordering, and the identity between loss and forgetting."""
    named: list[tuple[str, str | None, str]] = [
        ("reduc:cl_to_kaczmarz", None, "gradient descent to convergence = Kaczmarz"),
        ("reduc:kaczmarz", None, "Kaczmarz = SGD of step size 1 on the modified loss"),
        ("prop:loss_to_forgetting", "regression", "loss = seen and unseen parts"),
        ("prop:loss_to_forgetting", "POCS", "loss = seen and unseen parts"),
    ]
    rows = []
    for label, part, words in named:
        verdict = _verdict(get_claim(label, part), instance)
        if verdict is not None:
            doubt = verdict.doubt / verdict.scale if verdict.coarse else 0.0
            identity = f"{PRINTED[label].number}, {words} [{label}]"
            rows.append(Residual(identity, verdict.residual, verdict.holds, verdict.how, doubt))
    return tuple(rows)


def _verdict(claim: Claim, instance: Instance) -> Verdict | None:
    """The verdict on a statement; None where the statement says nothing, or is too large to be checked."""
    try:
        return claim.check(instance) if claim.why_not(instance) is None else None
    except ForgettingError:
        return None


def _claims(instance: Instance, report: Report) -> tuple[ClaimRow, ...]:
    """Every statement that applies and needs nothing but the problem, the ordering, k and the scheme."""
    shown = {"reduc:cl_to_kaczmarz", "reduc:kaczmarz", "prop:loss_to_forgetting"}
    rows = []
    for number, claim in enumerate(all_claims()):
        report(claim.name, number, len(all_claims()))
        if claim.label in shown or claim.needs or (verdict := _verdict(claim, instance)) is None:
            continue
        ratio = verdict.ratio if math.isfinite(verdict.ratio) and claim.kind == "inequality" else None
        sides = verdict.lhs, verdict.rhs, ratio, verdict.holds
        doubt = verdict.doubt if verdict.coarse else 0.0
        rows.append(ClaimRow(claim.label, claim.part, *sides, claim.status, verdict.how, doubt, verdict.decided))
    return tuple(rows)
