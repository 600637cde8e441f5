"""The examples in the docstrings of the maintainers' programs."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "tools"


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("[a-z]*.py")))
def test_examples_of_the_programs(name):
    module = import_module(f"tools.{name}")
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    assert result.failed == 0
