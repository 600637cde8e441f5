"""Every guarantee on continual linear models: what it says, where it applies, and which one is tightest.

>>> import forgetting as fg
>>> tasks = fg.families.gaussian(T=10, d=50, rank=2, seed=0)
>>> rows = fg.bounds.evaluate(tasks, fg.orderings.WithoutReplacement(), k=10)
>>> rows.tightest("forgetting").bound.title
'trivial'
>>> print(fg.bounds.get("thm:cl_by_sgd_wor/forgetting").formula)
min(7/(k-1)^(1/4), (d - r + 1)/(k-1)) S
"""

from forgetting.bounds import classification, paper, prior, sampling, sgd  # noqa: F401  (they register their bounds)
from forgetting.bounds.crossing import Crossovers, Stretch, crossovers
from forgetting.bounds.evaluation import Evaluation, Row, evaluate
from forgetting.bounds.registry import Bound, Condition, Range, all_bounds, declare, get, register
from forgetting.bounds.setting import Setting
from forgetting.bounds.tables import Cell, Table, table

__all__ = [
    "Bound",
    "Cell",
    "Condition",
    "Crossovers",
    "Evaluation",
    "Range",
    "Row",
    "Setting",
    "Stretch",
    "Table",
    "all_bounds",
    "crossovers",
    "declare",
    "evaluate",
    "get",
    "register",
    "table",
]
