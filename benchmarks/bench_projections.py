"""Projections onto polyhedra, side by side with QP solvers, as ratios within one run.

    python -m benchmarks.bench_projections

Every comparison is measured in rounds that take the contestants in turn, and the median of the per-round ratios is
printed, so that other load on the machine falls on all of them alike. Peers that are not installed are left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec

import numpy as np
import scipy.sparse as sp

import forgetting as fg
from benchmarks.timing import ROUNDS, report


def rows_of(kind: str, n: int, d: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A non-empty set {A w >= b} with random rows, or rows correlated in one of three ways."""
    A = rng.standard_normal((n, d))
    if kind == "common direction":
        A += 0.5 * rng.standard_normal(d)
    elif kind == "ten factors":
        A = rng.standard_normal((n, 10)) @ rng.standard_normal((10, d)) + 0.1 * A
    elif kind == "autoregressive":
        for i in range(1, n):
            A[i] = 0.95 * A[i - 1] + np.sqrt(1 - 0.95**2) * A[i]
    return A, A @ (2 * rng.standard_normal(d)) - rng.random(n)


def median_us(project: Callable[[np.ndarray], object], points: np.ndarray) -> float:
    times = []
    for point in points:
        start = time.perf_counter()
        project(point)
        times.append(time.perf_counter() - start)
    return 1e6 * float(np.median(times))


def cpu_seconds(work: Callable[[], object]) -> float:
    """Processor time: the contestants use one thread each, and other jobs do not count."""
    start = time.process_time()
    work()
    return time.process_time() - start


@cache
def constants(n: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.eye(d), np.full(n, 1e30), np.zeros(n, dtype=np.int32)


def daqp_solvers(A: np.ndarray, b: np.ndarray) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """daqp as a QP, as the least-distance problem it solves inside, and with a prepared workspace."""
    import daqp

    H, above, sense = constants(*A.shape)  # shared, so that peers do not pay for moving them through the cache
    d = A.shape[1]
    model = daqp.Model()
    model.setup(H, np.zeros(d), A, above, b, sense)

    def prepared(p: np.ndarray) -> np.ndarray:
        model.update(f=-p)
        return model.solve()[0]

    return {
        "daqp.solve": lambda p: daqp.solve(H, -p, A, above, b, sense)[0],
        "daqp.solve, least distance": lambda p: p + daqp.solve(None, None, A, above, b - A @ p, sense)[0],
        "daqp.Model, kept": prepared,
    }


def single_projections(n: int = 50, d: int = 200) -> None:
    print(f"\none projection, n = {n}, d = {d}: median over 200 points (ours, theirs)")
    for kind in ("random", "common direction", "ten factors", "autoregressive"):
        rng = np.random.default_rng(0)
        A, b = rows_of(kind, n, d, rng)
        points = 2 * rng.standard_normal((200, d))
        polyhedron = fg.Polyhedron(A, b)
        for name, solve in daqp_solvers(A, b).items():
            ours, theirs = [], []
            for _ in range(ROUNDS):
                ours.append(median_us(polyhedron.project, points))
                theirs.append(median_us(solve, points))
            target = 1.0 if name != "daqp.Model, kept" else None
            report(f"once, {kind} rows: against {name}", ours, theirs, target, unit="us")


def warm_sequence() -> None:
    """As in a run of projections or in Dykstra's method: points, and what each leaves for the next."""
    print("\na point that drifts, projected 200 times onto the same set: cold (theirs) against warm (ours)")
    for kind, n, d in (
        ("random", 50, 200),
        ("ten factors", 50, 200),
        ("random", 200, 400),
        ("ten factors", 200, 400),
        ("random", 500, 1000),
    ):
        rng = np.random.default_rng(1)
        A, b = rows_of(kind, n, d, rng)
        polyhedron = fg.Polyhedron(A, b)
        path = 2 * rng.standard_normal(d) + np.cumsum(0.003 * rng.standard_normal((200, d)), axis=0)

        def warm(polyhedron: fg.Polyhedron = polyhedron, path: np.ndarray = path) -> None:
            left = None
            for point in path:
                _, left, _ = polyhedron.nearest_from(point, left)

        def cold(polyhedron: fg.Polyhedron = polyhedron, path: np.ndarray = path) -> None:
            for point in path:
                polyhedron.nearest_from(point, None)

        ours, theirs = zip(*((cpu_seconds(warm), cpu_seconds(cold)) for _ in range(ROUNDS)), strict=True)
        report(f"warm against cold, {kind} rows, n = {n}, d = {d}", list(ours), list(theirs), 3.0)


def pocs_steps(T: int = 100, n: int = 20, d: int = 200, k: int = 10_000) -> None:
    rng = np.random.default_rng(2)
    inside = 2 * rng.standard_normal(d)
    parts = []
    for _ in range(T):
        A = rng.standard_normal((n, d))
        parts.append((A, A @ inside - 0.5 * rng.random(n)))
    order = rng.integers(0, T, k)
    problem = fg.ConvexSets([fg.Polyhedron(A, b) for A, b in parts])
    print(f"\n{k} POCS steps on {T} polyhedra of {n} rows, d = {d}, from 0 in random order (processor time)")
    against_daqp("POCS", problem, parts, order, 3.0)
    columns = [(sp.csc_matrix(A), b) for A, b in parts]  # converted once, outside the clock
    for name, step in (("clarabel", clarabel_step), ("osqp", osqp_step)):
        if find_spec(name):
            ours = [cpu_seconds(lambda: by_run(problem, order)) for _ in range(3)]
            some = [cpu_seconds(lambda step=step: chain_of(step, columns, order[:300])) for _ in range(3)]
            report(f"POCS: fg.run against {name}, set up each step", ours, [one * k / 300 for one in some], 30.0)
    tasks = fg.families.separable(T=T, d=d, n=n, margin=0.1, seed=0)
    print(f"\n{k} POCS steps on {T} classification tasks of {n} rows, d = {d}, margin 0.1")
    against_daqp("POCS on classification", tasks, rows_with_margins(tasks), order, 1.0)
    tasks = fg.families.separable(T=20, d=60, n=40, margin=0.1, seed=0)
    print("\n300 POCS steps on 20 classification tasks of 40 rows, d = 60, margin 0.1")
    against_daqp("POCS on few tasks", tasks, rows_with_margins(tasks), rng.integers(0, 20, 300), 1.0)


def rows_with_margins(tasks: fg.ClassificationTasks) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(tasks.signed_rows(m).copy(), np.ones(tasks.num_rows[m])) for m in range(tasks.num_tasks)]


def by_run(problem: fg.Problem, order: np.ndarray) -> np.ndarray:
    """The last iterate of a run, which also computes the loss of every task before and after it is learned."""
    return fg.run(problem, fg.orderings.Explicit(order), k=len(order), record_every=len(order)).iterates[-1]


def by_projections(problem: fg.Problem, order: np.ndarray) -> np.ndarray:
    """The last iterate, by the projections of a run alone."""
    w, members = np.zeros(problem.dim), problem.members
    left: list = [None] * len(members)
    for task in order.tolist():
        w, left[task], _ = members[task].nearest_from(w, left[task])
    return w


def against_daqp(what: str, problem: fg.Problem, parts: list, order: np.ndarray, target: float | None) -> None:
    """Projections against projections, and a run against projections with the losses that a run computes.

    Where the loss is half the squared distance, a projection knows it, and daqp is not asked for it.
    """
    if not find_spec("daqp"):
        return
    solvers = [daqp_solvers(A, b) for A, b in parts]

    def chain(name: str, losses: bool) -> np.ndarray:
        w = np.zeros(problem.dim)
        for task in order.tolist():
            if losses:
                problem.task_loss(task, w)
            w = solvers[task][name](w)
            if losses:
                problem.task_loss(task, w)
        return w

    computed = not problem.half_squared_distances
    for name in ("daqp.solve", "daqp.solve, least distance", "daqp.Model, kept"):
        for ours, losses, bound in ((by_projections, False, 1.0), (by_run, computed, target)):
            times = [
                (cpu_seconds(partial(ours, problem, order)), cpu_seconds(partial(chain, name, losses)))
                for _ in range(ROUNDS)
            ]
            label = f"{what}: {'fg.run' if ours is by_run else 'projections'} against {name}"
            mine, theirs = (list(column) for column in zip(*times, strict=True))
            report(label + (" and losses" if losses else ""), mine, theirs, bound)
        if name == "daqp.solve":
            gap = np.abs(chain(name, False) - by_run(problem, order)).max()
            print(f"{'':<66} largest difference {gap:.1g} (daqp's tolerance is 1e-6)")
        target = 1.0


def chain_of(step: Callable, parts: list, order: np.ndarray) -> np.ndarray:
    w = np.zeros(parts[0][0].shape[1])
    for task in order.tolist():
        w = step(*parts[task], w)
    return w


@cache
def identity(d: int) -> sp.csc_matrix:
    return sp.csc_matrix(sp.eye(d))


def clarabel_step(A: sp.csc_matrix, b: np.ndarray, p: np.ndarray) -> np.ndarray:
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.NonnegativeConeT(len(b))]
    return np.array(clarabel.DefaultSolver(identity(len(p)), -p, -A, -b, cones, settings).solve().x)


def osqp_step(A: sp.csc_matrix, b: np.ndarray, p: np.ndarray) -> np.ndarray:
    import osqp

    solver = osqp.OSQP()
    above = np.full(len(b), np.inf)
    solver.setup(identity(len(p)), -p, A, b, above, verbose=False, eps_abs=1e-6, eps_rel=1e-6)
    return solver.solve().x


def large(n: int = 2000, d: int = 2000) -> None:
    print(f"\n{n} rows, d = {d}: seconds, everything included (target: below 10)")
    for kind in ("random", "ten factors", "autoregressive"):
        rng = np.random.default_rng(3)
        A, b = rows_of(kind, n, d, rng)
        p = 2 * rng.standard_normal(d)
        start = time.perf_counter()
        found = fg.Polyhedron(A, b, check=False).project_full(p)
        took = time.perf_counter() - start
        print(
            f"{kind:<58} {took:>9.3g} s, {len(found.active)} active rows, feasibility {found.feasibility:.1g}, "
            f"KKT {found.kkt_residual:.1g}"
        )


def main() -> None:
    fg.Polyhedron(np.eye(2), np.ones(2)).project(np.zeros(2))  # compile first
    fg.Polyhedron([[1.0], [-1.0]], [0.0, 0.0]).project([1.0])
    if find_spec("daqp"):
        single_projections()
    warm_sequence()
    pocs_steps()
    large()


if __name__ == "__main__":
    main()
