"""All bounds evaluated on one problem: which apply, their values, which is tightest; as a table and as a figure."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any, Literal

import numpy as np

from forgetting.core.arrays import IntArray, any_array, as_count, as_kind, as_word
from forgetting.errors import ForgettingError, InvalidInputError, NotSupportedError, OrderingError
from forgetting.expectation import Expectation
from forgetting.figures.items import Bars, Curves, Series
from forgetting.figures.text_formats import escape_latex, latex_table
from forgetting.orderings import Ordering
from forgetting.orderings.base import OrderingLike
from forgetting.results import Result
from forgetting.schemes.base import SchemeLike, as_scheme
from forgetting.tasks import Problem
from forgetting.theory.bound import Bound, Row
from forgetting.theory.curves import bound_curves, tightest_curve
from forgetting.theory.registry import all_bounds
from forgetting.theory.setting import (
    LEARNS_ALWAYS,
    SCHEMES_ELSEWHERE,
    Setting,
    as_covered,
    as_regression,
    describe_ordering,
    describe_scheme,
)
from forgetting.theory.statement import ORIGINS, QUANTITIES

MOST_BARS = 20  # bounds in a figure
_SIGN = {"upper": r"\le ", "lower": r"\ge ", "rate": "O", "floor": r"\ge "}
_NOTES = {
    "lower": r"Values with $\ge$ are worst cases: some tasks reach them, and they are no bounds on these tasks.",
    "floor": r"The least-squares floor, with $\ge$, holds on these tasks: no $w$ has a smaller loss.",
    "rate": r"The constants of $O(\cdot)$ are not known; its values are without them.",
}


class Evaluation(Result, list[Row]):
    """The rows of `evaluate`: those that apply first, sorted by value (rates, whose constants are not known, after the
    others), then those that do not, with the reason. `setting` and `k` are what they were evaluated at; the rows of
    several k follow each other.

    >>> import forgetting as fg
    >>> rows = fg.bounds.evaluate(fg.families.two_lines(0.5), fg.orderings.Cyclic(), k=4)
    >>> [row.bound.key for row in rows.applicable("forgetting")][:2]
    ['evron2022:cyclic/forgetting/lower', 'evron2022:alternating/forgetting']
    """

    kind = "evaluation"

    def __init__(self, rows: Iterable[Row], setting: Setting, k: int | tuple[int, ...]) -> None:
        super().__init__(rows)
        self.setting = setting
        self.k = k

    def at(self, k: int) -> Evaluation:
        """The rows at one of the steps.

        >>> import forgetting as fg
        >>> rows = fg.bounds.evaluate(fg.families.two_lines(0.5), fg.orderings.Cyclic(), k=[4, 8])
        >>> rows.at(8).k, rows.at(8).tightest("loss").k
        (8, 8)
        """
        known = self.k if isinstance(self.k, tuple) else (self.k,)
        if (k := as_count(k, "k")) not in known:
            raise InvalidInputError(f"the bounds were evaluated at k = {', '.join(map(str, known))}, not at {k}")
        return Evaluation([row for row in self if row.k == k], self.setting, k)

    def applicable(self, quantity: str | None = None) -> list[Row]:
        """The rows that apply, on one quantity or on all."""
        if quantity is not None:
            as_word(quantity, QUANTITIES, "a quantity")
        return [row for row in self if row.applies and quantity in (None, row.quantity)]

    def tightest(self, quantity: str) -> Row | None:
        """The smallest applicable upper bound, or None; of several k, ask `at(k)`."""
        as_word(quantity, QUANTITIES, "a quantity")
        if isinstance(self.k, tuple):
            raise InvalidInputError(
                f"there is a tightest bound for each k: ask .at({self.k[0]}).tightest({quantity!r})"
            )
        return next((row for row in self if row.tightest and row.quantity == quantity), None)

    def to_latex(self, quantity: str | None = None, rows: Literal["tightest", "stated", "all"] = "tightest") -> str:
        r"""The rows that apply as a table for a paper, for amsmath, amssymb and booktabs; on one quantity or on all.

        Each statement has one row, its smallest form, unless it says no more than the trivial bound; on all quantities
        only the tightest bound of each has one. With `rows="stated"`, all forms but those that only proofs give and
        that this library tightened; with `rows="all"`, these too. Several k are columns. The table fits a paper with
        two columns.

        >>> import forgetting as fg
        >>> rows = fg.bounds.evaluate(fg.families.two_lines(0.5), fg.orderings.Cyclic(), k=2)
        >>> print(rows.to_latex("regret"))
        \begin{table*}
        \centering
        \small
        \caption{Bounds on the expected regret after $k=2$ steps, with $S=\Vert w_0-w_\star\Vert^2R^2$.}
        \label{tab:bounds-regret}
        \renewcommand{\arraystretch}{1.5}
        \begin{tabular}{llr@{}l}
        \toprule
        Bound & Formula & \multicolumn{2}{c}{Value} \\
        \midrule
        Lemma 13, regret of every ordering & $\le \frac{S}{2\eta\beta\left(2-\eta\beta\right)k}$ & $0$ & $.250$ \\
        the trivial bound & $\le \frac{S}{2}$ & $0$ & $.500$ \\
        \bottomrule
        \end{tabular}
        \end{table*}
        <BLANKLINE>
        """
        return rows_to_latex(self.applicable(quantity), quantity, rows)

    # ------------------------------------------------------------------------------------- looking at it, keeping it

    @property
    def headline(self) -> str:
        steps = f"k = {self.k}" if isinstance(self.k, int) else f"{len(self.k)} values of k"
        return f"{len(self.applicable())} of {len(self)} bounds apply, at {steps}"

    def _num_rows(self) -> int:
        return len(self)

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Any]:
        chosen = [(list(self) if full else self._by_interest())[row] for row in rows.tolist()]
        columns: dict[str, Any] = {"k": [row.k for row in chosen]} if full or isinstance(self.k, tuple) else {}
        columns |= {
            "quantity": [row.quantity for row in chosen],
            "kind": [row.bound.kind for row in chosen],
            "value": [row.value for row in chosen],
            "bound": [row.bound.name for row in chosen],
            "says": [row.says for row in chosen],
        }
        if full:
            columns |= {name: [getattr(row, name) for row in chosen] for name in ("applies", "tightest", "vacuous")}
            columns |= {name: [getattr(row.bound, name) for row in chosen] for name in ("key", "source")}
        return columns

    def _by_interest(self) -> list[Row]:
        """The rows as a reader wants them: at each k the tightest bounds, then the others by quantity."""
        kinds = ("upper", "floor", "lower", "rate")

        def place(row: Row) -> tuple[int, bool, bool, int, int]:
            quantity, kind = QUANTITIES.index(row.bound.quantity), kinds.index(row.bound.kind)
            return row.k, not row.applies, not row.tightest, quantity, kind

        return sorted(self, key=place)

    def figure(self, quantity: str | None = None) -> Bars | Curves | None:
        """The bounds that apply to a quantity: one value each, or curves for several k.

        By default the quantity is the loss if a bound on the loss applies.
        """
        applying = {row.quantity for row in self.applicable()}
        as_kind(quantity, str | None, "a quantity such as 'loss'")
        chosen = quantity or next((name for name in QUANTITIES if name in applying), None)
        rows = self.applicable(chosen)
        if chosen is None or not rows:
            return None
        title = f"Bounds on the {chosen}"
        if isinstance(self.k, tuple):
            return Curves("bounds", title, "", "k, tasks learned", chosen, bound_curves(self, chosen))
        shown = [row for row in rows if row.bound.kind == "upper"][:MOST_BARS]
        marked = tuple(place for place, row in enumerate(shown) if row.tightest)
        names, values = tuple(row.bound.name for row in shown), tuple(row.value for row in shown)
        trivial = self.setting.trivial(chosen)
        return Bars("bounds", title, "", f"{chosen} at most", names, values, marked, trivial, "the trivial bound")

    def _saved(self) -> dict[str, Any]:
        return {"rows": list(self), "setting": self.setting, "k": self.k}

    @classmethod
    def _restored(cls, values: dict[str, Any]) -> Evaluation:
        rows, setting, k = (values.get(name) for name in ("rows", "setting", "k"))
        steps = k if isinstance(k, tuple) else (k,)
        if not isinstance(rows, list) or not all(isinstance(row, Row) for row in rows):
            raise ForgettingError("the rows of an evaluation must be evaluated bounds")
        if not isinstance(setting, Setting) or not all(type(step) is int for step in steps):
            raise ForgettingError("an evaluation needs a setting, and whole numbers of steps")
        return cls(rows, setting, k)  # type: ignore[arg-type]

    def __str__(self) -> str:
        return "\n\n".join(self._page(k) for k in (self.k if isinstance(self.k, tuple) else (self.k,)))

    def _page(self, k: int) -> str:
        """The rows at one k for a reader: the tightest, then the others that apply, one for each statement."""
        rows = [row for row in self._by_interest() if row.k == k]
        groups: dict[tuple[str, str, str], list[Row]] = {}
        for row in rows:
            if row.applies and not row.tightest:
                groups.setdefault((row.quantity, row.bound.label, row.bound.kind), []).append(row)
        applying = sum(row.applies for row in rows)
        best = [str(replace(row, tightest=False)) for row in rows if row.tightest]
        others = [_with_variants(group) for group in groups.values()]
        lines = [f"Bounds after k = {k} steps: {applying} of {len(rows)} apply"]
        lines += ["the tightest on each quantity:", *(f"  {line}" for line in best)] if best else []
        lines += ["others that apply:", *(f"  {line}" for line in others)] if others else []
        if applying < len(rows):
            lines.append(f"{len(rows) - applying} do not apply: row.why_not of each row says why")
        return "\n".join(lines)


def _with_variants(rows: Sequence[Row]) -> str:
    """The first of several bounds of one statement, and how many others there are."""
    more = len(rows) - 1
    return str(rows[0]) + (f"  (+ {more} variant{'s' if more > 1 else ''})" if more else "")


def evaluate(
    problem: Problem | Setting,
    ordering: OrderingLike,
    k: int | Sequence[int] | IntArray,
    w0: Any = None,
    *,
    scheme: SchemeLike | None = None,
    **more: float,
) -> Evaluation:
    """All bounds of the registry at k: which apply, what they say, which is tightest, which say nothing.

    Args:
        problem: tasks, or a `Setting`. Bounds that need jointly realizable tasks say so if no w solves these.
        ordering: as for `run`; where `problem` is a `Setting` also "with replacement", "any", ..., as bounds name them.
        k: the number of steps, or several.
        w0: the start, 0 if left out.
        scheme: as for `run`. Kaczmarz, GradientDescent and SGD with step 1 on the modified objective are the same
            thing; for other SGD only the SGD bounds apply.
        **more: numbers to add or override: sigma, G, previous_loss, rank_joint, ...

    >>> import forgetting as fg
    >>> tasks = fg.families.gaussian(T=20, d=100, rank=5, seed=0)
    >>> rows = fg.bounds.evaluate(tasks, fg.orderings.WithReplacement(), k=300)
    >>> rows.tightest("loss").bound.key
    'here:last-iterate/loss/universal'
    >>> next(r.why_not for r in rows if r.bound.key == "evron2022:cyclic/forgetting")
    'covers cyclic orderings'

    Tasks that no w solves have bounds of their own, and a floor:

    >>> noisy = fg.RegressionTasks([[[1.0, 0.0]], [[1.0, 0.0]], [[0.0, 1.0]]], [[1.0], [3.0], [0.0]])
    >>> for row in fg.bounds.evaluate(noisy, "with-replacement", k=5).applicable("loss")[:2]:
    ...     print(row)
    loss >= 0.333333  the least-squares floor [floor/loss]
    loss <= 1.08779  projections with noise: the loss [here:noise/loss]  (tightest, proved here)
    """
    scalar = any_array(k, "k").ndim == 0
    steps = tuple(as_count(number, "k") for number in ([k] if scalar else k))  # type: ignore[union-attr]
    if not steps:
        raise InvalidInputError("k is empty; give at least one number of steps")
    ordering = as_covered(ordering, problem)
    given = None if scheme is None else as_scheme(scheme)
    if isinstance(problem, Problem):
        scheme = None if given is None else given.fitted_to(problem, max(steps))
    unknown = set(more) - {field.name for field in fields(Setting)}
    if unknown:
        raise InvalidInputError(f"no parameter {min(unknown)!r}; see fg.bounds.Setting")
    setting = Setting.of(problem, w0, scheme, ordering, **more)
    shape = setting if isinstance(problem, Setting) else as_regression(problem)
    named = describe_scheme(given, shape, setting.radius)[0]
    schemes = describe_scheme(scheme, shape, setting.radius)[0] | named
    fitted_alone = {given.known_as} if given is not None and scheme is not given else set()
    limit = as_scheme(scheme).short_of_its_limit if scheme is not None else ""
    rows: list[Row] = []
    for step in steps:
        orderings = describe_ordering(ordering, shape, step)
        over = _runs_out(ordering, setting.T, step)
        stated = schemes if step == max(steps) else schemes - fitted_alone  # strengths are fitted to the last step
        rated = [_row(bound, setting, step, orderings, stated, over, limit) for bound in all_bounds()]
        if "i.i.d." in orderings and _descends_on_the_loss(scheme):
            rated += _on_the_loss(rated, setting, "with replacement" in orderings)
        rows += _mark(rated)
    return Evaluation(rows, setting, steps[0] if scalar else steps)


def curves_beside(expectation: Expectation, quantities: Sequence[str]) -> tuple[Series, ...]:
    """Curves of guarantees on expected values: every bound on one quantity, the smallest bound on each of several."""
    if expectation.problem is None or expectation.ordering is None:
        raise NotSupportedError("there are no bounds on a difference of two ways of learning")
    steps = [int(k) for k in np.unique(expectation.k).tolist() if 0 < k < np.inf]
    rows = evaluate(expectation.problem, expectation.ordering, steps, expectation.w0, scheme=expectation.scheme)
    if len(quantities) == 1:
        return bound_curves(rows, quantities[0], guarantees=True)
    curves = (tightest_curve(rows, quantity, place) for place, quantity in enumerate(quantities))
    return tuple(curve for curve in curves if curve is not None)


def _runs_out(ordering: Ordering | str, T: int | None, k: int) -> str | None:
    if isinstance(ordering, str) or T is None:
        return None
    try:
        ordering.check(T, k)
    except OrderingError as error:
        return str(error)
    return None


def _descends_on_the_loss(scheme: SchemeLike | None) -> bool:
    """Whether the scheme is SGD whose objective is the loss: its smoothness grows with the norms of the tasks."""
    step = None if scheme is None else as_scheme(scheme).as_sgd(radius=2.0)
    return step is not None and step.smoothness != 1


def _on_the_loss(rows: Iterable[Row], setting: Setting, uniform: bool) -> list[Row]:
    """The rows on the objective once more, for independent draws and SGD whose objective is the loss.

    The objective is the expected loss of the next draw; the mean loss is at most max_m 1/(T p_m) times it.
    """
    if setting.misfit is not None:  # what these rows bound is then the distance to the least objective
        return []
    factor = 1.0 if uniform else setting.rarest_draw
    again = [(row, "next_loss", 1.0) for row in rows if row.quantity == "objective"]
    if factor is not None:
        names = {"objective": "loss", "averaged_objective": "averaged_loss"}
        upper = [row for row in rows if row.quantity in names and (uniform or row.bound.kind in ("upper", "rate"))]
        again += [(row, names[row.quantity], factor) for row in upper]
    return [
        replace(
            row,
            quantity=name,
            value=times * row.value,
            vacuous=is_vacuous(row.bound, times * row.value, setting, name),
        )
        for row, name, times in again
        if row.applies
    ]


def _row(
    bound: Bound,
    setting: Setting,
    k: int,
    orderings: frozenset[str],
    schemes: frozenset[str],
    over: str | None,
    limit: str,
) -> Row:
    try:
        reason = over or _mismatch(bound, setting, orderings, schemes, limit) or bound.why_not(setting, k)
        value = math.nan if reason is not None else bound.value(setting, k)
    except Exception as error:
        from forgetting.core.plugins import blamed  # reads what is installed, which takes a while to import

        reason, value = blamed(error), math.nan
        if reason is None:
            raise
        warnings.warn(f"{bound.key} was left out: {reason}", stacklevel=2)  # the other bounds are not to blame
    vacuous = reason is None and is_vacuous(bound, value, setting)
    return Row(bound, bound.quantity, value, reason is None, reason or "", vacuous, k=k)


def _mismatch(
    bound: Bound, setting: Setting, orderings: frozenset[str], schemes: frozenset[str], limit: str
) -> str | None:
    """Why the bound says nothing about the problem, the ordering or the scheme; `limit` is `short_of_its_limit`."""
    if setting.problem not in bound.problems:
        return f"covers {_either(bound.problems)}"
    if not orderings:
        return LEARNS_ALWAYS
    if orderings.isdisjoint(bound.orderings):
        return f"covers {_either(bound.orderings)} orderings"
    if schemes.isdisjoint(bound.schemes):
        elsewhere = ", which no scheme of this library is" if set(bound.schemes) <= set(SCHEMES_ELSEWHERE) else ""
        short = f", and not {limit}" if limit and "projection" in bound.schemes else ""
        return f"covers {_either(bound.schemes)} schemes{elsewhere}{short}"
    if bound.status == "refuted":
        return f"refuted: {bound.note}"
    return None


def _either(names: Iterable[str]) -> str:
    return " or ".join(names)


def is_vacuous(bound: Bound, value: float, setting: Setting, quantity: str | None = None) -> bool:
    """Whether an upper bound says no more than the trivial one, on its own quantity or on one that is the same."""
    trivial = setting.trivial(quantity or bound.quantity)
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


def rows_to_latex(
    rows: Sequence[Row], quantity: str | None = None, chosen: Literal["tightest", "stated", "all"] = "tightest"
) -> str:
    """The rows, on one quantity or on all: the name of each bound, its formula as mathematics, its value at each k."""
    if as_word(chosen, ("tightest", "stated", "all"), "rows") == "stated":
        rows = [row for row in rows if row.bound.origin in ("statement", "trivial")]
    elif chosen == "tightest":
        rows = _smallest_forms(rows) if quantity else [row for row in rows if row.tightest]
    if not rows:
        what = "no bound applies" if quantity is None else f"no bound on {quantity!r} applies"
        raise InvalidInputError(f"{what}, so that there is no table to write")
    steps = sorted({row.k for row in rows})
    values = {(row.bound.key, row.k): row.value for row in rows}
    several, below = quantity is None, len(steps) > 1  # formulas stand below names, beside many values
    cells = []
    for bound in {row.bound.key: row.bound for row in rows}.values():
        name, formula = escape_latex(bound.name), _formula(bound)
        on = [escape_latex(bound.quantity)] if several else []
        named = [rf"{name}\newline {formula}", *on] if below else [name, *on, formula]
        cells.append([*named, *(values.get((bound.key, k)) for k in steps)])
    heads = ["Value"] if len(steps) == 1 else [f"$k={k}$" for k in steps]
    words = "Bounds" if several else f"Bounds on the expected {escape_latex(str(quantity))}"
    after = f" after $k={steps[0]}$ steps" if len(steps) == 1 else " after $k$ steps"
    caption = rf"{words}{after}, with $S=\Vert w_0-w_\star\Vert^2R^2$."
    notes = [note for kind, note in _NOTES.items() if any(row.bound.kind == kind for row in rows)]
    columns = ["Bound", *(["On"] if several else []), *([] if below else ["Formula"]), *heads]
    return latex_table(caption, columns, cells, notes, label=f"bounds-{quantity or 'all'}")


def _smallest_forms(rows: Sequence[Row]) -> list[Row]:
    """Of each statement the form with the smallest last value, if it says more than the trivial bound at some k."""
    last: dict[tuple[str, str, str], Row] = {}
    for row in sorted(rows, key=lambda row: (-row.k, row.value)):
        last.setdefault((row.bound.label, row.quantity, row.bound.kind), row)
    keys = {row.bound.key for row in last.values()}
    useful = {row.bound.key for row in rows if not row.vacuous}
    return [row for row in rows if row.bound.key in keys & useful]


def _formula(bound: Bound) -> str:
    """The right-hand side as mathematics; in words where the bound has no LaTeX."""
    if not bound.latex:
        return f"${_SIGN[bound.kind]}$ {escape_latex(bound.formula)}"
    return f"${_SIGN[bound.kind]}" + (rf"\left({bound.latex}\right)$" if bound.kind == "rate" else f"{bound.latex}$")
