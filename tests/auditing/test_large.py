"""An audit of 50 tasks x 200 rows x 784 features: what is too large to be exact is simulated, and says so."""

import pytest
from benchmarks.bench_audit import CASES, fifty_tasks

import forgetting as fg


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "options", "holds"), CASES.values(), ids=CASES)
def test_fifty_tasks_are_simulated_with_intervals(noise, options, holds):
    found = fg.audit(fifty_tasks(noise), **options)
    assert found.fit.holds == holds
    simulated = [row for row in found.orderings if not row.exact]
    assert {row.name for row in simulated} == {"random permutation", "with replacement"}
    for row in simulated:
        assert row.loss_low <= row.loss <= row.loss_high
        assert row.forgetting_low <= row.forgetting <= row.forgetting_high
    assert "<html" in found.to_html()
