"""Upper bounds beside the entries of the frontier: certificates, closed forms, and the bounds of the registry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from forgetting.errors import ForgettingError
from forgetting.orderings.base import as_ordering
from forgetting.schemes import Kaczmarz
from forgetting.tasks.known_tasks import KnownWorst
from forgetting.theory.registry import all_bounds
from forgetting.theory.setting import Setting, describe_ordering, describe_scheme

__all__ = ["KEPT", "NOT_KEPT", "Upper", "upper_bound"]

KEPT, NOT_KEPT = "certificate", "fg.worst_case"  # the second: a certificate that is too large to be kept


class Upper(NamedTuple):
    """A proved upper bound on the supremum over tasks, and what proves it."""

    value: float
    source: str


def upper_bound(entries: Iterable[KnownWorst], quantity: str, ordering: str, T: int | None, k: int) -> Upper:
    """The smallest upper bound on the supremum over all collections of T tasks (None: of any number), with its source.

    Beside its own certificate, an entry has those of more tasks: T tasks are n T tasks, n clones each, so that the
    supremum over n T tasks is no smaller. The supremum of E L(w_k) over uniform draws does not grow with k: it is the
    largest eigenvalue of Q^k(B_0), and Q averages compressions P X P, which do not raise the largest eigenvalue. Then
    certificates for fewer steps count as well.

    >>> upper_bound([], "loss", "with-replacement", None, 100).source
    'thm:cl_by_sgd_main/loss/product'
    """
    return min([*_certified(entries, quantity, ordering, T, k), *_registered(quantity, ordering, T, k)])


def _certified(entries: Iterable[KnownWorst], quantity: str, ordering: str, T: int | None, k: int) -> Iterator[Upper]:
    drawn = ordering == "with-replacement"
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
    order, setting = as_ordering(ordering), Setting(T=T)
    orders, schemes = describe_ordering(order, None, k), describe_scheme(Kaczmarz(), None)[0]
    for bound in all_bounds(quantity=quantity):
        if (
            bound.kind == "upper"
            and bound.status != "refuted"
            and "regression" in bound.problems
            and not orders.isdisjoint(bound.orderings)
            and not schemes.isdisjoint(bound.schemes)
        ):
            try:
                yield Upper(bound.value(setting, k), bound.key)
            except ForgettingError:  # the bound needs more than T, or does not cover k
                continue
