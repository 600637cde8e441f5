"""The extras of the installation: what each unlocks, the command that installs it, and the error without it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from forgetting.errors import NotSupportedError


@dataclass(frozen=True)
class Extra:
    """Packages that a plain install leaves out, as `[project.optional-dependencies]` of pyproject.toml lists them.

    >>> EXTRAS[0].name, EXTRAS[0].modules
    ('data', ('pandas', 'pyarrow'))
    """

    name: str
    unlocks: str
    #: the modules that its packages bring
    modules: tuple[str, ...]
    #: packages of which users choose one themselves
    one_of: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command that installs the extra."""
        return _install(self.name)

    @property
    def missing(self) -> str:
        """The command that installs what is missing; empty where nothing is.

        >>> Extra("own", "all of mathematics", ("math",)).missing
        ''
        """
        if self.one_of and not any(map(_is_there, self.one_of)):
            return f"{self.command} {self.one_of[0]}"
        return "" if all(map(_is_there, self.modules)) else self.command


def _install(name: str) -> str:
    quote = '"' if os.name == "nt" else "'"  # the shells of Windows pass single quotes on to pip
    return f"pip install {quote}forgetting[{name}]{quote}"


#: all extras but `all`, which installs the others
EXTRAS = (
    Extra("data", "data frames, Parquet files, faster CSV", ("pandas", "pyarrow")),
    Extra("worst", "worst cases over all tasks, with a proof", ("clarabel",)),
    Extra("cluster", "studies on a Dask cluster", ("dask", "distributed")),
    Extra("device", "GPUs, by torch or CuPy of your own", ("array_api_compat",), ("torch", "cupy")),
)
EVERYTHING = _install("all")


def module_for(purpose: str, name: str, instead: str = "") -> Any:
    """Import a module that a plain install may lack; an error names the command that installs it.

    Args:
        purpose: what needs the module.
        name: the module.
        instead: what to do without it.

    >>> module_for("this line", "math").pi > 3
    True
    >>> module_for("this line", "no_module", "write another")
    Traceback (most recent call last):
    forgetting.errors.NotSupportedError: this line needs no-module, which is not installed: pip install no-module, ...
    """
    try:
        return import_module(name)
    except ImportError as error:
        root = name.partition(".")[0]
        package = root.replace("_", "-")
        extra = next((extra for extra in EXTRAS if root in (*extra.modules, *extra.one_of)), None)
        command = extra.command if extra else "pip install"
        if extra is None or root in extra.one_of:
            command += f" {package}"
        absent = isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == root
        why = "which is not installed" if absent else f"which cannot be imported here ({error})"
        remedy = f"{command}, or {instead}" if instead else command
        raise NotSupportedError(f"{purpose} needs {package}, {why}: {remedy}") from None


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):  # a module without a specification, as tests put into sys.modules
        return False
