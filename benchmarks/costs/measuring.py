"""One call at one size, in a process of its own: seconds of the processor, and the peak of memory."""

from __future__ import annotations

import gc
import os
import re
import time
import warnings
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.costs.calls import call_named
from forgetting.compute.threads import one_core
from forgetting.errors import ForgettingError
from forgetting.expectation.engines import engines
from forgetting.expectation.engines.costs import reduction

LIMIT = 300.0  # seconds after which a call is given up
ROUNDS = 5  # calls at most
ENOUGH = 1.5  # seconds, with those of making the tasks, after which no third call is made
LONG = 4.0  # and no second call, which is there because the first may load what the small call did not need
STATUS = Path("/proc/self/status")


def in_child(target: Any, *arguments: Any) -> Any:
    """What the function sends back from a process of its own.

    The process is a fork of a server that has made each call once, so that nothing is compiled in it, and that has one
    thread, so that forking is safe.
    """
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")  # of the server
    context = get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.costs.warm"])
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=target, args=(sender, *arguments))
    process.start()
    sender.close()
    try:
        if not receiver.poll(LIMIT):
            raise ForgettingError(f"{arguments} took more than {LIMIT:g} seconds and was given up")
        return receiver.recv()
    except EOFError:
        process.join()
        raise ForgettingError(f"{arguments} ended with exit code {process.exitcode} and no result") from None
    finally:
        if process.is_alive() and not receiver.closed:
            process.join(5)
        if process.is_alive():
            process.kill()
        receiver.close()


def measured(call: str, axis: str, value: int, sizes: dict[str, int], code: str) -> dict[str, Any]:
    """A row of the table: seconds and bytes of a call with one size replaced.

    `sizes` and `code` tell results apart that were measured at other sizes, or of other code.
    """
    found: dict[str, Any] = in_child(_measure, call, axis, value)
    return found


def _measure(sender: Connection, name: str, axis: str, value: int) -> None:
    call = call_named(name)
    sizes = call.sizes(axis, value)
    with one_core(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call.work(call.prepare(call.tiny), call.tiny)
        gc.collect()
        before, begun, seconds, used = reset_peak(), time.process_time(), [], None
        while len(seconds) < ROUNDS and time.process_time() - begun < (LONG if len(seconds) < 2 else ENOUGH):
            made = call.prepare(sizes)  # anew each time: results of a call may be kept with the tasks
            start = time.process_time()
            answer = call.work(made, sizes)
            seconds.append(time.process_time() - start)
            if used is None:
                used = None if before is None else max(0, peak() - before)
            detail = getattr(answer, "detail", "")
            if call.digits and f"{call.digits} digits" not in detail:
                raise ForgettingError(f"{name}: {axis} = {value} was computed otherwise: {detail}; choose other sizes")
            del made, answer
        row = {"seconds": min(seconds), "rounds": len(seconds), "bytes": used, "detail": detail}
        if call.request is not None:
            request = call.request(call.prepare(sizes), sizes)
            cost = engines.get(call.engine).cost(request)
            begin = reduction(request) if call.refined else 0.0
            row |= {"estimated_seconds": max(0.0, cost.seconds - begin), "estimated_bytes": cost.bytes}
    sender.send(row)


def reset_peak() -> int | None:
    """Bytes in memory now, from which on the peak counts; None where the system does not say (not Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        return _status("VmRSS")
    except OSError:
        return None


def peak() -> int:
    """The most bytes that were in memory since `reset_peak`."""
    return _status("VmHWM")


def _status(name: str) -> int:
    match = re.search(rf"^{name}:\s+(\d+) kB", STATUS.read_text(), re.MULTILINE)
    return 1024 * int(match[1]) if match else 0
