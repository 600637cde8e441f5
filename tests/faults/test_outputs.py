"""What is written: whole or not at all, and never in the place of what a user made."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from kills import kill_a_hunt, kill_a_writer, leftovers, numbered, signal_a_command, the_number

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


def test_a_users_files_in_the_folder_of_a_report_stay(tmp_path):
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "thesis.tex").write_text("years of work")
    for number in (1, 2):
        write_report(numbered(number), tmp_path / "paper", force=True)
    assert (tmp_path / "paper" / "thesis.tex").read_text() == "years of work"
    assert the_number(tmp_path / "paper") == 2


@pytest.mark.parametrize("name", ["report.html", "data/raw.csv", "figures/mine.png"])
@pytest.mark.parametrize("force", [True, False])
def test_what_is_in_the_way_of_a_report_is_kept_and_named(tmp_path, name, force):
    mine = tmp_path / "paper" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(ProblemFileError, match=r"kept") as caught:
        write_report(numbered(1), tmp_path / "paper", force=force)
    assert not force or str(mine) in str(caught.value)
    assert listing(tmp_path) == {f"paper/{name}": b"mine"}


@pytest.mark.parametrize("name", ["tables.tex", "data/table0.csv", "data/mine.csv", "figures/mine.png"])
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
        (tmp_path / "out" / "data").mkdir(exist_ok=True)
        (tmp_path / "out" / "data" / "raw.csv").write_text("mine")

    with pytest.raises(ProblemFileError, match=r"raw.csv was not written by forgetting, and is kept"):
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
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


def test_a_version_that_is_being_made_is_not_taken_for_one_without_an_owner(tmp_path):
    with outputs.new_version(tmp_path / "out", ["a.txt"], force=True) as slow:
        (slow / "a.txt").write_text("slow")
        with outputs.new_version(tmp_path / "out", ["a.txt"], force=True) as fast:
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
    from forgetting.studies import hunts

    monkeypatch.chdir(tmp_path)
    calls: list[str] = []

    def counted(label, part, *settings, **more) -> hunts.HuntedClaim:
        calls.append(part or "")
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(label, part, *settings, **more)

    original = hunts.hunt_one
    monkeypatch.setattr(hunts, "hunt_one", counted)
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


def test_a_version_whose_manifest_was_not_finished_is_removed(tmp_path):
    class KilledError(BaseException):
        """The end of the process in the middle of the last step."""

    def killed(*_):
        raise KilledError

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(outputs.os, "replace", killed)
        patched.setattr(outputs.shutil, "rmtree", lambda *_, **__: None)
        with pytest.raises(KilledError), outputs.new_version(tmp_path / "out", ["a.txt"]) as version:
            (version / "a.txt").write_text("one")
    assert sorted(path.name for path in version.iterdir()) == ["a.txt", "manifest.json.partial"]
    with outputs.new_version(tmp_path / "out", ["a.txt"]) as version:
        (version / "a.txt").write_text("two")
    assert leftovers(tmp_path) == []
    assert (tmp_path / "out" / "a.txt").read_text() == "two"


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text there")
def test_names_that_are_no_text_are_recorded_too(tmp_path):
    path = tmp_path / "\udc80.txt"  # the byte 0x80
    write_output(path, b"one")
    write_output(path, b"two", force=True)
    assert path.read_bytes() == b"two"
