"""Random states of the explorer, as an address and as tasks of the package."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import forgetting as fg

LEAST_ANGLE = 1e-3


@dataclass
class State:
    """Tasks with rows X and solution w, and how they are learned."""

    X: list[np.ndarray]
    w: np.ndarray
    order: str = "with"
    scheme: dict[str, Any] = field(default_factory=lambda: {"kind": "kaczmarz"})
    noise: float = 0.0
    alpha: float = 1.0
    k: int = 10
    given: list[int] = field(default_factory=list)

    @property
    def hash(self) -> str:
        rows = "|".join(";".join(_numbers(row) for row in X) for X in self.X)
        words = {
            "f": "two_lines", "x": rows, "w": _numbers(self.w), "o": self.order, "s": self.scheme["kind"],
            "noise": repr(self.noise), "alpha": repr(self.alpha), "last": self.k, "k": self.k,
            **({"eta": repr(self.scheme["eta"])} if "eta" in self.scheme else {}),
            **({"lam": repr(self.scheme["lam"])} if "lam" in self.scheme else {}),
            **({"given": ",".join(map(str, self.given))} if self.given else {}),
        }  # fmt: skip
        return "&".join(f"{name}={value}" for name, value in words.items())

    @property
    def ordering(self) -> Any:
        return {
            "with": "with-replacement", "without": "without-replacement", "cyclic": "cyclic",
            "given": fg.orderings.Explicit(self.given or [0]), "greedy": fg.orderings.GreedyDistance(repeat=False),
            "greedy-again": fg.orderings.GreedyDistance(),
        }[self.order]  # fmt: skip

    @property
    def learner(self) -> Any:
        made = {
            "kaczmarz": lambda: fg.schemes.Kaczmarz(),
            "sgd": lambda: fg.schemes.SGD(self.scheme["eta"]),
            "ridge": lambda: fg.schemes.Ridge(self.scheme["lam"]),
            "ridge-fixed": lambda: fg.schemes.Ridge("fixed"),
            "ridge-increasing": lambda: fg.schemes.Ridge("increasing"),
        }[self.scheme["kind"]]()
        return made if self.alpha == 1 else fg.schemes.Decay(self.alpha, made)

    @property
    def posed(self) -> tuple[fg.RegressionTasks, np.ndarray | None]:
        """The tasks and the start: seen from the solution, with labels 0 and the start -w, so that no label is rounded.

        Decay pulls w to 0, so that its tasks are as they are.
        """
        if self.alpha != 1:
            return self.tasks, None
        return fg.RegressionTasks(self.X, [np.zeros(len(X)) for X in self.X]), -self.w

    @property
    def bounded(self) -> tuple[fg.RegressionTasks, np.ndarray | None]:
        """The tasks and the start of the bounds: with label noise, each label has an output of its own."""
        if not self.noise:
            return self.posed
        labels = np.concatenate(self.tasks_labels)
        outputs = np.column_stack([labels, self.noise * np.eye(len(labels))])
        return fg.RegressionTasks(self.X, np.split(outputs, np.cumsum([len(X) for X in self.X])[:-1])), None

    @property
    def condition(self) -> float:
        """The condition number of all rows."""
        sizes = np.linalg.svd(np.concatenate(self.X), compute_uv=False)
        return float(sizes[0] / sizes[sizes > 1e-12 * sizes[0]][-1])

    @property
    def tasks_labels(self) -> list[np.ndarray]:
        return [X @ self.w for X in self.X]

    @property
    def tasks(self) -> fg.RegressionTasks:
        return fg.RegressionTasks(self.X, self.tasks_labels)


def _numbers(row: np.ndarray) -> str:
    return ",".join(repr(float(value)) for value in row)


def apart(X: list[np.ndarray]) -> bool:
    """Whether the least angle between directions of two tasks is large enough."""
    bases = [np.linalg.qr(rows.T)[0] for rows in X]
    for i, one in enumerate(bases):
        for two in bases[:i]:
            small, large = sorted((one, two), key=lambda basis: basis.shape[1])
            if np.linalg.svd(small - large @ (large.T @ small), compute_uv=False)[-1] < LEAST_ANGLE:
                return False
    return True


def turned(rng: np.random.Generator, rows: np.ndarray, angle: float) -> np.ndarray:
    a, b = rng.choice(rows.shape[1], 2, replace=False)
    made = rows.copy()
    made[:, a] = np.cos(angle) * rows[:, a] - np.sin(angle) * rows[:, b]
    made[:, b] = np.sin(angle) * rows[:, a] + np.cos(angle) * rows[:, b]
    return made


def random_state(rng: np.random.Generator) -> State:
    """Up to 12 tasks in up to 12 dimensions, of which many lie at small angles to each other."""
    while True:
        small = rng.random() < 0.9
        T, d = (int(n) for n in rng.integers(2, 9 if small else 13, 2))
        X = [rng.standard_normal((int(rng.integers(1, max(2, min(d // 2, 4) + 1))), d)) for _ in range(T)]
        if rng.random() < 0.6:
            X = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in X]
        for m in range(1, T):
            if rng.random() < 0.4:
                X[m] = turned(rng, X[int(rng.integers(m))], 10 ** rng.uniform(-3, -0.5) * rng.choice([-1, 1]))
        if apart(X) and sum(map(len, X)) <= 40:
            break
    w = rng.standard_normal(d)
    orders = ["with", "with", "without", "cyclic", "given", "greedy-again"]
    order = str(rng.choice([name for name in orders if T <= 8 or name != "without"]))
    scheme = [
        {"kind": "kaczmarz"}, {"kind": "kaczmarz"},
        {"kind": "sgd", "eta": round(float(rng.uniform(0.05, 1.95)), 3)},
        {"kind": "sgd", "eta": round(10 ** float(rng.uniform(-3, 1)), 4)},
        {"kind": "ridge", "lam": round(10 ** float(rng.uniform(-2, 1)), 4)},
        {"kind": "ridge-fixed"}, {"kind": "ridge-increasing"},
    ][rng.integers(7)]  # fmt: skip
    noise = 0.0 if order == "greedy-again" else float(rng.choice([0.0, 0.0, 0.1, 1.0]))
    k = T if order == "without" else int(rng.choice([5, 20, 64, 100])) if small and not noise else 12
    given = [int(m) for m in rng.integers(0, T, k)] if order == "given" else []
    alpha = float(rng.choice([1.0, 1.0, 1.0, 1.0, 0.99, 0.7]))
    return State(X, w / np.linalg.norm(w), order, scheme, noise, alpha, k, given)
