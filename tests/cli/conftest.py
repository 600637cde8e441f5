"""Real processes: each test sees what a user sees."""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import forgetting as fg
from effort import made_once

# Warnings of this package are errors, those within other libraries are not. A module must be named in full here.
OWN_MODULES = ["forgetting", "__main__", *(module.name for module in pkgutil.walk_packages(fg.__path__, "forgetting."))]
OWN_WARNINGS = ",".join(f"error:::{name}" for name in OWN_MODULES)


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


Forgetting = Callable[..., Done]


def environment(**more: str) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR", "NO_COLOR")}
    return plain | {"PYTHONWARNINGS": OWN_WARNINGS} | more


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Forgetting:
    """The same within this process, for long tables of cases."""

    def call(*arguments: str) -> Done:
        from forgetting.cli import run_app

        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv("COLUMNS", raising=False)
        code = run_app(list(arguments))
        out, err = capsys.readouterr()
        return Done(code, out, err)

    return call


@pytest.fixture
def forgetting(tmp_path: Path) -> Forgetting:
    """Run `python -m forgetting` in an empty folder, in a pipe."""

    def call(*arguments: str, **more: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "forgetting", *arguments],
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=tmp_path,
            env=environment(**more),
            timeout=400,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return call


FAST = """
title = "Four small tasks"
seed = 1

[problem]
family = "gaussian"
T = 4
d = 6
rank = 2

[report]
k = 60
points = 8
runs = 50
hunt = 1
eps = [3.0, 2.0]
orderings = ["with-replacement", "without-replacement", "cyclic"]
"""


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """`forgetting report` in the background."""
    return subprocess.Popen(
        [sys.executable, "-m", "forgetting", "report", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={name: value for name, value in os.environ.items() if name != "COLUMNS"},
    )


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> tuple[Path, str, str]:
    """A report on a user's problem: its folder, whose name has spaces and accents, stdout, stderr. Read only."""

    def make(folder: Path) -> None:
        (folder / "my.toml").write_text(FAST)
        process = start(folder, "--config", "my.toml", "--out", "out")
        out, err = process.communicate(timeout=400)
        assert process.returncode == 0, err
        (folder / "stdout.txt").write_text(out, encoding="utf-8")
        (folder / "stderr.txt").write_text(err, encoding="utf-8")

    folder = made_once(tmp_path_factory, "tâches à part", make)
    return folder / "out", *((folder / name).read_text(encoding="utf-8") for name in ("stdout.txt", "stderr.txt"))


@pytest.fixture
def report_process() -> Callable[..., subprocess.Popen[str]]:
    """Start a report: (folder, *arguments) -> process."""
    return start


@pytest.fixture
def fast_config(tmp_path: Path) -> Path:
    """A config whose report takes seconds."""
    (tmp_path / "my.toml").write_text(FAST)
    return tmp_path / "my.toml"
