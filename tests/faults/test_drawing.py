"""No figure fails, whatever its numbers are: constant, missing, tiny, huge or none at all."""

from __future__ import annotations

import csv
import io
import math
import re
import runpy
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import get_args
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import forgetting as fg
from effort import rounds
from forgetting.cli import run_app
from forgetting.figures.axes import clipped
from forgetting.figures.drawing import draw, pictures
from forgetting.figures.items import Band, Curves, Item, Line, Matrix, Paths, Regions, Role, Series, Stage, Table
from forgetting.figures.style import drawing
from forgetting.figures.svg import figure_drawing
from forgetting.figures.text_formats import table_text, to_csv
from forgetting.report import Report, Section, load_report
from forgetting.report.document import to_latex_file
from forgetting.report.html import to_html

ROOT = Path(__file__).parents[2]
AWKWARD = (
    0.0, -0.0, 1.0, -1.0, 0.125, math.nextafter(0.125, 1), 0.125 * (1 + 1e-9), 0.125001, 1e-300, 5e-324, 1e-310, 1e300,
    -1e300, 1.7976931348623157e308, -1.7976931348623157e308, 1e15, 1e15 + 1, 3.0, math.nan, math.inf, -math.inf, None,
)  # fmt: skip
WORDS = ("", "a", "_hidden", "$x", "$\\frac{$", "<b>&\"'", "naïve λ 中", "two\nlines", "x" * 300, "\x1b[31m", "\udc80")

WORDY = ("aria-label", "class", "data-key")

numbers = st.sampled_from(AWKWARD) | st.floats()
words = st.sampled_from(WORDS)
points = st.tuples(numbers, numbers)


@st.composite
def series(draw: st.DrawFn) -> Series:
    size = draw(st.integers(0, 4))
    column = st.tuples(*[numbers] * size)
    banded = draw(st.booleans())
    return Series(
        draw(words), draw(column), draw(column), draw(column) if banded else None, draw(column) if banded else None,
        role=draw(st.sampled_from(get_args(Role))), group=draw(st.integers(-1, 9)),
        label=draw(words), minor=draw(st.booleans()),
    )  # fmt: skip


@st.composite
def curves(draw: st.DrawFn) -> Curves:
    several = tuple(draw(st.lists(series(), max_size=8)))
    return Curves(
        "c", draw(words), "", draw(words), draw(words), several, draw(st.booleans()), draw(st.booleans()), draw(numbers)
    )


@st.composite
def regions(draw: st.DrawFn) -> Regions:
    names = draw(st.sampled_from([("trivial", "theorem"), WORDS]))
    bands = st.builds(Band, numbers, numbers, numbers, st.sampled_from(names))
    return Regions("r", draw(words), "", "k", "d", tuple(draw(st.lists(bands, max_size=4))), names)


@st.composite
def paths(draw: st.DrawFn) -> Paths:
    lines = st.builds(Line, words, points, points)
    stages = st.builds(
        lambda name, visited: Stage(name, tuple(visited), (0,) * (len(visited) - 1)),
        words,
        st.lists(points, min_size=1, max_size=4),
    )
    several = tuple(draw(st.lists(stages, max_size=3)))
    return Paths("p", draw(words), "", tuple(draw(st.lists(lines, max_size=9))), draw(points), several)


@st.composite
def matrices(draw: st.DrawFn) -> Matrix:
    high, wide = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    names = st.tuples(*[words] * high), st.tuples(*[words] * wide)
    rows = st.tuples(*[st.tuples(*[numbers] * wide)] * high)
    return Matrix("m", draw(words), "", draw(words), draw(words), draw(names[0]), draw(names[1]), draw(rows))


@st.composite
def tables(draw: st.DrawFn) -> Table:
    wide = draw(st.integers(0, 3))
    cells = numbers | words | st.booleans() | st.integers(-(10**400), 10**400)
    rows = tuple(draw(st.lists(st.tuples(*[cells] * wide), max_size=3)))
    return Table("t", draw(words), draw(words), draw(st.tuples(*[words] * wide)), rows, (draw(words),))


figures = curves() | regions() | paths() | matrices()
CONSTANT = Curves("c", "", "", "k", "loss", (Series("a", (1.0, 2.0), (0.125, math.nextafter(0.125, 1))),), xlog=False)


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def coordinates(page: str) -> list[str]:
    """The attributes of all drawings but those that hold words."""
    found = []
    for text in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        for element in ElementTree.fromstring(text).iter():
            found += [
                value for name, value in element.attrib.items() if name not in ("aria-label", "class", "data-key")
            ]
    return found


@given(figures)
@example(CONSTANT)
@settings(max_examples=rounds(12, 40))
def test_a_drawing_of_any_numbers_has_finite_coordinates(item: Item):
    for value in coordinates(figure_drawing(item).svg):
        assert not re.search(r"nan|inf|None", value), value


@given(figures | tables())
@example(Curves("c", "", "", "k", "y", (Series("a", (1.0,), (1.7976931348623157e308,)),)))
@example(Regions("r", "", "", "k", "d", (Band(1.0, 1.0, 1.0, "a"), Band(1e300, 1.0, 1.0, "a")), ("a",)))
@settings(max_examples=rounds(12, 40))
def test_pages_tables_and_sheets_of_any_numbers_are_written(item: Item):
    report = Report("Title", (Section("s", "Section", "", (item,)),), {"seed": 0}, ("one",))
    for text in (to_html(report), to_latex_file(report), to_csv(item)):
        text.encode("utf-8")
    assert list(csv.reader(io.StringIO(to_csv(item))))
    again = Report.from_json(report.to_json())
    assert to_html(again)
    assert Report.from_json(again.to_json()) == again


@pytest.mark.parametrize("kind", [curves, regions, paths, matrices])
@given(data=st.data())
@settings(max_examples=rounds(2, 6))
def test_matplotlib_draws_any_numbers_without_a_warning(kind, data):
    assert [len(content) > 0 for content in pictures(data.draw(kind())).values()] == [True, True]


@pytest.mark.parametrize(
    "item",
    [
        CONSTANT,
        Curves("c", "$", "$", "_", "_", (Series("_a$", AWKWARD, AWKWARD[::-1], AWKWARD, AWKWARD[::-1]),), False, False),
        Regions("r", "", "", "k", "d", tuple(Band(y, y, y, "a") for y in AWKWARD), ("a",)),
        Paths("p", "", "", (), (None, 1e300), (Stage("s", tuple((a, a) for a in AWKWARD), (0,) * (len(AWKWARD) - 1)),)),
        Paths("p", "", "", tuple(Line("$", (a, 0.0), (a, a)) for a in AWKWARD), (0.0, 1e-300), ()),
        Matrix("m", "", "", "", "", ("a",), ("$",) * len(AWKWARD), (AWKWARD,)),
        Matrix("m", "", "", "", "", (), (), ()),
    ],
    ids=lambda item: item.kind,
)
def test_both_renderers_draw_all_awkward_numbers_at_once(item):
    assert all(pictures(item).values())
    for value in coordinates(figure_drawing(item).svg):
        assert not re.search(r"nan|inf|None", value), value


@given(tables(), st.integers(1, 100))
@settings(max_examples=rounds(60, 200))
def test_a_table_of_anything_is_printed_at_any_width(table: Table, width: int):
    assert table.title in table_text(table, width)


FINITE = tuple(value for value in AWKWARD if value is not None and math.isfinite(value))


@given(
    st.lists(st.sampled_from(FINITE) | st.floats(allow_nan=False, allow_infinity=False), max_size=4),
    st.booleans(),
    st.booleans(),
)
@example([0.125, math.nextafter(0.125, 1)], False, False)
@example([0.125, math.nextafter(0.125, 1)], True, False)
@example([0.125, 0.125 * (1 + 1e-9)], False, False)
@example([0.125, 0.125 * (1 + 1e-9)], True, False)
@example([1.0, 1.0001], True, False)
@example([1e-300, 1e300], True, False)
@example([5e-324, 1.5e-323], True, False)
@example([0.21, 0.22], False, False)
@example([2.0, 3.0], False, True)
@settings(max_examples=rounds(20, 60))
def test_an_axis_has_a_beginning_an_end_and_a_few_different_marks(values, log, whole):
    values = [float(round(clipped(value))) for value in values] if whole else values
    shown = [value for value in values if value > 0 or not log]
    item = Curves("c", "", "", "k", "y", (Series("a", tuple(values), (1.0,) * len(values)),), xlog=log)
    with drawing() as studio:
        figure = draw(item, studio)
        figure.canvas.draw()
        axes = figure.axes[0]
        low, high = axes.get_xlim()
        assert low < high
        slack = 1e-9 * (high - low)
        marks = [tick for tick in axes.xaxis.get_major_ticks() if low - slack <= tick.get_loc() <= high + slack]
        labels = [tick.label1.get_text() for tick in marks]
    assert len(marks) <= 9
    assert len(set(labels)) == len(labels)
    assert all(low <= clipped(value, log) <= high for value in shown)
    if whole and not log:
        assert all(float(label).is_integer() for label in labels)
    elif not item.whole:
        assert len(marks) >= 2


@pytest.mark.parametrize("angle", [0.025, 0.1, 0.35, 0.65, 0.95, 1.225])
def test_the_audit_of_two_lines_is_drawn_at_any_angle(angle):
    page = fg.audit(fg.families.two_lines(angle)).to_html()
    assert page.count("<svg") == 2  # all orders, and forgetting along a pass; one pair of tasks makes no picture


def test_the_pictures_of_the_readme_are_what_its_words_say(tmp_path):
    pictures_of = SimpleNamespace(**runpy.run_path(str(ROOT / "docs" / "_tools" / "pictures.py")))
    pictures_of.main([str(tmp_path)])
    made = {path.name for path in tmp_path.iterdir()}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert made == set(re.findall(r"docs/images/([\w-]+\.png)", readme))
    shares = [f"{share:.2g} %" for share in pictures_of.forgotten_by_schedule().values()]
    assert re.findall(r"\d[\d.]* %", re.search(r'overview.png" alt="([^"]*)"', readme)[1]) == shares
    values = pictures_of.forgotten_by_order()
    low, high = values[values < 6], values[values > 6]
    words = (
        f"{len(values)} orders: {len(low)} orders forget between {low.min():.1f} and {low.max():.1f}, and {len(high)} "
    )
    assert f"{words}between {high.min():.1f} and {high.max():.1f}, the given order among them" in readme
    assert values[0] in high
    left = pictures_of.residuals()
    assert left["rows in order"][24] > 0.01
    assert left["random rows"][20] < 1e-8 < left["random rows"][19]
    assert left["fg.solve"][12] < 1e-8 < left["fg.solve"][11]


def test_very_many_names_and_runs_are_still_a_picture():
    many = Curves("c", "", "", "k", "y", tuple(Series(f"curve {i}", (1.0, 2.0), (1.0, i + 1.0)) for i in range(300)))
    runs = Paths("p", "", "", (), (0.0, 0.0), tuple(Stage(str(i), ((0.0, 1.0),), ()) for i in range(30)))
    names = Regions("r", "", "", "k", "d", (), tuple("x" * 300 + str(i) for i in range(300)))
    with drawing() as studio:
        for item in (many, runs, names):
            figure = draw(item, studio)
            shown = [text for axes in figure.axes for text in axes.texts]
            shown += [text for legend in figure.legends for text in legend.texts]
            assert len(shown) <= 60
            assert max(len(text.get_text()) for text in shown) <= 80
            assert figure.get_size_inches()[0] <= 60


@pytest.mark.parametrize("line", ["audit two_lines theta=0.5 --out p.html", "expect two_lines theta=0.5 --out p.html"])
def test_a_figure_that_fails_does_not_take_the_result_with_it(line, tmp_path, monkeypatch, capsys):
    def fails(item: Item) -> str:
        raise RuntimeError("no picture today")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("forgetting.report.html.figure_drawing", fails)
    assert run_app(line.split()) == 2
    shown = capsys.readouterr()
    assert "forgetting" in shown.out
    assert "p.html: a figure could not be drawn (RuntimeError: no picture today)" in shown.err
    assert "the result is in p.html.json" in shown.err
    assert load_report(tmp_path / "p.html.json").title
    assert [path.name for path in tmp_path.iterdir()] == ["p.html.json"]
