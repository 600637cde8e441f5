"""The audit of matrices of accuracies: its numbers, intervals that hold, the share of the order, files and commands."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import forgetting as fg
from effort import rounds
from forgetting.auditing import MatrixAudit, share_of_order
from forgetting.errors import InvalidInputError, ProblemFileError

LOGS = Path(__file__).parents[1] / "dynamics" / "accuracy_logs"
R = np.array([[0.9, 0.1, 0.2], [0.7, 0.8, 0.1], [0.6, 0.7, 0.9]])


def some_runs(orders, seeds, effect=0.1, noise=0.02, T=3, seed=0):
    """Matrices (by task) for each order and seed, whose accuracies move by an effect of the order and by noise."""
    rng = np.random.default_rng(seed)
    order_of, tables = [], []
    for order in orders:
        shift = effect * rng.standard_normal()
        for _ in range(seeds):
            order_of.append(order)
            place = np.empty_like(R)
            place[:, order] = R
            tables.append(np.clip(0.6 * place + 0.2 + shift + noise * rng.standard_normal(), 0, 1))
    return fg.AccuracyMatrices(np.array(tables), orders=np.array(order_of))


ORDERS = list(itertools.permutations(range(3)))


# -------------------------------------------------------------------------------------------------------------- numbers


def test_metrics_are_those_of_each_run_and_intervals_are_by_students_t():
    rng = np.random.default_rng(0)
    tables = np.clip(R + 0.03 * rng.standard_normal((4, 3, 3)), 0, 1)
    audit = fg.audit(fg.AccuracyMatrices(100 * tables))
    assert len(audit.metrics) > 12
    for quantity, word in (("backward_transfer", "gem"), ("average_incremental", "diaz")):
        metric, own = (
            audit.metric(quantity, word),
            [getattr(fg.metrics, quantity)(table, None, word) for table in tables],
        )
        np.testing.assert_allclose(metric.values, own, atol=1e-12)
        np.testing.assert_allclose(
            (metric.low, metric.high), stats.t.interval(0.95, 3, np.mean(own), np.std(own, ddof=1) / 2), atol=1e-12
        )
    lost = audit.metric("forgetting", "mammoth").values
    np.testing.assert_allclose(lost, [np.nanmean(fg.metrics.forgetting(t, convention="mammoth")) for t in tables])
    sources = {source for metric in audit.metrics for source in metric.sources}
    assert {"Avalanche 0.6.0: StreamBWT", "Mammoth e75a491: backward_transfer"} <= sources


def test_one_run_has_no_uncertainty_and_says_so():
    audit = fg.audit(fg.AccuracyMatrices(R))
    assert all(metric.sd is metric.low is metric.high is None for metric in audit.metrics)
    assert "There is one run, so that nothing is known of the uncertainty" in str(audit).replace("\n  ", " ")
    assert "cannot be told: there is one run" in str(audit).replace("\n  ", " ")


def test_the_task_that_is_forgotten_most_is_found_by_its_name_in_any_order():
    audit = fg.audit(fg.AccuracyMatrices(R[:, [1, 2, 0]], [2, 0, 1], names=["b", "c", "a"]))
    assert [(task.name, round(task.forgotten, 12)) for task in audit.tasks] == [("b", 0.1), ("c", 0.0), ("a", 0.3)]
    assert "Task a is forgotten most: 90.0 % right after it was learned, 60.0 % in the end." in audit.findings


def test_the_row_before_learning_gives_forward_transfer():
    assert not any(
        m.word == "gem" for m in fg.audit(fg.AccuracyMatrices(R)).metrics if m.quantity == "forward_transfer"
    )
    found = fg.audit(fg.AccuracyMatrices(R, before=[0.3, 0.2, 0.2])).metric("forward_transfer", "gem")
    assert found.mean == pytest.approx(((0.1 - 0.2) + (0.1 - 0.2)) / 2)


def test_signs_of_another_convention_come_first():
    rng = np.random.default_rng(0)
    full = np.full((6, 5), 0.1) + 0.8 * (np.arange(6)[:, None] > np.arange(5)) + 0.01 * rng.random((6, 5))
    audit = fg.audit(fg.AccuracyMatrices(full[:-1]))
    assert audit.findings[0] == audit.doubts[0]
    assert audit.findings[0].startswith("rows seem to be shifted by one")
    assert fg.audit(fg.AccuracyMatrices(full)).doubts == ()


def test_tasks_that_come_again_have_the_numbers_that_are_defined():
    again = np.array([[0.9, 0.1], [0.6, 0.8], [0.9, 0.7]])
    audit = fg.audit(fg.AccuracyMatrices(again, [0, 1, 0], before=False))
    assert {metric.word for metric in audit.metrics} <= {"", "icarl", "diaz", "gem", "chaudhry"}
    assert audit.metric("backward_transfer", "gem").mean == pytest.approx(((0.9 - 0.9) + (0.7 - 0.8)) / 2)


def test_what_was_not_evaluated_or_learned_is_said_and_not_guessed():
    holes = np.array([[0.9, np.nan, 0.1], [np.nan, 0.8, 0.2], [0.5, 0.7, 0.9]])
    audit = fg.audit(fg.AccuracyMatrices(holes))
    assert audit.findings[0].startswith("The average accuracy is 70.0 % after the last task. There is one run")
    assert not any(metric.quantity == "average_incremental" for metric in audit.metrics)
    assert MatrixAudit.from_json(audit.to_json()) == audit
    some = fg.audit(fg.AccuracyMatrices(R[:2], [0, 1], names=["a", "b", "c"]))
    assert [task.name for task in some.tasks] == ["a", "b"]
    assert some.metric("average_accuracy").mean == pytest.approx(0.75)
    assert some.figure().columns == ("a", "b", "c")
    holes[2, 1] = np.nan
    with pytest.raises(
        InvalidInputError, match="run 0: task 1 was not evaluated in the last row, which all metrics need"
    ):
        fg.audit(fg.AccuracyMatrices(holes))


# ----------------------------------------------------------------------------------------------- the share of the order


def test_the_share_of_the_order_is_that_of_the_analysis_of_variance():
    audit = fg.audit(some_runs(ORDERS, 4))
    values = np.array(audit.metric("average_accuracy").values).reshape(6, 4)
    f, p = stats.f_oneway(*values)
    share = audit.effects[0].of
    assert share.p_value == pytest.approx(p, abs=1e-9)
    # the closed forms of the balanced case: theta = (F / quantile - 1) / n
    for end, tail in ((share.low, 0.975), (share.high, 0.025)):
        theta = max((f / stats.f.ppf(tail, 5, 18) - 1) / 4, 0)
        assert end == pytest.approx(theta / (1 + theta), abs=1e-9)
    assert share.share == pytest.approx(max((f - 1) / 4, 0) / (1 + max((f - 1) / 4, 0)), abs=1e-9)
    assert "The order explains" in audit.findings[-1]
    assert "6 orders, 24 runs" in audit.findings[-1]


@pytest.mark.parametrize("sizes", [(3, 3, 3, 3), (1, 2, 6, 4)])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_the_interval_of_the_share_holds_for_unequal_numbers_of_runs(sizes, share):
    rng, total = np.random.default_rng(0), rounds(300, 4000)
    names = [str(order) for order, size in enumerate(sizes) for _ in range(size)]
    held = rejected = 0
    for _ in range(total):
        effects = np.repeat(rng.standard_normal(len(sizes)), sizes)
        found = share_of_order(np.sqrt(share) * effects + np.sqrt(1 - share) * rng.standard_normal(len(names)), names)
        held += found.low <= share <= found.high
        rejected += found.p_value < 0.05
    expected = 0.975 if share == 0 else 0.95  # at 0 no interval can begin too high by chance on both sides
    assert abs(held / total - expected) < 4 * np.sqrt(0.05 / total)
    if share == 0:
        assert abs(rejected / total - 0.05) < 4 * np.sqrt(0.05 / total)


def test_intervals_of_means_hold_over_orders_where_orders_are_repeated():
    found = 0
    for seed in range(rounds(100, 1000)):
        rng = np.random.default_rng(seed)
        orders = [ORDERS[place] for place in rng.permutation(6)[:4]]
        metric = fg.audit(some_runs(orders, 5, effect=0.05, noise=0.002, seed=seed)).metric("average_accuracy")
        found += metric.low <= 0.6 * R[-1].mean() + 0.2 <= metric.high  # the mean over all orders that there could be
    assert found >= 0.87 * rounds(100, 1000)


def test_an_order_with_many_runs_counts_once_in_means_and_intervals():
    orders = [ORDERS[0]] * 20 + ORDERS[1:5]
    total = rounds(200, 1000)
    found = 0
    for seed in range(total):
        shifts = 0.05 * np.random.default_rng(seed).standard_normal(5)
        runs = [R * 0.6 + 0.2 + shift for shift in np.repeat(shifts, [20, 1, 1, 1, 1])]
        metric = fg.audit(fg.AccuracyMatrices(runs, order_names=list(map(str, orders)))).metric("average_accuracy")
        np.testing.assert_allclose(metric.mean, 0.6 * R[-1].mean() + 0.2 + shifts.mean(), atol=1e-12)
        found += metric.low <= 0.6 * R[-1].mean() + 0.2 <= metric.high
    assert abs(found / total - 0.95) < 4 * np.sqrt(0.05 * 0.95 / total)


@pytest.mark.parametrize(
    ("matrices", "reason"),
    [
        (lambda: fg.AccuracyMatrices([R, R * 0.9]), "all runs have the same order"),
        (
            lambda: some_runs(ORDERS, 1),
            "every run has an order of its own, so that order and seed cannot be told apart",
        ),
        (lambda: fg.AccuracyMatrices([R, R, R], order_names=["a", "a", ""]), "the order of 1 of 3 runs is not known"),
        (lambda: fg.AccuracyMatrices([R, R, R], order_names=["a", "a", "b"]), "all runs have the same value"),
    ],
)
def test_what_cannot_be_told_of_the_order_is_said(matrices, reason):
    audit = fg.audit(matrices())
    assert f"cannot be told: {reason}." in audit.findings[-1]
    assert audit.effects[0].of.share is None


def test_orders_without_noise_explain_all():
    found = share_of_order([1.0, 1.0, 2.0, 2.0], ["a", "a", "b", "b"])
    assert (found.share, found.low, found.within) == (1.0, None, 0.0)
    audit = fg.audit(fg.AccuracyMatrices([R, R, 0.9 * R, 0.9 * R], order_names=list("aabb")))
    assert "The order explains all differences" in audit.findings[-1]


# -------------------------------------------------------------------------------------------------- results and options


@pytest.mark.parametrize("name", ["mammoth_logs_pyd.txt", "avalanche_text.log", "pycil.log"])
def test_a_result_comes_back_from_json_and_files_and_writes_pages(tmp_path, name):
    audit = fg.audit(LOGS / name)
    assert MatrixAudit.from_json(audit.to_json()) == audit
    audit.save(tmp_path / "audit.npz")
    assert MatrixAudit.load(tmp_path / "audit.npz") == audit
    for ending in ("html", "csv", "tex"):
        audit.write_page(tmp_path / f"page.{ending}")
    assert "<svg" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "StreamBWT" in repr(audit) or "StreamBWT" in str(audit).replace("\n", "")
    assert audit.title in audit.headline


def test_runs_in_different_orders_are_drawn_by_place():
    figure = fg.audit(some_runs(ORDERS, 2)).figure()
    assert figure.xlabel == "place in the order"
    assert np.argmax(np.array(figure.values), axis=1).tolist() == [0, 1, 2]
    assert fg.audit(fg.AccuracyMatrices(R, names=["a", "b", "c"])).figure().columns == ("a", "b", "c")
    shuffled = fg.audit(fg.AccuracyMatrices([R, R], order_names=["classes 0 1 2", "classes 2 0 1"]))
    assert (shuffled.figure().xlabel, shuffled.figure().columns) == ("place in the order", ("1", "2", "3"))
    assert "Task at place 1 is forgotten most" in " ".join(shuffled.findings)


def test_a_picture_of_many_tasks_has_some_of_them():
    audit = fg.audit(fg.AccuracyMatrices(np.tri(200)))
    assert (len(audit.figure().rows), len(audit.figure().columns)) == (60, 60)
    assert audit.figure().rows[-1] == "200"
    assert "60 of 200 steps" in audit.figure().caption
    assert len(audit.to_html()) < 2_000_000


@pytest.mark.parametrize("option", [{"rows": 3}, {"order": [0, 1, 2]}, {"passes": 3}, {"scheme": "sgd"}, {"seed": 0}])
def test_options_without_a_meaning_are_named(option):
    with pytest.raises(InvalidInputError, match=f"{next(iter(option))}= has no meaning for an audit of accuracy matr"):
        fg.audit(fg.AccuracyMatrices(R), **option)


def test_an_array_is_audited_as_accuracies():
    for array in (R, np.stack([R, R])):
        assert fg.audit(array).metrics == fg.audit(fg.AccuracyMatrices(array)).metrics
    with pytest.raises(InvalidInputError, match="is no accuracy, which is between 0 and 1"):
        fg.audit(R - 2)


def test_a_list_alone_is_not_taken_for_accuracies_and_a_damaged_file_is_named(tmp_path):
    for array in ([R, R], R.tolist(), [R.tolist(), R.tolist()]):
        with pytest.raises(InvalidInputError, match=r"does not say what it is.*fg.AccuracyMatrices\(R\)"):
            fg.audit(array)
    with pytest.raises(ProblemFileError, match=r"no-such\.log"):
        fg.audit(str(tmp_path / "no-such.log"))
    with pytest.raises(InvalidInputError, match="no metric 'bwt'"):
        fg.audit(fg.AccuracyMatrices(R)).metric("bwt")
    with pytest.raises(InvalidInputError, match=r"fg\.audit\(R\) has all metrics.*R\.values\[0\]"):
        fg.metrics.backward_transfer(fg.AccuracyMatrices(R))
    with pytest.raises(InvalidInputError, match=r"accuracies are no tasks; fg\.audit\(R\) reads them"):
        fg.expect(fg.AccuracyMatrices(R), "random", 3)
