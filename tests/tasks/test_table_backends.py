"""Tables are read alike whatever reads them: text by pyarrow and by Python, Parquet at once and part by part."""

import json
import random
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import forgetting as fg
from effort import rounds
from forgetting.errors import ForgettingError, ProblemFileError
from forgetting.files.matrices import read_matrix

FILES = {
    "commas": "task,a,b,y\ns,1,2,3\nt,0.5,1e-3,4\ns,-1,+2,5\n",
    "semicolons, a byte order mark": "\ufefftask;a;y\ns;1;2\nt;3;4",
    "tabs, ends of lines as in Windows": "task\ta\ty\r\ns\t1\t2\r\nt\t3\t4\r\n",
    "ends of lines as in old Macintoshes": "task,a,y\rs,1,2\rt,3,4\r",
    "blank lines and rows": "\n , ,\ntask,a,y\n\n  \ns,1,2\n,,\n\nt,3,4\n\n",
    "quotes": 'task,"a ""b""",y\n"two\nlines",1,2\n"s,t",3,"4"\n"s,t",5,6\n',
    "a blank row with a quote": 'task,a,y\ns,1,2\n\f"\nt,3,4\n',
    "blank rows in quotes": 'task,a,y\ns,1,2\n"  "\n"",,\nt,3,4\n',
    "quotes within words": 'task,a,y\na"b,1,2\n"c"d,3,4\n',
    "blanks around words": " task ,a , y\n s , 1,2 \n\u00a0t\u2003,3,4\n",
    "apostrophes of spreadsheets": "task,'=a,y\n'=1+1,1,2\n'twas,3,4\n'-x,5,6\n",
    "spellings of numbers": "task,a,y\ns,10,2\ns,.5,+3.\ns,1e400,4\ns,\uff11,5\ns,4e-324,0.1\n",
    "missing numbers": "task,a,y\ns,NA,2\ns,,3\ns,-nan,4\ns,null,5\ns,1,NaN\nnan,1,2\n,2,3\ns,4,5\n",
    "an index": ",task,a,y\n0,s,1,2\n1,t,3,4\n",
    "classes": "task,a,y\ns,1,cat\nt,3,dog\ns,4,cat\n",
    "three classes": "task,a,y\nt10,1,cat\nt9,2,dog\nt10,3,owl\nt9,4, dog \n",
    "whole numbers, each five times": "task,a,y\n" + "".join(f"{i % 3},{i}.5,{i % 6}\n" for i in range(30)),
    "whole numbers with gaps": "task,a,y\n" + "".join(f"{i % 3},{i}.5,{i % 6}.0\n" for i in range(30)) + "0,1,\n",
    "floats that are whole": "task,a,y\n" + "".join(f"{i % 3},{i}.5,{i % 6}.0\n" for i in range(30)),
    "truth values": "task,a,y\ns,1,True\nt,2,False\ns,3,True\n",
    "long cells": f'task,a,y\n{"n" * 200_000},{"1" * 200_000},2\n"{"m" * 200_000}",3,4\n',
    "empty": "",
    "blank": " \n\n",
    "one column": "task\ns\n",
    "a header without rows": "task,a,y\n",
    "numbers for a header": "1,2.5,3\n4,5.5,6\n",
    "a column that is not there": "task,a,z\ns,1,2\n",
    "two columns of one name": "task,a,a,y\ns,1,2,3\n",
    "no feature": "task,y\ns,1\n",
    "too few cells": "task,a,y\ns,1,2\nt,3\n",
    "too many cells": "task,a,y\ns,1,2\nt,3,4,5\n",
    "another separator": "task;a;y\ns;1;2\nt,3,4\n",
    "decimals with commas": 'task;a;y\ns;"1,5";2\nt;3;4\n',
    "a word for a number": "task,a,b,y\ns,1,2,3\nt,3,four,4\nt,five,5,4\n",
    "a number in the manner of Python": "task,a,y\ns,1_0,2\nt,3,4\n",
    "a label in the manner of Python": "task,a,y\ns,1,2\nt,3,1_5\n",
    "a number in the manner of C": "task,a,y\ns,nan(1),2\nt,3,4\n",
    "a word that looks like a formula": "task,a,y\ns,'=1,2\nt,3,4\n",
    "a label that is a word": "task,a,y\ns,1,2\nt,3,four\n",
    "infinite": "task,a,y\ns,1,2\nt,inf,4\n",
    "too large": "task,a,y\ns,1,2\nt,1e200,4\n",
    "a quote that stays open": 'task,a,y\ns,1,2\nt,"3,4\n',
    "a zero byte": "task,a,y\ns,1,2\nt,\0,4\n",
    "not in UTF-8": b"task,a,y\ns,1,2\n\xe9,3,4\n",
    "UTF-16": "task,a,y\ns,1,2\n".encode("utf-16"),
    "numbers below names": "p;q\n1;2\n\n3;4e-1\n",
    "numbers without names": "\ufeff1,2\r\n3,0.4\r\n",
    "numbers between blanks": " 1  2\t3\n\n 4 5 6 \n",
    "numbers below a line of words": "# two columns of three\n1 2\n3 4\n",
    "numbers in one column": "b\n1\n2\n",
    "numbers, one of them missing": "1,2\n3,\n",
    "numbers with a word": "1\t2\n3\tcat\n",
    "numbers, one row longer": "1 2\n3 4 5\n",
}
OPTIONS = ({}, {"drop_nan": True}, {"positive": "cat"}, {"classes": "all"}, {"classes": "task", "drop_nan": True})
CELLS = [
    "1", "-2.5", "3e2", "", "nan", "NA", "inf", "1_0", "+.5", "0x1", "nan(1)", "\uff11", "cat", " 4 ", '"5"', '"6,7"',
    '"a\nb"', '"a""b"', 'a"b', '"c"d', "'=1", "'twas", "1,5", "1e400", "\0", "\u00a01\u2003", "\ufeff1", "<NA>",
    "1e", "\x1c3", "\x85", "\u2028", '"', '""', "\r",
]  # fmt: skip


def damaged(rng: random.Random) -> bytes:
    """A table with odd cells, rows of other lengths, and at times a byte that was changed."""
    separator = rng.choice(",,;\t")
    header = rng.choice([["task", "a", "b", "y"], ["task", "a", "b", "y"], ["a", "y", "task"], ["task", "a", "a", "y"]])
    odd = rng.choice([0, 0.1, 0.4])
    rows = [header]
    for _ in range(rng.randrange(7)):
        length = len(header) if rng.random() < 0.95 else rng.randrange(len(header) + 2)
        rows.append([rng.choice(CELLS) if rng.random() < odd else rng.choice("123") for _ in range(length)])
    data = rng.choice(["\n", "\n", "\r\n", "\r"]).join(map(separator.join, rows)).encode()
    if rng.random() < 0.15:
        at = rng.randrange(len(data))
        data = data[:at] + bytes([rng.randrange(256)]) + data[at + rng.randrange(2) :]
    return data


def values(tasks: fg.RegressionTasks) -> list:
    return [tasks.names, tasks.classes, [[part.tolist() for part in tasks.task(m)] for m in range(tasks.num_tasks)]]


def outcomes(folder: Path) -> dict[str, str]:
    """What reading each file gives: the tasks and the notes, and the matrix; or the error."""
    found = {}
    for path in sorted(folder.iterdir()):
        try:
            found[f"{path.stem} matrix"] = repr(read_matrix(path).tolist())
        except ForgettingError as error:
            found[f"{path.stem} matrix"] = f"{type(error).__name__}: {error}"
        for options in OPTIONS:
            try:
                tasks = fg.load(path, **options)
                found[f"{path.stem} {options}"] = repr([values(tasks), tasks.notes])
            except ForgettingError as error:
                found[f"{path.stem} {options}"] = f"{type(error).__name__}: {error}"
    return found


WITHOUT = """
import runpy, sys
sys.modules["pyarrow"] = sys.modules["pandas"] = None  # their imports fail
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def test_without_pyarrow_text_gives_the_same_values_and_the_same_errors(tmp_path):
    for name, text in FILES.items():
        (tmp_path / f"{name}.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    for case in range(rounds(300, 5000)):
        (tmp_path / f"{case}.csv").write_bytes(damaged(random.Random(case)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with_arrow = outcomes(tmp_path)
    script = [sys.executable, "-W", "ignore", "-c", WITHOUT, __file__, str(tmp_path)]
    done = subprocess.run(script, capture_output=True, text=True, check=False, env={"PYTHONPATH": ":".join(sys.path)})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == with_arrow
    errors = {re.sub(r"'.*?'|\d+", "", text.split(".csv")[-1]) for text in with_arrow.values() if "Error: " in text}
    good = [text for text in with_arrow.values() if "Error: " not in text]
    assert len(good) > 100
    assert len(errors) > 15, errors


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_is_the_same_number_or_the_same_error_in_a_matrix_and_in_tasks(cell, tmp_path):
    (tmp_path / "matrix.csv").write_text(f"a,b\n1,2\n3,{cell}\n", newline="")
    (tmp_path / "tasks.csv").write_text(f"a,task,y,b\n1,0,1,2\n3,0,1,{cell}\n", newline="")

    def outcome(read):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return read()
        except ForgettingError as error:
            words = re.sub(r"\w+\.csv|\d columns|\d cells", "", str(error).split(str(tmp_path))[-1])
            return f"{type(error).__name__}: {words}".split(";")[0]  # what to do instead is another thing

    assert outcome(lambda: read_matrix(tmp_path / "matrix.csv").tolist()) == outcome(
        lambda: fg.load(tmp_path / "tasks.csv", classes=None).task(0)[0].tolist()
    )


def test_without_pyarrow_parquet_files_say_what_to_install(tmp_path):
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import forgetting as fg\n"
        "for read in (fg.load, lambda path: fg.RegressionTasks.from_source(path, 'y', 'task')):\n"
        "    try:\n        read(sys.argv[1])\n"
        "    except fg.errors.NotSupportedError as error:\n        print(error)"
    )
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "a.parquet"], capture_output=True, text=True)
    first, second = done.stdout.splitlines()
    assert first == second
    assert "pip install 'forgetting[data]', or save the table as CSV" in first


GOOD = {"task": ["s", "t", "s", "t"], "a": [1.0, 0.0, 1.0, 2.0], "b": [0.5, 1.0, 1.0, 1.0], "y": [1.0, 2.0, 3.0, 4.0]}


def parquet_cases():
    from datetime import date
    from decimal import Decimal

    import pyarrow as pa

    yield from (
        {}, {"a": ["1", " 2", "10", "4e0"]}, {"a": ["1", " 2", "1_0", "4e0"]},
        {"a": [True, False, True, True]}, {"task": [" s", "t", "s ", "t"]},
        {"a": [Decimal("0.25"), Decimal("1.50"), Decimal(2), Decimal(3)]}, {"task": [1.0, 2.5, 1.0, 2.5]},
        {"task": pa.array(["t", "s", "t", "s"]).dictionary_encode()},
        {"task": [date(2024, 1, 1), date(2024, 2, 1)] * 2},
        {"a": [1.0, 2.0, None, 3.0]}, {"b": [1.0, 2.0, float("nan"), 3.0]}, {"b": [1.0, float("inf"), 3.0, 4.0]},
        {"a": ["1", "2", "1,5", "3"]}, {"a": ["1", "2", "3", "cat"]}, {"b": [[1], [2], [3], [4]]},
        {"task": [{"a": 1}] * 4}, {"task": ["s", None, "s", "t"]}, {"task": ["s", "NaN", "s", "t"]},
        {"b": pa.array([0, 1, 2, 3], pa.timestamp("ms"))}, {"b": [b"\xff", b"1", b"2", b"3"]},
        {"task": [[1], [2], [3], [4]]}, {"a": [1e200, 1.0, 2.0, 3.0]},
    )  # fmt: skip


def test_parquet_gives_the_same_tasks_or_errors_at_once_and_part_by_part(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    def outcome(read):
        try:
            return repr(values(read()))
        except ForgettingError as error:
            return f"{type(error).__name__}: {error}".split(";")[0]  # what to do instead is another thing

    good = 0
    for place, changes in enumerate(parquet_cases()):
        path = tmp_path / f"{place}.parquet"
        pq.write_table(pa.table({**GOOD, **changes}), path, row_group_size=3)
        whole = outcome(lambda path=path: fg.load(path))
        parts = outcome(lambda path=path: fg.RegressionTasks.from_source(path, "y", "task", cache=False))
        good += "Error: " not in whole
        if "a" in changes and 1e200 in changes["a"]:  # which is not about the table
            assert "Error: " in whole
            assert "Error: " in parts
        else:
            assert parts == whole, changes
    assert good == 8
    rows = pa.table({name: column[:0] for name, column in GOOD.items()})
    pq.write_table(rows, tmp_path / "none.parquet")
    with pytest.raises(ProblemFileError, match="columns without rows"):
        fg.RegressionTasks.from_source(tmp_path / "none.parquet", "y", "task")


if __name__ == "__main__":
    print(json.dumps(outcomes(Path(sys.argv[2]))))
