"""
The paper in ten minutes
========================

Tasks come one after another. Each is a small regression problem, learned to convergence
from where the last one ended. All tasks together have a common solution, but the
learner only ever sees one of them. How much does it forget?

This page tells the story of *From Continual Learning to SGD and Back* (Evron et al.,
ALT 2026) by computing it. Everything below is produced by the code beside it.
"""

import matplotlib.pyplot as plt
import numpy as np

import forgetting as fg
from forgetting.figures.lab import Lab
from forgetting.report.sections.demonstrations import three_lines

# %%
# Learning a task is a projection
# -------------------------------
# Started at w, gradient descent on ½ ‖X_m w - y_m‖² ends at the solution
# of task m that is nearest to w: the projection of w onto the task's solutions
# (`reduc:cl_to_kaczmarz`). In the plane, with two tasks of one row each, the solutions
# are two lines and the path is a zigzag towards their crossing.

tasks = fg.families.two_lines(0.5, w_star=(1.0, 0.4))
run = fg.run(tasks, fg.orderings.Cyclic(), k=12)

fig, ax = plt.subplots(figsize=(5, 4), layout="constrained")
for m in range(2):
    (row,), (label,) = tasks.task(m)
    along = np.array([-row[1], row[0]])
    ends = tasks.w_star + np.outer([-1.4, 1.4], along)
    ax.plot(*ends.T, lw=1, color="0.6")
ax.plot(*run.iterates.T, "o-", ms=4)
ax.plot(*tasks.w_star, "k*", ms=12)
ax.set(
    title="Twelve tasks, two distinct ones",
    aspect="equal",
    xlim=(-0.2, 1.4),
    ylim=(-0.4, 0.9),
)
plt.show()

# %%
# Take hold of it: turn the lines, move the start, choose an order or learn by hand.
# Loss and forgetting are computed in the page as you go.

Lab(three_lines())

# %%
# What is forgetting?
# -------------------
# After k tasks, look back: the forgetting F(k) is the mean loss, now, of the tasks that
# were learned. A task is at loss zero right after it was learned, so whatever loss it
# has now was caused by its successors.

print(np.array2string(run.forgetting, precision=4))

# %%
# The order matters
# -----------------
# On tasks built for it (Evron et al. 2022), the given order forgets most of what can be
# forgotten, which is 1/2, and the more tasks there are the nearer it comes: the early
# tasks turn slowly and keep the norm of the error, the last few turn fast and carry it
# away from all of them.

hard = fg.families.catastrophic(eps=1.0)
ks = np.arange(1, hard.num_tasks + 1, 3)
given = fg.run(
    hard, fg.orderings.Explicit(range(hard.num_tasks)), hard.num_tasks
).forgetting[ks - 1]
shuffled = fg.expect(hard, fg.orderings.WithoutReplacement(), ks, runs=2000).forgetting
drawn = fg.expect(hard, fg.orderings.WithReplacement(), ks).forgetting

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.plot(ks, given, label="the given order")
ax.plot(ks, shuffled, label="a random permutation (expected)")
ax.plot(ks, drawn, "--", label="sampled with replacement (expected)")
ax.set(
    xlabel="k",
    ylabel="forgetting",
    title=f"The same {hard.num_tasks} tasks, three orders",
)
ax.legend()
plt.show()

# %%
# The random permutation never repeats a task, and forgets almost nothing: it is the
# randomness that helps, not the repetition.
#
# One task, one step of SGD
# -------------------------
# Here is the paper's idea. The projection onto the solutions of task m is *one* step of
# gradient descent, of step size 1, on f_m(w) = ½ ‖X_m⁺(X_m w - y_m)‖².
# A random order is therefore SGD with an unusually large step size, and forgetting is a
# statement about its *last* iterate.

gaussian = fg.families.gaussian(T=20, d=60, rank=2, seed=0)
order = fg.orderings.WithReplacement()
three = [
    fg.run(gaussian, order, 50, scheme=scheme).iterates
    for scheme in (
        fg.schemes.GradientDescent(),
        fg.schemes.Kaczmarz(),
        fg.schemes.SGD(step_size=1.0),
    )
]
print(
    "largest difference of the iterates:",
    f"{max(abs(three[0] - other).max() for other in three[1:]):.0e}",
)

# %%
# Universal rates
# ---------------
# For realizable least squares, the last iterate of SGD at step size 1 has an expected
# loss of order k^(-1/4), whatever the dimension, the number of tasks or their
# angles: Theorem 10 (`thm:cl_by_sgd_main`). In few dimensions or for few tasks, rates
# in 1/k take over: Theorem 8 (`thm:random_convergence_rate`). One line draws every
# guarantee that applies to given tasks beside the exact expectation.

ks = np.unique(np.logspace(0, 4, 60).astype(int))
exact = fg.expect(gaussian, order, ks, quantities=("loss",))
exact.plot(bounds=True)
plt.show()

# %%
# Is the worst case real?
# -----------------------
# Two lines at a small angle come within one percent of the bound at k = 100, so its
# constant cannot be improved there.

theta = np.arccos(
    np.sqrt(1 - 2 / 100)
)  # where (1 + cos^2) / 2, the factor by which the error shrinks, is 1 - 1/k
worst = fg.families.two_lines(theta)
value = fg.expect(worst, order, 100).loss
bound = {row.bound.key: row.value for row in fg.bounds.evaluate(worst, order, 100)}[
    "thm:random_convergence_rate/loss"
]
print(f"expected loss {value:.6f}, bound {bound:.6f}, ratio {value / bound:.4f}")
