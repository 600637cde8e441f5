"""
An audit of real data
=====================

Handwritten digits, rotated a little further in every task. How similar are the tasks,
what does each order lead to by training loss, held-out loss and accuracy, and how much
of the low forgetting is the order?
"""

import matplotlib.pyplot as plt
import numpy as np

import forgetting as fg
from forgetting.auditing import digits

every = digits("rotated", tasks=6, rows=30)
pairs = [every.task(m) for m in range(6)]
tasks = every.with_data([X[:6] for X, _ in pairs], [y[:6] for _, y in pairs])
test = every.with_data([X[6:] for X, _ in pairs], [y[6:] for _, y in pairs])
found = fg.audit(tasks, test=test, seed=0)
print(found)

# %%
# All 720 orders, each learned once, by every measure: where are the given order and the
# orders that forget least and most?

fig, panels = plt.subplots(len(found.measures), figsize=(6, 7), layout="constrained")
for ax, measure in zip(panels, found.measures, strict=True):
    ax.hist(measure.values, bins=40, color="0.75")
    for name, value in (
        ("given", measure.given),
        ("best", measure.best),
        ("worst", measure.worst),
    ):
        ax.axvline(
            value, color={"given": "C0", "best": "C2", "worst": "C3"}[name], label=name
        )
    ax.set(xlabel=f"{measure.name}, mean over tasks", ylabel="orders")
panels[0].legend()
plt.show()

# %%
# Who forgets whom: the mean increase of the loss of a task (row) while another one
# (column) is learned.

fig, ax = plt.subplots(figsize=(4.5, 3.8), layout="constrained")
mesh = ax.pcolormesh(np.array(found.influence), cmap="viridis")
places = np.arange(tasks.num_tasks)
ax.set(xlabel="learned", ylabel="forgotten", aspect="equal")
ax.set(xticks=places + 0.5, xticklabels=places, yticks=places + 0.5, yticklabels=places)
ax.grid(False)
ax.invert_yaxis()
fig.colorbar(mesh)
plt.show()
