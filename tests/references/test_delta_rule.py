"""The delta rule against exact rational arithmetic, and programs of low precision against their bounds."""

from fractions import Fraction

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import InvalidInputError
from forgetting.references.rounding import PRECISIONS, to_bits
from forgetting.references.worst_keys import recurrence_in


def exactly(keys, values, beta, gate, first):
    """The memory in rational arithmetic, (K, V)."""
    S = [[Fraction(x) for x in row] for row in first.tolist()]
    for k, v, b, g in zip(keys.tolist(), values.tolist(), beta.tolist(), gate.tolist(), strict=True):
        S = [[Fraction(g) * x for x in row] for row in S]
        for j, value in enumerate(v):
            change = Fraction(b) * (Fraction(value) - sum(Fraction(x) * row[j] for x, row in zip(k, S, strict=True)))
            for x, row in zip(k, S, strict=True):
                row[j] += Fraction(x) * change
    return S


def drawn(rng):
    """A random sequence: keys of any length or unit keys, gates and strengths of each step, some of them 1 or 0."""
    T, K, V = rng.integers(1, 25), rng.integers(1, 6), rng.integers(1, 4)
    keys = rng.standard_normal((T, K)) * 10.0 ** rng.integers(-3, 1)
    if rng.random() < 0.5:
        keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    if rng.random() < 0.3:
        keys[rng.integers(T)] = 0.0
    beta, gate = (rng.choice([high * rng.random(T), np.ones(T), rng.integers(0, 2, T)]) for high in (2, 1.1))
    return keys, rng.standard_normal((T, V)), beta, gate, rng.standard_normal((K, V)) * rng.integers(0, 2)


@pytest.mark.parametrize("seed", range(40))
def test_every_entry_is_within_its_bound_of_the_exact_memory(seed):
    keys, values, beta, gate, first = drawn(np.random.default_rng(seed))
    memory = fg.references.delta_rule(keys, values, beta, gate, initial_state=first)
    S = exactly(keys, values, beta, gate, first)
    for (i, j), high in np.ndenumerate(memory.state):
        error = abs(Fraction(float(high)) + Fraction(float(memory.state_low[i, j])) - S[i][j])
        assert error <= Fraction(float(memory.bound[i, j]))
    assert memory.bound.max() <= 1e-27 * max(1.0, np.abs(memory.state).max())


@pytest.mark.parametrize("precision", [name for name in PRECISIONS if name != "float64"])
def test_programs_of_low_precision_are_within_their_tolerance_and_near_what_is_typical(precision):
    bits, shares = PRECISIONS[precision], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        keys, values = rng.standard_normal((2, 60, 12))
        keys /= np.linalg.norm(keys, axis=1, keepdims=True)
        keys, values = to_bits(keys, bits.operands), to_bits(values, bits.operands)
        beta, gate = to_bits(rng.uniform(0.3, 1.0, 60), bits.sums), to_bits(rng.uniform(0.7, 1.0, 60), bits.sums)
        memory = fg.references.delta_rule(keys, values, beta, gate)
        state = recurrence_in(keys, values, beta, gate, bits)
        found = memory.compare(state, precision)
        assert found.within
        assert 0.3 < found.against_typical < 3
        shares.append(found.share)
        wrong = recurrence_in(keys, values, beta, np.ones(60), bits)  # a kernel that forgets the gate
        assert memory.compare(wrong, precision).against_typical > 10
    assert max(shares) > 1e-4  # the tolerance is not idle


def test_tolerances_hold_for_random_sequences_of_all_kinds():
    for seed in range(60):
        keys, values, beta, gate, _ = drawn(np.random.default_rng(1000 + seed))
        for name, bits in PRECISIONS.items():
            if name == "float64":
                continue
            k, v = to_bits(keys, bits.operands), to_bits(values, bits.operands)
            b, g = to_bits(np.asarray(beta, float), bits.sums), to_bits(np.asarray(gate, float), bits.sums)
            found = fg.references.delta_rule(k, v, b, g).compare(recurrence_in(k, v, b, g, bits), name)
            assert found.within, (seed, name, str(found))


def test_errors_of_reading_are_part_of_the_tolerance():
    """After the first pair, values are what the memory recalls: errors of reading alone are written, and not damped."""
    bits, rng = PRECISIONS["tf32"], np.random.default_rng(3)
    keys = rng.standard_normal((800, 4))
    keys = to_bits(keys / np.linalg.norm(keys, axis=1, keepdims=True), bits.operands)
    values, beta = 1365 / 1024 * keys @ keys[:1].T, np.full(800, 1.995)
    values[0], beta[0] = 1365 / 1024, 1.0
    found = fg.references.delta_rule(keys, values, beta).compare(recurrence_in(keys, values, beta, 1.0, bits), "tf32")
    assert found.within
    assert found.largest > 2e-3  # more than a bound without these errors has


def test_float32_of_numpy_in_batches_and_heads_with_steps_before_heads():
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, 2, 20, 3, 4)).astype(np.float32) / 2  # batch, step, head, size
    beta, gate = rng.uniform(0.2, 0.9, (2, 2, 20, 3)).astype(np.float32)
    memory = fg.references.delta_rule(k, v, beta, gate, queries=q, scale=0.5, time_axis=1)
    state, outputs = np.zeros((2, 3, 4, 4), np.float32), np.zeros_like(v)
    for t in range(20):
        state *= gate[:, t, :, None, None]
        told = np.einsum("bhkv,bhk->bhv", state, k[:, t])
        state += np.einsum("bhk,bhv->bhkv", k[:, t], beta[:, t, :, None] * (v[:, t] - told))
        outputs[:, t] = np.float32(0.5) * np.einsum("bhkv,bhk->bhv", state, q[:, t])
    assert memory.state.shape == (2, 3, 4, 4)
    assert memory.outputs.shape == memory.output_tolerance().shape == v.shape
    found = memory.compare(state, outputs=outputs)
    assert found.within
    assert found.against_typical < 3
    outputs[1, 7, 2, 3] += 0.01
    assert memory.compare(state, outputs=outputs).where == (1, 7, 2, 3)
    assert "no rounding explains entry (1, 7, 2, 3)" in str(memory.compare(state, outputs=outputs))


def test_the_delta_rule_with_unit_keys_is_the_kaczmarz_method_and_recall_is_the_loss():
    tasks = fg.families.key_value(T=6, d=8, outputs=3, seed=1, similarity=0.3)
    keys, values = (np.concatenate([tasks.task(m)[part] for m in range(6)]) for part in (0, 1))
    memory = fg.references.delta_rule(keys, values)
    run = fg.run(tasks, "cyclic", 6)
    np.testing.assert_allclose(memory.state, run.iterates[-1], atol=1e-13)
    np.testing.assert_allclose(memory.recall, run.loss_matrix[-1], atol=1e-13)


@pytest.mark.parametrize("similarity", [0.0, 0.5, 0.9, 0.99])
def test_chunks_of_steps_err_about_as_much_as_single_steps(similarity):
    rng = np.random.default_rng(0)
    keys = np.sqrt(1 - similarity) * rng.standard_normal((512, 64)) + np.sqrt(similarity)
    keys = (keys / np.linalg.norm(keys, axis=1, keepdims=True)).astype(np.float32)
    values, state = rng.standard_normal((512, 16)).astype(np.float32), np.zeros((64, 16), np.float32)
    for first in range(0, 512, 64):
        k, v = keys[first : first + 64], values[first : first + 64]
        lower = np.tril(k @ k.T, -1) + np.eye(64, dtype=np.float32)
        state = state + k.T @ np.linalg.solve(lower, v - k @ state)
    assert 0.5 < fg.references.delta_rule(keys, values).compare(state).against_typical < 4


def test_keys_of_a_given_similarity():
    tasks = fg.families.key_value(T=100, d=200, seed=0, similarity=0.4)
    keys = np.concatenate([tasks.task(m)[0] for m in range(100)])
    assert abs((keys @ keys.T)[np.triu_indices(100, 1)].mean() - 0.4) < 0.03
    tasks = fg.families.key_value(100, 50, unit=False)
    lengths = np.concatenate([tasks.task(m)[0] for m in range(100)])
    assert abs(np.mean(np.sum(lengths**2, axis=1)) - 1) < 0.1


def test_a_saved_memory_comes_back(tmp_path):
    rng = np.random.default_rng(0)
    memory = fg.references.delta_rule(rng.standard_normal((2, 5, 3)), rng.standard_normal((2, 5, 2)), 0.5, 0.9)
    memory.save(tmp_path / "memory.npz")
    again = fg.references.DeltaRule.load(tmp_path / "memory.npz")
    np.testing.assert_array_equal(again.state_low, memory.state_low)
    np.testing.assert_array_equal(again.tolerance("tf32"), memory.tolerance("tf32"))
    assert "2 heads of 3 x 2 numbers" in repr(again)


def test_the_worst_keys_are_worse_than_random_ones_and_within_their_bound():
    for precision in ("bfloat16", "float32", (11, 24, 24)):
        worst = fg.references.worst_keys(24, 4, precision, seed=3, budget=1024)
        assert 2 * worst.random < worst.error <= worst.bound
        bits = fg.references.rounding.as_precision(precision)
        state = recurrence_in(worst.keys, worst.values, 1.0, 1.0, bits)
        assert worst.reference.compare(state, precision).within
        assert np.abs(np.linalg.norm(worst.keys, axis=1) - 1).max() < 0.02
        assert np.abs(worst.values).max() <= 1
    assert fg.references.worst_keys(8, 2, budget=64, seed=5).keys.tolist() == (
        fg.references.worst_keys(8, 2, budget=64, seed=5).keys.tolist()
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gate": [1.0, float("nan"), 1.0]}, r"gate at step 1 \(from 0\) is nan; it must be finite"),
        ({"gate": -0.1}, r"gate at step 0 .* is -0.1; .* pass np.exp\(gate\)"),
        ({"beta": [1.0, 1.0, -2.0]}, r"beta at step 2 \(from 0\) is -2; a write strength is at least 0"),
        ({"beta": [1.0, 1.0]}, "beta: expected a number or one for each of 3 steps, got shape"),
        ({"keys": [1.0, 2.0]}, r"keys: expected \(..., steps, size\) with steps along time_axis = -2"),
        ({"keys": [[1.0, np.inf]] * 3}, "keys: entry at row 0, column 1 is inf"),
        ({"values": [[1.0]] * 2}, "values: expected one row for each key, laid out as the keys are"),
        ({"queries": [[1.0]] * 3}, "queries: expected one row for each key of 2 numbers"),
        ({"initial_state": [[1.0]]}, "initial_state: expected shape"),
        ({"keys": [[1e100, 1.0]] * 3, "gate": 1e150}, r"step 1 \(from 0\): the state is beyond float64"),
        ({"time_axis": 1}, "with steps along time_axis = 1"),
        ({"keys": np.zeros((3, 0))}, r"keys: expected \(..., steps, size\) .* got shape \(3, 0\)"),
    ],
)
def test_bad_input_names_the_step_and_the_value(change, message):
    given = {"keys": [[1.0, 0.5]] * 3, "values": [[1.0]] * 3} | change
    with pytest.raises(InvalidInputError, match=message):
        fg.references.delta_rule(**given)


def test_long_keys_of_few_digits_have_a_finite_tolerance():
    rng = np.random.default_rng(0)
    keys, values = to_bits(rng.standard_normal((9, 256)) / 16, 8), to_bits(rng.standard_normal((9, 2)), 8)
    memory = fg.references.delta_rule(keys, values)
    state = recurrence_in(keys, values, 1.0, 1.0, PRECISIONS["bfloat16"])
    assert memory.compare(state, "bfloat16").within
    assert np.isfinite(memory.tolerance("bfloat16")).all()


def test_bounds_beyond_float64_are_infinite_and_end_where_a_gate_is_0():
    rng = np.random.default_rng(0)
    keys, values = 10 * rng.standard_normal((200, 4)), np.zeros((200, 1))
    grown = fg.references.delta_rule(keys, values)
    assert np.isinf(grown.bound).all()
    assert grown.compare(np.ones((4, 1))).within
    assert not grown.compare(np.full((4, 1), np.nan)).within
    keys, gate = to_bits(rng.standard_normal((200, 300)) / 17, 4), np.where(np.arange(200) == 197, 0.0, 1.0)
    ended = fg.references.delta_rule(keys, rng.integers(0, 2, (200, 1)), 1.0, gate)
    assert np.isfinite(ended.tolerance((4, 4, 4))).all()


def test_bounds_of_columns_whose_squares_vanish_hold():
    keys, start = np.tile([[1.0, 0.0]], (3, 1)), np.array([[1.0, 0.0], [1.0, 0.7e-170]])  # the column keeps and fades
    faded = fg.references.delta_rule(keys, np.zeros((3, 2)), 1.0, 0.9, initial_state=start)
    small, values = np.array([[1.0, 1.0], [3e-171, 3e-171]]), np.array([[1.0, 0.0], [0.7, 0.7]])
    written = fg.references.delta_rule(small, values, 0.9)
    for memory in faded, written:
        S = exactly(memory.keys, memory.values, memory.beta, memory.gate, memory.initial_state)
        error = Fraction(float(memory.state[1, 1])) + Fraction(float(memory.state_low[1, 1])) - S[1][1]
        assert 0 < abs(error) <= Fraction(float(memory.bound[1, 1]))
        assert memory.bound[1, 1] < 1e-28 * 1e-170


def test_no_steps_no_heads_and_a_memory_of_zeros_are_answered():
    none = fg.references.delta_rule(np.zeros((0, 3)), np.zeros((0, 2)), initial_state=np.ones((3, 2)))
    assert none.state.tolist() == np.ones((3, 2)).tolist()
    assert none.compare(np.ones((3, 2))).within
    assert not none.compare(np.full((3, 2), 1.1)).within
    heads = fg.references.delta_rule(np.zeros((0, 5, 3)), np.zeros((0, 5, 2)))
    for memory in none, heads:
        assert "each known to 0" in repr(memory)
        assert memory.figure()
    zeros = fg.references.delta_rule(np.ones((3, 2)), np.zeros((3, 1)))
    assert zeros.compare(np.full((2, 1), 1e-3)).against_typical == np.inf
    assert "an error of 0, against 0 for random keys" in repr(fg.references.worst_keys(4, 2, beta=0, budget=64))


def test_bad_precisions_are_named():
    memory = fg.references.delta_rule([[1.0]], [[1.0]])
    for precision, message in (("float8", "precision"), ((1, 24, 24), "operands"), (3, "expected a word")):
        with pytest.raises(InvalidInputError, match=message):
            memory.tolerance(precision)
    with pytest.raises(InvalidInputError, match="this reference has no outputs"):
        memory.output_tolerance()
    with pytest.raises(InvalidInputError, match="must have fewer digits"):
        fg.references.worst_keys(3, 2, "float64")


def test_tensors_of_bfloat16_are_read_without_error():
    torch = pytest.importorskip("torch")
    keys = torch.randn(2, 7, 3, dtype=torch.float64).to(torch.bfloat16)
    memory = fg.references.delta_rule(keys, keys)
    assert memory.keys.tolist() == keys.double().tolist()
    assert memory.compare(torch.from_numpy(memory.state).to(torch.bfloat16), "bfloat16").largest < 0.1
