"""Patients by age: the diabetes data that scikit-learn brings."""

from __future__ import annotations

import numpy as np

from forgetting.core.arrays import Seed, as_count
from forgetting.core.text import nearest
from forgetting.datasets.splitting import SHARE, Part, part_of
from forgetting.errors import InvalidInputError
from forgetting.tasks import RegressionTasks

__all__ = ["diabetes"]


def diabetes(
    bins: int = 10, by: str = "age", part: Part = "all", share: float = SHARE, seed: Seed = 0
) -> RegressionTasks:
    """442 diabetes patients in bins of one feature, by default ten bins of age: does a model forget the young?

    The data are those of Efron, Hastie, Johnstone and Tibshirani (Least angle regression, Annals of Statistics, 2004),
    as scikit-learn brings them: ten features (age, sex, bmi, bp, s1 to s6) that are centred and have length 1 over all
    patients, and y, the progression of the disease one year later, from 25 to 346. y is neither centred nor scaled, so
    that an intercept matters: no w without one brings the loss below 89 % of that at w = 0, and with one the best w
    has 10 %.

    Patients are sorted by the feature and cut into bins of equal count (they differ by one patient at most; patients of
    the same age may be in two bins); the first bin has the smallest values. All ten features are in X, also that of the
    bins. Names say the range of the feature in its own units.

    Args:
        bins: how many tasks.
        by: the feature that the bins are of.
        part: "train" or "test" for a split of each task, "all" for all rows; see `hold_out`.
        share: of the rows of each task that are test data.
        seed: of the split.

    >>> tasks = diabetes()
    >>> tasks, tasks.num_rows.tolist()
    (RegressionTasks(T=10, d=10, rows=442), [45, 45, 44, 44, 44, 44, 44, 44, 44, 44])
    >>> tasks.names[:2]
    ('age 19 to 30', 'age 30 to 36')
    >>> floors = []
    >>> for ready in (tasks, tasks.prepared(intercept=True)):
    ...     X, y = (np.concatenate(rows) for rows in zip(*map(ready.task, range(10))))
    ...     w = np.linalg.lstsq(X, y)[0]
    ...     floors.append(round(100 * ready.loss(w) / ready.loss(0 * w)))
    >>> floors
    [89, 10]
    """
    from sklearn.datasets import load_diabetes

    loaded, units = load_diabetes(), load_diabetes(scaled=False)
    if not isinstance(by, str) or by not in loaded.feature_names:
        raise InvalidInputError(f"by: no feature {by!r:.60}{nearest(by, loaded.feature_names)}")
    values = units.data[:, loaded.feature_names.index(by)]
    count = as_count(bins, "bins", least=1)
    distinct = len(np.unique(values))
    if count > distinct:
        raise InvalidInputError(f"bins = {count}, but {by!r} has {distinct} different values; choose fewer bins")
    members = np.array_split(np.argsort(values, kind="stable"), count)
    names = [f"{by} {values[rows[0]]:g} to {values[rows[-1]]:g}" for rows in members]
    tasks = RegressionTasks(
        [loaded.data[rows] for rows in members], [loaded.target[rows] for rows in members], names=names
    )
    return part_of(tasks, part, share, seed)
