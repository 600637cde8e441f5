"""`fg.adversarial_search`: known worst cases, what a restart depends on, stores, starts and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import forgetting as fg
from forgetting.errors import InvalidInputError, MemoryLimitError, NotSupportedError, OrderingError
from forgetting.worstcase import TaskSearch, adversarial_search


def two_subspaces(k: int) -> float:
    """The largest expected loss of two tasks, over the angle t between two lines (NUMERICS, known answers)."""

    def loss(t: float) -> float:
        c = np.cos(t)
        return 0.25 * np.sin(t) ** 2 * (1 + c) / 2 * ((1 + c**2) / 2) ** (k - 1)

    angles = np.linspace(0, np.pi / 2, 400_001)
    near = angles[np.argmax([loss(t) for t in angles[::100]]) * 100]
    return -float(
        minimize_scalar(
            lambda t: -loss(t), bounds=(max(near - 1e-2, 0), near + 1e-2), options={"xatol": 1e-12}, method="bounded"
        ).fun
    )


@pytest.mark.parametrize("k", [1, 2, 5, 20, 1000, 10_000])
def test_two_tasks_reach_the_closed_form(k):
    found = adversarial_search(2, 3, None, k, restarts=4, steps=200)
    assert found.value == pytest.approx(two_subspaces(k), rel=1e-8)
    if k == 1:
        assert found.value == pytest.approx(4 / 27, rel=1e-12)
    assert "local maximum" in found.status


def test_two_alternating_lines_reach_the_known_forgetting():
    found = adversarial_search(2, 2, 1, 50, "forgetting", "cyclic", restarts=2, steps=100)
    assert found.value == pytest.approx(0.25 / 50 * (1 - 1 / 50) ** 49 * 1.0, rel=1e-3)  # at sin^2 = 1/k, near its best
    assert found.value >= 0.25 / 50 * (1 - 1 / 50) ** 49


# a semidefinite program over moments of words in the projections, solved apart, gives the same to 2e-7 as a maximum
@pytest.mark.parametrize(
    ("T", "d", "rank", "k", "value"),
    [(3, 6, 4, 2, 0.0910439534), (4, 10, 7, 2, 0.0946214799), (3, 5, None, 3, 0.0646958903)],
)
def test_random_starts_reach_the_worst_case(T, d, rank, k, value):
    found = adversarial_search(T, d, rank, k, restarts=16, steps=400, seed=1)
    assert found.value == pytest.approx(value, abs=1e-8)


@pytest.mark.parametrize(
    ("quantity", "ordering", "weights"),
    [
        ("loss", None, "fixed"), ("next_loss", None, "free"), ("forgetting", None, "free"),
        ("next_loss", fg.orderings.WithReplacement([1, 2, 3]), "fixed"), ("loss", "cyclic", "fixed"),
        ("next_loss", "cyclic", "fixed"), ("forgetting", [0, 1, 2, 1, 0, 2, 2], "fixed"),
    ],
)  # fmt: skip
def test_values_are_exact_and_tasks_have_radius_one(quantity, ordering, weights):
    found = adversarial_search(3, 3, None, 6, quantity, ordering, weights=weights, restarts=3, steps=60)
    tasks = found.tasks
    again = fg.expect(tasks, found.ordering, 6, quantities=(quantity,))
    assert float(again.values[quantity]) == pytest.approx(found.value, abs=found.uncertainty + 1e-15)
    assert found.value == pytest.approx(found.values.max(), rel=1e-9)
    assert tasks.radius == pytest.approx(1, abs=1e-12)
    assert tasks.scale <= 1 + 1e-9
    assert found.weights.sum() == pytest.approx(1)
    for X in (tasks.task(m)[0] for m in range(3)):
        gram = X @ X.T
        assert np.allclose(gram, np.eye(len(X)), atol=1e-12) or not X.any()


def test_free_weights_find_no_less_than_equal_ones():
    equal = adversarial_search(3, 3, None, 4, "forgetting", restarts=8, steps=150)
    free = adversarial_search(3, 3, None, 4, "forgetting", weights="free", restarts=8, steps=150)
    assert free.value >= equal.value * (1 - 1e-9)
    assert free.weights.shape == (3,)


def test_values_never_fall_in_the_course_of_a_search():
    found = adversarial_search(4, 4, None, 30, restarts=6, steps=120)
    assert found.history.shape == (6, 121)
    assert np.all(np.diff(found.history, axis=1) >= -1e-12 * found.history[:, 1:])
    assert np.allclose(found.history[:, -1], found.values, rtol=1e-12)
    assert found.values.max() > 2 * np.median(found.history[:, 0])


def test_fixed_ranks_stay_and_free_ranks_gain():
    # a task of full rank solves everything, so that fixed ranks lose 15 % of the free value, whichever maximum is met
    fixed = adversarial_search(3, 4, [1, 4, 1], 2, ranks="fixed", restarts=4, steps=100)
    free = adversarial_search(3, 4, [1, 4, 1], 2, restarts=12, steps=300)  # most of them end at the largest value
    assert fixed.tasks.ranks.tolist() == [1, 4, 1]
    assert free.value > fixed.value * 1.1


def test_a_restart_depends_on_the_seed_and_its_number_alone():
    several = adversarial_search(3, 4, None, 6, restarts=5, steps=110, seed=7)
    few = adversarial_search(3, 4, None, 6, restarts=2, steps=110, seed=7)
    np.testing.assert_allclose(several.history[:2], few.history, rtol=1e-9)
    other = adversarial_search(3, 4, None, 6, restarts=2, steps=110, seed=8)
    assert not np.allclose(other.history[:, 0], few.history[:, 0])


def test_devices_agree():
    here = adversarial_search(3, 4, None, 6, restarts=4, steps=200)
    there = adversarial_search(3, 4, None, 6, restarts=4, steps=200, device="array-api-strict")
    assert there.value == pytest.approx(here.value, rel=1e-8)
    assert "array-api-strict" in there.device


def test_a_search_goes_on_from_its_store(tmp_path, monkeypatch):
    store = tmp_path / "search.db"
    first = adversarial_search(3, 3, None, 4, restarts=8, steps=30, store=store)
    asked: list[list[int]] = []
    from forgetting.worstcase import search as module

    original = module.climb_with_ranks
    monkeypatch.setattr(
        module,
        "climb_with_ranks",
        lambda objective, point, *a, **b: asked.append(len(point.kernel)) or original(objective, point, *a, **b),
    )
    more = adversarial_search(3, 3, None, 4, restarts=10, steps=30, store=store)
    assert asked == [2]  # the first eight were there
    np.testing.assert_array_equal(more.values[:8], first.values)
    adversarial_search(3, 3, None, 5, restarts=8, steps=30, store=store)
    assert asked == [2, 8]  # another k


def test_processes_give_what_one_process_gives():
    alone = adversarial_search(2, 3, None, 4, restarts=10, steps=30)
    np.testing.assert_allclose(
        adversarial_search(2, 3, None, 4, restarts=10, steps=30, jobs=2).values, alone.values, rtol=1e-12
    )


def test_given_tasks_are_where_the_search_begins():
    tasks = fg.families.two_lines(0.3)
    same = adversarial_search(2, 2, None, 20, start=tasks, restarts=1, steps=1)
    lines = 0.25 * np.sin(0.3) ** 2 * (1 + np.cos(0.3)) / 2 * ((1 + np.cos(0.3) ** 2) / 2) ** 19
    assert same.history[0, 0] == pytest.approx(lines, rel=1e-10)
    padded = adversarial_search(4, 5, None, 20, start=tasks, restarts=2, steps=100)
    assert padded.history[0, 0] == pytest.approx(lines, rel=1e-10)  # two clones of each
    assert padded.value >= two_subspaces(20) * (1 - 1e-9)
    assert padded.tasks.num_tasks == 4
    assert padded.tasks.dim == 5


def test_results_come_back_from_files(tmp_path):
    found = adversarial_search(2, 2, 1, 3, restarts=2, steps=20)
    found.save(tmp_path / "found.npz")
    again = TaskSearch.load(tmp_path / "found.npz")
    assert again.value == found.value
    assert again.rate == 3 * found.value
    np.testing.assert_array_equal(again.history, found.history)


def test_full_ranks_leave_no_loss():
    found = adversarial_search(2, 2, 2, 3, ranks="fixed", restarts=2, steps=10)
    assert found.value == 0
    assert np.isfinite(found.slopes).all()


CLASSES = fg.families.separable(3, 3, 2, margin=0.3, seed=0)
REFUSED = {
    "one task": ({"T": 1}, InvalidInputError, "T must be at least 2"),
    "no dimension": ({"d": 0}, InvalidInputError, "d must be at least 1"),
    "no step": ({"k": 0}, InvalidInputError, "k must be at least 1"),
    "a rank above d": ({"rank": 4}, InvalidInputError, "rank of task 0 is 4; it must be between 1 and d = 3"),
    "one rank of two": ({"rank": [1, 5]}, InvalidInputError, "rank of task 1 is 5"),
    "too few ranks": ({"rank": [1, 1, 1]}, InvalidInputError, "one for each of 2 tasks"),
    "quantity": ({"quantity": "los"}, InvalidInputError, "'loss', 'next_loss' or 'forgetting', got 'los'"),
    "forgetting after one step": ({"k": 1, "quantity": "forgetting"}, InvalidInputError, "give k of at least 2"),
    "free weights of the mean loss": ({"weights": "free"}, InvalidInputError, "next_loss"),
    "weights in place of an ordering": ({"weights": "equal"}, InvalidInputError, "'fixed' or 'free'"),
    "free weights of a cycle": ({"ordering": "cyclic", "weights": "free"}, InvalidInputError, "draws nothing"),
    "ranks": ({"ranks": "any"}, InvalidInputError, "'free' or 'fixed'"),
    "an ordering": ({"ordering": "without-replacement"}, NotSupportedError, "covers independent draws"),
    "weights of norms": ({"ordering": "norm-weighted"}, NotSupportedError, "depend on the tasks"),
    "a short order": ({"ordering": [0, 1]}, OrderingError, "has 2 steps"),
    "no next task": ({"ordering": [0, 1, 0], "quantity": "next_loss"}, OrderingError, "needs 4"),
    "weights of three tasks": ({"ordering": fg.orderings.WithReplacement([1, 1, 1])}, InvalidInputError, "3 entries"),
    "a start and a rank": ({"start": fg.families.two_lines(0.5)}, InvalidInputError, "rank must be None"),
    "many tasks": ({"start": fg.families.orthogonal(3), "rank": None}, InvalidInputError, "3 tasks, more than T = 2"),
    "a wide start": ({"T": 5, "start": fg.families.orthogonal(4), "rank": None}, InvalidInputError, "4 dimensions"),
    "classification": ({"T": 3, "start": CLASSES, "rank": None}, InvalidInputError, "row spaces"),
    "too large": ({"T": 100, "d": 2000}, MemoryLimitError, "fewer tasks or dimensions"),
    "too many restarts": ({"restarts": 10**15}, MemoryLimitError, "fewer restarts"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_bad_arguments_are_refused_with_what_to_do(name):
    changes, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        adversarial_search(**{"T": 2, "d": 3, "rank": 1, "k": 3, "restarts": 1, "steps": 2, **changes})
