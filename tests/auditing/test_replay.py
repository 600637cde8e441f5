"""What an audit says of replay, against runs made one by one."""

import itertools

import numpy as np
import pytest

import forgetting as fg
from forgetting.schemes import Kaczmarz, Replay


def labelled():
    rng = np.random.default_rng(3)
    centres = 2 * rng.standard_normal((6, 5))
    y = np.repeat(np.arange(6), 12)
    X = centres[y] + 0.5 * rng.standard_normal((72, 5))
    return fg.RegressionTasks.from_labels(X, y, y // 2, loss="mean")


def test_the_table_has_the_means_over_all_orders_of_three_tasks():
    tasks = labelled()
    found = fg.audit(tasks, repeats=1).replay
    assert found.exact
    assert [row.memory for row in found.rows] == [0, 1, 3, 12]
    for row in found.rows:
        scheme = Replay(memory=row.memory) if row.memory else Kaczmarz()
        runs = [fg.run(tasks, order, 3, scheme) for order in itertools.permutations(range(3))]
        losses = np.mean([run.losses[-1] for run in runs])
        shares = np.mean([run.accuracy[-1].mean() for run in runs])
        assert row.values[found.measures.index("training loss")] == pytest.approx(losses, rel=1e-9)
        assert row.values[found.measures.index("training accuracy")] == pytest.approx(shares)
        forgotten = np.mean([run.forgetting[-1] for run in runs])
        assert row.values[found.measures.index("forgetting")] == pytest.approx(forgotten, rel=1e-9)


def test_the_sentence_and_the_table_are_on_the_page_and_in_files():
    audit = fg.audit(labelled(), repeats=1)
    (line,) = [line for line in audit.recommendation if "fg.schemes.Replay" in line]
    assert line.startswith("Replay of rows of earlier tasks would help: a random order has a training accuracy of ")
    (table,) = [item for item in audit.to_report().items() if item.key == "replay"]
    assert table.rows[0][0] == audit.replay.measures[0]
    assert len(table.rows[0]) == 1 + len(audit.replay.rows)
    assert type(audit).from_json(audit.to_json()).replay == audit.replay


def test_replay_that_hurts_is_said_to_hurt():
    rows = [[[1.0, -2.0, 2.0, 0.0], [-1.0, -1.0, 0.0, -3.0]], [[1.0, 3.0, -2.0, -1.0], [2.0, 0.0, 1.0, -1.0]]]
    w = [2.0, -2.0, -1.0, 0.0]
    audit = fg.audit(fg.RegressionTasks(rows, [np.array(X) @ w for X in rows]), repeats=1)
    found = audit.replay
    assert [row.memory for row in found.rows] == [0, 1, 2]
    assert [found.effect("training loss", row) for row in found.rows[1:]] == [-1, 1]
    assert found.rows[1].values[0] > 60 * found.rows[0].values[0]
    (line,) = [line for line in audit.recommendation if "fg.schemes.Replay" in line]
    assert line.startswith(
        "Replay of rows of earlier tasks would help or hurt, by their number: a random order has a training loss of "
    )


def test_an_effect_that_chance_can_explain_is_none():
    from forgetting.auditing.replay import Replayed, ReplayTable

    none, some = Replayed(0, (1.0, 0.5), (0.0, 0.0)), Replayed(1, (0.9, 0.504), (0.04, 0.0))
    table = ReplayTable(("training loss", "training accuracy"), (none, some), 12, exact=False)
    assert [table.effect(name, some) for name in table.measures] == [0, 0]
    sure = Replayed(1, (0.9, 0.506), (0.03, 0.001))
    assert [table.effect(name, sure) for name in table.measures] == [1, 1]


def test_replay_that_takes_too_long_is_left_out_and_said():
    audit = fg.audit(fg.families.gaussian(T=4, d=20, rank=3, seed=0), repeats=1, patience=0.001, runs=128)
    assert audit.replay is None
    assert any(reason.startswith("replay: it would take about") for reason in audit.missing)


@pytest.mark.parametrize(
    "tasks",
    [
        fg.families.separable(T=3, d=4, n=2, margin=0.3, seed=0),
        fg.KernelTasks(np.eye(4) + 0.5, [1.0, 2.0, 0.0, 1.0], [0, 1, 1, 2]),
    ],
)
def test_tasks_without_rows_to_join_have_no_table(tasks):
    audit = fg.audit(tasks, repeats=1)
    assert audit.replay is None
    assert not any("replay" in reason for reason in audit.missing)
