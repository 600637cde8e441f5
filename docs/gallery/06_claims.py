"""
Is it true?
===========

Each statement of the paper is an object that computes both of its sides on a problem. A
hunt looks for the problem with the least slack. Most statements survive; where one does
not, there is a file with the counterexample.
"""

import matplotlib.pyplot as plt
import numpy as np

import forgetting as fg

claim = fg.claims.get("thm:random_convergence_rate", part="loss")
print(claim.statement)
two_lines = fg.claims.Instance(
    fg.families.two_lines(0.2), fg.orderings.WithReplacement(), k=100
)
print(claim.check(two_lines))

# %%
# The hunt finds the angle that nearly reaches the bound.

print(claim.hunt(seed=0, budget=150))

# %%
# A false statement comes with the simplest counterexample beside the worst one: this
# display would bound forgetting by distances of the iterate before the last. With the
# signed rows (1, 0) and (-0.8, 0.6) in the order 0, 0, 1, the last step leaves task 0
# with a miss of 1.44.

false = fg.claims.get("cor:pocs_forgetting", "display, w_(k-1)")
simplest = false.hunt(budget=60).simplest
print(simplest, false.confirm(simplest), sep="\n")

# %%
# Two lines at every angle and every k: where the bound is nearly reached.

angles, steps = (
    np.geomspace(0.02, 1.5, 60),
    np.unique(np.geomspace(3, 1000, 40).astype(int)),
)
bound = fg.bounds.get("thm:random_convergence_rate/loss")
ratios = np.zeros((len(steps), len(angles)))
for j, angle in enumerate(angles):
    pair = fg.families.two_lines(angle)
    order = fg.orderings.WithReplacement()
    values = fg.expect(pair, order, steps, quantities=("loss",)).loss
    setting = fg.bounds.Setting.of(pair)
    ratios[:, j] = values / [bound.value(setting, int(k)) for k in steps]

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
mesh = ax.pcolormesh(angles, steps, ratios, cmap="cividis", shading="nearest")
ax.set(xscale="log", yscale="log", xlabel="angle between the two lines", ylabel="k")
fig.colorbar(mesh, label="expected loss / bound")
plt.show()
print(f"largest ratio {ratios.max():.4f}")

# %%
# For a problem of one's own, `fg.certify` puts measured and theoretical values side by
# side.

tasks = fg.families.gaussian(T=6, d=12, rank=2, seed=0)
print(fg.certify(tasks, fg.orderings.WithReplacement(), k=50))
