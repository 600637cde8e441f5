"""The sentences of an audit: those that open its pages, then those of its sections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from forgetting.auditing.opening import about_orders, opening
from forgetting.auditing.verdict import EFFECT, ROUNDING
from forgetting.auditing.words import number, percent, task_name

if TYPE_CHECKING:
    from forgetting.auditing.result import Audit, Split
    from forgetting.auditing.similarity import Duplicate

__all__ = ["SECTIONS", "recommend"]

LOSSES = ("training loss", "forgetting")
MOST = 5  # the most names in a sentence
SLACK = 0.005  # rounding and simulation may move a share this far outside 0 to 1


def recommend(audit: Audit) -> tuple[str, ...]:
    """All sentences: those that open the pages, then those of the sections.

    >>> import forgetting as fg
    >>> fg.audit(fg.families.orthogonal(4)).recommendation[0]
    'The order matters little: even the worst order there is (one of 24 tied orders) forgets 0, 0 % of the loss ...'
    """
    first = opening(audit)
    rest = (line for part in SECTIONS.values() for line in part(audit))
    return tuple(dict.fromkeys((*first, *rest)))


def _fit(audit: Audit) -> Iterator[str]:
    fit = audit.fit
    if fit.holds or fit.floor is None:
        return
    worst = max(range(audit.num_tasks), key=lambda task: audit.tasks[task].residual or 0.0)
    yield (
        f"The tasks are not jointly realizable: no w solves all of them. {len(fit.offenders)} of {audit.num_tasks} are "
        f"missed, {task_name(audit, worst)} most (relative residual {fit.residual:.2g}), and no w has a mean loss "
        f"below {number(fit.floor)}, {percent(fit.floor, fit.start)} of the loss before learning. Bounds "
        "for tasks that some w solves do not apply, and part of what looks like forgetting is conflict."
    )
    if fit.floor_with_intercept is not None:
        yield (
            f"With an intercept (intercept=True) the least mean loss is {number(fit.floor_with_intercept)}, "
            f"{percent(fit.floor_with_intercept, fit.start)} of the loss before learning."
        )
    if fit.offers:
        yield (
            f"To study forgetting alone, {', or '.join(offer.words for offer in fit.offers)}; the audit is then of "
            "other tasks."
        )


def _split(audit: Audit) -> Iterator[str]:
    for place, split in enumerate(audit.splits):
        told = audit.search.worst.value >= EFFECT * max(audit.splits[0].fixed_once, 0.0)
        if place == 0 or (told and split.randomness is not None):  # the worst order, if it is far worse
            yield _shares(split, audit.fit.start)


def _shares(split: Split, start: float) -> str:
    where = "the given order" if split.baseline == "given order" else "the worst order"
    a, b, c, d = split.fixed_once, split.random_once, split.fixed_many, split.random_many
    values = (
        f"{where} forgets {number(a, start)} once and {number(c, start)} after {split.passes} passes, a random order "
        f"{number(b, start)} and {number(d, start)}."
    )
    if min(a, b, c, d) < -ROUNDING * start:
        return f"Forgetting is negative where other tasks help, so that its fall has no shares: {values}"
    if split.randomness is None or split.repetition is None:
        return (
            f"Randomness and repetition together do not lower forgetting: {where}, once, forgets "
            f"{number(a, start)}, random orders, {split.passes} passes, {number(d, start)}."
        )
    if split.randomness < -SLACK and b > a and d > c and c < a and d < b:
        return f"Randomness raises forgetting here, and repetition lowers it: {values}"
    if split.repetition < -SLACK and c > a and d > b and b < a and d < c:
        return f"Repetition raises forgetting here, and randomness lowers it: {values}"
    alone = [(a - b) / a, (a - c) / a]
    if not all(-SLACK <= share <= 1 + SLACK for share in (split.randomness, *alone)):
        return f"What randomness and repetition do depends on each other: {values}"
    taken = [percent(min(max(share, 0.0), 1.0), 1.0) for share in alone]
    return (
        f"Forgetting falls from {number(a, start)} ({where}, once) to {number(d, start)} (random orders, "
        f"{split.passes} passes): {round(100 * split.randomness)} % of that is randomness, "
        f"{round(100 * split.repetition)} % repetition. A random order alone takes away {taken[0]}, {split.passes} "
        f"passes in this order {taken[1]}; as many steps as one pass, drawn with replacement, leave "
        f"{number(split.replaced_once, start)}."
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
        # where the task should stand was seen by its loss alone, and other measures may disagree
        silent = (
            len(measures) == 1
            and "norm" not in measures
            and any(measure.name not in LOSSES for measure in audit.measures)
        )
        yield f"Outlier: {task_name(audit, task)}: {', and '.join(marks)}{'' if silent else f'; {advice}'}."


def _pairs(audit: Audit) -> Iterator[str]:
    order = sorted(range(audit.num_tasks), key=lambda task: -audit.tasks[task].forgotten)
    top = audit.tasks[order[0]]
    if audit.num_tasks < 2 or top.worst_by is None or top.forgotten < 1e-6 * audit.fit.start:
        return
    total = sum(max(task.forgotten, 0.0) for task in audit.tasks)
    row = audit.influence[order[0]]
    gross = sum(max(value, 0.0) for value in row)
    yield (
        f"Most forgotten in a random pass is {task_name(audit, order[0])} ({percent(top.forgotten, total)} of all "
        f"forgetting); {percent(row[top.worst_by], gross)} of the increases of its loss happen while "
        f"{task_name(audit, top.worst_by)} is learned."
    )


def _bound(audit: Audit) -> Iterator[str]:
    tight = [row for row in audit.guarantees if row.tightest]
    forgetting = [row for row in tight if row.quantity == "forgetting"]
    if not tight:
        return
    bound = min(forgetting or tight, key=lambda row: row.value)
    measured = f"the measured value is {number(bound.measured, audit.fit.start)}"
    yield (
        f"Tightest guarantee: {bound.quantity} <= {number(bound.value)} after k = {bound.k} steps, {bound.ordering} "
        f"({bound.key}); {'this is no less than the trivial bound' if bound.vacuous else measured}."
    )


#: the sentences of each section of the page
SECTIONS = {
    "orderings": about_orders,
    "randomness": _split,
    "tasks": lambda audit: (*_duplicates(audit), *_outliers(audit)),
    "pairs": _pairs,
    "fit": _fit,
    "guarantees": _bound,
}
