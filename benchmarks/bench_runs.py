"""One long run and many short ones, against NumPy."""

from __future__ import annotations

import numpy as np

import forgetting as fg
from benchmarks.timing import race


def numpy_loop(rows: np.ndarray, labels: np.ndarray, order: np.ndarray, every: int) -> list[float]:
    """The ten-line script: row Kaczmarz with the loss every so many steps."""
    w = np.zeros(rows.shape[1])
    norms = np.einsum("ij,ij->i", rows, rows)
    losses = [0.5 * np.mean((rows @ w - labels) ** 2)]
    for t, m in enumerate(order.tolist(), 1):
        x = rows[m]
        w -= (x @ w - labels[m]) / norms[m] * x
        if t % every == 0:
            losses.append(0.5 * np.mean((rows @ w - labels) ** 2))
    return losses


def numpy_batch(matrices: np.ndarray, pinvs: np.ndarray, labels: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """All runs at once in NumPy, carrying w, with the whole loss curve as one D x D form."""
    runs, k = orders.shape
    T, _, d = matrices.shape
    w = np.zeros((runs, d))
    stacked = matrices.reshape(-1, d)
    target = labels.reshape(-1)
    form = np.linalg.cholesky(stacked.T @ stacked / (2 * T) + 1e-300 * np.eye(d)) if len(stacked) > d else stacked.T
    solution = np.linalg.lstsq(stacked, target, rcond=None)[0]
    scale = 1.0 if len(stacked) > d else 1 / np.sqrt(2 * T)
    losses = np.empty((runs, k + 1))
    losses[:, 0] = np.sum((scale * (w - solution) @ form) ** 2, axis=1)
    for t in range(k):
        tasks = orders[:, t]
        residual = np.einsum("rnd,rd->rn", matrices[tasks], w) - labels[tasks]
        w -= np.einsum("rdn,rn->rd", pinvs[tasks], residual)
        losses[:, t + 1] = np.sum((scale * (w - solution) @ form) ** 2, axis=1)
    return losses


def main() -> None:
    tasks = fg.families.rank_one(T=100, d=200, seed=0)
    rows = np.concatenate([tasks.task(m)[0] for m in range(100)])
    labels = np.concatenate([tasks.task(m)[1] for m in range(100)])
    ordering = fg.orderings.WithReplacement()
    order = fg.run(tasks, ordering, 10**5, record_every=10**5).order
    ours = fg.run(tasks, ordering, 10**5, record_every=100).losses
    np.testing.assert_allclose(ours, numpy_loop(rows, labels, order, 100), rtol=1e-6, atol=1e-20)
    race(
        "10^5 rank-one steps, T=100, d=200, losses every 100",
        lambda: fg.run(tasks, ordering, 10**5, record_every=100).losses,
        lambda: numpy_loop(rows, labels, order, 100),
        target=20,
    )
    for rank, target in ((1, 40), (5, 12)):
        tasks = fg.families.gaussian(T=100, d=200, rank=rank, seed=0)
        matrices = np.stack([tasks.task(m)[0] for m in range(100)])
        pinvs = np.linalg.pinv(matrices)
        labels = np.stack([tasks.task(m)[1] for m in range(100)])
        ensemble = fg.run_many(tasks, ordering, 1000, runs=1000)
        np.testing.assert_allclose(
            ensemble.losses[:20], numpy_batch(matrices, pinvs, labels, ensemble.order[:20]), rtol=1e-6, atol=1e-10
        )
        race(
            f"1000 runs x 1000 steps with loss curves, T=100, d=200, rank {rank}",
            lambda: fg.run_many(tasks, ordering, 1000, runs=1000).losses,  # noqa: B023
            lambda: numpy_batch(matrices, pinvs, labels, ensemble.order),  # noqa: B023
            target=target,
            rounds=3,
        )


if __name__ == "__main__":
    main()
