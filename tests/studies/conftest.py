"""What the tests of studies share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def cluster():
    """A Dask cluster of two processes on this machine, for all tests of a module."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client
