"""The reduction of tasks to subspaces of their joint row space, on which every engine works."""

from forgetting.geometry.rational import exact_rank
from forgetting.geometry.reduction import Frame, Geometry, Matrix, from_data, from_gram

__all__ = ["Frame", "Geometry", "Matrix", "exact_rank", "from_data", "from_gram"]
