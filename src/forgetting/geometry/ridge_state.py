"""What a ridge regression keeps of all rows: the triangle of a QR factorisation, which holds data and no penalty.

Rows (1, x - s) beside targets y - t, each times the root of its weight, have the factorisation Q [R Z; 0 E]: R is
triangular with a row for the constant and for each feature, and only the squared lengths of the columns of E are kept.
The shifts s and t are the means of the first rows; they take off digits that all rows share. For every w and b

    sum_i s_i |y_i - x_i.w - b|^2 = |Z - R (b', w)|^2 + |E|^2,   b' = b + s.w - t,

so that the solution for every penalty, with or without an intercept, follows from R and Z alone. Rows are added by
orthogonal transformations (LAPACK's tpqrt, Householder's reflections in blocks) and never by inner products of columns,
which would square the condition number.

Cost: 2 n p^2 + 4 n p c operations for n rows, p = d + 1 and c outputs; memory p (p + c) numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from forgetting.compute.devices import HOST, Device
from forgetting.compute.threads import cores, one_thread
from forgetting.compute.triangular import add_rows
from forgetting.core.arrays import Array
from forgetting.core.numerical import EPS, SQUARED, quietly
from forgetting.errors import InvalidInputError, NotSupportedError

BLOCK = 512  # rows that are factorised at once
CHAINS = 4  # parts of a call, at most, that are factorised side by side and then joined
DEVICE_SHARE = 64  # bytes of a device's free memory for each number that is factorised at once
#: The backward error of R after n steps on p columns, relative to the columns, in units of EPS sqrt(n p): independent
#: rounding errors grow so (Connolly and Higham 2023); measured were 1.1 at most, in 15,000 problems of a few rows.
GROWTH = 2.0
SUMMED = 64  # rows of a step whose sums add as much error as another step: LAPACK adds up many partial sums
STRENGTHS = 200  # penalties that are tried between the least and the largest

ENOUGH = 0.01  # of the squared length of every direction, left after rows are removed: errors grow little

Rows = Callable[[slice], Array]


@dataclass(frozen=True, eq=False)
class RidgeState:
    """The rows so far, as R, Z and |E|^2, each a sum over rows with weights.

    Attributes:
        factor: R, (p, p), upper triangular.
        targets: Z, (p, c).
        left: (c,), the squared lengths of the columns of E: what no w and b can fit.
        shift: (d,), s.
        target_shift: (c,), t.
        lost: (p + 1,), what rounding errors of removing rows may have changed in the squared length of each column of
            R, and of all targets. Products of columns changed by at most the roots of these.
        moved: (3, c), where much of every direction was left when rows were removed: the squared lengths of errors of
            the features and of each target that amount to the same, and of how far removed targets were from the fit.
        rows: how many rows there are.
        weight: the sum of their weights.
        steps: how many factorisations led here, for the bound on rounding errors.
        device: where R and Z are.
    """

    factor: Any
    targets: Any
    left: Array
    shift: Array
    target_shift: Array
    lost: Array
    moved: Array
    rows: int = 0
    weight: float = 0.0
    steps: float = 0.0
    device: Any = HOST

    @classmethod
    def empty(cls, shift: Array, target_shift: Array, device: Device = HOST) -> RidgeState:
        """No rows yet, of features and targets with these shifts.

        >>> RidgeState.empty(np.zeros(2), np.zeros(1)).factor.shape
        (3, 3)
        """
        p, c = len(shift) + 1, len(target_shift)
        factor, targets = np.zeros((p, p), order="F"), np.zeros((p, c), order="F")
        zeros = np.zeros(c), shift, target_shift, np.zeros(p + 1), np.zeros((3, c))
        return cls(device.put(factor), device.put(targets), *zeros, device=device)

    # --------------------------------------------------------------------------------------------------- adding rows

    def with_rows(self, X: Any, targets: Rows, weights: Array | None = None) -> RidgeState:
        """The state with more rows.

        Args:
            X: (n, d), dense or sparse, or an array on the device.
            targets: gives the targets of some of the rows, (n, c).
            weights: (n,), of at least 0; None for 1.

        >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [2.0], [3.0]])
        >>> state = RidgeState.empty(np.zeros(1), np.zeros(1)).with_rows(X, lambda cut: y[cut])
        >>> [part.round(6).tolist() for part in state.decomposed(True).solution(0.0)]
        [[[1.0]], [1.0]]
        """
        n, p = X.shape[0], len(self.shift) + 1
        size = (
            BLOCK if self.device.host else max(4 * p, int(self.device.memory / (DEVICE_SHARE * (p + len(self.left)))))
        )
        chains = max(1, min(CHAINS, n // (8 * p))) if self.device.host else 1
        spans = [(n * place // chains, n * (place + 1) // chains) for place in range(chains)]
        shift = self.device.put(self.shift)

        def chain(place: int) -> RidgeState:
            # a call that is interrupted leaves this state as it was
            state = self._copy() if place == 0 else type(self).empty(self.shift, self.target_shift, self.device)
            for first in range(spans[place][0], spans[place][1], size):
                cut = slice(first, min(first + size, spans[place][1]))
                state = state._with_block(*state._block(X, targets, weights, cut, shift))
            return state

        with one_thread():
            if chains == 1:
                state = chain(0)
            else:  # the same chains whatever the number of threads, and so the same numbers
                with ThreadPoolExecutor(min(cores(), chains)) as pool:
                    first, *others = pool.map(chain, range(chains))
                state = reduce(RidgeState._with_state, others, first)
        return replace(
            state,
            rows=self.rows + (n if weights is None else int(np.count_nonzero(weights))),
            weight=self.weight + (float(n) if weights is None else float(weights.sum())),
        )._finite()

    def _copy(self) -> RidgeState:
        if not self.device.host:  # arrays there are never changed in place
            return self
        return replace(self, factor=self.factor.copy(order="F"), targets=self.targets.copy(order="F"))

    def _block(self, X: Any, targets: Rows, weights: Array | None, cut: slice, shift: Any) -> tuple[Any, Any]:
        """(1, x - s) and y - t of some rows, times the roots of their weights, in float64."""
        own, D, device = X[cut], targets(cut), self.device
        own = own.toarray() if hasattr(own, "toarray") else own
        roots = None if weights is None else np.sqrt(weights[cut])[:, None]
        if not device.host:
            xp = device.xp
            rows, columns = (
                xp.asarray(part, dtype=xp.float64, device=device.where) if is_elsewhere(part) else device.put(part)
                for part in (own, D)
            )
            ones = xp.ones((rows.shape[0], 1), dtype=xp.float64, device=device.where)
            B, D = xp.concat([ones, rows - shift], axis=1), columns - device.put(self.target_shift)
            return (B, D) if roots is None else (B * device.put(roots), D * device.put(roots))
        B = np.empty((own.shape[0], len(self.shift) + 1), order="F")
        B[:, 0] = 1.0
        B[:, 1:] = own
        B[:, 1:] -= shift
        D = np.array(D - self.target_shift, dtype=np.float64, order="F")
        if roots is not None:
            B *= roots
            D *= roots
        return B, D

    def _with_block(self, B: Any, D: Any, *, triangular: bool = False) -> RidgeState:
        """The state with rows B beside targets D; here, all of these arrays are overwritten. B may be triangular."""
        steps = self.steps + 1 + B.shape[0] / SUMMED
        if self.device.host:
            with quietly():
                add_rows(self.factor, self.targets, B, D, triangular=triangular)
                return replace(self, left=self.left + np.einsum("ij,ij->j", D, D), steps=steps)
        xp, p = self.device.xp, B.shape[1]
        stacked = xp.concat([xp.concat([self.factor, self.targets], axis=1), xp.concat([B, D], axis=1)], axis=0)
        if stacked.shape[0] < stacked.shape[1]:
            stacked = xp.concat([stacked, self.device.zeros(stacked.shape[1] - stacked.shape[0], stacked.shape[1])])
        both = self.device.triangle(stacked)
        rest = self.device.take(both[p:, p:])
        left = self.left + np.einsum("ij,ij->j", rest, rest)
        return replace(self, factor=both[:p, :p], targets=both[:p, p:], left=left, steps=steps)

    def _finite(self) -> RidgeState:
        largest = np.max([max(part.max(), -part.min()) for part in self._here])
        if not largest <= np.sqrt(SQUARED) or not np.isfinite(self.left).all():
            raise InvalidInputError("X or y holds numbers so large that their squares overflow; rescale the columns")
        return self

    # ------------------------------------------------------------------------------------------ states out of states

    def joined(self, other: RidgeState) -> RidgeState:
        """The state of the rows of both."""
        if not other.rows:
            return self
        with one_thread():
            state = self._copy()._with_state(other)
        return replace(
            state,
            rows=self.rows + other.rows,
            weight=self.weight + other.weight,
            lost=self.lost + other.lost,
            moved=self.moved + other.moved,
        )._finite()

    def _with_state(self, other: RidgeState) -> RidgeState:
        """Our factorisation with the rows of another; here, ours is overwritten."""
        moved = other.shifted(self.shift, self.target_shift, self.device)
        state = self._with_block(moved.factor, moved.targets, triangular=True)
        return replace(state, left=state.left + other.left, steps=state.steps + other.steps)

    def shifted(self, shift: Array, target_shift: Array, device: Device) -> RidgeState:
        """The same rows with other shifts, of which only the first row of R and Z changes, on a device."""
        factor, targets = (self.device.take(part).copy(order="F") for part in (self.factor, self.targets))
        factor[0, 1:] += factor[0, 0] * (self.shift - shift)
        targets[0] += factor[0, 0] * (self.target_shift - target_shift)
        factor, targets = device.put(factor), device.put(targets)
        return replace(self, factor=factor, targets=targets, shift=shift, target_shift=target_shift, device=device)

    def with_outputs(self, count: int, places: Sequence[int]) -> RidgeState:
        """The state with `count` outputs, of which ours are at `places`; all rows so far have 0 in the others."""
        if count == len(self.left):
            return self

        def spread(part: Array) -> Array:
            wide = np.zeros((*part.shape[:-1], count), order="F")
            wide[..., list(places)] = part
            return wide

        targets = self.device.put(spread(self.device.take(self.targets)))
        left, shift, moved = map(spread, (self.left, self.target_shift, self.moved))
        return replace(self, targets=targets, left=left, target_shift=shift, moved=moved)

    def without_rows(self, X: Any, targets: Rows, weights: Array | None = None) -> RidgeState:
        """The state without rows that it was given before; see `Removal` for how, and for what is refused."""
        state, size = replace(self, device=HOST, factor=self._here[0], targets=self._here[1]), len(self.shift) + 1
        rows = X.shape[0] if weights is None else int(np.count_nonzero(weights))
        weight = float(rows) if weights is None else float(weights.sum())
        if rows > self.rows or weight > self.weight * (1 + 8 * EPS):
            raise InvalidInputError(
                f"{rows} rows of weight {weight:g} cannot be removed from {self.rows} rows of weight {self.weight:g}: "
                "some of them were never learned"
            )
        with one_thread():
            for first in range(0, X.shape[0], size):
                cut = slice(first, first + size)
                state = state._without_block(*state._block(X, targets, weights, cut, self.shift))
        left_rows, left_weight = self.rows - rows, self.weight - weight
        if not left_rows:
            if np.linalg.norm(state.factor) > 1e-3 * np.linalg.norm(self._here[0]):
                raise _never_learned("something would be left of as many rows as there are")
            return type(self).empty(self.shift, self.target_shift, self.device)
        if left_weight <= 1e-12 * self.weight:
            raise NotSupportedError(
                f"of the weight {self.weight:g} only rounding errors would be left, for {left_rows} rows; remove rows "
                "with the weights that they were learned with"
            )
        put = self.device.put
        return replace(
            state,
            factor=put(state.factor),
            targets=put(state.targets),
            rows=left_rows,
            weight=left_weight,
            device=self.device,
        )

    def _without_block(self, B: Array, D: Array) -> RidgeState:
        """The state without rows B and their targets D.

        With a = R^-T B' the rows of [a; S], S'S = I - a'a, are orthonormal columns, and an orthonormal basis [W; V] of
        what is orthogonal to them gives R' = W'R with R'R' = R'R - B'B. Rows that were learned have |a| <= 1.
        """
        # columns of one length, so that errors are relative to each; shorter ones where all may be errors
        lengths, lost = np.linalg.norm(self.factor, axis=0), self.lost[:-1]
        columns = np.maximum(lengths, 1e7 * np.sqrt(lost))
        columns = np.where(columns > 0, columns, 1.0)
        share = float(np.max(lost / columns**2))
        R, Z, B = self.factor / columns, self.targets, B / columns
        size, scale = float(np.linalg.norm(R)), float(np.sqrt(np.sum(Z**2) + np.sum(self.left)))
        noise = max(self.rounding * size, 2 * np.sqrt(share))
        left, sigma, right = np.linalg.svd(R)
        rank = int(np.count_nonzero(sigma > noise))
        beside = left[:, rank:].T @ Z  # what no w and b can fit, where R is singular
        Z, before = Z - left[:, rank:] @ beside, self.left + np.einsum("ij,ij->j", beside, beside)
        inner = B @ right[:rank].T
        beyond = float(np.linalg.norm(B - inner @ right[:rank]))
        if beyond > 1e3 * self.rounding * size + 5 * noise:
            raise _never_learned("their columns are no combination of those of the rows so far")
        a = left[:, :rank] @ (inner / sigma[:rank]).T
        squares, turn = np.linalg.eigh(np.eye(a.shape[1]) - a.T @ a)
        least = sigma[rank - 1] if rank else size
        doubt = 1e3 * self.rounding * size / least + share / least**2 if rank else 0.0
        if squares[0] < -max(doubt, 1e-10):
            raise _never_learned("the rows that would be left had a negative sum of squares")
        roots = np.sqrt(np.maximum(squares, 0.0))
        S = roots[:, None] * turn.T
        rest = turn.T @ (D - a.T @ Z)
        small = roots <= np.sqrt(doubt)
        E = np.where(small[:, None], 0.0, rest / np.where(small, 1.0, roots)[:, None])
        given = scale + float(np.linalg.norm(D))
        if float(np.linalg.norm(rest[small])) > 10 * np.sqrt(doubt) * given:
            raise _never_learned("their targets are not those of the only rows in some direction")
        left_over = before - np.einsum("ij,ij->j", E, E)
        floor = doubt * given**2 + float(self.lost[-1])
        if (left_over < -floor / max(float(roots[~small].min(initial=1.0)) ** 2, EPS)).any():
            raise _never_learned("their targets would leave a negative sum of squares")
        Q = np.linalg.qr(np.concatenate([a, S]), mode="complete")[0][:, a.shape[1] :]
        factor, turned = np.linalg.qr(Q[: len(R)].T @ R), Q[: len(R)].T @ Z + Q[len(R) :].T @ E
        made = replace(
            self,
            factor=np.asfortranarray(factor.R * columns),
            targets=np.asfortranarray(factor.Q.T @ turned),
            left=np.maximum(left_over, 0.0),
            lost=self.lost + np.append(0 * lost, 4 * _square(beside) if share else 0.0),
        )
        step = 64 * EPS * np.sqrt(len(R)) + beyond
        if squares[0] >= ENOUGH:
            # [R; 0] = Q [B; R'] holds for columns that are changed by `step`; a change E of R amounts to a change M E
            # of R', M = (R R'^-1)', which has the singular values 1 / roots, and 1 in all other directions
            growth = 1 + float(np.sum(1 / squares - 1)) / len(R)
            before, after = self._own_errors, made._own_errors
            moved = growth * (self.moved[:2] + before * (1 + (step / self.rounding) ** 2)) - after
            misses = self.moved[2] + np.einsum("ij,ij->j", rest, rest / squares[:, None] ** 2)
            return replace(made, moved=np.vstack([np.maximum(moved, 0.0), misses]))
        step += self.rounding
        clipped = step + max(float(np.abs(squares[squares < 0]).max(initial=0.0)), float(squares[small].max(initial=0)))
        own = size * step * lengths**2 + clipped * np.sum((B * columns) ** 2, axis=0)
        return replace(made, lost=made.lost + np.append(own, size * step * given**2 + _square(rest[small]) / clipped))

    @property
    def _own_errors(self) -> Array:
        """(2, c): the squared lengths of errors of the features, and of each target, in adding rows."""
        R, Z = self._here
        squares = np.einsum("ij,ij->j", Z, Z) + self.left
        return self.rounding**2 * np.stack([np.full(len(squares), _square(R[:, 1:])), squares])

    # -------------------------------------------------------------------------------------------------- reading it

    @property
    def _here(self) -> tuple[Array, Array]:
        """R and Z as NumPy arrays."""
        return self.device.take(self.factor), self.device.take(self.targets)

    @cached_property
    def rounding(self) -> float:
        """A bound on the backward error of R and Z, relative to the lengths of their columns.

        Rounding errors count as independent with mean 0, so that they grow like the root of the number of steps;
        without that assumption they might grow like the number itself.
        """
        p = len(self.shift) + 1
        return float(GROWTH * EPS * np.sqrt(p * (self.steps + p)))

    @cached_property
    def as_signs(self) -> RidgeState:
        """The state for targets 2 y - 1: for those of 1 and 0, the state for 1 and -1."""
        lost = np.append(self.lost[:-1], 4 * self.lost[-1])
        shift = 2 * self.target_shift - 1
        moved = 4 * self.moved
        moved[0] /= 4
        targets = 2 * self.targets
        return replace(self, targets=targets, left=4 * self.left, target_shift=shift, lost=lost, moved=moved)

    @cached_property
    def chosen(self) -> dict[Any, float]:
        """Penalties that were chosen by these rows: a place to keep them."""
        return {}

    @cached_property
    def _decompositions(self) -> dict[bool, Decomposition]:
        return {}

    def decomposed(self, intercept: bool) -> Decomposition:
        """What gives the solutions for all penalties; made once."""
        if intercept not in self._decompositions:
            self._decompositions[intercept] = self._decomposed(intercept)
        return self._decompositions[intercept]

    def _decomposed(self, intercept: bool) -> Decomposition:
        R, Z = self._here
        own = self._own_errors
        grown = np.sqrt(1 + self.moved[:2] / np.where(own > 0, own, 1.0))  # by removing rows
        size, lengths = np.sqrt(own / self.rounding**2)
        if intercept:
            M, z = R[1:, 1:], Z[1:]
            start = R[0, 0] if self.rows else 1.0
            means, middles = R[0, 1:] / start, Z[0] / start
        else:  # rows x and targets y themselves
            means, middles = self.shift, self.target_shift
            R, z = R.copy(), Z.copy()
            R[0, 1:] += R[0, 0] * means
            z[0] += R[0, 0] * middles
            M = R[:, 1:]
            size, lengths = size + abs(R[0, 0]) * np.linalg.norm(means), lengths + np.abs(R[0, 0] * middles)
        # the shifts themselves are known to their last digit
        size = size + EPS * abs(R[0, 0]) * np.linalg.norm(self.shift)
        lengths = lengths + EPS * np.abs(R[0, 0] * self.target_shift)
        ones, features, columns = np.sqrt([self.lost[0], self.lost[1:-1].sum(), self.lost[-1]])
        side = float(features + np.linalg.norm(means) * ones)
        lost = side**2, side * (columns + np.abs(middles) * ones)
        rows, targets = self.rounding * grown * (size, lengths)
        doubts = Doubts(float(rows.max(initial=0.0)), targets, np.sqrt(self.moved[2]), *lost)
        return Decomposition(self, intercept, M, z, doubts)

    def squared_errors(self, coef: Array, intercept: Array) -> Array:
        """sum_i s_i (y_i - x_i.w - b)^2 for w (..., c, d) and b (..., c), in the shape of b."""
        R, Z = self._here
        start = intercept + coef @ self.shift - self.target_shift
        turned = np.concatenate([start[..., None], coef], axis=-1) @ R.T  # (..., c, p)
        missed = turned - Z.T
        return np.asarray(np.einsum("...j,...j->...", missed, missed) + self.left)


def _square(values: Array) -> float:
    """The sum of squares."""
    return float(np.sum(values**2))


def _never_learned(why: str) -> InvalidInputError:
    return InvalidInputError(f"these rows were not learned, or not with these targets and weights: {why}")


def is_elsewhere(array: Any) -> bool:
    """Whether an array lives on a device of its own (torch, CuPy)."""
    return not isinstance(array, np.ndarray) and hasattr(array, "device") and not hasattr(array, "toarray")


class Doubts(NamedTuple):
    """Bounds on what rounding errors changed: as lengths, the matrix A and each of its targets b; how far removed rows
    were from the fit; and A'A and A'b, where removing rows left little of a direction."""

    rows: float
    targets: Array
    misses: Array
    gram: float
    products: Array


class Strengths(NamedTuple):
    """Squared errors over rows for several penalties, (penalties, outputs), and the degrees of freedom of each."""

    alphas: Array
    errors: Array
    freedom: Array


@dataclass(frozen=True, eq=False)
class Decomposition:
    """The centred rows (with an intercept) or the rows themselves (without), as R beside Z, and what follows from them.

    A single penalty needs another QR factorisation; several, a choice among them and bounds need the singular value
    decomposition, which is made once and takes many times as long.

    Attributes:
        state: the rows.
        intercept: whether there is an intercept.
        matrix: R, (d, d) or, without an intercept, (d + 1, d).
        targets: Z, in as many rows.
        doubts: what rounding errors may have changed.
    """

    state: RidgeState
    intercept: bool
    matrix: Array
    targets: Array
    doubts: Doubts

    @cached_property
    def _parts(self) -> tuple[Array, Array, Array, Array]:
        """Singular values, right singular vectors as rows, the targets along the left ones, (values, c), and `left`."""
        with one_thread():
            left, sigma, right = np.linalg.svd(self.matrix, full_matrices=False)
            inner = left.T @ self.targets
            return sigma, right, inner, self.state.left + np.sum((self.targets - left @ inner) ** 2, axis=0)

    @property
    def sigma(self) -> Array:
        """The singular values."""
        return self._parts[0]

    @property
    def inner(self) -> Array:
        """The targets along the left singular vectors, (values, c)."""
        return self._parts[2]

    @property
    def left(self) -> Array:
        """The squared lengths of what no w and b can fit, (c,)."""
        return self._parts[3]

    def solution(self, alpha: float) -> tuple[Array, Array]:
        """w (c, d) and b (c,) for a penalty; without one, the shortest w of all least-squares solutions."""
        found = self._last.get(alpha)
        if found is None:
            with one_thread():  # no digit depends on the number of threads
                coef = self._penalised(alpha) if alpha > 0 else self._along(0.0)
                found = coef, self.intercepts(coef)
            self._last.clear()
            self._last[alpha] = found
        return found[0].copy(), found[1].copy()

    def solutions(self, alphas: Array) -> tuple[Array, Array]:
        """w (penalties, c, d) and b (penalties, c) for many penalties, from the singular value decomposition."""
        with one_thread():
            coef = np.stack([self._along(alpha) for alpha in alphas.tolist()])
            return coef, self.intercepts(coef)

    def _along(self, alpha: float) -> Array:
        """w from the singular vectors."""
        return np.asarray((self._gains(alpha)[:, None] * self.inner).T @ self._parts[1])

    @cached_property
    def _last(self) -> dict[float, tuple[Array, Array]]:
        """The last solution, which predictions ask for again and again."""
        return {}

    def _penalised(self, alpha: float) -> Array:
        """w for a penalty, from the triangle of R and sqrt(alpha) I."""
        d, c = self.matrix.shape[1], self.targets.shape[1]
        R, Z = self.matrix, self.targets
        if not self.intercept:
            Q, R = np.linalg.qr(R)
            Z = Q.T @ Z
        R, Z = np.array(R, order="F"), np.array(Z, order="F")
        penalty, nothing = np.asfortranarray(np.sqrt(alpha) * np.eye(d)), np.zeros((d, c), order="F")
        add_rows(R, Z, penalty, nothing, triangular=True)
        return np.asarray(solve_triangular(R, Z, check_finite=False).T)

    def intercepts(self, coef: Array) -> Array:
        """b for w of the shape (..., c, d); 0 without an intercept."""
        state = self.state
        if not self.intercept or not state.rows:
            return np.zeros(coef.shape[:-1])
        R, Z = state._here
        start = (Z[0] - coef @ R[0, 1:]) / R[0, 0]
        return np.asarray(start + state.target_shift - coef @ state.shift)

    def _gains(self, alpha: float) -> Array:
        """sigma / (sigma^2 + alpha), and 0 where sigma is a rounding error of 0 and nothing is penalised."""
        if alpha == 0:
            known = self.sigma > self.doubts.rows
            return np.where(known, 1 / np.where(known, self.sigma, 1.0), 0.0)
        return np.asarray(self.sigma / (self.sigma**2 + alpha))

    def _missed(self, alphas: Array) -> Array:
        """The share of the targets along each left singular vector that is not fitted, (penalties, len(sigma))."""
        shares = [alpha / (self.sigma**2 + alpha) if alpha else self._gains(0.0) == 0 for alpha in alphas.tolist()]
        return np.array(shares, dtype=np.float64).reshape(len(alphas), -1)

    def errors_of(self, alphas: Array) -> Strengths:
        """The squared errors on the rows themselves for several penalties, and the degrees of freedom."""
        fitted = self.sigma * np.array([self._gains(alpha) for alpha in alphas.tolist()]).reshape(len(alphas), -1)
        missed = self._missed(alphas)
        with one_thread():
            errors = missed**2 @ self.inner**2 + self.left
        return Strengths(alphas, errors, fitted.sum(axis=1) + self.intercept)

    def generalised(self, alphas: Array) -> Array:
        """The criterion of generalised cross-validation, n sum_j |residual_j|^2 / (n - freedom)^2, for each penalty.

        n is the sum of weights (Golub, Heath and Wahba 1979); infinite where no degrees of freedom are left.
        """
        errors = self.errors_of(alphas).errors
        n, known = self.state.weight, self.sigma > self.doubts.rows
        # n less the freedom, without cancellation where there are no more rows than columns
        missed = self._missed(alphas)
        spare = n - self.intercept - np.count_nonzero(known) + missed @ known - (1 - missed) @ ~known
        enough = spare > 8 * EPS * n
        return np.where(enough, n * errors.sum(axis=1) / np.where(enough, spare, 1.0) ** 2, np.inf)

    def grid(self) -> Array:
        """Penalties from where nothing is penalised, up to rounding errors, to where everything is."""
        top = float(self.sigma.max(initial=0.0)) ** 2 or 1.0
        return np.geomspace(max(self.doubts.rows / np.sqrt(top), 1e-12) * top, 1e3 * top, STRENGTHS)

    def coefficient_errors(self, alpha: float) -> Array:
        """A bound on the rounding error of each output's w, as a length.

        For errors dA and db of A and b, and, after rows were removed, G and g of A'A and A'b,
        (dA |w| + db) / s + (dA |r| + G |w| + g) / s^2, with the residual r = b - A w and s the least singular value
        of [A; sqrt(alpha) I] that these errors leave. For (A'A + alpha I) dw = A'(db - dA w) + dA'r + g - G w where
        A, in these products, is the true one.
        """
        coef, _ = self.solution(alpha)
        lengths = np.linalg.norm(coef, axis=1)
        known = self.sigma[self._gains(alpha) > 0] if alpha == 0 else self.sigma
        if not len(known):
            return np.zeros(len(lengths))
        rows, targets, misses, gram, products = self.doubts
        low = alpha + max(max(float(known.min()) - rows, 0.0) ** 2 - gram, 0.0)
        if low == 0:
            return np.full(len(lengths), np.inf)
        residual = np.sqrt(self.errors_of(np.array([alpha])).errors[0]) + misses
        turned = 1 if len(known) == len(self.sigma) else 2  # the directions without data turn, too
        first = (turned * rows * lengths + targets) / np.sqrt(low)
        return np.asarray(first + (rows * residual + gram * lengths + products) / low)

    def relative_errors(self, alpha: float) -> Array:
        """These bounds divided by |w|, or by |b| / |[A; sqrt(alpha) I]| where w is less than that."""
        lengths = np.linalg.norm(self.solution(alpha)[0], axis=1)
        top = np.sqrt(float(self.sigma.max(initial=0.0)) ** 2 + alpha)
        if top > 0:
            lengths = np.maximum(lengths, self.doubts.targets / (self.state.rounding * top))
        errors = self.coefficient_errors(alpha)
        return np.asarray(errors / np.where(lengths > 0, lengths, 1.0))


def least_score(alphas: Array, scores: Array) -> float:
    """The penalty of the least score; of equal scores the largest.

    >>> least_score(np.array([0.1, 1.0, 10.0]), np.array([2.0, 1.0, 1.0]))
    10.0
    """
    return float(alphas[np.flatnonzero(scores <= np.min(scores))[-1]])


def left_out(states: Sequence[RidgeState]) -> list[RidgeState]:
    """For each state the join of all others: two joins a state, from the left and from the right."""
    if len(states) < 2:
        raise NotSupportedError("leaving a task out needs at least two tasks")
    before: list[RidgeState] = list(accumulate(states, RidgeState.joined))
    after: list[RidgeState] = list(accumulate(reversed(states), RidgeState.joined))[::-1]
    inside = [before[place - 1].joined(after[place + 1]) for place in range(1, len(states) - 1)]
    return [after[1], *inside, before[-2]]
