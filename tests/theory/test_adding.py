"""A bound from a newer paper: declared, replaced, removed, hunted, and seen by the command line."""

import doctest
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import forgetting as fg
from forgetting.bounds import Bound, Range, Setting
from forgetting.errors import InvalidInputError
from forgetting.theory import registry
from forgetting.theory.expression import K, S, T, root

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "add-a-bound.md"
FIELDS = {
    "key": "newer2027:random/loss",
    "title": "a newer rate",
    "source": "Newer 2027, Theorem 1",
    "quantity": "loss",
    "orderings": "with replacement",
    "formula": "S/k",
}


@pytest.fixture(autouse=True)
def registry_as_before():
    before = dict(registry._STATEMENTS)
    yield
    registry._STATEMENTS.clear()
    registry._STATEMENTS.update(before)


def declare(**changes):
    return fg.bounds.declare(**{**FIELDS, **changes})(lambda s, k: s.scale / k)


def without(name):
    return {field: value for field, value in FIELDS.items() if field != name}


def test_a_decorated_function_is_a_bound():
    compute = declare()
    bound = fg.bounds.get("newer2027:random/loss")
    assert compute(Setting(), 4) == bound.value(Setting(), 4) == 0.25
    assert bound.orderings == ("with replacement",)
    assert bound.name == "Newer 2027, Theorem 1, a newer rate"


@pytest.mark.parametrize("name", FIELDS)
def test_a_missing_field_is_named(name):
    with pytest.raises(InvalidInputError, match=rf"a bound needs {name} \("):
        fg.bounds.declare(**without(name))


def test_all_missing_fields_are_named_at_once_and_at_the_declaration():
    with pytest.raises(InvalidInputError, match=r"^a bound without a key: a bound needs key .*title .*formula"):
        fg.bounds.declare()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sorce": "x"}, "newer2027:random/loss: a bound has no field 'sorce'; did you mean 'source'"),
        ({"quantity": "joy"}, r"quantity must be one of loss, .*, got 'joy'"),
        ({"kind": "uper"}, r"kind must be one of upper, lower, rate, floor, got 'uper'"),
        ({"status": "true"}, r"status must be one of holds as stated, .*, got 'true'"),
        ({"orderings": ("sideways",)}, r"orderings must be from with replacement, .*, got 'sideways'"),
        ({"orderings": "sideways"}, r"orderings must be from with replacement, .*, got 'sideways'"),
        ({"orderings": 3}, r"orderings: expected names from with replacement, .*, got 3"),
        ({"schemes": "magic"}, r"schemes must be from projection, sgd, .*, got 'magic'"),
        ({"problems": "kernels"}, r"problems must be from regression, classification, sets, got 'kernels'"),
        ({"needs": "rank"}, r"needs must be from T, d, rank_avg, .*, got 'rank'"),
        ({"range": 2}, r"range: expected fg.bounds.Range\(first, last\), .*, got 2"),
        ({"conditions": [1]}, r"conditions: expected a tuple of fg.bounds.Condition"),
        ({"conditions": (1,)}, r"conditions: expected fg.bounds.Condition\(holds, reason\), got 1"),
        ({"title": " "}, r"title is empty; give it in a few words"),
        ({"note": 5}, r"note: expected words, got 5"),
        ({"key": 5}, r"key: expected a key such as 'newer2027:random/loss', got 5"),
        ({"key": ""}, r"key: a bound needs a key"),
        ({"expression": S / K}, r"the decorated function is the formula; with expression= .* fg.bounds.register"),
        ({"replace": "yes"}, r"replace must be True or False, got 'yes'"),
    ],
)
def test_a_wrong_field_is_named_with_what_is_allowed(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        declare(**changes)
    assert all(bound.key != FIELDS["key"] for bound in fg.bounds.all_bounds())


def test_a_cell_that_runs_twice_replaces_its_bound_and_keeps_its_place():
    declare()
    fg.bounds.register(replace(fg.bounds.get("trivial/loss"), key="after/loss"))
    with pytest.raises(InvalidInputError, match=r"already a bound 'newer2027:random/loss'; choose .* replace=True"):
        declare()
    places = [bound.key for bound in fg.bounds.all_bounds()]
    fg.bounds.declare(**FIELDS, replace=True)(lambda s, k: 2 * s.scale / k)
    assert [bound.key for bound in fg.bounds.all_bounds()] == places
    assert fg.bounds.get("newer2027:random/loss").value(Setting(), 4) == 0.5
    fg.bounds.unregister("newer2027:random/loss")
    with pytest.raises(InvalidInputError, match="no bound"):
        fg.bounds.get("newer2027:random/loss")
    declare()


def test_a_claim_is_replaced_and_removed_likewise():
    def make(rhs, **options):
        made = {"label": "mine", "statement": "0 <= k", "draw": lambda rng, k: fg.claims.Instance(None, None, k)}
        return fg.claims.declare(**made, **options)(lambda instance: fg.claims.Sides(0.0, rhs))

    make(1.0)
    with pytest.raises(InvalidInputError, match=r"already a claim mine; choose .* replace=True"):
        make(2.0)
    make(2.0, replace=True)
    assert fg.claims.get("mine").check(fg.claims.Instance(None, None, 1)).rhs == 2.0
    fg.claims.register(replace(fg.claims.get("mine"), title="of mine"), replace=True)
    assert fg.claims.get("mine").name == "Evron et al. 2026, of mine"
    fg.claims.unregister("mine")
    with pytest.raises(InvalidInputError, match="no claim 'mine'"):
        fg.claims.get("mine")
    with pytest.raises(InvalidInputError, match="mine: draw must be a function, got 3"):
        fg.claims.declare(label="mine", statement="0 <= k", draw=3)(lambda instance: None)
    with pytest.raises(InvalidInputError, match=r"mine: status must be one of holds as stated, .*, got 'so so'"):
        make(1.0, status="so so")


@pytest.mark.parametrize(
    ("orderings", "quantity"),
    [
        ("with replacement", "loss"),
        ("norm-weighted", "forgetting"),
        ("i.i.d.", "loss"),
        ("without replacement", "forgetting"),
        ("cyclic", "loss"),
    ],
)
def test_a_bound_is_hunted_as_a_claim(orderings, quantity):
    every = Range(1, every="T") if orderings == "cyclic" else Range(2, "T") if "without" in orderings else Range(2)
    make = {"title": "t", "source": "Newer 2027", "quantity": quantity, "orderings": orderings, "range": every}
    fg.bounds.register(Bound(key="true", **make, expression=S / 2 + 0 * K))
    fg.bounds.register(Bound(key="false", **make, expression=S / (1000 * K**2)))
    held = fg.claims.from_bound("true").hunt(budget=40)
    assert held.outcome == "holds"
    assert held.checked >= 20
    assert fg.claims.from_bound("false").hunt(budget=40).outcome == "refuted"


def test_a_claim_from_a_bound_is_one_statement_with_it():
    declare()
    claim = fg.claims.from_bound("newer2027:random/loss")
    assert claim is fg.claims.get("newer2027:random", "loss")
    assert claim.statement == "E L(w_k) <= S/k (with replacement, k >= 1)"
    assert (claim.source, claim.title) == ("Newer 2027, Theorem 1", "a newer rate")
    with pytest.raises(
        InvalidInputError, match=r"has a claim, fg.claims.get\('newer2027:random', 'loss'\); replace=True"
    ):
        fg.claims.from_bound("newer2027:random/loss")
    assert fg.claims.from_bound("newer2027:random/loss", replace=True) is not claim
    fg.bounds.unregister("newer2027:random/loss")  # takes its claim with it
    with pytest.raises(InvalidInputError, match="no claim"):
        fg.claims.get("newer2027:random")


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("evron2022:cyclic/forgetting/lower", "only an upper bound whose constants are known can be violated"),
        ("derezinski2026:random/loss", "only an upper bound whose constants are known can be violated"),
        ("trivial/error", "from bounds on the loss or the forgetting, not on the error"),
        ("evron2023:cyclic/forgetting", "from bounds on regression tasks that are learned to convergence"),
        ("thm:cl_by_sgd_main/loss", r"has a claim, fg.claims.get\('thm:cl_by_sgd_main', 'loss'\)"),
    ],
)
def test_bounds_that_make_no_claim_say_why(key, message):
    with pytest.raises(InvalidInputError, match=message):
        fg.claims.from_bound(key)


def test_orderings_without_problems_need_draws():
    fg.bounds.register(Bound("g/loss", "t", "Newer 2027", "loss", "greedy", expression=T * S / root(K)))
    with pytest.raises(InvalidInputError, match="g/loss: no problems are known for greedy orderings; give draw="):
        fg.claims.from_bound("g/loss")
    tasks, greedy = fg.families.orthogonal(3), fg.orderings.GreedyDistance()
    claim = fg.claims.from_bound("g/loss", draw=lambda rng, index: fg.claims.Instance(tasks, greedy, 3))
    assert claim.hunt(budget=3).outcome == "holds"


def test_the_page_prints_what_it_says():
    outcome = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.attempted >= 25
    assert outcome.failed == 0


def test_the_commands_of_the_page_work(tmp_path):
    page = PAGE.read_text(encoding="utf-8")
    (source,) = re.findall(r"```python\n(import forgetting as fg\n.*?)```", page, re.DOTALL)
    (tmp_path / "newer.py").write_text(source, encoding="utf-8")
    (words,) = re.findall(r"```\n(forgetting --plugin .*?)```", page, re.DOTALL)
    for line in words.strip().splitlines():
        done = command(tmp_path, *line.split()[1:], "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert "newer2027:random" in json.dumps(found["sections"][0]["items"][0]["rows"])


def command(folder, *words):
    path = os.pathsep.join([str(ROOT / "src"), str(folder)])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"}
    call = [sys.executable, "-m", "forgetting", *words]
    return subprocess.run(call, capture_output=True, text=True, cwd=folder, env=environment, timeout=300)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("gone.py", None, "error: plugin gone.py: no such file"),
        ("wrong.py", "1 / 0", "error: plugin wrong.py: ZeroDivisionError: division by zero"),
        ("no_such_module", None, "error: plugin no_such_module: ModuleNotFoundError: No module named 'no_such_module'"),
        ("short.py", "import forgetting; forgetting.bounds.declare(key='a/b')", "error: plugin short.py: a/b: a bound"),
    ],
)  # fmt: skip
def test_a_plugin_that_fails_is_named(tmp_path, name, text, message):
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = command(tmp_path, "--plugin", name, "families")
    assert done.returncode == 2
    assert done.stderr.startswith(message)
    assert not done.stdout
