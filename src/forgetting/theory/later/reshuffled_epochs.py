"""Linear rates of reshuffled epochs, each of which visits every task once in a new random order.

Han and Xie 2024: the steps of an epoch in the order pi are a product S_pi of projections, and its norm on the joint row
space is below 1. The largest of these norms bounds what an epoch leaves. It is known for given tasks only, by all T!
orders.

`here:epochs` has a number in its place, by the least eigenvalue of the mean projection; the proof is in
docs/new-bounds.md.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial, reduce
from itertools import permutations

import numpy as np

from forgetting.core.numerical import ROUNDING
from forgetting.tasks import RegressionTasks
from forgetting.theory.checking import all_of, covers, projection, regression, setting_of, small, steps
from forgetting.theory.claim import declare_claim
from forgetting.theory.definition import equations
from forgetting.theory.draws import epochs
from forgetting.theory.expectations import Numbers, row_space
from forgetting.theory.expression import DISTANCE, Expression, K, S, T, number, power_left, root
from forgetting.theory.instance import Instance
from forgetting.theory.later.proved_here import HERE
from forgetting.theory.later.published_rates import GAP, LARGEST, OF_SQUARES, error_at_most, least_eigenvalue
from forgetting.theory.setting import Setting, known
from forgetting.theory.statement import Range
from forgetting.theory.theorem import Theorem, compared, expected
from forgetting.theory.verdict import Sides

MOST_LISTED = 6  # tasks, whose orders are listed
_WORDS = "reshuffled, k a multiple of T"
_REGRESSION = all_of(regression, projection, covers("reshuffled"), steps(1))


def _whole(instance: Instance) -> str | None:
    return None if instance.k % instance.tasks.num_tasks == 0 else "covers whole epochs, k a multiple of T"


# By all orders --------------------------------------------------------------------------------------------------------


def _few(instance: Instance) -> str | None:
    return None if instance.tasks.num_tasks <= MOST_LISTED else f"is checked for T <= {MOST_LISTED}"


def largest_norm(tasks: RegressionTasks) -> float:
    """The largest norm of the steps of an epoch on the joint row space, over all orders of the tasks.

    >>> import forgetting as fg
    >>> round(largest_norm(fg.families.two_lines(np.pi / 3)), 12)  # the cosine
    0.5
    """
    matrices = [equations(tasks, task)[0] for task in range(tasks.num_tasks)]
    frame = row_space(matrices)
    if not len(frame):
        return 0.0  # nothing to learn
    whole = np.eye(len(frame))
    kept = [whole - np.linalg.pinv(X @ frame.T, rcond=1e-12) @ (X @ frame.T) for X in matrices]
    return max(float(np.linalg.norm(reduce(np.matmul, order, whole), 2)) for order in permutations(kept))


def _by_all_orders(instance: Instance) -> float:
    return float(largest_norm(instance.tasks) ** (2 * (instance.k // instance.tasks.num_tasks)))


declare_claim(
    label="han2024:reshuffled",
    statement="E|w_k - w*|^2 <= max_pi |S_pi|^(2k/T) |w_0 - w*|^2, S_pi the steps of an epoch in the order pi on the "
    f"joint row space ({_WORDS})",
    draw=epochs,
    source="Han and Xie 2024, Theorem 3.2 and Corollary 3.3, as quoted elsewhere (han2024:reshuffled)",
    status="second-hand",
    note="Stated there for single rows and for each run; w* is the solution nearest to w_0. Only the abstract and a "
    "quotation of the theorem were read.",
    title="linear rate of reshuffled epochs, by all orders",
    missing=all_of(_few, small(LARGEST), _REGRESSION, _whole),
)(error_at_most(_by_all_orders))

# By the mean projection -----------------------------------------------------------------------------------------------

_GAP_IS = "lambda_min = the least eigenvalue of sum_m P_m / T on the joint row space"
_ENDED = Expression("floor(k/T)", r"\lfloor k/T\rfloor", lambda s, k: k // int(known(s.T)), ("T",))
_GAINED = 2 * T * GAP / (3 + root(number(5)))


def _growth(count: Expression) -> Expression:
    """(1 + T lambda_min / 2.618) to the power of this number of epochs, rounded down: bounds are divided by it."""

    def compute(s: Setting, k: int) -> float:
        gained = _GAINED.compute(s, k)
        left = power_left(gained / (1 + gained), 1 / (1 + gained), round(count.compute(s, k)))
        return 1 / left if left else math.inf

    return replace((1 + _GAINED) ** count, compute=compute)


def _from_data(instance: Instance) -> float:
    """(1 + T lambda_min / 2.618) to the power of minus the number of whole epochs, lambda_min from the data."""
    count = instance.tasks.num_tasks
    gap = least_eigenvalue(instance.tasks, np.full(count, 1 / count))
    return float((1 + count * gap * 2 / (3 + math.sqrt(5))) ** -(instance.k // count))


_epochs = Theorem(
    "here:epochs",
    "reshuffled epochs at a linear rate",
    source=f"{HERE} (here:epochs)",
    orderings="reshuffled",
    status="proved here",
)
_epochs(
    "error",
    (DISTANCE / _growth(_ENDED)).where(_GAP_IS),
    convention=OF_SQUARES,
    note="With a number in place of the largest norm of an epoch over all orders, as in Han and Xie 2024. For uniform "
    "independent draws the bound of Gower and Richtarik is smaller.",
    check=compared(
        lambda bound: error_at_most(_from_data),
        "E|w_k - w*|^2 <= {} (reshuffled, k >= 1)",
        epochs,
        all_of(small(LARGEST), _REGRESSION),
        "error",
    ),
)
_LAST = ((1 + root(number(27) / 16)) ** 2 * S / (2 * T * _growth(K / T - 1))).where(_GAP_IS)
_NOTE = "The bound here:single-pass on the last epoch, from where the epochs before have ended; all tasks were seen."
_whole_epochs = partial(_epochs, range=Range(1, every="T"), note=_NOTE)
_whole_epochs("loss", _LAST, check=expected(epochs, f"E L(w_k) <= {{}} ({_WORDS})"))
_whole_epochs("forgetting", _LAST, check=expected(epochs, f"E F(k) <= {{}} ({_WORDS})"))


# On average -----------------------------------------------------------------------------------------------------------

_ON_AVERAGE = (1 + root(number(27) / 8)) ** 2 * S / (2 * K)


def _few_epochs(rng: np.random.Generator, index: int) -> Instance:
    case = epochs(rng, index)
    return replace(case, k=min(case.k, 8 * case.tasks.num_tasks))


@declare_claim(
    label="here:epochs",
    part="mean of epochs",
    statement=f"the mean of E L over the ends of all epochs <= {_ON_AVERAGE.text} ({_WORDS})",
    source="proved in docs/one-over-k.md (here:epochs)",
    title="reshuffled epochs at rate 1/k on average",
    status="proved here",
    note="At most 4.03 S/k for all tasks; of the last epoch alone no rate is proved that holds for all tasks.",
    draw=_few_epochs,
    missing=all_of(_REGRESSION, _whole),
)
def _(instance: Instance) -> Sides:
    numbers, setting, tasks = Numbers(instance), setting_of(instance), instance.tasks.num_tasks
    ends = [numbers.loss(end) for end in range(tasks, instance.k + 1, tasks)]
    right = _ON_AVERAGE.compute(setting, instance.k)
    return Sides(sum(ends) / len(ends), right, numbers.doubt + ROUNDING * setting.scale, how=numbers.how)
