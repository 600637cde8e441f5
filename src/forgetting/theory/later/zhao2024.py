"""Zhao et al. 2024: ridge to the previous solution with matrices reaches the error of all data at once, one strength
does not.

Their abstract says both of random linear regression, up to constants. What can be said of given tasks is written out
here. With M_t = sum_(s<t) X_s' X_s, loss and penalty of step t are, up to a constant, the loss of all rows seen: the
step from a minimiser of the earlier losses goes to the nearest one of the sum, and no square has to be unique.

With one strength lam on tasks x = 1 whose labels are w* plus noise of variance 1, each step maps the error z to
q z + (1 - q) noise, q = lam/(1 + lam), so that E|w_k - w*|^2 = q^(2k) |w*|^2 + (1 - q^(2k))/(1 + 2 lam). With
m = lam + 1/2: if m <= 4k/ln k, then q^(2k) <= exp(-2k/m) <= k^(-1/2), and the second term is at least
(1 - k^(-1/2)) ln(k)/(8k). If m > 4k/ln k, then q^(2k) >= exp(-2k/(m - 1/(4m))) >= k^(-0.51) for k >= 2, which is larger
with |w*| = 1. All data at once have the error 1/k.
"""

from __future__ import annotations

import numpy as np

from forgetting.core.arrays import Array
from forgetting.core.numerical import ROUNDING
from forgetting.dynamics.space import view_of
from forgetting.expectation import expect
from forgetting.orderings import Cyclic
from forgetting.schemes import Ridge
from forgetting.tasks import RegressionTasks
from forgetting.theory.checking import all_of, small, steps, tasks_with_data
from forgetting.theory.claim import declare_claim
from forgetting.theory.definition import DisagreementError, equations
from forgetting.theory.draws import Rng
from forgetting.theory.instance import Instance
from forgetting.theory.noisy_draws import noisy_collection
from forgetting.theory.verdict import Sides

MOST_STEPS, MOST_TASKS = 40, 32
SEPARATED = 100  # condition number of all rows up to which least squares keeps enough digits


def _rows(instance: Instance) -> list[tuple[Array, Array]]:
    """The rows and labels of the visits, in turn."""
    assert instance.ordering is not None
    order = instance.ordering.first(view_of(instance.tasks), instance.k, instance.seed).tolist()
    each = {task: equations(instance.tasks, task) for task in set(order)}
    return [each[task] for task in order]


def _condition(instance: Instance) -> float:
    values = np.linalg.svd(np.concatenate([X for X, _ in _rows(instance)]), compute_uv=False)
    kept = values[values > 1e-9 * values[0]]
    return float(kept[0] / kept[-1]) if len(kept) else 1.0


def _readable(instance: Instance) -> str | None:
    if instance.k > MOST_STEPS:
        return f"is checked for k <= {MOST_STEPS}"
    if instance.ordering is None or instance.ordering.adaptive:
        return "is about orders that do not look at w"
    separated = _condition(instance) <= SEPARATED
    return None if separated else f"is checked where the condition number of all rows is at most {SEPARATED:g}"


def _some_order(rng: Rng, index: int) -> Instance:
    tasks = noisy_collection(rng, index, clones=MOST_TASKS)
    T = tasks.num_tasks
    order = rng.permutation(T) if index % 2 else rng.integers(T, size=int(rng.integers(1, 2 * T + 1)))
    start = rng.standard_normal(tasks.dim) if index % 3 else None
    return Instance(tasks, Cyclic(order[:MOST_STEPS].tolist()), min(len(order), MOST_STEPS), w0=start)


@declare_claim(
    label="zhao2024",
    part="matrices",
    statement="ridge with M_t = sum_(s<t) X_s' X_s, the step nearest to w_(t-1): w_k is the least-squares solution of "
    "all rows seen that is nearest to w_0",
    draw=_some_order,
    source="Zhao et al. 2024, abstract (zhao2024)",
    status="second-hand",
    note="The abstract has the error of the best matrices, of the order of that of all data. That these matrices reach "
    "it exactly on given tasks is written out here; it is online EWC, and what `fg.checks.check_ewc` checks.",
    title="matrices of the tasks before make ridge the solution of all data",
    kind="equality",
    missing=all_of(tasks_with_data, small(60), steps(1), _readable),
)
def _(instance: Instance) -> Sides:
    w, seen = instance.start, np.zeros((0, instance.tasks.dim))
    visits = _rows(instance)
    for X, y in visits:
        # |X w - y|^2 + (w - w')' M (w - w') by rows, whose squares would lose digits
        missed = np.concatenate([y - X @ w, np.zeros(len(seen))])
        seen = np.concatenate([X, seen])
        w = w + np.linalg.lstsq(seen, missed, rcond=1e-9)[0]
    rows, labels = np.concatenate([X for X, _ in visits]), np.concatenate([y for _, y in visits])
    joint = instance.start + np.linalg.lstsq(rows, labels - rows @ instance.start, rcond=1e-9)[0]
    size = float(np.linalg.norm(rows, 2)) or 1.0
    scale = float(np.linalg.norm(joint) + np.linalg.norm(instance.start) + np.linalg.norm(labels) / size) or 1.0
    off = ROUNDING * _condition(instance) ** 2 * scale
    return Sides(float(np.linalg.norm(w - joint)), 0.0, off, scale, "one run")


def _one_strength(rng: Rng, index: int) -> Instance:
    k = 2 + index % 31 if index < 31 else int(np.exp(rng.uniform(np.log(2), np.log(MOST_STEPS + 1))))
    # near the best strength, which grows like k/ln k, and far from it
    best = 4 * k / np.log(k) * np.exp(rng.uniform(-3, 1)) if index % 2 else 10.0 ** rng.uniform(-3, 3)
    return Instance(RegressionTasks([[[1.0]]], [[1.0]]), Cyclic(), k, extras={"lam": float(best)})


@declare_claim(
    label="zhao2024",
    part="one strength",
    statement="(1 - k^(-1/2)) ln(k)/(8k) <= E|w_k - w*|^2, ridge with any one strength lam, k >= 2 tasks x = 1, labels "
    "w* = 1 and noise of variance 1 (all data at once: 1/k)",
    draw=_one_strength,
    source="Zhao et al. 2024, abstract (zhao2024)",
    status="second-hand",
    note="The abstract says that ridge with one strength falls behind all data; the tasks and the factor ln(k)/8 are "
    "worked out here. The smallest error that was found is four times the left side.",
    title="ridge with one strength falls behind all data",
    missing=all_of(
        lambda i: None if i.k >= 2 else "is for k >= 2",
        lambda i: None if i.k <= MOST_STEPS else f"is checked for k <= {MOST_STEPS}",
    ),
    labels_matter=False,
)
def _(instance: Instance, lam: float) -> Sides:
    k, lam = instance.k, float(lam)
    tasks = RegressionTasks([[[1.0]]] * k, [[1.0]] * k)
    e = expect(tasks, Cyclic(), k, Ridge(lam), noise=1.0, test=[([[1.0]], [1.0])] * k, quantities="test_loss")
    error = 2 * float(e.values["test_loss"])
    formula = (lam / (1 + lam)) ** (2 * k) * (1 - 1 / (1 + 2 * lam)) + 1 / (1 + 2 * lam)
    doubt = 2 * float(e.uncertainty["test_loss"]) + ROUNDING * error
    if abs(error - formula) > doubt:
        raise DisagreementError("E|w_k - w*|^2", error, formula)
    return Sides((1 - k**-0.5) * np.log(k) / (8 * k), error, doubt, error, e.method)
