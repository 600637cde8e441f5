"""scikit-learn estimators: continual learners, and ridge heads that forget nothing.

A call of `partial_fit` of a continual learner learns a task to convergence: it builds the problem of the call
(regression tasks, or a binary classification problem per class), runs the loop from its current weights, and keeps the
history. A head keeps the triangle of a QR factorisation of all rows (`ridge_state`).
"""

from forgetting.core.names import only
from forgetting.estimators.classifier import ContinualClassifier
from forgetting.estimators.incremental_ridge import IncrementalRidge, IncrementalRidgeClassifier
from forgetting.estimators.regressor import ContinualRegressor
from forgetting.estimators.ridge_path import RidgePath

__all__ = ["ContinualClassifier", "ContinualRegressor", "IncrementalRidge", "IncrementalRidgeClassifier", "RidgePath"]
__dir__ = only(__all__)
