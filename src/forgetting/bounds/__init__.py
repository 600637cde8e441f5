"""Bounds on continual linear models: every guarantee, where it applies, and which one is tightest.

>>> import forgetting as fg
>>> tasks = fg.families.gaussian(T=10, d=50, rank=2, seed=0)
>>> rows = fg.bounds.evaluate(tasks, fg.orderings.WithoutReplacement(), k=10)
>>> rows.tightest("forgetting").bound.name
'single pass in random order at rate 1/k'
>>> print(fg.bounds.get("thm:cl_by_sgd_wor/forgetting").formula)
min(7/(k-1)^(1/4), (d - r + 1) / (k-1)) S
"""

from forgetting.core.names import only
from forgetting.theory.bibliography import bibtex as cite
from forgetting.theory.bound import Bound, Row
from forgetting.theory.bound import declare_bound as declare
from forgetting.theory.bound import register_bound as register
from forgetting.theory.crossing import Crossovers, Stretch, crossovers
from forgetting.theory.evaluation import Evaluation, evaluate
from forgetting.theory.misfit import Misfit
from forgetting.theory.registry import all_bounds
from forgetting.theory.registry import get_bound as get
from forgetting.theory.registry import unregister_bound as unregister
from forgetting.theory.setting import Setting
from forgetting.theory.statement import Condition, Range
from forgetting.theory.tables import Cell, Table, table

__all__ = [
    "Bound",
    "Cell",
    "Condition",
    "Crossovers",
    "Evaluation",
    "Misfit",
    "Range",
    "Row",
    "Setting",
    "Stretch",
    "Table",
    "all_bounds",
    "cite",
    "crossovers",
    "declare",
    "evaluate",
    "get",
    "register",
    "table",
    "unregister",
]
__dir__ = only(__all__)
