"""The data sets: known figures, parts that split the rows, and the same numbers for the same seed."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_digits

import forgetting as fg
from forgetting.datasets import diabetes, digits, hold_out, image_tasks, sensor_drift
from forgetting.datasets.measurements import sessions
from forgetting.errors import InvalidInputError
from forgetting.report.provenance import problem_hash


def stacked(tasks):
    rows = [tasks.task(m) for m in range(tasks.num_tasks)]
    return np.concatenate([X for X, _ in rows]), np.concatenate([y for _, y in rows])


def floor(tasks):
    """The least loss of any w, relative to that of w = 0; rows are weighted as in the loss."""
    rows = [tasks.equations(m) for m in range(tasks.num_tasks)]
    X, y = (np.concatenate(part) for part in zip(*rows, strict=True))
    w = np.linalg.lstsq(X, y)[0]
    assert np.linalg.norm(X.T @ (X @ w - y)) < 1e-10 * np.linalg.norm(X) * np.linalg.norm(y)
    return tasks.loss(w) / tasks.loss(np.zeros(tasks.dim))


def check_parts(whole, train, test):
    """Every row of a task is either a training row or a test row."""
    assert train.names == test.names == whole.names
    for m in range(whole.num_tasks):
        parts = [
            {(*x, t) for x, t in zip(X.tolist(), y.tolist(), strict=True)}
            for X, y in (tasks.task(m) for tasks in (whole, train, test))
        ]
        assert parts[1] | parts[2] == parts[0]
        assert not parts[1] & parts[2]
        assert parts[2]


# ----------------------------------------------------------------------------------------------------------- diabetes


def test_on_ten_age_bins_an_intercept_lowers_the_floor_from_89_to_10_percent():
    """Ten bins of equal count. The sum of losses has the same floor for all bins; for means it depends on them."""
    tasks = diabetes()
    assert tasks.num_tasks == 10
    assert floor(tasks) == pytest.approx(0.8944, abs=5e-5)
    assert floor(tasks.prepared(intercept=True)) == pytest.approx(0.0984, abs=5e-5)
    means = tasks.prepared(loss="mean")
    assert floor(means) == pytest.approx(0.8932, abs=5e-5)
    assert floor(means.prepared(intercept=True)) == pytest.approx(0.0983, abs=5e-5)


def test_patients_are_all_there_once_in_order_of_age():
    tasks = diabetes(bins=7)
    X, y = stacked(tasks)
    assert (np.diff(X[:, 0]) >= 0).all()
    assert np.ptp(tasks.num_rows) <= 1
    loaded = load_diabetes()
    order = np.argsort(loaded.data[:, 0], kind="stable")
    np.testing.assert_array_equal(X, loaded.data[order])
    np.testing.assert_array_equal(y, loaded.target[order])
    assert (y.min(), y.max()) == (25, 346)
    assert diabetes(bins=2, by="sex").names == ("sex 1 to 1", "sex 1 to 2")
    assert (np.diff(stacked(diabetes(by="bmi"))[0][:, 2]) >= 0).all()


def test_parts_of_the_patients_split_every_bin():
    train, test = (diabetes(part=part, share=0.2, seed=3) for part in ("train", "test"))
    check_parts(diabetes(), train, test)
    assert test.num_rows.tolist() == [9] * 10
    assert problem_hash(diabetes(part="test", share=0.2, seed=3)) == problem_hash(test)
    assert problem_hash(diabetes(part="test", share=0.2, seed=4)) != problem_hash(test)


# ------------------------------------------------------------------------------------------------------------ sensors


def test_without_drift_and_noise_one_w_solves_all_sessions():
    assert sensor_drift(T=4, n=30, d=5, drift=0, noise=0).realizability.residual < 1e-12
    alone = sensor_drift(T=4, n=30, d=1, drift=0, noise=0)  # one sensor cannot tell its offset
    assert not alone.realizability.holds
    assert alone.prepared(intercept=True).realizability.residual < 1e-12
    assert not sensor_drift(T=4, n=30, d=5, drift=0.1, noise=0).prepared(intercept=True).realizability.holds
    readings, gases = sessions(4, 30, 5, 3, 0.0, 0.0, "linear", seed=0)
    X = np.column_stack([np.concatenate(readings), np.ones(120)])
    Y = np.concatenate(gases)
    assert np.abs(X @ np.linalg.lstsq(X, Y)[0] - Y).max() < 1e-12


def test_each_session_is_easy_and_drift_makes_them_disagree():
    floors = []
    for drift in (0.0, 0.1, 0.4):
        tasks = sensor_drift(T=6, n=80, d=8, drift=drift, seed=1).prepared(intercept=True)
        floors.append(floor(tasks))
        alone = [floor(tasks.with_data([X], [y], ["one"])) for X, y in (tasks.task(m) for m in range(6))]
        assert max(alone) < 0.003
    assert floors[0] < 0.003
    assert floors[1] > 3 * floors[0]
    assert floors[2] > 3 * floors[1]


def test_a_session_is_the_formula_in_the_docstring():
    quiet, gases = sessions(3, 40, 4, 2, 0.2, 0.0, "power", seed=5)
    rng = np.random.default_rng(5)
    s, b = rng.uniform(0.5, 1.5, (2, 4)) / 2, rng.uniform(0.3, 0.9, (2, 4))
    signals = [c[:, :1] ** b[0] * s[0] + c[:, 1:] ** b[1] * s[1] for c in gases]
    for t, (x, signal) in enumerate(zip(quiet, signals, strict=True)):
        for j in range(4):  # a gain and an offset for each sensor and session, and nothing else
            slope, start = np.polyfit(signal[:, j], x[:, j], 1)
            np.testing.assert_allclose(slope * signal[:, j] + start, x[:, j], atol=1e-12)
            assert slope == pytest.approx(1.0, abs=1e-10) if t == 0 else abs(np.log(slope)) < 1.5
    assert all(((c >= 0) & (c <= 1)).all() for c in gases)


def test_drift_grows_like_the_root_of_the_number_of_sessions():
    """Offsets move by steps of deviation `drift`: checked on 4000 sensors with a gas that is nearly constant in sum."""
    d, drift = 4000, 0.3
    readings, gases = sessions(5, 3, d, 1, drift, 0.0, "linear", seed=2)
    offsets, logs = [], []
    for x, c in zip(readings, gases, strict=True):
        slope = (x[1] - x[0]) / (c[1] - c[0])  # gain times sensitivity
        offsets.append(x[0] - slope * c[0])
        logs.append(np.log(slope))
    for t in range(1, 5):
        for walk in (offsets, logs):
            assert np.std(walk[t] - walk[0]) == pytest.approx(drift * np.sqrt(t), rel=0.08)
    assert np.std(offsets[0]) == pytest.approx(0.5, rel=0.08)


def test_the_noise_is_that_of_a_reading():
    loud, quiet = (sessions(2, 500, 6, 1, 0.1, noise, "linear", seed=4)[0] for noise in (0.3, 0.0))
    for one, two in zip(loud, quiet, strict=True):
        assert np.std(one - two) == pytest.approx(0.3, rel=0.05)


def test_parts_of_the_sensors_split_every_session():
    check_parts(sensor_drift(T=3, n=20), *(sensor_drift(T=3, n=20, part=part) for part in ("train", "test")))
    assert problem_hash(sensor_drift(seed=1)) == problem_hash(sensor_drift(seed=1)) != problem_hash(sensor_drift())
    assert sensor_drift(T=2, n=9, d=3, response="power").num_rows.tolist() == [9, 9]


# ------------------------------------------------------------------------------------------------------------- images


@pytest.mark.parametrize("kind", ["split", "permuted", "rotated"])
def test_test_images_are_held_out_of_every_task_and_changed_like_the_others(kind):
    """Numbered pixels and images, so that both can be told after any permutation."""
    count = 40
    images = np.arange(count)[:, None, None] * 1000.0 + np.arange(16.0).reshape(4, 4)
    labels = np.arange(count) % 10
    whole, train, test = (
        image_tasks(images, labels, kind, 3, part=part, share=0.3, seed=1) for part in ("all", "train", "test")
    )
    if kind != "rotated":
        check_parts(whole, train, test)
    if kind == "permuted":
        for m in range(3):
            pixels = [np.unique(tasks.task(m)[0] % 1000, axis=0) for tasks in (whole, train, test)]
            assert len(pixels[0]) == 1
            np.testing.assert_array_equal(pixels[1], pixels[0])
            np.testing.assert_array_equal(pixels[2], pixels[0])
        seen = [set((tasks.task(m)[0].min(axis=1) // 1000).tolist()) for tasks in (train, test) for m in range(3)]
        assert seen[0] == seen[1] == seen[2]
        assert seen[3] == seen[4] == seen[5]
        assert not seen[0] & seen[3]
        few = image_tasks(images, labels, kind, 3, rows=5, part="test", share=0.3, seed=1)
        np.testing.assert_array_equal(np.unique(few.task(2)[0] % 1000, axis=0), pixels[0])
    if kind != "split":
        assert test.num_rows.tolist() == [12] * 3


def test_all_digits_are_those_of_scikit_learn():
    loaded = load_digits()
    tasks = digits("split")
    members = np.isin(loaded.target, (4, 5))
    np.testing.assert_array_equal(tasks.task(2)[0], loaded.data[members] / 16)
    np.testing.assert_array_equal(tasks.task(2)[1], np.where(loaded.target[members] == 5, 1.0, -1.0))
    check_parts(tasks, digits("split", part="train"), digits("split", part="test"))


# ----------------------------------------------------------------------------------------------------------- any tasks


def test_rows_of_any_tasks_can_be_held_out():
    tasks = fg.families.gaussian(T=4, d=30, rank=9, seed=0)
    train, test = hold_out(tasks, 0.3, seed=2)
    check_parts(tasks, train, test)
    assert test.num_rows.tolist() == [3] * 4
    clones = fg.families.repeated(tasks, 2)
    assert [part.geometry.num_distinct for part in hold_out(clones)] == [4, 4]
    assert [part.num_rows.tolist() for part in hold_out(fg.RegressionTasks([np.eye(2)], [[1, 2]]), 0.01)] == [[1], [1]]


def test_test_data_are_prepared_by_the_training_rows_alone():
    train, test = hold_out(sensor_drift(T=3, n=40), 0.5)
    made = train.prepared(standardize="first", intercept=True)
    X, _ = test.task(1)
    first = train.task(0)[0]
    expected = (X - first.mean(axis=0)) / first.std(axis=0)
    np.testing.assert_allclose(made.preparation.apply_to(test).task(1)[0][:, :-1], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: diabetes(by="weight"), "by: no feature 'weight'; there are age, sex, bmi"),
        (lambda: diabetes(bins=0), "bins must be at least 1, got 0"),
        (lambda: diabetes(bins=3, by="sex"), "bins = 3, but 'sex' has 2 different values"),
        (lambda: diabetes(part="tests"), "part must be 'all', 'train' or 'test', got 'tests'"),
        (lambda: diabetes(part="test", share=1.0), "share must be less than 1, got 1.0"),
        (lambda: digits(part="valid"), "part must be 'all', 'train' or 'test', got 'valid'"),
        (lambda: sensor_drift(T=0), "T must be at least 1, got 0"),
        (lambda: sensor_drift(outputs=0), "outputs must be at least 1, got 0"),
        (lambda: sensor_drift(noise=-1), "noise must be at least 0, got -1"),
        (lambda: sensor_drift(response="log"), "response must be 'linear' or 'power', got 'log'"),
        (lambda: hold_out(fg.families.two_lines(0.5)), r"task 0 \('0'\) has one row, of which none can be held out"),
    ],
)
def test_what_makes_no_sense_is_refused(call, words):
    with pytest.raises(InvalidInputError, match=words):
        call()


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 3)])
def test_images_without_pixels_are_refused(shape):
    with pytest.raises(InvalidInputError, match="images: at least one image of at least one pixel"):
        image_tasks(np.zeros(shape), np.zeros(shape[0], dtype=int))
