"""Bounds and claims, with what was found about them, and the ways to declare them.

Users have `register_bound` and `register_claim`, which add a bound or a claim, and `declare_bound` and `declare_claim`,
which make one from a decorated function. Statements of the package that are both are added by `checked`, or by
`expected_at_most` of `forgetting.theory.claims_from_bounds`, where the check follows from the bound. All of them end in
`add_statement` of the registry.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import Any

from forgetting.core.arrays import Seed, as_flag, as_kind
from forgetting.core.progress import Progress, shown
from forgetting.core.text import nearest
from forgetting.errors import InvalidInputError
from forgetting.files.records import Codec, add_codec
from forgetting.theory.bound import QUANTITIES, StatedBound, Status
from forgetting.theory.claim import Check, CheckPaths, Draw, Missing, Settle, StatedClaim, always, unchanged
from forgetting.theory.claim import Kind as ClaimKind
from forgetting.theory.evidence import Evidence, evidence_of
from forgetting.theory.expression import Compute
from forgetting.theory.hunt import Hunt, search
from forgetting.theory.numbering import PAPER, PRINTED, cite
from forgetting.theory.record import Record, record_of, why_no_record
from forgetting.theory.registry import Statement, add_statement, get_bound, get_claim
from forgetting.theory.setting import ORDERINGS
from forgetting.theory.sizes import as_sizes

#: the fields that every bound has to have, and what they say
REQUIRED = {
    "key": "a name of its own, such as 'newer2027:random/loss'",
    "title": "what it is, in a few words",
    "source": "authors, year and theorem",
    "quantity": f"what it bounds: {', '.join(QUANTITIES)}",
    "orderings": f"what it covers: {', '.join(ORDERINGS)}",
    "formula": "the right-hand side as text, such as '2 S / k'; or an expression, which gives it",
}


@dataclass(frozen=True)
class Bound(StatedBound):
    """A guarantee: what it bounds, where it applies, its formula, its source and what is known about its truth.

    Attributes:
        key: unique; the paper's own label where there is one, then the part.
        title: in a few words.
        source: author, year, theorem.
        quantity: loss, forgetting, objective (of SGD), averaged_objective (of the mean of w_0, ..., w_(k-1)), residual
            (mean of half squared distances), regret, error (|w_k - w*|^2) or averaged_loss (of the mean of w_0, ...,
            w_(k-1)).
        kind: upper; lower (worst case over tasks, not a bound on given tasks); rate (constants not known); floor (a
            lower bound on the given tasks).
        status: what is known about its truth; `note` says more.
        origin: a statement as printed, one branch of its min, from its proof, tightened by this library, or trivial.
        orderings, schemes, problems: what it covers, by the names in `forgetting.theory.setting`.
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

    @property
    def record(self) -> Record | None:
        """The largest share of the bound that was ever reached, and by which instance; None: see `why_no_record`.

        >>> import forgetting as fg
        >>> fg.bounds.get("two-lines:random/loss").record.ratio > 0.999999
        True
        """
        return record_of(self)

    @property
    def why_no_record(self) -> str | None:
        """Why there is no record, or None where there is one.

        >>> import forgetting as fg
        >>> fg.bounds.get("two-lines:random/loss/lower").why_no_record
        'a lower bound holds for the worst tasks only; bound.instance(T, k) gives tasks that reach it'
        """
        return why_no_record(self)


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


@dataclass(frozen=True, eq=False)
class Claim(StatedClaim):
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

    @property
    def record(self) -> Record | None:
        """The largest ratio lhs/rhs ever found, with the instance that attains it; None where `why_no_record` says why.

        >>> import forgetting as fg
        >>> record = fg.claims.get("thm:cl_by_sgd_main", "forgetting").record
        >>> 0.008 < record.ratio < 0.01, record.verify().holds, fg.claims.get("eq:loss").record
        (True, True, None)
        """
        return record_of(self)

    @property
    def why_no_record(self) -> str | None:
        """Why there is no record, or None where there is one."""
        return why_no_record(self)

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


def checked(
    bound: Bound,
    *,
    part: str | None,
    statement: str,
    paths: CheckPaths,
    draw: Draw,
    missing: Missing = always,
    settle: Settle = unchanged,
    replace: bool = False,
) -> Statement:
    """Register a bound together with its check; source, status, note and title of the bound are those of the claim."""
    claim = Claim(
        bound.label, part, statement, paths.sides, draw, bound.source, bound.status, bound.note,
        missing=missing, precise=paths.precise, settle=settle, title=bound.title,
    )  # fmt: skip
    return add_statement(Statement(bound, claim), replace)


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
    add_statement(Statement(bound=as_kind(bound, Bound, "a Bound")), replace)
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
    add_statement(Statement(claim=as_kind(claim, Claim, "a Claim")), replace)
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
    kind: ClaimKind = "inequality",
    needs: tuple[str, ...] = (),
    missing: Missing = always,
    precise: Check | None = None,
    settle: Settle = unchanged,
    title: str = "",
    replace: bool = False,
    labels_matter: bool = True,
) -> Callable[[Check | CheckPaths], Check | CheckPaths]:
    """Register the decorated computation of both sides as a claim; `source` is where the paper has the label.

    With `replace=True` it takes the place of an earlier claim of the same label and part.

    >>> import forgetting as fg
    >>> @fg.claims.declare(label="demo", statement="0 <= k", draw=lambda rng, k: fg.claims.Instance(None, None, k))
    ... def _(instance):
    ...     return fg.claims.Sides(0.0, instance.k)
    >>> fg.claims.get("demo").check(fg.claims.Instance(None, None, 3)).slack
    3.0
    >>> fg.claims.unregister("demo")
    """

    place = source or (cite(label) if label in PRINTED else PAPER)
    known = title or (PRINTED[label].title if label in PRINTED else "")

    def add(made: Check | CheckPaths) -> Check | CheckPaths:
        sides, exact = made if isinstance(made, CheckPaths) else (made, precise)
        claim = Claim(
            label, part, statement, sides, draw, place, status, note, kind, needs, missing, exact, settle,
            title=known, labels_matter=labels_matter,
        )  # fmt: skip
        register_claim(claim, replace=replace)
        return made

    return add


def _named_claim(name: Any) -> Claim:
    label, part = name if isinstance(name, tuple) and len(name) == 2 else (name, None)
    return get_claim(label, part)


add_codec(Codec("bound", Bound, lambda bound: bound.key, get_bound))
add_codec(Codec("claim", Claim, lambda claim: (claim.label, claim.part), _named_claim))
copyreg.pickle(Bound, lambda bound: (get_bound, (bound.key,)))
copyreg.pickle(Claim, lambda claim: (get_claim, (claim.label, claim.part)))
