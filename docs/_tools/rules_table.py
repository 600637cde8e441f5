"""The table of docs/learning-rules.md: which expectations of each learning rule are exact, and by which method.

`python docs/_tools/rules_table.py docs/learning-rules.md` writes the table between its two marks.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

import forgetting as fg
from forgetting import schemes

RULES = {
    "Kaczmarz, SGD, Ridge, FiniteSteps": schemes.Ridge(0.5),
    '`Ridge("increasing")` and other named strengths': schemes.Ridge("increasing"),
    "`Scheduled` of linear schemes": schemes.Scheduled(lambda t: schemes.Ridge(0.1 * t)),
    "`Decay` of linear schemes": schemes.Decay(0.9, schemes.Kaczmarz()),
    "`GeneralizedRidge`": schemes.GeneralizedRidge(np.diag([1.0, 2.0, 3.0]) + 0.5),
    "`EWC`, gamma = 1": schemes.EWC(0.7),
    "`EWC`, gamma < 1": schemes.EWC(0.7, gamma=0.8),
    "`Replay`, first or last rows of each task": schemes.Replay(schemes.Ridge(0.5), memory=1),
    "`Replay`, rows in all": schemes.Replay(memory=2, policy="ring", per="all"),
    "`Replay`, hard rows": schemes.Replay(memory=1, policy="hard"),
    "`Replay`, a reservoir": schemes.Replay(memory=1, policy="reservoir"),
}
ORDERINGS = {
    "with replacement": fg.orderings.WithReplacement([1, 2, 3]),
    "without": fg.orderings.WithoutReplacement(),
    "reshuffled": fg.orderings.Reshuffled(),
    "given": [0, 2, 1],
    "greedy": fg.orderings.GreedyDistance(),
}
FOLLOWED = {
    "moments": "exact",
    "subsets": "exact: sets of tasks",
    "deterministic": "exact: one run",
    "listing": "exact where all orders can be listed",
    "monte-carlo": "simulated",
}
SEEN = {"set": "exact: sets of tasks", "multiset": "exact: visits to each task", "order": "exact: orders so far"}


def tasks(kind: str) -> fg.RegressionTasks:
    """Three tasks of two rows in three dimensions: "realizable", "noisy" or with "two outputs"."""
    rng = np.random.default_rng(0)
    matrices = [rng.standard_normal((2, 3)) for _ in range(3)]
    w = rng.standard_normal((3, 2) if kind == "two outputs" else 3)
    noise = 0.0 if kind == "realizable" else 0.3
    return fg.RegressionTasks(matrices, [A @ w + noise * rng.standard_normal((A @ w).shape) for A in matrices])


def value(kind: str, rule: str, ordering: str) -> fg.Expectation:
    """The expectation of a cell after three steps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fg.expect(tasks(kind), ORDERINGS[ordering], 3, scheme=RULES[rule], runs=64)


def cell(rule: str, ordering: str) -> str:
    """How the values of a cell are obtained, in words."""
    found = value("noisy", rule, ordering)
    scheme = RULES[rule]
    if found.method == "seen":
        return "exact: one run" if ordering == "given" else SEEN[scheme.memory_law]
    if found.method == "monte-carlo":
        return "simulated: rows are drawn" if scheme.random else "simulated"
    if found.method == "listing" and scheme.memory_law == "iterate":
        return "exact where all orders can be listed; else simulated, as rows depend on w"
    if found.method == "listing":
        return "exact where all orders can be listed; else simulated"
    return FOLLOWED[found.method]


def table() -> str:
    """The table in Markdown."""
    lines = [f"| rule | {' | '.join(ORDERINGS)} |", "|---|" + "---|" * len(ORDERINGS)]
    lines += [f"| {rule} | {' | '.join(cell(rule, ordering) for ordering in ORDERINGS)} |" for rule in RULES]
    return "\n".join(lines)


BEGIN, END = "<!-- the table of rules_table.py -->", "<!-- the end of the table -->"

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    page = parser.parse_args().page
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    page.write_text(f"{before}{BEGIN}\n\n{table()}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")
