"""Many tasks and large tasks: what grows with their number, against NumPy, and within how much memory."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import forgetting as fg
from benchmarks.timing import race, report

PEAK = """
def peak():  # of resident memory, in MiB; ru_maxrss would begin with that of the parent
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**10
"""

MILLION = """
import json, time
import numpy as np
import forgetting as fg
T, d = 10**6, 50
rng = np.random.default_rng(0)
X = rng.standard_normal((T, d))
y = X @ rng.standard_normal(d)
found, begun = {}, time.perf_counter()
def lap(name):
    global begun
    found[name] = time.perf_counter() - begun
    begun = time.perf_counter()
tasks = fg.RegressionTasks.from_arrays(X, y, np.arange(T))
lap("from_arrays")
fg.run(tasks, "with-replacement", 10 * T, record_every=T)
lap("run of 10^7 steps")
tasks.geometry
lap("geometry")
fg.expect(tasks, "with-replacement", T, quantities="loss", method="spectral")
lap("exact loss at k = 10^6")
fg.bounds.evaluate(tasks, "with-replacement", T)
lap("all bounds")
found["GiB"] = peak() / 2**10
print(json.dumps(found))
"""

SOURCE = """
import sys
import numpy as np
import forgetting as fg
tasks = fg.RegressionTasks.from_source(sys.argv[1], np.load(sys.argv[2]), sizes=[20000] * 50, memory=2**28, cache=False)
tasks.geometry
print(peak())
"""


def main() -> None:
    found = json.loads(_output(MILLION))
    peak = found.pop("GiB")
    for name, seconds in found.items():
        target = 120 if "exact" in name else None
        report(f"10^6 tasks of rank 1, d = 50: {name} / 1 s", [seconds], [1.0], target, at_most=True)
    report("the same, with the data: peak of memory / 1 GiB", [peak], [1.0], 4, unit="GB", at_most=True)
    with tempfile.TemporaryDirectory() as folder:
        rng, paths = np.random.default_rng(0), (Path(folder, "X.npy"), Path(folder, "y.npy"))
        X = rng.standard_normal((10**6, 100))
        y = X @ rng.standard_normal(100)
        np.save(paths[0], X)
        np.save(paths[1], y)
        size = X.nbytes / 2**20
        del X
        # the peer reads the file as a map and makes the triangle of each task, and nothing else
        race(
            "0.8 GB in 50 tasks, d = 100: from_source / triangles by NumPy",
            lambda: fg.RegressionTasks.from_source(paths[0], y, sizes=[20000] * 50, cache=False),
            lambda: _triangles(paths[0], y),
            target=2,
            rounds=3,
            at_most=True,
        )
        used = float(_output(SOURCE, *map(str, paths)))
        report("the same, with NumPy itself: peak of memory / data", [used], [size], 0.5, unit="MB", at_most=True)


def _triangles(path: Path, y: np.ndarray) -> list[np.ndarray]:
    X = np.load(path, mmap_mode="r")
    cuts = range(0, len(X), 20000)
    return [np.linalg.qr(np.column_stack([X[i : i + 20000], y[i : i + 20000]]), mode="r") for i in cuts]


def _output(script: str, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", PEAK + script, *arguments], capture_output=True, text=True, check=True
    ).stdout


if __name__ == "__main__":
    main()
