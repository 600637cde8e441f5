"""The fits of measured costs, and the page that is written from them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from benchmarks.costs.calls import CALLS, CONTESTS, call_named
from benchmarks.costs.fits import crossing, fit
from benchmarks.costs.page import Workers, laws_of, page_text, steep_growth, write_page

EXPONENTS = {"T": 1.0, "d": 2.0, "rank": 1.0, "k": 0.5, "N": 1.0, "runs": 1.0}


def data(memory_of_t: float = 1.0) -> dict:
    """Costs that follow power laws exactly; memory does not depend on k."""
    points = []
    for call in (*CALLS, *(call for contest in CONTESTS for call in contest.calls)):
        for axis, values in call.axes.items():
            for value in values:
                power = memory_of_t if axis == "T" else 0.0 if axis == "k" else EXPONENTS[axis]
                seconds = 0.5 * 2.0 ** (value - 12) if axis in call.exponential else 0.1 * value ** EXPONENTS[axis]
                points.append({
                    "call": call.name, "axis": axis, "value": value, "seconds": seconds, "bytes": 2**23 * value**power,
                })  # fmt: skip
                if call.request is not None:
                    points[-1] |= {"estimated_seconds": seconds / 2, "estimated_bytes": 2.0**23}
    workers = [
        {"jobs": 0, "count": 40, "seconds": 4.0, "cpu": 3.9, "cell": 0.0},
        {"jobs": 1, "count": 40, "seconds": 4.2, "cell": 5e-4},
        {"jobs": 2, "count": 40, "seconds": 2.2, "cell": 1e-3},
    ]
    auto = [{"question": CONTESTS[0].question, "first": "moments", "axis": "k", "value": 1234, "then": "spectral"}]
    machine = {"forgetting": "0", "python": "3", "numpy": "2", "processor": "abacus", "cores": 2}
    return {"machine": machine, "points": points, "workers": workers, "auto": auto}


def noisy(exponent: float, seed: int) -> list[tuple[float, float]]:
    rng = np.random.default_rng(seed)
    return [(x, 1e-6 * x**exponent * math.exp(0.1 * rng.standard_normal())) for x in 2.0 ** np.arange(8, 20)]


def test_a_power_law_is_found_with_its_error() -> None:
    laws = [fit(noisy(1.5, seed), floor=0.0) for seed in range(200)]
    off = np.array([(law.exponent - 1.5) / law.error for law in laws])
    assert abs(np.mean([law.exponent for law in laws]) - 1.5) < 0.01
    assert 0.8 < np.std(off) < 1.6  # the standard error is one: Student's t with six degrees of freedom has 1.22


def test_what_every_call_costs_does_not_lower_the_exponent() -> None:
    law = fit([(x, 0.01 + 1e-6 * x**2) for x in (10, 100, 1000, 2000, 4000, 8000)], floor=1e-3)
    assert law.exponent == pytest.approx(2.0, abs=0.01)
    assert law.points == 4


def test_costs_below_the_floor_have_no_law() -> None:
    assert fit([(x, 1e-4 * x) for x in (1, 2, 4, 8)], floor=1e-3) is None
    assert fit([(1, 1.0), (2, 2.0)], floor=0.0) is None
    assert fit([(1, 1.0), (2, 2.0), (4, 4.0), (8, 1e-9)], floor=1e-3) is None  # the largest value was not measured


def test_exponential_growth_has_a_base() -> None:
    law = fit([(x, 1e-6 * 2.0**x) for x in range(8, 15)], floor=0.0, exponential=True)
    assert math.exp(law.exponent) == pytest.approx(2.0)
    assert law.reach(law.at(20)) == pytest.approx(20)


def test_a_law_ends_where_its_cost_is_reached() -> None:
    law = fit([(x, 3.0 * x**2) for x in (1, 2, 4, 8)], floor=0.0)
    assert law.reach(3.0 * 1000**2) == pytest.approx(1000)
    assert fit([(x, 3.0) for x in (1, 2, 4, 8)], floor=0.0).reach(1e9) == np.inf


def test_curves_cross_between_points() -> None:
    slow, flat = [(x, float(x)) for x in (1, 10, 100, 1000)], [(x, 30.0) for x in (1, 10, 100, 1000)]
    assert crossing(slow, flat) == pytest.approx(30)
    assert crossing(flat, slow) is None  # the second is above at the end
    assert crossing([(x, 2 * y) for x, y in slow], slow) == pytest.approx(1)  # below everywhere


def test_workers_follow_the_model() -> None:
    model = Workers(count=100, serial=1.0, parallel=8.0, overhead=0.01)
    team = {0: {"seconds": 8.0, "count": 100}, 2: {"seconds": model.seconds(2), "cell": 0.01}}
    assert Workers.of(team).seconds(16) == pytest.approx(1.0 + 0.5 + 1.0)


def test_times_on_the_clock_of_a_busy_machine_are_not_shown() -> None:
    known = data()
    known["workers"][0]["cpu"] = 2.0  # of 4 seconds
    assert "Not measured: other programs" in page_text(known, {})
    assert "Not measured" not in page_text(data(), {})


def test_what_does_not_depend_on_x_promises_nothing_beyond_the_data() -> None:
    law = fit([(x, 100.0 + x) for x in (10, 20, 40, 80)], floor=0.0)
    assert law.exponent < 0.5
    assert law.at_least(1.0).reach(1800.0) == pytest.approx(800)
    flat = fit([(x, 100.0) for x in (10, 20, 40, 80)], floor=0.0)
    assert flat.at_least(1.0) == flat


def test_laws_of_the_data_are_those_that_made_them() -> None:
    for (name, axis, what), law in laws_of(data()).items():
        if axis in call_named(name).exponential:
            assert what == "bytes" or math.exp(law.exponent) == pytest.approx(2.0)
        else:
            expected = 0.0 if (axis, what) == ("k", "bytes") else EXPONENTS[axis]
            assert law.exponent == pytest.approx(expected, abs=1e-9)


def test_the_page_names_memory_that_grows_too_fast() -> None:
    assert "at most linearly" in steep_growth(laws_of(data()))
    said = steep_growth(laws_of(data(memory_of_t=2.0)))
    assert "run against T (2.00 ± 0.00)" in said
    assert "against d" not in said


def test_the_page_has_all_numbers_from_its_data(tmp_path) -> None:
    known = json.loads(json.dumps(data()))
    write_page(known, tmp_path / "how_far.md")
    text = (tmp_path / "how_far.md").read_text(encoding="utf-8")
    assert "| `run` | 1.00 ± 0.00 | 2.00 ± 0.00 | 1.00 ± 0.00 | 0.50 ± 0.00 |  |  |" in text
    assert "2.00^T" in text
    assert "1,234 (spectral)" in text
    assert "within a factor of 3" in text  # the estimates are half of what was measured
    fast = [
        row | ({"estimated_seconds": row["seconds"] / 5} if "estimated_seconds" in row else {})
        for row in known["points"]
    ]
    assert "off by more than a factor of 3: moments, 31 digits: loss, T = 40" in page_text(
        {**known, "points": fast}, {}
    )
    assert "| 4 workers |  | 1.20 | 3.3 |" in text  # 4.0 / 4 + 0.2
    # 24 GiB / 8 MiB = 3072 runs; memory that does not grow has no limit
    row = next(line for line in text.splitlines() if line.startswith("| run_many | ") and "(" in line and "any" in line)
    assert row.count("3,100 (") == 2
    files = sorted(path.name for path in (tmp_path / "images").iterdir())
    assert [f":file: images/{name}" in text for name in files] == [True] * len(files)
    assert len(files) == 8
    assert (tmp_path / "images" / files[0]).read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_every_call_can_be_made_and_every_axis_has_enough_values(call) -> None:
    call.work(call.prepare(call.tiny), call.tiny)
    for axis, values in call.axes.items():
        assert len(values) >= 3
        assert values == sorted(set(values))
        assert call.sizes(axis, values[0])[axis] == values[0]
        for value in values if "rank" in call.base else ():
            sizes = call.sizes(axis, value)
            assert sizes["T"] * sizes["rank"] >= sizes["d"]  # so that D = d, as the page says
