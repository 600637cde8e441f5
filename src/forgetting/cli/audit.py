"""forgetting audit, of tasks or of a file with the values of orders."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from forgetting.cli.options import Force, Json, Scheme, grouped_options
from forgetting.cli.output import Output, tell, working
from forgetting.cli.problems import DEFAULT, Source, is_file
from forgetting.core.registry import call_with, values_in
from forgetting.core.text import nearest, one_line
from forgetting.errors import InvalidInputError
from forgetting.files.outputs import check_output
from forgetting.tasks import Problem

if TYPE_CHECKING:
    from forgetting.tasks.class_splits import ClassSplits

SOURCES = ("digits", "mnist")
SAVED = ("format", "record")  # what a file of `Landscape.save` holds, like those of all results
OWN = ("words", "as_json", "out", "force")  # options that mean something for values,
# and those that mean something for class orders
OF_CLASSES = (*OWN, "class_tasks", "test", "order", "scheme", "seed", "label", "classes", "drop", "drop_nan")


@grouped_options
def audit_command(
    *,
    context: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="A problem as for the other commands: a file or several, a family, a config; or digits or mnist with "
            "split, permuted or rotated.",
        ),
    ],
    rows: Annotated[int | None, typer.Option(min=1, help="Sub-sample each task to at most this many rows.")] = None,
    features: Annotated[int | None, typer.Option(min=1, help="Map X to this many random features.")] = None,
    kind: Annotated[str | None, typer.Option(help="The kind of random features: relu (default) or fourier.")] = None,
    standardize: Annotated[
        str | None,
        typer.Option(
            metavar="all|first",
            help="Shift and scale each column to mean 0 and deviation 1: those of all tasks, or of the first.",
        ),
    ] = None,
    intercept: Annotated[bool, typer.Option("--intercept", help="Add a column of ones.")] = False,
    loss: Annotated[str | None, typer.Option(metavar="sum|mean", help="Sum or mean over the rows of a task.")] = None,
    test: Annotated[
        str | None, typer.Option(metavar="FILE", help="Held-out rows of the same tasks, read like FILE; never learned.")
    ] = None,
    order: Annotated[
        str | None, typer.Option(help="The given order: numbers or names of all tasks (or classes), with commas.")
    ] = None,
    class_tasks: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Compare class orders: the classes of the labels are dealt to N tasks, or to tasks of 4,3,3 classes.",
        ),
    ] = None,
    scheme: Scheme = None,
    repeats: Annotated[
        int, typer.Option(min=1, help="Draws of rows and random features that the verdict is repeated for.")
    ] = 8,
    passes: Annotated[int, typer.Option(min=2, help="Compare one pass with this many passes.")] = 3,
    source: Source,
    as_json: Json = False,
    out: Annotated[
        Path | None, typer.Option(help="Write a page (.html), the data (.json, reloads), text (.txt) or tables.")
    ] = None,
    landscape: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npz",
            help="Write the landscape as arrays: what each order (of up to 6 tasks) gives.",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """How much of the low forgetting is the order? By training loss, held-out loss and accuracy, and what to do.

    An order is advised only if all measures, and all draws of rows and features, agree.

    \b
    Examples:
      forgetting audit tasks.csv --out audit.html
      forgetting audit a.csv b.csv c.csv --label price      (each file a task)
      forgetting audit digits rotated tasks=8 rows=7
      forgetting audit digits split --rows 20 --features 200 --repeats 8
      forgetting audit tasks.csv --test held_out.csv --intercept --standardize all --loss mean
      forgetting audit digits permuted --scheme "ridge lam=1000" --order 4,3,2,1,0
      forgetting audit catastrophic eps=1.5
      forgetting audit digits split --landscape orders.npz
      forgetting audit train.csv --class-tasks 5 --test test.csv --label class
                                     (which classes form a task, and in which order)
      forgetting audit landscape.npz quantity=accuracy higher_is_better=true
                                     (values of orders; docs/audit.md)
      forgetting audit logs.pyd      (accuracies of one's own networks, of any library;
                                     docs/accuracy-matrices.md)
    """
    output = Output(as_json, out, force)
    if source.columns.label == "y" and (matrices := files_of_matrices(words)):  # a named label: a table of tasks
        return audit_matrices(matrices, words, context, output)
    if names_values(words):
        return audit_values(words, context, output)
    source = replace(source, words=words)
    given = None if order is None else [word.strip() for word in order.split(",")]
    if class_tasks is not None:
        _only_own(context, OF_CLASSES, "--class-tasks compares class orders")
        return audit_class_orders(source, class_tasks, test, given, scheme, output)

    from forgetting.auditing import RandomFeatures, audit
    from forgetting.auditing.result import landscape_arrays

    seed = source.seed or 0
    output.check(words, more=(".txt",))  # no ending of other commands
    if landscape is not None:
        if landscape.suffix.lower() != ".npz":
            raise InvalidInputError(f"--landscape {landscape}: the values of orders are written to an .npz file")
        check_output(landscape, force=force, inputs=words)
    if kind is not None and features is None:
        raise InvalidInputError(f"--kind {kind} says which random features: give their number by --features")
    lift = None if features is None else RandomFeatures(features, kind or "relu", seed=seed)  # type: ignore[arg-type]
    problem, name = load_tasks(source)
    held = None if test is None else source.held_out(test, problem)
    prepared = {"rows": rows, "features": lift, "standardize": standardize, "intercept": intercept, "loss": loss}
    with working("auditing") as step:
        result = audit(  # type: ignore[call-overload]
            problem, order=given, passes=passes, test=held, repeats=repeats, scheme=scheme, seed=seed, title=name,
            progress=step, **prepared,
        )  # fmt: skip

    def orders() -> bytes:
        content = BytesIO()
        np.savez_compressed(content, **landscape_arrays(result))
        return content.getvalue()

    output.emit_page(result, {} if landscape is None else {landscape: orders})


def load_tasks(source: Source) -> tuple[Problem, str]:
    """Tasks from bundled images, or from a problem as for the other commands; and their name.

    >>> load_tasks(Source(["digits", "rotated", "tasks=3", "rows=5"]))[1]
    'digits rotated, tasks=3, rows=5'
    """
    from forgetting.studies.measuring import family_names, named_family

    first, *rest = source.words or DEFAULT
    if first in SOURCES and not Path(first).is_file():
        source.columns.require_unused(f"{first} are images")
        given = [word if "=" in word else f"kind={word}" for word in rest]
        values = {"kind": "split", **values_in(given)}
        others = [word for word in given if not word.startswith("kind=")]
        return named_family(first, values, source.seed or 0), f"{first} {', '.join([values['kind'], *others])}"
    named = is_file(first) or first.endswith(".toml") or os.path.isdir(first)
    if not named and first.replace("-", "_") not in family_names():
        raise InvalidInputError(f"no file or problem {first!r}{nearest(first, [*SOURCES, *family_names()])}")
    loaded = source.load()
    return loaded.problem, loaded.name


# -------------------------------------------------------------------------------------------------------- class orders


def audit_class_orders(
    source: Source, tasks: str, test: str | None, order: list[str] | None, scheme: str | None, output: Output
) -> None:
    """Audit the class orders of labelled rows: those of a file, or the images of digits or mnist."""
    from forgetting.auditing import audit

    words = list(source.words or ())
    output.check(words, more=(".txt",))
    splits = load_classes(words, source, tasks, test)
    with working("auditing class orders") as step:
        result = audit(
            splits, order=order, scheme=scheme, seed=source.seed or 0, title=one_line(Path(words[0]).name),
            progress=step,
        )  # fmt: skip
    output.emit_page(result)


def load_classes(words: Sequence[str], source: Source, tasks: str, test: str | None) -> ClassSplits:
    """The rows of a file, or of the images of digits or mnist, and the tasks to which their classes are dealt.

    >>> load_classes(["digits"], Source(["digits"]), "5", None)
    ClassSplits(10 classes in 5 tasks of 2, 1797 rows, d=64)
    """
    from forgetting.datasets.images import labelled_images
    from forgetting.tasks.class_splits import ClassSplits

    first, *rest = words
    columns = source.columns
    if rest:
        raise InvalidInputError(f"--class-tasks reads the rows of one file, and {rest[0]!r:.60} is more")
    if columns.classes is None:
        raise InvalidInputError("--class-tasks is about classes, which --classes none says there are none of")
    numbers = values_in([f"tasks=[{tasks}]" if "," in tasks else f"tasks={tasks}"])["tasks"]
    classes: Any = "task" if columns.classes == "task" else "all"
    if first in SOURCES and not Path(first).is_file():
        if test is not None:
            raise InvalidInputError(f"--test: {first} has no held-out file; its learned rows are scored")
        replace(columns, classes="auto").require_unused(f"{first} are images")
        images, labels = labelled_images(first)  # type: ignore[arg-type]
        return ClassSplits(images.reshape(len(images), -1), labels, numbers, classes=classes)
    return ClassSplits.from_table(
        first, numbers, test, classes, label=columns.label, drop=columns.drop, drop_nan=columns.drop_nan
    )


# ----------------------------------------------------------------------------------------------------- values of orders


def names_values(words: Sequence[str]) -> bool:
    """Whether the words of the command line name a file of values: arrays `permutations` and `values`, or a result.

    >>> names_values(["tasks.csv"]), names_values(["mine.npz", "values_key=accuracy_by_seed"])
    (False, True)
    """
    from forgetting.auditing.landscape_files import holds_values

    first, *rest = words
    if not first.lower().endswith(".npz"):
        return False
    named = {word.partition("=")[0] for word in rest} & {"permutations_key", "values_key"}
    return bool(named) or holds_values(first) or holds_values(first, SAVED)


def audit_values(words: Sequence[str], context: typer.Context, output: Output) -> None:
    """Audit values alone: their distribution over orders, what explains it, agreement of seeds, disparity of tasks."""
    from forgetting.auditing.landscape_files import holds_values
    from forgetting.auditing.landscape_page import landscape_report
    from forgetting.auditing.landscapes import Landscape

    first, *rest = words
    _only_own(context, OWN, f"{first} holds values of orders")
    output.check([first])
    given = values_in(rest)
    order = given.pop("order", None)

    def read(
        quantity: str = "value",
        higher_is_better: bool = False,
        permutations_key: str = "permutations",
        values_key: str = "values",
        seeds_key: str | None = "seeds",
        values_layout: Any = "group-by-seed",
    ) -> Landscape:
        return Landscape.from_npz(
            first, permutations_key=permutations_key, values_key=values_key, seeds_key=seeds_key,
            values_layout=values_layout, quantity=quantity, higher_is_better=higher_is_better, complete=False,
        )  # fmt: skip

    if holds_values(first, SAVED):
        landscape = call_with(lambda: Landscape.load(first), given, first)
    else:
        landscape = call_with(read, given, first)
        if "higher_is_better" not in given:
            tell(["low values are taken to be good; for accuracies add higher_is_better=true"])
    title = f"Audit of {one_line(Path(first).name)}: {landscape.headline}"
    output.emit(landscape_report(landscape, title, order))


def _only_own(context: typer.Context, own: Sequence[str], why: str) -> None:
    """Raise if an option was given that has no meaning: nothing that a user says is ignored."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name not in own and source is not None and source.name == "COMMANDLINE":
            raise InvalidInputError(f"{why}, and {parameter.opts[0]} is for tasks; leave {parameter.opts[0]} out")


# ----------------------------------------------------------------------------------------------- matrices of accuracies


def files_of_matrices(words: Sequence[str]) -> list[str]:
    """The files among the words of the command line, if all are logs or matrices of accuracies, by their content.

    >>> files_of_matrices(["tasks.csv"]), files_of_matrices([])
    ([], [])
    """
    from forgetting.dynamics.accuracy_matrices import holds_matrices

    files = [word for word in words if "=" not in word or os.path.exists(word)]
    return files if all(map(holds_matrices, files)) else []


def audit_matrices(files: list[str], words: Sequence[str], context: typer.Context, output: Output) -> None:
    """Audit accuracies: metrics by each convention, uncertainty over runs, how much the order matters."""
    from forgetting.auditing import audit
    from forgetting.dynamics.accuracy_matrices import AccuracyMatrices

    _only_own(context, OWN, f"{files[0]} holds accuracies")
    output.check(files, more=(".txt",))

    def read(classifier: str = "CNN", stream: str | None = None) -> AccuracyMatrices:
        return AccuracyMatrices.load(files, classifier=classifier, stream=stream)

    matrices = call_with(read, values_in([word for word in words if word not in files]), files[0])
    output.emit_page(audit(matrices))
