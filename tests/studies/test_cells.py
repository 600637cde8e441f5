"""Cells: which values they may have, what tells them apart, their seeds, and functions of any kind."""

from __future__ import annotations

import functools
import itertools
import math
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.studies import Study, cells
from forgetting.studies.cells import as_cells, seed_of
from forgetting.studies.functions import digest_of, named_function


def anything(**values):
    return {"kind": str(sorted((name, repr(value)) for name, value in values.items() if name != "seed"))}


def keys(*values):
    return [cell.key for cell in as_cells([{"a": value} for value in values], named_function(anything), 0)]


# -------------------------------------------------------------------------------------------------- values and seeds


def test_values_that_differ_make_different_cells():
    values = [
        1, 1.0, True, "1", [1], [[1]], {"1": 1}, None, 0, 0.0, -0.0, False, "", [], {}, math.nan, math.inf, -math.inf,
        2**200, float(2**200), "é", "e\u0301", "\ud800", "\udc00", "\0", 1e-320,
    ]  # fmt: skip
    assert len(set(keys(*values))) == len(values)
    seeds = [cell.seed for cell in as_cells([{"a": value} for value in values], named_function(anything), 0)]
    assert len(set(seeds)) == len(values)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.int64(3), 3),
        (np.float64(0.1), 0.1),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        ((1, 2), [1, 2]),
        (np.array([1, 2]), [1, 2]),
        (range(3), [0, 1, 2]),
        (np.array(2.5), 2.5),
        ({"b": 1, "a": 2}, {"a": 2, "b": 1}),
        (fg.orderings.Cyclic(), fg.orderings.Cyclic()),
    ],
)
def test_values_that_are_equal_as_plain_data_make_one_cell(one, other):
    assert keys(one) == keys(other)
    with pytest.raises(InvalidInputError, match="cell 1 is the same as cell 0"):
        keys(one, other)


def test_values_survive_the_store(tmp_path):
    odd = [
        math.nan,
        math.inf,
        -math.inf,
        -0.0,
        5e-324,
        2**200,
        0.1 + 0.2,
        "\ud800",
        "日本",
        [1, [2.0, {"x": None}]],
        True,
    ]

    def same(a):
        return {"b": a}

    Study([{"a": value} for value in odd], tmp_path / "s.db", function=same).run(progress=False)
    rows = Study([{"a": value} for value in odd], tmp_path / "s.db", function=same).rows()
    assert [repr(row["b"]) for row in rows] == [repr(value) for value in odd]
    assert [repr(cell.values["a"]) for cell in Study.open(tmp_path / "s.db").cells] == [repr(value) for value in odd]


def cyclic_list():
    entries: list = []
    entries.append(entries)
    return entries


NOT_PLAIN = [object(), 1j, {1}, b"a", {1: 2}, np.datetime64("2020-01-01"), cyclic_list(), 1 << 20_000, math.sin, int]


@pytest.mark.parametrize("value", NOT_PLAIN, ids=lambda value: type(value).__name__)
def test_values_that_are_no_plain_data_are_refused_before_anything_is_computed(value):
    with pytest.raises(InvalidInputError, match="cell 0, a"):
        keys(value)


@pytest.mark.parametrize("given", [[], {}, "abc", b"abc", 3, None, [3], [None], [{1: 2}], [["a", 1]]])
def test_what_is_no_list_of_cells_is_refused(given):
    with pytest.raises(InvalidInputError, match="cell"):
        Study(given, None, function=anything)


def test_cells_may_come_from_a_generator_and_endless_ones_are_stopped(monkeypatch):
    assert len(Study(({"a": a} for a in range(5)), None, function=anything)) == 5
    monkeypatch.setattr(cells, "MOST_CELLS", 1000)
    with pytest.raises(InvalidInputError, match="more than 1000 cells"):
        Study(({"a": a} for a in itertools.count()), None, function=anything)


def test_seed_follows_from_the_cell_alone():
    many = [{"a": a, "b": b} for a in range(4) for b in "xy"]
    seeds = {str(c): (c.seed, c.key) for c in Study(many, None, function=anything).cells}
    backwards = {str(c): (c.seed, c.key) for c in Study(many[::-1], None, function=anything).cells}
    some = {str(c): (c.seed, c.key) for c in Study(many[2:5], None, function=anything).cells}
    assert backwards == seeds
    assert some.items() <= seeds.items()
    assert len({seed for seed, _ in seeds.values()}) == len(many)
    other = {str(c): (c.seed, c.key) for c in Study(many, None, function=anything, seed=1).cells}
    assert not set(other.values()) & set(seeds.values())


def test_seeds_stay_the_same_over_versions():
    assert seed_of(0, {"T": 3, "rank": 1}) == 4067827706254814207  # stores of users depend on this


def test_repeats_have_other_seeds_and_paired_parameters_the_same():
    study = Study.grid(
        family="gaussian", T=3, d=5, rank=1, ordering=["cyclic", "with-replacement"], repeats=2, store=None
    )
    assert len({cell.seed for cell in study.cells}) == 2
    assert len({cell.key for cell in study.cells}) == 4


def test_names_that_clash():
    def gives_failure(a):
        return {"failure": 0.1}

    def own(a, seed, repeat):
        return {"seed": seed, "seconds": 3.5, "repeat": repeat}

    with pytest.raises(InvalidInputError, match="'failure' is the name of the column of failures"):
        Study([{"failure": 1}], None, function=anything)
    assert "rename it" in Study([{"a": 1}], None, function=gives_failure).run(progress=False).failures["a=1"]
    study = Study([{"a": 1, "seed": 5, "repeat": 2}], None, function=own).run(progress=False)
    (row,) = study.rows(times=True)
    assert (row["seed"], row["repeat"], row["seconds"]) == (5, 2, 3.5)
    with pytest.raises(InvalidInputError, match="needs repeat"):
        Study([{"a": 1}], None, function=own)


def test_planning_time_and_memory_are_linear():
    def planned(count):
        tracemalloc.start()
        study = Study(({"a": a, "b": 0.5} for a in range(count)), None, function=anything)
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert len(study) == count
        return size / count

    assert planned(2000) < 2000  # bytes a cell
    assert planned(2000) < 1.5 * planned(500)


# ---------------------------------------------------------------------------------------------------------- functions


def times(factor):
    def multiplied(a):
        return factor * a

    return multiplied


def test_functions_of_one_name_are_told_apart(tmp_path):
    first, second = lambda a: a + 1, lambda a: a + 2  # fmt: skip
    values = [
        Study([{"a": 10}], tmp_path / "s.db", function=function).run(progress=False).rows()[0]["value"]
        for function in (times(2), times(3), first, second, times(2), first)
    ]
    assert values == [20, 30, 11, 12, 20, 11]


def test_default_values_belong_to_a_function():
    def made(n):
        def function(a, b=n):
            return a + b

        return function

    assert digest_of(made(1)) == digest_of(made(1)) != digest_of(made(2))


class Callable:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, a):
        return self.factor * a

    def method(self, a):
        return self.factor * a

    @classmethod
    def of_class(cls, a):
        return 7 * a

    @staticmethod
    def static(a):
        return 8 * a


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (Callable(3), 30),
        (Callable(4).method, 40),
        (functools.partial(times(5)), 50),
        (times(np.random.default_rng(0)), None),
    ],
)
def test_functions_whose_state_is_unknown_stay_in_memory(tmp_path, function, value):
    with pytest.raises(NotSupportedError, match=r"store=None"):
        Study([{"a": 10}], tmp_path / "s.db", function=function)
    assert not (tmp_path / "s.db").exists()
    if value is not None:
        assert Study([{"a": 10}], None, function=function).run(progress=False).rows()[0]["value"] == value


@pytest.mark.parametrize(("function", "value"), [(Callable.of_class, 70), (Callable.static, 80)])
def test_functions_without_state_are_known_to_a_store(tmp_path, function, value):
    study = Study([{"a": 10}], tmp_path / "s.db", function=function).run(progress=False)
    assert study.rows()[0]["value"] == value


def test_function_that_takes_no_names_is_refused():
    with pytest.raises(InvalidInputError, match="has no parameter 'a'; its values cannot be given by name"):
        Study([{"a": 10}], None, function="operator:abs")


@pytest.mark.parametrize("function", [3, None, "nothing", "math:nothing", "no_such_module:f", "math:pi", ""])
def test_what_is_no_function_is_refused(function):
    with pytest.raises(InvalidInputError, match="function"):
        Study([{"a": 1}], None, function=function)


WITHOUT_SOURCE = """
import sys
from forgetting.studies.functions import digest_of
made = {"__name__": "made"}
exec("def f(a):\\n    return [x for x in (lambda: {1, 2, 'b', 'c'})() if x in {'u', 'v', 'w'}]", made)
print(digest_of(made["f"]))
"""


def test_digest_of_a_function_without_source_is_the_same_in_another_process():
    printed = [
        subprocess.run([sys.executable, "-c", WITHOUT_SOURCE], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert printed[0] == printed[1] != ""


def test_file_of_a_cell_is_read_once(tmp_path, monkeypatch):
    from forgetting.studies import measuring

    fg.families.gaussian(T=2, d=3, rank=1, seed=0).save(tmp_path / "tasks.npz")
    read = []
    digest = measuring.hashlib.file_digest
    monkeypatch.setattr(measuring.hashlib, "file_digest", lambda *a: read.append(1) or digest(*a))
    many = [{"file": str(tmp_path / "tasks.npz"), "k": k} for k in range(1, 20)]
    before = [cell.key for cell in Study(many, None).cells]
    assert len(read) == 1
    (tmp_path / "tasks.npz").unlink()
    fg.families.gaussian(T=2, d=3, rank=1, seed=1).save(tmp_path / "tasks.npz")
    assert not set(before) & {cell.key for cell in Study(many, None).cells}
