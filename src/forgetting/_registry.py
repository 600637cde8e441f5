"""One registry per kind of thing: orderings, schemes, convex sets, engines, quantities, sections of the report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from forgetting._text import nearest
from forgetting.errors import InvalidInputError

__all__ = ["Registry", "class_decorator", "dashed", "registered_class"]

T = TypeVar("T")
C = TypeVar("C", bound=type)
K = TypeVar("K")


def dashed(name: str) -> str:
    """The name of a class as it is typed in a shell.

    >>> dashed("WithoutReplacement"), dashed("SGD")
    ('without-replacement', 'sgd')
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


class Registry(Generic[T]):
    """Things of one kind by name, in the order in which they were added.

    >>> tools = Registry[str]("tool")
    >>> tools.add("saw", "cuts"), "saw" in tools, list(tools)
    ('cuts', True, ['saw'])
    >>> tools.get("sow")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: no tool 'sow'; did you mean 'saw'? There are saw
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._members: dict[str, T] = {}

    def add(self, name: str, member: T, *, replace: bool = False) -> T:
        """Add a member under a new name; `replace=True` puts the member in place of an earlier one of that name."""
        if name in self._members and not replace:
            raise InvalidInputError(f"there is already a {self.kind} {name!r}; choose another name")
        self._members[name] = member
        return member

    def get(self, name: str) -> T:
        """The member of this name; an error suggests the name that is closest."""
        if name not in self._members:
            raise InvalidInputError(f"no {self.kind} {name!r}{nearest(name, self)}")
        return self._members[name]

    def remove(self, name: str) -> None:
        """Remove the member of this name."""
        self.get(name)
        del self._members[name]

    def members(self) -> tuple[T, ...]:
        """All members, in the order in which they were added."""
        return tuple(self._members.values())

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._members))

    def __len__(self) -> int:
        return len(self._members)


def registered_class(registry: Registry[type[K]], name: str) -> type[K] | None:
    """The registered class with this name, with which a file that names the class is read; None if there is none.

    >>> from forgetting.sets import registry
    >>> registered_class(registry, "Box"), registered_class(registry, "Boxes")
    (<class 'forgetting.sets.boxes.Box'>, None)
    """
    member = registry.get(dashed(name)) if dashed(name) in registry else None
    return member if member is not None and member.__name__ == name else None


def class_decorator(registry: Registry[type], base: Callable[[], type]) -> Callable[[C], C]:
    """A decorator that adds a class derived from `base()` to the registry under its dashed name."""

    def register(cls: C) -> C:
        """Make a class known by its dashed name, to the command line and to files."""
        if not (isinstance(cls, type) and issubclass(cls, base())):
            raise InvalidInputError(f"expected a class derived from {base().__name__}, got {cls!r:.80}")
        registry.add(dashed(cls.__name__), cls, replace=_same(registry, cls))
        return cls

    return register


def _same(registry: Registry[type], cls: type) -> bool:
    """Whether the class replaces an earlier one of its own module, as when a notebook cell runs twice."""
    name = dashed(cls.__name__)
    return name in registry and registry.get(name).__module__ == cls.__module__
