"""Every claim on problems drawn at random and made by hand, and the precise path beside the usual one."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import forgetting as fg
from effort import rounds
from forgetting.claims import Instance, get
from forgetting.errors import ForgettingError
from forgetting.geometry import exact_rank
from forgetting.theory.candidates import mutate
from forgetting.theory.expectations import Numbers, as_least_squares
from forgetting.theory.precise import Precise, halfspace_walk

CLAIMS = fg.claims.all()


def drawn(claim, indices, seed=7):
    """Instances as a hunt makes them, and a neighbour of each."""
    for index in indices:
        rng = np.random.default_rng([seed, index])
        for make in (lambda rng=rng, index=index: claim.draw(rng, index), lambda: mutate(rng, case, 0.2)):  # noqa: B023
            try:
                case = claim.settle(make())
                if claim.why_not(case) is None:
                    yield case
            except ForgettingError:
                break


@pytest.mark.slow
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.key)
def test_holds_on_structured_and_random_problems_unless_it_is_known_to_be_false(claim):
    verdicts = [claim.check(case) for case in drawn(claim, [*range(0, 54, 6), *range(60, 70)])]
    assert len(verdicts) >= 15
    assert all(np.isfinite([verdict.lhs, verdict.rhs, verdict.residual]).all() for verdict in verdicts)
    if claim.status != "refuted":
        assert all(verdict.holds for verdict in verdicts)
    if claim.kind == "inequality":
        assert all(
            verdict.lhs <= verdict.rhs + 1e-9 * max(abs(verdict.rhs), 1) or not verdict.holds for verdict in verdicts
        )


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.key)
def test_a_statement_made_false_is_seen_to_be_violated(claim):
    """On some problem each statement has something to say: half of what its left side is would be too little."""
    if claim.kind == "equality":
        broken = replace(claim, sides=lambda case: shifted(claim.sides(case)))
    else:
        broken = replace(claim, sides=lambda case: halved(claim.sides(case)))
    assert not all(broken.check(case).holds for case in drawn(claim, [*range(3, 33, 3), *range(60, 66)]))


def halved(sides):
    return replace(sides, rhs=min(sides.rhs, sides.lhs / 2))


def shifted(sides):
    size = sides.scale if sides.scale is not None else max(abs(sides.lhs), abs(sides.rhs))
    return replace(sides, rhs=sides.rhs + 1e-3 * size)


@pytest.mark.parametrize("claim", [c for c in CLAIMS if c.precise is not None], ids=lambda claim: claim.key)
def test_50_digits_agree_with_float64(claim):
    compared = 0
    for case in drawn(claim, [1, 14, 26, 60, 61, 62][:: rounds(2, 1)]):
        case = replace(case, k=min(case.k, 6)) if claim.why_not(replace(case, k=min(case.k, 6))) is None else case
        again = claim.confirm(case)
        if again is None:
            continue
        once = claim.check(case)
        allowed = 1e-9 * max(abs(once.lhs), abs(once.rhs)) + once.doubt
        assert again.lhs == pytest.approx(once.lhs, abs=allowed)
        assert again.rhs == pytest.approx(once.rhs, abs=allowed)
        compared += 1
    assert compared >= rounds(1, 3)


# ------------------------------------------------------------------------------------- exact rationals, by brute force

ROWS = [[3, 4], [0, 1], [-1, 1]]  # tasks of one row with rational projections
SOLUTION = [Fraction(1), Fraction(-2)]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def after(order, gain=None):
    """The iterate after learning single rows in this order: projection, or a step of size `gain` on the loss."""
    w = [Fraction(0), Fraction(0)]
    for task in order:
        row = ROWS[task]
        step = (1 / Fraction(dot(row, row)) if gain is None else gain) * (dot(row, SOLUTION) - dot(row, w))
        w = [x + step * y for x, y in zip(w, row, strict=True)]
    return w


def loss(task, w):
    return (dot(ROWS[task], w) - dot(ROWS[task], SOLUTION)) ** 2 / 2


@pytest.mark.parametrize("gain", [None, Fraction(1, 16)])
@pytest.mark.parametrize("replaced", [True, False])
def test_expectations_equal_exact_rationals(gain, replaced):
    tasks = fg.RegressionTasks([[row] for row in ROWS], [[float(dot(row, SOLUTION))] for row in ROWS])
    ordering = fg.orderings.WithReplacement() if replaced else fg.orderings.WithoutReplacement()
    scheme = None if gain is None else fg.schemes.SGD(float(gain), "loss")
    case, k = Instance(tasks, ordering, 2, scheme=scheme), 2
    orders = [order for order in product(range(3), repeat=3) if replaced or len(set(order)) == 3]
    states = [[after(order[:t], gain) for t in range(4)] for order in orders]
    count = Fraction(len(orders))
    pairs = list(zip(orders, states, strict=True))
    exact = {
        "loss": sum(loss(m, w[k]) for _, w in pairs for m in range(3)) / (3 * count),
        "next_loss": sum(loss(o[k], w[k]) for o, w in pairs) / count,
        "in_sample": sum(loss(o[t], w[k]) for o, w in pairs for t in range(k)) / (k * count),
        "forgetting": sum(loss(o[t], w[k]) - loss(o[t], w[t + 1]) for o, w in pairs for t in range(k)) / (k * count),
        "regret_sum": sum(loss(o[t], w[t]) for o, w in pairs for t in range(k)) / count,
    }
    for name, value in exact.items():
        assert getattr(Precise(case), name)(k) == pytest.approx(float(value), rel=1e-14)
        assert getattr(Numbers(case), name)(k) == pytest.approx(float(value), rel=1e-12)


def test_50_digits_keep_what_float64_loses():
    # angle 1e-7: 1 - cos^2 loses all digits in float64; E L(w_1) = 1/8 sin^2 (1 + cos), here from the rounded rows
    tasks = fg.families.two_lines(1e-7)
    case = Instance(tasks, fg.orderings.WithReplacement(), 1)
    assert Precise(case).loss(1) == pytest.approx(0.25e-14, rel=1e-6)


def test_very_many_steps_by_squaring_equal_step_by_step(monkeypatch):
    case = Instance(fg.families.two_lines(0.1), fg.orderings.WithReplacement(), 400)
    once = Precise(case).forgetting(400), Precise(case).loss(400)
    monkeypatch.setattr("forgetting.theory.precise.MOST_WORK", 10_000)
    assert Precise(case).forgetting(400) == pytest.approx(once[0], rel=1e-14)
    assert Precise(case).loss(400) == pytest.approx(once[1], rel=1e-14)


def test_ranks_and_halfspaces_are_exact():
    third = [[1.0, 3.0], [1 / 3, 1.0]]  # 1/3 in float64 is not a third: rank 2, whatever the tolerance
    assert exact_rank(third) == 2
    assert exact_rank([[0.1, 0.3], [0.2, 0.6]]) == 1
    missed, distances = halfspace_walk([[2.0, 0.0], [0.0, -0.5]], [0, 1], [0.0, 0.0])
    assert [one.tolist() for one in missed] == [[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]]
    assert distances[0].tolist() == [0.5, 2.0]


# --------------------------------------------------------------------------------------------------- general properties


def test_projections_are_sgd_on_orthonormal_rows():
    tasks = fg.families.gaussian(3, 5, 2, seed=1)
    case = Instance(tasks, fg.orderings.Explicit([2, 0, 1, 0]), 4)
    one = as_least_squares(case)
    assert one.problem.radius == pytest.approx(1)
    mine = fg.run(case.problem, case.ordering, 4).iterates
    other = fg.run(one.problem, one.ordering, 4, one.scheme).iterates
    assert np.allclose(mine, other, rtol=0, atol=1e-13)


@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e4])
def test_verdicts_of_sgd_do_not_depend_on_units(factor):
    """Any beta: data times c with a step of 1/c^2 multiplies both sides by c^2."""
    tasks = fg.families.gaussian(3, 4, 2, seed=3)
    scaled = fg.RegressionTasks(
        [factor * tasks.task(m)[0] for m in range(3)], [factor * tasks.task(m)[1] for m in range(3)]
    )
    weights = fg.orderings.WithReplacement([0.2, 0.3, 0.5])
    for label, part in (
        ("thm:sgd_last_iterate_main", "general"),
        ("lem:wr_stability", "eta beta > 1"),
        ("lem:ratio_avg_last", "independent"),
    ):
        before, after_ = (
            get(label, part).check(
                Instance(one, weights, 7, scheme=fg.schemes.SGD(1.5 / one.radius**2, "loss"), w0=np.ones(4))
            )
            for one in (tasks, scaled)
        )
        assert after_.lhs == pytest.approx(factor**2 * before.lhs, rel=1e-9)
        assert after_.rhs == pytest.approx(factor**2 * before.rhs, rel=1e-9)


def test_a_task_may_stand_for_many():
    """`multiplicity` gives what writing all the copies down gives."""
    few = fg.RegressionTasks([[[1.0, 0.0]], [[0.0, 0.3]]], [[1.0], [0.3]])
    many = fg.RegressionTasks([[[1.0, 0.0]]] + [[[0.0, 0.3]]] * 7, [[1.0]] + [[0.3]] * 7)
    for part, ordering in (
        ("loss", fg.orderings.NormWeighted()),
        ("forgetting", fg.orderings.NormWeighted()),
        ("loss, uniform", fg.orderings.WithReplacement()),
        ("forgetting, uniform", fg.orderings.WithReplacement()),
    ):
        claim = get("prop:mean_norm", part)
        short = claim.check(Instance(few, ordering, 5, extras={"multiplicity": [1, 7]}))
        long = claim.check(Instance(many, ordering, 5))
        assert short.lhs == pytest.approx(long.lhs, rel=1e-12)
        assert short.rhs == pytest.approx(long.rhs, rel=1e-12)
