"""The sentences that open the pages of an audit, and those about orders, of which the most important ones open it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from forgetting.auditing.verdict import EFFECT, SHARE
from forgetting.auditing.words import capital, number, ordered, percent, shown, times
from forgetting.core.numerical import ROUNDING
from forgetting.core.text import joined

if TYPE_CHECKING:
    from forgetting.auditing.measures import Measure
    from forgetting.auditing.result import Audit


SENTENCES = 4  # that open a page
MOSTLY = 0.9  # a measure speaks against the given order if this part of all orders is better
NO_ORDER = ("one task", "zero labels", "same tasks", "last task")


def opening_of(audit: Audit) -> tuple[str, ...]:
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


def about_orders(audit: Audit) -> Iterator[str]:
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
