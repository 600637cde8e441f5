"""A preparation as entries of a file, and back; every entry is checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from forgetting.errors import ForgettingError
from forgetting.files.arrays import entry, whole_number
from forgetting.tasks.preparation import MOST_STEPS, Preparation, UnknownMap, as_standardize
from forgetting.tasks.random_features import RandomFeatures

__all__ = ["preparation_arrays", "preparation_from"]

STATISTICS = ("mean", "rest", "deviation")


def preparation_arrays(done: Preparation | None) -> dict[str, Any]:
    """The entries of a file that hold a preparation; none if there is none. Of a function only the name is kept."""
    arrays: dict[str, Any] = {}
    for number, step in enumerate(done.steps if done is not None else ()):
        values: dict[str, Any] = {"columns": step.columns, "width": step.width, "intercept": step.intercept}
        if isinstance(step.features, RandomFeatures):
            lift = step.features
            values |= {"features": "random", "kind": lift.kind, "scale": lift.scale, "seed": str(lift.seed)}
        elif step.features is not None:
            values |= {"features": "function", "name": step.features_name}
        if step.standardize is not None:
            values |= {"standardize": step.standardize, **{name: getattr(step, name) for name in STATISTICS}}
        arrays |= {f"preparation/{number}/{name}": np.asarray(value) for name, value in values.items()}
    return arrays


def preparation_from(arrays: dict[str, Any], dim: int) -> Preparation | None:
    """The preparation that the entries of a file hold, checked, for tasks of dimension `dim`; None if there is none."""
    left = {name for name in arrays if name.startswith("preparation/")}
    done: Preparation | None = None
    for number in range(MOST_STEPS):
        prefix = f"preparation/{number}/"
        names = {name for name in left if name.startswith(prefix)}
        if not names:
            break
        done = _step(arrays, prefix, {name.removeprefix(prefix) for name in names}, done)
        left -= names
    if left:
        raise ForgettingError(f"an unknown entry {min(left)!r:.60}; a newer version may have written the file")
    if done is not None and done.dim != dim:
        raise ForgettingError(f"a preparation that gives {done.dim} columns, of tasks that have {dim}")
    return done


def _step(arrays: dict[str, Any], prefix: str, names: set[str], before: Preparation | None) -> Preparation:
    columns, width = (whole_number(arrays, f"{prefix}{name}", 1) for name in ("columns", "width"))
    features, feature_entries = _features(arrays, prefix, width) if "features" in names else (None, ())
    statistics: dict[str, Any] = {}
    if "standardize" in names:
        statistics = {name: entry(arrays, f"{prefix}{name}", "f", 1) for name in STATISTICS}
        statistics["standardize"] = as_standardize(str(entry(arrays, f"{prefix}standardize", "U", 0)))
    unknown = names - {"columns", "width", "intercept", *feature_entries, *statistics}
    if unknown:
        raise ForgettingError(
            f"an unknown entry {prefix + min(unknown)!r:.60}; a newer version may have written the file"
        )
    if features is None and width != columns:
        raise ForgettingError(f"a preparation of {columns} columns that gives {width} without a feature map")
    if before is not None and before.dim != columns:
        raise ForgettingError(f"a preparation of {columns} columns after one that gives {before.dim}")
    ones = bool(entry(arrays, f"{prefix}intercept", "b", 0))
    return Preparation(columns, width, features, **statistics, intercept=ones, before=before)


def _features(arrays: dict[str, Any], prefix: str, width: int) -> tuple[Any, tuple[str, ...]]:
    """The feature map, and the entries that hold it."""
    kind = str(entry(arrays, f"{prefix}features", "U", 0))
    if kind == "function":
        return UnknownMap(str(entry(arrays, f"{prefix}name", "U", 0))), ("features", "name")
    if kind != "random":
        raise ForgettingError(f"entry '{prefix}features' is {kind!r:.40}, but should be 'random' or 'function'")
    seed = str(entry(arrays, f"{prefix}seed", "U", 0))
    if not (seed.isascii() and seed.isdecimal() and len(seed) <= 1000):
        raise ForgettingError(f"entry '{prefix}seed' is {seed!r:.40}, but should be a whole number")
    lift: Any = str(entry(arrays, f"{prefix}kind", "U", 0))
    scale = float(entry(arrays, f"{prefix}scale", "f", 0))
    return RandomFeatures(width, lift, scale, int(seed)), ("features", "kind", "scale", "seed")
