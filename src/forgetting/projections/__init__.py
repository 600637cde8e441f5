"""Convex sets, each with project, distance and contains; one file per family."""

from forgetting.projections.affine import Affine, Subspace
from forgetting.projections.balls import Ball, SecondOrderCone
from forgetting.projections.base import ConvexSet
from forgetting.projections.boxes import Box, Simplex
from forgetting.projections.conformance import ProjectionCheckError, check_convex_set
from forgetting.projections.custom import CustomSet
from forgetting.projections.dykstra import CommonPoint, nearest_common_point, stacked
from forgetting.projections.halfspaces import Halfspace, Slab
from forgetting.projections.polyhedron import Polyhedron, Projection, WarmStart

__all__ = [
    "Affine",
    "Ball",
    "Box",
    "CommonPoint",
    "ConvexSet",
    "CustomSet",
    "Halfspace",
    "Polyhedron",
    "Projection",
    "ProjectionCheckError",
    "SecondOrderCone",
    "Simplex",
    "Slab",
    "Subspace",
    "WarmStart",
    "check_convex_set",
    "nearest_common_point",
    "stacked",
]
