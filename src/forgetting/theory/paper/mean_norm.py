"""Appendix G: the average-norm rate of norm-weighted sampling, and what is false about it.

`extras["multiplicity"]` of an instance says how many tasks each task stands for.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from forgetting.core.arrays import Array
from forgetting.core.numerical import ROUNDING
from forgetting.dynamics.space import view_of
from forgetting.orderings import NormWeighted, WithReplacement
from forgetting.orderings.laws import Independent
from forgetting.tasks import families
from forgetting.theory.bound import Bound
from forgetting.theory.checking import (
    all_of,
    at_most,
    by_engines,
    covers,
    projection,
    regression,
    setting_of,
    steps,
)
from forgetting.theory.claim import declare_claim
from forgetting.theory.draws import projected, realizable
from forgetting.theory.expectations import Engine
from forgetting.theory.expression import DISTANCE, MEAN_SQUARE, E, K, S, parameter, root
from forgetting.theory.instance import Instance
from forgetting.theory.numbering import cite
from forgetting.theory.paper.regression_rates import PRODUCT, average_iterate
from forgetting.theory.statement import NAMES, Range
from forgetting.theory.theorem import Checked, Theorem, compared, expected
from forgetting.theory.verdict import CheckPaths, Sides

# Sampling among very many tasks ---------------------------------------------------------------------------------------


def _multiplicity(instance: Instance) -> Array:
    """The number of tasks that each task stands for: `extras["multiplicity"]`, which may say 10^12, or 1."""
    given = instance.extras.get("multiplicity")
    return np.ones(instance.tasks.num_tasks) if given is None else np.asarray(given, dtype=np.float64)


def _sampled(instance: Instance) -> Instance:
    """The instance with the probabilities of its tasks when all T tasks are sampled."""
    assert instance.ordering is not None
    law = instance.ordering.law
    assert isinstance(law, Independent)
    share = law.probabilities(view_of(instance.tasks))
    return replace(instance, ordering=WithReplacement(_multiplicity(instance) * share))


def _mean_norm(bound: Bound) -> CheckPaths:
    """Both sides of the bound, with the mean squared norm of all tasks that the instance stands for."""

    def check(engine: Engine, given: Instance) -> Sides:
        instance, counts = _sampled(given), _multiplicity(given)
        numbers, problem, share = engine(instance), instance.tasks, counts / float(np.sum(counts))
        radius_sq_mean = float(share @ problem.norms**2)
        setting = replace(setting_of(instance), radius_sq_mean=radius_sq_mean)
        loss = bound.quantity == "loss"
        lhs = float(share @ numbers.task_losses(instance.k)) if loss else numbers.forgetting(instance.k)
        doubted = float(np.sum(share[problem.norms > 0])) if loss else 1.0  # tasks without rows have no errors
        doubt = numbers.doubt * doubted + ROUNDING * radius_sq_mean * setting.dist_sq
        return at_most(lhs, bound, setting, instance.k, doubt, numbers.how)

    return by_engines(check)


def _with_idle_tasks(rng: np.random.Generator, index: int, *, weighted: bool) -> Instance:
    """An instance with few tasks that matter among very many that hardly do."""
    ordering = NormWeighted() if weighted else WithReplacement()
    if index % 3 == 2:
        return projected("norm-weighted" if weighted else "uniform", first=2)(rng, index)
    rest = 10.0 ** rng.uniform(1, 12)
    small = 0.0 if not weighted else 10.0 ** -rng.uniform(2, 8)
    if index % 3 == 0:
        lines = families.two_lines(rng.uniform(0.3, 1.4))
        matrices = [np.asarray(lines.task(0)[0]), np.asarray(lines.task(1)[0]), small * np.array([[1.0, 0.0]])]
        tasks, counts = realizable(matrices, lines.w_star), np.array([1.0, 1.0, np.ceil(rest)])
    else:
        tasks = realizable([np.array([[1.0, 0.0]]), small * np.array([[0.0, 1.0]])], np.array([1.0, 0.0]))
        counts = np.array([1.0, np.ceil(rest)])
    k = int(max(2, counts.sum() * 10.0 ** rng.uniform(-0.7, 0.7))) if not weighted else int(rng.integers(2, 8))
    return Instance(tasks, ordering, k, extras={"multiplicity": counts})


def _counted(instance: Instance) -> str | None:
    counts = _multiplicity(instance)
    if counts.shape != (instance.tasks.num_tasks,) or not (counts >= 1).all():
        return "extras['multiplicity'] must have one number for each task, at least 1"
    return None


_APPLIES = all_of(regression, projection, steps(2), _counted)

# prop:mean_norm -------------------------------------------------------------------------------------------------------


_LABEL = "prop:mean_norm"
_READ = "under {} sampling, Rbar = mean_m |X_m|^2, k >= 2"
_norm_weighted = Theorem(_LABEL, "average-norm rate", orderings="norm-weighted")
_any_weights = Theorem(_LABEL, "universal rate for any weights", orderings="i.i.d.")


def _checked(quantity: str) -> Checked:
    statement = f"{NAMES[quantity]} <= {{}} {_READ.format('norm-weighted')}"
    draw = partial(_with_idle_tasks, weighted=True)
    return compared(_mean_norm, statement, draw, all_of(_APPLIES, covers("norm-weighted")), quantity)


def _under_uniform(bound: Bound, note: str) -> None:
    """The bound for uniform sampling, which is what the words of the paper mean."""
    declare_claim(
        label=_LABEL,
        part=f"{bound.quantity}, uniform",
        statement=f"{NAMES[bound.quantity]} <= {bound.formula} {_READ.format('uniform')}",
        status="refuted",
        note=note,
        draw=partial(_with_idle_tasks, weighted=False),
        missing=all_of(_APPLIES, covers("with replacement")),
    )(_mean_norm(bound))


LOSS = _norm_weighted(
    "loss",
    2 * DISTANCE * MEAN_SQUARE / root(K, 4),
    range=Range(2),
    status="holds where proved",
    note="The sketch proves it for sampling by squared norm. Under uniform sampling, which is what the words 'random "
    "ordering with replacement' mean elsewhere, it is false: one task of norm 1 and 9999 of norm 0, k = 5000. The "
    "sketch's A/(2T) should read A/T.",
    check=_checked("loss"),
)
_norm_weighted("loss", E * DISTANCE * MEAN_SQUARE / (2 * root(K, 4)), "proof")
RATIO = parameter("weight_ratio", "max_m(|X_m|^2 / (T p_m))", r"\max_m\frac{\Vert X_m\Vert^2}{T p_m}")
_any_weights(
    "loss",
    DISTANCE * RATIO * average_iterate(K),
    "weights",
    source=f"{cite(_LABEL)}, extended",
    origin="tightened",
    note="L <= max_m(|X_m|^2/(T p_m)) sum_m p_m f_m, and SGD on the weighted objective. " + PRODUCT,
)
_under_uniform(
    LOSS,
    "The words 'random ordering with replacement' mean uniform sampling everywhere else. One task of norm 1 among "
    "T = 10^4 that are zero: at k = 5000, E L = 3.03e-5 against 2.38e-5.",
)
FORGETTING = _norm_weighted(
    "forgetting",
    5 * DISTANCE * MEAN_SQUARE / root(K - 1, 4),
    range=Range(2),
    status="refuted",
    note="Norm-weighted sampling visits the tasks of large norm most, so forgetting sees sum_m |X_m|^4 and not the "
    "mean norm; the step from loss to forgetting is proved for uniform sampling only. Two unit lines at angle 1 among "
    "T = 1000 tasks, the others of norm 1e-6: E F(3) = 0.0218 against 0.0084.",
    check=_checked("forgetting"),
)
_under_uniform(
    FORGETTING,
    "Two unit lines among T zero tasks: at k proportional to T, E F(k) is a fixed share of the mean squared norm, and "
    "the bound falls like T^(-1/4). Needs T beyond 10^8.",
)
_any_weights(
    "forgetting",
    5 * S / root(K - 1, 4),
    "corrected",
    range=Range(2),
    source=f"{cite(_LABEL)}, corrected",
    status="corrected",
    note="R^2 in place of Rbar; the first part of lem:in_to_all_sample needs only exchangeable tasks.",
    check=expected(
        projected("any", first=2),
        "E F(k) <= {}, S = |w_0 - w*|^2 R^2, under independent sampling with any weights, k >= 2",
    ),
)
_any_weights(
    "forgetting",
    2 * S * average_iterate(K - 1) + S / K,
    "corrected/product",
    range=Range(2),
    source=f"{cite(_LABEL)}, corrected",
    status="corrected",
    note="R^2 in place of Rbar. " + PRODUCT,
)
