"""The notebook of the docs: kept without outputs, runs from a CSV to a figure and a LaTeX table, and shows them well.

It runs in a process of its own, `python tests/test_notebook.py FOLDER`, so that event loops, sockets and threads of
Jupyter do not outlive a test. FOLDER is a copy: nothing is written into the repository.
"""

import base64
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

NOTEBOOK = Path(__file__).parent.parent / "docs" / "notebook"
CELL_SECONDS = 120  # more than a cell ever takes, also if numba compiles while all cores are busy
SOLUTION = "0.8 -0.5 0.3 0.6 -0.2 0.4 -0.7 0.1 0.5 -0.3 0.2 -0.4"  # w* of tasks.csv

#: a cell behind those of the notebook: which interpreter this is, and a run with a bar that appears at once
AFTERWARDS = """
import sys
from forgetting.core import progress
print(sys.prefix)
progress.SOON = -1.0
fg.run(tasks, "cyclic", 2000, "nlms mu=0.5", progress=True).losses.shape
"""


def execute(folder: Path) -> None:
    """Run the notebook in `folder`: executed.ipynb has the outputs, displays.json each display, also replaced ones."""
    import nbformat
    import zmq
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    class Client(NotebookClient):
        """A client that keeps each display of a cell, also if it is replaced later."""

        def process_message(self, msg, cell, cell_index):
            if msg["msg_type"] in ("display_data", "update_display_data"):
                displays.append({"cell": cell_index, "type": msg["msg_type"], "data": msg["content"]["data"]})
            return super().process_message(msg, cell, cell_index)

    displays: list[dict] = []
    notebook = nbformat.read(folder / "tasks.ipynb", as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(AFTERWARDS.strip()))
    # Without folders the only kernel is that of this interpreter, whatever else is installed. Sockets of files need no
    # port that another process could take first; their paths are short, as systems demand.
    with tempfile.TemporaryDirectory(prefix="nb") as sockets:
        manager = AsyncKernelManager(
            kernel_name="python3",
            kernel_spec_manager=KernelSpecManager(kernel_dirs=[]),
            transport="ipc" if zmq.has("ipc") else "tcp",
            connection_file=str(Path(sockets) / "k.json"),
        )
        client = Client(
            notebook,
            km=manager,
            timeout=CELL_SECONDS,
            startup_timeout=CELL_SECONDS,
            allow_errors=True,  # the test shows them
            resources={"metadata": {"path": str(folder)}},
        )
        client.execute()
    nbformat.write(notebook, folder / "executed.ipynb")
    (folder / "displays.json").write_text(json.dumps(displays))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A copy of the notebook and its data, after the notebook has run."""
    for module in ("nbclient", "nbformat", "ipykernel"):
        pytest.importorskip(module)
    folder = tmp_path_factory.mktemp("notebook") / "notebook"
    shutil.copytree(NOTEBOOK, folder, ignore=shutil.ignore_patterns(".*"))
    # MPLBACKEND of the tests would keep figures out of the notebook; the others are settings of whoever runs the tests.
    personal = ("JUPYTER", "IPYTHON", "IPYKERNEL", "PYTHONSTARTUP", "PYTHONWARNINGS", "MPLBACKEND")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(personal)}
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        environment[name] = str(tmp_path_factory.mktemp(name.lower()))
    done = subprocess.run(
        [sys.executable, __file__, str(folder)], env=environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def cells(folder):
    """The cells with code, after the notebook has run, by their ids; "" is the cell behind those of the notebook."""
    *cells, last = (cell for cell in read(folder / "executed.ipynb") if cell["cell_type"] == "code")
    return {cell["id"]: cell["outputs"] for cell in cells} | {"": last["outputs"]}


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def source(cell):
    return "".join(cell["source"]).splitlines()


def data(outputs, kind):
    """What the outputs of a cell hold of a MIME type."""
    return ["".join(output["data"][kind]) for output in outputs if kind in output.get("data", {})]


def text(outputs, name="stdout"):
    return "".join("".join(output["text"]) for output in outputs if output.get("name") == name)


# -------------------------------------------------------------------------------------------------------- as it is kept


def test_the_notebook_is_kept_without_outputs_and_is_short():
    code = [cell for cell in read(NOTEBOOK / "tasks.ipynb") if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert 0 < sum(bool(line.strip()) for cell in code for line in source(cell)) < 20


def test_the_notebook_is_valid():
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(NOTEBOOK / "tasks.ipynb", as_version=nbformat.NO_CONVERT)
    assert notebook.nbformat == 4
    nbformat.validate(notebook)


def test_one_model_fits_all_sensors_exactly():
    """y = <x, w*> in decimal arithmetic, with the w* that the first cell names."""
    import forgetting as fg

    named = " ".join(source(read(NOTEBOOK / "tasks.ipynb")[0]))
    assert ", ".join(SOLUTION.split()) in named
    w = [Decimal(number) for number in SOLUTION.split()]
    _, *lines = (NOTEBOOK / "tasks.csv").read_text(encoding="utf-8").splitlines()
    for line in lines:
        _, *x, y = line.split(",")
        assert sum(a * Decimal(b) for a, b in zip(w, x, strict=True)) == Decimal(y)
    tasks = fg.load(NOTEBOOK / "tasks.csv", task="sensor")
    assert tasks.realizability.holds
    assert (tasks.num_tasks, tasks.dim, len(lines)) == (8, 12, 24)


# ----------------------------------------------------------------------------------------------------- after it has run


def test_every_cell_runs_in_this_interpreter_without_errors_or_warnings(cells):
    for name, outputs in cells.items():
        problems = [output for output in outputs if output["output_type"] == "error"]
        assert not problems, "\n".join([f"cell {name!r}", *(line for each in problems for line in each["traceback"])])
        assert "Warning" not in text(outputs, "stderr"), f"cell {name!r}"
    assert text(cells[""]).strip() == sys.prefix


def test_nothing_is_written_but_the_result_that_is_saved(folder):
    names = {path.name for path in folder.iterdir()}
    assert names - {"executed.ipynb", "displays.json"} == {"tasks.ipynb", "tasks.csv", "expected.npz"}
    assert not (NOTEBOOK / "expected.npz").exists()


@pytest.mark.parametrize("name", ["load", "run", "expect", "bounds"])
def test_results_are_tables_without_scripts(cells, name):
    (page,) = data(cells[name], "text/html")
    assert len(re.findall("<table", page)) == len(re.findall("</table>", page)) == 1
    assert len(re.findall("<tr", page)) == len(re.findall("</tr>", page)) >= 8
    assert not re.search(r"<script|javascript:|\son\w+=|https?://(?!www\.w3\.org/)", page)


def test_the_figure_has_curves_in_several_colours(cells):
    from matplotlib.image import imread

    (picture,) = data(cells["plot"], "image/png")
    assert data(cells["plot"], "text/plain")[0].startswith("<Figure")  # and no repr of the axes before it
    pixels = imread(io.BytesIO(base64.b64decode(picture)), format="png")[..., :3]
    assert min(pixels.shape[:2]) > 200
    codes, counts = np.unique((pixels * 8).round().astype(int) @ [81, 9, 1], return_counts=True)
    colours = np.stack([codes // 81, codes // 9 % 9, codes % 9])
    vivid = np.ptp(colours, axis=0) >= 3
    assert 0.2 < counts.max() / counts.sum() < 0.98  # paper, and something on it
    assert sum(counts[vivid] > 50) >= 2


def test_the_bounds_are_a_latex_table_with_aligned_numbers(cells):
    table = text(cells["latex"])
    for part in (r"\begin{tabular}{llr@{}l}", r"\toprule", r"\midrule", r"\bottomrule", r"\end{tabular}"):
        assert table.count(part) == 1
    body = table.partition(r"\midrule")[2].partition(r"\bottomrule")[0].strip().splitlines()
    assert len(body) >= 3
    for row in body:
        assert re.search(r"& \$\d+\$ & (\$(\.\d+)?(\\times10\^\{-?\d+\})?\$)? \\\\$", row), row
    assert table.count("{") == table.count("}")


def test_what_was_saved_is_loaded(cells):
    assert data(cells["files"], "text/plain") == ["True"]


def test_a_bar_is_drawn_without_widgets_and_vanishes(cells, folder):
    displays = json.loads((folder / "displays.json").read_text())
    last = max(display["cell"] for display in displays)
    first, *updates = (display for display in displays if display["cell"] == last)
    assert first["type"] == "display_data"
    assert {display["type"] for display in updates} == {"update_display_data"}
    assert any("<pre" in display["data"]["text/html"] for display in updates)
    assert not any("widget" in kind for display in displays for kind in display["data"])
    (bar,) = (output for output in cells[""] if output["output_type"] == "display_data")
    assert set(map("".join, bar["data"].values())) == {""}
    assert text(cells[""], "stderr") == ""


if __name__ == "__main__":
    execute(Path(sys.argv[1]))
