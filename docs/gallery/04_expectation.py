"""
Expectations, not averages
==========================

A simulated mean of the loss is badly determined when k is large: most runs end with a
tiny loss and a few rare ones hold the mean up. The exact expectation costs less than
the simulation, and a simulated interval that is honest says how little it knows.
"""

import matplotlib.pyplot as plt
import numpy as np

import forgetting as fg

tasks = fg.families.two_lines(np.pi / 3)
order = fg.orderings.WithReplacement()
ks = np.arange(1, 101, 3)
exact = fg.expect(tasks, order, ks, quantities=("loss",))
simulated = fg.expect(
    tasks, order, ks, method="monte-carlo", runs=1000, quantities=("loss",)
)

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.semilogy(ks, exact.loss, "k", label="exact")
ax.semilogy(ks, np.maximum(simulated.loss, 1e-30), "C0.", label="mean of 1000 runs")
low, high = simulated.loss_interval.T
ax.fill_between(ks, np.maximum(low, 1e-30), high, alpha=0.2, label="its 99 % interval")
ax.set(xlabel="k", ylabel="expected loss", ylim=(1e-25, 1))
ax.legend()
plt.show()

# %%
# One factorisation answers every k, also a hundred million.

print(
    fg.expect(
        fg.families.two_lines(1e-3), order, [10**4, 10**6, 10**8], quantities=("loss",)
    )
)
