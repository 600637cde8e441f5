"""What keeps the suite short leaves nothing out that it should not."""

from itertools import combinations

import pytest

from effort import each, pairwise


def test_every_two_values_occur_together():
    choices = {"a": [1, 2, 3], "b": "xy", "c": [None, True], "d": range(4)}
    rows = pairwise(**choices).mark.args[1]
    assert len(rows) < 3 * 2 * 2 * 4
    for (i, first), (j, second) in combinations(enumerate(choices.values()), 2):
        assert {(row[i], row[j]) for row in rows} == {(one, other) for one in first for other in second}


def test_each_value_is_tried_until_one_fails_and_the_error_names_it():
    seen = []

    @each("value", range(5))
    def check(value, tmp_path):
        seen.append((value, tmp_path))
        assert value < 3

    with pytest.raises(AssertionError) as caught:
        check(tmp_path="here")
    assert seen == [(value, "here") for value in range(4)]
    assert caught.value.__notes__[-1] == "value = 3"
