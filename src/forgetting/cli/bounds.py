"""forgetting bounds and forgetting table: every bound on some tasks, and the tables of the paper."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

import forgetting as fg
from forgetting.cli.options import LastStep, Orders, Scheme, grouped_options, steps_option
from forgetting.cli.output import Output, result, say, terminal_width
from forgetting.cli.problems import Source
from forgetting.core.text import nearest
from forgetting.errors import InvalidInputError
from forgetting.figures.items import Table
from forgetting.orderings.base import as_ordering

if TYPE_CHECKING:
    from forgetting.theory.bound import Row
    from forgetting.theory.evaluation import Evaluation

VACUOUS = "vacuous: no better than the trivial bound; 'worst >=' is what some tasks reach, not a bound on these"
REACHED = "reached: the largest share of the bound that any tasks were found to reach (bound.record)"
FORMATS = ("text", "markdown", "latex", "html")


@grouped_options
def bounds_command(
    ordering: Orders = "with-replacement",
    k: LastStep = None,
    scheme: Scheme = None,
    quantity: Annotated[
        str,
        typer.Option(
            help="loss, forgetting, regret, objective, averaged_objective, residual, error, averaged_loss, or all."
        ),
    ] = "loss,forgetting",
    everything: Annotated[
        bool, typer.Option("--all", help="List every variant of a bound, and those that do not apply, with the reason.")
    ] = False,
    programs: Annotated[
        bool, typer.Option("--programs", help="Solve the linear programs behind some bounds for these tasks.")
    ] = False,
    *,
    source: Source,
    output: Output,
) -> None:
    """Every known bound on these tasks, and which is tightest.

    \b
    Examples:
      forgetting bounds gaussian T=10 d=50 rank=3 -k 1000
      forgetting bounds tasks.csv -o without-replacement -k 20 --all
      forgetting bounds two_lines theta=0.1 --quantity loss --json
    """
    from forgetting.report.settings import ordering_name
    from forgetting.theory.statement import QUANTITIES

    output.check(source.words)
    wanted = QUANTITIES if quantity == "all" else tuple(dict.fromkeys(quantity.split(",")))
    for name in wanted:
        if name not in QUANTITIES:
            raise InvalidInputError(f"no quantity {name!r}{nearest(name, (*QUANTITIES, 'all'))}")
    loaded = source.load()
    order = as_ordering(ordering, loaded.problem.names)
    limit = order.limit(loaded.problem.num_tasks)
    k = k or (1000 if limit is None else limit)
    rows = fg.bounds.evaluate(loaded.problem, order, k, scheme=scheme, programs=programs)
    best = [row for name in wanted if (row := rows.tightest(name)) is not None]
    said = [f"tightest on the {row.quantity}: at most {row.value:.4g}, {row.bound.name}" for row in best]
    report = result(
        f"{loaded.name}, {ordering_name(order)}, k = {k}: bounds",
        "bounds",
        [*(_applying(rows, name) for name in wanted), *([_others(rows, wanted)] if everything else [])],
        [*(said or ["no upper bound applies; --all says why"]), VACUOUS, REACHED],
        **loaded.origin,
        method="closed forms",
        ordering=str(order),
        scheme=loaded.scheme_name(scheme),
        k=k,
    )

    def latex() -> str:
        tables = [rows.to_latex(name) for name in wanted if rows.applicable(name)]
        if not tables:
            raise InvalidInputError("no bound applies, so that there is no table to write; --all says why")
        return "\n".join(tables)

    folded = {} if everything else {table.key: table for table in (_applying(rows, name, True) for name in wanted)}
    output.emit(report, hidden=("key",), contents={".tex": latex}, shown=lambda table: folded.get(table.key, table))


def _applying(rows: Evaluation, quantity: str, folded: bool = False) -> Table:
    """The bounds that apply to a quantity, with the largest share of each that any tasks reached.

    Folded, those of one statement have one line, that of the first, beside the line of the tightest bound.
    """
    listed = rows.applicable(quantity)
    groups: dict[Any, list[Row]] = {}
    for place, row in enumerate(listed):
        alone = row.tightest or not folded
        groups.setdefault(place if alone else (row.bound.label, row.bound.kind), []).append(row)
    cells = []
    for row, *variants in groups.values():
        sign = {"upper": "<=", "lower": "worst >=", "rate": "O of", "floor": ">="}[row.bound.kind]
        remark = "" if row.bound.status == "holds as stated" else row.bound.status
        mark = "tightest" if row.tightest else "vacuous" if row.vacuous else remark
        reached = None if row.bound.record is None else row.bound.record.ratio
        more = f"+ {len(variants)} variant{'s' if len(variants) > 1 else ''}" if variants else ""
        cells.append(
            (sign, row.value, reached, row.bound.heading, row.bound.key, ", ".join(filter(None, (mark, more))))
        )
    columns = "", "value", "reached", "bound", "key", "remark"
    hidden = len(listed) - len(cells)
    notes = (f"--all lists {hidden} variants of these statements, too",) if hidden else ()
    return Table(f"bounds-{quantity}", f"Bounds on the {quantity}", "", columns, tuple(cells), notes)


def _others(rows: Evaluation, wanted: tuple[str, ...]) -> Table:
    """The bounds that do not apply, with the reason."""
    others = [row for row in rows if not row.applies and row.quantity in wanted]
    cells = tuple((row.bound.heading, row.bound.key, row.why_not) for row in others)
    return Table("others", "Bounds that do not apply", "", ("bound", "key", "why not"), cells)


@grouped_options
def table_command(
    name: Annotated[str, typer.Argument(help="regression, classification or sgd: Table 1, 2 or 3.")] = "regression",
    words: Annotated[
        list[str] | None, typer.Argument(metavar="PROBLEM", help="Tasks whose numbers to fill in.")
    ] = None,
    k: Annotated[int | None, steps_option("Fill in numbers at k steps.")] = None,
    style: Annotated[str, typer.Option("--format", help="text, markdown, latex or html.")] = "text",
    *,
    source: Source,
    output: Output,
) -> None:
    """The paper's three tables, in symbols or in numbers.

    \b
    Examples:
      forgetting table regression
      forgetting table regression gaussian T=10 d=50 rank=3 -k 1000
      forgetting table classification separable T=5 d=10 n=8 -k 1000
      forgetting table sgd -k 1000 --format latex
    """
    from forgetting.report.sections.guarantees import TITLES, bounds_table, paper_table
    from forgetting.theory.tables import table_named

    source = replace(source, words=words)
    output.check(source.words)
    name = table_named(name)
    if name not in TITLES:
        raise InvalidInputError(f"no table {name!r}{nearest(name, TITLES)}")
    if style not in FORMATS:
        raise InvalidInputError(f"no format {style!r}{nearest(style, FORMATS)}")
    if source.words and k is None:
        raise InvalidInputError("numbers need --k, the number of tasks learned")
    meta: dict[str, Any] = {"seed": source.seed or 0, "method": "closed forms", "k": k}
    numbers = None
    if k is not None and (name != "sgd" or source.words):
        loaded = source.load()
        numbers = fg.bounds.Setting.of(loaded.problem)
        meta |= loaded.origin
    paper = paper_table(name, k, numbers)
    if output.as_json or output.out is not None:
        report = result(f"Table: {name}", "table", [bounds_table(paper)], [], **meta)
        output.emit(report, contents={".tex": paper.to_latex})
        return
    formats = {"markdown": paper.to_markdown, "latex": paper.to_latex, "html": paper.to_html}
    say(paper.to_text(terminal_width()) if style == "text" else formats[style]().rstrip("\n"))
