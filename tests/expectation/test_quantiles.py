"""Quantiles of simulated values: their intervals hold for any tail, where those of means say nothing."""

import numpy as np
import pytest
from scipy.stats import binom

import forgetting as fg
from forgetting.errors import InvalidInputError
from forgetting.expectation.api import ask
from forgetting.expectation.engines.monte_carlo import gathered
from forgetting.expectation.intervals import LEVELS, _places, column_quantiles, is_useless
from forgetting.expectation.outcome import undecided_means
from forgetting.expectation.request import Simulation

WR = fg.orderings.WithReplacement()
THETA = np.pi / 3
LINES = fg.families.two_lines(THETA)
UNREALIZABLE = fg.RegressionTasks([[[1.0, 0.0]], [[2.0, 0.0]]], [[1.0], [0.0]])
WHERE = (-np.inf, np.inf)


# ------------------------------------------------------------------------------------------------------ known answers


def losses_of_two_lines(k):
    """All values of the loss after k independent draws, sorted, and their probabilities.

    The first draw leaves an error of length |z| orthogonal to its line; each later draw of the other line multiplies it
    by cos theta, so that with N ~ Bin(k - 1, 1/2) such draws L = sin^2(theta) cos(theta)^(2 N) |z|^2 / 4.
    """
    values, chances = [], []
    for m in (0, 1):
        X, _ = LINES.task(m)
        z = LINES.w_star - X[0] * (X[0] @ LINES.w_star)
        switches = np.arange(k)
        values.append(0.25 * np.sin(THETA) ** 2 * np.cos(THETA) ** (2 * switches) * (z @ z))
        chances.append(0.5 * binom.pmf(switches, k - 1, 0.5))
    order = np.argsort(np.concatenate(values), kind="stable")
    return np.concatenate(values)[order], np.concatenate(chances)[order]


def quantile(values, chances, level):
    return values[np.searchsorted(np.cumsum(chances), level)]


def test_the_distribution_of_two_lines_has_the_exact_mean():
    for k in (1, 2, 20):
        values, chances = losses_of_two_lines(k)
        assert values @ chances == pytest.approx(float(fg.expect(LINES, WR, k).loss), rel=1e-12)


@pytest.mark.parametrize("confidence", [0.99, 0.9])
def test_intervals_hold_the_quantiles_of_a_heavy_tail_at_their_confidence(confidence):
    values, chances = losses_of_two_lines(100)
    true = np.array([quantile(values, chances, level) for level in LEVELS])
    hits = np.zeros(len(LEVELS))
    for seed in range(400):
        options = {"quantities": "loss", "runs": 200, "seed": seed, "confidence": confidence, "threads": 1}
        e = fg.expect(LINES, WR, 100, method="monte-carlo", **options)
        low, high = e.quantiles["loss"][:, 1], e.quantiles["loss"][:, 2]
        # atoms that are equal but for rounding are one
        hits += (low <= true * (1 + 1e-9)) & (true * (1 - 1e-9) <= high)
    assert np.all(hits / 400 >= confidence - 0.02)


def test_at_that_tail_the_interval_of_the_mean_says_nothing_and_that_of_the_median_does():
    e = fg.expect(LINES, WR, 100, method="monte-carlo", quantities="loss")
    exact = float(fg.expect(LINES, WR, 100, quantities="loss").loss)
    assert e.loss < 0.5 * exact < e.loss_interval[1]  # the mean of most simulations is far below the true one
    assert e.loss_interval[1] > 1e12 * exact
    value, low, high = e.median("loss")
    assert low <= value <= high < 100 * low


@pytest.mark.parametrize("draw", ["standard_cauchy", "pareto", "normal"])
def test_coverage_is_that_of_the_confidence_for_continuous_distributions_of_any_tail(draw):
    from scipy.stats import cauchy, norm

    rng, count, columns = np.random.default_rng(5), 300, 3000
    if draw == "pareto":  # of index 1/2, whose mean is infinite
        samples = rng.random((count, columns)) ** -2.0
        true = (1 - np.array(LEVELS)) ** -2.0
    else:
        samples = getattr(rng, draw)(size=(count, columns))
        true = {"standard_cauchy": cauchy, "normal": norm}[draw].ppf(LEVELS)
    for confidence in (0.99, 0.8):
        table = column_quantiles(samples, confidence, WHERE)
        shares = np.mean((table[..., 1] <= true) & (true <= table[..., 2]), axis=0)
        assert np.all(shares >= confidence - 0.015)
        assert np.all(shares <= confidence + 0.5 * (1 - confidence) + 0.015)  # not wider than whole ranks make them


@pytest.mark.parametrize("count", [1, 2, 5, 9, 60, 400, 4096, 100_000])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99])
def test_the_ends_are_the_narrowest_order_statistics_that_the_binomial_law_allows(count, confidence):
    share = (1 - confidence) / 2
    for level in LEVELS:
        at, low, high = _places(count, level, confidence)
        assert at == max(0, int(np.ceil(round(count * level, 9))) - 1)
        # P(the value at place i is above the quantile) = P(Bin <= i), and that it is below P(Bin >= i + 1)
        assert low < 0 or binom.cdf(low, count, level) <= share * (1 + 1e-9)
        assert binom.cdf(low + 1, count, level) > share * (1 - 1e-9)
        assert high >= count or binom.sf(high, count, level) <= share * (1 + 1e-9)
        assert binom.sf(high - 1, count, level) > share * (1 - 1e-9)


# --------------------------------------------------------------------------------------------------------- properties


def test_quantiles_are_those_of_the_simulated_values():
    names, ks = ("loss", "forgetting", "task_losses"), [1, 4, 9]
    tasks = fg.families.gaussian(T=5, d=8, rank=2, seed=1)
    e = fg.expect(tasks, WR, ks, method="monte-carlo", quantities=names, runs=1500)
    samples = gathered(ask(tasks, WR, ks, quantities=names, simulation=Simulation(runs=1500)).request, 1500)
    for name in names:
        assert e.quantiles[name].shape == (*np.shape(e.values[name]), len(LEVELS), 3)
        for at, level in enumerate(LEVELS):
            expected = np.quantile(samples[name], level, axis=0, method="inverted_cdf")
            np.testing.assert_array_equal(e.quantiles[name][..., at, 0], expected)
            value, low, high = e.quantile(name, level)
            np.testing.assert_array_equal(value, expected)
            assert np.all((low <= value) & (value <= high))
        np.testing.assert_array_equal(e.median(name).value, e.quantile(name, 0.5).value)


def test_steps_come_back_in_the_order_and_the_shape_in_which_they_were_given():
    several = fg.expect(LINES, WR, [9, 2], method="monte-carlo", runs=64)
    sorted_ = fg.expect(LINES, WR, [2, 9], method="monte-carlo", runs=64)
    np.testing.assert_array_equal(several.quantiles["loss"], sorted_.quantiles["loss"][::-1])
    single = fg.expect(LINES, WR, 9, method="monte-carlo", runs=64)
    assert single.quantiles["loss"].shape == (len(LEVELS), 3)
    assert isinstance(single.median("loss").value, float)


def test_what_no_order_changes_has_quantiles_without_spread():
    e = fg.expect(LINES, WR, [0, 1], method="monte-carlo", runs=3, quantities=("loss", "forgetting", "error"))
    for name, row in (("loss", 0), ("error", 0), ("forgetting", 1)):
        assert np.all(e.quantiles[name][row] == np.asarray(e.values[name])[row])
    assert np.isnan(e.quantiles["forgetting"][0]).all()  # a mean over no steps


def test_with_too_few_runs_an_interval_ends_where_values_end():
    e = fg.expect(LINES, WR, 3, method="monte-carlo", runs=3, quantities=("loss", "forgetting"))
    for name in ("loss", "forgetting"):
        assert (e.median(name).low, e.median(name).high) == e.ranges[name]
    normal = fg.expect(UNREALIZABLE, WR, 3, method="monte-carlo", runs=3)
    assert normal.ranges == {}
    assert (normal.median("loss").low, normal.median("loss").high) == (0.0, np.inf)
    assert (normal.median("forgetting").low, normal.median("forgetting").high) == (-np.inf, np.inf)


def test_exact_results_have_means_and_say_so():
    e = fg.expect(LINES, WR, 3)
    assert e.quantiles == {}
    for call in (lambda: e.median("loss"), lambda: e.quantile("loss", 0.95)):
        with pytest.raises(InvalidInputError, match=r"exact methods give means; use method='monte-carlo'"):
            call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e: e.quantile("loss", 0.9), "kept at the levels 0.05, 0.25, 0.5, 0.75, 0.95; got 0.9"),
        (lambda e: e.quantile("loss", "high"), "level must be a number, got 'high'"),
        (lambda e: e.quantile("regret", 0.5), "regret was not asked for"),
        (lambda e: e.median("los"), "los was not asked for"),
    ],
)
def test_a_quantile_that_is_not_there_is_refused_in_words(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call(fg.expect(LINES, WR, 3, method="monte-carlo", runs=8))


def test_values_that_are_not_finite_have_quantiles_or_nan():
    e = fg.expect(LINES, WR, [5, 4000], scheme=fg.schemes.SGD(2.5), method="monte-carlo", runs=64)
    assert np.isfinite(e.quantiles["loss"][0, :, 0]).all()
    assert not np.isfinite(e.quantiles["loss"][1, -1, 0])


def test_comparisons_have_the_quantiles_of_paired_differences():
    tasks = fg.families.gaussian(T=40, d=50, rank=1, seed=0)
    order = fg.orderings.WithoutReplacement()
    arms = (order, fg.schemes.Kaczmarz()), (order, fg.schemes.SGD(0.9))
    gap = fg.compare(tasks, *arms, 30, quantities="loss", runs=300)
    runs = [gathered(ask(tasks, order, 30, scheme, quantities="loss").request, 300)["loss"][:, 0] for _, scheme in arms]
    assert gap.median("loss").value == np.quantile(runs[0] - runs[1], 0.5, method="inverted_cdf")
    assert gap.median("loss").low < gap.median("loss").value < gap.median("loss").high
    with pytest.raises(InvalidInputError, match="exact methods give means"):
        fg.compare(LINES, WR, fg.orderings.Cyclic(), 3).median("loss")


# -------------------------------------------------------------------------------------------------------------- words


def test_medians_are_shown_where_the_interval_of_the_mean_says_little_and_only_there():
    e = fg.expect(LINES, WR, [2, 100], method="monte-carlo", runs=512)
    shown = str(e).splitlines()
    assert shown[0] == "Expected values over random orders, simulated: 512 runs, seed 0"
    assert shown[1] == "losses: half the squared residual of a task, summed over its rows"
    assert shown[2].split() == ["k", "loss", "median", "loss", "forgetting", "median", "forgetting"]
    assert any(line.startswith("loss and forgetting from k = 100:") and "the median decides" in line for line in shown)
    assert undecided_means(e) == {"loss": 100, "forgetting": 100}
    early = fg.expect(LINES, WR, [2, 5], method="monte-carlo", runs=512)
    assert undecided_means(early) == {}
    assert "median" not in str(early)


def test_a_difference_that_may_be_zero_is_not_taken_for_one_that_rare_values_decide():
    same = fg.families.gaussian(T=40, d=50, rank=1, seed=0)
    shuffled = fg.orderings.Reshuffled(), fg.orderings.WithoutReplacement()
    gap = fg.compare(same, (shuffled[0], None), (shuffled[1], fg.schemes.SGD(0.5)), 30, quantities="loss", runs=512)
    assert undecided_means(gap) == {}


@pytest.mark.parametrize(
    ("tasks", "bounded"), [(LINES, True), (UNREALIZABLE, False), (fg.families.separable(2, 3, 4, 0.3), True)]
)
def test_intervals_either_hold_or_may_fail_and_the_text_says_which(tasks, bounded):
    text = str(fg.expect(tasks, WR, 3, method="monte-carlo", runs=64))
    assert ("each interval holds with probability at least 0.99" in text) == bounded
    assert ("may fail for heavy tails" in text) == (not bounded)


@pytest.mark.parametrize(
    ("result", "headline", "unit"),
    [
        (lambda: fg.expect(LINES, WR, 3), "Expected values over all orders, exact", "summed over its rows"),
        (lambda: fg.expect(LINES, fg.orderings.Cyclic(), 3), "Values of the only possible run, exact", "summed"),
        (
            lambda: fg.compare(LINES, WR, fg.orderings.Cyclic(), 3),
            "Differences of expected values over all orders, exact",
            "summed over its rows",
        ),
        (
            lambda: fg.compare(LINES, (WR, fg.schemes.NLMS()), WR, 60, runs=8, seed=5),
            "Differences of expected values over random orders, simulated: 8 runs, seed 5",
            "summed over its rows",
        ),
        (
            lambda: fg.expect(fg.RegressionTasks([[[1.0]], [[2.0]]], [[1.0], [2.0]], loss="mean"), WR, 3),
            "Expected values over all orders, exact",
            "its mean over the rows",
        ),
        (
            lambda: fg.expect(fg.ConvexSets([fg.Ball([0.0], 1.0), fg.Ball([1.0], 1.0)]), WR, 60, w0=[5.0], runs=8),
            "Expected values over random orders, simulated: 8 runs, seed 0",
            "half the squared distance to the set of a task",
        ),
        (
            lambda: fg.expect(fg.families.separable(2, 3, 4, 0.3), WR, 60, runs=8),
            "Expected values over random orders, simulated: 8 runs, seed 0",
            "margin",
        ),
    ],
)
def test_the_first_lines_say_in_plain_words_what_the_numbers_are(result, headline, unit):
    e = result()
    first, second = str(e).splitlines()[:2]
    assert first == e.headline == headline
    assert second.startswith("losses: ")
    assert unit in second
    assert f"method: {e.method}, {e.detail}" in str(e)


def test_distances_and_unknown_losses_have_no_unit():
    assert fg.expect(LINES, WR, 3, quantities="error").unit == ""

    class Points(fg.Problem):
        num_tasks, dim = 2, 1

        def project(self, task, w):
            return np.array([float(task)])

        def task_loss(self, task, w):
            return 0.5 * float(w[0] - task) ** 2

        def task_losses(self, w):
            return 0.5 * (w[0] - np.arange(2.0)) ** 2

        def distances(self, w):
            return abs(w[0] - np.arange(2.0))

    e = fg.expect(Points(), WR, 3, runs=8)
    assert e.unit == ""
    assert "losses:" not in str(e)


def test_intervals_of_numbers_near_the_largest_float_are_judged_without_a_warning():
    quantiles = np.full((1, len(LEVELS), 3), 1e308)
    assert not is_useless(np.array([1e308]), np.array([[0.0, 1e308]]), quantiles).any()
