"""`fg.expect` on a device: the values of the CPU, which other tests compare with brute force."""

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import NotSupportedError
from forgetting.expectation import HALF_SQUARED_DISTANCE, Quantity
from forgetting.expectation.api import ask
from forgetting.expectation.engines import exact as exact_engines
from forgetting.expectation.engines import float64_moments, spectral
from forgetting.expectation.engines.exact import moment_map

RESIDUAL = Quantity("residual", "mean half squared distance to the tasks", form=HALF_SQUARED_DISTANCE)
PLAIN = ("loss", "forgetting", "regret", "task_losses", "seen_loss", "next_loss", RESIDUAL)
AVERAGED = ("averaged_loss", "averaged_task_losses", "loss", "forgetting")
HELD_OUT = ("loss", "forgetting", "test_loss", "test_losses", "test_forgetting")
DRAWS = fg.orderings.WithReplacement()


def tasks(ranks, d, outputs=None, seed=0):
    """Tasks that no w solves, of these ranks."""
    rng = np.random.default_rng(seed)
    matrices = [rng.standard_normal((max(rank, 1), d)) * min(rank, 1) for rank in ranks]
    return fg.RegressionTasks(
        matrices, [rng.standard_normal((len(X),) if outputs is None else (len(X), outputs)) for X in matrices]
    )


SOLVABLE = fg.families.gaussian(T=5, d=9, rank=2, seed=1)
MIXED = tasks((1, 3, 2, 1, 2), 5)
EMPTY = tasks((1, 0, 2), 4)  # a task of rank 0
SEVERAL = tasks((2, 1, 1, 2), 4, outputs=2)
CLONES = fg.families.repeated(tasks((1, 2, 1), 4), 3)
#: problem, quantities, and more arguments of `expect`
CASES = {
    "solvable": (SOLVABLE, (*PLAIN, "error"), {}),
    "no common solution, mixed ranks": (MIXED, PLAIN, {}),
    "a task of rank 0": (EMPTY, PLAIN, {}),
    "several outputs": (SEVERAL, PLAIN, {}),
    "clones": (CLONES, PLAIN, {}),
    "weights": (MIXED, PLAIN, {"ordering": fg.orderings.WithReplacement(p=[1, 2, 3, 0, 4])}),
    "start": (SOLVABLE, PLAIN, {"w0": np.linspace(-1, 2, 9)}),
    "noise": (SOLVABLE, PLAIN, {"noise": 0.3}),
    "held-out rows": (MIXED, HELD_OUT, {"test": tasks((2, 4, 1, 3, 2), 5, seed=7)}),
    "held-out covariance": (SOLVABLE, HELD_OUT, {"test": np.eye(9), "noise": 0.1}),
    "averaged": (MIXED, AVERAGED, {}),
    "averaged, several outputs": (SEVERAL, AVERAGED, {}),
    "gradient steps": (MIXED, PLAIN, {"scheme": fg.schemes.SGD(0.5)}),
    "gradient steps on the loss": (MIXED, PLAIN, {"scheme": fg.schemes.SGD(0.01, objective="loss")}),
    "a few steps": (SOLVABLE, PLAIN, {"scheme": fg.schemes.FiniteSteps(3, 0.02)}),
    "ridge": (SEVERAL, PLAIN, {"scheme": fg.schemes.Ridge(0.7)}),
    "too large steps": (MIXED, PLAIN, {"scheme": fg.schemes.SGD(2.2)}),
}


def compare(here, there, rtol=1e-12, *, with_doubt=False):
    """The same numbers, and differences that the uncertainties explain."""
    assert set(here.values) == set(there.values)
    for name, value in here.values.items():
        known = ~np.isnan(value)
        assert np.array_equal(known, ~np.isnan(there.values[name])), name
        finite = known & np.isfinite(value)
        assert np.array_equal(value[known & ~finite], there.values[name][known & ~finite]), name
        off = np.abs(value[finite] - there.values[name][finite])
        doubt = (here.uncertainty[name] + there.uncertainty[name])[finite]
        assert np.all(off <= doubt), name
        assert np.all(off <= rtol * np.abs(value[finite]) + with_doubt * doubt), name


def both(case, device, k, method, **more):
    problem, quantities, options = CASES[case]
    options = {"ordering": DRAWS, **options, "k": k, "quantities": quantities, "method": method, **more}
    return fg.expect(problem, **options), fg.expect(problem, device=device, **options)


@pytest.mark.parametrize("case", CASES)
def test_moments_equal_those_of_the_cpu(case, device):
    here, there = both(case, device, [0, 1, 2, 7, 30], "moments")
    compare(here, there)
    assert "16 digits, on " in there.detail


@pytest.mark.parametrize("dense", [True, False], ids=["diagonalised", "Lanczos"])
@pytest.mark.parametrize("case", [case for case in CASES if not case.startswith("averaged")])
def test_the_spectrum_equals_that_of_the_cpu(case, dense, device, monkeypatch):
    if not dense:
        monkeypatch.setattr(spectral, "DENSE_LIMIT", 0)
        monkeypatch.setattr(spectral, "ONE_RUN_LIMIT", 0)
    ks = [0, 1, 7, 30, 500] if case != "too large steps" else [0, 1, 7, 30]
    here, there = both(case, device, ks, "spectral")
    compare(here, there, with_doubt=True)
    assert ", on " in there.detail


def test_the_limit_equals_that_of_the_cpu(device):
    for case in ("solvable", "no common solution, mixed ranks", "several outputs", "held-out rows"):
        here, there = both(case, device, [3, np.inf], "spectral")
        compare(here, there, with_doubt=True)


@pytest.mark.slow
def test_uncertainties_hold_where_digits_are_lost(device):
    """Lines that nearly coincide: losses are a tiny part of |z|^2, and the CPU computes them with 31 digits."""
    for theta in (1e-2, 1e-4, 1e-6):
        lines = fg.families.two_lines(theta)
        here = fg.expect(lines, DRAWS, [1, 10, 1000], quantities=PLAIN, method="moments")
        there = fg.expect(lines, DRAWS, [1, 10, 1000], quantities=PLAIN, method="moments", device=device)
        compare(here, there, rtol=1.0)
        assert "31 digits" in here.detail


@pytest.mark.parametrize("case", CASES)
def test_uncertainties_are_those_of_float64_on_the_cpu(case, device, monkeypatch):
    monkeypatch.setattr(exact_engines, "QUICK", 0.0)
    monkeypatch.setattr(exact_engines, "ENOUGH", np.inf)
    here, there = both(case, device, [0, 1, 2, 7, 30], "moments")
    assert "16 digits" in here.detail
    for name, doubt in here.uncertainty.items():
        np.testing.assert_allclose(there.uncertainty[name], doubt, rtol=1e-6, err_msg=name)


def test_values_that_float64_cannot_hold_are_infinite_there_too(device):
    for method in ("moments", "spectral"):
        options = {"k": [1, 10, 40], "scheme": fg.schemes.SGD(1e8), "quantities": PLAIN, "method": method}
        here, there = (fg.expect(MIXED, DRAWS, device=where, **options) for where in (None, device))
        compare(here, there, with_doubt=True)
        assert there.loss[-1] == np.inf


def test_parts_that_fit_give_the_same_values(device, monkeypatch):
    whole = both("no common solution, mixed ranks", device, [5, 20], "moments")[1]
    monkeypatch.setattr(float64_moments, "PART_THERE", 1)
    compare(whole, both("no common solution, mixed ranks", device, [5, 20], "moments")[1], rtol=1e-14)


def test_the_maps_are_those_of_the_cpu_and_symmetric(device):
    for problem in (MIXED, EMPTY, SEVERAL, CLONES):
        here, there = (moment_map(ask(problem, DRAWS, 1, device=where).request) for where in (None, device))
        random = np.random.default_rng(0).standard_normal((4, here.size, here.size))
        stack = random + np.swapaxes(random, 1, 2)
        put, take = there.device.put, there.device.take
        for matrices in (stack, stack[0]):
            mapped = take(there.apply(put(matrices)))
            np.testing.assert_allclose(mapped, here.apply(matrices), rtol=0, atol=1e-13)
            assert np.array_equal(mapped, np.swapaxes(mapped, -1, -2))
            for task in range(problem.geometry.num_distinct):
                np.testing.assert_allclose(
                    take(there.step(task, put(matrices))), here.step(task, matrices), rtol=0, atol=1e-13
                )
            pushes = np.random.default_rng(1).standard_normal((problem.geometry.num_distinct, here.size, 2))
            pulled = here.pulled(matrices, pushes)
            np.testing.assert_allclose(take(there.pulled(put(matrices), put(pushes))), pulled, rtol=0, atol=1e-12)


def test_auto_prefers_methods_of_the_device(device):
    found = fg.expect(SOLVABLE, DRAWS, [10], device=device)
    assert found.method == "moments"
    assert ", on " in found.detail


def test_auto_says_what_the_cpu_computed(device):
    here, there = (fg.expect(SOLVABLE, "without-replacement", 4, device=where) for where in (None, device))
    assert there.method == here.method == "subsets"
    assert there.loss == here.loss
    assert any("computed on the CPU: the method 'subsets' cannot compute on" in note for note in there.notes)
    assert not any("computed on the CPU" in note for note in here.notes)


def test_a_method_without_a_form_for_devices_is_refused(device):
    with pytest.raises(
        NotSupportedError, match=r"'monte-carlo' cannot compute on .*the methods 'moments' and 'spectral'"
    ):
        fg.expect(SOLVABLE, DRAWS, 4, method="monte-carlo", device=device)


def test_schedules_and_decay_equal_those_of_the_cpu(device):
    tasks = fg.families.gaussian(T=4, d=7, rank=[1, 2, 1, 2], seed=0)
    scheme = fg.schemes.Scheduled(lambda t: fg.schemes.Decay(1 - 1 / (t + 1), fg.schemes.Ridge(0.1 * t)))
    names = ("loss", "forgetting", "regret", "averaged_loss")
    here, there = (
        fg.expect(tasks, "with-replacement", [1, 4], scheme, quantities=names, method="moments", device=where)
        for where in (None, device)
    )
    for name in names:
        off = here.uncertainty[name] + there.uncertainty[name]
        assert np.all(np.abs(here.values[name] - there.values[name]) <= off), name
