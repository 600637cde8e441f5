"""Packages of others that add orderings, schemes, convex sets, engines, quantities, statements or report sections."""

from __future__ import annotations

import runpy
import sys
import time
import warnings
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import import_module
from importlib.metadata import EntryPoint, distributions, entry_points
from pathlib import Path
from traceback import walk_tb

from forgetting.core.registry import additions_only
from forgetting.core.text import error_words, one_line
from forgetting.errors import InvalidInputError

GROUP = "forgetting"  # the group of entry points
LONG = 5.0  # seconds after which an import is called slow
LONGEST = 400  # characters of an error that are shown
#: packages that hold the names of this one: imported before plugins, which then cannot take one of these names
HOMES = ("orderings", "schemes", "sets", "solver", "expectation", "bounds", "claims", "studies", "report")
loaded: list[str] = []  # the names of all plugins of this process, which a new process does not have
_modules: dict[str, str] = {}  # the module of each plugin


def load_plugins() -> list[str]:
    """Import what installed packages name in the entry points of the group "forgetting"; the names of the plugins.

    A plugin registers what it adds when it is imported. The command line calls this function at its start; in Python,
    importing the package does the same. A plugin that fails, or that replaces what is not its own, is named in a
    warning, and nothing of it stays. What plugins print goes to stderr.
    """
    plugins = sorted(_entry_points(), key=lambda point: (point.name, point.value))
    for home in HOMES if plugins else ():
        import_module(f"forgetting.{home}")
    if plugins:
        import_module("forgetting.report").section_makers()
    names = []
    for plugin in plugins:
        what, began = f"the plugin {plugin.name!r} ({plugin.value})", time.monotonic()
        try:
            with additions_only(), redirect_stdout(sys.stderr):
                plugin.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also SystemExit, which would end the command without a word
            warnings.warn(f"{what} was left out: {one_line(error_words(error), LONGEST)}", stacklevel=2)
        else:
            names.append(plugin.name)
            _modules[plugin.name] = plugin.value.partition(":")[0].strip()
        if (seconds := time.monotonic() - began) > LONG:
            warnings.warn(f"{what} took {seconds:.0f} s to import", stacklevel=2)
    loaded.extend(names)
    return names


def _entry_points() -> Sequence[EntryPoint]:
    """The plugins that are installed; packages whose entry points are damaged are named, and left out."""
    try:
        return tuple(entry_points(group=GROUP))
    except Exception:  # of any package that is installed, whatever its entry points are for
        points: dict[tuple[str, str], EntryPoint] = {}
        for package in distributions():
            try:
                points |= {(point.name, point.value): point for point in package.entry_points.select(group=GROUP)}
            except Exception as error:
                name = package.metadata["Name"]
                warnings.warn(f"the entry points of {name!r} were left out: {error_words(error)}", stacklevel=3)
        return tuple(points.values())


def load_plugin(name: str) -> None:
    """Run a Python file, or import a module by its name, so that it registers what it adds.

    >>> load_plugin("mine.py")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: plugin mine.py: no such file
    """
    try:
        with redirect_stdout(sys.stderr):
            if not name.endswith(".py"):
                import_module(name)
            elif Path(name).is_file():
                runpy.run_path(name, run_name=Path(name).stem)
            else:
                raise InvalidInputError("no such file")
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        said = str(error) if isinstance(error, InvalidInputError) else one_line(error_words(error), LONGEST)
        raise InvalidInputError(f"plugin {name}: {said}") from error
    loaded.append(name)
    _modules[name] = Path(name).stem if name.endswith(".py") else name


def blamed(error: BaseException) -> str | None:
    """The plugin in whose code an error was raised, with the place and the error; None if no plugin had a part in it.

    >>> blamed(ValueError("x")) is None
    True
    """
    for frame, line in reversed(list(walk_tb(error.__traceback__))):
        home = str(frame.f_globals.get("__name__"))
        for name, module in _modules.items():
            if home == module or home.startswith(f"{module}."):
                place = f"{frame.f_code.co_filename}, line {line}"
                return f"the plugin {name!r} failed: {one_line(error_words(error), LONGEST)} ({place})"
    return None


def load_missing(names: Sequence[str]) -> None:
    """Load the plugins of another process that this process does not have.

    >>> load_missing([])
    """
    if any(name not in loaded for name in names):
        known = {plugin.name for plugin in _entry_points()}
        if known & set(names):
            load_plugins()
        for name in names:
            if name not in loaded:
                load_plugin(name)
