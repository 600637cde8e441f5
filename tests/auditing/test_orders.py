"""The search over orders: exact against brute force, local search against exact, planted orders found."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

import forgetting as fg
from forgetting.auditing import search_orders
from forgetting.auditing.opening import _place
from forgetting.auditing.orders import order_value
from forgetting.core.arrangements import count_orders
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.studies import Study


class Random(fg.schemes.Scheme):
    """Learns nothing, and draws random numbers for it."""

    def start(self, problem, w0, rng):
        return rng

    def learn(self, problem, task, w, memory):
        return fg.schemes.Learned(w)


@pytest.mark.parametrize("quantity", ["forgetting", "loss"])
def test_orders_of_tasks_that_are_not_linear_are_valued_by_runs(quantity):
    tasks = fg.families.separable(T=3, d=4, n=3, margin=0.2, seed=1)
    search = search_orders(tasks, quantity)
    runs = {order: fg.run(tasks, fg.orderings.Explicit(order), 3) for order in permutations(range(3))}
    values = {order: (run.forgetting if quantity == "forgetting" else run.losses)[-1] for order, run in runs.items()}
    assert search.exact
    assert search.evaluations == 6
    assert values[search.worst.order] == search.worst.value == max(values.values())
    assert values[search.best.order] == search.best.value == min(values.values())
    local = search_orders(tasks, quantity, exact=False, evaluations=40)
    assert local.worst.value == search.worst.value


def shuffled(tasks, seed):
    places = np.random.default_rng(seed).permutation(tasks.num_tasks)
    pairs = [tasks.task(int(m)) for m in places]
    return fg.RegressionTasks([X for X, _ in pairs], [y for _, y in pairs], names=[str(m) for m in places]), places


def brute_force(tasks, quantity, scheme=None):
    runs = {
        order: fg.run(tasks, fg.orderings.Explicit(order), tasks.num_tasks, scheme=scheme)
        for order in permutations(range(tasks.num_tasks))
    }
    return {order: float((run.losses if quantity == "loss" else run.forgetting)[-1]) for order, run in runs.items()}


@pytest.mark.parametrize("quantity", ["forgetting", "loss"])
@pytest.mark.parametrize("scheme", [None, fg.schemes.Ridge(0.5), fg.schemes.SGD(0.5)], ids=str)
def test_exact_search_is_brute_force(quantity, scheme):
    tasks = fg.families.gaussian(T=5, d=9, rank=2, seed=4)
    values = brute_force(tasks, quantity, scheme)
    found = search_orders(tasks, quantity, scheme=scheme)
    assert found.exact
    assert found.evaluations == 120
    for end, pick in ((found.best, min), (found.worst, max)):
        assert end.value == pytest.approx(pick(values.values()), rel=1e-10)
        assert values[end.order] == pytest.approx(end.value, rel=1e-10)


def test_exact_search_on_tasks_that_are_not_realizable():
    rng = np.random.default_rng(0)
    tasks = fg.RegressionTasks([rng.normal(size=(4, 3)) for _ in range(4)], [rng.normal(size=4) for _ in range(4)])
    for quantity in ("forgetting", "loss"):
        values = brute_force(tasks, quantity)
        found = search_orders(tasks, quantity)
        assert found.worst.value == pytest.approx(max(values.values()))
        assert found.best.value == pytest.approx(min(values.values()))


def test_clones_are_not_permuted_among_themselves():
    tasks = fg.families.repeated(fg.families.gaussian(T=3, d=4, rank=1, seed=1), 2)
    assert count_orders(tasks.geometry.counts) == 90
    found = search_orders(tasks)
    values = brute_force(tasks, "forgetting")
    assert found.exact
    assert found.evaluations == 90
    assert sorted(found.worst.order) == list(range(6))
    assert found.worst.value == pytest.approx(max(values.values()))
    assert found.best.value == pytest.approx(min(values.values()), abs=1e-15)


@pytest.mark.parametrize("seed", range(4))
def test_local_search_finds_what_exact_search_finds(seed):
    tasks = fg.families.gaussian(T=7, d=10, rank=2, seed=seed)
    exact, searched = search_orders(tasks), search_orders(tasks, exact=False, seed=seed)
    assert exact.exact
    assert not searched.exact
    assert searched.best.value == pytest.approx(exact.best.value, rel=1e-9)
    assert searched.worst.value == pytest.approx(exact.worst.value, rel=1e-9)


def test_a_planted_catastrophic_order_is_found():
    planted = fg.families.catastrophic(1.5)
    tasks, _ = shuffled(planted, seed=3)
    bad = fg.run(planted, fg.orderings.Cyclic(), planted.num_tasks).forgetting[-1]
    given = fg.run(tasks, fg.orderings.Cyclic(), tasks.num_tasks).forgetting[-1]
    found = search_orders(tasks)
    assert given < 1e-3 * bad
    assert not found.exact
    assert found.worst.value >= 0.99 * bad
    assert found.best.value <= given


def test_the_same_seed_gives_the_same_search():
    tasks = fg.families.gaussian(T=12, d=20, rank=2, seed=0)
    one, two = (search_orders(tasks, seed=5, evaluations=600) for _ in range(2))
    assert one == two
    assert not one.exact
    assert one.evaluations <= 1200


def test_values_agree_with_runs():
    tasks = fg.families.gaussian(T=11, d=12, rank=2, seed=0)
    found = search_orders(tasks, evaluations=500)
    for end in (found.best, found.worst):
        run = fg.run(tasks, fg.orderings.Explicit(end.order), 11)
        assert run.forgetting[-1] == pytest.approx(end.value, rel=1e-10)
    value = order_value(tasks, "loss", w0=np.ones(12))
    run = fg.run(tasks, fg.orderings.Explicit(range(11)), 11, w0=np.ones(12))
    assert value(np.arange(11)[None])[0] == pytest.approx(run.losses[-1])


def test_starts_are_used_and_checked():
    tasks = fg.families.gaussian(T=12, d=20, rank=2, seed=0)
    order = search_orders(tasks).worst.order
    again = search_orders(tasks, starts=[order], evaluations=15, seed=1)
    assert again.worst.value >= order_value(tasks)(np.array([order]))[0] * (1 - 1e-12)
    with pytest.raises(InvalidInputError, match="each of the 12 tasks once"):
        search_orders(tasks, starts=[[0] * 12], exact=False)


def test_one_task_and_bad_requests():
    one = fg.families.gaussian(T=1, d=3, rank=1, seed=0)
    assert search_orders(one).worst.order == (0,)
    assert search_orders(one, exact=False).worst.order == (0,)
    tasks = fg.families.two_lines(0.5)
    with pytest.raises(InvalidInputError, match="regret"):
        search_orders(tasks, "regret")
    with pytest.raises(NotSupportedError, match="draw no random numbers"):
        search_orders(tasks, scheme=Random())
    with pytest.raises(InvalidInputError, match="too many"):
        search_orders(fg.families.gaussian(T=15, d=20, rank=1, seed=0), exact=True)


def test_restarts_find_no_less_and_do_not_depend_on_processes(tmp_path):
    tasks = fg.families.gaussian(T=11, d=14, rank=2, seed=3)
    options = {"exact": False, "evaluations": 60, "seed": 4}
    one, three = (search_orders(tasks, restarts=restarts, **options) for restarts in (1, 3))
    assert three.best.value <= one.best.value
    assert three.worst.value >= one.worst.value
    assert three.evaluations == 3 * one.evaluations
    store = tmp_path / "orders.db"
    assert search_orders(tasks, restarts=3, jobs=2, store=store, **options) == three
    assert Study.open(store).status.done == 3
    assert search_orders(tasks, restarts=4, store=store, **options).evaluations == 4 * one.evaluations
    assert Study.open(store).status.done == 4  # the first three were not searched again
    other = fg.families.gaussian(T=11, d=14, rank=2, seed=5)
    search_orders(other, restarts=2, store=store, **options)
    assert Study.open(store).status.done == 6


def two_planes(seed):
    """Two pairs of lines in orthogonal planes, turned: only the order within a pair counts, and six orders are tied."""
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((4, 4)))[0]
    angles = (0.0, 0.6, 0.1, 1.1)
    lines = np.zeros((4, 4))
    for m, angle in enumerate(angles):
        lines[m, 2 * (m // 2) : 2 * (m // 2) + 2] = -np.sin(angle), np.cos(angle)
    w = turn.T @ np.array([1.0, 0.2, -0.7, 1.3])
    X = lines @ turn
    return fg.RegressionTasks(list(X[:, None]), list((X @ w)[:, None]))


@pytest.mark.parametrize("seed", range(6))
def test_tied_orders_are_counted_and_the_named_one_does_not_depend_on_rounding(seed):
    search = search_orders(two_planes(seed))
    assert (search.best.tied, search.worst.tied) == (6, 6)
    assert search.worst.order in {
        min(order for order in permutations(range(4)) if goes(order, first, second))
        for first in ((0, 1), (1, 0))
        for second in ((2, 3), (3, 2))
    }
    assert search.worst.order == search_orders(two_planes(99)).worst.order
    assert search.best.order == search_orders(two_planes(99)).best.order
    assert "one of 6 equal ones" in str(search)


def goes(order, first, second):
    return order.index(first[0]) < order.index(first[1]) and order.index(second[0]) < order.index(second[1])


def test_orders_that_all_forget_nothing_are_all_tied():
    turn = np.linalg.qr(np.random.default_rng(2).standard_normal((4, 4)))[0]
    tasks = fg.RegressionTasks(list(turn[:, None]), list((turn @ np.ones(4))[:, None]))
    search = search_orders(tasks)
    assert (search.best.tied, search.worst.tied) == (24, 24)
    assert search.best.order == search.worst.order == (0, 1, 2, 3)


def test_the_audit_and_the_landscape_say_how_many_orders_are_tied():
    tasks = two_planes(0)
    audit = fg.audit(tasks, passes=2)
    text = " ".join(audit.to_text(100).split())
    assert "worst order, forgets most (one of 6 equal ones)" in text
    assert any("the worst order there is (one of 6 equal ones)" in line for line in audit.opening)
    spread = fg.auditing.landscape(tasks).spread
    assert (spread.best.tied, spread.worst.tied, spread.worst.order) == (6, 6, audit.search.worst.order)
    given = fg.audit(tasks, passes=2, order=audit.search.worst.order)
    loss = given.measure("training loss")
    assert (loss.tied, loss.top.tied, loss.bottom.tied) == (6, 6, 6)


def test_a_given_order_that_is_tied_with_the_worst_random_ones_is_not_worse_than_all():
    audit = fg.audit(two_planes(0), passes=2, order=search_orders(two_planes(0)).worst.order)
    measure = audit.measure("training loss")
    assert "is the worst there is, tied with 5 others" in _place(audit, measure, "the given order")
    sampled = replace(audit, tried_exact=False)
    assert "is as bad as the worst of 24 random orders" in _place(sampled, measure, "the given order")


def test_an_order_that_is_refused_names_the_tasks_as_they_were_typed():
    names = ["attic", "hall", "cellar", "roof", "yard", "shed", "porch", "loft"]
    tasks = fg.RegressionTasks([np.eye(8)[[m]] for m in range(8)], [[1.0]] * 8, names=names)
    with pytest.raises(InvalidInputError) as refused:
        fg.audit(tasks, order=["cellar", "attic"])
    assert str(refused.value) == (
        "an order names each of the 8 tasks once, got cellar, attic: "
        "hall, roof, yard, shed, porch and 1 more are missing"
    )
    with pytest.raises(InvalidInputError, match="got 1, 1, 0: 2 is missing and 1 is named more than once"):
        fg.audit(fg.families.orthogonal(3), order=[1, 1, 0])
