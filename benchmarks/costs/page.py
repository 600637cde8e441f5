"""The page "How far it goes", written from the data alone, so that no number on the page is copied by hand."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.costs.calls import CALLS, CONTESTS, Call
from benchmarks.costs.figures import as_svg, figures
from benchmarks.costs.fits import Fit, crossing, fit
from forgetting.auditing.orders import PART
from forgetting.auditing.preparation import MOST_TASKS
from forgetting.dynamics.ensembles import MOST_DUAL
from forgetting.expectation.engines.base import in_time

AXES = ("T", "d", "rank", "k", "N", "runs")
FLOORS = {"seconds": 2e-3, "bytes": 4.0 * 2**20}  # below this, a fit is about what every call costs
ROOM = 24.0 * 2**30
FLAT = 2.0**19  # bytes; a peak that varies by less on an axis does not depend on the axis
LINEAR = 1.25  # a fitted exponent of memory above this, by more than two standard errors, is no linear growth
QUADRATIC = ("moments", "spectral", "subsets")  # engines with matrices of order D
BUSY = 1.15  # a bare loop that takes so many times its seconds of the processor had no core for itself
FACTOR = 3.0  # estimates are meant to be this close
Row = Mapping[str, Any]
Laws = dict[tuple[str, str, str], Fit | None]


def write_page(data: Mapping[str, Any], page: Path) -> None:
    """The page and its figures, which lie in a folder `images` beside the page."""
    titles, folder = {}, page.parent / "images"
    folder.mkdir(exist_ok=True)
    for figure in figures(_plain(data["points"])):
        name = f"{figure.key}.svg"
        titles[name] = figure.title
        (folder / name).write_text(as_svg(figure), encoding="utf-8")
    page.write_text(page_text(data, titles), encoding="utf-8")


def laws_of(data: Mapping[str, Any]) -> Laws:
    """The fitted law of each call, axis and cost."""
    found: Laws = {}
    for call in CALLS:
        for axis in call.axes:
            rows = [row for row in _plain(data["points"]) if row["call"] == call.name and row["axis"] == axis]
            for what, floor in FLOORS.items():
                points = [(float(row["value"]), float(row[what])) for row in rows if row[what]]
                grows = axis in call.exponential
                found[call.name, axis, what] = fit(points, floor, exponential=grows) if points else None
    return found


def page_text(data: Mapping[str, Any], drawn: Mapping[str, str]) -> str:
    """The page in Markdown."""
    laws = laws_of(data)
    parts = [_opening(data), *_times(data, laws, drawn), *_memory(data, laws, drawn), *_fits_in(data, laws)]
    parts += [*_changes(data), *_estimates(data), *_devices(), *_workers(data)]
    return "\n\n".join(_wrapped(block) for part in parts for block in part.split("\n\n")) + "\n"


def _wrapped(block: str) -> str:
    """A paragraph in lines of at most 120 letters; tables, headings, code and figures as they are."""
    if block.startswith(("#", "|", "`" * 3, "    ")):
        return block
    return textwrap.fill(block, 120, break_long_words=False, break_on_hyphens=False)


def _plain(points: Sequence[Row]) -> list[Row]:
    """The points of calls, without those of contests and of values that are measured no longer."""
    axes = {call.name: call.axes for call in CALLS}
    return [row for row in points if row["value"] in axes.get(row["call"], {}).get(row["axis"], ())]


def _opening(data: Mapping[str, Any]) -> str:
    machine = data["machine"]
    return f"""# How far it goes

What calls cost in time and memory against the number of tasks T, the dimension d, the rank of each task, the steps
k, the rows N and the number of runs: measured by `make bench`, which writes this page from [its
data](how_far.json). [How to choose a method](choosing.md) says what each method computes; [the
benchmarks](benchmarks.md) compare with peers.

forgetting {machine["forgetting"]}, Python {machine["python"]}, NumPy {machine["numpy"]}, {machine["processor"]}.
Each number is from a process of its own that uses one core and has compiled everything before. Times are seconds of
the processor, the least of up to five calls; memory is the peak of the process above what it used before it made
the tasks, so that the tasks are counted. Tasks are Gaussian and one w solves them; T times the rank is at least d,
so that their joint row space has dimension D = d."""


# ----------------------------------------------------------------------------------------------------------- exponents


def _times(data: Mapping[str, Any], laws: Laws, drawn: Mapping[str, str]) -> Iterator[str]:
    yield """## Time

Exponents a of time ~ axis^a, fitted by least squares on logarithms over the upper two thirds of the values, with
standard errors. Where time grows exponentially, the base is given. A dash stands for a call that took less than 2
ms on too much of the axis, and an empty cell for an axis that the call does not have, or that was not varied."""
    yield _exponents(laws, "seconds")
    yield "What was varied, from which sizes, and the seconds at the largest value of each axis:"
    yield _measured_sizes(data)
    yield from _shown(drawn, "seconds")


def _exponents(laws: Laws, what: str) -> str:
    rows = [[f"`{call.name}`" if _is_code(call) else call.name, *(_law(laws, call, axis, what) for axis in AXES)]
            for call in CALLS]  # fmt: skip
    return _table(["call", *AXES], rows)


def _is_code(call: Call) -> bool:
    return call.request is None and "-" not in call.name


def _law(laws: Laws, call: Call, axis: str, what: str) -> str:
    if axis not in call.axes:
        return ""
    law = laws[call.name, axis, what]
    if law is None:
        return "–"  # noqa: RUF001
    if law.exponential:
        return f"{np.exp(law.exponent):.2f}^{axis}"
    return f"{law.exponent:.2f} ± {law.error:.2f}"


def _measured_sizes(data: Mapping[str, Any]) -> str:
    rows = []
    for call in CALLS:
        base = ", ".join(f"{name} = {value:,}" for name, value in call.base.items())
        ends = []
        for axis in call.axes:
            of_axis = [row for row in data["points"] if row["call"] == call.name and row["axis"] == axis]
            if of_axis:
                last = max(of_axis, key=lambda row: row["value"])
                ends.append(f"{axis} = {last['value']:,}: {last['seconds']:.2g} s")
        rows.append([call.name, base + (", k = T" if call.all_tasks else ""), "; ".join(ends)])
    return _table(["call", "other sizes", "time at the largest value"], rows, numbers=False)


def _shown(drawn: Mapping[str, str], what: str) -> Iterator[str]:
    for name, title in drawn.items():
        if f"-{what}-" in name:
            yield f"{title}:"
            yield f"```{{raw}} html\n:file: images/{name}\n```"


# -------------------------------------------------------------------------------------------------------------- memory


def _memory(data: Mapping[str, Any], laws: Laws, drawn: Mapping[str, str]) -> Iterator[str]:
    yield """## Memory

The same exponents of the peak of memory, with the tasks themselves. A dash stands for less than 4 MiB on too much
of the axis."""
    yield _exponents(laws, "bytes")
    yield steep_growth(laws)
    part = 8 * PART / 2**20
    yield f"""Two of these laws end. `run_many` and simulations carry R = sum of ranks numbers instead of D where a
step then costs less, and need the R x R matrix of inner products for that, up to R = {MOST_DUAL:,}
({8 * MOST_DUAL**2 / 2**20:.0f} MiB). `audit` splits forgetting over pairs of tasks for many orders at once, in arrays
that grow with T^2 until they have {part:.0f} MiB. Where forgetting is exact, one D x D matrix for each task is the
recursion itself."""
    yield from _shown(drawn, "bytes")


def steep_growth(laws: Laws) -> str:
    """A sentence that names what grows faster than linearly in T, N, k or runs, or says that nothing does."""
    steep = [
        f"{name} against {axis} ({law.exponent:.2f} ± {law.error:.2f})"
        for (name, axis, what), law in laws.items()
        if what == "bytes" and law is not None and axis in ("T", "N", "k", "runs") and not law.exponential
        and law.exponent > LINEAR + 2 * law.error
    ]  # fmt: skip
    if not steep:
        return "Memory grows at most linearly with T, N, k and runs in all of these calls, subsets apart."
    return f"Memory grows faster than linearly in: {'; '.join(steep)}."


def _fits_in(data: Mapping[str, Any], laws: Laws) -> Iterator[str]:
    yield f"""## What fits in 24 GiB

The largest value of one axis within 24 GiB by the fitted laws, the other sizes as above, and the time that the call
would then take. What grows is taken to grow at least linearly, and with D^2 where an engine has D x D matrices. "any"
stands for an axis on which memory does not grow, a dash for too little memory to tell; 31 digits end where they would
take about two seconds, long before memory does, and `audit` takes at most {MOST_TASKS:,} tasks. These are
extrapolations: times beyond a few hours mean that time is the limit, and not memory."""
    axes = ("T", "d", "k", "N", "runs")
    rows = [[call.name, *(_most(data, laws, call, axis) for axis in axes)] for call in CALLS]
    yield _table(["call", *axes], rows, numbers=False)


def _most(data: Mapping[str, Any], laws: Laws, call: Call, axis: str) -> str:
    if axis not in call.axes:
        return ""
    memory, time = laws[call.name, axis, "bytes"], laws[call.name, axis, "seconds"]
    used = [row["bytes"] or 0 for row in data["points"] if (row["call"], row["axis"]) == (call.name, axis)]
    if call.digits == 31 or (memory is None and (not used or max(used) - min(used) > FLAT)):
        return "–"  # noqa: RUF001
    power = 2.0 if axis == "d" and call.engine in QUADRATIC else 1.0
    most = np.inf if memory is None else memory.at_least(power).reach(ROOM)
    if most > 1e15:
        return "any"
    taken = f" ({in_time(time.at_least(power).at(most))})" if time is not None else ""
    return f"{_round_number(most)}{taken}"


def _round_number(number: float) -> str:
    """Two digits.

    >>> _round_number(123456.0), _round_number(19.4), _round_number(2.5e9)
    ('120,000', '19', '2.5e9')
    """
    if number >= 1e8:
        mantissa, _, power = f"{number:.1e}".partition("e")
        return f"{mantissa}e{int(power)}"
    rounded = round(number, 1 - int(np.floor(np.log10(max(number, 1.0)))))
    return f"{int(rounded):,}"


# ------------------------------------------------------------------------------------------------------------- choices


def _changes(data: Mapping[str, Any]) -> Iterator[str]:
    yield """## Where a method should change

Measured curves of two methods for the same question, with the bases of 31 digits: where the second becomes the
quicker one, where it does by the estimates that `auto` uses, and where `auto` changes. `auto` keeps the first
method, which has more digits, while that is estimated to take less than 2 seconds, and an exact method up to
`patience=` (30 seconds)."""
    rows = []
    chosen = {row["question"]: row for row in data["auto"]}
    for contest in CONTESTS:
        curves = {
            what: [_curve(data["points"], call.name, what) for call in contest.calls]
            for what in ("seconds", "estimated_seconds")
        }
        measured, estimated = (crossing(*pair) for pair in curves.values())
        values = [x for x, _ in curves["seconds"][0]] or [0]
        names = " to ".join(contest.names)
        guess = _crossed(estimated, values) if contest.order is None else ""
        auto = chosen.get(contest.question, {"value": None})
        change = f"never up to {contest.last:,}" if auto["value"] is None else f"{auto['value']:,} ({auto['then']})"
        rows.append([contest.question, names, contest.axis, _crossed(measured, values), guess, change])
    yield _table(["question", "methods", "axis", "measured", "estimated", "`auto`"], rows, numbers=False)


def _curve(points: Sequence[Row], name: str, what: str) -> list[tuple[int, float]]:
    return sorted((row["value"], row[what]) for row in points if row["call"] == name and row.get(what))


def _crossed(value: float | None, values: Sequence[int]) -> str:
    if value is None:
        return f"not up to {values[-1]:,}"
    return f"before {values[0]:,}" if value <= values[0] * (1 + 1e-9) else f"{value:,.0f}"


def _estimates(data: Mapping[str, Any]) -> Iterator[str]:
    yield """## How good the estimates are

Measured seconds divided by estimated ones (`expectation/engines/costs.py`), where at least 10 ms were measured;
the 31-digit bases are not part of either. Peak of memory divided by the estimate, where at least 16 MiB were
measured."""
    rows, outside = [], []
    for call in CALLS:
        mine = [row for row in data["points"] if row["call"] == call.name]
        times = [(row["seconds"] / row["estimated_seconds"], row) for row in mine
                 if row["seconds"] > 0.01 and row.get("estimated_seconds")]  # fmt: skip
        sizes = [row["bytes"] / row["estimated_bytes"] for row in mine
                 if (row["bytes"] or 0) > 2**24 and row.get("estimated_bytes")]  # fmt: skip
        if not times:
            continue
        ratios = [ratio for ratio, _ in times]
        rows.append([call.name, _range(ratios), _range(sizes)])
        ratio, row = max(times, key=lambda pair: abs(np.log(pair[0])))
        if not 1 / FACTOR <= ratio <= FACTOR:
            outside.append(f"{call.name}, {row['axis']} = {row['value']:,}: {ratio:.2g}")
    yield _table(["method", "time: median (least to most)", "memory: median (least to most)"], rows, numbers=False)
    if outside:
        worst = "; ".join(outside)
        yield f"The worst estimate of each method that is off by more than a factor of {FACTOR:g}: {worst}."
    else:
        yield f"All estimates of time are within a factor of {FACTOR:g}."


def _range(ratios: Sequence[float]) -> str:
    return f"{np.median(ratios):.2g} ({min(ratios):.2g} to {max(ratios):.2g})" if ratios else ""


# ---------------------------------------------------------------------------------------------------- GPUs and workers


def _devices() -> Iterator[str]:
    known = json.loads(Path(__file__).with_name("h200.json").read_text(encoding="utf-8"))
    yield f"""## What a GPU adds

Measured by `{known["command"]}` on {known["device"]}; `device="cuda"` is for `expect` (moments, spectral),
`run_many` and searches."""
    yield _table(
        ["what", "measured", ""], [[r["what"], r["figure"], r["against"]] for r in known["rows"]], numbers=False
    )


def _workers(data: Mapping[str, Any]) -> Iterator[str]:
    yield "## What more workers add"
    team = {row["jobs"]: row for row in data["workers"]}
    if not {0, 1, 2} <= set(team) or team[0]["seconds"] > BUSY * team[0].get("cpu", 0.0):
        yield """Not measured: other programs used the cores meanwhile, and these are times on the clock. `make bench`
on a quiet machine with two cores or more fills in this section."""
        return
    model = Workers.of(team)
    yield f"""`Study.run(jobs=n)` on {model.count} small problems (T = 10, d = 20, k up to 1,000; exact loss and
forgetting), which take {model.parallel / model.count * 1e3:.0f} ms each in a bare loop. By the model, n workers
take

    seconds(n) = serial + parallel / n + cells x overhead of a cell

with parallel = {model.parallel:.2f} s, the bare loop; {model.overhead * 1e3:.2f} ms a cell, which the process that
asks spends however many workers there are, measured on cells that compute nothing; and serial = {model.serial:.2f}
s, the rest of what two workers took. One and two workers are measured, more are by the model, and a cluster adds
its network to the overhead of a cell."""
    rows = [["bare loop", f"{team[0]['seconds']:.2f}", "", "1"]]
    for n in (1, 2, 4, 8, 16, 64, 256):
        known = f"{team[n]['seconds']:.2f}" if n in team else ""
        seconds = team[n]["seconds"] if n in team else model.seconds(n)
        rows.append([f"{n} worker{'s' * (n > 1)}", known, f"{model.seconds(n):.2f}", f"{model.parallel / seconds:.1f}"])
    yield _table(["", "measured (s)", "by the model (s)", "times the loop"], rows)
    most = model.parallel / model.count / model.overhead
    yield f"""Workers beyond about {_round_number(most)} have nothing to do here: handing out a cell then takes as
long as computing its share. Cells that take longer use more workers, in proportion."""


class Workers:
    """seconds(n) = serial + parallel / n + count * overhead.

    >>> team = {0: {"seconds": 4.0, "count": 40}, 1: {"seconds": 4.2}, 2: {"seconds": 2.2, "cell": 1e-3}}
    >>> model = Workers.of(team)
    >>> round(model.serial, 3), round(model.seconds(4), 3)
    (0.16, 1.2)
    """

    def __init__(self, count: int, serial: float, parallel: float, overhead: float) -> None:
        self.count, self.serial, self.parallel, self.overhead = count, serial, parallel, overhead

    @classmethod
    def of(cls, team: Mapping[int, Row]) -> Workers:
        """From a bare loop (0), and from two workers."""
        count, parallel, overhead = team[0]["count"], team[0]["seconds"], team[2]["cell"]
        return cls(count, max(0.0, team[2]["seconds"] - parallel / 2 - count * overhead), parallel, overhead)

    def seconds(self, n: int) -> float:
        """What n workers take."""
        return self.serial + self.parallel / n + self.count * self.overhead


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: bool = True) -> str:
    rule = "|".join(["", "---", *(["---:" if numbers else "---"] * (len(columns) - 1)), ""])
    return "\n".join([f"| {' | '.join(columns)} |", rule, *(f"| {' | '.join(row)} |" for row in rows)])
