"""forgetting solve."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

import forgetting as fg
from forgetting.cli.options import VIOLATED, Force, Json
from forgetting.cli.output import Output, computing, result
from forgetting.core.registry import value_in
from forgetting.errors import InvalidInputError
from forgetting.files.atomic import kept
from forgetting.files.matrices import COMPLEX, read_matrix
from forgetting.files.tables import parse_number
from forgetting.orderings import registry as orderings

if TYPE_CHECKING:
    from forgetting.solver.solution import Solution


ROWS = 12  # of the history, in the terminal
FACTS = (
    "converged", "status", "residual", "consistent", "normal", "error", "method", "ordering", "blocks",
    "rows", "epochs", "seconds", "tol", "seed",
)  # fmt: skip
#: the registry of methods would import the compiler
METHODS = (
    "kaczmarz", "multipliers", "direct", "extended", "averaged", "cgls", "cgmn", "active-set", "projected", "sirt",
    "sart",
)  # fmt: skip
MEANING = (
    "kaczmarz solves block after block; where no x solves all, multipliers (by rows), extended (by rows and columns), "
    "averaged (the mean of random steps) and cgls (conjugate gradients) find least squares, active-set and projected "
    "over bounds; direct decomposes A; cgmn is conjugate gradients on sweeps; sirt steps with all rows "
    "at once, sart with those of a block."
)


def solve_command(
    matrix: Annotated[str, typer.Argument(metavar="A", help="The matrix: .npz, .npy, .mtx or .csv.")],
    side: Annotated[str, typer.Argument(metavar="B", help="The right-hand sides: .npy, .npz or .csv.")],
    tol: Annotated[float, typer.Option(help="The largest |b - A x| / |b| of a solution.")] = 1e-6,
    maxiter: Annotated[int | None, typer.Option(help="The most epochs. [default: 1000]", min=0)] = None,
    x0: Annotated[str | None, typer.Option(help="The start, a file like B. [default: 0]", metavar="FILE")] = None,
    damp: Annotated[float, typer.Option(help="Minimise |A x - b|^2 + damp^2 |x - x0|^2.")] = 0.0,
    blocks: Annotated[str, typer.Option(help="auto, rows, or the number of rows of a block.")] = "auto",
    ordering: Annotated[
        str | None,
        typer.Option("--ordering", "-o", help=f"{', '.join(orderings)}. [default: one random order, repeated]"),
    ] = None,
    relaxation: Annotated[
        str, typer.Option(help="The factor of every step, 0 to 2; with commas, of each epoch; auto: by the noise.")
    ] = "1.0",
    method: Annotated[str, typer.Option(help=f"auto, {', '.join(METHODS)}: {MEANING}")] = "auto",
    average: Annotated[
        str, typer.Option(help="So many blocks (or all) step from one x, which moves by their mean.")
    ] = "1",
    bounds: Annotated[
        str | None, typer.Option(help="x stays between; -inf and inf are none.", metavar="LOW,HIGH")
    ] = None,
    nonnegative: Annotated[bool, typer.Option("--nonnegative", help="The same as --bounds 0,inf.")] = False,
    noise: Annotated[
        str | None,
        typer.Option(help="Stop at noise of this standard deviation; 5% is of the norm of B.", metavar="LEVEL"),
    ] = None,
    stop: Annotated[
        str | None, typer.Option(help="The rule: discrepancy, ncp (needs no noise) or monotone. [default: discrepancy]")
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="The longest time, in seconds.")] = None,
    memory: Annotated[float | None, typer.Option(help="Bytes for factorisations, such as 1e9.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Keep the state of the solve here, and go on from it.", metavar="FILE")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The seed of all random numbers.")] = 0,
    as_json: Json = False,
    out: Annotated[
        Path | None, typer.Option(help="Write x (.npy) or the history: .json, .csv, .html, .tex, .png, .pdf.")
    ] = None,
    force: Force = False,
) -> None:
    """Solve A x = b by row action: Kaczmarz and its relatives.

    The exit code is 3 if x does not reach the tolerance, as for a system without a solution; x is then what the status
    says, and is written all the same.

    \b
    Examples:
      forgetting solve A.npz b.npy --out x.npy
      forgetting solve A.csv b.csv --tol 1e-8 --nonnegative
      forgetting solve A.npz b.npy --ordering norm-weighted --blocks rows
      forgetting solve A.mtx b.npy --method multipliers --json
      forgetting solve rays.npz b.npy --noise 5% --relaxation auto --nonnegative
    """
    output = Output(as_json, out, force)
    output.check([matrix, side, *([] if x0 is None else [x0])], more=(".npy",))
    b = read_matrix(side, "b", COMPLEX)
    start = None if x0 is None else read_matrix(x0, "x0", COMPLEX)
    if checkpoint is not None:
        kept.append(f"the same command goes on from {checkpoint}")
    with computing():
        solution = fg.solve(
            matrix, b, tol, maxiter, start, damp, value_in(blocks), ordering, value_in(relaxation), seed,
            memory=memory, checkpoint=checkpoint, method=method, average=value_in(average),
            bounds=bounds_from(bounds, nonnegative), seconds=seconds, noise=noise_from(noise), stop=stop,
        )  # fmt: skip
    report = result(
        f"{Path(matrix).name}, {Path(side).name}: {len(b)} x {len(solution.x)}, {solution.method}",
        "solve",
        [replace(solution.to_table(), key="history", title="Epoch by epoch", notes=()), solution.figure()],
        summary(solution),
        A=Path(matrix).name,
        b=Path(side).name,
        **({"x0": Path(x0).name} if x0 is not None else {}),
        **facts(solution),
        **({"x": listed(solution.x)} if as_json or output.ending == ".json" else {}),
    )

    def array() -> bytes:
        content = BytesIO()
        np.save(content, solution.x, allow_pickle=False)
        return content.getvalue()

    output.emit(report, rows=ROWS, contents={".npy": array})
    if not solution.converged:
        raise typer.Exit(VIOLATED)


def summary(solution: Solution) -> list[str]:
    """The lines for the terminal: status, work done, method, and guarantee."""
    return [
        solution.status,
        f"relative residual {solution.residual:.3g}, {solution.epochs:.4g} epochs, {solution.rows} row steps, "
        f"{solution.seconds:.3g} seconds",
        f"method {solution.method}; {solution.ordering}; {solution.blocks}",
        f"guarantee: {solution.guarantee}",
    ]


def facts(solution: Solution) -> dict[str, Any]:
    """The solution without its arrays, as entries of JSON."""
    return {name: getattr(solution, name) for name in FACTS} | {"guarantee": vars(solution.guarantee.promise)}


def listed(x: Any) -> Any:
    """x as lists for JSON; complex numbers are pairs.

    >>> listed(np.array([1.0, 2.0])), listed(np.array([1 + 2j]))
    ([1.0, 2.0], [[1.0, 2.0]])
    """
    return (np.stack([x.real, x.imag], axis=-1) if np.iscomplexobj(x) else x).tolist()


def noise_from(word: str | None) -> Any:
    """The noise that a word asks for: a standard deviation, or per cent of the norm of b.

    >>> noise_from("0.1"), noise_from("5%")
    (0.1, ('relative', 0.05))
    """
    if word is None:
        return None
    number = parse_number(word.removesuffix("%"))
    if number is None:
        raise InvalidInputError(f"--noise: expected a number such as 0.1 or 5%, got {word!r:.40}")
    return ("relative", number / 100) if word.endswith("%") else number


def bounds_from(words: str | None, nonnegative: bool = False) -> tuple[float, float] | None:
    """The bounds on x: two numbers with a comma.

    >>> bounds_from("0,inf"), bounds_from(None, nonnegative=True), bounds_from(None)
    ((0.0, inf), (0.0, inf), None)
    """
    if words is None:
        return (0.0, float("inf")) if nonnegative else None
    ends = [parse_number(word.strip()) for word in words.split(",")]
    if len(ends) != 2 or None in ends:
        raise InvalidInputError(f"--bounds: expected LOW,HIGH, as in 0,inf, got {words!r:.60}")
    if nonnegative:
        raise InvalidInputError("--nonnegative is --bounds 0,inf: give one of the two")
    low, high = (float(end) for end in ends if end is not None)
    return low, high
