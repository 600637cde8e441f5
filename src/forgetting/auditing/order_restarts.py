"""Local searches of orders from several seeds: a study, whose cells are the searches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from forgetting.core.arrays import fingerprint
from forgetting.files.store import code_digest
from forgetting.report.provenance import problem_hash
from forgetting.studies.study import Study
from forgetting.tasks import Problem

__all__ = ["best_and_worst", "restart_seeds"]

Search = Callable[[int], dict[str, Any]]


def restart_seeds(seed: int, restarts: int) -> list[int]:
    """The seeds of the searches. The first is the seed itself, so that more restarts never find less.

    >>> restart_seeds(5, 1), restart_seeds(5, 3)[:2] == restart_seeds(5, 2)
    ([5], True)
    """
    others = np.random.SeedSequence(seed, spawn_key=(2,)).generate_state(2 * restarts, np.uint32)[: restarts - 1]
    return [seed, *(int(other) for other in others)]


class _Searcher:
    """A search as the function of a study: the cell says which, and the problem travels with the function."""

    def __init__(self, search: Search) -> None:
        self.search, self.__qualname__ = search, "search_orders"

    def __call__(self, restart: int, identity: Any, code: str, seed: int) -> dict[str, Any]:
        return self.search(seed)


def best_and_worst(
    search: Search,
    problem: Problem,
    identity: dict[str, Any],
    seeds: list[int],
    jobs: int | None,
    store: str | Path | None,
) -> list[dict[str, Any]]:
    """The results of `search` for all seeds; those in the store are not computed again.

    `identity` is what a result depends on beside the problem and the seed.
    """
    arrays = {name: value for name, value in identity.items() if isinstance(value, np.ndarray)}
    words = {name: str(value) for name, value in identity.items() if name not in arrays}
    known = {"problem": problem_hash(problem), "start": fingerprint(*arrays.values()).hex(), **words}
    cells = [
        {"restart": place, "identity": known, "code": code_digest(), "seed": seed} for place, seed in enumerate(seeds)
    ]
    study = Study(cells, store, function=_Searcher(search))
    return study.run(jobs, progress=False, retry=True, check=True).results()
