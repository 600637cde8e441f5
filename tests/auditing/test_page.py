"""The page of an audit opens with one figure and at most four sentences; pictures that show nothing are left out."""

import json
import re
from html import escape

import numpy as np
import pytest

import forgetting as fg
from forgetting.auditing import Audit, digits
from forgetting.auditing.audit_figures import _shows_something
from forgetting.cli import run_app
from forgetting.errors import InvalidInputError, ProblemFileError
from forgetting.figures.drawing import pictures
from forgetting.figures.items import Panel, Spread
from forgetting.figures.svg import figure_drawing
from forgetting.figures.text_formats import to_csv
from forgetting.report import write_report


@pytest.fixture(scope="module")
def audits():
    return {
        "split": fg.audit(digits("split")),
        "catastrophic": fg.audit(fg.families.catastrophic(3.0)),
        "drawn": fg.audit(digits("split"), rows=11, repeats=3),
        "one": fg.audit(fg.families.gaussian(T=1, d=3, rank=1, seed=0)),
    }


@pytest.mark.parametrize("name", ["split", "catastrophic", "drawn", "one"])
def test_the_page_opens_with_one_figure_and_at_most_four_sentences(audits, name):
    audit = audits[name]
    page = audit.to_html()
    lead = page[page.index('<div class="lead">') : page.index("<nav>")]
    assert lead.count("<figure") == 1
    assert 'id="fig-orders-tried"' in lead
    assert page.count('id="fig-orders-tried"') == 1
    sentences = re.findall(r"<p>(.*?)</p>", lead)
    assert 1 <= len(sentences) <= 4
    assert len(sentences) == len(audit.opening)
    for sentence in audit.opening:  # each is one sentence
        assert sentence.endswith(".")
        assert not re.search(r"[a-z%)]\. [A-Z]", sentence)
    assert re.findall(r"<li>(.*?)\.</li>", lead) == [escape(f"Note: {note}", quote=False) for note in audit.notes]


def test_a_page_that_exists_is_kept_and_python_is_told_of_force(tmp_path, capsys, audits):
    audit, path = audits["one"], tmp_path / "audit.html"
    audit.write_page(path)
    with pytest.raises(ProblemFileError, match=r"exists and is kept; force=True replaces it, or choose another name$"):
        audit.write_page(path)
    audit.write_page(path, force=True)
    (tmp_path / "mine.html").write_text("mine")
    with pytest.raises(ProblemFileError, match=r"move it away, or choose another name$"):
        audit.write_page(tmp_path / "mine.html", force=True)
    write_report(audit.to_report(), tmp_path / "folder")
    with pytest.raises(ProblemFileError, match=r"force=True replaces it"):
        write_report(audit.to_report(), tmp_path / "folder")
    assert run_app(["audit", "two_lines", "theta=0.5", "--out", str(path)]) == 2
    assert "use --force to replace it, or another --out" in capsys.readouterr().err


def test_the_figure_marks_the_same_orders_in_every_panel(audits):
    report = audits["split"].to_report()
    figure = report.item("orders-tried")
    assert report.lead == figure.key
    assert figure.names[0] == "given order"
    assert "cyclic" in figure.names[1]
    accuracy, loss = figure.panels  # what was asked first
    assert "half the squared residual, summed over rows" in loss.xlabel
    assert "%" in accuracy.xlabel
    assert len(accuracy.values) == 120
    assert accuracy.marks[0] == pytest.approx(68.44, abs=0.005)


def test_the_terminal_names_the_best_order_and_units(audits):
    text = " ".join(audits["split"].to_text(100).split())
    assert "best order, forgets least (one of 2 equal ones): 4 or 5, 8 or 9, 2 or 3, 0 or 1, 6 or 7" in text
    assert "best of all by training accuracy (70.2 %) (one of 6 equal ones): 4 or 5, 6 or 7, 8 or 9, 2 or 3" in text
    assert "Training loss: half the squared residual of a task, summed over its rows; mean over tasks." in text
    assert "Training accuracy: rows classified correctly, in %; mean over tasks." in text
    for width in (60, 80):
        assert max(map(len, audits["split"].to_text(width).splitlines())) <= width


def test_pictures_of_pairs_that_are_alike_are_left_out():
    keys = [item.key for item in fg.audit(fg.families.orthogonal(5)).to_report().items()]
    assert not {"overlap", "angles", "influence"} & set(keys)
    assert _shows_something(np.array([[0.0, 1.0], [1.3, 0.0]]), 0.0)
    assert not _shows_something(np.array([[0.0, 1.0], [1.1, 0.0]]), 0.0)
    assert not _shows_something(np.array([[5.0, 1.0], [1.04, -5.0]]), 0.0)
    assert not _shows_something(np.array([[0.0, 1e-20], [3e-20, 0.0]]), 1e-15)


def test_files_of_earlier_versions_are_read_and_shown(audits):
    data = json.loads(audits["catastrophic"].to_json())
    new = ("opening", "kind_of_tasks", "unit", "tried", "tried_exact", "measures", "verdicts", "preparation", "drawn",
           "cases", "missing")  # fmt: skip
    for name in new:
        del data[name]
    del data["fit"]["floor_with_intercept"]
    old = Audit.from_json(json.dumps(data))
    assert old.verdict is None
    assert "fig-orders-tried" not in old.to_html()
    assert old.recommendation[0] in " ".join(str(old).split())


@pytest.mark.parametrize("values", [(), (1.0,), (2.0, 2.0, 2.0), (1e-300, 1e300), (None, 3.0, -1.0), (0.0, -1e300)])
def test_distributions_of_any_numbers_are_drawn(values):
    marks = (values[0] if values else None, None)
    figure = Spread("f", "Title", "", "orders", ("a", "b"), (Panel("loss", values, marks), Panel("x", (), (0.0, 1.0))))
    assert "<svg" in figure_drawing(figure).svg
    assert pictures(figure, (".png",))[".png"].startswith(b"\x89PNG")
    assert to_csv(figure).splitlines()[0] == "panel,name,value"
    assert to_csv(figure).count("\n") == 1 + 4 + len(values)
    with pytest.raises(InvalidInputError, match="1 marks for 2 names"):
        Spread("f", "", "", "", ("a", "b"), (Panel("x", (), (0.0,)),))


# ------------------------------------------------------------------------------------------------------- command line


@pytest.fixture
def sheets(tmp_path):
    rng = np.random.default_rng(0)
    w = rng.normal(size=3)
    paths = []
    for name, count in (("tasks", 5), ("held", 8)):
        lines = ["task,a,b,c,y"]
        for task in "uvw":
            X = rng.normal(size=(count, 3))
            lines += [f"{task},{','.join(map(repr, row.tolist()))},{1 if row @ w > 0 else -1}" for row in X]
        paths.append(tmp_path / f"{name}.csv")
        paths[-1].write_text("\n".join(lines))
    return tuple(map(str, paths))


def test_every_option_reaches_the_audit(sheets, capsys):
    tasks, held = sheets
    line = ["audit", tasks, "--test", held, "--intercept", "--standardize", "all", "--loss", "mean", "--order", "w,u,v"]
    assert run_app([*line, "--scheme", "ridge lam=0.5", "--rows", "4", "--repeats", "2", "--json"]) == 0
    found = Audit.from_json(capsys.readouterr().out)
    expected = fg.audit(
        fg.load(tasks), test=held, intercept=True, standardize="all", loss="mean", order=[2, 0, 1],
        scheme="ridge lam=0.5", rows=4, repeats=2, title="tasks.csv",
    )  # fmt: skip
    assert found == expected
    assert found.given == (2, 0, 1)
    assert found.dim == 4
    assert len(found.verdicts) == 2
    assert found.scheme == "Ridge(lam=0.5)"
    assert {"held-out loss", "held-out accuracy"} <= {one.name for one in found.measures}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--order", "u,v"], "an order names each of the 3 tasks once"),
        (["--order", "u,v,x"], "no task 'x'"),
        (["--standardize", "some"], "standardize: no 'some'"),
        (["--loss", "max"], "loss must be 'sum' or 'mean'"),
        (["--scheme", "nlms mu=0.5"], "an audit needs a linear scheme"),
        (["--test", "nowhere.csv"], "no such file"),
    ],
)
def test_bad_options_are_refused(sheets, capsys, options, words):
    assert run_app(["audit", sheets[0], *options]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
