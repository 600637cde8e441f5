"""Files saved by earlier versions are read by this one, with the values that they had.

`files/` has one file of each kind that the package writes, made at commit 8182217 by this script, and `values.json` has
what that version read from them:

    PYTHONPATH=<checkout of 8182217>/src python tests/saved/test_saved_files.py

They are never made again. A kind that is added later gets a file of its own (the script keeps those that are there). A
value that was changed on purpose is listed in `CHANGED`, with the reason.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import forgetting as fg
from forgetting.report import Report, Section, load_report
from forgetting.studies import Study

HERE = Path(__file__).parent
FILES, VALUES = HERE / "files", HERE / "values.json"
RANDOM = fg.orderings.WithReplacement()

#: (kind, value): why it is not what it was
CHANGED: dict[tuple[str, str], str] = {}


class Kind(NamedTuple):
    """A kind of file: what makes and writes it, what reads it, and the values to compare, by name."""

    ending: str
    write: Callable[[Path], Any]
    read: Callable[[Path], Any]
    values: Callable[[Any], dict[str, Any]]


def saved(make: Callable[[], Any], load: Callable[[Path], Any], *names: str, ending: str = ".npz") -> Kind:
    """A kind whose object has `save`, compared by these attributes."""
    return Kind(
        ending, lambda path: make().save(path), load, lambda made: {name: getattr(made, name) for name in names}
    )


def problem(make: Callable[[], Any]) -> Kind:
    def values(tasks: Any) -> dict[str, Any]:
        w = np.linspace(-1, 1, int(np.prod(tasks.point_shape))).reshape(tasks.point_shape)
        radius = tasks.radius if tasks.radius is not None else np.nan
        return {
            "type": type(tasks).__name__,
            "num_tasks": tasks.num_tasks,
            "dim": tasks.dim,
            "names": list(tasks.names),
            "radius": radius,
            "task_losses": tasks.task_losses(w),
            "distances": tasks.distances(w),
        }

    cls = type(make())
    return Kind(".npz", lambda path: make().save(path), cls.load, values)


def gaussian() -> fg.RegressionTasks:
    return fg.families.gaussian(T=3, d=5, rank=2, seed=0)


def accuracies() -> fg.AccuracyMatrices:
    tables = [[[0.3, 0.2], [0.9, 0.1], [0.6, 0.8]], [[0.2, 0.3], [0.1, 0.8], [0.7, 0.5]]]
    return fg.AccuracyMatrices(tables, [[0, 1], [1, 0]], True, ("cats", "dogs"), ("first", "second"))


def sparse() -> fg.RegressionTasks:
    from scipy.sparse import csr_array

    first = csr_array(([1.0, -2.0, 0.5], ([0, 0, 1], [1, 7, 3])), shape=(2, 9))
    second = csr_array(([3.0, 1.0], ([0, 0], [0, 8])), shape=(1, 9))
    return fg.RegressionTasks([first, second], [[1.0, 2.0], [0.5]], names=["left", "right"], loss="mean")


def outputs() -> fg.RegressionTasks:
    rng = np.random.default_rng(1)
    return fg.RegressionTasks(
        [rng.standard_normal((2, 4)) for _ in range(2)], [rng.standard_normal((2, 3)) for _ in "ab"]
    )


def labelled() -> fg.RegressionTasks:
    rng = np.random.default_rng(2)
    X, labels = rng.standard_normal((12, 4)), np.array(["cat", "dog", "bird"] * 4)
    return fg.RegressionTasks.from_labels(X, labels, np.repeat([0, 1, 2], 4))


def clones() -> fg.RegressionTasks:
    return fg.families.repeated(fg.families.two_lines(0.5), 3)


def kernel() -> fg.KernelTasks:
    return fg.KernelTasks(np.eye(4) + 0.5, [1.0, 2.0, 0.0, 1.0], ["u", "v", "u", "w"])


def separable() -> fg.ClassificationTasks:
    return fg.families.separable(T=2, d=3, n=4, margin=0.2, seed=0)


def sets() -> fg.ConvexSets:
    members = [
        fg.Ball([0.0, 0.0, 0.0], 1.0), fg.Halfspace([1.0, 0.0, 1.0], 0.5), fg.Polyhedron([[1.0, 0, 0]], [0.1]),
        fg.Affine([[1.0, 1.0, 0.0]], [1.0]), fg.Box([0, 0, 0], [1, np.inf, 1]), fg.Simplex(3),
        fg.Slab([0.0, 1.0, 0.0], 0.0, 1.0), fg.Subspace([[1.0, 1.0, 1.0]]), fg.SecondOrderCone(3),
    ]  # fmt: skip
    return fg.ConvexSets(members, names=[type(member).__name__ for member in members])


def study(path: Path) -> None:
    cells = [
        {"family": "gaussian", "T": 3, "d": 5, "rank": 1, "ordering": order, "k": k}
        for order in ("cyclic", "with-replacement")
        for k in (2, 4)
    ]
    Study(cells, store=path).run(progress=False)


def checkpoint(path: Path) -> None:
    """The state of a solve that was stopped after four epochs; `resumed` goes on from it."""
    fg.solve(*system(), method="kaczmarz", tol=1e-9, maxiter=4, checkpoint=path, checkpoint_every=0)


def system() -> tuple[Any, Any]:
    A = np.random.default_rng(3).standard_normal((12, 4))
    return A, A @ np.arange(4.0)


def resumed(path: Path) -> Any:
    copy = path.with_name("again.npz")
    shutil.copy(path, copy)
    try:
        return fg.solve(*system(), method="kaczmarz", tol=1e-9, maxiter=400, checkpoint=copy, checkpoint_every=1e9)
    finally:
        copy.unlink(missing_ok=True)


def factors(path: Path) -> None:
    fg.RegressionTasks.from_source(*rows(), sizes=[20, 20], cache=path)


def rows() -> tuple[Any, Any]:
    X = np.random.default_rng(4).standard_normal((40, 3))
    return X, X @ np.ones(3)


def report(path: Path) -> None:
    result = fg.expect(fg.families.two_lines(0.5), RANDOM, [1, 2, 4])
    table = result.to_table()
    table = replace(table, rows=tuple(tuple(map(float, row)) for row in table.rows))
    section = Section("one", "One section", "A table and a figure.", (table, result.figure()))
    path.write_text(Report("A small report", (section,), {"seed": 0}, ("A finding.",)).to_json())


def entry() -> Any:
    return fg.worstcase.Entry.of(fg.families.worst_pair(4), "loss", 4)


def instance() -> Any:
    return fg.claims.Instance(gaussian(), RANDOM, 3, scheme=fg.schemes.SGD(0.5), extras={"gamma": 0.5})


def of_instance(case: Any) -> dict[str, Any]:
    return {
        "k": case.k, "ordering": str(case.ordering), "scheme": str(case.scheme), "extras": dict(case.extras),
        "task_losses": case.problem.task_losses(np.ones(case.problem.dim)),
    }  # fmt: skip


def of_audit(audit: Any) -> dict[str, Any]:
    return {
        "title": audit.title,
        "given": audit.given,
        "luck": audit.luck,
        "tasks": [(task.name, task.rank, task.norm, task.forgotten, task.causes) for task in audit.tasks],
        "orderings": [(row.name, row.k, row.loss, row.forgetting, row.method) for row in audit.orderings],
        "guarantees": [(row.key, row.value, row.measured) for row in audit.guarantees],
    }


def of_certificate(made: Any) -> dict[str, Any]:
    return {
        "k": made.k,
        "holds": made.holds,
        "measured": [(row.quantity, row.value, row.low, row.high, row.method) for row in made.measured],
        "bounds": [(row.key, row.value, row.status, row.holds) for row in made.bounds],
        "claims": [(row.label, row.part, row.lhs, row.rhs, row.holds) for row in made.claims],
    }


def of_rows(table: Any) -> dict[str, Any]:
    return {"rows": [(row.bound.key, row.quantity, row.value, row.applies, row.vacuous) for row in table]}


def of_frame(made: Any) -> dict[str, Any]:
    frame = made.to_frame()
    return {"columns": list(frame.columns), "values": [list(row) for row in frame.itertuples(index=False)]}


def of_report(report: Any) -> dict[str, Any]:
    content = report.to_dict()
    assert content.pop("subtitle") == ""  # which earlier versions did not have
    return {"content": content}


KINDS: dict[str, Kind] = {
    "regression": problem(gaussian),
    "regression_sparse": problem(sparse),
    "regression_outputs": problem(outputs),
    "regression_labels": problem(labelled),
    "regression_clones": problem(clones),
    "kernel": problem(kernel),
    "classification": problem(separable),
    "convex_sets": problem(sets),
    "factors": Kind(
        ".npz", factors,
        lambda path: fg.RegressionTasks.from_source(*rows(), sizes=[20, 20], cache=path),
        lambda tasks: {"radius": tasks.radius, "task_losses": tasks.task_losses(np.zeros(3))},
    ),
    "trajectory": saved(
        lambda: fg.run(gaussian(), RANDOM, 6, seed=3), fg.Trajectory.load,
        "order", "steps", "iterates", "losses", "loss_matrix", "forgetting", "regret", "status",
    ),
    "trajectory_sets": saved(
        lambda: fg.run(sets(), fg.orderings.Cyclic(), 9), fg.Trajectory.load, "order", "iterates", "losses", "residuals"
    ),
    "ensemble": saved(
        lambda: fg.run_many(gaussian(), RANDOM, 5, runs=4, seed=1), fg.Ensemble.load, "order", "losses", "forgetting"
    ),
    "expectation": saved(
        lambda: fg.expect(gaussian(), RANDOM, [1, 5, 50]), fg.Expectation.load,
        "k", "loss", "forgetting", "method", "uncertainty", "exact",
    ),
    "expectation_simulated": saved(
        lambda: fg.expect(gaussian(), RANDOM, [2, 4], method="monte-carlo", runs=256, seed=5), fg.Expectation.load,
        "loss", "loss_interval", "forgetting_interval", "method", "runs", "seed",
    ),
    "comparison": Kind(
        ".npz", lambda path: fg.compare(gaussian(), RANDOM, fg.orderings.Cyclic(), [4, 8]).save(path),
        fg.Expectation.load, lambda made: {"loss": made.values["loss"], "k": made.k},
    ),
    "optimal_weights": saved(
        lambda: fg.optimal_weights(gaussian(), "loss", k=3),
        lambda path: type(fg.optimal_weights(fg.families.two_lines(0.5))).load(path),
        "probabilities", "value", "uniform", "goal", "k",
    ),
    "optimal_schedule": saved(
        lambda: fg.optimal_schedule(gaussian(), RANDOM, 3),
        lambda path: type(fg.optimal_schedule(fg.families.two_lines(0.5), "cyclic", 1)).load(path),
        "strengths", "loss", "fixed_strength", "fixed_loss", "unregularised", "by", "k",
    ),
    "delta_rule": saved(
        lambda: fg.references.delta_rule(np.eye(3)[:2], np.ones((2, 1)), 0.5, 0.9, queries=np.eye(3)[:2]),
        fg.references.DeltaRule.load, "state", "state_low", "outputs", "recall", "time_axis",
    ),
    "worst_keys": saved(
        lambda: fg.references.worst_keys(3, 2, budget=64), fg.references.WorstKeys.load, "keys", "precision", "tried"
    ),
    "evaluation": Kind(
        ".npz", lambda path: fg.bounds.evaluate(gaussian(), RANDOM, [10, 300]).save(path),
        fg.bounds.Evaluation.load, of_rows,
    ),
    "table": Kind(
        ".npz", lambda path: fg.bounds.table("regression", k=100, T=10, d=20, rank_avg=2, rank_max=3).save(path),
        fg.bounds.Table.load, of_frame,
    ),
    "certificate": Kind(
        ".npz", lambda path: fg.certify(fg.families.two_lines(0.5), RANDOM, 3).save(path), fg.claims.Certificate.load,
        of_certificate,
    ),
    "certificate_json": Kind(
        ".json", lambda path: path.write_text(fg.certify(fg.families.two_lines(0.5), RANDOM, 3).to_json()),
        lambda path: fg.claims.Certificate.from_json(path.read_text()), of_certificate,
    ),
    "hunt": saved(
        lambda: fg.claims.get("cor:dimensionality_bound", "rank equality").hunt(budget=30), fg.claims.Hunt.load,
        "outcome", "tried", "checked", "seed", "scores",
    ),
    "instance": Kind(".npz", lambda path: instance().save(path), fg.claims.Instance.load, of_instance),
    "audit": Kind(".npz", lambda path: fg.audit(gaussian()).save(path), fg.auditing.Audit.load, of_audit),
    "matrix_audit": saved(
        lambda: fg.audit(accuracies()), fg.auditing.MatrixAudit.load,
        "title", "columns", "runs", "unit", "orders", "by_place", "mean",
    ),
    "accuracy_matrices": saved(
        accuracies, fg.AccuracyMatrices.load,
        "values", "orders", "before", "names", "runs", "order_names",
    ),
    "class_orders": saved(
        lambda: fg.audit(fg.ClassSplits(np.eye(12), 2 * list("abcdef"), tasks=3), order=list("fedcba")),
        fg.auditing.ClassOrderAudit.load, "class_names", "sizes", "num_orders", "drawn", "exact", "held_out",
    ),
    "landscape": saved(
        lambda: fg.auditing.landscape(gaussian(), per_task=True), fg.auditing.Landscape.load,
        "permutations", "values", "task_values", "quantity", "complete",
    ),
    "landscape_plain": Kind(
        ".npz", lambda path: fg.auditing.landscape(gaussian()).to_npz(path), fg.auditing.Landscape.from_npz,
        lambda made: {"permutations": made.permutations, "values": made.values},
    ),
    "solution": saved(
        lambda: fg.solve(*system(), method="kaczmarz"), fg.solver.Solution.load,
        "x", "converged", "status", "residual", "method", "tol",
    ),
    "checkpoint": Kind(
        ".npz", checkpoint, resumed,
        lambda made: {"converged": made.converged, "epochs": made.epochs, "x": made.x},
    ),
    "task_search": saved(
        lambda: fg.adversarial_search(2, 2, 1, 4, restarts=2, steps=20), fg.worstcase.TaskSearch.load,
        "quantity", "k", "value", "weights", "values", "status",
    ),
    "worst_case": saved(
        lambda: fg.worst_case(2, 2), fg.worstcase.WorstCase.load,
        "num_tasks", "k", "quantity", "value", "upper", "status",
    ),
    "dual_certificate": Kind(
        ".json", lambda path: fg.worst_case(2, 2).certificate.save(path), fg.worstcase.DualCertificate.load,
        lambda made: {"upper": made.upper, "verified": made.verify(), "squares": made.num_squares},
    ),
    "frontier": Kind(
        ".npz", lambda path: fg.worstcase.Frontier("loss", "with-replacement", (entry(),)).save(path),
        fg.worstcase.Frontier.load,
        lambda made: {"quantity": made.quantity, "entries": [(one.T, one.k, one.value) for one in made.entries]},
    ),
    "frontier_entry": Kind(
        ".json", lambda path: entry().save(path), fg.worstcase.Entry.read,
        lambda entry: {"value": entry.value, "T": entry.T, "k": entry.k, "verified": entry.verify().value},
    ),
    "study": Kind(".db", study, Study.open, lambda made: {"cells": len(made), "rows": made.rows()}),
    "report": Kind(".json", report, load_report, of_report),
}  # fmt: skip


def plain(value: Any) -> Any:
    """The value as JSON has it: arrays are lists, and what has no number in it is a text."""
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def agree(now: Any, then: Any, where: str) -> None:
    """Texts and counts as they were; numbers to 1e-9 of the largest beside them, since some are computed when read."""
    if isinstance(then, dict):
        assert list(now) == list(then), where
        for name in then:
            agree(now[name], then[name], f"{where}.{name}")
    elif isinstance(then, list) and any(not isinstance(item, float | int) or isinstance(item, bool) for item in then):
        assert len(now) == len(then), where
        for place, pair in enumerate(zip(now, then, strict=True)):
            agree(*pair, f"{where}[{place}]")
    elif isinstance(then, list | float) or (isinstance(then, int) and not isinstance(then, bool)):
        numbers = np.asarray(then, dtype=float)
        size = float(np.max(np.abs(numbers[np.isfinite(numbers)]), initial=0.0))
        np.testing.assert_allclose(np.asarray(now, dtype=float), numbers, rtol=1e-9, atol=1e-9 * size, err_msg=where)
    else:
        assert now == then, where


def path_of(name: str) -> Path:
    return FILES / f"{name}{KINDS[name].ending}"


def opened(name: str, folder: Path) -> Any:
    """What is in a copy of the file: reading it may write beside it."""
    copy = shutil.copy(path_of(name), folder)
    return KINDS[name].read(Path(copy))


@pytest.mark.parametrize("name", KINDS)
def test_a_file_of_an_earlier_version_has_the_values_that_it_had(name, tmp_path):
    then = json.loads(VALUES.read_text(encoding="utf-8"))[name]
    now = plain(KINDS[name].values(opened(name, tmp_path)))
    for value in {*then, *now} - {value for kind, value in CHANGED if kind == name}:
        assert value in then, f"{name}: {value} is new: {now[value]}"
        agree(now[value], then[value], f"{name}.{value}")


def test_every_kind_of_result_has_a_saved_file(tmp_path):
    def below(cls: type) -> set[type]:
        return {cls} | {kind for sub in cls.__subclasses__() for kind in below(sub)}

    from forgetting.results import Result

    kinds = {cls for cls in below(Result) if cls.__module__.startswith("forgetting.") and "kind" in vars(cls)}
    read = {type(opened(name, tmp_path)) for name in KINDS if KINDS[name].ending == ".npz"}
    assert kinds <= read, kinds - read


if __name__ == "__main__":
    FILES.mkdir(exist_ok=True)
    known = json.loads(VALUES.read_text(encoding="utf-8")) if VALUES.exists() else {}
    for name, kind in KINDS.items():
        if name not in known:
            kind.write(path_of(name))
            known[name] = plain(kind.values(kind.read(path_of(name))))
            print(f"{name}: made by {fg.__version__}")
    VALUES.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
