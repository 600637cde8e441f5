"""The base class of orderings, the checked stream of their visits, and the registry of orderings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from forgetting.core.arrays import IntArray, Seed, as_count, as_index, as_kind, seed_from, task_numbers
from forgetting.core.memory import require_memory
from forgetting.core.registry import Registry, class_decorator, dashed, from_settings, made_from, saved_settings
from forgetting.errors import InvalidInputError, OrderingError
from forgetting.files.records import Codec, add_codec
from forgetting.orderings import laws
from forgetting.orderings.view import TaskView

__all__ = ["NO_UPDATE", "Ordering", "OrderingLike", "Visits", "as_ordering", "drawn_orders", "register", "registry"]

PACKAGE = __name__.rpartition(".")[0]

NO_UPDATE = -1  # in place of a task: the step learns nothing
END = object()

registry: Registry[type] = Registry(
    "ordering",
    {
        "random": "with-replacement",
        "i.i.d.": "with-replacement",
        "permutation": "without-replacement",
        "greedy": "greedy-distance",
        "greedy single pass": "greedy-distance repeat=false",
    },
)
register: Callable[[type], type] = class_decorator(registry, lambda: Ordering)


@dataclass(frozen=True)
class Ordering:
    """Base class of orderings: state a `law`, or implement `visits`.

    An ordering with a law has exact expectations and bounds, and the visits of the law. An ordering with only `visits`
    is simulated; set `random = False` if the visits draw no random numbers, `adaptive = True` if they depend on the
    iterate, and implement `limit` if they end. With `skips = True` a visit may say "no update", by None or -1 in place
    of a task; runs are then made step by step, as those of adaptive orderings. `@fg.orderings.register` makes an
    ordering known to the command line.

    >>> from itertools import cycle
    >>> class BackAndForth(Ordering):
    ...     random = False
    ...     def visits(self, tasks, rng):
    ...         T = tasks.num_tasks
    ...         yield from cycle([*range(T), *range(T - 2, 0, -1)])
    >>> BackAndForth().first(TaskView(3), 6).tolist()
    [0, 1, 2, 1, 0, 1]
    >>> class Halving(Ordering):
    ...     law = laws.Independent(lambda tasks: np.diff(1 - 0.5 ** np.arange(tasks.num_tasks + 1), append=1.0)[:-1]
    ...                                          / (1 - 0.5 ** tasks.num_tasks))
    >>> Halving().law.probabilities(TaskView(2))
    array([0.66666667, 0.33333333])
    """

    @property
    def law(self) -> laws.Law:
        """The distribution of the visits; exact expectations and bounds use nothing else of an ordering."""
        return laws.Unknown()

    @property
    def random(self) -> bool:
        """Whether two runs from the same start can visit different tasks."""
        return self.law.random

    @property
    def adaptive(self) -> bool:
        """Whether the next task depends on the iterate."""
        return self.law.adaptive

    @property
    def skips(self) -> bool:
        """Whether a visit may say "no update": such a step learns no task, and `run.order` has -1 for it."""
        return self.law.skips

    @property
    def trusted(self) -> float:
        """The share of the tasks that are meant to be solved; the others may be wrong, and `fg.solve` lets them be."""
        return 1.0

    def __init_subclass__(cls, **options: Any) -> None:
        """Derive a law from `random`, `adaptive`, `skips`; refuse visits that differ from an inherited law."""
        super().__init_subclass__(**options)
        stated = vars(cls)
        skips = bool(stated.get("skips", False))
        if skips:  # the loop must be told step by step
            cls.adaptive = True  # type: ignore[method-assign, assignment]
        if "law" not in stated and {"random", "adaptive", "skips"} & set(stated):
            random = bool(stated.get("random", True))
            if skips or stated.get("adaptive", False):
                cls.law = laws.Adaptive(random, skips=skips)  # type: ignore[method-assign, assignment]
            else:
                cls.law = laws.Unknown() if random else laws.Fixed()  # type: ignore[method-assign, assignment]
        known = next((base for base in cls.__mro__[1:] if _of_the_package(base) and base is not Ordering), None)
        if known is not None and not _of_the_package(cls) and {"visits", "batch"} & set(stated):
            raise InvalidInputError(
                f"{cls.__name__} visits tasks differently than {known.__name__}: derive from Ordering"
            )

    @property
    def in_words(self) -> str:
        """The ordering in words, with the parameters that differ from their defaults.

        >>> import forgetting as fg
        >>> fg.orderings.WithoutReplacement().in_words, fg.orderings.WithReplacement(p=[1, 3]).in_words
        ('without replacement', 'with replacement, p=(0.25, 0.75)')
        """
        words = [dashed(type(self).__name__).replace("-", " ")]
        for parameter in fields(self):
            value = getattr(self, parameter.name)
            if value != parameter.default:
                text = str(value)
                words.append(f"{parameter.name}={text if len(text) <= 24 else text[:21] + '...'}")
        return ", ".join(words)

    def settings(self) -> dict[str, Any]:
        """The arguments with which the class makes the same ordering again; None is left out."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def _numbered(self, names: Sequence[str]) -> Ordering:
        """The ordering of tasks of these names: an ordering that was given names of tasks gets their numbers."""
        return self

    def visits(self, tasks: TaskView, rng: np.random.Generator) -> Iterator[int | IntArray | None]:
        """Yield task numbers, 0-based, one per step, or arrays of task numbers; all randomness comes from `rng`.

        An ordering that states `skips` may yield None or -1 for "no update".
        """
        return self.law.visits(tasks, rng)

    def limit(self, num_tasks: int) -> int | None:
        """The number of steps after which the visits end; None if they never end."""
        return self.law.limit(num_tasks)

    def check(self, num_tasks: int, k: int) -> None:
        """Raise if the ordering cannot give k steps over `num_tasks` tasks."""
        limit = self.limit(num_tasks)
        if limit is not None and k > limit:
            raise OrderingError(
                f"{self} ends after {limit} steps over {num_tasks} tasks, but k = {k}; use k <= {limit}"
            )
        self.law.check(num_tasks)

    def first(self, tasks: TaskView, k: int, seed: Seed = 0) -> IntArray:
        """The first k tasks of the ordering, as an array."""
        count = as_kind(tasks, TaskView, "a TaskView(num_tasks)").num_tasks
        k = as_count(k, "k")
        self.check(count, k)
        require_memory(16.0 * k, f"the first {k} tasks", "ask for fewer")
        rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed_from(seed))
        return Visits(self, tasks, rng).take(k)

    def batch(self, tasks: TaskView, k: int, runs: int, rng: np.random.Generator) -> IntArray:
        """`runs` independent orders of length k, one per row; row i does not depend on `runs`."""
        drawn = self.law.batch(tasks, k, runs, rng) if type(self).visits is Ordering.visits else None
        if drawn is not None:
            return drawn
        rows = [self.first(tasks, k, child) for child in rng.spawn(runs)]
        return np.stack(rows) if rows else np.empty((0, k), dtype=np.int64)


add_codec(Codec("ordering", Ordering, partial(saved_settings, registry), partial(from_settings, registry)))


OrderingLike = Ordering | str | Sequence[int] | Sequence[str] | IntArray


def as_ordering(value: OrderingLike, names: Sequence[str] | None = None) -> Ordering:
    """The ordering that a caller means: an ordering, its name as typed in a shell, or a list of tasks, visited once.

    Where the tasks are known, `names` are theirs, and may be in the place of their numbers.

    >>> as_ordering("cyclic"), as_ordering("explicit seq=0,1,1").seq, as_ordering([0, 2, 1]).seq
    (Cyclic(), (0, 1, 1), (0, 2, 1))
    >>> as_ordering(["b", "a"], ["a", "b"]).seq, as_ordering("cyclic order=b,a", ["a", "b"]).order
    ((1, 0), (1, 0))
    >>> as_ordering("random") == as_ordering("With replacement") == as_ordering("withreplacement") == as_ordering("iid")
    True
    >>> as_ordering("cylic")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: no ordering 'cylic'; did you mean 'cyclic'? ...
    """
    made: Any = value
    if isinstance(value, str):
        made = made_from(registry, value)
    elif isinstance(value, Sequence) or hasattr(value, "__array__"):
        numbers = made if names is None else task_numbers(made, names, "ordering")
        made = registry.get("explicit")(as_index(numbers, None, "ordering"))
    ordering: Ordering = as_kind(
        made, Ordering, "an ordering such as fg.orderings.Cyclic(), 'cyclic' or [0, 2, 1]", "ordering: "
    )
    return ordering if names is None else ordering._numbered(names)


def _of_the_package(cls: type) -> bool:
    return cls.__module__.startswith(f"{PACKAGE}.")


class Visits:
    """The visits of a single run; every task number is checked.

    >>> from forgetting.orderings import Cyclic
    >>> visits = Visits(Cyclic(), TaskView(3), np.random.default_rng(0))
    >>> visits.take(2).tolist(), visits.take(4).tolist()
    ([0, 1], [2, 0, 1, 2])
    """

    def __init__(self, ordering: Ordering, tasks: TaskView, rng: np.random.Generator) -> None:
        self._ordering = ordering
        self._num_tasks = tasks.num_tasks
        self._source = iter(ordering.visits(tasks, rng))
        self._rest = np.empty(0, dtype=np.int64)
        self._done = 0

    def take(self, size: int) -> IntArray:
        """The next `size` tasks; -1 where an ordering that may skip says "no update"."""
        size = as_count(size, "size")
        blocks: list[Any] = [self._rest]
        singles: list[Any] = []
        have, empty = len(self._rest), 0
        while have < size and (item := next(self._source, END)) is not END:
            if isinstance(item, np.ndarray):
                item = self._numbers(item)
                empty = 0 if item.size else empty + 1
                if empty == 1000:
                    raise OrderingError(f"{self._ordering} yielded {empty} empty arrays in a row; end `visits` instead")
                blocks += [singles, item] if singles else [item]
                singles = []
                have += item.size
            else:
                singles.append(NO_UPDATE if item is None else item)
                have += 1
        joined = np.concatenate([self._numbers(block) for block in [*blocks, singles] if len(block)] or [self._rest])
        taken, self._rest = joined[:size], joined[size:]
        least = NO_UPDATE if self._ordering.skips else 0
        bad = np.flatnonzero((taken < least) | (taken >= self._num_tasks))
        if bad.size:
            task, step = int(taken[bad[0]]), self._done + int(bad[0]) + 1
            hint = '; for "no update" state `skips = True` on its class' if task == NO_UPDATE else ""
            raise OrderingError(
                f"{self._ordering} named task {task} at step {step}, but tasks are 0 to {self._num_tasks - 1}{hint}"
            )
        if have < size:
            given = self._done + have
            raise OrderingError(
                f"{self._ordering} ran out after {given} task{'' if given == 1 else 's'}; use k <= {given}"
            )
        self._done += size
        return taken

    def _numbers(self, block: Any) -> IntArray:
        numbers = np.asarray(block)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iub":
            raise OrderingError(f"{self._ordering} yields task numbers or arrays of them, not {block!r:.80}")
        return numbers.astype(np.int64, copy=False)


def drawn_orders(ordering: Ordering, tasks: TaskView, k: int, runs: int, rng: np.random.Generator) -> IntArray:
    """`ordering.batch(...)` with every task number checked, because compiled loops do not check them.

    >>> from forgetting.orderings import Cyclic
    >>> drawn_orders(Cyclic(), TaskView(3), 4, 2, np.random.default_rng(0))
    array([[0, 1, 2, 0],
           [0, 1, 2, 0]])
    """
    orders = np.asarray(ordering.batch(tasks, k, runs, rng))
    if orders.shape != (runs, k) or orders.dtype.kind not in "iu":
        raise OrderingError(
            f"{ordering}: batch must give whole numbers in shape {(runs, k)}, got {orders.dtype} in {orders.shape}"
        )
    if orders.size and not 0 <= orders.min() <= orders.max() < tasks.num_tasks:
        run, step = (int(part[0]) for part in np.nonzero((orders < 0) | (orders >= tasks.num_tasks)))
        raise OrderingError(
            f"{ordering} named task {orders[run, step]} in run {run}, step {step + 1}, "
            f"but tasks are 0 to {tasks.num_tasks - 1}"
        )
    return orders.astype(np.int64, copy=False)
