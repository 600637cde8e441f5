"""The lengths of rays within pixels: known rays, chords of the square, points along rays; and the phantom."""

import numpy as np
import pytest

import forgetting as fg
from forgetting.datasets.scans import ELLIPSES, phantom, ray_lengths
from forgetting.errors import InvalidInputError


def chord(size, degree, offset):
    """The length of a ray within the square, by clipping its parameter to |x| <= size / 2, then to |y| <= size / 2."""
    t = np.deg2rad(degree)
    low, high = -np.inf, np.inf
    for start, step in ((offset * np.cos(t), -np.sin(t)), (offset * np.sin(t), np.cos(t))):
        if abs(step) < 1e-15:
            if abs(start) >= size / 2:
                return 0.0
            continue
        ends = sorted(((-size / 2 - start) / step, (size / 2 - start) / step))
        low, high = max(low, ends[0]), min(high, ends[1])
    return max(0.0, high - low)


def test_a_vertical_and_a_horizontal_ray_have_length_one_in_every_pixel_of_a_column_and_of_a_row():
    A = ray_lengths(4, np.array([0.0, 90.0]), np.array([-0.5])).toarray().reshape(2, 4, 4)
    column, row = np.zeros((2, 4, 4))
    column[:, 1] = 1  # x = -0.5: the second column from the left
    row[2] = 1  # y = -0.5: the third row from the top
    np.testing.assert_allclose(A[0], column, atol=1e-15)
    np.testing.assert_allclose(A[1], row, atol=1e-15)


def test_the_diagonal_ray_has_length_sqrt_2_in_the_pixels_of_the_diagonal():
    A = ray_lengths(5, np.array([45.0, 135.0]), np.array([0.0])).toarray().reshape(2, 5, 5)
    falling, rising = np.sqrt(2) * np.eye(5), np.sqrt(2) * np.eye(5)[::-1]
    np.testing.assert_allclose(A[0], falling, atol=1e-12)  # direction (-1, 1): from the lower right to the upper left
    np.testing.assert_allclose(A[1], rising, atol=1e-12)


def test_row_sums_are_the_chords_of_the_square():
    degrees, offsets = np.array([0.0, 13.0, 45.0, 77.7, 90.0, 110.0, 179.0, -30.0, 400.0]), np.linspace(-7.9, 7.9, 23)
    sums = ray_lengths(11, degrees, offsets).sum(axis=1).reshape(len(degrees), len(offsets))
    expected = [[chord(11, degree, offset) for offset in offsets] for degree in degrees]
    np.testing.assert_allclose(sums, expected, atol=1e-11)


def test_lengths_are_those_of_many_points_along_the_rays():
    """A point counts for the pixel that it is in: an independent way, with an error of two steps in each pixel."""
    degrees, offsets, size, step = np.array([20.0, 63.0, 155.0]), np.array([-2.3, 0.1, 1.7]), 6, 1e-4
    A = ray_lengths(size, degrees, offsets).toarray()
    r = np.arange(-size, size, step) + step / 2
    for k, (degree, offset) in enumerate((degree, offset) for degree in degrees for offset in offsets):
        t = np.deg2rad(degree)
        x, y = offset * np.cos(t) - r * np.sin(t), offset * np.sin(t) + r * np.cos(t)
        edges = np.arange(size + 1) - size / 2
        counts = np.histogram2d(y, x, bins=(edges, edges))[0][::-1]  # the top row first
        np.testing.assert_allclose(A[k].reshape(size, size), step * counts, atol=2.1 * step)


def test_every_view_sees_the_same_mass():
    """Rays a distance h apart cover the image: h times the sum of a view is the sum of the pixels.

    Views along the grid see whole pixels, of which each has 9 or 10 rays: they are less exact.
    """
    scan = fg.datasets.tomography(size=31, angles=24, detectors=400)
    masses = (scan.offsets[1] - scan.offsets[0]) * scan.b.reshape(24, 400).sum(axis=1) / scan.image.sum()
    along = scan.angles % 90 == 0
    np.testing.assert_allclose(masses[~along], 1.0, atol=3e-4)
    np.testing.assert_allclose(masses[along], 1.0, atol=1e-2)


def test_the_system_is_what_the_rays_measure():
    image = np.random.default_rng(0).random((9, 9))
    scan = fg.datasets.tomography(size=9, angles=[0.0, 10.0, 80.0], detectors=14, image=image)
    assert scan.A.shape == (42, 81)
    np.testing.assert_allclose(scan.b, scan.A.toarray() @ image.ravel(), rtol=1e-13)
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal(81), rng.standard_normal(42)
    assert (scan.A @ x) @ y == pytest.approx(x @ (scan.A.T @ y), rel=1e-12)
    assert scan.A.has_canonical_format
    assert scan.A.indices.dtype == np.int32
    image[0, 0] = 7.0
    assert scan.image[0, 0] != 7.0


def test_the_default_has_20032_rays_and_2025_pixels_and_finer_detectors_make_the_system_easier():
    scan = fg.datasets.tomography()
    assert scan.A.shape == (20_032, 2025)
    assert 0.015 < scan.A.nnz / np.prod(scan.A.shape) < 0.025
    conditions = []
    for few in (fg.datasets.tomography(17, 60, 24), fg.datasets.tomography(17, 60, 38)):
        values = np.linalg.svd(few.A.toarray(), compute_uv=False)
        conditions.append(values[0] / values[-1])
    assert 50 < conditions[0] < 1000
    assert 5 < conditions[1] < 30


def test_the_phantom_has_the_mass_of_its_ellipses_and_its_known_values():
    """Values of Toft: 1 in the skull, 0.2 in the brain, 0 in the ventricles, 0.3 in the largest lesion, 0 outside."""
    size = 201
    image = phantom(size)
    mass = np.pi * sum(value * a * b for value, a, b, *_ in ELLIPSES)
    assert 4 * image.mean() == pytest.approx(mass, rel=2e-3)
    at = {(0.0, 0.9): 1.0, (0.0, -0.4): 0.2, (0.22, 0.0): 0.0, (-0.22, 0.0): 0.0, (0.0, 0.4): 0.3, (0.9, 0.9): 0.0}
    for (x, y), value in at.items():
        row, column = int((1 - y) / 2 * size), int((x + 1) / 2 * size)
        assert image[row, column] == pytest.approx(value, abs=1e-12)
    # ellipse 3 leans: its upper end is right of x = 0.22 (it turned by -18 degrees), its lower end left of it
    assert image[int((1 - 0.25) / 2 * size), int((0.3 + 1) / 2 * size)] == pytest.approx(0.0, abs=1e-12)
    assert image[int((1 - 0.25) / 2 * size), int((0.14 + 1) / 2 * size)] > 0.1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 0}, "size"),
        ({"detectors": -1}, "detectors"),
        ({"angles": 0}, "angles"),
        ({"angles": []}, "angles"),
        ({"angles": [[1.0]]}, "angles"),
        ({"angles": [np.nan]}, "angles"),
        ({"size": 3, "image": np.zeros((2, 3))}, "image"),
    ],
)
def test_messages_name_the_argument(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        fg.datasets.tomography(**arguments)
