"""Every public name, called with one odd argument, works, or says what is wrong with an error of this library.

`make fuzz` makes many more such calls. Each failure shows the call as a line of Python, whose pieces are in
`pieces.py`.
"""

import os
import signal

import api_calls
import campaign
import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

from effort import rounds

EXAMPLES = rounds(2, 10)  # for each of more than 200 names


@pytest.fixture(scope="module", autouse=True)
def place(tmp_path_factory):
    """A folder that calls may write into, little memory, and the end of a call that takes too long."""

    def too_long(*_):
        raise campaign.WrongResultError(f"takes more than {campaign.SECONDS} s of processor time")

    here, handler = os.getcwd(), signal.signal(signal.SIGPROF, too_long)
    os.chdir(tmp_path_factory.mktemp("calls"))
    unlimited = campaign.limit_memory()
    yield
    unlimited()
    signal.signal(signal.SIGPROF, handler)
    os.chdir(here)


@pytest.mark.parametrize("name", api_calls.targets())
def test_the_usual_call_works(name):
    assert api_calls.perform(api_calls.good_call(api_calls.targets()[name])) == "worked"


@pytest.mark.parametrize("name", api_calls.targets())
def test_odd_calls_work_or_are_refused(name):
    @settings(max_examples=1 if name in api_calls.SLOW else EXAMPLES, phases=[Phase.generate])  # calls are short
    @given(st.data())
    def check(data):
        call = api_calls.odd_call(api_calls.targets()[name], lambda options: data.draw(st.sampled_from(options)))
        note(str(call))
        signal.setitimer(signal.ITIMER_PROF, campaign.SECONDS)
        try:
            api_calls.perform(call)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    check()


def test_every_parameter_has_a_good_argument():
    missing = [
        f"{name} of {target.name}"
        for target in api_calls.targets().values()
        for name in target.parameters
        if name != "zz" and not api_calls.good_pieces(target, name)
    ]
    assert missing == [], "add them to GOOD"
