"""The tasks of an audit: read, then prepared with fewer rows or other features, and test rows treated alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal

import numpy as np

from forgetting.auditing.orders import as_permutation
from forgetting.core.arrays import Array, IntArray, Seed, as_count, as_flag, as_kind, as_list, as_word, seed_from
from forgetting.dynamics.space import resolve
from forgetting.errors import InvalidInputError, NotSupportedError, ProblemFileError
from forgetting.schemes import Scheme
from forgetting.schemes.base import SchemeLike
from forgetting.tasks import LinearTasks, Problem, RandomFeatures, RegressionTasks, prepare
from forgetting.tasks.held_out_and_noise import with_classes
from forgetting.tasks.preparation import as_feature_map, as_standardize
from forgetting.tasks.readers import Columns, Reading, read, task_notes

PathName = str | PathLike[str]
Standard = Literal["all", "first"]
MOST_TASKS = 1000  # the most tasks, because every pair is compared


def read_tasks(
    paths: PathName | Sequence[PathName],
    *,
    task: str = "task",
    label: str = "y",
    positive: str | None = None,
    classes: Literal["auto", "all", "task"] | None = "auto",
    drop: str | Sequence[str] = (),
    drop_nan: bool = False,
    **options: Any,
) -> Reading:
    """Regression tasks from one or more files, with notes about them and the names of their features.

    The files and the options are those of `fg.load`, which gives the tasks alone.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as here:
    ...     _ = Path(here, "tasks.csv").write_text("task,a,b,y\\nfirst,1,0,1\\nsecond,0,1,2\\nsecond,1,1,3\\n")
    ...     reading = read_tasks(Path(here, "tasks.csv"))
    >>> reading.tasks.names, reading.features, reading.notes[0]
    (('first', 'second'), ('a', 'b'), "task 'first' has one row")
    """
    files = [paths] if isinstance(paths, str | PathLike) else as_list(paths, "paths")
    if not files:
        raise ProblemFileError("no file given")
    for name in files:
        as_kind(name, str | PathLike, "the name of a file", "paths: ")
    reading = read(files, Columns(task, label, positive, classes, drop, drop_nan), options)
    linear = reading.tasks.linear
    if linear is None or linear.data is None:
        raise ProblemFileError(f"{files[0]}: holds {reading.tasks!r:.60}, but an audit needs regression tasks")
    return reading


def load_tasks(source: Any, learned: Problem | None = None) -> Reading:
    """The tasks of any source that `audit` accepts, linear ones if all are affine, and all notes about them.

    Rows that are held out of `learned` tasks have labels of the same kind.
    """
    reading = read(source, Columns(), {}, learned)
    linear = reading.tasks.linear
    if linear is None:
        return reading
    more = [
        note for note in task_notes(linear) if not any(said.startswith(note.split(";")[0]) for said in reading.notes)
    ]
    return replace(reading, tasks=linear, notes=(*reading.notes, *more))


def apply_features(tasks: Problem, features: Callable[[Any], Any] | Any) -> RegressionTasks:
    """The tasks with X replaced by features(X): the same as `tasks.prepared(features=features)`.

    >>> import forgetting as fg
    >>> lifted = apply_features(fg.families.two_lines(0.5), RandomFeatures(20))
    >>> lifted.dim, lifted.names
    (20, ('0', '1'))
    """
    return prepare(tasks, features=features)


def subsample_rows(tasks: Problem, rows: int, seed: Seed = 0) -> RegressionTasks:
    """The same tasks with at most this many rows each, drawn at random; identical tasks stay identical.

    >>> import forgetting as fg
    >>> subsample_rows(fg.families.gaussian(T=3, d=9, rank=5, seed=0), 2).ranks.tolist()
    [2, 2, 2]
    """
    linear = as_kind(tasks, Problem, "RegressionTasks").linear
    if linear is None or linear.data is None:
        raise NotSupportedError(f"sub-sampling of rows needs the data of RegressionTasks, not {type(tasks).__name__}")
    given = linear.data
    given.require_rows("sub-sampling of rows")
    most = as_count(rows, "rows", least=1)
    rng = np.random.default_rng(seed_from(seed))
    drawn: dict[int, tuple[Any, Array]] = {}
    pairs = []
    for task, distinct in enumerate(given.index.tolist()):
        if distinct not in drawn:
            X, y = given.task(task)
            chosen = np.sort(rng.permutation(len(y))[:most])
            drawn[distinct] = X[chosen], y[chosen]
        pairs.append(drawn[distinct])
    fewer = given.with_data([X for X, _ in pairs], [y for _, y in pairs])
    fewer.preparation = given.preparation
    return fewer


@dataclass(frozen=True)
class Recipe:
    """The preparation of the rows before they are learned: the options of `audit`, checked.

    Rows are drawn first; all else is `tasks.prepared`. Random features are drawn with the seed of the audit, and with
    the next seeds in its repeats.

    >>> Recipe(rows=20, features=200).feature_map(seed=3, repeat=1)
    RandomFeatures(dim=200, kind='relu', scale=1.0, seed=4)
    """

    rows: int | None = None
    features: Any = None
    standardize: Standard | None = None
    intercept: bool = False
    loss: Literal["sum", "mean"] | None = None

    def __post_init__(self) -> None:
        if self.rows is not None:
            object.__setattr__(self, "rows", as_count(self.rows, "rows", least=1))
        as_standardize(self.standardize)
        as_feature_map(self.features)
        object.__setattr__(self, "intercept", as_flag(self.intercept, "intercept"))
        if self.loss is not None:
            as_word(self.loss, ("sum", "mean"), "loss")

    @property
    def changes(self) -> bool:
        """Whether any option changes the tasks."""
        return any((self.rows is not None, self.features is not None, self.standardize, self.intercept, self.loss))

    def feature_map(self, seed: int, repeat: int = 0) -> Any:
        """The feature map of the given repeat: random features of another seed for every repeat."""
        lift = as_feature_map(self.features, seed)
        return replace(lift, seed=lift.seed + repeat) if isinstance(lift, RandomFeatures) else lift

    def drawn(self, tasks: LinearTasks) -> tuple[str, ...]:
        """The parts that are drawn at random, and so depend on the seed: rows, random features, both or none.

        >>> import forgetting as fg
        >>> tasks = fg.families.gaussian(T=3, d=5, rank=2, seed=0)
        >>> Recipe(rows=2).drawn(tasks), Recipe(rows=1, features=9).drawn(tasks)
        ((), ('rows', 'random features'))
        """
        fewer = self.rows is not None and bool((tasks.num_rows > self.rows).any())
        lifted = isinstance(self.feature_map(0), RandomFeatures)
        return ("rows",) * fewer + ("random features",) * lifted

    def prepare(self, tasks: LinearTasks, seed: int, first: int = 0, repeat: int = 0) -> LinearTasks:
        """The prepared tasks, another draw for every `repeat`. `first` is the task that standardize="first" means.

        >>> import forgetting as fg
        >>> tasks = fg.RegressionTasks([[[1.0], [3.0]], [[5.0]]], [[1.0, 2.0], [3.0]])
        >>> Recipe(standardize="first", intercept=True).prepare(tasks, 0).task(1)[0].tolist()
        [[3.0, 1.0]]
        """
        if not self.changes:
            return tasks
        fewer = tasks if self.rows is None else subsample_rows(tasks, self.rows, seed + repeat)
        return prepare(
            fewer, self.intercept, self.standardize, self.feature_map(seed, repeat), loss=self.loss, first=first
        )

    def words(self, tasks: Problem) -> tuple[str, ...]:
        """The steps of the preparation in words, from the prepared tasks.

        >>> import forgetting as fg
        >>> recipe = Recipe(rows=1, intercept=True, loss="mean")
        >>> recipe.words(recipe.prepare(fg.families.gaussian(T=3, d=5, rank=2, seed=0), 0))
        ('at most 1 row of each task', 'an intercept as the last column', 'mean loss')
        """
        rows = f"at most {self.rows} row{'s' if self.rows != 1 else ''} of each task"
        done = tasks.preparation if self.features is not None or self.standardize or self.intercept else None
        said = (rows,) * (self.rows is not None) + (() if done is None else (done.own_words,))
        return said + ("mean loss",) * (self.loss == "mean")


@dataclass(frozen=True, eq=False)
class Prepared:
    """The tasks of an audit as they are learned, and how: the stage after they were read.

    Attributes:
        source: the tasks before they were prepared.
        problem: the tasks as they are learned.
        features: the feature map that was applied; None if there is none.
        held_out: test rows of the same tasks, prepared like those; None if there are none.
        scheme, w0: how tasks are learned, and from where.
        given: the given order.
        passes: the number of passes that are compared with one.
        seed: that of the rows and random features that were drawn, and of what is drawn later.
    """

    source: Problem
    problem: Problem
    features: Any
    held_out: Problem | None
    scheme: Scheme
    w0: Array
    given: IntArray
    passes: int
    seed: int

    @property
    def start(self) -> float:
        """The mean loss before learning."""
        return self.problem.loss(self.w0)


def prepare_tasks(
    source: Problem,
    recipe: Recipe,
    order: Sequence[int] | Sequence[str] | None = None,
    test: Problem | None = None,
    scheme: SchemeLike | None = None,
    w0: Any = None,
    seed: int = 0,
    passes: int = 3,
    repeat: int = 0,
) -> Prepared:
    """The tasks as they are learned; an error for too many tasks, or for a scheme that is not linear.

    >>> import forgetting as fg
    >>> prepared = prepare_tasks(fg.families.two_lines(0.5, w_star=(1, 0)), Recipe(intercept=True))
    >>> prepared.problem.dim, prepared.scheme, prepared.given.tolist(), round(prepared.start, 6)
    (3, Kaczmarz(), [0, 1], 0.057462)
    """
    T = source.num_tasks
    if T > MOST_TASKS:
        raise InvalidInputError(f"an audit compares all pairs of tasks, at most {MOST_TASKS} of them; got {T}")
    given = np.arange(T) if order is None else as_permutation(order, T, source.names)
    problem = source
    if source.linear is not None:
        problem = recipe.prepare(source.linear, seed, int(given[0]), repeat)
    elif recipe.changes:
        raise NotSupportedError(
            "rows, features, standardize, intercept and loss prepare the rows of regression tasks, not of "
            f"{type(source).__name__}"
        )
    rows = None if test is None else held_out(test, source, problem)
    chosen, space = resolve(problem, scheme, w0)
    if chosen.random or (problem.linear is not None and chosen.linear_on(problem) is None):
        raise NotSupportedError(
            f"an audit needs a linear scheme with the same step for every task, such as Kaczmarz or SGD, not {chosen}"
        )
    features = recipe.feature_map(seed, repeat)
    return Prepared(source, problem, features, rows, chosen, space.w0, given, passes, seed + repeat)


def held_out(test: Problem, given: Problem, prepared: Problem) -> Problem:
    """The held-out rows of the same tasks, prepared like the rows that are learned.

    Args:
        test: a task for each task of `given`: of the same names in any order, or of any names in the same order.
        given: the tasks before the audit prepared them.
        prepared: the tasks as they are learned.
    """
    if given.preparation is not None and test.preparation is None and test.linear is not None:
        test = given.preparation.apply_to(test)  # the tasks were prepared before the audit
    if test.dim != given.dim:
        raise InvalidInputError(f"test: rows have {test.dim} columns, but those of the tasks have {given.dim}")
    order = _matched(test, given)
    if given.linear is None:
        if not hasattr(test, "task") or given.kind != "classification":
            raise NotSupportedError(f"test: {type(given).__name__} have no rows, so that none can be held out")
        pairs = [test.task(int(task)) for task in order]
        return type(given)([X for X, _ in pairs], [y for _, y in pairs], names=given.names)  # type: ignore[call-arg]
    data = None if test.linear is None else test.linear.data
    if data is None or prepared.linear is None or prepared.linear.data is None:
        raise NotSupportedError(f"test: held-out rows are of RegressionTasks, not of {type(test).__name__}")
    learned = prepared.linear.data
    pairs = [data.task(task) for task in order.tolist()]
    matched = data.with_data([X for X, _ in pairs], [y for _, y in pairs])
    matched.classes = None if data.classes is None else tuple(data.classes[task] for task in order.tolist())
    matched = with_classes(learned, matched)
    if matched.outputs != learned.outputs:
        outputs = [str(tasks.outputs or 1) for tasks in (matched, learned)]
        raise InvalidInputError(f"test: labels have {outputs[0]} outputs, but those of the tasks have {outputs[1]}")
    pairs = [matched.task(task) for task in range(matched.num_tasks)]
    own = None if learned.preparation is given.preparation else learned.preparation
    last = None if own is None else replace(own, before=None)
    return learned.with_data([X if last is None else last.apply(X) for X, _ in pairs], [y for _, y in pairs])


def _matched(test: Problem, given: Problem) -> IntArray:
    """For every task, the number of the test task that belongs to it."""
    T = given.num_tasks
    if sorted(test.names) == sorted(given.names) and len(set(given.names)) == T:
        place = {name: task for task, name in enumerate(test.names)}
        return np.array([place[name] for name in given.names])
    strangers = [name for name in test.names if name not in given.names]
    if test.num_tasks != T:
        unknown = f"; {strangers[0]!r} is no task" if strangers and len(strangers) < test.num_tasks else ""
        raise InvalidInputError(
            f"test: {test.num_tasks} tasks for {T} tasks; give held-out rows of every task{unknown}"
        )
    if strangers and len(strangers) < T:
        raise InvalidInputError(
            f"test: there is no task {strangers[0]!r}; name the tasks as in the data, or not at all"
        )
    return np.arange(T)
