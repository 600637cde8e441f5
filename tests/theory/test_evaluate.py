"""What applies, what does not and why, what is tightest, what says nothing; and crossovers."""

import math
import re
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

import forgetting as fg
from forgetting.bounds import Bound, Range, Setting, all_bounds, crossovers, evaluate, get, register, unregister
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.theory.statement import Quantity

orderings, schemes = fg.orderings, fg.schemes
TASKS = fg.families.gaussian(T=4, d=6, rank=[1, 2, 2, 3], seed=3)


def rows_of(problem, ordering, k, **more):
    return {row.bound.key: row for row in evaluate(problem, ordering, k, **more)}


def test_all_rows_come_back_sorted_with_those_that_do_not_apply_last():
    rows = evaluate(TASKS, orderings.WithReplacement(), 10)
    assert {row.bound.key for row in rows} == {bound.key for bound in all_bounds()}
    applies = [row.applies for row in rows]
    assert applies == sorted(applies, reverse=True)
    exact = [row.value for row in rows if row.applies and row.bound.kind != "rate"]
    assert exact == sorted(exact)
    assert all(row.why_not and math.isnan(row.value) for row in rows if not row.applies)
    assert all(row.why_not == "" and row.value >= 0 for row in rows if row.applies)


def test_the_tightest_of_each_quantity_is_marked_once():
    rows = evaluate(TASKS, orderings.WithReplacement(), 50)
    for quantity in ("loss", "forgetting", "objective", "residual", "regret"):
        marked = [row for row in rows if row.tightest and row.quantity == quantity]
        uppers = [row.value for row in rows.applicable(quantity) if row.bound.kind == "upper"]
        assert len(marked) == 1
        assert marked[0].value == pytest.approx(min(uppers), rel=1e-11)
        assert rows.tightest(quantity) is marked[0]


def test_parameters_are_read_off_the_problem():
    setting = evaluate(TASKS, orderings.WithReplacement(), 5).setting
    assert (setting.T, setting.d, setting.rank_avg, setting.rank_max) == (4, 6, 2.0, 3)
    assert setting.rank_joint == TASKS.rank_joint == 6
    assert setting.scale == pytest.approx(TASKS.scale)
    assert setting.weight_ratio == pytest.approx(TASKS.radius**2)
    weighted = evaluate(TASKS, orderings.NormWeighted(), 5).setting
    assert weighted.weight_ratio == pytest.approx(TASKS.radius_sq_mean)


def test_the_start_enters_through_the_distance():
    at_solution = evaluate(TASKS, orderings.WithReplacement(), 5, w0=TASKS.w_star)
    assert all(row.value == pytest.approx(0, abs=1e-20) for row in at_solution.applicable("loss"))
    assert not any(row.vacuous for row in at_solution)


def test_joint_rank_rows_are_tighter_where_the_data_leave_directions_out():
    wide = fg.families.gaussian(T=3, d=50, rank=1, seed=0)
    rows = rows_of(wide, orderings.WithReplacement(), 10)
    # D = 3, r = 1: sqrt(2) against min(sqrt(49), sqrt(3))
    ratio = rows["thm:random_convergence_rate/loss/D"].value / rows["thm:random_convergence_rate/loss"].value
    assert ratio == pytest.approx(math.sqrt(2 / 3))
    # 2 against 49
    ratio = rows["evron2022:random/forgetting/D"].value / rows["evron2022:random/forgetting"].value
    assert ratio == pytest.approx(2 / 49)


def test_a_kernel_has_no_dimension_but_a_joint_rank():
    X = np.random.default_rng(0).standard_normal((4, 9))
    kernel = fg.KernelTasks(X @ X.T, X @ np.ones(9), groups=[0, 0, 1, 1])
    rows = rows_of(kernel, orderings.WithReplacement(), 10)
    assert rows["thm:random_convergence_rate/loss"].why_not == "needs d, not known here"
    assert rows["thm:random_convergence_rate/loss/D"].applies
    assert rows["thm:cl_by_sgd_main/loss"].applies


@pytest.mark.parametrize(
    ("key", "last_vacuous", "ordering"),
    [
        ("thm:cl_by_sgd_main/loss", 256, "with replacement"),  # 2/256^(1/4) = 1/2
        ("thm:cl_by_sgd_main/forgetting", 10001, "with replacement"),  # 5/10000^(1/4) = 1/2
        ("thm:cl_by_sgd_wor/loss", 38417, "without replacement"),  # 7/38416^(1/4) = 1/2
        ("thm:cl_by_sgd_wor/forgetting", 38417, "without replacement"),
        ("thm:pocs-rate/residual/with", 38416, "with replacement"),
    ],
)
def test_universal_bounds_say_nothing_until(key, last_vacuous, ordering):
    setting = Setting(T=10**6, d=10**9, rank_avg=1, eta=1.0, beta=1.0)
    rows = rows_of(setting, ordering, last_vacuous)
    assert rows[key].applies
    assert rows[key].vacuous
    assert not rows_of(setting, ordering, last_vacuous + 1)[key].vacuous


def test_lower_bounds_and_rates_are_never_vacuous_nor_tightest():
    rows = evaluate(fg.families.two_lines(0.3), orderings.WithReplacement(), 2)
    others = [row for row in rows.applicable() if row.bound.kind != "upper"]
    assert {row.bound.kind for row in others} == {"lower", "rate"}
    assert not any(row.vacuous or row.tightest for row in others)


# Orderings and schemes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ordering", "k", "covered"),
    [
        (orderings.WithReplacement(), 4, "thm:cl_by_sgd_main/loss"),
        (orderings.WithReplacement(p=[1, 1, 1, 1]), 4, "thm:cl_by_sgd_main/loss"),
        (orderings.WithReplacement(p=[4, 1, 1, 1]), 4, "prop:mean_norm/loss/weights"),
        (orderings.WithReplacement(p=TASKS.norms**2), 4, "prop:mean_norm/loss"),
        (orderings.NormWeighted(), 4, "prop:mean_norm/forgetting/corrected"),
        (orderings.WithoutReplacement(), 4, "thm:cl_by_sgd_wor/loss"),
        (orderings.Reshuffled(), 4, "thm:cl_by_sgd_wor/loss"),
        (orderings.Cyclic(), 4, "evron2022:cyclic/forgetting"),
        (orderings.GreedyDistance(), 4, "tsipory2025:repeated/loss"),
        (orderings.Explicit([0, 1, 2, 3]), 4, "lem:regret_bound/regret"),
    ],
    ids=str,
)
def test_ordering_is_recognised(ordering, k, covered):
    assert rows_of(TASKS, ordering, k)[covered].applies


@pytest.mark.parametrize(
    ("ordering", "k", "key", "reason"),
    [
        (orderings.WithReplacement(p=[4, 1, 1, 1]), 4, "thm:cl_by_sgd_main/loss", "covers with replacement orderings"),
        (orderings.WithReplacement(p=[1, 1, 1, 0]), 4, "prop:mean_norm/loss/weights",
         "needs every task to be drawn: task 3 is never drawn, and may keep all of its loss"),
        (orderings.WithReplacement(p=[1, 1e-300, 1, 1]), 4, "here:last-iterate/loss/weights",
         "needs every task to be drawn: task 1 is drawn with probability 3.3e-301, too small to compute with"),
        (orderings.WithReplacement(p=[1, 1e-300, 1, 1]), 4, "here:projections/residual/weights",
         "needs every task to be drawn: task 1 is drawn with probability 3.3e-301, too small to compute with"),
        (orderings.Reshuffled(), 5, "thm:cl_by_sgd_wor/loss", "covers without replacement orderings"),
        (orderings.Cyclic(), 5, "evron2022:cyclic/forgetting", "k = 5, but the bound covers k >= 1, a multiple of T"),
        (orderings.Explicit([0, 1]), 2, "evron2022:cyclic/forgetting", "covers cyclic orderings"),
        (orderings.WithReplacement(), 2, "thm:random_convergence_rate/loss", "k = 2, but the bound covers k >= 3"),
        (orderings.WithoutReplacement(), 1, "thm:cl_by_sgd_wor/loss", "k = 1, but the bound covers 2 <= k <= T = 4"),
        (orderings.WithoutReplacement(), 4, "thm:wor_sgd_last_iterate_main/objective",
         "k = 4, but the bound covers 2 <= k <= T-1 = 3"),
        (orderings.GreedyDistance(repeat=False), 4, "tsipory2025:single-pass/loss/lower", "is for d >= 30"),
        (orderings.WithReplacement(), 4, "sgd:lan-2012/averaged_objective", "needs sigma, not known here"),
        (orderings.NormWeighted(), 4, "strohmer2009:single rows/error", "is for tasks of rank 1"),
        (orderings.Cyclic(), 4, "gower2015:any weights/error", "covers i.i.d. orderings"),
        (orderings.WithReplacement(), 4, "lem:in_to_all_sample/forgetting", "needs previous_loss, not known here"),
        (orderings.WithReplacement(), 4, "cor:pocs_forgetting/forgetting/with", "covers classification or sets"),
        (orderings.WithReplacement(), 0, "thm:cl_by_sgd_main/loss/proof", "k = 0, but the bound covers k >= 1"),
    ],
)  # fmt: skip
def test_the_reason_is_given(ordering, k, key, reason):
    row = rows_of(TASKS, ordering, k)[key]
    assert not row.applies
    assert row.why_not == reason
    assert reason in str(row)


@pytest.mark.parametrize(("ordering", "covered"), [
    (orderings.WithReplacement(), {"with replacement", "i.i.d."}),
    (orderings.WithReplacement(p=[1, 2, 1, 1]), {"i.i.d."}),
    (orderings.NormWeighted(), {"norm-weighted", "i.i.d."}),
    (orderings.Reshuffled(), {"without replacement"}),
], ids=lambda value: str(value) if isinstance(value, orderings.Ordering) else '')  # fmt: skip
def test_ordering_is_recognised_for_bare_numbers(ordering, covered):
    rows = evaluate(Setting(T=4, d=9, rank_avg=1, radius_sq_mean=1, weight_ratio=1, eta=1, beta=1), ordering, 3)
    for row in rows.applicable():
        assert covered & {*row.bound.orderings} or "any" in row.bound.orderings
    assert {name for row in rows.applicable() for name in row.bound.orderings} >= covered


def test_nothing_applies_after_an_ordering_has_run_out():
    rows = evaluate(TASKS, orderings.WithoutReplacement(), 5)
    assert not rows.applicable()
    assert all("ends after 4 steps" in row.why_not for row in rows)


@pytest.mark.parametrize("scheme", [None, schemes.Kaczmarz(), schemes.GradientDescent(), schemes.SGD(1.0)], ids=str)
def test_projection_schemes_get_the_same_rows(scheme):
    plain = evaluate(TASKS, orderings.WithReplacement(), 9)
    assert [row.value for row in evaluate(TASKS, orderings.WithReplacement(), 9, scheme=scheme).applicable()] == [
        row.value for row in plain.applicable()
    ]


def test_sgd_gets_the_sgd_bounds_at_its_own_smoothness():
    rows = rows_of(TASKS, orderings.WithReplacement(), 16, scheme=schemes.SGD(0.5))
    # x = 1/2, beta = 1: e |w|^2 / (1.5 * 2^2.25)
    expected = math.e / (1.5 * 2**2.25) * float(TASKS.w_star @ TASKS.w_star)
    assert rows["thm:sgd_last_iterate_main/objective"].value == pytest.approx(expected)
    assert rows["thm:sgd_last_iterate_main/objective/greedy"].why_not == "is for eta = 1/beta"
    assert rows["thm:cl_by_sgd_main/loss"].why_not == "covers projection schemes"
    on_loss = schemes.SGD(1 / TASKS.radius**2, objective="loss")
    rows = rows_of(TASKS, orderings.WithReplacement(), 16, scheme=on_loss)
    assert rows["thm:sgd_last_iterate_main/objective/greedy"].value == pytest.approx(math.e / 4 * TASKS.scale)
    assert evaluate(TASKS, orderings.WithReplacement(), 16, scheme=on_loss).setting.beta == TASKS.radius**2


def test_too_large_a_step_is_named():
    rows = rows_of(TASKS, orderings.WithReplacement(), 16, scheme=schemes.SGD(2.0))
    assert rows["thm:sgd_last_iterate_main/objective"].why_not == "eta must be below 2/beta"
    assert rows["lem:regret_bound/regret"].why_not == "eta must be below 2/beta"
    assert rows["trivial/loss"].applies
    assert not rows_of(TASKS, orderings.WithReplacement(), 16, scheme=schemes.SGD(2.1))["trivial/loss"].applies


@pytest.mark.parametrize(("beta", "eta", "reason"), [
    (0.0, 1.0, "beta must be positive, got 0"),
    (-1.0, 1.0, "beta must be positive, got -1"),
    (1.0, 0.0, "eta must be positive, got 0"),
    (1.0, 2.0, "eta must be below 2/beta"),
])  # fmt: skip
def test_bad_step_size_or_smoothness(beta, eta, reason):
    setting = Setting(T=9, d=9, rank_avg=1, eta=eta, beta=beta)
    bound = get("thm:sgd_last_iterate_main/objective")
    row = rows_of(setting, "with replacement", 5)[bound.key]
    assert (row.applies, row.why_not) == (False, reason)
    with pytest.raises(InvalidInputError, match=reason):
        bound.value(setting, 5)


def test_a_setting_with_a_step_size_is_sgd():
    setting = Setting(T=9, d=9, rank_avg=1, radius=2)
    assert rows_of(setting, "with replacement", 5)["thm:cl_by_sgd_main/loss"].applies
    half = rows_of(replace(setting, eta=0.5, beta=1.0), "with replacement", 5)
    assert half["thm:cl_by_sgd_main/loss"].why_not == "covers projection schemes"
    assert half["thm:sgd_last_iterate_main/objective"].applies
    given = evaluate(setting, "with replacement", 5, scheme=schemes.SGD(0.1, objective="loss")).setting
    assert (given.eta, given.beta) == (0.1, 4.0)


def test_other_schemes_get_only_what_covers_them():
    rows = evaluate(TASKS, orderings.WithReplacement(), 9, scheme=fg.schemes.Ridge(0.1))
    assert {row.bound.label for row in rows.applicable()} == {"trivial", "here:ridge"}
    assert {row.quantity for row in rows.applicable()} == {
        *("loss", "forgetting", "next_loss", "residual", "regret", "error")
    }


def test_affine_sets_are_regression_and_others_get_the_rates_of_projections():
    affine = fg.ConvexSets([fg.Affine(X, y) for X, y in (TASKS.task(m) for m in range(4))])
    assert rows_of(affine, orderings.WithReplacement(), 9)["thm:random_convergence_rate/loss"].applies
    halves = fg.ConvexSets([fg.Halfspace([1.0, 0.0], 1.0), fg.Halfspace([0.0, 1.0], 2.0)])
    rows = rows_of(halves, orderings.WithReplacement(), 16)
    assert rows["thm:pocs-rate/residual/with"].value == pytest.approx(17.5)  # w* = (1, 2): 7 * 5 / 2
    assert rows["cor:pocs_forgetting/forgetting/with"].value == pytest.approx(17.5)
    assert rows["thm:cl_by_sgd_main/loss"].why_not == "covers regression"


class Separated(fg.Problem):
    """Three classification tasks of somebody else's, solved by (1, 0), which is known from a start at 0 only."""

    kind = "classification"
    num_tasks, dim, radius = 3, 2, 2.0
    project = task_loss = task_losses = distances = None

    def nearest_solution(self, w0):
        return super().nearest_solution(w0) if w0.any() else np.array([1.0, 0.0])


def test_classification_is_recognised_by_what_a_problem_states():
    problem = Separated()
    rows = rows_of(problem, orderings.WithReplacement(), 48)
    assert rows["evron2023:random/forgetting"].value == pytest.approx(4 / math.e)  # S = 4: exp(-48/(4 * 3 * 4))
    assert rows["cor:pocs_forgetting/forgetting/with"].value == pytest.approx(28 * 48**-0.25)
    with pytest.raises(NotSupportedError, match="pass a Setting"):
        evaluate(problem, orderings.WithReplacement(), 4, w0=[1.0, 1.0])


# Errors ---------------------------------------------------------------------------------------------------------------


def test_bounds_that_need_a_common_solution_say_which_task_has_none():
    clash = fg.RegressionTasks([[[1.0, 0.0]], [[1.0, 0.0]]], [[1.0], [2.0]])
    rows = evaluate(clash, orderings.WithReplacement(), 3)
    assert not any(row.applies for row in rows if not row.bound.noisy)
    row = next(row for row in rows if row.bound.key == "thm:cl_by_sgd_main/loss")
    assert row.why_not.startswith("needs jointly realizable tasks: no w solves task")
    assert "task 0" in row.why_not
    with pytest.raises(InvalidInputError, match="jointly realizable"):
        row.bound.value(rows.setting, 3)


@pytest.mark.parametrize(
    ("key", "k", "change", "message"),
    [
        ("thm:random_convergence_rate/loss", 2, {}, "k = 2"),
        ("thm:cl_by_sgd_wor/loss", 10, {}, "2 <= k <= T = 9"),
        ("thm:random_convergence_rate/loss", 5, {"rank_avg": None}, "needs rank_avg"),
        ("thm:random_convergence_rate/loss/proof", 5, {"T": None, "d": None}, "rank_joint"),
        ("sgd:srebro-2010/averaged_objective", 5, {"eta": 1.0}, "below 1/beta"),
        ("evron2022:alternating/forgetting", 5, {}, "T = 2"),
        ("thm:cl_by_sgd_main/loss", 2.5, {}, "whole number"),
    ],
)
def test_a_bound_outside_its_range_is_an_error(key, k, change, message):
    setting = Setting(**{"T": 9, "d": 9, "rank_avg": 1, "eta": 0.5, "beta": 1, **change})
    with pytest.raises(InvalidInputError, match=message):
        get(key).value(setting, k)


@pytest.mark.parametrize("numbers", [
    {"T": 0}, {"d": 2, "rank_avg": 3}, {"dist_sq": -1}, {"radius": math.nan}, {"T": 2, "rank_avg": 1, "rank_joint": 3},
    {"rank_avg": 3, "rank_joint": 2}, {"d": 1.5},
], ids=str)  # fmt: skip
def test_numbers_that_cannot_be_are_refused(numbers):
    with pytest.raises(InvalidInputError):
        Setting(**numbers)


def test_unknown_names_are_refused_with_a_hint():
    with pytest.raises(InvalidInputError, match="did you mean thm:cl_by_sgd_main/loss"):
        get("thm:cl_by_sgd_main")
    with pytest.raises(InvalidInputError, match="with replacement"):
        evaluate(Setting(), "randm", 3)
    with pytest.raises(InvalidInputError, match="expected a problem"):
        evaluate(3, orderings.Cyclic(), 3)


# Registry -------------------------------------------------------------------------------------------------------------


def test_a_print_has_the_tightest_first_and_one_line_for_each_statement():
    rows = evaluate(fg.families.two_lines(0.3), "random", k=100)
    lines = str(rows).splitlines()
    assert lines[0] == f"Bounds after k = 100 steps: {len(rows.applicable())} of {len(rows)} apply"
    others = lines.index("others that apply:")
    best = [row for row in rows if row.tightest]
    quantities = [line.split()[0] for line in lines[2:others]]
    assert quantities == sorted({row.quantity for row in best}, key=get_args(Quantity).index)
    for row in best:
        assert any(f"[{row.bound.key}]" in line for line in lines[2:others])
    statements = {(row.quantity, row.bound.label, row.bound.kind) for row in rows if row.applies and not row.tightest}
    assert len(lines[others + 1 : -1]) == len(statements)
    folded = sum(int(match[1]) for line in lines if (match := re.search(r"\(\+ (\d+) variant", line)))
    assert len(best) + len(statements) + folded == len(rows.applicable())
    assert lines[-1].startswith(f"{len(rows) - len(rows.applicable())} do not apply")


@pytest.mark.parametrize(
    "word", ["random", "with-replacement", "WithReplacement", "with_replacement", "With Replacement"]
)
def test_orderings_are_known_in_every_spelling(word):
    tasks = fg.families.two_lines(0.5)
    plain = evaluate(tasks, "with replacement", 10)
    assert [row.value for row in evaluate(tasks, word, 10).applicable()] == [row.value for row in plain.applicable()]
    assert len(evaluate(Setting.of(tasks), word, 10).applicable("regret")) == len(plain.applicable("regret"))
    assert Bound("mine/loss", "mine", "me", "loss", (word,), formula="1").orderings == ("with replacement",)
    assert fg.run(tasks, word, 5).order.tolist() == fg.run(tasks, "with-replacement", 5).order.tolist()
    assert crossovers(tasks, orderings=word).winner(word, "loss", 10).key == "two-lines:random/loss"


def test_statements_are_known_by_their_numbers_in_the_paper():
    assert get("Theorem 8") is get("thm:random_convergence_rate/loss")
    assert fg.claims.get("lemma  c.8") is fg.claims.get("lem:Q trace")
    assert fg.claims.get("Theorem 12", "general").label == "thm:sgd_last_iterate_main"
    assert get("Evron et al. 2022, Theorem 10").label == "evron2022:alternating"
    assert fg.bounds.cite("Theorem 8") == fg.bounds.cite("table 1") == fg.bounds.cite("evron2026continual")
    with pytest.raises(InvalidInputError, match="no bound 'Theorem 88'"):
        get("Theorem 88")


def test_crossovers_take_tasks():
    tasks = fg.families.gaussian(T=10, d=50, rank=2, seed=0)
    stretches = crossovers(tasks, rows="stated")
    numbers = crossovers(d=50, T=10, rank_avg=2, rank_max=2, rank_joint=20, rows="stated")
    assert {(s.ordering, s.quantity, s.bound.key) for s in stretches} >= {
        (s.ordering, s.quantity, s.bound.key) for s in numbers if s.last is None
    }
    with pytest.raises(InvalidInputError, match="are those of the tasks"):
        crossovers(tasks, T=10)


def test_one_declaration_adds_a_bound_everywhere():
    mine = Bound("mine/loss", "mine", "nobody", "loss", ("cyclic",), "S/k^9", "S/k^9", lambda s, k: s.scale / k**9)
    register(mine)
    try:
        assert evaluate(TASKS, orderings.Cyclic(), 4).tightest("loss").bound is mine
        found = crossovers(d=5, T=4, rank_avg=1, orderings=["cyclic"], quantities=["loss"])
        assert found.winner("cyclic", "loss", 100) is mine
        with pytest.raises(InvalidInputError, match="already"):
            register(mine)
    finally:
        unregister("mine/loss")
    with pytest.raises(InvalidInputError, match=r"quantity must be one of loss, .*, got 'joy'"):
        replace(mine, quantity="joy")
    with pytest.raises(InvalidInputError, match=r"orderings must be from with replacement, .*, got 'sideways'"):
        replace(mine, orderings=("sideways",))
    with pytest.raises(InvalidInputError, match=r"mine/loss: schemes must be from projection, .*, got 'projecton'"):
        replace(mine, schemes=("projecton",))
    with pytest.raises(InvalidInputError, match=r"problems must be from regression, .*, got 'regresion'"):
        replace(mine, problems=("regresion",))


def test_a_scheme_short_of_its_limit_and_schemes_of_other_papers_are_told_so():
    tasks, order = fg.families.separable(T=2, d=3, n=4, margin=0.5, seed=0), orderings.WithReplacement()
    rows = {row.bound.key: row for row in evaluate(tasks, order, 5, scheme=fg.schemes.WeaklyRegularized(-50.0))}
    reason = rows["cor:pocs_forgetting/forgetting/with"].why_not
    assert reason == f"covers projection schemes, and not {fg.schemes.WeaklyRegularized.short_of_its_limit}"
    assert "and not" not in rows["here:sgd/objective"].why_not
    rows = {row.bound.key: row for row in evaluate(tasks, order, 5, scheme=fg.schemes.WeaklyRegularized(-50.0))}
    assert rows["jung2025:cyclic/objective"].why_not == "covers cyclic orderings"
    rows = {row.bound.key: row for row in evaluate(tasks, "cyclic", 6, scheme=fg.schemes.WeaklyRegularized(-50.0))}
    assert rows["jung2025:cyclic/objective"].why_not == (
        "covers gradient descent on the logistic loss schemes, which no scheme of this library is"
    )


def test_rates_of_levinstein_et_al_apply_to_the_strengths_that_have_their_names():
    order = orderings.WithReplacement()
    for word in ("fixed", "increasing"):
        rows = {(row.k, row.bound.key): row for row in evaluate(TASKS, order, [5, 9], scheme=f"ridge lam={word}")}
        for key in (f"levinstein2025:{word}/loss", f"here:ridge/loss/{word}"):
            assert rows[9, key].applies
            assert not rows[5, key].applies  # the strengths are those of 9 steps
        assert rows[9, "trivial/loss"].applies
        setting = evaluate(Setting(T=3, dist_sq=2.0, radius=3.0), "with replacement", 9, scheme=f"ridge lam={word}")
        assert {row.bound.key for row in setting.applicable("loss")} >= {f"here:ridge/loss/{word}"}
    rows = {row.bound.key: row for row in evaluate(TASKS, order, 5, scheme=fg.schemes.Ridge(1.0))}
    assert rows["levinstein2025:fixed/loss"].why_not == "covers ridge tuned to k schemes"
    expected = (1 + 1 / TASKS.radius**2) * rows["here:last-iterate/loss/universal"].bound.value(
        evaluate(TASKS, order, 5).setting, 5
    )
    assert rows["here:ridge/loss"].value == pytest.approx(expected)


def test_every_bound_is_documented():
    for bound in all_bounds():
        assert bound.title
        assert bound.source
        assert bound.assumptions
        assert bound.formula
        assert bound.latex.count("{") == bound.latex.count("}")
        assert "DIM" not in bound.formula + bound.latex
        assert bound.key in str(bound)
        assert isinstance(bound.range, Range)
    assert get("prop:mean_norm/forgetting").status == "refuted"
    assert all(b.status in ("rate only",) for b in all_bounds() if b.kind == "rate")


# Crossovers -----------------------------------------------------------------------------------------------------------


def test_crossovers_agree_with_a_scan():
    found = crossovers(d=40, T=60, rank_avg=3, up_to=400, orderings=["with replacement", "without replacement"])
    setting = Setting(d=40, T=60, rank_avg=3, eta=1.0, beta=1.0)
    for ordering, most in (("with replacement", 400), ("without replacement", 60)):
        for k in range(1, most + 1):
            rows = evaluate(setting, ordering, k)
            for quantity in ("loss", "forgetting"):
                winner = found.winner(ordering, quantity, k)
                best = rows.tightest(quantity)
                assert winner.value(setting, k) == pytest.approx(best.value, rel=1e-12)


def test_crossovers_of_the_statements():
    # in units of S, where the trivial bound is 1/2: 1/(k+1), (sqrt(u(3)) + sqrt(1/8))^2 / 2 = 0.319, 2.643/k
    found = crossovers(d=10**8, T=10**4, rank_avg=1, rows="stated", second_hand=False)
    spans = [(s.ordering, s.quantity, s.first, s.last, s.bound.label) for s in found]
    assert spans == [
        ("with replacement", "loss", 1, 1, "trivial"),
        ("with replacement", "loss", 2, None, "here:last-iterate"),
        ("with replacement", "forgetting", 1, 3, "trivial"),
        ("with replacement", "forgetting", 4, None, "here:last-iterate"),
        ("without replacement", "loss", 1, 10**4, "here:single-pass"),
        ("without replacement", "forgetting", 1, 5, "trivial"),
        ("without replacement", "forgetting", 6, 10**4, "here:single-pass"),
    ]
    assert "k = 1 to 3" in str(found)
    assert found.winner("cyclic", "loss", 3) is None


def test_crossovers_refuse_nonsense():
    with pytest.raises(InvalidInputError, match="rows must be"):
        crossovers(d=3, T=3, rank_avg=1, rows="some")
    with pytest.raises(InvalidInputError, match="up_to"):
        crossovers(d=3, T=3, rank_avg=1, up_to=0)


def test_bounds_that_need_a_start_at_zero_do_not_apply_elsewhere():
    tasks = fg.families.separable(T=4, d=5, n=3, margin=0.2, seed=0)
    at_zero = rows_of(tasks, orderings.Cyclic(), 12)
    elsewhere = {row.bound.key: row for row in fg.bounds.evaluate(tasks, orderings.Cyclic(), 12, w0=np.ones(5))}
    for key in ("evron2023:cyclic/forgetting", "evron2023:cyclic/residual"):
        assert at_zero[key].applies
        assert not elsewhere[key].applies
        assert "w_0 = 0" in elsewhere[key].why_not


def test_rates_of_the_limit_do_not_apply_to_a_finite_lambda():
    tasks = fg.families.separable(T=4, d=5, n=3, margin=0.2, seed=0)
    found = fg.bounds.evaluate(tasks, orderings.Cyclic(), 12, scheme=fg.schemes.WeaklyRegularized(-50.0))
    assert not any(row.applies and row.bound.kind == "upper" for row in found)


def test_worst_cases_need_room_for_two_lines():
    full = fg.RegressionTasks([[[1.0]], [[2.0]]], [[1.0], [2.0]])
    rows = rows_of(full, orderings.WithReplacement(), 6)
    assert not rows["two-lines:random/loss/lower"].applies
    assert "d >= 2" in rows["two-lines:random/loss/lower"].why_not


def test_a_step_size_beside_a_problem_is_a_matter_of_the_scheme():
    tasks = fg.families.gaussian(3, 6, 2)
    with pytest.raises(InvalidInputError, match=r"eta = 0.001 is a matter of the scheme: give scheme=fg\.schemes\.SGD"):
        evaluate(tasks, fg.orderings.WithReplacement(), 1000, eta=0.001)
    with pytest.raises(InvalidInputError, match="no parameter 'foo'"):
        evaluate(tasks, fg.orderings.WithReplacement(), 10, foo=1.0)
    with pytest.raises(InvalidInputError, match="expected an ordering"):
        evaluate(tasks, None, 10)
    small = evaluate(tasks, fg.orderings.WithReplacement(), 1000, scheme=fg.schemes.SGD(0.001))
    assert small.tightest("loss").bound.key == "trivial/loss"


@pytest.mark.parametrize(("eta", "beta"), [(-1.0, 1.0), (1.0, -1.0), (3.0, 1.0)])
def test_nothing_is_known_about_steps_that_lengthen_the_error(eta, beta):
    rows = evaluate(Setting(T=10, d=100, rank_avg=5, eta=eta, beta=beta), "with replacement", 7)
    assert not [row for row in rows.applicable() if row.bound.kind == "upper"]


def test_worst_cases_need_room_for_their_tasks():
    one = fg.families.gaussian(T=1, d=30, rank=30, seed=0)
    greedy = evaluate(one, fg.orderings.GreedyDistance(repeat=False), 1)
    assert not [row for row in greedy.applicable() if row.bound.kind == "lower"]
    first = evaluate(fg.families.gaussian(T=4, d=6, rank=2, seed=0), fg.orderings.WithoutReplacement(), 1)
    assert not [row for row in first.applicable("forgetting") if row.bound.kind == "lower"]


def test_crossovers_without_replacement_need_the_number_of_tasks():
    with pytest.raises(InvalidInputError, match="need T"):
        fg.bounds.crossovers(d=100, orderings=("without replacement",))
    assert {row.ordering for row in fg.bounds.crossovers(d=100)} == {"with replacement"}


def test_crossovers_refuse_what_they_cannot_compare():
    setting = {"d": 5, "T": 2, "rank_avg": 2}
    with pytest.raises(InvalidInputError, match="bounds on SGD need 0 < eta < 2/beta, got eta = 3 and beta = 1"):
        fg.bounds.crossovers(**setting, quantities=["objective"], eta=3.0)
    with pytest.raises(InvalidInputError, match="no bound is on 'foo'; choose from loss, forgetting"):
        fg.bounds.crossovers(**setting, quantities=["foo"])
    with pytest.raises(InvalidInputError, match="no parameter 'foo'"):
        fg.bounds.crossovers(**setting, foo=3)
    one = fg.bounds.crossovers(**setting, quantities="loss", orderings="with replacement")
    assert one == [
        row for row in fg.bounds.crossovers(**setting) if (row.ordering, row.quantity) == ("with replacement", "loss")
    ]


def test_a_scheme_is_a_scheme():
    with pytest.raises(InvalidInputError, match="expected a scheme such as"):
        fg.bounds.evaluate(fg.families.two_lines(0.5), fg.orderings.WithReplacement(), 5, scheme=0.5)
