"""Records: every ratio is computed again, damaged files are refused, ratios only grow; evidence follows from them."""

import json
import math
import re
import shutil
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from tools import ratios
from tools.ratios import improve, ratio_of, save_record
from tools.record_page import HEADING, with_records

import forgetting as fg
from forgetting.claims import Instance, get
from forgetting.errors import ProblemFileError
from forgetting.files.best_known import seal_of
from forgetting.tasks.worst_tasks import KnownWorst
from forgetting.theory import evidence as evidence_module
from forgetting.theory.evidence import evidence_of
from forgetting.theory.record import FOLDER, all_records, claim_of, read_records

RANDOM = fg.orderings.WithReplacement()
DOCS = Path(__file__).parents[2] / "docs"


def pair(k, quantity="loss"):
    return Instance(fg.families.worst_pair(k, quantity), RANDOM, k)


def worst_by_grid(k, quantity):
    """The largest expected loss or forgetting of two lines over a grid of angles, by enumeration of all orders."""
    best = 0.0
    for theta in np.linspace(0.02, 1.5, 149):
        normals = np.array([[0.0, 1.0], [-np.sin(theta), np.cos(theta)]])
        start = np.array([np.cos(theta / 2), np.sin(theta / 2)])
        total = 0.0
        for code in range(2**k):
            order = [code >> step & 1 for step in range(k)]
            z = start
            for task in order:
                z = z - (normals[task] @ z) * normals[task]
            losses = (normals @ z) ** 2 / 2
            total += losses.mean() if quantity == "loss" else losses[order].mean()
        best = max(best, total / 2**k)
    return best


# ------------------------------------------------------------------------------------------------------ what there is


def large(record):
    """Hundreds of tasks without replacement, about half a second each; one of them is in every run of the tests."""
    tasks = re.search(r"T=(\d+)", record.at)
    return tasks is not None and int(tasks[1]) > 200 and record.key != "thm:cl_by_sgd_wor (loss)"


@pytest.mark.parametrize(
    "key", [pytest.param(key, marks=[pytest.mark.slow] * large(record)) for key, record in all_records().items()]
)
def test_every_record_is_attained_by_its_file(key):
    record = all_records()[key]
    verdict = record.verify()
    assert verdict.ratio == pytest.approx(record.ratio, rel=1e-5)
    assert verdict.holds or record.claim.status == "refuted"
    assert str(record.instance) == record.at


def test_every_claim_and_bound_has_a_record_or_a_reason():
    statements = (*fg.claims.all(), *fg.bounds.all_bounds())
    for statement in statements:
        assert (statement.record is None) == bool(statement.why_no_record), statement.key
    without = [statement.key for statement in statements if "no ratio was recorded" in (statement.why_no_record or "")]
    assert not without
    recorded = {record.key for statement in statements if (record := statement.record) is not None}
    assert recorded == set(all_records())


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("derezinski2026:random/loss", "constants are not known"),
        ("two-lines:random/loss/lower", "lower bound"),
        ("evron2023:cyclic/residual", "no claim computes its left side"),
    ],
)
def test_bounds_without_a_ratio_say_why(key, words):
    assert fg.bounds.get(key).record is None
    assert words in fg.bounds.get(key).why_no_record


def test_equalities_have_no_ratio():
    claim = get("eq:loss")
    assert claim.record is None
    assert "equality" in claim.why_no_record


def test_the_folder_holds_the_entries_and_their_instances_and_is_small():
    files = sorted(path.name for path in FOLDER.iterdir())
    assert files == sorted(f"{record.name}{end}" for record in all_records().values() for end in (".json", ".npz"))
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 1_500_000


def test_only_refuted_statements_have_records_above_one():
    above = {key for key, record in all_records().items() if record.ratio > 1 + 1e-9}
    refuted = {claim.key for claim in fg.claims.all() if claim.status == "refuted" and claim.kind == "inequality"}
    assert above <= refuted


@pytest.mark.parametrize("quantity", ["loss", "forgetting"])
def test_records_are_at_least_what_two_lines_reach(quantity):
    constant, first = {"loss": (2, 0), "forgetting": (5, 1)}[quantity]
    known = max(worst_by_grid(k, quantity) * (k - first) ** 0.25 / constant for k in range(2, 7))
    record = get("thm:cl_by_sgd_main", quantity).record
    assert record.ratio >= known * (1 - 1e-9)
    assert fg.bounds.get(f"thm:cl_by_sgd_main/{quantity}").record == record


# ------------------------------------------------------------------------------------------ bounds without own claims


def test_a_bound_without_a_claim_is_compared_through_a_related_one():
    claim = claim_of(fg.bounds.get("attia2025:with/loss"))
    verdict = claim.check(pair(8))
    exact = float(fg.expect(pair(8).problem, RANDOM, 8).loss)
    assert verdict.lhs == pytest.approx(exact, rel=1e-9)
    assert verdict.ratio == pytest.approx(exact / (6.5 / math.sqrt(8)), rel=1e-9)
    assert claim.confirm(pair(8)).ratio == pytest.approx(verdict.ratio, rel=1e-9)


def test_it_covers_what_the_bound_covers_and_not_what_the_claim_does():
    claim = claim_of(fg.bounds.get("evron2022:alternating/forgetting"))
    lines = fg.families.two_lines(0.5, w_star=(1, 0))
    assert claim.check(Instance(lines, fg.orderings.Cyclic(), 4)).holds
    three = Instance(fg.families.orthogonal(3), fg.orderings.Cyclic(), 6)
    assert get("swartworth2023:spiral", "forgetting").why_not(three) is None
    with pytest.raises(fg.errors.InvalidInputError, match="evron2022:alternating"):
        claim.check(three)


# -------------------------------------------------------------------------------------------------------------- files


@pytest.fixture
def folder(tmp_path):
    """A copy of the records that may be damaged."""
    return Path(shutil.copytree(FOLDER, tmp_path / "records"))


def test_a_damaged_file_is_refused_with_the_names_of_file_and_claim(folder):
    record = read_records(folder)["thm:cl_by_sgd_main (loss)"]
    assert record.verify().holds
    data = bytearray(record.path.read_bytes())
    data[len(data) // 2] ^= 1
    record.path.write_bytes(data)
    with pytest.raises(ProblemFileError, match="damaged") as caught:
        record.verify()
    assert record.file in str(caught.value)
    assert "thm:cl_by_sgd_main (loss)" in str(caught.value)
    record.path.unlink()
    with pytest.raises(ProblemFileError, match="no such file"):
        record.verify()


def test_a_ratio_that_the_file_does_not_attain_is_refused(folder):
    record = read_records(folder)["thm:cl_by_sgd_main (loss)"]
    replace(record, ratio=record.ratio * 1.001).save(record.path.with_suffix(".json"))
    with pytest.raises(ProblemFileError, match=r"thm:cl_by_sgd_main \(loss\) is recorded as 0\.05.*again gives 0\.05"):
        read_records(folder)["thm:cl_by_sgd_main (loss)"].verify()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.update(format="forgetting/instance/1"), "its 'format' entry is 'forgetting/instance/1'"),
        (lambda data: data.update(ratio="large"), "ratio: 'large' where a number was expected"),
        (lambda data: data.update(ratio=-1.0), r"no file 'eq_h_bound_sets_935d41.npz' or ratio -1.0"),
        (lambda data: data.update(file="../index.json"), "no file '../index.json'"),
        (lambda data: data.pop("instance"), "'instance' is missing"),
    ],
)
def test_a_damaged_entry_is_refused_with_its_name_and_the_reason(folder, change, message):
    path = read_records(folder)["eq:h-bound (sets)"].path.with_suffix(".json")
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    with pytest.raises(ProblemFileError, match=r"sets_935d41\.json: damaged record .*(SHA-256|'format' entry)"):
        read_records(folder)
    del data["sha256"]
    path.write_text(json.dumps({"sha256": seal_of(data), **data}))
    with pytest.raises(ProblemFileError, match=rf"sets_935d41\.json: damaged record .*{message}"):
        read_records(folder)


def test_the_index_of_earlier_versions_is_read_and_gives_the_same_records(folder):
    records = read_records(folder)
    rows = {
        key: {name: getattr(record, name) for name in ("ratio", "found", "at", "file", "sha256")}
        for key, record in records.items()
    }
    for path in folder.glob("*.json"):
        path.unlink()
    index = folder / "index.json"
    index.write_text(json.dumps({"format": "forgetting/largest-ratios/1", "records": rows}))
    assert ratios.from_index(index, folder.parent / "new") == len(records)
    again = read_records(folder.parent / "new")
    assert again == records
    assert again["thm:cl_by_sgd_main (loss)"].verify().holds
    assert ratios.from_index(index, folder.parent / "new") == 0


# -------------------------------------------------------------------------------------------------------------- growth


def test_records_only_ever_grow(tmp_path):
    claim = get("thm:cl_by_sgd_main", "loss")
    first = save_record(claim, pair(16), "first", tmp_path)
    assert save_record(claim, pair(64), "smaller", tmp_path) is None
    assert save_record(claim, pair(16), "the same", tmp_path) is None
    second = save_record(claim, pair(2), "larger", tmp_path)
    assert second.ratio > first.ratio
    assert read_records(tmp_path) == {claim.key: second}
    assert second.verify().ratio == pytest.approx(second.ratio)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{second.name}.json", second.file]


def test_a_larger_record_of_the_package_is_what_hunts_start_from(folder, monkeypatch):
    claim = get("thm:cl_by_sgd_main", "loss")
    monkeypatch.setattr("forgetting.theory.record.FOLDER", folder)
    all_records.cache_clear()
    try:
        larger = replace(claim, sides=lambda case: replace(claim.sides(case), rhs=claim.sides(case).rhs / 2))
        assert save_record(larger, pair(2), "planted", folder).ratio == pytest.approx(2 * ratio_of(claim, pair(2)))
        assert claim.record.found == "planted"
    finally:
        monkeypatch.undo()
        all_records.cache_clear()


def test_what_is_simulated_or_not_positive_has_no_ratio():
    claim = get("thm:cl_by_sgd_main", "loss")
    assert ratio_of(claim, pair(2)) == pytest.approx(0.0524, abs=1e-4)
    assert ratio_of(claim, pair(1)) is None  # the bound covers k >= 2
    coarse = replace(claim, sides=lambda case: fg.claims.Sides(1.0, 2.0, doubt=0.1))
    assert ratio_of(coarse, pair(2)) == pytest.approx(ratio_of(claim, pair(2)))  # at 50 digits
    assert ratio_of(replace(coarse, precise=None), pair(2)) is None
    negative = replace(claim, sides=lambda case: fg.claims.Sides(-1.0, 2.0), precise=None)
    assert ratio_of(negative, pair(2)) is None


def test_a_record_is_improved_from_nothing(tmp_path):
    record = improve(get("two-lines:random", "loss"), budget=0, folder=tmp_path)
    assert record.ratio == pytest.approx(1, abs=1e-9)
    assert record.found.startswith("closed form")


# ------------------------------------------------------------------------------------------------------------ evidence


@lru_cache
def far():
    """The claims that have evidence; finding it takes seconds, and would be repeated wherever tests are collected."""
    return [claim for claim in fg.claims.all() if claim.evidence is not None]


def test_bounds_far_from_one_have_evidence():
    keys = {claim.key for claim in far()}
    assert {"thm:cl_by_sgd_main (loss)", "thm:cl_by_sgd_main (forgetting)", "thm:cl_by_sgd_wor (loss)"} <= keys
    assert "thm:random_convergence_rate (loss)" not in keys  # two lines reach 0.9998 of it
    assert all(claim.record.ratio < 0.5 for claim in far())


def test_what_is_found_is_at_most_what_is_proved():
    for claim in far():
        evidence = claim.evidence
        assert evidence.value / evidence.right == pytest.approx(claim.record.ratio, rel=1e-5)
        if evidence.smallest is not None:  # a bound on the same instance
            assert claim.record.ratio * (1 - 1e-6) <= evidence.smallest.share < 1
        if evidence.proved is not None:
            assert claim.record.ratio <= evidence.proved.share < 1
        if evidence.pair is not None:  # the record may have more tasks than two
            assert evidence.pair <= evidence.value * (1 + 1e-6)
        assert f"{claim.record.ratio:.3g}" in evidence.sentence


def test_the_numbers_of_the_evidence_are_those_of_closed_forms_and_other_bounds():
    evidence = get("thm:cl_by_sgd_main", "forgetting").evidence
    assert evidence.k == evidence.record.instance.k
    assert evidence.pair == pytest.approx(worst_by_grid(evidence.k, "forgetting"), rel=1e-3)
    assert 0.5 * evidence.record.ratio < evidence.pair / evidence.right <= evidence.record.ratio
    assert evidence.known.share == pytest.approx(evidence.record.ratio, rel=1e-6)  # the record is from these tasks

    def allowed(k):  # the smallest of the universal bounds, against 5 / (k-1)^(1/4)
        keys = ["trivial", "attia2025:with", "thm:cl_by_sgd_main", "here:last-iterate"]
        ends = {"thm:cl_by_sgd_main": ["/product", "/proof"]}
        names = [f"{key}/forgetting{end}" for key in keys for end in ends.get(key, [""])]
        return min(fg.bounds.get(name).value(fg.bounds.Setting(), k) for name in names) * (k - 1) ** 0.25 / 5

    assert evidence.proved.share == pytest.approx(allowed(evidence.proved.k), rel=1e-9)
    assert all(allowed(k) <= evidence.proved.share * (1 + 1e-3) for k in (2, 5, 20, 30, 50, 200, 10**4, 10**7))


def test_certified_worst_cases_enter_the_evidence(monkeypatch):
    rows = (((1.0, 0.0),), ((0.0, 1.0),))
    entries = [
        KnownWorst("loss", None, 3, evidence="certified", upper=0.07, origin="for all T"),
        KnownWorst("loss", 2, 3, value=0.05, upper=0.065, w_star=(0.6, 0.8), matrices=rows),
        KnownWorst("loss", 2, 2, value=0.08, w_star=(0.6, 0.8), matrices=rows),
    ]
    monkeypatch.setattr(evidence_module, "known_worst", lambda quantity: tuple(entries))
    evidence = evidence_of.__wrapped__(get("thm:cl_by_sgd_main", "loss"))
    (certified,) = evidence.certified
    assert certified.k == 3
    assert certified.share == pytest.approx(0.07 * 3**0.25 / 2)
    assert evidence.known.share == pytest.approx(0.08 * 2**0.25 / 2)
    assert "T = 2, searched: loss-T2-k2" in evidence.sentence
    assert f"At k = 3 no tasks, however many, reach more than {certified.share:.3g}" in evidence.sentence


def test_the_largest_share_is_said_first_whether_of_the_record_or_of_known_tasks():
    evidence = get("here:last-iterate", "loss").evidence  # more tasks would come nearer, in a file too large to be kept
    assert evidence.known.share > evidence.record.ratio
    first, second = evidence.sentences[:2]
    assert first.startswith(f"No instance reaches more than {evidence.known.share:.3g} of the right side")
    assert f"divided by more than {1 / evidence.known.share:.3g}" in first
    assert second.startswith(f"The record is {evidence.record.ratio:.3g} of it")
    smaller = replace(evidence, known=replace(evidence.known, share=evidence.record.ratio / 2))
    assert smaller.sentence.startswith(f"No instance reaches more than {evidence.record.ratio:.3g} of the right side")


def test_the_next_best_start_is_kept_where_the_best_is_too_large_for_a_record(tmp_path, monkeypatch):
    claim = get("thm:cl_by_sgd_main", "loss")
    starts = [("large", pair(2)), ("small", pair(64))]
    monkeypatch.setattr("tools.ratios.known_starts", lambda *_, **__: starts)
    assert improve(claim, budget=0, folder=tmp_path / "all").found == "large"
    fits = ratios._file_of
    monkeypatch.setattr(ratios, "_file_of", lambda case: None if case.k == 2 else fits(case))
    assert improve(claim, budget=0, folder=tmp_path / "few").found == "small"


def test_statements_without_a_distant_constant_have_no_evidence():
    assert get("eq:loss").evidence is None
    assert get("lem:regret_bound").evidence is None
    assert get("prop:mean_norm", "forgetting").evidence is None  # refuted


def test_the_page_of_the_docs_has_the_records_as_they_are():
    page = (DOCS / "claims.md").read_text()
    assert page.count(HEADING) == 1
    assert with_records(page) == page


def test_records_are_as_large_as_what_hunts_of_the_page_found():
    """To 10 %: a hunt may take sides whose ratio is in doubt, or a problem that is too large for a record."""
    page = re.sub(r"\\(.)", r"\1", (DOCS / "claims.md").read_text())
    compared = 0
    for claim in fg.claims.all():
        name = f" (`{claim.label}`" + (f", {claim.part}" if claim.part else "") + f"): {claim.statement} | "
        found = re.search(r"worst ratio (\S+) at", page[page.index(name) :].partition("\n")[0])
        if found is not None:
            compared += 1
            assert claim.record.ratio >= 0.9 * float(found[1]), claim.key
    assert compared > 70


def test_a_claim_says_its_largest_ratio():
    claim = get("thm:cl_by_sgd_main", "loss")
    assert claim.record.ratio > 0.058  # eight tasks; the worst pair has 0.0524
    assert str(claim).endswith(f" (holds as stated; the largest ratio found is {claim.record.ratio:.4g})")
    assert str(get("eq:loss")).endswith(" (holds as stated)")
