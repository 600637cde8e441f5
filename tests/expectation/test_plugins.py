"""Engines, quantities, orderings and schemes that are defined outside the package work in `expect`."""

import itertools

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.expectation import (
    HALF_SQUARED_DISTANCE,
    LOSS,
    Cost,
    Engine,
    Form,
    Outcome,
    Quantity,
    Term,
    engines,
    quantities,
    register_engine,
    register_quantity,
)
from forgetting.expectation.engines.exact import sums_of_terms
from forgetting.orderings import laws

GAUSSIAN = fg.families.gaussian(T=4, d=6, rank=2, seed=0)
BALLS = fg.ConvexSets([fg.Ball([0.0, 0.0], 1.0), fg.Ball([1.5, 0.0], 1.0), fg.Halfspace([0.0, 1.0], 0.2)])
WR, WOR = fg.orderings.WithReplacement(), fg.orderings.WithoutReplacement()


class AllOrders(Engine):
    """The mean loss over all permutations, one run each, whatever the tasks are."""

    name = "all-orders"

    def covers(self, request):
        if request.law != laws.Permutation():
            return f"it does not cover {request.ordering}"
        if [quantity.name for quantity in request.quantities] != ["loss"]:
            return "it knows the loss alone"
        return None

    def cost(self, request):
        count = len(list(itertools.permutations(range(request.problem.num_tasks))))
        return Cost(8.0 * count * len(request.steps), 1e-3 * count)

    def solve(self, request):
        orders = itertools.permutations(range(request.problem.num_tasks))
        runs = [
            fg.run(request.problem, fg.orderings.Explicit(order), len(order), request.scheme, w0=request.w0)
            for order in orders
        ]
        return Outcome("all orders", {"loss": np.mean([run.losses[request.steps] for run in runs], axis=0)})


@pytest.fixture
def all_orders():
    register_engine(AllOrders)
    yield
    engines.remove("all-orders")


def test_an_engine_that_evaluates_terms_alone_has_every_sum_of_them():
    class Terms(Engine):
        """Means over all permutations of forms along runs; it knows terms, and no quantity."""

        name = "terms-alone"

        def covers(self, request):
            return None if request.law == laws.Permutation() else f"it does not cover {request.ordering}"

        def cost(self, request):
            return Cost(1e3, 1e3)

        def solve(self, request):
            orders = [
                fg.orderings.Explicit(order) for order in itertools.permutations(range(request.problem.num_tasks))
            ]
            runs = [fg.run(request.problem, order, request.last, request.scheme, w0=request.w0) for order in orders]
            return Outcome("all orders", *sums_of_terms(request, None, lambda *asked: mean(runs, *asked)))

    def mean(runs, term, steps):
        values = [[form_of(run, term.form.along(run), term.average, k) for k in steps] for run in runs]
        return np.mean(values, axis=0), np.full(np.shape(values)[1:], 1e-12)

    def form_of(run, table, average, k):
        tasks, t = run.order[:k], np.arange(k)
        parts = {"tasks": table[k], "visited": table[k, tasks], "kept": table[t + 1, tasks], "learnt": table[t, tasks]}
        return table[k] if average == "each" else np.sum(parts[average]) / max(len(parts[average]), 1)

    register_engine(Terms)
    try:
        tasks, names = (
            fg.families.gaussian(4, 6, 2, seed=0),
            ("loss", "forgetting", "regret", "seen_loss", "task_losses"),
        )
        ours, exact = (
            fg.expect(tasks, WOR, [0, 1, 3], fg.schemes.Ridge(0.3), quantities=names, method=method)
            for method in ("terms-alone", "subsets")
        )
    finally:
        engines.remove("terms-alone")
    for name in names:
        np.testing.assert_allclose(ours.values[name], exact.values[name], rtol=1e-9, atol=1e-12, err_msg=name)
    assert ours.forgetting[1] == 0
    assert np.isnan(ours.forgetting[0])


def test_an_engine_from_outside_is_chosen_by_name_and_by_auto(all_orders):
    class Restless(fg.schemes.Scheme):
        """A scheme that might draw random numbers, so that the orders are not listed."""

        random = True

        def learn(self, problem, task, w, memory):
            return fg.schemes.Learned(problem.project(task, w))

    start, scheme = [4.0, -1.0], Restless()
    simulated = fg.expect(BALLS, WOR, [1, 3], scheme, start, quantities="loss", method="monte-carlo", confidence=0.9999)
    by_auto = fg.expect(BALLS, WOR, [1, 3], scheme, start, quantities="loss")  # only this engine is exact for it
    assert (by_auto.method, by_auto.exact) == ("all-orders", True)
    assert np.all((simulated.loss_interval[:, 0] <= by_auto.loss) & (by_auto.loss <= simulated.loss_interval[:, 1]))
    by_name = fg.expect(GAUSSIAN, WOR, [1, 4], quantities="loss", method="all-orders")
    np.testing.assert_allclose(by_name.loss, fg.expect(GAUSSIAN, WOR, [1, 4], method="subsets").loss, rtol=1e-12)
    assert fg.expect(GAUSSIAN, WOR, [1, 4], quantities="loss").method == "subsets"  # more accurate: registered before


def test_an_engine_says_what_it_does_not_cover(all_orders):
    with pytest.raises(NotSupportedError, match=r"all-orders.*it knows the loss alone"):
        fg.expect(BALLS, WOR, 2, method="all-orders")
    assert fg.expect(BALLS, WOR, 2, runs=16).method == "listing"
    poor = fg.expect(BALLS, WOR, 2, quantities="loss", memory=1, runs=16)
    assert poor.method == "monte-carlo"
    assert any("'all-orders' was left out: it would need about 48 bytes" in note for note in poor.notes)


def test_names_of_engines_and_quantities_are_taken_once():
    with pytest.raises(InvalidInputError, match="no method 'all-orders'"):
        fg.expect(BALLS, WOR, 2, method="all-orders")
    with pytest.raises(InvalidInputError, match="already a quantity 'loss'"):
        register_quantity(Quantity("loss", "something else"))
    with pytest.raises(InvalidInputError, match="names or Quantity objects"):
        fg.expect(GAUSSIAN, WR, 2, quantities=(3,))
    with pytest.raises(InvalidInputError, match="average must be one of"):
        Quantity("odd", "", "some")
    with pytest.raises(InvalidInputError, match="only the average over visits"):
        Quantity("odd", "", "tasks", subtracts_kept=True)


# --------------------------------------------------------------------------------------------------------- quantities


class FourthPower(Form):
    """|X^T (X w - y)|^2 / 2, half the squared gradient of each task."""

    def weights(self, squares):
        return squares * squares


def gradients(tasks, w):
    parts = [tasks.task(m) for m in range(tasks.num_tasks)]
    return np.array([0.5 * np.sum((X.T @ (X @ w - y)) ** 2) for X, y in parts])


def residuals(tasks, w):
    return 0.5 * tasks.distances(w) ** 2


FORMS = {"residual": (HALF_SQUARED_DISTANCE, residuals), "gradient": (FourthPower(), gradients)}
LAWS = {
    "moments": (WR, lambda T, k: list(itertools.product(range(T), repeat=k + 1))),
    "spectral": (WR, lambda T, k: list(itertools.product(range(T), repeat=k + 1))),
    "subsets": (WOR, lambda T, k: list(itertools.permutations(range(T)))),
    "deterministic": (fg.orderings.Explicit([2, 0, 0, 1]), lambda T, k: [(2, 0, 0, 1)]),
}


def family(form):
    """The form, averaged in every way that there is."""
    return (
        Quantity("tasks", "", "tasks", form),
        Quantity("each", "", "each", form),
        Quantity("visited", "", "visited", form),
        Quantity("lost", "", "visited", form, subtracts_kept=True),
        Quantity("learnt", "", "learnt", form),
        Quantity("next", "", "next", form),
        Quantity("surprise", "", (Term("next", form), Term("visited", form, -1.0))),
        Quantity("mixed", "", (Term("kept", form, 0.5), Term("learnt", LOSS, -2.0), Term("visited", form, 0.25))),
    )


def enumerated(tasks, orders, k, scheme, value):
    names = ("tasks", "each", "visited", "lost", "learnt", "next", "surprise", "mixed")
    total = dict.fromkeys(names, 0.0)
    for order in orders:
        run = fg.run(tasks, fg.orderings.Explicit(order), len(order), scheme)
        table = np.array([value(tasks, w) for w in run.iterates])
        now, past = table[k], list(order[:k])
        total["tasks"] += now.mean() / len(orders)
        total["each"] = total["each"] + now / len(orders)
        total["visited"] += now[past].mean() / len(orders)
        total["lost"] += np.mean([now[m] - table[t + 1, m] for t, m in enumerate(past)]) / len(orders)
        total["learnt"] += np.mean([table[t, m] for t, m in enumerate(past)]) / len(orders)
        total["next"] += now[order[k]] / len(orders)
        total["surprise"] += (now[order[k]] - now[past].mean()) / len(orders)
        kept = np.mean([table[t + 1, m] for t, m in enumerate(past)])
        total["mixed"] += (0.5 * kept - 2.0 * run.before[:k].mean() + 0.25 * now[past].mean()) / len(orders)
    return total


@pytest.mark.parametrize("scheme", [fg.schemes.Kaczmarz(), fg.schemes.Ridge(0.7)], ids=str)
@pytest.mark.parametrize("method", LAWS)
@pytest.mark.parametrize("form", FORMS)
def test_forms_from_outside_agree_with_enumeration_however_they_are_averaged(form, method, scheme):
    (ordering, orders), (weights, value), k = LAWS[method], FORMS[form], 3
    expected = enumerated(GAUSSIAN, orders(4, k), k, scheme, value)
    e = fg.expect(GAUSSIAN, ordering, k, scheme, method=method, quantities=family(weights))
    simulated = fg.expect(
        GAUSSIAN, ordering, k, scheme, method="monte-carlo", quantities=family(weights), runs=256, confidence=0.99999
    )
    assert e.exact
    for name, true in expected.items():
        np.testing.assert_allclose(e.values[name], true, rtol=1e-11, atol=1e-12, err_msg=name)
        assert np.all(np.abs(e.values[name] - true) <= e.uncertainty[name] + 1e-11 * np.abs(true) + 1e-13), name
        low, high = np.moveaxis(simulated.interval(name), -1, 0)
        assert np.all((low <= np.asarray(true) + 1e-12) & (np.asarray(true) <= high + 1e-12)), name


UNSOLVED = fg.RegressionTasks(
    [[[1.0, 0.5]], [[0.0, 2.0], [1.0, 1.0], [1.0, -1.0]], [[1.0, -1.0]]], [[1.0], [0.5, -1.0, 2.0], [3.0]]
)
SURPRISE = Quantity("surprise", "next loss less seen loss", (Term("next"), Term("visited", coefficient=-1.0)))
SHARES = Quantity("shares", "of each task", (Term("each"), Term("each", HALF_SQUARED_DISTANCE, -0.5)))


@pytest.mark.parametrize("scheme", [fg.schemes.Kaczmarz(), fg.schemes.SGD(0.3, objective="loss")], ids=str)
@pytest.mark.parametrize("method", LAWS)
def test_new_combinations_agree_with_enumeration_where_no_w_solves_the_tasks(method, scheme):
    ordering, orders = LAWS[method]
    ordering = fg.orderings.Explicit([2, 0, 0, 1]) if method == "deterministic" else ordering
    for k in (0, 1, 2):
        expected, shares = 0.0, 0.0
        listed = orders(3, k)
        for order in listed:
            run = fg.run(UNSOLVED, fg.orderings.Explicit(order), len(order), scheme)
            now = run.loss_matrix[k]
            expected += (now[order[k]] - (now[list(order[:k])].mean() if k else np.nan)) / len(listed)
            shares = shares + (now - 0.25 * UNSOLVED.distances(run.iterates[k]) ** 2) / len(listed)
        e = fg.expect(UNSOLVED, ordering, k, scheme, method=method, quantities=(SURPRISE, SHARES))
        drawn = fg.expect(
            UNSOLVED, ordering, k, scheme, method="monte-carlo", quantities=SURPRISE, runs=512, confidence=0.99999
        )
        np.testing.assert_allclose(e.values["shares"], shares, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(e.values["surprise"], expected, rtol=1e-11, atol=1e-12)
        low, high = drawn.interval("surprise")
        assert np.isnan(expected) or low - 1e-12 <= expected <= high + 1e-12
        if k:
            assert abs(e.values["surprise"] - expected) <= e.uncertainty["surprise"] + 1e-13 * max(1, abs(expected))


def test_new_combinations_agree_in_the_limit_and_with_all_digits(monkeypatch):
    from forgetting.expectation.engines import exact as exact_engines

    mixed = Quantity("mixed", "", (Term("kept", coefficient=3.0), Term("tasks", HALF_SQUARED_DISTANCE, -1.0)))
    names, scheme = (SURPRISE, mixed), fg.schemes.SGD(0.6)
    e = fg.expect(UNSOLVED, fg.orderings.WithReplacement(p=[1, 2, 3]), [4, 10**9, np.inf], scheme, quantities=names)
    assert e.method == "spectral"
    monkeypatch.setattr(exact_engines, "ENOUGH", 0.0)  # decimal numbers
    digits = fg.expect(UNSOLVED, fg.orderings.WithReplacement(p=[1, 2, 3]), 4, scheme, quantities=names)
    assert "some values with" in digits.detail
    for name in ("surprise", "mixed"):
        value, off = e.values[name], e.uncertainty[name]
        assert abs(value[0] - digits.values[name]) <= off[0] < 1e-9
        assert abs(value[1] - value[2]) <= 1e-8 + off[1] + off[2]
    assert abs(e.values["surprise"][2]) < 1e-9  # in the long run the next task is drawn as those before were


def test_terms_that_cancel_leave_nothing_and_odd_sums_are_refused():
    nothing = Quantity("nothing", "", (Term("visited"), Term("visited", coefficient=-1.0)))
    for method in ("moments", "spectral", "monte-carlo"):
        e = fg.expect(GAUSSIAN, WR, [1, 3], method=method, quantities=nothing, runs=8)
        assert e.values["nothing"].tolist() == [0.0, 0.0]
    assert nothing.after(3) == ()
    assert nothing.certain_at == 1
    with pytest.raises(InvalidInputError, match="belong to each of the terms"):
        Quantity("odd", "", (Term("next"),), form=HALF_SQUARED_DISTANCE)
    with pytest.raises(InvalidInputError, match="all or none of them for 'each' task"):
        Quantity("odd", "", (Term("each"), Term("tasks")))
    with pytest.raises(InvalidInputError, match="coefficient must be finite"):
        Term("next", coefficient=np.nan)
    with pytest.raises(InvalidInputError, match="a Term"):
        Quantity("odd", "", ("next", "visited"))


def test_a_registered_quantity_is_known_by_its_name_and_covers_other_tasks():
    register_quantity(Quantity("residual", "mean half squared distance to the tasks", form=HALF_SQUARED_DISTANCE))
    try:
        sets = fg.expect(BALLS, WR, [1, 2], w0=[4.0, -1.0], quantities=("loss", "residual"), method="monte-carlo")
        np.testing.assert_allclose(sets.values["residual"], sets.loss)  # of sets, the loss is the residual
        assert "residual" in str(sets)
        assert "betting" in sets.detail
    finally:
        quantities.remove("residual")


def test_a_form_that_knows_regression_alone_says_so():
    with pytest.raises(NotSupportedError, match="FourthPower is a form of regression tasks"):
        fg.expect(BALLS, WR, 2, quantities=Quantity("gradient", "", form=FourthPower()), runs=4)


# ----------------------------------------------------------------------------------------------- orderings and schemes


class Lottery(fg.orderings.Ordering):
    law = laws.Independent([1, 2, 3, 4])


class Deck(fg.orderings.Ordering):
    law = laws.Permutation()


class Decks(fg.orderings.Ordering):
    law = laws.Reshuffled()


class Program(fg.orderings.Ordering):
    law = laws.Fixed([3, 1, 1, 0])


class Unlimited(fg.orderings.Ordering):
    """Ends after four tasks without saying so."""

    random = False

    def visits(self, tasks, rng):
        yield from (3, 1, 1, 0)


class Halfway(fg.schemes.Scheme):
    """Halfway to the solution of the task that is nearest: SGD with step size 1/2."""

    def learn(self, problem, task, w, memory):
        return fg.schemes.Learned((w + problem.project(task, w)) / 2)

    def linear_on(self, problem):
        return None if problem.geometry is None else fg.schemes.SGD(0.5)


@pytest.mark.parametrize(
    ("own", "ours", "ks"),
    [
        (Lottery(), fg.orderings.WithReplacement([1, 2, 3, 4]), [0, 3, 7]),
        (Deck(), WOR, [0, 2, 4]),
        (Decks(), fg.orderings.Reshuffled(), [0, 4, 6]),
        (Program(), fg.orderings.Explicit([3, 1, 1, 0]), [1, 4]),
        (Unlimited(), fg.orderings.Explicit([3, 1, 1, 0]), [1, 4]),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize(("scheme", "same"), [(None, None), (Halfway(), fg.schemes.SGD(0.5))], ids=["natural", "own"])
def test_orderings_and_schemes_from_outside_have_exact_expectations(own, ours, ks, scheme, same):
    names = tuple(
        name for name in quantities if quantities.get(name).form.quadratic and not quantities.get(name).held_out
    )
    a = fg.expect(GAUSSIAN, own, ks, scheme, quantities=names)
    b = fg.expect(GAUSSIAN, ours, ks, same, quantities=names)
    assert a.method == b.method != "monte-carlo"
    for name in names:
        np.testing.assert_allclose(a.values[name], b.values[name], rtol=1e-14, atol=0, err_msg=name)


# ----------------------------------------------------------------------------------------------------- seen and next


def test_the_next_task_is_one_not_visited_yet_and_there_is_none_at_the_end():
    e = fg.expect(GAUSSIAN, WOR, range(5), quantities=("loss", "seen_loss", "next_loss"))
    k = np.arange(4)
    seen = np.nan_to_num(e.seen_loss[:4])
    np.testing.assert_allclose(e.next_loss[:4], (4 * e.loss[:4] - k * seen) / (4 - k), rtol=1e-13)
    assert np.isnan(e.next_loss).tolist() == [False] * 4 + [True]
    assert "next_loss at k = 4: no task comes next, nan" in e.notes
    explicit = fg.expect(GAUSSIAN, fg.orderings.Explicit([2, 0]), [1, 2], quantities=("next_loss", "task_losses"))
    assert explicit.next_loss[0] == pytest.approx(explicit.task_losses[0, 0], rel=1e-14)
    assert np.isnan(explicit.next_loss[1])


def test_the_next_task_of_a_greedy_ordering_is_the_one_it_would_choose():
    for scheme in (None, fg.schemes.NLMS()):
        e = fg.expect(GAUSSIAN, fg.orderings.GreedyResidual(), [0, 5], scheme, quantities=("next_loss", "task_losses"))
        np.testing.assert_allclose(e.next_loss, e.task_losses.max(axis=1), rtol=1e-12)


def test_regret_is_the_mean_of_the_next_losses_on_the_way():
    for ordering in (WR, fg.orderings.NormWeighted(), fg.orderings.Reshuffled(), fg.orderings.Cyclic()):
        e = fg.expect(GAUSSIAN, ordering, range(7), quantities=("regret", "next_loss"))
        np.testing.assert_allclose(e.regret[1:], np.cumsum(e.next_loss)[:-1] / np.arange(1, 7), rtol=1e-13)


@pytest.mark.parametrize("scheme", [None, fg.schemes.NLMS(), fg.schemes.SGD(0.6)], ids=str)
def test_seen_and_next_losses_are_simulated_within_their_intervals(scheme):
    names, same = ("seen_loss", "next_loss"), None if isinstance(scheme, fg.schemes.NLMS) else scheme
    lines = fg.families.repeated(fg.families.two_lines(0.7), 3)  # tasks of one row: NLMS is Kaczmarz
    for ordering, ks in ((WR, [1, 4]), (WOR, [1, 5]), (fg.orderings.Reshuffled(), [6, 9])):
        exact = fg.expect(lines, ordering, ks, same, quantities=names)
        e = fg.expect(lines, ordering, ks, scheme, method="monte-carlo", quantities=names, runs=512, confidence=0.9999)
        for name in names:
            low, high = np.moveaxis(e.interval(name), -1, 0)
            assert np.all((low <= exact.values[name]) & (exact.values[name] <= high)), (name, ordering)
            assert "betting" in e.detail


def test_seen_and_next_losses_of_tasks_that_no_w_solves_hold_what_no_w_fits():
    tasks = fg.RegressionTasks([[[1.0], [1.0]], [[2.0]]], [[1.0, 2.0], [1.0]])
    names = ("seen_loss", "next_loss", "task_losses")
    e = fg.expect(tasks, fg.orderings.Cyclic(), [1, 2], quantities=names)
    run = fg.run(tasks, fg.orderings.Cyclic(), 3)
    np.testing.assert_allclose(e.seen_loss, [run.loss_matrix[1, 0], run.loss_matrix[2].mean()], rtol=1e-12)
    np.testing.assert_allclose(e.next_loss, run.before[1:], rtol=1e-12)
    assert e.seen_loss[0] >= 0.25 - 1e-12
    random = fg.expect(tasks, WR, 1, method="moments", quantities="seen_loss")
    np.testing.assert_allclose(random.seen_loss, 0.5 * (0.25 + 0.0), rtol=1e-12)  # of the task that was learned


@pytest.mark.parametrize("scheme", [fg.schemes.NLMS(0.5), fg.schemes.SGD(0.5)], ids=str)
def test_the_mean_of_the_iterates_is_simulated_within_its_intervals(scheme):
    same = fg.schemes.SGD(0.5)
    names = ("averaged_loss", "averaged_task_losses")
    lines = fg.families.two_lines(0.7)
    exact = fg.expect(lines, WR, [1, 6], same, quantities=names)
    e = fg.expect(lines, WR, [1, 6], scheme, method="monte-carlo", quantities=names, runs=400, seed=3)
    for name in names:
        low, high = np.moveaxis(e.interval(name), -1, 0)
        assert np.all((low - 1e-12 <= exact.values[name]) & (exact.values[name] <= high + 1e-12)), name
        assert np.all(high[0] - low[0] == 0)  # the mean of one iterate is w_0
        assert np.all(high[1] > low[1])


def test_the_mean_of_the_iterates_is_for_forms_of_tasks_and_not_for_the_spectrum():
    with pytest.raises(NotSupportedError, match="does not average iterates"):
        fg.expect(GAUSSIAN, WR, 5, method="spectral", quantities="averaged_loss")
    with pytest.raises(InvalidInputError, match="the mean of the iterates is for"):
        Quantity("mine", "what is forgotten at a mean", "visited", iterate="mean")
    with pytest.raises(InvalidInputError, match="iterate must be 'last' or 'mean'"):
        Quantity("mine", "at no iterate", iterate="first")
    with pytest.raises(NotSupportedError, match="record_every=1"):
        _ = fg.run(GAUSSIAN, WR, k=4, record_every=2).averaged_losses


def test_the_mean_of_the_iterates_of_projections_onto_sets():
    boxes = fg.ConvexSets([fg.sets.Box([0.0, 0.0], [1.0, 1.0]), fg.sets.Halfspace([1.0, 1.0], 1.5)])
    run = fg.run(boxes, fg.orderings.Cyclic(), k=3, w0=[3.0, -1.0])
    mean = run.iterates[:3].mean(axis=0)
    np.testing.assert_allclose(run.averaged_iterates[3], mean, rtol=1e-15)
    e = fg.expect(boxes, fg.orderings.Cyclic(), [0, 3], w0=[3.0, -1.0], quantities="averaged_loss")
    np.testing.assert_allclose(e.averaged_loss, [np.nan, boxes.task_losses(mean).mean()], rtol=1e-14)
    np.testing.assert_allclose(run.averaged_losses[[0, 3]], e.averaged_loss, rtol=1e-14)


@pytest.mark.parametrize("ordering", [WOR, WR, fg.orderings.Reshuffled()], ids=str)
def test_what_was_just_learned_has_an_uncertainty_of_its_own_that_bounds_its_error(ordering):
    just_learned = Quantity("just learned", "", (Term("learnt", HALF_SQUARED_DISTANCE),))
    rows = [[[1.0, 0.3]], [[0.2, 1.0]], [[0.7, 0.6]], [[1.0, 0.3]]]
    noisy = fg.RegressionTasks(rows, [[1.0], [2.0], [-1.0], [3.0]])
    half = fg.schemes.SGD(0.5)
    made = fg.expect(noisy, ordering, 4, scheme=half, quantities=(just_learned,))
    orders = itertools.product(range(4), repeat=4) if ordering is WR else itertools.permutations(range(4))
    runs = [fg.run(noisy, fg.orderings.Explicit(order), 4, scheme=half) for order in orders]
    by_hand = np.mean([sum(run.residuals[t + 1, task] ** 2 / 2 for t, task in enumerate(run.order)) for run in runs])
    doubt = float(made.uncertainty["just learned"])
    assert 0 < doubt < 1e-12
    assert abs(float(made.values["just learned"]) - by_hand) <= doubt + 1e-14


@pytest.mark.parametrize("ordering", [WOR, fg.orderings.Reshuffled()], ids=str)
def test_the_doubts_of_nearly_equal_tasks_reach_what_was_just_learned(ordering):
    tasks = fg.RegressionTasks([[[1.0, 1e-6]], [[1.0, -1e-6]], [[1.0, 0.0]]], [[1.0], [2.0], [-1.0]])
    relative = {}
    for average in ("visited", "learnt"):
        only = Quantity("only", "", (Term(average, HALF_SQUARED_DISTANCE),))
        made = fg.expect(tasks, ordering, 3, quantities=(only,), method="subsets")
        relative[average] = float(made.uncertainty["only"] / made.values["only"])
    assert relative["visited"] > 1.5 * np.finfo(float).eps  # more than the rounding of the value itself
    assert relative["learnt"] > 0.6 * relative["visited"]
