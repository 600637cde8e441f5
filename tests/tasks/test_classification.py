"""ClassificationTasks: labels, margins, losses, the joint solution, files and the layers on top."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import forgetting as fg
from forgetting.errors import InvalidInputError, ProblemFileError


def random_tasks(seed, T=4, d=6, n=5, margin=0.1):
    return fg.families.separable(T=T, d=d, n=n, margin=margin, seed=seed)


# --------------------------------------------------------------------------------------------------- known answers


def test_two_points_on_a_line():
    """x = 2 with label +1 and x = -4 with label -1: margins 2w and 4w, so that w* = 1/2."""
    tasks = fg.ClassificationTasks([[[2.0]], [[-4.0]]], [[1], [-1]])
    np.testing.assert_allclose(tasks.w_star, [0.5], rtol=1e-14)
    assert tasks.radius == 4.0
    assert tasks.scale == pytest.approx(0.25 * 16)
    assert tasks.margin == pytest.approx(0.5)  # the unit vector 1 has the smallest margin 2, and R = 4
    np.testing.assert_array_equal(tasks.margins([0.25]), [0.5, 1.0])
    np.testing.assert_array_equal(tasks.task_losses([0.25]), [0.125, 0.0])
    np.testing.assert_allclose(tasks.distances([0.25]), [0.25, 0.0], atol=1e-15)
    assert tasks.loss([0.25]) == 0.0625


def test_two_points_in_the_plane_have_the_solution_halfway():
    """y x = (g, 1) and (g, -1): by symmetry w* = (1/g, 0)."""
    for g in (2.0, 0.5, 1e-3, 1e-8):
        tasks = fg.ClassificationTasks([[[g, 1.0]], [[-g, 1.0]]], [[1], [-1]])
        np.testing.assert_allclose(tasks.w_star, [1 / g, 0.0], rtol=1e-9, atol=1e-9 / g)


def test_the_loss_is_that_of_the_worst_row_and_distances_are_to_the_set():
    """At 0 every margin misses by 1. C = {2 w_1 >= 1, w_2 >= 1} is at distance |(1/2, 1)|."""
    tasks = fg.ClassificationTasks([[[2.0, 0.0], [0.0, -1.0]]], [[1, -1]])
    assert tasks.task_loss(0, [0.0, 0.0]) == 0.5
    np.testing.assert_allclose(tasks.distances([0.0, 0.0]), [np.sqrt(1.25)])
    np.testing.assert_allclose(tasks.project(0, [0.0, 0.0]), [0.5, 1.0])
    assert tasks.task_loss(0, [0.25, 3.0]) == 0.125  # the first row has margin 1/2
    run = fg.run(tasks, fg.orderings.Cyclic(), k=1)
    np.testing.assert_allclose(run.residuals[:, 0], [np.sqrt(1.25), 0.0], atol=1e-15)
    np.testing.assert_allclose(run.losses, [0.5, 0.0], atol=1e-15)


def test_a_start_elsewhere_has_its_own_nearest_solution():
    tasks = fg.ClassificationTasks([[[1.0, 0.0], [0.0, -1.0]]], [[1, -1]])
    np.testing.assert_allclose(tasks.nearest_solution([5.0, -2.0]), [5.0, 1.0])
    assert tasks.scale_from([5.0, -2.0]) == pytest.approx(9.0)
    np.testing.assert_allclose(tasks.nearest_solution([2.0, 3.0]), [2.0, 3.0])


def test_a_row_that_follows_from_others_changes_nothing():
    base = fg.ClassificationTasks([[[1.0, 0.0]], [[0.0, -1.0]]], [[1], [-1]])
    more = fg.ClassificationTasks([[[1.0, 0.0], [3.0, 0.0]], [[0.0, -1.0], [-1.0, -1.0]]], [[1, 1], [-1, -1]])
    np.testing.assert_allclose(base.w_star, [1.0, 1.0])
    np.testing.assert_allclose(more.w_star, base.w_star)


# ---------------------------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize(
    ("labels", "names", "shown"),
    [
        ([[1, -1], [-1]], (-1, 1), ""),
        ([[1.0, -1.0], [-1.0]], (-1, 1), ""),
        ([[1, 0], [0]], (0, 1), ", labels 0 -> -1, 1 -> +1"),
        ([[True, False], [False]], (False, True), ", labels False -> -1, True -> +1"),
        ([["spam", "ham"], ["ham"]], ("ham", "spam"), ", labels 'ham' -> -1, 'spam' -> +1"),
        ([np.array(["b", "a"], dtype=object), ["a"]], ("a", "b"), ", labels 'a' -> -1, 'b' -> +1"),
    ],
)
def test_two_labels_of_any_usual_kind_are_mapped_and_said_so(labels, names, shown):
    tasks = fg.ClassificationTasks([np.eye(2), [[1.0, 1.0]]], labels)
    np.testing.assert_array_equal(tasks.task(0)[1], [1.0, -1.0])
    np.testing.assert_array_equal(tasks.task(1)[1], [-1.0])
    assert tasks.label_names == names
    assert repr(tasks) == f"ClassificationTasks(T=2, d=2, rows=3{shown})"
    np.testing.assert_array_equal(tasks.signed_rows(0), [[1.0, 0.0], [0.0, -1.0]])
    np.testing.assert_array_equal(tasks.task(0)[0], np.eye(2))


def test_the_labels_can_be_named():
    tasks = fg.ClassificationTasks([np.eye(2)], [["a", "b"]], label_names=("b", "a"))
    np.testing.assert_array_equal(tasks.task(0)[1], [1.0, -1.0])
    assert fg.ClassificationTasks([np.eye(2)], [[3, 7]], label_names=(7, 3)).label_names == (7, 3)


def test_the_kind_of_label_does_not_change_the_problem():
    X = [np.eye(3), -np.eye(3)]
    kinds = [
        fg.ClassificationTasks(X, [[1, 1, -1], [-1, -1, 1]]),
        fg.ClassificationTasks(X, [[1, 1, 0], [0, 0, 1]]),
        fg.ClassificationTasks(X, [["p", "p", "n"], ["n", "n", "p"]]),
        fg.ClassificationTasks([sparse.csr_array(part) for part in X], [[1, 1, -1], [-1, -1, 1]]),
    ]
    for one in kinds:
        np.testing.assert_array_equal(one.w_star, kinds[0].w_star)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([[1, 1], [1]], "all labels of all tasks are 1: one class only"),
        ([["a", "a"], ["a"]], "all labels of all tasks are 'a': one class only"),
        ([[1, -1], [2]], r"task 1, y\[0\] is 2, which is neither -1 nor 1; .*one_versus_rest"),
        ([[0, 1], [2]], r"task 1, y\[0\] is 2, which is neither 0 nor 1"),
        ([["a", "b"], ["c"]], r"task 1, y\[0\] is 'c', which is neither 'a' nor 'b'"),
        ([["a", "b"], [1]], "y holds numbers and strings; use one kind"),
        ([[1, np.nan], [1]], r"task 0, y\[1\] is nan"),
        ([[1, 0.5], [1]], r"task 0, y\[1\] is 0.5; labels are two whole numbers or names"),
        ([[1, None], [1]], r"task 0, y\[1\] is None"),
        ([[[1, -1]], [1]], r"task 0, y: expected a vector of labels, got shape \(1, 2\)"),
        ([[1, -1, 1], [1]], "task 0: X has 2 rows, but y has 3 labels"),
        ([[1, -1]], "2 matrices but 1 label vectors"),
    ],
)
def test_bad_labels_are_refused(labels, message):
    with pytest.raises(InvalidInputError, match=message):
        fg.ClassificationTasks([np.eye(2), [[1.0, 1.0]]], labels)


def test_bad_label_names_are_refused():
    with pytest.raises(InvalidInputError, match="two different labels"):
        fg.ClassificationTasks([np.eye(2)], [["a", "b"]], label_names=("a", "a"))
    with pytest.raises(InvalidInputError, match="'a', which is neither 0 nor 1"):
        fg.ClassificationTasks([np.eye(2)], [["a", "b"]], label_names=(0, 1))


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        ([], "no tasks given"),
        ([[[1.0, np.nan], [0.0, 1.0]]], "task 0, X: entry at row 0, column 1 is nan"),
        ([[[1.0, 0.0], [np.inf, 1.0]]], "task 0, X: entry at row 1, column 0 is inf"),
        ([np.zeros((0, 2))], r"task 0: X of shape \(0, 2\) is empty"),
        ([np.eye(2), np.eye(3)], "task 1: X has 3 columns, but task 0 has 2"),
    ],
)
def test_bad_data_are_refused(matrices, message):
    with pytest.raises(InvalidInputError, match=message):
        fg.ClassificationTasks(matrices, [[1, -1]] * len(matrices))


def test_bad_points_and_names_are_refused():
    tasks = random_tasks(0)
    for call in (tasks.loss, tasks.margins, tasks.distances, tasks.nearest_solution, tasks.scale_from):
        with pytest.raises(InvalidInputError, match=r"w0?: expected shape"):
            call(np.zeros(5))
        with pytest.raises(InvalidInputError, match="nan"):
            call(np.full(6, np.nan))
    with pytest.raises(InvalidInputError, match="3 names for 1 tasks"):
        fg.ClassificationTasks([np.eye(2)], [[1, -1]], names=["a", "b", "c"])


# ------------------------------------------------------------------------------------------------------ properties


@given(st.integers(0, 10**6), st.floats(0.1, 30.0))
def test_the_loss_is_at_most_half_the_squared_radius_times_distance(seed, size):
    tasks = random_tasks(seed % 50)
    w = size * np.random.default_rng(seed).standard_normal(tasks.dim)
    bound = 0.5 * (tasks.radius * tasks.distances(w)) ** 2
    assert (tasks.task_losses(w) <= bound * (1 + 1e-10) + 1e-12).all()
    np.testing.assert_allclose([tasks.task_loss(m, w) for m in range(4)], tasks.task_losses(w), rtol=1e-13)
    assert tasks.loss(w) == pytest.approx(tasks.task_losses(w).mean())


def test_one_row_of_the_largest_norm_attains_the_bound():
    tasks = fg.ClassificationTasks([[[3.0, 4.0]], [[-1.0, 0.0]]], [[1], [-1]])
    w = np.array([-1.0, 0.5])
    assert tasks.task_loss(0, w) == pytest.approx(0.5 * (5 * tasks.distances(w)[0]) ** 2)


@given(st.integers(0, 10**6))
def test_rotating_relabelling_and_reordering_change_nothing_that_matters(seed):
    rng = np.random.default_rng(seed)
    tasks = random_tasks(seed % 20)
    turn = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    parts = [tasks.task(m) for m in range(4)]
    mixed = []
    for X, y in parts:
        flip, shuffle = rng.choice([-1.0, 1.0], len(y)), rng.permutation(len(y))
        mixed.append(((X @ turn * flip[:, None])[shuffle], (y * flip)[shuffle]))
    other = fg.ClassificationTasks([X for X, _ in mixed], [y for _, y in mixed])
    np.testing.assert_allclose(other.w_star, tasks.w_star @ turn, atol=1e-9)
    w = rng.standard_normal(6)
    np.testing.assert_allclose(other.task_losses(w @ turn), tasks.task_losses(w), atol=1e-12)
    np.testing.assert_allclose(other.distances(w @ turn), tasks.distances(w), atol=1e-9)


# ---------------------------------------------------------------------------------------------------------- oracles


def joint_rows(tasks):
    return np.concatenate([tasks.signed_rows(m) for m in range(tasks.num_tasks)])


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("shape", [(3, 4, 10), (5, 20, 6), (2, 50, 40)], ids=str)
def test_the_joint_solution_is_that_of_two_qp_solvers(shape, seed):
    daqp, clarabel = pytest.importorskip("daqp"), pytest.importorskip("clarabel")
    T, d, n = shape
    tasks = random_tasks(seed, T, d, n, margin=0.05)
    Z = joint_rows(tasks)
    above, sense = np.full(len(Z), 1e30), np.zeros(len(Z), dtype=np.int32)
    by_daqp = daqp.solve(np.eye(d), np.zeros(d), Z, above, np.ones(len(Z)), sense, primal_tol=1e-10)[0]
    np.testing.assert_allclose(tasks.w_star, by_daqp, atol=1e-6)
    options = clarabel.DefaultSettings()
    options.verbose = False
    found = clarabel.DefaultSolver(
        sparse.csc_matrix(np.eye(d)),
        np.zeros(d),
        sparse.csc_matrix(-Z),
        -np.ones(len(Z)),
        [clarabel.NonnegativeConeT(len(Z))],
        options,
    ).solve()
    assert "Solved" in str(found.status)
    np.testing.assert_allclose(tasks.w_star, found.x, atol=1e-4)
    assert tasks.margins(tasks.w_star).min() >= 1 - 1e-10


@pytest.mark.parametrize("margin", [1.0, 0.5, 0.03, 1e-3])
@pytest.mark.parametrize("shape", [(1, 2, 2), (3, 2, 5), (4, 7, 1), (6, 40, 3)], ids=str)
def test_the_generator_has_the_margin_it_was_asked_for(margin, shape):
    """The margin by another solver: min |w|^2 with Z w >= 1 has |w| = 1 / margin."""
    quadprog = pytest.importorskip("quadprog")
    T, d, n = shape
    tasks = random_tasks(3, T, d, n, margin)
    Z = joint_rows(tasks)
    w = quadprog.solve_qp(np.eye(d), np.zeros(d), Z.T.copy(), np.ones(len(Z)))[0]
    assert np.linalg.norm(w) == pytest.approx(1 / margin, rel=1e-8)
    assert tasks.margin == pytest.approx(margin, rel=1e-9)
    assert tasks.radius == pytest.approx(1.0, abs=1e-14)
    assert tasks.scale == pytest.approx(margin**-2, rel=1e-9)
    assert set(np.concatenate([tasks.task(m)[1] for m in range(T)])) == {-1.0, 1.0}


def test_the_generator_refuses_what_it_cannot_make():
    with pytest.raises(InvalidInputError, match="at most 1"):
        fg.families.separable(T=2, d=3, n=2, margin=1.5)
    with pytest.raises(InvalidInputError, match="one class only"):
        fg.families.separable(T=1, d=3, n=1, margin=0.5)
    first, again = random_tasks(5), random_tasks(5)
    np.testing.assert_array_equal(joint_rows(first), joint_rows(again))


# ------------------------------------------------------------------------------------------------ files and layers


@pytest.mark.parametrize("labels", [[[1, -1], [1]], [[1, 0], [1]], [["b", "a"], ["b"]], [[True, False], [True]]])
def test_a_saved_collection_comes_back_the_same(tmp_path, labels):
    tasks = fg.ClassificationTasks([[[1.0, 0.1], [0.2, -1.0]], [[1.0, 1 / 3]]], labels, names=["first", "second"])
    path = tmp_path / "tasks.npz"
    tasks.save(path)
    back = fg.ClassificationTasks.load(path)
    assert (back.names, back.label_names, repr(back)) == (tasks.names, tasks.label_names, repr(tasks))
    for m in range(2):
        np.testing.assert_array_equal(back.task(m)[0], tasks.task(m)[0])
        np.testing.assert_array_equal(back.task(m)[1], tasks.task(m)[1])
    np.load(path, allow_pickle=False)["X"]
    assert [file.name for file in tmp_path.iterdir()] == ["tasks.npz"]


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "tasks.npz"
    fg.families.two_lines(0.5).save(path)
    with pytest.raises(ProblemFileError, match="holds RegressionTasks; use"):
        fg.ClassificationTasks.load(path)
    random_tasks(0).save(path)
    with pytest.raises(ProblemFileError, match="holds ClassificationTasks; use"):
        fg.RegressionTasks.load(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    np.savez(path, **{**arrays, "y": arrays["y"][:-1]})
    with pytest.raises(ProblemFileError, match="damaged collection"):
        fg.ClassificationTasks.load(path)


def test_groups_of_rows_become_tasks():
    X, y = np.arange(8.0).reshape(4, 2), ["no", "yes", "yes", "no"]
    tasks = fg.ClassificationTasks.from_arrays(X, y, ["b", "a", "a", "b"])
    assert tasks.names == ("b", "a")
    np.testing.assert_array_equal(tasks.task(0)[0], X[[0, 3]])
    np.testing.assert_array_equal(tasks.task(1)[1], [1.0, 1.0])
    with pytest.raises(InvalidInputError, match="y has shape"):
        fg.ClassificationTasks.from_arrays(X, y[:3], ["b", "a", "a", "b"])


@pytest.mark.parametrize("classes", [["a", "b", "c"], [0, 1, 2], [10.0, 20.0, 30.0]], ids=str)
def test_one_versus_rest_classifies_the_rows_it_has_learned(classes):
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1, 2], 10)
    X = 0.2 * rng.standard_normal((30, 3)) + 3 * np.eye(3)[kind]
    X = np.concatenate([X, np.ones((30, 1))], axis=1)  # a bias, for the rest lies all around
    groups = rng.integers(0, 4, 30)
    problems = fg.one_versus_rest(X, np.array(classes)[kind], groups)
    assert list(problems) == classes
    weights = []
    for name, problem in problems.items():
        assert problem.num_tasks == len(set(groups))
        positive = sum(int((problem.task(m)[1] > 0).sum()) for m in range(problem.num_tasks))
        assert positive == 10, name
        weights.append(fg.run(problem, fg.orderings.Cyclic(), k=200).iterates[-1])
    np.testing.assert_array_equal(np.argmax(X @ np.array(weights).T, axis=1), kind)


def test_one_versus_rest_refuses_bad_classes():
    X = np.eye(2)
    with pytest.raises(InvalidInputError, match="one class only"):
        fg.one_versus_rest(X, ["a", "a"], [0, 1])
    with pytest.raises(InvalidInputError, match=r"0\.5; classes are whole numbers"):
        fg.one_versus_rest(X, [0.5, 1], [0, 1])
    with pytest.raises(InvalidInputError, match="nan; classes are whole numbers"):
        fg.one_versus_rest(X, [np.nan, 1], [0, 1])


@pytest.mark.parametrize("large", [2**63, 2**64 - 1, -(2**70)])
def test_labels_that_are_numbers_fit_into_64_bits(large):
    with pytest.raises(InvalidInputError, match=r"whole numbers|fit into 64 bits"):
        fg.ClassificationTasks([np.eye(2)], [[-1, large]], label_names=[-1, large])
