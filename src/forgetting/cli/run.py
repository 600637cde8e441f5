"""forgetting run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import forgetting as fg
from forgetting.cli.options import Orders, Scheme, Step, grouped_options
from forgetting.cli.output import Output, computing, result, without
from forgetting.cli.problems import Source
from forgetting.figures.items import column

ROWS = 12  # of the table, in the terminal
RECORDED = 2000


@grouped_options
def run_command(
    ordering: Orders = "with-replacement", k: Step = 100, scheme: Scheme = None, *, source: Source, output: Output
) -> None:
    """Learn k tasks; loss, forgetting and regret on the way.

    \b
    Examples:
      forgetting run gaussian T=10 d=50 rank=3 -k 200
      forgetting run catastrophic eps=0.5 --ordering cyclic -k 289
      forgetting run tasks.npz --scheme "sgd step_size=0.5" --out run.csv
      forgetting run my.toml --scheme "weakly-regularized log_lambda=-50"
    """
    from forgetting.report.settings import ordering_name

    output.check(source.words)
    loaded = source.load()
    every = np.unique(np.linspace(0, k, min(k, RECORDED) + 1).round().astype(int))
    with computing():
        made = fg.run(loaded.problem, ordering, k, scheme, loaded.seed, record_every=every.tolist())
        steps, figure, last = made.to_table(), made.figure(), made.iterates[-1]
    table = without(replace(steps, key="run", title="Step by step", rows=steps.rows[1:], notes=()), ["name"])
    named = f"{loaded.name}, {ordering_name(made.ordering)}"
    report = result(
        f"{named}, {made.scheme}: {k} tasks",
        "run",
        [table, replace(figure, key="curves", title=named, caption="One run.")],
        [
            made.status,
            f"loss {made.losses[0]:.4g} at the start",
        ],
        **loaded.origin,
        method="run",
        ordering=str(made.ordering),
        scheme=str(made.scheme),
        k=k,
        order=made.order.tolist(),
        w=column(last),
    )
    output.emit(report, rows=ROWS)
