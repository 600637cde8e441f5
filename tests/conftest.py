"""What all tests share: the dense reference, hypothesis without clocks or chance, and no figure left open."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("forgetting", deadline=None, derandomize=True, database=None, max_examples=25)
settings.load_profile("forgetting")
os.environ.setdefault("MPLBACKEND", "agg")  # a test opens no window


@pytest.fixture(autouse=True)
def no_figures_left():
    """Figures that a test opens are closed: matplotlib warns of many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="session")
def dynamics():
    """`dynamics` of reference.py: (matrices, labels, order, w0, mean) -> iterates, losses, forgetting, regret."""
    spec = importlib.util.spec_from_file_location("reference", Path(__file__).with_name("reference.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.dynamics
