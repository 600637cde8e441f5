"""The suite itself: its order can be repeated, and only warnings of this package are errors."""

import importlib.util
import warnings
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

import forgetting.errors

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Item:
    nodeid: str

    @property
    def location(self):
        return (self.nodeid.partition("::")[0], 0, self.nodeid)


def shuffled(order):
    spec = importlib.util.spec_from_file_location("order", ROOT / "conftest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    items = [Item(f"tests/{file}.py::test_{number}") for file in "abc" for number in range(20)]
    module.pytest_collection_modifyitems(SimpleNamespace(option=SimpleNamespace(order=order)), items)
    return [item.nodeid for item in items]


def test_a_seed_is_an_order_and_the_tests_of_a_file_stay_together():
    assert shuffled("1") == shuffled("1")
    assert shuffled("1") != shuffled("2")
    assert shuffled("file") == [f"tests/{file}.py::test_{number}" for file in "abc" for number in range(20)]
    assert sorted(shuffled("1")) == sorted(shuffled("file"))
    files = [name[6] for name in shuffled("1")]
    assert sum(one != other for one, other in pairwise(files)) == 2


def warn(module, category, stacklevel=1):
    """A warning by a function of `module`."""
    names = {"__name__": module}
    code = f"import warnings\ndef warn(): warnings.warn('something', {category}, stacklevel={stacklevel})"
    exec(code, names)
    names["warn"]()


@pytest.mark.parametrize("module", ["forgetting", "forgetting.bounds.catalogue"])
@pytest.mark.parametrize("category", ["UserWarning", "RuntimeWarning"])
@pytest.mark.parametrize("stacklevel", [1, 2])
def test_warnings_of_this_package_are_errors(module, category, stacklevel):
    with pytest.raises(Warning, match="something"):
        warn(module, category, stacklevel)


@pytest.mark.parametrize("module", ["numpy._core.fromnumeric", "matplotlib.axes"])
@pytest.mark.parametrize("category", ["UserWarning", "RuntimeWarning", "DeprecationWarning", "FutureWarning"])
def test_warnings_within_other_libraries_are_shown_and_no_errors(module, category):
    with warnings.catch_warnings(record=True) as shown:
        warn(module, category)
    assert len(shown) == 1


def test_deprecations_of_what_tests_call_are_shown_and_no_errors():
    with warnings.catch_warnings(record=True) as shown:
        warn("numpy", "DeprecationWarning", stacklevel=3)
    assert len(shown) == 1


def test_this_package_has_no_category_of_warnings_that_the_filters_do_not_know():
    kinds = [value for value in vars(forgetting.errors).values() if isinstance(value, type)]
    assert not [kind for kind in kinds if issubclass(kind, Warning)], "make it an error in pyproject.toml"
