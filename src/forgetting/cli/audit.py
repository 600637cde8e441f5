"""forgetting audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forgetting._text import nearest
from forgetting.cli.options import Force, Json, Seed

__all__ = ["audit_command"]

SOURCES = ("digits", "mnist")


def audit_command(
    tasks: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="CSV or npz files with a task column; digits or mnist with split, permuted or rotated; or a problem "
            "as for the other commands.",
            show_default=False,
        ),
    ],
    task: Annotated[str, typer.Option("--task", help="The column that names the task of a row.")] = "task",
    label: Annotated[str, typer.Option("--label", help="The column of labels.")] = "y",
    positive: Annotated[
        str | None, typer.Option(help="The class that counts as +1, all others as -1.", show_default=False)
    ] = None,
    drop_nan: Annotated[bool, typer.Option("--drop-nan", help="Leave out rows with missing numbers.")] = False,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Sub-sample each task to at most this many rows.", show_default=False)
    ] = None,
    features: Annotated[
        int | None, typer.Option(min=1, help="Map X to this many random features.", show_default=False)
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--kind", help="The kind of random features: relu (default) or fourier.", show_default=False),
    ] = None,
    passes: Annotated[int, typer.Option(min=2, help="Compare one pass with this many passes.")] = 3,
    seed: Seed = None,
    as_json: Json = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Write a page (.html), the data (.json, reloads), text (.txt) or tables.", show_default=False
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Compare your tasks and their orders: similarity, forgetting, bounds, and what to do.

    \b
    Examples:
      forgetting audit tasks.csv --out audit.html
      forgetting audit a.csv b.csv c.csv --label price      (each file a task)
      forgetting audit digits rotated tasks=8 rows=7
      forgetting audit digits split --rows 20 --features 200
      forgetting audit catastrophic eps=1.5
    """
    from forgetting.auditing import RandomFeatures, audit
    from forgetting.cli.output import ready, say, terminal_width, working, write_and_show
    from forgetting.errors import InvalidInputError
    from forgetting.storage.outputs import check_output, write_output

    if out is not None and out.suffix.lower() == ".txt":  # no ending of other commands
        check_output(out, force=force, inputs=tasks)
    else:
        ready(out, force, tasks)
    if kind is not None and features is None:
        raise InvalidInputError(f"--kind {kind} says which random features: give their number by --features")
    lift = None if features is None else RandomFeatures(features, kind or "relu", seed=seed or 0)  # type: ignore[arg-type]
    found, name = load_tasks(tasks, task, label, positive, drop_nan, seed)
    with working("auditing") as step:
        result = audit(found, passes=passes, rows=rows, features=lift, seed=seed or 0, title=name, progress=step)

    def write(path: Path) -> None:
        texts = {".json": lambda: result.to_json(indent=1), ".txt": lambda: str(result)}
        text = texts.get(path.suffix.lower())
        if text is None:
            result.write_page(path, force=force)
        else:
            write_output(path, f"{text()}\n".encode("utf-8", "backslashreplace"), force=force)

    def show() -> None:
        if as_json:
            print(result.to_json(indent=1))
        else:
            say(result.to_text(terminal_width()))

    write_and_show(out, write, show, quiet=as_json)


def load_tasks(
    words: list[str], task: str, label: str, positive: str | None, drop_nan: bool, seed: int | None
) -> tuple[object, str]:
    """Tasks from files of rows, from bundled images, or from a problem as for the other commands; and their name.

    >>> load_tasks(["digits", "rotated", "tasks=3", "rows=5"], "task", "y", None, False, 0)[1]
    'digits rotated, tasks=3, rows=5'
    """
    from forgetting import auditing
    from forgetting.auditing.reading import ENDINGS
    from forgetting.cli.problems import family_names, load_problem
    from forgetting.errors import InvalidInputError

    first, *rest = words
    if first in SOURCES and not Path(first).is_file():
        values: dict[str, int | str] = {}
        for word in rest:
            name, sign, text = word.partition("=")
            if not sign:
                values["kind"] = word
            elif name in ("tasks", "rows") and text.isdigit():
                values[name] = int(text)
            else:
                raise InvalidInputError(f"{first} takes split, permuted or rotated, tasks=n and rows=n, got {word!r}")
        made = getattr(auditing, first)(**values, seed=seed or 0)
        return made, f"{first} {', '.join([str(values.get('kind', 'split')), *(word for word in rest if '=' in word)])}"
    files = [word for word in words if word.lower().endswith(ENDINGS)]
    if len(files) == len(words):
        read = auditing.read_tasks(files, task=task, label=label, positive=positive, drop_nan=drop_nan)
        return read, ", ".join(Path(file).name for file in files[:3]) + (", ..." if len(files) > 3 else "")
    if not first.endswith((".toml", ".npz")) and first.replace("-", "_") not in family_names():
        raise InvalidInputError(f"no file or problem {first!r}{nearest(first, [*SOURCES, *family_names()])}")
    loaded = load_problem(words, seed)
    return loaded.problem, loaded.name
