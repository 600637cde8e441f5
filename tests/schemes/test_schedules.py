"""Schedules and decay: runs by hand, constant schedules, files, bad input, and what is not promised for them."""

import itertools

import numpy as np
import pytest

import forgetting as fg
from forgetting.checks import check_scheme
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.schemes import POCS, SGD, Decay, GradientDescent, Kaczmarz, Ridge, Scheduled

ORDERS = ["with-replacement", "without-replacement", "reshuffled", "cyclic"]
ALL = ("loss", "forgetting", "seen_loss", "next_loss", "regret", "averaged_loss", "task_losses")
RULES = {  # the scheme, and lambda and the factor of w at step t
    "ridge": (Scheduled(lambda t: Ridge(0.1 * t)), lambda t: (0.1 * t, 1.0)),
    "list": (Scheduled([Ridge(1.0), Kaczmarz()] * 6), lambda t: (t % 2, 1.0)),
    "decay": (Decay(0.5, Kaczmarz()), lambda t: (0.0, 0.5)),
    "gate": (Scheduled(lambda t: Decay(1 / t, Ridge(1.0))), lambda t: (1.0, 1 / t)),
    "schedule that decays": (Decay(0.9, Scheduled(lambda t: Ridge(0.1 * t))), lambda t: (0.1 * t, 0.9)),
    "not linear": (Decay(0.5, GradientDescent()), lambda t: (0.0, 0.5)),
}


def drawn(kind="noisy", seed=0):
    """Three tasks of two rows in six dimensions."""
    rng = np.random.default_rng(seed)
    Xs = [rng.normal(size=(2, 6)) for _ in range(3)]
    w = rng.normal(size=(6, 2) if kind == "two outputs" else 6)
    off = 0.0 if kind == "realizable" else 0.5
    if kind != "realizable":
        Xs[2] = np.vstack([Xs[2], Xs[0][:1]])
    return fg.RegressionTasks(Xs, [X @ w + off * rng.normal(size=(X @ w).shape) for X in Xs])


def by_hand(tasks, order, steps, w):
    points = [w]
    for t, m in enumerate(order, 1):
        (X, y), (lam, keep) = tasks.task(m), steps(t)
        w = keep * w
        gram = X @ X.T + lam * np.eye(len(X))
        w = w - X.T @ np.linalg.lstsq(gram, X @ w - y, rcond=None)[0]
        points.append(w)
    return np.array(points)


@pytest.mark.parametrize("kind", ["realizable", "noisy", "two outputs"])
@pytest.mark.parametrize("rule", RULES)
def test_a_run_makes_the_steps_by_hand_and_returns_true_iterates(rule, kind, tmp_path):
    (scheme, steps), tasks, order = RULES[rule], drawn(kind), [0, 1, 2, 1, 0, 2]
    start = np.linspace(-1, 2, int(np.prod(tasks.point_shape))).reshape(tasks.point_shape)  # in part off the row space
    wanted, seen = by_hand(tasks, order, steps, start), []
    run = fg.run(tasks, order, 6, scheme, w0=start, callback=lambda k, w: seen.append(w))
    np.testing.assert_allclose(run.iterates, wanted, atol=1e-11)
    np.testing.assert_allclose(seen, wanted[-len(seen) :], atol=1e-11)
    means = [wanted[:k].mean(axis=0) for k in range(1, 7)]
    np.testing.assert_allclose(run.averaged_iterates[1:], means, atol=1e-11)
    np.testing.assert_allclose(run.losses, [tasks.loss(w) for w in wanted], atol=1e-11)
    np.testing.assert_allclose(run.before, [tasks.task_losses(w)[m] for w, m in zip(wanted, order, strict=False)])
    run.save(tmp_path / "run.npz")
    again = type(run).load(tmp_path / "run.npz")
    np.testing.assert_array_equal(again.iterates, run.iterates)
    assert str(again.scheme)[:9] == str(scheme)[:9]


@pytest.mark.parametrize("rule", RULES)
def test_many_runs_are_the_single_runs(rule):
    tasks, scheme = drawn(), RULES[rule][0]
    runs = fg.run_many(tasks, "with-replacement", 8, 5, scheme, seed=1, w0=np.ones(6))
    for i in range(5):
        for name in ("losses", "regret", "forgetting"):
            np.testing.assert_allclose(getattr(runs, name)[i], getattr(runs[i], name), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("plain", [Kaczmarz(), Ridge(0.3), SGD(0.25, objective="loss")], ids=str)
def test_a_constant_schedule_and_a_decay_of_1_are_the_plain_scheme(plain, order):
    tasks, ks = drawn(), [0, 1, 3]
    wanted = fg.expect(tasks, order, ks, plain, quantities=ALL)
    for scheme in (
        Scheduled(lambda t: plain),
        Scheduled([plain] * 4),
        Decay(1.0, plain),
        Scheduled([Decay(1, plain)] * 4),
    ):
        found = fg.expect(tasks, order, ks, scheme, quantities=ALL)
        assert found.method == wanted.method
        for name in ALL:
            gap = np.abs(found.values[name] - wanted.values[name])
            allowed = found.uncertainty[name] + wanted.uncertainty[name]
            assert np.all((gap <= allowed) | np.isnan(wanted.values[name])), (name, scheme)
            assert np.nanmax(found.uncertainty[name]) <= 1e-12


@pytest.mark.parametrize("digits", [16, 60])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("rule", ["ridge", "gate"])
def test_float64_and_many_digits_agree_with_31(rule, order, digits, monkeypatch):
    from forgetting.expectation.engines import deterministic, subsets
    from forgetting.expectation.engines import exact as exact_engines
    from forgetting.expectation.engines import moments as moments_engine

    tasks, scheme = drawn(), RULES[rule][0]
    question = tasks, order, [0, 1, 3], scheme, np.ones(6)
    wanted = fg.expect(*question, quantities=ALL)
    if digits == 60:
        monkeypatch.setattr(exact_engines, "ENOUGH", -1.0)
    else:
        for module in (deterministic, subsets, moments_engine):
            monkeypatch.setattr(module, "in_two_floats", lambda *anything: False)
        monkeypatch.setattr(exact_engines.decimal_moments, "products", lambda request: np.inf)
    found = fg.expect(*question, quantities=ALL)
    assert ("16 digits" if digits == 16 else "some values with") in found.detail
    for name in ALL:
        gap = np.abs(found.values[name] - wanted.values[name])
        allowed = found.uncertainty[name] + wanted.uncertainty[name]
        assert np.all((gap <= allowed) | np.isnan(wanted.values[name])), name
        assert np.nanmax(found.uncertainty[name]) <= 1e-8


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("rule", ["ridge", "gate"])
def test_noise_of_labels_is_the_mean_over_its_signs(rule, order):
    scheme, q = RULES[rule][0], 0.5
    Xs, ys = [[[1.0, 2.0]], [[0.5, -1.0]]], [[1.0], [0.25]]
    signs = list(itertools.product([-q, q], repeat=2))  # noise of the same covariance
    found = fg.expect(fg.RegressionTasks(Xs, ys), order, [1, 2], scheme, noise=q)
    for name in ("loss", "forgetting"):
        each = [
            fg.expect(
                fg.RegressionTasks(Xs, [[y[0] + s] for y, s in zip(ys, pair, strict=True)]), order, [1, 2], scheme
            )
            for pair in signs
        ]
        np.testing.assert_allclose(found.values[name], np.mean([e.values[name] for e in each], axis=0), rtol=1e-11)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("rule", ["ridge", "gate"])
def test_held_out_data_are_scored_as_in_a_list_of_all_orders(rule, order):
    tasks, scheme, rng = drawn(), RULES[rule][0], np.random.default_rng(5)
    test = fg.RegressionTasks([rng.normal(size=(2, 6)) for _ in range(3)], [rng.normal(size=2) for _ in range(3)])
    names = ("test_loss", "test_forgetting")
    found, listed = (
        fg.expect(tasks, order, [1, 3], scheme, np.ones(6), method=method, quantities=names, test=test)
        for method in ("auto", "listing")
    )
    assert found.method != "listing"
    for name in names:
        np.testing.assert_allclose(found.values[name], listed.values[name], rtol=1e-11)


def test_simulated_values_agree_with_exact_ones():
    tasks = drawn()
    for rule in ("ridge", "gate"):
        question = tasks, "with-replacement", [2, 6], RULES[rule][0]
        exact, simulated = fg.expect(*question), fg.expect(*question, method="monte-carlo", runs=4096)
        for name in ("loss", "forgetting"):
            low, high = np.moveaxis(simulated.interval(name), -1, 0)
            assert np.all((low <= exact.values[name]) & (exact.values[name] <= high))


def test_a_scheduled_function_is_saved_with_the_schemes_it_made_and_asked_once_a_step(tmp_path):
    asked = []

    def ridge(t):
        asked.append(t)
        return Ridge(0.5 * t)

    scheme = Scheduled(ridge)
    with pytest.raises(NotSupportedError, match="cannot be saved before it has made a step"):
        scheme.settings()
    found = fg.expect(drawn(), "with-replacement", 3, scheme)
    fg.run(drawn(), "cyclic", 3, scheme)
    assert asked == [1, 2, 3]
    assert found.scheme is scheme
    found.save(tmp_path / "e.npz")
    again = type(found).load(tmp_path / "e.npz")
    assert again.scheme == Scheduled([Ridge(0.5), Ridge(1.0), Ridge(1.5)])
    assert fg.expect(drawn(), "with-replacement", 3, again.scheme).loss == found.loss


def test_schedules_of_other_schemes_are_run(tmp_path):
    sets = fg.ConvexSets([fg.Ball([0.0, 0.0], 1.0), fg.Halfspace([1.0, 0.0], 0.5)])
    run = fg.run(sets, "cyclic", 4, Scheduled(lambda t: Decay(0.5, POCS())), w0=[4.0, 0.0])
    np.testing.assert_allclose(run.iterates[:, 0], [4.0, 1.0, 0.5, 0.25, 0.5])
    found = fg.expect(sets, "with-replacement", 2, Scheduled([POCS(), POCS()]), method="auto")
    assert found.method == "listing"
    batches = Scheduled(lambda t: GradientDescent(batch_size=1))
    assert fg.expect(drawn("realizable"), "cyclic", 2, batches, runs=8).method == "monte-carlo"


def test_words_make_schedules_and_decays():
    tasks = drawn()
    for words, wanted in (
        ("decay alpha=0.5 scheme=kaczmarz", Decay(0.5, Kaczmarz())),
        ('decay alpha=0.5 "scheme=ridge lam=2"', Decay(0.5, Ridge(2.0))),
        ("""scheduled "schedule=['ridge lam=1', 'kaczmarz']" """, Scheduled([Ridge(1.0), Kaczmarz()])),
    ):
        assert fg.run(tasks, "cyclic", 2, words).scheme == wanted


BAD = {
    "a negative strength": (lambda t: Ridge([1.0, 2.0, -1.0][t - 1]), "step 3: lam must be greater than 0, got -1"),
    "no scheme": (lambda t: None if t == 3 else Kaczmarz(), "step 3: .*expected a scheme.*got None"),
    "a gate that is NaN": (
        lambda t: Decay(np.nan if t == 3 else 0.5, Kaczmarz()),
        "step 3: alpha must be finite, got nan",
    ),
    "another kind": (lambda t: POCS() if t == 3 else Kaczmarz(), "step 3: POCS.*intrinsic = False, and Kaczmarz"),
    "a short list": ([Kaczmarz()] * 2, "2 steps, and k = 4 needs more; give k up to 2, a longer list, or a function"),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_schedules_are_refused_with_the_step_and_the_value(bad):
    schedule, message = BAD[bad]
    for call in (fg.run, fg.expect, fg.run_many):
        with pytest.raises(InvalidInputError, match=message):
            call(drawn(), "with-replacement", 4, scheme=Scheduled(schedule))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Decay(1.5, Kaczmarz()), "alpha must be at most 1, got 1.5: a larger one lets w grow"),
        (lambda: Decay(-0.1, Kaczmarz()), "alpha must be at least 0, got -0.1"),
        (lambda: Decay(float("nan"), Kaczmarz()), "alpha must be finite, got nan"),
        (lambda: Decay(0.5, 3), "expected a scheme"),
        (lambda: Scheduled(3), "a function of the step, .* or a list of schemes, got 3"),
        (lambda: Scheduled(Ridge), "a function of the step"),
        (lambda: Scheduled([]), "an empty list has no scheme for step 1"),
        (lambda: Scheduled([Kaczmarz(), 3]), "step 2: .*expected a scheme"),
        (
            lambda: Scheduled(["recursive-least-squares"]),
            "step 1: a step of RecursiveLeastSquares.* depends on the tasks",
        ),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises((InvalidInputError, NotSupportedError), match=message):
        make()


def test_a_schedule_that_fails_says_at_which_step():
    with pytest.raises(ZeroDivisionError) as failed:
        fg.run(drawn(), "cyclic", 3, Scheduled(lambda t: Ridge(1 / (2 - t))))
    assert "step 2" in failed.value.__notes__[0]


def test_no_bound_for_projections_and_no_spectrum_applies():
    tasks = drawn("realizable")
    for scheme in (Decay(0.5, Kaczmarz()), Scheduled(lambda t: Ridge(1.0 * t))):
        rows = fg.bounds.evaluate(tasks, "with-replacement", 4, scheme=scheme)
        assert not [row for row in rows if row.applies]
        assert any("covers projection" in str(row.why_not) for row in rows)
        for k in (4, np.inf):
            with pytest.raises(NotSupportedError, match="steps that are all alike and keep all of w"):
                fg.expect(tasks, "with-replacement", k, scheme, method="spectral" if k == 4 else "auto")


@pytest.mark.parametrize("rule", RULES)
def test_conformance_accepts_schedules_and_decay(rule):
    check_scheme(RULES[rule][0])


def test_conformance_notices_wrong_statements():
    class Forgetful(Decay):
        def kept_at(self, t):
            return 1.0

    class Other(Scheduled):
        def linear_steps_on(self, problem):
            return Scheduled(lambda t: Ridge(1.0 * t)).linear_steps_on(problem)

        intrinsic = False

        def learn(self, problem, task, w, memory):
            return fg.schemes.Learned(problem.project(task, w))

    with pytest.raises(AssertionError, match=r"moved away|row space"):
        check_scheme(Forgetful(0.5, Kaczmarz()))
    with pytest.raises(AssertionError, match="against its `linear_steps_on`"):
        check_scheme(Other(lambda t: POCS()))
