"""Make the records of the package again, or larger: `python -m tools.ratios --budget 300`.

For every claim and bound that has a ratio, the tasks that are known to be worst are tried, then the statement is
hunted. A record is replaced only by a larger one, and each is written at once, so that the program may be stopped at
any time. `--index FILE` reads the index in which earlier versions kept all records, and writes an entry for each.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from forgetting.errors import ForgettingError, NotSupportedError
from forgetting.files.atomic import write
from forgetting.files.best_known import digest_of, keep, larger
from forgetting.files.json_and_toml import of_format
from forgetting.files.outputs import write_output
from forgetting.theory.candidates import known_starts, mutate
from forgetting.theory.claim import Claim
from forgetting.theory.evidence import evidence_of
from forgetting.theory.instance import Instance
from forgetting.theory.record import (
    CASE,
    FOLDER,
    Record,
    all_records,
    both_sides,
    claim_of,
    has_ratio,
    read_records,
    why_no_ratio,
)
from forgetting.theory.registry import all_bounds, all_claims
from forgetting.theory.verdict import Check, Sides, Verdict
from tools.record_page import with_records

LARGEST_FILE = 150_000  # bytes of an instance


def recorded_statements() -> tuple[Claim, ...]:
    """The claims that have a ratio, and those through which bounds without a claim have one."""
    claims = [claim for claim in all_claims() if why_no_ratio(claim) is None]
    known = {claim.key for claim in claims}
    through = [claim_of(bound) for bound in all_bounds()]
    return (*claims, *(claim for claim in through if claim is not None and claim.key not in known))


def ratio_of(claim: Claim, instance: Instance) -> float | None:
    """The ratio that may be recorded; None where the claim does not apply, or its sides have none."""
    try:
        verdict = both_sides(claim, instance)
    except (ForgettingError, ArithmeticError):
        return None
    return verdict.ratio if has_ratio(verdict) else None


def record_name(key: str, sha256: str) -> str:
    """The name of the file of an instance: the words of the key of its record, and the start of its digest.

    A larger record so has files of another name, and an entry is never beside an instance that it does not describe.

    >>> record_name("thm:cl_by_sgd_main (loss)", "0a1b2c3d")
    'thm_cl_by_sgd_main_loss_0a1b2c.npz'
    """
    words = re.sub(r"[^A-Za-z0-9]+", "_", key).strip("_")
    return f"{words}_{sha256[:6]}{CASE}"


def save_record(claim: Claim, instance: Instance, found: str, folder: Path = FOLDER) -> Record | None:
    """Record the ratio of a claim on an instance, if it is larger than what is recorded; the new record, or None.

    Sides that only simulation gives have no ratio that could be recorded.

    >>> import forgetting as fg
    >>> claim = fg.claims.get("thm:cl_by_sgd_main", "loss")
    >>> case = fg.claims.Instance(fg.families.worst_pair(2), fg.orderings.WithReplacement(), 2)
    >>> with TemporaryDirectory() as name:
    ...     first = save_record(claim, case, "by hand", Path(name))
    ...     first.verify().holds, save_record(claim, case, "again", Path(name))
    (True, None)
    """
    ratio = ratio_of(claim, instance)
    records = read_records(folder)
    known = records.get(claim.key)
    if ratio is None or not larger(ratio, None if known is None else known.ratio):
        return None
    data = _file_of(instance)
    if data is None:
        return None
    digest = digest_of(data)
    record = Record(claim.key, ratio, found, str(instance), record_name(claim.key, digest), digest, folder)
    folder.mkdir(parents=True, exist_ok=True)
    write(record.path, data)
    keep(record, folder, known)
    if known is not None and known.file != record.file:
        known.path.with_suffix(".json").unlink(missing_ok=True)
        known.path.unlink(missing_ok=True)
    all_records.cache_clear()
    evidence_of.cache_clear()
    return record


def _file_of(instance: Instance) -> bytes | None:
    """The file of the instance; None if it is too large to be kept."""
    with TemporaryDirectory() as temporary:
        path = Path(temporary) / "instance.npz"
        instance.save(path)
        data = path.read_bytes()
    return data if len(data) <= LARGEST_FILE else None


def from_index(index: Path, folder: Path = FOLDER) -> int:
    """Write the records of an index of earlier versions as entries, if they are larger; how many were written.

    The files of the instances are beside the index, and are written beside the entries.
    """
    records, count = read_records(folder), 0
    for key, entry in of_format(index.read_bytes(), "forgetting/largest-ratios/1")["records"].items():
        record = Record(key, **entry, folder=index.parent)
        if (known := records.get(key)) is None or larger(record.ratio, known.ratio):
            folder.mkdir(parents=True, exist_ok=True)
            write(folder / record.file, record.path.read_bytes())
            count += keep(record, folder, known) is not None
    return count


def improve(
    claim: Claim,
    *,
    seed: int = 0,
    budget: int = 300,
    folder: Path = FOLDER,
    starts: Iterable[tuple[str, Instance]] = (),
) -> Record | None:
    """Try the tasks that are known to be worst, hunt, then climb from the best; the new record, or None.

    `starts` are instances to be tried beside the known ones, each with its origin. Half of the budget is for the hunt,
    and half for neighbours of the best instance, near and far.
    """
    record: Record | None = None
    for origin, instance in _candidates(_exact(claim), seed, budget, starts):
        record = save_record(claim, instance, origin, folder) or record
    return record


def _candidates(
    claim: Claim, seed: int, budget: int, starts: Iterable[tuple[str, Instance]]
) -> Iterator[tuple[str, Instance]]:
    """The largest of the known starts that can be kept, what a hunt finds, and what one near the best finds."""
    best: tuple[float, str, Instance] | None = None
    for origin, start in (*starts, *known_starts(claim, seed, every=True)):
        try:
            instance = claim.settle(start)
        except ForgettingError:
            continue
        ratio = ratio_of(claim, instance)
        if ratio is None or not larger(ratio, None if best is None else best[0]):
            continue
        if _file_of(instance) is not None:
            best = ratio, origin, instance
    if best is not None:
        yield best[1:]
    if budget < 2:
        return
    for near in (False, True):
        nearest = None if best is None or not near else best[2]
        hunted = claim if nearest is None else replace(claim, draw=partial(_neighbour, nearest))
        hunt = hunted.hunt(seed=seed, budget=budget // 2, known=not near)
        if hunt.instance is not None and hunt.verdict is not None:
            origin = f"hunt of {budget // 2} problems{' near the best' if near else ''}, seed {seed}"
            yield origin, hunt.instance
            if best is None or hunt.verdict.ratio > best[0]:
                best = hunt.verdict.ratio, origin, hunt.instance


def _neighbour(start: Instance, rng: np.random.Generator, index: int) -> Instance:
    """A neighbour at a distance from a third to a ten-thousandth."""
    return mutate(rng, start, float(10.0 ** -rng.uniform(0.5, 4)))


def _exact(claim: Claim) -> Claim:
    """The claim on the problems where it has a ratio."""

    def only(compute: Check) -> Check:
        def sides(instance: Instance) -> Sides:
            both = compute(instance)
            if not has_ratio(Verdict.of(both, claim.kind)):
                raise NotSupportedError("these sides have no ratio that could be recorded")
            return both

        return sides

    return replace(claim, sides=only(claim.sides))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line.

    >>> with TemporaryDirectory() as name:
    ...     main(["--label", "two-lines:single-pass (loss)", "--budget", "6", "--folder", name])
    two-lines:single-pass (loss): the largest ratio found is 1, at T=2...
    1 statements, 1 records that are new or larger
    0
    """
    parser = argparse.ArgumentParser(prog="python -m tools.ratios", description=__doc__)
    parser.add_argument("--budget", type=int, default=300, help="evaluations of the hunt of each statement")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--label", default="", help="only statements whose key contains this")
    parser.add_argument("--page", type=Path, help="a page of hunted claims, whose records are brought up to date")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the records are")
    parser.add_argument("--index", type=Path, help="only take the records of this index of an earlier version")
    chosen = parser.parse_args(arguments)
    if chosen.index is not None:
        print(f"{from_index(chosen.index, chosen.folder)} records that are new or larger")
        return 0
    statements = [claim for claim in recorded_statements() if chosen.label in claim.key]
    count = 0
    for claim in statements:
        record = improve(claim, seed=chosen.seed, budget=chosen.budget, folder=chosen.folder)
        if record is not None:
            count += 1
            print(f"{record.key}: {record.sentence}", flush=True)
    print(f"{len(statements)} statements, {count} records that are new or larger")
    if chosen.page is not None:
        write_output(chosen.page, with_records(chosen.page.read_text("utf-8")).encode(), force=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
