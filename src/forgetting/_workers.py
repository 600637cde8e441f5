"""Independent parts of a long computation in several processes, which end when their parent ends."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from typing import Any, TypeVar

from forgetting.errors import WorkerError

__all__ = ["run_parts"]

Part = TypeVar("Part")
Result = TypeVar("Result")
ATTEMPTS = 3  # how often a part is computed before it is given up because its process dies


def run_parts(
    function: Callable[[Part], Result], parts: Sequence[Part], processes: int
) -> Iterator[tuple[int, Result]]:
    """Compute function(part) for every part; yield (place, result) as parts finish, in no particular order.

    A part whose process dies (killed, out of memory) is tried three times at most; when all other parts are finished,
    a `WorkerError` names the parts that could not be computed. With processes=1 no process is started.

    >>> sorted(run_parts(abs, [-1, 2, -3], processes=1))
    [(0, 1), (1, 2), (2, 3)]
    """
    if processes == 1:
        for place, part in enumerate(parts):
            yield place, function(part)
        return
    waiting = list(range(len(parts)))[::-1]
    deaths: Counter[int] = Counter()
    lost: list[int] = []
    while waiting:
        pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_end_with_parent)
        try:
            yield from _until_broken(pool, function, parts, processes, waiting, deaths, lost)
        finally:
            _end(pool)
    if lost:
        named = ", ".join(repr(parts[place]) for place in lost[:3])
        others = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
        raise WorkerError(
            f"the process died {ATTEMPTS} times (killed, or out of memory) while it computed {named}{others}; "
            "all other parts are finished"
        )


def _until_broken(
    pool: ProcessPoolExecutor,
    function: Callable[[Part], Result],
    parts: Sequence[Part],
    processes: int,
    waiting: list[int],
    deaths: Counter[int],
    lost: list[int],
) -> Iterator[tuple[int, Result]]:
    """Compute the waiting parts until a process dies.

    No more parts are submitted than there are processes: any of the running parts may be the cause of the death.
    """
    running: dict[Future[Result], int] = {}
    while waiting or running:
        while waiting and len(running) < processes:
            place = waiting.pop()
            running[pool.submit(function, parts[place])] = place
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        broken = [future for future in done if isinstance(future.exception(), BrokenProcessPool)]
        for future in done:
            if future not in broken:
                yield running.pop(future), future.result()
        if broken:
            for place in running.values():
                deaths[place] += 1
                (lost if deaths[place] >= ATTEMPTS else waiting).append(place)
            return


def _end_with_parent() -> None:
    """Start a thread in a new process that ends the process when its parent ends."""
    import signal

    parent = parent_process()
    assert parent is not None
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Ctrl-C the parent ends its children

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _end(pool: Any) -> None:
    """End all processes of a pool without waiting for their results."""
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(5)
        if process.is_alive():
            process.kill()
