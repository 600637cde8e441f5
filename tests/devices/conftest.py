"""The devices of this machine: array-api-strict everywhere, and what torch and CuPy have where they are installed."""

from importlib.util import find_spec

import pytest


def devices() -> list[str]:
    names = ["array-api-strict"]
    if find_spec("torch") is not None:
        import torch

        names += ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    if find_spec("cupy") is not None:
        names.append("cupy")
    return names


@pytest.fixture(params=devices())
def device(request: pytest.FixtureRequest) -> str:
    return request.param
