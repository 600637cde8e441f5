"""What several claims share: when they apply, and both sides of a bound of the registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from forgetting.bounds import Setting
from forgetting.bounds import get as get_bound
from forgetting.bounds.setting import as_regression, describe_ordering, describe_scheme
from forgetting.claims.exact import Numbers, as_least_squares
from forgetting.claims.instance import Instance
from forgetting.claims.precise import Precise
from forgetting.claims.registry import Sides
from forgetting.errors import ForgettingError
from forgetting.schemes import POCS
from forgetting.tasks import ClassificationTasks, ConvexSets, LinearTasks, RegressionTasks

__all__ = [
    "Check",
    "Missing",
    "all_of",
    "asked",
    "bounded",
    "classification",
    "convex_sets",
    "covers",
    "engines",
    "least_squares",
    "pocs",
    "projection",
    "regression",
    "setting_of",
    "settling",
    "small",
    "steps",
]

Check: TypeAlias = Callable[[Instance], Sides]
Missing: TypeAlias = Callable[[Instance], str | None]
ROUNDING = 1e-13  # of the natural scale of a statement, allowed on top of what the exact engines report


def all_of(*tests: Missing) -> Missing:
    """The first reason of several, or None."""

    def missing(instance: Instance) -> str | None:
        for test in tests:
            if (reason := test(instance)) is not None:
                return reason
        return None

    return missing


def regression(instance: Instance) -> str | None:
    """Jointly realizable regression tasks."""
    if not isinstance(instance.problem, RegressionTasks):
        return "is about regression tasks"
    found = instance.problem.realizability
    return None if found.holds else found.message


def convex_sets(instance: Instance) -> str | None:
    """A collection of convex sets."""
    return None if isinstance(instance.problem, ConvexSets) else "is about convex sets"


def classification(instance: Instance) -> str | None:
    """Jointly separable classification tasks."""
    if not isinstance(instance.problem, ClassificationTasks):
        return "is about classification tasks"
    found = instance.problem.separability
    return None if found.holds else f"needs jointly separable tasks, but these are {found.message}"


def pocs(instance: Instance) -> str | None:
    """Tasks learned by projection, in the limit of vanishing regularisation."""
    return None if isinstance(instance.scheme, POCS | None) else "covers tasks learned by projection, scheme=POCS()"


def small(most: int) -> Missing:
    """At most this dimension, for lemmas checked on dense matrices."""
    return lambda instance: None if instance.problem.dim <= most else f"is checked for d <= {most}"


def steps(first: int = 1, last: int | None = None, what: str = "k") -> Missing:
    """k from `first` on; with `last`, up to T - last."""

    def missing(instance: Instance) -> str | None:
        most = None if last is None else instance.problem.num_tasks - last
        if instance.k < first or (most is not None and instance.k > most):
            return f"covers {what} >= {first}" + ("" if most is None else f" up to {most}") + f", got {instance.k}"
        return None

    return missing


def covers(*orderings: str) -> Missing:
    """One of the orderings named as in the bounds."""

    def missing(instance: Instance) -> str | None:
        if instance.problem is None or instance.ordering is None:
            return "needs a problem and an ordering"
        try:
            tags = describe_ordering(instance.ordering, as_regression(instance.problem), instance.k)
            instance.ordering.check(instance.problem.num_tasks, instance.k)
        except ForgettingError as error:
            return str(error)
        return None if tags & set(orderings) else f"covers {' or '.join(orderings)} orderings"

    return missing


def projection(instance: Instance) -> str | None:
    """A scheme that learns a task to convergence."""
    tags = describe_scheme(instance.scheme, instance.problem)[0]
    return None if "projection" in tags else "covers tasks learned to convergence"


def least_squares(above: float = 0.0, most: float = 2.0, *, closed: bool = False) -> Missing:
    """SGD with a fixed step on realizable least squares, above < eta beta < most (`closed`: most included)."""

    def missing(instance: Instance) -> str | None:
        if (reason := regression(instance)) is not None:
            return reason
        try:
            one = as_least_squares(instance)
        except ForgettingError as error:
            return str(error)
        beta = one.problem.radius**2
        x = float(one.scheme.step_size) * beta  # type: ignore[union-attr]
        if beta == 0:
            return "beta must be positive"
        slack = 1 + 1e-12
        if not (above * slack < x and (x <= most * slack if closed else x < most)):
            return f"covers {above:g} < eta beta {'<=' if closed else '<'} {most:g}, got {x:.4g}"
        return None

    return missing


def setting_of(instance: Instance, **more: Any) -> Setting:
    """The parameters of the instance, as bounds want them."""
    return Setting.of(instance.problem, instance.w0, instance.scheme, instance.ordering, **more)


def settling(settle: Callable[[Instance], Instance] | None) -> dict[str, Any]:
    """The field `settle` of a claim, where there is one."""
    return {} if settle is None else {"settle": settle}


def engines(check: Callable[[Instance, Any], Sides], *, sgd: bool = False) -> dict[str, Any]:
    """`sides` and `precise` of a claim whose both sides are made of expectations."""

    def run(engine: type[Numbers] | type[Precise], instance: Instance) -> Sides:
        one = as_least_squares(instance) if sgd else instance
        return check(one, engine(one))

    return {"sides": lambda instance: run(Numbers, instance), "precise": lambda instance: run(Precise, instance)}


def asked(numbers: Any, name: str, k: int) -> tuple[Any, float]:
    """A value of `Numbers` or `Precise`, and how far it may be off."""
    before = numbers.doubt
    value = getattr(numbers, name)(k)
    return value, numbers.doubt - before


def bounded(key: str, quantity: str) -> dict[str, Any]:
    """`sides`, `precise` and `missing` of the claim that `quantity` is at most the bound of this key."""
    bound = get_bound(key)

    def check(instance: Instance, numbers: Any) -> Sides:
        setting = setting_of(instance)
        lhs = getattr(numbers, quantity)(instance.k)
        return Sides(lhs, bound.value(setting, instance.k), numbers.doubt + ROUNDING * setting.scale, how=numbers.how)

    def missing(instance: Instance) -> str | None:
        if not isinstance(instance.problem, LinearTasks | ConvexSets):
            return f"is about {' or '.join(bound.problems)}"
        try:
            setting = setting_of(instance)
        except ForgettingError as error:
            return str(error)
        if setting.problem not in bound.problems:
            return f"is about {' or '.join(bound.problems)}"
        return bound.why_not(setting, instance.k)

    return {**engines(check), "missing": all_of(covers(*bound.orderings), projection, missing)}
