"""The reduction: kernel and data agree, ranks, clones, chunks, sparse columns, realizability."""

import numpy as np
import pytest
import scipy.sparse as sp

import forgetting as fg
import forgetting.geometry.qr
import forgetting.tasks.regression
from forgetting.errors import NotRealizableError
from forgetting.orderings import Cyclic, Explicit, GreedyResidual, Reshuffled, WithReplacement


def stack(tasks):
    pairs = [tasks.task(m) for m in range(tasks.num_tasks)]
    return np.vstack([X for X, _ in pairs]), np.concatenate([y for _, y in pairs])


def realizable(matrices, seed=0, **options):
    w = np.random.default_rng(seed).standard_normal(matrices[0].shape[1])
    return fg.RegressionTasks(matrices, [X @ w for X in matrices], **options)


# ---------------------------------------------------------------------------------------------------------- kernels


@pytest.mark.parametrize("condition", [1, 10, 100])
@pytest.mark.parametrize(
    "scheme",
    [fg.schemes.Kaczmarz(), fg.schemes.SGD(0.7), fg.schemes.SGD(0.5, "loss"), fg.schemes.Ridge(0.3), fg.schemes.NLMS()],
    ids=str,
)
def test_a_kernel_gives_the_trajectories_of_the_data(condition, scheme):
    tasks = fg.families.gaussian(T=5, d=30, rank=3, seed=1, condition=condition)
    X, y = stack(tasks)
    kernel = fg.KernelTasks(X @ X.T, y, np.repeat(np.arange(5), 3))
    for ordering in (Reshuffled(), GreedyResidual()):
        data, dual = (fg.run(problem, ordering, 12, scheme=scheme, seed=2) for problem in (tasks, kernel))
        assert data.order.tolist() == dual.order.tolist()
        np.testing.assert_allclose(dual.iterates @ X, data.iterates, rtol=0, atol=1e-10)
        np.testing.assert_allclose(dual.predictions, data.iterates @ X.T, rtol=0, atol=1e-10)
        np.testing.assert_allclose(dual.loss_matrix, data.loss_matrix, rtol=0, atol=1e-10)
        np.testing.assert_allclose(dual.forgetting, data.forgetting, rtol=0, atol=1e-10)
    np.testing.assert_allclose(kernel.w_star @ X, tasks.w_star, rtol=0, atol=1e-9)
    assert kernel.scale == pytest.approx(tasks.scale, rel=1e-9)
    np.testing.assert_allclose(kernel.norms, tasks.norms, rtol=1e-10)
    assert kernel.ranks.tolist() == tasks.ranks.tolist()


@pytest.mark.parametrize("loss", ["sum", "mean"])
def test_a_kernel_agrees_with_the_data_from_a_start_and_with_rank_deficient_tasks(loss):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((9, 6))
    X[4] = X[3]
    X[8] = X[6] - X[7]
    y = X @ rng.standard_normal(6)
    groups = np.repeat(["b", "a", "c"], 3)
    data = fg.RegressionTasks.from_arrays(X, y, groups, loss=loss)
    dual = fg.KernelTasks(X @ X.T, y, groups, loss=loss)
    assert data.names == dual.names == ("b", "a", "c")
    assert data.ranks.tolist() == dual.ranks.tolist() == [3, 2, 2]
    assert data.rank_joint == dual.rank_joint == 6
    start = rng.standard_normal(9)
    runs = fg.run(data, Cyclic(), 9, w0=start @ X), fg.run(dual, Cyclic(), 9, w0=start)
    np.testing.assert_allclose(runs[1].iterates @ X, runs[0].iterates, rtol=0, atol=1e-10)
    np.testing.assert_allclose(runs[1].losses, runs[0].losses, rtol=0, atol=1e-10)
    np.testing.assert_allclose(runs[1].iterates[0], start, rtol=0, atol=1e-15)
    np.testing.assert_allclose(dual.task_losses(start), data.task_losses(start @ X), rtol=1e-10)
    assert dual.task_loss(1, start) == pytest.approx(data.task_loss(1, start @ X), rel=1e-10)


def test_a_kernel_that_is_no_feature_map_of_ours_learns_its_tasks():
    points = np.linspace(0, 3, 12)
    kernel = np.exp(-((points[:, None] - points) ** 2) / 0.1)
    tasks = fg.KernelTasks(kernel, np.sin(points), np.arange(12) % 3)
    run = fg.run(tasks, Cyclic(), 30)
    assert run.losses[-1] < 1e-6 * run.losses[0]
    np.testing.assert_allclose(run.predictions[1][tasks.rows_of[0]], np.sin(points)[::3], atol=1e-9)
    with pytest.raises(fg.errors.NotSupportedError, match="predictions are for KernelTasks"):
        _ = fg.run(fg.families.two_lines(0.2), Cyclic(), 2).predictions


def test_kernel_norms_that_differ_by_orders_of_magnitude_do_not_hide_a_task():
    X, y = stack(fg.families.gaussian(T=3, d=9, rank=2, seed=4))
    size = np.repeat([1e6, 1.0, 1e-6], 2)
    X, y = X * size[:, None], y * size
    tasks = fg.KernelTasks(X @ X.T, y, np.repeat(np.arange(3), 2))
    assert tasks.ranks.tolist() == [2, 2, 2]
    assert tasks.rank_joint == 6


# ------------------------------------------------------------------------------------------------------------ ranks


@pytest.mark.parametrize("d", [9, 200])
def test_norms_that_differ_by_orders_of_magnitude_do_not_hide_a_task(d, dynamics):
    rng = np.random.default_rng(5)
    matrices = [size * rng.standard_normal((2, d)) for size in (1e6, 1e2, 1.0, 1e-6)]
    tasks = realizable(matrices)
    assert tasks.rank_joint == 8
    assert tasks.ranks.tolist() == [2, 2, 2, 2]
    assert tasks.realizability.holds
    run = fg.run(tasks, Cyclic(), 8)
    dense = dynamics(matrices, [tasks.task(m)[1] for m in range(4)], run.order)
    np.testing.assert_allclose(run.iterates, dense.iterates, rtol=0, atol=1e-9)
    np.testing.assert_allclose(run.loss_matrix[:, 3], dense.loss_matrix[:, 3], rtol=0, atol=1e-9 * 1e-12)


@pytest.mark.parametrize("angle", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("d", [2, 50])
def test_nearly_dependent_tasks_stay_two_tasks(angle, d):
    matrices = [np.zeros((1, d)), np.zeros((1, d))]
    matrices[0][0, 0] = 1.0
    matrices[1][0, :2] = np.cos(angle), np.sin(angle)
    tasks = fg.RegressionTasks(matrices, [[1.0], [np.cos(angle)]])
    assert tasks.rank_joint == 2
    run = fg.run(tasks, Cyclic(), 2)
    # the first step solves both but for sin^2: w_1 = e_1 already satisfies the second equation
    np.testing.assert_allclose(run.iterates[1, :2], [1, 0], atol=1e-15)
    assert run.losses[1] < 1e-30


def test_rank_tol_decides_ranks_and_is_settable():
    X = np.diag([1.0, 1e-5])
    assert fg.RegressionTasks([X], [np.zeros(2)]).ranks.tolist() == [2]
    assert fg.RegressionTasks([X], [np.zeros(2)], rank_tol=1e-4).ranks.tolist() == [1]
    noise = np.random.default_rng(6).standard_normal((4, 2)) @ np.random.default_rng(7).standard_normal((2, 5))
    assert fg.RegressionTasks([noise], [np.zeros(4)]).ranks.tolist() == [2]


def test_a_kernel_keeps_directions_down_to_the_root_of_the_tolerance_for_data():
    turn = np.linalg.qr(np.random.default_rng(17).standard_normal((3, 3)))[0]
    for smallest, rank in ((1e-6, 3), (1e-9, 2)):
        X = turn * [1.0, 0.1, smallest]
        assert fg.KernelTasks(X @ X.T, X @ np.ones(3), [0, 0, 0]).ranks.tolist() == [rank]
        assert fg.RegressionTasks([X], [X @ np.ones(3)]).ranks.tolist() == [3]


def test_ill_conditioned_tasks_that_share_a_subspace_do_not_seem_to_differ():
    rng = np.random.default_rng(8)
    left, right = np.linalg.qr(rng.standard_normal((3, 3)))[0], np.linalg.qr(rng.standard_normal((20, 3)))[0].T
    first = left * np.array([1, 1e-3, 1e-6]) @ right
    second = rng.standard_normal((3, 3)) @ right
    tasks = realizable([first, second])
    assert tasks.rank_joint == 3
    assert tasks.realizability.holds


# ----------------------------------------------------------------------------------------------------------- clones


def test_clones_collapse_to_a_multiplicity_however_they_were_made():
    base = fg.families.gaussian(T=3, d=8, rank=2, seed=9)
    X, y = [base.task(m)[0] for m in range(3)], [base.task(m)[1] for m in range(3)]
    matrices = [X[0], X[1], X[0].copy(), X[2], X[0].astype(object).astype(float), X[1]]
    labels = [y[0], y[1], y[0].copy(), y[2], y[0].tolist(), y[1].copy()]
    tasks = fg.RegressionTasks(matrices, labels)
    assert tasks.num_tasks == 6
    assert tasks.geometry.num_distinct == 3
    assert tasks.geometry.counts.tolist() == [3, 2, 1]
    assert tasks.geometry.index.tolist() == [0, 1, 0, 2, 0, 1]
    assert tasks.rank_avg == 2
    w = np.ones(8)
    np.testing.assert_allclose(tasks.task_losses(w), base.task_losses(w)[[0, 1, 0, 2, 0, 1]], rtol=1e-14)
    assert tasks.loss(w) == pytest.approx(np.mean(tasks.task_losses(w)))
    np.testing.assert_allclose(tasks.geometry.hessian.trace(), sum(np.sum(A**2) for A in matrices) / 6)


def test_tasks_that_differ_only_in_their_labels_or_their_matrix_are_not_clones():
    X = np.array([[1.0, 2.0]])
    assert fg.RegressionTasks([X, X], [[1.0], [2.0]]).geometry.num_distinct == 2
    assert fg.RegressionTasks([X, 2 * X], [[1.0], [1.0]]).geometry.num_distinct == 2
    swapped = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert fg.RegressionTasks([swapped, swapped[::-1], swapped[:, ::-1]], np.zeros((3, 2))).geometry.num_distinct == 3
    rows = [sp.csr_array([[1.0, 0, 0], [0, 2, 0]]), sp.csr_array([[1.0, 2, 0], [0, 0, 0]])]
    assert fg.RegressionTasks(rows, np.zeros((2, 2))).geometry.num_distinct == 2


def test_clones_are_found_whatever_their_memory_layout():
    X = np.random.default_rng(15).standard_normal((3, 5))
    forms = [X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], X.tolist()]
    assert fg.RegressionTasks(forms, np.zeros((4, 3))).geometry.num_distinct == 1
    thin = [sp.csr_array(X), sp.csc_array(X), sp.coo_array(X)]
    assert fg.RegressionTasks(thin, np.zeros((3, 3))).geometry.num_distinct == 1


def test_many_distinct_tasks_with_one_label_are_taken_in_quickly(monkeypatch):
    looks = []
    look = forgetting.tasks.regression.fingerprint
    monkeypatch.setattr(forgetting.tasks.regression, "fingerprint", lambda *arrays: looks.append(1) or look(*arrays))
    rows = np.random.default_rng(16).choice([0.0, 1.0], size=(500, 1, 40))
    assert fg.RegressionTasks(rows, np.zeros((500, 1))).geometry.num_distinct == 500
    assert len(looks) == 500  # each task is read once, and none is compared with the others


def test_temporaries_of_a_lazy_sequence_are_never_taken_for_clones():
    class Lazy:
        """Makes its items when asked: their addresses are used again and again."""

        def __init__(self, items):
            self.items = items

        def __len__(self):
            return len(self.items)

        def __getitem__(self, i):
            return (self.items[i] + 0.0).tolist()

    rows = np.random.default_rng(10).standard_normal((200, 1, 3))
    labels = rows @ np.ones(3)
    for tasks in (fg.RegressionTasks(Lazy(rows), Lazy(labels)), fg.RegressionTasks(rows, labels)):
        assert tasks.geometry.num_distinct == 200
        np.testing.assert_allclose(np.concatenate([tasks.task(m)[0] for m in range(200)]), rows[:, 0])


def test_ten_thousand_clones_cost_two_tasks():
    clones = fg.families.repeated(fg.families.two_lines(0.5), 5000)
    assert clones.num_tasks == 10_000
    assert clones.geometry.rows.shape == (2, 2)
    run = fg.run(clones, WithReplacement(), 20)
    few = fg.run(fg.families.two_lines(0.5), Explicit(run.order % 2), 20)
    np.testing.assert_allclose(run.losses, few.losses, rtol=1e-12)
    np.testing.assert_allclose(run.forgetting, few.forgetting, rtol=1e-9, atol=1e-16)


# ------------------------------------------------------------------------------------------- wide, chunked and sparse


@pytest.mark.parametrize("kind", ["plain", "ill-conditioned", "rank-deficient", "zero row", "sparse", "mixed"])
@pytest.mark.parametrize("d", [61, 97, 120, 403])
def test_the_chunked_factorisation_agrees_with_the_direct_one(kind, d, monkeypatch):
    rng = np.random.default_rng(11)
    matrices = [rng.standard_normal((3, d)) for _ in range(4)]
    if kind == "ill-conditioned":
        matrices[1][2] = matrices[0][0] + 1e-8 * rng.standard_normal(d)
    if kind == "rank-deficient":
        matrices[1][2] = matrices[0][0]
        matrices[3][1] = matrices[3][0]
    if kind == "zero row":
        matrices[2][1] = 0
    if kind in ("sparse", "mixed"):
        matrices = [sp.csr_array(X * (rng.random((3, d)) < 0.2)) for X in matrices]
    if kind == "mixed":
        matrices[1] = matrices[1].toarray()
    w0 = rng.standard_normal(d)
    runs, ranks = [], []
    for entries in (2**24, 1):  # one chunk; then the narrowest there are, 24 columns
        monkeypatch.setattr(forgetting.geometry.qr, "CHUNK_ENTRIES", entries)
        tasks = realizable(matrices, seed=12)
        ranks.append((tasks.rank_joint, tasks.ranks.tolist()))
        runs.append(fg.run(tasks, Cyclic(), 8, w0=w0))
        basis = tasks.geometry.frame.basis
        np.testing.assert_allclose(basis.T @ basis, np.eye(tasks.rank_joint), rtol=0, atol=1e-13)
    assert ranks[0] == ranks[1]
    np.testing.assert_allclose(runs[0].iterates, runs[1].iterates, rtol=0, atol=1e-12)
    np.testing.assert_allclose(runs[0].loss_matrix, runs[1].loss_matrix, rtol=0, atol=1e-11)


@pytest.mark.parametrize("near", [1.0, 1e-4, 1e-7, 1e-12, 0.0])
@pytest.mark.parametrize("entries", [2**24, 1])
def test_the_factorisation_is_exact_and_orthonormal_however_near_the_rows(near, entries, monkeypatch):
    monkeypatch.setattr(forgetting.geometry.qr, "CHUNK_ENTRIES", entries)
    rng = np.random.default_rng(18)
    X = rng.standard_normal((4, 90)) * np.array([[1e5], [1.0], [1e-5], [1.0]])
    X[3] = X[1] + near * X[3]
    basis, triangle = forgetting.geometry.qr.row_space_qr([X[:1], X[1:]], None)
    np.testing.assert_allclose(basis.T @ basis, np.eye(4), rtol=0, atol=1e-13)
    size = np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose((basis @ triangle).T / size, X / size, rtol=0, atol=1e-14)


def test_more_than_one_chunk_is_used_when_entries_are_few(monkeypatch):
    widths = []
    dense = forgetting.geometry.qr.dense
    monkeypatch.setattr(forgetting.geometry.qr, "CHUNK_ENTRIES", 1)
    monkeypatch.setattr(
        forgetting.geometry.qr,
        "dense",
        lambda X, columns: widths.append(dense(X, columns).shape[1]) or dense(X, columns),
    )
    _ = fg.families.gaussian(2, 100, rank=3).geometry
    assert max(widths) < 30


@pytest.mark.parametrize("rows", [2, 12])
def test_sparse_tasks_with_empty_columns_are_the_dense_ones(rows):
    rng = np.random.default_rng(13)
    dense = []
    for _ in range(3):
        X = np.zeros((rows, 40))
        X[:, ::4] = rng.standard_normal((rows, 10))
        dense.append(X)
    w0 = rng.standard_normal(40)
    tasks = realizable([sp.csr_array(X) for X in dense]), realizable(dense)
    runs = [fg.run(problem, Cyclic(), 7, w0=w0) for problem in tasks]
    assert tasks[0].geometry.frame.columns.tolist() == list(range(0, 40, 4))
    assert tasks[0].rank_joint == tasks[1].rank_joint
    np.testing.assert_allclose(runs[0].iterates, runs[1].iterates, rtol=0, atol=1e-12)
    np.testing.assert_allclose(runs[0].losses, runs[1].losses, rtol=0, atol=1e-12)
    np.testing.assert_allclose(tasks[0].w_star, tasks[1].w_star, rtol=0, atol=1e-12)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.lil_array, sp.dok_array])
def test_any_sparse_format_will_do(form):
    dense = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0]])
    tasks = fg.RegressionTasks([form(dense), dense], [[2.0, 1.0], [2.0, 1.0]])
    np.testing.assert_allclose(fg.run(tasks, Cyclic(), 1).iterates[1], [1, 1, 0], atol=1e-15)


def test_sparse_input_is_neither_changed_nor_trusted_to_be_canonical():
    # one row, with the entry (0, 0) stored twice and out of order: 2 + 3 and 1
    X = sp.csr_array((np.array([1.0, 2.0, 3.0]), np.array([1, 0, 0]), np.array([0, 3])), shape=(1, 2))
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    tasks = fg.RegressionTasks([X, sp.csr_array([[5.0, 1.0]])], [[26.0], [26.0]])
    assert X.data.tolist() == [1.0, 2.0, 3.0]
    assert X.indices.tolist() == [1, 0, 0]
    assert tasks.geometry.num_distinct == 1
    np.testing.assert_allclose(tasks.w_star, [5, 1], atol=1e-14)


# ------------------------------------------------------------------------------------------------------------ rank 0


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_a_zero_task_is_learned_by_standing_still(form, rows):
    tasks = fg.RegressionTasks([form(np.zeros((rows, 3))), form(np.eye(2, 3))], [np.zeros(rows), [1.0, 2.0]])
    assert tasks.ranks.tolist() == [0, 2]
    assert tasks.norms.tolist() == [0.0, 1.0]
    assert tasks.realizability.holds
    for scheme in (None, fg.schemes.GradientDescent(), fg.schemes.NLMS(), fg.schemes.RecursiveLeastSquares()):
        run = fg.run(tasks, Explicit([0, 1, 0]), 3, scheme=scheme, w0=[0.5, 0.5, 0.5])
        np.testing.assert_allclose(run.iterates[1], 0.5, atol=1e-15)
        np.testing.assert_allclose(run.iterates[2:], [[1, 2, 0.5]] * 2, atol=1e-12)
        assert run.loss_matrix[:, 0].tolist() == [0.0] * 4


@pytest.mark.parametrize(
    "tasks",
    [
        fg.RegressionTasks([np.zeros((2, 3))], [[0.0, 0.0]]),
        fg.RegressionTasks([sp.csr_array((2, 3))], [[0.0, 0.0]]),
        fg.RegressionTasks([np.zeros((1, 3))], [[0.0]]),
        fg.KernelTasks(np.zeros((3, 3)), np.zeros(3), [0, 0, 1]),
    ],
    ids=["dense", "sparse", "one row", "kernel"],
)
def test_nothing_but_zeros_has_rank_zero_and_runs(tasks):
    assert tasks.rank_joint == 0
    assert tasks.radius == 0
    assert tasks.scale == 0
    run = fg.run(tasks, Cyclic(), 3, w0=np.ones(3))
    np.testing.assert_array_equal(run.iterates, np.ones((4, 3)))
    np.testing.assert_array_equal(run.losses, np.zeros(4))
    many = fg.run_many(tasks, Cyclic(), 3, runs=2)
    np.testing.assert_array_equal(many.losses, np.zeros((2, 4)))
    np.testing.assert_array_equal(many.forgetting, np.zeros((2, 3)))


# ----------------------------------------------------------------------------------------------------- realizability


def clashing():
    """Tasks 0 and 1 agree, task 2 asks for w_0 = 3 where task 0 asks for 1, task 3 contradicts itself."""
    return fg.RegressionTasks(
        [[[1.0, 0, 0]], [[0, 1.0, 0]], [[2.0, 0, 0]], [[0, 0, 1.0], [0, 0, 1.0]]], [[1.0], [5.0], [6.0], [1.0, 2.0]]
    )


def test_realizability_is_measured_and_names_the_first_offender():
    assert fg.families.gaussian(3, 9, 2).realizability.holds
    assert fg.families.gaussian(3, 9, 2).realizability.first_offender is None
    assert "jointly realizable: largest relative residual" in fg.families.gaussian(3, 9, 2).realizability.message
    found = clashing().realizability
    assert not found.holds
    assert found.first_offender == 0  # what 0 and 2 disagree on is shared between them
    assert found.residual > 0.1
    assert "not jointly realizable" in found.message
    assert "task 0" in found.message
    alone = fg.RegressionTasks([np.eye(2), [[1.0, 1.0], [1.0, 1.0]]], [[1.0, 2.0], [3.0, 4.0]])
    assert alone.realizability.first_offender is not None


def test_a_task_that_contradicts_itself_is_the_offender():
    tasks = fg.RegressionTasks([[[1.0, 0]], [[0, 1.0], [0, 1.0]]], [[1.0], [1.0, 2.0]])
    assert tasks.realizability.first_offender == 1
    # the best for task 1 is 3/2, which misses both rows by 1/2: |(1/2, 1/2)| over |X| |w| + |y|
    expected = np.sqrt(0.5) / (np.sqrt(2) * np.hypot(1, 1.5) + np.sqrt(5))
    assert tasks.realizability.residual == pytest.approx(expected, rel=1e-12)


def test_a_zero_task_with_a_label_cannot_be_realized():
    tasks = fg.RegressionTasks([np.eye(2), np.zeros((1, 2))], [[1.0, 1.0], [3.0]])
    assert tasks.realizability.first_offender == 1
    assert tasks.realizability.residual == pytest.approx(1)
    assert fg.run(tasks, Cyclic(), 2).losses.tolist() == pytest.approx([(1 + 4.5) / 2, 2.25, 2.25])


def test_rtol_decides_what_counts_as_realizable():
    X, y = [np.eye(1, 2), np.eye(1, 2)], [[1.0], [1.0 + 1e-6]]
    assert not fg.RegressionTasks(X, y).realizability.holds
    assert fg.RegressionTasks(X, y, rtol=1e-4).realizability.holds
    assert not fg.KernelTasks(np.ones((2, 2)), [1.0, 1.001], [0, 1]).realizability.holds


def test_unrealizable_tasks_run_and_say_so(dynamics):
    tasks = clashing()
    matrices = [tasks.task(m)[0] for m in range(4)]
    labels = [tasks.task(m)[1] for m in range(4)]
    run = fg.run(tasks, Cyclic(), 8)
    dense = dynamics(matrices, labels, run.order)
    np.testing.assert_allclose(run.iterates, dense.iterates, rtol=0, atol=1e-12)
    np.testing.assert_allclose(run.forgetting, dense.forgetting, rtol=0, atol=1e-12)
    assert run.status.startswith("completed 8 steps; not jointly realizable")
    many = fg.run_many(tasks, Cyclic(), 8, runs=2)
    np.testing.assert_allclose(many.losses, [dense.losses] * 2, rtol=0, atol=1e-12)
    np.testing.assert_allclose(many.regret, [dense.regret] * 2, rtol=0, atol=1e-12)
    np.testing.assert_allclose(many.forgetting, [dense.forgetting] * 2, rtol=0, atol=1e-12)
    assert "not jointly realizable" in many.status
    descent = fg.run(tasks, Cyclic(), 8, scheme=fg.schemes.GradientDescent())
    np.testing.assert_allclose(descent.iterates, dense.iterates, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("what", "operation"),
    [
        ("w_star", lambda tasks: tasks.w_star),
        ("w_star", lambda tasks: tasks.nearest_solution(np.ones(3))),
        ("scale", lambda tasks: tasks.scale),
        ("scale", lambda tasks: tasks.scale_from(np.ones(3))),
        ("RecursiveLeastSquares", lambda tasks: fg.run(tasks, Cyclic(), 1, scheme=fg.schemes.RecursiveLeastSquares())),
    ],
)
def test_what_needs_realizable_tasks_raises_and_names_the_first_offender(what, operation):
    with pytest.raises(NotRealizableError, match=rf"{what}.* needs jointly realizable tasks.* task 0,") as caught:
        operation(clashing())
    assert caught.value.task == 0
    assert caught.value.residual == clashing().realizability.residual
    assert "rtol=" in str(caught.value)


# ----------------------------------------------------------------------------------------------------- large and odd


def test_a_million_columns_never_make_a_square_matrix():
    rng = np.random.default_rng(14)
    tasks = realizable([sp.random_array((2, 10**6), density=1e-5, rng=rng, format="csr") for _ in range(3)])
    assert tasks.geometry.rows.shape == (6, 6)
    run = fg.run(tasks, Cyclic(), 6, record_every=6)
    assert run.iterates.shape == (2, 10**6)
    X, y = tasks.task(2)
    np.testing.assert_allclose(X @ run.iterates[-1], y, atol=1e-10)


def test_one_task_one_row_one_column():
    tasks = fg.RegressionTasks([[[2.0]]], [[3.0]])
    run = fg.run(tasks, WithReplacement(), 3)
    np.testing.assert_allclose(run.iterates[:, 0], [0, 1.5, 1.5, 1.5], atol=1e-15)
    np.testing.assert_allclose(run.losses, [4.5, 0, 0, 0], atol=1e-15)


def test_from_arrays_sorts_mixed_rows_by_the_numbers_of_their_tasks():
    X, y = np.arange(12.0).reshape(4, 3), np.arange(4.0)
    for given in (X, sp.csr_array(X)):
        tasks = fg.RegressionTasks.from_arrays(given, y, [7, 3, 7, 3], loss="mean")
        assert tasks.names == ("3", "7")
        assert tasks.loss_kind == "mean"
        first = tasks.task(0)[0]
        np.testing.assert_array_equal(first.toarray() if sp.issparse(first) else first, X[[1, 3]])
        np.testing.assert_array_equal(tasks.task(1)[1], [0.0, 2.0])


def test_mean_loss_divides_by_the_rows_and_scales_the_norms():
    X = [np.eye(2, 3), np.ones((4, 3))]
    y = [np.ones(2), np.zeros(4)]
    total, mean = fg.RegressionTasks(X, y), fg.RegressionTasks(X, y, loss="mean")
    w = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(mean.task_losses(w), total.task_losses(w) / [2, 4])
    np.testing.assert_allclose(mean.norms, total.norms / np.sqrt([2, 4]))
    A, b = mean.equations(1)
    np.testing.assert_allclose(0.5 * np.sum((A @ w - b) ** 2), mean.task_loss(1, w))


def test_copy_false_keeps_references_and_the_default_does_not():
    X = np.eye(2)
    assert np.shares_memory(fg.RegressionTasks([X], [[1.0, 1.0]], copy=False).task(0)[0], X)
    assert not np.shares_memory(fg.RegressionTasks([X], [[1.0, 1.0]]).task(0)[0], X)


def test_clones_given_by_a_kernel_collapse_too():
    X = np.random.default_rng(0).standard_normal((4, 6))
    rows, w = np.concatenate([X, X[2:], 1e4 * X[:2]]), np.arange(6.0)
    groups = [0, 0, 1, 1, 2, 2, 3, 3]
    tasks = fg.KernelTasks(rows @ rows.T, rows @ w, groups)
    assert tasks.geometry.num_distinct == 3
    assert tasks.num_tasks == 4
    data = fg.RegressionTasks.from_arrays(rows, rows @ w, groups)
    a, b = (fg.run(problem, fg.orderings.Cyclic(), 9) for problem in (tasks, data))
    np.testing.assert_allclose(a.loss_matrix, b.loss_matrix, rtol=1e-8, atol=1e-9 * b.loss_matrix.max())
