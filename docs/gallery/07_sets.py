"""
Projections onto convex sets
============================

A problem is anything that can be projected onto. Here: a polyhedron, a ball and a
halfspace, visited in turn. The method of alternating projections finds a common point;
Dykstra's method finds the nearest one.
"""

import matplotlib.pyplot as plt
import numpy as np

import forgetting as fg

sets = fg.ConvexSets(
    [
        fg.Polyhedron([[1.0, 0.2], [-0.3, 1.0]], [0.0, 0.0]),
        fg.Ball([1.5, 0.2], 1.2),
        fg.Halfspace([-1.0, 1.0], -0.4),
    ]
)
start = np.array([-1.0, -2.0])
run = fg.run(sets, fg.orderings.Cyclic(), k=30, w0=start)
nearest = sets.nearest_solution(start)

x, y = np.meshgrid(np.linspace(-1.5, 3, 300), np.linspace(-2.2, 2, 300))
points = np.stack([x.ravel(), y.ravel()], axis=1)
fig, ax = plt.subplots(figsize=(5.5, 4.5), layout="constrained")
for m, convex in enumerate(sets.sets):
    inside = np.array([convex.contains(p) for p in points[::1]]).reshape(x.shape)
    ax.contourf(x, y, inside, levels=[0.5, 1.5], colors=[f"C{m}"], alpha=0.25)
ax.plot(*run.iterates.T, "k.-", lw=1, label="alternating projections")
ax.plot(*nearest, "r*", ms=12, label="nearest common point (Dykstra)")
ax.legend(loc="lower right")
ax.set(aspect="equal")
plt.show()

print("residual at the end:", run.losses[-1])
