"""The drawing of one call of `fg.expect` in docs/architecture.md shows the files that a call enters."""

import re
import sys
from pathlib import Path

import forgetting as fg

ROOT = Path(__file__).resolve().parents[2]
#: what the drawing names for values in doubt, of which the call has none
IN_DOUBT = {"decimal_moments"}


def files_entered(call, engine):
    """The names of the files of `expectation/` whose functions run during a call.

    What other engines than the one that is taken do to say what they cover and cost is left out.
    """
    home, entered, asked = Path(fg.__file__).parent / "expectation", set(), []

    def watch(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event not in ("call", "return") or home not in path.parents:
            return
        question = frame.f_code.co_name in ("covers", "cost") and path.stem != engine
        if event == "return":
            del asked[len(asked) - question :]
            return
        asked.extend([path.stem] * question)
        if not asked:
            entered.add(path.stem)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(before)
    return entered


def test_the_drawing_of_a_call_names_the_files_that_the_call_enters():
    tasks = fg.families.gaussian(5, 20, 3, seed=0)
    fg.expect(tasks, "random", 100)  # compiles
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    drawing = page.split("```text\n")[1].split("```")[0]
    named = set(re.findall(r"(\w+)\.py", drawing))
    assert files_entered(lambda: fg.expect(tasks, "random", 100), "moments") == named - IN_DOUBT
