"""The method "spectral" on tasks that no w solves, and k = inf: against iteration, dense powers, stationary solves."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

import forgetting as fg
from forgetting.cli.app import make_app
from forgetting.errors import InvalidInputError, MemoryLimitError, NotSupportedError
from forgetting.expectation.engines import spectral
from forgetting.expectation.engines.powers import second_differences

WR = fg.orderings.WithReplacement
ALL = ("loss", "forgetting", "regret", "task_losses", "seen_loss", "next_loss")
SCHEMES = [
    fg.schemes.Kaczmarz(),
    fg.schemes.Ridge(0.7),
    fg.schemes.SGD(1.6),
    fg.schemes.SGD(0.1, objective="loss"),
    fg.schemes.FiniteSteps(n=3, step_size=0.08),
]


def clashing(seed, d=3, ranks=(1, 2, 1, 2), clone=True):
    """Random tasks that no w solves: ragged ranks, redundant rows, and a clone of the first task."""
    rng = np.random.default_rng(seed)
    matrices = [rng.standard_normal((rank, d)) for rank in ranks]
    matrices.append(np.outer([1.0, 2.0], rng.standard_normal(d)))  # two rows, rank 1, labels that no w fits
    labels = [rng.standard_normal(len(X)) for X in matrices]
    if clone:
        matrices.append(matrices[0])
        labels.append(labels[0])
    tasks = fg.RegressionTasks(matrices, labels)
    assert not tasks.realizability.holds
    return tasks


def weights_of(tasks, never=None):
    p = np.arange(1.0, tasks.num_tasks + 1)
    if never is not None:
        p[never] = 0.0
    return p / p.sum()


def step_of(scheme, X, y):
    """w <- S w + b, computed from the definition of the scheme."""
    d = X.shape[1]
    match scheme:
        case fg.schemes.Ridge():
            pull = np.linalg.solve(X.T @ X + scheme.lam * np.eye(d), X.T)
        case fg.schemes.SGD() if scheme.objective == "loss":
            pull = scheme.step_size * X.T
        case fg.schemes.SGD():
            pull = scheme.step_size * np.linalg.pinv(X)
        case fg.schemes.FiniteSteps():
            S, b = np.eye(d), np.zeros(d)
            for _ in range(scheme.n):
                S, b = S - scheme.step_size * X.T @ (X @ S), b - scheme.step_size * X.T @ (X @ b - y)
            return S, b
        case _:
            pull = np.linalg.pinv(X)
    return np.eye(d) - pull @ X, pull @ y


class Lifted:
    """All quantities from matrix powers of the step on vec E[(w, 1) (w, 1)^T], in extended precision."""

    def __init__(self, tasks, p, scheme, w0):
        d = tasks.dim
        self.p, self.T = p, tasks.num_tasks
        self.forms, self.steps = [], []
        for m in range(self.T):
            X, y = (np.asarray(part) for part in tasks.task(m))
            S, b = step_of(scheme, X, y)
            step = np.block([[S, b[:, None]], [np.zeros((1, d)), np.ones((1, 1))]]).astype(np.longdouble)
            rows = np.column_stack([X, -y]).astype(np.longdouble)
            self.forms.append((rows.T @ rows / 2).ravel())
            self.steps.append(np.kron(step, step))
        start = np.append(w0, 1.0).astype(np.longdouble)
        self.start = np.outer(start, start).ravel()
        self.mean = sum(q * step for q, step in zip(p, self.steps, strict=True))
        self.mean[-1, -1] = 1.0  # probabilities that add up to 1 - 1e-16 would let the constant decay

    def power(self, matrix, k):
        result = np.eye(len(matrix), dtype=np.longdouble)
        while k:
            if k & 1:
                result = result @ matrix
            matrix, k = matrix @ matrix, k >> 1
        return result

    def upper(self, first, coupling, last, k):
        """The upper right part of the k-th power of [[first, coupling], [0, last]]: a sum over steps."""
        n = len(first)
        return self.power(np.block([[first, coupling], [np.zeros((n, n)), last]]), k)[:n, n:]

    def at(self, k):
        tasks = range(self.T)
        now = self.power(self.mean, k) @ self.start
        each = np.array([form @ now for form in self.forms])
        found = {"task_losses": each, "loss": each.mean(), "next_loss": self.p @ each}
        one = np.eye(len(now), dtype=np.longdouble)
        total = self.upper(one, one, self.mean, k) @ self.start  # sum over the k steps of the moment before each
        found["regret"] = sum(self.p[m] * self.forms[m] @ total for m in tasks) / k
        seen = 0
        for m in tasks:
            seen += self.p[m] * self.forms[m] @ (self.upper(self.mean, self.steps[m], self.mean, k) @ self.start)
        kept = sum(self.p[m] * self.forms[m] @ (self.steps[m] @ total) for m in tasks)
        return {**found, "seen_loss": seen / k, "forgetting": (seen - kept) / k}

    def forever(self):
        """The stationary law: the fixed point of the step with a constant of 1."""
        n = round(len(self.start) ** 0.5)
        mean = self.mean.astype(float)
        row = np.zeros((1, n * n))
        row[0, -1] = 1.0
        system = np.vstack([np.eye(n * n) - mean, row])
        now = np.linalg.lstsq(system, np.append(np.zeros(n * n), 1.0), rcond=None)[0]
        each = np.array([form @ now for form in self.forms]).astype(float)
        kept = sum(self.p[m] * self.forms[m] @ (self.steps[m] @ now) for m in range(self.T))
        drawn = self.p @ each
        return {
            "task_losses": each, "loss": each.mean(), "forgetting": drawn - kept,
            "regret": drawn, "seen_loss": drawn, "next_loss": drawn,
        }  # fmt: skip


def scale_of(tasks, values):
    labels = sum(float(np.sum(np.square(tasks.task(m)[1]))) for m in range(tasks.num_tasks))
    return float(np.max(values)) + labels / tasks.num_tasks


def assert_close(found, wanted, tasks, row=..., tol=1e-10):
    """All quantities agree to `tol` of E L + |y|^2 / T, and differ by no more than the uncertainty, and rounding."""
    scale = scale_of(tasks, found.values["loss"])
    for name in ALL:
        value, doubt = np.asarray(found.values[name])[row], np.asarray(found.uncertainty[name])[row]
        off = np.abs(value - np.asarray(wanted[name]))
        assert np.all(off <= tol * scale), (name, off / scale)
        assert np.all(off <= doubt + 1e-13 * scale), (name, off, doubt)


# --------------------------------------------------------------------------------------------------------- finite k


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
@pytest.mark.parametrize("never", [None, 1], ids=["all drawn", "one never drawn"])
def test_every_quantity_is_what_iterating_gives(scheme, never):
    for seed in range(2):
        tasks = clashing(seed, d=4 - seed)
        ordering, w0 = WR(weights_of(tasks, never)), np.random.default_rng(seed).standard_normal(tasks.dim)
        ks = [1, 2, 7, 100, 10**4]
        by_steps = fg.expect(tasks, ordering, ks, scheme, w0, method="moments", quantities=ALL)
        found = fg.expect(tasks, ordering, ks, scheme, w0, method="spectral", quantities=ALL)
        assert found.estimated
        assert "diagonalised" in found.detail
        assert_close(found, by_steps.values, tasks)


def test_labels_that_their_own_task_cannot_fit_stay_in_the_loss():
    # all directions are independent, so that some w fits all that can be fitted: two rows of task 0 say 1 and 2
    tasks = fg.RegressionTasks([[[1.0, 0.0], [1.0, 0.0]], [[1.0, 1.0]]], [[1.0, 2.0], [1.0]])
    for scheme in SCHEMES[:3]:
        ks = [1, 2, 7, 100]
        by_steps = fg.expect(tasks, WR(), ks, scheme, [5.0, 1.0], method="moments", quantities=ALL)
        found = fg.expect(tasks, WR(), ks, scheme, [5.0, 1.0], method="spectral", quantities=ALL)
        assert_close(found, by_steps.values, tasks)
        limit = fg.expect(tasks, WR(), np.inf, scheme, [5.0, 1.0], quantities=ALL)
        np.testing.assert_allclose(limit.task_losses, [0.25, 0.0], atol=1e-15)
        assert limit.forgetting == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_huge_k_are_powers_of_the_lifted_step(scheme):
    for seed, never in ((0, None), (1, 2)):
        tasks = clashing(10 + seed, d=2 + seed, clone=False)
        p, w0 = weights_of(tasks, never), np.random.default_rng(seed).standard_normal(tasks.dim)
        ks = [3, 10**6, 10**8]
        found = fg.expect(tasks, WR(p), ks, scheme, w0, method="spectral", quantities=ALL)
        dense = Lifted(tasks, p, scheme, w0)
        for row, k in enumerate(ks):
            assert_close(found, dense.at(k), tasks, row)


def test_slow_tasks_are_off_by_no_more_than_the_uncertainty_at_huge_k():
    # nearly parallel lines: eigenvalues of Q within 1e-6 of 1, alive at k = 10^6
    for angle in (1e-2, 1e-3):
        X = [[[1.0, 0.0]], [[np.cos(angle), np.sin(angle)]], [[np.cos(angle), -np.sin(angle)]]]
        tasks = fg.RegressionTasks(X, [[0.0], [1.0], [0.5]])
        p, w0 = weights_of(tasks), np.array([1.0, 2.0])
        dense = Lifted(tasks, p, SCHEMES[0], w0)
        ks = [10**4, 10**6, 10**8]
        found = fg.expect(tasks, WR(p), ks, w0=w0, method="spectral", quantities=ALL)
        for row, k in enumerate(ks):
            wanted = dense.at(k)
            for name in ALL:
                off = np.abs(found.values[name][row] - np.asarray(wanted[name], dtype=float))
                scale = float(np.max(wanted["loss"]))
                slack = 1e-12 * scale / angle**2  # the reference, whose steps are rounded to float64
                assert np.all(off <= found.uncertainty[name][row] + slack), (angle, k, name)


def test_second_differences_are_sums_of_products_over_the_rationals():
    points = [1.0, 1 - 1e-3, 1 - 1e-9, 1 - 1e-15, 0.5, 0.5 + 1e-8, 0.0, 1e-9, -0.3, -0.3 - 1e-9, -0.9]
    for k in (0, 1, 2, 3, 7, 40):
        for three in itertools.combinations_with_replacement(points, 3):
            for signs in (1, -1):
                a, b, c = (Fraction(point) * (1 if signs > 0 or point < 0 else -1) for point in three)
                power = two = three_points = Fraction(k > 1)
                sizes = [power, power, power]
                for _ in range(k - 2):
                    power *= a
                    two = two * b + power
                    three_points = three_points * c + two
                    sizes[0] *= abs(a)
                    sizes[1] = sizes[1] * abs(b) + sizes[0]
                    sizes[2] = sizes[2] * abs(c) + sizes[1]
                found = second_differences(*(np.array([float(x)]) for x in (a, b, c)), k)[0]
                assert abs(found - float(three_points)) <= 4e-15 * float(sizes[2]), (k, a, b, c)


def test_lanczos_runs_give_what_diagonalising_gives(monkeypatch):
    ks, names = [0, 1, 10, 10**4, 10**8, np.inf], ("loss", "regret", "task_losses", "next_loss")
    for scheme, never in ((SCHEMES[0], None), (SCHEMES[1], 1), (SCHEMES[2], None)):
        tasks = clashing(3, d=9, ranks=(2, 3, 1, 4, 2))
        ordering = WR(weights_of(tasks, never))
        dense = fg.expect(tasks, ordering, ks, scheme, method="spectral", quantities=names)
        with monkeypatch.context() as patch:
            patch.setattr(spectral, "DENSE_LIMIT", 0)
            patch.setattr(spectral, "UNSETTLED_LIMIT", 0)
            runs = fg.expect(tasks, ordering, ks, scheme, method="spectral", quantities=names)
            endless = fg.expect(tasks, ordering, np.inf, scheme, method="spectral", quantities=ALL)
        assert "diagonalised" in dense.detail
        assert "by Lanczos;" in runs.detail
        scale = scale_of(tasks, dense.loss)
        for name in names:
            off = np.abs(dense.values[name] - runs.values[name])
            assert np.nanmax(off) <= 1e-12 * scale, name
            assert np.all((off <= dense.uncertainty[name] + runs.uncertainty[name]) | np.isnan(off))
        for name in ("forgetting", "seen_loss"):  # means over visits have a limit by Lanczos, too
            limit = fg.expect(tasks, ordering, np.inf, scheme, quantities=name).values[name]
            assert abs(endless.values[name] - limit) <= 1e-12 * scale


def test_where_lanczos_does_not_settle_q_is_diagonalised_or_the_uncertainty_says_so(monkeypatch):
    tasks = clashing(5, d=9, ranks=(1, 1, 1, 1, 1, 1, 1, 1, 1, 1))
    exact = fg.expect(tasks, WR(), [100, np.inf], quantities="loss", method="spectral")
    monkeypatch.setattr(spectral, "DENSE_LIMIT", 0)
    monkeypatch.setattr(spectral, "MAX_LANCZOS", 8)
    instead = fg.expect(tasks, WR(), [100, np.inf], quantities="loss", method="spectral")
    assert "diagonalised" in instead.detail
    np.testing.assert_allclose(instead.loss, exact.loss, rtol=1e-12)
    monkeypatch.setattr(spectral, "UNSETTLED_LIMIT", 0)
    rough = fg.expect(tasks, WR(), [100, np.inf], quantities="loss", method="spectral")
    assert "did not settle" in rough.detail
    assert np.all(np.abs(rough.loss - exact.loss) <= rough.uncertainty["loss"])


def test_the_order_in_which_tasks_are_listed_does_not_matter():
    tasks = clashing(6)
    p, turn = weights_of(tasks), np.random.default_rng(0).permutation(tasks.num_tasks)
    turned = fg.RegressionTasks([tasks.task(m)[0] for m in turn], [tasks.task(m)[1] for m in turn])
    ks = [5, 10**5, np.inf]
    a = fg.expect(tasks, WR(p), ks, method="spectral", quantities=ALL)
    b = fg.expect(turned, WR(p[turn]), ks, method="spectral", quantities=ALL)
    for name in ALL:
        wanted = a.values[name][:, turn] if name == "task_losses" else a.values[name]
        np.testing.assert_allclose(b.values[name], wanted, rtol=1e-11, atol=1e-13)


# ----------------------------------------------------------------------------------------------------------- k = inf


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_k_inf_is_the_stationary_law(scheme):
    for seed in range(3):
        tasks = clashing(20 + seed, d=3)
        p = weights_of(tasks)
        found = fg.expect(tasks, WR(p), np.inf, scheme, np.ones(3), quantities=ALL)
        assert (found.method, found.k) == ("spectral", np.inf)
        assert_close(found, Lifted(tasks, p, scheme, np.ones(3)).forever(), tasks)


def test_values_approach_those_at_inf():
    for scheme in SCHEMES:
        tasks = clashing(30)
        ks = [10, 100, 10**3, 10**4, 10**6, np.inf]
        found = fg.expect(tasks, WR(), ks, scheme, w0=[3.0, 1.0, 2.0], method="spectral", quantities=ALL)
        for name in ALL:
            gaps = np.abs(found.values[name][:-1] - found.values[name][-1]).reshape(5, -1).max(axis=1)
            assert np.all(np.diff(gaps) <= 1e-13)
            assert gaps[-1] <= 1e-4
        # means over steps have a gap like 1/k
        gap = found.forgetting[3:5] - found.forgetting[-1]
        assert gap[1] / gap[0] == pytest.approx(1e-2, rel=1e-3)


def test_tasks_that_are_never_drawn_keep_what_the_others_leave():
    # three lines in the plane of the first two coordinates are drawn; a fourth task looks at all of four coordinates
    lines = [[[1.0, 0.5, 0.0, 0.0]], [[0.25, -1.0, 0.0, 0.0]], [[1.0, 1.0, 0.0, 0.0]]]
    held = fg.RegressionTasks([*lines, np.eye(4) + 0.5], [[1.0], [2.0], [-1.0], [1.0, 2.0, 3.0, 4.0]])
    p, w0 = np.array([0.25, 0.5, 0.25, 0.0]), np.array([1.0, -2.0, 0.5, 3.0])
    for scheme in SCHEMES[:2]:
        found = fg.expect(held, WR(p), [50, 10**8, np.inf], scheme, w0, method="spectral", quantities=ALL)
        dense = Lifted(held, p, scheme, w0)
        assert_close(found, dense.at(50), held, 0)
        assert_close(found, dense.at(10**8), held, 1)
        for name in ALL:  # what is never drawn stays as it was at the start; means over steps have a gap like 1/k
            np.testing.assert_allclose(found.values[name][2], found.values[name][1], rtol=1e-6)
        np.testing.assert_allclose(found.task_losses[2], found.task_losses[1], rtol=1e-12)
        other = fg.expect(held, WR(p), np.inf, scheme, 0 * w0, quantities="task_losses").task_losses
        np.testing.assert_allclose(other[:3], found.task_losses[2, :3], rtol=1e-12)
        assert abs(other[3] / found.task_losses[2, 3] - 1) > 0.1


def test_realizable_tasks_end_where_they_are_solved():
    tasks = fg.families.gaussian(T=4, d=5, rank=1, seed=0)
    names = (*ALL, "error")
    both = fg.expect(tasks, WR(), [7, np.inf], quantities=names)
    before = fg.expect(tasks, WR(), [7], quantities=names, method="spectral")
    for name in names:
        np.testing.assert_array_equal(both.values[name][0], before.values[name][0])
        assert np.all(both.values[name][1] == 0)
    # two of four are drawn: what they do not see stays
    some = fg.expect(tasks, WR([1, 1, 0, 0]), [10**4, np.inf], quantities=names, method="spectral")
    for name in names:  # means over steps differ from their limit like 1/k
        slack = 1e-3 if name in ("forgetting", "regret", "seen_loss") else 1e-13
        np.testing.assert_allclose(some.values[name][1], some.values[name][0], rtol=1e-9, atol=slack)
    assert some.error[1] > 0.01
    assert some.loss[1] > 0.01


def test_schemes_that_diverge_have_infinite_limits_and_a_note():
    for tasks in (clashing(50), fg.families.gaussian(T=4, d=3, rank=2, seed=1)):
        found = fg.expect(tasks, WR(), [5, np.inf], fg.schemes.SGD(2.5), quantities=("loss", "regret", "task_losses"))
        assert np.all(np.isinf(found.loss) == [False, True])
        assert np.all(np.isinf(found.task_losses[1]))
        assert any("diverges" in note for note in found.notes)
        assert not any("noise" in note for note in found.notes)
        mirrored = "values need not settle as k -> inf"
        with pytest.raises(NotSupportedError, match=mirrored):
            fg.expect(tasks, WR(), np.inf, fg.schemes.SGD(2.0))


# ------------------------------------------------------------------------------------------------- asking and showing


def test_auto_takes_the_spectrum_for_large_k_on_tasks_that_no_w_solves():
    tasks = clashing(60)
    assert fg.expect(tasks, WR(), 50).method == "moments"
    found = fg.expect(tasks, WR(), [50, 10**8])
    assert found.method == "spectral"
    assert found.exact
    assert fg.expect(tasks, WR(), np.inf, patience=1e-9).method == "spectral"  # no simulation reaches it


def test_means_over_visits_in_many_dimensions_are_iterated(monkeypatch):
    monkeypatch.setattr(spectral, "VISITS_LIMIT", 2)
    tasks = clashing(61)
    with pytest.raises(
        NotSupportedError, match="means over visits on tasks that no w solves are for D <= 2 or k = inf"
    ):
        fg.expect(tasks, WR(), 10, method="spectral")
    assert fg.expect(tasks, WR(), 10, method="spectral", quantities="loss").method == "spectral"
    assert fg.expect(tasks, WR(), np.inf).method == "spectral"
    assert fg.expect(tasks, WR(), 10**4).method == "moments"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"ordering": "cyclic"}, NotSupportedError, "k = inf is for independent draws .*cannot answer.*Cyclic"),
        ({"ordering": "without-replacement"}, NotSupportedError, "WithoutReplacement.*; give finite k"),
        ({"scheme": fg.schemes.NLMS()}, NotSupportedError, "needs a linear scheme"),
        ({"quantities": "averaged_loss"}, NotSupportedError, "does not average iterates"),
        ({"method": "moments"}, NotSupportedError, "'moments' cannot answer: k = inf .* by the method 'spectral'"),
        ({"method": "monte-carlo"}, NotSupportedError, "'monte-carlo' cannot answer: k = inf"),
        ({"memory": 10}, MemoryLimitError, "raise memory=$"),
        ({"k": -np.inf}, InvalidInputError, "whole number, got -inf"),
        ({"k": [1, np.nan]}, InvalidInputError, "whole number, got nan"),
    ],
)
def test_what_has_no_limit_is_refused_in_words(arguments, error, message):
    given = {"problem": clashing(62), "ordering": WR(), "k": [3, np.inf], **arguments}
    with pytest.raises(error, match=message):
        fg.expect(**given)


def test_k_inf_is_printed_saved_tabulated_and_left_out_of_curves(tmp_path):
    tasks = clashing(63)
    found = fg.expect(tasks, WR(), [np.inf, 10, 1000], quantities=("loss", "forgetting"))
    assert found.k.tolist() == [np.inf, 10, 1000]
    for limit in (np.inf, np.array(np.inf), np.float32("inf")):
        assert found.loss[0] == fg.expect(tasks, WR(), limit).loss
    assert [line.split()[0] for line in str(found).splitlines()[4:7]] == ["inf", "10", "1000"]
    assert found.figure().series[0].x == (10.0, 1000.0)
    assert fg.expect(tasks, WR(), [10, np.inf]).figure() is None
    solved = fg.expect(fg.families.two_lines(0.5), WR(), [10, 100, np.inf])
    assert all(np.isfinite(curve.x).all() for curve in solved.figure(bounds=True).series)
    found.save(tmp_path / "found.npz")
    again = fg.Expectation.load(tmp_path / "found.npz")
    assert again.k.tolist() == found.k.tolist()
    np.testing.assert_array_equal(again.loss, found.loss)
    single = fg.expect(tasks, WR(), np.inf)
    single.save(tmp_path / "single.npz")
    assert fg.Expectation.load(tmp_path / "single.npz").k == np.inf
    assert [row[0] for row in found.to_table().rows] == found.k.tolist()
    gap = fg.compare(tasks, WR(), WR([1, 2, 3, 4, 5, 6]), np.inf)
    assert np.isfinite(gap.loss)


def test_the_command_line_knows_inf():
    app = make_app()
    made = CliRunner().invoke(app, ["expect", "two_lines", "theta=0.5", "-k", "10,1000,inf", "--quantity", "loss"])
    assert made.exit_code == 0, made.output
    assert "inf" in made.output
    json = CliRunner().invoke(app, ["expect", "two_lines", "theta=0.5", "-k", "inf", "--quantity", "loss", "--json"])
    assert json.exit_code == 0, json.output
    refused = CliRunner().invoke(app, ["expect", "two_lines", "theta=0.5", "-o", "cyclic", "-k", "inf"])
    assert refused.exit_code != 0
