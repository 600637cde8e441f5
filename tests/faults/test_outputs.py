"""What is written: whole or not at all, and never in the place of what a user made."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kills import SIGNALS, kill_a_hunt, kill_a_writer, leftovers, numbered, signal_a_command, the_number

import forgetting as fg
from forgetting.cli import run_app
from forgetting.compute.workers import run_parts
from forgetting.errors import ProblemFileError, WorkerError
from forgetting.figures.items import Curves, Series
from forgetting.files import atomic, outputs
from forgetting.files.outputs import check_output, write_output
from forgetting.files.store import Plan, Store
from forgetting.report import Report, Section, load_report, write_report
from forgetting.report.saving import write_file


def listing(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# ---------------------------------------------------------------------------------------------------- a user's files


@pytest.mark.parametrize("name", ["thesis.tex", "report.html", "data/raw.csv", ".git/config"])
@pytest.mark.parametrize("force", [True, False])
def test_a_users_files_in_the_folder_of_a_report_are_kept_and_named(tmp_path, name, force):
    mine = tmp_path / "paper" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(ProblemFileError, match=r"kept") as caught:
        write_report(numbered(1), tmp_path / "paper", force=force)
    assert str(mine) in str(caught.value)
    assert listing(tmp_path) == {f"paper/{name}": b"mine"}


@pytest.mark.parametrize("name", ["tables.tex", "data/table0.csv", "data/mine.csv", "mine.png", ".forgetting/mine"])
def test_what_a_user_changed_in_a_report_or_added_to_it_is_kept_and_named(tmp_path, name):
    write_report(numbered(1), tmp_path / "out")
    (tmp_path / "out" / name).write_text("mine")
    before = listing(tmp_path)
    with pytest.raises(ProblemFileError, match=f"{name} is not as forgetting wrote it, and is kept"):
        write_report(numbered(2), tmp_path / "out", force=True)
    assert listing(tmp_path) == before


@pytest.mark.parametrize("force", [True, False])
def test_what_appears_while_a_report_is_made_is_kept(tmp_path, force):
    def meanwhile(*_: object) -> None:
        (tmp_path / "out" / "data").mkdir(parents=True, exist_ok=True)
        (tmp_path / "out" / "data" / "raw.csv").write_text("mine")

    with pytest.raises(ProblemFileError, match=r"raw.csv is not as forgetting wrote it, and is kept"):
        write_report(numbered(1), tmp_path / "out", force=force, progress=meanwhile)
    assert listing(tmp_path) == {"out/data/raw.csv": b"mine"}


def test_a_file_that_appears_in_the_last_moment_is_kept(tmp_path):
    def content(handle: object) -> None:
        (tmp_path / "a.txt").write_text("mine")

    with pytest.raises(ProblemFileError, match=r"a.txt exists and is kept"):
        atomic.write(tmp_path / "a.txt", content, replace=False)
    assert listing(tmp_path) == {"a.txt": b"mine"}


def test_what_is_read_is_never_replaced(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = b"task,a,y\nfirst,1,1\nsecond,2,2\n"
    write_output(tmp_path / "in.csv", rows)  # even if this program wrote it
    (tmp_path / "link.csv").symlink_to("in.csv")
    for out in ("in.csv", "./in.csv", "link.csv"):
        assert run_app(["audit", "in.csv", "--out", out, "--force"]) == 2
        assert "choose another --out" in capsys.readouterr().err
    assert (tmp_path / "in.csv").read_bytes() == rows


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "a.txt").symlink_to("mine.txt")
    with pytest.raises(ProblemFileError, match="kept"):
        check_output(tmp_path / "a.txt", force=True)


def test_a_problem_is_saved_over_one_of_ours_and_nothing_else(tmp_path):
    import numpy as np

    tasks = fg.families.two_lines(0.5)
    for name, content in {"mine.npz": None, "text.npz": b"years of work"}.items():
        if content is None:
            np.savez(tmp_path / name, X=[1.0], format="mine")
        else:
            (tmp_path / name).write_bytes(content)
        before = (tmp_path / name).read_bytes()
        with pytest.raises(ProblemFileError, match=f"{name} exists, was not written by forgetting, and is kept"):
            tasks.save(tmp_path / name)
        assert (tmp_path / name).read_bytes() == before
    for theta in (0.5, 0.6):
        fg.families.two_lines(theta).save(tmp_path / "ours.npz")
    fg.claims.Instance(tasks, None, 1).save(tmp_path / "ours.npz")
    assert fg.claims.Instance.load(tmp_path / "ours.npz").k == 1


def test_the_manifest_is_one_that_other_programs_check(tmp_path):
    import hashlib

    write_output(tmp_path / "a.txt", b"one")
    line = (tmp_path / ".forgetting" / "a.txt.sha256").read_text()
    assert line == f"{hashlib.sha256(b'one').hexdigest()}  a.txt\n"


# ---------------------------------------------------------------------------------------------------------- full disks

FULL = """
import resource, sys
from pathlib import Path
import forgetting as fg
from forgetting.errors import ProblemFileError
from forgetting.files.outputs import write_output
folder = Path(sys.argv[1])
tasks = fg.families.gaussian(T=3, d=4, rank=2, seed=0)
other = fg.families.gaussian(T=3, d=4, rank=2, seed=1)
tasks.save(folder / "tasks.npz")
write_output(folder / "a.txt", b"old")
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
refused = 0
for limit in [0, 1, 50, 100, 300, 600, 1000, 1500]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))  # as if the disk were full after so many bytes
    for name in ("tasks.npz", "a.txt"):
        try:
            if name == "tasks.npz":
                other.save(folder / name)
            else:
                write_output(folder / name, 2000 * b"x", force=True)
        except ProblemFileError as error:
            assert "cannot be written" in str(error), error
            refused += 1
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert (fg.RegressionTasks.load(folder / "tasks.npz").w_star == tasks.w_star).all()
    assert (folder / "a.txt").read_text() == "old"
assert refused == 16, refused
print(sorted(path.name for path in folder.iterdir()))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of this kind")
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path):
    done = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['.forgetting', 'a.txt', 'tasks.npz']"


# --------------------------------------------------------------------------------------------------- kills and signals


def test_after_a_kill_the_old_report_or_the_new_one_is_there_and_the_next_leaves_nothing(tmp_path):
    rng = random.Random(0)
    for _ in range(4):
        kill_a_writer(tmp_path / "out", rng.uniform(0, 0.3))
    write_report(numbered(0), tmp_path / "out", force=True)
    assert the_number(tmp_path / "out") == 0
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_leaves_the_old_file_or_the_new_one(tmp_path, number):
    for seconds in (0.7, 1.5) if number == signal.SIGINT else (1.5,):
        signal_a_command(tmp_path, "expect", number, seconds)


def test_sigterm_ends_a_command_as_ctrl_c_does(tmp_path, monkeypatch, capsys):
    def terminated(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(fg, "run", terminated)
    before = signal.getsignal(signal.SIGTERM)
    assert run_app(["run", "-k", "2", "--out", str(tmp_path / "a.json")]) == 143
    assert capsys.readouterr().err == "interrupted; nothing was written\n"
    assert signal.getsignal(signal.SIGTERM) is before
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_after_the_file_is_written_says_so(tmp_path, monkeypatch, capsys):
    from forgetting.cli import output

    def pressed(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(output, "say", pressed)
    assert run_app(["run", "-k", "2", "--out", str(tmp_path / "a.json")]) == 130
    assert capsys.readouterr().err == f"interrupted; {tmp_path / 'a.json'} is complete\n"
    assert load_report(tmp_path / "a.json").title


def test_temporary_files_of_the_dead_go_and_those_of_the_living_stay(tmp_path):
    dead, living = atomic.temporary_name(tmp_path / "a.txt"), atomic.temporary_name(tmp_path / "a.txt")
    dead.write_text("half")
    with living.open("w") as handle:
        assert atomic.own(handle.fileno())
        atomic.write(tmp_path / "a.txt", b"whole")
        assert listing(tmp_path) == {"a.txt": b"whole", living.name: b""}
    atomic.write(tmp_path / "a.txt", b"whole")
    assert listing(tmp_path) == {"a.txt": b"whole"}


def test_a_folder_that_is_being_made_is_not_taken_for_one_without_an_owner(tmp_path):
    with outputs.new_folder(tmp_path / "out", force=True) as slow:
        (slow / "a.txt").write_text("slow")
        with outputs.new_folder(tmp_path / "out", force=True) as fast:
            (fast / "a.txt").write_text("fast")
        assert (tmp_path / "out" / "a.txt").read_text() == "fast"
    assert (tmp_path / "out" / "a.txt").read_text() == "slow"
    assert leftovers(tmp_path) == []


def test_many_writers_at_once_leave_one_whole_report(tmp_path):
    write_report(numbered(0), tmp_path / "out")
    errors: list[Exception] = []

    def work(first: int) -> None:
        try:
            for number in range(first, first + 5):
                write_report(numbered(number), tmp_path / "out", force=True)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=[100 * i]) for i in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert the_number(tmp_path / "out") in {104, 204, 304}
    assert leftovers(tmp_path) == []


def test_a_result_that_cannot_be_drawn_is_saved(tmp_path, monkeypatch):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("float division by zero")

    curve = Curves("f", "Title", "", "k", "loss", (Series("a", (1.0, 2.0), (1.0, 0.5)),))
    report = Report("Title", (Section("all", "All", "", (curve,)),), {})
    monkeypatch.setattr("forgetting.figures.drawing.draw", broken)
    with pytest.raises(ProblemFileError, match=r"could not be drawn \(ZeroDivisionError.*the result is in .*out.json"):
        write_report(report, tmp_path / "out")
    with pytest.raises(ProblemFileError, match=r"the result is in .*f.png.json"):
        write_file(report, tmp_path / "f.png")
    assert sorted(listing(tmp_path)) == ["f.png.json", "out.json"]
    assert load_report(tmp_path / "out.json") == load_report(tmp_path / "f.png.json") == report


# ---------------------------------------------------------------------------------------------------- hunts and stores


@pytest.mark.slow
def test_a_hunt_that_is_killed_ends_with_the_same_page_as_one_that_is_not(tmp_path):
    arguments = ["--budget", "6", "--minutes", "0", "--label", "lem:"]
    (tmp_path / "calm").mkdir()
    (tmp_path / "rough").mkdir()
    calm, _ = kill_a_hunt(tmp_path / "calm", arguments, 0, random.Random(0))
    rough, done = kill_a_hunt(tmp_path / "rough", arguments, 1, random.Random(0))
    assert calm == rough
    assert done > 0
    assert {path.name for path in (tmp_path / "rough").iterdir()} == {".forgetting", "page.md"}


def test_a_hunt_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    from forgetting.report.sections import statements

    monkeypatch.chdir(tmp_path)
    calls: list[str] = []

    def counted(label, part, *settings, **more):
        calls.append(part or "")
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(label, part, *settings, **more)

    original = statements.hunt_one
    monkeypatch.setattr(statements, "hunt_one", counted)
    line = ["claims", "lem:cl_gd", "--hunt", "2", "--out", "found.csv"]
    assert run_app(line) == 130
    assert "1 finished part is in found.csv.partial: the same command goes on from there" in capsys.readouterr().err
    assert (tmp_path / "found.csv.partial").exists()
    first = list(calls)
    assert run_app(line) == 0
    assert calls[2:] == [part for part in dict.fromkeys(calls[2:]) if part != first[0]]
    assert {path.name for path in tmp_path.iterdir()} == {".forgetting", "found.csv"}
    capsys.readouterr()


@pytest.mark.parametrize("out", ["wall/page.md", "mine.md"])
def test_the_output_of_a_hunt_is_tried_before_the_work(tmp_path, monkeypatch, capsys, out):
    from tools import survey

    (tmp_path / "wall").write_text("a file")
    (tmp_path / "mine.md").write_text("mine")
    monkeypatch.setattr(survey, "hunt_one", lambda *_: pytest.fail("work was begun"))
    assert survey.main(["--out", str(tmp_path / out), "--force", "--processes", "1"]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert (tmp_path / "mine.md").read_text() == "mine"


def test_a_process_that_dies_costs_one_attempt(tmp_path):
    mark = str(tmp_path / "died")
    dies = f"open({mark!r}, 'x') and __import__('os')._exit(1)"
    dies_once = f"{dies} if not __import__('os').path.exists({mark!r}) else 5"
    assert sorted(run_parts(eval, ["1 + 1", dies_once, "3 * 3"], jobs=2)) == [(0, 2), (1, 5), (2, 9)]


def test_a_part_that_always_dies_is_named_when_the_others_are_finished():
    seen = []

    def collect() -> None:
        for _, value in run_parts(eval, ["2", "__import__('os')._exit(1)", "3", "4"], jobs=2):
            seen.append(value)

    with pytest.raises(WorkerError, match=r"died each time .* computed .*_exit.*; all other parts"):
        collect()
    assert sorted(seen) == [2, 3, 4]


def test_an_error_in_a_worker_reaches_the_parent():
    with pytest.raises(ZeroDivisionError):
        list(run_parts(eval, ["1 / 0"], jobs=2))


def test_a_store_refuses_what_is_not_its_own(tmp_path):
    (tmp_path / "text.db").write_text("years of work" * 100)
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    before = listing(tmp_path)
    for name in before:
        with pytest.raises(ProblemFileError, match=name):
            Store(tmp_path / name)
    assert listing(tmp_path) == before


def test_a_damaged_store_is_an_error_that_names_it(tmp_path):
    cells = [Plan(str(number), number, "module:function", json.dumps({"text": "x" * 100}), 0) for number in range(200)]
    with Store(tmp_path / "a.db") as store:
        store.plan(cells)
        for cell in cells:
            store.finish(cell.key, rows='[{"value": 1.5}]')
    data = (tmp_path / "a.db").read_bytes()
    rng = random.Random(0)
    errors = []
    for _ in range(60):
        place = rng.randrange(len(data))
        (tmp_path / "b.db").write_bytes(data[:place] + bytes([rng.randrange(256)]) + data[place + rng.randrange(3) :])
        try:
            with Store(tmp_path / "b.db") as store:
                store.entries()
        except ProblemFileError as error:
            errors.append(str(error))
    assert len(errors) > 10
    assert all("b.db" in error for error in errors)


def test_values_in_a_store_survive(tmp_path):
    with Store(tmp_path / "a.db") as store:
        store.plan([Plan(key, place, "module:function", "{}", 0) for place, key in enumerate("xy")])
        store.finish("x", rows=json.dumps([{"a": [1, 0.1, None, "ä"]}]))
    with Store(tmp_path / "a.db") as one, Store(tmp_path / "a.db") as two:
        one.finish("y", rows='[{"b": 2}]')
        assert json.dumps(two.entries()[0].rows, ensure_ascii=False) == '[{"a": [1, 0.1, null, "ä"]}]'
        assert (two.entries()[1].rows, len(two)) == ([{"b": 2}], 2)


def copied(folder: Path) -> Path:
    """A copy of a folder, as `cp -r` makes it."""
    return Path(shutil.copytree(folder, folder.with_name("copy")))


def test_a_report_is_plain_files_which_copies_and_archives_keep(tmp_path):
    write_report(numbered(1), tmp_path / "out")
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_symlink()]
    shutil.copytree(tmp_path / "out" / "data", tmp_path / "data")
    assert len(list((tmp_path / "data").iterdir())) == 4
    shutil.make_archive(str(tmp_path / "zipped"), "zip", tmp_path / "out")
    shutil.unpack_archive(tmp_path / "zipped.zip", tmp_path / "unpacked")
    for name in ("unpacked", copied(tmp_path / "out").name):
        assert the_number(tmp_path / name) == 1
        write_report(numbered(2), tmp_path / name, force=True)
        assert the_number(tmp_path / name) == 2


def test_the_record_of_a_report_is_one_that_other_programs_check(tmp_path):
    import hashlib

    write_report(numbered(1), tmp_path / "out")
    lines = (tmp_path / "out" / ".forgetting" / "SHA256SUMS").read_text().splitlines()
    assert len(lines) == 7
    for line in lines:
        sha, name = line.split("  ")
        assert hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest() == sha


class KilledError(BaseException):
    """The end of the process, in the middle of a step."""


def killed_at(monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    """End the process at this call of `os.rename`; nothing is cleaned up then."""
    calls, rename = iter(range(1, 100)), os.rename

    def renamed(*paths: Any) -> None:
        if next(calls) == call:
            raise KilledError
        rename(*paths)

    monkeypatch.setattr(outputs.os, "rename", renamed)
    monkeypatch.setattr(outputs, "restore", lambda *_: None)
    monkeypatch.setattr(atomic, "_remove", atomic._unfinished.discard)


@pytest.mark.parametrize("call", [1, 2])
@pytest.mark.parametrize("reader", ["load", "write"])
def test_after_a_kill_between_the_renames_of_a_report_the_old_one_comes_back(tmp_path, call, reader):
    write_report(numbered(1), tmp_path / "out")
    with pytest.MonkeyPatch.context() as patched:
        killed_at(patched, call)
        with pytest.raises(KilledError):
            write_report(numbered(2), tmp_path / "out", force=True)
    assert (tmp_path / "out").exists() == (call == 1)
    assert len(leftovers(tmp_path)) == call
    if reader == "load":
        assert load_report(tmp_path / "out").meta["number"] == 1
        assert the_number(tmp_path / "out") == 1
    with pytest.raises(ProblemFileError, match="out exists and is kept"):
        write_report(numbered(3), tmp_path / "out")
    write_report(numbered(3), tmp_path / "out", force=True)
    assert the_number(tmp_path / "out") == 3
    assert leftovers(tmp_path) == []


def test_a_report_that_cannot_be_renamed_leaves_the_old_one(tmp_path, monkeypatch):
    """As on Windows, where another program has a file of it open."""
    write_report(numbered(1), tmp_path / "out")
    rename = os.rename

    def renamed(old: Path, new: Path) -> None:
        if Path(new).name == "out" and ".partial" in Path(old).name:
            raise PermissionError(13, "Access is denied")
        rename(old, new)

    monkeypatch.setattr(outputs.os, "rename", renamed)
    with pytest.raises(ProblemFileError, match=r"out: cannot be written \(Access is denied\)"):
        write_report(numbered(2), tmp_path / "out", force=True)
    assert the_number(tmp_path / "out") == 1
    assert leftovers(tmp_path) == []


def test_what_is_put_into_a_report_while_it_is_replaced_is_kept(tmp_path, monkeypatch):
    write_report(numbered(1), tmp_path / "out")
    rename = os.rename

    def renamed(old: Path, new: Path) -> None:
        if Path(old).name == "out":
            (tmp_path / "out" / "mine.txt").write_text("mine")
        rename(old, new)

    monkeypatch.setattr(outputs.os, "rename", renamed)
    write_report(numbered(2), tmp_path / "out", force=True)
    assert the_number(tmp_path / "out") == 2
    (place,) = tmp_path.glob("out.kept-*/mine.txt")
    assert place.read_text() == "mine"


@pytest.mark.parametrize("name", [".DS_Store", "figures/Thumbs.db"])
def test_what_a_file_manager_puts_into_a_report_is_in_nobodys_way(tmp_path, name):
    write_report(numbered(1), tmp_path / "out")
    (tmp_path / "out" / name).write_text("icons")
    write_report(numbered(2), tmp_path / "out", force=True)
    assert the_number(tmp_path / "out") == 2


def test_a_link_to_a_folder_stays_a_link(tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "out").symlink_to("elsewhere")
    for number in (1, 2):
        write_report(numbered(number), tmp_path / "out", force=True)
    assert (tmp_path / "out").is_symlink()
    assert the_number(tmp_path / "elsewhere") == 2
    assert (tmp_path / "elsewhere").stat().st_mode & 0o777 == 0o700


def test_the_folder_of_the_user_is_not_replaced_by_a_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in (Path(), tmp_path):
        with pytest.raises(ProblemFileError, match=r"the folder that you are in.*choose a new folder in it"):
            write_report(numbered(1), folder, force=True)


@pytest.fixture
def as_on_windows(monkeypatch):
    """No locks and no links; neither folders are opened, nor open files renamed, nor folders put onto folders."""
    opened, renamed = os.open, {name: getattr(os, name) for name in ("rename", "replace")}

    def open_file(path: Any, flags: int, *mode: int, **more: Any) -> int:
        if os.path.isdir(path):
            raise PermissionError(13, "Permission denied")
        return opened(path, flags, *mode, **more)

    def moved(name: str, old: Any, new: Any) -> None:
        handles = {os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()}
        inside = [handle for handle in handles if Path(handle).is_relative_to(os.path.realpath(old))]
        if inside:
            raise PermissionError(32, f"{inside} is being used by another process")
        if os.path.isdir(new):
            raise FileExistsError(17, "Cannot create a file when that file already exists")
        renamed[name](old, new)

    def no_links(*_: Any) -> None:
        raise OSError(22, "Incorrect function")

    monkeypatch.setattr(atomic, "fcntl", None)
    monkeypatch.setattr(os, "open", open_file)
    monkeypatch.setattr(shutil, "_use_fd_functions", False)
    for name in renamed:
        monkeypatch.setattr(os, name, partial(moved, name))
    for name in ("link", "symlink"):
        monkeypatch.setattr(os, name, no_links)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="which files are open is read from /proc")
def test_files_and_reports_are_written_where_the_system_is_as_windows_is(tmp_path, as_on_windows):
    for number in (1, 2):
        write_report(numbered(number), tmp_path / "out", force=True)
        assert the_number(tmp_path / "out") == number
        write_output(tmp_path / "a.txt", str(number).encode(), force=True)
        assert (tmp_path / "a.txt").read_text() == str(number)
        fg.families.two_lines(0.5).save(tmp_path / "tasks.npz")
    (tmp_path / "empty").mkdir()
    write_report(numbered(3), tmp_path / "empty")
    assert the_number(tmp_path / "empty") == 3
    atomic.write(tmp_path / "b.txt", b"one", replace=False)
    with pytest.raises(ProblemFileError, match=r"b\.txt exists and is kept"):
        atomic.write(tmp_path / "b.txt", b"two", replace=False)
    with pytest.raises(ProblemFileError, match="out exists and is kept"):
        write_report(numbered(4), tmp_path / "out")
    assert leftovers(tmp_path) == []


def test_folders_that_nobody_named_are_not_made(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, text in {"tasks.csv": "task,a,y\ns,1,1\nt,2,3\n", "A.csv": "1,2\n3,4\n", "b.csv": "1\n2\n"}.items():
        (tmp_path / name).write_text(text)
    tasks = fg.families.two_lines(0.5)
    run = fg.run(tasks, "cyclic", 2)
    calls = [
        lambda path: tasks.save(path),
        lambda path: run.save(path),
        lambda path: fg.claims.Instance(tasks, None, 1).save(path),
        lambda path: fg.audit(tasks).write_page(path.with_suffix(".html")),
        lambda path: fg.audit(tasks).write_landscape(path),
        lambda path: fg.Study.grid(family="two_lines", theta=0.5, k=2, store=path).run(),
        lambda path: fg.Study.grid(family="two_lines", theta=0.5, k=2, store=None).to_parquet(
            path.with_suffix(".parquet")
        ),
        lambda path: fg.solve([[1.0]], [1.0], checkpoint=path),
        lambda path: fg.worstcase.improve_frontier(k=2, tasks=tasks, folder=path),
        lambda path: write_file(numbered(1), path.with_suffix(".json")),
        lambda path: write_report(numbered(1), path),
    ]
    for call in calls:
        with pytest.raises(ProblemFileError, match=r"no.where; make it first, or name another place"):
            call(Path("no", "where", "a.npz"))
    for line in (
        "run -k 2 --out no/where/a.json",
        "audit tasks.csv --out no/where/a.html",
        "report --out no/where/a",
        "solve A.csv b.csv --out no/where/x.npy",
        "worst-case 2 2 --certificate no/where/proof.json",
        "worst-case 2 2 --tasks no/where/t.npz",
        "frontier improve --T 2 --d 2 --k 2 --folder no/where/own",
    ):
        assert run_app(line.split()) == 2
        assert "there is no folder no/where; make it first" in capsys.readouterr().err, line
    assert {path.name for path in tmp_path.iterdir()} == {"tasks.csv", "A.csv", "b.csv"}


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text there")
def test_names_that_are_no_text_are_recorded_too(tmp_path):
    path = tmp_path / "\udc80.txt"  # the byte 0x80
    write_output(path, b"one")
    write_output(path, b"two", force=True)
    assert path.read_bytes() == b"two"
