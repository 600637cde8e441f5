"""The convex sets and the classification tasks that a hunt tries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.orderings import Explicit, Ordering, WithoutReplacement, WithReplacement
from forgetting.schemes import WeaklyRegularized
from forgetting.sets import Affine, Ball, ConvexSet, Halfspace
from forgetting.tasks import ClassificationTasks, ConvexSets, RegressionTasks, families
from forgetting.theory.draws import (
    FEW_LONG_RUNS,
    Rng,
    has_many_clones,
    is_long,
    long_run,
    many_clones,
    realizable,
    slow,
)
from forgetting.theory.instance import Instance
from forgetting.theory.verdict import Draw

MANY = 30, 61  # sets whose orders are simulated, by as many runs as this:
RUNS = 512
LISTED = 5  # steps over at most 4 tasks: all orders can be gone through


def _has_many(index: int) -> bool:
    """Whether draws of this number have too many orders to go through."""
    return index % 40 == 19


def _ordered(rng: Rng, ordering: str, T: int) -> tuple[Ordering, int]:
    """An ordering "with" or "without" replacement, "i.i.d." or a "sequence", and k so that all orders can be listed."""
    if ordering == "without":
        return WithoutReplacement(), int(rng.integers(1, T + 1))
    k = int(rng.integers(1, LISTED + 1))
    if ordering == "i.i.d.":
        return _drawn(rng, T), k
    return (WithReplacement() if ordering == "with" else Explicit(rng.integers(T, size=k))), k


def _drawn(rng: Rng, T: int) -> Ordering:
    """Independent draws, half of the time uniform."""
    return WithReplacement(None if rng.random() < 0.5 else rng.dirichlet(np.ones(T)) + 1e-3)


def _dim(rng: Rng, index: int, least: int) -> int:
    """A dimension: at most 4, and up to 300 as often as `collection` has hundreds."""
    return int(rng.integers(least, 5)) if index % 40 != 39 else int(rng.integers(41, 301))


def sets(*names: str, ordering: str = "with", long: bool = False) -> Draw:
    """At most 4 halfspaces, balls and affine sets around a common point, with points as a lemma needs.

    With `long`, for rates, there are now and then 30 to 60 halfspaces, as many steps, and simulated orders; lines in up
    to 4 dimensions, with up to 10^6 steps; and without replacement more than 45000 lines.

    >>> case = sets("w")(np.random.default_rng(0), 0)
    >>> bool((case.problem.distances(case.extra("common")) < 1e-12).all())
    True
    """

    def draw(rng: Rng, index: int) -> Instance:
        if long and ordering in ("with", "i.i.d.") and is_long(index):
            k = long_run(rng)
            tasks = realizable(*slow(rng, k))
            return _lines(tasks, WithReplacement() if ordering == "with" else _drawn(rng, tasks.num_tasks), k)
        if long and ordering == "without" and has_many_clones(index):
            tasks = many_clones(rng, ambient=False)
            return _lines(tasks, WithoutReplacement(), tasks.num_tasks)
        if long and _has_many(index):
            return _halfspaces(rng, ordering)
        dim = _dim(rng, index, 1) if index else 2
        common = rng.standard_normal(dim)
        group = ConvexSets([_set(rng, common) for _ in range(int(rng.integers(1, 5)))])
        T = group.num_tasks
        extras: dict[str, Any] = {"common": common}
        for name in names:
            if name == "gamma":
                extras[name] = 10.0 ** rng.uniform(-1.5, 1.5)
            elif name == "task":
                extras[name] = int(rng.integers(T))
            else:
                extras[name] = common + rng.standard_normal(dim) * 10.0 ** rng.uniform(-1, 1)
        chosen, k = _ordered(rng, ordering, T)
        return Instance(group, chosen, k, w0=common + 3 * rng.standard_normal(dim), extras=extras)

    return draw


def _lines(tasks: RegressionTasks, ordering: Ordering, k: int) -> Instance:
    """The sets of solutions of the tasks, which the exact engines cover."""
    group = ConvexSets.from_affine(tasks)
    return Instance(group, ordering, k, extras={"common": tasks.w_star}, runs=FEW_LONG_RUNS)


def _halfspaces(rng: Rng, ordering: str) -> Instance:
    """30 to 60 halfspaces, each learned once or drawn as many times."""
    count, dim = int(rng.integers(*MANY)), int(rng.integers(2, 5))
    common, normals = rng.standard_normal(dim), rng.standard_normal((count, dim))
    group = ConvexSets([Halfspace(normal, float(normal @ common)) for normal in normals])
    start = common + 3 * rng.standard_normal(dim)
    order = WithoutReplacement() if ordering == "without" else WithReplacement()
    return Instance(group, order, count, w0=start, extras={"common": common}, runs=RUNS)


def classified(ordering: str = "with", long: bool = False) -> Draw:
    """At most 4 jointly separable tasks of one to three rows each, whose norms differ, at any margin.

    With `long`, for rates, there are now and then 30 to 60 tasks of one row, as many steps, and simulated orders.

    >>> case = classified(ordering="without")(np.random.default_rng(0), 1)
    >>> case.problem.separability.holds
    True
    """

    def draw(rng: Rng, index: int) -> Instance:
        if long and _has_many(index):
            T = int(rng.integers(*MANY))
            tasks = _around_an_axis(rng, np.ones(T, dtype=int), int(rng.integers(2, 5)))
            order = WithoutReplacement() if ordering == "without" else WithReplacement()
            return Instance(tasks, order, T, runs=RUNS)
        T, dim = int(rng.integers(2, 5)), _dim(rng, index, 2)
        if index % 3 == 0:
            tasks = families.separable(T, dim, int(rng.integers(1, 4)), 10.0 ** -rng.uniform(0, 1.5), seed=index)
        else:
            counts = np.ones(T, dtype=int) if index % 3 == 1 else rng.integers(1, 4, size=T)
            tasks = _around_an_axis(rng, counts, dim)
        chosen, k = _ordered(rng, ordering, tasks.num_tasks)
        return Instance(tasks, chosen, k)

    return draw


def _around_an_axis(rng: Rng, counts: IntArray, dim: int) -> ClassificationTasks:
    """Tasks of random rows, as many for each as given, labelled by the side of a random plane on which they are."""
    axis = rng.standard_normal(dim)
    groups = [rng.standard_normal((n, dim)) * 10.0 ** -rng.uniform(0, 1) for n in counts]
    groups[0] *= np.where(groups[0] @ axis >= 0, 1, -1)[:, None]  # there must be two classes
    groups[1] *= np.where(groups[1] @ axis >= 0, -1, 1)[:, None]
    return ClassificationTasks(groups, [np.where(rows @ axis >= 0, 1.0, -1.0) for rows in groups])


def weakly() -> Draw:
    """Tasks of `classified`, in a given order, learned with weak regularisation: log(1/lambda) from 10 to 10^4.

    >>> -1e4 <= weakly()(np.random.default_rng(0), 1).scheme.log_lambda <= -10
    True
    """
    ordered = classified(ordering="sequence")
    return lambda rng, index: replace(ordered(rng, index), scheme=WeaklyRegularized(-float(10.0 ** rng.uniform(1, 4))))


def _set(rng: Rng, common: Array) -> ConvexSet:
    kind = rng.choice(["halfspaces", "balls", "affine"])
    normal = rng.standard_normal(len(common))
    if kind == "halfspaces":
        return Halfspace(normal, float(normal @ common) - rng.choice([0.0, rng.exponential()]))
    if kind == "balls":
        center = common + normal
        return Ball(center, float(np.linalg.norm(normal)) * (1 + rng.choice([0.0, rng.exponential()])))
    rows = rng.standard_normal((int(rng.integers(1, len(common) + 1)), len(common)))
    return Affine(rows, rows @ common)
