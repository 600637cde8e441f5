"""What `fg.audit` reads beside tasks: objects that state their kind, each kind with an audit of its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from forgetting.core.registry import Registry
from forgetting.errors import InvalidInputError

Function = TypeVar("Function", bound=Callable[..., Any])

#: the audit of each kind, by the word that objects of this kind state in `audited_as`
KINDS: Registry[Callable[..., Any]] = Registry("kind of audit")
#: what makes such an object of a source, as of the name of a file with logged accuracies; None of all others
READERS: list[Callable[[Any], Any]] = []


def audits(kind: str) -> Callable[[Function], Function]:
    """Decorate the audit of a kind: `fg.audit` calls it for objects whose `audited_as` is this word.

    Its keywords are those options of `fg.audit` that have a meaning for this kind; an error names any other.
    """

    def keep(function: Function) -> Function:
        KINDS.add(kind, function)
        return function

    return keep


def reads(function: Function) -> Function:
    """Decorate a function that makes an object with an audit of its own of what `fg.audit` was given, or None."""
    READERS.append(function)
    return function


def or_own_audit(function: Function) -> Function:
    """Decorate `audit`: an object that states a kind in `audited_as` is audited by the audit of that kind."""

    @wraps(function)
    def call(tasks: Any, **options: Any) -> Any:
        tasks = next((made for made in (read(tasks) for read in READERS) if made is not None), tasks)
        kind = getattr(tasks, "audited_as", None)
        if not isinstance(kind, str) or kind not in KINDS:
            return function(tasks, **options)
        own = KINDS.get(kind)
        known, usual = inspect.signature(own).parameters, inspect.signature(function).parameters
        for name in options:
            if name in usual and name not in known:
                there = ", ".join(option for option in known if option in usual and option != "tasks")
                raise InvalidInputError(
                    f"{name}= has no meaning for an audit of {kind}; leave {name}= out, there are {there}"
                )
        return own(tasks, **options)

    return cast(Function, call)
