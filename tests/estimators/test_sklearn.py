"""All estimators keep scikit-learn's conventions; what one cannot keep is listed with a reason."""

import warnings

import pytest
from sklearn.utils.estimator_checks import check_estimator

from dprepro.methods.ada_ssp.estimator import AdaSSPRegressor
from dprepro.methods.dp_bag.estimator import DPBagClassifier
from dprepro.methods.dp_ebm.ebm import EBMClassifier, EBMRegressor
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.methods.dp_ebm_plus.estimator import DPEBMPlusClassifier, DPEBMPlusRegressor
from dprepro.methods.dp_sgd.estimator import DPSGDClassifier, DPSGDRegressor
from dprepro.methods.dpboost.estimator import DPBoostClassifier, DPBoostRegressor
from dprepro.methods.forests.estimator import DPRandomForest
from dprepro.methods.gradient_descent.estimator import DPGradientDescentClassifier
from dprepro.methods.lazybb.estimator import LazyBBClassifier, OneRule, TopDownTree
from dprepro.methods.linear_regression.estimator import (
    DPLinearRegression,
    PlainBoundedLinearRegression,
)
from dprepro.methods.locally_linear.estimator import DPLLMClassifier, LLMClassifier
from dprepro.methods.logistic.estimator import DPLogisticRegression
from dprepro.methods.privatree.estimator import PrivaTreeClassifier
from dprepro.methods.random_boosting.estimator import DPRandomBoostingClassifier
from dprepro.methods.s_bdt.estimator import SBDTClassifier, SBDTRegressor
from dprepro.methods.synthetic.estimator import SyntheticClassifier, SyntheticRegressor
from dprepro.methods.toy_ebm.estimator import ToyDPEBMClassifier, ToyDPEBMRegressor
from dprepro.methods.wishart_regression.estimator import WishartLinearRegression

# Of checks that fit to rows of any kind and expect no error, or expect another error.
_ANY_FIT = {
    "dict_unchanged",
    "dont_overwrite_parameters",
    "dtype_object",
    "estimators_dtypes",
    "estimators_fit_returns_self",
    "estimators_overwrite_params",
    "estimators_pickle",
    "f_contiguous_array_estimator",
    "fit2d_1feature",
    "fit2d_predict1d",
    "fit_check_is_fitted",
    "fit_idempotent",
    "fit_score_takes_y",
    "methods_sample_order_invariance",
    "methods_subset_invariance",
    "n_features_in",
    "n_features_in_after_fitting",
    "pipeline_consistency",
    "positive_only_tag_during_fit",
    "readonly_memmap_input",
    "requires_y_none",
    "supervised_y_2d",
}
_CLASSIFIER = {
    "classifier_data_not_an_array",
    "classifiers_classes",
    "classifiers_one_label",
    "classifiers_regression_target",
    "classifiers_train",
}
_BINARY = {"classifier_not_supporting_multiclass"}
_REGRESSOR = {
    "regressor_data_not_an_array",
    "regressors_int",
    "regressors_no_decision_function",
    "regressors_train",
}
# The domain is missed before the rows are looked at.
_OTHER_ERROR = {
    "complex_data",
    "estimator_sparse_array",
    "estimator_sparse_matrix",
    "estimator_sparse_tag",
    "estimators_empty_data_messages",
    "fit2d_1sample",
}
_NAN = {"estimators_nan_inf"}
# Checks of scikit-learn 1.9 alone, which have no results beside older releases.
_NEWER = {"all_zero_sample_weights_error"}
_WEIGHTS = {
    *_NEWER,
    "sample_weight_equivalence_on_dense_data",
    "sample_weights_list",
    "sample_weights_not_an_array",
    "sample_weights_not_overwritten",
}
_ANY_WEIGHTS = {*_WEIGHTS, "sample_weights_pandas_series", "sample_weights_shape"}
_OF_THE_FOREST = {
    *_NEWER,
    "classifier_multioutput",
    "classifiers_multilabel_output_format_decision_function",
    "classifiers_multilabel_output_format_predict",
    "classifiers_multilabel_output_format_predict_proba",
    "classifiers_multilabel_representation_invariance",
    "classifiers_one_label_sample_weights",
    "sample_weight_equivalence_on_dense_data",
    "sample_weight_equivalence_on_sparse_data",
    "sample_weights_list",
    "sample_weights_not_an_array",
    "sample_weights_not_overwritten",
    "sample_weights_pandas_series",
    "sample_weights_shape",
}
_WEIGHTS_IGNORED = {
    *_NEWER,
    "sample_weights_not_an_array",
    "sample_weights_shape",
    "sample_weight_equivalence_on_dense_data",
    "sample_weight_equivalence_on_sparse_data",
    "estimator_sparse_tag",
}

NEEDS_DOMAIN = "it reads no domain from rows, and the checks know none"
ABOVE_0 = "weights lie above 0 and are at most the public `largest_weight`, 1 unless stated"
BOOLEAN = "it takes Boolean columns"
LIBRARY = (
    "diffprivlib's: its constructor makes an accountant, its `fit` takes weights and uses none"
)
ARRAYS = "rows are counted by NumPy before scikit-learn converts them"

# Few epochs, steps and bags: the checks are about conventions, not about learning.
CASES = [
    (DPEBMClassifier(epsilon=8.0, n_epochs=20, learning_rate=0.1), {}),
    (DPEBMRegressor(epsilon=8.0, n_epochs=20, learning_rate=0.1), {}),
    (
        DPEBMPlusClassifier(epsilon=8.0, n_epochs=8, observed=True),
        {ABOVE_0: _WEIGHTS | {"classifiers_one_label_sample_weights"}},
    ),
    (DPEBMPlusRegressor(epsilon=8.0, n_epochs=8, observed=True), {ABOVE_0: _WEIGHTS}),
    (EBMClassifier(outer_bags=2, n_epochs=200), {}),
    (EBMRegressor(outer_bags=2, n_epochs=200), {}),
    *[
        (estimator(epsilon=8.0, variant=variant, n_trees=5, max_depth=4), {})
        for estimator in (DPBoostClassifier, DPBoostRegressor)
        for variant in ("as-published", "sound")
    ],
    (LLMClassifier(n_maps=2, n_projected=3, epochs=3), {}),
    (DPLLMClassifier(8.0, n_maps=2, n_projected=None, epochs=3, accountant="moments"), {}),
    (ToyDPEBMClassifier(epsilon=1e3, n_epochs=30, learning_rate=0.1), {}),
    (ToyDPEBMRegressor(epsilon=1e3, n_epochs=30, learning_rate=0.1, sigmoid=False), {}),
    (AdaSSPRegressor(epsilon=8.0), {}),
    (DPBagClassifier(epsilon=8.0, teachers=2, partitions=2), {}),
    (DPGradientDescentClassifier(epsilon=8.0, steps=5), {}),
    *[
        (estimator(epsilon=50.0, steps=60, sampling=1.0, learning_rate=0.5), {})
        for estimator in (DPSGDClassifier, DPSGDRegressor)
    ],
    (PrivaTreeClassifier(epsilon=8.0, max_depth=2), {}),
    (DPRandomBoostingClassifier(epsilon=8.0, n_trees=5), {}),
    (SBDTClassifier(epsilon=8.0, n_trees=5), {}),
    (SBDTRegressor(epsilon=8.0, n_trees=5), {}),
    (SyntheticClassifier(epsilon=8.0), {}),
    (SyntheticRegressor(epsilon=8.0), {}),
    (WishartLinearRegression(epsilon=8.0), {ARRAYS: {"regressor_data_not_an_array"}}),
    (
        DPLogisticRegression(epsilon=8.0, max_iter=5),
        {
            LIBRARY: {"no_attributes_set_in_init", *_WEIGHTS_IGNORED},
            ARRAYS: {"classifier_data_not_an_array"},
        },
    ),
    (
        DPEBMPlusClassifier(),
        {
            NEEDS_DOMAIN: _ANY_FIT | _CLASSIFIER | _OTHER_ERROR | _ANY_WEIGHTS
            | {"classifiers_one_label_sample_weights", "decision_proba_consistency"}
        },
    ),
    (DPEBMPlusRegressor(), {NEEDS_DOMAIN: _ANY_FIT | _REGRESSOR | _OTHER_ERROR | _ANY_WEIGHTS}),
    *[
        (estimator(domain=None), {NEEDS_DOMAIN: _ANY_FIT | _REGRESSOR | _OTHER_ERROR | _NAN})
        for estimator in (DPLinearRegression, PlainBoundedLinearRegression)
    ],
    (
        DPRandomForest(),
        {NEEDS_DOMAIN: _ANY_FIT | _CLASSIFIER | _OTHER_ERROR | _NAN | _OF_THE_FOREST},
    ),
    *[
        (estimator(), {BOOLEAN: _ANY_FIT | _CLASSIFIER | _BINARY | _NAN})
        for estimator in (LazyBBClassifier, OneRule, TopDownTree)
    ],
]  # fmt: skip
IDS = [f"{k}-{type(estimator).__name__}" for k, (estimator, _) in enumerate(CASES)]


@pytest.mark.parametrize(("estimator", "reasons"), CASES, ids=IDS)
def test_estimator_checks(estimator, reasons):
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # that no domain is passed is warned of, and has its own test
        results = check_estimator(estimator, on_skip=None, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    expected = {f"check_{name}" for names in reasons.values() for name in names}
    ran = {r["check_name"] for r in results}
    expected -= {f"check_{name}" for name in _NEWER} - ran
    assert failed.keys() == expected, {k: failed[k] for k in failed.keys() - expected}


@pytest.mark.parametrize("estimator", [estimator for estimator, _ in CASES], ids=IDS)
def test_every_parameter_can_be_read_and_set(estimator):
    params = estimator.get_params()
    assert type(estimator)(**params).get_params() == params
