"""Many runs with independent orders; for linear schemes the runs are compiled and use several threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from forgetting.compute.devices import HOST, Device, as_device
from forgetting.compute.threads import cores
from forgetting.core.arrays import Array, IntArray, Seed, as_count, as_index, seed_from
from forgetting.core.extras import module_for
from forgetting.core.memory import require_memory
from forgetting.core.numerical import quietly
from forgetting.core.progress import Progress, progress_bar, reports_progress, track
from forgetting.dynamics import metrics
from forgetting.dynamics.device_runs import DeviceRuns
from forgetting.dynamics.loop import recorded_steps, run
from forgetting.dynamics.space import given_scheme, resolve, restored_space, view_of
from forgetting.dynamics.taking_turns import runs_in_turn
from forgetting.dynamics.trajectory import LONG_RUN, Trajectory, remarks, some_rows
from forgetting.errors import ForgettingError, InvalidInputError, NotSupportedError
from forgetting.figures.items import Curves, Series, column
from forgetting.files.records import checked_fields, field_values
from forgetting.geometry import Geometry
from forgetting.orderings import Explicit, Ordering
from forgetting.orderings.base import NO_UPDATE, OrderingLike, as_ordering, drawn_orders
from forgetting.results import Result
from forgetting.schemes import LinearScheme, LinearSteps, Scheme
from forgetting.schemes.base import SchemeLike
from forgetting.schemes.linear import gains_of_steps
from forgetting.tasks import Problem
from forgetting.tasks.problem import as_problem

SHOWN = (0.05, 0.5, 0.95)  # quantiles of the runs
STEPS = 2**20  # of all runs of a slice
TOGETHER = 64  # runs whose distances are computed at once, for orderings that look at them
MOST_GAINS = 2**26  # numbers of a table of gains of all steps: 512 MiB
MOST_DUAL = 8192  # the most rows R of a block Gram matrix for runs in the dual form: 512 MiB

__all__ = ["Ensemble", "run_many"]


@dataclass(frozen=True, eq=False, repr=False)
class Ensemble(Result):
    """Many runs with independent orders: the attributes of `Trajectory` with a leading axis of runs.

    Losses and regret are computed with the runs. Forgetting, iterates and the loss matrix are computed from the orders
    when they are first used. `ensemble[i]` is run i as a `Trajectory`.
    """

    kind = "ensemble"
    _along = True

    problem: Problem
    ordering: Ordering
    scheme: Scheme
    seed: int
    order: IntArray
    steps: IntArray
    losses: Array
    complaints: tuple[str, ...]
    w0: Array
    before: Array
    after: Array
    threads: int
    device: str | None = None

    def __len__(self) -> int:
        return len(self.order)

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """Warnings about the runs; see `Trajectory.remarks`."""
        return remarks(self, lambda: self.losses)

    @property
    def status(self) -> str:
        """The number of runs and steps, and the remarks."""
        runs, k = self.order.shape
        return "; ".join([f"completed {runs} runs of {k} steps", *self.remarks])

    def __getitem__(self, i: int) -> Trajectory:
        if not isinstance(i, int | np.integer):
            raise InvalidInputError(f"the number of a run must be a whole number, got {i!r:.60}")
        if not -len(self) <= i < len(self):
            raise IndexError(f"there is no run of this number; runs are 0 to {len(self) - 1}")
        # a list of tasks has no place for "no update", so that an ordering that skips has to choose again
        made = run(
            self.problem,
            self.ordering if self.ordering.skips else Explicit(self.order[i]),
            self.order.shape[1],
            scheme=self.scheme,
            seed=_seed_of(self.seed, range(len(self))[i]),
            w0=self.w0,
            record_every=self.steps.tolist(),
        )
        if not np.array_equal(made.order, self.order[i]):
            raise ForgettingError(
                f"run {i}: {self.ordering} chose other tasks than are recorded, since this machine rounds differently "
                "from that of the runs; make the runs again with fg.run_many"
            )
        return made

    # ------------------------------------------------------------------------------------- looking at it, keeping it

    @property
    def headline(self) -> str:
        runs, k = self.order.shape
        return f"{runs} runs of {k} steps on {self.problem}, {self.ordering.in_words}, {self.scheme}, seed {self.seed}"

    def _num_rows(self) -> int:
        return len(self.steps)

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Any]:
        losses = self.losses[:, rows]
        low, middle, high = np.quantile(losses, SHOWN, axis=0)
        return {
            "step": self.steps[rows],
            "mean loss": losses.mean(axis=0),
            "median": middle,
            "5 %": low,
            "95 %": high,
        }

    def _remarks(self) -> tuple[str, ...]:
        return self.complaints[:1]

    def to_frame(self) -> Any:
        """Every recorded step of every run as a pandas DataFrame: run, step, loss, forgetting, regret."""
        pd = module_for("to_frame", "pandas")
        runs, steps = len(self), self.steps
        columns: dict[str, Any] = {"run": np.repeat(np.arange(runs), len(steps)), "step": np.tile(steps, runs)}
        columns["loss"] = self.losses.ravel()
        for name in ("forgetting", "regret"):
            padded = np.concatenate([np.full((runs, 1), np.nan), getattr(self, name)], axis=1)
            columns[name] = padded[:, steps].ravel()
        return pd.DataFrame(columns)

    def figure(self) -> Curves:
        """The median and the middle 90 % of the losses of the runs, and their mean."""
        rows = np.union1d([0], some_rows(self.steps, int(self.steps[-1])))
        table = self._columns(rows, full=False)
        steps, low, high = (column(table[name]) for name in ("step", "5 %", "95 %"))
        curves = (
            Series("median and 90 % of the runs", steps, column(table["median"]), low, high, "simulated", group=0),
            Series("mean", steps, column(table["mean loss"]), role="simulated", group=1),
        )
        runs, k = self.order.shape
        title = f"{runs} runs, {self.ordering.in_words}"
        return Curves("runs", title, self.headline, "k, tasks learned", "loss", curves, xlog=k > LONG_RUN)

    def _saved(self) -> dict[str, Any]:
        return field_values(self, "device") | {"geometry": compiled_form(self.problem, self.scheme)[1]}

    @classmethod
    def _restored(cls, values: dict[str, Any]) -> Ensemble:
        geometry = values.pop("geometry", None)
        made = cls(**checked_fields(cls, values))
        restored_space(made.problem, made.scheme, made.w0, geometry, made.order.shape[-1])
        if made.order.ndim != 2 or made.threads < 1 or made.seed < 0:
            raise ForgettingError("the parts of the runs do not fit together")
        as_index(made.order.ravel(), made.problem.num_tasks, "order", least=NO_UPDATE if made.ordering.skips else 0)
        steps, (runs, k) = made.steps.tolist(), made.order.shape
        fits = made.before.shape == made.after.shape == (runs, k) and made.losses.shape == (runs, len(steps))
        if not fits or not steps or steps != sorted(set(steps)) or steps[0] < 0 or steps[-1] > k:
            raise ForgettingError("the parts of the runs do not fit together")
        return made

    @cached_property
    def regret(self) -> Array:
        """Regret after each step, (runs, k)."""
        return metrics.paper_regret(self.before, self.order)

    @cached_property
    def forgetting(self) -> Array:
        """Forgetting after each step, (runs, k); NaN at steps that were not recorded."""
        linear, geometry = compiled_steps(self.problem, self.scheme.fitted_to(self.problem, self.order.shape[1]))
        if linear is None or geometry is None or self.ordering.skips:
            return self._replayed("forgetting", 1)
        result = np.full(self.order.shape, np.nan)
        keep = self.steps[self.steps > 0]
        values = batch_forgetting(
            geometry, linear, self.order, self.w0, keep, threads=self.threads, device=as_device(self.device)
        )
        result[:, keep - 1] = np.where(keep == 1, 0.0, values)  # after one step nothing has been forgotten
        return result

    @cached_property
    def iterates(self) -> Array:
        """Iterates at the recorded steps, (runs, len(steps), d)."""
        return self._replayed("iterates", self.w0.size)

    @cached_property
    def scaled_iterates(self) -> Array:
        """The iterates divided by the scale of the scheme, at the recorded steps, (runs, len(steps), d)."""
        return self._replayed("scaled_iterates", self.w0.size)

    @cached_property
    def forgetting_bound(self) -> Array:
        """R^2/(2k) sum_t dist^2(w_k, C_tau(t)) after each step, (runs, k); see `Trajectory`."""
        return self._replayed("forgetting_bound", 1)

    @cached_property
    def residuals(self) -> Array:
        """Distances to every task's solutions at the recorded steps, (runs, len(steps), T)."""
        return self._replayed("residuals", self.problem.num_tasks)

    @cached_property
    def predictions(self) -> Array:
        """For kernel tasks: the model's values at all rows, (runs, len(steps), N)."""
        return self._replayed("predictions", self.w0.size)

    @cached_property
    def loss_matrix(self) -> Array:
        """Task losses at the recorded steps, (runs, len(steps), T)."""
        return self._replayed("loss_matrix", self.problem.num_tasks)

    def _replayed(self, name: str, width: int) -> Array:
        """The attribute `name` of every run, which has `width` numbers at each recorded step."""
        shape = len(self), len(self.steps), width
        require_memory(
            16.0 * len(self) * len(self.steps) * width,
            f"the {name} of {shape[0]} runs, {shape[1]} steps and {width} numbers each,",
            "ask single runs, ensemble[i], or record fewer steps: record_every=",
        )
        return np.stack([getattr(self[i], name) for i in range(len(self))])


@reports_progress
def run_many(
    problem: Problem,
    ordering: OrderingLike,
    k: int,
    runs: int = 1000,
    scheme: SchemeLike | None = None,
    seed: Seed = 0,
    w0: Any = None,
    record_every: int | Sequence[int] = 1,
    threads: int | None = None,
    *,
    device: Any = None,
    progress: Progress = False,
) -> Ensemble:
    """Make many runs with independent orders; for linear schemes the runs are compiled and use several threads.

    The result depends on the seed and not on `threads` (default: all cores); run i does not depend on `runs`. `device`
    makes the runs of a linear scheme elsewhere: on "cuda" or another torch device, or on "cupy". Orders are those that
    the CPU makes with the same seed, and losses agree with those of the CPU up to rounding. All other
    arguments are those of `run`.

    >>> import forgetting as fg
    >>> runs = fg.run_many(fg.families.two_lines(0.5), fg.orderings.WithReplacement(), k=10, runs=100, seed=1)
    >>> runs.losses.shape, runs.forgetting.shape
    ((100, 11), (100, 10))
    """
    k, runs = as_count(k, "k"), as_count(runs, "runs", least=1)
    seed, ordering = seed_from(seed), as_ordering(ordering, as_problem(problem).names)
    workers = cores() if threads is None else as_count(threads, "threads", least=1)
    given = given_scheme(problem, scheme)
    scheme, space = resolve(problem, given, w0, k)
    ordering.check(problem.num_tasks, k)
    start, there = space.w0, as_device(device)
    steps = recorded_steps(k, record_every)
    linear, geometry = compiled_steps(problem, scheme)
    at_once = linear is not None and not ordering.adaptive
    each = 32.0 * k + 8.0 * len(steps) * (1 if at_once else 1 + space.start().size)  # order, losses; iterates
    require_memory(
        runs * each,
        f"{runs} runs of {k} steps, {len(steps)} of them recorded,",
        'use fewer runs, record fewer steps (record_every=), or fg.expect(..., method="monte-carlo") for means alone',
    )
    apart = geometry is not None and linear is not None and not linear.alike
    if apart and (not there.host or k * len(geometry.sigma) > MOST_GAINS):  # type: ignore[union-attr]
        linear = None
    if ordering.adaptive or linear is None or geometry is None:
        if not there.host:
            raise NotSupportedError(
                "device= makes runs of linear schemes in orders that do not look at w, not of "
                f"{scheme} with {ordering}; leave out device="
            )
        seeds = [_seed_of(seed, i) for i in range(runs)]
        size = TOGETHER if ordering.adaptive else 1
        groups = [seeds[first : first + size] for first in range(0, runs, size)]
        trajectories = [
            trajectory
            for group in track(groups, "runs")
            for trajectory in runs_in_turn(problem, ordering, k, group, scheme, w0, record_every)
        ]
        orders = np.stack([trajectory.order for trajectory in trajectories])
        losses, before, after = (
            np.stack([getattr(trajectory, name) for trajectory in trajectories])
            for name in ("losses", "before", "after")
        )
        complaints = [complaint for trajectory in trajectories for complaint in trajectory.complaints]
    else:
        rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])
        orders = drawn_orders(ordering, view_of(problem), k, runs, rng)
        losses, before, after = batch_losses(geometry, linear, orders, start, steps, threads=workers, device=there)
        complaints = []
    said = tuple(dict.fromkeys(complaints))
    return Ensemble(
        problem, ordering, given, seed, orders, steps, losses, said, start, before, after, workers, there.spec
    )


def compiled_form(problem: Problem, scheme: Scheme) -> tuple[LinearScheme | None, Geometry | None]:
    """The linear scheme and the geometry for the compiled loops; (None, None) if `scheme.learn` makes the steps."""
    return (scheme.linear_on(problem), problem.geometry) if scheme.intrinsic else (None, None)


def compiled_steps(problem: Problem, scheme: Scheme) -> tuple[LinearSteps | None, Geometry | None]:
    """The linear steps and the geometry for the compiled loops; (None, None) if `scheme.learn` makes the steps."""
    return (scheme.linear_steps_on(problem), problem.geometry) if scheme.intrinsic else (None, None)


def _seed_of(seed: int, i: int) -> int:
    """The seed of run i; runs of different ensemble seeds get unrelated seeds."""
    return int(np.random.SeedSequence(seed, spawn_key=(1, i)).generate_state(1, np.uint64)[0])


@quietly()
def batch_losses(
    geometry: Geometry,
    scheme: LinearScheme | LinearSteps,
    orders: IntArray,
    w0: Array,
    keep: IntArray,
    *,
    threads: int,
    device: Device = HOST,
) -> tuple[Array, Array, Array]:
    """Mean losses at the steps `keep`, and at every step the loss of the task learned, before and after."""
    outputs = [runs.losses(orders, keep) for runs in _runs_of_outputs(geometry, scheme, w0, threads, device)]
    losses, before, after = (
        parts[0] if len(parts) == 1 else np.sum(parts, axis=0) for parts in zip(*outputs, strict=True)
    )
    if not geometry.explained:
        losses += float(geometry.unexplained @ geometry.counts) / geometry.num_tasks
        missed = geometry.unexplained[geometry.distinct(orders)]
        before += missed
        after += missed
    return losses, before, after


def batch_forgetting(
    geometry: Geometry,
    scheme: LinearScheme | LinearSteps,
    orders: IntArray,
    w0: Array,
    keep: IntArray,
    *,
    threads: int,
    device: Device = HOST,
) -> Array:
    """Forgetting at the steps `keep`, all at least 1; shape (runs, len(keep))."""
    outputs = _runs_of_outputs(geometry, scheme, w0, threads, device)
    return np.asarray(sum(runs.forgetting(orders, keep) for runs in outputs))


def _runs_of_outputs(
    geometry: Geometry, scheme: LinearScheme | LinearSteps, w0: Array, threads: int, device: Device
) -> list[CompiledRuns | DeviceRuns]:
    """The runs of each output, which share the orders and nothing else."""
    steps = scheme if isinstance(scheme, LinearSteps) else LinearSteps.of(scheme)
    starts = (w0,) if geometry.outputs is None else w0.T
    each = zip(geometry.each_output, starts, strict=True)
    if not device.host:
        return [DeviceRuns.made(device, part, steps.at(1).scheme, start) for part, start in each]
    return [CompiledRuns(part, steps, start, threads) for part, start in each]


@dataclass(frozen=True, eq=False)
class CompiledRuns:
    """Runs of a linear scheme on tasks with one output, from one start, by compiled loops in several threads."""

    geometry: Geometry
    steps: LinearSteps
    w0: Array
    threads: int

    def losses(self, orders: IntArray, keep: IntArray) -> tuple[Array, Array, Array]:
        """Mean losses at the steps `keep`, and at every step the loss of the task learned, before and after.

        All losses are without the part that no w can fit.
        """
        from forgetting.compute import run_kernels

        runs, k = orders.shape
        losses, before, after = np.empty((runs, len(keep))), np.empty((runs, k)), np.zeros((runs, k))
        dual = dual_is_cheaper(self.geometry, len(keep) / (k + 1))
        rows, offsets, table, which, factors, origin, targets, sigma, start = self._setting(dual, k)
        distinct = self.geometry.distinct(orders)
        constant = 0.0
        if dual:
            weights = self.geometry.loss_weights
            scaled = (
                rows * weights / weights[:, None],
                offsets,
                table,
                which,
                factors,
                origin * weights,
                sigma / weights,
            )
            start = start * weights

            def work(part: slice) -> None:
                results = losses[part], before[part], after[part]
                run_kernels.ensemble_dual(*scaled, distinct[part], start, keep, *results)
        else:
            form, shift, constant = self.geometry.loss_form

            def work(part: slice) -> None:
                results = losses[part], before[part], after[part]
                setting = rows, offsets, table, which, factors, origin, targets, sigma, form, shift
                run_kernels.ensemble_primal(*setting, distinct[part], start, keep, *results)

        _parallel(work, orders, self.threads)
        losses += constant
        return losses, before, after

    def forgetting(self, orders: IntArray, keep: IntArray) -> Array:
        """Forgetting at the steps `keep`, all at least 1; (runs, len(keep))."""
        from forgetting.compute import run_kernels

        values = np.empty((len(orders), len(keep)))
        dual = dual_is_cheaper(self.geometry, 1.0)
        rows, offsets, table, which, factors, origin, targets, sigma, start = self._setting(dual, orders.shape[1])
        distinct = self.geometry.distinct(orders)

        def work(part: slice) -> None:
            setting = dual, rows, offsets, table, which, factors, origin, targets, sigma
            run_kernels.ensemble_forgetting(*setting, distinct[part], start, keep, values[part])

        _parallel(work, orders, self.threads)
        return values

    def _setting(self, dual: bool, k: int) -> tuple[Any, ...]:
        """The rows, offsets, gains of k steps, z = 0, targets, sigma and the start, in dual or primal form."""
        geometry = self.geometry
        start, rows, origin = geometry.start(self.w0), geometry.rows, geometry.solution
        if dual:
            start, rows, origin = geometry.errors(start), geometry.gram, geometry.targets + geometry.rows @ origin
        gains = gains_of_steps(geometry, self.steps, 1, k)
        fixed = geometry.targets, geometry.sigma, np.ascontiguousarray(start)
        return rows, geometry.offsets, *gains, np.ascontiguousarray(origin), *fixed


def dual_is_cheaper(geometry: Geometry, recorded: float) -> bool:
    """Whether a step in the dual (R numbers) costs less than in the primal (D numbers).

    `recorded` is the part of the steps at which the mean loss is computed.
    """
    total, dim = len(geometry.sigma), geometry.dim
    rank = max(total / geometry.num_distinct, 1.0)
    return rank * total + recorded * total < 2 * rank * dim + recorded * min(total, dim) * dim and total <= MOST_DUAL


def _parallel(work: Callable[[slice], None], orders: IntArray, threads: int) -> None:
    """Call `work` with slices of the rows of `orders`, in several threads.

    An interrupt ends this at once; threads at work end with their slices, of no more than about STEPS steps.
    """
    total = len(orders)
    edges = np.linspace(0, total, min(total, max(4 * threads, orders.size // STEPS)) + 1).astype(int).tolist()
    slices = [slice(a, b) for a, b in pairwise(edges)]
    pool = ThreadPoolExecutor(threads)
    try:
        with progress_bar("runs") as report:
            for part, _ in zip(slices, pool.map(work, slices), strict=True):
                report("runs", part.stop, total)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # all are done, or somebody has lost patience
