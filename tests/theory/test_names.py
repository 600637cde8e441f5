"""Statements are named as a reader of their papers knows them."""

import pytest

import forgetting as fg
from forgetting.theory.numbering import PRINTED, name_of, place_of
from forgetting.theory.registry import all_statements, heading_of, name_by_key


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("thm:cl_by_sgd_main/loss", "Theorem 10, universal rate"),
        ("thm:random_convergence_rate/loss/proof", "Theorem 8, parameter-dependent rate, from the proof"),
        ("prop:mean_norm/loss", "Claim G.1, average-norm rate"),
        ("evron2022:alternating/forgetting", "Evron et al. 2022, Theorem 10, two tasks in turn: the exact worst case"),
        ("gower2015:any weights/error", "Gower and Richtarik 2015, linear rate of randomised projections"),
        ("sgd:lan-2012/averaged_objective", "Lan 2012, smooth stochastic, average iterate"),
        ("here:weights/loss", "projections with any weights at rate 1/k"),
        ("two-lines:single-pass/loss/lower", "two lines cloned, without replacement"),
        ("trivial/loss", "the trivial bound"),
    ],
)  # fmt: skip
def test_known_names_of_bounds(key, name):
    bound = fg.bounds.get(key)
    assert bound.name == name
    assert bound.heading == heading_of(key) == f"{name} [{key}]"
    assert str(bound).startswith(f"{name} [{key}]: ")


@pytest.mark.parametrize(
    ("label", "part", "name"),
    [
        ("thm:cl_by_sgd_main", "loss", "Theorem 10, universal rate: loss"),
        ("lem:Q trace", None, "Lemma C.8"),
        ("reduc:pocs", "gradient step", "Reduction 3, POCS ⇒ SGD: gradient step"),
        ("eq:h-bound", "sets", "Eq. (8): sets"),
        ("xu-ma2026", None, "Xu and Ma 2026, forgetting as an identity between operators"),
        ("reshuffling", "loss", "without replacement against independent draws: loss"),
    ],
)
def test_known_names_of_claims(label, part, name):
    claim = fg.claims.get(label, part)
    assert claim.name == name
    assert claim.key == (label if part is None else f"{label} ({part})")
    assert claim.heading == heading_of(label, part) == f"{name} [{label}]"


def test_every_statement_of_the_paper_begins_with_its_number_and_no_name_is_a_key():
    for statement in all_statements():
        names = [one.name for one in (statement.bound, statement.claim) if one is not None]
        for name in names:
            assert ":" not in name.split(" ")[0] or statement.label in PRINTED
            assert name != statement.label
            if statement.label in PRINTED:
                assert name.startswith(PRINTED[statement.label].number)
        assert statement.words.name in names


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("Newer 2027, Theorem 1", "Newer 2027, Theorem 1"),
        ("De Sa 2020", "De Sa 2020"),
        ("Newer and Older 2027, Lemma B.12, in the proof", "Newer and Older 2027, Lemma B.12"),
        ("Newer et al. 2027, Eq. (14)", "Newer et al. 2027, Eq. (14)"),
        ("Attia et al. 2025, abstract", "Attia et al. 2025"),
        ("a footnote of Newer 2027", ""),
        ("nobody", ""),
    ],
)
def test_places_of_other_sources(source, place):
    assert place_of("mine", source) == place
    assert name_of("mine", source) == (place or "mine")


def test_names_come_first_in_what_is_printed():
    tasks, random = fg.families.two_lines(0.3), fg.orderings.WithReplacement()
    rows = fg.bounds.evaluate(tasks, random, k=100)
    lines = {row.bound.key: str(row) for row in rows}
    assert lines["thm:cl_by_sgd_main/loss"] == (
        "loss <= 0.632456  Theorem 10, universal rate [thm:cl_by_sgd_main/loss]  (vacuous)"
    )
    assert lines["evron2022:cyclic/forgetting"].startswith(
        "forgetting: Evron et al. 2022, cyclic ordering [evron2022:cyclic/forgetting] does not apply: covers cyclic"
    )
    text = str(fg.certify(tasks, random, k=10))
    assert "Theorem 10, universal rate [thm:cl_by_sgd_main/loss]" in text
    assert "Theorem 10, universal rate: loss" in text
    assert "Reduction 1, gradient descent to convergence = Kaczmarz" in text
    assert max(map(len, text.splitlines())) <= 80
    stretches = str(fg.bounds.crossovers(d=100, T=10, rank_avg=2, rows="stated"))
    assert "k = 1 to" in stretches.splitlines()[0]
    assert "the trivial bound [trivial/loss]" in stretches.splitlines()[0]


def test_a_key_from_elsewhere_is_its_own_name():
    assert heading_of("newer2027/loss") == name_by_key("newer2027/loss") == "newer2027/loss"
    assert name_by_key("thm:cl_by_sgd_main", "loss") == "Theorem 10, universal rate: loss"
    assert heading_of("newer2027", "loss") == "newer2027, loss"
