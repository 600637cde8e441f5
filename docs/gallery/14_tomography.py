"""
Tomography: a picture from the shadows of rays
==============================================

"I have a sparse matrix of rays and what the detectors measured. How good is the picture
after a few passes over the rays, and what do the passes do for Krylov methods?"

A parallel-beam scanner turns around a head of ten ellipses (the Shepp-Logan phantom).
Each ray is one equation: its lengths within the pixels, times the values of the pixels,
add up to what its detector measures. ``fg.solve`` projects onto one equation after
another, which tomography calls ART.
"""

from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse.linalg import lsmr

import forgetting as fg

SIZE, VIEWS = 65, 90
scan = fg.datasets.tomography(size=SIZE, angles=VIEWS, detectors=92)
A, b, image = scan.A, scan.b, scan.image
print(scan)


def error(picture):
    """The root mean square of the errors of the pixels within the circle."""
    middle = (SIZE - 1) / 2
    y, x = np.indices((SIZE, SIZE)) - middle
    inside = x**2 + y**2 <= (SIZE / 2) ** 2
    return np.sqrt(np.mean((picture - image)[inside] ** 2))


# %%
# A few epochs
# ------------
#
# An epoch visits every ray once, in random order. ``bounds=(0, np.inf)`` keeps pixels
# from becoming negative. ``iradon_sart`` of scikit-image makes the steps of all rays of
# a view at once, with its own relaxation of 0.15, on a sinogram of the same phantom by
# its own ``radon``. That turns the image by interpolation, so that its rays are not
# quite those of ``iradon_sart``: a part of its error is of that kind.

pictures = {}
for epochs in (1, 3, 10):
    found = fg.solve(A, b, tol=0, maxiter=epochs, bounds=(0, np.inf))
    name = f"fg.solve, {epochs} epoch{'s' if epochs > 1 else ''}"
    pictures[name] = found.x.reshape(SIZE, SIZE)

if find_spec("skimage"):
    from skimage.transform import iradon_sart, radon

    theta = scan.angles
    sinogram = radon(image.copy(), theta=theta, circle=True)
    picture = None
    for passes in range(1, 11):
        picture = iradon_sart(sinogram, theta=theta, image=picture, clip=(0, np.inf))
        if passes in (1, 3, 10):
            name = f"iradon_sart, {passes} pass{'es' if passes > 1 else ''}"
            pictures[name] = picture
else:
    print("scikit-image is not installed: iradon_sart is left out")

for name, picture in pictures.items():
    print(f"{name:22} RMSE {error(picture):.4f}")

# %%
# The phantom, and the pictures after 1, 3 and 10 passes over the rays.

shown = {"phantom": image, **pictures}
columns = 4 if len(pictures) > 3 else len(shown)
rows = 2 if len(pictures) > 3 else 1
fig, panels = plt.subplots(
    rows, columns, figsize=(7.5, 2.1 * rows + 0.2), layout="constrained"
)
cells = list(panels.flat)
names = list(shown)
places = [0, 1, 2, 3, 5, 6, 7][: len(names)]
for cell in cells:
    cell.set_axis_off()
for place, name in zip(places, names, strict=True):
    ax = cells[place]
    mesh = ax.pcolormesh(shown[name][::-1], cmap="gray", vmin=0, vmax=0.5)
    title = name.replace(", ", "\n")
    if name != "phantom":
        title += f": {error(shown[name]):.3f}"
    ax.set(aspect="equal")
    ax.set_title(title, fontsize=8)
plt.show()

# %%
# How fast
# --------
#
# The relative residual after each pass over the matrix. An epoch of ``fg.solve`` counts
# as two (each ray is multiplied with x and then added to x), and so does an iteration
# of ``lsmr`` (a product with A and one with its transpose). ``fg.solver.swept`` gives a
# system with the same solutions whose products are sweeps over the rays: an iteration
# counts as four passes.


def residual(x):
    """Relative to b."""
    return np.linalg.norm(b - A @ x) / np.linalg.norm(b)


def krylov(system, iterations):
    """The residuals of lsmr after so many iterations."""
    matrix, side = system
    options = {"atol": 0, "btol": 0, "conlim": 0}
    return [residual(lsmr(matrix, side, maxiter=k, **options)[0]) for k in iterations]


fig, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
curve = []
options = {"method": "kaczmarz", "tol": 0, "maxiter": 80}
fg.solve(A, b, **options, callback=lambda x: curve.append(residual(x)))
ax.semilogy(2 * np.arange(1, len(curve) + 1), curve, label="fg.solve")
counts = np.unique(np.geomspace(1, 80, 11).astype(int))
ax.semilogy(2 * counts, krylov((A, b), counts), "o-", ms=3, label="lsmr")
counts = counts[counts <= 40]
system = fg.solver.swept(A, b)
ax.semilogy(4 * counts, krylov(system, counts), "s-", ms=3, label="lsmr, swept rows")
ax.set(xlabel="passes over the matrix", ylabel="relative residual")
ax.legend()
plt.show()

# %%
# What to use
# -----------
#
# For a picture, a few epochs: what is left after them is detail that noise would hide.
# For a small residual, ``lsmr`` on the swept rows.

for name, matrix, side in (("A x = b", A, b), ("swept rows", *system)):
    x, _, iterations, *_ = lsmr(matrix, side, atol=0, btol=1e-5, conlim=0, maxiter=5000)
    reached, apart = residual(x), error(x.reshape(SIZE, SIZE))
    print(f"lsmr, {name:10} {iterations:4} iterations, residual {reached:.0e}", end="")
    print(f", RMSE {apart:.0e}")
