"""The sizes T, d and k that a hunt is confined to, and problems made to have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from forgetting.core.arrays import Array, as_count, as_dense
from forgetting.core.memory import require_memory
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.orderings import Explicit, Ordering, WithReplacement, laws
from forgetting.schemes import SGD, Scheme
from forgetting.tasks import RegressionTasks
from forgetting.theory.draws import Rng
from forgetting.theory.instance import Instance
from forgetting.theory.noisy_draws import noisy

Size: TypeAlias = int | range | None
MATRICES = ("A", "B", "C")  # extras of shape (d, d)


def _as_range(value: Size, name: str) -> range | None:
    if value is None:
        return None
    if isinstance(value, range):
        if value.step != 1 or len(value) == 0 or value.start < 1:
            raise InvalidInputError(f"{name} must be a number or a range of steps 1 from 1 on, got {value}")
        return value
    number = as_count(value, name, least=1)
    return range(number, number + 1)


def as_sizes(T: Size = None, d: Size = None, k: Size = None) -> Sizes:
    """Sizes from numbers, ranges, or None where anything goes.

    >>> print(as_sizes(T=3, k=range(2, 6)))
    T = 3, k = 2 to 5
    """
    return Sizes(_as_range(T, "T"), _as_range(d, "d"), _as_range(k, "k"))


@dataclass(frozen=True)
class Sizes:
    """The sizes that a hunt is confined to: T, d and k, each a range or None.

    >>> sizes = as_sizes(T=3)
    >>> import forgetting as fg
    >>> case = Instance(fg.families.two_lines(0.5), WithReplacement(), 4)
    >>> sizes.fits(case), sizes.fitted(np.random.default_rng(0), case).problem.num_tasks
    (False, 3)
    """

    T: range | None = None
    d: range | None = None
    k: range | None = None

    def __bool__(self) -> bool:
        return not self.T is self.d is self.k is None

    def __str__(self) -> str:
        given = {"T": self.T, "d": self.d, "k": self.k}
        return ", ".join(
            f"{name} = {size[0]}" + (f" to {size[-1]}" if len(size) > 1 else "")
            for name, size in given.items()
            if size is not None
        )

    def fits(self, instance: Instance) -> bool:
        """Whether an instance has these sizes."""
        if self.k is not None and instance.k not in self.k:
            return False
        if self.T is None and self.d is None:
            return True
        problem = instance.problem
        return (
            problem is not None
            and (self.T is None or problem.num_tasks in self.T)
            and (self.d is None or problem.dim in self.d)
        )

    def fitted(self, rng: Rng, instance: Instance) -> Instance:
        """The instance with these sizes; an error where it cannot be given them.

        Regression tasks are left out or cloned, and columns are left out or filled with zeros; the labels are those of
        the same solution. Other problems are taken as they are. One pass, whole cycles and whole epochs stay that.
        """
        if self.fits(instance):
            return instance
        problem = instance.problem
        if problem is None:
            if self.T is not None or self.d is not None:
                raise NotSupportedError("the statement is about matrices, and has no tasks whose T or d could be fixed")
            return replace(instance, k=_nearest(rng, self.k, instance.k))
        T, k = self._steps(rng, instance)
        d = _nearest(rng, self.d, problem.dim)
        if (T, d) == (problem.num_tasks, problem.dim):
            return replace(instance, k=k, ordering=_resized_ordering(instance.ordering, T, k))
        linear = problem.linear
        if linear is None or linear is not problem or linear.data is None:
            raise NotSupportedError(f"only regression tasks can be given {self}; these have T = {problem.num_tasks}")
        tasks = _resized(rng, linear.data, T, d)
        return replace(
            instance,
            problem=tasks,
            k=k,
            ordering=_resized_ordering(instance.ordering, T, k),
            scheme=with_radius(instance.scheme, linear.data.radius, tasks.radius),
            w0=None if instance.w0 is None else _cut(instance.w0, d),
            extras=_resized_extras(instance.extras, problem.dim, T, d),
        )

    def _steps(self, rng: Rng, instance: Instance) -> tuple[int, int]:
        """Allowed T and k: for one pass, with k <= T; for cycles and epochs k is a multiple of T, where possible."""
        T, k = _nearest(rng, self.T, instance.posed.num_tasks), _nearest(rng, self.k, instance.k)
        match None if instance.ordering is None else instance.ordering.law:
            case laws.Permutation() if k > T:
                if self.T is None or k in self.T:
                    more = k + int(rng.integers(2))
                    return (more if self.T is None or more in self.T else k), k
                return T, min([step for step in self.k or () if step <= T], default=T, key=lambda step: -step)
            case laws.Cycle() | laws.Reshuffled() if k % T:
                whole = [step for step in self.k or range(T, 2 * k, T) if step % T == 0]
                if whole:
                    return T, min(whole, key=lambda step: abs(step - k))
                if self.T is None:
                    return max(tasks for tasks in range(1, T + 1) if k % tasks == 0), k
        return T, k


def _nearest(rng: Rng, size: range | None, value: int) -> int:
    """The value if the range has it, else a random number of the range."""
    return value if size is None or value in size else int(rng.integers(size[0], size[-1] + 1))


def _resized(rng: Rng, tasks: RegressionTasks, T: int, d: int) -> RegressionTasks:
    """T tasks with d columns: T of the given ones, or all of them and clones of some."""
    chosen = np.arange(tasks.num_tasks)
    if len(chosen) > T:
        chosen = np.sort(rng.choice(chosen, T, replace=False))
    else:
        chosen = np.concatenate([chosen, rng.integers(len(chosen), size=T - len(chosen))])
    w = tasks.geometry.nearest_solution(np.zeros(tasks.dim))
    columns = np.sort(rng.choice(tasks.dim, d, replace=False)) if d < tasks.dim else np.arange(tasks.dim)
    matrices, residuals = [], []
    for task in chosen.tolist():
        matrix, label = tasks.task(task)
        dense = as_dense(matrix)
        residuals.append(np.zeros(len(dense)) if tasks.realizability.holds else np.asarray(label) - dense @ w)
        matrices.append(_cut(dense[:, columns], d))
    if not any(matrix.any() for matrix in matrices):
        raise NotSupportedError(f"nothing but zeros is left of these tasks with T = {T} and d = {d}")
    return noisy(matrices, _cut(w[columns], d), residuals)


def _cut(values: Array, d: int) -> Array:
    """The first d entries of the last axis, with zeros where there are fewer."""
    missing = d - values.shape[-1]
    if missing <= 0:
        return values[..., :d]
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)])


def _resized_ordering(ordering: Ordering | None, T: int, k: int) -> Ordering | None:
    match None if ordering is None else ordering.law:
        case laws.Independent(p=tuple(given)):
            return WithReplacement(np.resize(np.asarray(given), T))
        case laws.Fixed(sequence=tuple(given)):
            require_memory(48.0 * k, f"an order of {k} steps", "choose a smaller k")
            return Explicit(np.resize(np.array(given), k) % T)
    return ordering


def _resized_extras(extras: Mapping[str, Any], old: int, T: int, d: int) -> dict[str, Any]:
    changed = dict(extras)
    for name, value in extras.items():
        if name == "task":
            changed[name] = int(value) % T
        elif name == "multiplicity":
            changed[name] = np.resize(value, T)
        elif name in MATRICES:
            changed[name] = _cut(_cut(np.asarray(value), d).T, d).T
        elif np.ndim(value) and np.shape(value)[-1] == old:
            changed[name] = _cut(np.asarray(value), d)
    return changed


def with_radius(scheme: Scheme | None, old: float, new: float, factor: float = 1.0) -> Scheme | None:
    """SGD on the loss with the step that has the same eta beta, times a factor, for tasks of another radius.

    >>> with_radius(SGD(0.5, "loss"), old=1.0, new=2.0)
    SGD(step_size=0.125, objective='loss')
    """
    step = None if scheme is None else scheme.as_sgd(2.0)
    if step is None or step.smoothness <= 1:
        return scheme
    x = step.step_size * old**2
    if factor != 1.0:
        x = float(np.clip(x * factor, 1e-4, 1.9999))
    return SGD(x / new**2, "loss")
