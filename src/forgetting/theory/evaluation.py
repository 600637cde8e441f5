"""Every bound at once, on the user's own problem."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from forgetting._arrays import as_count, as_kind
from forgetting.errors import InvalidInputError, OrderingError
from forgetting.orderings import Ordering
from forgetting.schemes import Scheme
from forgetting.tasks import Problem
from forgetting.theory.bound import ORIGINS, Bound
from forgetting.theory.setting import Setting, as_regression, describe_ordering, describe_scheme
from forgetting.theory.statement import all_bounds

__all__ = ["Evaluation", "Row", "evaluate"]


@dataclass(frozen=True)
class Row:
    """One bound at one k.

    Attributes:
        bound: the bound; its key, formula, source and status are there.
        quantity: what it bounds.
        value: the right-hand side, NaN where the bound does not apply.
        applies: whether it says something about this problem, ordering, scheme and k.
        why_not: the reason if not.
        vacuous: an upper bound that is no smaller than the trivial one.
        tightest: the smallest of the applicable upper bounds on its quantity.

    >>> import forgetting as fg
    >>> rows = fg.bounds.evaluate(fg.families.two_lines(0.5), fg.orderings.WithReplacement(), k=100)
    >>> best = next(row for row in rows if row.tightest and row.quantity == "loss")
    >>> print(best)
    loss <= 0.00183938  two-lines:random/loss  (tightest, proved here)
    """

    bound: Bound
    quantity: str
    value: float
    applies: bool
    why_not: str
    vacuous: bool
    tightest: bool = False

    def __str__(self) -> str:
        if not self.applies:
            return f"{self.quantity}: {self.bound.key} does not apply: {self.why_not}"
        sign = {"upper": "<=", "lower": "worst case >=", "rate": "= O of"}[self.bound.kind]
        marks = [
            word
            for word, on in (
                ("tightest", self.tightest),
                ("vacuous", self.vacuous),
                (self.bound.status, self.bound.status != "holds as stated"),
            )
            if on
        ]
        return f"{self.quantity} {sign} {self.value:.6g}  {self.bound.key}" + (
            f"  ({', '.join(marks)})" if marks else ""
        )


class Evaluation(list[Row]):
    """The rows of `evaluate`: those that apply first, sorted by value (rates, whose constants are not known, after the
    others), then those that do not, with the reason. `setting` and `k` are what they were evaluated at.

    >>> import forgetting as fg
    >>> rows = fg.bounds.evaluate(fg.families.two_lines(0.5), fg.orderings.Cyclic(), k=4)
    >>> [row.bound.key for row in rows.applicable("forgetting")][:2]
    ['evron2022:cyclic/forgetting/lower', 'evron2022:alternating/forgetting']
    """

    def __init__(self, rows: Iterable[Row], setting: Setting, k: int) -> None:
        super().__init__(rows)
        self.setting = setting
        self.k = k

    def applicable(self, quantity: str | None = None) -> list[Row]:
        """The rows that apply, on one quantity or on all."""
        as_kind(quantity, str | None, "a quantity such as 'loss'")
        return [row for row in self if row.applies and quantity in (None, row.quantity)]

    def tightest(self, quantity: str) -> Row | None:
        """The smallest applicable upper bound, or None."""
        as_kind(quantity, str, "a quantity such as 'loss'")
        return next((row for row in self if row.tightest and row.quantity == quantity), None)

    def __str__(self) -> str:
        return "\n".join(str(row) for row in self)


def evaluate(
    problem: Problem | Setting,
    ordering: Ordering | str,
    k: int,
    w0: Any = None,
    *,
    scheme: Scheme | None = None,
    **more: float,
) -> Evaluation:
    """All bounds of the registry at k: which apply, what they say, which is tightest, which say nothing.

    Args:
        problem: tasks (jointly realizable, else `NotRealizableError`), or a `Setting`.
        ordering: an ordering, or the name of one where `problem` is a `Setting`.
        k: number of steps.
        w0: the start, 0 if left out.
        scheme: the problem's natural scheme if left out. Kaczmarz, GradientDescent and SGD with step 1 on the
            modified objective are the same thing; for other SGD only the SGD bounds apply.
        **more: numbers to add or override: sigma, G, previous_loss, rank_joint, ...

    >>> import forgetting as fg
    >>> tasks = fg.families.gaussian(T=20, d=100, rank=5, seed=0)
    >>> rows = fg.bounds.evaluate(tasks, fg.orderings.WithReplacement(), k=300)
    >>> rows.tightest("loss").bound.key
    'thm:random_convergence_rate/loss/proof'
    >>> next(r.why_not for r in rows if r.bound.key == "evron2022:cyclic/forgetting")
    'covers cyclic orderings'
    """
    k = as_count(k, "k")
    as_kind(ordering, Ordering | str, "an ordering such as fg.orderings.Cyclic()")
    unknown = set(more) - {field.name for field in fields(Setting)}
    if unknown:
        raise InvalidInputError(f"no parameter {min(unknown)!r}; see fg.bounds.Setting")
    setting = Setting.of(problem, w0, scheme, ordering, **more)
    shape = setting if isinstance(problem, Setting) else as_regression(problem)
    orderings = describe_ordering(ordering, shape, k)
    schemes = describe_scheme(scheme, shape, setting.radius)[0]
    over = _runs_out(ordering, setting.T, k)
    rows = [_row(bound, setting, k, orderings, schemes, over) for bound in all_bounds()]
    return Evaluation(_mark(rows), setting, k)


def _runs_out(ordering: Ordering | str, T: int | None, k: int) -> str | None:
    if isinstance(ordering, str) or T is None:
        return None
    try:
        ordering.check(T, k)
    except OrderingError as error:
        return str(error)
    return None


def _row(
    bound: Bound, setting: Setting, k: int, orderings: frozenset[str], schemes: frozenset[str], over: str | None
) -> Row:
    reason = over or _mismatch(bound, setting, orderings, schemes) or bound.why_not(setting, k)
    if reason is not None:
        return Row(bound, bound.quantity, math.nan, False, reason, False)
    value = bound.value(setting, k)
    return Row(bound, bound.quantity, value, True, "", is_vacuous(bound, value, setting))


def _mismatch(bound: Bound, setting: Setting, orderings: frozenset[str], schemes: frozenset[str]) -> str | None:
    if setting.problem not in bound.problems:
        return f"covers {_either(bound.problems)}"
    if orderings.isdisjoint(bound.orderings):
        return f"covers {_either(bound.orderings)} orderings"
    if schemes.isdisjoint(bound.schemes):
        return f"covers {_either(bound.schemes)} schemes"
    if bound.status == "refuted":
        return f"refuted: {bound.note}"
    return None


def _either(names: Iterable[str]) -> str:
    return " or ".join(names)


def is_vacuous(bound: Bound, value: float, setting: Setting) -> bool:
    """Whether an upper bound says no more than the trivial one."""
    trivial = setting.trivial(bound.quantity)
    if bound.kind != "upper" or bound.origin == "trivial" or trivial is None or trivial == 0:
        return False
    return value >= trivial * (1 - 1e-12)  # powers like 2 * 256^(-1/4) carry rounding errors


def _mark(rows: list[Row]) -> list[Row]:
    """Sort, and mark the tightest upper bound of each quantity.

    Of values that agree to 12 digits, those of other sources come before those proved here, and a statement before its
    proof.
    """
    order = sorted(
        rows,
        key=lambda row: (
            not row.applies,
            row.bound.kind == "rate",
            float(f"{row.value:.12g}") if row.applies else 0.0,
            row.bound.status == "proved here",
            ORIGINS.index(row.bound.origin),
        ),
    )
    done: set[str] = set()
    for i, row in enumerate(order):
        if row.applies and row.bound.kind == "upper" and row.quantity not in done:
            order[i] = replace(row, tightest=True)
            done.add(row.quantity)
    return order
