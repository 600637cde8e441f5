"""
A study: how far are guarantees from what happens?
==================================================

"A guarantee on forgetting holds for all tasks. How much of it do ordinary tasks use,
and what does that depend on: k, T, d, or the rank?"

675 problems with random tasks: all combinations of three numbers of tasks T, three
dimensions d and three ranks, each drawn 25 times. For each, the expected forgetting
after k steps in random order, exactly, and the smallest upper bound that this library
knows for these tasks. A `Study` computes them in two processes. With a file as `store`
in place of None, every finished problem would be kept at once.
"""

import matplotlib.pyplot as plt
import numpy as np

import forgetting as fg

study = fg.Study.grid(
    family="gaussian",
    T=[3, 6, 12],
    d=[12, 24, 48],
    rank=[1, 2, 4],
    k=[3, 10, 30, 100],
    bounds=True,
    repeats=25,
    store=None,
).run(jobs=2, progress=False)
print(study.status)

# %%
# Each row has the value, its bound, and the name of the bound. What follows is pandas.

table = study.to_frame()
table["share"] = table["forgetting"] / table["forgetting_bound"]
assert (table["share"] < 0.07).all()
print(f"the largest share of a guarantee that is used: {table['share'].max():.1%}")
for k, rows in table.groupby("k"):
    print(f"k = {k}: half of all problems use less than {rows['share'].median():.2g}")

# %%
# No problem uses more than 7 % of its guarantee: guarantees are for the worst tasks,
# and random tasks are far from those. In the end the share falls with k, since
# guarantees fall like a power of k and forgetting exponentially. One by one:

fig, axes = plt.subplots(1, 4, figsize=(9, 3), sharey=True, layout="constrained")
for ax, name in zip(axes, ("k", "T", "d", "rank"), strict=True):
    levels = table.groupby(name)["share"].quantile([0.05, 0.5, 0.95]).unstack()
    ax.fill_between(levels.index, levels[0.05], levels[0.95], alpha=0.2)
    ax.plot(levels.index, levels[0.5], "o-")
    ax.set(xscale="log", yscale="log", xlabel=name, ylim=(1e-9, 1))
    ax.set_xticks(levels.index, [str(value) for value in levels.index], minor=False)
    ax.minorticks_off()
axes[0].set_ylabel("share of the guarantee")
plt.show()

# %%
# The medians (lines) change by a factor of 4 at most with T, d or the rank, and the
# bands, which have the middle 90 % of the problems, are wide. So none of the three
# decides alone. What does is T rank / d: whether all tasks together fill the space.

table["filled"] = table["T"] * table["rank"] / table["d"]
fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for k, rows in table.groupby("k"):
    levels = rows.groupby("filled")["share"].quantile([0.05, 0.5, 0.95]).unstack()
    ax.fill_between(levels.index, levels[0.05], levels[0.95], alpha=0.15)
    ax.plot(levels.index, levels[0.5], "o-", label=f"k = {k}")
ax.axvline(1, color="0.6", linestyle=":")
ax.set(xscale="log", yscale="log", ylim=(1e-12, 1), xlabel="T rank / d")
ax.set_ylabel("forgetting / guarantee")
ax.legend()
plt.show()
last = table[table["k"] == 100].groupby("filled")["share"].median()
for filled in (0.25, 1.0, 4.0):
    print(f"k = 100, T rank = {filled:g} d: half use less than {last[filled]:.1g}")

# %%
# After 100 steps the share is largest where the rows of all tasks are as many as there
# are dimensions, for each T. It is 5 orders of magnitude smaller with a quarter of the
# rows, and 8 with four times as many. With few rows tasks are nearly orthogonal, and
# learning one harms no other. With many, each direction is learned by several tasks.
#
# The same by another measure
# ---------------------------
#
# If this is right, the mean of the projections onto the rows of the tasks must have its
# smallest positive eigenvalue there: the error along that direction decays slowest.
# These numbers use neither expectations nor bounds, but the tasks of the study, drawn
# again from the seeds in the table.

slowest = {}
for row in table[(table["k"] == 100) & (table["repeat"] < 10)].itertuples():
    tasks = fg.families.gaussian(row.T, row.d, row.rank, seed=row.seed)
    rows = [np.linalg.qr(tasks.task(m)[0].T)[0] for m in range(row.T)]
    mean = sum(basis @ basis.T for basis in rows) / row.T
    values = np.linalg.eigvalsh(mean)
    positive = values[-min(row.T * row.rank, row.d)]
    slowest.setdefault(row.filled, []).append(row.T * positive)
for filled, values in sorted(slowest.items()):
    print(f"T rank = {filled:<6g} d: smallest eigenvalue {np.median(values):.3f} / T")

# %%
# It has its minimum at T rank = d, and grows on both sides. A random benchmark forgets
# longest if its tasks just fill the space, and half of such problems still use less
# than 2 % of what is guaranteed.
