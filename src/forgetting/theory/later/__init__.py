"""Statements of other sources, before and after the paper, and those that are proved here.

Their numbers are converted once to losses with the factor 1/2. S = |w_0 - w*|^2 R^2 and r = rank_avg. Lower bounds are
worst cases over tasks: some tasks with these parameters reach them, which says nothing about given tasks.
"""

# ruff: noqa: F401, I001  (the files register their statements, in this order)
from forgetting.theory.later import published_rates
from forgetting.theory.later import one_over_k
from forgetting.theory.later import conjectures
from forgetting.theory.later import proved_here
from forgetting.theory.later import reshuffled_epochs
from forgetting.theory.later import reshuffling
from forgetting.theory.later import ridge_strengths
from forgetting.theory.later import swartworth2023
from forgetting.theory.later import table_of_sgd
from forgetting.theory.later import worst_cases
from forgetting.theory.later import unsolved
from forgetting.theory.later import xu_ma2026
