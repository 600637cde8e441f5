"""Odd calls: every public name of the library, called with mostly good arguments and one that is odd.

Names are found by looking at the modules, so that new ones are called too. A call is a line of Python, built from the
pieces in `pieces.py` and evaluated: the line is what repeats a defect. All is small: three tasks in three dimensions.
"""

from __future__ import annotations

import inspect
import os
import random
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import campaign
import numpy as np
import scipy.sparse as sp
from campaign import Outcome, WrongResultError
from pieces import (
    FORMATS,
    GIVEN,
    GOOD,
    GOOD_FOR,
    GUISES,
    HUGE,
    LEFT_OUT,
    MORE,
    NAMES,
    NAN_IS_AN_ANSWER,
    OBJECTS,
    ODD,
    OTHERS,
    RESULTS,
    SLOW,
    TRUSTED,
    WORK,
    WRONG,
    OwnError,
    classes,
    tasks,
)

import forgetting as fg
from forgetting import auditing, orderings, schemes
from forgetting.sets import ConvexSet
from forgetting.studies import functions as study_functions
from forgetting.theory import registry as statements

# ---------------------------------------------------------------------------------------------------------- the targets


@dataclass(frozen=True)
class Target:
    """Something to call: its name, what gives the function, and its parameters."""

    name: str
    source: str
    parameters: tuple[str, ...]
    required: frozenset[str]


def make_target(name: str, source: str, function: Any, skip: int = 0) -> Target | None:
    try:
        listed = list(inspect.signature(function).parameters.values())[skip:]
    except (TypeError, ValueError):
        return None
    named = [one for one in listed if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    more = [*MORE.get(name, {}), "zz"] if any(one.kind is one.VAR_KEYWORD for one in listed) else []
    required = frozenset(one.name for one in named if one.default is one.empty or one.name in GIVEN)
    return Target(name, source, (*(one.name for one in named), *more), required)


@cache
def targets() -> dict[str, Target]:
    """All functions, constructors and methods that a user may call."""
    others = [_methods(type(eval(piece, NAMES)), name) for name, piece in OTHERS.items()]
    made = (*_targets(fg, "fg"), *_targets(auditing, "fg.auditing"), *chain.from_iterable(others))
    found = [one for one in made if one is not None]
    return {one.name: one for one in found if one.name not in LEFT_OUT}


ITEMS = ("__call__", "__contains__", "__getitem__")


def _targets(module: Any, path: str) -> Iterator[Target | None]:
    for name in module.__all__:
        thing, source = getattr(module, name), f"{path}.{name}"
        if inspect.ismodule(thing):
            yield from _targets(thing, source)
        elif inspect.isclass(thing):
            made_by_users = source not in RESULTS and not inspect.isabstract(thing) and path != "fg.auditing"
            if made_by_users or source in ("fg.auditing.RandomFeatures", "fg.auditing.Landscape"):
                yield make_target(source, source, thing)
            yield from _methods(thing, source)
        elif callable(thing):
            yield make_target(source, source, thing)


def _methods(kind: type, source: str) -> Iterator[Target | None]:
    for name, method in inspect.getmembers(kind, callable):
        if (name.startswith("_") and name not in ITEMS) or name in TRUSTED or issubclass(kind, BaseException):
            continue
        if name in ITEMS and not str(getattr(method, "__module__", "")).startswith("forgetting"):
            continue
        if isinstance(inspect.getattr_static(kind, name), classmethod | staticmethod):
            yield make_target(f"{source}.{name}", f"{OTHERS.get(source, source)}.{name}", method)
        elif source in OBJECTS | OTHERS:
            yield make_target(f"{source}.{name}", f"{(OBJECTS | OTHERS)[source]}.{name}", method, skip=1)


# ------------------------------------------------------------------------------------------------------------ the calls


@dataclass(frozen=True)
class Call:
    """A call as source: the function, and a piece for each argument."""

    target: Target
    arguments: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"{self.target.source}({', '.join(f'{name}={piece}' for name, piece in self.arguments)})"


Choose = Callable[[Sequence[Any]], Any]


def good_pieces(target: Target, name: str) -> list[str]:
    """Good arguments for a parameter; none is known for a name that is new."""
    return GOOD_FOR.get(target.name, {}).get(name) or MORE.get(target.name, {}).get(name) or GOOD.get(name) or []


def good_call(target: Target) -> Call:
    """The usual call."""
    return Call(target, tuple((name, (good_pieces(target, name) or ["None"])[0]) for name in sorted(target.required)))


@cache
def single_calls(seed: int) -> list[Call]:
    """The usual call of everything with one argument wrong, for all arguments and all kinds of wrong, in any order."""
    made: list[Call] = []
    for target in targets().values():
        given = dict(good_call(target).arguments)
        for name in () if target.name in SLOW else target.parameters:
            pieces = [piece for piece in WRONG if name not in WORK or piece not in HUGE]
            made += [Call(target, tuple({**given, name: piece}.items())) for piece in pieces]
    random.Random(seed).shuffle(made)
    return made


def odd_call(target: Target, choose: Choose) -> Call:
    """A call of good arguments, one or two of which are odd."""
    given: dict[str, str] = {}
    for name in target.parameters:
        if name in target.required or (name != "zz" and choose((False, False, True))):
            given[name] = choose(good_pieces(target, name) or ["None"])
    for _ in range(choose((1, 1, 1, 2)) if target.parameters else 0):
        name = choose(target.parameters)
        good = given.get(name) or (good_pieces(target, name) or ["None"])[0]
        if choose((False, True)) and ("(" in good or "[" in good) and not good.startswith("changed"):
            guises = [
                how for how in (*GUISES, *FORMATS) if how != "huge view" or not target.name.startswith(ESTIMATORS)
            ]
            given[name] = f"changed({good}, {choose(guises)!r})"  # scikit-learn adds up huge views, for hours
        else:
            given[name] = choose([piece for piece in ODD if name not in WORK or piece not in HUGE])
    return Call(target, tuple(given.items()))


# ---------------------------------------------------------------------------------------------------------- the judging


@contextmanager
def registries_restored() -> Iterator[None]:
    """What a call registers is forgotten again."""
    registries = statements._STATEMENTS, schemes.registry._members, study_functions.functions._members
    kept = [(registry, dict(registry)) for registry in registries]
    try:
        yield
    finally:
        for registry, content in kept:
            if registry != content:
                registry.clear()
                registry.update(content)


def perform(call: Call) -> str:
    """Make the call and look at everything it gives; returns how far it got, or raises what is wrong."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")  # of earlier calls
    function = eval(call.target.source, NAMES)
    arguments = {name: eval(piece, NAMES) for name, piece in call.arguments}
    before = [bytes_of(value) for value in arguments.values()]
    stage = "refused"
    with registries_restored(), campaign.strict_warnings():
        sklearn_may_warn()
        try:
            result = function(**arguments)
            stage = "worked"
            explore(call.target.name, result)
        except Exception as error:
            if not is_allowed(error, call.target.name):
                raise
    if before != [bytes_of(value) for value in arguments.values()]:
        raise WrongResultError("an argument was modified")
    return stage


def sklearn_may_warn() -> None:
    """Estimators warn as scikit-learn does."""
    from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

    campaign.warnings.simplefilter("ignore", ConvergenceWarning)
    campaign.warnings.simplefilter("ignore", DataConversionWarning)


ESTIMATORS = "fg.Continual", "fg.IncrementalRidge"
SKLEARN = ValueError, TypeError, AttributeError, OverflowError  # of its validation


def is_allowed(error: Exception, name: str) -> bool:
    """Errors of this library, of the system's about paths, of Python's about a call, and what the user's code raises.

    Checks fail with AssertionError, and estimators refuse data as scikit-learn does, in its code.
    """
    if campaign.is_refusal(error) or isinstance(error, OwnError) or is_of_a_call(error):
        return True
    if name.startswith("fg.checks.") and isinstance(error, AssertionError):
        return True
    if name.endswith("__getitem__") and isinstance(error, IndexError):  # by which Python ends a loop
        return True
    if not name.startswith(ESTIMATORS):
        return False
    if isinstance(error, RuntimeWarning):  # of arithmetic that scikit-learn does by itself, as in `score`
        return "outside the package" in campaign.name_defect(error)
    places = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    own = max((i for i, place in enumerate(places) if place.startswith(str(campaign.SOURCE))), default=-1)
    return isinstance(error, SKLEARN) and any("/sklearn/" in place for place in places[own + 1 :])


def is_of_a_call(error: Exception) -> bool:
    """Whether Python did not begin a call: an unknown keyword, or a function of the user's with other parameters."""
    refused = r"unexpected keyword|missing \d+ required|takes .*argument|multiple values"
    return isinstance(error, TypeError) and re.search(refused, str(error)) is not None


def bytes_of(value: Any) -> Any:
    """What an array, or arrays in lists, hold; nothing of huge views and of other things."""
    if isinstance(value, np.ndarray) and value is not np.ma.masked:
        return value.tobytes() if value.size < 10**6 and value.dtype.kind != "O" else None
    if sp.issparse(value):
        return [bytes_of(getattr(value, part)) for part in ("data", "indices", "indptr") if hasattr(value, part)]
    return [bytes_of(one) for one in value] if isinstance(value, list | tuple) else None


def explore(name: str, result: Any) -> None:
    """Print, read every property, use what can be used; numbers that are not finite come with a word."""
    if name not in NAN_IS_AN_ANSWER and isinstance(result, float | np.ndarray) and not all_finite(result):
        raise WrongResultError(f"the result is {result!r:.200}")
    if not type(result).__module__.startswith("forgetting"):
        return
    str(result), repr(result)
    for one in dir(type(result)):
        if not one.startswith("_") and isinstance(inspect.getattr_static(type(result), one), property | fg_cached):
            try:
                getattr(result, one)
            except Exception as error:
                if not is_allowed(error, name):
                    raise
    if isinstance(result, fg.Problem):
        explore("fg.run", fg.run(result, orderings.Cyclic(), 2))
    elif isinstance(result, ConvexSet):
        inside = result.project(np.linspace(-2, 1, result.dim))
        if not np.isfinite(inside).all():
            raise WrongResultError(f"projects to {inside}")
    elif isinstance(result, schemes.Scheme):
        problem = classes() if isinstance(result, schemes.WeaklyRegularized) else tasks()
        explore("fg.run", fg.run(problem, orderings.Cyclic(), 2, result))
    elif isinstance(result, orderings.Ordering):
        explore("fg.run", fg.run(tasks(), result, 2))
    elif isinstance(result, fg.Trajectory | fg.Ensemble):
        for what in (result.losses, result.regret, result.iterates):
            if not all_finite(what) and not re.search("not finite|diverge", result.status):
                raise WrongResultError(f"not finite, but the status is {result.status!r}")
    elif isinstance(result, fg.solver.Solution):
        str(result.guarantee)
        if not all_finite(result.x) and "diverged" not in result.status:
            raise WrongResultError(f"not finite, but the status is {result.status!r}")
        if result.converged and result.consistent and not np.isfinite(result.residual):
            raise WrongResultError(f"converged with the residual {result.residual}")
    elif isinstance(result, fg.Expectation):
        for what, value in result.values.items():
            if not all_finite(value) and not result.notes:
                raise WrongResultError(f"{what} is {value}, without a note")
    elif isinstance(result, fg.bounds.Evaluation):
        for row in result:
            if row.applies and not np.isfinite(row.value):
                raise WrongResultError(f"{row.bound.key} applies and is {row.value}")
    elif isinstance(result, fg.claims.Certificate | auditing.Audit):
        if not all_finite(result):
            raise WrongResultError(f"numbers that are not finite in {type(result).__name__}")
        type(result).from_json(result.to_json())


fg_cached = type(inspect.getattr_static(fg.Trajectory, "losses"))


def all_finite(value: Any) -> bool:
    if is_dataclass(value):
        return all(all_finite(getattr(value, one.name)) for one in fields(value))
    if isinstance(value, tuple):
        return all(map(all_finite, value))
    if isinstance(value, float | np.ndarray) and np.asarray(value).dtype.kind in "fc":
        return bool(np.isfinite(value).all())
    return True


def examine(seed: int, case: int, folder: Path) -> Outcome:
    """Make one odd call, in a folder where it may leave files; the call is kept if there is a defect."""
    rng = random.Random(f"{seed} {case}")
    names = [name for name in targets() if name not in SLOW or rng.random() < 0.1]
    single = single_calls(seed)  # every second case is one of these, until they end
    call = (
        single[case // 2]
        if case % 2 and case // 2 < len(single)
        else odd_call(targets()[rng.choice(names)], rng.choice)
    )
    kept = folder / f"{seed}-{case}.txt"
    kept.write_text(str(call))
    place = folder / str(os.getpid())
    place.mkdir(exist_ok=True)
    os.chdir(place)
    outcome = Outcome(case, "call", "refused")
    try:
        outcome = replace(outcome, stage=perform(call))
    except Exception as error:
        return replace(outcome, defect=campaign.name_defect(error), story=f"{call}\n{campaign.tell(error)}")
    kept.unlink()
    return outcome


def warm() -> None:
    """Make the usual call of everything: what is compiled at first use is not timed."""
    here = Path.cwd()
    with campaign.tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for target in targets().values():
            with suppress(Exception):  # new names may need other arguments; a test says so
                perform(good_call(target))
        os.chdir(here)


if __name__ == "__main__":
    campaign.main(examine, warm)
