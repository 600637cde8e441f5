"""Claims: statements that compute both of their sides on an instance, to be checked and hunted."""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any, TypeVar, get_args

import numpy as np

from forgetting.core.arrays import Seed, as_flag, as_function, as_kind, as_word
from forgetting.core.progress import Progress, shown
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.files.records import Codec, add_codec
from forgetting.tasks import Problem
from forgetting.theory.definition import DisagreementError
from forgetting.theory.evidence import Evidence, evidence_of
from forgetting.theory.hunt import Hunt, search
from forgetting.theory.instance import Instance
from forgetting.theory.numbering import PAPER, PRINTED, cite, name_of
from forgetting.theory.registry import add_statement, get_claim
from forgetting.theory.setting import LEARNS_ALWAYS
from forgetting.theory.sizes import as_sizes
from forgetting.theory.statement import STATUSES, Statement, Status
from forgetting.theory.verdict import Check, CheckPaths, Draw, Kind, Missing, Settle, Sides, Verdict, always, unchanged

_Made = TypeVar("_Made", bound=Callable[..., Sides] | CheckPaths)
WHOLE = ("task", "i", "t", "m")  # extras that are whole numbers


@dataclass(frozen=True, eq=False)
class Claim(Statement):
    """A statement of the paper or of another source: what it says, where it is, what is known of it, how to check it.

    Attributes:
        label: the paper's own LaTeX label, or a short name of the source.
        part: which part or reading of the statement, None where there is one only.
        statement: in words, with the formula.
        source: where the statement is, in the paper or in another source.
        status: what was found; `note` says more.
        kind: an inequality lhs <= rhs, or an equality.
        needs: names of the extras of an `Instance` that it needs.
        sides: computes both sides, exactly wherever that is possible.
        precise: the same at 50 digits; None where a violation could only be suspected.
        draw: the problem of this number for a hunt: structured ones first, then random ones.
        missing: why the statement says nothing about an instance, or None.
        settle: moves an instance to where the statement applies, a step size to 1/beta for one.
        title: what it is in a few words, for its name.
        labels_matter: False where both sides are the same for all labels, as where starts are averaged.

    >>> import forgetting as fg
    >>> claim = fg.claims.get("cor:polynomial_Q_spectrum")
    >>> claim.name, claim.part, claim.status
    ('Lemma C.11', None, 'holds as stated')
    """

    label: str
    part: str | None
    statement: str
    sides: Check = field(repr=False)
    draw: Draw = field(repr=False)
    source: str = PAPER
    status: Status = "holds as stated"
    note: str = ""
    kind: Kind = "inequality"
    needs: tuple[str, ...] = ()
    missing: Missing = field(default=always, repr=False)
    precise: Check | None = field(default=None, repr=False)
    settle: Settle = field(default=unchanged, repr=False)
    title: str = ""
    labels_matter: bool = True

    def __post_init__(self) -> None:
        as_kind(self.label, str, "a label such as 'newer2027'", "label: ")
        self._check_words("statement", "source", "note", "title")
        as_word(self.status, STATUSES, f"{self.key}: status")
        as_word(self.kind, get_args(Kind), f"{self.key}: kind")
        for name in ("sides", "draw", "missing", "settle"):
            as_function(getattr(self, name), f"{self.key}: {name}")

    @property
    def claim(self) -> Claim:
        """The claim itself."""
        return self

    @property
    def key(self) -> str:  # type: ignore[override]
        """Label and part, which identify the claim."""
        return self.label if self.part is None else f"{self.label} ({self.part})"

    @property
    def name(self) -> str:
        """The name for readers: the number in the PDF, or authors and year, the title and the part."""
        return name_of(self.label, self.source, self.title, self.part)

    @property
    def heading(self) -> str:
        """The name, and then the label."""
        return f"{self.name} [{self.label}]"

    def why_not(self, instance: Instance) -> str | None:
        """Why the statement says nothing about the instance, or None."""
        as_kind(instance, Instance, "fg.claims.Instance(problem, ordering, k)")
        if instance.ordering is not None and instance.ordering.skips:
            return LEARNS_ALWAYS
        lacking = [name for name in self.needs if name not in instance.extras]
        if lacking:
            return f"needs extras {', '.join(lacking)}"
        for name in self.needs:
            if (reason := _wrong(name, instance.extras[name], instance.problem)) is not None:
                return reason
        return self.missing(instance)

    def check(self, instance: Instance) -> Verdict:
        """Compute both sides; an error gives the reason where the statement does not apply."""
        try:
            reason = self.why_not(instance)
            if reason is not None:
                raise InvalidInputError(f"{self.key}: {reason}")
            return Verdict.of(self.sides(instance), self.kind)
        except DisagreementError as error:
            return _disputed(error)

    def confirm(self, instance: Instance) -> Verdict | None:
        """The verdict at 50 digits, or None where there is no such path for this claim or instance.

        >>> import forgetting as fg
        >>> case = fg.claims.Instance(fg.families.two_lines(0.1), fg.orderings.WithReplacement(), k=100)
        >>> print(fg.claims.get("thm:random_convergence_rate", "loss").confirm(case))
        holds: 0.001516 <= 0.001858, ratio 0.8158 (50 digits)
        """
        as_kind(instance, Instance, "fg.claims.Instance(problem, ordering, k)")
        if self.precise is None:
            return None
        try:
            return Verdict.of(self.precise(instance), self.kind)
        except NotSupportedError:
            return None

    @property
    def evidence(self) -> Evidence | None:
        """Evidence about the constant of a bound that no instance comes close to; None for other statements.

        >>> import forgetting as fg
        >>> print(fg.claims.get("thm:cl_by_sgd_main", "loss").evidence.sentences[1])
        At k = 2 the supremum over all pairs of tasks is 0.08808 S (closed form), 0.0524 of the right side
        """
        return evidence_of(self)

    def hunt(
        self,
        seed: Seed = 0,
        budget: int = 2000,
        seconds: float | None = None,
        *,
        T: int | range | None = None,
        d: int | range | None = None,
        k: int | range | None = None,
        known: bool = True,
        progress: Progress = False,
    ) -> Hunt:
        """Look for the instance with the least slack: structured families, random ones, known ones, then local search.

        Args:
            seed: decides everything, unless `seconds` cuts the hunt short; as for `fg.run`.
            budget: the number of evaluations.
            seconds: cuts the hunt short, and the result says so.
            T, d, k: the number of tasks, the dimension and the number of steps that the hunt is confined to; a number
                or a range each, anything if left out. Regression tasks are cut and cloned to have them, and other
                problems are drawn until they do. An error says why if the statement was checked on no such problem.
            known: whether the record of the claim, the worst pairs in closed form, and the tasks that the package
                keeps are tried as well. Without them a hunt says what its own problems would have noticed.
            progress: as for `fg.run`.

        >>> import forgetting as fg
        >>> found = fg.claims.get("lem:regret_bound").hunt(budget=30)
        >>> found.tried, found.outcome, found.verdict.ratio <= 1 + 1e-9
        (30, 'holds', True)
        >>> found = fg.claims.get("thm:cl_by_sgd_main", "loss").hunt(budget=30, T=3, d=range(2, 5), k=2)
        >>> found.fixed, found.instance.problem.num_tasks, found.instance.k
        ('T = 3, d = 2 to 4, k = 2', 3, 2)
        """
        sizes = as_sizes(T, d, k)
        with shown(progress):
            return search(self, seed, budget, seconds, sizes, known=as_flag(known, "known"))

    def __str__(self) -> str:
        record = self.record
        reached = "" if record is None else f"; the largest ratio found is {record.ratio:.4g}"
        return f"{self.heading}: {self.statement} ({self.status}{reached})"


def _disputed(error: DisagreementError) -> Verdict:
    """The verdict if an engine and the definition disagree: the statement does not hold."""
    sides = Sides(error.computed, error.defined, how=str(error))
    return replace(Verdict.of(sides, "equality"), holds=False, disputed=True)


def _wrong(name: str, value: Any, problem: Problem | None) -> str | None:
    """The reason why the value is no extra of this name, or None."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return f"{name} is not made of numbers"
    if not np.isfinite(array).all():
        return f"{name} has values that are not finite"
    if name in WHOLE:
        if array.ndim or not float(array).is_integer():
            return f"{name} is a whole number, got {value!r}"
        if name != "task":
            return None
        if problem is None:
            return "needs a problem"
        return None if 0 <= array < problem.num_tasks else f"there is no task {value}"
    if name in ("gamma", "eta", "lam"):
        return None if array.ndim == 0 and array > 0 else f"{name} is a number above 0, got {value!r}"
    dim = None if problem is None else problem.dim
    axes = 1 if name in ("w", "z", "v") else 2
    if array.ndim != axes or (dim is not None and array.shape[-1] != dim):
        wanted = "d" if dim is None else str(dim)
        shape = f"({wanted},)" if axes == 1 else f"(n, {wanted})" if name == "gradients" else f"({wanted}, {wanted})"
        return f"{name} must have shape {shape}, got {array.shape}"
    if name in ("A", "B", "C") and array.shape[0] != array.shape[1]:
        return f"{name} must be a square matrix, got shape {array.shape}"
    return None


def register_claim(claim: Claim, *, replace: bool = False) -> Claim:
    """Add a claim; `fg.claims.all`, certificates, the hunt and the tests pick it up.

    With `replace=True` it takes the place of an earlier claim of the same label and part.

    >>> import forgetting as fg
    >>> from dataclasses import replace
    >>> mine = fg.claims.register(replace(fg.claims.get("lem:regret_bound"), label="demo"))
    >>> fg.claims.get("demo") is mine
    True
    >>> fg.claims.unregister("demo")
    """
    add_statement(claim=as_kind(claim, Claim, "a Claim"), replace=replace)
    return claim


def declare_claim(
    *,
    label: str,
    statement: str,
    draw: Draw,
    part: str | None = None,
    source: str | None = None,
    status: Status = "holds as stated",
    note: str = "",
    kind: Kind = "inequality",
    needs: tuple[str, ...] = (),
    missing: Missing = always,
    precise: Check | None = None,
    settle: Settle = unchanged,
    title: str = "",
    replace: bool = False,
    labels_matter: bool = True,
) -> Callable[[_Made], _Made]:
    """Register the decorated computation of both sides as a claim; `source` is where the paper has the label.

    With `replace=True` it takes the place of an earlier claim of the same label and part. Arguments of the function
    after the instance are extras of the instance, by their names, which the claim then needs.

    >>> import forgetting as fg
    >>> @fg.claims.declare(label="demo", statement="0 <= k", draw=lambda rng, k: fg.claims.Instance(None, None, k))
    ... def _(instance):
    ...     return fg.claims.Sides(0.0, instance.k)
    >>> fg.claims.get("demo").check(fg.claims.Instance(None, None, 3)).slack
    3.0
    >>> @fg.claims.declare(label="demo", part="named", statement="gamma <= k",
    ...                    draw=lambda rng, k: fg.claims.Instance(None, None, k, extras={"gamma": k / 2}))
    ... def _(instance, gamma):
    ...     return fg.claims.Sides(gamma, instance.k)
    >>> fg.claims.get("demo", "named").needs
    ('gamma',)
    >>> fg.claims.unregister("demo", "named")
    >>> fg.claims.unregister("demo")
    """

    place = source or (cite(label) if label in PRINTED else PAPER)
    known = title or (PRINTED[label].title if label in PRINTED else "")

    def add(made: _Made) -> _Made:
        sides, exact = made if isinstance(made, CheckPaths) else (made, precise)
        named = _arguments(sides)[1:]
        given = sides if not named else lambda instance: sides(instance, *(_whole(instance, name) for name in named))
        claim = Claim(
            label, part, statement, given, draw, place, status, note, kind, (*needs, *named), missing, exact, settle,
            title=known, labels_matter=labels_matter,
        )  # fmt: skip
        register_claim(claim, replace=replace)
        return made

    return add


def _arguments(function: Any) -> tuple[str, ...]:
    """The names of the arguments that a function must be given; none if these are not known."""
    try:
        known = signature(function).parameters.values()
    except (TypeError, ValueError):  # no function, which the claim says, or one that is written in C
        return ()
    return tuple(one.name for one in known if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD)


def _whole(instance: Instance, name: str) -> Any:
    """The extra of this name; a task or a position as a whole number."""
    value = instance.extra(name)
    return int(value) if name in WHOLE else value


def _named_claim(name: Any) -> Claim:
    label, part = name if isinstance(name, tuple) and len(name) == 2 else (name, None)
    return get_claim(label, part)


add_codec(Codec("claim", Claim, lambda claim: (claim.label, claim.part), _named_claim))
copyreg.pickle(Claim, lambda claim: (get_claim, (claim.label, claim.part)))
