"""Ridge to the previous solution at rate 1/k: any fixed strength, and increasing ones; proofs in docs/schedules.md.

The rates are those that Levinstein et al. 2025 announce for strengths of these kinds. The strengths with their
constants (`Ridge("fixed")`, `Ridge("increasing")`) and the constants of the bounds are of this library.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from forgetting.core.numerical import ROUNDING
from forgetting.orderings import WithReplacement
from forgetting.schemes import Ridge
from forgetting.theory.bound import Bound
from forgetting.theory.checking import all_of, at_most, by_engines, covers, regression, setting_of, steps
from forgetting.theory.draws import Rng, projected, realizable, some_start
from forgetting.theory.expectations import Engine
from forgetting.theory.expression import Expression, K, S, called, logarithm, parameter
from forgetting.theory.instance import Instance
from forgetting.theory.later.one_over_k import FRESH, U_IS
from forgetting.theory.paper.regression_rates import WITH
from forgetting.theory.statement import Condition
from forgetting.theory.theorem import Checked, Theorem, compared
from forgetting.theory.verdict import CheckPaths, Draw, Missing, Sides

MOST_STEPS = 200  # of the problems of a hunt
_LAMBDA = parameter("penalty", "lambda", r"\lambda")
_R_SQUARED = Expression("R^2", "R^2", lambda s, k: s.radius**2)


def _rare(rng: Rng, index: int) -> Instance:
    """A task that is drawn rarely among tasks that ask for nothing: the slowest to be learned at a given strength."""
    k = int(np.exp(rng.uniform(0, np.log(MOST_STEPS))))
    clones = max(0, round(2 * k * 10.0 ** rng.uniform(-1.5, 0.5) - 1))
    size = 10.0 ** rng.uniform(-2, 2)
    tasks = realizable([size * np.eye(1), np.zeros((1, 1))], np.ones(1), [1, clones] if clones else [1, 1])
    return Instance(tasks, WithReplacement(), k, w0=some_start(rng, 1))


def _drawn(lam: Literal["fixed", "increasing"] | None) -> Draw:
    """Realizable tasks, half of them with a rare one, under uniform draws, learned by ridge of this kind."""
    others = projected(most=MOST_STEPS)

    def draw(rng: Rng, index: int) -> Instance:
        made = (_rare if index % 2 else others)(rng, index)
        size = made.tasks.radius**2 or 1.0
        weak = 1e-6 * size  # nearly projections, whose worst tasks are known
        any_strength = size * 10.0 ** rng.uniform(-3, 3) if index % 4 else weak
        return replace(made, scheme=Ridge(any_strength if lam is None else lam))

    return draw


def _learned_by(lam: Literal["fixed", "increasing"] | None) -> Missing:
    """The condition that tasks are learned by ridge of this kind."""
    name = Ridge(lam or 1.0).known_as
    known = f"covers {name}"
    return lambda instance: None if instance.scheme is not None and instance.scheme.known_as == name else known


def _at_most(bound: Bound) -> CheckPaths:
    """Both sides; a fixed strength is given its number, which 50 digits need."""

    def check(engine: Engine, instance: Instance) -> Sides:
        k, setting = instance.k, setting_of(instance)
        assert instance.scheme is not None
        fitted = instance.scheme.fitted_to(instance.posed, k)
        alike = fitted.linear_on(instance.posed) is not None
        numbers = engine(replace(instance, scheme=fitted) if alike else instance)
        lhs = numbers.loss(k)
        return at_most(lhs, bound, setting, k, numbers.doubt + ROUNDING * setting.scale, numbers.how)

    paths = by_engines(check)
    increasing = Ridge("increasing").known_as in bound.schemes  # no 50 digits of steps that differ
    return CheckPaths(paths.sides, None) if increasing else paths


def _checked(lam: Literal["fixed", "increasing"] | None, part: str | None = None) -> Checked:
    strengths = "any fixed strength" if lam is None else f"strengths {lam!r}"
    applies = all_of(regression, covers("with replacement"), _learned_by(lam), steps(1))
    return compared(
        _at_most, f"E L(w_k) <= {{}}, k >= 1, uniform draws, ridge with {strengths}", _drawn(lam), applies, part
    )


_ridge = Theorem(
    "here:ridge",
    "ridge to the previous solution at rate 1/k",
    source="proved in docs/schedules.md (here:ridge)",
    orderings=WITH,
    status="proved here",
    assumptions="jointly realizable tasks, each learned by ridge to the previous solution at a prescribed strength",
)
_ridge(
    "loss",
    ((1 + _LAMBDA / _R_SQUARED) * S / 2 * FRESH).where(*U_IS),
    schemes="ridge",
    conditions=(Condition(lambda s, k: s.radius > 0, "needs a task that is not zero"),),
    title="ridge to the previous solution at rate 1/k, any fixed strength",
    note="A step is one of SGD with eta beta <= 1 on losses of which L_m is at most lambda + R^2 times as much.",
    check=_checked(None),
)
_ridge(
    "loss",
    ((1 + called("max", r"\max", max, 1, logarithm(K))) * S / 2 * FRESH).where(*U_IS),
    "fixed",
    schemes="ridge tuned to k",
    title="ridge to the previous solution at rate log k / k, the fixed strength R^2 max(1, log k)",
    note="The order is reached: a task of norm R among T - 1 tasks of norm 0, T about 2 k / (1 + log k).",
    check=_checked("fixed", "loss, fixed"),
)
_ridge(
    "loss",
    1225 * S / (156 * (K + 1)),
    "increasing",
    schemes="ridge with an increasing strength",
    title="ridge to the previous solution at rate 1/k, increasing strengths",
    note="7.853 S/(k+1) for the strengths 13/3 R^2 (k+1)/(k-t+2).",
    check=_checked("increasing", "loss, increasing"),
)
