"""Draw docs/images/architecture.svg from the import graph: `python docs/_tools/architecture.py`.

A box is a package or a module of `forgetting`, as the layers in pyproject.toml list them, with the first line of its
docstring and its size. A line is an import that is not implied by others: cli imports everything, but what matters is
that it stands on auditing. The graph is kept in the figure, and a test compares it with the code.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import tomllib
from pathlib import Path
from textwrap import shorten
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FIGURE = ROOT / "docs" / "images" / "architecture.svg"
SOURCE = ROOT / "src" / "forgetting"


def layers() -> list[str]:
    """The packages, from the top to the bottom."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    rows = config["tool"]["importlinter"]["contracts"][0]["layers"]
    return [name.strip().removeprefix("forgetting.") for row in rows for name in row.split("|")]


def box_of(module: str) -> str | None:
    """The box that a module belongs to; `forgetting` itself, `__main__` and `_version` have none."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in layers() else None


def import_graph() -> dict[str, list[str]]:
    """What each box imports, without what follows from the rest."""
    import grimp

    graph = grimp.build_graph("forgetting", cache_dir=None)
    direct: dict[str, set[str]] = {name: set() for name in layers()}
    for module in graph.modules:
        here = box_of(module)
        for other in graph.find_modules_directly_imported_by(module):
            there = box_of(other)
            if here and there and here != there:
                direct[here].add(there)

    def reachable(name: str, without: str) -> set[str]:
        seen: set[str] = set()
        open_ = [one for one in direct[name] if one != without]
        while open_:
            one = open_.pop()
            if one not in seen:
                seen.add(one)
                open_ += direct[one]
        return seen

    return {name: sorted(one for one in direct[name] if one not in reachable(name, one)) for name in direct}


def about(name: str) -> tuple[str, int]:
    """The first line of a box's docstring, and its lines of code."""
    folder = SOURCE / name
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [SOURCE / f"{name}.py"]
    head = folder / "__init__.py" if folder.is_dir() else files[0]
    words = (ast.get_docstring(ast.parse(head.read_text(encoding="utf-8"))) or "").split("\n")[0]
    words = re.split(r"[.:;]\s|[.:;]$", words)[0].replace("`", "")
    return words, sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files if file.exists())


def draw(path: Path = FIGURE) -> None:
    """Write the figure."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt
    from matplotlib.patches import FancyBboxPatch, PathPatch
    from matplotlib.path import Path as Curve

    names, graph = layers(), import_graph()
    settings: dict[str, Any] = {"svg.fonttype": "none", "svg.hashsalt": "architecture", "font.family": "sans-serif"}
    with mpl.rc_context(settings):
        figure, axes = plt.subplots(figsize=(9.2, 0.46 * len(names) + 0.3))
        place = {name: len(names) - 1 - i for i, name in enumerate(names)}
        for name, y in place.items():
            words, size = about(name)
            axes.add_patch(
                FancyBboxPatch(
                    (0, y - 0.36),
                    7.6,
                    0.72,
                    boxstyle="round,pad=0,rounding_size=0.12",
                    fc="#eef3f8",
                    ec="#4a6a8a",
                    lw=0.8,
                )
            )
            axes.text(0.12, y, name, va="center", weight="bold", size=10, color="#1f2f3f")
            axes.text(1.62, y, shorten(words, 64, placeholder=" ..."), va="center", size=8, color="#33475b")
            axes.text(7.5, y, f"{size:,}", va="center", ha="right", size=8, color="#6b7f93")
        for name, others in graph.items():
            for other in others:
                high, low = place[name], place[other]
                reach = 7.7 + 0.22 * abs(high - low) ** 0.9
                curve = Curve(
                    [(7.6, high - 0.1), (reach, high - 0.1), (reach, low + 0.1), (7.6, low + 0.1)],
                    [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4],
                )
                axes.add_patch(PathPatch(curve, fc="none", ec="#b0553f", lw=0.9, alpha=0.8))
                axes.annotate(
                    "",
                    xy=(7.6, low + 0.1),
                    xytext=(7.66, low + 0.103),
                    arrowprops={"arrowstyle": "-|>", "color": "#b0553f", "lw": 0.6, "mutation_scale": 7},
                )
        axes.text(7.5, len(names) - 0.42, "lines", ha="right", va="bottom", size=8, color="#6b7f93")
        axes.set(xlim=(-0.05, 9.3), ylim=(-0.55, len(names) - 0.1))
        axes.axis("off")
        figure.savefig(path, bbox_inches="tight", metadata={"Date": None, "Description": json.dumps(graph)})
        plt.close(figure)


def drawn_graph(path: Path = FIGURE) -> dict[str, list[str]]:
    """The graph that a figure was drawn from."""
    from xml.etree import ElementTree

    spot = ElementTree.parse(path).getroot().find(".//{http://purl.org/dc/elements/1.1/}description")
    if spot is None or spot.text is None:
        raise ValueError(f"{path} holds no graph")
    graph: dict[str, list[str]] = json.loads(spot.text)
    return graph


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figure", type=Path, nargs="?", default=FIGURE)
    draw(parser.parse_args().figure)
