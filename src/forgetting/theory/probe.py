"""E |w_k - x|^2 for any point x: the loss of one more task, which is never drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forgetting.core.arrays import Array
from forgetting.orderings import WithReplacement
from forgetting.tasks import RegressionTasks
from forgetting.theory.definition import equations
from forgetting.theory.expectations import Numbers, probabilities
from forgetting.theory.instance import Instance

__all__ = ["row_space", "squared_distance", "with_probe"]

SMALLEST = 1e-12  # of the largest singular value of unit rows: below it, a direction is rounding


def row_space(matrices: list[Array]) -> Array:
    """An orthonormal basis of all rows, one vector per row, from rows scaled to length 1.

    >>> row_space([np.array([[3.0, 0.0]]), np.array([[1e-9, 0.0], [0.0, 0.0]])]).shape
    (1, 2)
    """
    rows = np.concatenate(matrices)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    _, sizes, basis = np.linalg.svd(rows / np.where(lengths > 0, lengths, 1.0), full_matrices=False)
    return np.asarray(basis[sizes > SMALLEST * np.max(sizes, initial=0.0)])


def with_probe(instance: Instance, point: Array) -> Instance:
    """The same independent draws beside a task, the last one, whose loss is half the squared distance to the point.

    The distance is that within the joint row space; w_0 and the point must agree outside of it.

    >>> import forgetting as fg
    >>> case = Instance(fg.families.orthogonal(2), fg.orderings.WithReplacement(), k=1)
    >>> with_probe(case, np.ones(2)).tasks.task_losses(np.zeros(2)).round(12)
    array([0.25, 0.25, 1.  ])
    """
    tasks = instance.tasks
    blocks = [equations(tasks, m) for m in range(tasks.num_tasks)]
    basis = row_space([matrix for matrix, _ in blocks])
    blocks.append((basis, basis @ point))
    ordering = WithReplacement(np.append(probabilities(instance), 0.0))
    problem = RegressionTasks([matrix for matrix, _ in blocks], [label for _, label in blocks])
    return replace(instance, problem=problem, ordering=ordering)


def squared_distance(instance: Instance, point: Array) -> tuple[float, float, str]:
    """E |w_k - point|^2 by the engines, how far it may be off, and how it was obtained.

    >>> import forgetting as fg
    >>> case = Instance(fg.families.orthogonal(2), fg.orderings.WithReplacement(), k=1)
    >>> value, doubt, how = squared_distance(case, case.tasks.w_star)
    >>> round(value, 12), doubt < 1e-12, how
    (0.5, True, 'moments')
    """
    numbers = Numbers(with_probe(instance, point))
    value = 2 * float(numbers.value("task_losses", instance.k)[-1])
    return value, 2 * numbers.doubt, numbers.how
