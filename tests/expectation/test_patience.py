"""What exactness costs, how long `auto` waits for it, and what it says of exact values that it did not wait for."""

import re
from dataclasses import replace

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import InvalidInputError, PatienceError
from forgetting.expectation import Cost, Engine, Outcome, engines, register_engine
from forgetting.expectation.api import ask
from forgetting.expectation.engines import choose

WR = fg.orderings.WithReplacement()
SMALL = fg.families.gaussian(T=4, d=6, rank=2, seed=0)
LARGE = fg.families.gaussian(T=40, d=80, rank=2, seed=0)
APART = fg.RegressionTasks(np.ones((9, 2, 1)) * np.arange(1, 10)[:, None, None], np.arange(18.0).reshape(9, 2))  # no w
BALLS = fg.ConvexSets([fg.Ball([0.0, 0.0], 1.0), fg.Ball([1.5, 0.0], 1.0)])


def seconds(tasks, method, k, quantities, ordering=WR):
    return engines.get(method).cost(ask(tasks, ordering, k, quantities=quantities).request).seconds


@pytest.mark.parametrize("method", ["moments", "spectral"])
def test_forgetting_costs_a_multiple_of_the_loss_with_replacement(method):
    # one matrix, or one run of Lanczos, for each of 40 tasks
    loss, forgetting = (seconds(LARGE, method, 10**4, name) for name in ("loss", "forgetting"))
    assert 10 * loss < forgetting < 400 * loss
    assert seconds(LARGE, method, 10**4, ("loss", "forgetting")) == pytest.approx(forgetting, rel=0.2)


def test_forgetting_costs_as_much_as_the_loss_without_replacement():
    tasks = fg.families.gaussian(T=12, d=20, rank=1, seed=0)
    order = fg.orderings.WithoutReplacement()
    assert seconds(tasks, "subsets", 12, "loss", order) == seconds(tasks, "subsets", 12, "forgetting", order)


def test_costs_grow_with_k_and_with_the_number_of_tasks_and_clones_are_free():
    assert seconds(SMALL, "moments", 10**6, "loss") > 50 * seconds(SMALL, "moments", 10**4, "loss")
    cost = {T: seconds(fg.families.gaussian(T, 10, 1, seed=0), "subsets", T, "loss", fg.orderings.Reshuffled())
            for T in (10, 14)}  # fmt: skip
    assert 8 * cost[10] < cost[14] < 64 * cost[10]
    clones = fg.families.repeated(SMALL, 10)
    assert seconds(clones, "moments", 1000, "forgetting") < 2 * seconds(SMALL, "moments", 1000, "forgetting")


def test_auto_simulates_what_takes_longer_than_its_patience_and_says_what_costs_how_much():
    e = fg.expect(LARGE, WR, 1000, patience=1.0, runs=16)
    assert (e.method, e.runs) == ("monte-carlo", 16)
    (note,) = e.notes
    said = re.fullmatch(
        r"exact forgetting would take about (\S+) s by the method '\w+' \(loss alone (\S+) s\): "
        r"raise patience= \(1 s\), or ask for loss alone",
        note,
    )
    assert said is not None, note
    assert float(said[1]) > 1 > 10 * float(said[2])
    assert note in str(e)
    alone = fg.expect(LARGE, WR, 1000, quantities="loss", patience=1.0)
    assert alone.exact
    assert alone.notes == ()


def test_where_all_quantities_cost_alike_none_is_named():
    e = fg.expect(LARGE, WR, 1000, quantities=("forgetting", "seen_loss"), patience=1.0, runs=16)
    (note,) = e.notes
    assert re.fullmatch(r"exact values would take about \S+ s by the method '\w+': raise patience= .*", note)


def test_a_longer_patience_and_a_named_method_are_exact():
    for options in ({}, {"patience": np.inf}, {"patience": 1e-9, "method": "moments"}):
        e = fg.expect(SMALL, WR, 10, **options)
        assert (e.method, e.notes) == ("moments", ())
    assert fg.expect(SMALL, WR, 10, patience=1e-9, runs=16).method == "monte-carlo"


@pytest.mark.parametrize("patience", [0, -1.0, "long", None, float("nan"), -np.inf, [1.0], np.array([1.0, 2.0])])
def test_patience_is_a_positive_number(patience):
    with pytest.raises(InvalidInputError, match="patience must be"):
        fg.expect(SMALL, WR, 10, patience=patience)


def test_exact_values_that_no_simulation_has_sooner_are_not_given_up():
    # 4096 runs of 10^7 steps take hours, and do not fit in memory
    e = fg.expect(SMALL, WR, 10**7, patience=1e-4)
    assert (e.method, e.exact) == ("spectral", True)
    assert re.search(r"more than patience= \(0.0001 s\), but a simulation of 128 runs would (take|not fit)", e.notes[0])


@pytest.mark.parametrize("k", [10**6, 10**15])
def test_what_takes_too_long_in_every_way_is_refused_before_it_starts_with_what_each_way_costs(k):
    with pytest.raises(PatienceError, match=rf"k = {k} takes longer than patience= \(0.5 s\)") as refused:
        fg.expect(fg.families.two_lines(0.5), fg.orderings.Reshuffled(), k, patience=0.5, quantities="averaged_loss")
    said = str(refused.value)
    assert "exact values would take about" in said
    assert "by the method 'subsets', and a simulation of 128 runs would" in said
    assert "give a smaller k, a larger patience=, or a method, which has no limit: method='" in said
    assert refused.value.needed > refused.value.allowed == 0.5


@pytest.mark.parametrize("k", [10**6 + 1, 10**15])
def test_reshuffled_orders_of_any_length_are_exact_within_half_a_second(k):
    e = fg.expect(SMALL, fg.orderings.Reshuffled(), k, patience=0.5)
    assert (e.method, e.notes) == ("subsets", ())
    assert "map of an epoch" in e.detail


ROADS = {
    "with replacement": (LARGE, WR, ("loss", "forgetting")),
    "means of iterates": (SMALL, WR, ("averaged_loss",)),
    "reshuffled": (SMALL, fg.orderings.Reshuffled(), ("averaged_loss",)),
    "cyclic": (SMALL, fg.orderings.Cyclic(), ("loss", "forgetting")),
    "greedy": (SMALL, fg.orderings.GreedyDistance(), ("loss",)),
    "a law that no engine knows": (SMALL, fg.orderings.NonRepetitive(), ("loss",)),
    "looking at the iterate": (SMALL, fg.orderings.RelaxedGreedy(), ("loss",)),
    "convex sets": (BALLS, WR, ("loss",)),
    "convex sets, cyclic": (BALLS, fg.orderings.Cyclic(), ("loss",)),
}


@pytest.mark.parametrize("road", ROADS)
def test_auto_takes_no_road_that_is_estimated_to_exceed_its_patience(road):
    tasks, ordering, wanted = ROADS[road]
    refused = 0
    for k in (10, 10**3, 10**5, 10**7, 10**9):
        for patience in (0.5, 20.0):
            request = ask(tasks, ordering, k, quantities=wanted, patience=patience).request
            try:
                engine, _, posed = choose(request)
            except PatienceError:
                refused += 1
                continue
            assert engine.cost(posed).seconds <= patience
    assert refused >= 2 or road == "with replacement"


def test_a_simulation_has_as_many_runs_as_patience_allows_and_says_so():
    order = fg.orderings.Reshuffled()
    e = fg.expect(APART, order, 20_001, patience=0.5, quantities="loss")
    assert (e.method, e.runs) == ("monte-carlo", 512)
    assert "512 runs instead of 4096: more would exceed patience= (0.5 s); or give runs=" in e.notes
    more = choose(ask(APART, order, 20_001, quantities="loss", patience=1.5).request)
    assert more.request.simulation.most == 2048


def test_runs_that_a_caller_asks_for_are_made_or_refused_but_never_fewer():
    with pytest.raises(PatienceError, match=r"a simulation of 99999 runs would take .* give a smaller k, fewer runs"):
        fg.expect(BALLS, WR, 1000, runs=99999, patience=1.0)
    assert fg.expect(BALLS, WR, 25, runs=2000, patience=5.0).runs == 2000


def test_intervals_are_narrowed_only_as_long_as_patience_allows():
    e = fg.expect(BALLS, WR, 100, w0=[4.0, 1.0], rtol=1e-9, patience=0.5)
    assert e.runs == 128
    assert any("rtol = 1e-09 was not reached with 128 runs" in note for note in e.notes)


def test_the_limit_of_k_is_refused_as_well_if_it_takes_too_long():
    wide = fg.families.gaussian(T=3, d=100, rank=30, seed=0)
    with pytest.raises(PatienceError, match=r"k = inf takes longer than patience= \(0.001 s\).*; give finite k, "):
        fg.expect(wide, WR, np.inf, noise=0.1, patience=1e-3)


def test_comparisons_that_are_simulated_have_the_same_limit():
    pair = fg.orderings.Reshuffled(), fg.orderings.NonRepetitive()
    with pytest.raises(PatienceError, match="k = 100000000 takes longer"):
        fg.compare(SMALL, *pair, 10**8, patience=1.0)
    assert fg.compare(SMALL, *pair, 3000, quantities="loss", patience=0.5).runs == 128


def test_want_of_memory_says_which_quantity_needs_it():
    request = ask(LARGE, WR, 100).request
    needed = [engines.get("moments").cost(replace(request, quantities=(q,))).bytes for q in request.quantities]
    e = fg.expect(LARGE, WR, 100, memory=(needed[0] + needed[1]) / 2, runs=16)
    assert e.method == "monte-carlo"
    assert any("'moments' was left out" in note and "forgetting needs that, loss alone would fit" in note
               for note in e.notes)  # fmt: skip


class Patient(Engine):
    """Seconds as they are told: those of the costliest quantity."""

    name = "patient"

    def covers(self, request):
        return None if request.problem is BALLS else "it is for the balls of this test"

    def cost(self, request):
        return Cost(0.0, max(0.5 if quantity.name == "loss" else 25.0 for quantity in request.quantities))

    def solve(self, request):
        return Outcome("told", {quantity.name: np.zeros(len(request.steps)) for quantity in request.quantities})


@pytest.fixture
def patient():
    register_engine(Patient)
    yield
    engines.remove("patient")


@pytest.mark.parametrize(
    ("quantities", "patience", "method", "note"),
    [
        ("loss", 30.0, "patient", None),
        (("loss", "forgetting"), 30.0, "patient",
         "forgetting took most of the time, about 25 s; loss alone would take 0.5 s"),
        (("loss", "regret", "forgetting"), 20.0, "monte-carlo",
         "exact regret and forgetting would take about 25 s by the method 'patient' (loss alone 0.5 s): raise "
         "patience= (20 s), or ask for loss alone"),
        (("loss", "forgetting"), 0.1, "monte-carlo",
         "exact values would take about 25 s by the method 'patient': raise patience= (0.1 s) to have them"),
        (("forgetting", "regret"), 30.0, "patient", None),
    ],
)  # fmt: skip
def test_notes_name_the_quantities_that_cost(patient, quantities, patience, method, note):
    e = fg.expect(BALLS, WR, 60, w0=[4.0, 1.0], quantities=quantities, patience=patience, runs=16)
    assert e.method == method
    assert e.notes == (() if note is None else (note,))


def test_the_default_is_half_a_minute():
    # 40 tasks of rank 2 in 80 dimensions at k = 10^5: minutes for forgetting, a second for the loss
    request = ask(LARGE, WR, 10**5).request
    assert request.patience == 30.0
    assert not choose(request)[0].exact
    assert choose(replace(request, quantities=request.quantities[:1]))[0].exact
    assert choose(replace(request, patience=np.inf))[0].exact


@pytest.mark.parametrize(("method", "ordering"), [("moments", WR), ("subsets", fg.orderings.Reshuffled())])
def test_a_named_method_that_would_never_end_can_be_interrupted(method, ordering):
    def interrupt(name, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fg.expect(SMALL, ordering, 10**15, method=method, progress=interrupt)


def test_a_refusal_of_reshuffled_epochs_says_how_many_dimensions_fit():
    tasks = fg.families.gaussian(T=12, d=36, rank=3, seed=0)
    with pytest.raises(PatienceError, match=r"T = 12 tasks in D = 36 dimensions; D = \d+ would be quick") as error:
        fg.expect(tasks, "reshuffled", 10**9)
    most = int(re.search(r"D = (\d+) would", str(error.value))[1])
    for dim, fits in ((most, True), (most + 1, False)):
        smaller = fg.families.gaussian(T=12, d=dim, rank=3, seed=0)
        assert (seconds(smaller, "subsets", 10**9, "loss", fg.orderings.Reshuffled()) <= 30) is fits
