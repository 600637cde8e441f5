"""Preparations of X before anything is learned: a feature map such as random features, standardizing, an intercept."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from forgetting.core.arrays import (
    Array,
    Seed,
    as_count,
    as_flag,
    as_kind,
    as_number,
    as_task,
    as_word,
    is_sparse,
    read_only,
    real_array,
    seed_from,
)
from forgetting.core.memory import require_memory
from forgetting.core.numerical import EPS
from forgetting.core.text import nearest, one_line
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.geometry import Matrix
from forgetting.tasks.problem import Problem
from forgetting.tasks.task_data import as_task_matrix

if TYPE_CHECKING:
    from forgetting.tasks.regression import RegressionTasks

__all__ = ["Preparation", "RandomFeatures", "UnknownMap", "as_feature_map", "as_standardize", "prepare"]


LISTED = 5  # columns in a note
MOST_STEPS = 8  # preparations one after the other
ROWS = "rows to prepare"  # the name, in messages, of rows that belong to no task
Standardize = Literal["all", "first"]


@dataclass(frozen=True)
class UnknownMap:
    """A feature map of which only the name is left: functions are not saved to files, and many not pickled."""

    name: str

    def __call__(self, X: Any) -> Any:
        raise NotSupportedError(
            f"the feature map {self.name!r:.80} is a function, which is not saved with tasks: apply the function to X, "
            "and prepare tasks of its values, or use RandomFeatures, which are saved"
        )


@dataclass(frozen=True, eq=False)
class Preparation:
    """A preparation of the columns of X, which can be applied to other rows too, such as test data.

    In this order: features, standardizing, intercept. Features come first, so that what is learned from is
    standardized, and not what the features are made of; the intercept comes last, since standardizing would turn a
    column of ones into zeros. `tasks.prepared(...)` makes one, and `apply` uses means and deviations of these tasks,
    whatever the rows. Tasks that are prepared may be prepared again.

    Attributes:
        columns: d of the tasks before.
        width: the number of columns after the feature map.
        features: the feature map, or None.
        standardize: "all", "first" or None: the rows that mean and deviation are those of.
        mean: of each column, rounded to float64.
        rest: what rounding left of the mean: (x - mean) - rest has full accuracy at large offsets.
        deviation: of each column, sqrt(mean |x - mean|^2); 0 if the column is constant.
        intercept: whether the last column is 1.
        before: the preparation that came first, if the tasks were prepared already.

    >>> import forgetting as fg
    >>> tasks = fg.RegressionTasks([[[1.0, 5.0], [3.0, 5.0]], [[2.0, 5.0]]], [[1.0, 2.0], [3.0]])
    >>> done = tasks.prepared(standardize="first", intercept=True).preparation
    >>> done.apply([[4.0, 6.0]]).tolist()
    [[2.0, 0.0, 1.0]]
    >>> done.in_words
    'features standardized by the first task, an intercept as the last column'
    """

    columns: int
    width: int
    features: Callable[[Any], Any] | Any = None
    standardize: Standardize | None = None
    mean: Array | None = None
    rest: Array | None = None
    deviation: Array | None = None
    intercept: bool = False
    before: Preparation | None = None

    def __post_init__(self) -> None:
        if len(self.steps) > MOST_STEPS:
            raise InvalidInputError(f"prepared more than {MOST_STEPS} times; prepare the original tasks")
        for name in ("mean", "rest", "deviation"):
            values = getattr(self, name)
            if (values is None) != (self.standardize is None):
                raise InvalidInputError(f"{name} must be given if, and only if, features are standardized")
            if values is not None:
                if values.shape != (self.width,) or not np.isfinite(values).all():
                    raise InvalidInputError(f"{name}: expected {self.width} finite numbers, got shape {values.shape}")
                object.__setattr__(self, name, read_only(values))
        if self.deviation is not None and (self.deviation < 0).any():
            raise InvalidInputError(f"deviation: at least 0, got {self.deviation.min():g}")

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickles and copies; a function that cannot be pickled becomes an `UnknownMap`."""
        features = self.features
        try:
            pickle.dumps(features)
        except Exception:  # of lambdas, of locks, of whatever a transformer holds
            features = UnknownMap(_map_name(features))
        values = (self.columns, self.width, features, self.standardize, self.mean, self.rest, self.deviation)
        return Preparation, (*values, self.intercept, self.before)

    @property
    def features_name(self) -> str:
        """The name of the feature map in messages."""
        return _map_name(self.features)

    @property
    def steps(self) -> tuple[Preparation, ...]:
        """The preparations, the first one first."""
        return (self,) if self.before is None else (*self.before.steps, self)

    @property
    def dim(self) -> int:
        """d of the prepared tasks."""
        return self.width + self.intercept

    def same_as(self, other: Preparation) -> bool:
        """Whether both do the same: the same steps, with the same means and deviations."""
        if len(self.steps) != len(other.steps):
            return False
        return all(
            own.own_words == its.own_words
            and own.dim == its.dim
            and all(np.array_equal(getattr(own, name), getattr(its, name)) for name in ("mean", "rest", "deviation"))
            for own, its in zip(self.steps, other.steps, strict=True)
        )

    @property
    def in_words(self) -> str:
        """All preparations in words, in the order in which they were made."""
        return "; then ".join(step.own_words for step in self.steps)

    @property
    def own_words(self) -> str:
        """The last preparation in words, without those before it."""
        steps = [_map_words(self.features)] if self.features is not None else []
        if self.standardize is not None:
            steps.append(f"features standardized by {'all tasks' if self.standardize == 'all' else 'the first task'}")
        steps += ["an intercept as the last column"] if self.intercept else []
        return ", ".join(steps) or "nothing"

    def notes(self, names: Sequence[str] = ()) -> tuple[str, ...]:
        """Notes on the last preparation and on columns that are constant; `names` are those of the columns of X."""
        said = [f"X was {'' if self.before is None else 'then '}prepared: {self.own_words}"]
        constant = np.flatnonzero(self.deviation == 0).tolist() if self.deviation is not None else []
        if constant:
            known = dict(enumerate(names)) if self.features is None else {}
            words = [str(j) if known.get(j, str(j)) == str(j) else repr(one_line(known[j], 40)) for j in constant]
            listed = ", ".join(words[:LISTED])
            more = ", ..." if len(constant) > LISTED else ""
            where = "" if self.standardize == "all" else " in the first task"
            count = f"{len(constant)} of {self.width} columns are" if len(constant) > 1 else "one column is"
            said.append(f"{count} constant{where} and 0 after standardizing: {listed}{more}")
        return tuple(said)

    def column_names(self, names: Sequence[str]) -> tuple[str, ...]:
        """Names of the prepared columns, from those of the columns before.

        >>> Preparation(2, 2, intercept=True).column_names(["a", "b"])
        ('a', 'b', 'intercept')
        """
        kept = names if self.features is None else [f"feature {number}" for number in range(self.width)]
        return (*kept, *(["intercept"] if self.intercept else []))

    def apply(self, X: Any) -> Matrix:
        """The rows X, which have the original columns, prepared as the tasks were; a vector of one row is [x].

        Sparse rows stay sparse if only an intercept is added.
        """
        matrix = as_task_matrix(X, ROWS)
        original = self.steps[0].columns
        if matrix.shape[1] != original:
            same = "; these rows may be prepared already" if matrix.shape[1] == self.dim else ""
            raise InvalidInputError(
                f"X has {matrix.shape[1]} columns, but the tasks had {original} before they were prepared "
                f"({self.in_words}){same}"
            )
        for step in self.steps:
            matrix = step._finished(_mapped(_as_function(step.features, step.columns), matrix, ROWS), ROWS)
        return matrix

    def apply_to(self, tasks: Problem) -> RegressionTasks:
        """Other tasks with the original columns, such as test data, prepared as these tasks were.

        >>> import forgetting as fg
        >>> train, test = (fg.families.gaussian(T=3, d=5, rank=2, seed=seed) for seed in (0, 1))
        >>> train = train.prepared(standardize="all", intercept=True)
        >>> train.preparation.apply_to(test).dim
        6
        """
        plain = _plain(tasks)
        if plain.preparation is not None:
            raise InvalidInputError(f"these tasks are prepared already: {plain.preparation.in_words}")
        return self._with(plain, [self.apply(X) for X in _distinct(plain)[0]], None)

    def _finished(self, mapped: Matrix, name: str) -> Matrix:
        """Standardize, and add the intercept."""
        if self.standardize is not None:
            mapped = _standardized(_dense(mapped, name), self.mean, self.rest, self.deviation)
        return with_ones(mapped) if self.intercept else mapped

    def _with(self, tasks: RegressionTasks, matrices: list[Matrix], loss: Any) -> RegressionTasks:
        """The tasks with these matrices in the place of their distinct matrices."""
        index = _distinct(tasks)[1]
        made = tasks.with_data(
            [matrices[i] for i in index], [tasks.task(m)[1] for m in range(tasks.num_tasks)], loss=loss
        )
        made.preparation = self
        made.notes = (*tasks.notes, *self.notes())
        return made


def prepare(
    tasks: Problem,
    intercept: bool = False,
    standardize: Standardize | None = None,
    features: Any = None,
    seed: Seed = 0,
    loss: Literal["sum", "mean"] | None = None,
    *,
    first: int = 0,
) -> RegressionTasks:
    """The tasks with X prepared; without any preparation, the tasks as they are. See `RegressionTasks.prepared`.

    `first` is the task that standardize="first" means: task 0, or the first task of another order.

    >>> import forgetting as fg
    >>> prepare(fg.families.orthogonal(2), intercept=True).task(1)[0].tolist()
    [[0.0, 1.0, 1.0]]
    """
    plain = _plain(tasks)
    intercept, rows_of = as_flag(intercept, "intercept"), as_standardize(standardize)
    feature_map = as_feature_map(features, seed)
    if not intercept and rows_of is None and feature_map is None:
        if loss is None:
            return plain
        pairs = [plain.task(m) for m in range(plain.num_tasks)]
        made = plain.with_data([X for X, _ in pairs], [y for _, y in pairs], loss=loss)
        made.preparation, made.notes = plain.preparation, plain.notes
        return made
    matrices, index = _distinct(plain)
    if isinstance(feature_map, RandomFeatures):
        rows = sum(X.shape[0] for X in matrices)
        what = f"{feature_map.dim} random features of {rows} rows with {plain.dim} columns"
        require_memory(8.0 * feature_map.dim * (plain.dim + 2 * rows), what, "choose fewer features, or fewer rows")
    function = _as_function(feature_map, plain.dim)
    called = [f"task {index.index(distinct)}" for distinct in range(len(matrices))]
    mapped = [_mapped(function, X, name) for X, name in zip(matrices, called, strict=True)]
    width = mapped[0].shape[1]
    for X, name in zip(mapped, called, strict=True):
        if X.shape[1] != width:
            raise InvalidInputError(f"{name}: the feature map gives {X.shape[1]} columns, but {width} for task 0")
    statistics: dict[str, Array] = {}
    if rows_of is not None:
        own = index[as_task(first, plain.num_tasks)]
        counts = [index.count(each) if rows_of == "all" else int(each == own) for each in range(len(mapped))]
        dense = [_dense(X, name) for X, name in zip(mapped, called, strict=True)]
        statistics = _statistics([X for X, n in zip(dense, counts, strict=True) if n], [n for n in counts if n])
        _check_some_vary(statistics["deviation"], plain, rows_of, first)
    done = Preparation(
        plain.dim, width, feature_map, rows_of, **statistics, intercept=intercept, before=plain.preparation
    )
    return done._with(plain, [done._finished(X, name) for X, name in zip(mapped, called, strict=True)], loss)


# ------------------------------------------------------------------------------------------------------------ options


def as_standardize(value: Any) -> Standardize | None:
    """The value if it is "all", "first" or None; else raise.

    >>> as_standardize("al")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: standardize: no 'al'; did you mean 'all'? ...
    """
    if value is None or (isinstance(value, str) and value in ("all", "first")):
        return cast(Standardize | None, value)
    close = nearest(value, ("all", "first")) if isinstance(value, str) else "; expected 'all', 'first' or None"
    raise InvalidInputError(f"standardize: no {value!r:.60}{close}: features by the rows of all tasks, or of the first")


def as_feature_map(value: Any, seed: Seed = 0) -> Any:
    """Random features if `value` is their number; a function, a transformer and None as they are.

    >>> as_feature_map(20, seed=1)
    RandomFeatures(dim=20, kind='relu', scale=1.0, seed=1)
    """
    if value is None or callable(value) or callable(getattr(value, "transform", None)):
        return value
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return RandomFeatures(as_count(value, "the number of features", least=1), seed=seed_from(seed))
    raise InvalidInputError(
        f"features: expected a function of X or a transformer, or a number of random features, got {value!r:.80}"
    )


def _as_function(feature_map: Any, columns: int) -> Callable[[Any], Any] | None:
    if feature_map is None:
        return None
    if isinstance(feature_map, RandomFeatures):
        return feature_map.drawn(columns)
    function: Callable[[Any], Any] = feature_map if callable(feature_map) else feature_map.transform
    return function


def _map_words(feature_map: Any) -> str:
    known = isinstance(feature_map, RandomFeatures)
    return feature_map.in_words if known else f"the feature map {_map_name(feature_map)}"


def _map_name(feature_map: Any) -> str:
    """The name of a function, or what a transformer prints."""
    if isinstance(feature_map, UnknownMap):
        return feature_map.name
    return one_line(str(getattr(feature_map, "__qualname__", None) or repr(feature_map)), 60)


# ------------------------------------------------------------------------------------------------------------ numbers


def _plain(tasks: Problem) -> RegressionTasks:
    linear = as_kind(tasks, Problem, "RegressionTasks").linear
    if linear is None or linear.data is None:
        raise NotSupportedError(
            f"a preparation of X (a feature map, standardize or intercept) needs the data of RegressionTasks, not "
            f"{type(tasks).__name__}"
        )
    linear.data.require_rows("a preparation of X (a feature map, standardize or intercept)")
    return linear.data


def _distinct(tasks: RegressionTasks) -> tuple[list[Matrix], list[int]]:
    """The distinct matrices, in order of their first task, and for each task the number of its matrix."""
    matrices: list[Matrix] = []
    numbers: dict[int, int] = {}
    index = []
    for task in range(tasks.num_tasks):
        X, _ = tasks.task(task)  # identical tasks give one object
        if id(X) not in numbers:
            numbers[id(X)] = len(matrices)
            matrices.append(X)
        index.append(numbers[id(X)])
    return matrices, index


def _mapped(function: Callable[[Any], Any] | None, X: Matrix, name: str) -> Matrix:
    """The features of X, checked."""
    if function is None:
        return X
    values = as_task_matrix(function(X), f"features of {name}")
    if values.shape[0] != X.shape[0]:
        raise InvalidInputError(f"{name}: the feature map makes {values.shape[0]} rows of {X.shape[0]}")
    return values


def with_ones(X: Matrix) -> Matrix:
    """The matrix with a last column of ones, sparse if it is sparse.

    >>> with_ones(np.array([[2.0], [3.0]])).tolist()
    [[2.0, 1.0], [3.0, 1.0]]
    """
    ones = np.ones((X.shape[0], 1))
    if not is_sparse(X):
        return np.hstack([X, ones])
    from scipy.sparse import csr_array, hstack

    return csr_array(hstack([X, csr_array(ones)]))


def _dense(X: Matrix, name: str) -> Array:
    if is_sparse(X):
        raise InvalidInputError(
            f"{name}: X is sparse, and would be dense after standardizing, since means are subtracted; leave "
            "standardize out, divide the columns of X by their sizes beforehand, or give X.toarray()"
        )
    return np.asarray(X)


def _statistics(matrices: Sequence[Array], counts: Sequence[int]) -> dict[str, Array]:
    """Mean, what rounding left of the mean, and deviation of each column, where matrix i counts counts[i] times.

    In three passes: the second corrects the mean, and the third sums squares of centred numbers: those of data far
    from 0 would lose all digits. Deviations are computed relative to the largest, so that no square underflows.
    """
    rows = float(sum(X.shape[0] * n for X, n in zip(matrices, counts, strict=True)))
    mean = sum(n * X.sum(axis=0) for X, n in zip(matrices, counts, strict=True)) / rows
    rest = sum(n * (X - mean).sum(axis=0) for X, n in zip(matrices, counts, strict=True)) / rows
    largest = np.max([np.abs((X - mean) - rest).max(axis=0) for X in matrices], axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    squares = sum(n * (((X - mean - rest) / unit) ** 2).sum(axis=0) for X, n in zip(matrices, counts, strict=True))
    deviation = largest * np.sqrt(squares / rows)
    deviation[largest <= 8 * EPS * np.abs(mean)] = 0.0  # the column is constant up to rounding
    return {"mean": np.asarray(mean), "rest": np.asarray(rest), "deviation": deviation}


def _standardized(X: Array, mean: Any, rest: Any, deviation: Any) -> Array:
    """(x - mean) / deviation of each column, and 0 in columns of deviation 0."""
    centred = (X - mean) - rest
    return np.where(deviation > 0, centred / np.where(deviation > 0, deviation, 1.0), 0.0)


def _check_some_vary(deviation: Array, tasks: RegressionTasks, rows_of: Standardize, first: int) -> None:
    if deviation.any():
        return
    if rows_of == "all":
        raise InvalidInputError("standardize='all': every feature is constant, so that nothing would be left of X")
    rows, name = int(tasks.num_rows[first]), tasks.names[first]
    raise InvalidInputError(
        f"standardize='first': every feature is constant in the first task, {name!r:.60}, which has {rows} "
        f"row{'s' if rows > 1 else ''}, so that nothing would be left of X; use standardize='all'"
    )


@dataclass(frozen=True)
class RandomFeatures:
    """A random feature map of a chosen dimension: the same seed gives the same map, whatever the rows.

    With W of independent normal entries of deviation 1/scale and b uniform in [0, 2 pi):

    - "relu": sqrt(2/D) max(0, x W) (an arc-cosine kernel of degree 1);
    - "fourier": sqrt(2/D) cos(x W + b) (a Gaussian kernel of width `scale`; Rahimi and Recht 2007).

    The map is a function of D, the kind, the scale, the seed and the number d of columns of X, and of nothing else.
    Cost: d D random numbers, and n d D products for n rows.

    >>> RandomFeatures(100)(np.eye(3)).shape
    (3, 100)
    """

    dim: int
    kind: Literal["relu", "fourier"] = "relu"
    scale: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", as_count(self.dim, "the number of features", least=1))
        object.__setattr__(self, "scale", as_number(self.scale, "scale", above=0))
        object.__setattr__(self, "seed", seed_from(self.seed))
        as_word(self.kind, ("relu", "fourier"), "the kind of random features")

    def __call__(self, X: Any) -> Array:
        matrix = X if is_sparse(X) else real_array(X, "X")
        if matrix.ndim != 2:
            raise InvalidInputError(f"X: expected a matrix, got shape {matrix.shape}")
        return self.drawn(matrix.shape[1])(matrix)

    def drawn(self, columns: int) -> Callable[[Any], Array]:
        """The map for rows with this number of columns; its random numbers are drawn once, for many matrices.

        >>> lift = RandomFeatures(4).drawn(3)
        >>> bool((lift(np.eye(3)) == RandomFeatures(4)(np.eye(3))).all())
        True
        """
        rng, count = np.random.default_rng(self.seed), as_count(columns, "columns", least=1)
        require_memory(8.0 * count * self.dim, f"{self.dim} random features of {count} columns", "use fewer")
        weights = rng.normal(scale=1 / self.scale, size=(count, self.dim))
        phases = rng.uniform(0, 2 * np.pi, self.dim) if self.kind == "fourier" else None
        factor = float(np.sqrt(2 / self.dim))

        def lift(X: Any) -> Array:
            mixed = np.asarray(X @ weights, dtype=np.float64)
            bent = np.maximum(mixed, 0.0) if phases is None else np.cos(mixed + phases)
            return np.asarray(factor * bent, dtype=np.float64)

        return lift

    @property
    def in_words(self) -> str:
        """The map in words.

        >>> RandomFeatures(50, "fourier", scale=2.0, seed=3).in_words
        '50 random fourier features (scale 2, seed 3)'
        """
        return f"{self.dim} random {self.kind} features (scale {self.scale:.12g}, seed {self.seed})"
