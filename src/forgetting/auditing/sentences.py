"""The sentences of an audit: the stage between its findings and its page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forgetting.auditing.opening import about_orders, opening_of
from forgetting.auditing.verdict import EFFECT
from forgetting.auditing.words import LOSSES, SLACK, number, percent, task_name, whole_percent
from forgetting.core.numerical import ROUNDING

if TYPE_CHECKING:
    from forgetting.auditing.duplicates import Duplicate
    from forgetting.auditing.ordering_values import Split
    from forgetting.auditing.result import Audit


MOST = 5  # the most names in a sentence


@dataclass(frozen=True)
class Said:
    """The sentences of an audit: the stage between its findings and its page.

    Attributes:
        opening: at most four sentences that open the page.
        sections: the sentences of each section of the page, some of which may be in the opening.

    >>> said = Said(("Shuffle the tasks.",), {"orderings": ("Shuffle the tasks.", "The order matters.")})
    >>> said.recommendation, said.rest("orderings")
    (('Shuffle the tasks.', 'The order matters.'), ['The order matters.'])
    """

    opening: tuple[str, ...]
    sections: Mapping[str, tuple[str, ...]]

    @property
    def recommendation(self) -> tuple[str, ...]:
        """All sentences, those of the opening first, each once."""
        return tuple(dict.fromkeys((*self.opening, *(line for lines in self.sections.values() for line in lines))))

    def rest(self, section: str) -> list[str]:
        """The sentences of a section that do not open the page."""
        return [line for line in self.sections[section] if line not in self.opening]


def say(audit: Audit) -> Said:
    """The sentences of an audit, from its numbers and verdicts.

    >>> import forgetting as fg
    >>> say(fg.audit(fg.families.orthogonal(4))).opening[0]
    'The order matters little: even the worst order there is (one of 24 equal ones) forgets nothing.'
    """
    sections = {
        "orderings": about_orders(audit),
        "randomness": _split(audit),
        "tasks": (*_duplicates(audit), *_outliers(audit)),
        "pairs": _pairs(audit),
        "fit": _fit(audit),
        "guarantees": _bound(audit),
    }
    return Said(opening_of(audit), {name: tuple(lines) for name, lines in sections.items()})


# ------------------------------------------------------------------------------------------------------------- sections


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
        return f"Forgetting is negative here, since tasks help each other, and its fall cannot be divided: {values}"
    if split.little and a - d > ROUNDING * start:
        return (
            f"Forgetting hardly falls, so that there is little to explain: {number(a, start)} in one pass in {where}, "
            f"{number(d, start)} in {split.passes} passes in random orders, {percent(a - d, a)} less."
        )
    if split.randomness is None or split.repetition is None:
        return (
            f"Random order and repetition together do not lower forgetting: {where} forgets {number(a, start)} in "
            f"one pass, random orders {number(d, start)} in {split.passes}."
        )
    if split.randomness < -SLACK and b > a and d > c and c < a and d < b:
        return f"A random order raises forgetting here, and repetition lowers it: {values}"
    if split.repetition < -SLACK and c > a and d > b and b < a and d < c:
        return f"Repetition raises forgetting here, and a random order lowers it: {values}"
    alone = [(a - b) / a, (a - c) / a]
    if not all(-SLACK <= share <= 1 + SLACK for share in (split.randomness, *alone)):
        return f"What a random order does depends on whether tasks are repeated: {values}"
    taken = [percent(min(max(share, 0.0), 1.0), 1.0) for share in alone]
    return (
        f"Forgetting falls from {number(a, start)} (one pass in {where}) to {number(d, start)} ({split.passes} passes "
        f"in random orders): {whole_percent(split.randomness)} of the fall comes from the random order, "
        f"{whole_percent(split.repetition)} from repetition. A random order alone takes away {taken[0]} of "
        f"forgetting, {split.passes} passes in {where} {taken[1]}. If every step of one pass learns a random task "
        f"(with replacement), {number(split.replaced_once, start)} is forgotten."
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
            "that no model fits both. This is one reason why no single model fits all tasks; check the labels."
        )
    if repeats:
        said = [
            f"{task_name(audit, duplicate.task)} repeats {task_name(audit, duplicate.of)} ({duplicate.kind})"
            for duplicate in repeats[:MOST]
        ]
        near = all(duplicate.kind == "nearly identical" for duplicate in repeats)
        yield (
            f"Duplicates: {', '.join(said)}{_more(repeats)}. A task that is there twice is learned twice in each pass"
            f"{' (if what is different is noise)' if near else ''}: leave duplicates out, or say that there are fewer "
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


def _fit(audit: Audit) -> Iterator[str]:
    fit = audit.fit
    if fit.holds or fit.floor is None:
        return
    worst = max(range(audit.num_tasks), key=lambda task: audit.tasks[task].residual or 0.0)
    yield (
        f"The tasks are not jointly realizable: no single model fits all of them. {len(fit.offenders)} of "
        f"{audit.num_tasks} are missed, {task_name(audit, worst)} most (relative residual {fit.residual:.2g}), and no "
        f"model has a mean loss below {number(fit.floor)}, {percent(fit.floor, fit.start)} of the loss before "
        "learning. Guarantees for tasks that one model fits do not apply, and part of what looks like forgetting is "
        "conflict between tasks."
    )
    if fit.floor_with_intercept is not None:
        yield (
            f"With an intercept (intercept=True) the best model has a mean loss of {number(fit.floor_with_intercept)}, "
            f"{percent(fit.floor_with_intercept, fit.start)} of the loss before learning."
        )
    if fit.offers:
        yield (
            f"To study forgetting alone, {', or '.join(offer.words for offer in fit.offers)}; the audit is then of "
            "other tasks."
        )


def _bound(audit: Audit) -> Iterator[str]:
    tight = [row for row in audit.guarantees if row.tightest]
    forgetting = [row for row in tight if row.quantity == "forgetting"]
    if not tight:
        return
    bound = min(forgetting or tight, key=lambda row: row.value)
    what = bound.quantity if bound.quantity == "forgetting" else f"the {bound.quantity}"
    measured = f"the expected value is {number(bound.measured, audit.fit.start)}"
    yield (
        f"The best guarantee: {what} is at most {number(bound.value)} after {bound.k} steps, {bound.ordering} "
        f"({bound.key}); {'this says no more than the trivial bound' if bound.vacuous else measured}."
    )
