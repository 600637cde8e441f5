"""The paper's three tables, in symbols and in numbers, through every renderer."""

import math
from html.parser import HTMLParser

import pytest

import forgetting as fg
from forgetting.bounds import Setting, get, table
from forgetting.errors import InvalidInputError
from forgetting.figures.html_tables import symbols

NAMES = ("regression", "classification", "sgd")
NUMBERS = {
    "regression": {"d": 26, "T": 20, "rank_avg": 1, "rank_max": 2},
    "classification": {"T": 10, "dist_sq": 4, "problem": "classification"},
    "sgd": {"eta": 0.25, "beta": 2, "sigma": 2, "G": 3, "dist_sq": 2},
}


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.stack, self.cells = [], []

    def handle_starttag(self, tag, attrs):
        if tag != "br":
            self.stack.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.stack):
            self.cells[-1] += data


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("evaluated", [False, True])
def test_every_renderer_shows_every_cell(name, evaluated):
    shown = table(name, k=400, **NUMBERS[name]) if evaluated else table(name)
    text, markdown, latex, html = str(shown), shown.to_markdown(), shown.to_latex(), shown.to_html()
    assert max(len(line) for line in text.splitlines()) <= 80
    assert not any(line != line.rstrip() for line in text.splitlines())
    reader = Reader()
    reader.feed(html)
    assert reader.stack == []
    pipes = [line.replace(r"\|", "").count("|") for line in markdown.splitlines() if line.startswith("|")]
    assert set(pipes) == {len(shown.columns) + 1}
    assert latex.count("{") == latex.count("}")
    assert latex.count(r" \\") == len(shown.rows) + 1
    for row in shown.rows:
        for cell in row:
            assert symbols(cell.text) in html
            assert cell.latex in latex
    for note in shown.footnotes:
        assert note in "".join(reader.cells)
        assert note.split()[-1] in text
    for line in shown.numbers() or ():
        for number in filter(None, line):
            assert number in text
            assert number in markdown


def test_table_1_has_the_cells_and_the_footnote_of_the_paper():
    shown = table("regression")
    assert shown.rows[2][2].terms == ("1/k^(1/4)", "sqrt(d-r)/k", "sqrt(T r)/k")
    assert shown.rows[2][3].terms == ("1/T^(1/4)", "(d-r)/T")
    assert shown.rows[0][4].terms == ("T^2/sqrt(k)", "T^2 (d-r_max)/k")
    assert [cell.mark for cell in shown.rows[3]] == ["", "", "(*)", "(*)", ""]
    assert "cloned floor(T/2) times" in shown.footnotes[0]
    assert shown.numbers() is None


def test_table_3_says_who_covers_the_last_iterate_and_the_greedy_step():
    answers = {row[1].text: (row[3].text, row[4].text) for row in table("sgd").rows}
    assert answers == {
        "Shamir and Zhang 2013": ("yes", "no"),
        "Nesterov 1998": ("yes", "yes"),
        "Lan 2012": ("no", "no"),
        "Liu and Zhou 2024": ("yes", "no"),
        "Srebro et al. 2010": ("no", "no"),
        "Bach and Moulines 2013": ("no", "yes"),
        "Varre et al. 2021": ("yes", "no"),
        "Evron et al. 2026": ("yes", "yes"),
        "here": ("yes", "yes"),
    }


def test_numbers_of_table_1():
    # d - r = 25, S = 1, T = 20, k = 400
    numbers = table("regression", k=400, **NUMBERS["regression"]).numbers()
    assert numbers[0][2] == "= 0.281"  # 4.5 * 25/400
    assert numbers[0][4] == "= 6"  # 400/2 * min(1/20, 24/800)
    assert numbers[1][4] == "~20"  # 8000/400
    assert numbers[2][2] == "= 0.0169"  # min(5/399^(1/4), 3 * sqrt(20) / (2 * 398))
    assert numbers[2][3] == "= 1.37"  # at k = T = 20: min(7/19^(1/4), 26/19)
    assert numbers[3][2].startswith("= 0.00045")  # about 1/(800 e) = 0.00046
    assert numbers[3][3] == f"= {(1 + math.sqrt(10 / 11)) / 8 * 10**10 / 11**11:.3g}"  # at k = T = 20
    assert numbers[3][3] == "= 0.00856"  # 23 c^2 - c - 20 = 0: (1-c^2)(1+c)/8 c^20; 1/(40 e) = 0.0092
    assert numbers[3][4] == f"= {1 / (48 * math.e):.3g}"
    assert numbers[0][3] == numbers[0][0] == ""
    assert numbers[4][2] == "= 0.00262"  # (sqrt(u(399)) + sqrt(1/800))^2 / 2, u(399) = 0.0013738
    assert numbers[4][3] == f"= {(1 + math.sqrt(27 / 16)) ** 2 / 40:.3g}"  # at k = T = 20


def test_numbers_outside_a_range_are_not_invented():
    numbers = table("regression", k=401, **NUMBERS["regression"]).numbers()
    assert numbers[0][4] == "n/a"  # 401 is no multiple of 20
    assert table("sgd", k=400, eta=1.0, beta=1.0).numbers()[4][2] == "n/a"  # needs eta < 1/beta
    assert table("sgd", k=400, eta=1.0, beta=1.0).numbers()[0][2] == "n/a"  # G is not known


def test_numbers_of_tables_2_and_3():
    numbers = table("classification", k=160, **NUMBERS["classification"]).numbers()
    assert numbers[0][1] == f"= {4 / math.e:.3g}"  # S = 4, 4 T S = 160
    assert numbers[1][2] == f"= {28 * 10**-0.25:.3g}"  # one pass of T = 10
    assert numbers[2][1] == f"= {2 * (math.sqrt(2 / math.sqrt(160)) + 1 / math.sqrt(160)) ** 2:.3g}"
    numbers = table("sgd", k=16, **NUMBERS["sgd"]).numbers()
    assert numbers[1][2] == "~0.333"  # 2/(0.25 * 16) / 1.5
    assert numbers[7][2] == f"= {4 * math.e / (1.5 * 2**2.25):.3g}"
    assert numbers[8][2] == f"= {2 * 2.5 * math.pi**2 / (16 * 17 * 0.75 * math.acos(0.25) ** 2):.3g}"


def test_a_setting_serves_as_well_as_keywords():
    numbers = NUMBERS["regression"]
    assert table("regression", Setting(**numbers), k=400).numbers() == table("regression", k=400, **numbers).numbers()


def test_a_table_takes_tasks_and_the_number_of_the_table():
    tasks = fg.families.gaussian(T=7, d=23, rank=2, seed=1)
    for name, number in (("regression", "Table 1"), ("sgd", " table  3")):
        at = table(number, tasks, k=50)
        assert at.numbers() == table(name, Setting.of(tasks), k=50).numbers()
        assert r"\Vert w_0-w_\star\Vert^2=" in at.to_latex()  # the number before the full stop of a sentence


def test_every_cell_points_at_bounds_that_exist():
    for name in NAMES:
        for row in table(name).rows:
            for cell in row:
                for key in cell.keys:
                    assert get(key).key == key


def test_a_narrow_terminal_is_respected():
    assert max(len(line) for line in table("sgd").to_text(width=60).splitlines()) <= 60


@pytest.mark.parametrize("call", [
    lambda: table("kernel"), lambda: table("sgd", eta=1.0), lambda: table("sgd", Setting(eta=1.0)),
    lambda: table("sgd", Setting(eta=1.0), k=3, beta=1.0), lambda: table("sgd", k=0, eta=1.0),
])  # fmt: skip
def test_questions_that_make_no_sense_are_refused(call):
    with pytest.raises(InvalidInputError):
        call()


def test_numbers_come_with_what_they_were_computed_from_and_why_some_are_missing():
    shown = table("regression", k=401, **NUMBERS["regression"])
    assert shown.numbers()[0][4] == "n/a"
    assert "At k = 401, T = 20, d = " in "\n".join(shown.footnotes)
    assert "n/a, Evron et al. 2022, Upper: k = 401, but the bound covers k >= 1, a multiple of T." in shown.footnotes
    steep = table("sgd", k=400, eta=1.0, beta=-1.0, G=1.0)
    missing = [note for note in steep.footnotes if note.startswith("n/a")]
    assert sum(note.count("; ") + 1 for note in missing) == str(steep.numbers()).count("n/a")
    assert any("Nesterov 1998; " in note and ": beta must be positive, got -1" in note for note in missing)
    assert not any(note.startswith("n/a") for note in table("classification", k=40, T=20).footnotes)
