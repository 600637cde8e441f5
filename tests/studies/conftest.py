"""What the tests of studies share."""

from __future__ import annotations

import pytest


@pytest.fixture
def cluster(started):
    """A Dask cluster of two processes on this machine, both of which are there, also after a test that killed one."""
    started.wait_for_workers(2, timeout=120)
    return started


@pytest.fixture(scope="module")
def started():
    """The cluster of all tests of a module."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client
