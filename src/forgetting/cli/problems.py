"""Problems, orderings and schemes from the words of a command line: families, files and configs."""

from __future__ import annotations

import ast
import inspect
import shlex
import tomllib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from forgetting import orderings, schemes
from forgetting._arrays import as_count, as_seed
from forgetting._registry import Registry
from forgetting._text import nearest
from forgetting.errors import InvalidInputError, ProblemFileError
from forgetting.orderings import Ordering
from forgetting.schemes import Scheme
from forgetting.tasks import Problem

__all__ = [
    "Loaded",
    "family_names",
    "load_problem",
    "ordering_from",
    "read_config",
    "scheme_from",
]

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
        """The entries of a result that say which problem it is about: name, SHA-256 and seed."""
        from forgetting.report.provenance import problem_hash

        return {"problem": self.name, "sha256": problem_hash(self.problem), "seed": self.seed}


def load_problem(words: Sequence[str] | None, seed: int | None = None) -> Loaded:
    """Load a problem: a family with its parameters, an .npz file or a .toml config; without words, the default family.

    `copies=n` repeats all tasks n times. `seed` goes to families that have such a parameter, unless the words set it.

    >>> load_problem(["two_lines", "theta=0.5", "copies=10"]).problem.num_tasks
    20
    >>> load_problem(["gausian", "T=3"])
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: no family 'gausian'; did you mean 'gaussian'? ...
    """
    first, *rest = words or DEFAULT
    if first.endswith(".toml"):
        if rest:
            raise InvalidInputError(f"{first} is a config and takes no parameters, got {rest[0]!r}")
        return read_config(Path(first), seed)
    values, seed = _pairs(rest), seed or 0
    copies = values.pop("copies", 1)
    if first.endswith(".npz") or "/" in first or Path(first).is_file():
        if values:
            raise InvalidInputError(f"{first} is a file and takes copies=n only, got {next(iter(values))!r}")
        return Loaded(_copies(_file(Path(first)), copies), Path(first).name + _times(copies), seed)
    problem, name = _family(first, values, seed)
    return Loaded(_copies(problem, copies), name + _times(copies), seed)


def family_names() -> list[str]:
    """The names of the families that need nothing but parameters.

    >>> "gaussian" in family_names(), "repeated" in family_names()
    (True, False)
    """
    from forgetting import families

    return [name for name in families.__all__ if name != "repeated"]


def read_config(path: Path, seed: int | None = None) -> Loaded:
    """Read a TOML config: a [problem] table with `family` and its parameters, `file`, or `tasks`; see docs/cli.md.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as here:
    ...     _ = Path(here, "my.toml").write_text("[problem]\\nfamily = 'orthogonal'\\nd = 3")
    ...     read_config(Path(here, "my.toml")).problem.num_tasks
    3
    """
    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ProblemFileError(f"{path}: no such file") from None
    except RecursionError:
        raise ProblemFileError(f"{path}: not a readable TOML file (nested too deeply)") from None
    except (OSError, ValueError) as error:  # of what is no file, no text, or no TOML
        raise ProblemFileError(f"{path}: not a readable TOML file ({error})") from error
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
    try:
        if sources[0] == "family":
            problem, name = _family(str(source), values, chosen)
        else:
            _known(values, ("copies",), "unknown key in [problem]")
            # a file is looked for beside the config
            problem = _file(path.parent / str(source)) if sources[0] == "file" else _inline(source)
            name = path.stem
    except ForgettingErrors as error:
        raise InvalidInputError(f"{path}: {error}") from error
    name = str(config.get("title", name + _times(copies)))
    return Loaded(_copies(problem, copies), name, chosen, config)


ForgettingErrors = (InvalidInputError, ProblemFileError)


def ordering_from(words: str) -> Ordering:
    """Make an ordering from its name and parameters.

    >>> ordering_from("with-replacement"), ordering_from("explicit seq=0,1,1").seq
    (WithReplacement(p=None), (0, 1, 1))
    >>> ordering_from("cylic")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: no ordering 'cylic'; did you mean 'cyclic'? ...
    """
    made: Ordering = _named(orderings.registry, words)
    return made


def scheme_from(words: str | None) -> Scheme | None:
    """Make a scheme from its name and parameters; None if no words are given.

    >>> scheme_from("ridge lam=0.1"), scheme_from("sgd")
    (Ridge(lam=0.1), SGD(step_size=1.0, objective='modified'))
    """
    return None if words is None else _named(schemes.registry, words)


def _named(registry: Registry[type], words: str) -> Any:
    """Make a member of a registry from its name and parameters."""
    try:
        first, *rest = shlex.split(words) or [""]
    except ValueError as error:
        raise InvalidInputError(f"{registry.kind} {words!r:.60}: {str(error).lower()}; quotes come in pairs") from None
    key = first.replace("_", "-").lower()
    return _call(registry.get(key), _pairs(rest), f"{registry.kind} {key}")


def _family(name: str, values: dict[str, Any], seed: int) -> tuple[Any, str]:
    from forgetting import families

    key = name.replace("-", "_")
    if key not in family_names():
        raise InvalidInputError(f"no family {name!r}{nearest(key, family_names())}")
    make = getattr(families, key)
    said = ", ".join(f"{parameter}={value}" for parameter, value in values.items())
    if "seed" in inspect.signature(make).parameters and "seed" not in values:
        values = {**values, "seed": seed}
    return _call(make, values, f"family {key}"), f"{key}({said})"


def _call(make: Callable[..., Any], values: Mapping[str, Any], what: str) -> Any:
    """Call `make` with keywords; an error names a keyword that is unknown or missing."""
    known = inspect.signature(make).parameters
    for name in values:
        if name not in known:
            listed = nearest(name, known) if known else "; it has none"
            raise InvalidInputError(f"{what} has no parameter {name!r}{listed}")
    missing = [name for name in known if known[name].default is inspect.Parameter.empty and name not in values]
    if missing:
        raise InvalidInputError(f"{what} needs {', '.join(f'{name}=...' for name in missing)}")
    try:
        return make(**values)
    except TypeError as error:
        raise InvalidInputError(f"{what}: {error}") from error


def _pairs(words: Iterable[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign or not name:
            raise InvalidInputError(f"expected name=value, got {word!r}")
        if name in values:
            raise InvalidInputError(f"{name} is given twice")
        values[name] = _value(text)
    return values


def _value(text: str) -> Any:
    """The number, list or truth value that a text spells; else the text itself."""
    if text.lower() in ("true", "false", "none"):
        return {"true": True, "false": False, "none": None}[text.lower()]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of strange escapes in a text
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _known(values: Mapping[str, Any], allowed: Sequence[str], what: str) -> None:
    for name in values:
        if name not in allowed:
            raise InvalidInputError(f"{what} {name!r}{nearest(name, allowed)}")


def _file(path: Path) -> Problem:
    from forgetting import ClassificationTasks, RegressionTasks
    from forgetting.storage.arrays import read_arrays
    from forgetting.tasks.files import CLASSIFICATION

    kind = str(read_arrays(path).get("format"))
    return (ClassificationTasks if kind == CLASSIFICATION else RegressionTasks).load(path)


def _inline(tasks: Any) -> Problem:
    from forgetting import RegressionTasks

    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise InvalidInputError("tasks must be tables with X and y, [[problem.tasks]]")
    for number, task in enumerate(tasks):
        _known(task, ("X", "y"), f"task {number}: unknown key")
        if set(task) != {"X", "y"}:
            raise InvalidInputError(f"task {number} needs X, a list of rows, and y, a list of numbers")
    return RegressionTasks([task["X"] for task in tasks], [task["y"] for task in tasks])


def _copies(problem: Problem, n: Any) -> Problem:
    from forgetting import RegressionTasks, families

    if as_count(n, "copies", least=1) == 1:
        return problem
    return families.repeated(cast(RegressionTasks, problem), n)  # raises for tasks of other kinds


def _times(n: Any) -> str:
    return "" if n == 1 else f" x {n}"
