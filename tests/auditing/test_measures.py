"""Orders compared by every measure: advice where all agree, and the disagreement as the headline where they do not."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge

import forgetting as fg
from forgetting.auditing import Audit, FoundOrder, Measure, OrderSearch, Outlier, digits, measures
from forgetting.auditing.measures import MeasuredOrders, orders_to_try
from forgetting.auditing.ordering_values import OrderingRow, shares_of_causes
from forgetting.auditing.sentences import _split, say
from forgetting.auditing.verdict import judge
from forgetting.errors import InvalidInputError, NotSupportedError

O = fg.orderings  # noqa: E741


def clusters(seed=7, rows=6, noise=0.2, d=16, T=4):
    """Tasks of labels -1 and +1: two opposite clusters each; rows to learn and 40 held-out rows of each."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(T, d))

    def draw(count):
        signs = np.where(np.arange(count) % 2, 1.0, -1.0)
        return [(signs[:, None] * centre + noise * rng.normal(size=(count, d)), signs) for centre in centres]

    return draw(rows), draw(40)


def advises(audit):
    return [line for line in audit.recommendation if line.startswith("Shuffle") or line.startswith("The best order")]


@pytest.fixture(scope="module")
def split_audit():
    return fg.audit(digits("split"))


@pytest.fixture(scope="module")
def agreeing():
    """An audit of tasks on which all measures agree that the given order is bad, and the rows of the tasks."""
    learned, held = clusters()
    worst = fg.audit(learned).search.worst.order
    return fg.audit(learned, order=worst, test=held), learned, held


# --------------------------------------------------------------------------------------------------------- split digits


def test_the_accuracies_of_split_digits(split_audit):
    accuracy = split_audit.measure("training accuracy")
    assert 100 * accuracy.given == pytest.approx(68.44, abs=0.005)
    assert 100 * accuracy.best == pytest.approx(67.88, abs=0.005)
    assert 100 * accuracy.mean == pytest.approx(65.19, abs=0.005)
    assert 100 * accuracy.top.value == pytest.approx(70.15, abs=0.005)
    assert accuracy.top.order == (2, 3, 4, 1, 0)
    assert split_audit.tried_exact
    assert len(accuracy.values) == 120


def test_on_split_digits_the_disagreement_is_the_headline_and_no_order_is_advised(split_audit):
    verdict = split_audit.verdict
    assert verdict.bad  # by training loss
    assert verdict.conflict
    assert not verdict.shuffle
    assert not verdict.prefer
    assert advises(split_audit) == []
    first, headline = split_audit.opening[:2]
    assert first == (
        "Training accuracy depends on the order: 54.4 % to 70.2 % after one pass over all 120 orders, 65.2 % on "
        "average; the given one has 68.4 %, better than 60 % of them."
    )
    assert headline.startswith(
        "By training loss the given order is the worst there is, tied with 7 others (233.8, a random order 193.5 on "
        "average)"
    )
    assert "by training accuracy it is better than 60 % of all orders (68.4 %, a random order 65.2 %" in headline
    assert headline.endswith("the measures disagree, and no order is advised.")


# ------------------------------------------------------------------------------------------------------ where all agree


def test_where_all_measures_agree_an_order_is_advised_without_a_caveat(agreeing):
    audit = agreeing[0]
    assert [measure.name for measure in audit.measures] == [
        "training loss", "held-out loss", "training accuracy", "held-out accuracy"
    ]  # fmt: skip
    assert audit.cases == ()
    shuffle, prefer = advises(audit)
    assert (
        "by training loss, held-out loss, training accuracy and held-out accuracy a random order is better" in shuffle
    )
    assert "it is better than the given and a random one by training loss" in prefer
    assert {shuffle, prefer} <= set(audit.opening)
    assert not any("disagree" in line or "no ground" in line or "but by" in line for line in audit.recommendation)


def test_what_is_advised_is_better_by_every_measure_computed_from_the_rows(agreeing):
    audit, learned, held = agreeing
    tasks = fg.RegressionTasks([X for X, _ in learned], [y for _, y in learned])

    def scores(order):
        w = fg.run(tasks, O.Explicit(order), 4).iterates[-1]
        losses = [np.mean([0.5 * np.sum((X @ w - y) ** 2) for X, y in rows]) for rows in (learned, held)]
        rates = [np.mean([np.mean(np.sign(X @ w) == y) for X, y in rows]) for rows in (learned, held)]
        return np.array([*(-value for value in losses), *rates])

    every = {order: scores(order) for order in permutations(range(4))}
    given, best, mean = every[audit.given], every[audit.search.best.order], np.mean(list(every.values()), axis=0)
    assert (mean > given).all()
    assert (best > given).all()
    assert (best > mean).all()
    reported = [[getattr(measure, name) for measure in audit.measures] for name in ("given", "best", "mean")]
    signs = np.array([-1, -1, 1, 1])
    assert np.array(reported) * signs == pytest.approx(np.array([given, best, mean]))
    for place, measure in enumerate(audit.measures):
        values = np.array([value[place] for value in every.values()])
        assert measure.share_better == pytest.approx(np.mean(values > given[place] + 1e-12))
        assert measure.share_worse == pytest.approx(np.mean(values < given[place] - 1e-12))


def test_average_incremental_accuracy_is_that_of_the_tasks_learned_so_far(agreeing):
    audit, learned, _ = agreeing
    tasks = fg.RegressionTasks([X for X, _ in learned], [y for _, y in learned])
    run = fg.run(tasks, O.Explicit(audit.given), 4)
    parts = []
    for t in range(1, 5):
        rates = [np.mean(np.sign(learned[m][0] @ run.iterates[t]) == learned[m][1]) for m in audit.given[:t]]
        parts.append(np.mean(rates))
    assert audit.measure("training accuracy").incremental[0] == pytest.approx(np.mean(parts))
    assert audit.measure("training accuracy").along.given == pytest.approx(np.mean(parts))


@pytest.mark.parametrize("name", ["training accuracy", "held-out accuracy"])
def test_average_incremental_accuracy_is_measured_in_all_orders_and_in_cycles(agreeing, name):
    audit, learned, held = agreeing
    tasks, test = (fg.RegressionTasks([X for X, _ in data], [y for _, y in data]) for data in (learned, held))
    rows = tasks if name.startswith("training") else test
    along = audit.measure(name).along

    def value(order):
        run = fg.run(tasks, O.Explicit(order), len(order))
        return fg.metrics.average_incremental(rows.accuracies(run.iterates[1:]), run.order)

    values = {order: value(order) for order in audit.orders}
    assert along.values == pytest.approx(list(values.values()))
    assert along.mean == pytest.approx(np.mean(list(values.values())))
    assert along.error == 0
    assert (along.top.value, along.bottom.value) == pytest.approx((max(values.values()), min(values.values())))
    assert values[along.top.order] == pytest.approx(along.top.value)
    assert along.cyclic == pytest.approx(value(audit.given * audit.passes))
    table = next(item for item in audit.to_report().items() if item.key == "measures")
    (row,) = [row for row in table.rows if row[0] == f"incremental {name}"]
    expected = along.given, max(values.values()), min(values.values()), along.mean, along.cyclic
    assert row[1:6] == tuple(f"{100 * value:.1f} %" for value in expected)


def test_incremental_accuracies_that_take_too_long_are_those_of_fewer_orders_or_of_none(monkeypatch):
    learned, held = clusters()
    for seconds, most in ((0.02, 24), (0.0, 0)):
        monkeypatch.setattr(measures, "INCREMENTAL", seconds)
        along = fg.audit(learned, test=held).measure("held-out accuracy").along
        assert (0 if along is None else len(along.values)) <= most
    text = fg.audit(learned, test=held).to_text()
    assert "incremental held-out" not in text


# ------------------------------------------------------------------------------------------------ what is said first


def test_the_best_and_the_worst_of_each_row_are_those_of_its_measure(split_audit, agreeing):
    """One pass in the order that forgets least may have less accuracy than in the one that forgets most."""
    crossed = 0
    for audit in (split_audit, agreeing[0]):
        tables = {item.key: item for item in audit.to_report().items()}
        chosen = {row[0]: row[1:] for row in tables["chosen"].rows}
        for one in audit.measures:
            (row,) = [row for row in tables["measures"].rows if row[0] == one.name]
            ends = (max, min) if one.higher else (min, max)
            assert row[2:4] == tuple(one.number(end(one.values)) for end in ends)
            assert chosen[one.name] == tuple(one.number(value) for value in (one.given, one.best, one.worst))
            crossed += one.best != ends[0](one.values)
        orders = dict(next(item for item in audit.to_report().items() if item.key == "orders").rows)
        last = audit.measures[-1]
        for accuracy, end in product((last, last.along), ("best", "worst")):
            found = accuracy.top if end == "best" else accuracy.bottom
            name = f"{end} of all by {accuracy.name} ({accuracy.number(found.value)}){found.ties}"
            assert orders[name] == ", ".join(audit.tasks[task].name for task in found.order)
    assert crossed


def test_a_best_order_that_was_searched_for_counts_in_its_row():
    searched = measure(given=1.0, best=0.05, mean=0.5)
    assert [found.value for found in replace(searched, values=(0.5, 0.9)).extremes] == [0.0, 1.0]
    top = replace(searched, top=FoundOrder((0, 1), 0.3), bottom=FoundOrder((1, 0), 0.9))
    assert [found.value for found in top.extremes] == [0.05, 1.0]


@pytest.mark.parametrize("gap", [0.2, 0.004])
def test_the_first_sentence_says_how_far_accuracy_depends_on_the_order(agreeing, gap):
    audit = agreeing[0]
    values, ends = (0.5, 0.5 + gap), (FoundOrder((0, 1, 2, 3), 0.5 + gap), FoundOrder((1, 0, 2, 3), 0.5))
    told = {"values": values, "given": 0.5, "best": 0.5, "worst": 0.5, "mean": 0.5 + gap / 2}
    changed = [
        replace(one, top=ends[0], bottom=ends[1], **told) if one.name == "held-out accuracy" else one
        for one in audit.measures
    ]
    first = say(replace(audit, measures=tuple(changed))).opening[0]
    if gap > 0.01:
        assert first == (
            "Held-out accuracy depends on the order: 50.0 % to 70.0 % after one pass over all 24 orders, 60.0 % on "
            "average; the given one has 50.0 %, worse than 50 % of them and better than none."
        )
    else:
        assert first == (
            "Held-out accuracy depends little on the order: 50.0 % to 50.4 % after one pass over all 24 orders, 50.2 % "
            "on average; the given one has 50.0 %."
        )


def test_tasks_without_classes_say_nothing_of_accuracy():
    assert "accuracy" not in " ".join(fg.audit(fg.families.two_lines(0.5)).opening)


@pytest.mark.parametrize(("end", "shares"), [(86.53, False), (84.0, False), (82.0, True)])
def test_a_fall_of_almost_nothing_is_not_divided(agreeing, end, shares):
    """88.06 to 86.53 was "randomness 100 %, repetition 0 %"."""
    rows = [
        OrderingRow(name, name, 5 * passes, passes, *[value] * 6, "deterministic", 1.0)
        for name, passes, value in (
            ("given order", 1, 88.06), ("given order", 3, 88.06), ("worst order", 1, 90.0), ("worst order", 3, 90.0),
            ("random permutation", 1, end), ("random permutation", 3, end), ("with replacement", 1, 87.0),
        )
    ]  # fmt: skip
    split = shares_of_causes(tuple(rows), 3, 1e-9)[0]
    assert (split.randomness is not None) == shares
    assert split.little == (not shares)
    (said,) = _split(replace(agreeing[0], splits=(split,)))
    if shares:
        assert "100 % of the fall comes from the random order, 0 % from repetition" in said
    else:
        less = "1.7 %" if end == 86.53 else "4.6 %"
        assert said == (
            "Forgetting hardly falls, so that there is little to explain: 88.1 in one pass in the given order, "
            f"{end:.3g} in 3 passes in random orders, {less} less."
        )
    table = next(item for item in replace(agreeing[0], splits=(split,)).to_report().items() if item.key == "split")
    assert (table.rows[0][-2:] == ("-", "-")) == (not shares)


# ----------------------------------------------------------------------------------------------- branches of the advice

ORDER = FoundOrder((0, 1), 0.0)


def measure(name="training loss", given=1.0, best=0.1, mean=0.5, higher=False, error=0.0):
    values = (given, mean, mean, mean, best)
    return Measure(name, "", higher, given, given, best, given, mean, error, values, ORDER, ORDER)


ACCURACY = {"name": "training accuracy", "higher": True}
TWO = np.array([[0, 1], [1, 0]])
SEARCH = OrderSearch("forgetting", FoundOrder((0, 1), 0.1), FoundOrder((1, 0), 1.0), True, 2, 0)


@pytest.mark.parametrize(
    ("others", "shuffle", "prefer", "conflict"),
    [
        ([], True, True, False),
        ([measure(**ACCURACY, given=0.5, best=0.9, mean=0.7)], True, True, False),
        ([measure(**ACCURACY, given=0.9, best=0.8, mean=0.7)], False, False, True),
        ([measure(**ACCURACY, given=0.7, best=0.7, mean=0.7)], False, False, False),  # no preference is no agreement
        ([measure(**ACCURACY, given=0.5, best=0.6, mean=0.7)], True, False, False),
        ([measure(**ACCURACY, given=0.5, best=0.9, mean=0.7, error=0.1)], False, False, False),  # too few orders to say
        ([measure("held-out loss", given=1.0, best=2.0, mean=0.5)], True, False, False),
    ],
)
def test_an_order_is_advised_if_every_measure_says_so(others, shuffle, prefer, conflict):
    verdict = judge(MeasuredOrders(SEARCH, TWO, True, (measure(), *others), start=1.0, given=1.0, random=(0.31, 0.32)))
    assert verdict.effect == "much"
    assert (verdict.bad, verdict.best_is_far) == (True, True)
    assert (verdict.shuffle, verdict.prefer, verdict.conflict) == (shuffle, prefer, conflict)


def test_the_words_of_each_verdict(agreeing):
    audit = agreeing[0]
    undecided = [replace(one, mean=one.given) if one.higher else one for one in audit.measures]
    said = _reworded(audit, undecided)
    assert any(
        "Nothing is advised, because a random order is no better by training accuracy and held-out" in line
        for line in said
    )
    worse = [replace(one, best=0.0) if one.name == "held-out accuracy" else one for one in audit.measures]
    assert any("but by held-out accuracy it is worse than the given one" in line for line in _reworded(audit, worse))
    lower = {"mean": 0.1, "values": (0.1, 0.2)}
    against = [replace(one, given=0.5, **lower) if one.higher else one for one in audit.measures]
    said = _reworded(audit, against)
    assert said[0].startswith("Held-out accuracy depends on the order")
    assert said[1].startswith("By training loss the given order is the worst there is")
    assert "by held-out accuracy it is the best there is (50.0 %, a random order 10.0 % on average)" in said[1]


def test_a_measure_that_speaks_against_the_given_order_alone_is_named(agreeing):
    audit = agreeing[0]
    open_ones = [one if one.higher else replace(one, mean=one.given) for one in audit.measures]
    (verdict,) = audit.verdicts
    calm = replace(audit, measures=tuple(open_ones), verdicts=(replace(verdict, bad=False, shuffle=False),))
    values = [one.share_better for one in audit.measures if one.higher]
    lines = [line for line in say(calm).opening if "but not by training loss and held-out loss" in line]
    assert bool(lines) == (max(values) >= 0.9)
    sure = [replace(one, values=(0.99,) * 10) if one.higher else one for one in open_ones]
    (line,) = [line for line in say(replace(calm, measures=tuple(sure))).opening if "but not by" in line]
    assert line.startswith("By training accuracy the given order is the worst there is")
    assert line.endswith("so that no order is advised.")


def test_a_place_in_the_middle_is_no_preference():
    near = measure(given=1.0, mean=0.9, best=0.1)
    assert near.random_against_given == 1
    assert replace(near, values=(1.1, 1.2, 0.3)).random_against_given == 0  # better on average, but not often
    assert replace(near, error=0.1).random_against_given == 0


def _reworded(audit, measures):
    own, random = audit.ordering("given order"), audit.ordering("random permutation")
    ends = random.forgetting_low, random.forgetting_high
    orders = np.array(audit.orders)
    verdict = judge(MeasuredOrders(audit.search, orders, True, tuple(measures), audit.fit.start, own.forgetting, ends))
    return say(replace(audit, measures=tuple(measures), verdicts=(verdict,))).opening


def test_accuracy_that_depends_on_the_order_matters_where_losses_do_not():
    search = OrderSearch("forgetting", FoundOrder((0, 1), 0.0), FoundOrder((1, 0), 1e-3), True, 2, 0)
    rates = replace(measure(**ACCURACY, given=0.9, best=0.5, mean=0.7), top=FoundOrder((0, 1), 0.9), bottom=ORDER)
    measured = MeasuredOrders(search, TWO, True, (measure(), rates), start=1.0, given=1e-3, random=(0.0, 0.0))
    assert judge(measured).conflict
    level = replace(rates, top=FoundOrder((0, 1), 0.001))
    assert not judge(replace(measured, measures=(measure(), level))).conflict


# ------------------------------------------------------------------------------------------------------------- accuracy


def test_classification_tasks_score_as_regression_on_the_same_signs():
    learned, _ = clusters(T=3, rows=9, noise=3.0)
    Xs, ys = zip(*learned, strict=True)
    points = np.random.default_rng(0).normal(size=(7, 16))
    points[3] = 0.0  # every prediction is a guess
    signs, numbers = fg.ClassificationTasks(Xs, ys), fg.RegressionTasks(Xs, ys)
    assert signs.accuracies(points) == pytest.approx(numbers.accuracies(points))
    assert signs.accuracies(points)[3].tolist() == [0.5] * 3
    with pytest.raises(InvalidInputError, match="expected a w of 16 numbers in each row"):
        signs.accuracies(points[0])
    with pytest.raises(NotSupportedError, match="accuracy needs labels that are classes, not ConvexSets"):
        fg.ConvexSets([fg.Ball([0.0], 1.0)]).accuracies(np.zeros((1, 1)))


def test_labels_that_are_no_classes_have_no_accuracy():
    audit = fg.audit(fg.families.gaussian(T=3, d=5, rank=2, seed=0))
    assert [one.name for one in audit.measures] == ["training loss"]
    assert any(line.startswith("accuracy: the labels are not classes") for line in audit.missing)
    with pytest.raises(InvalidInputError, match="no measure 'accuracy'"):
        audit.measure("accuracy")


def test_schemes_that_leave_tasks_unsolved_are_measured_by_forgetting_too():
    tasks = fg.families.gaussian(T=4, d=6, rank=2, seed=0)
    audit = fg.audit(tasks, scheme="ridge lam=5")
    assert [one.name for one in audit.measures] == ["training loss", "forgetting"]
    run = fg.run(tasks, O.Cyclic(), 4, "ridge lam=5")
    assert audit.measure("forgetting").given == pytest.approx(run.forgetting[-1])
    assert audit.measure("training loss").given == pytest.approx(run.losses[-1])


def test_orders_of_many_tasks_are_sampled_and_the_mean_loss_is_the_expected_one():
    tasks = fg.families.gaussian(T=8, d=10, rank=2, seed=0)
    orders, exact = orders_to_try(tasks, 0)
    assert not exact
    assert np.array_equal(np.sort(orders, axis=1), np.tile(np.arange(8), (len(orders), 1)))
    audit = fg.audit(tasks)
    assert audit.measures[0].mean == audit.ordering("random permutation").loss


# ------------------------------------------------------------------------------------------------------------ test rows


def test_held_out_tasks_are_matched_by_name():
    learned, held = clusters(T=3)
    names = ("a", "b", "c")
    plain = fg.audit(dict(zip(names, learned, strict=True)), test=dict(zip(names, held, strict=True)))
    turned = fg.audit(dict(zip(names, learned, strict=True)), test={name: held[names.index(name)] for name in "cab"})
    assert plain.measure("held-out loss") == turned.measure("held-out loss")
    assert plain.measure("held-out loss") != fg.audit(learned, test=held[::-1]).measure("held-out loss")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows[:2], "2 tasks for 3 tasks"),
        (lambda rows: [(X[:, :3], y) for X, y in rows], "rows have 3 columns, but those of the tasks have 16"),
        (lambda rows: dict(zip(("0", "1", "x"), rows, strict=True)), "there is no task 'x'"),
    ],
)
def test_held_out_rows_that_do_not_fit_are_refused(change, words):
    learned, held = clusters(T=3)
    with pytest.raises(InvalidInputError, match=words):
        fg.audit(learned, test=change(held))


def test_held_out_rows_of_sets_are_refused():
    sets = fg.ConvexSets([fg.Ball([0.0], 1.0), fg.Halfspace([1.0], 0.0)])
    with pytest.raises(NotSupportedError, match="ConvexSets have no rows"):
        fg.audit(sets, test=sets)


# ---------------------------------------------------------------------------------------------------------- preparation


def test_rows_are_prepared_alike_in_training_and_test():
    learned, held = clusters(T=3, rows=30, d=4)
    shifted, moved = ([(3 * X + 5, y) for X, y in rows] for rows in (learned, held))
    options = {"standardize": "all", "intercept": True}
    one, two = (fg.audit(a, test=b, **options) for a, b in ((learned, held), (shifted, moved)))
    assert one.dim == 5
    for name in ("training loss", "held-out loss", "held-out accuracy"):
        assert one.measure(name).values == pytest.approx(two.measure(name).values)
    assert one.preparation == "features standardized by all tasks, an intercept as the last column"
    assert one.title.endswith(one.preparation)


def test_the_first_task_of_the_given_order_standardises():
    learned, _ = clusters(T=3, rows=30, d=4)
    learned[2] = (learned[2][0] * 10, learned[2][1])
    first = fg.audit(learned, standardize="first", order=[2, 0, 1])
    assert first.tasks[2].norm < first.tasks[0].norm * 10
    X = np.concatenate([(learned[2][0] - learned[2][0].mean(axis=0)) / learned[2][0].std(axis=0)])
    assert first.tasks[2].norm == pytest.approx(np.linalg.norm(X, 2))


def test_an_audit_prepares_as_tasks_are_prepared():
    learned, held = clusters(T=3, rows=30, d=4)
    tasks, test = (fg.RegressionTasks([X for X, _ in rows], [y for _, y in rows]) for rows in (learned, held))
    options = {"standardize": "first", "intercept": True, "features": 9, "seed": 3}
    asked, made = fg.audit(tasks, test=test, repeats=1, **options), tasks.prepared(**options)
    beforehand = fg.audit(made, test=made.preparation.apply_to(test), seed=3)
    raw = fg.audit(made, test=test, seed=3)  # test rows that are not prepared yet
    for name in ("training loss", "held-out loss", "held-out accuracy"):
        assert asked.measure(name).values == pytest.approx(beforehand.measure(name).values)
        assert asked.measure(name).values == pytest.approx(raw.measure(name).values)


def test_a_constant_first_task_is_named_by_the_given_order():
    learned, _ = clusters(T=3, rows=4, d=4)
    learned[2] = (np.ones((4, 4)), learned[2][1])
    with pytest.raises(InvalidInputError, match="constant in the first task, '2', which has 4 rows"):
        fg.audit(learned, standardize="first", order=[2, 0, 1])


def test_where_a_task_should_stand_is_not_said_if_other_measures_were_not_asked():
    learned, _ = clusters(T=5, rows=6)
    audit = fg.audit(learned)
    marked = replace(audit, outliers=(Outlier(1, "causes", 9.0, 1.0),))
    plain = replace(marked, measures=audit.measures[:1])
    assert any(line.endswith("; learn it early.") for line in say(plain).recommendation)
    assert not any("learn it early" in line for line in say(marked).recommendation)
    assert any(line.startswith("Outlier: task 1") for line in say(marked).recommendation)


def test_mean_losses_are_divided_by_the_rows():
    learned, _ = clusters(T=3)
    total, mean = fg.audit(learned), fg.audit(learned, loss="mean")
    assert mean.measure("training loss").given == pytest.approx(total.measure("training loss").given / 6)
    assert "its mean over the rows" in mean.unit


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"standardize": "last"}, "standardize: no 'last'"),
        ({"loss": "median"}, "loss must be 'sum' or 'mean', got 'median'"),
        ({"intercept": "yes"}, "intercept"),
        ({"order": [0, 0, 1]}, "an order names each of the 3 tasks once"),
        ({"repeats": 0}, "repeats must be at least 1"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(InvalidInputError, match=words):
        fg.audit(clusters(T=3)[0], **options)


def test_an_intercept_that_would_lower_the_floor_is_offered():
    rng = np.random.default_rng(0)
    pairs = [(rng.normal(size=(30, 3)), 100 + rng.normal(size=30)) for _ in range(4)]
    audit = fg.audit(pairs)
    assert any("an intercept (intercept=True) would lower that to" in line for line in audit.opening)
    assert fg.audit(pairs, intercept=True).fit.floor == pytest.approx(audit.fit.floor_with_intercept)
    assert audit.fit.floor_with_intercept < 0.01 * audit.fit.floor


# -------------------------------------------------------------------------------------------------------------- repeats


def test_one_seeds_luck_is_said_and_nothing_is_advised():
    audit = fg.audit(digits("split"), rows=20, features=200)
    assert len(audit.verdicts) == 8
    assert len({verdict.worst for verdict in audit.verdicts}) == 8
    assert len({verdict.best for verdict in audit.verdicts}) == 7
    (line,) = [line for line in audit.opening if line.startswith("Over 8 draws of the rows and the random features")]
    assert "8 different worst orders and 7 different best orders" in line
    assert "the given order is a bad one in 1 of 8" in line
    assert advises(audit) == []
    for verdict in audit.verdicts[:3]:  # a repeat is the audit of its own seed
        alone = fg.audit(digits("split"), rows=20, features=200, seed=verdict.seed, repeats=1)
        assert (alone.verdict.worst, alone.verdict.best) == (verdict.worst, verdict.best)
        assert (alone.verdict.effect, alone.verdict.bad) == (verdict.effect, verdict.bad)


def test_where_all_seeds_agree_that_is_said_and_an_order_is_advised():
    learned, held = clusters(seed=0, rows=60, noise=0.0, d=4)  # all rows of a task say the same
    worst = fg.audit(learned, rows=6, repeats=1).search.worst.order
    audit = fg.audit(learned, rows=6, order=worst, test=held, repeats=4)
    (line,) = [line for line in audit.opening if line.startswith("Over 4 draws of the rows")]
    assert "all agree on the worst order, on the best order" in line
    assert len(advises(audit)) == 2
    assert len(fg.audit(learned, rows=60).verdicts) == 1  # no row is left out
    assert len(fg.audit(learned, features=lambda X: X**2).verdicts) == 1


def test_seeds_that_disagree_withhold_the_advice(agreeing):
    audit = agreeing[0]
    own = audit.verdicts[0]
    other = replace(own, shuffle=False, prefer=False, bad=False, seed=1)
    said = say(replace(audit, verdicts=(own, other), drawn="rows")).opening
    assert not any(line.startswith(("Shuffle", "The best order")) for line in said)
    assert any(line.endswith("a bad one in 1 of 2, so that no order is advised.") for line in said)
    moved = replace(own, best=own.best[::-1], seed=1)
    said = say(replace(audit, verdicts=(own, moved), drawn="rows")).opening
    assert any(line.startswith("Shuffle") for line in said)
    assert not any(line.startswith("The best order") for line in said)


def test_the_audit_with_all_measures_is_plain_data(agreeing):
    audit = agreeing[0]
    assert Audit.from_json(audit.to_json()) == audit


def test_a_tenth_of_a_point_of_accuracy_is_no_reason_to_shuffle():
    X, labels = load_digits(return_X_y=True)
    found = fg.audit(fg.RegressionTasks.from_labels(X / 16, labels, labels // 2))
    accuracy = found.measure("training accuracy")
    assert abs(accuracy.mean - accuracy.given) < 0.005
    assert accuracy.random_against_given == 0
    assert not any(sentence.startswith("Shuffle") for sentence in (*found.opening, *found.recommendation))


# ------------------------------------------------------------------------------------------------------------- all rows


def digits_tasks():
    X, y = load_digits(n_class=6, return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return [
        fg.RegressionTasks.from_labels(X[part] / 16, y[part], y[part] // 2, loss="mean")
        for part in (order[:200], order[200:300])
    ]


def test_a_head_on_all_rows_is_ridge_on_all_rows_and_stands_beside_the_orders():
    tasks, test = digits_tasks()
    audit = fg.audit(tasks, test=test, repeats=1)
    rows = np.concatenate([tasks.task(m)[0] for m in range(3)])
    labels = np.concatenate([tasks.task(m)[1] for m in range(3)])
    weights = np.repeat(200 / (3 * tasks.num_rows), tasks.num_rows)
    ridge = Ridge(audit.all_rows.alpha, fit_intercept=False, solver="svd").fit(rows, labels, weights)
    joint = np.linalg.lstsq(rows * np.sqrt(weights)[:, None], labels * np.sqrt(weights)[:, None], rcond=1e-10)[0]
    for name, of in (("training", tasks), ("held-out", test)):
        value = audit.all_rows.of(f"{name} accuracy")
        assert value.head == pytest.approx(of.accuracy(ridge.coef_.T).mean())
        assert value.joint == pytest.approx(of.accuracy(joint).mean())
        assert audit.all_rows.of(f"{name} loss").head == pytest.approx(of.loss(ridge.coef_.T), rel=1e-6)
    assert audit.all_rows.of("training loss").joint == pytest.approx(audit.fit.floor, rel=1e-6)
    (line,) = [line for line in audit.opening if "fg.IncrementalRidgeClassifier" in line]
    assert f"{100 * audit.all_rows.of('held-out accuracy').head:.1f} % in any order" in line
    assert "What is reached without forgetting" in audit.to_text()
    assert type(audit).from_json(audit.to_json()).all_rows == audit.all_rows


def test_what_a_head_reaches_stands_before_advice_on_orders_that_keep_little():
    X, y = load_digits(n_class=6, return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:300]
    audit = fg.audit(fg.RegressionTasks.from_labels(X[rows] / 16, y[rows], y[rows] // 2), features=60)
    advice, head = (
        [line for line in audit.recommendation if words in line] for words in ("The best order", "IncrementalRidge")
    )
    assert advice
    assert audit.measure("training accuracy").mean < audit.all_rows.of("training accuracy").head / 2
    assert head[0] in audit.opening
    assert not any(line in audit.opening for line in advice)


def test_losses_that_are_rounding_are_shown_as_zero():
    audit = fg.audit(fg.families.two_lines(0.5))
    (table,) = [item for item in audit.to_report().items() if item.key == "heads"]
    assert 0 <= audit.all_rows.of("training loss").joint < 1e-25
    assert table.rows[0][-1] == "0"


def test_no_head_is_named_where_one_task_after_another_is_as_good():
    rng = np.random.default_rng(0)
    w = rng.standard_normal(3)
    Xs = [rng.standard_normal((20, 3)) for _ in range(3)]
    audit = fg.audit(fg.RegressionTasks(Xs, [X @ w for X in Xs]))  # each task alone gives w
    assert audit.all_rows.of("training loss").joint == pytest.approx(0.0, abs=1e-20)
    assert not any("If nothing may be forgotten" in line for line in audit.recommendation)
    assert fg.audit(fg.families.separable(T=3, d=4, n=3, margin=0.5, seed=0)).all_rows is None


def test_a_loss_that_all_rows_leave_none_of_is_zero_and_not_a_rounding_error():
    audit = fg.audit(fg.families.gaussian(T=4, d=8, rank=3, seed=0))
    value = audit.all_rows.of("training loss")
    assert (value.head, value.joint) == (0.0, 0.0)
    (line,) = [line for line in audit.recommendation if "If nothing may be forgotten" in line]
    assert line.endswith("has 0 in any order, and least squares on all rows at once 0.")


def test_heads_that_would_take_too_long_are_left_out():
    assert fg.audit(fg.families.gaussian(T=3, d=4, rank=2, seed=0), patience=0.0).all_rows is None
