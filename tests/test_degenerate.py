"""Problems with nothing in them: zero tasks, one task, one dimension, no labels, the whole space, a point, no steps."""

from contextlib import suppress

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import ForgettingError

PROBLEMS = {
    "zero tasks": lambda: fg.RegressionTasks([np.zeros((1, 2)), np.zeros((2, 2))], [[0.0], [0.0, 0.0]]),
    "zero rows with labels": lambda: fg.RegressionTasks([np.zeros((1, 2)), np.zeros((2, 2))], [[1.0], [0.0, 2.0]]),
    "one zero number": lambda: fg.RegressionTasks([[[0.0]]], [[0.0]]),
    "one number": lambda: fg.RegressionTasks([[[1.0]]], [[0.0]]),
    "a zero task beside another": lambda: fg.RegressionTasks([[[1.0, 0.0]], [[0.0, 0.0]]], [[1.0], [0.0]]),
    "labels that are all zero": lambda: fg.RegressionTasks([[[1.0, 0.0]], [[1.0, 1.0]]], [[0.0], [0.0]]),
    "the whole space": lambda: fg.ConvexSets(
        [fg.Polyhedron(np.zeros((1, 2)), [-1.0]), fg.Box([-np.inf] * 2, [np.inf] * 2)]
    ),
    "a point": lambda: fg.ConvexSets([fg.Ball([0.0, 0.0], 0.0)]),
}
CALLS = {
    "run": lambda problem, order, k: str(fg.run(problem, order, k)),
    "run_many": lambda problem, order, k: str(fg.run_many(problem, order, k, runs=3)),
    "expect": lambda problem, order, k: str(fg.expect(problem, order, k, runs=64)),
    "expect for ever": lambda problem, order, k: str(fg.expect(problem, order, np.inf)),
    "expect with noise": lambda problem, order, k: str(fg.expect(problem, order, k, noise=0.1)),
    "expect of tests": lambda problem, order, k: str(fg.expect(problem, order, k, test=problem)),
    "compare": lambda problem, order, k: str(fg.compare(problem, order, "cyclic", k, runs=64)),
    "bounds": lambda problem, order, k: str(fg.bounds.evaluate(problem, order, k)),
    "certify": lambda problem, order, k: str(fg.certify(problem, order, k)),
    "decay_rate": lambda problem, order, k: fg.decay_rate(problem, order),
    "optimal_weights": lambda problem, order, k: str(fg.optimal_weights(problem, "loss", max(k, 1))),
    "optimal_schedule": lambda problem, order, k: str(fg.optimal_schedule(problem, order, max(k, 1))),
}


#: Certificates take seconds where simulation decides: every fourth problem has one here, and all have in `make hunt`.
PAIRS = [
    pytest.param(name, call, marks=pytest.mark.slow if call == "certify" and place % 4 else ())
    for place, name in enumerate(PROBLEMS)
    for call in CALLS
]


@pytest.mark.filterwarnings("ignore::forgetting.errors.DataWarning")
@pytest.mark.parametrize(("name", "call"), PAIRS)
def test_problems_with_nothing_in_them_have_answers_or_errors_of_this_library(name, call):
    problem, answers = PROBLEMS[name](), 0
    for order in ("with-replacement", "greedy-distance"):
        for k in (0, 1, 2):
            with suppress(ForgettingError):
                CALLS[call](problem, order, k)
                answers += 1
    assert answers or call not in ("run", "run_many", "expect", "bounds", "certify")


@pytest.mark.parametrize("name", PROBLEMS)
def test_an_audit_of_nothing_says_so(name):
    with suppress(ForgettingError):
        assert str(fg.audit(PROBLEMS[name]()))
