"""Guarantees of a solve before it starts: the smallest bound of the registry that covers the solve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from forgetting.core.arrays import Array
from forgetting.core.numerical import EPS
from forgetting.errors import ForgettingError
from forgetting.files.records import Codec, add_codec
from forgetting.orderings import Ordering, TaskView, laws

if TYPE_CHECKING:
    from forgetting.solver.sweepers import Sweeper
    from forgetting.theory.bound import Row
    from forgetting.theory.evaluation import Evaluation
    from forgetting.theory.setting import Setting

__all__ = ["Guarantee"]

#: the statuses of bounds that count here; numbers quoted at second hand, rates and gaps in proofs do not
PROVED = ("holds as stated", "holds where proved", "corrected", "proved here")
LARGEST = 2000  # dimension up to which the linear rate is computed
SHARE = 0.25  # of the arithmetic of the solve that the linear rate may cost
SMALLEST = 1e-10  # a relative eigenvalue below it may be a rounding error of 0


@dataclass(frozen=True)
class Promise:
    """A bound on the squared errors of the rows, or why there is none.

    Attributes:
        value: the bound on the mean of (b_i - a_i.x)^2 / 2, in units of |x0 - x*|^2 max_i |a_i|^2; None if no theorem
            covers the solve.
        bound: the key of the bound, for `fg.bounds.get` and `fg.bounds.cite`.
        rate: the bound on E|x - x*|^2 / |x0 - x*|^2, by the least singular value; None where that was not computed.
        sentence: both in words, or why there is no bound.
    """

    value: float | None
    bound: str | None
    rate: float | None
    sentence: str


class Guarantee:
    """The guarantee of a solve before it starts, for every consistent system; computed when first looked at.

    `str(guarantee)` is a sentence, which says why if there is no guarantee. `value`, `bound` and `rate` are those of
    `Promise`. x* is the solution nearest to x0. The first look imports the registry of bounds (half a second); later
    ones take about a millisecond.

    >>> import numpy as np, forgetting as fg
    >>> A = np.random.default_rng(0).standard_normal((60, 30))
    >>> solution = fg.solve(A, A @ np.ones(30), ordering="with-replacement")
    >>> solution.guarantee.bound, solution.guarantee.value < 0.01
    ('here:last-iterate/loss/universal', True)
    >>> print(fg.solve([[1.0], [1.0]], [0.0, 2.0]).guarantee)
    no theorem covers a system without a solution
    """

    def __init__(self, promise: Promise | Callable[[], Promise]) -> None:
        self._source = promise

    @cached_property
    def promise(self) -> Promise:
        """The whole guarantee as plain values."""
        return self._source if isinstance(self._source, Promise) else self._source()

    @property
    def value(self) -> float | None:
        """The bound on the mean of (b_i - a_i.x)^2 / 2, in units of |x0 - x*|^2 max_i |a_i|^2, or None."""
        return self.promise.value

    @property
    def bound(self) -> str | None:
        """The key of the bound in the registry, or None."""
        return self.promise.bound

    @property
    def rate(self) -> float | None:
        """The bound on E|x - x*|^2 / |x0 - x*|^2, where the least singular value was cheap to compute, or None."""
        return self.promise.rate

    def __str__(self) -> str:
        return self.promise.sentence

    def __repr__(self) -> str:
        return f"Guarantee({self.promise.sentence!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Guarantee) and self.promise == other.promise

    def __hash__(self) -> int:
        return hash(self.promise)

    def __reduce__(self) -> tuple[Any, ...]:
        return Guarantee, (self.promise,)


def _decode(values: Any) -> Guarantee:
    match values:
        case {"value": float() | None, "bound": str() | None, "rate": float() | None, "sentence": str()}:
            return Guarantee(Promise(**{name: values[name] for name in ("value", "bound", "rate", "sentence")}))
    raise ForgettingError("not a guarantee of a solution")


add_codec(Codec("guarantee", Guarantee, lambda guarantee: dict(vars(guarantee.promise)), _decode))


@dataclass(frozen=True, eq=False)
class Terms:
    """Properties of a solve by projections that theorems need.

    Attributes:
        ordering: in which order blocks are visited; None where the theorems of single steps see any order, because
            a visit is several steps.
        steps: the number of steps.
        blocks: the number of blocks that one step projects onto.
        dim: the number of unknowns, times the number of right-hand sides if the order depends on all of them.
        single: whether a block is a row.
        norms: the spectral norm of every block; None if they are not known.
        relaxation: the factor of every step.
        gap: the least eigenvalue of sum_i p_i a_i a_i^T / |a_i|^2, for draws with probabilities p; None if unknown.
    """

    ordering: Ordering | None
    steps: int
    blocks: int
    dim: int
    single: bool
    norms: Array | None
    relaxation: float = 1.0
    gap: float | None = None


def uncovered(
    sweeper: Sweeper,
    *,
    steps: int,
    method: str,
    consistent: bool | None,
    damp: float,
    sets: int = 0,
    ruled: bool = False,
    relaxed: bool = False,
) -> str | None:
    """A sentence on why no theorem of the registry can cover a solve; None if one may."""
    limits = sweeper.limits
    if consistent is False:
        return "no theorem covers a system without a solution"
    if damp or method != "kaczmarz":
        return f"no theorem here covers the method {method!r}"
    if len(limits.relations) or len(limits.low) or sets:
        return "no theorem here covers systems with inequalities, bounds on x or convex sets"
    if ruled:
        return "no theorem here covers noise, and rules that stop at it"
    if relaxed:
        return "no theorem here covers a relaxation that changes"
    if sweeper.average > 1:
        return "no theorem here covers averages of several steps"
    return None if steps else "no step was made"


def promised(terms: Terms) -> Promise:
    """The smallest proved bound on x after the steps made; else the bound on the errors met on the way.

    After k visits of independent draws, of one pass, or of whole cycles, theorems bound the mean loss of x. Of every
    other order they bound the mean of the errors that blocks had just before they were visited (`lem:regret_bound`).

    >>> from forgetting.orderings import NormWeighted
    >>> promise = promised(Terms(NormWeighted(), 1000, 20, 10, True, np.ones(20), gap=0.05))
    >>> promise.bound, f"{promise.value:.1e}, {promise.rate:.1e}"
    ('here:last-iterate/loss/gap', '2.2e-24, 5.3e-23')
    >>> promised(Terms(None, 1000, 20, 10, True, None)).bound
    'lem:regret_bound/regret'
    """
    from forgetting.schemes import SGD
    from forgetting.theory.evaluation import evaluate

    setting = _setting(terms)
    rows = evaluate(
        setting,
        "any" if terms.ordering is None else terms.ordering,
        terms.steps,
        scheme=None if terms.relaxation == 1 else SGD(terms.relaxation),
    )
    last = _smallest(rows, ("loss", "forgetting") if _all_equally_often(terms) else ("loss",))
    met = next(row for row in rows if row.bound.key == "lem:regret_bound/regret")
    if last is None and not met.applies:
        return Promise(None, None, None, f"no theorem applies: {met.why_not}")
    row = last or met
    error = _smallest(rows, ("error",))
    words = _said(terms, row, row is last)
    if error is not None:
        words += f"; and E|x - x*|^2 at most {error.value:.3g} |x0 - x*|^2 ({error.bound.name})"
    return Promise(float(row.value), row.bound.key, None if error is None else float(error.value), words)


def _setting(terms: Terms) -> Setting:
    """The numbers that bounds depend on, in units in which |x0 - x*| and the largest norm are 1."""
    from forgetting.theory.setting import Setting

    T, alpha = terms.blocks, None
    if terms.norms is not None and terms.norms.any():
        alpha = (terms.norms / terms.norms.max()) ** 2
    ranks = None if alpha is None or not terms.single else (alpha > 0).astype(float)
    p = _probabilities(terms)
    drawn: dict[str, Any] = {}
    if p is not None and alpha is not None:
        seen = alpha > 0
        drawn["weight_ratio"] = float(np.max(alpha[seen] / p[seen])) / T if (p[seen] > 0).all() else None
        drawn["rank_weighted"] = None if ranks is None else float(p @ ranks)
        drawn["spectral_gap"] = terms.gap
    return Setting(
        T=T,
        d=terms.dim,
        rank_avg=None if ranks is None else float(ranks.mean()),
        rank_max=1 if terms.single else None,
        radius_sq_mean=None if alpha is None else float(alpha.mean()),
        eta=1.0,
        beta=1.0,
        **drawn,
    )


def _probabilities(terms: Terms) -> Array | None:
    """The probabilities of independent draws; None for other orders."""
    law = None if terms.ordering is None else terms.ordering.law
    return law.probabilities(TaskView(terms.blocks, terms.norms)) if isinstance(law, laws.Independent) else None


def _all_equally_often(terms: Terms) -> bool:
    """Whether every block had the same number of visits, so that the mean over visits is the mean over blocks."""
    law = None if terms.ordering is None else terms.ordering.law
    in_cycles = isinstance(law, laws.Cycle | laws.Permutation | laws.Reshuffled)
    return in_cycles and terms.steps % terms.blocks == 0 and terms.relaxation == 1


def _smallest(rows: Evaluation, quantities: tuple[str, ...]) -> Row | None:
    """The smallest proved upper bound on one of the quantities that says more than the trivial one."""
    proved = [
        row
        for quantity in quantities
        for row in rows.applicable(quantity)
        if row.bound.kind == "upper"
        and row.bound.origin != "trivial"
        and row.bound.status in PROVED
        and not row.vacuous
    ]
    # of equal values, that of the ordering itself comes before that of independent draws with any weights
    return min(proved, key=lambda row: (row.value, "i.i.d." in row.bound.orderings), default=None)


def _said(terms: Terms, row: Row, last: bool) -> str:
    row_error = "(b_i - a_i.x)^2 / 2" if terms.single else "|b_i - A_i x|^2 / 2"
    what, unit = ("row", "max_i |a_i|^2") if terms.single else ("block", "max_i |A_i|^2")
    size = f"{row.value:.3g} |x0 - x*|^2 {unit}"
    if last:
        random = terms.ordering is not None and terms.ordering.random
        at_most = "is expected to be at most" if random else "is at most"
        return f"after {terms.steps} steps the mean of {row_error} over {what}s {at_most} {size} ({row.bound.name})"
    return (
        f"over {terms.steps} steps the mean of {row_error} just before {what} i is visited is at most {size}, in every "
        f"order ({row.bound.name})"
    )


def smallest_eigenvalue(sweeper: Sweeper, ordering: Ordering, rows: int) -> float | None:
    """The least eigenvalue of sum_i p_i a_i a_i^T / |a_i|^2 for draws with probabilities p, on the span of all rows.

    None unless computing it costs little beside a solve of so many row steps, and all eigenvalues are clearly above 0:
    an eigenvalue that may be 0 decides whether there is a rate at all.
    """
    m, n = sweeper.shape
    small = min(m, n)
    law = ordering.law
    if not isinstance(law, laws.Independent) or sweeper.norms is None or small > LARGEST:
        return None
    if m * n * small + 9 * small**3 > SHARE * 4 * rows * n:
        return None
    norms = sweeper.norms
    p = law.probabilities(TaskView(m, norms))
    gram = sweeper.weighted_gram(np.divide(p, norms**2, out=np.zeros(m), where=norms > 0))
    if gram is None:
        return None
    values = np.linalg.eigvalsh(gram)
    least = float(values[0]) - 8 * small * EPS * float(values[-1])
    return least if least > SMALLEST * float(values[-1]) else None
