"""Everything people look at: shown as text, in a notebook, as a frame and a figure; saved and pickled bit for bit."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

import matplotlib
import numpy as np
import pytest
from joblib import Parallel, delayed

import forgetting as fg
from forgetting.errors import MissingValueError, NotSupportedError, ProblemFileError
from forgetting.results import Result, Shown

matplotlib.use("Agg")
RANDOM = fg.orderings.WithReplacement()


def gaussian() -> fg.RegressionTasks:
    return fg.families.gaussian(T=4, d=6, rank=2, seed=0)


def sparse() -> fg.RegressionTasks:
    from scipy.sparse import random_array

    rng = np.random.default_rng(0)
    matrices = [random_array((3, 30), density=0.2, rng=rng).tocsr() for _ in range(3)]
    return fg.RegressionTasks(matrices, [np.asarray(X @ np.ones(30)) for X in matrices], names=["a", "b", "c"])


def kernel() -> fg.KernelTasks:
    return fg.KernelTasks(np.eye(4) + 0.5, [1.0, 2.0, 0.0, 1.0], ["u", "v", "u", "w"], loss="mean")


def separable() -> fg.ClassificationTasks:
    return fg.families.separable(T=3, d=4, n=5, margin=0.2, seed=0)


def sets() -> fg.ConvexSets:
    members = [
        fg.Ball([0.0, 0.0, 0.0], 1.0), fg.Halfspace([1.0, 0.0, 1.0], 0.5), fg.Polyhedron([[1.0, 0, 0]], [0.1]),
        fg.Affine([[1.0, 1.0, 0.0]], [1.0], rank_tol=1e-9), fg.Box([0, 0, 0], [1, np.inf, 1]), fg.Simplex(3),
        fg.Slab([0.0, 1.0, 0.0], 0.0, 1.0), fg.Subspace([[1.0, 1.0, 1.0]]), fg.SecondOrderCone(3),
    ]  # fmt: skip
    return fg.ConvexSets(members, names=[type(member).__name__ for member in members])


def lines() -> fg.ConvexSets:
    return fg.ConvexSets([fg.Affine([[1.0, 0.2]], [1.0]), fg.Affine([[0.3, 1.0]], [2.0])])


def used(problem: Any) -> Any:
    """The problem after a run, which factorises its tasks and compiles projections."""
    fg.run(problem, RANDOM, 5).losses.sum()
    problem.realizability  # noqa: B018
    return problem


TASKS = {
    "tasks": gaussian,
    "used tasks": lambda: used(gaussian()),
    "sparse tasks": lambda: used(sparse()),
    "kernel tasks": lambda: used(kernel()),
    "classification tasks": lambda: used(separable()),
    "convex sets": lambda: used(sets()),
    "affine sets": lambda: used(lines()),
}
RESULTS = {
    "run": lambda: fg.run(gaussian(), RANDOM, 30, seed=3),
    "used run": lambda: _touched(fg.run(gaussian(), RANDOM, 30, record_every=7)),
    "run of sets": lambda: fg.run(sets(), fg.orderings.Cyclic(), 9),
    "run of affine sets": lambda: fg.run(lines(), fg.orderings.Cyclic(), 9),
    "run of a kernel": lambda: fg.run(kernel(), fg.orderings.Explicit([0, 2, 1, 1]), 4),
    "run of sparse tasks": lambda: fg.run(sparse(), fg.orderings.GreedyDistance(), 6, scheme=fg.schemes.Ridge(0.5)),
    "run of gradient descent": lambda: fg.run(gaussian(), RANDOM, 3, scheme=fg.schemes.GradientDescent()),
    "run of weak regularisation": lambda: fg.run(separable(), RANDOM, 3, scheme=fg.schemes.WeaklyRegularized(-20.0)),
    "ensemble": lambda: fg.run_many(gaussian(), RANDOM, 12, runs=20, seed=1),
    "ensemble of sets": lambda: fg.run_many(sets(), RANDOM, 3, runs=4),
    "expectation": lambda: fg.expect(gaussian(), RANDOM, [1, 5, 50], quantities=("loss", "task_losses", "error")),
    "expectation at one step": lambda: fg.expect(gaussian(), fg.orderings.WithReplacement(p=[1, 2, 3, 4]), 7),
    "simulated expectation": lambda: fg.expect(gaussian(), RANDOM, [2, 4], method="monte-carlo", runs=1024),
    "comparison": lambda: fg.compare(gaussian(), RANDOM, fg.orderings.Cyclic(), [4, 8]),
    "evaluation": lambda: fg.bounds.evaluate(gaussian(), RANDOM, 300),
    "evaluation at several steps": lambda: fg.bounds.evaluate(gaussian(), RANDOM, [10, 300]),
    "table": lambda: fg.bounds.table("regression"),
    "table with numbers": lambda: fg.bounds.table("regression", k=100, T=10, d=20, rank_avg=2, rank_max=3),
    "certificate": lambda: fg.certify(fg.families.two_lines(0.5), RANDOM, 5),
    "hunt": lambda: fg.claims.get("lem:regret_bound").hunt(budget=12),
    "hunt that refutes": lambda: fg.claims.get("cor:dimensionality_bound", "rank equality").hunt(budget=30),
    "audit": lambda: fg.audit(gaussian()),
    "matrices of accuracies": lambda: fg.AccuracyMatrices([[0.9, 0.1], [0.6, 0.8]]),
    "audit of accuracies": lambda: fg.audit(fg.AccuracyMatrices([[[0.9, 0.1], [0.6, 0.8]], [[0.8, 0.1], [0.7, 0.8]]])),
    "audit of class orders": lambda: fg.audit(
        fg.ClassSplits(np.eye(12), 2 * list("abcdef"), tasks=3), order=list("fedcba")
    ),
    "sample of class orders": lambda: fg.audit(fg.ClassSplits(np.eye(12), 2 * list("abcdef"), tasks=3), patience=0),
    "landscape": lambda: fg.auditing.landscape(gaussian(), per_task=True),
    "sample of orders": lambda: fg.auditing.Landscape([[2, 0, 1], [0, 1, 2]], [[1.0, 2], [3, 4]], complete=False),
    "solution": lambda: fg.solve(np.eye(5) + 0.5, np.arange(5.0), ordering="norm-weighted", tol=1e-3),
    "solution of an inconsistent system": lambda: fg.solve(np.ones((6, 2)), np.eye(6)[:, :3]),
    "task search": lambda: fg.adversarial_search(3, 3, None, 4, restarts=3, steps=20),
    "task search of cycles": lambda: fg.adversarial_search(2, 2, 1, 4, "forgetting", "cyclic", restarts=1, steps=5),
    "frontier": lambda: fg.worstcase.frontier("loss", T=[2, 3], k=[1, 2, 4]),
    "optimal weights": lambda: fg.optimal_weights(sparse()),
    "optimal weights at one step": lambda: fg.optimal_weights(gaussian(), "loss", k=3),
    "optimal schedule": lambda: fg.optimal_schedule(gaussian(), "cyclic", k=12),
    "optimal schedule of a step": lambda: fg.optimal_schedule(gaussian(), RANDOM, 1, "step"),
}
OTHERS = {
    "bound": lambda: fg.bounds.get("thm:cl_by_sgd_main/loss"),
    "claim": lambda: fg.claims.get("thm:cl_by_sgd_main", "loss"),
    "instance": lambda: fg.claims.Instance(gaussian(), RANDOM, 3, extras={"gamma": 0.5}),
    "setting": lambda: fg.bounds.Setting.of(gaussian()),
    "regressor": lambda: fg.ContinualRegressor().fit(np.eye(3), np.ones(3), task_id=[0, 1, 2]),
    "orderings": lambda: [RANDOM, fg.orderings.NormWeighted(), fg.orderings.Explicit([0, 1]), fg.orderings.Cyclic()],
    "schemes": lambda: [fg.schemes.Kaczmarz(), fg.schemes.SGD(0.5, "loss"), fg.schemes.Ridge(0.1)],
}


def _touched(run: fg.Trajectory) -> fg.Trajectory:
    run.forgetting.sum()
    run.iterates.sum()
    return run


@cache
def made(name: str) -> Any:
    return {**TASKS, **RESULTS, **OTHERS}[name]()


def same(one: Any, other: Any, where: str = "") -> None:
    """Equal to the last bit, whatever was computed on the way."""
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape), where
        assert np.array_equal(one, other, equal_nan=one.dtype.kind == "f"), where
    elif hasattr(one, "toarray"):
        same(one.toarray(), other.toarray(), where)
    elif isinstance(one, fg.Problem):
        assert type(one) is type(other), where
        same(one.file_arrays(), other.file_arrays(), where)
    elif isinstance(one, Mapping):
        assert list(one) == list(other), where
        for name in one:
            same(one[name], other[name], f"{where}.{name}")
    elif isinstance(one, list | tuple):
        assert (type(one), len(one)) == (type(other), len(other)), where
        for place, pair in enumerate(zip(one, other, strict=True)):
            same(*pair, f"{where}[{place}]")
    elif isinstance(one, fg.bounds.Bound | fg.claims.Claim):
        assert one is other, where
    elif is_dataclass(one):
        assert type(one) is type(other), where
        for field in fields(one):
            if field.name not in ("_space", "row_equations", "data"):
                same(getattr(one, field.name), getattr(other, field.name), f"{where}.{field.name}")
    elif callable(one) or type(one).__eq__ is object.__eq__:
        assert type(one) is type(other), where
    else:
        assert one == other or (one != one and other != other), where


def same_numbers(one: Any, other: Any) -> None:
    """What is computed when it is first asked for is the same, too."""
    for name in ("losses", "forgetting", "regret", "iterates", "loss_matrix", "residuals"):
        if isinstance(one, fg.Trajectory) or (isinstance(one, fg.Ensemble) and name in ("forgetting", "regret")):
            same(getattr(one, name), getattr(other, name), name)
    if isinstance(one, fg.Problem):
        w = np.linspace(-1, 1, one.dim)
        same(one.task_losses(w), other.task_losses(w))
        same(one.distances(w), other.distances(w))


@pytest.mark.parametrize("name", [*TASKS, *RESULTS, *OTHERS])
def test_pickled_objects_come_back_the_same(name):
    again = pickle.loads(pickle.dumps(made(name)))
    same(made(name), again, name)
    same_numbers(made(name), again)


@pytest.mark.parametrize("name", TASKS)
def test_arrays_of_pickled_tasks_are_read_only(name):
    again = pickle.loads(pickle.dumps(made(name)))
    held = [value for value in vars(again).values() if isinstance(value, np.ndarray)]
    if again.geometry is not None:
        held.append(again.geometry.rows)
    assert not any(array.flags.writeable for array in held)


@pytest.mark.parametrize("name", [*TASKS, *RESULTS])
def test_saved_objects_come_back_the_same(name, tmp_path):
    path = tmp_path / "saved.npz"
    made(name).save(path)
    again = type(made(name)).load(path)
    same(made(name), again, name)
    same_numbers(made(name), again)
    np.load(path, allow_pickle=False)["format"]
    made(name).save(path)  # over a file of this library
    assert [file.name for file in tmp_path.iterdir()] == ["saved.npz"]


@pytest.mark.parametrize("name", [*TASKS, *RESULTS])
def test_saving_keeps_a_file_of_the_user(name, tmp_path):
    path = tmp_path / "mine.npz"
    path.write_text("years of work")
    with pytest.raises(ProblemFileError, match="not written by forgetting"):
        made(name).save(path)
    assert path.read_text() == "years of work"


def test_a_file_of_another_result_is_named(tmp_path):
    made("run").save(tmp_path / "run.npz")
    with pytest.raises(ProblemFileError, match=r"no saved ensemble.*forgetting/trajectory"):
        fg.Ensemble.load(tmp_path / "run.npz")


@pytest.mark.parametrize("name", [*TASKS, *RESULTS])
def test_repr_is_short_and_shows_values(name):
    words = repr(made(name))
    assert len(words) < 2500
    assert len(words.splitlines()) <= 20
    assert isinstance(made(name), Result if name in RESULTS else Shown)
    if name in RESULTS:
        assert any(letter.isdigit() for letter in words)


@pytest.mark.parametrize("name", [*TASKS, *RESULTS])
def test_notebooks_show_a_table_without_scripts(name):
    page = made(name)._repr_html_()
    assert page.count("<table") == 1
    assert "<script" not in page
    assert "://" not in page
    assert len(page) < 300_000


@pytest.mark.parametrize("name", [*TASKS, *RESULTS])
def test_frames_hold_every_value(name):
    pytest.importorskip("pandas")
    frame = made(name).to_frame()
    assert len(frame) >= 1
    assert len(frame.columns) >= 2


def test_a_frame_has_the_numbers_of_the_result():
    pytest.importorskip("pandas")
    run, expectation = made("run"), made("expectation")
    frame = run.to_frame()
    assert frame["loss"].to_numpy().tolist() == run.losses.tolist()
    assert frame["forgetting"].to_numpy()[1:].tolist() == run.forgetting.tolist()
    assert expectation.to_frame()["task_losses[2]"].tolist() == expectation.task_losses[:, 2].tolist()


def test_without_pandas_a_frame_is_refused_with_what_to_do(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(NotSupportedError, match="pip install"):
        made("run").to_frame()


@pytest.mark.parametrize("name", [*TASKS, *RESULTS])
def test_plots_are_drawn_on_given_axes(name):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots()
    try:
        if name in ("expectation at one step", "table"):  # a single value, and symbols
            with pytest.raises(NotSupportedError, match="has no picture"):
                made(name).plot(ax=axes)
            return
        assert made(name).plot(ax=axes) is axes
        assert axes.has_data()
        figure.canvas.draw()
    finally:
        plt.close(figure)


def test_drawing_leaves_the_backend_and_the_settings_of_the_user_alone():
    import matplotlib.pyplot as plt

    with matplotlib.rc_context({"font.size": 17.0}):
        before = dict(matplotlib.rcParams), plt.get_fignums()
        made("expectation")._repr_html_()
        assert (dict(matplotlib.rcParams), plt.get_fignums()) == before


def loss_after(tasks: Any, k: int) -> list[float]:
    return fg.run(tasks, RANDOM, k, seed=k).losses.tolist()


@pytest.mark.parametrize("name", ["used tasks", pytest.param("convex sets", marks=pytest.mark.slow)])
def test_process_pools_and_joblib_give_what_one_process_gives(name):
    tasks = made(name)
    serial = [loss_after(tasks, k) for k in (2, 5, 9)]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.starmap(loss_after, [(tasks, k) for k in (2, 5, 9)]) == serial
    assert Parallel(n_jobs=2)(delayed(loss_after)(tasks, k) for k in (2, 5, 9)) == serial


def test_saved_runs_with_a_seed_below_zero_are_refused(tmp_path):
    runs = fg.run_many(fg.families.two_lines(0.5), fg.orderings.WithReplacement(), 3, runs=2)
    replace(runs, seed=-1).save(tmp_path / "runs.npz")
    with pytest.raises(ProblemFileError, match="do not fit together"):
        fg.Ensemble.load(tmp_path / "runs.npz")


def changed(result: Result, path: Any, change: Any) -> Any:
    """The file of a result in which the JSON of the record was changed."""
    result.save(path)
    arrays = dict(np.load(path))
    record = json.loads(str(arrays["record"]))
    change(record["dict"])
    np.savez(path, **{**arrays, "record": np.array(json.dumps(record))})
    return path


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("confidence", "high", r"Expectation, confidence: 'high' where a number was expected"),
        ("runs", 2**70, r"Expectation, runs: 1180591620717411303424, which has more than 63 bits"),
        ("notes", {"tuple": ["a", 3]}, r"Expectation, notes\[1\]: 3 where a text was expected"),
        (
            "ranges",
            {"dict": {"loss": {"tuple": [1.0]}}},
            r"Expectation, ranges, 'loss': 1 entries where 2 were expected",
        ),
        ("values", {"dict": {"loss": True}}, r"Expectation, values, 'loss': True where a number was expected"),
        ("problem", {"dict": {}}, r"Expectation, problem: an object where an object of the class Problem was expected"),
        ("more", 1, r"Expectation: unknown 'more'"),
    ],
)
def test_a_wrong_value_of_a_saved_result_is_named_with_its_file_and_place(place, value, words, tmp_path):
    path = changed(
        fg.expect(fg.families.two_lines(0.5), RANDOM, 3),
        tmp_path / "e.npz",
        lambda record: record.update({place: value}),
    )
    with pytest.raises(ProblemFileError, match=rf"e\.npz: damaged expectation \({words}\)"):
        fg.Expectation.load(path)


def test_no_object_with_a_codec_is_made_of_its_fields_without_the_checks_of_the_codec(tmp_path):
    def plain(record: dict[str, Any]) -> None:
        record["geometry"]["of"]["dict"]["row_equations"] = record["geometry"]["of"]["dict"]["row_equations"]["of"]

    path = changed(fg.run(gaussian(), RANDOM, 3), tmp_path / "t.npz", plain)
    with pytest.raises(
        ProblemFileError, match="row_equations: an object where an object of the class RowEquations was"
    ):
        fg.Trajectory.load(path)


def test_audits_and_certificates_are_saved_by_field_and_checked_as_their_text_is(tmp_path):
    audit = fg.audit(fg.families.two_lines(0.5))
    certificate = fg.certify(fg.families.two_lines(0.5), RANDOM, 3)
    for made, name in ((audit, "Audit, dim"), (certificate, "Certificate, k")):
        assert type(made).load(changed(made, tmp_path / "a.npz", lambda record: None)) == made
        wrong = changed(made, tmp_path / "a.npz", lambda record, name=name: record.update({name.split()[1]: "x"}))
        with pytest.raises(ProblemFileError, match=rf"a\.npz: damaged .* \({name}: 'x' where a whole number"):
            type(made).load(wrong)
        (tmp_path / "a.npz").unlink()
    wrong = changed(audit, tmp_path / "a.npz", lambda record: record.update(luck={"float": "nan"}))
    with pytest.raises(ProblemFileError, match="Audit, luck: nan where a number was expected"):
        fg.auditing.Audit.load(wrong)
    wrong = changed(audit, tmp_path / "a.npz", lambda record: record.update(given={"tuple": [0, 5]}))
    with pytest.raises(ProblemFileError, match="there is no task 5 of 2"):
        fg.auditing.Audit.load(wrong)


@pytest.mark.parametrize("name", RESULTS)
def test_values_that_a_result_lacks_are_attributes_that_are_not_there(name):
    result = made(name)
    for attribute in (attribute for attribute in dir(type(result)) if not attribute.startswith("_")):
        if not hasattr(result, attribute):
            with pytest.raises(MissingValueError):
                getattr(result, attribute)


def test_a_value_that_was_not_asked_for_is_named_and_no_other_is_guessed():
    done = subprocess.run(
        [sys.executable, "-c", "import forgetting as fg; fg.expect(fg.families.two_lines(0.5), 'random', 3).next_loss"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = "next_loss was not asked for; add it to quantities=, which was ('loss', 'forgetting')"
    assert done.stderr.splitlines()[-1] == f"forgetting.errors.MissingValueError: {said}"
