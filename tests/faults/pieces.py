"""The pieces that odd calls are made of, as Python source: good arguments by the names of parameters, and odd ones."""

from __future__ import annotations

import secrets  # noqa: F401  (for the pieces)
from collections.abc import Callable
from dataclasses import replace  # noqa: F401  (for the pieces)
from datetime import date  # noqa: F401  (for the pieces)
from decimal import Decimal  # noqa: F401  (for the pieces)
from fractions import Fraction  # noqa: F401  (for the pieces)
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import forgetting as fg
from forgetting import auditing, orderings, schemes  # noqa: F401

nan, inf = float("nan"), float("inf")


class OwnError(Exception):
    """What a user's own code raises: it may come out again."""


def fails(*_: Any) -> Any:
    raise OwnError


def tasks() -> fg.RegressionTasks:
    return fg.families.gaussian(3, 3, 1, seed=0)


def ewc_fit(Xs: Any, ys: Any, strength: float) -> Any:
    F, w, weights = np.zeros((Xs[0].shape[1],) * 2), np.zeros(Xs[0].shape[1]), []
    for X, y in zip(Xs, ys, strict=True):
        w = np.linalg.solve(X.T @ X + strength * F, X.T @ y + strength * F @ w)
        F, weights = F + X.T @ X, [*weights, w]
    return np.array(weights)


def memory() -> Any:
    return fg.references.delta_rule(np.eye(3), np.eye(3), queries=np.eye(3))


def sparse_tasks() -> fg.RegressionTasks:
    return fg.RegressionTasks([sp.csr_array(np.eye(3)[m : m + 1]) for m in range(3)], np.ones((3, 1)))


def unsolvable() -> fg.RegressionTasks:
    return fg.RegressionTasks([[[1.0, 0, 0]], [[1.0, 0, 0]], [[0, 1.0, 0]]], [[1.0], [2.0], [0.0]])


def classes() -> fg.ClassificationTasks:
    return fg.families.separable(3, 3, 2, margin=0.3, seed=0)


def kernel() -> fg.KernelTasks:
    return fg.KernelTasks(np.eye(3) + 0.5, [1.0, 2.0, 3.0], [0, 1, 2])


def sets() -> fg.ConvexSets:
    return fg.ConvexSets([fg.Ball(np.zeros(3), 1.0), fg.Box(-np.ones(3), np.ones(3)), fg.Halfspace(np.ones(3), 0.5)])


def affine_sets() -> fg.ConvexSets:
    return fg.ConvexSets([fg.Affine(np.eye(3)[m : m + 1], [1.0]) for m in range(3)])


def run() -> fg.Trajectory:
    return fg.run(tasks(), orderings.Cyclic(), 3)


def solution() -> fg.solver.Solution:
    return fg.solve(matrix(), matrix() @ np.ones(3), ordering="norm-weighted")


def instance() -> fg.claims.Instance:
    return fg.claims.Instance(tasks(), orderings.WithReplacement(), 3)


def regressor() -> fg.ContinualRegressor:
    return fg.ContinualRegressor().fit(matrix(), vector())


def ridge() -> fg.IncrementalRidge:
    return fg.IncrementalRidge().fit(matrix(), vector())


def ridge_classifier() -> fg.IncrementalRidgeClassifier:
    return fg.IncrementalRidgeClassifier().fit(matrix(), [0, 1, 0, 1])


def classifier() -> fg.ContinualClassifier:
    return fg.ContinualClassifier().fit(matrix(), [0, 1, 0, 1])


def matrix() -> np.ndarray:
    return np.array([[1.0, 0, 0.5], [0, 1.0, 0], [0.25, 0, 1.0], [1.0, 1.0, 0]])


def vector() -> np.ndarray:
    return np.array([1.0, 2.0, 0.5, 3.0])


def file() -> Path:
    """A file of tasks in the current folder."""
    path = Path("good.npz")
    if not path.exists():
        tasks().save(path)
    return path


def axes() -> Any:
    """Axes of a figure that belongs to no window."""
    from matplotlib.figure import Figure

    return Figure().subplots()


def rows_file() -> Path:
    """A table of rows in the current folder."""
    path = Path("rows.csv")
    if not path.exists():
        path.write_text("task,0,1,y\na,1,0,1.5\nb,0,1,2.5\na,1,1,0.5\n")
    return path


def frame() -> Any:
    """The same as a DataFrame."""
    import pandas

    return pandas.DataFrame({"task": ["a", "b", "a"], "0": [1.0, 0, 1], "1": [0, 1.0, 1], "y": [1.5, 2.5, 0.5]})


@cache
def small_audit() -> auditing.Audit:
    return fg.audit(tasks())


@cache
def small_matrix_audit() -> auditing.MatrixAudit:
    return fg.audit(fg.AccuracyMatrices([[0.9, 0.1], [0.6, 0.8]]))


def accuracy_file() -> Path:
    """A matrix of accuracies in the current folder."""
    path = Path("accuracies.csv")
    if not path.exists():
        path.write_text("0.9,0.1\n0.6,0.8\n")
    return path


def continuum_logger() -> dict[str, Any]:
    """What a Logger of Continuum holds after one task."""
    epoch = {"predictions": np.ones(2), "targets": np.array([1, 0]), "task_ids": np.zeros(2)}
    return {"test": {"performance": [[epoch]]}}


def splits() -> fg.ClassSplits:
    return fg.ClassSplits(np.eye(6), list("abcabc"), 2, (np.eye(6), list("cbacba")))


@cache
def small_class_orders() -> auditing.ClassOrderAudit:
    return fg.audit(splits(), order=list("cab"))


def small_landscape() -> auditing.Landscape:
    return auditing.Landscape([[0, 1], [1, 0]], [[1.0, 2.0], [3.0, 5.0]], task_values=np.ones((2, 2, 2)))


def values_file() -> Path:
    """A file of values of orders in the current folder."""
    path = Path("values.npz")
    if not path.exists():
        small_landscape().to_npz(path)
    return path


def small_study() -> fg.Study:
    """A new one each time: a study changes, as when it forgets."""
    return fg.Study.grid(family="orthogonal", d=[2, 3], k=[1, 5], store=None).run(progress=False)


def study_file() -> Path:
    """The store of a study in the current folder."""
    path = Path("good.db")
    if not path.exists():
        fg.Study([{"family": "orthogonal", "d": 2, "k": 3}], path).run(progress=False)
    return path


def study_config() -> Path:
    """A study as a TOML file in the current folder."""
    path = Path("study.toml")
    if not path.exists():
        path.write_text("[cells]\nfamily = 'orthogonal'\nd = [2, 3]\n")
    return path


@cache
def small_worst() -> Any:
    return fg.worst_case(2, 1)


@cache
def small_search() -> Any:
    return fg.adversarial_search(2, 2, 1, 2, restarts=1, steps=3)


def entry() -> fg.worstcase.Entry:
    return fg.worstcase.Entry.of(tasks(), "loss", 1)


def entry_file() -> Path:
    """An entry of the frontier in the current folder."""
    path = Path("entry.json")
    if not path.exists():
        entry().save(path)
    return path


def record() -> fg.claims.Record:
    return fg.claims.get("lem:regret_bound").record


def record_file() -> Path:
    """The record of a statement in the current folder."""
    path = Path("record.json")
    if not path.exists():
        record().save(path)
    return path


def proof_file() -> Path:
    """A certificate of a worst case in the current folder."""
    path = Path("proof.json")
    if not path.exists():
        small_worst().certificate.save(path)
    return path


def small_frontier() -> fg.worstcase.Frontier:
    return fg.worstcase.Frontier("loss", "with-replacement", (entry(),))


@cache
def small_certificate() -> Any:
    return fg.certify(tasks(), orderings.WithReplacement(), 2)


def changed(value: Any, how: str) -> Any:
    """A good value in another guise; what has no such guise stays as it is."""
    if isinstance(value, list | tuple) and len(value) and not np.isscalar(value[0]):
        return [changed(value[0], how), *value[1:]]
    if sp.issparse(value):
        return value.asformat(how) if how in FORMATS else value
    array = np.array(value)
    if array.dtype.kind not in "biuf" or (array.ndim == 0 and how not in ("0-d", "object", "longdouble", "complex")):
        return value
    if how in FORMATS:
        return sp.csr_array(array).asformat(how) if array.ndim == 2 else value
    with np.errstate(all="ignore"):
        return GUISES[how](array)


def spoiled(array: np.ndarray, odd: float) -> np.ndarray:
    array = array.astype(np.float64)
    array.flat[-1:] = odd
    return array


def read_only(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


FORMATS = ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
GUISES: dict[str, Callable[[np.ndarray], Any]] = {
    "read-only": read_only,
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "float16": lambda a: a.astype(np.float16),
    "longdouble": lambda a: a.astype(np.longdouble),
    "object": lambda a: a.astype(object),
    "complex": lambda a: a.astype(complex),
    "bool": lambda a: a.astype(bool),
    "text": lambda a: a.astype(str),
    "masked": lambda a: np.ma.masked_equal(a, a.flat[0] if a.size else 0),
    "unmasked": lambda a: np.ma.asarray(a),
    "Fortran": np.asfortranarray,
    "strided": lambda a: np.repeat(a, 2, axis=0)[::2],
    "backwards": lambda a: a[::-1],
    "with nan": lambda a: spoiled(a, nan),
    "with inf": lambda a: spoiled(a, -inf),
    "with 1e308": lambda a: spoiled(a, 1e308),
    "with 1e-320": lambda a: spoiled(a, 1e-320),
    "with 1e160": lambda a: spoiled(a, 1e160),
    "times 1e153": lambda a: a * 1e153,
    "times 1e-153": lambda a: a * 1e-153,
    "times 0": lambda a: a * 0,
    "matrix": lambda a: np.asmatrix(a) if a.ndim <= 2 else a,
    "0-d": np.array,
    "column": lambda a: a[..., None],
    "row": lambda a: a[None],
    "one": lambda a: a[:1],
    "none": lambda a: a[:0],
    "one less": lambda a: a[:-1],
    "one more": lambda a: np.concatenate([a, a[-1:]]),
    "lists": lambda a: a.tolist(),
    "generator": lambda a: iter(a.tolist()),
    "huge view": lambda a: np.broadcast_to(a[:1] if a.ndim else a, (2**40, *a.shape[1:])) if a.size else a,
}

# fmt: off
ODD = [  # in place of any argument
    "None", "True", "False", "''", "'x'", "'\\ud800\\x1b[31m\\n'", "'x' * 10000", "b'x'", "{}", "{'a': 1}", "{1, 2}",
    "[]", "()", "[[1.0], [1.0, 2.0]]", "[[[[]]]]", "[None]", "['a', 1]", "[True]", "object()", "object",
    "lambda: None", "lambda one: one", "fails", "(one for one in range(3))", "iter([])", "1j", "Decimal('1.5')",
    "Decimal('NaN')", "Decimal('1e999')", "Fraction(1, 3)", "date(2020, 1, 1)", "np.datetime64('2020-01-01')",
    "np.timedelta64(1, 's')",
    "np.float32(1.5)", "np.int8(3)", "np.uint64(2**63)", "np.bool_(True)", "np.str_('x')", "np.array(1.0)",
    "np.array(2)", "np.array(None)", "np.array([object()])", "np.array([1j])", "np.array(['a'])", "np.array([b'a'])",
    "np.array(['2020'], 'M8[Y]')", "np.zeros(3, [('a', 'f8')])", "np.empty(0)", "np.empty((0, 3))",
    "np.empty((3, 0))", "np.ones(1)", "np.ones((1, 1))", "np.ones((2, 2, 2))", "np.ma.masked",
    "np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])", "np.recarray((2,), [('a', 'f8')])", "sp.csr_array((3, 3))",
    "sp.eye_array(3)", "sp.coo_array(np.eye(3))", "sp.csr_matrix([[1.0]])", "range(3)", "0", "-1", "1", "7", "2.5",
    "-0.0", "1e-320", "1e-160", "1e160", "1e308", "-1e308", "nan", "inf", "-inf", "0.1", "10**400", "-10**400",
    "10**30", "-10**30", "2**63", "2**63 - 1", "10**18", "tasks()", "sets()", "orderings.Cyclic()",
    "fg.Ball([0.0], 1.0)", "orderings.Cyclic", "schemes.Kaczmarz()", "fg.RegressionTasks",
]
# fmt: on
#: of these each is given for each argument, all others being good; the kinds of things, not the sizes of numbers
WRONG = [
    "None",
    "'x'",
    "b'x'",
    "{'a': 1}",
    "['a', 1]",
    "object()",
    "1j",
    "10**400",
    "-1",
    "nan",
    "True",
    "[[[[]]]]",
    "(one for one in range(3))",
    "date(2020, 1, 1)",
    "np.array(2)",
    "np.zeros(3, [('a', 'f8')])",
    "np.empty((0, 3))",
    "sp.csr_array((3, 3))",
    "lambda: None",
]
HUGE = {"10**400", "10**30", "2**63", "2**63 - 1", "10**18", "np.uint64(2**63)"}
# fmt: off
#: a promise to work for so long, or to make so much, is kept: huge numbers are no odd arguments of these
WORK = {
    "budget", "trials", "evaluations", "passes", "repeats", "runs", "max_sweeps", "max_steps", "max_iter", "up_to",
    "width", "tasks", "num_tasks", "size", "seconds", "dim", "n", "T", "d", "jobs", "restarts", "steps",
}
ORDERINGS = [
    "orderings.Cyclic()", "orderings.WithReplacement()", "orderings.WithReplacement([1, 2, 3])",
    "orderings.NormWeighted()", "orderings.WithoutReplacement()", "orderings.Reshuffled()",
    "orderings.Explicit([0, 2, 1, 1])", "orderings.GreedyDistance()", "orderings.GreedyResidual(repeat=False)",
    "orderings.Cyclic([2, 0, 1])", "orderings.NonRepetitive([1, 2, 3])", "orderings.Steinerberger(1.0)",
    "orderings.RelaxedGreedy()", "orderings.Quantile(0.5)", "orderings.Quantile(0.9, sample=2)",
    "orderings.PeripheryFirst()", "orderings.DissimilarNeighbours('solutions')", "orderings.HermanMeyer()",
    "orderings.GreedyThenRandom(0.5)",
]
SCHEMES = [
    "None", "schemes.Kaczmarz()", "schemes.SGD(0.5)", "schemes.SGD(3.0, 'loss')", "schemes.FiniteSteps(2, 0.1)",
    "schemes.Ridge(0.5)", "schemes.NLMS(0.5)", "schemes.RecursiveLeastSquares()", "schemes.POCS()",
    "schemes.GradientDescent(1e-6, 100)", "schemes.GradientDescent(1e-6, 100, batch_size=1)",
    "schemes.WeaklyRegularized(-5.0)", "schemes.Scheduled(lambda t: schemes.Ridge(1.0 * t))",
    "schemes.Decay(0.5, schemes.Kaczmarz())", "schemes.EWC(0.5)", "schemes.Replay()",
    "schemes.GeneralizedRidge(np.eye(3))",
]
# fmt: on
VIEW = "orderings.TaskView(3, np.ones(3), lambda: np.ones(3), lambda: np.ones(3))"
#: good arguments by the name of the parameter, the usual one first
GOOD = {
    "weights": ["None", "np.ones(3)"],
    "stop": ["'discrepancy'", "None"],
    "tau": ["1.02"],
    "residual_shape": ["None", "(3,)"],
    "epoch": ["1"],
    "elapsed": ["0.5"],
    "penalty": ["None", "0.5"],
    "problem": ["tasks()", "sparse_tasks()", "kernel()", "classes()", "sets()", "affine_sets()", "unsolvable()"],
    "tasks": ["tasks()"],
    "ordering": [*ORDERINGS, "'cyclic'", "'with-replacement p=1,2,3'", "[0, 2, 1, 1]", "np.array([2, 0, 1])"],
    "k": ["3", "0", "1", "2", "3.0"],
    "scheme": [*SCHEMES, "'sgd step_size=0.5'"],
    "w0": ["np.ones(3)", "None"],
    "w": ["np.ones(3)", "np.zeros(3)"],
    "seed": ["0", "2**40", "None", "np.random.default_rng(0)", "np.random.SeedSequence(0)", "3.0"],
    "runs": ["4", "None"],
    "record_every": ["1", "2", "[0, 2]"],
    "callback": ["lambda t, w: None", "lambda t, w: True", "fails"],
    "threads": ["1"],
    "method": ["'auto'", "'moments'", "'spectral'", "'subsets'", "'deterministic'", "'monte-carlo'", "'dykstra'"],
    "quantities": ["('loss',)", "('loss', 'forgetting', 'regret', 'error', 'task_losses')"],
    "rtol": ["0.5"],
    "memory": ["1e9", "1.0"],
    "device": ["None", "'array-api-strict'"],
    "restarts": ["1", "2"],
    "jobs": ["None", "1"],
    "store": ["None"],
    "confidence": ["0.9"],
    "first": ["orderings.Cyclic()", "(orderings.Cyclic(), schemes.SGD(0.5))", "('cyclic', 'sgd')", "[0, 1, 2]"],
    "second": ["orderings.WithReplacement()"],
    "matrices": ["[matrix(), matrix()]", "[sp.csr_array(matrix()), matrix()]"],
    "labels": ["[vector(), 2 * vector()]"],
    "loss": ["'sum'", "'mean'"],
    "rank_tol": ["None", "1e-6"],
    "names": ["['a', 'b']"],
    "copy": ["False"],
    "label_names": ["[-1, 1]"],
    "kernel": ["matrix() @ matrix().T"],
    "groups": ["[0, 0, 1, 1]", "['a', 'b', 'a', 'b']"],
    "X": ["matrix()", "sp.csr_array(matrix())"],
    "y": ["vector()", "[0, 1, 0, 1]"],
    "task_id": ["None", "[0, 0, 1, 1]", "'a'"],
    "task": ["1", "0"],
    "fit_intercept": ["True"],
    "keep_history": ["False"],
    "max_iter": ["50"],
    "coefficients": ["np.ones(3)", "np.ones((2, 3))"],
    "what": ["'this'"],
    "A": ["np.eye(3)[:2]"],
    "maxiter": ["20", "None"],
    "x0": ["None", "np.ones(3)"],
    "damp": ["0.0", "0.5"],
    "blocks": ["'auto'", "'rows'", "2", "[[0, 2], [1, 3]]"],
    "relaxation": ["1.0", "1.5"],
    "checkpoint": ["None"],
    "atol": ["None", "1e-6"],
    "btol": ["None", "1e-6"],
    "average": ["1", "2", "'all'"],
    "relations": ["'='", "'>='", "['=', '>=', '<=', '=']"],
    "bounds": ["None", "(0, inf)", "(-np.ones(3), np.ones(3))"],
    "nearest": ["False", "True"],
    "b": ["0.5", "[0.5, 0.25]"],
    "center": ["np.zeros(3)"],
    "radius": ["1.0"],
    "lo": ["-1.0", "-np.ones(3)"],
    "hi": ["1.0", "np.ones(3)"],
    "a": ["np.ones(3)"],
    "dim": ["3"],
    "total": ["2.0"],
    "vectors": ["np.eye(3)[:2]"],
    "check": ["False"],
    "project": ["lambda w: w", "fails", "lambda w: w[:1]", "lambda w: None"],
    "warm": ["None"],
    "sets": ["[fg.Ball(np.zeros(3), 1.0), fg.Halfspace(np.ones(3), 0.5)]"],
    "max_sweeps": ["50"],
    "tol": ["1e-6"],
    "R": ["[[0.9, 0.1], [0.6, 0.8]]"],
    "order": ["[0, 1]"],
    "convention": ["'first'", "'gem'", "'diaz'", "'max'"],
    "higher_is_better": ["False"],
    "baseline": ["[0.1, 0.2]"],
    "loss_matrix": ["[[0.0, 3.0], [0.5, 0.0]]"],
    "learned": ["[0.0, 0.0]"],
    "before": ["[1.0, 2.0]"],
    "u": ["np.ones(3)"],
    "v": ["np.arange(3.0)"],
    "log_lambdas": ["[-5.0, -10.0]"],
    "T": ["3"],
    "d": ["3"],
    "rank": ["1", "[1, 2, 1]"],
    "condition": ["2.0"],
    "theta": ["0.5"],
    "w_star": ["(1, 0)"],
    "spread": ["10.0"],
    "angles": ["[0.25, 0.5]"],
    "n": ["2"],
    "margin": ["0.3"],
    "mu": ["0.5"],
    "eps": ["0.5"],
    "max_steps": ["100"],
    "accelerated": ["True"],
    "batch_size": ["1"],
    "warm_start": ["False"],
    "step_size": ["0.5"],
    "objective": ["'loss'"],
    "lam": ["0.5"],
    "alpha": ["0.5", "1"],
    "keep": ["0.5"],
    "at": ["schemes.Scheduled(lambda t: schemes.Ridge(t)).linear_steps_on(tasks()).at"],
    "alike": ["False"],
    "schedule": ["[schemes.Kaczmarz()] * 64", "lambda t: schemes.Ridge(t)"],
    "t": ["1", "2"],
    "steps": ["np.array([0, 2])"],
    "log_lambda": ["-5.0", "'limit'"],
    "p": ["[1, 2, 3]"],
    "seq": ["[0, 2, 1]"],
    "repeat": ["False"],
    "power": ["2.0"],
    "q": ["0.5"],
    "sample": ["2", "None"],
    "num_tasks": ["3"],
    "norms": ["np.ones(3)"],
    "rng": ["np.random.default_rng(0)"],
    "size": ["2"],
    "rank_avg": ["1.5"],
    "rank_max": ["2"],
    "rank_joint": ["3"],
    "dist_sq": ["1.0"],
    "radius_sq_mean": ["1.0"],
    "weight_ratio": ["1.0"],
    "rarest_draw": ["1.0"],
    "rare": ["''"],
    "rank_weighted": ["1.5"],
    "spectral_gap": ["0.25"],
    "contraction": ["0.75"],
    "eta": ["0.5"],
    "beta": ["1.0"],
    "sigma": ["0.5"],
    "G": ["1.0"],
    "previous_loss": ["0.5"],
    "from_zero": ["False"],
    "quantity": ["'loss'", "'forgetting'"],
    "setting": ["fg.bounds.Setting(T=3, d=3, rank_avg=1)"],
    "key": ["'trivial/loss'"],
    "name": ["'regression'"],
    "rows": ["2"],
    "second_hand": ["False"],
    "up_to": ["1000"],
    "orderings": ["('with replacement',)"],
    "label": ["'lem:regret_bound'", "'thm:cl_by_sgd_main'"],
    "part": ["None"],
    "instance": ["instance()"],
    "budget": ["2"],
    "seconds": ["None"],
    "extras": ["{'gamma': 0.5}"],
    "sides": ["fg.claims.Sides(1.0, 2.0)"],
    "kind": ["'inequality'"],
    "lhs": ["1.0"],
    "rhs": ["2.0"],
    "convex_set": ["fg.Ball(np.zeros(3), 1.0)", "fg.CustomSet(lambda w: 0 * w, 3)"],
    "points": ["np.eye(3)"],
    "off": ["np.zeros(3)"],
    "held_out": ["False"],
    "trials": ["4"],
    "solves": ["True"],
    "passes": ["2"],
    "repeats": ["2"],
    "standardize": ["'all'", "'first'", "None"],
    "intercept": ["True", "False"],
    "features": ["5", "lambda X: X", "fails"],
    "patience": ["1.0", "np.inf"],
    "level": ["0.5", "0.95"],
    "title": ["'mine'"],
    "known": ["True", "False"],
    "progress": ["False", "True", "lambda *_: None", "fails"],
    "width": ["80"],
    "path": ["file()"],
    "paths": ["file()"],
    "text": ["small_audit().to_json()"],
    "indent": ["1"],
    "force": ["True"],
    "message": ["'words'"],
    "certificate": ["[1.0]"],
    "residual": ["0.5"],
    "needed": ["2.0"],
    "allowed": ["1.0"],
    "claim": ["replace(fg.claims.get('lem:regret_bound'), label='demo')"],
    "bound": ["replace(fg.bounds.get('trivial/loss'), key='demo')"],
    "positive": ["None"],
    "replace": ["True", "False"],
    "draw": ["None", "lambda rng, index: instance()"],
    "sample_weight": ["np.ones(4)", "[1, 2, 0, 1]"],
    "drop_nan": ["True"],
    "misfit": ["None"],
    "noise": ["0.5", "[0.5, 0.0, 1.0]"],
    "test": ["tasks()", "np.eye(3)"],
    "goal": ["'decay'", "'loss'"],
    "centre_noise": ["0.5", "None"],
    "sgd_dist_sq": ["0.5", "None"],
    "share": ["0.25", "0.5"],
    "drop": ["()", "'0'", "['0', '1']"],
    "source": ["file()", "rows_file()", "frame()", "(matrix(), vector(), [0, 0, 1, 1])", "[(matrix(), vector())]"],
    "geometry": ["tasks().geometry"],
    "similarity": ["auditing.principal_angles(tasks().geometry)"],
    "near": ["0.1"],
    "performance": ["[[0.9, 0.5], [0.7, 0.8]]"],
    "per_task": ["True", "False"],
    "realizable": ["True"],
    "orders": ["[[0, 1, 2]]"],
    "exact": ["True", "False"],
    "images": ["np.arange(160.0).reshape(10, 4, 4)"],
    "evaluations": ["5"],
    "starts": ["[[0, 1, 2]]"],
    "scale": ["1.0"],
    "ax": ["None", "axes()"],
    "most": ["3", "None"],
    "self": [],
}
SOLVE = {
    "A": ["matrix()", "sp.csr_array(matrix())"],
    "b": ["vector()", "matrix()", "matrix() @ np.ones(3)"],
    "ordering": ["None", *(one for one in ORDERINGS if "[" not in one), "'cyclic'"],
    "method": ["'auto'", "'kaczmarz'", "'multipliers'", "'direct'", "'extended'", "'averaged'"],
    "callback": ["lambda x: None", "lambda x: True", "fails"],
    "seconds": ["None", "5.0"],
    "max_steps": ["None", "100"],
    "threads": ["1", "2", "None"],
    "checkpoint_every": ["0.0", "10.0"],
    "sets": ["()", "fg.Ball([0.0, 0.0, 0.0], 5.0)"],
}
STUDY = {
    "": {
        "cells": ["[{'family': 'orthogonal', 'd': 2}]", "[{'family': 'two_lines', 'theta': 0.5, 'k': [1, 2]}]"],
        "store": ["None", "'new.db'"],
        "function": ["fg.studies.measure", "'forgetting.studies:measure'"],
    },
    ".open": {"store": ["study_file()"]},
    ".from_toml": {"path": ["study_config()"], "function": ["None"]},
    ".run": {"jobs": ["None", "1"], "retry": ["True"], "wait": ["False"], "finished": ["None", "lambda *_: None"]},
    ".forget": {"where": ["lambda row: False"]},
    ".rows": {"times": ["True"]},
    ".columns": {"times": ["True"]},
    ".to_frame": {"times": ["True"]},
    ".to_parquet": {"path": ["f'{secrets.token_hex(8)}.parquet'"], "times": ["True"]},
    ".figure": {"x": ["'k'", "None"], "y": ["'loss'", "None"], "hue": ["'d'", "None"]},
}
#: where the name of a parameter says too little
GOOD_FOR = {
    **{f"{path}.Study{name}": good for path in ("fg", "fg.studies") for name, good in STUDY.items()},
    "fg.studies.register": {"function": ["tasks"]},
    "registry.add": {"name": ["f'x{secrets.token_hex(8)}'"], "member": ["schemes.Kaczmarz"], "replace": ["False"]},
    "registry.get": {"name": ["'sgd'"]},
    "registry.named": {"name": ["'Sgd'"]},
    "registry.__contains__": {"name": ["'sgd'"]},
    "fg.Ensemble.__getitem__": {"i": ["1", "-1"]},
    "OptimalSchedule.save": {"path": ["'written.npz'"]},
    "OptimalSchedule.load": {"path": ["saved(fg.optimal_schedule(tasks(), 'cyclic', 2))"]},
    "OptimalWeights.save": {"path": ["'written.npz'"]},
    "OptimalWeights.load": {"path": ["saved(fg.optimal_weights(tasks()))"]},
    "Report.from_dict": {"data": ["small_audit().to_report().to_dict()"]},
    "Report.from_json": {"text": ["small_audit().to_report().to_json()"]},
    "Report.item": {"key": ["next(small_audit().to_report().items()).key"]},
    "Measure.compare": {"one": ["1.0"], "other": ["2.0"], "error": ["0.0"]},
    "Measure.number": {"value": ["1.0"]},
    "RandomFeatures.drawn": {"columns": ["3"]},
    "Expression.where": {"text": ["'x = 1'"], "latex": ["'x = 1'"]},
    "fg.studies.measure": {
        "family": ["None"],
        "file": ["file()"],
        "bounds": ["True", "False"],
        "k": ["3", "[1, 3]"],
        "scheme": ["None", "'sgd step_size=0.5'"],
        "ordering": ["'cyclic'", "'with-replacement'"],
        "device": ["None"],
    },
    "fg.references.delta_rule": {
        "keys": ["np.eye(3)", "np.eye(3)[:2]"],
        "values": ["np.eye(3)"],
        "beta": ["0.5", "np.ones(3)"],
        "gate": ["0.9", "np.ones(3)"],
        "queries": ["None", "np.eye(3)"],
        "scale": ["0.5"],
        "initial_state": ["None"],
        "time_axis": ["-2", "0"],
    },
    "fg.references.worst_keys": {
        "steps": ["3"],
        "dim": ["2", "1"],
        "precision": ["'tf32'", "(8, 24, 24)"],
        "value_dim": ["1", "2"],
        "beta": ["1.0"],
        "gate": ["0.5"],
        "budget": ["64"],
    },
    "fg.references.DeltaRule.compare": {"state": ["memory().state"], "precision": ["'float32'"], "outputs": ["None"]},
    **{
        f"fg.references.DeltaRule.{name}": {"precision": ["'float32'", "(8, 24, 24)"]}
        for name in ("tolerance", "typical", "output_tolerance")
    },
    "fg.checks.check_ewc": {"fit": ["ewc_fit"], "loss": ["'auto'", "'sum'"], "tol": ["1e-4"], "seed": ["0"]},
    "fg.schemes.GeneralizedRidge": {"matrix": ["np.eye(3)", "np.ones(3)"]},
    **{
        f"fg.{name}.similarity": {"by": ["'rows'", "'solutions'"]}
        for name in ("ClassificationTasks", "ConvexSets", "KernelTasks", "Problem", "RegressionTasks")
    },
    **{
        f"fg.orderings.{name}": {"by": ["'rows'", "'solutions'"]}
        for name in ("TaskView.similarity", "PeripheryFirst", "DissimilarNeighbours")
    },
    "fg.RegressionTasks.like_these": {"other": ["tasks()"]},
    "fg.schemes.EWC": {"strength": ["0.5"], "gamma": ["0.5", "1.0"], "diagonal": ["False", "True"]},
    "fg.schemes.Replay": {
        "scheme": ["schemes.Ridge(0.5)"],
        "memory": ["1", "0"],
        "policy": ["'first'", "'ring'"],
        "per": ["'task'", "'all'"],
    },
    "fg.schemes.AffineStep": {key: ["np.eye(3)"] for key in ("matrix", "push", "matrix_noise", "push_noise")},
    "fg.families.key_value": {"similarity": ["0.3", "0.0"], "unit": ["True", "False"], "outputs": ["1", "2"]},
    "fg.adversarial_search": {
        "k": ["3", "2", "10**4"],
        "rank": ["1", "[1, 2, 1]", "None"],
        "quantity": ["'loss'", "'next_loss'", "'forgetting'"],
        "ordering": ["None", "'cyclic'", "orderings.WithReplacement([1, 2, 3])", "[0, 2, 1, 1]"],
        "steps": ["5"],
        "ranks": ["'free'", "'fixed'"],
        "weights": ["'fixed'", "'free'"],
        "start": ["None", "tasks()"],
    },
    "fg.solve": SOLVE,
    "fg.solver.solve": SOLVE,
    "fg.orderings.laws.Adaptive": {"draws": ["True"], "greedy": ["True"], "repeat": ["False"], "skips": ["True"]},
    "fg.orderings.laws.Fixed": {"sequence": ["[0, 1, 2]"]},
    "fg.orderings.laws.Cycle": {"order": ["[2, 0, 1]", "None"]},
    "fg.orderings.laws.Independent": {"p": ["[1.0, 2.0, 1.0]"], "name": ["'draws'"]},
    "fg.schemes.SGDStep": {"step_size": ["1.0"], "smoothness": ["1.0"]},
    "fg.orderings.register": {"cls": ["orderings.Cyclic"]},
    "fg.schemes.register": {"cls": ["schemes.Kaczmarz"]},
    "fg.Affine": {"b": ["[0.5, 0.25]"]},
    "fg.Polyhedron": {"b": ["[0.5, 0.25]"]},
    "fg.Box": {"lo": ["-np.ones(3)"], "hi": ["np.ones(3)"]},
    "fg.ClassificationTasks": {"labels": ["[[0, 1, 0, 1], [1, 1, 0, 0]]"], "matrices": ["[matrix(), matrix()]"]},
    "fg.ClassificationTasks.from_arrays": {"y": ["[0, 1, 0, 1]"]},
    "fg.one_versus_rest": {"y": ["[0, 1, 2, 1]"]},
    "fg.ClassificationTasks.load": {"path": ["saved(classes())"]},
    "fg.claims.Instance.load": {"path": ["saved(instance())"]},
    "fg.Problem.load": {"path": ["saved(tasks())", "saved(sets())"]},
    "fg.KernelTasks.load": {"path": ["saved(kernel())"]},
    "fg.ConvexSets.load": {"path": ["saved(sets())"]},
    "fg.Expectation.series": {"name": ["'loss'"], "label": ["'words'"], "group": ["1"]},
    "fg.Expectation.plot": {"ax": ["None"]},
    "fg.Expectation.figure": {"quantity": ["'loss'", "None"], "bounds": ["True", "False"]},
    "fg.KernelTasks": {"labels": ["vector()"]},
    "fg.ConvexSets": {"names": ["['a', 'b']"]},
    "fg.ContinualClassifier": {"tol": ["1e-6"]},
    "fg.ContinualClassifier.fit": {"y": ["[0, 1, 0, 1]", "['a', 'b', 'a', 'b']"], "order": ["None"]},
    "fg.ContinualClassifier.partial_fit": {"y": ["[0, 1, 0, 1]"], "classes": ["[0, 1]"], "order": ["None"]},
    "fg.ContinualClassifier.score": {"y": ["[0, 1, 0, 1]"]},
    "fg.ContinualRegressor.fit": {"order": ["None"]},
    **{
        f"fg.IncrementalRidge{kind}{name}": pieces
        for kind, y, head in (("", "vector()", "ridge()"), ("Classifier", "[0, 1, 0, 1]", "ridge_classifier()"))
        for name, pieces in {
            "": {"alpha": ["0.5", "'gcv'"], "keep_tasks": ["True"], "features": ["None", "3"]},
            ".fit": {"y": [y], "task_id": ["None"]},
            ".partial_fit": {"y": [y], "classes": ["[0, 1, 2]"], "task_id": ["None"]},
            ".score": {"y": [y]},
            ".learn_batches": {"batches": [f"[(matrix(), {y})]"], "task_id": ["None"]},
            ".learn_source": {"X": ["matrix()"], "y": [y], "task_id": ["None"]},
            ".merge": {"other": [head]},
            ".load": {"path": [f"saved({head})"], "features": ["None"]},
            ".path": {"X": ["None", "matrix()"], "y": ["None", y], "alphas": ["[0.1, 1.0]"], "by": ["'gcv'", "'rows'"]},
            ".predict": {"alphas": ["None", "[0.1, 1.0]"]},
            ".decision_function": {"alphas": ["None", "[0.1, 1.0]"]},
        }.items()
    },
    "fg.ContinualRegressor.partial_fit": {"order": ["None"]},
    "fg.families.repeated": {"n": ["2"]},
    "fg.families.catastrophic": {"eps": ["3.0"]},
    "fg.families.greedy_failure": {"d": ["4"]},
    "fg.families.separable": {"n": ["2"]},
    "fg.families.levels": {"rates": ["None"], "sizes": ["None"], "clones": ["None"], "k": ["100", "5"]},
    "fg.reductions.classification_to_pocs": {"tasks": ["classes()"]},
    "fg.schemes.WeaklyRegularized": {"log_lambda": ["-5.0"]},
    "fg.metrics.forgetting": {"convention": ["'first'", "'chaudhry'", "'max'", "'mammoth'"]},
    "fg.orderings.Visits": {"tasks": ["orderings.TaskView(3)"]},
    "fg.metrics.backward_transfer": {"convention": ["'gem'", "'diaz'"]},
    "fg.metrics.forward_transfer": {"convention": ["'diaz'", "'gem'"]},
    "fg.bounds.crossovers": {"rows": ["'stated'"], "quantities": ["('loss',)"]},
    "fg.bounds.Evaluation.to_latex": {"rows": ["'stated'", "'all'", "'tightest'"]},
    "fg.claims.from_bound": {"key": ["'trivial/loss'", "'thm:cl_by_sgd_wor/loss/D'"]},
    "fg.bounds.Setting": {"problem": ["'regression'"], "mean_projection": ["0.5"], "programs": ["True", "False"]},
    "fg.bounds.Setting.of": {"problem": GOOD["problem"][:6]},
    "fg.bounds.Crossovers.winner": {"ordering": ["'with replacement'"]},
    "fg.bounds.all_bounds": {"ordering": ["'with replacement'"]},
    "fg.checks.check_scheme": {"scheme": SCHEMES[1:]},
    "fg.schemes.Decay": {"scheme": SCHEMES[1:]},
    "fg.checks.check_ordering": {"k": ["5"]},
    "fg.claims.Sides": {"scale": ["1.0"]},
    "fg.claims.Certificate.from_json": {"text": ["small_certificate().to_json()"]},
    "fg.load": {"task": ["'task'"], "label": ["'y'"], "classes": ["'auto'", "None", "'all'"]},
    "fg.auditing.read_tasks": {"task": ["'task'"], "label": ["'y'"], "classes": ["'auto'", "None", "'all'"]},
    "fg.explore": {"tasks": ["tasks()"], "out": ["f'{secrets.token_hex(8)}.html'"]},
    "fg.audit": {
        "tasks": [
            "tasks()",
            "frame()",
            "[(matrix(), vector()), (2 * matrix(), vector())]",
            "{'a': (matrix(), vector())}",
        ],
        "order": ["[2, 0, 1]"],
        "runs": ["4"],
        "test": ["None"],
        "patience": ["0.0"],
    },
    "fg.auditing.audit": {"order": ["[2, 0, 1]"], "runs": ["4"], "patience": ["0.0"], "test": ["tasks()"]},
    "fg.auditing.Audit.measure": {"name": ["'training loss'"]},
    "fg.ClassSplits": {
        "X": ["np.eye(6)"],
        "labels": ["list('abcdef')"],
        "tasks": ["3", "[1, 2, 3]"],
        "test": ["None", "(np.eye(6), list('abcdef'))"],
        "classes": ["'all'", "'task'"],
    },
    "fg.ClassSplits.from_table": {
        "table": ["{'X': np.eye(6), 'y': list('abcdef')}"],
        "tasks": ["3", "[1, 2, 3]"],
        "test": ["None"],
        "classes": ["'all'", "'task'"],
        "label": ["'y'"],
    },
    "fg.ClassSplits.tasks": {"order": ["['c', 'a', 'b']"]},
    "fg.ClassSplits.test_tasks": {"order": ["[['c', 'a'], ['b']]"]},
    "fg.auditing.ClassOrderAudit.measure": {"name": ["'final accuracy'"]},
    "fg.auditing.ClassOrderMeasure.orders_needed": {"error": ["0.01"]},
    "fg.auditing.ClassOrderAudit.to_text": {"width": ["80"]},
    "fg.auditing.ClassOrderAudit.write_page": {"path": ["f'{secrets.token_hex(8)}.html'"]},
    "fg.auditing.ClassOrderAudit.from_json": {"text": ["small_class_orders().to_json()"]},
    "fg.auditing.Audit.landscape": {"measure": ["'training loss'"]},
    "fg.auditing.Audit.write_landscape": {"path": ["f'{secrets.token_hex(8)}.npz'"]},
    "fg.ClassificationTasks.accuracies": {"points": ["np.zeros((2, 3))"]},
    "fg.ClassificationTasks.accuracies_within": {"points": ["np.zeros((2, 3))"], "off": ["np.zeros(2)"]},
    "fg.auditing.apply_features": {"features": ["lambda X: X", "auditing.RandomFeatures(4)"]},
    "fg.auditing.RandomFeatures": {"kind": ["'relu'", "'fourier'"]},
    "fg.datasets.image_tasks": {
        "labels": ["range(10)"],
        "tasks": ["2"],
        "kind": ["'split'", "'rotated'"],
        "part": ["'all'"],
    },
    "fg.datasets.hold_out": {"tasks": ["fg.families.gaussian(T=3, d=5, rank=3, seed=0)"]},
    "fg.datasets.diabetes": {"bins": ["3"], "by": ["'age'", "'bmi'"], "part": ["'all'", "'test'"]},
    "fg.datasets.tomography": {"size": ["4"], "angles": ["3", "[0.0, 30.0]"], "detectors": ["5"], "image": ["None"]},
    "fg.solver.swept": {"A": ["matrix()"], "b": ["vector()"], "order": ["None"]},
    "fg.solver.symmetric_sweeps": {"A": ["matrix()"], "sweeps": ["2"], "order": ["None"]},
    "fg.datasets.sensor_drift": {
        "T": ["3"],
        "n": ["5"],
        "d": ["4"],
        "outputs": ["1"],
        "drift": ["0.1"],
        "noise": ["0.0"],
        "response": ["'linear'", "'power'"],
        "part": ["'train'"],
    },
    "fg.auditing.image_tasks": {
        "labels": ["range(10)"],
        "tasks": ["2"],
        "kind": ["'split'", "'rotated'"],
        "part": ["'all'"],
    },
    "fg.auditing.Audit.ordering": {"name": ["'given order'"], "passes": ["1"]},
    "fg.auditing.Audit.write_page": {"path": ["'page.html'"]},
    "fg.RegressionTasks.with_data": {
        "matrices": ["[matrix()] * 3"],
        "labels": ["[vector()] * 3"],
        "names": ["['a', 'b', 'c']"],
    },
    "fg.RegressionTasks.from_source": {
        "X": ["matrix()"],
        "groups": ["None", "[0, 0, 1, 1]"],
        "sizes": ["[2, 2]"],
        "memory": ["1e9"],
        "cache": ["None", "False", "'new.npz'"],
        "jobs": ["1"],
    },
    "fg.RegressionTasks.from_labels": {
        "X": ["matrix()"],
        "labels": ["[0, 1, 0, 1]", "['a', 'b', 'c', 'a']"],
        "classes": ["'all'", "'task'"],
    },
    "fg.bounds.Misfit": {
        name: ["0.5", "None"]
        for name in ["floor", "smoothness", "noise", "noise_max", "centre_loss", "centre_slope", "centre_dist_sq"]
    },
    "fg.bounds.Misfit.of": {"start": ["np.zeros(tasks().geometry.dim)"], "p": ["None"]},
    "fg.RegressionTasks.save": {"path": ["'saved.npz'"]},
    "fg.ClassificationTasks.save": {"path": ["'saved.npz'"]},
    "fg.claims.Instance.save": {"path": ["'saved.npz'"]},
    "fg.Expectation.interval": {"name": ["'loss'"]},
    "fg.Expectation.median": {"name": ["'loss'"]},
    "fg.Expectation.quantile": {"name": ["'loss'"]},
    "fg.bounds.Range.why_not": {"T": ["3"]},
    "fg.claims.Instance.extra": {"name": ["'gamma'"]},
    "fg.claims.unregister": {"label": ["'lem:regret_bound'"]},
    "fg.ConvexSets.nearest_in_intersection": {"method": ["'auto'", "'dykstra'"]},
    "fg.AccuracyMatrices": {
        "values": ["[[0.9, 0.1], [0.6, 0.8]]", "[[90, 10], [60, 80]]", "[[0.9], [0.6, 0.8]]"],
        "orders": ["None", "[0, 1]"],
        "before": ["None", "False", "[0.1, 0.2]"],
        "names": ["['a', 'b']", "()"],
        "runs": ["['first']", "()"],
        "order_names": ["['forward']", "()"],
        "notes": ["['mine']"],
    },
    "fg.AccuracyMatrices.from_predictions": {
        "predictions": ["[[1, 0], [1, 1]]"],
        "labels": ["[[1, 1], [1, 1]]"],
        "tasks": ["[[0, 1], [0, 1]]"],
    },
    "fg.AccuracyMatrices.from_continuum": {"logger": ["continuum_logger()"], "subset": ["'test'"]},
    "fg.AccuracyMatrices.load": {
        "path": ["accuracy_file()", "[accuracy_file()]"],
        "classifier": ["'CNN'", "'NME'"],
        "stream": ["None"],
    },
    "fg.auditing.MatrixAudit.from_json": {"text": ["small_matrix_audit().to_json()"]},
    "fg.auditing.MatrixAudit.metric": {"quantity": ["'forgetting'"], "word": ["'pycil'", "''"]},
    "fg.auditing.MatrixAudit.to_text": {"width": ["80"]},
    "fg.auditing.MatrixAudit.write_page": {"path": ["f'{secrets.token_hex(8)}.html'"]},
    "fg.metrics.average_incremental": {"convention": ["'icarl'", "'diaz'"], "weights": ["None", "[10, 20]"]},
    "fg.metrics.conventions": {"weights": ["None", "[10, 20]"]},
    "fg.auditing.share_of_order": {"values": ["[1.0, 2.0, 4.0]"], "orders": ["['a', 'a', 'b']"], "level": ["0.9"]},
    "fg.auditing.Landscape": {
        "permutations": ["[[0, 1], [1, 0]]", "[[1, 0], [0, 1]]"],
        "values": ["[1.0, 2.0]", "[[1.0], [2.0]]"],
        "seeds": ["None", "[3]", "['a']"],
        "task_values": ["None", "np.ones((2, 2))"],
        "complete": ["True", "False"],
    },
    "fg.auditing.Landscape.from_npz": {
        "path": ["values_file()"],
        "permutations_key": ["'permutations'"],
        "values_key": ["'values'"],
        "seeds_key": ["'seeds'", "None"],
        "values_layout": ["'group-by-seed'", "'seed-by-group'"],
    },
    "fg.auditing.Landscape.to_npz": {"path": ["f'{secrets.token_hex(8)}.npz'"]},
    "fg.auditing.landscape": {"higher_is_better": ["None", "False"]},
    "fg.auditing.search_orders": {"quantity": ["'forgetting'"]},
    "fg.orderings.Explicit.check": {"k": ["3"]},
    "fg.auditing.Audit.to_text": {"width": ["80"]},
    "fg.bounds.table": {"k": ["3"], "setting": ["None", GOOD["setting"][0]]},
    "fg.families.back_and_forth": {"T": ["4"], "theta": ["0.1"]},
    **{f"fg.{name[:-1].split('(')[0]}.first": {"tasks": [VIEW]} for name in ORDERINGS},
}
#: not left out in the usual call: without them it takes long, or is refused
GIVEN = {"budget", "baseline", "file", "sizes", "restarts", "steps"}
#: keywords that **options stand for
MORE = {
    "fg.RegressionTasks.from_arrays": {"loss": ["'mean'"], "names": ["['a', 'b']"]},
    "fg.ClassificationTasks.from_arrays": {"names": ["['a', 'b']"]},
    "fg.bounds.evaluate": {"eta": ["0.5"], "beta": ["1.0"]},
    "fg.bounds.crossovers": {"dist_sq": ["1.0"], "radius": ["2.0"]},
    "fg.bounds.table": {"T": ["3"], "d": ["3"], "rank_avg": ["1.5"]},
    "fg.bounds.Setting.of": {"eta": ["0.5"]},
    "fg.auditing.read_tasks": {"loss": ["'mean'"]},
    "fg.auditing.Landscape.from_npz": {"quantity": ["'accuracy'"], "complete": ["False"], "names": ["['a', 'b']"]},
    "fg.load": {"loss": ["'mean'"], "names": ["['a', 'b']"]},
    "fg.studies.measure": {"theta": ["0.5"]},
    "fg.claims.declare": {"label": ["'demo'"]},
    "fg.bounds.declare": {
        "key": ["'demo'"],
        "title": ["'t'"],
        "source": ["'nobody'"],
        "quantity": ["'loss'"],
        "orderings": ["('any',)", "'cyclic'"],
        "formula": ["'S'"],
    },
}
#: an object of each class that has methods
OBJECTS = {
    "fg.Affine": "fg.Affine(np.eye(3)[:2], [0.5, 0.25])",
    "fg.Ball": "fg.Ball(np.zeros(3), 1.0)",
    "fg.Box": "fg.Box(-np.ones(3), np.ones(3))",
    "fg.ClassificationTasks": "classes()",
    "fg.ContinualClassifier": "classifier()",
    "fg.ContinualRegressor": "regressor()",
    "fg.IncrementalRidge": "ridge()",
    "fg.IncrementalRidgeClassifier": "ridge_classifier()",
    "fg.ConvexSets": "sets()",
    "fg.CustomSet": "fg.CustomSet(lambda w: 0 * w, 3)",
    "fg.Expectation": "fg.expect(tasks(), orderings.WithReplacement(), [1, 3], method='monte-carlo', runs=4)",
    "fg.Halfspace": "fg.Halfspace(np.ones(3), 0.5)",
    "fg.KernelTasks": "kernel()",
    "fg.Polyhedron": "fg.Polyhedron(np.eye(3), np.zeros(3))",
    "fg.RegressionTasks": "tasks()",
    "fg.SecondOrderCone": "fg.SecondOrderCone(3)",
    "fg.Simplex": "fg.Simplex(3)",
    "fg.Slab": "fg.Slab(np.ones(3), 0.0, 1.0)",
    "fg.Subspace": "fg.Subspace(np.eye(3)[:2])",
    "fg.Trajectory": "run()",
    "fg.solver.Solution": "solution()",
    "fg.Study": "small_study()",
    "fg.Ensemble": "fg.run_many(tasks(), orderings.WithReplacement(), 3, 4)",
    "fg.bounds.Bound": "fg.bounds.get('trivial/loss')",
    "fg.bounds.Cell": "fg.bounds.table('regression').rows[0][2]",
    "fg.bounds.Crossovers": "fg.bounds.crossovers(d=5, T=3, rank_avg=1, up_to=100)",
    "fg.bounds.Evaluation": "fg.bounds.evaluate(tasks(), orderings.Cyclic(), 3)",
    "fg.bounds.Range": "fg.bounds.Range(last='T')",
    "fg.bounds.Setting": "fg.bounds.Setting(T=3, d=3, rank_avg=1)",
    "fg.bounds.Table": "fg.bounds.table('regression', k=3, T=3, d=3, rank_avg=1, rank_max=1)",
    "fg.claims.Certificate": "small_certificate()",
    "fg.claims.Claim": "fg.claims.get('lem:regret_bound')",
    "fg.claims.Instance": "fg.claims.Instance(tasks(), orderings.WithReplacement(), 3, extras={'gamma': 0.5})",
    "fg.claims.Verdict": "fg.claims.get('lem:regret_bound').check(instance())",
    "fg.claims.Hunt": "fg.claims.get('lem:regret_bound').hunt(budget=2)",
    "fg.claims.Record": "record()",
    "fg.claims.Evidence": "fg.claims.get('thm:cl_by_sgd_main', 'loss').evidence",
    "fg.orderings.TaskView": VIEW,
    "fg.orderings.Visits": "orderings.Visits(orderings.Cyclic(), orderings.TaskView(3), np.random.default_rng(0))",
    "fg.ClassSplits": "splits()",
    "fg.auditing.Audit": "small_audit()",
    "fg.auditing.ClassOrderAudit": "small_class_orders()",
    "fg.auditing.ClassOrderMeasure": "small_class_orders().measures[0]",
    "fg.auditing.Landscape": "small_landscape()",
    "fg.auditing.MatrixAudit": "small_matrix_audit()",
    "fg.AccuracyMatrices": "fg.AccuracyMatrices([[0.9, 0.1], [0.6, 0.8]])",
    "fg.references.DeltaRule": "memory()",
    "fg.references.WorstKeys": "fg.references.worst_keys(3, 2, budget=64)",
    "fg.worstcase.DualCertificate": "small_worst().certificate",
    "fg.worstcase.Entry": "entry()",
    "fg.worstcase.Frontier": "small_frontier()",
    "fg.worstcase.TaskSearch": "small_search()",
    "fg.worstcase.WorstCase": "small_worst()",
    **{f"fg.{name[:-1].split('(')[0]}": name for name in ORDERINGS},
    **{f"fg.{name[:-1].split('(')[0]}": name for name in SCHEMES[1:]},
}
#: objects of classes that have no public name
OTHERS = {
    "registry": "fg.schemes.registry",
    "OptimalSchedule": "fg.optimal_schedule(tasks(), 'cyclic', 2)",
    "OptimalWeights": "fg.optimal_weights(tasks())",
    "Report": "small_audit().to_report()",
    "Measure": "small_audit().measures[0]",
    "RandomFeatures": "auditing.RandomFeatures(4)",
    "Expression": "fg.bounds.get('trivial/loss').expression",
}
# fmt: off
#: what the library makes, never a user: their methods are called, they are not
RESULTS = {
    "fg.Ensemble", "fg.Expectation", "fg.Problem", "fg.Trajectory", "fg.bounds.Bound", "fg.bounds.Cell",
    "fg.datasets.Tomography", "fg.bounds.Condition", "fg.bounds.Crossovers", "fg.bounds.Evaluation",
    "fg.bounds.Range", "fg.bounds.Row",
    "fg.bounds.Stretch", "fg.bounds.Table", "fg.claims.Certificate", "fg.claims.Claim", "fg.claims.Hunt",
    "fg.claims.Evidence", "fg.claims.Record", "fg.claims.Sides", "fg.claims.Verdict", "fg.metrics.Convention",
    "fg.metrics.Conventions", "fg.auditing.MatrixAudit", "fg.orderings.TaskView",
    "fg.orderings.Visits", "fg.reductions.DirectionCurve", "fg.schemes.Learned", "fg.solver.Guarantee",
    "fg.solver.History", "fg.solver.SolveState",
    "fg.checks.EWCReport", "fg.references.DeltaRule", "fg.references.Deviation", "fg.references.WorstKeys",
    "fg.solver.Solution", "fg.studies.Status", "fg.worstcase.DualCertificate", "fg.worstcase.Entry",
    "fg.worstcase.Frontier", "fg.worstcase.Improvement", "fg.worstcase.TaskSearch", "fg.worstcase.WorstCase",
}
#: what the library itself calls, with arguments it has checked
TRUSTED = {
    "visits", "batch", "learn", "start", "gains", "precise_gain", "scores", "nearest", "nearest_from", "reach",
    "weights", "probabilities", "limit", "check", "draw", "sides", "precise", "missing", "settle", "compute",
    "with_dim", "equations", "get_metadata_routing", "set_fit_request", "set_partial_fit_request",
    "set_predict_request", "set_score_request", "set_decision_function_request", "set_params", "get_params",
    "append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse", "sort", "function",
    "rebuilt", "file_arrays", "from_file_arrays", "adopt", "settings", "affine_step", "remember", "kept_at",
    "left_after", "at_step", "in_coordinates", "order", "first", "made", "learn_in_turn",
}
# fmt: on
#: they bring their own data, which takes long, or write to places of their own
LEFT_OUT = {"fg.claims.declare", "fg.bounds.declare"} | {
    f"fg.{module}.{name}" for module in ("auditing", "datasets") for name in ("digits", "mnist")
}
LEFT_OUT |= {f"{path}.Study.grid" for path in ("fg", "fg.studies")}  # refused without axes, which have any name
#: refused by the objects here, which have no classes, one output and no held-out data; other tests call them
LEFT_OUT |= {"fg.RegressionTasks.output", "fg.ConvexSets.accuracies", "fg.ConvexSets.accuracies_within"}
LEFT_OUT |= {
    f"fg.{kind}Tasks.{name}"
    for kind in ("Regression", "Kernel")
    for name in ("accuracy", "accuracies", "accuracies_within")
}
LEFT_OUT |= {
    f"fg.{kind}.test_accuracies" for kind in ("RegressionTasks", "KernelTasks", "ClassificationTasks", "ConvexSets")
}
#: refused without T and d, or tasks; and without a picture
LEFT_OUT |= {"fg.worstcase.improve_frontier", "fg.worstcase.WorstCase.plot", "fg.ClassSplits.plot"}
LEFT_OUT |= {"fg.references.WorstKeys.plot"}
LEFT_OUT |= {"fg.orderings.TaskView.similarity"}  # refused by a view without tasks
#: refused without rows, or a task
LEFT_OUT |= {"fg.IncrementalRidge.unlearn", "fg.IncrementalRidgeClassifier.unlearn"}
SLOW = {
    "fg.audit",
    "fg.auditing.audit",
    "fg.certify",
    "fg.claims.certify",
    "fg.auditing.Audit.write_page",
    "fg.auditing.Audit.to_html",
}
#: NaN is an answer here, as their pages say
NAN_IS_AN_ANSWER = {
    "fg.metrics.forgetting",
    "fg.metrics.paper_forgetting",
    "fg.metrics.backward_transfer",
    "fg.metrics.forward_transfer",
    "fg.metrics.paper_regret",
    "fg.reductions.angle_between",
    "fg.ContinualRegressor.score",  # of scikit-learn
    "fg.claims.Verdict.reached",  # infinite beside a right side of 1e-320
    "registry.add",  # gives back what it is given
}


def saved(thing: Any) -> Path:
    path = Path(f"{type(thing).__name__}.npz")
    thing.save(path)
    return path


GOOD_FOR |= {f"{name}.save": {"path": ["'written.npz'"]} for name in OBJECTS}  # not over the file that others load
GOOD_FOR |= {
    f"{name}.load": {"path": [f"saved({OBJECTS[name]})"]}
    for name in (
        "fg.Trajectory", "fg.Ensemble", "fg.Expectation", "fg.bounds.Evaluation", "fg.bounds.Table",
        "fg.claims.Certificate", "fg.claims.Hunt", "fg.auditing.Audit", "fg.auditing.Landscape",
        "fg.auditing.MatrixAudit", "fg.solver.Solution", "fg.worstcase.Frontier", "fg.worstcase.TaskSearch",
        "fg.worstcase.WorstCase", "fg.auditing.ClassOrderAudit", "fg.references.DeltaRule", "fg.references.WorstKeys",
    )
}  # fmt: skip
GOOD_FOR |= {
    "fg.worstcase.DualCertificate.from_json": {"text": ["small_worst().certificate.to_json()"]},
    "fg.worstcase.DualCertificate.load": {"path": ["proof_file()"]},
    "fg.claims.Record.from_json": {"text": ["record().to_json()"], "path": ["None"]},
    "fg.claims.Record.read": {"path": ["record_file()"]},
    "fg.claims.Record.save": {"path": ["'written-record.json'"]},
    "fg.worstcase.Entry.from_json": {"text": ["entry().to_json()"], "path": ["None"]},
    "fg.worstcase.Entry.of": {"ordering": ["'with-replacement'", "'cyclic'"], "k": ["3", "1"]},
    "fg.worstcase.Entry.read": {"path": ["entry_file()"]},
    "fg.worstcase.Entry.save": {"path": ["'written.json'"]},
    "fg.worstcase.DualCertificate.save": {"path": ["'written-proof.json'"]},
    **{
        f"{path}.adversarial_search": {
            "steps": ["3"], "restarts": ["1"], "ranks": ["'free'", "'fixed'"], "weights": ["'fixed'", "'free'"],
            "start": ["None"], "ordering": ["None", "orderings.Cyclic()"], "k": ["3"],
        }
        for path in ("fg", "fg.worstcase")
    },
    "fg.worstcase.Frontier.add": {"source": ["entry_file()", "entry()"]},
    "fg.worstcase.Frontier.best": {"T": ["3", "None", "inf"], "k": ["1"], "d": ["None", "3"]},
    "fg.worstcase.Frontier.figure": {"upper": ["False", "True"]},
    "fg.worstcase.frontier": {
        "T": ["None", "3", "[2, inf]"], "k": ["None", "2", "[1, 2]"], "folder": ["None"],
        "ordering": ["'with-replacement'", "'cyclic'"],
    },
}  # fmt: skip
#: what the pieces are evaluated with
NAMES = {**globals()}
