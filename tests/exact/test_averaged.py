"""The mean of the iterates: every law against the mean over all orders, in exact fractions."""

from fractions import Fraction

import numpy as np
from problems import ordering_of
from rationals import cyclic, explicit, reshuffled, with_replacement, without_replacement
from test_rationals import SCHEMES, STARTS, TASKS, dot, learn, missed, orders_of

import forgetting as fg
from effort import pairwise

NAMES = ("averaged_loss", "averaged_task_losses")
NEAR = [[[1, 0]], [[1, 2.0**-13]]], [[1], [1 + 2.0**-13]]  # where float64 loses half of its digits


def averaged(Xs, ys, orders, k, scheme, w0):
    """E L_m of the mean of w_0, ..., w_(k-1), for every task m."""
    d = len(Xs[0][0])
    total = [Fraction(0)] * len(Xs)
    for order, chance in orders:
        w = [Fraction(0)] * d if w0 is None else [Fraction(x) for x in w0]
        sums = [Fraction(0)] * d
        for m in order[:k]:
            sums = [a + b for a, b in zip(sums, w, strict=True)]
            w = learn(Xs[m], ys[m], w, scheme)
        mean = [a / k for a in sums]
        rests = [missed(X, y, mean) for X, y in zip(Xs, ys, strict=True)]
        total = [a + chance * dot(r, r) / 2 for a, r in zip(total, rests, strict=True)]
    return total


def compare(Xs, ys, law, ks, scheme, w0):
    tasks = fg.RegressionTasks([np.array(X, float) for X in Xs], [np.array(y, float) for y in ys])
    found = fg.expect(tasks, ordering_of(law), [0, *ks], scheme, w0, quantities=NAMES)
    assert found.exact
    assert np.isnan(found.averaged_loss[0])
    assert np.isnan(found.values[NAMES[1]][0]).all()
    assert "a mean over no steps" in found.notes[-1]
    for i, k in enumerate(ks, start=1):
        each = averaged(Xs, ys, list(orders_of(law, len(Xs), k)), k, scheme, w0)
        for name, values in zip(NAMES, ([sum(each) / len(each)], each), strict=True):
            for value, wanted, doubt in zip(
                np.atleast_1d(found.values[name][i]), values, np.atleast_1d(found.uncertainty[name][i]), strict=True
            ):
                assert abs(Fraction(float(value)) - wanted) <= Fraction(float(doubt)), (name, law, k)
                assert doubt <= 1e-13 * value or value == 0, (name, law, k)


@pairwise(scheme=list(SCHEMES), name=[*TASKS, "near"])
def test_the_mean_of_the_iterates_equals_the_mean_over_all_orders(name, scheme):
    Xs, ys = NEAR if name == "near" else TASKS[name]
    T, d = len(Xs), len(Xs[0][0])
    tasks = fg.RegressionTasks([np.array(X, float) for X in Xs], [np.array(y, float) for y in ys])
    start = STARTS[d]
    cases = [(cyclic(), start, [1, 4]), (explicit([1, 0, 1, 1]), None, [2, 4])]
    if tasks.realizability.holds:
        cases += [
            (with_replacement(), None, [1, 3]),
            (with_replacement([2, 0.5, 1][:T]), start, [2, 4 if T == 2 else 3]),
            (without_replacement(), start, list(range(1, T + 1))),
            (reshuffled(), None, [T, 4]),
        ]
    for law, w0, ks in cases:
        compare(Xs, ys, law, ks, scheme, w0)


def test_many_digits_agree_with_31(monkeypatch):
    from forgetting.expectation.engines import exact as exact_engines

    tasks = fg.families.two_lines(0.3)
    orderings = [fg.orderings.WithReplacement([1, 3]), fg.orderings.Reshuffled(), fg.orderings.Cyclic()]
    for ordering in orderings:
        plain = fg.expect(tasks, ordering, [0, 1, 5, 9], quantities=NAMES)
        with monkeypatch.context() as patch:
            patch.setattr(exact_engines, "ENOUGH", 0.0)
            deep = fg.expect(tasks, ordering, [0, 1, 5, 9], quantities=NAMES)
        assert "some values with" in deep.detail
        assert "some values with" not in plain.detail
        for name in NAMES:
            np.testing.assert_allclose(deep.values[name], plain.values[name], rtol=1e-14)
