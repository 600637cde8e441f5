"""Both sides of statements against values worked out by hand.

Two lines at 60 degrees with w* halfway, |w*| = R = 1: E L(w_k) = 1/4 sin^2 (1 + cos)/2 ((1 + cos^2)/2)^(k-1)
= 9/64 (5/8)^(k-1), which is 225/4096 at k = 3.

Orthogonal tasks e_1, ..., e_T with w* = (1, ..., 1)/sqrt(T): a coordinate is right once its task has come, so nothing
is forgotten, and a task that has not come has loss 1/(2T).

One row: f(w) = (w - 1)^2/2 from w_0 = 0 with eta = 1/2 halves the error: f(w_t) = 1/2, 1/8, 1/32. beta = D = 1.
"""

from math import e, exp

import numpy as np
import pytest

import forgetting as fg
from forgetting.claims import Instance, get
from forgetting.theory.expression import last_iterate

WITH, WITHOUT = fg.orderings.WithReplacement(), fg.orderings.WithoutReplacement()
LINES = fg.families.two_lines(np.pi / 3)
HALF = fg.schemes.SGD(0.5, "loss")


def row(copies=1):
    return fg.families.repeated(fg.RegressionTasks([[[1.0]]], [[1.0]]), copies)


def descent(k, ordering=WITH, copies=1):
    return Instance(row(copies), ordering, k, scheme=HALF)


def orthogonal(T, k, ordering, **extras):
    return Instance(fg.families.orthogonal(T), ordering, k, extras=extras)


SQUARE = fg.RegressionTasks([[[1.0]]], [[0.0]])  # f(w) = w^2/2
STEEP = fg.RegressionTasks([[[2.0, 0.0]], [[0.0, 1.0]]], [[2.0], [0.0]])  # R = 2, w* = (1, 0)
CORNER = fg.ConvexSets([fg.Halfspace([1.0, 0.0], 1.0), fg.Halfspace([0.0, 1.0], 1.0)])
LINE = fg.ConvexSets([fg.Halfspace([1.0], 1.0)])  # from w = -1: P(w) = 1, f(w) = 2
CLASSES = fg.ClassificationTasks([[[1.0, 0.0]], [[0.6, -0.8]]], [[1], [-1]])  # rows z = (1, 0) and (-0.6, 0.8)
LAST = fg.orderings.Explicit([0, 0, 0, 1])
S = np.cos(1) ** 2
RESHUFFLED = fg.orderings.Reshuffled()
# L(a, b) = ((a-1)^2 + (a-3)^2 + b^2)/6, w* = (2, 0), L_min = 1/3, H = 2/3; uniform draws: lambda_min = 1/3, N = 2/3
CLASH = fg.RegressionTasks([[[1.0, 0.0]], [[1.0, 0.0]], [[0.0, 1.0]]], [[1.0], [3.0], [0.0]])
# the second task moves the error (0, 0, 1) of the first along (1, 1, 1), or along (0, 1, 1) with a row of the first
ACROSS = Instance(
    fg.RegressionTasks([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [[1.0, 1.0, 1.0]]], [[0.0, 0.0], [1.0]]),
    fg.orderings.Explicit([0, 1]), 2, extras={"m": 1},
)  # fmt: skip
IDLE = fg.RegressionTasks([[[1.0]]] + [[[0.0]]] * 9999, [[1.0]] + [[0.0]] * 9999)


TURNED = fg.RegressionTasks(  # lines at 0, 45 and 90 degrees, w* = (1, 0)
    [[[0.0, 1.0]], [[-(0.5**0.5), 0.5**0.5]], [[-1.0, 0.0]]], [[0.0], [-(0.5**0.5)], [-1.0]]
)


def lines_among_small_ones():
    """Two unit lines at angle 1, w* halfway, and 998 tasks of norm 1e-6."""
    lines = fg.families.two_lines(1.0)
    matrices = [lines.task(0)[0], lines.task(1)[0]] + [np.array([[1e-6, 0.0]])] * 998
    return fg.RegressionTasks(matrices, [matrix @ lines.w_star for matrix in matrices])


ON_LINE = fg.families.two_lines(np.pi / 3, w_star=(1, 0))
UNEQUAL = fg.RegressionTasks([[[1.0, 0.0]], [[0.06, 0.08]]], [[0.6], [0.1]])
CYCLE = fg.orderings.Cyclic()
PHI = np.linspace(0.49, 0.5, 100001)
RADIUS = (0.5 / np.cos((np.pi - PHI) / 3)) ** 3
SPIRAL_2 = np.max(RADIUS * np.abs(1 - RADIUS * np.exp(1j * PHI)))

CASES = [
    ("thm:random_convergence_rate", "loss", Instance(LINES, WITH, 3), 225 / 4096, 1 / (4 * e)),
    # F(3) with s = cos^2 = 1/4: (1-s)/(2k) (1+cos)/2 s/2 (a + 2b), a = 3/8, b = 5/8
    (
        "thm:random_convergence_rate",
        "forgetting",
        Instance(LINES, WITH, 3),
        0.75 / 6 * 0.75 * 0.125 * 13 / 8,
        3 / 2,
    ),
    ("thm:cl_by_sgd_main", "loss", Instance(LINES, WITH, 3), 225 / 4096, 2 / 3**0.25),
    ("thm:cl_by_sgd_main", "forgetting", Instance(LINES, WITH, 17), None, 2.5),  # 5 / 16^(1/4)
    ("thm:cl_by_sgd_wor", "loss", orthogonal(3, 2, WITHOUT), 1 / 18, 3.0),  # min(7, 3 - 1 + 1)
    ("thm:cl_by_sgd_wor", "forgetting", orthogonal(3, 2, WITHOUT), 0.0, 3.0),
    ("prop:mean_norm", "loss, uniform", Instance(IDLE, WITH, 5000), 5e-5 * (1 - 1e-4) ** 5000, 2e-4 * 5000**-0.25),
    # E F(3) of the two lines alone, as above with s = cos(1)^2, a + 2b = (3 + s)/2; Rbar = 2/1000
    (
        "prop:mean_norm",
        "forgetting",
        Instance(lines_among_small_ones(), fg.orderings.NormWeighted(), 3),
        (1 - S) / 6 * (1 + np.cos(1)) / 2 * S / 2 * (3 + S) / 2,
        0.01 * 2**-0.25,
    ),
    ("prop:mean_norm", "forgetting, corrected", Instance(LINES, WITH, 17), None, 2.5),
    ("lem:in_to_all_sample", "next task, with replacement", orthogonal(2, 1, WITH), 0.0, 0.5 + 1.0),
    ("lem:in_to_all_sample", "next task, without replacement", orthogonal(2, 2, WITHOUT), 0.0, 0.5 + 0.5),
    ("lem:in_to_all_sample", "loss, with replacement", orthogonal(2, 2, WITH), 0.0, 0.25 + 0.5),  # E L(w_1) = 1/8
    ("prop:loss_to_forgetting", "regression", orthogonal(3, 2, WITHOUT), 1 / 18, 1 / 18),  # (1/6) |1/sqrt(3)|^2
    ("lem:cl_gd_equiv", "upper bound", Instance(STEEP, None, 1, extras={"task": 0, "w": [0.0, 5.0]}), 2.0, 2.0),
    ("lem:cl_gd_equiv", "upper bound", Instance(STEEP, None, 1, extras={"task": 1, "w": [0.0, 3.0]}), 4.5, 18.0),
    (
        "lem:cl_gd_equiv",
        "convex and smooth",
        Instance(STEEP, None, 1, extras={"task": 0, "w": [3.0, 1.0], "z": [1.0, 0.0]}),
        4.0,
        4.0,
    ),
    ("eq:loss", None, Instance(LINES, WITH, 3), 225 / 4096, 225 / 4096),
    ("cor:Q spectrum", "at most 1", orthogonal(2, 1, WITH), 0.5, 1.0),  # Q has eigenvalues 1/2, 1/2, 0, 0
    ("cor:Q spectrum", "at least 0", orthogonal(2, 1, WITH), 1.0, 1.0),
    ("cor:polynomial_Q_spectrum", None, orthogonal(2, 1, WITH), 0.25, 1 / e),
    ("cor:polynomial_Q_spectrum", None, orthogonal(2, 3, WITH), 1 / 16, 1 / (3 * e)),
    ("cor:dimensionality_bound", "bound", orthogonal(2, 1, WITH), 0.5**0.5, 1.0),  # Q[I] = I/2
    ("cor:dimensionality_bound", "rank equality", descent(1, copies=3), 1, 3),
    ("cor:dimensionality_bound", "rank inequality", descent(1, copies=3), 1, 1),
    ("cor:Q-is-positive", None, orthogonal(2, 1, WITH, A=np.diag([2.0, 0.0])), 4.0, 4.0),  # Q[A] = diag(2, 0)
    ("rem:Qk-is-positive", None, orthogonal(2, 2, WITH, A=np.eye(2)), 0.75, 1.0),  # Q^2[I] = I/4
    ("lem:Q trace", None, orthogonal(2, 2, WITH, A=np.diag([1.0, 3.0]), B=np.eye(2)), 1.0, 1.0),
    ("cor:Q self adjoint", None, orthogonal(2, 1, WITH, A=np.diag([1.0, 3.0]), B=np.eye(2)), 2.0, 2.0),
    ("lem:A Upper Bound", None, orthogonal(2, 1, WITH), 0.5, 0.5),  # I/2 on both sides
    (
        "lem:Trace-inequality",
        None,
        orthogonal(2, 1, WITH, A=np.diag([1.0, 0.0]), B=np.diag([2.0, 2.0]), C=np.eye(2)),
        1.0,
        9.0,
    ),
    (
        "lem:gd_funadmental_inequality",
        None,
        Instance(SQUARE, None, 1, extras={"gradients": [[1.0]], "eta": 0.5, "w": [1.0], "v": [0.0]}),
        1.0,
        1.25,
    ),
    ("lem:gd_descent", "descent", Instance(SQUARE, None, 1, extras={"task": 0, "w": [2.0], "eta": 0.5}), 0.5, 0.5),
    ("lem:gd_descent", "gradient", Instance(SQUARE, None, 1, extras={"task": 0, "w": [2.0]}), 4.0, 4.0),
    ("lem:sqloss_gradineq", "identity", Instance(SQUARE, None, 1, extras={"task": 0, "w": [2.0]}), 4.0, 4.0),
    (
        "lem:sqloss_gradineq",
        "inequality",
        Instance(SQUARE, None, 1, extras={"task": 0, "w": [2.0], "z": [1.0], "gamma": 0.5}),
        2.0,
        2.0,
    ),
    ("lem:regret_bound", None, descent(2, fg.orderings.Explicit([0, 0])), 5 / 8, 2 / 3),
    ("lem:ratio_avg_last", "independent", descent(1), 1 / 8, exp(0.4375) * 5 / 16),  # x (1 - x/4) = 7/16
    ("lem:ratio_avg_last", "without replacement", descent(1, WITHOUT, 2), 1 / 8, exp(0.4375) * 5 / 16),
    ("thm:sgd_last_iterate_main", "general", descent(1), 1 / 8, e / 1.5),
    ("thm:sgd_last_iterate_main", "eta = 1/beta", Instance(row(), WITH, 16), 0.0, e / 4),
    ("lem:wr_stability", "eta beta <= 1", descent(1), 1 / 8, 1 / 4 + 2),
    ("lem:wr_stability", "corrected", descent(1), 1 / 8, 1 / 4 + 2 / 1.5),
    ("lem:wor_last_before_stab", "average", descent(1, WITHOUT, 2), 1 / 8, exp(0.4375) * 5 / 16),
    ("lem:wor_last_before_stab", "distance", descent(1, WITHOUT, 2), 1 / 8, e / 1.5),
    ("lem:wor_generalization", "eta beta <= 1", descent(1, WITHOUT, 2), 1 / 8, 1 / 4 + 1),
    ("lem:wor_generalization", "corrected", descent(1, WITHOUT, 2), 1 / 8, 1 / 4 + 1 / 1.5),
    ("lem:wor_generalization", "T = n", descent(2, WITHOUT, 2), 1 / 32, 1 / 4 + 1 / 6),
    ("thm:wor_sgd_last_iterate_main", "general", descent(2, WITHOUT, 3), 1 / 32, e / (0.75 * 2**0.5625) + 1),
    ("thm:wor_sgd_last_iterate_main", "eta = 1/beta", Instance(row(17), WITHOUT, 16), 0.0, 3.5),
    ("lem:stab_gen_wor", None, orthogonal(2, 1, WITHOUT), 1 / 4, 1 / 4),  # swapped, the next task has come
    ("lem:permutation_equiv", None, orthogonal(2, 1, WITHOUT, i=1, t=1), 1 / 4, 1 / 4),
    (
        "lem:proj_gradineq",
        "inequality",
        Instance(LINE, None, 1, extras={"task": 0, "w": [-1.0], "z": [0.0], "gamma": 0.5}),
        2.0,
        2.0,
    ),
    ("lem:proj_gradineq", "inside", Instance(LINE, None, 1, extras={"task": 0, "w": [-1.0], "z": [0.0]}), 4.0, 4.0),
    (
        "reduc:pocs",
        "convex and smooth",
        Instance(LINE, None, 1, extras={"task": 0, "w": [-1.0], "z": [3.0]}),
        4.0,
        8.0,
    ),
    ("thm:pocs-rate", "with replacement", Instance(CORNER, WITH, 1), 1 / 4, 14.0),  # one of two still at distance 1
    ("thm:pocs-rate", "without replacement", Instance(CORNER, WITHOUT, 1), 1 / 4, 14.0),
    ("thm:pocs-rate", "without replacement, corrected", Instance(CORNER, WITHOUT, 1), 1 / 4, 2 * (0 + 1.75 / 4 / 2)),
    ("cor:pocs_forgetting", "sets, with replacement", Instance(CORNER, WITH, 1), 0.0, 14.0),
    ("cor:pocs_forgetting", "sets, without replacement", Instance(CORNER, WITHOUT, 2), 0.0, 14 / 2**0.25),
    ("prop:loss_to_forgetting", "POCS", Instance(CORNER, WITHOUT, 1), 1 / 4, 1 / 4),
    # w = (1, 0), then (0.04, 1.28): task 0 misses its margin by 0.96; w_3 misses that of task 1 by 1.6
    ("cor:pocs_forgetting", "display, w_(k-1)", Instance(CLASSES, LAST, 4), 0.3456, 0.32),
    ("cor:pocs_forgetting", "display, w_k", Instance(CLASSES, LAST, 4), 0.3456, 0.3456),
    # the nearest w with both margins is (1, 2): |w*|^2 R^2 = 5; either order misses the first task by 0.96
    ("cor:pocs_forgetting", "without replacement", Instance(CLASSES, WITHOUT, 2), 0.2304, 35 / 2**0.25),
    # half the orders of two repeat a task and forget nothing
    ("cor:pocs_forgetting", "with replacement", Instance(CLASSES, WITH, 2), 0.1152, 35 / 2**0.25),
    ("cor:pocs_forgetting", "without replacement, corrected", Instance(CLASSES, WITHOUT, 2), 0.2304, 5 * (0.875 + 0.5)),
    # the mean of 0 and 1/2 is 1/4, with f = 9/32; the gradients of one task do not vary
    ("sgd:mean-of-iterates", None, descent(2), 9 / 32, 1 / 3),
    ("sgd:lan-2012", None, descent(2), 9 / 32, 1.0),
    ("sgd:srebro-2010", None, descent(2), 9 / 32, 2.0),
    ("sgd:bach-moulines-2013", None, descent(2), 9 / 32, 1.0),
    # gradients 2 (2 w_1 - 2) and w_2: Hessians diag(4, 0) and diag(0, 1) vary by diag(4, 1/4), so sigma^2 = 4; w_0 = 0
    ("sgd:lan-2012", None, Instance(STEEP, WITH, 1, scheme=fg.schemes.SGD(0.25, "loss")), 1.0, 5.0),
    # errors 3/4 after one step; then 3/4 again, or 3/16. Eigenvalues of (P_1 + P_2)/2 are (1 +- cos)/2
    ("gower2015:any weights", None, Instance(LINES, WITH, 2), 15 / 32, 9 / 16),
    ("strohmer2009:single rows", None, Instance(LINES, fg.orderings.NormWeighted(), 2), 15 / 32, 9 / 16),
    # T = 2 and |w*|^2 R^2 = 5: k = 40
    ("cor:pocs_forgetting", "example", Instance(CLASSES, WITH, 40), 7 / 40**0.25, 5 / 10**0.25),
    ("cor:pocs_forgetting", "example, smaller", Instance(CLASSES, WITH, 40), 1 / e, 5 / 10**0.25),
    ("eq:h-bound", "least squares", Instance(SQUARE, None, 1, extras={"task": 0, "w": [2.0], "z": [4.0]}), 6.0, 6.0),
    ("eq:h-bound", "sets", Instance(LINE, None, 1, extras={"task": 0, "w": [-1.0], "z": [-3.0]}), 6.0, 6.0),
    # from 0 and 2 the distance falls from 2 to 1: 4 - 1/2 (2 - 1/2) 4 = 1
    (
        "lem:wor_generalization",
        "steps do not expand",
        Instance(row(), fg.orderings.Explicit([0]), 1, scheme=HALF, extras={"z": [2.0]}),
        1.0,
        1.0,
    ),
    ("eq:wor_stab_main", "bound", orthogonal(2, 1, WITHOUT), 1 / 4, 1 / 4 + 1),  # (a, 0) against (0, a), a^2 = 1/2
    ("eq:wor_stab_main", "equality", orthogonal(2, 1, WITHOUT), 1 / 4, 1 / 4),
    ("text:regret", "no forgetting", orthogonal(2, 2, fg.orderings.Explicit([1, 0])), 1 / 4, 1 / 4),
    # the error shrinks by cos^2 = 1/2 twice: regret (1/2 + 1/4)/6 = 1/8, forgetting (1/4 + 1/8 + 0)/6 = 1/16
    ("text:regret", "little regret", Instance(TURNED, fg.orderings.Explicit([0, 1, 2]), 3), 1 / 16, 1 / 16),
    ("text:nlms", "forgetting", orthogonal(3, 5, WITH), 0.0, 0.0),
    ("text:nlms", "loss", orthogonal(2, 1, WITH), 1 / 8, 1 / 8),
    ("text:nlms", "loss", orthogonal(3, 2, WITHOUT), 1 / 18, 1 / 18),
    # cos = 1/2, w* on the first line: after both tasks in turn the distance to it is sin cos. The spiral of T = 2 has
    # its maximum of |z (1 - z)|, 0.300283, at z = r exp(0.497i)
    ("swartworth2023:spiral", "loss", Instance(ON_LINE, CYCLE, 2), 3 / 64, (1 + 2**0.5) / 2 * SPIRAL_2),
    ("swartworth2023:spiral", "forgetting", Instance(ON_LINE, CYCLE, 2), 3 / 64, (1 + 2**0.5) / 2 * SPIRAL_2),
    # half of the orders of two tasks change the line once: F = 3/8 * 1/4 * 3/4 of half of the time, over 2
    ("xu-ma2026", None, Instance(LINES, WITH, 2), 9 / 512, 9 / 512),
    # lam = 1 halves the error of 1 in each step and adds a quarter of the noise: 1/16 + 1/4 + 1/16, at k = 2
    (
        "zhao2024",
        "one strength",
        Instance(fg.RegressionTasks([[[1.0]]], [[1.0]]), CYCLE, 2, extras={"lam": 1.0}),
        (1 - 2**-0.5) * np.log(2) / 16,
        3 / 8,
    ),
    # 1/8 sin^2 (1 + cos) cos^2 without, and (1 + cos^2)/2 in place of cos^2 with replacement
    ("reshuffling", "distances, two tasks", Instance(LINES, WITHOUT, 2), 9 / 256, 45 / 512),
    # w_1 is (1, 0), (3, 0) or (0, 0): squared distances 1, 1, 4 and losses 2/3, 2/3, 5/3
    ("here:noise", "error", Instance(CLASH, WITH, 1), 2, 2 / 3 * 4 + 2 / 3),
    ("here:noise", "loss", Instance(CLASH, WITH, 1), 1, 1 / 3 + 1 / 3 * (2 / 3 * 4 + 2 / 3)),
    ("here:noise", "loss, centred", Instance(CLASH, WITH, 1), 1, 13 / 9),  # w_c = w*
    ("here:noise", "averaged loss", Instance(CLASH, WITH, 1), 5 / 3, 1 / 3 + 20),  # (2/3)(5/3)/(2/9) * 4
    # of two orthogonal tasks the other one has (1/2) (1/sqrt(2))^2
    # the gain 1/2 of the strength R^2 = 1, and 3/16 of 13/3; (1 + 1) u(1) / 2 and 1225/312
    ("here:ridge", None, Instance(row(), WITH, 1, scheme=fg.schemes.Ridge(1.0)), 1 / 8, 0.384905),
    ("here:ridge", "loss, fixed", Instance(row(), WITH, 1, scheme=fg.schemes.Ridge("fixed")), 1 / 8, 0.384905),
    (
        "here:ridge",
        "loss, increasing",
        Instance(row(), WITH, 1, scheme=fg.schemes.Ridge("increasing")),
        169 / 512,
        1225 / 312,
    ),
    ("here:last-iterate", "loss", orthogonal(2, 1, WITH), 1 / 8, 1 / 2),
    ("here:last-iterate", "loss, longer", orthogonal(2, 1, WITH), 1 / 8, 27 / 64),
    ("here:last-iterate", "loss, universal", orthogonal(2, 1, WITH), 1 / 8, 0.384905 / 2),
    ("here:last-iterate", "loss, weights", orthogonal(2, 1, WITH), 1 / 8, 0.384905 / 2),
    # two orthogonal lines: |P|_F = |I - P|_F = 1/sqrt(2), so d_0 <= 1/sqrt(2), and d_2 <= 1/sqrt(2) max y (1-y)
    ("here:last-iterate", "loss, moments", orthogonal(2, 2, WITH), 1 / 16, 1 / 128**0.5),
    ("here:last-iterate", "loss, moments, weights", orthogonal(2, 2, WITH), 1 / 16, 1 / 128**0.5),
    ("here:last-iterate", "next loss", orthogonal(2, 2, WITH), 1 / 16, 1 / 128**0.5),
    ("here:last-iterate", "loss, gap", orthogonal(2, 0, WITH), 1 / 4, 1 / 8**0.5),
    ("here:last-iterate", "forgetting, moments", orthogonal(2, 1, WITH), 0, (1 + 0.5**0.25) ** 2 / 2),
    ("here:last-iterate", "forgetting", orthogonal(2, 1, WITH), 0, 2),
    ("here:single-pass", "loss", orthogonal(2, 1, WITHOUT), 1 / 8, (1 + (27 / 16) ** 0.5) ** 2 / 4 + 27 / 128),
    ("here:single-pass", "forgetting", orthogonal(2, 1, WITHOUT), 0, (1 + (27 / 16) ** 0.5) ** 2 / 2),
    ("here:single-pass", "next loss", orthogonal(2, 1, WITHOUT), 1 / 4, 27 / 64),
    ("conjecture:next-loss", "subspaces", orthogonal(2, 1, WITHOUT), 1 / 4, 8 / 27),
    ("conjecture:next-loss", "convex sets", Instance(CORNER, WITHOUT, 1), 1 / 2, 16 / 27),  # |w_0 - w*|^2 = 2
    ("conjecture:convex-sets", None, Instance(CORNER, WITH, 1), 1 / 4, 2 / 27**0.5),
    # after each epoch of two orthogonal tasks nothing is left
    ("here:epochs", "mean of epochs", orthogonal(2, 4, RESHUFFLED), 0, (1 + (27 / 8) ** 0.5) ** 2 / 8),
    # the first epoch leaves |z|^2 = 3/4 * 1/4; the second one begins with the other line half of the time
    ("han2024:reshuffled", None, Instance(LINES, RESHUFFLED, 4), 15 / 512, 1 / 16),
    ("here:epochs", "error", Instance(LINES, RESHUFFLED, 4), 15 / 512, (4 / (7 - 5**0.5)) ** 2),
    ("here:epochs", "error", Instance(LINES, RESHUFFLED, 3), 15 / 128, 4 / (7 - 5**0.5)),
    *(
        ("here:epochs", part, Instance(LINES, RESHUFFLED, 4), 45 / 8192, (1 + (27 / 16) ** 0.5) ** 2 / (7 - 5**0.5))
        for part in ("loss", "forgetting")
    ),
    ("needell2010:single rows", None, Instance(CLASH, fg.orderings.NormWeighted(), 1), 2, 2 / 3 * 4 + 3),
    ("floor", "loss", Instance(CLASH, fg.orderings.Cyclic(), 1), 1 / 3, 2 / 3),
    ("mahdaviyeh2025", "replay against none", ACROSS, 1 / 16, 1 / 18),
    ("mahdaviyeh2025", "random rows", ACROSS, 1 / 16, 1 / 18),
    ("mahdaviyeh2025", "distance, two tasks", ACROSS, 1 / 2, 2 / 3),  # what is left of (0, 0, 1)
    ("reshuffling", "loss", Instance(UNEQUAL, WITHOUT, 2), 0.018432, 0.009472),
    # one of two coordinates is never learned in half of the draws: the mean of (1/4)(1/2) over two starts
    ("reshuffling", "distances, mean of starts", Instance(fg.families.orthogonal(2), WITHOUT, 2), 0.0, 1 / 16),
]
FALSE = {("reshuffling", "loss"), ("mahdaviyeh2025", "replay against none"), ("mahdaviyeh2025", "random rows"),
         ("prop:mean_norm", "loss, uniform"), ("prop:mean_norm", "forgetting"),
         ("cor:dimensionality_bound", "rank equality"), ("cor:pocs_forgetting", "display, w_(k-1)")}  # fmt: skip


@pytest.mark.parametrize(("label", "part", "case", "lhs", "rhs"), CASES)
def test_both_sides(label, part, case, lhs, rhs):
    verdict = get(label, part).check(case)
    if lhs is not None:
        assert verdict.lhs == pytest.approx(lhs, rel=1e-8, abs=1e-15)
    assert verdict.rhs == pytest.approx(rhs, rel=1e-9)
    assert verdict.slack == verdict.rhs - verdict.lhs
    assert verdict.holds == ((label, part) not in FALSE)


@pytest.mark.parametrize(("label", "part", "case", "lhs", "rhs"), CASES)
def test_both_sides_at_50_digits(label, part, case, lhs, rhs):
    verdict = get(label, part).confirm(case)
    if verdict is None:
        assert get(label, part).precise is None or case.problem.num_tasks > 100
        return
    if lhs is not None:
        assert verdict.lhs == pytest.approx(lhs, rel=1e-8, abs=1e-15)
    assert verdict.rhs == pytest.approx(rhs, rel=1e-9)
    assert verdict.holds == ((label, part) not in FALSE)


def test_every_claim_with_sides_of_its_own_has_a_value_by_hand():
    by_hand = {(label, part) for label, part, *_ in CASES}
    others = {claim.label for claim in fg.claims.all() if (claim.label, claim.part) not in by_hand}
    assert others == {
        "zhao2024",  # its matrices: an equality
        "reduc:cl_to_kaczmarz",  # equalities whose sides are distances: 0 = 0
        "reduc:kaczmarz",
        "eq:rank1_sgd",
        "text:rls",
        "cor:Q-is-symmetric",
        "lem:cl_gd_equiv",
        "reduc:pocs",  # finite differences
        "reduc:classification_to_pocs",
        "prop:mean_norm",  # other readings of the same sides
        "lem:wr_stability",
        "lem:wor_generalization",
        "thm:wor_sgd_last_iterate_main",
        "here:sgd",  # right sides are in test_bound_values.py, left sides in test_new_bounds.py
        "here:sgd-last-iterate",
        "here:single-pass-sgd",
        "here:projections",
        "here:classification",
        "here:weights",
        "two-lines:random",
        "two-lines:single-pass",
    }


@pytest.mark.parametrize(("k", "ratio"), [(100, 0.99), (200, 0.995)])
def test_two_lines_reach_nearly_all_of_the_rate_in_the_dimension(k, ratio):
    # sin^2 = 2/(k+1) is near the worst angle; the ratio is 1 - 1/k + ...
    case = Instance(fg.families.two_lines(np.arcsin((2 / (k + 1)) ** 0.5)), WITH, k)
    verdict = get("thm:random_convergence_rate", "loss").check(case)
    assert verdict.holds
    assert verdict.ratio == pytest.approx(ratio, abs=6e-4)


def test_the_next_task_is_missing_at_the_end_of_a_pass():
    # the printed lemma covers T = n, where there is no pi_T: refused, and completed by a part of its own
    claim = get("lem:wor_generalization", "eta beta <= 1")
    assert "up to 1" in claim.why_not(descent(2, WITHOUT, 2))
    assert get("lem:wor_generalization", "T = n").why_not(descent(2, WITHOUT, 2)) is None


def test_weak_regularisation_comes_nearer_to_projections_as_lambda_falls():
    claim, order = get("reduc:classification_to_pocs"), fg.orderings.Explicit([0, 1, 0])
    found = [
        claim.check(Instance(CLASSES, order, 3, scheme=fg.schemes.WeaklyRegularized(-level)))
        for level in (1e2, 1e3, 1e4)
    ]
    assert all(verdict.holds for verdict in found)
    assert found[0].lhs > 5 * found[1].lhs > 25 * found[2].lhs
    assert found[0].rhs > 2 * found[1].rhs > 4 * found[2].rhs  # sqrt(log L / L)


def test_finite_differences_see_a_wrong_gradient():
    # a set whose "projection" goes only half the way has another gradient than w - P(w)
    half = fg.CustomSet(lambda w: np.maximum(w, (w + 1) / 2), dim=1)
    case = Instance(fg.ConvexSets([half]), None, 1, extras={"task": 0, "w": [-1.0], "v": [1.0]})
    assert not get("reduc:pocs", "gradient step").check(case).holds
    good = Instance(LINE, None, 1, extras={"task": 0, "w": [-1.0], "v": [1.0]})
    assert get("reduc:pocs", "gradient step").check(good).holds


def test_the_gap_of_the_bound_without_replacement_closes_with_the_trivial_bound():
    """In units of beta D^2, x = eta beta > 1: min(what the proof gives, 1/2) stays below half of the statement."""
    for x in (1.0, 1.2, 1.5, 1.8, 1.99, 1.9999, 2 - 1e-9):
        for k in (2, 3, 5, 10, 50, 10**3, 10**5, 10**7):
            proved = (2 * k + 1) / (k + 1) * last_iterate(x, k) + 4 * x / ((2 - x) * (k + 1))
            stated = e / (x * (2 - x) * k ** ((1 - x / 2) ** 2)) + 4 * x / k
            assert min(proved, 0.5) <= stated / 2
