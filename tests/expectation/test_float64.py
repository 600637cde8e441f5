"""Large problems are computed in float64: its bounds against the same values in 31 digits."""

import numpy as np
import pytest

import forgetting as fg
from effort import rounds
from forgetting.expectation import HALF_SQUARED_DISTANCE, Quantity
from forgetting.expectation.engines import exact as exact_engines

RESIDUAL = Quantity("residual", "mean half squared distance to the tasks", form=HALF_SQUARED_DISTANCE)
RESIDUAL_LOST = Quantity("lost", "the same over visits, less what was kept", "visited", HALF_SQUARED_DISTANCE, True)
QUANTITIES = ("loss", "forgetting", "regret", "error", "task_losses", "seen_loss", "next_loss", RESIDUAL, RESIDUAL_LOST)
RESIDUAL_MEAN = Quantity("mean", "that of the mean of the iterates", form=HALF_SQUARED_DISTANCE, iterate="mean")
AVERAGED = ("averaged_loss", "averaged_task_losses", "forgetting", "error", RESIDUAL_MEAN)
ORDERINGS = {
    "moments": fg.orderings.WithReplacement(),
    "subsets": fg.orderings.WithoutReplacement(),
    "reshuffled": fg.orderings.Reshuffled(),
    "deterministic": fg.orderings.Cyclic(),
}


def both(monkeypatch, tasks, ordering, ks, quantities=QUANTITIES, **options):
    """The same values with 31 digits, and in float64."""
    with monkeypatch.context() as patch:
        patch.setattr(exact_engines, "QUICK", 1e9)
        precise = fg.expect(tasks, ordering, ks, quantities=quantities, **options)
        patch.setattr(exact_engines, "QUICK", 0.0)
        patch.setattr(exact_engines, "ENOUGH", np.inf)
        plain = fg.expect(tasks, ordering, ks, quantities=quantities, **options)
    assert "16 digits" in plain.detail
    return precise, plain


def compare(precise, plain):
    """Every error within its bound; returns bound / error."""
    inflations = []
    for name in plain.values:
        sure, value, doubt = (np.ravel(table[name]) for table in (precise.values, plain.values, plain.uncertainty))
        known = ~np.isnan(sure)
        assert np.array_equal(known, ~np.isnan(value))
        error = np.abs(value - sure)[known]
        assert np.all(error <= doubt[known] + np.ravel(precise.uncertainty[name])[known]), name
        inflations.append(doubt[known] / np.maximum(error, 1e-17 * np.abs(sure[known]) + 1e-300))
    return np.concatenate(inflations)


@pytest.mark.parametrize("quantities", [QUANTITIES, AVERAGED], ids=["last", "mean"])
@pytest.mark.parametrize("law", ORDERINGS)
@pytest.mark.parametrize("seed", range(rounds(2, 6)))
def test_errors_are_within_their_bounds(monkeypatch, law, seed, quantities):
    rng = np.random.default_rng(seed)
    T, d, rank = int(rng.integers(2, 8)), int(rng.integers(3, 25)), int(rng.integers(1, 4))
    tasks = fg.families.gaussian(T, d, min(rank, d), seed=seed, condition=float(10 ** rng.uniform(0, 3)))
    ks = [1, 2, T] if law == "subsets" else [1, 5, 20, 100]
    w0 = rng.standard_normal(d) if seed % 2 else None
    scheme = [None, fg.schemes.SGD(0.7), fg.schemes.Ridge(0.3)][seed % 3]
    inflation = compare(*both(monkeypatch, tasks, ORDERINGS[law], ks, quantities, scheme=scheme, w0=w0))
    assert np.median(inflation) < 1e6  # worst cases are not met; what is stated is still an error one can work with


@pytest.mark.parametrize("quantities", [QUANTITIES, ("loss", *AVERAGED)], ids=["last", "mean"])
@pytest.mark.parametrize("law", ORDERINGS)
def test_labels_that_fit_only_within_rtol_are_not_lost(monkeypatch, law, quantities):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((4, 2, 5))
    labels = [X @ np.ones(5) * (1 + 1e-9 * rng.standard_normal(2)) for X in rows]
    tasks = fg.RegressionTasks(list(rows), labels)
    ks = [1, 4] if law == "subsets" else [1, 20, 400]
    precise, plain = both(monkeypatch, tasks, ORDERINGS[law], ks, quantities)
    compare(precise, plain)
    np.testing.assert_allclose(plain.loss, precise.loss, rtol=1e-5)


def test_the_detail_says_with_how_many_digits(monkeypatch):
    tasks = fg.families.gaussian(4, 6, 2)
    precise, plain = both(monkeypatch, tasks, fg.orderings.WithReplacement(), 10)
    assert precise.detail == "second moments of order 6, iterated with 31 digits"
    assert plain.detail == "second moments of order 6, iterated with 16 digits"
