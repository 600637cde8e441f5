"""
Which guarantee is tightest?
============================

Every bound knows its formula, its assumptions and where it comes from, and is evaluated
on the tasks at hand.
"""

import matplotlib.pyplot as plt
import numpy as np

import forgetting as fg

tasks = fg.families.gaussian(T=20, d=60, rank=2, seed=0)
order = fg.orderings.WithReplacement()
print(fg.bounds.evaluate(tasks, order, k=1000).tightest("forgetting"))

# %%
# Beside the exact expectation, each bound over the k that it covers:

ks = np.unique(np.geomspace(1, 10**4, 60).astype(int))
curves = {}
for k in ks.tolist():
    for row in fg.bounds.evaluate(tasks, order, k):
        if row.applies and row.quantity == "forgetting" and row.bound.kind == "upper":
            curves.setdefault(row.bound.key, []).append((k, row.value))

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for points in curves.values():
    ax.loglog(*np.transpose(points), lw=0.8, color="0.7")
for key in ("thm:random_convergence_rate/forgetting", "thm:cl_by_sgd_main/forgetting"):
    ax.loglog(*np.transpose(curves[key]), "--", label=key)
exact = fg.expect(tasks, order, ks[1:], quantities=("forgetting",))
ax.loglog(ks[1:], exact.forgetting, "k", label="expected forgetting, exact")
ax.set(xlabel="k", ylabel="forgetting", ylim=(1e-9, 1e3))
ax.legend(loc="lower left")
plt.show()

# %%
# From which k on does which bound win?

print(fg.bounds.crossovers(d=100, T=50, rank_avg=5, rows="stated"))

# %%
# The paper's Table 1, with numbers put in:

print(fg.bounds.table("regression", d=100, T=50, rank_avg=5, k=40))
