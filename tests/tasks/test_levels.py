"""Tasks in levels: their closed form is the exact value, and they are worse than equiangular lines."""

import math
import tracemalloc

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import InvalidInputError
from forgetting.tasks.levels import (
    ROOM,
    Levels,
    equiangular,
    levels_limit,
    levels_of,
    levels_with_rates,
    levels_within,
    worst_equiangular,
    worst_levels,
)

DRAWS = fg.orderings.WithReplacement()
SOME = [
    Levels((1, 4), (1,), (0.1,)),
    Levels((1, 5), (3,), (0.2,)),
    Levels((1, 4, 10), (1, 2), (0.1, 0.2)),
    Levels((1, 5, 7), (2, 1), (0.3, 0.2)),
    Levels((1, 3, 4, 5), (1, 2, 3), (0.3, 0.2, 0.1)),
    Levels((1, 1, 1), (1, 1), (0.3, 0.2)),
]


@pytest.mark.parametrize("levels", SOME, ids=lambda levels: str(levels.sizes))
def test_the_closed_form_is_the_exact_value(levels):
    tasks, steps = levels.tasks(), [0, 1, 2, 7, 40]
    assert (tasks.num_tasks, tasks.dim, tasks.rank_max) == (levels.num_tasks, sum(levels.sizes), 1)
    assert tasks.radius == pytest.approx(1)
    assert tasks.scale == pytest.approx(1)
    exact = fg.expect(tasks, DRAWS, steps, quantities=("loss",)).loss
    assert [levels.loss(k) for k in steps] == pytest.approx(exact.tolist(), rel=1e-11)


@pytest.mark.parametrize("levels", SOME, ids=lambda levels: str(levels.sizes))
def test_the_mean_of_the_lines_of_an_edge_is_diagonal(levels):
    tasks, first = levels.tasks(), 0
    for edge, (lines, clones) in enumerate(zip(levels.lines, levels.clones, strict=True)):
        rows = np.vstack([tasks.task(m)[0] for m in range(first, first + lines * clones)])
        parts = [0.0] * len(levels.sizes)
        parts[edge], parts[edge + 1] = levels.shares[edge], 1 - levels.shares[edge]
        diagonal = np.concatenate([np.full(n, part / n) for n, part in zip(levels.sizes, parts, strict=True)])
        np.testing.assert_allclose(rows.T @ rows / len(rows), np.diag(diagonal), atol=1e-15)
        first += lines * clones


def test_all_angles_of_two_levels_are_the_same():
    for T in (2, 3, 8, 9):
        tasks = fg.families.equiangular(T, 0.2)
        rows = np.vstack([tasks.task(m)[0] for m in range(T)])
        expected = np.full((T, T), 0.2 - 0.8 / (T - 1))
        np.fill_diagonal(expected, 1.0)
        np.testing.assert_allclose(rows @ rows.T, expected, atol=1e-14)
        np.testing.assert_allclose(rows @ tasks.w_star, np.full(T, 0.2**0.5), atol=1e-14)


def test_the_worst_equiangular_lines_are_the_worst_pair_at_two_tasks():
    from forgetting.tasks.worst_tasks import two_lines_loss

    for k in (1, 5, 30):
        assert worst_equiangular(2, k).loss(k) == pytest.approx(two_lines_loss(k).value, rel=1e-12)


@pytest.mark.parametrize("k", [32, 64, 100, 1000, 10**4, 10**6])
def test_three_levels_are_worse_than_equiangular_lines_and_below_what_is_proved(k):
    worst = k * worst_levels(k).loss(k)
    assert k * worst_equiangular(round(0.4074 * k + 1), k).loss(k) < worst < levels_limit((1.41, 3.07, 9.0)) + 1e-3
    assert worst < 0.2719 if k >= 1000 else worst < 0.375
    assert worst_levels(k).sizes[0] == 1


def test_shares_are_a_maximum():
    k = 1000
    best = worst_levels(k)
    for edge in range(2):
        for factor in (0.97, 1.03):
            shares = tuple(share * (factor if at == edge else 1) for at, share in enumerate(best.shares))
            assert Levels(best.sizes, best.clones, shares).loss(k) < best.loss(k)


def test_the_limit_is_approached_and_two_levels_have_that_of_equiangular_lines():
    t, rate = 2.4545, 0.2686  # k b(k) with T = k/t and share = rate/T, as k grows
    decayed = math.exp(-2 * rate * t)
    by_hand = t * rate / 2 * (decayed + (math.exp(-t) - decayed) / (2 * rate - 1))
    assert levels_limit((2 * rate * t, 2 * t)) == pytest.approx(by_hand, rel=1e-12)
    assert by_hand == pytest.approx(0.217545, abs=2e-6)
    assert 10**6 * worst_equiangular(407_400, 10**6).loss(10**6) == pytest.approx(by_hand, abs=3e-6)
    rising = [10**e * worst_levels(10**e).loss(10**e) for e in (2, 3, 4, 5, 6)]
    assert rising == sorted(rising)
    assert levels_limit((1.411, 3.067, 5.509, 9.157, 14.89, 24.29, 39.35, 116.3)) == pytest.approx(0.22701, abs=5e-6)


def test_rates_give_the_shares():
    made = levels_with_rates((1.4, 3.3), (1, 56, 194), (1, 10), 1000)
    p, shares = made.weights, made.shares
    assert 2000 * p[0] * shares[0] == pytest.approx(1.4)
    assert 2000 * (p[0] * (1 - shares[0]) + p[1] * shares[1]) / 56 == pytest.approx(3.3)
    assert fg.families.levels((1.4, 3.3), (1, 16, 14), (2, 7), k=100).num_tasks == 251


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fg.families.levels((1.4,), k=10), r"rates of 1 levels need sizes= of 2"),
        (lambda: fg.families.levels(sizes=(1, 2), k=10), "sizes and clones go with rates"),
        (lambda: fg.families.levels((1.4, 3.0), (1, 2), k=10), r"sizes = \(1, 2\): 2 rates are those of 3 levels"),
        (lambda: fg.families.levels((400.0,), (1, 3), k=10), r"rate of level 0 is 400: its 1 coordinates cannot have"),
        (lambda: fg.families.levels((-1.0,), (1, 3), k=10), "rate of level 0"),
        (lambda: fg.families.levels((1.4,), (2, 3), k=10), "the first of them 1"),
        (lambda: fg.families.levels((1.4,), (1, 0), k=10), "size of level 1"),
        (lambda: fg.families.levels((1.4, 2.0), (1, 4, 8), (1,), k=50), r"clones = \(1,\): expected 2 numbers"),
        (lambda: fg.families.equiangular(1, 0.5), "T must be"),
        (lambda: fg.families.equiangular(3, 1.0), "share of edge 0"),
        (lambda: fg.families.levels(k=10**6), "27707847 tasks|need about"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(fg.errors.ForgettingError, match=message):
        call()


def test_clones_are_stored_once_and_the_room_that_is_asked_for_is_enough():
    made = worst_levels(3000)
    tracemalloc.start()
    try:
        tasks = made.tasks()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert tasks.index.max() + 1 == sum(made.lines) < made.num_tasks / 5
    np.testing.assert_array_equal(np.diff(tasks.index[: made.clones[0] * made.lines[0] + 1]) >= 0, True)
    assert peak < ROOM * sum(made.lines) * sum(made.sizes) + 300 * made.num_tasks


def test_levels_that_do_not_fit_are_refused_before_arrays_are_made(monkeypatch):
    monkeypatch.setattr("forgetting.core.memory.available_memory", lambda: 8.0 * 2**30)
    zeros = np.zeros

    def small(shape, *rest):
        assert np.prod(shape) < 1e5, "the array of a level was made"
        return zeros(shape, *rest)

    monkeypatch.setattr(np, "zeros", small)
    message = r"1272748 tasks, 23332 distinct rows in 22311 dimensions, need about 1[12]\.\d* GiB.*frontier\('loss'\)"
    with pytest.raises(fg.errors.MemoryLimitError, match=message):
        fg.families.levels(k=10**5)


@pytest.mark.parametrize("T", range(4, 20))
def test_levels_of_exactly_so_many_tasks(T):
    made = levels_within(T, T, 12, exact=True)
    assert made.num_tasks == T == len(made.tasks().ranks)
    assert levels_within(T, T, 12).num_tasks <= T
    assert levels_within(3, 8, 12) is None


@pytest.mark.parametrize(("T", "d"), [(None, None), (None, 9), (None, 200), (12, None), (12, 5), (97, None), (120, 6)])
@pytest.mark.parametrize("k", [1, 9, 50, 1000])
def test_levels_of_a_size_keep_to_it_and_are_no_better_than_equiangular_lines(T, d, k):
    made = levels_of(T, d, k)
    assert T is None or T % made.num_tasks == 0
    assert d is None or sum(made.sizes) <= d
    lines = [n for n in range(2, min(d or 100, T or 60) + 1) if T is None or T % n == 0]
    assert made.loss(k) > (1 - 2e-3) * max(worst_equiangular(n, k).loss(k) for n in lines)


def test_no_levels_of_one_task_or_one_dimension():
    assert levels_of(1, None, 7) is levels_of(8, 1, 7) is levels_of(None, 1, 7) is None
    assert levels_of(None, None, 10**12).num_tasks < 10**12


@pytest.mark.parametrize("levels", [*SOME, equiangular(7, 1e-7)], ids=lambda levels: levels.construction)
def test_a_construction_in_words_is_read_back(levels):
    assert Levels.read(levels.construction, levels.num_tasks) == levels


@pytest.mark.parametrize(
    ("words", "T", "message"),
    [
        ("levels sizes=1,4 clones=1 shares=0.1", 6, "these levels have 5 tasks, not 6"),
        ("levels sizes=2,4 clones=1 shares=0.1", 6, "the first of them 1"),
        ("levels sizes=1,4 clones=1 shares=1.1", 5, "expected 'equiangular share=S'"),
        ("levels sizes=1,4 clones=1,2 shares=0.1", 5, "clones"),
        ("levels sizes=1,9999999999999 clones=1 shares=0.1", 5, "expected"),
        ("equiangular share=__import__('os')", 5, "expected"),
        ("", 5, "expected"),
    ],
)
def test_damaged_words_are_refused(words, T, message):
    with pytest.raises(InvalidInputError, match=message):
        Levels.read(words, T)
