"""Hunts that are confined to T, d and k, and what hunts start from."""

from dataclasses import replace

import numpy as np
import pytest

import forgetting as fg
from forgetting.claims import Instance, Sides, get
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.theory.candidates import known_starts
from forgetting.theory.sizes import Sizes, as_sizes

RANDOM = fg.orderings.WithReplacement()


def seen_by(claim, budget=40, **sizes):
    """All instances on which a confined hunt checks the claim, and the hunt."""
    cases = []

    def sides(case):
        cases.append(case)
        return claim.sides(case)

    return replace(claim, sides=sides).hunt(budget=budget, **sizes), cases


@pytest.mark.parametrize(
    ("label", "part", "sizes"),
    [
        pytest.param("thm:cl_by_sgd_main", "loss", {"T": 3, "d": 4, "k": 5}, marks=pytest.mark.slow),
        ("thm:cl_by_sgd_main", "forgetting", {"k": range(2, 5)}),
        ("thm:cl_by_sgd_wor", "loss", {"T": 4, "k": 3}),
        pytest.param("thm:cl_by_sgd_wor", "forgetting", {"d": 2, "k": 7}, marks=pytest.mark.slow),
        pytest.param("thm:sgd_last_iterate_main", "general", {"T": 2, "d": 3, "k": 6}, marks=pytest.mark.slow),
        ("swartworth2023:spiral", "loss", {"T": 3, "k": range(1, 20)}),
        pytest.param("swartworth2023:spiral", "forgetting", {"k": 12}, marks=pytest.mark.slow),
        ("lem:regret_bound", None, {"T": range(2, 4), "d": 1, "k": 9}),
        ("here:weights", "loss", {"T": 5, "d": range(2, 4)}),
        ("lem:Q trace", None, {"T": 3, "d": 3, "k": 2}),
        pytest.param("cor:pocs_forgetting", "with replacement", {"T": 2, "k": 2}, marks=pytest.mark.slow),
        ("thm:pocs-rate", "with replacement", {"d": 2, "k": 3}),
        ("here:noise", "loss", {"T": 3, "d": 2, "k": 4}),
    ],
)
def test_every_problem_of_a_confined_hunt_has_the_sizes(label, part, sizes):
    found, cases = seen_by(get(label, part), **sizes)
    wanted = as_sizes(**sizes)
    assert len(cases) >= 10
    assert all(wanted.fits(case) for case in cases)
    assert found.fixed == str(wanted)
    assert found.outcome == "holds"
    for name, value in sizes.items():
        allowed = value if isinstance(value, range) else [value]
        assert {
            case.k if name == "k" else {"T": case.posed.num_tasks, "d": case.posed.dim}[name] for case in cases
        } <= {*allowed}
    assert f"with {wanted}" in str(found)


def test_a_confined_hunt_repeats_itself():
    claim = get("thm:cl_by_sgd_main", "loss")
    one, two = (claim.hunt(budget=40, T=3, k=2) for _ in range(2))
    assert (str(one), one.scores) == (str(two), two.scores)
    assert claim.hunt(budget=40, T=3, k=2, seed=1).scores != one.scores


def test_a_confined_hunt_is_saved_with_its_sizes(tmp_path):
    found = get("lem:regret_bound").hunt(budget=6, T=2)
    found.save(tmp_path / "hunt.npz")
    assert fg.claims.Hunt.load(tmp_path / "hunt.npz").fixed == "T = 2"


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"T": 0}, "T must be"),
        ({"k": 2.5}, "k must be"),
        ({"d": range(2, 9, 2)}, "d must be a number or a range"),
        ({"d": range(5, 5)}, "d must be a number or a range"),
        ({"k": range(3)}, "k must be a number or a range"),
        ({"k": 1}, r"thm:cl_by_sgd_main \(loss\) was checked on no problem with k = 1: .*k = 1, but .* covers k >= 2"),
    ],
)
def test_sizes_that_cannot_be_had_are_refused_in_words(sizes, words):
    with pytest.raises(InvalidInputError, match=words):
        get("thm:cl_by_sgd_main", "loss").hunt(budget=6, **sizes)


def test_a_statement_on_matrices_has_no_tasks_to_fix():
    claim = replace(
        get("lem:Q trace"),
        label="planted",
        draw=lambda rng, index: Instance(None, None, index + 1),
        sides=lambda case: Sides(1.0, 1.0),
        missing=lambda case: None,
        needs=(),
    )
    assert claim.hunt(budget=6, k=3).instance.k == 3
    with pytest.raises(InvalidInputError, match="no tasks whose T or d could be fixed"):
        claim.hunt(budget=6, T=2)


def test_sets_are_not_resized():
    sets = fg.ConvexSets([fg.Halfspace([1.0, 0.0], 0.0), fg.Halfspace([0.0, 1.0], 0.0)])
    case = Instance(sets, RANDOM, 3)
    assert as_sizes(T=2, k=4).fitted(np.random.default_rng(0), case).k == 4
    with pytest.raises(NotSupportedError, match=r"only regression tasks can be given T = 3"):
        as_sizes(T=3).fitted(np.random.default_rng(0), case)


def test_resized_tasks_have_the_same_solution_rows_and_step():
    tasks = fg.families.gaussian(T=4, d=3, rank=2, seed=0)
    case = Instance(tasks, fg.orderings.WithReplacement(p=[1, 2, 3, 4]), 5, scheme=fg.schemes.SGD(0.1, "loss"),
                    w0=np.arange(3.0), extras={"task": 3, "w": np.ones(3), "A": np.eye(3)})  # fmt: skip
    more = as_sizes(T=6, d=5).fitted(np.random.default_rng(0), case)
    assert (more.problem.num_tasks, more.problem.dim, len(more.ordering.p)) == (6, 5, 6)
    np.testing.assert_allclose(more.problem.w_star[:3], tasks.w_star, atol=1e-12)
    np.testing.assert_allclose(more.problem.task(2)[0][:, :3], tasks.task(2)[0])
    assert {tuple(row) for m in (4, 5) for row in more.problem.task(m)[0][:, :3]} <= {
        tuple(row) for m in range(4) for row in tasks.task(m)[0]
    }
    assert more.scheme.step_size * more.problem.radius**2 == pytest.approx(0.1 * tasks.radius**2)
    assert (more.w0.tolist(), more.extras["w"].shape, more.extras["A"].shape) == ([0, 1, 2, 0, 0], (5,), (5, 5))
    less = as_sizes(T=2, d=2).fitted(np.random.default_rng(0), case)
    assert (less.problem.num_tasks, less.problem.dim, less.extras["task"]) == (2, 2, 1)
    assert less.problem.realizability.holds


def test_one_pass_and_whole_cycles_stay_that():
    rng = np.random.default_rng(0)
    passed = Instance(fg.families.orthogonal(3), fg.orderings.WithoutReplacement(), 2)
    longer = as_sizes(k=7).fitted(rng, passed)
    assert longer.k == 7 <= longer.posed.num_tasks
    assert as_sizes(T=4, k=range(1, 9)).fitted(rng, replace(passed, k=3)).posed.num_tasks == 4
    cycles = Instance(fg.families.orthogonal(3), fg.orderings.Cyclic(), 6)
    for sizes in (as_sizes(k=8), as_sizes(T=5), as_sizes(T=2, k=range(5, 8))):
        whole = sizes.fitted(rng, cycles)
        assert whole.k % whole.posed.num_tasks == 0
        assert sizes.fits(whole)


# ------------------------------------------------------------------------------------------------------------- starts


def test_a_hunt_starts_from_the_record_and_from_known_tasks():
    claim = get("thm:cl_by_sgd_main", "loss")
    poor = replace(claim, draw=lambda rng, index: Instance(fg.families.orthogonal(2), RANDOM, 50))
    assert poor.hunt(budget=60).verdict.ratio >= claim.record.ratio * (1 - 1e-9)
    assert poor.hunt(budget=3).verdict.ratio < 1e-9  # draws only
    unknown = replace(poor, label="planted")
    assert unknown.hunt(budget=60).verdict.ratio >= 0.0523  # that of the worst pair


@pytest.mark.parametrize("label", ["thm:cl_by_sgd_main", "thm:cl_by_sgd_wor", "swartworth2023:spiral"])
def test_known_tasks_are_ones_to_which_the_claim_applies(label):
    claim = get(label, "loss")
    starts = list(known_starts(claim))
    assert len({start.origin for start in starts}) >= 4
    assert all(claim.why_not(start.instance) is None for start in starts)


def test_known_tasks_for_a_given_k_are_worst_for_this_k():
    starts = list(known_starts(get("thm:cl_by_sgd_main", "forgetting"), sizes=Sizes(k=range(9, 10))))[1:]
    assert {start.instance.k for start in starts} == {9}
    values = {start.origin: float(fg.expect(start.instance.posed, RANDOM, 9).forgetting) for start in starts}
    assert max(values, key=values.get) == "closed form: the worst pair for forgetting"
