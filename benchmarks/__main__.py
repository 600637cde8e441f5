"""Run all benchmarks, and with --page FILE write the ratios as a page of the docs.

Each module is a cell of a study and runs in a process of its own. With --page, finished modules are kept beside the
page until the page is written: after a kill, the same command goes on with the next module. Modules of other code, or
of other benchmarks, are measured anew.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import forgetting as fg
from benchmarks.modules import names, run_all, run_here
from forgetting.studies.resuming import finished_parts


def page(sections: Sequence[tuple[str, Sequence[dict[str, Any]]]]) -> str:
    """The results in Markdown; a module without results, as that of a GPU that is not there, is left out."""
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`. Contestants take turns within one run, and what counts is the ratio: the median over",
        "rounds of their time divided by ours, or of ours divided by theirs where the target is an upper limit.",
        "[How far it goes](how_far.md) says what calls cost, and how that grows.",
        "",
        f"forgetting {fg.__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"{platform.machine()}, {os.cpu_count()} cores.",
    ]
    for heading, rows in sections:
        if not rows:
            continue
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


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--page", type=Path, help="write the ratios here")
    parser.add_argument("--only", choices=names(), help="one module, in this process")
    parser.add_argument("--rows", type=Path, help="with --only: write the rows here, as JSON")
    chosen = parser.parse_args(arguments)
    if chosen.only:
        rows = run_here(chosen.only)
        if chosen.rows is not None:
            chosen.rows.write_text(json.dumps(rows), encoding="utf-8")
        return
    with finished_parts(chosen.page) as store:
        sections = run_all(store)
        if chosen.page is not None:
            chosen.page.write_text(page(sections), encoding="utf-8")


if __name__ == "__main__":
    main()
