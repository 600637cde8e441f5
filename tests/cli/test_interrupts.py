"""A signal that comes where Python would lose an exception is answered a moment later."""

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


def test_a_signal_elsewhere_is_answered_at_once():
    reached = []
    with pytest.raises(Interrupted):
        press("forgetting.anything", reached)
    assert reached == []
