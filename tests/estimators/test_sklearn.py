"""All estimators keep scikit-learn's conventions."""

import warnings

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dprepro.ebm import DPEBMClassifier, DPEBMRegressor, EBMClassifier, EBMRegressor
from dprepro.ebm_plus import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.estimators.inputs import PrivacyWarning

# Few epochs and bags: the checks are about conventions, not about learning.
ESTIMATORS = [
    DPEBMClassifier(epsilon=8.0, n_epochs=20, learning_rate=0.1),
    DPEBMRegressor(epsilon=8.0, n_epochs=20, learning_rate=0.1),
    DPEBMPlusClassifier(epsilon=8.0, observed=True),
    DPEBMPlusRegressor(epsilon=8.0, observed=True),
    EBMClassifier(outer_bags=2, n_epochs=200),
    EBMRegressor(outer_bags=2, n_epochs=200),
]


@parametrize_with_checks(ESTIMATORS)
def test_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        # The checks pass no domain; that this is warned of has its own test.
        warnings.simplefilter("ignore", PrivacyWarning)
        check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_every_parameter_can_be_read_and_set(estimator):
    params = estimator.get_params()
    assert type(estimator)(**params).get_params() == params
