"""Which method answers, what it says when it cannot, and what simulation promises."""

import re
from fractions import Fraction

import numpy as np
import pytest

import forgetting as fg
from effort import rounds
from forgetting.errors import InvalidInputError, MemoryLimitError, NotRealizableError, NotSupportedError, OrderingError
from forgetting.expectation.engines.costs import states_needed
from forgetting.expectation.intervals import bounded_interval

od = fg.orderings
GAUSSIAN = fg.families.gaussian(T=6, d=10, rank=2, seed=0)


@pytest.mark.parametrize(
    ("ordering", "k", "method"),
    [
        (od.WithReplacement(), 20, "moments"),
        (od.WithReplacement(), 10**8, "spectral"),
        (od.NormWeighted(), 20, "moments"),
        (od.WithoutReplacement(), 6, "subsets"),
        (od.Reshuffled(), 20, "subsets"),
        (od.Cyclic(), 20, "deterministic"),
        (od.Explicit([0, 1, 2]), 3, "deterministic"),
        (od.GreedyDistance(), 20, "deterministic"),
        (od.GreedyResidual(repeat=False), 6, "deterministic"),
    ],
    ids=str,
)
def test_auto_picks_the_exact_method_that_fits(ordering, k, method):
    e = fg.expect(GAUSSIAN, ordering, k)
    assert e.method == method
    assert e.exact
    np.testing.assert_array_equal(e.loss_interval, [e.loss, e.loss])
    assert method in str(e)


def test_auto_simulates_where_exactness_does_not_fit_and_says_so():
    many = fg.families.gaussian(T=40, d=50, rank=1, seed=0)
    e = fg.expect(many, od.WithoutReplacement(), 10)
    assert (e.method, e.runs) == ("monte-carlo", 4096)
    assert e.loss_interval[0] < e.loss < e.loss_interval[1]
    small = fg.expect(GAUSSIAN, od.WithReplacement(), 5, memory=100)
    assert small.method == "monte-carlo"
    exact = fg.expect(GAUSSIAN, od.WithReplacement(), 5)
    assert small.loss_interval[0] < exact.loss < small.loss_interval[1]
    own = fg.expect(GAUSSIAN, od.Cyclic(), 5, scheme=fg.schemes.NLMS())
    assert own.method == "deterministic"


def test_an_exact_method_that_does_not_fit_says_what_it_would_need():
    many = fg.families.gaussian(T=40, d=50, rank=1, seed=0)
    with pytest.raises(MemoryLimitError, match=r"subsets.*would need about .*monte-carlo") as caught:
        fg.expect(many, od.WithoutReplacement(), 20, method="subsets")
    assert caught.value.needed > caught.value.allowed
    with pytest.raises(MemoryLimitError, match="more than the 1000 bytes allowed"):
        fg.expect(GAUSSIAN, od.WithReplacement(), 5, method="moments", memory=1000)


def test_states_are_counted_for_thousands_of_tasks_without_listing_them():
    assert states_needed(np.ones(10_000, dtype=int), 10_000) == (np.inf, np.inf)
    assert states_needed(np.ones(1000, dtype=int), 2)[0] == 1 + 1000 + 1000 * 999 / 2
    assert states_needed(np.array([3, 2, 0]), 5) == (12, 3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fg.expect(GAUSSIAN, od.Cyclic(), 3, method="moments"), NotSupportedError, r"moments.*Cyclic"),
        (lambda: fg.expect(GAUSSIAN, od.WithReplacement(), 3, method="subsets"), NotSupportedError, "subsets"),
        (
            lambda: fg.expect(GAUSSIAN, od.WithReplacement(), 3, method="deterministic"),
            NotSupportedError,
            "is random",
        ),
        (lambda: fg.expect(GAUSSIAN, od.WithReplacement(), 3, method="magic"), InvalidInputError, "magic"),
        (lambda: fg.expect(GAUSSIAN, od.WithReplacement(), []), InvalidInputError, "k is empty"),
        (lambda: fg.expect(GAUSSIAN, od.WithReplacement(), -1), InvalidInputError, "at least 0, got -1"),
        (lambda: fg.expect(GAUSSIAN, od.WithReplacement(), 2.5), InvalidInputError, "whole number"),
        (lambda: fg.expect(GAUSSIAN, od.WithReplacement(), 3, quantities=("los",)), InvalidInputError, "los"),
        (lambda: fg.expect(GAUSSIAN, od.WithoutReplacement(), 7), OrderingError, "ends after 6 steps"),
        (lambda: fg.expect(GAUSSIAN, "cylic", 7), InvalidInputError, "no ordering 'cylic'; did you mean 'cyclic'"),
        (lambda: fg.expect(GAUSSIAN, None, 7), InvalidInputError, "expected an ordering"),
        (
            lambda: fg.expect(GAUSSIAN, od.WithReplacement(), 3, scheme=fg.schemes.NLMS(), method="moments"),
            NotSupportedError,
            "linear scheme",
        ),
        (
            lambda: fg.expect(GAUSSIAN, od.WithReplacement(), 3).regret,
            InvalidInputError,
            "regret was not asked for",
        ),
    ],
)
def test_what_cannot_be_answered_is_refused_in_words(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_tasks_that_no_w_solves_are_exact_and_their_simulation_promises_nothing():
    tasks = fg.RegressionTasks([[[1.0, 0.0]], [[2.0, 0.0]]], [[1.0], [0.0]])
    e = fg.expect(tasks, od.WithReplacement(), 3)
    assert e.method == "moments"
    # w is 1 or 0 with probability 1/2 each: the loss of the other task is 1/2 at w = 0 and 2 at w = 1
    np.testing.assert_allclose(e.loss, 0.5 * (0.25 + 1.0), rtol=1e-14)
    assert any("not jointly realizable" in note for note in e.notes)
    simulated = fg.expect(tasks, od.WithReplacement(), 3, method="monte-carlo")
    assert any("heavy tails" in note for note in simulated.notes)


def test_the_error_needs_tasks_that_some_w_solves():
    tasks = fg.RegressionTasks([[[1.0, 0.0]], [[2.0, 0.0]]], [[1.0], [0.0]])
    for ordering in (od.WithReplacement(), od.Cyclic(), od.WithoutReplacement()):
        with pytest.raises(NotRealizableError, match="task"):
            fg.expect(tasks, ordering, 2, quantities="error")


def test_the_same_seed_gives_the_same_result_whatever_the_threads():
    a = fg.expect(GAUSSIAN, od.WithReplacement(), [1, 7], method="monte-carlo", runs=2000, threads=1)
    b = fg.expect(GAUSSIAN, od.WithReplacement(), [1, 7], method="monte-carlo", runs=2000, threads=2)
    other = fg.expect(GAUSSIAN, od.WithReplacement(), [1, 7], method="monte-carlo", runs=2000, seed=1)
    np.testing.assert_array_equal(a.loss, b.loss)
    np.testing.assert_array_equal(a.forgetting, b.forgetting)
    assert not np.array_equal(a.loss, other.loss)


def test_every_quantity_is_simulated_within_its_interval():
    names = ("loss", "forgetting", "regret", "error", "task_losses")
    for ordering, k in [
        (od.WithReplacement(), [1, 4]),
        (od.WithoutReplacement(), [2, 6]),
        (od.Reshuffled(), [6, 9]),
    ]:
        exact = fg.expect(GAUSSIAN, ordering, k, quantities=names)
        e = fg.expect(GAUSSIAN, ordering, k, quantities=names, method="monte-carlo", runs=2048, confidence=0.9999)
        for name in names:
            interval = e.interval(name)
            assert np.all(interval[..., 0] <= exact.values[name]), name
            assert np.all(exact.values[name] <= interval[..., 1]), name


def test_a_target_precision_decides_the_number_of_runs():
    loose = fg.expect(GAUSSIAN, od.WithReplacement(), 3, method="monte-carlo", rtol=0.3, quantities=("loss",))
    tight = fg.expect(GAUSSIAN, od.WithReplacement(), 3, method="monte-carlo", rtol=0.05, quantities=("loss",))
    assert loose.runs < tight.runs
    for e, rtol in ((loose, 0.3), (tight, 0.05)):
        assert e.uncertainty["loss"] <= rtol * e.loss
    capped = fg.expect(
        fg.families.two_lines(np.pi / 3), od.WithReplacement(), 100, method="monte-carlo", rtol=0.1, runs=4096
    )
    assert capped.runs == 4096
    assert any("was not reached" in note for note in capped.notes)


def test_no_accuracy_relative_to_a_value_that_is_0_in_all_runs_is_waited_for():
    solved = fg.ConvexSets([fg.Ball([0.0, 0.0], 1.0), fg.Halfspace([1.0, 0.0], 0.5)])  # by one pass in any order
    e = fg.expect(solved, od.Reshuffled(), 2, rtol=0.1, quantities=("loss",), method="monte-carlo")
    assert (e.loss, e.runs) == (0.0, 4096)
    assert any("relative to a value that is 0 in all 4096 runs" in note for note in e.notes)


def test_no_accuracy_is_waited_for_that_all_runs_together_cannot_give():
    balls = fg.ConvexSets([fg.Ball([0.0, 0.0], 1.0), fg.Ball([1.5, 0.0], 1.0)])
    e = fg.expect(
        balls, od.WithReplacement(), 1, rtol=1e-160, w0=[5.0, 1.0], quantities=("loss",), method="monte-carlo"
    )
    assert e.runs == 4096
    assert any("rtol = 1e-160 was not reached with 4096 runs" in note for note in e.notes)


@pytest.mark.parametrize(
    ("ordering", "method"),
    [
        (od.WithReplacement(), "moments"),
        (od.WithReplacement(), "spectral"),
        (od.WithoutReplacement(), "subsets"),
        (od.Cyclic(), "deterministic"),
        (od.WithReplacement(), "monte-carlo"),
        (od.Reshuffled(), "listing"),
    ],
)
def test_means_over_no_steps_are_nan_with_a_note_by_every_method(ordering, method):
    e = fg.expect(GAUSSIAN, ordering, [2, 0], method=method, quantities=("loss", "forgetting", "regret"), runs=4)
    for name in ("forgetting", "regret"):
        assert np.isnan(e.values[name]).tolist() == [False, True]
    assert np.isfinite(e.loss).all()
    assert "forgetting and regret at k = 0: a mean over no steps, nan" in e.notes
    assert not any("k = 0" in note for note in fg.expect(GAUSSIAN, ordering, 2, method=method, runs=4).notes)


def test_comparisons_are_exact_where_both_arms_are():
    gap = fg.compare(GAUSSIAN, od.WithReplacement(), od.Cyclic(), [3, 6])
    a, b = fg.expect(GAUSSIAN, od.WithReplacement(), [3, 6]), fg.expect(GAUSSIAN, od.Cyclic(), [3, 6])
    np.testing.assert_allclose(gap.loss, a.loss - b.loss)
    assert gap.method == "exact difference"


def test_common_random_numbers_narrow_the_difference_between_two_schemes():
    many = fg.families.gaussian(T=40, d=50, rank=1, seed=0)
    arms = [
        (od.WithoutReplacement(), fg.schemes.Kaczmarz()),
        (od.WithoutReplacement(), fg.schemes.SGD(0.98)),
    ]
    paired, apart = [], []
    for seed in range(6):
        gap = fg.compare(many, *arms, 30, quantities=("loss",), runs=1024, seed=seed)
        assert gap.method == "monte-carlo"
        assert gap.loss_interval[0] <= gap.loss <= gap.loss_interval[1]
        paired.append(gap.loss)
        alone = [
            fg.expect(many, o, 30, scheme=s, quantities=("loss",), runs=1024, seed=2 * seed + i).loss
            for i, (o, s) in enumerate(arms)
        ]
        apart.append(alone[0] - alone[1])
    assert np.std(paired) < 0.3 * np.std(apart)


def coverage(tasks, ordering, k):
    """How often the 99 % intervals of seeded simulations hold the exact value."""
    repetitions = rounds(200, 1000)
    exact = fg.expect(tasks, ordering, k)
    hits = np.zeros(2)
    for seed in range(repetitions):
        e = fg.expect(tasks, ordering, k, method="monte-carlo", runs=1024, seed=seed, threads=1)
        hits += [
            e.loss_interval[0] <= exact.loss <= e.loss_interval[1],
            e.forgetting_interval[0] <= exact.forgetting <= e.forgetting_interval[1],
        ]
    return hits / repetitions


@pytest.mark.parametrize(
    ("tasks", "ordering", "k"),
    [
        (fg.families.gaussian(T=5, d=8, rank=2, seed=1), od.WithReplacement(), 10),
        pytest.param(fg.families.two_lines(np.pi / 3), od.WithReplacement(), 20, marks=pytest.mark.slow),  # as k=100
        (fg.families.two_lines(np.pi / 3), od.WithReplacement(), 100),
        (fg.families.repeated(fg.families.two_lines(0.5), 10), od.WithoutReplacement(), 12),
    ],
    ids=["gaussian", "two lines, k=20", "two lines, k=100", "clones"],
)
def test_intervals_hold_at_their_stated_confidence(tasks, ordering, k):
    assert np.all(coverage(tasks, ordering, k) >= 0.98)


def test_normal_intervals_would_fail_where_betting_ones_hold():
    # two lines at 60 degrees, k = 20, NUMERICS: normal intervals cover about 80 %
    tasks = fg.families.two_lines(np.pi / 3)
    exact = fg.expect(tasks, od.WithReplacement(), 20, quantities=("loss",)).loss
    hits = 0
    for seed in range(300):
        sample = fg.run_many(tasks, od.WithReplacement(), 20, runs=1000, seed=seed, record_every=20).losses[:, -1]
        half = 2.576 * sample.std(ddof=1) / np.sqrt(len(sample))
        hits += abs(sample.mean() - exact) <= half
    assert hits / 300 < 0.95


def test_betting_intervals_are_narrow_on_ordinary_samples_and_respect_the_range():
    rng = np.random.default_rng(0)
    low, high = bounded_interval(rng.random(4000), 0.0, 1.0, 0.99)
    assert low < 0.5 < high
    assert high - low < 1.4 * 2 * 2.576 * np.sqrt(1 / 12 / 4000)  # a normal interval and a third
    assert bounded_interval(np.zeros(1000), 0.0, 1.0, 0.99)[0] == 0
    assert 0.003 < bounded_interval(np.zeros(1000), 0.0, 1.0, 0.99)[1] < 0.02
    assert bounded_interval(np.full(10, 3.0), 3.0, 3.0, 0.99) == (3.0, 3.0)


def test_a_million_dimensions_reduce_to_the_rows_sparsely():
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    matrices = [sp.random_array((3, 10**6), density=1e-4, rng=rng, format="csr") for _ in range(5)]
    w = rng.standard_normal(10**6)
    tasks = fg.RegressionTasks(matrices, [X @ w for X in matrices])
    e = fg.expect(tasks, od.WithoutReplacement(), 5)
    assert (e.method, tasks.rank_joint) == ("subsets", 15)


def test_orderings_and_schemes_that_draw_are_simulated_and_others_run_once():
    class ByDistance(fg.orderings.Ordering):
        adaptive = True

        def visits(self, tasks, rng):
            while True:
                weights = tasks.distances() ** 2
                yield int(rng.choice(tasks.num_tasks, p=weights / weights.sum()))

    class Noisy(fg.schemes.Scheme):
        def start(self, problem, w0, rng):
            return rng

        def learn(self, problem, task, w, memory):
            return fg.schemes.Learned(w + memory.random() * (problem.project(task, w) - w))

    tasks = fg.families.gaussian(T=5, d=6, rank=1, seed=2)
    e = fg.expect(tasks, ByDistance(), 3, runs=200)
    assert e.method == "monte-carlo"
    assert e.runs == 200
    assert e.loss_interval[0] < e.loss < e.loss_interval[1]
    assert fg.expect(tasks, fg.orderings.Cyclic(), 3, scheme=Noisy(), runs=50).method == "monte-carlo"
    for scheme in (fg.schemes.GradientDescent(), fg.schemes.RecursiveLeastSquares(), fg.schemes.NLMS()):
        assert fg.expect(tasks, fg.orderings.GreedyDistance(), 3, scheme=scheme).method == "deterministic"


def test_a_number_of_runs_is_kept_to_and_begins_a_longer_simulation():
    tasks = fg.families.gaussian(T=5, d=6, rank=1, seed=2)
    ordering = fg.orderings.WithReplacement()
    one, many = (fg.expect(tasks, ordering, 3, method="monte-carlo", runs=runs) for runs in (1, 1500))
    assert (one.runs, many.runs) == (1, 1500)
    assert "1500 runs" in many.detail
    runs = fg.compare(tasks, (ordering, fg.schemes.NLMS()), (ordering, fg.schemes.Kaczmarz()), k=30, runs=30).runs
    assert runs == 30


def test_what_no_order_changes_has_no_spread():
    tasks = fg.families.gaussian(T=30, d=40, rank=2, seed=0)
    names = ("loss", "forgetting", "error", "task_losses")
    found = fg.expect(
        tasks, fg.orderings.WithoutReplacement(), [0, 1, 2], method="monte-carlo", quantities=names, runs=9
    )
    for name in names:
        low, high = np.moveaxis(found.intervals[name], -1, 0)
        sure = 1 if name == "forgetting" else 0
        np.testing.assert_array_equal(low[sure], high[sure])
        np.testing.assert_array_equal(low[sure], found.values[name][sure])
        assert np.all(low[2] < high[2])


@pytest.mark.parametrize(
    "scheme", [fg.schemes.NLMS(), fg.schemes.RecursiveLeastSquares(), fg.schemes.GradientDescent()], ids=str
)
def test_schemes_that_never_lengthen_the_error_have_intervals_for_heavy_tails(scheme):
    tasks, order = fg.families.two_lines(np.pi / 3), fg.orderings.WithReplacement()
    exact = fg.expect(tasks, order, [20, 100])  # tasks of one row: NLMS and gradient descent are Kaczmarz
    found = fg.expect(tasks, order, [20, 100], scheme=scheme, runs=256)
    assert "betting" in found.detail
    assert [note for note in found.notes if not note.startswith("simulated: no exact method")] == []
    if not isinstance(scheme, fg.schemes.RecursiveLeastSquares):
        low, high = np.moveaxis(found.intervals["loss"], -1, 0)
        assert np.all((low <= exact.loss) & (exact.loss <= high))
    assert np.all(found.intervals["loss"] >= 0)


def test_what_cannot_be_simulated_or_counted_is_refused():
    tasks, order = fg.families.two_lines(0.5), fg.orderings.WithReplacement()
    with pytest.raises(MemoryLimitError, match="1024 simulated runs of 1000000000 steps need about"):
        fg.expect(tasks, order, 10**9, method="monte-carlo")
    with pytest.raises(InvalidInputError, match=r"k must be at most 1e\+15, got 1e\+20"):
        fg.expect(tasks, order, 10**20)
    with pytest.raises(InvalidInputError, match="threads must be at least 1, got -3"):
        fg.expect(tasks, order, 10, method="monte-carlo", threads=-3)


def test_printed_columns_never_touch():
    tasks, scheme = fg.families.two_lines(np.pi / 3), fg.schemes.SGD(2.5)
    wide = str(fg.expect(tasks, fg.orderings.WithReplacement(), 100, scheme=scheme, method="monte-carlo"))
    row = next(line for line in wide.splitlines() if line.lstrip().startswith("100 "))
    assert row.count("[") == 2
    assert re.fullmatch(r" *100  +\S+ \[\S+, \S+\]  +\S+ \[\S+, \S+\] *", row)


def test_a_comparison_says_what_its_intervals_are_worth():
    tasks = fg.RegressionTasks([[[1.0]], [[1.0]]], [[1.0], [2.0]])
    found = fg.compare(tasks, fg.orderings.WithReplacement(), fg.orderings.Reshuffled(), 6, runs=64)
    assert found.method == "exact difference"
    assert any("not jointly realizable" in note for note in found.notes)
    arms = (od.WithReplacement(), fg.schemes.GradientDescent()), (od.Reshuffled(), fg.schemes.GradientDescent())
    found = fg.compare(tasks, *arms, 60, runs=64)
    assert any("normal approximations" in note for note in found.notes)


def test_simulated_values_lie_in_ranges_that_the_norms_give():
    tasks = fg.families.two_lines(
        1.0
    )  # |w*| = R = 1; the mean of the two squares has the largest eigenvalue (1 + cos 1)/2
    e = fg.expect(tasks, fg.orderings.WithReplacement(), 3, method="monte-carlo", runs=50)
    assert e.ranges["forgetting"] == pytest.approx((0.0, 0.5), rel=1e-12)
    assert e.ranges["loss"] == pytest.approx((0.0, (1 + np.cos(1.0)) / 4), rel=1e-12)


def test_engines_that_are_more_accurate_are_asked_first():
    from forgetting.expectation import engines

    assert list(engines)[:7] == ["seen", "deterministic", "moments", "monte-carlo", "spectral", "subsets", "listing"]


def test_what_is_left_of_a_task_just_learned_is_within_the_estimate_of_the_spectrum():
    # one draw, k = 1: seen_loss is the loss of the task learned, of which a weak ridge leaves (lam / (lam + x^2))^2
    rows, lam = (Fraction(3), Fraction(-1, 4)), Fraction(1, 10**6)
    tasks = fg.RegressionTasks([[[float(x)]] for x in rows], [[float(5 * x)] for x in rows])
    e = fg.expect(tasks, "random", 1, fg.schemes.Ridge(float(lam)), quantities="seen_loss", method="spectral")
    true = sum(x * x / 2 * 25 * (lam / (lam + x * x)) ** 2 for x in rows) / 2
    error = abs(Fraction(float(e.values["seen_loss"])) - true)
    assert Fraction(1, 10**18) * true < error <= Fraction(float(e.uncertainty["seen_loss"]))
