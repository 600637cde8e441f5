"""The sentences that open the pages of an audit: what the order does, and what all measures and seeds advise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from forgetting.auditing.verdict import SHARE, agreed
from forgetting.auditing.words import capital, joined, number, ordered, percent, times

if TYPE_CHECKING:
    from forgetting.auditing.measures import Measure
    from forgetting.auditing.orders import FoundOrder
    from forgetting.auditing.result import Audit

__all__ = ["about_orders", "opening"]

SENTENCES = 4  # that open a page
MOST_ORDERS = 0.9  # a measure speaks against the given order if this part of all orders is better
NO_ORDER = ("one task", "zero labels", "same tasks", "last task")


def opening(audit: Audit) -> tuple[str, ...]:
    """At most four sentences: degenerate cases, disagreement of measures or the effect of the order, advice, repeats.

    >>> import forgetting as fg
    >>> len(opening(fg.audit(fg.families.catastrophic(3.0))))
    3
    """
    cases = [case.sentence for case in audit.cases]
    # tasks that leave no order to choose come first; a loss that rises does not hide that the measures disagree
    plain = cases[:1] if audit.cases and audit.cases[0].kind in NO_ORDER else []
    other = cases[len(plain) :]
    parts = {
        "case": plain,
        "conflict": _conflict(audit),
        "first case": other[:1],
        "effect": _effect(audit),
        "given": _given(audit),
        "advice": _advice(audit),
        "seeds": _seeds(audit),
        "more cases": other[1:],
        "fit": _short_fit(audit),
    }
    # what is most important is kept; what is kept stands in the order of reading
    ranks = ["case", "conflict", "first case", "seeds", "advice", "effect", "given", "more cases", "fit"]
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
        for part in (_conflict, _effect, _given, _advice, _seeds):
            yield from part(audit)


def _short_fit(audit: Audit) -> list[str]:
    fit = audit.fit
    if fit.holds or fit.floor is None:
        return []
    more = ""
    if fit.floor_with_intercept is not None:
        more = f"; an intercept (intercept=True) would lower that to {percent(fit.floor_with_intercept, fit.start)}"
    return [
        f"No w solves all tasks: the least mean loss of any w is {number(fit.floor)}, "
        f"{percent(fit.floor, fit.start)} of the loss before learning{more}."
    ]


def _effect(audit: Audit) -> list[str]:
    """How much forgetting depends on the order."""
    start, verdict = audit.fit.start, audit.verdict
    random, given = audit.ordering("random permutation"), audit.ordering("given order").forgetting
    worst, best = audit.search.worst, audit.search.best
    worst_order = _extreme(audit, "worst")
    if audit.num_tasks == 1 or verdict is None:
        return []
    if worst.value <= SHARE * start:
        return [
            f"The order matters little: even {worst_order} forgets {number(worst.value, start)}, "
            f"{percent(worst.value, start)} of the loss before learning."
        ]
    if verdict.effect == "much":
        return [
            f"The order matters: {worst_order} forgets {number(worst.value, start)} in one pass, "
            f"{_of_start(worst.value, start)} and {times(worst.value, random, start)} a "
            f"random one: {ordered(audit, worst.order)}."
        ]
    much = {"little": " little", "somewhat": " somewhat"}.get(verdict.effect, "")
    return [
        f"The order matters{much}: {worst_order} forgets {number(worst.value, start)}, the best "
        f"{number(best.value, start)}, a random one {number(random.forgetting, start)} on average, and the given "
        f"one {number(given, start)} ({100 * audit.luck:.0f} % of random orders forget less); the loss before "
        f"learning is {number(start)}."
    ]


def _given(audit: Audit) -> list[str]:
    """Where the given order stands, if the measures do not contradict each other."""
    verdict, start = audit.verdict, audit.fit.start
    if verdict is None or verdict.conflict:
        return []
    against = [one for one in audit.measures if one.random_against_given == 1 and one.share_better >= MOST_ORDERS]
    others = [one.name for one in audit.measures if one.random_against_given != 1]
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
        f"The given order is not a bad one: it forgets {number(given, start)}, and {luck}; results hold for this "
        "order, so that a benchmark on these tasks should report more than one."
    ]


def _conflict(audit: Audit) -> list[str]:
    """The measures that disagree about the given order."""
    verdict = audit.verdict
    if verdict is None or not verdict.conflict:
        return []
    worse = _places(audit, [measure for measure in audit.measures if measure.random_against_given == 1])
    better = _places(audit, [measure for measure in audit.measures if measure.random_against_given == -1], "it")
    return [f"{capital(worse)}, but {better}: these tasks give no ground to prefer an order."]


def _places(audit: Audit, measures: list[Measure], subject: str = "the given order") -> str:
    return joined(_place(audit, measure, "it" if at else subject) for at, measure in enumerate(measures))


def _place(audit: Audit, measure: Measure, subject: str) -> str:
    """Where the given order stands by a measure, with the numbers."""
    orders = "all orders" if audit.tried_exact else "random orders"
    better, worse = measure.share_better, measure.share_worse
    if measure.random_against_given == 1:
        share = f"worse than {percent(better, 1.0)} of {orders}"
        stands = _end(audit, measure, "worst", "worse", "bad") if worse == 0 else share
    else:
        share = f"better than {percent(worse, 1.0)} of {orders}"
        stands = _end(audit, measure, "best", "better", "good") if better == 0 else share
    numbers = f"{measure.number(measure.given)} against {measure.number(measure.mean)} on average"
    return f"by {measure.name} {subject} is {stands} ({numbers})"


def _end(audit: Audit, measure: Measure, most: str, more: str, plain: str) -> str:
    """That no order is worse, or better, than the given one; orders that are as good are named as ties."""
    if not audit.tried_exact:
        tried = f"{audit.tried:,} random orders"
        return f"as {plain} as the {most} of {tried}" if measure.tied else f"{more} than all {tried}"
    others = measure.tied - 1
    return f"the {most} there is" + (f", tied with {others:,} other{'s' * (others > 1)}" if others > 0 else "")


def _advice(audit: Audit) -> list[str]:
    """What to do about the order, if all measures and all seeds agree; else why nothing is advised."""
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
                else "the low forgetting of a random order is not a property of these tasks"
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


def _may_shuffle(audit: Audit) -> bool:
    """Whether all measures and all seeds say that a random order is better than the given one."""
    return bool(audit.verdicts) and all(verdict.shuffle and not verdict.conflict for verdict in audit.verdicts)


def _may_prefer(audit: Audit) -> bool:
    """Whether all measures and all seeds say that the same order is better than the given and a random one."""
    verdicts = audit.verdicts
    return bool(verdicts) and all(verdict.prefer for verdict in verdicts) and agreed(verdicts, "best") == len(verdicts)


def _seeds(audit: Audit) -> list[str]:
    """How many of the repeats agree."""
    verdicts = audit.verdicts
    total = len(verdicts)
    if total < 2:
        return []
    worst, best = (len({getattr(verdict, name) for verdict in verdicts}) for name in ("worst", "best"))
    matters, bad = (sum(getattr(verdict, name) for verdict in verdicts) for name in ("matters", "bad"))
    draws = f"Over {total} draws of the {audit.drawn} (seeds {verdicts[0].seed} to {verdicts[-1].seed})"
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
    """A value compared with the loss before learning."""
    if value > 3 * start:
        return f"{number(value / start)} times the loss before learning"
    return f"{percent(value, start)} of the loss before learning"


def _extreme(audit: Audit, which: str) -> str:
    found: FoundOrder = getattr(audit.search, which)
    return f"the {which} order {'there is' if audit.search.exact else 'found'}{found.ties}"
