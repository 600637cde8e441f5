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
from forgetting.theory.bound import Origin, Quantity, Range, Status
from forgetting.theory.checking import all_of, at_most, covers, paths, projection, regression, setting_of, steps
from forgetting.theory.claim import Check, CheckPaths, Sides
from forgetting.theory.claims_from_bounds import expected_at_most
from forgetting.theory.draws import projected, realizable
from forgetting.theory.expectations import Expected
from forgetting.theory.expression import DISTANCE, MEAN_SQUARE, E, Expression, K, S, parameter, root
from forgetting.theory.instance import Instance
from forgetting.theory.numbering import cite
from forgetting.theory.paper.regression_rates import PRODUCT, average_iterate
from forgetting.theory.statement import Bound, checked, declare_claim, register_bound

_SOURCE = cite("prop:mean_norm")

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

    def check(instance: Instance, numbers: Expected) -> Sides:
        problem, counts = numbers.instance.tasks, _multiplicity(numbers.instance)
        share = counts / float(np.sum(counts))
        radius_sq_mean = float(share @ problem.norms**2)
        setting = replace(setting_of(instance), radius_sq_mean=radius_sq_mean)
        loss = bound.quantity == "loss"
        lhs = float(share @ numbers.task_losses(instance.k)) if loss else numbers.forgetting(instance.k)
        doubted = float(np.sum(share[problem.norms > 0])) if loss else 1.0  # tasks without rows have no errors
        doubt = numbers.doubt * doubted + ROUNDING * radius_sq_mean * setting.dist_sq
        return at_most(lhs, bound, setting, instance.k, doubt, numbers.how)

    def sampled(side: Check) -> Check:
        return lambda instance: side(_sampled(instance))

    made = paths(check)
    assert made.precise is not None
    return CheckPaths(sampled(made.sides), sampled(made.precise))


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


def _bound(
    variant: str, title: str, quantity: Quantity, right: Expression, first: int, *, weights: str = "norm-weighted",
    source: str = _SOURCE, status: Status = "holds as stated", origin: Origin = "statement", note: str = "",
) -> Bound:  # fmt: skip
    return Bound(
        key=f"prop:mean_norm/{quantity}{variant}",
        title=title,
        source=source,
        quantity=quantity,
        orderings=(weights,),
        expression=right,
        range=Range(first),
        status=status,
        origin=origin,
        note=note,
    )


def _words(bound: Bound, reading: str) -> str:
    left = "E L(w_k)" if bound.quantity == "loss" else "E F(k)"
    return f"{left} <= {bound.formula} under {reading} sampling, Rbar = mean_m |X_m|^2, k >= 2"


_WEIGHTED = partial(_with_idle_tasks, weighted=True)
_UNIFORM = partial(_with_idle_tasks, weighted=False)
LOSS = _bound(
    "",
    "average-norm rate",
    "loss",
    2 * DISTANCE * MEAN_SQUARE / root(K, 4),
    2,
    status="holds where proved",
    note="The sketch proves it for sampling by squared norm. Under uniform sampling, which is what the words 'random "
    "ordering with replacement' mean elsewhere, it is false: one task of norm 1 and 9999 of norm 0, k = 5000. The "
    "sketch's A/(2T) should read A/T.",
)
checked(
    LOSS,
    part="loss",
    statement=_words(LOSS, "norm-weighted"),
    paths=_mean_norm(LOSS),
    draw=_WEIGHTED,
    missing=all_of(_APPLIES, covers("norm-weighted")),
)
register_bound(
    _bound(
        "/proof",
        "average-norm rate, from the proof",
        "loss",
        E * DISTANCE * MEAN_SQUARE / (2 * root(K, 4)),
        1,
        origin="proof",
    )
)
RATIO = parameter("weight_ratio", "max_m(|X_m|^2 / (T p_m))", r"\max_m\frac{\Vert X_m\Vert^2}{T p_m}")
register_bound(
    _bound(
        "/weights",
        "universal rate for any weights",
        "loss",
        DISTANCE * RATIO * average_iterate(K),
        1,
        weights="i.i.d.",
        source=_SOURCE + ", extended",
        origin="tightened",
        note="L <= max_m(|X_m|^2/(T p_m)) sum_m p_m f_m, and SGD on the weighted objective. " + PRODUCT,
    )
)
declare_claim(
    label="prop:mean_norm",
    part="loss, uniform",
    statement=_words(LOSS, "uniform"),
    source=_SOURCE,
    status="refuted",
    note="The words 'random ordering with replacement' mean uniform sampling everywhere else. One task of norm 1 among "
    "T = 10^4 that are zero: at k = 5000, E L = 3.03e-5 against 2.38e-5.",
    draw=_UNIFORM,
    missing=all_of(_APPLIES, covers("with replacement")),
    precise=_mean_norm(LOSS).precise,
)(_mean_norm(LOSS).sides)
FORGETTING = _bound(
    "",
    "average-norm rate",
    "forgetting",
    5 * DISTANCE * MEAN_SQUARE / root(K - 1, 4),
    2,
    status="refuted",
    note="Norm-weighted sampling visits the tasks of large norm most, so forgetting sees sum_m |X_m|^4 and not the "
    "mean norm; the step from loss to forgetting is proved for uniform sampling only. Two unit lines at angle 1 among "
    "T = 1000 tasks, the others of norm 1e-6: E F(3) = 0.0218 against 0.0084.",
)
checked(
    FORGETTING,
    part="forgetting",
    statement=_words(FORGETTING, "norm-weighted"),
    paths=_mean_norm(FORGETTING),
    draw=_WEIGHTED,
    missing=all_of(_APPLIES, covers("norm-weighted")),
)
declare_claim(
    label="prop:mean_norm",
    part="forgetting, uniform",
    statement=_words(FORGETTING, "uniform"),
    source=_SOURCE,
    status="refuted",
    note="Two unit lines among T zero tasks: at k proportional to T, E F(k) is a fixed share of the mean squared norm, "
    "and the bound falls like T^(-1/4). Needs T beyond 10^8.",
    draw=_UNIFORM,
    missing=all_of(_APPLIES, covers("with replacement")),
    precise=_mean_norm(FORGETTING).precise,
)(_mean_norm(FORGETTING).sides)
expected_at_most(
    _bound(
        "/corrected",
        "universal rate for any weights",
        "forgetting",
        5 * S / root(K - 1, 4),
        2,
        weights="i.i.d.",
        source=_SOURCE + ", corrected",
        status="corrected",
        note="R^2 in place of Rbar; the first part of lem:in_to_all_sample needs only exchangeable tasks.",
    ),
    part="forgetting, corrected",
    statement="E F(k) <= {}, S = |w_0 - w*|^2 R^2, under independent sampling with any weights, k >= 2",
    draw=projected("any", first=2),
)
register_bound(
    _bound(
        "/corrected/product",
        "universal rate for any weights, product of the proof",
        "forgetting",
        2 * S * average_iterate(K - 1) + S / K,
        2,
        weights="i.i.d.",
        source=_SOURCE + ", corrected",
        status="corrected",
        origin="proof",
        note="R^2 in place of Rbar. " + PRODUCT,
    )
)
