"""The path of a ridge head: what each of many penalties gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.figures.items import Curves, Series
from forgetting.geometry.ridge_state import least_score
from forgetting.results import Shown


@dataclass(frozen=True, eq=False, repr=False)
class RidgePath(Shown):
    """What each of several penalties gives, and the penalty that is chosen; see `IncrementalRidge.path`.

    Attributes:
        alphas: the penalties, from the smallest.
        freedom: the degrees of freedom of the fit with each of them.
        errors: the mean squared error on the learned rows, outputs together.
        scores: what the choice minimises, for each penalty.
        criterion: what `scores` are, in words.
        coef: (penalties, outputs, d).
        intercept: (penalties, outputs).
        task_scores: (tasks, penalties), the mean squared error on each task of the model that did not learn that task;
            empty unless tasks were left out.
    """

    alphas: Array
    freedom: Array
    errors: Array
    scores: Array
    criterion: str
    coef: Array
    intercept: Array
    task_scores: Array

    @property
    def alpha(self) -> float:
        """The penalty of the least score; of equal scores the largest."""
        return least_score(self.alphas, self.scores)

    @property
    def headline(self) -> str:
        """The chosen penalty in one line."""
        return f"{len(self.alphas)} penalties: alpha = {self.alpha:.3g} has the least {self.criterion}"

    def _num_rows(self) -> int:
        return len(self.alphas)

    def _columns(self, rows: IntArray, *, full: bool) -> Mapping[str, Any]:
        values = {"alpha": self.alphas, "freedom": self.freedom, "error": self.errors, "score": self.scores}
        return {name: value[rows] if full else value[rows].tolist() for name, value in values.items()}

    def figure(self) -> Curves:
        """The score and the error on learned rows over the penalty."""
        pairs = (("score", self.criterion, self.scores), ("error", "mean squared error on learned rows", self.errors))
        series = tuple(
            Series(name, tuple(self.alphas.tolist()), tuple(v if np.isfinite(v) else None for v in values.tolist()),
                   label=label, group=place)
            for place, (name, label, values) in enumerate(pairs)
        )  # fmt: skip
        caption = f"The least {self.criterion} is at alpha = {self.alpha:.3g}."
        return Curves("path", "The path of penalties", caption, "alpha", "squared error", series)
