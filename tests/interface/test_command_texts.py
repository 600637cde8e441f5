"""The text of every command at 80 columns, and the numbers of the report's and the README's figures, as they were.

`commands.txt` and `figures.json` were made by an earlier version. Words must be the same, and numbers up to rounding.
A change that is wanted is written by `python tests/interface/test_command_texts.py`, and is read in the diff.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import forgetting as fg
from forgetting.cli import run_app
from forgetting.report import Report

HERE = Path(__file__).parent
TEXTS, FIGURES = HERE / "commands.txt", HERE / "figures.json"
SMALL = "gaussian T=4 d=6 rank=2"
COMMANDS = [
    "report",
    "run",
    "expect",
    "weights",
    "bounds",
    "table",
    "certify",
    "claims",
    "audit",
    "explore",
    "worst-case",
    "solve",
    "cite",
    "families",
    "doctor",
]
LINES = [
    "--help",
    *(f"{command} --help" for command in COMMANDS),
    "study --help",
    "study run --help",
    "study status --help",
    "study export --help",
    "frontier --help",
    "frontier show --help",
    "frontier verify --help",
    "frontier improve --help",
    f"run {SMALL} -k 12",
    "run separable T=3 d=4 n=5 margin=0.2 -k 6 --ordering cyclic",
    f"expect {SMALL} -k 1,10,100",
    "expect two_lines theta=0.5 copies=3 -o without-replacement -k 2,6",
    f"expect {SMALL} -k 10 --noise 0.1",
    f"weights {SMALL} -k 3",
    "bounds two_lines theta=0.5 -k 100 --all",
    f"bounds {SMALL} -o without-replacement",
    "table regression",
    "table regression gaussian T=10 d=50 rank=3 -k 1000",
    "table classification",
    "table sgd -k 1000",
    "certify two_lines theta=0.14 -k 20",
    "claims",
    "claims lem:regret_bound",
    "claims lem:regret_bound --hunt 5",
    "audit tasks.csv",
    "worst-case 2 2",
    "frontier show",
    "solve A.csv b.csv",
    "cite thm:cl_by_sgd_main",
    "families",
    "families catastrophic",
    "run nowhere.npz",
    "expect two_lines theta=7x",
    "bounds two_lines theta=0.5 -o cyclick",
]
TASKS = "task,a,b,c,y\n" + "".join(
    f"{task},{a},{b},{c},{2 * a - b + 0.5 * c}\n"
    for task, a, b, c in [(1, 1, 0, 2), (1, 0, 1, 1), (2, 1, 1, 0), (3, 2, 1, 1), (3, 0, 0, 3), (4, 1, -1, 1)]
)
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?(?![\w.]|-\d)", re.IGNORECASE)


def prepare(folder: Path) -> None:
    """The files that the commands read."""
    (folder / "tasks.csv").write_text(TASKS)
    (folder / "A.csv").write_text("2,1\n1,3\n1,1\n")
    (folder / "b.csv").write_text("4\n7\n3\n")


def said(line: str) -> str:
    """What a command prints into a pipe, on stdout and stderr, and its exit code."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run_app(line.split())
    return f"$ forgetting {line}\n{out.getvalue()}{err.getvalue()}[exit code {code}]\n"


def words_and_numbers(text: str) -> tuple[list[str], list[float]]:
    """Words without the white space between them, and numbers."""
    numbers = [float(number) for number in NUMBER.findall(text)]
    words = re.sub(r"[─-╿]", " ", NUMBER.sub(" # ", text))  # without the lines of boxes
    return re.sub(r"-{2,}(?= |\n|$)", " ", words).split(), numbers


def stored() -> dict[str, str]:
    """The texts as they were, by their first lines."""
    parts = re.split(r"^(?=\$ forgetting )", TEXTS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {part.split("\n", 1)[0]: part for part in parts if part}


def alike(one: float, other: float) -> bool:
    """Equal to the digits that are printed; what is printed of rounding errors differs on other machines."""
    return math.isclose(one, other, rel_tol=2e-3) or max(abs(one), abs(other)) < 1e-11


def test_every_line_is_stored_and_no_other():
    assert list(stored()) == [f"$ forgetting {line}" for line in LINES]


@pytest.mark.parametrize("line", LINES)
def test_a_command_says_what_it_said(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    prepare(tmp_path)
    text = said(line)
    if "[exit code 0]" in text and "help" not in line and "cite" not in line:  # errors, examples and BibTeX are not cut
        assert all(len(row) <= 80 for row in text.splitlines()[1:])
    if line.endswith("--help") and not newest_typer():
        return  # other versions lay out their help in other ways
    words, numbers = words_and_numbers(text)
    known_words, known_numbers = words_and_numbers(stored()[f"$ forgetting {line}"])
    assert words == known_words
    if not line.startswith("solve"):  # seconds
        assert [pair for pair in zip(numbers, known_numbers, strict=True) if not alike(*pair)] == []


def newest_typer() -> bool:
    """Whether typer and rich are the versions of `constraints.txt`, with which the texts were made."""
    from importlib.metadata import version

    pins = (HERE.parents[1] / "constraints.txt").read_text(encoding="utf-8").lower()
    return all(f"{name}=={version(name)}" in pins for name in ("typer", "rich", "click"))


# ------------------------------------------------------------------------------------------------------------- figures


def figures() -> dict[str, Any]:
    """The figures of a small report, and the two panels of the README, as data with 6 digits."""
    from forgetting.report import Settings, build_report, default_problem

    tasks = fg.families.gaussian(T=4, d=6, rank=2, seed=1)
    small = Settings(tasks, "small", k=60, points=8, runs=50, hunt=1, eps=(3.0, 2.0))
    readme = Settings(default_problem(), points=4, eps=(3.0, 2.0), sections=("rates", "guarantees", "repetition"))
    return {name: items_of(build_report(settings)) for name, settings in (("small", small), ("README", readme))}


def items_of(report: Report) -> dict[str, Any]:
    sections = json.loads(report.to_json())["sections"]
    hunted = ("claims", "false")  # what a hunt finds first depends on rounding
    return {
        item["key"]: rounded(item) for section in sections for item in section["items"] if item["key"] not in hunted
    }


def rounded(value: Any) -> Any:
    """The same with 6 digits, and without captions."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, list):
        return [rounded(entry) for entry in value]
    if isinstance(value, dict):
        return {key: rounded(entry) for key, entry in value.items() if key not in ("caption", "notes")}
    return value


def differences(one: Any, other: Any, place: str = "") -> list[str]:
    """Where the two differ by more than rounding."""
    if isinstance(one, (int, float)) and isinstance(other, (int, float)) and not isinstance(one, bool):
        return [] if math.isclose(one, other, rel_tol=2e-5, abs_tol=1e-9) else [f"{place}: {one} and {other}"]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [
            line for i, pair in enumerate(zip(one, other, strict=True)) for line in differences(*pair, f"{place}[{i}]")
        ]
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [line for key in one for line in differences(one[key], other[key], f"{place}.{key}")]
    return [] if one == other else [f"{place}: {one!r:.60} and {other!r:.60}"]


def test_the_figures_of_the_report_and_the_readme_are_what_they_were():
    assert differences(figures(), json.loads(FIGURES.read_text(encoding="utf-8"))) == []


if __name__ == "__main__":
    os.environ.pop("COLUMNS", None)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        prepare(Path(folder))
        TEXTS.write_text("".join(map(said, LINES)), encoding="utf-8")
        os.chdir(HERE)  # workers begin where this process is
    FIGURES.write_text(json.dumps(figures(), separators=(",", ":"), ensure_ascii=False) + "\n", encoding="utf-8")
    sys.exit()
