"""The pictures of the README and of the first page of the site, for light pages and for dark ones.

`python docs/_tools/pictures.py docs/images` computes what they show and writes overview.png, question-order.png,
question-guarantee.png and question-solve.png, each with a picture beside it whose name ends in -dark, in a few seconds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

import forgetting as fg
from forgetting.figures.axes import set_axis
from forgetting.figures.style import COLOURS, DARK, Studio, drawing

STYLE = {"font.family": "sans-serif", "font.size": 9.5, "axes.grid": False, "xtick.labelsize": 9}
DPI = 240
SUBTITLE = "Nine tasks, each a little different from the one before: forgetting in % of the loss before learning"
TITLE = "One random pass forgets less than three passes in the given order"
STEPS = (2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class Theme:
    """Colours: of what is random, of what is in the given order, of words, of what matters less, and of the page."""

    random: str
    given: str
    text: str
    soft: str
    page: str

    def style(self) -> dict[str, Any]:
        """The settings of matplotlib."""
        inked = dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color", "axes.labelcolor"), self.soft)
        papered = dict.fromkeys(("axes.facecolor", "figure.facecolor"), self.page)
        return {**STYLE, **inked, **papered, "text.color": self.text, "savefig.dpi": DPI}


#: the background of the dark pictures is that of the site
THEMES = {
    "": Theme(COLOURS[0], COLOURS[1], "#1d2126", "#555555", "#ffffff"),
    "-dark": Theme(DARK[0], DARK[1], "#e4e7ea", "#a6afb8", "#131416"),
}


# ------------------------------------------------------------------------------------------------------------- numbers


def turning_lines(T: int = 9, turn: float = 45.0) -> fg.RegressionTasks:
    """Tasks whose solutions are lines in the plane that turn slowly; the common solution is at distance 1."""
    angles = np.radians(np.linspace(0.0, turn, T))
    rows = np.stack([-np.sin(angles), np.cos(angles)], axis=1)
    return fg.RegressionTasks([row[None] for row in rows], [row[:1] for row in rows])


def forgotten_by_schedule() -> dict[str, float]:
    """What each schedule forgets of the turning lines, in percent of the loss before learning."""
    tasks = turning_lines()
    T = tasks.num_tasks
    run = fg.run(tasks, "cyclic", k=3 * T)
    values = {
        "the given order, once": run.forgetting[T - 1],
        "the given order, three times": run.forgetting[3 * T - 1],
        "a random order": fg.expect(tasks, "without-replacement", k=T).forgetting,
        "three random orders": fg.expect(tasks, "reshuffled", k=3 * T).forgetting,
    }
    return {name: 100 * float(value / run.losses[0]) for name, value in values.items()}


def forgotten_by_order() -> np.ndarray:
    """What one pass over five tasks of digits forgets, in each of the 120 orders; the given order comes first."""
    tasks = fg.datasets.digits("split", rows=10)
    orders = permutations(range(tasks.num_tasks))
    return np.array([fg.run(tasks, list(order), k=tasks.num_tasks).forgetting[-1] for order in orders])


def forgotten_and_guaranteed() -> tuple[np.ndarray, list[tuple[list[float], list[float]]]]:
    """Expected forgetting of the tasks of the README, and every guarantee on it."""
    tasks = fg.families.gaussian(T=10, d=30, rank=2, seed=0)
    expected = fg.expect(tasks, "with-replacement", k=STEPS)
    series = expected.figure("forgetting", bounds=True).series
    return np.asarray(expected.forgetting), [(list(s.x), list(s.y)) for s in series if s.role in ("bound", "trivial")]


def residuals() -> dict[str, list[float]]:
    """The relative residual before the first pass over the rows of a scan, and after each pass."""
    scan = fg.datasets.tomography(size=45, angles=90, detectors=100)
    ways: dict[str, dict[str, Any]] = {
        "rows in order": {"ordering": "cyclic", "method": "kaczmarz", "maxiter": 40},
        "random rows": {"ordering": "with-replacement", "method": "kaczmarz"},
        "fg.solve": {},
    }
    found = {}
    for name, options in ways.items():
        left = [1.0]
        fg.solve(scan.A, scan.b, tol=1e-8, callback=lambda x, left=left: left.append(_residual(scan, x)), **options)
        found[name] = left
    return found


def _residual(scan: Any, x: np.ndarray) -> float:
    return float(np.linalg.norm(scan.b - scan.A @ x) / np.linalg.norm(scan.b))


# ------------------------------------------------------------------------------------------------------------- drawing


def draw_overview(shares: dict[str, float], studio: Studio, theme: Theme) -> Any:
    """A bar for each schedule, the number beside it, and the tasks."""
    figure, axes = studio.subplots(figsize=(8.3, 2.7))
    figure.subplots_adjust(left=0.285, right=0.97, top=0.72, bottom=0.04)
    if not shares["a random order"] < shares["the given order, three times"]:
        raise ValueError(f"the title of the picture is no longer true: {shares}")
    figure.text(0.02, 0.9, TITLE, size=14.5, weight="bold")
    figure.text(0.02, 0.79, SUBTITLE, size=10.5, color=theme.soft)
    colours = [theme.random if "random" in name else theme.given for name in shares]
    axes.barh(range(4), list(shares.values()), color=colours, height=0.62)
    for place, share in enumerate(shares.values()):
        axes.text(share + 1, place, f"{share:.2g} %", va="center", size=12, weight="bold")
    axes.set_yticks(range(4), list(shares), size=11.5, color=theme.text)
    axes.set(ylim=(3.5, -0.5), xlim=(0, 100))
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    _draw_lines(figure.add_axes((0.72, 0.06, 0.2, 0.43)), theme)
    return figure


def _draw_lines(axes: Any, theme: Theme) -> None:
    """The lines of the tasks, with the first and the last named."""
    for angle in np.radians(np.linspace(0.0, 45.0, 9)):
        axes.plot([0.0, np.cos(angle)], [0.0, np.sin(angle)], color=theme.soft, linewidth=1.1)
    axes.text(1.04, 0.0, "task 1", size=10, color=theme.soft, va="center")
    axes.text(0.74, 0.74, "task 9", size=10, color=theme.soft, va="bottom")
    axes.set_aspect("equal")
    axes.axis("off")


def draw_order(values: np.ndarray, studio: Studio, theme: Theme) -> Any:
    """How many orders forget how much, and where the given order is."""
    figure, axes = _small(studio)
    edges = np.linspace(0, 10, 26)
    counts, _, _ = axes.hist(values, edges, color=theme.random, alpha=0.85)
    axes.plot([values[0]] * 2, [0, 0.62 * counts.max()], color=theme.given, linewidth=2.5)
    axes.text(values[0], 0.65 * counts.max(), "given order", color=theme.given, ha="center", weight="bold")
    axes.text(0.2, 1.05 * counts.max(), "all 120 orders", color=theme.random, weight="bold")
    axes.set(xlim=(0, 10), ylim=(0, 1.15 * counts.max()), yticks=[], xticks=[0, 5, 10], xlabel="forgetting")
    axes.spines["left"].set_visible(False)
    return figure


def draw_guarantee(
    expected: np.ndarray, guarantees: list[tuple[list[float], list[float]]], studio: Studio, theme: Theme
) -> Any:
    """Expected forgetting below every guarantee."""
    figure, axes = _small(studio)
    set_axis(axes.xaxis, (STEPS[0], STEPS[-1]), log=True)
    set_axis(axes.yaxis, (1e-8, 1e5), log=True)
    for x, y in guarantees:
        axes.plot(x, y, color=theme.given, linewidth=0.9, alpha=0.75)
    axes.plot(STEPS, expected, color=theme.random, linewidth=2.8)
    axes.text(90, 2e3, "guarantees", color=theme.given, weight="bold", ha="center")
    axes.text(4, 2e-4, "computed", color=theme.random, weight="bold")
    axes.set(xlabel="tasks learned", ylabel="forgetting", yticks=[1, 1e-4, 1e-8])
    return figure


def draw_solve(histories: dict[str, list[float]], studio: Studio, theme: Theme) -> Any:
    """How the residuals fall with each pass."""
    figure, axes = _small(studio)
    set_axis(axes.xaxis, (0, 24), whole=True)
    set_axis(axes.yaxis, (1e-8, 1), log=True)
    colours = dict(zip(histories, (theme.given, theme.random, theme.text), strict=True))
    for name, left in histories.items():
        axes.plot(range(len(left)), left, color=colours[name], linewidth=2.5)
    for name, x, y in (("rows in order", 9, 0.25), ("random rows", 12, 5e-5), ("fg.solve", 0.6, 1e-7)):
        axes.text(x, y, name, color=colours[name], weight="bold")
    axes.set(xlabel="passes over the rows", ylabel="residual", yticks=[1, 1e-4, 1e-8], xticks=[0, 10, 20])
    return figure


def _small(studio: Studio) -> tuple[Any, Any]:
    return studio.subplots(figsize=(2.7, 2.0), layout="constrained")


def main(arguments: Sequence[str] | None = None) -> None:
    """Compute what the pictures show, and write each for light pages and for dark ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(arguments).folder
    with drawing() as studio:
        made: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
            "overview": (draw_overview, (forgotten_by_schedule(),)),
            "question-order": (draw_order, (forgotten_by_order(),)),
            "question-guarantee": (draw_guarantee, forgotten_and_guaranteed()),
            "question-solve": (draw_solve, (residuals(),)),
        }
        for ending, theme in THEMES.items():
            with matplotlib.rc_context(theme.style()):
                for name, (draw, numbers) in made.items():
                    draw(*numbers, studio, theme).savefig(folder / f"{name}{ending}.png")


if __name__ == "__main__":
    main()
