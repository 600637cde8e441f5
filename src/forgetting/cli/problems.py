"""Problems from the words of a command line: families, files and configs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, cast

import forgetting as fg
from forgetting.cli.options import Seed, Words
from forgetting.cli.output import tell
from forgetting.core.arrays import as_count, as_seed
from forgetting.core.registry import values_in
from forgetting.core.text import nearest
from forgetting.errors import InvalidInputError, ProblemFileError
from forgetting.files.json_and_toml import read_toml
from forgetting.tasks import Problem, prepare
from forgetting.tasks.readers import ENDINGS, PREPARING, Columns, read

DEFAULT = ("gaussian", "T=12", "d=20", "rank=2", "condition=3")
TOP = ("title", "seed", "problem", "report")
REPORT = ("k", "points", "runs", "hunt", "eps", "orderings", "sections")


@dataclass(frozen=True)
class Loaded:
    """A problem, its name in the output, the seed, and the config that the problem was read from."""

    problem: Problem
    name: str
    seed: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def origin(self) -> dict[str, Any]:
        """The entries of a result that say which problem it is about.

        Name, SHA-256, seed, what was done with the features, and notes on the data.
        """
        from forgetting.report.provenance import preparation_of, problem_hash

        notes = {"notes": list(self.problem.notes)} if self.problem.notes else {}
        identity = {"problem": self.name, "sha256": problem_hash(self.problem), "seed": self.seed}
        return {**identity, **preparation_of(self.problem), **notes}

    def scheme_name(self, scheme: str | None) -> str:
        """The scheme as it was given; if none was, the name of the natural scheme of the problem."""
        return scheme or type(fg.schemes.natural_scheme(self.problem)).__name__


@dataclass(frozen=True)
class Source:
    """The problem of a command line: the words of PROBLEM, --seed, and how the rows of files are read.

    >>> Source(["two_lines", "theta=0.5", "copies=10"]).load().problem.num_tasks
    20
    >>> Source(["gausian", "T=3"]).load()
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: no family 'gausian'; did you mean 'gaussian'? ...
    """

    words: Words = None
    seed: Seed = None
    columns: Columns = field(default_factory=Columns)

    def load(self, learned: Problem | None = None) -> Loaded:
        """Load the problem: a family with its parameters, files, or a config; without words, the default family.

        `copies=n` repeats all tasks n times. The seed goes to families that have such a parameter, unless the words set
        it. `columns` says how the rows of files are read, and what is done with the features of any problem. Notes on
        the data are printed at once, before anything is computed. Rows that are held out of `learned` tasks have labels
        of the same kind.
        """
        first, *rest = self.words or DEFAULT
        seed = self.seed or 0
        columns = self.columns.seeded(seed)
        if first.endswith(".toml"):
            if rest:
                raise InvalidInputError(f"{first} is a config and takes no parameters, got {rest[0]!r}")
            return read_config(Path(first), self.seed, columns, learned)
        files = [first, *filter(is_file, rest)] if is_file(first) else []
        values = values_in([word for word in rest if word not in files])
        copies = values.pop("copies", 1)
        doubts: tuple[str, ...] = ()
        if files:
            if values:
                name = next(iter(values))
                hint = f"; say --{name} {values[name]}" if name in {field.name for field in fields(Columns)} else ""
                raise InvalidInputError(f"{first} is a file and takes copies=n only, got {name!r}{hint}")
            reading = read(files, columns, {}, learned)
            problem, doubts = reading.tasks, reading.doubts
            name = ", ".join(Path(file).name for file in files[:3]) + (", ..." if len(files) > 3 else "")
        else:
            problem, name = _family(first, values, seed)
            columns.require_unused(f"{first} is a family of tasks", preparing=False)
            if columns.preparing:
                problem = prepare(problem, **columns.preparing)
        _say(problem, doubts, learned)
        return Loaded(_copies(problem, copies), name + _times(copies), seed)

    def held_out(self, words: str, learned: Problem) -> Problem:
        """The held-out rows of the learned tasks, read in the same way, with labels like theirs, but not prepared."""
        columns = replace(self.columns, classes="auto", intercept=False, standardize=None, features=None)
        return Source([words], self.seed, columns).load(learned).problem


def is_file(word: str) -> bool:
    """Whether a word of the command line names a file: by an ending, a slash, or because there is such a file.

    >>> is_file("tasks.CSV"), is_file("tasks.cvs"), is_file("data/tasks"), is_file("gaussian"), is_file("theta=0.5")
    (True, True, True, False, False)
    """
    ending = Path(word).suffix[1:2].isalpha() and "=" not in word  # families have no full stop in their names
    try:
        return ending or word.lower().endswith(ENDINGS) or "/" in word or Path(word).is_file()
    except ValueError:  # of a zero byte
        return False


def _say(problem: Problem, doubts: Sequence[str], learned: Problem | None) -> None:
    """Print the notes on the data; on held-out data, those that the learned tasks do not have."""
    known = () if learned is None else learned.notes
    tell([note for note in problem.notes if note not in known], doubts)


def read_config(
    path: Path, seed: int | None = None, columns: Columns | None = None, learned: Problem | None = None
) -> Loaded:
    """Read a TOML config: a [problem] table with `family` and its parameters, `file`, or `tasks`; see docs/cli.md.

    How the rows of a file are read is a matter of the config, so that other `columns` are refused.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as here:
    ...     _ = Path(here, "my.toml").write_text("[problem]\\nfamily = 'orthogonal'\\nd = 3")
    ...     read_config(Path(here, "my.toml")).problem.num_tasks
    3
    """
    config = read_toml(path)
    (columns or Columns()).require_unused(f"{path} is a config, which says in [problem] how its file is read")
    _known(config, TOP, f"{path}: unknown key")
    for name in ("problem", "report"):
        if not isinstance(config.get(name, {}), dict):
            raise InvalidInputError(f"{path}: {name} must be a table, [{name}]")
    _known(config.get("report", {}), REPORT, f"{path}: unknown key in [report]")
    chosen = as_seed(config.get("seed", 0), f"{path}: seed") if seed is None else seed
    values = dict(config.get("problem", {}))
    copies = values.pop("copies", 1)
    sources = [name for name in ("family", "file", "tasks") if name in values]
    if len(sources) != 1:
        close = next((f"; {name!r} is not one of them" for name in values), "")
        said = f", not {' and '.join(sources)}" if sources else close
        raise InvalidInputError(f"{path}: [problem] needs one of family, file and tasks{said}")
    source = values.pop(sources[0])
    doubts: tuple[str, ...] = ()
    later = {} if sources[0] == "file" else {name: values.pop(name) for name in PREPARING if name in values}
    try:
        if sources[0] == "family":
            problem, name = _family(str(source), values, chosen)
        elif sources[0] == "file":
            _known(values, ("copies", *(field.name for field in fields(Columns))), "unknown key in [problem]")
            files = source if isinstance(source, list) else [source]
            beside = [path.parent / str(file) for file in files]
            reading = read(beside, Columns(**values).seeded(chosen), {}, learned)
            problem, doubts, name = reading.tasks, reading.doubts, path.stem
        else:
            _known(values, ("copies",), "unknown key in [problem]")
            problem, name = _inline(source), path.stem
        if later:
            problem = prepare(problem, **Columns(**later).seeded(chosen).preparing)
    except (InvalidInputError, ProblemFileError) as error:
        raise InvalidInputError(f"{path}: {error}") from error
    _say(problem, doubts, learned)
    name = str(config.get("title", name + _times(copies)))
    return Loaded(_copies(problem, copies), name, chosen, config)


def _family(name: str, values: dict[str, Any], seed: int) -> tuple[Problem, str]:
    from forgetting.studies.measuring import family_names, named_family
    from forgetting.tasks.readers.loading import folder_error

    if name.replace("-", "_") not in family_names():
        if os.path.isdir(name):
            raise folder_error(Path(name))
        for file in (f"{name.strip()}{ending}" for ending in ("", *ENDINGS)):
            if file != name and os.path.isfile(file):
                raise InvalidInputError(f"no family {name!r}; did you mean the file {file!r}?")
    said = ", ".join(f"{parameter}={value}" for parameter, value in values.items())
    return named_family(name, values, seed), f"{name.replace('-', '_')}({said})"


def _known(values: Mapping[str, Any], allowed: Sequence[str], what: str) -> None:
    for name in values:
        if name not in allowed:
            raise InvalidInputError(f"{what} {name!r}{nearest(name, allowed)}")


def _inline(tasks: Any) -> Problem:
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise InvalidInputError("tasks must be tables with X and y, [[problem.tasks]]")
    for number, task in enumerate(tasks):
        _known(task, ("X", "y"), f"task {number}: unknown key")
        if set(task) != {"X", "y"}:
            raise InvalidInputError(f"task {number} needs X, a list of rows, and y, a list of numbers")
    return fg.RegressionTasks([task["X"] for task in tasks], [task["y"] for task in tasks])


def _copies(problem: Problem, n: Any) -> Problem:
    if as_count(n, "copies", least=1) == 1:
        return problem
    copied = fg.families.repeated(cast(fg.RegressionTasks, problem), n)  # raises for tasks of other kinds
    copied.notes = problem.notes
    return copied


def _times(n: Any) -> str:
    return "" if n == 1 else f" x {n}"
