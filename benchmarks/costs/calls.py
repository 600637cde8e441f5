"""What is measured: each call on a problem of one size, and the sizes that each axis goes through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

import forgetting as fg
from forgetting.expectation.api import ask
from forgetting.expectation.engines import engines, spectral
from forgetting.expectation.request import Request, Simulation

WR, WOR = "with-replacement", "without-replacement"
Sizes = dict[str, int]
Work = Callable[[], object]


@dataclass(frozen=True)
class Call:
    """A call whose cost is measured.

    Attributes:
        name: the name in tables and figures.
        base: the sizes that stay as they are while one of them varies.
        axes: for each axis the values that it goes through.
        tiny: sizes at which the call is made once before it is measured, so that everything is compiled and imported.
        prepare: makes the problem of these sizes; the time that this takes is not counted.
        work: the call on what `prepare` made, with the sizes.
        request: of an engine: what `expect` would ask it, for its own estimates and for the choice of `auto`.
        digits: of an engine that computes with 31 or with 16 digits: those that are meant.
        exponential: axes on which time grows like a power of a constant.
        all_tasks: whether k is T.
        refined: whether `prepare` also makes the bases of 31 digits, if they are quickly made.
    """

    name: str
    base: Sizes
    axes: dict[str, list[int]]
    tiny: Sizes
    prepare: Callable[[Sizes], Any]
    work: Callable[[Any, Sizes], object]
    request: Callable[[Any, Sizes], Request] | None = None
    engine: str = ""
    digits: int | None = None
    exponential: tuple[str, ...] = ()
    all_tasks: bool = False
    refined: bool = False

    def sizes(self, axis: str, value: int) -> Sizes:
        """The base with one value replaced."""
        sizes = {**self.base, axis: value}
        return {**sizes, "k": sizes["T"]} if self.all_tasks else sizes


def _tasks(sizes: Sizes) -> fg.RegressionTasks:
    """Gaussian tasks whose geometry is known."""
    tasks = _bare(sizes)
    _ = tasks.geometry
    return tasks


def _refined(sizes: Sizes) -> fg.RegressionTasks:
    """The same, and the bases from which exact engines start are known."""
    tasks = _tasks(sizes)
    _ = tasks.geometry.best
    return tasks


def _bare(sizes: Sizes) -> fg.RegressionTasks:
    T, d, rank = sizes["T"], sizes["d"], sizes["rank"]
    if T * rank * d > 10**6 or T > 2000:  # one array in place of T small ones
        rng = np.random.default_rng(0)
        X = rng.standard_normal((T * rank, d)) / d**0.5
        return fg.RegressionTasks.from_arrays(X, X @ rng.standard_normal(d), np.repeat(np.arange(T), rank))
    return fg.families.gaussian(T, d, rank, seed=0)


def _rows(sizes: Sizes) -> list[tuple[np.ndarray, np.ndarray]]:
    """Tasks of N rows in all, with one solution."""
    rng = np.random.default_rng(0)
    w, n = rng.standard_normal(sizes["d"]), max(1, sizes["N"] // sizes["T"])
    matrices = [rng.standard_normal((n, sizes["d"])) / sizes["d"] ** 0.5 for _ in range(sizes["T"])]
    return [(X, X @ w) for X in matrices]


def _system(sizes: Sizes) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((sizes["N"], sizes["d"]))
    return A, A @ rng.standard_normal(sizes["d"])


def _expect(
    name: str,
    engine: str,
    quantities: tuple[str, ...],
    base: Sizes,
    axes: dict[str, list[int]],
    tiny: Sizes,
    *,
    ordering: str = WR,
    digits: int | None = None,
    exponential: tuple[str, ...] = (),
    prepare: Callable[[Sizes], Any] = _refined,
) -> Call:
    """`expect` by a named method: the engine alone, so that the sizes decide nothing else."""

    def request(tasks: Any, sizes: Sizes) -> Request:
        simulation = Simulation(runs=sizes.get("runs"))
        return ask(tasks, ordering, sizes["k"], quantities=quantities, memory=1e12, simulation=simulation).request

    def work(tasks: Any, sizes: Sizes) -> object:
        return engines.get(engine).solve(request(tasks, sizes))

    return Call(
        name, base, axes, tiny, prepare, work, request, engine, digits, exponential,
        all_tasks=ordering == WOR, refined=prepare is _refined,
    )  # fmt: skip


LOSS, BOTH = ("loss",), ("loss", "forgetting")
TINY = {"T": 3, "d": 4, "rank": 1, "k": 3}
#: T rank is at least d on all axes of d, so that the joint row space has the dimension D = d
CALLS = [
    Call(
        "tasks.geometry", {"T": 1000, "d": 100, "rank": 1},
        {"T": [10_000, 20_000, 40_000, 80_000, 160_000], "d": [50, 100, 200, 400, 800], "rank": [1, 2, 4, 8, 16]},
        TINY, _bare, lambda tasks, sizes: tasks.geometry,
    ),
    Call(
        "31-digit bases", {"T": 100, "d": 50, "rank": 2},
        {"T": [125, 250, 500, 1000, 2000], "d": [25, 50, 75, 100, 150], "rank": [1, 2, 4, 8, 16]},
        TINY, _tasks, lambda tasks, sizes: tasks.geometry.precise,
    ),
    Call(
        "run", {"T": 1000, "d": 200, "rank": 1, "k": 100_000},
        {
            "T": [10_000, 20_000, 40_000, 80_000, 160_000], "d": [100, 200, 400, 700, 1000], "rank": [2, 4, 8, 16, 32],
            "k": [10**5, 3 * 10**5, 10**6, 3 * 10**6, 10**7],
        },
        TINY, _tasks, lambda tasks, sizes: fg.run(tasks, WR, sizes["k"], record_every=sizes["k"] // 10 or 1).losses,
    ),
    Call(
        "run_many", {"T": 1000, "d": 100, "rank": 1, "k": 1000, "runs": 1000},
        {
            "T": [1000, 3000, 10_000, 30_000, 100_000], "d": [100, 200, 400, 800], "rank": [1, 2, 4, 8],
            "k": [500, 1000, 2000, 4000, 8000], "runs": [500, 1000, 2000, 4000, 8000],
        },
        {**TINY, "runs": 3}, _tasks,
        lambda tasks, sizes: fg.run_many(tasks, WR, sizes["k"], runs=sizes["runs"], record_every=10).losses,
    ),
    _expect(
        "moments, 31 digits: loss", "moments", LOSS, {"T": 40, "d": 20, "rank": 1, "k": 1000},
        {"T": [40, 80, 160, 320], "d": [8, 16, 24, 32, 40], "rank": [1, 2, 4, 8], "k": [1000, 2000, 4000, 8000]},
        TINY, digits=31,
    ),
    _expect(
        "moments, 31 digits: forgetting", "moments", BOTH, {"T": 10, "d": 8, "rank": 2, "k": 1000},
        {"T": [10, 15, 20, 25, 30], "d": [4, 8, 12, 16, 20], "rank": [1, 2, 4, 8], "k": [500, 1000, 2000, 4000, 8000]},
        TINY, digits=31,
    ),
    _expect(
        "moments, 16 digits: loss", "moments", LOSS, {"T": 400, "d": 100, "rank": 1, "k": 50},
        {
            "T": [1000, 2000, 4000, 8000], "d": [100, 150, 200, 300, 400], "rank": [1, 2, 4, 8, 16],
            "k": [100, 200, 400, 800],
        },
        TINY, digits=16,
    ),
    _expect(
        "moments, 16 digits: forgetting", "moments", BOTH, {"T": 80, "d": 60, "rank": 1, "k": 40},
        {"T": [60, 80, 120, 160], "d": [40, 50, 60, 80], "rank": [1, 2, 4, 8], "k": [40, 80, 160, 320]},
        TINY, digits=16,
    ),
    _expect(
        "spectral: loss", "spectral", LOSS, {"T": 200, "d": 100, "rank": 1, "k": 10_000},
        {
            "T": [1000, 2000, 4000, 8000], "d": [50, 75, 100, 150, 200], "rank": [1, 2, 4, 8, 16],
            "k": [10**2, 10**3, 10**4, 10**5, 10**6],
        },
        TINY,
    ),
    _expect(
        "spectral: forgetting", "spectral", BOTH, {"T": 40, "d": 20, "rank": 1, "k": 10_000},
        {
            "T": [20, 40, 80, 160, 320], "d": [10, 15, 20, 30, 40], "rank": [1, 2, 4, 8],
            "k": [10**2, 10**3, 10**4, 10**5, 10**6],
        },
        TINY,
    ),
    _expect(
        "subsets: forgetting", "subsets", BOTH, {"T": 10, "d": 16, "rank": 2},
        {"T": [8, 9, 10, 11, 12, 13], "d": [8, 12, 16, 20], "rank": [2, 4, 8]},
        TINY, ordering=WOR, exponential=("T",),
    ),
    _expect(
        "deterministic: forgetting", "deterministic", BOTH, {"T": 200, "d": 100, "rank": 1, "k": 20_000},
        {
            "T": [1000, 2000, 4000, 8000, 16_000], "d": [100, 125, 150, 200], "rank": [1, 2, 4, 8],
            "k": [10**4, 3 * 10**4, 10**5, 3 * 10**5],
        },
        TINY, ordering="cyclic", digits=16,
    ),
    _expect(
        "monte-carlo: forgetting", "monte-carlo", BOTH, {"T": 1000, "d": 50, "rank": 1, "k": 500, "runs": 500},
        {
            "T": [1000, 3000, 10_000, 30_000, 100_000], "d": [50, 100, 200, 400, 800], "rank": [1, 2, 4, 8],
            "k": [250, 500, 1000, 2000, 4000], "runs": [250, 500, 1000, 2000, 4000],
        },
        {**TINY, "runs": 3}, prepare=_tasks,
    ),
    Call(
        "bounds.evaluate", {"T": 1000, "d": 100, "rank": 1, "k": 1000},
        {
            "T": [10_000, 20_000, 40_000, 80_000, 160_000], "d": [100, 200, 400, 800], "rank": [1, 2, 4, 8],
            "k": [10, 100, 1000, 10_000],
        },
        TINY, _tasks, lambda tasks, sizes: fg.bounds.evaluate(tasks, WR, sizes["k"]),
    ),
    Call(
        "audit", {"T": 24, "d": 50, "N": 100},
        {"T": [24, 36, 48, 72], "d": [50, 100, 200], "N": [100, 300, 1000, 3000]},
        {"T": 3, "d": 4, "N": 6}, _rows, lambda pairs, sizes: fg.audit(pairs),
    ),
    Call(
        "solve", {"N": 16_000, "d": 200},
        {"N": [16_000, 32_000, 64_000, 128_000, 256_000], "d": [100, 200, 400, 800, 1600]},
        {"N": 8, "d": 4}, _system, lambda system, sizes: fg.solve(*system).x,
    ),
]  # fmt: skip


@dataclass(frozen=True)
class Contest:
    """Engines that can answer the same question, along one axis: where should one take over from the other?

    Attributes:
        question: in words.
        axis: what varies.
        last: the largest value at which `auto` is asked.
        calls: the contestants.
        names: of the contestants.
        order: of two forms of one method: the order D (D + 1) / 2 up to which the method takes the first form.
    """

    question: str
    axis: str
    last: int
    calls: list[Call]
    names: tuple[str, ...]
    order: int | None = None


def _contest(
    question: str,
    axis: str,
    values: dict[str, list[int]],
    base: Sizes,
    quantities: tuple[str, ...],
    last: int,
    ordering: str = WR,
) -> Contest:
    calls = [
        _expect(f"{question} by {engine}", engine, quantities, base, {axis: several}, TINY, ordering=ordering,
                prepare=_tasks)
        for engine, several in values.items()
    ]  # fmt: skip
    return Contest(question, axis, last, calls, tuple(values))


def _forms(quantities: tuple[str, ...], values: list[int], order: int) -> Contest:
    """The two forms of `spectral`: all eigenvectors of Q, or as many Lanczos steps as it takes."""
    base = {"T": 40, "d": 40, "rank": 1, "k": 10_000}

    def call(name: str, limit: int) -> Call:
        def work(tasks: Any, sizes: Sizes) -> object:
            with patch.multiple(spectral, DENSE_LIMIT=limit, ONE_RUN_LIMIT=limit):
                return engines.get("spectral").solve(ask(tasks, WR, sizes["k"], quantities=quantities).request)

        return Call(f"{question} by {name}", base, {"d": values}, TINY, _refined, work)

    question = f"{quantities[-1]} by the spectrum, T = 40, rank 1, k = 10,000"
    names = "diagonalising", "Lanczos"
    return Contest(question, "d", values[-1], [call(names[0], 10**9), call(names[1], 0)], names, order)


CONTESTS = [
    _contest(
        "loss, T = 80, d = 80, rank 1", "k", {"moments": [3, 10, 30, 100, 1000], "spectral": [3, 10, 30, 100, 1000]},
        {"T": 80, "d": 80, "rank": 1}, LOSS, 10**8,
    ),
    _contest(
        "forgetting, T = 20, d = 20, rank 1", "k",
        {"moments": [3, 10, 30, 100, 1000, 10_000], "spectral": [3, 10, 30, 100, 1000, 10_000]},
        {"T": 20, "d": 20, "rank": 1}, BOTH, 10**8,
    ),
    _contest(
        "loss, T = 200, rank 1, k = 1000", "d", {"moments": [6, 12, 25, 50, 100], "spectral": [6, 12, 25, 50, 100]},
        {"T": 200, "rank": 1, "k": 1000}, LOSS, 200,
    ),
    _contest(
        "forgetting after all tasks without replacement, d = 10, rank 1", "T",
        {"subsets": [4, 6, 8, 10, 12], "monte-carlo": [4, 6, 8, 10, 12]},
        {"d": 10, "rank": 1}, BOTH, 24, WOR,
    ),
    _forms(LOSS, [8, 12, 16, 24, 32, 40], spectral.ONE_RUN_LIMIT),
    _forms(BOTH, [8, 12, 16, 24, 32, 40], spectral.DENSE_LIMIT),
]  # fmt: skip


def call_named(name: str) -> Call:
    """A call by its name, also one of a contest."""
    return next(
        call for call in (*CALLS, *(call for contest in CONTESTS for call in contest.calls)) if call.name == name
    )
