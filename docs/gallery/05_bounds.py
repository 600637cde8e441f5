"""
Which guarantee is tightest?
============================

Every bound knows its formula, its assumptions and where it comes from, and is evaluated on the tasks at hand.
"""

import forgetting as fg

tasks = fg.families.gaussian(T=20, d=60, rank=2, seed=0)
found = fg.bounds.evaluate(tasks, fg.orderings.WithReplacement(), k=1000)
print(found)

# %%
# From which k on does which bound win?

print(fg.bounds.crossovers(d=100, T=50, rank_avg=5, rows="stated"))

# %%
# The paper's Table 1, with numbers put in:

print(fg.bounds.table("regression", d=100, T=50, rank_avg=5, k=40))
