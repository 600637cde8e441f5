"""
Classification, and its limit
=============================

Learning separable data with ever weaker regularisation becomes, in direction, a
projection onto the set of weights with margin 1. With L = log(1/lambda) the angle
between the two falls like 1/L.
"""

import matplotlib.pyplot as plt
import numpy as np

import forgetting as fg

tasks = fg.families.separable(T=4, d=6, n=8, margin=0.2, seed=1)
levels = np.logspace(1, 4, 10)
curve = fg.reductions.classification_to_pocs(
    tasks, fg.orderings.Explicit([0, 1, 2, 3]), 4, -levels
)

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for step in range(4):
    ax.loglog(levels, curve.angles[:, step], "o-", ms=3, label=f"step {step + 1}")
ax.loglog(levels, 3 / levels, "k:", label="1/L")
ax.set(xlabel="L = log(1/lambda)", ylabel="angle to the projections")
ax.legend()
plt.show()

# %%
# Projections of separable tasks, and the rate that holds for all of them.

order = fg.orderings.WithReplacement()
expected = fg.expect(tasks, order, [10, 100], runs=500)
print(expected)
print(fg.bounds.evaluate(tasks, order, 100).tightest("forgetting"))
