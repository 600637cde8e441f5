"""The sentence that opens a report: each finding on tasks of which it is true."""

from __future__ import annotations

import numpy as np
import pytest

import forgetting as fg
from forgetting.figures.items import Table
from forgetting.report import Settings, build_report, default_problem
from forgetting.report.html import to_html
from forgetting.report.takeaway import FACTOR, SHARE


def rows(X: list[list[float]], y: list[float]) -> fg.RegressionTasks:
    """Tasks of one row each."""
    return fg.RegressionTasks([[row] for row in X], [[label] for label in y])


#: tasks of one or two dimensions (whose four numbers a test computes again by `expect`), and what is to be learned
CASES = {
    "Random order, not repetition, is what protects these tasks": rows([[1.0], [-1.0], [-0.5]], [1.0, 0.0, 1.0]),
    "Repetition, not random order, is what protects these tasks": fg.families.back_and_forth(4, 0.5),
    "Random order and repetition both protect these tasks, and either of them is enough": fg.families.catastrophic(3.0),
    "Random order and repetition protect these tasks only together": rows([[0.5, -2.5], [0.0, -0.5]], [-2.0, -0.5]),
    "Repetition is what protects these tasks, and their order makes little difference": default_problem(),
    "Neither the order of these tasks nor their repetition makes much difference": rows(
        [[1.0], [1.0], [1.0]], [0.0, 1.0, 2.0]
    ),
    "Neither a random order nor repetition protects these tasks": rows(
        [[1.0, -0.5], [1.5, -1.5], [0.5, 0.0], [0.5, -1.0]], [0.5, 1.5, -1.0, -0.5]
    ),
    "Repetition makes these tasks forget more, and their order makes little difference": rows(
        [[-1.0, -0.5, 2.0], [-1.0, 1.0, 0.5], [0.5, 0.0, 0.0], [0.5, 0.0, -0.5], [0.0, -0.5, -0.5]],
        [-1.0, -1.5, 0.0, -0.5, 1.0],
    ),
    "A random order makes these tasks forget more than the given one": rows([[0.5], [-1.5]], [0.5, 0.0]),
    "Next to nothing is forgotten": rows([[0.5, -0.5], [1.5, 1.0]], [0.0, 2.5]),
    "Nothing is forgotten": fg.families.orthogonal(4),
}


@pytest.mark.parametrize("finding", CASES)
def test_each_finding_is_said_of_tasks_of_which_it_is_true(finding):
    tasks = CASES[finding]
    T, start = tasks.num_tasks, tasks.loss(np.zeros(tasks.dim))
    given, given_often, random, random_often = (
        float(fg.expect(tasks, ordering, k, quantities="forgetting").forgetting)
        for ordering, k in (
            (fg.orderings.Explicit(range(T)), T),
            (fg.orderings.Cyclic(), 3 * T),
            (fg.orderings.WithoutReplacement(), T),
            (fg.orderings.Reshuffled(), 3 * T),
        )
    )
    values = [given, random, given_often, random_often]
    report = build_report(Settings(tasks, k=3 * T, points=3, runs=4, sections=("rates",)))
    said = report.summary[0]
    assert said.startswith(f"{finding}: ")
    if finding.endswith("is forgotten"):
        assert max(values) <= (SHARE if finding.startswith("Next") else 1e-12) * start
        return
    least = SHARE * start
    assert max(values) > least
    a, b, c, d = (max(value, least) for value in values)
    alike = max(a, b) <= FACTOR * min(a, b) and max(c, d) <= FACTOR * min(c, d)
    helps = {"random": FACTOR * b < a, "repetition": FACTOR * c < a, "both": FACTOR * d < a}
    assert alike == ("order" in finding and "difference" in finding)
    if not alike:
        assert helps["random"] == ("Random order, not" in finding or "either of" in finding)
        assert helps["repetition"] == ("Repetition, not" in finding or "either of" in finding)
        assert helps["both"] or "protect" not in finding or "Neither" in finding
    words = said.partition(": ")[2]
    for value in values:
        assert f"{value if value > 1e-12 * start else 0.0:.2g}" in words


def test_the_first_screen_says_what_was_learned_and_counts_steps_and_passes():
    report = build_report(Settings(default_problem(), points=3, runs=4, sections=("rates", "reductions")))
    assert report.title == "How 12 random tasks are forgotten, in random and in cyclic order"
    assert report.subtitle == "gaussian(T=12, d=20, rank=2, condition=3)"
    assert report.summary[2].startswith("After 996 steps (83 passes over 12 tasks), expected forgetting is 3.2e-06 if ")
    assert "; after 12 steps (one pass over 12 tasks), 0.0035 in a random order" in report.summary[2]
    assert report.findings == ()
    assert "iterates agree to" in report.sections[1].text
    page = to_html(report)
    assert page.index(report.title) < page.index(report.subtitle) < page.index("Repetition is what protects")
    table = report.item("ways")
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows] == ["the given order", "random orders"]


def test_values_of_simulated_orders_are_said_to_be_simulated():
    balls = [fg.Ball([2.0, 0.0], 1.5), fg.Ball([0.0, 2.0], 1.5), fg.Ball([1.0, 1.0], 1.5)]
    sets = fg.ConvexSets([fg.Halfspace([1.0, 0.0], 1.0), fg.Halfspace([1.0, 0.5], 1.0), *balls])
    report = build_report(Settings(sets, "sets", k=6, points=3, runs=4, sections=("rates",)))
    assert report.summary[0].endswith("(random orders: simulated, 1024 runs).")
    assert report.title == "How 5 tasks are forgotten, in random and in cyclic order"


def test_the_title_names_no_order_that_is_neither_random_nor_cyclic():
    tasks = fg.families.two_lines(0.5)
    greedy = Settings(tasks, "two lines", orderings=("greedy-distance",))
    assert greedy.title == "How 2 tasks are forgotten, in several orders"
    assert Settings(tasks, "two lines", orderings=("cyclic",)).title == "How 2 tasks are forgotten, in cyclic order"


def test_a_cycle_is_seen_for_three_passes_at_least():
    for T in (2, 7, 12, 400, 999, 5000):
        assert Settings(fg.families.repeated(fg.families.orthogonal(1), T)).k >= 3 * T
    report = build_report(Settings(fg.families.two_lines(0.5), k=6, points=3, eps=(2.0,), sections=("repetition",)))
    figure = report.item("randomness-repetition")
    cycle, once = figure.series[2:]
    T = once.x[-1]
    assert cycle.x[-1] == 3 * T
    shown = [x for x, y in zip(cycle.x, cycle.y, strict=True) if y is not None and y > figure.floor]
    assert sum(x > T for x in shown) == sum(x > T for x in cycle.x) >= 3  # the curve goes on where the order ends
