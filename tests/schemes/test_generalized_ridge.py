"""Ridge in the norm of a matrix: against rational arithmetic, against `Ridge`, and what is refused."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
import scipy.sparse as sp

import forgetting as fg
from forgetting.checks import check_scheme
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.schemes import GeneralizedRidge, Ridge
from forgetting.tasks import turned

# ------------------------------------------------------------------------------------- enumeration over the rationals


def exact(array):
    return [[Fraction(float(value)) for value in row] for row in np.atleast_2d(np.asarray(array, dtype=float))]


def times(A, B):
    return [
        [sum((a * b for a, b in zip(row, column, strict=True)), Fraction(0)) for column in zip(*B, strict=True)]
        for row in A
    ]


def solved(A, B):
    """A^-1 B by elimination."""
    rows = [[*a, *b] for a, b in zip(A, B, strict=True)]
    for i in range(len(rows)):
        pivot = next(r for r in range(i, len(rows)) if rows[r][i])
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for r in range(len(rows)):
            if r != i and rows[r][i]:
                rows[r] = [x - rows[r][i] * y for x, y in zip(rows[r], rows[i], strict=True)]
    return [row[len(A) :] for row in rows]


def enumerated(tasks, matrix, orders, k, w0, held_out=None):
    """Expected loss and forgetting (and test loss) after k steps over equally likely orders, as fractions."""
    outputs = tasks.outputs or 1
    M = exact(np.diag(matrix) if np.ndim(matrix) == 1 else matrix)
    parts = []
    for m in range(tasks.num_tasks):
        X, y = tasks.task(m)
        X = X.toarray() if sp.issparse(X) else X
        parts.append((exact(X), exact(np.reshape(y, (-1, outputs))), 1 if tasks.loss_kind == "sum" else len(y)))

    def loss(part, w):
        X, y, divisor = part
        missed = times(X, w)
        return sum((a - b) ** 2 for p, q in zip(missed, y, strict=True) for a, b in zip(p, q, strict=True)) / (
            2 * divisor
        )

    def learned(part, w):
        X, y, divisor = part
        columns = [list(column) for column in zip(*X, strict=True)]
        hessian = [[value / divisor for value in row] for row in times(columns, X)]
        missed = [[a - b for a, b in zip(p, q, strict=True)] for p, q in zip(times(X, w), y, strict=True)]
        gradient = [[value / divisor for value in row] for row in times(columns, missed)]
        total = [[a + b for a, b in zip(p, q, strict=True)] for p, q in zip(M, hessian, strict=True)]
        move = solved(total, gradient)
        return [[a - b for a, b in zip(p, q, strict=True)] for p, q in zip(w, move, strict=True)]

    sums = [Fraction(0)] * 3
    for order in orders:
        w, kept = exact(np.reshape(w0, (-1, outputs))), []
        for task in order[:k]:
            w = learned(parts[task], w)
            kept.append(loss(parts[task], w))
        sums[0] += sum(loss(part, w) for part in parts) / len(parts)
        sums[1] += sum(loss(parts[task], w) - after for task, after in zip(order[:k], kept, strict=True)) / k
        if held_out is not None:
            tests = [(exact(X), exact(np.reshape(y, (-1, outputs))), 1) for X, y in held_out]
            sums[2] += sum(loss(part, w) for part in tests) / len(tests)
    return [value / len(orders) for value in sums]


def spread(condition, d, seed=0):
    """A positive definite matrix of this condition number."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    matrix = (turn * np.geomspace(1, condition, d)) @ turn.T
    return (matrix + matrix.T) / 2


def some_tasks(realizable=True, outputs=None, loss="sum", seed=0):
    rng = np.random.default_rng(seed)
    Xs = [np.round(rng.standard_normal((n, 4)), 2) for n in (1, 2, 1)]
    w = rng.integers(-3, 4, (4, outputs) if outputs else 4)
    ys = [X @ w + (0 if realizable else np.round(rng.standard_normal((len(X), *w.shape[1:])), 2)) for X in Xs]
    if not realizable:  # rank 1 and 2 labels that no w fits
        Xs[1], ys[0], Xs[2] = np.repeat(Xs[1][:1], 2, axis=0), np.round(ys[0], 2), Xs[0]
    return fg.RegressionTasks(Xs, ys, loss=loss)


ORDERS = {
    "without-replacement": [list(order) for order in permutations(range(3))],
    "with-replacement": [list(order) for order in product(range(3), repeat=3)],
    "cyclic": [[0, 1, 2]],
}
MATRICES = {
    "diagonal": np.array([0.5, 1.0, 3.0, 0.2]),
    "full": np.round(spread(30.0, 4), 3),
    "ill-conditioned": spread(1e8, 4),
}


def agrees(expectation, name, value):
    off = abs(Fraction(float(expectation.values[name])) - value)
    assert off <= Fraction(float(expectation.uncertainty[name])), (name, float(off), expectation.uncertainty[name])


@pytest.mark.parametrize("ordering", ORDERS)
@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize(
    "options",
    [{}, {"realizable": False}, {"outputs": 2}, {"loss": "mean", "realizable": False}],
    ids=["realizable", "noisy", "two outputs", "mean"],
)
def test_expectations_are_those_of_rational_arithmetic_to_their_uncertainty(ordering, matrix, options):
    tasks, M = some_tasks(**options), MATRICES[matrix]
    e = fg.expect(tasks, ordering, 3, scheme=GeneralizedRidge(M))
    assert e.method in ("subsets", "moments", "deterministic")
    loss, forgetting, _ = enumerated(tasks, M, ORDERS[ordering], 3, np.zeros(tasks.point_shape))
    agrees(e, "loss", loss)
    agrees(e, "forgetting", forgetting)
    assert float(e.uncertainty["loss"]) < 1e-12 * float(e.loss)


@pytest.mark.parametrize("known", [True, False], ids=["decimals", "floats"])
@pytest.mark.parametrize("condition", [10.0, 1e6])
def test_the_uncertainty_includes_the_start_and_the_coordinates_where_only_floats_are_known(
    known, condition, monkeypatch
):
    if not known:
        monkeypatch.setattr(turned, "FEW", 0)
    tasks, M, w0 = some_tasks(realizable=False), spread(condition, 4), np.array([0.3, -1.7, 0.1, 12.0])
    e = fg.expect(tasks, "without-replacement", 3, scheme=GeneralizedRidge(M), w0=w0)
    loss, forgetting, _ = enumerated(tasks, M, ORDERS["without-replacement"], 3, w0)
    agrees(e, "loss", loss)
    agrees(e, "forgetting", forgetting)
    doubt = float(e.uncertainty["loss"]) / float(e.loss)
    assert doubt < 1e-14 if known else 1e-15 * condition < doubt < 1e-9 * condition


def test_held_out_rows_are_put_into_the_same_coordinates():
    tasks, M, rng = some_tasks(), spread(30.0, 4), np.random.default_rng(3)
    pairs = [(np.round(rng.standard_normal((2, 4)), 2), np.round(rng.standard_normal(2), 2)) for _ in range(3)]
    e = fg.expect(tasks, "without-replacement", 2, scheme=GeneralizedRidge(M), test=pairs, w0=[1.0, 0.5, 0.0, -2.0])
    loss, _, test = enumerated(tasks, M, ORDERS["without-replacement"], 2, [1.0, 0.5, 0.0, -2.0], pairs)
    agrees(e, "loss", loss)
    agrees(e, "test_loss", test)
    with pytest.raises(NotSupportedError, match="by covariances"):
        fg.expect(tasks, "random", 2, scheme=GeneralizedRidge(M), test=np.eye(4))


@pytest.mark.parametrize(
    "matrix", [0.3 * np.eye(4), 0.3 * np.ones(4), sp.eye_array(4) * 0.3], ids=["d x d", "d", "sparse"]
)
def test_a_multiple_of_the_identity_is_ridge(matrix):
    rng = np.random.default_rng(1)
    tasks = some_tasks(realizable=False, loss="mean")
    tests = [(rng.standard_normal((2, 4)), rng.standard_normal(2)) for _ in range(3)]
    for ordering in ("random", "reshuffled", "norm-weighted", [0, 2, 1, 0]):
        each = [
            fg.expect(tasks, ordering, 4, scheme=scheme, noise=0.1, test=tests, w0=[1.0, 2.0, 3.0, 4.0],
                      quantities=("loss", "forgetting", "test_loss", "averaged_loss"))
            for scheme in (GeneralizedRidge(matrix), Ridge(0.3))
        ]  # fmt: skip
        for name, value in each[0].values.items():
            off = abs(float(value - each[1].values[name]))
            assert off <= float(each[0].uncertainty[name] + each[1].uncertainty[name]), name
            assert off < 1e-13 * float(abs(value))
    runs = [fg.run(tasks, "random", 9, scheme=scheme, seed=2) for scheme in (GeneralizedRidge(matrix), Ridge(0.3))]
    np.testing.assert_allclose(runs[0].iterates, runs[1].iterates, atol=1e-12)


def test_noise_and_held_out_rows_beside_a_matrix_are_those_of_tasks_with_scaled_columns():
    """X diag(m)^(-1/2) with ridge 1 is X with the diagonal m; powers of two make the scaled data exact."""
    rng, m = np.random.default_rng(5), np.array([4.0, 1.0, 0.25, 16.0])
    Xs, ys = [rng.standard_normal((2, 4)) for _ in range(3)], [rng.standard_normal(2) for _ in range(3)]
    tests = [(rng.standard_normal((30, 4)), rng.standard_normal(30)) for _ in range(3)]
    options = {"noise": [0.1, 0.2, 0.0], "quantities": ("loss", "forgetting", "test_loss")}
    here = fg.expect(fg.RegressionTasks(Xs, ys), "random", 5, scheme=GeneralizedRidge(m), test=tests, **options)
    there = fg.expect(
        fg.RegressionTasks([X / np.sqrt(m) for X in Xs], ys), "random", 5, scheme=Ridge(1.0),
        test=[(X / np.sqrt(m), y) for X, y in tests], **options,
    )  # fmt: skip
    for name, value in here.values.items():
        assert float(value) == pytest.approx(float(there.values[name]), rel=1e-13), name


def test_the_ordering_sees_the_norms_of_the_tasks_and_not_those_of_the_coordinates():
    tasks = fg.RegressionTasks([[[2.0, 0.0]], [[0.0, 1.0]]], [[2.0], [1.0]])
    scheme = GeneralizedRidge([1e4, 1e-4])
    e = fg.expect(tasks, fg.orderings.NormWeighted(), 1, scheme=scheme)
    p = np.array([4, 1]) / 5
    ends = [fg.run(tasks, [m], 1, scheme=scheme).losses[-1] for m in (0, 1)]
    assert float(e.loss) == pytest.approx(float(p @ ends), rel=1e-12)


def test_runs_adaptive_orders_and_errors_are_computed_in_w():
    tasks, scheme = some_tasks(), GeneralizedRidge(spread(30.0, 4))
    greedy = fg.run(tasks, "greedy", 3, scheme=scheme)
    w = np.zeros(4)
    for task in greedy.order:
        assert task == np.argmax(tasks.distances(w))
        X, y = tasks.task(task)
        w = np.linalg.solve(scheme.matrix + X.T @ X, scheme.matrix @ w + X.T @ y)
    np.testing.assert_allclose(greedy.iterates[-1], w, atol=1e-12)
    e = fg.expect(tasks, "greedy", 3, scheme=scheme)
    assert e.method == "deterministic"
    assert float(e.loss) == pytest.approx(float(greedy.losses[-1]))
    e = fg.expect(tasks, "cyclic", 3, scheme=scheme, quantities="error")
    assert float(e.values["error"]) == pytest.approx(
        float(np.sum((fg.run(tasks, "cyclic", 3, scheme=scheme).iterates[-1] - tasks.w_star) ** 2))
    )
    many = fg.run_many(tasks, "random", 3, runs=5, scheme=scheme, seed=1)
    assert many.losses.shape == (5, 4)


def test_accuracies_are_those_of_w():
    rng = np.random.default_rng(2)
    tasks = fg.RegressionTasks.from_labels(
        rng.standard_normal((12, 3)), rng.integers(0, 2, 12), np.repeat([0, 1, 2], 4)
    )
    scheme, w0 = GeneralizedRidge([1.0, 4.0, 0.3]), np.full((3, 2), 0.2)
    e = fg.expect(tasks, "without-replacement", 2, scheme=scheme, quantities="accuracy", w0=w0)
    ends = [
        fg.run(tasks, list(order), 2, scheme=scheme, w0=w0).accuracy[-1].mean() for order in permutations(range(3), 2)
    ]
    assert e.method == "listing"
    assert float(e.values["accuracy"]) == pytest.approx(float(np.mean(ends)))


def test_the_scheme_conforms_and_is_saved_and_made_of_words(tmp_path):
    check_scheme(GeneralizedRidge(np.linspace(1.0, 3.0, 9)))
    check_scheme(GeneralizedRidge(spread(20.0, 9)))
    tasks, scheme = some_tasks(), GeneralizedRidge(MATRICES["full"])
    for name, result in {
        "run": fg.run(tasks, "cyclic", 3, scheme=scheme),
        "expectation": fg.expect(tasks, "random", 3, scheme=scheme),
    }.items():
        result.save(tmp_path / f"{name}.npz")
        loaded = type(result).load(tmp_path / f"{name}.npz")
        assert loaded.scheme == scheme
    run = fg.run(tasks, "cyclic", 3, scheme="generalized-ridge matrix=1,2,3,4")
    assert run.scheme == GeneralizedRidge([1, 2, 3, 4]) != scheme
    assert len({scheme, GeneralizedRidge(MATRICES["full"]), run.scheme}) == 2
    assert str(run.scheme) == "GeneralizedRidge([1.0, 2.0, 3.0, 4.0])"
    assert GeneralizedRidge(np.diag([1.0, 2.0, 3.0, 4.0])) == run.scheme  # the diagonal alone is kept


def test_sparse_rows_stay_sparse_under_a_diagonal():
    X = sp.random_array((40, 30), density=0.1, rng=np.random.default_rng(0), format="csr")
    tasks = fg.RegressionTasks([X[:20], X[20:]], [np.ones(20), np.zeros(20)])
    there = GeneralizedRidge(np.arange(1.0, 31.0)).in_coordinates(tasks, np.zeros(30))
    dense = fg.RegressionTasks([X[:20].toarray(), X[20:].toarray()], [np.ones(20), np.zeros(20)])
    values = [fg.expect(t, "random", 3, scheme=GeneralizedRidge(np.arange(1.0, 31.0))).loss for t in (tasks, dense)]
    assert sp.issparse(there.problem.task(0)[0]) or there.problem._known
    assert float(values[0]) == pytest.approx(float(values[1]), rel=1e-12)


@pytest.mark.parametrize(
    ("matrix", "error", "message"),
    [
        ([[1.0, 0.5], [0.0, 1.0]], InvalidInputError, r"not symmetric: entry \(0, 1\) is 0.5, and entry \(1, 0\) is 0"),
        ([[1.0, 2.0], [2.0, 1.0]], InvalidInputError, "not positive definite: it has the eigenvalue -1,"),
        ([[1.0, 1.0], [1.0, 1.0]], InvalidInputError, "singular: .* No penalty keeps w along its eigenvector"),
        ([1.0, 0.0], InvalidInputError, "singular"),
        ([1.0, -2.0], InvalidInputError, "the eigenvalue -2,"),
        ([[1.0, float("nan")], [float("nan"), 1.0]], InvalidInputError, "matrix.*nan"),
        (3.0, InvalidInputError, r"expected d x d numbers, or d numbers, got shape \(\)"),
        (np.ones((2, 3)), InvalidInputError, r"got shape \(2, 3\)"),
        (np.ones((0, 0)), InvalidInputError, r"got shape \(0, 0\)"),
    ],
)
def test_a_matrix_that_is_no_norm_is_refused(matrix, error, message):
    with pytest.raises(error, match=message):
        GeneralizedRidge(matrix)


def test_a_matrix_that_does_not_fit_the_tasks_is_refused():
    tasks = some_tasks()
    for call in (fg.run, fg.run_many, fg.expect):
        with pytest.raises(InvalidInputError, match=r"the matrix of .* is 2 x 2, but w has 4 entries"):
            call(tasks, "cyclic", 2, scheme=GeneralizedRidge([1.0, 2.0]))
        with pytest.raises(NotSupportedError, match="needs RegressionTasks"):
            call(fg.ConvexSets([fg.Ball([0.0], 1.0)]), "cyclic", 2, scheme=GeneralizedRidge([1.0]))
    kernel = fg.KernelTasks(np.eye(2), [1.0, 0.0], [0, 1])
    with pytest.raises(NotSupportedError, match="columns of X, not KernelTasks"):
        fg.expect(kernel, "cyclic", 2, scheme=GeneralizedRidge([1.0, 2.0]))


def test_a_matrix_that_hides_rows_from_float64_is_refused():
    tasks = fg.RegressionTasks([[[1.0, 0.0], [1.0, 1.0]]], [[1.0, 1.0]])
    with pytest.raises(NotSupportedError, match=r"hides rows of the tasks .* rank 2, and 1 in its coordinates"):
        fg.expect(tasks, "cyclic", 1, scheme=GeneralizedRidge([1e-20, 1e20]))
