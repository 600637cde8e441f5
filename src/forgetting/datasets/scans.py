"""Computed tomography: the lengths of parallel rays within the pixels of an image, and what the rays measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, as_count, read_only, real_array
from forgetting.core.memory import require_memory
from forgetting.errors import InvalidInputError

#: value, semi-axes, centre and angle in degrees of each ellipse in the square from -1 to 1. Geometry: Shepp and Logan
#: (The Fourier reconstruction of a head section, IEEE Transactions on Nuclear Science 21, 1974); values with more
#: contrast: Toft (The Radon transform: theory and implementation, thesis, 1996).
ELLIPSES = (
    (1.0, 0.69, 0.92, 0.0, 0.0, 0.0),
    (-0.8, 0.6624, 0.874, 0.0, -0.0184, 0.0),
    (-0.2, 0.11, 0.31, 0.22, 0.0, -18.0),
    (-0.2, 0.16, 0.41, -0.22, 0.0, 18.0),
    (0.1, 0.21, 0.25, 0.0, 0.35, 0.0),
    (0.1, 0.046, 0.046, 0.0, 0.1, 0.0),
    (0.1, 0.046, 0.046, 0.0, -0.1, 0.0),
    (0.1, 0.046, 0.023, -0.08, -0.605, 0.0),
    (0.1, 0.023, 0.023, 0.0, -0.606, 0.0),
    (0.1, 0.023, 0.046, 0.06, -0.605, 0.0),
)
FINE = 8  # points along each side of a pixel, over which its value is averaged
SHORTEST = 1e-12  # pixels: a ray through a corner has lengths of rounding errors only in the pixels beside it


@dataclass(frozen=True, eq=False)
class Tomography:
    """A scan by parallel rays.

    Attributes:
        A: a scipy.sparse CSR array; the row of a ray holds its lengths within pixels. Rays are ordered by angle, then
            by offset; pixels row by row from the top.
        b: the sinogram A x, one number for each ray; `b.reshape(len(angles), len(offsets))` is its picture.
        image: size x size pixels; x is `image.ravel()`.
        angles: the angle of each view, in degrees.
        offsets: the distances of the rays of a view from the centre, in pixels.
    """

    A: Any
    b: Array
    image: Array
    angles: Array
    offsets: Array

    def __repr__(self) -> str:
        m, n = self.A.shape
        views = f"{len(self.angles)} angles x {len(self.offsets)} detectors"
        return f"Tomography({m} rays, {n} pixels, {views}, {self.A.nnz} lengths)"


def tomography(
    size: int = 45, angles: int | Sequence[float] | Array = 313, detectors: int = 64, image: Any = None
) -> Tomography:
    """A linear system of computed tomography: parallel rays through the Shepp-Logan phantom, a head in ten ellipses.

    Row i of A holds the lengths of ray i within the pixels, unit squares centred at the origin, by Siddon's method
    (Fast calculation of the exact radiological path for a three-dimensional CT array, Medical Physics 12, 1985): a ray
    is cut where it crosses lines of the grid. The ray at angle t and offset s has the points
    s (cos t, sin t) + r (-sin t, cos t), x to the right and y upwards. b = A x for the image x, without noise: the
    system is consistent. A ray along an edge between pixels counts for the pixel to the right or above. Cost: O(size)
    numbers for each ray.

    Args:
        size: the number of pixels along a side of the image.
        angles: the number of views, spread evenly from 0 to 180 degrees without the last, or the angles in degrees.
        detectors: the number of rays of each view, spread evenly over the diagonal of the image. About one for each
            pixel along the diagonal, as by default, makes fine details hard to tell apart (condition number 118);
            100 for 45 pixels make the system easy (14).
        image: size x size numbers in place of the phantom.

    >>> scan = tomography(size=8, angles=4, detectors=11)
    >>> scan
    Tomography(44 rays, 64 pixels, 4 angles x 11 detectors, 276 lengths)
    >>> round(float(scan.A.sum(axis=1)[5]), 3)      # the vertical ray through the centre
    8.0
    """
    size, detectors = as_count(size, "size", least=1), as_count(detectors, "detectors", least=1)
    if np.ndim(angles) == 0:
        count = as_count(angles, "angles", least=1)
        require_memory(8.0 * count, f"{count} angles", "choose fewer")
        degrees = 180.0 * np.arange(count) / count
    else:
        degrees = real_array(angles, "angles")
        if degrees.ndim != 1 or not len(degrees):
            raise InvalidInputError(f"angles: expected a number of angles, or a list, got shape {degrees.shape}")
    what = f"{len(degrees)} angles x {detectors} detectors and {size} x {size} pixels"
    require_memory(8.0 * (FINE * size) ** 2 + 24.0 * len(degrees) * detectors * size, what, "choose fewer")
    pixels = phantom(size) if image is None else real_array(image, "image", shape=(size, size)).copy()
    offsets = size * np.sqrt(2) * ((np.arange(detectors) + 0.5) / detectors - 0.5)
    A = ray_lengths(size, degrees, offsets)
    return Tomography(A, *(read_only(array) for array in (A @ pixels.ravel(), pixels, degrees.copy(), offsets)))


def ray_lengths(size: int, degrees: Array, offsets: Array) -> Any:
    """The lengths of rays within size x size unit squares, as a CSR array: a row for each ray, angle after angle.

    >>> ray_lengths(2, np.array([0.0, 45.0]), np.array([0.5])).toarray().round(3)
    array([[0.   , 1.   , 0.   , 1.   ],
           [0.414, 1.   , 0.   , 0.414]])
    """
    from scipy.sparse import csr_array

    lines = np.arange(size + 1) - size / 2
    data, indices, counts = [], [], []
    for degree in degrees:
        cos, sin = _direction(float(degree))
        crossings = [
            (lines - offsets[:, None] * along) / across for along, across in ((cos, -sin), (sin, cos)) if across
        ]
        cuts = np.sort(np.concatenate(crossings, axis=1), axis=1)
        lengths, middles = np.diff(cuts, axis=1), (cuts[:, 1:] + cuts[:, :-1]) / 2
        column = np.floor(offsets[:, None] * cos - middles * sin + size / 2).astype(np.int64)
        row = size - 1 - np.floor(offsets[:, None] * sin + middles * cos + size / 2).astype(np.int64)
        inside = (lengths > SHORTEST) & (column >= 0) & (column < size) & (row >= 0) & (row < size)
        data.append(lengths[inside])
        indices.append((row * size + column)[inside])
        counts.append(inside.sum(axis=1))
    starts = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    shape = (len(degrees) * len(offsets), size * size)
    narrow = np.int32 if max(starts[-1], *shape) < 2**31 else np.int64  # half the memory, as scipy chooses
    parts = (np.concatenate(data), np.concatenate(indices).astype(narrow), starts.astype(narrow))
    lengths_in = csr_array(parts, shape=shape)
    lengths_in.sum_duplicates()  # sorts the pixels of each ray as well
    return lengths_in


def _direction(degree: float) -> tuple[float, float]:
    """Cosine and sine of an angle, exact for multiples of 90 degrees."""
    quarters, rest = divmod(degree, 90.0)
    cos, sin = float(np.cos(np.deg2rad(rest))), float(np.sin(np.deg2rad(rest)))
    return ((cos, sin), (-sin, cos), (-cos, -sin), (sin, -cos))[int(quarters % 4)]


def phantom(size: int) -> Array:
    """The Shepp-Logan phantom: the value of a pixel is the average over 8 x 8 points, between 0 and 1.

    >>> phantom(5).round(1)
    array([[0. , 0.1, 0.3, 0.1, 0. ],
           [0. , 0.2, 0.3, 0.2, 0. ],
           [0.2, 0.1, 0.1, 0.1, 0.2],
           [0. , 0.2, 0.2, 0.2, 0. ],
           [0. , 0.1, 0.2, 0.1, 0. ]])
    """
    fine = FINE * size
    points = (2 * np.arange(fine) + 1) / fine - 1
    x, y = points[None, :], -points[:, None]
    values = np.zeros((fine, fine))
    for value, a, b, x0, y0, degree in ELLIPSES:
        cos, sin = _direction(degree)
        along, across = (x - x0) * cos + (y - y0) * sin, (y - y0) * cos - (x - x0) * sin
        values[(along / a) ** 2 + (across / b) ** 2 <= 1] += value
    return np.asarray(values.reshape(size, FINE, size, FINE).mean(axis=(1, 3)).clip(0.0, 1.0))
