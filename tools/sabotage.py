"""Faults planted one after another in a copy of the package, and whether the tests notice: `python -m tools.sabotage`.

Run it in a clone, since the files of the package are changed while it works: each fault is a line of code and what
replaces it. The tests of the fault's packages run until one fails. `--only 3,7` plants some of the faults, and `--list`
shows them.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Fault:
    """A line of `src`, what takes its place, and the tests that should notice."""

    line: str
    wrong: str
    tests: str

    def file(self) -> Path:
        """The one file that has the line."""
        (path,) = (path for path in (ROOT / "src").rglob("*.py") if self.line in path.read_text(encoding="utf-8"))
        return path


FAULTS = [
    # orderings and schemes
    Fault("weights: Array = tasks.norms**2", "weights: Array = tasks.norms**3", "tests/orderings tests/test_checks.py"),
    Fault(
        "allowed = scores if self.repeat else np.where(seen, -np.inf, scores)", "allowed = scores",
        "tests/orderings tests/test_checks.py",
    ),
    Fault("point -= self.mu * (row @ point - value)", "point -= 0.99 * self.mu * (row @ point - value)",
          "tests/oracles"),
    Fault("1 - (1 - product) ** self.n)", "1 - (1 - product) ** (self.n + 1))", "tests/expectation tests/exact"),
    Fault("else self.step_size * sigma**2", "else self.step_size * sigma", "tests/dynamics tests/properties"),
    # convex sets
    Fault("return Halfspace(normal, min(self.b, float(normal @ common)))", "return Halfspace(normal, self.b)",
          "tests/sets tests/worstcase"),
    Fault("self.center + (self.radius / length) * offset", "self.center + (1.001 * self.radius / length) * offset",
          "tests/sets"),
    Fault("return np.minimum(np.maximum(w, self.lo), self.hi)", "return np.maximum(w, self.lo)", "tests/sets"),
    Fault("return np.asarray(np.maximum(shifted - excess[last] / (last + 1), 0.0))",
          "return np.asarray(np.maximum(shifted - excess[last] / (last + 2), 0.0))", "tests/sets"),
    # geometry and arithmetic
    Fault("rank = int(np.count_nonzero(spectrum > tolerance(matrix.shape) * spectrum[0]))",
          "rank = int(np.count_nonzero(spectrum > 1e-6 * spectrum[0]))", "tests/geometry tests/tasks tests/exact"),
    Fault("targets = (values.T / sigma).T", "targets = values", "tests/tasks tests/dynamics"),
    Fault("return s, (a - (s - t)) + (b - t)", "return s, 0.0 * t", "tests/exact tests/known_answers"),
    Fault("-targets[i]\n            for j in range(size)", "targets[i]\n            for j in range(size)",
          "tests/dynamics"),
    # runs and metrics
    Fault("rows[i, j]\n    return 0.5 * before, 0.5 * after", "rows[i, j]\n    return 0.5 * before, after",
          "tests/dynamics"),
    Fault("result[task] = best - values[last, task] if", "result[task] = best - 0.5 * values[last, task] if",
          "tests/dynamics"),
    Fault("return np.cumsum(losses, axis=-1) / np.arange(1, losses.shape[-1] + 1)",
          "return np.cumsum(losses, axis=-1) / np.arange(2, losses.shape[-1] + 2)", "tests/dynamics"),
    # expectations
    Fault("return 0.0, 0.5 * bound * size", "return 0.0, 0.25 * bound * size", "tests/expectation"),
    Fault("return 0.0 if epoch <= 64 * T * moments.size * EPS else float(epoch ** (1 / T))", "return float(epoch)",
          "tests/expectation"),
    Fault("self.learnt = _sum(self.learnt, gained)",
          "self.learnt = _sum(self.learnt, gained._replace(doubt=0.0 * gained.doubt))",
          "tests/exact tests/expectation/test_float64.py tests/expectation/test_plugins.py"),
    # theory
    Fault('return T**2 * S / 2 * minimum(1 / root(K), gap(dim, RANK_MAX) / (2 * K))',
          'return T**2 * S / 4 * minimum(1 / root(K), gap(dim, RANK_MAX) / (2 * K))', "tests/theory"),
    Fault("return 2 * last_iterate(1, steps_made - 1) + 1 / steps_made if steps_made > 1 else 0.0",
          "return last_iterate(1, steps_made - 1) + 1 / steps_made if steps_made > 1 else 0.0", "tests/theory"),
    Fault("return self.dist_sq * self.radius**2", "return self.dist_sq * self.radius", "tests/theory"),
    Fault("return value >= trivial * (1 - 1e-12)", "return value > trivial * (1 + 1e-9)", "tests/theory tests/report"),
    # worst cases
    Fault("total[at] = total.get(at, 0) + factor * value", "total[at] = factor * value", "tests/worstcase"),
    Fault("return hashlib.sha256(content(c).encode()).hexdigest()", 'return c["digest"]', "tests/worstcase"),
    # the solver
    Fault("return max(step, -dual) if remembers else (step if error > 0.0 else 0.0)",
          "return step if error > 0.0 else 0.0", "tests/solver"),
    Fault("self.cuts[i] = wanted - self.iterate.x", "self.cuts[i] = 0.0 * wanted", "tests/solver"),
    Fault('begin = "converged" if known is None or known.error <= loop.stops.normal else "stopped"',
          'begin = "converged"', "tests/solver"),
    # audits
    Fault("return mean if often > 0.5 else 0", "return mean", "tests/auditing"),
    Fault("return int(math.copysign(1, gain)) if abs(gain) > self.slack + DEVIATIONS * error else 0",
          "return int(math.copysign(1, gain)) if gain else 0", "tests/auditing"),
    # files and stores
    Fault('.{secrets.token_hex(6)}{ending}"', '{ending}"', "tests/faults tests/saved"),
    Fault("        os.link(temporary, path)", "        os.replace(temporary, path)", "tests/faults tests/cli"),
    Fault("""return word[1:] if word[:1] == "'" and FORMULA.match(word) else word""", "return word",
          "tests/faults tests/tasks tests/cli"),
    Fault("if needed <= UNNOTICED:", "if True:", "tests/faults"),
    Fault('raise InvalidInputError(f"{what}: rows of different lengths do not make an array") from None',
          "raise", "tests/test_bad_input.py tests/faults/test_api_calls.py"),
    # studies
    Fault('functions.add(name, function, replace=not name.startswith("forgetting."))',
          "functions.add(name, function, replace=True)", "tests/studies tests/test_plugins.py"),
    Fault("return ENCODER.encode(values)", "return repr(values)", "tests/studies"),
    # the command line, figures and estimators
    Fault("return 128 + number", "return 1", "tests/cli"),
    Fault("part = part if lines[-1] else part.lstrip()", "part = part",
          "tests/figures tests/cli/test_commands.py tests/faults/test_drawing.py"),
    Fault("signs = np.where(places[:, None] == np.arange(len(known)), 1.0, -1.0)",
          "signs = np.where(places[:, None] <= np.arange(len(known)), 1.0, -1.0)", "tests/estimators"),
]  # fmt: skip


def noticed(fault: Fault) -> str:
    """The first test that fails, or "not noticed"."""
    path = fault.file()
    text = path.read_text(encoding="utf-8")
    assert text.count(fault.line) == 1, fault.line
    own = [] if "methods" in path.parts else [str(path)]  # its examples; methods cannot be collected alone
    path.write_text(text.replace(fault.line, fault.wrong), encoding="utf-8")
    try:
        one_thread = os.environ | dict.fromkeys(["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"], "1")
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "2", "--dist", "worksteal", "--order", "1"]
        done = subprocess.run(
            [*command, *own, *fault.tests.split()], cwd=ROOT, env=one_thread, capture_output=True, text=True
        )
    finally:
        path.write_text(text, encoding="utf-8")
    failures = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failures[0].split(" - ")[0] if failures else "not noticed" if done.returncode == 0 else done.stdout[-300:]


def main() -> None:
    """Plant the faults and print a table."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it in the background: tests need it
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="numbers of faults, such as 3,7")
    parser.add_argument("--list", action="store_true", help="print the faults and plant none")
    chosen = parser.parse_args()
    numbers = [int(word) for word in chosen.only.split(",")] if chosen.only else range(1, len(FAULTS) + 1)
    missed = 0
    for number in numbers:
        fault = FAULTS[number - 1]
        if chosen.list:
            print(f"{number} {fault.file().relative_to(ROOT)}: {fault.line}  ->  {fault.wrong}")
            continue
        began = time.monotonic()
        found = noticed(fault)
        missed += found == "not noticed"
        print(f"| {number} | `{fault.wrong}` | {found} | {time.monotonic() - began:.0f} s |", flush=True)
    if not chosen.list:
        print(f"{len(numbers) - missed} of {len(numbers)} faults were noticed")


if __name__ == "__main__":
    main()
