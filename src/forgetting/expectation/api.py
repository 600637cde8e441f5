"""`expect`: the expectation over orderings, exact where that fits, simulated with an honest interval elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, get_args

import numpy as np

from forgetting._arrays import IntArray, any_array, as_count, as_kind, as_number, as_seed
from forgetting._memory import available_memory
from forgetting.dynamics.loop import resolve
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.expectation import exact, spectral
from forgetting.expectation.monte_carlo import simulate
from forgetting.expectation.request import Method, Request
from forgetting.expectation.result import QUANTITIES, Expectation, Outcome
from forgetting.orderings import Ordering, WithReplacement
from forgetting.schemes import POCS, Kaczmarz, Scheme
from forgetting.schemes.linear import growth

__all__ = ["ask", "decay_rate", "expect"]

MOST_STEPS = 10**15  # beyond it k eps is no longer small
EXACT = {
    "moments": exact.by_moments,
    "spectral": exact.by_spectrum,
    "subsets": exact.by_subsets,
    "deterministic": exact.by_the_run,
}


def expect(
    problem: Any,
    ordering: Ordering,
    k: int | Sequence[int] | IntArray,
    scheme: Scheme | None = None,
    w0: Any = None,
    method: Method = "auto",
    quantities: Sequence[str] = ("loss", "forgetting"),
    seed: int = 0,
    runs: int | None = None,
    rtol: float | None = None,
    memory: float | None = None,
    confidence: float = 0.99,
    threads: int | None = None,
) -> Expectation:
    """Expected loss, forgetting, regret, squared error and task losses over the randomness of the ordering.

    Methods (projections onto affine sets count as a linear scheme):

    - moments: independent draws (any weights), any linear scheme; every k up to the largest in one pass.
    - spectral: the same, for very large k, from one factorisation.
    - subsets: random permutations, without replacement or reshuffled, where the 2^T subsets (fewer with clones) fit.
    - deterministic: cyclic, explicit and greedy orderings: one run.
    - monte-carlo: anything, simulated, with intervals that hold for heavy tails.
    - auto: the cheapest exact method that fits in `memory`, else monte-carlo; `method` of the result says which.

    The data are taken as the exact numbers that their floats are, labels too. Small problems are computed with 31
    digits, and with more where those leave doubts; `detail` says so, and `uncertainty` bounds the error of a value.

    Args:
        problem, ordering, scheme, w0: as for `run`.
        k: a number of steps, or several.
        quantities: any of "loss", "forgetting", "regret", "error", "task_losses".
        seed, runs, rtol: for simulation; `rtol` asks for intervals of that half-width relative to the value, and
            `runs` (rounded up to batches of 1024) is then the most to spend.
        memory: bytes that an exact method may use; half of those available, at most 8 GiB, if left out. A result that
            is simulated for want of memory says so in its `notes`.
        confidence: of simulated intervals.
        threads: for simulation; the result does not depend on it.

    >>> import forgetting as fg
    >>> tasks = fg.families.two_lines(np.pi / 3)
    >>> e = fg.expect(tasks, fg.orderings.WithReplacement(), k=[1, 10, 100])
    >>> e.method, e.loss
    ('moments', array([1.40625000e-01, 2.04636308e-03, 8.71333181e-22]))
    >>> bool(np.all(e.uncertainty["loss"] < 1e-15 * e.loss))
    True
    """
    request, back = ask(problem, ordering, k, scheme, w0, quantities, memory)
    picked = request.choose() if method == "auto" else method
    if picked == "monte-carlo":
        most = None if runs is None else as_count(runs, "runs", least=1)
        target = None if rtol is None else as_number(rtol, "rtol", above=0)
        workers = None if threads is None else as_count(threads, "threads", least=1)
        result = simulate(request, as_seed(seed), most, target, as_number(confidence, "confidence"), workers)
    elif picked in EXACT:
        with np.errstate(over="ignore", invalid="ignore"):  # a scheme that diverges says so in the notes
            result = EXACT[picked](request)
    else:
        raise InvalidInputError(f"unknown method {picked!r}; choose from {', '.join(get_args(Method))}")
    if picked == "monte-carlo":
        result.notes += tuple(request.forgone)
    if picked != "deterministic":  # a run says so itself
        result.notes += tuple(growth(problem, request.scheme))
    return back(result)


def ask(
    problem: Any,
    ordering: Ordering,
    k: Any,
    scheme: Scheme | None,
    w0: Any,
    quantities: Sequence[str],
    memory: float | None = None,
) -> tuple[Request, Callable[[Outcome], Expectation]]:
    """The checked request, with its steps sorted, and the way back to the order and shape in which they came."""
    as_kind(ordering, Ordering, "an ordering such as fg.orderings.Cyclic()")
    scalar = any_array(k, "k").ndim == 0
    counted = [as_count(one, "k", most=MOST_STEPS) for one in ([k] if scalar else k)]
    given = np.array(counted, dtype=np.int64)
    if given.size == 0:
        raise InvalidInputError("k is empty; give at least one number of steps")
    names = (quantities,) if isinstance(quantities, str) else tuple(quantities)
    if not names or not set(names) <= set(QUANTITIES):
        raise InvalidInputError(f"quantities must be among {', '.join(QUANTITIES)}; got {names}")
    chosen, space = resolve(problem, scheme, w0)
    if isinstance(chosen, POCS) and getattr(problem, "geometry", None) is not None:
        chosen = Kaczmarz()  # the projection onto an affine set is a linear scheme of gain 1, which the engines know
    ordering.check(problem.num_tasks, int(given.max()))
    request = Request(problem, ordering, chosen, space.w0, np.sort(given), names, _memory(memory))
    rank = np.argsort(np.argsort(given, kind="stable"), kind="stable")
    return request, lambda outcome: outcome.build(given, scalar, rank)


def decay_rate(problem: Any, ordering: Ordering, scheme: Scheme | None = None) -> float:
    """The factor by which E|w_k - w*|^2 falls per step in the long run: the largest eigenvalue of Q on the row space.

    >>> import forgetting as fg
    >>> rate = fg.decay_rate(fg.families.two_lines(np.pi / 3), fg.orderings.WithReplacement())
    >>> round(rate, 12)   # (1 + cos^2 theta) / 2
    0.625
    """
    request, _ = ask(problem, ordering, 1, scheme, None, ("loss",), np.finfo(float).max)
    if not isinstance(ordering, WithReplacement):
        raise NotSupportedError(f"the decay rate is that of independent draws, WithReplacement, not of {ordering}")
    request.require("spectral")
    return spectral.decay(request.moment_map(homogeneous=True))


def _memory(given: float | None) -> float:
    if given is not None:
        return as_number(given, "memory", above=0)
    return min(8.0 * 2**30, available_memory() / 2)
