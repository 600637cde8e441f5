"""Certificates: measured beside theoretical, as text and as JSON."""

import json
import re

import numpy as np
import pytest

import forgetting as fg
from forgetting.claims import Certificate
from forgetting.errors import ForgettingError, InvalidInputError
from forgetting.theory.certificate import Measured

SETS = fg.ConvexSets([fg.Halfspace([1.0, 0.0], 1.0), fg.Ball([0.0, 0.0], 3.0)])
CASES = {
    "with": (fg.families.two_lines(0.14), fg.orderings.WithReplacement(), 100, {}),
    "without": (fg.families.gaussian(4, 6, 2, seed=0), fg.orderings.WithoutReplacement(), 4, {}),
    "cyclic": (fg.families.gaussian(3, 5, 1, seed=0), fg.orderings.Cyclic(), 7, {}),
    "sgd": (
        fg.families.gaussian(3, 5, 2, seed=0),
        fg.orderings.NormWeighted(),
        9,
        {"scheme": fg.schemes.SGD(0.1, "loss"), "w0": np.ones(5)},
    ),
    "many": (fg.families.gaussian(30, 20, 3, seed=1), fg.orderings.WithoutReplacement(), 12, {}),
    "diverging": (
        fg.families.two_lines(1.0),
        fg.orderings.WithReplacement(),
        5,
        {"scheme": fg.schemes.SGD(2.5)},
    ),
    "sets": (SETS, fg.orderings.WithReplacement(), 2, {}),
    "classification": (fg.families.separable(3, 4, 2, 0.3), fg.orderings.WithoutReplacement(), 3, {}),
}


@pytest.fixture(scope="module")
def certificates():
    return {name: fg.certify(*case, runs=400, **more) for name, (*case, more) in CASES.items()}


@pytest.mark.parametrize("name", CASES)
def test_json_gives_the_certificate_back(certificates, name):
    certificate = certificates[name]
    text = certificate.to_json()
    assert Certificate.from_json(text) == certificate
    assert json.loads(text)["k"] == CASES[name][2]
    assert str(Certificate.from_json(text)) == str(certificate)


@pytest.mark.parametrize("name", CASES)
def test_files_from_before_exactness_was_kept_are_read(certificates, name):
    data = json.loads(certificates[name].to_json())
    assert {row.pop("exact") for row in data["measured"]} <= {True, False}
    assert Certificate.from_json(json.dumps(data)) == certificates[name]


def test_exactness_is_kept_and_not_read_off_the_name_of_the_method(certificates):
    exact = {name: {row.exact for row in certificate.measured} for name, certificate in certificates.items()}
    assert exact["with"] == {True}
    assert exact["many"] == {False}
    assert not Measured("loss", 0.1, 0.1, 0.1, "an engine of my own", exact=False).exact


@pytest.mark.parametrize("name", CASES)
def test_is_readable_in_80_columns(certificates, name):
    lines = str(certificates[name]).splitlines()
    assert max(map(len, lines)) <= 80
    assert not any(line.endswith(" ") for line in lines)
    for part in ("measured", "bounds on the loss" if name != "diverging" else "no bound applies", "statements"):
        assert any(line.startswith(part) for line in lines)


@pytest.mark.parametrize("name", CASES)
def test_nothing_exceeds_its_bound(certificates, name):
    certificate = certificates[name]
    assert certificate.holds
    assert certificate.claims
    for row in certificate.bounds:
        assert row.ratio is None or row.ratio <= 1 + 1e-9
        assert row.status != "refuted"


def test_measured_values_are_those_of_expect(certificates):
    tasks, ordering, k, _ = CASES["with"]
    measured = {row.quantity: row for row in certificates["with"].measured}
    expected = fg.expect(tasks, ordering, k)
    assert measured["loss"].value == expected.loss
    assert measured["forgetting"].value == expected.forgetting
    assert measured["loss"].exact
    # two lines have unit rows, so that the SGD objective and the residual are the loss
    assert measured["objective"].value == pytest.approx(float(expected.loss), rel=1e-12)
    assert measured["residual"].value == pytest.approx(float(expected.loss), rel=1e-12)


def test_the_objective_of_sgd_is_weighted_by_its_sampling(certificates):
    tasks, ordering, k, more = CASES["sgd"]
    losses = fg.expect(tasks, ordering, k, more["scheme"], more["w0"], quantities=("task_losses",)).values[
        "task_losses"
    ]
    value = next(row.value for row in certificates["sgd"].measured if row.quantity == "objective")
    assert value == pytest.approx(float(losses @ (tasks.norms**2 / np.sum(tasks.norms**2))), rel=1e-12)


def test_two_lines_use_all_of_their_bound(certificates):
    best = next(row for row in certificates["with"].bounds if row.tightest and row.quantity == "loss")
    assert best.key == "two-lines:random/loss"
    assert best.ratio == pytest.approx(1, abs=1e-3)


def test_identities_are_listed_with_their_residuals(certificates):
    assert len(certificates["with"].residuals) == 2
    assert len(certificates["without"].residuals) == 3
    assert all(row.value < 1e-9 for row in certificates["without"].residuals)


def test_what_is_simulated_is_marked_and_says_how(certificates):
    many = certificates["many"]
    rows = {(row.label, row.part): row for row in many.claims}
    swapped = rows["lem:stab_gen_wor", None]
    assert (swapped.how, swapped.doubt > 0) == ("400 random permutations", True)
    assert (rows["lem:A Upper Bound", None].how, rows["lem:A Upper Bound", None].doubt) == ("eigenvalues", 0.0)
    text = str(many)
    assert re.search(r"Lemma E\.8 \[lem:stab_gen_wor\] +~0\.00", text)
    assert text.count("~") == sum(row.doubt > 0 for row in (*many.residuals, *many.claims)) + 1
    assert "~" not in str(certificates["with"])


def test_notes_of_the_expectation_are_carried_over(certificates):
    certificate = certificates["diverging"]
    assert certificate.notes == ("this scheme diverges: a step multiplies an error of the task it learns by -1.5",)
    assert str(certificate).endswith(
        "\n\nnote: this scheme diverges: a step multiplies an error of the task it learns by\n      -1.5"
    )
    assert certificates["with"].notes == ()


@pytest.mark.parametrize("ordering", [fg.orderings.WithoutReplacement(), fg.orderings.WithReplacement()], ids=str)
def test_a_start_that_solves_all_tasks_fails_nothing(ordering):
    tasks = fg.families.gaussian(30, 12, 2, seed=0)
    assert fg.certify(tasks, ordering, 10, w0=tasks.w_star).holds


def test_sets_without_replacement_have_their_identity():
    certificate = fg.certify(SETS, fg.orderings.WithoutReplacement(), 2, w0=[4.0, 4.0], runs=100)
    (row,) = certificate.residuals
    assert row.identity == "Proposition B.2, loss = seen and unseen parts [prop:loss_to_forgetting]"
    assert row.holds


def test_numbers_that_are_not_finite_survive_json():
    tasks = fg.families.gaussian(4, 8, 2)
    scheme = fg.schemes.SGD(300 / tasks.radius**2, "loss")
    certificate = fg.certify(tasks, fg.orderings.WithReplacement(), 500, scheme=scheme, seed=np.int64(1))
    again = Certificate.from_json(certificate.to_json())
    assert str(again) == str(certificate)
    assert "Infinity" not in certificate.to_json()


def test_a_false_statement_does_not_spoil_a_certificate(certificates):
    claims = {(row.label, row.part): row for row in certificates["without"].claims}
    ranks = claims["cor:dimensionality_bound", "rank equality"]
    assert (ranks.lhs, ranks.rhs, ranks.holds, ranks.status) == (6, 8, False, "refuted")
    assert "refuted" in str(certificates["without"])


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"format": "other"}', '{"format": "forgetting/certificate/1", "k": 1}']
)
def test_other_json_is_refused(text):
    with pytest.raises(InvalidInputError, match="not a certificate"):
        Certificate.from_json(text)


@pytest.mark.parametrize(("name", "value"), [("k", '"abc"'), ("seed", "-1"), ("value", '"much"')])
def test_json_with_other_values_is_refused(certificates, name, value):
    changed, times = re.subn(f'"{name}": [^,}}]+', f'"{name}": {value}', certificates["with"].to_json(), count=1)
    assert times == 1
    with pytest.raises(InvalidInputError, match="not a certificate"):
        Certificate.from_json(changed)


def test_bad_requests_are_refused():
    tasks = fg.families.two_lines(0.5)
    with pytest.raises(ForgettingError, match="k"):
        fg.certify(tasks, fg.orderings.WithReplacement(), 0)
    with pytest.raises(ForgettingError, match="3"):
        fg.certify(tasks, fg.orderings.WithoutReplacement(), 3)


def test_tasks_that_no_w_solves_are_certified_by_the_bounds_on_noise():
    clash = fg.RegressionTasks([np.eye(2), np.eye(2)], [np.ones(2), np.zeros(2)])
    certificate = fg.certify(clash, fg.orderings.WithReplacement(), 3)
    assert certificate.holds
    assert {row.quantity: round(row.value, 12) for row in certificate.measured if row.quantity != "forgetting"} == {
        "loss": 0.5,  # L_m is 0 for the task learned last, and 1 for the other
        "regret": pytest.approx((0.5 + 0.5 + 0.5) / 3),
        "error": 0.5,  # w* = (1/2, 1/2), and w_k is (1, 1) or (0, 0)
        "averaged_loss": pytest.approx(0.25 + 0.25 / 3),  # L_min + |mean of z_0, z_1, z_2|^2 / 2, |z_t|^2 = 1/2
    }
    assert {row.key: round(row.ratio, 9) for row in certificate.bounds} == {
        "here:noise/error": 1.0,
        "here:noise/loss": 1.0,
        "here:noise/loss/centred": 1.0,
        "here:noise/averaged_loss": 1.0,
    }
    assert {row.label for row in certificate.claims} == {"here:noise", "floor", "zhao2024"}
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert "bounds on the averaged_loss" in str(certificate)


SIMULATED = (fg.families.gaussian(30, 20, 3, seed=1), fg.orderings.WithoutReplacement(), 12)


def test_statements_are_simulated_with_the_seed_and_the_runs_of_the_certificate():
    one = fg.certify(*SIMULATED, seed=5, runs=300)
    again, other = fg.certify(*SIMULATED, seed=5, runs=300), fg.certify(*SIMULATED, seed=6, runs=300)
    assert one.seed == 5
    assert one == again
    simulated = [row for row in one.claims if row.doubt > 0]
    changed = {(row.label, row.part): row.lhs for row in other.claims}
    assert len(simulated) >= 8
    assert {row.how for row in simulated} >= {"300 random permutations", "300 simulated runs"}
    assert not any("16384" in row.how for row in simulated)
    for row in simulated:
        assert row.lhs != changed[row.label, row.part]
        case = fg.claims.Instance(*SIMULATED, seed=5, runs=300)
        assert fg.claims.get(row.label, row.part).check(case).lhs == row.lhs


def test_the_identities_follow_the_order_of_the_seed():
    rows = [fg.certify(*SIMULATED[:2], 6, seed=seed, runs=300).residuals[1] for seed in (1, 1, 2)]
    assert rows[0] == rows[1] != rows[2]


@pytest.mark.parametrize(("field", "value"), [("seed", -1), ("seed", 0.5), ("runs", 0), ("runs", "many")])
def test_a_seed_and_runs_are_whole_numbers(field, value):
    with pytest.raises(InvalidInputError, match=field):
        fg.claims.Instance(*SIMULATED, **{field: value})


def test_the_mean_of_the_iterates_and_the_error_are_measured_beside_their_bounds():
    tasks = fg.families.gaussian(T=6, d=8, rank=2, seed=0)
    certificate = fg.certify(tasks, fg.orderings.NormWeighted(), 12)
    measured = {row.quantity: row.value for row in certificate.measured}
    e = fg.expect(tasks, fg.orderings.NormWeighted(), 12, quantities="error")
    assert measured["error"] == pytest.approx(e.error, rel=1e-12)
    bounds = {row.key: row.ratio for row in certificate.bounds}
    assert 0 < bounds["gower2015:any weights/error"] < 1
    assert 0 < bounds["sgd:mean-of-iterates/averaged_objective"] < 1
    rows = {row.label: row.lhs for row in certificate.claims}
    for label in ("sgd:mean-of-iterates", "sgd:lan-2012", "sgd:bach-moulines-2013"):
        assert rows[label] == pytest.approx(measured["averaged_objective"], rel=1e-12)
    assert "sgd:srebro-2010" not in rows  # eta beta = 1
