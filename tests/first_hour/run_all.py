"""The first hour with the wheel: it is installed into an empty environment, without extras, and runs three scripts.

`python tests/first_hour/run_all.py dist/*.whl` prints the seconds of each step, from `pip install` to the first exact
value and to the results of a theorist, a designer of benchmarks and a numerical user. What needs an extra is left out
where the extra is not installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
#: the scripts, and the packages of extras that they need
SCRIPTS = {
    "theorist": (),
    "designer": (),
    "designer_with_a_frame": ("pandas",),
    "class_orders": ("pandas",),
    "numerical_user": (),
}
FIRST = "import forgetting as fg; print(fg.expect(fg.families.gaussian(T=10, d=30, rank=2), 'random', k=1000))"


def prepare(folder: Path) -> None:
    """The files that the scripts read: tasks with a column for the sensor, digits of ten classes, a sparse system."""
    import numpy as np
    from scipy import sparse
    from sklearn.datasets import load_digits

    shutil.copy(HERE.parents[1] / "docs" / "notebook" / "tasks.csv", folder)
    digits = load_digits()
    pixels = [pixel for pixel in range(64) if digits.data[:, pixel].any()]
    lines = [",".join(["task", "class", *(f"p{pixel}" for pixel in pixels)])]
    for row in range(400):
        label = digits.target[row]
        lines.append(",".join([str(label // 2 + 1), str(label), *(f"{digits.data[row, pixel]:g}" for pixel in pixels)]))
    (folder / "digits.csv").write_text("\n".join(lines), encoding="utf-8")
    rng = np.random.default_rng(0)
    A = sparse.random_array((3000, 1000), density=0.004, rng=rng) + sparse.vstack(3 * [sparse.eye_array(1000)])
    sparse.save_npz(folder / "A.npz", sparse.csr_array(A))
    np.save(folder / "b.npy", sparse.csr_array(A) @ rng.standard_normal(1000))


def missing(script: str, python: str) -> str:
    """What a script needs that this Python does not have; empty if it has everything."""
    for name in SCRIPTS[script]:
        if subprocess.run([python, "-c", f"import {name}"], capture_output=True, check=False).returncode:
            return name
    return ""


def timed(what: str, command: list[str], folder: Path) -> str:
    """Run a command in the folder, print its seconds, and return what it printed; the program ends if it fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    began = time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, env=environment | {"MPLBACKEND": "agg"}, capture_output=True, text=True, check=False
    )
    print(f"{time.perf_counter() - began:6.1f} s  {what}", flush=True)
    if done.returncode:
        raise SystemExit(f"{what} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def main(wheel: Path) -> None:
    """Install the wheel into an empty environment, and run everything there."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        venv.create(folder / "venv", with_pip=True)
        paths = sysconfig.get_paths("venv", vars={"base": str(folder / "venv"), "platbase": str(folder / "venv")})
        python = str(Path(paths["scripts"], "python"))
        timed(
            "pip install of the wheel, without extras", [python, "-m", "pip", "install", str(wheel.resolve())], folder
        )
        home = timed("import forgetting", [python, "-c", "import forgetting; print(forgetting.__file__)"], folder)
        assert str(folder.resolve()) in str(Path(home.strip()).resolve()), f"not the wheel, but {home}"
        timed("the first exact value, with nothing compiled before", [python, "-c", FIRST], folder)
        timed("the same again", [python, "-c", FIRST], folder)
        timed("the files of the scripts", [python, str(HERE / "run_all.py"), "--prepare"], folder)
        for script in SCRIPTS:
            if needed := missing(script, python):
                print(f"          {script} is left out: it needs {needed}")
            else:
                timed(script, [python, str(HERE / f"{script}.py")], folder)


if __name__ == "__main__":
    if sys.argv[1] == "--prepare":
        prepare(Path())
    else:
        main(Path(sys.argv[1]))
