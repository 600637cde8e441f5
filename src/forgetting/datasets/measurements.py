"""Tasks from measurements: patients by age, which scikit-learn brings, and simulated sensors that drift."""

from __future__ import annotations

from typing import Literal

import numpy as np

from forgetting.core.arrays import Array, Seed, as_count, as_number, as_word, seed_from
from forgetting.core.memory import require_memory
from forgetting.core.text import nearest
from forgetting.datasets.splitting import SHARE, Part, part_of
from forgetting.errors import InvalidInputError
from forgetting.tasks import RegressionTasks


def diabetes(
    bins: int = 10, by: str = "age", part: Part = "all", share: float = SHARE, seed: Seed = 0
) -> RegressionTasks:
    """442 diabetes patients in bins of one feature, by default ten bins of age: does a model forget the young?

    The data are those of Efron, Hastie, Johnstone and Tibshirani (Least angle regression, Annals of Statistics, 2004),
    as scikit-learn brings them: ten features (age, sex, bmi, bp, s1 to s6) that are centred and have length 1 over all
    patients, and y, the progression of the disease one year later, from 25 to 346. y is neither centred nor scaled, so
    that an intercept matters: no w without one brings the loss below 89 % of that at w = 0, and with one the best w
    has 10 %.

    Patients are sorted by the feature and cut into bins of equal count (they differ by one patient at most; patients of
    the same age may be in two bins); the first bin has the smallest values. All ten features are in X, also that of the
    bins. Names say the range of the feature in its own units.

    Args:
        bins: how many tasks.
        by: the feature that the bins are of.
        part: "train" or "test" for a split of each task, "all" for all rows; see `hold_out`.
        share: of the rows of each task that are test data.
        seed: of the split.

    >>> tasks = diabetes()
    >>> tasks, tasks.num_rows.tolist()
    (RegressionTasks(T=10, d=10, rows=442), [45, 45, 44, 44, 44, 44, 44, 44, 44, 44])
    >>> tasks.names[:2]
    ('age 19 to 30', 'age 30 to 36')
    >>> floors = []
    >>> for ready in (tasks, tasks.prepared(intercept=True)):
    ...     X, y = (np.concatenate(rows) for rows in zip(*map(ready.task, range(10))))
    ...     w = np.linalg.lstsq(X, y)[0]
    ...     floors.append(round(100 * ready.loss(w) / ready.loss(0 * w)))
    >>> floors
    [89, 10]
    """
    from sklearn.datasets import load_diabetes

    loaded, units = load_diabetes(), load_diabetes(scaled=False)
    if not isinstance(by, str) or by not in loaded.feature_names:
        raise InvalidInputError(f"by: no feature {by!r:.60}{nearest(by, loaded.feature_names)}")
    values = units.data[:, loaded.feature_names.index(by)]
    count = as_count(bins, "bins", least=1)
    distinct = len(np.unique(values))
    if count > distinct:
        raise InvalidInputError(f"bins = {count}, but {by!r} has {distinct} different values; choose fewer bins")
    members = np.array_split(np.argsort(values, kind="stable"), count)
    names = [f"{by} {values[rows[0]]:g} to {values[rows[-1]]:g}" for rows in members]
    tasks = RegressionTasks(
        [loaded.data[rows] for rows in members], [loaded.target[rows] for rows in members], names=names
    )
    return part_of(tasks, part, share, seed)


def sensor_drift(
    T: int = 10,
    n: int = 200,
    d: int = 16,
    outputs: int = 1,
    drift: float = 0.1,
    noise: float = 0.02,
    response: Literal["linear", "power"] = "linear",
    seed: Seed = 0,
    part: Part = "all",
    share: float = SHARE,
) -> RegressionTasks:
    """Concentrations of gases from an array of d sensors whose gains and offsets drift from session to session.

    In session t the reading of sensor j for concentrations c (uniform in [0, 1], independent for each gas) is

        x_j = a_tj sum_i s_ij c_i^b_ij + o_tj + noise e,

    with sensitivities s_ij uniform in [0.5, 1.5] / outputs, e standard normal, and exponents b_ij = 1 for the "linear"
    response, or uniform in [0.3, 0.9] for the "power" response, which is that of metal-oxide sensors (Yamazoe and
    Shimanoe 2008). Gains a_t = exp(g_t) and offsets o_t walk at random: g_0 = 0, o_0 is normal of deviation 0.5, and
    each session adds normal numbers of deviation `drift` to both. y is c, one column for each gas: it is to be read off
    the sensors, and each session is a task.

    The defaults follow the ten batches of 16 metal-oxide sensors that Vergara et al. (Chemical gas sensor drift
    compensation using classifier ensembles, Sensors and Actuators B, 2012) measured over three years; the numbers are
    generated, not measured. Without drift and noise one w with an intercept solves all sessions, if the
    response is linear and d >= outputs.

    Args:
        T, n, d: the numbers of sessions, of measurements in each, and of sensors.
        outputs: the number of gases; y of a task has the shape (n,) for one, and (n, outputs) for several.
        drift: how far gains (on a log scale) and offsets move from a session to the next.
        noise: the standard deviation of a reading.
        response: "linear" or "power".
        seed: decides all random numbers, and the split.
        part: "train" or "test" for a split of each session, "all" for all rows; see `hold_out`.
        share: of the rows of each session that are test data.

    >>> tasks = sensor_drift()
    >>> tasks, tasks.names[:2]
    (RegressionTasks(T=10, d=16, rows=2000), ('session 0', 'session 1'))
    >>> sensor_drift(part="train").num_rows[0], sensor_drift(part="test").num_rows[0]
    (np.int64(150), np.int64(50))
    """
    number = seed_from(seed)
    matrices, labels = sessions(T, n, d, outputs, drift, noise, response, number)
    targets = [y[:, 0] for y in labels] if labels[0].shape[1] == 1 else labels
    tasks = RegressionTasks(matrices, targets, names=[f"session {t}" for t in range(len(matrices))])
    return part_of(tasks, part, share, number)


def sessions(
    T: int, n: int, d: int, outputs: int, drift: float, noise: float, response: str, seed: int
) -> tuple[list[Array], list[Array]]:
    """The readings (n, d) and the concentrations (n, outputs) of every session; see `sensor_drift`.

    >>> readings, gases = sessions(2, 5, 3, 2, 0.1, 0.0, "power", seed=0)
    >>> readings[1].shape, gases[1].shape
    ((5, 3), (5, 2))
    """
    counts = {"T": T, "n": n, "d": d, "outputs": outputs}
    T, n, d, outputs = (as_count(value, name, least=1) for name, value in counts.items())
    step, sigma = as_number(drift, "drift", least=0), as_number(noise, "noise", least=0)
    as_word(response, ("linear", "power"), "response")
    require_memory(24.0 * T * n * (d + outputs), f"{T} sessions of {n} rows with {d} sensors", "choose fewer")
    rng = np.random.default_rng(seed)
    sensitivity = rng.uniform(0.5, 1.5, (outputs, d)) / outputs
    exponents = rng.uniform(0.3, 0.9, (outputs, d)) if response == "power" else np.ones((outputs, d))
    log_gain, offset = np.zeros(d), 0.5 * rng.standard_normal(d)
    readings, gases = [], []
    for session in range(T):
        if session:
            log_gain = log_gain + step * rng.standard_normal(d)
            offset = offset + step * rng.standard_normal(d)
        gas = rng.random((n, outputs))
        signal = sum(sensitivity[i] * gas[:, i, None] ** exponents[i] for i in range(outputs))
        with np.errstate(over="ignore"):
            gain = np.exp(log_gain)
        if not np.isfinite(gain).all():
            raise InvalidInputError(f"drift = {step:g}: a gain overflows in session {session}; choose a smaller drift")
        readings.append(gain * signal + offset + sigma * rng.standard_normal((n, d)))
        gases.append(gas)
    return readings, gases
