"""Landscapes in files: the layout of another tool, round trips, and what is wrong with odd files."""

import re
from itertools import permutations

import numpy as np
import pytest

from forgetting.auditing import Landscape
from forgetting.errors import InvalidInputError, ProblemFileError

ORDERS = np.array(list(permutations(range(3))))
VALUES = np.random.default_rng(0).normal(size=(6, 2))


def damaged(**changes):
    """Arrays of a good file with changes."""
    return {"permutations": ORDERS, "values": VALUES, "seeds": np.array([3, 8]), **changes}


def changed(array, place, value):
    copy = np.array(array)
    copy[place] = value
    return copy


def test_a_round_trip_keeps_every_array(tmp_path):
    parts = np.random.default_rng(1).normal(size=(6, 3, 2))
    found = Landscape(ORDERS, VALUES, ["a", "b"], task_values=parts)
    found.to_npz(tmp_path / "landscape.npz")
    with np.load(tmp_path / "landscape.npz", allow_pickle=False) as arrays:
        assert set(arrays) == {"permutations", "values", "seeds", "task_values"}
        assert arrays["permutations"].dtype.kind == "i"
        assert arrays["values"].dtype == np.float64
    again = Landscape.from_npz(tmp_path / "landscape.npz", quantity="loss")
    for name in ("permutations", "values", "seeds", "task_values"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))
    assert again.quantity == "loss"


def test_without_values_of_tasks_the_file_has_three_arrays(tmp_path):
    Landscape(ORDERS, VALUES).to_npz(tmp_path / "landscape.npz")
    with np.load(tmp_path / "landscape.npz", allow_pickle=False) as arrays:
        assert sorted(arrays) == ["permutations", "seeds", "values"]
        assert arrays["permutations"].shape == (6, 3)
        assert arrays["values"].shape == (6, 2)
        assert arrays["seeds"].tolist() == [0, 1]


def test_rows_may_come_in_any_order(tmp_path):
    mixed = np.random.default_rng(2).permutation(6)
    np.savez(tmp_path / "mixed.npz", permutations=ORDERS[mixed].astype(np.uint8), values=VALUES[mixed], seeds=[3, 8])
    found = Landscape.from_npz(tmp_path / "mixed.npz")
    np.testing.assert_array_equal(found.permutations, ORDERS)
    np.testing.assert_array_equal(found.values, VALUES)
    assert found.seeds.tolist() == [3, 8]


def test_arrays_may_have_other_names_and_the_values_a_row_per_seed(tmp_path):
    path = tmp_path / "other.npz"
    np.savez(path, order_grid=ORDERS, response=VALUES.T.astype(np.float32), ids=["x", "y"])
    names = {"permutations_key": "order_grid", "values_key": "response", "values_layout": "seed-by-group"}
    found = Landscape.from_npz(path, **names, seeds_key="ids")
    np.testing.assert_allclose(found.values, VALUES, rtol=1e-6)
    assert found.seeds.tolist() == ["x", "y"]
    assert Landscape.from_npz(path, **names).seeds.tolist() == [0, 1]
    with pytest.raises(ProblemFileError, match=r"values_layout='seed-by-group'"):
        Landscape.from_npz(path, permutations_key="order_grid", values_key="response")
    with pytest.raises(ProblemFileError, match="no array 'names'"):
        Landscape.from_npz(path, **names, seeds_key="names")
    with pytest.raises(InvalidInputError, match="values_layout must be"):
        Landscape.from_npz(path, values_layout="rows")


def test_an_existing_file_is_kept(tmp_path):
    path = tmp_path / "landscape.npz"
    path.write_text("years of work")
    with pytest.raises(ProblemFileError, match="exists and is kept"):
        Landscape(ORDERS, VALUES).to_npz(path)
    assert path.read_text() == "years of work"
    Landscape(ORDERS, VALUES).to_npz(path, force=True)
    assert Landscape.from_npz(path).complete


DAMAGED = {
    "two equal orders": (damaged(permutations=changed(ORDERS, 4, ORDERS[1])), "rows 1 and 4 are the same order"),
    "a task twice": (damaged(permutations=changed(ORDERS, (3, 0), 0)), r"row 3 is \[0, 2, 0\]"),
    "counted from one": (damaged(permutations=ORDERS + 1), r"row 0 is \[1, 2, 3\].*numbered from 0: subtract 1"),
    "a negative task": (damaged(permutations=changed(ORDERS, (5, 2), -1)), r"row 5 is \[2, 1, -1\]"),
    "a missing order": (damaged(permutations=ORDERS[:5], values=VALUES[:5]), r"5 rows.*6 orders.*\[2, 1, 0\]"),
    "an order in between": (
        damaged(permutations=np.delete(ORDERS, 2, 0), values=VALUES[:5]),
        r"\[1, 0, 2\] is not among the rows; complete=False",
    ),
    "orders of fractions": (damaged(permutations=ORDERS + 0.0), "expected whole numbers.*float64"),
    "orders in a vector": (damaged(permutations=ORDERS.ravel()), r"shape \(18,\)"),
    "one task": (damaged(permutations=[[0]], values=[[1.0]]), "1 orders of 1 tasks"),
    "no orders": (damaged(permutations=np.empty((0, 3), dtype=int), values=np.empty((0, 2))), "0 orders of 3 tasks"),
    "a value that is no number": (damaged(values=changed(VALUES, (4, 1), np.nan)), "row 4, column 1 is nan"),
    "an infinite value": (damaged(values=changed(VALUES, (2, 0), np.inf)), "row 2, column 0 is inf"),
    "values that overflow": (damaged(values=1e200 * VALUES), "overflow when squared"),
    "values of words": (damaged(values=VALUES.astype(str)), "values: expected real numbers"),
    "too few values": (damaged(values=VALUES[:5]), r"each of 6 orders.*\(5, 2\)"),
    "values without seeds": (damaged(values=VALUES[:, :0], seeds=[]), r"got shape \(6, 0\)"),
    "equal seeds": (damaged(seeds=[3, 3]), "3 comes twice, in columns 0 and 1"),
    "too many seeds": (damaged(seeds=[1, 2, 3]), "expected 2 numbers or words"),
    "a seed that is no number": (damaged(seeds=[1.0, np.nan]), "column 1 is nan"),
    "values of other tasks": (damaged(task_values=np.zeros((6, 2, 2))), "6 orders, 3 tasks and 2 seeds"),
    "values of tasks that are no numbers": (
        damaged(task_values=changed(np.zeros((6, 3, 2)), (5, 0, 1), np.nan)),
        "task_values: entry 5, 0, 1 is nan",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_wrong_is_named_with_its_row(name, tmp_path):
    arrays, message = DAMAGED[name]
    np.savez(tmp_path / "odd.npz", **arrays)
    with pytest.raises(ProblemFileError, match=message) as caught:
        Landscape.from_npz(tmp_path / "odd.npz")
    assert str(caught.value).startswith(str(tmp_path / "odd.npz"))
    with pytest.raises(InvalidInputError, match=message):
        Landscape(**arrays)


def test_pickles_and_other_files_are_never_loaded(tmp_path):
    path = tmp_path / "bad.npz"
    np.savez(path, permutations=ORDERS, values=np.array([[object()] * 2] * 6, dtype=object))
    with pytest.raises(ProblemFileError, match="pickled objects, which are never loaded"):
        Landscape.from_npz(path)
    path.write_bytes(b"\x80\x04N.")
    with pytest.raises(ProblemFileError, match=r"not a readable \.npz file"):
        Landscape.from_npz(path)
    np.savez(path, X=ORDERS)
    with pytest.raises(ProblemFileError, match=re.escape("no array 'permutations'; there are 'X'")):
        Landscape.from_npz(path)
    with pytest.raises(ProblemFileError, match="no such file"):
        Landscape.from_npz(tmp_path / "none.npz")
    Landscape(ORDERS, VALUES).to_npz(path, force=True)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ProblemFileError):
        Landscape.from_npz(path)


def test_other_arguments_are_checked():
    with pytest.raises(InvalidInputError, match="higher_is_better must be True or False"):
        Landscape(ORDERS, VALUES, higher_is_better="yes")
    with pytest.raises(InvalidInputError, match="2 names for 3 tasks"):
        Landscape(ORDERS, VALUES, names=("a", "b"))
    with pytest.raises(InvalidInputError, match="a word that says what the values are"):
        Landscape(ORDERS, VALUES, quantity=3)


def test_the_arrays_of_the_caller_stay_their_own():
    values = VALUES.copy()
    found = Landscape(ORDERS, values)
    values[:] = 0
    np.testing.assert_array_equal(found.values, VALUES)
    assert not found.values.flags.writeable
