"""Statements of other sources, before and after the paper, one file each; `proved_here` has those of no source.

Their numbers are converted once to losses with the factor 1/2. S = |w_0 - w*|^2 R^2 and r = rank_avg. Lower bounds are
worst cases over tasks: some tasks with these parameters reach them, which says nothing about given tasks.
"""

from forgetting.theory.later import (  # noqa: F401  (they register their statements)
    attia2025,
    derezinski2026,
    evron2022,
    evron2023,
    levinstein2025,
    linear_rates,
    nonexpansive,
    proved_here,
    reshuffling,
    swartworth2023,
    table_of_sgd,
    tsipory2025,
    two_lines,
    unsolved,
    xu_ma2026,
)
