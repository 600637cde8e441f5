"""Schemes x orderings x problems: every combination runs, or is refused by name; what runs means what it says.

The rows and columns come from the registries, so that a new ordering or scheme is here without being written down.
"""

from itertools import permutations, product

import numpy as np
import pytest

import forgetting as fg
from forgetting import orderings, schemes
from forgetting.errors import ForgettingError, NotSupportedError
from forgetting.orderings import laws

T, K = 3, 3
ARGUMENTS = {
    "decay": {"alpha": 0.5, "scheme": "kaczmarz"},
    "explicit": {"seq": [2, 0, 2]},
    "finite-steps": {"n": 2, "step_size": 0.05},
    "ridge": {"lam": 0.5},
    "scheduled": {"schedule": lambda t: schemes.Ridge(0.5 * t)},
    "weakly-regularized": {"log_lambda": -20.0},
}
ORDERINGS = [
    *(orderings.registry.get(name)(**ARGUMENTS.get(name, {})) for name in orderings.registry),
    orderings.Cyclic([2, 0, 1]),
]
SCHEMES = [schemes.registry.get(name)(**ARGUMENTS.get(name, {})) for name in schemes.registry]
ROWS = fg.families.gaussian(T=T, d=4, rank=[1, 2, 1], seed=2)
PROBLEMS = {
    "regression": ROWS,
    "kernel": fg.KernelTasks(np.eye(4) + 0.5, [1.0, 2.0, 0.0, 1.0], [0, 1, 1, 2]),
    "classification": fg.families.separable(T=T, d=4, n=2, margin=0.3, seed=0),
    "sets": fg.ConvexSets(
        [fg.Ball(np.ones(4), 1.5), fg.Halfspace([1.0, 0, 0, 0], 0.5), fg.Box(-np.ones(4), np.ones(4))]
    ),
    "affine sets": fg.ConvexSets.from_affine(ROWS),
}


def combinations(wanted=lambda problem, ordering, scheme: True):
    """All combinations of this kind, as the parameters of a test."""
    return pytest.mark.parametrize(
        ("problem", "ordering", "scheme"),
        [
            pytest.param(problem, ordering, scheme, id=f"{name}-{type(ordering).__name__}-{type(scheme).__name__}")
            for (name, problem), ordering, scheme in product(PROBLEMS.items(), ORDERINGS, SCHEMES)
            if wanted(problem, ordering, scheme)
        ],
    )


def refused(problem, ordering, scheme):
    """What has no meaning: schemes of regression on curved sets, of classification on anything else, norms of sets."""
    if scheme.intrinsic and problem.geometry is None:
        return f"{type(scheme).__name__}.* is a scheme for regression tasks"
    if isinstance(scheme, schemes.WeaklyRegularized) and problem.kind != "classification":
        return "is a scheme for ClassificationTasks"
    if isinstance(ordering, orderings.NormWeighted) and problem.norms is None:
        return "norm-weighted sampling needs tasks with a norm"
    return None


def all_orders(law, problem):
    """Every order of K tasks that can come, with its probability."""
    if isinstance(law, laws.Independent):
        p = law.probabilities(orderings.TaskView(T, problem.norms))
        return [(order, float(np.prod(p[list(order)]))) for order in product(range(T), repeat=K)]
    if isinstance(law, laws.Permutation | laws.Reshuffled):
        return [(order, 1 / 6) for order in permutations(range(T))]
    if isinstance(law, laws.Cycle):
        return [((0, 1, 2) if law.order is None else law.order, 1.0)]
    return [(law.sequence, 1.0)]


@combinations()
def test_a_combination_runs_or_is_refused_by_name(problem, ordering, scheme):
    reason = refused(problem, ordering, scheme)
    if reason is not None:
        with pytest.raises(NotSupportedError, match=reason):
            fg.run(problem, ordering, K, scheme=scheme, seed=1)
        return
    made = fg.run(problem, ordering, K, scheme=scheme, seed=1)
    points = made.scaled_iterates
    losses = np.array([problem.task_losses(w) for w in points])
    np.testing.assert_allclose(made.loss_matrix, losses, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(made.losses, losses.mean(axis=1), rtol=1e-7, atol=1e-12)
    seen = made.order
    learned = [[s for s in range(t) if seen[s] >= 0] for t in range(1, K + 1)]  # without the steps that were skipped
    regret = [sum(losses[s, seen[s]] for s in visits) / max(len(visits), 1) for visits in learned]
    np.testing.assert_allclose(made.regret, regret, rtol=1e-7, atol=1e-12)
    forgetting = [
        sum(losses[t, seen[s]] - losses[s + 1, seen[s]] for s in visits) / max(len(visits), 1)
        for t, visits in enumerate(learned, 1)
    ]
    np.testing.assert_allclose(made.forgetting, forgetting, rtol=1e-7, atol=1e-12)
    many = fg.run_many(problem, ordering, K, runs=3, scheme=scheme, seed=1)
    np.testing.assert_allclose(many.losses[2], many[2].losses, rtol=1e-7, atol=1e-12)


def exact(problem, ordering, scheme):
    """Whether an expectation can be exact: one order only, or a linear scheme."""
    if refused(problem, ordering, scheme) is not None or scheme.random or ordering.law.adaptive:
        return False
    if isinstance(ordering.law, laws.Unknown):
        return False
    return not ordering.law.random or scheme.linear_on(problem) is not None


@combinations(exact)
def test_an_exact_expectation_is_the_mean_over_all_orders(problem, ordering, scheme):
    weighted = all_orders(ordering.law, problem)
    found = fg.expect(problem, ordering, K, scheme=scheme, quantities=("loss", "forgetting", "regret"))
    assert found.method != "monte-carlo"
    runs = [(fg.run(problem, orderings.Explicit(order), K, scheme=scheme), p) for order, p in weighted]
    for name, value in (("loss", "losses"), ("forgetting", "forgetting"), ("regret", "regret")):
        mean = sum(p * float(getattr(run, value)[-1]) for run, p in runs)
        assert float(found.values[name]) == pytest.approx(mean, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_bounds_cover_a_combination_or_say_why_not(problem, scheme):
    for ordering in ORDERINGS:
        if refused(problem, ordering, scheme) is None:
            for row in fg.bounds.evaluate(problem, ordering, K, scheme=scheme):
                assert row.applies is not bool(row.why_not)
        else:
            with pytest.raises(ForgettingError):
                fg.run(problem, ordering, K, scheme=scheme)
