"""A GPU against two cores: the map Q, Lanczos steps and ensembles of runs.

`python -m benchmarks.bench_devices [DEVICE] [--small]` prints the figures of one device, by default "cuda"; `--small`
is for trying it out where there is no GPU.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import forgetting as fg
from benchmarks.timing import report, seconds
from forgetting.compute.devices import Device, as_device
from forgetting.dynamics.device_runs import DeviceRuns
from forgetting.dynamics.space import resolve, view_of
from forgetting.errors import NotSupportedError
from forgetting.expectation.api import ask
from forgetting.expectation.engines.exact import moment_map
from forgetting.expectation.engines.powers import lanczos, pack, powers_watched
from forgetting.orderings.base import as_ordering, drawn_orders

CORES = 2


def settled(device: Device, array: Any) -> float:
    """A number of the array, read back: only then is everything that was asked for done."""
    return float(device.take(array[:1, :1])[0, 0])


def best(work: Callable[[], object], rounds: int = 5) -> float:
    work()
    return min(seconds(work) for _ in range(rounds))


def maps(T: int, d: int, rank: int, device: Device) -> tuple[Any, Any]:
    """The moment map on the CPU and on the device."""
    tasks = fg.families.gaussian(T, d, rank, seed=0)
    requests = [ask(tasks, "with-replacement", 10, quantities="loss", device=where).request for where in (None, device)]
    return moment_map(requests[0], homogeneous=True), moment_map(requests[1], homogeneous=True)


def map_q(here: Any, there: Any) -> None:
    """Q[A]: TFLOP/s, the ratio against two cores, and the agreement."""
    device, start = there.device, here.second()[0]
    times, first = 20, there.device.put(start)

    def several() -> float:
        matrix = first
        for _ in range(times):
            matrix = there.apply(matrix)
        return settled(device, matrix)

    one = best(several) / times
    with threadpool_limits(CORES):
        other = best(lambda: here.apply(start), 2)
        expected = here.apply(start)
    rows, n = here.right[0].shape
    off = np.linalg.norm(device.take(there.apply(first)) - expected) / np.linalg.norm(expected)
    speed = 4 * rows * n**2 / one / 1e12
    print(f"Q[A], R = {rows}, D = {n}: {1e3 * one:.3f} ms, {speed:.1f} TFLOP/s; agrees to {off:.1e}")
    report(f"Q[A], R = {rows}, D = {n}, on {device.spec} against {CORES} cores", [one], [other], 200)


def lanczos_steps(there: Any, steps: int = 300) -> None:
    """As many Lanczos steps with full re-orthogonalisation, and with the checks that a call of `expect` makes."""
    device = there.device
    start = pack(device.put(there.second()[0]), device)
    powers = powers_watched(pack(device.put(np.eye(there.size)), device)[None, :], np.array([10**6]), device)
    calls = 0

    def watch(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        value, spread, _ = powers(*given)
        return value + calls, spread, 0 * spread  # so that it does not stop earlier

    def work() -> float:
        return settled(device, lanczos(there, start, watch, 10**6, steps).basis)

    print(f"{steps} Lanczos steps, D = {there.size}: {best(work, 3):.3f} s")


def ensemble(T: int, d: int, runs: int, k: int, device: Device) -> None:
    """Losses of many runs, every 10 steps."""
    tasks, ordering = fg.families.rank_one(T, d, seed=0), as_ordering("with-replacement")
    scheme, space = resolve(tasks, None, None)
    keep, geometry = np.arange(0, k + 1, 10), tasks.geometry
    linear = scheme.linear_on(tasks)
    begun = time.perf_counter()
    orders = drawn_orders(ordering, view_of(tasks), k, runs, np.random.default_rng(0))
    print(f"orders of {runs} runs of {k} steps, drawn on the CPU: {time.perf_counter() - begun:.3f} s")
    made = DeviceRuns.made(device, geometry, linear, space.w0)
    part = device.put_index(orders)

    def steps_alone() -> float:
        z = made._start(runs)
        for t in range(k):
            made._step(z, part[:, t])
        return settled(device, z)

    print(f"  the steps alone: {best(steps_alone, 3):.3f} s")
    whole = best(lambda: made.losses(orders, keep), 3)
    print(f"  with losses every 10 steps, orders moved there and results back: {whole:.3f} s")
    options: dict[str, Any] = {"runs": runs, "record_every": 10, "seed": 1}
    print(f"  fg.run_many in all: {best(lambda: fg.run_many(tasks, ordering, k, device=device, **options), 2):.3f} s")
    few = {**options, "runs": min(runs, 500)}
    here, there = (fg.run_many(tasks, ordering, k, **few, device=where) for where in (None, device))
    assert np.array_equal(here.order, there.order)
    off = np.max(np.abs(here.losses / there.losses - 1))
    print(f"  losses of {few['runs']} runs agree with the CPU to {off:.1e} (relative)")


def agreement(device: Device) -> None:
    """Values of `expect` on the device and on the CPU."""
    tasks = fg.families.gaussian(40, 60, 2, seed=1)
    for method, k, quantities in (("moments", [10, 1000], ("loss", "forgetting")), ("spectral", [10, 1000], ("loss",))):
        here, there = (
            fg.expect(tasks, "with-replacement", k, method=method, quantities=quantities, device=where)
            for where in (None, device)
        )
        off = max(float(np.max(np.abs(there.values[name] / here.values[name] - 1))) for name in quantities)
        print(f"expect, {method}, T = 40, d = 60: agrees with the CPU to {off:.1e}; {there.detail}")


def main(wanted: str = "cuda", *, small: bool = False) -> None:
    try:
        device = as_device(wanted)
    except NotSupportedError as error:
        print(f"nothing was measured: {error}")
        return
    here, there = maps(*((1000, 1000, 5) if not small else (50, 60, 3)), device)
    map_q(here, there)
    lanczos_steps(there, 300 if not small else 30)
    ensemble(*((1000, 500, 20_000, 1000) if not small else (50, 40, 200, 100)), device)
    agreement(device)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--small"]
    main(*words[:1], small="--small" in sys.argv)
