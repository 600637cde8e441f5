"""Cells in workers: the digits of the serial run, failures as rows, odd results and errors, threads, nesting."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import joblib
import pytest

from forgetting.compute.threads import cores, one_core
from forgetting.compute.workers import run_parts, some_parts, workers
from forgetting.errors import InvalidInputError, NotSupportedError, ProblemFileError, WorkerError
from forgetting.files.store import Store
from forgetting.studies import Study
from forgetting.studies.resuming import finished_parts

MEASURED = {"family": "gaussian", "T": [2, 3, 4], "d": 8, "rank": 2, "k": [1, 10, 100]}


def test_two_workers_give_the_digits_of_the_serial_run(tmp_path):
    serial = Study.grid(**MEASURED, repeats=2, store=None).run(jobs=1, progress=False)
    spread = Study.grid(**MEASURED, repeats=2, store=tmp_path / "s.db").run(jobs=2, progress=False)
    assert spread.status.done == 6
    assert json.dumps(spread.rows()) == json.dumps(serial.rows())
    with joblib.parallel_config("threading", n_jobs=2):
        threaded = Study.grid(**MEASURED, repeats=2, store=None).run(progress=False)
    assert json.dumps(threaded.rows()) == json.dumps(serial.rows())


def threads_of_a_cell():
    def cell(a):
        import numba
        from threadpoolctl import threadpool_info

        from forgetting.compute.threads import cores

        blas = [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]
        return {"blas": max(blas), "numba": numba.get_num_threads(), "cores": cores()}

    return cell


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_cell_has_one_thread(jobs):
    study = Study([{"a": a} for a in range(3)], None, function=threads_of_a_cell()).run(jobs=jobs, progress=False)
    assert {(row["blas"], row["numba"], row["cores"]) for row in study.rows()} == {(1, 1, 1)}
    assert cores() == os.cpu_count()


def test_resume_with_another_number_of_workers(tmp_path):
    def cell(a, seed):
        return {"value": seed / 7}

    many = [{"a": a} for a in range(20)]
    whole = Study(many, None, function=cell).run(progress=False).rows()
    Study(many[:7], tmp_path / "s.db", function=cell).run(jobs=1, progress=False)
    Study(many[5:12], tmp_path / "s.db", function=cell).run(jobs=2, progress=False)
    study = Study(many, tmp_path / "s.db", function=cell).run(jobs=1, progress=False)
    assert study.rows() == whole


# ------------------------------------------------------------------------------------------- odd results, odd errors


def odd():
    """A function that does what the cell says."""

    class Mute(Exception):  # noqa: N818
        def __str__(self):
            raise RuntimeError

    class Locked(Exception):  # noqa: N818
        def __init__(self):
            super().__init__(threading.Lock())

        def __reduce__(self):
            raise TypeError

    class Base(BaseException):
        pass

    def recurse(n=0):
        return recurse(n + 1)

    def forked():
        child = os.fork()
        if child:
            os.waitpid(child, 0)
        return 1

    deeds = {
        "none": lambda: None,
        "object": object,
        "set": lambda: {1},
        "generator": lambda: (x for x in "a"),
        "lock": threading.Lock,
        "complex": lambda: 1j,
        "numbered": lambda: {1: 2},
        "deep": lambda: {"a": functools_reduce(lambda x, _: [x], range(5000), 1)},
        "big": lambda: 1 << 100_000,
        "surrogate": lambda: (_ for _ in ()).throw(ValueError("\ud800\0")),
        "mute": lambda: (_ for _ in ()).throw(Mute()),
        "locked": lambda: (_ for _ in ()).throw(Locked()),
        "base": lambda: (_ for _ in ()).throw(Base("of my own")),
        "generator exit": lambda: (_ for _ in ()).throw(GeneratorExit()),
        "stop": lambda: iter(()).__next__(),
        "exit": lambda: sys.exit(3),
        "recursion": recurse,
        "memory": lambda: bytearray(1 << 60),
        "fork": forked,
        "print": lambda: print("printed") or 1,
        "several": lambda: [{"a": 1}, {"a": 2}],
        "empty": list,
        "nan": lambda: float("nan"),
    }
    from functools import reduce as functools_reduce

    def cell(deed):
        return deeds[deed]()

    return cell, list(deeds)


FINE = ["fork", "print", "several", "empty", "nan"]


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_whatever_a_function_does_is_a_row(jobs):
    function, deeds = odd()
    study = Study([{"deed": deed} for deed in deeds], None, function=function).run(jobs=jobs, progress=False)
    failed = {text.removeprefix("deed=") for text in study.failures}
    assert failed == set(deeds) - set(FINE)
    said = {text.removeprefix("deed="): error for text, error in study.failures.items()}
    assert said["exit"] == "SystemExit: 3"
    assert said["base"] == "Base: of my own"
    assert said["mute"] == "Mute, whose message raises RuntimeError"
    assert said["surrogate"] == "ValueError: \\ud800\\x00"
    assert said["memory"].startswith("MemoryError")
    assert "gave NoneType None; expected a dictionary" in said["none"]
    assert [row.get("a") for row in study.rows() if row["deed"] == "several"] == [1, 2]
    assert all(entry.trace for entry in study._memory.entries() if entry.state == "failed")


def test_failed_cells_are_rows_and_retried_on_request(tmp_path):
    def cell(a, file):
        from pathlib import Path

        if a == 1 and not Path(file).exists():
            raise OSError("not there")
        return a

    many = [{"a": a, "file": str(tmp_path / "there")} for a in range(3)]
    study = Study(many, tmp_path / "s.db", function=cell).run(progress=False)
    assert [row["failure"] for row in study.rows()] == [None, "OSError: not there", None]
    (tmp_path / "there").touch()
    assert study.run(progress=False).status.failed == 1
    assert study.run(progress=False, retry=True).status.done == 3
    assert [row["failure"] for row in study.rows()] == [None] * 3


def test_interrupt_leaves_the_cell_waiting(tmp_path):
    def cell(a):
        if a == 2:
            raise KeyboardInterrupt
        return a

    study = Study([{"a": a} for a in range(4)], tmp_path / "s.db", function=cell)
    with pytest.raises(KeyboardInterrupt):
        study.run(progress=False)
    assert (study.status.done, study.status.running, study.status.waiting) == (2, 0, 2)


def test_function_may_change_what_it_is_given():
    def cell(a):
        a.append(a.pop() + 1)
        return {"b": a}

    study = Study([{"a": [1, 2]}], None, function=cell).run(progress=False)
    assert study.rows()[0] | {"seed": 0} == {"a": [1, 2], "seed": 0, "b": [1, 3], "failure": None}


def test_too_much_is_an_error_of_the_cell(monkeypatch):
    monkeypatch.setattr("forgetting.studies.execution.MOST_ROWS", 1000)

    def cell(a):
        return {"text": "x" * a}

    study = Study([{"a": a} for a in (10, 10_000)], None, function=cell).run(progress=False)
    assert "save arrays to files" in study.failures["a=10000"]
    assert study.status.done == 1


def test_workers_follow_their_driver_to_another_folder(tmp_path, monkeypatch):
    def cell(a):
        import os

        return {"folder": os.getcwd()}

    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        study = Study([{"a": a} for a in range(4)], "s.db", function=cell)
        study.run(jobs=2, progress=False)
        monkeypatch.chdir(tmp_path)
        assert {row["folder"] for row in study.rows()} == {str(folder)}


# ----------------------------------------------------------------------------------- several drivers, threads, nesting


SHARED = """
import sys
from forgetting.studies import Study

def cell(a, log):
    import os, time
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{a} {os.getpid()}\\n".encode())
    os.close(file)
    time.sleep(0.01)
    return a * 0.1

study = Study([{"a": a, "log": sys.argv[2]} for a in range(60)], sys.argv[1], function=cell)
sys.stdin.readline()
study.run(progress=False)
print(study.status.done)
"""


def test_two_processes_share_a_store_and_compute_every_cell_once(tmp_path):
    log = tmp_path / "log"
    both = [
        subprocess.Popen(
            [sys.executable, "-c", SHARED, str(tmp_path / "s.db"), str(log)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate(timeout=120) for process in both]
    assert said == [("60\n", "")] * 2  # both wait for the cells of the other
    lines = [line.split() for line in log.read_text().splitlines()]
    assert sorted(int(a) for a, _ in lines) == list(range(60))


def test_driver_in_a_thread_and_two_at_once():
    def cell(a, seed):
        return seed / 7

    many = [{"a": a} for a in range(8)]
    rows = []
    threads = [
        threading.Thread(
            target=lambda: rows.append(Study(many, None, function=cell).run(jobs=2, progress=False).rows())
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows[0] == rows[1] == Study(many, None, function=cell).run(progress=False).rows()


def test_two_threads_share_a_store(tmp_path):
    counted = []
    made = [Study([{"a": a} for a in range(50)], tmp_path / "s.db", function=times_one(counted)) for _ in range(2)]
    threads = [threading.Thread(target=study.run, kwargs={"progress": False}) for study in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(counted) == list(range(50))
    assert made[0].status.done == 50


def times_one(counted):
    def cell(a):
        counted.append(a)
        return a

    return cell


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_cell_may_run_a_study(jobs):
    def outer(a):
        from forgetting.studies import Study

        def inner(b, seed):
            return b * 1000

        rows = Study([{"b": b} for b in range(3)], None, function=inner).run(jobs=2, progress=False).rows()
        return {"total": a + sum(row["value"] for row in rows)}

    study = Study([{"a": a} for a in range(2)], None, function=outer).run(jobs=jobs, progress=False)
    assert study.failures == {}
    assert [row["total"] for row in study.rows()] == [3000, 3001]


# -------------------------------------------------------------------------------------------------------------- parts


def test_error_of_the_source_is_raised_and_does_not_hang():
    def numbered():
        yield from enumerate(range(30))
        raise ProblemFileError("the disk is full")

    given = []
    with pytest.raises(ProblemFileError, match="disk is full"):
        list(some_parts(abs, numbered(), 2, given.append))
    assert given == []


def test_store_that_breaks_in_the_middle_is_an_error_and_does_not_hang(tmp_path, monkeypatch):
    claim, asked = Store.claim, []

    def failing(self, key):
        asked.append(key)
        if len(asked) > 12:
            raise ProblemFileError("broken")
        return claim(self, key)

    def cell(x):
        return x

    monkeypatch.setattr(Store, "claim", failing)
    with pytest.raises(ProblemFileError, match="broken"):
        Study([{"x": x} for x in range(40)], tmp_path / "s.db", function=cell).run(jobs=2, progress=False)
    with Store(tmp_path / "s.db") as store:
        assert set(store.counts()) <= {"waiting", "done", "failed"}


def test_errors_of_parts_are_raised():
    with pytest.raises(ZeroDivisionError):
        list(run_parts(eval, ["1 / 0", "2"], jobs=2))


def test_backend_that_gives_results_only_at_the_end_is_refused():
    with joblib.parallel_config("multiprocessing", n_jobs=2), pytest.raises(NotSupportedError, match=r"use .*'loky'"):
        list(run_parts(abs, [-1, 2], jobs=None))


@pytest.mark.parametrize("jobs", [0, -2, 1.5, "two"])
def test_bad_numbers_of_workers(jobs):
    with pytest.raises(InvalidInputError, match="jobs"):
        workers(jobs)


def test_as_many_workers_as_cores():
    assert workers(-1) == os.cpu_count()
    with one_core():
        assert workers(-1) == 1


def test_finished_cells_of_earlier_runs_are_told_first_and_failures_raised_at_the_end(tmp_path):
    def cell(a):
        if a == 2 and not (tmp_path / "go").exists():
            raise OSError("not there")
        return {"b": 10 * a}

    def tell(values, rows):
        told.append((values["a"], rows[0]["b"]))

    told = []
    study = Study([{"a": a} for a in range(4)], None, function=cell)
    with pytest.raises(WorkerError, match="1 of 4 cells failed; the first is a=2: OSError: not there"):
        study.run(progress=False, check=True, finished=tell)
    assert told == [(0, 0), (1, 10), (3, 30)]
    (tmp_path / "go").touch()
    told.clear()
    study.run(progress=False, check=True, retry=True, finished=tell)
    assert told == [(0, 0), (1, 10), (3, 30), (2, 20)]


def test_looking_for_finished_parts_makes_no_file(tmp_path):
    def interrupted(out):
        with finished_parts(out):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted(tmp_path / "new" / "page.md")
    with finished_parts(tmp_path / "page.md"):
        pass
    (tmp_path / "mine.md.partial").write_text("years of work")
    with pytest.raises(KeyboardInterrupt):
        interrupted(tmp_path / "mine.md")
    assert {path.name for path in tmp_path.iterdir()} == {"mine.md.partial"}
    assert (tmp_path / "mine.md.partial").read_text() == "years of work"
