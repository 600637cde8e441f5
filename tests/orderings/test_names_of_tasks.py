"""Wherever tasks are known, an order may name them."""

import numpy as np
import pytest

import forgetting as fg
from forgetting.auditing import forgetting_matrix, search_orders
from forgetting.cli import run_app
from forgetting.errors import InvalidInputError
from forgetting.orderings import Cyclic, Explicit

TASKS = fg.RegressionTasks(
    [[[1.0, 0.0]], [[1.0, 1.0]], [[2.0, 1.0]]], [[1.0], [2.0], [0.5]], names=["north", "2", "west"]
)
NAMES, NUMBERS = ["west", "north", "2"], [2, 0, 1]


@pytest.mark.parametrize(
    ("names", "numbers"),
    [
        (NAMES, NUMBERS),
        (tuple(NAMES), NUMBERS),
        (np.array(NAMES), NUMBERS),
        (["west", 0, "2"], NUMBERS),
        (Explicit(NAMES), Explicit(NUMBERS)),
        (Cyclic(["west", "west"]), Cyclic([2, 2])),
        ("explicit seq=west,north,2", "explicit seq=2,0,1"),
        ("cyclic order=west", Cyclic([2])),
    ],
)
def test_an_ordering_may_name_its_tasks(names, numbers):
    k = 3
    for call in (fg.run, fg.expect, fg.bounds.evaluate):
        assert repr(call(TASKS, names, k)) == repr(call(TASKS, numbers, k))
    runs = [fg.run_many(TASKS, ordering, k, runs=2) for ordering in (names, numbers)]
    np.testing.assert_array_equal(runs[0].losses, runs[1].losses)
    assert repr(fg.compare(TASKS, names, "random", k)) == repr(fg.compare(TASKS, numbers, "random", k))
    assert fg.claims.Instance(TASKS, names, k).ordering == fg.claims.Instance(TASKS, numbers, k).ordering


def test_a_certificate_may_name_its_tasks():
    assert str(fg.certify(TASKS, NAMES, 3)) == str(fg.certify(TASKS, NUMBERS, 3))


def test_an_order_of_an_audit_may_name_its_tasks():
    one, other = fg.audit(TASKS, order=NAMES), fg.audit(TASKS, order=NUMBERS)
    assert str(one) == str(other)
    assert str(one) != str(fg.audit(TASKS))
    found = [search_orders(TASKS, exact=False, starts=[order]) for order in (NAMES, NUMBERS)]
    assert found[0] == found[1]
    matrices = [forgetting_matrix(TASKS, [order]).matrix for order in (NAMES, NUMBERS)]
    np.testing.assert_array_equal(*matrices)


def test_commands_take_names(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    TASKS.save("tasks.npz")
    for command, options in (
        ("run", ["-k", "3", "-o", "explicit seq={}"]),
        ("expect", ["-k", "3", "-o", "cyclic order={}"]),
        ("bounds", ["-k", "3", "-o", "cyclic order={}"]),
        ("audit", ["--order", "{}"]),
    ):
        said = []
        for order in ("west,north,2", "2,0,1" if command != "audit" else "west,0,2"):  # names come before numbers
            assert run_app([command, "tasks.npz", *(option.format(order) for option in options)]) == 0
            said.append(capsys.readouterr().out)
        assert said[0] == said[1]


@pytest.mark.parametrize(
    "call",
    [
        lambda order: fg.run(TASKS, order, 2),
        lambda order: fg.expect(TASKS, Cyclic(order), 2),
        lambda order: fg.audit(TASKS, order=order),
    ],
)
def test_a_name_that_no_task_has_is_named(call):
    with pytest.raises(
        InvalidInputError, match=r"\[1\]: no task 'wets'; did you mean 'west'\? There are north, 2, west"
    ):
        call(["north", "wets", "2"])


def test_a_name_of_several_tasks_is_refused():
    twins = fg.RegressionTasks([[[1.0]], [[2.0]]], [[1.0], [2.0]], names=["same", "same"])
    with pytest.raises(InvalidInputError, match=r"ordering\[0\]: several tasks are called 'same'; give their numbers"):
        fg.run(twins, ["same"], 1)


def test_names_without_tasks_say_what_is_missing():
    for ordering in (Explicit(["west"]), Cyclic("west")):
        with pytest.raises(InvalidInputError, match="names its tasks, whose numbers are known only together with the"):
            ordering.first(fg.orderings.TaskView(3), 1)
