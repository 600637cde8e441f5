"""What every run does, whatever the tasks: contraction, invariances, and the definitions of loss and forgetting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import forgetting as fg
from forgetting.orderings import (
    Cyclic,
    Explicit,
    GreedyDistance,
    GreedyResidual,
    NormWeighted,
    Reshuffled,
    WithoutReplacement,
    WithReplacement,
)

ENDLESS = [
    WithReplacement(),
    NormWeighted(),
    Cyclic(),
    Reshuffled(),
    GreedyDistance(),
    GreedyResidual(),
]


class Case:
    """Random realizable tasks, some with dependent rows, an order and a start, all from one seed."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        self.T, self.d = int(rng.integers(1, 6)), int(rng.integers(1, 9))
        self.matrices = []
        for _ in range(self.T):
            rows = rng.standard_normal((int(rng.integers(1, 5)), self.d)) * 10.0 ** rng.integers(-1, 2)
            if rng.random() < 0.3:
                rows = rng.standard_normal((len(rows) + 1, len(rows))) @ rows
            self.matrices.append(rows)
        self.solution = rng.standard_normal(self.d)
        self.labels = [X @ self.solution for X in self.matrices]
        self.order = rng.integers(self.T, size=int(rng.integers(1, 12)))
        self.w0 = rng.standard_normal(self.d)

    def tasks(self, **options):
        return fg.RegressionTasks(self.matrices, self.labels, **options)

    def run(self, tasks=None, order=None, **options):
        order = self.order if order is None else order
        return fg.run(self.tasks() if tasks is None else tasks, Explicit(order), len(order), **options)


cases = st.integers(0, 2**32 - 1).map(Case)


def close(actual, desired, tol=1e-9):
    desired = np.asarray(desired)
    np.testing.assert_allclose(actual, desired, rtol=0, atol=tol * max(1.0, float(np.max(np.abs(desired), initial=0))))


# --------------------------------------------------------------------------------------------------------- dynamics


@given(case=cases, loss=st.sampled_from(["sum", "mean"]), off=st.booleans())
def test_runs_equal_the_dense_reference(case, loss, off, dynamics):
    w0 = case.w0 if off else None
    run = case.run(case.tasks(loss=loss), w0=w0)
    dense = dynamics(case.matrices, case.labels, case.order, w0=w0, mean=loss == "mean")
    close(run.iterates, dense.iterates)
    close(run.loss_matrix, dense.loss_matrix)
    close(run.losses, dense.losses)
    close(run.forgetting, dense.forgetting)
    close(run.regret, dense.regret)


@given(case=cases)
def test_runs_on_unrealizable_tasks_equal_the_dense_reference(case, dynamics):
    labels = [y + case.rng.standard_normal(y.shape) for y in case.labels]
    run = case.run(fg.RegressionTasks(case.matrices, labels), w0=case.w0)
    dense = dynamics(case.matrices, labels, case.order, w0=case.w0)
    close(run.iterates, dense.iterates, 1e-8)
    close(run.loss_matrix, dense.loss_matrix, 1e-8)
    close(run.forgetting, dense.forgetting, 1e-8)
    close(run.regret, dense.regret, 1e-8)


@given(case=cases)
def test_every_projection_contracts_the_error(case):
    tasks = case.tasks()
    run = case.run(tasks, w0=case.w0)
    distance = np.linalg.norm(run.iterates - tasks.nearest_solution(case.w0), axis=1)
    assert np.all(np.diff(distance) <= 1e-12 * distance[0])
    to_any_solution = np.linalg.norm(run.iterates - case.solution, axis=1)
    assert np.all(np.diff(to_any_solution) <= 1e-12 * to_any_solution[0])


@given(case=cases, step=st.floats(0.05, 1.95))
def test_sgd_on_the_modified_objective_contracts_for_steps_below_two(case, step):
    tasks = case.tasks()
    run = case.run(tasks, w0=case.w0, scheme=fg.schemes.SGD(step))
    distance = np.linalg.norm(run.iterates - tasks.nearest_solution(case.w0), axis=1)
    assert np.all(np.diff(distance) <= 1e-12 * distance[0])


@given(case=cases)
def test_the_current_task_is_solved_after_its_step(case):
    run = case.run(w0=case.w0)
    for t, task in enumerate(case.order, start=1):
        X, y = case.matrices[task], case.labels[task]
        missed = np.linalg.norm(X @ run.iterates[t] - y)
        assert missed <= 1e-11 * (np.linalg.norm(X) * np.linalg.norm(run.iterates[t]) + np.linalg.norm(y))
        assert run.residuals[t, task] <= 1e-11 * (1 + np.linalg.norm(run.iterates[t]))


@given(case=cases)
def test_each_step_is_the_nearest_solution_of_the_task(case):
    tasks = case.tasks()
    run = case.run(tasks, w0=case.w0)
    for t, task in enumerate(case.order, start=1):
        move = run.iterates[t] - run.iterates[t - 1]
        assert np.linalg.norm(move) == pytest.approx(run.residuals[t - 1, task], abs=1e-10)
        close(run.iterates[t], tasks.project(int(task), run.iterates[t - 1]))


@given(case=cases)
def test_a_start_off_the_row_space_keeps_its_orthogonal_part(case):
    stacked = np.vstack(case.matrices)
    off = np.eye(case.d) - np.linalg.pinv(stacked, rcond=1e-12) @ stacked
    tasks = case.tasks()
    run = case.run(tasks, w0=case.w0)
    close(run.iterates @ off, np.tile(off @ case.w0, (len(run.steps), 1)))
    close(tasks.nearest_solution(case.w0) @ off, off @ case.w0)
    gap = case.w0 - tasks.nearest_solution(case.w0)
    assert tasks.scale_from(case.w0) == pytest.approx(gap @ gap * tasks.radius**2, rel=1e-9, abs=1e-18)


# ------------------------------------------------------------------------------------------------------ invariances


@given(case=cases)
def test_relabelling_permutes_the_columns_and_nothing_else(case):
    new = case.rng.permutation(case.T)  # task m of the new collection is task new[m] of the old one
    renamed = fg.RegressionTasks([case.matrices[m] for m in new], [case.labels[m] for m in new])
    before, after = case.run(w0=case.w0), case.run(renamed, np.argsort(new)[case.order], w0=case.w0)
    close(after.iterates, before.iterates)
    close(after.loss_matrix, before.loss_matrix[:, new])
    close(after.losses, before.losses)
    close(after.forgetting, before.forgetting)
    close(after.regret, before.regret)
    assert renamed.ranks.tolist() == case.tasks().ranks[new].tolist()


@given(case=cases)
def test_rotating_the_space_rotates_the_iterates_and_nothing_else(case):
    Q = np.linalg.qr(case.rng.standard_normal((case.d, case.d)))[0]
    turned = fg.RegressionTasks([X @ Q for X in case.matrices], case.labels)
    before, after = case.run(w0=case.w0), case.run(turned, w0=Q.T @ case.w0)
    close(after.iterates, before.iterates @ Q)
    close(after.loss_matrix, before.loss_matrix)
    close(after.forgetting, before.forgetting)
    close(after.regret, before.regret)


@given(case=cases)
def test_duplicating_a_task_reweighs_the_mean_loss_and_nothing_else(case):
    twin = int(case.rng.integers(case.T))
    doubled = fg.RegressionTasks([*case.matrices, case.matrices[twin].copy()], [*case.labels, case.labels[twin].copy()])
    assert doubled.num_tasks == case.T + 1
    assert doubled.geometry.num_distinct == case.T
    assert doubled.geometry.counts.tolist() == [1 + (m == twin) for m in range(case.T)]
    swap = np.where((case.order == twin) & (case.rng.random(len(case.order)) < 0.5), case.T, case.order)
    before, after = case.run(w0=case.w0), case.run(doubled, swap, w0=case.w0)
    close(after.iterates, before.iterates, 1e-12)
    close(after.loss_matrix, before.loss_matrix[:, [*range(case.T), twin]], 1e-12)
    close(after.losses, (before.losses * case.T + before.loss_matrix[:, twin]) / (case.T + 1))
    close(after.forgetting, before.forgetting, 1e-12)
    close(after.regret, before.regret, 1e-12)


@given(case=cases)
def test_duplicating_the_rows_of_a_task_doubles_its_loss_and_nothing_else(case):
    task = int(case.rng.integers(case.T))
    matrices, labels = list(case.matrices), list(case.labels)
    matrices[task] = np.vstack([matrices[task]] * 2)
    labels[task] = np.concatenate([labels[task]] * 2)
    doubled = fg.RegressionTasks(matrices, labels)
    before, after = case.run(w0=case.w0), case.run(doubled, w0=case.w0)
    factor = np.where(np.arange(case.T) == task, 2.0, 1.0)
    close(after.iterates, before.iterates)
    close(after.loss_matrix, before.loss_matrix * factor)
    assert doubled.ranks.tolist() == case.tasks().ranks.tolist()
    close(
        case.run(fg.RegressionTasks(matrices, labels, loss="mean"), w0=case.w0).loss_matrix,
        case.run(case.tasks(loss="mean"), w0=case.w0).loss_matrix,
    )


@given(case=cases, factor=st.sampled_from([-2.0, 1e-3, 1e3]))
def test_scaling_a_task_scales_its_loss_and_leaves_the_iterates(case, factor):
    task = int(case.rng.integers(case.T))
    scale = np.where(np.arange(case.T) == task, factor, 1.0)
    scaled = fg.RegressionTasks(
        [c * X for c, X in zip(scale, case.matrices, strict=True)],
        [c * y for c, y in zip(scale, case.labels, strict=True)],
    )
    before, after = case.run(w0=case.w0), case.run(scaled, w0=case.w0)
    close(after.iterates, before.iterates)
    close(after.residuals, before.residuals)
    close(after.loss_matrix, before.loss_matrix * scale**2)


@given(case=cases)
def test_shifting_the_origin_shifts_the_run(case):
    shift = case.rng.standard_normal(case.d)
    moved = fg.RegressionTasks(case.matrices, [y + X @ shift for X, y in zip(case.matrices, case.labels, strict=True)])
    before, after = case.run(w0=case.w0), case.run(moved, w0=case.w0 + shift)
    close(after.iterates, before.iterates + shift)
    close(after.forgetting, before.forgetting)


# ------------------------------------------------------------------------------------- randomness and what is recorded


@pytest.mark.parametrize("ordering", [*ENDLESS, WithReplacement(p=[3, 1, 0, 2, 1, 1]), WithoutReplacement()], ids=str)
def test_the_seed_alone_decides_the_run(ordering):
    tasks = fg.families.gaussian(T=6, d=9, rank=2, seed=0)
    k = 6 if isinstance(ordering, WithoutReplacement) else 40
    np.random.seed(0)  # noqa: NPY002  the global state must not matter
    first = fg.run(tasks, ordering, k, seed=3)
    np.random.seed(1)  # noqa: NPY002
    again = fg.run(fg.families.gaussian(T=6, d=9, rank=2, seed=0), ordering, k, seed=3, record_every=7)
    assert first.order.tolist() == again.order.tolist()
    assert np.array_equal(first.iterates[again.steps], again.iterates)
    random = not isinstance(ordering, Cyclic | GreedyDistance | GreedyResidual)
    others = [fg.run(tasks, ordering, k, seed=seed).order.tolist() for seed in range(4, 8)]
    assert any(order != first.order.tolist() for order in others) == random


@pytest.mark.parametrize("scheme", [fg.schemes.SGD(0.3), fg.schemes.GradientDescent(batch_size=1, tol=1e-3)], ids=str)
def test_the_order_does_not_depend_on_scheme_start_or_data(scheme):
    tasks = fg.families.gaussian(T=6, d=9, rank=2, seed=0, condition=2)
    others = fg.families.gaussian(T=6, d=30, rank=3, seed=9)
    for ordering in (WithReplacement(), Reshuffled()):
        order = fg.run(tasks, ordering, 30, seed=5).order.tolist()
        assert fg.run(tasks, ordering, 30, seed=5, scheme=scheme).order.tolist() == order
        assert fg.run(tasks, ordering, 30, seed=5, w0=np.ones(9)).order.tolist() == order
        assert fg.run(others, ordering, 30, seed=5).order.tolist() == order


def test_the_seed_decides_a_stochastic_scheme_too():
    tasks = fg.families.gaussian(T=3, d=9, rank=3, seed=0, condition=2)
    scheme = fg.schemes.GradientDescent(batch_size=1, tol=1e-2)
    one, same, other = (fg.run(tasks, Cyclic(), 6, seed=seed, scheme=scheme) for seed in (1, 1, 2))
    assert np.array_equal(one.iterates, same.iterates)
    assert not np.array_equal(one.iterates, other.iterates)


@pytest.mark.parametrize("ordering", ENDLESS, ids=str)
def test_a_short_run_is_the_beginning_of_a_long_one(ordering):
    tasks = fg.families.gaussian(T=6, d=9, rank=2, seed=0)
    short, long = fg.run(tasks, ordering, 10, seed=2), fg.run(tasks, ordering, 20, seed=2)
    assert short.order.tolist() == long.order[:10].tolist()
    assert np.array_equal(short.states, long.states[:11])
    close(short.forgetting, long.forgetting[:10], 1e-13)
    assert np.array_equal(short.regret, long.regret[:10])


@given(case=cases, every=st.integers(1, 15))
def test_thinned_records_agree_with_full_ones(case, every):
    tasks = case.tasks()
    full, thin = case.run(tasks, w0=case.w0), case.run(tasks, w0=case.w0, record_every=every)
    k = len(case.order)
    assert thin.steps.tolist() == sorted({*range(0, k + 1, every), k})
    assert np.array_equal(thin.states, full.states[thin.steps])
    close(thin.loss_matrix, full.loss_matrix[thin.steps], 1e-13)
    assert np.array_equal(thin.regret, full.regret)
    recorded = thin.steps[thin.steps > 0] - 1
    close(thin.forgetting[recorded], full.forgetting[recorded], 1e-13)
    assert np.isnan(np.delete(thin.forgetting, recorded)).all()


@given(case=cases)
def test_nothing_of_the_callers_is_written_to_or_kept(case):
    matrices, labels = [X.copy() for X in case.matrices], [y.copy() for y in case.labels]
    w0 = case.w0.copy()
    tasks = fg.RegressionTasks(matrices, labels)
    run = case.run(tasks, w0=w0)
    for mine, theirs in zip([*matrices, *labels, w0], [*case.matrices, *case.labels, case.w0], strict=True):
        assert np.array_equal(mine, theirs)
        mine[:] = 77.0
    close(run.iterates, case.run(w0=case.w0).iterates)
    assert np.array_equal(run.w0, case.w0)
    close(tasks.task_losses(case.w0), case.tasks().task_losses(case.w0))
