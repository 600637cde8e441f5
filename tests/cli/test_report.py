"""`forgetting report` by its real process: one folder, whole or not at all."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import forgetting as fg
from forgetting.report import Report, load_report, write_report
from forgetting.report.provenance import problem_hash

SECTIONS = {"rates", "repetition", "guarantees", "reductions", "plane", "classification", "claims"}


def in_a_terminal(folder: Path, *arguments: str) -> tuple[subprocess.Popen[str], Callable[[], str], list[bytes]]:
    """A process whose stderr is a terminal, what was shown there once it has ended, and what is shown so far."""
    import pty  # of Unix

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "forgetting", *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=theirs, text=True,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
    )  # fmt: skip
    os.close(theirs)
    seen: list[bytes] = []

    def read() -> None:
        with suppress(OSError):  # the other end is closed
            while piece := os.read(ours, 4096):
                seen.append(piece)

    reader = threading.Thread(target=read)
    reader.start()

    def shown() -> str:
        reader.join(timeout=60)
        os.close(ours)
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", b"".join(seen).decode())

    return process, shown, seen


def test_the_summary_is_plain_and_fits(built):
    _, out, err = built
    assert err == ""
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "\x1b" not in out
    words = " ".join(out.split())
    assert re.match(
        r"How 4 tasks are forgotten, in random and in cyclic order Four small tasks - [^-]+: one pass leaves a "
        r"forgetting of \S+ in the given order and \S+ in a random one, three passes leave \S+ and \S+\. "
        r"- 4 tasks in 6 dimensions are learned one after another; ", words
    )  # fmt: skip
    assert re.search(r"- After 60 steps \(15 passes over 4 tasks\), expected forgetting is \S+ if each step", words)
    assert re.search(r"; after 4 steps \(one pass over 4 tasks\), \S+ in a random order", words)
    assert "false as printed" not in words
    assert "- The best guarantees allow at most 0." in words
    assert "](#" not in words
    assert re.search(r"\nwrote out/report.html and \d+ figures in \d+ s\n$", out)


def test_the_folder_holds_every_figure_three_times(built):
    folder, _, _ = built
    report = load_report(folder)
    figures = {item.key for item in report.items() if item.kind != "table"}
    every = {item.key for item in report.items()}
    shown = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    assert shown == {"report.html", "explorer.html", "report.json", "tables.tex", "figures", "data"}
    assert {path.name for path in (folder / "figures").iterdir()} == {
        f"{key}.{ending}" for key in figures for ending in ("png", "pdf")
    }
    assert {path.stem for path in (folder / "data").iterdir()} == every
    assert {section.key for section in report.sections} == SECTIONS
    assert not any(section.missing for section in report.sections)


def test_results_carry_where_they_come_from_and_reload(built):
    folder, _, _ = built
    report = load_report(folder)
    tasks = fg.families.gaussian(T=4, d=6, rank=2, seed=1)
    assert report.meta["sha256"] == problem_hash(tasks)
    assert report.meta["seed"] == 1
    assert report.meta["versions"]["forgetting"] == fg.__version__
    assert set(report.meta["method"]) == {"with replacement", "without replacement", "cyclic"}
    assert Report.from_json(report.to_json()) == report


def test_the_figures_hold_the_numbers_of_the_library(built):
    folder, _, _ = built
    tasks = fg.families.gaussian(T=4, d=6, rank=2, seed=1)
    curve = next(one for one in load_report(folder).item("loss").series if one.name == "with replacement")
    exact = fg.expect(tasks, fg.orderings.WithReplacement(), [int(k) for k in curve.x])
    assert list(curve.y) == pytest.approx(exact.loss.tolist(), rel=1e-12)
    with (folder / "data" / "loss.csv").open(newline="") as handle:
        rows = [row for row in csv.DictReader(handle) if row["series"] == "with replacement"]
    assert [float(row["expected loss"]) for row in rows] == list(curve.y)


def test_every_bound_that_applies_is_drawn(built):
    folder, _, _ = built
    report = load_report(folder)
    tasks = fg.families.gaussian(T=4, d=6, rank=2, seed=1)
    drawn = {one.name for one in report.item("loss-with-replacement").series}
    for row in fg.bounds.evaluate(tasks, fg.orderings.WithReplacement(), 60).applicable("loss"):
        assert row.bound.key in drawn


def test_the_page_needs_nothing_else(built):
    page = (built[0] / "report.html").read_text(encoding="utf-8")
    assert "://" not in page
    assert not re.search(r"""(src|href)=["'](?!#|data:|explorer\.html["'])""", page)  # that page is beside it
    assert not re.search(r"@import|url\((?!#)", page)  # a drawing may name its own parts
    assert page.count("<svg") >= 18


def test_an_existing_report_is_kept_unless_forced(built, report_process):
    folder, _, _ = built
    before = (folder / "report.json").stat().st_mtime_ns
    process = report_process(folder.parent, "--config", "my.toml", "--out", "out")
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (2, "")
    assert err == "error: out exists and is kept; use --force to replace it, or another --out\n"
    assert (folder / "report.json").stat().st_mtime_ns == before


def test_force_replaces_a_report_but_never_anything_else_and_a_terminal_sees_progress(
    tmp_path, fast_config, report_process
):
    (tmp_path / "out" / "data").mkdir(parents=True)
    (tmp_path / "out" / "data" / "raw.csv").write_text("a year of work")
    process = report_process(tmp_path, "--config", "my.toml", "--out", "out", "--force")
    _, err = process.communicate(timeout=300)
    assert process.returncode == 2
    assert "out/data/raw.csv is not as forgetting wrote it, and is kept" in err
    assert (tmp_path / "out" / "data" / "raw.csv").read_text() == "a year of work"
    (tmp_path / "out").rename(tmp_path / "mine")
    write_report(Report("Older", (), {}), tmp_path / "out")
    words = ["--config", "my.toml", "--out", "out", "--sections", "guarantees", "--force", "--json"]
    process, shown, _ = in_a_terminal(tmp_path, "report", *words)
    out, _ = process.communicate(timeout=400)
    assert process.returncode == 0
    bar = shown()
    assert "report" in bar
    assert re.search(r"writing \w", bar)  # figures take seconds everywhere; what came before may be over in one
    assert "out/report.html" in json.loads(out)["files"]
    assert (tmp_path / "out" / "report.html").read_text().startswith("<!doctype html>")
    assert load_report(tmp_path / "out").title != "Older"
    assert {path.name for path in tmp_path.iterdir()} == {"my.toml", "out", "mine"}


@pytest.mark.parametrize("seconds", [pytest.param(0.0, marks=pytest.mark.slow), 1.5])
def test_an_interrupt_leaves_nothing_half_written(tmp_path, fast_config, seconds):
    process, shown, seen = in_a_terminal(tmp_path, "report", "--config", "my.toml", "--out", "out")
    deadline = time.monotonic() + 300
    while not seen and time.monotonic() < deadline and process.poll() is None:  # the bar: it is at work
        time.sleep(0.01)
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=300)
    assert (process.returncode, out) == (130, "")
    last = shown().rstrip().splitlines()[-1]
    left = {path.name for path in tmp_path.iterdir()}
    if left == {"my.toml"}:
        assert last.endswith("interrupted; nothing was written")
    else:  # finished sections are kept for the next time
        assert left == {"my.toml", "out.partial"}
        kept = re.search(
            r"interrupted; (\d+) finished parts? (is|are) in out.partial: the same command goes on from", last
        )
        assert int(kept[1]) == fg.Study.open(tmp_path / "out.partial").status.done


def test_an_interrupt_waits_for_the_compiler_and_is_never_lost():
    import numba

    from forgetting.cli.interrupts import uninterrupted

    done = []

    def pressed_inside(typing_context: object, argument: object) -> object:
        signal.raise_signal(signal.SIGINT)  # where an exception would be taken for an error of typing
        done.append("typed")
        return argument(argument), lambda context, builder, signature, values: values[0]

    same = numba.extending.intrinsic(pressed_inside)
    compiled = numba.njit(lambda x: same(x))

    def work() -> None:
        done.append(compiled(3))
        for _ in range(1000):
            time.sleep(0.01)
        done.append("ten seconds later")

    with pytest.raises(KeyboardInterrupt), uninterrupted():
        work()
    assert done in (["typed", 3], ["typed"])


def test_an_interrupt_while_writing_keeps_the_old_report(built, tmp_path, fast_config, report_process):
    import shutil

    shutil.copytree(built[0], tmp_path / "out")
    process = report_process(tmp_path, "--config", "my.toml", "--out", "out", "--sections", "rates", "--force")
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and process.poll() is None:  # the first figure of the new report
        if any(tmp_path.glob(".out.*/figures/*")):
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)
    assert process.returncode == 130
    assert {path.name for path in tmp_path.iterdir()} == {"my.toml", "out", "out.partial"}
    assert (tmp_path / "out" / "report.json").read_bytes() == (built[0] / "report.json").read_bytes()
