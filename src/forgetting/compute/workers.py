"""Independent parts of a long computation, in several processes or on a cluster. joblib starts and feeds the processes.

joblib is the only way out of this process: its own backend (loky) on one machine, and whatever backend an enclosing
`joblib.parallel_config` names, such as Dask. A part uses one core wherever it is computed, so that its digits do not
depend on the number of workers.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import closing, contextmanager, suppress
from typing import Any, TypeVar

from forgetting.compute.threads import cores, one_core
from forgetting.core.arrays import as_count
from forgetting.core.text import one_line
from forgetting.errors import NotSupportedError, WorkerError

Part = TypeVar("Part")
Result = TypeVar("Result")
ALONE = 2  # times that a part is computed with no other beside it before it is given up because its process dies
THREADS = "NUMBA_NUM_THREADS"
WATCH = 1.0  # seconds between two looks for the parent of a process


def workers(jobs: int | None) -> int | None:
    """The number of processes: `jobs`; if that is None, what an enclosing `joblib.parallel_config` says, else 1.

    None is the answer where the backend decides, as Dask does.

    >>> from joblib import parallel_config
    >>> workers(2), workers(None)
    (2, 1)
    >>> with parallel_config(n_jobs=3):
    ...     workers(None)
    3
    """
    if jobs is not None:
        return cores() if isinstance(jobs, int) and jobs == -1 else as_count(jobs, "jobs (-1: all cores)", least=1)
    from joblib.parallel import get_active_backend

    backend, configured = get_active_backend()
    if not _starts_processes(backend):
        return None
    return 1 if configured is None else int(backend.effective_n_jobs(configured))


def _starts_processes(backend: Any) -> bool:
    """Whether a backend of joblib is its own, whose workers are children of this process."""
    return type(backend).__name__ == "LokyBackend"


def run_parts(
    function: Callable[[Part], Result], parts: Sequence[Part], jobs: int | None
) -> Iterator[tuple[int, Result]]:
    """Compute function(part) for every part; yield (place, result) as parts finish, in no particular order.

    If a process dies (killed, out of memory), the parts that were not finished are computed again: by halves, so that
    the part that is the cause is soon alone. If its process dies then too, the others go on, and at the end a
    `WorkerError` names the parts that could not be computed. With jobs=1 no process is started.

    >>> sorted(run_parts(abs, [-1, 2, -3], jobs=1))
    [(0, 1), (1, 2), (2, 3)]
    """
    lost: list[int] = []
    yield from some_parts(function, enumerate(parts), jobs, lost.append)
    if lost:
        named = ", ".join(repr(parts[place]) for place in lost[:3])
        others = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
        raise WorkerError(f"{lost_part()} while it computed {named}{others}; all other parts are finished")


def lost_part() -> str:
    """The reason why a part is given up."""
    return "the process died each time (killed, or out of memory)"


def some_parts(
    function: Callable[[Part], Result],
    numbered: Iterable[tuple[int, Part]],
    jobs: int | None,
    give_up: Callable[[int], None],
) -> Iterator[tuple[int, Result]]:
    """Compute the parts that `numbered` gives, which is read as workers become free; see `run_parts`.

    `give_up` is called with the number of a part whose process dies whenever the part is computed.
    """
    count = workers(jobs)
    if count == 1:
        for number, part in numbered:
            with one_core(), _one_numba_thread():
                result = function(part)
            yield number, result
        return
    source = _Source(numbered)
    pending: dict[int, Part] = {}
    while pending or not source.ended:
        unsure = list(pending.items())
        pending.clear()
        yield from _again(function, unsure, count, give_up)
        try:
            yield from _dispatched(function, source, count, pending)
        except Exception as error:
            if not _is_death(error):
                raise
    if source.error is not None:
        raise source.error


def _dispatched(
    function: Callable[[Part], Result], source: Iterable[tuple[int, Part]], count: int | None, pending: dict[int, Part]
) -> Iterator[tuple[int, Result]]:
    """Compute parts until there are none left or a process dies; `pending` holds the parts that are not finished."""
    from joblib import Parallel
    from joblib.parallel import get_active_backend

    class Pool(Parallel):  # type: ignore[misc,unused-ignore]
        """joblib computes in this process if a cluster has one core, though other workers may come."""

        def _initialize_backend(self) -> int:
            cores = int(super()._initialize_backend())
            return cores if getattr(self._backend, "supports_sharedmem", False) else max(cores, 2)

    task = _Task(function)

    def calls() -> Iterator[Any]:
        for number, part in source:
            pending[number] = part
            yield task, (number, part), {}

    backend = get_active_backend()[0]
    if not backend.supports_return_generator:
        raise NotSupportedError(
            f"joblib's {type(backend).__name__} gives results only when all parts are finished; use the backend "
            "'loky', 'threading' or 'dask' in joblib.parallel_config"
        )
    # 'auto' batches hold parts of 0.2 s in all; arrays are sent as they are, since read-only ones compile again
    ours = _starts_processes(backend)
    more = {"initializer": end_with, "initargs": (os.getpid(),)} if ours else {}  # also for workers that get no part
    pool = Pool(
        n_jobs=count,
        return_as="generator_unordered",
        pre_dispatch="2*n_jobs",
        batch_size="auto",
        max_nbytes=None,
        **more,
    )
    try:
        with closing(pool(calls())) as results:
            for number, result in results:
                del pending[number]
                yield number, result
    except Exception as error:
        if _is_death(error) or not (isinstance(error, CancelledError) or "distributed" in type(error).__module__):
            raise
        raise WorkerError(
            f"the cluster was closed or lost ({one_line(f'{type(error).__name__}: {error}', 200)}); start it again, "
            "and make the same call: a study with a store goes on with what is missing"
        ) from error


def _again(
    function: Callable[[Part], Result], parts: list[tuple[int, Part]], count: int | None, give_up: Callable[[int], None]
) -> Iterator[tuple[int, Result]]:
    """Compute parts of which one may have ended a process: by halves, then alone, so that the others go on."""
    if not parts:
        return
    left = dict(parts)
    for _ in range(ALONE if len(parts) == 1 else 1):
        try:
            for number, result in _dispatched(function, parts, count, {}):
                del left[number]
                yield number, result
        except Exception as error:
            if not _is_death(error):
                raise
        if not left:
            return
    if len(parts) == 1:
        give_up(parts[0][0])
        return
    unsure = list(left.items())
    middle = (len(unsure) + 1) // 2
    for half in (unsure[:middle], unsure[middle:]):
        yield from _again(function, half, count, give_up)


class _Source:
    """Parts as joblib asks for them, in a thread of its own where an error would be lost: the error is kept."""

    def __init__(self, numbered: Iterable[tuple[int, Any]]) -> None:
        self.numbered, self.ended, self.lock = iter(numbered), False, threading.Lock()
        self.error: BaseException | None = None

    def __iter__(self) -> _Source:
        return self

    def __next__(self) -> tuple[int, Any]:
        with self.lock:  # a pool that broke may still ask, while the next one does
            if not self.ended:
                try:
                    return next(self.numbered)
                except BaseException as error:
                    self.ended = True
                    if not isinstance(error, StopIteration):
                        self.error = error
        raise StopIteration


def _is_death(error: Exception) -> bool:
    """Whether an error says that a worker died: of a pool of processes, or of a cluster of Dask."""
    return isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker"


class _Task:
    """A function as a worker calls it: on one core, and only as long as the process that asked for it lives."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function, self.driver = function, os.getpid()
        self.folder = _folder()

    def __call__(self, number: int, part: Any) -> tuple[int, Any]:
        if os.getppid() == self.driver:
            end_with(self.driver)
            if self.folder is not None and self.folder != _folder():  # the driver moved since it started the process
                os.chdir(self.folder)
        with one_core(), _one_numba_thread():
            return number, self.function(part)


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # the folder was removed
        return None


@contextmanager
def _one_numba_thread() -> Iterator[None]:
    """Compiled code in one thread: Dask leaves numba's number unset, and several threads of numba's pool may hang."""
    if "numba" not in sys.modules and os.environ.get(THREADS) == "1":  # importing numba takes most of a second
        yield
        return
    import numba  # before the function does

    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(before)


_watched = False


def end_with(driver: int) -> None:
    """Start, once in a process, a thread that ends the process when its parent ends; Ctrl-C is for the parent."""
    global _watched
    if _watched:
        return
    _watched = True
    if "numba" not in sys.modules:  # which refuses a change later
        os.environ[THREADS] = "1"
    import signal

    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == driver:
            time.sleep(WATCH)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
