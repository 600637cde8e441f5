"""The decay rate of orders that repeat: known answers, dense linear algebra, and long exact runs."""

import itertools

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import NotSupportedError
from forgetting.expectation import decay as rates
from forgetting.expectation.engines import spectral

CYCLIC, RESHUFFLED, WR = fg.orderings.Cyclic(), fg.orderings.Reshuffled(), fg.orderings.WithReplacement()
SCHEMES = [None, fg.schemes.SGD(1.5), fg.schemes.Ridge(0.5)]


def steps_of(tasks, scheme):
    """S_m = w -> w + ..., as matrices on the row space of all tasks."""
    blocks = [tasks.task(m)[0] for m in range(tasks.num_tasks)]
    rows = np.linalg.svd(np.concatenate(blocks))[2][: tasks.rank_joint]
    result = []
    for X in blocks:
        if isinstance(scheme, fg.schemes.Ridge):
            moved = X.T @ np.linalg.solve(X @ X.T + scheme.lam * np.eye(len(X)), X)
        else:
            moved = (1.0 if scheme is None else scheme.step_size) * np.linalg.pinv(X) @ X
        result.append(rows @ (np.eye(tasks.dim) - moved) @ rows.T)
    return result


def mean_epoch(steps):
    """E of (product kron product) over all permutations."""
    orders = list(itertools.permutations(steps))
    products = [np.linalg.multi_dot([np.eye(len(steps[0])), *order]) for order in orders]
    return sum(np.kron(product, product) for product in products) / len(orders)


@pytest.mark.parametrize("theta", [0.1, 0.7, 1.5])
def test_the_rates_of_two_lines_are_known(theta):
    # an epoch multiplies the error along a line by cos^2, in either order: cos^4 for its square, in two steps
    lines, cos2 = fg.families.two_lines(theta), np.cos(theta) ** 2
    assert fg.decay_rate(lines, CYCLIC) == pytest.approx(cos2, rel=1e-12)
    # P_2 P_1 and P_1 P_2 with equal chances: (I kron I + swap)/2 on the two lines gives cos^2 (1 + cos^2) / 2
    assert fg.decay_rate(lines, RESHUFFLED) ** 2 == pytest.approx(cos2 * (1 + cos2) / 2, rel=1e-12)


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_rates_are_spectral_radii_of_dense_products(seed, scheme):
    tasks = fg.families.gaussian(T=4, d=6, rank=[1, 2, 1, 1], seed=seed)
    steps = steps_of(tasks, scheme)
    product = np.linalg.multi_dot(steps[::-1])
    radius = np.max(np.abs(np.linalg.eigvals(product)))
    assert fg.decay_rate(tasks, CYCLIC, scheme) == pytest.approx(radius ** (2 / 4), rel=1e-10)
    radius = np.max(np.abs(np.linalg.eigvals(mean_epoch(steps))))
    assert fg.decay_rate(tasks, RESHUFFLED, scheme) == pytest.approx(radius ** (1 / 4), rel=1e-10)


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
@pytest.mark.parametrize("ordering", [CYCLIC, RESHUFFLED], ids=str)
def test_rates_are_what_errors_of_long_exact_runs_fall_by(ordering, scheme, monkeypatch):
    # tasks with a clone: four tasks, three of them distinct
    base = fg.families.gaussian(T=3, d=3, rank=1, seed=5)
    pairs = [base.task(m) for m in (0, 1, 2, 0)]
    tasks = fg.RegressionTasks([X for X, _ in pairs], [y for _, y in pairs])
    ks = [400, 480]
    error = fg.expect(tasks, ordering, ks, scheme, quantities="error").error
    rate = fg.decay_rate(tasks, ordering, scheme)
    assert (error[1] / error[0]) ** (1 / 80) == pytest.approx(rate, rel=1e-3)
    monkeypatch.setattr(spectral, "DENSE_LIMIT", 0)
    monkeypatch.setattr(rates, "PART", 1)
    assert fg.decay_rate(tasks, ordering, scheme) == pytest.approx(rate, rel=1e-10)


def test_reshuffled_epochs_of_many_clones_of_two_tasks():
    tasks = fg.families.repeated(fg.families.two_lines(0.05), 20)
    rate = fg.decay_rate(tasks, RESHUFFLED)
    error = fg.expect(tasks, RESHUFFLED, [4000, 4040], quantities="error").error
    assert (error[1] / error[0]) ** (1 / 40) == pytest.approx(rate, rel=1e-6)
    assert rate < fg.decay_rate(tasks, WR)


def test_what_is_learned_in_an_epoch_decays_at_rate_zero():
    for ordering in (CYCLIC, RESHUFFLED):
        assert fg.decay_rate(fg.families.orthogonal(5), ordering) == 0.0


def test_what_has_no_rate_is_refused():
    lines = fg.families.two_lines(0.5)
    for ordering in (fg.orderings.WithoutReplacement(), fg.orderings.Explicit([0, 1]), fg.orderings.GreedyDistance()):
        with pytest.raises(
            NotSupportedError, match="cyclic orders or reshuffled epochs under a linear scheme: it does"
        ):
            fg.decay_rate(lines, ordering)
    with pytest.raises(NotSupportedError, match=r"go through 1.13e\+15 sets of tasks"):
        fg.decay_rate(fg.families.gaussian(T=50, d=60, rank=1, seed=0), RESHUFFLED)


@pytest.mark.parametrize("ordering", [WR, CYCLIC, RESHUFFLED], ids=str)
def test_labels_that_no_w_fits_leave_the_rate_as_it_is(ordering):
    tasks = fg.families.gaussian(T=4, d=3, rank=1, seed=2)
    noisy = fg.RegressionTasks([tasks.task(m)[0] for m in range(4)], [[1.0], [-2.0], [0.5], [3.0]])
    assert not noisy.realizability.holds
    assert fg.decay_rate(noisy, ordering) == pytest.approx(fg.decay_rate(tasks, ordering), rel=1e-12)


@pytest.mark.parametrize("ordering", [CYCLIC, RESHUFFLED, WR])
@pytest.mark.parametrize("rank", [1, 20])
def test_steps_that_overflow_have_no_rate(ordering, rank):
    tasks = fg.families.gaussian(2, 45, rank, seed=0)
    large = fg.RegressionTasks(*zip(*[(1e100 * tasks.task(m)[0], tasks.task(m)[1]) for m in range(2)], strict=True))
    with pytest.raises(NotSupportedError, match="more than float64 can hold"):
        fg.decay_rate(large, ordering, fg.schemes.SGD(1.0, "loss"))
