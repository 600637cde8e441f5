"""Small matrices: BLAS threads cost more than they give, and much more on a busy machine."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True)
def one_blas_thread():
    with threadpool_limits(1, user_api="blas"):
        yield
