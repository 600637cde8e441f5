"""The check of an EWC: on linear tasks with squared loss the right EWC equals joint training, and errors have a form.

After a quadratic loss, loss and penalty are a quadratic again. So the minimiser of

    L_t(w) + strength/2 (w - w_(t-1))^T F_t (w - w_(t-1)),    F_t = sum_(s<t) of the Hessians of L_s,

minimises L_1 + ... + L_t for strength 1. Every other penalty with a matrix satisfies X_t^T (X_t w_t - y_t) + f G_t = 0,
where G_t is the gradient of another matrix or another centre, and the factor f is found by least squares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import numpy as np
from scipy.optimize import minimize_scalar

from forgetting.core.arrays import Array, as_function, as_number, as_seed, as_word
from forgetting.core.numerical import quietly

__all__ = ["EWCReport", "check_ewc"]

Fit = Callable[[list[Array], list[Array], float], Any]
Loss = Literal["sum", "mean"]
SIZES, DIM = (15, 9, 12, 19), 6  # rows of the tasks, all different, so that sums and means differ; columns
STRONG, WEAK = 1e4, (1e-2, 1e-4)  # strengths for an EWC that does nothing, and for one that diverges at 1
AWAY = 1e3  # weights that are so many times too large have diverged


@dataclass(frozen=True)
class EWCReport:
    """The finding about an EWC that has no fault.

    Attributes:
        fisher: "full", or "diagonal" where the penalty uses the diagonal of the Fisher matrix alone.
        loss: the loss that is minimised: "sum" over the rows of a task, or "mean". Whether it has a factor of 1/2
            cannot be seen in its minimiser, and does not matter if the Fisher has the same.
        gap: the largest distance from joint training, relative to the weights, on tasks where the EWC must equal it:
            all tasks if the Fisher is full, tasks with diagonal X^T X if it is diagonal.
        lost: the distance from joint training on tasks with correlated columns: what a diagonal Fisher costs there.

    >>> print(EWCReport("diagonal", "sum", 1e-12, 0.3))
    this EWC is right with the diagonal of the Fisher matrix (losses: sum over rows)...
    """

    fisher: Literal["full", "diagonal"]
    loss: Literal["sum", "mean"]
    gap: float
    lost: float

    def __str__(self) -> str:
        losses = f"(losses: {self.loss} over rows)"
        if self.fisher == "full":
            return (
                f"this EWC is right {losses}: with strength 1 it equals joint training on all tasks so far, to "
                f"{self.gap:.1g} of the weights"
            )
        return (
            f"this EWC is right with the diagonal of the Fisher matrix {losses}: it equals joint training where the "
            f"columns of every task are uncorrelated, to {self.gap:.1g} of the weights, and is {self.lost:.1g} of the "
            "weights away from it where they are correlated; that is what a diagonal costs, and no fault"
        )


def check_ewc(
    fit: Fit, *, loss: Literal["auto", "sum", "mean"] = "auto", tol: float = 1e-4, seed: int = 0
) -> EWCReport:
    """Check an implementation of (online) EWC on four small linear tasks with squared loss, and say what is wrong.

    The right EWC, with its centre at the last weights w_(t-1), no decay, and strength/2 (w - w_(t-1))^T F (w - w_(t-1))
    for F the sum of the Hessians of the earlier losses, equals joint training at strength 1. One with the diagonal of
    F equals it where every X^T X is diagonal; this is recognised and returned. Anything else raises an `AssertionError`
    that names the fault: does nothing, wrong sign, wrong scale (with the factor), a centre that stays (at the first
    weights, at 0, or one for each task, as in the original EWC), a Fisher of the current, the last or the first task
    alone, of squared gradients (0 where a task is solved), decayed, averaged or missing, a strength that is ignored, a
    factor that depends on the task, as one for each mini-batch does, and a first task that is not minimised, because of
    an intercept, weight decay or too few steps. Every task has more rows than
    columns, so that its minimiser is unique.

    Args:
        fit: fit(Xs, ys, strength) learns the tasks (X of shape (n, d), y of shape (n,)) in turn, each to convergence,
            without an intercept, and returns the weights after each task, of shape (T, d).
        loss: whether your losses are sums or means over the rows of a task; "auto" finds it out.
        tol: the error of your weights, relative to their size, that counts as none. Raise it for float32.
        seed: of the tasks.

    Five calls of `fit`, and up to three more where something is wrong. Diagnosis takes milliseconds.

    >>> def fit(Xs, ys, strength):
    ...     F, w, weights = 0.0, np.zeros(Xs[0].shape[1]), []
    ...     for X, y in zip(Xs, ys):
    ...         w = np.linalg.solve(X.T @ X + strength * F, X.T @ y + strength * F @ w if weights else X.T @ y)
    ...         F, weights = F + X.T @ X, [*weights, w]
    ...     return np.array(weights)
    >>> check_ewc(fit).fisher
    'full'
    >>> check_ewc(lambda Xs, ys, strength: fit(Xs, ys, 2 * strength))
    Traceback (most recent call last):
    AssertionError: wrong scale: the penalty is 2 times as large as it must be, as one without the 1/2 is...
    """
    fit = as_function(fit, "fit")
    as_word(loss, ("auto", "sum", "mean"), "loss")
    tol, rng = as_number(tol, "tol", above=0, below=0.1), np.random.default_rng(as_seed(seed))
    losses: tuple[Loss, ...] = ("sum", "mean") if loss == "auto" else (loss,)
    plain, plain_solved, mixed, mixed_solved = (
        _Check(fit, _drawn(rng, mixed, noise), losses, tol) for mixed, noise in product((False, True), (0.5, 0.0))
    )
    # where columns are uncorrelated, the Fisher is its diagonal, so that all other faults show
    found = plain.require_right(plain_solved)
    gap = plain.gap(found.weights, found.loss)
    mixed.losses = (found.loss,)
    other = mixed.require_right(mixed_solved, diagonal=True)
    lost = mixed.gap(other.weights, found.loss)
    if other.kind == "diagonal":
        return EWCReport("diagonal", found.loss, gap, lost)
    return EWCReport("full", found.loss, max(gap, lost), 0.0)


# ------------------------------------------------------------------------------------------------------ explanations

Kind = Literal["full", "diagonal", "squared gradients", "diagonal of squared gradients", "none"]

#: what to say of a penalty around other centres than w_(t-1)
CENTRES = {
    "last": "",
    "first": "centre not moved: it stays at the weights after the first task, and must be at w_(t-1) for task t",
    "own": "separate centres, one for each earlier task: this is the original EWC, which differs from joint training "
    "from the third task on; keep one centre, w_(t-1), for the sum of all Fishers (online EWC)",
    "start": "centre not moved: it is 0, and must be at w_(t-1) for task t",
}
#: what to say of a Fisher that is not the sum over all earlier tasks
SUMS = {
    "all": "",
    "last": "the Fisher is that of the last task only: sum it over all earlier tasks",
    "current": "the Fisher is that of the current task only: compute it on each task when the task ends, and sum it",
    "first": "the Fisher is that of the first task only: add that of each task when the task ends",
    "with current": "the Fisher includes the current task: add that of a task when the task ends",
    "mean": "the Fisher is the mean over the earlier tasks: with t of them it is t times too small; sum it",
    "decay": "the Fisher is accumulated with decay, gamma = {gamma:.3g}: only gamma = 1 keeps what was learned",
    "moving average": "the Fisher is a moving average, {gamma:.3g} F + {rest:.3g} F_task: sum it",
}


def _share(sums: str, gamma: float) -> Array:
    """The weight of the Fisher of task s in the penalty while task t is learned, in row t and column s."""
    t, s = np.ogrid[: len(SIZES), : len(SIZES)]
    earlier = (s < t).astype(np.float64)
    since = np.maximum(t - 1 - s, 0)
    shares = {
        "all": earlier,
        "last": (s == t - 1) * 1.0,
        "current": (s == t) * 1.0,
        "first": (s == 0) * earlier,
        "with current": (s <= t) * 1.0,
        "mean": earlier / np.maximum(t, 1),
        "decay": earlier * gamma**since,
        "moving average": earlier * np.where(s == 0, 1.0, 1 - gamma) * gamma**since,
    }
    return np.asarray(shares[sums])


@dataclass(frozen=True, eq=False)
class _Penalty:
    """A penalty that explains weights: its matrix, centre and factor, the loss, and how well it explains them."""

    kind: Kind
    centre: str
    sums: str
    loss: Loss
    rows: Loss  # of the Fisher
    weights: Array
    gamma: float = 1.0
    factor: float = 1.0
    factors: tuple[float, ...] = ()  # while each task but the first is learned; all alike unless they may differ
    gap: float = np.inf

    def faults(self, strength: float) -> list[str]:
        """Sentences about all that differs from the right EWC, or from its diagonal."""
        exact = self.kind in ("full", "diagonal")
        factor = self.factor / strength
        said = []
        if factor < 0:
            said.append("wrong sign: the penalty pushes the weights away from its centre; add it to the loss")
        if self.kind == "none":
            said.append("there is no Fisher: the penalty is a multiple of |w - centre|^2")
        elif not exact:
            said.append(
                f"the Fisher is the {self.kind} at the labels (the empirical Fisher), which is 0 for a task that is "
                "solved exactly, where the penalty then does nothing; take the expectation over the model's own "
                "labels, which is X^T X for squared loss"
            )
        elif self.rows != self.loss:
            change = "divide" if self.rows == "sum" else "multiply"
            said.append(
                f"wrong scale: the Fisher is a {self.rows} over the rows of a task, but the loss is a {self.loss}; "
                f"{change} the Fisher of each task by its number of rows"
            )
        hint = {2.0: ", as one without the 1/2 is", 0.5: ", as where the loss has no 1/2 and the Fisher is X^T X"}
        if exact and abs(abs(factor) - 1) > 1e-2:
            near = next((words for value, words in hint.items() if abs(abs(factor) / value - 1) < 1e-2), "")
            beside = "wrong scale" if self.rows == self.loss else "and then"
            said.append(f"{beside}: the penalty is {abs(factor):.3g} times as large as it must be{near}")
        said += [CENTRES[self.centre], SUMS[self.sums].format(gamma=self.gamma, rest=1 - self.gamma)]
        return [sentence for sentence in said if sentence]


# ------------------------------------------------------------------------------------------------------------- tasks


def _drawn(rng: np.random.Generator, correlated: bool, noise: float) -> tuple[list[Array], list[Array]]:
    """Tasks with different solutions; uncorrelated columns make X^T X diagonal, and no noise makes residuals 0."""
    Xs, ys = [], []
    for n in SIZES:
        basis = np.linalg.qr(rng.standard_normal((n, DIM)))[0]
        X = basis * np.sqrt(n) * rng.uniform(0.6, 1.6, DIM)
        if correlated:
            X = X @ np.linalg.qr(rng.standard_normal((DIM, DIM)))[0]
        Xs.append(X)
        ys.append(X @ rng.standard_normal(DIM) + noise * rng.standard_normal(n))
    return Xs, ys


class _Check:
    """A fit on some tasks."""

    def __init__(self, fit: Fit, tasks: tuple[list[Array], list[Array]], losses: tuple[Loss, ...], tol: float) -> None:
        self.fit, self.losses, self.tol = fit, losses, tol
        self.Xs, self.ys = tasks
        self.hessians = np.stack([X.T @ X for X in self.Xs])
        self.products = np.stack([X.T @ y for X, y in zip(self.Xs, self.ys, strict=True)])
        self.alone = np.stack([np.linalg.solve(H, b) for H, b in zip(self.hessians, self.products, strict=True)])
        self.size = float(np.max(np.linalg.norm(self.alone, axis=1)))

    def weights(self, strength: float) -> Array:
        """The weights after each task."""
        with quietly():
            given = self.fit([X.copy() for X in self.Xs], [y.copy() for y in self.ys], strength)
        weights = np.asarray(given, dtype=np.float64)
        shape = len(SIZES), DIM
        _require(
            weights.shape == shape,
            f"fit returned an array of shape {weights.shape}, expected {shape}: the weights after each task, in rows",
        )
        return weights

    def off(self, weights: Array, expected: Any) -> Array:
        """The distance after each task, relative to the size of the weights."""
        return np.asarray(np.linalg.norm(weights - expected, axis=-1) / self.size)

    def gap(self, weights: Array, loss: Loss) -> float:
        """The largest distance from joint training on the tasks so far."""
        share = _rows(loss)
        totals = np.cumsum(share[:, None, None] * self.hessians, axis=0)
        products = np.cumsum(share[:, None] * self.products, axis=0)
        joint = np.linalg.solve(totals, products[..., None])[..., 0]
        return float(np.max(self.off(weights, joint)))

    def does_nothing(self, weights: Array) -> bool:
        """Whether every task was learned as if there were no penalty."""
        return bool(np.all(self.off(weights, self.alone) <= self.tol))

    # ----------------------------------------------------------------------------------------------------- verdicts

    def require_right(self, solved: _Check, diagonal: bool = False) -> _Penalty:
        """The penalty that explains the weights at strength 1, on these tasks and on `solved` ones; an error if it has
        a fault. With `diagonal`, the diagonal of the Fisher is another one than the Fisher, and the strength is
        known to be right."""
        where = " (on tasks with correlated columns)" if diagonal else ""
        kinds: tuple[Kind, ...] = ("full", "squared gradients", "diagonal of squared gradients", "none")
        kinds = ("full", "diagonal", *kinds[1:]) if diagonal else kinds
        weights, strength = self.weights(1.0), 1.0
        finite = self._is_finite(weights)
        for weak in () if finite else WEAK:
            weights, strength = self.weights(weak), weak
            if self._is_finite(weights):
                break
        _require(self._is_finite(weights), f"the weights are not finite, or diverge{where}: lower the learning rate")
        self._require_first(weights[0])
        still = np.flatnonzero(self.off(weights[1:], weights[:-1]) <= self.tol)
        _require(
            len(still) < len(SIZES) - 1,
            f"no task after the first changes the weights{where}: the optimiser does not step, or the penalty is huge",
        )
        if self.does_nothing(weights):
            strength = STRONG
            weights = self.weights(strength)
            _require(
                self._is_finite(weights) and not self.does_nothing(weights),
                f"does nothing{where}: each task is learned as if it were alone, on noisy tasks and at strength "
                f"{STRONG:g}, too. The penalty is not part of what is minimised, compares the weights with themselves "
                "(keep a copy of w_(t-1), not a reference), or its Fisher is 0: the square of a mean gradient over all "
                "rows is 0 wherever a task has been learned; square the gradient of each row",
            )
        found = self._right(weights, kinds, strength) or self._explained(weights, kinds)
        diverged = "" if finite else f"diverges at strength 1, but not at {strength:g}: "
        if found.gap > self.tol:
            self._require_one_factor(weights, kinds, strength)
            _require(
                not solved.does_nothing(solved.weights(strength)),
                f"does nothing on tasks that are solved exactly{where}, and something unknown on noisy ones: its "
                "Fisher is made of squared gradients at the labels (the empirical Fisher), which are 0 where a task is "
                "solved",
            )
            nearest = "; ".join(found.faults(strength)) or "the right penalty"
            if np.max(self.off(weights, self.alone)) <= 2 * max(found.gap, self.tol):
                nearest = "none: it does nothing, each task is learned as if it were alone"
            raise AssertionError(
                f"{diverged}the weights after the second task and later are no minimum of a penalty known here{where}. "
                f"They have not converged (to {self.tol:g} of their size; raise the steps, or tol=), or the penalty is "
                f"another one, as with labels that are drawn. The nearest, {found.gap:.2g} of the weights away: "
                f"{nearest}"
            )
        faults = found.faults(strength)
        if not diagonal and strength == 1:
            faults = self._about_strength(found, kinds) or faults
        if (
            found.factor != strength
            and not faults
            and self.gap(weights, found.loss) > self.tol
            and found.kind == "full"
        ):
            faults = [f"wrong scale: the penalty is {found.factor / strength:.6g} times as large as it must be"]
        _require(not faults and finite, f"{diverged}{'; '.join(faults) or 'lower the learning rate'}{where}")
        after = solved.weights(1.0)
        same = solved._explained(after, (found.kind,), found)
        other = solved._named_faults(after, kinds) if same.gap > self.tol else []
        _require(not other, "; ".join(other) + where)
        _require(
            same.gap <= self.tol,
            f"right on noisy tasks, but not on tasks that are solved exactly{where}: "
            + ("does nothing there" if solved.does_nothing(after) else f"off by {same.gap:.2g} of the weights"),
        )
        return found

    def _named_faults(self, weights: Array, kinds: tuple[Kind, ...]) -> list[str]:
        """The faults at strength 1, if a penalty known here explains the weights."""
        found = self._explained(weights, kinds)
        return found.faults(1.0) if found.gap <= self.tol and not self.does_nothing(weights) else []

    def _is_finite(self, weights: Array) -> bool:
        return bool(np.all(np.isfinite(weights)) and np.max(np.abs(weights)) < AWAY * self.size)

    def _require_first(self, w: Array) -> None:
        """Raise unless w minimises the loss of the first task, which has no penalty."""
        off = float(self.off(w, self.alone[0]))
        if off <= self.tol:
            return
        H, b = self.hessians[0], self.products[0]
        again = float(H @ w @ b / np.sum((H @ w) ** 2)) if np.any(w) else 1.0
        ones = np.column_stack([self.Xs[0], np.ones(SIZES[0])])
        decay = float(w @ (b - H @ w) / (w @ w)) if np.any(w) else 0.0
        causes = [
            (
                self.off(again * w, self.alone[0]),
                f"the first task is penalised, though nothing was learned before: its weights are {1 / again:.3g} "
                "times what they must be, as with the Fisher of the current task",
            ),
            (
                self.off(w, np.linalg.lstsq(ones, self.ys[0])[0][:-1]),
                "an intercept: the first task is learned with one, and the tasks have none; leave it out (bias=False)",
            ),
            (
                self.off(w, np.linalg.solve(H + max(decay, 0.0) * np.eye(DIM), b)),
                f"weight decay: the first task is learned with {decay / SIZES[0]:.3g} |w|^2 / 2 beside half the mean "
                f"of the squared errors, or {decay:.3g} |w|^2 / 2 beside half their sum; set it to 0",
            ),
        ]
        left, cause = min(causes, key=lambda pair: float(pair[0]))
        _require(float(left) > self.tol, cause)
        raise AssertionError(
            f"the first task is not minimised, though it has no penalty: its weights are {off:.2g} of their size away "
            f"from least squares. Take more steps, or a smaller step at the end (SGD), or allow the difference by tol= "
            f"(now {self.tol:g}); an intercept or weight decay must be off"
        )

    def _about_strength(self, found: _Penalty, kinds: tuple[Kind, ...]) -> list[str]:
        """What is wrong with the way in which the strength enters, from a second strength."""
        weights = self.weights(2.0)
        if np.all(self.off(weights, found.weights) <= self.tol):
            return ["strength ignored: strengths 1 and 2 give the same weights", *found.faults(1.0)]
        if not self._is_finite(weights):
            return []
        if self._fitted(replace(found, weights=weights), 2 * found.factor).gap <= self.tol:
            return []
        again = self._explained(weights, kinds, found)
        ratio = again.factor / found.factor
        if again.gap <= self.tol and abs(ratio - 2) > 0.02:
            return [f"strength 2 gives a penalty that is {ratio:.3g} times that of strength 1, not 2 times"]
        if again.gap > self.tol and not found.faults(1.0):
            return [f"right at strength 1, but not at strength 2: off by {again.gap:.2g} of the weights"]
        return []

    def _require_one_factor(self, weights: Array, kinds: tuple[Kind, ...], strength: float) -> None:
        """Raise if factors that differ from task to task explain the weights."""
        found = min(
            (
                self._fitted(_Penalty(kind, centre, "all", loss, loss, weights), each=True)
                for kind, centre, loss in product(kinds, CENTRES, self.losses)
                if kind in ("full", "diagonal")
            ),
            key=lambda option: option.gap,
        )
        factors = ", ".join(f"{factor / strength:.3g}" for factor in found.factors)
        _require(
            found.gap > self.tol,
            f"wrong scale: the penalty is {factors} times as large as it must be while tasks 1, 2, 3 (counted from 0) "
            "are learned. A penalty that is added to the sum over each mini-batch, or multiplied by the number of "
            f"mini-batches, does so{'; ' * bool(CENTRES[found.centre])}{CENTRES[found.centre]}",
        )

    # ------------------------------------------------------------------------------------------------ least squares

    def _right(self, weights: Array, kinds: tuple[Kind, ...], strength: float) -> _Penalty | None:
        """The right penalty with the right factor, or that of the diagonal, if it explains the weights."""
        options = (
            self._fitted(_Penalty(kind, "last", "all", loss, loss, weights), strength)
            for kind, loss in product(kinds, self.losses)
            if kind in ("full", "diagonal")
        )
        return next((option for option in options if option.gap <= self.tol), None)

    def _explained(self, weights: Array, kinds: tuple[Kind, ...], like: _Penalty | None = None) -> _Penalty:
        """The penalty that explains the weights best; the first of those that do so equally well.

        Only one `like` the given, if there is one, whose factor alone is found again.
        """
        if like is not None:
            return self._fitted(replace(like, weights=weights))
        rows: tuple[Loss, ...] = ("sum", "mean")
        fixed = [name for name in SUMS if name not in ("decay", "moving average")]

        def best(patterns: list[str]) -> _Penalty:
            options = [
                self._fitted(_Penalty(kind, centre, sums, loss, share, weights))
                for kind, sums, centre, loss, share in product(kinds, patterns, CENTRES, self.losses, rows)
                if kind != "none" or share == loss
            ]
            # those of almost the same gap are one penalty, named in several ways
            least = min(option.gap for option in options)
            most = max(least, min(10 * least, self.tol), 1e-11)
            return next(option for option in options if option.gap <= most)

        first = best(fixed)
        if first.gap <= self.tol / 100:
            return first
        second = best(["decay", "moving average"])
        return second if second.gap < first.gap / 10 else first

    def _fitted(self, penalty: _Penalty, factor: float | None = None, each: bool = False) -> _Penalty:
        """The penalty with the given factor or the best one (`each`: one for each task), the best decay if it has one,
        and its gap."""
        w = penalty.weights
        gradients = np.einsum("tij,tj->ti", self.hessians, w) - self.products
        matrices = self._matrices(penalty)
        T = len(SIZES)
        last = np.concatenate([w[:1], w[:-1]])
        centres = {
            "last": np.repeat(last[:, None], T, axis=1),
            "first": np.broadcast_to(w[0], (T, T, DIM)),
            "own": np.where((np.arange(T) < np.arange(T)[:, None])[..., None], w[None], last[:, None]),
            "start": np.zeros((T, T, DIM)),
        }[penalty.centre]
        pulls = np.einsum("tsij,tsj->tsi", matrices, w[:, None] - centres)
        units = _rows(penalty.rows)[None] / _rows(penalty.loss)[:, None]

        def parts(gamma: float) -> tuple[Array, Array, Array]:
            """The factor of each task, and what the penalty adds to gradients and to Hessians, per unit of it."""
            shares = _share(penalty.sums, gamma) * units
            shares[0] = 0.0
            pull = np.einsum("ts,tsi->ti", shares, pulls)
            along, square = (np.sum(pull * other, axis=1 if each else None) for other in (gradients, pull))
            best = -along / np.where(square > 0, square, np.inf) if factor is None else factor
            return np.broadcast_to(best, T), pull, shares

        def left(gamma: float) -> float:
            factors, pull, _ = parts(gamma)
            return float(np.sum((gradients + factors[:, None] * pull)[1:] ** 2))

        gamma = penalty.gamma
        if penalty.sums in ("decay", "moving average") and gamma == 1:
            grid = np.linspace(0.02, 0.98 if penalty.sums == "moving average" else 1.2, 60)
            near = float(grid[np.argmin([left(value) for value in grid.tolist()])])
            gamma = float(minimize_scalar(left, bounds=(near - 0.02, near + 0.02), options={"xatol": 1e-10}).x)
        factors, pull, shares = parts(gamma)
        hessians = self.hessians + np.einsum("t,ts,tsij->tij", factors, shares, matrices)
        try:
            steps = np.linalg.solve(hessians, (gradients + factors[:, None] * pull)[..., None])[1:, :, 0]
        except np.linalg.LinAlgError:
            return penalty
        gap = float(np.max(np.linalg.norm(steps, axis=1)) / self.size)
        return replace(penalty, gamma=gamma, factor=float(factors[1]), factors=tuple(factors[1:].tolist()), gap=gap)

    def _matrices(self, penalty: _Penalty) -> Array:
        """The matrix of task s in the penalty while task t is learned, (T, T, d, d)."""
        T, w = len(SIZES), penalty.weights
        if penalty.kind == "none":
            return np.broadcast_to(np.eye(DIM), (T, T, DIM, DIM))
        if penalty.kind in ("full", "diagonal"):
            matrices = np.broadcast_to(self.hessians, (T, T, DIM, DIM))
        else:  # at the weights after the task; of the current task at those before it
            matrices = np.empty((T, T, DIM, DIM))
            for t, s in product(range(T), repeat=2):
                missed = self.Xs[s] @ w[s if s < t else max(t - 1, 0)] - self.ys[s]
                matrices[t, s] = self.Xs[s].T @ (missed[:, None] ** 2 * self.Xs[s])
        return matrices * np.eye(DIM) if penalty.kind.startswith("diagonal") else matrices


def _rows(loss: Loss) -> Array:
    """The weight of a row in the loss of each task."""
    return np.ones(len(SIZES)) if loss == "sum" else 1.0 / np.array(SIZES)


def _require(holds: bool, complaint: str) -> None:
    if not holds:
        raise AssertionError(complaint)
