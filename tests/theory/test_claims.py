"""Which claims there are, how they are found, and that nonsense is refused with a reason."""

from dataclasses import replace

import numpy as np
import pytest

import forgetting as fg
from effort import each
from forgetting.errors import ForgettingError, InvalidInputError
from forgetting.theory.numbering import PRINTED
from forgetting.theory.statement import STATUSES

# every statement that is to be executable, with the parts that it is split into there
LABELS = {
    "text:regret": ["no forgetting", "little regret"],
    "text:nlms": ["forgetting", "loss"],
    "text:rls": ["forgetting", "iterate"],
    "reduc:cl_to_kaczmarz": [None],
    "reduc:kaczmarz": [None],
    "eq:rank1_sgd": [None],
    "lem:cl_gd_equiv": ["upper bound", "gradient", "convex and smooth"],
    "thm:random_convergence_rate": ["loss", "forgetting"],
    "thm:cl_by_sgd_main": ["loss", "forgetting"],
    "thm:cl_by_sgd_wor": ["loss", "forgetting"],
    "thm:sgd_last_iterate_main": ["general", "eta = 1/beta"],
    "lem:regret_bound": [None],
    "lem:ratio_avg_last": ["independent", "without replacement"],
    "reduc:pocs": ["convex and smooth", "gradient step"],
    "thm:pocs-rate": ["with replacement", "without replacement", "without replacement, corrected"],
    "reduc:classification_to_pocs": [None],
    "cor:pocs_forgetting": [
        "with replacement",
        "without replacement",
        "without replacement, corrected",
        "sets, with replacement",
        "sets, without replacement",
        "display, w_(k-1)",
        "display, w_k",
        "example",
        "example, smaller",
    ],
    "lem:in_to_all_sample": [
        "next task, with replacement",
        "next task, without replacement",
        "loss, with replacement",
    ],
    "prop:loss_to_forgetting": ["regression", "POCS"],
    "eq:loss": [None],
    "cor:Q-is-positive": [None],
    "cor:Q-is-symmetric": ["symmetric", "transpose"],
    "rem:Qk-is-positive": [None],
    "lem:Trace-inequality": [None],
    "lem:A Upper Bound": [None],
    "lem:Q trace": [None],
    "cor:Q self adjoint": [None],
    "cor:Q spectrum": ["at most 1", "at least 0"],
    "cor:polynomial_Q_spectrum": [None],
    "cor:dimensionality_bound": ["bound", "rank equality", "rank inequality"],
    "lem:gd_funadmental_inequality": [None],
    "lem:gd_descent": ["descent", "gradient"],
    "lem:sqloss_gradineq": ["identity", "inequality"],
    "thm:wor_sgd_last_iterate_main": ["general", "eta = 1/beta", "eta = 1/(beta log T)", "corrected"],
    "lem:wor_last_before_stab": ["average", "distance"],
    "lem:wor_generalization": ["eta beta <= 1", "eta beta > 1", "corrected", "T = n", "steps do not expand"],
    "eq:h-bound": ["least squares", "sets"],
    "eq:wor_stab_main": ["bound", "equality"],
    "lem:permutation_equiv": [None],
    "lem:stab_gen_wor": [None],
    "lem:proj_gradineq": ["inequality", "inside"],
    "lem:wr_stability": ["eta beta <= 1", "eta beta > 1", "corrected"],
    "prop:mean_norm": ["loss", "loss, uniform", "forgetting", "forgetting, uniform", "forgetting, corrected"],
    "sgd:mean-of-iterates": [None],
    "sgd:lan-2012": [None],
    "sgd:srebro-2010": [None],
    "sgd:bach-moulines-2013": [None],
    "gower2015:any weights": [None],
    "strohmer2009:single rows": [None],
    "here:sgd": ["objective", "objective, sharper"],
    "here:weights": ["loss", "forgetting", "forgetting, sharper"],
    "here:last-iterate": [
        *("loss", "loss, longer", "loss, universal", "loss, weights", "loss, moments", "loss, moments, weights"),
        *("loss, gap", "next loss", "forgetting", "forgetting, moments"),
    ],
    "conjecture:next-loss": ["subspaces", "convex sets"],
    "conjecture:convex-sets": [None],
    "here:single-pass": ["forgetting", "loss", "next loss"],
    "here:single-pass-sgd": ["objective", "forgetting", "loss", "next loss"],
    "here:sgd-last-iterate": ["objective", "objective, universal", "forgetting"],
    "here:projections": ["with replacement", "any weights", "without replacement"],
    "here:classification": [
        "with replacement",
        "sets, with replacement",
        "without replacement",
        "sets, without replacement",
    ],
    "here:ridge": [None, "loss, fixed", "loss, increasing"],
    "here:noise": ["error", "loss", "loss, centred", "averaged loss"],
    "needell2010:single rows": [None],
    "floor": ["loss"],
    "two-lines:random": ["loss", "forgetting"],
    "two-lines:single-pass": ["loss", "forgetting"],
    "swartworth2023:spiral": ["loss", "forgetting"],
    "reshuffling": ["distances, two tasks", "loss", "distances, mean of starts"],
    "mahdaviyeh2025": ["distance, two tasks", "replay against none", "random rows"],
    "xu-ma2026": [None],
    "zhao2024": ["matrices", "one strength"],
    "han2024:reshuffled": [None],
    "here:epochs": ["error", "loss", "forgetting", "mean of epochs"],
}


def test_every_statement_and_part_is_there_and_no_other():
    found = {(claim.label, claim.part) for claim in fg.claims.all()}
    assert found == {(label, part) for label, parts in LABELS.items() for part in parts}


@pytest.mark.parametrize(("label", "parts"), LABELS.items())
def test_a_label_alone_means_its_first_part(label, parts):
    assert fg.claims.get(label).part == parts[0]
    assert fg.claims.get(label).status != "refuted"


@each("claim", fg.claims.all())
def test_a_claim_says_what_it_states_where_it_is_and_what_is_known(claim):
    assert fg.claims.get(claim.label, claim.part) is claim
    assert claim.label in claim.source or (claim.source and claim.label not in PRINTED)
    assert len(claim.statement) > 15
    assert claim.status in STATUSES
    if claim.status != "holds as stated":
        assert claim.note or claim.status == "holds where proved", "a finding needs a word of explanation"
    assert str(claim).startswith(f"{claim.name} [{claim.label}]: ")
    assert claim.status in str(claim)


def test_every_statement_that_is_refuted_has_a_corrected_or_proved_reading():
    refuted = {claim.label for claim in fg.claims.all() if claim.status == "refuted"}
    assert refuted == {
        "prop:mean_norm",
        "cor:dimensionality_bound",
        "cor:pocs_forgetting",
        "reshuffling",
        "mahdaviyeh2025",
    }
    for label in refuted:
        assert "corrected" in {claim.status for claim in fg.claims.all(label)}
    assert fg.bounds.get("prop:mean_norm/forgetting/corrected").status == "corrected"


def test_all_parts_of_one_label():
    assert [claim.part for claim in fg.claims.all("lem:gd_descent")] == ["descent", "gradient"]
    assert fg.claims.all("nothing") == ()


@pytest.mark.parametrize(
    ("label", "part", "words"),
    [
        ("thm:cl_by_sgd", None, "no claim 'thm:cl_by_sgd'; did you mean 'thm:cl_by_sgd_"),
        ("lem:gd_fundamental_inequality", None, "did you mean 'lem:gd_funadmental_inequality'"),
        ("", None, "see fg.claims.all()"),
        ("thm:cl_by_sgd_main", "Loss", "has no part 'Loss'; it has 'forgetting', 'loss'"),
        ("lem:regret_bound", "loss", "has no parts; leave out part='loss'"),
    ],
)
def test_a_wrong_name_is_answered_with_the_right_one(label, part, words):
    with pytest.raises(InvalidInputError) as error:
        fg.claims.get(label, part)
    assert words in str(error.value)


def test_the_part_may_be_left_out_where_there_is_one_only():
    assert fg.claims.get("lem:regret_bound").part is None


def test_register_refuses_a_name_that_is_taken_and_a_status_that_is_none():
    claim = fg.claims.get("lem:regret_bound")
    with pytest.raises(InvalidInputError, match="already a claim"):
        fg.claims.register(claim)
    with pytest.raises(InvalidInputError, match="status"):
        replace(claim, status="true")


REFUSED = [
    ("thm:random_convergence_rate", "loss", {"k": 2}, "k = 2, but the bound covers k >= 3"),
    ("thm:cl_by_sgd_main", "loss", {"k": 1}, "k = 1, but the bound covers k >= 2"),
    ("thm:cl_by_sgd_main", "loss", {"ordering": fg.orderings.Cyclic()}, "with replacement orderings"),
    ("thm:cl_by_sgd_main", "loss", {"scheme": fg.schemes.Ridge(1.0)}, "learned to convergence"),
    ("thm:cl_by_sgd_wor", "loss", {"ordering": fg.orderings.WithoutReplacement(), "k": 3}, "3"),
    ("thm:sgd_last_iterate_main", "general", {"scheme": fg.schemes.SGD(2.0, "loss")}, "0 < eta beta < 2, got 2"),
    ("lem:wr_stability", "eta beta <= 1", {"scheme": fg.schemes.SGD(1.5, "loss")}, "got 1.5"),
    ("lem:gd_descent", "descent", {}, "needs extras task, w, eta"),
    ("lem:gd_descent", "gradient", {"extras": {"task": 2, "w": np.zeros(2)}}, "there is no task 2"),
    ("thm:pocs-rate", "with replacement", {}, "is about convex sets"),
    ("cor:pocs_forgetting", "with replacement", {}, "is about classification tasks"),
    ("cor:polynomial_Q_spectrum", None, {"k": 0}, "covers k >= 1"),
]


@pytest.mark.parametrize(("label", "part", "changes", "words"), REFUSED)
def test_an_instance_outside_a_statement_is_refused_with_the_reason(label, part, changes, words):
    fields = {"problem": fg.families.two_lines(0.5), "ordering": fg.orderings.WithReplacement(), "k": 4} | changes
    with pytest.raises(InvalidInputError) as error:
        fg.claims.get(label, part).check(fg.claims.Instance(**fields))
    assert words in str(error.value)
    assert label in str(error.value)


def test_tasks_that_contradict_each_other_are_refused_by_what_needs_a_solution():
    tasks = fg.RegressionTasks([np.eye(2), np.eye(2)], [np.ones(2), np.zeros(2)])
    case = fg.claims.Instance(tasks, fg.orderings.WithReplacement(), 5)
    for label, part in (("thm:cl_by_sgd_main", "loss"), ("thm:sgd_last_iterate_main", "general")):
        with pytest.raises(InvalidInputError, match="realizable"):
            fg.claims.get(label, part).check(case)


def test_any_problem_ordering_and_scheme_gives_a_verdict_or_an_error_of_the_library():
    problems = [
        None,
        fg.families.gaussian(3, 5, 2),
        fg.RegressionTasks([np.zeros((1, 2))], [np.zeros(1)]),
        fg.ConvexSets([fg.Halfspace([1.0, 0.0], 1.0), fg.Ball([0.0, 0.0], 3.0)]),
        fg.families.separable(3, 4, 2, 0.3),
        fg.ClassificationTasks([[[1.0, 0.0]], [[1.0, 0.0]]], [[1], [-1]]),
    ]
    orderings = [None, fg.orderings.NormWeighted(), fg.orderings.WithoutReplacement(), fg.orderings.GreedyDistance()]
    schemes = [None, fg.schemes.SGD(0.1, "loss"), fg.schemes.WeaklyRegularized(-50.0)]
    checked = 0
    for claim in fg.claims.all():
        for problem in problems:
            for ordering in orderings:
                for scheme in schemes:
                    try:
                        verdict = claim.check(fg.claims.Instance(problem, ordering, 2, scheme=scheme))
                    except ForgettingError:
                        continue
                    checked += 1
                    assert verdict.holds or claim.status == "refuted"
    assert checked > 100


@pytest.mark.parametrize(
    ("label", "extras", "reason"),
    [
        ("lem:sqloss_gradineq", {"gamma": -1.0}, "gamma is a number above 0, got -1.0"),
        ("lem:sqloss_gradineq", {"gamma": 0.0}, "gamma is a number above 0"),
        ("lem:sqloss_gradineq", {"task": 0.5}, "task is a whole number, got 0.5"),
        ("lem:sqloss_gradineq", {"task": 7}, "there is no task 7"),
        ("lem:sqloss_gradineq", {"w": np.ones(3)}, r"w must have shape \(2,\), got \(3,\)"),
        ("lem:sqloss_gradineq", {"z": [np.nan, 0.0]}, "z has values that are not finite"),
        ("lem:gd_descent", {"eta": -1.0}, "eta is a number above 0, got -1.0"),
        ("cor:Q-is-positive", {"A": np.ones((2, 3))}, r"A must have shape \(2, 2\), got \(2, 3\)"),
        ("cor:Q-is-positive", {"A": np.full((2, 2), np.nan)}, "A has values that are not finite"),
        ("lem:permutation_equiv", {"i": [1, 2]}, "i is a whole number, got array"),
        ("lem:permutation_equiv", {"i": 1.5}, "i is a whole number, got 1.5"),
    ],
)
def test_extras_outside_their_range_are_refused_with_the_reason(label, extras, reason):
    fine = {"task": 0, "w": np.ones(2), "z": np.zeros(2), "gamma": 0.5, "eta": 0.1, "A": np.eye(2), "i": 0, "t": 1}
    part = "inequality" if label == "lem:sqloss_gradineq" else "descent" if label == "lem:gd_descent" else None
    case = fg.claims.Instance(fg.families.two_lines(0.5), fg.orderings.WithoutReplacement(), 1, extras=fine | extras)
    with pytest.raises(InvalidInputError, match=reason):
        fg.claims.get(label, part).check(case)


def test_a_task_needs_a_problem_and_a_seed_is_a_count():
    case = fg.claims.Instance(None, None, 1, extras={"task": 0, "w": np.ones(2)})
    with pytest.raises(InvalidInputError, match="needs a problem"):
        fg.claims.get("lem:gd_descent", "gradient").check(case)
    for seed in (-1, "a", 0.5):
        with pytest.raises(InvalidInputError, match="seed"):
            fg.claims.get("lem:regret_bound").hunt(seed=seed, budget=3)
    with pytest.raises(InvalidInputError, match="no claim"):
        fg.claims.get([])
