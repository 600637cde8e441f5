"""Evaluated bounds as a table for a paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from forgetting.core.arrays import as_word
from forgetting.errors import InvalidInputError
from forgetting.figures.text_formats import escape_latex, latex_table

if TYPE_CHECKING:
    from forgetting.theory.bound import Bound
    from forgetting.theory.evaluation import Row

__all__ = ["rows_to_latex"]

_SIGN = {"upper": r"\le ", "lower": r"\ge ", "rate": "O", "floor": r"\ge "}
_NOTES = {
    "lower": r"Values with $\ge$ are worst cases: some tasks reach them, and they are no bounds on these tasks.",
    "floor": r"The least-squares floor, with $\ge$, holds on these tasks: no $w$ has a smaller loss.",
    "rate": r"The constants of $O(\cdot)$ are not known; its values are without them.",
}


def rows_to_latex(rows: Sequence[Row], quantity: str | None = None, chosen: Literal["all", "stated"] = "all") -> str:
    """The rows, on one quantity or on all: the name of each bound, its formula as mathematics, its value at each k."""
    if as_word(chosen, ("all", "stated"), "rows") == "stated":
        rows = [row for row in rows if row.bound.origin in ("statement", "trivial")]
    if not rows:
        what = "no bound applies" if quantity is None else f"no bound on {quantity!r} applies"
        raise InvalidInputError(f"{what}, so that there is no table to write")
    steps = sorted({row.k for row in rows})
    values = {(row.bound.key, row.k): row.value for row in rows}
    several = quantity is None
    cells = [
        [
            escape_latex(bound.name),
            *([escape_latex(bound.quantity)] if several else []),
            _formula(bound),
            *(values.get((bound.key, k)) for k in steps),
        ]
        for bound in {row.bound.key: row.bound for row in rows}.values()
    ]
    heads = ["Value"] if len(steps) == 1 else [f"$k={k}$" for k in steps]
    words = "Bounds" if several else f"Bounds on the expected {escape_latex(str(quantity))}"
    after = f" after $k={steps[0]}$ steps" if len(steps) == 1 else " after $k$ steps"
    caption = rf"{words}{after}, with $S=\Vert w_0-w_\star\Vert^2R^2$."
    notes = [note for kind, note in _NOTES.items() if any(row.bound.kind == kind for row in rows)]
    columns = ["Bound", *(["On"] if several else []), "Formula", *heads]
    return latex_table(caption, columns, cells, notes, label=f"bounds-{quantity or 'all'}")


def _formula(bound: Bound) -> str:
    """The right-hand side as mathematics; in words where the bound has no LaTeX."""
    if not bound.latex:
        return f"${_SIGN[bound.kind]}$ {escape_latex(bound.formula)}"
    return f"${_SIGN[bound.kind]}" + (rf"\left({bound.latex}\right)$" if bound.kind == "rate" else f"{bound.latex}$")
