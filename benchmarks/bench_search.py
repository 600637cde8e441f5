"""The search for worst tasks: large k against small k, and with `--device` the figures of one device.

`python -m benchmarks.bench_search --device cuda` times T = 32, d = 16, k = 1024 with 8 starts x 500 steps there (aim: 2
seconds), with ranks that stay and with ranks that may change, and forgetting; `--small` is for trying it out.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import forgetting as fg
from benchmarks.timing import race, seconds
from forgetting.compute.devices import HOST, as_device
from forgetting.compute.threads import one_thread
from forgetting.errors import NotSupportedError
from forgetting.worstcase.ascent import Climb, Point, starting_point
from forgetting.worstcase.search import SearchQuestion

SEARCHED = 2.0  # seconds that the search on a GPU may take


def climb_of(T: int, d: int, k: int, quantity: str, restarts: int, device: object = None) -> Climb:
    """The ascent of so many restarts, at their starts."""
    asked = SearchQuestion.checked(T, d, k, quantity, fg.orderings.WithReplacement(), "fixed")
    here, ranks = asked.objective(HOST), np.full(T, max(1, d // 2))
    starts = [starting_point(here, k, asked.weights, (T, d), ranks, None, 0, index) for index in range(restarts)]
    return Climb(asked.objective(as_device(device)), Point.joined(starts))


def steps_of(climb: Climb, steps: int) -> Callable[[], None]:
    """The work of so many steps, also of collections that are finished."""

    def work() -> None:
        with one_thread():
            for _ in range(steps):
                climb.finished[:] = False
                climb.step()

    return work


def main() -> None:
    for quantity in ("loss", "forgetting"):
        large, small = (steps_of(climb_of(5, 5, k, quantity, 16), 50) for k in (10**4, 10))
        race(f"50 steps, T = 5, d = 5, 16 restarts, {quantity}: k = 10^4 against k = 10", large, small, target=3.0,
             rounds=5, at_most=True)  # fmt: skip


def on_device(device: str, *, small: bool) -> None:
    try:
        where = as_device(device)
    except NotSupportedError as error:
        print(f"nothing was measured: {error}")
        return
    T, d, k, restarts, steps = (32, 16, 1024, 8, 500) if not small else (6, 5, 1024, 4, 60)
    print(f"{where}: T = {T}, d = {d}, k = {k}, {restarts} starts x {steps} steps")
    for quantity in ("loss", "forgetting"):
        climb = climb_of(T, d, k, quantity, restarts, where)
        climb.step()
        climb.step()
        begun = time.perf_counter()
        curve = climb.run(steps)
        taken = time.perf_counter() - begun
        aim = f" (aim {SEARCHED:g} s: {'met' if taken <= SEARCHED else 'MISSED'})" if quantity == "loss" else ""
        best, slope = k * np.exp(curve[-1].max()), climb.slopes[np.argmax(curve[-1])]
        print(f"{quantity}, {steps} steps: {taken:.3f} s{aim}; k times the best {best:.6f}, gradient {slope:.1g}")
    for ranks in ("fixed", "free"):
        found: list[fg.worstcase.TaskSearch] = []

        def work(ranks: str = ranks, found: list[fg.worstcase.TaskSearch] = found) -> None:
            found.append(
                fg.adversarial_search(T, d, d // 2, k, restarts=restarts, steps=steps, ranks=ranks, device=where)
            )

        taken = seconds(work)
        print(f"fg.adversarial_search, ranks {ranks}: {taken:.3f} s in all; k times the value {found[0].rate:.6f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", help="such as cuda or cpu (torch)")
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args()
    if given.device is None:
        main()
    else:
        on_device(given.device, small=given.small)
