"""scikit-learn's own checks, without exceptions."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import forgetting as fg


@parametrize_with_checks(
    [
        fg.ContinualRegressor(),
        fg.ContinualRegressor(fit_intercept=False, loss="mean"),
        fg.ContinualRegressor(scheme=fg.schemes.Ridge(0.1), keep_history=False),
        fg.ContinualClassifier(),
        fg.ContinualClassifier(fit_intercept=False, keep_history=False),
        fg.IncrementalRidge(),
        fg.IncrementalRidge("gcv", False, features=20, keep_tasks=True),
        fg.IncrementalRidgeClassifier(),
        fg.IncrementalRidgeClassifier(0.1, False, features=20),
    ]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
