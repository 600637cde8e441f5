"""
An audit of real data
=====================

Handwritten digits, rotated a little further in every task. How similar are the tasks,
what does each order lead to, and how much of the low forgetting is the random order?
"""

import matplotlib.pyplot as plt
import numpy as np

import forgetting as fg
from forgetting.auditing import digits

tasks = digits("rotated", tasks=6, rows=6)
found = fg.audit(tasks, seed=0)
print(found)

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
