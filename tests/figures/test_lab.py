"""Interactive figures of projections: which pictures have them, whatever their numbers are."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace

import pytest

from forgetting.errors import InvalidInputError
from forgetting.figures.items import Line, Stage
from forgetting.figures.lab import Lab, lab_html, playable
from forgetting.report import Report, Section
from forgetting.report.html import to_html
from forgetting.report.sections.demonstrations import three_lines

LINES = three_lines()


def test_the_page_has_the_tasks_the_start_and_the_orders_of_the_picture():
    data = json.loads(html.unescape(re.search(r'data-lab="([^"]*)"', lab_html(LINES))[1]))
    assert data["names"] == [line.name for line in LINES.lines]
    assert data["orders"] == {stage.name: list(stage.order) for stage in LINES.stages}
    assert data["start"] == list(LINES.stages[0].points[0])
    assert data["solution"] == list(LINES.solution)


@pytest.mark.parametrize("start", [(1e300, 0.0), (None, 1.0), (float("inf"), 0.0), (1e7, 1e7)])
def test_starts_that_no_plane_shows_leave_the_static_picture(start):
    points = (start, *LINES.stages[0].points[1:])
    wild = replace(LINES, stages=(replace(LINES.stages[0], points=points),))
    assert not playable(wild)
    page = to_html(Report("Title", (Section("s", "S", "", (wild,)),), {}))
    assert 'class="lab"' not in page
    assert 'class="plots still"' in page
    with pytest.raises(InvalidInputError, match="a lab needs lines that meet in one point"):
        lab_html(wild)


@pytest.mark.parametrize("start", [(1.0, 0.6), (1e6, -1e6), (1.0 + 1e-12, 0.6)])
def test_any_other_start_can_be_drawn(start):
    near = replace(LINES, stages=(Stage("s", (start,), ()),))
    assert playable(near)
    assert lab_html(near).count("<svg") == 2


def test_lines_that_miss_the_solution_or_a_task_that_is_not_there_are_not_run():
    aside = Line("task 0", (5.0, 5.0), (1.0, 0.0))
    assert not playable(replace(LINES, lines=(aside, *LINES.lines[1:])))
    assert not playable(replace(LINES, lines=LINES.lines[:1]))  # the orders name three tasks
    assert not playable(replace(LINES, stages=()))


def test_a_lab_in_a_page_of_its_own_brings_its_script_and_asks_for_nothing():
    page = Lab(LINES)._repr_html_()
    assert page.count("<script>") == 1
    assert "://" not in page.replace("http://www.w3.org/2000/svg", "")
