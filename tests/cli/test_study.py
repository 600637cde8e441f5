"""forgetting study: run, status and export."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import forgetting as fg

STUDY = """
repeats = 2

[cells]
family = "gaussian"
T = [3, 4]
d = 6
rank = [1, 9]
k = [1, 10, 100]
"""
SLOW = """
import time
from pathlib import Path

def wait(n):
    while n > 3 and not Path("go").exists():
        time.sleep(0.01)
    return {"n": n}
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "my.toml"
    path.write_text(STUDY)
    return path


def fits(text: str, width: int = 80) -> bool:
    return all(len(line) <= width for line in text.splitlines()) and "\x1b" not in text


@pytest.mark.parametrize("command", ["run", "status", "export"])
def test_help_teaches_by_example(inside, command):
    done = inside("study", command, "--help")
    assert (done.code, done.err) == (0, "")
    assert fits(done.out)
    assert f"Examples:\n    forgetting study {command}" in done.out


def test_the_group_is_in_the_help_and_explains_itself(inside):
    assert "\n  study " in inside("--help").out
    done = inside("study")
    assert done.code == 0
    assert done.out == inside("study", "--help").out
    assert fits(done.out)
    assert "forgetting study run my.toml" in done.out


def test_a_study_is_run_looked_at_and_exported(inside, study):
    waiting = inside("study", "status", "my.toml")
    assert waiting.out.startswith("0 of 8 cells are finished; 0 are running, 8 are waiting\nstore: my.db\n")
    assert not study.with_suffix(".db").exists()  # looking makes nothing
    done = inside("study", "run", "my.toml")
    assert done.code == 3  # rank 9 in 6 dimensions
    assert done.err == ""
    assert "8 of 8 cells are finished, 4 of them failed" in done.out
    assert "failed: family=gaussian, T=3, d=6, rank=9" in done.out
    assert "must be between 1 and d = 6" in done.out
    assert f"computed by forgetting {fg.__version__}" in done.out
    for source in ("my.toml", "my.db"):
        assert inside("study", "status", source).out == done.out
    data = json.loads(inside("study", "status", "my.db", "--json").out)
    assert (data["done"], data["failed"], data["waiting"], data["total"]) == (4, 4, 0, 8)
    assert len(data["failures"]) == 4
    said = inside("study", "export", "my.toml", "--out", "t.csv")
    assert said.out == "wrote t.csv: 16 rows of 8 finished cells of 8\n"
    with open(study.parent / "t.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if not row["failure"]]
    assert [(row["T"], row["k"], row["repeat"]) for row in rows[:3]] == [
        ("3", "1", "0"),
        ("3", "10", "0"),
        ("3", "100", "0"),
    ]
    seeds = {cell.seed for cell in fg.Study.from_toml(study).cells}
    assert {int(row["seed"]) for row in rows} <= seeds
    tasks = fg.families.gaussian(3, 6, 1, seed=int(rows[1]["seed"]))
    assert float(rows[1]["loss"]) == pytest.approx(fg.expect(tasks, "with-replacement", 10).loss, rel=1e-12)


def test_pictures_of_a_study(inside, study):
    inside("study", "run", "my.toml")
    done = inside("study", "export", "my.db", "--out", "p.png", "--y", "forgetting", "--hue", "T")
    assert (done.code, done.err) == (0, "")
    assert (study.parent / "p.png").read_bytes().startswith(b"\x89PNG")
    assert inside("study", "export", "my.db", "--out", "p.pdf").code == 0
    assert inside("study", "export", "my.db", "--out", "p.html").code == 0
    page = (study.parent / "p.html").read_text()
    assert "Study of 8 cells" in page
    assert "<svg" in page


def test_failed_cells_are_computed_again_only_if_asked(inside, study):
    (study.parent / "mine.py").write_text("from pathlib import Path\ndef f(n):\n    return Path('value').read_text()\n")
    study.write_text("function = 'mine.py:f'\n[cells]\nn = [1, 2]")
    allowed = "--function", "mine.py:f"
    assert inside("study", "run", "my.toml", *allowed).code == 3
    (study.parent / "value").write_text("x")
    assert inside("study", "run", "my.toml", *allowed).code == 3
    assert inside("study", "run", "my.toml", *allowed, "--retry").code == 0
    assert [row["value"] for row in fg.Study.open(study.with_suffix(".db")).rows()] == ["x", "x"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "gone.toml"), "gone.toml: no such file"),
        (("status", "gone.db"), "gone.db: no such file"),
        (("run", "my.db"), "my.db holds results"),
        (("run", "my.toml", "--jobs", "0"), "jobs"),
        (("run", "my.toml", "--jobs", "2", "--dask", "tcp://127.0.0.1:1"), "--jobs or --dask, not both"),
        (("export", "my.toml"), "--out"),
        (("export", "my.toml", "--out", "t.docx"), "use .parquet, .csv, .json, .png, .pdf or .html"),
        (("export", "my.toml", "--out", "t.csv", "--y", "loss"), "--y is for pictures"),
        (("export", "my.toml", "--out", "t.png", "--times"), "--times is for tables"),
        (("export", "my.toml", "--out", "my.toml"), "unknown ending"),
        (("export", "my.toml", "--out", "t.png"), "nothing to draw"),
        (("export", "my.toml", "--out", "t.png", "--y", "loss"), "no column 'loss'"),
        (("hunt", "my.toml"), "No such command 'hunt'"),
    ],
)
def test_wrong_words_are_one_line_and_write_nothing(inside, study, words, said):
    done = inside("study", *words)
    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") == 1
    assert {path.name for path in study.parent.iterdir()} == {"my.toml"}


def test_a_file_of_the_user_is_kept(inside, study):
    (study.parent / "t.csv").write_text("mine")
    for more in ((), ("--force",)):
        done = inside("study", "export", "my.toml", "--out", "t.csv", *more)
        assert done.code == 2
        assert "kept" in done.err
    assert (study.parent / "t.csv").read_text() == "mine"


def test_without_dask_the_message_says_what_to_install(inside, study, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)  # its import fails
    done = inside("study", "run", "my.toml", "--dask", "tcp://127.0.0.1:1")
    assert done.code == 2
    assert "pip install 'forgetting[cluster]'" in done.err


def test_a_scheduler_that_does_not_answer_is_named(inside, study, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("forgetting.cli.study.ANSWER", 0.5)
    done = inside("study", "run", "my.toml", "--dask", "tcp://127.0.0.1:1")
    assert done.code == 2
    assert "no Dask scheduler answers at 'tcp://127.0.0.1:1'" in done.err


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="signals of Unix")
def test_an_interrupt_says_what_is_kept_and_another_terminal_sees_the_study_run(inside, study):
    (study.parent / "mine.py").write_text(SLOW)
    study.write_text("function = 'mine.py:wait'\n[cells]\nn = [1, 2, 3, 4, 5]")
    process = subprocess.Popen(
        [sys.executable, "-m", "forgetting", "study", "run", "my.toml", "--function", "mine.py:wait"],
        cwd=study.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for _ in range(6000):
            status = fg.Study.open(study.with_suffix(".db")).status if study.with_suffix(".db").exists() else None
            if status is not None and status.done == 3 and status.running == 1:
                break
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        assert "3 of 5 cells are finished; 1 are running, 1 are waiting" in inside("study", "status", "my.toml").out
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert out == ""
    assert err == "interrupted; 3 of 5 cells are in my.db; run it again to go on\n"
    (study.parent / "go").touch()
    done = inside("study", "run", "my.toml", "--function", "mine.py:wait")
    assert done.code == 0
    assert done.out.startswith("5 of 5 cells are finished\n")


def test_no_command_runs_code_that_a_file_names_unless_the_user_allows_it(inside, study):
    folder = study.parent
    (folder / "mine.py").write_text("open('trace', 'a').close()\n\n\ndef f(n):\n    return {'n': n}\n")
    study.write_text("function = 'mine.py:f'\n[cells]\nn = [1, 2]")
    done = inside("study", "run", "my.toml")
    assert done.code == 2
    assert "allow it: forgetting study run my.toml --function mine.py:f (" in done.err
    assert inside("study", "status", "my.toml").out.startswith("0 of 2 cells are finished")
    assert not (folder / "trace").exists()
    assert not (folder / "my.db").exists()
    assert inside("study", "run", "my.toml", "--function", "mine.py:f").code == 0
    assert (folder / "trace").exists()
    (folder / "trace").unlink()
    for source in ("my.toml", "my.db"):
        assert inside("study", "status", source).out.startswith("2 of 2 cells are finished")
        assert inside("study", "export", source, "--out", f"{source}.csv").out.startswith(f"wrote {source}.csv: 2 rows")
    assert not (folder / "trace").exists()


def test_plugins_reach_other_processes(forgetting, study, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import forgetting as fg\n\n\n@fg.orderings.register\nclass Backwards(fg.orderings.Cyclic):\n    pass\n"
    )
    study.write_text('[cells]\nfamily = "orthogonal"\nd = [2, 3, 4]\nordering = "backwards"\nk = 3\n')
    done = forgetting("--plugin", "mine.py", "study", "run", "my.toml", "--jobs", "2")
    assert (done.code, done.err) == (0, "")
    assert fg.Study.open(tmp_path / "my.db").status.done == 3
