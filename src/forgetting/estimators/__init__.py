"""scikit-learn estimators: one `partial_fit` is one task learned to convergence, by the library's own loop.

What is learned, and how, is decided elsewhere: an estimator builds the problem of the call (regression tasks, or one
binary classification problem per class), runs its tasks from the weights it has, and keeps what the history needs.
"""

from forgetting.estimators.classifier import ContinualClassifier
from forgetting.estimators.regressor import ContinualRegressor

__all__ = ["ContinualClassifier", "ContinualRegressor"]
