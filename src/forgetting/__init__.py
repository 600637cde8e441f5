"""Continual linear models: run them, compute what to expect of them, and check what is known about them.

>>> import forgetting as fg
>>> tasks = fg.families.gaussian(T=10, d=30, rank=2, seed=0)
>>> run = fg.run(tasks, fg.orderings.WithReplacement(), k=50)
>>> run.losses[-1] < run.losses[0]
np.True_
"""

from typing import TYPE_CHECKING, Any

from forgetting.core import signals as _signals  # noqa: F401  (first: a signal may come while the rest is loaded)

# isort: split
from forgetting import errors, orderings, schemes
from forgetting._version import __version__
from forgetting.core.names import only
from forgetting.dynamics import metrics
from forgetting.dynamics.ensembles import Ensemble, run_many
from forgetting.dynamics.loop import run
from forgetting.dynamics.trajectory import Trajectory
from forgetting.expectation import Expectation, compare, decay_rate, expect, optimal_schedule, optimal_weights
from forgetting.expectation.outcome import use_bound_curves
from forgetting.sets import (
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
from forgetting.tasks import (
    ClassificationTasks,
    ConvexSets,
    KernelTasks,
    Problem,
    RegressionTasks,
    families,
    one_versus_rest,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forgetting import bounds, checks, claims, datasets, reductions, references, solver, studies, worstcase
    from forgetting.auditing import audit
    from forgetting.claims import certify
    from forgetting.dynamics.accuracy_matrices import AccuracyMatrices
    from forgetting.estimators import (
        ContinualClassifier,
        ContinualRegressor,
        IncrementalRidge,
        IncrementalRidgeClassifier,
    )
    from forgetting.explorer import explore
    from forgetting.figures.items import Series
    from forgetting.solver import solve
    from forgetting.studies import Study
    from forgetting.tasks.class_splits import ClassSplits
    from forgetting.tasks.readers import load
    from forgetting.worstcase import adversarial_search, worst_case

__all__ = [
    "AccuracyMatrices",
    "Affine",
    "Ball",
    "Box",
    "ClassSplits",
    "ClassificationTasks",
    "ContinualClassifier",
    "ContinualRegressor",
    "ConvexSets",
    "CustomSet",
    "Ensemble",
    "Expectation",
    "Halfspace",
    "IncrementalRidge",
    "IncrementalRidgeClassifier",
    "KernelTasks",
    "Polyhedron",
    "Problem",
    "RegressionTasks",
    "SecondOrderCone",
    "Simplex",
    "Slab",
    "Study",
    "Subspace",
    "Trajectory",
    "__version__",
    "adversarial_search",
    "audit",
    "bounds",
    "certify",
    "checks",
    "claims",
    "compare",
    "datasets",
    "decay_rate",
    "errors",
    "expect",
    "explore",
    "families",
    "load",
    "metrics",
    "one_versus_rest",
    "optimal_schedule",
    "optimal_weights",
    "orderings",
    "reductions",
    "references",
    "run",
    "run_many",
    "schemes",
    "solve",
    "solver",
    "studies",
    "worst_case",
    "worstcase",
]
__dir__ = only(__all__)


def _bound_curves(expectation: Expectation, quantities: "Sequence[str]") -> "tuple[Series, ...]":
    """The bounds on the quantities of an expectation, which lie above it in the order of imports."""
    from forgetting.theory.evaluation import curves_beside

    return curves_beside(expectation, quantities)


use_bound_curves(_bound_curves)


# What sits on top of runs and expectations is imported when first asked for, so that `import forgetting` stays quick.
_LATER = {
    "AccuracyMatrices": "forgetting.dynamics.accuracy_matrices",
    "ClassSplits": "forgetting.tasks.class_splits",
    "ContinualClassifier": "forgetting.estimators",
    "ContinualRegressor": "forgetting.estimators",
    "IncrementalRidge": "forgetting.estimators",
    "IncrementalRidgeClassifier": "forgetting.estimators",
    "Study": "forgetting.studies",
    "adversarial_search": "forgetting.worstcase",
    "audit": "forgetting.auditing",
    "auditing": None,
    "bounds": None,
    "certify": "forgetting.claims",
    "checks": None,
    "claims": None,
    "datasets": None,
    "estimators": None,
    "explore": "forgetting.explorer",
    "explorer": None,
    "load": "forgetting.tasks.readers",
    "reductions": None,
    "references": None,
    "report": None,
    "solve": "forgetting.solver",
    "solver": None,
    "studies": None,
    "worst_case": "forgetting.worstcase",
    "worstcase": None,
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        home = _LATER[name]
        found = import_module(f"forgetting.{name}") if home is None else getattr(import_module(home), name)
        globals()[name] = found
        return found
