"""Worst cases against PEPit, which follows all runs one by one and knows nothing of words and symmetry."""

import pytest

import forgetting as fg

pytest.importorskip("PEPit", reason="PEPit is an oracle of the tests: pip install pepit")
from benchmarks.pepit_tree import worst_by_pepit


@pytest.mark.parametrize(("T", "k"), [(2, 1), (2, 2), (3, 1), (3, 2)])
def test_subspaces_have_the_value_that_pepit_finds(T, k) -> None:
    assert fg.worst_case(T, k).value == pytest.approx(worst_by_pepit(T, k), abs=1e-5)


@pytest.mark.parametrize(("T", "k"), [(2, 1), (2, 2), (3, 1), (3, 2)])
def test_convex_sets_have_the_value_that_pepit_finds(T, k) -> None:
    assert fg.worst_case(T, k, kind="convex").value == pytest.approx(worst_by_pepit(T, k, "convex"), abs=1e-5)


@pytest.mark.parametrize("kind", ["subspaces", "convex"])
def test_a_cyclic_order_has_the_value_that_pepit_finds(kind) -> None:
    ours = fg.worst_case(2, 3, kind=kind, ordering="cyclic")
    assert ours.value == pytest.approx(worst_by_pepit(2, 3, kind, [(0, 1, 0)]), abs=1e-5)
