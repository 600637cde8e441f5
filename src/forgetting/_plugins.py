"""Packages of others that add orderings, schemes, convex sets, engines, quantities, statements or report sections."""

from __future__ import annotations

import runpy
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from forgetting.errors import InvalidInputError

__all__ = ["GROUP", "load_missing", "load_plugin", "load_plugins", "loaded"]

GROUP = "forgetting"  # of entry points
loaded: list[str] = []  # the names of all plugins of this process, which a new process does not have


def load_plugins() -> list[str]:
    """Import what installed packages name in the entry points of the group "forgetting"; the names of the plugins.

    A plugin registers what it adds when it is imported. The command line calls this function at its start; in Python,
    importing the package does the same. A plugin that cannot be imported is named in a warning, and left out.
    """
    names = []
    for plugin in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            plugin.load()
        except Exception as error:
            warnings.warn(f"the plugin {plugin.name!r} ({plugin.value}) was left out: {error}", stacklevel=2)
        else:
            names.append(plugin.name)
    loaded.extend(names)
    return names


def load_plugin(name: str) -> None:
    """Run a Python file, or import a module by its name, so that it registers what it adds.

    >>> load_plugin("mine.py")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: plugin mine.py: no such file
    """
    try:
        if not name.endswith(".py"):
            import_module(name)
        elif Path(name).is_file():
            runpy.run_path(name, run_name=Path(name).stem)
        else:
            raise InvalidInputError("no such file")
    except Exception as error:
        kind = "" if isinstance(error, InvalidInputError) else f"{type(error).__name__}: "
        raise InvalidInputError(f"plugin {name}: {kind}{error}") from error
    loaded.append(name)


def load_missing(names: Sequence[str]) -> None:
    """Load the plugins of another process that this process does not have.

    >>> load_missing([])
    """
    if any(name not in loaded for name in names):
        known = {plugin.name for plugin in entry_points(group=GROUP)}
        if known & set(names):
            load_plugins()
        for name in names:
            if name not in loaded:
                load_plugin(name)
