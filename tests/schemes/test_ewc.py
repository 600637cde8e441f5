"""Elastic weight consolidation: equal to joint training where its docstring says so, and not elsewhere."""

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.schemes import EWC

ORDER = [2, 0, 1, 2, 3]


def tasks_of(outputs=None, loss="sum", noise=1.0, dim=4, seed=0, diagonal=False):
    rng = np.random.default_rng(seed)
    Xs = [rng.standard_normal((n, dim)) for n in (1, 3, 2, 2)]
    if diagonal:
        Xs = [np.diag(rng.standard_normal(dim) * (rng.random(dim) < 0.7)) for _ in range(4)]
    shape = () if outputs is None else (outputs,)
    w = rng.standard_normal((dim, *shape))
    return fg.RegressionTasks(Xs, [X @ w + noise * rng.standard_normal((len(X), *shape)) for X in Xs], loss=loss)


def data_of(tasks, order):
    pairs = [tasks.equations(m) for m in order]
    return [np.concatenate([pair[part] for pair in pairs]) for part in (0, 1)]


def joint(tasks, order, w0):
    """The minimiser of the sum of the losses that is nearest to w_0, after each visit."""
    points = [w0]
    for k in range(1, len(order) + 1):
        A, b = data_of(tasks, order[:k])
        points.append(w0 + np.linalg.pinv(A, rcond=1e-10) @ (b - A @ w0))
    return np.array(points)


def pulled(tasks, order, w0, penalties, centres):
    """argmin of the loss and of the sum of penalties, each around its centre: as many as there were steps before.

    `penalties(order so far)` and `centres(points so far)` give them.
    """
    points = [w0]
    for t, m in enumerate(order):
        A, b = data_of(tasks, [m])
        rows, sides = [A], [b]
        for F, centre in zip(penalties(order[:t]), centres(points), strict=True):
            values, vectors = np.linalg.eigh(F)
            L = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
            rows.append(L)
            sides.append(L @ centre)
        K, e = np.concatenate(rows), np.concatenate(sides)
        points.append(points[-1] + np.linalg.pinv(K, rcond=1e-7) @ (e - K @ points[-1]))
    return np.array(points)


def fisher(tasks, m):
    A, _ = data_of(tasks, [m])
    return A.T @ A


@pytest.mark.parametrize("outputs", [None, 2])
@pytest.mark.parametrize("loss", ["sum", "mean"])
@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("dim", [3, 6, 12])
def test_strength_1_and_gamma_1_are_joint_training_on_the_visits_so_far(outputs, loss, noise, dim):
    """Also with revisits, and where minimisers are not unique (12 dimensions, 8 rows)."""
    tasks = tasks_of(outputs, loss, noise, dim)
    w0 = np.random.default_rng(1).standard_normal(tasks.point_shape)
    run = fg.run(tasks, ORDER, 5, EWC(), w0=w0)
    np.testing.assert_allclose(run.iterates, joint(tasks, ORDER, w0), rtol=1e-7, atol=1e-8)


def test_nothing_is_forgotten_on_tasks_with_a_common_solution():
    tasks = tasks_of(noise=0.0, dim=12)
    assert fg.run(tasks, [0, 1, 2, 3], 4, EWC()).forgetting.max() < 1e-20
    assert fg.run(tasks, [0, 1, 2, 3], 4, EWC(0.1, 0.3)).forgetting.max() < 1e-20  # F need only span what was seen


@pytest.mark.parametrize(("strength", "gamma", "diagonal"), [(0.3, 1.0, False), (2.0, 0.5, False), (1.0, 0.0, False),
                                                             (1.0, 1.0, True), (0.3, 0.7, True)])  # fmt: skip
@pytest.mark.parametrize(("outputs", "dim"), [(None, 3), (2, 6)])
def test_a_step_minimises_the_loss_with_the_penalty_around_the_last_iterate(strength, gamma, diagonal, outputs, dim):
    tasks = tasks_of(outputs, "mean", dim=dim)

    def penalties(order):
        F = sum((gamma ** (len(order) - 1 - t) * fisher(tasks, m) for t, m in enumerate(order)), np.zeros((dim, dim)))
        return [strength * (np.diag(np.diag(F)) if diagonal else F)]

    w0 = np.random.default_rng(1).standard_normal(tasks.point_shape)
    expected = pulled(tasks, ORDER, w0, penalties, lambda points: points[-1:])
    run = fg.run(tasks, ORDER, 5, EWC(strength, gamma, diagonal), w0=w0)
    np.testing.assert_allclose(run.iterates, expected, rtol=1e-6, atol=1e-7)


def test_a_penalty_with_a_centre_for_each_task_is_not_joint_training_from_the_third_task_on():
    tasks = tasks_of(dim=3)
    w0, order = np.zeros(3), [1, 2, 0]
    apart = pulled(tasks, order, w0, lambda seen: [fisher(tasks, m) for m in seen], lambda points: points[1:])
    exact = joint(tasks, order, w0)
    np.testing.assert_allclose(apart[:3], exact[:3], atol=1e-9)
    assert np.linalg.norm(apart[3] - exact[3]) > 1e-2 * np.linalg.norm(exact[3])
    np.testing.assert_allclose(fg.run(tasks, order, 3, EWC()).iterates, exact, atol=1e-9)


def test_a_diagonal_is_joint_training_where_all_fisher_matrices_are_diagonal_and_not_elsewhere():
    w0, order = np.zeros(4), [0, 1, 2, 3]
    diagonal, other = tasks_of(diagonal=True), tasks_of()
    run = fg.run(diagonal, order, 4, EWC(diagonal=True))
    np.testing.assert_allclose(run.iterates, joint(diagonal, order, w0), atol=1e-9)
    gap = fg.run(other, order, 4, EWC(diagonal=True)).iterates[-1] - joint(other, order, w0)[-1]
    assert np.linalg.norm(gap) > 1e-2


def test_a_diagonal_of_sparse_tasks_is_that_of_dense_ones():
    from scipy.sparse import csr_array

    rng = np.random.default_rng(0)
    Xs = [rng.standard_normal((2, 9)) * (rng.random((2, 9)) < 0.4) for _ in range(4)]
    ys = [rng.standard_normal(2) for _ in Xs]
    runs = [
        fg.run(fg.RegressionTasks(rows, ys), ORDER, 5, EWC(0.5, 0.8, diagonal=True)).iterates
        for rows in (Xs, [csr_array(X) for X in Xs])
    ]
    np.testing.assert_allclose(*runs, atol=1e-12)


def test_the_order_does_not_matter_to_joint_training():
    tasks = tasks_of(dim=3)
    ends = [fg.run(tasks, order, 4, EWC()).iterates[-1] for order in ([0, 1, 2, 3], [3, 1, 0, 2])]
    np.testing.assert_allclose(*ends, rtol=1e-9)
    e = fg.expect(tasks, "without-replacement", 4, EWC())
    assert e.method == "seen"
    assert abs(float(e.loss) - tasks.loss(ends[0])) <= float(e.uncertainty["loss"]) + 1e-12


def test_results_load_again(tmp_path):
    scheme = EWC(2.0, 0.5, True)
    run = fg.run(tasks_of(), ORDER, 5, scheme)
    run.save(tmp_path / "run.npz")
    again = type(run).load(tmp_path / "run.npz")
    assert again.scheme == scheme
    np.testing.assert_array_equal(again.losses, run.losses)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("ewc strength=0", "EWC: strength must be greater than 0, got 0"),
        ("ewc strength=nan", "EWC: strength"),
        ("ewc gamma=1.5", "EWC: gamma must be at most 1, got 1.5"),
        ("ewc gamma=-1", "EWC: gamma must be at least 0, got -1"),
        ("ewc diagonal=3", "EWC: diagonal"),
    ],
)
def test_bad_arguments_are_named(words, message):
    with pytest.raises(InvalidInputError, match=message):
        fg.run(tasks_of(), "cyclic", 2, words)


def test_problems_without_coordinates_are_refused():
    kernel = fg.KernelTasks(np.eye(4) + 0.5, [1.0, 2.0, 0.0, 1.0], [0, 1, 1, 2])
    sets = fg.ConvexSets([fg.Ball([0.0], 1.0)])
    with pytest.raises(NotSupportedError, match=r"given by their rows, not for KernelTasks"):
        fg.run(kernel, "cyclic", 1, "ewc diagonal=true")
    for words in ("ewc", "ewc diagonal=true"):
        with pytest.raises(NotSupportedError, match=r"EWC.* is a scheme for regression tasks"):
            fg.run(sets, "cyclic", 1, words)
