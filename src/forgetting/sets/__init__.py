"""Convex sets, each with project, distance and contains."""

from forgetting.core.names import only
from forgetting.sets.affine import Affine, Subspace
from forgetting.sets.balls_and_boxes import Ball, Box, SecondOrderCone, Simplex
from forgetting.sets.base import ConvexSet, register, registry
from forgetting.sets.common_point import CommonPoint, nearest_common_point, stacked
from forgetting.sets.custom import CustomSet, ProjectionCheckError, check_convex_set
from forgetting.sets.polyhedra import Halfspace, Polyhedron, Projection, Slab, WarmStart

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
