"""The function of most studies: draw or read a problem, and compute what to expect of an ordering on the problem.

Families of tasks and data sets go by their names here, for studies and for the command line.
"""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any

import numpy as np

from forgetting.core.arrays import Seed, as_flag, as_list
from forgetting.core.registry import call_with, check_call, from_settings
from forgetting.core.text import nearest
from forgetting.errors import InvalidInputError, ProblemFileError
from forgetting.expectation import expect
from forgetting.expectation.quantities import resolved
from forgetting.orderings import registry as orderings
from forgetting.orderings.base import as_ordering
from forgetting.schemes import registry as schemes
from forgetting.schemes.base import as_scheme
from forgetting.studies.functions import Traits, functions, named_function, states
from forgetting.tasks import Problem, families
from forgetting.tasks.readers import Columns, read, warn_of
from forgetting.theory.evaluation import evaluate
from forgetting.theory.statement import QUANTITIES

__all__ = ["measure"]

READING = tuple(field.name for field in fields(Columns))  # options of a file
DATA_SETS = ("diabetes", "digits", "mnist", "sensor_drift")  # of `forgetting.datasets`


def family_names() -> list[str]:
    """The names of the families and data sets that need nothing but parameters.

    >>> "gaussian" in family_names(), "repeated" in family_names(), "diabetes" in family_names()
    (True, False, True)
    """
    return [*(name for name in families.__all__ if name != "repeated"), *DATA_SETS]


def family_maker(name: str) -> Callable[..., Problem]:
    """The function that makes the tasks of a family or a data set.

    >>> family_maker("sensor_drift")(T=2, n=5, d=3)
    RegressionTasks(T=2, d=3, rows=10)
    """
    from forgetting import datasets

    key = name.replace("-", "_")
    if key not in family_names():
        raise InvalidInputError(f"no family {name!r:.80}{nearest(key, family_names())}")
    maker: Callable[..., Problem] = getattr(datasets if key in DATA_SETS else families, key)
    return maker


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
    check_call(family_maker(name), values, f"family {name}")


def _marks(values: Mapping[str, Any]) -> str:
    """The SHA-256 of the file of a cell, so that a file that changed is measured again."""
    if values.get("file") is None:
        return ""
    try:
        state = os.stat(values["file"])
        return _digest(values["file"], state.st_mtime_ns, state.st_size, state.st_ino)
    except OSError as error:
        raise ProblemFileError(f"{values['file']}: cannot be read ({error.strerror})") from error


@lru_cache(maxsize=1000)
def _digest(path: str, *state: int) -> str:
    """The SHA-256 of a file, which is read again if its state has changed: a file may be in many cells."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _check(values: Mapping[str, Any]) -> None:
    """Raise for names of families, orderings, schemes and parameters that do not exist."""
    own = [name for name in inspect.signature(measure).parameters if name != "parameters"]
    parameters = {name: value for name, value in values.items() if name not in (*own, "repeat")}
    if (values.get("family") is None) == (values.get("file") is None):
        odd = next(iter(parameters), None) if values.get("family") is None and values.get("file") is None else None
        hint = "" if odd is None else f"; there is {odd!r:.60} alone"
        raise InvalidInputError(f"expected either family, with its parameters, or file{hint}")
    for name in ("family", "file"):
        if not isinstance(values.get(name, ""), str | None):
            raise InvalidInputError(f"{name} must be a text, got {values[name]!r:.60}")
    if values.get("family") is not None:
        check_family(values["family"], parameters)
    else:
        _columns(parameters)
    if values.get("file") is not None and not os.path.isfile(values["file"]):
        raise ProblemFileError(f"{values['file']}: no such file")
    _made(values.get("ordering", "with-replacement"), orderings, as_ordering)
    if values.get("scheme") is not None:
        _made(values["scheme"], schemes, as_scheme)
    if "quantities" in values:
        resolved(values["quantities"])


def _columns(parameters: Mapping[str, Any]) -> Columns:
    """How the rows of a file are read, and its features prepared: the options of `fg.load`."""
    for name in parameters:
        if name not in READING:
            raise InvalidInputError(f"a file has no option {name!r:.60}{nearest(name, READING)}")
    return Columns(**parameters)


def _made(value: Any, registry: Any, convert: Any) -> Any:
    """An ordering or a scheme from its settings, or from words."""
    return from_settings(registry, value) if isinstance(value, Mapping) else convert(value)


@states(
    Traits(
        paired=("ordering", "scheme", "k", "quantities", "bounds", "method", "patience", "runs", "rtol", "device"),
        whole=("k", "quantities", "drop"),
        files=("file",),
        marks=_marks,
        check=_check,
    )
)
def measure(
    family: str | None = None,
    file: str | None = None,
    ordering: Any = "with-replacement",
    k: int | Sequence[int] = 100,
    scheme: Any = None,
    quantities: str | Sequence[str] = ("loss", "forgetting"),
    bounds: bool = False,
    method: str = "auto",
    patience: float = 30.0,
    runs: int | None = None,
    rtol: float | None = None,
    device: str | None = None,
    seed: Seed = 0,
    **parameters: Any,
) -> list[dict[str, Any]]:
    """Compute what to expect of an ordering on a problem: one row for each k. The default function of a `Study`.

    Cells that differ in the ordering, the scheme, k or the quantities alone have the same seed, and so the same tasks.

    Args:
        family: a family or a data set by name, with its `parameters`; or
        file: a file of tasks, as `fg.load` reads it.
        ordering, scheme: words as in a shell, such as "ridge lam=0.1", or the settings of an object.
        k, quantities, method, patience, runs, rtol, device: as for `fg.expect`.
        bounds: whether to add for each of loss and forgetting the smallest upper bound that applies, and its name.
        seed: of the family, and of simulations.
        parameters: of the family; or for a file how `fg.load` reads it, such as label="class" or intercept=True.

    Returns:
        For each k the values, their uncertainties (for simulated values, the half-width of the interval), and the
        method that computed them.

    >>> measure("two_lines", theta=0.5, k=10, quantities="loss")[0]["method"]
    'moments'
    """
    bounds = as_flag(bounds, "bounds")
    problem = _problem(family, file, parameters, seed)
    chosen = _made(ordering, orderings, as_ordering)
    learned = None if scheme is None else _made(scheme, schemes, as_scheme)
    wanted = [quantities] if isinstance(quantities, str) else as_list(quantities, "quantities")
    steps: Any = k if isinstance(k, list | tuple | range) or np.ndim(k) == 1 else [k]
    expected = expect(
        problem, chosen, steps, learned, method=method, quantities=wanted, seed=seed, runs=runs, rtol=rtol,
        patience=patience, device=device,
    )  # fmt: skip
    rows = []
    for place, step in enumerate(np.asarray(expected.k).tolist()):
        row: dict[str, Any] = {"k": step, "method": expected.method}
        for name in wanted:
            row[name] = np.asarray(expected.values[name])[place]
            known = expected.uncertainty.get(name)  # convex sets have none
            row[f"{name}_uncertainty"] = None if known is None else np.asarray(known)[place]
        if bounds:
            row |= _bounds(problem, chosen, learned, step, wanted)
        rows.append(row)
    return rows


def _problem(family: str | None, file: str | None, parameters: Mapping[str, Any], seed: Seed) -> Problem:
    own = {name: value for name, value in parameters.items() if name != "repeat"}
    if file is not None and family is None:
        reading = read(file, _columns(own).seeded(seed), {})
        warn_of(reading, stacklevel=4)
        return reading.tasks
    if family is None or file is not None:
        raise InvalidInputError("expected either family, with its parameters, or file, with options of fg.load")
    return named_family(family, own, seed)


def _bounds(problem: Problem, ordering: Any, scheme: Any, k: int, quantities: Sequence[str]) -> dict[str, Any]:
    """The smallest upper bound that applies to each quantity, and its key; None where there is none."""
    rows = evaluate(problem, ordering, k, scheme=scheme)
    bounds: dict[str, Any] = {}
    for name in quantities:
        tightest = rows.tightest(name) if name in QUANTITIES else None
        bounds[f"{name}_bound"] = None if tightest is None else tightest.value
        bounds[f"{name}_bound_name"] = None if tightest is None else tightest.bound.key
    return bounds


for _name in ("forgetting.studies:measure", named_function(measure).name):
    functions.add(_name, measure)
