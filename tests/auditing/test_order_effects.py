"""The landscape of orders of an audit: the values that were computed anyway, their parts, and a file of them."""

import json
from itertools import permutations

import numpy as np
import pytest

import forgetting as fg
from forgetting.auditing import Audit, Landscape, landscape
from forgetting.cli import run_app
from forgetting.errors import InvalidInputError, NotSupportedError


def tasks_with_classes(T=4):
    rng = np.random.default_rng(0)
    Xs, ys = rng.normal(size=(T, 7, 6)), np.where(rng.random((T, 7)) < 0.5, 1.0, -1.0)
    return fg.RegressionTasks(Xs, ys, names=[f"day {m}" for m in range(T)])


@pytest.fixture(scope="module")
def audit():
    return fg.audit(tasks_with_classes(), seed=5)


def test_the_landscape_of_an_audit_is_that_of_the_tasks(audit):
    tasks = tasks_with_classes()
    mine, theirs = audit.landscape(), landscape(tasks, per_task=True)
    assert np.array_equal(mine.permutations, theirs.permutations)
    assert mine.values == pytest.approx(theirs.values)
    assert mine.task_values == pytest.approx(theirs.task_values)
    assert mine.names == tasks.names
    assert mine.seeds.tolist() == [5]
    rates = audit.landscape("training accuracy")
    by_hand = landscape(tasks, tasks.accuracy, higher_is_better=True)
    assert rates.higher_is_better
    assert rates.values == pytest.approx(by_hand.values)
    assert rates.disparity.per_task == pytest.approx(by_hand.disparity.per_task)


def test_identical_tasks_are_interchangeable():
    rng = np.random.default_rng(1)
    Xs, ys = rng.normal(size=(3, 2, 5)), rng.normal(size=(3, 2))
    tasks = fg.RegressionTasks(Xs[[0, 1, 0, 2]], ys[[0, 1, 0, 2]])
    audit = fg.audit(tasks)
    assert len(audit.orders) == 12  # 4! / 2!
    found = audit.landscape()
    assert len(found.values) == 24
    for row, order in enumerate(permutations(range(4))):
        losses = fg.run(tasks, fg.orderings.Explicit(order), 4).loss_matrix[-1]
        assert found.values[row, 0] == pytest.approx(losses.mean())
        assert found.task_values[row, :, 0] == pytest.approx(losses)


def test_the_page_says_what_explains_the_differences_and_the_disparity(audit):
    section = next(part for part in audit.to_report().sections if part.key == "landscape")
    table = section.items[0]
    assert [row[0] for row in table.rows] == ["training loss", "training accuracy"]
    shares = audit.landscape().variance.shares
    assert f"explains {round(100 * shares[0])} % of the variance over orders" in section.text
    disparity = audit.landscape("training accuracy").disparity
    most = audit.tasks[int(np.argmax(disparity.per_task))].name
    assert table.rows[1][-2:] == (
        f"{100 * disparity.mean:.1f} points", f"{100 * disparity.maximum:.1f} points (task {most})"
    )  # fmt: skip
    assert "What explains the differences between orders" in audit.to_text(100)


def test_two_tasks_and_sampled_orders_have_no_such_section():
    for tasks in (fg.families.two_lines(0.5), fg.families.gaussian(T=7, d=9, rank=1, seed=0)):
        audit = fg.audit(tasks)
        assert not any(part.key == "landscape" for part in audit.to_report().sections)
    with pytest.raises(NotSupportedError, match="random orders of 7 tasks were tried, and not all"):
        audit.landscape()
    with pytest.raises(InvalidInputError, match="no measure 'accuracy'"):
        audit.landscape("accuracy")


def test_the_audit_reloads_with_its_landscape(audit):
    again = Audit.from_json(audit.to_json())
    assert again == audit
    assert np.array_equal(again.landscape().values, audit.landscape().values)
    older = json.loads(audit.to_json())
    del older["orders"]
    for measure in older["measures"]:
        del measure["task_values"]
    with pytest.raises(NotSupportedError, match="and not all"):
        Audit.from_json(json.dumps(older)).landscape()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data["orders"].pop(), "not one value for each of 23 orders"),
        (lambda data: data["orders"][3].__setitem__(0, 3), "does not name each of 4 tasks once"),
        (lambda data: data["measures"][0]["task_values"].pop(), "not one value for each of 24 orders"),
        (lambda data: data["measures"][0]["task_values"][0].pop(), "not a value for each of 4 tasks"),
    ],
)
def test_damaged_values_are_refused(audit, change, words):
    data = json.loads(audit.to_json())
    change(data)
    with pytest.raises(InvalidInputError, match=words):
        Audit.from_json(json.dumps(data))


def test_the_file_has_every_measure_and_reads_back(audit, tmp_path):
    audit.write_landscape(tmp_path / "orders.npz")
    loss = Landscape.from_npz(tmp_path / "orders.npz")
    assert np.array_equal(loss.values, audit.landscape().values)
    assert np.array_equal(loss.task_values, audit.landscape().task_values)
    rates = Landscape.from_npz(tmp_path / "orders.npz", values_key="training_accuracy", higher_is_better=True)
    assert np.array_equal(rates.values, audit.landscape("training accuracy").values)
    assert np.array_equal(rates.task_values, audit.landscape("training accuracy").task_values)


def test_forgetting_has_no_values_of_tasks(tmp_path):
    audit = fg.audit(tasks_with_classes(), scheme="ridge lam=5")
    assert audit.landscape("forgetting").task_values is None
    audit.write_landscape(tmp_path / "orders.npz")
    found = Landscape.from_npz(tmp_path / "orders.npz", values_key="forgetting")
    assert found.task_values is None
    assert np.array_equal(found.values, audit.landscape("forgetting").values)


def test_the_command_writes_the_landscape_and_reads_it(tmp_path, capsys):
    out = str(tmp_path / "orders.npz")
    line = ["audit", "gaussian", "T=4", "d=8", "rank=2", "--landscape", out]
    assert run_app(line) == 0
    assert "orders.npz" in capsys.readouterr().out.split("wrote ")[-1]
    assert run_app(line) != 0  # the file is there
    assert run_app([*line, "--force"]) == 0
    capsys.readouterr()
    assert run_app(["audit", out, "quantity=loss"]) == 0
    assert "24 orders" in capsys.readouterr().out


def test_other_endings_and_too_many_tasks_are_said(capsys):
    assert run_app(["audit", "gaussian", "T=4", "--landscape", "orders.csv"]) != 0
    assert "written to an .npz file" in " ".join(capsys.readouterr().err.split())


def test_an_audit_without_a_landscape_is_shown_before_the_error(tmp_path, capsys):
    assert run_app(["audit", "gaussian", "T=7", "d=8", "rank=1", "--landscape", str(tmp_path / "orders.npz")]) != 0
    out, err = capsys.readouterr()
    assert "What each ordering leads to" in out
    assert "random orders of 7 tasks were tried, and not all" in " ".join(err.split())
    assert not (tmp_path / "orders.npz").exists()
