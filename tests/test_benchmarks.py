"""The benchmarks as a study: what is finished is not measured again."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from benchmarks import modules
from benchmarks.__main__ import page

from forgetting.errors import WorkerError

ROW = {"name": "a race", "ratio": 2.5, "target": 2, "at_most": False, "verdict": "met"}


@pytest.fixture
def started(monkeypatch) -> list[str]:
    """The modules for which a process was started; the second fails once."""
    names = ["bench_audit", "bench_devices", "bench_runs"]
    begun: list[str] = []

    def run(command, check):
        name, file = command[command.index("--only") + 1], Path(command[-1])
        begun.append(name)
        if begun.count("bench_devices") == 1 and name == "bench_devices":
            return SimpleNamespace(returncode=1)
        file.write_text(json.dumps([] if name == "bench_devices" else [{**ROW, "name": name}]))
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(modules, "names", lambda: names)
    monkeypatch.setattr(modules.subprocess, "run", run)
    return begun


def test_a_bench_goes_on_where_it_failed(started, tmp_path) -> None:
    store = tmp_path / "bench.partial"
    with pytest.raises(WorkerError, match="bench_devices ended with exit status 1"):
        modules.run_all(store)
    assert started == ["bench_audit", "bench_devices", "bench_runs"]
    sections = modules.run_all(store)
    assert started[3:] == ["bench_devices"]
    assert [[row["name"] for row in rows] for _, rows in sections] == [["bench_audit"], [], ["bench_runs"]]
    text = page(sections)
    assert "| bench_runs | 2.5x | at least 2x | met |" in text
    assert "A GPU" not in text  # without results, no section


def test_other_code_is_measured_anew(started, tmp_path, monkeypatch) -> None:
    store = tmp_path / "bench.partial"
    with pytest.raises(WorkerError):
        modules.run_all(store)
    monkeypatch.setattr(modules, "code_digest", lambda: "edited")
    modules.run_all(store)
    assert started[3:] == ["bench_audit", "bench_devices", "bench_runs"]
