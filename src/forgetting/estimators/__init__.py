"""scikit-learn estimators, in which a call of `partial_fit` learns a task to convergence.

An estimator builds the problem of the call (regression tasks, or a binary classification problem per class), runs the
loop from its current weights, and keeps the history.
"""

from forgetting.core.names import only
from forgetting.estimators.classifier import ContinualClassifier
from forgetting.estimators.incremental_ridge import IncrementalRidge, IncrementalRidgeClassifier
from forgetting.estimators.regressor import ContinualRegressor

__all__ = ["ContinualClassifier", "ContinualRegressor", "IncrementalRidge", "IncrementalRidgeClassifier"]
__dir__ = only(__all__)
