"""`forgetting expect --device`."""

import json

import numpy as np

WORDS = ("expect", "gaussian", "T=5", "d=9", "rank=2", "-k", "10", "--json")


def test_values_of_a_device_are_those_of_the_cpu(inside):
    here, there = (inside(*WORDS, *more) for more in ((), ("--device", "array-api-strict")))
    assert (here.code, there.code) == (0, 0), there.err
    tables = [json.loads(done.out) for done in (here, there)]
    rows = [data["sections"][0]["items"][0]["rows"][0] for data in tables]
    np.testing.assert_allclose(*rows, rtol=1e-12)
    assert "on array-api-strict" in tables[1]["meta"]["detail"]


def test_an_unknown_device_is_refused(inside):
    done = inside(*WORDS, "--device", "cupy:first")
    assert done.code == 2
    assert "cupy" in done.err
