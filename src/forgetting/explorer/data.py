"""What the page knows beside its scripts: bounds, the largest known values, families, and the tasks of the user."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from forgetting._version import __version__
from forgetting.core.text import one_line
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.explorer.javascript import Translator, Untranslatable
from forgetting.figures.items import spread_steps
from forgetting.orderings import Cyclic, Explicit, GreedyDistance, WithoutReplacement, WithReplacement
from forgetting.schemes import SGD, Kaczmarz, Ridge, Scheme
from forgetting.tasks import Problem, RegressionTasks, families
from forgetting.tasks.problem import as_problem
from forgetting.theory.bound import Bound
from forgetting.theory.expression import power_left
from forgetting.theory.later.one_over_k import gap_rate
from forgetting.theory.later.rate_constants import LAST, beyond, fresh, least_fresh, lines_of, stored_lines
from forgetting.theory.registry import all_bounds
from forgetting.theory.setting import describe_ordering, describe_scheme
from forgetting.worstcase import frontier

MOST_TASKS = 12
MOST_DIMENSIONS = 12
MOST_ROWS = 72  # of all tasks together
MOST_STEPS = 1000
EVERY = 64  # up to which each k has its bounds
ENDS = (10, 30, 100, 300, MOST_STEPS)  # the last k of the curves, one of which is chosen
STEPS = tuple(sorted({*range(1, EVERY + 1), *map(int, spread_steps(MOST_STEPS, 110)), *ENDS}))
TASKS = range(1, MOST_TASKS + 1)
SHOWN = ("loss", "forgetting")
#: Python functions that bounds.js has a counterpart of
PROGRAMS: Mapping[Callable[..., Any], str] = {fresh: "fresh", least_fresh: "leastFresh", gap_rate: "gapRate"}
#: the orderings and the schemes of the page, for the names by which bounds cover them
ORDERINGS = {
    "with": WithReplacement(),
    "without": WithoutReplacement(),
    "cyclic": Cyclic(),
    "given": Explicit([0, 1, 1]),
    "greedy": GreedyDistance(repeat=False),
    "greedy-again": GreedyDistance(),
}
SCHEMES: Mapping[str, Scheme] = {
    "kaczmarz": Kaczmarz(), "sgd": SGD(0.5), "sgd-long": SGD(2.5), "ridge": Ridge(1.0), "ridge-fixed": Ridge("fixed"),
    "ridge-increasing": Ridge("increasing"),
}  # fmt: skip


def page_data(problem: Problem | None) -> dict[str, Any]:
    """All numbers and names of the page, without the formulas of bounds.

    >>> data = page_data(None)
    >>> data["steps"][:3], data["own"], data["tags"]["cyclic"]
    ((1, 2, 3), None, ['any', 'cyclic'])
    """
    return {
        "version": __version__,
        "steps": STEPS,
        "ends": ENDS,
        "tags": {name: sorted(describe_ordering(ordering)) for name, ordering in ORDERINGS.items()},
        "schemes": {name: sorted(describe_scheme(scheme)[0]) for name, scheme in SCHEMES.items()},
        "fitted": {name: [scheme.known_as] if scheme.depends_on_k else [] for name, scheme in SCHEMES.items()},
        "fresh": [fresh(n) for n in range(MOST_STEPS + 1)],
        "lines": {
            form: [[(line.share, line.most) for line in lines_of(form, n)] for n in range(LAST + 1)]
            for form in ("rank", "mean")
        },
        "beyond": {form: beyond(form, 0) for form in ("rank", "mean")},
        "longLines": {
            form: [(line.share, line.most) for line in stored_lines()[form]["large"]] for form in ("rank", "mean")
        },
        "worst": {quantity: worst_values(quantity) for quantity in SHOWN},
        "stored": stored_families(),
        "own": None if problem is None else own_tasks(problem),
        "limits": {"tasks": MOST_TASKS, "dimensions": MOST_DIMENSIONS, "rows": MOST_ROWS},
    }  # fmt: skip


@cache
def worst_values(quantity: str) -> list[list[Any]]:
    """For draws with replacement [T, k, largest known value, whether nothing is worse], at |w_0 - w*| R = 1.

    The last is true where an upper bound on what any T tasks reach has the first four digits of the value.

    >>> [[T, k, round(value, 5), certified] for T, k, value, certified in worst_values("loss")][:1]
    [[2, 1, 0.14815, True]]
    """
    rows = frontier(quantity, T=list(TASKS)).rows
    return [
        [row.T, row.k, row.value, bool(row.upper.value <= row.value * (1 + 1e-4))]
        for row in rows
        if row.entry is not None and row.k <= MOST_STEPS
    ]


@cache
def stored_families() -> dict[str, Any]:
    """Families that the package makes, and the page only shows."""
    pairs = (3, 1), (3, 4), (4, 1)
    worst = {f"worst-{T}-{k}": (f"the worst {T} tasks, k = {k}", _worst_tasks(T, k)) for T, k in pairs}
    made = {
        "levels": ("levels", families.levels((1.4, 5.0), sizes=(1, 3, 3), k=20)),
        "greedy_failure": ("greedy order fails", families.greedy_failure(MOST_DIMENSIONS)),
        **{key: entry for key, entry in worst.items() if entry[1] is not None},
    }
    return {key: {"title": title, **tasks_data(tasks)} for key, (title, tasks) in made.items()}  # type: ignore[arg-type]


def _worst_tasks(T: int, k: int) -> RegressionTasks | None:
    entry = frontier("loss").best(T=T, k=k)
    return entry.tasks if entry is not None and entry.d <= MOST_DIMENSIONS else None


def tasks_data(tasks: RegressionTasks) -> dict[str, Any]:
    """Rows and solution as they are."""
    return {"X": [tasks.task(m)[0].tolist() for m in range(tasks.num_tasks)], "w": tasks.w_star.tolist()}


def own_tasks(problem: Problem) -> dict[str, Any]:
    """The user's tasks in their joint row space: rows diag(sigma_m) U_m, labels and what no w can fit.

    >>> own = own_tasks(families.gaussian(T=3, d=500, rank=2, seed=0))
    >>> len(own["X"]), len(own["X"][0]), len(own["X"][0][0]), own["d"], own["realizable"]
    (3, 2, 6, 500, True)
    """
    linear = as_problem(problem).linear
    if linear is None or linear.geometry is None:
        raise NotSupportedError(f"the explorer shows linear tasks, and not {problem}; fg.run and fg.audit take it")
    geometry, T = linear.geometry, linear.num_tasks
    blocks = [geometry.block(int(geometry.index[task])) for task in range(T)]
    rows = sum(block.stop - block.start for block in blocks)
    numbers = (("tasks", T, MOST_TASKS), ("dimensions of the joint row space", geometry.dim, MOST_DIMENSIONS),
               ("independent rows", rows, MOST_ROWS))  # fmt: skip
    for words, number, most in numbers:
        if number > most:
            raise InvalidInputError(
                f"the tasks have {number} {words}, and the explorer shows at most {most}: choose some of them, or "
                "sub-sample their rows; fg.expect takes all"
            )
    if geometry.dim == 0:
        raise InvalidInputError("all tasks have only rows of zeros, so that there is nothing to show")
    solution, targets = np.atleast_2d(geometry.solution), np.atleast_2d(geometry.targets)
    labels = geometry.sigma * (solution @ geometry.rows.T + targets)
    scaled = geometry.sigma[:, None] * geometry.rows
    return {
        "X": [scaled[block].tolist() or [[0.0] * geometry.dim] for block in blocks],
        "w": solution.tolist(),
        "labels": [[value for block in blocks for value in (column[block].tolist() or [0.0])] for column in labels],
        "floors": [float(geometry.unexplained[int(task)]) for task in geometry.index],
        "realizable": bool(linear.realizability.holds),
        "d": None if linear.kernel is not None else linear.dim,
        "turned": [float(geometry.turned[int(task)]) for task in geometry.index],
        "names": [one_line(str(name), 40) for name in linear.names],
    }


def bounds_source() -> str:
    """The bounds on the loss and on the forgetting as JavaScript: `BOUNDS`, with the names of those left out."""
    translator = Translator(STEPS, TASKS, PROGRAMS)
    covered = {tag for ordering in ORDERINGS.values() for tag in describe_ordering(ordering)} | {"norm-weighted"}
    learned = {tag for scheme in SCHEMES.values() for tag in describe_scheme(scheme)[0]}
    shown, unshown = [], []
    for bound in all_bounds():
        if bound.quantity not in SHOWN or "regression" not in bound.problems or bound.status == "refuted":
            continue
        if covered.isdisjoint(bound.orderings) or learned.isdisjoint(bound.schemes) or "previous_loss" in bound.needs:
            continue
        try:
            shown.append(_bound_source(bound, translator))
        except Untranslatable:
            unshown.append({"name": bound.name, "noisy": bound.noisy})
    power = translator.function(power_left, "lost", "left", "times")
    listed = ",\n".join(shown)
    made = f"list:[\n{listed}],powerLeft:{power},unshown:{json.dumps(unshown)}"
    return f"const BOUNDS=(()=>{{\n{translator.source()}\nreturn {{{made}}};}})();"


def _bound_source(bound: Bound, translator: Translator) -> str:
    value = translator.formula(bound.compute)
    conditions = "&&".join(translator.formula(condition.holds) for condition in bound.conditions) or "true"
    words = {
        "key": bound.key, "name": bound.name, "quantity": bound.quantity, "kind": bound.kind, "origin": bound.origin,
        "status": bound.status, "orderings": bound.orderings, "schemes": bound.schemes, "needs": bound.needs,
        "formula": bound.formula, "first": bound.range.first, "last": bound.range.last, "every": bound.range.every,
        "noisy": bound.noisy,
    }  # fmt: skip
    return f"{{...{json.dumps(words)},holds:(s,k)=>{conditions},value:(s,k)=>{value}}}"
