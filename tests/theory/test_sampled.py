"""Statements about problems too large to average over exactly: both sides are simulated, with intervals."""

from dataclasses import replace

import numpy as np
import pytest

import forgetting as fg
from effort import rounds
from forgetting.claims import Instance, get
from forgetting.expectation import engines
from forgetting.expectation.engines.base import Choice
from forgetting.theory import expectations
from forgetting.theory.expectations import RUNS, losses_after, simulate, width
from forgetting.theory.paper import stability

WITHOUT = fg.orderings.WithoutReplacement()
SIMULATED = (f"{RUNS} simulated runs", f"{RUNS} random permutations")
SEEN_OR_NEXT = [
    ("lem:ratio_avg_last", "without replacement"),
    ("lem:in_to_all_sample", "next task, without replacement"),
    ("prop:loss_to_forgetting", "regression"),
    ("lem:wor_last_before_stab", "average"),
    ("lem:wor_last_before_stab", "distance"),
    ("thm:wor_sgd_last_iterate_main", "general"),
    ("thm:wor_sgd_last_iterate_main", "eta = 1/beta"),
    ("thm:wor_sgd_last_iterate_main", "corrected"),
    ("lem:wor_generalization", "eta beta <= 1"),
    ("lem:wor_generalization", "corrected"),
    ("lem:permutation_equiv", None),
    ("lem:stab_gen_wor", None),
]


def without_enumeration(monkeypatch):
    for module in (expectations, stability):
        monkeypatch.setattr(module, "MOST_STATES", 0)
    monkeypatch.setattr(expectations, "MOST_SECONDS", 0.0)


@pytest.mark.parametrize(("label", "part"), SEEN_OR_NEXT)
def test_simulated_sides_agree_with_the_exact_ones(label, part, monkeypatch):
    claim = get(label, part)
    case = Instance(fg.families.gaussian(5, 6, 2, seed=3), WITHOUT, 3, extras={"i": 1, "t": 4})
    exactly = claim.check(case)
    without_enumeration(monkeypatch)
    simulated = claim.check(case)
    assert simulated.how.startswith(SIMULATED)
    assert not exactly.how.startswith(SIMULATED)
    assert simulated.lhs == pytest.approx(exactly.lhs, abs=simulated.doubt)
    assert simulated.rhs == pytest.approx(exactly.rhs, abs=simulated.doubt)
    assert 0 < simulated.doubt < 0.1 * max(simulated.scale, simulated.rhs)
    assert "give or take" in str(simulated)
    assert "give or take" not in str(exactly)


@pytest.mark.parametrize("order", [WITHOUT, fg.orderings.WithReplacement([0.2, 0.3, 0.5])])
@pytest.mark.parametrize("k", [2, 3])
def test_means_over_orders_of_affine_sets_are_those_of_the_engines(order, k, monkeypatch):
    """Where there are too many orders to go through, the engines are asked."""
    case = Instance(fg.ConvexSets.from_affine(fg.families.gaussian(3, 4, 2, seed=5)), order, k, w0=np.ones(4))
    one_by_one = expectations.over_orders(case)
    monkeypatch.setattr(expectations, "MOST_STATES", 0)
    by_engines = expectations.over_orders(case)
    assert (one_by_one.how[:4], by_engines.how) == ("all ", "subsets" if order is WITHOUT else "moments")
    assert by_engines.loss[0] == pytest.approx(one_by_one.loss[0], rel=1e-9)
    assert by_engines.seen[0] == pytest.approx(one_by_one.seen[0], rel=1e-9)
    if order is WITHOUT:  # of the tasks that are not learned yet
        assert by_engines.following[0] == pytest.approx(one_by_one.following[0], rel=1e-9)


@pytest.mark.parametrize(("label", "part"), SEEN_OR_NEXT)
def test_large_problems_are_checked_and_a_false_statement_about_them_is_seen(label, part):
    claim = get(label, part)
    case = Instance(fg.families.gaussian(30, 40, 3, seed=1), WITHOUT, 10, extras={"i": 2, "t": 25})
    verdict = claim.check(case)
    assert verdict.holds
    assert verdict.how.startswith(SIMULATED)

    assert verdict.doubt < 0.2 * max(verdict.rhs, verdict.scale)  # narrow beside what is claimed

    def broken(instance):
        sides = claim.sides(instance)
        return replace(sides, rhs=sides.rhs + 0.02 * sides.scale if claim.kind == "equality" else -0.2 * sides.rhs)

    assert not replace(claim, sides=broken).check(case).holds


def test_what_simulation_leaves_open_is_not_called_decided():
    tasks = fg.families.repeated(fg.families.two_lines(0.5), 2500)
    verdict = get("lem:wor_generalization", "corrected").check(Instance(tasks, WITHOUT, 2500))
    assert verdict.lhs + verdict.doubt > verdict.rhs > verdict.lhs  # both are next to nothing
    assert verdict.holds
    assert not verdict.decided
    assert str(verdict).startswith("undecided: ")
    clear = get("lem:wor_generalization", "corrected").check(
        Instance(fg.families.gaussian(30, 40, 3, seed=1), WITHOUT, 10)
    )
    assert clear.decided
    assert str(clear).startswith("holds: ")


@pytest.mark.parametrize(
    ("tasks", "k", "how"),
    [
        (fg.families.two_lines(0.5), 1, "listing"),
        (fg.families.gaussian(12, 14, 1, seed=0), 5, "simulated runs"),
    ],
)
def test_schemes_that_are_not_linear_are_listed_where_orders_are_few_and_simulated_elsewhere(
    monkeypatch, tasks, k, how
):
    monkeypatch.setattr(expectations, "FEWER_RUNS", 256)
    case = Instance(tasks, WITHOUT, k, scheme=fg.schemes.GradientDescent())
    exactly = replace(case, scheme=None)
    for label, part in (("lem:in_to_all_sample", "next task, without replacement"), ("prop:loss_to_forgetting", None)):
        one, other = get(label, part).check(case), get(label, part).check(exactly)
        assert how in one.how
        assert one.holds
        assert one.rhs == pytest.approx(other.rhs, abs=max(one.doubt, 1e-9))


def test_long_passes_are_simulated_in_a_time_that_one_waits_for():
    T = rounds(500, 1500)
    tasks = fg.families.gaussian(T, 5, 1, seed=0)
    for k in (1, T - 1):
        for label, part in (("lem:wor_generalization", "corrected"), ("lem:stab_gen_wor", None)):
            assert get(label, part).check(Instance(tasks, WITHOUT, k)).holds


def test_a_whole_pass_over_many_tasks_has_no_next_one():
    case = Instance(fg.families.gaussian(30, 20, 3, seed=1), WITHOUT, 30)
    for label, part in (("lem:wor_generalization", "T = n"), ("prop:loss_to_forgetting", "regression")):
        verdict = get(label, part).check(case)
        assert verdict.holds
        assert np.isfinite([verdict.lhs, verdict.rhs]).all()
    assert simulate(case, 30).following[0] == 0


def test_the_next_loss_of_independent_draws_is_simulated_where_moments_do_not_fit(monkeypatch):
    case = Instance(fg.families.gaussian(5, 6, 2, seed=3), fg.orderings.WithReplacement(range(1, 6)), 4)
    exactly = expectations.Numbers(case)
    expected = exactly.next_loss(4), exactly.in_sample(4)
    monkeypatch.setattr(expectations, "choose", lambda request: Choice(engines.get("monte-carlo"), (), request))
    numbers = expectations.Numbers(case)
    following, seen = numbers.next_loss(4), numbers.in_sample(4)
    assert numbers.how == SIMULATED[0]
    assert (following, seen) == pytest.approx(expected, abs=numbers.doubt)
    assert numbers.doubt < 0.3 * sum(expected)


@pytest.mark.parametrize("k", [2, 5])
def test_means_over_simulated_projections_agree_with_those_over_all_orders(k, monkeypatch):
    rng = np.random.default_rng(0)
    balls = fg.ConvexSets([fg.sets.Ball(rng.standard_normal(3), 3.0) for _ in range(5)])
    case = Instance(balls, WITHOUT, k, w0=np.full(3, 4.0))
    claims = [get("prop:loss_to_forgetting", "POCS"), get("thm:pocs-rate", "without replacement")]
    exactly = [claim.check(case) for claim in claims]
    without_enumeration(monkeypatch)
    monkeypatch.setattr(expectations, "FEWER_RUNS", 1024)
    for claim, one in zip(claims, exactly, strict=True):
        simulated = claim.check(case)
        assert simulated.holds
        assert simulated.how == "1024 simulated runs"
        assert one.how == f"all {20 if k == 2 else 120} orders"
        assert simulated.lhs == pytest.approx(one.lhs, abs=simulated.doubt)
        assert simulated.rhs == pytest.approx(one.rhs, abs=simulated.doubt)


def test_losses_after_orders_are_those_of_runs():
    tasks = fg.families.gaussian(4, 5, 2, seed=2)
    case = Instance(tasks, WITHOUT, 2, scheme=fg.schemes.SGD(0.3), w0=np.ones(5))
    orders, last = np.array([[0, 1], [3, 2]]), np.array([3, 3])
    found = losses_after(case, orders, last)
    for order, task, value in zip(orders, last, found, strict=True):
        run = fg.run(tasks, fg.orderings.Explicit(order), 2, case.scheme, w0=case.w0)
        assert value == pytest.approx(tasks.task_losses(run.iterates[-1])[task], rel=1e-12)
    with pytest.raises(fg.errors.NotSupportedError, match="not a linear scheme"):
        losses_after(replace(case, scheme=fg.schemes.GradientDescent()), orders, last)


def test_the_width_without_known_bounds_is_that_of_a_normal_interval():
    values = np.random.default_rng(0).standard_normal(10_000)
    assert width(values, None) == pytest.approx(2 * 3.2905 / 100, rel=0.03)  # +- 3.29 standard errors hold 0.999
