"""
Noise: when to stop, and how long the steps should be
=====================================================

"What my detectors measure has 5 % noise, and no pixel is negative. Row action gives a
good picture after a few passes and a bad one after many. Where should it stop, and how
does that compare with SART, with damping, and with least squares over x >= 0?"

The first passes bring the picture, later ones the noise: the error falls, and rises
again. ``noise=`` stops ``fg.solve`` on the way, by the residual, which is all that one
sees outside of a simulation.
"""

from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import lsq_linear
from scipy.sparse.linalg import lsmr

import forgetting as fg

SIZE, VIEWS, RAYS = 40, 50, 57
scan = fg.datasets.tomography(size=SIZE, angles=VIEWS, detectors=RAYS)
A, image = scan.A, scan.image.ravel()
noise = 0.05 * np.linalg.norm(scan.b) / np.sqrt(len(scan.b))
b = scan.b + noise * np.random.default_rng(7).standard_normal(len(scan.b))
print(scan)


def error(x):
    """Relative to the phantom."""
    return np.linalg.norm(x - image) / np.linalg.norm(image)


# %%
# Steps of length 1, of a tenth, and as long as the noise allows
# --------------------------------------------------------------
#
# The curves go on for 100 epochs. The marks are where the rules stop: the discrepancy
# principle (circles) at the first residual of at most 1.02 times the noise; the
# periodogram (squares) where the residual, laid out as views and rays, looks most like
# white noise; the monotone error rule (triangle), which is for averaged methods, before
# the first step that may do harm. ``relaxation="auto"`` reads the length of the steps
# off the residual; SIRT makes the steps of all rays from the same x, SART those of
# a view at a time.

views = "herman-meyer" if "herman-meyer" in fg.orderings.registry else "reshuffled"
sart = {"method": "sart", "residual_shape": (VIEWS, RAYS), "ordering": views}
runs = {
    "rays, relaxation 1": {"relaxation": 1.0},
    "rays, relaxation 0.1": {"relaxation": 0.1},
    "rays, relaxation auto": {"relaxation": "auto"},
    "SART, relaxation 0.2": {"relaxation": 0.2, **sart},
    "SIRT": {"relaxation": "auto", "method": "sirt"},
}
rules = {"discrepancy": "o", "ncp": "s", "monotone": "^"}
bounds = (0, np.inf)
pictures, ends = {}, {}


def along(**options):
    """The errors after 100 epochs of the same steps, by a tau that is never reached."""
    errors = []
    level = {"noise": noise, "tau": 1e-9} if options["relaxation"] == "auto" else {}
    options = {"method": "kaczmarz", "maxiter": 100, "tol": 0.0, **level, **options}
    fg.solve(A, b, bounds=bounds, **options, callback=lambda x: errors.append(error(x)))
    return errors


fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for number, (name, options) in enumerate(runs.items()):
    curve = along(**options)
    ax.plot(range(1, len(curve) + 1), curve, color=f"C{number}", label=name)
    for rule, mark in rules.items():
        if rule == "monotone" and name != "SIRT":
            continue
        given = {"residual_shape": (VIEWS, RAYS), **options}
        found = fg.solve(A, b, noise=noise, stop=rule, bounds=bounds, **given)
        if not found.converged:
            continue
        ends[name, rule] = found
        place = found.stop_epochs[0], error(found.x)
        ax.plot(*place, mark, color=f"C{number}", mec="k", ms=7, zorder=3)
    pictures[name] = ends[name, "discrepancy"].x

# %%
# Beside them: damping, chosen by the same principle, and least squares over x >= 0,
# which fits the noise as well as such x can.

damps = np.geomspace(0.3, 30, 25)[::-1]
level = 1.02 * noise * np.sqrt(len(b))
damped = [lsmr(A, b, damp=damp, atol=1e-8, btol=1e-8)[0] for damp in damps]
fits = [np.linalg.norm(b - A @ x) <= level for x in damped]
chosen = damped[int(np.argmax(fits))]
pictures["lsmr, damped"] = chosen
pictures["lsq_linear"] = lsq_linear(A, b, bounds=bounds, lsq_solver="lsmr", tol=1e-6).x
for name, style in (("lsmr, damped", "--"), ("lsq_linear", ":")):
    ax.axhline(error(pictures[name]), ls=style, color="C7", label=name)
for rule, mark in rules.items():
    ax.plot([], [], mark, color="w", mec="k", label=f"stopped by {rule}")
ax.set(xlabel="epochs", ylabel="relative error", yscale="log", xscale="log")
ax.set_yticks([0.15, 0.2, 0.3, 0.5, 0.7], ["0.15", "0.2", "0.3", "0.5", "0.7"])
ax.set_yticks([], minor=True)
ax.set_xticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
ax.legend(fontsize=7, ncols=2)
plt.show()

# %%
# What the rules reached. The circle of relaxation 1 lies off its curve: where the
# residual stays above the noise, steps are halved, and the status says so. With x >= 0
# fewer noisy pictures fit, and the best picture has a residual below the noise: the
# discrepancy principle stops early, the periodogram, which knows no level, later.

for (name, rule), found in ends.items():
    print(f"{name:22} {rule:12} epoch {found.stop_epochs[0]:4.0f}", end="")
    print(f", error {error(found.x):.3f}, residual {found.residual:.4f}")
for name in ("lsmr, damped", "lsq_linear"):
    x = pictures[name]
    residual = np.linalg.norm(b - A @ x) / np.linalg.norm(b)
    print(f"{name:35} {'':11}error {error(x):.3f}, residual {residual:.4f}")

# %%
# scikit-image's SART, where it is installed, on a sinogram by its own ``radon`` with
# noise of the same level: passes over the views with a relaxation of 0.15, stopped at
# the noise by hand.

if find_spec("skimage"):
    from skimage.transform import iradon_sart, radon

    theta, picture = scan.angles, None
    sinogram = radon(scan.image.copy(), theta=theta, circle=True)
    sigma = 0.05 * np.linalg.norm(sinogram) / np.sqrt(sinogram.size)
    rng, (y, x) = np.random.default_rng(7), np.indices((SIZE, SIZE)) - SIZE // 2
    circle = x**2 + y**2 <= (SIZE // 2) ** 2
    noisy = sinogram + sigma * rng.standard_normal(sinogram.shape)
    for passes in range(1, 11):  # noqa: B007 - printed below
        picture = iradon_sart(noisy, theta=theta, image=picture, clip=(0, np.inf))
        missed = radon(picture * circle, theta=theta, circle=True) - noisy
        if np.linalg.norm(missed) <= 1.02 * sigma * np.sqrt(sinogram.size):
            break
    print(f"iradon_sart: {passes} passes, error {error(picture.ravel()):.3f}")
    pictures["iradon_sart"] = picture.ravel()
else:
    print("scikit-image is not installed: iradon_sart is left out")

# %%
# The pictures at the stop of the discrepancy principle.

shown = {"phantom": image, **pictures}
columns = -(-len(shown) // 2)
fig, panels = plt.subplots(2, columns, figsize=(7.5, 4.1), layout="constrained")
for cell in panels.flat:
    cell.set_axis_off()
for cell, (name, picture) in zip(panels.flat, shown.items(), strict=False):
    rows = picture.reshape(SIZE, SIZE)[::-1]
    cell.pcolormesh(rows, cmap="gray", vmin=0, vmax=0.5)
    title = name.replace(", ", "\n")
    title += "" if name == "phantom" else f": {error(picture):.3f}"
    cell.set(aspect="equal")
    cell.set_title(title, fontsize=8)
plt.show()

# %%
# What to use
# -----------
#
# Where the level of the noise is known, ``noise=`` with ``relaxation="auto"``: a few
# epochs, and no picture that fits more than the noise allows. Where rows have an order,
# as views and rays have, ``stop="ncp"`` with ``residual_shape=`` needs no level, and
# small steps, by rays or by views, leave it time to find the best one. Rows of unequal
# noise: ``noise=`` with a number for each.
