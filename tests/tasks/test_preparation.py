"""Prepared features: equal to hand computations, the same for test rows, kept in files and pickles."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import forgetting as fg
from forgetting.auditing import RandomFeatures as AuditingRandomFeatures
from forgetting.auditing import apply_features, subsample_rows
from forgetting.errors import InvalidInputError, NotSupportedError, ProblemFileError
from forgetting.files.arrays import read_arrays, write_arrays
from forgetting.report import Settings, build_report
from forgetting.report.provenance import problem_hash
from forgetting.tasks import Preparation, RandomFeatures, prepare

RNG = np.random.default_rng(7)
XS = [RNG.normal([3.0, -1.0, 0.5], [1.0, 2.0, 0.1], (n, 3)) for n in (6, 4, 5)]
YS = [RNG.standard_normal(len(X)) for X in XS]
TASKS = fg.RegressionTasks(XS, YS, names=["a", "b", "c"], rtol=0.1)
NEW = RNG.standard_normal((4, 3))
STACKED = np.concatenate(XS)


def double(X):
    return np.hstack([X, X**2])


def matrices(tasks):
    return [tasks.task(m)[0] for m in range(tasks.num_tasks)]


def best(tasks):
    """The least-squares solution of all rows."""
    rows = [tasks.task(m) for m in range(tasks.num_tasks)]
    return np.linalg.lstsq(np.concatenate([X for X, _ in rows]), np.concatenate([y for _, y in rows]))[0]


# -------------------------------------------------------------------------------------------------- hand computations


def test_an_intercept_is_a_last_column_of_ones_and_all_else_stays():
    made = TASKS.prepared(intercept=True)
    for m, X in enumerate(XS):
        np.testing.assert_array_equal(made.task(m)[0], np.column_stack([X, np.ones(len(X))]))
        np.testing.assert_array_equal(made.task(m)[1], YS[m])
    assert (made.names, made.rtol, made.loss_kind) == (("a", "b", "c"), 0.1, "sum")
    assert TASKS.preparation is None
    assert made.preparation.intercept


@pytest.mark.parametrize(("which", "rows"), [("all", STACKED), ("first", XS[0])])
def test_features_are_standardized_by_the_rows_of_all_tasks_or_of_the_first(which, rows):
    made = TASKS.prepared(standardize=which)
    for X, got in zip(XS, matrices(made), strict=True):
        np.testing.assert_allclose(got, (X - rows.mean(axis=0)) / rows.std(axis=0), rtol=1e-12, atol=1e-13)
    seen = np.concatenate(matrices(made)) if which == "all" else made.task(0)[0]
    np.testing.assert_allclose(seen.mean(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(seen.std(axis=0), 1, rtol=1e-13)


def test_the_first_task_alone_decides_if_it_is_asked_for():
    changed = fg.RegressionTasks([XS[0], 100 * XS[1] + 5, XS[2]], YS)
    one, two = (tasks.prepared(standardize="first").preparation for tasks in (TASKS, changed))
    np.testing.assert_array_equal(one.mean, two.mean)
    np.testing.assert_array_equal(one.deviation, two.deviation)
    assert not np.allclose(TASKS.prepared(standardize="all").preparation.mean, one.mean)


def test_features_come_first_then_standardizing_then_the_intercept():
    made = TASKS.prepared(features=double, standardize="all", intercept=True)
    rows = double(STACKED)
    expected = (double(XS[1]) - rows.mean(axis=0)) / rows.std(axis=0)
    np.testing.assert_allclose(made.task(1)[0], np.column_stack([expected, np.ones(4)]), rtol=1e-11, atol=1e-12)
    assert made.preparation.in_words == (
        "the feature map double, features standardized by all tasks, an intercept as the last column"
    )


def test_a_task_that_is_there_twice_counts_twice_and_stays_one_task():
    twice = fg.RegressionTasks([XS[0], XS[1], XS[0]], [YS[0], YS[1], YS[0]]).prepared(standardize="all", intercept=True)
    rows = np.concatenate([XS[0], XS[1], XS[0]])
    np.testing.assert_allclose(twice.preparation.mean, rows.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(twice.preparation.deviation, rows.std(axis=0), rtol=1e-13)
    assert twice.geometry.num_distinct == 2
    assert fg.families.repeated(twice, 3).preparation is twice.preparation


def test_random_features_are_those_of_their_seed_on_any_rows():
    for lift in (RandomFeatures(7, seed=5), RandomFeatures(7, "fourier", scale=2.0, seed=5)):
        rng = np.random.default_rng(5)
        mixed = NEW @ rng.normal(scale=1 / lift.scale, size=(3, 7))
        bent = np.maximum(mixed, 0) if lift.kind == "relu" else np.cos(mixed + rng.uniform(0, 2 * np.pi, 7))
        made = TASKS.prepared(features=lift)
        np.testing.assert_allclose(made.preparation.apply(NEW), np.sqrt(2 / 7) * bent, rtol=1e-13, atol=1e-15)
        np.testing.assert_array_equal(made.task(1)[0], lift(XS[1]))
    numbered = TASKS.prepared(features=7, seed=5).preparation
    assert numbered.features == RandomFeatures(7, seed=5)
    assert numbered.in_words == "7 random relu features (scale 1, seed 5)"
    assert AuditingRandomFeatures is RandomFeatures
    np.testing.assert_array_equal(apply_features(TASKS, numbered.features).task(2)[0], numbered.features(XS[2]))


def test_a_transformer_does_as_well_as_a_function():
    from sklearn.preprocessing import PolynomialFeatures

    lift = PolynomialFeatures(2).fit(STACKED)
    made = TASKS.prepared(features=lift)
    np.testing.assert_array_equal(made.task(1)[0], lift.transform(XS[1]))
    np.testing.assert_array_equal(made.preparation.apply(NEW), lift.transform(NEW))
    assert "PolynomialFeatures" in made.preparation.in_words


def test_the_loss_can_be_a_mean():
    made = TASKS.prepared(intercept=True, loss="mean")
    assert made.loss_kind == "mean"
    np.testing.assert_allclose(made.task_losses(np.zeros(4)), [0.5 * np.mean(y**2) for y in YS])
    alone = TASKS.prepared(loss="mean")
    assert (alone.loss_kind, alone.preparation, alone.dim) == ("mean", None, 3)
    assert TASKS.prepared() is TASKS


# ------------------------------------------------------------------------------------------------------------ numbers


def test_large_offsets_cost_no_digits():
    offset = 1.7e9  # seconds since 1970, as whole numbers, so that the data are exact
    seconds = RNG.integers(0, 1000, (50, 1)).astype(float)
    far, near = (
        fg.RegressionTasks([X[:20], X[20:]], [X[:20, 0], X[20:, 0]]).prepared(standardize="all")
        for X in (seconds + offset, seconds)
    )
    for X, Y in zip(matrices(far), matrices(near), strict=True):
        np.testing.assert_allclose(X, Y, rtol=1e-12, atol=1e-14)
    exact = [Fraction(int(value)) for value in seconds[:, 0]]
    mean = sum(exact) / 50
    variance = float(sum((value - mean) ** 2 for value in exact) / 50)
    np.testing.assert_allclose(far.preparation.deviation, np.sqrt(variance), rtol=1e-14)
    done = far.preparation
    assert abs(Fraction(done.mean[0]) + Fraction(done.rest[0]) - mean - int(offset)) < 1e-12


def test_tiny_and_huge_features_are_standardized_alike():
    made = fg.RegressionTasks([STACKED * [1e-170, 1e140, 1.0]], [np.concatenate(YS)]).prepared(standardize="all")
    usual = fg.RegressionTasks([STACKED], [np.concatenate(YS)]).prepared(standardize="all")
    np.testing.assert_allclose(made.task(0)[0], usual.task(0)[0], rtol=1e-10, atol=1e-12)


def test_constant_features_become_0_and_are_named():
    X = [np.column_stack([x, np.full(len(x), 0.1), np.full(len(x), 0.1 + 0.2)]) for x in XS]
    X[1][0, 4] = 0.3  # one unit in the last place away: rounding, not a feature
    made = fg.RegressionTasks(X, YS).prepared(standardize="all")
    for got in matrices(made):
        assert (got[:, 3:] == 0).all()
        assert got[:, :3].all()
    assert made.notes[-1] == "2 of 5 columns are constant and 0 after standardizing: 3, 4"
    assert (made.preparation.apply(np.ones((2, 5)))[:, 3:] == 0).all()
    first = [XS[0] * [1, 0, 1], *XS[1:]]
    made = fg.RegressionTasks(first, YS).prepared(standardize="first", intercept=True)
    assert made.notes[-1] == "one column is constant in the first task and 0 after standardizing: 1"
    assert (made.task(2)[0][:, 1] == 0).all()


@pytest.mark.parametrize("which", ["all", "first"])
def test_shifted_and_scaled_data_give_the_same_predictions(which):
    """Intercept and standardizing make the learner blind to units: all runs agree in what they predict."""
    units = fg.RegressionTasks([X * [10.0, 0.01, -3.0] + [5.0, -20.0, 300.0] for X in XS], YS)
    runs = []
    for tasks, new in ((TASKS, NEW), (units, NEW * [10.0, 0.01, -3.0] + [5.0, -20.0, 300.0])):
        made = tasks.prepared(standardize=which, intercept=True)
        for scheme in ("kaczmarz", "ridge lam=0.5"):
            run = fg.run(made, "cyclic", 5, scheme)
            runs.append(made.preparation.apply(new) @ run.iterates[-1])
    np.testing.assert_allclose(runs[2], runs[0], rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(runs[3], runs[1], rtol=1e-7, atol=1e-8)
    raw = [fg.run(tasks, "cyclic", 5).iterates[-1] for tasks in (TASKS, units)]
    assert not np.allclose(NEW @ raw[0], (NEW * [10.0, 0.01, -3.0] + [5.0, -20.0, 300.0]) @ raw[1], rtol=1e-2)


# ---------------------------------------------------------------------------------------------------------- test rows


def test_other_rows_get_the_means_and_deviations_of_the_tasks():
    made = TASKS.prepared(standardize="all", intercept=True)
    for X, got in zip(XS, matrices(made), strict=True):
        np.testing.assert_array_equal(made.preparation.apply(X), got)
    expected = (NEW - STACKED.mean(axis=0)) / STACKED.std(axis=0)
    np.testing.assert_allclose(
        made.preparation.apply(NEW.tolist()), np.column_stack([expected, np.ones(4)]), rtol=1e-10
    )
    test = made.preparation.apply_to(fg.RegressionTasks([NEW, XS[0]], [np.zeros(4), YS[0]], loss="mean"))
    np.testing.assert_array_equal(test.task(0)[0], made.preparation.apply(NEW))
    assert (test.loss_kind, test.preparation) == ("mean", made.preparation)
    with pytest.raises(InvalidInputError, match="these tasks are prepared already: features standardized by all tasks"):
        made.preparation.apply_to(test)


def test_tasks_may_be_prepared_again():
    once = TASKS.prepared(intercept=True)
    twice = once.prepared(features=RandomFeatures(5, "fourier"), standardize="first")
    np.testing.assert_array_equal(twice.preparation.apply(XS[1]), twice.task(1)[0])
    lifted = [RandomFeatures(5, "fourier")(np.column_stack([X, np.ones(len(X))])) for X in XS]
    np.testing.assert_allclose(
        twice.task(2)[0], (lifted[2] - lifted[0].mean(axis=0)) / lifted[0].std(axis=0), rtol=1e-9, atol=1e-12
    )
    assert twice.preparation.in_words == (
        "an intercept as the last column; then 5 random fourier features (scale 1, seed 0), "
        "features standardized by the first task"
    )
    with pytest.raises(InvalidInputError, match=r"X has 5 columns, but the tasks had 3 .*may be prepared already"):
        twice.preparation.apply(twice.task(0)[0])
    for _ in range(6):
        twice = twice.prepared(intercept=True)
    with pytest.raises(InvalidInputError, match="prepared more than 8 times"):
        twice.prepared(intercept=True)
    assert fg.audit(once).dim == 4  # an audit tries random features of its own


def test_fewer_rows_keep_the_preparation():
    made = TASKS.prepared(standardize="all")
    assert subsample_rows(made, 2).preparation is made.preparation


def test_sparse_rows_stay_sparse_with_an_intercept():
    thin = fg.RegressionTasks([sp.csr_array(X * (X > 0)) for X in XS], YS)
    made = thin.prepared(intercept=True)
    for m, X in enumerate(XS):
        assert sp.issparse(made.task(m)[0])
        np.testing.assert_array_equal(made.task(m)[0].toarray(), np.column_stack([X * (X > 0), np.ones(len(X))]))
    assert sp.issparse(made.preparation.apply(sp.csr_array(NEW)))
    lifted = thin.prepared(features=6, standardize="all")  # random features are dense
    np.testing.assert_allclose(np.concatenate(matrices(lifted)).mean(axis=0), 0, atol=1e-14)
    with pytest.raises(InvalidInputError, match="task 0: X is sparse, and would be dense after standardizing"):
        thin.prepared(standardize="all")
    with pytest.raises(InvalidInputError, match="rows to prepare: X is sparse"):
        TASKS.prepared(standardize="all").preparation.apply(sp.csr_array(NEW))


# ------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"standardize": "al"}, "standardize: no 'al'; did you mean 'all'"),
        ({"standardize": True}, "standardize: no True; expected 'all', 'first' or None"),
        ({"standardize": np.zeros(2)}, "standardize: no array"),
        ({"features": 0}, "the number of features must be at least 1, got 0"),
        ({"features": 2.5}, "the number of features must be a whole number"),
        ({"features": True}, "expected a function of X or a transformer, or a number of random features, got True"),
        ({"features": "relu"}, "expected a function of X or a transformer"),
        ({"intercept": 1}, "intercept must be True or False, got 1"),
        ({"loss": "median"}, "loss must be 'sum' or 'mean', got 'median'"),
        ({"features": lambda X: X[:2]}, "task 0: the feature map makes 2 rows of 6"),
        ({"features": lambda X: X[:, : 1 + (len(X) > 4)]}, "task 1: the feature map gives 1 columns, but 2 for task 0"),
        ({"features": lambda X: X / 0.0 * 0.0}, "features of task 0, X: entry at row 0, column 0 is nan"),
    ],
)
@pytest.mark.filterwarnings("ignore:(divide|invalid)")
def test_what_cannot_be_done_is_refused(options, words):
    with pytest.raises(InvalidInputError, match=words):
        TASKS.prepared(**options)


def test_other_columns_are_refused():
    with pytest.raises(InvalidInputError, match=r"X has 2 columns, but the tasks had 3 before .*an intercept"):
        TASKS.prepared(intercept=True).preparation.apply(NEW[:, :2])
    with pytest.raises(InvalidInputError, match=r"rows to prepare, X: expected a matrix of shape \(rows, d\)"):
        TASKS.prepared(intercept=True).preparation.apply(NEW[0])
    with pytest.raises(InvalidInputError, match="X has 2 columns, but the tasks had 3"):
        TASKS.prepared(intercept=True).preparation.apply_to(fg.families.two_lines(0.5))


def test_nothing_to_standardize_by_is_refused():
    one_row = fg.RegressionTasks([XS[0][:1], XS[1]], [[1.0], YS[1]], names=["start", "b"])
    with pytest.raises(InvalidInputError, match=r"the first task, 'start', which has 1 row, .*use standardize='all'"):
        one_row.prepared(standardize="first")
    with pytest.raises(InvalidInputError, match="every feature is constant"):
        fg.RegressionTasks([[[1.0]], [[1.0]]], [[1.0], [2.0]]).prepared(standardize="all")


def test_tasks_without_data_cannot_be_prepared():
    for problem in (fg.KernelTasks(np.eye(2), [1.0, 2.0], [0, 1]), fg.families.separable(T=2, d=3, n=4, margin=0.1)):
        with pytest.raises(NotSupportedError, match="needs the data of RegressionTasks, not "):
            prepare(problem, intercept=True)
        with pytest.raises(NotSupportedError, match="needs the data of RegressionTasks, not "):
            fg.load(problem, intercept=True)


# ------------------------------------------------------------------------------------------------- files and pickles

MADE = {
    "intercept": {"intercept": True},
    "all": {"standardize": "all"},
    "first with intercept": {"standardize": "first", "intercept": True},
    "relu": {"features": 4},
    "everything": {
        "features": RandomFeatures(9, "fourier", 0.3, seed=2**70),
        "standardize": "all",
        "intercept": True,
        "loss": "mean",
    },
}


def same(one: Preparation, two: Preparation) -> None:
    for left, right in zip(one.steps, two.steps, strict=True):
        assert (left.columns, left.width, left.features) == (right.columns, right.width, right.features)
        assert (left.standardize, left.intercept) == (right.standardize, right.intercept)
    np.testing.assert_array_equal(one.apply(NEW), two.apply(NEW))
    assert one.in_words == two.in_words


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("name", MADE)
def test_files_pickles_and_copies_keep_the_preparation(name, again, tmp_path):
    made = TASKS.prepared(**MADE[name])
    if again:
        made = made.prepared(standardize="all", intercept=True)
    made.save(tmp_path / "made.npz")
    loaded = fg.RegressionTasks.load(tmp_path / "made.npz")
    assert loaded.notes == made.notes
    for other in (loaded, fg.load(tmp_path / "made.npz"), pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        same(other.preparation, made.preparation)
        assert problem_hash(other) == problem_hash(made)
        for step in other.preparation.steps:
            assert step.mean is None or not step.mean.flags.writeable
    fg.run(made, "cyclic", 3).save(tmp_path / "run.npz")
    same(fg.Trajectory.load(tmp_path / "run.npz").problem.preparation, made.preparation)


def test_of_a_function_the_name_is_kept(tmp_path):
    made = TASKS.prepared(features=lambda X: X[:, :2], intercept=True)
    made.save(tmp_path / "made.npz")
    for other in (fg.RegressionTasks.load(tmp_path / "made.npz"), pickle.loads(pickle.dumps(made))):
        assert "the feature map" in other.preparation.in_words
        assert other.preparation.in_words == made.preparation.in_words
        np.testing.assert_array_equal(other.task(0)[0], made.task(0)[0])
        with pytest.raises(NotSupportedError, match=r"lambda.* is a function, which is not saved with tasks"):
            other.preparation.apply(NEW)
    known = pickle.loads(pickle.dumps(TASKS.prepared(features=double)))
    np.testing.assert_array_equal(known.preparation.apply(NEW), double(NEW))


def test_plain_tasks_have_no_entries_about_it(tmp_path):
    TASKS.save(tmp_path / "plain.npz")
    assert not [name for name in read_arrays(tmp_path / "plain.npz") if "preparation" in name]
    assert fg.RegressionTasks.load(tmp_path / "plain.npz").preparation is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"preparation/0/columns": np.array(7)}, "a preparation makes 3 columns of 7, but has no feature map"),
        ({"preparation/0/columns": np.array(-3)}, "is -3, but must be at least 1"),
        ({"preparation/0/width": np.array(1.5)}, "should be whole numbers"),
        ({"preparation/0/intercept": np.array(False)}, "gives 3 columns, but the tasks have 4"),
        ({"preparation/0/intercept": np.array("yes")}, "should be truth values"),
        ({"preparation/0/mean": np.zeros(2)}, r"mean: expected 3 finite numbers, got shape \(2,\)"),
        ({"preparation/0/mean": np.full(3, np.nan)}, "mean: expected 3 finite numbers"),
        ({"preparation/0/deviation": np.array([1.0, -1.0, 1.0])}, "deviation: at least 0, got -1"),
        ({"preparation/0/rest": None}, "no entry 'preparation/0/rest'"),
        ({"preparation/0/standardize": np.array("some")}, "standardize: no 'some'"),
        ({"preparation/0/standardize": None}, "unknown entry 'preparation/0/deviation'"),
        ({"preparation/0/whiten": np.array(True)}, "unknown entry 'preparation/0/whiten'; a newer version"),
        ({"preparation/2/columns": np.array(3)}, "unknown entry 'preparation/2/columns'"),
        ({"preparation/0/features": np.array("wavelets")}, "is 'wavelets', but should be 'random' or 'function'"),
        ({"preparation/0/features": np.array("random")}, "no entry 'preparation/0/seed'"),
        (
            {"preparation/0/features": np.array("random"), "preparation/0/seed": np.array("-1")},
            "is '-1', but should be a whole number",
        ),
        (
            {
                "preparation/1/columns": np.array(9),
                "preparation/1/width": np.array(9),
                "preparation/1/intercept": np.array(False),
            },
            "a preparation takes 9 columns, but the one before it gives 4",
        ),
    ],
)
def test_damaged_entries_are_refused_with_what_is_wrong(change, words, tmp_path):
    path = tmp_path / "made.npz"
    TASKS.prepared(standardize="all", intercept=True).save(path)
    arrays = {**read_arrays(path), **change}
    write_arrays(path, {name: value for name, value in arrays.items() if value is not None})
    with pytest.raises(ProblemFileError, match=f"made.npz: damaged collection of regression tasks .*{words}"):
        fg.RegressionTasks.load(path)


# --------------------------------------------------------------------------------------------------------- provenance


def test_reports_say_what_was_done():
    made = TASKS.prepared(intercept=True, standardize="first")
    small = Settings(made, "mine", k=3, points=2, runs=5, sections=("plane",))
    assert build_report(small).meta["preparation"] == made.preparation.in_words
    plain = Settings(TASKS, "mine", k=3, points=2, runs=5, sections=("plane",))
    assert "preparation" not in build_report(plain).meta
    assert problem_hash(made) != problem_hash(TASKS)


def test_an_intercept_is_what_a_learner_needs_for_labels_far_from_0():
    lifted = fg.RegressionTasks(XS, [y + 100 for y in YS])
    with_ones = lifted.prepared(intercept=True)
    assert with_ones.loss(best(with_ones)) < 0.02 * lifted.loss(best(lifted))


def test_held_out_data_that_are_standardized_by_themselves_are_refused(tmp_path):
    rng = np.random.default_rng(5)
    tasks = fg.RegressionTasks([rng.standard_normal((4, 2)) for _ in range(2)], [rng.standard_normal(4)] * 2)
    other = fg.RegressionTasks([tasks.task(m)[0] + 5 for m in range(2)], [rng.standard_normal(4)] * 2)
    train = tasks.prepared(standardize="all")
    with pytest.raises(InvalidInputError, match="test: prepared otherwise than the tasks, by features standardized"):
        fg.expect(train, "cyclic", 2, test=other.prepared(standardize="all"), quantities="test_loss")
    done = train.preparation.apply_to(other)
    done.save(tmp_path / "test.npz")
    values = [
        float(fg.expect(train, "cyclic", 2, test=test, quantities="test_loss").values["test_loss"])
        for test in (other, done, fg.load(tmp_path / "test.npz"))
    ]
    assert values[1:] == pytest.approx(values[:1] * 2, rel=1e-12)
    ones = fg.expect(tasks.prepared(intercept=True), "cyclic", 2, test=other.prepared(intercept=True))
    assert np.isfinite(ones.loss)
