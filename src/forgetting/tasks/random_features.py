"""Random feature maps: the same numbers give the same map, on any rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from forgetting.core.arrays import Array, as_count, as_number, as_word, is_sparse, real_array, seed_from
from forgetting.core.memory import require_memory
from forgetting.errors import InvalidInputError

__all__ = ["RandomFeatures"]


@dataclass(frozen=True)
class RandomFeatures:
    """A random feature map of a chosen dimension: the same seed gives the same map, whatever the rows.

    With W of independent normal entries of deviation 1/scale and b uniform in [0, 2 pi):

    - "relu": sqrt(2/D) max(0, x W) (an arc-cosine kernel of degree 1);
    - "fourier": sqrt(2/D) cos(x W + b) (a Gaussian kernel of width `scale`; Rahimi and Recht 2007).

    The map is a function of D, the kind, the scale, the seed and the number d of columns of X, and of nothing else.
    Cost: d D random numbers, and n d D products for n rows.

    >>> RandomFeatures(100)(np.eye(3)).shape
    (3, 100)
    """

    dim: int
    kind: Literal["relu", "fourier"] = "relu"
    scale: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", as_count(self.dim, "the number of features", least=1))
        object.__setattr__(self, "scale", as_number(self.scale, "scale", above=0))
        object.__setattr__(self, "seed", seed_from(self.seed))
        as_word(self.kind, ("relu", "fourier"), "the kind of random features")

    def __call__(self, X: Any) -> Array:
        matrix = X if is_sparse(X) else real_array(X, "X")
        if matrix.ndim != 2:
            raise InvalidInputError(f"X: expected a matrix, got shape {matrix.shape}")
        return self.drawn(matrix.shape[1])(matrix)

    def drawn(self, columns: int) -> Callable[[Any], Array]:
        """The map for rows of so many columns, whose random numbers are drawn once, for many matrices.

        >>> lift = RandomFeatures(4).drawn(3)
        >>> bool((lift(np.eye(3)) == RandomFeatures(4)(np.eye(3))).all())
        True
        """
        rng, count = np.random.default_rng(self.seed), as_count(columns, "columns", least=1)
        require_memory(8.0 * count * self.dim, f"{self.dim} random features of {count} columns", "use fewer")
        weights = rng.normal(scale=1 / self.scale, size=(count, self.dim))
        phases = rng.uniform(0, 2 * np.pi, self.dim) if self.kind == "fourier" else None
        factor = float(np.sqrt(2 / self.dim))

        def lift(X: Any) -> Array:
            mixed = np.asarray(X @ weights, dtype=np.float64)
            bent = np.maximum(mixed, 0.0) if phases is None else np.cos(mixed + phases)
            return np.asarray(factor * bent, dtype=np.float64)

        return lift

    @property
    def in_words(self) -> str:
        """The map in words.

        >>> RandomFeatures(50, "fourier", scale=2.0, seed=3).in_words
        '50 random fourier features (scale 2, seed 3)'
        """
        return f"{self.dim} random {self.kind} features (scale {self.scale:.12g}, seed {self.seed})"
