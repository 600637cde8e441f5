"""The modules with benchmarks, as cells of a study: each runs in a process of its own and leaves its rows."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import timing
from forgetting.errors import ForgettingError
from forgetting.files.store import code_digest
from forgetting.studies import Study

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The modules with benchmarks."""
    return sorted(path.stem for path in FOLDER.glob("bench_*.py"))


def results_of(name: str, code: str) -> list[dict[str, Any]]:
    """The rows of a module, from a process of its own: it prints as it goes, and may use all cores."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "rows.json")
        ended = subprocess.run([sys.executable, "-m", "benchmarks", "--only", name, "--rows", str(file)], check=False)
        if ended.returncode or not file.is_file():
            raise ForgettingError(f"{name} ended with exit status {ended.returncode}; its last lines say why")
        rows: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
        return rows


def run_here(name: str) -> list[dict[str, Any]]:
    """The rows of a module, which runs in this process."""
    module = import_module(f"benchmarks.{name}")
    print(f"\n{name}\n{'':66} {'ours':>9} {'theirs':>9}", flush=True)
    before = len(timing.RESULTS)
    module.main()
    return timing.RESULTS[before:]


def run_all(store: Path | None) -> list[tuple[str, list[dict[str, Any]]]]:
    """The heading and the rows of each module."""
    code = code_digest() + _own_digest()
    study = Study([{"name": name, "code": code} for name in names()], store, function=results_of)
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in names()}

    def finished(cell: Mapping[str, Any], found: Any) -> None:
        rows[cell["name"]] = found

    study.run(jobs=1, progress=False, retry=True, check=True, finished=finished)
    return [(str(import_module(f"benchmarks.{name}").__doc__), found) for name, found in rows.items()]


def _own_digest() -> str:
    """Of the sources of the benchmarks."""
    total = hashlib.sha256()
    for path in sorted(FOLDER.glob("*.py")):
        total.update(path.name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()
