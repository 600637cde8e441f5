"""A part of the suite again, on another processor and with all accesses to arrays checked: `python tests/machines.py`.

Sums are rounded differently by each processor, since OpenBLAS, NumPy and numba choose their code by what it can do.
Their choices can be forced, as long as the processor has the instructions, and one other processor is imitated. Then
the tests of kernels run with numba checking every access to an array. Each run prints a line: what passed and in how
many seconds, or why it is left out. With `--whole`, all machines that can be imitated run all tests, and the kernels
run without being compiled, too.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PART = [  # what prints numbers or compares them closely: examples, pages, known answers, exact arithmetic
    "src",
    "tests/test_readme.py",
    "tests/interface/test_command_texts.py",
    "tests/estimators/test_both.py::test_the_page_of_the_docs_prints_what_it_says",
    "tests/known_answers",
    "tests/exact",
]
LEFT_OUT = "gallery or covers_the_true_error or hundred_thousand_steps or does_not_settle"  # they take long


@dataclass(frozen=True)
class Setting:
    """A variable of numba, what it does, and the tests that are run with it: those of kernels that take no time."""

    name: str
    effect: str
    tests: tuple[str, ...]
    left_out: str
    always: bool  # or with `--whole` only


SETTINGS = [
    Setting(
        "NUMBA_BOUNDSCHECK",
        "every access to an array is checked",
        (
            "tests/dynamics/test_runs.py",
            "tests/sets/test_polyhedron.py",
            "tests/exact/test_hard_cases.py",
            "tests/solver/test_row_kernels.py",
        ),
        "million or two_thousand",
        always=True,
    ),
    Setting(
        "NUMBA_DISABLE_JIT",
        "nothing is compiled",
        (
            "tests/dynamics/test_runs.py",
            "tests/sets/test_polyhedron.py",
            "tests/exact/test_arithmetic.py",
            "tests/solver/test_row_kernels.py",
        ),
        "million or two_thousand or lengthen",
        always=False,
    ),
]


@dataclass(frozen=True)
class Machine:
    """A processor: its name for OpenBLAS, the features it needs, those NumPy must not use, and numba's name for it."""

    core: str
    needs: tuple[str, ...]
    without: tuple[str, ...]  # how the names begin
    numba: str | None
    threads: int

    def __str__(self) -> str:
        numba = self.numba or "the host"
        return f"{self.core}, numba for {numba}, {self.threads} BLAS thread{'s' if self.threads > 1 else ''}"

    def environment(self, dispatched: list[str]) -> dict[str, str]:
        """The variables that make this processor look like that one."""
        threads = dict.fromkeys(["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"], str(self.threads))
        disabled = " ".join(feature for feature in dispatched if feature.startswith(self.without))
        return (
            threads
            | {"OPENBLAS_CORETYPE": self.core}
            | ({"NPY_DISABLE_CPU_FEATURES": disabled} if disabled else {})
            | ({"NUMBA_CPU_NAME": self.numba, "NUMBA_CACHE_DIR": cache(self.numba)} if self.numba else {})
        )


MACHINES = [
    Machine("Nehalem", needs=("SSE42",), without=("",), numba="generic", threads=2),
    Machine("SkylakeX", needs=("AVX512_SKX",), without=("AVX512_ICL", "AVX512_SPR"), numba=None, threads=1),
    Machine("Haswell", needs=("AVX2", "FMA3"), without=("AVX512", "X86_V4"), numba="generic", threads=1),
    Machine("Sandybridge", needs=("AVX",), without=("FMA", "AVX2", "AVX512", "X86_V"), numba="generic", threads=1),
]

PROBE = """
import numpy, scipy.linalg, threadpoolctl
from numpy._core._multiarray_umath import __cpu_dispatch__ as dispatched, __cpu_features__ as features
print(*[library.get("architecture") for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"])
print(*[name for name in features if features[name]])
print(*[name for name in dispatched if features[name]])
"""


def cache(cpu: str) -> str:
    """Where numba keeps what it compiled for `cpu`: a folder each, so that no machine runs code made for another."""
    return str(Path(sys.prefix) / "numba" / cpu)


def probe(environment: dict[str, str]) -> tuple[list[str], list[str], list[str]]:
    """Of a process there: the core each OpenBLAS takes, the features NumPy sees, and those it chooses its code by."""
    done = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True, check=True)
    cores, features, dispatched = (line.split() for line in done.stdout.split("\n")[:3])
    return cores, features, dispatched


def obstacle(machine: Machine, plain: dict[str, str]) -> str | None:
    """Why this machine cannot be imitated here, or None."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return f"{platform.machine()} is no x86 processor"
    cores, features, dispatched = probe(plain)
    if not cores or "None" in cores:
        return "NumPy or SciPy is not built on OpenBLAS"
    missing = [feature for feature in machine.needs if feature not in features]
    if missing:
        return f"this processor has no {' and no '.join(missing)}"
    if set(cores) == {machine.core}:
        return "it is this processor"
    cores, _, left = probe(plain | machine.environment(dispatched))
    if set(cores) != {machine.core}:
        return f"OpenBLAS takes {' and '.join(sorted(set(cores)))} instead"
    if any(feature.startswith(machine.without) for feature in left):
        return f"NumPy keeps {' and '.join(left)}"
    return None


def passes(where: Machine | str, environment: dict[str, str], tests: list[str]) -> bool:
    """Run the tests there, and print the line; all that pytest says if something fails."""
    began = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "worksteal", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    said = done.stdout.strip().splitlines() or ["nothing was run"]
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n")
    print(f"{where}: {said[-1].partition(' in ')[0]} in {time.monotonic() - began:.0f} s", flush=True)
    return done.returncode == 0


def main(whole: bool) -> int:
    """0 if all machines that are run pass, 1 otherwise."""
    ours = ("OPENBLAS_", "OMP_", "NPY_", "NUMBA_")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    tests = [] if whole else ["-k", f"not ({LEFT_OUT})", *PART]
    passed = []
    for machine in MACHINES:
        reason = "another one is enough" if passed and not whole else obstacle(machine, plain)
        if reason is None:
            passed.append(passes(machine, plain | machine.environment(probe(plain)[2]), tests))
        else:
            print(f"{machine}: left out, {reason}", flush=True)
    one_thread = plain | dict.fromkeys(["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"], "1")
    for setting in (setting for setting in SETTINGS if setting.always or whole):
        part = ["-k", f"not ({setting.left_out})", *setting.tests]
        passed.append(passes(f"{setting.name}, {setting.effect}", one_thread | {setting.name: "1"}, part))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main(whole="--whole" in sys.argv[1:]))
