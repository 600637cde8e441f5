"""forgetting expect and forgetting weights: expected values, and the sampling weights that make them least."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from forgetting.cli.options import Force, Json, Orders, Out, Problem, Scheme, Seed, Steps, as_steps, reads_files
from forgetting.core.text import nearest
from forgetting.errors import InvalidInputError
from forgetting.expectation import Expectation, engines, quantities
from forgetting.expectation.request import PATIENCE
from forgetting.tasks.readers.sheet import Columns, parse_number


def plain_quantities() -> list[str]:
    """The names of the quantities that have one value at each k, and not one for each task.

    >>> plain_quantities()[:3]
    ['loss', 'forgetting', 'regret']
    """
    return [name for name in quantities if not quantities.get(name).per_task]


@reads_files
def expect_command(
    problem: Problem = None,
    ordering: Orders = "with-replacement",
    k: Steps = "1,10,100,1000",
    scheme: Scheme = None,
    quantity: Annotated[
        str, typer.Option(help=f"The quantities, with commas: {', '.join(plain_quantities())}.")
    ] = "loss,forgetting,regret",
    method: Annotated[str, typer.Option(help=f"auto, {', '.join(engines)}.")] = "auto",
    patience: Annotated[
        float, typer.Option(help="Seconds, as estimated, for exact values, else for a simulation.")
    ] = PATIENCE,
    runs: Annotated[int | None, typer.Option(min=1, help="Simulated runs, at most.", show_default=False)] = None,
    noise: Annotated[
        str | None,
        typer.Option(
            help="Standard deviation of the noise of labels: a number, or one for each task with commas.",
            show_default=False,
        ),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(
            "--test",
            metavar="FILE",
            help="Held-out rows of the same tasks, read and prepared like PROBLEM, for test_loss and test_forgetting.",
            show_default=False,
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="Where to compute: cuda or another torch device, or cupy.", show_default=False),
    ] = None,
    seed: Seed = None,
    as_json: Json = False,
    out: Out = None,
    force: Force = False,
    *,
    reading: Columns,
) -> None:
    """Expected loss, forgetting and other quantities over all orders.

    Values are exact where that takes no longer than --patience. The output says so, and what exact values would have
    cost; simulated values have intervals, and medians where the intervals say little. What takes longer in every way
    is refused, with its cost; a --method that is named has no limit.

    \b
    Examples:
      forgetting expect gaussian T=10 d=50 rank=3 -k 10,100,1000
      forgetting expect two_lines theta=0.1 copies=9 -o without-replacement -k 18
      forgetting expect orthogonal d=5 --quantity loss,seen_loss
      forgetting expect tasks.csv --label price --drop id -k 10
      forgetting expect tasks.npz --method monte-carlo --runs 4096 --seed 7
      forgetting expect tasks.npz -k 10..10000 --out curve.pdf
      forgetting expect tasks.csv --intercept --noise 0.1 -k 10,inf
      forgetting expect tasks.csv --test held_out.csv --quantity loss,test_loss
      forgetting expect tasks.npz -k 1e3,1e6,inf
      forgetting expect tasks.npz -k 1e4 --device cuda
    """
    import forgetting as fg
    from forgetting.cli.interrupts import uninterrupted
    from forgetting.cli.output import diverging, emit, not_finite, ready, result
    from forgetting.cli.problems import load_problem
    from forgetting.expectation.outcome import accuracy, undecided_means
    from forgetting.figures.items import Curves, Item, Table, column
    from forgetting.orderings.base import as_ordering
    from forgetting.report.provenance import problem_hash
    from forgetting.report.settings import ordering_name

    ready(out, force, problem)
    chosen = tuple(dict.fromkeys(quantity.split(",")))
    for name in chosen:
        if name not in plain_quantities():
            raise InvalidInputError(f"no quantity {name!r}{nearest(name, plain_quantities())}")
    loaded = load_problem(problem, seed, reading)
    order, steps = as_ordering(ordering), steps_from(k)
    limit = order.limit(loaded.problem.num_tasks)
    if k == "1,10,100,1000" and limit is not None:  # the default, as far as this ordering goes
        steps = sorted({min(step, limit) for step in steps})
    plain = replace(reading, intercept=False, standardize=None, features=None)  # as the tasks were prepared
    held_out = None if test is None else load_problem([test], seed, plain).problem
    with uninterrupted(), diverging():
        expected = fg.expect(
            loaded.problem, order, steps, scheme, method=method, quantities=chosen,
            seed=loaded.seed, runs=runs, patience=patience, noise=levels_from(noise), test=held_out,
            device=device,
        )  # fmt: skip
    chosen = tuple(expected.values)  # with test_loss, if --test is given and no such quantity
    series = [expected.series(name, group=group) for group, name in enumerate(chosen)]
    heads: tuple[str, ...] = ("k", *chosen)
    rows: list[tuple[Any, ...]] = list(zip(steps, *(column(expected.values[name]) for name in chosen), strict=True))
    if not expected.exact:
        heads = ("k", "quantity", "value", "low", "high")
        columns = [zip(steps, curve.y, curve.low or (), curve.high or (), strict=True) for curve in series]
        rows = [(k, name, *numbers) for name, table in zip(chosen, columns, strict=True) for k, *numbers in table]
        if undecided_means(expected):
            heads += ("median", "median low", "median high")
            medians = {name: list(zip(*map(column, expected.median(name)), strict=True)) for name in chosen}
            rows = [(*row, *medians[row[1]][steps.index(row[0])]) for row in rows]
    items: list[Item] = [Table("expect", "Expected values", "", heads, tuple(rows))]
    if sum(map(math.isfinite, steps)) > 1:
        title = f"{loaded.name}, {ordering_name(order)}"
        items.append(
            Curves("curves", title, expected.detail, "k, tasks learned", "expected value", tuple(series), floor=1e-300)
        )
    said = [f"losses: {expected.unit}"] if expected.unit else []
    said += [*accuracy(expected), f"method: {expected.method}, {expected.detail}", *expected.notes]
    said += not_finite([column(expected.values[name]) for name in chosen], said)
    report = result(
        f"{loaded.name}, {ordering_name(order)}: {expected.headline[:1].lower()}{expected.headline[1:]}",
        "expect",
        items,
        said,
        **loaded.origin,
        method=expected.method,
        detail=expected.detail,
        runs=expected.runs,
        confidence=expected.confidence,
        ordering=str(order),
        scheme=scheme or type(fg.schemes.natural_scheme(loaded.problem)).__name__,
        k=list(steps),
        **({} if noise is None else {"noise": levels_from(noise)}),
        **(
            {} if test is None or held_out is None else {"test": Path(test).name, "test_sha256": problem_hash(held_out)}
        ),
        uncertainty={name: column(expected.uncertainty[name]) for name in chosen if name in expected.uncertainty},
        quantiles={name: _levels(expected, name) for name in expected.quantiles},
    )
    emit(report, as_json=as_json, out=out, force=force)


def _levels(expected: Expectation, name: str) -> dict[str, list[Any]]:
    """Value, low and high end of each quantile of a quantity, at all steps, by its level."""
    from forgetting.expectation.intervals import LEVELS
    from forgetting.figures.items import column

    return {str(level): [column(part) for part in expected.quantile(name, level)] for level in LEVELS}


def levels_from(words: str | None) -> float | list[float] | None:
    """The standard deviations in a text: one number, or several with commas.

    >>> levels_from("0.5"), levels_from("0,1"), levels_from(None)
    (0.5, [0.0, 1.0], None)
    """
    if words is None:
        return None
    levels = [parse_number(word.strip()) for word in words.split(",")]
    if None in levels:
        raise InvalidInputError(f"--noise: expected numbers with commas, got {words!r:.60}")
    numbers = [float(level) for level in levels if level is not None]
    return numbers[0] if len(numbers) == 1 else numbers


def steps_from(words: str) -> list[int | float]:
    """The steps in a text: numbers with commas, or a range such as 10..1000, which gives 25 steps on a log scale; inf.

    >>> steps_from("1,10,1e3"), len(steps_from("1..1000")), steps_from("inf,7")
    ([1, 10, 1000], 23, [7, inf])
    """
    from forgetting.figures.items import spread_steps

    steps: list[int | float] = []
    for word in words.split(","):
        if word.strip() == "inf":
            steps.append(math.inf)
            continue
        ends = [_whole(part, words) for part in word.split("..")]
        if len(ends) > 2 or (len(ends) == 2 and not 1 <= ends[0] <= ends[1]):
            raise InvalidInputError(f"k: a range is first..last with 1 <= first <= last, got {word!r}")
        steps += ends if len(ends) == 1 else spread_steps(ends[1], 25, ends[0]).tolist()
    return sorted(set(steps))


def _whole(word: str, words: str) -> int:
    from forgetting.expectation.api import MOST_STEPS

    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if number > MOST_STEPS:
        raise InvalidInputError(f"k must be at most {MOST_STEPS:g}, got {number:g}")
    if not number >= 0 or not number.is_integer():
        raise InvalidInputError(f"k must be whole numbers with commas, or first..last, got {words!r:.60}")
    return int(number)


@reads_files
def weights_command(
    problem: Problem = None,
    k: Annotated[
        int | None,
        typer.Option(
            "--k",
            "-k",
            parser=as_steps,
            metavar="INTEGER",
            help="The least expected loss after k steps; left out: the fastest decay.",
            show_default=False,
        ),
    ] = None,
    scheme: Scheme = None,
    seed: Seed = None,
    as_json: Json = False,
    out: Out = None,
    force: Force = False,
    *,
    reading: Columns,
) -> None:
    """How often to draw each task: the best sampling weights.

    Beside the value that they reach stand those of uniform and norm-weighted draws.

    \b
    Examples:
      forgetting weights gaussian T=10 d=15 rank=2
      forgetting weights tasks.csv -k 100
      forgetting weights two_lines theta=0.5 -k 20 --scheme "ridge lam=0.1"
    """
    import forgetting as fg
    from forgetting.cli.interrupts import uninterrupted
    from forgetting.cli.output import diverging, emit, ready, result
    from forgetting.cli.problems import load_problem
    from forgetting.figures.items import Item, Table

    ready(out, force, problem)
    loaded = load_problem(problem, seed, reading)
    with uninterrupted(), diverging():
        weights = fg.optimal_weights(loaded.problem, "decay" if k is None else "loss", k, scheme)
    table = weights.to_table()
    items: list[Item] = [Table("probabilities", "Probabilities", "", table.columns, table.rows), weights.figure()]
    report = result(
        f"{loaded.name}: {weights.headline[:1].lower()}{weights.headline[1:]}",
        "weights",
        items,
        list(table.notes),
        **loaded.origin,
        method=weights.method,
        detail=weights.detail,
        goal=weights.goal,
        k=k,
        scheme=scheme or type(fg.schemes.natural_scheme(loaded.problem)).__name__,
        value=weights.value,
        least=weights.least,
        uniform=weights.uniform,
        norm_weighted=weights.norm_weighted,
    )
    emit(report, as_json=as_json, out=out, force=force)
