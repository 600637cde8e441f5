"""The public interface keeps what `manifest.txt` lists: names, parameters, and the members of public classes.

The first manifest is that of commit 8182217. After a change, `python tests/interface/test_manifest.py` writes it anew.
A line that the interface no longer keeps stays in the file with a minus before it, and CHANGELOG.md must have its name.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

MANIFEST = Path(__file__).with_name("manifest.txt")
CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"
HEAD = "# The public interface of forgetting. Written by: python tests/interface/test_manifest.py"
BESIDE = (
    "auditing",
    "estimators",
    "expectation",
    "explorer",
    "report",
    "results",
    "sets",
    "tasks",
)  # `forgetting` lists the others


def public() -> dict[str, Any]:
    """Every name in `__all__` of a public module, and what it is."""
    found: dict[str, Any] = {}
    modules = [
        importlib.import_module("forgetting"),
        *(importlib.import_module(f"forgetting.{name}") for name in BESIDE),
    ]
    seen = {module.__name__ for module in modules}
    for module in modules:  # grows while it is read
        for name in module.__all__:
            thing = getattr(module, name)
            if not inspect.ismodule(thing):
                found[f"{module.__name__}.{name}"] = thing
            elif thing.__name__ not in seen:
                seen.add(thing.__name__)
                modules.append(thing)
    return found


def interface() -> list[str]:
    """A line for each public name, and for each public member of a class, where it is defined first."""
    found = public()
    classes = [thing for thing in found.values() if inspect.isclass(thing)]
    made = {f"{where}{_parameters(thing)}" for where, thing in found.items()}
    for where, thing in found.items():
        if inspect.isclass(thing):
            made |= {f"{where}.{member}" for member in _members(thing, classes)}
    return sorted(made)


def _members(cls: type, classes: list[type]) -> Iterator[str]:
    """The public members of a class but for those of another public class."""
    above = [base for base in cls.__mro__[1:] if base in classes]
    homes = [base for base in cls.__mro__ if base.__module__.startswith("forgetting") and base not in above]
    inherited = {name for base in above for name in dir(base)}
    names = {name for base in homes for name in (*vars(base), *vars(base).get("__annotations__", {}))} - inherited
    for name in sorted(name for name in names if not name.startswith("_")):
        yield f"{name}{_parameters(getattr(cls, name, None))}"


def _parameters(thing: Any) -> str:
    """Names, and an equals sign where there is a default; neither types nor values, which may become better."""
    if not (inspect.isroutine(thing) or (inspect.isclass(thing) and not issubclass(thing, Exception))):
        return ""
    try:
        given = list(inspect.signature(thing).parameters.values())
    except (TypeError, ValueError):
        return ""
    parts = []
    for one in given:
        if one.kind is one.KEYWORD_ONLY and "*" not in parts and not any(part[0] == "*" for part in parts):
            parts.append("*")
        sign = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        parts.append(f"{sign}{one.name}{'' if one.default is one.empty else '='}")
    return f"({', '.join(parts)})"


def why_left(line: str) -> str | None:
    """Why code that uses this line of the manifest no longer works, or None."""
    name, _, parameters = line.removesuffix(")").partition("(")
    parts = name.split(".")[1:]
    thing: Any = importlib.import_module("forgetting")
    for place, part in enumerate(parts):
        annotated = inspect.isclass(thing) and any(
            part in vars(base).get("__annotations__", {}) for base in thing.__mro__
        )
        if not hasattr(thing, part):
            try:
                importlib.import_module(f"forgetting.{'.'.join(parts[: place + 1])}")
            except ImportError:
                return None if annotated and part == parts[-1] else f"there is no {part}"
        thing = getattr(thing, part)
    return _why_not_called(parameters.split(", "), _parameters(thing)[1:-1].split(", ")) if parameters else None


def _why_not_called(then: list[str], now: list[str]) -> str | None:
    """Why calls with the parameters of then fail: one is gone or was moved, or a new one has no default."""

    def split(parts: list[str]) -> tuple[list[str], set[str]]:
        at = next((place for place, part in enumerate(parts) if part.startswith("*")), len(parts))
        return parts[:at], {part for part in parts[at:] if part != "*"}

    (before, named), (after, others) = split(then), split(now)
    plain = [part.rstrip("=") for part in after]
    for place, part in enumerate(before):
        if plain[place : place + 1] != [part.rstrip("=")]:
            return f"the parameter {part} is not at place {place}"
    for part in named:
        if part.rstrip("=") not in {*plain, *(other.rstrip("=") for other in others)}:
            return f"the parameter {part} is gone"
    known = {part.rstrip("=") for part in then}
    needed = [part for part in (*after, *others) if not part.endswith("=") and part[0] != "*" and part not in known]
    return f"the new parameter {needed[0]} has no default" if needed else None


def _read() -> tuple[list[str], list[str]]:
    """The lines of the manifest that are kept, and those that have left."""
    text = [line for line in MANIFEST.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return [line for line in text if line[0] != "-"], [line[2:] for line in text if line[0] == "-"]


def test_nothing_left_the_public_interface():
    kept, _ = _read()
    gone = [f"{line}: {why}" for line in kept if (why := why_left(line)) is not None]
    assert not gone, "if that is meant, say so in CHANGELOG.md, and: python tests/interface/test_manifest.py"


def test_new_public_names_are_in_the_manifest():
    kept, _ = _read()
    known = {line.partition("(")[0] for line in kept}
    new = [name for name in public() if name not in known]
    assert not new, "if they are meant to be public: python tests/interface/test_manifest.py"


def test_what_left_the_interface_is_named_in_the_changelog():
    words = set(re.findall(r"\w+", CHANGELOG.read_text(encoding="utf-8")))
    _, gone = _read()
    assert not [line for line in gone if line.partition("(")[0].rpartition(".")[2] not in words]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("forgetting.expect(problem, ordering, k)", None),
        ("forgetting.run(problem, ordering, k, scheme=, *, record_every=)", None),
        ("forgetting.expect(ordering, problem)", "the parameter ordering is not at place 0"),
        ("forgetting.expect(problem, ordering, k, *, colour=)", "the parameter colour= is gone"),
        ("forgetting.expect(problem)", "the new parameter ordering has no default"),
        ("forgetting.exspect", "there is no exspect"),
        ("forgetting.RegressionTasks.radius", None),
        ("forgetting.Trajectory.seed", None),
        ("forgetting.auditing.Audit.title", None),
        ("forgetting.auditing.Audit.titel", "there is no titel"),
    ],
)
def test_what_a_caller_would_notice_is_noticed(line, why):
    assert why_left(line) == why


if __name__ == "__main__":
    kept, gone = _read() if MANIFEST.exists() else ([], [])
    left = sorted({line for line in {*gone, *kept} if why_left(line) is not None})
    now = interface()
    MANIFEST.write_text("\n".join([HEAD, *now, *(f"- {line}" for line in left)]) + "\n", encoding="utf-8")
    print(f"{len(now)} lines; {len(left)} have left, of which {len(set(left) - set(gone))} now")
