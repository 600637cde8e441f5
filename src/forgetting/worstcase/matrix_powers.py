"""Powers of matrices by squaring, applied to vectors, and the adjoint of that: both take about log2(k) products.

Everything is batched over the first axis and written to the array API, with few calls: on a GPU these are what takes
time. After every fourth squaring the matrix is divided by its norm, so that nothing underflows, and the logarithms of
these numbers are kept. The adjoint treats them as constants, which is exact for the gradient of a logarithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from forgetting.compute.devices import Device

EVERY = 4  # squarings from one division by the norm to the next: the norm falls to n^-8 at most between them
LEAST = 1e-300  # added to norms


def bits_of(k: int) -> list[int]:
    """The exponents of the powers of two that sum to k, in ascending order.

    >>> bits_of(13)
    [0, 2, 3]
    """
    return [place for place in range(k.bit_length()) if k >> place & 1]


def flipped(xp: Any, matrices: Any) -> Any:
    """The transposes of a stack of matrices."""
    return xp.linalg.matrix_transpose(matrices)


def symmetrised(xp: Any, matrices: Any) -> Any:
    """A + A' of each matrix A of a stack."""
    return matrices + flipped(xp, matrices)


@dataclass(frozen=True, eq=False)
class Chain:
    """The matrices M^(2^i) for i up to log2(k), each up to a positive factor.

    With `others`, S_1, ..., S_T, it also holds the coefficients of e in (M + e S_m)^(2^i): the powers of dual numbers
    (M, S_m), whose product is (A, A')(B, B') = (AB, AB' + A'B). M and S_m are symmetric there.

    Attributes:
        squares: arrays (batch, n, n).
        duals: arrays (batch, n, T n), the matrices of all m side by side, so that a product with M is one product;
            empty without `others`.
        sizes: what squares were divided by, (batch, 1, 1), by the exponents i.
        bits: the powers that make up k.
    """

    device: Device
    squares: list[Any]
    duals: list[Any]
    sizes: dict[int, Any]
    bits: list[int]
    symmetric: bool

    @classmethod
    def made(cls, device: Device, matrix: Any, k: int, *, others: Any = None, symmetric: bool = True) -> Chain:
        """The chain for the power k >= 1 of the matrices (batch, n, n)."""
        xp, bits = device.xp, bits_of(k)
        squares, sizes, duals = [matrix], {}, [] if others is None else [others]
        for level in range(1, bits[-1] + 1):
            last = squares[-1]
            square = last @ last
            if duals:
                duals.append(_symmetrised_beside(xp, last @ duals[-1]))
            if level % EVERY == 0:
                sizes[level] = xp.linalg.vector_norm(square, axis=(1, 2), keepdims=True) + LEAST
                square = square / sizes[level]
                if duals:
                    duals[-1] = duals[-1] / sizes[level]
            squares.append(square)
        return cls(device, squares, duals, sizes, bits, symmetric)

    @property
    def log_scale(self) -> Any:
        """The logarithm of what results of `apply` are to be multiplied by, (batch,); 0 where nothing was divided."""
        total: Any = 0.0
        for level, size in self.sizes.items():
            times = float(sum(2 ** (bit - level) for bit in self.bits if bit >= level))
            total = total + times * self.device.xp.log(size[:, 0, 0])
        return total

    def apply(self, columns: Any) -> tuple[Any, list[Any]]:
        """M^k times the columns (batch, n, c), up to the scale; and what each factor was applied to.

        With `others` the sum over m of the coefficient of e in (M + e S_m)^k times column m, (batch, n, 1).
        """
        xp, seen = self.device.xp, []
        batch, n, count = columns.shape
        total = self.device.zeros(batch, n, 1)
        for bit in self.bits:
            seen.append((columns, total))
            if self.duals:
                total = self.squares[bit] @ total
                total = total + self.duals[bit] @ xp.reshape(flipped(xp, columns), (batch, count * n, 1))
            columns = self.squares[bit] @ columns
        return total if self.duals else columns, seen

    def pull(self, cotangent: Any, seen: list[Any]) -> tuple[Any, Any, Any]:
        """The adjoint of `apply`: cotangents of M, of the S_m (None without them) and of the columns."""
        xp, own = self.device.xp, {}
        dual_bar: Any = None
        batch, n, count = seen[0][0].shape
        of_columns, of_total = (self.device.zeros(batch, n, count) if self.duals else cotangent), cotangent
        for bit, (columns, total) in zip(reversed(self.bits), reversed(seen), strict=True):
            back = self.squares[bit] if self.symmetric else flipped(xp, self.squares[bit])
            square_bar = of_columns @ flipped(xp, columns)
            of_columns = back @ of_columns
            if self.duals:
                across = xp.reshape(flipped(xp, columns), (batch, 1, count * n))
                dual_bar = 0.5 * _symmetrised_beside(xp, of_total @ across)
                square_bar = square_bar + of_total @ flipped(xp, total)
                pulled = xp.reshape(flipped(xp, self.duals[bit]) @ of_total, (batch, count, n))
                of_columns, of_total = of_columns + flipped(xp, pulled), back @ of_total
            own[bit] = 0.5 * symmetrised(xp, square_bar) if self.symmetric else square_bar, dual_bar
        square_bar, dual_bar = own[self.bits[-1]]
        for level in range(self.bits[-1] - 1, -1, -1):
            below = self.squares[level]
            if level + 1 in self.sizes:
                square_bar = square_bar / self.sizes[level + 1]
                dual_bar = dual_bar / self.sizes[level + 1] if self.duals else None
            if self.duals:
                square_bar = symmetrised(xp, square_bar @ below + dual_bar @ flipped(xp, self.duals[level]))
                dual_bar = _symmetrised_beside(xp, below @ dual_bar)
            elif self.symmetric:
                square_bar = symmetrised(xp, square_bar @ below)
            else:
                square_bar = square_bar @ flipped(xp, below) + flipped(xp, below) @ square_bar
            if level in own:
                square_bar = square_bar + own[level][0]
                dual_bar = dual_bar + own[level][1] if self.duals else None
        return square_bar, dual_bar, of_columns


def _symmetrised_beside(xp: Any, matrices: Any) -> Any:
    """A + A' of each of the matrices that are side by side, (batch, n, T n)."""
    batch, n, width = matrices.shape
    apart = xp.reshape(matrices, (batch, n, width // n, n))
    return xp.reshape(apart + xp.permute_dims(apart, (0, 3, 2, 1)), matrices.shape)
