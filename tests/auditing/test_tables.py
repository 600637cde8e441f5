"""Tables: Parquet and text files give the same tasks, cells are rounded as Python rounds, wrong cells are named."""

import random
import struct
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forgetting.auditing import read_tasks
from forgetting.cli import run_app
from forgetting.core import memory
from forgetting.errors import MemoryLimitError, ProblemFileError, SmallRowWarning
from forgetting.files.table_files import TextFile

COLUMNS = {"task": ["first", "second", "first", "second"], "a": [1, 0, 1, 2], "b": [0.5, 1, 1, 1], "y": [1, 2, 3, 4]}


def write_parquet(path, **changes):
    pq.write_table(pa.table({**COLUMNS, **changes}), path)
    return path


def same(one, other):
    assert one.tasks.names == other.tasks.names
    assert one.features == other.features
    for m in range(one.tasks.num_tasks):
        for mine, theirs in zip(one.tasks.task(m), other.tasks.task(m), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_parquet_and_tsv_files_say_the_same_as_csv_files(tmp_path):
    rows = zip(*COLUMNS.values(), strict=True)
    text = "\n".join([",".join(COLUMNS), *(",".join(map(str, row)) for row in rows)])
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "a.tsv").write_text(text.replace(",", "\t"))
    expected = read_tasks(tmp_path / "a.csv")
    same(read_tasks(tmp_path / "a.tsv"), expected)
    same(read_tasks(write_parquet(tmp_path / "a.parquet")), expected)
    categories = pa.array(COLUMNS["task"]).dictionary_encode()
    same(read_tasks(write_parquet(tmp_path / "b.parquet", task=categories, a=["1", "0", " 1", "2.0"])), expected)
    assert run_app(["audit", str(tmp_path / "a.parquet"), "--json"]) == 0


def test_cells_are_rounded_as_python_rounds_them(tmp_path):
    rng = random.Random(0)
    words = [
        "9007199254740993",
        "2.2250738585072011e-308",
        "2.4703282292062328e-324",
        "5e-324",
        "0.1",
        "\uff11",
        "+.5",
        "1.",
    ]
    words += [repr(struct.unpack("d", struct.pack("Q", rng.getrandbits(64)))[0]) for _ in range(20_000)]
    words += [f"{rng.gauss(0, 1) * 10.0 ** rng.randint(-300, 300):.{rng.randint(0, 30)}e}" for _ in range(20_000)]
    words = [word for word in words if np.isfinite(float(word))]
    for name, chosen in (("plain", [word for word in words if word != "\uff11"]), ("odd", words)):
        (tmp_path / f"{name}.csv").write_text("task,a,y\n" + "".join(f"t,{word},{word}\n" for word in chosen), "utf-8")
        table = TextFile.read(tmp_path / f"{name}.csv").table()
        for column in (1, 2):
            assert table.numbers(column)[0].tolist() == [float(word) for word in chosen]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_lines_are_counted_as_an_editor_counts_them(tmp_path, ending):
    lines = ["", ",,", "task,a,y", '"two', 'lines",1,2', "   ", ",,", "t,3,4", "", "t,x,5"]
    (tmp_path / "a.csv").write_bytes(ending.join(lines).encode())
    with pytest.raises(ProblemFileError, match=r"a\.csv, row 10, column 'a': 'x' is not a number"):
        read_tasks(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_bytes(ending.join([*lines[:-1], "t,5"]).encode())
    with pytest.raises(ProblemFileError, match=r"a\.csv, row 10: 2 cells under 3 columns"):
        read_tasks(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_bytes(ending.join([*lines[:-1], "t,5,6"]).encode())
    assert read_tasks(tmp_path / "a.csv").tasks.task(1)[0].tolist() == [[3], [5]]


def test_the_first_wrong_row_is_named_and_not_the_first_wrong_column(tmp_path):
    (tmp_path / "a.csv").write_text("task,a,b,y\nt,1,2,3\nt,1,two,3\nt,one,2,3\n")
    with pytest.raises(ProblemFileError, match="row 3, column 'b': 'two' is not a number"):
        read_tasks(tmp_path / "a.csv")


def test_missing_numbers_have_many_spellings_and_are_dropped(tmp_path):
    words = ["", "NaN", "na", "N/A", "NULL", "None", "inf", "1e999"]
    (tmp_path / "a.csv").write_text("task,a,y\nt,1,2\n" + "".join(f"t,{word},2\nt,2,{word}\n" for word in words))
    reading = read_tasks(tmp_path / "a.csv", drop_nan=True)
    assert reading.tasks.task(0)[0].tolist() == [[1]]
    assert f"{2 * len(words)} rows with missing numbers dropped" in reading.notes[0]


def test_the_first_byte_that_is_not_utf8_is_named_wherever_it_is(tmp_path):
    text = b"task,a,y\n" + b"t,1,2\n" * 30_000
    (tmp_path / "a.csv").write_bytes(text + b"\xe9,1,2\n")
    with pytest.raises(ProblemFileError, match=rf"not in UTF-8 \(b'\\xe9' at byte {len(text)}\)"):
        read_tasks(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text("task,a,y\nt,1,2\n", encoding="utf-16")
    with pytest.raises(ProblemFileError, match=r"not in UTF-8 \(b'\\xff' at byte 0\)"):
        read_tasks(tmp_path / "b.csv")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"b": [1.0, None, 2.0, 3.0]}, r"row 1, column 'b': nan or nothing is not a number to compute with"),
        ({"b": [1.0, 2.0, float("inf"), 3.0]}, r"row 2, column 'b': inf is not a number"),
        ({"b": ["1", "2", "1,5", "3"]}, r"row 2, column 'b': '1,5' is not a number; decimals have a point"),
        ({"y": ["cat", "dog", "cat", "dog"]}, r"row 0, column 'y': 'cat' is not a number; for classes"),
        ({"y": [1, 2, 3, None]}, r"row 3, column 'y': nothing is not a number"),
        ({"task": ["a", None, "b", "c"]}, r"row 1, column 'task': no task is named"),
        ({"b": pa.array([0, 1, 2, 3], pa.timestamp("ms"))}, r"column 'b': timestamp\[ms\] is not a number"),
        ({"b": [[1], [2], [3], [4]]}, r"column 'b': list<.*> is not a number"),
        ({"b": [b"\xff", b"1", b"2", b"3"]}, r"column 'b'"),
        ({"task": [[1], [2], [3], [4]]}, r"column 'task': list<.*> is neither numbers nor words"),
    ],
)
def test_wrong_cells_of_parquet_files_are_named(tmp_path, changes, words):
    with pytest.raises(ProblemFileError, match=rf"a\.parquet.*{words}"):
        read_tasks(write_parquet(tmp_path / "a.parquet", **changes))


def test_whole_numbers_decimals_truth_values_and_dates_of_parquet_files_are_read(tmp_path):
    from datetime import date
    from decimal import Decimal

    path = write_parquet(
        tmp_path / "a.parquet",
        a=[True, False, True, True],
        b=[Decimal("0.25"), Decimal("1.50"), Decimal("2.00"), Decimal("3.00")],
        y=pa.array([2**53 + 1, 1, 2, 3], pa.int64()),
        task=[date(2024, 1, 1), date(2024, 2, 1)] * 2,
    )
    tasks = read_tasks(path).tasks
    assert tasks.names == ("2024-01-01", "2024-02-01")
    assert tasks.task(0)[0].tolist() == [[1, 0.25], [1, 2]]
    assert tasks.task(0)[1].tolist() == [2.0**53, 2]


def test_damaged_and_empty_parquet_files_are_refused(tmp_path):
    data = write_parquet(tmp_path / "a.parquet").read_bytes()
    rng = random.Random(1)
    for _ in range(300):
        cut = rng.randrange(len(data))
        noise = bytes(rng.randrange(256) for _ in range(rng.choice((1, 4, 40))))
        (tmp_path / "b.parquet").write_bytes(data[:cut] + rng.choice((b"", noise + data[cut + len(noise) :])))
        with suppress(ProblemFileError, SmallRowWarning):  # anything else is a failure
            read_tasks(tmp_path / "b.parquet")
    pq.write_table(pa.table({name: values[:0] for name, values in COLUMNS.items()}), tmp_path / "c.parquet")
    with pytest.raises(ProblemFileError, match=r"c\.parquet: columns without rows"):
        read_tasks(tmp_path / "c.parquet")
    with pytest.raises(ProblemFileError, match="no such file"):
        read_tasks(tmp_path / "missing.parquet")


def test_small_parquet_files_with_many_rows_are_refused_before_they_are_unpacked(tmp_path, monkeypatch):
    rows = 1_000_000
    table = pa.table({"task": pa.array(["t"] * rows), "a": np.zeros(rows), "y": np.zeros(rows)})
    pq.write_table(table, tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < 50_000
    monkeypatch.setattr(memory, "available_memory", lambda: 2.0**24)
    monkeypatch.setattr(memory, "UNNOTICED", 0)
    monkeypatch.setattr(pq.ParquetFile, "read", lambda *_, **__: pytest.fail("unpacked"))
    with pytest.raises(MemoryLimitError, match=r"the cells of .*a\.parquet need"):
        read_tasks(tmp_path / "a.parquet")


def test_a_long_word_in_many_rows_is_unpacked_once(tmp_path):
    rows, word = 5_000, "x" * 100_000
    write_parquet(tmp_path / "a.parquet")
    table = pa.table({"task": pa.array([word] * rows).dictionary_encode(), "a": np.ones(rows), "y": np.ones(rows)})
    pq.write_table(table, tmp_path / "a.parquet")
    pa.default_memory_pool().release_unused()
    before = pa.total_allocated_bytes()
    assert read_tasks(tmp_path / "a.parquet").tasks.names == (word,)
    assert pa.total_allocated_bytes() - before < 50 * len(word)
