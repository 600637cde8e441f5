"""The engines of `expect`, each in a file of its own, and the parts that they share.

An engine that is registered earlier is preferred, so that the order of the imports matters: moments, which are the most
accurate, come before the spectrum, the engine for schemes that remember comes first, and lists of orders come last.
"""

from forgetting.expectation.engines.base import Cost, Engine, as_simulated, choose, engines, register_engine, require
from forgetting.expectation.engines.seen import SeenEngine

# isort: split
from forgetting.expectation.engines.deterministic import DeterministicEngine
from forgetting.expectation.engines.moments import MomentsEngine
from forgetting.expectation.engines.monte_carlo import MonteCarloEngine
from forgetting.expectation.engines.spectral import SpectralEngine
from forgetting.expectation.engines.subsets import SubsetsEngine

# isort: split
from forgetting.expectation.engines.listing import ListingEngine

__all__ = [
    "Cost",
    "DeterministicEngine",
    "Engine",
    "ListingEngine",
    "MomentsEngine",
    "MonteCarloEngine",
    "SeenEngine",
    "SpectralEngine",
    "SubsetsEngine",
    "as_simulated",
    "choose",
    "engines",
    "register_engine",
    "require",
]
