"""Matrices that are not in memory: every kind of source, blocks read ahead, memory, and what is refused."""

import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import forgetting as fg
from forgetting.errors import InvalidInputError, MemoryLimitError, NotSupportedError, ProblemFileError
from forgetting.files.matrix_sources import as_source
from forgetting.files.row_sources import block_starts
from forgetting.solver.loop import Loop
from forgetting.solver.pairs import opened
from forgetting.solver.rows import Rows

SMALL = 2**16  # bytes: the matrices of these tests take more, and are streamed


@pytest.fixture(scope="module")
def system():
    """A of 600 x 40, with a solution x."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((600, 40))
    x = rng.standard_normal(40)
    return A, A @ x, x


@pytest.fixture(scope="module")
def sparse_system():
    """A of 3000 x 60 with 10 % entries."""
    A = sparse.random_array((3000, 60), density=0.1, rng=np.random.default_rng(5), format="csr")
    x = np.random.default_rng(6).standard_normal(60)
    return A, A @ x, x


class Sliced:
    """What an array of h5py or zarr has: a shape, a dtype and row slices; every read is noted."""

    def __init__(self, array, chunks=None):
        self.array, self.shape, self.reads = array, array.shape, []
        if chunks is not None:
            self.chunks = chunks

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        self.reads.append((rows.start, rows.stop, threading.current_thread().name))
        return self.array[rows]


class RowOperator(LinearOperator):
    """An operator with rows."""

    def __init__(self, array):
        super().__init__(np.float64, array.shape)
        self.array = array

    def _matvec(self, v):
        return self.array @ v

    def rows(self, start, stop):
        return self.array[start:stop]


def in_folder(A, folder):
    folder.mkdir()
    for i, part in enumerate(np.array_split(A, 7)):
        np.save(folder / f"part{i:02}.npy", part)
    return folder


def saved(A, path, **options):
    np.save(path, A, **options)
    return path


def mapped(A, path, **options):
    array = np.memmap(path, mode="w+", shape=A.shape, dtype=A.dtype, **options)
    array[:] = A
    return array


DENSE = {
    "npy": lambda A, folder: saved(A, folder / "A.npy"),
    "npy in Fortran order": lambda A, folder: saved(np.asfortranarray(A), folder / "A.npy"),
    "npy of big-endian numbers": lambda A, folder: saved(A.astype(">f8"), folder / "A.npy"),
    "memmap": lambda A, folder: mapped(A, folder / "A.bin"),
    "memmap with an offset": lambda A, folder: mapped(A, folder / "A.bin", offset=5000),
    "memmap in Fortran order": lambda A, folder: mapped(A, folder / "A.bin", order="F"),
    "opened npy": lambda A, folder: np.load(saved(A, folder / "A.npy"), mmap_mode="r"),
    "private map": lambda A, folder: np.load(saved(A, folder / "A.npy"), mmap_mode="c"),
    "folder": lambda A, folder: in_folder(A, folder / "blocks"),
    "slices": lambda A, folder: Sliced(A),
    "operator with rows": lambda A, folder: RowOperator(A),
    "operator": lambda A, folder: aslinearoperator(A),
}


@pytest.mark.parametrize("kind", DENSE)
def test_every_source_gives_the_solution_and_the_rows_of_the_matrix(kind, system, tmp_path):
    A, b, x = system
    source = DENSE[kind](A, tmp_path)
    opened_source = opened(source, SMALL)[0]
    assert not isinstance(opened_source, Rows)  # streamed
    read = [Rows(opened_source.read(i, j)).matrix for i, j in ((0, 1), (3, 9), (86 * 3, 86 * 4))]
    np.testing.assert_array_equal(np.concatenate(read), A[[0, *range(3, 9), *range(258, 344)]])
    memory = 2**20 if kind == "operator" else SMALL
    solution = fg.solve(source, b, tol=1e-10, memory=memory, blocks="auto" if kind != "operator" else 20)
    assert solution.converged
    np.testing.assert_allclose(solution.x, x, atol=1e-8)


@pytest.mark.parametrize("kind", DENSE)
def test_a_source_that_fits_into_half_of_the_budget_is_read_into_memory(kind, system, tmp_path):
    A, b, _ = system
    source = DENSE[kind](A, tmp_path)
    np.testing.assert_array_equal(opened(source, 2**23)[0].matrix, A)
    np.testing.assert_array_equal(fg.solve(source, b, memory=2**23).x, fg.solve(A, b).x)


def test_a_part_of_a_map_is_that_part_of_the_file(system, tmp_path):
    A, b, x = system
    array = mapped(np.vstack([np.full((50, 40), np.nan), A, np.full((9, 40), np.nan)]), tmp_path / "A.bin", offset=160)
    part = array[50:650]
    assert type(as_source(part)).__name__ == "FileRows"
    np.testing.assert_allclose(fg.solve(part, b, memory=SMALL).x, x, atol=1e-4)
    every_other = array[50:650:2]
    np.testing.assert_allclose(fg.solve(every_other, b[::2], memory=SMALL).x, x, atol=1e-4)


def test_changes_of_a_private_map_count(system, tmp_path):
    A, b, x = system
    private = np.load(saved(np.zeros_like(A), tmp_path / "A.npy"), mmap_mode="c")
    private[:] = A
    np.testing.assert_allclose(fg.solve(private, b, memory=SMALL).x, x, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "int16", "bool", "uint8"])
def test_other_numbers_are_converted_block_by_block(dtype, tmp_path):
    A = (np.random.default_rng(0).standard_normal((900, 30)) * 3).astype(dtype)
    x = np.ones(30)
    b = A.astype(float) @ x
    solution = fg.solve(saved(A, tmp_path / "A.npy"), b, memory=SMALL, tol=1e-9)
    assert solution.converged
    assert "read one after another" in solution.blocks
    np.testing.assert_allclose(solution.x, x, atol=1e-5)


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_a_compressed_matrix_in_a_file(form, sparse_system, tmp_path):
    A, b, x = sparse_system
    sparse.save_npz(tmp_path / "A.npz", A.asformat(form))
    np.testing.assert_array_equal(fg.solve(tmp_path / "A.npz", b).x, fg.solve(A, b).x)
    np.savez(tmp_path / "plain.npz", data=A.data, indices=A.indices, indptr=A.indptr, shape=A.shape)
    np.testing.assert_array_equal(fg.solve(str(tmp_path / "plain.npz"), b).x, fg.solve(A, b).x)
    np.savez(tmp_path / "dense.npz", A=A.toarray())
    np.testing.assert_allclose(fg.solve(tmp_path / "dense.npz", b).x, x, atol=1e-4)


def test_a_folder_of_compressed_and_dense_files_is_streamed(sparse_system, tmp_path):
    A, b, x = sparse_system
    for i in range(10):
        part = A[300 * i : 300 * (i + 1)]
        if i == 4:
            np.save(tmp_path / f"part{i}.npy", part.toarray())
        else:
            sparse.save_npz(tmp_path / f"part{i}.npz", part)
    (tmp_path / "notes.txt").write_text("not a block")
    solution = fg.solve(tmp_path, b, tol=1e-9, memory=2**19)
    assert solution.converged
    assert "12 blocks" in solution.blocks
    np.testing.assert_allclose(solution.x, x, atol=1e-6)
    np.testing.assert_array_equal(opened(tmp_path, 2**30)[0].matrix, A.toarray())
    (tmp_path / "part4.npy").unlink()
    sparse.save_npz(tmp_path / "part4.npz", A[1200:1500])
    np.testing.assert_array_equal(opened(tmp_path, 2**30)[0].matrix.toarray(), A.toarray())


def test_compressed_slices(sparse_system):
    A, b, x = sparse_system
    source = Sliced(A)
    solution = fg.solve(source, b, tol=1e-9, memory=2**18)
    assert solution.converged
    assert len(source.reads) > 20
    np.testing.assert_allclose(solution.x, x, atol=1e-6)


# ----------------------------------------------------------------------------------------------------- how it is swept


def streamed(A, b, **options):
    """The solution, and the object whose slices were read."""
    source = Sliced(A)
    return fg.solve(source, b, **{"memory": 2**18, "blocks": 60, **options}), source


def test_no_result_depends_on_threads_or_on_blocks_that_are_kept(system):
    A, b, _ = system
    noisy = b + np.random.default_rng(0).standard_normal(len(b))
    for side, tol in ((b, 1e-9), (noisy, 1e-6), (np.stack([b, 2 * b], axis=1), 1e-9)):
        options = {"tol": tol, "blocks": 60}
        runs = [
            streamed(A, side, threads=threads, memory=memory, **options)
            for threads, memory in ((1, 4 * 60 * 640), (2, 4 * 60 * 640), (3, 2**18), (1, 2**18 + 2**17))
        ]
        first = runs[0][0]
        for other, _ in runs[1:]:
            np.testing.assert_array_equal(first.x, other.x)
            np.testing.assert_array_equal(first.history.residual, other.history.residual)
            assert first.status == other.status
        assert len(runs[3][1].reads) < 0.6 * len(runs[0][1].reads)  # most blocks were kept


def test_the_next_block_is_read_by_another_thread(system):
    A, b, _ = system
    by_name = {name for _, _, name in streamed(A, b, threads=2)[1].reads}
    assert "reads ahead" in by_name
    assert {name for _, _, name in streamed(A, b, threads=1)[1].reads} == {threading.current_thread().name}


def test_an_epoch_reads_every_block_once(system):
    A, b, _ = system
    for threads in (1, 2):
        _, source = streamed(A, b, threads=threads, tol=0.0, maxiter=5, memory=4 * 60 * 640)
        blocks = [read[:2] for read in source.reads if read[:2] != (0, 1)]  # the first row is read to see its type
        assert len(blocks) == 10 * (5 + 1)  # five epochs, and the residual at the end
        assert sorted(set(blocks)) == [(60 * i, 60 * i + 60) for i in range(10)]


def test_blocks_depend_on_the_shape_and_the_budget_only(tmp_path):
    source = as_source(Sliced(np.zeros((1000, 100)), chunks=(16, 100)))
    starts = block_starts(source, 2**20, None)
    assert starts[0] == 0
    assert starts[-1] == 1000
    assert np.diff(starts).max() <= 2**20 / 8 / 1600
    assert block_starts(source, 2**20, 7).tolist()[:3] == [0, 6, 13]  # 143 blocks of 6 or 7 rows
    assert np.diff(block_starts(source, 2**20, 7)).max() == 7


def test_a_tall_system_stops_within_the_first_epoch():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40000, 20))
    source = Sliced(A)
    solution = fg.solve(source, A @ np.ones(20), memory=2**21)
    assert solution.converged
    assert solution.epochs < 0.2
    blocks = int(solution.blocks.split()[0])
    assert len(source.reads) <= 1.2 * blocks + 3  # a few blocks, and one pass for the residual


def test_the_result_is_the_projection_of_x0(system):
    A, b, _ = system
    wide, start = A[:10], np.linspace(-1, 1, 40)
    expected = start + np.linalg.lstsq(wide, b[:10] - wide @ start, rcond=None)[0]
    solution = fg.solve(Sliced(wide), b[:10], tol=1e-11, x0=start, memory=9600, blocks=3)
    assert "read one after another" in solution.blocks
    np.testing.assert_allclose(solution.x, expected, atol=1e-8)


def test_least_squares_and_damping_by_blocks(system):
    A, b, _ = system
    noisy = b + np.random.default_rng(1).standard_normal(len(b))
    expected = np.linalg.lstsq(A, noisy, rcond=None)[0]
    solution, _ = streamed(A, noisy, tol=1e-8)
    assert not solution.converged
    assert solution.consistent is False
    assert "inconsistent" in solution.status
    np.testing.assert_allclose(solution.x, expected, rtol=0, atol=1e-6 * np.linalg.norm(expected))
    damped, _ = streamed(A, noisy, tol=1e-8, damp=3.0)
    ridge = np.linalg.solve(A.T @ A + 9 * np.eye(40), A.T @ noisy)
    np.testing.assert_allclose(damped.x, ridge, rtol=0, atol=1e-6 * np.linalg.norm(ridge))


def test_inequalities_bounds_and_averages_by_blocks(system):
    A, b, _ = system
    solution, _ = streamed(A, b - 1, relations=[">="] * 600, tol=1e-9)
    assert solution.converged
    assert (A @ solution.x >= b - 1 - 1e-6).all()
    few, mixed = A[:30], ["<=", ">="] * 15
    nearest, _ = streamed(few, b[:30], relations=mixed, nearest=True, tol=1e-6, blocks=5, memory=2**14)
    assert nearest.converged
    assert "6 blocks" in nearest.blocks
    np.testing.assert_allclose(nearest.x, fg.solve(few, b[:30], relations=mixed, nearest=True, tol=1e-6).x, atol=1e-4)
    y = np.abs(np.linspace(-1, 1, 40))
    boxed, _ = streamed(A, A @ y, bounds=(0, 1), tol=1e-9)
    np.testing.assert_allclose(boxed.x, y, atol=1e-6)
    averaged, _ = streamed(A, b, average=4, relaxation=2.0, tol=1e-9)
    assert averaged.converged


# ----------------------------------------------------------------------------------------------------- what is refused


def test_bad_entries_are_named_by_the_row_and_column_of_the_matrix(system, tmp_path):
    A, b, _ = system
    for value, word in ((np.nan, "nan"), (np.inf, "inf"), (1e200, "1e.200")):
        bad = A.copy()
        bad[457, 13] = value
        with pytest.raises(InvalidInputError, match=f"row 457, column 13 is {word}"):
            streamed(bad, b, maxiter=1)
    bad = sparse.csr_array(A * (np.abs(A) > 1))
    place = bad.indptr[457] + 2
    bad.data[place] = np.nan
    with pytest.raises(InvalidInputError, match=f"row 457, column {bad.indices[place]} is nan"):
        streamed(bad, b, maxiter=1)


def test_blocks_of_another_shape_are_refused(system):
    A, b, _ = system

    class Short(Sliced):
        def __getitem__(self, rows):
            return self.array[rows][:, :39] if rows.start >= 300 else self.array[rows]

    with pytest.raises(InvalidInputError, match=r"came in shape \(60, 39\), expected \(60, 40\)"):
        fg.solve(Short(A), b, memory=2**18, blocks=60, ordering="cyclic")
    with pytest.raises(InvalidInputError, match="600 rows, but b has shape"):
        streamed(A, b[:-1])
    with pytest.raises(InvalidInputError, match="expected a matrix"):
        fg.solve(Sliced(b), b)


def test_what_needs_the_matrix_in_memory_says_what_to_do(system):
    A, b, _ = system
    for method in ("extended", "averaged"):
        with pytest.raises(NotSupportedError, match=r"method='multipliers' .* or give memory="):
            streamed(A, b, method=method)
    with pytest.raises(NotSupportedError, match=r"greedy distance.* leave ordering= out"):
        streamed(A, b, ordering="greedy-distance")
    with pytest.raises(NotSupportedError, match="consecutive rows; give their size"):
        streamed(A, b, blocks=[range(300), range(300, 600)])
    with pytest.raises(NotSupportedError, match="average=600 rows"):
        streamed(A, b, average="all")
    with pytest.raises(MemoryLimitError, match="smaller blocks="):
        streamed(A, b, blocks=500)
    with pytest.raises(MemoryLimitError, match="give more memory"):
        streamed(A, b, blocks="auto", memory=1000)
    with pytest.raises(InvalidInputError, match="'auto', 'rows' or a number"):
        streamed(A, b, blocks="row")


def test_files_that_are_no_matrices_are_refused(system, tmp_path):
    A, b, _ = system
    for name, text in (("nowhere.npy", "no such file"), ("A.csv", "no such file"), ("A.xyz", "unknown ending")):
        with pytest.raises(fg.errors.ForgettingError, match=text):
            fg.solve(tmp_path / name, b)
    np.save(tmp_path / "objects.npy", np.array([[1, "a"]], dtype=object), allow_pickle=True)
    with pytest.raises(ProblemFileError, match="never loaded"):
        fg.solve(tmp_path / "objects.npy", b)
    np.save(tmp_path / "words.npy", np.array([["a", "b"]]))
    with pytest.raises(ProblemFileError, match="dtype"):
        fg.solve(tmp_path / "words.npy", b)
    whole = saved(A, tmp_path / "A.npy").read_bytes()
    for size in (5, 9, 60, len(whole) - 8):
        (tmp_path / "cut.npy").write_bytes(whole[:size])
        with pytest.raises(ProblemFileError, match="damaged"):
            fg.solve(tmp_path / "cut.npy", b)
    np.savez(tmp_path / "wild.npz", data=[1.0], indices=[7], indptr=[0, 1], shape=[1, 2])
    with pytest.raises(ProblemFileError, match="damaged sparse matrix"):
        fg.solve(tmp_path / "wild.npz", [1.0])
    sparse.save_npz(tmp_path / "dia.npz", sparse.dia_array(np.eye(3)))
    with pytest.raises(ProblemFileError, match="'dia'; save it as csr"):
        fg.solve(tmp_path / "dia.npz", [1.0, 1.0, 1.0])


def test_folders_that_are_no_matrices_are_refused(tmp_path):
    with pytest.raises(ProblemFileError, match=r"without \.npy and \.npz files"):
        fg.solve(tmp_path, [1.0])
    for name in ("part2.npy", "part10.npy"):
        np.save(tmp_path / name, np.eye(3))
    with pytest.raises(ProblemFileError, match=r"'part10.npy' comes before 'part2.npy' by name.* leading zeros"):
        fg.solve(tmp_path, np.ones(6))
    (tmp_path / "part10.npy").rename(tmp_path / "part3.npy")
    np.save(tmp_path / "part3.npy", np.eye(4))
    with pytest.raises(InvalidInputError, match=r"part3.npy has 4 columns, but part2.npy has 3"):
        fg.solve(tmp_path, np.ones(7))


def test_a_file_that_shrinks_during_a_solve_is_an_error(system, tmp_path):
    A, b, _ = system
    path = saved(A, tmp_path / "A.npy")

    def cut(_):
        path.write_bytes(path.read_bytes()[:5000])

    with pytest.raises(ProblemFileError, match="ends at byte"):
        fg.solve(path, b, memory=4 * 60 * 320, blocks=60, callback=cut, tol=1e-14)


def test_an_operator_without_rows_and_adjoint_is_refused(system):
    A, b, _ = system
    operator = LinearOperator(A.shape, matvec=lambda v: A @ v)
    with pytest.raises(NotSupportedError, match=r"give it a method rows\(start, stop\), or rmatvec"):
        fg.solve(operator, b)


# -------------------------------------------------------------------------------------------------------------- memory

PEAK = """
import resource, sys
import numpy as np
import forgetting as fg
A = np.random.default_rng(0).standard_normal((400, 50))
fg.solve(A, A @ np.ones(50))  # compiles
def status(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024
open("/proc/self/clear_refs", "w").write("5")  # the peak begins anew
before = status("VmRSS")
b = np.load(sys.argv[1] + "/b.npy")
solution = fg.solve(sys.argv[2], b, memory=2**23, tol=1e-9)
assert solution.converged, solution.status
print(status("VmHWM") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("fortran", [False, True])
def test_resident_memory_stays_within_the_budget(fortran, tmp_path):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((16384, 512))  # 64 MiB
    np.save(tmp_path / "A.npy", np.asfortranarray(A) if fortran else A)
    np.save(tmp_path / "b.npy", A @ np.ones(512))
    del A
    arguments = [sys.executable, "-c", PEAK, str(tmp_path), str(tmp_path / "A.npy")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 2**23 + 2**23  # the budget, and as much again for threads, b and freed memory


def test_the_loop_saves_within_a_round(system):
    """After every block of a streamed matrix, the loop offers its state."""
    A, b, _ = system
    offers = []
    original = Loop._sweep

    def noted(self):
        self.save = lambda loop: offers.append((loop.steps, loop.left))
        original(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "_sweep", noted)
        streamed(A, b, maxiter=1, tol=0.0)
    assert offers == [(i + 1, 9 - i) for i in range(10)] + [(10, None)]


@pytest.mark.parametrize("shape", [None, "ab", (3,), (3, 0), (3, 2.5), (-1, 2), (2, 2, 2)])
def test_odd_shapes_of_objects_with_rows_are_named(shape):
    class Odd:
        def __getitem__(self, rows):
            return np.ones((2, 2))[rows]

    Odd.shape = shape
    with pytest.raises(InvalidInputError, match="A: expected a matrix with rows and columns, got shape "):
        fg.solve(Odd(), np.ones(2))
