"""Pictures at the widths of a paper: nothing is cut, no legend hides a title or a curve, and the axes have room."""

from __future__ import annotations

from itertools import combinations

import matplotlib
import pytest

import forgetting as fg
from forgetting.figures.style import COLOURS

matplotlib.use("Agg")
import matplotlib.pyplot as plt

TASKS = fg.families.gaussian(T=10, d=30, rank=2, seed=0)
STEPS = [3, 10, 30, 100, 300, 1000]
EXPECTED = fg.expect(TASKS, "with-replacement", STEPS)
PICTURES = {
    "run": (fg.run(TASKS, "with-replacement", k=100), {}),
    "runs": (fg.run_many(TASKS, "with-replacement", k=100, runs=20), {}),
    "bounds at one k": (fg.bounds.evaluate(TASKS, "with-replacement", k=100), {}),
    "bounds": (fg.bounds.evaluate(TASKS, "with-replacement", k=STEPS), {}),
    "expected": (EXPECTED, {}),
    "expected with the smallest bounds": (EXPECTED, {"bounds": True}),
    "expected with bounds": (EXPECTED, {"bounds": True, "quantity": "loss"}),
}
SIZES = {
    "default": (None, 1), "a column": ((3.4, 2.3), 1), "two panels in a column": ((3.4, 2.0), 2),
    "the page": ((7.0, 3.0), 1), "two panels": ((7.0, 2.6), 2), "two low panels": ((7.0, 2.0), 2),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def drawn(name, size, layout="constrained"):
    """The figure after its layout, its axes, and the boxes of all words, in inches."""
    result, options = PICTURES[name]
    inches, panels = SIZES[size]
    if inches is None:
        several = [result.plot(**options)]
    else:
        several = plt.subplots(1, panels, figsize=inches, layout=layout, squeeze=False)[1][0]
        for axes in several:
            result.plot(ax=axes, **options)
    figure = several[0].figure
    figure.canvas.draw()
    return figure, several


def words_of(axes):
    """Everything with letters that belongs to axes."""
    low, high = axes.get_ylim()
    marks = [label for label in axes.get_yticklabels() if min(low, high) <= label.get_position()[1] <= max(low, high)]
    parts = [axes.title, axes.xaxis.label, axes.yaxis.label, *marks, *axes.get_legend().get_texts()]
    return [part for part in parts if part.get_text()]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PICTURES)
def test_nothing_is_cut_and_nothing_hides_anything(name, size):
    figure, several = drawn(name, size)
    page = figure.bbox
    for axes in several:
        for part in words_of(axes):
            box = part.get_window_extent()
            assert page.x0 <= box.x0 < box.x1 <= page.x1, part
            assert page.y0 <= box.y0 < box.y1 <= page.y1, part
        legend, plot = axes.get_legend().get_window_extent(), axes.get_window_extent()
        assert not legend.overlaps(axes.title.get_window_extent())
        assert not legend.overlaps(axes.xaxis.label.get_window_extent())
        assert legend.y1 < plot.y0  # below the axes, it hides no curve
        assert plot.height >= 0.27 * page.height  # no slit
        assert plot.width >= 0.4 * page.width / len(several)
        for one, other in combinations(words_of(axes), 2):
            assert not one.get_window_extent().overlaps(other.get_window_extent()), (one, other)
    for one, other in combinations(several, 2):  # of neighbours
        assert not one.get_tightbbox().overlaps(other.get_tightbbox())


def test_a_figure_without_a_layout_gets_one():
    figure, (axes,) = drawn("expected with bounds", "a column", layout=None)
    assert all(figure.bbox.y0 <= part.get_window_extent().y0 for part in words_of(axes))


@pytest.mark.parametrize("size", SIZES)
def test_each_family_of_bounds_has_one_name_and_a_colour_of_its_own(size):
    _, (axes, *_) = drawn("expected with bounds", size)
    lines = {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}
    colours = [line.get_color() for line in lines.values() if line.get_color() in COLOURS]
    assert len(set(colours)) == len(colours) == (2 if size in ("two panels in a column", "two low panels") else 4)
    dashes = {line._unscaled_dash_pattern[1] for line in lines.values() if line.get_color() in COLOURS}
    assert {None} < dashes
    assert len(dashes) == len(colours)  # for eyes that see few colours
    (others,) = [int(name.split()[0]) for name in lines if name.endswith(" other bounds")]
    series = PICTURES["expected with bounds"][0].figure(bounds=True, quantity="loss").series
    assert others + len(lines) - 1 == len(series)  # none is left out


def test_bars_that_do_not_fit_are_counted_and_the_smallest_stays():
    rows = PICTURES["bounds at one k"][0]
    every, few = rows.plot(), drawn("bounds at one k", "a column")[1][0]
    assert len(every.get_yticklabels()) == len(rows.figure().names)
    shown = len(few.get_yticklabels())
    assert few.get_xlabel() == f"loss at most ({shown} of {len(rows.figure().names)})"
    filled = [line for line in few.get_lines() if line.get_markerfacecolor() == COLOURS[0]]
    assert [float(line.get_xdata()[0]) for line in filled] == [rows.tightest("loss").value]
