"""Tasks on which orders say little are recognised, and said first; ridge is named with its loss where it helps."""

import re

import numpy as np
import pytest

import forgetting as fg
from forgetting.auditing import digits
from forgetting.auditing.findings import LAMBDAS, last_task_share
from forgetting.auditing.words import ordered

O = fg.orderings  # noqa: E741


def kinds(audit):
    return [case.kind for case in audit.cases]


def tasks(rows, d, seed=0, T=3, common=False):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=d)
    Xs = rng.normal(size=(T, rows, d))
    return [(X, X @ w if common else rng.normal(size=rows)) for X in Xs]


def test_one_task():
    audit = fg.audit(fg.families.gaussian(T=1, d=3, rank=1, seed=0))
    assert audit.opening == ("There is one task, so that there is no order to choose.",)
    assert kinds(audit) == ["one task"]


def test_the_same_tasks():
    audit = fg.audit(fg.families.repeated(fg.families.gaussian(T=1, d=3, rank=2, seed=0), 4))
    assert audit.opening == ("All 4 tasks are the same, so that there is no order to choose.",)


def test_labels_that_are_zero():
    audit = fg.audit([(X, 0 * y) for X, y in tasks(2, 5)])
    assert audit.opening == ("All labels are zero: nothing is learned, and nothing can be forgotten.",)
    started = fg.audit(fg.families.gaussian(T=3, d=5, rank=2, seed=0), w0=None)
    assert "zero labels" not in kinds(started)


def test_full_rank_tasks_leave_only_the_last_task():
    audit = fg.audit(tasks(9, 4))
    assert audit.opening[0] == (
        "Each task alone determines the model (its rows have rank 4, the dimension): only the last task learned "
        "matters, and forgetting measures how different the tasks are."
    )
    values = {order[-1]: [] for order in [(0, 1, 2), (1, 2, 0), (2, 0, 1)]}
    for order in ((0, 1, 2), (1, 0, 2), (1, 2, 0), (2, 1, 0), (2, 0, 1), (0, 2, 1)):
        run = fg.run(fg.load(tasks(9, 4)), O.Explicit(order), 3)
        values[order[-1]].append(run.losses[-1])
    assert all(a == pytest.approx(b) for a, b in values.values())
    solved = fg.audit(tasks(9, 4, common=True))
    assert "whichever comes first solves all tasks" in solved.opening[0]
    assert "last task" not in kinds(fg.audit(tasks(2, 4)))
    assert "last task" not in kinds(fg.audit(tasks(9, 4), scheme="ridge lam=1"))


def test_a_last_task_that_explains_nearly_everything_is_said():
    orders = np.array([[0, 1, 2], [1, 0, 2], [1, 2, 0], [2, 1, 0], [0, 2, 1], [2, 0, 1]])
    assert last_task_share(orders, [1.0, 1.1, 2.0, 2.1, 3.0, 3.1]) == pytest.approx(
        1 - 0.0025 / np.var([1, 1.1, 2, 2.1, 3, 3.1])
    )
    assert last_task_share(orders, [1.0] * 6) == 0.0
    # a weak column of its own keeps each task from determining all of w
    nearly = [
        (np.hstack([X, 1e-3 * np.eye(9)[:, [0]] * (np.arange(3) == m)]), y) for m, (X, y) in enumerate(tasks(9, 4))
    ]
    audit = fg.audit(nearly)
    assert "last task" not in kinds(audit)
    assert kinds(audit)[0] == "nearly last task"
    assert re.search(r"explains (99|100)\.\d % of the differences between orders", audit.cases[0].sentence)


def test_a_loss_that_rises_is_said_with_the_ridge_that_helps():
    permuted = digits("permuted")
    audit = fg.audit(permuted)
    (case,) = [case for case in audit.cases if case.kind == "rises"]
    assert case.sentence in audit.opening
    assert case.sentence.startswith(
        "Learning each task to convergence (until its loss falls no further) makes the model far worse than no "
        "learning: one pass in the given order takes the mean loss from"
    )
    words = re.search(
        r"from ([\d,.]+) to ([\d,.]+); ridge regression towards the previous solution, with strength ([\d.]+), takes "
        r"it to ([\d,]+) \(scheme='ridge lam=1000'\)\.",
        case.sentence,
    )
    start, end, lam, helped = (float(word.replace(",", "")) for word in words.groups())
    ends = {one: fg.run(permuted, O.Cyclic(), 5, fg.schemes.Ridge(one)).losses[-1] for one in LAMBDAS}
    assert start == pytest.approx(permuted.loss(np.zeros(64)), abs=0.51)
    assert end == pytest.approx(fg.run(permuted, O.Cyclic(), 5).losses[-1], abs=0.51)
    assert lam == min(ends, key=ends.get)
    assert helped == pytest.approx(ends[lam], abs=0.51)
    assert helped < start
    with_ridge = fg.audit(permuted, scheme=f"ridge lam={lam:g}")
    assert "rises" not in kinds(with_ridge)
    assert with_ridge.measure("training loss").given == pytest.approx(ends[lam])


def test_a_task_that_is_far_larger_is_named():
    parts = tasks(3, 12, T=4, common=True)
    X, y = parts[2]
    audit = fg.audit([*parts[:2], (40 * X, 40 * y), parts[3]])
    (case,) = [case for case in audit.cases if case.kind == "large task"]
    assert "task 2 (its norm is 37" in case.sentence
    assert "of the loss before learning" in case.sentence
    assert case.sentence in audit.opening
    assert "large task" not in kinds(fg.audit(parts))
    labels = fg.audit([*parts[:2], (X, 100 * y), parts[3]])  # its loss alone is large
    (case,) = [case for case in labels.cases if case.kind == "large task"]
    assert "task 2 (it has" in case.sentence


def test_where_only_the_last_task_matters_orders_are_named_by_it():
    rng = np.random.default_rng(3)
    sizes = (1.0, 1.0, 30.0, 1.0, 1.0, 1.0)
    tasks = fg.RegressionTasks(rng.normal(size=(6, 6, 3)), [size * rng.normal(size=6) for size in sizes])
    audit = fg.audit(tasks)
    assert audit.cases[0].kind == "last task"
    assert audit.search.worst.order[-1] == 2
    assert ordered(audit, audit.search.worst.order) == "any order that ends with task 2"
    other = fg.audit(fg.families.gaussian(T=3, d=5, rank=2, seed=0))
    assert ordered(other, (2, 0, 1)) == "2, 0, 1"
