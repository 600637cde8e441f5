"""One registry: every statement has one declaration and one status, and its formula says what it computes."""

import math
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import InvalidInputError
from forgetting.theory.expression import (
    BETA,
    DIM,
    ETA,
    RANK,
    E,
    K,
    S,
    T,
    X,
    exponential,
    gap,
    last_iterate,
    minimum,
    number,
    root,
)
from forgetting.theory.later.one_over_k import reach
from forgetting.theory.later.rate_constants import fresh, least_fresh
from forgetting.theory.numbering import PRINTED
from forgetting.theory.registry import add_statement, all_statements
from forgetting.theory.statement import STATUSES

STATEMENTS = all_statements()


def test_no_label_and_part_has_two_declarations_or_two_statuses():
    names = Counter((statement.label, statement.part) for statement in STATEMENTS)
    assert max(names.values()) == 1
    assert {statement.status for statement in STATEMENTS} <= set(STATUSES)
    for statement in STATEMENTS:
        for half in (statement.bound, statement.claim):
            if half is not None:
                assert (half.label, half.status, half.source) == (statement.label, statement.status, statement.source)
                assert (half.bound, half.claim) == (statement.bound, statement.claim)


def test_the_views_are_the_registry():
    assert [s.bound for s in STATEMENTS if s.bound is not None] == list(fg.bounds.all_bounds())
    assert [s.claim for s in STATEMENTS if s.claim is not None] == list(fg.claims.all())
    assert sum(s.bound is not None and s.claim is not None for s in STATEMENTS) > 30


@pytest.mark.parametrize(
    ("key", "label", "part"),
    [
        ("thm:pocs-rate/residual/without", "thm:pocs-rate", "without replacement"),
        ("thm:random_convergence_rate/forgetting", "thm:random_convergence_rate", "forgetting"),
        ("thm:wor_sgd_last_iterate_main/objective", "thm:wor_sgd_last_iterate_main", "general"),
        ("thm:wor_sgd_last_iterate_main/objective/log", "thm:wor_sgd_last_iterate_main", "eta = 1/(beta log T)"),
        ("cor:pocs_forgetting/forgetting/without", "cor:pocs_forgetting", "without replacement"),
    ],
)
def test_a_gap_in_a_proof_is_known_to_the_bound_and_to_the_claim(key, label, part):
    bound, claim = fg.bounds.get(key), fg.claims.get(label, part)
    assert bound.status == claim.status == "gap in the printed proof"
    assert bound.note == claim.note != ""


def test_a_bound_and_a_claim_that_say_different_things_are_no_statement():
    statement = next(s for s in STATEMENTS if s.bound is not None and s.claim is not None)
    with pytest.raises(InvalidInputError, match="one statement, but do not say the same"):
        add_statement(statement.bound, replace(statement.claim, status="refuted"), replace=True)
    assert statement.bound.claim is statement.claim


def test_a_statement_that_is_not_registered_has_no_other_half():
    bound, claim = fg.bounds.get("thm:cl_by_sgd_main/loss"), fg.claims.get("thm:cl_by_sgd_main", "loss")
    assert bound.claim is claim
    assert claim.bound is bound
    other, again = replace(bound, title="another"), replace(claim, title="another")
    assert (other.bound, other.claim, again.bound, again.claim) == (other, None, None, again)
    assert fg.bounds.cite(other) == fg.bounds.cite(bound) == fg.bounds.cite(again)


def test_every_label_of_the_paper_has_a_number_and_no_two_the_same():
    labels = {statement.label for statement in STATEMENTS if statement.label in PRINTED}
    assert labels == set(PRINTED) == {claim.label for claim in fg.claims.all()} & set(PRINTED)
    assert len({printed.number for printed in PRINTED.values()}) == len(PRINTED)
    for statement in STATEMENTS:
        if statement.label in PRINTED:
            assert PRINTED[statement.label].number in statement.source
    first = PRINTED["thm:random_convergence_rate"]
    assert first == ("Theorem 8", "Parameter-Dependent Forgetting Rate for Random With Replacement")


# ------------------------------------------------------------------------------------------- the text and the number

BASE = {
    "T": 20, "d": 30, "rank_avg": 5, "rank_max": 6, "rank_joint": 21, "dist_sq": 2, "radius": 3, "radius_sq_mean": 5,
    "weight_ratio": 7, "spectral_gap": 0.25, "rank_weighted": 5, "eta": 0.25, "beta": 2, "sigma": 2, "G": 3,
    "previous_loss": 0.5, "rarest_draw": 4,
}  # fmt: skip
#: settings at which conditions hold that BASE does not meet
CHANGES = [{}, {"T": 2, "rank_avg": 11}, {"eta": 0.5}, {"eta": 0.01, "beta": 0.5}, {"radius": 1, "T": 6, "rank_avg": 4},
           {"T": 29}, {"T": 30}, {"rank_avg": 1, "rank_max": 1, "rank_joint": 20}, {"eta": 0.1, "beta": 9}]  # fmt: skip
NOISE = {"floor": 0.5, "smoothness": 4, "noise": 3, "noise_max": 9, "centre_loss": 1, "centre_slope": 2,
         "centre_dist_sq": 16, "centre_noise": 2, "sigma": 1, "sgd_dist_sq": 2}  # fmt: skip
CHANGES += [{"misfit": fg.bounds.Misfit(**NOISE)}, {**CHANGES[-1], "misfit": fg.bounds.Misfit(**NOISE)}]
CHANGES += [{"penalty": 0.5}]
SYMBOLS = {
    "lambda/R^2": "penalty/radius^2",
    "|w_0 - w*|^2": "dist_sq", "E L(w_(k-1))": "previous_loss", "max_m(|X_m|^2 / (T p_m))": "weight_ratio",
    "max_m(1 / (T p_m))": "rarest_draw",
    "D^2": "dist_sq", "r_max": "rank_max", "Rbar": "radius_sq_mean",
    "lambda_min": "spectral_gap", "1/kappa_F^2": "spectral_gap",
}  # fmt: skip


def python_of(text):
    """A formula as Python writes it: a product has a star, a power has two."""
    for symbol, name in SYMBOLS.items():
        text = text.replace(symbol, name)
    text = re.sub(r"prod_\{j<=k\} (\(1 \+ x\(1-x/4\)/j\))", r"product(lambda j: \1)", text)
    text = re.sub(r"max_c (.*)", r"largest(lambda c: \1)", text)
    tokens = re.findall(r"\d+\.?\d*|[A-Za-z_]+|\S", text)
    result = []
    for before, token in zip(["", *tokens], tokens, strict=False):
        ends = re.fullmatch(r"\d+\.?\d*|[A-Za-z_]+|\)", before) and before not in FUNCTIONS and before != "lambda"
        starts = re.fullmatch(r"\d+\.?\d*|[A-Za-z_]+|\(", token)
        result.append(" * " if ends and starts else " ")
        result.append("**" if token == "^" else token)
    return "".join(result).replace("lambda * ", "lambda ").strip()


FUNCTIONS = (
    "min",
    "max",
    "floor",
    "sqrt",
    "exp",
    "log",
    "A",
    "A_x",
    "g",
    "h",
    "c",
    "u",
    "v",
    "u_gap",
    "u_W",
    "rho",
    "product",
    "largest",
    "lambda",
)


def as_int(n):
    """A whole number as an int, because 200.0^200.0 overflows and 200^200 does not."""
    return int(n) if n == int(n) else n


def best_draws(s, n):
    """The number of draws at which u(j) and the spectral gap give the least."""
    return min(range(n + 1), key=lambda j: (1 - s.spectral_gap) ** (n - j) * fresh(j))


def value_of(text, s, k):
    """The value of the text of a formula, with the definitions after it."""
    formula, *definitions = re.split(r", (?=[A-Za-z_]+(?:\([a-z]\))? = |about |constant |0 at |S/2 where )", text)
    joint = s.span if s.rank_joint is None else s.rank_joint
    x = None if s.eta is None or s.beta is None else s.eta * s.beta
    names = {
        "k": k, "e": math.e, "S": s.dist_sq * s.radius**2, "T": s.T, "d": s.d, "D": joint, "r": s.rank_avg,
        "eta": s.eta, "beta": s.beta, "x": x, "sigma": s.sigma, "G": s.G, "rank_max": s.rank_max,
        "dist_sq": s.dist_sq, "radius_sq_mean": s.radius_sq_mean, "weight_ratio": s.weight_ratio,
        "rarest_draw": s.rarest_draw,
        "spectral_gap": s.spectral_gap,
        "penalty": s.penalty, "radius": s.radius,
        "previous_loss": s.previous_loss, "r_p": s.rank_weighted, "sigma_star": s.sigma_star,
        "kappa_F": s.spectral_gap**-0.5,
        "min": min, "max": max, "floor": math.floor, "sqrt": math.sqrt, "exp": math.exp, "log": math.log,
        "u": fresh, "rho": reach, "v": lambda n: 1 / 2 if n % 2 == 0 else min(1, 1 / 2 + fresh(n - 1)),
        "u_W": lambda n: least_fresh(s, int(n)),
        "u_gap": lambda n: min((1 - s.spectral_gap) ** (n - j) * least_fresh(s, j) for j in (n, best_draws(s, n))),
        "A": lambda n: last_iterate(1, n), "A_x": lambda n: last_iterate(x, n),
        "product": lambda f: math.prod(f(j) for j in range(1, k + 1)),
        "largest": lambda f: max(f(c) for c in np.linspace(0, 1, 20001)),
    }  # fmt: skip
    if s.misfit is not None:
        m = s.misfit
        names |= {"L_min": m.floor, "H": m.smoothness, "N": m.noise, "gamma": m.noise_max**0.5, "L_c": m.centre_loss,
                  "g_c": m.centre_slope, "D_c": m.centre_dist_sq**0.5, "N_c": m.centre_noise}  # fmt: skip
    else:
        names["N"] = names["gamma"] = 0
    for definition in definitions:
        if match := re.match(r"([ghc])\(([nk])\) = (.*)", definition):
            name, letter, body = match.groups()
            code = compile(python_of(body), name, "eval")
            names[name] = lambda n, code=code, letter=letter: eval(code, {**names, letter: as_int(n)})
        elif match := re.match(r"([uv]) = (.*)", definition):
            names[match[1]] = eval(python_of(match[2]), names)
    return eval(python_of(formula), names)


#: words in place of a formula: its value is compared with what the library computes for such tasks
WORDS = ("two-lines:random/forgetting/lower", "two-lines:random/forgetting")
SPIRALS = ("swartworth2023:spiral/loss", "swartworth2023:spiral/forgetting")  # compared in test_later.py


@pytest.mark.parametrize(
    "bound", [b for b in fg.bounds.all_bounds() if b.key not in WORDS + SPIRALS], ids=lambda b: b.key
)
def test_the_text_of_a_formula_says_what_it_computes(bound):
    compared = 0
    for change in CHANGES:
        for k in (2, 3, 4, 20, 29, 400, 36):
            log_step = {"eta": 1 / (2 * math.log(k)), "beta": 2} if bound.key.endswith("/log") else {}
            setting = fg.bounds.Setting(**{**BASE, **change, **log_step})
            if bound.why_not(setting, k) is None:
                expected = bound.value(setting, k)
                tolerance = 1e-6 if "max_c" in bound.formula else 1e-9
                assert value_of(bound.formula, setting, k) == pytest.approx(expected, rel=tolerance), bound.formula
                compared += 1
    assert compared


def test_a_wrong_text_is_seen():
    right, wrong = 2 * S / root(K, 4), replace(2 * S / root(K, 4), text="3 S / k^(1/4)")
    setting = fg.bounds.Setting(**BASE)
    assert value_of(right.text, setting, 16) == right.compute(setting, 16)
    assert value_of(wrong.text, setting, 16) != wrong.compute(setting, 16)


def test_the_worst_case_in_words_is_that_of_two_lines():
    k = 7
    largest = max(
        float(fg.expect(fg.families.two_lines(theta), fg.orderings.WithReplacement(), k).forgetting)
        for theta in np.linspace(0.5, 0.56, 401)
    )
    for key in WORDS:
        assert fg.bounds.get(key).value(fg.bounds.Setting(T=2, d=2), k) == pytest.approx(largest, rel=1e-6)


# ------------------------------------------------------------------------------------------------------- expressions


@pytest.mark.parametrize(
    ("expression", "text", "latex"),
    [
        (2 * S / root(K, 4), "2 S / k^(1/4)", r"\frac{2S}{\sqrt[4]{k}}"),
        (S / K, "S/k", r"\frac{S}{k}"),
        (minimum(root(gap(DIM, RANK)), root(T * RANK)), "min(sqrt(d - r), sqrt(T r))",
         r"\min\left(\sqrt{d-\bar r},\sqrt{T\bar r}\right)"),
        (E * S / (2 * ETA * (2 - X) * K ** ((1 - X / 2) ** 2)), "e S / (2 eta (2-x) k^((1-x/2)^2))",
         r"\frac{eS}{2\eta\left(2-\eta\beta\right)k^{\left(1-\frac{\eta\beta}{2}\right)^{2}}}"),
        (S * exponential(-(K / (4 * T * S))), "S exp(-k / (4 T S))", r"S\exp\left(-\frac{k}{4TS}\right)"),
        (S - (K - 1), "S - (k-1)", r"S-\left(k-1\right)"),
        (ETA * T, "eta T", r"\eta T"),
        (S * (number(1) / K), "S (1/k)", r"S\frac{1}{k}"),
        ((K + 1) ** 2, "(k+1)^2", r"\left(k+1\right)^{2}"),
        (4 * BETA**2, "4 beta^2", r"4\beta^{2}"),
    ],
    ids=lambda value: getattr(value, "text", ""),
)  # fmt: skip
def test_one_expression_is_text_latex_and_number(expression, text, latex):
    assert (expression.text, expression.latex) == (text, latex)
    setting = fg.bounds.Setting(**BASE)
    assert value_of(text, setting, 3) == pytest.approx(expression.compute(setting, 3), rel=1e-12)


def test_an_expression_knows_which_parameters_it_needs():
    assert minimum(T * RANK, 1 / DIM).needs == ("T", "rank_avg", "d")
    assert (X / K).needs == ("eta", "beta")
    bound = fg.bounds.get("thm:random_convergence_rate/loss")
    assert bound.needs == ("d", "rank_avg", "T")
    with pytest.raises(InvalidInputError, match="needs d, not known here"):
        bound.value(fg.bounds.Setting(T=3, rank_avg=1), 5)


# ----------------------------------------------------------------------------------------------- bounds from outside


def test_a_newer_bound_is_ten_lines_and_is_seen_everywhere(capsys):
    from forgetting.cli import main

    mine = fg.bounds.register(
        fg.bounds.Bound(
            key="newer2027:random/loss",
            title="a newer rate",
            source="Newer 2027, Theorem 1",
            quantity="loss",
            orderings=("with replacement",),
            expression=S / (10**4 * K) + root(T) / K**3,
        )
    )
    try:
        tasks = fg.families.two_lines(0.5)
        rows = fg.bounds.evaluate(tasks, fg.orderings.WithReplacement(), 100)
        assert rows.tightest("loss").bound is mine
        assert rows.tightest("loss").value == pytest.approx(1e-6 + math.sqrt(2) * 1e-6)
        assert mine in fg.bounds.all_bounds(quantity="loss")
        assert mine.latex == r"\frac{S}{10000k}+\frac{\sqrt{T}}{k^{3}}"
        assert fg.bounds.crossovers(d=2, T=2, rank_avg=1).winner("with replacement", "loss", 10**6) is mine
        with pytest.raises(SystemExit, match="0"):
            main(["bounds", "two_lines", "theta=0.5", "-k", "100"])
        assert "newer2027:random/loss" in capsys.readouterr().out.replace("\n", "")
    finally:
        fg.bounds.unregister(mine.key)
    assert mine not in fg.bounds.all_bounds()


def test_a_bound_without_a_formula_says_so():
    empty = fg.bounds.Bound("demo/loss", "demo", "nobody", "loss", ("any",))
    with pytest.raises(InvalidInputError, match="declared without a formula"):
        empty.value(fg.bounds.Setting(), 3)


class ShuffledDeck(fg.orderings.Ordering):
    """An ordering of somebody else's: all that it says is its law."""

    law = fg.orderings.laws.Permutation()


class ByNorm(fg.orderings.Ordering):
    law = fg.orderings.laws.Independent(lambda tasks: tasks.norms**2 / np.sum(tasks.norms**2))


def test_an_ordering_from_outside_gets_the_bounds_of_its_law():
    tasks = fg.families.gaussian(T=4, d=6, rank=2, seed=3)
    for theirs, ours in ((ShuffledDeck(), fg.orderings.WithoutReplacement()), (ByNorm(), fg.orderings.NormWeighted())):
        for problem in (tasks, fg.bounds.Setting(T=4, d=6, rank_avg=2, radius_sq_mean=1.0, weight_ratio=1.0)):
            rows = [row.bound.key for row in fg.bounds.evaluate(problem, theirs, 4).applicable()]
            assert rows == [row.bound.key for row in fg.bounds.evaluate(problem, ours, 4).applicable()]
    claim = fg.claims.get("thm:cl_by_sgd_wor", "loss")
    assert claim.why_not(fg.claims.Instance(tasks, ShuffledDeck(), 4)) is None
    assert claim.check(fg.claims.Instance(tasks, ShuffledDeck(), 4)).holds
