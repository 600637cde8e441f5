"""A plain install: what it lacks is named by help, doctor and errors, with the command that installs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from forgetting.cli import run_app
from forgetting.core.extras import EXTRAS

ROOT = Path(__file__).parents[1]
PLAIN = "import sys\nfor name in sys.argv[1].split(','):\n    sys.modules[name] = None  # its import fails\n"
MODULES = sorted({name for extra in EXTRAS for name in (*extra.modules, *extra.one_of)})
COMMANDS = {extra.name: re.escape(extra.command) for extra in EXTRAS}


def plainly(code: str, folder: Path) -> str:
    """What a program prints where no extra is installed."""
    done = subprocess.run(
        [sys.executable, "-c", PLAIN + code, ",".join(MODULES)],
        cwd=folder, capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_extras_are_those_of_the_package():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    packages = {
        name: {re.split(r"[<>=]", line)[0].replace("-", "_") for line in lines} for name, lines in declared.items()
    }
    assert packages.pop("all") == {"forgetting[cluster,data,device,worst]"}
    assert packages == {extra.name: set(extra.modules) for extra in EXTRAS}


NEEDED = """
import contextlib, io
import forgetting as fg
from forgetting.cli import run_app

class Stream:
    def __arrow_c_stream__(self, requested_schema=None): ...

tasks = fg.families.two_lines(0.5)
study = fg.Study.grid(family="two_lines", theta=0.5, k=2, store=None)
open("a.parquet", "w").close()
open("my.toml", "w").write("[cells]\\nfamily = 'two_lines'\\ntheta = 0.5\\nk = 2\\n")

def commanded(line):
    with contextlib.redirect_stderr(io.StringIO()) as said:
        assert run_app(line.split()) == 2
    raise fg.errors.NotSupportedError(" ".join(said.getvalue().split()))

calls = {
    "data": [
        fg.run(tasks, "cyclic", 2).to_frame,
        fg.run_many(tasks, "random", 2, runs=2).to_frame,
        fg.expect(tasks, "random", 2).to_frame,
        fg.bounds.evaluate(tasks, "random", 2).to_frame,
        fg.audit(tasks).to_frame,
        study.to_frame,
        lambda: study.to_parquet("b.parquet"),
        lambda: fg.load("a.parquet"),
        lambda: fg.load(Stream()),
        lambda: fg.RegressionTasks.from_source("a.parquet", "y", "task"),
        lambda: commanded("run a.parquet -k 2"),
    ],
    "worst": [lambda: fg.worst_case(2, 2), lambda: commanded("worst-case 2 2")],
    "cluster": [lambda: commanded("study run my.toml --dask tcp://127.0.0.1:1")],
}
for extra, functions in calls.items():
    for function in functions:
        try:
            function()
        except fg.errors.NotSupportedError as error:
            print(extra, error)
"""


def test_errors_name_the_command_in_the_same_words(tmp_path):
    lines = plainly(NEEDED, tmp_path).splitlines()
    assert [line.split()[0] for line in lines] == 11 * ["data"] + 2 * ["worst"] + ["cluster"]
    for line in lines:
        extra, said = line.split(maxsplit=1)
        assert re.search(rf" needs \w+, which is not installed: {COMMANDS[extra]}(, or .+)?$", said), line


def test_a_package_that_is_broken_is_not_called_absent(tmp_path, monkeypatch):
    (tmp_path / "pandas.py").write_text("import nothing_of_this_name")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    code = "import forgetting as fg; fg.run(fg.families.two_lines(0.5), 'cyclic', 2).to_frame()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    said = "to_frame needs pandas, which cannot be imported here (No module named 'nothing_of_this_name')"
    assert said in done.stderr


def test_doctor_names_what_is_not_installed_and_what_would_install_it(tmp_path):
    code = "from forgetting.cli import run_app; raise SystemExit(run_app(['doctor']))"
    words = " ".join(plainly(code, tmp_path).split())
    assert "every known answer holds" in words
    assert "not installed: data, worst, cluster, device;" in words
    for extra in EXTRAS:
        assert extra.command in words
        assert extra.unlocks.split()[0] in words


def test_doctor_is_content_where_everything_is_installed(monkeypatch, capsys):
    monkeypatch.setattr("forgetting.core.extras.find_spec", lambda name: name)
    assert run_app(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert "not installed" not in shown
    assert "pip install" not in shown


def test_help_names_every_extra_with_its_command(capsys):
    assert run_app(["--help"]) == 0
    shown = capsys.readouterr().out
    for extra in EXTRAS:
        assert re.search(rf"{COMMANDS[extra.name]} +{re.escape(extra.unlocks)}", shown)
