"""Continual linear models: run them, compute what to expect of them, and check what is known about them.

>>> import forgetting as fg
>>> tasks = fg.families.gaussian(T=10, d=30, rank=2, seed=0)
>>> run = fg.run(tasks, fg.orderings.WithReplacement(), k=50)
>>> run.losses[-1] < run.losses[0]
np.True_
"""

from forgetting import bounds, checks, errors, metrics, orderings, schemes
from forgetting.ensembles import Ensemble, run_many
from forgetting.expectation import Expectation, compare, decay_rate, expect
from forgetting.loop import Trajectory, run
from forgetting.projections import (
    Affine,
    Ball,
    Box,
    CustomSet,
    Halfspace,
    Polyhedron,
    SecondOrderCone,
    Simplex,
    Slab,
    Subspace,
)
from forgetting.tasks import ConvexSets, KernelTasks, Problem, RegressionTasks, families

__version__ = "0.1.0"

__all__ = [
    "Affine",
    "Ball",
    "Box",
    "ConvexSets",
    "CustomSet",
    "Ensemble",
    "Expectation",
    "Halfspace",
    "KernelTasks",
    "Polyhedron",
    "Problem",
    "RegressionTasks",
    "SecondOrderCone",
    "Simplex",
    "Slab",
    "Subspace",
    "Trajectory",
    "__version__",
    "bounds",
    "checks",
    "compare",
    "decay_rate",
    "errors",
    "expect",
    "families",
    "metrics",
    "orderings",
    "run",
    "run_many",
    "schemes",
]
