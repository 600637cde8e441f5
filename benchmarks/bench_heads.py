"""Ridge heads that learn in batches, against ridge regression on all data, normal equations and an updated inverse.

    python -m benchmarks.bench_heads [--rows 200000] [--columns 512] [--outputs 100] [--batch 10000] [--device cuda]

Every contestant runs in a process of its own and gets the same rows in batches, which are made anew, untimed;
solvers of all data get them at once. Memory is the largest resident set beyond that of the process with its
data before learning. scikit-learn-intelex takes part where it is installed. Accuracy is measured apart, at condition
1e8: the error of the coefficients divided by eps (k + k^2 |r| / (|A| |w|)), k the condition number of the regularised
matrix and r its residual, against solutions in 90 digits; who stays below 100 counts as accurate.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import mpmath as mp
import numpy as np

from benchmarks.timing import report

EPS = np.finfo(np.float64).eps
ALPHA = 1.0
ACCURATE = 100.0
WITHIN = 1.2  # how much slower than an accurate contestant is still good
OURS = "forgetting"


def batches(rows: int, d: int, c: int, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The same rows in every process."""
    mix = np.random.default_rng(0).standard_normal((d, c))
    for number, first in enumerate(range(0, rows, size)):
        rng = np.random.default_rng([1, number])
        X = rng.standard_normal((min(size, rows - first), d))
        yield X, X @ mix + rng.standard_normal((len(X), c))


# --------------------------------------------------------------------------------------------------------- contestants


class Ours:
    """`fg.IncrementalRidge`, batch by batch."""

    def __init__(self, alpha: float, device: str | None = None) -> None:
        import forgetting as fg

        self.model = fg.IncrementalRidge(alpha, device=device)

    def learn(self, X: Any, y: Any) -> None:
        self.model.partial_fit(X, y)

    def settle(self) -> None:
        """Wait until a device has done what it was asked for."""
        state = getattr(self.model, "_state", None)
        if state is not None and not state.device.host:
            state.device.take(state.factor[:1, :1])

    def coef(self) -> np.ndarray:
        return np.atleast_2d(self.model.coef_)


class Intelex(Ours):
    """IncrementalRidge of scikit-learn-intelex, which adds up X'X."""

    def __init__(self, alpha: float) -> None:
        from sklearnex.linear_model import IncrementalRidge

        self.model = IncrementalRidge(alpha=alpha)


class NormalEquations:
    """Sums of x x' and x y', solved at the end."""

    def __init__(self, alpha: float) -> None:
        self.alpha, self.count = alpha, 0.0
        self.gram = self.right = self.x = self.y = 0.0

    def learn(self, X: Any, y: Any) -> None:
        y = y.reshape(len(y), -1)
        self.gram = self.gram + X.T @ X
        self.right = self.right + X.T @ y
        self.x, self.y, self.count = self.x + X.sum(axis=0), self.y + y.sum(axis=0), self.count + len(X)

    def coef(self) -> np.ndarray:
        gram = self.gram - np.outer(self.x, self.x) / self.count
        right = self.right - np.outer(self.x, self.y) / self.count
        return np.linalg.solve(gram + self.alpha * np.eye(len(gram)), right).T


class UpdatedInverse:
    """(A'A + alpha I)^-1, updated by Woodbury's identity as in analytic continual learning; without an intercept.

    For accuracy the rows come centred, which such a learner cannot do.
    """

    centred = True

    def __init__(self, alpha: float) -> None:
        self.alpha, self.inverse = alpha, None

    def learn(self, X: Any, y: Any) -> None:
        y = y.reshape(len(y), -1)
        if self.inverse is None:
            self.inverse, self.w = np.eye(X.shape[1]) / self.alpha, np.zeros((X.shape[1], y.shape[1]))
        for part in np.array_split(np.arange(len(X)), max(1, len(X) // 500)):
            A = X[part]
            along = self.inverse @ A.T
            gain = np.linalg.solve(np.eye(len(part)) + A @ along, along.T).T
            self.w += gain @ (y[part] - A @ self.w)
            self.inverse -= gain @ along.T

    def coef(self) -> np.ndarray:
        return self.w.T


class AllData:
    """A solver that needs all rows at once; to put them together is not timed."""

    def __init__(self, alpha: float) -> None:
        self.alpha, self.parts = alpha, ([], [])

    def learn(self, X: Any, y: Any) -> None:
        self.parts[0].append(X)
        self.parts[1].append(y.reshape(len(y), -1))

    def ready(self) -> None:
        self.data = tuple(map(np.concatenate, self.parts))
        self.parts = ([], [])

    def coef(self) -> np.ndarray:
        if any(self.parts):
            self.ready()
        return np.atleast_2d(self.solved(*self.data))


class Ridge(AllData):
    """scikit-learn's Ridge, with the solver that it chooses."""

    def solved(self, X: Any, y: Any) -> np.ndarray:
        from sklearn.linear_model import Ridge as Peer

        return Peer(alpha=self.alpha, copy_X=False).fit(X, y).coef_


class WholeQR(AllData):
    """LAPACK's QR of all rows at once."""

    def solved(self, X: Any, y: Any) -> np.ndarray:
        d = X.shape[1]
        X -= X.mean(axis=0)
        both = np.linalg.qr(np.column_stack([X, y - y.mean(axis=0)]), mode="r")
        A = np.concatenate([both[:d, :d], np.sqrt(self.alpha) * np.eye(d)])
        return np.linalg.lstsq(A, np.concatenate([both[:d, d:], np.zeros((d, y.shape[1]))]), rcond=None)[0].T


class LeastSquares(AllData):
    """numpy's lstsq of all rows and the penalty."""

    def solved(self, X: Any, y: Any) -> np.ndarray:
        d = X.shape[1]
        A = np.concatenate([X - X.mean(axis=0), np.sqrt(self.alpha) * np.eye(d)])
        return np.linalg.lstsq(A, np.concatenate([y - y.mean(axis=0), np.zeros((d, y.shape[1]))]), rcond=None)[0].T


class DeviceLeastSquares(AllData):
    """torch's lstsq of all rows and the penalty, on the device where the rows are."""

    def ready(self) -> None:
        import torch

        self.data = tuple(torch.cat([torch.as_tensor(part) for part in parts]) for parts in self.parts)
        self.parts = ([], [])

    def solved(self, X: Any, y: Any) -> np.ndarray:
        import torch

        d = X.shape[1]
        ridge = np.sqrt(self.alpha) * torch.eye(d, dtype=X.dtype, device=X.device)
        A = torch.cat([X - X.mean(dim=0), ridge])
        right = torch.cat([y - y.mean(dim=0), torch.zeros((d, y.shape[1]), dtype=X.dtype, device=X.device)])
        return torch.linalg.lstsq(A, right).solution.T.cpu().numpy()


def contestants(device: str | None) -> dict[str, Callable[[float], Any]]:
    found: dict[str, Callable[[float], Any]] = {OURS: Ours}
    if device is not None:
        found[f"forgetting, {device}"] = lambda alpha: Ours(alpha, device)
        found[f"lstsq of all rows (torch), {device}"] = DeviceLeastSquares
    found |= {"QR of all rows (numpy)": WholeQR, "lstsq of all rows (numpy)": LeastSquares}
    found["Ridge on all rows (scikit-learn)"] = Ridge
    if find_spec("sklearnex") is not None:
        found["IncrementalRidge (scikit-learn-intelex)"] = Intelex
    return found | {"normal equations": NormalEquations, "updated inverse": UpdatedInverse}


# ------------------------------------------------------------------------------------------------------------- accuracy


def exact(X: np.ndarray, y: np.ndarray, alpha: float) -> np.ndarray:
    """The coefficients in 90 digits, rounded."""
    with mp.workdps(90):
        rows = mp.matrix(np.column_stack([np.ones(len(X)), X]).tolist())
        gram = rows.T * rows
        for place in range(1, gram.rows):
            gram[place, place] += mp.mpf(alpha)
        return np.array([float(v) for v in mp.lu_solve(gram, rows.T * mp.matrix(y.tolist()))][1:])


def problem(condition: float, noise: float, n: int = 400, d: int = 12) -> tuple[np.ndarray, np.ndarray, float]:
    """Rows whose centred matrix has about this condition number, targets, and a penalty that leaves it so."""
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal(shape))[0] for shape in ((n, d), (d, d)))
    X = np.sqrt(n) * (left * np.geomspace(1, 1 / condition, d)) @ right + 0.3
    y = X @ rng.standard_normal(d) + noise * rng.standard_normal(n) + 1
    return X, y, 0.1 * (np.linalg.norm(X - X.mean(axis=0), 2) / condition) ** 2


def unit_of_error(X: np.ndarray, y: np.ndarray, alpha: float, truth: np.ndarray) -> float:
    """eps (k + k^2 |r| / (|A| |w|)) |w|: what a backward stable method may lose."""
    A = X - X.mean(axis=0)
    sigma = np.linalg.svd(A, compute_uv=False)
    k = np.sqrt((sigma[0] ** 2 + alpha) / (sigma[-1] ** 2 + alpha))
    r = np.sqrt(np.sum((y - y.mean() - A @ truth) ** 2) + alpha * truth @ truth)
    size = np.linalg.norm(truth)
    return float(EPS * (k + k**2 * r / (np.sqrt(sigma[0] ** 2 + alpha) * size)) * size)


def error_of(make: Callable[[float], Any], condition: float, noise: float, parts: int, truth: np.ndarray) -> float:
    """The error of the coefficients in units of `unit_of_error`, after this number of batches."""
    X, y, alpha = problem(condition, noise)
    unit, model = unit_of_error(X, y, alpha, truth), make(alpha)
    if getattr(model, "centred", False):
        X, y = X - X.mean(axis=0), y - y.mean()
    for rows in np.array_split(np.arange(len(y)), parts):
        model.learn(X[rows], y[rows])
    return float(np.linalg.norm(model.coef()[0] - truth)) / unit


def accuracies(makers: dict[str, Callable[[float], Any]], condition: float = 1e8) -> dict[str, float]:
    """The largest error of each contestant over noise 0, 1e-3 and 1 and over 1, 10 and 400 batches."""
    worst = dict.fromkeys(makers, 0.0)
    for noise in (0.0, 1e-3, 1.0):
        truth = exact(*problem(condition, noise))
        for name, make in makers.items():
            for parts in (1, 10, 400):
                worst[name] = max(worst[name], error_of(make, condition, noise, parts, truth))
    return worst


# ---------------------------------------------------------------------------------------------------------------- speed


def timed(name: str, given: argparse.Namespace, answers: Any) -> None:
    """Learn all batches, and send seconds and bytes."""
    make, shape = contestants(given.device)[name], (given.columns, given.outputs)
    there = given.device is not None and name.endswith(given.device)

    def rows(count: int) -> Iterator[tuple[Any, Any]]:
        for X, y in batches(count, *shape, given.batch):
            if there:  # rows are where they are learned
                import torch

                pair = torch.asarray(X, device=given.device), torch.asarray(y, device=given.device)
                pair[0][:1, :1].cpu()  # both are there
                yield pair
            else:
                yield X, y

    warm = make(ALPHA)
    for X, y in rows(min(given.rows, 2 * given.batch)):
        warm.learn(X, y)
    warm.coef()
    model, spent = make(ALPHA), 0.0
    data = list(rows(given.rows)) if isinstance(model, AllData) else rows(given.rows)
    if isinstance(model, AllData):
        for X, y in data:
            model.learn(X, y)
        data.clear()
        model.ready()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for X, y in data:
        start = time.perf_counter()
        model.learn(X, y)
        if isinstance(model, Ours):
            model.settle()
        spent += time.perf_counter() - start
    start = time.perf_counter()
    coef = model.coef()
    spent += time.perf_counter() - start
    answers.put((name, spent, 1024.0 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before), coef[0, 0]))


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--columns", type=int, default=512)
    parser.add_argument("--outputs", type=int, default=100)
    parser.add_argument("--batch", type=int, default=10_000)
    parser.add_argument("--device", default=None)
    parser.add_argument("--only", default="", help="a word in the names of the contestants that run beside ours")
    given = parser.parse_args(arguments)
    makers = {n: make for n, make in contestants(given.device).items() if given.only in n or make is Ours}
    errors = accuracies(makers)
    context = multiprocessing.get_context("spawn")
    ours = 0.0
    print(f"{given.rows} x {given.columns}, {given.outputs} outputs, batches of {given.batch}")
    for name in makers:
        answers = context.Queue()
        child = context.Process(target=timed, args=(name, given, answers))
        child.start()
        _, spent, memory, _ = answers.get()
        child.join()
        ours = ours or spent
        told = f"{memory / 2**20:.0f} MB, error {errors[name]:.2g} at condition 1e8"
        accurate = errors[name] < ACCURATE and name != OURS
        report(f"{name}: {told}", [ours], [spent], 1 / WITHIN if accurate else None)


if __name__ == "__main__":
    main(sys.argv[1:])
