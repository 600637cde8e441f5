"""The landscape of orders: a quantity after every order of the tasks, from a problem or from a user's own trainings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations as all_permutations
from os import PathLike
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from forgetting.auditing.landscape_files import (
    KEYS,
    Layout,
    checked_orders,
    checked_seeds,
    checked_task_values,
    checked_values,
    read_values,
    write_values,
)
from forgetting.auditing.landscape_page import histogram, positions, sentences
from forgetting.auditing.order_statistics import (
    LEVELS,
    OrderDisparity,
    OrderSpread,
    OrderVariance,
    SeedAgreement,
    agreement_of,
    order_disparity,
    ranks_of,
    split_variance,
)
from forgetting.auditing.orders import MOST_ORDERS, Quantity, as_permutation, extreme_order, order_value
from forgetting.core.arrays import Array, IntArray, as_flag, as_kind, as_list, read_only, real_array
from forgetting.core.progress import Progress, reports_progress, track
from forgetting.dynamics.ensembles import compiled_form
from forgetting.dynamics.loop import run
from forgetting.dynamics.space import resolve
from forgetting.errors import InvalidInputError, MissingValueError, NotSupportedError, ProblemFileError
from forgetting.figures.items import Curves, Matrix
from forgetting.orderings import Explicit
from forgetting.results import Result
from forgetting.schemes.base import SchemeLike
from forgetting.tasks import Problem

MOST_RUNS = 5040  # orders learned one by one: all orders of 7 tasks


@dataclass(frozen=True, eq=False, repr=False)
class Landscape(Result):
    """The values of all orders of T tasks, for one or more seeds; or of some orders, as a sample.

    Values are whatever was measured at the end of each order: a loss, forgetting, an accuracy. How they came about does
    not matter, so that networks can be audited by their values alone.

    Attributes:
        permutations: (n, T), the orders: row r lists the tasks 0 to T - 1 as they were learned. Rows may be given in
            any order, and are kept in lexicographic order.
        values: (n, M), a column for each seed; a vector is one seed.
        seeds: M different numbers or words; 0 to M - 1 if left out.
        quantity: what the values are, in a word or two.
        higher_is_better: True for accuracies, False for losses and forgetting.
        task_values: (n, T, M), the value of each task at the end of each order (column t is task t, whenever it was
            learned); None if not known.
        names: the names of the tasks; their numbers if left out.
        complete: whether all T! orders are there. True refuses anything else; False takes some orders as a sample,
            whose variance is not split.

    >>> landscape = Landscape([[1, 0], [0, 1]], [3.0, 1.0], quantity="loss")
    >>> landscape.permutations.tolist(), landscape.values[:, 0].tolist(), landscape.spread.best.order
    ([[0, 1], [1, 0]], [1.0, 3.0], (0, 1))
    """

    kind = "landscape"

    permutations: IntArray
    values: Array
    seeds: NDArray[Any] = None  # type: ignore[assignment]
    quantity: str = "value"
    higher_is_better: bool = False
    task_values: Array | None = None
    names: tuple[str, ...] = ()
    complete: bool = True

    def __post_init__(self) -> None:
        orders, rows = checked_orders(self.permutations, as_flag(self.complete, "complete"))
        count, T = orders.shape
        values = checked_values(self.values, count)
        fields: dict[str, Any] = {"permutations": orders[rows], "values": values[rows]}
        fields["seeds"] = checked_seeds(self.seeds, values.shape[1])
        if self.task_values is not None:
            fields["task_values"] = checked_task_values(self.task_values, (count, T, values.shape[1]))[rows]
        for name, array in fields.items():
            object.__setattr__(self, name, read_only(array))
        names = tuple(map(str, as_list(self.names, "names"))) or tuple(map(str, range(T)))
        if len(names) != T:
            raise InvalidInputError(f"names: {len(names)} names for {T} tasks")
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "quantity", as_kind(self.quantity, str, "a word that says what the values are"))
        object.__setattr__(self, "higher_is_better", as_flag(self.higher_is_better, "higher_is_better"))
        object.__setattr__(self, "complete", count == math.factorial(T))

    # --------------------------------------------------------------------------------------------------- files

    @classmethod
    def from_npz(
        cls,
        path: str | PathLike[str],
        *,
        permutations_key: str = "permutations",
        values_key: str = "values",
        seeds_key: str | None = "seeds",
        values_layout: Layout = "group-by-seed",
        **fields: Any,
    ) -> Landscape:
        """Read an .npz file with arrays `permutations` (n, T), `values` (n, M) and, if there, `seeds` (M,).

        This is the layout of the tool Task-order spectral audit (S. H. Duchowicz, Beyond Pairwise Task-Order Models: A
        Seed-Aware Spectral Audit of Continual-Learning Landscapes, NeurIPS 2026 workshop CL4FMAgents). An array
        `task_values` (n, T, M) is read as well. Nothing is unpickled, and errors name the row.

        Args:
            path: the file.
            permutations_key, values_key, seeds_key: the names of the arrays, if they are others; without seeds, or with
                seeds_key=None, seeds are numbered.
            values_layout: "group-by-seed" for values of shape (n, M), "seed-by-group" for (M, n).
            **fields: quantity, higher_is_better, names and complete, as for `Landscape`.
        """
        arrays = read_values(path, permutations_key, values_key, seeds_key, values_layout)
        try:
            return cls(**arrays, **fields)
        except InvalidInputError as error:
            raise ProblemFileError(f"{path}: {error}") from error

    def to_npz(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the arrays `permutations`, `values` and `seeds`, and `task_values` if known, as `from_npz` reads them.

        The file is written atomically. An existing file is kept unless `force` is True. `save` keeps all else, too.
        """
        write_values(path, arrays_of(self), force=as_flag(force, "force"))

    # ------------------------------------------------------------------------------------------------- figures

    @property
    def num_tasks(self) -> int:
        """The number of tasks T."""
        return len(self.permutations[0])

    @property
    def num_seeds(self) -> int:
        """The number of seeds M."""
        return len(self.values[0])

    @cached_property
    def means(self) -> Array:
        """(n,) the mean over seeds of the value of each order."""
        return np.asarray(self.values.mean(axis=1))

    @cached_property
    def _costs(self) -> Array:
        """The values, with the sign that makes smaller ones better."""
        return -self.values if self.higher_is_better else np.asarray(self.values)

    @cached_property
    def ranks(self) -> IntArray:
        """(n,) the rank of each order by the mean over seeds: 1 for the best; equal values share a rank."""
        return ranks_of(self._costs.mean(axis=1), np.arange(len(self.values)))

    @cached_property
    def spread(self) -> OrderSpread:
        """Best and worst order, mean, standard deviation and quantiles over orders, of the mean over seeds."""
        best, worst = (
            extreme_order(self.permutations, self.means, largest=largest)
            for largest in (self.higher_is_better, not self.higher_is_better)
        )
        quantiles = tuple(np.quantile(self.means, LEVELS).tolist())
        return OrderSpread(best, worst, float(self.means.mean()), float(self.means.std()), quantiles)

    @cached_property
    def variance(self) -> OrderVariance:
        """The variance over orders, split into what positions explain, what pairs add, and the rest.

        Exact, by conditional means; see `split_variance`. A sample of orders has none: conditional means of some orders
        mix the parts.
        """
        if not self.complete:
            raise MissingValueError(
                f"{len(self.values)} of the {_all_orders(self.num_tasks)} orders of {self.num_tasks} tasks: the "
                "variance over orders is split exactly if all orders are there, and the parts of a sample would mix; "
                "measure the missing orders, or look at spread and disparity"
            )
        return split_variance(self.permutations, self.values)

    @cached_property
    def agreement(self) -> SeedAgreement | None:
        """Whether the seeds agree about the orders; None for a single seed."""
        return agreement_of(self._costs) if self.num_seeds > 1 else None

    @cached_property
    def disparity(self) -> OrderDisparity | None:
        """The order-normalised performance disparity of the mean over seeds; None without `task_values`."""
        return None if self.task_values is None else order_disparity(self.task_values.mean(axis=2))

    def row(self, order: Any) -> int:
        """The row of an order in `permutations`.

        >>> Landscape([[0, 1], [1, 0]], [1.0, 3.0]).row([1, 0])
        1
        """
        tasks = as_permutation(order, self.num_tasks)
        rows = np.flatnonzero((self.permutations == tasks).all(axis=1))
        if rows.size == 0:
            raise InvalidInputError(f"the order {tasks.tolist()!r:.80} is not among the {len(self.values)} orders")
        return int(rows[0])

    # ------------------------------------------------------------------------------------------ looking at it

    @property
    def findings(self) -> tuple[str, ...]:
        """The spread of the values, what explains it, and the agreement of the seeds, in a few sentences."""
        return sentences(self)

    @property
    def headline(self) -> str:
        seeds = f", {self.num_seeds} seeds" if self.num_seeds > 1 else ""
        of = "all" if self.complete else f"{len(self.values)} of the"
        return f"{self.quantity} of {of} {_all_orders(self.num_tasks)} orders of {self.num_tasks} tasks{seeds}"

    def _num_rows(self) -> int:
        return len(self.values)

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Any]:
        """The columns of the table of orders, the best orders first."""
        rows = np.argsort(self._costs.mean(axis=1), kind="stable")[rows]
        columns: dict[str, Any] = {
            "rank": self.ranks[rows].tolist(),
            "order": [" ".join(map(str, order)) for order in self.permutations[rows].tolist()],
            self.quantity: self.means[rows].tolist(),
        }
        if self.num_seeds > 1:
            columns["sd of seeds"] = self.values[rows].std(axis=1, ddof=1).tolist()
        if full and self.num_seeds > 1:
            columns |= {f"seed {seed}": self.values[rows, at] for at, seed in enumerate(self.seeds.tolist())}
        return columns

    def _remarks(self) -> tuple[str, ...]:
        return self.findings[1:2]

    def figure(self, order: Any = None) -> Curves:
        """The distribution of the values over orders; best, worst, mean and, if given, an order are marked."""
        return histogram(self, order)

    def position_figure(self) -> Matrix | None:
        """The mean value with task i at position a, minus the mean; None unless positions explain more than chance."""
        return positions(self)


def _all_orders(T: int) -> str:
    """T! in digits, or as a power of ten where it is large."""
    return f"{math.factorial(T)}" if T <= 12 else f"{float(math.factorial(min(T, 170))):.2g}"


TaskValues = Callable[[Array], Any]  # of w: a number for each task


@reports_progress
def landscape(
    problem: Problem,
    quantity: Quantity | TaskValues = "loss",
    *,
    scheme: SchemeLike | None = None,
    w0: Any = None,
    per_task: bool = False,
    higher_is_better: bool | None = None,
    progress: Progress = False,
) -> Landscape:
    """The value of every order of the tasks after one pass, each task learned once.

    Linear schemes on regression tasks are compiled, for up to 9 tasks (T! orders of T steps); anything else is learned
    one order after another, for up to 7 tasks.

    Args:
        problem: tasks of any kind.
        quantity: "loss" (mean over tasks), "forgetting", or a function of the last iterate w that gives a number for
            each task, such as accuracies on held-out data; the value of an order is then their mean.
        scheme, w0: as for `fg.run`.
        per_task: also keep the loss of each task at the end of each order, for `disparity`; orders are then learned one
            after another. A function always gives values of tasks.
        higher_is_better: whether high values of a function are good; must be given with a function.
        progress: as for `fg.run`.

    >>> import forgetting as fg
    >>> orders = landscape(fg.families.gaussian(T=4, d=8, rank=2, seed=0), "forgetting")
    >>> len(orders.values), orders.spread.best.order, [round(share, 3) for share in orders.variance.shares.tolist()]
    (24, (1, 0, 3, 2), [0.679, 0.32, 0.001])
    """
    chosen, space = resolve(problem, scheme, w0)
    T = problem.num_tasks
    measured = callable(quantity)
    if higher_is_better is not None:
        higher_is_better = as_flag(higher_is_better, "higher_is_better")
    if not measured and not (isinstance(quantity, str) and quantity in get_args(Quantity)):
        raise InvalidInputError(f"quantity must be 'loss', 'forgetting' or a function of w, got {quantity!r:.80}")
    if measured and higher_is_better is None:
        raise InvalidInputError("higher_is_better: say whether high values of the function are good, True or False")
    if not measured and higher_is_better:
        raise InvalidInputError(f"higher_is_better=True, but a low {quantity} is good")
    apart = measured or as_flag(per_task, "per_task") or compiled_form(problem, chosen)[0] is None
    most = MOST_RUNS if apart else MOST_ORDERS
    if math.factorial(min(T, 20)) > most:
        raise NotSupportedError(
            f"{T} tasks have {_all_orders(T)} orders, too many to learn (at most {most} here); search_orders finds "
            "good and bad orders of many tasks, and Landscape(..., complete=False) takes some orders"
        )
    orders = np.array(list(all_permutations(range(T))), dtype=np.int64)
    parts: list[Array] = []
    if not apart:
        values = order_value(problem, quantity, scheme=chosen, w0=space.w0)(orders)  # type: ignore[arg-type]
    else:
        values = np.empty(len(orders))
        for row, order in enumerate(track(orders.tolist(), "orders")):
            single = run(problem, Explicit(order), T, chosen, w0=space.w0, record_every=T)
            if callable(quantity):
                parts.append(real_array(quantity(single.iterates[-1]), "the function's values", shape=(T,)))
                values[row] = parts[-1].mean()
            else:
                values[row] = (single.losses if quantity == "loss" else single.forgetting)[-1]
                if per_task:
                    parts.append(single.loss_matrix[-1])
    name = getattr(quantity, "__name__", "value") if callable(quantity) else quantity
    tasks = np.stack(parts) if parts else None
    return Landscape(orders, values, np.arange(1), name, bool(higher_is_better), tasks, problem.names)


def arrays_of(landscape: Landscape) -> dict[str, Any]:
    """The arrays of a landscape by their names in a file; task values if they are known."""
    return {name: array for name in KEYS if (array := getattr(landscape, name)) is not None}
