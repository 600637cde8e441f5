"""Names of others are shown in a terminal, not obeyed by it; in data they stay as they are."""

from __future__ import annotations

import io
import json
import sys
import unicodedata
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

import forgetting as fg
from forgetting.cli import main, run_app
from forgetting.cli.output import say
from forgetting.core.progress import progress_bar, shown
from forgetting.core.text import one_line, visible

ESCAPE = "\x1b]0;title\x07\x1b[31m"
TURNED = "\u202ecba\u2066"
NAMES = [ESCAPE, TURNED, "\x9b31m", "\x7f", "a\rb", "a\x08b", "\u200bzero", "\ufeff", "a\u2028b", "\ud800", "\x00"]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_what_a_terminal_obeys_is_spelt_out(name):
    shown = visible(name)
    assert shown.isprintable()
    assert shown.encode("utf-8")
    assert shown != name


@given(st.text())
def test_visible_words_hold_nothing_that_acts_and_nothing_is_lost(words):
    shown = visible(words)
    assert all(unicodedata.category(letter) not in ("Cc", "Cs") or letter in "\n\t" for letter in shown)
    assert visible(shown) == shown
    kept = [letter for letter in words if letter.isprintable()]
    rest = iter(shown)
    assert all(letter in rest for letter in kept)


@pytest.mark.parametrize("words", ["naïve", "λ=1", "中文", "a\nb", "a\tb", "🙂", "\u06cc\u200c\u062e"])
def test_ordinary_words_of_any_script_stay_as_they_are(words):
    assert visible(words) == words
    assert "\n" not in one_line(words)


@pytest.fixture
def named(tmp_path, monkeypatch):
    """A folder with tasks of dangerous names."""
    monkeypatch.chdir(tmp_path)
    rows = [f'"{ESCAPE}",1,0,1', f'"{ESCAPE}",1,2,0', f'"{TURNED}",0,1,2', '"two\nlines",3,1,1']
    (tmp_path / "tasks.csv").write_text("\n".join(["task,a,b,y", *rows]), encoding="utf-8")
    (tmp_path / f"{ESCAPE}.toml").write_text(f"title = {json.dumps(TURNED)}\n[problem]\nfamily = 'orthogonal'\nd = 3")
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        ["audit", "tasks.csv"],
        ["audit", "tasks.csv", "--json"],
        ["audit", "tasks.csv", "--label", ESCAPE],
        ["audit", "tasks.csv", "--out", f"{TURNED}.html"],
        ["run", f"{ESCAPE}.toml", "-k", "3"],
        ["expect", f"{ESCAPE}.toml", "-k", "3", "--out", f"{ESCAPE}.csv"],
        ["bounds", f"{ESCAPE}.toml", "-k", "3"],
        ["certify", f"{ESCAPE}.toml", "-k", "2", "--out", f"{ESCAPE}.txt"],
        ["run", ESCAPE],
        ["run", f"{ESCAPE}.npz"],
        ["run", f"--{ESCAPE}"],
        ["run", "--ordering", TURNED],
        ["run", "two_lines", f"{ESCAPE}=1"],
        ["claims", ESCAPE],
        ["families", TURNED],
        [ESCAPE],
    ],
    ids=ascii,
)
def test_no_command_sends_what_a_terminal_obeys(line, named, capsys):
    code = run_app(line)
    out, err = capsys.readouterr()
    assert code in (0, 2)
    assert out + err
    assert all(letter.isprintable() or letter == "\n" for letter in out + err)


def test_names_keep_their_value_in_data(named, capsys):
    assert run_app(["audit", "tasks.csv", "--json"]) == 0
    found = fg.auditing.Audit.from_json(capsys.readouterr().out)
    assert [task.name for task in found.tasks] == [ESCAPE, TURNED, "two\nlines"]


def test_a_name_of_two_lines_is_one_line_of_a_table(named, capsys):
    assert run_app(["audit", "tasks.csv"]) == 0
    out = capsys.readouterr().out
    assert "two lines" in " ".join(out.split())
    assert not any(line.startswith("lines") for line in out.splitlines())


def test_a_terminal_without_letters_gets_something(monkeypatch):
    sink = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    monkeypatch.setattr(sys, "stdout", sink)
    say("λ \x1b \udc80")
    assert sink.buffer.getvalue() == b"? \\x1b \\udc80\n"


def test_the_progress_bar_shows_names_as_they_are(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    sink = Terminal()
    monkeypatch.setattr(sys, "stderr", sink)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("forgetting.core.progress.SOON", -1.0)
    with shown(True), progress_bar("working") as step:
        step(f"[red]{ESCAPE}[/nothing]", 0, 1)
    assert "[red]\\x1b]0;title\\x07" in sink.getvalue()
    assert "\x1b]0" not in sink.getvalue()
    assert "\x07" not in sink.getvalue()


def test_a_warning_is_one_visible_line(capsys, monkeypatch):
    def command(arguments: list[str]) -> int:
        warnings.warn(f"task '{ESCAPE}'\nis small", stacklevel=1)
        return 0

    monkeypatch.setattr("forgetting.cli.run_app", command)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with pytest.raises(SystemExit):
            main([])
    assert capsys.readouterr().err == "warning: task '\\x1b]0;title\\x07\\x1b[31m' is small\n"
