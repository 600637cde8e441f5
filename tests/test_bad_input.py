"""Bad input is refused at the door with a message that names the task, the value and the remedy; odd input works."""

import numpy as np
import pytest
import scipy.sparse as sp

import forgetting as fg
from forgetting import orderings, schemes
from forgetting.errors import (
    ForgettingError,
    InvalidInputError,
    MemoryLimitError,
    NotSupportedError,
    OrderingError,
    SmallRowWarning,
)

nan, inf = float("nan"), float("inf")
GOOD = [[1.0, 2.0], [3.0, 4.0]]
TASKS = fg.families.gaussian(3, 6, 2, seed=0)


def with_value(value):
    X = np.eye(3)
    X[1, 2] = value
    return X


DATA = {
    "nan": ([GOOD, [[1.0, nan]]], [[1.0, 2.0], [1.0]], r"task 1, X: entry at row 0, column 1 is nan"),
    "inf": ([GOOD, [[-inf, 1.0]]], [[1.0, 2.0], [1.0]], r"task 1, X: entry at row 0, column 0 is -inf"),
    "nan in a sparse matrix": (
        [sp.csr_array(with_value(nan))],
        [np.ones(3)],
        r"task 0, X: entry at row 1, column 2 is nan",
    ),
    "inf in a sparse matrix": (
        [sp.csc_array(with_value(inf))],
        [np.ones(3)],
        r"task 0, X: entry at row 1, column 2 is inf",
    ),
    "nan label": ([GOOD], [[1.0, nan]], r"task 0, y: entry 1 is nan; remove or impute it"),
    "inf label": ([GOOD, GOOD], [[1.0, 2.0], [inf, 0.0]], r"task 1, y: entry 0 is inf"),
    "huge": ([GOOD, [[1e160, 1.0]]], [[1.0, 2.0], [1.0]], r"task 1, X: entries of size 1e\+160 overflow when squared"),
    "huge label": ([GOOD], [[1.0, 1e155]], r"task 0, y: entries of size 1e\+155 overflow when squared; rescale them"),
    "tiny": ([GOOD, [[1e-160, 0.0]]], [[1.0, 2.0], [1.0]], r"task 1, X: entries of size 1e-160 vanish when squared"),
    "masked": (
        [np.ma.array([[1.0, 9.0]], mask=[[0, 1]])],
        [[1.0]],
        r"task 0, X: 1 masked entries; fill or leave them out",
    ),
    "no list": (None, None, r"the matrices of the tasks must be a list, got None"),
    "no tasks": ([], [], r"no tasks given"),
    "no rows": (
        [GOOD, np.empty((0, 2))],
        [[1.0, 2.0], []],
        r"task 1: X of shape \(0, 2\) is empty; leave the task out",
    ),
    "no columns": ([np.empty((2, 0))], [[1.0, 2.0]], r"task 0: X of shape \(2, 0\) is empty"),
    "one dimension": (
        [GOOD, [1.0, 2.0]],
        [[1.0, 2.0], [1.0]],
        r"task 1, X: .* got shape \(2,\); a single row is \[x\]",
    ),
    "three dimensions": ([np.zeros((2, 2, 2))], [[1.0, 2.0]], r"task 0, X: expected a matrix .* got shape \(2, 2, 2\)"),
    "ragged rows": ([[[1.0, 2.0], [3.0]]], [[1.0, 2.0]], r"task 0, X: rows of different lengths"),
    "other number of columns": (
        [GOOD, [[1.0, 2.0, 3.0]]],
        [[1.0, 2.0], [1.0]],
        r"task 1: X has 3 columns, but task 0 has 2",
    ),
    "other number of labels": (
        [GOOD],
        [[1.0, 2.0, 3.0]],
        r"task 0: X has 2 rows, but y has shape \(3,\); expected \(2,\)",
    ),
    "labels of three axes": ([GOOD], [np.ones((2, 2, 2))], r"task 0: X has 2 rows, but y has shape \(2, 2, 2\)"),
    "scalar label": ([[[1.0, 2.0]]], [1.0], r"task 0: X has 1 rows, but y has shape \(\)"),
    "fewer labels than tasks": ([GOOD, GOOD], [[1.0, 2.0]], r"2 matrices but 1 label vectors; give one per task"),
    "complex": ([GOOD, [[1j, 0]]], [[1.0, 2.0], [1.0]], r"task 1, X: expected real numbers, got complex numbers"),
    "complex sparse": ([sp.csr_array([[1j, 0]])], [[1.0]], r"task 0, X: expected real numbers, got .*complex"),
    "object": ([np.array(GOOD, dtype=object)], [[1.0, 2.0]], r"task 0, X: expected real numbers, got dtype object"),
    "text": ([[["a", "b"]]], [[1.0]], r"task 0, X: expected real numbers, got text such as 'a'"),
    "text labels": ([GOOD], [["a", "b"]], r"task 0, y: expected real numbers, got text such as 'a'"),
    "complex labels": ([GOOD], [[1j, 0]], r"task 0, y: expected real numbers, got complex numbers"),
}


@pytest.mark.parametrize("name", DATA)
def test_data_that_no_computation_can_use_are_named(name):
    matrices, labels, message = DATA[name]
    with pytest.raises(InvalidInputError, match=message):
        fg.RegressionTasks(matrices, labels)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "median"}, r"loss must be 'sum' or 'mean', got 'median'"),
        ({"rank_tol": -1e-3}, r"rank_tol must be at least 0, got -0.001"),
        ({"rank_tol": nan}, r"rank_tol must be finite, got nan"),
        ({"rtol": "small"}, r"rtol must be a number, got 'small'"),
        ({"rtol": -1}, r"rtol must be at least 0, got -1"),
        ({"names": ["a", "b"]}, r"2 names for 1 tasks"),
    ],
)
def test_options_of_a_collection_are_checked(options, message):
    with pytest.raises(InvalidInputError, match=message):
        fg.RegressionTasks([GOOD], [[1.0, 2.0]], **options)


@pytest.mark.parametrize(
    ("X", "y", "groups", "message"),
    [
        ([1.0, 2.0], [1.0], [0], r"X: expected a matrix, got shape \(2,\)"),
        (GOOD, [1.0], [0, 1], r"X has 2 rows, but y has shape \(1,\)"),
        (GOOD, [1.0, 2.0], [0], r"groups: expected one entry for each of 2 rows, got shape \(1,\)"),
        (np.empty((0, 2)), [], [], r"no tasks given"),
        ([[1.0, nan], [1.0, 2.0]], [1.0, 2.0], ["a", "b"], r"task 0, X: entry at row 0, column 1 is nan"),
    ],
)
def test_stacked_data_are_checked(X, y, groups, message):
    with pytest.raises(InvalidInputError, match=message):
        fg.RegressionTasks.from_arrays(X, y, groups)


@pytest.mark.parametrize(
    ("kernel", "labels", "groups", "message"),
    [
        (np.ones((2, 3)), [1.0, 2.0], [0, 1], r"K: expected a square matrix, got shape \(2, 3\)"),
        (np.empty((0, 0)), [], [], r"K: expected a square matrix, got shape \(0, 0\)"),
        ([1.0, 2.0], [1.0, 2.0], [0, 1], r"K: expected a square matrix, got shape \(2,\)"),
        ([[1.0, 0.5], [0.4, 1.0]], [1.0, 2.0], [0, 1], r"K is not symmetric: K - K\^T has an entry of size 0.1"),
        ([[1.0, 2.0], [2.0, 1.0]], [1.0, 2.0], [0, 1], r"K is not positive semidefinite: its least eigenvalue is -1"),
        ([[-1.0]], [1.0], [0], r"not positive semidefinite"),
        ([[1.0, nan], [nan, 1.0]], [1.0, 2.0], [0, 1], r"K: entry at row 0, column 1 is nan"),
        ([[1j]], [1.0], [0], r"K: expected real numbers, got complex"),
        (np.eye(2), [1.0], [0, 1], r"y: expected shape \(2,\), or \(2, c\) for c outputs, got \(1,\)"),
        (np.eye(2), [1.0, nan], [0, 1], r"y: entry 1 is nan"),
        (np.eye(2), [1.0, 2.0], [0], r"groups: expected one entry for each of 2 rows, got shape \(1,\)"),
    ],
)
def test_kernels_are_checked(kernel, labels, groups, message):
    with pytest.raises(InvalidInputError, match=message):
        fg.KernelTasks(kernel, labels, groups)
    with pytest.raises(InvalidInputError, match="loss must be 'sum' or 'mean', got 'max'"):
        fg.KernelTasks(np.eye(1), [1.0], [0], loss="max")


# ---------------------------------------------------------------------------------------------------------------- runs


@pytest.mark.parametrize("call", [fg.run, fg.run_many], ids=["run", "run_many"])
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"k": -1}, InvalidInputError, r"k must be at least 0, got -1"),
        ({"k": 2.5}, InvalidInputError, r"k must be a whole number, got 2.5"),
        ({"k": "ten"}, InvalidInputError, r"k must be a whole number, got 'ten'"),
        ({"k": None}, InvalidInputError, r"k must be a whole number, got None"),
        ({"k": nan}, InvalidInputError, r"k must be a whole number, got nan"),
        ({"k": float("inf")}, InvalidInputError, r"k must be a whole number, got inf"),
        ({"k": 1e300}, InvalidInputError, r"k must be at most 9.22337e\+18, got 1e\+300"),
        ({"record_every": 0}, InvalidInputError, r"record_every must be at least 1, got 0"),
        ({"seed": -3}, InvalidInputError, r"seed must be at least 0, got -3"),
        ({"seed": 0.5}, InvalidInputError, r"seed must be a whole number, got 0.5"),
        ({"w0": np.zeros(5)}, InvalidInputError, r"w0: expected shape \(6,\), got \(5,\)"),
        ({"w0": np.zeros((1, 6))}, InvalidInputError, r"w0: expected shape \(6,\), got \(1, 6\)"),
        ({"w0": [0, 0, nan, 0, 0, 0]}, InvalidInputError, r"w0: entry 2 is nan"),
        ({"w0": np.zeros(6, dtype=complex)}, InvalidInputError, r"w0: expected real numbers, got complex"),
        ({"w0": "zeros"}, InvalidInputError, r"w0: expected real numbers, got text such as 'zeros'"),
        ({"ordering": "sideways"}, InvalidInputError, r"no ordering 'sideways'; there are with-replacement, "),
        ({"ordering": "cylic"}, InvalidInputError, r"no ordering 'cylic'; did you mean 'cyclic'\?"),
        ({"ordering": "explicit"}, InvalidInputError, r"ordering explicit needs seq=\.\.\."),
        ({"ordering": [0, 3, 1]}, InvalidInputError, r"seq\[1\] is 3, but must be between 0 and 2"),
        ({"ordering": [0.5]}, InvalidInputError, r"ordering must be a sequence of whole numbers, got float64"),
        (
            {"ordering": 3},
            InvalidInputError,
            r"ordering: expected an ordering such as fg.orderings.Cyclic\(\), .*, got 3",
        ),
        ({"ordering": orderings.Cyclic}, InvalidInputError, r"expected an ordering such as"),
        ({"scheme": "sdg"}, InvalidInputError, r"no scheme 'sdg'; did you mean 'sgd'\?"),
        (
            {"scheme": "sgd steps=2"},
            InvalidInputError,
            r"scheme sgd has no parameter 'steps'; did you mean 'step_size'\?",
        ),
        ({"scheme": 3}, InvalidInputError, r"scheme: expected a scheme such as fg.schemes.Kaczmarz\(\) .*, got 3"),
        ({"progress": "yes"}, InvalidInputError, r"progress must be True, False or a function .*, got 'yes'"),
        ({"scheme": schemes.Kaczmarz}, InvalidInputError, r"expected a scheme such as"),
        ({"problem": [GOOD]}, InvalidInputError, r"expected a problem such as RegressionTasks, got list; fg\.load"),
        (
            {"ordering": orderings.WithoutReplacement(), "k": 4},
            OrderingError,
            r"WithoutReplacement\(\) ends after 3 steps over 3 tasks, but k = 4; use k <= 3",
        ),
        (
            {"ordering": orderings.GreedyDistance(repeat=False), "k": 4},
            OrderingError,
            r"GreedyDistance\(repeat=False\) ends after 3 steps over 3 tasks, but k = 4",
        ),
        (
            {"ordering": orderings.GreedyResidual(repeat=False), "k": 9},
            OrderingError,
            r"GreedyResidual\(repeat=False\) ends after 3 steps over 3 tasks, but k = 9",
        ),
        ({"ordering": orderings.Explicit([0, 1]), "k": 3}, OrderingError, r"Explicit\(2 tasks\) ends after 2 steps"),
        ({"ordering": orderings.Explicit([0, 3, 1]), "k": 3}, InvalidInputError, r"seq\[1\] is 3, but"),
        ({"ordering": orderings.WithReplacement(p=[1, 2])}, InvalidInputError, r"p has 2 entries for 3 tasks"),
        (
            {"problem": fg.RegressionTasks([np.zeros((1, 6))], [[0.0]]), "ordering": orderings.NormWeighted()},
            InvalidInputError,
            r"norm-weighted sampling needs a task that is not zero",
        ),
    ],
)
def test_a_run_checks_what_it_is_given(call, options, error, message):
    with pytest.raises(error, match=message):
        call(**{"problem": TASKS, "ordering": orderings.Cyclic(), "k": 3, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [({"runs": 0}, r"runs must be at least 1, got 0"), ({"threads": 0}, r"threads must be at least 1, got 0")],
)
def test_run_many_checks_what_it_is_given(options, message):
    with pytest.raises(InvalidInputError, match=message):
        fg.run_many(TASKS, orderings.Cyclic(), 3, **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: orderings.WithReplacement(p=[1, -1]), r"p must be .*nonnegative.*got \[1, -1\]"),
        (lambda: orderings.WithReplacement(p=[0, 0]), r"p must be .*not all zero"),
        (lambda: orderings.WithReplacement(p=[]), r"p must be"),
        (lambda: orderings.WithReplacement(p=[[1, 2]]), r"p must be"),
        (lambda: orderings.WithReplacement(p=[1, nan]), r"p: entry 1 is nan"),
        (lambda: orderings.WithReplacement(p=[inf, 1]), r"p: entry 0 is inf"),
        (lambda: orderings.WithReplacement(p="uniform"), r"p: expected real numbers"),
        (lambda: orderings.WithReplacement(p=[1j, 1]), r"p: expected real numbers, got complex"),
        (lambda: orderings.Explicit([0.5, 1]), r"seq must be a sequence of whole numbers, got float64 of shape"),
        (lambda: orderings.Explicit([[0, 1]]), r"seq must be a sequence of whole numbers"),
        (lambda: orderings.Explicit([0, 1, -1]), r"seq\[2\] is -1, but must be a task number"),
        (lambda: schemes.SGD(0), r"step_size must be greater than 0, got 0"),
        (lambda: schemes.SGD(-1.0), r"step_size must be greater than 0, got -1.0"),
        (lambda: schemes.SGD(nan), r"step_size must be finite, got nan"),
        (lambda: schemes.SGD("1"), r"step_size must be a number, got '1'"),
        (lambda: schemes.SGD(1, objective="hinge"), r"objective must be 'modified' or 'loss', got 'hinge'"),
        (lambda: schemes.FiniteSteps(0, 0.1), r"n must be at least 1, got 0"),
        (lambda: schemes.FiniteSteps(2.5, 0.1), r"n must be a whole number, got 2.5"),
        (lambda: schemes.FiniteSteps(2, 0.0), r"step_size must be greater than 0, got 0.0"),
        (lambda: schemes.Ridge(0), r"lam must be greater than 0, got 0"),
        (lambda: schemes.Ridge(inf), r"lam must be finite, got inf"),
        (lambda: schemes.NLMS(mu=0), r"mu must be greater than 0, got 0"),
        (lambda: schemes.NLMS(eps=-1), r"eps must be at least 0, got -1"),
        (lambda: schemes.GradientDescent(tol=0), r"tol must be greater than 0, got 0"),
        (lambda: schemes.GradientDescent(max_steps=0), r"max_steps must be at least 1, got 0"),
        (lambda: schemes.GradientDescent(batch_size=0), r"batch_size must be at least 1, got 0"),
        (lambda: schemes.GradientDescent(batch_size=1, accelerated=True), r"accelerated=True is for full batches"),
        (lambda: fg.families.gaussian(0, 3), r"T must be at least 1, got 0"),
        (lambda: fg.families.gaussian(2, 3, rank=4), r"rank of task 0 is 4; it must be between 1 and d = 3"),
        (lambda: fg.families.gaussian(2, 3, rank=[1, 0]), r"rank of task 1 is 0; it must be between 1 and d = 3"),
        (lambda: fg.families.gaussian(3, 3, rank=[1, 2]), r"rank: expected one number or one for each of 3 tasks"),
        (lambda: fg.families.gaussian(2, 3, condition=0.5), r"condition must be at least 1, got 0.5"),
        (lambda: fg.families.rank_one(2, 0), r"d must be at least 1, got 0"),
        (lambda: fg.families.two_lines(inf), r"theta must be finite, got inf"),
        (lambda: fg.families.two_lines(0.1, w_star=(1, 2, 3)), r"w_star: expected shape \(2,\), got \(3,\)"),
        (lambda: fg.families.orthogonal(0), r"d must be at least 1, got 0"),
        (lambda: fg.families.back_and_forth(5, 0.1), r"T must be even to go back and forth, got 5"),
        (lambda: fg.families.catastrophic(0), r"eps must be greater than 0, got 0"),
        (lambda: fg.families.catastrophic(7), r"eps must be at most 6, got 7"),
        (lambda: fg.families.repeated(TASKS, 0), r"n must be at least 1, got 0"),
        (lambda: fg.families.principal_angles([]), r"give at least one angle"),
        (lambda: fg.families.principal_angles([nan]), r"angles: entry 0 is nan"),
        (lambda: fg.families.heterogeneous_norms(2, 3, spread=0.1), r"spread must be at least 1, got 0.1"),
        (lambda: TASKS.loss(np.zeros(2)), r"w: expected shape \(6,\), got \(2,\)"),
        (lambda: TASKS.project(0, np.zeros(2)), r"w: expected shape \(6,\), got \(2,\)"),
        (lambda: TASKS.nearest_solution([nan] * 6), r"w0: entry 0 is nan"),
        (lambda: TASKS.loss(np.full(6, 1e200)), r"w: entries of size 1e\+200 overflow when squared"),
        (lambda: fg.Ball(np.zeros(6), 1.0).project(np.full(6, 1e200)), r"w: entries of size 1e\+200 overflow"),
        (lambda: TASKS.loss(np.broadcast_to(1.0, (2**40,))), r"w: expected shape \(6,\), got \(1099511627776,\)"),
        (lambda: fg.bounds.get("trivial/loss").value(TASKS, 3), r"expected a Setting, got RegressionTasks"),
        (lambda: fg.families.gaussian(3, 3, seed=-1), r"seed must be at least 0, got -1"),
        (lambda: fg.run(TASKS, orderings.Cyclic(), 10**30), r"k must be at most 9.22337e\+18, got 1e\+30"),
        (lambda: fg.RegressionTasks([GOOD], [[1.0, 2.0]], rank_tol=1.0), r"rank_tol must be less than 1, got 1.0"),
    ],
)
def test_bad_parameters_are_named_where_they_are_given(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_all_errors_are_value_errors_of_one_family():
    for name in fg.errors.__all__:
        kind = getattr(fg.errors, name)
        if name.endswith("Warning"):
            assert issubclass(kind, UserWarning)
            continue
        assert issubclass(kind, ForgettingError)
        assert issubclass(kind, ValueError)


def test_a_linear_scheme_needs_a_geometry():
    class Points(fg.Problem):
        """Tasks that are points of the line: a problem, but none of regression."""

        num_tasks, dim = 2, 1

        def project(self, task, w):
            return np.array([float(task)])

        def task_loss(self, task, w):
            return 0.5 * float((w[0] - task) ** 2)

        def task_losses(self, w):
            return np.array([self.task_loss(m, w) for m in range(2)])

        def distances(self, w):
            return np.abs(w[0] - np.arange(2.0))

    with pytest.raises(NotSupportedError, match=r"Kaczmarz\(\) is a scheme for regression tasks, not for Points"):
        fg.run(Points(), orderings.Cyclic(), 1, scheme=schemes.Kaczmarz())
    assert fg.run(Points(), orderings.Cyclic(), 3).iterates.tolist() == [[0.0], [0.0], [1.0], [0.0]]
    with pytest.raises(fg.errors.InvalidInputError, match="expected a problem such as RegressionTasks, got object"):
        fg.run(object(), orderings.Cyclic(), 1)
    with pytest.raises(NotSupportedError, match="norm-weighted sampling needs tasks with a norm"):
        orderings.NormWeighted().first(orderings.TaskView(2), 1)


# ------------------------------------------------------------------------------------------------------ odd, but good


def test_no_steps_is_a_run_with_its_start():
    w0 = np.arange(6.0)
    for scheme in (None, schemes.GradientDescent()):
        run = fg.run(TASKS, orderings.WithReplacement(), 0, w0=w0, scheme=scheme)
        np.testing.assert_allclose(run.iterates, [w0], atol=1e-14)
        assert run.order.shape == run.forgetting.shape == run.regret.shape == run.inner_steps.shape == (0,)
        assert run.steps.tolist() == [0]
        assert run.losses == pytest.approx([TASKS.loss(w0)])
        assert run.status == "completed 0 steps"
    many = fg.run_many(TASKS, orderings.WithReplacement(), 0, runs=4)
    assert many.losses.shape == (4, 1)
    assert many.forgetting.shape == many.regret.shape == (4, 0)
    assert many.iterates.shape == (4, 1, 6)


def test_one_task_is_learned_once_and_for_all():
    tasks = fg.families.gaussian(1, 5, 3, seed=1)
    for ordering in (
        orderings.WithReplacement(),
        orderings.Cyclic(),
        orderings.GreedyDistance(),
        orderings.NormWeighted(),
    ):
        run = fg.run(tasks, ordering, 3)
        np.testing.assert_allclose(run.iterates[1:], [tasks.w_star] * 3, atol=1e-12)
        np.testing.assert_allclose(run.forgetting, 0, atol=1e-28)
    assert fg.run(tasks, orderings.WithoutReplacement(), 1).order.tolist() == [0]


def test_a_zero_row_changes_nothing_but_the_count():
    X = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]])
    y = np.array([1.0, -1.0])
    plain = fg.RegressionTasks([X], [y])
    padded = fg.RegressionTasks([np.vstack([np.zeros(3), X])], [np.concatenate([[0.0], y])])
    assert padded.ranks.tolist() == plain.ranks.tolist() == [2]
    assert padded.realizability.holds
    for scheme in (None, schemes.NLMS(), schemes.GradientDescent(), schemes.GradientDescent(batch_size=1)):
        one, two = (fg.run(tasks, orderings.Cyclic(), 2, scheme=scheme).iterates for tasks in (plain, padded))
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-11)


def test_a_zero_row_with_a_label_is_a_contradiction():
    tasks = fg.RegressionTasks([[[0.0, 0.0], [1.0, 0.0]]], [[1.0, 0.0]])
    assert tasks.realizability.first_offender == 0
    assert fg.run(tasks, orderings.Cyclic(), 1).losses.tolist() == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint16, bool])
def test_real_dtypes_are_taken_as_float64(dtype):
    X = np.array([[1, 0, 1], [0, 1, 1]], dtype=dtype)
    for given in (X, sp.csr_array(X)):
        tasks = fg.RegressionTasks([given], [np.array([1, 0], dtype=dtype)])
        assert tasks.task(0)[0].dtype == np.float64
        assert tasks.w_star.dtype == np.float64
        np.testing.assert_allclose(X.astype(float) @ tasks.w_star, [1, 0], atol=1e-14)


def test_read_only_and_strided_arrays_are_fine():
    X = np.asfortranarray(np.random.default_rng(2).standard_normal((4, 12)))[::2, ::-2]
    X.flags.writeable = False
    y = np.ones(2)
    y.flags.writeable = False
    w0 = np.ones(6)
    w0.flags.writeable = False
    run = fg.run(fg.RegressionTasks([X], [y], copy=False), orderings.Cyclic(), 2, w0=w0)
    np.testing.assert_allclose(X @ run.iterates[-1], y, atol=1e-13)


LARGE = {  # tasks whose losses overflow at w_0, and what is said of their size
    "regression": (fg.RegressionTasks([[[1.0, 0]], [[0, 1e149]]], [[1.0], [0.0]]), "X of task 1 has the size 1e+149"),
    "without a solution": (fg.RegressionTasks([[[1e149, 0]]] * 2, [[1.0], [1e149]]), "X of task 0 has the size 1e+149"),
    "kernel": (fg.KernelTasks(1e298 * np.eye(2), [1.0, 2.0], [0, 1]), "X of task 0 has the size 1e+149"),
    "classification": (
        fg.ClassificationTasks([1e149 * np.eye(2), np.eye(2)], [[1, -1], [1, -1]]),
        "the longest row has the size 1e+149",
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_losses_that_overflow_are_called_so_with_the_task_and_its_size(name):
    tasks, said = LARGE[name]
    w0 = np.array([-1e100, 1e149])
    found = [fg.run(tasks, [0, 0], 2, w0=w0), fg.run_many(tasks, "cyclic", 2, 3, w0=w0)]
    words = [(run.status, run.losses) for run in found if not np.isfinite(run.losses).all()]
    for ordering in ("with-replacement", "cyclic"):
        expected = fg.expect(tasks, ordering, [0, 2], w0=w0, quantities="loss")
        words.append((" ".join(expected.notes), expected.loss))
    assert len(words) == 4
    for text, losses in words:
        assert np.isinf(losses).any()
        assert f"overflow: losses exceed 1.8e+308, since {said} and w_0" in text
        assert "by the same number" in text
        assert "step size" not in text


def test_a_diverging_step_size_runs_as_asked_and_the_status_says_so():
    run = fg.run(fg.families.orthogonal(1), orderings.Cyclic(), 2000, scheme=schemes.SGD(5.0), record_every=1000)
    assert "the iterates diverged to values that are not finite; use a smaller step size" in run.status
    tame = fg.run(fg.families.orthogonal(1), orderings.Cyclic(), 3, scheme=schemes.SGD(5.0))
    np.testing.assert_allclose(tame.iterates[:, 0] - 1, [-1, 4, -16, 64])
    assert (
        tame.status == "completed 3 steps; this scheme diverges: a step multiplies an error of the task it learns by -4"
    )


@pytest.mark.parametrize("groups", [[0, 0, 1, nan], ["a", "a", "b", None]])
def test_every_row_belongs_to_a_group(groups):
    with pytest.raises(InvalidInputError, match="groups: row 3 belongs to no group"):
        fg.RegressionTasks.from_arrays(np.eye(4), np.ones(4), groups)
    with pytest.raises(InvalidInputError, match="groups: row 3 belongs to no group"):
        fg.KernelTasks(np.eye(4), np.ones(4), groups)


def test_claims_are_checked_on_instances_and_catastrophes_are_of_finite_size():
    with pytest.raises(InvalidInputError, match=r"expected fg\.claims\.Instance"):
        fg.claims.get("lem:regret_bound").check(TASKS)
    with pytest.raises(InvalidInputError, match=r"eps must be at least 0\.01"):
        fg.families.catastrophic(1e-6)


def test_words_and_numbers_may_both_name_groups():
    tasks = fg.RegressionTasks.from_arrays(np.eye(4), np.ones(4), np.array([1, "b", 1, "a"], dtype=object))
    assert tasks.names == ("1", "b", "a")
    assert tasks.num_rows.tolist() == [2, 1, 1]


def test_sets_and_classification_tasks_refuse_what_they_cannot_use():
    for make, reason in (
        (lambda: fg.Box([1j], [2.0]), "lo: expected real numbers, got complex numbers"),
        (lambda: fg.Box(["1"], ["2"]), "lo: expected real numbers"),
        (lambda: fg.Ball([0.0], np.inf), "radius must be finite, got inf"),
        (lambda: fg.Halfspace([1e-200], 1.0), r"the halfspace is at a distance of 1e\+200 from 0"),
        (lambda: fg.Slab([1e-200], 1.0, 2.0), r"the slab is at a distance of 1e\+200"),
        (lambda: fg.Box([1e200], [1e201]), r"the box is at a distance of 1e\+200"),
        (lambda: fg.Simplex(2, 1e200), r"the simplex is at a distance of 1e\+200"),
        (lambda: fg.Polyhedron([[1e-200]], [1.0]), r"row 0 is at a distance of 1e\+200"),
        (lambda: fg.Affine([[1e-200]], [1.0]), "A is so small beside b that w overflows"),
        (lambda: fg.CustomSet(lambda w: 1e200 * w, 1).project([1.0]), r"returned 1e\+200, whose square"),
        (lambda: fg.families.separable(2, 3, 4, 0.5).task_loss(5, np.zeros(3)), "there is no task 5"),
        (lambda: fg.families.separable(2, 3, 4, 0.5).signed_rows(-1), "task must be at least 0"),
    ):
        with pytest.raises(InvalidInputError, match=reason):
            make()


def with_small_row(size, label):
    return fg.RegressionTasks([[[1.0, 0.0], [0.0, size]]], [[1.0, label]])


def test_rows_however_small_count_unless_they_vanish_or_the_solution_overflows():
    for label, answer in ((1e-280, 1.0), (1e-200, 1e80)):
        with pytest.warns(SmallRowWarning):
            tasks = with_small_row(1e-280, label)
        np.testing.assert_allclose(tasks.w_star, [1.0, answer])
    with pytest.warns(SmallRowWarning):
        tasks = with_small_row(1e-280, 1.0)
    with pytest.raises(InvalidInputError, match="task 0: its rows are so small beside its labels"):
        _ = tasks.w_star
    with pytest.raises(InvalidInputError, match=r"task 0 \(0\), row 1: its largest entry is 1e-310, which vanishes"):
        with_small_row(1e-310, 0.0)


HUGE = {
    "gaussian": {"T": 10**15, "d": 3},
    "gaussian of large tasks": {"T": 10, "d": 10**6, "rank": 10**6},
    "rank_one": {"T": 10**15, "d": 3},
    "orthogonal": {"d": 10**8},
    "greedy_failure": {"d": 10**5},
    "back_and_forth": {"T": 10**15, "theta": 0.1},
    "repeated": {"tasks": TASKS, "n": 10**15},
    "heterogeneous_norms": {"T": 10**15, "d": 3},
    "separable": {"T": 10**15, "d": 3, "n": 2},
}


@pytest.mark.parametrize("name", HUGE)
def test_a_family_that_does_not_fit_in_memory_is_refused_before_it_is_made(name):
    with pytest.raises(MemoryLimitError, match=r"\d+ tasks in dimension \d+ need about .* use fewer tasks"):
        getattr(fg.families, name.split()[0])(**HUGE[name])


def test_sets_of_very_large_or_small_numbers_are_projected_onto():
    np.testing.assert_allclose(fg.Halfspace([1e150, 1e150], 1e150).project([0.0, 0.0]), [0.5, 0.5])
    np.testing.assert_allclose(fg.Halfspace([1e-200, 0.0], 1e-200).project([0.0, 0.0]), [1.0, 0.0])
    np.testing.assert_allclose(fg.Slab([0.0, 1e-200], 1e-200, 2e-200).project([0.0, 5.0]), [0.0, 2.0])
    np.testing.assert_allclose(fg.SecondOrderCone(2).project([1e149, 0.0]) / 1e149, [0.5, 0.5])
    np.testing.assert_allclose(fg.SecondOrderCone(2).project([1e-200, 0.0]) / 1e-200, [0.5, 0.5])


RUNS = fg.run_many(TASKS, "cyclic", 2, 3)
EXPECTED = fg.expect(TASKS, "with-replacement", [1, 3])
ROWS = fg.bounds.evaluate(TASKS, "cyclic", 3)
STUDY = fg.Study([{"family": "orthogonal", "d": 2, "k": 3}], None)
#: calls with one argument, and the word that an error has for it
ARGUMENTS = {
    "save": (fg.run(TASKS, "cyclic", 2).save, "path"),
    "save tasks": (TASKS.save, "path"),
    "load": (fg.RegressionTasks.load, "path"),
    "load a run": (fg.Trajectory.load, "path"),
    "save an instance": (fg.claims.Instance(TASKS, "cyclic", 2).save, "path"),
    "read an entry": (fg.worstcase.Entry.read, "path"),
    "a certificate": (fg.claims.Certificate.from_json, "JSON"),
    "a folder of entries": (lambda value: fg.worstcase.frontier(folder=value), "folder"),
    "a checkpoint": (lambda value: fg.solve(np.eye(2), [1.0, 1.0], checkpoint=value), "checkpoint"),
    "the file of a study": (fg.Study.from_toml, "path"),
    "the store of a study": (fg.Study.open, "store"),
    "a new store": (lambda value: fg.Study([{"family": "orthogonal", "d": 2}], value), "store"),
    "the table of a study": (STUDY.to_parquet, "path"),
    "which cells": (STUDY.forget, "where"),
    "what follows a cell": (lambda value: STUDY.run(finished=value, progress=False), "finished"),
    "again": (lambda value: STUDY.run(retry=value, progress=False), "retry"),
    "a column": (lambda value: STUDY.figure(x=value), "x"),
    "times": (lambda value: STUDY.rows(times=value), "times"),
    "a callback": (lambda value: fg.run(TASKS, "cyclic", 2, callback=value), "callback"),
    "a run of many": (lambda value: RUNS[value], "the number of a run"),
    "quantities": (lambda value: fg.expect(TASKS, "cyclic", 2, quantities=value), "quantities"),
    "a quantity": (EXPECTED.interval, "quantities"),
    "a step": (ROWS.at, "k"),
    "rows": (lambda value: ROWS.to_latex(rows=value), "rows"),
    "a goal": (fg.optimal_weights.__get__(TASKS), "goal"),
    "a kind of strengths": (lambda value: fg.optimal_schedule(TASKS, "cyclic", 2, value), "kind"),
    "a table": (fg.bounds.table, "the name of a table"),
    "orderings": (lambda value: fg.bounds.crossovers(d=3, T=3, rank_avg=1, orderings=value), "orderings"),
    "a claim": (fg.claims.get, "no claim"),
    "names": (lambda value: fg.RegressionTasks([GOOD], [[1.0, 2.0]], names=value), "names"),
    "names of sets": (lambda value: fg.ConvexSets([fg.Ball([0.0], 1.0)], names=value), "names"),
    "sets": (fg.ConvexSets, "set"),
    "loss": (lambda value: fg.RegressionTasks([GOOD], [[1.0, 2.0]], loss=value), "loss"),
    "classes": (lambda value: fg.RegressionTasks.from_labels(GOOD, [0, 1], [0, 0], classes=value), "classes"),
    "a convention": (lambda value: fg.metrics.forgetting([[1.0]], [0], value), "convention"),
    "an objective": (lambda value: schemes.SGD(1.0, value), "objective"),
    "a radius": (schemes.SGD(1.0, "loss").as_sgd, "radius"),
    "a part": (lambda value: fg.datasets.diabetes(part=value), "part"),
    "a check": (lambda value: fg.Polyhedron(GOOD, [1.0, 2.0], check=value), "check"),
    "a member": (schemes.registry.get, "no scheme"),
    "a name": (lambda value: schemes.registry.add(value, schemes.Kaczmarz), "the name of a scheme"),
}
ODD = [object(), 1j, np.zeros(2, [("a", "f8")]), np.array([1.0, 2.0]), sp.eye_array(2), {"a": [1]}, b"x"]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_argument_of_the_wrong_type_is_named_in_an_error_of_this_library(name):
    call, word = ARGUMENTS[name]
    for value in ODD:
        with pytest.raises(ForgettingError) as caught:
            call(value)
        assert word in str(caught.value)
