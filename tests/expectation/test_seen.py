"""What the engine for schemes that remember covers, and says; its values are compared in tests/exact/test_seen.py."""

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import NotSupportedError
from forgetting.schemes import EWC, AffineStep, Learned, RecursiveLeastSquares, Replay, Ridge, Scheme

TASKS = fg.families.gaussian(T=3, d=6, rank=2, seed=0)


@pytest.mark.parametrize(
    ("scheme", "words"),
    [(Replay(), "the set of the tasks seen"), (EWC(), "the visits to each task"), (EWC(gamma=0.5), "the order so far")],
)
@pytest.mark.parametrize("ordering", ["with-replacement", "without-replacement", "reshuffled", "cyclic"])
def test_auto_takes_the_engine_that_follows_what_is_remembered(scheme, words, ordering):
    found = fg.expect(TASKS, ordering, 3, scheme)
    assert found.method == "seen"
    assert words in found.detail
    assert float(found.uncertainty["loss"]) < 1e-9


def test_a_revisited_task_adds_no_case():
    few, many = (fg.expect(TASKS, "with-replacement", k, Replay(), method="seen").detail for k in (100, 200))
    cases = [int(detail.split(", ")[1].split()[0]) for detail in (few, many)]
    assert cases[1] - cases[0] == 100 * 7 * 3  # seven sets, three tasks


def test_accuracies_are_listed_and_losses_beside_them_are_not():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((24, 4)), np.tile(np.arange(6), 4)
    tasks = fg.RegressionTasks.from_labels(X, y, y // 2)
    found = fg.expect(tasks, "without-replacement", 3, Replay(), quantities=("loss", "accuracy"))
    assert found.method == "listing"
    assert "loss by the method seen" in found.detail
    assert set(found.uncertainty) == {"loss"}


@pytest.mark.parametrize(
    ("scheme", "ordering", "quantities", "reason"),
    [
        (Ridge(1.0), "cyclic", ("loss",), "it is for schemes whose memory follows from the tasks seen, not for Ridge"),
        (Replay(policy="hard"), "cyclic", ("loss",), "it is for schemes whose memory follows"),
        (RecursiveLeastSquares(), "cyclic", ("loss",), "it is for schemes whose memory follows"),
        (Replay(), "greedy-distance", ("loss",), "it does not cover GreedyDistance"),
        (Replay(), "cyclic", ("averaged_loss",), "it does not cover means of iterates"),
    ],
)
def test_what_is_not_covered_is_refused_with_the_reason(scheme, ordering, quantities, reason):
    tasks = fg.families.gaussian(T=2, d=6, rank=2, seed=0)
    with pytest.raises(NotSupportedError, match=reason):
        fg.expect(tasks, ordering, 2, scheme, quantities=quantities, method="seen")


def test_single_coordinates_of_very_many_are_not_followed():
    wide = fg.RegressionTasks([np.eye(2, 1200), np.eye(2, 1200)[:, ::-1] + 0.01], [[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(NotSupportedError, match=r"moves single coordinates of w, and is followed in up to 1000"):
        fg.expect(wide, "cyclic", 2, EWC(diagonal=True), method="seen")
    assert fg.expect(wide, "cyclic", 2, EWC(diagonal=True)).method == "deterministic"


@pytest.mark.parametrize("k", [2, 4])
def test_a_diagonal_that_leaves_the_joint_row_space_is_exact(k):
    rng = np.random.default_rng(0)
    tasks = fg.RegressionTasks(
        [rng.standard_normal((1, 6)) for _ in range(3)], [rng.standard_normal(1) for _ in range(3)]
    )
    w0, quantities = rng.standard_normal(6), ("loss", "forgetting", "next_loss")
    found = fg.expect(tasks, "reshuffled", k, EWC(0.5, diagonal=True), w0, quantities=quantities)
    listed = fg.expect(tasks, "reshuffled", k, EWC(0.5, diagonal=True), w0, "listing", quantities)
    assert found.method == "seen"
    for name in quantities:
        assert float(found.values[name]) == pytest.approx(float(listed.values[name]), rel=1e-9)
    moved = fg.run(tasks, [0, 1], 2, EWC(0.5, diagonal=True), w0=w0).iterates[-1] - w0
    rows = np.concatenate([tasks.task(m)[0] for m in range(3)])
    assert np.linalg.norm(moved - np.linalg.pinv(rows) @ rows @ moved) > 0.01


def test_too_many_orders_are_refused():
    with pytest.raises(NotSupportedError, match=r"there are more than 1e\+07 orders of tasks to follow"):
        fg.expect(TASKS, "with-replacement", 40, EWC(gamma=0.5), method="seen")


def test_the_error_is_the_squared_distance():
    found = fg.expect(TASKS, [0, 1, 0, 2], 4, Replay(Ridge(1.0)), quantities=("error",))
    end = fg.run(TASKS, [0, 1, 0, 2], 4, Replay(Ridge(1.0))).iterates[-1]
    assert found.method == "seen"
    assert float(found.error) == pytest.approx(np.sum((end - TASKS.w_star) ** 2), rel=1e-9)


class Alternating(Scheme):
    """A scheme of a user: it projects at every other visit to a task, and stays at the others."""

    random = False
    intrinsic = True
    memory_law = "multiset"

    def remember(self, geometry, seen, task):
        return frozenset(set(seen) ^ {task})

    def affine_step(self, geometry, task, seen):
        block = geometry.block(int(geometry.index[task]))
        basis, still = geometry.rows[block], np.zeros((geometry.dim,) * 2)
        move = basis.T @ basis * (task not in set(seen))
        push = np.atleast_2d(geometry.targets)[:, block] @ basis * (task not in set(seen))
        return AffineStep(np.eye(geometry.dim) - move, push, still, still)

    def start(self, problem, w0, rng):
        return [frozenset()]

    def learn(self, problem, task, w, memory):
        step = self.affine_step(problem, task, memory[0])
        memory[0] = self.remember(problem, memory[0], task)
        return Learned(step.matrix @ w + step.push[0])


@pytest.mark.parametrize("ordering", ["with-replacement p=1,2,3", "reshuffled", "cyclic"])
def test_a_scheme_of_a_user_is_exact_by_what_it_states(ordering):
    quantities = ("loss", "forgetting", "regret", "next_loss")
    tasks = fg.families.gaussian(T=3, d=6, rank=2, seed=0)
    found = fg.expect(tasks, ordering, 5, Alternating(), quantities=quantities)
    listed = fg.expect(tasks, ordering, 5, Alternating(), quantities=quantities, method="listing")
    assert found.method == "seen"
    for name in quantities:
        assert float(found.values[name]) == pytest.approx(float(listed.values[name]), rel=1e-9, abs=1e-14)
