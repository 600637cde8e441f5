"""The rates of the paper for continual regression, and norm-weighted sampling."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from forgetting._arrays import Array
from forgetting.bounds import get as get_bound
from forgetting.claims.common import (
    ROUNDING,
    Check,
    all_of,
    bounded,
    covers,
    engines,
    projection,
    regression,
    setting_of,
    steps,
)
from forgetting.claims.draws import permuted, projected, realizable
from forgetting.claims.instance import Instance
from forgetting.claims.registry import PAPER, Claim, Sides, register
from forgetting.orderings import NormWeighted, WithReplacement
from forgetting.tasks import families

_EXPECTED = {"loss": "E L(w_k)", "forgetting": "E F(k)"}
_SLIPS = {
    ("thm:random_convergence_rate", "forgetting"): "The appendix prints w_t for w_k in F(k).",
    (
        "thm:cl_by_sgd_wor",
        "loss",
    ): "The proof quotes lem:wor_last_before_stab with e for its e/2, which only loosens it.",
}

for _label, _key, _words, _draw, _parts in (
    (
        "thm:random_convergence_rate",
        "thm:random_convergence_rate",
        "with replacement, k >= 3",
        projected(first=3),
        ("loss", "forgetting"),
    ),
    (
        "thm:cl_by_sgd_main",
        "thm:cl_by_sgd_main",
        "with replacement, k >= 2",
        projected(first=2),
        ("loss", "forgetting"),
    ),
    ("thm:cl_by_sgd_wor", "thm:cl_by_sgd_wor", "without replacement, 2 <= k <= T", permuted(2), ("loss", "forgetting")),
):
    for _part in _parts:
        _bound = get_bound(f"{_key}/{_part}")
        register(
            Claim(
                label=_label,
                part=_part,
                statement=f"{_EXPECTED[_part]} <= {_bound.formula} ({_words})",
                source=f"{PAPER}, Theorem {_label}",
                status=(
                    "gap in the printed proof"
                    if (_label, _part) == ("thm:random_convergence_rate", "forgetting")
                    else "holds on all tried"
                ),
                note=" ".join(filter(None, (_bound.note, _SLIPS.get((_label, _part))))),
                draw=_draw,
                **bounded(_bound.key, _part),
            )
        )


# prop:mean_norm -------------------------------------------------------------------------------------------------------


def _multiplicity(instance: Instance) -> Array:
    """How many tasks each one stands for: `extras["multiplicity"]`, which may say 10^12, or 1."""
    given = instance.extras.get("multiplicity")
    return np.ones(instance.problem.num_tasks) if given is None else np.asarray(given, dtype=np.float64)


def _sampled(instance: Instance) -> Instance:
    """The same with the probabilities that sampling among all T tasks gives to those that are written down."""
    weights = _multiplicity(instance)
    if isinstance(instance.ordering, NormWeighted):
        weights = weights * instance.problem.norms**2
    return replace(instance, ordering=WithReplacement(weights))


def _mean_norm(quantity: str, key: str) -> dict[str, Any]:
    bound = get_bound(key)

    def check(instance: Instance, numbers: Any) -> Sides:
        one = numbers.instance
        share = _multiplicity(one) / float(np.sum(_multiplicity(one)))
        setting = setting_of(instance)
        radius_sq_mean = float(share @ one.problem.norms**2)
        rhs = bound.compute(replace(setting, radius_sq_mean=radius_sq_mean), instance.k)
        lhs = share @ numbers.task_losses(instance.k) if quantity == "loss" else numbers.forgetting(instance.k)
        return Sides(lhs, rhs, numbers.doubt + ROUNDING * radius_sq_mean * setting.dist_sq, how=numbers.how)

    def sampled(side: Check) -> Check:
        return lambda instance: side(_sampled(instance))

    return {name: sampled(side) for name, side in engines(check).items()}


def _with_idle_tasks(rng: np.random.Generator, index: int, *, weighted: bool) -> Instance:
    """Few tasks that matter among very many that hardly do."""
    ordering = NormWeighted() if weighted else WithReplacement()
    if index % 3 == 2:
        case = projected("norm-weighted" if weighted else "uniform", first=2)(rng, index)
        return case
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


_MEAN: dict[str, Any] = {"source": f"{PAPER}, Claim prop:mean_norm", "label": "prop:mean_norm"}


def _counted(instance: Instance) -> str | None:
    counts = _multiplicity(instance)
    if counts.shape != (instance.problem.num_tasks,) or not (counts >= 1).all():
        return "extras['multiplicity'] must have one number for each task, at least 1"
    return None


_ASKED = all_of(regression, projection, steps(2), _counted)
for _quantity, _reading, _tag, _status, _note in (
    (
        "loss",
        "norm-weighted",
        "norm-weighted",
        "holds where proved",
        "This is what the sketch proves; its A/(2T) should read A/T.",
    ),
    (
        "loss",
        "uniform",
        "with replacement",
        "refuted",
        "The words 'random ordering with replacement' mean uniform sampling everywhere else. One task of norm 1 among "
        "T = 10^4 that are zero: at k = 5000, E L = 3.03e-5 against 2.38e-5.",
    ),
    (
        "forgetting",
        "norm-weighted",
        "norm-weighted",
        "refuted",
        "Forgetting is averaged over visits, and norm-weighted sampling visits the large tasks: two unit lines at "
        "angle 1 among T = 1000 tasks, the others of norm 1e-6, have E F(3) = 0.0218 against 0.0084.",
    ),
    (
        "forgetting",
        "uniform",
        "with replacement",
        "refuted",
        "Two unit lines among T zero tasks: at k proportional to T, E F(k) is a fixed share of the mean squared norm, "
        "and the bound falls like T^(-1/4). Needs T beyond 10^8.",
    ),
):
    register(
        Claim(
            part=_quantity if _reading == "norm-weighted" else f"{_quantity}, {_reading}",
            statement=f"{_EXPECTED[_quantity]} <= {get_bound(f'prop:mean_norm/{_quantity}').formula} under "
            f"{_reading} sampling, Rbar = mean_m |X_m|^2, k >= 2",
            status=_status,  # type: ignore[arg-type]
            note=_note + " extras['multiplicity'] says how many tasks each one stands for.",
            draw=partial(_with_idle_tasks, weighted=_reading == "norm-weighted"),
            missing=all_of(_ASKED, covers(_tag)),
            **_MEAN,
            **_mean_norm(_quantity, f"prop:mean_norm/{_quantity}"),
        )
    )
register(
    Claim(
        part="forgetting, corrected",
        statement="E F(k) <= 5 |w_0 - w*|^2 R^2 / (k-1)^(1/4) under independent sampling with any weights, k >= 2",
        status="corrected",
        note=get_bound("prop:mean_norm/forgetting/corrected").note,
        draw=projected("any", first=2),
        **_MEAN,
        **bounded("prop:mean_norm/forgetting/corrected", "forgetting"),
    )
)
