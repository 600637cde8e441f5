"""One entry of the frontier: tasks and a value that can be computed again, and a certificate that can be checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

from forgetting.core.arrays import as_count, as_kind
from forgetting.core.text import nearest
from forgetting.errors import ForgettingError, InvalidInputError, ProblemFileError
from forgetting.expectation import expect
from forgetting.expectation.api import ask
from forgetting.expectation.engines import choose
from forgetting.files.best_known import beside, confirmed, larger
from forgetting.files.records import Codec, add_codec
from forgetting.orderings.base import as_ordering
from forgetting.tasks import RegressionTasks, families
from forgetting.tasks.levels import MOST, Levels, levels_of
from forgetting.tasks.worst_tasks import (
    FOLDER,
    PROOF,
    WORST_PAIRS,
    KnownWorst,
    task_arrays,
)
from forgetting.worstcase.dual_certificate import DualCertificate

__all__ = ["Entry"]

LARGEST = 128  # dimensions of constructed tasks that `fg.expect` computes; larger ones have their closed form
CLOSE = 1e-9  # relative: how far a value that is computed again may be off, beyond its own uncertainty
TIGHT = 1e-5  # relative: a value this close to its upper bound is the supremum
PATIENCE = 60.0  # seconds that an exact value may take
DRAWS = "with-replacement"


class Verified(NamedTuple):
    """The result of `Entry.verify`: the value of the tasks, and the upper bound that the certificate proves."""

    value: float | None
    upper: float | None


@dataclass(frozen=True)
class Entry(KnownWorst):
    """An entry of the frontier: the largest known expected loss or forgetting of T tasks after k steps.

    The attributes are those of its file: quantity, T (None for the supremum over all T), k, d, ordering, evidence,
    value, upper, origin, w_star and matrices; `tasks` are the tasks.

    Attributes:
        own: whether the entry is the user's, and not from the package.
        upper_from: the source of `upper` in an answer of `Frontier.best`, where that is no certificate or closed form
            of this entry but a bound of the registry, by its key, or a certificate of more tasks or fewer steps. Files
            never keep such an `upper`.

    >>> import forgetting as fg
    >>> entry = fg.worstcase.frontier("loss").best(T=3, k=2)
    >>> round(entry.value, 6), round(entry.upper, 6), entry.tasks.num_tasks, entry.evidence
    (0.091044, 0.091044, 3, 'certified')
    >>> round(entry.verify().value, 6)
    0.091044
    """

    own: bool = field(default=False, compare=False, kw_only=True)
    upper_from: str = field(default="", compare=False, kw_only=True)

    @property
    def rate(self) -> float | None:
        """k times the value: the constant of a rate 1/k."""
        return None if self.value is None else self.k * self.value

    @cached_property
    def certificate(self) -> DualCertificate | None:
        """The proof of the upper bound, from the file beside the entry; None if no certificate is kept there."""
        if self.proof is None:
            return None
        if self.path is None and self.own:
            raise ProblemFileError(
                f"{self.name}: the certificate is beside the file of the entry; read that file again"
            )
        path = FOLDER / f"{self.name}.json" if self.path is None else self.path
        return DualCertificate.load(beside(path, PROOF, self.proof, f"the certificate of {self.name}"))

    def verify(self) -> Verified:
        """Compute the value again by `fg.expect`, and check the certificate; an error says what does not hold.

        Tasks of a construction in more than 128 dimensions have the value of their closed form. Cost: milliseconds for
        the value, up to three seconds for the largest constructions and certificates.
        """
        where = self.name if self.path is None else str(self.path)
        value = upper = None
        try:
            if self.value is not None:
                computed, doubt = self._computed()
                value = confirmed(where, "the value", self.value, computed, CLOSE * self.value + doubt)
            if self.certificate is not None:
                upper = self._proved(self.certificate)
            elif self.evidence == "closed form" and self.upper is not None and not self.upper_from:
                upper = confirmed(where, "the upper bound", self.upper, self._closed_form(), CLOSE * self.upper)
        except ProblemFileError:
            raise
        except ForgettingError as error:
            raise ProblemFileError(f"{where}: {error}") from error
        return Verified(value, upper)

    def _computed(self) -> tuple[float, float]:
        """The value of the tasks, and a bound on its error."""
        if self.construction and self.d > LARGEST:
            if self.levels is None or (self.quantity, self.ordering) != ("loss", DRAWS):
                raise InvalidInputError(f"no closed form of {self.construction!r} for this entry")
            return self.levels.loss(self.k), 0.0
        tasks = self.tasks
        assert tasks is not None
        return exact_value(tasks, self.quantity, self.ordering, self.k)

    def _proved(self, certificate: DualCertificate) -> float:
        """The upper bound that a certificate proves, if that is the question and the claim of this entry."""
        law = "uniform" if self.ordering == DRAWS else None  # certificates are kept for no other ordering
        asked = {"quantity": self.quantity, "tasks": self.T, "k": self.k, "law": law}
        said = {name: certificate.data.get(name) for name in asked}
        if said != asked or certificate.data.get("kind") == "convex":
            raise InvalidInputError(f"the certificate is about something else: {said}")
        proved = certificate.verify()
        if self.upper is None or not certificate.upper <= self.upper:
            raise InvalidInputError(
                f"the upper bound {self.upper} is smaller than the one of its certificate, {certificate.upper}"
            )
        return proved

    def _closed_form(self) -> float:
        """The supremum over all pairs of tasks."""
        if self.T != 2 or self.ordering != DRAWS:
            raise InvalidInputError("a closed form is known for T = 2 with replacement, not for this entry")
        return WORST_PAIRS[self.quantity](self.k).value

    @property
    def stored(self) -> Self:
        """The entry as a file has it: with an upper bound only if that is its own certificate or closed form."""
        return replace(self, upper=None, upper_from="") if self.upper_from else self

    def to_json(self) -> str:
        """The text of the file."""
        return super(Entry, self.stored).to_json()

    def _instead_of(self, old: Self, by: float) -> Self:
        """The entry of the larger value, or of fewer dimensions; what either proves about the supremum is kept."""
        proved = self if self.upper is not None else old
        smaller = self.d < old.d and not larger(old.value, self.value)
        best = self if larger(self.value, old.value, by) or smaller else old
        if best is old and proved.upper == old.upper:
            return old
        origin, evidence = best.origin, best.evidence if proved.upper is None else proved.evidence
        if proved.upper is not None and best is not proved:
            tasks = best.origin.partition("; tasks by ")[2] or best.origin
            origin = f"{proved.origin.partition('; tasks by ')[0]}; tasks by {tasks}"
        return replace(best, upper=proved.upper, proof=proved.proof, evidence=evidence, origin=origin)

    @classmethod
    def of(cls, tasks: RegressionTasks, quantity: Any, k: int, ordering: str = DRAWS, **more: Any) -> Self:
        """An entry of tasks: rows are made orthonormal and w* a unit vector, and the exact value is computed.

        `more` are further attributes, such as `origin`.

        >>> import forgetting as fg
        >>> round(27 * Entry.of(fg.families.worst_pair(1), "loss", 1).value, 9)
        4.0
        """
        as_kind(tasks, RegressionTasks, "regression tasks", "tasks: ")
        check_question(quantity, ordering)
        k = as_count(k, "k", least=1)
        entry = cls(quantity, tasks.num_tasks, k, ordering, value=0.0, **task_arrays(tasks), **more)
        return replace(entry, value=entry._computed()[0])

    @property
    def how(self) -> str:
        """The evidence in words; "certified" is said of a value only where the tasks attain the upper bound to 1e-5."""
        if self.evidence == "certified" and self.value is not None and not self.tight:
            return "searched below a certified bound"
        return self.evidence

    @property
    def tight(self) -> bool:
        """Whether the tasks attain the upper bound of the entry, so that the value is the supremum."""
        return self.upper is not None and self.value is not None and self.upper - self.value <= TIGHT * self.value

    def __str__(self) -> str:
        tasks = "any T" if self.T is None else f"T = {self.T}, d = {self.d}"
        reached = "" if self.value is None else f", value {self.value:.8g}, times k {self.rate:.6g}"
        proved = "" if self.upper is None else f", at most {self.upper:.8g}"
        return f"{self.quantity} after k = {self.k}, {self.ordering}, {tasks}: {self.how}{reached}{proved}"


def check_question(quantity: Any, ordering: Any) -> None:
    """Raise unless the frontier is about the quantity, and the ordering is given in words."""
    if as_kind(quantity, str, "'loss' or 'forgetting'", "quantity: ") not in WORST_PAIRS:
        raise InvalidInputError(f"no quantity {quantity!r:.40}{nearest(quantity, tuple(WORST_PAIRS))}")
    as_kind(ordering, str, "an ordering in words", "ordering: ")


def exact_value(tasks: RegressionTasks, quantity: str, ordering: str, k: int) -> tuple[float, float]:
    """The exact expected quantity, and a bound on its error; an error if it takes longer than a minute."""
    order = as_ordering(ordering)
    engine = choose(ask(tasks, order, k, quantities=(quantity,), patience=PATIENCE).request).engine
    if not engine.exact:
        raise InvalidInputError(
            f"{ordering}, T = {tasks.num_tasks}, k = {k}: no exact value within {PATIENCE:.0f} s; "
            "use fewer tasks or steps"
        )
    expected = expect(tasks, order, k, quantities=(quantity,), method=engine.name)
    return float(expected.values[quantity]), float(expected.uncertainty[quantity])


def worst_pair_entry(quantity: Any, k: int) -> Entry:
    """The entry of T = 2 with replacement, which is known in closed form (`fg.families.worst_pair`).

    >>> entry = worst_pair_entry("loss", 1)
    >>> round(27 * entry.value, 9), round(27 * entry.upper, 9)
    (4.0, 4.0)
    """
    origin = f"fg.families.worst_pair({k}, {quantity!r})"
    exact = WORST_PAIRS[quantity](k).value
    made = task_arrays(families.worst_pair(k, quantity))
    return Entry(quantity, 2, k, evidence="closed form", value=exact, upper=exact, origin=origin, **made)


def levels_entry(made: Levels, k: int, origin: str) -> Entry:
    """The entry of tasks in levels, whose loss with replacement is known in closed form.

    >>> entry = levels_entry(Levels((1, 4, 10), (1, 2), (0.1, 0.2)), 30, origin="by hand")
    >>> entry.T, entry.d, bool(abs(entry.verify().value / entry.value - 1) < 1e-12)
    (35, 15, True)
    """
    return Entry(
        "loss", made.num_tasks, k, evidence="closed form", value=made.loss(k), origin=origin,
        construction=made.construction,
    )  # fmt: skip


def closed_forms(quantity: str, T: int | None, k: int, d: int | None) -> Iterator[Entry]:
    """Entries of T tasks (None: any number) with replacement that are known for every k: pairs, and tasks in levels.

    >>> [(entry.T, round(100 * entry.value, 4)) for entry in closed_forms("loss", None, 100, None)]
    [(2, 0.1839), (251, 0.2183)]
    """
    if (T is None or T % 2 == 0) and (d is None or d >= 2) and (quantity == "loss" or k > 1):
        yield worst_pair_entry(quantity, k)
    if quantity == "loss" and (T is None or T <= MOST) and (made := levels_of(T, d, k)) is not None:
        yield levels_entry(made, k, f"forgetting.tasks.levels.levels_of({T}, {d}, {k})")


def _decode(data: Any) -> Entry:
    if not isinstance(data, dict) or not isinstance(data.get("text"), str) or not isinstance(data.get("own"), bool):
        raise InvalidInputError("not an entry of the frontier")
    return replace(Entry.from_json(data["text"]), own=data["own"])


add_codec(Codec("frontier entry", Entry, lambda entry: {"text": entry.to_json(), "own": entry.own}, _decode))
