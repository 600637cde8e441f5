"""One registry per kind of thing: orderings, schemes, convex sets, engines, quantities, sections of the report.

Members are made from words as a user types them: a name, and parameters as name=value.
"""

from __future__ import annotations

import ast
import inspect
import re
import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from forgetting.core.text import nearest
from forgetting.errors import ForgettingError, InvalidInputError, NotSupportedError

T = TypeVar("T")
C = TypeVar("C", bound=type)
K = TypeVar("K")


def dashed(name: str) -> str:
    """The name of a class as it is typed in a shell.

    >>> dashed("WithoutReplacement"), dashed("SGD")
    ('without-replacement', 'sgd')
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


def letters(name: str) -> str:
    """The letters and digits of a name, by which its spellings are the same.

    >>> letters("With replacement") == letters("with-replacement") == letters("WithReplacement")
    True
    """
    return re.sub(r"[\W_]", "", name.lower())


_tables: list[tuple[str, dict[Any, Any]]] = []  # the kind and the members of every registry


def watched(kind: str, table: dict[K, T]) -> dict[K, T]:
    """Let `additions_only` see a table of members of one kind."""
    _tables.append((kind, table))
    return table


@contextmanager
def additions_only() -> Iterator[None]:
    """Take back all that the block adds to registries if the block raises, or if it replaces or removes a member.

    >>> tools = Registry[str]("tool")
    >>> _ = tools.add("saw", "cuts")
    >>> with additions_only():
    ...     tools.add("axe", "splits"), tools.remove("saw")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: it removes the tool 'saw', which is not its own
    >>> list(tools)
    ['saw']
    """
    before = [(kind, table, dict(table)) for kind, table in _tables]
    try:
        yield
        for kind, table, content in before:
            for name, member in content.items():
                if table.get(name) is not member:
                    verb = "replaces" if name in table else "removes"
                    raise InvalidInputError(f"it {verb} the {kind} {name!r:.80}, which is not its own")
    except BaseException:
        for _, table, content in before:
            table.clear()
            table.update(content)
        raise


class Registry(Generic[T]):
    """Things of one kind by name, in the order in which they were added.

    >>> tools = Registry[str]("tool")
    >>> tools.add("saw", "cuts"), "saw" in tools, list(tools)
    ('cuts', True, ['saw'])
    >>> tools.get("sow")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: no tool 'sow'; did you mean 'saw'? There are saw

    `also` holds other words for members, with parameters if need be, which users type and nothing lists.

    >>> tools = Registry[str]("tool", {"hatchet": "small-axe"})
    >>> _ = tools.add("small-axe", "splits")
    >>> tools.named("SmallAxe"), tools.named("small axe"), tools.named("Hatchet"), tools.named("hammer")
    ('small-axe', 'small-axe', 'small-axe', None)
    """

    def __init__(self, kind: str, also: Mapping[str, str] | None = None) -> None:
        self.kind = kind
        self.also = dict(also or {})
        self._members: dict[str, T] = watched(kind, {})

    def add(self, name: str, member: T, *, replace: bool = False) -> T:
        """Add a member under a new name; `replace=True` puts the member in place of an earlier one of that name."""
        if not isinstance(name, str) or not name:
            raise InvalidInputError(f"the name of a {self.kind} must be a text, got {name!r:.80}")
        if name in self._members and replace is not True:
            raise InvalidInputError(f"there is already a {self.kind} {name!r}; choose another name")
        self._members[name] = member
        return member

    def get(self, name: str) -> T:
        """The member of this name; an error suggests the name that is closest."""
        if name not in self:
            raise InvalidInputError(f"no {self.kind} {name!r:.80}{nearest(name, self)}")
        return self._members[name]

    def named(self, name: str) -> str | None:
        """The name of the member that is meant, whatever the spelling; with parameters for some words of `also`.

        None if there is no such member.
        """
        if name in self or not isinstance(name, str):
            return name if name in self else None
        folded = letters(name)
        spellings = (*((known, known) for known in self), *self.also.items())
        return next((known for word, known in spellings if letters(word) == folded), None)

    def remove(self, name: str) -> None:
        """Remove the member of this name."""
        self.get(name)
        del self._members[name]

    def members(self) -> tuple[T, ...]:
        """All members, in the order in which they were added."""
        return tuple(self._members.values())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._members))

    def __len__(self) -> int:
        return len(self._members)


def registered_class(registry: Registry[type[K]], name: str) -> type[K] | None:
    """The registered class with this name, with which a file that names the class is read; None if there is none.

    >>> from forgetting.sets import registry
    >>> registered_class(registry, "Box"), registered_class(registry, "Boxes")
    (<class 'forgetting.sets.balls_and_boxes.Box'>, None)
    """
    member = registry.get(dashed(name)) if dashed(name) in registry else None
    return member if member is not None and member.__name__ == name else None


class HasSettings(Protocol):
    """An object that one call of its class with `settings` as keywords makes again."""

    def settings(self) -> dict[str, Any]: ...


def saved_settings(registry: Registry[type], member: HasSettings) -> dict[str, Any]:
    """The class name and the settings of an object of a registered class, for a file.

    >>> import forgetting as fg
    >>> saved_settings(fg.schemes.registry, fg.schemes.Ridge(0.5))
    {'class': 'Ridge', 'lam': 0.5}
    """
    if registered_class(registry, type(member).__name__) is not type(member):
        raise NotSupportedError(
            f"{member} is not registered, and cannot be saved; put @fg.{registry.kind}s.register on its class"
        )
    return {"class": type(member).__name__, **member.settings()}


def from_settings(registry: Registry[type], saved: Any) -> Any:
    """The object of what `saved_settings` gave, made by its class, which checks the values."""
    if not isinstance(saved, dict) or not isinstance(saved.get("class"), str):
        raise ForgettingError(f"the settings of the {registry.kind} do not name its class")
    kind: Any = registered_class(registry, saved["class"])
    if kind is None:
        raise ForgettingError(f"there is no {registry.kind} {saved['class']!r:.80}")
    return kind(**{name: _restored(registry, value) for name, value in saved.items() if name != "class"})


def _restored(registry: Registry[type], value: Any) -> Any:
    """A setting, which may be an object of the same registry or a list of some, as the scheme of `Decay` is."""
    if isinstance(value, list):
        return [_restored(registry, entry) for entry in value]
    return from_settings(registry, value) if isinstance(value, dict) and "class" in value else value


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


# ---------------------------------------------------------------------------------------------------- from words


def made_from(registry: Registry[type], words: str) -> Any:
    """Make a member of a registry from its name and its parameters, as a user types them.

    >>> from forgetting.schemes import registry
    >>> made_from(registry, "ridge lam=0.1"), made_from(registry, "gradient descent tol=1e-9").tol
    (Ridge(lam=0.1), 1e-09)
    >>> made_from(registry, "rigde lam=0.1")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: no scheme 'rigde'; did you mean 'ridge'? ...
    """
    try:
        parts = shlex.split(words)
    except ValueError as error:
        raise InvalidInputError(f"{registry.kind} {words!r:.60}: {str(error).lower()}; quotes come in pairs") from None
    length = next((place for place, word in enumerate(parts) if "=" in word), len(parts))
    typed = dashed("-".join(parts[:length])).replace("_", "-")
    key, *more = (registry.named(typed) or typed).split(" ")
    return call_with(registry.get(key), values_in([*more, *parts[length:]]), f"{registry.kind} {key}")


def check_call(make: Callable[..., Any], values: Mapping[str, Any], what: str) -> None:
    """Raise unless `make` takes these keywords and needs no others."""
    known = inspect.signature(make).parameters
    for name in values:
        if name not in known:
            listed = nearest(name, known) if known else "; it has none"
            if isinstance(values.get("scheme"), str):
                listed += f"; words for its scheme take quotes: 'scheme={values['scheme']} {name}=...'"
            raise InvalidInputError(f"{what} has no parameter {name!r}{listed}")
    missing = [name for name in known if known[name].default is inspect.Parameter.empty and name not in values]
    if missing:
        raise InvalidInputError(f"{what} needs {', '.join(f'{name}=...' for name in missing)}")


def call_with(make: Callable[..., Any], values: Mapping[str, Any], what: str) -> Any:
    """Call `make` with keywords; an error names a keyword that is unknown or missing."""
    check_call(make, values, what)
    try:
        return make(**values)
    except TypeError as error:
        raise InvalidInputError(f"{what}: {error}") from error


def values_in(words: Iterable[str]) -> dict[str, Any]:
    """The parameters that words such as "lam=0.1" give, by name.

    >>> values_in(["lam=0.1", "seq=0,1,1", "repeat=false"])
    {'lam': 0.1, 'seq': (0, 1, 1), 'repeat': False}
    """
    values: dict[str, Any] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign or not name:
            raise InvalidInputError(f"expected name=value, got {word!r}")
        if name in values:
            raise InvalidInputError(f"{name} is given twice")
        values[name] = value_in(text)
    return values


def value_in(text: str) -> Any:
    """The number, list or truth value that a text spells; else the text itself.

    >>> value_in("64"), value_in("0.5,0.4"), value_in("auto")
    (64, (0.5, 0.4), 'auto')
    """
    if text.lower() in ("true", "false", "none"):
        return {"true": True, "false": False, "none": None}[text.lower()]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of strange escapes in a text
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
