"""The library takes what the command line takes: orderings and schemes by name, lists of tasks, 1e3, any seed."""

import numpy as np
import pytest

import forgetting as fg
from effort import each
from forgetting.auditing import RandomFeatures, random_influence, search_orders, subsample_rows
from forgetting.errors import InvalidInputError
from forgetting.orderings import Cyclic, Explicit, WithReplacement
from forgetting.report import Settings
from forgetting.schemes import SGD, Kaczmarz, Ridge

TASKS = fg.families.gaussian(T=3, d=4, rank=1, seed=0)
PAIRS = fg.families.gaussian(T=8, d=5, rank=2, seed=1)

#: spellings of an ordering
ORDERINGS = {
    "cyclic": ("cyclic", Cyclic()),
    "class name": ("Cyclic", Cyclic()),
    "dashes": ("with-replacement", WithReplacement()),
    "spaces": ("with replacement", WithReplacement()),
    "underscores": ("with_replacement", WithReplacement()),
    "parameters": ("with-replacement p=1,1,2", WithReplacement([1, 1, 2])),
    "explicit": ("explicit seq=0,1,1", Explicit([0, 1, 1])),
    "list": ([0, 2, 1], Explicit([0, 2, 1])),
    "tuple": ((0, 2, 1), Explicit([0, 2, 1])),
    "range": (range(3), Explicit([0, 1, 2])),
    "array": (np.array([2, 1, 0]), Explicit([2, 1, 0])),
    "small integers": (np.array([2, 1, 0], dtype=np.uint8), Explicit([2, 1, 0])),
}
SCHEMES = {
    "kaczmarz": ("kaczmarz", Kaczmarz()),
    "ridge": ("ridge lam=0.1", Ridge(0.1)),
    "words": ("sgd step_size=0.5 objective=loss", SGD(0.5, objective="loss")),
}
#: every function that takes an ordering, as (ordering, scheme) -> something to compare
TAKES_ORDERING = {
    "run": lambda order, scheme: fg.run(TASKS, order, 3, scheme).iterates,
    "run_many": lambda order, scheme: fg.run_many(TASKS, order, 3, runs=4, scheme=scheme).losses,
    "expect": lambda order, scheme: fg.expect(TASKS, order, 3, scheme).loss,
    "compare": lambda order, scheme: fg.compare(TASKS, (order, scheme), WithReplacement(), 3).loss,
    "certify": lambda order, scheme: fg.certify(TASKS, order, 2, scheme).to_json(),
    "evaluate": lambda order, scheme: [str(row) for row in fg.bounds.evaluate(TASKS, order, 3, scheme=scheme)],
    "Setting.of": lambda order, scheme: fg.bounds.Setting.of(TASKS, None, scheme, order),
    "optimal_schedule": lambda order, scheme: fg.optimal_schedule(TASKS, order, 2).loss,
    "Instance": lambda order, scheme: str(fg.claims.Instance(TASKS, order, 3, scheme)),
}
TAKES_SCHEME = {
    **{name: (lambda scheme, call=call: call(Cyclic(), scheme)) for name, call in TAKES_ORDERING.items()},
    "decay_rate": lambda scheme: fg.decay_rate(TASKS, "cyclic", scheme),
    "optimal_weights": lambda scheme: fg.optimal_weights(TASKS, scheme=scheme).value,
    "audit": lambda scheme: fg.audit(TASKS, scheme=scheme).to_json(),
    "search_orders": lambda scheme: search_orders(TASKS, scheme=scheme),
    "random_influence": lambda scheme: random_influence(TASKS, scheme).matrix,
}


def equal(first, second):
    return np.array_equal(first, second) if isinstance(first, np.ndarray) else first == second


@pytest.mark.parametrize("call", TAKES_ORDERING)
@each("spelling", ORDERINGS)
def test_orderings_are_known_by_name_or_as_lists_of_tasks(call, spelling):
    given, meant = ORDERINGS[spelling]
    assert equal(TAKES_ORDERING[call](given, None), TAKES_ORDERING[call](meant, None))


@pytest.mark.parametrize("call", TAKES_SCHEME)
@pytest.mark.parametrize("spelling", SCHEMES)
def test_schemes_are_known_by_name(call, spelling):
    given, meant = SCHEMES[spelling]
    assert equal(TAKES_SCHEME[call](given), TAKES_SCHEME[call](meant))


def test_results_have_the_objects_and_not_their_names():
    run = fg.run(TASKS, [0, 2, 1], 3, "ridge lam=0.1")
    assert (run.ordering, run.scheme) == (Explicit([0, 2, 1]), Ridge(0.1))
    many = fg.run_many(TASKS, "cyclic", 3, runs=2, scheme="sgd")
    assert (many.ordering, many.scheme) == (Cyclic(), SGD())
    case = fg.claims.Instance(TASKS, "cyclic", 3, "ridge lam=0.1")
    assert (case.ordering, case.scheme) == (Cyclic(), Ridge(0.1))
    assert fg.certify(TASKS, "cyclic", 3).ordering == "Cyclic()"


def test_two_orders_are_compared_and_two_schemes_under_one_order():
    by_list = fg.compare(TASKS, [0, 1, 2], (2, 1, 0), 3)
    assert by_list.loss == fg.compare(TASKS, Explicit([0, 1, 2]), Explicit([2, 1, 0]), 3).loss
    assert fg.compare(TASKS, ("cyclic", "ridge lam=0.1"), "cyclic", 3).loss == (
        fg.compare(TASKS, (Cyclic(), Ridge(0.1)), (Cyclic(), None), 3).loss
    )
    assert fg.compare(TASKS, [0, 1], (0, 1), 2).loss == 0  # two task numbers are no ordering with its scheme
    assert fg.decay_rate(TASKS, "cyclic") == fg.decay_rate(TASKS, Cyclic())


def test_a_setting_takes_the_names_of_bounds_and_those_of_orderings():
    setting = fg.bounds.Setting(T=5, d=10, rank_avg=2)
    named = fg.bounds.evaluate(setting, "with replacement", 100)
    assert [str(row) for row in named] == [str(row) for row in fg.bounds.evaluate(setting, "with-replacement", 100)]
    assert fg.bounds.evaluate(setting, "any", 100).applicable("loss")
    with pytest.raises(InvalidInputError, match="no ordering 'any'"):
        fg.bounds.evaluate(TASKS, "any", 100)


@pytest.mark.parametrize("k", [1e1, np.float32(10), np.array(10.0), np.int8(10), np.array(10)])
def test_whole_numbers_may_be_floats(k):
    assert equal(fg.run(TASKS, "cyclic", k).losses, fg.run(TASKS, "cyclic", 10).losses)
    assert fg.expect(TASKS, "cyclic", k).loss == fg.expect(TASKS, "cyclic", 10).loss
    assert equal(fg.expect(TASKS, "cyclic", [k, 20.0]).k, [10, 20])
    assert fg.certify(TASKS, "cyclic", k).k == 10
    assert fg.bounds.evaluate(TASKS, "cyclic", k).k == 10
    assert fg.run_many(TASKS, "cyclic", k, runs=2e0, record_every=5.0).steps.tolist() == [0, 5, 10]
    assert fg.families.gaussian(T=k, d=k, rank=2.0, seed=3.0).num_tasks == 10


def test_other_numbers_of_things_may_be_floats():
    found = fg.audit(PAIRS, passes=2.0, rows=1e0, features=9.0)
    assert (found.passes, found.dim, found.title) == (
        2,
        9,
        "8 tasks, at most 1 row of each task, 9 random relu features (scale 1, seed 0)",
    )
    assert Settings(TASKS, k=1e3).k == 1000
    signs = fg.families.separable(T=2, d=3, n=3, margin=0.3)
    curve = fg.reductions.classification_to_pocs(signs, "cyclic", 2.0, [-10.0], seed=None)
    assert curve.angles.shape == (1, 2)
    assert TASKS.task(1.0)[1].shape == (1,)


@pytest.mark.parametrize("k", [3.5, float("nan"), float("inf"), -1.0, 1e300, "3", None, 3 + 0j])
def test_what_is_no_number_of_steps_is_refused(k):
    for call in (fg.run, fg.expect, fg.certify, fg.bounds.evaluate, fg.claims.Instance):
        if k == float("inf") and call is fg.expect:  # a limit, where there is one
            continue
        with pytest.raises(InvalidInputError, match=r"^k must be"):
            call(TASKS, "cyclic", k)


#: every result with a seed, as seed -> (the seed that it has, what the seed decides)
SEEDED = {
    "run": lambda seed: (run := fg.run(PAIRS, "with-replacement", 20, seed=seed), run.seed, run.order)[1:],
    "run_many": lambda seed: (e := fg.run_many(PAIRS, "reshuffled", 9, 5, "nlms mu=0.5", seed), e.seed, e.order)[1:],
    "ensemble": lambda seed: (e := fg.run_many(PAIRS, "with-replacement", 9, 5, seed=seed), e.seed, e[3].order)[1:],
    "expect": lambda seed: (
        e := fg.expect(PAIRS, "reshuffled", 9, method="monte-carlo", runs=9, seed=seed), e.seed, e.loss)[1:],
    "compare": lambda seed: (
        e := fg.compare(PAIRS, ("with-replacement", "nlms mu=0.5"), "with-replacement", 9, runs=9, seed=seed),
        e.seed, e.loss)[1:],
    "certify": lambda seed: (c := fg.certify(PAIRS, "with-replacement", 2, "nlms mu=0.9", seed=seed, runs=9),
                             c.seed, [row.value for row in c.measured])[1:],
    "audit": lambda seed: (a := fg.audit(PAIRS, rows=1, features=9, seed=seed), a.seed, a.influence)[1:],
    "hunt": lambda seed: (h := fg.claims.get("lem:regret_bound").hunt(seed=seed, budget=9), h.seed, str(h))[1:],
    "search_orders": lambda seed: (s := search_orders(PAIRS, exact=False, evaluations=9, seed=seed),
                                   s.seed, (s.best, s.worst))[1:],
    "RandomFeatures": lambda seed: (f := RandomFeatures(5, seed=seed), f.seed, f(np.eye(3)))[1:],
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "audit" else name for name in SEEDED]
)
def test_a_result_has_the_number_that_repeats_it(name):
    call = SEEDED[name]
    number, _ = call(7)
    assert number == 7
    for seed in (None, np.random.default_rng(1), np.random.SeedSequence(1)):
        number, value = call(seed)
        assert isinstance(number, int)
        assert 0 <= number < 2**63
        again, same = call(number)
        assert again == number
        assert equal(value, same)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "audit" else name for name in SEEDED]
)
def test_no_seed_is_a_fresh_one_and_a_generator_moves_on(name):
    call = SEEDED[name]
    assert call(None)[0] != call(None)[0]
    rng, twin = np.random.default_rng(1), np.random.default_rng(1)
    first, second = call(rng)[0], call(rng)[0]
    assert first != second
    assert (first, second) == (call(twin)[0], call(twin)[0])
    sequence = np.random.SeedSequence(1)
    assert call(sequence)[0] == call(sequence)[0] == call(np.random.SeedSequence(1))[0]


def test_families_take_generators():
    first, second = (fg.families.rank_one(3, 4, np.random.default_rng(5)).task(0)[0] for _ in range(2))
    assert equal(first, second)
    rng = np.random.default_rng(5)
    assert not equal(fg.families.rank_one(3, 4, rng).task(0)[0], fg.families.rank_one(3, 4, rng).task(0)[0])
    assert subsample_rows(PAIRS, 1, np.random.default_rng(0)).num_rows.tolist() == [1] * 8


@pytest.mark.parametrize("seed", [-1, 0.5, "0", float("nan"), [1], np.random.RandomState(0)])
def test_what_is_no_seed_is_refused(seed):
    for call in (fg.run, fg.expect, fg.certify):
        with pytest.raises(InvalidInputError, match=r"^seed must be"):
            call(TASKS, "cyclic", 3, seed=seed)


def test_labels_may_be_a_column():
    X, y = np.array([[1.0, 0.5], [0.25, 1.0], [2.0, 0.0]]), np.array([1.0, -1.0, 1.0])
    plain, column = (fg.RegressionTasks([X, 2 * X], [labels, labels]) for labels in (y, y[:, None]))
    assert equal(plain.task_losses(np.ones(2)), column.task_losses(np.ones(2)))
    groups = ["a", "b", "a"]
    plain, column = (fg.RegressionTasks.from_arrays(X, labels, groups) for labels in (y, y[:, None]))
    assert equal(plain.task(0)[1], column.task(0)[1])
    assert equal(fg.ClassificationTasks([X], [y[:, None]]).task(0)[1], y)
    assert equal(fg.KernelTasks(X @ X.T + np.eye(3), y[:, None], groups).labels, y)
    assert list(fg.one_versus_rest(X, y[:, None], groups)) == [-1.0, 1.0]
    with pytest.raises(InvalidInputError, match=r"y has shape \(3, 2, 1\)"):
        fg.RegressionTasks([X], [np.ones((3, 2, 1))])
    with pytest.raises(InvalidInputError, match="1 masked entries"):
        fg.KernelTasks(np.eye(3), np.ma.array(y, mask=[0, 1, 0]), groups)
