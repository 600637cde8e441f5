"""What all tests share: the dense reference, and hypothesis without clocks or chance."""

import importlib.util
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("forgetting", deadline=None, derandomize=True, database=None, max_examples=25)
settings.load_profile("forgetting")


@pytest.fixture(scope="session")
def dynamics():
    """`dynamics` of reference.py: (matrices, labels, order, w0, mean) -> iterates, losses, forgetting, regret."""
    spec = importlib.util.spec_from_file_location("reference", Path(__file__).with_name("reference.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.dynamics
