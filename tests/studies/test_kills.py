"""Drivers and workers that are killed: finished cells stay, others are computed again, and the table is the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from forgetting.files.store import Store
from forgetting.studies import Study

LIVES = str(Path(__file__).with_name("lives.py"))
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def lives(store: Path, jobs: int, kills: int, seed: int, cells: int = 40) -> dict[str, Any]:
    command = [sys.executable, LIVES, str(store), str(jobs), str(kills), str(seed), str(cells)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def until(condition: Any, seconds: float = 60) -> bool:
    """Whether the condition comes true; the limit is for machines that are very busy."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


@needs_fork
def test_driver_killed_at_five_random_moments_gives_the_same_table(tmp_path):
    calm = lives(tmp_path / "calm.db", jobs=1, kills=0, seed=0)
    rough = lives(tmp_path / "rough.db", jobs=1, kills=5, seed=1)
    assert json.dumps(calm["rows"]) == json.dumps(rough["rows"])  # NaN, and every digit
    assert len(calm["rows"]) == 40
    assert set(calm["computed"].values()) == {1}
    again = sum(rough["computed"].values()) - 40
    assert again <= 5, "a kill loses the cell in flight, and no other"


@needs_fork
@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_driver_killed_many_times(tmp_path, jobs):
    calm = lives(tmp_path / "calm.db", jobs=1, kills=0, seed=0, cells=400)
    for seed in range(5):
        rough = lives(tmp_path / f"rough{seed}.db", jobs=jobs, kills=10, seed=seed, cells=400)
        assert json.dumps(calm["rows"]) == json.dumps(rough["rows"])


TORN = """
import os, signal, sys
from pathlib import Path
from forgetting.files.store import Plan, Store

path = Path(sys.argv[1])
with Store(path) as store:
    store.plan([Plan(str(i), i, "m:f", '{"i": 1}', 7) for i in range(3)])
    store.claim("0")
    store.finish("0", rows='[{"x": 1.5}]', seconds=0.1, version="1")
lives = 0
while True:  # each child lives a little longer: it is killed within `claim` or `finish`, until it comes through
    lives += 1
    pid = os.fork()
    if pid == 0:
        store = Store(path)
        left = [lives]
        def tick():
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        store._base.set_progress_handler(tick, 1)
        store.claim("1")
        store.finish("1", rows="[" + ",".join(['{"x": 0.5}'] * 2000) + "]", seconds=0.1, version="1")
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    with Store(path) as store:
        first, second, third = store.entries()
        states = store.states()
        assert first.rows == [{"x": 1.5}] and states["2"] == "waiting", (first, states)
        assert states["1"] in ("waiting", "done"), states
        assert states["1"] == "waiting" or len(second.rows) == 2000, second
    if status == 0:
        break
    assert lives < 1000
print(lives)
"""


@needs_fork
def test_kill_within_a_transaction_leaves_the_cell_waiting_or_finished(tmp_path):
    done = subprocess.run([sys.executable, "-c", TORN, str(tmp_path / "s.db")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20  # so many different moments


def suicidal():
    """A function whose process kills itself once for each of some cells."""

    def cell(a, folder, seed):
        import os
        import signal
        from pathlib import Path

        mark = Path(folder, str(a))
        if a in (2, 9) and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"value": (seed % 1000003) / 7}

    return cell


def cells_in(folder: Path, count: int) -> list[dict[str, Any]]:
    folder.mkdir(exist_ok=True)
    return [{"a": a, "folder": str(folder)} for a in range(count)]


def test_killed_workers_cost_nothing_but_time(tmp_path):
    cells = cells_in(tmp_path / "marks", 12)
    rough = Study(cells, tmp_path / "s.db", function=suicidal()).run(jobs=2, progress=False)
    assert (tmp_path / "marks" / "9").exists()
    calm = Study(cells, None, function=suicidal()).run(progress=False)
    assert rough.rows() == calm.rows()
    assert rough.status.failed == 0


def deadly():
    def cell(a):
        import os

        if a == 3:
            os._exit(1)
        return a

    return cell


def test_cell_that_always_kills_its_process_fails_and_the_others_are_computed(tmp_path):
    study = Study([{"a": a} for a in range(5)], tmp_path / "s.db", function=deadly()).run(jobs=2, progress=False)
    assert study.status.done == 4
    assert list(study.failures) == ["a=3"]
    assert "process died" in study.failures["a=3"]
    assert [row["a"] for row in study.rows()] == list(range(5))


SLEEPERS = """
import sys, time
from forgetting.studies import Study

def cell(a, folder):
    import os, time
    from pathlib import Path
    Path(folder, f"{a}.{os.getpid()}").touch()
    while Path(folder, "wait").exists():
        time.sleep(0.01)
    return os.getppid()

if __name__ == "__main__":
    try:
        Study([{"a": a, "folder": sys.argv[2]} for a in range(6)], sys.argv[1], function=cell).run(jobs=2)
    except KeyboardInterrupt:
        print("interrupted")
        sys.exit(3)
"""


@pytest.fixture
def sleepers(tmp_path):
    """A driver with two workers that are computing, and the processes of the workers."""
    folder = tmp_path / "marks"
    folder.mkdir()
    (folder / "wait").touch()
    (tmp_path / "driver.py").write_text(SLEEPERS)
    child = subprocess.Popen(
        [sys.executable, tmp_path / "driver.py", tmp_path / "s.db", folder],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert until(lambda: len(list(folder.glob("*.*"))) >= 2 or child.poll() is not None)
    assert child.poll() is None, child.communicate()
    workers = [int(path.suffix[1:]) for path in folder.glob("*.*")]
    yield child, workers
    if child.poll() is None:
        child.kill()
    child.communicate()


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_driver_and_its_cells_are_free(sleepers, tmp_path, ending):
    child, workers = sleepers
    with Store(tmp_path / "s.db") as store:
        assert store.counts()["running"] >= 2
    os.kill(child.pid, ending)
    out, err = child.communicate(timeout=60)
    assert child.returncode == (3 if ending == signal.SIGINT else -9), err
    assert (out == "interrupted\n") == (ending == signal.SIGINT)
    assert until(lambda: not any(map(is_running, workers))), "workers are left"
    with Store(tmp_path / "s.db") as store:
        assert store.counts() == {"waiting": 6}
    assert "Traceback" not in err
