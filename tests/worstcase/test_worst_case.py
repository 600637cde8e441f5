"""Worst cases against known answers, against each other, and against concrete tasks that must not exceed them."""

import _thread
import subprocess
import sys
import threading

import numpy as np
import pytest
from concrete import enumerated, random_projections, tasks_of
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import forgetting as fg
from forgetting.errors import InvalidInputError, NotSupportedError, PatienceError, WorkerError
from forgetting.worstcase import inner_products, solving
from forgetting.worstcase.program import program, program_size
from forgetting.worstcase.tree import TaskWalk, tree


def two_lines(k):
    """The largest expected loss of two lines at the best angle: the worst case of all pairs of subspaces."""

    def value(angle):
        c = np.cos(angle)
        return -0.25 * np.sin(angle) ** 2 * (1 + c) / 2 * ((1 + c * c) / 2) ** (k - 1)

    return -minimize_scalar(value, bounds=(0, np.pi / 2), method="bounded", options={"xatol": 1e-10}).fun


SETTINGS = [  # T, k, and what else is asked
    (1, 2, {}),
    (3, 2, {}),
    (4, 2, {}),
    (6, 2, {}),
    (3, 3, {}),
    (3, 2, {"quantity": "forgetting"}),
    (3, 3, {"quantity": "forgetting"}),
    (3, 2, {"quantity": "next_loss", "ordering": fg.orderings.WithReplacement([0.5, 0.3, 0.2])}),
    (2, 3, {"ordering": fg.orderings.WithReplacement([0.9, 0.1])}),
    (3, 3, {"ordering": "without-replacement"}),
    (3, 2, {"ordering": "without-replacement", "quantity": "next_loss"}),
    (4, 4, {"ordering": "without-replacement", "quantity": "forgetting"}),
    (2, 5, {"ordering": "reshuffled"}),
    (3, 7, {"ordering": "cyclic"}),
    (3, 6, {"ordering": "cyclic", "quantity": "forgetting"}),
    (3, 4, {"ordering": fg.orderings.Explicit([2, 0, 2, 1])}),
    (2, 2, {"kind": "convex"}),
    (3, 2, {"kind": "convex"}),
    (3, 3, {"kind": "convex"}),
    (3, 4, {"kind": "convex", "ordering": "cyclic"}),
    (2, 3, {"kind": "convex", "quantity": "forgetting"}),
    (2, 12, {"kind": "convex"}),  # moments of few digits, whose sets must not lose their common point
]


@pytest.mark.parametrize(("T", "k", "asked"), SETTINGS)
def test_primal_dual_tasks_and_proof_agree(T, k, asked) -> None:
    worst = fg.worst_case(T, k, **asked)
    assert worst.primal == pytest.approx(worst.dual, abs=1e-6)
    assert worst.lower == worst.value == pytest.approx(worst.primal, abs=1e-6)
    assert -1e-8 < worst.gap < 1e-6  # the projections on polyhedra are computed to 1e-9
    assert worst.certificate.verify() <= worst.upper
    assert worst.tasks.num_tasks == T
    assert worst.why_no_tasks == ""


@pytest.mark.parametrize(("T", "k", "asked"), [setting for setting in SETTINGS if "kind" not in setting[2]])
def test_tasks_have_the_value_run_by_run_and_a_solution_of_norm_one(T, k, asked) -> None:
    worst = fg.worst_case(T, k, **asked)
    tasks, ordering = worst.tasks, worst.ordering
    projections = [np.eye(tasks.dim) - np.linalg.pinv(X) @ X for X in (tasks.task(m)[0] for m in range(T))]
    law = {
        "WithReplacement": "uniform" if getattr(ordering, "p", None) is None else {"weights": ordering.p},
        "WithoutReplacement": "shuffles",
        "Reshuffled": "shuffles",
        "Cyclic": {"order": [step % T for step in range(k + 1)]},
        "Explicit": {"order": getattr(ordering, "seq", None)},
    }[type(ordering).__name__]
    value = enumerated([P.__matmul__ for P in projections], tasks.w_star, law, k, worst.quantity)
    assert np.linalg.norm(tasks.w_star) <= 1 + 1e-9  # less where no task asks for a part of w*
    assert value == pytest.approx(worst.value, abs=1e-9)


@pytest.mark.parametrize("k", range(1, 21))
def test_two_tasks_have_the_closed_form_of_two_lines(k) -> None:
    worst = fg.worst_case(2, k)
    assert worst.value == pytest.approx(two_lines(k), abs=1e-7)
    assert worst.upper == pytest.approx(two_lines(k), abs=1e-7)


def test_one_task_is_never_forgotten() -> None:
    for quantity in ("loss", "forgetting", "next_loss"):
        worst = fg.worst_case(1, 3, quantity=quantity)
        assert worst.value == 0
        assert worst.upper <= 1e-9


def test_one_step_with_any_number_of_tasks_has_a_closed_form() -> None:
    worst = fg.worst_case(np.inf, 1)
    assert worst.value == pytest.approx(1 / (3 * np.sqrt(3)), abs=1e-8)
    assert worst.tasks is None
    assert "finite T" in worst.why_no_tasks


@pytest.mark.parametrize("k", [2, 4, 6])
def test_alternating_between_two_tasks_forgets_as_much_as_two_lines(k) -> None:
    worst = fg.worst_case(2, k, quantity="forgetting", ordering="cyclic")
    assert worst.value == pytest.approx((1 - 1 / k) ** (k - 1) / (4 * k), abs=1e-7)


@pytest.mark.parametrize("k", [1, 2])
def test_values_grow_along_multiples_of_the_number_of_tasks_up_to_the_limit(k) -> None:
    """Tasks may be repeated, which changes nothing, so that 2 T tasks are at least as bad as T."""
    limit = fg.worst_case(np.inf, k)
    for T in (2, 3):
        values = [fg.worst_case(T * n, k).value for n in (1, 2, 4)]
        assert values == sorted(values)
        assert values[-1] < limit.upper
    far = [fg.worst_case(T, k).value for T in (400, 800)]
    assert 2 * far[1] - far[0] == pytest.approx(limit.value, abs=1e-5)  # the limit is approached like 1/T


@pytest.mark.parametrize(("T", "k"), [(2, 1), (2, 2), (3, 1), (3, 2)])
def test_convex_sets_are_at_least_as_bad_as_subspaces(T, k) -> None:
    for quantity in ("loss", "forgetting"):
        wider, narrower = (fg.worst_case(T, k, kind=kind, quantity=quantity) for kind in ("convex", "subspaces"))
        assert wider.upper >= narrower.value - 1e-9


def test_the_limit_covers_all_weights_of_the_next_loss() -> None:
    rng = np.random.default_rng(0)
    for k in (1, 2):
        limit = fg.worst_case(np.inf, k, quantity="next_loss").upper
        for T in (2, 3):
            ordering = fg.orderings.WithReplacement(rng.dirichlet(np.ones(T)))
            assert fg.worst_case(T, k, quantity="next_loss", ordering=ordering).value <= limit + 1e-9


def test_weights_that_are_clones_are_uniform_draws_of_more_tasks() -> None:
    """Weights 1/3 and 2/3 of two tasks are three tasks, two of them equal."""
    ordering = fg.orderings.WithReplacement([1, 2])
    for quantity in ("next_loss", "forgetting"):
        two = fg.worst_case(2, 2, quantity=quantity, ordering=ordering)
        assert two.value <= fg.worst_case(3, 2, quantity=quantity).upper + 1e-9


PROVED = [("with-replacement", "loss", 2, 2), ("with-replacement", "loss", 3, 2), ("with-replacement", "loss", 4, 2),
          ("with-replacement", "loss", 3, 3), ("with-replacement", "forgetting", 3, 2), ("cyclic", "forgetting", 3, 5),
          ("with-replacement", "forgetting", 3, 3), ("without-replacement", "loss", 3, 3),
          ("without-replacement", "loss", 4, 2)]  # fmt: skip


@pytest.fixture(scope="module")
def proved():
    """What is proved for some settings."""
    return {asked: fg.worst_case(*asked[2:], quantity=asked[1], ordering=asked[0]).upper for asked in PROVED}


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), d=st.integers(1, 5), close=st.booleans())
def test_no_tasks_exceed_what_is_proved(proved, seed, d, close) -> None:
    rng = np.random.default_rng(seed)
    for (name, quantity, T, k), upper in proved.items():
        ranks = [d - 1] * T if close else None
        z = rng.standard_normal(d)
        tasks = tasks_of(random_projections(T, d, rng, ranks), z / np.linalg.norm(z))
        assert float(getattr(fg.expect(tasks, name, k, quantities=(quantity,)), quantity)) <= upper


def test_worst_tasks_of_one_question_do_not_exceed_what_is_proved_for_another(proved) -> None:
    for T, k in [(3, 2), (3, 3)]:
        tasks = fg.worst_case(T, k).tasks
        for (name, quantity, count, steps), upper in proved.items():
            if count == T:
                value = float(getattr(fg.expect(tasks, name, steps, quantities=(quantity,)), quantity))
                assert value <= upper + 1e-12


def test_a_worst_case_is_saved_and_read(tmp_path) -> None:
    worst = fg.worst_case(3, 2, quantity="forgetting", ordering="cyclic")
    worst.save(tmp_path / "worst.npz")
    again = fg.worstcase.WorstCase.load(tmp_path / "worst.npz")
    assert (again.value, again.upper, again.k, again.quantity) == (worst.value, worst.upper, 2, "forgetting")
    assert again.certificate.verify() == worst.certificate.verify()
    assert fg.expect(again.tasks, "cyclic", 2).forgetting == pytest.approx(worst.value, abs=1e-12)


SMALL_ORDERS = {
    1: [fg.orderings.WithReplacement([1]), fg.orderings.Explicit([0, 0, 0]), fg.orderings.Cyclic()],
    2: [
        fg.orderings.WithReplacement([1, 3]),
        fg.orderings.WithReplacement([0, 1]),
        fg.orderings.Explicit([0]),
        fg.orderings.Explicit([1, 1, 1]),
        fg.orderings.Cyclic([0, 0, 1]),
        fg.orderings.Reshuffled(),
    ],
    3: [fg.orderings.WithReplacement([0, 1, 0]), fg.orderings.Explicit([0, 2, 1]), fg.orderings.Cyclic([2])],
}


@pytest.mark.parametrize("quantity", ["loss", "forgetting", "next_loss"])
@pytest.mark.parametrize("kind", ["subspaces", "convex"])
def test_every_small_question_has_tasks_though_some_are_never_learned(kind, quantity) -> None:
    for T, orderings in SMALL_ORDERS.items():
        for ordering in orderings:
            limit = ordering.limit(T)
            if limit is None or limit > (quantity == "next_loss"):
                worst = fg.worst_case(T, 1, kind, quantity, ordering)
                assert -1e-8 < worst.gap < 1e-6, (T, ordering)
                assert worst.tasks.num_tasks == T


# time


def test_what_takes_longer_than_patience_is_refused_before_it_is_built(monkeypatch) -> None:
    monkeypatch.setattr("forgetting.worstcase.supremum.program", lambda *_: pytest.fail("built"))
    with pytest.raises(
        PatienceError, match=r"of up to 7905 rows would take about 78 s, longer than patience= \(60 s\)"
    ):
        fg.worst_case(2, 50, "convex")
    with pytest.raises(PatienceError, match=r"patience= \(1e-06 s\)"):
        fg.worst_case(2, 2, patience=1e-6)
    with pytest.raises(InvalidInputError, match="patience must be"):
        fg.worst_case(2, 2, patience=0)


def test_another_process_solves_large_programs_with_the_same_digits(monkeypatch) -> None:
    here = fg.worst_case(2, 2)
    monkeypatch.setattr(solving, "LONG", 0)
    there = fg.worst_case(2, 2)
    assert (there.primal, there.dual, there.upper) == (here.primal, here.dual, here.upper)


def test_an_interrupt_ends_the_process_that_solves(monkeypatch) -> None:
    children = []

    class Child(subprocess.Popen):
        def __init__(self, *given, **more):
            super().__init__(*given, **more)
            children.append(self)
            threading.Timer(0.1, _thread.interrupt_main).start()

    monkeypatch.setattr(solving.subprocess, "Popen", Child)
    monkeypatch.setattr(solving, "SERVE", "import time; time.sleep(600)")
    monkeypatch.setattr(solving, "LONG", 0)
    with pytest.raises(KeyboardInterrupt):
        fg.worst_case(2, 2)
    assert [child.poll() is None for child in children] == [False]


def test_a_process_that_dies_while_it_solves_is_named(monkeypatch) -> None:
    monkeypatch.setattr(solving, "SERVE", "raise SystemExit(3)")
    monkeypatch.setattr(solving, "LONG", 0)
    with pytest.raises(WorkerError, match=r"died with code 3 \(killed, or out of memory\); use a smaller k"):
        fg.worst_case(2, 2)


# size


WALKS = [
    *(TaskWalk(T, "uniform") for T in (1, 2, 3, 4, 5, 7, None)), TaskWalk(3, "shuffles"), TaskWalk(4, "shuffles"),
    TaskWalk(3, "order", (0, 1, 2, 0)), TaskWalk(2, "weights", (0.5, 0.5)),
]  # fmt: skip


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_size_that_is_counted_first_is_the_size_of_the_program(walk, k) -> None:
    for rules in (
        inner_products.Projections if walk.law == "order" else inner_products.Reflections,
        inner_products.ConvexProjections,
    ):
        runs, names = tree(walk, k, "loss"), rules(walk.num_tasks, walk.symmetric)
        posed = program(runs, names)
        counted = program_size(runs, names)
        assert len(posed.normals) <= counted.normals <= 6 * len(posed.normals)
        assert counted.rows == sum(matrix.size * (matrix.size + 1) // 2 for matrix in posed.matrices)


@pytest.mark.parametrize(
    ("T", "k", "asked"),
    [
        (10, 50, {}),
        (3, 30, {}),
        (3, 7, {}),
        (np.inf, 6, {}),
        (2, 200, {}),
        (12, 6, {}),
        (5, 5, {"kind": "convex"}),
        (10, 20, {"quantity": "forgetting"}),
        (8, 8, {"ordering": "without-replacement"}),
        (100, 100, {"ordering": "without-replacement"}),
        (20, 40, {"ordering": "reshuffled"}),
        (3, 9000, {"ordering": "cyclic"}),
        (10**9, 3, {"ordering": "cyclic"}),
        (5, 10**9, {}),
        (7, 4, {"ordering": fg.orderings.WithReplacement([1.0] * 7)}),
    ],
)
def test_what_is_out_of_reach_is_refused_at_once(T, k, asked) -> None:
    with pytest.raises(NotSupportedError, match=r"out of reach|at most 10000 tasks") as caught:
        fg.worst_case(T, k, **asked)
    assert "use a smaller" in str(caught.value).lower()


@pytest.mark.parametrize(
    ("T", "k", "asked", "message"),
    [
        (0, 1, {}, "T must be at least 1, got 0"),
        (2.5, 1, {}, "T must be a whole number, got 2.5"),
        (np.nan, 1, {}, "T must be a whole number, got nan"),
        (-np.inf, 1, {}, "T must be a whole number, got -inf"),
        ("2", 1, {}, "T must be a whole number, got '2'"),
        (2, 0, {}, "k must be at least 1, got 0"),
        (2, 1.5, {}, "k must be a whole number, got 1.5"),
        (2, 1, {"kind": "cone"}, "no kind 'cone'; did you mean 'convex'"),
        (2, 1, {"quantity": "regret"}, "no quantity 'regret'"),
        (2, 1, {"ordering": "greedy-distance"}, "GreedyDistance.*no worst case"),
        (2, 1, {"ordering": "norm-weighted"}, "norms of tasks"),
        (np.inf, 2, {"ordering": "cyclic"}, "T = inf is for uniform draws"),
        (2, 3, {"ordering": "without-replacement"}, "ends after 2 steps, but 3 are needed"),
        (2, 2, {"ordering": "without-replacement", "quantity": "next_loss"}, "but 3 are needed"),
        (2, 2, {"ordering": fg.orderings.Explicit([0])}, "ends after 1 steps"),
        (2, 2, {"ordering": fg.orderings.Explicit([0, 5])}, "5"),
        (2, 2, {"ordering": fg.orderings.WithReplacement([0.5, 0.3, 0.2])}, "3 entries for 2 tasks"),
    ],
)
def test_questions_that_make_no_sense_are_refused(T, k, asked, message) -> None:
    with pytest.raises((InvalidInputError, NotSupportedError), match=message):
        fg.worst_case(T, k, **asked)


def test_without_clarabel_the_error_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "clarabel", None)
    with pytest.raises(NotSupportedError, match=r"pip install 'forgetting\[worst\]'"):
        fg.worst_case(2, 1)
