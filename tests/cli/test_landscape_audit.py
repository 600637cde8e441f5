"""`forgetting audit FILE.npz` for a file of values."""

import json
from itertools import permutations

import numpy as np
import pytest

from forgetting.auditing import Landscape

ORDERS = np.array(list(permutations(range(4))))


@pytest.fixture
def values(tmp_path):
    rng = np.random.default_rng(0)
    last = (ORDERS[:, 3] == 2).astype(float)  # an order is good if task 2 comes last
    table = 0.5 + 0.3 * last[:, None] + 0.01 * rng.normal(size=(24, 3))
    np.savez(tmp_path / "mine.npz", permutations=ORDERS, values=table, seeds=[1, 2, 3])
    return table


def test_values_alone_are_audited(inside, values):
    done = inside("audit", "mine.npz", "quantity=accuracy", "higher_is_better=true", "order=0,1,2,3")
    assert (done.code, done.err) == (0, "")
    text = " ".join(done.out.split())
    best = ORDERS[np.argmax(values.mean(axis=1))]
    assert best[3] == 2
    assert f"best {values.mean(axis=1).max():.4g} in the order {' '.join(map(str, best))}" in text
    share, *_ = Landscape(ORDERS, values).variance.shares
    assert f"Which task stands where explains {100 * share:.0f} % of the variance" in text
    assert "The order 0 1 2 3 has" in text
    assert "of 3 seeds" in text


def test_the_direction_of_values_is_said_unless_it_is_given(inside, values):
    done = inside("audit", "mine.npz")
    assert done.code == 0
    assert "low values are taken to be good" in done.err
    best = ORDERS[np.argmin(values.mean(axis=1))]
    assert f"in the order {' '.join(map(str, best))}" in " ".join(done.out.split())


def test_a_saved_landscape_and_a_sample_are_audited_too(inside, values, tmp_path):
    parts = np.stack([values] * 4, axis=1)
    Landscape(ORDERS, values, quantity="loss", task_values=parts).save(tmp_path / "saved.npz")
    done = inside("audit", "saved.npz")
    assert (done.code, done.err) == (0, "")
    assert "loss of all 24 orders" in done.out
    assert "disparity" in done.out
    np.savez(tmp_path / "some.npz", permutations=ORDERS[::5], values=values[::5])
    done = inside("audit", "some.npz", "higher_is_better=false")
    assert done.code == 0
    assert "value of 5 of the 24 orders" in done.out
    assert "sample" in done.out


def test_json_and_pages(inside, values, tmp_path):
    done = inside("audit", "mine.npz", "--json", "--out", "page.html")
    report = json.loads(done.out)
    assert report["meta"]["seeds"] == [1, 2, 3]
    assert sum(report["meta"]["parts"]["variance"].values()) == pytest.approx(values.mean(axis=1).var())
    keys = [item["key"] for section in report["sections"] for item in section["items"]]
    assert keys == ["spread", "distribution", "orders", "variance", "positions"]
    assert "<svg" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("values")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rows", "5"], "--rows is for tasks"),
        (["--label", "price"], "--label is for tasks"),
        (["quantum=loss"], "no parameter 'quantum'"),
        (["values_key=accuracies"], "no array 'accuracies'; there are 'permutations', 'seeds', 'values'"),
        (["values_layout=seed-by-group"], "expected a row for each of 24 orders"),
        (["order=0,1"], "an order names each of the 4 tasks once"),
        (["--out", "mine.npz"], "unknown ending"),
    ],
)
def test_wrong_words_are_named(inside, words, message):
    done = inside("audit", "mine.npz", *words)
    assert done.code == 2
    assert message in done.err
    assert done.out == ""


def test_files_of_tasks_are_still_read_as_tasks(inside, tmp_path):
    np.savez(tmp_path / "tasks.npz", X=np.eye(3), y=np.ones(3), task=[0, 1, 2])
    assert "Audit of tasks.npz" in inside("audit", "tasks.npz").out
