"""Class orders: what the audit learns many at a time is what each order gives when it is learned alone."""

import math
from itertools import permutations

import numpy as np
import pytest
from scipy import sparse

import forgetting as fg
from forgetting import metrics
from forgetting.auditing.class_scores import MEASURES, ClassLearner


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
    codes = splits.draw_codes(40, np.random.default_rng(1))
    scores = learner.scores(codes)
    for order, R, rows, values in zip(codes, scores.accuracies, scores.rows, scores.values, strict=True):
        parts = [part.tolist() for part in np.split(order, splits.cuts[1:-1])]
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
        scores = ClassLearner(splits, None).scores(splits.order_codes(order)[None])
        np.testing.assert_allclose(held.accuracies(run.iterates[-1:])[0], scores.accuracies[0, -1], atol=1e-12)
        assert tasks.names == ("ant, dog, gnu", "cat, fox", "bee, eel")
        assert held.classes == tasks.classes


def test_sparse_rows_give_what_dense_rows_give():
    (X, labels), (held, held_labels) = data()
    X, held = X * (X > 0.5), held * (held > 0.5)
    dense = fg.ClassSplits(X, labels, 3, (held, held_labels))
    thin = fg.ClassSplits(sparse.csr_matrix(X), labels, 3, (sparse.csr_array(held), held_labels))
    codes = dense.draw_codes(20, np.random.default_rng(0))
    np.testing.assert_allclose(ClassLearner(thin, None).values(codes), ClassLearner(dense, None).values(codes))


def test_classes_of_many_rows_are_reduced_without_a_change_of_any_accuracy():
    train, test = data(classes=5, rows=40, d=6)
    splits = fg.ClassSplits(*train, 2, test)
    assert len(splits._reduced[0]) <= 5 * 7 < len(train[0])
    for lam in (None, 2.0):
        codes = splits.all_codes()
        values = ClassLearner(splits, None if lam is None else fg.schemes.Ridge(lam)).values(codes)
        for order, row in zip(codes, values, strict=True):
            parts = [part.tolist() for part in np.split(order, splits.cuts[1:-1])]
            R = learned_alone(train, test, parts, "all", lam)
            np.testing.assert_allclose(row, measured(R, [np.isin(test[1], part).sum() for part in parts]), atol=1e-12)


def test_sets_of_classes_that_do_not_fit_in_memory_are_taken_in_turn(monkeypatch):
    train, test = data()
    splits = fg.ClassSplits(*train, 3, test)
    codes = splits.draw_codes(30, np.random.default_rng(2))
    together = ClassLearner(splits, None).values(codes)
    monkeypatch.setattr("forgetting.auditing.class_scores.SHARED", 1)
    np.testing.assert_allclose(ClassLearner(splits, None).values(codes), together, atol=1e-12)


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
