"""Instances on disk: the same numbers come back, and nothing else does."""

import os

import numpy as np
import pytest

import forgetting as fg
from forgetting.claims import Instance
from forgetting.errors import InvalidInputError, NotSupportedError, ProblemFileError

ORDERINGS = [
    None,
    fg.orderings.WithReplacement(),
    fg.orderings.WithReplacement([0.1, 0.2, 0.7]),
    fg.orderings.NormWeighted(),
    fg.orderings.WithoutReplacement(),
    fg.orderings.Cyclic(),
    fg.orderings.Reshuffled(),
    fg.orderings.Explicit([0, 1, 0]),
    fg.orderings.GreedyDistance(repeat=False),
]
SCHEMES = [
    None,
    fg.schemes.SGD(0.1 + 0.2, "loss"),
    fg.schemes.Kaczmarz(),
    fg.schemes.Ridge(1 / 3),
    fg.schemes.FiniteSteps(3, 0.1),
    fg.schemes.WeaklyRegularized(-1 / 7),
]


def there_and_back(case, folder):
    case.save(folder / "case.npz")
    return Instance.load(folder / "case.npz")


@pytest.mark.parametrize("ordering", ORDERINGS, ids=str)
@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_orderings_and_schemes_come_back(ordering, scheme, tmp_path):
    case = Instance(fg.families.gaussian(3, 4, 2), ordering, 3, scheme=scheme, w0=[0.1, 0.2, 0.3, 1 / 3])
    again = there_and_back(case, tmp_path)
    assert str(again.ordering) == str(ordering)
    assert str(again.scheme) == str(scheme)
    assert again.k == 3
    assert (again.w0 == case.w0).all()
    if isinstance(ordering, fg.orderings.WithReplacement) and ordering.p is not None:
        assert again.ordering.p == ordering.p  # normalising once more may move a last bit


def test_regression_tasks_come_back_bit_by_bit(tmp_path):
    tasks = fg.families.repeated(fg.families.gaussian(3, 4, 2, seed=5), 50)
    again = there_and_back(Instance(tasks, None, 1, extras={"A": np.eye(4) / 3, "gamma": 0.1, "task": 2}), tmp_path)
    assert again.problem.num_tasks == 150
    for task in range(150):
        for mine, other in zip(tasks.task(task), again.problem.task(task), strict=True):
            assert (mine == other).all()
    assert (again.extras["A"] == np.eye(4) / 3).all()
    assert again.extras["gamma"] == 0.1
    assert again.extras["task"] == 2
    assert isinstance(again.extras["task"], int)


def test_classification_tasks_come_back_bit_by_bit(tmp_path):
    tasks = fg.families.separable(3, 4, 5, 0.3, seed=2)
    again = there_and_back(Instance(tasks, fg.orderings.Cyclic(), 2), tmp_path).problem
    assert isinstance(again, fg.ClassificationTasks)
    for task in range(3):
        assert (again.signed_rows(task) == tasks.signed_rows(task)).all()


def test_convex_sets_come_back(tmp_path):
    sets = fg.ConvexSets(
        [
            fg.Halfspace([1.0, 2.0], 0.3),
            fg.Ball([0.1, 0.2], 1 / 3),
            fg.Affine([[1.0, 1.0]], [0.7]),
            fg.Box([-1.0, -2.0], [3.0, 4.0]),
            fg.Polyhedron([[1.0, 0.0], [0.0, 1.0]], [0.1, 0.2]),
            fg.Slab([1.0, 0.5], -1.0, 2.0),
            fg.Simplex(2, 1.5),
        ]
    )
    again = there_and_back(Instance(sets, None, 1), tmp_path).problem
    for w in ([3.0, -2.0], [-0.5, 0.1]):
        assert (again.distances(w) == sets.distances(w)).all()


def test_verdicts_are_the_same_after_a_round_trip(tmp_path):
    for claim in fg.claims.all():
        case = claim.settle(claim.draw(np.random.default_rng([1, 61]), 61))
        if claim.why_not(case) is None:
            before, after = claim.check(case), claim.check(there_and_back(case, tmp_path))
            assert (after.lhs, after.rhs) == (before.lhs, before.rhs), claim.key


def test_a_lemma_on_matrices_needs_no_problem(tmp_path):
    again = there_and_back(Instance(None, None, 2, extras={"A": [[1.0]]}), tmp_path)
    assert again.problem is None
    assert again.k == 2


def test_what_cannot_be_saved_says_so(tmp_path):
    custom = fg.ConvexSets([fg.CustomSet(lambda w: w, dim=2)])
    with pytest.raises(NotSupportedError, match="cannot be saved"):
        Instance(custom, None, 1).save(tmp_path / "case.npz")
    assert list(tmp_path.iterdir()) == []


def test_damaged_files_are_refused(tmp_path):
    case, path = Instance(fg.families.two_lines(0.5), fg.orderings.Cyclic(), 3), tmp_path / "case.npz"
    case.save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    for change in ({"format": np.array("other")}, {"ordering/class": np.array("Nobody")}, {"k": None}):
        kept = {name: value for name, value in (arrays | change).items() if value is not None}
        np.savez(path, **kept)
        with pytest.raises(ProblemFileError, match=r"case\.npz"):
            Instance.load(path)
    with pytest.raises(ProblemFileError, match="no such file"):
        Instance.load(tmp_path / "nothing.npz")
    np.savez(path, **(arrays | {"extras/evil": np.array([print], dtype=object)}))
    with pytest.raises(ProblemFileError, match="pickle"):
        Instance.load(path)


def test_a_save_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "case.npz"
    Instance(fg.families.two_lines(0.5), None, 3).save(path)
    before = path.read_bytes()

    def fail(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(KeyboardInterrupt):
        Instance(fg.families.two_lines(0.6), None, 4).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["case.npz"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"k": -1}, "k"),
        ({"k": 1.5}, "k"),
        ({"ordering": "cylic"}, "no ordering 'cylic'"),
        ({"ordering": 3}, "expected an ordering"),
        ({"w0": [1.0]}, "w0"),
        ({"extras": {"A": "text"}}, "must be numbers"),
    ],
)
def test_bad_input_is_refused_at_the_door(fields, words):
    with pytest.raises(InvalidInputError, match=words):
        Instance(**({"problem": fg.families.two_lines(0.5), "ordering": None, "k": 1} | fields))


def test_the_callers_arrays_are_left_alone():
    start = np.ones(2)
    case = Instance(fg.families.two_lines(0.5), None, 1, w0=start)
    start[0] = 5
    assert case.w0.tolist() == [1.0, 1.0]
