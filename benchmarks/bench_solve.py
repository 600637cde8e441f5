"""Systems solved by row action, against Krylov methods, a NumPy loop, lstsq and kaczmarz-algorithms.

    python -m benchmarks.bench_solve

Times are those to a relative residual |b - A x| / |b| of 1e-6, unless a row says 1e-3; every contestant's residual is
computed afterwards, and a contestant that missed it is marked. scipy's lsqr and lsmr get btol = 1e-6, atol = 0,
conlim = 0. kaczmarz-algorithms stops by the residual of rows scaled to norm 1, which it computes at every step: its
tolerance is 1e-6 |b| divided by the root mean square of the norms of the rows, where both residuals agree to a few
percent. Where it would take minutes, 300 of its steps are timed, and multiplied by the number of steps that it needs:
its cyclic order makes the steps of `fg.solve(ordering="cyclic")`, whose epochs are counted; the last one is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import lsmr, lsqr

import forgetting as fg
from benchmarks.timing import ROUNDS, report, seconds

TOL = 1e-6
STEPS = 300  # of kaczmarz-algorithms, where a whole solve would take minutes


@dataclass
class Rival:
    """Another way to the same x: what is called, in how many rounds, the target, and a factor where a part is timed."""

    name: str
    call: Callable[[], np.ndarray | None]
    target: float | None = None
    rounds: int = ROUNDS
    factor: float = 1.0


def residual(A, b, x: np.ndarray) -> float:
    return float(np.linalg.norm(b - A @ x) / np.linalg.norm(b))


def contest(case: str, A, b, ours: Callable[[], fg.solver.Solution], rivals: list[Rival], tol: float = TOL) -> None:
    """All in turn, round after round; then the ratios, the residuals that were reached and the time of a row step."""
    solution = ours()
    times: dict[str, list[tuple[float, float]]] = {rival.name: [] for rival in rivals}
    reached = {rival.name: residual(A, b, x) if (x := rival.call()) is not None else None for rival in rivals}
    for number in range(max(rival.rounds for rival in rivals)):
        mine = seconds(ours)
        for rival in rivals:
            if number < rival.rounds:
                times[rival.name].append((mine, rival.factor * seconds(rival.call)))
    case += "" if solution.residual <= tol else f" (fg.solve stopped at {solution.residual:.0e})"
    for rival in rivals:
        mine, theirs = zip(*times[rival.name], strict=True)
        report(f"{case}: against {rival.name}", list(mine), list(theirs), rival.target)
    fastest = min(mine for pairs in times.values() for mine, _ in pairs)
    shown = ", ".join(
        f"{name} {value:.1e}{' MISSED' if value > 1.1 * tol else ''}" for name, value in reached.items() if value
    )
    mark = "" if solution.residual <= tol else " MISSED"
    print(f"    residuals: fg.solve {solution.residual:.1e}{mark}, {shown}")
    print(f"    {solution.epochs:.4g} epochs, {1e9 * fastest / solution.rows:.0f} ns for each row step, all included")


def krylov(solver, A, b, tol: float = TOL) -> np.ndarray:
    return solver(A, b, btol=tol, atol=0, conlim=0, **{"maxiter" if solver is lsmr else "iter_lim": 20_000})[0]


def swept_lsmr(A, b, tol: float = TOL) -> np.ndarray:
    """lsmr on the swept system, the making of the operator included."""
    return krylov(lsmr, *fg.solver.swept(A, b), tol)


def numpy_loop(A, b, tol: float = TOL, seed: int = 0) -> np.ndarray:
    """Shuffled sweeps as one writes them in NumPy: a residual after each epoch."""
    rng, x = np.random.default_rng(seed), np.zeros(A.shape[1])
    sparse = sp.issparse(A)
    squares = np.asarray(A.multiply(A).sum(axis=1)).ravel() if sparse else np.einsum("ij,ij->i", A, A)
    rows = [slice(*ends) for ends in zip(A.indptr[:-1], A.indptr[1:], strict=True)] if sparse else []
    size = np.linalg.norm(b)
    while np.linalg.norm(b - A @ x) > tol * size:
        for i in rng.permutation(len(b)).tolist():
            if squares[i] == 0:
                continue
            if sparse:
                columns, values = A.indices[rows[i]], A.data[rows[i]]
                x[columns] += (b[i] - values @ x[columns]) / squares[i] * values
            else:
                x += (b[i] - A[i] @ x) / squares[i] * A[i]
    return x


def peer(A, b, target: float | None = None, *, whole: bool, variant: str = "Cyclic") -> list[Rival]:
    """kaczmarz-algorithms: solves the system, or makes some steps of the number that it needs."""
    if not find_spec("kaczmarz"):
        print("    kaczmarz-algorithms is not installed")
        return []
    import kaczmarz

    kind = getattr(kaczmarz, variant)
    norms = np.sqrt((A.multiply(A) if sp.issparse(A) else A * A).sum(axis=1))
    tol = TOL * np.linalg.norm(b) / np.sqrt(np.mean(norms[norms > 0] ** 2))
    name = f"kaczmarz-algorithms ({variant.lower()})"
    if whole:
        return [Rival(name, lambda: kind.solve(A, b, tol=tol, maxiter=1e12), target, rounds=2)]
    cyclic = fg.solve(A, b, tol=TOL, ordering="cyclic", blocks="rows")
    needed = (cyclic.epochs - 1) * A.shape[0]
    of = f"{needed:.0f} steps" if cyclic.converged else f"more than {needed:.0f} steps"

    def some() -> None:
        kind.solve(A, b, tol=tol, maxiter=STEPS)

    return [Rival(f"{name}, {STEPS} of its {of}", some, target, rounds=3, factor=needed / STEPS)]


def scipys(A, b, target: float | None, tol: float = TOL) -> list[Rival]:
    return [
        Rival("scipy lsmr", partial(krylov, lsmr, A, b, tol), target),
        Rival("scipy lsqr", partial(krylov, lsqr, A, b, tol)),
    ]


def lstsq(A, b, rounds: int) -> Rival:
    dense = A.toarray() if sp.issparse(A) else A
    return Rival("numpy lstsq", lambda: np.linalg.lstsq(dense, b)[0], rounds=rounds)


def dense(m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((m, n))
    return A, A @ rng.standard_normal(n)


def random_sparse(m: int = 20_000, n: int = 2000, density: float = 0.01) -> tuple[sp.csr_array, np.ndarray]:
    rng = np.random.default_rng(0)
    A = sp.random_array((m, n), density=density, rng=rng, format="csr", data_sampler=rng.standard_normal)
    return A, A @ rng.standard_normal(n)


def random_systems() -> None:
    for (m, n), fast, krylov_target, whole, rounds in (
        ((2000, 500), 400.0, 1.0, True, ROUNDS),
        ((500, 2000), 150.0, None, True, ROUNDS),
        ((10_000, 2000), None, None, False, 1),
    ):
        A, b = dense(m, n)
        print(f"\ndense {m} x {n}, {A.nbytes / 2**20:.0f} MiB")
        rivals = [*scipys(A, b, krylov_target), Rival("a NumPy loop", partial(numpy_loop, A, b), rounds=3)]
        rivals += [lstsq(A, b, rounds), *peer(A, b, fast, whole=whole)]
        if whole:
            rivals += peer(A, b, fast, whole=True, variant="SVRandom")
        contest(f"dense {m}x{n}", A, b, lambda A=A, b=b: fg.solve(A, b, tol=TOL), rivals)
    A, b = random_sparse()
    print(f"\nsparse 20000 x 2000, {A.nnz} entries")
    rivals = [*scipys(A, b, 1.0), Rival("a NumPy loop", partial(numpy_loop, A, b), rounds=3)]
    rivals += [lstsq(A, b, 1), *peer(A, b, 2000.0, whole=False)]
    contest("sparse 20000x2000", A, b, lambda: fg.solve(A, b, tol=TOL), rivals)


def tomography() -> None:
    scan = fg.datasets.tomography()
    A, b = scan.A, scan.b
    print(f"\n{scan}")
    for tol, target in ((1e-3, 1.0), (1e-6, None)):
        rivals = [*scipys(A, b, target, tol), Rival("lsmr on swept rows", partial(swept_lsmr, A, b, tol))]
        if tol == TOL:
            seen = np.flatnonzero(np.diff(A.indptr))  # kaczmarz-algorithms divides by the norms of the rows
            rivals += [Rival("a NumPy loop", partial(numpy_loop, A, b), rounds=1), lstsq(A, b, 1)]
            rivals += peer(A[seen], b[seen], whole=False)
        contest(f"tomography, to {tol:g}", A, b, lambda tol=tol: fg.solve(A, b, tol=tol), rivals, tol)


def one_read(m: int = 10_000, n: int = 2000) -> None:
    """An epoch against one read of a matrix that does not fit in the cache, both by one thread."""
    from threadpoolctl import threadpool_limits

    A, b = dense(m, n)
    x = np.ones(n)
    print(f"\nan epoch against one read of {A.nbytes / 2**20:.0f} MiB")
    ours, products, sums = [], [], []
    with threadpool_limits(1):
        for _ in range(ROUNDS):
            history = fg.solve(A, b, tol=0, maxiter=8, threads=1).history
            ours.append(float(np.median(np.diff(history.seconds)[~history.checked[1:]])))
            products.append(float(np.median([seconds(lambda: A @ x) for _ in range(3)])))
            sums.append(float(np.median([seconds(A.sum) for _ in range(3)])))
    report(f"dense {m}x{n}: an epoch against A @ x", ours, products, 2.0, at_most=True)
    report(f"dense {m}x{n}: an epoch against A.sum()", ours, sums, 2.0, at_most=True)


def many_sides(count: int = 64) -> None:
    print(f"\n{count} right-hand sides at once, against {count} solves")
    rng = np.random.default_rng(1)
    for name, A, target in (
        ("dense 2000x500", dense(2000, 500)[0], 5.0),
        ("sparse 20000x2000", random_sparse()[0], 5.0),
    ):
        b = A @ rng.standard_normal((A.shape[1], count))
        together = fg.solve(A, b, tol=TOL)
        worst = max(residual(A, b[:, k], together.x[:, k]) for k in range(count))
        sides = [np.ascontiguousarray(b[:, k]) for k in range(count)]

        def single(A=A, sides=sides) -> None:
            for side in sides:
                fg.solve(A, side, tol=TOL)

        single()
        pairs = [(seconds(lambda A=A, b=b: fg.solve(A, b, tol=TOL)), seconds(single)) for _ in range(3)]
        report(f"{name}: {count} right-hand sides at once", *map(list, zip(*pairs, strict=True)), target)
        print(f"    largest residual {worst:.1e}")


def least_squares() -> None:
    """No x solves the system: time until x is the least-squares solution to 1e-6, as far as each can tell."""
    print("\nleast squares: noise in b")
    for name, (A, b) in (("dense 2000x500", dense(2000, 500)), ("sparse 20000x2000", random_sparse())):
        noisy = b + 0.3 * np.linalg.norm(b) / np.sqrt(len(b)) * np.random.default_rng(2).standard_normal(len(b))
        whole = A.toarray() if sp.issparse(A) else A
        best = np.linalg.lstsq(whole, noisy)[0]

        def ours(A=A, b=noisy):
            return fg.solve(A, b, tol=TOL)

        def theirs(A=A, b=noisy):
            return lsmr(A, b, atol=TOL, btol=0, conlim=0)[0]

        solution, x = ours(), theirs()
        pairs = [(seconds(ours), seconds(theirs)) for _ in range(3)]
        report(f"least squares, {name}: against scipy lsmr", *map(list, zip(*pairs, strict=True)))
        errors = [np.linalg.norm(found - best) / np.linalg.norm(best) for found in (solution.x, x)]
        print(f"    relative errors of x: fg.solve {errors[0]:.1e}, lsmr {errors[1]:.1e}; {solution.status}")


def ill_conditioned() -> None:
    """Condition number 1e4: Krylov methods win over row steps; `fg.solve` decomposes systems as small as these."""
    rng = np.random.default_rng(4)
    m, n = 400, 300
    left, right = (np.linalg.qr(rng.standard_normal((size, n)))[0] for size in (m, n))
    given = left * np.logspace(0, -4, n) @ right.T
    t = np.linspace(0, 1, 200)
    smooth = np.exp(-(((t[:, None] - t) / 0.0071) ** 2) / 2)  # a width of 1.41 points
    for name, A in (("400x300, singular values 1 to 1e-4", given), ("a smooth kernel, 200x200", smooth)):
        b = A @ rng.standard_normal(A.shape[1])
        print(f"\n{name}: condition number {np.linalg.cond(A):.2g}")
        rivals = [*scipys(A, b, None), Rival("lsmr on swept rows", partial(swept_lsmr, A, b))]
        rivals = [Rival(rival.name, rival.call, rival.target, rounds=1) for rival in rivals] + [lstsq(A, b, 1)]
        contest(name, A, b, lambda A=A, b=b: fg.solve(A, b, tol=TOL), rivals)
        alone = partial(fg.solve, A, b, tol=TOL, maxiter=2000, method="kaczmarz")
        contest(f"{name}, row steps alone", A, b, alone, rivals)


def complex_systems() -> None:
    """Complex rows as pairs of real ones, against lsmr on the complex matrix itself."""
    rng = np.random.default_rng(5)
    for m, n in ((2000, 500), (500, 2000)):
        A = rng.standard_normal((m, n)) + 1j * rng.standard_normal((m, n))
        b = A @ (rng.standard_normal(n) + 1j * rng.standard_normal(n))
        print(f"\ncomplex {m} x {n}, {A.nbytes / 2**20:.0f} MiB")
        contest(f"complex {m}x{n}", A, b, lambda A=A, b=b: fg.solve(A, b, tol=TOL), scipys(A, b, None)[:1])


def main() -> None:
    random_systems()
    complex_systems()
    tomography()
    one_read()
    many_sides()
    least_squares()
    ill_conditioned()


if __name__ == "__main__":
    main()
