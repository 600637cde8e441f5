"""The history of a solve is a table: its columns have the same length."""

import numpy as np
import pytest

from forgetting.errors import InvalidInputError
from forgetting.solver import History


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(InvalidInputError, match="different shapes"):
        History(np.zeros(2), np.zeros(2), np.zeros(1), np.zeros(2, dtype=bool))
    assert len(History(np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2, dtype=bool))) == 2
