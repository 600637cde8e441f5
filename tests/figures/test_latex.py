"""LaTeX that a paper can use: balanced, escaped, formulas and numbers as mathematics, numbers aligned."""

import math
import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

import forgetting as fg
from forgetting.errors import InvalidInputError
from forgetting.figures.items import Table
from forgetting.figures.text_formats import escape_latex, latex_number, to_latex

RANDOM = fg.bounds.evaluate(fg.families.gaussian(T=20, d=100, rank=5, seed=0), fg.orderings.WithReplacement(), k=10**6)
SETTING = {"k": 10**6, "d": 10, "T": 2, "rank_avg": 1, "rank_max": 1}
MIXED = Table(
    "mixed",
    "Numbers & 50%",
    "k_1 <= 2",
    ("k", "loss", "words", "interval", "ok"),
    (
        (1, 0.5, "a_b^2", "[1e-06, 2.5e-3]", True),
        (1000, 3.1234e-6, "POCS ⇒ SGD", "", False),
        (10, None, r"\input{x} $1", None, None),
        (7, -12345678.0, "~ {1e5}", "-1e-300", True),
        (8, math.inf, "x" * 60, "1.5", True),
        (9, math.nan, "", "", True),
    ),
    notes=("a note: 1e-9 | 2",),
)
TABLES = {
    "loss": RANDOM.to_latex("loss"),
    "stated": RANDOM.to_latex("forgetting", rows="stated"),
    "all": fg.bounds.evaluate(fg.families.two_lines(0.4), fg.orderings.Cyclic(), k=4).to_latex(),
    "every form": RANDOM.to_latex("regret", rows="all"),
    "three steps": fg.bounds.evaluate(
        fg.families.gaussian(T=10, d=30, rank=2), "with-replacement", k=[10, 100, 300]
    ).to_latex("loss"),
    "mixed": to_latex(MIXED),
    "regression": fg.bounds.table("regression").to_latex(),
    "classification": fg.bounds.table("classification").to_latex(),
    "sgd": fg.bounds.table("sgd").to_latex(),
    "numbers": fg.bounds.table("regression", **SETTING).to_latex(),
}


def check(text):
    """The structure of a table environment: braces, mathematics and environments in pairs, as many cells as columns."""
    bare = re.sub(r"\\[\\{}$&%#_^]", "", text.replace(r"\\", ""))  # without escaped characters and ends of rows
    assert bare.count("$") % 2 == 0
    depth = 0
    for letter in bare:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        assert depth >= 0
    assert depth == 0
    for piece in bare.split("$")[1::2]:
        assert piece.count("{") == piece.count("}")
        assert piece.count(r"\left") == piece.count(r"\right")
    opened = re.findall(r"\\begin\{(\w+\*?)\}", text)
    assert opened in (["table", "tabular"], ["table*", "tabular"])
    assert re.findall(r"\\end\{(\w+\*?)\}", text) == opened[::-1]
    (spec,) = re.findall(r"\\begin\{tabular\}\{(.*)\}\n", text)
    columns = len(spec.replace("@{}", ""))
    body = text.split(r"\toprule")[1].split(r"\bottomrule")[0]
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    for row in rows:
        spans = sum(int(number) - 1 for number in re.findall(r"\\multicolumn\{(\d)\}", row))
        assert len(re.findall(r"(?<!\\)&", row)) + spans == columns - 1, row
    assert not re.search(r"\de[-+]?\d", text)  # no number as a computer prints it
    assert not re.search(r"sqrt\(|\^\(|<=|>=", text)  # no formula as a computer prints it
    return rows


@pytest.mark.parametrize("name", [name for name in TABLES if name != "mixed"])
def test_tables_of_formulas_are_mathematics(name):
    rows = check(TABLES[name])
    assert rows
    assert r"\label{tab:" in TABLES[name]
    assert r"\midrule" in TABLES[name]


def test_words_are_escaped_and_numbers_set():
    text = TABLES["mixed"].replace("<=", "")
    check(text.replace(r"\textless{}=", ""))
    assert r"\caption{Numbers \& 50\%. k\_1 \textless{}= 2}" in text
    assert r"a\_b\^{}2" in text
    assert r"POCS $\Rightarrow$ SGD" in text
    assert r"\textbackslash{}input\{x\} \$1" in text
    assert r"[$1\times10^{-6}$, $2.5\times10^{-3}$]" in text
    assert r"\textasciitilde{} \{$1\times10^{5}$\}" in text
    assert r"$-1\times10^{-300}$" in text
    assert r"a note: $1\times10^{-9}$ \textbar{} 2" in text


def test_numbers_of_a_column_are_aligned_at_their_points():
    text = TABLES["mixed"]
    assert r"\begin{tabular}{rr@{}llll}" in text
    assert re.search(rf"\\parbox\[t\]{{0\.\d\d\\textwidth}}{{\\raggedright {'x' * 60}\\strut}}", text)
    assert r"k & \multicolumn{2}{c}{loss} &" in text
    assert r"$1$ & $0$ & $.500$ &" in text
    assert r"$1000$ & $3$ & $.12\times10^{-6}$ &" in text
    assert r"$10$ &  & & " in text or r"$10$ &  & &" in text
    assert r"$7$ & $-1$ & $.23\times10^{7}$ &" in text
    assert r"$8$ & $\infty$ & &" in text


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (3.12e-6, r"3.12\times10^{-6}"),
        (0.001, "0.00100"),
        (0.000999, r"9.99\times10^{-4}"),
        (0.9999, "1.00"),
        (99.96, "100"),
        (1234.0, "1234"),
        (9999.6, r"1.00\times10^{4}"),
        (0.0, "0.00"),
        (-0.5, "-0.500"),
        (12, "12"),
        (10**7, "10000000"),
        (math.nan, ""),
        (-math.inf, r"-\infty"),
    ],
)
def test_known_numbers(value, words):
    assert latex_number(value) == words


@given(st.floats(-1e300, 1e300))
def test_numbers_keep_three_digits(value):
    text = latex_number(value)
    mantissa, _, power = text.partition(r"\times10^{")
    back = float(mantissa) * 10.0 ** int(power.rstrip("}") or 0)
    assert back == pytest.approx(value, rel=6e-3, abs=1e-300)


@given(st.text())
def test_no_words_are_commands(words):
    text = escape_latex(words)
    known = {"textbackslash", "textasciitilde", "textbar", "textless", "textgreater", "ldots", "times", "wedge",
             "Rightarrow", "to", "le", "ge", "approx", "infty"}  # fmt: skip
    assert set(re.findall(r"\\([A-Za-z]+)", text)) <= known
    assert text.replace(r"\{", "").replace(r"\}", "").count("{") == text.replace(r"\{", "").replace(r"\}", "").count(
        "}"
    )


def test_the_formulas_of_all_bounds_are_balanced():
    for bound in fg.bounds.all_bounds():
        assert bound.latex, bound.key
        assert bound.latex.count("{") == bound.latex.count("}")
        assert bound.latex.count(r"\left") == bound.latex.count(r"\right")
        assert "$" not in bound.latex
        assert not re.search(r"sqrt\(|\*\*|(?<!\\)\bmin\(", bound.latex), bound.key


def test_stated_rows_leave_out_what_proofs_give():
    assert "from the proof" in RANDOM.to_latex("forgetting", rows="all")
    assert "from the proof" not in TABLES["stated"]
    with pytest.raises(InvalidInputError, match="rows must be 'tightest', 'stated' or 'all', got 'few'"):
        RANDOM.to_latex("loss", rows="few")
    with pytest.raises(InvalidInputError, match=r"a quantity must be one of loss, .*, got 'joy'"):
        RANDOM.to_latex("joy")
    with pytest.raises(InvalidInputError, match="no bound on 'averaged_loss' applies, so that there is no table"):
        RANDOM.to_latex("averaged_loss")


def test_several_steps_are_columns():
    rows = fg.bounds.evaluate(fg.families.two_lines(0.3), fg.orderings.WithReplacement(), k=[1, 1000])
    text = rows.to_latex("loss", rows="stated")
    check(text)
    assert r"Bound\strut} & \multicolumn{2}{c}{$k=1$} & \multicolumn{2}{c}{$k=1000$} \\" in text
    line = next(line for line in text.splitlines() if "Theorem 8" in line)
    assert line.endswith(r"$\strut} &  & & $1$ & $.84\times10^{-4}$ \\")  # it does not cover k = 1


def test_by_default_each_statement_has_one_row_that_says_something():
    shown = RANDOM.to_latex("forgetting").count("\\\\\n")
    assert shown < RANDOM.to_latex("forgetting", rows="all").count("\\\\\n") == len(RANDOM.applicable("forgetting")) + 1
    best = RANDOM.tightest("forgetting")
    assert latex_number(best.value).partition(".")[2] in RANDOM.to_latex("forgetting")


def test_footnotes_are_mathematics_and_each_is_there_once():
    text = fg.bounds.table("Table 1", fg.families.gaussian(T=3, d=9), k=2).to_latex()
    notes = [line for line in text.splitlines() if line.startswith(r"\par")]
    assert len(set(notes)) == len(notes)
    assert any(r"covers $k\ge T^2$" in note for note in notes)
    assert sum("is for even" in note for note in notes) == 1
    assert r"$\eta$ must be below" in fg.bounds.table("Table 3", fg.families.gaussian(T=3, d=9), k=2).to_latex()


def test_a_table_that_was_saved_is_set_alike(tmp_path):
    table = fg.bounds.table("regression", **SETTING)
    table.save(tmp_path / "table.npz")
    assert fg.bounds.Table.load(tmp_path / "table.npz").to_latex() == table.to_latex() == TABLES["numbers"]


def test_commands_of_others_in_a_cell_are_words():
    evil = fg.bounds.Cell((r"\input{x}",), r"\input{x}")
    assert evil.math == r"\textbackslash{}input\{x\}"
    text = fg.bounds.Table("t", "c", ("a",), ((evil,),), ()).to_latex()
    assert r"\input" not in text


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_accepts_all_of_it(tmp_path):
    head = "\\documentclass{article}\n\\usepackage{amsmath,amssymb,booktabs}\n\\begin{document}\n"
    body = "\n\\clearpage\n".join(TABLES.values())
    (tmp_path / "all.tex").write_text(f"{head}{body}\n\\end{{document}}\n", encoding="utf-8")
    call = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:]
    fitting = [table for name, table in TABLES.items() if name != "mixed"]  # which has a word that no line holds
    head = head.replace("{article}", "[twocolumn]{article}")
    body = "\nText.\n\\clearpage\n".join(fitting)
    (tmp_path / "all.tex").write_text(f"{head}{body}\n\\end{{document}}\n", encoding="utf-8")
    said = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=120).stdout
    assert not re.findall(r"Overfull.*|.*too large.*", said)
