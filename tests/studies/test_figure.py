"""The picture of a table: which columns, medians and bands, and axes."""

import statistics

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import ForgettingError
from forgetting.figures.drawing import pictures
from forgetting.studies.figure import table_figure


def rows(ks=(1, 10, 100), hues=("a", "b"), repeats=5, shift=0.0):
    return [
        {"T": 3, "k": k, "name": hue, "repeat": n, "seed": n, "method": "m", "loss": (n**2 + 1) / k + shift, "other": n}
        for k in ks
        for hue in hues
        for n in range(repeats)
    ]


def test_a_curve_is_the_median_and_its_band_the_middle_ninety_percent():
    figure = table_figure("title", rows(hues=("a",), repeats=21))
    assert (figure.xlabel, figure.ylabel, figure.title) == ("k", "loss", "title")
    (curve,) = figure.series
    values = [n**2 + 1 for n in range(21)]
    assert curve.y == pytest.approx([statistics.median(values) / k for k in (1, 10, 100)], rel=1e-14)
    low, high = np.quantile(values, [0.05, 0.95])
    assert curve.low == pytest.approx([low, low / 10, low / 100], rel=1e-14)
    assert curve.high == pytest.approx([high, high / 10, high / 100], rel=1e-14)
    assert "median of 21 rows" in figure.caption


def test_one_row_each_is_a_plain_line():
    figure = table_figure("t", rows(hues=("a",), repeats=1))
    assert figure.series[0].low is None
    assert figure.series[0].y == (1.0, 0.1, 0.01)
    assert "one row each" in figure.caption


def test_each_hue_is_a_curve_of_its_own_rows_and_numbers_are_sorted():
    figure = table_figure("t", rows(), y="other", hue="name")
    assert [curve.name for curve in figure.series] == ["name = a", "name = b"]
    figure = table_figure("t", rows(), hue="repeat")
    assert [curve.name for curve in figure.series] == [f"repeat = {n}" for n in range(5)]
    assert figure.series[2].y == (5.0, 0.5, 0.05)
    assert len({curve.group for curve in figure.series}) == 5


def test_axes_are_logarithmic_where_values_are_positive_and_span_a_decade():
    assert (table_figure("t", rows()).xlog, table_figure("t", rows()).ylog) == (True, True)
    near = table_figure("t", rows(ks=(5, 6), repeats=1))
    assert (near.xlog, near.ylog) == (False, False)
    assert not table_figure("t", rows(shift=-0.5)).ylog
    zero = rows(repeats=1)
    zero[0]["loss"] = zero[1]["loss"] = 0.0  # at the first k, as forgetting is
    assert table_figure("t", [*zero, *rows(ks=(1000,), repeats=1)]).ylog


def test_texts_across_are_dots_with_the_median_of_each():
    figure = table_figure("t", rows(ks=(1,)), x="name")
    assert figure.kind == "bars"
    assert figure.names == ("a", "b")
    assert figure.values == (5.0, 5.0)
    both = table_figure("t", rows(ks=(1, 10), repeats=1), x="name", hue="k")
    assert both.names == ("a, k = 1", "a, k = 10", "b, k = 1", "b, k = 10")
    assert both.values == (1.0, 0.1, 1.0, 0.1)


def test_without_k_the_first_number_that_varies_is_across():
    table = [{"family": "f", "d": 3, "T": T, "repeat": 0, "seed": T, "value": T**2} for T in (2, 3)]
    figure = table_figure("t", table)
    assert (figure.xlabel, figure.ylabel) == ("T", "value")
    texts = [{"family": f, "d": 3, "seed": 0, "value": 1.0} for f in "ab"]
    assert table_figure("t", texts).names == ("a", "b")


def test_rows_without_a_value_are_left_out_and_counted():
    table = rows(hues=("a",), repeats=2)
    table[0]["loss"] = None
    figure = table_figure("t", table)
    assert figure.series[0].y[0] == 2.0
    assert "1 rows without k or loss are left out" in figure.caption
    assert "1 to 2 rows" in figure.caption


def test_nothing_to_draw_is_none_unless_columns_were_named():
    assert table_figure("t", []) is None
    assert table_figure("t", [{"a": 1, "seed": 0, "word": "w"}]) is None
    with pytest.raises(ForgettingError, match="name one of"):
        table_figure("t", [{"a": 1, "seed": 0, "word": "w"}], x="a")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"x": "K"}, "x: the table has no column 'K'; did you mean 'k'?"),
        ({"y": "los"}, "y: the table has no column 'los'; did you mean 'loss'?"),
        ({"hue": "no"}, "hue: the table has no column 'no'"),
        ({"y": "method"}, "y: the column 'method' has values that are not numbers"),
        ({"hue": "repeat"}, "hue: repeat has 8 values, and at most 7 curves"),
    ],
)
def test_columns_that_cannot_be_drawn_are_named(options, words):
    with pytest.raises(ForgettingError) as caught:
        table_figure("t", rows(repeats=8), **options)
    assert words in str(caught.value)


def test_values_that_are_not_finite_do_not_stop_the_picture():
    table = rows(hues=("a",), repeats=3)
    table[0]["loss"], table[4]["loss"] = float("inf"), float("nan")
    figure = table_figure("t", table)
    assert pictures(figure, [".png"])[".png"].startswith(b"\x89PNG")


def test_a_study_draws_itself():
    study = fg.Study.grid(family="gaussian", T=[3, 5], d=6, rank=1, k=[1, 10, 100], store=None).run(progress=False)
    figure = study.figure(y="loss", hue="T")
    exact = {row["k"]: row["loss"] for row in study.rows() if row["T"] == 5}
    assert dict(zip(figure.series[1].x, figure.series[1].y, strict=True)) == exact
    axes = study.plot(x="k", y="loss", hue="T")
    assert axes.get_xlabel() == "k"
    assert len(axes.get_lines()) == 2
