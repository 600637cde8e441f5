"""The moment map of a request, from its geometry, its scheme and the probabilities of its ordering."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from forgetting.core.arrays import Array
from forgetting.dynamics.loop import view_of
from forgetting.expectation.engines.device_map import DeviceMoments
from forgetting.expectation.engines.doubts import doubts_of, sensitivity
from forgetting.expectation.engines.moment_map import Moments
from forgetting.expectation.engines.pairs import EPS, Pair, two_floats
from forgetting.expectation.request import Request
from forgetting.geometry import Geometry
from forgetting.orderings.laws import Independent
from forgetting.schemes import LinearScheme
from forgetting.schemes.linear import linear_gains, precise_gain

__all__ = ["moment_map"]


def moment_map(request: Request, *, twofold: bool = False, homogeneous: bool = False, as_run: bool = False) -> Moments:
    """The moment map of a request, with the probabilities of independent draws (uniform for all other laws).

    Args:
        request: a linear scheme.
        twofold: whether to compute with 31 digits rather than in float64.
        homogeneous: leave out what no w fits.
        as_run: take the bases that `run` computes with.
    """
    geometry, scheme, w0 = request.geometry, request.linear_scheme, request.w0
    source = geometry.precise if twofold else geometry.plain if as_run else geometry.best
    assert source is not None
    gains, vague = _gains(geometry, scheme, source.squares, twofold)
    start, rows, leftover = _by_output(source.start(w0)), source.rows, _by_output(source.leftover)
    # held-out data, however large, leave the scale of what is learned alone
    size = float(np.linalg.norm(start[0])) + float(np.linalg.norm(leftover[0][:, : geometry.rows_learned]))
    unit = 2.0 ** float(np.frexp(size)[1]) if size > 0 else 1.0
    left, right, first = _times(rows, gains, twofold), rows, (start[0] / unit, start[1] / unit)
    if leftover[0].any() and not homogeneous:
        constants, nothing = np.eye(len(leftover[0])), np.zeros(leftover[0].T.shape)
        right = _widened(rows, (-leftover[0].T / unit, -leftover[1].T / unit))
        left = _widened(left, (nothing, nothing))
        first = _widened(first, (constants, 0 * constants))
    if request.averaged:
        left, right, first = _doubled(left), _doubled(right), _doubled(first)
    probability, known = _probability(request)
    moving = sensitivity(geometry, scheme.gains)
    kind = Moments if request.device.host else DeviceMoments
    return kind(
        geometry=geometry,
        twofold=twofold,
        probability=probability,
        left=left,
        right=right,
        squares=source.squares,
        gains=gains,
        solves=scheme.solves_task,
        unexplained=source.unexplained,
        first=first,
        unit=unit,
        doubts=doubts_of(geometry, moving, source, first[0], gains[0], vague, w0, unit, known, twofold, homogeneous),
        averaged=request.averaged,
        watched=_watched(geometry, left, right, twofold) if request.scores_tests else None,
        device=request.device,
    )


def _watched(geometry: Geometry, left: Pair, right: Pair, twofold: bool) -> Pair:
    """b_i^T S_m for each direction i of the held-out data of each task m."""
    tools, learned = two_floats(), geometry.num_learned
    parts: list[Pair] = []
    for m in range(learned):
        own, held = geometry.block(m), geometry.block(learned + m)
        b = right[0][held], right[1][held]
        if not twofold:
            parts.append((b[0] - (b[0] @ left[0][own].T) @ right[0][own], b[1]))
            continue
        along = tools.products(*(part.copy() for part in b), left[0][own].copy(), left[1][own].copy())
        turned = right[0][own].T.copy(), right[1][own].T.copy()
        parts.append(tools.sub(*b, *tools.products(*along, *turned)))
    return np.concatenate([high for high, _ in parts]), np.concatenate([low for _, low in parts])


def _probability(request: Request) -> tuple[Pair, float]:
    """The probability of each distinct task, and a bound on the relative error of all of them."""
    geometry, law, tools = request.geometry, request.law, two_floats()
    weights, known = np.ones(geometry.num_tasks), 0.0
    if isinstance(law, Independent):
        weights, known = law.weights(view_of(request.problem))
    high, low = np.zeros(geometry.num_distinct), np.zeros(geometry.num_distinct)
    total = 0.0, 0.0
    for which, weight in zip(geometry.index.tolist(), weights.tolist(), strict=True):
        high[which], low[which] = tools.add(high[which], low[which], weight, 0.0)
        total = tools.add(*total, weight, 0.0)
    return tools.div(high, low, np.full_like(high, total[0]), np.full_like(high, total[1])), known


def _by_output(pair: Pair) -> Pair:
    """One row an output, also where there is one."""
    return np.atleast_2d(pair[0]), np.atleast_2d(pair[1])


def _widened(pair: Pair, columns: Pair) -> Pair:
    """More columns."""
    return np.hstack([pair[0], columns[0]]), np.hstack([pair[1], columns[1]])


def _doubled(pair: Pair) -> Pair:
    """As many columns of zeros again."""
    return np.hstack([pair[0], 0 * pair[0]]), np.hstack([pair[1], 0 * pair[1]])


def _gains(geometry: Geometry, scheme: LinearScheme, squares: Pair, twofold: bool) -> tuple[Pair, Array]:
    """The gain of each direction, and for each task by how much it can be off."""
    plain = linear_gains(geometry, scheme)
    if twofold:
        learned = geometry.rows_learned
        known = two_floats().decimals((squares[0][:learned], squares[1][:learned]))
        exact = [precise_gain(scheme, square) for square in known]
        if all(gain is not None for gain in exact):
            gains = two_floats().from_decimals([*exact, *[Decimal(0)] * (len(plain) - learned)])
            return gains, np.full(geometry.num_distinct, 4 * two_floats().UNIT)
    off = (8 + 4 * geometry.conditions * sensitivity(geometry, scheme.gains)) * EPS
    return (plain, np.zeros_like(plain)), np.zeros_like(off) if scheme.solves_task else off


def _times(rows: Pair, factors: Pair, twofold: bool) -> Pair:
    """Each row times its factor."""
    if not twofold:
        return rows[0] * factors[0][:, None], np.zeros(rows[1].shape)  # takes no memory until it is written to
    return two_floats().mul(*rows, factors[0][:, None], factors[1][:, None])  # type: ignore[no-any-return]
