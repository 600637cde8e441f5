"""Progress: silent unless asked for, a bar in terminals and notebooks, calls of a function, nothing in a pipe."""

import io
import sys
import types

import pytest

import forgetting as fg
from forgetting.core import progress
from forgetting.core.progress import progress_bar, shown, track

TASKS = fg.families.gaussian(T=4, d=6, rank=2, seed=0)

#: a call of every function with `progress`, made so that something is reported
CALLS = {
    "run": lambda **more: fg.run(TASKS, "cyclic", 20, **more),
    "run by learn": lambda **more: fg.run(TASKS, "cyclic", 200, "nlms mu=0.5", **more),
    "run_many": lambda **more: fg.run_many(TASKS, "with-replacement", 9, runs=20, **more),
    "run_many by learn": lambda **more: fg.run_many(TASKS, "greedy-distance", 5, runs=3, **more),
    "expect, moments": lambda **more: fg.expect(TASKS, "with-replacement", 30, **more),
    "expect, subsets": lambda **more: fg.expect(TASKS, "without-replacement", 4, **more),
    "expect, simulated": lambda **more: fg.expect(TASKS, "cyclic", 9, "nlms mu=0.5", runs=9, **more),
    "compare": lambda **more: fg.compare(TASKS, "cyclic", "with-replacement", 9, **more),
    "audit": lambda **more: fg.audit(TASKS, **more),
    "certify": lambda **more: fg.certify(TASKS, "with-replacement", 4, **more),
    "study": lambda progress=False: fg.Study.grid(family="orthogonal", d=[2, 3], k=5, store=None).run(
        progress=progress
    ),
    "hunt": lambda **more: fg.claims.get("lem:regret_bound").hunt(budget=6, **more),
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def open_terminal(monkeypatch):
    """Make stderr a terminal in which bars appear at once; within the test, since pytest sets stderr before it."""

    def begin():
        sink = Terminal()
        monkeypatch.setattr(sys, "stderr", sink)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(progress, "SOON", -1.0)
        return sink

    return begin


@pytest.mark.parametrize("name", CALLS)
def test_every_long_function_reports_to_a_function(name):
    said = []
    CALLS[name](progress=lambda *report: said.append(report))
    assert said
    for words, done, total in said:
        assert words
        assert 0 <= done <= total


@pytest.mark.parametrize("name", CALLS)
def test_every_long_function_is_silent_in_a_terminal_unless_it_is_asked(name, open_terminal):
    terminal = open_terminal()
    CALLS[name]()
    assert terminal.getvalue() == ""
    CALLS[name](progress=True)
    assert terminal.getvalue() != ""


def test_a_pipe_sees_nothing(monkeypatch, capsys):
    monkeypatch.setattr(progress, "SOON", -1.0)
    fg.run(TASKS, "cyclic", 20, progress=True)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_that_cannot_move_its_cursor_sees_nothing(open_terminal, monkeypatch):
    terminal = open_terminal()
    monkeypatch.setenv("TERM", "dumb")
    fg.run(TASKS, "cyclic", 20, progress=True)
    assert terminal.getvalue() == ""


def test_a_bar_appears_after_the_first_second_and_vanishes(open_terminal, monkeypatch):
    terminal = open_terminal()
    clock = iter(range(0, 1000, 4))
    monkeypatch.setattr(progress, "SOON", 10.0)
    monkeypatch.setattr(progress, "time", types.SimpleNamespace(monotonic=lambda: next(clock) / 4))
    with shown(True), progress_bar("counting") as step:
        for done in range(9):
            step("early", done, 100)
        assert terminal.getvalue() == ""
        for done in range(9, 60):
            step("late", done, 100)
        assert "counting" in terminal.getvalue()
        assert "late" in terminal.getvalue()
    assert terminal.getvalue().rstrip().endswith("\x1b[2K")  # the line is erased


def test_a_bar_within_a_bar_is_silent_and_a_function_within_a_bar_is_called():
    said = []
    with shown(lambda *report: said.append(report)), progress_bar("outer") as step:
        step("outer", 0, 1)
        fg.run(TASKS, "cyclic", 20)
        fg.run(TASKS, "cyclic", 20, progress=False)
        assert said == [("outer", 0, 1)]
        inner = []
        fg.run(TASKS, "cyclic", 20, progress=lambda *report: inner.append(report))
        assert inner == [("learning", 20, 20)]
    assert said == [("outer", 0, 1)]


def test_one_computation_after_the_other_is_reported():
    said = []
    with shown(lambda *report: said.append(report)):
        fg.run(TASKS, "cyclic", 20)
        fg.run(TASKS, "cyclic", 30)
    assert said == [("learning", 20, 20), ("learning", 30, 30)]


def test_after_an_interrupt_nothing_is_shown_any_more(open_terminal):
    """The generator of `track` outlives the call if somebody keeps the traceback, as notebooks do."""
    terminal = open_terminal()

    def interrupted():
        with shown(True):
            for _ in track(range(4), "working"):
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as kept:
        interrupted()
    shown_so_far = terminal.getvalue()
    list(track(range(4), "other"))
    del kept
    list(track(range(4), "other"))
    assert "other" not in terminal.getvalue()[len(shown_so_far) :]


def test_an_error_of_the_function_comes_out_and_leaves_nothing_behind():
    def fail(*_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fg.run(TASKS, "cyclic", 20, progress=fail)
    fg.run(TASKS, "cyclic", 20)


def test_the_function_is_what_it_was_before_it_was_decorated():
    import inspect

    assert fg.run.__name__ == "run"
    assert inspect.signature(fg.run).parameters["progress"].default is False
    assert "k: number of steps" in fg.run.__doc__


def test_a_notebook_sees_a_picture_that_is_replaced_and_vanishes(monkeypatch):
    shown_pictures = []

    class Handle:
        def update(self, picture, raw):
            shown_pictures.append(picture)

    def display(picture, raw, display_id):
        shown_pictures.append(picture)
        return Handle()

    package, module = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    module.display = display
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr(progress, "SOON", -1.0)
    monkeypatch.setattr(progress, "EVERY", -1.0)
    with shown(True), progress_bar("counting") as step:
        step("<first>", 1, 2)
        step("second", 2, 2)
    first, second = shown_pictures[1], shown_pictures[2]
    assert first["text/html"].startswith("<pre")
    assert "counting" in first["text/html"]
    assert "&lt;first&gt;" in first["text/html"]
    assert "first" not in second["text/html"]
    assert shown_pictures[-1] == {"text/html": "", "text/plain": ""}
