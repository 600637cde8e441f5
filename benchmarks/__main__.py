"""Run all benchmarks, and with --page FILE write the ratios as a page of the docs."""

from __future__ import annotations

import os
import platform
import sys
from importlib import import_module
from pathlib import Path

import numpy as np

import forgetting as fg
from benchmarks import timing


def main() -> None:
    sections = []
    for name in sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py")):
        module = import_module(f"benchmarks.{name}")
        print(f"\n{name}\n{'':66} {'ours':>9} {'theirs':>9}")
        before = len(timing.RESULTS)
        module.main()
        sections.append((module.__doc__, timing.RESULTS[before:]))
    if "--page" in sys.argv:
        Path(sys.argv[sys.argv.index("--page") + 1]).write_text(page(sections))


def page(sections: list[tuple[str, list[dict[str, object]]]]) -> str:
    """The results in Markdown."""
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`. Contestants take turns within one run, and what counts is the ratio: the median over",
        "rounds of their time divided by ours, or of ours divided by theirs where the target is an upper limit.",
        "",
        f"forgetting {fg.__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"{platform.machine()}, {os.cpu_count()} cores.",
    ]
    for heading, rows in sections:
        lines += [
            "",
            f"## {heading.splitlines()[0].rstrip('.')}",
            "",
            "| what | ratio | target | |",
            "|---|---:|---:|---|",
        ]
        for row in rows:
            sign = "at most" if row["at_most"] else "at least"
            target = "" if row["target"] is None else f"{sign} {row['target']:g}x"
            lines.append(f"| {row['name']} | {row['ratio']:.3g}x | {target} | {str(row['verdict']).lower()} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
