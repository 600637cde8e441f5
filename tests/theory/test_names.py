"""Statements are named as a reader of their papers knows them."""

import dataclasses

import pytest

import forgetting as fg
from forgetting.errors import InvalidInputError
from forgetting.orderings.base import as_ordering
from forgetting.theory.numbering import PRINTED, name_of, place_of
from forgetting.theory.registry import all_statements, heading_of, name_by_key
from forgetting.theory.setting import describe_ordering, ordering_named


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
        assert statement.name in names


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


TASKS = fg.families.two_lines(0.3)


def test_a_table_takes_tasks_as_its_first_argument():
    assert fg.bounds.table(TASKS, k=50) == fg.bounds.table("regression", TASKS, k=50)
    setting = fg.bounds.Setting(T=5, dist_sq=2.0, problem="classification")
    assert fg.bounds.table(setting, k=50).name == "classification"
    with pytest.raises(InvalidInputError, match="no table is about sets alone; name one of regression, classification"):
        fg.bounds.table(fg.bounds.Setting(T=5, problem="sets"), k=50)
    for call in (lambda: fg.bounds.table(TASKS), lambda: fg.bounds.table("Table 1", TASKS)):
        with pytest.raises(InvalidInputError, match=r"tasks are given, but not the number of steps: give k="):
            call()
    with pytest.raises(InvalidInputError, match="give tasks once, alone or after the name"):
        fg.bounds.table(TASKS, TASKS, k=3)
    for number, name in enumerate(("regression", "classification", "sgd"), 1):
        for spelling in (name, number, f"table{number}", f"TABLE {number}", f"Tab. {number}", str(number)):
            assert fg.bounds.table(spelling).name == name
    for name in (0, 4, True, "4", "t3", "Theorem 1"):
        with pytest.raises(InvalidInputError, match="the name of a table must be"):
            fg.bounds.table(name)


def test_the_second_argument_of_crossovers_may_be_orderings():
    for given in ("random", fg.orderings.WithReplacement(), ["iid", "random"], ("cyclic", fg.orderings.Cyclic())):
        found = fg.bounds.crossovers(TASKS, given)
        assert list(found) == list(fg.bounds.crossovers(TASKS, orderings=given))
    assert {row.ordering for row in found} == {"cyclic"}
    with pytest.raises(InvalidInputError, match="T is the number of tasks, got 'random'"):
        fg.bounds.crossovers(10, "random")
    with pytest.raises(InvalidInputError, match=r"ordering must be one of .*, got 'explicit"):
        fg.bounds.crossovers(TASKS, fg.orderings.Explicit([0, 1]))


def test_objects_are_cited_as_their_names_are():
    row = fg.bounds.evaluate(TASKS, "random", k=10).tightest("loss")
    claim = fg.claims.get("Theorem 8")
    assert fg.bounds.cite(row) == fg.bounds.cite(row.bound) == fg.bounds.cite(row.bound.key)
    assert fg.bounds.cite(claim) == fg.bounds.cite(claim.label) == fg.bounds.cite("thm8")
    for wrong in (3, None, TASKS):
        with pytest.raises(InvalidInputError, match="expected a bound, a claim, a row of bounds, or the key"):
            fg.bounds.cite(wrong)


@pytest.mark.parametrize("name", ["Theorem 8", "theorem  8", "Theorem8", "Thm 8", "thm. 8", "Evron et al. 2026, Thm 8"])
def test_the_number_in_the_pdf_is_a_name_in_all_spellings(name):
    assert fg.claims.get(name).label == fg.bounds.get(name).label == "thm:random_convergence_rate"
    assert fg.bounds.cite(name) == fg.bounds.cite("Theorem 8")


def test_numbers_that_no_statement_has_are_no_names():
    for name in ("Theorem 9", "Theorem 88", "8", "Thm", "Theorem 8.1"):
        with pytest.raises(InvalidInputError, match="no claim"):
            fg.claims.get(name)


def test_runs_and_declarations_know_the_same_words_for_orderings():
    """Every word is an ordering of a run, and what a bound on this ordering covers."""
    words = {
        "iid": "i.i.d.", "i.i.d.": "i.i.d.", "withreplacement": "with replacement", "random": "with replacement",
        "GreedyDistance": "greedy", "greedy-distance": "greedy", "greedy": "greedy", "RESHUFFLED": "reshuffled",
        "greedy single pass": "greedy single pass", "permutation": "without replacement", "Cyclic": "cyclic",
        "norm_weighted": "norm-weighted", "greedy-distance repeat=false": "greedy single pass",
    }  # fmt: skip
    for word, covered in words.items():
        ordering = as_ordering(word)
        fg.run(TASKS, word, k=2)
        assert ordering_named(word) == covered
        assert covered in describe_ordering(ordering)
        assert ordering_named(ordering) == ("with replacement" if covered == "i.i.d." else covered)
    for name in fg.orderings.registry:
        cls = fg.orderings.registry.get(name)
        spellings = (cls.__name__, name, name.replace("-", " "), name.replace("-", ""))
        assert {fg.orderings.registry.named(spelling) for spelling in spellings} == {name}
    bound = fg.bounds.get("Theorem 8")
    for given, covered in (
        (fg.orderings.Cyclic(), ("cyclic",)),
        (["cyclic", "random", "WithReplacement"], ("cyclic", "with replacement")),
        ([fg.orderings.Reshuffled(), "any"], ("reshuffled", "any")),
    ):
        assert dataclasses.replace(bound, orderings=given).orderings == covered
    with pytest.raises(InvalidInputError, match=r"orderings must be from .*, got Explicit"):
        dataclasses.replace(bound, orderings=fg.orderings.Explicit([0]))
