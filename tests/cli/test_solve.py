"""`forgetting solve`: the numbers of the library, from every kind of file, with exit codes for scripts."""

from __future__ import annotations

import json
import os
import signal

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import forgetting as fg
from forgetting.errors import ProblemFileError
from forgetting.files.matrices import read_matrix
from forgetting.report import load_report

A = sp.random_array((60, 8), density=0.4, rng=np.random.default_rng(0)).tocsr()
X = np.arange(1.0, 9.0)
B = A @ X


@pytest.fixture(autouse=True)
def files(tmp_path):
    sp.save_npz(tmp_path / "A.npz", A)
    sp.save_npz(tmp_path / "csc.npz", A.tocsc())
    sp.save_npz(tmp_path / "coo.npz", A.tocoo(), compressed=False)
    np.save(tmp_path / "A.npy", A.toarray())
    np.savez(tmp_path / "dense.npz", matrix=A.toarray())
    np.savez(tmp_path / "named.npz", A=A.toarray(), b=B)
    np.savetxt(tmp_path / "A.csv", A.toarray(), delimiter=",", header=",".join("abcdefgh"), comments="")
    np.savetxt(tmp_path / "A.txt", A.toarray(), fmt="%.17g")
    np.savetxt(tmp_path / "A.tsv", A.toarray(), delimiter="\t", fmt="%.17g")
    scipy.io.mmwrite(tmp_path / "A.mtx", A, precision=17)
    np.save(tmp_path / "b.npy", B)
    np.savez(tmp_path / "b.npz", B)
    np.savetxt(tmp_path / "b.csv", B)
    np.save(tmp_path / "noisy.npy", B + np.random.default_rng(1).standard_normal(60))


MATRICES = ["A.npz", "csc.npz", "coo.npz", "A.npy", "dense.npz", "named.npz", "A.csv", "A.txt", "A.tsv", "A.mtx"]


@pytest.mark.parametrize("name", MATRICES)
def test_every_kind_of_matrix_is_read_as_it_was(name, tmp_path):
    found = read_matrix(tmp_path / name)
    np.testing.assert_allclose(found.toarray() if sp.issparse(found) else found, A.toarray(), rtol=1e-15)
    assert sp.issparse(found) == (name in ("A.npz", "csc.npz", "coo.npz", "A.mtx"))


@pytest.mark.parametrize("name", ["b.npy", "b.npz", "b.csv", "named.npz"])
def test_every_kind_of_right_hand_side_is_read_as_it_was(name, tmp_path):
    found = read_matrix(tmp_path / name, "b")
    assert found.shape == (60,)
    np.testing.assert_allclose(found, B, rtol=1e-15)


def test_the_numbers_are_those_of_the_library(inside, tmp_path):
    done = inside("solve", "A.npz", "b.npy", "--out", "x.npy", "--tol", "1e-9", "--seed", "3")
    assert (done.code, done.err) == (0, "")
    expected = fg.solve(A, B, tol=1e-9, seed=3)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), expected.x)
    said = " ".join(done.out.split())
    for words in (
        "converged: relative residual",
        f"{expected.rows} row steps",
        "seconds",
        "method kaczmarz; one random order, repeated; ",
    ):
        assert words in said
    assert f"guarantee: {expected.guarantee}" in said
    assert "wrote x.npy" in done.out


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (("--ordering", "cyclic", "--blocks", "rows"), {"ordering": "cyclic", "blocks": "rows"}),
        (("-o", "with-replacement", "--relaxation", "1.2"), {"ordering": "with-replacement", "relaxation": 1.2}),
        (("--blocks", "5", "--average", "2"), {"blocks": 5, "average": 2}),
        (("--relaxation", "0.5,1.0,1.5", "--maxiter", "3"), {"relaxation": (0.5, 1.0, 1.5), "maxiter": 3}),
        (("--average", "all", "--maxiter", "40"), {"average": "all", "maxiter": 40}),
        (("--damp", "0.5"), {"damp": 0.5}),
        (("--method", "extended"), {"method": "extended"}),
        (("--nonnegative",), {"bounds": (0, np.inf)}),
        (("--bounds", "-1,7.5", "--maxiter", "60"), {"bounds": (-1, 7.5), "maxiter": 60}),
        (("--x0", "x0.csv", "--memory", "1e6"), {"x0": np.arange(8.0), "memory": 1e6}),
    ],
)
def test_options_are_those_of_the_library(inside, tmp_path, words, options):
    np.savetxt(tmp_path / "x0.csv", np.arange(8.0))
    done = inside("solve", "A.npz", "b.npy", "--json", *words)
    expected = fg.solve(A, B, **options)
    meta = json.loads(done.out)["meta"]
    assert done.code == (0 if expected.converged else 3)
    assert meta["x"] == expected.x.tolist()
    assert (meta["status"], meta["rows"], meta["seed"]) == (expected.status, expected.rows, 0)
    assert meta["guarantee"]["sentence"] == str(expected.guarantee)


@pytest.mark.parametrize("ending", [".npy", ".npz"])
def test_complex_files_are_solved_as_the_library_solves_them(inside, tmp_path, ending):
    rng = np.random.default_rng(2)
    matrix, x = rng.standard_normal((2, 12, 4)), rng.standard_normal((2, 4))
    matrix, x = matrix[0] + 1j * matrix[1], x[0] + 1j * x[1]
    saves = np.save if ending == ".npy" else np.savez
    saves(tmp_path / f"Z{ending}", matrix)
    saves(tmp_path / f"bz{ending}", matrix @ x)
    saves(tmp_path / f"start{ending}", 0.5 * x)
    words = ("solve", f"Z{ending}", f"bz{ending}", "--x0", f"start{ending}", "--tol", "1e-10")
    done = inside(*words, "--out", "x.npy")
    assert (done.code, done.err) == (0, "")
    found = np.load(tmp_path / "x.npy")
    np.testing.assert_array_equal(found, fg.solve(matrix, matrix @ x, x0=0.5 * x, tol=1e-10).x)
    pairs = np.array(json.loads(inside(*words, "--json").out)["meta"]["x"])
    np.testing.assert_array_equal(pairs[:, 0] + 1j * pairs[:, 1], found)


def test_the_help_names_the_methods_that_there_are(inside):
    from forgetting.cli.solve import METHODS

    assert list(METHODS) == list(fg.solver.registry)
    assert f"auto, {', '.join(METHODS)}: kaczmarz" in " ".join(inside("solve", "--help").out.split())


def test_seconds_end_a_solve(inside):
    done = inside("solve", "A.npz", "noisy.npy", "--seconds", "0", "--method", "kaczmarz", "--json")
    assert done.code == 3
    assert json.loads(done.out)["meta"]["rows"] == 0


def test_a_system_without_a_solution_exits_with_3_and_writes_the_least_squares_solution(inside, tmp_path):
    done = inside("solve", "A.npz", "noisy.npy", "--out", "x.npy")
    assert (done.code, done.err) == (3, "")
    assert "the system is inconsistent" in done.out
    best = np.linalg.lstsq(A.toarray(), np.load(tmp_path / "noisy.npy"), rcond=None)[0]
    np.testing.assert_allclose(np.load(tmp_path / "x.npy"), best, rtol=1e-4)
    assert inside("solve", "A.npz", "noisy.npy", "--method", "multipliers").code == 0


def test_an_interrupted_solve_names_its_checkpoint(inside, monkeypatch):
    def interrupted(*_, **__):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(fg, "solve", interrupted)
    assert inside("solve", "A.npz", "b.npy").err == "interrupted; nothing was written\n"
    done = inside("solve", "A.npz", "b.npy", "--checkpoint", "state.npz")
    assert (done.code, done.err) == (130, "interrupted; the same command goes on from state.npz\n")


def test_several_right_hand_sides(inside, tmp_path):
    np.save(tmp_path / "many.npy", A @ np.ones((8, 3)))
    assert inside("solve", "A.npz", "many.npy", "--out", "x.npy").code == 0
    np.testing.assert_allclose(np.load(tmp_path / "x.npy"), np.ones((8, 3)), rtol=1e-4)


@pytest.mark.parametrize("ending", ["json", "csv", "html", "tex", "png", "pdf"])
def test_the_history_is_written_like_other_results(inside, tmp_path, ending):
    done = inside("solve", "A.npz", "b.npy", "--out", f"history.{ending}")
    assert (done.code, done.err) == (0, "")
    assert (tmp_path / f"history.{ending}").stat().st_size > 100
    if ending == "json":
        assert load_report(tmp_path / "history.json").meta["x"] == fg.solve(A, B).x.tolist()


def test_files_that_others_made_are_kept(inside, tmp_path):
    (tmp_path / "x.npy").write_text("years of work")
    for options in ((), ("--force",)):
        done = inside("solve", "A.npz", "b.npy", "--out", "x.npy", *options)
        assert (done.code, done.out) == (2, "")
    assert (tmp_path / "x.npy").read_text() == "years of work"
    assert inside("solve", "A.npz", "b.npy", "--out", "b.npy", "--force").code == 2
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), B)
    assert inside("solve", "A.npz", "b.npy", "--out", "mine.npy").code == 0
    assert inside("solve", "A.npz", "b.npy", "--out", "mine.npy").code == 2
    assert inside("solve", "A.npz", "b.npy", "--out", "mine.npy", "--force").code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.npz", "b.npy"), "nowhere.npz: no such file"),
        (("A.npz", "b.docx"), "b.docx: unknown ending"),
        (("b.npy", "b.npy"), "expected a matrix"),
        (("A.npz", "A.csv"), "A has 60 rows, but b has shape (60, 8)"[:14]),
        (("A.npz", "b.npy", "--bounds", "1"), "--bounds: expected LOW,HIGH"),
        (("A.npz", "b.npy", "--bounds", "0,1", "--nonnegative"), "one of the two"),
        (("A.npz", "b.npy", "--average", "-1"), "average must be at least 1"),
        (("A.npz", "b.npy", "--average", "x"), "average"),
        (("A.npz", "b.npy", "--relaxation", "fast"), "relaxation: expected 'auto', a number"),
        (("A.npz", "b.npy", "--blocks", "x"), "blocks: expected"),
        (("A.npz", "b.npy", "--ordering", "cylic"), "did you mean 'cyclic'"),
        (("A.npz", "b.npy", "--method", "lsmr"), "no method 'lsmr'"),
        (("A.npz", "b.npy", "--tol", "nan"), "tol must be finite"),
        (("A.npz", "b.npy", "--out", "x.docx"), "unknown ending"),
        (("folder.npy", "b.npy"), "a folder without .npy"),
        (("A.npz", "b.npy", "--x0", "b.npy"), "x0 has shape (60,)"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(inside, tmp_path, arguments, words):
    (tmp_path / "folder.npy").mkdir()
    if arguments[1] == "A.csv":
        arguments = ("A.npz", "short.csv")
        (tmp_path / "short.csv").write_text("1\n2\n")
    done = inside("solve", *arguments)
    assert (done.code, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1
    assert words in done.err


class Bomb:
    """Unpickling it would leave a file behind."""

    def __reduce__(self):
        return os.mkdir, ("exploded",)


def test_nothing_is_unpickled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("bomb.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    np.savez("bomb.npz", allow_pickle=True, A=np.array([Bomb()], dtype=object))
    for name in ("bomb.npy", "bomb.npz"):
        with pytest.raises(ProblemFileError, match="pickled objects, which are never loaded"):
            read_matrix(name)
    assert not (tmp_path / "exploded").exists()


def changed(path, new, **arrays):
    with np.load(path) as file:
        np.savez(new, **{**dict(file), **arrays})
    return new


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"indices": np.full(A.nnz, 8)}, "damaged sparse matrix"),  # beyond the last column: kernels would read it
        ({"indices": np.full(A.nnz, -1)}, "damaged sparse matrix"),
        ({"indptr": np.arange(61)[::-1]}, "damaged sparse matrix"),
        ({"indptr": np.array([0, 10**9])}, "damaged sparse matrix"),
        ({"indptr": np.append(A.indptr[:-1], -1)}, "damaged sparse matrix"),  # which scipy overlooks
        ({"data": np.ones(3)}, "damaged sparse matrix"),
        ({"data": np.array(["a"] * A.nnz)}, "damaged sparse matrix"),
        ({"shape": np.array([60, -8])}, "damaged sparse matrix"),
        ({"shape": np.array([60])}, "damaged sparse matrix"),
        ({"format": np.array(b"dia")}, "the format 'dia'; save it as csr"),
        ({"format": np.array([1.0, 2.0])}, "the format ''"),
    ],
)
def test_damaged_sparse_matrices_are_refused(tmp_path, arrays, words):
    path = changed(tmp_path / "A.npz", tmp_path / "damaged.npz", **arrays)
    with pytest.raises(ProblemFileError, match=words):
        read_matrix(path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "", "no numbers"),
        ("a.csv", "x,y\n", "a header without rows"),
        ("a.csv", "1,2\n3\n", "row 2: 1 cells under 2 columns"),
        ("a.csv", "1,2\n3,cat\n", "row 2, column '1': 'cat' is not a number"),
        ("a.csv", "p,q\n1,2\n3,cat\n", "row 3, column 'q': 'cat' is not a number"),
        ("a.csv", "1;2\n3;\n", "row 2, column '1': nan or nothing is not a number"),
        ("a.txt", "1 2\n\n3  x\n", "row 3, column '1': 'x' is not a number"),
        ("a.txt", b"\xff\xfe", "not in UTF-8"),
        ("a.npy", b"\x93NUMPY", "a.npy"),
        ("a.npy", b"not an array", "does not begin like an array"),
        ("a.npz", b"not an archive", "not a readable .npz file"),
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 900\n1 1 1.0\n", "900 entries"),
        ("a.mtx", "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1.0 2.0\n", "complex"),
        ("a.mtx", "nonsense", "damaged Matrix Market file"),
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 1\n9 9 1.0\n", r"at \(9, 9\), outside"),
        # the first three end the interpreter in scipy.io.mmread
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1x", "'1x'"),
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\0", r"'1\\x00'"),
        ("a.mtx", "%%MatrixMarket matrix array real general\n1 1\n1x", "'1x'"),
        ("a.mtx", "%%MatrixMarket matrix array real general\n1000000000 1000000000\n1", "more than half"),
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1.0 1", "'1.0' to int64"),
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1", "3 columns but 2"),
        ("a.mtx", "%%MatrixMarket matrix array pattern general\n1 1\n", "'pattern' numbers"),
        ("a.mtx", "%%MatrixMarket matrix array real general\n1\n", "its size is b'1'"),
        ("a.mtx", "%%MatrixMarket matrix array real symmetric\n1 2\n1\n", "symmetric, but of shape"),
        ("a.mtx", "%%MatrixMarket matrix coordinate real skew-symmetric\n1 1 1\n1 1 2\n", "diagonal is not 0"),
    ],
)
def test_damaged_files_are_refused_by_name(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ProblemFileError, match=words) as caught:
        read_matrix(tmp_path / name)
    assert name in str(caught.value)


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric", "hermitian"])
@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
@pytest.mark.parametrize("form", ["coordinate", "array"])
def test_matrix_market_files_are_read_as_scipy_reads_them(tmp_path, form, field, symmetry):
    if field == "pattern" and (form == "array" or symmetry == "skew-symmetric"):
        pytest.skip("there are no such files")
    skew, number = symmetry == "skew-symmetric", {"real": "{:.3e}", "integer": "{:.0f}", "pattern": ""}[field]
    places = [(i, j) for j in range(1, 4) for i in range(1, 4) if symmetry == "general" or i >= j + skew]
    places += [] if form == "array" else places[:2]  # entries that are given twice
    lines = [(f"{i} {j} " if form == "coordinate" else "") + number.format(i * i - 7 * j) for i, j in places]
    size = f"3 3 {len(lines)}" if form == "coordinate" else "3 3"
    text = [f"%%MatrixMarket matrix {form} {field} {symmetry}", "% a comment", "", size, *lines]
    (tmp_path / "a.mtx").write_text("\n".join([*text, ""]))
    mine, theirs = read_matrix(tmp_path / "a.mtx"), scipy.io.mmread(tmp_path / "a.mtx", spmatrix=False)
    assert (sp.issparse(mine), mine.dtype) == (sp.issparse(theirs), theirs.dtype)
    np.testing.assert_array_equal(*(a.toarray() if sp.issparse(a) else a for a in (mine, theirs)))


def test_a_cut_npy_is_refused(tmp_path):
    whole = (tmp_path / "A.npy").read_bytes()
    for length in (4, 9, 60, 130, len(whole) - 1):
        (tmp_path / "cut.npy").write_bytes(whole[:length])
        with pytest.raises(ProblemFileError, match=r"cut\.npy"):
            read_matrix(tmp_path / "cut.npy")


def test_of_several_arrays_the_one_that_is_meant_must_be_named(tmp_path):
    np.savez(tmp_path / "two.npz", u=np.eye(2), v=np.eye(2))
    with pytest.raises(ProblemFileError, match=r"no array 'A'; there are u, v"):
        read_matrix(tmp_path / "two.npz")
