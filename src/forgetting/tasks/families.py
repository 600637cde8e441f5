"""Named collections of tasks. All are realizable, with |w*| = 1 unless the docstring says otherwise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from forgetting.core.arrays import (
    Array,
    Seed,
    any_array,
    as_count,
    as_flag,
    as_kind,
    as_number,
    as_vector,
    real_array,
    seed_from,
)
from forgetting.core.memory import require_memory
from forgetting.core.names import only
from forgetting.errors import InvalidInputError
from forgetting.tasks import levels as in_levels
from forgetting.tasks.classification import ClassificationTasks
from forgetting.tasks.regression import RegressionTasks
from forgetting.tasks.worst_tasks import WORST_PAIRS

__all__ = [
    "back_and_forth",
    "catastrophic",
    "equiangular",
    "gaussian",
    "greedy_failure",
    "heterogeneous_norms",
    "key_value",
    "levels",
    "orthogonal",
    "principal_angles",
    "rank_one",
    "repeated",
    "separable",
    "two_lines",
    "worst_pair",
]
__dir__ = only(__all__)


def gaussian(
    T: int, d: int, rank: int | Sequence[int] = 1, seed: Seed = 0, *, condition: float | None = None
) -> RegressionTasks:
    """T tasks with independent Gaussian rows and a random unit solution: the ordinary case.

    Shows that forgetting under a random order is far below every worst-case bound. `rank` is a number for all tasks or
    a number for each; `condition` spreads the singular values of every task evenly on a log scale from 1 to
    1 / condition.

    >>> tasks = gaussian(T=4, d=10, rank=[1, 2, 3, 2], seed=0)
    >>> tasks.ranks.tolist(), tasks.rank_avg
    ([1, 2, 3, 2], 2.0)
    """
    T, d = as_count(T, "T", least=1), as_count(d, "d", least=1)
    _require_room(T, T, d)
    shape = any_array(rank, "rank").shape
    if shape not in ((), (T,)):
        raise InvalidInputError(f"rank: expected one number or one for each of {T} tasks, got shape {shape}")
    ranks = np.broadcast_to(np.asarray(rank), (T,))
    for task, r in enumerate(ranks):
        if as_count(r, f"rank of task {task}") > d or r < 1:
            raise InvalidInputError(f"rank of task {task} is {r}; it must be between 1 and d = {d}")
    _require_room(T, int(ranks.sum()), d)
    rng = np.random.default_rng(seed_from(seed))
    matrices = [rng.standard_normal((int(r), d)) for r in ranks]
    if condition is not None:
        spread = as_number(condition, "condition", least=1)
        for task, matrix in enumerate(matrices):
            left, _, right = np.linalg.svd(matrix, full_matrices=False)
            matrices[task] = (left * np.geomspace(1, 1 / spread, len(matrix))) @ right
    w_star = rng.standard_normal(d)
    return _realizable(matrices, w_star / np.linalg.norm(w_star))


def rank_one(T: int, d: int, seed: Seed = 0) -> RegressionTasks:
    """T tasks of one unit row each, uniform on the sphere: the classical Kaczmarz setting.

    Shows that a step of any scheme on a rank-one task is normalised SGD.

    >>> rank_one(T=5, d=3).radius
    1.0
    """
    T, d = as_count(T, "T", least=1), as_count(d, "d", least=1)
    _require_room(T, T, d)
    rng = np.random.default_rng(seed_from(seed))
    rows = rng.standard_normal((T, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    w_star = rng.standard_normal(d)
    return _realizable([row[None] for row in rows], w_star / np.linalg.norm(w_star))


def two_lines(theta: float, w_star: Any = None) -> RegressionTasks:
    """X_1 = [0, 1] and X_2 = [-sin theta, cos theta]: rank-one tasks in the plane whose solutions meet at angle theta.

    With w* halfway between the lines (the default), this is the worst pair of subspaces for a random order:
    E L(w_k) = 1/4 sin^2 theta (1 + cos theta)/2 ((1 + cos^2 theta)/2)^(k-1). With w* = (1, 0) and sin^2 theta = 1/k,
    alternating, forgetting is (1/4k)(1 - 1/k)^(k-1) (Evron et al. 2022, Theorem 10).

    >>> tasks = two_lines(0.5)
    >>> tasks.num_tasks, tasks.radius
    (2, 1.0)
    """
    theta = as_number(theta, "theta")
    solution = (np.cos(theta / 2), np.sin(theta / 2)) if w_star is None else w_star
    return _realizable([_line(0.0), _line(theta)], as_vector(solution, 2, "w_star"))


def equiangular(T: int, share: float) -> RegressionTasks:
    """T tasks of one unit row with the same angle between all of them, and the same angle to w*: <x_m, w*>^2 = share.

    <x_m, x_n> = share - (1 - share)/(T - 1). At T = 0.407 k tasks and the best share k E L(w_k) tends to 0.2175 with
    replacement, more than any two tasks have (0.1839). With T = k + 1 and share 1/(2T - 1) every order has the same
    next loss, (2T)^(2T-2) / (2 (2T-1)^(2T-1)), about e/(4 (k+1)): a single pass in random order cannot promise less
    (docs/one-over-k.md). Cost: T^2 numbers.

    >>> tasks = equiangular(3, share=0.25)
    >>> rows = np.vstack([tasks.task(m)[0] for m in range(3)])
    >>> (rows @ rows.T).round(3).tolist()
    [[1.0, -0.125, -0.125], [-0.125, 1.0, -0.125], [-0.125, -0.125, 1.0]]
    """
    return in_levels.equiangular(T, share).tasks()


def levels(
    rates: Sequence[float] | None = None,
    sizes: Sequence[int] | None = None,
    clones: Sequence[int] | None = None,
    *,
    k: int,
) -> RegressionTasks:
    """The worst tasks that are known for many steps k with replacement: lines between levels of coordinates.

    The lines of an edge join one level to the next, larger one, and w* is the only coordinate of the first level. A
    random step moves the error on to faster levels, where it is seen as loss at the time k: k E L(w_k) is 0.2218 at
    k = 1000 and tends to 0.2250 with three levels, to 0.2270 with many; no tasks have more than 0.2718
    (docs/one-over-k.md). `fg.worstcase.frontier("loss")` has their exact values.

    Args:
        rates: for each level but the last, 2 k times the mean square of a random row on one of its coordinates;
            left out, three levels with nearly the largest E L(w_k).
        sizes: with `rates`, the number of coordinates of each level, the first of which is 1.
        clones: with `rates`, how often each line of an edge is a task, for each edge; 1 if left out.
        k: the number of steps that the tasks are for.

    Cost: as many numbers as distinct rows times dimensions, since clones are stored once: 77,000 for k = 1000 and
    6 million for k = 10^4, which take a second. For k = 10^5 there are 520 million (1.3 million tasks), which need
    13 GB while they are made: `MemoryLimitError` where less is free. The value needs no tasks:
    `fg.worstcase.frontier("loss").best(k=10**5).value`.

    >>> tasks = levels(k=100)
    >>> import forgetting as fg
    >>> tasks.rank_max, round(100 * float(fg.expect(tasks, "with-replacement", k=100).loss), 3)
    (1, 0.218)
    >>> levels((1.4, 3.3), sizes=(1, 16, 14), clones=(2, 7), k=100).num_tasks
    251
    """
    if rates is None:
        if sizes is not None or clones is not None:
            raise InvalidInputError("sizes and clones go with rates, which give the shares of the lines in each level")
        return in_levels.worst_levels(k).tasks()
    if sizes is None:
        raise InvalidInputError(f"rates of {len(rates)} levels need sizes= of {len(rates) + 1}, the last one included")
    return in_levels.levels_with_rates(rates, sizes, clones or (1,) * (len(sizes) - 1), k).tasks()


def worst_pair(k: int, quantity: str = "loss") -> RegressionTasks:
    """The two tasks with the largest expected loss, or forgetting, after k steps with replacement, at |w*| R = 1.

    `two_lines` at the worst angle: no two tasks, of any ranks and dimension, have a larger E L(w_k) or E F(k)
    (`two-lines:random` in `fg.claims`). Both are about 1/(2 e k) for large k. Cost: constant.

    >>> import forgetting as fg
    >>> pair = worst_pair(k=1)
    >>> round(27 * float(fg.expect(pair, fg.orderings.WithReplacement(), 1).loss), 9)
    4.0
    """
    if as_kind(quantity, str, "'loss' or 'forgetting'", "quantity: ") not in WORST_PAIRS:
        raise InvalidInputError(f"quantity must be 'loss' or 'forgetting', got {quantity!r:.60}")
    return two_lines(math.acos(WORST_PAIRS[quantity](as_count(k, "k", least=1)).cosine))


def orthogonal(d: int) -> RegressionTasks:
    """T = d tasks X_m = e_m^T with w* = (1, ..., 1) / sqrt(d): nothing is ever forgotten.

    The loss comes only from tasks not yet seen: with replacement, E L(w_k) = (1 - 1/d)^k / (2 d), and forgetting is 0.

    >>> orthogonal(3).rank_joint
    3
    """
    d = as_count(d, "d", least=1)
    _require_room(d, d, d)
    return _realizable([row[None] for row in np.eye(d)], np.full(d, d**-0.5))


def back_and_forth(T: int, theta: float) -> RegressionTasks:
    """Lines in the plane whose angles rise from 0 in T/2 - 1 steps of theta, and then fall in steps of theta to -theta.

    In a cyclic ordering, each step turns the error a little and hardly shrinks it. At theta = 1/sqrt(k - 1), for
    k >= T^2 / 4 a multiple of T, forgetting is at least T^2 / (48 e k), the lower bound for cyclic orderings (Evron et
    al. 2022, Theorem 11).

    >>> back_and_forth(T=6, theta=0.1).num_tasks
    6
    """
    T = as_count(T, "T", least=2)
    if T % 2:
        raise InvalidInputError(f"T must be even to go back and forth, got {T}")
    _require_room(T, T, 2)
    turns = np.array([*range(T // 2), *range(T // 2 - 2, -2, -1)])
    return _realizable([_line(angle) for angle in turns * as_number(theta, "theta")], np.array([1.0, 0.0]))


def catastrophic(eps: float) -> RegressionTasks:
    """Lines in the plane that turn slowly, then fast: in the given order forgetting tends to its maximum 1/2.

    As eps -> 0 the number of tasks grows like 72/eps^2. Learned in the order 0, 1, ..., T - 1, the error keeps almost
    all of its norm, and the last iterate solves none of the early tasks (Evron et al. 2022, Theorem 7).

    >>> catastrophic(0.5).num_tasks
    289
    """
    eps = as_number(eps, "eps", above=0)
    if eps > 6:
        raise InvalidInputError(f"eps must be at most 6, got {eps:g}")
    if eps < 0.01:
        raise InvalidInputError(f"eps must be at least 0.01 (some 700,000 tasks), got {eps:g}")
    slow = round((72 - 12 * eps) / eps**2 + 1)
    fast = round(12 / eps)
    turn = np.sqrt(eps / 6)
    angles = [*np.linspace(0, turn, slow), *np.linspace(turn, np.pi / 2, fast + 1)[1:]]
    return _realizable([_line(angle) for angle in angles], np.array([1.0, 0.0]))


def greedy_failure(d: int) -> RegressionTasks:
    """T = d - 1 tasks on which one pass in greedy order fails: the loss stays above 1/16 - 1/(8 d).

    With u_0 = e_1, u_m = cos(theta) u_(m-1) + sin(theta) e_(m+1) and cos^(2T)(theta) = 1/2, task m leaves free the span
    of e_1, ..., e_m, turned so that the free space has u_m in place of u_(m-1). Its rows are orthonormal and span what
    is left: sin(theta) u_(m-1) - cos(theta) e_(m+1) and e_(m+2), ..., e_d. The error starts at e_1 = w*. The task with
    the largest distance and loss is always the next one, which turns the error from u_(m-1) to u_m at the cost of a
    factor cos(theta), and so away from the tasks before: E L(w_T) = 1/4 - 1 / (8 T (1 - 2^(-1/T))), which tends to
    1/4 - 1/(8 log 2) = 0.0697. Random orders reach 0.0015 at d = 120. The bound is that of Tsipory et al. 2025.

    >>> tasks = greedy_failure(12)
    >>> tasks.num_tasks, tasks.ranks.tolist()
    (11, [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1])
    """
    d = as_count(d, "d", least=2)
    _require_room(d - 1, d * (d - 1) // 2, d)
    cosine = 0.5 ** (0.5 / (d - 1))
    sine = np.sqrt(1 - cosine**2)
    basis = np.eye(d)
    turned, matrices = basis[0], []
    for m in range(1, d):
        matrices.append(np.vstack([sine * turned - cosine * basis[m], basis[m + 1 :]]))
        turned = cosine * turned + sine * basis[m]
    return _realizable(matrices, basis[0])


def repeated(tasks: RegressionTasks, n: int) -> RegressionTasks:
    """n copies of a collection, one after the other.

    Shows that clones change nothing under sampling with replacement, and turn sampling without replacement into
    repetition. Clones cost nothing: the engines use each distinct task once.

    >>> clones = repeated(two_lines(0.5), 100)
    >>> clones.num_tasks, clones.geometry.num_distinct
    (200, 2)
    """
    as_kind(tasks, RegressionTasks, "RegressionTasks")
    n = as_count(n, "n", least=1)
    _require_room(n * tasks.num_tasks, 0, tasks.dim)
    pairs = [tasks.task(m) for m in range(tasks.num_tasks)] * n
    copies = tasks.with_data([X for X, _ in pairs], [y for _, y in pairs], tasks.names * n)
    copies.preparation = tasks.preparation
    copies.classes = None if tasks.classes is None else tasks.classes * n
    return copies


def principal_angles(angles: Sequence[float], seed: Seed = None) -> RegressionTasks:
    """Two tasks of rank r in R^(2r) whose row spaces have the given r principal angles.

    Shows that two tasks interact only through their principal angles: there is no forgetting for angles of 0 and pi/2
    (equal and orthogonal subspaces), and there is for angles in between. A seed rotates both tasks at random.

    >>> tasks = principal_angles([0.3, 1.2])
    >>> tasks.num_tasks, tasks.rank_avg, tasks.rank_joint
    (2, 2.0, 4)
    """
    angle = real_array(angles, "angles")
    if angle.ndim != 1 or angle.size == 0:
        raise InvalidInputError(f"give at least one angle, in a list; got shape {angle.shape}")
    r = len(angle)
    _require_room(2, 4 * r, 2 * r)
    first = np.eye(r, 2 * r)
    second = np.hstack([np.diag(np.cos(angle)), np.diag(np.sin(angle))])
    rotation = np.eye(2 * r)
    if seed is not None:
        rotation = np.linalg.qr(np.random.default_rng(seed_from(seed)).standard_normal((2 * r, 2 * r)))[0]
    return _realizable([first @ rotation, second @ rotation], rotation.T @ np.full(2 * r, (2 * r) ** -0.5))


def heterogeneous_norms(T: int, d: int, rank: int = 1, spread: float = 1e3, seed: Seed = 0) -> RegressionTasks:
    """Gaussian tasks whose spectral norms are spread evenly on a log scale from 1 down to 1 / spread.

    R-bar, the mean squared norm, is far below R^2 here. Shows that a task of small norm is not lost: the subspaces, and
    so the iterates, do not depend on the norms.

    >>> tasks = heterogeneous_norms(T=4, d=8, spread=1e6)
    >>> tasks.norms.round(9).tolist(), tasks.rank_joint
    ([1.0, 0.01, 0.0001, 1e-06], 4)
    """
    base = gaussian(T, d, rank, seed)
    norms = np.geomspace(1, 1 / as_number(spread, "spread", least=1), base.num_tasks)
    matrices = [base.task(m)[0] * (norms[m] / base.norms[m]) for m in range(base.num_tasks)]
    return _realizable(matrices, base.w_star / np.linalg.norm(base.w_star))


def separable(T: int, d: int, n: int, margin: float = 0.1, seed: Seed = 0) -> ClassificationTasks:
    """T jointly separable classification tasks of n rows, with R = 1 and 1 / (|w*| R) = margin.

    `margin` is `ClassificationTasks.margin`: some unit vector u has y_i x_i.u >= margin R for all rows, and no unit
    vector has more. The rows are random on their side of u, except for two unit rows (the first and the last) that lean
    to opposite sides of u and so determine w* = u / margin. Shows that the rates of Evron et al. 2023 depend on |w*| R
    while those of `cor:pocs_forgetting` do not.

    >>> tasks = separable(T=4, d=10, n=5, margin=0.2)
    >>> tasks.num_tasks, round(tasks.radius, 12), round(tasks.margin, 12), round(tasks.scale, 9)
    (4, 1.0, 0.2, 25.0)
    """
    T, d, n = as_count(T, "T", least=1), as_count(d, "d", least=2), as_count(n, "n", least=1)
    _require_room(T, 2 * T * n, d)
    margin = as_number(margin, "margin", above=0)
    if margin > 1:
        raise InvalidInputError(f"margin is relative to the largest row, so that it is at most 1, got {margin:g}")
    if T * n < 2:
        raise InvalidInputError("one row has one class only; give T or n at least 2")
    rng = np.random.default_rng(seed_from(seed))
    frame = np.linalg.qr(rng.standard_normal((d, 2)))[0].T
    axis, lean = frame
    along = np.minimum(margin + (1 - margin) / 4 * np.abs(rng.standard_normal(T * n)), 1.0)
    across = rng.standard_normal((T * n, d))
    across -= np.outer(across @ axis, axis)
    across *= (rng.random(T * n) * np.sqrt(1 - along**2) / np.linalg.norm(across, axis=1))[:, None]
    rows = np.outer(along, axis) + across
    side = np.sqrt(1 - margin**2) * lean
    rows[0], rows[-1] = margin * axis + side, margin * axis - side
    rows[[0, -1]] /= np.linalg.norm(rows[[0, -1]], axis=1)[:, None]
    labels = rng.choice([-1.0, 1.0], size=T * n)
    labels[-1] = -labels[0]
    split = (labels[:, None] * rows).reshape(T, n, d), labels.reshape(T, n)
    return ClassificationTasks(list(split[0]), list(split[1]))


def _require_room(tasks: int, rows: int, dim: int) -> None:
    """Raise unless `tasks` tasks with `rows` rows in total fit in memory."""
    needed = 500.0 * tasks + 16.0 * rows * dim  # the rows, and the copy that the collection keeps
    require_memory(needed, f"{tasks} tasks in dimension {dim}", "use fewer tasks, or smaller ones")


def _line(angle: float) -> Array:
    """The task whose solutions form the line at this angle."""
    return np.array([[-np.sin(angle), np.cos(angle)]])


def key_value(
    T: int, d: int, outputs: int = 1, seed: Seed = 0, *, similarity: float = 0.0, unit: bool = True
) -> RegressionTasks:
    """T pairs of a key and a value to recall, each a task of one row: the memories of linear attention.

    Keys are random directions in d dimensions, with a common part such that two keys have the mean cosine
    `similarity`; with `unit=False` their squared lengths are random, with mean 1. Values are random unit vectors of
    `outputs` numbers. The loss of a task is the recall error 1/2 |S^T k - v|^2 of its pair. Up to d pairs can be
    recalled without error; the solution is not of size 1.

    Shows what a memory of a given size keeps: write with `fg.schemes.Kaczmarz()` (the delta rule),
    `fg.schemes.SGD(beta, "loss")` (with write strength beta), and `fg.schemes.Decay(gate, ...)` (with a gate).

    >>> import forgetting as fg
    >>> tasks = key_value(T=3, d=4, outputs=2)
    >>> tasks.dim, tasks.w_star.shape, round(float(fg.run(tasks, [0, 1, 2], k=3).loss_matrix[-1, 2]), 12)
    (4, (4, 2), 0.0)
    """
    T, d = as_count(T, "T", least=1), as_count(d, "d", least=1)
    outputs, unit = as_count(outputs, "outputs", least=1), as_flag(unit, "unit")
    shared = as_number(similarity, "similarity", least=0, below=1)
    _require_room(T, T, d + outputs)
    rng = np.random.default_rng(seed_from(seed))
    common, keys = rng.standard_normal(d), rng.standard_normal((T, d)) / np.sqrt(d)
    values = rng.standard_normal((T, outputs))
    keys = np.sqrt(1 - shared) * keys + np.sqrt(shared) * common / np.linalg.norm(common)
    keys = keys / np.linalg.norm(keys, axis=1, keepdims=True) if unit else keys
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    return RegressionTasks([key[None] for key in keys], [value[None] for value in values])


def _realizable(matrices: Sequence[Any], w_star: Array) -> RegressionTasks:
    return RegressionTasks(matrices, [matrix @ w_star for matrix in matrices])
