"""The frontier: every stored entry holds, damaged ones are refused, and better ones can be added."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tools import frontier_data

import forgetting as fg
from effort import rounds
from forgetting.errors import InvalidInputError, ProblemFileError
from forgetting.files.best_known import keep, seal_of
from forgetting.tasks import levels as levels_module
from forgetting.tasks.levels import worst_equiangular, worst_levels
from forgetting.tasks.worst_tasks import (
    FOLDER,
    PROOF,
    KnownWorst,
    entry_files,
    known_worst,
    two_lines_loss,
)
from forgetting.theory.candidates import known_starts
from forgetting.worstcase import Entry, frontier_improving
from forgetting.worstcase.frontier_entry import exact_value, worst_pair_entry
from forgetting.worstcase.frontier_table import Upper, upper_bound

FILES = [path.name for path in entry_files(FOLDER)]
DRAWS = fg.orderings.WithReplacement()


@cache
def shown(quantity: str = "loss") -> fg.worstcase.Frontier:
    return fg.worstcase.frontier(quantity)


def saved(folder: Path, entry: Entry) -> Path:
    path = folder / f"{entry.name}.json"
    entry.save(path)
    return path


def pair_entry() -> Entry:
    """Two lines at an angle that is not the worst, as somebody might send them."""
    return Entry.of(fg.families.two_lines(0.5), "loss", 3, origin="by hand", own=True)


# ------------------------------------------------------------------------------------------------- what is stored


@pytest.mark.parametrize("name", FILES[:: rounds(5, 1)])
def test_every_stored_entry_verifies_from_its_tasks_and_certificate(name):
    entry = Entry.read(FOLDER / name)
    assert entry.name == name.removesuffix(".json")
    value, upper = entry.verify()
    if entry.T is None:
        assert upper is not None or "is not kept" in entry.origin
    else:
        assert value == pytest.approx(entry.value, rel=1e-9)
        assert entry.upper is None or entry.value <= entry.upper + 1e-12
    assert (entry.proof is not None) == (FOLDER / name).with_suffix(PROOF).exists()


@pytest.mark.parametrize("quantity", ["loss", "forgetting"])
@pytest.mark.parametrize("k", [1, 2, 7, 20, 1000, 10_000])
def test_the_closed_form_of_two_tasks_verifies(quantity, k):
    if (quantity, k) != ("forgetting", 1):
        entry = worst_pair_entry(quantity, k)
        assert entry.verify().value == pytest.approx(entry.value, rel=1e-9)
        assert entry.verify().upper == entry.upper


def test_no_certificate_is_without_an_entry_and_all_files_are_small():
    proofs = {path.name.removesuffix(PROOF) for path in FOLDER.glob(f"*{PROOF}")}
    assert proofs <= {name.removesuffix(".json") for name in FILES}
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 1.5e6


def test_no_entry_is_above_an_upper_bound_of_its_size():
    for quantity in ("loss", "forgetting"):
        for row in shown(quantity).rows:
            assert row.value <= row.upper.value * (1 + 1e-9), row


def test_certified_values_are_those_of_the_issue():
    certified = fg.worstcase.frontier("loss", T=np.inf, k=[1, 2, 3, 4]).to_frame()
    np.testing.assert_allclose(certified["k upper"], [3**-1.5, 0.205941, 0.210434, 0.213901], atol=2e-6)
    assert shown().best(T=3, k=2).value == pytest.approx(fg.worst_case(3, 2).value, rel=1e-7)


# --------------------------------------------------------------------------------------------------- damaged files


def damaged(**changes):
    """The text of an entry whose content was changed, with a digest that fits."""
    data = json.loads(pair_entry().to_json()) | changes
    data.pop("sha256")
    return json.dumps({"sha256": seal_of(data), **data})


W = list(pair_entry().w_star)
CHANGES = {
    "digest": (pair_entry().to_json().replace('"k":3', '"k":4'), "the SHA-256 does not fit"),
    "not JSON": ("{", "not JSON"),
    "another format": (damaged(format="other"), "its 'format' entry is 'other'"),
    "a field is missing": (json.dumps({"format": "forgetting/worst-tasks/1"}), "SHA-256 does not fit"),
    "an unknown field": (damaged(more=1), "'more' is unknown"),
    "shape": (damaged(w_star=[*W, 0.0]), r"task 0 has rows of \[2\] numbers, and w\* has 3"),
    "number of tasks": (damaged(T=3), "2 matrices for T = 3 tasks"),
    "not a unit w*": (damaged(w_star=[2 * x for x in W]), r"\|w\*\| is 2, not 1"),
    "a w* that overflows": (damaged(w_star=[1e300 * x for x in W]), r"\|w\*\| is inf, not 1"),
    "rows not orthonormal": (damaged(matrices=[[[1.0, 0.1]], [[0.0, 1.0]]]), "rows of task 0 are not orthonormal"),
    "value": (damaged(value=0.7), "the value 0.7 is not between 0 and 1/2"),
    "value above upper": (damaged(upper=0.001), "above the upper bound 0.001"),
    "no steps": (damaged(k=0), "must be at least 1"),
    "quantity": (damaged(quantity="regret"), "'regret' where one of loss, forgetting was expected"),
    "proof": (damaged(proof="x"), "'x' is not the SHA-256 of a certificate"),
    "construction": (damaged(construction="equiangular share=2"), "no tasks of 'equiangular share=2'"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_damaged_entry_is_refused_and_the_message_names_file_and_reason(tmp_path, change):
    text, message = CHANGES[change]
    path = tmp_path / "mine.json"
    path.write_text(text)
    with pytest.raises(ProblemFileError, match=message) as raised:
        Entry.read(path)
    assert "mine.json: damaged entry" in str(raised.value)


def test_an_entry_whose_value_its_tasks_do_not_reach_is_refused(tmp_path):
    path = saved(tmp_path, replace(pair_entry(), value=0.06))
    with pytest.raises(
        ProblemFileError,
        match=r"loss-T2-k3.json: the value is recorded as 0.06, and computing it again gives 0.0422583",
    ):
        Entry.read(path).verify()
    with pytest.raises(ProblemFileError, match=r"the value is recorded as 0\.06"):
        fg.worstcase.frontier("loss", folder=tmp_path)


def test_an_entry_whose_value_takes_too_long_or_whose_file_is_a_pipe_is_refused(tmp_path):
    path = saved(tmp_path, replace(Entry.of(fg.families.two_lines(0.5), "loss", 3), k=10**12, ordering="cyclic"))
    with pytest.raises(ProblemFileError, match=r"json: k = 1000000000000 takes longer than patience= \(60 s\)"):
        Entry.read(path).verify()
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(ProblemFileError, match=r"pipe\.json: not a regular file"):
        Entry.read(tmp_path / "pipe.json")
    with pytest.raises(ProblemFileError, match=r"pipe\.json exists, was not written by forgetting"):
        Entry.read(path).save(tmp_path / "pipe.json")


def test_a_certificate_of_another_question_or_with_another_digest_is_refused(tmp_path):
    path = tmp_path / "loss-T3-k2.json"
    path.write_bytes((FOLDER / "loss-T3-k2.json").read_bytes())
    proof = (FOLDER / f"loss-T3-k2{PROOF}").read_bytes()
    path.with_suffix(PROOF).write_bytes(proof)
    assert Entry.read(path).verify().upper == pytest.approx(0.0910439, abs=1e-6)
    path.with_suffix(PROOF).write_bytes(proof.replace(b"1", b"2", 1))
    with pytest.raises(ProblemFileError, match="this is not the certificate of loss-T3-k2"):
        Entry.read(path).verify()
    path.with_suffix(PROOF).unlink()
    with pytest.raises(ProblemFileError, match=r"loss-T3-k2\.certificate\.json: no such file"):
        Entry.read(path).verify()
    other = replace(Entry.read(path), k=3, value=0.06, upper=0.0910440)
    moved = saved(tmp_path, other)
    moved.with_suffix(PROOF).write_bytes(proof)
    with pytest.raises(ProblemFileError, match="the value is recorded as"):
        Entry.read(moved).verify()
    saved(tmp_path, replace(other, value=exact_value(other.tasks, "loss", "with-replacement", 3)[0]))
    with pytest.raises(ProblemFileError, match="the certificate is about something else"):
        Entry.read(moved).verify()


def test_an_upper_bound_below_that_of_the_certificate_is_refused(tmp_path):
    entry = Entry.read(FOLDER / "loss-T3-k2.json")
    path = saved(tmp_path, replace(entry, upper=entry.value))
    path.with_suffix(PROOF).write_bytes((FOLDER / f"loss-T3-k2{PROOF}").read_bytes())
    with pytest.raises(ProblemFileError, match="is smaller than the one of its certificate"):
        Entry.read(path).verify()


# ----------------------------------------------------------------------------------------------------- the entries


def test_entries_survive_a_round_trip_to_the_last_bit(tmp_path):
    for entry in [pair_entry(), Entry.read(FOLDER / "loss-Tinf-k2.json"), shown().best(T=8, k=2)]:
        again = Entry.read(saved(tmp_path, entry))
        assert again == entry
        assert again.to_json() == entry.to_json()


@pytest.mark.parametrize(("T", "d", "rank"), [(3, 4, 3), (3, 5, 1), (4, 4, 4)])
def test_rows_or_kernels_of_tasks_give_the_tasks_back(T, d, rank):
    tasks = fg.families.gaussian(T, d, rank, seed=1)
    entry = Entry.of(tasks, "loss", 4)
    rows = [np.linalg.svd(tasks.task(m)[0], full_matrices=False)[2] for m in range(T)]
    w = tasks.w_star / np.linalg.norm(tasks.w_star)
    by_hand = fg.expect(fg.RegressionTasks(rows, [X @ w for X in rows]), DRAWS, 4).loss
    assert entry.kernels == (rank > 2)
    assert entry.value == pytest.approx(float(by_hand), rel=1e-9)
    assert entry.tasks.radius == pytest.approx(1.0)
    assert entry.tasks.scale == pytest.approx(1.0)


def test_tasks_without_rows_and_without_a_solution():
    lines = fg.families.two_lines(0.5)
    matrices, labels = zip(*(lines.task(m) for m in range(2)), strict=True)
    with_zero = fg.RegressionTasks([*matrices, np.zeros((1, 2))], [*labels, [0.0]])
    assert Entry.of(with_zero, "loss", 2).tasks.ranks.tolist() == [1, 1, 0]
    with pytest.raises(InvalidInputError, match=r"w\* is 0"):
        Entry.of(fg.RegressionTasks([[[1.0, 0.0]]], [[0.0]]), "loss", 2)


# ---------------------------------------------------------------------------------------------------- upper bounds


def test_upper_bounds_come_from_more_tasks_and_fewer_steps_where_that_is_a_proof():
    entries = [
        Entry("loss", None, 2, evidence="certified", upper=0.08, proof="0" * 64),
        Entry("loss", None, 4, evidence="certified", upper=0.06),
        Entry("forgetting", None, 2, evidence="certified", upper=0.047),
    ]
    assert upper_bound(entries, "loss", "with-replacement", 5, 2) == (0.08, "certificate of T = inf")
    assert upper_bound(entries, "loss", "with-replacement", None, 2) == (0.08, "certificate")
    assert upper_bound(entries, "loss", "with-replacement", None, 3) == (0.08, "certificate of k = 2")
    assert upper_bound(entries, "loss", "with-replacement", 3, 4) == (0.06, "fg.worst_case of T = inf")
    assert upper_bound(entries, "loss", "with-replacement", None, 1).source == "here:last-iterate/loss/universal"
    assert upper_bound(entries, "forgetting", "with-replacement", None, 3).source == "trivial/forgetting"
    assert upper_bound(entries, "loss", "cyclic", 2, 2).value > 0.08


def test_the_supremum_over_w_star_does_not_grow_with_k():
    rng = np.random.default_rng(0)
    for seed in range(5):
        tasks = fg.families.gaussian(3, 4, int(rng.integers(1, 4)), seed=seed)
        rows = [np.linalg.svd(tasks.task(m)[0], full_matrices=False)[2] for m in range(3)]
        P = [np.eye(4) - X.T @ X for X in rows]
        B = sum(np.eye(4) - p for p in P) / 6
        largest = []
        for _ in range(12):
            B = sum(p @ B @ p for p in P) / 3
            largest.append(np.linalg.eigvalsh(B)[-1])
        assert all(after <= before * (1 + 1e-12) for before, after in pairwise(largest))


# ---------------------------------------------------------------------------------------------------- the frontier


def test_the_best_entry_may_be_clones_of_fewer_tasks_in_few_dimensions():
    loss = shown()
    assert loss.best(T=6, k=2).T == 6
    assert loss.best(T=9, k=2).T == 3
    assert loss.best(T=4, k=2, d=2).T == 2
    assert loss.best(k=64).value >= max(e.value for e in loss.entries if e.k == 64 and e.value is not None)
    with pytest.raises(InvalidInputError, match="no entry on forgetting for T = 5, k = 999"):
        shown("forgetting").best(T=5, k=999)


@pytest.mark.parametrize(("T", "d", "k", "made"), [
    (None, None, 100, worst_levels(100)), (None, None, 777, worst_levels(777)),
    (40, None, 100, worst_equiangular(40, 100)), (None, 8, 10**4, worst_equiangular(8, 10**4)),
])  # fmt: skip
def test_the_loss_between_the_stored_numbers_of_steps_is_at_least_that_of_levels(T, d, k, made):
    entry = shown().best(T, k, d)
    assert entry.value >= made.loss(k) * (1 - 1e-9) > 1.0001 * two_lines_loss(k).value
    assert T is None or T % entry.T == 0
    assert d is None or entry.d <= d
    assert entry.verify().value == pytest.approx(entry.value, rel=1e-9)
    with pytest.raises(InvalidInputError, match="no entry on loss for T = any, k = 100, d <= 1"):
        shown().best(k=100, d=1)


def test_what_is_stored_is_answered_where_levels_are_no_worse():
    for entry in (entry for entry in shown().entries if entry.T in (8, None) and entry.k in (2, 16, 64)):
        best = shown().best(T=entry.T, k=entry.k)
        assert best.value == max(row.value for row in shown().rows if (row.T, row.k) == (entry.T, entry.k))
    assert shown("forgetting").best(k=777).T == 2
    assert fg.worstcase.frontier("loss", "cyclic").entries == ()
    with pytest.raises(InvalidInputError, match="there are k = none"):
        fg.worstcase.frontier("loss", "cyclic").best(k=100)


def test_every_answer_has_a_proved_upper_bound_that_its_file_does_not_keep(tmp_path):
    loss = shown()
    np.testing.assert_array_equal(loss.upper, loss.to_frame()["upper"])
    np.testing.assert_array_equal(loss.value, loss.to_frame()["value"])
    assert (loss.value <= loss.upper).all()
    for T, k in [(None, 100), (8, 64), (8, 3), (2, 5), (16, 16), (None, 10**5)]:
        entry = loss.best(T=T, k=k)
        assert entry.upper == pytest.approx(upper_bound(loss.entries, "loss", "with-replacement", entry.T, k).value)
        assert (entry.upper_from == "") == ((T, k) in {(8, 3), (2, 5)})
    levels = loss.best(k=100)
    assert levels.upper_from == "here:last-iterate/loss/universal"
    assert Entry.read(saved(tmp_path, levels)).upper is None
    assert loss.add(levels).entries[-1].upper is None
    assert levels.verify().upper is None


def test_slopes_are_those_of_the_rows_and_their_range_has_the_slope_of_the_supremum():
    rows = [row for row in fg.worstcase.frontier("loss", T=2).rows if row.k in (1, 2)]
    expected = math.log(rows[0].value / rows[1].value) / math.log(2)
    assert rows[0].slope is None
    for slope in rows[1].slope:  # lower and upper bounds of pairs are equal
        assert slope == pytest.approx(expected, rel=1e-9)
    for row in shown().rows:
        if row.slope is not None:
            assert row.slope.least - 1e-9 <= row.slope.value <= row.slope.most + 1e-9


def test_a_better_entry_of_the_user_is_shown_as_such_and_a_worse_one_changes_nothing(tmp_path):
    saved(tmp_path, pair_entry())
    mine = fg.worstcase.frontier("loss", T=2, folder=tmp_path)
    assert "1 of them your own" in mine.headline
    assert not mine.best(T=2, k=3).own
    better = replace(Entry.of(worst_equiangular(9, 21).tasks(), "loss", 21), origin="mine", own=True)
    found = shown().add(saved(tmp_path, better))
    assert found.best(T=9, k=21).own
    assert next(row for row in found.rows if (row.T, row.k) == (9, 21)).entry.own
    wrong = replace(pair_entry(), value=0.0)
    with pytest.raises(ProblemFileError, match="the value is recorded as 0, and"):
        shown().add(wrong)
    with pytest.raises(InvalidInputError, match="this frontier is about forgetting"):
        shown("forgetting").add(better)


def test_an_entry_of_the_user_that_beats_the_package_is_named_with_both_values():
    stored, mine = replace(pair_entry(), own=False), replace(worst_pair_entry("loss", 3), own=True)
    remark = f"your entry T = 2, k = 3 has {mine.value:.9g}, the package has {stored.value:.9g}"
    two = fg.worstcase.Frontier("loss", "with-replacement", (stored, mine))
    assert remark in two.to_table().notes
    assert remark not in replace(two, entries=(stored,)).to_table().notes
    assert remark not in replace(two, entries=(replace(stored, own=True), replace(mine, own=False))).to_table().notes


def test_what_improves_is_written_to_the_folder_of_the_user_only(tmp_path):
    before = sorted(FOLDER.iterdir())
    found = fg.worstcase.improve_frontier(3, 3, 21, restarts=4, steps=100, folder=tmp_path / "own")
    assert found.better
    assert found.path == tmp_path / "own" / "loss-T3-k21.json"
    short = fg.worstcase.improve_frontier(3, 3, 21, restarts=2, steps=5, folder=tmp_path / "own")
    assert short.known == found.entry.value
    assert Entry.read(found.path).verify().value == pytest.approx(found.entry.value, rel=1e-12)
    again = fg.worstcase.improve_frontier(k=21, tasks=found.entry.tasks, folder=tmp_path / "own")
    assert not again.better
    assert again.path is None
    assert "which is not less" in str(again)
    assert sorted(FOLDER.iterdir()) == before
    shown_there = fg.worstcase.frontier("loss", T=3, k=21, folder=tmp_path / "own")
    assert shown_there.rows[0].entry.own


def test_larger_tasks_keep_the_certificate_that_is_beside_the_file_of_the_user(tmp_path):
    better = Entry.read(FOLDER / "loss-T3-k2.json")
    worse = Entry.of(fg.families.repeated(fg.families.two_lines(0.5), 2), "loss", 2, origin="first")
    worse = replace(
        worse, T=3, w_star=worse.w_star, matrices=worse.matrices[:3], upper=better.upper, proof=better.proof
    )
    worse = replace(worse, value=exact_value(worse.tasks, "loss", "with-replacement", 2)[0], evidence="certified")
    path = saved(tmp_path, worse)
    path.with_suffix(PROOF).write_bytes((FOLDER / f"loss-T3-k2{PROOF}").read_bytes())
    second = replace(better, upper=None, proof=None, evidence="searched", origin="second")
    written = keep(second, tmp_path, worse)
    assert (written.value, written.path, written.origin) == (better.value, path, "first; tasks by second")
    assert Entry.read(path).verify().upper == pytest.approx(better.upper)
    assert keep(worse, tmp_path, written) is None


def test_questions_without_sense_are_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="no quantity 'regret'"):
        fg.worstcase.frontier("regret")
    with pytest.raises(InvalidInputError, match="give T and d, or tasks"):
        fg.worstcase.improve_frontier(k=3, folder=tmp_path)
    with pytest.raises(InvalidInputError, match="leave both out"):
        fg.worstcase.improve_frontier(2, 2, 3, tasks=fg.families.two_lines(0.5), folder=tmp_path)
    with pytest.raises(InvalidInputError, match="linear regression tasks"):
        fg.worstcase.improve_frontier(k=3, tasks=fg.ConvexSets([fg.Ball([0.0], 1.0)]), folder=tmp_path)


def test_a_folder_that_cannot_be_written_is_named_before_the_search(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(fg.errors.ProblemFileError, match=r"own: cannot be written .*file is not a folder"):
        fg.worstcase.improve_frontier(3, 2, 7, device="no device: a search would name it", folder=tmp_path / "file/own")


def test_the_figure_has_a_curve_for_each_number_of_tasks_and_the_certified_points():
    names = [series.name for series in shown().figure().series]
    assert names[0] == "T = 2, closed form"
    assert {"T = 3", "any T, certified supremum", "1/(2e)"} <= set(names)
    assert "smallest upper bound, any T" in [series.name for series in shown().figure(upper=True).series]
    certified = next(s for s in shown().figure().series if s.name == "any T, certified supremum")
    assert certified.x[:3] == (1.0, 2.0, 3.0)
    levels = next(s for s in shown().figure().series if s.name == "tasks in levels, as many as k needs")
    assert (levels.x[0], levels.x[-1]) == (64.0, 1e6)
    assert list(levels.y) == sorted(levels.y)
    assert {"limit: at least 0.2270", "limit: at most 0.2718"} <= set(names)


# --------------------------------------------------------------------------------------------------------- the data


def test_data_are_replaced_only_by_larger_values_and_keep_what_was_proved(tmp_path):
    pair = Entry.of(fg.families.two_lines(0.9), "loss", 2, origin="first")
    assert frontier_data.store(pair, tmp_path)
    assert not frontier_data.store(pair, tmp_path)
    proved = replace(pair, upper=0.2, evidence="certified", origin="fg.worst_case")
    assert frontier_data.store(proved, tmp_path)
    better = Entry.of(fg.families.worst_pair(2), "loss", 2, origin="second")
    assert frontier_data.store(better, tmp_path)
    there = Entry.read(tmp_path / "loss-T2-k2.json")
    assert (there.value, there.upper, there.evidence) == (better.value, 0.2, "certified")
    assert there.origin == "fg.worst_case; tasks by second"
    assert not frontier_data.store(pair, tmp_path)


def test_entries_that_clones_of_fewer_tasks_reach_are_pruned(tmp_path):
    lines = fg.families.repeated(fg.families.worst_pair(21), 2)
    useless = saved(tmp_path, Entry.of(lines, "loss", 20))
    useful = saved(tmp_path, Entry.of(worst_equiangular(8, 16).tasks(), "loss", 16))
    assert frontier_data.prune(tmp_path) == [useless]
    assert useful.exists()


def test_a_certified_entry_is_made_with_its_certificate(tmp_path):
    entry = frontier_data.certify(3, 1, "loss", tmp_path)
    assert Entry.read(tmp_path / "loss-T3-k1.json").verify().upper == pytest.approx(entry.upper, abs=1e-9)
    assert frontier_data.certify(None, 1, "loss", tmp_path).T is None


def test_hunts_start_from_the_known_worst_tasks():
    origins = [start.origin for start in known_starts(fg.claims.get("thm:cl_by_sgd_main", "loss"))]
    assert any(origin.startswith("known worst tasks: loss-T") for origin in origins)
    assert all(isinstance(entry, KnownWorst) for entry in known_worst("forgetting"))


def test_the_page_has_the_tables_of_the_data():
    page = (Path(__file__).parents[2] / "docs" / "frontier.md").read_text(encoding="utf-8")
    made = page.partition(frontier_data.BEGIN)[2].partition(frontier_data.END)[0].strip()
    assert made == frontier_data.page_tables(), "python -m tools.frontier_data --page docs/frontier.md"


@pytest.mark.parametrize("quantity", ["loss", "forgetting"])
def test_the_pictures_of_the_page_show_the_data(quantity):
    page = Path(__file__).parents[2] / "docs" / "frontier.md"
    with Image.open(frontier_data.picture_files(page)[quantity]) as picture:
        kept = picture.info[frontier_data.SHOWN]
    drawn = frontier_data.shown_points(shown(quantity).figure(upper=True))
    assert kept == drawn, "python -m tools.frontier_data --page docs/frontier.md"


def test_pictures_are_drawn_beside_the_page_and_another_value_is_another_digest(tmp_path):
    frontier_data.draw_pictures(tmp_path / "page.md")
    assert {path.name for path in (tmp_path / "images").iterdir()} == {"frontier-loss.png", "frontier-forgetting.png"}
    figure = shown().figure(upper=True)
    first = figure.series[0]
    moved = replace(figure, series=(replace(first, y=(first.y[0] * 1.001, *first.y[1:])), *figure.series[1:]))
    assert frontier_data.shown_points(moved) != frontier_data.shown_points(figure)


def test_the_calls_that_are_named_as_origins_of_levels_exist():
    names = {entry.origin.partition("(")[0] for entry in shown().entries if entry.construction}
    assert all(hasattr(levels_module, name.removeprefix("forgetting.tasks.levels.")) for name in names), names


def test_what_the_page_says_about_bounds_and_columns_is_so():
    ratio = {q: {row.k: row.upper.value / row.value for row in shown(q).envelope} for q in ("loss", "forgetting")}
    assert max(ratio["loss"][k] for k in (1, 2, 3, 4)) < 1.045
    assert max(ratio["loss"].values()) == ratio["loss"][8] < 1.615
    assert ratio["loss"][10**5] < 1.215
    assert max(ratio["forgetting"][k] for k in (2, 3, 4)) < 1.125
    assert max(ratio["forgetting"].values()) == ratio["forgetting"][5] < 9.95
    assert max(value for k, value in ratio["forgetting"].items() if k >= 512) < 5.75
    for T in (3, 4, 8, 16, 32):
        column = [row for row in shown().rows if row.T == T]
        top = max(column, key=lambda row: row.k * row.value)
        assert top.k == 2 * T
        assert 1 / (2 * math.e) < column[-1].k * column[-1].value < 0.1843
    ranks = {k: int(np.bincount(shown().best(k=k).tasks.ranks).argmax()) for k in (4, 8, 16, 32)}
    assert ranks == {4: 8, 8: 7, 16: 3, 32: 1}


def test_what_the_page_says_about_slopes_is_proved():
    any_number = {row.k: row for row in shown().envelope}
    assert 0.85 < any_number[2].slope.least < any_number[2].slope.most < 0.96
    assert all(any_number[k].slope.least < 1 < any_number[k].slope.most for k in (3, 4))


def test_a_value_above_a_proved_bound_is_an_error_and_not_an_entry(tmp_path, monkeypatch):
    monkeypatch.setattr(frontier_improving, "upper_bound", lambda *_: Upper(1e-6, "a wrong proof"))
    tasks = worst_equiangular(9, 21).tasks()
    with pytest.raises(InvalidInputError, match=r"is above the upper bound 1e-06 \(a wrong proof\)"):
        fg.worstcase.improve_frontier(k=21, tasks=tasks, folder=tmp_path)
    assert not list(tmp_path.iterdir())
