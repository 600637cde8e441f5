"""Worst pairs in closed form, and the tasks that the package keeps."""

import json

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import InvalidInputError, ProblemFileError
from forgetting.tasks.known_tasks import FOLDER, known_worst, read_known_worst

RANDOM = fg.orderings.WithReplacement()


@pytest.mark.parametrize("quantity", ["loss", "forgetting"])
@pytest.mark.parametrize("k", [2, 3, 10, 1000])
def test_no_angle_and_no_other_pair_is_worse_than_the_worst_pair(k, quantity):
    def value(tasks):
        return float(getattr(fg.expect(tasks, RANDOM, k), quantity)) / tasks.scale

    worst = value(fg.families.worst_pair(k, quantity))
    angles = np.sqrt(2 / k) * np.linspace(0.3, 1.4, 23)
    assert all(value(fg.families.two_lines(min(angle, 1.5))) <= worst * (1 + 1e-9) for angle in angles)
    assert any(value(fg.families.two_lines(min(angle, 1.5))) > 0.99 * worst for angle in angles)
    for seed in range(5):
        assert value(fg.families.gaussian(T=2, d=3, rank=1 + seed % 2, seed=seed)) <= worst * (1 + 1e-9)


def test_a_worst_pair_needs_a_step_and_a_known_quantity():
    with pytest.raises(InvalidInputError, match="quantity must be 'loss' or 'forgetting', got 'regret'"):
        fg.families.worst_pair(3, "regret")
    with pytest.raises(InvalidInputError, match="k must be"):
        fg.families.worst_pair(0)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.name)
def test_every_entry_reaches_its_value(path):
    entry = read_known_worst(path)
    assert entry.tasks.scale == pytest.approx(1)
    reached = float(getattr(fg.expect(entry.tasks, RANDOM, entry.k), entry.quantity))
    assert reached == pytest.approx(entry.value, rel=1e-9)
    assert entry.upper is None or entry.upper >= entry.value * (1 - 1e-9)
    assert entry.origin
    assert entry in known_worst(entry.quantity, [entry.k])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"k": 0}, "k = 0"),
        ({"quantity": "regret"}, "regret"),
        ({"value": "large"}, "value"),
        ({"matrices": [[[1.0]], []]}, "rows of"),
        ({"w_star": [1.0, 0.0]}, r"rows of \[1\] numbers, w\* of 2"),
        ({"colour": 3}, "colour"),
    ],
)
def test_a_damaged_entry_is_refused_with_the_name_of_its_file(tmp_path, change, words):
    good = {"quantity": "loss", "k": 1, "value": 0.125, "matrices": [[[1.0]], [[1.0]]], "w_star": [1.0]}
    path = tmp_path / "entry.json"
    path.write_text(json.dumps(good))
    assert read_known_worst(path).num_tasks == 2
    path.write_text(json.dumps(good | change))
    with pytest.raises(ProblemFileError, match=rf"entry\.json: damaged entry of known worst tasks.*{words}"):
        read_known_worst(path)
