"""The sentences of an audit: those that open its pages, those of its sections, and the words that they share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from forgetting.auditing.findings import called
from forgetting.auditing.verdict import EFFECT, SHARE
from forgetting.core.numerical import ROUNDING
from forgetting.core.text import joined, one_line

if TYPE_CHECKING:
    from forgetting.auditing.duplicates import Duplicate
    from forgetting.auditing.measures import Measure
    from forgetting.auditing.ordering_values import OrderingRow, Split
    from forgetting.auditing.result import Audit


SENTENCES = 4  # that open a page
MOSTLY = 0.9  # a measure speaks against the given order if this part of all orders is better
NO_ORDER = ("one task", "zero labels", "same tasks", "last task")
LOSSES = ("training loss", "forgetting")
MOST = 5  # the most names in a sentence
SLACK = 0.005  # rounding and simulation may move a share this far outside 0 to 1


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
        "orderings": _about_orders(audit),
        "randomness": _split(audit),
        "tasks": (*_duplicates(audit), *_outliers(audit)),
        "pairs": _pairs(audit),
        "fit": _fit(audit),
        "guarantees": _bound(audit),
    }
    return Said(_opening(audit), {name: tuple(lines) for name, lines in sections.items()})


# -------------------------------------------------------------------------------------------------------------- opening


def _opening(audit: Audit) -> tuple[str, ...]:
    """At most four sentences: degenerate cases, disagreement of measures or effect of the order, advice, repeats."""
    cases = [case.sentence for case in audit.cases]
    # tasks that leave no order to choose come first; a loss that rises does not hide that the measures disagree
    plain = cases[:1] if audit.cases and audit.cases[0].kind in NO_ORDER else []
    other = cases[len(plain) :]
    parts = {
        "case": plain,
        "accuracy": _accuracy(audit),
        "conflict": _conflict(audit),
        "first case": other[:1],
        "effect": _effect(audit),
        "given": _given(audit),
        "advice": _advice(audit),
        "head": _head(audit),
        "seeds": _seeds(audit),
        "more cases": other[1:],
        "fit": _short_fit(audit),
    }
    # what is most important is kept; what is kept stands in the order of reading
    ranks = ["case", "accuracy", "conflict", "first case", "seeds", "advice", "effect", "given", "more cases", "fit"]
    ranks.insert(ranks.index("advice" if _keeps_little(audit) else "more cases"), "head")
    if plain and audit.cases[0].kind != "last task":
        ranks = ["case", "fit"]
    if audit.fit.floor_with_intercept is not None and "effect" in ranks:
        ranks = [name for part in ranks for name in (("fit", part) if part == "effect" else (part,))]
    kept: list[str] = []
    for name in dict.fromkeys(ranks):
        kept += parts[name][: SENTENCES - len(kept)]
    return tuple(line for part in parts.values() for line in part if line in kept)


def _about_orders(audit: Audit) -> Iterator[str]:
    """The sentences about orders, which are also in the opening if there is room."""
    yield from (case.sentence for case in audit.cases)
    if audit.num_tasks > 1:
        for part in (_accuracy, _conflict, _effect, _given, _advice, _head, _replay, _seeds):
            yield from part(audit)


def _accuracy(audit: Audit) -> list[str]:
    """The spread of the accuracy over orders, of held-out rows if there are any; empty without classes."""
    known = [measure for measure in audit.measures if measure.is_accuracy]
    if not known or audit.num_tasks == 1:
        return []
    measure = known[-1]  # accuracies of held-out rows follow those of learned ones
    top, bottom = measure.extremes
    orders = f"all {audit.tried:,} orders" if audit.tried_exact else f"{audit.tried:,} random orders"
    values = f"{measure.number(bottom.value)} to {measure.number(top.value)} after one pass"
    little = top.value - bottom.value < SHARE
    given = f"the given one has {measure.number(measure.given)}"
    if not little:
        better, worse = measure.share_better, measure.share_worse
        stands = f"worse than {percent(better, 1.0)}" if better > worse else f"better than {percent(worse, 1.0)}"
        other = "" if better and worse else f" and {'better' if better > worse else 'worse'} than none"
        given = f"{given}, {stands} of them{other}"
    return [
        f"{capital(measure.name)} depends {'little' if little else 'on the order'}{' on the order' * little}: {values} "
        f"over {orders}, {measure.number(measure.mean)} on average; {given}."
    ]


def _short_fit(audit: Audit) -> list[str]:
    fit = audit.fit
    if fit.holds or fit.floor is None:
        return []
    more = ""
    if fit.floor_with_intercept is not None:
        more = f"; an intercept (intercept=True) would lower that to {percent(fit.floor_with_intercept, fit.start)}"
    return [
        f"No single model fits all tasks: the best one has a mean loss of {number(fit.floor)}, "
        f"{percent(fit.floor, fit.start)} of the loss before learning{more}."
    ]


def _effect(audit: Audit) -> list[str]:
    """The sentence that says how much forgetting depends on the order."""
    start, verdict = audit.fit.start, audit.verdict
    random, given = audit.ordering("random permutation"), audit.ordering("given order").forgetting
    worst, best = audit.search.worst, audit.search.best
    worst_order = _extreme(audit, "worst")
    if audit.num_tasks == 1 or verdict is None:
        return []
    if worst.value <= SHARE * start:
        share = f"{number(worst.value)}, {percent(worst.value, start)} of the loss before learning{_meant(audit)}"
        forgotten = "nothing" if number(worst.value, start) == "0" else share
        return [f"The order matters little: even {worst_order} forgets {forgotten}."]
    if verdict.effect == "much":
        return [
            f"The order matters: {worst_order} forgets {number(worst.value, start)} in one pass, "
            f"{_of_start(worst.value, start)}{_meant(audit)} and {times(worst.value, random, start)} a "
            f"random one: {ordered(audit, worst.order)}."
        ]
    much = {"little": " little", "somewhat": " somewhat"}.get(verdict.effect, "")
    return [
        f"The order matters{much}: {worst_order} forgets {number(worst.value, start)}, the best "
        f"{number(best.value, start)}, a random one {number(random.forgetting, start)} on average, and the given "
        f"one {number(given, start)} ({100 * audit.luck:.0f} % of random orders forget less); the loss before "
        f"learning is {number(start)}{_meant(audit)}."
    ]


def _meant(audit: Audit) -> str:
    """The loss that is meant, in parentheses; and whether the other one would count the tasks differently."""
    loss = audit.unit.split(";")[0]
    uneven = "summed over its rows" in loss and len({task.rows for task in audit.tasks}) > 1
    more = ", so that tasks with more rows count more; loss='mean' counts all alike" if uneven else ""
    return f" ({loss}{more})" if loss else ""  # files of earlier versions have none


def _given(audit: Audit) -> list[str]:
    """The sentence on the rank of the given order among all orders; empty if the measures contradict each other."""
    verdict, start = audit.verdict, audit.fit.start
    if verdict is None or verdict.conflict:
        return []
    against = [
        measure for measure in audit.measures if measure.random_against_given == 1 and measure.share_better >= MOSTLY
    ]
    others = [measure.name for measure in audit.measures if measure.random_against_given != 1]
    if against and others and not verdict.bad:
        return [f"{capital(_places(audit, against))}, but not by {joined(others)}, so that no order is advised."]
    if not verdict.matters:
        return []
    given, random = audit.ordering("given order").forgetting, audit.ordering("random permutation")
    luck = f"{100 * audit.luck:.0f} % of random orders forget less"
    if verdict.effect != "much":
        return [f"The given order is {_extreme(audit, 'worst')}."] if verdict.bad else []
    if verdict.bad:
        return [
            f"The given order is a bad one: it forgets {number(given, start)}, {times(given, random, start)} a "
            f"random order, and {luck}."
        ]
    return [
        f"The given order is not a bad one: it forgets {number(given, start)}, and {luck}; other orders forget far "
        "more, so that a benchmark on these tasks should report more than one."
    ]


def _conflict(audit: Audit) -> list[str]:
    """The sentence that names the measures which disagree about the given order."""
    verdict = audit.verdict
    if verdict is None or not verdict.conflict:
        return []
    worse = _places(audit, [measure for measure in audit.measures if measure.random_against_given == 1])
    better = _places(audit, [measure for measure in audit.measures if measure.random_against_given == -1], "it")
    return [f"{capital(worse)}, but {better}: the measures disagree, and no order is advised."]


def _places(audit: Audit, measures: list[Measure], subject: str = "the given order") -> str:
    return joined(_place(audit, measure, "it" if at else subject) for at, measure in enumerate(measures))


def _place(audit: Audit, measure: Measure, subject: str) -> str:
    """The rank of the given order by a measure, with the numbers."""
    orders = "all orders" if audit.tried_exact else "random orders"
    better, worse = measure.share_better, measure.share_worse
    if measure.random_against_given == 1:
        share = f"worse than {percent(better, 1.0)} of {orders}"
        stands = _end(audit, measure, "worst", "worse", "bad") if worse == 0 else share
    else:
        share = f"better than {percent(worse, 1.0)} of {orders}"
        stands = _end(audit, measure, "best", "better", "good") if better == 0 else share
    numbers = f"{measure.number(measure.given)}, a random order {measure.number(measure.mean)} on average"
    return f"by {measure.name} {subject} is {stands} ({numbers})"


def _end(audit: Audit, measure: Measure, most: str, more: str, plain: str) -> str:
    """Words for a given order that is the best or the worst of all; orders that are as good are named as ties."""
    if not audit.tried_exact:
        tried = f"{audit.tried:,} random orders"
        return f"as {plain} as the {most} of {tried}" if measure.tied else f"{more} than all {tried}"
    others = measure.tied - 1
    return f"the {most} there is" + (f", tied with {others:,} other{'s' * (others > 1)}" if others > 0 else "")


def _advice(audit: Audit) -> list[str]:
    """The advice on the order, if all measures and all seeds agree; else the reason why nothing is advised."""
    verdict = audit.verdict
    if verdict is None or verdict.conflict or not (verdict.bad or verdict.best_is_far):
        return []
    lines = []
    names = joined([measure.name for measure in audit.measures])
    if verdict.bad:
        undecided = [measure.name for measure in audit.measures if measure.random_against_given != 1]
        if undecided:
            lines.append(f"Nothing is advised, because a random order is no better by {joined(undecided)}.")
        elif _may_shuffle(audit):
            why = (
                f"by {names} a random order is better on average than the given one"
                if len(audit.measures) > 1
                else "a random order forgets far less than the given one"
            )
            lines.append(f"Shuffle the tasks: {why}.")
    if verdict.best_is_far:
        best, random = audit.search.best, audit.ordering("random permutation")
        values = (
            f"{capital(_extreme(audit, 'best'))} forgets "
            f"{number(best.value, audit.fit.start)}, a random one {number(random.forgetting, audit.fit.start)}"
        )
        given = [measure.name for measure in audit.measures if measure.best_against_given == -1]
        against = [measure.name for measure in audit.measures if measure.best_against_random == -1]
        if given or against:
            than = "the given one" if given else "a random one"
            lines.append(f"{values}, but by {joined(given or against)} it is worse than {than}.")
        elif _may_prefer(audit):
            also = f"; it is better than the given and a random one by {names}" if len(audit.measures) > 1 else ""
            lines.append(f"{values}: {ordered(audit, best.order)}{also}.")
        elif not verdict.prefer:  # the best order is the given one, or a measure has no preference
            also = "; the given order forgets as little" if audit.measures[0].best_against_given == 0 else ""
            lines.append(f"{values}: {ordered(audit, best.order)}{also}.")
    return lines


def _head(audit: Audit) -> list[str]:
    """What a head that learns all rows reaches, if that is better than one task after another in a random order."""
    known = [measure for measure in audit.measures if audit.all_rows is not None and audit.all_rows.of(measure.name)]
    if audit.all_rows is None or not known:
        return []
    measure = next((measure for measure in reversed(known) if measure.is_accuracy), known[-1])
    value = audit.all_rows.of(measure.name)
    rounding = not measure.is_accuracy and measure.mean <= ROUNDING * audit.fit.start
    if value is None or rounding or not _far_better(measure, value.head):
        return []
    name = "IncrementalRidgeClassifier" if measure.is_accuracy else "IncrementalRidge"
    head, given, random, joint = shown(audit, measure, (value.head, measure.given, measure.mean, value.joint))
    return [
        f"If nothing may be forgotten: one task after another has a {measure.name} of {given} in the given order and "
        f"{random} in random ones; a head on the same rows that forgets none (fg.{name}) has {head} in any order, and "
        f"least squares on all rows at once {joint}."
    ]


def _replay(audit: Audit) -> list[str]:
    """Whether replay of a few rows of each task would help, by the measure that was asked for."""
    found = audit.replay
    if found is None or not audit.measures:
        return []
    measure = next((one for one in reversed(audit.measures) if one.is_accuracy), audit.measures[-1])
    at, rows = found.measures.index(measure.name), found.rows[1:]
    effects = [found.effect(measure.name, row) for row in rows]
    if all(row.values[at] <= ROUNDING * audit.fit.start for row in found.rows) and not measure.is_accuracy:
        return []
    none, *values = shown(audit, measure, [row.values[at] for row in found.rows])
    kept = [f"{row.memory} row{'s' * (row.memory > 1)} a task" for row in rows]
    told = joined([f"{value} with {words}" for value, words in zip(values, kept, strict=True)])
    if not any(effects):
        most = f"up to {kept[-1]}" if len(kept) > 1 else kept[-1]
        return [f"Replay of {most} would make no difference to the {measure.name} of a random order: {none}."]
    helps = (
        "would help"
        if min(effects) >= 0
        else "would hurt"
        if max(effects) <= 0
        else "would help or hurt, by their number"
    )
    return [
        f"Replay of rows of earlier tasks {helps}: a random order has a {measure.name} of {none} without, {told} "
        "(fg.schemes.Replay)."
    ]


def _keeps_little(audit: Audit) -> bool:
    """Whether one task after another keeps less than half of the accuracy that a head on all rows reaches."""
    values = [(measure, audit.all_rows and audit.all_rows.of(measure.name)) for measure in audit.measures]
    return any(measure.is_accuracy and value and measure.mean < value.head / 2 for measure, value in values)


def _far_better(measure: Measure, value: float) -> bool:
    """Whether a value is better than that of a random order by as much as makes a difference."""
    gain = value - measure.mean if measure.higher else measure.mean - value
    return gain >= (SHARE if measure.is_accuracy else (1 - 1 / EFFECT) * abs(measure.mean)) and gain > measure.slack


def _may_shuffle(audit: Audit) -> bool:
    """Whether all measures and all seeds say that a random order is better than the given one."""
    return bool(audit.verdicts) and all(verdict.shuffle and not verdict.conflict for verdict in audit.verdicts)


def _may_prefer(audit: Audit) -> bool:
    """Whether all measures and all seeds say that the same order is better than the given and a random one."""
    return all(verdict.prefer for verdict in audit.verdicts) and len({verdict.best for verdict in audit.verdicts}) == 1


def _seeds(audit: Audit) -> list[str]:
    """The sentence that says how many of the repeats agree."""
    verdicts = audit.verdicts
    total = len(verdicts)
    if total < 2:
        return []
    worst, best = (len({getattr(verdict, name) for verdict in verdicts}) for name in ("worst", "best"))
    matters, bad = (sum(getattr(verdict, name) for verdict in verdicts) for name in ("matters", "bad"))
    draws = f"Over {total} draws of the {audit.drawn} (seeds {verdicts[0].seed} to {verdicts[-1].seed}),"
    if worst == best == 1 and matters in (0, total) and bad in (0, total):
        return [
            f"{draws} all agree on the worst order, on the best order, that the order "
            f"{'matters' if matters else 'matters little'}, and that the given order is {'' if bad else 'not '}a bad "
            "one."
        ]
    withheld = any(verdict.shuffle or verdict.prefer for verdict in verdicts)
    consequence = ", so that no order is advised" if withheld and not _may_shuffle(audit) else ""
    return [
        f"{draws} there are {_different(worst, 'worst')} and {_different(best, 'best')}, the order matters in "
        f"{matters} of {total}, and the given order is a bad one in {bad} of {total}{consequence}."
    ]


def _different(count: int, which: str) -> str:
    return f"{count} different {which} orders" if count > 1 else f"one {which} order"


def _of_start(value: float, start: float) -> str:
    """A value as a part or a multiple of the loss before learning, in words."""
    if value > 3 * start:
        return f"{number(value / start)} times the loss before learning"
    return f"{percent(value, start)} of the loss before learning"


def _extreme(audit: Audit, which: Literal["best", "worst"]) -> str:
    extreme = audit.search.best if which == "best" else audit.search.worst
    return f"the {which} order {'there is' if audit.search.exact else 'found'}{extreme.ties}"


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
        f"in random orders): {_whole_percent(split.randomness)} of the fall comes from the random order, "
        f"{_whole_percent(split.repetition)} from repetition. A random order alone takes away {taken[0]} of "
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


# ---------------------------------------------------------------------------------------------------------------- words


def task_name(audit: Audit, task: int) -> str:
    """The name of a task in a sentence."""
    return called(audit.tasks[task].name)


def listed(audit: Audit, order: tuple[int, ...]) -> str:
    """The names of the tasks in this order; of many tasks the first and the last."""
    names = [one_line(audit.tasks[task].name) for task in order]
    if len(names) > 12:
        names = [*names[:8], "...", *names[-3:]]
    return ", ".join(names)


def ordered(audit: Audit, order: tuple[int, ...]) -> str:
    """The order in words: its tasks, or the last one alone where only that matters."""
    if any(case.kind == "last task" for case in audit.cases):
        return f"any order that ends with {task_name(audit, order[-1])}"
    return listed(audit, order)


def capital(words: str) -> str:
    """The words with a capital letter first."""
    return words[:1].upper() + words[1:]


def number(value: float, scale: float = 0.0) -> str:
    """The value with three digits; 0 if it is rounding compared with `scale`.

    >>> number(0.012345), number(123456.0), number(1e-20, 1.0)
    ('0.0123', '123,000', '0')
    """
    if abs(value) <= ROUNDING * scale:
        return "0"
    short = float(f"{value:.3g}")
    return f"{short:,.0f}" if 1e3 <= abs(short) < 1e9 else f"{value:.3g}"


def _whole_percent(share: float) -> str:
    """A share in whole per cent, also of a share in a damaged file that is too large to be rounded.

    >>> _whole_percent(0.255), _whole_percent(-0.001), _whole_percent(1e308)
    ('26 %', '0 %', 'inf %')
    """
    value = 100 * share
    return f"{round(value) if math.isfinite(value) else value} %"


def shown(audit: Audit, measure: Measure, values: Iterable[float]) -> list[str]:
    """Values of a measure in words; of losses 0 for what is rounding compared with the loss before learning."""
    floor = 0.0 if measure.is_accuracy else ROUNDING * audit.fit.start
    return [measure.number(value if abs(value) > floor else 0.0) for value in values]


def percent(part: float, total: float) -> str:
    """A part of a total in per cent.

    >>> percent(1, 3), percent(1, 300), percent(0, 0)
    ('33 %', '0.33 %', '0 %')
    """
    share = 100 * part / total if total > 0 else 0.0
    if not math.isfinite(share):
        return f"{share} %"
    return f"{round(share)} %" if abs(share) >= 10 or abs(share) < 0.05 else f"{share:.2g} %"


def rate(share: float) -> str:
    """An accuracy in per cent.

    >>> rate(0.19865)
    '19.9 %'
    """
    return f"{100 * share:.1f} %"


def times(value: float, other: OrderingRow, start: float) -> str:
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
