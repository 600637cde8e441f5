"""Every command, by its real process, on input that it can use."""

from __future__ import annotations

import copy
import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest

import forgetting as fg
from forgetting.report import load_report
from forgetting.report.provenance import problem_hash

COMMANDS = (
    "report",
    "run",
    "expect",
    "weights",
    "bounds",
    "table",
    "certify",
    "claims",
    "worst-case",
    "solve",
    "cite",
    "families",
    "doctor",
)
SMALL = ("gaussian", "T=4", "d=6", "rank=2")


def fits(text: str, width: int = 80) -> bool:
    return all(len(line) <= width for line in text.splitlines()) and "\x1b" not in text


def test_help_names_every_command_and_fits(forgetting):
    done = forgetting("--help")
    assert done.code == 0
    assert done.err == ""
    assert fits(done.out)
    for command in COMMANDS:
        assert f"\n  {command} " in done.out


def test_nothing_is_help(inside):
    assert inside().out == inside("--help").out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_by_example(inside, command):
    done = inside(command, "--help")
    assert done.code == 0
    assert fits(done.out)
    assert f"Examples:\n    forgetting {command}" in done.out
    assert "--json" in done.out


def test_weights_are_those_of_the_library(inside):
    tasks = fg.families.gaussian(T=4, d=6, rank=2, seed=0)
    for options, best in (((), fg.optimal_weights(tasks)), (("-k", "3"), fg.optimal_weights(tasks, "loss", 3))):
        done = inside("weights", *SMALL, *options, "--json")
        assert (done.code, done.err) == (0, "")
        data = json.loads(done.out)
        rows = data["sections"][0]["items"][0]["rows"]
        np.testing.assert_allclose([row[-1] for row in rows], best.probabilities, rtol=1e-12)
        for name in ("value", "uniform", "norm_weighted"):
            assert data["meta"][name] == pytest.approx(getattr(best, name), rel=1e-12)
    text = inside("weights", *SMALL, "-k", "3").out
    assert fits(text)
    assert "expected loss after 3 steps" in text


def test_version(inside):
    assert inside("--version").out == f"forgetting {fg.__version__}\n"


def test_run_gives_the_numbers_of_the_library(forgetting):
    done = forgetting("run", *SMALL, "-k", "30", "--seed", "5", "--json")
    assert (done.code, done.err) == (0, "")
    data = json.loads(done.out)
    tasks = fg.families.gaussian(T=4, d=6, rank=2, seed=5)
    run = fg.run(tasks, fg.orderings.WithReplacement(), 30, seed=5)
    assert data["meta"]["order"] == run.order.tolist()
    assert data["meta"]["sha256"] == problem_hash(tasks)
    assert {"seed", "versions", "method"} <= set(data["meta"])
    table = data["sections"][0]["items"][0]
    assert table["columns"] == ["step", "task", "loss", "forgetting", "regret"]
    np.testing.assert_allclose([row[2] for row in table["rows"]], run.losses[1:])


def test_expect_gives_the_numbers_of_the_library(inside):
    done = inside("expect", "two_lines", "theta=0.5", "copies=3", "-o", "without-replacement", "-k", "2,6", "--json")
    rows = json.loads(done.out)["sections"][0]["items"][0]["rows"]
    exact = fg.expect(fg.families.repeated(fg.families.two_lines(0.5), 3), fg.orderings.WithoutReplacement(), [2, 6])
    assert [row[0] for row in rows] == [2, 6]
    np.testing.assert_allclose([row[1] for row in rows], exact.loss)
    assert json.loads(done.out)["meta"]["method"] == "subsets"


def test_expect_by_simulation_has_intervals_and_its_seed(inside):
    call = ("expect", *SMALL, "-k", "5", "--method", "monte-carlo", "--runs", "1024", "--json")
    first, again, other = inside(*call), inside(*call, "--seed", "0"), inside(*call, "--seed", "1")
    assert first.out == again.out
    assert first.out != other.out
    k, quantity, value, low, high = json.loads(first.out)["sections"][0]["items"][0]["rows"][0]
    assert (k, quantity) == (5, "loss")
    assert low <= value <= high


def test_no_steps_are_no_divergence(inside):
    said = inside("expect", "two_lines", "theta=0.5", "-k", "0").out
    assert "forgetting and regret at k = 0: a mean over no steps" in said
    assert "diverged" not in said
    words = ("two_lines", "theta=0.5", "-k", "400", "--scheme", "sgd step_size=5")
    for command in ("run", "expect", "certify"):
        said = " ".join(inside(command, *words).out.split())
        assert said.count("the iterates diverged to values that are not finite; use a smaller step size") == 1, command


def test_programs_make_the_bound_by_moments_smaller(inside):
    words = ("bounds", "gaussian", "T=6", "d=3", "rank=1", "-k", "30", "--quantity", "next_loss", "--json")
    plain, solved = json.loads(inside(*words).out), json.loads(inside(*words, "--programs").out)
    values = [printed["sections"][0]["items"][0]["rows"][0][1] for printed in (plain, solved)]  # of the tightest
    assert 0.8 * values[0] < values[1] < values[0]


def test_bounds_names_the_tightest(inside):
    done = inside("bounds", "two_lines", "theta=0.5", "-k", "100", "--all")
    best = fg.bounds.evaluate(fg.families.two_lines(0.5), fg.orderings.WithReplacement(), 100).tightest("loss")
    assert done.code == 0
    assert f"tightest on the loss: at most {best.value:.4g}, {best.bound.name}" in " ".join(done.out.split())
    assert "Bounds that do not apply" in done.out
    assert fits(done.out)


@pytest.mark.parametrize("name", ["regression", "classification", "sgd"])
def test_table_in_symbols_and_numbers(inside, name):
    assert inside("table", name).out.strip() == str(fg.bounds.table(name)).strip()
    done = inside("table", name, "-k", "1000")
    assert done.code == 0
    assert "Numbers are in this library's convention" in " ".join(done.out.split())
    assert fits(done.out)


def test_table_formats(inside):
    assert r"\begin{tabular}" in inside("table", "regression", "--format", "latex").out
    assert "| --- |" in inside("table", "regression", "--format", "markdown").out
    assert "<table>" in inside("table", "regression", "--format", "html").out


def test_tables_for_a_paper_have_formulas_as_mathematics(inside, tmp_path):
    assert inside("table", "regression", "-k", "1000", "--out", "table.tex").code == 0
    numbers = fg.bounds.Setting.of(fg.families.gaussian(T=12, d=20, rank=2, condition=3))
    assert (tmp_path / "table.tex").read_text() == fg.bounds.table("regression", numbers, 1000).to_latex()
    assert inside("bounds", "two_lines", "theta=0.5", "-k", "1000", "--out", "bounds.tex").code == 0
    rows = fg.bounds.evaluate(fg.families.two_lines(0.5), fg.orderings.WithReplacement(), 1000)
    text = (tmp_path / "bounds.tex").read_text()
    assert text == rows.to_latex("loss") + "\n" + rows.to_latex("forgetting")
    none = inside("bounds", *SMALL, "--scheme", "ridge lam=1", "--quantity", "objective", "--out", "none.tex")
    assert none.code == 2
    assert "no bound applies, so that there is no table to write; --all says why" in none.err
    assert not (tmp_path / "none.tex").exists()


def test_cite_prints_sources_as_bibtex(inside):
    done = inside("cite", "sgd:lan-2012/averaged_objective", "evron2026continual")
    assert done.code == 0
    assert done.out.strip() == fg.bounds.cite("sgd:lan-2012/averaged_objective")  # the paper once
    listed = inside("cite")
    assert "evron2022catastrophic" in listed.out
    assert fits(listed.out)
    assert fg.__version__ in inside("cite", "forgetting").out
    table = json.loads(inside("cite", "lan2012optimal", "--json").out)["sections"][0]["items"][0]
    assert table["rows"] == [[fg.bounds.cite("lan2012optimal")]]
    wrong = inside("cite", "evron2022")
    assert (wrong.code, wrong.out) == (2, "")
    assert "did you mean 'evron2022catastrophic'" in wrong.err


def test_names_come_with_keys_in_brackets(inside):
    text = " ".join(inside("bounds", "two_lines", "theta=0.5", "-k", "100", "--all").out.split())
    assert "Theorem 8, parameter-dependent rate [thm:random_convergence_rate/loss]" in text
    assert "the trivial bound [trivial/loss]" in text
    rows = json.loads(inside("bounds", "two_lines", "theta=0.5", "--json").out)["sections"][0]["items"][0]
    assert rows["columns"] == ["", "value", "reached", "bound", "key", "remark"]
    listed = json.loads(inside("claims", "--json").out)["sections"][0]["items"][0]["rows"]
    assert "Theorem 10, universal rate: loss [thm:cl_by_sgd_main]" in [row[0] for row in listed]
    assert "[thm:cl_by_sgd_main]" in inside("claims").out
    assert inside("claims", "lem:Q trace").out.startswith("Lemma C.8 [lem:Q trace]: holds as stated")


def test_certificate_holds_and_reloads(inside):
    done = inside("certify", "two_lines", "theta=0.14", "-k", "20", "--json")
    assert done.code == 0
    found = fg.claims.Certificate.from_json(done.out)
    assert found.holds
    assert found.k == 20
    assert json.loads(done.out)["meta"]["seed"] == 0
    text = inside("certify", "two_lines", "theta=0.14", "-k", "20").out
    assert "everything that should hold here holds" in text
    assert fits(text)
    text = inside("certify", "gaussian", "T=60", "d=4", "rank=2", "--ordering", "without-replacement", "-k", "55").out
    assert "as far as simulation decides it (1 open)" in text
    assert fits(text)


def test_claims_are_listed_with_their_status(inside):
    done = inside("claims")
    assert done.code == 0
    assert fits(done.out)
    for claim in fg.claims.all():
        assert claim.label.split()[-1] in done.out  # a label of two words may be broken


def test_one_claim_in_words(inside):
    out = " ".join(inside("claims", "lem:regret_bound", "--json").out.split())
    assert fg.claims.get("lem:regret_bound").statement in json.loads(out)["sections"][0]["items"][0]["rows"][0]


def test_a_hunt_that_finds_nothing_new_succeeds(inside):
    done = inside("claims", "lem:regret_bound", "--hunt", "5")
    assert done.code == 0
    assert "holds" in done.out
    assert fits(done.out)


def test_a_violated_statement_exits_with_3(inside):
    call = ("claims", "prop:mean_norm", "--hunt", "12")
    known, strict = inside(*call), inside(*call, "--strict")
    assert "known to be false: Claim G.1, average-norm rate: forgetting [prop:mean_norm]" in " ".join(known.out.split())
    assert (known.code, strict.code) == (0, 3)
    assert strict.err == ""


def test_claims_and_bounds_show_the_largest_ratio_found(inside):
    (row,) = json.loads(inside("claims", "lem:regret_bound", "--json").out)["sections"][0]["items"][0]["rows"]
    assert fg.claims.get("lem:regret_bound").record.ratio in row
    words = " ".join(inside("claims", "thm:cl_by_sgd_main").out.split())
    for part in ("loss", "forgetting"):
        assert fg.claims.get("thm:cl_by_sgd_main", part).evidence.sentence in words
    assert fg.claims.get("lem:regret_bound").record.sentence in " ".join(
        inside("claims", "lem:regret_bound").out.split()
    )
    table = json.loads(inside("bounds", "two_lines", "theta=0.5", "-k", "9", "--json").out)["sections"][0]["items"][0]
    key, reached = (table["columns"].index(name) for name in ("key", "reached"))
    rows = {row[key]: row[reached] for row in table["rows"]}
    assert rows["thm:cl_by_sgd_main/loss"] == fg.bounds.get("thm:cl_by_sgd_main/loss").record.ratio
    assert rows["derezinski2026:random/loss"] is None


def test_a_hunt_is_confined_to_sizes(inside):
    call = ("claims", "thm:cl_by_sgd_main", "--hunt", "9")
    done = inside(*call, "--T", "3", "--d", "2-4", "--k", "2")
    assert done.code == 0
    assert "9 evaluations each, T = 3, d = 2 to 4, k = 2" in " ".join(done.out.split())
    for wrong, words in (
        (("--k", "1"), "was checked on no problem with k = 1"),
        (("--T", "3-2"), "the smaller one first"),
        (("--d", "few"), "a range such as 2-5, got 'few'"),
    ):
        refused = inside(*call, *wrong)
        assert refused.code == 2
        assert words in " ".join(refused.err.replace("│", " ").split())
    assert "is for a hunt" in " ".join(inside("claims", "lem:", "--T", "3").err.split())


def test_families_with_parameters(inside):
    out = inside("families").out
    assert "gaussian T= d= rank=1" in out
    assert fits(out)
    assert "72/eps^2" in inside("families", "catastrophic").out
    rows = json.loads(inside("families", "--json").out)["sections"][0]["items"][0]["rows"]
    data_sets = {"diabetes", "digits", "mnist", "sensor_drift"}
    assert {row[0] for row in rows} == set(fg.families.__all__) - {"repeated"} | data_sets


def test_doctor_is_well_here(forgetting, inside):
    done = forgetting("doctor")
    assert done.code == 0
    assert "every known answer holds" in done.out
    assert fits(done.out)
    tables = json.loads(inside("doctor", "--json").out)["sections"][0]["items"]
    machine = dict(next(table["rows"] for table in tables if table["key"] == "machine"))
    assert machine["forgetting"] == fg.__version__
    assert machine["cores"] >= 1


def test_problem_from_a_file(inside, tmp_path):
    tasks = fg.families.gaussian(T=3, d=5, rank=1, seed=2)
    tasks.save(tmp_path / "tasks.npz")
    data = json.loads(inside("expect", "tasks.npz", "-k", "4", "--json").out)
    assert data["meta"]["sha256"] == problem_hash(tasks)
    assert data["sections"][0]["items"][0]["rows"][0][1] == pytest.approx(
        float(fg.expect(tasks, fg.orderings.WithReplacement(), 4).loss)
    )


def test_classification_tasks_from_a_file(inside, tmp_path):
    tasks = fg.families.separable(T=3, d=4, n=5, margin=0.2)
    tasks.save(tmp_path / "labels.npz")
    done = inside("run", "labels.npz", "-o", "cyclic", "-k", "6", "--json")
    assert json.loads(done.out)["meta"]["scheme"].startswith("POCS(")


def test_problem_from_a_config(inside, tmp_path):
    (tmp_path / "my.toml").write_text(
        "seed = 3\n[[problem.tasks]]\nX = [[1, 0]]\ny = [1]\n[[problem.tasks]]\nX = [[0.6, 0.8]]\ny = [1]\n"
    )
    data = json.loads(inside("run", "my.toml", "-k", "5", "--json").out)
    tasks = fg.RegressionTasks([[[1, 0]], [[0.6, 0.8]]], [[1], [1]])
    assert data["meta"]["sha256"] == problem_hash(tasks)
    assert data["meta"]["seed"] == 3


@pytest.mark.parametrize("scheme", ["kaczmarz", "sgd step_size=0.5", "ridge lam=0.1", "nlms mu=1", "gradient-descent"])
def test_schemes_by_name(inside, scheme):
    assert inside("run", *SMALL, "-k", "3", "--scheme", scheme).code == 0


def test_out_writes_what_the_ending_says(inside, tmp_path):
    call = ("expect", *SMALL, "-k", "1..20")
    for ending in ("json", "csv", "html", "tex", "png", "pdf"):
        assert inside(*call, "--out", f"found.{ending}").code == 0
    again = load_report(tmp_path / "found.json")
    assert again.meta["method"] == "moments"
    with (tmp_path / "found.csv").open() as handle:
        rows = list(csv.reader(handle))
    assert rows[0] == ["k", "loss", "forgetting", "regret"]
    assert float(rows[-1][1]) == again.item("expect").rows[-1][1]
    assert (tmp_path / "found.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "found.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "found.html").read_text().startswith("<!doctype html>")
    assert sorted(path.suffix for path in tmp_path.glob("found.*")) == [
        ".csv",
        ".html",
        ".json",
        ".pdf",
        ".png",
        ".tex",
    ]


def test_a_reader_that_leaves_is_no_error(tmp_path: Path):
    import shlex
    import subprocess
    import sys

    line = f"{shlex.quote(sys.executable)} -m forgetting claims | head -n 1"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stderr == ""
    assert done.stdout == "The statements of the paper\n"


@pytest.mark.parametrize("columns", ["60", "80", "100"])
def test_tables_keep_to_the_width_of_the_terminal(inside, columns, monkeypatch):
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_: os.terminal_size((int(columns), 24)))
    for call in (("bounds", *SMALL), ("claims", "lem:", "--hunt", "1"), ("families",), ("run", *SMALL)):
        assert fits(inside(*call).out, int(columns))


def test_the_width_comes_from_the_terminal(forgetting):
    assert fits(forgetting("families", COLUMNS="60").out, 60)


def test_ascii_terminals_get_no_error(forgetting):
    done = forgetting("table", "regression", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.code, done.err) == (0, "")


def test_bounds_of_an_ordering_that_ends_are_for_one_pass(inside):
    done = inside("bounds", "gaussian", "T=5", "d=8", "rank=2", "-o", "without-replacement")
    assert done.code == 0
    assert "without replacement, k = 5: bounds" in " ".join(done.out.split())
    assert "thm:cl_by_sgd_wor/loss" in done.out


def test_a_certificate_without_bounds_says_so(inside):
    done = inside("certify", "two_lines", "theta=0.5", "--scheme", "sgd step_size=2.5", "-k", "5")
    assert done.code == 0
    assert "no bound applies to this scheme, ordering and k" in done.out


def test_a_certificate_is_written_as_data_or_text_only(inside, tmp_path):
    done = inside("certify", "two_lines", "theta=0.5", "-k", "5", "--out", "c.png")
    assert done.code == 2
    assert "c.png: a certificate is written as .json or .txt" in done.err
    assert not (tmp_path / "c.png").exists()


def test_a_report_of_one_section_from_outside(inside, tmp_path, monkeypatch):
    from forgetting.report import Section, section, section_makers
    from forgetting.report import settings as report_settings

    section_makers()
    monkeypatch.setattr(report_settings, "_registry", copy.deepcopy(report_settings._registry))

    @section("sizes", "counting")
    def sizes(settings, progress):
        return Section("sizes", "Sizes of the tasks", f"{settings.problem.num_tasks} tasks", ())

    done = inside("report", "two_lines", "theta=0.5", "--sections", "sizes", "--out", "out")
    assert (done.code, done.err) == (0, "")
    assert [made.key for made in load_report(tmp_path / "out").sections] == ["sizes"]
    assert "<h2>Sizes of the tasks</h2>" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    done = inside("report", "--sections", "size", "--out", "other")
    assert done.code == 2
    assert "no section 'size'; did you mean 'sizes'? There are" in done.err
    assert "rates, " in done.err


def test_simulated_values_have_medians_where_their_intervals_say_little_and_all_quantiles_in_json(inside):
    lines = ("expect", "two_lines", "theta=1.0472", "--method", "monte-carlo", "--runs", "512")
    text = " ".join(inside(*lines, "-k", "2,100").out.split())
    assert "expected values over random orders, simulated: 512 runs, seed 0" in text
    assert "the median decides" in text
    assert "median low" in text
    assert text.count("holds with probability at least 0.99") == 1
    found = json.loads(inside(*lines, "-k", "2,5", "--json").out)
    assert "median" not in found["sections"][0]["items"][0]["columns"]
    table = found["meta"]["quantiles"]
    assert set(table) == {"loss", "forgetting", "regret"}
    assert list(table["loss"]) == ["0.05", "0.25", "0.5", "0.75", "0.95"]
    assert [len(part) for part in table["loss"]["0.5"]] == [2, 2, 2]  # value, low, high at both k


def test_quantiles_without_an_end_have_none_in_json(inside, tmp_path):
    fg.RegressionTasks([[[1.0]], [[1.0]]], [[1.0], [2.0]]).save(tmp_path / "apart.npz")
    done = inside("expect", "apart.npz", "-k", "3", "--method", "monte-carlo", "--runs", "3", "--json")
    assert done.code == 0
    assert json.loads(done.out)["meta"]["quantiles"]["loss"]["0.5"][1:] == [[0.0], [None]]


def test_patience_decides_whether_values_are_exact(inside):
    call = ("expect", "gaussian", "T=4", "d=6", "rank=2", "-k", "10", "--runs", "64")
    assert "over all orders, exact" in " ".join(inside(*call, "--patience", "inf").out.split())
    text = " ".join(inside(*call, "--patience", "1e-6").out.split())
    assert "simulated: 64 runs" in text
    assert "exact values would take about" in text
    done = inside(*call, "--patience", "0")
    assert done.code == 2
    assert "patience must be greater than 0, got 0.0" in done.err


def test_bounds_are_folded_in_the_terminal_and_whole_elsewhere(inside):
    call = ("bounds", "two_lines", "theta=0.5", "-k", "100", "--quantity", "loss")
    folded, whole = inside(*call).out, inside(*call, "--all").out
    rows = json.loads(inside(*call, "--json").out)["sections"][0]["items"][0]["rows"]
    shown = "".join(folded.split())
    keys = [row[4] for row in rows]
    assert all(f"[{key}]" in "".join(whole.split()) for key in keys)
    left_out = [key for key in keys if f"[{key}]" not in shown]
    assert f"--all lists {len(left_out)} variants of these statements, too" in folded
    assert len(left_out) > 5
    assert "variants" in folded.split("--all")[0]
    shown_labels = {fg.bounds.get(key).label for key in keys if key not in left_out}
    assert {fg.bounds.get(key).label for key in left_out} <= shown_labels
    assert "variant" not in whole
