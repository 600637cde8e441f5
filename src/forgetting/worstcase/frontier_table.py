"""The frontier: for each number of tasks and steps the largest known value, and the smallest known upper bound."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_count, as_flag, as_path
from forgetting.errors import ForgettingError, InvalidInputError, ProblemFileError
from forgetting.figures.items import Curves, Role, Series, Table, through
from forgetting.files.best_known import larger
from forgetting.files.records import checked_fields
from forgetting.orderings.base import as_ordering
from forgetting.results import Result
from forgetting.schemes import Kaczmarz
from forgetting.tasks.worst_tasks import WORST_PAIRS, KnownWorst, entry_files, known_worst
from forgetting.theory.evidence import value_of
from forgetting.theory.later.rate_constants import C_0
from forgetting.theory.registry import upper_bounds
from forgetting.theory.setting import Setting, describe_ordering, describe_scheme
from forgetting.worstcase.frontier_entry import DRAWS, Entry, check_question, closed_forms, worst_pair_entry

__all__ = ["Frontier", "frontier"]

KEPT, NOT_KEPT = "certificate", "fg.worst_case"  # the second: a certificate that is too large to be kept
#: a remark that every table of slopes has
SAYS = (
    "A slope is -d log(value) / d log(k) between a row and the one before it. It compares the largest values that are "
    "known, which are lower bounds, so that it says what these tasks do between these k. The exponent is 1: k E L is "
    "at most 0.2718 in the limit and k E F at most 1.0432, and the tasks here reach 0.2247 and 0.1839. "
    "Where both rows have upper bounds, the slope of the supremum itself is proved to be in the range beside it."
)
CLOSED = (*range(1, 21), 32, 64, 100, 128, 256, 512, 1000, 1024, 2048, 4096, 8192, 10_000)  # rows of T = 2
DRAWN = 4  # rows that a number of tasks needs to have a curve, if others have as many
LIMIT = 1 / (2 * math.e)  # of k sup E L of two tasks, and of k sup E F
LEAST_LIMIT = 0.2270  # of k sup E L: `levels_limit` of many levels


class Upper(NamedTuple):
    """A proved upper bound on the supremum over tasks, and the source of the proof."""

    value: float
    source: str


def upper_bound(entries: Iterable[KnownWorst], quantity: str, ordering: str, T: int | None, k: int) -> Upper:
    """The smallest upper bound on the supremum over all collections of T tasks (None: of any number), with its source.

    Beside its own certificate, an entry has those of more tasks: T tasks are n T tasks, n clones each, so that the
    supremum over n T tasks is no smaller. The supremum of E L(w_k) over uniform draws does not grow with k: it is the
    largest eigenvalue of Q^k(B_0), and Q averages compressions P X P, which do not raise the largest eigenvalue. Then
    certificates for fewer steps count as well.

    >>> upper_bound([], "loss", "with-replacement", None, 100).source
    'here:last-iterate/loss/universal'
    """
    return min([*_certified(entries, quantity, ordering, T, k), *_registered(quantity, ordering, T, k)])


def _certified(entries: Iterable[KnownWorst], quantity: str, ordering: str, T: int | None, k: int) -> Iterator[Upper]:
    drawn = ordering == DRAWS
    for entry in entries:
        if entry.upper is None or entry.quantity != quantity or entry.ordering != ordering:
            continue
        more = entry.T is None or (T is not None and entry.T % T == 0)
        same = entry.T == T or (drawn and more)
        fewer = drawn and quantity == "loss" and entry.k <= k
        if same and (entry.k == k or fewer):
            what = "closed form" if entry.evidence == "closed form" else KEPT if entry.proof is not None else NOT_KEPT
            at = [f"T = {'inf' if entry.T is None else entry.T}"] * (entry.T != T) + [f"k = {entry.k}"] * (entry.k != k)
            yield Upper(entry.upper, f"{what} of {', '.join(at)}" if at else what)


def _registered(quantity: str, ordering: str, T: int | None, k: int) -> Iterator[Upper]:
    """The bounds of the registry that need no more than T and k; the smallest comes with the key of its bound."""
    orders, schemes = describe_ordering(as_ordering(ordering), None, k), describe_scheme(Kaczmarz(), None)[0]
    for bound in upper_bounds(quantity, "regression", orders, schemes, left_out=("refuted",)):
        value = value_of(bound, Setting(T=T), k)
        if value is not None:  # else the bound needs more than T, or does not cover k
            yield Upper(value, bound.key)


def best_entry(entries: Iterable[Entry], ordering: str, T: int | None, k: int, d: int | None = None) -> Entry | None:
    """The entry of the largest value for T tasks (None: any number) after k steps in at most d dimensions, or None.

    With replacement, clones of tasks have the same value.
    """
    fitting = [
        entry
        for entry in entries
        if entry.T is not None and entry.k == k and (d is None or entry.d <= d)
        and (T is None or entry.T == T or (ordering == DRAWS and T % entry.T == 0))
    ]  # fmt: skip
    return max(fitting, key=lambda entry: (entry.value or 0.0, -entry.d, -(entry.T or 0)), default=None)


class Slope(NamedTuple):
    """-d log(value) / d log(k) between two rows of the frontier.

    Attributes:
        value: of the lower bounds.
        least, most: what the slope of the supremum is between, by the lower and upper bounds of both rows.
    """

    value: float
    least: float
    most: float


def slope_between(first: tuple[int, float, float], second: tuple[int, float, float]) -> Slope:
    """The slope between two rows (k, lower, upper), the second with the larger k.

    >>> [round(number, 6) for number in slope_between((1, 0.2, 0.2), (2, 0.1, 0.11))]
    [1.0, 0.862496, 1.0]
    """
    (k1, low1, high1), (k2, low2, high2) = first, second
    if not (low1 > 0 and low2 > 0):
        return Slope(math.nan, math.nan, math.nan)
    step = math.log(k2 / k1)
    return Slope(math.log(low1 / low2) / step, math.log(low1 / high2) / step, math.log(high1 / low2) / step)


class FrontierRow(NamedTuple):
    """The largest known value and the smallest upper bound of T tasks after k steps.

    Attributes:
        T: None for any number of tasks.
        entry: of the largest value; its tasks may be fewer than T, as clones. None if no tasks are known.
        upper: the smallest upper bound, with its source.
        slope: to the row before it, of the same T; None in the first.
    """

    T: int | None
    k: int
    entry: Entry | None
    upper: Upper
    slope: Slope | None

    @property
    def value(self) -> float:
        """The largest known value, a lower bound on the supremum; 0 if there is none."""
        return 0.0 if self.entry is None or self.entry.value is None else self.entry.value


@dataclass(frozen=True, eq=False, repr=False)
class Frontier(Result):
    """Bounds on k * sup E[quantity] for all T and k: from below by known tasks, from above by a proof.

    Attributes:
        quantity: loss or forgetting.
        ordering: in the words of the command line.
        entries: all that are known, those of the user too, as in their files: `upper` is their own certificate or
            None.
        T, k: the numbers of tasks and steps that are shown; None for all.

    >>> import forgetting as fg
    >>> loss = fg.worstcase.frontier("loss", T=[2, 3], k=[1, 2])
    >>> frame = loss.to_frame()
    >>> frame[["T", "k"]].values.tolist(), frame["k value"].round(5).tolist()
    ([[2, 1], [2, 2], [3, 1], [3, 2]], [0.14815, 0.17616, 0.16846, 0.18209])
    >>> loss.value.round(5).tolist(), loss.upper.round(5).tolist()  # of these rows; both certified
    ([0.14815, 0.08808, 0.16846, 0.09104], [0.14815, 0.08808, 0.16846, 0.09104])
    >>> loss.best(T=3, k=2).verify().value > 0.091
    True
    """

    kind = "frontier"

    quantity: str
    ordering: str
    entries: tuple[Entry, ...]
    T: tuple[float, ...] | None = None
    k: tuple[int, ...] | None = None

    @property
    def headline(self) -> str:
        """The quantity, the ordering and the number of entries, in one line."""
        own = sum(entry.own for entry in self.entries)
        mine = f", {own} of them your own" if own else ""
        return f"Largest known expected {self.quantity} times k, {self.ordering}: {len(self.entries)} entries{mine}"

    @cached_property
    def rows(self) -> tuple[FrontierRow, ...]:
        """All rows, by T (any number of tasks last) and k."""
        numbers: list[int | None] = [*sorted({entry.T for entry in self.entries if entry.T is not None}), None]
        wanted = numbers if self.T is None else [T for T in numbers if (math.inf if T is None else T) in self.T]
        return tuple(row for T in wanted for row in self._rows_of(T) if self.k is None or row.k in self.k)

    @property
    def envelope(self) -> tuple[FrontierRow, ...]:
        """The rows over any number of tasks."""
        return tuple(row for row in self.rows if row.T is None)

    @property
    def value(self) -> Array:
        """The largest known value of each row, a lower bound on the supremum; 0 where no tasks are known."""
        return np.array([row.value for row in self.rows])

    @property
    def upper(self) -> Array:
        """The smallest proved upper bound of each row; `to_frame()` has its source, under "upper from".

        >>> import forgetting as fg, numpy as np
        >>> any_number = fg.worstcase.frontier("loss", T=np.inf, k=[4, 64, 10**4])
        >>> (any_number.upper * [4, 64, 10**4]).round(4).tolist()
        [0.2139, 0.2804, 0.2719]
        """
        return np.array([row.upper.value for row in self.rows])

    def _rows_of(self, T: int | None) -> list[FrontierRow]:
        """The rows of one T, those over any number of tasks at each k for which more than pairs are known."""
        steps = {entry.k for entry in self.entries if (entry.T != 2 if T is None else entry.T == T)}
        rows: list[FrontierRow] = []
        for k in sorted(steps):
            entry = best_entry(self.entries, self.ordering, T, k)
            row = FrontierRow(T, k, entry, upper_bound(self.entries, self.quantity, self.ordering, T, k), None)
            if rows:
                before, here = ((shown.k, shown.value, shown.upper.value) for shown in (rows[-1], row))
                row = row._replace(slope=slope_between(before, here))
            rows.append(row)
        return rows

    def best(self, T: float | None = None, k: int = 1, d: int | None = None) -> Entry:
        """The entry of the largest value with T tasks (None or inf: any number) after k steps, in at most d dimensions.

        With replacement, n clones of each task have the same value: an entry of fewer tasks may be the best for T. Then
        pairs and, for the loss, tasks in levels (`fg.families.levels`) are also tried, at every k and not only at those
        of the table. `upper` of the entry is the smallest proved bound for its own number of tasks, with its source in
        `upper_from` where it has no certificate or closed form itself. Cost: up to half a second.

        >>> import forgetting as fg
        >>> fg.worstcase.frontier("loss").best(T=2, k=10**4).evidence
        'closed form'
        >>> entry = fg.worstcase.frontier("loss").best(k=100)
        >>> entry.T, round(100 * entry.value, 4), round(100 * entry.upper, 4), entry.upper_from
        (251, 0.2183, 0.2786, 'here:last-iterate/loss/universal')
        """
        count = None if T is None or is_inf(T) else as_count(T, "T", least=1)
        steps, width = as_count(k, "k", least=1), None if d is None else as_count(d, "d", least=1)
        found = best_entry(self.entries, self.ordering, count, steps, width)
        for made in closed_forms(self.quantity, count, steps, width) if self.ordering == DRAWS else ():
            found = made if found is None or larger(made.value, found.value) else found
        if found is None:
            there = sorted({entry.k for entry in self.entries if count is None or count == entry.T})
            raise InvalidInputError(
                f"no entry on {self.quantity} for T = {'any' if count is None else count}, k = {steps}"
                f"{'' if width is None else f', d <= {width}'}; there are k = {', '.join(map(str, there)) or 'none'}"
            )
        if found.upper is None:
            bound = upper_bound(self.entries, self.quantity, self.ordering, found.T, steps)
            found = replace(found, upper=bound.value, upper_from=bound.source)
        return found

    def add(self, source: str | PathLike[str] | Entry) -> Frontier:
        """The frontier with one more entry, from a file or as an object: verified first, and refused if it is wrong."""
        entry = source if isinstance(source, Entry) else replace(Entry.read(source), own=True)
        if (entry.quantity, entry.ordering) != (self.quantity, self.ordering):
            raise InvalidInputError(
                f"{entry.name} is about {entry.quantity}, {entry.ordering}; this frontier is about {self.quantity}, "
                f"{self.ordering}"
            )
        entry.verify()
        return replace(self, entries=(*self.entries, entry.stored))

    def envelope_table(self) -> Table:
        """A table of the largest known value over all numbers of tasks, for each k."""
        tasks = ["" if row.entry is None else row.entry.T for row in self.envelope]
        evidence = ["" if row.entry is None else _words(row.entry) for row in self.envelope]
        columns = {"tasks": tasks, **self._of_rows(self.envelope), "evidence": evidence}
        del columns["T"]
        cells = tuple(zip(*columns.values(), strict=True))
        return Table("envelope", f"Any number of tasks: {self.quantity} times k", "", tuple(columns), cells, (SAYS,))

    def figure(self, upper: bool = False) -> Curves:
        """k times the largest known value against k, a curve for each T; with `upper`, the upper bounds too."""
        rows = {T: [row for row in self.rows if row.T == T and row.value > 0] for T in {row.T for row in self.rows}}
        built = [row for row in self.envelope if row.entry is not None and row.entry.construction]
        numbers = sorted(T for T in rows if T is not None)
        several = [T for T in numbers if len(rows[T]) >= DRAWN] or numbers
        curves = [_series(_curve_name(T, self.ordering), rows[T], group=group) for group, T in enumerate(several)]
        if built:
            curves.append(_series("tasks in levels, as many as k needs", built, group=len(several)))
        proved = [row for row in self.rows if row.T is None and row.upper.source in (KEPT, NOT_KEPT)]
        if proved:
            curves.append(_series("any T, certified supremum", proved, "worst", upper=True))
        steps = sorted({row.k for row in self.rows})
        if steps and self.ordering == DRAWS:
            limits = {"1/(2e)": LIMIT}
            if self.quantity == "loss":
                limits |= {
                    f"limit: at least {LEAST_LIMIT:.4f}": LEAST_LIMIT, f"limit: at most {C_0 / 2:.4f}": C_0 / 2
                }  # fmt: skip
            curves += [
                through(name, [(float(k), limit) for k in (steps[0], steps[-1])], "trivial")
                for name, limit in limits.items()
            ]
        if as_flag(upper, "upper"):
            every = [row for row in self.rows if row.T is None]
            curves.append(_series("smallest upper bound, any T", every, "bound", upper=True))
        return Curves(
            "frontier", f"Largest known expected {self.quantity} times k",
            "Lower bounds: tasks that reach each point are stored. " + SAYS, "k", f"k x {self.quantity}",
            tuple(curves), ylog=upper,
        )  # fmt: skip

    def _num_rows(self) -> int:
        return len(self.rows)

    def _columns(self, rows: IntArray, *, full: bool) -> Mapping[str, Sequence[Any]]:
        return self._of_rows([self.rows[row] for row in rows], full=full)

    def _of_rows(self, rows: Sequence[FrontierRow], *, full: bool = False) -> dict[str, Sequence[Any]]:
        columns: dict[str, Sequence[Any]] = {
            "T": [math.inf if row.T is None else row.T for row in rows],
            "k": [row.k for row in rows],
            "d": [0 if row.entry is None else row.entry.d for row in rows],
            "k value": [row.k * row.value for row in rows],
            "k upper": [row.k * row.upper.value for row in rows],
            "slope": [math.nan if row.slope is None else row.slope.value for row in rows],
            "evidence": [_evidence(row) for row in rows],
        }
        if full:
            columns |= {
                "value": [row.value for row in rows],
                "upper": [row.upper.value for row in rows],
                "upper from": [row.upper.source for row in rows],
                "slope least": [math.nan if row.slope is None else row.slope.least for row in rows],
                "slope most": [math.nan if row.slope is None else row.slope.most for row in rows],
                "origin": ["" if row.entry is None else row.entry.origin for row in rows],
            }
        return columns

    def _remarks(self) -> tuple[str, ...]:
        stored = [entry for entry in self.entries if not entry.own]
        mine = [
            f"your entry T = {row.T}, k = {row.k} has {row.value:.9g}, the package has {beaten.value:.9g}"
            for row in self.rows
            if row.T is not None and row.entry is not None and row.entry.own
            and (beaten := best_entry(stored, self.ordering, row.T, row.k)) is not None
            and larger(row.value, beaten.value, 0.0)
        ]  # fmt: skip
        return (*mine, SAYS)

    @classmethod
    def _restored(cls, values: dict[str, Any]) -> Self:
        made = cls(**checked_fields(cls, values))
        odd = next((e for e in made.entries if (e.quantity, e.ordering) != (made.quantity, made.ordering)), None)
        if odd is not None or made.quantity not in WORST_PAIRS:
            raise ForgettingError(f"all entries of a frontier on {made.quantity!r:.40} must be about that quantity")
        return made


def _series(
    name: str, rows: Sequence[FrontierRow], role: Role = "exact", group: int = -1, upper: bool = False
) -> Series:
    """A curve of k times the values, or k times the upper bounds, against k."""
    points = tuple(row.k * (row.upper.value if upper else row.value) for row in rows)
    return Series(name, tuple(float(row.k) for row in rows), points, role=role, group=group)


def _curve_name(T: int, ordering: str) -> str:
    return f"T = {T}, closed form" if T == 2 and ordering == DRAWS else f"T = {T}"


def _evidence(row: FrontierRow) -> str:
    """The evidence for the value of a row, in words."""
    if row.entry is None:
        return "certified"
    return _words(row.entry) if row.entry.T == row.T else f"{_words(row.entry)}, T = {row.entry.T}"


def _words(entry: Entry) -> str:
    return entry.how + (", own" if entry.own else "")


def frontier(
    quantity: str = "loss",
    ordering: str = DRAWS,
    *,
    T: Any = None,
    k: Any = None,
    folder: str | PathLike[str] | None = None,
) -> Frontier:
    """The best known k * sup E[quantity] over tasks with |w*| = 1 and radius 1, from below and from above.

    Each row has the exact value of stored tasks (a lower bound on the supremum), the smallest upper bound that is known
    (a certificate of `fg.worst_case`, the closed form of two tasks, or a bound of the registry, by name), and the slope
    to the row before. Every entry can be computed again: `entry.verify()`; larger values come from
    `fg.worstcase.improve_frontier`.

    Args:
        quantity: "loss" or "forgetting".
        ordering: in words, such as "with-replacement".
        T: a number of tasks, or several; np.inf for the rows over any number of tasks; all if left out.
        k: a number of steps, or several; all if left out.
        folder: of entries of your own, beside those of the package.

    Cost: the files are read at the first call, in half a second; rows take a millisecond each.

    >>> import forgetting as fg, numpy as np
    >>> certified = fg.worstcase.frontier("loss", T=np.inf, k=[1, 2, 3])
    >>> certified.to_frame()["k upper"].round(4).tolist()
    [0.1925, 0.2059, 0.2104]
    """
    check_question(quantity, ordering)
    kept = [vars(entry) for entry in known_worst(quantity) if entry.ordering == ordering]
    entries = [Entry(**fields | {"path": None}) for fields in kept]  # those of the package are known by their names
    if ordering == DRAWS:
        entries += pairs(quantity)
    shown = Frontier(quantity, ordering, tuple(entries), _several(T, "T"), _several(k, "k"))
    for path in [] if folder is None else entry_files(as_path(folder, "folder")):
        entry = replace(Entry.read(path), own=True)
        if (entry.quantity, entry.ordering) == (quantity, ordering):
            try:
                shown = shown.add(entry)
            except ForgettingError as error:
                raise ProblemFileError(f"{error}; move the file away, or repair the entry") from error
    return shown


def is_inf(value: Any) -> bool:
    """Whether a value stands for any number of tasks."""
    return isinstance(value, float) and value == math.inf


def pairs(quantity: str) -> list[Entry]:
    """The entries of T = 2 with replacement, in closed form."""
    return [worst_pair_entry(quantity, step) for step in CLOSED if quantity == "loss" or step > 1]


def _several(value: Any, what: str) -> tuple[Any, ...] | None:
    """One number or several; None for all."""
    if value is None:
        return None
    several = isinstance(value, Iterable) and not isinstance(value, str) and getattr(value, "ndim", 1) > 0
    given = list(value) if several else [value]
    return tuple(math.inf if what == "T" and is_inf(number) else as_count(number, what, least=1) for number in given)
