"""Cells on a real Dask cluster of two processes: equal to serial bit for bit, one core each, also if a worker dies."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import joblib
import pytest

import forgetting as fg
from forgetting.errors import WorkerError
from forgetting.files.store import Store
from forgetting.studies import Study

MEASURED = {"family": "gaussian", "T": [2, 3, 4], "d": 8, "rank": 2, "k": [1, 10, 100]}


def threads_of_a_worker():
    """A function that counts the threads that a cell may use."""

    def cell(a):
        import os

        import numba
        from threadpoolctl import threadpool_info

        from forgetting.compute.threads import cores

        blas = [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]
        return {"blas": max(blas), "numba": numba.get_num_threads(), "cores": cores(), "process": os.getpid()}

    return cell


def test_dask_gives_the_digits_of_the_serial_run(cluster, tmp_path):
    serial = Study.grid(**MEASURED, repeats=2, store=None).run(jobs=1, progress=False)
    with joblib.parallel_config("dask"):
        spread = Study.grid(**MEASURED, repeats=2, store=tmp_path / "s.db").run(progress=False)
    assert spread.status.done == 6
    assert json.dumps(spread.rows()) == json.dumps(serial.rows())


def test_a_cell_on_dask_has_one_thread(cluster):
    with joblib.parallel_config("dask"):
        rows = Study([{"a": a} for a in range(6)], None, function=threads_of_a_worker()).run(progress=False).rows()
    assert {(row["blas"], row["numba"], row["cores"]) for row in rows} == {(1, 1, 1)}
    assert os.getpid() not in {row["process"] for row in rows}


def test_cluster_with_one_core_computes_the_cells_itself(cluster, monkeypatch):
    def cell(a):
        import os

        return {"process": os.getpid()}

    monkeypatch.setattr("joblib._dask.DaskDistributedBackend.effective_n_jobs", lambda self, jobs: 1)
    with joblib.parallel_config("dask"):
        rows = Study([{"a": a} for a in range(3)], None, function=cell).run(progress=False).rows()
    assert os.getpid() not in {row["process"] for row in rows}


def test_killed_dask_worker_changes_nothing(cluster, tmp_path):
    def cell(a, folder, seed):
        import os
        import signal
        from pathlib import Path

        mark = Path(folder, "died")
        if a == 4 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"value": (seed % 1000003) / 7}

    cells = [{"a": a, "folder": str(tmp_path)} for a in range(12)]
    with joblib.parallel_config("dask"):
        rough = Study(cells, tmp_path / "s.db", function=cell).run(progress=False)
    assert (tmp_path / "died").exists()
    assert rough.status == fg.studies.Status(done=12, versions=(fg.__version__,))
    assert rough.rows() == Study(cells, None, function=cell).run(progress=False).rows()


DRIVER = """
import sys
import joblib
from distributed import Client
from forgetting.studies import Study

def cell(a, log, seed):
    import os, time
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, b".")
    os.close(file)
    time.sleep(0.05)
    return {"value": (seed % 1000003) / 7}

store, log, scheduler = sys.argv[1:]
study = Study([{"a": a, "log": log} for a in range(30)], store if scheduler else None, function=cell)
if scheduler:
    with Client(scheduler), joblib.parallel_config("dask"):
        study.run(progress=lambda name, done, total: print(done, flush=True))
else:
    study.run(progress=False)
print([row["value"] for row in study.rows()])
"""


@pytest.mark.slow
def test_driver_of_a_dask_cluster_is_killed_and_resumed(cluster, tmp_path):
    log, address = tmp_path / "log", cluster.scheduler.address
    command = [sys.executable, "-c", DRIVER, str(tmp_path / "s.db"), str(log)]
    with subprocess.Popen([*command, address], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        while int(child.stdout.readline()) < 5:
            pass
        child.kill()
    with Store(tmp_path / "s.db") as store:
        kept = len(store)
    assert 5 <= kept < 30
    again = subprocess.run([*command, address], capture_output=True, text=True, timeout=120, check=True)
    assert again.stdout.splitlines()[0] == str(kept)
    calm = subprocess.run([*command, ""], capture_output=True, text=True, timeout=120, check=True)
    assert again.stdout.splitlines()[-1] == calm.stdout.splitlines()[-1]


def test_failed_cell_on_dask_is_a_row(cluster):
    def cell(a):
        return 1 / a

    with joblib.parallel_config("dask"):
        study = Study([{"a": a} for a in (1, 0, 2)], None, function=cell).run(progress=False)
    assert study.failures == {"a=0": "ZeroDivisionError: division by zero"}
    assert [row.get("value") for row in study.rows()] == [1.0, None, 0.5]


def test_a_cluster_that_is_closed_ends_the_run_with_an_error_of_this_library(tmp_path):
    distributed = pytest.importorskip("distributed")

    def cell(a):
        import time

        time.sleep(0.05)
        return {"value": a}

    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as made:
        client = distributed.Client(made)
        study = Study([{"a": a} for a in range(200)], tmp_path / "s.db", function=cell)
        with (
            joblib.parallel_config("dask", client=client),
            pytest.raises(WorkerError, match=r"closed or lost .*start it again"),
        ):
            study.run(progress=False, finished=lambda cell, rows: client.close())
    assert 0 < study.status.done < 200
    assert study.status.running == 0
