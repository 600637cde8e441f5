"""
Orderings
=========

The same tasks under every ordering: expected loss, exactly where that is possible.
Greedy orderings look at the iterate before each step; the others do not.
"""

import matplotlib.pyplot as plt
import numpy as np

import forgetting as fg

tasks = fg.families.gaussian(T=8, d=14, rank=1, seed=3)
ks = np.arange(1, 81)
orderings = {
    "with replacement": fg.orderings.WithReplacement(),
    "reshuffled": fg.orderings.Reshuffled(),
    "cyclic": fg.orderings.Cyclic(),
    "greedy by distance": fg.orderings.GreedyDistance(),
}

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for name, ordering in orderings.items():
    expected = fg.expect(tasks, ordering, ks, quantities=("loss",))
    ax.semilogy(ks, expected.loss, label=f"{name} ({expected.method})")
ax.set(xlabel="k", ylabel="expected loss")
ax.legend()
plt.show()
