"""The hunt: it finds what is false, confirms it, repeats itself, and its findings in the docs are as they say."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tools.survey import SurveyRow, hunt_one, main, table

import forgetting as fg
from effort import rounds
from forgetting.claims import Instance, Sides, get
from forgetting.errors import InvalidInputError
from forgetting.theory.candidates import complexity
from forgetting.theory.checking import setting_of
from forgetting.theory.draws import collection, with_beta
from forgetting.theory.expectations import as_least_squares
from forgetting.theory.set_draws import classified, sets

DOCS = Path(__file__).parents[2] / "docs"


def planted(claim, factor):
    """The same claim with its right side made too small."""

    def shrunk(sides):
        return lambda case: replace(sides(case), rhs=factor * sides(case).rhs)

    return replace(claim, label="planted", sides=shrunk(claim.sides), precise=shrunk(claim.precise))


TIGHT = [
    ("thm:random_convergence_rate", "loss"),  # two lines reach 0.99 at k = 100
    ("lem:regret_bound", None),  # one row learned again and again reaches 1
    ("lem:ratio_avg_last", "independent"),  # reaches 1 at k = 1 as eta tends to 0
]


@pytest.mark.slow
@pytest.mark.parametrize(("label", "part"), TIGHT)
def test_a_constant_20_per_cent_too_small_is_refuted_and_the_true_one_is_not(label, part):
    true = get(label, part)
    false = planted(true, 0.8)
    found = false.hunt(seed=1, budget=150, known=False)
    assert found.outcome == "refuted"
    assert found.verdict.how == "50 digits"
    assert found.verdict.lhs > found.verdict.rhs
    assert not false.check(found.instance).holds
    assert true.check(found.instance).holds
    kept = true.hunt(seed=1, budget=150, known=False)
    assert kept.outcome == "holds"
    assert kept.verdict.ratio > 0.8


def test_a_violation_that_50_digits_do_not_see_is_noise():
    # float64 is made to claim a violation, the precise path says that there is none
    claim = get("lem:regret_bound")
    wrong = replace(claim, label="planted", sides=lambda case: replace(claim.sides(case), rhs=0.0))
    found = wrong.hunt(budget=40)
    assert found.outcome == "holds"
    assert found.noise == 5


def test_a_violation_that_cannot_be_confirmed_is_only_suspected():
    claim = get("lem:regret_bound")
    wrong = replace(claim, label="planted", sides=lambda case: replace(claim.sides(case), rhs=0.0), precise=None)
    found = wrong.hunt(budget=40)
    assert found.outcome == "suspected"
    assert str(found).startswith(f"{wrong.name} [planted]: suspected by")


def without_second_term(claim):
    """The same claim with S/k, or the price of stability, left out."""

    def second(case):
        if claim.label == "lem:in_to_all_sample":
            return setting_of(case).scale / case.k
        case = as_least_squares(case)
        x, beta = with_beta(case)
        gap = case.tasks.nearest_solution(case.start) - case.start
        price = 4 * beta * x * (gap @ gap) / (case.k if claim.label == "lem:wr_stability" else case.k + 1)
        return price / (2 - x) if claim.part == "corrected" else price

    def without(sides):
        return lambda case: replace(both := sides(case), rhs=both.rhs - second(case))

    return replace(claim, label="planted", sides=without(claim.sides), precise=without(claim.precise))


SECOND_TERMS = [
    ("lem:in_to_all_sample", "next task, with replacement"),
    ("lem:in_to_all_sample", "next task, without replacement"),
    ("lem:in_to_all_sample", "loss, with replacement"),
    ("lem:wr_stability", "eta beta <= 1"),
    ("lem:wr_stability", "eta beta > 1"),
    ("lem:wr_stability", "corrected"),
    ("lem:wor_generalization", "eta beta <= 1"),
    ("lem:wor_generalization", "eta beta > 1"),
    ("lem:wor_generalization", "corrected"),
]


@pytest.mark.parametrize(("label", "part"), SECOND_TERMS)
def test_a_second_term_left_out_is_noticed_within_the_first_200_problems(label, part):
    # the families in which it matters are those of `_overwritten`, every tenth problem from the 66th on
    false = without_second_term(get(label, part))
    for index in range(65, 200, 10):
        case = false.settle(false.draw(np.random.default_rng([0, index]), index))
        if false.why_not(case) is None and not false.check(case).holds:
            break
    again = false.confirm(case)
    assert again.lhs > 2 * again.rhs
    assert get(label, part).check(case).holds


@pytest.mark.slow
@pytest.mark.parametrize(("label", "part"), SECOND_TERMS[::4])
def test_a_hunt_refutes_a_statement_without_its_second_term(label, part):
    assert without_second_term(get(label, part)).hunt(budget=300, known=False).outcome == "refuted"


def test_what_was_seen_first_may_be_overwritten_where_nothing_else_is_missed():
    tasks = fg.RegressionTasks([[[1, 0]], [[1e-3, 1e-3]]], [[1], [2e-3]])
    case = Instance(tasks, fg.orderings.WithReplacement(), k=2)
    verdict = without_second_term(get("lem:in_to_all_sample", "loss, with replacement")).confirm(case)
    assert verdict.lhs == pytest.approx(1 / 64)
    assert verdict.rhs == pytest.approx(2.5e-7)


LARGE = range(79, 700, 40)


def test_hunts_reach_hundreds_of_tasks_and_of_dimensions():
    shapes = [(one.num_tasks, one.dim) for i in LARGE for one in [collection(np.random.default_rng([0, i]), i)]]
    assert max(T for T, _ in shapes) > 200
    assert max(d for _, d in shapes) > 200
    assert max(min(shape) for shape in shapes) > 100
    for draw in (sets(), classified()):
        assert max(draw(np.random.default_rng([0, i]), i).posed.dim for i in LARGE) > 200


@pytest.mark.parametrize(
    ("label", "branches"),
    [("thm:cl_by_sgd_wor", ("universal", "dimension")), ("thm:random_convergence_rate", ("rows", "dimension"))],
)
def test_every_branch_of_a_minimum_binds_on_a_problem_that_is_hunted(label, branches):
    claim, binding = get(label, "forgetting"), set()
    for index in (*range(60, 64), *LARGE[:6]):
        case = claim.draw(np.random.default_rng([0, index]), index)
        values = {
            name: fg.bounds.get(f"{label}/forgetting/{name}").value(setting_of(case), case.k) for name in branches
        }
        binding.add(min(values, key=values.get))
        if index in LARGE[:2]:
            verdict = claim.check(case)
            assert verdict.holds
            assert verdict.rhs == pytest.approx(min(values.values()))
    assert binding == set(branches)


def test_neighbours_of_large_problems_are_not_tried():
    claim = get("thm:cl_by_sgd_wor", "loss")
    large = next(case for i in LARGE if (case := claim.draw(np.random.default_rng([0, i]), i)).posed.num_tasks > 40)
    sizes = []

    def sides(case):
        sizes.append(case.tasks.geometry.num_distinct)
        return Sides(sizes[-1], 1e6)

    found = replace(claim, sides=sides, draw=lambda rng, i: large if i == 3 else claim.draw(rng, i)).hunt(budget=30)
    assert found.instance is large
    assert max(sizes[20:]) <= 12 < large.tasks.geometry.num_distinct


@pytest.mark.parametrize(
    ("label", "part", "budget"),
    [
        ("prop:mean_norm", "loss, uniform", 60),
        ("prop:mean_norm", "forgetting", 30),
        ("prop:mean_norm", "forgetting, uniform", 90),
        ("cor:dimensionality_bound", "rank equality", 60),
        ("cor:pocs_forgetting", "display, w_(k-1)", 60),
    ],
)
def test_what_is_known_to_be_false_is_found_and_saved(label, part, budget, tmp_path):
    row = hunt_one(label, part, seed=0, budget=budget, folder=str(tmp_path / "found"))
    assert row.outcome == "refuted"
    assert not row.surprising
    claim, case = get(label, part), Instance.load(tmp_path / row.file)
    again = claim.confirm(case)
    assert not again.holds
    assert not claim.check(case).holds
    assert f"{again.lhs:.4g} against {again.rhs:.4g}" in row.verdict


# ----------------------------------------------------------------------------------------- the simplest counterexample

#: Both sides by hand, and what is behind them.
BY_HAND = {
    # w = (1, 0) twice, then (1, 0) + 1.8 (-0.8, 0.6): the first task misses 1.44, two times of three
    ("cor:pocs_forgetting", "display, w_(k-1)"): (1.44**2 / 2 * 2 / 3, 1.8**2 / 2 / 3),
    ("cor:dimensionality_bound", "rank equality"): (1, 2),  # two clones of [[1]]
    # one task of norm 1 among 4000 of norm 0, not seen within 1000 steps
    ("prop:mean_norm", "loss, uniform"): ((4000 / 4001) ** 1000 / 4001 / 2, 2 / 4001 / 1000**0.25),
    # half of the draws are (1, 0), the others one of 5000 (0.01, 0.01): in the order A, B, A ends with loss 1/8; in the
    # order B, A, B ends with loss 0.01^2 / 8
    ("prop:mean_norm", "forgetting"): (1 / 4 / 2 * (1 / 8 + 0.01**2 / 8), 5 * 2 / 5001),
    # (1, 0) seen once by chance and overwritten by (1, 1) / 10^6 at once: it ends with loss 1/8, or less if seen again
    ("prop:mean_norm", "forgetting, uniform"): (1e-10 / 8 * (1 - 0.75 * 0.01), 5 * 2 * 1.02e-10 / 100),
    # (1, 0) and a tenth of (0.6, 0.8), which is w*: sine^4 cosine^2 / 8 against sine^4 (cosine^2 + 0.1^2) / 16
    ("reshuffling", "loss"): (0.8**4 * 0.36 / 8, 0.8**4 * 0.37 / 16),
    # (0, 0, 1) is the error after (1, 0, 0) and (0, 1, 0); less its part along (0, 1, 1), or along (1, 1, 1)
    ("mahdaviyeh2025", "replay against none"): (1 / 4 / 4, 2 / 9 / 4),
    ("mahdaviyeh2025", "random rows"): (1 / 4 / 4, 2 / 9 / 4),
}
TEN_TASKS = ("reshuffling", "distances, mean of starts")


def test_every_refuted_claim_has_numbers_by_hand():
    refuted = {(claim.label, claim.part) for claim in fg.claims.all() if claim.status == "refuted"}
    assert refuted == {*BY_HAND, TEN_TASKS}


@pytest.mark.parametrize(("label", "part"), list(BY_HAND)[:: rounds(2, 1)])
def test_the_simplest_counterexample_is_checked_by_hand(label, part):
    claim = get(label, part)
    found = claim.hunt(budget=90)
    size, largest = complexity(found.simplest), complexity(found.instance)
    assert size <= largest
    assert size[:2] <= (22, 14)  # numbers in the file, and digits of all of them
    again = claim.confirm(found.simplest)
    assert not again.holds
    assert not claim.check(found.simplest).holds
    assert (again.lhs, again.rhs) == pytest.approx(BY_HAND[label, part], rel=1e-4)


def test_a_counterexample_that_no_list_has_is_shrunk():
    claim = planted(get("thm:random_convergence_rate", "loss"), 0.9)  # two lines at a small angle and a large k
    found = claim.hunt(budget=10)
    assert not claim.confirm(found.simplest).holds
    (numbers, digits, T, d, _), worst = complexity(found.simplest), complexity(found.instance)
    assert (T, d) == (2, 2)
    assert numbers <= worst[0]
    assert digits < worst[1] / 2


def test_simplest_is_there_where_something_is_refuted_or_suspected():
    claim = get("lem:regret_bound")
    assert claim.hunt(budget=20).simplest is None
    wrong = replace(claim, label="planted", sides=lambda case: replace(claim.sides(case), rhs=0.0), precise=None)
    found = wrong.hunt(budget=20)
    assert found.outcome == "suspected"
    assert not wrong.check(found.simplest).holds


def test_complexity_counts_numbers_then_digits_then_sizes():
    one, two = (fg.RegressionTasks([[[x]]], [[x]]) for x in (1.0, 0.25))
    clones = fg.RegressionTasks([[[1.0]], [[1.0]]], [[1.0], [1.0]])
    cases = [Instance(one, None, 1), Instance(one, None, 2), Instance(two, None, 1), Instance(clones, None, 1)]
    sizes = [complexity(case) for case in cases]
    assert sizes == sorted(sizes)
    assert [size[1] - sizes[0][1] for size in sizes[:3]] == [0, 0, 2]  # 0.25 twice
    assert complexity(replace(cases[0], k=10**10))[1] == sizes[0][1]


def test_the_corrected_statement_is_hunted_beside_the_refuted_one():
    refuted = get("prop:mean_norm", "forgetting").hunt(budget=30)
    assert refuted.outcome == "refuted"
    assert get("prop:mean_norm", "forgetting, corrected").hunt(budget=100).outcome == "holds"


def test_same_seed_and_budget_same_hunt():
    claim = get("thm:random_convergence_rate", "forgetting")
    one, two, other = (claim.hunt(seed=seed, budget=60, known=False) for seed in (3, 3, 4))
    assert str(one) == str(two)
    assert (one.verdict.lhs, one.verdict.rhs) == (two.verdict.lhs, two.verdict.rhs)
    assert (one.tried, one.checked) == (two.tried, two.checked)
    assert (one.verdict.lhs, one.checked) != (other.verdict.lhs, other.checked)


def test_a_larger_budget_never_finds_less_among_fresh_problems():
    claim = get("thm:random_convergence_rate", "loss")
    small, large = claim.hunt(budget=30, known=False), claim.hunt(budget=100, known=False)
    assert large.verdict.ratio >= small.verdict.ratio > 0.98


def test_time_cuts_a_hunt_short_and_it_says_so():
    found = get("lem:in_to_all_sample", "loss, with replacement").hunt(budget=10**6, seconds=0.3)
    assert found.cut_short
    assert found.tried < 10**6
    assert "cut short" in str(found)
    assert not get("lem:regret_bound").hunt(budget=10, seconds=60).cut_short


def test_a_budget_of_nothing_is_refused():
    with pytest.raises(InvalidInputError, match="budget"):
        get("lem:regret_bound").hunt(budget=0)
    with pytest.raises(InvalidInputError, match="seconds"):
        get("lem:regret_bound").hunt(seconds=0)


def test_a_claim_that_applies_to_nothing_says_so():
    claim = replace(get("lem:regret_bound"), missing=lambda _: "never")
    found = claim.hunt(budget=9)
    assert (found.outcome, found.verdict, found.tried, found.checked) == ("not applicable", None, 7, 0)
    assert "applies to none of 7 problems" in str(found)  # 6 draws and the record


def test_the_command_writes_the_table_and_reports_surprises(tmp_path, capsys, monkeypatch):
    (tmp_path / "deep").mkdir()
    out = tmp_path / "deep" / "claims.md"
    arguments = ["--label", "cor:dimensionality_bound", "--budget", "60", "--processes", "1", "--out", str(out)]
    assert main([*arguments, "--save", str(tmp_path / "found")]) == 0
    assert "3 claims hunted" in capsys.readouterr().out
    text = out.read_text()
    assert "found/cor_dimensionality_bound_rank_equality.npz" in text
    assert (tmp_path / "found" / "cor_dimensionality_bound_rank_equality.npz").exists()
    false = planted(get("thm:random_convergence_rate", "loss"), 0.5)
    monkeypatch.setattr("tools.survey.all_claims", lambda: (false,))
    monkeypatch.setattr("tools.survey.get_claim", lambda label, part: false)
    assert main(["--budget", "10", "--processes", "1"]) == 1
    assert "unexpected: planted (loss)" in capsys.readouterr().out


@pytest.mark.slow
def test_the_command_in_two_processes_finds_the_same_as_in_one(tmp_path):
    texts = []
    for processes in ("1", "2"):
        out = tmp_path / f"{processes}.md"
        arguments = ["--label", "lem:gd_descent", "--budget", "5", "--processes", processes, "--out", str(out)]
        subprocess.run(
            [sys.executable, "-m", "tools.survey", *arguments], check=True, capture_output=True, cwd=DOCS.parent
        )
        texts.append(out.read_text())
    assert texts[0] == texts[1]


def test_a_gap_and_a_correction_are_named_in_the_table():
    row = SurveyRow("l", None, "s", "gap in the printed proof", "n", "holds", "holds on 3 problems", 3)
    assert row.verdict == "gap in the printed proof; holds on 3 problems"
    row = replace(row, source="Nobody 2030 (l)", noticed="half the constant")
    text = table([row], seed=0, budget=3)
    assert "| **Nobody 2030** (`l`): s | gap in the printed proof; holds on 3 problems | half the constant |" in text
    assert replace(row, status="refuted").surprising


# ------------------------------------------------------------------------------------------------- what the docs show


def test_make_hunt_may_replace_the_page():
    from forgetting.files.outputs import check_output

    check_output(DOCS / "claims.md", force=True)  # its manifest is kept with it


def documented():
    """The lines of the table in the docs: label, part, verdict, what is noticed; each has the statement of a claim."""
    lines = (DOCS / "claims.md").read_text().splitlines()
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines if line.startswith("| **")]
    rows = []
    for text, verdict, noticed in ([re.sub(r"\\(.)", r"\1", cell.strip()) for cell in row] for row in cells):
        for claim in fg.claims.all():  # a label and a part may have colons of their own
            name = f" (`{claim.label}`" + (f", {claim.part}" if claim.part else "") + "): "
            if text.endswith(name + claim.statement):
                rows.append((claim.label, claim.part, verdict, noticed))
                break
        else:
            pytest.fail(f"no claim is {text!r}")
    return rows


def test_the_docs_list_every_claim_with_its_statement_a_verdict_and_what_would_be_noticed():
    rows = {(label, part): rest for label, part, *rest in documented()}
    assert set(rows) == {(claim.label, claim.part) for claim in fg.claims.all()}
    for claim in fg.claims.all():
        verdict, noticed = rows[claim.label, claim.part]
        if claim.status == "refuted":
            assert verdict.startswith("refuted by ")
        else:
            assert re.search(r"holds on \d+ problems, worst (ratio|slack|residual)", verdict)
            assert "constant" in noticed
        assert verdict.startswith("gap in the printed proof") == (claim.status == "gap in the printed proof")
        assert "cut short" not in verdict


def test_the_docs_name_false_statements_first_then_gaps_then_the_table():
    headings = [line for line in (DOCS / "claims.md").read_text().splitlines() if line.startswith("## ")]
    assert [heading.split()[1] for heading in headings[:3]] == ["What", "Where", "All"]


def test_the_counterexamples_of_the_docs_reload_to_the_numbers_of_the_docs():
    text, files = (DOCS / "claims.md").read_text(), set()
    for label, part, verdict, _ in documented():
        if not verdict.startswith("refuted"):
            continue
        file = re.search(r"\(\[problem\]\((.*?)\)\)", verdict)[1]
        simplest = file.replace(".npz", "_simplest.npz")
        files |= {Path(file).name, Path(simplest).name}
        claim = get(label, part)
        for path in (file, simplest):
            case = Instance.load(DOCS / path)
            again = claim.confirm(case)
            assert not claim.check(case).holds
            assert not again.holds
            if path == file:
                assert f"{case}: {again.lhs:.4g} against {again.rhs:.4g}" in verdict
            else:
                sides = f"{again.lhs:.6g} against {again.rhs:.6g} ([problem]({simplest}))"
                assert f"{case.written(labels=claim.labels_matter)}: {sides}" in re.sub(r"\\(.)", r"\1", text)
    assert files == {path.name for path in (DOCS / "counterexamples").iterdir()}
    assert len(files) == 2 * sum(claim.status == "refuted" for claim in fg.claims.all())


def test_the_worst_ratios_of_the_docs_are_as_large_as_is_known():
    rows = {(label, part): verdict for label, part, verdict, _ in documented()}
    for (label, part), least in {
        ("thm:random_convergence_rate", "loss"): 0.99,
        ("lem:regret_bound", None): 0.9999,
        ("lem:ratio_avg_last", "independent"): 0.99,
        ("cor:polynomial_Q_spectrum", None): 0.98,
    }.items():
        assert least <= float(re.search(r"worst ratio (\S+) at", rows[label, part])[1]) <= 1


def test_no_verdict_of_the_docs_is_above_one():
    for *_, verdict in documented():
        found = re.search(r"worst ratio (\S+) at", verdict)
        assert found is None or float(found[1]) <= 1
        found = re.search(r"worst residual (\S+) at", verdict)
        assert found is None or float(found[1]) <= 1e-9


def test_numbers_of_a_hunt_can_be_checked_without_it():
    found = get("prop:mean_norm", "forgetting").hunt(budget=30)
    case = found.instance
    counts = np.asarray(case.extras["multiplicity"])
    weights = counts * case.problem.norms**2
    measured = fg.expect(case.problem, fg.orderings.WithReplacement(weights), case.k, w0=case.w0).forgetting
    assert found.verdict.lhs == pytest.approx(float(measured), rel=1e-9)
    gap = case.problem.nearest_solution(case.start) - case.start
    bound = 5 * (gap @ gap) * (counts @ case.problem.norms**2) / counts.sum() * (case.k - 1) ** -0.25
    assert found.verdict.rhs == pytest.approx(float(bound), rel=1e-9)
