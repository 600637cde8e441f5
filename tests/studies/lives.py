"""Studies that are killed: a process forks drivers, kills each (SIGKILL) at a random moment, and starts the next.

`python lives.py STORE JOBS KILLS SEED [CELLS]` prints a JSON object: the table, and how often each cell was computed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from forgetting.studies import Study


def cell(a: int, seed: int) -> dict[str, Any]:
    """Numbers that depend on every digit of the seed; leaves a line in the log."""
    with open(os.environ["LIVES_LOG"], "a") as file:
        file.write(f"{a}\n")
    time.sleep(0.01)  # room for kills
    drawn = np.random.default_rng(seed).normal(size=(20, 20))
    return {"norm": np.linalg.norm(drawn @ drawn, 2), "first": drawn[0].tolist(), "nothing": float("nan")}


def study(store: Path, cells: int) -> Study:
    return Study([{"a": a} for a in range(cells)], store, function=cell, seed=3)


def life(store: Path, jobs: int, cells: int, ready: int) -> None:
    """A driver, which says by a byte that a cell is finished."""
    os.setsid()
    study(store, cells).run(jobs=jobs, progress=lambda *_: os.write(ready, b"."))
    os._exit(0)


def killed(store: Path, jobs: int, cells: int, kills: int, rng: random.Random) -> list[dict[str, Any]]:
    """The table of a study whose drivers are killed, after some cells and a moment each."""
    for number in range(kills + 1):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            try:
                life(store, jobs, cells, writer)
            finally:
                os._exit(1)
        os.close(writer)
        if number < kills:
            for _ in range(rng.randint(1, 2 + cells // (kills + 1))):
                os.read(reader, 1)
            time.sleep(rng.uniform(0, 0.02))
            os.kill(pid, signal.SIGKILL)
        else:
            while os.read(reader, 1):
                pass
        os.close(reader)
        _, status = os.waitpid(pid, 0)
        assert number < kills or status == 0, status
    return study(store, cells).rows()


if __name__ == "__main__":
    place, jobs, kills, seed, *count = sys.argv[1:]
    total = int(count[0]) if count else 40
    os.environ["LIVES_LOG"] = f"{place}.log"
    rows = killed(Path(place), int(jobs), total, int(kills), random.Random(int(seed)))
    lines = Path(f"{place}.log").read_text().split()
    computed = {a: lines.count(str(a)) for a in range(total)}
    print(json.dumps({"rows": rows, "computed": computed}))
