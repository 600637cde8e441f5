"""Files that were changed a little are refused with an error of this library, or can be used: a few hundred of them.

`make fuzz` examines many more. A case is repeated with `python tests/faults/files.py --seed 1 --case N`.
"""

from pathlib import Path

import campaign
import files
import pytest

from effort import rounds

CASES = rounds(120, 600)


@pytest.fixture(scope="module")
def summary(tmp_path_factory):
    script = Path(files.__file__)
    return campaign.conduct(script, CASES, seed=1, processes=1, folder=tmp_path_factory.mktemp("files"))


def test_changed_files_are_refused_or_used(summary):
    assert len(summary.outcomes) == CASES
    assert not summary.defects, str(summary)


def test_most_changes_get_past_the_parsers_of_zip_json_and_toml(summary):
    assert summary.share(files.REFUSED, files.USED) > 0.6, str(summary)


@pytest.mark.parametrize("kind", files.KINDS)
def test_files_of_every_kind_are_refused_by_the_reader_and_used(summary, kind, tmp_path):
    stages = {outcome.stage for outcome in summary.outcomes if outcome.kind == kind}
    for case in range(CASES, CASES + 100):  # of a rare kind the sample may have too few
        if not {files.REFUSED, files.USED} <= stages:
            stages.add(files.examine(1, case, tmp_path, kind).stage)
    assert {files.REFUSED, files.USED} <= stages


def test_a_case_is_the_same_each_time(tmp_path):
    for case in range(20):
        assert files.examine(1, case, tmp_path) == files.examine(1, case, tmp_path)
