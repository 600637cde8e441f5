"""Packages of others that add orderings, schemes, convex sets, engines, quantities, statements or report sections."""

from __future__ import annotations

import warnings
from importlib.metadata import entry_points

__all__ = ["GROUP", "load_plugins"]

GROUP = "forgetting"  # of entry points


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
    return names
