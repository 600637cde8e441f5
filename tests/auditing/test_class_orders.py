"""Class orders: what the audit learns many at a time is what each order gives when it is learned alone."""

import json
import math
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy import sparse

import forgetting as fg
from forgetting import metrics
from forgetting.auditing.class_orders import _interval, search_class_orders, swaps
from forgetting.auditing.class_scores import MEASURES, ClassLearner
from forgetting.geometry.factor import factor_task
from forgetting.tasks.class_splits import codes_of, learned_rows


def data(classes=7, rows=6, d=20, seed=0, names=None):
    """Learned and held-out rows of overlapping classes, with different numbers of rows."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((classes, d))
    parts = []
    for part in range(2):
        labels = np.concatenate([np.full(rows + (code + part) % 3, code) for code in range(classes)])
        labels = rng.permutation(labels)
        parts.append((centres[labels] + 1.5 * rng.standard_normal((len(labels), d)), labels))
    if names is not None:
        parts = [(X, np.array(names)[labels]) for X, labels in parts]
    return parts


def learned_alone(train, test, parts, classes="all", lam=None):
    """The matrix R of a class order, by lstsq and a count of largest scores: nothing of the package is used."""
    (X, labels), (held, held_labels) = train, test
    every = sorted(set(labels.tolist()))
    width = len(every) if classes == "all" else max(2, *map(len, parts))

    def column(label, part):
        return every.index(label) if classes == "all" else sorted(part).index(label)

    W = np.zeros((X.shape[1], width))
    R = np.full((len(parts), len(parts)), np.nan)
    for t, part in enumerate(parts):
        mine = np.isin(labels, part)
        targets = np.zeros((mine.sum(), width))
        targets[np.arange(mine.sum()), [column(label, part) for label in labels[mine]]] = 1.0
        missed = targets - X[mine] @ W
        if lam is None:
            W = W + np.linalg.lstsq(X[mine], missed, rcond=None)[0]
        else:
            W = W + np.linalg.solve(X[mine].T @ X[mine] + lam * np.eye(X.shape[1]), X[mine].T @ missed)
        seen = sorted(label for done in parts[: t + 1] for label in done)
        for s, other in enumerate(parts[: t + 1]):
            among = [column(label, other) for label in (seen if classes == "all" else sorted(other))]
            rows = np.flatnonzero(np.isin(held_labels, other))
            scores = held[rows] @ W[:, among]
            right = [among.index(column(held_labels[row], other)) for row in rows]
            top = scores > scores.max(axis=1, keepdims=True) - 1e-11  # forgotten classes score 0 up to rounding
            R[t, s] = np.mean(top[np.arange(len(rows)), right] / top.sum(axis=1))
    return R


def measured(R, rows):
    """The measures of a class order from its matrix R, by the functions of `fg.metrics` where these have them."""
    T, steps = len(R), range(len(R))
    filled = np.where(np.isnan(R), -1.0, R)  # of tasks not seen yet, which no measure may use
    seen = [np.sum(R[t, : t + 1] * rows[: t + 1]) / np.sum(rows[: t + 1]) for t in steps]
    return [
        seen[-1],
        np.mean(seen),
        np.nanmean(metrics.forgetting(R, steps, "chaudhry")),
        np.mean(metrics.forgetting(filled, steps, "first")),
        metrics.backward_transfer(filled, steps),
        np.mean(R[-1]),
        metrics.average_incremental(filled, steps),
    ][: len(MEASURES) if T else 0]


@pytest.mark.parametrize("classes", ["all", "task"])
@pytest.mark.parametrize("lam", [None, 3.0])
@pytest.mark.parametrize("sizes", [3, [1, 4, 2]])
def test_accuracies_of_many_orders_are_those_of_each_order_learned_alone(classes, lam, sizes):
    train, test = data()
    splits = fg.ClassSplits(*train, sizes, test, classes)
    learner = ClassLearner(splits, None if lam is None else fg.schemes.Ridge(lam))
    codes = splits.partitions.draw(40, np.random.default_rng(1))
    scores = learner.scores(codes)
    for order, R, rows, values in zip(codes, scores.accuracies, scores.rows, scores.values, strict=True):
        parts = [part.tolist() for part in np.split(order, splits.partitions.cuts[1:-1])]
        alone = learned_alone(train, test, parts, classes, lam)
        np.testing.assert_allclose(R, alone, atol=1e-12)
        assert rows.tolist() == [np.isin(test[1], part).sum() for part in parts]
        np.testing.assert_allclose(values, measured(alone, rows), atol=1e-12)


def test_the_tasks_of_an_order_run_to_the_same_final_accuracy():
    train, test = data(names=["ant", "bee", "cat", "dog", "eel", "fox", "gnu"])
    for classes in ("all", "task"):
        splits = fg.ClassSplits(*train, 3, test, classes)
        order = ["gnu", "ant", "dog", "fox", "cat", "bee", "eel"]
        tasks, held = splits.tasks(order), splits.test_tasks(order)
        run = fg.run(tasks, "cyclic", k=3)
        scores = ClassLearner(splits, None).scores(codes_of(splits, order)[None])
        np.testing.assert_allclose(held.accuracies(run.iterates[-1:])[0], scores.accuracies[0, -1], atol=1e-12)
        assert tasks.names == ("ant, dog, gnu", "cat, fox", "bee, eel")
        assert held.classes == tasks.classes


def test_sparse_rows_give_what_dense_rows_give():
    (X, labels), (held, held_labels) = data()
    X, held = X * (X > 0.5), held * (held > 0.5)
    dense = fg.ClassSplits(X, labels, 3, (held, held_labels))
    thin = fg.ClassSplits(sparse.csr_matrix(X), labels, 3, (sparse.csr_array(held), held_labels))
    codes = dense.partitions.draw(20, np.random.default_rng(0))
    np.testing.assert_allclose(
        ClassLearner(thin, None).measured(codes).values, ClassLearner(dense, None).measured(codes).values
    )


def test_classes_of_many_rows_are_reduced_without_a_change_of_any_accuracy():
    train, test = data(classes=5, rows=40, d=6)
    splits = fg.ClassSplits(*train, 2, test)
    assert len(learned_rows(splits)[0]) <= 5 * 7 < len(train[0])
    for lam in (None, 2.0):
        codes = splits.partitions.all()
        values = ClassLearner(splits, None if lam is None else fg.schemes.Ridge(lam)).measured(codes).values
        for order, row in zip(codes, values, strict=True):
            parts = [part.tolist() for part in np.split(order, splits.partitions.cuts[1:-1])]
            R = learned_alone(train, test, parts, "all", lam)
            np.testing.assert_allclose(row, measured(R, [np.isin(test[1], part).sum() for part in parts]), atol=1e-12)


def test_sets_of_classes_that_do_not_fit_in_memory_are_taken_in_turn(monkeypatch):
    train, test = data()
    splits = fg.ClassSplits(*train, 3, test)
    codes = splits.partitions.draw(30, np.random.default_rng(2))
    together = ClassLearner(splits, None).measured(codes).values
    monkeypatch.setattr("forgetting.auditing.class_scores.SHARED", 1)
    np.testing.assert_allclose(ClassLearner(splits, None).measured(codes).values, together, atol=1e-12)


def test_all_orders_are_the_different_ordered_partitions():
    splits = fg.ClassSplits(np.eye(5), list("abcde"), [1, 2, 2])
    orders = [tuple(order) for order in splits.orders().tolist()]
    wanted = {(order[0], *sorted(order[1:3]), *sorted(order[3:])) for order in permutations("abcde")}
    assert len(orders) == splits.num_orders == math.factorial(5) // 4
    assert set(orders) == wanted
    drawn = {tuple(order) for order in splits.draw(500, seed=3).tolist()}
    assert drawn == wanted


def test_classes_on_a_tie_share_the_row():
    splits = fg.ClassSplits(np.eye(4), range(4), 2, (np.zeros((4, 4)), range(4)))
    scores = ClassLearner(splits, None).scores(np.array([[0, 1, 2, 3]]))
    np.testing.assert_allclose(scores.accuracies[0], [[0.5, np.nan], [0.25, 0.25]])


# --------------------------------------------------------------------------------------------------------------- audit


@pytest.fixture(scope="module")
def six():
    """A benchmark of six classes in three pairs, whose 90 class orders are also learned alone."""
    train, test = data(classes=6, d=15, names=["ant", "bee", "cat", "dog", "eel", "fox"])
    splits = fg.ClassSplits(*train, 3, test)
    orders = splits.orders()
    values = []
    for order in orders.tolist():
        parts = [order[:2], order[2:4], order[4:]]
        rows = [np.isin(test[1], part).sum() for part in parts]
        values.append(measured(learned_alone(train, test, parts), rows))
    return splits, orders, np.array(values)


def test_an_exact_audit_says_what_enumeration_says(six):
    splits, orders, values = six
    audit = fg.audit(splits, order=["cat", "ant", "fox", "bee", "dog", "eel"])
    assert (audit.exact, audit.drawn, audit.searched, audit.num_orders) == (True, 90, 0, 90)
    assert [measure.name for measure in audit.measures] == [measure.name for measure in MEASURES]
    given = int(np.flatnonzero((orders == ["ant", "cat", "bee", "fox", "dog", "eel"]).all(axis=1))[0])
    for measure, column in zip(audit.measures, values.T, strict=True):
        assert measure.mean == pytest.approx(column.mean())
        assert measure.sd == pytest.approx(column.std())
        assert measure.mean_interval == (measure.mean, measure.mean)
        assert [value for value, _, _ in measure.quantiles] == pytest.approx(
            np.quantile(column, [0.05, 0.25, 0.5, 0.75, 0.95], method="inverted_cdf")
        )
        best, worst = (column.max(), column.min()) if measure.higher else (column.min(), column.max())
        assert (measure.best.value, measure.worst.value) == pytest.approx((best, worst))
        assert measure.best.tied == np.sum(np.abs(column - best) < 1e-9)
        row = int(np.flatnonzero((orders == measure.best.order).all(axis=1))[0])
        assert column[row] == pytest.approx(best)
        assert measure.given == pytest.approx(column[given])
        sign = 1 if measure.higher else -1
        assert measure.better == pytest.approx(np.mean(sign * (column - column[given]) > 1e-9))
        assert sum(measure.shares) == pytest.approx(1.0)
    assert audit.given.order == tuple(orders[given].tolist())


def test_effects_of_classes_are_differences_of_means(six):
    splits, orders, values = six
    final, audit = values[:, 0], fg.audit(splits)
    assert len(audit.pairs) == 15
    differences = [pair.difference for pair in audit.pairs]
    assert differences == sorted(differences)
    for pair in audit.pairs:
        together = np.array(
            [any({*order[i : i + 2]} == {*pair.classes} for i in (0, 2, 4)) for order in orders.tolist()]
        )
        assert together.sum() == 18
        assert pair.difference == pytest.approx(final[together].mean() - final[~together].mean())
    for place in audit.places:
        for columns, effect in ((orders[:, :2], place.first), (orders[:, 4:], place.last)):
            there = (columns == place.name).any(axis=1)
            assert effect == pytest.approx(final[there].mean() - final[~there].mean())


def test_three_seeds_say_what_all_triples_say(six):
    splits, _, values = six
    few, final = fg.audit(splits).few[0], values[:, 0]
    triples = final[np.stack(np.meshgrid(*[np.arange(90)] * 3), axis=-1).reshape(-1, 3)]
    mean, sd = triples.mean(axis=1), triples.std(axis=1, ddof=1)
    off = np.abs(mean - final.mean()) - 1e-12
    assert few.sd_covers == pytest.approx(np.mean(off <= sd), abs=0.01)
    assert few.t_covers == pytest.approx(np.mean(off <= 4.302653 * sd / math.sqrt(3)), abs=0.01)
    assert few.sd_width == pytest.approx(sd.mean(), rel=0.01)
    assert few.t_width == pytest.approx(4.302653 * sd.mean() / math.sqrt(3), rel=0.01)
    assert few.halved == pytest.approx(np.mean(sd < final.std() / 2), abs=0.01)
    assert few.range_missed == pytest.approx(1 - np.ptp(triples, axis=1).mean() / np.ptp(final), abs=0.01)


def test_the_number_of_orders_is_that_of_a_normal_mean(six):
    measure = fg.audit(six[0]).measures[0]
    for error in (0.01, 0.005):
        assert measure.orders_needed(error) == math.ceil((1.959964 * measure.sd / error) ** 2)
    with pytest.raises(fg.errors.InvalidInputError, match="error"):
        measure.orders_needed(0.0)


def test_sampled_values_carry_intervals_that_hold_and_extremes_that_exist(six, monkeypatch):
    monkeypatch.setattr("forgetting.auditing.class_orders.FEWEST", 100)
    splits, _, values = six
    exact = fg.audit(splits)
    known = {pair.classes: pair.difference for pair in exact.pairs}
    for seed in range(3):
        audit = fg.audit(splits, patience=0, seed=seed)
        assert (audit.exact, audit.drawn) == (False, 100)
        assert 0 < audit.searched <= 100
        assert audit.to_json() == fg.audit(splits, patience=0, seed=seed).to_json()
        for measure, whole, column in zip(audit.measures, exact.measures, values.T, strict=True):
            assert measure.mean_interval[0] <= whole.mean <= measure.mean_interval[1]
            assert measure.sd_interval[0] <= whole.sd <= measure.sd_interval[1]
            for (_, low, high), (value, _, _) in zip(measure.quantiles, whole.quantiles, strict=True):
                assert low - 1e-9 <= value <= high + 1e-9
            for found in (measure.best, measure.worst):
                assert np.abs(column - found.value).min() < 1e-12
            assert measure.best.tied == 1
        assert audit.measures[0].best.value == pytest.approx(exact.measures[0].best.value)  # of 90 class orders
        for pair in audit.pairs:
            assert pair.interval[0] <= known[pair.classes] <= pair.interval[1]


def test_a_search_does_not_factorise_again_the_sets_that_a_move_keeps(monkeypatch):
    factorised = []

    def counted(rows, *rest):
        factorised.append(len(rows))
        return factor_task(rows, *rest)

    monkeypatch.setattr("forgetting.auditing.class_scores.factor_task", counted)
    learner = ClassLearner(fg.ClassSplits(np.eye(60), range(60), 10), None)
    order = np.arange(60)
    learner.measured(order[None])
    assert len(factorised) == 10
    order[[0, 6]] = order[[6, 0]]
    learner.measured(learner.splits.partitions.sorted(order[None]))
    assert len(factorised) == 12  # the two sets that have changed


def test_what_takes_much_longer_than_the_patience_is_said_before(six, monkeypatch):
    monkeypatch.setattr("forgetting.auditing.class_orders.LONG", 0.0)
    with pytest.warns(
        fg.errors.DataWarning, match=r"30 class orders drawn and 30 searched, .* patience = 0: give fewer"
    ):
        fg.audit(six[0], patience=0)


def test_no_more_class_orders_are_averaged_than_there_are(six):
    audit = fg.audit(six[0])
    few = next(sentence for sentence in audit.opening if sentence.startswith("Three random"))
    assert f"a t-interval (95 %), which holds the mean in {100 * audit.few[0].t_covers:.0f} %" in few
    wild = replace(audit, measures=(replace(audit.measures[0], sd=0.2), *audit.measures[1:]))
    needed = next(sentence for sentence in wild.opening if sentence.startswith("For a mean"))
    assert needed.endswith("average all 90 class orders; within 0.5 points, all 90.")


def test_a_search_swaps_classes_of_different_tasks_and_tasks_of_one_size():
    splits = fg.ClassSplits(np.eye(5), range(5), [2, 1, 2])
    moves = swaps(splits).tolist()
    assert [0, 0, 1] not in moves  # of one task
    assert [0, 1, 2] in moves
    assert [move for move in moves if move[0] == 1] == [[1, 0, 2]]


def test_a_search_finds_one_of_113400_class_orders():
    splits = fg.ClassSplits(np.eye(10), range(10), 5)
    wanted = np.array([6, 9, 3, 4, 0, 8, 1, 2, 5, 7])

    def learn(orders):
        return -(splits.partitions.sorted(orders) != wanted).sum(axis=1).astype(float)

    codes = splits.partitions.draw(4, np.random.default_rng(0))
    low, high = search_class_orders(splits, learn, codes, learn(codes), 2000, np.random.default_rng(0))
    assert (low, high) == (-10.0, 0.0)


def test_intervals_of_differences_hold_in_most_repeats():
    held, widths = 0, []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        chosen = rng.random(1000) < 0.2
        values = (rng.random(1000) < np.where(chosen, 0.7, 0.5)).astype(float)
        low, high = _interval(values, chosen, 1, False)
        held += low <= 0.2 <= high
        widths.append(high - low)
    assert held == 40  # each with a probability of at least 99 %
    assert max(widths) < 0.45
    assert _interval(values, np.zeros(1000, dtype=bool), 1, False) == (-1.0, 1.0)


def test_a_benchmark_whose_class_order_does_not_matter_is_called_so():
    audit = fg.audit(fg.ClassSplits(np.eye(6), range(6), tasks=3))
    assert audit.opening[0].startswith("The class order does not matter: the final accuracy (learned rows")
    assert audit.measures[0].orders_needed(0.01) == 1
    assert audit.measures[0].best.tied == audit.num_orders == 90
    assert len(audit.opening) == 1
    assert len(audit.measures) == 5  # rows and tasks weigh alike
    assert fg.audit(fg.ClassSplits(np.eye(3), range(3), tasks=3)).pairs == ()


def test_an_option_without_meaning_is_named(six):
    for options in ({"rows": 5}, {"features": 10}, {"loss": "mean"}, {"passes": 4}, {"test": six[0]}, {"w0": 0}):
        name = next(iter(options))
        with pytest.raises(fg.errors.InvalidInputError, match=f"{name}= has no meaning for an audit of class orders"):
            fg.audit(six[0], **options)
    with pytest.raises(fg.errors.InvalidInputError, match=r"order\[0\]: no class 'owl'"):
        fg.audit(six[0], order=["owl"])
    with pytest.raises(fg.errors.NotSupportedError, match=r"NLMS.*fg.run\(splits.tasks\(order\), ...\)"):
        fg.audit(six[0], scheme="nlms")


def test_progress_is_reported(six):
    seen = []
    fg.audit(six[0], progress=lambda name, done, total: seen.append((name, done, total)))
    assert seen[0] == ("class orders", 0, 3)
    assert seen[-1] == ("done", 3, 3)


def test_an_audit_is_saved_and_written(six, tmp_path):
    audit = fg.audit(six[0], order=list(six[0].class_names), patience=0, title="six animals")
    kind = type(audit)
    assert kind.from_json(audit.to_json()) == audit
    audit.save(tmp_path / "audit.npz")
    assert kind.load(tmp_path / "audit.npz") == audit
    audit.write_page(tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    for words in ("six animals", "What three seeds would say", "Which classes should not share a task", "found by"):
        assert words in page
    text = audit.to_text(100)
    assert max(map(len, text.splitlines())) <= 100
    assert "The given class order, ant, bee | cat, dog | eel, fox, reaches" in text.replace("\n", " ").replace(
        "  ", " "
    )
    with pytest.raises(fg.errors.InvalidInputError, match="does not name each of 6 classes once"):
        kind.from_json(audit.to_json().replace('"given": {"order": ["ant"', '"given": {"order": ["bee"'))


def test_class_orders_that_are_more_than_an_integer_holds_are_audited():
    X = np.random.default_rng(0).standard_normal((120, 3))
    audit = fg.audit(fg.ClassSplits(X, list(range(60)) * 2, 30), patience=0)
    assert audit.num_orders == math.factorial(60) // 2**30
    assert (audit.exact, audit.drawn) == (False, 30)
    assert type(audit).from_json(audit.to_json()) == audit
    assert f"30 of 10^{len(str(audit.num_orders)) - 1} class orders were drawn" in " ".join(audit.to_text().split())
    assert len(audit.pairs) == 40


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["measures"][0].update(sd=1e308),
        lambda data: data["measures"][1].update(name="x"),
        lambda data: data["measures"][0].update(shares=[-1.0]),
    ],
)
def test_a_damaged_result_is_refused(six, change):
    audit = fg.audit(six[0])
    data = json.loads(audit.to_json())
    change(data)
    with pytest.raises(fg.errors.InvalidInputError, match="not a class order audit"):
        type(audit).from_json(json.dumps(data))


def test_a_title_that_is_no_text_is_named(six):
    with pytest.raises(fg.errors.InvalidInputError, match="title: "):
        fg.audit(six[0], title=3)


def test_a_scheme_that_diverges_is_named(six):
    with pytest.raises(fg.errors.InvalidInputError, match=r"SGD.* diverges"):
        fg.audit(six[0], scheme=fg.schemes.SGD(step_size=1e200))
