"""The reduction of tasks to subspaces of their joint row space, on which every engine works."""

from forgetting.geometry.assembly import from_data, from_gram
from forgetting.geometry.directions import Directions, Recorded, StepGains, Subspaces
from forgetting.geometry.frame import Data, Frame, Rooted
from forgetting.geometry.own_rows import OwnRows, from_rows
from forgetting.geometry.qr import Matrix, orthogonal_complement, spectrum_of
from forgetting.geometry.rational import ExactRoot, exact_rank, exact_root, lift
from forgetting.geometry.reduction import Geometry, check_geometry
from forgetting.geometry.row_blocks import RowBlocks, offsets_of, row_sums, sizes_of, squared_rows, stack_of
from forgetting.geometry.similarity import Similarity, overlaps, principal_angles, solution_cosines

__all__ = [
    "Data",
    "Directions",
    "ExactRoot",
    "Frame",
    "Geometry",
    "Matrix",
    "OwnRows",
    "Recorded",
    "Rooted",
    "RowBlocks",
    "Similarity",
    "StepGains",
    "Subspaces",
    "check_geometry",
    "exact_rank",
    "exact_root",
    "from_data",
    "from_gram",
    "from_rows",
    "lift",
    "offsets_of",
    "orthogonal_complement",
    "overlaps",
    "principal_angles",
    "row_sums",
    "sizes_of",
    "solution_cosines",
    "spectrum_of",
    "squared_rows",
    "stack_of",
]
