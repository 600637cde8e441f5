"""Look for violations of the rates of docs/one-over-k.md on many small problems: `python -m tools.hunt_rates`.

Problems are made in batches, and both sides are computed with dense matrices and all orders, not with the engines of
the library; w_0 - w* is the worst one where the left side is a quadratic form. Prints the largest ratio of both sides
for each statement, and fails if one exceeds 1.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

import forgetting as fg
from forgetting.theory.later.one_over_k import every_order, reach, unseen
from forgetting.theory.later.rate_constants import fresh, least_fresh, visited

BATCH = 500
STEPS = 40
Found = dict[str, float]


def laws(rng: np.random.Generator, T: int, d: int) -> tuple[Any, Any]:
    """Weights (B, T) and projections (B, T, d, d): random subspaces, nearly parallel lines, lines near a simplex."""
    shape, kind = (BATCH, T, d), rng.integers(3)
    if kind == 0:
        rank = int(rng.integers(1, d + 1))
        q, _ = np.linalg.qr(rng.standard_normal((BATCH, T, d, rank)))
        q = q * (rng.random((BATCH, T, 1, rank)) < 0.8)
    else:
        v = rng.standard_normal((BATCH, 1, d)) + 10.0 ** rng.uniform(-2.5, 0.5, (BATCH, 1, 1)) * rng.standard_normal(
            shape
        )
        q = (v / np.linalg.norm(v, axis=-1, keepdims=True))[..., None]
    onto = q @ np.swapaxes(q, -1, -2)
    if kind == 2:  # tasks that leave one line free
        onto = np.eye(d) - onto
    p = np.full((BATCH, T), 1 / T) if rng.random() < 0.5 else rng.dirichlet(np.ones(T), BATCH)
    return p, onto


def worst(forms: Any) -> Any:
    """The largest eigenvalue of each matrix."""
    return np.linalg.eigvalsh(forms)[..., -1]


def note(found: Found, name: str, left: Any, right: Any) -> None:
    """Keep the largest ratio; values of rounding size do not count."""
    ratio = np.where(left > 1e-12, left, 0.0) / np.maximum(right, 1e-300)
    found[name] = max(found[name], float(np.max(ratio)))


def independent(found: Found, rng: np.random.Generator) -> None:
    """Loss, next loss, spectral gap, moments and forgetting of independent draws."""
    T, d = int(rng.integers(2, 6)), int(rng.integers(1, 6))
    p, onto = laws(rng, T, d)
    steps, mean = np.eye(d) - onto, np.einsum("bm,bmij->bij", p, onto)
    gap, norm, rank = np.linalg.eigvalsh(mean)[:, 0].clip(0), np.linalg.norm(mean, axis=(1, 2)), np.trace(mean, 0, 1, 2)
    settings = [
        fg.bounds.Setting(rank_joint=d, rank_weighted=float(min(r, d)), mean_projection=float(min(s, math.sqrt(d))))
        for r, s in zip(rank, norm, strict=True)
    ]
    left = mean
    for n in range(STEPS):
        value = worst(left)
        if n:
            note(found, "u(n), n >= 1", value, fresh(n))
        note(found, "27/16 /(n+1)", value, 27 / 16 / (n + 1))
        note(found, "gap", value, np.min([(1 - gap) ** (n - j) * fresh(j) for j in range(n + 1)], axis=0))
        if n in (0, 1, 2, 5, 13, 39):
            note(found, "moments", value, np.array([least_fresh(s, n) for s in settings]))
        left = _mapped(p, steps, left)
    k = int(rng.integers(1, 12))
    note(
        found,
        "forgetting",
        worst(_seen_form(p, onto, k)),
        k * (math.sqrt(fresh(k - 1)) + math.sqrt(visited(k) / k)) ** 2,
    )


def _mapped(p: Any, steps: Any, A: Any) -> Any:
    return np.einsum("bm,bmij->bij", p, steps @ A[:, None] @ np.swapaxes(steps, -1, -2))


def _seen_form(p: Any, onto: Any, k: int) -> Any:
    """sum_t E |P_t z_k|^2 as a quadratic form in z_0, by the adjoint: visits to a task count, weighted by its form."""
    steps = np.eye(onto.shape[-1]) - onto
    total = np.zeros_like(onto[:, 0])
    for t in range(1, k + 1):  # the form of task tau(t) at time k, pulled back to before step t, then averaged
        forms = onto
        for _ in range(k - t):
            forms = np.einsum("bn,bnij,bmjk,bnkl->bmil", p, steps, forms, steps)
        pulled = np.einsum("bm,bmij,bmjk,bmkl->bil", p, steps, forms, steps)
        for _ in range(t - 1):
            pulled = _mapped(p, steps, pulled)
        total = total + pulled
    return total


def single_pass(found: Found, rng: np.random.Generator) -> None:
    """Next loss, its conjecture, forgetting and the loss of a single pass, by all orders."""
    T, d = int(rng.integers(2, 5)), int(rng.integers(1, 5))
    _, onto = laws(rng, T, d)
    steps, eye = np.eye(d) - onto, np.eye(d)
    for k in range(T + 1):
        following, seen = np.zeros_like(onto[:, 0]), np.zeros_like(onto[:, 0])
        orders = list(itertools.permutations(range(T), min(k + 1, T)))
        for order in orders:
            product = np.broadcast_to(eye, following.shape)
            for task in order[:k]:
                product = steps[:, task] @ product
            back = np.swapaxes(product, -1, -2)
            if k < T:
                following = following + back @ onto[:, order[k]] @ product / len(orders)
            seen = seen + back @ onto[:, list(order[:k])].sum(1) @ product / len(orders)
        if k < T:
            note(found, "next loss", worst(following), 27 / 16 / (k + 1))
        if 0 < k < T:
            note(found, "conjecture: next loss", worst(following), every_order(k + 1))
        if k:
            note(found, "single pass: forgetting", worst(seen), (1 + math.sqrt(27 / 16)) ** 2)


def descents(found: Found, rng: np.random.Generator) -> None:
    """SGD with every step, independent draws."""
    T, d, x = (
        int(rng.integers(2, 5)),
        int(rng.integers(1, 5)),
        float(rng.choice([0.3, 1.0, 1.5, 1.9, rng.uniform(0, 2)])),
    )
    p, onto = laws(rng, T, d)
    sizes = rng.uniform(0, 1, (BATCH, T, 1, 1)) ** rng.integers(0, 4)
    step = x * sizes * onto
    steps, mean = np.eye(d) - step, np.einsum("bm,bmij->bij", p, step)
    left = mean
    for n in range(STEPS):
        value = worst(left)
        note(found, "SGD", value, 1 / ((2 - x) * reach(x) * (n + 1)))
        if x <= 1 and n:
            note(found, "SGD, x <= 1", value, fresh(n))
        left = _mapped(p, steps, left)


def halfspaces(found: Found, rng: np.random.Generator) -> None:
    """Half-spaces with the common point 0: all orders, with and without replacement, from random starts."""
    T, d = int(rng.integers(2, 4)), int(rng.integers(2, 4))
    normals = rng.standard_normal((BATCH, T, d)) + rng.uniform(-2, 2) * rng.standard_normal((BATCH, 1, d))
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    start = rng.standard_normal((BATCH, d)) + rng.choice([0.0, 2.0]) * normals.sum(1)
    start /= np.linalg.norm(start, axis=-1, keepdims=True)

    def distances(w: Any) -> Any:
        return np.maximum(np.einsum("bmi,bi->bm", normals, w), 0.0) ** 2

    def project(w: Any, task: int) -> Any:
        outside = np.maximum(np.einsum("bi,bi->b", normals[:, task], w), 0.0)
        return w - outside[:, None] * normals[:, task]

    for k in range(5):
        orders = list(itertools.product(range(T), repeat=k))
        mean = np.zeros(BATCH)
        for order in orders:
            w = start
            for task in order:
                w = project(w, task)
            mean += distances(w).mean(1) / len(orders)
        note(found, "sets: residual", mean, 2 / math.sqrt(k + 1))
        if k:
            note(found, "conjecture: sets", mean, 4 / (3 * math.sqrt(3) * (k + 1)))
    for k in range(T):
        orders = list(itertools.permutations(range(T), k + 1))
        mean = np.zeros(BATCH)
        for order in orders:
            w = start
            for task in order[:k]:
                w = project(w, task)
            mean += distances(w)[:, order[k]] / len(orders)
        if k:
            note(found, "sets: next", mean, unseen(k))
            note(found, "conjecture: next loss of sets", mean, every_order(k + 1))


KINDS = (independent, single_pass, descents, halfspaces)


def hunt(problems: int, seed: int = 0) -> Found:
    """The largest ratio of each statement over as many problems of each kind."""
    found: Found = defaultdict(float)
    for kind, one in enumerate(KINDS):
        rng = np.random.default_rng([seed, kind])
        for _ in range(max(1, problems // BATCH)):
            one(found, rng)
    return dict(found)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 if a statement is violated."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--problems", type=int, default=100_000, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    found = hunt(given.problems, given.seed)
    for name, ratio in found.items():
        print(f"{name}: largest ratio {ratio:.6g}")
    return int(max(found.values()) > 1 + 1e-9)


if __name__ == "__main__":
    raise SystemExit(main())
