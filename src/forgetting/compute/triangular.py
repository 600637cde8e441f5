"""The update of a QR factorisation by more rows: LAPACK's tpqrt and tpmqrt, called so that other threads go on.

scipy's own wrappers of both hold the lock of the interpreter, so that two threads would take as long as one. LAPACK is
called at the addresses that scipy publishes for Cython and numba. Within one call LAPACK's many small products do not
gain from threads of their own, and wait for each other where other programs compute, too; hence `one_thread`.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from forgetting.core.arrays import Array

PANEL = 32  # columns that are reflected at once


@cache
def _function(name: str, arguments: int) -> Any:
    """A function of LAPACK, all of whose arguments are addresses."""
    from scipy.linalg import cython_lapack

    capsule = cython_lapack.__pyx_capi__[name]
    name_of, address_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    address_of.restype, address_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(address_of(capsule, name_of(capsule)))


def _call(name: str, *arguments: Any) -> None:
    """Call LAPACK with words, whole numbers and arrays, which it changes; an error if it says that one is wrong."""
    info = ctypes.c_int(0)
    kept: list[Any] = []  # what must live until the call returns
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            kept.append(ctypes.c_void_p(argument.ctypes.data))
        elif isinstance(argument, str):
            kept.append(ctypes.byref(ctypes.c_char(argument.encode())))
        else:
            kept.append(ctypes.byref(ctypes.c_int(argument)))
    _function(name, len(kept) + 1)(*kept, ctypes.byref(info))
    if info.value:
        raise RuntimeError(f"LAPACK's {name} refuses its argument {-info.value}")


def add_rows(R: Array, Z: Array, B: Array, D: Array, *, triangular: bool = False) -> None:
    """Turn [R Z; B D] into [R' Z'; 0 D'] by reflections, in place: R' and Z' take the place of R and Z, D' that of D.

    Args:
        R: (p, p), upper triangular; like the others in float64, in Fortran's order and writable.
        Z: (p, c).
        B: (m, p), overwritten.
        D: (m, c).
        triangular: whether B is upper triangular (of p rows), which saves two thirds of the work.

    >>> R, Z, B, D = (np.array(part, order="F") for part in ([[3.0]], [[6.0]], [[4.0]], [[8.0]]))
    >>> add_rows(R, Z, B, D)
    >>> np.abs(R).round(12), np.abs(Z).round(12), np.abs(D).round(12)
    (array([[5.]]), array([[10.]]), array([[0.]]))
    """
    (m, p), c = B.shape, Z.shape[1]
    for part, shape in ((R, (p, p)), (Z, (p, c)), (B, (m, p)), (D, (m, c))):
        if part.shape != shape or part.dtype != np.float64 or not part.flags.f_contiguous or not part.flags.writeable:
            raise ValueError(f"LAPACK needs a writable float64 array of shape {shape} in Fortran's order")
    panel, above = min(PANEL, p), p if triangular else 0
    factors, work = np.empty((panel, p), order="F"), np.empty(panel * max(p, c))
    _call("dtpqrt", m, p, above, panel, R, p, B, m, factors, panel, work)
    _call("dtpmqrt", "L", "T", m, c, p, above, panel, B, m, factors, panel, Z, p, D, m, work)
