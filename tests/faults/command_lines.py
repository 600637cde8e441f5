"""Odd command lines from a seed; `python tests/faults/command_lines.py --cases 2500 --seed 1` runs many.

A line is a command with options and values, mostly usable ones on small problems, in which something is then spoilt.
Whatever is asked for, a user sees a result, or one line that says what is wrong: `faults` tells where that is not so.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import forgetting as fg
from forgetting.cli import run_app

LIMIT = 10.0  # seconds a case
MEMORY = 4 * 2**30  # bytes a worker
BATCH = 50  # cases a worker

NUMBERS = (
    "0", "1", "2", "-1", "0.5", "1e-9", "1e-300", "5e-324", "1e300", "1e308", "1e400", "nan", "inf", "-inf", "1e15",
    "1" + "0" * 30, "9" * 400, "9" * 5000, "1_0", "0x10", "1j", "True", "none", "٣", "1,2", "1..9", "9..1", "1..2..3",
    "",
)  # fmt: skip
WORDS = (
    "", " ", "=", "==", "a=", "=1", "'", '"', "'a", "\\", "a b", "[", "[" * 300, "[" * 20_000, "(1,)", "[[1,2],[3]]",
    "{}", "{1:2}", "-" * 3, "--", "-", "é", "λ=1", "\x1b[31m", "a\x00b", "\udc80", "\ud800", "\u202e", "a\nb", "\t",
    "*", "..", "/", ".", "~", "nowhere.npz", "x" * 300 + ".npz", "x" * 5000, "folder.npz", "folder.csv", "folder.toml",
    "%s", "{0}",
)  # fmt: skip
FILES = (
    "tasks.npz", "signs.npz", "rows.npz", "noise.npz", "half.npz", "empty.npz", "folder.npz", "tasks.csv", "names.csv",
    "odd.csv", "empty.csv", "ragged.csv", "folder.csv", "my.toml", "dates.toml", "huge.toml", "deep.toml", "types.toml",
    "infinite.toml", "latin.toml", "tasks.toml", "file.toml", "report.json", "loop.toml", "A.npz", "b.npy", "odd.npy",
    "A.mtx", "A.csv",
)  # fmt: skip
PROBLEMS = (
    ("two_lines", "theta=0.5"), ("two_lines", "theta=0.1", "copies=3"), ("gaussian", "T=3", "d=4", "rank=2"),
    ("gaussian", "T=4", "d=3", "seed=7", "condition=2"), ("orthogonal", "d=3"), ("catastrophic", "eps=3"),
    ("separable", "T=2", "d=3", "n=3", "margin=0.2", "seed=1"), ("rank_one", "T=3", "d=4"),
    ("principal_angles", "angles=[0.3,1.0]"),
    ("heterogeneous_norms", "T=3", "d=4", "spread=10", "seed=1"),
    ("back_and_forth", "T=6", "theta=0.3"), ("tasks.npz",), ("signs.npz",),
    ("my.toml",), ("tasks.toml",), ("tasks.csv",), ("names.csv",), ("tasks.csv", "copies=2"), ("rows.npz",),
)  # fmt: skip
ORDERINGS = (
    "with-replacement", "norm-weighted", "without-replacement", "cyclic", "reshuffled", "greedy-distance",
    "greedy-residual", "explicit seq=0,1,1", "with-replacement p=[0.5,0.5]", "explicit seq=[]", "explicit seq=0",
    "explicit seq=0,99", "explicit seq=a", "with-replacement p=[1,nan]", "cyclic x=1", "explicit 'seq", "CYCLIC",
    "greedy-distance repeat=0", "cyclic order=1,0", "cyclic order=9", "non-repetitive", "steinerberger power=1",
    "relaxed-greedy theta=2", "relaxed-greedy", "quantile q=0.5", "quantile sample=2",
)  # fmt: skip
SCHEMES = (
    "kaczmarz", "sgd step_size=0.5", "sgd step_size=1e300", "ridge lam=0.1", "ridge lam=1e400", "pocs",
    "ridge lam=0", "ridge lam=" + "9" * 400, "nlms mu=1", "nlms eps=0.1", "pocs warm_start=1",
    "recursive-least-squares", "sgd objective=loss",
    "ridge 'lam=1", 'sgd "', "sgd step_size=-1", "finite-steps step_size=0.1 n=2",
    "gradient-descent", "weakly-regularized log_lambda=-50", "gradient-descent tol=0.1", "gradient-descent max_steps=2",
)  # fmt: skip
SLOW = 4  # of these, at the end
STEPS = ("1", "2", "3", "5", "10", "1,2", "1..9", "20")
OUTS = (
    "o.json", "o.html", "o.csv", "o.tex", "o.png", "o.pdf", "o.txt", "o.docx", "o", "", ".", "folder.npz", "tasks.npz",
    "report.json", "deep/er/o.json", "o\x1b.json", "\udc80.json", "x" * 300 + ".json", "tasks.npz/o.json", "a\x00.json",
)  # fmt: skip
COMMANDS = (
    "run",
    "expect",
    "bounds",
    "certify",
    "audit",
    "table",
    "claims",
    "families",
    "report",
    "doctor",
    "cite",
    "solve",
)


def command_line(rng: random.Random) -> list[str]:
    """An odd command line; the same from the same state.

    >>> command_line(random.Random(0)) == command_line(random.Random(0))
    True
    """
    line = _usable(rng)
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
        line = _spoilt(line, rng)
    return line


def _usable(rng: random.Random) -> list[str]:
    command = rng.choices(COMMANDS, weights=(5, 5, 4, 3, 4, 3, 2, 1, 2, 0.2, 1, 3))[0]
    line = [command]
    if command in ("run", "expect", "bounds", "certify"):
        line += rng.choice(PROBLEMS)
        line += _maybe(rng, 0.1, *rng.choice((("--label", "z"), ("--drop", "a"), ("--drop-nan",), ("--positive", "1"))))
        line += _maybe(rng, 0.5, "--ordering", rng.choice(ORDERINGS))
        line += _maybe(rng, 0.3, "--scheme", rng.choice(SCHEMES if command != "certify" else SCHEMES[:-SLOW]))
        line += ["-k", rng.choice(STEPS if command == "expect" else STEPS[:5])]
        if command == "expect":
            methods = ("auto", "moments", "spectral", "subsets", "listing", "monte-carlo")
            line += _maybe(rng, 0.3, "--method", rng.choice(methods))
            line += _maybe(rng, 0.3, "--runs", rng.choice(("1", "2", "64")))
        if command == "bounds":
            line += _maybe(rng, 0.3, "--quantity", rng.choice(("all", "loss", "loss,loss", "regret", "", "x")))
            line += _maybe(rng, 0.3, "--all")
    elif command == "audit":
        line += rng.choice((*PROBLEMS, ("tasks.csv",), ("names.csv",), ("odd.csv",), ("digits", "split", "rows=3")))
        line += _maybe(rng, 0.2, "--rows", "2") + _maybe(rng, 0.2, "--features", "5") + _maybe(rng, 0.2, "--drop-nan")
        line += _maybe(rng, 0.2, "--label", rng.choice(("y", "task", "z"))) + _maybe(rng, 0.2, "--passes", "2")
    elif command == "table":
        line += [rng.choice(("regression", "classification", "sgd")), *_maybe(rng, 0.5, "-k", rng.choice(STEPS[:5]))]
        line += _maybe(rng, 0.3, "--format", rng.choice(("text", "markdown", "latex", "html")))
    elif command == "claims":
        line += [rng.choice(("", "thm", "prop:mean_norm", "lem", "x"))]
    elif command == "cite":
        plugin = _maybe(rng, 0.2, "--plugin", rng.choice(("odd.csv", "x.py", "", "math")))
        keys = ("forgetting", "lem:regret_bound", "trivial/loss", "lan2012optimal", "x")
        return [*plugin, command, *_maybe(rng, 0.8, rng.choice(keys)), *_maybe(rng, 0.2, "--json")]
    elif command == "solve":
        line += [rng.choice(("A.npz", "A.csv", "A.mtx", "A.npy")), rng.choice(("b.npy", "b.csv", "noisy.npy"))]
        line += _maybe(rng, 0.4, "--ordering", rng.choice(ORDERINGS)) + _maybe(rng, 0.2, "--damp", rng.choice(NUMBERS))
        line += _maybe(rng, 0.3, "--method", rng.choice(("auto", "kaczmarz", "multipliers", "extended", "averaged")))
        line += _maybe(rng, 0.3, "--blocks", rng.choice(("auto", "rows", "1", "2", "0", "1e3", "x")))
        line += _maybe(rng, 0.2, "--bounds", rng.choice(("0,1", "0,inf", "1,0", "nan,1", "0", "a,b", "-inf,inf", "")))
        line += _maybe(rng, 0.2, "--average", rng.choice(("1", "2", "all", "0", "x"))) + _maybe(
            rng, 0.2, "--nonnegative"
        )
        line += _maybe(rng, 0.2, "--tol", rng.choice(NUMBERS)) + _maybe(rng, 0.2, "--relaxation", rng.choice(NUMBERS))
        line += ["--maxiter", rng.choice(("0", "1", "20"))]
    elif command == "families":
        line += [rng.choice(("", "gaussian", "two-lines", "x"))]
    elif command == "report":  # whole reports take seconds: these are asked for in vain
        line += rng.choice(
            (("nowhere.npz",), ("two_lines",), ("gaussian", "T=3"), ("--config", rng.choice(FILES[14:20])))
        )
    if command not in ("families", "doctor"):
        line += _maybe(rng, 0.3, "--seed", rng.choice(("0", "7", "1" + "0" * 30)))
        line += _maybe(rng, 0.3, "--out", rng.choice(OUTS)) + _maybe(rng, 0.1, "--force")
    return line + _maybe(rng, 0.2, "--json")


def _maybe(rng: random.Random, share: float, *words: str) -> list[str]:
    return list(words) if rng.random() < share else []


def _spoilt(line: list[str], rng: random.Random) -> list[str]:
    """The same with one thing changed, other than its command: that would be another problem, or a whole report."""
    if rng.random() < 0.3:
        return _respelt(line, rng)
    at = rng.randrange(1, len(line)) if len(line) > 1 else 1
    word = line[at] if at < len(line) else ""
    name, sign, _ = word.partition("=")
    kind = rng.randrange(7) if line[0] != "report" else rng.choice((0, 1, 3, 4))
    if kind == 0 or (kind == 1 and not sign):
        return [*line[:at], rng.choice(WORDS), *line[at + 1 :]]
    if kind == 1:  # sizes stay small: large ones are for machines that have the time
        numbers = [one for one in NUMBERS if one != "1e15"] if name in ("T", "d", "n", "rank", "copies") else NUMBERS
        return [*line[:at], f"{name}={rng.choice((*numbers, *WORDS))}", *line[at + 1 :]]
    if kind == 2:
        return line[:at] + line[at + 1 :]
    if kind == 3:
        return [*line[:at], word, *line[at:]]
    if kind == 4:
        place = rng.randrange(len(word) + 1)
        letter = rng.choice(("\x1b", "\x00", "'", " ", "=", "é", "\udc80"))
        return [*line[:at], word[:place] + letter + word[place:], *line[at + 1 :]]
    if kind == 5:
        return [line[0], rng.choice(FILES), *line[2:]]
    options = ["--seed", "-k", "--rows", "--features", "--passes"]
    more = [(rng.choice(options), rng.choice(NUMBERS)), ("--help",), ("--nonsense",), (rng.choice(WORDS),)]
    return [*line, *rng.choice(more)]


def _respelt(line: list[str], rng: random.Random) -> list[str]:
    """The same with a number of a problem, an ordering or a scheme that is none, or no usable one."""
    numbers = [at for at, word in enumerate(line) if "=" in word]
    if not numbers:
        return line
    at = rng.choice(numbers)
    head, _, _ = line[at].rpartition("=")
    large = ("T", "d", "n", "rank", "copies", "tasks", "rows")
    usable = [one for one in NUMBERS if one != "1e15" or head not in large]
    return [*line[:at], f"{head}={rng.choice(usable)}", *line[at + 1 :]]


def prepare(folder: Path) -> None:
    """The files that command lines name."""
    tasks = fg.families.gaussian(T=3, d=4, rank=2, seed=0)
    tasks.save(folder / "tasks.npz")
    fg.families.separable(T=2, d=3, n=3).save(folder / "signs.npz")
    np.savez(folder / "rows.npz", X=np.eye(3), y=[1.5, 2.5, 0.5], task=["b", "a", "b"])
    whole = (folder / "tasks.npz").read_bytes()
    (folder / "half.npz").write_bytes(whole[: len(whole) // 2])
    (folder / "noise.npz").write_bytes(bytes(range(256)))
    np.savez(folder / "empty.npz")
    rows = np.arange(12.0).reshape(4, 3) % 5
    sp.save_npz(folder / "A.npz", sp.csr_array(rows))
    np.save(folder / "A.npy", rows)
    np.savetxt(folder / "A.csv", rows, delimiter=",")
    np.save(folder / "b.npy", rows @ np.ones(3))
    np.savetxt(folder / "b.csv", rows @ np.ones(3))
    np.save(folder / "noisy.npy", np.arange(4.0))
    np.save(folder / "odd.npy", np.array([[1.0, np.nan], [np.inf, 1e308]]))
    (folder / "A.mtx").write_text("%%MatrixMarket matrix coordinate real general\n4 3 2\n1 1 1.0\n4 3 2.0\n")
    for name in ("folder.npz", "folder.csv", "folder.toml"):
        (folder / name).mkdir()
    rows = "task,a,b,y\none,1,0,1\none,1,2,0\ntwo,0,1,2\ntwo,3,1,1\n"
    texts = {
        "tasks.csv": rows,
        "names.csv": rows.replace("one", "\x1b[31mred\u202e").replace("two", '"two\nlines"'),
        "odd.csv": rows.replace("3", "1e400").replace("2", "nan"),
        "empty.csv": "",
        "ragged.csv": rows + "one,1\n",
        "my.toml": "seed = 3\n[problem]\nfamily = 'orthogonal'\nd = 3\n",
        "tasks.toml": "[[problem.tasks]]\nX = [[1, 0]]\ny = [1]\n[[problem.tasks]]\nX = [[1, 1]]\ny = [2]\n",
        "file.toml": "[problem]\nfile = 'a\\u0000.npz'\n",
        "dates.toml": "seed = 1979-05-27\ntitle = 07:32:00\n[problem]\nfamily = 1979-05-27\n",
        "huge.toml": f"seed = {'9' * 400}\n[problem]\nfamily = 'two_lines'\ntheta = {'9' * 400}\n",
        "deep.toml": f"[problem]\nfamily = 'two_lines'\ntheta = {'[' * 5000}{']' * 5000}\n",
        "types.toml": "[problem]\nfamily = ['gaussian']\nT = {a = 1}\n[report]\nk = 1.5\neps = ['a', nan]\n",
        "infinite.toml": "[problem]\nfamily = 'two_lines'\ntheta = inf\n[report]\neps = [inf]\nk = inf\n",
        "loop.toml": "[problem]\nfile = 'loop.toml'\n",
        "report.json": '{"format": "forgetting/report/1"}',
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "latin.toml").write_bytes("[problem]\nfamily = 'é'".encode("latin-1"))


def run(line: list[str]) -> tuple[int | None, str, str]:
    """Exit code (None: a traceback), stdout and stderr of a command line in this process and folder."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("always")
        try:
            code: int | None = run_app(list(line))
        except Exception:
            code = None
            err.write(traceback.format_exc())
    return code, *(stream.buffer.getvalue().decode("utf-8") for stream in (out, err))


def faults(code: int | None, out: str, err: str) -> Iterator[str]:
    """What a user should not see.

    >>> list(faults(0, "done", "")), list(faults(2, "", "Traceback ..."))
    ([], ['exit code 2 without a line of error', 'a traceback'])
    """
    if code is None:
        yield "an exception: " + err.strip().splitlines()[-1][:120]
        return
    if code not in (0, 2, 3):
        yield f"exit code {code}"
    lines = err.splitlines()
    if code == 2 and not (len(lines) == 1 and lines[0].startswith("error: ")):
        yield (
            "exit code 2 without a line of error"
            if not lines or not err.startswith("error: ")
            else "more than one line"
        )
    if code != 2 and "error" in err:
        yield "an error without its exit code"
    if "Traceback" in err:
        yield "a traceback"
    elif "Warning" in err:
        yield "a warning: " + next(line for line in lines if "Warning" in line)[-120:]
    if re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", out + err):
        yield "characters that act on a terminal"
    explained = re.search("diverge|overflow|Usage:", out)
    if code == 0 and not explained and re.search(r"(?<![\w.-])(nan|NaN|inf|Infinity)(?!\w)", out):
        yield "a number that is none"


def _worker(seed: int, first: int, cases: int) -> None:
    """Run cases and print a line for each; the parent sees by the last one what took too long."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for case in range(first, first + cases):
        print(f"begin {case}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            prepare(Path(folder))
            code, out, err = run(command_line(random.Random(f"{seed} {case}")))
            os.chdir("/")
        print(f"end {case} {json.dumps([code, *faults(code, out, err)])}", flush=True)


def main() -> int:
    """Many cases, in workers that are replaced when one takes too long."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=2500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        _worker(asked.seed, asked.first, asked.cases)
        return 0
    found: dict[int, list[Any]] = {}
    case, last = asked.first, asked.first + asked.cases
    while case < last:
        case = _batch(asked.seed, case, min(BATCH, last - case), found)
    codes = Counter(str(code) for code, *_ in found.values())
    bad = {number: said for number, (_, *said) in found.items() if said}
    for number, said in bad.items():
        line = command_line(random.Random(f"{asked.seed} {number}"))
        print(f"{number}: forgetting {shlex.join(line)!a:.300}\n    {'; '.join(said)!a}")
    kinds = Counter(one.partition(":")[0] for said in bad.values() for one in said)
    print(
        f"{len(found)} cases of seed {asked.seed}, exit codes {dict(codes)}: {len(bad)} with faults {dict(kinds) or ''}"
    )
    return 1 if bad else 0


def _batch(seed: int, first: int, cases: int, found: dict[int, list[Any]]) -> int:
    """Run a worker until it is done or stuck; the number of the next case."""
    import selectors
    import time

    words = [sys.executable, __file__, "--worker", "--seed", str(seed), "--first", str(first), "--cases", str(cases)]
    worker = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    ready = selectors.DefaultSelector()
    ready.register(worker.stdout, selectors.EVENT_READ)
    case, began, allowed = first, time.monotonic(), 60.0  # the first one waits for imports
    while True:
        if not ready.select(timeout=max(0.0, began + allowed - time.monotonic())):
            found[case] = [None, f"not done after {LIMIT:g} s"]
            worker.kill()
            worker.wait()
            return case + 1
        line = worker.stdout.readline()
        if not line:
            if worker.wait() != 0 and case not in found:
                found[case] = [None, f"the process ended with {worker.returncode}"]
            return case + 1
        word, number, rest = (*line.split(" ", 2), "")[:3]
        case, began, allowed = int(number), time.monotonic(), LIMIT
        if word == "end":
            found[case] = json.loads(rest)


if __name__ == "__main__":
    sys.exit(main())
