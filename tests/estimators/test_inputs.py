"""What estimators refuse before they train: a domain that belongs to other data."""

import numpy as np
import pandas as pd
import pytest

from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.estimators.inputs import (
    PrivacyWarning,
    read_training_arrays,
    read_training_rows,
    resolve_domain_of,
)
from dprepro.methods.dp_ebm.ebm import EBMClassifier
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.methods.dpboost.estimator import DPBoostClassifier
from dprepro.privacy.private_rows import Private, PrivateRowsError

FEATURES = (NumericFeature("x", 0, 1), NumericFeature("z", 0, 100))
LABELLED = Domain(FEATURES, ("no", "yes"))
BOUNDED = Domain(FEATURES, (0.0, 1.0))


def table(rows=50):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.random(rows), "z": 100 * rng.random(rows)})
    return X, (X["x"] > 0.5).astype(int)


@pytest.mark.parametrize(
    ("columns", "wrong"),
    [(["z", "x"], "column 'z' where the domain describes feature 'x'"), (["x", "q"], "'q'")],
)
def test_columns_must_be_those_of_the_domain_in_its_order(columns, wrong):
    X, y = table()
    X = X.rename(columns={"z": "q"}) if "q" in columns else X
    with pytest.raises(ValueError, match=wrong):
        DPEBMClassifier(domain=LABELLED).fit(X[columns], y)


def test_an_array_has_no_names_to_compare():
    X, y = table()
    by_name = DPEBMClassifier(domain=LABELLED, random_state=0, n_epochs=5).fit(X, y)
    by_place = DPEBMClassifier(domain=LABELLED, random_state=0, n_epochs=5).fit(X.to_numpy(), y)
    np.testing.assert_array_equal(by_name.predict_proba(X), by_place.predict_proba(X.to_numpy()))


def test_a_second_fit_on_an_array_forgets_the_names():
    X, y = table()
    model = DPEBMClassifier(domain=LABELLED, n_epochs=5).fit(X, y)
    other = Domain((NumericFeature("a", 0, 1), NumericFeature("b", 0, 100)), ("no", "yes"))
    assert model.set_params(domain=other).fit(X.to_numpy(), y).domain_ == other


def test_a_fit_that_fails_leaves_nothing_of_the_one_before():
    """Else a ledger, its noise and its edits would stand beside parameters that they are not of."""
    X, y = table()
    model = DPEBMClassifier(domain=LABELLED, n_epochs=5).fit(X, y)
    left = {name for name in vars(model) if name.endswith("_")}
    assert {"ledger_", "shape_noise_", "edits_"} <= left
    with pytest.raises(ValueError, match="epsilon"):
        model.set_params(epsilon=-1).fit(X, y)
    assert not {name for name in vars(model) if name.endswith("_")} & {
        "ledger_", "shape_noise_", "edits_", "shape_functions_",
    }  # fmt: skip


def test_the_number_of_features_must_be_the_domains():
    X, y = table()
    domain = Domain((*FEATURES, CategoricalFeature("c", ("a",))), ("no", "yes"))
    with pytest.raises(ValueError, match="X has 2 columns but the domain describes 3 features"):
        DPEBMClassifier(domain=domain).fit(X, y)


@pytest.mark.parametrize(
    ("estimator", "domain", "needed"),
    [
        (DPEBMClassifier, BOUNDED, "two labels"),
        (DPEBMClassifier, Domain(FEATURES, ("a", "b", "c")), "two labels"),
        (DPEBMRegressor, LABELLED, r"bounds \(lower, upper\)"),
        (DPEBMRegressor, Domain(FEATURES, ("0", "1")), r"bounds \(lower, upper\)"),
    ],
)
def test_the_domains_target_must_fit_the_task(estimator, domain, needed):
    X, y = table()
    with pytest.raises(ValueError, match=f"target must be {needed}"):
        estimator(domain=domain).fit(X, y)


def test_the_rows_of_a_fit_are_wrapped_and_their_domain_can_be_resolved():
    X, y = table()
    classifier = DPEBMClassifier(domain=LABELLED)
    rows = read_training_rows(classifier, X, y, LABELLED, "binary")
    assert isinstance(rows, Private)
    assert classifier.classes_.tolist() == [0, 1]
    assert resolve_domain_of(classifier, rows, "binary") is LABELLED
    with pytest.raises(PrivateRowsError):
        rows.open()
    regressor = DPEBMRegressor()
    rows = read_training_rows(regressor, X, 3.0 * y, None, "regression")
    with pytest.warns(PrivacyWarning):
        domain = resolve_domain_of(regressor, rows, "regression")
    assert domain.target == (0.0, 3.0)
    assert not domain.is_public


def test_the_numbers_of_a_fit_are_wrapped():
    X, y = table()
    model = DPEBMRegressor()
    arrays = read_training_arrays(model, X.to_numpy(), y)
    assert isinstance(arrays, Private)
    assert model.n_features_in_ == 2
    with pytest.raises(PrivateRowsError):
        arrays.open()
    with pytest.raises(ValueError, match="contains NaN"):
        read_training_arrays(model, np.full((3, 2), np.nan), np.zeros(3))


def test_the_warning_of_a_domain_that_is_read_points_to_the_fit():
    X, y = table()
    with pytest.warns(PrivacyWarning) as caught:
        DPEBMRegressor(n_epochs=5).fit(X, 3.0 * y)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(("bits", "stored"), [("u4", "float32"), ("u8", "float64")])
@pytest.mark.parametrize("method", [DPEBMClassifier, EBMClassifier, DPBoostClassifier])
def test_a_signalling_nan_is_missing_like_any_other(method, bits, stored):
    """NumPy warns where it meets one, and warnings are errors here."""
    X, y = table()
    X = pd.DataFrame({"x": X["x"].astype(stored)})
    X.loc[:4, "x"] = np.nan
    signalling = X["x"].to_numpy(copy=True)
    signalling.view(bits)[:5] = {"u4": 0x7F800001, "u8": 0x7FF0000000000001}[bits]
    public = {"domain": Domain((NumericFeature("x", 0, 1, missing=True),), ("0", "1"))}
    settings = {"random_state": 0} | ({} if method is EBMClassifier else public)
    models = [
        method(**settings).fit(rows, y).predict_proba(X)
        for rows in (X, pd.DataFrame({"x": signalling}))
    ]
    np.testing.assert_array_equal(*models)
