"""Reports as data: they reload, say what is missing, and render without loss."""

from __future__ import annotations

import copy
import re
from xml.etree import ElementTree

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import ForgettingError, InvalidInputError, ProblemFileError
from forgetting.figures.drawing import draw, pictures
from forgetting.figures.items import Band, Curves, Line, Matrix, Paths, Regions, Series, Stage, Table, cell
from forgetting.figures.style import PAGE, drawing
from forgetting.figures.svg import figure_drawing
from forgetting.figures.text_formats import table_text, to_csv, to_latex
from forgetting.report import (
    Report,
    Section,
    Settings,
    build_report,
    default_problem,
    load_report,
    section,
    section_makers,
    write_report,
)
from forgetting.report import settings as report_settings
from forgetting.report.html import to_html
from forgetting.report.provenance import problem_hash
from forgetting.report.sections.equal_schemes import reductions_section
from forgetting.report.sections.guarantees import guarantees_section
from forgetting.report.sections.values_and_bounds import rates_section

CURVES = Curves(
    "c", "Curves", "<b> & \"quotes\"", "k", "loss",
    (
        Series("exact", (1.0, 10.0), (1.0, 0.1)),
        Series("runs", (1.0, 10.0), (1.0, None), (0.5, 0.05), (2.0, 0.2), role="simulated"),
        Series("bound </script>", (1.0, 10.0), (2.0, 0.0), role="bound", minor=True),
    ),
)  # fmt: skip
REGIONS = Regions(
    "r", "Map", "", "k", "d", (Band(2.0, 1, 5, "trivial"), Band(2.0, 6, 9, "theorem")), ("trivial", "theorem")
)
PATHS = Paths(
    "p", "Path", "", (Line("a", (0.0, 0.0), (1.0, 1.0)),), (0.0, 0.0), (Stage("s", ((1.0, 0.0), (0.5, 0.5)), (0,)),)
)
TABLE = Table("t", "Table", "", ("k", "value"), ((1, 0.5), (2, None), (3, float("nan"))), ("a note",))
EVERY = (CURVES, REGIONS, PATHS, TABLE)


def whole() -> Report:
    return Report(
        "Title", (Section("s", "Section", "Text.", EVERY),), {"seed": 0, "versions": {"numpy": "2"}}, ("one",)
    )


def test_tables_and_figures_of_results_can_be_sections_of_a_report():
    result = fg.expect(fg.families.two_lines(0.5), fg.orderings.WithReplacement(), [1, 2, 4])
    table = result.to_table()
    report = Report("Title", (Section("s", "Section", "Text.", (table, result.figure())),), {})
    assert Report.from_json(report.to_json()).sections[0].items[0].rows == table.rows


def test_a_report_survives_json_except_for_nan():
    again = Report.from_json(whole().to_json())
    assert again.item("c") == CURVES
    assert again.item("r") == REGIONS
    assert again.item("p") == PATHS
    assert again.item("t").rows == ((1, 0.5), (2, None), (3, None))
    assert Report.from_json(again.to_json()) == again


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format": "forgetting/report/1"}',
        '{"format": "forgetting/report/1", "sections": 3}',
        "nonsense",
    ],
)
def test_what_is_no_report_is_refused(tmp_path, text):
    (tmp_path / "report.json").write_text(text)
    with pytest.raises(ProblemFileError):
        load_report(tmp_path / "report.json")


def test_the_page_escapes_what_it_is_given():
    page = to_html(whole())
    assert "<b> &" not in page
    assert page.count("</script>") == 2
    assert r"bound \u003c/script>" in page


@pytest.mark.parametrize("item", [CURVES, REGIONS, PATHS], ids=lambda item: item.kind)
def test_every_kind_of_figure_is_drawn_everywhere(item):
    assert figure_drawing(item).svg.startswith("<svg")
    assert "nan" not in figure_drawing(item).svg
    assert sorted(ending for ending, content in pictures(item).items() if content) == [".pdf", ".png"]
    assert len(to_csv(item).splitlines()) > 1


def test_pictures_depend_on_the_data_alone():
    assert pictures(CURVES) == pictures(CURVES)


@pytest.mark.parametrize(
    "item", [Curves("e", "", "", "k", "y", ()), Curves("e", "", "", "k", "y", (Series("a", (1.0,), (0.0,)),))]
)
def test_a_figure_without_points_is_still_a_figure(item):
    assert figure_drawing(item).svg.startswith("<svg")
    assert all(pictures(item).values())


def test_numbers_in_csv_are_not_rounded():
    value = 1 / 3
    table = Table("t", "", "", ("value",), ((value,),))
    assert float(to_csv(table).splitlines()[1]) == value
    assert cell(value) == "0.3333"


def test_latex_escapes():
    assert r"50\% \& k\_1" in to_latex(Table("t", "50% & k_1", "", ("a",), (("b",),)))


def test_wide_letters_take_two_columns_and_are_never_cut():
    text = table_text(Table("t", "Title", "", ("task", "x"), (("数字の課題", 1), ("e\u0301te\u0301", 2))))
    assert text.splitlines()[2:] == ["-" * 10 + "  -", "数字の課題  1", "e\u0301te\u0301" + " " * 9 + "2"]


def test_a_word_is_broken_only_if_it_is_longer_than_a_line():
    key = "thm:random_convergence_rate/loss"
    narrow, wide = (table_text(Table("t", "T", "", ("a",), ((f"one two {key}",),)), width) for width in (30, 35))
    assert wide.splitlines()[-2:] == ["one two", key]
    assert [line.split()[-1] for line in narrow.splitlines()[-2:]] == ["thm:random_convergence_rate/", "loss"]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_table_keeps_to_its_width(width):
    words = "a long sentence of many words about thm:random_convergence_rate/forgetting/dimension"
    text = table_text(Table("t", "Title", "", ("label", "statement", "x"), ((words, words, 1.0),)), width)
    assert max(map(len, text.splitlines())) <= width
    assert "".join(words.split()) not in text
    assert sorted("".join(text.split()).replace("-", "")) == sorted(
        "".join(f"Titlelabelstatementx{words}{words}1".split()).replace("-", "")
    )


def marks(item: Curves, axis: str = "y") -> list[str]:
    """The labels of the ticks that are drawn."""
    with drawing(PAGE) as studio:
        figure = draw(item, studio, PAGE)
        figure.canvas.draw()
        axes = figure.axes[0]
        low, high = sorted(axes.get_ylim() if axis == "y" else axes.get_xlim())
        side = axes.yaxis if axis == "y" else axes.xaxis
        slack = 1e-9 * (high - low)
        shown = [t.label1.get_text() for t in side.get_major_ticks() if low - slack <= t.get_loc() <= high + slack]
    return shown


def test_ticks_are_few():
    for high in (10.0, 1e3, 1e8, 1e40, 1e300):
        assert 2 <= len(marks(Curves("f", "", "", "k", "y", (Series("a", (1.0, 2.0), (1.0, high)),)))) <= 9


def test_what_counts_has_whole_numbers_at_its_ticks():
    few = Curves("f", "", "", "k", "y", (Series("a", (1.0, 2.0, 3.0), (1.0, 2.0, 3.0)),), xlog=False)
    assert marks(few, "x") == ["1", "2", "3"]
    assert len(marks(few)) >= 2


def test_the_page_names_its_curves_in_a_legend_that_can_be_pressed_and_holds_their_values():
    made = figure_drawing(CURVES)
    root = ElementTree.fromstring(made.svg)
    groups = [one for one in root.iter("g") if "data-series" in one.attrib]
    keys = {(one.attrib["data-series"], text.text) for one in groups for text in one.iter("text")}
    assert keys == {("0", "exact"), ("1", "runs"), ("minor", "1 other bound")}
    drawn = {one.attrib["data-series"] for one in groups if one.attrib["class"] == "series"}
    assert drawn == {"0", "1", "minor"}
    points = {one["series"]: one for one in made.hover["points"]}
    assert (points["0"]["x"], points["0"]["y"]) == ([1.0, 10.0], [1.0, 0.1])
    assert (points["1"]["x"], points["1"]["y"]) == ([1.0], [1.0])
    path = next(one for one in groups if one.attrib == {"class": "series", "data-series": "0"}).find("path")
    ends = [float(number) for number in re.findall(r"-?[\d.]+", path.attrib["d"])]
    assert ends == pytest.approx([number for point in points["0"]["at"] for number in point], abs=0.1)


def test_a_cell_says_its_value_where_it_is_drawn():
    made = figure_drawing(REGIONS)
    assert [cell[4] for cell in made.hover["cells"]] == ["trivial: 1 to 5 at 2", "theorem: 6 to 9 at 2"]
    left, right = made.hover["cells"]
    assert left[0] < left[2] == right[0] < right[2]
    matrix = figure_drawing(Matrix("m", "", "", "", "", ("a", "b"), ("c",), ((0.5,), (-1.0,))))
    assert [cell[4] for cell in matrix.hover["cells"]] == ["a, c: 0.5", "b, c: -1"]
    assert matrix.hover["cells"][0][3] == matrix.hover["cells"][1][1]


def test_colours_and_fonts_are_those_of_the_page_and_ids_are_unique():
    page = to_html(whole())
    drawings = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(drawings) == 5  # two of them are the axes of the lab
    assert not re.search(r"#[0-9a-f]{6}|font-family", "".join(drawings))
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(set(ids)) == len(ids)
    used = set(re.findall(r'(?:href="#|url\(#)([^")]*)', "".join(drawings)))
    assert used
    assert used <= set(ids)
    assert to_html(whole()) == page


def test_the_hash_knows_the_numbers_and_the_order():
    one, two = fg.families.two_lines(0.5), fg.families.two_lines(0.5)
    assert problem_hash(one) == problem_hash(two)
    pairs = [one.task(m) for m in (1, 0)]
    assert problem_hash(fg.RegressionTasks([X for X, _ in pairs], [y for _, y in pairs])) != problem_hash(one)


def test_settings_are_checked():
    tasks = fg.families.two_lines(0.5)
    for wrong in ({"k": 1}, {"runs": 0}, {"orderings": ()}, {"eps": ()}, {"points": 1}):
        with pytest.raises(InvalidInputError):
            Settings(tasks, **wrong)


def test_tasks_that_are_not_realizable_are_reported_with_the_bounds_on_noise():
    clash = fg.RegressionTasks([[[1.0, 0.0]], [[1.0, 0.0]], [[0.0, 1.0]]], [[1.0], [2.0], [0.0]])
    settings = Settings(clash, "clash", k=10, points=4, runs=20, hunt=1, eps=(3.0,))
    try:
        section = rates_section(settings)
    except ForgettingError as error:
        pytest.fail(f"a report says what is missing instead of ending: {error}")
    table = next(item for item in section.items if item.key == "last-step")
    assert any("projections with noise" in str(cell) for row in table.rows for cell in row)
    assert guarantees_section(settings).items


LONG_KINDS = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("affine sets", "kernel")]


@pytest.mark.parametrize("kind", ["classification", "sets", "one task", *LONG_KINDS])
def test_every_kind_of_problem_has_a_report(kind):
    problem = {
        "classification": lambda: fg.families.separable(T=3, d=4, n=4, margin=0.3),
        "sets": lambda: fg.ConvexSets([fg.Halfspace([1.0, 0.0], 1.0), fg.Ball([2.0, 0.0], 1.5)]),
        "affine sets": lambda: fg.ConvexSets.from_affine(fg.families.gaussian(T=3, d=5, rank=1)),
        "kernel": lambda: fg.KernelTasks(np.diag([1.0, 2.0, 3.0]), [1.0, 0.0, 2.0], [0, 1, 2]),
        "one task": lambda: fg.families.gaussian(T=1, d=3, rank=2),
    }[kind]()
    settings = Settings(problem, kind, k=6, points=4, runs=10, hunt=1, eps=(6.0, 3.0))
    sections = (rates_section(settings), guarantees_section(settings), reductions_section(settings))
    report = Report(kind, sections, {"sha256": problem_hash(problem)})
    assert [item.key for item in report.items()][:2] == ["forgetting", "loss"]
    assert bool(sections[-1].missing) == (kind in ("classification", "sets", "kernel"))  # without data of linear tasks
    assert to_html(report)
    assert Report.from_json(report.to_json()).title == kind


def test_a_whole_report_knows_how_it_was_made():
    settings = Settings(fg.families.two_lines(0.7), "two lines", k=8, points=3, runs=20, hunt=1, eps=(6.0,))
    steps = []
    report = build_report(settings, lambda *step: steps.append(step))
    assert steps[0] == ("forgetting and loss", 0, 7)
    assert steps[-1] == ("done", 7, 7)
    assert report.meta["settings"]["runs"] == 20
    assert set(report.meta["seconds"]) == {
        "forgetting and loss", "randomness and repetition", "guarantees", "reductions", "projections", "classification",
        "claims", "total",
    }  # fmt: skip
    assert len(report.summary) == 4
    assert report.summary[1].startswith("2 tasks in 2 dimensions are learned one after another; forgetting is ")
    assert report.findings == ()  # what is about the paper stands in its section
    assert report.sections[-1].text.startswith("Three printed statements of the paper are [false as printed]")
    assert report.lead == "forgetting"
    page = to_html(report)
    assert page.index("2 tasks in 2 dimensions") < page.index('id="fig-forgetting"') < page.index('<section id="rates"')
    assert page.count('id="fig-forgetting"') == 1
    assert '<a href="#tab-false">false as printed</a>' in page
    assert 'id="tab-false"' in page


def test_what_is_about_the_problem_comes_before_the_demonstrations():
    settings = Settings(fg.families.two_lines(0.7), k=8, points=3, runs=20, hunt=1, eps=(6.0,))
    parts = {made.key: made.part for made in build_report(settings).sections}
    assert list(parts) == ["rates", "guarantees", "reductions", "repetition", "plane", "classification", "claims"]
    assert [key for key, part in parts.items() if not part] == ["rates", "guarantees", "reductions"]
    assert len(set(parts.values())) == 2


@pytest.mark.slow
def test_several_processes_make_and_draw_the_same_report(tmp_path):
    settings = Settings(fg.families.two_lines(0.7), k=8, points=3, runs=20, sections=("rates", "plane"))
    done = []
    one, two = build_report(settings), build_report(settings, lambda *step: done.append(step), processes=2)
    assert {step[0] for step in done} == {"forgetting and loss", "projections", "done"}
    assert (one.sections, one.summary, one.findings, one.lead) == (two.sections, two.summary, two.findings, two.lead)
    for name, processes in (("one", 1), ("two", 2)):
        write_report(one, tmp_path / name, processes=processes)
    first, second = ({path.name: path for path in (tmp_path / name / "figures").iterdir()} for name in ("one", "two"))
    assert len(first) == 2 * sum(item.kind != "table" for item in one.items())
    assert set(first) == set(second)
    pictures_of_both = [(first[name].read_bytes(), second[name].read_bytes()) for name in first if ".png" in name]
    assert all(drawn == again for drawn, again in pictures_of_both)


def test_k_is_a_multiple_of_the_number_of_tasks_unless_given():
    for T in (1, 2, 7, 12, 999, 5000):
        assert Settings(fg.families.repeated(fg.families.orthogonal(1), T)).k % T == 0
    table = guarantees_section(Settings(default_problem(), points=3)).items[0]
    assert "n/a" not in "".join(cell for row in table.rows for cell in row)


def test_maps_are_at_the_number_of_tasks_of_the_problem():
    section = guarantees_section(Settings(fg.families.gaussian(T=30, d=50, rank=2, seed=0), points=5))
    maps = [item for item in section.items if item.kind == "regions"]
    assert maps
    assert all("T = 30 tasks of average rank 2" in item.caption for item in maps)
    assert [item.mark for item in maps if item.key.endswith("loss-with-replacement")] == [(990.0, 50.0)]
    colours = {}
    for item in maps:  # a statement has the same colour in every map
        for name, group in zip(item.names, item.groups, strict=True):
            assert colours.setdefault(name, group) == group
    assert colours.pop("the trivial bound") == -1
    assert -1 not in colours.values()


def test_a_section_from_outside_is_part_of_every_report(monkeypatch):
    section_makers()  # finds the sections of the package, which register themselves once
    monkeypatch.setattr(report_settings, "_registry", copy.deepcopy(report_settings._registry))

    @section("sizes", "counting", summary=lambda made: [f"counted: {made.text}"])
    def sizes(settings, progress):
        progress("rows", 0, 1)
        table = Table("sizes-table", "Sizes", "", ("T",), ((settings.problem.num_tasks,),))
        return Section("sizes", "Sizes of the tasks", f"{settings.problem.num_tasks} tasks", (table,))

    assert list(section_makers())[3] == "sizes"  # the last one before the demonstrations
    problem, steps = fg.families.two_lines(0.7), []
    report = build_report(Settings(problem, k=8, sections=("sizes", "plane")), lambda *step: steps.append(step))
    assert [made.key for made in report.sections] == ["sizes", "plane"]
    assert ("counting: rows", 0, 2) in steps
    assert report.findings == ("counted: 2 tasks",)
    assert "<h2>Sizes of the tasks</h2>" in to_html(report)
    with pytest.raises(InvalidInputError, match="there is already a section 'rates'"):
        section("rates")(sizes)


def test_only_the_sections_that_were_chosen_are_made():
    with pytest.raises(InvalidInputError, match="no section 'rats'; did you mean 'rates'"):
        Settings(fg.families.two_lines(0.7), sections=("rats",))


def test_a_report_may_be_named_by_a_string(tmp_path):
    with pytest.raises(ProblemFileError, match="no such file"):
        load_report(str(tmp_path / "missing.json"))
    with pytest.raises(ProblemFileError, match=r"report.json: no such file"):
        load_report(str(tmp_path))


def test_the_opening_names_the_guarantees_on_the_loss_where_forgetting_has_none():
    apart = fg.RegressionTasks([[[1.0]], [[2.0]]], [[0.0], [1.0]])
    report = build_report(Settings(apart, k=4, points=3, runs=10, sections=("rates",)))
    text = to_html(report)
    assert "The best guarantees on the loss allow at most" in text
    assert "No guarantee is known" not in text
    assert "less what it was just after each was learned" in text


def test_dimensions_that_are_not_known_are_left_out_of_the_text():
    kernel = fg.KernelTasks(np.eye(2), [1.0, 2.0], [0, 1])
    assert "None" not in guarantees_section(Settings(kernel, k=4, points=3)).text
