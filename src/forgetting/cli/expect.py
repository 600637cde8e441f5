"""forgetting expect and forgetting weights: expected values, and the sampling weights that make them least."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import forgetting as fg
from forgetting.cli.options import Orders, Scheme, Steps, grouped_options, steps_option
from forgetting.cli.output import Output, computing, result
from forgetting.cli.problems import Source
from forgetting.core.text import nearest
from forgetting.errors import InvalidInputError
from forgetting.expectation import Expectation, engines, quantities
from forgetting.expectation.api import MOST_STEPS
from forgetting.expectation.intervals import LEVELS
from forgetting.expectation.outcome import accuracy, undecided_means
from forgetting.expectation.request import PATIENCE
from forgetting.figures.items import Item, Table, column, spread_steps
from forgetting.files.tables import parse_number
from forgetting.orderings.base import as_ordering

STEPS = "1,10,100,1000"


def plain_quantities() -> list[str]:
    """The names of the quantities that have one value at each k, and not one for each task.

    >>> plain_quantities()[:3]
    ['loss', 'forgetting', 'regret']
    """
    return [name for name in quantities if not quantities.get(name).per_task]


@grouped_options
def expect_command(
    ordering: Orders = "with-replacement",
    k: Steps = STEPS,
    scheme: Scheme = None,
    quantity: Annotated[
        str, typer.Option(help=f"The quantities, with commas: {', '.join(plain_quantities())}.")
    ] = "loss,forgetting,regret",
    method: Annotated[str, typer.Option(help=f"auto, {', '.join(engines)}.")] = "auto",
    patience: Annotated[
        float, typer.Option(help="Seconds, as estimated, for exact values, else for a simulation.")
    ] = PATIENCE,
    runs: Annotated[int | None, typer.Option(min=1, help="Simulated runs, at most.")] = None,
    noise: Annotated[
        str | None,
        typer.Option(help="Standard deviation of the noise of labels: a number, or one for each task with commas."),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Held-out rows of the same tasks, read and prepared like PROBLEM, for test_loss and test_forgetting.",
        ),
    ] = None,
    device: Annotated[str | None, typer.Option(help="Where to compute: cuda or another torch device, or cupy.")] = None,
    *,
    source: Source,
    output: Output,
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
    from forgetting.report.provenance import problem_hash
    from forgetting.report.settings import ordering_name

    output.check(source.words)
    chosen = tuple(dict.fromkeys(quantity.split(",")))
    for name in chosen:
        if name not in plain_quantities():
            raise InvalidInputError(f"no quantity {name!r}{nearest(name, plain_quantities())}")
    loaded = source.load()
    order, steps = as_ordering(ordering, loaded.problem.names), steps_from(k)
    limit = order.limit(loaded.problem.num_tasks)
    if k == STEPS and limit is not None:  # the default, as far as this ordering goes
        steps = sorted({min(step, limit) for step in steps})
    held_out: dict[str, Any] = {}
    if test is not None:
        held_out["test"] = source.held_out(test, loaded.problem)
    with computing():
        expected = fg.expect(
            loaded.problem, order, steps, scheme, method=method, quantities=chosen, seed=loaded.seed, runs=runs,
            patience=patience, noise=levels_from(noise), device=device, **held_out,
        )  # fmt: skip
    named = f"{loaded.name}, {ordering_name(order)}"
    figure = expected.figure()
    items: list[Item] = [replace(expected.to_table(), key="expect", title="Expected values", notes=())]
    if not expected.exact:
        items = [simulated_table(expected, steps)]
    if figure is not None:
        items.append(replace(figure, key="curves", title=named, caption=expected.detail))
    said = [f"losses: {expected.unit}"] if expected.unit else []
    said += [*accuracy(expected), f"method: {expected.method}, {expected.detail}", *expected.notes]
    report = result(
        f"{named}: {expected.headline[:1].lower()}{expected.headline[1:]}",
        "expect",
        items,
        said,
        **loaded.origin,
        method=expected.method,
        detail=expected.detail,
        runs=expected.runs,
        confidence=expected.confidence,
        ordering=str(order),
        scheme=loaded.scheme_name(scheme),
        k=steps,
        **({} if noise is None else {"noise": levels_from(noise)}),
        **({} if test is None else {"test": Path(test).name, "test_sha256": problem_hash(held_out["test"])}),
        uncertainty={name: column(value) for name, value in expected.uncertainty.items()},
        quantiles={name: _levels(expected, name) for name in expected.quantiles},
    )
    output.emit(report)


def simulated_table(expected: Expectation, steps: Sequence[float]) -> Table:
    """A row for each quantity and step: the mean, its interval, and where intervals say little also the median."""
    medians = bool(undecided_means(expected))
    heads = ("k", "quantity", "value", "low", "high", *(("median", "median low", "median high") if medians else ()))
    rows: list[tuple[Any, ...]] = []
    for name, value in expected.values.items():
        parts = [value, *np.moveaxis(expected.interval(name), -1, 0), *(expected.median(name) if medians else ())]
        rows += [(k, name, *numbers) for k, *numbers in zip(steps, *map(column, parts), strict=True)]
    return Table("expect", "Expected values", "", heads, tuple(rows))


def _levels(expected: Expectation, name: str) -> dict[str, list[Any]]:
    """Value, low and high end of each quantile of a quantity, at all steps, by its level."""
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
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if number > MOST_STEPS:
        raise InvalidInputError(f"k must be at most {MOST_STEPS:g}, got {number:g}")
    if not number >= 0 or not number.is_integer():
        raise InvalidInputError(f"k must be whole numbers with commas, or first..last, got {words!r:.60}")
    return int(number)


@grouped_options
def weights_command(
    k: Annotated[
        int | None,
        steps_option("The least expected loss after k steps; left out: the fastest decay."),
    ] = None,
    scheme: Scheme = None,
    *,
    source: Source,
    output: Output,
) -> None:
    """How often to draw each task: the best sampling weights.

    Beside the value that they reach stand those of uniform and norm-weighted draws.

    \b
    Examples:
      forgetting weights gaussian T=10 d=15 rank=2
      forgetting weights tasks.csv -k 100
      forgetting weights two_lines theta=0.5 -k 20 --scheme "ridge lam=0.1"
    """
    output.check(source.words)
    loaded = source.load()
    with computing():
        weights = fg.optimal_weights(loaded.problem, "decay" if k is None else "loss", k, scheme)
    table = weights.to_table()
    report = result(
        f"{loaded.name}: {weights.headline[:1].lower()}{weights.headline[1:]}",
        "weights",
        [replace(table, key="probabilities", title="Probabilities", notes=()), weights.figure()],
        table.notes,
        **loaded.origin,
        method=weights.method,
        detail=weights.detail,
        goal=weights.goal,
        k=k,
        scheme=loaded.scheme_name(scheme),
        value=weights.value,
        least=weights.least,
        uniform=weights.uniform,
        norm_weighted=weights.norm_weighted,
    )
    output.emit(report)
