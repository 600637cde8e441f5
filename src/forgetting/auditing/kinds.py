"""What `fg.audit` reads beside tasks: objects that state their kind, each kind with an audit of its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, cast, overload

from forgetting.core.arrays import Seed
from forgetting.core.registry import Registry
from forgetting.errors import InvalidInputError

if TYPE_CHECKING:
    from forgetting.auditing.accuracy_matrices import MatrixAudit
    from forgetting.auditing.class_order_result import ClassOrderAudit
    from forgetting.auditing.result import Audit
    from forgetting.core.progress import Progress
    from forgetting.dynamics.accuracy_matrices import AccuracyMatrices
    from forgetting.schemes.base import SchemeLike
    from forgetting.tasks.class_splits import ClassSplits

Function = TypeVar("Function", bound=Callable[..., Any])
Options = ParamSpec("Options")

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


class AnyAudit(Protocol[Options]):
    """The type of `fg.audit`: for each kind its own audit, and for all else `Audit`."""

    @overload  # Any, which the other one takes, is no ClassSplits where this one matches
    def __call__(  # type: ignore[overload-overlap]
        self,
        tasks: ClassSplits,
        *,
        order: Any = None,
        scheme: SchemeLike | None = None,
        seed: Seed = 0,
        patience: float = 30.0,
        title: str | None = None,
        progress: Progress = False,
    ) -> ClassOrderAudit: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, tasks: AccuracyMatrices, *, title: str | None = None, progress: Progress = False
    ) -> MatrixAudit: ...
    @overload
    def __call__(self, *arguments: Options.args, **options: Options.kwargs) -> Audit: ...


def or_own_audit(function: Callable[Options, Audit]) -> AnyAudit[Options]:
    """Decorate `audit`: an object that states a kind in `audited_as` is audited by the audit of that kind."""

    usual_audit: Callable[..., Audit] = function

    @wraps(function)
    def call(tasks: Any, **options: Any) -> Any:
        tasks = next((made for made in (read(tasks) for read in READERS) if made is not None), tasks)
        kind = getattr(tasks, "audited_as", None)
        if not isinstance(kind, str) or kind not in KINDS:
            return usual_audit(tasks, **options)
        own = KINDS.get(kind)
        known, usual = inspect.signature(own).parameters, inspect.signature(function).parameters
        for name in options:
            if name in usual and name not in known:
                there = ", ".join(option for option in known if option in usual and option != "tasks")
                raise InvalidInputError(
                    f"{name}= has no meaning for an audit of {kind}; leave {name}= out, there are {there}"
                )
        return own(tasks, **options)

    return cast("AnyAudit[Options]", call)
