"""The rates of thm:pocs-rate, cor:pocs_forgetting and Table 2 beside what is measured, with and without replacement."""

from __future__ import annotations

import numpy as np
import pytest

import forgetting as fg

RUNS = 60
WITH, WITHOUT = fg.orderings.WithReplacement(), fg.orderings.WithoutReplacement()


def problems():
    yield "wide margin", fg.families.separable(T=8, d=6, n=3, margin=0.5, seed=0)
    yield "narrow margin", fg.families.separable(T=8, d=4, n=4, margin=0.05, seed=1)
    # two halfplanes that meet at a small angle, many times over: slow, and easily forgotten
    angle = 0.1
    rows = [[[np.sin(angle), np.cos(angle)]], [[np.sin(angle), -np.cos(angle)]]] * 4
    signs = [1.0, -1.0] * 4
    yield (
        "wedge",
        fg.ClassificationTasks([np.array(row) * s for row, s in zip(rows, signs, strict=True)], [[1], [-1]] * 4),
    )


PROBLEMS = dict(problems())


@pytest.fixture(scope="module", params=list(PROBLEMS))
def tasks(request):
    return PROBLEMS[request.param]


def bounds_of(problem, ordering, k, quantity, prefix=""):
    rows = fg.bounds.evaluate(problem, ordering, k)
    kept = [row for row in rows if row.applies and row.quantity == quantity and row.bound.key.startswith(prefix)]
    return {row.bound.key: row.value for row in kept}


@pytest.mark.parametrize("ordering", [WITH, WITHOUT], ids=repr)
@pytest.mark.parametrize("start", [0.0, 3.0])
def test_the_residual_is_below_the_universal_rate_of_projections(tasks, ordering, start):
    w0 = np.full(tasks.dim, start)
    steps = [1, 2, 4, 8] if ordering is WITHOUT else [1, 3, 10, 40]
    runs = fg.run_many(tasks.sets, ordering, k=steps[-1], runs=RUNS, seed=0, w0=w0, record_every=steps)
    for k in steps:
        measured = runs.losses[:, np.searchsorted(runs.steps, k)].mean()
        rows = [
            row
            for row in fg.bounds.evaluate(tasks.sets, ordering, k, w0=w0)
            if row.applies and row.quantity == "residual" and row.bound.key.startswith("thm:pocs-rate")
        ]
        assert len(rows) >= 2
        assert all(measured <= row.value for row in rows)
        stated = next(row.value for row in rows if row.bound.key.count("/") == 2)
        assert stated == pytest.approx(7 * k**-0.25 * tasks.sets.scale_from(w0))


@pytest.mark.parametrize("ordering", [WITH, WITHOUT], ids=repr)
def test_forgetting_is_below_the_rates_of_table_2(tasks, ordering):
    steps = [1, 2, 4, 8] if ordering is WITHOUT else [1, 3, 10, 40]
    runs = fg.run_many(tasks, ordering, k=steps[-1], runs=RUNS, seed=1, record_every=steps)
    for k in steps:
        measured = runs.forgetting[:, k - 1].mean()
        values = bounds_of(tasks, ordering, k, "forgetting")
        stated = values[f"cor:pocs_forgetting/forgetting/{'with' if ordering is WITH else 'without'}"]
        assert stated == pytest.approx(7 * k**-0.25 * tasks.scale)
        if ordering is WITH:
            old = values["evron2023:random/forgetting"]
            assert old == pytest.approx(tasks.scale * np.exp(-k / (4 * 8 * tasks.scale)))
        assert len(values) >= 3
        for key, value in values.items():
            assert measured <= value + 1e-12, key
        # and the step in between, distances
        assert measured <= runs.forgetting_bound[:, k - 1].mean() * (1 + 1e-9) + 1e-12


def test_forgetting_in_a_cycle_is_below_the_earlier_rates(tasks):
    run = fg.run(tasks, fg.orderings.Cyclic(), k=80)
    for k in (8, 16, 80):
        values = bounds_of(tasks, fg.orderings.Cyclic(), k, "forgetting")
        assert run.forgetting[k - 1] <= values["evron2023:cyclic/forgetting"]
        residual = 0.5 * np.mean(run.residuals[k] ** 2)
        assert residual <= bounds_of(tasks, fg.orderings.Cyclic(), k, "residual")["evron2023:cyclic/residual"]


def test_the_weakly_regularised_scheme_is_below_the_rate_too(tasks):
    runs = fg.run_many(tasks, WITHOUT, k=8, runs=10, scheme=fg.schemes.WeaklyRegularized(-1e4), record_every=[4, 8])
    for k in (4, 8):
        assert (
            runs.forgetting[:, k - 1].mean()
            <= bounds_of(tasks, WITHOUT, k, "forgetting")["cor:pocs_forgetting/forgetting/without"]
        )


def test_the_table_has_the_rates_of_the_paper():
    text = str(fg.bounds.table("classification"))
    for cell in ("exp(-k/(4 T S))", "T^2/sqrt(k)", "exp(-k/(16 T^2 S))", "1/k^(1/4)", "1/T^(1/4)"):
        assert cell in text


def test_sets_have_the_same_rates_as_the_tasks_they_come_from(tasks):
    """R = 1 here, so that S = |w*|^2."""
    by_tasks, by_sets = (bounds_of(p, WITH, 9, "forgetting", "cor:pocs") for p in (tasks, tasks.sets))
    assert by_tasks == pytest.approx(by_sets)
    assert set(by_tasks) == set(by_sets)
