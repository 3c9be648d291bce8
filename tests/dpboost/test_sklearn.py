"""Both estimators keep scikit-learn's conventions, in both variants."""

import warnings

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dprepro.dpboost import DPBoostClassifier, DPBoostRegressor
from dprepro.estimators.inputs import PrivacyWarning

ESTIMATORS = [
    estimator(epsilon=8.0, variant=variant, n_trees=5, max_depth=4)
    for estimator in (DPBoostClassifier, DPBoostRegressor)
    for variant in ("as-published", "sound")
]


@parametrize_with_checks(ESTIMATORS)
def test_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        # The checks pass no domain; that this is warned of has its own test.
        warnings.simplefilter("ignore", PrivacyWarning)
        check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: f"{type(e).__name__}-{e.variant}")
def test_every_parameter_can_be_read_and_set(estimator):
    params = estimator.get_params()
    assert type(estimator)(**params).get_params() == params
