"""Two commits side by side in one run: `python -m benchmarks.two_commits OLD [--page FILE]`.

Each commit computes in a process of its own, from its own checkout, and both take turns round by round. A ratio above 1
means that the working tree is faster than the old commit.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROUNDS = 10
#: freed memory is kept: else arrays of a megabyte cost page faults, or none, by what was allocated before
KEPT = {"MALLOC_MMAP_THRESHOLD_": str(10**9), "MALLOC_TRIM_THRESHOLD_": str(2 * 10**9)}
PREPARED = """
import sys, time
import numpy as np, forgetting as fg
drawn, shuffled = fg.orderings.WithReplacement(), fg.orderings.WithoutReplacement()
rng = np.random.default_rng(0)
many = fg.families.gaussian(50, 50, 1)
rows = fg.families.gaussian(100, 200, 1)
few = fg.families.gaussian(12, 20, 2)
lines = fg.families.repeated(fg.families.two_lines(0.3), 50)
poly = fg.Polyhedron(rng.standard_normal((200, 400)), rng.standard_normal(200))
point = 10 * rng.standard_normal(400)
classes = fg.families.separable(20, 50, 5, 0.1, seed=0)
data = rng.standard_normal((8, 40, 61))
noisy = fg.RegressionTasks([part[:, 1:] for part in data], [part[:, 0] for part in data])
again = lambda tasks: fg.RegressionTasks(*zip(*(tasks.task(m) for m in range(tasks.num_tasks))))
"""
JOBS = {
    "tasks made and factorised, T=50, d=50": "again(many).geometry",
    "fg.run, 10^5 rank-one steps, T=100, d=200": "fg.run(rows, drawn, 10**5, record_every=100)",
    "fg.run_many, 200 runs of 1000 steps": "fg.run_many(rows, drawn, 1000, 200)",
    "fg.expect by moments, T=50, k=300": "fg.expect(many, drawn, 300, method='moments')",
    "fg.expect by the spectrum, k=10^5": "fg.expect(many, drawn, 10**5, method='spectral', quantities='loss')",
    "fg.expect by subsets, T=12": "fg.expect(few, shuffled, 12)",
    "fg.expect by subsets, 100 cloned lines": "fg.expect(lines, shuffled, 100)",
    "fg.bounds.evaluate": "fg.bounds.evaluate(many, drawn, 1000)",
    "a projection onto 200 halfspaces, d=400": "poly.project(point)",
    "fg.run, POCS on classification, k=200": "fg.run(classes, drawn, 200)",
    "fg.certify, gaussian tasks, k=20": "fg.certify(again(few), drawn, 20)",
    "fg.audit, 8 noisy tasks": "fg.audit(again(noisy))",
}
LOOP = (
    PREPARED
    + """
for line in sys.stdin:
    job = line.strip()
    try:
        begin = time.perf_counter()
        eval(job)
        print(time.perf_counter() - begin, flush=True)
    except Exception as error:
        print("error", repr(error)[:200].replace(chr(10), " "), flush=True)
"""
)


def worker(tree: Path) -> subprocess.Popen[str]:
    """A process that computes jobs by the package of this checkout."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1", **KEPT}
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", LOOP], env=environment, cwd=tree, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip


def seconds(process: subprocess.Popen[str], job: str) -> float:
    """How long a job takes there."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(job + "\n")
    process.stdin.flush()
    answer = process.stdout.readline().strip()
    if not answer or answer.startswith("error"):
        raise RuntimeError(f"{job}: {answer or 'no answer'}")
    return float(answer)


def main() -> None:
    old, here = sys.argv[1], Path(__file__).resolve().parents[1]
    lines = ["| what | old, ms | new, ms | old / new |", "|---|---:|---:|---:|"]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "old"
        subprocess.run(
            ["git", "worktree", "add", "--detach", str(tree), old], cwd=here, check=True, capture_output=True
        )
        try:
            pair = worker(tree), worker(here)
            for name, job in JOBS.items():
                for process in pair:
                    seconds(process, job)  # compiles
                rounds = []
                for turn in range(ROUNDS):  # who begins changes from round to round
                    times = {place: seconds(pair[place], job) for place in ((0, 1), (1, 0))[turn % 2]}
                    rounds.append((times[0], times[1]))
                before, after = (1e3 * median(column) for column in zip(*rounds, strict=True))
                ratio = median(first / second for first, second in rounds)
                lines.append(f"| {name} | {before:.3g} | {after:.3g} | {ratio:.2f}x |")
                print(lines[-1], flush=True)
            for process in pair:
                process.kill()
        finally:
            subprocess.run(
                ["git", "worktree", "remove", "--force", str(tree)], cwd=here, check=True, capture_output=True
            )
    if "--page" in sys.argv:
        Path(sys.argv[sys.argv.index("--page") + 1]).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
