"""Reshuffled orders at large k: powers of the map of an epoch, against all orders in rational arithmetic."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

import forgetting as fg
from forgetting.expectation.api import ask
from forgetting.expectation.engines import engines, subsets
from forgetting.expectation.engines.epoch_powers import _power_error, cost_of_powers, raises_epochs, solve_by_powers

NAMES = ("loss", "forgetting", "seen_loss", "next_loss", "task_losses", "error", "regret")
#: rows of one-row tasks, and the solution that gives their labels; the last two decay slowly
ROWS = {
    "three rows": ([(1, 2), (3, 1), (1, -1)], (2, -3)),
    "two rows": ([(1, 0, 0), (1, 3, 1), (2, 1, 2)], (1, 1, -2)),
    "close lines": ([(1, 0), (40, 1)], (5, 7)),
    "clones": ([(1, 0), (30, 1), (1, 0), (30, 1)], (1, -2)),
}


def product(A, B):
    return [[sum(x * y for x, y in zip(row, column, strict=True)) for column in zip(*B, strict=True)] for row in A]


def mean(matrices):
    several = list(matrices)
    return [[sum(cells) / len(several) for cells in zip(*rows, strict=True)] for rows in zip(*several, strict=True)]


class Exact:
    """All orders of an epoch, in fractions; the map of an epoch is a matrix that is raised to powers by squaring."""

    def __init__(self, rows, solution, gain):
        self.rows, self.d, self.gain = rows, len(solution), gain
        unit = [[Fraction(int(i == j)) for j in range(self.d)] for i in range(self.d)]
        self.steps = []
        for x in rows:
            square = sum(v * v for v in x)
            self.steps.append(
                [[unit[i][j] - gain * x[i] * x[j] / square for j in range(self.d)] for i in range(self.d)]
            )
        z = [-Fraction(v) for v in solution]
        self.start = [[a * b for a in z] for b in z]
        self.orders = list(permutations(range(len(rows))))
        self.places = [(i, j) for i in range(self.d) for j in range(self.d)]
        columns = []
        for place in self.places:
            basis = [[Fraction(int((i, j) == place)) for j in range(self.d)] for i in range(self.d)]
            moved = mean(self.along(basis, order) for order in self.orders)
            columns.append([moved[i][j] for i, j in self.places])
        self.epoch = [list(row) for row in zip(*columns, strict=True)]

    def along(self, A, order):
        for m in order:
            A = product(product(self.steps[m], A), self.steps[m])
        return A

    def after(self, epochs):
        """E z z^T after so many epochs."""
        vector, power = [[self.start[i][j]] for i, j in self.places], self.epoch
        while epochs:
            if epochs % 2:
                vector = product(power, vector)
            epochs //= 2
            power = product(power, power) if epochs else power
        flat = [cell for (cell,) in vector]
        return [flat[i * self.d : (i + 1) * self.d] for i in range(self.d)]

    def loss(self, m, A):
        x = self.rows[m]
        return sum(x[i] * A[i][j] * x[j] for i, j in self.places) / 2

    def values(self, k):
        T = len(self.rows)
        epochs, rest = divmod(k, T)
        begin, found = self.after(epochs), dict.fromkeys(NAMES, Fraction(0))
        each = [Fraction(0)] * T
        for order in self.orders:
            A = self.along(begin, order[:rest])
            losses, share = [self.loss(m, A) for m in range(T)], Fraction(1, len(self.orders))
            each = [total + share * loss for total, loss in zip(each, losses, strict=True)]
            seen = sum((epochs + (m in order[:rest])) * losses[m] for m in range(T)) / k
            found["seen_loss"] += share * seen
            found["next_loss"] += share * losses[order[rest]]
            found["error"] += share * sum(A[i][i] for i in range(self.d))
        found["loss"] = sum(each) / T
        before = kept = Fraction(0)
        for e in range(epochs + 1):
            made = self.after(e)
            for order in self.orders:
                A = made
                for m in order[: T if e < epochs else rest]:
                    before += self.loss(m, A) / len(self.orders)
                    A = self.along(A, [m])
                    kept += self.loss(m, A) / len(self.orders)
        found["regret"], found["forgetting"] = before / k, found["seen_loss"] - kept / k
        return found, each


def problem(name):
    rows, solution = ROWS[name]
    Xs = [[[float(v) for v in x]] for x in rows]
    return fg.RegressionTasks(Xs, [[float(np.dot(x, solution))] for x in rows])


@pytest.mark.parametrize(("scheme", "gain"), [("kaczmarz", Fraction(1)), ("sgd step_size=0.25", Fraction(1, 4))])
@pytest.mark.parametrize("name", list(ROWS))
def test_powers_of_epochs_are_the_means_over_all_orders(name, scheme, gain):
    tasks, exact = problem(name), Exact(*ROWS[name], gain)
    T = tasks.num_tasks
    steps = [2 * T, 2 * T + 1, 3 * T - 1, 5 * T + 1]
    request = ask(tasks, "reshuffled", steps, scheme, quantities=NAMES).request
    assert raises_epochs(request)
    outcome = solve_by_powers(request)
    for i, k in enumerate(steps):
        found, each = exact.values(k)
        for quantity in NAMES:
            value, doubt = outcome.values[quantity][i], outcome.uncertainty[quantity][i]
            truth = each if quantity == "task_losses" else [found[quantity]]
            for got, off, true in zip(np.ravel(value), np.ravel(doubt), truth, strict=True):
                assert abs(Fraction(float(got)) - true) <= Fraction(float(off)), (quantity, k)
                assert off <= 1e-9 * float(exact.loss(0, exact.start) + exact.loss(1, exact.start))


@pytest.mark.parametrize("name", ["close lines", "clones"])
def test_many_epochs_are_within_their_uncertainty(name):
    tasks, exact = problem(name), Exact(*ROWS[name], Fraction(1))
    for epochs in (100, 1000):
        k = epochs * tasks.num_tasks
        outcome = solve_by_powers(ask(tasks, "reshuffled", k, quantities="loss").request)
        made = exact.after(epochs)
        true = sum(exact.loss(m, made) for m in range(tasks.num_tasks)) / tasks.num_tasks
        value, doubt = outcome.values["loss"][0], outcome.uncertainty["loss"][0]
        assert abs(Fraction(float(value)) - true) <= Fraction(float(doubt))
        assert doubt < 1e-6 * value


def test_errors_of_an_epoch_add_up_over_epochs():
    assert _power_error(0.0, 0.9, 10**6, summed=False) == 0.0
    assert 9e-10 < _power_error(1e-13, 0.999999, 10**4, summed=False) < 1e-9
    assert _power_error(1e-13, 0.999999, 10**9, summed=False) < 1e-300  # nothing is left to be off


def test_any_k_takes_the_same_time_as_two_epochs():
    tasks = fg.families.gaussian(T=7, d=9, rank=2, seed=0)
    costs = [cost_of_powers(ask(tasks, "reshuffled", k).request).seconds for k in (20, 10**15)]
    assert costs[0] == costs[1]
    answer = fg.expect(tasks, "reshuffled", [10**6 + 1, 10**15 - 3], quantities=NAMES)
    assert answer.method == "subsets"
    assert "map of an epoch" in answer.detail
    assert np.all(answer.loss <= answer.uncertainty["loss"])  # nothing is left
    assert np.all(answer.values["regret"] > 0)


def test_regret_sums_over_all_epochs():
    tasks = problem("close lines")
    k = 2000
    powers = solve_by_powers(ask(tasks, "reshuffled", k, quantities=("regret", "loss")).request)
    walked = engines.get("subsets").solve(ask(tasks, "reshuffled", k, quantities=("regret", "loss")).request)
    assert "given which tasks were seen" in walked.detail
    for name in ("regret", "loss"):
        assert abs(powers.values[name] - walked.values[name])[0] <= powers.uncertainty[name][0]


def test_powers_are_left_out_where_they_do_not_hold():
    tasks, apart = problem("three rows"), fg.RegressionTasks([[[1.0]], [[1.0]]], [[0.0], [1.0]])
    assert not raises_epochs(ask(apart, "reshuffled", 100).request)
    assert not raises_epochs(ask(tasks, "without-replacement", 3).request)
    assert not raises_epochs(ask(tasks, "reshuffled", 5).request)
    assert not raises_epochs(ask(tasks, "reshuffled", 100, "sgd step_size=2.5").request)
    assert not raises_epochs(ask(tasks, "reshuffled", 100, quantities="averaged_loss").request)
    assert not raises_epochs(
        ask(tasks, "reshuffled", 100, fg.schemes.Scheduled(lambda t: fg.schemes.SGD(1 / t))).request
    )


def test_walking_is_preferred_while_it_takes_two_seconds_and_memory_decides(monkeypatch):
    tasks = fg.families.gaussian(T=6, d=8, rank=1, seed=0)
    short, long = (ask(tasks, "reshuffled", k).request for k in (24, 10**9))
    engine = engines.get("subsets")
    assert engine.cost(short).seconds < 2 < subsets.SubsetsEngine()._cost_of_walk(long).seconds
    assert engine.cost(long).seconds < 2
    tight = ask(tasks, "reshuffled", 10**9, memory=1e6).request
    assert engine.cost(tight).seconds > 1e3


def test_what_gains_near_one_leave_is_within_its_uncertainty():
    rows, solution, lam, epochs = (Fraction(6 * 10**8), Fraction(-1, 4)), Fraction(4000), Fraction(10**6), 40
    keep = [lam / (lam + x * x) for x in rows]
    whole = keep[0] * keep[1]
    end, passes = solution * whole**epochs, (1 - whole ** (2 * epochs)) / (1 - whole**2)
    half = [x * x / 2 for x in rows]
    first = sum(half[m] * keep[m] ** 2 for m in (0, 1)) / 2  # the task that comes first in an epoch; then the second
    second = sum(half[m] * whole**2 for m in (0, 1)) / 2
    true = (epochs * sum(half) * end**2 - (first + second) * passes * solution**2) / (2 * epochs)
    tasks = fg.RegressionTasks([[[float(x)]] for x in rows], [[float(x * solution)] for x in rows])
    request = ask(tasks, "reshuffled", 2 * epochs, fg.schemes.Ridge(float(lam)), quantities="forgetting").request
    outcome = solve_by_powers(request)
    value, doubt = outcome.values["forgetting"][0], outcome.uncertainty["forgetting"][0]
    assert abs(Fraction(float(value)) - true) <= Fraction(float(doubt))
    assert abs(Fraction(float(value)) - true) > Fraction(1, 10**18) * abs(true)  # rounding of the gains shows
    assert doubt < 1e-2 * abs(value)


def test_tasks_of_zeros_have_no_loss_after_any_number_of_epochs():
    zeros = fg.RegressionTasks([np.zeros((1, 2))] * 3, [np.zeros(1)] * 3)
    e = fg.expect(zeros, "reshuffled", 10**9)
    assert (e.loss, e.forgetting) == (0, 0)
