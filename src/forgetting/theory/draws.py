"""The regression tasks that a hunt tries: structured families first, then random ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from forgetting.core.arrays import Array
from forgetting.errors import InvalidInputError
from forgetting.orderings import (
    Cyclic,
    Explicit,
    NormWeighted,
    Ordering,
    Reshuffled,
    WithoutReplacement,
    WithReplacement,
)
from forgetting.schemes import SGD
from forgetting.tasks import RegressionTasks, families
from forgetting.theory.expectations import MANY_STEPS, SMALL
from forgetting.theory.instance import Instance
from forgetting.theory.verdict import Draw

Rng = np.random.Generator
MOST_STEPS = 400
MOST_CLONES = 10_000
TRIES = 1000  # draws before a setting that no draw meets is given up
MANY_TASKS = 12  # more distinct ones than this are large: their permutations are simulated
MOST_WORK = 10**7  # k T D^2 of distinct tasks; a few tenths of a second
FEW_RUNS = 4096  # of simulated permutations of many tasks
MOST_EPOCHS = 100
MOST_SETS = 2000  # of seen tasks, in all epochs together
LONGEST = 10**6  # steps in few dimensions, where k steps are the power k of a small matrix
MANY_CLONES = 45_000, 100_000  # so that rates of 7/k^(1/4) are below 1/2, from k = 38417 on
FEW_LONG_RUNS = 256  # of simulated permutations of so many tasks


def realizable(matrices: list[Any], w_star: Array, counts: Any = None) -> RegressionTasks:
    """Tasks of dense or sparse matrices that w* solves, each repeated `counts` times.

    >>> realizable([np.eye(2)[:1]], np.ones(2), [3]).num_tasks
    3
    """
    labels = [matrix @ w_star for matrix in matrices]
    which = np.repeat(np.arange(len(matrices)), 1 if counts is None else counts)
    return RegressionTasks([matrices[i] for i in which], [labels[i] for i in which])


def collection(rng: Rng, index: int, *, clones: int = MOST_CLONES, distinct: int = 6) -> RegressionTasks:
    """Tasks for a hunt: number `index` of the structured collections, or random ones once these are used up.

    Structured: two lines over their angle, with w* halfway or on a line; the same cloned; orthogonal tasks; norms over
    orders of magnitude; nearly identical tasks; tasks of full rank, all or nearly all. Random: any number, dimension,
    ranks (0 included), conditioning, norms, clones and w*. Among the random ones, number 65 and every tenth from there
    on overwrites what it learned first (see `_overwritten`), and number 79 and every fortieth from there on has up to
    hundreds of distinct tasks or dimensions (see `_large`).

    >>> collection(np.random.default_rng(0), 0)
    RegressionTasks(T=2, d=2, rows=2)
    """
    angle = float(np.geomspace(1e-3, np.pi / 2, 12)[index % 12])
    if index < 12:
        return families.two_lines(angle)
    if index < 24:
        return families.two_lines(angle, w_star=(1, 0))
    if index < 30:
        return families.orthogonal(index - 23)
    if index < 36:
        copies = int(np.geomspace(2, 5000, 6)[index - 30])
        return families.repeated(families.two_lines(rng.uniform(0.05, 1.5)), max(1, min(copies, clones // 2)))
    if index < 42:
        spread = 10.0 ** (index - 35)
        return families.heterogeneous_norms(T=3, d=3, spread=spread, seed=int(rng.integers(1 << 30)))
    if index < 46:  # one task among many that say nothing
        rest = int(min(10.0 ** (index - 41), clones) - 1)
        return realizable([np.array([[1.0, 0.0]]), np.zeros((1, 2))], np.array([1.0, 0.0]), [1, max(rest, 1)])
    if index < 52:
        base = rng.standard_normal((3, 4))
        near = [base[:1] + 10.0 ** -(index - 45) * rng.standard_normal((1, 4)) for _ in range(3)]
        return realizable(near, rng.standard_normal(4))
    if index < 54:
        return realizable([np.eye(3), np.eye(3)[:2], np.eye(3)[:1]][index - 52 :], np.ones(3))
    if index < 60:  # nearly all tasks say everything: d minus the average rank is below 1
        dim, rest = 1 + index % 2, int(min(4.0 ** (index // 2 - 26), clones - 1))
        less = np.zeros((1, 1)) if dim == 1 else np.eye(dim)[:1]
        return realizable([np.eye(dim), less], np.ones(dim), [rest, 1])
    if _overwrites(index):
        return _overwritten(rng, index, clones)
    return _large(rng) if index % 40 == 39 else _random(rng, clones, distinct)


def _overwrites(index: int) -> bool:
    return index >= 60 and index % 10 == 5


def _overwritten(rng: Rng, index: int, clones: int) -> RegressionTasks:
    """Task A, and task B, which alone solves everything: B after A leaves A with a loss, and any other order none.

    So what was seen has a loss, and what comes next has next to none: only the second terms of `lem:in_to_all_sample`
    (with B of small norm), `lem:wr_stability` and `lem:wor_generalization` (with A rare) make up for that.
    """
    angle = rng.uniform(0.3, 1.3)
    line, small = np.array([[np.cos(angle), np.sin(angle)]]), index % 20 == 5
    others = 1 if small else int(min(10.0 ** rng.uniform(0.5, 1.5), clones - 1))
    size = 10.0 ** -rng.uniform(1, 4) if small else 1.0
    return realizable([np.array([[1.0, 0.0]]), size * line], line[0], [1, others])


def _large(rng: Rng) -> RegressionTasks:
    """Sizes of random tasks: up to 130 in as many dimensions, hundreds in few dimensions, or few in hundreds."""
    many, few, kind = int(rng.integers(41, 131)), int(rng.integers(2, 7)), int(rng.integers(6))
    if kind == 0:  # orthogonal rows
        return families.orthogonal(many)
    if kind == 1:  # random unit rows, as many as there are dimensions
        return realizable(_unit_rows(rng, many, many), rng.standard_normal(many))
    if kind == 2:  # two lines in each of many planes
        lines = families.two_lines(rng.uniform(0.05, 1.5))
        planes = [np.kron(row, np.asarray(lines.task(m)[0])) for row in np.eye(many // 2)[:, None] for m in range(2)]
        return realizable(planes, np.tile(lines.w_star, many // 2))
    if kind == 3:  # rows that share a direction, in which everything is to be learned
        shared = np.column_stack([np.ones(many), np.eye(many)]) / np.sqrt(2)
        return realizable(list(shared[:, None]), np.eye(many + 1)[0])
    if kind == 4:  # many tasks in few dimensions
        return realizable(_unit_rows(rng, 4 * many, few), rng.standard_normal(few))
    rank = int(rng.integers(1, 4))  # few tasks of low rank in many dimensions
    matrices = [rng.standard_normal((rank, 4 * many)) / np.sqrt(4 * many) for _ in range(few)]
    return realizable(matrices, rng.standard_normal(4 * many))


def _unit_rows(rng: Rng, count: int, dim: int) -> list[Array]:
    rows = rng.standard_normal((count, dim))
    return list((rows / np.linalg.norm(rows, axis=1, keepdims=True))[:, None])


def _random(rng: Rng, clones: int, distinct: int) -> RegressionTasks:
    kinds, dim = int(rng.integers(1, distinct + 1)), int(rng.integers(1, 7))
    if rng.random() < 0.4:  # low ranks in few dimensions are where statements are tight
        dim = int(rng.integers(1, 4))
    spread = rng.choice([0.0, 1.0, 4.0])
    close = 10.0 ** rng.uniform(-4, 0) if rng.random() < 0.3 else None
    base = rng.standard_normal((dim, dim))
    matrices = []
    for _ in range(kinds):
        rank = int(rng.integers(1, dim + 1)) if rng.random() < 0.6 else 1
        if rng.random() < 0.05:
            matrices.append(np.zeros((1, dim)))
            continue
        matrix = rng.standard_normal((rank, dim)) if close is None else base[:rank] + close * rng.standard_normal(dim)
        left, _, right = np.linalg.svd(matrix, full_matrices=False)
        sigma = 10.0 ** (-rng.uniform(0, 1.5, rank) * (rng.random() < 0.5))
        matrices.append((left * (sigma / sigma.max())) @ right * 10.0 ** -rng.uniform(0, spread))
    if not any(matrix.any() for matrix in matrices):
        matrices[0] = rng.standard_normal((1, dim))
    counts = None
    if rng.random() < 0.3 and clones > kinds:
        counts = np.maximum(1, (rng.dirichlet(np.ones(kinds)) * 10.0 ** rng.uniform(0, np.log10(clones))).astype(int))
    w_star = rng.standard_normal(dim) * 10.0 ** rng.uniform(-1, 1)
    if rng.random() < 0.3:  # in the row space of one task: much to learn there
        w_star = matrices[0].T @ rng.standard_normal(len(matrices[0])) + 1e-3 * w_star
    if not np.any(w_star):
        w_star = np.ones(dim)
    return realizable(matrices, w_star, counts)


def _steps_on(tasks: RegressionTasks, rng: Rng, index: int, first: int, most: int) -> int:
    """k for these tasks: small if early steps matter or a step is slow."""
    if _overwrites(index):
        return max(first, 2 + index // 20 % 4)
    work = tasks.geometry.num_distinct * tasks.geometry.dim**2
    return steps_from(rng, first, min(most, MOST_WORK // max(work, 1)))


def steps_from(rng: Rng, first: int, most: int) -> int:
    """The first allowed k a quarter of the time, else anything up to `most`, evenly on a log scale."""
    if rng.random() < 0.25 or most <= first:
        return first
    return int(np.exp(rng.uniform(np.log(max(first, 1)), np.log(most + 0.999))))


def is_long(index: int) -> bool:
    """Whether draws of this number have thousands of steps, where that is cheap.

    >>> [index for index in range(30) if is_long(index)]
    [3, 11, 19, 27]
    """
    return index % 8 == 3 and not _overwrites(index)


def long_run(rng: Rng) -> int:
    """A number of steps from 1000 to 10^6, evenly on a log scale.

    >>> 1000 <= long_run(np.random.default_rng(0)) <= 10**6
    True
    """
    return int(np.exp(rng.uniform(np.log(MANY_STEPS), np.log(LONGEST))))


def slow(rng: Rng, k: int, kinds: int = 6) -> tuple[list[Array], Array]:
    """At most `kinds` nearly parallel rows in up to 4 dimensions, and w*, which takes about k steps to learn.

    >>> rows, w_star = slow(np.random.default_rng(0), 10**4)
    >>> bool(np.linalg.svd(np.concatenate(rows), compute_uv=False)[1] < 0.1)
    True
    """
    dim, kinds = int(rng.integers(2, SMALL + 1)), int(rng.integers(2, kinds + 1))
    rows = np.sqrt(rng.uniform(0.5, 4) / k) * rng.standard_normal((kinds, 1, dim))
    rows[..., 0] = 1.0
    return list(rows / np.linalg.norm(rows, axis=-1, keepdims=True)), rng.standard_normal(dim)


def has_many_clones(index: int) -> bool:
    """Whether draws of this number without replacement have tens of thousands of tasks.

    >>> [index for index in range(250) if has_many_clones(index)]
    [73, 153, 233]
    """
    return index % 80 == 73


def many_clones(rng: Rng, *, ambient: bool) -> RegressionTasks:
    """Two or three nearly parallel rows, cloned to T = 45000 to 100000 tasks in all.

    With `ambient`, the rows have further entries, all 0, up to d > 7 T^(3/4): there the universal branch of
    `thm:cl_by_sgd_wor` is the smaller one.

    >>> tasks = many_clones(np.random.default_rng(0), ambient=True)
    >>> tasks.num_tasks >= 45000, tasks.dim > 7 * tasks.num_tasks**0.75, tasks.rank_joint <= 3
    (True, True, True)
    """
    total = int(rng.integers(*MANY_CLONES))
    rows, w_star = slow(rng, total, kinds=3)
    if ambient:
        from scipy import sparse  # a tenth of a second, which bounds on their own need not wait for

        dim = int(8 * total**0.75)
        rows = [sparse.csr_matrix((row[0], np.arange(row.size), [0, row.size]), shape=(1, dim)) for row in rows]
        w_star = np.pad(w_star, (0, dim - len(w_star)))
    shares = rng.dirichlet(np.full(len(rows), 2.0))
    return realizable(rows, w_star, np.maximum(1, np.rint(shares * total).astype(int)))


def some_start(rng: Rng, dim: int) -> Array | None:
    """A random w_0, or None for 0.

    >>> some_start(np.random.default_rng(0), 2) is None
    True
    """
    return rng.standard_normal(dim) * 10.0 ** rng.uniform(-2, 1) if rng.random() < 0.3 else None


def projected(ordering: str = "uniform", first: int = 1, most: int = MOST_STEPS) -> Draw:
    """Regression tasks learned by projection, under independent draws: uniform, norm-weighted or any weights.

    Unless `most` allows fewer steps than by default, number 3 and every eighth from there on has up to 10^6 steps and
    tasks that take about as many to learn.

    >>> projected(first=3)(np.random.default_rng(0), 5).k >= 3
    True
    """

    def draw(rng: Rng, index: int) -> Instance:
        if most >= MOST_STEPS and is_long(index):
            k = long_run(rng)
            tasks = realizable(*slow(rng, k))
        else:
            tasks = collection(rng, index)
            k = _steps_on(tasks, rng, index, first, most)
        if index < 12 and k > 1:  # the angle at which two lines are worst for this k, or near it
            tasks = families.two_lines(float(np.arcsin(np.sqrt(min(1.0, rng.uniform(1.5, 2.5) / (k + 1))))))
        chosen: Ordering = WithReplacement()
        if ordering == "norm-weighted":
            chosen = NormWeighted()
        elif ordering == "any":
            chosen = WithReplacement(rng.dirichlet(np.full(tasks.num_tasks, 0.5)) + 1e-12)
        return Instance(tasks, chosen, k, w0=some_start(rng, tasks.dim))

    return draw


def permuted(
    first: int = 1,
    last: int = 0,
    projections: bool = True,
    clones: int = MOST_CLONES,
    distinct: int = 6,
    long: bool = False,
) -> Draw:
    """Tasks under a random permutation, with k from `first` to T - `last`; learned by projection or by SGD.

    With `long`, for rates, number 73 and every eightieth from there on has more than 45000 tasks, nearly all learned.

    >>> case = permuted(first=2)(np.random.default_rng(0), 5)
    >>> 2 <= case.k <= case.problem.num_tasks
    True
    """

    def draw(rng: Rng, index: int) -> Instance:
        if long and has_many_clones(index):
            tasks = many_clones(rng, ambient=projections)
            k = int(rng.integers(9 * tasks.num_tasks // 10, tasks.num_tasks - last + 1))
            scheme = None if projections else _sgd(rng, tasks)
            return Instance(tasks, WithoutReplacement(), k, scheme=scheme, runs=FEW_LONG_RUNS)
        tasks = collection(rng, index, clones=clones, distinct=distinct)
        most = 1500 if index >= 60 else 20_002  # sets of seen tasks; one task among 10^4 - 1 idle ones has so many
        for _ in range(TRIES):
            many = tasks.geometry.num_distinct > MANY_TASKS
            if tasks.num_tasks >= first + last and (many or np.prod(tasks.geometry.counts + 1.0) <= most):
                break
            tasks = _random(rng, clones, distinct)
        else:
            raise InvalidInputError(f"{TRIES} draws gave no {first + last} tasks with at most {most} sets of seen ones")
        k = int(rng.integers(first, tasks.num_tasks - last + 1))
        scheme = None if projections else _sgd(rng, tasks)
        runs = FEW_RUNS if many else None
        return Instance(tasks, WithoutReplacement(), k, scheme=scheme, w0=some_start(rng, tasks.dim), runs=runs)

    return draw


def cycles(rng: Rng, index: int) -> Instance:
    """Instances of tasks learned in turn, in whole cycles."""
    tasks = collection(rng, index, clones=12)
    count = 1 if rng.random() < 0.2 else int(np.exp(rng.uniform(0, np.log(300))))
    if index >= 60 and rng.random() < 0.5:
        steps = 2 * int(rng.integers(1, 8))
        tasks = families.back_and_forth(steps, float(rng.uniform(0.5, 2) / np.sqrt(count * steps)))
    return Instance(tasks, Cyclic(), count * tasks.num_tasks)


def epochs(rng: Rng, index: int) -> Instance:
    """Instances of tasks learned in whole epochs, each in a new random order.

    Number 3 and every eighth from there on has nearly parallel rows, of which an epoch learns little.

    >>> case = epochs(np.random.default_rng(0), 20)
    >>> case.k % case.problem.num_tasks, case.k // case.problem.num_tasks <= MOST_EPOCHS
    (0, True)
    """
    if is_long(index):
        tasks = realizable(*slow(rng, int(np.exp(rng.uniform(0, np.log(MOST_EPOCHS))))))
    else:
        tasks = collection(rng, index, clones=12)
        while tasks.geometry.num_distinct > MANY_TASKS or np.prod(tasks.geometry.counts + 1.0) > MOST_SETS:
            tasks = _random(rng, 12, 6)
    sets = int(np.prod(tasks.geometry.counts + 1))
    count = 1 if rng.random() < 0.2 else int(np.exp(rng.uniform(0, np.log(min(MOST_EPOCHS, 1 + MOST_SETS // sets)))))
    return Instance(tasks, Reshuffled(), count * tasks.num_tasks, w0=some_start(rng, tasks.dim))


def _sgd(rng: Rng, tasks: RegressionTasks) -> SGD:
    x = float(rng.choice([1.0, 1.9, 1.999, 0.1, rng.uniform(0, 2), rng.uniform(1, 2)]))
    return SGD(max(x, 1e-3) / tasks.radius**2, "loss")


def descents(ordering: str = "any", most: int = 200) -> Draw:
    """SGD with a fixed step size on general least squares: any spectrum, weights, start and step below 2/beta.

    >>> case = descents()(np.random.default_rng(0), 60)
    >>> 0 < with_beta(case)[0] < 2
    True
    """

    def draw(rng: Rng, index: int) -> Instance:
        tasks = collection(rng, index)
        k = _steps_on(tasks, rng, index, 1, most)
        chosen: Ordering = WithReplacement()
        if ordering == "sequence":
            chosen = Explicit(rng.integers(tasks.num_tasks, size=k) if rng.random() < 0.7 else np.zeros(k, dtype=int))
        elif ordering == "any" and rng.random() < 0.5:
            chosen = WithReplacement(rng.dirichlet(np.full(tasks.num_tasks, 0.5)) + 1e-12)
        return Instance(tasks, chosen, k, scheme=_sgd(rng, tasks), w0=some_start(rng, tasks.dim))

    return draw


def with_beta(instance: Instance) -> tuple[float, float]:
    """(eta beta, beta) of SGD on the loss."""
    beta = instance.tasks.radius**2
    return float(instance.scheme.step_size) * beta, beta  # type: ignore[union-attr]


def points(*names: str, exponent: bool = False) -> Draw:
    """A collection with random points of R^d (w, z, v), a number gamma, matrices (A, B, C: d x d) as a lemma needs."""

    def draw(rng: Rng, index: int) -> Instance:
        tasks = collection(rng, index, distinct=4)
        dim = tasks.dim
        extras: dict[str, Any] = {}
        for name in names:
            if name in ("A", "B", "C"):
                extras[name] = rng.standard_normal((dim, dim)) * 10.0 ** rng.uniform(-2, 2)
            elif name == "gamma":
                extras[name] = 10.0 ** rng.uniform(-1.5, 1.5) if rng.random() < 0.8 else 1.0
            elif name == "task":
                extras[name] = int(rng.integers(tasks.num_tasks))
            elif name == "eta":
                extras[name] = rng.uniform(0.01, 3) / tasks.radius**2
            elif name == "gradients":
                extras[name] = rng.standard_normal((steps_from(rng, 1, 20) + 1, dim))
            else:
                extras[name] = rng.standard_normal(dim) * 10.0 ** rng.uniform(-1, 1)
        k = steps_from(rng, 1, 60) if exponent else 1
        return Instance(tasks, None, k, extras=extras)

    return draw
