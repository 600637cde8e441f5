"""The audit of a class-incremental benchmark: how much its numbers depend on the class order, and what to do."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from forgetting.auditing.class_order_result import (
    ClassOrderAudit,
    ClassOrderMeasure,
    FewSeeds,
    FoundClassOrder,
    PairEffect,
    PlaceEffect,
)
from forgetting.auditing.class_scores import MEASURES, ClassLearner, MeasuredClassOrders
from forgetting.auditing.kinds import audits
from forgetting.auditing.order_search import climb_from
from forgetting.auditing.orders import extreme_order
from forgetting.core.arrays import Array, IntArray, Seed, as_kind, as_number, seed_from
from forgetting.core.progress import progress_bar
from forgetting.errors import DataWarning
from forgetting.expectation.intervals import Range, bounded_interval, column_quantiles
from forgetting.schemes.base import SchemeLike
from forgetting.tasks.class_splits import MOST_LISTED, ClassSplits, codes_of

CONFIDENCE = 0.99  # of intervals around sampled values
FEWEST, MOST = 30, 50_000  # class orders that are drawn where not all are listed
LONG = 30.0  # seconds that the fewest may take without a warning
TRIPLES = 100_000  # draws of a few orders, for what a few seeds say
EFFECTS = 20  # pairs of classes that are listed: the largest effects of either sign
BARS = 30  # of the histogram


@audits("class orders")
def audit_class_orders(
    splits: ClassSplits,
    *,
    order: Any = None,
    scheme: SchemeLike | None = None,
    seed: Seed = 0,
    patience: float = 30.0,
    title: str | None = None,
) -> ClassOrderAudit:
    """`fg.audit` of `ClassSplits`: the distribution of a benchmark's numbers over class orders, and what to do.

    All class orders are listed if that takes at most `patience` seconds (estimated beforehand). Otherwise as many as
    take 60 % of that are drawn at random, and the extremes are searched for in the rest: classes and tasks are swapped
    while that helps. At least 30 class orders are drawn, and at least 30 searched, whatever the patience is; a
    warning says how long they take if that is much more.

    Cost: a singular value decomposition for each set of classes, and for each class order T steps and the predictions
    of all rows seen, about 0.05 milliseconds for 600 rows of 64 features and ten classes.

    Args:
        splits: the benchmark.
        order: the given class order: names of all classes, task after task, or a list of names for each task.
        scheme: a linear scheme; each task is learned to convergence if None.
        seed: of draws and of the search.
        patience: as above; the same numbers come out on every machine.
        title: the title of the pages.

    >>> import forgetting as fg
    >>> X = np.random.default_rng(0).standard_normal((40, 60))
    >>> audit = fg.audit(fg.ClassSplits(X, list("abcd") * 10, tasks=2))
    >>> audit.exact, audit.num_orders, audit.measures[0].name, round(audit.measures[0].mean, 3)
    (True, 6, 'final accuracy', 0.908)
    """
    if title is not None:
        as_kind(title, str, "a text", "title: ")
    number, seconds = seed_from(seed), as_number(patience, "patience", least=0)
    learner, names = ClassLearner(splits, scheme), splits.class_names
    given = None if order is None else codes_of(splits, order)
    streams = [np.random.default_rng(stream) for stream in np.random.SeedSequence(number).spawn(3)]
    exact = splits.num_orders <= MOST_LISTED and learner.seconds(splits.num_orders, listed=True) <= seconds
    if not exact and (least := learner.seconds(2 * FEWEST)) > max(2 * seconds, LONG):
        warnings.warn(
            f"{FEWEST} class orders drawn and {FEWEST} searched, the fewest, take about {least:.0f} seconds, more than "
            f"patience = {seconds:g}: give fewer features (a random projection, principal components) or fewer rows",
            DataWarning,
            stacklevel=4,  # at the call of fg.audit
        )
    with progress_bar("auditing class orders") as report:
        report("class orders", 0, 3)
        codes = (
            splits.partitions.all()
            if exact
            else splits.partitions.draw(_affordable(learner, 0.6 * seconds), streams[0])
        )
        drawn = tried = learner.measured(codes)
        values = drawn.values
        report("extremes", 1, 3)
        if not exact:
            tried = _with_searched(learner, drawn, _affordable(learner, 0.4 * seconds), streams[1])
        report("classes", 2, 3)
        own = None if given is None else learner.measured(given[None])
        even = len(set(learner.counts.tolist())) == 1 and len(set(splits.sizes)) == 1
        kept = [place for place in range(len(MEASURES)) if not even or "over tasks" not in MEASURES[place].name]
        measures = tuple(_measure(names, at, values[:, at], tried, own, exact) for at in kept)
        few = tuple(_few_seeds(measure, values[:, at], streams[2]) for at, measure in enumerate(measures[:2]))
        final = values[:, 0]
        owner = _owners(codes, splits.sizes)
        result = ClassOrderAudit(
            title=f"{splits.num_classes} classes in {splits.num_tasks} tasks" if title is None else title,
            class_names=names,
            sizes=splits.sizes,
            outputs=splits.classes,
            dim=splits.dim,
            rows=int(splits.num_rows.sum()),
            scored=int(learner.counts.sum()),
            held_out=splits.has_test,
            scheme=str(learner.scheme),
            seed=number,
            drawn=len(codes),
            exact=exact,
            searched=len(tried.codes) - len(codes),
            measures=measures,
            given=None if own is None else _found(names, own, 0, 0, 1),
            few=few,
            pairs=_pair_effects(splits, owner, final, exact),
            places=_place_effects(splits, owner, final, exact),
        )
        report("done", 3, 3)
    return result


# ------------------------------------------------------------------------------------------------------- distributions


def _affordable(learner: ClassLearner, seconds: float) -> int:
    """The number of class orders that can be learned in this time, at least 30."""
    n = FEWEST
    while 2 * n <= MOST and learner.seconds(2 * n) <= seconds:
        n *= 2
    return n


def _measure(
    names: Sequence[str],
    at: int,
    values: Array,
    tried: MeasuredClassOrders,
    own: MeasuredClassOrders | None,
    exact: bool,
) -> ClassOrderMeasure:
    """The distribution of a measure over class orders, from all of them or from independent draws."""
    about, ends = MEASURES[at], (MEASURES[at].least, 1.0)
    mean, sd = float(values.mean()), float(values.std(ddof=0 if exact else 1))
    quantiles = column_quantiles(values, CONFIDENCE, ends)
    if exact:
        quantiles = np.repeat(quantiles[:, :1], 3, axis=1)
    extremes = []
    for largest in (about.higher, not about.higher):
        found = extreme_order(tried.codes, tried.values[:, at], largest=largest)
        row = int(np.argmax((tried.codes == found.order).all(axis=1)))
        extremes.append(_found(names, tried, row, at, found.tied if exact else 1))
    low, high = float(values.min()), float(values.max())
    if high - low <= 1e-9:
        low, high = low - 0.005, high + 0.005
    counts = np.histogram(values, int(np.clip(np.sqrt(len(values)), 6, BARS)), (low, high))[0]
    given = beats = None
    if own is not None:
        given, slack = float(own.values[0, at]), 1e-9
        beats = float(np.mean(values > given + slack if about.higher else values < given - slack))
    return ClassOrderMeasure(
        about.name, about.meaning, about.higher, mean,
        (mean, mean) if exact else bounded_interval(values, *ends, CONFIDENCE),
        sd, (sd, sd) if exact else _sd_interval(values, ends),
        tuple((float(value), float(below), float(above)) for value, below, above in quantiles),
        extremes[0], extremes[1], given, beats, (low, high), tuple((counts / len(values)).tolist()),
    )  # fmt: skip


def _sd_interval(values: Array, ends: Range) -> Range:
    """An interval for the standard deviation: half the squares of differences of two draws have the variance as mean.

    >>> low, high = _sd_interval(np.random.default_rng(0).random(4000), (0.0, 1.0))
    >>> low < 12**-0.5 < high < 0.31
    True
    """
    half = len(values) // 2
    squares = 0.5 * (values[:half] - values[half : 2 * half]) ** 2
    low, high = bounded_interval(squares, 0.0, 0.5 * (ends[1] - ends[0]) ** 2, CONFIDENCE)
    return math.sqrt(max(low, 0.0)), math.sqrt(max(high, 0.0))


def _found(names: Sequence[str], tried: MeasuredClassOrders, row: int, at: int, tied: int) -> FoundClassOrder:
    """A class order that was tried, with a measure and its accuracies along the way."""
    order = tuple(names[code] for code in tried.codes[row].tolist())
    return FoundClassOrder(order, float(tried.values[row, at]), tied, tuple(tried.seen[row].tolist()))


def _few_seeds(measure: ClassOrderMeasure, values: Array, rng: np.random.Generator) -> FewSeeds:
    """What three independent draws from these values say of their mean, over many such draws."""
    from scipy.stats import t

    drawn = values[rng.integers(len(values), size=(TRIPLES, 3))]
    mean, sd = drawn.mean(axis=1), drawn.std(axis=1, ddof=1)
    off = np.abs(mean - values.mean()) - 1e-12
    half = float(t.ppf(0.975, 2)) / math.sqrt(3) * sd
    whole = float(np.ptp(values))
    missed = 1 - np.ptp(drawn, axis=1).mean() / whole if whole > 0 else 0.0
    return FewSeeds(
        measure.name, 3, float(np.mean(off <= half)), float(half.mean()), float(np.mean(off <= sd)), float(sd.mean()),
        float(np.mean(sd < 0.5 * values.std())), float(missed),
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ extremes


def _with_searched(
    learner: ClassLearner, drawn: MeasuredClassOrders, most: int, rng: np.random.Generator
) -> MeasuredClassOrders:
    """The drawn class orders, and those that a search for the extremes of final accuracy tried."""
    tried = [drawn]

    def learn(orders: IntArray) -> Array:
        tried.append(learner.measured(learner.splits.partitions.sorted(orders)))
        return tried[-1].values[:, 0]

    search_class_orders(learner.splits, learn, drawn.codes, drawn.values[:, 0], most, rng)
    return MeasuredClassOrders.joined(tried)


def search_class_orders(
    splits: ClassSplits,
    learn: Callable[[IntArray], Array],
    codes: IntArray,
    values: Array,
    most: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """The least and the largest value that climbs find, which try `most` class orders at the most.

    Climbs begin at the extremes of known class orders `codes` and their `values`; a move swaps two classes of different
    tasks, or two tasks of one size. `learn` gives the values of class orders, whose tasks need not be sorted.
    """
    cuts, moves = splits.partitions.cuts, swaps(splits)

    def moved(order: IntArray, kind: int, i: int, j: int) -> IntArray:
        parts = [slice(at, at + 1) if kind == 0 else slice(cuts[at], cuts[at + 1]) for at in (i, j)]
        new = order.copy()
        new[parts[0]], new[parts[1]] = order[parts[1]], order[parts[0]]
        return new

    ranks = np.argsort(values, kind="stable")
    lowest, highest = (list(codes[some]) for some in (ranks[:2], ranks[-2:]))
    top, _ = climb_from(learn, highest, most // 2, rng, moves, moved)
    bottom, _ = climb_from(lambda orders: -learn(orders), lowest, most // 2, rng, moves, moved)
    return -bottom.value, top.value


def swaps(splits: ClassSplits) -> IntArray:
    """(kind, i, j) of the moves of a search: 0 swaps the classes at two places, 1 swaps two tasks of one size.

    >>> swaps(ClassSplits(np.eye(3), list("abc"), tasks=2)).tolist()
    [[0, 0, 2], [0, 1, 2]]
    """
    owner = np.repeat(np.arange(splits.num_tasks), splits.sizes)
    classes = [(0, i, j) for i, j in combinations(range(splits.num_classes), 2) if owner[i] != owner[j]]
    tasks = [(1, s, t) for s, t in combinations(range(splits.num_tasks), 2) if splits.sizes[s] == splits.sizes[t] > 1]
    return np.array([*classes, *tasks])


# ------------------------------------------------------------------------------------------------------------- effects


def _owners(codes: IntArray, sizes: Sequence[int]) -> IntArray:
    """(n, C), the task of each class in each order."""
    owner = np.empty_like(codes)
    np.put_along_axis(owner, codes, np.broadcast_to(np.repeat(np.arange(len(sizes)), sizes), codes.shape), axis=1)
    return owner


def _pair_effects(splits: ClassSplits, owner: IntArray, final: Array, exact: bool) -> tuple[PairEffect, ...]:
    """The effects on final accuracy of pairs of classes that share a task, the most harmful first."""
    if max(splits.sizes) < 2:
        return ()
    pairs = list(combinations(range(splits.num_classes), 2))
    differences = [_difference(final, owner[:, a] == owner[:, b]) for a, b in pairs]
    place = np.argsort(differences, kind="stable").tolist()
    if len(place) > 2 * EFFECTS:
        place = place[:EFFECTS] + place[-EFFECTS:]
    effects = []
    for at in place:
        a, b = pairs[at]
        interval = _interval(final, owner[:, a] == owner[:, b], len(pairs), exact)
        effects.append(PairEffect((splits.class_names[a], splits.class_names[b]), differences[at], interval))
    return tuple(effects)


def _place_effects(splits: ClassSplits, owner: IntArray, final: Array, exact: bool) -> tuple[PlaceEffect, ...]:
    """The effects on final accuracy of each class in the first and in the last task."""
    effects = []
    for code, name in enumerate(splits.class_names):
        first, last = (owner[:, code] == task for task in (0, splits.num_tasks - 1))
        intervals = [_interval(final, chosen, 2 * splits.num_classes, exact) for chosen in (first, last)]
        effects.append(
            PlaceEffect(name, _difference(final, first), intervals[0], _difference(final, last), intervals[1])
        )
    return tuple(effects)


def _difference(values: Array, chosen: Any) -> float:
    """The mean of the chosen values less that of the others; 0 if there are none of either."""
    count = int(np.count_nonzero(chosen))
    if count in (0, len(values)):
        return 0.0
    total = float(values[chosen].sum())
    return total / count - (float(values.sum()) - total) / (len(values) - count)


def _interval(values: Array, chosen: Any, number: int, exact: bool) -> Range:
    """An interval for a difference of means, one of a number of intervals that hold at once.

    Whether a draw is chosen says nothing of the other draws, so that the chosen and the others are two samples of
    independent draws.
    """
    if exact:
        known = _difference(values, chosen)
        return known, known
    level = 1 - (1 - CONFIDENCE) / (2 * number)
    parts = values[chosen], values[~chosen]
    if not all(map(len, parts)):
        return -1.0, 1.0
    (low, high), (below, above) = (bounded_interval(np.ascontiguousarray(part), 0.0, 1.0, level) for part in parts)
    return low - above, high - below
