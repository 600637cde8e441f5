"""Bounds: the right-hand side of a statement, where it applies, and what is known about its truth."""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from forgetting.core.arrays import as_count, as_flag, as_kind
from forgetting.core.text import nearest
from forgetting.errors import InvalidInputError
from forgetting.files.records import Codec, add_codec, dataclass_codec
from forgetting.orderings import Ordering
from forgetting.tasks import Problem
from forgetting.tasks.problem import Kind as ProblemKind
from forgetting.theory.bibliography import check_entry
from forgetting.theory.expression import Compute, Expression
from forgetting.theory.registry import add_statement, get_bound
from forgetting.theory.setting import ORDERINGS, PROBLEMS, SCHEMES, SCHEMES_ELSEWHERE, Setting, ordering_named
from forgetting.theory.statement import (
    KINDS,
    NAMES,
    ORIGINS,
    QUANTITIES,
    STATUSES,
    Condition,
    Kind,
    Origin,
    Quantity,
    Range,
    Statement,
    Status,
)

#: the fields that every bound has to have, and what they say
REQUIRED = {
    "key": "a name of its own, such as 'newer2027:random/loss'",
    "title": "what it is, in a few words",
    "source": "authors, year and theorem",
    "quantity": f"what it bounds: {', '.join(QUANTITIES)}",
    "orderings": f"what it covers: {', '.join(ORDERINGS)}",
    "formula": "the right-hand side as text, such as '2 S / k'; or an expression, which gives it",
}
PARAMETERS = (
    *(parameter.name for parameter in fields(Setting)),
    "span",
    "scale",
    "sgd_dist_sq",
    "sigma_star",
)  # what a formula may need
EVERY_STEP = Range()


def _no_formula(setting: Setting, k: int) -> float:
    raise InvalidInputError("this bound was declared without a formula: give an expression, or compute")


@dataclass(frozen=True)
class Bound(Statement):
    """A guarantee: what it bounds, where it applies, its formula, its source and what is known about its truth.

    Attributes:
        key: unique; the paper's own label where there is one, then the part.
        title: in a few words.
        source: author, year, theorem.
        quantity: loss, forgetting, next_loss (of the task that is learned next), objective (of SGD), averaged_objective
            (of the mean of w_0, ..., w_(k-1)), residual (mean of half squared distances), regret, error (|w_k - w*|^2)
            or averaged_loss (of the mean of w_0, ..., w_(k-1)).
        kind: upper; lower (worst case over tasks, not a bound on given tasks); rate (constants not known); floor (a
            lower bound on the given tasks).
        status: what is known about its truth; `note` says more.
        origin: a statement as printed, one branch of its min, from its proof, tightened by this library, or trivial.
        orderings, schemes, problems: what it covers, by the names in `forgetting.theory.setting`; orderings also by
            the words that `fg.run` takes, or as orderings.
        assumptions: in words.
        range: the k it covers.
        needs: names of the parameters of `Setting` that its formula uses.
        formula, latex, compute: the right-hand side as text, as LaTeX and as a function of (setting, k); S stands for
            |w_0 - w*|^2 R^2, r for the average rank.
        expression: the right-hand side as one `Expression`, which gives formula, latex, compute and needs.
        convention: how the source's numbers were converted, and what exactly is bounded.
        bibtex: the entry of the source, for a source that `fg.bounds.cite` does not know by itself.
        tight: whether equality is reached, at least in the limit.
        noisy: whether tasks that no w solves are covered; their noise is `Setting.misfit`.
        instance: for a lower bound, a function of (T, k) that gives T tasks on which the quantity after k steps is at
            least the bound.

    >>> import forgetting as fg
    >>> bound = fg.bounds.get("thm:cl_by_sgd_main/loss")
    >>> bound.value(fg.bounds.Setting(), k=16)
    1.0
    >>> bound.value(fg.bounds.Setting(), k=1)
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: thm:cl_by_sgd_main/loss: k = 1, but the bound covers k >= 2
    """

    key: str
    title: str
    source: str
    quantity: Quantity
    orderings: tuple[str, ...]
    formula: str = ""
    latex: str = ""
    compute: Compute = field(default=_no_formula, repr=False)
    kind: Kind = "upper"
    status: Status = "holds as stated"
    origin: Origin = "statement"
    schemes: tuple[str, ...] = ("projection",)
    problems: tuple[ProblemKind, ...] = ("regression",)
    assumptions: str = "jointly realizable tasks, each learned to convergence"
    range: Range = EVERY_STEP
    needs: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    convention: str = "losses carry the factor 1/2"
    note: str = ""
    tight: bool = False
    instance: Callable[[int, int], Problem] | None = field(default=None, repr=False)
    expression: Expression | None = field(default=None, repr=False)
    bibtex: str = field(default="", repr=False)
    noisy: bool = False

    def __post_init__(self) -> None:
        as_kind(self.key, str, "a key such as 'newer2027:random/loss'", "key: ")
        if self.expression is not None:
            formula = as_kind(self.expression, Expression, "an expression such as 2 * S / K")
            object.__setattr__(self, "formula", formula.text)
            object.__setattr__(self, "latex", formula.latex)
            object.__setattr__(self, "compute", formula.compute)
            object.__setattr__(self, "needs", tuple(dict.fromkeys((*formula.needs, *self.needs))))
        self._check_fields()
        for name, allowed in (("quantity", QUANTITIES), ("kind", KINDS), ("status", STATUSES), ("origin", ORIGINS)):
            if getattr(self, name) not in allowed:
                raise InvalidInputError(
                    f"{self.key}: {name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r:.60}"
                )
        orderings = [self.orderings] if isinstance(self.orderings, str | Ordering) else self.orderings
        if isinstance(orderings, list | tuple):
            object.__setattr__(self, "orderings", tuple(dict.fromkeys(map(ordering_named, orderings))))
        schemes = (*SCHEMES, *SCHEMES_ELSEWHERE)
        lists = {"orderings": ORDERINGS, "schemes": schemes, "problems": PROBLEMS, "needs": PARAMETERS}
        for name, allowed in lists.items():
            if isinstance(getattr(self, name), str):  # one name
                object.__setattr__(self, name, (getattr(self, name),))
            given = as_kind(getattr(self, name), tuple, f"names from {', '.join(allowed)}", f"{self.key}: {name}: ")
            stranger = next((word for word in given if word not in allowed), None)
            if stranger is not None:
                raise InvalidInputError(f"{self.key}: {name} must be from {', '.join(allowed)}, got {stranger!r:.60}")

    def _check_fields(self) -> None:
        """Raise unless the fields that hold words, a range and conditions do."""
        if not self.key.strip():
            raise InvalidInputError("key: a bound needs a key, such as 'newer2027:random/loss'")
        self._check_words("title", "source", "formula", "latex", "assumptions", "convention", "note", "bibtex")
        for name in ("title", "source"):
            if not getattr(self, name).strip():
                raise InvalidInputError(f"{self.key}: {name} is empty; give it in a few words")
        if self.bibtex:
            check_entry(self.bibtex, self.key)
        as_kind(self.range, Range, "fg.bounds.Range(first, last), the k that are covered", f"{self.key}: range: ")
        conditions = as_kind(self.conditions, tuple, "a tuple of fg.bounds.Condition", f"{self.key}: conditions: ")
        for condition in conditions:
            as_kind(condition, Condition, "fg.bounds.Condition(holds, reason)", f"{self.key}: conditions: ")
        if not callable(self.compute):
            raise InvalidInputError(f"{self.key}: compute must be a function of (setting, k), got {self.compute!r:.60}")

    @property
    def bound(self) -> Bound:
        """The bound itself."""
        return self

    @property
    def label(self) -> str:  # type: ignore[override]
        """The part of the key that names the statement."""
        return self.key.split("/")[0]

    @property
    def part(self) -> str | None:  # type: ignore[override]
        """The rest of the key: which part or variant of the statement; None where the key is a label alone."""
        return self.key.partition("/")[2] or None

    def why_not(self, setting: Setting, k: int) -> str | None:
        """Why the formula cannot be used at these numbers, or None."""
        return self.not_known(setting) or self.not_covered(setting, k)

    def not_known(self, setting: Setting) -> str | None:
        """The reason if a number that the formula needs is missing or wrong, whatever k is, or None."""
        misfit = as_kind(setting, Setting, "a Setting").misfit
        if misfit is not None and not self.noisy:
            return f"needs jointly realizable tasks: {misfit.message}"
        needed = {*self.needs, *(("T",) if self.range.needs_tasks else ())}
        missing = sorted(name for name in needed if getattr(setting, name) is None)
        if setting.rare and {"weight_ratio", "rarest_draw"} & set(missing):
            return f"needs every task to be drawn: {setting.rare}"
        if missing:
            names = ", ".join("rank_joint (or d, or T and rank_avg)" if name == "span" else name for name in missing)
            return f"needs {names}, not known here"
        if "beta" in needed and not (setting.beta is not None and setting.beta > 0):
            return f"beta must be positive, got {setting.beta:g}"
        if "eta" in needed and not (setting.eta is not None and setting.eta > 0):
            return f"eta must be positive, got {setting.eta:g}"
        return None

    def not_covered(self, setting: Setting, k: int) -> str | None:
        """Why k is not covered where all numbers are known, or None."""
        outside = self.range.why_not(k, as_kind(setting, Setting, "a Setting").T)
        return outside or next((c.reason for c in self.conditions if not c.holds(setting, k)), None)

    def value(self, setting: Setting, k: int) -> float:
        """The right-hand side at k; an error names the reason where the formula cannot be used."""
        k = as_count(k, "k")
        reason = self.why_not(setting, k)
        if reason is not None:
            raise InvalidInputError(f"{self.key}: {reason}")
        return float(self.compute(setting, k))

    def without(self, setting: Setting, k: int) -> dict[str, float]:
        """The right-hand side at k without each of its terms, where it is one expression with several."""
        terms = {} if self.expression is None else self.expression.without
        return {text: float(compute(setting, k)) for text, compute in terms.items()}

    def __str__(self) -> str:
        sign = {"upper": "<=", "lower": ">=", "rate": "= O of", "floor": ">="}[self.kind]
        bounded = NAMES.get(self.quantity, self.quantity)
        return f"{self.heading}: {bounded} {sign} {self.formula}, {self.range} ({self.source}; {self.status})"


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
        k: the number of steps.

    >>> import forgetting as fg
    >>> rows = fg.bounds.evaluate(fg.families.two_lines(0.5), fg.orderings.WithReplacement(), k=100)
    >>> print(next(row for row in rows if row.bound.key == "thm:random_convergence_rate/loss"))
    loss <= 0.00185798  Theorem 8, parameter-dependent rate [thm:random_convergence_rate/loss]
    """

    bound: Bound
    quantity: str
    value: float
    applies: bool
    why_not: str
    vacuous: bool
    tightest: bool = False
    k: int = 0

    def __str__(self) -> str:
        if not self.applies:
            return f"{self.quantity}: {self.bound.heading} does not apply: {self.why_not}"
        sign = {"upper": "<=", "lower": "worst case >=", "rate": "= O of", "floor": ">="}[self.bound.kind]
        return f"{self.quantity} {sign} {self.value:.6g}  {self.bound.heading}" + (
            f"  ({self.says})" if self.says else ""
        )

    @property
    def says(self) -> str:
        """Remarks on the value, or the reason why the bound does not apply; empty if there is neither."""
        if not self.applies:
            return self.why_not
        proved = self.bound.status == "holds as stated"
        marks = {"tightest": self.tightest, "vacuous": self.vacuous, self.bound.status: not proved}
        return ", ".join(word for word, on in marks.items() if on)


def make_bound(**given: Any) -> Bound:
    """A bound of these fields; an error names a field that is missing or unknown.

    >>> make_bound(key="newer2027/loss", title="a newer rate", sourse="Newer 2027")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: newer2027/loss: a bound has no field 'sourse'; did you mean 'source'?
    >>> make_bound(key="newer2027/loss", title="a newer rate", source="Newer 2027")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: newer2027/loss: a bound needs quantity (what it bounds: loss, ...
    """
    known = [entry.name for entry in fields(Bound)]
    key = given.get("key", "a bound without a key")
    for name in given:
        if name not in known:
            raise InvalidInputError(f"{key}: a bound has no field {name!r}{nearest(name, known)}")
    missing = [entry.name for entry in fields(Bound) if entry.default is MISSING and entry.name not in given]
    if given.get("expression") is None and not given.get("formula"):
        missing.append("formula")
    if missing:
        said = ", ".join(f"{name} ({REQUIRED[name]})" for name in missing)
        raise InvalidInputError(f"{key}: a bound needs {said}")
    return Bound(**given)


def register_bound(bound: Bound, *, replace: bool = False) -> Bound:
    """Add a bound; `evaluate`, `crossovers`, the command line and the tests pick it up.

    With `replace=True` it takes the place of an earlier bound of the same key, as where a notebook cell runs twice.

    >>> import forgetting as fg
    >>> from forgetting.theory.expression import K, S
    >>> mine = fg.bounds.Bound("newer2027:cyclic/loss", "a newer rate", "Newer 2027, Theorem 1", "loss", ("cyclic",),
    ...                        expression=S / (2 * K), range=fg.bounds.Range(2))
    >>> fg.bounds.register(mine) is fg.bounds.get("newer2027:cyclic/loss")
    True
    >>> print(fg.bounds.evaluate(fg.families.orthogonal(2), fg.orderings.Cyclic(), 4).tightest("loss"))
    loss <= 0.125  Newer 2027, Theorem 1, a newer rate [newer2027:cyclic/loss]  (tightest)
    >>> fg.bounds.unregister("newer2027:cyclic/loss")
    """
    add_statement(as_kind(bound, Bound, "a Bound"), replace=replace)
    return bound


def declare_bound(*, replace: bool = False, **fields: Any) -> Callable[[Compute], Compute]:
    """Register the decorated function of (setting, k) as a `Bound` with these fields: for formulas that need code.

    Args:
        replace: take the place of an earlier bound of the same key, as where a notebook cell runs twice.
        **fields: those of `Bound`: key, title, source, quantity, orderings and formula are needed, the others are kind,
            status, schemes, problems, range, needs, conditions, latex, note, bibtex, ... An error names a field that
            is missing or wrong, and what it may be.

    >>> import forgetting as fg
    >>> @fg.bounds.declare(key="demo/declared", title="half the scale", source="nobody", quantity="loss",
    ...                    orderings="any", formula="S/2", latex="S/2")
    ... def _(s, k):
    ...     return s.scale / 2
    >>> fg.bounds.get("demo/declared").value(fg.bounds.Setting(radius=2), k=1)
    2.0
    >>> fg.bounds.unregister("demo/declared")
    """
    as_flag(replace, "replace")
    if "compute" in fields or "expression" in fields:
        raise InvalidInputError(
            "the decorated function is the formula; with expression= or compute=, use fg.bounds.register(Bound(...))"
        )
    make_bound(**fields)  # raises here, where the fields are written

    def add(compute: Compute) -> Compute:
        register_bound(make_bound(**fields, compute=compute), replace=replace)
        return compute

    return add


add_codec(Codec("bound", Bound, lambda bound: bound.key, get_bound))
add_codec(dataclass_codec(Row, "bound-row"))
copyreg.pickle(Bound, lambda bound: (get_bound, (bound.key,)))
