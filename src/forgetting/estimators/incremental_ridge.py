"""Ridge regression and classification that learn rows in any order and any batches, and forget none of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from forgetting.compute.devices import as_device
from forgetting.core.arrays import Array, any_array, real_array
from forgetting.errors import ForgettingError, InvalidInputError
from forgetting.estimators.incremental_head import IncrementalHead, on_device
from forgetting.files.records import typed
from forgetting.geometry.ridge_state import RidgeState, Rows, is_elsewhere


class IncrementalRidge(RegressorMixin, IncrementalHead):  # type: ignore[misc]
    """Ridge regression that learns rows in any order and in any batches, and forgets none of them.

    After every call the coefficients are those of ridge regression on all rows so far, as of `Ridge` in scikit-learn:
    they minimise sum_i s_i (y_i - x_i.w - b)^2 + alpha |w|^2. What is kept is a triangle of (d + 1)^2 numbers and
    (d + 1) c for c outputs, whatever the number of rows, made by Householder's reflections: never a Gram matrix or an
    inverse, which lose twice the digits. The penalty is no part of it, so that `alpha` may be changed, or chosen, at
    any time.

    Args:
        alpha: the penalty, at least 0; "gcv" chooses it by generalised cross-validation, "tasks" by leaving out each of
            the kept tasks in turn.
        fit_intercept: whether there is an intercept, which is not penalised.
        features: a feature map that comes first: `RandomFeatures`, a function of X such as a torch network, a fitted
            transformer, or a number of random features.
        keep_tasks: keep a triangle for each task as well (`task_id=`), to remove tasks exactly and to choose `alpha` by
            leaving tasks out.
        device: where rows are factorised: None for NumPy and LAPACK, or as for `fg.expect` ("cuda", "cupy").

    Attributes:
        coef_: (d,), or (outputs, d), for what `alpha` is now.
        intercept_: a number, or (outputs,).
        alpha_: the penalty in use.
        coef_error_: a bound on the rounding error of the coefficients, as a length.
        n_rows_, weight_, task_ids_: the rows so far, the sum of their weights, and the kept tasks.
        n_features_in_, feature_names_in_: as in scikit-learn.

    >>> import forgetting as fg
    >>> model = fg.IncrementalRidge(alpha=0.0)
    >>> model.partial_fit([[0.0], [1.0]], [1.0, 3.0]).partial_fit([[2.0]], [5.0]).coef_.round(6)
    array([2.])
    >>> model.set_params(alpha=2.0).coef_.round(6)    # no new fit
    array([1.])
    """

    _flat: bool
    _numeric = True

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, task_id: Any = None) -> Self:
        """Learn more rows.

        A call that raises changes nothing.

        Args:
            X: (n, d), dense or sparse; float32 is kept as it is and factorised in float64.
            y: (n,), or (n, outputs).
            sample_weight: n weights of at least 0: a row of weight 2 counts like two equal rows, one of 0 is left out.
            task_id: with `keep_tasks=True`, the task of all rows, or of each; calls are numbered if left out.
        """
        return self._learn(X, y, sample_weight, task_id)

    def predict(self, X: Any, alphas: Any = None) -> Any:
        """X w + b, (n,) or (n, outputs); with several penalties `alphas`, a leading axis of them."""
        return self._shaped(self._scores(X, alphas))

    def _labels(self, y: Any) -> Any:
        device = as_device(self.device)
        return on_device(y, device, "y") if is_elsewhere(y) and not device.host else any_array(y, "y")

    def _targets(self, y: Any, fresh: bool, classes: Any) -> tuple[Rows, int, dict[str, Any]]:
        labels = y if is_elsewhere(y) else real_array(y, "y", squares=True)
        if labels.ndim not in (1, 2):
            raise InvalidInputError(
                f"y: expected one value for each row, or a column for each output, got {labels.shape}"
            )
        flat = labels.ndim == 1
        columns = labels.reshape(len(labels), -1)
        if not fresh and (flat, columns.shape[1]) != (self._flat, len(self._state.left)):
            raise InvalidInputError(
                f"y has shape {labels.shape}, but the rows so far had "
                f"{'one output' if self._flat else f'{len(self._state.left)} outputs in columns'}; `fit` starts anew"
            )
        return lambda cut: columns[cut], columns.shape[1], {"_flat": flat}

    def _as_learned(self, state: RidgeState) -> RidgeState:
        return state

    def _aligned(self, other: Any) -> tuple[Callable[[Any, RidgeState], RidgeState], dict[str, Any]]:
        if (other._flat, len(other._state.left)) != (self._flat, len(self._state.left)):
            raise InvalidInputError(
                f"the other has {len(other._state.left)} outputs, and this one {len(self._state.left)}"
            )
        return lambda model, state: state, {}

    def _score_rows(self, coef: Array, intercept: Array, X: Any, y: Any, weights: Array | None) -> tuple[Array, str]:
        truth = real_array(y, "y").reshape(X.shape[0], -1)
        if truth.shape[1] != coef.shape[1]:
            raise InvalidInputError(f"y: {truth.shape[1]} outputs, but {coef.shape[1]} were learned")
        errors = [np.sum((X @ w.T + b - truth) ** 2, axis=1) for w, b in zip(coef, intercept, strict=True)]
        return np.average(errors, axis=1, weights=weights), "mean squared error on held-out rows"

    def _shaped(self, values: Array) -> Any:
        picked = values[..., 0] if self._flat else values
        return float(picked) if picked.ndim == 0 else picked

    def _shaped_coef(self, coef: Array) -> Any:
        return coef[0] if self._flat else coef

    def _own(self) -> dict[str, Any]:
        return {"flat": self._flat}

    def _take(self, own: dict[str, Any]) -> None:
        self._flat = typed(bool, own["flat"], "flat")
        if self._flat and len(self._state.left) != 1:
            raise ForgettingError("one output, but several columns of targets")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class IncrementalRidgeClassifier(ClassifierMixin, IncrementalHead):  # type: ignore[misc]
    """Ridge classification that learns rows and classes in any order and in any batches, and forgets none of them.

    Each class has an output, 1 for its rows and -1 for all others, fitted as by `IncrementalRidge`; the class of the
    largest x.w + b is predicted, as by `sklearn.linear_model.RidgeClassifier` on all rows. A class may appear at any
    time: the result is the same as if it had been known from the start.

    Args:
        alpha, fit_intercept, features, keep_tasks, device: as for `IncrementalRidge`.

    Attributes:
        classes_: the classes so far, sorted.
        coef_: (1, d) for two classes, else (classes, d).
        intercept_: (1,) or (classes,).
        alpha_, coef_error_, n_rows_, weight_, task_ids_, n_features_in_: as for `IncrementalRidge`.

    >>> import forgetting as fg
    >>> model = fg.IncrementalRidgeClassifier(alpha=0.1)
    >>> model = model.partial_fit([[1.0, 0.0], [0.0, 1.0]], ["ant", "bee"])
    >>> model.partial_fit([[-1.0, -1.0]], ["cat"]).predict([[0.9, 0.1], [-2.0, -1.0]])
    array(['ant', 'cat'], dtype='<U3')
    """

    classes_: Any
    _numeric = False

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, task_id: Any = None) -> Self:
        """Learn more rows, of known or of new classes; `classes` names classes that may come later.

        Other arguments as for `IncrementalRidge.partial_fit`. A call that raises changes nothing.
        """
        return self._learn(X, y, sample_weight, task_id, classes)

    def decision_function(self, X: Any, alphas: Any = None) -> Array:
        """x.w + b, (n,) for two classes (positive for the second), else (n, classes); with `alphas`, a leading axis."""
        scores = self._scores(X, alphas)
        return np.asarray(scores[..., 1] if scores.shape[-1] == 2 else scores)

    def predict(self, X: Any, alphas: Any = None) -> Any:
        """The predicted classes, (n,); with several penalties `alphas`, (penalties, n)."""
        scores = self._scores(X, alphas)
        return self.classes_[np.argmax(scores, axis=-1)]

    def _targets(self, y: Any, fresh: bool, classes: Any) -> tuple[Rows, int, dict[str, Any]]:
        check_classification_targets(y)
        labels = column_or_1d(y, warn=True)
        before = None if fresh else self.classes_
        given = None if classes is None else any_array(classes, "classes")
        known = _union([part for part in (before, given, labels) if part is not None])
        codes, count = np.searchsorted(known, labels), len(known)

        def hot(cut: slice) -> Array:
            own = codes[cut]
            made = np.zeros((len(own), count))
            made[np.arange(len(own)), own] = 1.0
            return made

        places = None if before is None else np.searchsorted(known, before).tolist()
        return hot, count, {"classes_": known, "_places": places}

    def _as_learned(self, state: RidgeState) -> RidgeState:
        return state.as_signs

    def _aligned(self, other: Any) -> tuple[Callable[[Any, RidgeState], RidgeState], dict[str, Any]]:
        known = _union([self.classes_, other.classes_])

        def align(model: Any, state: RidgeState) -> RidgeState:
            return state.with_outputs(len(known), np.searchsorted(known, model.classes_).tolist())

        return align, {"classes_": known}

    def _score_rows(self, coef: Array, intercept: Array, X: Any, y: Any, weights: Array | None) -> tuple[Array, str]:
        labels = column_or_1d(y)
        pairs = zip(coef, intercept, strict=True)
        wrong = [self.classes_[np.argmax(X @ w.T + b, axis=1)] != labels for w, b in pairs]
        return np.average(wrong, axis=1, weights=weights), "share of held-out rows in a wrong class"

    def _shaped(self, values: Array) -> Any:
        return values[..., 1:] if values.shape[-1] == 2 else values

    def _shaped_coef(self, coef: Array) -> Any:
        return coef[1:] if len(coef) == 2 else coef

    def _source_labels(self, y: Array) -> Any:
        if not np.array_equal(y, np.rint(y)):
            raise InvalidInputError("y: classes on disk are whole numbers, and these are not")
        return y.astype(np.int64)

    def _own(self) -> dict[str, Any]:
        classes = self.classes_
        return {"classes": classes.astype(str) if classes.dtype.kind == "O" else classes}

    def _take(self, own: dict[str, Any]) -> None:
        classes = own["classes"]
        if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) != len(self._state.left):
            raise ForgettingError("the classes are not as many as the outputs")
        if not np.array_equal(np.unique(classes), classes):
            raise ForgettingError("the classes are not sorted, or come twice")
        self.classes_ = classes


def _union(parts: list[Any]) -> Any:
    """All classes, sorted; numbers and words do not mix, and no two whole numbers become one."""
    words = {np.asarray(part).dtype.kind in "UO" for part in parts}
    if len(words) > 1:
        raise InvalidInputError("classes are numbers in one place and words in another; use one kind")
    both = np.unique(np.concatenate([np.ravel(part) for part in parts]))
    if both.dtype.kind == "f" and any(np.asarray(part).dtype.kind in "iu" for part in parts):
        beyond = both[np.abs(both) > 2**53]
        if beyond.size:
            raise InvalidInputError(f"class {beyond[0]:.0f} is no longer told from its neighbours beside float classes")
    return both
