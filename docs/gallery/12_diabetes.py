"""
Diabetes: tasks that no model solves
====================================

"No single model fits all of my tasks. What can I say of random orders, exactly?"

442 patients in ten bins of age. The ten features are those of scikit-learn's diabetes
data, and y is the progression of the disease after one year, a score from 25 to 346.
The loss of a bin is half the mean squared error of the score.

First, what can be learned at all? The least loss of any w is a bound that holds without
a common solution.
"""

import matplotlib.pyplot as plt
import numpy as np

import forgetting as fg

patients = fg.datasets.diabetes()
for words, tasks in (
    ("without an intercept", patients),
    ("with an intercept", patients.prepared(intercept=True)),
):
    rows = fg.bounds.evaluate(tasks, "with-replacement", k=1)
    least = next(row.value for row in rows if row.bound.key == "floor/loss")
    print(f"{words}: {least / tasks.loss(np.zeros(tasks.dim)):.0%} of the loss stays")

# %%
# The score is far from 0 and features are centred: without an intercept nothing can be
# learned, whatever the order. From here on there is one.
#
# A quarter of each bin is held out. Features are standardized by the rows that are
# learned, and the held-out rows alike.

train, test = fg.datasets.hold_out(patients)
tasks = train.prepared(intercept=True, standardize="all", loss="mean")

# %%
# Loss and forgetting over random orders
# --------------------------------------
#
# Bins are drawn at random, k of them. All values are expectations over all orders, none
# is simulated, and k may be infinite: then it is the value of the stationary law.

quantities = ("loss", "forgetting", "test_loss", "test_forgetting")
ks = [*np.unique(np.geomspace(1, 1000, 30).round()), np.inf]
schemes = {"to convergence": None, "ridge, penalty 1": "ridge lam=1"}
schemes["ridge, penalty 10"] = "ridge lam=10"
settled = {}
fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for place, (name, scheme) in enumerate(schemes.items()):
    e = fg.expect(
        tasks,
        "with-replacement",
        ks,
        scheme=scheme,
        test=test,
        quantities=quantities,
    )
    ax.loglog(e.k[:-1], e.loss[:-1], color=f"C{place}", label=name)
    ax.loglog(e.k[:-1], e.test_loss[:-1], ":", color=f"C{place}")
    settled[name] = e.test_loss[-1]
    at_last = ", ".join(f"{q} {e.values[q][-1]:.0f}" for q in quantities)
    print(f"{name}, k = inf, {e.method}: {at_last}")
least = next(
    row.value
    for row in fg.bounds.evaluate(tasks, "with-replacement", k=1)
    if row.bound.key == "floor/loss"
)
ax.axhline(least, color="0.6", linestyle="--", label="least loss of any w")
ax.plot([], [], ":", color="0.5", label="dotted: held-out patients")
ax.set(xlabel="k, bins learned", ylabel="expected loss, score²", ylim=(1e3, 2e4))
fig.legend(loc="outside upper center", ncols=2)
plt.show()

# %%
# A bin has more patients than features, so that it determines w alone. Learned to
# convergence, only the last bin matters: the loss is 4.5 times the least one after one
# bin and after infinitely many. Nearly all of the loss is forgetting, and the held-out
# rows lose a little less than the learned ones, which were overfitted. A penalty of 10
# ends 2 % above the least loss, and takes about 50 bins to get there. Its forgetting is
# negative on the way: later bins still improve what was learned of earlier ones.
#
# What would noisier labels do?
# -----------------------------
#
# Suppose that each score of the learned patients were off by 20 at random. The
# expectation is over the noise and the order together, and it is exact, too.

for name, scheme in schemes.items():
    e = fg.expect(
        tasks,
        "with-replacement",
        np.inf,
        scheme=scheme,
        test=test,
        noise=20,
        quantities=("test_loss",),
    )
    before, after = settled[name], e.test_loss
    print(f"{name}: {before:.0f} becomes {after:.0f}, {(after - before) / 200:.2f}")

# %%
# The last number is what noise adds to the held-out loss, in units of the noise of one
# label (20² / 2 = 200). Learning to convergence makes it 6 times as large, since 11
# numbers are read off 33 patients; ridge averages over bins.
#
# What is guaranteed?
# -------------------
#
# Most guarantees need a common solution, and say so. Those that do not need one hold
# for projections with noise. The mean of all iterates has the better one:

e = fg.expect(tasks, "with-replacement", ks[:-1], quantities=("averaged_loss",))
fig, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
e.plot(ax=ax, bounds=True)
ax.set(xlabel="k, bins learned", ylabel="expected loss, score²")
ax.set(title="the mean of the iterates")
plt.show()

# %%
# The mean of the iterates comes down to 1891 where the last iterate stays at 6442, with
# the same orders and no penalty. After 1000 bins the guarantee is within 5 % of the
# exact value. Averaging is the other way to keep what earlier bins said.
