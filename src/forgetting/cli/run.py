"""forgetting run."""

from __future__ import annotations

from typing import Any

from forgetting.cli.options import Force, Json, Orders, Out, Problem, Scheme, Seed, Step, reads_files
from forgetting.tasks.readers.sheet import Columns

ROWS = 12
RECORDED = 2000


@reads_files
def run_command(
    problem: Problem = None,
    ordering: Orders = "with-replacement",
    k: Step = 100,
    scheme: Scheme = None,
    seed: Seed = None,
    as_json: Json = False,
    out: Out = None,
    force: Force = False,
    *,
    reading: Columns,
) -> None:
    """Learn k tasks; loss, forgetting and regret on the way.

    \b
    Examples:
      forgetting run gaussian T=10 d=50 rank=3 -k 200
      forgetting run catastrophic eps=0.5 --ordering cyclic -k 289
      forgetting run tasks.npz --scheme "sgd step_size=0.5" --out run.csv
      forgetting run my.toml --scheme "weakly-regularized log_lambda=-50"
    """
    import numpy as np

    import forgetting as fg
    from forgetting.cli.interrupts import uninterrupted
    from forgetting.cli.output import diverging, emit, not_finite, ready, result
    from forgetting.cli.problems import load_problem
    from forgetting.core.arrays import as_count
    from forgetting.figures.items import Curves, Series, Table, column
    from forgetting.orderings.base import NO_UPDATE
    from forgetting.report.settings import ordering_name

    ready(out, force, problem)
    k = as_count(k, "k", least=1)
    loaded = load_problem(problem, seed, reading)
    every = np.unique(np.linspace(0, k, min(k, RECORDED) + 1).round().astype(int))
    with uninterrupted(), diverging():
        made = fg.run(loaded.problem, ordering, k, scheme, loaded.seed, record_every=every.tolist())
        steps = made.steps[1:]
        columns: dict[str, Any] = {
            "loss": made.losses[1:],
            "forgetting": made.forgetting[steps - 1],
            "regret": made.regret[steps - 1],
        }
        last = column(made.iterates[-1])
    tasks = [None if task == NO_UPDATE else task for task in made.order[steps - 1].tolist()]
    rows = zip(steps.tolist(), tasks, *map(column, columns.values()), strict=True)
    table = Table("run", "Step by step", "", ("step", "task", *columns), tuple(rows))
    figure = Curves(
        "curves",
        f"{loaded.name}, {ordering_name(made.ordering)}",
        "One run.",
        "k, tasks learned",
        "loss, forgetting, regret",
        tuple(
            Series(name, column(steps), column(values), method="run", group=i)
            for i, (name, values) in enumerate(columns.items())
        ),
        floor=1e-300,
    )
    report = result(
        f"{loaded.name}, {ordering_name(made.ordering)}, {made.scheme}: {k} tasks",
        "run",
        [table, figure],
        [made.status, *not_finite(columns.values(), [made.status]), f"loss {made.losses[0]:.4g} at the start"],
        **loaded.origin,
        method="run",
        ordering=str(made.ordering),
        scheme=str(made.scheme),
        k=k,
        order=made.order.tolist(),
        w=last,
    )
    emit(report, as_json=as_json, out=out, force=force, rows=ROWS)
