"""Checkpoints: a solve that was killed at any moment ends as the uninterrupted one, and other files are refused."""

import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import forgetting as fg
from effort import LONG, rounds
from forgetting.errors import InvalidInputError, NotSupportedError, ProblemFileError
from forgetting.solver.checkpoints import Checkpoint
from forgetting.solver.sweepers import RowSweeper

rng = np.random.default_rng(11)
A = rng.standard_normal((60, 20)) * np.linspace(0.3, 1.0, 20)
X = rng.standard_normal((20, 3))
B = A @ X
NOISY = B[:, 0] + rng.standard_normal(60)
TALL = rng.standard_normal((3000, 8))
WIDE = rng.standard_normal((60, 80))


class Sliced:
    """An object with a shape and row slices."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def __getitem__(self, rows):
        return self.array[rows]


STREAMED = {"memory": 4 * 9 * 320, "blocks": 9}
SLABS = {"memory": 4096, "blocks": 3, "maxiter": 12}
CASES = {
    "kaczmarz": (A, B[:, 0], {"maxiter": 400}),
    "inconsistent, auto": (A, NOISY, {"maxiter": 400, "tol": 1e-3}),
    "multipliers": (A, NOISY, {"method": "multipliers"}),
    "damped": (A, NOISY, {"damp": 0.5}),
    "averaged": (A, NOISY, {"method": "averaged"}),
    "averaged, damped": (A, NOISY, {"method": "averaged", "damp": 0.5}),
    "extended": (A, NOISY, {"method": "extended"}),
    "blocks": (A, B, {"blocks": 7, "relaxation": 1.1}),
    "Cimmino": (A, B[:, 0], {"average": 5, "relaxation": 3.0, "ordering": "with-replacement"}),
    "several right-hand sides": (A, B, {"x0": np.ones((20, 3))}),
    "sparse": (sparse.csr_array(A * (A > 0)), (A * (A > 0)) @ X[:, 0], {"ordering": "norm-weighted"}),
    "nearest": (A[:15], B[:15, 0], {"relations": ["<=", ">=", "="] * 5, "nearest": True, "bounds": (-3, 3)}),
    "tall": (TALL, TALL @ X[:8, 0], {"blocks": 10}),
    "steps": (A, B[:, 0], {"max_steps": 77, "blocks": "rows", "tol": 0.0}),
    "noise": (A, NOISY, {"noise": 1.0, "relaxation": "auto"}),
    "noise, shortened": (A, NOISY, {"noise": 0.95, "maxiter": 400}),
    "noise, several right-hand sides": (A, B + 0.3, {"noise": ("relative", 0.1), "relaxation": [0.5, 0.2]}),
    "noise, rows without": (A, NOISY, {"noise": [1.2] * 58 + [0.0] * 2, "relaxation": "auto", "blocks": 7}),
    "periodogram": (A, NOISY, {"stop": "ncp", "relaxation": lambda epoch: 1 / (2 + epoch)}),
    "monotone": (A, NOISY, {"noise": 1.0, "stop": "monotone", "method": "sirt", "maxiter": 60}),
    "noise, streamed": (Sliced(A), NOISY, {**STREAMED, "noise": 1.0, "relaxation": "auto"}),
    "views": (A, B[:, 0], {"method": "sart", "blocks": 12, "maxiter": 20}),
    "streamed": (Sliced(A), B[:, 0], STREAMED),
    "streamed, inconsistent": (Sliced(A), NOISY, {**STREAMED, "threads": 2, "maxiter": 400, "tol": 1e-3}),
    "streamed, several right-hand sides": (Sliced(A), B, {**STREAMED, "damp": 0.3, "maxiter": 12}),
    "streamed, nearest": (Sliced(A[:15]), B[:15, 0], {**SLABS, "relations": [">="] * 15, "nearest": True}),
    "streamed, tall": (Sliced(TALL), TALL @ X[:8, 0], {"memory": 2**16, "blocks": 50}),
}


def assert_equal(one, other):
    """Equal in all but the time; norms up to the last digits, which depend on where in memory a vector begins."""
    np.testing.assert_array_equal(one.x, other.x)
    for name in ("epoch", "checked"):
        np.testing.assert_array_equal(getattr(one.history, name), getattr(other.history, name))
    np.testing.assert_allclose(one.history.residual, other.history.residual, rtol=1e-12)
    for name in ("residual", "normal", "error"):
        norms = [np.nan if (norm := getattr(solution, name)) is None else norm for solution in (one, other)]
        np.testing.assert_allclose(*norms, rtol=1e-12, err_msg=name)
    for name in ("converged", "status", "rows", "epochs", "method", "consistent"):
        assert getattr(one, name) == getattr(other, name), name


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    """A process that is killed loses nothing of what the system holds for the disk."""
    monkeypatch.setattr("os.fsync", lambda handle: None)


class KilledError(Exception):
    """Instead of a signal."""


def kill_after(patch, saves):
    """End a solve right after so many saves; the list says how many there were."""
    original, made = Checkpoint.save, []

    def save(self, loop, **options):
        original(self, loop, **options)
        made.append(loop.steps)
        if len(made) == saves:
            raise KilledError

    patch.setattr(Checkpoint, "save", save)
    return made


@pytest.mark.parametrize("name", list(CASES)[:: rounds(2, 1)])
def test_a_solve_that_is_killed_ends_as_the_uninterrupted_one(name, tmp_path):
    matrix, b, options = CASES[name]
    path = tmp_path / "state.npz"
    options = {"tol": 1e-7, "seed": 5, "maxiter": 30, **options}
    reference = fg.solve(matrix, b, **options)
    with pytest.MonkeyPatch.context() as patch:
        made = kill_after(patch, -1)
        assert_equal(fg.solve(matrix, b, **options, checkpoint=path, checkpoint_every=0), reference)
    total = len(made)
    assert total > 3
    for saves in sorted({1, 3, total // 3, total // 2, total - 1, total} if LONG else {1, total // 2, total}):
        path.unlink()
        with pytest.MonkeyPatch.context() as patch:
            kill_after(patch, saves)
            with pytest.raises(KilledError):
                fg.solve(matrix, b, **options, checkpoint=path, checkpoint_every=0)
        assert_equal(fg.solve(matrix, b, **options, checkpoint=path), reference)
    assert_equal(fg.solve(matrix, b, **options, checkpoint=path), reference)  # finished: nothing is left to do


def test_a_solve_that_is_killed_after_every_save_still_ends(tmp_path):
    matrix, b, options = CASES["streamed, inconsistent"]
    options, path = {**options, "maxiter": 12}, tmp_path / "state.npz"
    reference = fg.solve(matrix, b, **options)
    for kills in range(1000):
        with pytest.MonkeyPatch.context() as patch:
            kill_after(patch, 1 if kills == 0 else 5)
            try:
                solution = fg.solve(matrix, b, **options, checkpoint=path, checkpoint_every=0)
                break
            except KilledError:
                pass
    assert kills > 10
    assert_equal(solution, reference)


def test_a_finished_solve_goes_on_with_a_larger_maxiter_and_a_smaller_tol(tmp_path):
    options = {"seed": 1, "method": "kaczmarz"}
    path = tmp_path / "state.npz"
    first = fg.solve(A, B[:, 0], maxiter=3, tol=0.0, checkpoint=path, **options)
    assert "maxiter = 3" in first.status
    second = fg.solve(A, B[:, 0], maxiter=8, tol=0.0, checkpoint=path, **options)
    np.testing.assert_array_equal(second.x, fg.solve(A, B[:, 0], maxiter=8, tol=0.0, **options).x)
    assert len(second.history) == 8
    assert second.epochs == 8
    third = fg.solve(A, B[:, 0], tol=1e-9, checkpoint=path, **options)
    assert third.converged
    assert third.residual <= 1e-9
    assert third.epochs > 8
    again = fg.solve(A, B[:, 0], tol=1e-5, checkpoint=path, **options)
    assert again.converged
    assert again.epochs == third.epochs


KRYLOV = {
    "cgmn": (WIDE, WIDE @ X[:, 0].repeat(4), {"method": "cgmn", "maxiter": 60}),
    "cgls": (A, NOISY, {"method": "cgls", "maxiter": 60}),
    "projected": (A, NOISY, {"method": "projected", "bounds": (0, np.inf), "maxiter": 200}),
    "bounds": (A, NOISY, {"bounds": (0, np.inf), "maxiter": 200}),
    "nearest minimiser": (WIDE, NOISY, {"method": "projected", "bounds": (0, 0.1), "nearest": True, "maxiter": 200}),
    "exact rows": (A, B[:, 0], {"sets": fg.Ball(np.zeros(20), 30.0), "maxiter": 40}),
}


@pytest.mark.parametrize("limit", ["maxiter", "max_steps"])
@pytest.mark.parametrize("name", [*CASES, *KRYLOV])
def test_a_solve_that_was_stopped_by_limits_and_went_on_is_that_without_a_stop(name, limit, tmp_path):
    matrix, b, options = {**CASES, **KRYLOV}[name]
    options = {"tol": 1e-7, "seed": 5, "maxiter": 30, **options}
    if limit in options and limit == "max_steps":
        pytest.skip("has a limit of its own")
    reference = fg.solve(matrix, b, **options)
    for seed in range(rounds(1, 4)):
        path, draw = tmp_path / f"{seed}.npz", np.random.default_rng(seed)
        visits = 1 if limit == "maxiter" else max(1, len(b) // 10)
        for stop in sorted(draw.integers(1, max(3, int(reference.epochs * visits)), size=3).tolist()):
            part = fg.solve(matrix, b, **{**options, limit: stop}, checkpoint=path)
            assert part.history.checked[-1], part.status
        assert_equal(fg.solve(matrix, b, **options, checkpoint=path), reference)


@pytest.mark.parametrize(
    ("named", "change"),
    [
        ("A", {"A": A + np.eye(60, 20)}),
        ("A", {"A": A[:59], "b": B[:59, 0]}),
        ("b", {"b": B[:, 1]}),
        ("x0", {"x0": np.ones(20)}),
        ("blocks", {"blocks": 5}),
        ("blocks", {"blocks": [[*range(30)], [*range(30, 60)]]}),
        ("relaxation differs (1.0 in the file, 1.5 now)", {"relaxation": 1.5}),
        ("average", {"average": 2, "blocks": "rows"}),
        ("method differs (auto in the file, multipliers now)", {"method": "multipliers"}),
        ("ordering", {"ordering": "cyclic", "blocks": "rows"}),
        ("damp", {"damp": 0.1}),
        ("nearest", {"nearest": True}),
        ("relations", {"relations": ">=", "blocks": "rows"}),
        ("bounds", {"bounds": (0, 9), "blocks": "rows"}),
        ("seed differs (0 in the file, 3 now)", {"seed": 3}),
    ],
)
def test_the_state_of_another_solve_is_refused_by_the_name_of_what_differs(named, change, tmp_path):
    path = tmp_path / "state.npz"
    base = {"A": A, "b": B[:, 0], **({"blocks": change["blocks"]} if change.get("blocks") == "rows" else {})}
    fg.solve(**base, checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(InvalidInputError, match=re.escape(f"the state of another solve: {named}")):
        fg.solve(**{**base, **change}, checkpoint=path)
    assert path.read_bytes() == before


def test_the_file_of_a_streamed_matrix_may_move_but_not_change(tmp_path):
    path, first, other = tmp_path / "state.npz", tmp_path / "A.npy", tmp_path / "moved.npy"
    np.save(first, A)
    options = {"memory": 4 * 9 * 160, "blocks": 9}
    solution = fg.solve(first, B[:, 0], checkpoint=path, **options)
    first.rename(other)
    assert_equal(fg.solve(other, B[:, 0], checkpoint=path, **options), solution)
    np.save(other, A[::-1])
    with pytest.raises(InvalidInputError, match="another solve: A differs"):
        fg.solve(other, B[:, 0], checkpoint=path, **options)
    np.save(other, A)
    with pytest.raises(InvalidInputError, match="blocks differs"):
        fg.solve(other, B[:, 0], checkpoint=path, memory=4 * 9 * 160, blocks=7)


def test_a_changed_file_of_compressed_rows_is_noticed(tmp_path):
    folder, path = tmp_path / "parts", tmp_path / "state.npz"
    folder.mkdir()
    for i in range(4):
        sparse.save_npz(folder / f"{i}.npz", sparse.csr_array(A[15 * i : 15 * i + 15]))
    fg.solve(folder, B[:, 0], checkpoint=path, memory=40000)
    fg.solve(folder, B[:, 0], checkpoint=path, memory=40000)
    changed = A[15:30].copy()
    changed[7, 7] += 1e-9
    sparse.save_npz(folder / "1.npz", sparse.csr_array(changed))
    with pytest.raises(InvalidInputError, match="another solve: A differs"):
        fg.solve(folder, B[:, 0], checkpoint=path, memory=40000)


def test_files_that_are_no_checkpoints_are_kept_and_refused(tmp_path):
    path = tmp_path / "mine.npz"
    np.savez(path, x=np.ones(3))
    fg.families.two_lines(0.5).save(tmp_path / "tasks.npz")
    (tmp_path / "text.npz").write_text("my notes")
    (tmp_path / "folder.npz").mkdir()
    for name in ("mine.npz", "tasks.npz", "text.npz", "folder.npz"):
        before = None if name.startswith("folder") else (tmp_path / name).read_bytes()
        with pytest.raises(ProblemFileError, match=name):
            fg.solve(A, B[:, 0], checkpoint=tmp_path / name)
        assert before is None or (tmp_path / name).read_bytes() == before
    with pytest.raises(ProblemFileError, match=r"there is no folder .*nowhere"):
        fg.solve(A, B[:, 0], checkpoint=tmp_path / "nowhere" / "state.npz")


def test_damaged_checkpoints_are_refused(tmp_path):
    path = tmp_path / "state.npz"
    fg.solve(A, NOISY, checkpoint=path, maxiter=20)
    whole = path.read_bytes()
    for cut in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(ProblemFileError, match=r"state\.npz"):
            fg.solve(A, NOISY, checkpoint=path, maxiter=20)
    path.write_bytes(whole)
    fg.solve(A, NOISY, checkpoint=path, maxiter=20)


def test_states_with_wrong_entries_are_refused(tmp_path, monkeypatch):
    from forgetting.files.records import read_record, write_record

    monkeypatch.setattr("forgetting.solver.methods.base.SMALL", 0.0)  # as a larger system
    path = tmp_path / "state.npz"
    fg.solve(A, NOISY, checkpoint=path, maxiter=20)
    kind = "state of a solve"
    state = read_record(path, kind, dict)
    assert state["switched"]
    assert state["method"] == "cgls"
    wrong = [
        {"method": "kaczmarz"},
        {"arrays": {}},
        {"arrays": {**state["arrays"], "duals": np.zeros(3)}},
        {"arrays": {**state["arrays"], "x": state["arrays"]["x"].astype(int)}},
        {"counts": {**state["counts"], "steps": -1}},
        {"counts": {}},
        {"left": 2, "seen": np.zeros(5)},
        {"left": "all"},
        {"history": {"0": np.zeros(2), "1": np.zeros(3)}},
        {"measured": [1, 2, 3, 4, 5, 6]},
        {"estimates": "none"},
        {"estimates": np.zeros((2, 2))},
        {"estimates": np.array(0.5)},
        {"measured": [0.5, "x", None, None, None]},
        {"measured": [0.5, 0.5, None, None, (np.zeros(3), np.zeros(3), np.zeros(3))]},
        {"measured": [0.5, 0.5, None, None, (np.array(["a"]),) * 3]},
        {"history": {name: np.array(["a"]) for name in "0123"}},
        {"counts": {**state["counts"], "steps": 10**15}},
        {"counts": {**state["counts"], "rows": 10**400}},
        {"left": 10**12, "seen": np.zeros(1)},
        {"seconds": float("nan")},
        {"switched": False, "method": "kaczmarz", "arrays": {}},
    ]
    for change in wrong:
        path.unlink()
        write_record(path, kind, {**state, **change})
        with pytest.raises(ProblemFileError, match="damaged state of a solve"):
            fg.solve(A, NOISY, checkpoint=path, maxiter=20)
    path.unlink()
    write_record(path, kind, {name: value for name, value in state.items() if name != "marks"})
    with pytest.raises(InvalidInputError, match="A differs"):
        fg.solve(A, NOISY, checkpoint=path, maxiter=20)


def test_adaptive_orderings_have_no_checkpoints(tmp_path):
    with pytest.raises(NotSupportedError, match=r"greedy distance.* cannot be drawn again"):
        fg.solve(A, B[:, 0], ordering="greedy-distance", checkpoint=tmp_path / "state.npz")


def test_seconds_are_those_of_all_runs(tmp_path):
    path = tmp_path / "state.npz"
    fg.solve(A, NOISY, checkpoint=path, maxiter=20)
    solution = fg.solve(A, NOISY, checkpoint=path, maxiter=30)
    assert (np.diff(solution.history.seconds) >= 0).all()
    assert solution.seconds >= solution.history.seconds[-1]


def test_a_checkpoint_is_not_written_more_often_than_asked(tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        written = []
        patch.setattr("forgetting.solver.checkpoints.write_record", lambda *arguments: written.append(arguments))
        fg.solve(A, NOISY, checkpoint=tmp_path / "state.npz", checkpoint_every=1e9)
    assert len(written) == 2  # at the start and at the end


# ----------------------------------------------------------------------------------------------------- a real signal

CHILD = """
import os, signal, sys
import numpy as np
import forgetting as fg
from forgetting.solver.sweepers import RowSweeper
os.fsync = lambda handle: None
folder, kill = sys.argv[1], int(sys.argv[2])
original, sweeps = RowSweeper.sweep, []
def sweep(*arguments, **more):
    done = original(*arguments, **more)
    sweeps.append(1)
    if len(sweeps) == kill:
        os.kill(os.getpid(), signal.SIGKILL)
    return done
RowSweeper.sweep = sweep
A, b = np.load(folder + "/A.npy"), np.load(folder + "/b.npy")
fg.solve(folder + "/A.npy" if {streamed} else A, b, **{options})
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
@pytest.mark.parametrize(
    ("streamed", "noise", "options"),
    [
        (False, 0.0, {"method": "kaczmarz", "tol": 1e-12}),
        pytest.param(False, 1.0, {"method": "multipliers"}, marks=pytest.mark.slow),
        pytest.param(False, 1.0, {"method": "averaged"}, marks=pytest.mark.slow),
        (True, 0.0, {"method": "kaczmarz", "memory": 2**16, "tol": 1e-12}),
        pytest.param(True, 1.0, {"method": "auto", "memory": 2**16}, marks=pytest.mark.slow),
    ],
)
def test_a_process_that_is_killed_in_the_middle_of_a_sweep_is_resumed(streamed, noise, options, tmp_path, monkeypatch):
    draws = np.random.default_rng(0)
    matrix = draws.standard_normal((300, 60))
    b = matrix @ np.ones(60) + noise * draws.standard_normal(300)
    np.save(tmp_path / "A.npy", matrix)
    np.save(tmp_path / "b.npy", b)
    options = {"seed": 2, "maxiter": 60, **options}
    saving = {**options, "checkpoint": str(tmp_path / "state.npz"), "checkpoint_every": 0}
    sweeps, original = [], RowSweeper.sweep
    monkeypatch.setattr(
        RowSweeper, "sweep", lambda *arguments, **more: sweeps.append(1) or original(*arguments, **more)
    )
    whole = fg.solve(tmp_path / "A.npy" if streamed else matrix, b, **options)
    total = len(sweeps)
    code = CHILD.format(options=saving, streamed=streamed)
    arguments = [sys.executable, "-c", code, str(tmp_path), str(2 * total // 3)]
    assert subprocess.run(arguments, capture_output=True).returncode == -signal.SIGKILL
    resumed = fg.solve(tmp_path / "A.npy" if streamed else matrix, b, **saving)
    assert 0 < len(sweeps) - total < total / 2  # what was done before is not done again
    assert_equal(resumed, whole)


def test_a_file_that_changed_after_the_end_of_a_solve_is_not_called_solved(tmp_path):
    rng = np.random.default_rng(8)
    matrix, path = rng.standard_normal((400, 10)), tmp_path / "A.npy"
    b = matrix @ np.ones(10)
    options = {"memory": 20_000, "checkpoint": tmp_path / "state.npz", "tol": 1e-10, "maxiter": 40}
    np.save(path, matrix)
    assert fg.solve(path, b, **options).converged
    matrix[201, 3] += 1.0  # a row that is not among those that are compared
    np.save(path, matrix)
    resumed = fg.solve(path, b, **options)
    assert resumed.residual == pytest.approx(np.linalg.norm(b - matrix @ resumed.x) / np.linalg.norm(b), rel=1e-6)
    assert not resumed.converged
