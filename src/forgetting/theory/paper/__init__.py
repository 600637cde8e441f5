"""The statements of "From Continual Learning to SGD and Back" (Evron et al. 2026), a file for each section or appendix.

They are declared in the order of the paper; what an appendix proves stands beside what it states where both are short.
"""

# ruff: noqa: F401, I001  (the files register their statements, in this order)
from forgetting.theory.paper import nothing_forgotten
from forgetting.theory.paper import kaczmarz_and_sgd
from forgetting.theory.paper import regression_rates
from forgetting.theory.paper import last_iterate
from forgetting.theory.paper import extensions
from forgetting.theory.paper import loss_and_forgetting
from forgetting.theory.paper import map_q
from forgetting.theory.paper import stability
from forgetting.theory.paper import stable_steps
from forgetting.theory.paper import mean_norm
