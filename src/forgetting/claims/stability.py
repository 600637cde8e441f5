"""SGD without replacement, and the stability arguments that pass from the next task to the tasks that were seen.

T in the paper is k here, and n there is T here. f-hat_(0:k) is the mean of f over the k tasks that were learned and the
next one. Its statements drop a factor 1/(2 - eta beta) that their proofs end with.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from forgetting._arrays import Array, IntArray
from forgetting.bounds import get as get_bound
from forgetting.claims.common import ROUNDING, all_of, asked, covers, engines, least_squares, settling, steps
from forgetting.claims.draws import descents, permuted, with_beta
from forgetting.claims.exact import MOST_STATES, all_orders, as_least_squares, orders_needed, start_noise
from forgetting.claims.instance import Instance
from forgetting.claims.lemmas_sgd import against_average, dist_sq, greedy, last_iterate, setting, unit
from forgetting.claims.registry import PAPER, Claim, Sides, declare, register
from forgetting.claims.sampled import RUNS, losses_after, runs_for, width
from forgetting.dynamics.loop import view_of
from forgetting.orderings import WithoutReplacement
from forgetting.schemes import SGD

_PERMUTED = covers("without replacement")
_LAST = "thm:sgd_last_iterate_main/objective"
_DROPPED = "The proof ends with a further factor 1/(2 - eta beta), at most 1 for eta beta <= 1"


def _seen_next(numbers: Any, k: int) -> tuple[Any, Any, float, float]:
    """E f-hat_(0:k)(w_k) and E f(w_k; pi_k), and how far lhs - 2 times that, and lhs, may be off."""
    seen, off_seen = asked(numbers, "in_sample", k)
    following, off_next = asked(numbers, "next_loss", k)
    part = off_seen * k / (k + 1)
    return (k * seen + following) / (k + 1), following, part + 2 * off_next, part + off_next / (k + 1)


# lem:wor_last_before_stab ---------------------------------------------------------------------------------------------


for _part, _statement, _sides in (
    ("average", "E f(w_k; pi_k) <= (e k)^(x(1-x/4)) E mean_(t<=k) f(w_t; pi_t)", engines(against_average, sgd=True)),
    ("distance", "E f(w_k; pi_k) <= e |w_0 - w*|^2 / (2 eta (2-x) k^((1-x/2)^2))", last_iterate(_LAST)),
):
    register(
        Claim(
            label="lem:wor_last_before_stab",
            part=_part,
            statement=f"{_statement}, x = eta beta < 2, without replacement, 1 <= k <= T-1",
            source=f"{PAPER}, Lemma lem:wor_last_before_stab",
            draw=permuted(1, 1, projections=False),
            missing=all_of(least_squares(), _PERMUTED, steps(1, last=1)),
            **_sides,
        )
    )

# thm:wor_sgd_last_iterate_main ----------------------------------------------------------------------------------------


def _seen_and_next(key: str) -> dict[str, Any]:
    bound = get_bound(key)

    def check(instance: Instance, numbers: Any) -> Sides:
        rhs, doubt = bound.value(setting(instance), instance.k), numbers.doubt + ROUNDING * unit(instance)
        lhs, _, _, off = _seen_next(numbers, instance.k)
        return Sides(lhs, rhs, doubt + off, how=numbers.how)

    return engines(check, sgd=True)


def _logarithmic(instance: Instance) -> Instance:
    """The same with eta = 1/(beta log k)."""
    if instance.k < 2:
        return instance
    return replace(instance, scheme=SGD(1 / (instance.problem.radius**2 * math.log(instance.k)), "loss"))


def _log_step(instance: Instance) -> str | None:
    x = with_beta(as_least_squares(instance))[0]
    if instance.k >= 2 and math.isclose(x * math.log(instance.k), 1, rel_tol=1e-12):
        return None
    return "is for eta = 1/(beta log k)"


for _part, _key, _missing, _settle, _status, _note in (
    (
        "general",
        "",
        least_squares(),
        None,
        "gap in the printed proof",
        f"{_DROPPED}; above, the smaller of what the proof gives and the trivial beta D^2/2 stays below half of the "
        "statement (by a scan over eta beta and over k up to 10^7), so that it holds there too.",
    ),
    ("eta = 1/beta", "/greedy", least_squares(1 - 1e-9, 1, closed=True), greedy, "holds on all tried", ""),
    (
        "eta = 1/(beta log T)",
        "/log",
        all_of(least_squares(), _log_step),
        _logarithmic,
        "gap in the printed proof",
        get_bound("thm:wor_sgd_last_iterate_main/objective/log").note,
    ),
    (
        "corrected",
        "/corrected",
        least_squares(),
        None,
        "corrected",
        "With the factor 1/(2 - eta beta) of the proof of lem:wor_generalization.",
    ),
):
    _bound = get_bound(f"thm:wor_sgd_last_iterate_main/objective{_key}")
    register(
        Claim(
            label="thm:wor_sgd_last_iterate_main",
            part=_part,
            statement=f"E f-hat_(0:k)(w_k) <= {_bound.formula}, without replacement, 2 <= k <= T-1",
            source=f"{PAPER}, Theorem thm:wor_sgd_last_iterate_main",
            status=_status,  # type: ignore[arg-type]
            note=_note,
            draw=permuted(2, 1, projections=False),
            missing=all_of(_missing, _PERMUTED, steps(2, last=1)),
            **settling(_settle),
            **_seen_and_next(_bound.key),
        )
    )

# lem:wor_generalization and lem:wr_stability --------------------------------------------------------------------------


def _stability(instance: Instance, factor: float) -> float:
    """4 beta^2 eta |w_0 - w*|^2 times a factor."""
    x, beta = with_beta(instance)
    return 4 * beta * x * dist_sq(instance) * factor


def _generalization(corrected: bool) -> dict[str, Any]:
    def check(instance: Instance, numbers: Any) -> Sides:
        x, k = with_beta(instance)[0], instance.k
        factor = 1 / ((2 - x) * (k + 1)) if corrected else 1 / (k + 1)
        doubt = 2 * numbers.doubt + ROUNDING * unit(instance)
        lhs, following, off, _ = _seen_next(numbers, k)
        return Sides(lhs, 2 * following + _stability(instance, factor), doubt + off, how=numbers.how)

    return engines(check, sgd=True)


def _whole_pass(instance: Instance, numbers: Any) -> Sides:
    x, k = with_beta(instance)[0], instance.k
    rhs = 2 * numbers.next_loss(k - 1) + _stability(instance, 1 / (4 * (2 - x) * k))
    return Sides(numbers.in_sample(k), rhs, 2 * numbers.doubt + ROUNDING * unit(instance), how=numbers.how)


_UP_TO_ONE, _ABOVE_ONE = least_squares(0, 1, closed=True), least_squares(1, 2, closed=True)


def _small_step(instance: Instance) -> Instance:
    """The same with eta beta <= 1."""
    x, beta = with_beta(instance)
    return instance if x <= 1 else replace(instance, scheme=SGD(x / 2 / beta, "loss"))


def _large_step(instance: Instance) -> Instance:
    """The same with 1 < eta beta <= 2, the end of the range now and then."""
    x, beta = with_beta(instance)
    x = 2.0 if x > 1.99 else x if x > 1 else 1 + x
    return replace(instance, scheme=SGD(x / beta * (1 - 1e-15), "loss"))


for _part, _missing, _settle, _corrected, _status, _note in (
    ("eta beta <= 1", _UP_TO_ONE, _small_step, False, "holds where proved", f"{_DROPPED}."),
    (
        "eta beta > 1",
        _ABOVE_ONE,
        _large_step,
        False,
        "gap in the printed proof",
        f"{_DROPPED} and unbounded as eta beta tends to 2: not proved here.",
    ),
    ("corrected", least_squares(), None, True, "corrected", "With the factor 1/(2 - eta beta), as the proof has it."),
):
    register(
        Claim(
            label="lem:wor_generalization",
            part=_part,
            statement="E f-hat_(0:k)(w_k) <= 2 E f(w_k; pi_k) + 4 beta^2 eta |w_0 - w*|^2 / (k+1)"
            + (" / (2 - eta beta)" if _corrected else "")
            + ", without replacement, 1 <= k <= T-1",
            source=f"{PAPER}, Lemma lem:wor_generalization",
            status=_status,  # type: ignore[arg-type]
            note=_note,
            draw=permuted(1, 1, projections=False),
            missing=all_of(_missing, _PERMUTED, steps(1, last=1)),
            **settling(_settle),
            **_generalization(_corrected),
        )
    )
register(
    Claim(
        label="lem:wor_generalization",
        part="T = n",
        statement="after the whole pass, k = T: E mean_m f(w_T; m) <= 2 E f(w_(T-1); pi_(T-1)) + beta^2 eta "
        "|w_0 - w*|^2 / ((2 - eta beta) T)",
        source=f"{PAPER}, Lemma lem:wor_generalization, completed",
        status="corrected",
        note="The lemma says 1 <= T <= n, but at T = n there is no next task pi_T, so the printed statement means "
        "nothing there. This one leaves a task out: steps do not expand distances, and the run that skips task i has "
        "never seen it.",
        draw=permuted(1, 0, projections=False),
        missing=all_of(least_squares(), _PERMUTED, lambda i: None if i.k == i.problem.num_tasks else "is for k = T"),
        settle=lambda i: replace(i, k=i.problem.num_tasks),
        **engines(_whole_pass, sgd=True),
    )
)


def _independent(corrected: bool) -> dict[str, Any]:
    def check(instance: Instance, numbers: Any) -> Sides:
        x, k = with_beta(instance)[0], instance.k
        factor = 1 / ((2 - x) * k) if corrected else 1 / k
        rhs = 2 * numbers.next_loss(k) + _stability(instance, factor)
        return Sides(numbers.in_sample(k), rhs, 2 * numbers.doubt + ROUNDING * unit(instance), how=numbers.how)

    return engines(check, sgd=True)


for _part, _missing, _settle, _corrected, _status, _note in (
    ("eta beta <= 1", _UP_TO_ONE, _small_step, False, "holds where proved", f"{_DROPPED}. A 12 in the proof is an 8."),
    ("eta beta > 1", _ABOVE_ONE, _large_step, False, "gap in the printed proof", f"{_DROPPED}: not proved here."),
    ("corrected", least_squares(), None, True, "corrected", "With the factor 1/(2 - eta beta), as the proof has it."),
):
    register(
        Claim(
            label="lem:wr_stability",
            part=_part,
            statement="E mean_(t<k) f(w_k; i_t) <= 2 E f(w_k) + 4 beta^2 eta |w_0 - w*|^2 / k"
            + (" / (2 - eta beta)" if _corrected else "")
            + ", with replacement, any weights, k >= 1",
            source=f"{PAPER}, Lemma lem:wr_stability",
            status=_status,  # type: ignore[arg-type]
            note=_note,
            draw=descents(),
            missing=all_of(_missing, covers("i.i.d."), steps(1)),
            **settling(_settle),
            **_independent(_corrected),
        )
    )

# Swapped permutations -------------------------------------------------------------------------------------------------


def _permutations(instance: Instance, every: int) -> tuple[IntArray, IntArray, str]:
    """Permutations, each with every position from 0 to `every`, or as many random ones where these are too many."""
    tasks = int(instance.problem.num_tasks)
    if orders_needed(instance, tasks) <= MOST_STATES:
        orders = all_orders(instance, tasks)
        positions = np.tile(np.arange(every), len(orders))
        return np.repeat(orders, every, axis=0), positions, f"all {len(orders)} permutations"
    rng, runs = np.random.default_rng(0), runs_for(tasks, RUNS)
    orders = WithoutReplacement().batch(view_of(instance.problem), tasks, runs, rng)
    return orders, rng.integers(every, size=runs), f"{runs} random permutations"


def _swapped(orders: IntArray, i: IntArray, t: int) -> IntArray:
    """Each order with what stands at its own position i and what stands at t swapped."""
    other, rows = orders.copy(), np.arange(len(orders))
    other[rows, i], other[:, t] = orders[:, t], orders[rows, i]
    return other


def _equal(instance: Instance, lhs: Array, rhs: Array, how: str) -> Sides:
    """Both sides as means over permutations; of random ones, the difference is known up to its interval."""
    scale, doubt = unit(instance), 0.0
    if "random" in how:
        doubt = width(lhs - rhs, (-scale / 2, scale / 2))  # a difference of two losses, at most beta |w_0 - w*|^2 / 2
    noise = start_noise(instance)
    return Sides(np.mean(lhs), np.mean(rhs), doubt + ROUNDING * scale + noise, scale + noise, how)


def _swaps(rng: np.random.Generator, index: int) -> Instance:
    case = permuted(1, 1, projections=False, clones=6, distinct=5)(rng, index)
    while case.problem.num_tasks > 6:
        case = permuted(1, 1, projections=False, clones=6, distinct=5)(rng, 60)
    i, t = int(rng.integers(case.k + 1)), int(rng.integers(case.k, case.problem.num_tasks))
    return replace(case, extras={"i": i, "t": t})


_SWAP: dict[str, Any] = {"kind": "equality", "draw": _swaps}


@declare(
    label="lem:permutation_equiv",
    statement="E f(w_k; pi_i) = E f(w_k of pi with i and t swapped; what stands at i then), i <= k <= t",
    source=f"{PAPER}, Lemma lem:permutation_equiv",
    needs=("i", "t"),
    note="Positions i and t count from 0. The order of i, k and t is not needed: swapping is a bijection.",
    missing=all_of(
        least_squares(),
        _PERMUTED,
        lambda e: (
            None
            if 0 <= e.extra("i") <= e.k <= e.extra("t") < e.problem.num_tasks
            else "needs i <= k <= t < T, counted from 0"
        ),
    ),
    **_SWAP,
)
def _(instance: Instance) -> Sides:
    one = as_least_squares(instance)
    i, t, k = int(one.extra("i")), int(one.extra("t")), one.k
    orders, _, how = _permutations(one, 1)
    swapped = _swapped(orders, np.full(len(orders), i), t)
    lhs = losses_after(one, orders[:, :k], orders[:, i])
    return _equal(one, lhs, losses_after(one, swapped[:, :k], swapped[:, i]), how)


@declare(
    label="lem:stab_gen_wor",
    statement="E [f(w_k; pi_k) - mean_(i<k) f(w_k; pi_i)] = mean_(i<k) E [f(w_k; pi_k) - f(w_k of pi with i and k "
    "swapped; pi_k)], without replacement, 1 <= k <= T-1",
    source=f"{PAPER}, Lemma lem:stab_gen_wor",
    note="Read for 1 <= k <= T-1: 'for all t' includes no next task at t = T.",
    missing=all_of(least_squares(), _PERMUTED, steps(1, last=1)),
    **_SWAP,
)
def _(instance: Instance) -> Sides:
    one = as_least_squares(instance)
    k = one.k
    orders, i, how = _permutations(one, k)
    following = losses_after(one, orders[:, :k], orders[:, k])
    seen = losses_after(one, orders[:, :k], orders[np.arange(len(i)), i])
    moved = losses_after(one, _swapped(orders, i, k)[:, :k], orders[:, k])
    return _equal(one, following - seen, following - moved, how)
