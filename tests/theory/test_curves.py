"""Bounds as curves: their values are those of the registry, and a reader can tell what is guaranteed."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.figures.items import Curves
from forgetting.figures.style import COLOURS, GRAY, PLAIN, curve_look
from forgetting.theory.curves import bound_curves, bound_role, tightest_curve

matplotlib.use("Agg")
STEPS = [3, 12, 60, 300, 3000]


@pytest.fixture(scope="module")
def tasks():
    return fg.families.gaussian(T=12, d=30, rank=2, seed=0)


@pytest.fixture(scope="module")
def rows(tasks):
    return fg.bounds.evaluate(tasks, "with-replacement", STEPS)


@pytest.mark.parametrize("quantity", ["loss", "forgetting"])
def test_curves_have_the_values_of_the_bounds_that_apply(rows, quantity):
    curves = {curve.name: curve for curve in bound_curves(rows, quantity)}
    for key in {row.bound.key for row in rows.applicable(quantity)}:
        applying = [row for row in rows.applicable(quantity) if row.bound.key == key]
        assert curves.pop(key).y == tuple(row.value for row in applying)
    assert not curves


def test_the_smallest_guarantee_is_below_every_other(rows):
    best = tightest_curve(rows, "loss")
    smallest = [min(row.value for row in rows.at(k).applicable("loss") if row.bound.kind == "upper") for k in STEPS]
    assert best.x == tuple(map(float, STEPS))
    assert best.y == pytest.approx(smallest, rel=1e-12)
    assert tightest_curve(rows, "happiness") is None


def test_what_is_no_guarantee_says_so_and_can_be_left_out(rows):
    every, sure = bound_curves(rows, "forgetting"), bound_curves(rows, "forgetting", guarantees=True)
    assert {curve.role for curve in sure} == {"bound", "trivial"}
    others = [curve for curve in every if curve.role not in ("bound", "trivial")]
    assert {curve.role for curve in others} >= {"worst"}
    words = {"worst": "worst case over all tasks", "rate": "slope only"}
    assert all(words[curve.role] in curve.label for curve in others)
    lower = {bound.key for bound in fg.bounds.all_bounds() if bound.kind != "upper"}
    assert {bound_role(fg.bounds.get(key)) for key in lower} == {"worst", "rate", "reference"}


def test_guarantees_that_say_nothing_are_minor(rows):
    for curve in bound_curves(rows, "loss"):
        values = [row for row in rows.applicable("loss") if row.bound.key == curve.name]
        if curve.role == "bound" and all(row.vacuous for row in values):
            assert curve.minor


def test_a_statement_looks_the_same_in_every_figure(tasks):
    looks: dict[str, set] = {}
    for steps in (STEPS, [40, 300, 3000]):
        for quantity in ("loss", "forgetting"):
            curves = bound_curves(fg.bounds.evaluate(tasks, "with-replacement", steps), quantity)
            figure = Curves("f", "", "", "k", quantity, curves)
            shown = [curve for curve in curves if not curve.minor]
            for curve in shown:
                looks.setdefault(fg.bounds.get(curve.name).label, set()).add(curve_look(figure, curve).colour)
            guarantees = [curve_look(figure, curve)[:2] for curve in shown if curve.role == "bound"]
            assert len(set(guarantees)) == len(guarantees)  # colour and dashes together tell them apart
    assert all(len(colours) == 1 for colours in looks.values())


def test_only_guarantees_have_colours(rows):
    curves = bound_curves(rows, "forgetting")
    figure = Curves("f", "", "", "k", "forgetting", curves)
    for curve in curves:
        look = curve_look(figure, curve)
        assert (look.colour in COLOURS) == (curve.role == "bound" and not curve.minor)
        assert look.dashes != "-" or curve.minor
    assert len({look.dashes for look in PLAIN.values()} | {GRAY}) == len(PLAIN) + 1


def test_legends_show_the_dashes_and_the_colours_of_their_curves(tasks):
    e = fg.expect(tasks, "with-replacement", STEPS, quantities="loss")
    axes = e.plot(bounds=True)
    legend = axes.get_legend()
    drawn = {line.get_label(): line for line in axes.get_lines()}
    for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True):
        line = drawn[text.get_text()]
        assert handle.get_color() == line.get_color()
        assert handle._unscaled_dash_pattern == line._unscaled_dash_pattern
        assert handle.get_marker() == line.get_marker()


def test_an_expectation_is_drawn_beside_its_guarantees(tasks):
    e = fg.expect(tasks, "with-replacement", STEPS)
    plain, both, one = e.figure(), e.figure(bounds=True), e.figure(quantity="loss", bounds=True)
    assert [curve.name for curve in plain.series] == ["loss", "forgetting"]
    guarantees = both.series[2:]
    assert [curve.role for curve in guarantees] == ["guarantee", "guarantee"]
    for value, guarantee in zip(both.series, guarantees, strict=False):
        assert curve_look(both, guarantee).colour == curve_look(both, value).colour
        assert np.all(np.array(value.y) <= np.array(guarantee.y))
    assert {curve.role for curve in one.series} == {"exact", "bound", "trivial"}
    import matplotlib.pyplot as plt

    _, axes = plt.subplots()
    assert e.plot(ax=axes, bounds=True) is axes
    assert axes.get_legend() is not None


def test_what_has_no_bounds_is_refused_or_drawn_without_them(tasks):
    difference = fg.compare(tasks, "with-replacement", "cyclic", [12, 24])
    with pytest.raises(NotSupportedError, match="no bounds on a difference"):
        difference.plot(bounds=True)
    e = fg.expect(tasks, "with-replacement", [1, 2])
    with pytest.raises(InvalidInputError, match="bounds"):
        e.plot(bounds="yes")
    with pytest.raises(InvalidInputError, match="losses was not asked for"):
        e.plot(quantity="losses")
    with pytest.raises(InvalidInputError, match="no option 'bonds'; there are quantity, bounds"):
        e.plot(bonds=True)
    sets = fg.ConvexSets([fg.Ball([0.0, 0.0], 1.0), fg.Ball([1.0, 0.0], 1.0)])
    drawn = fg.expect(sets, "cyclic", [2, 4], quantities="loss").figure(bounds=True)
    assert drawn.series[0].name == "loss"


def test_bounds_are_shown_tightest_first(rows, tasks):
    table = fg.bounds.evaluate(tasks, "with-replacement", 300).to_table(8)
    says = [row[table.columns.index("says")] for row in table.rows]
    quantities = [row[0] for row in table.rows]
    assert quantities[:2] == ["loss", "forgetting"]
    assert all(word.startswith("tightest") for word in says[: len(set(quantities))])
