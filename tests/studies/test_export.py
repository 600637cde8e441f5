"""Tables of studies as files: all values come back, whatever their types, and nothing of the user's is replaced."""

import csv
import json
import math

import pytest

import forgetting as fg
from forgetting.errors import ForgettingError
from forgetting.studies.study import export

pyarrow = pytest.importorskip("pyarrow.parquet")

GIVEN = {
    0: {"whole": 1, "real": 0.1, "text": "a", "mixed": 1, "list": [1.0, 2.5], "late": None, "huge": 2**80},
    1: {"whole": 2, "real": math.nan, "text": 'b, "c"\n', "mixed": "two", "list": [], "late": 7, "huge": 1},
    2: {"whole": 3, "real": math.inf, "text": None, "mixed": [3], "list": None, "late": {"a": 1}, "huge": None},
}


def odd(case):
    if case == 3:
        raise ZeroDivisionError("three")
    return GIVEN[case]


@pytest.fixture(scope="module")
def study():
    return fg.Study([{"case": case} for case in (3, 0, 1, 2)], None, function=odd).run(progress=False)


COLUMNS = ["case", "seed", "whole", "real", "text", "mixed", "list", "late", "huge", "failure"]


def test_the_columns_are_the_cell_the_seed_the_results_and_the_failure(study):
    assert study.columns() == COLUMNS
    assert study.columns(times=True) == [*COLUMNS, "seconds", "version"]
    assert study.to_frame().columns.tolist() == COLUMNS


def test_the_order_of_columns_does_not_depend_on_what_is_finished(tmp_path):
    cells = [{"b": 1}, {"a": 2, "b": 2}, {"b": 3, "c": 1}]
    store = tmp_path / "s.db"
    fg.Study(cells[2:], store, function=listed).run(progress=False)
    early = fg.Study(cells, store, function=listed).columns()
    late = fg.Study(cells, store, function=listed).run(progress=False).columns()
    assert early == late == ["b", "a", "c", "seed", "first", "second"]


def listed(b, a=0, c=0):
    return {"first": b, "second": a + c}


def test_parquet_has_every_value_or_says_it_in_a_text(study, tmp_path):
    study.to_parquet(tmp_path / "t.parquet")
    table = pyarrow.read_table(tmp_path / "t.parquet").to_pydict()
    assert list(table) == COLUMNS
    assert table["case"] == [3, 0, 1, 2]
    assert table["whole"] == [None, 1, 2, 3]
    assert table["real"][1] == 0.1
    assert math.isnan(table["real"][2])
    assert table["real"][3] == math.inf
    assert table["text"] == [None, "a", 'b, "c"\n', None]
    assert table["mixed"] == [None, "1", "two", "[3]"]
    assert table["list"] == [None, [1.0, 2.5], [], None]
    assert table["late"] == [None, None, "7", '{"a": 1}']
    assert table["huge"] == [None, str(2**80), "1", None]
    assert table["failure"] == ["ZeroDivisionError: three", None, None, None]
    assert table["seed"] == [cell.seed for cell in study.cells]


def test_csv_reads_back(study, tmp_path):
    export(study, tmp_path / "t.csv", times=True)
    with open(tmp_path / "t.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [*COLUMNS, "seconds", "version"]
    assert [row["whole"] for row in rows] == ["", "1", "2", "3"]
    assert float(rows[1]["real"]) == 0.1
    assert [rows[2]["real"], rows[3]["real"]] == ["nan", "inf"]
    assert rows[2]["text"] == 'b, "c"\n'
    assert json.loads(rows[1]["list"]) == [1.0, 2.5]
    assert float(rows[1]["seconds"]) >= 0
    assert rows[1]["version"] == fg.__version__


def test_json_is_json(study, tmp_path):
    def refuse(word):
        raise AssertionError(word)

    export(study, tmp_path / "t.json")
    rows = json.loads((tmp_path / "t.json").read_text(), parse_constant=refuse)
    assert [row["whole"] for row in rows] == [None, 1, 2, 3]
    assert [row["real"] for row in rows] == [None, 0.1, None, None]
    assert rows[3]["late"] == {"a": 1}
    assert list(rows[0]) == COLUMNS


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".json"])
def test_what_exists_is_kept_and_what_this_library_wrote_is_replaced_if_asked(study, tmp_path, ending):
    path = tmp_path / f"t{ending}"
    path.write_bytes(b"years of work")
    for force in (False, True):
        with pytest.raises(ForgettingError, match="kept"):
            export(study, path, force=force)
    assert path.read_bytes() == b"years of work"
    path.unlink()
    export(study, path)
    first = path.read_bytes()
    with pytest.raises(ForgettingError, match="exists"):
        export(study, path)
    export(study, path, force=True)
    assert path.read_bytes() == first


def test_other_endings_are_refused(study, tmp_path):
    with pytest.raises(ForgettingError, match=r"use \.parquet, \.csv or \.json"):
        export(study, tmp_path / "t.xlsx")
    with pytest.raises(ForgettingError, match=r"use \.parquet$"):
        study.to_parquet(tmp_path / "t.csv")
    assert list(tmp_path.iterdir()) == []


def test_nothing_finished_is_a_table_without_rows(tmp_path):
    study = fg.Study([{"case": 0}], None, function=odd)
    for ending in ("parquet", "csv", "json"):
        export(study, tmp_path / f"t.{ending}")
    assert pyarrow.read_table(tmp_path / "t.parquet").to_pydict() == {"case": [], "seed": []}
    assert (tmp_path / "t.csv").read_text() == "case,seed\n"
    assert json.loads((tmp_path / "t.json").read_text()) == []


def test_a_failed_cell_does_not_make_a_column_of_k_one_of_lists(tmp_path):
    study = fg.Study.grid(family="gaussian", T=3, d=4, rank=[1, 9], k=[1, 10], store=None).run(progress=False)
    assert study.status.failed == 1
    assert [(row["rank"], row["k"]) for row in study.rows()] == [(1, 1), (1, 10), (9, None)]
    study.to_parquet(tmp_path / "t.parquet")
    assert pyarrow.read_table(tmp_path / "t.parquet").to_pydict()["k"] == [1, 10, None]


def test_a_quantity_named_error_is_no_failure():
    study = fg.Study([{"family": "orthogonal", "d": 3, "k": 2, "quantities": ["error"]}], None).run(progress=False)
    exact = fg.expect(fg.families.orthogonal(3), "with-replacement", 2, quantities=("error",)).values["error"]
    assert study.rows()[0]["error"] == pytest.approx(float(exact), rel=1e-12)
    assert study.failures == {}
    assert "failure" not in study.columns()


def test_the_short_table_names_what_is_the_same_and_shows_what_varies():
    study = fg.Study.grid(family="gaussian", T=[3, 5], d=4, rank=1, k=[1, 10], store=None).run(progress=False)
    table = study.to_table(3)
    assert table.columns == ("T", "k", "method", "loss", "forgetting")
    assert [row[:2] for row in table.rows] == [(3, 1), (3, 10), (5, 1)]
    assert "in all rows: family = gaussian, d = 4, rank = 1" in table.notes
    assert "in all rows" in repr(study)
    assert "<table" in study._repr_html_()


def test_orderings_and_schemes_are_the_words_that_make_them():
    schemes = [fg.schemes.Ridge(0.5), None]
    study = fg.Study.grid(
        family="two_lines", theta=0.5, ordering=fg.orderings.Cyclic(), scheme=schemes, k=3, store=None
    )
    rows = study.run(progress=False).rows()
    assert [(row["ordering"], row["scheme"]) for row in rows] == [("cyclic", "ridge lam=0.5"), ("cyclic", None)]
    assert (
        rows[0]["loss"]
        == fg.studies.measure("two_lines", theta=0.5, k=3, ordering="cyclic", scheme="ridge lam=0.5")[0]["loss"]
    )
    assert "ordering = cyclic" in str(study)
    given = {"ordering": fg.orderings.Explicit([0, 1, 1]), "k": 3}
    (row,) = fg.Study.grid(family="two_lines", theta=0.5, **given, store=None).run(progress=False).rows()
    assert row["ordering"] == "explicit seq=[0,1,1]"
    again = fg.studies.measure("two_lines", theta=0.5, ordering=row["ordering"], k=3)
    assert again[0]["loss"] == row["loss"]


@pytest.mark.parametrize("ending", [".csv", ".json", ".parquet"])
def test_texts_with_half_a_character_are_exported(tmp_path, ending):
    study = fg.Study([{"a": "x\udcff"}], None, function=lambda a: {"b\ud800": a}).run(progress=False)
    export(study, tmp_path / f"table{ending}")
    assert rb"x\udcff" in (tmp_path / f"table{ending}").read_bytes()
    assert study.to_frame().iloc[0].tolist()[::2] == [r"x\udcff", r"x\udcff"]


def test_no_text_in_a_csv_is_a_formula_and_what_is_read_is_what_was_written(tmp_path):
    words = ["=HYPERLINK(0)", "+1+1", "-x", "@sum", "\tx", "'=x", "''-x", "'twas", "plain", "-2.5", "+inf"]
    study = fg.Study([{"task": word, "x": -1.5} for word in words], None, function=lambda task, x: {"=y": -x})
    export(study.run(progress=False), tmp_path / "table.csv")
    header, *rows = csv.reader((tmp_path / "table.csv").read_text().splitlines())
    assert header == ["task", "x", "seed", "'=y"]
    assert [row[0] for row in rows] == ["'" + word for word in words[:7]] + words[7:]
    assert {(row[1], row[3]) for row in rows} == {("-1.5", "1.5")}
    tasks = fg.load(tmp_path / "table.csv", label="=y", drop="seed")
    assert list(tasks.names) == words
