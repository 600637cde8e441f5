"""What the page computes in a real Chromium, beside `fg.expect` and `fg.bounds.evaluate`."""

import dataclasses
import itertools
import json

import numpy as np
import pytest

import forgetting as fg
from effort import rounds
from explorer.states import State, random_state, turned
from forgetting.theory.later.one_over_k import gap_rate
from forgetting.theory.later.rate_constants import fresh, least_fresh
from forgetting.worstcase import frontier

STATES = rounds(14, 300)
CLOSE = 1e-9  # relative, of values above SMALL that the package itself knows to 1e-10
SMALL = 1e-200
BOUND = 1e-12
GREEDY = 1e-14  # of the first loss, from which on values of greedy orders are compared


def at(page, state, more=""):
    return page.evaluate(f"explorer.at({state.hash + more!r})")


def expected(state, k):
    tasks, start = state.posed
    return fg.expect(tasks, state.ordering, k, scheme=state.learner, w0=start, noise=state.noise or None)


def assert_values(got, state):
    exact = expected(state, range(1, state.k + 1))
    for quantity in ("loss", "forgetting"):
        value, doubt = np.array(exact.values[quantity]), np.array(exact.uncertainty[quantity])
        page = np.array(got[quantity][1:], dtype=float)
        # a greedy order removes what is largest, and rounding of what is left stays; in the end it decides the order
        small = GREEDY * got["loss"][0] if state.order.startswith("greedy") else SMALL
        known = (np.abs(value) > small) & (doubt < 0.1 * CLOSE * np.abs(value))
        off = np.abs(page - value)[known] / np.abs(value)[known]
        assert off.size == 0 or off.max() <= CLOSE, (quantity, off.max(), state)


def assert_bounds(got, tasks, ordering, scheme, start=None, close=BOUND):
    """The page shows the bounds of `fg.bounds.evaluate` on the loss and the forgetting, no more, and the tightest."""
    rows = fg.bounds.evaluate(tasks, ordering, got["ks"], start, scheme=scheme)
    stated: dict[str, dict[int, float]] = {}
    for row in rows:
        if row.applies and row.quantity in ("loss", "forgetting") and row.quantity == row.bound.quantity:
            stated.setdefault(row.bound.key, {})[row.k] = row.value
    shown = {key: {int(k): value for k, value in points} for key, points in got["bounds"].items()}
    assert {key: set(points) for key, points in shown.items()} == {key: set(points) for key, points in stated.items()}
    for key, points in stated.items():
        for k, value in points.items():
            assert abs(shown[key][k] - value) <= close * abs(value), (key, k, shown[key][k], value)
    best = {row.k: row.bound.key for row in rows if row.quantity == "loss" and row.tightest}
    assert got["best"] == [best.get(k) for k in got["ks"]]


@pytest.mark.parametrize("part", range(2))
def test_values_and_bounds_of_random_states_are_those_of_the_package(page, part):
    rng = np.random.default_rng([39, part])
    for _ in range(STATES // 2):
        state = random_state(rng)
        got = at(page, state)
        assert got["how"] == "exact"
        assert_values(got, state)
        tasks, start = state.bounded
        # noise moves the solution by the condition number of all rows, whose digits are then lost
        close = BOUND * max(1.0, state.condition / 1000) if state.noise else BOUND
        assert_bounds(got, tasks, state.ordering, state.learner, start, close)


def test_bounds_with_a_spectral_gap_keep_twelve_digits_over_many_steps(page):
    """(1 - gap)^k shows an error of the gap k times, so that both must round it alike."""
    rng = np.random.default_rng(12)
    for T, d, rank in ((6, 3, 1), (4, 4, 2), (8, 6, 2), (3, 2, 1))[: rounds(2, 4)]:
        w = rng.standard_normal(d)
        state = State([rng.standard_normal((rank, d)) for _ in range(T)], w / np.linalg.norm(w), k=1000)
        got = at(page, state)
        assert any(k > 900 for key in got["bounds"] for k, _ in got["bounds"][key] if "gap" in key)
        tasks, start = state.bounded
        assert_bounds(got, tasks, state.ordering, state.learner, start)


def test_two_tasks_at_the_least_angle_keep_nine_digits(page):
    angle = 1e-3
    X = [np.array([[0.0, 1.0]]), np.array([[-np.sin(angle), np.cos(angle)]])]
    state = State(X, np.array([np.cos(angle / 2), np.sin(angle / 2)]), k=100)
    cosine, k = np.cos(angle), np.arange(1, 101)
    loss = np.sin(angle) ** 2 / 4 * (1 + cosine) / 2 * ((1 + cosine**2) / 2) ** (k - 1)
    assert np.allclose(at(page, state)["loss"][1:], loss, rtol=1e-10, atol=0)


def test_bounds_of_tasks_at_small_angles_keep_twelve_digits(page):
    """There the package computes row spaces with more digits, and leaves less room for rounding."""
    rng = np.random.default_rng(17)
    rows = np.array([[1.0, 0.2, 0.0, 0.0], [0.0, 0.4, 0.3, 0.1]])
    X = [rows, turned(rng, rows, 0.01), np.eye(4)[2:3] + 0.1, turned(rng, np.eye(4)[2:3] + 0.1, 0.05)]
    w = np.array([0.5, 0.5, 0.5, -0.5])
    for noise in (0.0, 0.2):
        state = State(X, w, k=1000, noise=noise)
        got, (tasks, start) = at(page, state), state.bounded
        assert_bounds(got, tasks, state.ordering, state.learner, start)


def test_steps_that_diverge_end_before_they_overflow(page):
    """SGD at any step: growing values are those of the package, and the curves end where a loss has 250 digits."""
    rng = np.random.default_rng(21)
    for order in ("with", "cyclic"):
        state = State([rng.standard_normal((1, 3)) for _ in range(4)], rng.standard_normal(3), order, k=1000)
        state.scheme = {"kind": "sgd", "eta": 40.0}
        got = at(page, state)
        last = len(got["loss"]) - 1
        assert 10 < last < 1000
        assert got["loss"][last] > 1e250 > got["loss"][last - 1]
        exact = expected(state, range(1, last))
        assert np.allclose(got["loss"][1:last], exact.loss, rtol=1e-9)
        assert not any(bound.startswith("here") for bound in got["bounds"])
        shown = page.evaluate(f"location.hash = {state.hash!r}; dispatchEvent(new Event('hashchange'))")
        page.settle()
        shown = page.evaluate("document.querySelector('#numbers').textContent")
        assert f"The steps diverge: the loss after k = {last} steps" in shown
        assert not page.problems()


def test_the_path_with_noise_is_a_run_on_labels_that_have_noise(page):
    """Lines of tasks lie where the labels of this draw put them, and each projection ends on the line of its task."""
    page.evaluate("location.hash = 'f=two_lines&o=cyclic&noise=0.3&last=20'; dispatchEvent(new Event('hashchange'))")
    page.settle()
    path, centre, shifts, order, X = page.evaluate(
        "[explorer.computed.walk.path.map((w) => [...w]), [...explorer.computed.centre], explorer.computed.shifts, "
        "explorer.computed.walk.order, explorer.state.X]"
    )
    assert min(map(abs, shifts)) > 0.01
    for w, task in zip(path[1:], order, strict=True):
        assert X[task][0] @ (np.array(w) - centre) == pytest.approx(shifts[task], abs=1e-12)


def test_the_forgetting_of_each_task_is_a_mean_over_all_orders(page):
    rng = np.random.default_rng(3)
    X = [rng.standard_normal((rank, 4)) for rank in (1, 2, 1)]
    for order, scheme in itertools.product(("with", "without"), ({"kind": "kaczmarz"}, {"kind": "sgd", "eta": 0.6})):
        state = State(X, np.array([1.0, 2.0, -1.0, 0.5]), order, scheme, k=3)
        got = at(page, state)["shares"]
        for k in (2, 3):
            orders = itertools.product(range(3), repeat=k) if order == "with" else itertools.permutations(range(3), k)
            shares, sequences = np.zeros(3), list(orders)
            for sequence in sequences:
                losses = fg.run(state.tasks, list(sequence), k=k, scheme=state.learner).loss_matrix
                for step, task in enumerate(sequence, 1):
                    shares[task] += (losses[k, task] - losses[step, task]) / k / len(sequences)
            assert np.allclose(got[k], shares, rtol=1e-11, atol=1e-14)


def test_programs_behind_bounds_are_those_of_the_package(page):
    rng = np.random.default_rng(13)
    for _ in range(60):
        span, n = int(rng.integers(1, 13)), int(rng.integers(0, 1000))
        gap, rank = float(rng.uniform(0, 1) ** 4), float(rng.uniform(0, 1) * span)
        numbers = {
            "rank_joint": span, "rank_weighted": rank, "spectral_gap": gap, "contraction": 1 - gap,
            "mean_projection": float(rng.uniform(0.1, 1) * rank**0.5),
        }  # fmt: skip
        setting = fg.bounds.Setting(**numbers)
        for k in (n, n % 70):
            assert page.evaluate(f"explorer.programs.fresh({k})") == fresh(k)
            for name, program in (("leastFresh", least_fresh), ("gapRate", gap_rate)):
                value = program(setting, k)
                assert (
                    abs(page.evaluate(f"explorer.programs.{name}({json.dumps(numbers)}, {k})") - value) <= BOUND * value
                )


def test_the_page_gives_bounds_all_that_the_package_gives_them(page):
    for words in ("kaczmarz", "sgd&eta=0.4", "ridge&lam=0.3"):
        shown = page.evaluate(f"explorer.at('f=two_lines&s={words}&o=with').setting")
        assert {field.name for field in dataclasses.fields(fg.bounds.Setting)} - set(shown) == {"rare"}, (
            words
        )  # a name in messages
    assert shown["penalty"] == 0.3
    bounds = page.evaluate("explorer.at('f=two_lines&s=ridge&lam=0.3&o=with').bounds")
    assert "here:ridge/loss" in bounds


def test_the_triangles_are_the_largest_values_known_of_any_tasks_of_this_number(page):
    for T, k, filled in ((8, 16, False), (8, 4, False), (12, 16, False), (4, 4, True), (6, 3, False)):
        page.evaluate(f"location.hash = 'f=gaussian&p.T={T}&o=with&k={k}'; dispatchEvent(new Event('hashchange'))")
        page.settle()
        known = max(row.value for row in frontier("loss", T=range(1, T + 1)).rows if row.k == k and T % row.T == 0)
        shown, scale = page.evaluate(
            "[explorer.computed.worst, explorer.computed.setting.dist_sq * explorer.computed.setting.radius ** 2]"
        )
        value, certified = next((value, certified) for at, value, certified in shown if at == k)
        assert value == pytest.approx(known * scale, rel=1e-12), (T, k)
        assert certified == filled


def test_greedy_orders_are_those_of_the_package(page):
    rng = np.random.default_rng(5)
    for order, k, alpha in (("greedy", 5, 1.0), ("greedy-again", 12, 1.0), ("greedy-again", 12, 0.8)):
        X = [rng.standard_normal((1, 4)) for _ in range(5)]
        state = State(X, rng.standard_normal(4), order, k=k, alpha=alpha)
        got, run = at(page, state), fg.run(state.tasks, state.ordering, k, scheme=state.learner)
        assert got["order"] == run.order.tolist()
        assert np.allclose(got["loss"], run.losses, rtol=1e-11)


def test_greedy_orders_of_tasks_that_no_w_solves_are_those_of_the_package(browser, tmp_path):
    rng = np.random.default_rng(6)
    tasks = fg.RegressionTasks(rng.standard_normal((6, 2, 3)), rng.standard_normal((6, 2)))
    greedy = fg.orderings.GreedyDistance
    orderings = {"greedy": (6, greedy(repeat=False)), "greedy-again": (30, greedy())}
    fg.explore(tasks, tmp_path / "own.html")
    with browser.page(tmp_path / "own.html") as page:
        for order, (k, ordering) in orderings.items():
            got, run = page.evaluate(f"explorer.at('f=own&o={order}&last=30')"), fg.run(tasks, ordering, k)
            assert got["order"] == run.order.tolist()
            assert np.allclose(got["loss"], run.losses, rtol=1e-10)
            assert_bounds(got, tasks, ordering, None)


def test_many_tasks_in_random_order_are_simulated_with_intervals(page):
    rng = np.random.default_rng(7)
    for noise in (0.0, 0.2):
        state = State(
            [rng.standard_normal((1, 6)) for _ in range(9)], rng.standard_normal(6), "without", k=9, noise=noise
        )
        got, exact = at(page, state), expected(state, range(1, 10))
        assert got["how"] == "simulated"
        low, high = np.array(got["lossInterval"][1:]).T
        middle, half = (low + high) / 2, (high - low) / 2
        assert (np.abs(exact.loss - middle) <= 2.5 * half).all()


@pytest.mark.parametrize("outputs", [(), (2,)], ids=["one output", "two outputs"])
def test_tasks_that_no_w_solves_have_the_values_and_the_bounds_of_the_package(browser, tmp_path, outputs):
    rng = np.random.default_rng(11)
    X, y = [rng.standard_normal((3, 30)) for _ in range(3)] * 2, [rng.standard_normal((3, *outputs)) for _ in range(6)]
    tasks = fg.RegressionTasks(X, y)
    fg.explore(tasks, tmp_path / "own.html")
    with browser.page(tmp_path / "own.html") as page:
        for order, words in (("with", "with-replacement"), ("without", "without-replacement"), ("cyclic", "cyclic")):
            got = page.evaluate(f"explorer.at('f=own&o={order}&last=12&k=6')")
            exact = fg.expect(tasks, words, range(1, len(got["loss"])))
            assert np.allclose(got["loss"][1:], exact.loss, rtol=1e-11)
            assert np.allclose(got["forgetting"][1:], exact.forgetting, rtol=1e-9, atol=1e-13)
            assert_bounds(got, tasks, words, None)
            assert ("here:noise/loss" in got["bounds"]) == (order == "with")
            assert "floor/loss" in got["bounds"]


def test_the_families_of_the_page_are_those_of_the_package(page):
    made = {
        "two_lines&p.angle=30": fg.families.two_lines(np.pi / 6), "orthogonal&p.d=5": fg.families.orthogonal(5),
        "equiangular&p.T=5&p.share=0.3": fg.families.equiangular(5, 0.3),
        "catastrophic&p.eps=3": fg.families.catastrophic(3.0),
        "catastrophic&p.eps=4.8": fg.families.catastrophic(4.8),  # 2.5 fast turns, rounded to even
        "back_and_forth&p.T=7.5&p.angle=10": fg.families.back_and_forth(6, np.pi / 18),  # between steps of the slider
        "back_and_forth&p.T=6&p.angle=10": fg.families.back_and_forth(6, np.pi / 18),
        "greedy_failure": fg.families.greedy_failure(12),
        "levels": fg.families.levels((1.4, 5.0), sizes=(1, 3, 3), k=20),
    }  # fmt: skip
    for words, tasks in made.items():
        for order, name in (("with", "with-replacement"), ("cyclic", "cyclic")):
            got = page.evaluate(f"explorer.at('f={words}&o={order}&last=20')")
            exact = fg.expect(tasks, name, range(1, 21))
            assert np.allclose(got["loss"][1:], exact.loss, rtol=1e-9, atol=1e-25), words
