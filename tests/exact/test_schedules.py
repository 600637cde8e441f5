"""Schedules and decay: every law against the mean over all orders, in exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from problems import ordering_of
from rationals import cyclic, reshuffled, with_replacement, without_replacement
from test_rationals import dot, learn, missed, nearest, orders_of

import forgetting as fg
from forgetting.schemes import SGD, Decay, FiniteSteps, Kaczmarz, Ridge, Scheduled

GATES = (1.0, 0.5, 0.0, 0.25)
STEPS = [Kaczmarz(), SGD(0.75), FiniteSteps(2, 0.0625), Ridge(1.0), SGD(0.125, objective="loss")]
MADE = {  # the scheme, and its plain scheme and its factor of w at step t
    "ridge": (Scheduled(lambda t: Ridge(0.5 * t)), lambda t: (Ridge(0.5 * t), 1)),
    "list": (Scheduled(STEPS), lambda t: (STEPS[t - 1], 1)),
    "decay": (Decay(0.75, Kaczmarz()), lambda t: (Kaczmarz(), 0.75)),
    "gate": (Scheduled(lambda t: Decay(GATES[t % 4], SGD(0.5))), lambda t: (SGD(0.5), GATES[t % 4])),
    "both": (Decay(0.5, Scheduled(lambda t: Ridge(2.0**-t))), lambda t: (Ridge(2.0**-t), 0.5)),
}
TASKS = {
    "realizable": ([[[1, 2, 0]], [[3, -1, 0], [1, 1, 0]]], [[5], [1, 3]]),
    "noisy": ([[[1, 2]], [[1, 2]], [[0.5, -1]]], [[5], [1], [0.25]]),
    "two outputs": ([[[1, 2]], [[3, -1], [1, 0]]], [[[5, 1]], [[1, 2], [3, -1]]]),
}
STARTS = {"realizable": [1.5, -2.0, 1.0], "noisy": [1.5, -2.0], "two outputs": [[1.5, 0.0], [-2.0, 1.0]]}
LAWS = {
    "with replacement": (with_replacement([2, 0.5, 1]), [1, 3], "moments"),
    "without replacement": (without_replacement(), [1, 2], "subsets"),
    "reshuffled": (reshuffled(), [2, 5], "subsets"),
    "cyclic": (cyclic(), [2, 5], "deterministic"),
}
NAMES = ("loss", "forgetting", "regret", "seen_loss", "averaged_loss", "error")


def enumerated(Xs, ys, orders, k, steps, w0):
    """Every quantity after k steps of one output, as the mean over (order, chance)."""
    T, start = len(Xs), [Fraction(x) for x in w0]
    star = nearest([row for rows in Xs for row in rows], [b for label in ys for b in label], start)
    total = dict.fromkeys(NAMES, Fraction(0))

    def losses(w):
        return [dot(r, r) / 2 for r in (missed(X, y, w) for X, y in zip(Xs, ys, strict=True))]

    for order, chance in orders:
        w, before, after, sums = start, [], [], [Fraction(0)] * len(start)
        for t, m in enumerate(order[:k], 1):
            scheme, keep = steps(t)
            sums = [a + b for a, b in zip(sums, w, strict=True)]
            before.append(losses(w)[m])
            w = learn(Xs[m], ys[m], [Fraction(keep) * x for x in w], scheme)
            after.append(losses(w)[m])
        now, seen = losses(w), sum(losses(w)[m] for m in order[:k])
        gap = [a - b for a, b in zip(w, star, strict=True)]
        found = {
            "loss": sum(now) / T,
            "forgetting": (seen - sum(after)) / k,
            "regret": sum(before) / k,
            "seen_loss": seen / k,
            "averaged_loss": sum(losses([x / k for x in sums])) / T,
            "error": dot(gap, gap),
        }
        total = {name: total[name] + chance * found[name] for name in NAMES}
    return total


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("kind", TASKS)
def test_every_quantity_equals_the_mean_over_all_orders(kind, made, law):
    (Xs, ys), start, (scheme, steps), (order, ks, method) = TASKS[kind], STARTS[kind], MADE[made], LAWS[law]
    tasks = fg.RegressionTasks([np.array(X, float) for X in Xs], [np.array(y, float) for y in ys])
    if order.values is not None:
        order = with_replacement(order.values[: len(Xs)])
    names = NAMES if kind == "realizable" else NAMES[:-1]
    question = tasks, ordering_of(order), ks, scheme
    found = fg.expect(*question, start, quantities=names)
    listed = fg.expect(*question, start, quantities=names, method="listing")
    assert found.method == method
    columns = [0, 1] if kind == "two outputs" else [None]
    for i, k in enumerate(ks):
        each = [
            enumerated(
                Xs,
                ys if c is None else [[row[c] for row in y] for y in ys],
                list(orders_of(order, len(Xs), k)),
                k,
                steps,
                start if c is None else [row[c] for row in start],
            )
            for c in columns
        ]
        for name in names:
            wanted = sum(values[name] for values in each)
            for result in (found, listed):
                off = abs(Fraction(float(result.values[name][i])) - wanted)
                assert off <= Fraction(float(result.uncertainty[name][i])), (result.method, name, k)
            assert found.uncertainty[name][i] <= 1e-13 * max(1.0, float(wanted)), (name, k)
