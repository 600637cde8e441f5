"""The Python source of functions, as nodes, with what a function sees."""

from __future__ import annotations

import ast
import builtins
from functools import cache
from types import CodeType
from typing import Any


class NoSourceError(Exception):
    """The source of a function is not to be found."""


def seen_by(function: Any) -> dict[str, Any]:
    """What a function sees: its module, and the variables that it closes over.

    >>> seen_by(seen_by)["ast"] is ast
    True
    """
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    inner = {name: cell.cell_contents for name, cell in cells}
    return {**vars(builtins), **function.__globals__, **inner}


@cache
def _by_line(path: str) -> dict[int, list[ast.Lambda | ast.FunctionDef]]:
    """The functions of a file, by the lines that they begin at."""
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    lines: dict[int, list[ast.Lambda | ast.FunctionDef]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            above = [] if isinstance(node, ast.Lambda) else node.decorator_list
            for line in {node.lineno, *(one.lineno for one in above)}:
                lines.setdefault(line, []).append(node)
    return lines


@cache
def definition(code: CodeType) -> ast.Lambda | ast.FunctionDef:
    """The node of the source that a function was made from."""
    try:
        near = _by_line(code.co_filename).get(code.co_firstlineno, [])
    except OSError as error:
        raise NoSourceError(f"has no source: {error}") from error
    places = [(line, column) for line, _, column, _ in code.co_positions() if line and column]
    held = []
    for node in near:
        if isinstance(node, ast.FunctionDef):
            if node.name == code.co_name:
                return node
        elif code.co_name == "<lambda>":
            first, last = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
            if all(first <= place <= last for place in places):
                held.append(node)
    if not held:
        raise NoSourceError(f"has no source at line {code.co_firstlineno}")
    return max(held, key=lambda node: node.col_offset)
