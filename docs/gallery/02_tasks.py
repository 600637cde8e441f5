"""
Tasks and their angles
======================

The outcome of a run depends on the data only through the row spaces of the tasks.
Principal angles say how similar two tasks are; a family with prescribed angles shows
what similarity does to forgetting.
"""

import matplotlib.pyplot as plt
import numpy as np

import forgetting as fg

angles = np.linspace(0.05, np.pi / 2, 40)
cycle = fg.orderings.Cyclic()
once, often = [], []
for angle in angles:
    pair = fg.families.principal_angles([angle])
    run = fg.run(pair, cycle, k=20)
    once.append(run.forgetting[1])
    often.append(run.forgetting[19])

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.plot(
    np.degrees(angles),
    np.array(once) / pair.scale,
    label="after both were learned once",
)
ax.plot(np.degrees(angles), np.array(often) / pair.scale, label="after ten rounds")
ax.set(xlabel="principal angle, degrees", ylabel="forgetting / scale")
fig.legend(loc="outside upper left", ncols=2)
plt.show()

# %%
# Equal tasks and orthogonal tasks are not forgotten; those in between are, and small
# angles stay forgotten longest.
#
# All statistics of the paper are attributes of a collection:

print(pair)
print(
    "ranks",
    pair.ranks,
    " R",
    round(pair.radius, 3),
    " |w*|^2 R^2",
    round(pair.scale, 3),
)
