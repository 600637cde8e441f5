"""The figures of docs/delta-rule.md: what a delta-rule memory recalls, and how far programs are from the exact memory.

`python docs/_tools/delta_rule.py docs/images` computes them in a minute.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

import forgetting as fg
from forgetting.figures.drawing import draw_on
from forgetting.figures.items import Curves, Series
from forgetting.references.rounding import PRECISIONS, to_bits
from forgetting.references.worst_keys import recurrence_in

Array = NDArray[np.float64]
STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
SIMULATED = (4, 16, 64, 256, 1024)
RUNS = 200


def simulated(tasks: fg.RegressionTasks, beta: float, gate: float, steps: tuple[int, ...]) -> list[float]:
    """The mean recall error of all pairs after random writes, in plain NumPy."""
    keys, values = (np.concatenate([tasks.task(m)[part] for m in range(tasks.num_tasks)]) for part in (0, 1))
    rng, memory, found = np.random.default_rng(0), np.zeros((RUNS, keys.shape[1], values.shape[1])), []
    for t in range(1, steps[-1] + 1):
        pick = rng.integers(len(keys), size=RUNS)
        k, v = keys[pick], values[pick]
        memory *= gate
        memory += beta * k[:, :, None] * (v - np.einsum("rkv,rk->rv", memory, k))[:, None, :]
        if t in steps:
            found.append(float(0.5 * np.mean(np.sum((keys @ memory - values) ** 2, axis=-1))))
    return found


def recall(ylabel: str = "mean recall error of all pairs") -> tuple[Curves, Curves]:
    """Exact curves with simulated points: over the number of writes for some gates, and over the number of pairs."""
    tasks, left = fg.families.key_value(T=24, d=32, outputs=4, seed=0), []
    for place, gate in enumerate((1.0, 0.999, 0.99, 0.9)):
        write = fg.schemes.SGD(1.0, "loss")
        scheme = write if gate == 1 else fg.schemes.Decay(gate, write)
        exact = fg.expect(tasks, "random", k=STEPS, scheme=scheme, quantities=("loss",)).loss
        left.append(Series(f"gate {gate:g}", STEPS, tuple(exact.tolist()), group=place))
        drawn = tuple(simulated(tasks, 1.0, gate, SIMULATED))
        left.append(Series(f"{RUNS} runs, gate {gate:g}", SIMULATED, drawn, group=place, role="simulated", minor=True))
    sizes, right = (8, 16, 24, 32, 48, 64, 96), []
    for place, beta in enumerate((1.0, 0.5, 0.2)):
        exact, drawn = [], []
        for T in sizes:
            tasks = fg.families.key_value(T=T, d=32, outputs=4, seed=0)
            scheme = fg.schemes.Decay(0.99, fg.schemes.SGD(beta, "loss"))
            exact.append(float(fg.expect(tasks, "random", k=20 * T, scheme=scheme, quantities=("loss",)).loss))
            drawn.append(simulated(tasks, beta, 0.99, (20 * T,))[0])
        right.append(Series(f"write strength {beta:g}", sizes, tuple(exact), group=place))
        right.append(Series(f"{RUNS} runs, {beta:g}", sizes, tuple(drawn), group=place, role="simulated", minor=True))
    return (
        Curves("recall", "24 pairs in 32 dimensions", "", "writes, of random pairs", ylabel, tuple(left)),
        Curves("pairs", "Many pairs in 32 dimensions, gate 0.99", "", "pairs", ylabel, tuple(right), ylog=False),
    )


def kernels() -> tuple[Curves, list[tuple[list[float], str]]]:
    """Errors of programs of low precision after some steps, and beside them what is typical and bounds."""
    rng = np.random.default_rng(0)
    keys, values = rng.standard_normal((STEPS[-1], 32)), rng.standard_normal((STEPS[-1], 32))
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    series, beside = [], []
    for place, precision in enumerate(("float32", "tf32", "bfloat16 to float32", "bfloat16")):
        bits = PRECISIONS[precision]
        k, v, gate = to_bits(keys, bits.operands), to_bits(values, bits.operands), 1 - 2.0**-5
        errors, typical, allowed = [], [], []
        for T in STEPS:
            memory = fg.references.delta_rule(k[:T], v[:T], 0.5, gate)
            state = (
                plain_float32(k[:T], v[:T], gate)
                if precision == "float32"
                else recurrence_in(k[:T], v[:T], 0.5, gate, bits)
            )
            errors.append(float(np.sqrt(np.mean((state - memory.state) ** 2))))
            typical.append(float(np.sqrt(np.mean(memory.typical(precision) ** 2))))
            allowed.append(float(np.sqrt(np.mean(memory.tolerance(precision) ** 2))))
        series.append(Series(precision, STEPS, tuple(errors), group=place))
        beside.append((typical, "typical"))
        if precision != "bfloat16":
            beside.append((allowed, "at most"))
    title = "Lines: programs. Circles: typical errors. Dashes: bounds"
    return Curves("kernels", title, "", "steps", "root mean square error of an entry", tuple(series)), beside


def plain_float32(keys: Array, values: Array, gate: float) -> Array:
    """The recurrence as NumPy makes it in float32."""
    state = np.zeros((keys.shape[1], values.shape[1]), np.float32)
    for k, v in zip(keys.astype(np.float32), values.astype(np.float32), strict=True):
        state *= np.float32(gate)
        state += np.float32(0.5) * np.outer(k, v - state.T @ k)
    return state.astype(np.float64)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    matplotlib.use("Agg")
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.6))
    for item, ax in zip(recall(), axes, strict=True):
        exact = tuple(series for series in item.series if series.role == "exact")
        draw_on(replace(item, series=exact), ax)
        for line, series in zip(list(ax.lines), [s for s in item.series if s.role == "simulated"], strict=False):
            ax.plot(series.x, series.y, "o", color=line.get_color(), fillstyle="none", markersize=5)
    figure.savefig(folder / "delta-rule-recall.png", dpi=150)
    item, beside = kernels()
    axes = draw_on(item, None)
    colours, place = [line.get_color() for line in axes.lines], -1
    for values, kind in beside:
        place += kind == "typical"
        style = (
            {"marker": "o", "linestyle": "none", "fillstyle": "none"}
            if kind == "typical"
            else {"linestyle": "--", "linewidth": 1}
        )
        axes.plot(STEPS, values, color=colours[place], **style)
    axes.set_ylim(1e-9, 3.0)
    axes.figure.set_size_inches(7.0, 4.0)
    axes.figure.savefig(folder / "delta-rule-kernels.png", dpi=150, bbox_inches="tight")
