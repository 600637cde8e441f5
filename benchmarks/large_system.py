"""A system larger than memory: written to a folder, solved from the file within a budget, killed and resumed.

By hand, because it writes gigabytes:

    python -m benchmarks.large_system --rows 1000000 --columns 1000 --memory 512 --folder /tmp

The file is removed at the end. The solve runs in a process of its own, whose peak of resident memory is printed. With
--kill a second process is killed after so many seconds, and a third one resumes; their results must be equal.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from forgetting.files.records import read_record
from forgetting.solver.checkpoints import KIND


def write_system(folder: Path, rows: int, columns: int, noise: float, seed: int = 0) -> None:
    """Write A.npy (standard normal numbers, in blocks of 64 MiB) and b.npy = A x + noise."""
    rng = np.random.default_rng(seed)
    solution = rng.standard_normal(columns)
    size = max(1, 2**26 // (8 * columns))
    sides = []
    with open(folder / "A.npy", "wb") as handle:
        npy.write_array_header_1_0(handle, {"descr": "<f8", "fortran_order": False, "shape": (rows, columns)})
        for start in range(0, rows, size):
            block = rng.standard_normal((min(size, rows - start), columns))
            handle.write(block.data)
            sides.append(block @ solution + noise * rng.standard_normal(len(block)))
    np.save(folder / "b.npy", np.concatenate(sides))
    np.save(folder / "x.npy", solution)


SOLVE = """
import json, resource, sys, time
import numpy as np
import forgetting as fg
folder, memory, checkpoint, every, out = sys.argv[1:]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
started = time.perf_counter()
solution = fg.solve(folder + "/A.npy", np.load(folder + "/b.npy"), memory=float(memory),
                    checkpoint=folder + "/" + checkpoint if checkpoint else None, checkpoint_every=float(every))
seconds = time.perf_counter() - started
history = solution.history
np.savez(folder + "/" + out, x=solution.x, epoch=history.epoch, residual=history.residual, checked=history.checked)
print(json.dumps({
    "status": solution.status, "blocks": solution.blocks, "epochs": solution.epochs, "seconds": seconds,
    "MB before": before / 1024, "MB peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    "error": float(np.abs(solution.x - np.load(folder + "/x.npy")).max())}))
"""


def process(folder: Path, memory: float, checkpoint: str, every: float, out: str) -> subprocess.Popen[str]:
    """A process that solves the system."""
    arguments = [sys.executable, "-c", SOLVE, str(folder), str(memory), checkpoint, str(every), out]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def finished(solving: subprocess.Popen[str]) -> dict[str, object]:
    """What a process prints at its end."""
    text, _ = solving.communicate()
    if solving.returncode:
        raise SystemExit(f"the solve ended with code {solving.returncode}")
    return dict(json.loads(text))


def main() -> None:
    """Write, solve, kill, resume and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--noise", type=float, default=0.0, help="of b; with noise there is no solution")
    parser.add_argument("--memory", type=float, default=256, help="MiB for blocks")
    parser.add_argument("--kill", type=float, default=0.0, help="seconds after which a solve is killed, 0 for none")
    parser.add_argument("--folder", type=Path, default=None, help="where a temporary folder is made")
    given = parser.parse_args()
    needed, memory = 8.0 * given.rows * given.columns, given.memory * 2**20
    with tempfile.TemporaryDirectory(dir=given.folder) as here:
        folder = Path(here)
        if shutil.disk_usage(folder).free < 1.2 * needed:
            raise SystemExit(f"{needed / 1e9:.3g} GB are needed in {given.folder or tempfile.gettempdir()}")
        started = time.perf_counter()
        write_system(folder, given.rows, given.columns, given.noise)
        print(f"{needed / 1e9:.3g} GB written in {time.perf_counter() - started:.3g} seconds", flush=True)
        for name, value in finished(process(folder, memory, "", 5.0, "whole.npz")).items():
            print(f"{name:10} {value:.4g}" if isinstance(value, float) else f"{name:10} {value}", flush=True)
        if given.kill:
            first = process(folder, memory, "state.npz", 0.2, "killed.npz")
            time.sleep(given.kill)
            first.kill()
            first.communicate()
            counts = read_record(folder / "state.npz", KIND, dict)["counts"] if (folder / "state.npz").exists() else {}
            print(f"killed after {given.kill:g} seconds (code {first.returncode}); state: {counts}", flush=True)
            resumed = finished(process(folder, memory, "state.npz", 0.2, "resumed.npz"))
            print(f"resumed: {resumed['seconds']:.4g} seconds, peak {resumed['MB peak']:.4g} MB")
            with np.load(folder / "whole.npz") as one, np.load(folder / "resumed.npz") as other:
                print("equal:", {key: bool(np.array_equal(one[key], other[key])) for key in one.files})


if __name__ == "__main__":
    main()
