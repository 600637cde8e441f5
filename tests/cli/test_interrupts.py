"""A signal that comes where Python would lose an exception is answered a moment later."""

import os
import signal
import subprocess
import sys
import time

import pytest

from forgetting.cli.interrupts import Interrupted, uninterrupted

PRESS = "import signal\nsignal.raise_signal(signal.SIGINT)\nreached.append(True)"


def press(module, reached):
    """Send a signal from code of a module, and wait for the answer."""
    with uninterrupted():
        exec(PRESS, {"__name__": module, "reached": reached})
        for _ in range(6000):  # ended by the signal
            time.sleep(0.01)


def test_a_signal_within_a_callback_of_the_import_system_is_not_lost():
    reached = []
    with pytest.raises(Interrupted):
        press("importlib._bootstrap", reached)
    assert reached == [True]


# a module of the standard library that the package imports, or the end of the interpreter, sends the signal
WHILE_LOADING = """
import sys
class Now:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r} and not sys.modules.get("forgetting.cli.app"):
            import signal
            signal.raise_signal(signal.{number})
sys.meta_path.insert(0, Now())
"""
AT_THE_END = """
import atexit, signal, threading
threading._register_atexit(signal.raise_signal, signal.{number})
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("moment", [WHILE_LOADING, AT_THE_END], ids=["while loading", "at the end"])
def test_a_signal_before_or_after_the_command_itself_has_its_exit_code(tmp_path, number, moment):
    heard = "import signal\nsignal.signal(signal.{number}, signal.SIG_DFL)\n"  # also where the tests run under nohup
    text = (heard if number != signal.SIGINT else "") + moment
    (tmp_path / "sitecustomize.py").write_text(text.format(name="forgetting.orderings", number=number.name))
    before = {"PYTHONPATH": str(tmp_path), "COLUMNS": "80"}
    found = subprocess.run(
        [sys.executable, "-m", "forgetting", "--version"], env={**os.environ, **before}, capture_output=True, text=True
    )
    assert (found.returncode, found.stderr) == (128 + number, "interrupted\n")


def test_importing_the_package_leaves_signals_as_they_are():
    code = "import signal, forgetting.cli; print(signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split()[0] == "0" or "SIG_DFL" in found.stdout
    assert "default_int_handler" in found.stdout


def test_a_signal_elsewhere_is_answered_at_once():
    reached = []
    with pytest.raises(Interrupted):
        press("forgetting.anything", reached)
    assert reached == []
