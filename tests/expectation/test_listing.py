"""Lists of all orders: against enumeration by a script of its own, exact arithmetic and the moments; their costs."""

import itertools
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import forgetting as fg
from effort import rounds
from forgetting.errors import NotSupportedError
from forgetting.expectation import Quantity, Term
from forgetting.expectation.api import ask
from forgetting.expectation.engines import choose, engines, listing
from forgetting.expectation.engines.order_tree import Tree
from forgetting.expectation.quantities import Form

SHARES = ("accuracy", "task_accuracies", "accuracy_forgetting", "incremental_accuracy")
LOSSES = ("loss", "task_losses", "forgetting", "seen_loss", "regret", "next_loss", "averaged_loss")
TESTS = ("test_accuracy", "test_loss", "test_losses", "test_forgetting")


def labelled(T=3, n=5, d=6, classes=3, seed=0, groups=None):
    """Tasks of rows with classes, as (rows, one-hot labels) and as `RegressionTasks`; groups may repeat tasks."""
    rng = np.random.default_rng(seed)
    made = [(rng.standard_normal((n, d)), np.eye(classes)[rng.integers(classes, size=n)]) for _ in range(T)]
    data = [made[m] for m in (groups or range(T))]
    return data, fg.RegressionTasks([X for X, _ in data], [Y for _, Y in data])


def by_hand(data, test, order, k, step):
    """Quantities of `expect` after k visits of an order, by plain arithmetic on the data."""
    ws = [np.zeros((data[0][0].shape[1], data[0][1].shape[1]))]
    for m in order:
        ws.append(step(ws[-1], *data[m]))

    def losses(w, sets):
        return np.array([0.5 * np.sum((X @ w - Y) ** 2) for X, Y in sets])

    def shares(w, sets):
        if not w.any():
            return np.full(len(sets), 1 / w.shape[1])
        return np.array([np.mean(np.argmax(X @ w, 1) == np.argmax(Y, 1)) for X, Y in sets])

    L, A = (np.array([f(w, data) for w in ws]) for f in (losses, shares))
    past = list(order[:k])
    seen = [A[t, sorted(set(order[:t]))].mean() for t in range(1, k + 1)]
    values = {
        "accuracy": A[k].mean(),
        "task_accuracies": A[k],
        "loss": L[k].mean(),
        "task_losses": L[k],
        "next_loss": L[k, order[k]] if len(order) > k else np.nan,
        "averaged_loss": losses(np.mean(ws[:k], axis=0), data).mean(),
        "accuracy_forgetting": np.mean([A[t + 1, m] - A[k, m] for t, m in enumerate(past)]),
        "incremental_accuracy": np.mean(seen),
        "forgetting": np.mean([L[k, m] - L[t + 1, m] for t, m in enumerate(past)]),
        "seen_loss": np.mean([L[k, m] for m in past]),
        "regret": np.mean([L[t, m] for t, m in enumerate(past)]),
    }
    if test is not None:
        held = np.array([losses(w, test) for w in ws])
        values |= {
            "test_accuracy": shares(ws[k], test).mean(),
            "test_loss": held[k].mean(),
            "test_losses": held[k],
            "test_forgetting": np.mean([held[k, m] - held[t + 1, m] for t, m in enumerate(past)]),
        }
    return values


def kaczmarz(w, X, Y):
    return w - np.linalg.pinv(X) @ (X @ w - Y)


def ridge(w, X, Y):
    return np.linalg.solve(X.T @ X + 0.7 * np.eye(X.shape[1]), X.T @ Y + 0.7 * w)


def all_orders(law, T, length, p):
    """Every order of so many visits, with its probability."""
    if law == "without":
        found = [order[:length] for order in itertools.permutations(range(T))]
    elif law == "reshuffled":
        epochs = itertools.product(itertools.permutations(range(T)), repeat=-(-length // T))
        found = [sum(parts, ())[:length] for parts in epochs]
    elif law == "fixed":
        found = [(0, 2, 1, 1, 0)[:length]]
    else:
        return {order: np.prod(p[list(order)]) for order in itertools.product(range(T), repeat=length)}
    return {order: count / len(found) for order, count in Counter(found).items()}


ORDERINGS = {
    "without": (fg.orderings.WithoutReplacement(), [1, 2, 3]),
    "with": (fg.orderings.WithReplacement(), [1, 2, 4]),
    "weighted": (fg.orderings.WithReplacement([3, 1, 2]), [1, 4]),
    "a task that never comes": (fg.orderings.WithReplacement([3, 0, 2]), [3]),
    "reshuffled": (fg.orderings.Reshuffled(), [2, 3, 5]),
    "fixed": (fg.orderings.Explicit([0, 2, 1, 1, 0]), [1, 3, 5]),
}


@pytest.mark.parametrize("scheme", [(kaczmarz, None), (ridge, "ridge lam=0.7")], ids=["kaczmarz", "ridge"])
@pytest.mark.parametrize("groups", [None, [0, 1, 0]], ids=["", "clones"])
@pytest.mark.parametrize("law", ORDERINGS)
def test_lists_equal_the_mean_over_all_orders(law, groups, scheme):
    ordering, ks = ORDERINGS[law]
    data, tasks = labelled(groups=groups, n=2 if scheme[1] is None else 5)
    held, test = labelled(groups=groups, n=11, seed=1)
    step, name = scheme
    e = fg.expect(tasks, ordering, ks, name, quantities=SHARES + LOSSES, method="listing")
    h = fg.expect(tasks, ordering, ks, name, quantities=TESTS, test=test, method="listing")
    p = np.array({"weighted": [3, 1, 2], "a task that never comes": [3, 0, 2]}.get(law, [1, 1, 1]))
    for place, k in enumerate(ks):
        ends = law in ("without", "fixed") and k == ks[-1]
        orders = all_orders(law, 3, k + (not ends), p / p.sum())
        made = {order: by_hand(data, held, order, k, step) for order in orders}
        for result, names in ((e, SHARES + LOSSES), (h, TESTS)):
            for quantity in names:
                mean = sum(weight * made[order][quantity] for order, weight in orders.items())
                told = result.values[quantity][place]
                np.testing.assert_allclose(told, mean, rtol=1e-11, atol=1e-14, err_msg=f"{quantity} {k}")
    assert e.method == "listing"
    assert max(np.max(e.uncertainty[name]) for name in SHARES) < 1e-12


@pytest.mark.parametrize(
    ("ordering", "method"),
    [("without-replacement", "subsets"), ("reshuffled", "subsets"), ("with-replacement p=1,2,3,4", "moments")],
)
def test_lists_agree_with_moments_on_losses_within_what_both_say(ordering, method):
    tasks = fg.families.gaussian(T=4, d=7, rank=[1, 2, 2, 3], seed=4)
    names = (*LOSSES, "error")
    ks = [0, 1, 3, 4]
    w0 = np.linspace(-1, 1, 7)
    listed, known = (
        fg.expect(tasks, ordering, ks, "sgd step_size=0.6", w0, quantities=names, method=by)
        for by in ("listing", method)
    )
    for name in names:
        gap = np.abs(listed.values[name] - known.values[name])
        assert np.all((gap <= listed.uncertainty[name] + known.uncertainty[name]) | np.isnan(gap)), name
        np.testing.assert_allclose(listed.values[name], known.values[name], rtol=1e-12)
    assert np.all(listed.uncertainty["loss"] < 1e-10 * listed.loss)


def test_losses_beside_an_accuracy_have_the_digits_of_the_moments():
    data, tasks = labelled()
    both = fg.expect(tasks, "without-replacement", 3, quantities=("loss", "accuracy", "forgetting"))
    alone = fg.expect(tasks, "without-replacement", 3)
    assert list(both.values) == ["loss", "accuracy", "forgetting"]
    assert (both.method, alone.method) == ("listing", "subsets")
    assert (both.loss, both.forgetting) == (alone.loss, alone.forgetting)
    assert both.uncertainty["loss"] == alone.uncertainty["loss"]
    assert "loss and forgetting by the method subsets" in both.detail
    assert data


# ----------------------------------------------------------------------------------------------------- exact arithmetic


def exactly(rows, labels, order):
    """w after projections onto tasks of one row each, in fractions."""
    columns = []
    for j in range(labels.shape[-1]):
        w = [Fraction(0)] * rows.shape[1]
        for m in order:
            x = [Fraction(float(value)) for value in rows[m]]
            missed = sum(a * b for a, b in zip(x, w, strict=True)) - Fraction(float(labels[m, j]))
            size = sum(a * a for a in x)
            w = [a - missed / size * b for a, b in zip(w, x, strict=True)]
        columns.append(w)
    return columns


def exact_share(columns, rows, right):
    """The accuracy in fractions: classes that are equally likely share the row."""
    total = Fraction(0)
    for x, label in zip(rows, right, strict=True):
        outputs = [sum(Fraction(float(a)) * b for a, b in zip(x, w, strict=True)) for w in columns]
        if len(outputs) == 1:
            aligned = outputs[0] * int(label)
            total += Fraction(1, 2) if aligned == 0 else int(aligned > 0)
        else:
            tied = [j for j, value in enumerate(outputs) if value == max(outputs)]
            total += Fraction(int(int(label) in tied), len(tied))
    return total / len(rows)


@pytest.mark.parametrize("classes", [1, 3])
def test_the_uncertainty_bounds_the_error_also_where_rows_nearly_tie(classes):
    """Held-out rows are turned until two outputs of some order differ by nothing, by rounding, or by a little more."""
    off = 0
    for seed in range(rounds(8, 60)):
        rng = np.random.default_rng(seed)
        T, d = 3, 4
        rows = np.round(4 * rng.standard_normal((T, d))) if seed % 2 else rng.standard_normal((T, d))
        rows[~rows.any(axis=1)] = 1.0
        if seed % 4 == 0:
            rows[1] = rows[0] + 1e-6 * rows[1]  # nearly the same row, so that errors grow
        labels = rng.choice([-1.0, 1.0], (T, 1)) if classes == 1 else np.eye(classes)[rng.permutation(classes)]
        tasks = fg.RegressionTasks(rows[:, None], labels if classes == 1 else labels[:, None])
        orders = list(itertools.permutations(range(T)))
        ends = [exactly(rows, labels, order) for order in orders]
        held = rng.standard_normal((T, 5, d))
        for m in range(T):
            columns = [np.array([float(value) for value in w]) for w in ends[rng.integers(len(ends))]]
            v = columns[0] - (columns[1] if classes > 1 else 0)
            for i in range(3):
                for _ in range(2):
                    held[m, i] -= (held[m, i] @ v) / (v @ v) * v
                held[m, i] += [0.0, 1e-16, 1e-13][i] * v
        held[0, 4] = 0.0  # a row that says nothing
        right = rng.choice([-1, 1], (T, 5)) if classes == 1 else rng.integers(classes, size=(T, 5))
        test = fg.RegressionTasks(held, right.astype(float) if classes == 1 else np.eye(classes)[right])
        e = fg.expect(tasks, "without-replacement", T, quantities=("test_accuracy",), test=test)
        true = sum(exact_share(w, held[m], right[m]) for w in ends for m in range(T)) / (T * len(ends))
        error = abs(float(Fraction(e.values["test_accuracy"]) - true))
        assert error <= e.uncertainty["test_accuracy"] <= 1 / 2
        off += error > 1e-12
        if classes == 1:  # the row that ties in one of the orders; of several classes a third one may be right
            assert e.uncertainty["test_accuracy"] >= 1 / (T * 5 * len(ends))
    assert off > 0  # float64 does decide some of them wrongly


def test_a_fixed_order_has_the_same_uncertainty_as_a_list_of_it():
    data, tasks = labelled(T=3, n=2)
    held, _ = labelled(T=3, n=4, seed=2)
    w = np.zeros((6, 3))
    for m in (0, 1):
        w = kaczmarz(w, *data[m])
    held = [(X.copy(), Y) for X, Y in held]
    held[1][0][0] -= (held[1][0][0] @ (w[:, 0] - w[:, 1])) / np.sum((w[:, 0] - w[:, 1]) ** 2) * (w[:, 0] - w[:, 1])
    asked = {"quantities": ("test_accuracy", "loss"), "test": held}
    alone = fg.expect(tasks, [0, 1, 2], [0, 2, 3], **asked)
    listed = fg.expect(tasks, [0, 1, 2], [0, 2, 3], method="listing", **asked)
    assert (alone.method, listed.method) == ("deterministic", "listing")
    np.testing.assert_allclose(alone.values["test_accuracy"], listed.values["test_accuracy"], rtol=1e-14)
    for e in (alone, listed):
        undecided = e.uncertainty["test_accuracy"]
        assert undecided[0] < 1e-13
        np.testing.assert_array_equal(np.round(12 * undecided).astype(int)[[0, 2]], [0, 0])
        assert undecided[1] <= 1 / 12 + 1e-12


def test_accuracies_of_kernels_are_listed_without_a_bound():
    """A kernel matrix of floats may be nearly singular, and dual coefficients are then hardly known."""
    rng = np.random.default_rng(3)
    X, signs, groups = rng.standard_normal((9, 12)), rng.choice([-1.0, 1.0], 9), np.repeat([0, 1, 2], 3)
    kernel = fg.KernelTasks(X @ X.T, signs, groups)
    plain = fg.RegressionTasks.from_arrays(X, signs, groups)
    for ordering in ("without-replacement", [0, 2, 1]):
        e, known = (fg.expect(tasks, ordering, 2, quantities=("accuracy", "loss")) for tasks in (kernel, plain))
        np.testing.assert_allclose(e.accuracy, known.accuracy, rtol=1e-12)
        assert set(e.uncertainty) == {"loss"}
        assert set(known.uncertainty) == {"accuracy", "loss"}
    listed = fg.expect(kernel, "without-replacement", 2, quantities="accuracy")
    assert "rounding not bounded" in listed.detail


def test_an_exact_start_is_not_in_doubt_although_all_classes_tie():
    _, tasks = labelled()
    e = fg.expect(tasks, "without-replacement", [0, 1], quantities="accuracy")
    np.testing.assert_allclose(e.accuracy[0], 1 / 3, rtol=1e-14)
    assert e.uncertainty["accuracy"][0] < 1e-14


# ----------------------------------------------------------------------------------------------- schemes and quantities


@pytest.mark.parametrize("law", ["without-replacement", "with-replacement p=1,2,3", "reshuffled"])
def test_schemes_that_are_not_linear_are_run_in_every_order(law):
    sets = fg.ConvexSets([fg.Ball([0.0, 0.0], 1.0), fg.Ball([1.5, 0.0], 1.0), fg.Halfspace([0.0, 1.0], 0.2)])
    w0, k = [4.0, -1.0], 4 if law == "reshuffled" else 3
    e = fg.expect(sets, law, [k, 1], w0=w0)
    kind, p = law.split("-")[0].replace("withoutx", ""), np.array([1, 2, 3]) / 6
    orders = all_orders({"with": "weighted"}.get(kind, kind), 3, k, p)
    made = {order: fg.run(sets, list(order), k, w0=w0) for order in orders}
    for place, at in enumerate([k, 1]):
        np.testing.assert_allclose(e.loss[place], sum(p * made[o].losses[at] for o, p in orders.items()), rtol=1e-12)
        forgotten = sum(p * made[o].forgetting[at - 1] for o, p in orders.items())
        np.testing.assert_allclose(e.forgetting[place], forgotten, rtol=1e-12, atol=1e-15)
    assert e.method == "listing"
    assert not e.uncertainty
    assert "rounding not bounded" in e.detail


def test_forms_of_users_are_listed_by_runs():
    class Longest(Form):
        quadratic = False

        def along(self, run):
            return np.linalg.norm(run.iterates, axis=(1, 2))[:, None] * np.ones(run.problem.num_tasks)

    data, tasks = labelled(groups=[0, 1, 0])
    length = Quantity("length", "E |w_k|", form=Longest())
    e = fg.expect(tasks, "without-replacement", [1, 2], quantities=(length, "accuracy", "loss"))
    orders = list(itertools.permutations(range(3)))
    expected = np.mean([np.linalg.norm(fg.run(tasks, list(o), 2).iterates, axis=(1, 2))[1:] for o in orders], axis=0)
    np.testing.assert_allclose(e.values["length"], expected, rtol=1e-12)
    assert list(e.values) == ["length", "accuracy", "loss"]
    assert set(e.uncertainty) == {"accuracy", "loss"}
    assert "rounding of length not bounded" in e.detail
    assert data


def test_clones_are_told_apart_where_a_form_or_a_scheme_looks_at_their_numbers():
    class Visited(Form):
        quadratic = False

        def along(self, run):
            return np.array([[float(m in run.order[:k]) for m in range(run.problem.num_tasks)] for k in run.steps])

    class Impatient(fg.schemes.Scheme):
        """Moves a third, two thirds, ... of the way to a task, by its number."""

        random = False

        def learn(self, problem, task, w, memory):
            (x,), y = problem.task(task)
            return fg.schemes.Learned(w - (task + 1) / 3 * (x @ w - y[0]) / (x @ x) * x)

    tasks = fg.RegressionTasks([[[1.0, 0.0]], [[1.0, 1.0]], [[1.0, 0.0]]], [[1.0], [2.0], [1.0]])
    visited = Quantity("visited", "P(task m was visited)", "each", form=Visited())
    for ordering, k, chance in (("without-replacement", 1, 1 / 3), ("with-replacement", 2, 5 / 9)):
        e = fg.expect(tasks, ordering, k, quantities=visited)
        assert e.method == "listing"
        np.testing.assert_allclose(e.values["visited"], chance, rtol=1e-12)
    e = fg.expect(tasks, "without-replacement", 3, Impatient())
    runs = [fg.run(tasks, list(order), 3, Impatient()) for order in itertools.permutations(range(3))]
    assert e.method == "listing"
    np.testing.assert_allclose(e.loss, np.mean([r.losses[-1] for r in runs]), rtol=1e-12)


def test_schemes_that_diverge_have_no_accuracy_and_infinite_losses():
    tasks = fg.RegressionTasks([[[1.0, 0.5]], [[1.0, 1.0]]], [[1.0], [-1.0]])
    for ordering in ("with-replacement", "cyclic"):
        e = fg.expect(tasks, ordering, [1, 8], "sgd step_size=1e80", quantities=("accuracy", "loss"))
        assert list(e.values) == ["accuracy", "loss"]
        np.testing.assert_array_equal(np.isnan(e.accuracy), [False, True])
        np.testing.assert_array_equal(np.isinf(e.loss), [False, True])
        assert e.uncertainty["accuracy"][1] == e.uncertainty["loss"][1] == np.inf
        listed = fg.expect(tasks, ordering, [1, 8], "sgd step_size=1e80", quantities="loss", method="listing")
        np.testing.assert_allclose(listed.loss, e.loss, rtol=1e-12)


def test_steps_that_learn_nothing_are_not_listed():
    class Resting(fg.orderings.Ordering):
        law, skips = fg.orderings.laws.Fixed(), True

        def visits(self, tasks, rng):
            yield from [0, -1, 1]

    tasks = fg.families.two_lines(0.5)
    with pytest.raises(NotSupportedError, match="has steps that learn no task"):
        fg.expect(tasks, Resting(), 3, method="listing")
    assert fg.expect(tasks, Resting(), 3).method == "deterministic"


def test_a_difference_of_values_without_a_bound_has_none():
    sets = fg.ConvexSets([fg.Ball([0.0, 0.0], 1.0), fg.Ball([1.5, 0.0], 1.0)])
    gap = fg.compare(sets, "without-replacement", "cyclic", 1, w0=[4.0, -1.0])
    assert (gap.method, gap.detail) == ("exact difference", "listing less deterministic")
    assert not gap.uncertainty


def test_terms_of_shares_and_losses_may_be_added():
    _, tasks = labelled()
    from forgetting.expectation.quantities import ACCURACY

    gap = Quantity("gap", "accuracy of the next task less twice that of the last", (
        Term("next", ACCURACY), Term("kept", ACCURACY, coefficient=-2.0)))  # fmt: skip
    e = fg.expect(tasks, "without-replacement", 2, quantities=gap)
    runs = [fg.run(tasks, list(order), 3) for order in itertools.permutations(range(3))]
    told = [
        r.accuracy[2, r.order[2]] - 2 * np.mean([r.accuracy[1, r.order[0]], r.accuracy[2, r.order[1]]]) for r in runs
    ]
    np.testing.assert_allclose(e.values["gap"], np.mean(told), rtol=1e-12)


def test_requests_that_cannot_be_listed_are_refused_with_the_reason():
    _, tasks = labelled()

    class Drawing(fg.schemes.Scheme):
        random = True

        def learn(self, problem, task, w, memory):
            return fg.schemes.Learned(w)

    def asked(ordering, k=2, scheme=None, **more):
        return lambda: fg.expect(tasks, ordering, k, scheme, quantities="accuracy", method="listing", **more)

    for call, reason in (
        (asked("without-replacement", scheme=Drawing()), "draws random numbers"),
        (asked("greedy-distance"), "not what GreedyDistance"),
        (asked("with-replacement", 10**15), r"more than 1e\+15 orders of 1000000000000000 tasks"),
        (asked("with-replacement", noise=0.1), "accuracy has no expectation over noise"),
        (asked("with-replacement", np.inf), "give finite k"),
    ):
        with pytest.raises(NotSupportedError, match=reason):
            call()


def test_noise_of_labels_is_listed_for_losses():
    tasks = fg.families.gaussian(T=3, d=5, rank=2, seed=0)
    listed, known = (
        fg.expect(tasks, "without-replacement", [1, 3], noise=0.3, test=tasks, method=method)
        for method in ("listing", "subsets")
    )
    for name in known.values:
        np.testing.assert_allclose(listed.values[name], known.values[name], rtol=1e-11)


# ------------------------------------------------------------------------------------------------------ choice and cost


def test_auto_lists_accuracies_where_patience_allows_and_says_what_they_would_cost():
    X = np.random.default_rng(0).standard_normal((180, 8))
    tasks = fg.RegressionTasks.from_labels(X, np.arange(180) % 2, np.repeat(np.arange(9), 20))
    request = ask(tasks, "without-replacement", 9, None, None, ("accuracy",)).request
    assert choose(request).engine.name == "listing"
    rushed = choose(replace(request, patience=1.0))
    assert rushed.engine.name == "monte-carlo"
    assert "by the method 'listing': raise patience=" in rushed.notes[0]
    separable = fg.families.separable(7, 6, 4, 0.1, seed=0)  # 35280 steps that take 1e-4 seconds each
    assert choose(ask(separable, "without-replacement", 7).request).engine.name == "listing"
    quick = ask(tasks, "without-replacement", 9, None, None, ("loss",)).request
    assert choose(quick).engine.name == "subsets"  # more digits: registered before


@pytest.mark.parametrize("counts", [[1, 1, 1, 1], [2, 1], [3, 2, 1], [4]])
def test_the_levels_of_the_tree_are_counted_as_they_are_walked(counts):
    tasks = np.repeat(np.arange(len(counts)), counts)
    clones = tuple(np.flatnonzero(tasks == b) for b in range(len(counts)))
    T = len(tasks)
    for epochs, most in ((False, T), (True, T + 1)):
        tree = Tree(clones, epochs=epochs)
        for k in range(most + 1):
            length = min(k, T)
            firsts = {tuple(tasks[list(o)]) for o in itertools.permutations(range(T), length)}
            ends = len(counts) if k > T else 1
            assert tree.width(k) == len(firsts) * ends
        assert tree.nodes(2) == tree.width(1) + tree.width(2)


@pytest.mark.parametrize(
    ("ordering", "k"), [("without-replacement", 1000), ("with-replacement", 10**15), ("reshuffled", 10**12)]
)
def test_huge_counts_do_not_overflow(ordering, k):
    tasks = fg.families.gaussian(T=1000, d=3, rank=1, seed=0)
    request = ask(tasks, ordering, k, None, None, ("loss",)).request
    assert Tree.of(request).nodes(k) == np.inf
    cost = engines.get("listing").cost(request)
    assert cost.seconds == np.inf
    assert np.isfinite(cost.bytes)
    assert "more than 1e+15 orders" in engines.get("listing").covers(request)


@pytest.mark.parametrize("ordering", ["without-replacement", "with-replacement", "reshuffled"])
def test_orders_of_many_tasks_are_refused_without_their_tree(ordering, monkeypatch):
    """Since `auto` asks for every request, also where moments answer."""
    request = ask(fg.families.gaussian(T=40, d=3, rank=1, seed=0), ordering, 30).request
    monkeypatch.setattr(Tree, "of", lambda request: pytest.fail("the tree was made"))
    assert "more than 1e+15 orders" in engines.get("listing").covers(request)


def test_a_hundred_thousand_tasks_are_counted_at_once():
    tree = Tree(tuple(np.arange(10**5)[:, None]))
    assert [tree.width(k) for k in range(3)] == pytest.approx([1, 1e5, 1e5 * (1e5 - 1)])
    assert tree.nodes(100) == np.inf


def test_clones_make_few_orders_of_many_tasks():
    tasks = fg.families.repeated(fg.families.two_lines(0.5), 3000)
    tree = Tree.of(ask(tasks, "without-replacement", 3, None, None, ("loss",)).request)
    assert [tree.width(k) for k in range(4)] == [1, 2, 4, 8]
    listed, known = (
        fg.expect(tasks, "without-replacement", 8, quantities=LOSSES, method=method)
        for method in ("listing", "subsets")
    )
    for name in LOSSES:
        np.testing.assert_allclose(listed.values[name], known.values[name], rtol=1e-11)


def test_values_do_not_depend_on_how_many_nodes_are_in_memory(monkeypatch):
    _, tasks = labelled(T=4)
    whole = fg.expect(tasks, "reshuffled", [2, 5], quantities=(*SHARES, *LOSSES), method="listing")
    monkeypatch.setattr(listing, "ROOM", 1)  # one node at a time
    parts = fg.expect(tasks, "reshuffled", [2, 5], quantities=(*SHARES, *LOSSES), method="listing")
    for name in whole.values:
        np.testing.assert_allclose(parts.values[name], whole.values[name], rtol=1e-13)


def test_values_that_are_no_larger_than_their_error_are_called_noise():
    e = fg.expect(fg.families.gaussian(3, 5, 1, seed=0), "cyclic", 3000, quantities="loss", method="listing")
    assert 0 <= e.loss <= e.uncertainty["loss"] < 1e-12
    assert e.loss == 0 or any("its digits are noise" in note for note in e.notes)


def test_progress_is_reported_and_a_list_can_be_interrupted():
    _, tasks = labelled(T=3)

    def interrupt(name, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fg.expect(tasks, "with-replacement", 14, quantities="accuracy", method="listing", progress=interrupt)


def test_progress_of_runs_ends_where_all_orders_are_made():
    sets, seen = fg.ConvexSets([fg.Ball([0.0], 1.0), fg.Ball([1.5], 1.0)]), []
    fg.expect(sets, "with-replacement", 3, w0=[4.0], progress=lambda *report: seen.append(report))
    assert seen[-1] == ("orders", 8, 8)


def test_lists_of_few_orders_fit_into_little_memory():
    _, tasks = labelled()
    assert fg.expect(tasks, "without-replacement", 3, quantities="accuracy", memory=1e5).method == "listing"


def test_a_difference_of_listed_accuracies_is_exact():
    _, tasks = labelled(T=3)
    gap = fg.compare(tasks, "without-replacement", "with-replacement", 3, quantities="accuracy")
    assert gap.method == "exact difference"
    assert gap.uncertainty["accuracy"] < 1e-12
