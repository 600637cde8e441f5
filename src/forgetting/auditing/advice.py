"""The sentences of the recommendation of an audit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from forgetting._text import one_line

if TYPE_CHECKING:
    from forgetting.auditing.result import Audit, OrderingRow, Split
    from forgetting.auditing.similarity import Duplicate

__all__ = ["recommend", "task_name"]

EFFECT = 3.0  # the order matters if the worst order forgets this many times as much as a random order,
SHARE = 0.01  # and forgets this part of the loss before learning
MOST = 5  # the most names in a sentence
ROUNDING = 1e-13  # values below this part of the loss before learning are shown as 0
SLACK = 0.005  # rounding and simulation may move a share this far outside 0 to 1


def recommend(audit: Audit) -> tuple[str, ...]:
    """Sentences that say what to do, the most important first.

    >>> import forgetting as fg
    >>> fg.audit(fg.families.orthogonal(4)).recommendation[0]
    'The order matters little: even the worst order there is forgets 0, 0 % of the loss before learning.'
    """
    parts = (_fit, _order, _split, _duplicates, _outliers, _pairs, _bound)
    return tuple(line for part in parts for line in part(audit))


def task_name(audit: Audit, task: int) -> str:
    """The task as it is called in a sentence: its name, quoted unless the name is a number."""
    name = one_line(audit.tasks[task].name)
    return f"task {name}" if name.isdigit() else f"task '{name}'"


def _fit(audit: Audit) -> Iterator[str]:
    fit = audit.fit
    if fit.holds:
        return
    worst = max(range(audit.num_tasks), key=lambda task: audit.tasks[task].residual)
    yield (
        f"The tasks are not jointly realizable: no w solves all of them. {len(fit.offenders)} of {audit.num_tasks} are "
        f"missed, {task_name(audit, worst)} most (relative residual {fit.residual:.2g}), and no w has a mean loss "
        f"below {_number(fit.floor)}, {_percent(fit.floor, fit.start)} of the loss before learning. No bound "
        "applies, and part of what looks like forgetting is conflict."
    )
    if fit.offers:
        yield (
            f"To study forgetting alone, {', or '.join(offer.words for offer in fit.offers)}; the audit is then of "
            "other tasks."
        )


def _order(audit: Audit) -> Iterator[str]:
    start = audit.fit.start
    random, given = audit.ordering("random permutation"), audit.ordering("given order").forgetting
    worst, best = audit.search.worst, audit.search.best
    worst_order = "the worst order there is" if audit.search.exact else "the worst order found"
    if audit.num_tasks == 1:
        yield "There is one task, so that there is no order to choose."
        return
    if worst.value <= SHARE * start:
        yield (
            f"The order matters little: even {worst_order} forgets {_number(worst.value, start)}, "
            f"{_percent(worst.value, start)} of the loss before learning."
        )
    elif worst.value < EFFECT * random.forgetting_high:
        much = " little" if worst.value <= 1.25 * best.value else " somewhat" if worst.value <= 2 * best.value else ""
        yield (
            f"The order matters{much}: {worst_order} forgets {_number(worst.value, start)}, the best "
            f"{_number(best.value, start)}, a random one {_number(random.forgetting, start)} on average, and the given "
            f"one {_number(given, start)} ({100 * audit.luck:.0f} % of random orders forget less). The loss before "
            f"learning is {_number(start)}."
        )
        if much != " little" and given >= worst.value * (1 - 1e-9):
            yield f"The given order is {worst_order}. Shuffle the tasks."
    else:
        yield (
            f"The order matters: {worst_order} forgets {_number(worst.value, start)} in one pass, "
            f"{_percent(worst.value, start)} of the loss before learning and {_times(worst.value, random, start)} a "
            f"random one. It is {_listed(audit, worst.order)}."
        )
        bad = given >= SHARE * start and given >= EFFECT * random.forgetting_high
        luck = f"{100 * audit.luck:.0f} % of random orders forget less"
        if bad:
            yield (
                f"The given order is a bad one: it forgets {_number(given, start)}, {_times(given, random, start)} a "
                f"random order, and {luck}. Shuffle the tasks; the low forgetting of a random order is not a "
                "property of these tasks."
            )
        else:
            yield (
                f"The given order is not a bad one: it forgets {_number(given, start)}, and {luck}. Results "
                "hold for this order: a benchmark on these tasks should report more than one."
            )
    least = random.forgetting_low
    if least > ROUNDING * start and least >= SHARE * start and best.value * EFFECT <= least:
        yield (
            f"The best order {'there is' if audit.search.exact else 'found'} forgets {_number(best.value, start)}, a "
            f"random one {_number(random.forgetting, start)}: {_listed(audit, best.order)}."
        )


def _split(audit: Audit) -> Iterator[str]:
    given, worst = audit.splits
    yield _shares(given, audit.fit.start)
    if audit.search.worst.value >= EFFECT * max(given.fixed_once, 0.0) and worst.randomness is not None:
        yield _shares(worst, audit.fit.start)


def _shares(split: Split, start: float) -> str:
    where = "the given order" if split.baseline == "given order" else "the worst order"
    a, b, c, d = split.fixed_once, split.random_once, split.fixed_many, split.random_many
    values = (
        f"{where} forgets {_number(a, start)} once and {_number(c, start)} after {split.passes} passes, a random order "
        f"{_number(b, start)} and {_number(d, start)}."
    )
    if min(a, b, c, d) < -ROUNDING * start:
        return f"Forgetting is negative where other tasks help, so that its fall has no shares: {values}"
    if split.randomness is None or split.repetition is None:
        return (
            f"Randomness and repetition together do not lower forgetting: {where}, once, forgets "
            f"{_number(a, start)}, random orders, {split.passes} passes, {_number(d, start)}."
        )
    if split.randomness < -SLACK and b > a and d > c and c < a and d < b:
        return f"Randomness raises forgetting here, and repetition lowers it: {values}"
    if split.repetition < -SLACK and c > a and d > b and b < a and d < c:
        return f"Repetition raises forgetting here, and randomness lowers it: {values}"
    alone = [(a - b) / a, (a - c) / a]
    if not all(-SLACK <= share <= 1 + SLACK for share in (split.randomness, *alone)):
        return f"What randomness and repetition do depends on each other: {values}"
    taken = [_percent(min(max(share, 0.0), 1.0), 1.0) for share in alone]
    return (
        f"Forgetting falls from {_number(a, start)} ({where}, once) to {_number(d, start)} (random orders, "
        f"{split.passes} passes): {round(100 * split.randomness)} % of that is randomness, "
        f"{round(100 * split.repetition)} % repetition. A random order alone takes away {taken[0]}, {split.passes} "
        f"passes in this order {taken[1]}; as many steps as one pass, drawn with replacement, leave "
        f"{_number(split.replaced_once, start)}."
    )


def _duplicates(audit: Audit) -> Iterator[str]:
    repeats = [duplicate for duplicate in audit.duplicates if not duplicate.contradicts]
    against = [duplicate for duplicate in audit.duplicates if duplicate.contradicts]
    if against:
        said = [
            f"{task_name(audit, duplicate.task)} contradicts {task_name(audit, duplicate.of)}"
            for duplicate in against[:MOST]
        ]
        yield (
            f"Contradictions: {', '.join(said)}{_more(against)}: the inputs are the same and the labels are not, so "
            "that no w solves both. This is one reason why no w solves all tasks; check the labels."
        )
    if repeats:
        said = [
            f"{task_name(audit, duplicate.task)} repeats {task_name(audit, duplicate.of)} ({duplicate.kind})"
            for duplicate in repeats[:MOST]
        ]
        near = all(duplicate.kind == "nearly identical" for duplicate in repeats)
        yield (
            f"Duplicates: {', '.join(said)}{_more(repeats)}. Repeats are repetition in disguise"
            f"{' if what is different is noise' if near else ''}: leave them out, or say that there are fewer "
            f"different tasks ({audit.num_tasks - len(repeats)})."
        )


def _more(duplicates: list[Duplicate]) -> str:
    return f", and {len(duplicates) - MOST} more" if len(duplicates) > MOST else ""


def _outliers(audit: Audit) -> Iterator[str]:
    says = {
        "norm": ("its norm is {} times the typical one", "check its units, or rescale it"),
        "forgotten": ("it is forgotten {} times as much as the typical task", "learn it late, or repeat it"),
        "causes": ("it makes others forget {} times as much as the typical task", "learn it early"),
    }
    for task in dict.fromkeys(outlier.task for outlier in audit.outliers):
        own = [outlier for outlier in audit.outliers if outlier.task == task]
        marks = [
            says[outlier.measure][0].format(f"{outlier.ratio:.3g}" if outlier.typical > 0 else "many")
            for outlier in own
        ]
        measures = {outlier.measure for outlier in own}
        advice = says["norm" if "norm" in measures else own[0].measure][1]
        if measures == {"forgotten", "causes"}:
            advice = "look at its data: neither early nor late is a good place for it"
        yield f"Outlier: {task_name(audit, task)}: {', and '.join(marks)}; {advice}."


def _pairs(audit: Audit) -> Iterator[str]:
    order = sorted(range(audit.num_tasks), key=lambda task: -audit.tasks[task].forgotten)
    top = audit.tasks[order[0]]
    if audit.num_tasks < 2 or top.worst_by is None or top.forgotten < 1e-6 * audit.fit.start:
        return
    total = sum(max(task.forgotten, 0.0) for task in audit.tasks)
    row = audit.influence[order[0]]
    gross = sum(max(value, 0.0) for value in row)
    yield (
        f"Most forgotten in a random pass is {task_name(audit, order[0])} ({_percent(top.forgotten, total)} of all "
        f"forgetting), {_percent(row[top.worst_by], gross)} of the increases while {task_name(audit, top.worst_by)} is "
        "learned."
    )


def _bound(audit: Audit) -> Iterator[str]:
    tight = [row for row in audit.guarantees if row.tightest and row.quantity == "forgetting"]
    if not tight:
        return
    bound = min(tight, key=lambda row: row.value)
    measured = f"the measured value is {_number(bound.measured, audit.fit.start)}"
    yield (
        f"Tightest guarantee: forgetting <= {bound.value:.3g} after k = {bound.k}, {bound.ordering} ({bound.key}); "
        f"{'says no more than the trivial bound' if bound.vacuous else measured}."
    )


def _listed(audit: Audit, order: tuple[int, ...]) -> str:
    names = [one_line(audit.tasks[task].name) for task in order]
    if len(names) > 12:
        names = [*names[:8], "...", *names[-3:]]
    return ", ".join(names)


def _number(value: float, scale: float = 0.0) -> str:
    """The value with three digits; 0 if it is rounding compared with `scale`."""
    return "0" if abs(value) <= ROUNDING * scale else f"{value:.3g}"


def _percent(part: float, total: float) -> str:
    share = 100 * part / total if total > 0 else 0.0
    return f"{round(share)} %" if abs(share) >= 10 or abs(share) < 0.05 else f"{share:.2g} %"


def _times(value: float, other: OrderingRow, start: float) -> str:
    """The ratio of `value` to the forgetting of an ordering, in words; a lower bound if the ordering was simulated."""
    high = other.forgetting_high
    if high <= ROUNDING * start:
        return "infinitely many times as much as"
    ratio = value / high
    if not other.exact:  # a lower bound, rounded down to two digits
        digit = 10.0 ** (math.floor(math.log10(ratio)) - 1)
        ratio = math.floor(ratio / digit) * digit
    short = float(f"{ratio:.2g}")
    return f"{'' if other.exact else 'at least '}{short:{',.0f' if short >= 10 else 'g'}} times as much as"
