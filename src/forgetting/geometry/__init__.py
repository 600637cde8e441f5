"""The reduction of tasks to subspaces of their joint row space, on which every engine works."""

from forgetting.geometry.codecs import check_geometry
from forgetting.geometry.rational import exact_rank
from forgetting.geometry.reduction import Data, Frame, Geometry, Matrix, from_data, from_gram

__all__ = ["Data", "Frame", "Geometry", "Matrix", "check_geometry", "exact_rank", "from_data", "from_gram"]
