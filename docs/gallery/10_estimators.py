"""
A continual learner in scikit-learn
===================================

One `partial_fit` is one task learned to convergence. The estimator keeps the history of
forgetting.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.model_selection import GridSearchCV

import forgetting as fg

pixels, digit = load_digits(return_X_y=True)
model = fg.ContinualClassifier()
pairs = [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]
for pair in pairs:
    rows = np.flatnonzero(np.isin(digit, pair))[:40]
    model.partial_fit(
        pixels[rows] / 16, digit[rows], classes=np.arange(10), task_id=str(pair)
    )

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for m, pair in enumerate(pairs):
    ax.plot(
        range(1, 6),
        model.accuracy_matrix_[1:, m],
        "o-",
        ms=4,
        label=f"digits {pair[0]} and {pair[1]}",
    )
ax.set(xlabel="tasks learned", ylabel="accuracy on the task", xticks=range(1, 6))
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()

print("forgetting after each task:", np.round(model.forgetting_, 4))

# %%
# How far each task is learned is a parameter like any other. Three tasks, patients by
# age: a ridge to the previous weights generalises better than learning to convergence.

X, y = load_diabetes(return_X_y=True)
age = np.digitize(X[:, 0], [-0.03, 0.03])
lams = np.geomspace(1e-4, 10, 11)
model = fg.ContinualRegressor(scheme=fg.schemes.Ridge(1.0))
search = GridSearchCV(model, {"scheme__lam": lams}, cv=5).fit(X, y, task_id=age)
converged = GridSearchCV(fg.ContinualRegressor(), {}, cv=5).fit(X, y, task_id=age)

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.semilogx(lams, search.cv_results_["mean_test_score"], "o-", ms=4, label="ridge")
ax.axhline(converged.best_score_, color="gray", ls="--", label="to convergence")
ax.set(xlabel="lam", ylabel="$R^2$ on held-out rows")
ax.legend()
plt.show()

print(f"best lam: {search.best_params_['scheme__lam']:.3g}")
