"""The stages of an audit, each made by hand and given to the next: read, prepared, measured, judged, said, shown."""

from dataclasses import replace

import numpy as np
import pytest

import forgetting as fg
from forgetting.auditing import FoundOrder, Landscape, Measure, OrderSearch, Reading, Verdict
from forgetting.auditing.landscape_page import landscape_report
from forgetting.auditing.measures import MeasuredOrders, measure_orders
from forgetting.auditing.page import report_of
from forgetting.auditing.preparation import Prepared, Recipe, load_tasks, prepare_tasks
from forgetting.auditing.sentences import Said, say
from forgetting.auditing.verdict import judge

#: lines in the plane: the first two are orthogonal, the third is the first one, shifted
X = np.array([[[1.0, 0.0]], [[0.0, 1.0]], [[1.0, 0.0]]])
Y = np.array([[1.0], [1.0], [3.0]])


@pytest.fixture(scope="module")
def audit():
    return fg.audit(fg.families.catastrophic(3.0))


def test_what_was_read_is_audited_with_its_notes():
    reading = Reading(fg.RegressionTasks(X, Y), ("read from a tape",), ("a", "b"))
    assert load_tasks(reading).notes[0] == "read from a tape"
    assert "read from a tape" in fg.audit(reading, passes=2).notes


def test_read_tasks_are_prepared_and_repeats_draw_others():
    tasks = fg.families.gaussian(T=3, d=9, rank=6, seed=0)
    prepared, again = (prepare_tasks(tasks, Recipe(rows=2), order=[2, 0, 1], seed=5, repeat=n) for n in (0, 1))
    assert prepared.problem.ranks.tolist() == [2, 2, 2]
    assert prepared.given.tolist() == [2, 0, 1]
    assert (prepared.seed, again.seed) == (5, 6)
    assert not np.allclose(prepared.problem.task(0)[0], again.problem.task(0)[0])
    same = prepare_tasks(tasks, Recipe(rows=2), seed=6)
    assert np.array_equal(again.problem.task(0)[0], same.problem.task(0)[0])


def test_prepared_tasks_have_the_measures_that_follow_by_hand():
    problem, w0 = fg.RegressionTasks(X, Y), np.zeros(2)
    kaczmarz = fg.schemes.Kaczmarz()
    prepared = Prepared(problem, problem, None, None, kaczmarz, w0, np.array([0, 1, 2]), passes=2, seed=0)
    # the losses before learning are 1/2, 1/2 and 9/2
    assert prepared.start == pytest.approx(5.5 / 3)
    measured = measure_orders(prepared)
    assert measured.exact
    assert len(measured.tried) == 6
    # whichever of tasks 0 and 2 comes last is solved, and the other one has the loss (3 - 1)^2 / 2 = 2
    (loss,) = measured.measures
    assert loss.values == pytest.approx([2 / 3] * 6)
    assert (loss.given, loss.cyclic, loss.mean) == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    # each task alone is fitted, so that all of the loss was forgotten
    assert (measured.given, *measured.random) == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    assert measured.start == prepared.start


@pytest.mark.parametrize(
    ("given", "worst", "random", "effect", "bad"),
    [
        (0.9, 0.9, (0.1, 0.2), "much", True),
        (0.1, 0.9, (0.1, 0.2), "much", False),
        (0.9, 0.9, (0.4, 0.5), "clearly", True),
        (0.9, 0.9, (0.1, 0.4), "clearly", True),  # a random order may forget that much
        (0.11, 0.11, (0.1, 0.1), "little", False),
        (0.005, 0.005, (0.001, 0.001), "little", False),  # nothing, compared with the loss before learning
    ],
)
def test_measured_orders_are_judged_by_their_forgetting(given, worst, random, effect, bad):
    search = OrderSearch("forgetting", FoundOrder((0, 1), 0.1), FoundOrder((1, 0), worst), True, 2, 0)
    orders, ends = np.array([[0, 1], [1, 0]]), [FoundOrder((0, 1), 0.1), FoundOrder((1, 0), worst)]
    loss = Measure("training loss", "", False, given, given, 0.1, worst, random[0], 0.0, (0.1, worst), *ends)
    verdict = judge(MeasuredOrders(search, orders, True, (loss,), start=1.0, given=given, random=random, seed=7))
    assert (verdict.effect, verdict.bad, verdict.seed) == (effect, bad, 7)
    assert (verdict.worst, verdict.best) == ((1, 0), (0, 1))


def test_verdicts_decide_what_is_said(audit):
    bad = Verdict(0, audit.search.worst.order, audit.search.best.order, "much", True, False, True, False, False)
    assert any(line.startswith("Shuffle the tasks") for line in say(replace(audit, verdicts=(bad,))).opening)
    held = replace(bad, shuffle=False)
    assert not any(line.startswith("Shuffle") for line in say(replace(audit, verdicts=(bad, held))).recommendation)


def test_what_is_said_stands_on_the_page_of_the_audit_once(audit):
    sections = dict.fromkeys(say(audit).sections, ()) | {"fit": ("One.", "Another sentence.")}
    said = Said(("One.", "Two."), sections)
    report = report_of(audit, said)
    assert report.summary == ("One.", "Two.")
    text = next(section.text for section in report.sections if section.key == "fit")
    assert "Another sentence." in text
    assert "One." not in text


def test_the_values_of_a_landscape_are_judged_said_and_put_on_a_page():
    # the value is the place of task 2: which task stands where explains all of it
    landscape = Landscape([[2, 0, 1], [2, 1, 0], [0, 2, 1], [1, 2, 0], [0, 1, 2], [1, 0, 2]], [0.0, 0, 1, 1, 2, 2])
    assert landscape.variance.shares == pytest.approx([1.0, 0.0, 0.0])
    first, second = landscape.findings
    assert "best 0 in the order 2 0 1 (one of 2 equal ones)" in first
    assert second.startswith("Which task stands where explains 100 % of the variance over orders")
    report = landscape_report(landscape, "Places of task 2", order=(0, 1, 2))
    assert report.summary[0] == first
    assert report.summary[1].startswith("The order 0 1 2 has 2, rank 5 of 6")
    assert report.item("positions").values[2] == pytest.approx((-1.0, 0.0, 1.0))
