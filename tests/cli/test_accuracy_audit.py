"""`forgetting audit FILE` for logs and matrices of accuracies."""

import json
from pathlib import Path

import numpy as np
import pytest

import forgetting as fg

LOGS = Path(__file__).parents[1] / "dynamics" / "accuracy_logs"
LOWER = "cats,dogs,owls\n0.9,,\n0.7,0.8,\n0.6,0.7,0.9\n"


def test_logs_are_known_by_their_content(inside, tmp_path):
    for log in sorted(LOGS.glob("*[!d]")):
        if log.suffix != ".md":
            done = inside("audit", str(log))
            assert (done.code, done.err) == (0, ""), log
            assert "Metrics by each convention" in done.out
    full = LOWER.replace(",,", ",0.1,0.2").replace("0.8,\n", "0.8,0.1\n")
    for name, content in (("R.csv", LOWER), ("bare.csv", LOWER.partition("\n")[2]), ("full.csv", full)):
        (tmp_path / name).write_text(content)
        assert "Task" in inside("audit", name).out
    assert "Metrics by each convention" not in inside("audit", "full.csv", "--label", "owls").out
    np.savez(tmp_path / "a.npz", R=[[0.9, 0.1], [0.5, 0.8]])
    fg.AccuracyMatrices([[0.9, 0.1], [0.5, 0.8]]).save(tmp_path / "b.npz")
    first, second = (inside("audit", name).out.replace(name, "") for name in ("a.npz", "b.npz"))
    assert "65.0 % after the last task" in first.replace("\n  ", " ")
    assert "65.0 % after the last task" in second.replace("\n  ", " ")


def test_several_logs_are_runs_and_words_choose_what_is_read(inside):
    log = str(LOGS / "avalanche_text.log")
    done = inside("audit", log, str(LOGS / "avalanche_eval_results.csv"), "stream=test", "--json")
    assert done.code == 0
    assert json.loads(done.out)["runs"] == ["avalanche_text.log", "avalanche_eval_results.csv"]
    assert "classifier" not in inside("audit", str(LOGS / "pilot_nme.log"), "classifier=NME").err
    done = inside("audit", log, "stream=valid")
    assert (done.code, "there are test" in done.err) == (2, True)


def test_pages_are_written_and_other_options_are_refused(inside, tmp_path):
    log = str(LOGS / "pycil.log")
    for name in ("page.html", "page.txt", "page.json"):
        assert inside("audit", log, "--out", name).code == 0
        assert (tmp_path / name).stat().st_size > 500
    done = inside("audit", log, "--rows", "3")
    assert done.code == 2
    assert "holds accuracies, and --rows is for tasks" in done.err


@pytest.mark.parametrize(
    "content",
    [
        "a,b,y\n1,2,3\n3,4,5\n2,2,2\n",
        "x,task,y\n1,0,1\n2,0,2\n3,1,3\n",
        "a,b\n1,2\n3,4\n",
        "a,y\n0.5,0.2\n0.3,0.4\n",
        "step,task,accuracy,y\n1,0,0.5,1\n2,0,0.3,2\n3,1,0.6,3\n",
    ],
)
def test_tables_of_tasks_are_not_taken_for_accuracies(inside, tmp_path, content):
    (tmp_path / "tasks.csv").write_text(content)
    assert "Metrics by each convention" not in inside("audit", "tasks.csv").out
