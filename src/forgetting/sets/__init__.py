"""Convex sets, each with project, distance and contains; one file per family."""

from forgetting.core.names import only
from forgetting.sets.affine import Affine, Subspace
from forgetting.sets.balls import Ball, SecondOrderCone
from forgetting.sets.base import ConvexSet, register, registry
from forgetting.sets.boxes import Box, Simplex
from forgetting.sets.conformance import ProjectionCheckError, check_convex_set
from forgetting.sets.custom import CustomSet
from forgetting.sets.dykstra import CommonPoint, nearest_common_point, stacked
from forgetting.sets.halfspaces import Halfspace, Slab
from forgetting.sets.polyhedron import Polyhedron, Projection, WarmStart

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
    "register",
    "registry",
    "stacked",
]
__dir__ = only(__all__)
