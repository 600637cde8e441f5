"""Make the entries of the package again, or larger: `python -m tools.frontier_data --seconds 600`.

Certified entries come from `fg.worst_case`, all others from searches that begin with random tasks and with the entries
that are there. An entry is replaced only by a larger value, and each is written at once, so that the program may be
stopped at any time; with `--store` finished restarts are kept, too.

`python -m tools.frontier_data --page docs/frontier.md` writes the tables of the page and draws its two pictures,
`images/frontier-loss.png` and `images/frontier-forgetting.png` beside it, from the entries that are stored. Each
picture keeps a digest of the points it shows; a test compares it with the entries.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, PngImagePlugin

from forgetting.figures.drawing import pictures
from forgetting.figures.items import Curves
from forgetting.files.atomic import write
from forgetting.files.best_known import digest_of, keep, larger
from forgetting.tasks import RegressionTasks
from forgetting.tasks.levels import worst_equiangular, worst_levels
from forgetting.tasks.worst_tasks import FOLDER, PROOF, WORST_PAIRS, entry_files
from forgetting.worstcase.frontier_entry import DRAWS, TIGHT, Entry, levels_entry
from forgetting.worstcase.frontier_improving import search
from forgetting.worstcase.frontier_table import DRAWN, Frontier, FrontierRow, best_entry, frontier, pairs
from forgetting.worstcase.supremum import worst_case

BEGIN, END = "<!-- made by python -m tools.frontier_data -->", "<!-- end -->"
SHOWN = "points"  # the entry of a picture that has the digest of what it shows
LARGEST_PROOF = 120_000  # bytes of a certificate that is kept
MOST_NUMBERS = 3000  # of the tasks of an entry
CERTIFIED = [(16, 1), (32, 1), *((T, k) for k in (1, 2) for T in (3, 4, 5, 6, 7, 8, None))]
CERTIFIED += [(3, 3), (4, 3), (8, 3), (None, 3), (3, 4), (4, 4), (3, 5), (None, 4)]
STEPS = (1, 2, 3, 4, 5, 6, 8, 16, 32, 64, 128, 256, 512, 1024, 10_000)
SIZES: dict[str, dict[int, tuple[int, ...]]] = {  # T: the dimensions that are searched
    "loss": {3: (3, 4), 4: (4, 6), 8: (4, 8), 16: (8, 16), 32: (8, 16)},
    "forgetting": {3: (3, 4), 4: (4, 6), 8: (4, 8), 16: (4, 8), 32: (4,)},
}


def entries_of(folder: Path, quantity: str) -> Frontier:
    """The frontier of a folder alone."""
    read = (Entry.read(path) for path in entry_files(folder))
    return Frontier(quantity, DRAWS, (*(entry for entry in read if entry.quantity == quantity), *pairs(quantity)))


def store(entry: Entry, folder: Path = FOLDER) -> bool:
    """Write an entry if its value is larger than what is there; what was proved about the supremum is kept."""
    path = folder / f"{entry.name}.json"
    return keep(entry, folder, Entry.read(path) if path.exists() else None) is not None


def certify(T: int | None, k: int, quantity: Any, folder: Path = FOLDER) -> Entry:
    """The entry of a certified worst case, its certificate beside it if that is small."""
    worst = worst_case(np.inf if T is None else T, k, quantity=quantity, patience=np.inf)
    proof = worst.certificate.to_json().encode()
    call = f"fg.worst_case({'np.inf' if T is None else T}, {k}, quantity={quantity!r})"
    more: dict[str, Any] = {"evidence": "certified", "upper": worst.upper}
    if len(proof) <= LARGEST_PROOF:
        more["proof"] = digest_of(proof)
    else:
        call += f", whose certificate of {len(proof) / 1e6:.1f} MB is not kept"
    entry = (
        Entry(quantity, T, k, origin=call, **more)
        if T is None
        else _with_tasks(worst.tasks, T, k, quantity, call, more)
    )
    folder.mkdir(parents=True, exist_ok=True)
    if "proof" in more:
        write((folder / f"{entry.name}.json").with_suffix(PROOF), proof)
    store(entry, folder)
    return entry


def _with_tasks(tasks: Any, T: int, k: int, quantity: Any, call: str, more: dict[str, Any]) -> Entry:
    """The tasks that the certificate comes with, or those of a search in fewer dimensions if they are too large."""
    searched = [_small(T, d, k, quantity) for d in (3, 4, 6)]
    best = max(searched, key=lambda entry: entry.value or 0.0)
    if tasks is not None and _numbers(tasks) <= MOST_NUMBERS:
        given = Entry.of(tasks, quantity, k, origin=call)
        close = [entry for entry in searched if not larger(given.value, entry.value)]
        best = min([*close, given], key=lambda entry: entry.d)
    origin = call if best.origin == call else f"{call}; tasks by {best.origin}"
    return replace(best, origin=origin, own=False, **more)


def _numbers(tasks: RegressionTasks) -> int:
    """The number of numbers that are stored: of the rows or of the kernels."""
    rank = int(np.sum(tasks.ranks))
    return tasks.dim * min(rank, tasks.num_tasks * tasks.dim - rank)


def _small(T: int, d: int, k: int, quantity: Any) -> Entry:
    if quantity == "forgetting" and k == 1:
        raise AssertionError("nothing is forgotten after one step")
    none = Frontier(quantity, DRAWS, ())
    return search(none, T, d, k, restarts=16, steps=300)


def construct(k: int, T: int | None = None, folder: Path = FOLDER) -> Entry:
    """The entry of T equiangular tasks, or of any number of tasks in levels; stored if its value is larger."""
    if T is None:
        made, origin = worst_levels(k), f"forgetting.tasks.levels.worst_levels({k})"
    else:
        made, origin = worst_equiangular(T, k), f"forgetting.tasks.levels.worst_equiangular({T}, {k})"
    entry = levels_entry(made, k, origin)
    store(entry, folder)
    return entry


def improve(
    T: int, d: int, k: int, quantity: Any, *, restarts: int, steps: int, seed: int, keep: str | None, folder: Path
) -> bool:
    """One search; whether an entry was written."""
    there = entries_of(folder, quantity)
    entry = search(there, T, d, k, restarts, steps, seed, store=keep)
    known = best_entry(there.entries, DRAWS, T, k)
    if known is not None and known.T != T and not larger(entry.value, known.value):
        return False
    return store(replace(entry, own=False), folder)


def prune(folder: Path = FOLDER) -> list[Path]:
    """Remove entries without a certificate whose value fewer tasks reach as clones; what was removed."""
    removed = []
    for quantity in WORST_PAIRS:
        there = entries_of(folder, quantity)
        for entry in there.entries:
            if entry.path is None or entry.upper is not None or entry.T is None:
                continue
            others = (other for other in there.entries if other is not entry)
            best = best_entry(others, DRAWS, entry.T, entry.k)
            if best is not None and not larger(entry.value, best.value):
                entry.path.unlink()
                removed.append(entry.path)
    return removed


def page_tables() -> str:
    """The tables of docs/frontier.md: k times the largest known value, for each T and for any number of tasks."""
    return "\n\n".join(_table(frontier(quantity)) for quantity in WORST_PAIRS)


def _table(shown: Frontier) -> str:
    kept = [T for T in sorted({e.T for e in shown.entries if e.T}) if sum(e.T == T for e in shown.entries) >= DRAWN]
    at = {(row.T, row.k): row for row in shown.rows}
    lines = [
        f"k times the largest known expected {shown.quantity}; certified values are bold:",
        "",
        f"| k | {' | '.join(f'T = {T}' for T in kept)} | any T: at least | by | at most | slope |",
        "|---" * (len(kept) + 5) + "|",
    ]
    for row in shown.envelope:
        cells = [_cell(at.get((T, row.k))) for T in kept]
        by = "" if row.entry is None else f"T = {row.entry.T}, d = {row.entry.d}, {row.entry.how}"
        slope = "" if row.slope is None else f"{row.slope.value:.3f}"
        cells += [f"{row.k * row.value:.4f}", by, f"{row.k * row.upper.value:.4g}", slope]
        lines.append(f"| {row.k} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(row: FrontierRow | None) -> str:
    if row is None or row.entry is None or row.entry.T != row.T:
        return ""
    tight = row.upper.value - row.value <= TIGHT * row.value
    return f"**{row.k * row.value:.4f}**" if tight else f"{row.k * row.value:.4f}"


def picture_files(page: Path) -> dict[str, Path]:
    """The picture of each quantity, in the folder of images beside the page."""
    return {quantity: page.parent / "images" / f"frontier-{quantity}.png" for quantity in WORST_PAIRS}


def shown_points(figure: Curves) -> str:
    """A digest of the names and points of a picture, to five digits: what a rounding error moves is not seen."""
    points = [[s.name, *(f"{x:.5g} {y:.5g}" for x, y in zip(s.x, s.y, strict=True))] for s in figure.series]
    return hashlib.sha256(json.dumps([figure.title, points]).encode()).hexdigest()


def draw_pictures(page: Path) -> None:
    """Draw k times the values and the upper bounds of each quantity."""
    for quantity, path in picture_files(page).items():
        figure = frontier(quantity).figure(upper=True)
        words = PngImagePlugin.PngInfo()
        words.add_text(SHOWN, shown_points(figure))
        buffer = BytesIO()
        Image.open(BytesIO(pictures(figure, (".png",))[".png"])).save(
            buffer, "PNG", pnginfo=words, dpi=(200, 200), optimize=True
        )
        path.parent.mkdir(exist_ok=True)
        write(path, buffer.getvalue())


def write_page(path: Path) -> None:
    """Put the tables into the page, and draw its pictures."""
    draw_pictures(path)
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    write(path, f"{before}{BEGIN}\n{page_tables()}\n{END}{rest.partition(END)[2]}".encode())


def _plan(quantities: Sequence[str], tasks: Sequence[int] | None) -> Iterator[tuple[str, int, int, int]]:
    for quantity in quantities:
        for T, dims in SIZES[quantity].items():
            for d in dims:
                if tasks is None or T in tasks:
                    yield from ((quantity, T, d, k) for k in STEPS if quantity == "loss" or k > 1)


def main(arguments: Sequence[str] | None = None) -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="of searches")
    parser.add_argument("--certify", action="store_true", help="certified entries first")
    parser.add_argument("--quantity", choices=tuple(WORST_PAIRS), help="one of the two")
    parser.add_argument("--T", type=int, nargs="*", help="numbers of tasks that are searched")
    parser.add_argument("--restarts", type=int, default=16)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", help="a file that keeps finished restarts")
    parser.add_argument("--page", type=Path, help="only write the tables of this page, and its pictures")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    given = parser.parse_args(arguments)
    if given.page is not None:
        write_page(given.page)
        return
    quantities = tuple(WORST_PAIRS) if given.quantity is None else (given.quantity,)
    for quantity in quantities if given.certify else ():
        for T, k in CERTIFIED:
            if quantity == "loss" or k > 1:
                print(certify(T, k, quantity, given.folder), flush=True)
    for k in STEPS if given.certify and "loss" in quantities else ():
        for T in (None, 8, 16, 32) if k >= 8 else ():
            print(construct(k, T, given.folder), flush=True)
    end = time.monotonic() + given.seconds
    for quantity, T, d, k in _plan(quantities, given.T):
        if time.monotonic() > end:
            break
        began = time.monotonic()
        new = improve(
            T, d, k, quantity, restarts=given.restarts, steps=given.steps, seed=given.seed, keep=given.store,
            folder=given.folder,
        )  # fmt: skip
        print(
            f"{quantity} T={T} d={d} k={k}: {'new' if new else 'known'} ({time.monotonic() - began:.1f} s)", flush=True
        )
    for path in prune(given.folder):
        print(f"removed {path.name}")


if __name__ == "__main__":
    main()
