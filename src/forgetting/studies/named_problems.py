"""Families of tasks and data sets by their names, for studies and for the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from forgetting.core.arrays import Seed
from forgetting.core.registry import call_with
from forgetting.core.text import nearest
from forgetting.errors import InvalidInputError
from forgetting.tasks import Problem

__all__ = ["check_family", "family_maker", "family_names", "named_family"]

DATA_SETS = ("diabetes", "digits", "mnist", "sensor_drift")  # of `forgetting.datasets`


def family_names() -> list[str]:
    """The names of the families and data sets that need nothing but parameters.

    >>> "gaussian" in family_names(), "repeated" in family_names(), "diabetes" in family_names()
    (True, False, True)
    """
    from forgetting.tasks import families

    return [*(name for name in families.__all__ if name != "repeated"), *DATA_SETS]


def family_maker(name: str) -> Callable[..., Problem]:
    """The function that makes the tasks of a family or a data set.

    >>> family_maker("sensor_drift")(T=2, n=5, d=3)
    RegressionTasks(T=2, d=3, rows=10)
    """
    from forgetting import datasets
    from forgetting.tasks import families

    key = name.replace("-", "_")
    if key not in family_names():
        raise InvalidInputError(f"no family {name!r:.80}{nearest(key, family_names())}")
    found: Callable[..., Problem] = getattr(datasets if key in DATA_SETS else families, key)
    return found


def named_family(name: str, values: Mapping[str, Any], seed: Seed) -> Problem:
    """The tasks of a family; `seed` goes to families that have such a parameter, unless the values set it.

    >>> named_family("two-lines", {"theta": 0.5}, seed=3).num_tasks
    2
    """
    make = family_maker(name)
    if "seed" in inspect.signature(make).parameters and "seed" not in values:
        values = {**values, "seed": seed}
    problem: Problem = call_with(make, values, f"family {name}")
    return problem


def check_family(name: str, values: Mapping[str, Any]) -> None:
    """Raise unless there is such a family, with such parameters.

    >>> check_family("gaussian", {"T": 3, "D": 5})
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: family gaussian has no parameter 'D'...
    """
    signature = inspect.signature(family_maker(name))
    call_with(_Checked(signature), values, f"family {name}")


class _Checked:
    """A stand-in with the parameters of a function, which computes nothing."""

    def __init__(self, signature: inspect.Signature) -> None:
        self.__signature__ = signature

    def __call__(self, **values: Any) -> None: ...
