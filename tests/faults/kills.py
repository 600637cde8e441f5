"""Kills and signals at random moments: the old output or the new one is there, whole, and nothing is left behind.

`python tests/faults/kills.py --kills 200 --signals 100` runs the campaign; the tests run a few of each.

A child writes one report after another into the same folder, each with a number of its own in every file. It is
killed (SIGKILL) at a random moment: the folder must hold one report, all of one number. Whole commands are ended by
SIGINT, SIGTERM and SIGHUP at random moments: the old or the new file must be there, and no other. `frontier improve`
is ended in both ways: every entry in its folder must be whole and hold.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import forgetting as fg
from forgetting.figures.items import Table
from forgetting.files import atomic, outputs
from forgetting.report import Report, Section, load_report, write_report

ROOT = Path(__file__).parents[2]  # where the maintainers' programs are

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
FAST = """
title = "Three small tasks"
[problem]
family = "gaussian"
T = 3
d = 4
rank = 1
[report]
k = 20
points = 4
runs = 20
hunt = 1
eps = [3.0]
orderings = ["cyclic"]
"""
COMMANDS = {
    "expect": ["expect", "gaussian", "T=3", "d=4", "rank=1", "-k", "1,2,3", "--out", "out.json", "--force"],
    "report": ["report", "--config", "my.toml", "--out", "out", "--force"],
    "doctor": ["doctor"],
}


def numbered(number: int) -> Report:
    """A report whose every file holds its number."""
    tables = tuple(Table(f"table{i}", f"number {number}", "", ("number",), ((number,),)) for i in range(4))
    return Report(f"number {number}", (Section("all", f"number {number}", "", tables),), {"number": number})


def write_for_ever(folder: Path) -> None:
    """The child: reports 1, 2, 3, ... into one folder."""
    number = load_report(folder).meta["number"] if (folder / "report.json").exists() else 0
    print("ready", flush=True)
    while True:
        number += 1
        write_report(numbered(number), folder, force=True)


def the_number(folder: Path) -> int | None:
    """The number that all files of a report have; None if there is no report yet, an error if there is a mixture."""
    outputs.restore(folder)
    if not folder.exists():
        return None
    number = load_report(folder).meta["number"]
    files = [folder / "report.html", folder / "tables.tex", *sorted((folder / "data").iterdir())]
    assert len(files) == 6
    for path in files:
        found = set(map(int, re.findall(r"number\W+(\d+)", path.read_text())))
        assert found == {number}, f"{path} has the numbers {found}, report.json has {number}"
    outputs.check_folder(folder, force=True)
    return number


def kill_a_writer(folder: Path, seconds: float) -> int | None:
    """Kill a child that writes reports, so many seconds after it began; the number of the report that is there."""
    child = subprocess.Popen([sys.executable, __file__, "--child", str(folder)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    time.sleep(seconds)
    child.kill()
    child.communicate()
    return the_number(folder)


def leftovers(folder: Path) -> list[str]:
    """Temporary files and folders; not the finished parts of an interrupted report."""
    hidden = [path for path in folder.rglob(".*") if path.name.endswith((atomic.ENDING, outputs.ASIDE))]
    return [str(path.relative_to(folder)) for path in hidden]


def signal_a_command(folder: Path, name: str, number: signal.Signals, seconds: float) -> int:
    """End a command by a signal; its exit code. What is in the folder is the old output or the new one, and whole."""
    (folder / "my.toml").write_text(FAST)
    before = {path.name for path in folder.iterdir()}
    child = subprocess.Popen(
        [sys.executable, "-m", "forgetting", *COMMANDS[name]], cwd=folder,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(seconds)
    loading = not _answers(child.pid)  # Python answers, not yet this program
    child.send_signal(number)
    _, err = child.communicate(timeout=120)
    assert loading or child.returncode in (0, 128 + number), (child.returncode, err)
    assert loading or "Traceback" not in err, err
    assert leftovers(folder) == []
    after = {path.name for path in folder.iterdir()}
    assert after <= before | {"out.json", "out", ".forgetting", "out.partial"}
    if "out.partial" in after - before:
        assert "in out.partial: the same command goes on from there" in err
    if "out.json" in after:
        json.loads((folder / "out.json").read_text())
    if (folder / "out").exists():
        assert load_report(folder / "out").title
        assert (folder / "out" / "report.html").read_text().rstrip().endswith("</html>")
    return child.returncode


def end_an_improvement(folder: Path, k: int, number: signal.Signals, seconds: float) -> int:
    """End `frontier improve` by a signal or a kill; the number of entries, of which each is whole and holds."""
    words = ["frontier", "improve", "--T", "3", "--d", "2", "--k", str(k), "--restarts", "1", "--steps", "3"]
    child = subprocess.Popen(
        [sys.executable, "-m", "forgetting", *words, "--folder", "own"], cwd=folder,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(seconds)
    loading = not _answers(child.pid)
    child.send_signal(number)
    _, err = child.communicate(timeout=120)
    if number != signal.SIGKILL:
        assert loading or child.returncode in (0, 128 + number), (child.returncode, err)
        assert loading or "Traceback" not in err, err
    entries = sorted((folder / "own").glob("*")) if (folder / "own").exists() else []
    for path in entries:
        fg.worstcase.Entry.read(path).verify()
    return len(entries)


def kill_a_hunt(folder: Path, arguments: list[str], times: int, rng: random.Random) -> tuple[str, int]:
    """The page of a hunt that is killed several times and started again, and how many parts were done by then."""
    page, kills, done = folder / "page.md", 0, 0
    command = [sys.executable, "-m", "tools.survey", *arguments, "--out", str(page)]
    while True:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert child.stdout is not None
        workers: list[int] = []
        if kills < times:
            for _ in range(done + rng.randint(1, 4)):  # lines of parts that were done before come first
                child.stdout.readline()
            workers = _children(child.pid)
            _kill_a_worker(workers)  # this one alone does no harm
            child.stdout.readline()
            workers += _children(child.pid)
            child.kill()
            kills += 1
        child.communicate(timeout=300)  # workers that are left hold on to its output
        assert _alive(workers) == [], "workers are left"
        if page.exists():
            return page.read_text(), done
        from forgetting.files.store import Store

        with Store(folder / "page.md.partial") as store:
            done = len(store)


def _children(parent: int) -> list[int]:
    """The processes whose parent this is, where the system tells."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(entry.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found


def _alive(processes: list[int]) -> list[int]:
    """Those that are still there a while after their parent has gone."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        processes = [pid for pid in processes if _state(pid) not in ("", "Z")]
        if not processes:
            break
        time.sleep(0.05)
    return processes


def _answers(pid: int) -> bool:
    """Whether a process has a function of its own for SIGTERM; True where the system does not tell."""
    try:
        caught = re.search(r"^SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except OSError:
        return not Path("/proc/self/status").exists()
    return caught is not None and bool(int(caught[1], 16) >> (signal.SIGTERM - 1) & 1)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _kill_a_worker(processes: list[int]) -> None:
    for pid in processes:
        if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)
            return


def campaign(kills: int, signals: int, hunts: int, improvements: int, seed: int) -> None:
    """Run all, and print what was seen."""
    rng = random.Random(seed)
    with TemporaryDirectory() as place:
        folder, last, seen = Path(place, "out"), 0, 0
        for _ in range(kills):
            number = kill_a_writer(folder, rng.uniform(0, 0.4))
            assert number is None or number >= last
            last, seen = number or last, seen + 1
        write_report(numbered(0), folder, force=True)
        assert leftovers(Path(place)) == []
        print(
            f"{seen} kills while {last} reports were written: one whole report each time, nothing left after the next"
        )
    codes: dict[int, int] = {}
    with TemporaryDirectory() as place:
        for index in range(signals):
            name = ("report", "expect", "doctor", "expect")[index % 4]
            longest = 12.0 if name == "report" else 3.0
            code = signal_a_command(Path(place), name, SIGNALS[index % 3], rng.uniform(0.05, longest))
            codes[code] = codes.get(code, 0) + 1
    print(f"{signals} signals: exit codes {codes}; the old or the new output whole each time, nothing left behind")
    with TemporaryDirectory() as place:
        entries = 0
        for index in range(improvements):
            number = (*SIGNALS, signal.SIGKILL)[index % 4]
            entries = end_an_improvement(Path(place), 5 + index, number, rng.uniform(0.05, 2.0))
            if number != signal.SIGKILL:
                assert leftovers(Path(place)) == []
        print(f"{improvements} ends of `frontier improve`: {entries} entries were written, and all hold")
    if hunts:
        arguments = ["--budget", "20", "--minutes", "0"]
        with TemporaryDirectory() as calm, TemporaryDirectory() as rough:
            plain, _ = kill_a_hunt(Path(calm), arguments, 0, rng)
            again, _ = kill_a_hunt(Path(rough), arguments, hunts, rng)
            assert plain == again
            print(
                f"a hunt killed {hunts} times ends with the same page as an undisturbed one ({len(plain)} characters)"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--signals", type=int, default=100)
    parser.add_argument("--hunts", type=int, default=3)
    parser.add_argument("--improvements", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", type=Path)
    chosen = parser.parse_args()
    if chosen.child:
        write_for_ever(chosen.child)
    campaign(chosen.kills, chosen.signals, chosen.hunts, chosen.improvements, chosen.seed)
