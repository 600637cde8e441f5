"""A proof of an upper bound: the dual solution as squares with whole coefficients, checked in exact arithmetic."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from os import PathLike
from typing import Any, Self

import numpy as np

from forgetting.core.arrays import Array, as_path
from forgetting.errors import InvalidInputError, ProblemFileError
from forgetting.files.arrays import open_regular
from forgetting.files.json_and_toml import decode_json, write_json
from forgetting.files.records import Codec, add_codec, typed
from forgetting.worstcase.inner_products import Word
from forgetting.worstcase.program import MomentMatrix, Program
from forgetting.worstcase.solving import Solved

__all__ = ["DualCertificate"]

FORMAT = "forgetting worst case 1"
BITS = 36  # coefficients are whole multiples of 2^-BITS
DIGITS = 12  # of the upper bound that a certificate claims, after the point
SMALL = 1e-14  # eigenvalues of a multiplier below this share of the largest one prove nothing


@dataclass(frozen=True)
class DualCertificate:
    """A proof that no tasks have a larger expected quantity: a sum of squares.

    `upper` - E[quantity] is written as a sum of squares of combinations of errors, whose coefficients are whole
    numbers times 2^-36, plus a small rest that counts in full. Squares are nonnegative, whatever the tasks are, so
    that checking the proof is multiplying out.

    Attributes:
        data: what the JSON file contains.

    >>> import forgetting as fg
    >>> proof = fg.worst_case(2, 1).certificate
    >>> round(proof.upper, 8), proof.verify() <= proof.upper        # 4/27
    (0.14814815, True)
    """

    data: Mapping[str, Any] = field(repr=False)

    @property
    def upper(self) -> float:
        """The upper bound that the certificate claims, rounded up to 12 decimals."""
        return float(Fraction(self.data["upper"]))

    @property
    def num_squares(self) -> int:
        """The number of squares."""
        return sum(len(rows) for _, rows in self.data["squares"])

    def verify(self) -> float:
        """Multiply the squares out in exact arithmetic, and return the upper bound that they prove.

        The work is done by `forgetting/worstcase/check_certificate.py`, a script that uses Python's whole numbers and
        fractions, and nothing else of this library. An error says so if the squares prove less than the claim.
        """
        from forgetting.worstcase.check_certificate import check  # not before: it is run as a program, too

        try:
            return float(check(self.data))
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise InvalidInputError(f"the certificate does not prove its upper bound: {error}") from error

    def to_json(self) -> str:
        """The text of the file."""
        return json.dumps(dict(self.data), separators=(",", ":"))

    def save(self, path: str | PathLike[str]) -> None:
        """Write a JSON file that `check_certificate.py` reads; a file that is no certificate is not replaced."""
        write_json(as_path(path), self.to_json(), FORMAT)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a file that `save` wrote, or that somebody else wrote; `verify` says whether the file is a proof."""
        with open_regular(path) as handle:
            text = handle.read()
        try:
            return cls.from_json(text)
        except ProblemFileError as error:
            raise ProblemFileError(f"{path}: {error}") from error

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what `to_json` gave."""
        data = decode_json(text)
        if data.get("format") != FORMAT:
            raise ProblemFileError(f"not a certificate of a worst case, which says format: {FORMAT!r}")
        if not isinstance(data.get("upper"), str) or not re.fullmatch(r"[0-9]{1,150}(\.[0-9]{0,40})?", data["upper"]):
            raise ProblemFileError(f"the upper bound {data.get('upper')!r:.60} is not a decimal number")
        typed(tuple[tuple[Any, tuple[Any, ...]], ...], data.get("squares"), "squares")
        return cls(data)

    def __str__(self) -> str:
        return f"a proof by {self.num_squares} squares that the worst case is at most {self.upper:.{DIGITS}g}"


def certified(program: Program, solved: Solved) -> DualCertificate:
    """The certificate that an approximate dual solution gives; its upper bound is the one that the squares prove."""
    from forgetting.worstcase.check_certificate import check, digest

    tree = program.tree
    squares: dict[tuple[Word, ...], list[list[int]]] = {}  # matrices with the same words are checked together
    for matrix, dual in zip(program.matrices, solved.duals, strict=True):
        words, rows = _squares(matrix, dual, program)
        squares.setdefault(words, []).extend(rows)
    data: dict[str, Any] = {
        "format": FORMAT, "kind": program.algebra.kind, "quantity": tree.quantity, "k": tree.k,
        "tasks": tree.walk.num_tasks, "law": tree.walk.in_words(), "bits": BITS,
        "squares": list(squares.items()),
        "normals": [[*form.between, round(max(factor, 0.0) * 2.0**BITS)] for form, factor in
                    zip(program.normals, solved.multipliers, strict=True)],
        "upper": "9" * 99,  # until it is known
    }  # fmt: skip
    proved = check(data | {"digest": digest(data)})
    data["upper"] = _rounded_up(proved)
    return DualCertificate(data | {"digest": digest(data)})


def _rounded_up(value: Fraction) -> str:
    multiple = -((-value.numerator * 10**DIGITS) // value.denominator)
    return f"{multiple // 10**DIGITS}.{multiple % 10**DIGITS:0{DIGITS}d}"


def _squares(matrix: MomentMatrix, dual: Array, program: Program) -> tuple[tuple[Word, ...], list[list[int]]]:
    """The words of a matrix, in order, and for each square the whole coefficients of these words."""
    values, vectors = np.linalg.eigh(dual)
    kept = values > SMALL * max(values[-1], 0.0)
    roots = (vectors[:, kept] * np.sqrt(values[kept])).T
    entries: list[tuple[int, Word, float]] = []
    for row, member in enumerate(matrix.members):
        for factor, point in matrix.block.rows[member].terms():
            for share, word in point.terms(program.algebra):
                entries.append((row, word, factor * float(share)))
    columns = {word: at for at, word in enumerate(sorted({word for _, word, _ in entries}))}
    basis = np.zeros((matrix.size, len(columns)))
    for row, word, value in entries:
        basis[row, columns[word]] += value
    rounded = np.rint(roots @ basis * 2.0**BITS)
    return tuple(columns), [[int(value) for value in row] for row in rounded]


add_codec(Codec("dual certificate", DualCertificate, lambda made: made.to_json(), DualCertificate.from_json))
