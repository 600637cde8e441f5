"""The paper's dynamics, dense and in the original coordinates, without the package: what the tests compare with."""

from typing import NamedTuple

import numpy as np


class Reference(NamedTuple):
    iterates: np.ndarray
    loss_matrix: np.ndarray
    losses: np.ndarray
    forgetting: np.ndarray
    regret: np.ndarray


def dynamics(matrices, labels, order, w0=None, mean=False):
    """w_t = w_(t-1) - X^+ (X w_(t-1) - y), with L_m = 1/2 |X_m w - y_m|^2 (over n_m if mean), F and the regret."""
    w = [np.zeros(matrices[0].shape[1]) if w0 is None else np.array(w0, dtype=float)]
    for m in order:
        w.append(w[-1] - np.linalg.pinv(matrices[m], rcond=1e-12) @ (matrices[m] @ w[-1] - labels[m]))
    tasks = [(X, y, len(y) if mean else 1) for X, y in zip(matrices, labels, strict=True)]
    L = np.array([[0.5 * np.sum((X @ v - y) ** 2) / n for X, y, n in tasks] for v in w])
    steps = range(1, len(order) + 1)
    forgetting = [np.mean([L[k, order[t - 1]] - L[t, order[t - 1]] for t in range(1, k + 1)]) for k in steps]
    regret = [np.mean([L[t - 1, order[t - 1]] for t in range(1, k + 1)]) for k in steps]
    return Reference(np.array(w), L, L.mean(axis=1), np.array(forgetting), np.array(regret))
