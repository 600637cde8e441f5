"""Audits of classification tasks and of convex sets: orders compared by runs, and what is missing is said."""

from itertools import permutations

import numpy as np
import pytest

import forgetting as fg
from forgetting.auditing import Audit
from forgetting.errors import NotSupportedError

O = fg.orderings  # noqa: E741


@pytest.fixture(scope="module")
def separable():
    return fg.families.separable(T=3, d=4, n=4, margin=0.2, seed=0)


@pytest.fixture(scope="module")
def classes(separable):
    return fg.audit(separable, passes=2, runs=20)


def test_classification_tasks_are_compared_by_runs(separable, classes):
    runs = {order: fg.run(separable, O.Explicit(order), 3) for order in permutations(range(3))}
    losses = np.array([run.losses[-1] for run in runs.values()])
    assert classes.kind_of_tasks == "classification"
    assert classes.search.exact
    assert classes.search.worst.value == pytest.approx(losses.max())
    assert [one.name for one in classes.measures] == ["training loss", "training accuracy"]
    assert sorted(classes.measure("training loss").values) == pytest.approx(sorted(losses))
    rates = [
        np.mean([np.mean(separable.signed_rows(m) @ run.iterates[-1] > 0) for m in range(3)]) for run in runs.values()
    ]
    assert sorted(classes.measure("training accuracy").values) == pytest.approx(sorted(rates))
    row = classes.ordering("random permutation")
    assert (row.method, row.exact) == ("listing", True)
    assert row.loss == pytest.approx(losses.mean())
    expected = np.mean([run.forgetting[-1] for run in runs.values()])
    assert row.forgetting == pytest.approx(expected)


def test_what_is_missing_is_said_on_both_pages(classes):
    assert any("principal angles" in line and "ClassificationTasks" in line for line in classes.missing)
    for page in (classes.to_text(200), classes.to_html()):
        assert "Not in this audit" in page
        assert "they need linear tasks, not ClassificationTasks" in page
    assert classes.overlap == ()
    assert [item.key for item in classes.to_report().items() if item.key in ("overlap", "angles")] == []
    assert Audit.from_json(classes.to_json()) == classes


def test_held_out_rows_of_classification_tasks(separable):
    rng = np.random.default_rng(0)
    rows = [(rng.normal(size=(9, 4)), rng.choice([-1, 1], size=9)) for _ in range(3)]
    test = fg.ClassificationTasks([X for X, _ in rows], [y for _, y in rows])
    audit = fg.audit(separable, passes=2, runs=20, test=test)
    w = fg.run(separable, O.Cyclic(), 3).iterates[-1]
    assert audit.measure("held-out loss").given == pytest.approx(test.loss(w))
    rate = np.mean([np.mean(y * (X @ w) > 0) for X, y in rows])
    assert audit.measure("held-out accuracy").given == pytest.approx(rate)


def test_convex_sets_are_compared_by_residuals():
    sets = fg.ConvexSets([fg.Ball([0.0, 0.0], 1.0), fg.Halfspace([1.0, 0.2], 0.5), fg.Box([0.3, -1.0], [2.0, 2.0])])
    audit = fg.audit(sets, w0=[-3.0, 4.0], passes=2, runs=20)
    losses = [fg.run(sets, O.Explicit(order), 3, w0=[-3.0, 4.0]).losses[-1] for order in permutations(range(3))]
    assert audit.kind_of_tasks == "sets"
    assert sorted(audit.measure("training loss").values) == pytest.approx(sorted(losses), abs=1e-12)
    assert "half the squared distance" in audit.unit
    assert audit.to_html()
    assert Audit.from_json(audit.to_json()) == audit


def test_other_schemes_that_draw_nothing_are_allowed_and_rows_are_not_prepared(separable):
    audit = fg.audit(separable, scheme="weakly-regularized log_lambda=-20", passes=2, runs=4)
    assert [one.name for one in audit.measures][:2] == ["training loss", "forgetting"]
    run = fg.run(separable, O.Cyclic(), 3, "weakly-regularized log_lambda=-20")
    assert audit.measure("training loss").given == pytest.approx(run.losses[-1])
    with pytest.raises(NotSupportedError, match="not of ClassificationTasks"):
        fg.audit(separable, features=9)
