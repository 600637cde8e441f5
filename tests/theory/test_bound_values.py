"""Every formula against a value worked out by hand. S = dist_sq radius^2 = 2 * 3^2 = 18 throughout.

A(k) = prod_{j<=k} (1 + 3/(4j)) / (2 (k + 1)): A(1) = 1.75/4, A(2) = 1.75 * 1.375 / 6 = 2.40625/6, and
A(3) = 2.40625 * 1.25 / 8 = 0.3759765625.
"""

from math import acos, cos, e, exp, log, pi, sqrt

import pytest

from forgetting.bounds import Misfit, Setting, all_bounds, get
from forgetting.theory.expression import last_iterate

# d - r = 25, T r = 100, D - r = 16, S = 18, Rbar |w|^2 = 10, x = eta beta = 1/2, beta |w|^2 = 4
BASE = {
    "T": 20, "d": 30, "rank_avg": 5, "rank_max": 6, "rank_joint": 21, "dist_sq": 2, "radius": 3, "radius_sq_mean": 5,
    "weight_ratio": 7, "spectral_gap": 0.25, "rank_weighted": 5, "eta": 0.25, "beta": 2, "sigma": 2, "G": 3,
    "previous_loss": 0.5,
}  # fmt: skip
C = (1 + sqrt(41)) / 10  # 5 c^2 = c + 2
STATED_SGD = 4 * e / (1.5 * 2**2.25)  # k = 16: k^((1 - 1/4)^2) = 16^0.5625 = 2^2.25, and 2 x (2 - x) = 1.5
# two lines, one change: 18 (1 - c^2)(1 + c)/8 c^2 at 5 c^2 - c - 2 = 0
COS = (1 + sqrt(41)) / 10
PAIR = 18 * (1 - COS**2) * (1 + COS) / 8 * COS**2
COS_12 = (1 + sqrt(721)) / 30
TWELVE = 18 * (1 - COS_12**2) * (1 + COS_12) / 8 * COS_12**12
TIP = cos(pi / 21) ** 21
# D_c = 4, gamma = 3; at k = 2 with lambda_min = 1/4: (1 - lambda_min)^k = 9/16, and (1 - 9/16) / (1/4) = 7/4
NOISY = {
    "misfit": Misfit(
        floor=0.5, smoothness=4, noise=3, noise_max=9, centre_loss=1, centre_slope=2, centre_dist_sq=16,
        centre_noise=2, sigma=1, sgd_dist_sq=6,
    )
}  # fmt: skip
ROWS = {"rank_max": 1, "rank_avg": 1, "rank_joint": 20}
ONE = {"rank_joint": 1, "rank_max": 1, "rank_avg": 0.5, "rank_weighted": 0.5}

CASES = [
    ("thm:random_convergence_rate/loss", 11, 4.5 / e, {}),  # 5 * 18 / (2e * 10)
    ("thm:random_convergence_rate/loss", 11, 1.8 / e, {"T": 2, "rank_avg": 2, "rank_joint": 4}),  # sqrt(T r) = 2 wins
    ("thm:random_convergence_rate/loss/D", 11, 3.6 / e, {}),  # 4 * 18 / (20 e)
    ("thm:random_convergence_rate/loss/dimension", 11, 4.5 / e, {}),
    ("thm:random_convergence_rate/loss/rows", 11, 9 / e, {}),  # 10 * 18 / (20 e)
    ("thm:random_convergence_rate/loss/proof", 3, 9 * sqrt(21) * 27 / 256, {}),  # sqrt(21) 3^3/4^4 < 4 * 2^2/3^3
    ("thm:random_convergence_rate/loss/proof", 3, 4 / 3, {"rank_avg": 20, "rank_max": 20}),  # D - r = 1: 9 * 4/27
    ("thm:random_convergence_rate/forgetting", 11, 15, {}),  # 3 * 5 * 18 / (2 * 9)
    ("thm:random_convergence_rate/forgetting/D", 11, 12, {}),
    ("thm:random_convergence_rate/forgetting/dimension", 11, 15, {}),
    ("thm:random_convergence_rate/forgetting/rows", 11, 30, {}),
    ("thm:random_convergence_rate/forgetting/proof", 3, 8 / 3 * sqrt(21) + 6, {}),  # 18 sqrt(21) * 4/27 + 18/3
    ("thm:cl_by_sgd_main/loss", 16, 18, {}),  # 2 * 18 / 2
    ("thm:cl_by_sgd_main/loss/proof", 16, 4.5 * e, {}),  # e/2 * 18 / 2
    ("thm:cl_by_sgd_main/loss/product", 2, 7.21875, {}),  # 18 A(2) = 3 * 2.40625
    ("thm:cl_by_sgd_main/forgetting", 17, 45, {}),  # 5 * 18 / 2
    ("thm:cl_by_sgd_main/forgetting/proof", 17, 9 * e + 18 / 17, {}),
    ("thm:cl_by_sgd_main/forgetting/product", 3, 20.4375, {}),  # 36 A(2) + 6 = 14.4375 + 6
    ("thm:cl_by_sgd_wor/loss", 17, 29.25, {}),  # min(7/2, 26/16) * 18
    ("thm:cl_by_sgd_wor/loss", 2, 126, {}),  # min(7, 26) * 18
    ("thm:cl_by_sgd_wor/loss/D", 17, 19.125, {}),  # 17/16 * 18
    ("thm:cl_by_sgd_wor/loss/universal", 17, 63, {}),
    ("thm:cl_by_sgd_wor/loss/dimension", 17, 29.25, {}),
    ("thm:cl_by_sgd_wor/loss/proof", 17, 26.015625 + 18 / 17, {}),  # 37/40 * 25/16 * 18 + 18/17
    # h(3) = 2 A(2) = 2.40625/3, h(4) = 2 A(3): 18 (2.40625 + 1)/20 + 18 * 17/40 * 0.751953125
    ("thm:cl_by_sgd_wor/loss/product", 3, 3.065625 + 5.75244140625, {}),
    ("thm:cl_by_sgd_wor/forgetting", 17, 29.25, {}),
    ("thm:cl_by_sgd_wor/forgetting/D", 17, 19.125, {}),
    ("thm:cl_by_sgd_wor/forgetting/universal", 17, 63, {}),
    ("thm:cl_by_sgd_wor/forgetting/dimension", 17, 29.25, {}),
    ("thm:cl_by_sgd_wor/forgetting/proof", 17, 28.125 + 18 / 17, {}),
    ("thm:cl_by_sgd_wor/forgetting/product", 3, 20.4375, {}),
    ("prop:mean_norm/loss", 16, 10, {}),  # 2 * 10 / 2
    ("prop:mean_norm/loss/proof", 16, 2.5 * e, {}),
    ("prop:mean_norm/loss/weights", 2, 14 * 2.40625 / 6, {}),  # 2 * 7 * A(2)
    ("prop:mean_norm/forgetting", 17, 25, {}),
    ("prop:mean_norm/forgetting/corrected", 17, 45, {}),
    ("prop:mean_norm/forgetting/corrected/product", 3, 20.4375, {}),
    ("lem:in_to_all_sample/forgetting", 9, 3, {}),  # 2 * 0.5 + 18/9
    ("lem:regret_bound/regret", 6, 2, {}),  # 18 / (2 * 0.5 * 1.5 * 6)
    ("lem:regret_bound/regret", 6, 1.5, {"eta": 1, "beta": 1}),  # 18 / (2 * 6)
    ("trivial/loss", 1, 5, {}),
    ("trivial/loss", 1, 9, {"radius_sq_mean": None}),
    ("trivial/forgetting", 1, 9, {}),
    ("trivial/regret", 1, 9, {}),
    ("trivial/next_loss", 1, 9, {}),
    ("trivial/residual", 1, 1, {}),
    ("trivial/objective", 1, 2, {}),
    ("trivial/averaged_objective", 1, 2, {}),
    ("trivial/error", 1, 2, {}),
    ("thm:sgd_last_iterate_main/objective", 16, STATED_SGD, {}),
    ("thm:sgd_last_iterate_main/objective/greedy", 16, e, {"eta": 0.5}),  # e * 4 / (2 * 2)
    ("thm:sgd_last_iterate_main/objective/log", 16, log(2), {"eta": 1 / (2 * log(16))}),  # 4 * 4 log 2 / 16
    # a = 0.5 * 0.875: 1.4375 * 1.21875 = 1.751953125 over 1.5 * 3, times 4
    ("thm:sgd_last_iterate_main/objective/product", 2, 4 * 1.751953125 / 4.5, {}),
    ("thm:wor_sgd_last_iterate_main/objective", 16, 2 * STATED_SGD + 0.5, {}),  # 4 * 0.5 * 4 / 16
    ("thm:wor_sgd_last_iterate_main/objective/greedy", 16, 14, {"eta": 0.5}),
    ("thm:wor_sgd_last_iterate_main/objective/log", 16, 14 * log(2), {"eta": 1 / (2 * log(16))}),
    ("thm:wor_sgd_last_iterate_main/objective/corrected", 16, 33 / 17 * STATED_SGD + 8 / 25.5, {}),
    # 4 (2/3 (2 * 1.4375/3 + 1/6) + 1.751953125/4.5/3) = 4 (0.75 + 0.12977430...)
    ("thm:wor_sgd_last_iterate_main/objective/product", 2, 3 + 4 * 1.751953125 / 13.5, {}),
    ("sgd:shamir-zhang-2013/objective", 16, 0.5 + 9 * log(2), {}),  # 2/(4) + 0.25 * 9 * 4 log 2
    ("sgd:nesterov-1998/objective", 16, 1 / 3, {}),  # 0.5 / 1.5
    ("sgd:lan-2012/averaged_objective", 16, 1.5, {}),  # 0.5 + 0.25 * 4
    ("sgd:liu-2024/objective", 16, 0.5 + 4 * log(2), {}),
    ("sgd:srebro-2010/averaged_objective", 16, 1, {}),  # 0.5 / 0.5
    ("sgd:bach-moulines-2013/averaged_objective", 16, 0.5, {}),
    ("sgd:mean-of-iterates/averaged_objective", 16, 1 / 6, {}),  # 2 / (2 * 0.25 * 1.5 * 16)
    ("gower2015:any weights/error", 2, 1.125, {}),  # 2 * 0.75^2
    ("strohmer2009:single rows/error", 2, 1.125, {"rank_max": 1, "rank_avg": 1, "rank_joint": 20}),
    # x = 1/32 and 2 x log(16) = log(2)/4
    ("sgd:varre-2021/objective", 16, 2 / (1 - log(2) / 4), {"eta": 0.0625, "beta": 0.5}),
    # max_m |X_m|^2/(T p_m) |w_0 - w*|^2 = 14; u(1) = 0.76981/2
    ("here:last-iterate/loss", 8, 2, {}),
    ("here:last-iterate/loss/longer", 8, 27 / 16, {}),
    ("here:last-iterate/loss/universal", 1, 9 * 0.384905, {}),
    ("here:last-iterate/loss/universal", 0, 9, {}),
    ("here:last-iterate/loss/weights", 1, 7 * 0.384905, {}),
    ("here:last-iterate/loss/gap", 1, 7 * 0.384905, {}),
    ("here:last-iterate/loss/gap", 2, 0.07, {"spectral_gap": 0.9}),  # 7 (1 - 0.9)^2, which is below 0.1 u(1) and u(2)
    # D = 1: y (1-y)^k is at most 1/4 at k = 1; where D - 2r + |P|_F^2 is 1/4, at k = 2 half of that
    ("here:last-iterate/loss/moments", 1, 9 / 4, {**ONE, "rank_weighted": None}),
    ("here:last-iterate/loss/moments", 2, 9 / 8, {**ONE, "mean_projection": 0.5}),  # 1 - 1 + 1/4
    ("here:last-iterate/loss/moments/weights", 1, 7 / 4, ONE),
    ("here:last-iterate/loss/moments/weights", 5, 7 * 1e-4, {"mean_projection": 1e-4}),  # |P|_F alone
    ("here:last-iterate/next_loss", 1, 9 / 4, ONE),
    ("here:last-iterate/forgetting", 2, 9 * (sqrt(0.384905) + 0.5) ** 2, {}),
    ("here:last-iterate/forgetting/moments", 2, 9, ONE),  # (1/2 + 1/2)^2
    ("here:last-iterate/forgetting", 1, 36, {}),
    ("here:single-pass/forgetting", 9, (1 + sqrt(27 / 16)) ** 2, {}),
    ("here:single-pass/next_loss", 7, 27 * 18 / 256, {}),
    ("here:single-pass/next_loss/lower", 2, 9 * 6**4 / 5**5, {"T": 3, "rank_avg": 7, "rank_max": 7}),
    ("here:single-pass/loss", 5, (1 + sqrt(27 / 16)) ** 2 * 18 / 40 + 3 / 4 * 27 * 18 / (32 * 6), {}),
    ("here:sgd-last-iterate/objective", 3, 27 * 4 / (32 * 4), {"eta": 0.5}),  # rho(1) = 16/27
    ("here:sgd-last-iterate/objective", 3, 2 / 3 * 5 * pi**2 / (32 * acos(0.25) ** 2), {}),  # x = 1/2
    ("here:single-pass-sgd/objective", 3, 2 / 4 * ((1 + sqrt(27 / 16)) ** 2 + 27 / 64), {"eta": 0.5}),
    ("here:sgd-last-iterate/objective/universal", 1, 4 * 0.384905, {}),
    # x = 1: S/(2k) (1 + sqrt(27/16))^2 and S/2 27/16 /(k+1), as for tasks learned to convergence
    ("here:sgd-last-iterate/forgetting", 30, 18 / 60 * (1 + sqrt(27 / 16)) ** 2, {"eta": 1, "beta": 1}),
    ("here:single-pass-sgd/forgetting", 18, 0.5 * (1 + sqrt(27 / 16)) ** 2, {"eta": 1 / 9, "beta": 9}),
    ("here:single-pass-sgd/next_loss", 8, 27 / 16, {"eta": 1 / 9, "beta": 9}),
    ("here:single-pass-sgd/loss", 20, 18 / 40 * (1 + sqrt(27 / 16)) ** 2, {"eta": 1 / 9, "beta": 9}),
    ("here:single-pass-sgd/loss", 8, 9 / 20 * (1 + sqrt(27 / 16)) ** 2 + 0.6 * 27 / 16, {"eta": 1 / 9, "beta": 9}),
    ("here:projections/residual/weights", 3, 4, {"rarest_draw": 4}),
    ("here:projections/residual/with", 3, 1, {}),
    ("here:projections/residual/without", 20, (sqrt(2.4396 / sqrt(19)) + 1 / sqrt(20)) ** 2, {}),
    ("here:projections/residual/without", 1, 2 * (2 / 20 + 19 / 40), {}),  # c(0) = c(1) = 1
    ("here:classification/forgetting/with", 16, 9 * (sqrt(0.5) + 0.25) ** 2, {}),
    ("here:classification/forgetting/without", 17, 9 * (sqrt(0.6099) + 1 / sqrt(17)) ** 2, {}),
    ("derezinski2026b:random/loss", 9, 2, {}),
    ("thm:pocs-rate/residual/with", 16, 7, {}),
    ("thm:pocs-rate/residual/with/proof", 16, e / 2, {}),
    ("thm:pocs-rate/residual/with/product", 2, 2.40625 / 3, {}),
    ("thm:pocs-rate/residual/without", 16, 7, {}),
    # 2 (3/20 (2.40625/3 + 1/3) + 17/20 * 0.3759765625)
    ("thm:pocs-rate/residual/without/corrected", 3, 0.340625 + 0.63916015625, {}),
    ("thm:pocs-rate/residual/without/corrected", 1, 0.83125, {}),  # 2 * 19/20 * 0.4375
    *((f"cor:pocs_forgetting/forgetting/{name}", 16, 63, {}) for name in ("with", "without")),
    *((f"cor:pocs_forgetting/forgetting/{name}/proof", 16, 9 * e + 4.5, {}) for name in ("with", "without")),
    *((f"cor:pocs_forgetting/forgetting/{name}/product", 3, 20.4375, {}) for name in ("with", "without")),
    *((f"cor:pocs_forgetting/forgetting/{name}/product", 1, 0, {}) for name in ("with", "without")),
    ("evron2023:random/forgetting", 1440, 18 / e, {}),  # 4 T S = 1440
    ("evron2023:cyclic/forgetting", 6400, 36 * exp(-1 / 18), {}),  # 9 min(800/80, 4 exp(-6400/(6400 * 18)))
    ("evron2023:cyclic/forgetting", 10**6, 7.2e6, {"dist_sq": 2e6}),  # S = 1.8e7: 9e6 * 800/1000
    ("evron2023:cyclic/residual", 6400, 4 * exp(-1 / 18), {}),
    ("evron2022:random/forgetting", 45, 45, {}),  # 9 * 25 * 18 / 90
    ("evron2022:random/forgetting/D", 45, 28.8, {}),
    ("evron2022:cyclic/forgetting/universal", 400, 180, {}),  # 400 * 18 / 40
    ("evron2022:cyclic/forgetting", 400, 108, {}),  # 400 * 9 * min(1/20, 24/800)
    ("evron2022:cyclic/forgetting/D", 400, 67.5, {}),  # 400 * 9 * 15/800
    ("evron2022:cyclic/forgetting/lower", 400, 0.375 / e, {}),  # 18 / (48 e)
    ("evron2022:alternating/forgetting", 2, 1.125, {"T": 2, "rank_avg": 11}),  # 18/8 * 1/2
    ("two-lines:random/loss/lower", 1, 8 / 3, {}),  # 18 * 4/27, at cos(theta) = 1/3
    ("two-lines:random/loss", 1, 8 / 3, {"T": 2, "rank_avg": 11}),
    ("two-lines:single-pass/loss", 1, 8 / 3, {"T": 2, "rank_avg": 11}),
    *((f"two-lines:single-pass/{q}", 2, 2.25 * C**2 * (1 - C**2) * (1 + C), {"T": 2, "rank_avg": 11})
      for q in ("loss", "forgetting")),
    ("here:sgd/objective", 3, sqrt(21) * 9 / 32, {}),  # 2 sqrt(21)/(2 * 1/4 * 3/2) g(3) = 8/3 * 27/256
    ("here:sgd/objective", 2, 6.4 * sqrt(21), {"eta": 0.9}),  # x = 1.8: 2/(2 * 0.9 * 0.2) * 1.8 * 0.8^2 above g(2)
    ("here:sgd/objective/sharper", 3, sqrt(21) * 9 / 32, {}),
    ("here:sgd/objective/sharper", 2, 50 / 9 * sqrt(21) / 4, {"eta": 0.9}),  # g(1) = 1/4 is below 1.8 * 0.8^2
    ("here:weights/loss", 3, 7 * sqrt(21) * 27 / 256, {}),  # 7 * 2/2 min(4 * 4/27, sqrt(21) * 27/256)
    ("here:weights/loss", 3, 28 / 27, {"rank_weighted": 20}),
    ("here:weights/forgetting", 3, 8 / 3 * sqrt(21) + 6, {}),  # 18 (min(4/4, sqrt(21) * 4/27) + 1/3)
    ("here:weights/forgetting", 3, 10.5, {"rank_weighted": 20}),  # 18 (1/4 + 1/3)
    ("here:weights/forgetting/sharper", 3, 9 * (sqrt(4 / 27 * sqrt(21)) + sqrt(1 / 3)) ** 2, {}),
    ("here:weights/forgetting/sharper", 3, 9 * (0.5 + sqrt(1 / 3)) ** 2, {"rank_weighted": 20}),
    ("here:weights/forgetting/sharper", 3, 9 * (sqrt(2.40625 / 3) + sqrt(1 / 3)) ** 2, {"rank_joint": 30}),  # 2 A(2)
    ("two-lines:random/forgetting/lower", 2, PAIR / 2, {}),  # the two tasks differ half of the time
    ("two-lines:random/forgetting", 2, PAIR / 2, {"T": 2, "rank_avg": 11}),
    # T = k = 12: c^12 in place of c^2, and 15 c^2 - c - 12 = 0 is solved by (1 + sqrt(721))/30
    ("two-lines:single-pass/loss/lower", 12, TWELVE, {"T": 12}),
    ("two-lines:single-pass/loss", 2, PAIR, {"T": 2, "rank_avg": 11}),
    ("two-lines:single-pass/forgetting/lower", 12, TWELVE, {"T": 12}),  # all tasks are seen: F = L
    # k = 2 of T = 20: 20/(2 * 19) of the pairs differ
    ("two-lines:single-pass/forgetting/lower", 2, PAIR * 20 / 38, {}),
    ("two-lines:single-pass/forgetting", 2, PAIR, {"T": 2, "rank_avg": 11}),
    ("two-lines:single-pass/forgetting", 1, 0, {"T": 2, "rank_avg": 11}),
    ("swartworth2023:cyclic/forgetting", 80, 1800, {}),  # 8000 * 18 / 80
    # one cycle: the maximum of |z (1 - z)| is at the point -r of the spiral, r = cos(pi/21)^21
    *((f"swartworth2023:spiral/{q}", 20, (1 + sqrt(2)) * 171 * TIP * (1 + TIP), {}) for q in ("loss", "forgetting")),
    ("attia2025:any-step/objective", 16, 2 / (0.25 * 1.5 * 8), {}),  # x = 1/2: k^(3/4) = 8
    ("attia2025:noise/objective", 16, 2 / 3 + 0.25 * 4 * 2 / 2.25, {}),  # k^(1/4) = 2, (2 - x)^2 = 2.25
    # sigma_star = 1 and D^2 = 6 of the misfit: 6 / (0.375 * 8) + 0.25 * 2 / 2.25
    ("attia2025:noise/objective", 16, 2 + 0.5 / 2.25, {**NOISY, "sigma": None}),
    ("attia2025:projections/residual", 16, 0.5, {}),
    ("here:noise/error", 2, 6.375, NOISY),  # 9/16 * 2 + 3 * 7/4
    ("here:noise/error", 2, 1.125, {}),  # 9/16 * 2, without noise
    ("here:noise/error", 2, 8, {**NOISY, "spectral_gap": 0}),  # 2 + 3 k
    ("here:noise/loss", 2, 13.25, NOISY),  # 0.5 + 2 * 6.375
    ("here:noise/loss/centred", 2, 30.5, NOISY),  # 1 + 9/16 * 2 * 4 + 2 (9/16 * 16 + 2 * 7/4)
    ("here:noise/averaged_loss", 2, 269, NOISY),  # 1 + 2 * 4 / 0.5 + 4 * 1.75 / (2 * 0.25) * (16 + 2)
    ("needell2010:single rows/error", 2, 37.125, {**NOISY, **ROWS}),  # 9/16 * 2 + 4 * 9
    ("floor/loss", 2, 0.5, NOISY),
    ("floor/averaged_loss", 2, 0.5, NOISY),
    *((f"attia2025:{name}/{q}", 169, 9, {"T": 200}) for name in ("with", "without") for q in ("loss", "forgetting")),
    ("derezinski2026:random/loss", 16, 2.25, {}),
    ("cai2025:reshuffled/objective", 40, 2.5, {"eta": 0.02}),  # 2 / (0.02 * 40)
    ("cai2025:proximal/loss", 40, 9, {}),  # 20 * 18 / 40
    ("cai2025:noise/objective", 40, 2.564, {"eta": 0.02}),  # + 0.0004 * 20 * 2 * 4
    ("jung2025:cyclic/objective", 2000, 0.04 * log(10) ** 2, {}),  # 100 cycles: (2 log 10)^2 / 100
    ("jung2025:cyclic/forgetting", 2000, 0.0016 * log(10) ** 4, {}),
    # 2 T lambda / (3 + sqrt(5)) = 10 / (3 + sqrt(5)) = 2.5 (3 - sqrt(5)); two epochs
    ("here:epochs/error", 40, 2 / (8.5 - 2.5 * sqrt(5)) ** 2, {}),
    ("here:epochs/error", 59, 2 / (8.5 - 2.5 * sqrt(5)) ** 2, {}),  # the third epoch has not ended
    ("here:epochs/error", 19, 2, {}),
    *((f"here:epochs/{q}", 40, 0.45 * (1 + sqrt(27 / 16)) ** 2 / (8.5 - 2.5 * sqrt(5)), {})
      for q in ("loss", "forgetting")),
    ("levinstein2025:fixed/loss", 16, 4.5 * log(2), {}),
    ("levinstein2025:increasing/loss", 9, 2, {}),
    ("here:ridge/loss", 1, 12 * 0.384905, {"penalty": 3}),  # (1 + 3/9) * 9 u(1)
    ("here:ridge/loss/fixed", 1, 18 * 0.384905, {}),  # (1 + 1) * 9 u(1): R^2 in place of R^2 log 1
    ("here:ridge/loss/increasing", 8, 1225 / 78, {}),  # 1225 * 18 / (156 * 9)
    ("tsipory2025:single-pass/loss/lower", 29, 1.05, {"T": 29}),  # (15/240 - 1/240) * 18
    ("tsipory2025:repeated/loss", 27, 6, {}),
]  # fmt: skip


@pytest.mark.parametrize(("key", "k", "expected", "change"), CASES, ids=[f"{c[0]}@{c[1]}" for c in CASES])
def test_value_worked_out_by_hand(key, k, expected, change):
    assert get(key).value(Setting(**{**BASE, **change}), k) == pytest.approx(expected, rel=1e-12, abs=1e-300)


def test_every_bound_has_a_value_worked_out_by_hand():
    assert {case[0] for case in CASES} == {bound.key for bound in all_bounds()}


def test_without_replacement_dimension_branches_of_the_sharpened_rows():
    # T = k = 3, D = 1, r = 1/3: h(3) = min(2 A(2) = 0.80, (2/3)/2, 1/3) = 1/3, so S (3 * 1/3 + 1)/3 = 12 and S/3 + S/3
    small = Setting(T=3, d=5, rank_avg=1 / 3, rank_joint=1, dist_sq=2, radius=3)
    assert get("thm:cl_by_sgd_wor/loss/product").value(small, 3) == pytest.approx(12)
    assert get("thm:cl_by_sgd_wor/forgetting/product").value(small, 3) == pytest.approx(12)
    # D = 2, r = 1.5 at T = 4, k = 3: (D - r)/(k-1) = 1/4 is the least of 0.80, 0.25, 0.67
    assert get("thm:cl_by_sgd_wor/forgetting/product").value(
        Setting(T=4, d=5, rank_avg=1.5, rank_joint=2), 3
    ) == pytest.approx(1 / 4 + 1 / 3)


def test_the_special_case_14_log_is_smaller_than_the_formula_only_at_two():
    # exp(2 - 1/(4 log 2))/(2 - 1/log 2) * log(2)/2 + 4/(2 log 2) = 3.204 + 2.885 against 14 * 0.3466 = 4.852
    at = {k: Setting(T=10**6, eta=1 / log(k), beta=1) for k in (2, 3, 10, 1000)}
    general, special = (get(f"thm:wor_sgd_last_iterate_main/objective{part}") for part in ("", "/log"))
    assert general.value(at[2], 2) == pytest.approx(6.09, abs=0.005)
    assert special.value(at[2], 2) == pytest.approx(4.85, abs=0.005)
    assert special.value(at[2], 2) > at[2].trivial("objective")
    assert all(general.value(at[k], k) <= special.value(at[k], k) for k in (3, 10, 1000))


def test_the_product_at_large_k_continues_the_one_at_small_k():
    # A(k) k^(1/4) tends to 1/(2 Gamma(7/4)) = 1/(2 * 0.9190625268) = 0.54403263
    product = get("thm:cl_by_sgd_main/loss/product")
    direct = 1.0
    for j in range(1, 1501):
        direct *= 1 + 0.75 / j
        if j in (998, 999, 1000, 1500):
            assert product.value(Setting(), j) == pytest.approx(direct / (2 * (j + 1)), rel=1e-12)
    assert product.value(Setting(), 10**12) == pytest.approx(0.54403263e-3, rel=1e-7)


def test_theorem_e4_holds_for_steps_above_1_over_beta_too_by_a_scan():
    """With the product of lem:ratio_avg_last, the proof gives (2k+1)/(k+1) A_x(k) + 4x/((2-x)(k+1)), beta D^2 = 1."""
    statement = get("thm:wor_sgd_last_iterate_main/objective")
    steps = sorted({*range(2, 120), 900, *(round(10 ** (2 + n / 8)) for n in range(41))})
    for x in (*(1 + n / 100 for n in range(100)), 0.01, 0.5, 0.84, 1.999, 2 - 1e-6):
        for k in steps:
            at = Setting(T=k + 1, eta=x, beta=1)
            proved = (2 * k + 1) / (k + 1) * last_iterate(x, k) + 4 * x / ((2 - x) * (k + 1))
            trivial, printed = at.trivial("objective"), statement.value(at, k)
            assert min(proved, trivial) < 0.45 * printed
            assert printed > trivial or k > 900 or x < 1
