"""Many random cases in processes of their own: a case may crash, hang or eat memory, and the others go on.

A fuzzer is a script with a function `examine(seed, case, folder) -> Outcome`, the same for the same numbers, that ends
with `campaign.main(examine)`. Then

    python tests/faults/files.py --cases 100000 --seed 1 --processes 2     is a campaign, and
    python tests/faults/files.py --seed 1 --case 4711                      is one case of it, with its traceback.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import forgetting
from forgetting.errors import ForgettingError

SECONDS = 10  # of processor time that a case may take, however busy the machine is
WAIT = 300  # seconds by the clock, for a case that waits for something and uses no processor time
TIMERS = (signal.SIGPROF, signal.SIGALRM)
MEMORY = 4 * 2**30  # bytes of address space, beside what a process has at the start
SOURCE = Path(forgetting.__file__).parent
OWN_WARNINGS = [one for one in vars(forgetting.errors).values() if isinstance(one, type) and issubclass(one, Warning)]


@dataclass(frozen=True)
class Outcome:
    """How far a case got, and what went wrong; `defect` is empty if nothing did."""

    case: int
    kind: str
    stage: str
    defect: str = ""
    story: str = ""


class WrongResultError(AssertionError):
    """What a fuzzer says of a result that is wrong."""


# ------------------------------------------------------------------------------------------------------------ judging


@contextmanager
def strict_warnings() -> Iterator[None]:
    """Warnings are errors, except for those this package has names for and the news of other libraries."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for news in (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ResourceWarning):
            warnings.filterwarnings("ignore", category=news, module="(?!forgetting)")
        for own in OWN_WARNINGS:
            warnings.simplefilter("ignore", own)
        yield


def name_defect(error: BaseException) -> str:
    """The kind of error and the place in this package where it came from: the same for the same defect."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(SOURCE)
    ]
    place = "outside the package"
    if frames:
        last = frames[-1]
        place = f"{Path(last.filename).relative_to(SOURCE)}, {last.name}, line {last.lineno}"
    words = re.sub(r"\s+", " ", str(error))
    return f"{type(error).__name__} in {place}: {words[:140]}"


def tell(error: BaseException) -> str:
    """The whole traceback, for a reader."""
    return "".join(traceback.format_exception(error, limit=-12))[-4000:]


def is_refusal(error: BaseException) -> bool:
    """Whether an error is one that this package raises on purpose, or one of the system about a path."""
    return isinstance(error, ForgettingError) or (isinstance(error, OSError) and error.filename is not None)


def limit_memory() -> Callable[[], None]:
    """From now on at most `MEMORY` more bytes of address space; returns what takes the limit back."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    size = Path("/proc/self/statm")  # of Linux; elsewhere there is no limit
    if size.exists():
        used = int(size.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


# ------------------------------------------------------------------------------------------------------------ workers


Examine = Callable[[int, int, Path], Outcome]


@dataclass
class Summary:
    """What a campaign found."""

    name: str
    seed: int
    processes: int
    folder: Path
    seconds: float = 0.0
    outcomes: list[Outcome] = field(default_factory=list)
    lines: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))

    @property
    def defects(self) -> dict[str, list[Outcome]]:
        """The cases of each distinct defect, the most frequent first. Numbers in messages do not tell defects apart."""
        found: dict[str, list[Outcome]] = defaultdict(list)
        for outcome in self.outcomes:
            if outcome.defect:
                found[re.sub(r": .*", "", outcome.defect)].append(outcome)
        return dict(sorted(found.items(), key=lambda item: -len(item[1])))

    def share(self, *stages: str, kind: str | None = None) -> float:
        """The share of cases that ended at one of these stages."""
        some = [outcome for outcome in self.outcomes if kind in (None, outcome.kind)]
        return sum(outcome.stage in stages for outcome in some) / max(1, len(some))

    def __str__(self) -> str:
        each = self.seconds * self.processes / max(1, len(self.outcomes))
        lines = [
            f"{self.name}: {len(self.outcomes)} cases, seed {self.seed}, {self.processes} processes, "
            f"{self.seconds:.0f} s, {1 / max(each, 1e-9):.0f} cases a second and process",
            "",
        ]
        stages = list(dict.fromkeys(sorted((one.stage for one in self.outcomes), key=len)))
        kinds = Counter(outcome.kind for outcome in self.outcomes)
        lines.append(f"{'kind':<24}{'cases':>8}" + "".join(f"  {stage:>20}" for stage in stages))
        for kind, count in [*sorted(kinds.items()), (None, len(self.outcomes))]:
            shares = "".join(f"  {self.share(stage, kind=kind):>20.1%}" for stage in stages)
            lines.append(f"{kind or 'all':<24}{count:>8}{shares}")
        for name, seen in sorted(self.lines.items()):
            there = executable_lines(SOURCE / name)
            missed = sorted(there - seen)
            lines.append(
                f"{name}: {1 - len(missed) / max(1, len(there)):.0%} of {len(there)} lines; not {spans(missed)}"
            )
        lines.append("")
        for name, outcomes in self.defects.items():
            first = min(outcomes, key=lambda one: one.case)
            lines.append(f"{len(outcomes):>6} x {name}")
            lines.append(f"         {first.defect.removeprefix(name)[2:]}")
            lines.append(f"         --seed {self.seed} --case {first.case}  ({first.kind})")
        lines.append(
            f"{len(self.defects)} distinct defects" + (f"; cases are kept in {self.folder}" * bool(self.defects))
        )
        return "\n".join(lines)


def conduct(
    script: Path, cases: int, seed: int, processes: int, folder: Path, *, coverage: bool = False, first: int = 0
) -> Summary:
    """Examine cases first, ..., first + cases - 1; a process that dies is replaced, and its case is a defect."""
    folder.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    summary = Summary(script.stem, seed, processes, folder)

    def share(number: int) -> None:
        rest = range(first + number, first + cases, processes)
        while rest:
            rest = _send_worker(script, rest, coverage, summary)

    with ThreadPoolExecutor(processes) as threads:
        list(threads.map(share, range(processes)))
    summary.seconds = time.perf_counter() - begin
    summary.outcomes.sort(key=lambda outcome: outcome.case)
    return summary


def _send_worker(script: Path, rest: range, coverage: bool, summary: Summary) -> range:
    """A process examines cases one after the other and says a line about each; returns those that are left."""
    numbers = (summary.seed, rest.start, rest.stop, rest.step)
    words = [sys.executable, str(script), "--worker", *map(str, numbers), "--folder", str(summary.folder)]
    threads = dict.fromkeys(["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"], "1")
    begun = False
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            words + ["--coverage"] * coverage,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, **threads},
        ) as process,
    ):
        for line in process.stdout or ():
            if not line.endswith(b"\n"):
                break
            said, begun = json.loads(line), True
            for name, seen in said.get("lines", {}).items():
                summary.lines[name] |= set(seen)
            if "case" in said:
                summary.outcomes.append(Outcome(**said))
                rest = rest[1:]
        code = process.wait()
        errors.seek(0)
        story = errors.read().decode(errors="replace")
    if not begun or code > 0:
        raise RuntimeError(f"{script.name} has a mistake:\n{story}")
    if rest:
        summary.outcomes.append(Outcome(rest[0], "died", "died", _name_death(code, story), story[-4000:]))
    return rest[1:]


def _name_death(code: int, story: str) -> str:
    """How a process ended, and where in this package, from what faulthandler wrote."""
    kind = "hang" if -code in TIMERS else f"crash ({signal.Signals(-code).name})"
    frames = re.findall(r'File ".*?/forgetting/([^"]*)", line (\d+) in (\w+)', story)
    place = f"{frames[0][0]}, {frames[0][2]}, line {frames[0][1]}" if frames else "outside the package"
    return f"{kind} in {place}: "


def _work(examine: Examine, warm: Callable[[], None], options: argparse.Namespace) -> None:
    """The body of a worker."""
    said = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever prints goes elsewhere
    faulthandler.enable()
    for timer in TIMERS:
        faulthandler.register(timer, all_threads=False, chain=True)  # say where, then die of it
    warm()
    limit_memory()
    print(json.dumps({"ready": True}), file=said, flush=True)
    seed, *bounds = options.worker
    lines: dict[str, set[int]] = defaultdict(set)
    if options.coverage:
        sys.settrace(_tracer(lines))
    for case in range(*bounds):
        signal.setitimer(signal.ITIMER_PROF, SECONDS * (1 + 20 * options.coverage))
        signal.alarm(WAIT)
        outcome = examine(seed, case, options.folder)
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(asdict(outcome)), file=said, flush=True)
    sys.settrace(None)
    if options.coverage:
        print(json.dumps({"lines": {name: sorted(seen) for name, seen in lines.items()}}), file=said, flush=True)


# ----------------------------------------------------------------------------------------------------------- coverage

READERS = (  # the modules that read what others wrote
    "files/arrays.py",
    "files/json_and_toml.py",
    "files/records.py",
    "files/matrices.py",
    "files/row_sources.py",
    "files/matrix_sources.py",
    "files/tables.py",
    "files/table_files.py",
    "files/parquet_rows.py",
    "files/arrow_tables.py",
    "tasks/files.py",
    "tasks/labelled_rows.py",
    "tasks/readers/loading.py",
    "tasks/readers/rows.py",
    "theory/instance.py",
    "theory/certificate.py",
    "auditing/result.py",
    "cli/problems.py",
    "report/document.py",
    "core/arrays.py",
)


def _tracer(lines: dict[str, set[int]]) -> Callable[..., Any]:
    """A trace function that notes the lines of the readers."""
    names = {str(SOURCE / name): name for name in READERS}

    def within(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            lines[names[frame.f_code.co_filename]].add(frame.f_lineno)
        return within

    return lambda frame, event, _: within if frame.f_code.co_filename in names else None


def executable_lines(path: Path) -> set[int]:
    """The lines within functions; those outside run on import."""

    def inside(code: CodeType) -> Iterator[int]:
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                if constant.co_flags & 2:  # a function, not a class
                    yield from (line for *_, line in constant.co_lines() if line and line > constant.co_firstlineno)
                yield from inside(constant)

    return set(inside(compile(path.read_text(), str(path), "exec")))


def spans(numbers: list[int]) -> str:
    """1, 2, 3, 7 as '1-3, 7'."""
    groups: list[list[int]] = []
    for number in numbers:
        if groups and number == groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    return ", ".join(f"{one[0]}-{one[-1]}" if len(one) > 1 else f"{one[0]}" for one in groups) or "none"


# --------------------------------------------------------------------------------------------------- the command line


def main(examine: Examine, warm: Callable[[], None]) -> None:
    """The command line of a fuzzer; `warm` makes what all cases share, and is not timed."""
    script = Path(sys.argv[0])
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--case", type=int, metavar="N", help="repeat this case alone, here, and show its traceback")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="begin at this case")
    parser.add_argument("--folder", type=Path, help="where cases with defects are kept")
    parser.add_argument("--coverage", action="store_true", help="which lines of the readers the cases reach (slow)")
    parser.add_argument("--worker", type=int, nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder is None:
        options.folder = Path(tempfile.mkdtemp(prefix=f"{script.stem}-"))
    if options.worker:
        _work(examine, warm, options)
    elif options.case is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
        faulthandler.enable()
        warm()
        outcome = examine(options.seed, options.case, options.folder)
        print(outcome.story)
        print(f"{outcome.kind}: {outcome.stage}; {outcome.defect or 'no defect'}; kept in {options.folder}")
    else:
        summary = conduct(
            script, options.cases, options.seed, options.processes, options.folder,
            coverage=options.coverage, first=options.first,
        )  # fmt: skip
        print(summary)
        (options.folder / "defects.json").write_text(
            json.dumps({name: [asdict(one) for one in found[:5]] for name, found in summary.defects.items()}, indent=1)
        )
        sys.exit(bool(summary.defects))
