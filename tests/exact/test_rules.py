"""Each learning rule under each ordering: exact values are means over all orders, and the page says which are exact."""

import importlib.util
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest

import forgetting as fg

DOCS = Path(__file__).parents[2] / "docs"


def rules_table():
    spec = importlib.util.spec_from_file_location("rules_table", DOCS / "_tools" / "rules_table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


rules = rules_table()


def over_all_orders(tasks, scheme, ordering):
    """Expected loss and forgetting after three steps, from a run in every order."""
    if ordering in ("given", "greedy"):
        run = fg.run(tasks, rules.ORDERINGS[ordering], 3, scheme=scheme)
        return float(run.losses[-1]), float(run.forgetting[-1])
    orders = list(product(range(3), repeat=3) if ordering == "with replacement" else permutations(range(3)))
    p = np.array([1, 2, 3]) / 6
    weights = [np.prod(p[list(order)]) if ordering == "with replacement" else 1 / 6 for order in orders]
    runs = [fg.run(tasks, list(order), 3, scheme=scheme) for order in orders]
    return tuple(float(np.dot(weights, [part(run) for run in runs])) for part in (
        lambda run: run.losses[-1], lambda run: run.forgetting[-1]
    ))  # fmt: skip


@pytest.mark.parametrize("kind", ["realizable", "noisy", "two outputs"])
@pytest.mark.parametrize("rule", rules.RULES)
def test_exact_values_are_means_over_all_orders(rule, kind):
    for ordering in rules.ORDERINGS:
        found = rules.value(kind, rule, ordering)
        if found.method == "monte-carlo":
            assert rules.RULES[rule].random
            continue
        expected = over_all_orders(rules.tasks(kind), rules.RULES[rule], ordering)
        for value, name in zip(expected, ("loss", "forgetting"), strict=True):
            doubt = found.uncertainty.get(name, 0.0)
            np.testing.assert_allclose(found.values[name], value, rtol=1e-9, atol=1e-11 + 2 * np.max(doubt))
            assert np.max(doubt) < 1e-7


def test_the_page_says_which_values_are_exact():
    text = (DOCS / "learning-rules.md").read_text(encoding="utf-8")
    assert text.split(rules.BEGIN)[1].split(rules.END)[0].strip() == rules.table()
