"""The checked arguments of `fg.solve`: the system, the method, the blocks and the ordering."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np

from forgetting.compute.threads import cores
from forgetting.core.arrays import (
    Array,
    Seed,
    as_count,
    as_flag,
    as_kind,
    as_number,
    check_finite,
    is_sparse,
    numbers,
    real_array,
    seed_from,
)
from forgetting.core.numerical import VANISHING
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.files.matrices import COMPLEX, read_matrix
from forgetting.files.row_sources import RowSource
from forgetting.orderings import Ordering, Reshuffled
from forgetting.orderings.base import OrderingLike, as_ordering
from forgetting.sets import Box, ConvexSet
from forgetting.solver.block_sweeper import BlockSweeper
from forgetting.solver.blocks import divided, streamed, views
from forgetting.solver.loop import Loop, Stops
from forgetting.solver.methods import (
    ActiveSet,
    Cgls,
    Cgmn,
    DirectMethod,
    KaczmarzMethod,
    Method,
    Multipliers,
    Projected,
    System,
    registry,
)
from forgetting.solver.noise import ExactRows, Noise, as_noise, as_weights, scaled
from forgetting.solver.noise_rules import Monotone, Stopping, as_stopping
from forgetting.solver.pairs import as_pairs, is_complex, opened
from forgetting.solver.relaxation import Relaxation, as_relaxation, settled
from forgetting.solver.rows import NO_RELATIONS, Limits, Rows

LARGEST_DAMP = 1e150  # damp^2 is a number
BUDGET = 2.0**30  # bytes for factorisations of blocks, and for blocks of a streamed matrix, unless memory= says more
SENSES = {"=": 0, "==": 0, ">=": 1, "<=": -1}


@dataclass(frozen=True)
class SolveRequest:
    """A checked request: the system, the division of its rows, the order of visits, and the method.

    Attributes:
        system: the sweeper of the rows, b, x0, damp, nearest, seed.
        ordering: in which order blocks are visited.
        name: the name of the method, or "auto".
        blocks: what a block is, in words.
        relaxation: the factor of every step, by epochs.
        stopping: the rule that stops at the noise; None if the solve goes on to the tolerance.
        free: whether blocks, ordering, relaxation and method are left to the solver.
    """

    system: System
    ordering: Ordering
    name: str
    blocks: str
    relaxation: Relaxation
    stopping: Stopping | None = None
    free: bool = False

    @property
    def seed(self) -> int:
        """The seed of the random numbers."""
        return self.system.seed

    @property
    def may_switch(self) -> bool:
        """Whether another method goes on if the residual falls no more, or with damping if x stays where it is.

        A rule stops on the way to the least-squares solution, so that row steps go on until they are of no use to it.
        """
        return self.falls_back and self.stopping is None

    @property
    def falls_back(self) -> bool:
        """Whether there is another method that may go on.

        An ordering that looks at x may avoid rows on purpose, such as corrupted ones.
        """
        system = self.system
        if system.limited:  # damped systems begin with the other method
            relations = system.sweeper.limits.relations
            aims = not len(relations) or bool((relations == 0).any())  # something is left to minimise
            other = not system.damp and (system.small or aims)
        else:
            other = system.small or not system.damp  # damped systems begin with "multipliers"
        return self.name == "auto" and other and system.exact is None and not self.ordering.adaptive

    @property
    def first(self) -> type[Method]:
        """The class of the method that begins."""
        return _first(self.name, self.system, self.free)

    def method(self) -> Method:
        """The method at its start."""
        return self.first(self.system)

    def loop(self, stops: Stops) -> Loop:
        """The loop of the method that begins."""
        method = self.method()
        rule = None if self.stopping is None else self.stopping.of(method, method.x)
        loop = Loop(method, self.ordering, stops, self.seed, self.may_switch, relaxation=self.relaxation, rule=rule)
        loop.slow_ends = self.may_hurry
        return loop

    @property
    def may_hurry(self) -> bool:
        """Whether conjugate gradients on sweeps may go on where row steps are slow: nothing else was asked for."""
        return self.free and _sweeps(self.system) and issubclass(self.first, KaczmarzMethod)

    def fallback(self, x: Array, ending: str = "stalled") -> Method:
        """The method that goes on from x where row steps are too slow, or no x solves the system."""
        return self.followers[-1 if ending == "slow" else 0](self.system, x)

    @property
    def followers(self) -> tuple[type[Method], ...]:
        """The methods that may go on: where the residual falls no more, and last where row steps are slow."""
        at_once = self.system.small and self.stopping is None  # a rule stops on the way
        if self.system.limited:
            return (ActiveSet if at_once else Projected,)
        if at_once:
            return (DirectMethod,)
        # a rule stops row steps, and multipliers take them
        return (Multipliers,) if self.stopping is not None else (Cgls, Multipliers, Cgmn)


def as_request(
    A: Any,
    b: Any,
    *,
    x0: Any,
    damp: Any,
    blocks: Any,
    ordering: OrderingLike | None,
    relaxation: Any,
    method: Any,
    average: Any,
    relations: Any,
    bounds: Any,
    sets: Any,
    nearest: Any,
    memory: Any,
    threads: Any,
    seed: Seed,
    noise: Any = None,
    weights: Any = None,
    stop: Any = None,
    tau: Any = 1.02,
    residual_shape: Any = None,
    tol: float = 1e-6,
) -> SolveRequest:
    """Check the arguments of `fg.solve`."""
    if as_kind(method, str, "a name such as 'auto' or 'kaczmarz'", "method: ") != "auto":
        registry.get(method)
    budget = BUDGET if memory is None else as_number(memory, "memory", least=0)
    b, x0 = (read_matrix(v, name, COMPLEX) if _is_path(v) else v for name, v in (("b", b), ("x0", x0)))
    matrix, unit = opened(A, budget, is_complex(b) or is_complex(x0))
    shape = matrix.shape
    count = shape[0] // unit
    side, start = _sides(shape, b, x0, unit)
    if noise is not None and weights is not None:
        raise InvalidInputError("noise= and weights= together: noise= weighs the rows already; leave one of them out")
    known, factors = as_noise(_noise_of_pairs(noise, count) if unit > 1 else noise, side)
    factors = as_weights(weights, count) if weights is not None else factors
    factors = np.repeat(factors, unit) if weights is not None and factors is not None else factors
    matrix = scaled(matrix, factors)
    if factors is not None:
        side = np.ascontiguousarray((side.T * factors).T)
        named = "sqrt(weights)" if weights is not None else "max(noise) / noise"
        check_finite(side, f"b times {named}", squares=True)
        if isinstance(matrix, Rows):
            check_finite(matrix.matrix, f"A times {named}", squares=True)
    stopping = as_stopping(stop, known, tau, tol, residual_shape, count)
    if unit > 1 and stopping is not None:
        stopping = replace(stopping, unit=unit)
    if not isinstance(matrix, RowSource):
        _check_steps(matrix, side, unit)
    if unit > 1:
        _check_real(relations, bounds, sets, "A" if is_complex(A) else "b or x0")
    damp = as_number(damp, "damp", least=0, below=LARGEST_DAMP)
    limits = _limits(shape, relations, bounds)
    others = _sets(sets, shape[1])
    limited = len(limits.relations) > 0 or len(limits.low) > 0 or len(others) > 0
    least_squares = method != "auto" and registry.get(method).least_squares
    constrains = method != "auto" and registry.get(method).constrains
    if limited and (side.ndim == 2 or (least_squares and not constrains)):
        flat = f"one right-hand side, a b of shape ({shape[0]},) and not {side.shape}"
        what = flat if side.ndim == 2 else "method='active-set' or 'projected' for least squares"
        raise NotSupportedError(f"inequalities, bounds and sets need {what}")
    if constrains and not limited:
        raise NotSupportedError(f"method={method!r} is for bounds, inequalities and sets; there are none")
    if method == "active-set" and any(convex.inequalities() is None for convex in others):
        raise NotSupportedError("method='active-set' needs sets that are polyhedra; method='projected' takes them")
    if damp and method != "auto" and not registry.get(method).damps:
        raise NotSupportedError(
            f"damp is for least-squares methods such as 'multipliers' and 'direct', not for {method!r}"
        )
    several = count if isinstance(average, str) and average == "all" else as_count(average, "average", least=1)
    simultaneous = method != "auto" and registry.get(method).simultaneous
    if simultaneous and (several != 1 or nearest):
        given = "nearest=True" if several == 1 else "average="
        raise NotSupportedError(f"method={method!r} averages the rows of a block by its own weights; leave {given} out")
    relaxed = as_relaxation(relaxation, 2.0 * several)
    options: dict[str, Any] = {
        "limits": limits,
        "relaxation": relaxed.number if relaxed.constant else 1.0,
        "average": several,
        "threads": cores() if threads is None else as_count(threads, "threads", least=1),
        "unit": unit,
    }
    if damp and method == "averaged" and (several != 1 or not relaxed.constant or options["relaxation"] != 1):
        raise NotSupportedError("method='averaged' with damp needs relaxation=1 and average=1")
    chosen = None if ordering is None else as_ordering(ordering)
    unset = chosen is None and isinstance(blocks, str) and blocks == "auto"
    free = method == "auto" and unset and stopping is None and relaxed.constant and relaxed.number == 1
    if several > 1 and chosen is not None and chosen.adaptive:
        raise NotSupportedError("average= needs an ordering that does not look at x; leave ordering= or average= out")
    number, flag = seed_from(seed), as_flag(nearest, "nearest")
    if isinstance(matrix, RowSource):
        sweeper_of_stream, words = streamed(matrix, blocks, method, chosen, budget, number, options)
        if known is not None and len(known.exact):
            raise NotSupportedError(
                f"noise: row {known.exact[0] // unit} has none, and A is streamed block by block; give such rows a "
                "little noise, or memory= for a matrix in memory"
            )
        system = System(sweeper_of_stream, side, start, damp, flag, number, others)
        order = _usual_order(method, damp) if chosen is None else chosen
        return _ruled(SolveRequest(system, order, method, words, relaxed, stopping))
    if simultaneous:
        blocks = views(method, blocks, count, residual_shape)
    by_rows = method == "averaged"
    if by_rows and not (isinstance(blocks, str) and blocks in ("auto", "rows")):
        raise NotSupportedError("method='averaged' visits rows; leave blocks= out")
    sweeper, words = divided(matrix, side, blocks, chosen is not None or by_rows or limited, budget, options)
    if isinstance(sweeper, BlockSweeper) and len(limits.relations):
        given = f"method={method!r}" if simultaneous else "blocks="
        raise NotSupportedError(f"inequalities are visited row by row; leave {given} out")
    if chosen is None:  # rows that are all zero have no weights
        chosen = _usual_order(method, damp) if matrix.squares.any() else Reshuffled()
    exact = None if known is None else _exact(matrix, side, known, method, damp, limits, unit)
    system = System(sweeper, side, start, damp, flag, number, others, chosen.trusted, exact)
    if simultaneous:
        words = (
            "all rows at once"
            if sweeper.num_blocks == 1
            else words.replace("projections onto their", "averaged steps towards their")
        )
    return _ruled(SolveRequest(system, chosen, method, words, relaxed, stopping, free))


def _ruled(request: SolveRequest) -> SolveRequest:
    """The request with the relaxation that its blocks ask for, if its rule can stop its method."""
    stopping, sweeper = request.stopping, request.system.sweeper
    if stopping is not None and stopping.rule is Monotone and request.method().simultaneous_weights is None:
        raise NotSupportedError(
            "stop='monotone' is for methods that make all steps of an epoch from the same x: average='all' with "
            "blocks='rows', or method='sirt' (no inequalities, sets or exact rows); stop='discrepancy' is for all"
        )
    blind = stopping is not None and stopping.noise is None
    chosen = settled(request.relaxation, sweeper, simultaneous=request.first.simultaneous, blind=blind)
    return replace(request, relaxation=chosen)


def _exact(
    matrix: Rows, b: Array, noise: Noise, method: str, damp: float, limits: Limits, unit: int
) -> ExactRows | None:
    """The rows without noise, if there are some."""
    if not len(noise.exact):
        return None
    if damp or not issubclass(registry.get("kaczmarz" if method == "auto" else method), KaczmarzMethod):
        raise NotSupportedError(
            f"noise: row {noise.exact[0] // unit} has none, which needs method='kaczmarz', and damp=0"
        )
    if len(limits.relations):
        raise NotSupportedError(f"noise: row {noise.exact[0] // unit} has none, which needs rows that are equations")
    sides = np.abs(b).reshape(len(b), -1).max(axis=1)
    empty = noise.exact[(matrix.squares[noise.exact] == 0) & (sides[noise.exact] > 0)]
    if len(empty):
        i = int(empty[0])
        raise InvalidInputError(
            f"noise: row {i // unit} has none, all its entries are 0 and b is {sides[i]:g} there, so that no x solves "
            "it; leave the row out, or give it noise"
        )
    return ExactRows(matrix, b, noise.exact, limits)


def _sweeps(system: System) -> bool:
    """Whether conjugate gradients on sweeps can solve a system, and the matrix is no small one."""
    sweeper = system.sweeper
    plain = not system.limited and not system.damp and system.exact is None and system.trusted == 1
    return plain and sweeper.in_memory and sweeper.row_steps and sweeper.average == 1 and not system.small


def _usual_order(name: str, damp: float) -> Ordering:
    """The ordering unless the user chooses one."""
    auto = "multipliers" if damp else "kaczmarz"
    order: Ordering = registry.get(auto if name == "auto" else name).usual_order()
    return order


def _first(name: str, system: System, free: bool) -> type[Any]:
    """The class of the method that begins."""
    if name == "auto" and system.damp and system.limited:
        return ActiveSet if system.small else Projected
    if name == "auto" and free and _sweeps(system) and system.sweeper.shape[0] < system.sweeper.shape[1]:
        return Cgmn  # rows are few, and are swept often
    auto = "multipliers" if system.damp else "kaczmarz"
    return registry.get(auto if name == "auto" else name)


def _is_path(value: Any) -> bool:
    return isinstance(value, str | PathLike)


def _check_real(relations: Any, bounds: Any, sets: Any, what: str) -> None:
    """Raise if a complex system has constraints: complex numbers have no order."""
    plain = isinstance(relations, str) and relations == "="
    named = "bounds" if bounds is not None else "relations" if not plain else "sets" if _some(sets) else None
    if named is not None:
        raise NotSupportedError(
            f"{named}: {what} is complex, and so is x, which has no order and no sets here; for bounds on real and "
            "imaginary parts solve [[Re A, -Im A], [Im A, Re A]] (Re x, Im x) = (Re b, Im b)"
        )


def _some(sets: Any) -> bool:
    return isinstance(sets, ConvexSet) or np.size(sets) > 0


def _noise_of_pairs(noise: Any, count: int) -> Any:
    """The noise of the real and of the imaginary part of every row: each has half of the variance."""
    if noise is None or (isinstance(noise, str | tuple | list) and any(isinstance(part, str) for part in noise)):
        return noise  # relative: of |b|
    if np.ndim(noise) == 0:
        return as_number(noise, "noise", least=0) / np.sqrt(2)
    given = real_array(noise, "noise")
    if given.shape != (count,):
        raise InvalidInputError(f"noise: expected one number for each of {count} rows, got shape {given.shape}")
    odd = np.flatnonzero(given < 0)
    if len(odd):
        raise InvalidInputError(f"noise: the number of row {odd[0]} is {given[odd[0]]:g}; it must not be negative")
    return np.repeat(given, 2) / np.sqrt(2)


def _sides(shape: tuple[int, int], b: Any, x0: Any, unit: int) -> tuple[Array, Array]:
    """The right-hand sides and the start."""
    m, n = (length // unit for length in shape)

    def checked(given: Any, what: str) -> Array:
        return as_pairs(given, what) if unit > 1 else real_array(given, what, squares=True)

    for name, given in (("b", b), ("x0", x0)):
        if is_sparse(given):
            raise InvalidInputError(f"{name} is sparse; give {name}.toarray()")
    side = checked(b, "b")
    if side.ndim not in (1, 2) or len(side) != shape[0] or 0 in side.shape:
        given = np.shape(b) if unit > 1 else side.shape
        raise InvalidInputError(f"A has {m} rows, but b has shape {given}; expected ({m},), or ({m}, c)")
    totals = np.sum(side * side, axis=0)
    if np.any((totals < VANISHING) & side.any(axis=0)):
        raise InvalidInputError("b: the squares of a right-hand side vanish, its entries are so small; rescale them")
    shaped = (shape[1], *side.shape[1:])
    start = np.zeros(shaped) if x0 is None else checked(x0, "x0")
    if start.shape != shaped:
        given, wanted = np.shape(x0) if unit > 1 else start.shape, (n, *side.shape[1:])
        raise InvalidInputError(f"x0 has shape {given}; expected {wanted} for A of shape {(m, n)}")
    return np.ascontiguousarray(side), start


def _check_steps(rows: Rows, b: Array, unit: int) -> None:
    """Raise if b_i / |a_i|^2 overflows, or vanishes for all rows: no step could be made."""
    largest = np.abs(b).reshape(len(b), -1).max(axis=1)
    nonzero = (rows.squares > 0) & (largest > 0)
    with np.errstate(all="ignore"):
        steps = largest[nonzero] / rows.squares[nonzero]
    if len(steps) and not VANISHING < steps.max() < 1 / VANISHING:
        i = int(np.flatnonzero(nonzero)[np.argmax(steps)])
        raise InvalidInputError(
            f"row {i // unit} of A has the norm {np.sqrt(rows.squares[i]):.2g} and b the entry {largest[i]:.2g}; "
            "rescale A or b"
        )


def _limits(shape: tuple[int, int], relations: Any, bounds: Any) -> Limits:
    """The relations of the rows and the bounds on x."""
    m, n = shape
    senses = NO_RELATIONS
    if not isinstance(relations, str) or relations != "=":
        try:
            given = [relations] * m if isinstance(relations, str) else list(relations)
        except TypeError:
            raise InvalidInputError(f"relations: expected '=', '>=' or '<=', got {relations!r:.40}") from None
        if len(given) != m:
            raise InvalidInputError(f"relations: expected one for all rows, or one for each of {m}, got {len(given)}")
        unknown = next((i for i, sense in enumerate(given) if str(sense) not in SENSES), None)
        if unknown is not None:
            raise InvalidInputError(f"relation {given[unknown]!r:.40} of row {unknown}: expected '=', '>=' or '<='")
        codes = np.array([SENSES[str(sense)] for sense in given], dtype=np.int8)
        senses = codes if codes.any() else senses
    if bounds is None:
        return Limits(senses)
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise InvalidInputError(f"bounds: expected (low, high), got {bounds!r:.60}") from None
    if low is None or high is None:
        raise InvalidInputError("bounds: got None; use -inf or inf for no bound")
    ends = [numbers(end, "bounds") for end in (low, high)]
    if any(end.shape not in ((), (n,)) for end in ends):
        raise InvalidInputError(
            f"bounds: expected numbers, or {n} numbers each, got shapes {[end.shape for end in ends]}"
        )
    try:
        box = Box(*(np.broadcast_to(end, n).copy() for end in ends))
    except InvalidInputError as error:
        raise InvalidInputError(f"bounds (lo, hi): {error}") from None
    return Limits(senses, np.array(box.lo), np.array(box.hi))


def _sets(sets: Any, n: int) -> tuple[ConvexSet, ...]:
    """The convex sets that x must lie in."""
    wanted = "a convex set such as fg.Ball(centre, radius)"
    try:
        given = (sets,) if isinstance(sets, ConvexSet) else tuple(sets)
    except TypeError:
        raise InvalidInputError(f"sets: expected {wanted}, or a list of them, got {sets!r:.60}") from None
    filled = []
    for i, convex in enumerate(given):
        filled.append(as_kind(convex, ConvexSet, wanted, f"set {i}: ").with_dim(n))
        if filled[i].dim != n:
            raise InvalidInputError(f"set {i} has dimension {filled[i].dim}, but A has {n} columns")
    return tuple(filled)
