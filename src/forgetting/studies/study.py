"""A study: many cells, computed once, in any number of processes, and kept in a store."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

from forgetting.compute.workers import workers
from forgetting.core.arrays import IntArray, Seed, as_flag, as_function, as_path, seed_from
from forgetting.core.extras import module_for
from forgetting.core.progress import Progress, reports_progress
from forgetting.core.text import encodable
from forgetting.errors import ForgettingError, InvalidInputError, NotSupportedError, ProblemFileError, WorkerError
from forgetting.expectation.engines.base import in_time
from forgetting.figures.items import Item, Table
from forgetting.files.outputs import write_output
from forgetting.files.store import NoStoreError, Plan, Store, StoredCell
from forgetting.results import Shown
from forgetting.studies.cells import Cell, as_cells, grid
from forgetting.studies.execution import Finished, execute
from forgetting.studies.figure import table_figure
from forgetting.studies.functions import NamedFunction, named_function
from forgetting.studies.measuring import measure
from forgetting.studies.study_file import read_study
from forgetting.studies.table import ENDINGS, cell_rows, check_export, column_names, glance, shown, table_rows

__all__ = ["Status", "Study"]

RECENT = 20  # finished cells from which the time that is left is estimated


class Study(Shown):
    """Many cells, computed once, in any number of processes, and kept in a store.

    A cell is what a function is called with: for the default function, `fg.studies.measure`, a family or a file, an
    ordering, a scheme, k and quantities. The store is an SQLite file. Every finished cell is one transaction, so that a
    kill at any moment loses at most the cells that were being computed; `run` computes only what is missing, and
    several processes may share a store. A cell that fails is a row with its error, and does not stop the others.

    The seed of a cell follows from the seed of the study and from the cell. Results do not depend on the number of
    workers, nor on the order of the cells or on other cells; a cell uses one core, so that they are the same to the
    last bit on one kind of processor.

    Args:
        cells: dictionaries of named values: numbers, texts, lists, orderings and schemes. A cell may have a `seed`.
        store: the file; None to keep results in memory, as long as the study lives. It is made by `run`.
        function: of yours, called as function(**cell); a `seed` goes to a function with that parameter. It returns a
            dictionary, a list of dictionaries (several rows), or a number. A function that was edited is computed
            again.
        seed: of the study.

    >>> import forgetting as fg
    >>> study = fg.Study.grid(family="gaussian", T=[2, 4], d=10, rank=1, k=[5, 50], store=None).run(progress=False)
    >>> print(study.status)
    2 of 2 cells are finished
    >>> frame = study.to_frame()
    >>> frame[["T", "k", "method"]].values.tolist()
    [[2, 5, 'moments'], [2, 50, 'moments'], [4, 5, 'moments'], [4, 50, 'moments']]

    A function of yours:

    >>> def area(a, b):
    ...     return {"area": a * b}
    >>> fg.Study([{"a": 2, "b": 3}, {"a": 2, "b": 5}], store=None, function=area).run().to_frame()["area"].tolist()
    [6, 10]
    """

    _seen: list[dict[str, Any]] | None = None  # the rows, while a table is made of them

    def __init__(
        self,
        cells: Iterable[Mapping[str, Any]],
        store: str | PathLike[str] | None = "study.db",
        *,
        function: Callable[..., Any] | str = measure,
        seed: Seed = 0,
    ) -> None:
        self._make(cells, store, named_function(function), seed_from(seed))

    def _make(
        self,
        cells: Iterable[Mapping[str, Any]],
        store: str | PathLike[str] | None,
        function: NamedFunction,
        seed: int,
    ) -> None:
        self.seed, self.function = seed, function
        if store is not None and self.function.doubt:
            raise NotSupportedError(
                f"function: {self.function.doubt}, so that a store cannot tell its results from others; use a function "
                "of a module and give all values in the cells, or keep results in memory (store=None)"
            )
        self._open(store)
        if function.call is None:  # the name and the digest of the last run tell which results are those of these cells
            with self._store() as base:
                name, digest = base.function(function.stated) or (function.name, "")
            self.function = replace(function, name=name, digest=digest)
        self.cells: Sequence[Cell] = as_cells(cells, self.function, self.seed)

    def _open(self, store: str | PathLike[str] | None) -> None:
        self.store = None if store is None else as_path(store, "store")  # as it was given
        self.path = None if self.store is None else self.store.absolute()  # also after a function changes the folder
        self._memory = Store(None) if store is None else None

    @classmethod
    def grid(
        cls,
        function: Callable[..., Any] | str = measure,
        /,
        *,
        store: str | PathLike[str] | None = "study.db",
        seed: Any = 0,
        repeats: int = 1,
        **axes: Any,
    ) -> Self:
        """A study of all combinations of the axes: lists and ranges are axes, other values are the same in all cells.

        For the default function, lists of k and of quantities are no axes: a cell computes all of them at once.

        Args:
            function, store: as for `Study`.
            seed: of the study; a list is an axis of seeds of cells.
            repeats: how often each combination is computed, with different seeds; the cells have a `repeat`.
            axes: by their names.

        >>> import forgetting as fg
        >>> orders = ["cyclic", "with-replacement"]
        >>> len(fg.Study.grid(family="gaussian", T=range(2, 6), d=10, rank=1, ordering=orders, repeats=3))
        24
        """
        named = named_function(function)
        if isinstance(seed, (list, range)):
            axes, seed = {**axes, "seed": list(seed)}, 0
        return cls(grid(axes, repeats, named.traits.whole), store, function=function, seed=seed)

    @classmethod
    def open(cls, store: str | PathLike[str]) -> Self:
        """The study of all cells in a store, whatever function computed them; to look at, and to pass on.

        >>> import forgetting as fg
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as here:
        ...     _ = fg.Study([{"family": "orthogonal", "d": 3, "k": 5}], f"{here}/s.db").run()
        ...     fg.Study.open(f"{here}/s.db").to_frame()["method"].tolist()
        ['moments']
        """
        made = cls.__new__(cls)
        if not as_path(store, "store").is_file():
            raise ProblemFileError(f"{store}: no such file")
        made.seed = 0
        made._open(store)
        with Store(made.path, create=False) as base:
            entries = base.entries()
        names = sorted({entry.function for entry in entries})
        made.function = NamedFunction(None, " and ".join(names) or "nothing")
        made.cells = [Cell(entry.cell, entry.seed, entry.key) for entry in entries]
        return made

    @classmethod
    def from_toml(cls, path: str | PathLike[str], *, function: Callable[..., Any] | str | None = None) -> Self:
        """The study that a TOML file describes; see docs/studies.md.

        Args:
            path: the file. Nothing that it names is imported or run: it may come from anyone.
            function: the function of yours that the file names, or where to find it ("module:name", "file.py:name").
                It is not needed for `fg.studies.measure` and functions that are registered (`fg.studies.register`).
                Without it, a study can be looked at, and shows what the last run computed, but not run.

        >>> import forgetting as fg, pathlib
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as here:
        ...     _ = pathlib.Path(here, "my.toml").write_text("[cells]\\nfamily = 'orthogonal'\\nd = [2, 3]\\nk = 5")
        ...     print(fg.Study.from_toml(f"{here}/my.toml").run(progress=False).status)
        2 of 2 cells are finished
        """
        settings = read_study(as_path(path), function)
        made = cls.__new__(cls)
        try:
            made._make(settings.cells, settings.store, settings.function, settings.seed)
        except ForgettingError as error:
            raise InvalidInputError(f"{path}: {error}") from error
        return made

    # ------------------------------------------------------------------------------------------------------ computing

    def run(
        self,
        jobs: int | None = None,
        progress: Progress = True,
        *,
        retry: bool = False,
        wait: bool = True,
        check: bool = False,
        finished: Finished | None = None,
    ) -> Self:
        """Compute the cells that are missing, and return the study.

        Args:
            jobs: the number of processes, -1 for as many as there are cores. None: one, or what an enclosing
                `joblib.parallel_config` says, whose backend is used: with `joblib.parallel_config("dask")` the cells go
                to the workers of a Dask cluster.
            progress: as for `run`.
            retry: whether cells that failed are computed again.
            wait: whether to wait for cells that another process is computing.
            check: whether to raise an error at the end if a cell failed.
            finished: called as finished(cell, rows) for each cell that is done, those of earlier runs first.
        """
        if self.function.call is None:
            raise NotSupportedError(
                self.function.why_not
                or f"a study that was opened has no function ({self.function.name}); make it again"
            )
        workers(jobs)  # raises for a wrong number before a store is made
        flags = {"retry": as_flag(retry, "retry"), "wait": as_flag(wait, "wait")}
        check, finished = as_flag(check, "check"), None if finished is None else as_function(finished, "finished")
        self._run(jobs, finished, **flags, progress=progress)
        failures = self.failures if check else {}
        if failures:
            cell, error = next(iter(failures.items()))
            raise WorkerError(f"{len(failures)} of {len(self)} cells failed; the first is {cell}: {error}")
        return self

    @reports_progress
    def _run(
        self, jobs: int | None, finished: Finished | None, *, retry: bool, wait: bool, progress: Progress = False
    ) -> None:
        plans = [
            Plan(cell.key, place, self.function.name, cell.text, cell.seed) for place, cell in enumerate(self.cells)
        ]
        assert self.function.call is not None
        with self._store(create=True) as store:
            store.plan(plans)
            if self.function.stated:
                store.keep_function(self.function.stated, self.function.name, self.function.digest)
            if finished is not None:
                known = {entry.key: entry.rows for entry in store.entries() if entry.state == "done"}
                for cell in self.cells:
                    if cell.key in known:
                        finished(cell.values, known[cell.key])
            execute(store, self.cells, self.function.call, jobs, finished or _ignored, retry=retry, wait=wait)

    @contextmanager
    def _store(self, *, create: bool = False) -> Iterator[Store]:
        """The store, opened for the block; an empty one if there is no file yet."""
        if self._memory is not None:
            yield self._memory
            return
        base = Store(None)
        with suppress(NoStoreError):
            if create or (self.path is not None and os.path.isfile(self.path)):
                base = Store(self.path, create=create)
        with base as store:
            yield store

    def forget(self, where: Callable[[dict[str, Any]], bool] | None = None) -> Self:
        """Let finished cells wait again, to be computed anew: those with a row for which `where` is true, or all.

        >>> import forgetting as fg
        >>> study = fg.Study.grid(family="orthogonal", d=[2, 3], k=5, store=None).run(progress=False)
        >>> print(study.forget(lambda row: row["d"] == 3).status)
        1 of 2 cells are finished; 0 are running, 1 are waiting
        """
        chosen = None if where is None else as_function(where, "where")
        with self._store() as store:
            known = {entry.key: entry for entry in store.entries() if entry.state in ("done", "failed")}
            mine = [(cell, cell_rows(cell, known[cell.key])) for cell in self.cells if cell.key in known]
            store.forget([cell.key for cell, rows in mine if chosen is None or any(map(chosen, rows))])
        return self

    # ----------------------------------------------------------------------------------------------------- looking at

    def results(self) -> list[dict[str, Any]]:
        """The rows that the function gave for the cells that are done, in the order of cells, without their values.

        >>> import forgetting as fg
        >>> study = fg.Study([{"x": -2.0}, {"x": 3.0}], store=None, function=lambda x: abs(x)).run(progress=False)
        >>> study.results()
        [{'value': 2.0}, {'value': 3.0}]
        """
        return [row for entry in self._entries() if entry is not None and entry.state == "done" for row in entry.rows]

    def __len__(self) -> int:
        return len(self.cells)

    def _entries(self) -> list[StoredCell | None]:
        """The entry of each cell in the store; None for a cell that the store does not have."""
        with self._store() as store:
            known = {entry.key: entry for entry in store.entries()}
        return [known.get(cell.key) for cell in self.cells]

    @property
    def status(self) -> Status:
        """The numbers of cells that are done, failed, running and waiting, also while another process computes them."""
        with self._store() as store:
            states, endings = store.states(), store.endings()
        mine = [states.get(cell.key, "waiting") for cell in self.cells]
        return _status_of(mine, [endings[cell.key] for cell in self.cells if cell.key in endings])

    @property
    def failures(self) -> dict[str, str]:
        """The errors of the cells that failed, by the cells in words.

        In a study that was opened, cells of several functions, or of one that was edited, may have the same values: the
        later ones are told apart by their keys in the store.
        """
        failures: dict[str, str] = {}
        for cell, entry in zip(self.cells, self._entries(), strict=True):
            if entry is not None and entry.state == "failed":
                words = str(cell)
                failures[f"{words} (key {cell.key[:8]})" if words in failures else words] = str(entry.error)
        return failures

    @property
    def headline(self) -> str:
        return f"Study of {len(self)} cells by {self.function.name}: {self.status}"

    def rows(self, *, times: bool = False) -> list[dict[str, Any]]:
        """The table as dictionaries: one for each row of each finished cell, in the order of the cells.

        A row has the values of the cell, its seed, what the function gave, and in `failure` why the cell failed. With
        `times`, also the seconds that the cell took, and the version of this library. What the function gave replaces
        a value of the cell of the same name: a list of several k becomes one k in each row.
        """
        return table_rows(self.cells, self._entries(), times=as_flag(times, "times"))

    def columns(self, *, times: bool = False) -> list[str]:
        """The names of the columns of the table; their order does not depend on which cells are finished."""
        return column_names(self.cells, self.rows(times=times), times=times)

    def to_frame(self, *, times: bool = False) -> Any:
        """The table as a pandas DataFrame: see `rows`."""
        rows = self.rows(times=times)
        names = column_names(self.cells, rows, times=times)
        words = [{encodable(name): encodable(value) for name, value in row.items()} for row in rows]
        return module_for("to_frame", "pandas").DataFrame(words, columns=[encodable(name) for name in names])

    def to_parquet(self, path: str | PathLike[str], *, times: bool = False, force: bool = False) -> None:
        """Write the table to a Parquet file, atomically; an existing file is kept unless `force` is given."""
        export(self, as_path(path), times=times, force=as_flag(force, "force"), only=".parquet")

    def figure(self, x: str | None = None, y: str | None = None, hue: str | None = None) -> Item | None:
        """The column `y` against `x`, one curve for each value of `hue`: the median and the middle 90 % of rows.

        Left out, x is k or the first column of numbers that varies, and y the first number that the function gave.
        """
        return table_figure(f"Study of {len(self)} cells", self.rows(), x, y, hue)

    def to_table(self, most: int | None = None) -> Table:
        """The values as a table: all rows, or at most so many. The store is read once."""
        self._seen = self.rows()
        try:
            return super().to_table(most)
        finally:
            self._seen = None

    def _table(self) -> list[dict[str, Any]]:
        return self.rows() if self._seen is None else self._seen

    def _num_rows(self) -> int:
        return len(self._table())

    def _columns(self, rows: IntArray, *, full: bool) -> Mapping[str, Sequence[Any]]:
        table = self._table()
        return {name: [shown(table[i].get(name)) for i in rows] for name in glance(self.cells, table)[0]}

    def _remarks(self) -> tuple[str, ...]:
        said = glance(self.cells, self._table())[1]
        failed = [f"{cell}: {error}" for cell, error in list(self.failures.items())[:3]]
        return (*([said] if said else []), *failed)


def _ignored(cell: Mapping[str, Any], rows: Any) -> None: ...


@dataclass(frozen=True)
class Status:
    """The number of cells in each state, and an estimate of the time that is left.

    Attributes:
        done, failed, running, waiting: numbers of cells.
        seconds_left: an estimate from the cells that were finished last; None if nothing runs or too few are finished.
        versions: of this library, by which the cells were computed.

    >>> print(Status(done=3, failed=1, running=2, waiting=4, seconds_left=90.0))
    4 of 10 cells are finished, 1 of them failed; 2 are running, 4 are waiting; about 90 s are left
    """

    done: int = 0
    failed: int = 0
    running: int = 0
    waiting: int = 0
    seconds_left: float | None = None
    versions: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """The number of all cells."""
        return self.done + self.failed + self.running + self.waiting

    @property
    def complete(self) -> bool:
        """Whether all cells are finished."""
        return self.done + self.failed == self.total

    def __str__(self) -> str:
        failed = f", {self.failed} of them failed" if self.failed else ""
        text = f"{self.done + self.failed} of {self.total} cells are finished{failed}"
        if not self.complete:
            text += f"; {self.running} are running, {self.waiting} are waiting"
        if self.seconds_left is not None:
            text += f"; about {in_time(self.seconds_left)} are left"
        if len(self.versions) > 1:
            text += f"; computed by versions {', '.join(self.versions)} of this library"
        return text


def _status_of(states: Sequence[str], endings: Sequence[tuple[float, str | None]]) -> Status:
    """The status of the cells with these states; `endings` say when and by which version cells were finished."""
    counts = {state: states.count(state) for state in ("done", "failed", "running", "waiting")}
    ended = sorted(changed for changed, _ in endings)
    left = None
    if counts["running"] and len(ended) > 1:
        recent = ended[-RECENT:]
        pace = max(time.time() - recent[0], 1e-3) / len(recent)  # seconds a cell, all workers together
        left = pace * (counts["running"] + counts["waiting"])
    versions = sorted({version for _, version in endings if version})
    return Status(**counts, seconds_left=left, versions=tuple(versions))


def export(study: Study, path: Path, *, times: bool = False, force: bool = False, only: str | None = None) -> None:
    """Write the table of a study to a file, by its ending: .parquet, .csv or .json.

    The file is written atomically, and an existing file is kept; with `force`, a file that this library wrote is
    replaced. A cell of the table that Parquet or CSV cannot hold (a dictionary, a list in a column of numbers) is
    written as JSON. In CSV what is missing is an empty cell; JSON has null for what is missing, and for NaN and
    infinity, which JSON lacks. In CSV a text that a spreadsheet would take for a formula has an apostrophe before it.

    Args:
        study: whose finished cells are written.
        path: the file.
        times: whether to add the seconds of each cell, and the version of this library.
        force: whether a file that this library wrote may be replaced.
        only: the ending that is expected, if it is one of them.

    >>> from tempfile import TemporaryDirectory
    >>> import forgetting as fg
    >>> study = fg.Study([{"family": "orthogonal", "d": 3, "k": 1}], None).run(progress=False)
    >>> with TemporaryDirectory() as here:
    ...     export(study, Path(here, "table.csv"))
    ...     Path(here, "table.csv").read_text().splitlines()[0]
    'family,d,k,seed,method,loss,loss_uncertainty,forgetting,forgetting_uncertainty'
    """
    check_export(path, force=force, only=only)
    columns, rows = study.columns(times=times), study.rows(times=times)
    write_output(path, ENDINGS[path.suffix.lower()](columns, rows), force=force)
