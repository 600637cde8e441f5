"""Devices on which float64 arrays live and are computed with: NumPy, or others through the array API.

Algorithms take a `Device` and write to its namespace `xp` (https://data-apis.org/array-api), which NumPy, torch and
CuPy have in common. torch and CuPy are imported when such a device is asked for, and never else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.extras import module_for
from forgetting.core.memory import available_memory
from forgetting.errors import InvalidInputError, NotSupportedError

STRICT = "array-api-strict"  # NumPy without all that the array API does not promise: for tests
GPU_SPEED = 100.0  # against one core, in matrix products of float64, roughly: cards for desktops have less
FINE = 2.0**-40  # lost in float32 when it is added to 1


@dataclass(frozen=True, eq=False)
class Device:
    """A namespace of the array API, and where its arrays live.

    Attributes:
        spec: what `as_device` makes the device from; None for NumPy.
        name: in words, for results.
        xp: the namespace: `numpy`, or the one of array-api-compat for torch or CuPy.
        where: what `xp` calls the device; None for the only or the current one.
        speed: how many times faster than one core matrix products are, roughly: what estimates are divided by.
    """

    spec: str | None
    name: str
    xp: Any
    where: Any = None
    speed: float = 1.0
    _back: Callable[[Any], Any] = field(default=np.asarray, repr=False)
    _free: Callable[[], float] | None = field(default=None, repr=False)
    _triangle: Callable[[Any], Any] | None = field(default=None, repr=False)

    @property
    def host(self) -> bool:
        """Whether this is NumPy, with its compiled loops."""
        return self.xp is np

    @property
    def memory(self) -> float:
        """Bytes that are free there now."""
        return available_memory() if self._free is None else float(self._free())

    def put(self, array: Array) -> Any:
        """Numbers in float64, there; not to be changed in place, since they may share memory with the array."""
        return array if self.host else self._put(array, np.float64)

    def put_index(self, array: IntArray) -> Any:
        """Whole numbers, there."""
        return array if self.host else self._put(array, np.int64)

    def _put(self, array: Any, kind: type) -> Any:
        # torch warns of arrays that are read-only, as those of a geometry are
        return self.xp.asarray(np.require(array, kind, ("C", "W")), device=self.where)

    def take(self, array: Any) -> Array:
        """Numbers as a NumPy array, here."""
        return array if self.host else np.asarray(self._back(array), dtype=np.float64)

    def zeros(self, *shape: int) -> Any:
        """Zeros in float64, there."""
        return self.xp.zeros(shape, dtype=self.xp.float64, device=self.where)

    def empty(self, *shape: int) -> Any:
        """Room for numbers in float64, there."""
        return self.xp.empty(shape, dtype=self.xp.float64, device=self.where)

    def triangle(self, array: Any) -> Any:
        """R of the QR factorisation of a matrix there with at least as many rows as columns, by reflections."""
        return self.xp.linalg.qr(array)[1] if self._triangle is None else self._triangle(array)

    def recorded(self, function: Callable[..., tuple[Any, ...]]) -> Callable[..., tuple[Any, ...]]:
        """The function for many calls on arrays: on a CUDA device of torch a call is one launch after the first.

        The function must do the same operations whatever the numbers are, and make no array from numbers of the host.
        What a call returns may be overwritten by the next call.
        """
        return _Recorded(function) if getattr(self.where, "type", "") == "cuda" else function

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        """Modules do not pickle: the device is found again where it is loaded."""
        return as_device, (self.spec,)


class _Recorded:
    """A function of torch arrays as CUDA graphs, one for each combination of shapes."""

    def __init__(self, function: Callable[..., tuple[Any, ...]]) -> None:
        self._function = function
        self._graphs: dict[tuple[Any, ...], tuple[Any, list[Any], tuple[Any, ...]]] = {}

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        shapes = tuple(array.shape for array in arrays)
        if shapes not in self._graphs:
            self._graphs[shapes] = self._record(arrays)
        graph, places, results = self._graphs[shapes]
        for place, array in zip(places, arrays, strict=True):
            if place is not array:
                place.copy_(array)
        graph.replay()
        return results

    def _record(self, arrays: tuple[Any, ...]) -> tuple[Any, list[Any], tuple[Any, ...]]:
        torch = import_module("torch")
        places = [array.clone() for array in arrays]
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):  # libraries set themselves up in the first calls
            for _ in range(2):
                self._function(*places)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            results = self._function(*places)
        return graph, places, results


HOST = Device(None, "the CPU", np)


def as_device(device: Any) -> Device:
    """The device that a caller names: None for NumPy on this machine's processor.

    Otherwise a torch device ("cuda", "cuda:1", "cpu", a `torch.device`), or a CuPy device ("cupy", "cupy:1", a
    `cupy.cuda.Device`). A device that cannot compute in float64 is refused.

    >>> as_device(None).host
    True
    >>> as_device(3)
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: device must be a text such as 'cuda' or 'cupy', a torch.device, ..., got 3
    """
    if device is None:
        return HOST
    if isinstance(device, Device):
        return device
    owner = type(device).__module__.partition(".")[0]
    if not isinstance(device, str) and owner not in ("torch", "cupy"):
        raise InvalidInputError(
            "device must be a text such as 'cuda' or 'cupy', a torch.device, a cupy.cuda.Device or None, "
            f"got {device!r:.80}"
        )
    if device == STRICT:
        made = Device(STRICT, STRICT, _module("array_api_strict", device))
    elif owner == "cupy" or (isinstance(device, str) and device.partition(":")[0] == "cupy"):
        made = _cupy(device)
    else:
        made = _torch(device)
    return _computing(made, device)


def _torch(device: Any) -> Device:
    torch, xp = _module("torch", device), _module("array_api_compat.torch", device)
    try:
        where = torch.device(device)
    except RuntimeError as error:
        raise InvalidInputError(
            f"torch knows no device {device!r:.80}; use 'cuda', 'cuda:0', 'cpu', another torch device, or 'cupy'"
        ) from error
    if where.type == "cuda" and not torch.cuda.is_available():
        raise NotSupportedError(
            f"device={str(where)!r}: torch {torch.__version__} sees no GPU; leave out device= to compute on the CPU, "
            "or install torch with CUDA and a driver"
        )

    def triangle(array: Any) -> Any:
        return torch.linalg.qr(array, mode="r").R

    name, spec = f"torch device {where}", str(where)
    if where.type != "cuda":
        return Device(spec, name, xp, where, _back=_from_torch, _triangle=triangle)
    with contextlib.suppress(Exception):  # a number that is out of range is refused later
        name = f"{name} ({torch.cuda.get_device_name(where)})"

    def free() -> float:
        """Free bytes of the driver, and those that torch keeps for later."""
        kept = torch.cuda.memory_reserved(where) - torch.cuda.memory_allocated(where)
        return float(torch.cuda.mem_get_info(where)[0] + kept)

    return Device(spec, name, xp, where, GPU_SPEED, _from_torch, free, triangle)


def _from_torch(array: Any) -> Any:
    return array.cpu().numpy()


def _cupy(device: Any) -> Device:
    cupy, xp = _module("cupy", device), _module("array_api_compat.cupy", device)
    number = device.partition(":")[2] or "0" if isinstance(device, str) else str(device.id)
    if not number.isdecimal():
        raise InvalidInputError(f"device must be 'cupy' or 'cupy:' with the number of a GPU, got {device!r:.80}")
    where = cupy.cuda.Device(int(number))
    return Device(
        f"cupy:{number}",
        f"CuPy device {number}",
        xp,
        where,
        GPU_SPEED,
        cupy.asnumpy,
        lambda: where.mem_info[0],
        lambda array: cupy.linalg.qr(array, mode="r"),
    )


def _module(name: str, device: Any) -> ModuleType:
    module: ModuleType = module_for(f"device={str(device)!r}", name, "leave out device= to compute on the CPU")
    return module


def _computing(made: Device, device: Any) -> Device:
    """The device, if it computes in float64; else raise."""
    try:
        ones = made.put(np.ones((2, 2)))
        found = float(made.take((ones @ ones)[:1, :1] + FINE)[0, 0]) - 2
    except Exception as error:  # each library and device has errors of its own
        raise NotSupportedError(
            f"device={str(device)!r} cannot compute in float64, which exact values need: {error}; leave out device= to "
            "compute on the CPU"
        ) from error
    if found != FINE:
        raise NotSupportedError(
            f"device={str(device)!r} rounds float64 to fewer digits, and exact values need all of them; leave out "
            "device= to compute on the CPU"
        )
    return made


@dataclass(frozen=True, eq=False)
class SymmetricPacking:
    """Symmetric matrices of order d as vectors of `size` = d (d + 1) / 2 numbers with the same inner product.

    The vectors are coordinates in the orthonormal basis e_i e_i', (e_i e_j' + e_j e_i') / sqrt(2).

    >>> packing = SymmetricPacking.made(HOST, 2)
    >>> packed = packing.pack(np.array([[1.0, 2.0], [2.0, 3.0]]))
    >>> packed.round(4).tolist(), packing.unpack(packed).round(12).tolist()
    ([1.0, 2.8284, 3.0], [[1.0, 2.0], [2.0, 3.0]])
    """

    device: Device
    d: int
    size: int
    _upper: Any  # the places of packed numbers in the matrix
    _places: Any  # the places of its entries among packed numbers
    _factors: Any
    _inverse_factors: Any

    @classmethod
    def made(cls, device: Device, d: int) -> SymmetricPacking:
        """The packing, with its indices on the device."""
        i, j = np.triu_indices(d)
        factors = np.where(i == j, 1.0, np.sqrt(2.0))
        return cls(
            device,
            d,
            len(i),
            device.put_index(i * d + j),
            device.put_index(packed_places(d).ravel()),
            device.put(factors),
            device.put(1 / factors),
        )

    def pack(self, matrices: Any) -> Any:
        """The vectors (..., size) of symmetric matrices (..., d, d)."""
        xp = self.device.xp
        flat = xp.reshape(matrices, (*matrices.shape[:-2], self.d**2))
        return xp.take(flat, self._upper, axis=flat.ndim - 1) * self._factors

    def unpack(self, vectors: Any) -> Any:
        """The symmetric matrices (..., d, d) of vectors (..., size)."""
        xp = self.device.xp
        flat = xp.take(vectors * self._inverse_factors, self._places, axis=vectors.ndim - 1)
        return xp.reshape(flat, (*vectors.shape[:-1], self.d, self.d))


def packed_places(d: int) -> IntArray:
    """For each entry of a symmetric matrix of order d, its place among the packed numbers.

    >>> packed_places(2).tolist()
    [[0, 1], [1, 2]]
    """
    i, j = np.triu_indices(d)
    places = np.empty((d, d), dtype=np.int64)
    places[i, j] = places[j, i] = np.arange(len(i))
    return places
